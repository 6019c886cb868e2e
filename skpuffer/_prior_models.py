"""What each `prior_model` hands to calibration: pairs, and names for them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from skpuffer._parameters import Settings
from skpuffer._text import group_text, label_text
from skpuffer._validation import Sample
from skpuffer.core.bands import population_bound
from skpuffer.core.calibration import BoundedPair, Pair
from skpuffer.core.channels import RowPair, RowRange, WorstRow, population_rows
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.gaussian_model import GaussianPair
from skpuffer.core.plans import Effort
from skpuffer.core.prior import Conditional, Prior
from skpuffer.exceptions import ParameterError

# Of the error, what the bounds on means get where there are enough rows for them to
# gain more than the bands lose. Both depend on nothing but the sizes of the groups.
_SHARE_OF_MEANS = 0.2
_ROWS_FOR_MEANS = 100


def pairs_of(
    priors: list[Prior],
) -> tuple[list[tuple[Conditional, Conditional]], list[str]]:
    """Return the conditionals of each secret pair under each prior, and its name.

    Raises
    ------
    ParameterError
        There is none.
    """
    pairs, labels = [], []
    for prior in priors:
        for i, j in prior.pairs:
            pairs.append((prior.conditionals[i], prior.conditionals[j]))
            text = f"{label_text(prior.secrets[i])} – {label_text(prior.secrets[j])}"
            labels.append(group_text(prior.label, text))
    if not pairs:
        raise ParameterError(
            "no secret pair occurs under any prior: every value of the prior column has "
            "at most one value of the secret"
        )
    return pairs, labels


def empirical_pairs(
    priors: list[Prior],
    weights: np.ndarray,
    distances: tuple[np.ndarray | None, ...],
    effort: Effort,
) -> tuple[list[Pair] | list[RowPair], list[str]]:
    """Return the pairs of the fitted rows themselves, which share the time."""
    pairs, labels = pairs_of(priors)
    if effort.seconds is not None:
        effort = replace(effort, seconds=effort.seconds / len(pairs))
    if any(one is not None for one in distances):
        return [RowPair(*pair, weights, distances, effort) for pair in pairs], labels
    return [Pair(*pair, weights, effort) for pair in pairs], labels


def gaussian_pairs(priors: list[Prior]) -> tuple[list[GaussianPair], list[str]]:
    """Return the pairs of a model that knows nothing but their moments."""
    pairs, labels = pairs_of(priors)
    return [GaussianPair(*pair) for pair in pairs], labels


def bounds_means(settings: Settings) -> bool:
    """Whether bounds on means serve the rule: if it takes that of a convex function."""
    convex = settings.law.convex and settings.rule.name != "w_inf"
    return convex and math.isfinite(settings.budget.alpha)


def population_pairs(
    priors: list[Prior],
    limits: np.ndarray,
    for_means: bool,
    error: float,
) -> tuple[list[BoundedPair], list[str]]:
    """Return bounds that hold for all pairs of the population together.

    Parameters
    ----------
    priors : list of Prior
        Of one column.
    limits : ndarray of shape (2,)
        The declared range.
    for_means : bool
        Whether to bound means as well, where there are enough rows.
    error : float
        Probability with which any of the bounds may fail.
    """
    pairs, labels = pairs_of(priors)
    groups = len({id(conditional) for pair in pairs for conditional in pair})
    large = [
        for_means and min(first.n_rows, second.n_rows) >= _ROWS_FOR_MEANS
        for first, second in pairs
    ]
    of_means = error * _SHARE_OF_MEANS if any(large) else 0.0
    beta = (error - of_means) / groups
    bounds = [
        population_bound(
            first,
            second,
            low=float(limits[0]),
            high=float(limits[1]),
            beta_first=beta,
            beta_second=beta,
            beta_pair=of_means / sum(large) if enough else 0.0,
        )
        for (first, second), enough in zip(pairs, large, strict=True)
    ]
    return [BoundedPair(bound, np.ones(1)) for bound in bounds], labels


def population_row_pairs(
    priors: list[Prior], distances: np.ndarray, error: float
) -> tuple[list[RowPair], list[str]]:
    """Return pairs of bounds on the categories of the population, all together.

    Parameters
    ----------
    priors : list of Prior
        Of one column of categories.
    distances : ndarray of shape (K, K)
    error : float
        Probability with which any of the bounds may fail.
    """
    pairs, labels = pairs_of(priors)
    groups = {id(group): group for pair in pairs for group in pair}
    bounds = {
        key: population_rows(group, len(distances), error / len(groups))
        for key, group in groups.items()
    }
    weights, columns = np.ones(1), (distances,)
    rows = [
        RowPair(bounds[id(first)], bounds[id(second)], weights, columns)
        for first, second in pairs
    ]
    return rows, labels


def bounded_pair(
    sample: Sample, block: list[int]
) -> tuple[list[BoundedPair] | list[RowRange], list[str]]:
    """No prior on the ranges moves a row further than all ranges at once.

    The proportions of the scales are those given or of the ranges: nothing here may
    depend on the data, of which no prior is assumed.
    """
    span = declared_widths(sample, block)
    given, distances = sample.column_weights, sample.distances(block)
    weights = span if given is None else given[block]
    if any(one is not None for one in distances):
        if len(block) == 1:
            weights = np.ones(1)
        numeric = np.array([one is None for one in distances])
        worst = WorstRow(span[np.newaxis, numeric], distances)
        return [RowRange(worst, weights)], ["any"]
    bound = ShiftBound(span[np.newaxis, :], np.ones(1))
    return [BoundedPair(bound, weights)], ["any"]


def declared_widths(sample: Sample, block: list[int]) -> np.ndarray:
    """Return the widths of the declared ranges, rounded up, and largest distances."""
    ranges = sample.ranges[block]
    for place, column in enumerate(block):
        one = sample.sets[column]
        if one is not None:
            ranges[place] = 0.0, one.distances.max() or 1.0
    low, high = ranges.T
    exact = low + (high - low) == high
    widths: np.ndarray = np.where(exact, high - low, np.nextafter(high - low, np.inf))
    return widths


def category_shares(sample: Sample, column: int) -> np.ndarray:
    """Return how often each category of a column occurs in all rows together."""
    codes = sample.values[:, column].astype(np.intp)
    one = sample.sets[column]
    assert one is not None
    size = len(one.labels)
    mass = sample.weight
    if sample.counts is not None:
        mass = sample.counts if mass is None else mass * sample.counts
    counted = np.bincount(codes, mass, minlength=size)
    shares: np.ndarray = counted / counted.sum()
    return shares
