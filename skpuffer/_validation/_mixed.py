"""Columns of numbers and of categories, read as values and positions in their sets."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from skpuffer._checks import column_position
from skpuffer._text import value_text
from skpuffer._validation._categories import (
    CategorySet,
    CodedColumn,
    declare_sets,
    unknown_code,
)
from skpuffer._validation._frames import Dropped, columns_of, is_frame
from skpuffer._validation._labels import factorise
from skpuffer._validation._values import (
    check_weights,
    numbers_of,
    refuse_non_finite,
    refuse_text,
    rows_behind,
    validate_frame,
    with_dtype,
)
from skpuffer.exceptions import ParameterError


def read_mixed(
    estimator: BaseEstimator,
    X: Any,
    dropped: Dropped,
    sets: tuple[CategorySet | None, ...] | None = None,
    weight: Any = None,
    counts: np.ndarray | None = None,
) -> tuple[np.ndarray, list[str], tuple[CategorySet | None, ...]]:
    """Read the columns to release.

    Parameters
    ----------
    estimator : Release
        Its parameters declare the categories; its feature names are set in fit and
        checked against in transform.
    X : frame or array-like
        Without secret and prior columns.
    dropped : Dropped
    sets : tuple of CategorySet or None, optional
        What fit declared; this is fit without it.
    weight : array-like of shape (n,), optional
        Sample weights, not yet checked; a row of weight zero is not there, and names
        no category.
    counts : ndarray of shape (n,), optional
        How many rows of data each stands for, for messages.

    Returns
    -------
    values : ndarray of shape (n, k)
        Numbers, and the positions of labels in their set; −1 for a label outside it
        that is to be replaced by a uniform draw.
    names : list of str
    sets : tuple of CategorySet or None

    Raises
    ------
    ParameterError, ValueError
        A column is missing values, of another kind, or has labels outside its set.
    """
    reset = sets is None
    X = _table(estimator, X, reset=reset)
    width = X.shape[1]
    names = dropped.names_without(X, width)
    chosen = _categorical(estimator, X, names) if sets is None else _known(sets)
    weight = check_weights(weight, len(X))
    absent = np.zeros(len(X), dtype=bool) if weight is None else weight == 0
    places = np.flatnonzero(chosen).tolist()
    coded = [_coded(X, place, names[place], absent) for place in places]
    if sets is None:
        named = [column.name for column in coded]
        n_rows = len(X) if counts is None else int(counts.sum())
        declared = declare_sets(estimator, coded, n_rows)
        _check_unknown(estimator, declared, named)
        fitted = iter(
            replace(one, unknown=unknown_code(estimator, one, name))
            for one, name in zip(declared, named, strict=True)
        )
        sets = tuple(next(fitted) if one else None for one in chosen)
    values = np.empty((len(X), width), order="F")
    numeric = np.flatnonzero(~np.asarray(chosen))
    if len(numeric):
        values[:, numeric] = _numbers(X, numeric, names)
    for column, place in zip(coded, places, strict=True):
        one = sets[place]
        assert one is not None
        values[:, place] = _in_set(estimator, column, one, reset, counts)
    return values, names, sets


def _known(sets: Sequence[CategorySet | None]) -> list[bool]:
    return [one is not None for one in sets]


def _table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Return a frame as it is, anything else as a 2-D array, with names checked."""
    least = 2 if reset else 1
    if is_frame(X):
        validate_frame(estimator, X, reset=reset)
        return X
    X = with_dtype(X)
    return validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32] if X.dtype.kind in "fc" else None,
        ensure_all_finite=False,
        ensure_min_samples=least,
    )


def _categorical(estimator: BaseEstimator, X: Any, names: list[str]) -> list[bool]:
    """Return which columns hold categories."""
    given = getattr(estimator, "categorical", None)
    if given is None:
        return [True] * len(names)
    if isinstance(given, str) and given == "auto":
        if is_frame(X):
            return [_labelled(column) for column in columns_of(X)]
        if X.dtype == object:
            return [_holds_labels(column) for column in X.T]
        return [X.dtype.kind not in "fiu"] * len(names)
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise ParameterError(
            f"categorical={value_text(given)} must be 'auto' or a list of columns"
        )
    places = {
        column_position(name, names, "categorical", among=given) for name in given
    }
    return [place in places for place in range(len(names))]


def _labelled(column: Any) -> bool:
    if column.dtype == nw.Object:
        return _holds_labels(column.to_numpy())
    return column.dtype in (nw.Categorical, nw.Enum, nw.String, nw.Boolean)


