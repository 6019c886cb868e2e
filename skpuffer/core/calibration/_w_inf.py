"""The ∞-Wasserstein rule: every shift on the support within epsilon."""

from __future__ import annotations

from typing import ClassVar

from skpuffer.core.calibration._protocol import Budget
from skpuffer.core.calibration._shift_rule import ShiftRule, divergences
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray


class WInf(ShiftRule):
    """The largest shift divergence over the coupling is at most ε.

    Blind to how rare the largest shift is.
    """

    name: ClassVar[str] = "w_inf"
    source: ClassVar[str] = (
        "Song, Wang and Chaudhuri 2017; Pierquin et al. 2024, Corollary 3.1"
    )

    def looks_at_largest(self, budget: Budget) -> bool:
        """Return True: at every order."""
        return True

    def exponents(
        self, shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> FloatArray:
        """Return n_releases · D_α(shift)."""
        return divergences(shifts, law, budget, scale)

    def functional(
        self, bound: ShiftBound, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> float:
        """Return the largest exponent."""
        return float(self.exponents(bound.shifts, law, budget, scale).max())

    def target(self, budget: Budget) -> float:
        """Return ε."""
        return budget.epsilon
