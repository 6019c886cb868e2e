"""A scorer that prefers the release that says less about the secret."""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import UNUSED

from skpuffer._text import value_text
from skpuffer._validation import take_columns
from skpuffer.audit._auditor import KernelRenyiAuditor, check_auditor
from skpuffer.exceptions import DuplicateRowsWarning, ParameterError


def make_audit_scorer(
    auditor: KernelRenyiAuditor | None = None,
    *,
    secret: Any = None,
    step: str | None = None,
) -> AuditScorer:
    """Make a scorer of releases for `cross_validate` and `GridSearchCV`.

    The score is *minus* the lower bound on ε that an audit of the released validation
    rows proves, so that a search prefers less leakage; it is never above 0. The secret
    reaches the scorer in one of two ways: as a column of X (`secret` here), or as
    metadata, with scikit-learn's metadata routing enabled and
    ``make_audit_scorer(...).set_score_request(secret=True)``.

    Parameters
    ----------
    auditor : KernelRenyiAuditor, optional
        How to audit: its claim says which ε is bounded. Its own `secret` is not used.
    secret : str, int or list of them, optional
        Column of X with the secret: names for a frame, positions for an array.
    step : str, optional
        In a Pipeline, the step whose output is the release. By default that of the
        last step, or of the one before it where the last is a classifier or regressor.

    Returns
    -------
    AuditScorer
        A callable ``(estimator, X, y=None, *, secret=None)``.

    Notes
    -----
    A fold has few rows, and a bound on few rows is low for leaky releases too: compare
    candidates, and judge the chosen one by an audit of its own (`audit_estimator`).
    Choosing among many candidates favours those whose bound is low by luck.

    Each score releases the validation rows once, beside the release that the other
    scores predict from.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.pipeline import make_pipeline
    >>> from skpuffer import RenyiPufferfishLaplace
    >>> rng = np.random.default_rng(0)
    >>> sex = np.arange(600) % 2
    >>> X = np.column_stack([rng.integers(0, 9, 600) + 3 * sex, sex]).astype(float)
    >>> model = make_pipeline(RenyiPufferfishLaplace(secret=1), LinearRegression())
    >>> scores = cross_validate(
    ...     model, X, X[:, 0], cv=2,
    ...     scoring={"utility": "r2", "secrecy": make_audit_scorer(secret=1)},
    ... )
    >>> bool((scores["test_secrecy"] <= 0).all())
    True
    """
    check_auditor(auditor)
    return AuditScorer(auditor, secret=secret, step=step)


class AuditScorer(BaseEstimator):
    """Minus the bound of an audit; made by `make_audit_scorer`.

    Parameters
    ----------
    auditor, secret, step
        As in `make_audit_scorer`.
    """

    # An argument of `score`, and no metadata.
    __metadata_request__score: ClassVar[dict[str, str]] = {"estimator": UNUSED}

    def __init__(
        self,
        auditor: KernelRenyiAuditor | None = None,
        *,
        secret: Any = None,
        step: str | None = None,
    ) -> None:
        self.auditor = auditor
        self.secret = secret
        self.step = step

    def __call__(
        self, estimator: Any, X: Any, y: Any = None, *, secret: Any = None
    ) -> float:
        """Return minus the bound; see `score`."""
        return self.score(estimator, X, y, secret=secret)

    def score(
        self, estimator: Any, X: Any, y: Any = None, *, secret: Any = None
    ) -> float:
        """Release rows and return minus the bound that their audit proves.

        Parameters
        ----------
        estimator : fitted estimator
        X : frame or array-like of shape (n, d)
            As the estimator's `transform` takes them.
        y : ignored
        secret : array-like of shape (n,), optional
            The secret of each row, where it is no column of X.

        Returns
        -------
        float
            At most 0; NaN, with an `UndefinedMetricWarning` that says why, where no
            bound could be computed.

        Raises
        ------
        ParameterError
            The secret is given twice or not at all, or there is no release to audit.
        """
        if (secret is None) == (self.secret is None):
            raise ParameterError(
                "the audit scorer has no secret: name its column "
                "(make_audit_scorer(secret='sex')), or enable metadata routing and "
                "set_score_request(secret=True)"
                if secret is None
                else "the audit scorer is given the secret twice, as a column and as "
                "metadata: keep one"
            )
        labels = secret if secret is not None else secret_of(X, self.secret)
        judge = KernelRenyiAuditor() if self.auditor is None else self.auditor
        released = release_of(estimator, X, self.step)
        judge = clone(judge).set_params(secret=None)
        with warnings.catch_warnings():
            # Each row is released once: values that agree do so by chance.
            warnings.simplefilter("ignore", DuplicateRowsWarning)
            judge.fit(released, secret=labels)
        if math.isnan(judge.bound_):
            warnings.warn(
                f"the audit score is NaN: {judge.reason_}",
                UndefinedMetricWarning,
                stacklevel=2,
            )
            return math.nan
        return min(0.0, -float(judge.bound_))


def secret_of(X: Any, spec: Any) -> Any:
    """Return the labels in one column or several."""
    names, columns, _ = take_columns(X, spec, "secret")
    if len(columns) == 1:
        return columns[0]
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def release_of(estimator: Any, X: Any, step: str | None) -> Any:
    """Transform rows by a fitted estimator, or by the first steps of a pipeline.

    Raises
    ------
    ParameterError
        There is no such step, or nothing that transforms.
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    names = list(getattr(estimator, "named_steps", {}))
    if step is not None:
        if step not in names:
            raise ParameterError(
                f"step={value_text(step)} is not a step of {type(estimator).__name__}"
                + (f"; its steps are {', '.join(names)}" if names else "")
            )
        estimator = estimator[: names.index(step) + 1]
    elif names and not hasattr(estimator, "transform"):
        estimator = estimator[:-1] if len(names) > 1 else None
    if not hasattr(estimator, "transform"):
        raise ParameterError(
            "the audit scorer needs a transformer, or a pipeline with one before its "
            "last step: there is no release to audit"
        )
    return estimator.transform(X)
