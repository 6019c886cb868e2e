"""Couplings of two conditional distributions, and the shifts they move.

A calibration rule sees nothing but a `ShiftBound`. A `Coupling` yields one, and is built
only through a gate that checks its marginals: mass that a plan forgot would be noise
that the release lacks. The plans for several columns are made in `plans`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skpuffer.core.plans import (
    USUAL_EFFORT,
    Effort,
    Plan,
    TransportPlanError,
    in_place_plan,
    monotone_plan,
    quadratic_plan,
)
from skpuffer.core.prior import Conditional, FloatArray, IntArray, common_masses
from skpuffer.core.shifts import ShiftBound, distance_up

__all__ = [
    "Coupling",
    "ShiftBound",
    "couple",
    "distance_up",
    "plan_in_place",
    "start_plan",
]

# Work on this many atoms at a time stays in a core's cache.
_BLOCK = 2**15


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
    return Coupling.from_plan(first, second, start_plan(first, second, weights))


def start_plan(
    first: Conditional,
    second: Conditional,
    weights: FloatArray,
    effort: Effort = USUAL_EFFORT,
) -> Plan:
    """Return the plan of `couple`, as integers.

    Parameters
    ----------
    first, second, weights
        As in `couple`.
    effort : Effort
        What a search among very many points of several columns may cost.

    Returns
    -------
    Plan
    """
    first_mass, second_mass, _ = common_masses(first, second)
    if first.same_distribution(second):
        index = np.arange(len(first.mass), dtype=np.intp)
        return Plan(index, index, first_mass)
    return _plan(
        first.support, second.support, first_mass, second_mass, weights, effort
    )


def plan_in_place(
    first: Conditional,
    second: Conditional,
    weights: FloatArray,
    effort: Effort = USUAL_EFFORT,
) -> Plan:
    """Return a plan by which what mass two conditionals share does not move.

    The rest is coupled as `couple` does. Often better where costs are concave: many
    short moves cost more than a few long ones.

    Parameters
    ----------
    first, second : Conditional
        Both with k columns.
    weights : ndarray of shape (k,)
        As in `couple`.
    effort : Effort
        As in `start_plan`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> one, two = (Conditional.from_rows([[i], [i + 1], [i + 2]]) for i in (0, 1))
    >>> plan = plan_in_place(one, two, np.ones(1))
    >>> Coupling.from_plan(one, two, plan).shift_bound().shifts.ravel()
    array([0., 0., 3.])
    """
    first_mass, second_mass, _ = common_masses(first, second)

    def rest(goes: IntArray, comes: IntArray, left: IntArray, right: IntArray) -> Plan:
        rows, others = first.support[goes], second.support[comes]
        return _plan(rows, others, left, right, weights, effort)

    return in_place_plan(first.support, second.support, first_mass, second_mass, rest)


def _plan(
    first: FloatArray,
    second: FloatArray,
    first_mass: IntArray,
    second_mass: IntArray,
    weights: FloatArray,
    effort: Effort,
) -> Plan:
    """Couple points in order; of several columns by their squared distance."""
    moving = np.isfinite(weights)
    if int(np.count_nonzero(moving)) <= 1:
        # Rows are in lexicographic order, which constant columns do not change.
        return monotone_plan(first_mass, second_mass)
    first, second = (rows[:, moving] / weights[moving] for rows in (first, second))
    return quadratic_plan(first, second, first_mass, second_mass, effort=effort)


def _sums(index: NDArray[np.intp], mass: IntArray, length: int) -> IntArray:
    """Add up integers by index, exactly."""
    if mass.dtype.kind == "f":
        return np.bincount(index, mass, minlength=length)
    sums = np.zeros(length, dtype=mass.dtype)
    np.add.at(sums, index, mass)
    return sums
