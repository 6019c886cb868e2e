"""Two one-column conditionals side by side: what mixture divergences work on.

Frozen; masses stay exact integers until a density is evaluated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skpuffer.core.coupling import Coupling
from skpuffer.core.mixtures._atomic import Atomic
from skpuffer.core.mixtures._excess import both_excesses, divergence, round_off
from skpuffer.core.mixtures._interpolated import EqualNodes
from skpuffer.core.mixtures._moments import CellMoments
from skpuffer.core.prior import FloatArray

# Smaller probabilities would come too near the end of the floats.
_LEAST = 1e-200
_GROUPS = 4096
# Beyond so many atoms the smallest gap is not looked for.
_MANY = 100_000
_ULP = 2.0**-52


@dataclass(frozen=True, eq=False)
class Reach:
    """Where the couples of a coupling lie, in groups of neighbours.

    Attributes
    ----------
    low, high, shift : ndarray of shape (g,)
        Least and greatest end of a group's couples, and their largest distance.
    """

    low: FloatArray
    high: FloatArray
    shift: FloatArray

    @classmethod
    def of(cls, coupling: Coupling, shifts: FloatArray) -> Reach:
        """Collect the couples of a monotone coupling and their distances."""
        first = coupling.first.support[:, 0]
        second = coupling.second.support[:, 0]
        starts = np.arange(0, len(shifts), -(-len(shifts) // _GROUPS))
        ends = np.append(starts[1:], len(shifts)) - 1
        rows, columns = coupling.rows, coupling.columns
        return cls(
            np.minimum(first[rows[starts]], second[columns[starts]]),
            np.maximum(first[rows[ends]], second[columns[ends]]),
            np.maximum.reduceat(shifts, starts),
        )

    def widened(self, step: float) -> Reach:
        """Allow for a move of every end by half a step."""
        half = step / 2
        return Reach(self.low - half, self.high + half, self.shift + step)


@dataclass(frozen=True, eq=False)
class MixturePair:
    """Two distributions of one column.

    Attributes
    ----------
    first, second : Atomic
    reach : Reach
        Of their monotone coupling.
    """

    first: Atomic
    second: Atomic
    reach: Reach

    @classmethod
    def from_coupling(
        cls, coupling: Coupling, shifts: FloatArray | None = None
    ) -> MixturePair | None:
        """Take the marginals of a monotone coupling, and the distances it moves.

        None where a probability is below 1e-200.

        Raises
        ------
        ValueError
            There are several columns.

        Examples
        --------
        >>> from skpuffer.core.coupling import couple
        >>> from skpuffer.core.prior import Conditional
        >>> one = Conditional.from_rows([[0.0], [1.0]])
        >>> two = Conditional.from_rows([[1.0], [2.0]])
        >>> coupling = couple(one, two, np.ones(1))
        >>> pair = MixturePair.from_coupling(coupling)
        >>> pair.atoms, pair.probabilities[0]
        (array([0., 1., 2.]), array([0.5, 0.5, 0. ]))
        """
        if coupling.first.support.shape[1] != 1:
            raise ValueError("the divergence of mixtures is computed for one column")
        first, second = (
            Atomic(conditional.support[:, 0], conditional.mass)
            for conditional in (coupling.first, coupling.second)
        )
        if min(first.least, second.least) < _LEAST:
            return None
        if shifts is None:
            shifts = coupling.shift_bound().shifts[:, 0]
        return cls(first, second, Reach.of(coupling, shifts))

    def on_grid(self, step: float) -> MixturePair | None:
        """Return the pair with places rounded half up to multiples of a step.

        None where the grid does not reach them; the pair itself for a step of zero.
        """
        if step == 0:
            return self
        try:
            first, second = self.first.on_grid(step), self.second.on_grid(step)
        except ValueError:
            return None
        return MixturePair(first, second, self.reach.widened(step))

    @property
    def size(self) -> int:
        """The number of atoms, counted in each distribution."""
        return len(self.first.places) + len(self.second.places)

    @property
    def ends(self) -> tuple[float, float]:
        """The outermost places."""
        first, second = self.first.places, self.second.places
        return float(min(first[0], second[0])), float(max(first[-1], second[-1]))

    @property
    def least_gap(self) -> float:
        """The smallest distance of two atoms; zero where there are very many."""
        if self.size > _MANY or len(self.atoms) == 1:
            return 0.0
        return float(np.diff(self.atoms).min())

    @property
    def atoms(self) -> FloatArray:
        """The places of both, distinct and ascending."""
        return self._union[0]

    @property
    def probabilities(self) -> tuple[FloatArray, FloatArray]:
        """What each distribution gives the atoms."""
        return self._union[1:]

    @cached_property
    def _union(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        first, second = self.first, self.second
        both = np.concatenate([first.places, second.places])
        # Two sorted runs: a stable sort merges them in linear time.
        order = np.argsort(both, kind="stable")
        both = both[order]
        new = np.append(True, both[1:] != both[:-1])
        atoms = both[new]
        place = np.cumsum(new)
        place -= 1
        own = order < len(first.places)
        spread = np.zeros((2, len(atoms)))
        spread[0, place[own]] = first.probabilities
        spread[1, place[~own]] = second.probabilities
        return atoms, spread[0], spread[1]

    @cached_property
    def cell_moments(self) -> CellMoments:
        """Both by moments in equal cells."""
        return CellMoments.of((self.first, self.second))

    @cached_property
    def equal_nodes(self) -> EqualNodes:
        """Both on equally spaced nodes, to all digits for smooth functions."""
        return EqualNodes.of(self.cell_moments)

    def divergence(self, alpha: float) -> float:
        """Bound the divergence of the atoms themselves, without any noise.

        Returns
        -------
        float
            Above the larger direction by round-off only; infinite where one
            distribution has an atom that the other lacks, and where (α−1) times it is
            beyond about 350.
        """
        first, second = self.first, self.second
        if not np.array_equal(first.places, second.places):
            return math.inf
        if np.array_equal(first.mass, second.mass):
            # Equal proportions have equal masses: there is no common factor.
            return 0.0
        log_p, log_q = np.log(first.probabilities), np.log(second.probabilities)
        error = 8 * _ULP * (1 - math.log(min(first.least, second.least)))
        if math.isinf(alpha):
            return float(np.abs(log_p - log_q).max()) + 2 * error
        error += len(log_p) * _ULP
        if alpha * error > 1e-3:
            return math.inf
        bounds = []
        for excess in both_excesses(log_p, log_q, alpha):
            total = float(excess.sum())
            total += round_off(total, alpha, 0.0, error)
            bounds.append(divergence(total, alpha, 0.0))
        return max(bounds) * (1 + 4 * _ULP)
