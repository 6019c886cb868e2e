"""What moves between two distributions of rows: what a condition is evaluated on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skpuffer.core.channels._channel import Channel
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray

# The distances of each categorical column, None for a column of numbers.
Columns = tuple[FloatArray | None, ...]


@dataclass(frozen=True, eq=False)
class Moves:
    """What a categorical column does in each pair of rows.

    Code K, beyond the set, stands for any category of it: see `population_rows`.

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
        size = len(distances) + 1
        code = first.astype(np.intp) * size + second.astype(np.intp)
        distinct, place = np.unique(code, return_inverse=True)
        return cls(distances, distinct // size, distinct % size, place)

    def divergences(self, *, alpha: float, theta: float) -> FloatArray:
        """Bound the divergence of each pair of rows, shape (m,)."""
        if theta == 0:
            return np.where(self._stays, 0.0, np.inf)[self.place]
        channel, size = Channel.of(self.distances, theta), len(self.distances)
        anything = (self.first == size) | (self.second == size)
        if not anything.any():
            found = channel.divergence(self.first, self.second, alpha=alpha)
            return found[self.place]
        table = dearest(channel.table(alpha=alpha))
        return np.asarray(table[self.first, self.second][self.place])

    @property
    def still(self) -> bool:
        """Whether no category changes."""
        return bool(self._stays.all())

    @property
    def _stays(self) -> NDArray[np.bool_]:
        known = self.first < len(self.distances)
        return np.asarray((self.first == self.second) & known)


def dearest(table: FloatArray) -> FloatArray:
    """Give a table a last row and column for any category: its largest entry.

    >>> dearest(np.array([[0.0, 2.0], [1.0, 0.0]]))
    array([[0., 2., 2.],
           [1., 0., 2.],
           [2., 2., 2.]])
    """
    return np.pad(table, (0, 1), constant_values=float(table.max()))


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

    @property
    def is_zero(self) -> bool:
        """Whether nothing moves: the two distributions are the same."""
        return all(part.is_zero for part in self.directions)

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
