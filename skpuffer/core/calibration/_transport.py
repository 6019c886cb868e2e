"""The transport rule: the expected shift cost itself."""

from __future__ import annotations

from typing import ClassVar

from skpuffer.core.calibration._protocol import Budget
from skpuffer.core.calibration._shift_rule import MomentRule
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray


class Transport(MomentRule):
    """E exp((α−1) D_α(shift)) ≤ e^{(α−1)ε} for one coupling.

    F(p, q) = p^α q^{1−α} is jointly convex and positively homogeneous, and the two
    releases are the same mixture, over the coupling, of shifted noises: by Jensen's
    inequality ∫ F of the mixtures is at most the expectation of ∫ F of the noises.
    It holds for every noise, dimension and coupling, in both directions at once, and
    never needs more noise than `w_inf` or `alpha_wasserstein` on the same coupling.
    Where a law has no more than an upper bound on D_α of a shift, that takes its place.
    """

    name: ClassVar[str] = "transport"
    source: ClassVar[str] = "joint convexity of the Rényi integrand over a coupling"

    def theorem(
        self, budget: Budget, *, several_columns: bool, law: NoiseLaw | None = None
    ) -> str:
        """Name the theorem, which is the same for every dimension and order."""
        return self.source if law is None else law.sources.get(self.name, self.source)

    def moment_exponents(
        self, shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> FloatArray:
        """Return (α−1) D_α of each shift."""
        divergence = law.shift_divergence(shifts, alpha=budget.alpha, scale=scale)
        return (budget.alpha - 1) * divergence
