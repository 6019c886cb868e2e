"""Distinct rows and how often each occurs: what an empirical prior is made of.

Counts are made in one pass over data of any size, chunk by chunk, anywhere, and added
up. They hold data: never put one inside an estimator or beside a release. May import
`_validation` and what it may.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from skpuffer._checks import as_list, integer, number
from skpuffer._lazy import is_lazy
from skpuffer._lazy_counts import tally_lazily
from skpuffer._tally import Tally, differing, refuse_many_rows
from skpuffer._text import listed, value_text
from skpuffer._validation import (
    CountedRows,
    read_chunk,
    read_counts,
    read_weights,
    to_frame,
)
from skpuffer.exceptions import ParameterError

if TYPE_CHECKING:
    import pandas as pd


class ConditionalCounts:
    """Distinct rows with their secret and how often each occurs.

    `fit_counts` of an estimator takes them in place of the rows. Parts of the data are
    counted anywhere and merged, in any order, to the same result.

    It holds the rows themselves, and so do its pickles: guard it like the data. A
    fitted estimator and a release hold nothing of it.

    Parameters
    ----------
    secret : str, int, or list of them, optional
        Column or columns of the chunks that hold the secret: names for frames,
        positions for arrays. The labels may be passed to `update` instead.
    prior : str, int, or list of them, optional
        Column whose values tell priors apart. May be passed to `update` instead.
    columns : list of str, optional
        Columns of the frames to release; by default all others of the first chunk,
        and every other chunk must have the same.
    grid : float or {column: float}, optional
        Round columns of numbers to the nearest multiples of a positive step, halves
        upwards, before they are counted: one step for all, or one a column named. An
        estimator fitted on the counts rounds to the same multiples in `transform`
        before it adds noise, and its guarantee says so.
    max_distinct : int
        Limit of distinct rows, hence of memory.

    Attributes
    ----------
    n_rows : int
        Number of rows counted, without those of weight zero.
    n_distinct : int
        Number of distinct rows: values, secret, prior and weight.

    Notes
    -----
    Memory and time to merge grow with the distinct rows: whole numbers and categories
    have few, measurements have as many as there are rows, unless a grid rounds them.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer import RenyiPufferfishLaplace
    >>> chunk = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> counts = ConditionalCounts(secret="sex").update(chunk).update(chunk)
    >>> counts
    <ConditionalCounts of 80 rows, 4 distinct: age given sex>
    >>> RenyiPufferfishLaplace(secret="sex").fit_counts(counts).scale_.round(2)
    array([0.72])

    Parts are merged; nothing comes of nothing:

    >>> other = ConditionalCounts.from_frame(chunk, secret="sex")
    >>> counts.merge(other).n_rows, ConditionalCounts(secret="sex").n_rows
    (120, 0)

    The rows of a query with GROUP BY are counts too:

    >>> table = pd.DataFrame({"age": [30, 31], "sex": ["F", "M"], "n": [20, 30]})
    >>> ConditionalCounts.from_counts(table, secret="sex", count="n").to_frame()
       age sex  count
    0   30   F     20
    1   31   M     30
    """

    def __init__(
        self,
        *,
        secret: Any = None,
        prior: Any = None,
        columns: Any = None,
        grid: Any = None,
        max_distinct: int = 20_000_000,
    ) -> None:
        self._places = {"secret": secret, "prior": prior}
        self._columns = columns
        self._grid = _check_grid(grid)
        self._max_distinct = integer("max_distinct", max_distinct, least=1)
        self._tally = Tally()
        self._lock = Lock()

    def update(
        self,
        X: Any,
        *,
        secret: Any = None,
        prior: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Count the rows of a chunk; one that is refused changes nothing.

        Parameters
        ----------
        X : frame or array-like of shape (n, d), Dask frame or array, or LazyFrame
            The columns to release, and those of secret and prior where the
            constructor names them. No rows are no mistake. Partitions of Dask are
            counted where they are, a LazyFrame by one query.
        secret, prior : array-like of shape (n,) or (n, m), or frame, optional
            The labels of each row, where they are no columns of X.
        sample_weight : array-like of shape (n,), optional
            Non-negative; for all chunks or for none.

        Returns
        -------
        ConditionalCounts
            This one.

        Raises
        ------
        ParameterError
            The secret is given twice or not at all, a grid does not fit, or there are
            more distinct rows than `max_distinct`.
        ValueError, TypeError
            Values are missing or infinite, a secret is missing, lengths differ, or the
            chunk has other columns than those before.
        """
        self._count(X, {"secret": secret, "prior": prior}, sample_weight, None)
        return self

    def merge(self, other: ConditionalCounts) -> Self:
        """Add the rows that another has counted.

        Parameters
        ----------
        other : ConditionalCounts
            Of the same columns, secret, prior and grid. It stays as it is.

        Returns
        -------
        ConditionalCounts
            This one, as if it had counted the rows of both.

        Raises
        ------
        ParameterError
            They differ, or there are more distinct rows than `max_distinct`.
        """
        if not isinstance(other, ConditionalCounts):
            raise ParameterError(
                f"ConditionalCounts cannot be merged with {type(other).__name__}: give "
                "another ConditionalCounts"
            )
        if self._parameters != other._parameters:
            raise ParameterError(
                "ConditionalCounts made with other parameters cannot be merged "
                f"({differing(self._parameters, other._parameters)}): make all alike"
            )
        self._add(other._tally)
        return self

    @classmethod
    def from_frame(
        cls,
        X: Any,
        *,
        secret: Any,
        prior: Any = None,
        sample_weight: Any = None,
        columns: Any = None,
        grid: Any = None,
    ) -> Self:
        """Count the rows of one frame.

        Parameters
        ----------
        X : frame or array-like of shape (n, d), Dask frame or array, or LazyFrame
        secret, prior : str, int, or list of them
            Their columns.
        sample_weight : array-like of shape (n,), optional
        columns, grid
            As in the constructor.

        Returns
        -------
        ConditionalCounts
        """
        made = cls(secret=secret, prior=prior, columns=columns, grid=grid)
        return made.update(X, sample_weight=sample_weight)

    @classmethod
    def from_counts(
        cls,
        table: Any,
        *,
        secret: Any,
        count: str,
        prior: Any = None,
        weight: str | None = None,
        columns: Any = None,
        grid: Any = None,
    ) -> Self:
        """Take rows that were counted elsewhere: the result of GROUP BY.

        Parameters
        ----------
        table : frame
            One row a group; groups that occur twice are added.
        secret : str or list of str
            Column or columns of the secret.
        count : str
            Column of the number of rows, whole numbers from 0 upwards.
        prior : str or list of str, optional
        weight : str, optional
            Column of the sample weight of each row of a group, as in `to_frame`.
        columns, grid
            As in the constructor. Give the grid to which the query rounded, if it did:
            `transform` then rounds rows alike.

        Returns
        -------
        ConditionalCounts

        Raises
        ------
        ParameterError, ValueError, TypeError
            A count is missing or no number of rows, a group key is missing, or as in
            `update`.
        """
        made = cls(secret=secret, prior=prior, columns=columns, grid=grid)
        rest, counts = read_counts(table, count)
        refuse_many_rows(sum(counts.tolist()))
        weights = None
        if weight is not None:
            rest, weights = read_weights(rest, weight)
        made._count(rest, {"secret": None, "prior": None}, weights, counts)
        return made

    @property
    def n_rows(self) -> int:
        """Number of rows counted."""
        return self._tally.n_rows

    @property
    def n_distinct(self) -> int:
        """Number of distinct rows."""
        return self._told_apart().pending

    def to_frame(self) -> pd.DataFrame:
        """Return the distinct rows in order, as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            The columns to release, secret, prior, `count`, and `weight` if any. It is
            data.

        Raises
        ------
        ParameterError
            There are no rows yet.
        """
        return to_frame(*self._told_apart().in_order())

    def __repr__(self) -> str:
        """Show columns and numbers of rows, and no value."""
        tally = self._told_apart()
        layout = tally.layout
        if layout is None:
            return "<ConditionalCounts of 0 rows>"
        given = [*layout.secret_names, *layout.prior_names]
        steps = [
            f"{step:.10g} ({name})"
            for name, step in zip(layout.names, layout.rounding, strict=True)
            if step is not None
        ]
        rounded = f", rounded to multiples of {listed(steps)}" if steps else ""
        return (
            f"<ConditionalCounts of {tally.n_rows} rows, {tally.pending} distinct: "
            f"{listed(list(layout.names))} given {', '.join(given)}"
            f"{', weighted' if layout.weighted else ''}{rounded}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = Lock()

    @property
    def _parameters(self) -> dict[str, Any]:
        return {
            "secret": as_list(self._places["secret"]) or None,
            "prior": as_list(self._places["prior"]) or None,
            "columns": as_list(self._columns) or None,
            "grid": self._grid,
        }

    def _count(self, X: Any, labels: dict[str, Any], weight: Any, counts: Any) -> None:
        for parameter, given in labels.items():
            if given is not None and self._places[parameter] is not None:
                raise ParameterError(
                    f"{parameter} is given twice, as a column "
                    f"({parameter}={value_text(self._places[parameter])}) and to "
                    "update: keep one"
                )
        if self._places["secret"] is None and labels["secret"] is None:
            raise ParameterError(
                "there is no secret to count by: name its column "
                "(ConditionalCounts(secret='sex')), or pass it to update (secret=labels)"
            )
        if is_lazy(X):
            self._add(
                tally_lazily(
                    X,
                    labels,
                    weight,
                    places=self._places,
                    columns=self._columns,
                    grid=self._grid,
                    max_distinct=self._max_distinct,
                )
            )
            return
        read = read_chunk(
            X,
            places=self._places,
            labels=labels,
            columns=self._columns,
            grid=self._grid,
            weight=weight,
            counts=counts,
        )
        if read is not None:
            self._add(Tally.of(*read))

    def _add(self, new: Tally) -> None:
        """Add what was counted, all or nothing."""
        with self._lock:
            self._tally = self._tally.plus(new, self._max_distinct)

    def _told_apart(self) -> Tally:
        """Add the parts up, and keep the sum."""
        with self._lock:
            self._tally = self._tally.told_apart()
            return self._tally


def _check_grid(grid: Any) -> Any:
    if grid is None:
        return None
    if isinstance(grid, Mapping):
        return {
            name: number(f"grid[{name!r}]", step, above=0.0)
            for name, step in grid.items()
        }
    return number("grid", grid, above=0.0)


def counted_rows(counts: Any, estimator: Any) -> CountedRows:
    """Return what was counted as the fit of an estimator takes it.

    Raises
    ------
    ParameterError
        There is nothing, or the estimator names another secret or prior.
    """
    if not isinstance(counts, ConditionalCounts):
        raise ParameterError(
            f"fit_counts takes ConditionalCounts, got {type(counts).__name__}: count "
            "rows first (ConditionalCounts.from_frame), or fit on them"
        )
    return counts._told_apart().rows_for(estimator)
