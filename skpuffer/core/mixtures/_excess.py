"""The Rényi integrand of two densities without its linear parts, and its round-off.

With F(p, q) = p^α q^{1−α} and densities p and q, ∫F = 1 + ∫G for
G = F − αp + (α−1)q, which is never negative and vanishes where p = q: what matters
near divergence zero is kept to full precision. Imports numpy alone.
"""

from __future__ import annotations

import math

import numpy as np

from skpuffer.core.prior import FloatArray

# Beyond this exponent of p/q nothing cancels any more, and up to it 1 − e^−x may be
# had from e^x − 1: its error grows like e^x.
_LARGE = 8.0
# A target e^L beyond e^this is divided out, so that its neighbourhood stays finite.
_HEADROOM = 300.0


def log_shift(alpha: float, epsilon: float) -> float:
    """Return by what to lower all log densities, for divergences about `epsilon`.

    F is homogeneous of degree one, so that the integral falls by the same factor.
    """
    return max(0.0, (alpha - 1) * epsilon - _HEADROOM)


def both_excesses(
    log_p: FloatArray,
    log_q: FloatArray,
    alpha: float,
    densities: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return G(p, q) and G(q, p).

    G = p [(r^{α−1} − 1) − (α−1)(1 − 1/r)] with r = p/q; each bracket to full
    precision. What cancels between them is of the order of the relative error of r.

    Parameters
    ----------
    log_p, log_q : ndarray
    alpha : float
    densities : tuple of ndarray, optional
        p and q themselves, where they are at hand.

    Examples
    --------
    >>> there, back = both_excesses(np.log([0.6]), np.log([0.5]), 2.0)
    >>> there.round(12), back.round(12)
    (array([0.02]), array([0.01666667]))
    """
    p, q = densities or (np.exp(log_p), np.exp(log_q))
    ratio = log_p - log_q
    order = alpha - 1
    size = max(float(ratio.max()), -float(ratio.min()))
    large = None
    if not size * max(order, 1.0) <= _LARGE:
        large = ~(np.abs(ratio) * max(order, 1.0) <= _LARGE)
        full, ratio = ratio, np.where(large, 0.0, ratio)
    up = np.expm1(ratio)
    power = np.expm1(order * ratio)
    # 1 − e^−x from e^x − 1.
    there = up / (1 + up)
    there *= -order
    there += power
    there *= p
    back = power / (1 + power)
    up *= order
    back = np.subtract(up, back, out=back)
    back *= q
    if large is not None:
        log_p, log_q, p, q, ratio = (
            values[large] for values in (log_p, log_q, p, q, full)
        )
        there[large] = _far(log_p + order * ratio, alpha * p - order * q)
        back[large] = _far(log_q - order * ratio, alpha * q - order * p)
    return there, back


def _far(log_power: FloatArray, linear: FloatArray) -> FloatArray:
    """Return F − αp + (α−1)q where the terms differ by orders of magnitude."""
    with np.errstate(over="ignore"):
        return np.maximum(np.exp(log_power) - linear, 0.0)


def divergence(excess: float, alpha: float, shift: float) -> float:
    """Return log(1 + ∫G) / (α−1), for an integral lowered by e^shift."""
    if shift == 0:
        return math.log1p(max(excess, 0.0)) / (alpha - 1)
    if math.isinf(excess):
        return math.inf
    # What is below all floats may as well be the smallest of them.
    whole = max(math.exp(-shift) + excess, 5e-324)
    return (shift + math.log(whole)) / (alpha - 1)


def round_off(excess: float, alpha: float, shift: float, error: float) -> float:
    """Bound how far a sum of G is off when p and q are, by a relative `error`.

    To first order G moves by α|F−p| + (α−1)|F−q| times the error. Since
    (e^x − 1)² ≤ 2 max(1, e^x) h(x), Cauchy's inequality bounds the sums of |F−p| and
    |p−q| by the sum of G itself. A multiple of (α · error)² covers the second order.
    """
    if math.isinf(excess):
        return math.inf
    one, excess = math.exp(-shift), max(excess, 0.0)
    first = (2 * alpha - 1) * math.sqrt(2 * excess * (2 * one + excess))
    first += 2 * math.sqrt((alpha - 1) * excess * one)
    second = 4 * (alpha * error) ** 2 * (one + excess)
    return 1.01 * error * first + second + 1e-290
