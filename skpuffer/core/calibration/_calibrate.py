"""From pairs to one scale per column, on the grid that is released."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skpuffer.core.calibration._protocol import (
    BoundedPair,
    Budget,
    CalibrationRule,
    Pair,
)
from skpuffer.core.calibration._solve import CalibrationError
from skpuffer.core.grid import grid_step, scale_to_grid
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray

_MAX_ROUNDS = 60
# The grid's step grows with the scale: more noise than this does not help any more.
_MOST_INFLATION = 2.0**20
# Shifts of one pair that its divergence at other orders is bounded with.
_PROFILE_CELLS = 2**8


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scales that satisfy a rule for every pair.

    Attributes
    ----------
    scale : ndarray of shape (k,)
        Each a multiple of its own grid step; zero where no noise is needed.
    worst : int
        Position of the pair that needs the most noise.
    divergence : callable
        ``divergence(alpha)``: a proven upper bound for every pair, at another order
        that the law has. It refers to the data, and should not outlive the fit.
    """

    scale: FloatArray
    worst: int
    divergence: Callable[[float], float] = field(repr=False)


def calibrate(
    pairs: Sequence[Pair | BoundedPair],
    law: NoiseLaw,
    rule: CalibrationRule,
    budget: Budget,
) -> Calibration:
    """Find the scales that a release of the pairs' columns needs.

    The rule is solved for each pair on the data as they are; the largest answer is
    rounded to 20 bits, which gives the grid, and the condition is checked again for
    every pair with the shifts of the data rounded to that grid. A release is thus
    calibrated for exactly what it does.

    Parameters
    ----------
    pairs : sequence of Pair or BoundedPair
        At least one, all with the same weights.
    law : NoiseLaw
    rule : CalibrationRule
    budget : Budget

    Returns
    -------
    Calibration

    Raises
    ------
    CalibrationError
        The condition could not be confirmed on the grid.
    """
    weights = pairs[0].weights
    answers = [rule.calibrate(pair, law, budget) for pair in pairs]
    units = np.array([answer.unit for answer in answers])
    worst = int(units.argmax())
    unit = need = float(units[worst])
    witnesses = [answer.witness for answer in answers]
    if unit == 0.0:
        still = np.zeros_like(weights)
        if not all(rule.holds(item, law, budget, still) for item in witnesses):
            raise CalibrationError(
                "shifts vanish in units of the column weights: give weights nearer to "
                "the spreads of the columns"
            )
        return _answer(np.zeros_like(weights), worst, witnesses, law, rule, budget)
    for _ in range(_MAX_ROUNDS):
        up = _on_grid(unit * weights)
        # The nearest multiple is a little less noise; it is taken if it suffices.
        nearest = _nearest(unit * weights, up)
        for scale in (up,) if np.array_equal(nearest, up) else (nearest, up):
            if all(_holds(rule, item, law, budget, scale) for item in witnesses):
                witnesses = [item.on_grid(_steps(scale)) for item in witnesses]
                return _answer(scale, worst, witnesses, law, rule, budget)
        steps = _steps(up)
        again = max(
            rule.unit_scale(item.on_grid(steps), law, budget, weights)
            for item in witnesses
        )
        unit = max(unit * (1 + 2**-30), again)
        if unit > _MOST_INFLATION * need:
            break
    raise CalibrationError(
        "the condition could not be confirmed on the release grid, where a shift of one "
        f"step costs nearly as much as epsilon={budget.epsilon:g} allows: raise epsilon, "
        "or the power of the noise if it has one"
    )


def _answer(
    scale: FloatArray,
    worst: int,
    witnesses: list[Any],
    law: NoiseLaw,
    rule: CalibrationRule,
    budget: Budget,
) -> Calibration:
    if law.convex:
        witnesses = [item.compressed(_PROFILE_CELLS) for item in witnesses]

    seen: list[list[tuple[float, float]]] = [[] for _ in witnesses]

    def divergence(alpha: float) -> float:
        largest = 0.0
        for item, known in zip(witnesses, seen, strict=True):
            guess = _extrapolated(known, alpha, budget.epsilon)
            at = replace(budget, alpha=alpha, epsilon=guess)
            value = rule.divergence(item, law, at, scale)
            if math.isfinite(alpha) and 0 < value < math.inf:
                known[:] = [*known[-1:], (alpha, value)]
            largest = max(largest, value)
        return largest

    return Calibration(scale, worst, divergence)


def _extrapolated(
    known: list[tuple[float, float]], alpha: float, otherwise: float
) -> float:
    """Guess the divergence at an order from those at two others."""
    if len(known) < 2 or not math.isfinite(alpha) or known[0][0] == known[1][0]:
        return otherwise
    (order, before), (next_order, value) = known
    rise = math.log(value / before) / math.log(next_order / order)
    return value * math.pow(alpha / next_order, min(max(rise, 0.0), 3.0))


def _holds(
    rule: CalibrationRule,
    witness: Any,
    law: NoiseLaw,
    budget: Budget,
    scale: FloatArray,
) -> bool:
    return rule.holds(witness.on_grid(_steps(scale)), law, budget, scale)


def _on_grid(scale: FloatArray) -> FloatArray:
    return np.array([scale_to_grid(b) if b > 0 else 0.0 for b in scale.tolist()])


def _nearest(scale: FloatArray, up: FloatArray) -> FloatArray:
    step = _steps(up)
    step[step == 0] = 1.0
    return np.rint(scale / step) * step


def _steps(scale: FloatArray) -> FloatArray:
    return np.array([grid_step(b) if b > 0 else 0.0 for b in scale.tolist()])
