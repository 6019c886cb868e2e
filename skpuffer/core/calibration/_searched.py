"""Couplings of very many points of several columns, searched with a rule's own cost.

Contract: any coupling is sound; one from here never needs more noise than the one that
the search starts from. Uses the plans of `core.plans` and nothing of a rule but its
condition.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from skpuffer.core.calibration._protocol import START_SHARE, Budget, Pair
from skpuffer.core.coupling import Coupling, ShiftBound
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.plans import Column, LogCosts, Plan, descended_plan, summed
from skpuffer.core.prior import FloatArray

# The largest exponent is lowered by a moment of this many times the exponents in units
# of the largest; twice as many each time that the search goes on in larger parts.
NEARLY_MAXIMUM = 64.0


class SearchedRule(Protocol):
    """What a search needs to know of a rule."""

    def looks_at_largest(self, budget: Budget) -> bool:
        """Whether the functional is the largest exponent alone."""
        ...

    def exponents(
        self, shifts: FloatArray, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> FloatArray:
        """Return what the functional is taken over; it adds up over columns."""
        ...

    def target(self, budget: Budget) -> float:
        """Return what the functional may reach."""
        ...

    def unit_scale(
        self, witness: ShiftBound, law: NoiseLaw, budget: Budget, weights: FloatArray
    ) -> float:
        """Find the smallest factor of the weights at which the condition holds."""
        ...


def searched_coupling(
    rule: SearchedRule,
    pair: Pair,
    law: NoiseLaw,
    budget: Budget,
    start: Plan,
    unit: float,
) -> Coupling:
    """Return the best coupling that the pair's effort allows to find.

    Parameters
    ----------
    rule : SearchedRule
    pair : Pair
    law : NoiseLaw
    budget : Budget
    start : Plan
        A coupling of the pair.
    unit : float
        The positive factor of the weights that it needs.

    Returns
    -------
    Coupling
        `start`, or one that needs a smaller factor.
    """
    first, second = pair.first, pair.second
    moving = np.flatnonzero(pair.weights > 0)
    weights = pair.weights[moving]
    x, y = first.support[:, moving], second.support[:, moving]
    low = np.minimum(x.min(axis=0), y.min(axis=0))
    high = np.maximum(x.max(axis=0), y.max(axis=0))
    middle = low / 2 + high / 2
    x, y = (x - middle) / weights, (y - middle) / weights
    columns = [Column(*ends) for ends in zip(x.T, y.T, strict=True)]
    largest = rule.looks_at_largest(budget)

    def costs_at(scale: float, level: int) -> LogCosts:
        def cost(_: int, distances: FloatArray) -> FloatArray:
            return rule.exponents(distances[:, None], law, budget, np.array([scale]))

        factor = NEARLY_MAXIMUM * 2.0**level / rule.target(budget) if largest else 1.0
        return summed(columns, cost, factor)

    def coupling(plan: Plan) -> Coupling:
        return Coupling.from_plan(first, second, plan)

    def scale_of(plan: Plan) -> float:
        bound = coupling(plan).shift_bound()
        return rule.unit_scale(bound, law, budget, pair.weights)

    effort = pair.effort.part(1 - START_SHARE)
    return coupling(descended_plan(start, unit, x, y, costs_at, scale_of, effort))
