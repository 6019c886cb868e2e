"""How far, with what mass, one conditional must be moved to become another.

All that most calibration rules see of a pair. Imports numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from skpuffer.core.prior import FloatArray

_Method = Callable[..., "ShiftBound"]

# Beyond twice as many shifts, `ShiftBound.compressed` groups them in cells.
CELLS = 2**15
# Work on this many atoms at a time stays in a core's cache.
_BLOCK = 2**15
# What floats have the inverse of.
_LEAST_WIDTH = 2.0**-1000


def remembered(most: int) -> Callable[[_Method], _Method]:
    """Keep the last few answers of a method with its object, by its arguments.

    Whoever solves for many budgets asks for them again. An answer that is the object
    itself is not kept: it would hold itself alive.
    """

    def decorate(method: _Method) -> _Method:
        name = f"_{method.__name__}"

        @wraps(method)
        def ask(self: Any, *given: Any) -> ShiftBound:
            key = tuple(
                item.tobytes() if isinstance(item, np.ndarray) else item
                for item in given
            )
            # Never changed, but replaced: threads may ask at the same time.
            known: dict[Any, ShiftBound] = self.__dict__.get(name, {})
            if key in known:
                return known[key]
            answer = method(self, *given)
            if answer is not self:
                kept = list(known.items())[max(len(known) - most + 1, 0) :]
                self.__dict__[name] = {**dict(kept), key: answer}
            return answer

        return ask

    return decorate


@dataclass(frozen=True, eq=False)
class ShiftBound:
    """How far the data move between two secrets: an upper bound.

    Attributes
    ----------
    shifts : ndarray of shape (m, k)
        Absolute shifts, one row a vector over the k columns, in data units.
    mass : ndarray of shape (m,)
        The probability of each shift; sums to one, or to a little more where mass
        was charged twice to be safe.
    grouped : bool
        Whether the shifts stand for others nearby (see `compressed`).
    """

    shifts: FloatArray
    mass: FloatArray
    grouped: bool = False

    @property
    def is_zero(self) -> bool:
        """Whether nothing moves: the two distributions are the same."""
        return not self.shifts.any()

    @remembered(1)
    def on_grid(self, step: FloatArray) -> ShiftBound:
        """Bound the shifts of the data rounded to a grid, per column.

        Rounding half up moves the distance of two values to at most the next
        multiple of the step. Grouped shifts go up by one whole step, so that the
        chord argument of `compressed` survives the rounding.

        Parameters
        ----------
        step : ndarray of shape (k,)
            Powers of two; zero for a column that is released as it is.
        """
        safe = np.where(step > 0, step, 1.0)
        if self.grouped:
            up = np.nextafter(self.shifts + safe, np.inf)
            up[self.shifts == 0] = 0.0
        else:
            # A positive shift is a step at least, even where the quotient underflows.
            steps = np.maximum(np.ceil(self.shifts / safe), self.shifts > 0)
            up = steps * safe
        return ShiftBound(np.where(step > 0, up, self.shifts), self.mass, self.grouped)

    @remembered(4)
    def compressed(self, cells: int = CELLS) -> ShiftBound:
        """Bound very many shifts of one column by fewer, for convex costs.

        Each shift is split between the two ends of its cell so that its mean stays.
        By Jensen's inequality no expectation of a convex function falls, and the
        largest shift stays what it is. Equal cells between the smallest positive and
        the largest shift: the error is of second order in their width. Returns the
        bound itself where there is nothing to gain.
        """
        if self.shifts.shape[1] != 1 or len(self.mass) <= 2 * cells:
            return self
        if self.is_zero:
            return self
        shift = self.shifts[:, 0]
        positive = shift if shift.all() else shift[shift > 0]
        found = Cells(float(positive.min()), float(positive.max()), cells)
        if not found.useful:
            return self
        for start in range(0, len(shift), 4 * _BLOCK):
            part = slice(start, start + 4 * _BLOCK)
            found.add(shift[part], self.mass[part])
        return found.bound()

    @remembered(4)
    def rounded_up(self, cells: int = 2 * CELLS) -> ShiftBound:
        """Bound very many shifts of one column by fewer, for increasing costs.

        Each goes up to the end of its cell, the largest no further than it is. Cells
        are equal in the root of the shift, whose steps concave costs feel alike.
        Returns the bound itself where there is nothing to gain.
        """
        if self.shifts.shape[1] != 1 or len(self.mass) <= 2 * cells:
            return self
        shift = self.shifts[:, 0]
        largest = float(shift.max())
        ends = largest * np.square(np.arange(1, cells + 1) / cells)
        ends[-1] = largest
        cell = np.searchsorted(ends, shift) + 1
        cell[shift == 0] = 0
        mass: FloatArray = np.zeros(cells + 1)
        mass += np.bincount(cell, self.mass, minlength=cells + 1)
        kept = mass > 0
        return ShiftBound(np.append(0.0, ends)[kept, np.newaxis], mass[kept])


class Cells:
    """Shifts that are added up in equal cells; see `ShiftBound.compressed`.

    Parameters
    ----------
    low, high : float
        The smallest positive and the largest shift.
    cells : int

    Attributes
    ----------
    width : float
        Of a cell.
    """

    def __init__(self, low: float, high: float, cells: int) -> None:
        self._nodes: FloatArray = np.linspace(low, high, cells + 1)
        self._zero_mass = 0.0
        # Two more cells: round-off may put the largest shift beyond its node.
        self._whole, self._upper = np.zeros((2, cells + 2))
        self.width = (high - low) / cells

    @property
    def useful(self) -> bool:
        """Whether floats tell the ends of every cell apart, and divide by its width."""
        return self.width > _LEAST_WIDTH and bool((np.diff(self._nodes) > 0).all())

    def add(self, shift: FloatArray, mass: FloatArray) -> None:
        """Split the mass of each shift between the ends of its cell.

        Parameters
        ----------
        shift, mass : ndarray of shape (p,)
            A block that fits in a core's cache.
        """
        if not shift.all():
            positive = shift > 0
            self._zero_mass += float(mass[~positive].sum())
            shift, mass = shift[positive], mass[positive]
        place = (shift - self._nodes[0]) * (1 / self.width)
        cell = place.astype(np.intp)
        place -= cell
        # Round-off in `place` (below 1e-11) may not lower the mean.
        place += 1e-10
        place *= mass
        length = len(self._whole)
        self._whole += np.bincount(cell, mass, minlength=length)
        self._upper += np.bincount(cell, place, minlength=length)

    def bound(self) -> ShiftBound:
        """Return the nodes with what mass has come to them."""
        merged = self._whole - self._upper
        merged[1:] += self._upper[:-1]
        last = len(self._nodes) - 1
        # What lies beyond the last node belongs to it.
        merged[last] += merged[last + 1 :].sum()
        merged = np.maximum(merged[: last + 1], 0.0)
        kept = merged > 0
        shifts, mass = self._nodes[kept], merged[kept]
        if self._zero_mass:
            shifts, mass = np.append(0.0, shifts), np.append(self._zero_mass, mass)
        return ShiftBound(shifts[:, np.newaxis], mass, grouped=True)


def distance_up(first: Any, second: Any) -> FloatArray:
    """Return |first − second|, one rounding error up where it is not exact."""
    difference = first - second
    inexact = (first - difference != second) | (second + difference != first)
    distance: FloatArray = np.abs(difference, out=difference)
    if inexact.any():
        distance[inexact] = np.nextafter(distance[inexact], np.inf)
    return distance
