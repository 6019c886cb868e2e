"""The regularised kernel Rényi divergence of two samples, from inner products alone.

Pure. Everything here is about the two second-moment operators S_p = E φφ* and
S_q = E φφ* of the samples, through their Gram blocks or through explicit features.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from skpuffer.core.low_rank import low_rank_features
from skpuffer.core.prior import FloatArray
from skpuffer.core.second_moments import (
    FeatureMoments,
    GramMoments,
    SecondMoments,
    eigenvalues,
)

LEAST_ORDER = 0.5
LEAST_REG = 1e-10
# Nearer to 1 than this, the logarithm of a trace near 1 is divided by nearly nothing.
_NEAR_ONE = 0.1
# Traces of these powers cost less than the eigenvalues.
_PRODUCTS = (2.0, 3.0, 4.0)
# The mass of a sample with k(x, x) = 1 is 1, whatever its sum was rounded to.
_MASS_ROUNDING = 1e-9


def gram_divergence(
    k_pp: FloatArray,
    k_qq: FloatArray,
    k_qp: FloatArray,
    *,
    alphas: Sequence[float] | FloatArray,
    regs: Sequence[float] | FloatArray,
) -> FloatArray:
    """Compute D_(α,λ)(S_p ‖ S_q) of two samples from their Gram blocks.

    D_(α,λ) = log tr[(B^(r/2) S_p B^(r/2))^α] / (α−1) with B = S_q + λ and
    r = (1−α)/α, the sandwiched quantum Rényi divergence [Müller-Lennert et al. 2013,
    Definition 2] of the second moments [Domingo-Enrich, Mroueh 2022]. With
    S_p = A A*, its eigenvalues are those of A* B^r A, an n_p × n_p matrix of inner
    products: K_qq alone is decomposed, once for all orders and all λ.

    Parameters
    ----------
    k_pp : ndarray of shape (n_p, n_p)
        Kernel of the first sample with itself.
    k_qq : ndarray of shape (n_q, n_q)
        Kernel of the second sample with itself.
    k_qp : ndarray of shape (n_q, n_p)
        Kernel of the second sample with the first.
    alphas : sequence of float
        Orders in [1/2, ∞]. At 1 it is tr S_p (log S_p − log B), at ∞ the logarithm of
        the largest eigenvalue of B^(−1/2) S_p B^(−1/2): the limits, and computed as
        such.
    regs : sequence of float
        λ, at least 1e-10.

    Returns
    -------
    ndarray of shape (n_alphas, n_regs)
        In nats. For k(x, x) = 1 at least −log(1 + n_p λ); -inf only where k(x, x) = 0
        throughout the first sample. Eigenvalues carry an error of some 1e-16 λ^r;
        below order 1 every small one counts, with up to 1e-8.

    Raises
    ------
    ValueError
        An order or a λ is out of range, or the shapes do not fit.

    Notes
    -----
    For k(x, x) = 1 it is at most the Rényi divergence of the two distributions. For
    k(x, x) ≤ 1 this holds above order 1 only.

    Examples
    --------
    Points without any similarity, two in the first sample and one in the second, so
    that p = (1/2, 1/2) and q = (1, 0):

    >>> k_qp = np.array([[1.0, 0.0]])
    >>> gram_divergence(np.eye(2), np.eye(1), k_qp, alphas=[1.0, 2.0], regs=[0.1, 1])
    array([[ 0.41049...,  -1.03972077],
           [ 1.00330...,  -0.98082925]])
    """
    orders, levels = check_grid(alphas, regs)
    n_q, n_p = k_qp.shape
    if k_pp.shape != (n_p, n_p) or k_qq.shape != (n_q, n_q) or not n_p * n_q:
        raise ValueError(
            f"Gram blocks of shapes {k_pp.shape}, {k_qq.shape} and {k_qp.shape} do not "
            "fit: (n_p, n_p), (n_q, n_q) and (n_q, n_p) are needed"
        )
    features = low_rank_features(k_pp, k_qq, k_qp)
    if features is None:
        return _divergences(GramMoments.from_blocks(k_pp, k_qq, k_qp), orders, levels)
    s_p, s_q = (rows @ rows.T / rows.shape[1] for rows in features)
    return _divergences(FeatureMoments.from_moments(s_p, s_q), orders, levels)


def moment_divergence(
    s_p: FloatArray,
    s_q: FloatArray,
    *,
    alphas: Sequence[float] | FloatArray,
    regs: Sequence[float] | FloatArray,
) -> FloatArray:
    """Compute D_(α,λ)(S_p ‖ S_q) from second moments of explicit features.

    Parameters
    ----------
    s_p, s_q : ndarray of shape (n_features, n_features)
        Means of φ(x) φ(x)ᵀ over each sample.
    alphas, regs : sequence of float
        As in `gram_divergence`.

    Returns
    -------
    ndarray of shape (n_alphas, n_regs)
        As `gram_divergence` of the same features.

    Raises
    ------
    ValueError
        An order or a λ is out of range, or the shapes do not fit.

    Examples
    --------
    >>> p, q = np.diag([0.5, 0.5]), np.diag([0.9, 0.1])
    >>> moment_divergence(p, q, alphas=[1.0, 2.0], regs=[1e-10]).round(4)
    array([[0.5108],
           [1.0217]])
    """
    orders, levels = check_grid(alphas, regs)
    if s_p.ndim != 2 or s_p.shape[0] != s_p.shape[1] or s_p.shape != s_q.shape:
        raise ValueError(
            f"second moments of shapes {s_p.shape} and {s_q.shape} do not fit: both "
            "must be square, and of one size"
        )
    return _divergences(FeatureMoments.from_moments(s_p, s_q), orders, levels)


def check_grid(
    alphas: Sequence[float] | FloatArray, regs: Sequence[float] | FloatArray
) -> tuple[list[float], list[float]]:
    """Return orders and λ as floats.

    Raises
    ------
    ValueError
        An order is below 1/2, where nothing is known of the divergence, or a λ below
        1e-10, where round-off decides; or one is not a number.
    """
    orders, levels = ([float(x) for x in given] for given in (alphas, regs))
    for alpha in orders:
        if not alpha >= LEAST_ORDER:
            raise ValueError(
                f"alpha={alpha!r} must be at least 1/2 (inf allowed): below, the "
                "divergence is not monotone under post-processing"
            )
    for reg in levels:
        if not LEAST_REG <= reg < math.inf:
            raise ValueError(
                f"reg={reg!r} must be finite and at least 1e-10: below, round-off "
                "decides the result"
            )
    return orders, levels


def _divergences(
    moments: SecondMoments, orders: list[float], levels: list[float]
) -> FloatArray:
    spectrum = moments.spectrum() if 1.0 in orders else np.empty(0)
    return np.array(
        [
            [
                _relative_entropy(moments, spectrum, reg)
                if alpha == 1.0
                else _divergence(moments, alpha, reg)
                for reg in levels
            ]
            for alpha in orders
        ]
    ).reshape(len(orders), len(levels))


def _relative_entropy(
    moments: SecondMoments, spectrum: FloatArray, reg: float
) -> float:
    # x log x is 0 at 0, where rounding may have left something negative.
    positive = spectrum[spectrum > 0]
    return float(positive @ np.log(positive)) - moments.mean_log(reg)


def _divergence(moments: SecondMoments, alpha: float, reg: float) -> float:
    # Near order 1 the digits of 1 - α count.
    power = -1.0 if math.isinf(alpha) else (1 - alpha) / alpha
    matrix = moments.matrix(power, reg)
    if alpha in _PRODUCTS:
        return _log_trace_of_power(matrix, int(alpha)) / (alpha - 1)
    values = eigenvalues(matrix)
    top = values[-1]
    if not top > 0:
        return -math.inf
    if math.isinf(alpha):
        return float(np.log(top))
    # What rounding left of a zero is not a small eigenvalue: it would count below 1.
    values = values[values > top * np.finfo(np.float64).eps]
    if abs(alpha - 1) < _NEAR_ONE:
        change = moments.trace_change(power, reg)
        change += float(values @ np.expm1((alpha - 1) * np.log(values)))
        return math.log1p(_excess(moments.mass) + change) / (alpha - 1)
    # In logarithms: eigenvalues reach 1/λ, and their powers overflow.
    return float(logsumexp(alpha * np.log(values))) / (alpha - 1)


def _excess(mass: float) -> float:
    return 0.0 if abs(mass - 1) < _MASS_ROUNDING else mass - 1


def _log_trace_of_power(matrix: FloatArray, power: int) -> float:
    """Return log tr of the second, third or fourth power of a symmetric matrix."""
    unit = float(np.abs(matrix).max(initial=0.0))
    if not unit > 0:
        return -math.inf
    # In units of the largest entry, so that no power overflows or vanishes.
    scaled = matrix / unit
    other = scaled if power == 2 else scaled @ scaled
    trace = float(np.vdot(other, scaled if power == 3 else other))
    return power * math.log(unit) + math.log(trace)
