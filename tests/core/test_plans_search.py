"""Plans of small mean squared distance: optimal, repeatable, and where too large."""

import itertools

import numpy as np
import pytest
from plans_support import assert_coupling, dense, mean_square, pair_masses

from skpuffer.core.plans import (
    Search,
    _descend,
    _search,
    emd_plan,
    projected_plan,
    quadratic_plan,
)

BUILDERS = [quadratic_plan, projected_plan]


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
def test_identical_sets_do_not_move(builder, spread, monkeypatch):
    for module in (_search, _descend):
        monkeypatch.setattr(module, "emd_plan", None)  # whatever the solver's precision
    rng = np.random.default_rng(2)
    a = np.unique(rng.integers(0, 9, (700, 3)), axis=0) * spread
    a[0] = 100  # far away from the rest
    mass = rng.integers(1, 99, len(a))
    order = rng.permutation(len(a))
    plan = builder(a, a[order], mass, mass[order])
    assert_coupling(plan, mass, mass[order])
    assert (a[plan.rows] == a[order][plan.columns]).all()


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("kind", [np.int64, object])
def test_neither_row_order_nor_offset_nor_a_second_run_matters(builder, kind):
    rng = np.random.default_rng(4)
    a, b = (  # a grid: many ties, and exact after a large offset
        rng.permutation(np.unique(rng.integers(0, 9, (400, 3)), axis=0)) / 2**10
        for _ in range(2)
    )
    n, m = len(a), len(b)
    mass_a, mass_b = (v.astype(kind) for v in pair_masses(rng, n, m, 9))
    table = dense(builder(a, b, mass_a, mass_b), n, m)
    assert (dense(builder(a, b, mass_a, mass_b), n, m) == table).all()
    for far in (1e9, 2.0**42):
        moved = builder(a + far, b + far, mass_a, mass_b)
        assert (dense(moved, n, m) == table).all()
    p, q = rng.permutation(n), rng.permutation(m)
    moved = builder(a[p], b[q], mass_a[p], mass_b[q])
    assert (dense(moved, n, m) == table[np.ix_(p, q)]).all()


def test_quadratic_plan_hands_over_beyond_its_limit(monkeypatch):
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(9, 2)), rng.normal(size=(7, 2))
    masses = pair_masses(rng, 9, 7, 5)
    exact = dense(quadratic_plan(a, b, *masses), 9, 7)
    called = []
    monkeypatch.setattr(
        _search, "projected_plan", lambda *args, **_: called.append(args) or "plan"
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
    monkeypatch.setattr(Search, "pass_over", lambda _, plan, __: plan)
    rough = mean_square(projected_plan(a, b, one, one), a, b)
    axis = mean_square(projected_plan(a, b, one, one, n_projections=0), a, b)
    assert optimum < refined < 1.05 * optimum < 1.5 * optimum < rough <= axis


def test_named_directions_are_tried(monkeypatch):
    rng = np.random.default_rng(1)
    along, across = np.array([1.0, -1.0]), np.array([1.0, 1.0])
    t, one = np.linspace(0, 9, 200)[:, None], np.ones(200, dtype=np.int64)
    a, b = (t * along + rng.normal(size=(200, 1)) * across / 3 for _ in range(2))
    monkeypatch.setattr(Search, "pass_over", lambda _, plan, __: plan)
    named = mean_square(projected_plan(a, b, one, one, n_projections=0), a, b)
    share = np.full(200, 1 / 200)
    directions = _search._directions(a, b + across, share, share, 0)
    assert np.allclose(directions[2], across, atol=0.2)  # the difference of means
    monkeypatch.setattr(_search, "_directions", lambda *_: np.eye(2))
    assert named < 0.75 * mean_square(projected_plan(a, b, one, one), a, b)


@pytest.mark.parametrize("seed", range(5))
def test_no_direction_spreads_the_points_more_than_the_principal_one(seed):
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    offsets = rng.normal(size=(2, 3))
    a, b = (
        rng.normal(size=(n, 3)) * [1.5, 1, 0.5] @ turned + offset
        for n, offset in zip((30, 50), offsets, strict=True)
    )
    a *= seed % 3  # with all of one side in one place, too
    share_a, share_b = (rng.dirichlet(np.ones(len(x))) for x in (a, b))
    found = _search._directions(a, b, share_a, share_b, 0)
    assert len(found) == 5
    np.testing.assert_array_equal(found[:3], np.eye(3))
    points, share = np.vstack([a, b]), np.concatenate([share_a, share_b]) / 2
    around = np.linalg.norm(found[4]) * np.linalg.qr(rng.normal(size=(500, 3, 3)))[0]

    def spread(direction):
        along = points @ direction
        return share @ np.square(along - share @ along)

    others = [spread(direction) for direction in around[..., 0]]
    assert max(others) <= spread(found[4]) * (1 + 1e-12)
    assert spread(found[4]) <= 1.03 * max(others)


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("scale", [1e-200, 2.0**-30, 1e200, 8e307])
@pytest.mark.parametrize("narrow", [0.3, 1e-170])
def test_the_scale_of_the_points_does_not_matter(builder, scale, narrow):
    # Of either side the farthest point decides, and one side may lie in the middle.
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(12, 2)), narrow * rng.normal(size=(9, 2))
    a -= (a.min(axis=0) + a.max(axis=0)) / 2
    a[np.argmin(np.abs(a).max(axis=1))] = 0
    masses = pair_masses(rng, 12, 9, 30)
    least = emd_plan(*masses, ((a[:, None] - b[None]) ** 2).sum(axis=2))
    least = mean_square(least, a, b)
    for x, y, mass_x, mass_y in ((a, b, *masses), (b, a, *masses[::-1])):
        plan = builder(x * scale, y * scale, mass_x, mass_y)
        assert_coupling(plan, mass_x, mass_y)
        assert mean_square(plan, x, y) == pytest.approx(least, rel=1e-9)


def test_passes_lower_the_cost_and_end(monkeypatch):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(600, 3)), rng.normal(size=(600, 3)) + 0.2
    one = np.ones(600, dtype=np.int64)
    paid = []
    for passes in (0, 1, 10):
        monkeypatch.setattr(_search, "_PASSES", passes)
        paid.append(mean_square(projected_plan(a, b, one, one), a, b))
    assert paid[0] > paid[1] > paid[2]
    # The first pass that gains little is the last.
    made = []
    monkeypatch.setattr(Search, "pass_over", lambda _, plan, __: made.append(1) or plan)
    projected_plan(a, b, one, one)
    assert len(made) == 1
