"""Lazy frames of polars: one query that counts, and one step that releases."""

from __future__ import annotations

import sys
from collections.abc import Callable
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


def collected(X: Any) -> Any:
    """Compute a lazy frame, in streams where polars can."""
    import polars as pl

    # The name of the engine is known from here on.
    if tuple(int(part) for part in pl.__version__.split(".")[:2]) >= (1, 25):
        return X.collect(engine="streaming")
    return X.collect()
