"""Release of numbers and categories as one row under one guarantee."""

from __future__ import annotations

from typing import Any

from skpuffer._checks import choice
from skpuffer._row_release import RowRelease


class JointRelease(RowRelease):
    """Release numbers and categories of a frame as one row under one guarantee.

    Numbers get additive noise on a grid, as in `RenyiPufferfishLaplace`; categories
    are drawn as in `RenyiPufferfishCategorical`. Two transformers side by side are two
    releases, and their guarantees do not add up to one about the row; here one
    coupling of the rows carries both. Without categories the scales are those of the
    numeric estimators, without numbers those of the categorical one.

    The promise: for the fitted prior (or every prior of `prior_model`) and each
    ordered pair of secret values, the Rényi divergence of order `alpha` between the
    distributions of a released row is at most `epsilon`: E exp((α−1) Σ D_α) ≤
    e^((α−1)ε) over a coupling of the rows, by joint convexity of the Rényi integrand;
    D_α adds over the columns, which are drawn independently given the row. It covers
    one row and `n_releases` releases of it, and nothing else: not several rows of one
    person, not columns kept beside the release, not pairs of secret values that are
    not listed, not which categories a set has.

    Parameters
    ----------
    alpha, epsilon, delta, secret, secret_from_y, secret_pairs, prior
        As in `RenyiPufferfishLaplace`.
    prior_model : {"empirical", "bounded"}, default="empirical"
        "empirical": the conditional distributions of the fitted rows. "bounded": any
        distributions on the declared `bounds` and `categories`.
    law : {"laplace", "gaussian"}, default="laplace"
        The noise of the numbers. Gaussian noise has no order ∞, with or without
        columns of numbers.
    categorical : "auto" or list, default="auto"
        Columns of categories, by name, or by position in an array. "auto": those of
        text, bool, category or objects that are no numbers.
    categories, metric, unknown
        As in `RenyiPufferfishCategorical`; lists follow the order of the columns of
        categories.
    bounds : (low, high) or {column: (low, high)}, optional
        Publicly known limits of the numbers. Required by ``prior_model="bounded"``.
    out_of_bounds : {"clip", "error"}, default="clip"
        What becomes of numbers outside, in fit and in transform.
    column_weights : {"std", "range"}, array of shape (k,), or mapping, default="std"
        The scales are a common factor times these, which is how the budget is split.
        "std": standard deviations of the fitted numbers, mean distances of two
        different categories. "range": widths of the bounds, largest distances.
    n_releases, min_group_size, clip_output, random_state, n_jobs, verbose
        As in `RenyiPufferfishLaplace`.

    Attributes
    ----------
    scale_ : ndarray of shape (k,)
        Laplace b or Gaussian σ of numbers, θ of categories; 0 where a column is
        released unchanged (with a warning).
    noise_std_ : ndarray of shape (k,)
        Standard deviation of the noise of numbers, nan for categories. Absent where
        there are no numbers.
    channels_ : dict of ndarray
        P(released | true) of each column of categories.
    categories_ : dict of tuple
        The set of each column of categories.
    alpha_, epsilon_, guarantee_, report_, n_features_in_, feature_names_in_
        As in `RenyiPufferfishCategorical`.

    See Also
    --------
    RenyiPufferfishLaplace, RenyiPufferfishGaussian : Numbers alone, with more rules.
    RenyiPufferfishCategorical : Categories alone.

    Notes
    -----
    Up to 2,000 distinct rows a side the couplings are optimal for the scales found;
    beyond, they are searched, which costs noise, never privacy: see `coupling_effort`.

    Examples
    --------
    The job and the hours say nothing of the secret alone, and everything together:

    >>> import pandas as pd
    >>> df = pd.DataFrame(
    ...     {
    ...         "job": ["a", "b", "a", "b"] * 10,
    ...         "hours": [20, 40, 40, 20] * 10,
    ...         "sex": ["F", "F", "M", "M"] * 10,
    ...     }
    ... )
    >>> row = JointRelease(
    ...     alpha=4, epsilon=1, secret="sex", categories={"job": ["a", "b"]}
    ... ).fit(df)
    >>> row.scale_.round(2)
    array([0.91, 9.12])
    >>> row.transform(df).dtypes["hours"]
    dtype('float64')
    """

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
        law: str = "laplace",
        categorical: Any = "auto",
        categories: Any = "auto",
        metric: Any = "discrete",
        unknown: Any = "error",
        bounds: Any = None,
        out_of_bounds: str = "clip",
        column_weights: Any = "std",
        n_releases: int = 1,
        min_group_size: int = 20,
        clip_output: bool = False,
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
        self.law = law
        self.categorical = categorical
        self.categories = categories
        self.metric = metric
        self.unknown = unknown
        self.bounds = bounds
        self.out_of_bounds = out_of_bounds
        self.column_weights = column_weights
        self.n_releases = n_releases
        self.min_group_size = min_group_size
        self.clip_output = clip_output
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _settings(self) -> dict[str, Any]:
        choice("law", self.law, ("laplace", "gaussian"))
        return super()._settings()
