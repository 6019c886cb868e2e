"""Labels: which row belongs to which secret value and prior."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skpuffer._validation._frames import column_names, is_frame, take_columns
from skpuffer.exceptions import ParameterError

MAX_SECRET_VALUES = 50
_MISSING_TEXTS = ("nan", "NaN", "None", "<NA>", "NaT")


@dataclass(frozen=True)
class Groups:
    """Rows told apart by a label.

    Attributes
    ----------
    names : tuple of str
        The columns that the labels come from.
    labels : tuple of hashable
        Distinct labels in order; tuples where there are several columns.
    codes : ndarray of shape (n,)
        Position in `labels` of each row.
    """

    names: tuple[str, ...]
    labels: tuple[Hashable, ...]
    codes: np.ndarray

    def subset(self, kept: np.ndarray) -> Groups:
        """Return the groups of the rows kept; a label without rows is gone."""
        seen, codes = np.unique(self.codes[kept], return_inverse=True)
        return Groups(self.names, tuple(self.labels[s] for s in seen), codes)


def metadata_columns(values: Any, parameter: str) -> tuple[list[str], list[Any]]:
    """Read labels given beside X: an array, a series or a frame of several columns."""
    if is_frame(values):
        return take_columns(values, column_names(values), parameter)[:2]
    name = getattr(values, "name", None)
    names = [str(name) if isinstance(name, str) else parameter]
    if isinstance(values, pd.Series):
        return names, [values]
    if isinstance(values, (list, tuple)):
        # An object array keeps None and NaN; a text array would spell them out.
        values = np.array([*values, None], dtype=object)[:-1]
        if len(values) and isinstance(values[0], (list, tuple)):
            values = np.array([list(row) for row in values], dtype=object)
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] > 1:
        return (
            [f"{parameter}{i}" for i in range(array.shape[1])],
            list(array.T),
        )
    if array.ndim == 2:
        array = array[:, 0]
    if array.ndim != 1:
        raise ParameterError(
            f"{parameter} must hold one label a row, got {array.ndim} dimensions"
        )
    return names, [array]


def group_rows(
    names: Sequence[str],
    columns: Sequence[Any],
    *,
    n_rows: int,
    parameter: str,
    max_values: int | None = None,
) -> Groups:
    """Tell rows apart by one or several columns of labels.

    Parameters
    ----------
    names : sequence of str
    columns : sequence of 1-D arrays or series
    n_rows : int
        The number of rows of X.
    parameter : str
        For messages.
    max_values : int, optional
        Refuse a column with more distinct values.

    Returns
    -------
    Groups

    Raises
    ------
    ValueError
        A label is missing, the lengths differ, or there are too many values.
    """
    coded = []
    for name, column in zip(names, columns, strict=True):
        if len(column) != n_rows:
            raise ValueError(
                f"{parameter} {name!r} has {len(column)} labels for {n_rows} rows of X"
            )
        codes, labels = _factorise(column)
        missing = int((codes < 0).sum())
        if missing:
            raise ValueError(
                f"{parameter} {name!r} is missing in {missing} of {n_rows} rows: drop "
                "these rows, or give them a label of their own"
            )
        if max_values is not None and len(labels) > max_values:
            raise ValueError(
                f"{parameter} {name!r} has {len(labels)} distinct values, more than "
                f"{max_values}: bin it first (pandas.cut, KBinsDiscretizer)"
            )
        coded.append((codes, labels))
    codes, labels = coded[0]
    if len(coded) > 1:
        labels = [(label,) for label in labels]
        for more_codes, more in coded[1:]:
            seen, codes = np.unique(codes * len(more) + more_codes, return_inverse=True)
            labels = [(*labels[s // len(more)], more[s % len(more)]) for s in seen]
    return Groups(tuple(names), tuple(labels), codes)


def _factorise(column: Any) -> tuple[np.ndarray, list[Hashable]]:
    """Return codes (−1 where missing) and the labels in order, as Python values."""
    if not isinstance(column, pd.Series):
        column = np.asarray(column)
    codes, found = pd.factorize(column)
    labels = [_python_value(label) for label in found]
    if isinstance(column, np.ndarray) and column.dtype.kind == "U":
        # numpy spells a missing value out when it makes a text array.
        spelt = [i for i, label in enumerate(labels) if label in _MISSING_TEXTS]
        codes = np.where(np.isin(codes, spelt), -1, codes)
    present = np.flatnonzero(np.bincount(codes + 1, minlength=1)[1:]).tolist()
    try:
        present.sort(key=lambda code: labels[code])
    except TypeError:
        present.sort(key=lambda code: (type(labels[code]).__name__, str(labels[code])))
    rank = np.full(len(labels) + 1, -1, dtype=np.intp)
    rank[present] = np.arange(len(present))
    return rank[codes], [labels[code] for code in present]


def _python_value(label: Any) -> Hashable:
    return label.item() if isinstance(label, np.generic) else label
