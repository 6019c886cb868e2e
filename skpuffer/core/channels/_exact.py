"""The exact rule for categories: the divergence of the two released distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skpuffer.core.calibration import Budget, Calibrated, solve_scale
from skpuffer.core.channels._channel import Channel, renyi_up
from skpuffer.core.channels._rows import RowPair, RowRange
from skpuffer.core.channels._transport import RowTransport
from skpuffer.core.channels._witness import Columns, RowWitness, WorstRow
from skpuffer.core.laws import Laplace, NoiseLaw
from skpuffer.core.prior import Conditional, FloatArray

# Outputs of a joint release whose probabilities are all written down.
OUTPUT_LIMIT = 2**16
# A product of probabilities below this may lose its digits, or vanish.
_LEAST = 1e-290
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ChannelMixtures:
    """Two distributions over all combinations of categories, and their transport.

    Attributes
    ----------
    first, second : ndarray of shape (K_1, ..., K_q)
        Probabilities.
    distances : tuple of ndarray
    least : float
        The smallest probability of a row that occurs; zero where it underflowed.
    bound : RowWitness
        What vouches where the sums do not.
    """

    first: FloatArray
    second: FloatArray
    distances: tuple[FloatArray, ...]
    least: float
    bound: RowWitness

    @classmethod
    def of(cls, pair: RowPair, bound: RowWitness) -> ChannelMixtures:
        """Lay out a pair whose columns are all categories."""
        distances = tuple(item for item in pair.columns if item is not None)
        first, second = (_tensor(rows, distances) for rows in (pair.first, pair.second))
        least = min(float(c.probabilities.min()) for c in (pair.first, pair.second))
        return cls(first, second, distances, least, bound)

    def on_grid(self, step: FloatArray) -> ChannelMixtures:
        """Return itself: categories lie on no grid."""
        return self

    def compressed(self, cells: int) -> ChannelMixtures:
        """Return itself."""
        return self

    def divergence(self, alpha: float, scale: FloatArray) -> float:
        """Bound the larger direction of D_α of the two releases from above.

        Infinite, for nothing is known, where a term of the sums may underflow.
        """
        p, q = self.first, self.second
        terms, least = 4, self.least
        for axis, (distances, theta) in enumerate(
            zip(self.distances, scale.tolist(), strict=True)
        ):
            if theta == 0:
                continue
            matrix = Channel.of(distances, theta).probabilities
            least *= float(matrix.min())
            p = np.moveaxis(np.tensordot(p, matrix, (axis, 0)), -1, axis)
            q = np.moveaxis(np.tensordot(q, matrix, (axis, 0)), -1, axis)
            terms += len(distances) + 2
        if least < _LEAST:
            return math.inf
        # All terms are positive: each sum adds one rounding a term at the most.
        error = terms * _EPS
        p, q = p.reshape(1, -1), q.reshape(1, -1)
        return max(
            float(renyi_up(a, b, alpha, error=error)[0]) for a, b in ((p, q), (q, p))
        )


class RowExact:
    """D_α of the two released distributions is at most ε, in both directions.

    Finite sums over every combination of categories, with their round-off added. The
    least noise of any scale of these channels, and right for exactly these two
    distributions: others, held-out rows among them, have no guarantee. No noise at all
    where the distributions satisfy the bound by themselves. That the divergence falls
    with the scale is not proven: the scale returned has been checked. Where nothing
    below the scale of `transport` passes, its condition vouches.
    """

    name: ClassVar[str] = "exact"
    source: ClassVar[str] = (
        "the Rényi divergence of the two released distributions, summed over all "
        "categories with proven round-off"
    )
    one_column: ClassVar[bool] = False

    def theorem(
        self, budget: Budget, *, several_columns: bool, law: NoiseLaw | None = None
    ) -> str:
        """Name what the promise rests on."""
        return self.source

    def calibrate(
        self, pair: RowPair | RowRange, law: NoiseLaw, budget: Budget
    ) -> Calibrated:
        """Find the smallest factor of ``pair.weights`` that a search downward meets.

        Raises
        ------
        ValueError
            There are columns of numbers, several copies, or more than `OUTPUT_LIMIT`
            combinations of categories.
        """
        if isinstance(pair, RowRange):
            # One point against another is the worst case: transport is exact there.
            return RowTransport().calibrate(pair, law, budget)
        _refuse(pair.columns, budget)
        ceiling = RowTransport().calibrate(pair, law, budget)
        witness = ChannelMixtures.of(pair, ceiling.witness)
        if ceiling.unit == 0 or self.holds(witness, law, budget, 0.0 * pair.weights):
            return Calibrated(0.0, witness)
        return Calibrated(self.unit_scale(witness, law, budget, pair.weights), witness)

    def unit_scale(
        self,
        witness: ChannelMixtures | WorstRow,
        law: NoiseLaw,
        budget: Budget,
        weights: FloatArray,
    ) -> float:
        """Find the smallest factor below that of transport."""
        if isinstance(witness, WorstRow):
            return RowTransport().unit_scale(witness, law, budget, weights)
        if witness.bound.is_zero:
            return 0.0
        ceiling = RowTransport().unit_scale(witness.bound, law, budget, weights)

        def functional(unit: float) -> float:
            value = witness.divergence(budget.alpha, unit * weights)
            # From there on transport vouches.
            return min(value, budget.epsilon) if unit >= ceiling else value

        least = [
            float(d[d > 0].min()) / w / 64
            for d, w in zip(witness.distances, weights.tolist(), strict=True)
            if w > 0
        ]
        if functional(min(least)) <= budget.epsilon:
            return float(min(*least, ceiling))
        return solve_scale(functional, budget.epsilon, start=ceiling)

    def holds(
        self,
        witness: ChannelMixtures | WorstRow,
        law: NoiseLaw,
        budget: Budget,
        scale: FloatArray,
    ) -> bool:
        """Whether the sums, or transport, vouch for the scales."""
        if isinstance(witness, WorstRow):
            return RowTransport().holds(witness, law, budget, scale)
        if witness.divergence(budget.alpha, scale) <= budget.epsilon:
            return True
        return RowTransport().holds(witness.bound, law, budget, scale)

    def divergence(
        self,
        witness: ChannelMixtures | WorstRow,
        law: NoiseLaw,
        budget: Budget,
        scale: FloatArray,
    ) -> float:
        """Bound the divergence of a release of given scales at the budget's order."""
        if isinstance(witness, WorstRow):
            return RowTransport().divergence(witness, law, budget, scale)
        upper = RowTransport().divergence(witness.bound, law, budget, scale)
        return min(upper, witness.divergence(budget.alpha, scale))


