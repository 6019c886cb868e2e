"""The auditor's door for data: two samples, or one with a secret, become pairs."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skpuffer._text import value_text
from skpuffer._validation import COMPARED, read_sample, read_tables
from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import DuplicateRowsWarning, ParameterError

MIN_ROWS = 20
# Repeated rows are suspect where at least this share of the rows is distinct.
_CONTINUOUS = 0.5
# So few different rows may well come in one order twice.
_FEW_VALUES = 5
# A release lies on a grid of 2^-20 of its scale, where some n² / 2^23 of n values of
# one column agree by chance. Four times as many are let pass.
_BY_CHANCE = 2.0**-21


@dataclass(frozen=True, eq=False)
class SamplePair:
    """Two samples to be told apart.

    Attributes
    ----------
    labels : (hashable, hashable)
    x, y : ndarray of shape (n_x, d) and (n_y, d)
    """

    labels: tuple[Hashable, Hashable]
    x: FloatArray
    y: FloatArray

    @property
    def reason(self) -> str | None:
        """Why nothing can be computed, if so."""
        small = [
            f"{label} has {len(rows)}"
            for label, rows in zip(self.labels, (self.x, self.y), strict=True)
            if len(rows) < MIN_ROWS
        ]
        if not small:
            return None
        return f"an audit needs {MIN_ROWS} rows of either sample: {', '.join(small)}"


class _Reader(BaseEstimator):
    """What the door for released rows asks of an estimator."""

    secret_from_y = False
    prior = bounds = None
    prior_model, out_of_bounds, column_weights = "empirical", "clip", "std"
    clip_output = False
    # What a message says of columns that are no numbers.
    needs = COMPARED

    def __init__(self, secret: Any, secret_pairs: Any) -> None:
        self.secret = secret
        self.secret_pairs = secret_pairs


def read_pairs(
    X: Any, Y: Any, secret: Any, *, column: Any, secret_pairs: Any
) -> list[SamplePair]:
    """Return the pairs of samples to audit.

    Parameters
    ----------
    X, Y, secret
        As in `KernelRenyiAuditor.fit`.
    column, secret_pairs
        Its parameters `secret` and `secret_pairs`.

    Raises
    ------
    ParameterError
        The input is neither two samples nor one with a secret.
    ValueError, TypeError
        Rows are missing, too few, not numeric, or the same in both samples.
    """
    if Y is None:
        pairs = _by_secret(X, secret, column, secret_pairs)
    else:
        pairs = [_two_samples(X, Y, secret, column)]
    _warn_about_duplicates(pairs)
    return pairs


def _two_samples(X: Any, Y: Any, secret: Any, column: Any) -> SamplePair:
    given = [
        name
        for name, used in (("secret= in fit", secret), ("secret=", column))
        if used is not None
    ]
    if given:
        raise ParameterError(
            f"both Y and {given[0]} are given: audit two samples, fit(X, Y), or one "
            "sample by its secret, fit(X, secret=labels)"
        )
    x, y = read_tables(X, Y)
    pair = SamplePair(("X", "Y"), x, y)
    if pair.reason:
        raise ValueError(f"{pair.reason}: draw more samples")
    _refuse_identical(pair)
    return pair


def _by_secret(X: Any, secret: Any, column: Any, pairs: Any) -> list[SamplePair]:
    if secret is None and column is None:
        raise ParameterError(
            "there is one sample and no secret: give two samples, fit(X, Y), the labels "
            "of the rows, fit(X, secret=labels), or name their column, secret='sex'"
        )
    if secret is not None and column is not None:
        raise ParameterError(
            f"the secret is given twice (secret={value_text(column)} in the "
            "constructor, and "
            "secret= in fit): keep one"
        )
    sample = read_sample(_Reader(column, pairs), X, None, secret, None, None)
    labels = list(sample.secret.labels)
    rows = [sample.values[sample.secret.codes == code] for code, _ in enumerate(labels)]
    return [
        SamplePair((a, b), rows[labels.index(a)], rows[labels.index(b)])
        for a, b in sample.pairs
    ]


def _refuse_identical(pair: SamplePair) -> None:
    if pair.x.shape == pair.y.shape and np.array_equal(
        np.sort(row_codes(pair.x)), np.sort(row_codes(pair.y))
    ):
        distinct = len(np.unique(row_codes(pair.x)))
        repeated = np.array_equal(pair.x, pair.y) and distinct > _FEW_VALUES
        if repeated or distinct >= _CONTINUOUS * len(pair.x):
            raise ValueError(
                f"X and Y hold the same {len(pair.x)} rows: an audit needs two samples "
                "that were drawn independently"
            )


def mostly_distinct(rows: FloatArray) -> bool:
    """Whether at least half of the rows differ from all others."""
    return len(np.unique(row_codes(rows))) >= _CONTINUOUS * len(rows)


def _warn_about_duplicates(pairs: list[SamplePair]) -> None:
    """Warn of rows that occur twice where values are not discrete.

    They would fall on both sides of the cut between learning and counting, and are no
    independent draws. Whole numbers repeat themselves.
    """
    for pair in pairs:
        if all(np.array_equal(rows, np.floor(rows)) for rows in (pair.x, pair.y)):
            continue
        codes = np.concatenate([row_codes(pair.x), row_codes(pair.y)])
        distinct = len(np.unique(codes))
        repeated = len(codes) - distinct
        by_chance = repeated <= _BY_CHANCE * len(codes) ** 2
        if not by_chance and distinct >= _CONTINUOUS * len(codes):
            warnings.warn(
                f"{repeated} of {len(codes)} rows of {pair.labels[0]} and "
                f"{pair.labels[1]} repeat another: the level of an audit needs "
                "independent draws, and copies of a row may be learned from and "
                "counted; release each row once",
                DuplicateRowsWarning,
                # From here over read_pairs and fit to whoever called fit.
                stacklevel=4,
            )


def row_codes(rows: FloatArray) -> np.ndarray:
    """Return a number a row, equal for equal rows and hardly ever otherwise."""
    # Adding 0 turns -0 into 0. Sums of integers wrap around, in any order alike.
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)
    rng = np.random.default_rng(0)
    drawn = rng.integers(2**63, size=(rows.shape[1],), dtype=np.uint64)
    odd = drawn * np.uint64(2)
    mixed = (bits ^ (bits >> np.uint64(29))) * (odd + np.uint64(1))
    mixed ^= mixed >> np.uint64(32)
    codes: np.ndarray = (mixed * (odd[::-1] + np.uint64(1))).sum(axis=1)
    return codes
