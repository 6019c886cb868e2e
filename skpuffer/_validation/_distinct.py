"""Rows told apart and counted: columns of a few kinds, and their distinct rows.

A `Part` is a set of distinct rows with their counts. Parts add up: the order in which
they do changes nothing, kinds of columns included. Arrays alone; no frame is known here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skpuffer._validation._labels import in_order

# A column of whole numbers so narrow has a code for each number in between.
_NARROW = 2**16
# Groups within which the values of a single wide column are sorted.
_GROUPS = 2**12
_KEYS = 2**62

NUMBERS = ("int", "float")


@dataclass(frozen=True, eq=False)
class Column:
    """One column of rows.

    Attributes
    ----------
    kind : str
        "int", "float" or "bool": the values themselves, as int64, float64 or bool.
        "label" or "time": positions in `labels`.
    values : ndarray of shape (n,)
    labels : tuple of hashable
        In an order that depends on nothing but the labels.
    declared : tuple of hashable, or None
        The categories that the type of the column listed, where it listed any.
    """

    kind: str
    values: np.ndarray
    labels: tuple[Hashable, ...] = ()
    declared: tuple[Hashable, ...] | None = None

    @property
    def family(self) -> str:
        """What the column holds in words: what two chunks must agree about."""
        words = {"bool": "truth values", "label": "labels", "time": "times"}
        return words.get(self.kind, "numbers")

    def take(self, rows: np.ndarray | list[int]) -> Column:
        """Return the column of some rows."""
        return replace(self, values=self.values[rows])

    def occurring(self) -> Column:
        """Return the column without labels that no row has."""
        if not self.labels:
            return self
        seen, codes = np.unique(self.values, return_inverse=True)
        return replace(
            self, values=codes, labels=tuple(self.labels[code] for code in seen)
        )


@dataclass(frozen=True, eq=False)
class Part:
    """Rows with counts: columns to release, then secret, prior and weight if any.

    Attributes
    ----------
    columns : tuple of Column
    counts : ndarray of shape (n,), int64
        Positive.
    """

    columns: tuple[Column, ...]
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def n_rows(self) -> int:
        """The sum of the counts, which may be beyond int64."""
        if len(self) * int(self.counts.max(initial=0)) < 2**63:
            return int(self.counts.sum())
        return sum(self.counts.tolist())


def joined(columns: Sequence[Column]) -> Column:
    """Return the rows of several columns of one family below each other."""
    kinds = {column.kind for column in columns}
    if kinds <= set(NUMBERS):
        kind = "float" if "float" in kinds else "int"
        alike: list[np.ndarray] = [
            c.values.astype(_dtype(kind), copy=False) for c in columns
        ]
        return Column(kind, _concatenated(alike))
    values = [column.values for column in columns]
    if kinds == {"bool"}:
        return Column("bool", _concatenated(values))
    declared = columns[0].declared
    if any(column.declared != declared for column in columns):
        declared = None
    places: dict[Any, int] = {}
    codes = []
    for column in columns:
        # 1, 1.0 and True are equal, and not the same label.
        keys = [(type(label).__name__, label) for label in column.labels]
        codes.append([places.setdefault(key, len(places)) for key in keys])
    found = [label for _, label in places]
    order = in_order(found)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    recoded = [_looked_up(rank[c], v) for c, v in zip(codes, values, strict=True)]
    labels = tuple(found[place] for place in order)
    return Column(columns[0].kind, _concatenated(recoded), labels, declared)


def _concatenated(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _looked_up(table: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return table[codes], and the codes themselves where that changes nothing."""
    return codes if (table == np.arange(len(table))).all() else table[codes]


def _first_of_runs(values: np.ndarray) -> np.ndarray:
    """Return where each run of equal values starts."""
    new = np.empty(len(values), dtype=bool)
    new[:1] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return np.flatnonzero(new)


def added(parts: Sequence[Part]) -> Part:
    """Return the distinct rows of several parts, with the sums of their counts."""
    if len(parts) == 1:
        return parts[0]
    columns = [joined(same) for same in zip(*(p.columns for p in parts), strict=True)]
    return distinct(columns, np.concatenate([part.counts for part in parts]))


def sorted_rows(part: Part) -> Part:
    """Return the rows in order: by the first column, then the second, ..."""
    order = np.lexsort([column.values for column in part.columns[::-1]])
    columns = tuple(column.take(order) for column in part.columns)
    return Part(columns, part.counts[order])


