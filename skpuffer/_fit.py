"""From a validated sample to the scales of its columns: what fit computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skpuffer._budget import best_budget, search_effort
from skpuffer._parameters import Settings
from skpuffer._prior_limits import refuse_sample
from skpuffer._prior_models import (
    bounded_pair,
    bounds_means,
    category_shares,
    declared_widths,
    empirical_pairs,
    gaussian_pairs,
    population_pairs,
    population_row_pairs,
)
from skpuffer._validation import Sample
from skpuffer.core import gaussian_model
from skpuffer.core.calibration import (
    Budget,
    Calibration,
    calibrate,
)
from skpuffer.core.channels import ROW_RULES, Channel, mean_distance
from skpuffer.core.plans import USUAL_EFFORT, Effort
from skpuffer.core.prior import Prior, pooled_spread
from skpuffer.exceptions import (
    CalibrationError,
    TransportPlanError,
    UnavailableRuleError,
)
from skpuffer.profile import PrivacyProfile, profile_orders

# Makes pairs and their names; and what they depend on beside the sample.
_Making = tuple[Callable[[], Any], tuple[Any, ...]]

# A column's scale is in proportion to at least this part of its span.
_LEAST_SPREAD = 1e-9
# A release of categories that depends on them with no more than this weight.
_FAINT = 0.1
# Pairs of the shift rules that take as long as one of the exact rule.
_EXACT_WORK = 16


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit found.

    Attributes
    ----------
    budget : Budget
        The Rényi pair in force.
    scale, noise, spread : ndarray of shape (k,)
        Noise scale, standard deviation of the noise and of each column; for a column
        of categories θ, the mean distance that a row moves and that of two rows.
    worst_pair : tuple of str
        The pair that decides each column's scale.
    unchanged : tuple of (column, reason)
        Columns that need no noise: "constant", "alike" for every pair, or close
        enough under a "model".
    group_sizes : tuple of (prior, label, rows)
        Rows of each secret value (under each prior).
    skipped : tuple of (prior, label, label)
        Pairs that do not occur under a prior.
    profile : PrivacyProfile
        Bounds for the scales at every order; of columns released alone, the largest.
    faint : tuple of (column, weight)
        Columns of categories whose release hardly depends on them.
    """

    budget: Budget
    scale: np.ndarray
    noise: np.ndarray
    spread: np.ndarray
    worst_pair: tuple[str, ...]
    unchanged: tuple[tuple[str, str], ...]
    group_sizes: tuple[tuple[Hashable, Hashable, int], ...]
    skipped: tuple[tuple[Hashable, Hashable, Hashable], ...]
    profile: PrivacyProfile
    faint: tuple[tuple[str, float], ...]


def fit_scales(
    sample: Sample,
    settings: Settings,
    *,
    scope: str,
    prior_model: str,
    column_weights: str,
    effort: Effort = USUAL_EFFORT,
) -> Fitted:
    """Calibrate the release of a sample.

    Parameters
    ----------
    sample : Sample
    settings : Settings
    scope : {"joint", "column"}
    prior_model : {"empirical", "population", "gaussian", "bounded"}
    column_weights : {"std", "range"}
        Used where the sample carries no weights of its own.
    effort : Effort
        What the search for couplings of very many rows may cost.

    Returns
    -------
    Fitted

    Raises
    ------
    ParameterError
        No secret pair occurs under any prior, or the rule or the prior model cannot
        serve the sample.
    CalibrationError, TransportPlanError
        No scale could be confirmed.
    """
    k = len(sample.names)
    refuse_sample(
        sample.names,
        weighted=sample.weight is not None,
        rounded=bool(sample.rounding),
        scope=scope,
        prior_model=prior_model,
    )
    if settings.rule.one_column and scope == "joint" and k > 1:
        raise UnavailableRuleError(
            f"calibration={settings.rule.name!r} is for one column, and scope='joint' "
            f"releases {k} ({', '.join(sample.names)}): set scope='column', which keeps "
            "the promise for each column alone, or calibration='transport'"
        )
    blocks = [list(range(k))] if scope == "joint" else [[j] for j in range(k)]
    scale, spread, worst = np.zeros(k), np.zeros(k), ["none"] * k
    constant = np.zeros(k, dtype=bool)
    tasks = []
    for block in blocks:
        priors = sample.once(("priors", *block), partial(sample.priors, block))
        names = ", ".join(sample.names[j] for j in block)
        with _naming(names):
            std, span = sample.once(
                ("spread", *block),
                partial(pooled_spread, [c for p in priors for c in p.conditionals]),
            )
        spread[block], constant[block] = std, span == 0
        if prior_model == "empirical":
            weights = _weights(sample, block, std, span, column_weights)
            make, needs = _of_the_rows(sample, settings, block, priors, weights, effort)
        else:
            make, needs = _of_a_model(
                sample, settings, block, priors, len(blocks), prior_model
            )
        if effort.report is None:
            make = partial(sample.once, ("pairs", prior_model, *block, *needs), make)
        # A search that shows its bar is this fit's own.
        pairs, labels = make()
        tasks.append((block, names, pairs, labels))
    budget = settings.budget
    if settings.chooses_order:
        budget = best_budget([pairs for *_, pairs, _ in tasks], settings, prior_model)
    answers = []
    for block, names, pairs, labels in tasks:
        with _naming(names):
            if prior_model == "gaussian":
                answer = gaussian_model.gaussian_scale(pairs, budget)
            else:
                answer = calibrate(pairs, settings.law, settings.rule, budget)
        answers.append(answer)
        scale[block] = answer.scale
        for column in np.flatnonzero(answer.scale):
            worst[block[column]] = labels[answer.worst]
    # Which rows there are depends on no column: the last block's priors tell.
    sizes = tuple(
        (prior.label, secret, conditional.n_rows)
        for prior in priors
        for secret, conditional in zip(prior.secrets, prior.conditionals, strict=True)
    )
    close = "within" if settings.rule.name == "exact" else "alike"
    close = "model" if prior_model == "gaussian" else close
    unchanged = tuple(
        (name, "constant" if still else close)
        for name, b, still in zip(sample.names, scale, constant, strict=True)
        if b == 0
    )
    n_pairs = sum(len(pairs) for *_, pairs, _ in tasks)
    noise = settings.law.noise_std(np.where(sample.is_number, scale, 0.0))
    faint = []
    for column in np.flatnonzero(~sample.is_number).tolist():
        moved = _category_moves(sample, column, float(scale[column]))
        noise[column], spread[column], dependence = moved
        if dependence < _FAINT and not constant[column]:
            faint.append((sample.names[column], dependence))
    return Fitted(
        budget,
        scale,
        noise,
        spread,
        tuple(worst),
        unchanged,
        sizes,
        _skipped(sample, priors),
        _profile(answers, n_pairs, settings, budget, prior_model),
        tuple(faint),
    )


