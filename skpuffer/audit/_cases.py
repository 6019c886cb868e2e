"""What the audit of a fitted estimator found, as frozen records."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

from skpuffer._text import group_text, label_text, order_text
from skpuffer.accounting import Guarantee


@dataclass(frozen=True)
class CaseAudit:
    """What was found for one prior, pair and, with ``scope="column"``, column.

    Attributes
    ----------
    prior : hashable or None
    pair : tuple of (value, value)
    columns : tuple of str
        The columns looked at together.
    n_rows : tuple of (int, int)
        Rows released under either value of the secret.
    bound : float
        Lower bound on the true ε, or on the Rényi divergence of the order of the claim;
        NaN where none could be computed.
    verdict : str
    reason : str or None
    alpha : float or None
        Order of the claim; None for an (ε, δ) one.
    """

    prior: Hashable
    pair: tuple[Hashable, Hashable]
    columns: tuple[str, ...]
    n_rows: tuple[int, int]
    bound: float
    verdict: str
    reason: str | None
    alpha: float | None = None

    def __str__(self) -> str:
        pair = f"{label_text(self.pair[0])} – {label_text(self.pair[1])}"
        name = f"{group_text(self.prior, pair)}; {', '.join(self.columns)}"
        quantity = "ε" if self.alpha is None else f"D_{self.alpha:g}"
        found = f"{quantity} ≥ {self.bound:.3g}"
        why = self.reason if math.isnan(self.bound) else found
        return f"{name}: {self.verdict} ({why})"


@dataclass(frozen=True)
class EstimatorAudit:
    """What samples of a release say about its guarantee.

    Attributes
    ----------
    bound : float
        The largest bound of all cases: larger is leakier. NaN where none could be
        computed.
    verdict : {"refuted", "no violation found", "too few samples"}
        On the guarantee as a whole: "refuted" if a case is, otherwise "too few
        samples" if a case has too few.
    reason : str or None
        Why `bound` is NaN.
    confidence : float
        All bounds hold together with this probability; each case has its share.
    alpha : float or None
        Order of the claim; None for an (ε, δ) one.
    epsilon, delta : float
        The claim; δ is 0 for a Rényi claim.
    held_out : bool
        Whether rows stand for the population, or for the prior of the guarantee.
    cases : tuple of CaseAudit
    guarantee : Guarantee
        That of the estimator.
    """

    bound: float
    verdict: str
    reason: str | None
    confidence: float
    alpha: float | None
    epsilon: float
    delta: float
    held_out: bool
    cases: tuple[CaseAudit, ...]
    guarantee: Guarantee

    def __str__(self) -> str:
        if self.alpha is None:
            claim = f"(ε, δ) = ({self.epsilon:g}, {self.delta:g})"
        else:
            claim = f"({order_text(self.alpha)}, {self.epsilon:g})-Rényi"
        where = "for the population of X" if self.held_out else "for its own prior"
        lines = [
            f"{claim} {where}: {self.verdict} at confidence {100 * self.confidence:g} %",
            *(map(str, self.cases) if self.cases else [str(self.reason)]),
        ]
        return "\n  ".join(lines)
