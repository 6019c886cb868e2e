"""Counted rows given back, to be fitted on or looked at."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skpuffer._validation._distinct import Column, Part, joined
from skpuffer._validation._frames import Dropped, pandas_frame
from skpuffer._validation._groups import Groups


@dataclass(frozen=True)
class Layout:
    """What the columns of a part are: the same for all that are added up.

    Attributes
    ----------
    frame : bool
        Whether the chunks are frames, and not arrays.
    order : tuple
        Names (positions in an array) of the columns that are read, in their order.
    columns : tuple
        Those to release.
    secret_columns, prior_columns : tuple, or None
        Those that hold labels; None where labels were given beside the chunks.
    secret_names, prior_names : tuple of str
        What the labels are called; empty where there is no prior.
    kinds : tuple of str
        What each column to release holds, in words.
    rounding : tuple of float or None
        The step of each column to release; None where values are as they came.
    weighted : bool
    """

    frame: bool
    order: tuple[Hashable, ...]
    columns: tuple[Hashable, ...]
    secret_columns: tuple[Hashable, ...] | None
    secret_names: tuple[str, ...]
    prior_columns: tuple[Hashable, ...] | None
    prior_names: tuple[str, ...]
    kinds: tuple[str, ...]
    rounding: tuple[float | None, ...]
    weighted: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns to release are called."""
        return tuple(str(c) if self.frame else f"x{c}" for c in self.columns)

    @property
    def dropped(self) -> Dropped:
        """The columns of the chunks that are not released."""
        taken = [*(self.secret_columns or ()), *(self.prior_columns or ())]
        if not taken:
            return Dropped()
        places = tuple(self.order.index(column) for column in taken)
        return Dropped(tuple(taken) if self.frame else (), places, len(self.order))


@dataclass(frozen=True, eq=False)
class CountedRows:
    """Distinct rows as fit would read them, with how often each occurs.

    Attributes
    ----------
    X : frame or ndarray of shape (n, k)
        The columns to release.
    groups : dict
        The secret, and the prior if any, of each row.
    counts : ndarray of shape (n,), int64, or None
        None where every row occurs once.
    weight : ndarray of shape (n,), or None
    rounding : tuple of float or None
        The step of each column.
    dropped : Dropped
        What fit would have taken out of the chunks.
    """

    X: Any
    groups: dict[str, Groups]
    counts: np.ndarray | None
    weight: np.ndarray | None
    rounding: tuple[float | None, ...]
    dropped: Dropped


def rows_to_fit(layout: Layout, part: Part) -> CountedRows:
    """Return counted rows as fit would read the columns to release."""
    counts = part.counts
    if len(counts) == 1 and counts[0] > 1:
        # A fit takes two rows at least, and they are there.
        part = Part(tuple(column.take([0, 0]) for column in part.columns), counts)
        counts = np.array([counts[0] - 1, 1])
    k = len(layout.columns)
    groups = {"secret": _groups(layout.secret_names, part.columns[k])}
    if layout.prior_names:
        groups["prior"] = _groups(layout.prior_names, part.columns[k + 1])
    return CountedRows(
        X=_rebuilt(layout, part),
        groups=groups,
        counts=None if (counts == 1).all() else counts,
        weight=part.columns[-1].values if layout.weighted else None,
        rounding=layout.rounding if any(layout.rounding) else (),
        dropped=layout.dropped,
    )


def _rebuilt(layout: Layout, part: Part) -> Any:
    """Return the columns to release as a frame or an array, as the chunks were."""
    columns = part.columns[: len(layout.columns)]
    if layout.frame:
        return pandas_frame(list(map(native, columns)), layout.columns)
    if len({column.kind for column in columns}) == 1 and not columns[0].labels:
        return np.column_stack([column.values for column in columns])
    X = np.empty((len(part), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        X[:, place] = native(column)
    return X


def native(column: Column) -> Any:
    """Return a column as pandas would hold it, of labels themselves."""
    if not column.labels:
        return column.values
    if column.declared is not None:
        codes = {label: code for code, label in enumerate(column.declared)}
        rank = np.array([codes[label] for label in column.labels])
        listed = pd.Index(column.declared, dtype=object, tupleize_cols=False)
        kind = pd.CategoricalDtype(listed)
        return pd.Categorical.from_codes(rank[column.values], dtype=kind)
    if column.kind == "time":
        return pd.Series(list(column.labels)).array.take(column.values)
    labels = np.fromiter(column.labels, object, len(column.labels))
    return labels[column.values]


def _groups(names: tuple[str, ...], column: Column) -> Groups:
    """Return rows told apart as fit would; labels that are equal are one."""
    # With several columns a label is a tuple, of one part each.
    parts: list[Any] = list(column.labels)
    if len(names) == 1:
        parts = [(label,) for label in column.labels]
    ranks = []
    for one in zip(*parts, strict=True):
        alone = joined([Column("label", np.arange(len(one)), tuple(one))])
        distinct_labels = list(dict.fromkeys(alone.labels))
        ranks.append([distinct_labels.index(label) for label in one])
    keys = list(zip(*ranks, strict=True))
    order = sorted(set(keys))
    first = {key: place for place, key in reversed(list(enumerate(keys)))}
    place = np.array([order.index(key) for key in keys], dtype=np.intp)
    labels = tuple(column.labels[first[key]] for key in order)
    return Groups(names, labels, place[column.values])


def to_frame(layout: Layout, part: Part) -> pd.DataFrame:
    """Return distinct rows and counts as a frame, under the names that they have."""
    k = len(layout.columns)
    named = list(zip(layout.names, map(native, part.columns[:k]), strict=True))
    rest = list(part.columns[k:])
    for names in (layout.secret_names, layout.prior_names):
        if names:
            labels = _groups(names, rest.pop(0))
            values = np.fromiter(labels.labels, object, len(labels.labels))
            if len(names) == 1:
                named.append((names[0], values[labels.codes]))
            else:
                for place, name in enumerate(names):
                    one = np.fromiter((v[place] for v in values), object, len(values))
                    named.append((name, one[labels.codes]))
    named.append(("count", part.counts))
    if layout.weighted:
        named.append(("weight", rest.pop(0).values))
    names, columns = zip(*named, strict=True)
    return pandas_frame(columns, names).infer_objects()
