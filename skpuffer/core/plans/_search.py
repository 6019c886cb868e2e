"""Plans of small mean squared distance, and better plans where there are many points.

Contract: exact integer marginals or an error; the result repeats (the directions of
projections have a fixed seed) and does not depend on the order of the points nor on
a common offset. Imports numpy and the solver next door.
"""

from __future__ import annotations

import math

import numpy as np

from skpuffer.core.plans._costs import Column, summed
from skpuffer.core.plans._descend import Search
from skpuffer.core.plans._effort import USUAL_EFFORT, Effort
from skpuffer.core.plans._exact import emd_plan
from skpuffer.core.plans._plan import (
    Floats,
    Indices,
    Masses,
    Plan,
    check_masses,
    monotone_plan,
    shares,
)

EXACT_LIMIT = 2000  # points a side up to which quadratic_plan solves to optimality
# Passes of a search from sorted projections, unless one gains less than this share of
# the cost: rules go on with their own costs.
_PASSES, _GAIN = 10, 0.01
# A multiple of the squared distance of points in [-1, 1] that its exponential follows.
_FAINT = 2.0**-30
_SEED = 20_240_613  # directions of projections: fixed, so that plans repeat


def quadratic_plan(
    points_a: Floats,
    points_b: Floats,
    mass_a: Masses,
    mass_b: Masses,
    *,
    effort: Effort = USUAL_EFFORT,
) -> Plan:
    """Return a coupling of small mean squared distance.

    Parameters
    ----------
    points_a, points_b : ndarray, shapes (n, k) and (m, k)
        Finite; the columns are already divided by their weights.
    mass_a, mass_b : ndarray of positive integers, shapes (n,) and (m,)
        Equal totals.
    effort : Effort
        Of `projected_plan`.

    Returns
    -------
    Plan
        Optimal if both sides have at most `EXACT_LIMIT` points, otherwise
        `projected_plan`. Does not depend on the order of distinct points, nor on
        a common offset of the points.

    Raises
    ------
    ValueError, TransportPlanError
        As `emd_plan`; points that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([1, 1])
    >>> plan = quadratic_plan(np.array([[0.0], [1]]), np.array([[2.0], [1]]), one, one)
    >>> plan.columns.tolist()
    [1, 0]
    """
    if max(len(points_a), len(points_b)) > EXACT_LIMIT:
        return projected_plan(points_a, points_b, mass_a, mass_b, effort=effort)
    left, right = check_masses(mass_a, mass_b)
    a, b, order_a, order_b = _canonical(points_a, points_b, left, right)
    same = np.array_equal(a, b) and np.array_equal(left[order_a], right[order_b])
    if same:  # exactly zero whatever the precision of the solver
        return Plan(order_a, order_b, left[order_a])
    cost = np.zeros((len(a), len(b)))
    for x, y in zip(a.T, b.T, strict=True):  # differences: no cancellation
        cost += np.subtract.outer(x, y) ** 2
    plan = emd_plan(left[order_a], right[order_b], cost)
    return Plan(order_a[plan.rows], order_b[plan.columns], plan.mass)


