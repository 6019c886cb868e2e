"""Gauss–Legendre panels for the Gaussian integrand, in units of σ.

A few panels at a time see only the atoms that matter to them, each weighted relative
to the nearest, so that no digit depends on how far a panel is from all atoms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from skpuffer.core.mixtures._excess import both_excesses
from skpuffer.core.prior import FloatArray, IntArray

# log √2π, which the Gaussian density is divided by.
LOG_ROOT = 0.5 * math.log(2 * math.pi)
# An atom whose density is this many nats below the nearest one's adds nothing.
NEGLIGIBLE = 745.0
# A sum of relative weights below this is out of reach.
LEAST = 1e-250
# Small enough for the cache, and for products on one thread.
_CELLS = 40_000


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms with their masses in two mixtures.

    Attributes
    ----------
    places : ndarray of shape (n,)
        Ascending.
    masses : ndarray of shape (2, n)
    """

    places: FloatArray
    masses: FloatArray


class Panels(NamedTuple):
    """Intervals ``middle ± half``, ascending; shape (p,) each."""

    middle: FloatArray
    half: FloatArray


class Window(NamedTuple):
    """Some panels, and the atoms that matter to them.

    Attributes
    ----------
    rows : slice
        Which panels.
    middle, half, nearest : ndarray of shape (r,)
        The panels, and the atom nearest to each middle.
    places : ndarray of shape (m,)
    masses : ndarray of shape (2, m)
    distance : ndarray of shape (r, m)
        Of each atom from the nearest; zero where the weight has vanished.
    weight : ndarray of shape (r, m)
        The density of each atom at the middle over that of the nearest.
    """

    rows: slice
    middle: FloatArray
    half: FloatArray
    nearest: FloatArray
    places: FloatArray
    masses: FloatArray
    distance: FloatArray
    weight: FloatArray


class Nearby(NamedTuple):
    """What matters to points, shape (r,) each.

    Attributes
    ----------
    nearest : ndarray
        The nearest atom of each.
    low, high : ndarray
        The range of the atoms that matter.
    """

    nearest: FloatArray
    low: IntArray
    high: IntArray

    @classmethod
    def of(cls, atoms: Atoms, points: FloatArray) -> Nearby:
        """Look for the atoms near ascending points."""
        places = atoms.places
        after = np.minimum(np.maximum(places.searchsorted(points), 1), len(places) - 1)
        left, right = places[after - 1], places[after]
        nearest = np.where(points - left <= right - points, left, right)
        away = points - nearest
        reach = np.sqrt(away * away + 2 * NEGLIGIBLE)
        # Made to ascend, so that the ends of a run are those of its first and last.
        from_ = np.minimum.accumulate((points - reach)[::-1])[::-1]
        to = np.maximum.accumulate(points + reach)
        return cls(
            nearest, places.searchsorted(from_), places.searchsorted(to, side="right")
        )

    @property
    def cells(self) -> int:
        """How many atoms matter, in all."""
        return int((self.high - self.low).sum())


def windows(atoms: Atoms, panels: Panels, nearby: Nearby) -> Iterator[Window]:
    """Go through the panels, a few at a time."""
    middle, half = panels
    places = atoms.places
    nearest, low, high = nearby.nearest, nearby.low.tolist(), nearby.high.tolist()
    start = 0
    while start < len(middle):
        stop = start + 1
        while (
            stop < len(middle)
            and (stop + 1 - start) * (high[stop] - low[start]) <= _CELLS
        ):
            stop += 1
        rows = slice(start, stop)
        inside = places[low[start] : high[stop - 1]]
        near = nearest[rows, np.newaxis]
        distance = inside - near
        weight = inside + near
        weight -= 2 * middle[rows, np.newaxis]
        weight *= distance
        weight *= -0.5
        np.exp(weight, out=weight)
        distance *= weight > 0
        masses = atoms.masses[:, low[start] : high[stop - 1]]
        yield Window(
            rows,
            middle[rows],
            half[rows],
            nearest[rows],
            inside,
            masses,
            distance,
            weight,
        )
        start = stop


@cache
def legendre(order: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the Gauss–Legendre rule on [−1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return nodes, weights


def integrate(
    atoms: Atoms, panels: Panels, alpha: float, shift: float, order: int
) -> FloatArray:
    """Return the rule's sums of both excesses, shape (2,).

    Infinite where a density is out of reach. `order` is even.
    """
    total = np.zeros(2)
    nodes, weights = legendre(order)
    for window in windows(atoms, panels, Nearby.of(atoms, panels.middle)):
        moves = window.half[:, np.newaxis] * nodes
        mass = np.empty((2, *moves.shape))
        for node in range(order // 2):
            tilt = moves[:, node, np.newaxis] * window.distance
            np.exp(tilt, out=tilt)
            mass[:, :, node] = window.masses @ (window.weight * tilt).T
            # The mirrored node.
            np.divide(window.weight, tilt, out=tilt)
            mass[:, :, -1 - node] = window.masses @ tilt.T
        if not mass.min() > LEAST:
            return np.full(2, np.inf)
        away = (window.middle - window.nearest)[:, np.newaxis] + moves
        log = np.log(mass, out=mass)
        log -= 0.5 * away * away + (LOG_ROOT + shift)
        excesses = both_excesses(log[0], log[1], alpha)
        total += [float(window.half @ (part @ weights)) for part in excesses]
    return total
