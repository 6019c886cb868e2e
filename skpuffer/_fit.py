"""From a validated sample to the scales of its columns: what fit computes."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import numpy as np

from skpuffer._parameters import Settings
from skpuffer._validation import Sample
from skpuffer.accounting import Guarantee, label_text
from skpuffer.core.calibration import BoundedPair, Pair, calibrate
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.prior import Prior, pooled_std
from skpuffer.exceptions import (
    ExcessiveNoiseWarning,
    ParameterError,
    SkippedPairWarning,
    SmallGroupWarning,
    UnavailableRuleError,
    ZeroNoiseWarning,
)

# Noise this many times the spread of its column gets a warning.
_EXCESSIVE = 3.0
_PACKAGES = ("skpuffer", "scikit-learn", "numpy", "scipy", "POT")


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit found.

    Attributes
    ----------
    scale, spread : ndarray of shape (k,)
        Noise scale and standard deviation of each column.
    worst_pair : tuple of str
        The pair that decides each column's scale.
    group_sizes : dict
        Rows of each secret value (under each prior).
    skipped : tuple of (prior, label, label)
        Pairs that do not occur under a prior.
    """

    scale: np.ndarray
    spread: np.ndarray
    worst_pair: tuple[str, ...]
    group_sizes: dict[str, int]
    skipped: tuple[tuple[Hashable, Hashable, Hashable], ...]


def fit_scales(
    sample: Sample,
    settings: Settings,
    *,
    scope: str,
    prior_model: str,
    column_weights: str,
) -> Fitted:
    """Calibrate the release of a sample.

    Parameters
    ----------
    sample : Sample
    settings : Settings
    scope : {"joint", "column"}
    prior_model : {"empirical", "bounded"}
    column_weights : {"std", "range"}
        Used where the sample carries no weights of its own.

    Returns
    -------
    Fitted

    Raises
    ------
    ParameterError
        No secret pair occurs under any prior, or the rule cannot serve the release.
    CalibrationError, TransportPlanError
        No scale could be confirmed.
    """
    k = len(sample.names)
    if settings.rule.one_column and scope == "joint" and k > 1:
        raise UnavailableRuleError(
            f"calibration={settings.rule.name!r} is for one column, and scope='joint' "
            f"releases {k} ({', '.join(sample.names)}): set scope='column', which keeps "
            "the promise for each column alone, or calibration='transport'"
        )
    blocks = [list(range(k))] if scope == "joint" else [[j] for j in range(k)]
    scale, spread, worst = np.zeros(k), np.zeros(k), ["none"] * k
    for block in blocks:
        priors = sample.priors(block)
        skipped = _skipped(sample, priors)
        spread[block] = pooled_std([c for prior in priors for c in prior.conditionals])
        weights = _weights(sample, block, spread[block], prior_model, column_weights)
        if prior_model == "bounded":
            pairs, labels = _bounded_pair(sample, block, weights)
        else:
            pairs, labels = _empirical_pairs(priors, weights)
        if not weights.any():
            continue
        answer = calibrate(pairs, settings.law, settings.rule, settings.budget)
        scale[block] = answer.scale
        for column in np.flatnonzero(answer.scale):
            worst[block[column]] = labels[answer.worst]
    sizes = {
        _text(prior.label, secret): conditional.n_rows
        for prior in priors
        for secret, conditional in zip(prior.secrets, prior.conditionals, strict=True)
    }
    return Fitted(scale, spread, tuple(worst), sizes, skipped)


def _weights(
    sample: Sample,
    block: list[int],
    spread: np.ndarray,
    prior_model: str,
    column_weights: str,
) -> np.ndarray:
    """Return the units of the columns' scales; zero for a constant column."""
    span = np.diff(sample.ranges[block], axis=1)[:, 0]
    if len(block) == 1:
        weights = np.ones(1)
    elif sample.column_weights is not None:
        weights = sample.column_weights[block]
    elif column_weights == "range":
        weights = span
    elif prior_model == "bounded":
        # Constant in the sample is not constant under every prior.
        return np.where(spread > 0, spread, span)
    else:
        weights = spread
    # Under the fitted prior a constant column moves nothing and needs no noise.
    return weights if prior_model == "bounded" else np.where(spread > 0, weights, 0.0)


def _empirical_pairs(
    priors: list[Prior], weights: np.ndarray
) -> tuple[list[Pair], list[str]]:
    pairs, labels = [], []
    for prior in priors:
        for i, j in prior.pairs:
            first, second = prior.conditionals[i], prior.conditionals[j]
            pairs.append(Pair(first, second, weights))
            text = f"{label_text(prior.secrets[i])} – {label_text(prior.secrets[j])}"
            labels.append(_text(prior.label, text))
    if not pairs:
        raise ParameterError(
            "no secret pair occurs under any prior: every value of the prior column has "
            "at most one value of the secret"
        )
    return pairs, labels


