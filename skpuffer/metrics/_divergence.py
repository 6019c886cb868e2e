"""The kernel Rényi divergence of two samples."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from skpuffer._checks import boolean, integer
from skpuffer._text import value_text
from skpuffer._validation import read_tables
from skpuffer.core.gram import gram_divergence
from skpuffer.exceptions import ParameterError
from skpuffer.metrics._checks import read_gram, read_grid, shaped
from skpuffer.metrics._kernels import (
    STATIONARY,
    Kernel,
    centred,
    check_definite,
    check_diagonal,
    check_gamma,
    check_metric,
    gamma_of,
    seed_of,
)
from skpuffer.metrics._roads import (
    choose_features,
    from_features,
    from_gram,
    normalized,
)

_APPROXIMATIONS = (None, "rff", "nystroem")


@overload
def kernel_renyi_divergence(
    X: Any,
    Y: Any,
    *,
    alpha: float = 2.0,
    reg: float = 1e-3,
    metric: Any = "rbf",
    gamma: float | None = None,
    normalize: bool = False,
    approx: str | None = None,
    n_components: int = 512,
    random_state: int | None = None,
    K_yx: Any = None,
    **kwds: Any,
) -> float: ...
@overload
def kernel_renyi_divergence(
    X: Any,
    Y: Any,
    *,
    alpha: ArrayLike = 2.0,
    reg: ArrayLike = 1e-3,
    metric: Any = "rbf",
    gamma: float | None = None,
    normalize: bool = False,
    approx: str | None = None,
    n_components: int = 512,
    random_state: int | None = None,
    K_yx: Any = None,
    **kwds: Any,
) -> Any: ...


def kernel_renyi_divergence(
    X: Any,
    Y: Any,
    *,
    alpha: ArrayLike = 2.0,
    reg: ArrayLike = 1e-3,
    metric: Any = "rbf",
    gamma: float | None = None,
    normalize: bool = False,
    approx: str | None = None,
    n_components: int = 512,
    random_state: int | None = None,
    K_yx: Any = None,
    **kwds: Any,
) -> Any:
    """Compute the regularised kernel Rényi divergence of X from Y.

    With φ the features of a kernel k, S_X and S_Y the means of φφ* over the samples
    and λ = `reg`, D = log tr[((S_Y+λ)^(r/2) S_X (S_Y+λ)^(r/2))^α] / (α−1),
    r = (1−α)/α [Domingo-Enrich, Mroueh 2022]. For k(x, x) = 1 the divergence of two
    distributions is at most their Rényi divergence of order α, and at
    λ = δ exp(−ε) at most ε for a mechanism with (ε, δ) privacy. That of two
    *samples* is biased upwards, and is no verdict: a larger value of equal
    distributions is no leak.

    Parameters
    ----------
    X, Y : frame or array-like of shape (n_x, n_columns), (n_y, n_columns)
        Finite numbers, the same columns; or their Gram matrices k(X, X) and k(Y, Y)
        with ``metric="precomputed"``. The divergence is not symmetric.
    alpha : float or 1-D array-like
        Order in [1/2, ∞].
    reg : float or 1-D array-like
        λ, at least 1e-10, in units of k(x, x).
    metric : str or callable
        A kernel of `sklearn.metrics.pairwise.pairwise_kernels`, or a function of two
        rows; "precomputed" for Gram matrices.
    gamma : float, optional
        Of the kernels that have one. By default, for "rbf" and "laplacian", by the
        median distance between rows of both samples (see `median_gamma`), on a
        subsample of 1,000; for other kernels scikit-learn's default.
    normalize : bool
        Replace k(x, y) by k(x, y) / √(k(x, x) k(y, y)). Needed where k(x, x) > 1; and
        where k(x, x) < 1 and an order is at most 1.
    approx : {"rff", "nystroem"}, optional
        Work in `n_components` features, in blocks of rows, instead of Gram matrices:
        random Fourier features (of "rbf" and "laplacian"), which are exact for a
        kernel of their own with k(x, x) = 1; or the projection on randomly chosen
        rows, which is a lower approximation, for orders above 1.
    n_components : int
        Number of features; even for "rff".
    random_state : int, optional
        Seed of all random choices. None is a fixed seed: results repeat.
    K_yx : array-like of shape (n_y, n_x), optional
        k(Y, X), for ``metric="precomputed"``.
    **kwds
        Further parameters of the kernel.

    Returns
    -------
    float or ndarray
        In nats. Each of `alpha` and `reg` that is an array has an axis, in this order:
        two arrays give shape (n_alpha, n_reg), one array its own shape, two
        scalars a float. All come from one decomposition.

    Raises
    ------
    ParameterError
        A parameter is out of range or does not go with the others; k(x, x) is above 1,
        or below where it must not be.
    ValueError, TypeError
        A sample is not a finite numeric table, columns or shapes do not fit, or a
        kernel is not symmetric or not positive semi-definite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 3)), rng.normal(1.0, size=(150, 3))
    >>> round(kernel_renyi_divergence(X, Y), 3)
    1.832
    >>> kernel_renyi_divergence(X, Y, alpha=[1, 2, np.inf], reg=[0.01, 0.1]).shape
    (3, 2)

    Equal samples, and a kernel that is no inner product of vectors of length 1:

    >>> round(kernel_renyi_divergence(X, X, reg=1e-9), 6)
    -0.0
    >>> kernel_renyi_divergence(X, Y, metric="linear")
    Traceback (most recent call last):
    ...
    skpuffer.exceptions.ParameterError: k(x, x) reaches 15.484 in X, and above 1 ...
    """
    alphas, regs, shape = read_grid(alpha, reg)
    boolean("normalize", normalize)
    seed = seed_of(random_state)
    check_metric(metric)
    gamma = check_gamma(metric, gamma)
    unit = bool((alphas <= 1).any())
    _check_approximation(approx, metric, n_components, unit)
    if isinstance(metric, str) and metric == "precomputed":
        if kwds:
            raise ParameterError(
                f"{', '.join(kwds)} has no meaning for metric='precomputed': leave it out"
            )
        blocks = normalized(*read_gram(X, Y, K_yx), normalize)
        check_diagonal(np.diagonal(blocks[0]), "X", unit=unit)
        check_diagonal(np.diagonal(blocks[1]), "Y", unit=unit)
        check_definite(*blocks)
        return shaped(gram_divergence(*blocks, alphas=alphas, regs=regs), shape)
    if K_yx is not None:
        raise ParameterError("K_yx goes with metric='precomputed': leave it out")
    X, Y = read_tables(X, Y)
    if metric in STATIONARY:
        # The kernel is the same, and inner products of large numbers lose digits.
        X, Y = centred(X, Y)
        if gamma is None:
            gamma = gamma_of(np.concatenate([X, Y]), metric, seed)
    parameters = dict(kwds) if gamma is None else {**kwds, "gamma": gamma}
    kernel = Kernel(metric, parameters, normalize)
    if approx is None:
        found = from_gram(kernel, X, Y, alphas, regs)
    else:
        features = choose_features(approx, kernel, X, Y, n_components, seed)
        found = from_features(features, X, Y, alphas, regs)
    return shaped(found, shape)


def _check_approximation(
    approx: Any, metric: Any, n_components: Any, unit: bool
) -> None:
    if approx not in _APPROXIMATIONS:
        raise ParameterError(
            f"approx={value_text(approx)} must be None, 'rff' (random Fourier features) or "
            "'nystroem'"
        )
    integer("n_components", n_components, least=1)
    if approx is None:
        return
    if isinstance(metric, str) and metric == "precomputed":
        raise ParameterError(
            f"approx={value_text(approx)} needs the rows, and metric='precomputed' has "
            "none: "
            "give the samples, or leave approx out"
        )
    if approx == "rff" and metric not in STATIONARY:
        raise ParameterError(
            f"approx='rff' needs a kernel of differences ({' or '.join(STATIONARY)}), got "
            f"metric={value_text(metric)}: take approx='nystroem'"
        )
    if approx == "rff" and n_components % 2:
        raise ParameterError(
            f"n_components={n_components!r} must be even for approx='rff': Fourier "
            "features come in pairs"
        )
    if approx == "nystroem" and unit:
        raise ParameterError(
            "approx='nystroem' has k(x, x) < 1 and inflates the divergence for "
            "alpha <= 1: take alpha > 1, or approx='rff'"
        )
