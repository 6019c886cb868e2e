"""A bound on a Rényi divergence from means of a learned function, by betting.

For every u from rows to [0, 1], D_α(P ‖ Q) ≥ α/(α−1) log E_P u^(α−1) − log E_Q u^α, with
equality where u is in proportion to dP/dQ: by Hölder's inequality E_P u^(α−1) =
E_Q (dP/dQ) u^(α−1) is at most ‖dP/dQ‖_α ‖u^(α−1)‖_(α/(α−1)) under Q. An event alone
knows two values of the ratio; a mean knows all, and needs no event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skpuffer.audit._choice import ScoreCurve
from skpuffer.audit._odds import OddsCurve
from skpuffer.core.betting import lower_mean_bound, upper_mean_bound
from skpuffer.core.prior import FloatArray

# Where the ratio is cut off, in shares of the rows above.
_CUTS = np.geomspace(1e-3, 0.5, 12)


@dataclass(frozen=True, eq=False)
class Tilt:
    """A function of a score with values in [0, 1]: a ratio of densities, cut off.

    Attributes
    ----------
    witness, column : int
        Which score.
    odds : OddsCurve
    log_cut : float
        Log-ratio at and above which the function is 1.
    reverse : bool
        Whether it is the ratio of y against x.
    forecast : float
        The bound to be expected, in nats.
    """

    witness: int
    column: int
    odds: OddsCurve
    log_cut: float
    reverse: bool
    forecast: float

    def of(self, scores: FloatArray) -> FloatArray:
        """Return u of rows with these scores."""
        ratio = self.odds.log_ratio_at(scores)
        return np.exp(np.minimum((-ratio if self.reverse else ratio) - self.log_cut, 0))


def choose_tilts(
    curves: Sequence[ScoreCurve],
    scores: Sequence[tuple[FloatArray, FloatArray]],
    alpha: float,
    error: float,
    sizes: tuple[int, int],
    *,
    symmetric: bool,
) -> list[Tilt]:
    """Return the function with the largest forecast, for each direction."""
    found = []
    for reverse in (False, True) if symmetric else (False,):
        candidates = []
        for curve in curves:
            sides = [part[:, curve.column] for part in scores[curve.witness]]
            ratios = [curve.odds.log_ratio_at(side) for side in sides]
            signed = [-ratio if reverse else ratio for ratio in ratios]
            pooled = np.concatenate(signed)
            for cut in np.unique(np.quantile(pooled, 1 - _CUTS)).tolist():
                u = [np.exp(np.minimum(ratio - cut, 0)) for ratio in signed]
                value = _forecast(u[::-1] if reverse else u, alpha, error, sizes)
                candidates.append(
                    Tilt(curve.witness, curve.column, curve.odds, cut, reverse, value)
                )
        found.append(max(candidates, key=lambda tilt: tilt.forecast))
    return found


def _forecast(
    u: Sequence[FloatArray], alpha: float, error: float, sizes: tuple[int, int]
) -> float:
    """Return the bound of means that are as far off as a normal test allows."""
    z = -float(ndtri(error))
    top, bottom = u[0] ** (alpha - 1), u[1] ** alpha
    # Learned from rows, and to be measured on others.
    spread = [
        float(v.std()) * math.sqrt(1 / n + 1 / len(v))
        for v, n in zip((top, bottom), sizes, strict=True)
    ]
    low = float(top.mean()) - z * spread[0]
    high = float(bottom.mean()) + z * spread[1]
    if low <= 0 or high <= 0:
        return -math.inf
    return alpha / (alpha - 1) * math.log(low) - math.log(high)


def betting_bound(
    p: FloatArray,
    q: FloatArray,
    pilots: tuple[FloatArray, FloatArray],
    alpha: float,
    error: float,
) -> float:
    """Bound D_α(P ‖ Q) by the means of u^(α−1) under P and of u^α under Q.

    Parameters
    ----------
    p, q : ndarray of shape (n_p,) and (n_q,)
        u of fresh rows.
    pilots : two ndarray
        u of rows it was learned from, which decide the stakes.
    alpha : float
        Order in (1, ∞).
    error : float
        Probability that the bound exceeds the divergence; half for each mean.

    Returns
    -------
    float
        Nats, at least 0.
    """
    low = lower_mean_bound(p ** (alpha - 1), error / 2, pilot=pilots[0] ** (alpha - 1))
    high = upper_mean_bound(q**alpha, error / 2, pilot=pilots[1] ** alpha)
    if low <= 0:
        return 0.0
    return max(0.0, alpha / (alpha - 1) * math.log(low) - math.log(high))
