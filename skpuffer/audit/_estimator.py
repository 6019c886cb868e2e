"""Audit what a fitted estimator promises, by releasing rows and looking at them alone."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skpuffer._checks import boolean, integer, number, refuse_swapped
from skpuffer.audit._auditor import KernelRenyiAuditor, check_auditor
from skpuffer.audit._cases import CaseAudit, EstimatorAudit
from skpuffer.audit._promised import Case, promised_cases
from skpuffer.audit._records import NO_VIOLATION, TOO_FEW, joint_verdict
from skpuffer.audit._samples import SamplePair
from skpuffer.exceptions import (
    DuplicateRowsWarning,
    ParameterError,
    SkpufferWarning,
)


def audit_estimator(
    estimator: Any,
    X: Any = None,
    secret: Any = None,
    *,
    prior: Any = None,
    sample_weight: Any = None,
    held_out: bool = False,
    n_samples: int = 10_000,
    confidence: float = 0.95,
    auditor: KernelRenyiAuditor | None = None,
    random_state: int | None = None,
) -> EstimatorAudit:
    """Audit the guarantee of a fitted release from outside.

    For each prior and pair of secret values that the guarantee names, rows are drawn
    from the prior that it is about, each draw is released once, and the two samples of
    releases are held against the claim: (ε, δ) where that was asked for, otherwise the
    Rényi pair in force. What is drawn follows `prior_model`:

    * "empirical": fitted rows of the secret value, with replacement (by weight).
    * "gaussian": a Gaussian with their means and variances.
    * "bounded": all columns at their lower bounds against all at their upper ones. X is
      not needed.
    * "population": nothing can be drawn; give rows held out.

    With ``held_out=True`` the rows of X are taken as they are, each released once: they
    stand for the population that they come from.

    With ``scope="column"`` each column is looked at alone, as the guarantee says; with
    `n_releases` > 1 that many releases of each draw are looked at together.

    Parameters
    ----------
    estimator : fitted estimator
        With `guarantee_` and `transform`. It is left as it is: a copy releases. A
        seeded one (`random_state` an integer) is audited for whoever does not know the
        seed: within and between calls its noise is as good as independent.
    X : frame or array-like of shape (n, d), optional
        The rows of the fit again, or rows held out.
    secret, prior : array-like, optional
        Of each row, where they are no columns of X.
    sample_weight : array-like of shape (n,), optional
        As in fit.
    held_out : bool
    n_samples : int
        Draws for each secret value; without effect if `held_out`.
    confidence : float
        That no bound exceeds the truth, for all cases together.
    auditor : KernelRenyiAuditor, optional
        How to look; its claim, confidence and secret are set here.
    random_state : int, optional
        Seed of the draws and of the auditor; the noise is fresh all the same. None
        draws afresh.

    Returns
    -------
    EstimatorAudit

    Raises
    ------
    NotFittedError
        Before fit.
    ParameterError
        There is no guarantee, X is not what the guarantee is about, or a parameter is
        out of range.

    Notes
    -----
    Refuted on its own prior, the guarantee is wrong (or the confidence was bad luck):
    a bug in the release, or in the audit. Refuted on rows held out, an "empirical" or
    "gaussian" guarantee may well be right: it is the population that differs from the
    fitted rows, and the guarantee never spoke of it. A "population" guarantee is wrong
    then, or its sample was one of those that its own `confidence` leaves out.

    A small violation takes many rows: with 10,000 draws at ε = 1 what is found lies .1
    to .4 below the truth for Rényi claims, and .01 to .12 for pure ε, so that a scale a
    little too small passes. Nor do the usual witnesses see a fine structure: many
    distinct values under far too little noise pass, and a witness that looks at
    neighbours finds them (the guide's page on audits has one). `held_out_divergence`
    computes the divergence of the laws in place of looking for it.

    Examples
    --------
    >>> from skpuffer import RenyiPufferfishLaplace
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> noise = RenyiPufferfishLaplace(
    ...     alpha=4, epsilon=1, secret="sex", random_state=0
    ... ).fit(df)
    >>> audit_estimator(noise, df, n_samples=2000, random_state=0).verdict
    'no violation found'
    >>> noise.scale_ = noise.scale_ / 4
    >>> audit_estimator(noise, df, n_samples=2000, random_state=0).verdict
    'refuted'
    """
    refuse_swapped(estimator, "audit_estimator(estimator, X)")
    check_is_fitted(estimator)
    check_auditor(auditor)
    if isinstance(secret, KernelRenyiAuditor):
        raise ParameterError(
            "secret is a KernelRenyiAuditor, and holds the labels of rows: name the "
            "auditor, audit_estimator(estimator, X, auditor=...)"
        )
    guarantee = getattr(estimator, "guarantee_", None)
    if guarantee is None or not hasattr(estimator, "transform"):
        raise ParameterError(
            f"{type(estimator).__name__} has no guarantee_ and transform to audit: give "
            "a fitted mechanism, or audit the release itself (KernelRenyiAuditor)"
        )
    boolean("held_out", held_out)
    n_samples = integer("n_samples", n_samples, least=1)
    confidence = number("confidence", confidence, above=0.0, below=1.0)
    if random_state is not None:
        random_state = integer("random_state", random_state, least=0)
    rng = np.random.default_rng(random_state)
    drawn = list(
        promised_cases(
            estimator,
            X,
            secret,
            prior,
            sample_weight,
            held_out=held_out,
            n_samples=n_samples,
            rng=rng,
        )
    )
    names = guarantee.columns
    alone = guarantee.scope == "column"
    blocks = [[j] for j in range(len(names))] if alone else [list(range(len(names)))]
    alpha, epsilon, delta = _claim(guarantee)
    share = 1 - (1 - confidence) / max(1, len(drawn) * len(blocks))
    judge = clone(KernelRenyiAuditor() if auditor is None else auditor).set_params(
        alpha=alpha,
        epsilon=epsilon,
        delta=delta,
        confidence=share,
        symmetric=True,
        claim="auto",
        secret=None,
        random_state=random_state,
    )
    # The copy counts its calls: the estimator's own next release is as it would be.
    source = copy.deepcopy(estimator)
    cases = []
    for case in drawn:
        sides = [
            [_release(source, rows) for _ in range(guarantee.n_releases)]
            for rows in (case.first, case.second)
        ]
        for block in blocks:
            first, second = (
                np.hstack([one[:, block] for one in copies]) for copies in sides
            )
            columns = tuple(names[j] for j in block)
            cases.append(_look(judge, case, columns, first, second))
    return EstimatorAudit(
        *_summary(cases),
        confidence=confidence,
        alpha=alpha,
        epsilon=epsilon,
        delta=delta,
        held_out=bool(held_out),
        cases=tuple(cases),
        guarantee=guarantee,
    )


def _claim(guarantee: Any) -> tuple[float | None, float, float]:
    """Return the order (or None), ε and δ of what is promised."""
    if guarantee.target is not None:
        return None, *guarantee.target
    if math.isinf(guarantee.alpha):
        return None, guarantee.epsilon, 0.0
    return guarantee.alpha, guarantee.epsilon, 0.0


def _release(source: Any, rows: np.ndarray) -> np.ndarray:
    """Release rows, as a frame where the estimator knows its columns by name."""
    names = getattr(source, "feature_names_in_", None)
    given = rows if names is None else pd.DataFrame(rows, columns=names)
    with warnings.catch_warnings():
        # They are about a release to others, and this one stays here.
        warnings.simplefilter("ignore", SkpufferWarning)
        return np.asarray(source.transform(given), dtype=np.float64)


def _look(
    judge: KernelRenyiAuditor,
    case: Case,
    columns: tuple[str, ...],
    first: np.ndarray,
    second: np.ndarray,
) -> CaseAudit:
    """Audit the releases of one case."""

    def outcome(bound: float, verdict: str, reason: str | None) -> CaseAudit:
        sizes = len(first), len(second)
        return CaseAudit(
            case.prior, case.pair, columns, sizes, bound, verdict, reason, judge.alpha
        )

    reason = SamplePair(case.pair, first, second).reason
    if reason:
        return outcome(math.nan, TOO_FEW, reason)
    if (first == first[0]).all() and (second == first[0]).all():
        # One and the same value, which is no mistake here as it would be elsewhere.
        return outcome(0.0, NO_VIOLATION, None)
    found = clone(judge)
    with warnings.catch_warnings():
        # Draws are independent, and those that agree do so by chance.
        warnings.simplefilter("ignore", DuplicateRowsWarning)
        found.fit(first, second)
    return outcome(found.bound_, found.verdict_, found.reason_)


def _summary(cases: list[CaseAudit]) -> tuple[float, str, str | None]:
    """Return bound, verdict and reason of all cases together."""
    if not cases:
        return math.nan, TOO_FEW, "no pair of the guarantee occurs in X"
    bounds = [case.bound for case in cases if not math.isnan(case.bound)]
    verdict = joint_verdict([case.verdict for case in cases])
    assert verdict is not None
    if not bounds:
        return math.nan, verdict, cases[0].reason
    return max(bounds), verdict, None
