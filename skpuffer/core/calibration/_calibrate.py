"""From pairs to one scale per column, on the grid that is released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scales that satisfy a rule for every pair.

    Attributes
    ----------
    scale : ndarray of shape (k,)
        Each a multiple of its own grid step; zero where no noise is needed.
    worst : int
        Position of the pair that needs the most noise.
    """

    scale: FloatArray
    worst: int


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
    unit = float(units[worst])
    if unit == 0.0:
        return Calibration(np.zeros_like(weights), worst)
    witnesses = [answer.witness for answer in answers]
    for _ in range(_MAX_ROUNDS):
        up = _on_grid(unit * weights)
        # The nearest multiple is a little less noise; it is taken if it suffices.
        nearest = _nearest(unit * weights, up)
        for scale in (up,) if np.array_equal(nearest, up) else (nearest, up):
            if all(_holds(rule, item, law, budget, scale) for item in witnesses):
                return Calibration(scale, worst)
        steps = _steps(up)
        again = max(
            rule.unit_scale(item.on_grid(steps), law, budget, weights)
            for item in witnesses
        )
        unit = max(unit * (1 + 2**-30), again)
    raise CalibrationError("the condition could not be confirmed on the release grid")


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
