"""The Rényi integrand of two densities without its linear parts, and its round-off.

With F(p, q) = p^α q^{1−α} and densities p and q, ∫F = 1 + ∫G for
G = F − αp + (α−1)q, which is never negative and vanishes where p = q: what matters
near divergence zero is kept to full precision. Imports numpy alone.
"""

from __future__ import annotations

import math

import numpy as np

from skpuffer.core.prior import FloatArray

# Beyond this exponent the linear parts are too small to cancel anything.
_LARGE = 30.0
# A target e^L beyond e^this is divided out, so that its neighbourhood stays finite.
_HEADROOM = 300.0


def log_shift(alpha: float, epsilon: float) -> float:
    """Return by what to lower all log densities, for divergences about `epsilon`.

    F is homogeneous of degree one, so that the integral falls by the same factor.
    """
    return max(0.0, (alpha - 1) * epsilon - _HEADROOM)


def both_excesses(
    log_p: FloatArray, log_q: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return G(p, q) and G(q, p).

    G = p [(α−1) h(−r) + h((α−1) r)] with r = log p/q and h(x) = e^x − 1 − x, a sum
    of two terms that are not negative.

    Examples
    --------
    >>> there, back = both_excesses(np.log([0.6]), np.log([0.5]), 2.0)
    >>> there.round(12), back.round(12)
    (array([0.02]), array([0.01666667]))
    """
    ratio = log_p - log_q
    return (
        _excess(log_p, ratio, log_q, alpha),
        _excess(log_q, -ratio, log_p, alpha),
    )


def _excess(
    log_p: FloatArray, ratio: FloatArray, log_q: FloatArray, alpha: float
) -> FloatArray:
    power = (alpha - 1) * ratio
    with np.errstate(over="ignore", invalid="ignore"):
        large = np.abs(power) > _LARGE
        large |= np.abs(ratio) > _LARGE
        result = np.expm1(power)
        result -= power
        back = np.expm1(-ratio)
        back += ratio
        back *= alpha - 1
        result += back
        result *= np.exp(log_p)
        if large.any():
            p, q, power = log_p[large], log_q[large], power[large]
            rest = (alpha - 1) * np.exp(q) - alpha * np.exp(p)
            result[large] = np.maximum(np.exp(p + power) + rest, 0.0)
    return result


def divergence(excess: float, alpha: float, shift: float) -> float:
    """Return log(1 + ∫G) / (α−1), for an integral lowered by e^shift."""
    if shift == 0:
        return math.log1p(excess) / (alpha - 1)
    if math.isinf(excess):
        return math.inf
    return (shift + math.log(math.exp(-shift) + excess)) / (alpha - 1)


def round_off(excess: float, alpha: float, shift: float, error: float) -> float:
    """Bound how far a sum of G is off when p and q are, by a relative `error`.

    To first order G moves by α|F−p| + (α−1)|F−q| times the error. Since
    (e^x − 1)² ≤ 2 max(1, e^x) h(x), Cauchy's inequality bounds the sums of |F−p| and
    |p−q| by the sum of G itself. A multiple of (α · error)² covers the second order.
    """
    one = math.exp(-shift)
    first = (2 * alpha - 1) * math.sqrt(2 * excess * (2 * one + excess))
    first += 2 * math.sqrt((alpha - 1) * excess * one)
    second = 4 * (alpha * error) ** 2 * (one + excess)
    return 1.01 * error * first + second + 1e-290
