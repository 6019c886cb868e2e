"""Root finding that ends on the private side, and the rules that share it.

Every rule here has the form "a functional of the shift exponents is at most a
target", where the functional falls as the scale grows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from skpuffer.core.calibration._protocol import BoundedPair, Budget, Calibrated, Pair
from skpuffer.core.coupling import Coupling, ShiftBound
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.plans import (
    EXACT_LIMIT,
    Plan,
    TransportPlanError,
    bottleneck_plan,
    exponential_plan,
    useful_ceiling,
)
from skpuffer.core.prior import FloatArray, IntArray, common_masses

# Relative accuracy of the root in the logarithm of the scale; the scale itself is
# then rounded to 20 bits.
_ROOT_TOLERANCE = 1e-11
# Re-solving a joint plan stops when it gains less than this.
_REFINE_GAIN = 1e-4
_MAX_REFINEMENTS = 8


class CalibrationError(RuntimeError):
    """No scale could be shown to satisfy its condition."""


def solve_scale(
    functional: Callable[[float], float], target: float, *, start: float
) -> float:
    """Return the smallest scale with ``functional(scale) <= target``.

    Parameters
    ----------
    functional : callable
        Non-increasing and non-negative; may return infinity.
    target : float
        Positive.
    start : float
        A positive guess of the scale.

    Returns
    -------
    float
        Above the root by at most a relative 1e-10; the condition holds at it.

    Raises
    ------
    CalibrationError
        No finite scale satisfies the condition.

    Examples
    --------
    >>> round(solve_scale(lambda scale: 3 / scale, 1.5, start=1.7), 9)
    2.0
    """
    log_target = math.log(target)

    def excess(log_scale: float) -> float:
        # On two logarithms the functional is nearly a straight line.
        value = functional(math.exp(log_scale))
        if math.isnan(value):
            raise CalibrationError("the calibration condition is not a number")
        gap = math.log(min(max(value, 5e-324), 1e308)) - log_target
        # Neighbouring numbers can have one logarithm.
        return gap if value <= target else max(gap, 1e-300)

    upper = math.log(start)
    lower = upper
    stride = math.log(2.0)
    if excess(upper) <= 0:
        while True:
            lower = upper - stride
            if lower < -700:
                return math.exp(upper)
            if excess(lower) > 0:
                break
            upper = lower
    else:
        while True:
            upper = lower + stride
            if upper > 700:
                raise CalibrationError("no finite scale satisfies the condition")
            if excess(upper) <= 0:
                break
            lower = upper
    root = brentq(excess, lower, upper, xtol=_ROOT_TOLERANCE, rtol=1e-14)
    step = _ROOT_TOLERANCE
    while not functional(math.exp(root)) <= target:
        root += step
        step *= 2
        if root > upper:
            # `upper` was seen to satisfy the condition.
            return math.exp(upper)
    return math.exp(root)


def log_moment(exponents: FloatArray, mass: FloatArray) -> float:
    """Return log Σ mass · e^exponent, accurate near zero and without overflow.

    Parameters
    ----------
    exponents : ndarray of shape (m,)
        Non-negative.
    mass : ndarray of shape (m,)
        Sums to one (or to a little more, which only raises the value).
    """
    top = float(exponents.max())
    if math.isinf(top):
        return math.inf
    # A rare large exponent must not cost the digits of a moment near one. Sums, not
    # dot products: pairwise, and on one thread.
    if top < 700.0:
        return math.log1p(float((mass * np.expm1(exponents)).sum()))
    return top + math.log(float((mass * np.exp(exponents - top)).sum()))


class ShiftRule(ABC):
    """A rule that sees a pair through its shifts alone."""

    name: ClassVar[str]
    # Where the condition was published for one column and one release.
    source: ClassVar[str]
    one_column: ClassVar[bool] = False
    # Whether another plan may satisfy the same condition at a smaller scale.
    refines: ClassVar[bool] = True

    def theorem(self, budget: Budget, *, several_columns: bool) -> str:
        """Name the theorem that the promise rests on."""
        if several_columns or budget.n_releases > 1:
            return f"{self.source}, extended to vectors by joint convexity"
        return self.source

    @abstractmethod
    def exponents(
        self, shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> FloatArray:
        """Return what the functional is taken over, one value per shift vector."""

    @abstractmethod
    def functional(
        self, bound: ShiftBound, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> float:
        """Return the left-hand side of the condition."""

    @abstractmethod
    def target(self, budget: Budget) -> float:
        """Return its right-hand side."""

    def holds(
        self, witness: ShiftBound, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> bool:
        """Evaluate the condition at the scales, one per column."""
        return self.functional(witness, law, budget, scale) <= self.target(budget)

    def unit_scale(
        self, witness: ShiftBound, law: NoiseLaw, budget: Budget, weights: FloatArray
    ) -> float:
        """Find the smallest factor of the weights at which the condition holds."""
        if witness.is_zero:
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            spans = np.nan_to_num(witness.shifts.max(axis=0) / weights)
        return solve_scale(
            lambda unit: self.functional(witness, law, budget, unit * weights),
            self.target(budget),
            start=float(spans.max()),
        )

    def divergence(
        self, witness: ShiftBound, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> float:
        """Bound the divergence of a release by the expected shift cost.

        Joint convexity proves it for every coupling, whichever condition the scale
        was found with.
        """
        exponents = divergences(witness.shifts, law, budget, scale)
        if math.isinf(budget.alpha):
            return float(exponents.max())
        excess = budget.alpha - 1
        return log_moment(excess * exponents, witness.mass) / excess

    def calibrate(
        self, pair: Pair | BoundedPair, law: NoiseLaw, budget: Budget
    ) -> Calibrated:
        """Find the smallest factor of ``pair.weights``, ending on the private side."""
        bound = pair.bound.compressed() if law.convex else pair.bound
        best = Calibrated(self.unit_scale(bound, law, budget, pair.weights), bound)
        if not (self.refines and isinstance(pair, Pair) and best.unit > 0):
            return best
        for _ in range(_MAX_REFINEMENTS if _can_refine(pair) else 0):
            bound = self._refined(pair, law, budget, best.unit)
            unit = self.unit_scale(bound, law, budget, pair.weights)
            gain = 1 - unit / best.unit
            if gain > 0:
                best = Calibrated(unit, bound)
            if gain < _REFINE_GAIN:
                break
        return best

    def _refined(
        self, pair: Pair, law: NoiseLaw, budget: Budget, unit: float
    ) -> ShiftBound:
        """Re-solve the plan with this rule's own cost at the scale found.

        A plan that is optimal at a scale satisfies the condition there whenever any
        plan does, so repeating this descends to the smallest scale that any
        coupling allows.
        """
        first, second = pair.first, pair.second
        first_mass, second_mass, _ = common_masses(first, second)
        shifts = np.abs(first.support[:, None, :] - second.support[None, :, :])
        cost = self.exponents(
            shifts.reshape(-1, shifts.shape[2]), law, budget, unit * pair.weights
        ).reshape(shifts.shape[:2])
        known = pair.coupling
        start = Plan(known.rows, known.columns, known.mass)
        try:
            plan = self.better_plan(cost, first_mass, second_mass, budget, start)
        except TransportPlanError:
            # A refinement that fails costs noise, not privacy.
            return pair.bound
        if plan is start:
            return pair.bound
        return Coupling.from_plan(first, second, plan).shift_bound()

    def better_plan(
        self,
        exponents: FloatArray,
        first_mass: IntArray,
        second_mass: IntArray,
        budget: Budget,
        start: Plan,
    ) -> Plan:
        """Return the plan with the least functional, given every pair's exponent.

        For a functional that is the largest exponent; `start` is a plan to beat.
        """
        return bottleneck_plan(first_mass, second_mass, exponents, start)


def _can_refine(pair: Pair) -> bool:
    several = int(np.count_nonzero(pair.weights)) > 1
    return several and max(len(pair.first.mass), len(pair.second.mass)) <= EXACT_LIMIT


class MomentRule(ShiftRule):
    """A rule of the form E exp(exponent) ≤ exp((α−1) ε); a maximum at α = ∞."""

    def theorem(self, budget: Budget, *, several_columns: bool) -> str:
        """Name the theorem that the promise rests on."""
        if math.isinf(budget.alpha):
            return "the largest shift of a coupling, as for w_inf"
        return super().theorem(budget, several_columns=several_columns)

    @abstractmethod
    def moment_exponents(
        self, shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> FloatArray:
        """Return the exponents for a single copy at a finite order."""

    def exponents(
        self, shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> FloatArray:
        """Return the exponents of all copies; divergences at α = ∞."""
        if math.isinf(budget.alpha):
            return divergences(shifts, law, budget, scale)
        return budget.n_releases * self.moment_exponents(shifts, law, budget, scale)

    def functional(
        self, bound: ShiftBound, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> float:
        """Return the logarithm of the moment; the largest divergence at α = ∞."""
        exponents = self.exponents(bound.shifts, law, budget, scale)
        if math.isinf(budget.alpha):
            return float(exponents.max())
        return log_moment(exponents, bound.mass)

    def better_plan(
        self,
        exponents: FloatArray,
        first_mass: IntArray,
        second_mass: IntArray,
        budget: Budget,
        start: Plan,
    ) -> Plan:
        """Return the plan with the least moment, given every pair's exponent."""
        if math.isinf(budget.alpha):
            return super().better_plan(
                exponents, first_mass, second_mass, budget, start
            )
        ceiling = useful_ceiling(first_mass, second_mass, budget.log_target)
        return exponential_plan(exponents, first_mass, second_mass, ceiling=ceiling)

    def target(self, budget: Budget) -> float:
        """(α−1) ε, or ε at α = ∞."""
        return budget.epsilon if math.isinf(budget.alpha) else budget.log_target


def divergences(
    shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
) -> FloatArray:
    """Return the divergence of `n_releases` copies for each shift vector."""
    single = law.shift_divergence(shifts, alpha=budget.alpha, scale=scale)
    return budget.n_releases * single
