"""What an audit found: frozen records, and the only words of a verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from skpuffer._text import label_text
from skpuffer.core.event_divergence import Divergence
from skpuffer.core.events import CountingRegion

REFUTED = "refuted"
NO_VIOLATION = "no violation found"
TOO_FEW = "too few samples"


def verdict_for(bound: float, ceiling: float, epsilon: float | None) -> str | None:
    """Return the verdict on one pair.

    A claim is refuted where the confidence set leaves it out. The set holds the bound,
    so that a claim equal to it is not refuted.

    Parameters
    ----------
    bound : float
        nan where nothing could be computed.
    ceiling : float
        The largest bound that so many rows allow: at most `epsilon`, nothing could
        have been refuted.
    epsilon : float or None
        The claim.
    """
    if epsilon is None:
        return None
    if math.isnan(bound):
        return TOO_FEW
    if bound > epsilon:
        return REFUTED
    return NO_VIOLATION if ceiling > epsilon else TOO_FEW


def joint_verdict(verdicts: Sequence[str | None]) -> str | None:
    """Return the verdict on all pairs: what is worst, then what is left undecided."""
    for word in (REFUTED, TOO_FEW, NO_VIOLATION):
        if word in verdicts:
            return word
    return None


@dataclass(frozen=True, eq=False)
class FoldResult:
    """The event of one fold, its counts, and what they leave open.

    Attributes
    ----------
    witness : str
        Which witness scored the rows.
    column : int
        Which of its scores.
    threshold : float
        The event is a score of at least this.
    expected : (float, float)
        Rates of the event for rows of X and Y, as estimated when it was chosen.
    region : CountingRegion
        The counts, of rows that played no part in the choice; P is X.
    target : Divergence
        What the event was chosen for.
    betting : float
        A bound on the same Rényi divergence by means, 0 where there is none.
    """

    witness: str
    column: int
    threshold: float
    expected: tuple[float, float]
    region: CountingRegion
    target: Divergence
    betting: float = 0.0

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Hits among X, rows of X, hits among Y, rows of Y."""
        region = self.region
        return region.hits_p, region.n_p, region.hits_q, region.n_q

    def lower(self, target: Divergence) -> float:
        """Return the bound of this fold for a divergence."""
        found = self.region.lower(target)
        return max(found, self.betting) if target == self.target else found

    def __str__(self) -> str:
        hits_x, n_x, hits_y, n_y = self.counts
        counts = f"{hits_x} of {n_x} against {hits_y} of {n_y}"
        sign = "≥"
        if self.target.symmetric and (n_y - hits_y) * hits_y * n_x**2 > (
            (n_x - hits_x) * hits_x * n_y**2
        ):
            # The other rows tell more, and more of them are of Y.
            sign = "<"
            counts = f"{n_x - hits_x} of {n_x} against {n_y - hits_y} of {n_y}"
        return (
            f"{self.witness} score {self.column} {sign} {self.threshold:.4g}: {counts}"
        )


@dataclass(frozen=True, eq=False)
class PairResult:
    """The audit of one pair of samples.

    Attributes
    ----------
    labels : (hashable, hashable)
        The secret values, or "X" and "Y".
    n_x, n_y : int
        Rows.
    bound : float
        What the divergence of the claim is at least, in nats; nan where nothing could
        be computed. Below 0 under ``claim="kernel_renyi"`` alone, and there −∞ where
        nothing is known.
    ceiling : float
        The largest bound that so many rows allow.
    verdict : str or None
        None without a claim.
    reason : str or None
        Why `bound` is nan.
    confidence : float
        Of this pair's bounds: errors are shared among pairs.
    folds : tuple of FoldResult
        Each with half of the error; every bound is the larger of both.
    divergence, margin : tuple of float
        Plug-in kernel Rényi divergence at each `reg`, and how far above the truth it
        may lie (∞ where no bound is known): diagnostics, except under
        ``claim="kernel_renyi"``.
    """

    labels: tuple[Hashable, Hashable]
    n_x: int
    n_y: int
    bound: float
    ceiling: float
    verdict: str | None
    reason: str | None
    confidence: float
    folds: tuple[FoldResult, ...] = ()
    divergence: tuple[float, ...] = ()
    margin: tuple[float, ...] = ()

    def lower(self, target: Divergence) -> float:
        """Return the bound for another δ or order; nan without counts."""
        return max((fold.lower(target) for fold in self.folds), default=math.nan)

    @property
    def best_fold(self) -> FoldResult | None:
        """The fold with the larger bound."""
        return max(self.folds, key=lambda f: f.lower(f.target), default=None)


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The outcome of an audit, for people: a table and a sentence.

    Attributes
    ----------
    claim : str
    epsilon : float or None
    bound : float
    verdict : str or None
    reason : str or None
    confidence : float
    pairs : tuple of PairResult
    """

    claim: str
    epsilon: float | None
    bound: float
    verdict: str | None
    reason: str | None
    confidence: float
    pairs: tuple[PairResult, ...]

    @property
    def sentence(self) -> str:
        """The verdict in words, with its level."""
        level = f"{1 - self.confidence:.3g}"
        found = f"{self.claim} is at least {self.bound:.4g}"
        if self.bound == -math.inf:
            found = f"nothing is known from below of {self.claim}"
        found += f" (confidence {self.confidence:.4g})"
        if math.isnan(self.bound):
            return f"{TOO_FEW}: {self.reason}"
        if self.epsilon is None:
            return found
        if self.verdict == REFUTED:
            return (
                f"refuted at level {level}: {found}, and at most {self.epsilon:g} "
                "is claimed"
            )
        if self.verdict == TOO_FEW:
            return f"too few samples: {self._shortage()}"
        return f"no violation found: {found}, and at most {self.epsilon:g} is claimed"

    def _shortage(self) -> str:
        for pair in self.pairs:
            if pair.reason:
                return pair.reason
        most = min(pair.ceiling for pair in self.pairs)
        shown = "nothing" if most == -math.inf else f"no more than {most:.4g}"
        return (
            f"so many rows can show {shown}, whatever they hold, and "
            f"{self.epsilon:g} is claimed"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a table, one row a pair."""
        lines = []
        for pair in self.pairs:
            fold = pair.best_fold
            lines.append(
                {
                    "pair": " – ".join(label_text(label) for label in pair.labels),
                    "rows": f"{pair.n_x} / {pair.n_y}",
                    "bound": pair.bound,
                    "verdict": pair.verdict,
                    "event": pair.reason or ("" if fold is None else str(fold)),
                }
            )
        columns = ["pair", "rows", "bound", "verdict", "event"]
        return pd.DataFrame(lines, columns=columns)

    def __str__(self) -> str:
        table = self.to_frame().to_string(index=False, float_format="{:.4g}".format)
        return f"{self.sentence}\n\n{table}"

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(
            index=False, float_format="{:.4g}".format, border=0
        )
        return f"<div><p>{escape(self.sentence)}</p>{table}</div>"
