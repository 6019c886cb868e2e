"""What is looked at when rows are released: that the promise of fit is still the one."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skpuffer import (
    AdditiveRelease,
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)
from skpuffer.exceptions import (
    AlteredScaleWarning,
    LawError,
    ParameterError,
    ReproducibleNoiseWarning,
)
from skpuffer.laws import Laplace, grid_step

rng = np.random.default_rng(0)
SEX = np.arange(200) % 2
FRAME = pd.DataFrame({"age": rng.normal(40 + 3 * SEX, 9), "sex": SEX})
KINDS = [RenyiPufferfishLaplace, RenyiPufferfishGaussian, JointRelease]


@pytest.mark.parametrize("kind", KINDS)
def test_the_scale_is_for_reading(kind):
    noise = kind(secret="sex").fit(FRAME)
    for values in (noise.scale_, noise.noise_std_):
        with pytest.raises(ValueError, match="read-only"):
            values *= 0.5


@pytest.mark.parametrize("kind", [*KINDS, RenyiPufferfishCategorical])
def test_less_noise_than_fit_found_is_told_of(kind):
    frame = FRAME
    if kind is RenyiPufferfishCategorical:
        frame = FRAME.assign(age=np.where(FRAME["age"] > 40, "old", "young"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the categories")
        noise = kind(secret="sex").fit(frame)
    found = noise.scale_
    for part in (0.5, 2.0**-7):
        noise.scale_ = found * part
        with pytest.warns(AlteredScaleWarning, match=r"'age' is .* fit found .* again"):
            noise.transform(frame)
    # More noise keeps the promise, and the noise that was found does.
    for scale in (found * 2, found):
        noise.scale_ = scale
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            noise.transform(frame)


def test_a_seed_after_fit_is_none_that_the_guarantee_knows():
    noise = RenyiPufferfishLaplace(secret="sex").fit(FRAME).set_params(random_state=0)
    with pytest.raises(ParameterError, match="random_state=0 was set after fit"):
        noise.transform(FRAME)
    noise.fit(FRAME)
    assert noise.guarantee_.seeded
    with pytest.warns(ReproducibleNoiseWarning):
        noise.transform(FRAME)
    # Without it the noise is only safer than the guarantee says.
    noise.set_params(random_state=None).transform(FRAME)


def test_an_index_that_is_called_as_the_secret_is_refused():
    noise = RenyiPufferfishLaplace(secret="sex").fit(FRAME)
    indexed = FRAME.set_index("sex", drop=False)
    with pytest.raises(ValueError, match=r"index of X is called 'sex'.*reset_index"):
        noise.transform(indexed)
    several = FRAME.set_index(["sex", "age"], drop=False)
    with pytest.raises(ValueError, match="index of X is called 'sex'"):
        noise.transform(several)
    labels = FRAME["sex"].set_axis(indexed.index)
    alone = RenyiPufferfishLaplace().fit(indexed[["age"]], secret=labels)
    with pytest.raises(ValueError, match="index of X is called 'sex'"):
        alone.transform(indexed[["age"]])
    assert noise.transform(indexed.rename_axis(None)).shape == (200, 1)


class OffGrid(Laplace):
    """Writes what is on no grid."""

    name = "off grid"

    def perturb(self, values, *, scale, bits, out=None):
        super().perturb(values, scale=scale, bits=bits, out=out)
        out += grid_step(scale) / 4
        return out


class Copying(Laplace):
    """Writes the values themselves."""

    name = "copying"

    def perturb(self, values, *, scale, bits, out=None):
        out[:] = values
        return out


class Writing(Laplace):
    """Writes to the rows of the caller."""

    name = "writing"

    def perturb(self, values, *, scale, bits, out=None):
        values[:] = 0.0
        return super().perturb(values, scale=scale, bits=bits, out=out)


class Skipping(Laplace):
    """Writes every other value."""

    name = "skipping"

    def perturb(self, values, *, scale, bits, out=None):
        out[::2] = super().perturb(values[::2], scale=scale, bits=bits)
        return out


@pytest.mark.parametrize("law", [OffGrid, Copying, Skipping])
def test_what_a_law_does_not_draw_on_the_grid_is_not_released(law):
    noise = type("Release", (AdditiveRelease,), {"law": law()})(secret="sex").fit(FRAME)
    with pytest.raises(LawError, match="does not write a release on the grid"):
        noise.transform(FRAME)


def test_a_law_cannot_write_to_the_rows_of_the_caller():
    noise = type("Release", (AdditiveRelease,), {"law": Writing()})(secret="sex")
    rows = FRAME[["age"]].to_numpy()
    noise.set_params(secret=None).fit(rows, secret=SEX)
    before = rows.copy()
    with pytest.raises(ValueError, match="read-only"):
        noise.transform(rows)
    assert np.array_equal(rows, before)


@pytest.mark.parametrize("kind", [*KINDS, RenyiPufferfishCategorical])
def test_names_can_be_completed_after_fit(kind):
    frame = FRAME.assign(age=FRAME["age"].round())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noise = kind(secret="sex").fit(frame)
    assert {"scale_", "guarantee_", "transform"} <= set(dir(noise))
