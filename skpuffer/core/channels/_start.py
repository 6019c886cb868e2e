"""A first coupling of rows: what both distributions have in common stays in place."""

from __future__ import annotations

import numpy as np

from skpuffer.core.plans import Plan, quadratic_plan
from skpuffer.core.prior import FloatArray, IntArray


def first_plan(
    rows_a: FloatArray,
    rows_b: FloatArray,
    points_a: FloatArray,
    points_b: FloatArray,
    mass_a: IntArray,
    mass_b: IntArray,
) -> Plan:
    """Couple equal rows with each other, and the rest at a small squared distance.

    Parameters
    ----------
    rows_a, rows_b : ndarray of shape (n, k) and (m, k)
        Distinct rows.
    points_a, points_b : ndarray of shape (n, p) and (m, p)
        The same, embedded.
    mass_a, mass_b : ndarray of positive integers, shape (n,) and (m,)
        Equal totals.

    Returns
    -------
    Plan

    Examples
    --------
    >>> x, y = np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])
    >>> plan = first_plan(x, y, x, y, np.array([1, 1]), np.array([1, 1]))
    >>> sorted(zip(plan.rows.tolist(), plan.columns.tolist()))
    [(0, 1), (1, 0)]
    """
    _, place = np.unique(np.vstack([rows_a, rows_b]), axis=0, return_inverse=True)
    _, here, there = np.intersect1d(
        place[: len(rows_a)], place[len(rows_a) :], return_indices=True
    )
    common = np.minimum(mass_a[here], mass_b[there])
    kept = Plan(here, there, common)
    rest_a, rest_b = mass_a.copy(), mass_b.copy()
    rest_a[here] -= common
    rest_b[there] -= common
    rows, columns = np.flatnonzero(rest_a), np.flatnonzero(rest_b)
    if not len(rows):
        return kept
    rest = quadratic_plan(
        points_a[rows], points_b[columns], rest_a[rows], rest_b[columns]
    )
    moved = Plan(rows[rest.rows], columns[rest.columns], rest.mass)
    return Plan(*(np.concatenate(field) for field in zip(kept, moved, strict=True)))
