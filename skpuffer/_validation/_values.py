"""The columns to release, as finite floats, and the weights of their rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from skpuffer._lazy import is_dask
from skpuffer._validation._frames import (
    as_column,
    columns_of,
    is_frame,
    refuse_repeated_names,
    unmasked,
)

_RELEASED = "only numbers can be released with additive noise: "
# What helps where that is not so, of text and of all else.
_TEXT_REMEDY = (
    "leave it out (ColumnTransformer chooses the columns), name it as the secret, "
    "release it as categories (RenyiPufferfishCategorical, JointRelease), or turn text "
    "that reads as numbers into numbers (pandas.to_numeric)"
)
_OTHER_REMEDY = (
    "leave it out (ColumnTransformer chooses the columns), or name it as the secret"
)
COMPARED = "a kernel compares numbers: encode it, or leave it out"


def readable(X: Any) -> Any:
    """Return X, or refuse sparse and lazy input, in fit and transform alike.

    Masked and NA entries of an array become missing values, to be counted later.
    """
    if issparse(X):
        # scikit-learn has the words for it.
        check_array(X, accept_sparse=False, input_name="X")
    refuse_unreadable(
        X,
        "X",
        ", or count its rows where they are and fit ConditionalCounts.from_counts",
    )
    X = unmasked(X)
    _refuse_other_kinds(X)
    refuse_shape(X)
    if isinstance(X, np.ndarray) and X.dtype == object:
        missing = np.frompyfunc(lambda value: value is pd.NA, 1, 1)(X).astype(bool)
        if missing.any():
            X = X.copy()
            X[missing] = None
    return X


def _refuse_other_kinds(X: Any) -> None:
    """Refuse what holds no rows at all, by the name of its type."""
    # scikit-learn has the words for numbers and for what has too few dimensions.
    array_like = hasattr(X, "__array__") or isinstance(X, Sequence | Number)
    if (array_like and not isinstance(X, (str, bytes))) or is_frame(X):
        return
    kind = type(X).__name__
    counts = (
        "; counts serve fit_counts and merge" if kind == "ConditionalCounts" else ""
    )
    raise TypeError(f"X must be a frame or a 2-D array, got a {kind}{counts}")


def refuse_shape(X: Any) -> None:
    """Refuse too few dimensions and complex numbers, in words that show no value.

    scikit-learn's show the data, and messages end in logs.

    Raises
    ------
    ValueError
        Says what it is and what helps.
    """
    if is_frame(X):
        return
    array = with_dtype(X)
    if not hasattr(array, "ndim"):
        array = np.asarray(array)
    if array.ndim < 2:
        kind = "1D" if array.ndim else "scalar"
        raise ValueError(
            f"Expected 2D array, got {kind} array instead. Reshape your data: "
            "array.reshape(-1, 1) if it is one column, array.reshape(1, -1) if it is "
            "one row"
        )
    if getattr(array.dtype, "kind", "") == "c":
        raise ValueError(
            f"Complex data not supported: got an array of {array.dtype}; give real and "
            "imaginary parts as two columns"
        )


def with_dtype(X: Any) -> Any:
    """Return what is no frame as an array; text beside numbers does not make them text."""
    if hasattr(X, "dtype"):
        return X
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def refuse_unreadable(X: Any, called: str, instead: str = "") -> None:
    """Refuse frames that are lazy, of no known kind, or have a name twice.

    Raises
    ------
    TypeError, ValueError
        Says what it is `called` and what helps.
    """
    kind = f"{type(X).__module__.split('.')[0]} {type(X).__name__}"
    # Looked for first: narwhals warns of every Dask frame that it sees.
    if is_dask(X):
        raise TypeError(
            f"{called} is lazy: collect it first, {called}.compute(){instead} (got a "
            f"{kind})"
        )
    refuse_repeated_names(X, called)
    if is_frame(X):
        return
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        collect = "df" if kind.startswith("duckdb") else "collect"
        raise TypeError(
            f"{called} is a lazy frame: collect it first, {called}.{collect}(){instead} "
            f"(got a {kind})"
        )
    if hasattr(X, "__dataframe__"):
        raise TypeError(
            f"{called} is a table of a kind that is not read: make it a pandas or polars "
            f"frame or a pyarrow Table (got a {kind})"
        )


def numeric_matrix(estimator: BaseEstimator, X: Any, *, reset: bool) -> np.ndarray:
    """Return the columns to release as float64 or float32, not yet all finite.

    Parameters
    ----------
    estimator : estimator
        Its feature names are set (`reset`) or checked against.
    X : frame or array-like
        Without secret and prior columns.
    reset : bool
        Whether this is fit.

    Returns
    -------
    ndarray of shape (n, k)

    Raises
    ------
    ValueError, TypeError
        A column is not numeric.
    """
    least = 2 if reset else 1
    if is_frame(X):
        values = numbers_of(columns_of(X), why=getattr(estimator, "needs", None))
        validate_frame(estimator, X, reset=reset)
        return values
    X = with_dtype(X)
    if isinstance(X, np.ndarray):
        refuse_text(X, getattr(estimator, "needs", None))
    rows: np.ndarray = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_samples=least,
    )
    return rows


def validate_frame(estimator: BaseEstimator, X: Any, *, reset: bool) -> None:
    """Check a frame's names and shape as scikit-learn does, and no value of it."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    least = 2 if reset else 1
    rows, width = X.shape
    # scikit-learn has the words for frames that are too small.
    check_array(
        np.zeros((min(rows, least), width)),
        ensure_min_samples=least,
        estimator=estimator,
        input_name="X",
    )


