"""Search downwards for the smallest scale with a certified divergence."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from skpuffer.core.mixtures import DivergenceBound

# In the logarithm of the scale.
_ROOT_TOLERANCE = 1e-6
_LEAST_STEP, _LONGEST_STEP = 0.02, math.log(30.0)
# Between large scales, where the divergence falls with the square, and small ones.
_USUAL_FALL = 1.6
_MAX_CONFIRMATIONS = 12
# Stands for an excess that is infinite, on the logarithm of the divergence.
_FAR = 5.0


def descend(
    bound: Callable[[float, float], DivergenceBound],
    epsilon: float,
    *,
    ceiling: float,
    floor: float,
    search: float,
    confirm: float,
) -> float | None:
    """Return a scale below `ceiling` at which the upper bound is at most `epsilon`.

    Parameters
    ----------
    bound : callable
        ``bound(scale, tolerance)``; the divergence falls as the scale grows.
    epsilon : float
    ceiling : float
        A scale known to suffice by other means.
    floor : float
        Where the search ends.
    search, confirm : float
        Tolerances for finding the root and for certifying it.

    Returns
    -------
    float or None
        The scale, which `bound` certifies with a margin of twice `confirm`, so that it
        certifies greater ones too; None where there is none below the ceiling.
    """
    known: dict[float, float] = {}

    def excess(log_scale: float) -> float:
        if log_scale not in known:
            value = bound(math.exp(log_scale), search).estimate
            known[log_scale] = _log_ratio(value, epsilon)
        return known[log_scale]

    root = _root(excess, math.log(ceiling), math.log(floor))
    if root is None:
        return None

    def margin(log_scale: float) -> float:
        upper = bound(math.exp(log_scale), confirm).upper
        return _log_ratio(upper, epsilon) - math.log1p(-2 * confirm)

    nearest = sorted(known, key=lambda x: (abs(x - root) < 1e-5, abs(x - root)))[:2]
    fall = -(known[nearest[1]] - known[nearest[0]]) / (nearest[1] - nearest[0])
    # Aim for half the margin at once.
    start = root + 4 * confirm / min(max(fall, 0.2), 20.0)
    found = _confirmed(margin, start, math.log(ceiling), fall, confirm)
    return None if found is None else math.exp(found)


def _log_ratio(value: float, epsilon: float) -> float:
    """Return log(value / epsilon) within limits that keep interpolation sane."""
    return min(max(math.log(max(value, 1e-300) / epsilon), -50.0), _FAR)


def _root(excess: Callable[[float], float], top: float, bottom: float) -> float | None:
    """Return a zero of a falling function, or `bottom` where it is still negative."""
    if top <= bottom or excess(top) > 0:
        return None
    upper, step = top, min(max(-excess(top) / _USUAL_FALL, _LEAST_STEP), _LONGEST_STEP)
    while True:
        lower = max(upper - step, bottom)
        if excess(lower) > 0:
            root: float = brentq(excess, lower, upper, xtol=_ROOT_TOLERANCE)
            return root
        if lower == bottom:
            return bottom
        # Where a straight line would meet zero, and a little further.
        fall = (excess(lower) - excess(upper)) / (upper - lower)
        reach = -1.2 * excess(lower) / max(fall, 1e-3)
        upper, step = lower, min(max(reach, _LEAST_STEP), _LONGEST_STEP)


def _confirmed(
    margin: Callable[[float], float],
    start: float,
    top: float,
    fall: float,
    confirm: float,
) -> float | None:
    """Return the least scale seen with a margin of at most zero, but just."""
    best, place = None, start
    for attempt in range(_MAX_CONFIRMATIONS):
        if place >= top:
            break
        value = margin(place)
        if value <= 0:
            best = place if best is None else min(place, best)
            if value >= -4 * confirm or attempt > 3:
                break
        # Straight for a margin of half that; further each time that it was not enough.
        fall = min(max(fall, 0.2), 20.0)
        place += (value + 2 * confirm) / fall * (1 + 0.2 * attempt)
    return best
