"""The published α-Wasserstein rule."""

from __future__ import annotations

from typing import ClassVar

from skpuffer.core.calibration._protocol import Budget
from skpuffer.core.calibration._shift_rule import MomentRule
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray


class AlphaWasserstein(MomentRule):
    """E exp(α d / b) ≤ e^{(α−1)ε}; Gaussian: E exp(α(α−1) d² / 2σ²) ≤ e^{(α−1)ε}.

    Exponential noise of power p: the first with d^p / s^p for d / b (section III-A4).

    Kept as published. With α−1 in place of α in the Laplace exponent the condition
    still suffices, since log φ(d) ≤ (α−1) d / b, and needs exactly (α−1)/α times the
    scale. As published it can need more noise than `w_inf`: two point masses at
    distance z need αz / ((α−1) ε), more than z / ε. The Gaussian form is the
    transport rule itself. At α = ∞ it is `w_inf`.
    """

    name: ClassVar[str] = "alpha_wasserstein"
    source: ClassVar[str] = "Ding, Yang and Zhang 2026, Theorems 1 and 2"

    def moment_exponents(
        self, shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> FloatArray:
        """Return the published exponent of each shift."""
        return law.wasserstein_exponent(shifts, alpha=budget.alpha, scale=scale)
