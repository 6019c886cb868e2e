"""The proven error of a Gauss–Legendre panel, and bounds where nothing matters.

A panel y₀ ± H is integrated with m nodes. If f is analytic in the ellipse around it
with semi-axes AH and BH, A, B = (ρ ± 1/ρ)/2, and |f| ≤ M there, its Chebyshev
coefficients are at most 2Mρ^−k, and a rule that is exact up to degree 2m − 1 errs by
less than 4.1 M H ρ^−2m / (1 − ρ^−2).

For a mixture p and real x, y: |p(x+iy)| ≤ e^{y²/2} p(x), and
|q(x+iy)| ≥ e^{y²/2} q(x) (1 − y² V/2), where V is a second moment of the atom given
x; so F = p^α q^{1−α} has no singularity where y² V < 2 for both mixtures, and
|F(x+iy)| ≤ e^{y²/2} F(x) (1 − y² V/2)^{1−α}. On the real line log p + x²/2 is convex:
p is below the chord of its values at y₀ ± AH, q above its tangent at y₀. The moment V
is taken about the mean at y₀: there the normaliser of the tilted weights is at least
one (Jensen), and the tilted moment is convex in the tilt, so that its ends bound it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skpuffer.core.mixtures._panels import (
    LEAST,
    LOG_ROOT,
    NEGLIGIBLE,
    Atoms,
    Nearby,
    Panels,
    Window,
    windows,
)
from skpuffer.core.prior import FloatArray

_RHO = 3.0
_A, _B = (_RHO + 1 / _RHO) / 2, (_RHO - 1 / _RHO) / 2
# What vanished among the weights stays, tilted by e^this, below e^-70 of `LEAST`.
_MAX_TILT = 100.0
# Covers round-off of the moments, and of interpolated atoms.
_SPREAD_FACTOR, _SPREAD_TERM = 1.02, 1e-5


class Checked(NamedTuple):
    """What is known of panels before they are integrated, in both directions.

    Attributes
    ----------
    error : ndarray of shape (p, 2)
        Bound on the error of the rule; infinite where none is proven.
    whole : ndarray of shape (p, 2)
        Bound on the integral of the excess itself.
    """

    error: FloatArray
    whole: FloatArray


class _Points(NamedTuple):
    """Log sums of relative weights, shape (r, 2): one column a mixture.

    At the middle, at the right and at the left end of the ellipse; and the mean of
    the atom at the middle, less the nearest one.
    """

    middle: FloatArray
    right: FloatArray
    left: FloatArray
    mean: FloatArray


def check(
    atoms: Atoms,
    panels: Panels,
    nearby: Nearby,
    alpha: float,
    shift: float,
    order: int,
) -> Checked:
    """Bound error and value of panels."""
    error, whole = np.full((2, len(panels.middle), 2), np.inf)
    factor = 4.1 * _RHO ** (-2 * order) / (1 - _RHO**-2)
    with np.errstate(all="ignore"):
        for window in windows(atoms, panels, nearby):
            points, damping = _moments(atoms, window)
            rows = window.rows
            error[rows], whole[rows] = _bounds(
                window, points, damping, alpha, shift, factor
            )
    # What is not a number is not known.
    error[np.isnan(error)] = np.inf
    whole[np.isnan(whole)] = np.inf
    return Checked(error, whole)


def _moments(atoms: Atoms, window: Window) -> tuple[_Points, FloatArray]:
    """Evaluate a window's panels, and bound 1 − y² V/2; not a number out of reach."""
    origin = window.places[len(window.places) // 2]
    x = window.places - origin
    # Moments of order 0, 1 and 2 of both mixtures.
    powers = np.concatenate([window.masses, window.masses * x, window.masses * x * x]).T
    tilt = np.exp((_A * window.half)[:, np.newaxis] * window.distance)
    here = window.weight @ powers
    right = (window.weight * tilt) @ powers
    left = (window.weight / tilt) @ powers
    mass = here[:, :2]
    mean = here[:, 2:4] / mass
    from_nearest = mean - (window.nearest - origin)[:, np.newaxis]
    change = np.exp(-(_A * window.half)[:, np.newaxis] * from_nearest)
    spread = np.maximum(
        _second(right, mean) * change / mass, _second(left, mean) / change / mass
    )
    height = (_B * window.half)[:, np.newaxis]
    damping = 1 - 0.5 * height * height * (_SPREAD_FACTOR * spread + _SPREAD_TERM)
    known = _vanished(atoms, window) < _MAX_TILT - NEGLIGIBLE
    for sums in (here, right, left):
        known &= (sums[:, :2] > LEAST).all(axis=1)
    damping[~known] = np.nan
    points = _Points(
        np.log(mass), np.log(right[:, :2]), np.log(left[:, :2]), from_nearest
    )
    return points, damping


def _second(moments: FloatArray, mean: FloatArray) -> FloatArray:
    """Return second moments about the mean, their round-off included."""
    square, cross = moments[:, 4:], 2 * mean * moments[:, 2:4]
    level = mean * mean * moments[:, :2]
    return np.asarray(square - cross + level + 1e-13 * (square + level))


def _vanished(atoms: Atoms, window: Window) -> FloatArray:
    """Return the log of what an atom whose weight vanished can weigh in the ellipse.

    Of those on one side that is most the nearest one's, at the end of the ellipse.
    """
    places, middle, nearest = atoms.places, window.middle, window.nearest
    away = middle - nearest
    root = np.sqrt(away * away + 2 * NEGLIGIBLE)
    most = np.full(len(middle), -np.inf)
    before = places.searchsorted(middle - root) - 1
    after = places.searchsorted(middle + root, side="right")
    for index in (before, after):
        there = (index >= 0) & (index < len(places))
        place = places[np.where(there, index, 0)]
        distance = place - nearest
        weight = -0.5 * distance * (place + nearest - 2 * middle)
        weight += _A * window.half * np.abs(distance)
        most = np.maximum(most, np.where(there, weight, -np.inf))
    return most


def _bounds(
    window: Window,
    points: _Points,
    damping: FloatArray,
    alpha: float,
    shift: float,
    factor: float,
) -> tuple[FloatArray, FloatArray]:
    """Turn values at three points of each panel into bounds, for both directions."""
    half = window.half[:, np.newaxis]
    away = (window.middle - window.nearest)[:, np.newaxis]
    reach = _A * half
    base = -0.5 * away * away - LOG_ROOT - shift
    level = (points.right + points.left) / 2
    chord = (points.right - points.left) / (2 * reach)

    def highest(constant: FloatArray, slope: FloatArray) -> FloatArray:
        """Maximise e^{base + constant + slope t − away t − t²/2} over the ellipse."""
        best = np.minimum(np.maximum(slope - away, -reach), reach)
        return np.asarray(np.exp(base + constant + best * (slope - away - 0.5 * best)))

    # Columns: the mixture whose power is α; reversed, the other one.
    other = slice(None, None, -1)
    density = highest(level, chord)
    power = highest(
        alpha * level - (alpha - 1) * points.middle[:, other],
        alpha * chord - (alpha - 1) * points.mean[:, other],
    )
    smooth = np.all(damping > 1e-3, axis=1, keepdims=True)
    large = power * damping[:, other] ** (1 - alpha)
    large += alpha * density + (alpha - 1) * density[:, other]
    grown = np.exp(np.square(_B * half) / 2)
    error = np.where(smooth, factor * half * grown * large, np.inf)
    known = np.all(np.isfinite(damping), axis=1, keepdims=True)
    whole = 2 * half * (power + (alpha - 1) * density[:, other])
    return error, np.where(known, whole, np.inf)
