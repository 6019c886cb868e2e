"""Fits on the same data share what depends on the data alone, while a block lasts.

A search fits the same fold again for every order, budget, law and rule. What `_fit`
makes of a sample is kept with the sample (`Sample.once`); here samples are kept, and
found again by comparing what fit is given with private copies, value by value: taking
other data for the same would be noise for other data. Nothing is hashed, and what
cannot be compared with certainty is read anew. It may import `_validation`, and knows of
an estimator no more than its parameters and the features that reading sets.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from skpuffer._checks import integer
from skpuffer._validation import (
    Contents,
    Sample,
    refuse_misaligned,
    warn_of_categories,
)

# Parameters that reading takes no account of: a search over them reads once.
_NOT_READ = {
    "alpha",
    "epsilon",
    "delta",
    "law",
    "power",
    "calibration",
    "confidence",
    "n_releases",
    "min_group_size",
    "random_state",
    "n_jobs",
    "verbose",
}
_FEATURES = ("n_features_in_", "feature_names_in_")
# From here over this file, _prepare and fit to its caller.
_STACK = 5


class FitReuse:
    """What `reuse_fits` yields: how often data were met again.

    Attributes
    ----------
    hits, misses : int
        Fits that found their data read, and fits that read them.
    max_entries : int
    """

    def __init__(self, max_entries: int) -> None:
        self.hits = self.misses = 0
        self.max_entries = max_entries
        # Latest last. The process that made them: one that is forked has no part in it.
        self._readings: list[_Reading] = []
        self._process = os.getpid()
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"FitReuse(hits={self.hits}, misses={self.misses})"

    def _find(self, given: _Given) -> _Reading | None:
        # The lock is not held while values are compared.
        for reading in reversed(list(self._readings)):
            if reading.given.same_as(given):
                with self._lock:
                    self.hits += 1
                    if reading in self._readings:
                        self._readings.remove(reading)
                        self._readings.append(reading)
                return reading
        return None

    def _keep(self, reading: _Reading) -> None:
        with self._lock:
            self._readings.append(reading)
            del self._readings[: -self.max_entries]

    def _count_miss(self) -> None:
        with self._lock:
            self.misses += 1

    def _forget(self) -> None:
        with self._lock:
            self._readings.clear()


# The blocks that are open, innermost last.
_OPEN: list[FitReuse] = []


@contextmanager
def reuse_fits(max_entries: int = 16) -> Iterator[FitReuse]:
    """Let fits on equal data share what depends on the data alone, within a block.

    In a search over `alpha`, `epsilon`, `delta`, the law or the rule, every candidate
    is fitted on the same folds. Inside the block the rows of a fold are read, checked
    and sorted once, and the couplings of its secret values are made once; what is left
    for a candidate is to compare its rows with those known, value by value, and to
    solve for its scale. Scales, guarantees and profiles are those without the block,
    and whatever fit refuses or warns of it still does.

    Data are the same if X, the secret, the prior, the weights and all parameters that
    reading depends on are: `secret_pairs`, `prior_model`, `bounds`, `column_weights`,
    `categories`, ... Data that cannot be compared with certainty (nested lists, labels
    other than text, numbers and dates, a callable `metric`) are read anew. Columns of
    Python objects are compared one by one; text of pandas, and categories, much faster.
    Lazy rows and counts have no part in it: count lazy rows once and give every candidate
    the counts (`fit_counts`). A fit that shows the bar of its search (``verbose=1``)
    makes couplings of its own.

    The block holds copies of the data, about a hundred bytes for each row and column of
    a fold: nothing of them enters an estimator or its pickle, and nothing is left when
    the block ends, by an exception or not. It serves all threads
    of its process (``n_jobs`` with joblib's threading backend). Worker processes of
    joblib's default backend are processes of their own, in which the block is not
    open: search with ``n_jobs=1`` or threads. Nested blocks find what outer ones hold,
    and keep what they read themselves until their own end.

    Parameters
    ----------
    max_entries : int, default=16
        How many folds are held; the one not used for the longest time goes first. A
        search that shuffles its folds anew for every candidate finds nothing.

    Yields
    ------
    FitReuse
        Counts `hits` and `misses`.

    Raises
    ------
    ParameterError
        `max_entries` is not a positive integer.

    Examples
    --------
    >>> import numpy as np
    >>> import skpuffer
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 1)) + sex[:, np.newaxis]
    >>> noise = skpuffer.RenyiPufferfishLaplace(epsilon=1)
    >>> with skpuffer.reuse_fits() as reuse:
    ...     scales = [
    ...         noise.set_params(alpha=alpha).fit(X.copy(), secret=sex).scale_[0]
    ...         for alpha in (2, 4, 8)
    ...     ]
    >>> reuse, bool(np.all(np.diff(scales) > 0))
    (FitReuse(hits=2, misses=1), True)
    """
    reuse = FitReuse(integer("max_entries", max_entries, least=1))
    _OPEN.append(reuse)
    try:
        yield reuse
    finally:
        _OPEN.remove(reuse)
        reuse._forget()


@dataclass(frozen=True, eq=False)
class _Given:
    """What reading depends on.

    Attributes
    ----------
    parameters : hashable
    contents : tuple of Contents
        X, y where it is the secret, the secret, the prior and the weights.
    """

    parameters: Hashable
    contents: tuple[Contents, ...]

    @classmethod
    def to(cls, estimator: Any, *data: Any) -> _Given | None:
        """Collect it; None where it could not be recognised."""
        settings = tuple(
            (name, _written(value))
            for name, value in estimator._parameters().items()
            if name not in _NOT_READ
        )
        # The mechanisms of this package differ by their parameters alone.
        kind = type(estimator)
        own = None if kind.__module__.split(".")[0] == "skpuffer" else kind
        if isinstance(data[0], (list, tuple)) or not all(w for _, w in settings):
            return None
        found = []
        for item in data:
            contents = Contents.of(item)
            if contents is None:
                return None
            found.append(contents)
        return cls((own, settings), tuple(found))

    def copied(self) -> _Given | None:
        """Return the same in arrays of its own."""
        copies = []
        for item in self.contents:
            copied = item.copied()
            if copied is None:
                return None
            copies.append(copied)
        return _Given(self.parameters, tuple(copies))

    def same_as(self, other: _Given) -> bool:
        return self.parameters == other.parameters and all(
            mine.same_as(others)
            for mine, others in zip(self.contents, other.contents, strict=True)
        )

    def shares_memory(self, values: np.ndarray) -> bool:
        """Whether an array may be a view of what was given."""
        return any(
            np.may_share_memory(values, part)
            for item in self.contents
            for part in item.parts
            if isinstance(part, np.ndarray)
        )


@dataclass(frozen=True, eq=False)
class _Reading:
    """A sample, with what it was read from.

    Attributes
    ----------
    given : _Given
    sample : Sample
    features : mapping
        The attributes that reading sets on the estimator.
    n_rows : int
        Of X, those of weight zero included.
    """

    given: _Given
    sample: Sample
    features: Mapping[str, Any]
    n_rows: int


def recalled(
    estimator: Any,
    X: Any,
    y: Any,
    secret: Any,
    prior: Any,
    weight: Any,
    counted: Any = None,
) -> Sample | None:
    """Return the sample that was read from the same data, if a block is open.

    The estimator's feature names are set and what depends on an index is checked, as
    reading does.

    Parameters
    ----------
    estimator : Release
        Its parameters are checked already.
    X, y, secret, prior, weight
        As in `fit`.
    counted : CountedRows, optional
        Rows that were counted before: those are read anew.

    Returns
    -------
    Sample or None

    Raises
    ------
    ParameterError
        Labels have another index than X.
    """
    blocks = _blocks()
    if not blocks or counted is not None:
        return None
    labels = y if estimator.secret_from_y else None
    given = _Given.to(estimator, X, labels, secret, prior, weight)
    reading = None
    if given is not None:
        found_in = (block._find(given) for block in blocks)
        reading = next((one for one in found_in if one is not None), None)
    if reading is None:
        blocks[0]._count_miss()
        return None
    for parameter, found in (("secret", labels), ("secret", secret), ("prior", prior)):
        if found is not None:
            refuse_misaligned(X, found, parameter)
    for name, value in reading.features.items():
        setattr(estimator, name, copy(value))
    sample = reading.sample
    taken = [
        (name, len(one.labels))
        for name, one in zip(sample.names, sample.sets, strict=True)
        if one is not None and one.from_data
    ]
    warn_of_categories(taken, reading.n_rows, _STACK)
    return sample


def remembered(
    estimator: Any,
    sample: Sample,
    X: Any,
    y: Any,
    secret: Any,
    prior: Any,
    weight: Any,
    counted: Any = None,
) -> Sample:
    """Return a sample that was read, and keep it if a block is open.

    It is then one that shares no memory with the caller.
    """
    blocks = _blocks()
    if not blocks or counted is not None:
        return sample
    labels = y if estimator.secret_from_y else None
    given = _Given.to(estimator, X, labels, secret, prior, weight)
    copies = None if given is None else given.copied()
    if given is None or copies is None:
        return sample
    parts: dict[str, Any] = {
        name: values.copy()
        for name, values in (("values", sample.values), ("weight", sample.weight))
        if values is not None and given.shares_memory(values)
    }
    # Labels that are whole numbers may be their own codes.
    for name, groups in (("secret", sample.secret), ("prior", sample.prior)):
        if groups is not None and given.shares_memory(groups.codes):
            parts[name] = replace(groups, codes=groups.codes.copy())
    sample = replace(sample, **parts)
    features = {
        name: copy(vars(estimator)[name])
        for name in _FEATURES
        if name in vars(estimator)
    }
    blocks[0]._keep(_Reading(copies, sample, features, len(X)))
    return sample


def _blocks() -> list[FitReuse]:
    """Return the open blocks of this process, innermost first."""
    return [block for block in reversed(_OPEN) if block._process == os.getpid()]


def _written(value: Any) -> Hashable:
    """Return the value of a parameter in a form that tells it from every other.

    None where it could change, or be compared only by its own lights.
    """
    if value is None or type(value) in (str, bytes, bool, int, float):
        return type(value), repr(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biufcUS":
        return type(value), value.tobytes()
    if type(value) is np.ndarray and value.dtype.kind in "biufcUS":
        return value.dtype.str, value.shape, value.tobytes()
    if type(value) is np.ndarray:
        if value.dtype != object:
            return None  # Dates and records, as lists, could be something else.
        value = value.tolist()
    kind: type
    if type(value) is dict:
        value = list(value.items())
        kind = dict
    elif type(value) in (list, tuple):
        kind = type(value)
    else:
        return None
    items = tuple(map(_written, value))
    return None if None in items else (kind, items)
