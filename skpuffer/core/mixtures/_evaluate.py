"""The divergence of a release whose scale is given, wherever it may lie."""

from __future__ import annotations

import math

from skpuffer.core.mixtures._pair import MixturePair
from skpuffer.core.mixtures._protocol import MixtureDivergence

_TOLERANCE = 4e-6
_LEVELS = 14
_NOTHING = 1e-12


def divergence_bound(
    mixtures: MixtureDivergence,
    pair: MixturePair,
    *,
    alpha: float,
    scale: float,
    near: float,
    tolerance: float = _TOLERANCE,
) -> float:
    """Return an upper bound on the larger divergence, tight wherever it lies.

    Parameters
    ----------
    mixtures : MixtureDivergence
    pair : MixturePair
        As it is released: on the grid.
    alpha, scale : float
        A scale of zero: no noise.
    near : float
        A guess, from which the search for the value's size starts.
    tolerance : float
        Relative width aimed at between the divergence and its bound.

    Returns
    -------
    float
        Infinite where nothing could be shown.
    """
    if scale == 0:
        return pair.divergence(alpha)
    upper, level = math.inf, max(near, _NOTHING)
    for _ in range(_LEVELS):
        found = mixtures.bound(
            pair, alpha=alpha, scale=scale, epsilon=level, tolerance=tolerance
        )
        upper = min(upper, found.upper)
        if not math.isfinite(found.upper):
            # Too fine for what there is.
            level *= 30
        elif found.upper <= found.estimate * (1 + 2 * tolerance) + _NOTHING:
            break
        else:
            # From above, step by step, where the level was too high.
            level = max(found.upper, _NOTHING)
    return upper