def _holds_labels(column: np.ndarray) -> bool:
    numbers = (int, float, Decimal, np.number)
    return not all(
        value is None
        or value is pd.NA
        or (isinstance(value, numbers) and not isinstance(value, (bool, np.bool_)))
        for value in column
    )


def read_labels(
    X: Any, place: int, name: str, counts: np.ndarray | None = None
) -> CodedColumn:
    """Tell the rows of a column apart, each of which stands for as many as counted."""
    return _coded(X, place, name, np.zeros(0, dtype=bool), counts)


def _coded(
    X: Any,
    place: int,
    name: str,
    absent: np.ndarray,
    counts: np.ndarray | None = None,
) -> CodedColumn:
    """Tell the rows of a column apart by their labels; absent ones have any label."""
    declared = None
    if is_frame(X):
        column = columns_of(X)[place]
        declared = _listed_by_type(column)
    else:
        column = X[:, place]
    try:
        codes, labels, spelt = factorise(column)
    except TypeError as error:
        raise ParameterError(
            f"column {name!r} must hold one category a row, such as a text or a "
            f"number: {error}"
        ) from None
    missing = rows_behind(codes < 0, counts)
    if missing:
        written = f", as the text {', '.join(map(repr, spelt))}," if spelt else " (NaN)"
        every = len(codes) if counts is None else counts.sum()
        raise ValueError(
            f"column {name!r} is missing{written} in {missing} of {every} rows: "
            "drop these rows, or give them a category of their own before the release"
        )
    infinite = [label for label in labels if label in (math.inf, -math.inf)]
    if infinite:
        raise ValueError(
            f"column {name!r} is infinite (inf) in some rows, which is no category: "
            "drop these rows, or give them a category of their own before the release"
        )
    if absent.any():
        seen, present = np.unique(codes[~absent], return_inverse=True)
        codes = np.zeros_like(codes)
        codes[~absent] = present
        labels = [labels[code] for code in seen.tolist()]
    return CodedColumn(name, codes, labels, declared)


def _listed_by_type(column: nw.Series[Any]) -> list[Hashable] | None:
    """Return the labels that the type of a column lists, in its order."""
    dtype = getattr(column.to_native(), "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        return dtype.categories.tolist()
    if column.dtype != nw.Enum:
        return None
    # Older narwhals do not keep them in the type.
    known = getattr(column.dtype, "categories", None)
    return list(known or column.cat.get_categories())


def _in_set(
    estimator: BaseEstimator,
    column: CodedColumn,
    one: CategorySet,
    reset: bool,
    counts: np.ndarray | None,
) -> np.ndarray:
    """Return positions in the declared set."""
    codes = one.recoded(column.codes, column.labels)
    outside = codes < 0
    if outside.any():
        code = unknown_code(estimator, one, column.name)
        if code is None or (code < 0 and reset):
            every, first = len(codes), f" (the first is row {outside.argmax()})"
            if counts is not None:
                every, first = counts.sum(), ""
            # The labels are values of rows, and messages end in logs.
            raise ValueError(
                f"column {column.name!r} has labels outside its categories in "
                f"{rows_behind(outside, counts)} of {every} rows{first}: declare them "
                "in categories, or name a category to stand for them (unknown=...)"
            )
        codes[outside] = code
    return codes


def _check_unknown(
    estimator: BaseEstimator,
    sets: Sequence[CategorySet | None],
    names: Sequence[str],
) -> None:
    """Refuse a policy for unknown labels that is no category of any column."""
    given = estimator.unknown
    policies = list(given.values()) if isinstance(given, Mapping) else [given]
    if isinstance(given, Mapping):
        strange = [name for name in given if str(name) not in names]
        if strange:
            raise ParameterError(
                f"unknown names {strange[0]!r}, which is no column of categories "
                f"({', '.join(names)})"
            )
    for policy in policies:
        if isinstance(policy, str) and policy in ("error", "uniform"):
            continue
        known = isinstance(policy, Hashable) and any(
            one is not None and policy in one.labels for one in sets
        )
        if not known:
            raise ParameterError(
                f"unknown={value_text(policy)} must be 'error', 'uniform', or a "
                "category to "
                "stand for labels outside the declared set"
            )


def _numbers(X: Any, places: np.ndarray, names: list[str]) -> np.ndarray:
    """Return the numeric columns as float64, all finite."""
    if is_frame(X):
        columns = columns_of(X)
        values = numbers_of([columns[place] for place in places])
    else:
        refuse_text(X[:, places])
        values = check_array(
            X[:, places],
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            input_name="X",
        )
    refuse_non_finite(values, [names[place] for place in places])
    return values
