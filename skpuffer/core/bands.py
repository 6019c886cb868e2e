"""Bands that hold for the population, from a sample and declared bounds.

Pure: from two conditionals to a `ShiftBound` that dominates the shifts of the *true*
quantile functions with a stated confidence. The exact bounds on uniform order
statistics come from `crossing`, a tighter bound for convex costs from `stop_loss`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skpuffer.core.coupling import ShiftBound, couple, distance_up
from skpuffer.core.crossing import rank_bounds
from skpuffer.core.prior import Conditional, FloatArray
from skpuffer.core.stop_loss import Cells, tightened


class Band(NamedTuple):
    """A lower and an upper bound on a quantile function, as steps.

    Attributes
    ----------
    upper_levels, upper_values : ndarray of shape (m,) and (m + 1,)
        Q(u) ≤ ``upper_values[j]`` for u ≤ ``upper_levels[j]``; the last value, the
        declared maximum, beyond.
    lower_levels, lower_values : ndarray of shape (m,) and (m + 1,)
        Q(u) ≥ ``lower_values[j + 1]`` for u > ``lower_levels[j]``; the first value,
        the declared minimum, below.
    """

    upper_levels: FloatArray
    upper_values: FloatArray
    lower_levels: FloatArray
    lower_values: FloatArray


def quantile_band(
    conditional: Conditional, *, low: float, high: float, error: float
) -> Band:
    """Bound a population's quantile function at all levels at once.

    Write the sample as X_i = Q(U_i) with U_i independent and uniform, Q the true
    quantile function and F the distribution function: X_(i) = Q(U_(i)), since Q does
    not fall. F(Q(u)) ≥ u gives F(X_(i)) ≥ U_(i), and P(X < Q(u)) ≤ u gives
    P(X < X_(i)) ≤ U_(i), whether F is continuous or not. So where L_i ≤ U_(i) ≤ H_i,
    F(X_(i)) ≥ L_i, hence Q(u) ≤ X_(i) for u ≤ L_i; and P(X < X_(i)) ≤ H_i, hence
    Q(u) ≥ X_(i) for u > H_i. `rank_bounds` makes all of them hold together.

    Parameters
    ----------
    conditional : Conditional
        One column, of unweighted rows.
    low, high : float
        Declared range, which the values lie in.
    error : float
        Probability with which the band may fail.

    Returns
    -------
    Band

    Raises
    ------
    ValueError
        There are weights or several columns, or a value is outside the range.

    Examples
    --------
    >>> rows = Conditional.from_rows([[float(i)] for i in range(1, 100)])
    >>> band = quantile_band(rows, low=0, high=120, error=0.05)
    >>> band.upper_values[-2:], band.lower_values[:2]
    (array([ 99., 120.]), array([0., 1.]))
    """
    if conditional.support.shape[1] != 1:
        raise ValueError("a band needs a single column")
    n, values = conditional.n_rows, conditional.support[:, 0]
    copies, rest = divmod(n, conditional.total)
    if rest or conditional.weight != n:
        raise ValueError("a band needs rows without weights")
    if not (low < high and low <= values[0] and values[-1] <= high):
        raise ValueError(
            f"values from {values[0]:g} to {values[-1]:g} are outside [{low:g}, {high:g}]"
        )
    ranks, lower, upper = rank_bounds(n, error)
    ends = np.cumsum(conditional.mass) * copies
    chosen = values[np.searchsorted(ends, ranks)]
    return Band(lower, np.append(chosen, high), upper, np.append(low, chosen))


def population_bound(
    first: Conditional,
    second: Conditional,
    *,
    low: float,
    high: float,
    beta_first: float,
    beta_second: float,
    beta_pair: float = 0.0,
) -> ShiftBound:
    """Bound the shifts between two populations from a sample of each.

    Where both bands hold, |Q(u) − Q'(u)| is at most the larger of Q_up(u) − Q'_lo(u)
    and Q'_up(u) − Q_lo(u), at every level u. Every rule on a coupling takes an
    increasing function of the shifts, so that what it grants for this bound it grants
    for the quantile coupling of the two populations. With a `beta_pair` the bound is
    that of `stop_loss`, for rules whose function is convex too.

    Parameters
    ----------
    first, second : Conditional
        One column, of unweighted rows.
    low, high : float
        Declared range, which the values lie in.
    beta_first, beta_second : float
        Probability with which the band of each may fail. One band serves every pair
        that its group is in.
    beta_pair : float, default=0.0
        Probability with which the tighter bound may fail beside the bands.

    Returns
    -------
    ShiftBound
        Distinct shifts in increasing order; never zero throughout.

    Raises
    ------
    ValueError
        See `quantile_band`.

    Examples
    --------
    >>> rows = Conditional.from_rows([[float(i)] for i in range(1, 1000)])
    >>> bound = population_bound(
    ...     rows, rows, low=0, high=1000, beta_first=0.025, beta_second=0.025
    ... )
    >>> float(bound.shifts.max()) < 130, bound.is_zero
    (True, False)
    >>> tighter = population_bound(
    ...     rows, rows, low=0, high=1000,
    ...     beta_first=0.0175, beta_second=0.0175, beta_pair=0.015,
    ... )
    >>> means = [float(b.mass @ b.shifts[:, 0]) for b in (bound, tighter)]
    >>> means[1] < 0.8 * means[0]
    True
    """
    one = quantile_band(first, low=low, high=high, error=beta_first)
    other = quantile_band(second, low=low, high=high, error=beta_second)
    cells = cells_of(one, other)
    if beta_pair > 0:
        sample = couple(first, second, np.ones(1)).shift_bound()
        sizes = first.n_rows, second.n_rows
        return tightened(cells, sample, sizes, span=high - low, error=beta_pair)
    shifts, cell = np.unique(cells.distance, return_inverse=True)
    mass = np.bincount(cell, cells.mass).astype(np.float64, copy=False)
    return ShiftBound(shifts[:, np.newaxis], mass)


def cells_of(one: Band, other: Band) -> Cells:
    """Cut (0, 1] into cells on which both bands are constant."""
    levels = [one.upper_levels, one.lower_levels]
    levels += [other.upper_levels, other.lower_levels, np.ones(1)]
    ends = np.unique(np.concatenate(levels))
    ends = ends[ends > 0]
    # One rounding error up: a cell may not lose mass.
    mass = np.nextafter(np.diff(ends, prepend=0.0), 1.0)
    lower = (
        _on_cells(one.lower_levels, one.lower_values, ends),
        _on_cells(other.lower_levels, other.lower_values, ends),
    )
    upper = (
        _on_cells(one.upper_levels, one.upper_values, ends),
        _on_cells(other.upper_levels, other.upper_values, ends),
    )
    # A difference that is negative is beaten by the other one, as lower ≤ upper.
    distance = np.maximum(
        distance_up(upper[0], lower[1]), distance_up(upper[1], lower[0])
    )
    return Cells(mass, lower, upper, distance)


def _on_cells(levels: FloatArray, values: FloatArray, ends: FloatArray) -> FloatArray:
    """Return a step function on the cells with these right ends."""
    # It is constant from just above one level up to the next.
    found: FloatArray = values[np.searchsorted(levels, ends, side="left")]
    return found
