"""Transport plans: exact marginals always, optimal where small, errors never silent."""

import itertools
import math
import warnings

import numpy as np
import pytest
from plans_support import assert_coupling, dense, mean_square, pair_masses

from skpuffer.core.plans import (
    Plan,
    TransportPlanError,
    _exact,
    _search,
    emd_plan,
    projected_plan,
    quadratic_plan,
    refine_plan,
)

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
    if top <= 10**4:
        assert (np.diff(plan.rows * m + plan.columns) > 0).all()  # sorted, once


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
    one = np.array([0, 1])
    if bad != math.inf:
        with pytest.raises(ValueError, match="finite non-negative"):
            refine_plan(
                Plan(one, one, one + 1), np.eye(2), np.eye(2), lambda s: cost[1]
            )


@pytest.mark.parametrize(
    "mass",
    [[0, 2], [-1, 3], [1.0, 1.0], [], [[1, 1]], np.array([1, 1.5], dtype=object)],
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
        for bad in (flat, np.ones((2, 3)), np.ones((2, 0))):
            with pytest.raises(ValueError, match="points have shapes"):
                builder(points, bad, [1, 1], [1, 1])
        with pytest.raises(ValueError, match="2 and 2 points, but 1 and 2"):
            builder(points, points, [2], [1, 1])
        with pytest.raises(ValueError, match="must be finite"):
            builder(np.full((2, 2), math.inf), points, [1, 1], [1, 1])


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


# --- plans of small mean squared distance ---


@pytest.mark.parametrize("seed", range(20))
def test_quadratic_plan_beats_every_permutation(seed):
    rng = np.random.default_rng(seed)
    n, k = 1 + seed % 5, 1 + seed % 3
    a, b = rng.normal(size=(n, k)), rng.normal(size=(n, k))
    one = np.ones(n, dtype=np.int64)
    least = min(
        ((a - b[list(order)]) ** 2).sum(axis=1).mean()
        for order in itertools.permutations(range(n))
    )
    assert mean_square(quadratic_plan(a, b, one, one), a, b) == pytest.approx(least)
    refined = mean_square(projected_plan(a, b, one, one), a, b)
    assert refined == pytest.approx(least)  # one chunk holds all


@pytest.mark.parametrize("builder", BUILDERS)
def test_equal_column_marginals_still_give_shifts(builder):
    # two secrets whose columns look alike one by one: only the rows differ
    a, b = np.array([[0.0, 0], [1, 1]]), np.array([[0.0, 1], [1, 0]])
    plan = builder(a, b, [1, 1], [1, 1])
    assert_coupling(plan, [1, 1], [1, 1])
    assert (np.abs(a[plan.rows] - b[plan.columns]).sum(axis=1) == 1).all()


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("spread", [1.0, 1e-13])
def test_identical_sets_do_not_move(builder, spread):
    rng = np.random.default_rng(2)
    a = np.unique(rng.integers(0, 9, (700, 3)), axis=0) * spread
    a[0] = 1  # far away from the rest
    mass = rng.integers(1, 99, len(a))
    order = rng.permutation(len(a))
    plan = builder(a, a[order], mass, mass[order])
    assert_coupling(plan, mass, mass[order])
    assert (a[plan.rows] == a[order][plan.columns]).all()
    kept = refine_plan(plan, a, a[order], lambda s: (s**2).sum(axis=1))
    assert (a[kept.rows] == a[order][kept.columns]).all()


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("kind", [np.int64, object])
def test_neither_row_order_nor_offset_nor_a_second_run_matters(builder, kind):
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2**20, (400, 3)), rng.integers(0, 2**20, (350, 3))
    a, b = a / 2**10, b / 2**10  # exact after an offset of 1e9
    mass_a, mass_b = (v.astype(kind) for v in pair_masses(rng, 400, 350, 9))
    table = dense(builder(a, b, mass_a, mass_b), 400, 350)
    assert (dense(builder(a, b, mass_a, mass_b), 400, 350) == table).all()
    assert (dense(builder(a + 1e9, b + 1e9, mass_a, mass_b), 400, 350) == table).all()
    p, q = rng.permutation(400), rng.permutation(350)
    moved = dense(builder(a[p], b[q], mass_a[p], mass_b[q]), 400, 350)
    assert (moved == table[np.ix_(p, q)]).all()


