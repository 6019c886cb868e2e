"""What the metrics are given: orders, regularisations, samples and Gram matrices."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_array

from skpuffer._text import listed
from skpuffer.core.gram import check_grid
from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import ParameterError


def read_grid(alpha: Any, reg: Any) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Return orders and λ in one dimension, and the shape of the result.

    Raises
    ------
    ParameterError
        One is not a number or a one-dimensional array of them, or is out of range.
    """
    orders, levels = _numbers("alpha", alpha), _numbers("reg", reg)
    try:
        check_grid(orders.ravel(), levels.ravel())
    except ValueError as error:
        raise ParameterError(str(error)) from None
    return orders.ravel(), levels.ravel(), orders.shape + levels.shape


def _numbers(name: str, value: Any) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty((0, 0))
    mixed = not isinstance(value, np.ndarray) and array.ndim == 1
    booleans = mixed and any(isinstance(item, (bool, np.bool_)) for item in value)
    if array.dtype.kind not in "iuf" or array.ndim > 1 or not array.size or booleans:
        raise ParameterError(
            f"{name}={value!r} must be a number, or a non-empty one-dimensional "
            "array of numbers"
        )
    return array.astype(np.float64)


def shaped(found: FloatArray, shape: tuple[int, ...]) -> Any:
    """Return a float for an empty shape, an array otherwise."""
    return found.reshape(shape) if shape else float(found[0, 0])


def read_samples(X: Any, Y: Any) -> tuple[FloatArray, FloatArray]:
    """Return two samples as float64 arrays with the same columns.

    Raises
    ------
    ValueError, TypeError
        A sample is not numeric, is not finite or not a table, or the columns differ.
    """
    left, right = read_rows(X, "X"), read_rows(Y, "Y")
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"X has {left.shape[1]} columns and Y has {right.shape[1]}: both samples "
            "must have the same columns"
        )
    names = column_names(X), column_names(Y)
    if names[0] and names[1] and names[0] != names[1]:
        only = [str(name) for name in names[0] if name not in names[1]]
        detail = f" ({listed(only)} only in X)" if only else ", in another order"
        raise ValueError(
            f"X and Y do not have the same columns{detail}: select them alike, "
            "Y[X.columns]"
        )
    return left, right


def read_rows(X: Any, name: str) -> FloatArray:
    """Return one sample as a float64 array.

    Raises
    ------
    ValueError, TypeError
        It is not numeric, not finite or not a table.
    """
    if isinstance(X, np.ma.MaskedArray):
        X = X.astype(np.float64).filled(np.nan)
    wrapped = nw.from_native(X, pass_through=True)
    if isinstance(wrapped, nw.LazyFrame):
        raise TypeError(f"{name} is a lazy frame: collect it first, {name}.collect()")
    if isinstance(wrapped, nw.DataFrame):
        _refuse_other_columns(wrapped, name)
    array = np.asarray(X) if isinstance(X, (list, tuple)) else X
    if isinstance(array, np.ndarray) and not _is_numeric(array):
        raise ValueError(
            f"{name} is an array of {array.dtype} that does not hold numbers: encode "
            "or leave out what is not numeric"
        )
    values: FloatArray = check_array(
        X, dtype=np.float64, ensure_all_finite=False, input_name=name
    )
    _refuse_non_finite(values, name, column_names(X))
    return values


def column_names(X: Any) -> list[Any]:
    """Return the column names of a frame, and none of anything else."""
    wrapped = nw.from_native(X, eager_only=True, pass_through=True)
    return list(X.columns) if isinstance(wrapped, nw.DataFrame) else []


def _refuse_other_columns(frame: nw.DataFrame[Any], name: str) -> None:
    for column, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise ValueError(
                f"column {column!r} of {name} holds {dtype}, and a kernel compares "
                "numbers: encode it, or leave it out"
            )


def _is_numeric(array: np.ndarray) -> bool:
    if array.dtype == object:
        return not any(isinstance(value, (str, bytes)) for value in array.flat)
    return array.dtype.kind in "biufc"


def _refuse_non_finite(values: FloatArray, name: str, columns: list[Any]) -> None:
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


def read_gram(X: Any, Y: Any, K_yx: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return precomputed Gram blocks as float64 arrays whose shapes fit.

    Raises
    ------
    ParameterError
        `K_yx` is missing.
    ValueError
        The shapes do not fit, or a block is not finite.
    """
    if K_yx is None:
        raise ParameterError(
            "metric='precomputed' takes X=k(X, X), Y=k(Y, Y) and K_yx=k(Y, X), and "
            "K_yx is missing"
        )
    blocks = read_rows(X, "X"), read_rows(Y, "Y"), read_rows(K_yx, "K_yx")
    for block, name in zip(blocks[:2], "XY", strict=True):
        if block.shape[0] != block.shape[1]:
            raise ValueError(
                f"{name} has shape {block.shape}, and with metric='precomputed' it is "
                "the kernel of a sample with itself: it must be square"
            )
    wanted = len(blocks[1]), len(blocks[0])
    if blocks[2].shape != wanted:
        turned = "; transpose it" if blocks[2].shape == wanted[::-1] else ""
        raise ValueError(
            f"K_yx has shape {blocks[2].shape}, and {wanted} is needed: a row for each "
            f"row of Y, a column for each row of X{turned}"
        )
    return blocks
