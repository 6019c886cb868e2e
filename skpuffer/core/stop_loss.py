"""A tighter population bound for convex costs, by concentration of the shifts.

Bands let every quantile be as bad as it can be at the same time. Means cannot be: here
the mean excess of the shifts over some thresholds is bounded by what one fixed
function of the data may deviate. Pure; imports numpy and the neighbouring modules.

**Why it holds.** Let D(u) = |Q(u) − Q'(u)| for the two populations, and J(t) =
E (D − t)⁺, which is the optimal transport cost for c(x, y) = (|x − y| − t)⁺, since c
is convex in x − y.

1. Two potentials. Join the points (Q(u), Q'(u)) by straight segments where a quantile
   function jumps: a path that never falls in either coordinate. With c' in {−1, 0, 1}
   the slope of c in x − y, let f have the slope c'(x − y) in x along the path, and g
   the slope −c'(x − y) in y. Then f(x) + g(y) = c(x, y) on the path, and ≤ c(x, y) for
   any x and y on it, as c' does not fall. So E f + E' g = J(t), and under the *sample*
   means Ê f + Ê' g ≤ Ĵ(t), the cost of the sample's own coupling. Therefore
   J(t) − Ĵ(t) ≤ (E − Ê) f + (E' − Ê') g, with f and g fixed by the populations.
2. How much they vary. On a segment |x − y| is convex, so f is constant except where an
   end of it has D > t. Where the bands hold, that is inside the intervals [lo of the
   cell before, up of the cell after] of cells with d̄ > t. With ρ(x) the length of
   their union below x, |f(x) − f(x')| ≤ |ρ(x) − ρ(x')|: the variance of f is at most
   E (ρ(X) − r)² for any r, which the band bounds, and its range at most the length.
3. Bennett's inequality bounds the sum of the two deviations, at a level for each
   threshold; the thresholds are fixed by the declared range alone.
4. J is convex with slopes in [−1, 0]: what lies below the bounds at the thresholds and
   at the band's own steps lies below their convex envelope, which is the mean excess
   of a distribution. That distribution is the bound: no expectation of a convex
   increasing function of D is larger than under it, nor is the largest D.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skpuffer.core.coupling import ShiftBound
from skpuffer.core.prior import FloatArray

# Thresholds: zero and fractions of the declared range in geometric progression.
_THRESHOLDS = np.append(0.0, np.exp2(np.arange(-7.0, 0.0)))
# No shift of a bound is zero, so that one grid step more may be added to each.
_SMALLEST = 2.0**-40
_ROUND_OFF = 1e-11


class Cells(NamedTuple):
    """Two bands on the cells of (0, 1] on which all four bounds are constant.

    Attributes
    ----------
    mass : ndarray of shape (m,)
        Length of each cell.
    lower, upper : tuple of two ndarrays of shape (m,)
        Bounds on the two quantile functions.
    distance : ndarray of shape (m,)
        The largest distance that they allow.
    """

    mass: FloatArray
    lower: tuple[FloatArray, FloatArray]
    upper: tuple[FloatArray, FloatArray]
    distance: FloatArray


def tightened(
    cells: Cells,
    sample: ShiftBound,
    sizes: tuple[int, int],
    *,
    span: float,
    error: float,
) -> ShiftBound:
    """Bound the shifts of two populations for convex increasing costs.

    Parameters
    ----------
    cells : Cells
        Of two bands.
    sample : ShiftBound
        The shifts of the monotone coupling of the two samples.
    sizes : tuple of two int
        Rows in each sample.
    span : float
        Width of the declared range.
    error : float
        Probability with which this may fail where the bands hold.

    Returns
    -------
    ShiftBound
        Grouped; its expectations of convex increasing functions are never below the
        populations', nor is its largest shift.
    """
    knots = np.append(cells.distance, _THRESHOLDS * span)
    knots = knots[knots <= cells.distance.max()]
    knots = np.unique(np.maximum(knots, _SMALLEST * span))
    excess = _mean_excess(cells.distance, cells.mass, knots)
    log_error = math.log(len(_THRESHOLDS) / error)
    for threshold in (_THRESHOLDS * span).tolist():
        place = int(np.searchsorted(knots, threshold))
        if place < len(knots) - 1:
            beyond = np.maximum(sample.shifts[:, 0] - threshold, 0.0)
            bound = float((sample.mass * beyond).sum())
            bound += _deviation(cells, sizes, threshold, log_error)
            excess[place] = min(excess[place], bound * (1 + _ROUND_OFF))
    return _distribution(knots, excess)


def _deviation(
    cells: Cells, sizes: tuple[int, int], threshold: float, log_error: float
) -> float:
    """Bound how far two sample means may fall short, by Bennett's inequality."""
    active = cells.distance > threshold
    parts = [
        (n, *_spread(lower, upper, cells.mass, active))
        for n, lower, upper in zip(sizes, cells.lower, cells.upper, strict=True)
    ]

    # Any multiplier gives a bound; these are dense enough to find nearly the least.
    span = max(length / n for n, _, length in parts)
    multiplier = np.exp2(np.linspace(-24, 6, 300)) / span
    exponent = np.full_like(multiplier, log_error)
    for n, variance, length in parts:
        if length > 0:
            reach = multiplier * (length / n)
            exponent += n * variance / length**2 * (np.expm1(reach) - reach)
    return float((exponent / multiplier).min())


