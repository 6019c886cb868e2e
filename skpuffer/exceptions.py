"""Errors and warnings with names that a user can catch or filter."""

from skpuffer.core.calibration import CalibrationError
from skpuffer.core.law_checks import LawError
from skpuffer.core.plans import TransportPlanError

# Shown, and pickled, under the name that is public.
for _error in (CalibrationError, LawError, TransportPlanError):
    _error.__module__ = __name__
del _error

__all__ = [
    "AlteredScaleWarning",
    "CalibrationError",
    "CategoriesFromDataWarning",
    "DuplicateRowsWarning",
    "ExcessiveNoiseWarning",
    "LawError",
    "ParameterError",
    "ReproducibleNoiseWarning",
    "SkippedPairWarning",
    "SkpufferWarning",
    "SmallGroupWarning",
    "TransportPlanError",
    "UnavailableRuleError",
    "ZeroNoiseWarning",
]


class ParameterError(ValueError, TypeError):
    """A parameter has a value that no release can be made with."""


class UnavailableRuleError(ParameterError):
    """The calibration rule cannot serve such a release."""


class SkpufferWarning(UserWarning):
    """Base of every warning of this package."""


class ZeroNoiseWarning(SkpufferWarning):
    """Values are released unchanged, since the fitted prior needs no noise."""


class CategoriesFromDataWarning(SkpufferWarning):
    """Which categories there are was taken from the data, and is known of them."""


class SmallGroupWarning(SkpufferWarning):
    """A secret value has so few rows that its distribution is hardly known."""


class SkippedPairWarning(SkpufferWarning):
    """A secret pair has no guarantee under a prior in which it does not occur."""


class ExcessiveNoiseWarning(SkpufferWarning):
    """The noise drowns the column: little but noise is released."""


class ReproducibleNoiseWarning(SkpufferWarning):
    """Noise from a seed can be removed by anyone who knows or guesses the seed."""


class AlteredScaleWarning(SkpufferWarning):
    """The noise is less than fit found necessary: `scale_` was changed by hand."""


class DuplicateRowsWarning(SkpufferWarning):
    """Rows to be audited repeat others, and are no independent draws."""