def projected_plan(
    points_a: Floats,
    points_b: Floats,
    mass_a: Masses,
    mass_b: Masses,
    *,
    effort: Effort = USUAL_EFFORT,
    n_projections: int = 30,
) -> Plan:
    """Return a coupling of moderate mean squared distance, for many points.

    The best of several monotone couplings of one-dimensional projections (every
    axis, the difference of the means, the first principal direction and random
    ones from a fixed seed), improved by a few passes of a `Search`.

    Parameters
    ----------
    points_a, points_b, mass_a, mass_b
        As in `quadratic_plan`.
    effort : Effort
        What the passes may cost.
    n_projections : int
        Number of directions tried; the named directions are always among them.

    Returns
    -------
    Plan
        Always a coupling; how far from optimal is not known.

    Raises
    ------
    ValueError, TransportPlanError
        As `quadratic_plan`.

    Examples
    --------
    >>> import numpy as np
    >>> x, one = np.array([[0.0, 1], [5, 0]]), np.array([1, 1])
    >>> plan = projected_plan(x, x[::-1], one, one)
    >>> sorted(zip(plan.rows.tolist(), plan.columns.tolist()))
    [(0, 1), (1, 0)]
    """
    left, right = check_masses(mass_a, mass_b)
    a, b, order_a, order_b = _canonical(points_a, points_b, left, right)
    left, right = left[order_a], right[order_b]
    share_a, share_b = shares(left), shares(right)
    best, least = None, math.inf
    for direction in _directions(a, b, share_a, share_b, n_projections):
        plan = _monotone(a, b, left, right, direction)
        value = float(shares(plan.mass) @ _squares(a[plan.rows] - b[plan.columns]))
        if best is None or value < least:
            best, least = plan, value
    assert best is not None
    plan = best
    search = Search(a, b, effort)
    columns = [Column(x, y) for x, y in zip(a.T, b.T, strict=True)]
    costs = summed(columns, lambda _, distance: distance**2, _FAINT)
    for _ in range(_PASSES):
        if search.over:
            break
        plan = search.pass_over(plan, costs)
        value = float(shares(plan.mass) @ _squares(a[plan.rows] - b[plan.columns]))
        if not value < (1 - _GAIN) * least:
            break
        least = value
    return Plan(order_a[plan.rows], order_b[plan.columns], plan.mass)


def _centred(points_a: Floats, points_b: Floats) -> tuple[Floats, Floats]:
    """Shift both sets by their common midpoint, scale by a power of two."""
    a, b = (np.asarray(p, dtype=np.float64) for p in (points_a, points_b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not a.shape[1]:
        raise ValueError(f"points have shapes {a.shape} and {b.shape}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("points must be finite.")
    low = np.minimum(a.min(axis=0), b.min(axis=0))
    high = np.maximum(a.max(axis=0), b.max(axis=0))
    middle = low / 2 + high / 2
    a, b = a - middle, b - middle
    exponent = -math.frexp(float(max(np.abs(a).max(), np.abs(b).max())))[1]
    return np.ldexp(a, exponent), np.ldexp(b, exponent)


def _canonical(
    points_a: Floats, points_b: Floats, left: Masses, right: Masses
) -> tuple[Floats, Floats, Indices, Indices]:
    """Return the centred points in lexicographic order, and the two orders."""
    a, b = _centred(points_a, points_b)
    if (len(a), len(b)) != (len(left), len(right)):
        raise ValueError(
            f"{len(a)} and {len(b)} points, but {len(left)} and {len(right)} masses."
        )
    order_a, order_b = np.lexsort(a.T[::-1]), np.lexsort(b.T[::-1])
    return a[order_a], b[order_b], order_a, order_b


def _directions(
    a: Floats, b: Floats, share_a: Floats, share_b: Floats, n_projections: int
) -> list[Floats]:
    """Axes, mean difference, first principal direction, then random directions."""
    width = a.shape[1]
    mean_a, mean_b = share_a @ a, share_b @ b
    centre = (mean_a + mean_b) / 2
    scatter = ((a - centre).T * share_a) @ (a - centre)
    scatter += ((b - centre).T * share_b) @ (b - centre)
    named = [*np.eye(width), mean_b - mean_a, np.linalg.eigh(scatter)[1][:, -1]]
    generator = np.random.Generator(np.random.PCG64(_SEED))
    n_random = max(0, n_projections - len(named))
    return [*named, *generator.standard_normal((n_random, width))]


def _project(points: Floats, direction: Floats) -> Floats:
    """Project row by row, so that equal rows have equal projections."""
    value = np.zeros(len(points))
    for column, factor in zip(points.T, direction, strict=True):
        value += column * factor
    return value


def _monotone(
    a: Floats, b: Floats, left: Masses, right: Masses, direction: Floats
) -> Plan:
    """Couple the quantiles of a projection."""
    order_a = np.argsort(_project(a, direction), kind="stable")
    order_b = np.argsort(_project(b, direction), kind="stable")
    plan = monotone_plan(left[order_a], right[order_b])
    return Plan(order_a[plan.rows], order_b[plan.columns], plan.mass)


def _squares(shifts: Floats) -> Floats:
    return np.asarray(_project(shifts**2, np.ones(shifts.shape[1])))