def exact_divergence(pair: RowPair, budget: Budget, scale: FloatArray) -> float:
    """Bound the divergence of a release of categories for one pair.

    The sums, where a single release has few enough combinations; else, or where it is
    smaller, what transport proves.

    Parameters
    ----------
    pair : RowPair
        Of categories alone; its weights are the scales.
    budget : Budget
    scale : ndarray of shape (k,)
        θ of each column.

    Returns
    -------
    float
        Nats, the larger of both directions.
    """
    # Any law will do: there are no numbers to add its noise to.
    law = Laplace()
    rule = RowTransport()
    witness = rule.calibrate(pair, law, budget).witness if scale.all() else pair.bound
    upper = rule.divergence(witness, law, budget, scale)
    if budget.n_releases > 1 or _outputs(pair.columns) > OUTPUT_LIMIT:
        return upper
    return min(
        upper, ChannelMixtures.of(pair, pair.bound).divergence(budget.alpha, scale)
    )


def _outputs(columns: Columns) -> int:
    return math.prod(len(item) for item in columns if item is not None)


def _refuse(columns: Columns, budget: Budget) -> None:
    """Refuse a release that the exact rule does not serve."""
    if any(item is None for item in columns):
        raise ValueError("the exact rule is for categories alone: use transport")
    if budget.n_releases > 1:
        raise ValueError(
            f"the exact rule does not cover n_releases={budget.n_releases} copies: use "
            "the transport rule"
        )
    outputs = _outputs(columns)
    if outputs > OUTPUT_LIMIT:
        raise ValueError(
            f"the exact rule sums over every combination of categories, here {outputs}, "
            f"and serves {OUTPUT_LIMIT}: use the transport rule, scope='column' or fewer "
            "categories"
        )


def _tensor(rows: Conditional, distances: tuple[FloatArray, ...]) -> FloatArray:
    """Lay the probabilities of a distribution out over all combinations."""
    tensor = np.zeros([len(item) for item in distances])
    tensor[tuple(rows.support.astype(np.intp).T)] = rows.probabilities
    return tensor
