"""Constructor parameters, checked once at the start of fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpuffer._checks import (
    boolean,
    choice,
    column_position,
    integer,
    is_integer,
    number,
    refuse_class,
)
from skpuffer._prior_limits import refuse_parameters
from skpuffer._text import value_text
from skpuffer.core.calibration import (
    RULES,
    AlphaWasserstein,
    Budget,
    CalibrationRule,
)
from skpuffer.core.conversions import renyi_budget
from skpuffer.core.law_checks import check_stated
from skpuffer.core.laws import NoiseLaw, bears_a_taken_name, is_own, missing_members
from skpuffer.core.mixtures import MIXTURES
from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import ParameterError, UnavailableRuleError

PRIOR_MODELS = ("empirical", "population", "gaussian", "bounded")
SCOPES = ("joint", "column")
# Where the search for the best order starts; the pairs do not depend on it.
_FIRST_ORDER = 2.0


@dataclass(frozen=True)
class Settings:
    """The parameters that calibration works with.

    Attributes
    ----------
    law : NoiseLaw
    rule : CalibrationRule
    budget : Budget
        The Rényi pair in force.
    target : tuple of (epsilon, delta), or None
        The (ε, δ) promise asked for.
    chooses_order : bool
        Whether the order in `budget` is only a first one, to be replaced by the best.
    confidence : float or None
        Of a promise for the population; None for the other prior models.
    """

    law: NoiseLaw
    rule: CalibrationRule
    budget: Budget
    target: tuple[float, float] | None
    confidence: float | None = None
    chooses_order: bool = False


# What a guarantee calls the law of categories.
_NO_LAW = "categorical"


def check_law_given(law: Any, called: str) -> None:
    """Refuse what is no noise law, or bears the name of another.

    Rules look up by name what is proven of the laws of this package.

    Raises
    ------
    ParameterError
        Says what is missing.
    """
    if law is None:
        raise ParameterError(
            f"{called} is None, no noise law: give an instance, MyLaw()"
        )
    refuse_class(law, called)
    missing = missing_members(law)
    if missing:
        raise ParameterError(
            f"{called}={value_text(law)} is no noise law: it lacks {', '.join(missing)}; "
            "subclass skpuffer.laws.NoiseLaw, which says what they are"
        )
    if not (isinstance(law.name, str) and law.name.strip()):
        raise ParameterError(
            f"{called}.name={value_text(law.name)} must be a text that says what the "
            "noise is"
        )
    if bears_a_taken_name(law) or law.name.strip().casefold() == _NO_LAW:
        raise ParameterError(
            f"{called} is a {type(law).__name__} named {value_text(law.name)}, and what "
            "this package proves of noise of that name may not hold for it: give it "
            "another name"
        )


def check_parameters(law: NoiseLaw, params: Mapping[str, Any]) -> Settings:
    """Check every parameter that does not depend on the data.

    Raises
    ------
    ParameterError
        Names the parameter, the value and what is allowed.
    """
    auto = isinstance(params["alpha"], str) and params["alpha"] == "auto"
    if auto and params["delta"] is None:
        raise ParameterError(
            "alpha='auto' takes the order with the least noise for an (epsilon, delta) "
            "target: set delta as well"
        )
    alpha = number(
        "alpha", _FIRST_ORDER if auto else params["alpha"], above=1.0, infinite=True
    )
    if alpha > law.max_order:
        raise ParameterError(
            f"alpha={value_text(params['alpha'])} is out of reach of {law.name} noise, "
            "whose divergence is infinite there: choose a finite alpha, or Laplace noise "
            "(RenyiPufferfishLaplace, law='laplace')"
        )
    if is_own(law):
        check_stated(law, alpha)
    epsilon = number("epsilon", params["epsilon"], above=0.0)
    delta, target = params["delta"], None
    n_releases = integer("n_releases", params["n_releases"], least=1)
    if delta is not None:
        delta = number("delta", delta, above=0.0, below=1.0)
        target = (epsilon, delta)
        budget = renyi_budget(alpha, epsilon, delta)
        if not budget > 0 and not auto:
            raise ParameterError(
                f"epsilon={target[0]:g} with delta={delta:g} is out of reach at "
                f"alpha={alpha:g}: converting any Rényi bound costs "
                f"{epsilon - budget:.4g} at this order; raise alpha, epsilon or delta"
            )
        epsilon = budget
    prior_model = choice("prior_model", params["prior_model"], PRIOR_MODELS)
    refuse_parameters(prior_model, params["calibration"], law.name)
    rule = choice("calibration", params["calibration"], tuple(RULES))
    if RULES[rule].one_column and law.name not in MIXTURES:
        raise UnavailableRuleError(
            f"calibration={rule!r} has no certified divergence under {law.name} noise: "
            "use calibration='transport', or RenyiPufferfishLaplace or "
            "RenyiPufferfishGaussian"
        )
    if issubclass(RULES[rule], AlphaWasserstein) and law.homogeneity is None:
        raise UnavailableRuleError(
            f"calibration={rule!r} needs an exponent of its own, and {law.name} noise "
            "states none (its homogeneity is None): use calibration='transport'"
        )
    if RULES[rule].one_column and n_releases > 1 and law.name != "gaussian":
        raise UnavailableRuleError(
            f"calibration={rule!r} does not cover n_releases={n_releases} copies under "
            f"{law.name} noise: use calibration='transport' or RenyiPufferfishGaussian"
        )
    choice("scope", params["scope"], SCOPES)
    confidence = number("confidence", params["confidence"], above=0.0, below=1.0)
    integer("min_group_size", params["min_group_size"], least=1)
    boolean("secret_from_y", params["secret_from_y"])
    check_release(params, None)
    for name in ("clip_output", "prior_model"):
        needed = params[name] in (True, "bounded", "population")
        if needed and params["bounds"] is None:
            raise ParameterError(
                f"{name}={value_text(params[name])} needs bounds=(low, high), publicly "
                "known "
                "limits that do not come from the data"
            )
    if isinstance(params["column_weights"], str):
        choice("column_weights", params["column_weights"], ("std", "range"))
        if params["column_weights"] == "range" and params["bounds"] is None:
            raise ParameterError("column_weights='range' needs bounds=(low, high)")
    if params["n_jobs"] is not None and not (
        is_integer(params["n_jobs"]) and params["n_jobs"] != 0
    ):
        raise ParameterError(
            f"n_jobs={value_text(params['n_jobs'])} must be None or a non-zero integer"
        )
    integer("verbose", params["verbose"], least=0, booleans=True)
    return Settings(
        law,
        RULES[rule](),
        Budget(alpha, epsilon, n_releases),
        target,
        confidence if prior_model == "population" else None,
        auto,
    )


def check_release(params: Mapping[str, Any], ranges: FloatArray | None) -> int | None:
    """Check what transform reads, which may have been set after fit; return the seed.

    Parameters
    ----------
    params : mapping
    ranges : ndarray of shape (k, 2), or None
        The bounds that fit was given; None before they are known.

    Raises
    ------
    ParameterError
        The policy for bounds is unknown, the output is to be clipped and fit knew of no
        bounds, or the seed is neither None nor a non-negative integer.
    """
    choice("out_of_bounds", params["out_of_bounds"], ("clip", "error"))
    boolean("clip_output", params["clip_output"])
    if params["clip_output"] and ranges is not None and not np.isfinite(ranges).all():
        raise ParameterError(
            "clip_output=True was set after a fit without bounds for every column: set "
            "bounds=(low, high) and fit again"
        )
    return _seed(params["random_state"])


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if not is_integer(random_state):
        raise ParameterError(
            f"random_state={value_text(random_state)} must be None or an integer: a "
            "generator "
            "would be copied and pickled with its state, and repeat its noise"
        )
    return integer("random_state", random_state, least=0)


def check_bounds(bounds: Any, names: Sequence[str], *, all_columns: bool) -> FloatArray:
    """Return the declared ranges, shape (k, 2); infinite where none is declared.

    Parameters
    ----------
    bounds : None, (low, high), or mapping from column to (low, high)
    names : sequence of str
        The released columns.
    all_columns : bool
        Whether every column must have a range.

    Raises
    ------
    ParameterError
        A range is not two finite numbers in order, or a column is unknown or lacks
        its range.
    """
    ranges = np.tile([-np.inf, np.inf], (len(names), 1))
    if isinstance(bounds, Mapping):
        places = [
            column_position(name, names, "bounds", among=bounds) for name in bounds
        ]
        if len(set(places)) < len(places):
            raise ParameterError(f"bounds={value_text(bounds)} names a column twice")
        for place, (name, given) in zip(places, bounds.items(), strict=True):
            ranges[place] = _range(f"bounds[{name!r}]", given)
    elif bounds is not None:
        ranges[:] = _range("bounds", bounds)
    if all_columns and not np.isfinite(ranges).all():
        lacking = [
            name
            for name, row in zip(names, ranges, strict=True)
            if not np.isfinite(row).all()
        ]
        raise ParameterError(
            f"bounds={value_text(bounds)} declares no range for {', '.join(lacking)}, "
            "and this "
            "prior_model, column_weights='range' or clip_output needs one for each "
            "released column"
        )
    return ranges


def _range(name: str, given: Any) -> tuple[float, float]:
    try:
        low, high = (number(name, end) for end in given)
        ordered = math.isfinite(low) and math.isfinite(high) and low < high
    except (TypeError, ValueError):
        ordered = False
    if not ordered:
        raise ParameterError(
            f"{name}={value_text(given)} must be a pair of finite numbers (low, high), "
            "low < high"
        )
    return low, high


def check_column_weights(given: Any, names: Sequence[str]) -> FloatArray:
    """Return weights given as an array or a mapping, shape (k,).

    Raises
    ------
    ParameterError
        They are not one positive finite number a column.
    """
    if isinstance(given, Mapping):
        weights = np.full(len(names), np.nan)
        for name, value in given.items():
            weights[column_position(name, names, "column_weights", among=given)] = (
                number(f"column_weights[{name!r}]", value, above=0.0)
            )
        if np.isnan(weights).any():
            raise ParameterError(
                f"column_weights={value_text(given)} must give every released column a "
                "weight: "
                f"{', '.join(names)}"
            )
        return weights
    try:
        # Not the array of whoever gave it, who may write to it.
        weights = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if weights.shape != (len(names),) or not (
        np.isfinite(weights).all() and (weights > 0).all()
    ):
        raise ParameterError(
            f"column_weights={value_text(given)} must be 'std', 'range', or "
            f"{len(names)} positive "
            f"numbers, one a released column ({', '.join(names)})"
        )
    return weights
