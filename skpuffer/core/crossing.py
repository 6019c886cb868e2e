"""Exact simultaneous bounds for the order statistics of a uniform sample.

Knows nothing of data: the bounds depend on the size of a sample and an error alone,
so that they may be computed once and kept. Imports numpy and scipy.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.special import betaincinv, gammaln

from skpuffer.core.prior import FloatArray

# At most about this many ranks are bounded, half a standard deviation apart.
_MAX_RANKS = 1200
_SPACING = 0.5
# Errors below this are left to the union bound: round-off would count.
_SMALLEST_ERROR = 1e-6
# The level is searched for until the error is spent to within this share.
_UNSPENT = 2e-3
_MAX_ROUNDS = 60
# Above this many products a convolution goes by Fourier transforms.
_DIRECT = 2**19


class RankBounds(NamedTuple):
    """Bounds ``lower[j] <= U_(ranks[j]) <= upper[j]`` that hold together.

    Attributes
    ----------
    ranks : ndarray of shape (m,)
        Increasing, from 1 to n.
    lower, upper : ndarray of shape (m,)
        Non-decreasing, in [0, 1].
    """

    ranks: NDArray[np.int64]
    lower: FloatArray
    upper: FloatArray


@lru_cache(maxsize=256)
def rank_bounds(n: int, error: float) -> RankBounds:
    """Bound the order statistics of n uniform values, all at once.

    Each U_(i) is Beta(i, n+1−i). Every bound is one of its quantiles, at a level that
    is a common factor times a weight, and the factor is the largest at which the
    probability that any bound fails, computed exactly, stays below `error`. The
    weights are fixed: more for the outer sides of the extreme ranks, which decide how
    much mass a heavy tail may hide, less for their inner sides.

    Parameters
    ----------
    n : int
        Sample size, at least 1.
    error : float
        In (0, 1).

    Returns
    -------
    RankBounds
        All hold together with probability at least ``1 - error``.

    Examples
    --------
    >>> bounds = rank_bounds(100, 0.05)
    >>> 0.97 * 0.05 < failure(100, bounds) <= 0.05
    True

    One value, two sides of one rank:

    >>> bounds = rank_bounds(1, 0.05)
    >>> bool(0.95 <= bounds.upper[0] - bounds.lower[0] < 0.9502)
    True
    """
    ranks = _chosen_ranks(n)
    from_top = n + 1 - ranks
    lower_weight = (1 + 16 / from_top) * (ranks / (ranks + 8))
    upper_weight = (1 + 16 / ranks) * (from_top / (from_top + 8))

    def at(factor: float) -> RankBounds:
        down = np.minimum(factor * lower_weight, 0.5)
        up = np.minimum(factor * upper_weight, 0.5)
        lower = np.asarray(betaincinv(ranks, from_top, down), dtype=np.float64)
        upper = 1 - np.asarray(betaincinv(from_top, ranks, up), dtype=np.float64)
        # Nothing more fails: U_(i) is at least U_(j) for j < i.
        lower = np.maximum.accumulate(lower)
        upper = np.minimum.accumulate(upper[::-1])[::-1]
        return RankBounds(ranks, lower, upper)

    # The union bound; it covers the round-off of the quantiles too.
    factor = error / (lower_weight.sum() + upper_weight.sum()) * (1 - 1e-9)
    best = at(factor)
    if error < _SMALLEST_ERROR:
        return _frozen(best)
    goal = min(error, 0.5) * (1 - _UNSPENT / 2)
    for _ in range(_MAX_ROUNDS):
        # The failure probability grows almost in proportion to the factor.
        spent = failure(n, best)
        if goal * (1 - _UNSPENT / 2) <= spent <= goal:
            break
        factor *= goal / max(spent, goal / 1e3)
        best = at(factor)
    else:  # pragma: no cover - the loop contracts tenfold a round
        best = at(error / (lower_weight.sum() + upper_weight.sum()) * (1 - 1e-9))
    return _frozen(best)


def failure(n: int, bounds: RankBounds) -> float:
    """Return the exact probability that any of the bounds fails.

    With N(u) the number of values up to u, U_(i) ≥ L means N(L) ≤ i − 1 and U_(i) ≤ H
    means N(H) ≥ i. N is a Poisson process given N(1) = n, and its distribution is
    carried from bound to bound, cut at each to what the bound allows (Moscovich and
    Nadler 2017). Only cuts lose mass, the kernels' tails included, so that round-off
    (below 1e-9) is the only way to an answer too small.

    Parameters
    ----------
    n : int
    bounds : RankBounds

    Returns
    -------
    float

    Examples
    --------
    Both of two values above 1/2, or both below:

    >>> half = np.array([0.5])
    >>> round(failure(2, RankBounds(np.array([1]), half * 0, half)), 12)
    0.25
    """
    position = np.concatenate([bounds.lower, bounds.upper])
    is_upper = np.repeat([False, True], len(bounds.ranks))
    order = np.argsort(position, kind="stable")
    ranks = np.concatenate([bounds.ranks, bounds.ranks])[order].tolist()
    steps = (n * np.diff(position[order], prepend=0.0)).tolist()
    weight, base = np.ones(1), 0
    for rank, upper, step in zip(ranks, is_upper[order].tolist(), steps, strict=True):
        if step > 0:
            first, kernel = _poisson(step)
            weight = _convolve(weight, kernel)
            base += first
        if upper:
            cut = max(rank - base, 0)
            weight, base = weight[cut:], base + cut
        else:
            weight = weight[: max(rank - base, 0)]
        if not len(weight):
            return 1.0
    rest = n * (1 - float(position.max()))
    missing = n - base - np.arange(len(weight))
    weight, missing = weight[missing >= 0], missing[missing >= 0]
    # log P(N(1) = n) for the Poisson process, by Stirling's series.
    log_total = -0.5 * math.log(2 * math.pi * n) - _stirling(n)
    log_last = _log_poisson(missing, rest) - log_total
    return max(1.0 - float((weight * np.exp(log_last)).sum()), 0.0)


def _chosen_ranks(n: int) -> NDArray[np.int64]:
    """Return ranks evenly spaced in units of their own standard deviation."""
    # The angle asin √(i/n) has standard deviation 1 / 2√n, whatever the rank.
    number = math.ceil(math.pi / 2 * math.sqrt(n) / _SPACING)
    angle = np.linspace(0, math.pi / 4, min(number, _MAX_RANKS // 2))
    ranks = np.clip(np.rint(n * np.square(np.sin(angle))), 1, n).astype(np.int64)
    # The same ranks from either end.
    return np.unique(np.concatenate([ranks, n + 1 - ranks]))


def _poisson(mean: float) -> tuple[int, FloatArray]:
    """Return the first count and the probabilities of the counts that matter."""
    reach = 10 * math.sqrt(mean) + 30
    counts = np.arange(max(0, math.floor(mean - reach)), math.ceil(mean + reach))
    return int(counts[0]), np.exp(_log_poisson(counts, mean))


def _log_poisson(counts: NDArray[np.int64], mean: float) -> FloatArray:
    if mean <= 0:
        return np.where(counts == 0, 0.0, -np.inf)
    log: FloatArray = counts * math.log(mean) - mean - gammaln(counts + 1)
    return log


def _stirling(n: int) -> float:
    """Return log n! − log(√(2πn) (n/e)^n), to 1e-9 and exactly for small n."""
    if n < 20:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - 0.9189385332046727
    return 1 / (12 * n) - 1 / (360 * n**3)


def _convolve(first: FloatArray, second: FloatArray) -> FloatArray:
    if len(first) * len(second) <= _DIRECT:
        return np.convolve(first, second)
    length = len(first) + len(second) - 1
    size = fft.next_fast_len(length, real=True)
    product = fft.rfft(first, size) * fft.rfft(second, size)
    result: FloatArray = np.maximum(fft.irfft(product, size)[:length], 0.0)
    return result


def _frozen(bounds: RankBounds) -> RankBounds:
    """Make the arrays of a cached answer read-only."""
    for array in bounds:
        array.setflags(write=False)
    return bounds
