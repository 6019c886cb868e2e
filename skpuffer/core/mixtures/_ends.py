"""Ends of cells that stand for the atoms within, under Laplace noise.

As functions of x, e^{y−x} and e^{x−y} solve f'' = f in units of the scale. So an atom
at distance u from the middle of a cell of half-width h, laid on the two ends with
weights [cosh u / cosh h ± sinh u / sinh h] / 2, gives the same density as ever outside
the cell: at the ends both densities are exact. Within, what the ends alone make of the
cell, (p, q), is too little by (g, k) ≥ 0: the mass that the weights leave over,
1 − cosh u / cosh h for each atom. There g < h e^{3h} p, since the atoms of the cell
are in p, and k likewise. G is convex and its gradient depends on r = p/q alone, hence
G(p+g, q+k) ≤ G(p, q) + α (r^{α−1} − 1) g + (α−1) (1 − r^α) k with r at (p+g, q+k),
which the ends bound; with r at (p, q) it is a lower bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skpuffer.core.mixtures._moments import CellMoments
from skpuffer.core.prior import FloatArray

# In scales: for wider cells too little is gained.
_WIDEST = 1 / 64
_ULP = 2.0**-52


class Ends(NamedTuple):
    """Two distributions on the ends of cells.

    Attributes
    ----------
    places : ndarray of shape (cells + 1,)
    masses : tuple of two ndarrays of shape (cells + 1,)
    rest : ndarray of shape (2, cells)
        What they lack within the cells, as probabilities, from above.
    least : ndarray of shape (2, cells)
        The same from below.
    half : float
        Half the width of a cell, in scales.
    error : float
        Bound on the relative error that all this adds to densities.
    """

    places: FloatArray
    masses: tuple[FloatArray, FloatArray]
    rest: FloatArray
    least: FloatArray
    half: float
    error: float

    @classmethod
    def of(cls, moments: CellMoments, scale: float) -> Ends | None:
        """Lay the atoms on the ends; None where the cells are too wide."""
        width = moments.width / scale
        if width > _WIDEST:
            return None
        half = width / 2
        mass, first, second, third = (
            moments.table[:, degree] * width**degree for degree in range(4)
        )
        # The next terms are below h^4 / 24 of the mass.
        even = (mass + second / 2) / math.cosh(half)
        odd = (first + third / 6) / math.sinh(half)
        cells = mass.shape[1]
        laid = np.zeros((2, cells + 1))
        laid[:, :-1] += (even - odd) / 2
        laid[:, 1:] += (even + odd) / 2
        # cosh h − 1, and a little for the round-off of the moments.
        most = 2 * math.sinh(half / 2) ** 2 * (1 + 1e-8)
        rest: FloatArray = (mass * most - second / 2) / math.cosh(half)
        # What was dropped, and what was added for round-off.
        least = np.maximum(rest - mass * (half**4 / 12 + 2e-8 * half**2), 0.0)
        # Round-off around zero.
        rest, laid = np.maximum(rest, 0.0), np.maximum(laid, 0.0)
        # Round-off of sums, and of places.
        error = half**4 / 6 + _ULP * (20 * moments.most + 1000 + 16 * width * cells)
        return cls(
            moments.width * np.arange(cells + 1),
            (laid[0], laid[1]),
            rest,
            least,
            half,
            error,
        )

    def missing(
        self, log_ratio: FloatArray, error: float, alpha: float, shift: float
    ) -> list[tuple[float, float]]:
        """Bound what the rest adds to the sums of G, from below and above.

        Parameters
        ----------
        log_ratio : ndarray of shape (cells + 1,)
            log p/q at the ends.
        error : float
            Relative error of p and of q there.
        alpha, shift : float
            The sums are lowered by e^shift.

        Returns
        -------
        list of two tuples
            For each direction.
        """
        slack = math.log1p(self.half * math.exp(3 * self.half)) + 2 * error
        bounds = []
        for side in (0, 1):
            there = log_ratio if side == 0 else -log_ratio
            low = np.minimum(there[1:], there[:-1])
            high = np.maximum(there[1:], there[:-1])
            small = self.least[side], self.least[1 - side]
            large = self.rest[side], self.rest[1 - side]
            below = _gradient(low - 2 * error, high + 2 * error, alpha, shift)
            above = _gradient(high + slack, low - slack, alpha, shift)
            bounds.append(
                (_weighed(below, large, small), _weighed(above, small, large))
            )
        return bounds


def _gradient(
    first: FloatArray, second: FloatArray, alpha: float, shift: float
) -> tuple[FloatArray, FloatArray]:
    """Return α (r^{α−1} − 1) and (α−1) (1 − r^α), for log r of either."""
    one = math.exp(-shift)
    with np.errstate(over="ignore"):
        rising = np.exp((alpha - 1) * first - shift) - one
        falling = one - np.exp(alpha * second - shift)
    return alpha * rising, (alpha - 1) * falling


def _weighed(
    factors: tuple[FloatArray, FloatArray],
    where_negative: tuple[FloatArray, FloatArray],
    where_positive: tuple[FloatArray, FloatArray],
) -> float:
    """Sum the factors times masses, which depend on the factors' signs."""
    total = 0.0
    with np.errstate(invalid="ignore"):
        for factor, less, more in zip(
            factors, where_negative, where_positive, strict=True
        ):
            total += float((factor * np.where(factor > 0, more, less)).sum())
    # Infinite times nothing: not known.
    return math.inf if math.isnan(total) else total
