"""Betting on means: confidence bounds that hold for every sample size.

A gambler whose fortune is multiplied by fair factors rarely gets rich: if every factor
has mean at most 1 given the past, the fortune ever reaches 1/β with probability at most
β [Ville 1939]. Everything here is such a fortune; how the stakes are chosen decides
power, never the level, as long as they look at the past alone.
Pure: imports numpy.

Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting. JRSS B
2024. Ville: Étude critique de la notion de collectif. 1939.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skpuffer.core.prior import FloatArray

# Of the largest stake that cannot lose everything, the most that is staked.
MOST_STAKED = 0.99
# Before this row nothing is known, then the stake is learned anew at each doubling.
_FIRST_ROWS = 16
# Stakes tried, from half of the least sensible one to one that loses all but a rare win.
_STAKES = 48


def lower_mean_bound(
    values: ArrayLike, error: float, *, pilot: ArrayLike | None = None
) -> float:
    """Bound the mean of independent values in [0, 1] from below, by betting.

    The fortune of a candidate mean m is the product of 1 + l_i (u_i − m), with a stake
    l_i in [0, 1/m) that is fixed before u_i is seen. At the true mean it has
    expectation 1, so that it reaches 1/error with probability at most `error`
    [Waudby-Smith, Ramdas 2024]; every m whose fortune does is left out. With
    min(l_i, .99/m) for l_i the fortune falls as m grows, so that what is left is an
    interval, and its end a root.

    Parameters
    ----------
    values : array-like of shape (n,)
        In [0, 1], each with the same mean given those before it.
    error : float
        In (0, 1).
    pilot : array-like of shape (k,), optional
        Other values that are thought alike, from which one stake is learned: the bound
        is then the same for every order of the values. By default each stake is learned
        from the values before it. A pilot unlike the values costs power, not validity.

    Returns
    -------
    float
        At most the mean with probability at least ``1 - error``; rounded downwards.

    Raises
    ------
    ValueError
        A value is outside [0, 1] or not a number, there is none, or `error` is not in
        (0, 1).

    Examples
    --------
    >>> round(lower_mean_bound(np.ones(300), 0.05), 3)
    0.987
    >>> lower_mean_bound([0.0, 0.1], 0.05)
    0.0
    """
    u = _unit_interval("values", values)
    if not 0 < error < 1:
        raise ValueError(f"error={error!r} must be between 0 and 1")
    if pilot is None:
        stakes = _predictable_stakes(u, error)
    else:
        stakes = np.full(
            1, _learned_stake(_unit_interval("pilot", pilot), len(u), error)
        )
    # Room for rounding: a factor is at least 1 − .99, its error a few units of it.
    unit = float(np.finfo(np.float64).eps)
    room = unit * len(u) * (4 / (1 - MOST_STAKED) + float(stakes.max()))
    needed = room - math.log(error)

    def refuted(mean: float) -> bool:
        capped = np.minimum(stakes, MOST_STAKED / mean) if mean > 0 else stakes
        return float(np.log1p(capped * (u - mean)).sum()) >= needed

    low, high = 0.0, 1.0
    if not refuted(low):
        return low
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if refuted(middle):
            low = middle
        else:
            high = middle
    return low


def upper_mean_bound(
    values: ArrayLike, error: float, *, pilot: ArrayLike | None = None
) -> float:
    """Bound the mean of independent values in [0, 1] from above, by betting.

    Parameters
    ----------
    values, error, pilot
        As in `lower_mean_bound`.

    Returns
    -------
    float
        At least the mean with probability at least ``1 - error``.

    Examples
    --------
    >>> round(upper_mean_bound([1.0] * 3 + [0.0] * 997, 0.05), 4)
    0.0072
    """
    other = 1.0 - _unit_interval("values", values)
    mirrored = None if pilot is None else 1.0 - _unit_interval("pilot", pilot)
    bound = 1.0 - lower_mean_bound(other, error, pilot=mirrored)
    # Each 1 − u is off by 2⁻⁵⁴ at most, and so their mean; so is the bound.
    return min(1.0, bound + 2.0**-52)


def _unit_interval(name: str, values: ArrayLike) -> FloatArray:
    u = np.asarray(values, dtype=np.float64)
    if u.ndim != 1 or len(u) == 0:
        raise ValueError(f"{name} must be a list of at least one number")
    outside = int((~((u >= 0) & (u <= 1))).sum())
    if outside:
        raise ValueError(
            f"{name} must be in [0, 1], and {outside} of {len(u)} are not: scale them"
        )
    return u


def _predictable_stakes(values: FloatArray, error: float) -> FloatArray:
    """Return a stake for each value, learned from those before it at each doubling."""
    n = len(values)
    stakes = np.empty(n)
    seen = 0
    while seen < n:
        after = min(n, max(_FIRST_ROWS, 2 * seen))
        stakes[seen:after] = _learned_stake(values[:seen], n, error)
        seen = after
    return stakes


def _learned_stake(pilot: FloatArray, n: int, error: float) -> float:
    """Return the stake with the largest bound, had n values been like the pilot.

    Half a zero and half a one are added, so that rare values are reckoned with.
    """
    value, weight = _condensed(np.sort(pilot))
    value = np.concatenate([value, [0.0, 1.0]])
    weight = np.concatenate([weight, [0.5, 0.5]]) / (len(pilot) + 1)
    per_value = -math.log(error) / n
    # Near a Gaussian the best is √(2 log(1/error) / n variance), and variance ≤ ¼.
    least = math.sqrt(2 * per_value)
    stakes = np.geomspace(least, max(n, 2 * least), _STAKES)
    low, high = np.zeros(_STAKES), np.ones(_STAKES)
    for _ in range(30):
        middle = (low + high) / 2
        capped = np.minimum(stakes, MOST_STAKED / middle)
        growth = np.log1p(capped[:, None] * (value - middle[:, None])) @ weight
        low = np.where(growth >= per_value, middle, low)
        high = np.where(growth >= per_value, high, middle)
    return float(stakes[np.argmax(low)])


def _condensed(ordered: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means of runs of sorted values and their lengths, short at both ends."""
    n = len(ordered)
    if n == 0:
        return ordered, ordered
    # Ranks 0, 1, 2, ... in growing steps from both ends: rare values stay apart.
    ranks: NDArray[np.int64] = np.unique(np.geomspace(1, n, 40).astype(np.int64)) - 1
    starts = np.unique(np.concatenate([ranks, n - 1 - ranks]))
    lengths = np.diff(starts, append=n).astype(np.float64)
    means: FloatArray = np.add.reduceat(ordered, starts) / lengths
    return means, lengths
