"""Laplace noise: density exp(−|z| / b) / 2b."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.core.laws._protocol import standardised
from skpuffer.core.prior import FloatArray
from skpuffer.core.sampling import BitSource, release_on_grid, rounded_laplace

# Below this argument exp(x) − 1 − x is summed as a series.
_SERIES_LIMIT = 0.1
_SERIES_TERMS = 10


class Laplace:
    """The Laplace law with scale b (variance 2b²)."""

    name: ClassVar[str] = "laplace"
    homogeneity: ClassVar[float] = 1
    max_order: ClassVar[float] = math.inf
    convex: ClassVar[bool] = True
    sources: ClassVar[Mapping[str, str]] = {}

    def shift_divergence(
        self, shifts: ArrayLike, *, alpha: float, scale: ArrayLike
    ) -> FloatArray:
        """[Mironov 2017, Proposition 6]; at α = ∞ the sum of |shift| / b.

        Examples
        --------
        >>> Laplace().shift_divergence([[1.0]], alpha=2.0, scale=1.0).round(4)
        array([0.6191])
        """
        ratio = standardised(shifts, scale)
        if math.isinf(alpha):
            return np.asarray(ratio.sum(axis=1))
        near = ratio < 1.0 / alpha
        result = np.empty_like(ratio)
        result[near] = np.log1p(_excess(ratio[near], alpha))
        far = ratio[~near]
        result[~near] = (alpha - 1) * far + np.log1p(
            -(alpha - 1) / (2 * alpha - 1) * -np.expm1(-(2 * alpha - 1) * far)
        )
        return np.asarray(result.sum(axis=1) / (alpha - 1))

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


def _excess(ratio: FloatArray, alpha: float) -> FloatArray:
    """Return φ − 1 = E exp((α−1) D) − 1 without cancellation, for small ratios.

    The linear parts of the two exponentials cancel, so only what remains beyond
    them is added up, and both remainders are non-negative.
    """
    rising = _exp_remainder((alpha - 1) * ratio)
    falling = _exp_remainder(-alpha * ratio)
    return (alpha * rising + (alpha - 1) * falling) / (2 * alpha - 1)


def _exp_remainder(x: FloatArray) -> FloatArray:
    """Return exp(x) − 1 − x with full relative precision."""
    small = np.abs(x) < _SERIES_LIMIT
    result = np.expm1(x) - x
    tiny = x[small]
    total = np.zeros_like(tiny)
    for term in range(_SERIES_TERMS + 1, 1, -1):
        total = (1.0 + total) * tiny / term
    # The loop leaves x²/2 + x³/6 + … divided by x.
    result[small] = total * tiny
    return result
