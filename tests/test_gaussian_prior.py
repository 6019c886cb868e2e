"""The promise for a Gaussian model, from fit to guarantee."""

import numpy as np
import pandas as pd
import pytest

from skpuffer import (
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    compare_mechanisms,
)
from skpuffer.exceptions import (
    ParameterError,
    SmallGroupWarning,
    ZeroNoiseWarning,
)

quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    age = rng.integers(20, 60, n) + 3 * (sex == "M")
    return pd.DataFrame(
        {"age": age, "bmi": rng.normal(25, 4, n).clip(10, 60), "sex": sex}
    )


def test_the_gaussian_guarantee_names_the_model():
    frame = people()[["age", "sex"]]
    model = RenyiPufferfishGaussian(epsilon=0.05, secret="sex", prior_model="gaussian")
    noise = model.fit(frame)
    text = str(noise.guarantee_)
    assert (
        "if the column is Gaussian given sex, with the fitted means and variances;"
        in text
    )
    assert "rule gaussian_model (Rényi divergence of two Gaussians" in text
    # Less than the sample needs: it assumes more.
    plain = RenyiPufferfishGaussian(epsilon=0.05, secret="sex").fit(frame)
    assert 0 < noise.scale_[0] < plain.scale_[0]


@quiet
def test_the_gaussian_model_by_columns_and_priors():
    frame = people().assign(site=np.arange(600) % 2)
    noise = RenyiPufferfishGaussian(
        epsilon=0.01, secret="sex", prior="site", prior_model="gaussian", scope="column"
    ).fit(frame)
    assert (
        "for each of the 2 fitted priors (0, 1), if each column is Gaussian given sex"
        in str(noise.guarantee_)
    )
    for position, column in enumerate(("age", "bmi")):
        alone = [
            RenyiPufferfishGaussian(
                epsilon=0.01, secret="sex", prior_model="gaussian"
            ).fit(frame.loc[frame["site"] == site, [column, "sex"]])
            for site in (0, 1)
        ]
        assert noise.scale_[position] == max(a.scale_[0] for a in alone)
        assert noise.report_.worst_pair[position].endswith("F – M")


def test_the_gaussian_model_says_when_it_adds_nothing():
    frame = people()[["age", "sex"]]
    noise = RenyiPufferfishGaussian(epsilon=1, secret="sex", prior_model="gaussian")
    with pytest.warns(ZeroNoiseWarning, match="under the fitted Gaussian model"):
        noise.fit(frame)
    with pytest.warns(ZeroNoiseWarning):
        noise.transform(frame)


def test_few_rows_are_named_for_the_gaussian_model():
    frame = pd.DataFrame({"age": [30.0, 40, 50, 60], "sex": list("FMFM")})
    noise = RenyiPufferfishGaussian(epsilon=9, secret="sex", prior_model="gaussian")
    with (
        pytest.warns(SmallGroupWarning, match="fitted means and variances"),
        pytest.warns(ZeroNoiseWarning),
    ):
        noise.fit(frame)


@pytest.mark.parametrize(
    ("law", "parameters", "message"),
    [
        (RenyiPufferfishLaplace, {}, "Gaussian noise only.*RenyiPufferfishGaussian"),
        (RenyiPufferfishGaussian, {"calibration": "w_inf"}, "'w_inf' has no effect"),
        (RenyiPufferfishGaussian, {}, "one column at a time and X has 2"),
    ],
)
def test_what_a_gaussian_model_does_not_go_with(law, parameters, message):
    noise = law(secret="sex", prior_model="gaussian", **parameters)
    with pytest.raises(ParameterError, match=message):
        noise.fit(people())


def test_the_comparison_has_one_line_for_the_model():
    frame = people()[["age", "sex"]]
    table = compare_mechanisms(
        frame, secret="sex", epsilon=0.05, prior_model="gaussian"
    )
    assert table[["law", "calibration"]].to_numpy().tolist() == [
        ["gaussian", "transport"]
    ]


@pytest.mark.parametrize("power", [-990, -535, 520, 880])
def test_the_scale_follows_the_unit_of_the_data(power):
    # Squares of such numbers are no floats, or have few digits: too little noise.
    secret = np.arange(60) % 2
    rows = (3.0 * secret + np.arange(60) // 2 % 2)[:, None]
    noise = RenyiPufferfishGaussian(prior_model="gaussian")
    expected = noise.fit(rows, secret=secret).scale_
    found = noise.fit(rows * 2.0**power, secret=secret).scale_ * 2.0**-power
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_priors_of_units_far_apart():
    # The far groups decide, and what they need is ample for the near ones.
    secret, town = np.arange(80) % 2, np.arange(80) // 40
    rows = (3.0 * secret + np.arange(80) // 2 % 2)[:, None]
    noise = RenyiPufferfishGaussian(prior_model="gaussian")
    expected = noise.fit(rows[:40], secret=secret[:40]).scale_
    rows[40:] *= 2.0**-900
    found = noise.fit(rows, secret=secret, prior=town).scale_
    np.testing.assert_allclose(found, expected, rtol=1e-12)
