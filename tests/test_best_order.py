"""alpha="auto": the order with the least noise for an (ε, δ) promise."""

import math

import numpy as np
import pandas as pd
import pytest

from skpuffer import (
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    reuse_fits,
)
from skpuffer._text import order_text
from skpuffer.core import calibration
from skpuffer.core.calibration import CalibrationError, best_order
from skpuffer.core.conversions import renyi_budget
from skpuffer.exceptions import ParameterError

LAWS = [RenyiPufferfishLaplace, RenyiPufferfishGaussian, RenyiPufferfishExponential]
ORDERS = [1 + 10.0**x for x in np.linspace(-1.5, 3.5, 21)]
# And factors of α − 1 about the chosen one.
NEAR = [10.0**x for x in (-0.2, -0.1, -0.05, -0.02, 0.02, 0.05, 0.1, 0.2)]
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    age = rng.integers(20, 60, n) + 4 * (sex == "M")
    return pd.DataFrame({"age": age, "bmi": rng.normal(25, 4, n), "sex": sex})


@quiet
@pytest.mark.parametrize("mechanism", LAWS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"calibration": "w_inf"},
        {"calibration": "alpha_wasserstein"},
        {"calibration": "closed_form"},
        {"prior_model": "bounded", "bounds": (0, 100)},
        {"prior_model": "population", "bounds": (0, 100)},
        {"n_releases": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (4.0, 1e-2)])
def test_no_fixed_order_needs_less_noise(mechanism, options, epsilon, delta):
    frame = people()[["age", "sex"]]
    chosen = mechanism("auto", epsilon, delta=delta, secret="sex", **options).fit(frame)
    assert chosen.guarantee_.to_epsilon(delta) == pytest.approx(epsilon, rel=1e-12)
    assert chosen.guarantee_.target == (epsilon, delta)
    tried = 0
    orders = ORDERS + [math.inf] * (mechanism is RenyiPufferfishLaplace)
    near = [1 + (chosen.alpha_ - 1) * factor for factor in NEAR]
    # No order beyond 10^4 is looked for.
    orders += [alpha for alpha in near if alpha <= 1e4]
    with reuse_fits():
        for alpha in orders:
            if renyi_budget(alpha, epsilon, delta) > 0:
                fixed = mechanism(alpha, epsilon, delta=delta, secret="sex", **options)
                # The scales are rounded to 20 bits.
                least = fixed.fit(frame).scale_[0] * (1 + 3e-6)
                assert chosen.scale_[0] <= least, alpha
                tried += 1
    assert tried > 10


@quiet
@pytest.mark.parametrize("mechanism", LAWS)
@pytest.mark.parametrize("scope", ["joint", "column"])
def test_several_columns(mechanism, scope):
    frame = people(200)
    chosen = mechanism("auto", 2.0, delta=1e-3, secret="sex", scope=scope).fit(frame)
    noise = np.log(chosen.scale_).sum()
    for alpha in (5, 8, 12, 20, 40):
        fixed = mechanism(alpha, 2.0, delta=1e-3, secret="sex", scope=scope).fit(frame)
        # Couplings are refined to 1e-4 of the scale, two columns a release.
        slack = 2e-4 if scope == "joint" else 6e-6
        assert noise <= np.log(fixed.scale_).sum() + slack
    again = mechanism(chosen.alpha_, 2.0, delta=1e-3, secret="sex", scope=scope).fit(
        frame
    )
    np.testing.assert_array_equal(again.scale_, chosen.scale_)


@quiet
def test_a_column_without_noise_hides_no_other():
    frame = people()[["age", "sex"]]
    alone = RenyiPufferfishLaplace("auto", 2.0, delta=1e-3, secret="sex").fit(frame)
    still = RenyiPufferfishLaplace(
        "auto", 2.0, delta=1e-3, secret="sex", scope="column"
    ).fit(frame.assign(site=7.0))
    assert still.guarantee_.scale == (alone.scale_[0], 0.0)


@quiet
def test_the_other_rules_of_one_column():
    frame = people()[["age", "sex"]]
    for options in ({"calibration": "exact"}, {"prior_model": "gaussian"}):
        chosen = RenyiPufferfishGaussian(
            "auto", 0.3, delta=1e-2, secret="sex", **options
        ).fit(frame)
        for alpha in (5, 20, 50, 200):
            if renyi_budget(alpha, 0.3, 1e-2) > 0:
                fixed = RenyiPufferfishGaussian(
                    alpha, 0.3, delta=1e-2, secret="sex", **options
                ).fit(frame)
                assert chosen.scale_[0] <= fixed.scale_[0] * (1 + 1e-4)


def test_couplings_are_made_once(monkeypatch):
    made = []
    honest = calibration._protocol.start_plan
    monkeypatch.setattr(
        calibration._protocol,
        "start_plan",
        lambda *arguments: made.append(1) or honest(*arguments),
    )
    RenyiPufferfishLaplace("auto", 2.0, delta=1e-3, secret="sex").fit(people())
    assert len(made) == 1


def test_a_delta_is_needed_and_must_be_within_reach():
    with pytest.raises(ParameterError, match=r"alpha='auto'.*set delta"):
        RenyiPufferfishLaplace("auto", 1.0, secret="sex").fit(people())
    with pytest.raises(ParameterError, match="alpha='best'"):
        RenyiPufferfishLaplace("best", 1.0, delta=0.1, secret="sex").fit(people())
    with pytest.raises(CalibrationError, match="no order up to"):
        best_order(lambda alpha, epsilon: 0.0, 1e-6, 1e-12, infinite=False)


def test_the_search_on_known_functions():
    # The least of a smooth valley, of an edge, and where nothing is needed.
    found = best_order(
        lambda alpha, _: (math.log(alpha - 1) - 1.234) ** 2, 5.0, 0.1, infinite=False
    )
    assert math.log(found - 1) == pytest.approx(1.234, abs=5e-3)
    assert best_order(lambda a, _: -a, 5.0, 0.1, infinite=True) == math.inf
    assert best_order(lambda *_: -math.inf, 5.0, 0.1, infinite=True) < 2


@pytest.mark.parametrize(
    ("alpha", "shown"),
    [
        (4.0, "4"),
        (1.5, "1.5"),
        (math.inf, "∞"),
        (6.611527581807728, "6.61152"),
        (123456.78, "123456"),
        (1000000.5, "1000000"),
        (1 + 1e-9, "1.000000001"),
    ],
)
def test_an_order_is_shown_short_and_rounded_down(alpha, shown):
    assert order_text(alpha) == shown
    assert shown == "∞" or 1 < float(shown) <= alpha


@quiet
def test_a_guarantee_shows_its_order_in_few_digits():
    noise = RenyiPufferfishLaplace("auto", 2.0, delta=1e-3, secret="sex").fit(people())
    text = str(noise.guarantee_)
    shown = text[text.index("is (") + 4 : text.index(",", text.index("is ("))]
    assert len(shown) <= 7
    assert noise.alpha_ - 1e-4 < float(shown) <= noise.alpha_
