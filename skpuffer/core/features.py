"""Explicit features whose inner products are, or approximate, a kernel.

Pure: arrays in, arrays out. With features, second moments of any number of rows take
a fixed number of numbers, and add over parts of a sample. A divergence of such
features is exactly one of the kernel that they define, so that what holds of every
kernel with k(x, x) = 1 (Fourier) or k(x, x) ≤ 1 (Nyström) holds of it, however coarse
the approximation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from skpuffer.core.prior import FloatArray

# Numbers of a block of features held at once: 16 MB.
_BLOCK = 2**21
# Relative to the largest eigenvalue of the landmarks' kernel: what lies below is noise.
_RANK_TOLERANCE = 1e-12
# How far k(x, x) may exceed 1 by rounding before it is refused.
_EXCESS = 1e-6

KernelFunction = Callable[[FloatArray, FloatArray], FloatArray]


class Features(Protocol):
    """A map from rows to features."""

    @property
    def n_features(self) -> int:
        """Return the number of features."""

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the features of rows, shape (n, n_features)."""


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Random Fourier features in pairs: cos ωx and sin ωx, over √m.

    With m frequencies, k̂(x, y) = Σ cos ω(x − y) / m, which is 1 at x = y whatever the
    frequencies, and has expectation k(x, y) if they are drawn from the spectral
    measure of k [Rahimi, Recht 2007].

    Attributes
    ----------
    frequencies : ndarray of shape (n_columns, m)

    Examples
    --------
    >>> features = FourierFeatures.draw("rbf", 0.5, 3, 8, np.random.default_rng(0))
    >>> phi = features.transform(np.ones((1, 3)))
    >>> phi.shape, round(float(phi[0] @ phi[0]), 12)
    ((1, 8), 1.0)
    """

    frequencies: FloatArray

    @classmethod
    def draw(
        cls,
        metric: str,
        gamma: float,
        n_columns: int,
        n_components: int,
        rng: np.random.Generator,
    ) -> FourierFeatures:
        """Draw frequencies for a kernel.

        Parameters
        ----------
        metric : {"rbf", "laplacian"}
            exp(−γ ‖x−y‖²), whose spectral measure is a Gaussian of variance 2γ, or
            exp(−γ ‖x−y‖_1), with independent Cauchy frequencies of scale γ.
        gamma : float
            Positive.
        n_columns : int
        n_components : int
            Number of features, even: two a frequency.
        rng : numpy.random.Generator

        Raises
        ------
        ValueError
            The kernel has no such features here, or `n_components` is not even.
        """
        if n_components < 2 or n_components % 2:
            raise ValueError(
                f"n_components={n_components!r} must be even: Fourier features come in "
                "pairs, a cosine and a sine"
            )
        shape = n_columns, n_components // 2
        if metric == "rbf":
            return cls(math.sqrt(2 * gamma) * rng.standard_normal(shape))
        if metric == "laplacian":
            return cls(gamma * rng.standard_cauchy(shape))
        raise ValueError(
            f"metric={metric!r} has no Fourier features here: 'rbf' and 'laplacian' do"
        )

    @property
    def n_features(self) -> int:
        """Return the number of features, 2m."""
        return 2 * int(self.frequencies.shape[1])

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the features of rows, shape (n, 2m): cosines, then sines."""
        m = self.frequencies.shape[1]
        angles = X @ self.frequencies
        found: FloatArray = np.empty((len(X), 2 * m))
        np.cos(angles, out=found[:, :m])
        np.sin(angles, out=found[:, m:])
        found /= math.sqrt(m)
        return found


@dataclass(frozen=True, eq=False)
class NystroemFeatures:
    """Features that are exact between landmarks and never too long elsewhere.

    φ(x) is the projection of x on the span of the landmarks, so that
    k̂(x, x) ≤ k(x, x) [Williams, Seeger 2001]. Rounding may leave it above 1: such rows
    are scaled down to 1.

    Attributes
    ----------
    landmarks : ndarray of shape (n_landmarks, n_columns)
    root : ndarray of shape (n_landmarks, n_features)
        Root of the pseudo-inverse of their kernel matrix.
    kernel : callable
        From two arrays of rows to their kernel matrix.

    Examples
    --------
    >>> dots = lambda X, Y: X @ Y.T
    >>> features = NystroemFeatures.fit(np.eye(2), dots)
    >>> features.transform(np.array([[0.6, 0.8], [0.0, 0.1]])) @ features.root.T
    array([[0.6, 0.8],
           [0. , 0.1]])
    """

    landmarks: FloatArray
    root: FloatArray
    kernel: KernelFunction

    @classmethod
    def fit(cls, landmarks: FloatArray, kernel: KernelFunction) -> NystroemFeatures:
        """Compute the root of the landmarks' kernel matrix.

        Directions with less than 1e-12 of the largest eigenvalue are left out.
        """
        gram = kernel(landmarks, landmarks)
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        kept = values > _RANK_TOLERANCE * values[-1]
        root: FloatArray = vectors[:, kept] / np.sqrt(values[kept])
        return cls(landmarks, root, kernel)

    @property
    def n_features(self) -> int:
        """Return the rank of the landmarks' kernel matrix."""
        return int(self.root.shape[1])

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the features of rows, shape (n, n_features).

        Raises
        ------
        ValueError
            A row is longer than 1 by more than rounding: the kernel exceeds 1, or is
            not positive semi-definite.
        """
        found: FloatArray = self.kernel(X, self.landmarks) @ self.root
        lengths = np.einsum("ij,ij->i", found, found)
        longest = float(lengths.max(initial=0.0))
        if not longest <= 1 + _EXCESS:
            raise ValueError(
                f"k(x, x) is {longest:.6g} in the Nyström features of a row, above 1: "
                "normalise the kernel, or check that it is positive semi-definite"
            )
        found /= np.sqrt(np.maximum(lengths, 1.0))[:, np.newaxis]
        return found


def moment_sum(features: Features, X: FloatArray) -> FloatArray:
    """Return Σ φ(x) φ(x)ᵀ over rows, in blocks.

    Parameters
    ----------
    features : Features
    X : ndarray of shape (n, n_columns)

    Returns
    -------
    ndarray of shape (n_features, n_features)

    Examples
    --------
    >>> features = FourierFeatures(np.zeros((1, 1)))
    >>> moment_sum(features, np.ones((5, 1)))
    array([[5., 0.],
           [0., 0.]])
    """
    width = features.n_features
    total: FloatArray = np.zeros((width, width))
    rows = max(1, _BLOCK // max(width, 1))
    for start in range(0, len(X), rows):
        phi = features.transform(X[start : start + rows])
        total += phi.T @ phi
    return total


def median_distance(X: FloatArray, metric: Literal["euclidean", "cityblock"]) -> float:
    """Return the median distance between two rows.

    Parameters
    ----------
    X : ndarray of shape (n, n_columns)
        At least two rows.
    metric : {"euclidean", "cityblock"}

    Examples
    --------
    >>> median_distance(np.array([[0.0], [1.0], [5.0]]), "euclidean")
    4.0
    """
    # Only who asks for a distance pays for this import.
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(X, metric)))
