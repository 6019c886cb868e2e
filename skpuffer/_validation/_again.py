"""Rows for an estimator that is fitted already, with the groups that fit would see."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone

from skpuffer._validation._reading import read_sample
from skpuffer._validation._sample import Sample
from skpuffer._validation._values import readable
from skpuffer.exceptions import ParameterError


def read_again(
    estimator: BaseEstimator, X: Any, secret: Any, prior: Any, weight: Any
) -> Sample:
    """Read rows as the fit of an estimator would, and leave the estimator as it is.

    Parameters
    ----------
    estimator : AdditiveRelease
        Fitted.
    X, secret, prior, weight
        As in `fit`; the secret as labels also where fit took it from X or y.

    Returns
    -------
    Sample
        With every pair of the secret values that occur.

    Raises
    ------
    ParameterError
        X has other columns to release than those fitted; and as in `read_sample`.
    """
    X = readable(X)
    # Pairs are chosen later: one that was fitted need not occur here.
    reader = clone(estimator).set_params(secret_pairs="all")
    if secret is not None:
        reader.set_params(secret=None, secret_from_y=False)
    if prior is not None:
        reader.set_params(prior=None)
    if secret is not None or prior is not None:
        kept = [spec for spec in (reader.secret, reader.prior) if spec is not None]
        if not kept:
            X = estimator._dropped.remove_from(X)
    sets = getattr(estimator, "categories_", {})
    if sets:
        # The sets of the fit, whichever labels occur here.
        reader.set_params(categories=[list(labels) for labels in sets.values()])
    sample = read_sample(
        reader,
        X,
        None,
        secret,
        prior,
        weight,
        mixed=hasattr(estimator, "categories_"),
        rounding=estimator.guarantee_.rounding,
    )
    fitted = list(estimator.guarantee_.columns)
    if sample.names != fitted:
        raise ParameterError(
            f"X has the columns {', '.join(sample.names)} to release, and the estimator "
            f"was fitted on {', '.join(fitted)}"
        )
    return sample
