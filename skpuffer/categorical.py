"""Release of categories: randomised response over a metric, calibrated by transport."""

from __future__ import annotations

from typing import Any

from skpuffer._checks import choice
from skpuffer._row_release import RowRelease
from skpuffer._text import value_text
from skpuffer.exceptions import UnavailableRuleError


class RenyiPufferfishCategorical(RowRelease):
    """Release columns of categories by random draws calibrated to a secret column.

    A category x is released as y of the same set with probability P(y | x) ∝
    exp(−d(x, y) / θ); with the discrete metric this is randomised response. The
    probabilities are whole multiples of 2^−62, fixed in `fit`: what is calibrated is
    what is drawn, by comparing integers.

    The promise: for the fitted prior (or every prior of `prior_model`) and each
    ordered pair of secret values, the Rényi divergence of order `alpha` between the
    distributions of a released row is at most `epsilon`. It rests on joint convexity
    of the Rényi integrand ("transport") or on the finite sums themselves ("exact"),
    covers one row and `n_releases` releases of it, and nothing else: not several rows
    of one person, not columns kept beside the release, not pairs of secret values that
    are not listed, not which categories the set has.

    Parameters
    ----------
    alpha : float or "auto", default=2.0
        Rényi order, in (1, ∞]. "auto", with `delta`: the order that keeps the (ε, δ)
        promise with the least noise.
    epsilon : float, default=1.0
        Bound on the Rényi divergence, in nats. With `delta`: the ε of an (ε, δ)
        promise.
    delta : float, optional
        δ in (0, 1) of an (ε, δ) promise.
    secret, secret_from_y, secret_pairs, prior
        As in `RenyiPufferfishLaplace`.
    prior_model : {"empirical", "population", "bounded"}, default="empirical"
        "empirical": the conditional distributions of the fitted rows. "population":
        the true distributions that the fitted rows were drawn from, with `confidence`,
        by simultaneous Clopper–Pearson bounds; the release is of other rows. For
        single columns (several need ``scope="column"``), declared categories and
        unweighted rows. "bounded": any distributions on the declared categories, as in
        local differential privacy.
    confidence : float, default=0.95
        How often, over draws of the fitted rows, the promise of
        ``prior_model="population"`` holds, for all pairs, priors and columns at once.
    categories : "auto", list of lists, or mapping, default="auto"
        The set of each released column: a list of labels a column, or a mapping from
        column to list. "auto": those that occur, or that a pandas or polars type
        lists, with a `CategoriesFromDataWarning`, since which categories occur is
        data. At most 256 a column.
    metric : str, matrix, callable, or mapping from column to these, default="discrete"
        "discrete": 1 between any two categories. "ordinal": ``|i − j|`` in the order of
        `categories`. A matrix of distances in that order, or a callable of two labels:
        symmetric, zero for equal labels, otherwise positive and finite; no triangle
        inequality is needed.
    unknown : {"error", "uniform"} or a category, default="error"
        What becomes of labels outside the set. A category stands for them, in fit and
        in transform: the promise is then about the columns with that replacement.
        "uniform" releases, in transform alone, a uniformly drawn category through the
        channel: the promise of ``prior_model="bounded"`` covers that, the fitted prior
        has no such label and promises nothing for it.
    calibration : {"transport", "exact"}, default="transport"
        "transport": E exp((α−1) D_α(x ‖ x′)) over a coupling, one for each direction.
        "exact": the divergence of the released distributions, for a single release
        of up to 2^16 combinations of categories; it never needs more noise, and is
        right for exactly the fitted prior: on rows that were held out it is often
        violated. A column that satisfies the bound as it is, is released unchanged.
    scope : {"joint", "column"}, default="joint"
        "joint": the released row keeps the promise. "column": each released column
        alone does.
    column_weights : "distance", array of shape (k,), or mapping, default="distance"
        Proportions of the θ of a joint release: mean distances of two different
        categories, or positive numbers.
    n_releases : int, default=1
        How many independently drawn copies of a row are covered together.
    min_group_size : int, default=20
        Secret values with fewer rows are named in a warning.
    random_state : int, optional
        Seed for tests and papers: draws that can be repeated. By default each bit
        comes from the operating system.
    n_jobs : int, optional
        Threads in `transform`.
    verbose : int, default=0
        Print the report after fit.

    Attributes
    ----------
    scale_ : ndarray of shape (k,)
        θ of each released column; 0 where it is released unchanged (with a warning).
    channels_ : dict of ndarray
        P(released | true) of each column.
    categories_ : dict of tuple
        The set of each column.
    alpha_, epsilon_ : float
        The Rényi pair in force.
    guarantee_ : Guarantee
        The promise as a record and a sentence.
    report_ : ReleaseReport
        How far draws move, the deciding pair and the guarantee; prints as a table.
    profile_ : PrivacyProfile
        What the scale promises at every other order, and its best (ε, δ).
    n_features_in_ : int
        Number of released columns.
    feature_names_in_ : ndarray of str
        Their names, where X has names.

    See Also
    --------
    JointRelease : Numbers and categories as one row.

    References
    ----------
    * Ding, Yang, Zhang: α-Wasserstein mechanism for Rényi Pufferfish privacy. 2026.
    * Kairouz, Oh, Viswanath: Extremal mechanisms for local differential privacy. 2016.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame(
    ...     {"job": ["a", "b", "c", "a"] * 10, "sex": ["F", "M", "M", "F"] * 10}
    ... )
    >>> draw = RenyiPufferfishCategorical(
    ...     alpha=4, epsilon=1, secret="sex", categories=[["a", "b", "c"]]
    ... ).fit(df)
    >>> draw.transform(df).shape
    (40, 1)
    >>> draw.channels_["job"].round(2)
    array([[0.61, 0.19, 0.19],
           [0.19, 0.61, 0.19],
           [0.19, 0.19, 0.61]])

    Any distributions on the set, α = ∞: a ratio of e at the most.

    >>> draw.set_params(alpha=float("inf"), prior_model="bounded").fit(df).scale_.round(3)
    array([1.])
    """

    _prior_models = ("empirical", "population", "bounded")

    def __init__(
        self,
        alpha: float | str = 2.0,
        epsilon: float = 1.0,
        *,
        delta: float | None = None,
        secret: Any = None,
        secret_from_y: bool = False,
        secret_pairs: Any = "all",
        prior: Any = None,
        prior_model: str = "empirical",
        confidence: float = 0.95,
        categories: Any = "auto",
        metric: Any = "discrete",
        unknown: Any = "error",
        calibration: str = "transport",
        scope: str = "joint",
        column_weights: Any = "distance",
        n_releases: int = 1,
        min_group_size: int = 20,
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.secret = secret
        self.secret_from_y = secret_from_y
        self.secret_pairs = secret_pairs
        self.prior = prior
        self.prior_model = prior_model
        self.confidence = confidence
        self.categories = categories
        self.metric = metric
        self.unknown = unknown
        self.calibration = calibration
        self.scope = scope
        self.column_weights = column_weights
        self.n_releases = n_releases
        self.min_group_size = min_group_size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _settings(self) -> dict[str, Any]:
        given = super()._settings()
        choice("calibration", self.calibration, ("transport", "exact"))
        if self.calibration == "exact" and self.n_releases != 1:
            raise UnavailableRuleError(
                "calibration='exact' does not cover "
                f"n_releases={value_text(self.n_releases)} "
                "copies of a category: use calibration='transport'"
            )
        if isinstance(self.column_weights, str):
            choice("column_weights", self.column_weights, ("distance",))
            given["column_weights"] = "std"
        return given
