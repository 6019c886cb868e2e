"""Lazy frames of polars: one query that counts, and one step that releases."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any


def is_lazy_polars(X: object) -> bool:
    """Whether X is a polars LazyFrame."""
    loaded = sys.modules.get("polars")
    return loaded is not None and isinstance(X, loaded.LazyFrame)


def without_rows(X: Any) -> Any:
    """Return an eager frame with the columns of X and no rows."""
    import polars as pl

    return pl.DataFrame(schema=X.collect_schema())


def map_frame(X: Any, function: Callable[[Any, int], Any], empty: Any) -> Any:
    """Return a lazy frame that a function makes from the whole of X, as partition 0.

    Nothing is pushed past it: every row is there, in every query.
    """

    def step(frame: Any) -> Any:
        return function(frame, 0)

    return X.map_batches(
        step,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        schema=empty.schema,
    )


def count_groups(X: Any, columns: list[Any] | None, grid: Any, count: str) -> Any:
    """Count how often each row occurs, as one query.

    Parameters
    ----------
    X : LazyFrame
    columns : list of str, or None
        Those that tell rows apart; None for all.
    grid : float, mapping or None
        The step to whose multiples floats are rounded first, so that few are left.
        Those that are missing, infinite or too far from 0 stay, to be refused with
        their number.
    count : str
        What the column of counts is called.

    Returns
    -------
    eager frame
    """
    import polars as pl

    schema = X.collect_schema()
    names = list(schema) if columns is None else [c for c in schema if c in columns]
    steps = grid if isinstance(grid, Mapping) else dict.fromkeys(names, grid)
    rounded = [
        _to_multiples(pl.col(name).cast(pl.Float64), steps[name])
        for name in names
        if steps.get(name) is not None and schema[name] in (pl.Float32, pl.Float64)
    ]
    chosen = X.select(names).with_columns(*rounded)
    return _collected(chosen.group_by(names).agg(pl.len().alias(count)))


def _to_multiples(column: Any, step: float) -> Any:
    """Round as `round_to_multiples` does; what is rounded once more stays the same."""
    import polars as pl

    quotient = column / step
    whole = quotient.floor()
    whole = whole + (quotient - whole >= 0.5).cast(pl.Float64)
    near = quotient.abs() < 2**50
    return pl.when(near).then(whole * step + 0.0).otherwise(column)


def _collected(X: Any) -> Any:
    """Compute a lazy frame, in streams where polars can."""
    import polars as pl

    # The name of the engine is known from here on.
    if tuple(int(part) for part in pl.__version__.split(".")[:2]) >= (1, 25):
        return X.collect(engine="streaming")
    return X.collect()
