"""The public estimators: a law, a name and the documentation of every parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from skpuffer._base import AdditiveRelease
from skpuffer.core.laws import Gaussian, Laplace, NoiseLaw

_PARAMETERS = """
    The promise: for the fitted prior (or every prior of `prior_model`) and each
    ordered pair of secret values, the Rényi divergence of order `alpha` between the
    distributions of a released row is at most `epsilon`. It rests on the theorem of
    the calibration rule, covers one row and `n_releases` releases of it, and nothing
    else: not several rows of one person, not columns kept beside the release, not
    pairs of secret values that are not listed.

    Parameters
    ----------
    alpha : float or "auto", default=2.0
        Rényi order, {orders}. "auto", with `delta`: the order that keeps the (ε, δ)
        promise with the least noise; of several columns jointly, with couplings that
        are refined for it in turn.
    epsilon : float, default=1.0
        Bound on the Rényi divergence, in nats. With `delta`: the ε of an (ε, δ)
        promise.
{own}    delta : float, optional
        δ in (0, 1) of an (ε, δ) promise. The Rényi bound in force follows from
        `alpha` by the better of two conversions and is found in `epsilon_`.
    secret : str, int, or list of them, optional
        Column or columns of X that hold the secret: names for a frame, positions
        for an array. Dropped from the release. The secret may be passed to `fit`
        instead. Missing values, also as the text "nan", and more than 50 distinct
        values are refused.
    secret_from_y : bool, default=False
        Take the secret from y.
    secret_pairs : "all" or list of (value, value), default="all"
        The pairs that must not be told apart ("discriminative pairs" in the
        literature); pairs of tuples where there are several secret columns.
    prior : str, int, or list of them, optional
        Column of X whose values tell priors apart: the promise is kept for each.
        May be passed to `fit` instead. Dropped from the release.
    prior_model : {{"empirical", "population", "gaussian", "bounded"}}, \
default="empirical"
        "empirical": the conditional distributions of the fitted rows. "population":
        the true distributions that the fitted rows were drawn from, with `confidence`
        and within `bounds`; the release is of other rows. "gaussian": Gaussians with
        the fitted means and variances (the promise is void where columns are not
        Gaussian); for Gaussian noise only, without a rule: `calibration` stays at its
        default. "bounded": any distributions on the declared `bounds`. "population"
        and "gaussian" cover single columns: several need ``scope="column"``.
    confidence : float, default=0.95
        How often, over draws of the fitted rows, the promise of
        ``prior_model="population"`` holds, for all pairs, priors and columns at once.
        The other prior models take no account of it.
    bounds : (low, high) or {{column: (low, high)}}, optional
        Publicly known limits, never the minimum and maximum of the data. Required by
        ``prior_model="population"`` and ``"bounded"``.
    out_of_bounds : {{"clip", "error"}}, default="clip"
        What becomes of values outside, in fit and in transform.
    calibration : {{"transport", "alpha_wasserstein", "closed_form", "w_inf", "exact"}}, \
default="transport"
        The condition that sets the scale. "transport" never needs more noise than the
        other sufficient conditions on the same coupling. "exact" is the divergence of
        the two releases itself: the least noise possible (above a floor, a tenth of the
        smallest gap between values or a thousandth of their range), for one column or
        ``scope="column"``. It is right for exactly the fitted prior; on rows that were
        held out it is often violated, and sometimes by far
        (`held_out_divergence` measures it).
    scope : {{"joint", "column"}}, default="joint"
        "joint": the released row keeps the promise. "column": each released column
        alone does, the row need not.
    column_weights : {{"std", "range"}}, array of shape (k,), or mapping, default="std"
        Proportions of the columns' scales in a joint release: standard deviations of
        the fitted rows (under ``prior_model="bounded"``, where nothing may depend on
        them, the widths of the bounds), widths of the bounds, or positive numbers.
    n_releases : int, default=1
        How many independently noised copies of a row are covered together.
    min_group_size : int, default=20
        Secret values with fewer rows are named in a warning.
    clip_output : bool, default=False
        Clip the release to the bounds: plausible values, but biased.
    random_state : int, optional
        Seed for tests and papers: noise that can be subtracted. By default each bit
        comes from the operating system.
    n_jobs : int, optional
        Threads in `transform`.
    verbose : int, default=0
        Print the report after fit, and show a bar while couplings are searched.

    Attributes
    ----------
    scale_ : ndarray of shape (k,)
        {scale} of each released column, in its units; 0 where the fitted prior
        needs no noise and values are released unchanged (with a warning).
    noise_std_ : ndarray of shape (k,)
        Standard deviation of the noise: {std}.
    noise_covariance_ : ndarray of shape (k, k)
        Its covariance, for unbiased estimates from a release.
    alpha_, epsilon_ : float
        The Rényi pair in force.
    guarantee_ : Guarantee
        The promise as a record and a sentence.
    report_ : ReleaseReport
        Noise against spread, the deciding pair and the guarantee; prints as a table.
    profile_ : PrivacyProfile
        What the scale promises at every other order, and its best (ε, δ).
    n_features_in_ : int
        Number of released columns.
    feature_names_in_ : ndarray of str
        Their names, where X has names.
