"""Couplings and shift bounds: right marginals, and bounds that bound."""

import itertools
import math
from fractions import Fraction

import numpy as np
import oracles
import pytest
from core_support import conditional, cost, fixed, grid_index
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.core.coupling import Coupling, ShiftBound, couple
from skpuffer.core.grid import round_to_grid
from skpuffer.core.plans import Plan, TransportPlanError, monotone_plan
from skpuffer.core.prior import common_masses

MANY = 2**17 + 500


def coupled(drawn, weights=None):
    first = conditional(drawn.atoms_a, drawn.mass_a)
    second = conditional(drawn.atoms_b, drawn.mass_b)
    columns = drawn.atoms_a.shape[1]
    return couple(first, second, np.ones(columns) if weights is None else weights)


# --- the monotone coupling ---


def quantile_shifts(first, second):
    """(mass, |Q(u) - Q'(u)|) by walking both quantile functions in fractions."""
    sides = [
        list(
            zip(
                item.support[:, 0].tolist(),
                itertools.accumulate(
                    Fraction(m, item.total) for m in item.mass.tolist()
                ),
                strict=True,
            )
        )
        for item in (first, second)
    ]
    level, found = Fraction(0), []
    for end in sorted({end for side in sides for _, end in side}):
        left, right = (next(x for x, top in side if top >= end) for side in sides)
        found.append((end - level, abs(Fraction(left) - Fraction(right))))
        level = end
    return found


@fixed(150)
@given(oracles.conditionals(max_atoms=8))
def test_one_column_is_the_quantile_coupling(drawn):
    coupling = coupled(drawn)
    bound = coupling.shift_bound()
    expected = quantile_shifts(coupling.first, coupling.second)
    assert len(bound.mass) == len(expected)
    for (mass, shift), found, distance in zip(
        expected, bound.mass.tolist(), bound.shifts[:, 0].tolist(), strict=True
    ):
        assert found == float(mass)
        # Never below the true distance, and at most one rounding above it.
        assert Fraction(distance) >= shift
        assert distance <= float(shift) * (1 + 4.5e-16)
        assert (Fraction(float(shift)) != shift) or distance == float(shift)
    assert bound.is_zero == coupling.first.same_distribution(coupling.second)


def test_monotone_plan_of_known_masses():
    plan = monotone_plan(np.array([1, 3]), np.array([2, 1, 1]))
    assert plan.rows.tolist() == [0, 1, 1, 1]
    assert plan.columns.tolist() == [0, 0, 1, 2]
    assert plan.mass.tolist() == [1, 1, 1, 1]
    same = monotone_plan(np.array([2, 5]), np.array([2, 5]))
    assert same.rows.tolist() == same.columns.tolist() == [0, 1]
    assert same.mass.tolist() == [2, 5]
    big = np.array([2**70, 1, 2**70 - 1], dtype=object)
    plan = monotone_plan(big, big[::-1])
    assert plan.rows.tolist() == [0, 0, 1, 2] or plan.rows.tolist() == [0, 0, 0, 1, 2]
    assert sum(plan.mass.tolist()) == 2**71
    assert min(plan.mass.tolist()) > 0


def test_many_atoms_are_all_moved():
    # Equal masses: the sorted values are matched one by one, in blocks or not.
    first, second = np.random.default_rng(0).normal(size=(2, 70_000)) * [[1.0], [3.0]]
    bound = couple(conditional(first), conditional(second), np.ones(1)).shift_bound()
    expected = np.abs(np.sort(first) - np.sort(second))
    np.testing.assert_allclose(bound.shifts[:, 0], expected, rtol=1e-15)
    assert (bound.shifts[:, 0] >= expected).all()


def test_zero_one_against_one_two():
    # A linear programme for |x - x'| may also give d = (2, 0), which is much worse.
    bound = couple(conditional([0.0, 1.0]), conditional([1.0, 2.0]), np.ones(1))
    assert bound.shift_bound().shifts.tolist() == [[1.0], [1.0]]
    assert bound.shift_bound().mass.tolist() == [0.5, 0.5]


