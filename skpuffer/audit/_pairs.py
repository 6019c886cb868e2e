"""The audit of one pair of samples: from rows to a bound, a ceiling and a verdict."""

from __future__ import annotations

import math
from functools import partial

from skpuffer.audit._claims import AuditSettings
from skpuffer.audit._folds import Step, audit_pair, largest_bound
from skpuffer.audit._kernel import KernelDivergence, measure
from skpuffer.audit._records import FoldResult, PairResult, verdict_for
from skpuffer.audit._samples import SamplePair


def audit_samples(
    pair: SamplePair,
    settings: AuditSettings,
    beta: float,
    step: Step = lambda: None,
) -> PairResult:
    """Test the claim on one pair of samples.

    Parameters
    ----------
    pair : SamplePair
    settings : AuditSettings
    beta : float
        Error of all bounds for this pair.
    step : callable
        Called after each witness was fitted on either half.

    Raises
    ------
    ValueError
        ``claim="kernel_renyi"`` with a kernel that exceeds 1.
    """
    sizes = len(pair.x), len(pair.y)
    result = partial(PairResult, labels=pair.labels, n_x=sizes[0], n_y=sizes[1])
    if pair.reason:
        return result(
            bound=math.nan,
            ceiling=math.nan,
            verdict=verdict_for(math.nan, math.nan, settings.epsilon),
            reason=pair.reason,
            confidence=1 - beta,
        )
    kernel = _divergence(pair, settings, beta)
    folds: tuple[FoldResult, ...] = ()
    if settings.kernel_claim:
        bound, ceiling = kernel.bound, kernel.ceiling
    else:
        folds = audit_pair(
            pair.x,
            pair.y,
            settings.witnesses,
            settings.target,
            beta,
            kernel=settings.kernel,
            seed=settings.seed,
            step=step,
        )
        bound = max(fold.lower(settings.target) for fold in folds)
        ceiling = largest_bound(*sizes, settings.target, beta)
    return result(
        bound=bound,
        ceiling=ceiling,
        verdict=verdict_for(bound, ceiling, settings.epsilon),
        reason=None,
        confidence=1 - beta,
        folds=folds,
        divergence=kernel.values,
        margin=kernel.margin,
    )


def _divergence(
    pair: SamplePair, settings: AuditSettings, beta: float
) -> KernelDivergence:
    try:
        return measure(
            pair.x,
            pair.y,
            kernel=settings.kernel,
            regs=settings.regs,
            alpha=settings.kernel_order,
            symmetric=settings.target.symmetric,
            beta=beta,
            seed=settings.seed,
            all_rows=settings.kernel_claim,
        )
    except ValueError:
        if settings.kernel_claim:
            raise
        # A kernel with k(x, x) above 1: a good witness all the same.
        unknown = (math.nan,) * len(settings.regs)
        return KernelDivergence(unknown, unknown, math.nan)
