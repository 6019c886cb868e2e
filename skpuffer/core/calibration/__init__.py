"""Calibration rules by name, and the calibration of a whole release.

A new rule is one file here and one line below.
"""

from skpuffer.core.calibration._alpha_wasserstein import AlphaWasserstein
from skpuffer.core.calibration._calibrate import Calibration, calibrate
from skpuffer.core.calibration._closed_form import ClosedForm
from skpuffer.core.calibration._exact import Exact, MixtureWitness
from skpuffer.core.calibration._order import best_order
from skpuffer.core.calibration._protocol import (
    START_SHARE,
    BoundedPair,
    Budget,
    Calibrated,
    CalibrationRule,
    Pair,
)
from skpuffer.core.calibration._searched import NEARLY_MAXIMUM
from skpuffer.core.calibration._shift_rule import ShiftRule
from skpuffer.core.calibration._solve import CalibrationError, log_moment, solve_scale
from skpuffer.core.calibration._transport import Transport
from skpuffer.core.calibration._w_inf import WInf

RULES: dict[str, type[CalibrationRule]] = {
    rule.name: rule for rule in (WInf, AlphaWasserstein, ClosedForm, Transport, Exact)
}

__all__ = [
    "NEARLY_MAXIMUM",
    "RULES",
    "START_SHARE",
    "AlphaWasserstein",
    "BoundedPair",
    "Budget",
    "Calibrated",
    "Calibration",
    "CalibrationError",
    "CalibrationRule",
    "ClosedForm",
    "Exact",
    "MixtureWitness",
    "Pair",
    "ShiftRule",
    "Transport",
    "WInf",
    "best_order",
    "calibrate",
    "log_moment",
    "solve_scale",
]
