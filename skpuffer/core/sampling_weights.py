"""The weights that noise on a grid has: falling functions of |k|, in floats and exactly.

Each is w(k) = exp(-x(k)) for integers k >= 0, with a scale in steps of the grid. Imports
the standard library and numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Protocol

import numpy as np
import numpy.typing as npt

LEAST_POWER = 0.2
MAX_SCALE = 2**22

Floats = npt.NDArray[np.float64]


class Weights(Protocol):
    """What the sampler asks of a law; hashable.

    Attributes
    ----------
    power : float
        x(2k) is 2^power x(k), or more.
    """

    @property
    def power(self) -> float: ...  # noqa: D102

    def __hash__(self) -> int: ...

    @property
    def total(self) -> float:
        """Return the sum of w over k >= 0, nearly."""
        ...

    def exponent(self, k: Floats) -> Floats:
        """Return x(k) for whole numbers k below 2^53, to a relative 2^-48."""
        ...

    def bounds(self, k: int, down: Context, up: Context) -> tuple[Decimal, Decimal]:
        """Return bounds on w(k), with contexts that round down and up."""
        ...


@dataclass(frozen=True)
class PowerWeights:
    """w(k) = exp(-(k / t)^power), t an integer."""

    t: int
    power: float

    def __post_init__(self) -> None:
        if not LEAST_POWER <= self.power <= 1:
            raise ValueError(
                f"power must be from {LEAST_POWER} to 1, got {self.power}."
            )

    @property
    def total(self) -> float:
        """Return t Γ(1 + 1/power) + 1/2."""
        return self.t * math.gamma(1 + 1 / self.power) + 0.5

    def exponent(self, k: Floats) -> Floats:
        """Return (k / t)^power."""
        return np.asarray((k / self.t) ** self.power)

    def bounds(self, k: int, down: Context, up: Context) -> tuple[Decimal, Decimal]:
        """By the logarithm of k / t; decimal's ln and exp are within half an ulp."""
        if k == 0:
            return Decimal(1), Decimal(1)
        p = Decimal(self.power)
        low = down.multiply(p, down.next_minus(down.ln(down.divide(k, self.t))))
        high = up.multiply(p, up.next_plus(up.ln(up.divide(k, self.t))))
        low, high = down.next_minus(down.exp(low)), up.next_plus(up.exp(high))
        return _exponentials(low, high, down, up)


@dataclass(frozen=True)
class GaussianWeights:
    """w(k) = exp(-k^2 / 2 s^2), s an integer."""

    s: int
    power: float = 2.0

    @property
    def total(self) -> float:
        """Return s √(π / 2) + 1/2."""
        return self.s * math.sqrt(math.pi / 2) + 0.5

    def exponent(self, k: Floats) -> Floats:
        """Return k^2 / 2 s^2."""
        ratio = k / self.s
        return np.asarray(ratio * ratio * 0.5)

    def bounds(self, k: int, down: Context, up: Context) -> tuple[Decimal, Decimal]:
        """By the exponent, a fraction of integers."""
        if k == 0:
            return Decimal(1), Decimal(1)
        above, below = k * k, 2 * self.s * self.s
        return _exponentials(
            down.divide(above, below), up.divide(above, below), down, up
        )


@dataclass(frozen=True)
class RoundedLaplaceWeights:
    """w(k) = exp(-k / t) for k > 0, w(0) = 2 / (exp(1 / 2t) + 1), t an integer.

    What a continuous Laplace noise of scale t becomes by rounding, divided by
    sinh(1 / 2t): P(±k) = exp(-k/t) sinh(1/2t) for k > 0, and for zero, with both signs,
    P(0) = 1 - exp(-1/2t) = sinh(1/2t) 2 / (exp(1/2t) + 1).
    """

    t: int
    power: float = 1.0

    @property
    def total(self) -> float:
        """Return t + 1/2."""
        return self.t + 0.5

    def exponent(self, k: Floats) -> Floats:
        """Return k / t, and for zero log((exp(1 / 2t) + 1) / 2)."""
        x = np.asarray(k / self.t)
        # As a logarithm of a number near one it would lose its digits.
        x[k == 0] = math.log1p(math.expm1(0.5 / self.t) / 2)
        return x

    def bounds(self, k: int, down: Context, up: Context) -> tuple[Decimal, Decimal]:
        """By the exponent, a fraction of integers."""
        if k > 0:
            return _exponentials(down.divide(k, self.t), up.divide(k, self.t), down, up)
        low = down.next_minus(down.exp(down.divide(1, 2 * self.t)))
        high = up.next_plus(up.exp(up.divide(1, 2 * self.t)))
        return down.divide(2, up.add(high, 1)), up.divide(2, down.add(low, 1))


def _exponentials(
    low: Decimal, high: Decimal, down: Context, up: Context
) -> tuple[Decimal, Decimal]:
    """Return bounds on exp(-x) for low <= x <= high.

    No unary minus on a Decimal: it would round to the caller's own context.
    """
    least = down.next_minus(down.exp(down.minus(high)))
    return least, up.next_plus(up.exp(up.minus(low)))