"""


def documented(**words: str) -> Callable[[type], type]:
    """Fill the shared documentation in where a class docstring says so."""

    def fill(cls: type) -> type:
        if cls.__doc__ is not None:  # It is under python -OO.
            shared = _PARAMETERS.format(**{"own": "", **words}).strip("\n")
            cls.__doc__ = cls.__doc__.replace("    %(shared)s", shared)
        return cls

    return fill


@documented(orders="in (1, ∞]", scale="Laplace b", std="√2 · b")
class RenyiPufferfishLaplace(AdditiveRelease):
    """Release columns with Laplace noise calibrated to a secret column.

    %(shared)s

    See Also
    --------
    RenyiPufferfishGaussian : The same with Gaussian noise.
    RenyiPufferfishExponential : The same with a sharper peak and heavier tails.
    RenyiPufferfishCategorical : Categories, drawn instead of noised.
    JointRelease : Numbers and categories as one row.
    compare_mechanisms : A table of laws, rules and scopes for a frame.

    References
    ----------
    * Pierquin, Bellet, Tommasi, Boussard: Rényi Pufferfish privacy. ICML 2024.
    * Ding, Yang, Zhang: α-Wasserstein mechanism for Rényi Pufferfish privacy. 2026.
    * Mironov: Rényi differential privacy. CSF 2017 (Proposition 6).

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(df)
    >>> noise.transform(df).shape
    (40, 1)
    >>> noise.scale_.round(2)
    array([0.84])

    Pure Pufferfish privacy, α = ∞:

    >>> RenyiPufferfishLaplace(alpha=float("inf"), secret="sex").fit(df).scale_
    array([1.])

    No noise where nothing tells the groups apart, with a warning:

    >>> import warnings
    >>> alike = pd.DataFrame({"age": [30, 40] * 20, "sex": ["F", "F", "M", "M"] * 10})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     scale = RenyiPufferfishLaplace(secret="sex").fit(alike).scale_
    >>> scale, caught[0].category.__name__
    (array([0.]), 'ZeroNoiseWarning')
    """

    law: ClassVar[NoiseLaw] = Laplace()


@documented(
    orders="in (1, ∞); at ∞ Gaussian noise promises nothing",
    scale="Gaussian σ",
    std="σ itself",
)
class RenyiPufferfishGaussian(AdditiveRelease):
    """Release columns with Gaussian noise calibrated to a secret column.

    %(shared)s

    See Also
    --------
    RenyiPufferfishLaplace : The same with Laplace noise.
    RenyiPufferfishCategorical : Categories, drawn instead of noised.
    JointRelease : Numbers and categories as one row.
    compare_mechanisms : A table of laws, rules and scopes for a frame.

    References
    ----------
    * Pierquin, Bellet, Tommasi, Boussard: Rényi Pufferfish privacy. ICML 2024.
    * Ding, Yang, Zhang: α-Wasserstein mechanism for Rényi Pufferfish privacy. 2026.
    * Canonne, Kamath, Steinke: The discrete Gaussian for differential privacy. 2020.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> noise = RenyiPufferfishGaussian(alpha=2, epsilon=1, secret="sex").fit(df)
    >>> noise.scale_, noise.noise_std_
    (array([1.]), array([1.]))

    An (ε, δ) promise; the Rényi bound in force follows from the order:

    >>> noise = RenyiPufferfishGaussian(alpha=8, epsilon=2, delta=1e-3, secret="sex")
    >>> round(noise.fit(df).epsilon_, 3)
    1.444
    """

    law: ClassVar[NoiseLaw] = Gaussian()
