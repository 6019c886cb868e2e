"""Search downwards for the smallest scale with a certified divergence."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from skpuffer.core.mixtures import DivergenceBound

# In the logarithm of the scale.
_ROOT_TOLERANCE = 1e-6
_LEAST_STEP, _LONGEST_STEP = 0.02, math.log(30.0)
# Steeper than the square that holds at large scales: a step too far is costly.
_USUAL_FALL = 3.0
_MAX_CONFIRMATIONS = 20
# The scale may end this much above the least one within reach.
_CLIFF = 0.02
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

    looked = _root(excess, math.log(ceiling), math.log(floor))
    if looked is None:
        return None
    root, lowest = looked

    def margin(log_scale: float) -> float:
        upper = bound(math.exp(log_scale), confirm).upper
        return _log_ratio(upper, epsilon) - math.log1p(-2 * confirm)

    nearest = sorted(known, key=lambda x: (abs(x - root) < 1e-5, abs(x - root)))[:2]
    fall = -(known[nearest[1]] - known[nearest[0]]) / (nearest[1] - nearest[0])
    # Aim for half the margin at once.
    start = root + 4 * confirm / min(max(fall, 0.2), 20.0)
    limits = lowest, math.log(ceiling)
    found = _confirmed(margin, start, limits, fall, confirm)
    return None if found is None else math.exp(found)


def _log_ratio(value: float, epsilon: float) -> float:
    """Return log(value / epsilon) within limits that keep interpolation sane."""
    return min(max(math.log(max(value, 1e-300) / epsilon), -50.0), _FAR)


def _root(
    excess: Callable[[float], float], top: float, bottom: float
) -> tuple[float, float] | None:
    """Return a zero of a falling function, and how far down one may look beside it.

    Where it is still negative at the end of its reach, both are that end.
    """
    if top <= bottom or excess(top) > 0:
        return None
    upper, step = top, min(max(-excess(top) / _USUAL_FALL, _LEAST_STEP), _LONGEST_STEP)
    while True:
        lower = max(upper - step, bottom)
        if 0 < excess(lower) < _FAR:
            root: float = brentq(excess, lower, upper, xtol=_ROOT_TOLERANCE)
            return root, bottom
        if lower == bottom and excess(lower) <= 0:
            return bottom, bottom
        if excess(lower) >= _FAR:
            # Out of reach, or far too small: half of the way, and no farther down.
            bottom, step = lower, (upper - lower) / 2
            if step < _CLIFF:
                return upper, upper
            continue
        # Where a straight line would meet zero, and a little further.
        fall = (excess(lower) - excess(upper)) / (upper - lower)
        reach = -1.2 * excess(lower) / max(fall, 1e-3)
        upper, step = lower, min(max(reach, _LEAST_STEP), _LONGEST_STEP)
        step = min(step, max((upper - bottom) / 2, _LEAST_STEP))


def _confirmed(
    margin: Callable[[float], float],
    start: float,
    limits: tuple[float, float],
    fall: float,
    confirm: float,
) -> float | None:
    """Return the least scale seen with a margin of at most zero, but just."""
    best: float | None = None
    worst: float | None = None
    place, width = start, confirm
    fall = min(max(fall, 0.2), 20.0)
    for attempt in range(_MAX_CONFIRMATIONS):
        place = max(place, limits[0])
        if place >= limits[1]:
            break
        value = margin(place)
        # Where a straight line has half the margin that is aimed at.
        move = (value + 2 * confirm) / fall
        if value <= 0:
            best = place
            close = worst is not None and best - worst < width
            if value >= -4 * confirm or close or place == limits[0]:
                break
        else:
            worst = place
            if value >= _FAR:
                # Nothing was shown here: no place for fine steps.
                move, width = _CLIFF, _CLIFF
            # Further each time that it was not enough.
            move *= 3.0**attempt
        if best is None or worst is None:
            place += move
        else:
            place = (best + worst) / 2
    return best
