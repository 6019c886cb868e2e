"""The transport rule for rows of numbers and categories."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from skpuffer.core.calibration import (
    Budget,
    Calibrated,
    log_moment,
    solve_scale,
)
from skpuffer.core.channels._plans import searched_plan, solved_plan
from skpuffer.core.channels._rows import RowPair, RowRange
from skpuffer.core.channels._witness import Direction, RowWitness, WorstRow, dearest
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.plans import (
    Plan,
    TransportPlanError,
)
from skpuffer.core.prior import FloatArray

# Re-solving a plan stops when it gains less than this.
_REFINE_GAIN = 1e-4
_MAX_REFINEMENTS = 8
# No entry of a channel changes once the scale is so small a part of any distance:
# what is beyond e^−64 is below its unit of 2^−62.
_SMALLEST = 1 / 64


class RowTransport:
    """E exp((α−1) Σ D_α) ≤ e^{(α−1)ε} for one coupling in each direction.

    The release of a row is a mixture, over the coupling, of products of noises and
    channels; F(p, q) = p^α q^{1−α} is jointly convex and positively homogeneous, so
    ∫ F of two mixtures is at most the expectation of ∫ F of the products, whose
    divergences add over the columns. Channels are not symmetric: D(p ‖ q) and D(q ‖ p)
    each have a coupling of their own. That the condition falls with the scale is not
    proven for channels; it is checked at the scale that is returned.
    """

    name: ClassVar[str] = "transport"
    source: ClassVar[str] = (
        "joint convexity of the Rényi integrand over a coupling of the rows"
    )
    one_column: ClassVar[bool] = False

    def theorem(
        self, budget: Budget, *, several_columns: bool, law: NoiseLaw | None = None
    ) -> str:
        """Name what the promise rests on."""
        return self.source

    def calibrate(
        self, pair: RowPair | RowRange, law: NoiseLaw, budget: Budget
    ) -> Calibrated:
        """Find the smallest factor of ``pair.weights``, ending on the private side."""
        if isinstance(pair, RowRange):
            unit = self.unit_scale(pair.bound, law, budget, pair.weights)
            return Calibrated(unit, pair.bound)
        if pair.bound.is_zero:
            return Calibrated(0.0, pair.bound)
        pair = pair if pair.symmetric else pair.within(0.5)
        plan, forward, unit = self._descend(pair, pair.start, law, budget, 0.0)
        if pair.symmetric:
            return Calibrated(unit, RowWitness((forward,)))
        flipped = Plan(plan.columns, plan.rows, plan.mass)
        _, back, other = self._descend(pair.reversed(), flipped, law, budget, unit)
        return Calibrated(max(unit, other), RowWitness((forward, back)))

    def _descend(
        self, pair: RowPair, plan: Plan, law: NoiseLaw, budget: Budget, enough: float
    ) -> tuple[Plan, Direction, float]:
        """Re-solve the plan of one direction at its own scale until it stays.

        A plan that is optimal at a scale satisfies the condition there whenever any
        plan does. Nothing is gained below `enough`, which another direction needs.
        """

        def scale_of(found: Plan) -> float:
            witness = RowWitness((pair.direction(found),))
            return self.unit_scale(witness, law, budget, pair.weights)

        unit = scale_of(plan)
        if unit > enough and not pair.small:
            plan = searched_plan(pair, plan, law, budget, unit, scale_of, enough)
            return plan, pair.direction(plan), scale_of(plan)
        for _ in range(_MAX_REFINEMENTS):
            if unit <= enough:
                break
            try:
                found = solved_plan(pair, plan, law, budget, unit * pair.weights)
            except TransportPlanError:
                # A refinement that fails costs noise, not privacy.
                break
            needed = scale_of(found)
            gain = 1 - needed / unit
            if gain > 0:
                plan, unit = found, needed
            if gain < _REFINE_GAIN:
                break
        return plan, pair.direction(plan), unit

    def unit_scale(
        self,
        witness: RowWitness | WorstRow,
        law: NoiseLaw,
        budget: Budget,
        weights: FloatArray,
    ) -> float:
        """Find the smallest factor of the weights at which the condition holds."""
        starts, floors = _starts(witness, weights)
        if not starts:
            return 0.0

        def functional(unit: float) -> float:
            return self._functional(witness, law, budget, unit * weights)

        target = _target(budget)
        # Below the floor the channels stay as they are.
        if len(floors) == len(starts) and functional(min(floors)) <= target:
            return min(floors)
        return solve_scale(functional, target, start=max(starts))

    def _functional(
        self,
        witness: RowWitness | WorstRow,
        law: NoiseLaw,
        budget: Budget,
        scale: FloatArray,
    ) -> float:
        """Return the logarithm of the moment; the largest divergence at α = ∞."""
        copies = budget.n_releases
        if isinstance(witness, WorstRow):
            value = copies * witness.divergence(law, alpha=budget.alpha, scale=scale)
            return value if math.isinf(budget.alpha) else (budget.alpha - 1) * value
        values = [
            _moment(
                copies * part.divergences(law, alpha=budget.alpha, scale=scale),
                part.numbers.mass,
                budget.alpha,
            )
            for part in witness.directions
        ]
        return max(values)

    def holds(
        self,
        witness: RowWitness | WorstRow,
        law: NoiseLaw,
        budget: Budget,
        scale: FloatArray,
    ) -> bool:
        """Evaluate the condition at the scales, one per column."""
        return self._functional(witness, law, budget, scale) <= _target(budget)

    def divergence(
        self,
        witness: RowWitness | WorstRow,
        law: NoiseLaw,
        budget: Budget,
        scale: FloatArray,
    ) -> float:
        """Bound the divergence of a release of given scales at the budget's order."""
        value = self._functional(witness, law, budget, scale)
        return value if math.isinf(budget.alpha) else value / (budget.alpha - 1)


def _moment(divergences: FloatArray, mass: FloatArray, alpha: float) -> float:
    if math.isinf(alpha):
        return float(divergences.max())
    return log_moment((alpha - 1) * divergences, mass)


def _target(budget: Budget) -> float:
    return budget.epsilon if math.isinf(budget.alpha) else budget.log_target


def _starts(
    witness: RowWitness | WorstRow, weights: FloatArray
) -> tuple[list[float], list[float]]:
    """Return guesses of the factor, one a column that moves, and their floors."""
    starts, floors = [], []
    if isinstance(witness, WorstRow):
        numeric = np.array([item is None for item in witness.columns])
        spans = witness.span[0] / weights[numeric]
        reach = [d[d > 0] for d in witness.columns if d is not None]
    else:
        numeric = witness.directions[0].is_number
        shifts = witness.directions[0].numbers.shifts
        with np.errstate(divide="ignore", invalid="ignore"):
            spans = np.nan_to_num(shifts.max(axis=0) / weights[numeric])
        reach = [
            dearest(moves.distances)[moves.first, moves.second]
            for moves in witness.directions[0].moves
        ]
    starts += [span for span in spans.tolist() if span > 0]
    for distances, weight in zip(reach, weights[~numeric].tolist(), strict=True):
        moved = distances[distances > 0]
        if len(moved):
            starts.append(float(moved.max()) / weight)
            floors.append(_SMALLEST * float(moved.min()) / weight)
    return starts, floors
