"""Released numbers and codes, written as the columns that came.

A column keeps the type that it had in X; categories of pandas are the declared ones,
so that a type never carries labels of the rows along. Where another kind of frame is
asked for, a column gets the type there that comes closest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer._validation._categories import CategorySet
from skpuffer._validation._frames import (
    column_names,
    columns_of,
    is_frame,
    pandas_frame,
)

Column = nw.Series[Any]


def written_like(
    released: np.ndarray, X: Any, sets: Sequence[CategorySet | None], asked: Any = None
) -> Any:
    """Return released numbers and codes as a frame or an array.

    Parameters
    ----------
    released : ndarray of shape (n, k)
        Codes are positions in the column's set.
    X : frame or array-like
        Without secret and prior columns.
    sets : sequence of CategorySet or None
    asked : frame, optional
        Of the kind to return; anything else asks for that of X.

    Returns
    -------
    frame or ndarray of shape (n, k)
        With the names and the index of X. Numbers that came as float32 are float32,
        all others float64.
    """
    columns: list[Column | None]
    if is_frame(X):
        names, columns = column_names(X), list(columns_of(X))
        kind = asked if is_frame(asked) else X
    elif is_frame(asked):
        X, kind = np.asarray(X), asked
        names = [f"x{place}" for place in range(len(sets))]
        columns = [None] * len(sets)
    else:
        return _array(released, np.asarray(X), sets)
    narrow = [
        X.dtype == np.float32 if column is None else column.dtype == nw.Float32
        for column in columns
    ]
    coded = zip(released.T, sets, narrow, strict=True)
    parts: list[Any] = [
        values.astype(np.float32 if small else np.float64, copy=False)
        if one is None
        else (values.astype(np.intp), one)
        for values, one, small in coded
    ]
    if isinstance(kind, pd.DataFrame):
        index = X.index if isinstance(X, pd.DataFrame) else None
        series = [
            _for_pandas(part[0], part[1], column) if isinstance(part, tuple) else part
            for part, column in zip(parts, columns, strict=True)
        ]
        called: Any = X.columns if isinstance(X, pd.DataFrame) else names
        return pandas_frame(series, called, index)
    backend = nw.get_native_namespace(kind)
    plain = {
        str(name): part[0] if isinstance(part, tuple) else part
        for name, part in zip(names, parts, strict=True)
    }
    labelled = [
        _for_others(part[0], part[1], str(name), column, backend)
        for name, part, column in zip(names, parts, columns, strict=True)
        if isinstance(part, tuple)
    ]
    frame = nw.from_dict(plain, backend=backend)
    return frame.with_columns(*labelled).to_native() if labelled else frame.to_native()


def _for_pandas(codes: np.ndarray, one: CategorySet, column: Column | None) -> Any:
    """Return labels as a column of pandas."""
    given = list(one.labels)
    native = None if column is None else column.to_native()
    dtype: Any = None
    if isinstance(native, pd.Series):
        dtype = native.dtype
    elif column is not None:
        if column.dtype in (nw.Categorical, nw.Enum):
            dtype = pd.CategoricalDtype(given, ordered=column.dtype == nw.Enum)
        elif column.dtype.is_numeric():
            dtype = column[:0].to_numpy().dtype
    if isinstance(dtype, pd.CategoricalDtype):
        kind = pd.CategoricalDtype(given, ordered=dtype.ordered)
        return pd.Categorical.from_codes(codes, dtype=kind)
    # Labels alone are cast: a few, and every one is looked at. A type that cannot hold
    # those that were declared has no place here, and they come out as they are.
    labels: pd.Series[Any] = pd.Series(given)
    try:
        cast = labels if dtype is None else labels.astype(dtype)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        cast = labels
    if cast.astype(object).tolist() != given:
        cast = labels
    return cast.array.take(codes)


def _for_others(
    codes: np.ndarray, one: CategorySet, name: str, column: Column | None, backend: Any
) -> Column:
    """Return labels as a column of polars or pyarrow."""
    given = list(one.labels)
    native: Any = None if column is None else column.to_native()
    if hasattr(backend, "DictionaryArray"):
        found = _for_arrow(codes, given, native.type, backend)
        column = nw.from_native(found, series_only=True)
        return column.alias(name)
    dtype = None if column is None else column.dtype
    category = dtype in (nw.Categorical, nw.Enum)
    text = all(isinstance(label, str) for label in given)
    if category and text and (dtype == nw.Enum or isinstance(native, pd.Series)):
        # Made anew: that of X may have other labels, in the order of its rows.
        labels = _new(name, given, backend).to_native().cast(backend.Enum(given))
    else:
        labels = _wide_enough(name, given, dtype, backend).to_native()
    # Older narwhals take a list alone.
    return nw.from_native(labels.gather(codes), series_only=True)


def _for_arrow(codes: np.ndarray, given: list[Any], dtype: Any, pyarrow: Any) -> Any:
    """Return labels as a column of pyarrow: of a type, or one that holds them, or text.

    Only pyarrow itself comes with tables of pyarrow.
    """
    listed = hasattr(dtype, "value_type") and hasattr(dtype, "ordered")
    kind = dtype.value_type if listed else dtype
    for values, wanted in ((given, kind), (given, None), (map(str, given), None)):
        try:
            labels = pyarrow.array(values, type=wanted)
            if listed:
                narrow = pyarrow.array(codes.astype(np.int32))
                found = pyarrow.DictionaryArray.from_arrays(
                    narrow, labels, ordered=dtype.ordered
                )
            else:
                found = labels.take(pyarrow.array(codes))
        except (pyarrow.ArrowException, OverflowError):
            continue
        break
    return pyarrow.chunked_array([found])


def _wide_enough(name: str, given: list[Any], dtype: Any, backend: Any) -> Column:
    """Build a column of labels: of a type, or of whole numbers, or else of text."""
    whole = all(isinstance(label, int) for label in given)
    for kind in (dtype, nw.Int64) if whole else (dtype,):
        try:
            return _new(name, given, backend, kind)
        except (TypeError, ValueError, OverflowError):
            continue
    return _new(name, [str(label) for label in given], backend)


def _new(name: str, values: list[Any], backend: Any, dtype: Any = None) -> Column:
    schema = None if dtype is None else {name: dtype}
    return nw.from_dict({name: values}, schema, backend=backend)[name]


def _array(
    released: np.ndarray, X: np.ndarray, sets: Sequence[CategorySet | None]
) -> np.ndarray:
    """Build an array: of the type of X where that can hold what is released."""
    labels: list[tuple[Any, ...]] = [one.labels for one in sets if one is not None]
    if not labels:
        dtype = X.dtype if X.dtype == np.float32 else np.float64
        return released.astype(dtype, copy=False)
    dtype = X.dtype
    if dtype.kind in "US":
        width = max(len(label) for one in labels for label in one)
        dtype = np.dtype(f"{dtype.kind}{width}")
    elif dtype.kind in "iub" and len(labels) < len(sets):
        # Numbers with noise are no longer whole.
        dtype = np.dtype(np.float64)
    if any(_cast(one, dtype) is None for one in labels):
        dtype = np.dtype(object)
    out = np.empty(released.shape, dtype=dtype)
    for place, (values, one) in enumerate(zip(released.T, sets, strict=True)):
        if one is None:
            out[:, place] = values
        else:
            cast = _cast(one.labels, dtype)
            assert cast is not None
            out[:, place] = cast[values.astype(np.intp)]
    return out


def _cast(labels: Sequence[Any], dtype: np.dtype) -> np.ndarray | None:
    """Return labels as a type, or nothing where it does not hold them all."""
    if dtype.kind == "O":
        cast = np.empty(len(labels), dtype=object)
        cast[:] = labels
        return cast
    try:
        cast = np.array(labels).astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return None
    return cast if cast.tolist() == list(labels) else None
