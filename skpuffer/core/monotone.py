"""The shifts of very many distinct values against very many, without their pairs.

Two groups of distinct values, each of equal mass, are matched in their order, as
`plans.monotone_plan` does; but the pairs are made a block at a time, checked, and
summarised, so that nothing is stored that grows with them. Imports numpy, and what
shifts are.

With n values of mass A = m / g and m >= n of mass B = n / g, g = gcd(n, m), value j of
the many covers the levels from j B to (j + 1) B. It begins in row floor(j B / A) of the
few and, as B <= A, ends there or in the next. All of these are whole numbers below 2^53,
and so the quotient of two floats has the right floor: a quotient that is not whole is
1 / A at least from the next whole number, and its rounding error is below n 2^-53.

Some neighbours are summarised at a time: their mass at the smallest and at the largest
of their shifts, so that the mean stays; by Jensen's inequality no expectation of a
convex function falls. Where the two are too far apart the pairs are looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from skpuffer.core.plans import TransportPlanError
from skpuffer.core.prior import Conditional, FloatArray
from skpuffer.core.shifts import CELLS, Cells, ShiftBound, remembered

Positions = slice | NDArray[np.intp]

# Values that are looked at together: a few such arrays fit in a core's cache.
_BLOCK = 2**14
_LONGEST_RUN = 64
_EXACT = 2**53
# The next float or the one after, of any that is not below the normal ones; there,
# differences are exact, and stay what they are.
_UP = 1 + 2.0**-52


class Part(NamedTuple):
    """Some values of the many, and what of the few they are matched with.

    Attributes
    ----------
    columns : slice or ndarray of intp, p values
        Positions among the many.
    rows : slice or ndarray of intp, p values
        Position among the few of the first with which each is matched.
    mass : ndarray of shape (p,), or None
        How much, a whole number; what is left of it goes to the next row. None where
        all goes to the first.
    """

    columns: Positions
    rows: Positions
    mass: FloatArray | None


class MonotoneShifts(ShiftBound):
    """The shifts of the monotone coupling of distinct values.

    `compressed` makes no pairs; whoever asks for `shifts` or `mass` gets them all.

    Parameters
    ----------
    first, second : Conditional
        See `serves`.
    whole : callable
        Returns the bound with all pairs.
    """

    _few: FloatArray
    _many: FloatArray
    _whole: Callable[[], ShiftBound]

    def __init__(
        self, first: Conditional, second: Conditional, whole: Callable[[], ShiftBound]
    ) -> None:
        few, many = sorted((first, second), key=lambda item: len(item.mass))
        # Past the guard of a frozen record.
        vars(self).update(
            _few=few.support[:, 0], _many=many.support[:, 0], _whole=whole
        )

    @staticmethod
    def serves(first: Conditional, second: Conditional) -> bool:
        """Whether two conditionals can be matched so, and there is something to gain.

        One column of distinct values, so many that their shifts would be grouped.
        """
        sizes = len(first.mass), len(second.mass)
        return (
            first.support.shape[1] == 1
            and max(sizes) > 2 * CELLS
            and (first.total, second.total) == sizes
            and math.lcm(*sizes) < _EXACT
        )

    @cached_property
    def _pairs(self) -> ShiftBound:
        return self._whole()

    @property
    def shifts(self) -> FloatArray:
        """The absolute shift of every pair, shape (p, 1)."""
        return self._pairs.shifts

    @property
    def mass(self) -> FloatArray:
        """The probability of every pair, shape (p,)."""
        return self._pairs.mass

    @property
    def is_zero(self) -> bool:
        """Whether nothing moves."""
        return np.array_equal(self._few, self._many)

    @remembered(4)
    def compressed(self, cells: int = CELLS) -> ShiftBound:
        """Bound the shifts by fewer, for convex costs; see `ShiftBound.compressed`.

        Raises
        ------
        TransportPlanError
            The pairs do not have the marginals of the data.
        """
        found = compressed_shifts(self._few, self._many, cells)
        return self._pairs.compressed(cells) if found is None else found


def compressed_shifts(
    few: FloatArray, many: FloatArray, cells: int
) -> ShiftBound | None:
    """Bound the shifts between distinct sorted values, each side of equal mass.

    Parameters
    ----------
    few, many : ndarray of shape (n,) and (m,)
        n <= m.
    cells : int
        Cells between the smallest positive shift and the largest.

    Returns
    -------
    ShiftBound or None
        None where nothing moves, or the cells would have no width.
    """
    matching = Matching(few, many)
    run = _LONGEST_RUN
    while run > 1 and run * 2 * CELLS > len(many):
        run //= 2
    low, high, mean = np.empty((3, len(many) // run))
    smallest, largest = math.inf, 0.0
    gate = Gate(len(few), len(many))
    for start in range(0, len(many), _BLOCK):
        part = matching.part(slice(start, min(start + _BLOCK, len(many))))
        gate.let_through(part)
        near, far, share = matching.shifts(part)
        least = near if far is None else np.minimum(near, far)
        most = near if far is None else np.maximum(near, far)
        end = len(near) // run * run
        of = slice(start // run, (start + end) // run)
        np.minimum.reduce(least[:end].reshape(-1, run), axis=1, out=low[of])
        np.maximum.reduce(most[:end].reshape(-1, run), axis=1, out=high[of])
        # Those of whole runs, and those that are left at the end.
        lowest = min(low[of].min(initial=math.inf), least[end:].min(initial=math.inf))
        smallest = min(smallest, lowest or _smallest(least, most))
        largest = max(largest, most[end:].max(initial=high[of].max(initial=0.0)))
        # From the smallest, so that an offset costs no digits of the mean.
        moved = near[:end].reshape(-1, run)
        moved -= low[of, np.newaxis]
        if far is not None and share is not None:
            more = far[:end].reshape(-1, run)
            more -= low[of, np.newaxis]
            more -= moved
            more *= share[:end].reshape(-1, run)
            moved += more
        np.add.reduce(moved, axis=1, out=mean[of])
    gate.close()
    if largest == 0:
        return None
    found = Cells(smallest, largest, cells)
    if not found.useful:
        return None
    close = (high - low <= found.width) & (low > 0)
    _add_runs(found, low[close], high[close], mean[close] / run, run / len(many))
    again = np.flatnonzero(~close)
    per_block = _BLOCK // run
    for start in range(0, len(again), per_block):
        runs = again[start : start + per_block, np.newaxis] * run
        _add_pairs(found, matching, (runs + np.arange(run)).ravel())
    _add_pairs(found, matching, np.arange(len(low) * run, len(many), dtype=np.intp))
    return found.bound()


class Matching:
    """The monotone coupling of n values of equal mass with m >= n of equal mass."""

    def __init__(self, few: FloatArray, many: FloatArray) -> None:
        common = math.gcd(len(few), len(many))
        self._few, self._many = few, many
        self.size = len(many)
        self._row_mass, self._column_mass = len(many) // common, len(few) // common

    def part(self, columns: Positions) -> Part:
        """Match some of the many."""
        if self._row_mass == 1:
            return Part(columns, columns, None)
        if isinstance(columns, slice):
            levels = np.arange(columns.start, columns.stop, dtype=np.float64)
        else:
            levels = columns.astype(np.float64)
        levels *= self._column_mass
        ends = levels / self._row_mass
        np.floor(ends, out=ends)
        rows = ends.astype(np.intp)
        ends += 1.0
        ends *= self._row_mass
        ends -= levels
        return Part(columns, rows, np.minimum(ends, self._column_mass, out=ends))

    def shifts(
        self, part: Part
    ) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Return the shifts of a part to its first and to its next row, rounded up.

        And the share of the latter. Where nothing goes to a next row both shifts are
        the same.
        """
        values = self._many[part.columns]
        near = _distance(_at(self._few, part.rows), values)
        if part.mass is None or isinstance(part.rows, slice):
            return near, None, None
        share = 1 - part.mass / self._column_mass
        far = _distance(_at(self._few, part.rows + (share > 0)), values)
        return near, far, share