def numbers_of(
    columns: Sequence[nw.Series[Any]], of: str = "", why: str | None = None
) -> np.ndarray:
    """Return columns of numbers as float64, NaN where they are missing.

    Raises
    ------
    ValueError
        A column does not hold numbers; says of what it is and `why` it must. Noise is added
        to it where no other reason is given.
    """
    found = []
    for column in columns:
        if _all_missing(column):
            found.append(np.full(len(column), np.nan))
        elif _is_number(column):
            found.append(floats_of(column))
        else:
            kind = _kind_of(column)
            remedy = _TEXT_REMEDY if _is_text(column) else _OTHER_REMEDY
            raise ValueError(
                f"column {column.name!r}{of} holds {kind}, and "
                f"{why or _RELEASED + remedy}"
            )
    if len(found) == 1:
        return found[0][:, np.newaxis]  # not even copied
    return np.stack(found).T if found else np.empty((0, 0))


def floats_of(column: nw.Series[Any]) -> np.ndarray:
    """Return a column of numbers as float64, NaN where one is missing."""
    native = column.to_native()
    if isinstance(native, pd.Series):
        return native.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.dtype == nw.Object:
        native = [np.nan if value is None else value for value in column.to_list()]
    elif column.dtype.is_integer() or column.dtype.is_float():
        # No cast: that of pyarrow refuses numbers beyond 2^53.
        native = column.to_numpy()
    else:
        native = column.cast(nw.Float64).to_numpy()
    return np.asarray(native, dtype=np.float64)


def _is_number(column: nw.Series[Any]) -> bool:
    dtype = column.dtype
    if dtype == nw.Object:
        return _holds_numbers(column.to_numpy())
    return dtype.is_numeric() or dtype == nw.Boolean


def _is_text(column: nw.Series[Any]) -> bool:
    """Whether a column holds text or categories; objects, whether any is a text."""
    if column.dtype == nw.Object:
        return any(isinstance(value, str) for value in column.to_numpy())
    return column.dtype in (nw.String, nw.Categorical, nw.Enum)


