"""From a validated sample to the scales of its columns: what fit computes."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import numpy as np

from skpuffer._parameters import Settings
from skpuffer._prior_models import (
    bounded_pair,
    empirical_pairs,
    group_text,
    pairs_of,
    population_pairs,
    refuse_unserved,
)
from skpuffer._validation import Sample
from skpuffer.accounting import Guarantee, label_text
from skpuffer.core import gaussian_model
from skpuffer.core.calibration import calibrate
from skpuffer.core.prior import Prior, pooled_std
from skpuffer.exceptions import (
    ExcessiveNoiseWarning,
    SkippedPairWarning,
    SmallGroupWarning,
    ZeroNoiseWarning,
)

# Noise this many times the spread of its column gets a warning.
_EXCESSIVE = 3.0
_FEW_ROWS = {
    "empirical": "the promise holds for the fitted prior, and so few rows say little "
    "about others",
    "population": "so few rows say little about the population, and the noise covers "
    "all that they leave open",
    "gaussian": "the promise holds for the fitted means and variances, and so few rows "
    "say little about others",
}
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
    prior_model : {"empirical", "population", "gaussian", "bounded"}
    column_weights : {"std", "range"}
        Used where the sample carries no weights of its own.

    Returns
    -------
    Fitted

    Raises
    ------
    ParameterError
        No secret pair occurs under any prior, or the prior model cannot serve the
        sample.
    CalibrationError, TransportPlanError
        No scale could be confirmed.
    """
    k = len(sample.names)
    refuse_unserved(sample, scope, prior_model)
    blocks = [list(range(k))] if scope == "joint" else [[j] for j in range(k)]
    scale, spread, worst = np.zeros(k), np.zeros(k), ["none"] * k
    for block in blocks:
        priors = sample.priors(block)
        skipped = _skipped(sample, priors)
        spread[block] = pooled_std([c for prior in priors for c in prior.conditionals])
        weights = _weights(sample, block, spread[block], prior_model, column_weights)
        if prior_model == "gaussian":
            moments, labels = pairs_of(priors)
            answer = gaussian_model.gaussian_scale(moments, settings.budget)
        else:
            if prior_model == "bounded":
                pairs, labels = bounded_pair(sample.ranges[block], weights)
            elif prior_model == "population":
                assert settings.confidence is not None
                error = (1 - settings.confidence) / len(blocks)
                limits = sample.ranges[block[0]]
                pairs, labels = population_pairs(
                    priors, weights, limits, settings, error
                )
            else:
                pairs, labels = empirical_pairs(priors, weights)
            if not weights.any():
                continue
            answer = calibrate(pairs, settings.law, settings.rule, settings.budget)
        scale[block] = answer.scale
        for column in np.flatnonzero(answer.scale):
            worst[block[column]] = labels[answer.worst]
    sizes = {
        group_text(prior.label, secret): conditional.n_rows
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
    if prior_model in ("bounded", "population"):
        return weights
    # Under the fitted prior a constant column moves nothing and needs no noise.
    return np.where(spread > 0, weights, 0.0)


def _skipped(
    sample: Sample, priors: list[Prior]
) -> tuple[tuple[Hashable, Hashable, Hashable], ...]:
    return tuple(
        (prior.label, first, second)
        for prior in priors
        for first, second in sample.pairs
        if first not in prior.secrets or second not in prior.secrets
    )


def make_guarantee(
    sample: Sample, settings: Settings, fitted: Fitted, *, scope: str, prior_model: str
) -> Guarantee:
    """State what the fitted scales promise."""
    ranges = None
    if np.isfinite(sample.ranges).all():
        ranges = tuple((low, high) for low, high in sample.ranges.tolist())
    rule, source = settings.rule.name, settings.rule.source
    if prior_model == "gaussian":
        rule, source = gaussian_model.NAME, gaussian_model.SOURCE
    return Guarantee(
        alpha=settings.budget.alpha,
        epsilon=settings.budget.epsilon,
        law=settings.law.name,
        columns=tuple(sample.names),
        scale=tuple(fitted.scale.tolist()),
        rule=rule,
        source=source,
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
        confidence=settings.confidence,
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
) -> None:
    """Warn of what a user should know before a release."""
    small = [
        f"{group} ({size} rows)"
        for group, size in fitted.group_sizes.items()
        if size < min_group_size
    ]
    if small and prior_model != "bounded":
        warnings.warn(
            f"fewer than min_group_size={min_group_size} rows for {', '.join(small)}: "
            f"{_FEW_ROWS[prior_model]}",
            SmallGroupWarning,
            stacklevel=4,
        )
    if fitted.skipped and prior_model != "bounded":
        shown = [
            group_text(prior, f"{label_text(first)} – {label_text(second)}")
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
        alike = "model" if prior_model == "gaussian" else "alike"
        reasons = [
            "constant" if not fitted.spread[sample.names.index(name)] else alike
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
        "model": "close enough for every secret pair under the fitted Gaussian model",
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
