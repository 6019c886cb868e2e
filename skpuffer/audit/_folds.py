"""From two samples to what they refute: learn, choose an event, count; twice.

Both samples are shuffled and halved. What is learned from one half is counted on the
other, and the other way round, each fold with half of the error; so every bound is the
larger of two. Within the learning half, witnesses are fitted on all parts but one, for
each, and the choices made by the scores of the parts left out. A row that is counted is
scored by one of these fits, drawn for the row alone: so a score is distributed as it
was among the rows left out, and a count is exactly binomial. Where most rows repeat
others, one fit on some rows and choices by the rest: the fits would disagree on which
outcomes belong to an event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skpuffer.audit._choice import ScoreCurve, choose_event, score_curves
from skpuffer.audit._records import FoldResult
from skpuffer.audit._renyi import betting_bound, choose_tilts
from skpuffer.audit._samples import mostly_distinct
from skpuffer.audit._views import KernelSettings, Views
from skpuffer.audit._witnesses import Scorer, Witness
from skpuffer.core.event_divergence import Divergence
from skpuffer.core.events import AcceptanceSet, CountingRegion
from skpuffer.core.prior import FloatArray

_PARTS = 4
# Rows of either sample; more would teach little more.
_MOST_LEARNED = 100_000
# Orders and sizes at which a Rényi divergence is bounded by means as well.
_HIGHEST_BET, _FEWEST_BET = 3.0, 10_000

_Scores = tuple[FloatArray, FloatArray]
Step = Callable[[], None]


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A witness fitted on all parts but one, for each, and the held-out scores."""

    witness: Witness
    scorers: tuple[Scorer, ...]
    held_out: _Scores


def audit_pair(
    x: FloatArray,
    y: FloatArray,
    witnesses: Sequence[Witness],
    target: Divergence,
    beta: float,
    *,
    kernel: KernelSettings,
    seed: int,
    step: Step = lambda: None,
) -> tuple[FoldResult, ...]:
    """Learn events from either half of two samples and count them on the other.

    Parameters
    ----------
    x, y : ndarray of shape (n_x, d) and (n_y, d)
        Independent rows, at least 20 of each.
    witnesses : sequence of Witness
    target : Divergence
        What the events are chosen for; the counts serve every other too.
    beta : float
        Error of both folds together.
    kernel : KernelSettings
    seed : int
    step : callable
        Called after each witness was fitted on either half.

    Returns
    -------
    tuple of two FoldResult
    """
    rng = np.random.default_rng([seed, 0])
    sides = [rows[rng.permutation(len(rows))] for rows in (x, y)]
    halves = [np.array_split(rows, 2) for rows in sides]
    return tuple(
        _audit_fold(
            (halves[0][k][:_MOST_LEARNED], halves[1][k][:_MOST_LEARNED]),
            (halves[0][1 - k], halves[1][1 - k]),
            witnesses,
            target,
            beta / 2,
            kernel,
            np.random.default_rng([seed, 3 + k]),
            step,
        )
        for k in (0, 1)
    )


def largest_bound(n_x: int, n_y: int, target: Divergence, beta: float) -> float:
    """Return the bound if an event held for all rows counted of X and for none of Y."""
    # The second fold counts the larger halves.
    sizes = n_x - n_x // 2, n_y - n_y // 2
    error = _count_error(target, sizes, beta / 2)
    accepted = AcceptanceSet.for_rates(target, (1.0, 0.0), sizes, error)
    found = CountingRegion(sizes[0], sizes[0], 0, sizes[1], accepted).lower(target)
    if _bets(target, sizes) and target.alpha is not None:
        u = np.ones(sizes[0]), np.zeros(sizes[1])
        share = beta / 4 / (2 if target.symmetric else 1)
        found = max(found, betting_bound(*u, u, target.alpha, share))
    return found


def _bets(target: Divergence, sizes: tuple[int, int]) -> bool:
    """Whether half of the error goes to means: decided before anything is counted."""
    few = 2 * min(sizes) < _FEWEST_BET
    return target.alpha is not None and target.alpha <= _HIGHEST_BET and not few


