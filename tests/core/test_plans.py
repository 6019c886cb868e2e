"""Transport plans: exact marginals always, optimal where small, errors never silent."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from plans_support import assert_coupling, dense, pair_masses

from skpuffer.core.plans import (
    Plan,
    TransportPlanError,
    _exact,
    emd_plan,
    projected_plan,
    quadratic_plan,
)
from skpuffer.core.plans._plan import check_coupling

BUILDERS = [quadratic_plan, projected_plan]


# --- the solver and its gate ---


@pytest.mark.parametrize("top", [1, 5, 10**4, 10**6, 3 * 10**7, 10**9, 10**12, 10**30])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 3), (40, 33)])
def test_marginals_are_exact_for_masses_of_any_size(top, shape):
    rng = np.random.default_rng(7)
    n, m = shape
    if top == 10**30:
        mass_a, mass_b = pair_masses(rng, n, m, 10**9)
        mass_a = mass_a.astype(object) * top + mass_a
        mass_b = mass_b.astype(object) * top + mass_b
    else:
        mass_a, mass_b = pair_masses(rng, n, m, top)
    plan = emd_plan(mass_a, mass_b, rng.random(shape))
    assert_coupling(plan, mass_a, mass_b)
    assert plan.mass.dtype == mass_a.dtype
    assert len(plan.mass) <= 3 * (n + m)
    assert (np.diff(plan.rows * m + plan.columns) > 0).all()  # sorted, once


def test_int64_masses_with_a_total_beyond_int64():
    mass = np.array([2**62, 2**62, 2**62 - 1])
    plan = emd_plan(mass, mass[::-1], np.ones((3, 3)))
    assert_coupling(plan, mass, mass[::-1])
    assert plan.mass.dtype == object


def test_int64_masses_with_the_largest_total_of_int64():
    mass = np.array([2**62, 2**62 - 4, 3])
    plan = emd_plan(mass, mass[::-1], 1 - np.eye(3))
    assert_coupling(plan, mass, mass[::-1])
    assert plan.mass.dtype == np.int64


@pytest.mark.parametrize("kind", [np.int64, object])
def test_what_is_no_coupling_is_stopped(kind):
    left, right = np.array([3, 2], dtype=kind), np.array([1, 4], dtype=kind)
    rows, columns = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])
    good = Plan(rows[:3], columns[:3], np.array([1, 2, 2], dtype=kind))
    assert check_coupling(good, left, right) is good
    for mass in ([1, 2, 2, 0], [2, 1, 3, -1], [1, 2, 1, 1], [1, 2, 2, 1]):
        bad = Plan(rows, columns, np.array(mass, dtype=kind))
        with pytest.raises(TransportPlanError, match="not a coupling"):
            check_coupling(bad, left, right)


def test_large_masses_keep_the_optimum():
    rng = np.random.default_rng(3)
    cost, small = rng.random((6, 7)), pair_masses(rng, 6, 7, 50)
    optimum = (dense(emd_plan(*small, cost), 6, 7) * cost).sum() / small[0].sum()
    for factor in (10**16 + 61, 10**40 + 121):
        mass_a, mass_b = (v.astype(object) * factor for v in small)
        mass_a[0], mass_b[0] = mass_a[0] + 1, mass_b[0] + 1  # no common divisor
        plan = emd_plan(mass_a, mass_b, cost)
        assert_coupling(plan, mass_a, mass_b)
        value = (dense(plan, 6, 7) * cost).sum() / mass_a.sum()
        assert value == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_large_masses_are_rounded_by_their_largest_remainders(seed):
    rng = np.random.default_rng(seed)
    mass = [int(v) ** 3 for v in rng.integers(1, 10**8, 40)]
    total, units = sum(mass), 2**50
    found = _exact._quantise(np.array(mass, dtype=object), total).tolist()
    assert sum(found) == units
    exact = [Fraction(v * units, total) for v in mass]
    up = [n - math.floor(v) for n, v in zip(found, exact, strict=True)]
    assert set(up) == {0, 1}
    left = [v - math.floor(v) for v in exact]
    raised = [v for v, n in zip(left, up, strict=True) if n]
    lowered = [v for v, n in zip(left, up, strict=True) if not n]
    assert min(raised) >= max(lowered)


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1e-12, 1.0, 1e12, 1e300])
def test_the_scale_of_the_cost_does_not_matter(scale):
    rng = np.random.default_rng(11)
    cost, (mass_a, mass_b) = rng.random((9, 8)), pair_masses(rng, 9, 8, 2 * 10**6)
    plan = emd_plan(mass_a, mass_b, cost * scale)
    assert_coupling(plan, mass_a, mass_b)
    table = dense(emd_plan(mass_a, mass_b, cost), 9, 8)
    assert scale == 0 or (dense(plan, 9, 8) == table).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1e-9])
def test_costs_that_the_solver_cannot_take_raise(bad):
    cost = np.ones((2, 2))
    cost[1, 0] = bad
    with pytest.raises(ValueError, match="NaN, infinite or negative"):
        emd_plan([1, 1], [1, 1], cost)


@pytest.mark.parametrize(
    "mass",
    [
        [0, 2],
        [-1, 3],
        [1.0, 1.0],
        [],
        np.array([], dtype=int),
        [[1, 1]],
        np.array([1, 1.5], dtype=object),
    ],
)
def test_masses_that_are_not_positive_integers_raise(mass):
    for first, second in ((mass, [1, 1]), ([1, 1], mass)):
        with pytest.raises(ValueError, match="positive integers"):
            emd_plan(first, second, np.ones((2, 2)))


def test_unequal_totals_and_wrong_shapes_raise():
    with pytest.raises(ValueError, match="mass_a sums to 2, mass_b to 3"):
        emd_plan([1, 1], [1, 2], np.ones((2, 2)))
    with pytest.raises(ValueError, match="cost has shape"):
        emd_plan([1, 1], [1, 1], np.ones((2, 3)))
    flat = np.ones(2)
    points = np.eye(2)
    for builder in BUILDERS:
        nothing = np.ones((2, 0))
        for bad in (flat, np.ones((2, 3)), nothing, points[..., np.newaxis]):
            for sides in ((points, bad), (bad, points)):
                with pytest.raises(ValueError, match="points have shapes"):
                    builder(*sides, [1, 1], [1, 1])
        with pytest.raises(ValueError, match="points have shapes"):
            builder(nothing, nothing, [1, 1], [1, 1])
        with pytest.raises(ValueError, match="2 and 2 points, but 1 and 2"):
            builder(points, points, [2], [1, 1])
        with pytest.raises(ValueError, match="2 and 2 points, but 2 and 1"):
            builder(points, points, [1, 1], [2])
        for far in (math.inf, -math.inf, math.nan):
            bad = np.array([[0.0, 1], [far, 0]])
            for sides in ((points, bad), (bad, points)):
                with pytest.raises(ValueError, match="must be finite"):
                    builder(*sides, [1, 1], [1, 1])


def spoil_solver(monkeypatch, spoil=lambda plan: plan, **warning):
    import ot

    def emd(*args, real=ot.emd, **kwargs):
        plan, log = real(*args, **kwargs)
        return spoil(plan), log | warning

    monkeypatch.setattr(ot, "emd", emd)


def changed(entries):
    def spoil(plan):
        for place, change in entries.items():
            plan[place] += change
        return plan

    return spoil


SPOILT = {
    "missing": changed({(0, 0): -1}),
    "missing row only": changed({(0, 0): -1, (1, 0): 1}),
    "missing column only": changed({(0, 0): -1, (0, 1): 1}),
    "extra": changed({(1, 1): 1}),
    "negative": changed({(0, 0): 1, (0, 1): -1, (1, 0): -1, (1, 1): 1}),
    "nan": changed({(1, 0): math.nan}),
    "infinite": changed({(1, 0): math.inf}),
    "fraction": changed({(0, 0): -0.01, (0, 1): 0.01, (1, 0): 0.01, (1, 1): -0.01}),
    "a little less": changed({(0, 0): -0.01}),
    "a little more": changed({(1, 0): 0.01}),
    "nothing": np.zeros_like,
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_plan_that_is_no_coupling_raises(name, monkeypatch):
    spoil_solver(monkeypatch, SPOILT[name])
    points = np.array([[0.0], [1.0]])
    calls = [
        lambda: emd_plan([3, 3], [3, 3], 1 - np.eye(2)),
        lambda: quadratic_plan(points, points + 3, [3, 3], [3, 3]),
    ]
    for call in calls:
        with pytest.raises(TransportPlanError):
            call()


def test_rounding_of_the_solver_is_repaired(monkeypatch):
    spoil_solver(monkeypatch, changed({(0, 0): 1e-9, (0, 1): -1e-9}))
    assert_coupling(emd_plan([3, 3], [3, 3], 1 - np.eye(2)), [3, 3], [3, 3])


def test_a_warning_of_the_solver_raises(monkeypatch):
    spoil_solver(monkeypatch, warning="numItermax reached")
    with pytest.raises(TransportPlanError, match="POT failed: numItermax reached"):
        emd_plan([1, 1], [1, 1], np.ones((2, 2)))


@pytest.mark.parametrize("action", ["error", "ignore"])
def test_the_iteration_limit_raises(monkeypatch, action, recwarn):
    warnings.simplefilter(action)  # undone by recwarn
    monkeypatch.setattr(_exact, "_MAX_ITERATIONS", 2)
    rng = np.random.default_rng(0)
    with pytest.raises(TransportPlanError, match="POT failed: numItermax"):
        emd_plan(*pair_masses(rng, 30, 30, 9), rng.random((30, 30)))
