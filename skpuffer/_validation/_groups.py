"""Labels: which row belongs to which secret value and prior."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from skpuffer._text import item_text, value_text
from skpuffer._validation._frames import (
    as_column,
    column_names,
    is_frame,
    refuse_repeated_names,
    take_columns,
    unmasked,
)
from skpuffer._validation._labels import factorise
from skpuffer.exceptions import ParameterError

MAX_VALUES = 50
_ROW = (list, tuple, np.ndarray)


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
    if isinstance(values, str):
        raise ParameterError(
            f"fit was given {parameter}={value_text(values)}, which is no list of "
            "labels: name a "
            f"column in the constructor, {parameter}={value_text(values)}"
        )
    refuse_repeated_names(values, parameter)
    if is_frame(values):
        return take_columns(values, column_names(values), parameter)[:2]
    name = getattr(values, "name", None)
    names = [name if isinstance(name, str) and name else parameter]
    if as_column(values) is not None:
        return names, [values]
    values = unmasked(values)
    if isinstance(values, (list, tuple)):
        # An object array keeps None and NaN; a text array would spell them out.
        values = np.array([*values, None], dtype=object)[:-1]
        if len(values) and isinstance(values[0], _ROW):
            widths = {len(row) if isinstance(row, _ROW) else 0 for row in values}
            if len(widths) > 1:
                raise ParameterError(
                    f"{parameter} must hold equally many labels in every row, got "
                    f"{min(widths)} to {max(widths)}"
                )
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


def refuse_misaligned(X: Any, labels: Any, parameter: str) -> None:
    """Refuse labels whose index says that they belong to other rows than X's.

    Labels match rows by position, as a target does; a pandas index that disagrees
    would mean noise for other groups than intended.

    Raises
    ------
    ParameterError
        X and the labels both have an index, of the same length, and they differ.
    """
    both = isinstance(X, pd.DataFrame) and isinstance(labels, (pd.Series, pd.DataFrame))
    if both and len(X) == len(labels) and not X.index.equals(labels.index):
        raise ParameterError(
            f"{parameter} has another index than X, and labels match rows by position: "
            f"sort one like the other ({parameter}.loc[X.index]), or pass "
            f"{parameter}.to_numpy() if the positions are right"
        )


def group_rows(
    names: Sequence[str],
    columns: Sequence[Any],
    *,
    n_rows: int,
    parameter: str,
    counts: np.ndarray | None = None,
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
    counts : ndarray of shape (n,), optional
        How many rows of data each stands for, for messages.

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
        try:
            codes, labels, spelt = factorise(column)
        except TypeError as error:
            raise ParameterError(
                f"{parameter} {name!r} must hold one label a row, such as a text or a "
                f"number: {error}"
            ) from None
        missing = 0
        if codes.min(initial=0) < 0:
            left = codes < 0
            missing = int(left.sum() if counts is None else counts[left].sum())
        if missing:
            written = f" (as the text {', '.join(map(repr, spelt))})" if spelt else ""
            every = n_rows if counts is None else counts.sum()
            raise ValueError(
                f"{parameter} {name!r} is missing in {missing} of {every} rows"
                f"{written}: drop these rows, or give them a label of their own"
            )
        _refuse_many(f"{parameter} {name!r} has", labels)
        refuse_alike(f"{parameter} {name!r}", labels)
        coded.append((codes, labels))
    codes, labels = coded[0]
    if len(coded) > 1:
        labels = [(label,) for label in labels]
        for more_codes, more in coded[1:]:
            seen, codes = np.unique(codes * len(more) + more_codes, return_inverse=True)
            labels = [(*labels[s // len(more)], more[s % len(more)]) for s in seen]
            _refuse_many(f"the {parameter} columns together have", labels)
    return Groups(tuple(names), tuple(labels), codes)


def _refuse_many(subject: str, labels: Sequence[Hashable]) -> None:
    """Refuse labels so many that they are kept in no guarantee and told apart by none.

    A value per person would be data, and pairs grow with the square of the values.
    """
    if len(labels) > MAX_VALUES:
        raise ValueError(
            f"{subject} {len(labels)} distinct values, more than {MAX_VALUES}: bin them "
            "first (pandas.cut, KBinsDiscretizer)"
        )


def refuse_alike(parameter: str, labels: Iterable[Hashable]) -> None:
    """Refuse labels that differ by nothing but their type, as 0 and "0".

    Two files that were read with different types would double the secret's values.

    Raises
    ------
    ParameterError
        Names two such labels.
    """
    known: dict[Hashable, Hashable] = {}
    for label in sorted(labels, key=lambda label: (str(label), type(label).__name__)):
        parts = label if isinstance(label, tuple) else (label,)
        other = known.setdefault(tuple(map(str, parts)), label)
        if other != label:
            raise ParameterError(
                f"the {parameter} has both {other!r} and {label!r} among its values: "
                "make them of one type, all text or all numbers"
            )


def select_pairs(
    secret_pairs: Any, labels: Sequence[Hashable]
) -> list[tuple[Hashable, Hashable]]:
    """Return the pairs of secret values to protect.

    Parameters
    ----------
    secret_pairs : "all", or iterable of (label, label)
    labels : sequence of hashable
        The values that occur, in order.

    Raises
    ------
    ParameterError
        There is only one value, or a pair is malformed or names an unknown value.
    """
    if len(labels) < 2:
        raise ParameterError(
            f"the secret has a single value, {labels[0]!r}: there is nothing to protect; "
            "check that the secret column is the intended one"
        )
    if isinstance(secret_pairs, str):
        if secret_pairs != "all":
            raise ParameterError(
                f"secret_pairs={value_text(secret_pairs)} must be 'all' or a list of pairs"
            )
        return list(combinations(labels, 2))
    chosen: list[tuple[Hashable, Hashable]] = []
    try:
        # A text is no pair, not even one of two letters.
        given = [() if isinstance(p, (str, bytes)) else tuple(p) for p in secret_pairs]
    except TypeError:
        given = []
    if not given or any(len(pair) != 2 for pair in given):
        raise ParameterError(
            f"secret_pairs={value_text(secret_pairs)} must be 'all' or a list of pairs "
            "of values"
        )
    for pair in given:
        if any(label not in labels for label in pair) or pair[0] == pair[1]:
            raise ParameterError(
                f"secret_pairs holds {item_text(pair, given)}, which is not a pair of "
                "two different "
                f"values of the secret ({', '.join(map(repr, labels))})"
            )
        first, second = sorted(list(labels).index(label) for label in pair)
        if (labels[first], labels[second]) not in chosen:
            chosen.append((labels[first], labels[second]))
    return chosen