class Gate:
    """Lets parts through that have, together, the marginals of the data.

    Every sum is one of whole numbers below 2^53.

    Parameters
    ----------
    n, m : int
        How many values of equal mass there are on either side, n <= m.
    """

    def __init__(self, n: int, m: int) -> None:
        common = math.gcd(n, m)
        self._m = m
        self._row_mass, self._column_mass = m // common, n // common
        self._columns = 0
        # What has come to the first row that may not be full, and to the next.
        self._row, self._come = 0, np.zeros(2)

    def let_through(self, part: Part) -> None:
        """Check the next part.

        Raises
        ------
        TransportPlanError
            It is not the next, is not of positive whole numbers, or leaves a row that
            is not full behind.
        """
        columns, rows, mass = part
        if not isinstance(columns, slice) or columns.start != self._columns:
            _refuse()
        self._columns = columns.stop
        size = columns.stop - columns.start
        if isinstance(rows, slice):
            rows = np.arange(rows.start, rows.stop, dtype=np.intp)
        if mass is None:
            mass = np.full(size, float(self._column_mass))
        if len(rows) != size or len(mass) != size or rows.min() < self._row:
            _refuse()
        whole = np.array_equal(np.floor(mass), mass)
        if not (whole and mass.min() >= 1 and mass.max() <= self._column_mass):
            _refuse()
        place = rows - self._row
        sums: FloatArray = np.zeros(int(place.max()) + 2)
        sums[:-1] += np.bincount(place, mass)
        sums += np.bincount(place + 1, self._column_mass - mass)
        sums[:2] += self._come
        last = len(sums) - 2
        if not (sums[:last] == self._row_mass).all():
            _refuse()
        self._row, self._come = self._row + last, sums[last : last + 2]

    def close(self) -> None:
        """Check that nothing is missing.

        Raises
        ------
        TransportPlanError
            Something is.
        """
        # All of the many have come, and every row up to this is full: it is the last.
        full = self._come.tolist() == [self._row_mass, 0]
        if not full or self._columns != self._m:
            _refuse()


