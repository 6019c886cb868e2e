"""What a running audit learns of two distributions, in constant memory.

Rows become features; their second moments, one matrix a distribution, give scores that
are high where one of the two is the more likely, and rows that no moment has seen give
the thresholds. Whatever is learned here decides the power of an audit, never its level.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpuffer.audit._views import median_width
from skpuffer.core.betting import MOST_STAKED
from skpuffer.core.features import FourierFeatures
from skpuffer.core.paired_betting import growth_stakes, largest_stake
from skpuffer.core.prior import FloatArray

# Standard units beyond which a row is clipped before it enters a moment.
_CLIP = 8.0
# Ridge of the linear and the quadratic discriminant, in squared standard units.
_RIDGE = 1e-3
# Thresholds tried a score, and scores of so small a distance (relative to their
# spread) that rounding might take a row across a threshold between them.
_THRESHOLDS = 48
_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class RowFeatures:
    """Features of a row: Fourier features, standard units, and a one.

    Attributes
    ----------
    fourier : FourierFeatures
        Of rows less `centre`.
    centre, unit : ndarray of shape (d,)
    """

    fourier: FourierFeatures
    centre: FloatArray
    unit: FloatArray

    @classmethod
    def learn(
        cls,
        X: FloatArray,
        Y: FloatArray,
        *,
        metric: str,
        gamma: float | str,
        n_components: int,
        seed: int,
    ) -> RowFeatures:
        """Learn units and bandwidth from the first rows; draw frequencies.

        A `gamma` given is that of the rows as they are; "median" gives the columns unit
        variance first.
        """
        X, Y = X[:500], Y[:500]
        rows = np.concatenate([X, Y])
        centre, unit = np.median(rows, axis=0), rows.std(axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        scale = np.ones_like(unit)
        if isinstance(gamma, str):
            scale = unit
            first, second = ((side - centre) / unit for side in (X, Y))
            gamma = median_width(first, second, metric, seed)
        rng = np.random.default_rng(seed)
        drawn = FourierFeatures.draw(metric, gamma, rows.shape[1], n_components, rng)
        return cls(FourierFeatures(drawn.frequencies / scale[:, None]), centre, unit)

    @property
    def n_features(self) -> int:
        """Return the number of features."""
        return self.fourier.n_features + len(self.unit) + 1

    def transform(self, X: FloatArray) -> FloatArray:
        """Return the features of rows, shape (n, n_features)."""
        centred = X - self.centre
        standard = (centred / self.unit).clip(-_CLIP, _CLIP)
        waves = self.fourier.transform(centred)
        return np.hstack([waves, standard, np.ones((len(X), 1))])

    def same_as(self, other: RowFeatures) -> bool:
        """Whether moments of both add up."""
        return all(
            np.array_equal(one, two)
            for one, two in (
                (self.fourier.frequencies, other.fourier.frequencies),
                (self.centre, other.centre),
                (self.unit, other.unit),
            )
        )


@dataclass(eq=False)
class Moments:
    """Sums of φφᵀ over the rows of two distributions, and the numbers of rows."""

    sums: list[FloatArray]
    counts: list[int] = field(default_factory=lambda: [0, 0])

    @classmethod
    def empty(cls, width: int) -> Moments:
        """Return moments of no row."""
        return cls([np.zeros((width, width)), np.zeros((width, width))])

    def add(self, side: int, features: FloatArray) -> None:
        """Add rows of one distribution."""
        self.sums[side] += features.T @ features
        self.counts[side] += len(features)

    def copy(self) -> Moments:
        """Return moments that share nothing with these."""
        return Moments([s.copy() for s in self.sums], list(self.counts))

    def merge(self, other: Moments) -> None:
        """Add the rows of other moments of the same features."""
        for side in (0, 1):
            self.sums[side] += other.sums[side]
            self.counts[side] += other.counts[side]


class Witnesses(NamedTuple):
    """Scores φᵀw, (φᵀu)², and a quadratic one of the standard units.

    `linear` has a score a column, `squared` one, `quadratic` is a symmetric matrix.
    """

    linear: FloatArray
    squared: FloatArray
    quadratic: FloatArray
    tilt: FloatArray

    def scores(self, features: FloatArray) -> FloatArray:
        """Return all scores, shape (n, n_scores); high speaks for the first side."""
        d = len(self.quadratic)
        units = features[:, -d - 1 : -1]
        curved = np.einsum("ij,ij->i", units @ self.quadratic, units)
        curved += features @ self.tilt
        return np.column_stack(
            [features @ self.linear, (features @ self.squared) ** 2, curved]
        )


def learn_witnesses(
    sums: list[FloatArray], counts: list[int], d: int, reg: tuple[float, ...]
) -> Witnesses:
    """Learn the scores of the first distribution against the second.

    With S, m the second moment and the mean of the Fourier features and B = S_q + λ:
    the regularised mean difference B⁻¹(m_p − m_q), and the square of the direction in
    which S_p is largest relative to B [Domingo-Enrich, Mroueh 2022]; both for every λ.
    In standard units: the log-ratio of two Gaussians, with the pooled covariance
    (linear) and with their own (quadratic).

    Parameters
    ----------
    sums, counts : list of two
        Sums of φφᵀ and numbers of rows, as in `Moments`.
    d : int
        Number of columns.
    reg : tuple of float
        Every λ.

    Returns
    -------
    Witnesses
    """
    p, q = (total / n for total, n in zip(sums, counts, strict=True))
    width = len(p) - d - 1
    step = np.zeros((len(p), 1 + len(reg)))
    squared = np.zeros((len(p), len(reg)))
    weights, basis = np.linalg.eigh(q[:width, :width])
    weights = weights.clip(0.0)
    gap = basis.T @ (p[:width, -1] - q[:width, -1])
    rotated = basis.T @ p[:width, :width] @ basis
    for column, ridge in enumerate(reg):
        step[:width, 1 + column] = basis @ (gap / (weights + ridge))
        root = (weights + ridge) ** -0.5
        top = np.linalg.eigh(root[:, None] * rotated * root)[1][:, -1]
        squared[:width, column] = basis @ (root * top)
    units = slice(width, width + d)
    means = [s[units, -1] for s in (p, q)]
    covariances = [
        s[units, units] - np.outer(m, m) + _RIDGE * np.eye(d)
        for s, m in zip((p, q), means, strict=True)
    ]
    step[units, 0] = np.linalg.solve(sum(covariances), means[0] - means[1])
    inverses = [np.linalg.inv(c) for c in covariances]
    tilt = np.zeros(len(p))
    tilt[units] = inverses[0] @ means[0] - inverses[1] @ means[1]
    return Witnesses(step, squared, (inverses[1] - inverses[0]) / 2, tilt)


class Events(NamedTuple):
    """One event {score > threshold} for every claim, and the stake on it.

    `score`, `threshold` and `stake` have shape (n_claims,).
    """

    score: NDArray[np.intp]
    threshold: FloatArray
    stake: FloatArray

    def occur(self, scores: FloatArray) -> NDArray[np.bool_]:
        """Return which events occur, shape (n, n_claims)."""
        above: NDArray[np.bool_] = scores[:, self.score] > self.threshold
        return above


def choose_events(
    first: FloatArray, second: FloatArray, *, epsilons: FloatArray, delta: float
) -> Events:
    """Choose for each claim the event, and stake, that would have grown most.

    Parameters
    ----------
    first, second : ndarray of shape (n, n_scores)
        Scores of rows that the witnesses were not learned from.
    epsilons : ndarray of shape (n_claims,)
    delta : float

    Returns
    -------
    Events
    """
    n = len(first)
    odds = np.exp(epsilons)
    cap = MOST_STAKED * largest_stake(epsilons, delta)
    every = np.arange(len(epsilons))
    best, trusted = np.full(len(epsilons), -np.inf), np.zeros(len(epsilons))
    score = np.zeros(len(epsilons), dtype=np.intp)
    threshold = np.full(len(epsilons), np.inf)
    for column in range(first.shape[1]):
        cuts = _thresholds(first[:, column], second[:, column])
        if not len(cuts):
            continue
        above = [
            n - np.searchsorted(np.sort(side[:, column]), cuts, side="right")
            for side in (first, second)
        ]
        # One row more for the second: rare events are not as telling as they look.
        p = (above[0] / (n + 1))[:, np.newaxis]
        q = ((above[1] + 1) / (n + 1))[:, np.newaxis]
        seen = p - odds * q - delta
        square = p * (1 - p) + odds**2 * q * (1 - q) + seen**2
        # The best of many gains looks better than it is: a standard error less.
        mean = seen - np.sqrt(square / n)
        stake = (mean / np.maximum(square, 1e-300)).clip(0.0, cap)
        growth = stake * mean - stake**2 * square / 2
        row = growth.argmax(axis=0)
        found = growth[row, every]
        better = found > best
        best[better], score[better] = found[better], column
        threshold[better] = cuts[row[better]]
        part = (mean / np.maximum(seen, 1e-100)).clip(0.0, 1.0)[row, every]
        trusted[better] = part[better]
    events = Events(score, threshold, trusted)
    a, b = events.occur(first), events.occur(second)
    counts = np.stack([a & b, a & ~b, ~a & b, ~a & ~b]).sum(axis=1)
    stakes = growth_stakes(counts, epsilon=epsilons, delta=delta)
    return events._replace(stake=trusted * stakes)


def _thresholds(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return thresholds between scores, dense at both ends, clear of rounding."""
    ordered = np.sort(np.concatenate([first, second]))
    gaps = np.diff(ordered)
    clear = np.flatnonzero(gaps > _ROUNDING * (ordered[-1] - ordered[0]))
    if len(clear) > _THRESHOLDS:
        ranks = np.geomspace(1, len(clear), _THRESHOLDS // 2).astype(np.intp) - 1
        clear = clear[np.unique(np.concatenate([ranks, len(clear) - 1 - ranks]))]
    found: FloatArray = (ordered[clear] + ordered[clear + 1]) / 2
    return found
