"""The rows that transform is given: those columns that fit saw, within their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from skpuffer._validation._categories import CategorySet
from skpuffer._validation._frames import Dropped, columns_of, default_names, is_frame
from skpuffer._validation._mixed import read_mixed
from skpuffer._validation._values import (
    numbers_of,
    numeric_matrix,
    readable,
    refuse_non_finite,
    refuse_text,
    rows_behind,
)
from skpuffer.core.grid import round_to_multiples


def read_rows(
    estimator: BaseEstimator, X: Any, dropped: Dropped, names: Sequence[str]
) -> tuple[Any, np.ndarray]:
    """Return X without secret and prior columns, and its validated values."""
    remaining = dropped.remove_from(readable(X))
    values = numeric_matrix(estimator, remaining, reset=False)
    refuse_other_names(estimator, remaining, dropped, names)
    refuse_non_finite(values, names)
    return remaining, values


def read_mixed_rows(
    estimator: BaseEstimator,
    X: Any,
    dropped: Dropped,
    names: Sequence[str],
    sets: Sequence[CategorySet | None],
) -> tuple[Any, np.ndarray]:
    """Return X without secret and prior columns, and its values and codes."""
    remaining = dropped.remove_from(readable(X))
    refuse_other_names(estimator, remaining, dropped, names)
    values, _, _ = read_mixed(estimator, remaining, dropped, tuple(sets))
    return remaining, values


def read_layout(
    estimator: BaseEstimator,
    X: Any,
    dropped: Dropped,
    names: Sequence[str],
    *,
    numeric: bool = False,
) -> Any:
    """Check the columns of a frame or array without rows; return those to release."""
    remaining = dropped.remove_from(readable(X))
    validate_data(estimator, remaining, reset=False, skip_check_array=True)
    refuse_other_names(estimator, remaining, dropped, names)
    if numeric and is_frame(remaining):
        numbers_of(columns_of(remaining))
    elif numeric:
        refuse_text(remaining)
    return remaining


def refuse_other_names(
    estimator: BaseEstimator, X: Any, dropped: Dropped, names: Sequence[str]
) -> None:
    """Refuse a frame whose columns have other names than in fit.

    scikit-learn compares names of text alone.

    Raises
    ------
    ValueError
        Says what they are and were.
    """
    if hasattr(estimator, "feature_names_in_") or not is_frame(X):
        return
    found = dropped.names_without(X, len(names))
    if found != list(names) and list(names) != default_names(dropped, len(names)):
        raise ValueError(
            f"the columns are {', '.join(found)}, and were {', '.join(names)} in "
            "fit: give the same in the same order"
        )


def to_multiples(
    values: np.ndarray, rounding: Sequence[float | None], names: Sequence[str]
) -> np.ndarray:
    """Round columns to multiples of their steps; those without one stay as they are.

    Raises
    ------
    ValueError
        A value is too many steps from zero.
    """
    if not any(rounding):
        return values
    rounded = values.copy()
    for column, (step, name) in enumerate(zip(rounding, names, strict=True)):
        if step is not None:
            try:
                rounded[:, column] = round_to_multiples(values[:, column], step)
            except ValueError as error:
                raise ValueError(f"column {name!r}: {error}") from None
    return rounded


def within_bounds(
    values: np.ndarray,
    ranges: np.ndarray,
    names: Sequence[str],
    *,
    refuse: bool,
    counts: np.ndarray | None = None,
) -> np.ndarray:
    """Clip values to the declared ranges, or refuse those outside.

    Raises
    ------
    ValueError
        A value lies outside and `refuse` is set.
    """
    low, high = ranges[:, 0], ranges[:, 1]
    if not np.isfinite(ranges).any():
        return values
    outside = (values < low) | (values > high)
    if not outside.any():
        return values
    if refuse:
        column = int(np.flatnonzero(outside.any(axis=0))[0])
        found = rows_behind(outside[:, column], counts)
        raise ValueError(
            f"column {names[column]!r} has {found} values outside its bounds "
            f"[{low[column]:g}, {high[column]:g}]: widen bounds, or set "
            "out_of_bounds='clip'"
        )
    clipped: np.ndarray = np.clip(values, low, high)
    return clipped