def distinct(columns: Sequence[Column], counts: np.ndarray | None) -> Part:
    """Collect equal rows.

    Parameters
    ----------
    columns : sequence of Column
    counts : ndarray of shape (n,), int64, or None
        How many rows each stands for; one by default. Their sum fits int64.
    """
    n = len(columns[0].values)
    if n == 0:
        return Part(tuple(columns), np.zeros(0, dtype=np.int64))
    coded = [_narrow(column, n) for column in columns]
    wide = [place for place, one in enumerate(coded) if one is None]
    narrow = [one for one in coded if one is not None]
    size = 1
    for _, width, _ in narrow:
        size *= width
    if not wide and size <= max(_NARROW, 4 * n):
        return _tabulated(columns, narrow, size, counts)
    if len(wide) == 1 and size <= min(_GROUPS, n) and counts is None:
        return _sorted_in_groups(columns, wide[0], narrow, size)
    for place in wide:
        codes, found = pd.factorize(columns[place].values)
        coded[place] = codes, len(found), 0
    key, span = np.zeros(n, dtype=np.int64), 1
    for one in coded:
        assert one is not None
        codes, width, _ = one
        if span * width >= _KEYS:
            key, span = _compressed(key)
        if span * width >= _KEYS:
            codes, width = _compressed(codes)
        key = key * width + codes
        span *= width
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = _first_of_runs(key)
    if counts is None:
        sums = np.diff(starts, append=n)
    else:
        sums = np.add.reduceat(counts[order], starts)
    rows = order[starts]
    return Part(tuple(column.take(rows) for column in columns), sums)


def _dtype(kind: str) -> type:
    return {"int": np.int64, "float": np.float64, "bool": np.bool_}.get(kind, np.intp)


def _narrow(column: Column, n: int) -> tuple[np.ndarray, int, int] | None:
    """Return codes, how many there may be, and the value of the first; or nothing.

    Nothing for numbers that are not whole or too far apart.
    """
    values = column.values
    if column.kind in ("label", "time"):
        return values, len(column.labels), 0
    if column.kind == "bool":
        return values, 2, 0
    low, high = values.min(), values.max()
    # As Python's integers, which do not overflow.
    if column.kind == "float" and not (low.is_integer() and high.is_integer()):
        return None
    low, high = int(low), int(high)
    if high - low >= max(_NARROW, 2 * n):
        return None
    if column.kind == "float":
        if max(abs(low), abs(high)) >= 2**53 or not (values == np.floor(values)).all():
            return None
        return (values - low).astype(np.int64), high - low + 1, low
    return values - low, high - low + 1, low


def _compressed(codes: np.ndarray) -> tuple[np.ndarray, int]:
    seen, codes = np.unique(codes, return_inverse=True)
    return codes, len(seen)


def _key(coded: Sequence[tuple[np.ndarray, int, int]], n: int) -> np.ndarray:
    """Return one number a row for several codes."""
    key = np.zeros(n, dtype=np.int64)
    for codes, width, _ in coded:
        key *= width
        key += codes
    return key


def _decoded(
    columns: Sequence[Column],
    coded: Sequence[tuple[np.ndarray, int, int]],
    key: np.ndarray,
) -> list[Column]:
    """Return the columns whose codes are in a key, in their order."""
    found = []
    for column, (_, width, low) in zip(columns[::-1], coded[::-1], strict=True):
        key, code = np.divmod(key, width)
        values: np.ndarray = (code + low).astype(_dtype(column.kind))
        found.append(replace(column, values=values))
    return found[::-1]


def _tabulated(
    columns: Sequence[Column],
    coded: Sequence[tuple[np.ndarray, int, int]],
    size: int,
    counts: np.ndarray | None,
) -> Part:
    """Count in a table with a cell for every possible row."""
    key = _key(coded, len(columns[0].values))
    if counts is None:
        table = np.bincount(key, minlength=size)
    else:
        table = np.zeros(size, dtype=np.int64)
        np.add.at(table, key, counts)
    cells = np.flatnonzero(table)
    return Part(tuple(_decoded(columns, coded, cells)), table[cells])


def _sorted_in_groups(
    columns: Sequence[Column],
    wide: int,
    coded: Sequence[tuple[np.ndarray, int, int]],
    size: int,
) -> Part:
    """Sort the values of one column within the groups that the others make."""
    n = len(columns[0].values)
    key = _key(coded, n).astype(np.uint16)
    # Sorting short integers stably takes a few passes over them.
    values = columns[wide].values[np.argsort(key, kind="stable")]
    sizes = np.bincount(key, minlength=size)
    groups = np.flatnonzero(sizes)
    found, sums, lengths = [], [], []
    for rows in np.split(values, np.cumsum(sizes[groups])[:-1]):
        rows.sort()
        starts = _first_of_runs(rows)
        found.append(rows[starts])
        sums.append(np.diff(starts, append=len(rows)))
        lengths.append(len(starts))
    others = [column for place, column in enumerate(columns) if place != wide]
    result = [
        replace(one, values=np.repeat(one.values, lengths))
        for one in _decoded(others, coded, groups)
    ]
    result.insert(wide, replace(columns[wide], values=np.concatenate(found)))
    return Part(tuple(result), np.concatenate(sums))
