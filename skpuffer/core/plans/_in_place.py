"""A plan that leaves in place the mass that both sides have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skpuffer.core.plans._plan import Plan

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Masses = NDArray[np.int64] | NDArray[np.object_]


def in_place_plan(
    rows_a: Floats,
    rows_b: Floats,
    mass_a: Masses,
    mass_b: Masses,
    rest: Callable[[Indices, Indices, Masses, Masses], Plan],
) -> Plan:
    """Couple equal rows with each other, and leave what remains to another plan.

    Parameters
    ----------
    rows_a, rows_b : ndarray of shape (n, k) and (m, k)
        Distinct rows.
    mass_a, mass_b : ndarray of positive integers, shape (n,) and (m,)
        Equal totals.
    rest : callable
        ``rest(goes, comes, left, right)``: a plan of the masses that are left at some
        rows of either side, by their positions among those.

    Returns
    -------
    Plan

    Examples
    --------
    >>> x, y = np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])
    >>> one = np.array([1, 1])
    >>> plan = in_place_plan(x, y, one, one, lambda *_: Plan(*np.array([[0], [0], [1]])))
    >>> sorted(zip(plan.rows.tolist(), plan.columns.tolist()))
    [(0, 1), (1, 0)]
    """
    rows, columns = _shared(rows_a, rows_b)
    stays = np.minimum(mass_a[rows], mass_b[columns])
    plans = [Plan(rows, columns, stays)]
    left, right = mass_a.copy(), mass_b.copy()
    left[rows] -= stays
    right[columns] -= stays
    goes, comes = np.flatnonzero(left), np.flatnonzero(right)
    if len(goes):
        moved = rest(goes, comes, left[goes], right[comes])
        plans.append(Plan(goes[moved.rows], comes[moved.columns], moved.mass))
    return Plan(*(np.concatenate(field) for field in zip(*plans, strict=True)))


def _shared(first: Floats, second: Floats) -> tuple[Indices, Indices]:
    """Return where the rows are that stand in both of two sets of distinct rows."""
    both = np.vstack([first, second])
    order = np.lexsort(both.T[::-1])
    ordered = both[order]
    twice = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    # A stable sort has the first set's row before the second's.
    return order[twice], order[twice + 1] - len(first)
