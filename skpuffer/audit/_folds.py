"""From two samples to a counting region: learn, choose an event, count.

Both samples are shuffled and cut. The first part is only learned from; then come one or
several rounds, and the event of a round is chosen from the rows before it. Among those,
witnesses are fitted on all folds but one, for each, and choices are made by the scores
of the folds left out. The event of a row that is counted is that of one of these fits,
drawn for the row alone: so it is as likely as it was among the rows left out, and a
count is exactly binomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from skpuffer.audit._choice import choose_event, score_curves
from skpuffer.audit._records import RoundResult
from skpuffer.audit._views import KernelSettings, Views
from skpuffer.audit._witnesses import Scorer, Witness
from skpuffer.core.event_divergence import Divergence
from skpuffer.core.events import CountingRegion, EventCount, Shape
from skpuffer.core.prior import FloatArray

_FOLDS = 4


@dataclass(frozen=True)
class Plan:
    """How the rows of a sample are used.

    Attributes
    ----------
    learned : float
        Share of the rows that are only learned from.
    n_rounds : int
    """

    learned: float = 0.4
    n_rounds: int = 1

    def cuts(self, n: int) -> list[int]:
        """Return where each of the rounds begins, and n."""
        first = round(self.learned * n)
        rounds = range(self.n_rounds + 1)
        return [first + (n - first) * k // self.n_rounds for k in rounds]


def audit_pair(
    x: FloatArray,
    y: FloatArray,
    witnesses: Sequence[Witness],
    target: Divergence,
    beta: float,
    *,
    kernel: KernelSettings,
    seed: int,
    plan: Plan | None = None,
    shuffle: bool = True,
) -> tuple[CountingRegion, tuple[RoundResult, ...]]:
    """Learn events from two samples and count them.

    Parameters
    ----------
    x, y : ndarray of shape (n_x, d) and (n_y, d)
        Independent rows.
    witnesses : sequence of Witness
    target : Divergence
        What the events are chosen for; the region serves every other too.
    beta : float
        Error of the region.
    kernel : KernelSettings
    seed : int
    plan : Plan, optional

    Returns
    -------
    region : CountingRegion
    rounds : tuple of RoundResult
    """
    rng = np.random.default_rng([seed, 0])
    if shuffle:
        x, y = x[rng.permutation(len(x))], y[rng.permutation(len(y))]
    plan = Plan() if plan is None else plan
    cuts = list(zip(plan.cuts(len(x)), plan.cuts(len(y)), strict=True))
    views = Views(
        x,
        y,
        cuts[0],
        kernel=kernel,
        needed={witness.view for witness in witnesses},
        seed=seed,
    )
    counted = len(x) - cuts[0][0], len(y) - cuts[0][1]
    counts, results = [], []
    for start, stop in pairwise(cuts):
        fits = [_cross_fit(witness, views, start, seed) for witness in witnesses]
        event = choose_event(
            score_curves([scores for _, scores in fits]), target, beta, counted
        )
        scorers, witness = fits[event.witness][0], witnesses[event.witness]
        fresh = views.between(witness.view, start, stop)
        hits = [
            _count(scorers, rows, event.column, event.threshold, rng) for rows in fresh
        ]
        sizes = len(fresh[0]), len(fresh[1])
        shape = Shape.for_rates(target, event.rates, sizes, beta)
        counts.append(EventCount(hits[0], sizes[0], hits[1], sizes[1], shape))
        results.append(
            RoundResult(
                witness=witness.name,
                column=event.column,
                threshold=event.threshold,
                expected=event.rates,
                hits_x=hits[0],
                n_x=sizes[0],
                hits_y=hits[1],
                n_y=sizes[1],
            )
        )
    return CountingRegion(tuple(counts), beta), tuple(results)


def largest_bound(
    n_x: int, n_y: int, target: Divergence, beta: float, plan: Plan | None = None
) -> float:
    """Return the bound that an event would give which held for all X and no Y."""
    plan = Plan() if plan is None else plan
    cuts = np.stack([np.diff(plan.cuts(n_x)), np.diff(plan.cuts(n_y))], axis=1)
    counts = []
    for size_x, size_y in cuts.tolist():
        shape = Shape.for_rates(target, (1.0, 0.0), (size_x, size_y), beta)
        counts.append(EventCount(size_x, size_x, 0, size_y, shape))
    return CountingRegion(tuple(counts), beta).lower(target)


def _cross_fit(
    witness: Witness, views: Views, stop: tuple[int, int], seed: int
) -> tuple[list[Scorer], tuple[FloatArray, FloatArray]]:
    """Fit a witness on all folds but one, for each; return fits and held-out scores."""
    sides = views.between(witness.view, (0, 0), stop)
    scorers: list[Scorer] = []
    held_out: list[list[FloatArray]] = [[], []]
    for k in range(_FOLDS):
        kept = [np.arange(len(rows)) % _FOLDS != k for rows in sides]
        scorer = witness.fit(sides[0][kept[0]], sides[1][kept[1]], seed + k)
        scorers.append(scorer)
        for found, rows, keep in zip(held_out, sides, kept, strict=True):
            found.append(scorer(rows[~keep]))
    return scorers, (np.concatenate(held_out[0]), np.concatenate(held_out[1]))


def _count(
    scorers: Sequence[Scorer],
    rows: FloatArray,
    column: int,
    threshold: float,
    rng: np.random.Generator,
) -> int:
    """Count rows whose score by a fit drawn for the row reaches the threshold."""
    drawn = rng.integers(len(scorers), size=len(rows))
    hits = 0
    for k, scorer in enumerate(scorers):
        part = rows[drawn == k]
        if len(part):
            hits += int((scorer(part)[:, column] >= threshold).sum())
    return hits
