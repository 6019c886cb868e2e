"""Shift bounds: they bound, on the grid and compressed."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from core_support import conditional, cost, fixed, grid_index
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.core.coupling import ShiftBound, couple
from skpuffer.core.grid import round_to_grid

MANY = 2**17 + 500


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


@pytest.mark.parametrize("shift", [5e-324, 1e-300, 0.7])
def test_no_shift_is_too_small_to_be_moved_by_a_step(shift):
    # Even where its quotient by the step underflows to zero.
    bound = ShiftBound(np.array([[shift], [0.0]]), np.array([0.5, 0.5]))
    with np.errstate(under="ignore"):
        moved = bound.on_grid(np.array([4.0]))
    assert moved.shifts.tolist() == [[4.0], [0.0]]


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
        exact = math.fsum((mass * function(shifts[:, None])).tolist())
        found = math.fsum((fewer.mass * function(fewer.shifts)).tolist())
        assert found >= exact * (1 - 1e-14)
        # The error is of second order in the width of a cell.
        close = 1e-6 if mild and shape != "wide" else 1e-3
        assert found <= exact * (1 + close)
    # The same after rounding to a grid, for the data rounded to it.
    step = 2.0**-22
    on_grid = fewer.on_grid(np.array([step]))
    up = np.ceil(shifts / step) * step
    for function, _ in convex_costs(shifts.max()):
        exact = math.fsum((mass * function(up[:, None])).tolist())
        found = math.fsum((on_grid.mass * function(on_grid.shifts)).tolist())
        assert found >= exact * (1 - 1e-14)


def mean_of(shifts, mass):
    """Exactly, of floats."""
    pairs = zip(map(Fraction, mass), map(Fraction, shifts), strict=True)
    return sum(m * z for m, z in pairs)


def test_round_off_never_lowers_the_mean():
    rng = np.random.default_rng(12)
    for _ in range(40):
        shifts, mass = rng.exponential(size=(20, 1)), rng.dirichlet(np.ones(20))
        fewer = ShiftBound(shifts, mass).compressed(8)
        assert fewer.grouped
        before = mean_of(shifts.ravel().tolist(), mass.tolist())
        after = mean_of(fewer.shifts.ravel().tolist(), fewer.mass.tolist())
        assert before <= after <= before * (1 + Fraction(1, 10**8))


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


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 2.0**-1010])
def test_cells_too_narrow_to_divide_by_are_not_used(unit):
    shifts = np.arange(300)[:, np.newaxis] * unit
    bound = ShiftBound(shifts, np.full(300, 1 / 300))
    assert bound.compressed(64) is bound
