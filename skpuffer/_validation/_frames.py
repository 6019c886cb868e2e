"""Data frames of any kind: take columns out, and build frames like them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.sparse import issparse

from skpuffer._text import MOST_ITEMS, value_text
from skpuffer.exceptions import ParameterError


@dataclass(frozen=True)
class Dropped:
    """The columns that fit took out of its input: secret and prior.

    Attributes
    ----------
    names : tuple
        Their names, where the input was a frame.
    positions : tuple of int
        Their positions.
    width : int
        The number of columns that fit was given.
    """

    names: tuple[Hashable, ...] = ()
    positions: tuple[int, ...] = ()
    width: int = 0

    @classmethod
    def union(cls, parts: Sequence[Dropped]) -> Dropped:
        """Return all the columns of several parameters; a column may serve once.

        Raises
        ------
        ParameterError
            Two parameters name the same column.
        """
        names = [name for part in parts for name in part.names]
        positions = [position for part in parts for position in part.positions]
        for named in (names, positions):
            if len(set(named)) != len(named):
                raise ParameterError(
                    f"secret and prior name the same column of X: {named!r}"
                )
        width = max((part.width for part in parts), default=0)
        return cls(tuple(names), tuple(positions), width)

    def remove_from(self, X: Any) -> Any:
        """Return X without these columns, whether or not it has them."""
        if self.names and is_frame(X):
            present = [name for name in self.names if name in column_names(X)]
            return without_columns(X, present) if present else X
        if self.positions and not is_frame(X) and not issparse(X):
            array = np.asarray(X)
            if array.ndim == 2 and array.shape[1] == self.width:
                return np.delete(array, self.positions, axis=1)
        return X

    def names_without(self, X: Any, count: int) -> list[str]:
        """Return the names of X's `count` columns, which no longer has these.

        Columns of an array are called by their position in what fit was given.
        """
        if is_frame(X):
            return [str(name) for name in column_names(X)]
        return default_names(self, count)

    def remove_names(self, names: Sequence[str]) -> list[str]:
        """Return feature names without these columns."""
        dropped = {str(name) for name in self.names}
        left = [name for name in names if name not in dropped]
        if len(left) == self.width:
            # Names that were made up for a frame or an array without any.
            left = [name for i, name in enumerate(left) if i not in self.positions]
        return left


def default_names(dropped: Dropped, count: int) -> list[str]:
    """Return what the columns of an array are called: x and their position."""
    every = range(count + len(dropped.positions))
    return [f"x{i}" for i in every if i not in dropped.positions]


def is_frame(X: Any) -> bool:
    """Whether X is an eager data frame that narwhals knows."""
    if isinstance(X, (np.ndarray, pd.DataFrame)):
        return isinstance(X, pd.DataFrame)  # narwhals takes its time to say so
    return isinstance(
        nw.from_native(X, eager_only=True, pass_through=True), nw.DataFrame
    )


def refuse_repeated_names(X: Any, called: str) -> None:
    """Refuse a frame with several columns of one name, before narwhals does.

    Raises
    ------
    ValueError
        Names them, and the frame as it is `called`.
    """
    # A pyarrow table keeps columns and their names apart.
    attribute = "columns" if isinstance(X, pd.DataFrame) else "column_names"
    names = Counter(getattr(X, attribute, ()))
    twice = sorted(str(name) for name, times in names.items() if times > 1)
    if twice:
        raise ValueError(
            f"{called} has several columns named {', '.join(twice)}: rename them"
        )


def unmasked(values: Any) -> Any:
    """Return a masked array as one that is missing where it was masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if values.dtype.kind == "f":
        return values.filled(np.nan)
    filled = values.data.astype(object)
    filled[np.ma.getmaskarray(values)] = None
    return filled


def column_names(X: Any) -> list[Hashable]:
    """Return the names of a frame's columns, as they are."""
    return list(nw.from_native(X, eager_only=True).columns)


def pandas_frame(
    columns: Sequence[Any], names: Sequence[Hashable], index: Any = None
) -> pd.DataFrame:
    """Build a pandas frame of columns, whose names may be anything, even the same."""
    # The columns are nobody else's: a copy would be one too many.
    frame = pd.DataFrame(dict(enumerate(columns)), index=index, copy=False)
    frame.columns = names if isinstance(names, pd.Index) else pd.Index(names)
    return frame


