"""Validated rows: their values, their groups, and the priors that they make."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from skpuffer._validation._categories import CategorySet
from skpuffer._validation._frames import Dropped
from skpuffer._validation._groups import Groups
from skpuffer.core.prior import Conditional, Prior

# Work on this many rows at a time stays in a core's cache.
_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class Sample:
    """Validated rows with their groups and what was declared about the columns.

    Attributes
    ----------
    values : ndarray of shape (n, k), float64
        Finite, within the declared bounds.
    names : list of str
        The released columns.
    secret : Groups
    prior : Groups or None
    weight : ndarray of shape (n,), or None
        Positive sample weights.
    counts : ndarray of shape (n,), int64, or None
        How many rows of data each row stands for, where that is not one.
    ranges : ndarray of shape (k, 2)
        Declared bounds; infinite where there are none.
    column_weights : ndarray of shape (k,), or None
        Those given as numbers.
    pairs : list of (label, label)
        The secret pairs to protect.
    dropped : Dropped
        What was taken out of X.
    sets : tuple of CategorySet or None
        The declared categories of each column, whose values are then positions in
        them; None for a column of numbers.
    rounding : tuple of float or None
        The step to whose multiples each column was rounded; empty where none was.
    """

    values: np.ndarray
    names: list[str]
    secret: Groups
    prior: Groups | None
    weight: np.ndarray | None
    counts: np.ndarray | None
    ranges: np.ndarray
    column_weights: np.ndarray | None
    pairs: list[tuple[Hashable, Hashable]]
    dropped: Dropped
    sets: tuple[CategorySet | None, ...]
    rounding: tuple[float | None, ...] = ()
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)
    _making: Any = field(default_factory=RLock, init=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what was made of the rows under a key, or make it.

        The rows do not change; whoever calibrates them again (`skpuffer.reuse`) finds
        it here. Threads wait for each other.
        """
        with self._making:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    @cached_property
    def limits(self) -> np.ndarray:
        """The least and the largest value of each column, shape (2, k)."""
        return np.array([self.values.min(axis=0), self.values.max(axis=0)])

    @property
    def is_number(self) -> np.ndarray:
        """Which columns hold numbers, shape (k,)."""
        return np.array([one is None for one in self.sets])

    def distances(self, columns: list[int]) -> tuple[np.ndarray | None, ...]:
        """Return the distances between the categories of some columns."""
        chosen = [self.sets[column] for column in columns]
        return tuple(None if one is None else one.distances for one in chosen)

    def priors(self, columns: list[int]) -> list[Prior]:
        """Return the fitted priors of some columns; pairs that occur in each."""
        secret = self.secret
        every = len(columns) == len(self.names)
        values = self.values if every else self.values[:, columns]
        labels = self.prior.labels if self.prior else (None,)
        codes, width = secret.codes, len(secret.labels)
        if self.prior is not None:
            codes = self.prior.codes * width + codes
        parts = self._parts(values, codes, len(labels) * width)
        found = []
        for place, label in enumerate(labels):
            present = [
                (value, part)
                for value, part in zip(
                    secret.labels, parts[place * width :], strict=False
                )
                if part is not None
            ]
            secrets = [value for value, _ in present]
            pairs = tuple(
                (secrets.index(a), secrets.index(b))
                for a, b in self.pairs
                if a in secrets and b in secrets
            )
            conditionals = tuple(part for _, part in present)
            found.append(Prior(label, tuple(secrets), conditionals, pairs))
        return found

    def _parts(
        self, values: np.ndarray, codes: np.ndarray, n_groups: int
    ) -> list[Conditional | None]:
        """Return the distribution of each group's rows, None for one without rows."""
        if values.shape[1] == 1 and self.weight is None and self.counts is None:
            return [
                Conditional.from_rows(part, overwrite=True) if len(part) else None
                for part in _split(values[:, 0], codes, n_groups)
            ]
        found: list[Conditional | None] = []
        for group in range(n_groups):
            rows = np.flatnonzero(codes == group)
            weight, counts = (
                None if given is None else given[rows]
                for given in (self.weight, self.counts)
            )
            part = values.take(rows, axis=0)
            found.append(
                Conditional.from_rows(part, weight, counts, overwrite=True)
                if len(rows)
                else None
            )
        return found


def _split(values: np.ndarray, codes: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """Return the values of each group, shape (n, 1), a block that fits in cache at once."""
    parts = [np.empty((size, 1)) for size in _sizes(codes, n_groups)]
    filled = [0] * n_groups
    for start in range(0, len(values), _BLOCK):
        block, here = values[start : start + _BLOCK], codes[start : start + _BLOCK]
        for group, part in enumerate(parts):
            rows = np.flatnonzero(here == group)
            end = filled[group] + len(rows)
            part[filled[group] : end, 0] = block.take(rows)
            filled[group] = end
    return parts


def _sizes(codes: np.ndarray, n_groups: int) -> list[int]:
    if n_groups > 2:
        sizes: list[int] = np.bincount(codes, minlength=n_groups).tolist()
        return sizes
    # Faster, and the last has the rest.
    blocks = range(0, len(codes), _BLOCK)
    first = sum(int(np.count_nonzero(codes[i : i + _BLOCK] == 0)) for i in blocks)
    return [first, len(codes) - first][:n_groups]
