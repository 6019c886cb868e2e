"""What reading was given, in a form that tells equal data from other data, exactly.

Folds of a search are copies: only what they hold can tell that they are the same. Two
`Contents` are the same if types, names and every value are, bit by bit. What is not
known to be comparable so, or to stay as it is, has none.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer._validation._frames import is_frame

# Values that never change and are compared by their type and their text.
_PLAIN = (str, bytes, int, float, bool, type(None))
_TEXT = (nw.String, nw.Categorical, nw.Enum)


@dataclass(frozen=True, eq=False)
class Contents:
    """Data as arrays, with all else that reading may depend on.

    Attributes
    ----------
    kind : hashable
        Types, shapes and names.
    parts : tuple of arrays or of copies
        The values. Arrays may be those that the caller holds: see `copied`.
    """

    kind: Hashable
    parts: tuple[Any, ...]

    @classmethod
    def of(cls, data: Any) -> Contents | None:
        """Return the contents of a frame, an array, a list of labels, or nothing.

        Returns
        -------
        Contents or None
            None where equal data could not be recognised with certainty.
        """
        if data is None:
            return cls(None, ())
        if type(data) is np.ndarray:
            return cls._joined(type(data), {"": data})
        if isinstance(data, (list, tuple)):
            labels = np.array([*data, None], dtype=object)[:-1]
            return cls._joined(type(data), {"": labels})
        if isinstance(data, pd.Series):
            return cls._joined(type(data), {data.name: data})
        if isinstance(data, pd.DataFrame):
            if not data.columns.is_unique:
                return None
            columns = {
                name: data.iloc[:, place] for place, name in enumerate(data.columns)
            }
            return cls._joined(type(data), columns)
        names = getattr(data, "column_names", ())
        if len(set(names)) < len(names):
            return None  # Whoever reads it says so.
        if is_frame(data):
            frame = nw.from_native(data, eager_only=True)
            return cls._joined(
                type(data), {name: frame[name] for name in frame.columns}
            )
        return None

    @classmethod
    def _joined(cls, container: type, columns: Mapping[Any, Any]) -> Contents | None:
        kinds: list[Hashable] = [container.__module__, container.__qualname__]
        parts: list[Any] = []
        for name, column in columns.items():
            if type(name) not in _PLAIN:
                return None
            if _lacks_values(column):
                return None
            kind, values = _values(column)
            kinds.append((type(name), name, kind))
            parts += values
        return cls(tuple(kinds), tuple(parts))

    def copied(self) -> Contents | None:
        """Return the same in arrays of its own: the caller may write to his.

        None if there are objects among the values that may be written to themselves.
        """
        if not all(map(_is_plain, self.parts)):
            return None
        return Contents(self.kind, tuple(map(_copy, self.parts)))

    def same_as(self, other: Contents) -> bool:
        """Whether every value is the same."""
        if self.kind != other.kind or len(self.parts) != len(other.parts):
            return False
        return all(map(_same_values, self.parts, other.parts))


def _lacks_values(column: Any) -> bool:
    """Whether a column has values missing that an array of it would not tell apart.

    As numbers they are NaN, and whole numbers beside them are floats, which have one
    value for several of 2^53 and more. Text is compared as it is.
    """
    if isinstance(column, nw.Series):
        return column.dtype not in _TEXT and column.null_count() > 0
    if not isinstance(column, pd.Series) or isinstance(column.dtype, np.dtype):
        return False
    if isinstance(column.dtype, (pd.CategoricalDtype, pd.StringDtype)):
        return False
    return bool(column.isna().any())


def _values(column: Any) -> tuple[Hashable, list[Any]]:
    """Return what there is to know of a column but its values, and those."""
    if isinstance(column, np.ndarray):
        return (column.dtype.str, column.shape), [column]
    if isinstance(column, nw.Series):
        if column.dtype in _TEXT:
            return str(column.dtype), [_Text(column.to_native()), _categories(column)]
        return str(column.dtype), [column.to_numpy()]
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        kind = ("category", dtype.ordered, str(dtype.categories.dtype))
        return kind, [column.cat.codes.to_numpy(), dtype.categories.to_numpy()]
    if isinstance(dtype, pd.StringDtype):
        return (str(dtype), dtype.storage), [_Text(column.array)]
    return str(dtype), [column.to_numpy()]


def _categories(column: nw.Series[Any]) -> np.ndarray:
    """Return the categories that the type of a column lists, in their order."""
    known = None
    if column.dtype == nw.Enum:
        known = getattr(column.dtype, "categories", None)
        known = known or column.cat.get_categories()
    return np.array(list(known or ()), dtype=object)


@dataclass(frozen=True, eq=False)
class _Text:
    """A column of text that its own library compares, much faster than its objects."""

    column: Any

    def same_as(self, other: _Text) -> bool:
        return bool(self.column.equals(other.column))


class _Bits:
    """A copy of an array of numbers, for no more than being compared with others."""

    def __init__(self, values: np.ndarray) -> None:
        self.kind = values.dtype, values.shape
        # Bytes that Python itself compares, as fast as memory is read.
        self.content = bytearray(_in_order(values))

    def same_as(self, other: _Bits | np.ndarray) -> bool:
        """Whether other values are the same to the last bit."""
        if isinstance(other, _Bits):
            return self.kind == other.kind and self.content == other.content
        if self.kind != (other.dtype, other.shape):
            return False
        return bool(self.content == _in_order(other))


def _in_order(values: np.ndarray) -> memoryview:
    """Return the bytes of an array, in the order of its values."""
    flat = np.ascontiguousarray(values).reshape(-1)
    # Dates have no buffer of their own.
    return flat.view(np.uint8).data


def _is_plain(part: Any) -> bool:
    """Whether what an array holds stays as it is."""
    if isinstance(part, _Text) or part.dtype.kind in "biufcUSmM":
        return True
    objects = part.ravel().tolist() if part.dtype == object else [part]
    return set(map(type, objects)) <= set(_PLAIN)


def _copy(part: Any) -> Any:
    if isinstance(part, np.ndarray):
        return part.copy() if part.dtype == object else _Bits(part)
    # A name for it in each library; what has none cannot be written to.
    for name in ("clone", "copy"):
        if hasattr(part.column, name):
            return _Text(getattr(part.column, name)())
    return part


def _same_values(first: Any, second: Any) -> bool:
    """Compare two parts bit by bit; objects by type and value."""
    if isinstance(first, _Text) or isinstance(second, _Text):
        return type(first) is type(second) and first.same_as(second)
    if isinstance(first, _Bits):
        return first.same_as(second)
    if isinstance(second, _Bits):
        return second.same_as(first)
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if first.dtype == object:
        return _same_objects(first.ravel().tolist(), second.ravel().tolist())
    return _Bits(first).same_as(second)


def _same_objects(first: list[Any], second: list[Any]) -> bool:
    # Copies of a fold share their objects.
    if all(map(is_, first, second)):
        return True
    # Text, since 1 and True are equal, and so are 0.0 and -0.0.
    return list(map(type, first)) == list(map(type, second)) and all(
        one is other or (one == other and repr(one) == repr(other))
        for one, other in zip(first, second, strict=True)
    )