def _spread(
    lower: FloatArray, upper: FloatArray, mass: FloatArray, active: np.ndarray
) -> tuple[float, float]:
    """Return a bound on the variance and the range of a potential."""
    before = np.append(lower[:1], lower[:-1])[active]
    after = np.append(upper[1:], upper[-1:])[active]
    # Both ends rise, so an interval that starts beyond all earlier ends is a new one.
    new = np.append(True, before[1:] > after[:-1])
    starts = before[new]
    ends = after[np.append(new[1:], True)]
    length = np.cumsum(ends - starts)
    places = np.column_stack([starts, ends]).ravel()
    below = np.column_stack([np.append(0.0, length[:-1]), length]).ravel()
    least, most = np.interp(lower, places, below), np.interp(upper, places, below)
    middle, half = (least + most) / 2, (most - least) / 2
    centre = float((mass * middle).sum())
    variance = float((mass * np.square(np.abs(middle - centre) + half)).sum())
    return variance * (1 + _ROUND_OFF), float(length[-1]) * (1 + _ROUND_OFF)


def _mean_excess(shifts: FloatArray, mass: FloatArray, knots: FloatArray) -> FloatArray:
    """Return E (shift − knot)⁺ at increasing knots, which hold all greater shifts."""
    order = np.argsort(shifts)
    tails = np.append(np.cumsum(mass[order][::-1])[::-1], 0.0)
    beyond = tails[np.searchsorted(shifts[order], knots, side="right")]
    # A sum of positive terms from the top: small values keep their digits.
    rise = (beyond[:-1] * np.diff(knots))[::-1]
    excess: FloatArray = np.append(np.cumsum(rise)[::-1], 0.0) * (1 + _ROUND_OFF)
    return excess


def _distribution(knots: FloatArray, excess: FloatArray) -> ShiftBound:
    """Return a distribution whose mean excess is at least the convex envelope."""
    # Slopes are at least −1; the last term is above the round-off of this line.
    steepest = np.minimum.accumulate((excess + knots)[::-1])[::-1] - knots
    excess = np.minimum(excess, steepest + 2**-50 * (excess + knots))
    hull = _convex_hull(knots.tolist(), excess.tolist())
    knots, excess = knots[hull], excess[hull]
    slopes = np.diff(excess) / np.diff(knots)
    mass = np.diff(np.clip(slopes, -1.0, 0.0), prepend=-1.0, append=0.0)
    mass = np.maximum(mass, 0.0)
    # Slopes are differences; what they lost to round-off is given back to all.
    reached = _mean_excess(knots, mass, knots)[:-1]
    short = np.max(excess[:-1] / reached, initial=1.0)
    mass *= float(short) * (1 + 3 * _ROUND_OFF)
    kept = mass > 0
    return ShiftBound(knots[kept, np.newaxis], mass[kept], grouped=True)


def _convex_hull(x: list[float], y: list[float]) -> list[int]:
    """Return the positions of the points on the lower convex hull, x increasing."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2:]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return hull
