"""From pairs to one scale per column, on the grid that is released."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skpuffer.core.calibration._many_orders import divergences_at
from skpuffer.core.calibration._protocol import (
    BoundedPair,
    Budget,
    CalibrationRule,
    Pair,
)
from skpuffer.core.calibration._solve import CalibrationError
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.grid import grid_steps, scale_to_grid
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray

_MAX_ROUNDS = 60
# The grid's step grows with the scale: more noise than this does not help any more.
_MOST_INFLATION = 2.0**20
# Scales that are known to be least are so but for this.
_TIGHT = 2.0**-28
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
    divergences : callable or None
        The same at several finite orders at once, where that is faster.
    """

    scale: FloatArray
    worst: int
    divergence: Callable[[float], float] = field(repr=False)
    divergences: Callable[[FloatArray], FloatArray] | None = field(
        default=None, repr=False
    )

    def at(self, alphas: Sequence[float]) -> FloatArray:
        """Bound the divergence at several finite orders, shape (a,)."""
        if self.divergences is not None:
            return self.divergences(np.array(alphas))
        return np.array([self.divergence(alpha) for alpha in alphas])


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
    # Where less noise is known not to do, it is not looked at again.
    is_least = answers[worst].is_least
    for _ in range(_MAX_ROUNDS):
        up = _on_grid(unit * weights)
        # The nearest multiple is a little less noise; it is taken if it suffices.
        nearest = _nearest(unit * weights, up)
        less = (nearest < unit * weights * (1 - _TIGHT)).any()
        only = (is_least and less) or np.array_equal(nearest, up)
        for scale in (up,) if only else (nearest, up):
            steps = grid_steps(scale)
            moved = [item.on_grid(steps) for item in witnesses]
            if all(rule.holds(item, law, budget, scale) for item in moved):
                return _answer(scale, worst, witnesses, law, rule, budget)
        steps = grid_steps(up)
        again = max(
            rule.unit_scale(item.on_grid(steps), law, budget, weights)
            for item in witnesses
        )
        unit, is_least = max(unit * (1 + 2**-30), again), False
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
    steps = grid_steps(scale)
    fewer = [
        _fewer(item, steps) if law.convex else item.on_grid(steps) for item in witnesses
    ]

    seen: list[list[tuple[float, float]]] = [[] for _ in fewer]

    def divergence(alpha: float) -> float:
        largest = 0.0
        for item, known in zip(fewer, seen, strict=True):
            guess = _extrapolated(known, alpha, budget.epsilon)
            at = replace(budget, alpha=alpha, epsilon=guess)
            value = rule.divergence(item, law, at, scale)
            if math.isfinite(alpha) and 0 < value < math.inf:
                known[:] = [*known[-1:], (alpha, value)]
            largest = max(largest, value)
        return largest

    shifts = [item for item in fewer if isinstance(item, ShiftBound)]
    if len(shifts) < len(fewer):
        return Calibration(scale, worst, divergence)

    def divergences(alphas: FloatArray) -> FloatArray:
        found: FloatArray = np.max(
            [
                divergences_at(item, law, alphas, scale, budget.n_releases)
                for item in shifts
            ],
            axis=0,
        )
        return found

    return Calibration(scale, worst, divergence, divergences)


def _fewer(witness: Any, steps: FloatArray) -> Any:
    """Return what is quick to evaluate at many orders, for the data on the grid."""
    if isinstance(witness, ShiftBound):
        # In this order, cells of the same data serve every budget.
        return witness.compressed(_PROFILE_CELLS).on_grid(steps)
    return witness.on_grid(steps).compressed(_PROFILE_CELLS)


def _extrapolated(
    known: list[tuple[float, float]], alpha: float, otherwise: float
) -> float:
    """Guess the divergence at an order from those at two others."""
    if len(known) < 2 or not math.isfinite(alpha) or known[0][0] == known[1][0]:
        return otherwise
    (order, before), (next_order, value) = known
    rise = math.log(value / before) / math.log(next_order / order)
    return value * math.pow(alpha / next_order, min(max(rise, 0.0), 3.0))


def _on_grid(scale: FloatArray) -> FloatArray:
    return np.array([scale_to_grid(b) if b > 0 else 0.0 for b in scale.tolist()])


def _nearest(scale: FloatArray, up: FloatArray) -> FloatArray:
    step = grid_steps(up)
    step[step == 0] = 1.0
    return np.rint(scale / step) * step
