"""Noise of the exponential mechanism: density proportional to exp(−(|z| / s)^p)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.core.laws._laplace import Laplace
from skpuffer.core.laws._protocol import Order, standardised
from skpuffer.core.prior import FloatArray
from skpuffer.core.sampling import BitSource, release_on_grid, rounded_laplace
from skpuffer.core.sampling_blocks import exponential_power
from skpuffer.core.sampling_weights import LEAST_POWER

_SECTION = "Ding, Yang and Zhang 2026, section III-A4"
_BOUND = "what the largest log ratio of a shift, |shift|^p / θ, allows at each order"
# Beyond this exponent a product of two sinh may overflow.
_LARGE = 600.0


@dataclass(frozen=True)
class Exponential:
    """The generalised normal law of power p in [0.2, 1] with scale s in data units.

    The exponential mechanism for the metric |x − y|^p, with θ = s^p. At p = 1 it is
    the Laplace law, exactly so here. For p < 1 the peak is sharper and the tails are
    heavier: the deviation is s √(Γ(3/p) / Γ(1/p)), 11 s at p = 1/2 and 6e4 s at p = 0.2,
    below which the law is refused: little but noise would be left, and draws of 63 bits
    no longer resolve its tail.

    Raises ValueError for a power out of range.

    Examples
    --------
    >>> round(float(Exponential(0.5).noise_std(1.0)), 3)
    10.954
    """

    power: float = 0.5

    name: ClassVar[str] = "exponential"
    max_order: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        if not LEAST_POWER <= self.power <= 1:
            raise ValueError(
                f"power must be from {LEAST_POWER} to 1, got {self.power!r}"
            )

    @property
    def homogeneity(self) -> float:
        """The power p: exponents are sums of (shift / s)^p."""
        return self.power

    @property
    def convex(self) -> bool:
        """Whether p = 1: below, costs are concave near zero."""
        return self.power == 1

    @property
    def sources(self) -> Mapping[str, str]:
        """What rules rest on where p < 1."""
        if self.power == 1:
            return {}
        return {
            "w_inf": f"the largest shift of a coupling, by {_BOUND} ({_SECTION})",
            "alpha_wasserstein": _SECTION,
            "closed_form": f"chord bound of {_SECTION}",
            "transport": "joint convexity of the Rényi integrand over a coupling, with "
            f"{_BOUND}",
        }

    def shift_divergence(
        self, shifts: ArrayLike, *, alpha: Order, scale: ArrayLike
    ) -> FloatArray:
        """Σ log(cosh((α−½)c) / cosh(c/2)) / (α−1), c = |shift|^p / θ: an *upper bound*.

        |y|^p ≤ |y − z|^p + |z|^p, so the ratio r of the noise and the noise moved by z
        is within e^{±c}. It has mean one under the latter, and r^α lies below its chord
        between e^{−c} and e^c, so that E r^α is at most what two such values make of
        it: the term above, as for any pair of laws that are c-differentially private
        [cf. Bun and Steinke 2016, Proposition 3.3]. It is less than c, the bound that
        the α−1 form of the published condition uses, and c itself at α = ∞, where it is
        exact. At p = 1 the exact value, that of `Laplace`.

        Examples
        --------
        >>> Exponential(0.5).shift_divergence([[4.0]], alpha=2.0, scale=1.0).round(4)
        array([1.8755])
        >>> Exponential(0.5).shift_divergence([[4.0]], alpha=math.inf, scale=1.0)
        array([2.])
        """
        if self.power == 1:
            return Laplace().shift_divergence(shifts, alpha=alpha, scale=scale)
        c = self._distances(shifts, scale)
        if np.ndim(alpha) == 0 and math.isinf(alpha):
            return np.asarray(c.sum(axis=1))
        order = np.asarray(alpha, dtype=np.float64)[..., np.newaxis, np.newaxis]
        c, orders = np.broadcast_arrays(c, order)
        result = np.empty_like(c)
        near = c < _LARGE / orders
        # cosh A − cosh B is a product: nothing cancels.
        half, a = c[near] / 2, orders[near]
        excess = 2 * np.sinh(a * half) * np.sinh((a - 1) * half) / np.cosh(half)
        result[near] = np.log1p(excess)
        far, a = c[~near], orders[~near]
        result[~near] = (a - 1) * far + (
            np.log1p(np.exp(-(2 * a - 1) * far)) - np.log1p(np.exp(-far))
        )
        return np.asarray(result.sum(axis=-1) / (order[..., 0] - 1))

    def wasserstein_exponent(
        self, shifts: ArrayLike, *, alpha: float, scale: ArrayLike
    ) -> FloatArray:
        """α Σ |shift|^p / θ [Ding, Yang, Zhang 2026, section III-A4].

        With α − 1 in its place the condition still suffices and needs exactly
        ((α−1)/α)^(1/p) times the scale; the transport rule needs less than that.
        """
        return np.asarray(alpha * self._distances(shifts, scale).sum(axis=1))

    def _distances(self, shifts: ArrayLike, scale: ArrayLike) -> FloatArray:
        """Return |shift|^p / θ per column, shape (m, k)."""
        powers: FloatArray = np.power(standardised(shifts, scale), self.power)
        return powers

    def noise_std(self, scale: ArrayLike) -> FloatArray:
        """√(Γ(3/p) / Γ(1/p)) · s, that of the continuous law."""
        p = self.power
        log_ratio = (math.lgamma(3 / p) - math.lgamma(1 / p)) / 2
        return math.exp(log_ratio) * np.asarray(scale, dtype=np.float64)

    def logpdf(self, values: ArrayLike, *, scale: float) -> FloatArray:
        """−(|z| / s)^p − log(2 s Γ(1 + 1/p)) of the continuous law."""
        distance = np.abs(np.asarray(values, dtype=np.float64)) / scale
        log_mass = math.log(2 * scale) + math.lgamma(1 + 1 / self.power)
        return np.asarray(-np.power(distance, self.power) - log_mass)

    def perturb(
        self,
        values: FloatArray,
        *,
        scale: float,
        bits: BitSource,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Add k steps of the grid g, P(k) proportional to exp(−(|k| / t)^p), t = s / g.

        What is proven of the continuous law holds for this discrete one as it stands.
        Let f be its probabilities, and m the shift of a value in steps. Their
        normaliser is the same for every value, and |k|^p ≤ |k − m|^p + |m|^p, so
        f(k) ≤ f(k − m) e^{|m|^p / t^p} and, with k − m for k, the reverse: the log
        ratio is within ±(|m| / t)^p = ±|m g|^p / θ, and `shift_divergence` follows as
        it does there, with sums for integrals. The rules need nothing else of the
        noise: two releases are the mixtures Σ π f(y − x) and Σ π f(y − x') over one
        coupling π, and p^α q^{1−α} is jointly convex at every grid point y, hence
        summed over them (at α = ∞ the largest ratio of the mixtures is at most that of
        their parts).

        At p = 1 a continuous Laplace noise is rounded, as in `Laplace`.
        """
        if self.power == 1:
            return release_on_grid(values, scale, rounded_laplace, bits, out)
        sampler = partial(_draw, self.power)
        return release_on_grid(values, scale, sampler, bits, out)


def _draw(power: float, size: int, t: int, bits: BitSource) -> np.ndarray:
    return exponential_power(size, t, power, bits)
