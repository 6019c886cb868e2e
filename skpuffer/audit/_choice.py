"""Which event to count: the one with the largest bound to be expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skpuffer.audit._odds import OddsCurve
from skpuffer.core.event_divergence import Divergence
from skpuffer.core.prior import FloatArray

# Directions in which the scores of a count may fail.
_ANGLES = np.linspace(0, math.pi / 2, 9)
# Weight of what is uncertain about a rate beside what will be about the count: the
# best of many candidates is partly luck.
_DOUBT = 2.0


@dataclass(frozen=True, eq=False)
class ScoreCurve:
    """One score of one witness, with the odds along it.

    Attributes
    ----------
    witness, column : int
        Which score.
    odds : OddsCurve
    n_learned : (int, int)
        Rows of X and Y that the curve comes from.
    """

    witness: int
    column: int
    odds: OddsCurve
    n_learned: tuple[int, int]


@dataclass(frozen=True)
class Event:
    """An event: that a score is at least `threshold`.

    Attributes
    ----------
    witness, column : int
        Which score.
    threshold : float
    rates : (float, float)
        How often it should hold for rows of X and of Y.
    forecast : float
        The bound to be expected, in nats.
    """

    witness: int
    column: int
    threshold: float
    rates: tuple[float, float]
    forecast: float


def score_curves(
    scores: Sequence[tuple[FloatArray, FloatArray]],
) -> list[ScoreCurve]:
    """Return a curve for each column of the held-out scores of each witness."""
    return [
        ScoreCurve(
            w, column, OddsCurve.fit(x[:, column], y[:, column]), (len(x), len(y))
        )
        for w, (x, y) in enumerate(scores)
        for column in range(x.shape[1])
    ]


def choose_event(
    curves: Sequence[ScoreCurve],
    target: Divergence,
    beta: float,
    sizes: tuple[int, int],
) -> Event:
    """Return the event with the largest forecast over scores and thresholds.

    Parameters
    ----------
    curves : sequence of ScoreCurve
    target : Divergence
    beta : float
    sizes : (int, int)
        Rows of X and Y that will be counted.
    """
    found = [_best_threshold(curve, target, beta, sizes) for curve in curves]
    return max(found, key=lambda event: event.forecast)


def _best_threshold(
    curve: ScoreCurve, target: Divergence, beta: float, sizes: tuple[int, int]
) -> Event:
    rates = curve.odds.rates
    effective = [
        1 / (1 / n + _DOUBT / m) for n, m in zip(sizes, curve.n_learned, strict=True)
    ]
    forecasts = forecast_bounds(target, rates, effective, beta)
    k = int(np.argmax(forecasts))
    return Event(
        curve.witness,
        curve.column,
        float(curve.odds.thresholds[k]),
        (float(rates[0][k]), float(rates[1][k])),
        float(forecasts[k]),
    )


def forecast_bounds(
    target: Divergence,
    rates: Sequence[FloatArray],
    sizes: Sequence[float],
    beta: float,
) -> FloatArray:
    """Forecast the bounds of events from their rates.

    The set of scores with the largest least divergence is about a half plane, which
    touches the circle of radius Φ⁻¹(1 − β) where the divergence is least on it.
    Probabilities at a score are Wilson's [1927].
    """
    z = -float(ndtri(beta))
    p = _wilson(rates[0][:, None], sizes[0], -z * np.cos(_ANGLES))
    q = _wilson(rates[1][:, None], sizes[1], z * np.sin(_ANGLES))
    return np.asarray(target.of_event(p, q).min(axis=1))


def _wilson(rate: FloatArray, n: float, z: FloatArray) -> FloatArray:
    spread = np.sqrt(rate * (1 - rate) / n + np.square(z / (2 * n)))
    found = (rate + z * z / (2 * n) + z * spread) / (1 + z * z / n)
    return np.asarray(np.clip(found, 0.0, 1.0))
