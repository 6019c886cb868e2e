"""Lazy rows: counted for a fit, and released partition by partition.

The noise of a partition is a function of a key that `transform` draws, of the
partition's number, the column, the chunk of rows and their values. Computed again, the
same rows have the same noise, which is one release; rows that come out otherwise, in
another order or with other values, have noise of their own. The key is in the graph and
in no estimator; how rows are read and released is the estimator's own affair.
"""

from __future__ import annotations

import copy
from os import urandom
from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator

from skpuffer._lazy import map_lazily, without_rows
from skpuffer._noise import keyed_source, seeded_source
from skpuffer._validation import labels_beside
from skpuffer.core.bits import KEY_BYTES
from skpuffer.counts import ConditionalCounts
from skpuffer.exceptions import ParameterError

# What a partition's release does not read.
_REPORTS = ("profile_", "report_")


class PartitionRelease:
    """What a lazy graph holds: the scales and labels of a fit, and a key or a seed."""

    def __init__(self, estimator: Any, seed: int | None) -> None:
        # A copy: parameters may be set, or another fit made, before it is computed.
        self._estimator = copy.copy(estimator)
        self._estimator.n_jobs = None
        for name in _REPORTS:
            delattr(self._estimator, name)
        # Its partitions are of the kind of X, whatever is asked for elsewhere by then.
        vars(self._estimator).pop("_sklearn_output_config", None)
        self._estimator.set_output(transform="default")
        self._seed = seed
        self._call = estimator._next_call()
        self._key = urandom(KEY_BYTES) if seed is None else bytes(KEY_BYTES)

    def __call__(self, part: Any, number: int) -> Any:
        """Release a partition."""
        if not len(part):
            return self._estimator._layout(part)
        source = (
            keyed_source(self._key, number)
            if self._seed is None
            else seeded_source(self._seed, self._call, number)
        )
        return self._estimator._released(self._estimator._rows(part), source)

    def __repr__(self) -> str:
        return f"PartitionRelease of {type(self._estimator).__name__}"


def count_lazily(
    estimator: Any, X: Any, y: Any, secret: Any, prior: Any, weight: Any
) -> ConditionalCounts:
    """Count lazy rows for a fit."""
    beside = labels_beside(estimator, y, secret, prior)
    counts = ConditionalCounts(secret=estimator.secret, prior=estimator.prior)
    counts.update(X, **beside, sample_weight=weight)
    if not counts.n_rows:
        raise ValueError("X has no rows (or none of a weight above 0) to fit on")
    return counts


def release_lazily(estimator: Any, X: Any, seed: int | None) -> Any:
    """Return the release of lazy rows, not yet computed; bad columns are refused now."""
    refuse_container(estimator, X)
    empty = estimator._layout(without_rows(X))
    return map_lazily(X, PartitionRelease(estimator, seed), empty)


def refuse_container(estimator: BaseEstimator, X: Any) -> None:
    """Refuse a lazy X where scikit-learn is to put its release into another container.

    It would compute the release on the spot, and build the container in memory.
    """
    own = getattr(estimator, "_sklearn_output_config", {})
    wanted = own.get("transform", get_config()["transform_output"])
    if wanted != "default":
        raise ParameterError(
            f"set_output(transform={wanted!r}) asks for a frame in memory, and X is lazy "
            f"({type(X).__module__.split('.')[0]}): set_output(transform='default') "
            "releases it lazily, as a frame of its own kind"
        )
