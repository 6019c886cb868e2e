"""The α-Wasserstein rule without a root: the chord above the exponential."""

from __future__ import annotations

import math
import sys
from typing import ClassVar

import numpy as np

from skpuffer.core.calibration._alpha_wasserstein import AlphaWasserstein
from skpuffer.core.calibration._protocol import Budget
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray


class ClosedForm(AlphaWasserstein):
    """A scale from the mean and the largest shift alone.

    Between 0 and the largest exponent x_max the exponential lies below its chord,
    so E e^x ≤ 1 + (E x / x_max)(e^{x_max} − 1). Setting the right side to e^{(α−1)ε}
    gives x_max = log(1 + (x_max / E x)(e^{(α−1)ε} − 1)), and the ratio does not
    depend on the scale. The condition that the scale is checked against is that of
    `alpha_wasserstein`, which the chord implies.
    """

    name: ClassVar[str] = "closed_form"
    source: ClassVar[str] = (
        "chord bound of Ding, Yang and Zhang 2026, Theorems 1 and 2 "
        "(of the kind of their Corollaries 1 and 3)"
    )
    refines: ClassVar[bool] = False

    def unit_scale(
        self, witness: ShiftBound, law: NoiseLaw, budget: Budget, weights: FloatArray
    ) -> float:
        """Evaluate the formula, in units of the weights."""
        if math.isinf(budget.alpha) or witness.is_zero:
            return super().unit_scale(witness, law, budget, weights)
        degree = law.homogeneity
        if degree is None:
            raise ValueError(
                f"the closed form needs an exponent that is a power of the scale, and "
                f"{law.name} noise states none: use the transport rule"
            )
        used, least = weights > 0, sys.float_info.min
        largest = float((witness.shifts.max(axis=0)[used] / weights[used]).max())
        # About the largest shift, and a power of two: in units of it no square of a
        # shift that matters underflows.
        unit = math.ldexp(1.0, math.frexp(max(largest, least))[1] - 1)
        exponents = self.exponents(witness.shifts, law, budget, unit * weights)
        # Where they underflow yet, a larger one in their place costs noise.
        top = max(float(exponents.max()), least)
        mean = max(float(witness.mass @ exponents), least)
        log_ratio = math.log(top) - math.log(mean)
        power = top / _log_one_plus_scaled(log_ratio, budget.log_target)
        # A relative 1e-14 covers the round-off of the formula.
        found = unit * float(np.power(power, 1 / degree)) * (1 + 1e-14)
        return max(found, least)


def _log_one_plus_scaled(log_ratio: float, exponent: float) -> float:
    """Return log(1 + e^log_ratio · (e^exponent − 1)) without overflow."""
    if exponent < 30:
        return math.log1p(math.exp(log_ratio) * math.expm1(exponent))
    return float(
        np.logaddexp(0.0, log_ratio + exponent + math.log1p(-math.exp(-exponent)))
    )