@fixed(60)
@given(oracles.conditionals(5), st.sampled_from(["laplace", "gaussian"]))
def test_the_monotone_coupling_is_the_cheapest_for_convex_costs(drawn, law):
    coupling = coupled(drawn)
    bound = coupling.shift_bound()
    first_mass, second_mass, total = common_masses(coupling.first, coupling.second)
    for alpha in (1.5, 4.0):
        scale = max(bound.shifts.max(), 1e-9)
        shifts = np.abs(coupling.first.support - coupling.second.support.T)
        table = np.exp(
            cost(law, shifts.reshape(-1, 1), alpha=alpha, scale=scale)
        ).reshape(shifts.shape)
        best = oracles._transport_optimum(
            table, first_mass.astype(float), second_mass.astype(float)
        )
        used = np.exp(cost(law, bound.shifts, alpha=alpha, scale=scale))
        assert bound.mass @ used == pytest.approx(best / total, rel=1e-8)


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_identical_groups_never_move(columns):
    # Counts multiplied, rows shuffled; and the same with fractional weights.
    rng = np.random.default_rng(columns)
    for _ in range(1000 // 3 + 1):
        size = int(rng.integers(1, 12))
        rows = np.round(rng.normal(size=(size, columns)), 2)
        counts = rng.integers(1, 40, size)
        factor = int(rng.integers(2, 9))
        left = np.repeat(rows, counts, axis=0)
        right = rng.permutation(np.repeat(rows, counts * factor, axis=0))
        item = couple(conditional(left), conditional(right), np.ones(columns))
        assert item.shift_bound().is_zero
        # Fractions of one power of two are multiples of each other exactly.
        weights = rng.random(size)
        order = rng.permutation(size)
        pair = conditional(rows, weights), conditional(rows[order], 8 * weights[order])
        assert couple(*pair, np.ones(columns)).shift_bound().is_zero


# --- several columns ---


@fixed(60)
@given(oracles.conditionals(6, columns=3), st.booleans())
def test_several_columns(drawn, blind):
    weights = np.array([1.0, 2.0, math.inf if blind else 0.5])
    coupling = coupled(drawn, weights)
    first, second = coupling.first, coupling.second
    for index, item in ((coupling.rows, first), (coupling.columns, second)):
        sums = np.bincount(index, coupling.mass, minlength=len(item.mass))
        np.testing.assert_allclose(sums, item.probabilities, rtol=1e-12)
    bound = coupling.shift_bound()
    moved = first.support[coupling.rows] - second.support[coupling.columns]
    np.testing.assert_allclose(bound.shifts, np.abs(moved), rtol=1e-15)
    if first.same_distribution(second):
        assert bound.is_zero


# --- the gate ---


FIRST, SECOND = conditional([0.0, 1.0]), conditional([0.0, 1.0, 1.0, 2.0])
GOOD = ([0, 0, 1, 1], [0, 1, 1, 2], [1, 1, 1, 1])
BROKEN = {
    "missing mass": ([0, 1, 1], [0, 1, 2], [1, 1, 1]),
    "too much mass": (*GOOD[:2], [1, 1, 1, 2]),
    "doubled": (*GOOD[:2], [2, 2, 2, 2]),
    "wrong first marginal": ([0, 1, 1, 1], *GOOD[1:]),
    "wrong second marginal": (GOOD[0], [0, 0, 1, 2], GOOD[2]),
    "negative": ([*GOOD[0], 0, 0], [*GOOD[1], 0, 0], [*GOOD[2], 1, -1]),
    "floats": (*GOOD[:2], [1.0, 1.0, 1.0, 1.0]),
    "nearly whole floats": (*GOOD[:2], [1.0, 1.0, 1.0, 1.0 - 1e-9]),
    "not a number": (*GOOD[:2], [1.0, 1.0, 1.0, math.nan]),
    "booleans": (*GOOD[:2], [True, True, True, True]),
    "an atom that is not there": (GOOD[0], [0, 1, 1, 3], GOOD[2]),
    "nothing": ([], [], []),
}


def plan_of(rows, columns, mass):
    kind = np.int64 if not mass else None
    return Plan(
        np.array(rows, dtype=np.intp),
        np.array(columns, dtype=np.intp),
        np.array(mass, dtype=kind),
    )


def test_the_gate_lets_a_coupling_through():
    coupling = Coupling.from_plan(FIRST, SECOND, plan_of(*GOOD))
    assert coupling.mass.tolist() == [0.25] * 4
    assert coupling.shift_bound().shifts.ravel().tolist() == [0, 1, 0, 1]
    split = Coupling.from_plan(
        FIRST, SECOND, plan_of([0, 0, 1, 1], [0, 1, 1, 2], [1, 1, 1, 1])
    )
    assert split.mass.sum() == 1


@pytest.mark.parametrize("name", BROKEN)
def test_the_gate_stops_everything_else(name):
    with pytest.raises(TransportPlanError):
        Coupling.from_plan(FIRST, SECOND, plan_of(*BROKEN[name]))


def test_the_gate_counts_beyond_float_precision():
    huge = 2**70
    first = conditional([0.0, 1.0], [2.0**70, 1.0])
    second = conditional([0.0, 1.0], [1.0, 2.0**70])
    mass = np.array([1, huge - 1, 1], dtype=object)
    rows, columns = np.array([0, 0, 1]), np.array([0, 1, 1])
    coupling = Coupling.from_plan(first, second, Plan(rows, columns, mass))
    assert coupling.mass.tolist() == pytest.approx([0, 1, 0], abs=1e-20)
    assert coupling.mass.dtype == np.float64
    for wrong in ([1, huge - 2, 1], [1, huge, 1], [1, huge - 1, 2]):
        broken = Plan(rows, columns, np.array(wrong, dtype=object))
        with pytest.raises(TransportPlanError):
            Coupling.from_plan(first, second, broken)
    # Between 2^53 and 2^63 floats would swallow the missing unit.
    first = conditional([0.0, 1.0], [2.0**60, 1025.0])
    mass = first.mass.copy()
    index = np.arange(2)
    assert Coupling.from_plan(first, first, Plan(index, index, mass)).mass.sum() == 1
    mass[0] -= 1
    with pytest.raises(TransportPlanError):
        Coupling.from_plan(first, first, Plan(index, index, mass))


# --- shift bounds ---


@fixed(150)
@given(
    st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=1, max_size=8),
    st.integers(-8, 3),
)
def test_the_grid_bounds_the_shifts_of_rounded_values(values, power):
    step = 2.0**power
    first, second = np.array(values).T
    bound = couple(conditional(first), conditional(second), np.ones(1)).shift_bound()
    on_grid = bound.on_grid(np.array([step]))
    coupling = couple(conditional(first), conditional(second), np.ones(1))
    left = coupling.first.support[coupling.rows, 0]
    right = coupling.second.support[coupling.columns, 0]
    for x, y, shift in zip(
        left.tolist(), right.tolist(), on_grid.shifts[:, 0].tolist(), strict=True
    ):
        exact = abs(grid_index(x, step) - grid_index(y, step)) * step
        assert exact <= shift
        assert shift <= abs(x - y) * (1 + 1e-15) + step
        index = round_to_grid(np.array([x, y]), step)
        assert abs(int(index[0]) - int(index[1])) * step == exact
    np.testing.assert_array_equal(on_grid.mass, bound.mass)
    assert (on_grid.shifts >= bound.shifts).all()


