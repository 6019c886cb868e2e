"""The level and the power of the auditor, on distributions with known divergences.

A bound may exceed the truth in 5 % of audits. Each count of excesses is put to an
exact binomial test at one in a thousand, so that a sound auditor fails here once in a
thousand seeds at most, and seeds are fixed.
"""

import math

import numpy as np
import pytest
from audit_support import (
    alike,
    bounds,
    gaussian_mechanism,
    laplace,
    laplace_renyi,
    randomised_response,
    wider,
)
from scipy import stats

from skpuffer.audit import KernelRenyiAuditor


def approximate(n, rng):
    return randomised_response(n, rng, delta=0.05)


# At the boundary: the quantity that is bounded equals `truth`.
BOUNDARY = {
    "randomised response": (randomised_response, 300, 1.0, {}),
    "laplace": (laplace, 400, 1.0, {}),
    "approximate": (approximate, 300, 1.0, {"delta": 0.05}),
    "equal": (alike, 400, 0.0, {}),
    "renyi": (laplace, 400, laplace_renyi(2.0), {"alpha": 2.0}),
}


def assert_level(found, truth):
    over = int((found > truth + 1e-12).sum())
    chance = stats.binom.sf(over - 1, len(found), 0.05)
    assert chance > 1e-3, f"{over} of {len(found)} bounds exceed {truth}"


@pytest.mark.parametrize("setting", BOUNDARY)
def test_the_level_of_few_audits(setting):
    draw, n, truth, parameters = BOUNDARY[setting]
    found = bounds(draw, n=n, seeds=12, seed=1, scorers="linear", **parameters)
    assert_level(found, truth)


@pytest.mark.slow
@pytest.mark.parametrize("setting", BOUNDARY)
def test_the_level(setting):
    draw, n, truth, parameters = BOUNDARY[setting]
    found = bounds(draw, n=n, seeds=500, **parameters)
    assert_level(found, truth)


@pytest.mark.slow
def test_all_bounds_of_a_fit_hold_together():
    over, seeds = 0, 200
    deltas, orders = np.array([0.0, 0.05, 0.1, 0.2]), np.array([1.5, 2.0, 5.0])
    # The ε of Laplace noise at δ, by the best event {z > t}.
    truth = np.maximum(0, 1 + 2 * np.log1p(-deltas))
    renyi = np.array([laplace_renyi(a) for a in orders])
    for k in range(seeds):
        x, y = laplace(400, np.random.default_rng([7, k]))
        audit = KernelRenyiAuditor(delta=0.05, scorers="linear").fit(x, y)
        above = (audit.epsilon_lower(delta=deltas) > truth + 1e-12).any()
        above |= (audit.epsilon_lower(alpha=orders) > renyi).any()
        over += above
    assert stats.binom.sf(over - 1, seeds, 0.05) > 1e-3


@pytest.mark.slow
def test_the_level_of_bets():
    # 10,000 rows, where means are bounded too.
    found = bounds(laplace, n=10_000, seeds=60, alpha=2.0, scorers="linear")
    assert_level(found, laplace_renyi(2.0))
    assert found.mean() > 0.4


# --- power: the mean of five audits ---

POWER = {
    (10_000, 1, 0.005): 0.60,
    (10_000, 2, 0.2): 1.65,
    (10_000, 3, 0.03): 2.25,
    (100_000, 1, 0.005): 0.85,
    (100_000, 2, 0.2): 1.9,
    (100_000, 3, 0.03): 2.75,
}


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "least"), POWER.items())
def test_power_against_the_gaussian_mechanism(setting, least):
    n, epsilon, delta = setting

    def draw(n, rng):
        return gaussian_mechanism(n, rng, epsilon=epsilon, delta=delta)

    found = bounds(draw, n=n, seeds=5, delta=delta)
    assert least <= found.mean() < epsilon


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "least", "most"), [(1.1, 11, 20), (1.05, 1, 9)])
def test_power_against_a_scale_a_little_too_small(truth, least, most):
    refuted = 0
    for k in range(20):
        rng = np.random.default_rng([11, k])
        x, y = rng.laplace([[[0.0]], [[1.0]]], 1 / truth, (2, 10_000, 1))
        refuted += KernelRenyiAuditor(epsilon=1).fit(x, y).verdict_ == "refuted"
    assert least <= refuted <= most


def test_power_against_laplace_noise():
    assert 0.6 <= bounds(laplace, n=1000, seeds=5).mean() < 1


@pytest.mark.slow
def test_power_against_a_leak_in_the_variance():
    assert bounds(wider, n=10_000, seeds=5, delta=0.05).mean() >= 3


def test_the_analytic_gaussian_mechanism_is_at_the_boundary():
    rng = np.random.default_rng(0)
    x, y = gaussian_mechanism(200_000, rng, epsilon=1, delta=0.005)
    towards = (y - x).mean(axis=0)
    scores = [rows @ towards / np.linalg.norm(towards) for rows in (x, y)]
    best = max(
        (scores[1] > t).mean() - math.e * (scores[0] > t).mean()
        for t in np.quantile(scores[1], np.linspace(0.5, 0.999, 100))
    )
    assert best == pytest.approx(0.005, abs=0.002)
