"""Gaussian noise with standard deviation σ."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.core.laws._protocol import Order, standardised
from skpuffer.core.prior import FloatArray
from skpuffer.core.sampling import BitSource, discrete_gaussian, release_on_grid


class Gaussian:
    """The Gaussian law with scale σ; refuses α = ∞, where it promises nothing."""

    name: ClassVar[str] = "gaussian"
    homogeneity: ClassVar[float] = 2
    max_order: ClassVar[float] = sys.float_info.max
    convex: ClassVar[bool] = True
    sources: ClassVar[Mapping[str, str]] = {}

    def shift_divergence(
        self, shifts: ArrayLike, *, alpha: Order, scale: ArrayLike
    ) -> FloatArray:
        """α Σ shift² / 2σ² [Mironov 2017, Proposition 7]; at α = ∞ infinite or 0.

        Examples
        --------
        >>> Gaussian().shift_divergence([[1.0]], alpha=2.0, scale=1.0)
        array([1.])
        """
        with np.errstate(over="ignore"):
            squares = np.square(standardised(shifts, scale)).sum(axis=1)
            if np.ndim(alpha) == 0 and math.isinf(alpha):
                return np.where(squares > 0, math.inf, 0.0)
            return np.asarray(np.asarray(alpha)[..., np.newaxis] / 2 * squares)

    def moments(self, ratio: FloatArray, alphas: FloatArray) -> FloatArray:
        """exp(α (α−1) Σ r² / 2): see `Laplace.moments`."""
        squares = np.square(ratio).sum(axis=1)
        found: FloatArray = np.exp((alphas * (alphas - 1) / 2)[:, np.newaxis] * squares)
        return found

    def wasserstein_exponent(
        self, shifts: ArrayLike, *, alpha: float, scale: ArrayLike
    ) -> FloatArray:
        """α(α−1) Σ shift² / 2σ² [Ding, Yang, Zhang 2026, Theorem 2].

        The expectation of its exponential is taken over the squares; it *is* the
        transport cost.
        """
        return (alpha - 1) * self.shift_divergence(shifts, alpha=alpha, scale=scale)

    def noise_std(self, scale: ArrayLike) -> FloatArray:
        """σ itself."""
        return np.array(scale, dtype=np.float64)

    def logpdf(self, values: ArrayLike, *, scale: float) -> FloatArray:
        """−z² / 2σ² − log(σ √2π)."""
        ratio = np.asarray(values, dtype=np.float64) / scale
        return np.asarray(
            -np.square(ratio) / 2 - math.log(scale) - math.log(2 * math.pi) / 2
        )

    def perturb(
        self,
        values: FloatArray,
        *,
        scale: float,
        bits: BitSource,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Add a discrete Gaussian on the grid.

        Its shift divergence at a shift of m steps is at most that of the continuous
        law [Canonne, Kamath, Steinke 2020, Proposition 5].
        """
        return release_on_grid(values, scale, discrete_gaussian, bits, out)