def columns_of(X: Any) -> list[nw.Series[Any]]:
    """Return the columns of a frame, in order."""
    if isinstance(X, pd.DataFrame):
        # By position: a name may be a number, or part of a longer one.
        columns = [X.iloc[:, place] for place in range(X.shape[1])]
        return [nw.from_native(column, series_only=True) for column in columns]
    frame = nw.from_native(X, eager_only=True)
    return [frame[name] for name in frame.columns]


def as_column(values: Any) -> nw.Series[Any] | None:
    """Return a series of any kind as one of narwhals; nothing for anything else."""
    found = nw.from_native(values, series_only=True, pass_through=True)
    return found if isinstance(found, nw.Series) else None


def without_columns(X: Any, names: Sequence[Hashable]) -> Any:
    """Return a frame without the named columns."""
    if isinstance(X, pd.DataFrame):
        return X.drop(columns=list(names))
    return nw.from_native(X, eager_only=True).drop(*names).to_native()


def take_columns(
    X: Any, spec: Any, parameter: str
) -> tuple[list[str], list[Any], Dropped]:
    """Take the columns out of X that a parameter names.

    Parameters
    ----------
    X : frame or array-like
    spec : str, int, or list or tuple of them
        Names for a frame, positions for an array.
    parameter : str
        Name of the parameter, for messages.

    Returns
    -------
    names : list of str
    columns : list of 1-D arrays, or series of the kind of X
    dropped : Dropped

    Raises
    ------
    ParameterError
        There is no such column.
    """
    wanted = list(spec) if isinstance(spec, (list, tuple)) else [spec]
    if isinstance(spec, tuple) and is_frame(X) and spec in column_names(X):
        wanted = [spec]  # the name of one column that has several levels
    try:
        each_once = 0 < len(wanted) == len(set(wanted))
    except TypeError:
        raise ParameterError(
            f"{parameter} must be the name or position of a column, or a list of them, "
            f"got {type(spec).__name__}; the labels themselves go to fit: "
            f"fit(X, {parameter}=labels)"
        ) from None
    if not each_once:
        raise ParameterError(
            f"{parameter}={value_text(spec)} must name at least one column, each once; "
            f"labels go to fit: fit(X, {parameter}=labels)"
        )
    if is_frame(X):
        known = column_names(X)
        for name in wanted:
            if name not in known:
                raise ParameterError(
                    f"{_named(parameter, name, wanted)} is not a column of X; "
                    f"{_hint(name, known)}{_labels_too(parameter, wanted)}"
                )
        places = tuple(known.index(name) for name in wanted)
        every = columns_of(X)
        columns = [every[place].to_native() for place in places]
        dropped = Dropped(tuple(wanted), places, len(known))
        return [str(name) for name in wanted], columns, dropped
    array = np.asarray(X)
    if array.ndim != 2:
        raise ParameterError(
            f"{parameter}={value_text(spec)} names a column, but X has {array.ndim} "
            "dimension(s); "
            "give a frame or a 2-D array"
        )
    width = array.shape[1]
    positions = []
    for position in wanted:
        if isinstance(position, bool) or not isinstance(position, (int, np.integer)):
            raise ParameterError(
                f"{_named(parameter, position, wanted)} is a column name, but X has none "
                f"({type(X).__name__}; a step before this one may have returned an "
                "array): give a position, or a frame (set_output(transform='pandas'))"
            )
        if not -width <= position < width:
            raise ParameterError(
                f"{_named(parameter, position, wanted)} is no position in X, which has "
                f"{width} columns"
            )
        positions.append(int(position) % width)
    if len(set(positions)) != len(positions):
        raise ParameterError(f"{parameter}={value_text(spec)} names one column twice")
    names = [f"x{position}" for position in positions]
    columns = [array[:, position] for position in positions]
    return names, columns, Dropped(positions=tuple(positions), width=width)


def _named(parameter: str, name: Hashable, wanted: list[Any]) -> str:
    """Write which name is unknown; of a long list, which may be labels, only where."""
    if len(wanted) <= MOST_ITEMS:
        return f"{parameter}={value_text(name)}"
    place = next(i for i, one in enumerate(wanted) if one is name)
    return f"item {place} of {parameter} ({value_text(wanted)})"


def _labels_too(parameter: str, wanted: list[Any]) -> str:
    if len(wanted) <= MOST_ITEMS:
        return ""
    return f"; labels go to fit: fit(X, {parameter}=labels)"


def _hint(name: Hashable, known: list[Hashable]) -> str:
    close = get_close_matches(str(name), [str(other) for other in known], n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    names = ", ".join(repr(other) for other in known[:20])
    return f"its columns are {names}{', …' if len(known) > 20 else ''}"
