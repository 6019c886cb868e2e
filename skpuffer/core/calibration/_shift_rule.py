"""Rules that see a pair through its shifts alone, on the best coupling at hand.

Every rule here has the form "a functional of the shift exponents is at most a
target", where the functional falls as the scale grows.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from skpuffer.core.calibration._protocol import BoundedPair, Budget, Calibrated, Pair
from skpuffer.core.calibration._searched import searched_coupling
from skpuffer.core.calibration._solve import (
    Root,
    find_root,
    log_moment,
    solve_scale,
)
from skpuffer.core.coupling import Coupling, ShiftBound
from skpuffer.core.grid import grid_steps
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

# Re-solving a plan stops when it gains less than this.
_REFINE_GAIN = 1e-4
_MAX_REFINEMENTS = 8
# Cells whose root is found first where there are more shifts.
_FEW = 2**8
# As logarithms: how well it is found, how long a last step by the fall there may be, and
# how far beyond its end one stays; how many steps there are.
_ROUGHLY, _SETTLED, _MARGIN, _STEPS = 1e-5, 5e-5, 1e-9, 5


class ShiftRule(ABC):
    """A rule that sees a pair through its shifts alone."""

    name: ClassVar[str]
    # Where the condition was published for one column and one release.
    source: ClassVar[str]
    one_column: ClassVar[bool] = False
    # Whether another plan may satisfy the same condition at a smaller scale.
    refines: ClassVar[bool] = True

    def theorem(
        self, budget: Budget, *, several_columns: bool, law: NoiseLaw | None = None
    ) -> str:
        """Name the theorem that the promise rests on, for a law if it has its own."""
        source = self.source if law is None else law.sources.get(self.name, self.source)
        if several_columns or budget.n_releases > 1:
            return f"{source}, extended to vectors by joint convexity"
        return source

    @abstractmethod
    def looks_at_largest(self, budget: Budget) -> bool:
        """Whether the functional is the largest exponent alone."""

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
        start, fall = self._near(witness, law, budget, weights)
        return solve_scale(
            lambda unit: self.functional(witness, law, budget, unit * weights),
            self.target(budget),
            start=start,
            fall=fall,
        )

    def _near(
        self, witness: ShiftBound, law: NoiseLaw, budget: Budget, weights: FloatArray
    ) -> Root:
        """Return about where the condition of a witness begins to hold.

        Its root on few cells in place of very many shifts.
        """
        few = _few(witness, law)
        used = weights > 0
        spans = few.shifts.max(axis=0)[used] / weights[used]
        # The largest may underflow to zero, which has no logarithm.
        start = Root(max(float(spans.max()), sys.float_info.min), 1.5)
        if few is witness:
            return start
        return find_root(
            lambda unit: self.functional(few, law, budget, unit * weights),
            self.target(budget),
            start=start.scale,
            tolerance=_ROUGHLY,
        )

    def _guess(
        self, witness: ShiftBound, law: NoiseLaw, budget: Budget, weights: FloatArray
    ) -> Calibrated:
        """Estimate the factor for very many shifts on the grid of the release.

        From the root on few cells, by steps as long as the fall there says, since
        functionals fall alike. Whoever asks confirms the answer.
        """
        unit, fall = self._near(witness, law, budget, weights)
        for _ in range(_STEPS):
            scale = unit * weights
            moved = witness.on_grid(grid_steps(scale))
            ratio = self.functional(moved, law, budget, scale) / self.target(budget)
            gap = math.log(ratio) / fall if 0 < ratio < math.inf else math.inf
            if not abs(gap) < 1:
                break
            unit *= math.exp(gap)
            if abs(gap) < _SETTLED:
                return Calibrated(unit * math.exp(_MARGIN), witness, is_least=True)
        unit = self.unit_scale(witness, law, budget, weights)
        return Calibrated(unit, witness)

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
        best = self.first(pair, law, budget)
        if not (self.refines and isinstance(pair, Pair) and best.unit > 0):
            return best
        if self._has_many_points(pair):
            in_place = best.witness is not pair.bound
            start = pair.plan_in_place if in_place else pair.plan
            found = searched_coupling(self, pair, law, budget, start, best.unit)
            bound = found.shift_bound()
            unit = self.unit_scale(bound, law, budget, pair.weights)
            return Calibrated(unit, bound) if unit < best.unit else best
        for _ in range(_MAX_REFINEMENTS if self._can_refine(pair, law, budget) else 0):
            bound = self._refined(pair, law, budget, best.unit)
            unit = self.unit_scale(bound, law, budget, pair.weights)
            gain = 1 - unit / best.unit
            if gain > 0:
                best = Calibrated(unit, bound)
            if gain < _REFINE_GAIN:
                break
        return best

    def first(
        self, pair: Pair | BoundedPair, law: NoiseLaw, budget: Budget
    ) -> Calibrated:
        """Find the same on couplings that are not made for this rule and budget.

        Where costs are concave near zero, also on the one that moves no common mass.
        """
        bounds = [pair.bound]
        if self._concave(law, budget) and isinstance(pair, Pair):
            bounds.append(pair.bound_in_place)
        found = []
        for bound in bounds:
            fewer = bound.compressed() if law.convex else bound.rounded_up()
            if self.refines and law.convex and _few(fewer, law) is not fewer:
                found.append(self._guess(fewer, law, budget, pair.weights))
                continue
            unit = self.unit_scale(fewer, law, budget, pair.weights)
            found.append(Calibrated(unit, fewer))
        return min(found, key=lambda answer: answer.unit)

    def _concave(self, law: NoiseLaw, budget: Budget) -> bool:
        """Whether the monotone coupling of one column may not be the best.

        It is for convex costs, and for a functional that is the largest shift.
        """
        return not law.convex and not self.looks_at_largest(budget)

    def _has_many_points(self, pair: Pair) -> bool:
        """Whether a plan of several columns is searched, not solved."""
        atoms = max(len(pair.first.mass), len(pair.second.mass))
        return atoms > EXACT_LIMIT and int(np.count_nonzero(pair.weights)) > 1

    def _can_refine(self, pair: Pair, law: NoiseLaw, budget: Budget) -> bool:
        """Whether another plan may be better, and is found in reasonable time."""
        atoms = max(len(pair.first.mass), len(pair.second.mass))
        if int(np.count_nonzero(pair.weights)) > 1:
            return True
        # Among very many values of one column there is little to gain.
        return atoms <= EXACT_LIMIT // 2 and self._concave(law, budget)

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
        start = pair.plan
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


class MomentRule(ShiftRule):
    """A rule of the form E exp(exponent) ≤ exp((α−1) ε); a maximum at α = ∞."""

    def theorem(
        self, budget: Budget, *, several_columns: bool, law: NoiseLaw | None = None
    ) -> str:
        """Name the theorem that the promise rests on, for a law if it has its own."""
        if math.isinf(budget.alpha):
            return "the largest shift of a coupling, as for w_inf"
        return super().theorem(budget, several_columns=several_columns, law=law)

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

    def looks_at_largest(self, budget: Budget) -> bool:
        """Whether the order is infinite."""
        return math.isinf(budget.alpha)

    def target(self, budget: Budget) -> float:
        """(α−1) ε, or ε at α = ∞."""
        return budget.epsilon if math.isinf(budget.alpha) else budget.log_target


def divergences(
    shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
) -> FloatArray:
    """Return the divergence of `n_releases` copies for each shift vector."""
    single = law.shift_divergence(shifts, alpha=budget.alpha, scale=scale)
    return budget.n_releases * single


def _few(witness: ShiftBound, law: NoiseLaw) -> ShiftBound:
    return witness.compressed(_FEW) if law.convex else witness.rounded_up(_FEW)
