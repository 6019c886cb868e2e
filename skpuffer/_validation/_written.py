"""Released numbers and codes, written as the columns that came.

A column keeps the type that it had in X; categories of pandas are the declared ones,
so that a type never carries labels of the rows along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer._validation._categories import CategorySet
from skpuffer._validation._frames import is_frame


def mixed_like(released: np.ndarray, X: Any, sets: Sequence[CategorySet | None]) -> Any:
    """Return released numbers and codes as a frame or an array of the kind of X.

    Parameters
    ----------
    released : ndarray of shape (n, k)
        Codes are positions in the column's set.
    X : frame or array-like
        Without secret and prior columns.
    sets : sequence of CategorySet or None
    """
    if isinstance(X, pd.DataFrame):
        columns = {
            name: _pandas_column(values, one, X[name].dtype)
            for name, values, one in zip(X.columns, released.T, sets, strict=True)
        }
        return pd.DataFrame(columns, index=X.index, columns=X.columns)
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        backend = nw.get_native_namespace(frame)
        series = [
            _other_column(frame[name], values, one, backend)
            for name, values, one in zip(frame.columns, released.T, sets, strict=True)
        ]
        return frame.with_columns(*series).to_native()
    return _array(released, np.asarray(X), sets)


def _pandas_column(values: np.ndarray, one: CategorySet | None, dtype: Any) -> Any:
    if one is None:
        return values.astype(np.float32 if dtype == np.float32 else np.float64)
    codes = values.astype(np.intp)
    if isinstance(dtype, pd.CategoricalDtype):
        kind = pd.CategoricalDtype(list(one.labels), ordered=dtype.ordered)
        return pd.Categorical.from_codes(codes, dtype=kind)
    # Labels alone are cast: a few, and every one is looked at.
    labels = pd.Series(list(one.labels))
    try:
        cast = labels.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        cast = labels
    if cast.astype(object).tolist() != list(one.labels):
        cast = labels
    return cast.array.take(codes)


def _other_column(
    column: Any, values: np.ndarray, one: CategorySet | None, backend: Any
) -> Any:
    name, dtype = column.name, column.dtype
    if one is None:
        kind = np.float32 if dtype == nw.Float32 else np.float64
        return nw.from_dict({name: values.astype(kind)}, backend=backend)[name]
    given = {name: list(one.labels)}
    if dtype == nw.Enum:
        # Made anew: that of X may have other labels, in the order of its rows.
        text = nw.from_dict(given, backend=backend)[name].to_native()
        enum = type(column.to_native().dtype)(given[name])
        labels = nw.from_native(text.cast(enum), series_only=True)
    else:
        labels = _wide_enough(name, given[name], dtype, backend)
    return labels[values.astype(np.intp).tolist()]


def _wide_enough(name: str, given: list[Any], dtype: Any, backend: Any) -> Any:
    """Build a column of labels: of a type, or of whole numbers, or else of text."""
    whole = all(isinstance(label, int) for label in given)
    for kind in (dtype, nw.Int64) if whole else (dtype,):
        try:
            return nw.from_dict({name: given}, schema={name: kind}, backend=backend)[
                name
            ]
        except (TypeError, ValueError, OverflowError):
            continue
    return nw.from_dict({name: [str(label) for label in given]}, backend=backend)[name]


def _array(
    released: np.ndarray, X: np.ndarray, sets: Sequence[CategorySet | None]
) -> np.ndarray:
    """Build an array: of the type of X where that can hold what is released."""
    labels = [one.labels for one in sets if one is not None]
    if not labels:
        return released.astype(X.dtype if X.dtype == np.float32 else np.float64)
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
            out[:, place] = _cast(one.labels, dtype)[values.astype(np.intp)]
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
