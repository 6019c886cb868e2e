"""Distances between categories, checked once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.core.prior import FloatArray

# Round-off that a computed metric may have, in parts of its largest distance.
_ASYMMETRY = 1e-12


def discrete(size: int) -> FloatArray:
    """Return the metric that is 1 between any two categories.

    >>> discrete(2)
    array([[0., 1.],
           [1., 0.]])
    """
    return 1.0 - np.eye(size)


def ordinal(size: int) -> FloatArray:
    """Return |i − j|: categories in their order, neighbours at distance 1.

    >>> ordinal(3)[0]
    array([0., 1., 2.])
    """
    place = np.arange(size, dtype=np.float64)
    return np.abs(np.subtract.outer(place, place))


def check_distances(given: ArrayLike, size: int) -> FloatArray:
    """Return a matrix of distances, exactly symmetric with a zero diagonal.

    The triangle inequality is not asked for: divergences are computed from the
    probabilities themselves, and no bound on them by distances is used.

    Parameters
    ----------
    given : array-like of shape (size, size)
    size : int
        Number of categories.

    Raises
    ------
    ValueError
        Says which of the properties fails: shape, finite, non-negative, zero diagonal,
        symmetric, positive between different categories.
    """
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("distances must be numbers") from None
    if matrix.shape != (size, size):
        raise ValueError(
            f"distances of {size} categories have shape {(size, size)}, got "
            f"{matrix.shape}"
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("distances must be finite and not negative")
    if matrix.diagonal().any():
        raise ValueError("the distance of a category from itself must be 0")
    if (np.abs(matrix - matrix.T) > _ASYMMETRY * matrix.max(initial=0.0)).any():
        raise ValueError("distances must be symmetric: d(a, b) = d(b, a)")
    matrix = np.maximum(matrix, matrix.T)
    if (matrix + np.eye(size) == 0).any():
        raise ValueError("different categories must be at a positive distance")
    return matrix


def mean_distance(distances: FloatArray) -> float:
    """Return the mean distance of two different categories; 1 for a single one."""
    size = len(distances)
    if size < 2:
        return 1.0
    return float(distances.sum() / (size * (size - 1)))
