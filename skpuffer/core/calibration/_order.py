"""The order that reaches an (ε, δ) promise with the least noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from skpuffer.core.calibration._solve import CalibrationError
from skpuffer.core.conversions import renyi_budget

# Orders that are tried first: α − 1 from 10^-2 to 10^4, so many to a power of ten.
_LOW, _HIGH, _PER_DECADE = -2, 4, 5
_TOLERANCE = 1e-3


def best_order(
    noise: Callable[[float, float], float],
    epsilon: float,
    delta: float,
    *,
    infinite: bool,
) -> float:
    """Return the order with the least noise among those that reach the target.

    A grid of orders whose Rényi budget is positive, then a bounded minimisation
    between the neighbours of its best; the best order seen is returned, so that a
    failure of the search costs noise and nothing else.

    Parameters
    ----------
    noise : callable
        ``noise(alpha, renyi_epsilon)``: the logarithm of the noise that the order
        needs; minus infinity where it needs none.
    epsilon, delta : float
        The target.
    infinite : bool
        Whether the law serves α = ∞.

    Returns
    -------
    float

    Raises
    ------
    CalibrationError
        No order reaches the target.

    Examples
    --------
    >>> order = best_order(lambda a, e: math.log(a / e) / 2, 1.0, 1e-5, infinite=False)
    >>> 15 < order < 25
    True
    """
    seen: dict[float, float] = {}

    def at(log_excess: float) -> float:
        alpha = 1 + 10.0 ** float(log_excess)
        budget = renyi_budget(alpha, epsilon, delta)
        if not budget > 0:
            return math.inf
        seen[alpha] = noise(alpha, budget)
        # The minimiser cannot work with an infinite value.
        return max(seen[alpha], -1e300)

    grid = np.linspace(_LOW, _HIGH, (_HIGH - _LOW) * _PER_DECADE + 1)
    values = [at(x) for x in grid.tolist()]
    if not seen:
        raise CalibrationError(
            f"no order up to 10^{_HIGH} reaches epsilon={epsilon:g} with delta={delta:g}"
        )
    best = int(np.argmin(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    minimize_scalar(
        lambda x: min(at(x), 1e300),
        bounds=(float(low), float(high)),
        method="bounded",
        options={"xatol": _TOLERANCE},
    )
    if infinite:
        seen[math.inf] = noise(math.inf, renyi_budget(math.inf, epsilon, delta))
    return min(seen, key=lambda alpha: (seen[alpha], alpha))
