"""What a release promises, as a record, and what follows from it.

A `Guarantee` states one bound for one kind of prior. Guarantees have no addition:
Pufferfish privacy does not compose in general, and k copies can need far more than
k · epsilon. What several copies promise together is calibrated (`n_releases`).
May import the standard library, `core` and `_text`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from html import escape
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

from skpuffer._text import (
    label_text,
    law_text,
    listed,
    mechanism_text,
    number_text,
    plain,
    range_text,
)
from skpuffer.core.conversions import renyi_to_delta, renyi_to_epsilon


@dataclass(frozen=True)
class Guarantee:
    """What a release promises about the secret: a record that reads as a sentence.

    Attributes
    ----------
    alpha, epsilon : float
        The Rényi order and bound in force, nats.
    law, power : str, float or None
        The noise law, and the power of exponential noise.
    law_parameters : tuple of (name, value)
        Those of a noise law that is none of this package.
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
    secret_values : tuple
        The values of the secret that occur.
    pairs : tuple of (value, value)
        The secret values that must not be told apart; other pairs are not covered.
    prior_model : str
        "empirical", "population", "gaussian" or "bounded".
    priors : tuple
        The values of the prior column; empty where there is a single prior.
    weighted : bool
        Whether sample weights shaped the fitted prior.
    skipped : tuple of (prior, value, value)
        Pairs that could not be covered because a secret value does not occur.
    bounds : tuple of (float, float) or None
        Declared range of each column, to which values are clipped.
    scope : str
        "joint": the row; "column": each column alone.
    n_releases : int
        How many noised copies of a row the bound covers together.
    seeded : bool
        Whether the noise came from a seed when the scale was fitted.
    group_sizes : tuple of (prior, value, rows)
        Rows per secret value (and prior) that the scale was fitted on: exact counts of
        the data, which no guarantee covers.
    target : tuple of (epsilon, delta), or None
        The (ε, δ) promise asked for, where one was.
    confidence : float or None
        Of a guarantee for the population; None for those of this release.
    categories : tuple of tuple or None
        Declared categories of each column; None for a column of numbers.
    metrics : tuple of str or None
        What the distances between them are called.
    categories_from_data : tuple of str
        Columns whose categories are those that occurred, which tells of the data.
    unknown : tuple
        Of each column: "error" where labels outside its categories are refused, the
        category that they count as, or "uniform".
    rounding : tuple of float or None
        The step to whose multiples each column is rounded before anything else; None
        for columns that are not, and empty where none is.
    versions : tuple of (package, version)
        What computed the scale.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer import RenyiPufferfishLaplace
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> promise = RenyiPufferfishLaplace(alpha=4, secret="sex").fit(df).guarantee_
    >>> str(promise)[:69]
    'Each released row (age) is (4, 1)-Rényi Pufferfish private about sex '
    >>> round(promise.to_epsilon(delta=1e-3), 2)
    2.55
    """

    alpha: float
    epsilon: float
    law: str
    columns: tuple[str, ...]
    scale: tuple[float, ...]
    rule: str
    source: str
    secret: tuple[str, ...]
    secret_values: tuple[Hashable, ...]
    pairs: tuple[tuple[Hashable, Hashable], ...]
    prior_model: str
    priors: tuple[Hashable, ...] = ()
    weighted: bool = False
    skipped: tuple[tuple[Hashable, Hashable, Hashable], ...] = ()
    bounds: tuple[tuple[float, float] | None, ...] = ()
    scope: str = "joint"
    n_releases: int = 1
    seeded: bool = False
    group_sizes: tuple[tuple[Hashable, Hashable, int], ...] = ()
    target: tuple[float, float] | None = None
    confidence: float | None = None
    categories: tuple[tuple[Hashable, ...] | None, ...] = ()
    metrics: tuple[str | None, ...] = ()
    categories_from_data: tuple[str, ...] = ()
    unknown: tuple[Hashable, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    power: float | None = None
    rounding: tuple[float | None, ...] = ()
    law_parameters: tuple[tuple[str, Any], ...] = ()

    def to_epsilon(self, delta: float) -> float:
        """Return the ε′ ≥ 0 of the (ε′, δ) promise that follows, perhaps infinite.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            `delta` is not in [0, 1).
        """
        return renyi_to_epsilon(self.alpha, self.epsilon, delta)

    def to_delta(self, epsilon: float) -> float:
        """Return the δ in [0, 1] of the (ε′, δ) promise that follows.

        Parameters
        ----------
        epsilon : float
            ε′ ≥ 0.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            `epsilon` is negative or not a number.
        """
        return renyi_to_delta(self.alpha, self.epsilon, epsilon)

    @property
    def covers_all_pairs(self) -> bool:
        """Whether every two secret values that occur are a pair."""
        every = {frozenset(pair) for pair in combinations(self.secret_values, 2)}
        return {frozenset(pair) for pair in self.pairs} == every

    def __str__(self) -> str:
        if self.scope == "joint":
            subject = f"Each released row ({', '.join(self.columns)})"
        else:
            subject = f"Each released column alone ({'; '.join(self.columns)})"
        sentences = [
            f"{subject} is ({label_text(self.alpha)}, {number_text(self.epsilon)})-"
            f"Rényi Pufferfish private about {self._secret_text()} "
            f"{self._prior_text()}{self._rounding_text()}; "
            f"{self._mechanism_text()}, rule {self.rule} "
            f"({self.source})."
        ]
        if self.target is not None:
            epsilon, delta = map(number_text, self.target)
            sentences.append(f"This implies (ε, δ) = ({epsilon}, {delta}).")
        counted = [
            f"{label_text(label)} ({column})"
            for column, label in zip(self.columns, self.unknown, strict=False)
            if label not in ("error", "uniform")
        ]
        if counted:
            sentences.append(
                f"Labels outside the categories count as {listed(counted)}."
            )
        if self.n_releases == 1:
            sentences.append("It covers one release of one row.")
        else:
            sentences.append(
                f"It covers up to {self.n_releases} independent releases of one row."
            )
        sentences.append(
            f"Not covered: {', '.join(self._exceptions())}, and further releases."
        )
        if self.seeded:
            sentences.append(
                "The noise comes from a seed: nothing is promised against anyone who "
                "knows or guesses it."
            )
        return " ".join(sentences)

    def _exceptions(self) -> list[str]:
        exceptions = ["several rows of one person", "columns kept beside the release"]
        if self.scope == "column" and len(self.columns) > 1:
            exceptions.insert(0, "the columns of a row together")
        if not self.covers_all_pairs:
            exceptions.append("other pairs of secret values")
        if self.categories_from_data:
            named = listed(list(self.categories_from_data))
            exceptions.append(f"which categories occur ({named})")
        if "uniform" in self.unknown and self.prior_model != "bounded":
            exceptions.append("labels outside the categories")
        if self.skipped:
            exceptions.append(f"pairs that do not occur ({len(self.skipped)} skipped)")
        still = [c for c, b in zip(self.columns, self.scale, strict=True) if b == 0]
        if still:
            exceptions.append(
                f"values outside the fitted data in what is released unchanged "
                f"({', '.join(still)})"
            )
        return exceptions

    def _secret_text(self) -> str:
        if self.covers_all_pairs:
            shown = listed([label_text(value) for value in self.secret_values])
        else:
            pairs = [f"{label_text(a)} – {label_text(b)}" for a, b in self.pairs]
            shown = f"the pairs {listed(pairs)} alone"
        return f"{', '.join(self.secret)} ({shown})"

    def _prior_text(self) -> str:
        kinds = ["bounds"] if any(self.bounds) else []
        kinds += ["categories"] if any(self.categories) else []
        bounds = f"on the declared {' and '.join(kinds)} ({self._range_text()})"
        if self.prior_model == "bounded":
            return f"for every prior {bounds}"
        population = self.prior_model == "population"
        kind = "fitted, weighted" if self.weighted else "fitted"
        if self.priors:
            kind = "populations" if population else f"{kind} priors"
            shown = listed([label_text(label) for label in self.priors])
            text = f"for each of the {len(self.priors)} {kind} ({shown})"
        else:
            text = "for the population" if population else f"for the {kind} prior"
        if population:
            assert self.confidence is not None
            return (
                f"{text}, with confidence {100 * self.confidence:.10g} % over the "
                f"sample, for rows outside it {bounds}"
            )
        if self.prior_model == "gaussian":
            one = "the column" if len(self.columns) == 1 else "each column"
            return (
                f"{text}, if {one} is Gaussian given {', '.join(self.secret)}, with the "
                "fitted means and variances"
            )
        return text

    def _rounding_text(self) -> str:
        steps = [
            f"{step:.10g} ({column})"
            for column, step in zip(self.columns, self.rounding, strict=False)
            if step is not None
        ]
        return f", after rounding to multiples of {listed(steps)}" if steps else ""

    def _range_text(self) -> str:
        return range_text(self.columns, self.bounds, self.categories)

    def _mechanism_text(self) -> str:
        return mechanism_text(
            self.law_text, self.columns, self.scale, self.categories, self.metrics
        )

    @property
    def law_text(self) -> str:
        """The noise law in words, with its parameters."""
        own = () if self.power is None else (("power", self.power),)
        return law_text(self.law, own + self.law_parameters)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values that JSON can hold, with the sentence."""
        card = {"guarantee": str(self), **asdict(self)}
        card["versions"] = dict(self.versions)
        card["law_parameters"] = dict(self.law_parameters)
        card["group_sizes"] = [
            {"prior": prior, "secret": value, "rows": rows}
            for prior, value, rows in self.group_sizes
        ]
        return {key: plain(value) for key, value in card.items()}

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
