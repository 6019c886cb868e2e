"""What a fit says of itself: its guarantee, and its warnings."""

from __future__ import annotations

import math
import warnings
from functools import cache
from importlib.metadata import version

import numpy as np

from skpuffer._fit import Fitted
from skpuffer._parameters import Settings
from skpuffer._report import ReleaseReport
from skpuffer._text import group_text, label_text, listed
from skpuffer._validation import Sample
from skpuffer.accounting import Guarantee
from skpuffer.core import gaussian_model
from skpuffer.core.calibration import AlphaWasserstein, Transport
from skpuffer.core.laws import is_own, law_parameters
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
# Of categories, where rules of couplings serve as means alone.
_CATEGORY_SOURCES = {
    "bounded": "quasi-convexity of the Rényi divergence, two rows being the worst case",
    "population": "joint convexity over a coupling of what Clopper and Pearson 1934 leave "
    "open, at all categories together",
}


def make_guarantee(
    sample: Sample,
    settings: Settings,
    fitted: Fitted,
    *,
    scope: str,
    prior_model: str,
    seeded: bool,
) -> Guarantee:
    """State what the fitted scales promise."""
    bounds = tuple(
        (low, high) if np.isfinite([low, high]).all() else None
        for low, high in sample.ranges.tolist()
    )
    several = scope == "joint" and len(sample.names) > 1
    rule = settings.rule.name
    source = settings.rule.theorem(
        fitted.budget, several_columns=several, law=settings.law
    )
    if prior_model == "gaussian":
        rule, source = gaussian_model.NAME, gaussian_model.SOURCE
    own = is_own(settings.law)
    if own:
        published = isinstance(settings.rule, AlphaWasserstein)
        finite = math.isfinite(fitted.budget.alpha)
        stated = "exponent" if published and finite else "shift divergence"
        if stated == "exponent" and settings.rule.name not in settings.law.sources:
            # What was published is about Laplace and Gaussian noise.
            source = f"{Transport.source}, in the manner of {source}"
        source += f", by the {stated} that this noise law states of itself"
    sets = sample.sets
    if any(one is not None for one in sets):
        source = _CATEGORY_SOURCES.get(prior_model, source)
    return Guarantee(
        alpha=fitted.budget.alpha,
        epsilon=fitted.budget.epsilon,
        law=settings.law.name if sample.is_number.any() else "categorical",
        power=None if own else getattr(settings.law, "power", None),
        law_parameters=tuple(
            (key, value)
            for key, value in law_parameters(settings.law)
            if own or key != "power"
        ),
        columns=tuple(sample.names),
        scale=tuple(fitted.scale.tolist()),
        rule=rule,
        source=source,
        secret=sample.secret.names,
        secret_values=sample.secret.labels,
        pairs=tuple(sample.pairs),
        prior_model=prior_model,
        priors=() if sample.prior is None else sample.prior.labels,
        weighted=sample.weight is not None,
        skipped=() if prior_model == "bounded" else fitted.skipped,
        bounds=bounds,
        scope=scope,
        n_releases=fitted.budget.n_releases,
        seeded=seeded,
        group_sizes=fitted.group_sizes,
        target=settings.target,
        confidence=settings.confidence,
        categories=tuple(None if one is None else one.labels for one in sets),
        metrics=tuple(None if one is None else one.metric for one in sets),
        categories_from_data=tuple(
            name
            for name, one in zip(sample.names, sets, strict=True)
            if one is not None and one.from_data
        ),
        unknown=tuple(
            "error" if one is None else one.stands_for_unknown for one in sets
        ),
        rounding=sample.rounding,
        versions=_versions(),
    )


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    return tuple((name, version(name)) for name in _PACKAGES)


def warn_about(
    fitted: Fitted, report: ReleaseReport, *, min_group_size: int, prior_model: str
) -> None:
    """Warn of what a user should know before a release."""
    small = [
        f"{group_text(prior, label)} ({size} row{'' if size == 1 else 's'})"
        for prior, label, size in fitted.group_sizes
        if size < min_group_size
    ]
    if small and prior_model != "bounded":
        _warn(
            f"fewer than min_group_size={min_group_size} rows for {listed(small)}: "
            f"{_FEW_ROWS[prior_model]}",
            SmallGroupWarning,
        )
    if fitted.skipped and prior_model != "bounded":
        shown = [
            group_text(prior, f"{label_text(first)} – {label_text(second)}")
            for prior, first, second in fitted.skipped
        ]
        _warn(
            f"no guarantee for pairs that do not occur under a prior: {listed(shown)}",
            SkippedPairWarning,
        )
    if fitted.unchanged:
        _warn(zero_noise_text(fitted.unchanged), ZeroNoiseWarning)
    loud = [
        f"{name!r} is {noise / spread:.3g} times its standard deviation ({noise:.4g} "
        f"against {spread:.4g})"
        for name, noise, spread in zip(
            report.columns, report.noise_std, report.column_std, strict=True
        )
        if spread > 0 and noise > _EXCESSIVE * spread
    ]
    if loud:
        _warn(
            f"the noise of column {'; of column '.join(loud)}: little but noise is "
            "released; a larger epsilon, a smaller alpha, tighter bounds or fewer "
            "columns would help",
            ExcessiveNoiseWarning,
        )
    if fitted.faint:
        shown = [f"{name!r} ({weight:.2g})" for name, weight in fitted.faint]
        _warn(
            f"the release hardly depends on {', '.join(shown)} (largest distance of two "
            "rows' distributions, of 1): a larger epsilon, a smaller alpha, fewer "
            "categories or fewer columns would help",
            ExcessiveNoiseWarning,
        )


def _warn(text: str, category: type[Warning]) -> None:
    # From here over warn_about, _fit and fit to whoever called fit.
    warnings.warn(text, category, stacklevel=5)


def zero_noise_text(unchanged: tuple[tuple[str, str], ...]) -> str:
    """Say which columns are released unchanged, and why."""
    why = {
        "constant": "constant in the fitted data, within its bounds if it has any",
        "alike": "the same for every secret pair in the fitted data",
        "model": "close enough for every secret pair under the fitted Gaussian model",
        "within": "within epsilon as it is for every secret pair in the fitted data",
    }
    shown = ", ".join(f"{name!r} ({why[reason]})" for name, reason in unchanged)
    return (
        f"released unchanged, without noise: {shown}. The fitted prior needs none there, "
        "but values that it does not contain are released unchanged too"
    )
