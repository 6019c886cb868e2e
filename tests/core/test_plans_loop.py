"""Plans for exponential costs against the optimum of a linear programme."""

import itertools
import math

import numpy as np
import pytest
from plans_support import assert_coupling, dense, mean_square, pair_masses
from scipy.optimize import brentq, linprog
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from skpuffer.core.plans import (
    Plan,
    Search,
    _exact,
    emd_plan,
    exponential_cost,
    exponential_plan,
    projected_plan,
    quadratic_plan,
    useful_ceiling,
)

# --- the loop that calibration runs, and its linear programme ---


def log_cost(shifts, law, alpha, tau):
    z = np.abs(shifts) / tau
    if law == "gaussian":
        return ((alpha - 1) * alpha * z**2 / 2).sum(axis=-1)
    weights = math.log(alpha / (2 * alpha - 1)), math.log((alpha - 1) / (2 * alpha - 1))
    return np.logaddexp(weights[0] + (alpha - 1) * z, weights[1] - alpha * z).sum(-1)


def root(plan, shifts, law, alpha, epsilon):
    """Least tau at which this plan meets the budget, in logs of exp - 1."""
    used, budget = shifts[plan.rows, plan.columns], (alpha - 1) * epsilon
    moved = used.any(axis=1)
    share = np.log(plan.mass[moved].astype(float) / float(plan.mass.sum()))

    def excess(log_tau):
        c = log_cost(used[moved], law, alpha, math.exp(log_tau))
        log_mean = logsumexp(c + np.log(-np.expm1(-c)) + share)
        return log_mean - budget - math.log(-math.expm1(-budget))

    return math.exp(brentq(excess, -8, 12, xtol=1e-13))


def descend(shifts, start, step, law, alpha, epsilon):
    plan, tau = start, root(start, shifts, law, alpha, epsilon)
    while True:
        plan = step(tau, plan)
        new = root(plan, shifts, law, alpha, epsilon)
        if new > tau * (1 - 1e-4):
            return min(tau, new)
        tau = new


def loop(a, b, mass_a, mass_b, law, alpha, epsilon):
    shifts = a[:, None] - b[None]
    ceiling = useful_ceiling(mass_a, mass_b, (alpha - 1) * epsilon)

    def step(tau, _):
        cost = log_cost(shifts, law, alpha, tau)
        return exponential_plan(cost, mass_a, mass_b, ceiling=ceiling)

    start = quadratic_plan(a, b, mass_a, mass_b)
    return descend(shifts, start, step, law, alpha, epsilon)


def lp_tau(a, b, mass_a, mass_b, law, alpha, epsilon, high):
    """Bisection over tau, with the least mean cost from HiGHS at each."""
    n, m, budget = len(a), len(b), (alpha - 1) * epsilon
    marginals = np.vstack(
        [np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))]
    )
    total = int(mass_a.sum())
    shares = np.array([int(v) / total for v in [*mass_a, *mass_b]])
    low = high / 8
    for _ in range(18):
        tau = math.sqrt(low * high)
        c = log_cost(a[:, None] - b[None], law, alpha, tau).ravel()
        kept = c <= budget + math.log(total) + 0.1  # no plan in budget uses others
        with np.errstate(over="ignore", invalid="ignore"):
            excess = np.exp(c - budget) * np.expm1(-c) / math.expm1(-budget)
        found = linprog(
            np.where(kept, excess, 0.0),
            A_eq=marginals,
            b_eq=shares,
            bounds=[(0, float(free)) for free in kept],
            method="highs",
            options={
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
            },
        )
        if found.status == 0 and found.fun <= 1:
            high = tau
        else:
            low = tau
    return low, high


GRID = itertools.product(
    ["laplace", "gaussian"], [1.01, 2.0, 8.0, 50.0], [0.01, 0.5, 5.0], [3, 1000]
)


@pytest.mark.parametrize(
    ("seed", "law", "alpha", "epsilon", "top"),
    [
        # Half of them, with either `top` in turn; the others are slow.
        pytest.param(seed, *case, marks=[] if seed % 4 in (0, 3) else pytest.mark.slow)
        for seed, case in enumerate(GRID)
    ],
)
def test_loop_reaches_the_optimum_of_the_linear_programme(
    seed, law, alpha, epsilon, top
):
    rng = np.random.default_rng(seed)
    n, m, k = rng.integers(2, 9), rng.integers(2, 9), rng.integers(2, 4)
    a, b = rng.normal(size=(n, k)), rng.normal(size=(m, k))
    if seed % 3 == 1:
        a[0] *= 10  # an outlier
    if seed % 3 == 2:
        a, b = np.rint(2 * a), np.rint(2 * b)  # common atoms
    a, b = np.unique(a, axis=0), np.unique(b, axis=0)
    mass_a, mass_b = pair_masses(rng, len(a), len(b), top)
    tau = loop(a, b, mass_a, mass_b, law, alpha, epsilon)
    low, high = lp_tau(a, b, mass_a, mass_b, law, alpha, epsilon, tau * 1.5)
    assert low * (1 - 1e-6) <= tau <= high * (1 + 1e-3)


