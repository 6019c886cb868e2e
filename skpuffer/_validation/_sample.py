"""From what fit and transform are given to the rows they work on."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skpuffer._parameters import check_bounds, check_column_weights
from skpuffer._validation._categories import CategorySet
from skpuffer._validation._counted import CountedRows
from skpuffer._validation._frames import (
    Dropped,
    is_frame,
    take_columns,
)
from skpuffer._validation._groups import (
    Groups,
    group_rows,
    metadata_columns,
    refuse_misaligned,
    select_pairs,
)
from skpuffer._validation._mixed import read_mixed
from skpuffer._validation._rows import to_multiples, within_bounds
from skpuffer._validation._values import (
    check_weights,
    numeric_matrix,
    readable,
    refuse_non_finite,
)
from skpuffer.core.prior import Conditional, Prior
from skpuffer.exceptions import ParameterError

# Work on this many rows at a time stays in a core's cache.
_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class Sample:
    """Validated rows with their groups and what was declared about the columns.

    Attributes
    ----------
    values : ndarray of shape (n, k), float64
        Finite, within the declared bounds.
    names : list of str
        The released columns.
    secret : Groups
    prior : Groups or None
    weight : ndarray of shape (n,), or None
        Positive sample weights.
    counts : ndarray of shape (n,), int64, or None
        How many rows of data each row stands for, where that is not one.
    ranges : ndarray of shape (k, 2)
        Declared bounds; infinite where there are none.
    column_weights : ndarray of shape (k,), or None
        Those given as numbers.
    pairs : list of (label, label)
        The secret pairs to protect.
    dropped : Dropped
        What was taken out of X.
    sets : tuple of CategorySet or None
        The declared categories of each column, whose values are then positions in
        them; None for a column of numbers.
    rounding : tuple of float or None
        The step to whose multiples each column was rounded; empty where none was.
    """

    values: np.ndarray
    names: list[str]
    secret: Groups
    prior: Groups | None
    weight: np.ndarray | None
    counts: np.ndarray | None
    ranges: np.ndarray
    column_weights: np.ndarray | None
    pairs: list[tuple[Hashable, Hashable]]
    dropped: Dropped
    sets: tuple[CategorySet | None, ...]
    rounding: tuple[float | None, ...] = ()
    _made: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)
    _making: Any = field(default_factory=RLock, init=False, repr=False)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what was made of the rows under a key, or make it.

        The rows do not change; whoever calibrates them again (`skpuffer.reuse`) finds
        it here. Threads wait for each other.
        """
        with self._making:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    @cached_property
    def limits(self) -> np.ndarray:
        """The least and the largest value of each column, shape (2, k)."""
        return np.array([self.values.min(axis=0), self.values.max(axis=0)])

    @property
    def is_number(self) -> np.ndarray:
        """Which columns hold numbers, shape (k,)."""
        return np.array([one is None for one in self.sets])

    def distances(self, columns: list[int]) -> tuple[np.ndarray | None, ...]:
        """Return the distances between the categories of some columns."""
        chosen = [self.sets[column] for column in columns]
        return tuple(None if one is None else one.distances for one in chosen)

    def priors(self, columns: list[int]) -> list[Prior]:
        """Return the fitted priors of some columns; pairs that occur in each."""
        secret = self.secret
        every = len(columns) == len(self.names)
        values = self.values if every else self.values[:, columns]
        labels = self.prior.labels if self.prior else (None,)
        codes, width = secret.codes, len(secret.labels)
        if self.prior is not None:
            codes = self.prior.codes * width + codes
        parts = self._parts(values, codes, len(labels) * width)
        found = []
        for place, label in enumerate(labels):
            present = [
                (value, part)
                for value, part in zip(
                    secret.labels, parts[place * width :], strict=False
                )
                if part is not None
            ]
            secrets = [value for value, _ in present]
            pairs = tuple(
                (secrets.index(a), secrets.index(b))
                for a, b in self.pairs
                if a in secrets and b in secrets
            )
            conditionals = tuple(part for _, part in present)
            found.append(Prior(label, tuple(secrets), conditionals, pairs))
        return found

    def _parts(
        self, values: np.ndarray, codes: np.ndarray, n_groups: int
    ) -> list[Conditional | None]:
        """Return the distribution of each group's rows, None for one without rows."""
        if values.shape[1] == 1 and self.weight is None and self.counts is None:
            return [
                Conditional.from_rows(part, overwrite=True) if len(part) else None
                for part in _split(values[:, 0], codes, n_groups)
            ]
        found: list[Conditional | None] = []
        for group in range(n_groups):
            rows = np.flatnonzero(codes == group)
            weight, counts = (
                None if given is None else given[rows]
                for given in (self.weight, self.counts)
            )
            part = values.take(rows, axis=0)
            found.append(
                Conditional.from_rows(part, weight, counts, overwrite=True)
                if len(rows)
                else None
            )
        return found


def _split(values: np.ndarray, codes: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """Return the values of each group, shape (n, 1), a block that fits in cache at once."""
    parts = [np.empty((size, 1)) for size in _sizes(codes, n_groups)]
    filled = [0] * n_groups
    for start in range(0, len(values), _BLOCK):
        block, here = values[start : start + _BLOCK], codes[start : start + _BLOCK]
        for group, part in enumerate(parts):
            rows = np.flatnonzero(here == group)
            end = filled[group] + len(rows)
            part[filled[group] : end, 0] = block.take(rows)
            filled[group] = end
    return parts


def _sizes(codes: np.ndarray, n_groups: int) -> list[int]:
    if n_groups > 2:
        return np.bincount(codes, minlength=n_groups).tolist()
    # Faster, and the last has the rest.
    blocks = range(0, len(codes), _BLOCK)
    first = sum(np.count_nonzero(codes[i : i + _BLOCK] == 0) for i in blocks)
    return [first, len(codes) - first][:n_groups]


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
