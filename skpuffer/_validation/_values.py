"""The columns to release, as finite floats, and the weights of their rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from skpuffer._validation._frames import is_frame, unmasked


def readable(X: Any) -> Any:
    """Return X, or refuse sparse and lazy input, in fit and transform alike.

    Masked and NA entries of an array become missing values, to be counted later.
    """
    if issparse(X):
        # scikit-learn has the words for it.
        check_array(X, accept_sparse=False, input_name="X")
    if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
        twice = sorted({str(name) for name in X.columns[X.columns.duplicated()]})
        raise ValueError(f"X has several columns named {', '.join(twice)}: rename them")
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise TypeError(
            f"X is a lazy frame ({type(X).__name__}): collect it first, X.collect()"
        )
    X = unmasked(X)
    if isinstance(X, np.ndarray) and X.dtype == object:
        missing = np.frompyfunc(lambda value: value is pd.NA, 1, 1)(X).astype(bool)
        if missing.any():
            X = np.where(missing, None, X)
    return X


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
    if is_frame(X):
        refuse_non_numeric(X)
    elif isinstance(X, np.ndarray):
        refuse_text(X)
    return validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1,
        order="F" if is_frame(X) else None,
    )


def refuse_non_numeric(X: Any) -> None:
    frame = nw.from_native(X, eager_only=True)
    for name, dtype in frame.schema.items():
        if dtype.is_numeric() or dtype == nw.Boolean:
            continue
        column = frame[name].to_numpy()
        if dtype == nw.Object and _holds_numbers(column):
            _refuse_missing(name, int(pd.isna(column).sum()), len(column))
            continue
        raise ValueError(
            f"column {name!r} holds {dtype}, and only numbers can be released with "
            "additive noise: leave it out (ColumnTransformer chooses the columns), "
            "or name it as the secret"
        )


def refuse_text(X: np.ndarray) -> None:
    """Refuse text in an array, even text that reads as a number, as in a frame."""
    text = X.dtype.kind in "SUT"
    if X.dtype == object:
        text = any(isinstance(value, (str, bytes)) for value in X.flat)
    if text:
        raise ValueError(
            f"X is an array of {X.dtype} that holds text, and only numbers can be "
            "released with additive noise: leave such columns out, or name them as the "
            "secret"
        )


def _holds_numbers(column: np.ndarray) -> bool:
    return all(
        value is None or value is pd.NA or isinstance(value, (int, float, np.number))
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
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one a row") from None
    if weight.ndim != 1:
        raise ValueError(
            f"sample_weight has {weight.ndim} dimensions: give one weight a row (1-D)"
        )
    if len(weight) != n_rows:
        raise ValueError(
            f"sample_weight has {len(weight)} values for {n_rows} rows of X"
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative in every row")
    if not weight.any():
        raise ValueError("sample_weight is zero in every row")
    return weight
