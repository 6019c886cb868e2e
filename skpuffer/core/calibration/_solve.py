"""Root finding that ends on the private side, and moments without overflow."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from skpuffer.core.prior import FloatArray

# Relative accuracy of the root in the logarithm of the scale; the scale itself is
# then rounded to 20 bits.
_ROOT_TOLERANCE = 1e-11


class CalibrationError(RuntimeError):
    """No scale could be shown to satisfy its condition."""


def solve_scale(
    functional: Callable[[float], float], target: float, *, start: float
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

    Returns
    -------
    float
        Above the root by at most a relative 1e-10; the condition holds at it.

    Raises
    ------
    CalibrationError
        No finite scale satisfies the condition.

    Examples
    --------
    >>> round(solve_scale(lambda scale: 3 / scale, 1.5, start=1.7), 9)
    2.0
    """
    log_target = math.log(target)

    def excess(log_scale: float) -> float:
        # On two logarithms the functional is nearly a straight line.
        value = functional(math.exp(log_scale))
        if math.isnan(value):
            raise CalibrationError("the calibration condition is not a number")
        gap = math.log(min(max(value, 5e-324), 1e308)) - log_target
        # Neighbouring numbers can have one logarithm.
        return gap if value <= target else max(gap, 1e-300)

    upper = math.log(start)
    lower = upper
    stride = math.log(2.0)
    if excess(upper) <= 0:
        while True:
            lower = upper - stride
            if lower < -700:
                return math.exp(upper)
            if excess(lower) > 0:
                break
            upper = lower
    else:
        while True:
            upper = lower + stride
            if upper > 700:
                raise CalibrationError("no finite scale satisfies the condition")
            if excess(upper) <= 0:
                break
            lower = upper
    root = brentq(excess, lower, upper, xtol=_ROOT_TOLERANCE, rtol=1e-14)
    step = _ROOT_TOLERANCE
    while not functional(math.exp(root)) <= target:
        root += step
        step *= 2
        if root > upper:
            # `upper` was seen to satisfy the condition.
            return math.exp(upper)
    return math.exp(root)


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
