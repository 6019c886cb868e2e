"""Chunks of rows read to be counted.

What is read is checked as in fit: missing and infinite values, missing secrets and too
many of them are refused with their column and the number of rows behind them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array

from skpuffer._checks import column_position
from skpuffer._lazy import is_dask
from skpuffer._text import value_text
from skpuffer._validation._counted import Layout
from skpuffer._validation._distinct import NUMBERS, Column, Part, distinct, joined
from skpuffer._validation._frames import (
    Dropped,
    column_names,
    is_frame,
    take_columns,
)
from skpuffer._validation._groups import (
    group_rows,
    metadata_columns,
    refuse_misaligned,
)
from skpuffer._validation._mixed import read_labels
from skpuffer._validation._rows import to_multiples
from skpuffer._validation._values import (
    check_weights,
    readable,
    refuse_non_finite,
    with_dtype,
)
from skpuffer.exceptions import ParameterError


def read_counts(table: Any, count: Any) -> tuple[Any, np.ndarray]:
    """Take the column of counts out of a table.

    Parameters
    ----------
    table : frame
    count : str
        The name of the column.

    Returns
    -------
    rest : frame
        The other columns.
    counts : ndarray of shape (n,), int64

    Raises
    ------
    ParameterError, ValueError, TypeError
        It is no frame, or a count is missing, negative or no whole number.
    """
    if hasattr(table, "read_all") and not is_frame(table):
        table = table.read_all()
    if is_dask(table) or isinstance(
        nw.from_native(table, pass_through=True), nw.LazyFrame
    ):
        raise TypeError(
            f"table is a lazy frame ({type(table).__name__}): collect it first "
            "(.collect(), .compute() of Dask, or .df() of a DuckDB query)"
        )
    table = readable(table)
    if not is_frame(table):
        raise ParameterError(
            f"table is of type {type(table).__name__}: give a frame with one row a "
            "group, as a query returns it (.df(), .pl() or .arrow())"
        )
    place = take_columns(table, [count], "count")[2]
    series = nw.from_native(table, eager_only=True)[:, place.positions[0]]
    n_groups = len(series)
    missing = int(series.null_count())
    numbers = np.zeros(0) if missing else _as_numbers(series)
    missing += int(np.isnan(numbers).sum())
    if missing:
        raise ValueError(
            f"count {count!r} is missing in {missing} of {n_groups} rows of the table: "
            "leave these groups out, or count them"
        )
    strange = (numbers < 0) | (numbers != np.floor(numbers))
    if strange.any():
        raise ValueError(
            f"count {count!r} is no whole number from 0 upwards in {int(strange.sum())} "
            f"of {n_groups} rows of the table: give how many rows each group has"
        )
    if (numbers >= 2**62).any():
        raise ValueError(
            f"count {count!r} is 2**62 or more in some rows of the table: divide all "
            "counts by a common number"
        )
    return place.remove_from(table), numbers.astype(np.int64)


def read_weights(table: Any, weight: str) -> tuple[Any, np.ndarray]:
    """Take a column of sample weights out of a frame; they are checked later.

    Returns
    -------
    rest : frame
    weights : ndarray of shape (n,)
    """
    _, columns, place = take_columns(table, [weight], "weight")
    return place.remove_from(table), np.asarray(columns[0])


def _as_numbers(series: nw.Series[Any]) -> np.ndarray:
    """Return a column as integers or floats; −1 for what is no number."""
    values = series.to_numpy()
    if values.dtype.kind in "iuf":
        return values
    if series.dtype in (nw.Boolean, nw.String, nw.Categorical, nw.Enum):
        return np.full(len(values), -1)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return np.full(len(values), -1)


def read_chunk(
    X: Any,
    *,
    places: Mapping[str, Any],
    labels: Mapping[str, Any],
    columns: Any,
    grid: Any,
    weight: Any,
    counts: np.ndarray | None = None,
) -> tuple[Layout, Part] | None:
    """Read the rows of a chunk and count the distinct ones.

    Parameters
    ----------
    X : frame or array-like of shape (n, d)
    places : dict
        Where "secret" and "prior" are in X: names, positions or None.
    labels : dict
        The labels themselves where they are given beside X, or None.
    columns : list of names, or None
        Those to release; None for all others.
    grid : float, mapping or None
        The step of all columns of numbers, or of some.
    weight : array-like of shape (n,), optional
    counts : ndarray of shape (n,), int64, optional
        How many rows each stands for.

    Returns
    -------
    layout : Layout
    part : Part
        Or nothing at all, for a chunk without rows.

    Raises
    ------
    ParameterError, ValueError, TypeError
        As in fit.
    """
    X = readable(X)
    frame = is_frame(X)
    if not frame:
        X = check_array(
            with_dtype(X), dtype=None, ensure_all_finite=False, ensure_min_samples=0
        )
    every: list[Hashable] = column_names(X) if frame else list(range(X.shape[1]))
    names, found, taken = {}, {}, {}
    where: dict[str, tuple[Hashable, ...] | None] = {"secret": None, "prior": None}
    for parameter, spec in places.items():
        if spec is not None:
            names[parameter], found[parameter], dropped = take_columns(
                X, spec, parameter
            )
            where[parameter] = dropped.names if frame else dropped.positions
            taken[parameter] = dropped
        elif labels[parameter] is not None:
            refuse_misaligned(X, labels[parameter], parameter)
            names[parameter], found[parameter] = metadata_columns(
                labels[parameter], parameter
            )
    Dropped.union(list(taken.values()))
    reserved = [name for there in where.values() for name in there or ()]
    released = _released(X, every, reserved, columns)
    n_rows = X.shape[0]
    if n_rows == 0:
        return None
    groups = {
        parameter: group_rows(
            names[parameter],
            found[parameter],
            n_rows=n_rows,
            parameter=parameter,
            counts=counts,
        )
        for parameter in names
    }
    weight = _weights(weight, n_rows)
    called = tuple(str(c) if frame else f"x{c}" for c in released)
    source = nw.from_native(X, eager_only=True) if frame else X
    read = [
        _column(X, source, every.index(column), name, counts)
        for column, name in zip(released, called, strict=True)
    ]
    rounding = _steps(grid, called, read)
    layout = Layout(
        frame=frame,
        order=tuple(every) if columns is None else (*released, *reserved),
        columns=tuple(released),
        secret_columns=where["secret"],
        secret_names=groups["secret"].names,
        prior_columns=where["prior"],
        prior_names=groups["prior"].names if "prior" in groups else (),
        kinds=tuple(column.family for column in read),
        rounding=rounding,
        weighted=weight is not None,
    )
    read = [
        _rounded(column, name, step)
        for column, name, step in zip(read, called, rounding, strict=True)
    ]
    read += [
        Column("label", group.codes, group.labels)
        for group in (groups[key] for key in ("secret", "prior") if key in groups)
    ]
    there = None
    if weight is not None:
        # A weight of zero is a row that is not there.
        there = weight > 0
        read.append(Column("float", weight))
    if counts is not None:
        there = counts > 0
    if there is not None and not there.all():
        read = [column.take(there).occurring() for column in read]
        counts = None if counts is None else counts[there]
    return layout, distinct([joined([column]) for column in read], counts)


def _released(
    X: Any, every: list[Hashable], reserved: list[Hashable], columns: Any
) -> list[Hashable]:
    """Return the columns to release."""
    if columns is None:
        released = [column for column in every if column not in reserved]
    else:
        if not is_frame(X):
            raise ParameterError(
                f"columns={value_text(columns)} names columns, and X is an array "
                "without names: "
                "give a frame, or those columns of the array alone"
            )
        released = list(take_columns(X, columns, "columns")[2].names)
        both = [column for column in released if column in reserved]
        if both:
            raise ParameterError(
                f"columns names {both[0]!r}, which is the secret or the prior: only "
                "other columns are released"
            )
    if not released:
        raise ParameterError(
            "X has no column to release, beside those that secret and prior name"
        )
    return released


def _weights(weight: Any, n_rows: int) -> np.ndarray | None:
    """Return weights; unlike those of a whole sample they may all be zero."""
    given = np.asarray(weight)
    if given.dtype.kind in "iuf" and given.shape == (n_rows,) and not given.any():
        return np.zeros(n_rows)
    return check_weights(weight, n_rows)


def _column(
    X: Any, source: Any, place: int, name: str, counts: np.ndarray | None
) -> Column:
    """Read one column to release, refusing missing and infinite values.

    `source` is X itself where that is an array, and the frame of narwhals otherwise.
    """
    if source is X:
        column = X[:, place]
        if column.dtype.kind in "iuf":
            return _numbers(column, name, counts)
        if column.dtype.kind == "b":
            return Column("bool", column)
        return _labels(X, place, name, counts)
    series = source[:, place]
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        return _labels(X, place, name, counts)
    if series.null_count():
        missing = series.is_null().to_numpy()
        values = np.where(missing, np.nan, 0.0)
        refuse_non_finite(values[:, np.newaxis], [name], counts)
    values = series.to_numpy()
    if series.dtype == nw.Boolean:
        return Column("bool", values.astype(np.bool_))
    return _numbers(values, name, counts)


def _numbers(values: np.ndarray, name: str, counts: np.ndarray | None) -> Column:
    if values.dtype.kind in "iu":
        if values.dtype == np.uint64 and len(values) and values.max() >= 2**63:
            raise ValueError(
                f"column {name!r} has whole numbers from 2**63 upwards, which are told "
                "apart by no float: turn it into float64, or into text"
            )
        return Column("int", values.astype(np.int64, copy=False))
    floats = values.astype(np.float64, copy=False)
    refuse_non_finite(floats[:, np.newaxis], [name], counts)
    # A zero has no sign.
    return Column("float", floats + 0.0)


def _labels(X: Any, place: int, name: str, counts: np.ndarray | None) -> Column:
    """Read a column of anything but numbers."""
    coded = read_labels(X, place, name, counts)
    codes, labels = coded.codes, coded.labels
    values: Any = X.iloc[:, place] if isinstance(X, pd.DataFrame) else None
    values = X[:, place] if isinstance(X, np.ndarray) else values
    if values is not None and values.dtype == object:
        values = np.asarray(values)
        if len(set(map(type, values))) > 1:
            # 1, 1.0 and True are equal, and not the same label.
            keys = ((type(value).__name__, value) for value in values)
            codes, found = pd.factorize(np.fromiter(keys, object, len(values)))
            labels = [label for _, label in found]
    times = all(isinstance(label, (pd.Timestamp, pd.Timedelta)) for label in labels)
    declared = None if coded.declared is None else tuple(coded.declared)
    return Column("time" if times else "label", codes, tuple(labels), declared)


def _steps(
    grid: Any, names: Sequence[str], columns: Sequence[Column]
) -> tuple[float | None, ...]:
    """Return the step of each column; None for those that are not rounded."""
    if not isinstance(grid, Mapping):
        return tuple(grid if one.kind in NUMBERS else None for one in columns)
    steps: list[float | None] = [None] * len(names)
    for column, step in grid.items():
        place = column_position(column, names, "grid")
        if columns[place].kind not in NUMBERS:
            raise ParameterError(
                f"grid names {column!r}, which holds {columns[place].family}: only "
                "numbers are rounded"
            )
        steps[place] = step
    return tuple(steps)


def _rounded(column: Column, name: str, step: float | None) -> Column:
    if step is None:
        return column
    values = column.values.astype(np.float64)[:, np.newaxis]
    return Column("float", to_multiples(values, [step], [name])[:, 0])
