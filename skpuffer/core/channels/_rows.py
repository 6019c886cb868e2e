"""Rows of numbers and categories: pairs of distributions, and what moves between them.

A row is a vector of float64 in which a category stands as its position in the declared
set. Columns are independent given the row, so that divergences add over them: those of
the noise for numbers, those of the channels for categories.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skpuffer.core.channels._channel import Channel
from skpuffer.core.channels._metric import mean_distance
from skpuffer.core.channels._start import first_plan
from skpuffer.core.coupling import Coupling, ShiftBound, distance_up
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.plans import Plan
from skpuffer.core.prior import Conditional, FloatArray, common_masses

# The distances of each categorical column, None for a column of numbers.
Columns = tuple[FloatArray | None, ...]


@dataclass(frozen=True, eq=False)
class Moves:
    """What a categorical column does in each pair of rows.

    Attributes
    ----------
    distances : ndarray of shape (K, K)
    first, second : ndarray of shape (u,)
        The distinct ordered pairs of categories.
    place : ndarray of shape (m,)
        Which of them each pair of rows has.
    """

    distances: FloatArray
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    place: NDArray[np.intp]

    @classmethod
    def between(
        cls, distances: FloatArray, first: FloatArray, second: FloatArray
    ) -> Moves:
        """Collect the pairs of two columns of codes, shape (m,) each."""
        size = len(distances)
        code = first.astype(np.intp) * size + second.astype(np.intp)
        distinct, place = np.unique(code, return_inverse=True)
        return cls(distances, distinct // size, distinct % size, place)

    def divergences(self, *, alpha: float, theta: float) -> FloatArray:
        """Bound the divergence of each pair of rows, shape (m,)."""
        if theta == 0:
            still = self.first == self.second
            return np.where(still, 0.0, np.inf)[self.place]
        channel = Channel.of(self.distances, theta)
        return channel.divergence(self.first, self.second, alpha=alpha)[self.place]

    @property
    def still(self) -> bool:
        """Whether no category changes."""
        return bool((self.first == self.second).all())


@dataclass(frozen=True, eq=False)
class Direction:
    """A coupling as what it moves, from the distribution p of D(p ‖ q) to q.

    Attributes
    ----------
    numbers : ShiftBound
        Absolute shifts of the numeric columns, perhaps none of them, with the mass of
        each pair of rows.
    moves : tuple of Moves
        Of the categorical columns.
    is_number : ndarray of bool, shape (k,)
        Which columns are numeric.
    """

    numbers: ShiftBound
    moves: tuple[Moves, ...]
    is_number: NDArray[np.bool_]

    def divergences(
        self, law: NoiseLaw, *, alpha: float, scale: FloatArray
    ) -> FloatArray:
        """Bound the divergence of one release of each pair of rows, shape (m,)."""
        total = np.zeros(len(self.numbers.mass))
        if self.is_number.any():
            total += law.shift_divergence(
                self.numbers.shifts, alpha=alpha, scale=scale[self.is_number]
            )
        thetas = scale[~self.is_number].tolist()
        for moves, theta in zip(self.moves, thetas, strict=True):
            total += moves.divergences(alpha=alpha, theta=theta)
        return total

    @property
    def is_zero(self) -> bool:
        """Whether nothing moves."""
        return self.numbers.is_zero and all(moves.still for moves in self.moves)


@dataclass(frozen=True, eq=False)
class RowWitness:
    """What the transport condition of a pair is evaluated on.

    Attributes
    ----------
    directions : tuple of Direction
        One for D(p ‖ q) and one for D(q ‖ p); a single one where they are equal.
    """

    directions: tuple[Direction, ...]

    def on_grid(self, step: FloatArray) -> RowWitness:
        """Return the same for numbers rounded to a grid; categories stay."""
        return RowWitness(
            tuple(
                Direction(
                    part.numbers.on_grid(step[part.is_number]),
                    part.moves,
                    part.is_number,
                )
                for part in self.directions
            )
        )

    def compressed(self, cells: int) -> RowWitness:
        """Return itself: rows of several columns are not grouped."""
        return self


@dataclass(frozen=True, eq=False)
class WorstRow:
    """Any two distributions on declared ranges and sets of categories.

    The divergence of two mixtures is at most that of their worst points (quasi-
    convexity): the widest shift of every number and the worst pair of every set.

    Attributes
    ----------
    span : ndarray of shape (1, number of numeric columns)
    columns : Columns
    """

    span: FloatArray
    columns: Columns

    def on_grid(self, step: FloatArray) -> WorstRow:
        """Return the same for numbers rounded to a grid."""
        numeric = np.array([item is None for item in self.columns])
        bound = ShiftBound(self.span, np.ones(1)).on_grid(step[numeric])
        return WorstRow(bound.shifts, self.columns)

    def compressed(self, cells: int) -> WorstRow:
        """Return itself."""
        return self

    def divergence(self, law: NoiseLaw, *, alpha: float, scale: FloatArray) -> float:
        """Bound the divergence of one release of any two rows."""
        numeric = np.array([item is None for item in self.columns])
        total = 0.0
        if numeric.any():
            part = law.shift_divergence(self.span, alpha=alpha, scale=scale[numeric])
            total += float(part[0])
        for distances, theta in zip(self.columns, scale.tolist(), strict=True):
            if distances is None or len(distances) < 2:
                continue
            if theta == 0:
                return math.inf
            total += float(Channel.of(distances, theta).table(alpha=alpha).max())
        return total


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
    """

    first: Conditional
    second: Conditional
    weights: FloatArray
    columns: Columns

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
        return RowPair(self.second, self.first, self.weights, self.columns)

    @cached_property
    def is_number(self) -> NDArray[np.bool_]:
        """Which columns are numeric, shape (k,)."""
        return np.array([distances is None for distances in self.columns])

    @cached_property
    def start(self) -> Plan:
        """A coupling that no rule has refined yet."""
        first, second, _ = common_masses(self.first, self.second)
        return first_plan(
            self.first.support,
            self.second.support,
            self.embedded(self.first),
            self.embedded(self.second),
            first,
            second,
        )

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

        Two categories are as far apart as their mean distance over the weight; the
        signs of a difference of two points tell which two they were.
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
            parts.append(np.eye(len(distances))[codes] * corner)
        return np.hstack(parts)
