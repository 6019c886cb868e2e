"""What a fitted release reveals of rows that it was not fitted on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skpuffer._checks import refuse_swapped
from skpuffer._text import group_text, label_text, listed
from skpuffer._validation import read_again
from skpuffer.core.calibration import Budget, Exact, MixtureWitness, Pair, Transport
from skpuffer.core.channels import RowPair, exact_divergence
from skpuffer.core.grid import grid_step
from skpuffer.core.mixtures import MIXTURES
from skpuffer.exceptions import ParameterError, SkippedPairWarning


def held_out_divergence(
    estimator: Any,
    X: Any,
    secret: Any = None,
    *,
    prior: Any = None,
    sample_weight: Any = None,
) -> pd.DataFrame:
    """Compute the divergence of a fitted release under the distribution of other rows.

    The promise of a fitted estimator is for its prior. Here the prior is that of X
    instead: rows that were not used for fitting, rounded and clipped as `transform`
    does, at the scale that fit found. Nothing is released.

    Parameters
    ----------
    estimator : any release of this package
        Fitted; with one released column, with ``scope="column"``, or of categories
        alone.
    X : frame or array-like of shape (n, d)
        As in fit.
    secret : array-like, optional
        The secret of each row, where it is no column of X (or comes from y).
    prior : array-like, optional
        The prior of each row, where it is no column of X.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    pandas.DataFrame
        One line a pair, prior and released column: `pair`, `prior`, `column`,
        `divergence`, `epsilon`, and `holds`, whether the divergence is at most
        epsilon. The divergence is the larger of both directions, of all `n_releases`
        together; it is a proven upper bound, within 1e-5 of the truth, or what
        `transport` proves where that is all that is known (several copies under
        Laplace noise, exponential noise, divergences of hundreds). Pairs that were not
        fitted, or do not occur in X, are left out; a warning names fitted ones.

    Raises
    ------
    NotFittedError
        Before fit.
    ParameterError
        The release is of several columns jointly, no pair that was fitted occurs in X,
        or X does not fit the estimator.

    Warns
    -----
    SkippedPairWarning
        Some pairs that were fitted do not occur in X: of them nothing is said.

    Examples
    --------
    >>> from skpuffer import RenyiPufferfishGaussian
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> noise = RenyiPufferfishGaussian(alpha=2, epsilon=1, secret="sex").fit(df)
    >>> other = df.assign(age=df["age"] + 3 * (df["sex"] == "M"))
    >>> held_out_divergence(noise, other)[["pair", "divergence", "holds"]].round(2)
         pair  divergence  holds
    0  (F, M)       15.31  False
    """
    refuse_swapped(estimator, "held_out_divergence(estimator, X)")
    check_is_fitted(estimator)
    guarantee = estimator.guarantee_
    names = list(guarantee.columns)
    joint = guarantee.scope == "joint" and len(names) > 1
    if joint and guarantee.law != "categorical":
        raise ParameterError(
            f"scope='joint' releases {len(names)} columns together, and the divergence "
            "is computed for one: fit with scope='column', or release one column"
        )
    sample = read_again(estimator, X, secret, prior, sample_weight)
    budget = Budget(guarantee.alpha, guarantee.epsilon, guarantee.n_releases)
    lines = []
    every = list(range(len(names)))
    for block in [every] if joint else [[column] for column in every]:
        for fitted in sample.priors(block):
            for i, j in fitted.pairs:
                labels = fitted.secrets[i], fitted.secrets[j]
                if not {labels, labels[::-1]} & set(guarantee.pairs):
                    continue
                both = fitted.conditionals[i], fitted.conditionals[j]
                scale, distances = estimator.scale_[block], sample.distances(block)
                if distances[0] is None:
                    pair = Pair(*both, np.ones(1))
                    value = _divergence(estimator, pair, float(scale[0]))
                else:
                    rows = RowPair(*both, scale, distances)
                    value = exact_divergence(rows, budget, scale)
                lines.append(
                    {
                        "pair": labels,
                        "prior": fitted.label,
                        "column": ", ".join(names[column] for column in block),
                        "divergence": value,
                        "epsilon": guarantee.epsilon,
                        "holds": value <= guarantee.epsilon,
                    }
                )
    seen = {
        (line["prior"] if guarantee.priors else None, frozenset(line["pair"]))
        for line in lines
    }
    lacking = [
        group_text(prior, f"{label_text(a)} – {label_text(b)}")
        for prior in guarantee.priors or (None,)
        for a, b in guarantee.pairs
        if (prior, frozenset((a, b))) not in seen
        and not {(prior, a, b), (prior, b, a)} & set(guarantee.skipped)
    ]
    if not lines:
        raise ParameterError(
            f"X has rows of no pair that was fitted ({listed(lacking)}), and nothing "
            "could be said: give rows with secret values of the fit"
        )
    if lacking:
        warnings.warn(
            "X lacks rows of pairs that were fitted, and nothing is said of them: "
            f"{listed(lacking)}",
            SkippedPairWarning,
            stacklevel=2,
        )
    columns = ["pair", "prior", "column", "divergence", "epsilon", "holds"]
    return pd.DataFrame(lines, columns=columns)


def _divergence(estimator: Any, pair: Pair, scale: float) -> float:
    """Bound the divergence of the release of one column, for one pair."""
    guarantee = estimator.guarantee_
    law = estimator._fitted_law()
    budget = Budget(guarantee.alpha, guarantee.epsilon, guarantee.n_releases)
    step = np.array([grid_step(scale) if scale else 0.0])
    if law.name not in MIXTURES and scale:
        rule = Transport()
        shifts = rule.calibrate(pair, law, budget).witness.on_grid(step)
        return rule.divergence(shifts, law, budget, np.array([scale]))
    witness = MixtureWitness.of(pair).on_grid(step)
    return Exact().divergence(witness, law, budget, np.array([scale]))
