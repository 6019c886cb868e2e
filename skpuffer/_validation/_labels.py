"""Labels of a column of any kind: told apart, in order, as values of Python.

The one place that knows how kinds of frames keep labels. A text of a million rows is
told apart by the codes that its library gives it, never value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from skpuffer._validation._frames import as_column

# A missing value that was once turned into text. "None" may be a category of its own,
# so it counts only in numpy's text arrays, which cannot hold the value itself.
_SPELT_OUT = ("nan", "NaN", "<NA>", "NaT")
# Integers no further from each other are told apart without a table of them.
_NEAR = 1000

# Codes, −1 where missing; and the labels of some codes.
_Coded = tuple[np.ndarray, Callable[[list[int]], Sequence[Any]]]


def factorise(column: Any) -> tuple[np.ndarray, list[Hashable], list[str]]:
    """Tell the rows of a column apart by their labels.

    Parameters
    ----------
    column : series of any kind, or 1-D array

    Returns
    -------
    codes : ndarray of intp
        Positions in `labels`; −1 where a label is missing.
    labels : list of hashable
        Those that occur, sorted.
    spelt : list of str
        Texts that stood for missing ones.

    Raises
    ------
    TypeError
        A label cannot be hashed.
    """
    near = _near_integers(column)
    if near is not None:
        return *near, []
    texts: tuple[str, ...] = _SPELT_OUT
    series = as_column(column)
    if series is None:
        column = np.asarray(column)
        if column.dtype.kind in "UST":
            texts = (*_SPELT_OUT, "None")
        codes, labels_of = _by_hash(column)
    else:
        codes, labels_of = _by_kind(series)
    present = np.flatnonzero(np.bincount(codes + 1, minlength=1)[1:]).tolist()
    labels = dict(zip(present, map(_python_value, labels_of(present)), strict=True))
    spelt = [code for code in present if _text(labels[code]) in texts]
    missing = {*spelt, *(code for code in present if _is_missing(labels[code]))}
    present = [code for code in present if code not in missing]
    present = [present[i] for i in in_order([labels[code] for code in present])]
    if present != list(range(len(labels))):
        # One more place, for the code −1.
        rank = np.full(max(labels) + 2, -1, dtype=np.intp)
        rank[present] = np.arange(len(present))
        codes = rank[codes]
    ordered = [labels[code] for code in present]
    return codes, ordered, [_text(labels[code]) for code in spelt]


def in_order(labels: Sequence[Any]) -> list[int]:
    """Return positions of labels in an order that depends on the labels alone."""
    # Equal labels of several types keep the order of their types.
    places = sorted(range(len(labels)), key=lambda i: type(labels[i]).__name__)
    try:
        return sorted(places, key=lambda i: labels[i])
    except TypeError:
        return sorted(places, key=lambda i: (type(labels[i]).__name__, str(labels[i])))


def _near_integers(column: Any) -> tuple[np.ndarray, list[Hashable]] | None:
    """Return codes and labels of integers near each other, which need no table."""
    array = column
    if isinstance(column, pd.Series):
        if not isinstance(column.dtype, np.dtype):
            return None
        array = column.to_numpy()
    # An unsigned number may be beyond the codes' range.
    if not isinstance(array, np.ndarray) or array.dtype.kind != "i" or not array.size:
        return None
    low, high = int(array.min()), int(array.max())
    if high - low >= _NEAR:
        return None
    codes = array.astype(np.intp, copy=False)
    if low:
        codes = codes - low
    labels: list[Hashable] = list(range(low, high + 1))
    if high - low < 2:
        return codes, labels
    present = np.flatnonzero(np.bincount(codes, minlength=high - low + 1))
    if len(present) < len(labels):
        rank = np.zeros(len(labels), dtype=np.intp)
        rank[present] = np.arange(len(present))
        codes = rank.take(codes)
    return codes, [labels[place] for place in present.tolist()]


def _by_kind(series: nw.Series[Any]) -> _Coded:
    """Return codes as the library of a series finds them."""
    native = series.to_native()
    labelled = series.dtype in (nw.String, nw.Categorical, nw.Enum)
    if isinstance(native, pd.Series):
        if isinstance(native.dtype, pd.CategoricalDtype):
            known = native.cat.categories
            codes = native.cat.codes.to_numpy().astype(np.intp)
            return codes, lambda chosen: [known[code] for code in chosen]
        return _by_hash(native)
    if labelled and hasattr(native, "dictionary_encode"):
        encoded = native.dictionary_encode().combine_chunks()
        return _decoded(
            encoded.indices.fill_null(-1).to_numpy().astype(np.intp),
            encoded.dictionary.to_pylist(),
        )
    if labelled and hasattr(native, "to_physical"):
        if series.dtype == nw.String:
            native = series.cast(nw.Categorical).to_native()
        codes, _ = pd.factorize(native.to_physical().to_numpy())
        first = _first_rows(codes)
        return codes, lambda chosen: series[first[chosen].tolist()].to_list()
    values = series.to_numpy()
    if values.ndim > 1:
        raise TypeError(f"a row holds a {series.dtype}")
    return _by_hash(values)


def _decoded(codes: np.ndarray, values: list[Any]) -> _Coded:
    """Return codes of values, of which several may be the same or missing."""
    known = pd.factorize(np.array([*values, None], dtype=object)[:-1])[0]
    if (known != np.arange(len(known))).any():
        codes = np.append(known, -1)[codes]
    place = _first_rows(known)
    return codes, lambda chosen: [values[row] for row in place[chosen].tolist()]


def _by_hash(column: Any) -> _Coded:
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        column = pd.Series(column)  # dates, as in a frame, and not nanoseconds
    codes, found = pd.factorize(column)
    return codes, lambda chosen: [found[code] for code in chosen]


def _first_rows(codes: np.ndarray) -> np.ndarray:
    """Return the first row of each code."""
    first = np.empty(codes.max(initial=-1) + 2, dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _text(label: Hashable) -> str:
    """Return a label that is text, numpy's bytes included; otherwise nothing."""
    if isinstance(label, bytes):
        return label.decode("latin-1")
    return label if isinstance(label, str) else ""


def _is_missing(label: Hashable) -> bool:
    """Whether a label is missing, or has a part that is.

    Nullable columns may hold a NaN that their own library does not call missing.
    """
    parts = label if isinstance(label, tuple) else (label,)
    missing: list[Any] = [pd.isna(part) for part in parts]
    # An array of what is no scalar to pandas is no truth value.
    return any(one is True for one in missing)


def _python_value(label: Any) -> Hashable:
    found: Hashable = label.item() if isinstance(label, np.generic) else label
    return found
