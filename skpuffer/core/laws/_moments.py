"""Moments of shifts at many orders at once, to fewer digits than divergences have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skpuffer.core.laws._gaussian import Gaussian
from skpuffer.core.laws._laplace import Laplace
from skpuffer.core.laws._protocol import NoiseLaw, standardised
from skpuffer.core.prior import FloatArray


def shift_moments(
    law: NoiseLaw, shifts: FloatArray, *, alphas: FloatArray, scale: FloatArray
) -> FloatArray | None:
    """Return exp((α−1) D_α) of each shift, where the law has a quick way to it.

    Parameters
    ----------
    law : NoiseLaw
    shifts : ndarray of shape (m, k)
    alphas : ndarray of shape (a,)
        Finite orders above 1.
    scale : ndarray of shape (k,)

    Returns
    -------
    ndarray of shape (a, m) or None
        To a part of 2^-42; infinite beyond the floats. None for other laws.

    Examples
    --------
    >>> shift_moments(Laplace(), np.ones((1, 1)), alphas=np.array([2.0]), scale=np.ones(1))
    array([[1.85729965]])
    """
    # A law that is derived from one of these may have another divergence.
    moments = _QUICK.get(type(law))
    if moments is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return moments(standardised(shifts, scale), alphas)


def _laplace(ratio: FloatArray, alphas: FloatArray) -> FloatArray:
    """α/(2α−1) e^{(α−1)r} + (α−1)/(2α−1) e^{−αr}, multiplied over the columns."""
    order = alphas[:, np.newaxis, np.newaxis]
    rising = np.exp((order - 1) * ratio)
    falling = np.exp(-ratio) / rising
    moments = (order * rising + (order - 1) * falling) / (2 * order - 1)
    return moments[..., 0] if ratio.shape[1] == 1 else moments.prod(axis=-1)


def _gaussian(ratio: FloatArray, alphas: FloatArray) -> FloatArray:
    """exp(α (α−1) Σ r² / 2)."""
    squares = np.square(ratio).sum(axis=1)
    moments: FloatArray = np.exp((alphas * (alphas - 1) / 2)[:, np.newaxis] * squares)
    return moments


_QUICK: dict[type, Callable[[FloatArray, FloatArray], FloatArray]] = {
    Laplace: _laplace,
    Gaussian: _gaussian,
}
