"""Sets of categories: which labels a column may have, and how far apart they are."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skpuffer._checks import column_position
from skpuffer._text import listed, value_text
from skpuffer.core.channels import check_distances, discrete, ordinal
from skpuffer.exceptions import CategoriesFromDataWarning, ParameterError

# Tables of divergences grow with the cube of this.
MAX_CATEGORIES = 256
METRICS = {"discrete": discrete, "ordinal": ordinal}
# From here over this file twice, _mixed, _reading, _prepare and fit to its caller.
_STACK = 7


@dataclass(frozen=True, eq=False)
class CategorySet:
    """The declared categories of a column.

    Attributes
    ----------
    labels : tuple of hashable
        In the order that codes follow.
    distances : ndarray of shape (K, K)
    metric : str
        What the distances are called.
    from_data : bool
        Whether the labels are those that occurred, and not declared.
    unknown : int or None
        What stood for labels outside the set in fit: see `unknown_code`.
    """

    labels: tuple[Hashable, ...]
    distances: np.ndarray
    metric: str
    from_data: bool = False
    unknown: int | None = None

    @property
    def stands_for_unknown(self) -> Hashable:
        """The policy for labels outside in words: a category, "uniform" or "error"."""
        if self.unknown is None:
            return "error"
        return "uniform" if self.unknown < 0 else self.labels[self.unknown]

    def recoded(self, codes: np.ndarray, found: Sequence[Hashable]) -> np.ndarray:
        """Return codes in this set for codes in `found`; −1 for what is not in it."""
        place = {label: code for code, label in enumerate(self.labels)}
        table = np.array([place.get(label, -1) for label in found], dtype=np.intp)
        recoded: np.ndarray = table[codes]
        return recoded


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column told apart by its labels.

    Attributes
    ----------
    name : str
    codes : ndarray of shape (n,)
    labels : list of hashable
        Those that occur.
    declared : list of hashable, or None
        Those that the column's own type lists, in its order.
    """

    name: str
    codes: np.ndarray
    labels: list[Hashable]
    declared: list[Hashable] | None


def declare_sets(
    estimator: BaseEstimator, columns: Sequence[CodedColumn], n_rows: int
) -> list[CategorySet]:
    """Return the set of categories of each column, as the parameters declare them.

    Raises
    ------
    ParameterError
        `categories` or `metric` does not fit the columns.

    Warns
    -----
    CategoriesFromDataWarning
        Categories were taken from the data.
    """
    names = [column.name for column in columns]
    metrics = _by_column(estimator.metric, names, "metric", "discrete")
    sets, taken = [], []
    for column, given, metric in zip(
        columns, _declared_labels(estimator.categories, names), metrics, strict=True
    ):
        labels = given
        if labels is None:
            labels = column.labels if column.declared is None else column.declared
            taken.append((column.name, len(labels)))
            _refuse_unordered(column, metric)
        if len(labels) > MAX_CATEGORIES:
            raise ParameterError(
                f"column {column.name!r} has {len(labels)} categories, more than "
                f"{MAX_CATEGORIES}: group rare ones, or release it as numbers"
            )
        one = _with_distances(column.name, tuple(labels), metric)
        sets.append(replace(one, from_data=given is None))
    warn_of_categories(taken, n_rows, _STACK)
    return sets


def warn_of_categories(
    taken: Sequence[tuple[str, int]], n_rows: int, stacklevel: int
) -> None:
    """Warn of columns, with numbers of labels, whose categories came from the data."""
    if taken:
        shown = [f"{name!r} ({size})" for name, size in taken]
        warnings.warn(
            f"the categories of {listed(shown)} were taken from the {n_rows} rows: which "
            "ones occur can be seen in the release and is covered by no guarantee; "
            "declare them (categories={column: [...]}) from public knowledge, and leave "
            "columns out that name people",
            CategoriesFromDataWarning,
            stacklevel=stacklevel,
        )


def _refuse_unordered(column: CodedColumn, metric: Any) -> None:
    """Refuse to take the alphabet for an order that means something."""
    ranked = isinstance(metric, str) and metric == "ordinal"
    text = any(isinstance(label, str) for label in column.labels)
    if ranked and text and column.declared is None:
        raise ParameterError(
            f"metric='ordinal' needs the categories of {column.name!r} in their order, "
            f"which text does not tell: declare categories={{{column.name!r}: [...]}}"
        )


def _declared_labels(given: Any, names: Sequence[str]) -> list[list[Hashable] | None]:
    """Return the labels declared for each column; None for "auto"."""
    if isinstance(given, str) and given == "auto":
        return [None] * len(names)
    if isinstance(given, Mapping):
        lists = _by_column(given, names, "categories", "auto")
    else:
        lists = list(given) if isinstance(given, (list, tuple, np.ndarray)) else []
        if len(lists) != len(names):
            raise ParameterError(
                f"categories={value_text(given)} must be 'auto', a list of labels for "
                f"each of the {len(names)} columns of categories "
                f"({', '.join(names)}), or a mapping from column to list"
            )
    return [
        None if isinstance(one, str) and one == "auto" else _labels(one, name)
        for one, name in zip(lists, names, strict=True)
    ]


def _labels(given: Any, name: str) -> list[Hashable]:
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise ParameterError(
            f"categories of column {name!r} must be a list of labels, got "
            f"{value_text(given)}"
        )
    labels = [
        label.item() if isinstance(label, np.generic) else label for label in given
    ]
    try:
        distinct = len(set(labels)) == len(labels) > 0
    except TypeError:
        distinct = False
    missing = any(label is None or label != label for label in labels)
    if not distinct or missing:
        raise ParameterError(
            f"categories of column {name!r} must be distinct labels, none of them "
            f"missing, got {value_text(labels)}"
        )
    return labels


def _by_column(
    given: Any, names: Sequence[str], parameter: str, otherwise: Any
) -> list[Any]:
    """Return one setting a column, from one for all or a mapping."""
    if not isinstance(given, Mapping):
        return [given] * len(names)
    chosen = [otherwise] * len(names)
    for name, value in given.items():
        chosen[
            column_position(name, names, parameter, "column of categories", given)
        ] = value
    return chosen


def _with_distances(
    name: str, labels: tuple[Hashable, ...], metric: Any
) -> CategorySet:
    size = len(labels)
    if isinstance(metric, str):
        if metric not in METRICS:
            raise ParameterError(
                f"metric={value_text(metric)} must be one of {', '.join(METRICS)}, a "
                "matrix of "
                "distances, a callable of two labels, or a mapping from column to these"
            )
        return CategorySet(labels, METRICS[metric](size), metric)
    called = "given"
    if callable(metric):
        called = getattr(metric, "__name__", "callable")
        metric = [[metric(a, b) for b in labels] for a in labels]
    try:
        return CategorySet(labels, check_distances(metric, size), called)
    except ValueError as error:
        raise ParameterError(f"metric of column {name!r}: {error}") from None


def unknown_code(estimator: BaseEstimator, one: CategorySet, name: str) -> int | None:
    """Return the code that stands for labels outside the set: −1 draws one uniformly.

    Returns
    -------
    int or None
        None where such labels are an error.
    """
    policy = estimator.unknown
    if isinstance(policy, Mapping):
        policy = {str(key): value for key, value in policy.items()}.get(name, "error")
    if isinstance(policy, str) and policy in ("error", "uniform"):
        return None if policy == "error" else -1
    if policy not in one.labels:
        return None
    return one.labels.index(policy)
