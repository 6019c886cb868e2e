"""Couplings of very many rows: solved on few cells and spread out.

Contract: exact integer marginals, as everywhere; any coupling is sound, a poor one only
costs noise. Imports numpy and the solver next door.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skpuffer.core.plans._exact import emd_plan
from skpuffer.core.plans._plan import Floats, Indices, Masses, Plan, monotone_plan

# Costs of all pairs of some rows of each side.
Costs = Callable[[Indices, Indices], Floats]

# Cells a side: their problem is solved to optimality.
CELLS = 1200
_BINS = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2)


def cells_of(
    rows_a: Floats, rows_b: Floats, is_number: NDArray[np.bool_]
) -> tuple[Indices, Indices] | None:
    """Put rows in the same cells on both sides, by quantiles of their numbers.

    Returns
    -------
    tuple of two ndarrays of shape (n,) and (m,), or None
        The cell of each row; none where the categories alone make too many cells.
    """
    rows = np.vstack([rows_a, rows_b])
    for bins in _BINS:
        coded = rows.copy()
        for column in np.flatnonzero(is_number):
            values = rows[:, column]
            levels = np.unique(
                np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1], method="lower")
            )
            coded[:, column] = np.searchsorted(levels, values)
        _, cell = np.unique(coded, axis=0, return_inverse=True)
        first, second = cell[: len(rows_a)], cell[len(rows_a) :]
        if max(len(np.unique(first)), len(np.unique(second))) <= CELLS:
            return first, second
    return None


def middles(cells: Indices, keys: Floats) -> tuple[Indices, Indices]:
    """Return the occupied cells and a row in the middle of each, by a key."""
    order = np.lexsort((keys, cells))
    found, start, count = np.unique(cells[order], return_index=True, return_counts=True)
    return found, order[start + count // 2]


def spread_plan(
    flows: Plan,
    cells_a: Indices,
    cells_b: Indices,
    keys_a: Floats,
    keys_b: Floats,
    mass_a: Masses,
    mass_b: Masses,
) -> Plan:
    """Turn a coupling of cells into one of their rows, in the order of a key.

    Parameters
    ----------
    flows : Plan
        Between cells, given by their positions among the occupied ones.
    cells_a, cells_b : ndarray of shape (n,) and (m,)
        Position of each row's cell.
    keys_a, keys_b : ndarray of shape (n,) and (m,)
        Rows of a cell follow them, and so do the cells that they go to.
    mass_a, mass_b : ndarray of positive integers
        Those of a cell's rows add up to what flows from or to it.

    Returns
    -------
    Plan

    Examples
    --------
    >>> one, place = np.ones(2, dtype=int), np.array([0, 0])
    >>> flows = Plan(np.array([0]), np.array([0]), np.array([2]))
    >>> keys = np.array([5.0, 3.0])
    >>> plan = spread_plan(flows, place, place, keys, keys[::-1], one, one)
    >>> sorted(zip(plan.rows.tolist(), plan.columns.tolist()))
    [(0, 1), (1, 0)]
    """
    mean_a, mean_b = (
        np.bincount(cells, keys) / np.bincount(cells)
        for cells, keys in ((cells_a, keys_a), (cells_b, keys_b))
    )
    out = np.lexsort((mean_b[flows.columns], flows.rows))
    members = np.lexsort((keys_a, cells_a))
    left = monotone_plan(mass_a[members], flows.mass[out])
    into = np.lexsort((mean_a[flows.rows], flows.columns))
    others = np.lexsort((keys_b, cells_b))
    right = monotone_plan(flows.mass[into], mass_b[others])
    # Both halves flow by flow: what leaves a flow is what entered it.
    flow_left, flow_right = out[left.columns], into[right.rows]
    order_left = np.argsort(flow_left, kind="stable")
    order_right = np.argsort(flow_right, kind="stable")
    joined = monotone_plan(left.mass[order_left], right.mass[order_right])
    rows = members[left.rows[order_left[joined.rows]]]
    columns = others[right.columns[order_right[joined.columns]]]
    return Plan(rows, columns, joined.mass)


def coarse_plan(
    costs: Costs,
    cells: tuple[Indices, Indices],
    keys: tuple[Floats, Floats],
    mass_a: Masses,
    mass_b: Masses,
) -> Plan:
    """Couple the cells at least cost between their middle rows, and spread that out."""
    (cell_a, row_a), (cell_b, row_b) = (
        middles(cell, key) for cell, key in zip(cells, keys, strict=True)
    )
    place_a, place_b = (
        np.searchsorted(cell_a, cells[0]),
        np.searchsorted(cell_b, cells[1]),
    )
    whole_a = np.zeros(len(cell_a), dtype=mass_a.dtype)
    whole_b = np.zeros(len(cell_b), dtype=mass_b.dtype)
    np.add.at(whole_a, place_a, mass_a)
    np.add.at(whole_b, place_b, mass_b)
    flows = emd_plan(whole_a, whole_b, costs(row_a, row_b))
    return spread_plan(flows, place_a, place_b, *keys, mass_a, mass_b)
