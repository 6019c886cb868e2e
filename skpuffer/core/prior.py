"""Conditional distributions of the data given the secret.

A `Conditional` is P(X | secret, prior) as weighted atoms; a `Prior` is one
distribution rho: its conditionals and the secret pairs to be told apart. Both are
frozen, hold exact integer masses and know nothing of frames or noise.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
# int64, or object (Python integers) where int64 would overflow.
IntArray = NDArray[Any]

_INT64_LIMIT = 2**62
# Work on this many atoms at a time stays in a core's cache.
_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class Conditional:
    """Distinct rows in lexicographic order, with integer masses.

    Attributes
    ----------
    support : ndarray of shape (m, k), float64
        The distinct rows, sorted by the first column, then the second, ...
    mass : ndarray of shape (m,)
        Positive integers without a common factor; row i has probability
        ``mass[i] / total``.
    n_rows : int
        How many rows of data stand behind it.
    weight : float
        The sum of their sample weights; the number of rows without any.

    Examples
    --------
    >>> Conditional.from_rows([[2.0], [1.0], [2.0]]).mass
    array([1, 2])
    """

    support: FloatArray
    mass: IntArray
    n_rows: int
    weight: float

    @classmethod
    def from_rows(
        cls,
        rows: Any,
        weights: Any = None,
        counts: Any = None,
        *,
        overwrite: bool = False,
    ) -> Conditional:
        """Collect equal rows.

        Parameters
        ----------
        rows : array-like of shape (n, k)
            Finite values.
        weights : array-like of shape (n,), optional
            Non-negative; rows of weight zero are dropped. Fractions are kept
            exactly: a float is a fraction.
        counts : array-like of shape (n,), int64, optional
            How many rows of data each stands for, positive; one by default.
        overwrite : bool
            Whether `rows` may be sorted in place, and kept.

        Returns
        -------
        Conditional

        Raises
        ------
        ValueError
            Nothing is left: no row, or no positive weight.
        """
        values = np.asarray(rows, dtype=np.float64)
        weight = None if weights is None else np.asarray(weights, dtype=np.float64)
        count = None if counts is None else np.asarray(counts, dtype=np.int64)
        if weight is not None and not weight.all():
            kept = weight > 0
            values, weight = values[kept], weight[kept]
            count = None if count is None else count[kept]
        if len(values) == 0:
            raise ValueError("a conditional distribution needs a row of positive mass")
        n_rows = len(values) if count is None else int(count.sum())
        masses = _masses(weight, count)
        order: NDArray[np.intp] | None = None
        if values.shape[1] == 1 and masses is None:
            # No permutation is wanted, and sorting values alone is much faster.
            values = np.ascontiguousarray(values)
            if not overwrite and np.may_share_memory(values, rows):
                values = values.copy()
            values.ravel().sort()
            if _all_distinct(values):
                # Ones that take no room.
                ones = np.broadcast_to(np.int64(1), n_rows)
                return cls(values, ones, n_rows, float(n_rows))
        else:
            order = np.lexsort(values.T[::-1])
            values = values[order]
        new = np.empty(len(values), dtype=bool)
        new[0] = True
        np.not_equal(values[1:, 0], values[:-1, 0], out=new[1:])
        for column in values.T[1:]:
            new[1:] |= column[1:] != column[:-1]
        if masses is None and new.all():
            ones = np.broadcast_to(np.int64(1), n_rows)
            return cls(values, ones, n_rows, float(n_rows))
        starts = np.flatnonzero(new)
        if masses is None:
            mass: IntArray = np.diff(starts, append=n_rows)
        else:
            mass = np.add.reduceat(masses[order], starts)
        return cls(
            values[starts],
            _without_common_factor(mass),
            n_rows,
            float(n_rows) if weight is None else _sum(weight, count),
        )

    @cached_property
    def total(self) -> int:
        """The sum of the integer masses."""
        if self.mass.strides == (0,):  # one number, seen many times
            return len(self.mass) * int(self.mass[0])
        return int(self.mass.sum())

    @property
    def probabilities(self) -> FloatArray:
        """``mass / total`` as floats, shape (m,)."""
        return (self.mass / self.total).astype(np.float64)

    def same_distribution(self, other: Conditional) -> bool:
        """Whether both give every row the same probability, exactly."""
        # Masses have no common factor, so equal distributions have equal masses.
        return np.array_equal(self.support, other.support) and np.array_equal(
            self.mass, other.mass
        )


@dataclass(frozen=True, eq=False)
class Prior:
    """One prior rho: what the adversary knows of X given each secret value.

    Attributes
    ----------
    label : hashable or None
        The value of the prior column, None where there is a single prior.
    secrets : tuple of length G
        The secret values that occur under this prior.
    conditionals : tuple of Conditional, length G
        P(X | secret, rho), in the order of `secrets`.
    pairs : tuple of (int, int)
        Positions in `secrets` of the pairs that must not be told apart
        ("discriminative pairs" in the literature).
    """

    label: Hashable
    secrets: tuple[Hashable, ...]
    conditionals: tuple[Conditional, ...]
    pairs: tuple[tuple[int, int], ...]


def common_masses(
    first: Conditional, second: Conditional
) -> tuple[IntArray, IntArray, int]:
    """Masses of two conditionals in one integer unit.

    Returns
    -------
    first_mass, second_mass : ndarray
        Integers with the same sum, proportional to each conditional's masses.
    total : int
        That sum.
    """
    common = math.lcm(first.total, second.total)
    scaled = []
    for conditional in (first, second):
        mass = conditional.mass
        if common > _INT64_LIMIT and mass.dtype != object:
            mass = mass.astype(object)
        factor = common // conditional.total
        scaled.append(mass if factor == 1 else mass * factor)
    return scaled[0], scaled[1], common


def _all_distinct(ordered: FloatArray) -> bool:
    """Whether no value follows itself, in an ordered column of shape (n, 1)."""
    values = ordered[:, 0]
    for start in range(0, len(values), _BLOCK):
        part = values[start : start + _BLOCK + 1]
        if (part[1:] == part[:-1]).any():
            return False
    return True


def _masses(weight: FloatArray | None, count: IntArray | None) -> IntArray | None:
    """Return integers in proportion to weight times count; none where all are one."""
    if weight is None or count is None:
        return count if weight is None else _as_integers(weight)
    exact = _as_integers(weight).astype(object) * count.astype(object)
    fits = exact.sum() < _INT64_LIMIT
    return np.asarray(exact.astype(np.int64) if fits else exact)


def _sum(weight: FloatArray, count: IntArray | None) -> float:
    """Add up weights, the same for every order of the rows."""
    if count is None:
        return math.fsum(weight.tolist())
    pairs = zip(weight.tolist(), count.tolist(), strict=True)
    return float(sum(Fraction(value) * times for value, times in pairs))


def _as_integers(weight: FloatArray) -> IntArray:
    """Scale positive floats to integers, exactly."""
    whole = np.floor(weight)
    if np.array_equal(whole, weight) and whole.sum() < _INT64_LIMIT:
        return whole.astype(np.int64)
    # Every float is a fraction with a power of two below the line.
    ratios = [value.as_integer_ratio() for value in weight.tolist()]
    unit = max(below for _, below in ratios)
    scaled = [above * (unit // below) for above, below in ratios]
    fits = sum(scaled) < _INT64_LIMIT
    return np.array(scaled, dtype=np.int64 if fits else object)


def _without_common_factor(mass: IntArray) -> IntArray:
    if mass.dtype == object:
        divisor = math.gcd(*mass.tolist())
        mass = mass // divisor
        return mass.astype(np.int64) if mass.sum() < _INT64_LIMIT else mass
    divisor = int(np.gcd.reduce(mass))
    return mass if divisor == 1 else mass // divisor


def _ends(support: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each column."""
    if support.shape[1] == 1:  # in order
        return support[0], support[-1]
    return support.min(axis=0), support.max(axis=0)


