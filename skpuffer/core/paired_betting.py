"""Betting against an (ε, δ) claim, pair by pair: a test that may be watched.

A fortune of factors that have mean at most 1 given the past, as in `core.betting`, with
one sample of each distribution in a factor. Pure: imports numpy.

Shekhar, Ramdas: Nonparametric two-sample testing by betting. IEEE Trans. Inf. Theory
2024. Ville: Étude critique de la notion de collectif. 1939.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.core.betting import MOST_STAKED
from skpuffer.core.prior import FloatArray


def largest_stake(epsilon: ArrayLike, delta: float) -> FloatArray:
    """Return 1/(e^ε + δ): a stake below it keeps every factor positive."""
    stake: FloatArray = 1.0 / (np.exp(np.asarray(epsilon, dtype=np.float64)) + delta)
    return stake


def log_factors(
    first: ArrayLike,
    second: ArrayLike,
    *,
    epsilon: ArrayLike,
    delta: float,
    stake: ArrayLike,
) -> FloatArray:
    """Return log(1 + l (h(x) − e^ε h(y) − δ)), what a pair adds to the log fortune.

    Under the (ε, δ) claim E h(x) ≤ e^ε E h(y) + δ for every h with values in [0, 1], so
    that a factor has mean at most 1 given the past if h and l depend on the past alone:
    the fortune is an e-process, and 1/fortune a p-value at any time [Shekhar, Ramdas
    2024, for two samples].

    Parameters
    ----------
    first, second : array-like
        h(x) and h(y), in [0, 1], of shapes that broadcast with the others.
    epsilon : array-like
        Claims, non-negative.
    delta : float
        In [0, 1).
    stake : array-like
        In [0, 1/(e^ε + δ)).

    Returns
    -------
    ndarray of the broadcast shape
        Finite.

    Raises
    ------
    ValueError
        A stake is negative or could lose everything.

    Examples
    --------
    >>> log_factors([1, 0], [0, 1], epsilon=0.0, delta=0.0, stake=0.5).round(3)
    array([ 0.405, -0.693])
    """
    stake = np.asarray(stake, dtype=np.float64)
    if not ((stake >= 0) & (stake < largest_stake(epsilon, delta))).all():
        raise ValueError(
            "a stake must be in [0, 1/(e^epsilon + delta)), got "
            f"{stake.min():g} to {stake.max():g}"
        )
    gain = np.asarray(first) - np.exp(epsilon) * np.asarray(second) - delta
    logs: FloatArray = np.log1p(stake * gain)
    return logs


def growth_stakes(counts: ArrayLike, *, epsilon: ArrayLike, delta: float) -> FloatArray:
    """Return the stakes under which past pairs would have made the fortune grow most.

    Half a pair is added to each count, so that no stake is staked on too little.

    Parameters
    ----------
    counts : array-like of shape (4, ...)
        Past pairs with an event in both, in the first alone, in the second alone, in
        neither.
    epsilon : array-like
        Claims, of a shape that broadcasts with the counts of one kind.
    delta : float

    Returns
    -------
    ndarray
        Of the broadcast shape; in [0, .99/(e^ε + δ)].

    Examples
    --------
    Nothing is staked on an event that speaks for the claim, as in the second column:

    >>> counts = [[5, 5], [60, 20], [20, 60], [100, 100]]
    >>> growth_stakes(counts, epsilon=0.0, delta=0.0).round(2)
    array([0.49, 0.  ])
    """
    weight = np.asarray(counts, dtype=np.float64) + 0.5
    shape = np.broadcast_shapes(weight.shape[1:], np.shape(epsilon))
    weight = weight.reshape(
        4, *(1,) * (len(shape) + 1 - weight.ndim), *weight.shape[1:]
    )
    odds = np.broadcast_to(np.exp(np.asarray(epsilon, dtype=np.float64)), shape)
    none = np.zeros(shape)
    gains = np.stack([1 - odds, 1 + none, -odds, none]) - delta
    most = none + MOST_STAKED * largest_stake(epsilon, delta)
    low, high = none, most
    # The growth is concave in the stake: its slope falls, and a root of it is the best.
    for _ in range(40):
        middle = (low + high) / 2
        rising = (weight * gains / (1 + middle * gains)).sum(axis=0) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    # What only halvings have made is no stake at all.
    stakes: FloatArray = np.where(low < 1e-9 * most, 0.0, low)
    return stakes
