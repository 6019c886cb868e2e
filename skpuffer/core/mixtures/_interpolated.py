"""Few nodes that stand for many atoms: masses laid on interpolation nodes.

The density at y is Σ m f(x) with f(x) = exp(−(y − x)²/2σ²), and f is smooth in x: laid
on nodes with Lagrange weights, which may be negative, masses give every density up to
the interpolation error of f. In two steps: cubic on four nodes for each of 2^16 cells,
once for a pair; then Chebyshev nodes in cells of a quarter σ at most, for each scale.

The k-th derivative of f at distance sσ is f times a Hermite polynomial, at most
(|s| + √k)^k in size, since He_k(s) = E (s + iZ)^k; so the errors are relative.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from skpuffer.core.mixtures._moments import CELLS, CellMoments
from skpuffer.core.prior import FloatArray

SPACINGS = 3 * CELLS
_NODES = 16
_CELL = 0.25
_MAX_SIZE = 2**12
_ONE_THREAD = 2**18


@dataclass(frozen=True, eq=False)
class EqualNodes:
    """Two mixtures on equally spaced nodes, by piecewise cubic interpolation.

    Attributes
    ----------
    low, spacing : float
        The first node, and the distance of neighbours.
    masses : ndarray of shape (2, SPACINGS + 1)
    """

    low: float
    spacing: float
    masses: FloatArray

    @classmethod
    def of(cls, moments: CellMoments) -> EqualNodes:
        """Lay the masses of two one-column distributions on nodes."""
        masses = np.array([_lay(table) for table in moments.table])
        return cls(moments.low, moments.width / 3, masses)

    def error(self, scale: float, reach: float) -> float:
        """Bound the relative error of densities up to `reach` scales away."""
        width = 3 * self.spacing / scale
        # |u(u−1)(u−2)(u−3)| ≤ 1 spacing⁴ on a cell, over 4!.
        return _derivative(4, reach, width) * (width / 3) ** 4 / 24

    def condensed(self, scale: float) -> tuple[FloatArray, FloatArray]:
        """Return Chebyshev nodes in units of the scale from `low`, and their masses.

        Nodes of shape (n,), ascending; masses of shape (2, n).
        """
        size = self._cell_size(scale)
        count = -(-self.masses.shape[1] // size)
        padded = np.zeros((2, count * size))
        padded[:, : self.masses.shape[1]] = self.masses
        local, weights = _chebyshev(size)
        rows = padded.reshape(2 * count, size)
        few = max(_ONE_THREAD // (size * _NODES), 1)
        # Small products: large ones would wait for threads of other processes.
        parts = [rows[i : i + few] @ weights for i in range(0, len(rows), few)]
        masses = np.concatenate(parts).reshape(2, -1)
        starts = np.arange(count) * size
        places = (starts[:, np.newaxis] + local).ravel() * (self.spacing / scale)
        return places, masses

    def worth(self, scale: float) -> int:
        """Return how many Chebyshev nodes there would be."""
        size = self._cell_size(scale)
        return _NODES * (1 + SPACINGS // size) if size > 2 * _NODES else SPACINGS

    def _cell_size(self, scale: float) -> int:
        return int(min(max(_CELL * scale / self.spacing, 1.0), _MAX_SIZE))


def condensed_error(reach: float) -> float:
    """Bound the relative error that Chebyshev nodes add, likewise."""
    return (
        _derivative(_NODES, reach, _CELL)
        * 2
        * (_CELL / 4) ** _NODES
        / math.factorial(_NODES)
    )


def _derivative(order: int, reach: float, width: float) -> float:
    """Bound |f^(order)| within a cell over f at any point of it."""
    far = reach + width
    return (far + math.sqrt(order)) ** order * math.exp(min(width * far, 700.0))


def _lay(table: FloatArray) -> FloatArray:
    """Sum up cubic Lagrange weights on the nodes, from the moments of each cell."""
    # Lagrange polynomials by powers.
    vander = np.vander(np.array([-3, -1, 1, 3]) / 6, increasing=True)
    at_nodes = np.linalg.inv(vander).T @ table
    laid = np.zeros(SPACINGS + 1)
    for k in range(4):
        laid[k : k + 3 * CELLS : 3] += at_nodes[k]
    return laid


@cache
def _chebyshev(size: int) -> tuple[FloatArray, FloatArray]:
    """Return Chebyshev nodes on [0, size − 1], and Lagrange weights (size, nodes)."""
    angle = (2 * np.arange(_NODES) + 1) * np.pi / (2 * _NODES)
    nodes = -np.cos(angle)
    sign = np.where(np.arange(_NODES) % 2, -1.0, 1.0) * np.sin(angle)
    at = np.linspace(-1, 1, size)
    apart = at[:, np.newaxis] - nodes
    apart[np.abs(apart) < 1e-14] = 1e-14
    ratio = sign / apart
    weights = ratio / ratio.sum(axis=1, keepdims=True)
    return (nodes + 1) * (size - 1) / 2, weights
