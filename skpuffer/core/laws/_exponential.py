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
from skpuffer.core.laws._protocol import standardised
from skpuffer.core.prior import FloatArray
from skpuffer.core.sampling import BitSource, release_on_grid, rounded_laplace
from skpuffer.core.sampling_blocks import LEAST_POWER, exponential_power

_SECTION = "Ding, Yang and Zhang 2026, section III-A4"
_BOUND = "the triangle inequality for the divergence of a shift"


@dataclass(frozen=True)
class Exponential:
    """The generalised normal law of power p in [0.2, 1] with scale s in data units.

    The exponential mechanism for the metric |x − y|^p, with θ = s^p. At p = 1 it is
    the Laplace law, exactly so here. For p < 1 the peak is sharper and the tails are
    heavier: the deviation is s √(Γ(3/p) / Γ(1/p)), 11 s at p = 1/2 and 6e4 s at p = 0.2,
    below which the law is refused, as its tail leaves the integers of 64 bits.

    Raises ValueError for a power out of range.

    Examples
    --------
    >>> Exponential(0.5).noise_std(1.0).round(3)
    np.float64(10.954)
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
    def convexity(self) -> float:
        """The power p: costs are concave near zero, and convex in shift^p."""
        return self.power

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
        self, shifts: ArrayLike, *, alpha: float, scale: ArrayLike
    ) -> FloatArray:
        """Σ (|shift| / s)^p = Σ |shift|^p / θ, an *upper bound* at every order.

        |y|^p ≤ |y − z|^p + |z|^p, so the log ratio of the noise and the noise moved by
        z is at most |z|^p / θ, and the divergence of no order exceeds its maximum,
        which is reached at α = ∞. At p = 1 the exact value, that of `Laplace`.

        Examples
        --------
        >>> Exponential(0.5).shift_divergence([[4.0]], alpha=2.0, scale=1.0)
        array([2.])
        """
        if self.power == 1:
            return Laplace().shift_divergence(shifts, alpha=alpha, scale=scale)
        return self._distance(shifts, scale)

    def wasserstein_exponent(
        self, shifts: ArrayLike, *, alpha: float, scale: ArrayLike
    ) -> FloatArray:
        """α Σ |shift|^p / θ [Ding, Yang, Zhang 2026, section III-A4].

        With α − 1 in its place, as in the transport rule, the condition still suffices
        and needs exactly ((α−1)/α)^(1/p) times the scale.
        """
        return np.asarray(alpha * self._distance(shifts, scale))

    def _distance(self, shifts: ArrayLike, scale: ArrayLike) -> FloatArray:
        with np.errstate(under="ignore"):
            powers = np.power(standardised(shifts, scale), self.power)
        return np.asarray(powers.sum(axis=1))

    def noise_std(self, scale: ArrayLike) -> FloatArray:
        """S √(Γ(3/p) / Γ(1/p)), that of the continuous law."""
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
        f(k) ≤ f(k − m) e^{|m|^p / t^p} and, with k − m for k, the reverse: the
        divergence of every order is at most (|m| / t)^p = |m g|^p / θ, which is
        `shift_divergence`. The rules need nothing else of the noise: two releases are
        the mixtures Σ π f(y − x) and Σ π f(y − x') over one coupling π, and
        p^α q^{1−α} is jointly convex at every grid point y, hence summed over them
        (at α = ∞ the largest ratio of the mixtures is at most that of their parts).

        At p = 1 a continuous Laplace noise is rounded, as in `Laplace`.
        """
        if self.power == 1:
            return release_on_grid(values, scale, rounded_laplace, bits, out)
        sampler = partial(_draw, self.power)
        return release_on_grid(values, scale, sampler, bits, out)


def _draw(power: float, size: int, t: int, bits: BitSource) -> np.ndarray:
    return exponential_power(size, t, power, bits)