def _refuse() -> NoReturn:
    raise TransportPlanError("the coupling does not have the marginals of the data")


def _at(values: FloatArray, positions: Positions) -> FloatArray:
    if isinstance(positions, slice):
        return values[positions]
    return values.take(positions)


def _distance(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return |first − second|, never less."""
    distance: FloatArray = first - second
    np.abs(distance, out=distance)
    distance *= _UP
    return distance


def _smallest(least: FloatArray, most: FloatArray) -> float:
    """Return the smallest positive shift of a block that has others."""
    both = np.append(least, most)
    return float(both.min(where=both > 0, initial=math.inf))


def _add_runs(
    cells: Cells, low: FloatArray, high: FloatArray, mean: FloatArray, mass: float
) -> None:
    """Add runs of shifts: their mass at either end, so that the mean stays.

    `mean` is from `low`. Round-off in it (below 1e-13 of the spread) may not lower it.
    """
    spread = high - low
    upper = np.divide(mean, spread, out=np.ones_like(mean), where=spread > 0)
    upper = np.minimum(upper + 1e-10, 1.0)
    for start in range(0, len(low), _BLOCK):
        part = slice(start, start + _BLOCK)
        cells.add(low[part], mass * (1 - upper[part]))
        cells.add(high[part], mass * upper[part])


def _add_pairs(cells: Cells, matching: Matching, columns: NDArray[np.intp]) -> None:
    """Add every shift of some columns."""
    near, far, share = matching.shifts(matching.part(columns))
    each = 1 / matching.size
    if far is None or share is None:
        cells.add(near, np.full(len(near), each))
    else:
        cells.add(near, each * (1 - share))
        cells.add(far, each * share)
