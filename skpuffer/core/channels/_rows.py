"""Rows of numbers and categories: pairs of distributions, and what moves between them.

A row is a vector of float64 in which a category stands as its position in the declared
set. Columns are independent given the row, so that divergences add over them: those of
the noise for numbers, those of the channels for categories.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from skpuffer.core.calibration import START_SHARE
from skpuffer.core.channels._metric import mean_distance
from skpuffer.core.channels._witness import (
    Columns,
    Direction,
    Moves,
    RowWitness,
    WorstRow,
)
from skpuffer.core.coupling import Coupling, ShiftBound, distance_up
from skpuffer.core.plans import (
    EXACT_LIMIT,
    USUAL_EFFORT,
    Column,
    Effort,
    Plan,
    cells_of,
    coarse_plan,
    in_place_plan,
    quadratic_plan,
)
from skpuffer.core.prior import (
    Conditional,
    FloatArray,
    IntArray,
    common_masses,
)

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RowRange:
    """A `WorstRow` in the units of the column weights."""

    bound: WorstRow
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class RowPair:
    """Two distributions of rows to be made alike, in the units of the column weights.

    Attributes
    ----------
    first, second : Conditional
        Rows of numbers and codes.
    weights : ndarray of shape (k,)
        The scales are a common factor times these; zero for a constant column.
    columns : Columns
    effort : Effort
        What the search for a coupling of very many rows may cost; two directions that
        are not alike share it.
    """

    first: Conditional
    second: Conditional
    weights: FloatArray
    columns: Columns
    effort: Effort = USUAL_EFFORT

    @property
    def symmetric(self) -> bool:
        """Whether both directions of every divergence are equal, whatever the scale.

        All distances equal, or just two categories: then every pair can be swapped.
        """
        for distances in self.columns:
            if distances is None or len(distances) < 3:
                continue
            off = distances[~np.eye(len(distances), dtype=bool)]
            if off.min() < off.max():
                return False
        return True

    def reversed(self) -> RowPair:
        """Return the pair for the other direction."""
        return replace(self, first=self.second, second=self.first)

    def within(self, share: float) -> RowPair:
        """Return the pair with the same first plan and a share of the effort."""
        other = replace(self, effort=self.effort.part(share))
        other.__dict__["start"] = self.start
        return other

    @cached_property
    def is_number(self) -> NDArray[np.bool_]:
        """Which columns are numeric, shape (k,)."""
        return np.array([distances is None for distances in self.columns])

    @cached_property
    def start(self) -> Plan:
        """A coupling that no rule has refined yet."""
        first, second, _ = common_masses(self.first, self.second)
        if self.first.same_distribution(self.second):
            place = np.arange(len(first), dtype=np.intp)
            return Plan(place, place, first)
        points, others = self.embedded(self.first), self.embedded(self.second)
        rows, more = self.first.support, self.second.support
        effort = self.effort.part(START_SHARE)
        if self.small or self.cells is None:

            def rest(goes: Indices, comes: Indices, *left: IntArray) -> Plan:
                return quadratic_plan(points[goes], others[comes], *left, effort=effort)

            return in_place_plan(rows, more, first, second, rest)

        def squares(chosen: Indices, opposite: Indices) -> FloatArray:
            found: FloatArray = cdist(points[chosen], others[opposite], "sqeuclidean")
            return found

        return coarse_plan(squares, self.cells, self.keys, first, second)

    @cached_property
    def values(self) -> tuple[Column, ...]:
        """The values of both, column by column."""
        return tuple(
            Column(values, others)
            for values, others in zip(
                self.first.support.T, self.second.support.T, strict=True
            )
        )

    @cached_property
    def points(self) -> tuple[FloatArray, FloatArray]:
        """The rows of both as points near a common origin: see `embedded`."""
        points, others = self.embedded(self.first), self.embedded(self.second)
        low = np.minimum(points.min(axis=0), others.min(axis=0))
        high = np.maximum(points.max(axis=0), others.max(axis=0))
        middle = low / 2 + high / 2
        return points - middle, others - middle

    @property
    def small(self) -> bool:
        """Whether plans are solved to optimality."""
        return max(len(self.first.mass), len(self.second.mass)) <= EXACT_LIMIT

    @cached_property
    def cells(self) -> tuple[Indices, Indices] | None:
        """The cell of each row of both, where categories leave room for cells."""
        return cells_of(self.first.support, self.second.support, self.is_number)

    @cached_property
    def keys(self) -> tuple[FloatArray, FloatArray]:
        """The sum of each row's numbers in their units."""
        units = np.where(self.weights > 0, self.weights, np.inf)[self.is_number]
        first, second = (
            (rows.support[:, self.is_number] / units).sum(axis=1)
            for rows in (self.first, self.second)
        )
        return first, second

    @cached_property
    def bound(self) -> RowWitness:
        """What `start` moves, in both directions."""
        forward = self.direction(self.start)
        if self.symmetric:
            return RowWitness((forward,))
        flipped = Plan(self.start.columns, self.start.rows, self.start.mass)
        return RowWitness((forward, self.reversed().direction(flipped)))

    def direction(self, plan: Plan) -> Direction:
        """Let a plan through the gate of `Coupling` and say what it moves."""
        coupling = Coupling.from_plan(self.first, self.second, plan)
        first = self.first.support[coupling.rows]
        second = self.second.support[coupling.columns]
        numeric = self.is_number
        shifts = distance_up(first[:, numeric], second[:, numeric])
        moves = tuple(
            Moves.between(distances, first[:, column], second[:, column])
            for column, distances in enumerate(self.columns)
            if distances is not None
        )
        return Direction(ShiftBound(shifts, coupling.mass), moves, numeric)

    def embedded(self, rows: Conditional) -> FloatArray:
        """Return rows as points: numbers over their weights, categories as corners.

        Two categories are as far apart as their mean distance over the weight.
        """
        parts = []
        for column, distances in enumerate(self.columns):
            weight = float(self.weights[column])
            values = rows.support[:, column]
            if distances is None:
                unit = weight if weight > 0 else math.inf
                parts.append(values[:, None] / unit)
                continue
            corner = mean_distance(distances) / math.sqrt(2)
            corner /= weight if weight > 0 else 1.0
            codes = values.astype(np.intp)
            parts.append(np.eye(len(distances) + 1)[codes] * corner)
        return np.hstack(parts)
