"""From the name of a kernel to Gram blocks that the divergence may be computed of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from skpuffer._checks import integer, number
from skpuffer._text import value_text
from skpuffer._validation import read_tables
from skpuffer.core.features import median_distance
from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import ParameterError

Metric = str | Callable[..., float]

# k(x, y) depends on x - y alone, and its width is a scale of the data.
STATIONARY = ("rbf", "laplacian")
# Known to be positive semi-definite, whatever the data.
_DEFINITE = (*STATIONARY, "chi2", "cosine", "linear")
_WITH_GAMMA = (*STATIONARY, "chi2", "poly", "polynomial", "sigmoid")
_MEDIAN_ROWS = 1000
# What float32 leaves of a symmetric, positive semi-definite kernel with k(x, x) <= 1.
_TOLERANCE = 1e-6
_DIAGONAL_ROWS = 64


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel function, normalised where asked.

    Attributes
    ----------
    metric : str or callable
    parameters : mapping
        For `pairwise_kernels`.
    normalize : bool
        Whether to divide by √(k(x,x) k(y,y)).
    """

    metric: Metric
    parameters: Mapping[str, Any] = field(default_factory=dict)
    normalize: bool = False

    def __call__(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """Return k(X, Y)."""
        found = self._raw(X, Y)
        if self.normalize:
            sides = (self._raw_diagonal(rows) for rows in (X, Y))
            left, right = (root_of(diagonal) for diagonal in sides)
            found = found / left[:, np.newaxis] / right
        return found

    def diagonal(self, X: FloatArray) -> FloatArray:
        """Return k(x, x) of each row."""
        diagonal = self._raw_diagonal(X)
        return diagonal / root_of(diagonal) ** 2 if self.normalize else diagonal

    @property
    def is_definite(self) -> bool:
        """Whether the kernel is known to be positive semi-definite."""
        return self.metric in _DEFINITE

    def _raw(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        # scikit-learn's metrics are slow to import, and not everyone needs them.
        from sklearn.metrics.pairwise import pairwise_kernels

        # Whoever computes a kernel checks that it is finite.
        with np.errstate(over="ignore", invalid="ignore"):
            found: FloatArray = pairwise_kernels(
                X, Y, metric=self.metric, **self.parameters
            )
        return found

    def _raw_diagonal(self, X: FloatArray) -> FloatArray:
        if self.metric in (*STATIONARY, "chi2"):
            return np.ones(len(X))
        parts = [X[i : i + _DIAGONAL_ROWS] for i in range(0, len(X), _DIAGONAL_ROWS)]
        return np.concatenate([np.diagonal(self._raw(rows, rows)) for rows in parts])


def check_metric(metric: Any) -> None:
    """Refuse what is no kernel.

    Raises
    ------
    ParameterError
        There is no such kernel.
    """
    from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

    known = (*PAIRWISE_KERNEL_FUNCTIONS, "precomputed")
    if not callable(metric) and not (isinstance(metric, str) and metric in known):
        raise ParameterError(
            f"metric={value_text(metric)} must be a function of two rows, or one of "
            f"{', '.join(sorted(known))}"
        )


def check_gamma(metric: Any, gamma: Any) -> float | None:
    """Return gamma, positive and finite, or None.

    Raises
    ------
    ParameterError
        It is neither, or the kernel has none.
    """
    if gamma is None:
        return None
    width: float = number("gamma", gamma, above=0.0)
    if metric not in _WITH_GAMMA:
        shown = "a callable" if callable(metric) else repr(metric)
        raise ParameterError(
            f"gamma={width!r} has no meaning for metric={shown}: leave it out; "
            f"{', '.join(_WITH_GAMMA)} have one"
        )
    return width


def median_gamma(
    X: Any, Y: Any, *, metric: str = "rbf", random_state: int | None = None
) -> float:
    """Return the width of a kernel by the median distance between rows.

    Parameters
    ----------
    X, Y : frame or array-like of shape (n, n_columns)
        Two samples, finite numbers.
    metric : {"rbf", "laplacian"}
        exp(−γ ‖x−y‖²) with γ = 1/m², m the median Euclidean distance between two
        rows of both samples together: k is 1/e there. Or exp(−γ ‖x−y‖_1) with
        γ = 1/m for the median sum of absolute differences, with the same effect.
    random_state : int, optional
        Seed of the subsample: 1,000 rows, where there are more. None is a fixed seed.

    Returns
    -------
    float
        γ, in the inverse (squared) units of the data.

    Raises
    ------
    ParameterError
        Most rows are identical, so that the median is 0; or it overflows.

    Examples
    --------
    >>> median_gamma([[0.0], [2.0]], [[4.0]])
    0.25
    >>> median_gamma([[0.0], [0.0]], [[0.0]])
    Traceback (most recent call last):
    ...
    skpuffer.exceptions.ParameterError: gamma=None takes the median distance between
    rows of X and Y, and it is 0 (most rows are identical): give gamma a number
    """
    if not isinstance(metric, str) or metric not in STATIONARY:
        raise ParameterError(
            f"metric={value_text(metric)} has no width to choose: "
            f"{' and '.join(STATIONARY)} do"
        )
    seed = seed_of(random_state)
    return gamma_of(np.concatenate(centred(*read_tables(X, Y))), metric, seed)


def centred(X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both samples moved by the same vector, to around zero."""
    # What overflows is told by the kernel or by gamma, with a remedy.
    with np.errstate(over="ignore", invalid="ignore"):
        centre = X.mean(axis=0) / 2 + Y.mean(axis=0) / 2
        return X - centre, Y - centre


def gamma_of(pooled: FloatArray, metric: str, seed: int) -> float:
    """Return γ by the median rule, for rows that were validated."""
    if len(pooled) > _MEDIAN_ROWS:
        rng = np.random.default_rng([seed, 0])
        pooled = pooled[rng.choice(len(pooled), _MEDIAN_ROWS, replace=False)]
    # Differences of huge values may overflow, which is told apart below.
    with np.errstate(over="ignore", invalid="ignore"):
        kind: Literal["euclidean", "cityblock"]
        kind = "euclidean" if metric == "rbf" else "cityblock"
        median = median_distance(pooled, kind)
    if median == 0:
        raise ParameterError(
            "gamma=None takes the median distance between rows of X and Y, and it is 0 "
            "(most rows are identical): give gamma a number"
        )
    # In two steps: the square of a small or large distance is no float.
    gamma = 1 / median / median if metric == "rbf" else 1 / median
    if not (math.isfinite(median) and 0 < gamma < math.inf):
        raise ParameterError(
            f"gamma=None takes the median distance between rows of X and Y, and "
            f"{median:g} is out of range: rescale the columns, or give gamma a number"
        )
    return gamma


def seed_of(random_state: Any) -> int:
    """Return the seed: a fixed one for None, so that a divergence repeats."""
    return 0 if random_state is None else integer("random_state", random_state, least=0)


def root_of(diagonal: FloatArray) -> FloatArray:
    """Return √k(x, x), or refuse to divide by it.

    Raises
    ------
    ValueError
        Somewhere it is not positive.
    """
    bad = int((~(diagonal > 0)).sum())
    if bad:
        raise ValueError(
            f"normalize=True divides by k(x, x), which is not positive in {bad} of "
            f"{len(diagonal)} rows: drop these rows, or choose another kernel"
        )
    return np.sqrt(diagonal)


def check_diagonal(diagonal: FloatArray, name: str, *, unit: bool) -> None:
    """Refuse a kernel that would inflate the divergence.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        k(x, x) of a sample.
    name : str
        Of the sample.
    unit : bool
        Whether k(x, x) < 1 is refused too: at and below order 1 it may inflate the
        divergence, and above it never does.

    Raises
    ------
    ParameterError
        k(x, x) is not as it must be.
    """
    low, high = float(diagonal.min()), float(diagonal.max())
    if not high <= 1 + _TOLERANCE:
        raise ParameterError(
            f"k(x, x) reaches {high:.6g} in {name}, and above 1 the divergence would be "
            "inflated: set normalize=True, which divides by the root of k(x, x) k(y, y)"
        )
    if unit and low < 1 - _TOLERANCE:
        raise ParameterError(
            f"k(x, x) falls to {low:.6g} in {name}, and for alpha <= 1 it must be 1: set "
            "normalize=True, or take alpha > 1"
        )
    if high <= 0:
        raise ParameterError(
            f"k(x, x) is not positive in any row of {name}: nothing can be compared"
        )


def check_definite(k_xx: FloatArray, k_yy: FloatArray, k_yx: FloatArray) -> None:
    """Refuse blocks that no positive semi-definite kernel has.

    Raises
    ------
    ValueError
        A block is not symmetric, or the whole has a negative eigenvalue.
    """
    for block, name in ((k_xx, "X"), (k_yy, "Y")):
        gap = float(np.abs(block - block.T).max())
        if gap > _TOLERANCE:
            raise ValueError(
                f"the kernel of {name} with itself is not symmetric: k(x, x') and "
                f"k(x', x) differ by up to {gap:.3g}"
            )
    whole = np.block([[k_xx, k_yx.T], [k_yx, k_yy]])
    # Succeeds just where no eigenvalue is below the tolerance.
    whole[np.diag_indices_from(whole)] += _TOLERANCE * len(whole)
    try:
        np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the kernel is not positive semi-definite: the matrix of k over the rows of "
            "X and Y together has negative eigenvalues; choose a kernel that is an inner "
            "product, or check that k(X, X), k(Y, Y) and k(Y, X) are of the same rows"
        ) from None
