"""Where a claim says something of ε, and what: the line that an audit is held against."""

from __future__ import annotations

import math

import numpy as np

from skpuffer.core.conversions import renyi_to_epsilon
from skpuffer.core.prior import FloatArray


def claimed_line(
    epsilon: float | None,
    delta: float,
    alpha: float | None,
    x: FloatArray,
    over_orders: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return where a claim says something, and what."""
    nothing: FloatArray = np.empty(0)
    low, high = float(x[0]), float(x[-1])
    if epsilon is None:
        return nothing, nothing
    if over_orders:
        # Divergences rise with the order; ε at δ = 0 is that of α = ∞.
        order = math.inf if alpha is None and not delta else alpha
        if order is None or order < low:
            return nothing, nothing
        ends = np.array([low, min(high, order)])
        return ends, np.full(2, epsilon)
    if alpha is not None:
        return x, np.array([renyi_to_epsilon(alpha, epsilon, d) for d in x.tolist()])
    if delta > high:
        return nothing, nothing
    return np.array([max(low, delta), high]), np.full(2, epsilon)


def claim_text(epsilon: float | None, delta: float, alpha: float | None) -> str | None:
    if epsilon is None:
        return None
    if alpha is not None:
        return f"claim: ({alpha:g}, {epsilon:g})-Rényi"
    return f"claim: ε = {epsilon:g}" + (f" at δ = {delta:g}" if delta else "")
