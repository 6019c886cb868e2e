"""Few features for Gram blocks of low rank, where there are such.

Pure. Samples of one or two columns, discrete ones and those with repeated rows have
kernel matrices of a rank far below the number of rows. Features of that rank lose
nothing to working precision, keep more digits than the blocks themselves, and cost
n R² operations instead of n³.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skpuffer.core.prior import FloatArray

# What is left of k(x, x) where a row counts as a combination of others: rounding.
_LEFT = 1e-15
# A rank above a fourth of all rows is not worth it.
_SHARE = 4
# Half-way to that rank this much may be left: a guess, that saves three quarters of a
# vain search. Small ones are run to the end.
_LEFT_HALF_WAY = 1e-2
_SMALL = 32


def low_rank_features(
    k_pp: FloatArray, k_qq: FloatArray, k_qp: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return features of both samples whose inner products are the Gram blocks.

    By pivoted Cholesky decomposition, which takes the row with the largest remainder
    of k(x, x) in turn and needs one row of the kernel matrix for each
    [Harbrecht, Peters, Schneider 2012].

    Parameters
    ----------
    k_pp, k_qq, k_qp : ndarray of shape (n_p, n_p), (n_q, n_q), (n_q, n_p)

    Returns
    -------
    tuple of ndarray of shape (rank, n_p) and (rank, n_q), or None
        One column a row of the samples. None where the rank is above a fourth of all
        rows, or seems to be, or where there is nothing.

    Examples
    --------
    >>> k = np.ones((4, 4))
    >>> first, second = low_rank_features(k, k, k)
    >>> first.shape, second.shape
    ((1, 4), (1, 4))
    >>> low_rank_features(np.eye(4), np.eye(4), np.zeros((4, 4))) is None
    True
    """
    n_p = len(k_pp)

    def row(index: int) -> FloatArray:
        if index < n_p:
            return np.concatenate([k_pp[index], k_qp[:, index]])
        return np.concatenate([k_qp[index - n_p], k_qq[index - n_p]])

    diagonal = np.concatenate([np.diagonal(k_pp), np.diagonal(k_qq)])
    found = pivoted_features(diagonal, row, most=len(diagonal) // _SHARE)
    return None if found is None else (found[:, :n_p], found[:, n_p:])


def pivoted_features(
    diagonal: FloatArray, row: Callable[[int], FloatArray], *, most: int
) -> FloatArray | None:
    """Return features of rows, given the kernel of any of them with all.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        k(x, x).
    row : callable
        From the index of a row to its kernel with all rows, shape (n,).
    most : int
        The highest rank that is worth it.

    Returns
    -------
    ndarray of shape (rank, n), or None
        One column a row; None where the rank is higher, or seems to be, or where
        every k(x, x) is zero.

    Examples
    --------
    >>> x = np.array([1.0, -2.0, 3.0])
    >>> pivoted_features(x**2, lambda i: x[i] * x, most=2)
    array([[ 1., -2.,  3.]])
    """
    left = diagonal.copy()
    largest = float(left.max())
    if not largest > 0:
        return None
    floor = _LEFT * largest
    found: FloatArray = np.empty((most, len(left)))
    for rank in range(most):
        pivot = int(left.argmax())
        remainder = float(left[pivot])
        if remainder <= floor:
            return found[:rank]
        half_way = most > _SMALL and rank == most // 2
        if half_way and remainder > _LEFT_HALF_WAY * largest:
            return None
        new = row(pivot) - found[:rank, pivot] @ found[:rank]
        new /= math.sqrt(remainder)
        found[rank] = new
        left -= new * new
    return None if left.max() > floor else found
