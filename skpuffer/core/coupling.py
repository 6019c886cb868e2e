"""Couplings of two conditional distributions, and the shifts they move.

A calibration rule sees nothing but a `ShiftBound`: how far, with what mass, one
conditional must be moved to become the other. A `Coupling` yields one, and is built
only through a gate that checks its marginals: mass that a plan forgot would be noise
that the release lacks. The plans for several columns are made in `plans`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpuffer.core.plans import (
    Plan,
    TransportPlanError,
    monotone_plan,
    quadratic_plan,
)
from skpuffer.core.prior import Conditional, FloatArray, IntArray, common_masses

# Beyond twice as many shifts, `ShiftBound.compressed` groups them in cells.
_CELLS = 2**15
# Work on this many atoms at a time stays in a core's cache.
_BLOCK = 2**15


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

    def compressed(self, cells: int = _CELLS) -> ShiftBound:
        """Bound very many shifts of one column by fewer, for convex costs.

        Each shift is split between the two ends of its cell so that its mean stays.
        By Jensen's inequality no expectation of a convex function falls, and the
        largest shift stays what it is. Equal cells between the smallest positive and
        the largest shift: the error is of second order in their width. Returns the
        bound itself where there is nothing to gain.
        """
        if self.shifts.shape[1] != 1 or len(self.mass) <= 2 * cells:
            return self
        shift, mass, zero_mass = self.shifts[:, 0], self.mass, 0.0
        if not shift.all():
            positive = shift > 0
            zero_mass = float(mass[~positive].sum())
            shift, mass = shift[positive], mass[positive]
        low, high = float(shift.min()), float(shift.max())
        nodes = np.linspace(low, high, cells + 1)
        width = (high - low) / cells
        if not width > 0 or not (np.diff(nodes) > 0).all():
            return self
        # Two more cells: round-off may put the largest shift beyond its node.
        whole, upper = np.zeros((2, cells + 2))
        for start in range(0, len(shift), 4 * _BLOCK):
            part = slice(start, start + 4 * _BLOCK)
            place = (shift[part] - low) * (1 / width)
            cell = place.astype(np.intp)
            place -= cell
            # Round-off in `place` (below 1e-11) may not lower the mean.
            place += 1e-10
            place *= mass[part]
            whole += np.bincount(cell, mass[part], minlength=cells + 2)
            upper += np.bincount(cell, place, minlength=cells + 2)
        merged = whole - upper
        merged[1:] += upper[:-1]
        # What lies beyond the last node belongs to it.
        merged[cells] += merged[cells + 1 :].sum()
        merged = np.maximum(merged[: cells + 1], 0.0)
        kept = merged > 0
        shifts, mass = nodes[kept], merged[kept]
        if zero_mass:
            shifts, mass = np.append(0.0, shifts), np.append(zero_mass, mass)
        return ShiftBound(shifts[:, np.newaxis], mass, grouped=True)


@dataclass(frozen=True, eq=False)
class Coupling:
    """A joint distribution of two conditionals, as weighted index pairs.

    Built by `from_plan` alone.

    Attributes
    ----------
    first, second : Conditional
        The marginals.
    rows, columns : ndarray of shape (p,)
        Positions in the two supports.
    mass : ndarray of shape (p,)
        The probability that moves from ``first.support[rows]`` to
        ``second.support[columns]``.
    """

    first: Conditional
    second: Conditional
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    mass: FloatArray

    @classmethod
    def from_plan(cls, first: Conditional, second: Conditional, plan: Plan) -> Coupling:
        """Let a plan through the gate: positive integers with the right marginals.

        Raises
        ------
        TransportPlanError
            The plan is anything else; the noise would be too small.
        """
        first_mass, second_mass, total = common_masses(first, second)
        moved = plan.mass
        if moved.dtype.kind not in "iO" or not moved.min(initial=1) > 0:
            raise TransportPlanError("the transport plan is not of positive integers")
        if total < 2**53:
            # Floats hold these integers, and add them up much faster.
            moved = moved.astype(np.float64)
        for index, mass in ((plan.rows, first_mass), (plan.columns, second_mass)):
            if not np.array_equal(_sums(index, moved, len(mass)), mass):
                raise TransportPlanError(
                    "the transport plan does not have the marginals of the data"
                )
        probability = (moved / total).astype(np.float64, copy=False)
        # No pair is too rare to be charged.
        np.maximum(probability, np.finfo(float).tiny, out=probability)
        return cls(first, second, plan.rows, plan.columns, probability)

    def shift_bound(self) -> ShiftBound:
        """Return the absolute shifts that the coupling moves, rounded upwards."""
        first, second = self.first.support, self.second.support
        shifts = np.empty((len(self.mass), first.shape[1]))
        for start in range(0, len(shifts), _BLOCK):
            part = slice(start, start + _BLOCK)
            shifts[part] = distance_up(
                first.take(self.rows[part], axis=0),
                second.take(self.columns[part], axis=0),
            )
        return ShiftBound(shifts, self.mass)


def couple(first: Conditional, second: Conditional, weights: FloatArray) -> Coupling:
    """Couple two conditionals well for every rule.

    One column: the monotone (quantile) coupling, optimal for every convex cost.
    Several: a plan of small mean squared distance in units of `weights`. Equal
    distributions are never moved.

    Parameters
    ----------
    first, second : Conditional
        Both with k columns.
    weights : ndarray of shape (k,)
        Positive units of the columns; infinite for a column that does not count.

    Returns
    -------
    Coupling
    """
    first_mass, second_mass, _ = common_masses(first, second)
    if first.same_distribution(second):
        index = np.arange(len(first.mass), dtype=np.intp)
        plan = Plan(index, index, first_mass)
    elif first.support.shape[1] == 1:
        plan = monotone_plan(first_mass, second_mass)
    else:
        plan = quadratic_plan(
            first.support / weights, second.support / weights, first_mass, second_mass
        )
    return Coupling.from_plan(first, second, plan)


def _sums(index: NDArray[np.intp], mass: IntArray, length: int) -> IntArray:
    """Add up integers by index, exactly."""
    if mass.dtype.kind == "f":
        return np.bincount(index, mass, minlength=length)
    sums = np.zeros(length, dtype=mass.dtype)
    np.add.at(sums, index, mass)
    return sums


def distance_up(first: Any, second: Any) -> FloatArray:
    """Return |first − second|, one rounding error up where it is not exact."""
    difference = first - second
    inexact = (first - difference != second) | (second + difference != first)
    distance: FloatArray = np.abs(difference, out=difference)
    if inexact.any():
        distance[inexact] = np.nextafter(distance[inexact], np.inf)
    return distance
