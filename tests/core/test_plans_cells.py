"""Cells of very many rows: what is in them, and how a plan of cells is spread out."""

import numpy as np
import pytest
from plans_support import assert_coupling, dense, pair_masses
from scipy.optimize import linprog

from skpuffer.core.plans import (
    Plan,
    _cells,
    cells_of,
    coarse_plan,
    emd_plan,
    in_place_plan,
    monotone_plan,
)

# --- the cells ---


@pytest.mark.parametrize(("bins", "most"), [(64, 64), (48, 63), (12, 12), (2, 2)])
def test_a_column_of_numbers_is_cut_in_equal_numbers_of_rows(bins, most, monkeypatch):
    monkeypatch.setattr(_cells, "CELLS", most)
    rng = np.random.default_rng(bins)
    rows = rng.permutation(4 * 960)[:, None] ** 2.0
    first, second = rows[:1000], rows[1000:]
    cells = np.concatenate(cells_of(first, second, np.array([True])))
    sizes = np.bincount(cells)
    assert len(sizes) == bins
    assert sizes.max() - sizes.min() <= 1
    # In order of the numbers, and no matter from which side.
    assert (np.diff(cells[np.argsort(rows[:, 0])]) >= 0).all()


def test_cells_of_several_columns_are_all_that_occur():
    rng = np.random.default_rng(1)
    rows = np.column_stack(
        [rng.normal(size=3000), rng.integers(0, 3, 3000), rng.integers(0, 2, 3000)]
    )
    is_number = np.array([True, True, False])
    cells = np.concatenate(cells_of(rows[:1200], rows[1200:], is_number))
    # Three numbers are never cut: as many cells as bins for each, and each category.
    assert len(np.unique(cells)) == 3 * 2 * 64
    for cell in np.unique(cells):
        assert len(np.unique(rows[cells == cell, 1:], axis=0)) == 1
    assert len(np.unique(np.column_stack([cells, rows[:, 1:]]), axis=0)) == 3 * 2 * 64


def test_the_side_with_more_cells_decides(monkeypatch):
    monkeypatch.setattr(_cells, "CELLS", 30)
    wide, narrow = np.arange(640.0)[:, None], np.full((3, 1), 7.0)
    for sides in ((wide, narrow), (narrow, wide)):
        found = [len(np.unique(cells)) for cells in cells_of(*sides, np.array([True]))]
        # 24 of all are the most that are not above 30.
        assert sorted(found) == [1, 24]


def test_the_middle_of_a_cell_is_a_row_of_median_key():
    rng = np.random.default_rng(2)
    cells, keys = rng.choice([0, 2, 3, 9], 60), rng.normal(size=60)
    cells[0] = 7  # alone
    found, places = _cells.middles(cells, keys)
    assert found.tolist() == [0, 2, 3, 7, 9]
    for cell, place in zip(found.tolist(), places.tolist(), strict=True):
        assert cells[place] == cell
        inside = keys[cells == cell]
        below, above = (inside < keys[place]).sum(), (inside > keys[place]).sum()
        assert below - above in (0, 1)


# --- from cells to rows ---


def sums(index, mass, length):
    found = np.zeros(length, dtype=mass.dtype)
    np.add.at(found, index, mass)
    return found


@pytest.mark.parametrize("kind", [np.int64, object])
@pytest.mark.parametrize("seed", range(8))
def test_cells_in_a_row_are_spread_to_the_monotone_plan(seed, kind):
    # Cells of any sizes that follow each other: as if the rows were sorted by keys.
    rng = np.random.default_rng(seed)
    n, m = rng.integers(5, 40, 2)
    masses = [mass.astype(kind) for mass in pair_masses(rng, n, m, 20)]
    sides = []
    for mass in masses:
        keys = rng.exponential(size=len(mass))
        place = np.searchsorted(np.quantile(keys, [0.1, 0.6, 0.7]), keys)
        place = np.unique(place, return_inverse=True)[1]
        sides.append((keys, place, sums(place, mass, place.max() + 1)))
    (keys_a, cells_a, whole_a), (keys_b, cells_b, whole_b) = sides
    flows = monotone_plan(whole_a, whole_b)
    shuffled = rng.permutation(len(flows.mass))
    flows = Plan(*(field[shuffled] for field in flows))
    plan = _cells.spread_plan(flows, cells_a, cells_b, keys_a, keys_b, *masses)
    order_a, order_b = np.argsort(keys_a), np.argsort(keys_b)
    expected = monotone_plan(masses[0][order_a], masses[1][order_b])
    expected = Plan(order_a[expected.rows], order_b[expected.columns], expected.mass)
    assert plan.mass.dtype == kind
    assert (dense(plan, n, m) == dense(expected, n, m)).all()


