"""Second moments of one sample, summed while it streams by."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from skpuffer._checks import choice, integer, number
from skpuffer._lazy import is_dask, reduce_parts, without_rows
from skpuffer._text import listed
from skpuffer._validation import read_table, table_names
from skpuffer.core.features import FourierFeatures, moment_sum
from skpuffer.core.gram import moment_divergence
from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import ParameterError
from skpuffer.metrics._checks import read_grid, shaped
from skpuffer.metrics._kernels import STATIONARY


class KernelMoments:
    """The second moments of a sample in random Fourier features, in constant memory.

    Two of them with the same parameters have the same features, hence one kernel with
    k(x, x) = 1: their divergence is exact for it, parts of a sample can be summed
    anywhere and merged, and no row is kept.

    Parameters
    ----------
    gamma : float
        Width of the kernel, positive; see `median_gamma`. It must not follow from
        the batches, which would make the features of two samples differ.
    metric : {"rbf", "laplacian"}
    n_components : int
        Number of features, even. The state is n_components² numbers.
    random_state : int
        Seed of the features: the same for all that are to be compared.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = KernelMoments(gamma=0.1), KernelMoments(gamma=0.1)
    >>> for _ in range(3):
    ...     _ = first.partial_fit(rng.normal(size=(500, 2)))
    ...     _ = second.partial_fit(rng.normal(1.0, size=(500, 2)))
    >>> first.count, round(first.divergence(second, alpha=2, reg=0.01), 3)
    (1500, 0.903)

    Nothing can be said of an empty one:

    >>> first.divergence(KernelMoments(gamma=0.1))
    Traceback (most recent call last):
    ...
    skpuffer.exceptions.ParameterError: the second sample has no rows yet: ...
    """

    def __init__(
        self,
        *,
        gamma: float,
        metric: str = "rbf",
        n_components: int = 512,
        random_state: int = 0,
    ) -> None:
        self._gamma = number("gamma", gamma, above=0.0)
        self._metric = choice("metric", metric, STATIONARY)
        self._n_components = integer("n_components", n_components, least=2)
        if self._n_components % 2:
            raise ParameterError(
                f"n_components={n_components!r} must be even: Fourier features come in "
                "pairs"
            )
        self._seed = integer("random_state", random_state, least=0)
        self._features: FourierFeatures | None = None
        self._names: tuple[str, ...] = ()
        self._sum: FloatArray = np.zeros((self._n_components, self._n_components))
        self._count = 0

    @property
    def count(self) -> int:
        """Number of rows seen."""
        return self._count

    @property
    def second_moment(self) -> FloatArray:
        """Mean of φ(x) φ(x)ᵀ, shape (n_components, n_components); NaN without rows."""
        if not self._count:
            return np.full_like(self._sum, np.nan)
        return self._sum / self._count

    def partial_fit(self, X: Any) -> Self:
        """Add the rows of a batch.

        Parameters
        ----------
        X : frame or array-like of shape (n, n_columns), Dask frame or Dask array
            Finite numbers. Of Dask, each partition is summed where it is, and the sums
            are merged: equal to one batch up to round-off. Large values are best
            centred, all batches of all samples by the same constants: cos ωx of a
            large x has lost its digits.

        Returns
        -------
        KernelMoments
            This one.

        Raises
        ------
        ValueError, TypeError
            The batch is not a finite numeric table with the columns of the first.
        """
        if is_dask(X):
            return self._add_partitions(X)
        rows = read_table(X, "X")
        names = _names_of(X)
        features = self._features
        if features is None:
            features = FourierFeatures.draw(
                self._metric,
                self._gamma,
                rows.shape[1],
                self._n_components,
                np.random.default_rng([self._seed, 1]),
            )
        self._refuse_other_columns(rows.shape[1], names)
        self._features = features
        self._names = self._names or names
        self._sum += moment_sum(features, rows)
        self._count += len(rows)
        return self

    def _add_partitions(self, X: Any) -> Self:
        empty = without_rows(X)
        self._refuse_other_columns(empty.shape[1], _names_of(empty))
        parameters = dict(self._parameters)
        found = reduce_parts(
            X, {}, partial(_moments_of, parameters), partial(_merged, parameters)
        )
        if found is None:
            raise ValueError("X has no rows in any of its partitions")
        return self.merge(found)

    def _refuse_other_columns(self, width: int, names: tuple[str, ...]) -> None:
        if self._names and names and names != self._names:
            raise ValueError(
                f"X has the columns {listed(list(names))}, and the batches before had "
                f"{listed(list(self._names))}: select them alike, in the same order"
            )
        if self._features is not None and width != len(self._features.frequencies):
            raise ValueError(
                f"X has {width} columns, and the batches before had "
                f"{len(self._features.frequencies)}"
            )

    def merge(self, other: KernelMoments) -> Self:
        """Add the rows that another has seen.

        Parameters
        ----------
        other : KernelMoments
            With the same parameters, of rows with the same columns. It stays as it is.

        Returns
        -------
        KernelMoments
            This one, as if it had seen the rows of both.

        Raises
        ------
        ParameterError
            The features differ.
        """
        self._refuse_other(other, "merged")
        if self._features is None:
            self._features = other._features
        self._names = self._names or other._names
        self._sum += other._sum
        self._count += other._count
        return self

    @overload
    def divergence(
        self, other: KernelMoments, *, alpha: float = 2.0, reg: float = 1e-3
    ) -> float: ...
    @overload
    def divergence(
        self, other: KernelMoments, *, alpha: ArrayLike = 2.0, reg: ArrayLike = 1e-3
    ) -> Any: ...

    def divergence(
        self, other: KernelMoments, *, alpha: ArrayLike = 2.0, reg: ArrayLike = 1e-3
    ) -> Any:
        """Compute the kernel Rényi divergence of this sample from another.

        Parameters
        ----------
        other : KernelMoments
            With the same parameters.
        alpha, reg : float or 1-D array-like
            As in `kernel_renyi_divergence`.

        Returns
        -------
        float or ndarray
            In nats; what `kernel_renyi_divergence` with ``approx="rff"`` and the same
            parameters gives for all rows at once.

        Raises
        ------
        ParameterError
            The features differ, a sample has no rows, or a parameter is out of range.
        """
        alphas, regs, shape = read_grid(alpha, reg)
        self._refuse_other(other, "compared")
        for moments, which in ((self, "first"), (other, "second")):
            if not moments.count:
                raise ParameterError(
                    f"the {which} sample has no rows yet: give it some by partial_fit"
                )
        found = moment_divergence(
            self.second_moment, other.second_moment, alphas=alphas, regs=regs
        )
        return shaped(found, shape)

    def __repr__(self) -> str:
        """Show the parameters and the number of rows."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self._parameters)
        return f"<KernelMoments({shown}) of {self._count} rows>"

    @property
    def _parameters(self) -> list[tuple[str, Any]]:
        return [
            ("gamma", self._gamma),
            ("metric", self._metric),
            ("n_components", self._n_components),
            ("random_state", self._seed),
        ]

    def _refuse_other(self, other: Any, verb: str) -> None:
        """Refuse sums over other features: their entries have another meaning."""
        if not isinstance(other, KernelMoments):
            raise ParameterError(
                f"KernelMoments cannot be {verb} with {type(other).__name__}: give "
                "another KernelMoments"
            )
        differing = [
            f"{name}: {mine!r} and {theirs!r}"
            for (name, mine), (_, theirs) in zip(
                self._parameters, other._parameters, strict=True
            )
            if mine != theirs
        ]
        one, two = self._features, other._features
        if one is not None and two is not None:
            if len(one.frequencies) != len(two.frequencies):
                columns = len(one.frequencies), len(two.frequencies)
                differing.append(f"columns: {columns[0]} and {columns[1]}")
            elif not differing and not np.array_equal(one.frequencies, two.frequencies):
                differing.append("frequencies, of another version of numpy")
        if differing:
            raise ParameterError(
                f"KernelMoments of different features cannot be {verb} "
                f"({'; '.join(differing)}): make all with the same parameters"
            )
        if self._names and other._names and self._names != other._names:
            raise ParameterError(
                f"KernelMoments of different columns cannot be {verb} "
                f"({listed(list(self._names))}; {listed(list(other._names))}): select "
                "them alike, in the same order"
            )


def _names_of(X: Any) -> tuple[str, ...]:
    """Return the names of a frame's columns, and none of an array's."""
    return tuple(map(str, table_names(X)))


def _moments_of(parameters: dict[str, Any], rows: Any) -> KernelMoments:
    """Return the moments of a partition; the features follow from the parameters."""
    return KernelMoments(**parameters).partial_fit(rows)


def _merged(parameters: dict[str, Any], parts: list[KernelMoments]) -> KernelMoments:
    """Return the moments of several partitions."""
    return reduce(KernelMoments.merge, parts, KernelMoments(**parameters))
