"""What a release promises, as a record, and what follows from it.

A `Guarantee` states one bound for one kind of prior. Guarantees have no addition:
Pufferfish privacy does not compose in general, and k copies can need far more than
k · epsilon. What several copies promise together is calibrated (`n_releases`).
May import the standard library and `core`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

from skpuffer.core.conversions import renyi_to_delta, renyi_to_epsilon

_LISTED = 8


@dataclass(frozen=True)
class Guarantee:
    """What a release promises about the secret: a record that reads as a sentence.

    Attributes
    ----------
    alpha, epsilon : float
        The Rényi order and bound in force, nats.
    law : str
        The noise law.
    columns : tuple of str
        The released columns.
    scale : tuple of float
        The scale of the noise of each column.
    rule : str
        The calibration rule.
    source : str
        The theorem on which the rule rests.
    secret : tuple of str
        The secret columns.
    pairs : tuple of (label, label)
        The secret values that must not be told apart; others are not covered.
    prior_model : str
        "empirical", "population", "gaussian" or "bounded".
    priors : tuple
        The values of the prior column; empty where there is a single prior.
    skipped : tuple of (prior, label, label)
        Pairs that could not be covered because a secret value does not occur.
    bounds : tuple of (float, float), or None
        Declared range of each column.
    scope : str
        "joint": the row; "column": each column alone.
    n_releases : int
        How many noised copies of a row the bound covers together.
    group_sizes : mapping
        Rows per secret value (and prior) that the scale was fitted on.
    target : tuple of (epsilon, delta), or None
        The (ε, δ) promise asked for, where one was.
    confidence : float or None
        Of a guarantee for the population; None for those of this release.
    versions : mapping
        Package versions that computed the scale.
    """

    alpha: float
    epsilon: float
    law: str
    columns: tuple[str, ...]
    scale: tuple[float, ...]
    rule: str
    source: str
    secret: tuple[str, ...]
    pairs: tuple[tuple[Hashable, Hashable], ...]
    prior_model: str
    priors: tuple[Hashable, ...] = ()
    skipped: tuple[tuple[Hashable, Hashable, Hashable], ...] = ()
    bounds: tuple[tuple[float, float], ...] | None = None
    scope: str = "joint"
    n_releases: int = 1
    group_sizes: Mapping[str, int] = field(default_factory=dict, hash=False)
    target: tuple[float, float] | None = None
    confidence: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    def to_epsilon(self, delta: float) -> float:
        """Return the ε′ of the (ε′, δ) promise that follows; see `renyi_to_epsilon`."""
        return renyi_to_epsilon(self.alpha, self.epsilon, delta)

    def to_delta(self, epsilon: float) -> float:
        """Return the δ of the (ε′, δ) promise that follows; see `renyi_to_delta`."""
        return renyi_to_delta(self.alpha, self.epsilon, epsilon)

    def __str__(self) -> str:
        if self.scope == "joint":
            subject = f"Each released row ({', '.join(self.columns)})"
        else:
            subject = f"Each released column alone ({'; '.join(self.columns)})"
        sentences = [
            f"{subject} is ({self.alpha:g}, {self.epsilon:g})-Rényi Pufferfish private "
            f"about {self._subject_secret()} {self._scope_of_prior()}; "
            f"{self.law.capitalize()} noise of scale {self._scales()}, rule {self.rule} "
            f"({self.source})."
        ]
        if self.target is not None:
            sentences.append(
                f"This implies (ε, δ) = ({self.target[0]:g}, {self.target[1]:g})."
            )
        copies = (
            "one release"
            if self.n_releases == 1
            else f"up to {self.n_releases} independent releases"
        )
        sentences.append(f"It covers {copies} of one row.")
        exceptions = ["several rows of one person", "columns kept beside the release"]
        if self.scope == "column" and len(self.columns) > 1:
            exceptions.insert(0, "the columns of a row together")
        if self.skipped:
            exceptions.append(f"pairs that do not occur ({len(self.skipped)} skipped)")
        sentences.append(f"Not covered: {', '.join(exceptions)}, and further releases.")
        return " ".join(sentences)

    def _subject_secret(self) -> str:
        labels: list[Hashable] = []
        for pair in self.pairs:
            labels += [label for label in pair if label not in labels]
        everything = {frozenset(pair) for pair in combinations(labels, 2)}
        if {frozenset(pair) for pair in self.pairs} == everything:
            shown = _listed([label_text(label) for label in labels])
        else:
            shown = "pairs " + _listed(
                [f"{label_text(a)} – {label_text(b)}" for a, b in self.pairs]
            )
        return f"{', '.join(self.secret)} ({shown})"

    def _scope_of_prior(self) -> str:
        if self.prior_model == "bounded":
            return f"for every prior on the declared bounds ({self._ranges()})"
        each = ""
        if self.priors:
            shown = _listed([label_text(label) for label in self.priors])
            each = f"for each of the {len(self.priors)} fitted priors ({shown})"
        if self.confidence is not None:
            each = each.replace("fitted priors", "populations")
            return (
                f"{each or 'for the population'}, with confidence "
                f"{100 * self.confidence:.6g} % over the sample, for rows outside it "
                f"on the declared bounds ({self._ranges()})"
            )
        if self.prior_model == "gaussian":
            one = "the column" if len(self.columns) == 1 else "each column"
            return (
                f"{each}{', ' if each else ''}if {one} is Gaussian given "
                f"{', '.join(self.secret)}, with the fitted means and variances"
            )
        return each or "for the fitted prior"

    def _ranges(self) -> str:
        return _listed(
            [
                f"{column} in [{low:g}, {high:g}]"
                for column, (low, high) in zip(
                    self.columns, self.bounds or (), strict=False
                )
            ]
        )

    def _scales(self) -> str:
        return _listed(
            [
                f"{scale:.4g} ({column})"
                for column, scale in zip(self.columns, self.scale, strict=True)
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values that JSON can hold, with the sentence."""
        card = {"guarantee": str(self), **asdict(self)}
        return {key: _plain(value) for key, value in card.items()}

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the record as a JSON card to lay beside a released file.

        Parameters
        ----------
        path : path-like, optional
            Where to write it as well, as UTF-8.

        Returns
        -------
        str
            An infinite order is written as the string "inf".
        """
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def _repr_html_(self) -> str:
        return f"<p><b>Guarantee.</b> {escape(str(self))}</p>"


def label_text(label: Hashable) -> str:
    """Write a secret value as a reader expects it: 1.0 as 1, a tuple as a / b."""
    if isinstance(label, tuple):
        return " / ".join(label_text(part) for part in label)
    return f"{label:g}" if isinstance(label, float) else str(label)


def _listed(items: list[str]) -> str:
    if len(items) <= _LISTED:
        return ", ".join(items)
    return ", ".join(items[:_LISTED]) + f", … {len(items) - _LISTED} more"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
