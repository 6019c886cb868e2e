"""KernelRenyiAuditor: what samples of a release refute, at a level that holds."""

from __future__ import annotations

import math
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from skpuffer._progress import progress, stepwise
from skpuffer._text import value_text
from skpuffer.audit._claims import check_settings, read_target
from skpuffer.audit._pairs import audit_samples
from skpuffer.audit._records import (
    AuditReport,
    FoldResult,
    PairResult,
    joint_verdict,
)
from skpuffer.audit._samples import read_pairs
from skpuffer.exceptions import ParameterError


class KernelRenyiAuditor(BaseEstimator):
    """Bound the divergence of two distributions from below, by samples alone.

    Part of the rows teaches events that tell the samples apart; other rows are counted
    in them, and exact binomial tests turn the counts into a bound. What was learned
    decides how large the bound is, never whether it holds: with probability
    `confidence` over the draw of the samples, every bound of a fit is below the truth,
    in finite samples and in any dimension. That needs independent rows of fixed
    distributions. **A larger bound means a leakier release.** "No violation found"
    means just that.

    Parameters
    ----------
    epsilon : float, optional
        The claim, in nats, ≥ 0; None to measure only, without a verdict.
    delta : float, default=0.0
        In [0, 1): the claim is P(A) ≤ e^ε Q(A) + δ for every event A.
    alpha : float, optional
        Order in (1, ∞]: the claim is a Rényi divergence of at most ε instead.
    confidence : float, default=0.95
        Of all bounds of a fit, over all pairs: each of m pairs gets an m-th of the
        error.
    symmetric : bool, default=True
        The claim is made in both directions: of X against Y and of Y against X.
    metric : str or callable, default="rbf"
        Kernel of the kernel witnesses, as in
        `sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float or "median", default="median"
        Its width. "median" gives the columns unit variance first. None is
        scikit-learn's default.
    reg : float or sequence of float, default=(1e-3, 1e-2, 1e-1)
        λ of the kernel witnesses and of the kernel divergence.
    scorers : None, or list of names, functions and classifiers, optional
        Witnesses. None: "kernel", "linear" (logistic regression) and "quadratic"
        (Gaussians with covariances of their own). Besides these names, unfitted
        classifiers of scikit-learn and functions ``scorer(X, Y)`` that return a
        function from rows to one number each, larger for rows like those of X. They
        see rows as float64 arrays, and the score of a row must depend on that row
        alone, not on those beside it: otherwise the level is void. (Some rows of each
        batch are scored again apart, and a difference is refused.) Few are better than
        many.
    n_components : int, default=128
        Landmarks of the kernel's Nyström features.
    secret : str, int or list of them, optional
        Column or columns of X with the secret, for ``fit(X)``; it is not looked at
        otherwise.
    secret_pairs : "all" or list of (value, value), default="all"
        Pairs of secret values to tell apart.
    claim : {"auto", "kernel_renyi"}, default="auto"
        "kernel_renyi": the regularised kernel Rényi divergence of order `alpha` ≥ 2 is
        at most ε at every `reg` [1]_, tested by its plug-in estimate less a margin.
    random_state : int, optional
        Seed of how rows are cut. None is a fixed seed: an audit repeats. Trying many
        seeds and keeping the largest bound voids the level.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    bound_ : float
        What the quantity of the claim (ε at δ, or the divergence) is at least, the
        largest over pairs, in nats; 0 where nothing is refuted, nan where nothing
        could be computed. Under ``claim="kernel_renyi"`` it may be negative, as the
        regularised divergence may, and is −∞ where nothing is known.
    verdict_ : {"refuted", "no violation found", "too few samples"} or None
        "too few samples" where even an event that held for all counted rows of one
        sample and none of the other would not have refuted the claim, for some pair.
        None without a claim.
    reason_ : str or None
        Why `bound_` is nan.
    pairs_ : tuple of PairResult
        Bound, verdict, events and counts of each pair.
    event_ : FoldResult or None
        The event with the largest bound.
    counts_ : tuple of int, or None
        Its counts: (hits_x, n_x, hits_y, n_y).
    divergence_, margin_ : ndarray of shape (n_reg,)
        Plug-in kernel Rényi divergence of that pair (order `alpha`, or 2) on at most
        20,000 rows of either sample (under ``claim="kernel_renyi"`` on all that chose
        no kernel), and how far above the truth it may lie. A diagnostic, biased
        upwards, and part of the verdict under ``claim="kernel_renyi"`` alone.
    report_ : AuditReport
        All of it as a table and a sentence.
    n_features_in_ : int
        Columns looked at.

    Notes
    -----
    Either half of the rows teaches the event that is counted on the other, each with
    half of the error, and every bound is the larger of two. The event, and the shape of
    the region of probabilities that its counts leave open, are those with the largest
    bound to be expected for the claim. At other δ and orders the bounds hold as well and
    are less sharp, at a much larger δ often 0: fit at the δ of interest. For orders up
    to 3 and 10,000 rows of either sample, half of the error goes to means of a learned
    density ratio, which say more of a Rényi divergence than any event.

    References
    ----------
    .. [1] Domingo-Enrich, Mroueh: Auditing differential privacy in high dimensions with
       the kernel quantum Rényi divergence. 2022.

    Examples
    --------
    Laplace noise on values 1 apart keeps ε = 1, and not ε = ½:

    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.laplace(size=(2, 2000, 1)) + np.array([0, 1])[:, None, None]
    >>> audit = KernelRenyiAuditor(epsilon=0.5).fit(X, Y)
    >>> audit.verdict_, 0.7 < audit.bound_ < 1
    ('refuted', True)
    >>> KernelRenyiAuditor(epsilon=1.0).fit(X, Y).verdict_
    'no violation found'

    One fit answers every δ and order:

    >>> bounds = audit.epsilon_lower(delta=[0.0, 0.1, 0.9])
    >>> bool(bounds[0] == audit.bound_ > bounds[1] > bounds[2] == 0)
    True
    >>> audit.epsilon_lower(alpha=2.0) < audit.epsilon_lower(alpha=20.0) < 1
    True

    Few rows cannot refute a large ε:

    >>> KernelRenyiAuditor(epsilon=5.0).fit(X[:60], Y[:60]).verdict_
    'too few samples'
    """

    bound_: float
    verdict_: str | None
    reason_: str | None
    pairs_: tuple[PairResult, ...]
    event_: FoldResult | None
    counts_: tuple[int, int, int, int] | None
    divergence_: np.ndarray
    margin_: np.ndarray
    report_: AuditReport
    n_features_in_: int

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        alpha: float | None = None,
        confidence: float = 0.95,
        symmetric: bool = True,
        metric: Any = "rbf",
        gamma: Any = "median",
        reg: Any = (1e-3, 1e-2, 1e-1),
        scorers: Any = None,
        n_components: int = 128,
        secret: Any = None,
        secret_pairs: Any = "all",
        claim: str = "auto",
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.confidence = confidence
        self.symmetric = symmetric
        self.metric = metric
        self.gamma = gamma
        self.reg = reg
        self.scorers = scorers
        self.n_components = n_components
        self.secret = secret
        self.secret_pairs = secret_pairs
        self.claim = claim
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, Y: Any = None, *, secret: Any = None) -> Self:
        """Audit two samples, or one sample by the secret of its rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_x, d)
            Rows of one distribution; or released rows of every secret value.
        Y : frame or array-like of shape (n_y, d), optional
            Rows of another distribution, drawn independently.
        secret : array-like of shape (n_x,), optional
            The secret of each row of X, where there is no Y.

        Returns
        -------
        self
            It keeps counts and thresholds, and no rows.

        Raises
        ------
        ParameterError
            A parameter is out of range, or there are neither two samples nor a secret.
        ValueError, TypeError
            Rows are missing, not numeric, fewer than 20 or the same in both samples,
            or the columns differ.
        """
        settings = check_settings(self.get_params(deep=False))
        pairs = read_pairs(
            X, Y, secret, column=self.secret, secret_pairs=self.secret_pairs
        )
        audited = [pair for pair in pairs if not pair.reason]
        # Bonferroni: the bounds of all pairs hold at once. Their number depends on the
        # sizes of the samples alone.
        beta = (1 - settings.confidence) / max(1, len(audited))
        steps = 2 * len(settings.witnesses) * len(audited)
        with progress("audit", "witness", shown=self.verbose) as report:
            step = stepwise(report, steps)
            results = tuple(audit_samples(pair, settings, beta, step) for pair in pairs)
        known = [result for result in results if not math.isnan(result.bound)]
        worst = max(known, key=lambda r: r.bound, default=results[0])
        self.bound_ = worst.bound
        self.reason_ = worst.reason
        self.verdict_ = joint_verdict([result.verdict for result in results])
        self.pairs_ = results
        self.event_ = worst.best_fold
        self.counts_ = None if self.event_ is None else self.event_.counts
        self.divergence_ = np.array(worst.divergence)
        self.margin_ = np.array(worst.margin)
        self.report_ = AuditReport(
            claim=settings.claim,
            epsilon=settings.epsilon,
            bound=self.bound_,
            verdict=self.verdict_,
            reason=self.reason_,
            confidence=settings.confidence,
            pairs=results,
        )
        self.n_features_in_ = pairs[0].x.shape[1]
        return self

    @overload
    def epsilon_lower(self, *, delta: float, alpha: None = None) -> float: ...
    @overload
    def epsilon_lower(self, *, delta: None = None, alpha: float) -> float: ...
    @overload
    def epsilon_lower(
        self, *, delta: ArrayLike | None = None, alpha: ArrayLike | None = None
    ) -> Any: ...

    def epsilon_lower(
        self, *, delta: ArrayLike | None = None, alpha: ArrayLike | None = None
    ) -> Any:
        """Return lower bounds for any δ, or of the Rényi divergence of any order.

        All of them, `bound_` included, hold together with probability `confidence`.

        Parameters
        ----------
        delta : float or array-like, optional
            In [0, 1): what ε is at least at this δ.
        alpha : float or array-like, optional
            In (1, ∞]: what the Rényi divergence of this order is at least.

        Returns
        -------
        float or ndarray
            Of the shape that was given; the largest over pairs.

        Raises
        ------
        NotFittedError
            Before fit.
        ParameterError
            Both or neither are given, a value is out of range, or nothing was counted
            (``claim="kernel_renyi"``).
        """
        check_is_fitted(self)
        if (delta is None) == (alpha is None):
            raise ParameterError(
                "epsilon_lower takes either delta or alpha, got "
                f"delta={value_text(delta)} and "
                f"alpha={value_text(alpha)}"
            )
        if all(not pair.folds and not pair.reason for pair in self.pairs_):
            raise ParameterError(
                "claim='kernel_renyi' counts no events: fit with claim='auto'"
            )
        several = delta if alpha is None else alpha
        given = np.asarray(several)
        among = several if given.ndim else ()
        found = np.array(
            [
                self._lower(value, None, among)
                if alpha is None
                else self._lower(0.0, value, among)
                for value in given.ravel().tolist()
            ]
        )
        return found.reshape(given.shape) if given.ndim else float(found[0])

    def _lower(self, delta: Any, alpha: Any, among: Any) -> float:
        target = read_target(delta, alpha, self.symmetric, among)
        bounds = [pair.lower(target) for pair in self.pairs_]
        known = [bound for bound in bounds if not math.isnan(bound)]
        return max(known, default=math.nan)

    def __call__(self, X: Any, Y: Any = None, *, secret: Any = None) -> float:
        """Return the bound of a fresh fit: larger is leakier."""
        return float(clone(self).fit(X, Y, secret=secret).bound_)

    def score(self, X: Any, Y: Any = None, *, secret: Any = None) -> float:
        """Return minus the bound of a fresh fit, so that a search prefers less leakage.

        At most 0, since a bound below 0 is no merit; nan where nothing could be computed.
        """
        return -float(np.maximum(self(X, Y, secret=secret), 0.0))


def check_auditor(auditor: Any) -> None:
    """Refuse what is given for an auditor and is none; None stands for the default.

    Raises
    ------
    ParameterError
        Says what it is.
    """
    fits = hasattr(auditor, "fit") and hasattr(auditor, "set_params")
    if auditor is not None and (isinstance(auditor, type) or not fits):
        raise ParameterError(
            f"auditor={value_text(auditor)} must be an auditor that is not fitted, such "
            "as KernelRenyiAuditor(), or None"
        )
