"""Conversions between Rényi and (epsilon, delta) promises."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from core_support import cost, fixed
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import laplace, norm

from skpuffer.core.conversions import renyi_budget, renyi_to_delta, renyi_to_epsilon

ORDERS = [1.01, 1.5, 2.0, 4.0, 10.0, 64.0, 500.0]
alphas = st.one_of(st.sampled_from([*ORDERS, math.inf]), st.floats(1.01, 200))
epsilons = st.floats(1e-3, 20)
deltas = st.floats(-30, -0.01).map(lambda power: 10**power)


def published(alpha, epsilon, delta):
    """Mironov 2017, Proposition 3; Canonne, Kamath, Steinke 2020, Proposition 12."""
    with mpmath.workdps(60):
        a, e, d = (mpmath.mpf(v) for v in (alpha, epsilon, delta))
        plain = e + mpmath.log(1 / d) / (a - 1)
        sharp = e + mpmath.log((a - 1) / a) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)
        return float(plain), float(sharp)


@fixed(300)
@given(alphas.filter(math.isfinite), epsilons, deltas)
def test_the_better_of_both_formulas(alpha, epsilon, delta):
    plain, sharp = published(alpha, epsilon, delta)
    expected = max(0.0, min(plain, sharp))
    found = renyi_to_epsilon(alpha, epsilon, delta)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)
    found = renyi_budget(alpha, epsilon, delta)
    assert found == pytest.approx(2 * epsilon - min(plain, sharp), rel=1e-9, abs=1e-9)


@fixed(300)
@given(alphas, epsilons, deltas)
def test_they_are_inverses_of_each_other(alpha, epsilon, delta):
    target = renyi_to_epsilon(alpha, epsilon, delta)
    assert target >= 0
    back = renyi_to_delta(alpha, epsilon, target)
    if target > 0:
        assert back == pytest.approx(delta, rel=1e-7, abs=1e-14)
        budget = renyi_budget(alpha, target, delta)
        assert budget == pytest.approx(epsilon, rel=1e-9, abs=1e-9)
    else:
        assert back <= delta * (1 + 1e-9)
    # A budget spends the target exactly.
    budget = renyi_budget(alpha, epsilon, delta)
    if budget > 0:
        again = renyi_to_epsilon(alpha, budget, delta)
        assert again == pytest.approx(epsilon, rel=1e-9, abs=1e-9)


@fixed(200)
@given(alphas, epsilons, epsilons, deltas)
def test_monotone_and_in_range(alpha, epsilon, target, delta):
    assert 0 <= renyi_to_delta(alpha, epsilon, target) <= 1
    assert renyi_to_delta(alpha, epsilon + 1, target) >= renyi_to_delta(
        alpha, epsilon, target
    )
    more = renyi_to_epsilon(alpha, epsilon, delta / 2)
    assert more >= renyi_to_epsilon(alpha, epsilon, delta)
    assert renyi_to_delta(alpha, epsilon, target + 1) <= renyi_to_delta(
        alpha, epsilon, target
    )


def hockey_stick(p, q, target, edges):
    """Integrate max(0, p - e^target q), cut where the integrand has a kink."""
    factor = math.exp(target)
    return sum(
        quad(lambda y: max(0.0, p(y) - factor * q(y)), low, high, epsabs=1e-13)[0]
        for low, high in itertools.pairwise(edges)
    )


@pytest.mark.parametrize("target", [0.0, 0.2, 1.0, 2.5])
@pytest.mark.parametrize("shift", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_a_shifted_noise_is_within_every_converted_bound(law, shift, target):
    # delta of the pair by integration, its divergences from the textbook.
    noise = {"gaussian": norm, "laplace": laplace}[law]
    ratio = target / shift if law == "gaussian" else target / 2
    kink = shift / 2 - ratio
    edges = sorted({-40.0, min(max(kink, -40.0), 40.0), 0.0, shift, 40.0})
    delta = hockey_stick(noise.pdf, lambda y: noise.pdf(y - shift), target, edges)
    if law == "gaussian":
        known = norm.cdf(shift / 2 - target / shift)
        known -= math.exp(target) * norm.cdf(-shift / 2 - target / shift)
    else:
        known = max(0.0, -math.expm1((target - shift) / 2))
    assert delta == pytest.approx(known, abs=1e-10)
    for alpha in ORDERS:
        shifts = np.array([[shift]])
        epsilon = float(cost(law, shifts, alpha=alpha, scale=1.0)[0]) / (alpha - 1)
        assert renyi_to_delta(alpha, epsilon, target) >= delta - 1e-12
        if 0 < delta < 1:
            assert renyi_to_epsilon(alpha, epsilon, delta) >= target - 1e-9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_infinite_order_is_randomised_response(epsilon):
    # p = (e^eps, 1) / (1 + e^eps) against (1, e^eps) / (1 + e^eps).
    high, low = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    for target in (0.0, epsilon / 2, 0.9 * epsilon, epsilon, 2 * epsilon):
        delta = max(0.0, high - math.exp(target) * low)
        found = renyi_to_delta(math.inf, epsilon, target)
        assert found == pytest.approx(delta, abs=1e-14)
        if delta > 0:
            budget = renyi_budget(math.inf, target, delta)
            assert budget == pytest.approx(epsilon, rel=1e-12)
    assert renyi_to_epsilon(math.inf, epsilon, 0.0) == epsilon
    assert renyi_to_epsilon(math.inf, epsilon, 0.999) == 0
    # Nothing is left to hide.
    assert renyi_to_epsilon(math.inf, 1e-9, 0.75) == 0
    # Two coins that are one: every delta covers them, a half as any other.
    assert [renyi_to_epsilon(math.inf, 0.0, d) for d in (0.0, 0.3, 0.5, 0.7)] == [0] * 4


def test_limits():
    assert renyi_to_epsilon(2.0, 1.0, 0.0) == math.inf
    assert renyi_to_delta(2.0, 5.0, 0.0) == 1
    assert renyi_budget(1.01, 1.0, 1e-5) < 0
    for delta in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match=r"\[0, 1\)"):
            renyi_to_epsilon(2.0, 1.0, delta)
    for target in (-1.0, math.nan):
        with pytest.raises(ValueError, match="at least 0"):
            renyi_to_delta(2.0, 1.0, target)