def test_the_grid_leaves_a_column_without_noise_alone():
    bound = ShiftBound(np.array([[0.3, 0.3], [0.0, 0.5]]), np.array([0.5, 0.5]))
    on_grid = bound.on_grid(np.array([0.0, 0.25]))
    assert on_grid.shifts.tolist() == [[0.3, 0.5], [0.0, 0.5]]
    assert not on_grid.grouped
    grouped = ShiftBound(bound.shifts, bound.mass, grouped=True)
    on_grid = grouped.on_grid(np.array([0.0, 0.25]))
    assert on_grid.grouped
    assert on_grid.shifts[0, 0] == 0.3
    assert 0.55 <= on_grid.shifts[0, 1] <= 0.5500001
    assert on_grid.shifts[1].tolist() == [0.0, np.nextafter(0.75, 1)]
    # What does not move is not moved by the rounding either.
    assert grouped.on_grid(np.array([0.5, 0.25])).shifts[1, 0] == 0


def convex_costs(top):
    """Convex functions, and whether they grow by less than e^30 up to `top`."""
    for law, alpha, factor in itertools.product(
        ("laplace", "gaussian"), (1.01, 2.0, 30.0), (0.2, 1.0, 30.0)
    ):
        options = {"alpha": alpha, "scale": factor * top}
        largest = cost(law, np.array([[top]]), **options)[0]
        if largest < 600:
            yield (
                lambda z, law=law, options=options: np.exp(cost(law, z, **options)),
                largest < 30,
            )
    yield lambda z: z[:, 0], True
    yield lambda z: z[:, 0] ** 2, True


