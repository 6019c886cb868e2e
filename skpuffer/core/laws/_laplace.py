"""Laplace noise: density exp(−|z| / b) / 2b."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.core.laws._protocol import Order, standardised
from skpuffer.core.prior import FloatArray
from skpuffer.core.sampling import BitSource, release_on_grid, rounded_laplace

# Below this α |shift| / b linear terms that cancel would cost more than four bits: there
# exp(x) − 1 − x is summed as a series.
_NEAR = 0.125
_SERIES = [1 / math.factorial(power) for power in range(11, 1, -1)]


class Laplace:
    """The Laplace law with scale b (variance 2b²)."""

    name: ClassVar[str] = "laplace"
    homogeneity: ClassVar[float] = 1
    max_order: ClassVar[float] = math.inf
    convex: ClassVar[bool] = True
    sources: ClassVar[Mapping[str, str]] = {}

    def shift_divergence(
        self, shifts: ArrayLike, *, alpha: Order, scale: ArrayLike
    ) -> FloatArray:
        """[Mironov 2017, Proposition 6]; at α = ∞ the sum of |shift| / b.

        Examples
        --------
        >>> Laplace().shift_divergence([[1.0]], alpha=2.0, scale=1.0).round(4)
        array([0.6191])
        >>> Laplace().shift_divergence([[1.0]], alpha=np.array([2.0, 9.0]), scale=1.0)
        array([[0.61912363],
               [0.92050141]])
        """
        ratio = standardised(shifts, scale)
        if np.ndim(alpha) == 0 and math.isinf(alpha):
            return np.asarray(ratio.sum(axis=1))
        order = np.asarray(alpha, dtype=np.float64)[..., np.newaxis, np.newaxis]
        excess = order - 1
        with np.errstate(over="ignore", invalid="ignore"):
            twice = 2 * order - 1
            moment: FloatArray = np.expm1(-twice * ratio)
            moment *= excess / twice
            np.log1p(moment, out=moment)
            moment += excess * ratio
        near = ratio < _NEAR / order
        if near.any():
            close = np.broadcast_to(ratio, near.shape)[near]
            several = order.size > 1
            orders = np.broadcast_to(order, near.shape)[near] if several else alpha
            moment[near] = np.log1p(_excess(close, orders))
        single = moment.shape[-1] == 1
        total: FloatArray = moment[..., 0] if single else moment.sum(axis=-1)
        total /= excess[..., 0]
        return total

    def moments(self, ratio: FloatArray, alphas: FloatArray) -> FloatArray:
        """α/(2α−1) e^{(α−1)r} + (α−1)/(2α−1) e^{−αr}, multiplied over the columns.

        The exponentials of (α−1) times the divergences, to a part of 2^-40.9: exponents
        up to 709 have a few roundings. Shifts in scales, shape (m, k); returns (a, m).
        """
        order = alphas[:, np.newaxis, np.newaxis]
        rising = np.exp((order - 1) * ratio)
        falling = np.exp(-ratio) / rising
        found: FloatArray = (order * rising + (order - 1) * falling) / (2 * order - 1)
        return found[..., 0] if ratio.shape[1] == 1 else found.prod(axis=-1)

    def wasserstein_exponent(
        self, shifts: ArrayLike, *, alpha: float, scale: ArrayLike
    ) -> FloatArray:
        """α Σ|shift| / b [Ding, Yang, Zhang 2026, Theorem 1]."""
        return np.asarray(alpha * standardised(shifts, scale).sum(axis=1))

    def noise_std(self, scale: ArrayLike) -> FloatArray:
        """√2 · b."""
        return math.sqrt(2) * np.asarray(scale, dtype=np.float64)

    def logpdf(self, values: ArrayLike, *, scale: float) -> FloatArray:
        """−|z| / b − log 2b."""
        distance = np.abs(np.asarray(values, dtype=np.float64))
        return np.asarray(-distance / scale - math.log(2 * scale))

    def perturb(
        self,
        values: FloatArray,
        *,
        scale: float,
        bits: BitSource,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Add a continuous Laplace noise rounded to the grid.

        A function of the continuous release of the rounded values, so that every
        statement about that one holds for it by data processing.
        """
        return release_on_grid(values, scale, rounded_laplace, bits, out)


def _excess(ratio: FloatArray, alpha: Order) -> FloatArray:
    """Return φ − 1 = E exp((α−1) D) − 1 without cancellation, for small α · ratio.

    The linear parts of the two exponentials cancel, so only what remains beyond
    them is added up, and both remainders are non-negative.
    """
    both = np.stack([(alpha - 1) * ratio, -alpha * ratio])
    rising, falling = _exp_remainder(both)
    excess: FloatArray = (alpha * rising + (alpha - 1) * falling) / (2 * alpha - 1)
    return excess


def _exp_remainder(x: FloatArray) -> FloatArray:
    """Return exp(x) − 1 − x of small numbers with full relative precision."""
    total: FloatArray = x * _SERIES[0]
    for coefficient in _SERIES[1:]:
        total += coefficient
        total *= x
    # x/2 + x²/6 + … so far.
    total *= x
    return total
