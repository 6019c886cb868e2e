"""Root finding that ends on the private side, and moments without overflow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skpuffer.core.prior import FloatArray

# How far above the root the logarithm of a scale may be, and the part of it that is
# aimed at. The scale itself is then rounded to 20 bits.
_ROOT_TOLERANCE, _AIM = 8e-11, 0.25
# Scales that are tried at all, as logarithms.
_REACH = 700.0
# The fall of the functional, on two logarithms, before any is known, and what falls are
# believed; two places so near to each other tell how it falls there.
_FALL, _LEAST_FALL, _STEEPEST, _NEAR = 1.5, 0.05, 200.0, 0.01
# How far the first look may be from the start: twice as far each time.
_STRIDE = 2.0
# After so many looks halving takes turns with what is faster.
_PATIENCE = 8


class CalibrationError(RuntimeError):
    """No scale could be shown to satisfy its condition."""


class Root(NamedTuple):
    """A scale and how the functional falls there.

    Attributes
    ----------
    scale : float
    fall : float
        Minus the slope of its logarithm over that of the scale, about.
    """

    scale: float
    fall: float


def solve_scale(
    functional: Callable[[float], float],
    target: float,
    *,
    start: float,
    fall: float = _FALL,
) -> float:
    """Return the smallest scale with ``functional(scale) <= target``.

    Parameters
    ----------
    functional : callable
        Non-increasing and non-negative; may return infinity.
    target : float
        Positive.
    start : float
        A positive guess of the scale.
    fall : float
        A positive guess of how the functional falls: see `Root`.

    Returns
    -------
    float
        Above the root by at most a relative 1e-10; the condition was seen to hold at
        it.

    Raises
    ------
    CalibrationError
        No finite scale satisfies the condition.

    Examples
    --------
    >>> round(solve_scale(lambda scale: 3 / scale, 1.5, start=1.7), 9)
    2.0
    """
    return find_root(functional, target, start=start, fall=fall).scale


def find_root(
    functional: Callable[[float], float],
    target: float,
    *,
    start: float,
    fall: float = _FALL,
    tolerance: float = _ROOT_TOLERANCE,
) -> Root:
    """Solve as `solve_scale` does, and say how the functional falls.

    Secants on two logarithms, where the functional is nearly a straight line, each
    aimed a little to the side where the condition holds; halving where they do not
    help. `tolerance` is how far above the root the logarithm of the scale may be.
    """
    log_target = math.log(target)

    def excess(log_scale: float) -> float:
        value = functional(math.exp(log_scale))
        if math.isnan(value):
            raise CalibrationError("the calibration condition is not a number")
        gap = math.log(min(max(value, 5e-324), 1e308)) - log_target
        # Neighbouring numbers can have one logarithm.
        return gap if value <= target else max(gap, 1e-300)

    lower, upper, stride = -math.inf, math.inf, _STRIDE
    place = math.log(start)
    gap, before, look = excess(place), None, 0
    while True:
        if gap <= 0:
            upper = place
        else:
            lower = place
        close = False
        if before is not None:
            drop = (before[1] - gap) / (place - before[0])
            if _LEAST_FALL <= drop <= _STEEPEST:
                fall, close = drop, abs(place - before[0]) < _NEAR
        # Near the root the fall there tells how far it is.
        if close and gap <= 0 and -gap / fall <= tolerance:
            break
        if upper - lower <= tolerance or upper <= -_REACH:
            break
        if lower >= _REACH:
            raise CalibrationError("no finite scale satisfies the condition")
        before, look = (place, gap), look + 1
        guess = place + gap / fall + _AIM * tolerance
        if gap <= 0 and abs(guess - place) < tolerance:
            # As far below as is good enough: this ends it, or tells the fall.
            guess = place - tolerance
        if math.isinf(upper - lower):
            # No end is known on one side: look there, further each time.
            move = guess - place
            if look > _PATIENCE or abs(move) > stride or (move > 0) == (gap <= 0):
                guess = place + math.copysign(stride, gap if gap else -1.0)
            stride *= 2
            place = min(max(guess, -_REACH), _REACH)
        else:
            halve = look > _PATIENCE and look % 2
            inside = lower < guess < upper
            place = guess if inside and not halve else (lower + upper) / 2
        gap = excess(place)
    return Root(math.exp(upper), fall)


def log_moment(exponents: FloatArray, mass: FloatArray) -> float:
    """Return log Σ mass · e^exponent, accurate near zero and without overflow.

    Parameters
    ----------
    exponents : ndarray of shape (m,)
        Non-negative.
    mass : ndarray of shape (m,)
        Sums to one (or to a little more, which only raises the value).
    """
    top = float(exponents.max())
    if math.isinf(top):
        return math.inf
    # A rare large exponent must not cost the digits of a moment near one. Sums, not
    # dot products: pairwise, and on one thread.
    if top < 700.0:
        return math.log1p(float((mass * np.expm1(exponents)).sum()))
    return top + math.log(float((mass * np.exp(exponents - top)).sum()))
