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
            _other_column(name, values, one, frame[name].dtype, backend)
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
    labels = pd.Series(list(one.labels), dtype=object)
    try:
        cast = labels.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        cast = labels
    if cast.astype(object).tolist() != list(one.labels):
        cast = labels
    return cast.array.take(codes)


def _other_column(
    name: str, values: np.ndarray, one: CategorySet | None, dtype: Any, backend: Any
) -> Any:
    if one is None:
        kind = np.float32 if dtype == nw.Float32 else np.float64
        return nw.new_series(name, values.astype(kind), backend=backend)
    labels = nw.new_series(name, list(one.labels), dtype, backend=backend)
    return labels[values.astype(np.intp).tolist()]


def _array(
    released: np.ndarray, X: np.ndarray, sets: Sequence[CategorySet | None]
) -> np.ndarray:
    """Build an array: of the type of X where that can hold what is released."""
    labels = [None if one is None else np.array(one.labels, object) for one in sets]
    if not any(one is not None for one in sets):
        return released.astype(X.dtype if X.dtype == np.float32 else np.float64)
    columns = [
        values if names is None else names[values.astype(np.intp)]
        for values, names in zip(released.T, labels, strict=True)
    ]
    table = np.empty(released.shape, dtype=object)
    for place, column in enumerate(columns):
        table[:, place] = column
    if X.dtype.kind in "US":
        return table.astype(X.dtype.kind)
    whole = all(one is not None for one in sets)
    dtype = X.dtype if whole or X.dtype.kind not in "iub" else np.dtype(np.float64)
    try:
        cast = table.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return table
    return cast if (cast == table).all() else table
