"""The mechanism with exponential noise: its power, its limits and what it states."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import power_oracle
import pytest
from sklearn.base import clone

from skpuffer import (
    RenyiPufferfishExponential,
    RenyiPufferfishLaplace,
    compare_mechanisms,
    held_out_divergence,
)
from skpuffer.core import bands
from skpuffer.core.grid import grid_step
from skpuffer.core.laws import Exponential
from skpuffer.exceptions import (
    CalibrationError,
    ExcessiveNoiseWarning,
    ParameterError,
    UnavailableRuleError,
)

quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def frame(n=200, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    age = np.rint(rng.gamma(4, 10, n) + shift * sex)
    return pd.DataFrame({"age": age, "sex": np.where(sex, "M", "F")})


def sides(data, scale):
    """The rounded ages of each sex, with their counts."""
    step = grid_step(scale)
    found = []
    for _, group in data.groupby("sex"):
        values = np.floor(group["age"] / step + 0.5) * step
        found.append(np.unique(values, return_counts=True))
    return found


def by_quadrature(data, scale, power, alpha):
    first, second = sides(data, scale)
    options = {"power": power, "scale": scale, "alpha": alpha}
    return max(
        power_oracle.mixture_divergence(*p, *q, **options)
        for p, q in ((first, second), (second, first))
    )


@pytest.mark.parametrize(
    "power", [True, "0.5", None, math.nan, 0, 0.1, 1.5, -1, math.inf]
)
def test_a_power_out_of_range_is_named(power):
    data = frame()
    with pytest.raises(ParameterError, match=f"power={power!r} must be a number"):
        RenyiPufferfishExponential(power=power, secret="sex").fit(data)


@quiet
@pytest.mark.parametrize("power", [0.5, 0.8, np.float32(0.75)])
@pytest.mark.parametrize("rule", ["transport", "alpha_wasserstein", "w_inf"])
def test_the_promise_holds_for_the_fitted_prior(power, rule):
    data = frame()
    noise = RenyiPufferfishExponential(
        alpha=3, epsilon=0.8, power=power, secret="sex", calibration=rule
    ).fit(data)
    found = by_quadrature(data, noise.scale_[0], float(power), 3.0)
    assert found <= 0.8
    p = float(power)
    ratio = math.exp((math.lgamma(3 / p) - math.lgamma(1 / p)) / 2)
    assert noise.noise_std_[0] == pytest.approx(ratio * noise.scale_[0], rel=1e-12)
    # At other orders too.
    for alpha in (1.5, 8.0, math.inf):
        bound = noise.privacy_profile([alpha])[0]
        assert by_quadrature(data, noise.scale_[0], float(power), alpha) <= bound


@quiet
def test_the_guarantee_names_the_law_with_its_power():
    noise = RenyiPufferfishExponential(power=0.7, secret="sex").fit(frame())
    promise = noise.guarantee_
    assert promise.law == "exponential"
    assert promise.power == 0.7
    assert "Exponential (power 0.7) noise of scale" in str(promise)
    assert "largest log ratio of a shift" in str(promise)
    assert json.loads(promise.to_json())["power"] == 0.7
    published = clone(noise).set_params(calibration="alpha_wasserstein").fit(frame())
    assert "section III-A4" in published.guarantee_.source
    laplace = RenyiPufferfishLaplace(secret="sex").fit(frame())
    assert laplace.guarantee_.power is None
    assert "power" not in str(laplace.guarantee_)


@quiet
def test_power_one_is_laplace_to_the_bit():
    data = frame()
    one = RenyiPufferfishExponential(power=1, secret="sex", random_state=3)
    other = RenyiPufferfishLaplace(secret="sex", random_state=3)
    for rule in ("transport", "alpha_wasserstein", "closed_form", "w_inf"):
        left, right = (
            e.set_params(calibration=rule).fit(data).transform(data)
            for e in (one, other)
        )
        np.testing.assert_array_equal(left.to_numpy(), right.to_numpy())
        assert one.scale_ == other.scale_
        assert one.guarantee_.source == other.guarantee_.source


@quiet
def test_what_was_fitted_is_what_is_released():
    data = frame()
    noise = RenyiPufferfishExponential(power=0.5, secret="sex", random_state=1).fit(
        data
    )
    before = noise.transform(data)
    noise.fit(data).set_params(power=0.9)
    pd.testing.assert_frame_equal(noise.transform(data), before)
    before = held_out_divergence(noise, data)
    assert noise.guarantee_.power == 0.5
    # Its own prior: no more than epsilon, and no less than the truth.
    truth = by_quadrature(data, noise.scale_[0], 0.5, 2.0)
    assert truth <= before["divergence"][0] <= 1 + 1e-6


@quiet
def test_what_has_no_certified_divergence_is_refused():
    data = frame()
    with pytest.raises(
        UnavailableRuleError, match=r"'exact'.*exponential.*'transport'"
    ):
        RenyiPufferfishExponential(secret="sex", calibration="exact").fit(data)
    with pytest.raises(ParameterError, match=r"Gaussian noise only.*exponential noise"):
        RenyiPufferfishExponential(secret="sex", prior_model="gaussian").fit(data)
    with pytest.raises(CalibrationError, match=r"calibrating age: .*or the power"):
        RenyiPufferfishExponential(epsilon=1e-7, secret="sex").fit(data)


@quiet
def test_a_population_is_bounded_by_its_bands_alone(monkeypatch):
    def tightened(*args, **options):
        raise AssertionError("bounds on means are for convex costs")

    monkeypatch.setattr(bands, "tightened", tightened)
    data, options = frame(600), {"prior_model": "population", "bounds": (0, 150)}
    for power in (0.5, 0.8):
        noise = RenyiPufferfishExponential(power=power, secret="sex", **options)
        alone = RenyiPufferfishExponential(power=power, secret="sex").fit(data)
        assert noise.fit(data).scale_[0] > alone.scale_[0]
    with pytest.raises(AssertionError, match="convex"):
        RenyiPufferfishLaplace(secret="sex", **options).fit(data)


@quiet
def test_any_prior_on_declared_bounds():
    noise = RenyiPufferfishExponential(
        alpha=math.inf, power=0.5, secret="sex", prior_model="bounded", bounds=(0, 90)
    ).fit(frame())
    assert noise.scale_[0] == pytest.approx(90, rel=2e-6)


@quiet
def test_several_columns_and_copies():
    data = frame().assign(pay=np.arange(200.0) % 37)
    noise = RenyiPufferfishExponential(power=0.5, secret="sex")
    joint = noise.fit(data)
    alone = clone(noise).set_params(scope="column").fit(data)
    assert (joint.scale_ > alone.scale_).all()
    twice = clone(noise).set_params(n_releases=2).fit(data)
    assert (twice.scale_ > joint.scale_).all()
    assert "extended to vectors" not in joint.guarantee_.source
    assert joint.transform(data).shape == (200, 2)


@quiet
@pytest.mark.parametrize("scope", ["joint", "column"])
def test_the_order_that_needs_least(scope):
    data = frame().assign(pay=np.arange(200.0) % 37)
    options = {
        "power": 0.6,
        "epsilon": 2,
        "delta": 1e-3,
        "secret": "sex",
        "scope": scope,
    }
    auto = RenyiPufferfishExponential("auto", **options).fit(data)
    fixed = [
        RenyiPufferfishExponential(alpha, **options).fit(data) for alpha in (8.0, 40.0)
    ]
    least = min(np.log(e.scale_).sum() for e in fixed)
    assert np.log(auto.scale_).sum() <= least + 0.02


def test_noise_beyond_the_spread_warns_with_the_ratio():
    with pytest.warns(ExcessiveNoiseWarning, match=r"'age' is .* times its standard"):
        RenyiPufferfishExponential(power=0.25, epsilon=0.5, secret="sex").fit(frame())


@quiet
def test_the_comparison_takes_a_power():
    data = frame()
    table = compare_mechanisms(
        data, secret="sex", laws=["laplace", "exponential"], power=0.8
    )
    lines = table[table["law"] == "exponential"].set_index("calibration")
    assert sorted(lines.index) == [
        "alpha_wasserstein",
        "closed_form",
        "transport",
        "w_inf",
    ]
    alone = RenyiPufferfishExponential(power=0.8, secret="sex").fit(data)
    assert lines.loc["transport", "scale"] == alone.scale_[0]
    assert "power 0.8" in lines.loc["transport", "guarantee"]
    with pytest.raises(ParameterError, match=r"power=0\.8 .*add 'exponential'"):
        compare_mechanisms(data, secret="sex", power=0.8)


@quiet
def test_a_release_has_the_stated_law():
    data = pd.DataFrame({"age": np.tile([30.0, 31.0], 5000), "sex": ["F", "M"] * 5000})
    noise = RenyiPufferfishExponential(power=0.5, secret="sex", random_state=7).fit(
        data
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = noise.transform(data)["age"].to_numpy() - data["age"].to_numpy()
    # (|z| / s)^p is Gamma(1/p); its mean is 1/p with variance 1/p.
    x = (np.abs(error) / noise.scale_[0]) ** Exponential(0.5).power
    assert x.mean() == pytest.approx(2, abs=4 * math.sqrt(2 / len(x)))
    assert abs(np.sign(error).mean()) < 4 / math.sqrt(len(x))
