"""The other door for data: rows that are not there yet, partition by partition.

Knows of partitions and of nothing that is done with them: what to make of one, and how
to merge two results, is given by the caller. Dask and polars are imported inside
functions, and looked for among the modules that are loaded already. Rows never travel
to this process: a partition becomes a summary, or a released partition, where it is.
"""

from collections.abc import Callable
from typing import Any

from skpuffer._lazy import _dask, _polars
from skpuffer._lazy._dask import is_dask, map_parts, reduce_parts
from skpuffer._lazy._polars import count_groups, is_lazy_polars, map_frame

__all__ = [
    "count_groups",
    "is_dask",
    "is_lazy",
    "map_lazily",
    "reduce_parts",
    "without_rows",
]


def is_lazy(X: object) -> bool:
    """Whether X is of a kind that this door takes; nothing is imported to tell."""
    return is_dask(X) or is_lazy_polars(X)


def without_rows(X: Any) -> Any:
    """Return an eager frame or an array with the columns of X and no rows."""
    return (_dask if is_dask(X) else _polars).without_rows(X)


def map_lazily(X: Any, function: Callable[[Any, int], Any], empty: Any) -> Any:
    """Return a lazy X whose partitions a function makes from those of X.

    Parameters
    ----------
    X : Dask DataFrame or array, or polars LazyFrame
    function : callable
        Of a partition, which may have no rows, and its number.
    empty : frame or ndarray without rows
        What the partitions that it makes look like.
    """
    return (map_parts if is_dask(X) else map_frame)(X, function, empty)