def _bounded_pair(
    sample: Sample, block: list[int], weights: np.ndarray
) -> tuple[list[BoundedPair], list[str]]:
    """No prior on the ranges moves a row further than all ranges at once."""
    low, high = sample.ranges[block].T
    span = np.where(
        low + (high - low) == high, high - low, np.nextafter(high - low, np.inf)
    )
    bound = ShiftBound(span[np.newaxis, :], np.ones(1))
    return [BoundedPair(bound, weights)], ["any"]


def _skipped(
    sample: Sample, priors: list[Prior]
) -> tuple[tuple[Hashable, Hashable, Hashable], ...]:
    return tuple(
        (prior.label, first, second)
        for prior in priors
        for first, second in sample.pairs
        if first not in prior.secrets or second not in prior.secrets
    )


def _text(prior: Hashable, secret: Hashable) -> str:
    shown = label_text(secret)
    return shown if prior is None else f"{label_text(prior)}: {shown}"


def make_guarantee(
    sample: Sample, settings: Settings, fitted: Fitted, *, scope: str, prior_model: str
) -> Guarantee:
    """State what the fitted scales promise."""
    ranges = None
    if np.isfinite(sample.ranges).all():
        ranges = tuple((low, high) for low, high in sample.ranges.tolist())
    return Guarantee(
        alpha=settings.budget.alpha,
        epsilon=settings.budget.epsilon,
        law=settings.law.name,
        columns=tuple(sample.names),
        scale=tuple(fitted.scale.tolist()),
        rule=settings.rule.name,
        source=settings.rule.source,
        secret=sample.secret.names,
        pairs=tuple(sample.pairs),
        prior_model=prior_model,
        priors=() if sample.prior is None else sample.prior.labels,
        skipped=() if prior_model == "bounded" else fitted.skipped,
        bounds=ranges,
        scope=scope,
        n_releases=settings.budget.n_releases,
        group_sizes=fitted.group_sizes,
        target=settings.target,
        versions=dict(_versions()),
    )


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return tuple((name, version(name)) for name in _PACKAGES)


def warn_about(
    sample: Sample,
    fitted: Fitted,
    noise_std: np.ndarray,
    *,
    min_group_size: int,
    prior_model: str,
    exact: bool,
) -> None:
    """Warn of what a user should know before a release."""
    small = [
        f"{group} ({size} rows)"
        for group, size in fitted.group_sizes.items()
        if size < min_group_size
    ]
    if small and prior_model == "empirical":
        warnings.warn(
            f"fewer than min_group_size={min_group_size} rows for {', '.join(small)}: "
            "the promise holds for the fitted prior, and so few rows say little about "
            "others",
            SmallGroupWarning,
            stacklevel=4,
        )
    if fitted.skipped and prior_model == "empirical":
        shown = [
            _text(prior, f"{label_text(first)} – {label_text(second)}")
            for prior, first, second in fitted.skipped
        ]
        warnings.warn(
            f"no guarantee for pairs that do not occur under a prior: {', '.join(shown)}",
            SkippedPairWarning,
            stacklevel=4,
        )
    still = [
        name
        for name, scale in zip(sample.names, fitted.scale, strict=True)
        if not scale
    ]
    if still:
        close = "within" if exact else "alike"
        reasons = [
            "constant" if not fitted.spread[sample.names.index(name)] else close
            for name in still
        ]
        warnings.warn(zero_noise_text(still, reasons), ZeroNoiseWarning, stacklevel=4)
    for name, noise, spread in zip(sample.names, noise_std, fitted.spread, strict=True):
        if spread > 0 and noise > _EXCESSIVE * spread:
            warnings.warn(
                f"the noise of column {name!r} is {noise / spread:.3g} times its "
                f"standard deviation ({noise:.4g} against {spread:.4g}): little but "
                "noise is released; a larger epsilon, a smaller alpha, bounds or fewer "
                "columns would help",
                ExcessiveNoiseWarning,
                stacklevel=4,
            )


def zero_noise_text(names: list[str], reasons: list[str] | None = None) -> str:
    """Say that columns are released unchanged, and why."""
    why = {
        "constant": "constant in the fitted data",
        "alike": "the same for every secret pair in the fitted data",
        "within": "within epsilon as it is for every secret pair in the fitted data",
    }
    shown = [repr(name) for name in names]
    if reasons is not None:
        shown = [
            f"{name} ({why[reason]})"
            for name, reason in zip(shown, reasons, strict=True)
        ]
    return (
        f"released unchanged, without noise: {', '.join(shown)}. The fitted prior needs "
        "none there, but values that it does not contain are released unchanged too"
    )
