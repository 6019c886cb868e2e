"""Dask frames and arrays: a summary of all partitions, or a partition for each.

Every partition is a delayed object with its number written into its task. No later
optimisation of the graph, whether it projects columns, prunes or fuses partitions,
looks into such a task, so that a partition keeps its number, and its noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from skpuffer.exceptions import ParameterError

# Results that one task merges.
_FAN_IN = 8

Summary = TypeVar("Summary")


def is_dask(X: object) -> bool:
    """Whether X is a Dask DataFrame or series, or a Dask array."""
    frame = _is(X, "dask.dataframe", "DataFrame", "Series")
    return frame or _is(X, "dask.array", "Array")


def _is(X: object, module: str, *names: str) -> bool:
    # What is not loaded has made no X.
    loaded = sys.modules.get(module)
    kinds = tuple(getattr(loaded, name) for name in names if hasattr(loaded, name))
    return isinstance(X, kinds)


def reduce_parts(
    X: Any,
    beside: Mapping[str, Any],
    summarise: Callable[..., Summary],
    merge: Callable[[list[Summary]], Summary],
) -> Summary | None:
    """Summarise every partition once and merge the summaries, as one graph.

    Parameters
    ----------
    X : Dask DataFrame or array
    beside : mapping from name to Dask series, frame, array or None
        Labels and weights of the rows, partitioned like X.
    summarise : callable
        Of a partition and, by name, what is beside it. It is not called for a
        partition without rows.
    merge : callable
        Makes one summary of a list of some, and leaves them as they are: a task may
        be run again.

    Returns
    -------
    summary, or None
        None where no partition has a row.

    Raises
    ------
    ParameterError
        What is beside is not of Dask, or not partitioned like X.
    ValueError, TypeError
        Of a partition, which the message names.
    """
    from dask import delayed

    given = {name: value for name, value in beside.items() if value is not None}
    parts, columns = _aligned(X, given)
    token = uuid4().hex
    summary = delayed(_summary, pure=False)
    level = [
        summary(
            summarise,
            part,
            number,
            {name: column[number] for name, column in columns.items()},
            dask_key_name=f"skpuffer-summary-{token}-{number}",
        )
        for number, part in enumerate(parts)
    ]
    merged, depth = delayed(_merged, pure=False), 0
    while len(level) > 1:
        depth += 1
        level = [
            merged(
                merge,
                level[start : start + _FAN_IN],
                dask_key_name=f"skpuffer-merge-{token}-{depth}-{start}",
            )
            for start in range(0, len(level), _FAN_IN)
        ]
    found: Summary | None = level[0].compute()
    return found


def map_parts(X: Any, function: Callable[[Any, int], Any], empty: Any) -> Any:
    """Return a lazy frame or array whose partitions a function makes from those of X.

    Parameters
    ----------
    X : Dask DataFrame or array
    function : callable
        Of a partition and its number.
    empty : pandas DataFrame or ndarray without rows
        What the partitions that it makes look like.

    Returns
    -------
    Dask DataFrame or array
        With the index, divisions and row chunks of X. Task names are new in every
        call and depend on nothing that `function` holds.
    """
    from dask import delayed

    token = uuid4().hex
    # A node of its own, whose name does not follow from what it holds.
    held = delayed(function, name=f"skpuffer-held-{token}", pure=False, traverse=False)
    call = delayed(_call, pure=False)
    if _is(X, "dask.array", "Array"):
        import dask.array as da

        X = _whole_rows(X)
        blocks = [
            da.from_delayed(
                call(
                    held,
                    part,
                    number,
                    dask_key_name=f"skpuffer-release-{token}-{number}",
                ),
                shape=(rows, empty.shape[1]),
                dtype=empty.dtype,
                name=f"skpuffer-block-{token}-{number}",
            )
            for number, (part, rows) in enumerate(
                zip(X.to_delayed().ravel().tolist(), X.chunks[0], strict=True)
            )
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)
    import dask.dataframe as dd

    # Optimised once and here: readers may join partitions, which counts and divides
    # them anew.
    frame = X.optimize()
    parts = [
        call(held, part, number, dask_key_name=f"skpuffer-release-{token}-{number}")
        for number, part in enumerate(frame.to_delayed(optimize_graph=False))
    ]
    divisions = frame.divisions if frame.known_divisions else None
    return dd.from_delayed(
        parts, meta=empty, divisions=divisions, prefix="skpuffer-released"
    )


def without_rows(X: Any) -> Any:
    """Return a pandas frame or an array with the columns of X and no rows."""
    if X.ndim != 2:
        raise ValueError(
            f"X is of Dask with {X.ndim} dimension(s), and rows with columns are needed: "
            "of a series X.to_frame(), of an array X.reshape(-1, 1)"
        )
    if _is(X, "dask.array", "Array"):
        return np.empty((0, X.shape[1]), dtype=X.dtype)
    from dask.dataframe.dispatch import make_meta

    return make_meta(X)


def _whole_rows(X: Any) -> Any:
    """Return a 2-D array whose chunks hold all columns."""
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _aligned(
    X: Any, beside: Mapping[str, Any]
) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return the partitions of X as delayed objects, and of what is beside it."""
    if not beside:
        return _parts(X, optimised=True), {}
    # Each would be optimised for itself, and readers may then join partitions of one
    # and not of the other.
    parts = _parts(X, optimised=False)
    columns = {}
    for name, value in beside.items():
        if not is_dask(value):
            raise ParameterError(
                f"X is of Dask and {name} is not ({type(value).__name__}): give a Dask "
                "series or array that is partitioned like X, or name a column of X in "
                "the constructor"
            )
        columns[name] = _parts(value, optimised=False)
        if len(columns[name]) != len(parts):
            raise ParameterError(
                f"{name} has {len(columns[name])} partitions and X has {len(parts)}: "
                "rows are matched by position in each, so take both from one frame, or "
                "repartition one like the other"
            )
    return parts, columns


def _parts(X: Any, *, optimised: bool) -> list[Any]:
    if not _is(X, "dask.array", "Array"):
        parts: list[Any] = X.to_delayed(optimize_graph=optimised)
    elif X.ndim == 1:
        parts = X.to_delayed().tolist()
    else:
        parts = _whole_rows(X).to_delayed().ravel().tolist()
    return parts


def _summary(
    summarise: Callable[..., Summary], part: Any, number: int, beside: dict[str, Any]
) -> Summary | None:
    for name, value in beside.items():
        if len(value) != len(part):
            raise ParameterError(
                f"partition {number} of X has {len(part)} rows and that of {name} "
                f"{len(value)}: rows are matched by position in each partition"
            )
    if not len(part):
        return None
    summary: Summary = _naming(number, summarise, part, **beside)
    return summary


def _merged(
    merge: Callable[[list[Summary]], Summary], pieces: Sequence[Summary | None]
) -> Summary | None:
    found = [piece for piece in pieces if piece is not None]
    return merge(found) if len(found) > 1 else next(iter(found), None)


def _call(function: Callable[[Any, int], Any], part: Any, number: int) -> Any:
    return _naming(number, function, part, number)


def _naming(
    number: int, function: Callable[..., Any], *given: Any, **named: Any
) -> Any:
    """Say which partition an error speaks of."""
    try:
        return function(*given, **named)
    except (ValueError, TypeError) as error:
        raise type(error)(f"partition {number}: {error}") from error
