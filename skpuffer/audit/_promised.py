"""Rows drawn as a fitted estimator promises that they are drawn.

Knows estimators by their `guarantee_`, their parameters and what was kept of their fit to
read the same rows again; it imports none.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from skpuffer._validation import Sample, read_again
from skpuffer.core.prior import Conditional, FloatArray, pooled_spread
from skpuffer.exceptions import ParameterError


class Case(NamedTuple):
    """Rows of two secret values under one prior, i.i.d. each.

    `first` and `second` have shape (n, k), in the units of the data.
    """

    prior: Hashable
    pair: tuple[Hashable, Hashable]
    first: FloatArray
    second: FloatArray


def promised_cases(
    estimator: Any,
    X: Any,
    secret: Any,
    prior: Any,
    sample_weight: Any,
    *,
    held_out: bool,
    n_samples: int,
    rng: np.random.Generator,
) -> Iterator[Case]:
    """Draw rows for every prior and pair of a promise.

    Parameters
    ----------
    estimator : fitted estimator
    X, secret, prior, sample_weight
        As in its fit.
    held_out : bool
        Whether to take the rows of X as they are, each once, in place of draws.
    n_samples : int
        Draws for each secret value.
    rng : numpy.random.Generator

    Yields
    ------
    Case
        Pairs that do not occur are left out.

    Raises
    ------
    ParameterError
        The promise is for rows that were not given, or X is not what it should be.
    """
    guarantee = estimator.guarantee_
    model = guarantee.prior_model
    if any(labels is not None for labels in guarantee.categories):
        raise ParameterError(
            f"{type(estimator).__name__} releases categories, and numbers are audited "
            "here: encode a release as numbers (one-hot, say) and give it to "
            "KernelRenyiAuditor, with the secret of its rows"
        )
    if model == "bounded" and not held_out:
        low, high = np.array(guarantee.bounds, dtype=np.float64).T
        # The farthest that a prior on the bounds can be: two point masses.
        ends = (np.tile(end, (n_samples, 1)) for end in (low, high))
        yield Case(None, ("lower bounds", "upper bounds"), *ends)
        return
    if X is None:
        raise ParameterError(
            f"X=None: prior_model={model!r} is about rows, so give "
            + ("rows that were held out" if held_out else "those of the fit again")
        )
    if model == "population" and not held_out:
        raise ParameterError(
            "prior_model='population' promises nothing about draws from the fitted rows: "
            "give rows that were held out, and held_out=True"
        )
    if held_out and sample_weight is not None:
        raise ParameterError(
            "held_out=True takes no sample_weight: each row is released once, as an "
            "independent draw of the population"
        )
    sample = read_again(estimator, X, secret, prior, sample_weight)
    if not held_out:
        if guarantee.weighted != (sample_weight is not None):
            raise ParameterError(
                f"sample_weight={'None' if sample_weight is None else 'given'}, and the "
                f"fit was {'' if guarantee.weighted else 'not '}weighted: give the rows "
                "of the fit with the weights of the fit"
            )
        _refuse_other_rows(sample, guarantee.group_sizes)
        _refuse_other_values(sample, estimator.report_.column_std)
    known = {frozenset(pair) for pair in guarantee.pairs}
    for fitted in sample.priors(list(range(len(sample.names)))):
        for i, j in fitted.pairs:
            pair = fitted.secrets[i], fitted.secrets[j]
            if frozenset(pair) not in known:
                continue
            if held_out:
                rows = [_rows_of(sample, fitted.label, label) for label in pair]
            else:
                draw = _gaussian if model == "gaussian" else _resampled
                rows = [draw(fitted.conditionals[s], n_samples, rng) for s in (i, j)]
            yield Case(fitted.label, pair, *rows)


def _refuse_other_rows(sample: Sample, group_sizes: Any) -> None:
    """Refuse rows that cannot be those of the fit, by the sizes of their groups."""
    secret, prior = sample.secret, sample.prior
    for label, value, rows in group_sizes:
        member = np.zeros(len(sample.values), dtype=bool)
        if value in secret.labels and (prior is None or label in prior.labels):
            member = secret.codes == secret.labels.index(value)
            if prior is not None:
                member &= prior.codes == prior.labels.index(label)
        if member.sum() != rows:
            raise ParameterError(
                f"X has {member.sum()} rows of secret {value!r}"
                f"{'' if label is None else f' under prior {label!r}'}, and the fit had "
                f"{rows}: give the fitted rows again, or other rows with held_out=True"
            )


def _refuse_other_values(sample: Sample, fitted_std: Sequence[float]) -> None:
    """Refuse rows that cannot be those of the fit, by the spread of their columns."""
    for column, (name, fitted) in enumerate(zip(sample.names, fitted_std, strict=True)):
        conditionals = [c for p in sample.priors([column]) for c in p.conditionals]
        found = float(pooled_spread(conditionals)[0][0])
        if not math.isclose(found, fitted, rel_tol=1e-6):
            raise ParameterError(
                f"column {name!r} of X has standard deviation {found:.6g}, and that of "
                f"the fit had {fitted:.6g}: give the fitted rows again, or other rows "
                "with held_out=True"
            )


def _rows_of(sample: Sample, prior: Hashable, secret: Hashable) -> FloatArray:
    member = sample.secret.codes == sample.secret.labels.index(secret)
    if sample.prior is not None:
        member &= sample.prior.codes == sample.prior.labels.index(prior)
    rows: FloatArray = sample.values[member]
    return rows


def _resampled(given: Conditional, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw from the distribution itself, with replacement."""
    chosen = rng.choice(len(given.support), size=n, p=given.probabilities)
    rows: FloatArray = given.support[chosen]
    return rows


def _gaussian(given: Conditional, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw from the Gaussians with the columns' means and mean squared deviations."""
    share = given.probabilities[:, np.newaxis]
    mean = (share * given.support).sum(axis=0)
    variance = (share * (given.support - mean) ** 2).sum(axis=0)
    return rng.normal(mean, np.sqrt(variance), (n, len(mean)))