def _all_missing(column: nw.Series[Any]) -> bool:
    """Whether a column of no type of numbers holds nothing; that is counted later."""
    typed = column.dtype.is_numeric() or column.dtype == nw.Boolean
    return not typed and len(column) > 0 and bool(column.is_null().all())


def _kind_of(column: nw.Series[Any]) -> str:
    """Return what a column holds, in words for a message."""
    if column.dtype == nw.Unknown:
        native = column.to_native()
        return str(native.dtype if hasattr(native, "dtype") else native.type)
    if isinstance(column.dtype, nw.Enum):
        return "Enum"  # and not all of its labels
    return str(column.dtype)


def refuse_text(X: np.ndarray, why: str | None = None) -> None:
    """Refuse dates and text, even text that reads as a number, as in a frame."""
    if X.dtype.kind in "mM":
        raise ValueError(
            f"X is an array of {X.dtype}, and {why or _RELEASED + _OTHER_REMEDY}"
        )
    text = X.dtype.kind in "SUT"
    if X.dtype == object:
        text = any(isinstance(value, (str, bytes)) for value in X.flat)
    if text:
        raise ValueError(
            f"X is an array of {X.dtype} that holds text, and "
            f"{why or _RELEASED + _TEXT_REMEDY}"
        )


def _holds_numbers(column: np.ndarray) -> bool:
    return all(
        value is None
        or value is pd.NA
        or isinstance(value, (int, float, Decimal, np.number))
        for value in column
    )


def refuse_non_finite(
    values: np.ndarray, names: Sequence[str], counts: np.ndarray | None = None
) -> None:
    """Refuse missing and infinite values, with the column and their number.

    Each row stands for one, or for as many as `counts` says.

    Raises
    ------
    ValueError
        There are such values.
    """
    # A sum is finite only if every value is (or it overflows, and we look closer).
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    every = rows_behind(np.ones(len(values), dtype=bool), counts)
    for name, column in zip(names, values.T, strict=True):
        _refuse_missing(name, rows_behind(np.isnan(column), counts), every)
        infinite = rows_behind(np.isinf(column), counts)
        if infinite:
            raise ValueError(
                f"column {name!r} is infinite (inf) in {infinite} of {every} "
                "rows: clip or drop them before the release"
            )


def rows_behind(found: np.ndarray, counts: np.ndarray | None) -> int:
    """Return how many rows of data some rows stand for."""
    return int(found.sum() if counts is None else counts[found].sum())


def _refuse_missing(name: Hashable, missing: int, n_rows: int) -> None:
    if missing:
        raise ValueError(
            f"column {name!r} is missing (NaN) in {missing} of {n_rows} rows: impute or "
            "drop them before the release"
        )


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return sample weights as float64, or None.

    Raises
    ------
    ValueError
        They are not one finite, non-negative number a row, or all zero.
    """
    if sample_weight is None:
        return None
    column = as_column(sample_weight)
    try:
        if column is None:
            weight = np.asarray(sample_weight, dtype=np.float64)
        else:
            weight = numbers_of([column])[:, 0]
    except (TypeError, ValueError):
        found = getattr(sample_weight, "dtype", type(sample_weight).__name__)
        raise ValueError(
            f"sample_weight must be numbers, one a row, got {found}"
        ) from None
    if weight.ndim != 1:
        raise ValueError(
            f"sample_weight has {weight.ndim} dimensions: give one weight a row (1-D)"
        )
    if len(weight) != n_rows:
        raise ValueError(
            f"sample_weight has {len(weight)} values for {n_rows} rows of X"
        )
    strange = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(strange):
        raise ValueError(
            "sample_weight must be finite and non-negative in every row, and is not in "
            f"{len(strange)} of {n_rows} (the first is row {strange[0]}): drop these "
            "rows, or give them weight 0"
        )
    if not weight.any():
        raise ValueError(
            f"sample_weight is zero in every one of {n_rows} rows: a weight of zero is a "
            "row that is not there"
        )
    return weight
