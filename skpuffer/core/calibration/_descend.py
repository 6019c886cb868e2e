"""Search downwards for the smallest scale with a certified divergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from scipy.optimize import brentq

from skpuffer.core.mixtures import DivergenceBound

# In the logarithm of the scale.
_ROOT_TOLERANCE = 1e-6
# What three places may be from their zero, multiplied: the error is of that order.
_SETTLED = 2e-7
_LONGEST_STEP = math.log(30.0)
# Steeper than the square that holds at large scales: a step too far is costly.
_USUAL_FALL = 2.5
# After so many looks interpolation gives way to what is slow and sure.
_MAX_LOOKS = 12
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
    certified: bool = True,
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
    certified : bool
        Whether to certify it; if not, the scale is where estimates promise the margin.

    Returns
    -------
    float or None
        The scale; None where there is none below the ceiling. If `certified`, `bound`
        vouches for it with a margin of twice `confirm`, and so for greater ones.
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
    fall = min(max(fall, 0.2), 20.0)
    # Aim for half the margin at once.
    start = root + 4 * confirm / fall
    limits = lowest, math.log(ceiling)
    if certified:
        found = _confirmed(margin, start, limits, fall, confirm)
    else:
        found = start if start < limits[1] else None
    return None if found is None else math.exp(found)


def _log_ratio(value: float, epsilon: float) -> float:
    """Return log(value / epsilon) within limits that keep interpolation sane."""
    if not value < math.inf:
        # What is not a number is no small one.
        return _FAR
    return min(max(math.log(max(value, 1e-300) / epsilon), -50.0), _FAR)


def _root(
    excess: Callable[[float], float], top: float, bottom: float
) -> tuple[float, float] | None:
    """Return a zero of a falling function, and how far down one may look beside it.

    Where it is still negative at the end of its reach, both are that end.
    """
    if top <= bottom or excess(top) > 0:
        return None
    lower, upper, between, cliff = bottom, top, False, False
    # Values and places to interpolate, nearest first.
    seen = [(excess(top), top)]
    look, slow = 0, False
    while True:
        look += 1
        guess = _zero(seen)
        apart = math.prod(abs(place - guess) for _, place in seen)
        if len(seen) == 3 and apart < _SETTLED and lower < guess < upper:
            return guess, bottom
        if look > _MAX_LOOKS and between:
            root: float = brentq(excess, lower, upper, xtol=_ROOT_TOLERANCE)
            return root, bottom
        middle = (lower + upper) / 2
        # Not all of the way to a cliff at once.
        least = middle if cliff else lower
        if not lower < guess < upper or look > _MAX_LOOKS or (slow and between):
            guess = middle if between else least
        if not between:
            guess = max(guess, least, upper - _LONGEST_STEP)
        value = excess(guess)
        # Halving helps where values do not fall by half.
        slow = abs(value) > abs(seen[0][0]) / 2
        if value >= _FAR and not between:
            # Out of reach, or far too small: half of the way, and no farther down.
            lower, bottom, cliff = guess, guess, True
        elif value > 0:
            lower, between, cliff = guess, True, False
        elif guess == bottom:
            return bottom, bottom
        else:
            upper = guess
        if cliff and upper - lower < 2 * _CLIFF:
            return upper, upper
        if value < _FAR:
            seen = [pair for pair in seen if pair[0] != value]
            seen = sorted([(value, guess), *seen], key=lambda pair: abs(pair[0]))[:3]


def _zero(seen: list[tuple[float, float]]) -> float:
    """Interpolate where the value is zero, from one to three values and places."""
    value, place = seen[0]
    if len(seen) == 1:
        return place + value / _USUAL_FALL
    # Places as a function of values, by Newton's divided differences.
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(seen)]
    zero = place - value * slopes[0]
    if len(seen) == 3:
        bend = (slopes[1] - slopes[0]) / (seen[2][0] - value)
        zero += value * seen[1][0] * bend
    return zero


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
