"""Couplings: the right marginals, and a gate that stops everything else."""

import itertools
import math
from fractions import Fraction

import numpy as np
import oracles
import pytest
from core_support import conditional, cost, fixed
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.core.coupling import Coupling, couple, plan_in_place
from skpuffer.core.plans import Plan, TransportPlanError, monotone_plan
from skpuffer.core.prior import Conditional, common_masses


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
        shifts = np.abs(coupling.first.support - coupling.second.support.T)
        # Not so small that the cost of a far pair overflows.
        scale = max(bound.shifts.max(), shifts.max() / 5, 1e-9)
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


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weights", [(1.0, 3.0), (0.2, math.inf, 0.5), (2.0, 1, 0.1)])
def test_several_columns_move_by_the_least_squares(seed, weights):
    # Columns that count, in their units, against a linear programme.
    rng = np.random.default_rng(seed)
    weights = np.array(weights)
    sides = [
        conditional(rng.normal(size=(n, len(weights))), rng.integers(1, 9, n))
        for n in rng.integers(3, 9, 2)
    ]
    table = np.square(
        (sides[0].support[:, None] - sides[1].support[None]) / weights
    ).sum(axis=2)
    first_mass, second_mass, total = common_masses(*sides)
    least = oracles._transport_optimum(
        table, first_mass.astype(float), second_mass.astype(float)
    )
    coupling = couple(*sides, weights)
    found = coupling.mass @ table[coupling.rows, coupling.columns]
    assert found == pytest.approx(least / total, rel=1e-8)
    # Nothing is shared: in place it is the same problem.
    plan = plan_in_place(*sides, weights)
    assert plan.mass @ table[plan.rows, plan.columns] == pytest.approx(least, rel=1e-8)


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
    "a pair without mass": ([*GOOD[0], 0], [*GOOD[1], 0], [*GOOD[2], 0]),
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


def test_the_gate_counts_where_floats_begin_to_skip():
    # One unit from 2^53 + 1, which no float tells from 2^53.
    support, index = np.array([[0.0], [1.0]]), np.arange(2)
    mass = np.array([2**53 + 1, 1])
    item = Conditional(support, mass, 2, 2.0)
    passed = Coupling.from_plan(item, item, Plan(index, index, mass))
    assert passed.mass.tolist() == pytest.approx([1, 2.0**-53])
    with pytest.raises(TransportPlanError):
        Coupling.from_plan(item, item, Plan(index, index, mass - [1, 0]))


def test_no_mass_is_too_small_to_be_charged():
    # One part in 2^1100 is below all floats, and no less a shift.
    first = conditional([0.0, 5.0], [2.0**600, 2.0**-500])
    bound = couple(first, conditional([0.0]), np.ones(1)).shift_bound()
    assert bound.shifts.ravel().tolist() == [0.0, 5.0]
    assert bound.mass[1] == np.finfo(float).tiny
