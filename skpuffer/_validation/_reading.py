"""From what fit is given to the rows it works on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skpuffer._parameters import check_bounds, check_column_weights
from skpuffer._validation._categories import CategorySet
from skpuffer._validation._counted import CountedRows
from skpuffer._validation._frames import Dropped, is_frame, take_columns
from skpuffer._validation._groups import (
    group_rows,
    metadata_columns,
    refuse_misaligned,
    select_pairs,
)
from skpuffer._validation._mixed import read_mixed
from skpuffer._validation._rows import to_multiples, within_bounds
from skpuffer._validation._sample import Sample
from skpuffer._validation._values import (
    check_weights,
    numeric_matrix,
    readable,
    refuse_non_finite,
)
from skpuffer.exceptions import ParameterError


def read_sample(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    secret: Any,
    prior: Any,
    weight: Any,
    *,
    mixed: bool = False,
    counted: CountedRows | None = None,
    rounding: tuple[float | None, ...] = (),
) -> Sample:
    """Turn what fit was given into rows, groups and ranges.

    Parameters
    ----------
    estimator : Release
        Its parameters say where the secret is; its feature names are set.
    X, y, secret, prior, weight
        As in `fit`.
    mixed : bool
        Whether there may be categories among the columns.
    counted : CountedRows, optional
        Rows that were read and counted before, in place of X, secret and prior.
    rounding : tuple of float or None, optional
        The step to whose multiples each column is to be rounded.

    Returns
    -------
    Sample

    Raises
    ------
    ParameterError, ValueError, TypeError
        Before anything is computed; see `fit`.
    """
    names, columns, dropped, counts = {}, {}, {}, None
    given = {}
    if counted is None:
        X = readable(X)
        given = labels_beside(estimator, y, secret, prior)
    else:
        X, weight, counts = counted.X, counted.weight, counted.counts
        rounding = counted.rounding
    for parameter, labels in given.items():
        spec = getattr(estimator, parameter)
        if spec is not None:
            names[parameter], columns[parameter], dropped[parameter] = take_columns(
                X, spec, parameter
            )
        elif labels is not None:
            refuse_misaligned(X, labels, parameter)
            names[parameter], columns[parameter] = metadata_columns(labels, parameter)
    taken = Dropped.union(list(dropped.values()))
    if counted is not None:
        taken = counted.dropped
    remaining = taken.remove_from(X)
    if (remaining is not X or is_frame(X)) and remaining.shape[1] == 0:
        raise ParameterError(
            "X has no column to release, beside those that secret and prior name"
        )
    if mixed:
        values, released, sets = read_mixed(
            estimator, remaining, taken, weight=weight, counts=counts
        )
    else:
        values = numeric_matrix(estimator, remaining, reset=True)
        released = taken.names_without(remaining, values.shape[1])
        sets = (None,) * len(released)
        refuse_non_finite(values, released)
    groups = {
        parameter: group_rows(
            names[parameter],
            columns[parameter],
            n_rows=len(values),
            parameter=parameter,
        )
        for parameter in names
    }
    if counted is not None:
        groups = counted.groups
    weight = check_weights(weight, len(values))
    ranges, column_weights = _declared(estimator, released, sets)
    _refuse_rounded_sets(rounding, released, sets)
    values = within_bounds(
        to_multiples(values.astype(np.float64, copy=False), rounding, released),
        ranges,
        released,
        refuse=estimator.out_of_bounds == "error",
        counts=counts,
    )
    if weight is not None and not weight.all():
        # A weight of zero is a row that is not there.
        kept = weight > 0
        values, weight = values[kept], weight[kept]
        counts = None if counts is None else counts[kept]
        groups = {parameter: group.subset(kept) for parameter, group in groups.items()}
    return Sample(
        values=values,
        names=released,
        secret=groups["secret"],
        prior=groups.get("prior"),
        weight=weight,
        counts=counts,
        ranges=ranges,
        column_weights=column_weights,
        pairs=select_pairs(estimator.secret_pairs, groups["secret"].labels),
        dropped=taken,
        sets=sets,
        rounding=rounding,
    )


def labels_beside(
    estimator: BaseEstimator, y: Any, secret: Any, prior: Any
) -> dict[str, Any]:
    """Return the labels given beside X; None where they are columns of it.

    Raises
    ------
    ParameterError, ValueError
        They are given twice, or there is no secret.
    """
    return {
        "secret": _secret_labels(estimator, y, secret),
        "prior": _prior_labels(estimator, prior),
    }


def _secret_labels(estimator: BaseEstimator, y: Any, secret: Any) -> Any:
    """Return the labels given beside X, None where the secret is a column of it."""
    name = type(estimator).__name__
    ways = [
        way
        for way, used in (
            ("secret= in the constructor", estimator.secret is not None),
            ("secret= in fit", secret is not None),
            ("secret_from_y=True", bool(estimator.secret_from_y)),
        )
        if used
    ]
    if not ways:
        raise ParameterError(
            f"{name} has no secret to protect: name its column (secret='sex'), pass it "
            "to fit (secret=labels), or set secret_from_y=True"
        )
    if len(ways) > 1:
        raise ParameterError(
            f"{name} is given its secret more than once ({' and '.join(ways)}): keep one"
        )
    if not estimator.secret_from_y:
        return secret
    if y is None:
        raise ValueError(
            f"{name} with secret_from_y=True requires y to be passed, but the target y "
            "is None"
        )
    return y


def _prior_labels(estimator: BaseEstimator, prior: Any) -> Any:
    if estimator.prior is not None and prior is not None:
        raise ParameterError(
            f"{type(estimator).__name__} is given its prior more than once (prior= in "
            "the constructor and in fit): keep one"
        )
    return prior


def _refuse_rounded_sets(
    rounding: tuple[float | None, ...],
    names: list[str],
    sets: tuple[CategorySet | None, ...],
) -> None:
    """Refuse to take rounded numbers for categories."""
    for step, name, one in zip(rounding, names, sets, strict=False):
        if step is not None and one is not None:
            raise ParameterError(
                f"column {name!r} is released as categories, and its numbers were "
                f"rounded to multiples of {step:g}: count them as they are "
                "(grid={column: step} names the columns to round)"
            )


def _declared(
    estimator: BaseEstimator,
    names: list[str],
    sets: tuple[CategorySet | None, ...],
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the declared ranges, and column weights given as numbers."""
    weights = estimator.column_weights
    by_range = isinstance(weights, str) and weights == "range"
    by_model = estimator.prior_model in ("bounded", "population")
    needs_all = by_model or estimator.clip_output or by_range
    numeric = np.array([one is None for one in sets])
    ranges = np.tile([-np.inf, np.inf], (len(names), 1))
    ranges[numeric] = check_bounds(
        estimator.bounds,
        [name for name, one in zip(names, sets, strict=True) if one is None],
        all_columns=needs_all,
    )
    if isinstance(weights, str):
        return ranges, None
    return ranges, check_column_weights(weights, names)
