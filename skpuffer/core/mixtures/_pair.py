"""Two one-column conditionals on one support: what mixture divergences work on.

Frozen; masses stay exact integers until a density is evaluated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skpuffer.core.coupling import Coupling
from skpuffer.core.grid import check_grid_range, round_to_grid
from skpuffer.core.mixtures._excess import both_excesses, divergence, round_off
from skpuffer.core.mixtures._interpolated import EqualNodes
from skpuffer.core.prior import Conditional, FloatArray, IntArray

# Smaller probabilities would come too near the end of the floats.
_LEAST = 1e-200
_GROUPS = 4096
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
    def of(cls, coupling: Coupling) -> Reach:
        """Collect the couples of a one-column coupling."""
        first = coupling.first.support[:, 0].take(coupling.rows)
        second = coupling.second.support[:, 0].take(coupling.columns)
        low, high = np.minimum(first, second), np.maximum(first, second)
        size = -(-len(low) // _GROUPS)
        starts = np.arange(0, len(low), size)
        return cls(
            np.minimum.reduceat(low, starts),
            np.maximum.reduceat(high, starts),
            np.maximum.reduceat(high - low, starts) * (1 + _ULP),
        )

    def widened(self, step: float) -> Reach:
        """Allow for a move of every end by half a step."""
        half = step / 2
        return Reach(self.low - half, self.high + half, self.shift + step)


@dataclass(frozen=True, eq=False)
class MixturePair:
    """The atoms of two conditionals with the mass that each gives them.

    Attributes
    ----------
    atoms : ndarray of shape (n,)
        Distinct, ascending, in data units.
    first_mass, second_mass : ndarray of shape (n,)
        Integers, zero where a conditional lacks the atom.
    reach : Reach
        Of a coupling of the two.
    """

    atoms: FloatArray
    first_mass: IntArray
    second_mass: IntArray
    reach: Reach

    @classmethod
    def from_coupling(cls, coupling: Coupling) -> MixturePair | None:
        """Merge the two marginals; None where a probability is below 1e-200.

        Raises
        ------
        ValueError
            There are several columns.

        Examples
        --------
        >>> from skpuffer.core.coupling import couple
        >>> one = Conditional.from_rows([[0.0], [1.0]])
        >>> two = Conditional.from_rows([[1.0], [2.0]])
        >>> pair = MixturePair.from_coupling(couple(one, two, np.ones(1)))
        >>> pair.atoms, pair.first_mass
        (array([0., 1., 2.]), array([1, 1, 0]))
        """
        first, second = coupling.first, coupling.second
        if first.support.shape[1] != 1:
            raise ValueError("the divergence of mixtures is computed for one column")
        if min(_least(first), _least(second)) < _LEAST:
            return None
        both = np.concatenate([first.support[:, 0], second.support[:, 0]])
        # Two sorted runs: a stable sort merges them in linear time.
        both.sort(kind="stable")
        atoms = both[np.append(True, both[1:] != both[:-1])]
        masses = [_spread(atoms, conditional) for conditional in (first, second)]
        return cls(atoms, masses[0], masses[1], Reach.of(coupling))

    def on_grid(self, step: float) -> MixturePair | None:
        """Return the pair with atoms rounded half up to multiples of a step.

        None where the grid does not reach them; the pair itself for a step of zero.
        """
        if step == 0:
            return self
        try:
            check_grid_range(self.atoms, step)
        except ValueError:
            return None
        index = round_to_grid(self.atoms, step)
        new = np.empty(len(index), dtype=bool)
        new[0] = True
        np.not_equal(index[1:], index[:-1], out=new[1:])
        starts = np.flatnonzero(new)
        return MixturePair(
            index[starts] * step,
            np.add.reduceat(self.first_mass, starts),
            np.add.reduceat(self.second_mass, starts),
            self.reach.widened(step),
        )

    @property
    def span(self) -> float:
        """The distance of the outermost atoms."""
        return float(self.atoms[-1] - self.atoms[0])

    @property
    def middle(self) -> float:
        """The middle of the outermost atoms."""
        return float(self.atoms[0] / 2 + self.atoms[-1] / 2)

    @property
    def least_gap(self) -> float:
        """The smallest distance of two atoms; zero for a single one."""
        return float(np.diff(self.atoms).min(initial=self.span))

    @cached_property
    def first(self) -> FloatArray:
        """Probabilities of the first conditional."""
        return _probabilities(self.first_mass)

    @cached_property
    def second(self) -> FloatArray:
        """Probabilities of the second conditional."""
        return _probabilities(self.second_mass)

    @cached_property
    def supports(self) -> list[tuple[FloatArray, float]]:
        """The atoms of each conditional, and its smallest probability."""
        return [
            (self.atoms[mass > 0], float(mass[mass > 0].min()) / int(mass.sum()))
            for mass in (self.first_mass, self.second_mass)
        ]

    @cached_property
    def equal_nodes(self) -> EqualNodes:
        """Both mixtures on equally spaced nodes."""
        return EqualNodes.of(self.atoms, [self.first_mass, self.second_mass])

    def divergence(self, alpha: float) -> float:
        """Bound the divergence of the atoms themselves, without any noise.

        Returns
        -------
        float
            Above the larger direction by round-off only; infinite where one
            conditional has an atom that the other lacks.
        """
        if np.array_equal(self.first_mass, self.second_mass):
            # Equal proportions have equal masses: there is no common factor.
            return 0.0
        if not (self.first_mass.all() and self.second_mass.all()):
            return math.inf
        log_p, log_q = np.log(self.first), np.log(self.second)
        error = 4 * _ULP * (1 + float(-min(log_p.min(), log_q.min())))
        if math.isinf(alpha):
            return float(np.abs(log_p - log_q).max()) + 2 * error
        if alpha * error > 1e-3:
            return math.inf
        error += len(log_p) * _ULP
        bounds = []
        for excess in both_excesses(log_p, log_q, alpha):
            total = float(excess.sum())
            total += round_off(total, alpha, 0.0, error)
            bounds.append(divergence(total, alpha, 0.0))
        return max(bounds) * (1 + 4 * _ULP)


def _least(conditional: Conditional) -> float:
    return int(conditional.mass.min()) / conditional.total


def _spread(atoms: FloatArray, conditional: Conditional) -> IntArray:
    """Lay masses out on a support that contains the conditional's."""
    mass = np.zeros(len(atoms), dtype=conditional.mass.dtype)
    mass[np.searchsorted(atoms, conditional.support[:, 0])] = conditional.mass
    return mass


def _probabilities(mass: IntArray) -> FloatArray:
    return (mass / int(mass.sum())).astype(np.float64)
