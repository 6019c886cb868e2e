"""Two samples as witnesses see them: as rows, and as features of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from skpuffer.audit._witnesses import FEATURES, ROWS
from skpuffer.core.features import NystroemFeatures, moment_sum
from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import ParameterError
from skpuffer.metrics import STATIONARY, median_gamma

# Entries of a block of the kernel: 16 MB.
_BLOCK = 2**21


@dataclass(frozen=True)
class KernelSettings:
    """The kernel of an audit.

    Attributes
    ----------
    metric : str or callable
        As in `sklearn.metrics.pairwise.pairwise_kernels`.
    gamma : float, "median" or None
        "median": of columns that were given unit variance.
    n_components : int
        Landmarks.
    """

    metric: Any
    gamma: Any
    n_components: int

    def map_for(self, x: FloatArray, y: FloatArray, seed: int) -> FeatureMap:
        """Choose width, units and landmarks from rows of both samples."""
        pooled = np.concatenate([x, y])
        centre, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
        parameters: dict[str, float] = {}
        stationary = isinstance(self.metric, str) and self.metric in STATIONARY
        if stationary:
            # Distances of rows far from zero would lose their digits.
            centre = pooled.mean(axis=0)
        if isinstance(self.gamma, str):
            spread = pooled.std(axis=0)
            scale = np.where(spread > 0, spread, 1.0)
            if stationary:
                first, second = ((rows - centre) / scale for rows in (x, y))
                parameters["gamma"] = median_width(first, second, self.metric, seed)
        elif self.gamma is not None:
            parameters["gamma"] = self.gamma

        def kernel(left: FloatArray, right: FloatArray) -> FloatArray:
            found: FloatArray = pairwise_kernels(
                left, right, metric=self.metric, **parameters
            )
            return found

        rng = np.random.default_rng([seed, 1])
        landmarks = np.concatenate(
            [
                rows[rng.permutation(len(rows))[: max(1, self.n_components // 2)]]
                for rows in (x, y)
            ]
        )
        fitted = NystroemFeatures.fit((landmarks - centre) / scale, kernel)
        return FeatureMap(centre, scale, fitted, kernel)


def median_width(x: FloatArray, y: FloatArray, metric: str, seed: int) -> float:
    """Return the width by the median rule, of columns with unit variance."""
    try:
        return median_gamma(x, y, metric=metric, random_state=seed)
    except ParameterError:
        # Most rows are alike.
        return 0.5


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """From rows to the Nyström features of a kernel, block by block."""

    centre: FloatArray
    scale: FloatArray
    features: NystroemFeatures
    kernel: Callable[[FloatArray, FloatArray], FloatArray]

    def transform(self, rows: FloatArray) -> FloatArray:
        """Return features of shape (n, n_features); any kernel will do."""
        found = np.empty((len(rows), self.features.n_features))
        block = max(1, _BLOCK // len(self.features.landmarks))
        for start in range(0, len(rows), block):
            part = (rows[start : start + block] - self.centre) / self.scale
            products = self.kernel(part, self.features.landmarks)
            found[start : start + block] = products @ self.features.root
        return found

    def second_moment(self, rows: FloatArray) -> FloatArray:
        """Return the mean of φφᵀ, or refuse a kernel with k(x, x) above 1."""
        return moment_sum(_InUnits(self), rows) / len(rows)


@dataclass(frozen=True, eq=False)
class _InUnits:
    """The features of rows in their own units, checked to be no longer than 1."""

    mapped: FeatureMap

    @property
    def n_features(self) -> int:
        return self.mapped.features.n_features

    def transform(self, X: FloatArray) -> FloatArray:
        units = (X - self.mapped.centre) / self.mapped.scale
        return self.mapped.features.transform(units)


class Views:
    """Rows to learn from and rows to count, as witnesses see them.

    Parameters
    ----------
    learning, counting : two ndarray of shapes (n_x, d) and (n_y, d)
        Rows of both samples.
    kernel : KernelSettings
        Chosen by the rows to learn from.
    needed : set of str
        The views that are used.
    rng : numpy.random.Generator

    Attributes
    ----------
    counting : two ndarray
    """

    def __init__(
        self,
        learning: tuple[FloatArray, FloatArray],
        counting: tuple[FloatArray, FloatArray],
        kernel: KernelSettings,
        needed: set[str],
        rng: np.random.Generator,
    ) -> None:
        self.counting = counting
        self._learning = {ROWS: learning}
        if FEATURES in needed:
            self._mapped = kernel.map_for(*learning, int(rng.integers(2**31)))
            x, y = (self.see(FEATURES, rows) for rows in learning)
            self._learning[FEATURES] = x, y

    def learning(self, view: str) -> tuple[FloatArray, FloatArray]:
        """Return the rows of X and of Y to learn from."""
        return self._learning[view]

    def see(self, view: str, rows: FloatArray) -> FloatArray:
        """Return rows as a witness of this view sees them."""
        return self._mapped.transform(rows) if view == FEATURES else rows
