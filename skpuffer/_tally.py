"""What was counted so far: parts that add up, in any order, to the same.

Contract: records are replaced and never changed, so that a sum that fails leaves what
it was made of. May import `_validation` and what it may, no estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from skpuffer._checks import as_list, is_integer
from skpuffer._validation import (
    MAX_VALUES,
    CountedRows,
    Layout,
    Part,
    added,
    refuse_alike,
    rows_to_fit,
    sorted_rows,
)
from skpuffer.exceptions import ParameterError

# Below, masses of a prior are 64-bit integers.
_MAX_ROWS = 2**62


@dataclass(frozen=True)
class Tally:
    """Parts of what was counted.

    Attributes
    ----------
    layout : Layout or None
        What the columns are; None before anything was counted.
    parts : tuple of Part
        Each has more than twice as many rows as the next, so that there are few, and a
        row is added up a few times.
    n_rows : int
    secrets, priors : frozenset
        The labels that occur.
    """

    layout: Layout | None = None
    parts: tuple[Part, ...] = ()
    n_rows: int = 0
    secrets: frozenset[Any] = frozenset()
    priors: frozenset[Any] = frozenset()

    @classmethod
    def of(cls, layout: Layout, part: Part) -> Tally:
        """Return what a single part holds."""
        k = len(layout.columns)
        return cls(
            layout,
            (part,),
            part.n_rows,
            frozenset(part.columns[k].labels),
            frozenset(part.columns[k + 1].labels if layout.prior_names else ()),
        )

    @property
    def pending(self) -> int:
        """Number of rows of all parts; of the distinct rows once they are told apart."""
        return sum(map(len, self.parts))

    def plus(self, other: Tally, max_distinct: int) -> Tally:
        """Return what both have counted.

        Raises
        ------
        ParameterError, ValueError
            The columns differ, or there are too many rows, labels or distinct rows.
        """
        if other.layout is None:
            return self
        if self.layout is not None and self.layout != other.layout:
            raise ParameterError(
                "the rows have other columns than those counted before "
                f"({differing(_shown(self.layout), _shown(other.layout))}): count rows "
                "of one kind, with the same columns in the same order"
            )
        n_rows = self.n_rows + other.n_rows
        refuse_many_rows(n_rows)
        secrets, priors = self.secrets | other.secrets, self.priors | other.priors
        for parameter, labels in (("secret", secrets), ("prior", priors)):
            if len(labels) > MAX_VALUES:
                raise ValueError(
                    f"the {parameter} has {len(labels)} distinct values in all chunks, "
                    f"more than {MAX_VALUES}: bin them first (pandas.cut, "
                    "KBinsDiscretizer)"
                )
            refuse_alike(parameter, labels)
        parts: list[Part] = []
        for part in sorted((*self.parts, *other.parts), key=len, reverse=True):
            parts.append(part)
            while len(parts) > 1 and len(parts[-2]) <= 2 * len(parts[-1]):
                parts[-2:] = [added(parts[-2:])]
        both = Tally(other.layout, tuple(parts), n_rows, secrets, priors)
        if both.pending > max_distinct:
            both = both.told_apart()
        if both.pending > max_distinct:
            raise ParameterError(
                f"there are {both.pending} distinct rows, more than "
                f"max_distinct={max_distinct}: round columns of measurements "
                "(grid=step), count fewer columns, or raise max_distinct"
            )
        return both

    def told_apart(self) -> Tally:
        """Return the same in one part of distinct rows."""
        if len(self.parts) < 2:
            return self
        return replace(self, parts=(added(self.parts),))

    def in_order(self) -> tuple[Layout, Part]:
        """Return the distinct rows, in an order that depends on nothing but them.

        Raises
        ------
        ParameterError
            There are none.
        """
        whole = self.told_apart()
        if whole.layout is None or not whole.n_rows:
            raise ParameterError("no rows were counted yet: update with some first")
        return whole.layout, sorted_rows(whole.parts[0])

    def rows_for(self, estimator: Any) -> CountedRows:
        """Return the distinct rows as the fit of an estimator takes them.

        Raises
        ------
        ParameterError
            There are none, or the estimator names another secret or prior.
        """
        layout, part = self.in_order()
        name = type(estimator).__name__
        if estimator.secret is not None and estimator.secret_from_y:
            raise ParameterError(
                f"{name} is given its secret more than once (secret= in the constructor "
                "and secret_from_y=True): keep one"
            )
        known = {"secret": layout.secret_columns, "prior": layout.prior_columns}
        for parameter, there in known.items():
            given = getattr(estimator, parameter)
            if given is None or _places(given, layout) == there:
                continue
            if there is not None:
                have = f"have {parameter}={list(there)!r}"
            elif getattr(layout, f"{parameter}_names"):
                have = f"were given its labels (update(X, {parameter}=labels))"
            else:
                have = f"have no {parameter}"
            raise ParameterError(
                f"{name} has {parameter}={given!r}, and the counts {have}: count with "
                f"{parameter}={given!r}, or set {parameter}=None, which takes what was "
                "counted"
            )
        return rows_to_fit(layout, part)


def _places(given: Any, layout: Layout) -> tuple[Any, ...]:
    """Return the columns that a parameter names as a layout does."""
    if isinstance(given, tuple) and given in layout.order:
        return (given,)  # One column under several levels of names.
    wanted = tuple(as_list(given))
    if layout.frame:
        return wanted
    width = len(layout.order)
    return tuple(w % width if is_integer(w) else w for w in wanted)


def refuse_many_rows(n_rows: int) -> None:
    """Refuse more rows than the masses of a prior can count."""
    if n_rows >= _MAX_ROWS:
        raise ValueError(
            f"there are {n_rows} rows, and fewer than 2**62 can be counted: divide all "
            "counts by a common number"
        )


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Say where two records differ."""
    return "; ".join(
        f"{name}: {one[name]!r} and {other[name]!r}"
        for name in one
        if one[name] != other[name]
    )


def _shown(layout: Layout) -> dict[str, Any]:
    return {field.name: getattr(layout, field.name) for field in fields(layout)}
