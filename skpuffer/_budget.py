"""Which Rényi order a release takes when the user leaves it open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skpuffer._parameters import Settings
from skpuffer.core import gaussian_model
from skpuffer.core.calibration import (
    BoundedPair,
    Budget,
    CalibrationRule,
    Pair,
    ShiftRule,
    best_order,
)
from skpuffer.core.channels import RowPair, RowRange
from skpuffer.core.conversions import renyi_budget
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.plans import Effort

# A joint order is chosen again on refined couplings until that gains less than this.
_GAIN, _ROUNDS = 1e-5, 4
# What a pair may spend in each of these rounds, of what it may in the calibration.
_SHARE = 1 / _ROUNDS


def search_effort(effort: Effort, settings: Settings) -> Effort:
    """Return what the calibration may spend so that a fit keeps to its time.

    The choice of an order takes as long again.
    """
    if effort.seconds is None or not settings.chooses_order:
        return effort
    return replace(effort, seconds=effort.seconds / 2)


def best_budget(
    blocks: Sequence[Sequence[Any]], settings: Settings, prior_model: str
) -> Budget:
    """Return the order with the least noise for the target, and its Rényi bound.

    The noise of several blocks is the product of theirs. First couplings are made
    once; a joint one is then refined for the order found, and the order chosen again
    on it, in turns.

    Parameters
    ----------
    blocks : sequence of sequences of pairs
        The pairs of each calibration, as `calibrate` or `gaussian_scale` takes them.
    settings : Settings
        With a target.
    prior_model : str

    Returns
    -------
    Budget

    Raises
    ------
    CalibrationError
        No order reaches the target.
    """
    law, rule = settings.law, settings.rule
    infinite = math.isinf(law.max_order) and prior_model in ("empirical", "bounded")

    def least(noise: Any) -> Budget:
        """Return the best order of a noise that is a list of factors, one a block."""
        epsilon, delta = settings.target
        copies = settings.budget.n_releases

        def log_noise(alpha: float, renyi_epsilon: float) -> float:
            if alpha > law.max_order:
                return math.inf
            units = noise(Budget(alpha, renyi_epsilon, copies))
            # A block without noise counts as the least float: it hides no other.
            return sum(math.log(max(unit, 5e-324)) for unit in units)

        alpha = best_order(log_noise, epsilon, delta, infinite=infinite)
        return Budget(alpha, renyi_budget(alpha, epsilon, delta), copies)

    if prior_model == "gaussian":
        return least(
            lambda at: [gaussian_model.gaussian_scale(b, at).scale[0] for b in blocks]
        )
    budget = least(
        lambda at: [max(_rough_unit(p, law, rule, at) for p in b) for b in blocks]
    )
    one_number = len(blocks[0][0].weights) == 1 and not isinstance(
        blocks[0][0], RowPair
    )
    if one_number or len(blocks) > 1:
        return budget
    return _refined(blocks[0], law, rule, budget, least)


def _rough_unit(
    pair: Pair | BoundedPair, law: NoiseLaw, rule: CalibrationRule, budget: Budget
) -> float:
    """Return the factor of the weights that a pair needs before any refinement."""
    one_number = len(pair.weights) == 1 and not isinstance(pair, RowPair)
    if (one_number and law.convex) or rule.name == "exact":
        return rule.calibrate(pair, law, budget).unit
    if isinstance(rule, ShiftRule):
        return rule.first(pair, law, budget).unit
    return rule.unit_scale(pair.bound, law, budget, pair.weights)


def _refined(
    pairs: Sequence[Pair | BoundedPair],
    law: NoiseLaw,
    rule: CalibrationRule,
    budget: Budget,
    least: Any,
) -> Budget:
    """Return the best order for couplings that are the best for their order."""
    chosen, smallest = budget, math.inf
    pairs = [
        pair if isinstance(pair, BoundedPair | RowRange) else pair.within(_SHARE)
        for pair in pairs
    ]
    for _ in range(_ROUNDS):
        answers = [rule.calibrate(pair, law, budget) for pair in pairs]
        unit = max(answer.unit for answer in answers)
        if unit < smallest:
            chosen = budget
        if not unit < smallest * (1 - _GAIN):
            break
        smallest = unit
        witnesses = [answer.witness for answer in answers]

        def units(at: Budget, witnesses: list[Any] = witnesses) -> list[float]:
            return [
                max(
                    rule.unit_scale(witness, law, at, pairs[0].weights)
                    for witness in witnesses
                )
            ]

        budget = least(units)
    return chosen