def pooled_spread(
    conditionals: Sequence[Conditional],
) -> tuple[FloatArray, FloatArray]:
    """Return the spread of each column over all rows together.

    Returns
    -------
    std : ndarray of shape (k,)
        Standard deviations; the same for every order of the rows. May vanish by
        underflow where a column is not constant.
    span : ndarray of shape (k,)
        Largest minus smallest value: zero for a constant column, and for no other.

    Raises
    ------
    ValueError
        The span of a column is beyond float64.

    Examples
    --------
    >>> pooled_spread([Conditional.from_rows([[0.0], [4.0]])])
    (array([2.]), array([4.]))
    """
    ends = [_ends(item.support) for item in conditionals]
    low = np.min([end[0] for end in ends], axis=0)
    high = np.max([end[1] for end in ends], axis=0)
    with np.errstate(over="ignore"):
        span: FloatArray = high - low
    if not np.isfinite(span).all():
        raise ValueError("the values of a column are too far apart: rescale it")
    unit = np.where(span > 0, span, 1.0)
    total = math.fsum(item.weight for item in conditionals)
    seen, mean, scatter = 0.0, np.zeros_like(span), np.zeros_like(span)
    for item in conditionals:
        share = item.weight / total
        alike = item.total == len(item.mass)
        for start in range(0, len(item.mass), _BLOCK):
            part = slice(start, start + _BLOCK)
            # From the smallest value and in units of the span: neither an offset nor a
            # square costs digits.
            rows = item.support[part] - low
            rows /= unit
            # Merge the block's moments about its own mean: a rare value far away must
            # not vanish in a difference.
            if alike:
                weight = share * (len(rows) / item.total)
            else:
                mass = share * (item.mass[part] / item.total).astype(np.float64)
                weight = float(mass.sum())
            if weight == 0.0:
                continue  # Beside the others it is nothing.
            if alike:
                # Column by column: a sum over rows of one value takes long.
                centre = np.array([column.sum() for column in rows.T]) / len(rows)
                rows -= centre
                within = np.array([np.einsum("i,i", c, c) for c in rows.T])
                within *= weight / len(rows)
            else:
                first = rows[0].copy()
                rows -= first
                centre = np.einsum("i,ij->j", mass, rows) / weight
                rows -= centre
                within = np.einsum("i,ij,ij->j", mass, rows, rows)
                centre += first
            gap = centre - mean
            scatter += within + gap**2 * (seen * weight / (seen + weight))
            mean += gap * (weight / (seen + weight))
            seen += weight
    return np.sqrt(scatter / seen) * unit, span
