"""What a prior model does not go with, and what to do instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skpuffer.exceptions import ParameterError


def refuse_parameters(prior_model: str, calibration: Any, law_name: str) -> None:
    """Refuse rules and laws that a prior model does not go with.

    Raises
    ------
    ParameterError
        Names the parameter and what to choose instead.
    """
    # By name: an exact rule may not be there to be chosen.
    if prior_model == "population" and calibration == "exact":
        raise ParameterError(
            "calibration='exact' is right for exactly the fitted prior and promises "
            "nothing for a population: choose 'transport'"
        )
    if prior_model == "gaussian" and law_name != "gaussian":
        raise ParameterError(
            f"prior_model='gaussian' has a closed form for Gaussian noise only, not for "
            f"{law_name} noise: use RenyiPufferfishGaussian"
        )
    if prior_model == "gaussian" and calibration != "transport":
        raise ParameterError(
            f"calibration={calibration!r} has no effect with prior_model='gaussian', "
            "whose divergence is known: leave it at 'transport'"
        )


def refuse_sample(
    names: Sequence[str],
    *,
    weighted: bool,
    rounded: bool,
    scope: str,
    prior_model: str,
) -> None:
    """Refuse what a prior model of one column does not cover.

    Raises
    ------
    ParameterError
        Several columns are to be released jointly, a population's sample is weighted,
        or values that are said to be Gaussian are rounded.
    """
    if prior_model not in ("population", "gaussian"):
        return
    if scope == "joint" and len(names) > 1:
        raise ParameterError(
            f"prior_model={prior_model!r} covers one column at a time and X has "
            f"{len(names)} ({', '.join(names)}): set scope='column' for a "
            "promise about each column alone, or release a single column"
        )
    if prior_model == "gaussian" and rounded:
        raise ParameterError(
            "prior_model='gaussian' is about values that are Gaussian, which rounded "
            "ones are not: count without a grid, or choose another prior_model"
        )
    if prior_model == "population" and weighted:
        raise ParameterError(
            "prior_model='population' takes no sample_weight: its confidence is over a "
            "draw of unweighted rows"
        )
