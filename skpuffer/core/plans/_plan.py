"""What a transport plan is, and its integer bookkeeping.

Contract: masses are positive integers, int64 or Python ints (object dtype), and
are added and compared as integers only. Imports numpy only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Masses = npt.NDArray[Any]


class TransportPlanError(RuntimeError):
    """The solver did not return a coupling; no plan can be used."""


class Plan(NamedTuple):
    """A coupling as index pairs.

    Attributes
    ----------
    rows, columns : ndarray of intp, shape (p,)
        Atoms of the source and of the target.
    mass : ndarray, shape (p,)
        Positive mass of each pair, in the integer units of the inputs: int64, or
        Python ints (object dtype) when an input has object dtype.
    """

    rows: Indices
    columns: Indices
    mass: Masses


def check_masses(mass_a: Masses, mass_b: Masses) -> tuple[Masses, Masses]:
    """Check the masses; object dtype for both if either has it or int64 is short."""
    checked = []
    for name, mass in (("mass_a", mass_a), ("mass_b", mass_b)):
        array = np.asarray(mass)
        whole = array.dtype.kind in "iu" or (
            array.dtype == object and all(isinstance(v, int) for v in array.flat)
        )
        if array.ndim != 1 or not array.size or not whole or min(array.tolist()) <= 0:
            raise ValueError(f"{name} must be a non-empty row of positive integers.")
        checked.append(array)
    totals = [sum(array.tolist()) for array in checked]
    if totals[0] != totals[1]:
        raise ValueError(f"mass_a sums to {totals[0]}, mass_b to {totals[1]}.")
    kind = object if totals[0] > np.iinfo(np.int64).max else np.int64
    if any(array.dtype == object for array in checked):
        kind = object
    return checked[0].astype(kind), checked[1].astype(kind)


def check_coupling(plan: Plan, left: Masses, right: Masses) -> Plan:
    """Return the plan if it is a coupling of these masses, in integers."""
    sums_a, sums_b = np.zeros_like(left), np.zeros_like(right)
    np.add.at(sums_a, plan.rows, plan.mass)
    np.add.at(sums_b, plan.columns, plan.mass)
    exact = np.array_equal(sums_a, left) and np.array_equal(sums_b, right)
    if not exact or (plan.mass <= 0).any():
        raise TransportPlanError(
            "the plan is not a coupling: negative or missing mass. Please report it."
        )
    return plan


def merged(plan: Plan) -> Plan:
    """Return the plan sorted, every pair once."""
    order = np.lexsort((plan.columns, plan.rows))
    rows, columns, mass = (field[order] for field in plan)
    first = np.flatnonzero(
        np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))
    )
    return Plan(rows[first], columns[first], np.add.reduceat(mass, first))


def shares(mass: Masses) -> Floats:
    value = mass.astype(np.float64)
    return np.asarray(value / value.sum())


def monotone_plan(first_mass: Masses, second_mass: Masses) -> Plan:
    """Match two mass vectors in the order in which they stand.

    Parameters
    ----------
    first_mass, second_mass : ndarray of shape (n,) and (m,)
        Positive integers with the same sum.

    Returns
    -------
    Plan
        At most n + m − 1 pairs, exact integers.

    Examples
    --------
    >>> import numpy as np
    >>> monotone_plan(np.array([1, 1]), np.array([2])).mass
    array([1, 1])
    """
    first_end, second_end = np.cumsum(first_mass), np.cumsum(second_mass)
    if np.array_equal(first_end, second_end):
        index = np.arange(len(first_end), dtype=np.intp)
        return Plan(index, index, first_mass)
    ends = np.concatenate([first_end, second_end])
    # Two sorted runs: a stable sort merges them in linear time.
    order = np.argsort(ends, kind="stable")
    ends = ends[order]
    new = np.empty(len(ends), dtype=bool)
    new[0] = True
    np.not_equal(ends[1:], ends[:-1], out=new[1:])
    place = np.flatnonzero(new)
    # The atom that owns the mass up to an end: as many as have ended before it.
    ended = np.cumsum(order < len(first_end), dtype=np.intp)[place - 1]
    ended[0] = 0
    ends = ends[place]
    mass = np.diff(ends, prepend=ends[:1] * 0)
    return Plan(ended, place - ended, mass)