def test_quadratic_plan_hands_over_beyond_its_limit(monkeypatch):
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(9, 2)), rng.normal(size=(7, 2))
    masses = pair_masses(rng, 9, 7, 5)
    exact = dense(quadratic_plan(a, b, *masses), 9, 7)
    called = []
    monkeypatch.setattr(
        _search, "projected_plan", lambda *args: called.append(args) or "plan"
    )
    monkeypatch.setattr(_search, "EXACT_LIMIT", 9)
    assert (dense(quadratic_plan(a, b, *masses), 9, 7) == exact).all()
    monkeypatch.setattr(_search, "EXACT_LIMIT", 8)
    assert quadratic_plan(a, b, *masses) == "plan"
    assert len(called) == 1


def test_projected_plan_is_near_the_optimum_and_better_than_one_axis(monkeypatch):
    rng = np.random.default_rng(9)
    a, b = rng.normal(size=(900, 3)), rng.normal(size=(900, 3)) * [1, 2, 1] + 0.3
    one = np.ones(900, dtype=np.int64)
    optimum = mean_square(quadratic_plan(a, b, one, one), a, b)
    refined = mean_square(projected_plan(a, b, one, one), a, b)
    monkeypatch.setattr(_search, "refine_plan", lambda plan, *_: plan)
    rough = mean_square(projected_plan(a, b, one, one), a, b)
    axis = mean_square(projected_plan(a, b, one, one, n_projections=0), a, b)
    assert optimum < refined < 1.05 * optimum < 1.5 * optimum < rough <= axis


def test_named_directions_are_tried():
    # only the difference of the means, or the principal axis, sorts these well
    line = np.arange(50)[:, None] * np.array([[1.0, -2.0]])
    one = np.ones(50, dtype=np.int64)
    plan = projected_plan(line, line[::-1] + [9, 7], one, one, n_projections=0)
    assert mean_square(plan, line, line[::-1]) == 0


@pytest.mark.parametrize("kind", [np.int64, object])
@pytest.mark.parametrize("solves", [1, 3, 20, 1500])
def test_refining_keeps_marginals_and_never_costs_more(kind, solves, monkeypatch):
    monkeypatch.setattr(_search, "_CHUNK", 40)
    monkeypatch.setattr(_search, "_MAX_SOLVES", solves)
    rng = np.random.default_rng(solves)
    a, b = rng.normal(size=(150, 2)), rng.normal(size=(170, 2)) + 1
    mass_a, mass_b = (v.astype(kind) for v in pair_masses(rng, 150, 170, 30))
    plan = emd_plan(mass_a, mass_b, rng.random((150, 170)))  # any coupling
    solved = []
    real = _search.emd_plan
    monkeypatch.setattr(
        _search, "emd_plan", lambda *args: solved.append(1) or real(*args)
    )

    def total(plan, cost):
        return plan.mass.astype(float) @ cost(a[plan.rows] - b[plan.columns])

    for cost in (lambda s: (s**2).sum(axis=1), lambda s: np.exp(np.abs(s[:, 0]))):
        solved.clear()
        better = refine_plan(plan, a, b, cost)
        assert_coupling(better, mass_a, mass_b)
        assert better.mass.dtype == mass_a.dtype
        assert total(better, cost) < total(plan, cost)
        assert len(solved) <= solves
        again = refine_plan(better, a, b, cost)
        assert total(again, cost) <= total(better, cost) * (1 + 1e-12)
        assert refine_plan(plan, a, b, cost, n_sweeps=0) is plan


def test_the_costliest_chunks_come_first(monkeypatch):
    monkeypatch.setattr(_search, "_CHUNK", 4)
    monkeypatch.setattr(_search, "_MAX_SOLVES", 1)
    x, index = np.arange(40.0)[:, None], np.arange(40)
    x[39] = 60
    columns = np.array([2, 1, 0, *range(3, 37), 39, 38, 37])  # the second is dearer
    plan = Plan(index, columns, np.ones(40, dtype=np.int64))
    plan = refine_plan(plan, x, x, lambda s: s[:, 0] ** 2, n_sweeps=1)
    assert sorted(plan.rows[plan.rows != plan.columns]) == [0, 2]
