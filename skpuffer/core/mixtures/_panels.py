"""Gauss–Legendre panels for the Gaussian integrand, with a proven error each.

Everything is in units of σ. A panel y₀ ± H is integrated with `ORDER` nodes. If f is
analytic in the ellipse around it with semi-axes AH and BH, A, B = (ρ ± 1/ρ)/2, and
|f| ≤ M there, its Chebyshev coefficients are at most 2Mρ^−k, and a rule that is exact
up to degree 2·ORDER − 1 errs by less than 4.1 M H ρ^(−2·ORDER) / (1 − ρ^−2).

For a mixture p and real x, y: |p(x+iy)| ≤ e^{y²/2} p(x), and
|q(x+iy)| ≥ e^{y²/2} q(x) (1 − y² V/2), where V is a second moment of the atom given
x; so F = p^α q^{1−α} has no singularity where y² V < 2 for both mixtures, and
|F(x+iy)| ≤ e^{y²/2} F(x) (1 − y² V/2)^{1−α}. On the real line log p + x²/2 is convex:
p is below the chord of its values at y₀ ± AH, q above its tangent at y₀. The moment V
is taken about the mean at y₀: there the normaliser of the tilted moments is at least
one (Jensen), and the moment is convex in the tilt, so that its ends bound it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skpuffer.core.mixtures._excess import both_excesses
from skpuffer.core.prior import FloatArray

ORDER = 20
_RHO = 3.0
_A, _B = (_RHO + 1 / _RHO) / 2, (_RHO - 1 / _RHO) / 2
_FACTOR = 4.1 * _RHO ** (-2 * ORDER) / (1 - _RHO**-2)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(ORDER)
_LOG_ROOT = 0.5 * math.log(2 * math.pi)
# An atom whose density is this many nats below another's adds nothing.
NEGLIGIBLE = 745.0
_LEAST = 1e-250
# What a weight that vanished could be, tilted, stays e^-70 of that.
_MAX_TILT = 100.0
_CELLS = 200_000


@dataclass(frozen=True, eq=False)
class Atoms:
    """Atoms in units of σ, ascending, with their masses in two mixtures.

    Attributes
    ----------
    places : ndarray of shape (n,)
    masses : ndarray of shape (n, 2)
    """

    places: FloatArray
    masses: FloatArray


class Checked(NamedTuple):
    """What is known of panels before they are integrated, both directions.

    Attributes
    ----------
    error : ndarray of shape (panels, 2)
        Bound on the error of the rule; infinite where none is proven.
    whole : ndarray of shape (panels, 2)
        Bound on the integral of the excess itself.
    """

    error: FloatArray
    whole: FloatArray


class _Window(NamedTuple):
    """Panels with the atoms that matter to them."""

    rows: slice
    distance: FloatArray
    weight: FloatArray
    nearest: FloatArray
    places: FloatArray
    masses: FloatArray


def windows(atoms: Atoms, middle: FloatArray) -> Iterator[_Window]:
    """Go through panels, in ascending order, a few at a time.

    Weights are relative to the nearest atom, so that nothing depends on how far a
    panel is from all of them.
    """
    places = atoms.places
    after = np.clip(np.searchsorted(places, middle), 1, max(len(places) - 1, 1))
    left, right = places[after - 1], places[np.minimum(after, len(places) - 1)]
    nearest = np.where(middle - left <= right - middle, left, right)
    reach = np.sqrt(np.square(middle - nearest) + 2 * NEGLIGIBLE)
    low = np.searchsorted(places, middle - reach)
    high = np.searchsorted(places, middle + reach, side="right")
    start = 0
    while start < len(middle):
        stop = start + 1
        from_, to = low[start], high[start]
        while stop < len(middle):
            wider = min(from_, low[stop]), max(to, high[stop])
            if (stop + 1 - start) * (wider[1] - wider[0]) > _CELLS:
                break
            (from_, to), stop = wider, stop + 1
        rows = slice(start, stop)
        inside = places[from_:to]
        near, centre = nearest[rows, np.newaxis], middle[rows, np.newaxis]
        distance = inside - near
        weight = np.exp(-0.5 * distance * (inside + near - 2 * centre))
        distance[weight == 0] = 0.0
        yield _Window(
            rows, distance, weight, nearest[rows], inside, atoms.masses[from_:to]
        )
        start = stop


def check(
    atoms: Atoms, middle: FloatArray, half: FloatArray, alpha: float, shift: float
) -> Checked:
    """Bound error and value of panels."""
    error, whole = np.full((2, len(middle), 2), np.inf)
    for window in windows(atoms, middle):
        rows = window.rows
        error[rows], whole[rows] = _check(
            window, middle[rows], half[rows], alpha, shift
        )
    return Checked(error, whole)


def _check(
    window: _Window,
    middle: FloatArray,
    half: FloatArray,
    alpha: float,
    shift: float,
) -> tuple[FloatArray, FloatArray]:
    # Moments of order 0, 1 and 2 of both mixtures about the window's middle.
    origin = window.places[len(window.places) // 2]
    x = (window.places - origin)[:, np.newaxis]
    powers = np.hstack([window.masses, window.masses * x, window.masses * x * x])
    reach = (_A * half)[:, np.newaxis]
    with np.errstate(all="ignore"):
        tilt = np.exp(reach * window.distance)
        here = window.weight @ powers
        there = (window.weight * tilt) @ powers
        back = (window.weight / tilt) @ powers
        mass = here[:, :2]
        usable = (mass > _LEAST).all(axis=1) & (_A * half * _extent(window, middle) < _MAX_TILT)
        offset = (window.nearest - origin)[:, np.newaxis]
        mean = here[:, 2:4] / mass
        height = _B * half
        damping = np.empty((len(half), 2))
        log_up, log_down = np.log(there[:, :2]), np.log(back[:, :2])
        for side in (0, 1):
            about = mean[:, side]
            spread = 0.0
            for moments, sign in ((there, 1.0), (back, -1.0)):
                second = (
                    moments[:, 4 + side]
                    - 2 * about * moments[:, 2 + side]
                    + about * about * moments[:, side]
                )
                # Round-off of the difference of squares.
                second += 1e-14 * (
                    moments[:, 4 + side] + about * about * moments[:, side]
                )
                tilted = np.exp(-sign * _A * half * (about - offset[:, 0]))
                spread = np.maximum(spread, second * tilted / mass[:, side])
            damping[:, side] = 1 - 0.5 * height**2 * (1.02 * spread + 1e-9)
        smooth = usable & (damping > 1e-3).all(axis=1)
        return _bounds(
            window, middle, half, alpha, shift, np.log(mass), mean - offset,
            log_up, log_down, damping, smooth,
        )  # fmt: skip


def _extent(window: _Window, middle: FloatArray) -> FloatArray:
    """Return how far from the nearest atom weights do not vanish."""
    away = window.nearest - middle
    root = np.sqrt(away * away + 2 * NEGLIGIBLE)
    right = np.minimum(root - away, window.places[-1] - window.nearest)
    left = np.minimum(root + away, window.nearest - window.places[0])
    return np.maximum(left, right)


def _bounds(
    window: _Window,
    middle: FloatArray,
    half: FloatArray,
    alpha: float,
    shift: float,
    log_mass: FloatArray,
    slope: FloatArray,
    log_up: FloatArray,
    log_down: FloatArray,
    damping: FloatArray,
    smooth: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Turn values at three points of each panel into bounds, both directions."""
    away = middle - window.nearest
    reach = _A * half
    chord = (log_up - log_down) / (2 * reach)[:, np.newaxis]
    level = (log_up + log_down) / 2
    base = -0.5 * away * away - _LOG_ROOT - shift

    def top(constant: FloatArray, incline: FloatArray) -> FloatArray:
        incline = incline - away
        best = np.clip(incline, -reach, reach)
        return np.asarray(np.exp(base + constant + incline * best - best * best / 2))

    highest = [top(level[:, side], chord[:, side]) for side in (0, 1)]
    grown = np.exp((_B * half) ** 2 / 2)
    error, whole = np.empty((2, len(half), 2))
    for side, other in ((0, 1), (1, 0)):
        power = top(
            alpha * level[:, side] - (alpha - 1) * log_mass[:, other],
            alpha * chord[:, side] - (alpha - 1) * slope[:, other],
        )
        linear = alpha * highest[side] + (alpha - 1) * highest[other]
        large = power * damping[:, other] ** (1 - alpha) + linear
        error[:, side] = _FACTOR * half * grown * large
        whole[:, side] = 2 * half * (power + (alpha - 1) * highest[other])
    error[~smooth] = np.inf
    return np.nan_to_num(error, nan=np.inf), np.nan_to_num(whole, nan=np.inf)


def integrate(
    atoms: Atoms, middle: FloatArray, half: FloatArray, alpha: float, shift: float
) -> tuple[FloatArray, FloatArray]:
    """Return the rule's sums of both excesses, shape (2,); infinite out of reach."""
    total = np.zeros(2)
    for window in windows(atoms, middle):
        width = half[window.rows]
        away = middle[window.rows] - window.nearest
        for node, weight in zip(
            _NODES[ORDER // 2 :], _WEIGHTS[ORDER // 2 :], strict=True
        ):
            move = node * width
            tilt = np.exp(move[:, np.newaxis] * window.distance)
            for sign in (1.0, -1.0):
                tilted = window.weight * tilt if sign > 0 else window.weight / tilt
                mass = tilted @ window.masses
                if not mass.min() > _LEAST:
                    return np.full(2, np.inf)
                common = -0.5 * np.square(away + sign * move) - _LOG_ROOT - shift
                log = np.log(mass) + common[:, np.newaxis]
                parts = both_excesses(log[:, 0], log[:, 1], alpha)
                total += [weight * float(width @ part) for part in parts]
    return total
