"""Costs of pairs of points, as logarithms, that add up over columns.

Contract: what a search minimises is Σ mass · (e^cost − 1). Costs guide it and prove
nothing. Imports numpy only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from skpuffer.core.plans._plan import Floats, Indices

# A column's costs are tabulated where it has no more pairs of distinct values;
# elsewhere they are interpolated between this many distances, up to a cost whose
# exponential is beyond any use.
_TABLE, _NODES = 2**17, 2**12
_USEFUL = 64.0


class LogCosts(Protocol):
    """Non-negative costs of pairs of points, given by their positions; may be inf."""

    def table(self, rows: Indices, columns: Indices) -> Floats:
        """Return the costs of all pairs of some points, shape (n, m)."""
        ...

    def along(self, rows: Indices, columns: Indices) -> Floats:
        """Return the costs of some pairs, shape (p,)."""
        ...


class Column:
    """Values of two sets of points in one column.

    Parameters
    ----------
    values, others : ndarray of shape (n,) and (m,)
    """

    def __init__(self, values: Floats, others: Floats) -> None:
        self.values, self.others = values, others
        self.distinct, self.place = np.unique(values, return_inverse=True)
        self.opposite, self.other_place = np.unique(others, return_inverse=True)
        self.few = len(self.distinct) * len(self.opposite) <= _TABLE

    @property
    def farthest(self) -> float:
        """The largest distance of a value from another."""
        above = self.distinct[-1] - self.opposite[0]
        return float(max(above, self.opposite[-1] - self.distinct[0]))


class _Curve:
    """A cost as a function of the distance, interpolated.

    Nodes are equal in the root of the distance: costs may be concave near zero.
    """

    def __init__(
        self, cost: Callable[[Floats], Floats], farthest: float, factor: float
    ) -> None:
        reach = farthest
        while not factor * cost(np.array([reach]))[0] <= _USEFUL:
            reach /= 2
        nodes = reach * np.square(np.arange(_NODES + 1) / _NODES)
        values = cost(nodes)
        self._reach, self._values = reach, values
        self._rise = np.diff(values) / np.diff(nodes)
        self._nodes = nodes

    def at(self, distance: Floats) -> Floats:
        """Return costs of any shape; beyond the reach on a straight line."""
        place = np.sqrt(distance * (1 / self._reach))
        place *= _NODES
        cell = np.minimum(place, _NODES - 1).astype(np.intp)
        return np.asarray(
            self._values[cell] + self._rise[cell] * (distance - self._nodes[cell])
        )


class SummedCosts:
    """Costs that are a factor times a sum over columns.

    Examples
    --------
    >>> costs = SummedCosts(2.0)
    >>> costs.add(Column(np.array([0.0, 1.0]), np.array([3.0])), np.square)
    >>> costs.table(np.array([0, 1]), np.array([0])).tolist()
    [[18.0], [8.0]]
    """

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._tables: list[tuple[Indices, Indices, Floats]] = []
        self._direct: list[tuple[Column, Callable[[Floats], Floats], _Curve]] = []

    def add_table(self, place: Indices, other: Indices, table: Floats) -> None:
        """Add what is looked up at the positions of a point of either side."""
        self._tables.append((place, other, table))

    def add(self, column: Column, cost: Callable[[Floats], Floats]) -> None:
        """Add a cost of the distance in a column, for distances of any shape (p,)."""
        if not column.few:
            curve = _Curve(cost, column.farthest, self._factor)
            self._direct.append((column, cost, curve))
            return
        distance = np.abs(np.subtract.outer(column.distinct, column.opposite))
        table = cost(distance.ravel()).reshape(distance.shape)
        self.add_table(column.place, column.other_place, table)

    def table(self, rows: Indices, columns: Indices) -> Floats:
        """Return the costs of all pairs of some points, shape (n, m).

        Near enough to choose by where a column has very many values.
        """
        total = np.zeros((len(rows), len(columns)))
        for place, other, table in self._tables:
            total += table[place[rows][:, None], other[columns]]
        for column, _, curve in self._direct:
            distance = np.subtract.outer(column.values[rows], column.others[columns])
            total += curve.at(np.abs(distance, out=distance))
        return self._factor * total

    def along(self, rows: Indices, columns: Indices) -> Floats:
        """Return the costs of some pairs, shape (p,)."""
        total = np.zeros(len(rows))
        for place, other, table in self._tables:
            total += table[place[rows], other[columns]]
        for column, cost, _ in self._direct:
            total += cost(np.abs(column.values[rows] - column.others[columns]))
        return self._factor * total


def summed(
    columns: Sequence[Column],
    cost: Callable[[int, Floats], Floats],
    factor: float = 1.0,
) -> SummedCosts:
    """Return the sum of ``cost(number, distances)`` over numbered columns."""
    costs = SummedCosts(factor)
    for number, column in enumerate(columns):
        costs.add(column, partial(cost, number))
    return costs
