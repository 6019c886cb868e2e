"""From a Rényi promise to an (ε, δ) promise and back.

The better of the known conversions each way; none assumes more than one pair of
distributions with a bounded Rényi divergence.
"""

from __future__ import annotations

import math


def renyi_to_epsilon(alpha: float, epsilon: float, delta: float) -> float:
    """Return the ε′ of an (ε′, δ) promise that follows from (α, ε).

    The better of ε + log(1/δ)/(α−1) [Mironov 2017, Proposition 3] and
    ε + log((α−1)/α) − (log δ + log α)/(α−1) [Canonne, Kamath, Steinke 2020,
    Proposition 12]; at α = ∞ the ε′ of randomised response, which is the worst case
    [Kairouz, Oh, Viswanath 2015, Theorem 3.3]. They speak of one pair of
    distributions, so that they hold for Pufferfish pairs as for neighbouring data
    sets.

    Parameters
    ----------
    alpha : float
        Order in (1, ∞].
    epsilon : float
        Rényi bound, nats.
    delta : float
        In [0, 1); zero leaves a finite answer at α = ∞ alone.

    Returns
    -------
    float
        ε′ ≥ 0, possibly infinite.

    Raises
    ------
    ValueError
        `delta` is not in [0, 1).

    Examples
    --------
    >>> round(renyi_to_epsilon(4.0, 1.0, 1e-5), 3)
    4.088
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
    if math.isinf(alpha):
        lowered = delta * (1 + math.exp(-epsilon))
        return max(0.0, epsilon + math.log1p(-lowered)) if lowered < 1 else 0.0
    if delta == 0:
        return math.inf
    return max(0.0, epsilon + _conversion_cost(alpha, delta))


def renyi_to_delta(alpha: float, epsilon: float, target_epsilon: float) -> float:
    """Return the δ of an (ε′, δ) promise that follows from (α, ε).

    The inverse of `renyi_to_epsilon`.

    Parameters
    ----------
    alpha, epsilon : float
        The Rényi promise.
    target_epsilon : float
        ε′ ≥ 0.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        `target_epsilon` is negative or not a number.

    Examples
    --------
    >>> round(renyi_to_delta(4.0, 1.0, 4.088), 7)
    1e-05
    """
    if not target_epsilon >= 0:
        raise ValueError(f"epsilon must be at least 0, got {target_epsilon!r}")
    gap = epsilon - target_epsilon
    if math.isinf(alpha):
        return max(0.0, -math.expm1(-gap) / (1 + math.exp(-epsilon)))
    plain = (alpha - 1) * gap
    sharp = plain + (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)
    return math.exp(min(0.0, plain, sharp))


def renyi_budget(alpha: float, epsilon: float, delta: float) -> float:
    """Return the Rényi ε that an (ε′, δ) target leaves at order α.

    Parameters
    ----------
    alpha : float
        Order in (1, ∞].
    epsilon : float
        The target ε′.
    delta : float
        The target δ, in (0, 1).

    Returns
    -------
    float
        Not positive where this order cannot reach the target.

    Examples
    --------
    >>> round(renyi_budget(8.0, 2.0, 1e-2), 3)
    1.773
    """
    if math.isinf(alpha):
        return epsilon + math.log1p(delta * math.exp(-epsilon)) - math.log1p(-delta)
    return epsilon - _conversion_cost(alpha, delta)


def _conversion_cost(alpha: float, delta: float) -> float:
    plain = -math.log(delta) / (alpha - 1)
    sharp = math.log1p(-1 / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1)
    return min(plain, sharp)
