"""How the odds of one sample against another depend on a score: a smooth estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

from skpuffer.core.prior import FloatArray

# Thresholds, in shares of the rows: geometric in both tails.
_TAIL = np.geomspace(1e-4, 0.5, 45)
_SHARES = np.concatenate([_TAIL, 1 - _TAIL[-2::-1]])
_RIDGE = 1.0
_NEWTON_STEPS = 12


@dataclass(frozen=True, eq=False)
class OddsCurve:
    """Log-ratio of two densities of a score, constant between thresholds.

    Between thresholds the rows of either sample are counted, and the odds among them
    fitted by a logistic regression on a few functions of their rank. Counts of rare
    events would be noisier, and the best of them too good to be true.

    Attributes
    ----------
    thresholds : ndarray of shape (t,)
        Increasing.
    log_ratio : ndarray of shape (t + 1,)
        Of x against y, in nats.
    rates : two ndarray of shape (t,)
        How often a row of x, and of y, scores at or above each threshold.
    """

    thresholds: FloatArray
    log_ratio: FloatArray
    rates: tuple[FloatArray, FloatArray]

    @classmethod
    def fit(cls, x: FloatArray, y: FloatArray) -> OddsCurve:
        """Estimate the curve from scores of both samples, not learned from them."""
        sides = np.sort(x), np.sort(y)
        pooled = np.concatenate(sides)
        # Both samples count alike, however many rows they have.
        weight = np.repeat([0.5 / len(x), 0.5 / len(y)], [len(x), len(y)])
        order = np.argsort(pooled, kind="stable")
        pooled, reached = pooled[order], np.cumsum(weight[order])
        places = np.searchsorted(reached, _SHARES * (1 + 1e-12), side="right")
        values = pooled[np.unique(np.minimum(places, len(pooled) - 1))]
        # Half way to the next smaller score, so that round-off moves no ties.
        below = np.maximum(np.searchsorted(pooled, values, side="left") - 1, 0)
        thresholds = np.unique((values + pooled[below]) / 2)
        counts = [
            np.diff(
                np.searchsorted(side, thresholds, side="left"),
                prepend=0,
                append=len(side),
            ).astype(np.float64)
            for side in sides
        ]
        log_ratio = _regress(*counts)
        share = expit(log_ratio + np.log(len(x) / len(y)))
        total = counts[0] + counts[1]
        rates = []
        for part in (total * share, total * (1 - share)):
            above = np.cumsum(part[::-1])[::-1][1:]
            rates.append((above + 0.5) / (part.sum() + 1))
        return cls(thresholds, log_ratio, (rates[0], rates[1]))

    def log_ratio_at(self, scores: FloatArray) -> FloatArray:
        """Return the log-ratio where rows score so much."""
        return self.log_ratio[np.searchsorted(self.thresholds, scores, side="right")]


def _regress(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return log-ratios for counts between thresholds, less those of all rows."""
    count = x + y
    weight = x / x.sum() + y / y.sum()
    middle = (np.cumsum(weight) - weight / 2) / 2
    z = ndtri(np.clip(middle, 1e-9, 1 - 1e-9))
    # A constant, a shift, a change of spread, and a ratio that levels off.
    basis = np.stack([np.ones_like(z), z, z * z, np.tanh(2 * z)], axis=1)
    ridge = _RIDGE * np.diag([0.0, 1.0, 1.0, 1.0])
    base = np.log(x.sum() / y.sum())
    slopes = np.zeros(basis.shape[1])
    for _ in range(_NEWTON_STEPS):
        share = expit(basis @ slopes + base)
        gradient = basis.T @ (x - count * share) - ridge @ slopes
        curvature = (basis.T * (count * share * (1 - share) + 1e-9)) @ basis + ridge
        slopes += np.clip(np.linalg.solve(curvature, gradient), -2.0, 2.0)
    return np.asarray(basis @ slopes)
