"""Tables of numbers that no estimator is fitted on: samples to be compared."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from skpuffer._text import listed
from skpuffer._validation._frames import (
    column_names,
    columns_of,
    is_frame,
    unmasked,
)
from skpuffer._validation._values import (
    COMPARED,
    numbers_of,
    refuse_shape,
    refuse_unreadable,
)


def read_tables(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples as float64 arrays with the same columns.

    Raises
    ------
    ValueError, TypeError
        A sample is not numeric, is not finite or not a table, or the columns differ.
    """
    left, right = read_table(X, "X"), read_table(Y, "Y")
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"X has {left.shape[1]} columns and Y has {right.shape[1]}: both samples "
            "must have the same columns"
        )
    names = table_names(X), table_names(Y)
    if names[0] and names[1] and names[0] != names[1]:
        only = [str(name) for name in names[0] if name not in names[1]]
        detail = f" ({listed(only)} only in X)" if only else ", in another order"
        raise ValueError(
            f"X and Y do not have the same columns{detail}: select them alike, "
            "Y[X.columns]"
        )
    return left, right


def read_table(X: Any, name: str) -> np.ndarray:
    """Return one sample as a float64 array.

    Raises
    ------
    ValueError, TypeError
        It is not numeric, not finite or not a table.
    """
    X = unmasked(X)
    refuse_unreadable(X, name)
    names = table_names(X)
    if is_frame(X):
        X = numbers_of(
            columns_of(X),
            f" of {name}",
            COMPARED,
        )
    refuse_shape(X)
    array = np.asarray(X) if isinstance(X, (list, tuple)) else X
    if isinstance(array, np.ndarray) and not _is_numeric(array):
        raise ValueError(
            f"{name} is an array of {array.dtype} that does not hold numbers: encode "
            "or leave out what is not numeric"
        )
    values: np.ndarray = check_array(
        X, dtype=np.float64, ensure_all_finite=False, input_name=name
    )
    _refuse_non_finite(values, name, names)
    return values


def table_names(X: Any) -> list[Hashable]:
    """Return the column names of a frame, and none of anything else."""
    return column_names(X) if is_frame(X) else []


def _is_numeric(array: np.ndarray) -> bool:
    if array.dtype == object:
        return not any(isinstance(value, (str, bytes)) for value in array.flat)
    return array.dtype.kind in "biufc"


def _refuse_non_finite(values: np.ndarray, name: str, columns: list[Hashable]) -> None:
    if np.isfinite(values).all():
        return
    for kind, found in (("missing (NaN)", np.isnan), ("infinite", np.isinf)):
        counts = found(values).sum(axis=0)
        for place in np.flatnonzero(counts):
            column = repr(columns[place]) if columns else place
            raise ValueError(
                f"column {column} of {name} is {kind} in {counts[place]} of "
                f"{len(values)} rows: impute or drop them first"
            )