@pytest.mark.parametrize("seed", range(8))
def test_rows_follow_their_keys_and_so_do_the_cells_they_go_to(seed):
    rng = np.random.default_rng(50 + seed)
    n, m, cells = 60, 50, 5
    masses = pair_masses(rng, n, m, 9)
    keys = rng.normal(size=n), rng.normal(size=m)
    # All cells occur, of very different sizes.
    places = [
        np.append(np.arange(cells), rng.integers(0, cells, size - cells) ** 2 // cells)
        for size in (n, m)
    ]
    wholes = [
        sums(place, mass, cells) for place, mass in zip(places, masses, strict=True)
    ]
    flows = emd_plan(*wholes, rng.random((cells, cells)))
    plan = _cells.spread_plan(flows, *places, *keys, *masses)
    assert_coupling(plan, *masses)
    moved = np.zeros((cells, cells), dtype=int)
    np.add.at(moved, (places[0][plan.rows], places[1][plan.columns]), plan.mass)
    assert (moved == dense(flows, cells, cells)).all()
    ends = plan.rows, plan.columns
    for one, other in ((0, 1), (1, 0)):
        mean = np.array([keys[other][places[other] == c].mean() for c in range(cells)])
        for cell in range(cells):
            inside = np.flatnonzero(places[one][ends[one]] == cell)
            key = keys[one][ends[one][inside]]
            target = mean[places[other][ends[other][inside]]]
            order = np.lexsort((target, key))
            assert (np.diff(target[order]) >= 0).all()
    # Within a flow the smallest go to the smallest.
    flow = places[0][plan.rows] * cells + places[1][plan.columns]
    for which in np.unique(flow):
        inside = flow == which
        left, right = keys[0][plan.rows[inside]], keys[1][plan.columns[inside]]
        assert (np.diff(right[np.lexsort((right, left))]) >= 0).all()


def optimum(cost, mass_a, mass_b):
    n, m = cost.shape
    margins = np.vstack(
        [np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))]
    )
    shares = np.concatenate([mass_a, mass_b]) / mass_a.sum()
    return linprog(cost.ravel(), A_eq=margins, b_eq=shares, method="highs").fun


@pytest.mark.parametrize("seed", range(4))
def test_a_cell_for_each_row_gives_the_optimum_of_a_linear_programme(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(4, 12, 2)
    cost, masses = rng.random((n, m)), pair_masses(rng, n, m, 9)
    least = optimum(cost, *masses)
    keys = rng.normal(size=n), rng.normal(size=m)

    def mean(cells):
        plan = coarse_plan(
            lambda rows, columns: cost[np.ix_(rows, columns)], cells, keys, *masses
        )
        assert_coupling(plan, *masses)
        return plan.mass @ cost[plan.rows, plan.columns] / plan.mass.sum()

    # Cells need not be numbered from zero.
    assert mean((3 * rng.permutation(n), 7 + rng.permutation(m))) == pytest.approx(
        least, rel=1e-9
    )
    for few in (1, 2, 3):
        cells = rng.integers(0, few, n), rng.integers(0, few, m)
        assert mean(cells) >= least * (1 - 1e-9)


# --- what both sides have in common ---


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("kind", [np.int64, object])
@pytest.mark.parametrize("seed", range(6))
def test_as_much_as_can_stay_stays(seed, kind, columns):
    rng = np.random.default_rng(seed)
    a, b = (
        rng.permutation(np.unique(rng.integers(0, 3, (n, columns)), axis=0)) - 1.0
        for n in (9, 14)
    )
    masses = [mass.astype(kind) for mass in pair_masses(rng, len(a), len(b), 6)]
    asked = []

    def rest(goes, comes, left, right):
        asked.append((goes, comes))
        assert (left > 0).all()
        assert (right > 0).all()
        return monotone_plan(left, right)

    plan = in_place_plan(a, b, *masses, rest)
    assert_coupling(plan, *masses)
    same = (a[:, None] == b[None]).all(axis=2)
    stays = np.where(same, np.minimum.outer(*masses), 0)
    table = dense(plan, len(a), len(b))
    assert (table[same] == stays[same]).all()
    # Nothing is asked for where nothing is left, and once where something is.
    assert len(asked) == (stays.sum() < masses[0].sum())
    for goes, comes in asked:
        assert goes.tolist() == np.flatnonzero(stays.sum(axis=1) < masses[0]).tolist()
        assert comes.tolist() == np.flatnonzero(stays.sum(axis=0) < masses[1]).tolist()
