"""A lazy release: what is done when a partition is computed, and where its bits are from.

The noise of a partition is a function of a key that `transform` draws, of the
partition's number, the column, the chunk of rows and their values. Computed again, the
same rows have the same noise, which is one release; rows that come out otherwise, in
another order or with other values, have noise of their own.
"""

from __future__ import annotations

import copy
import os
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator

from skpuffer._lazy import map_lazily, without_rows
from skpuffer.core.bits import KEY_BYTES
from skpuffer.core.sampling import BitSource, KeyedBits, SeededBits, bound_key
from skpuffer.exceptions import ParameterError

# What a partition's release does not read.
_REPORTS = ("profile_", "report_")


class KeyedSource(NamedTuple):
    """Bits of a secret key, for one partition."""

    key: bytes
    partition: int

    def __call__(self, column: int, chunk: int, values: np.ndarray) -> BitSource:
        """Return the bits of a column's chunk, for these values alone."""
        key = bound_key(self.key, values)
        return KeyedBits(key, self.partition, column, chunk)


class SeededSource(NamedTuple):
    """Bits of a seed and the number of a call, for one partition."""

    seed: int
    call: int
    partition: int

    def __call__(self, column: int, chunk: int, values: np.ndarray) -> BitSource:
        """Return the bits of a column's chunk."""
        # One number for the four, each below 2^32; what is no partition has 0 here.
        number = (self.partition + 1 << 96) + (self.call << 64) + (column << 32) + chunk
        return SeededBits(self.seed, number)


class PartitionRelease:
    """What a lazy graph holds: the scales and labels of a fit, and a key or a seed."""

    def __init__(self, estimator: Any, seed: int | None) -> None:
        # A copy: parameters may be set, or another fit made, before it is computed.
        self._estimator = copy.copy(estimator)
        self._estimator.n_jobs = None
        for name in _REPORTS:
            delattr(self._estimator, name)
        self._seed = seed
        call = estimator._next_call()
        self._secret = os.urandom(KEY_BYTES) if seed is None else call

    def __call__(self, part: Any, number: int) -> Any:
        """Release a partition."""
        if not len(part):
            return self._estimator._layout(part)
        source = (
            KeyedSource(self._secret, number)
            if self._seed is None
            else SeededSource(self._seed, self._secret, number)
        )
        return self._estimator._released(self._estimator._rows(part), source)

    def __repr__(self) -> str:
        return f"PartitionRelease of {type(self._estimator).__name__}"


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
