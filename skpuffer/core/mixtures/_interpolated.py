"""Few nodes that stand for many atoms: masses laid on interpolation nodes.

The density at y is Σ m f(x) with f(x) = exp(−(y − x)²/2σ²), and f is smooth in x: laid
on nodes with Lagrange weights, which may be negative, masses give every density up to
the interpolation error of f. In two steps: cubic on 2^17 equal spacings, once for a
pair; then Chebyshev nodes in cells of a quarter σ at most, for each scale.

The k-th derivative of f at distance sσ is f times a Hermite polynomial, at most
(|s| + √k)^k in size, since He_k(s) = E (s + iZ)^k; so the errors are relative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from skpuffer.core.mixtures._atomic import Atomic
from skpuffer.core.prior import FloatArray

SPACINGS = 3 * 2**16
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
    def of(cls, parts: Sequence[Atomic]) -> EqualNodes:
        """Lay the masses of two one-column distributions on nodes."""
        low = min(float(part.places[0]) for part in parts)
        high = max(float(part.places[-1]) for part in parts)
        spacing = (high - low) / SPACINGS
        return cls(low, spacing, np.array([_lay(part, low, high) for part in parts]))

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


def _lay(part: Atomic, low: float, high: float) -> FloatArray:
    """Sum up cubic Lagrange weights on the nodes, from moments in each cell."""
    cells = SPACINGS // 3
    inverse = cells / (high - low)
    edges = low + np.arange(1, cells) / inverse
    ends = np.searchsorted(part.places, edges)
    starts = np.concatenate([[0], ends])
    counts = np.diff(starts, append=len(part.places))
    # In spacings from the middle of the cell.
    place = part.places - low
    place *= inverse
    place -= np.repeat(np.arange(cells) + 0.5, counts)
    place *= 3.0
    weighted = not (part.mass == part.mass[0]).all()
    power = part.probabilities if weighted else np.ones(len(place))
    filled = np.flatnonzero(counts)
    table = np.zeros((4, cells))
    for degree in range(4):
        table[degree, filled] = np.add.reduceat(power, starts[filled])
        if degree < 3:
            power = power * place
    if not weighted:
        table *= float(part.probabilities[0])
    # Lagrange polynomials at −3/2, −1/2, 1/2, 3/2, by powers.
    vander = np.vander([-1.5, -0.5, 0.5, 1.5], increasing=True)
    at_nodes = np.linalg.inv(vander).T @ table
    laid = np.zeros(SPACINGS + 1)
    for k in range(4):
        laid[k : k + 3 * cells : 3] += at_nodes[k]
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