def test_exponential_plan_gains_on_the_quadratic_plan():
    rng = np.random.default_rng(5)
    gains = []
    for _ in range(10):
        a, b = rng.normal(size=(30, 2)) ** 3, rng.normal(size=(30, 2)) ** 3
        mass_a, mass_b = pair_masses(rng, 30, 30, 50)
        first = quadratic_plan(a, b, mass_a, mass_b)
        tau = root(first, a[:, None] - b[None], "laplace", 50.0, 5.0)
        gains.append(tau / loop(a, b, mass_a, mass_b, "laplace", 50.0, 5.0))
    assert min(gains) >= 1
    assert max(gains) > 1.05


def test_clipping_in_steps_finds_the_plan_of_an_immense_range(monkeypatch):
    # two units in 2**50 go straight at 2 e**25 or crossed at e**60 + e**2; clipped
    # near e**18 the crossing looks half as dear
    mass_a = mass_b = np.array([2**50 - 2, 1, 1])
    cost = np.array([[1.0, 60, 60], [60, 25, 60], [60, 2, 25]])
    ceiling = useful_ceiling(mass_a, mass_b, 2.0)
    plan = exponential_plan(cost, mass_a, mass_b, ceiling=ceiling)
    assert (dense(plan, 3, 3) == np.diag(mass_a)).all()
    solved = []
    real = _exact.emd_plan
    monkeypatch.setattr(
        _exact, "emd_plan", lambda *args: solved.append(real(*args)) or solved[-1]
    )
    exponential_plan(cost, mass_a, mass_b, ceiling=ceiling)
    assert len(solved) == 3
    solved.clear()
    huge = np.array([2**60 - 3, 1, 2])
    plan = exponential_plan(cost + 60, huge, huge, ceiling=10.0)  # out of budget
    assert_coupling(plan, huge, huge)
    assert len(solved) == 4
    solved.clear()
    exponential_plan(cost / 10, mass_a, mass_b, ceiling=ceiling)
    assert len(solved) == 1


def test_a_later_step_is_kept_only_if_better(monkeypatch):
    one, index = np.array([2**50 - 1, 1]), np.arange(2)
    answers = [Plan(index, index, one), Plan(index, index[::-1], one)]
    for order in (answers, answers[::-1]):
        left = [*order, answers[1], answers[1]]
        monkeypatch.setattr(_exact, "emd_plan", lambda *_, left=left: left.pop(0))
        cost = np.array([[30.0, 32], [32, 30]])
        plan = exponential_plan(cost, one, one, ceiling=35.0)
        assert plan.columns.tolist() == [0, 1]


def test_ceiling_and_exponential_cost():
    mass_a, mass_b = np.array([4, 8]), np.array([6, 6])  # six units
    for budget in (1e-6, 0.5, 5.0, 300.0):
        ceiling = useful_ceiling(mass_a, mass_b, budget)
        # a pair of one unit at the ceiling spends the budget
        share = exponential_cost(np.array([budget]), ceiling)
        np.testing.assert_allclose(share, 1 / 6, rtol=1e-9)
    assert 5000 < useful_ceiling(mass_a, mass_b, 5000.0) < 5002
    cost = exponential_cost(np.array([-1.0, 0, 1e-9, 2, 9, np.inf]), 2.0)
    expected = [0, 0, math.expm1(1e-9) / math.expm1(2), 1, 1, 1]
    np.testing.assert_allclose(cost, expected, rtol=1e-12)
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="ceiling must be"):
            exponential_cost(cost, bad)
        with pytest.raises(ValueError, match="log_budget must be"):
            useful_ceiling(mass_a, mass_b, bad)
        with pytest.raises(ValueError, match="must be positive and finite"):
            exponential_plan(np.ones((2, 2)), mass_a, mass_b, ceiling=bad)
    with pytest.raises(ValueError, match="NaN"):
        exponential_plan(np.full((2, 2), math.nan), mass_a, mass_b, ceiling=1.0)


@pytest.mark.slow
def test_five_thousand_points_in_five_columns(monkeypatch):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(5000, 5))
    b = rng.normal(size=(5000, 5)) + np.eye(5)[0] / 2
    one = np.ones(5000, dtype=np.int64)
    plan = projected_plan(a, b, one, one)
    optimum = mean_square(emd_plan(one, one, cdist(a, b, "sqeuclidean")), a, b)
    with monkeypatch.context() as patch:
        patch.setattr(Search, "pass_over", lambda _, plan, __: plan)
        rough = projected_plan(a, b, one, one)
    assert mean_square(plan, a, b) < mean_square(rough, a, b) / 3
    assert optimum <= mean_square(plan, a, b) < 1.2 * optimum