SHAPES = {
    "uniform": lambda rng, n: rng.random(n),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.4, 0.0, rng.exponential(size=n)),
    "outlier": lambda rng, n: np.append(rng.random(n - 1), 40.0),
    "far": lambda rng, n: 1e6 + rng.random(n),
    "wide": lambda rng, n: np.exp(rng.normal(0, 3, n)),
    "integers": lambda rng, n: rng.integers(0, 90, n).astype(float),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_fewer_shifts_bound_very_many(shape):
    rng = np.random.default_rng(5)
    shifts = SHAPES[shape](rng, MANY)
    mass = rng.random(MANY)
    mass /= mass.sum()
    bound = ShiftBound(shifts[:, None], mass)
    fewer = bound.compressed()
    assert fewer.grouped
    assert len(fewer.mass) <= MANY / 2
    assert fewer.shifts.max() == shifts.max()
    assert (fewer.mass > 0).all()
    assert fewer.mass.sum() == pytest.approx(1, abs=1e-12)
    assert not fewer.is_zero
    zero = fewer.shifts[:, 0] == 0
    assert fewer.mass[zero].sum() == pytest.approx(mass[shifts == 0].sum(), rel=1e-12)
    for function, mild in convex_costs(shifts.max()):
        exact = math.fsum(mass * function(shifts[:, None]))
        found = math.fsum(fewer.mass * function(fewer.shifts))
        assert found >= exact * (1 - 1e-14)
        # The error is of second order in the width of a cell.
        close = 1e-6 if mild and shape != "wide" else 1e-3
        assert found <= exact * (1 + close)
    # The same after rounding to a grid, for the data rounded to it.
    step = 2.0**-22
    on_grid = fewer.on_grid(np.array([step]))
    up = np.ceil(shifts / step) * step
    for function, _ in convex_costs(shifts.max()):
        exact = math.fsum(mass * function(up[:, None]))
        found = math.fsum(on_grid.mass * function(on_grid.shifts))
        assert found >= exact * (1 - 1e-14)


def test_what_need_not_be_compressed_is_not():
    few = ShiftBound(np.arange(9.0)[:, None], np.full(9, 1 / 9))
    assert few.compressed() is few
    n = MANY
    two = ShiftBound(np.ones((n, 2)), np.full(n, 1 / n))
    assert two.compressed() is two
    # One distance only, or neighbouring floats: no cell has a width.
    for shifts in (
        np.full(n, 3.0),
        np.where(np.arange(n) % 2, 3.0, np.nextafter(3, 4)),
    ):
        one = ShiftBound(shifts[:, None], np.full(n, 1 / n))
        assert one.compressed() is one
