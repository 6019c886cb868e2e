"""Lazy rows counted where they are: one pass, and distinct rows alone travel.

Lays the two doors together: `_lazy` brings partitions, `_validation` reads them as it
does chunks in memory, `_tally` adds them up. Nothing here knows what is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from typing import Any

from skpuffer._checks import as_list
from skpuffer._lazy import count_groups, is_dask, reduce_parts, without_rows
from skpuffer._tally import Tally, refuse_many_rows
from skpuffer._validation import read_chunk, read_counts
from skpuffer.exceptions import ParameterError

# The column of counts in a query; no column of the rows has this name.
_COUNT = "skpuffer: number of rows"


def tally_lazily(
    X: Any,
    labels: Mapping[str, Any],
    weight: Any,
    *,
    places: Mapping[str, Any],
    columns: Any,
    grid: Any,
    max_distinct: int,
) -> Tally:
    """Count the rows of a Dask frame or array, or of a polars LazyFrame.

    Parameters
    ----------
    X : Dask DataFrame or array, or LazyFrame
    labels : mapping
        "secret" and "prior" where they are beside X, partitioned like it, or None.
    weight : Dask series or array, or None
    places, columns, grid, max_distinct
        As in `ConditionalCounts`.

    Returns
    -------
    Tally
        Empty where there are no rows.

    Raises
    ------
    ParameterError, ValueError, TypeError
        As in `ConditionalCounts.update`; columns that are not there at once, all else
        once it is found.
    """
    chosen = {"places": places, "columns": columns, "grid": grid}
    # Names alone: whoever has no rows yet has no labels.
    read_chunk(
        without_rows(X), labels={"secret": None, "prior": None}, weight=None, **chosen
    )
    beside = {**labels, "sample_weight": weight}
    if is_dask(X):
        found = reduce_parts(
            X, beside, partial(_counted, chosen), partial(_added, max_distinct)
        )
        return Tally() if found is None else found
    given = [name for name, value in beside.items() if value is not None]
    if given:
        raise ParameterError(
            f"{given[0]} was given beside X, a LazyFrame, whose rows have no places to "
            "match it by: make it a column of X and name it (secret, prior), or collect X"
        )
    wanted = None
    if columns is not None:
        # Each once, in the order of X.
        named = (columns, places["secret"], places["prior"])
        wanted = [name for spec in named for name in as_list(spec)]
    steps = grid
    if grid is not None and not isinstance(grid, Mapping):
        # Labels that are numbers stay as they are: rounding would join secret values.
        labelled = [*as_list(places["secret"]), *as_list(places["prior"])]
        steps = {name: grid for name in without_rows(X).columns if name not in labelled}
    rest, counts = read_counts(count_groups(X, wanted, steps, _COUNT), _COUNT)
    refuse_many_rows(sum(counts.tolist()))
    read = read_chunk(rest, labels=labels, weight=None, counts=counts, **chosen)
    return Tally() if read is None else Tally().plus(Tally.of(*read), max_distinct)


def _counted(
    chosen: dict[str, Any],
    rows: Any,
    secret: Any = None,
    prior: Any = None,
    sample_weight: Any = None,
) -> Tally:
    """Count a partition."""
    labels = {"secret": secret, "prior": prior}
    read = read_chunk(rows, labels=labels, weight=sample_weight, **chosen)
    return Tally() if read is None else Tally.of(*read)


def _added(max_distinct: int, parts: list[Tally]) -> Tally:
    """Add up what several partitions hold, and send no row twice."""
    whole = reduce(lambda one, two: one.plus(two, max_distinct), parts, Tally())
    return whole.told_apart()
