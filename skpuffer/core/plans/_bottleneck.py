"""Plans whose largest cost is small: for rules that see nothing but the maximum."""

from __future__ import annotations

import numpy as np

from skpuffer.core.plans._exact import emd_plan
from skpuffer.core.plans._plan import Floats, Masses, Plan

_TOLERANCE = 1e-4


def bottleneck_plan(mass_a: Masses, mass_b: Masses, cost: Floats, start: Plan) -> Plan:
    """Return a coupling whose largest cost is as small as any, within 1e-4.

    Bisection between what some atom must pay at least and what `start` pays at most:
    a threshold can be met if and only if the plan that moves the least mass beyond it
    moves none.

    Parameters
    ----------
    mass_a, mass_b : ndarray of positive integers, shapes (n,) and (m,)
        Equal totals.
    cost : ndarray, shape (n, m)
        Non-negative; may be infinite where `start` does not go.
    start : Plan
        Any coupling of the two.

    Returns
    -------
    Plan
        Never with a larger maximum than `start`.

    Raises
    ------
    ValueError, TransportPlanError
        As `emd_plan`.

    Examples
    --------
    >>> one, cost = np.array([1, 1]), np.array([[0.0, 2.0], [2.0, 3.0]])
    >>> straight = Plan(np.array([0, 1]), np.array([0, 1]), one)
    >>> bottleneck_plan(one, one, cost, straight).columns.tolist()
    [1, 0]
    """
    best = start
    high = float(cost[best.rows, best.columns].max())
    # Every atom goes somewhere.
    low = float(max(cost.min(axis=0).max(), cost.min(axis=1).max()))
    threshold = low
    while high > low + _TOLERANCE * high:
        plan = emd_plan(mass_a, mass_b, (cost > threshold).astype(np.float64))
        reached = float(cost[plan.rows, plan.columns].max())
        if reached <= threshold:
            best, high = plan, reached
        else:
            low = threshold
        threshold = (low + high) / 2
    return best
