"""Moments of many atoms in equal cells, from which both laws take fewer nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skpuffer.core.mixtures._atomic import Atomic
from skpuffer.core.prior import FloatArray

CELLS = 2**16
DEGREES = 4


@dataclass(frozen=True, eq=False)
class CellMoments:
    """Two distributions by their moments about the middles of cells.

    Attributes
    ----------
    low, width : float
        The left end of the first cell, and the width of each.
    table : ndarray of shape (2, DEGREES, cells)
        Σ mass · u^degree, u the distance from the middle in widths.
    most : int
        The largest number of atoms that one distribution has in a cell.
    """

    low: float
    width: float
    table: FloatArray
    most: int

    @classmethod
    def of(cls, parts: Sequence[Atomic], cells: int = CELLS) -> CellMoments:
        """Sum up two one-column distributions, which have at least two atoms."""
        low = min(float(part.places[0]) for part in parts)
        high = max(float(part.places[-1]) for part in parts)
        found = [_moments(part, low, high, cells) for part in parts]
        table = np.array([moments for moments, _ in found])
        return cls(low, (high - low) / cells, table, max(most for _, most in found))


def _moments(
    part: Atomic, low: float, high: float, cells: int
) -> tuple[FloatArray, int]:
    inverse = cells / (high - low)
    edges = low + np.arange(1, cells) / inverse
    starts = np.concatenate([[0], part.places.searchsorted(edges)])
    counts = np.diff(starts, append=len(part.places))
    place = part.places - low
    place *= inverse
    place -= np.repeat(np.arange(cells) + 0.5, counts)
    weighted = not (part.mass == part.mass[0]).all()
    power = part.probabilities if weighted else np.ones(len(place))
    filled = np.flatnonzero(counts)
    table = np.zeros((DEGREES, cells))
    for degree in range(DEGREES):
        table[degree, filled] = np.add.reduceat(power, starts[filled])
        if degree < DEGREES - 1:
            power = power * place
    if not weighted:
        table *= float(part.probabilities[0])
    return table, int(counts.max())