def _count_error(target: Divergence, sizes: tuple[int, int], error: float) -> float:
    return error / 2 if _bets(target, sizes) else error


def _audit_fold(
    learning: tuple[FloatArray, FloatArray],
    counting: tuple[FloatArray, FloatArray],
    witnesses: Sequence[Witness],
    target: Divergence,
    error: float,
    kernel: KernelSettings,
    rng: np.random.Generator,
    step: Step,
) -> FoldResult:
    sizes = len(counting[0]), len(counting[1])
    views = Views(learning, counting, kernel, {w.view for w in witnesses}, rng)
    distinct = mostly_distinct(np.concatenate(learning))
    fits = []
    for witness in witnesses:
        fits.append(_cross_fit(witness, views, rng, distinct))
        step()
    curves = score_curves([fit.held_out for fit in fits])
    count_error = _count_error(target, sizes, error)
    event = choose_event(curves, target, count_error, sizes)
    accepted = AcceptanceSet.for_rates(target, event.rates, sizes, count_error)
    scored = _fresh_scores(fits[event.witness], event.column, views, rng)
    hits = [int((scores >= event.threshold).sum()) for scores in scored]
    betting = 0.0
    if _bets(target, sizes):
        betting = _bet(fits, curves, views, target, error - count_error, sizes, rng)
    return FoldResult(
        witness=fits[event.witness].witness.name,
        column=event.column,
        threshold=event.threshold,
        expected=event.rates,
        region=CountingRegion(hits[0], sizes[0], hits[1], sizes[1], accepted),
        target=target,
        betting=betting,
    )


def _bet(
    fits: Sequence[_Fitted],
    curves: Sequence[ScoreCurve],
    views: Views,
    target: Divergence,
    error: float,
    sizes: tuple[int, int],
    rng: np.random.Generator,
) -> float:
    """Bound a Rényi divergence by means, with the error shared among directions."""
    assert target.alpha is not None
    tilts = choose_tilts(
        curves,
        [fit.held_out for fit in fits],
        target.alpha,
        error,
        sizes,
        symmetric=target.symmetric,
    )
    best = 0.0
    for tilt in tilts:
        fit = fits[tilt.witness]
        way = -1 if tilt.reverse else 1
        p, q = [tilt.of(s) for s in _fresh_scores(fit, tilt.column, views, rng)][::way]
        first, second = [tilt.of(s[:, tilt.column]) for s in fit.held_out][::way]
        found = betting_bound(p, q, (first, second), target.alpha, error / len(tilts))
        best = max(best, found)
    return best


def _cross_fit(
    witness: Witness, views: Views, rng: np.random.Generator, distinct: bool
) -> _Fitted:
    sides = views.learning(witness.view)
    scorers: list[Scorer] = []
    held_out: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for k in range(_PARTS) if distinct else (_PARTS,):
        kept = [_kept(len(rows), k) for rows in sides]
        seed = int(rng.integers(2**31))
        scorer = witness.fit(sides[0][kept[0]], sides[1][kept[1]], seed)
        scorers.append(scorer)
        for found, rows, keep in zip(held_out, sides, kept, strict=True):
            found.append(scorer(rows[~keep]))
    pooled = np.concatenate(held_out[0]), np.concatenate(held_out[1])
    return _Fitted(witness, tuple(scorers), pooled)


def _kept(n: int, k: int) -> np.ndarray:
    """Return which rows are fitted: all but the k-th part, or about 60 %."""
    place = np.arange(n)
    return place % _PARTS != k if k < _PARTS else place % 5 < 3


def _fresh_scores(
    fit: _Fitted, column: int, views: Views, rng: np.random.Generator
) -> list[FloatArray]:
    """Score the rows to be counted, each by a fit drawn for it."""
    found = []
    for rows in views.counting:
        drawn = rng.integers(len(fit.scorers), size=len(rows))
        scores = np.empty(len(rows))
        for k, scorer in enumerate(fit.scorers):
            chosen = drawn == k
            if chosen.any():
                seen = views.see(fit.witness.view, rows[chosen])
                scores[chosen] = scorer(seen)[:, column]
        found.append(scores)
    return found