def _of_the_rows(
    sample: Sample,
    settings: Settings,
    block: list[int],
    priors: list[Prior],
    weights: np.ndarray,
    effort: Effort,
) -> _Making:
    """Return what makes the pairs of the fitted rows, and what they depend on."""
    spending = search_effort(effort, settings)
    distances = sample.distances(block)
    make = partial(empirical_pairs, priors, weights, distances, spending)
    return make, (weights.tobytes(), spending)


def _of_a_model(
    sample: Sample,
    settings: Settings,
    block: list[int],
    priors: list[Prior],
    n_blocks: int,
    prior_model: str,
) -> _Making:
    """Return what makes the pairs of another prior model, and what they depend on.

    The declared ranges and weights are those of the sample; blocks share the probability
    with which the bounds on a population may fail.
    """
    if prior_model == "gaussian":
        return partial(gaussian_pairs, priors), ()
    if prior_model == "bounded":
        return partial(bounded_pair, sample, block), ()
    error = (1 - settings.confidence) / n_blocks
    one = sample.sets[block[0]]
    if one is not None:
        return partial(population_row_pairs, priors, one.distances, error), (error,)
    for_means, limits = bounds_means(settings), sample.ranges[block[0]]
    make = partial(population_pairs, priors, limits, for_means, error)
    return make, (for_means, error)


def _category_moves(
    sample: Sample, column: int, theta: float
) -> tuple[float, float, float]:
    """Return how far a draw moves a row, how far apart rows are, and what a draw says.

    The first two are means of the metric over the fitted rows, the third is the largest
    total variation distance of two inputs.
    """
    distances = sample.sets[column].distances
    shares = sample.once(("shares", column), partial(category_shares, sample, column))
    channel = Channel.of(distances, theta)
    moved = (channel.probabilities * distances).sum(axis=1)
    return shares @ moved, shares @ distances @ shares, channel.dependence


def _profile(
    answers: list[Calibration],
    n_pairs: int,
    settings: Settings,
    budget: Budget,
    prior_model: str,
) -> PrivacyProfile:
    """Bound the divergence of the release at all orders, for all blocks."""
    limit = math.inf
    # Where nothing needs noise its law plays no part.
    finite = math.isinf(settings.law.max_order) or not any(
        a.scale.any() for a in answers
    )
    if finite and prior_model != "gaussian":
        limit = max(answer.divergence(math.inf) for answer in answers)
    # Quadratures take longer than sums over shifts.
    slow = settings.rule.one_column or isinstance(
        settings.rule, tuple(ROW_RULES.values())
    )
    orders = profile_orders(n_pairs * (_EXACT_WORK if slow else 1))
    orders = [order for order in orders if order <= settings.law.max_order]
    bounds = np.max([answer.at(orders) for answer in answers], axis=0).tolist()
    return PrivacyProfile.of(
        dict(zip(orders, bounds, strict=True)).__getitem__,
        orders,
        promised=(budget.alpha, budget.epsilon),
        limit=limit,
    )


@contextmanager
def _naming(names: str) -> Iterator[None]:
    """Say which columns an error of the calibration speaks of."""
    try:
        yield
    except (CalibrationError, TransportPlanError, ValueError) as error:
        raise type(error)(f"calibrating {names}: {error}") from error


def _weights(
    sample: Sample,
    block: list[int],
    std: np.ndarray,
    span: np.ndarray,
    column_weights: str,
) -> np.ndarray:
    """Return the units of the columns' scales under the fitted prior.

    A constant column moves nothing, needs no noise and has weight zero; no other
    has, however small its spread.
    """
    if len(block) == 1:
        return np.ones(1)
    if sample.column_weights is not None:
        weights = sample.column_weights[block]
    elif column_weights == "range":
        weights = declared_widths(sample, block)
    else:
        weights = np.maximum(std, _LEAST_SPREAD * span)
        for place, column in enumerate(block):
            one = sample.sets[column]
            if one is not None:
                weights[place] = mean_distance(one.distances)
    return np.where(span > 0, weights, 0.0)


def _skipped(
    sample: Sample, priors: list[Prior]
) -> tuple[tuple[Hashable, Hashable, Hashable], ...]:
    return tuple(
        (prior.label, first, second)
        for prior in priors
        for first, second in sample.pairs
        if first not in prior.secrets or second not in prior.secrets
    )
