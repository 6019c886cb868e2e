"""What a calibration rule is, and what it works on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from skpuffer.core.coupling import Coupling, ShiftBound, plan_in_place, start_plan
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.mixtures import MixturePair
from skpuffer.core.monotone import MonotoneShifts
from skpuffer.core.plans import USUAL_EFFORT, Effort, Plan
from skpuffer.core.prior import Conditional, FloatArray

# The share of an effort that a first plan may take; a rule's own search has the rest.
START_SHARE = 0.25


@dataclass(frozen=True)
class Budget:
    """What is promised: (alpha, epsilon) for `n_releases` copies together.

    Attributes
    ----------
    alpha : float
        Rényi order in (1, ∞].
    epsilon : float
        Bound on the divergence, nats.
    n_releases : int
        How many independently noised copies of a row the bound covers.
    """

    alpha: float
    epsilon: float
    n_releases: int = 1

    @property
    def log_target(self) -> float:
        """(α−1) ε: what the logarithm of an exponential moment may reach.

        Raises
        ------
        ValueError
            It is beyond the floats, where any moment would pass.
        """
        target = (self.alpha - 1) * self.epsilon
        if math.isinf(target):
            raise ValueError(
                f"(alpha - 1) * epsilon overflows at alpha={self.alpha!r}; take a "
                "smaller order, or alpha=inf where the noise law allows it"
            )
        return target


class Witness(Protocol):
    """What a rule's condition is evaluated on, and checked again on the grid."""

    def on_grid(self, step: FloatArray) -> Witness:
        """Return the same for the data rounded to the grid with these steps."""
        ...

    def compressed(self, cells: int) -> Witness:
        """Return fewer shifts in place of very many, for convex costs."""
        ...


@dataclass(frozen=True, eq=False)
class Pair:
    """Two conditionals to be made alike, in the units of the column weights.

    Attributes
    ----------
    first, second : Conditional
    weights : ndarray of shape (k,)
        The scales of the columns are a common factor times these; zero for a
        constant column, which moves nothing and gets no noise.
    effort : Effort
        What the search for a coupling of very many rows of several columns may cost.
    """

    first: Conditional
    second: Conditional
    weights: FloatArray
    effort: Effort = USUAL_EFFORT

    @cached_property
    def plan(self) -> Plan:
        """The plan that no rule has refined yet."""
        effort = self.effort.part(START_SHARE)
        return start_plan(self.first, self.second, self._units, effort)

    @cached_property
    def plan_in_place(self) -> Plan:
        """A plan that leaves common mass where it is."""
        effort = self.effort.part(START_SHARE)
        return plan_in_place(self.first, self.second, self._units, effort)

    @cached_property
    def coupling(self) -> Coupling:
        """The coupling that `plan` describes."""
        return Coupling.from_plan(self.first, self.second, self.plan)

    @cached_property
    def bound(self) -> ShiftBound:
        """The shifts of `coupling`."""
        if MonotoneShifts.serves(self.first, self.second):
            return MonotoneShifts(
                self.first, self.second, lambda: self.coupling.shift_bound()
            )
        return self.coupling.shift_bound()

    @cached_property
    def bound_in_place(self) -> ShiftBound:
        """The shifts of `plan_in_place`."""
        plan = self.plan_in_place
        return Coupling.from_plan(self.first, self.second, plan).shift_bound()

    def within(self, share: float) -> Pair:
        """Return the pair with the same first plan and a share of the effort."""
        other = replace(self, effort=self.effort.part(share))
        other.__dict__["plan"] = self.plan
        return other

    @property
    def _units(self) -> FloatArray:
        return np.where(self.weights > 0, self.weights, np.inf)

    @cached_property
    def mixtures(self) -> MixturePair | None:
        """Both conditionals of one column; None where a mass is too small for it."""
        return MixturePair.from_coupling(self.coupling, self.bound.shifts[:, 0])


@dataclass(frozen=True, eq=False)
class BoundedPair:
    """Any two distributions whose shifts a `ShiftBound` dominates.

    Attributes
    ----------
    bound : ShiftBound
    weights : ndarray of shape (k,)
    """

    bound: ShiftBound
    weights: FloatArray


class Calibrated(NamedTuple):
    """The answer of a rule for one pair.

    Attributes
    ----------
    unit : float
        The factor of the column weights; zero where no noise is needed.
    witness : Witness
        What `holds` is asked about at that factor.
    is_least : bool
        Whether the condition is known to fail below, for the data or for the data on
        their grid.
    """

    unit: float
    witness: Any
    is_least: bool = False


class CalibrationRule(Protocol):
    """The smallest scale at which a sufficient condition of the promise holds.

    Attributes
    ----------
    name : str
        The key in `RULES`.
    one_column : bool
        Whether it serves a single column only.
    """

    name: ClassVar[str]
    one_column: ClassVar[bool]

    def theorem(
        self, budget: Budget, *, several_columns: bool, law: NoiseLaw | None = None
    ) -> str:
        """Name the theorem that the promise rests on, for a law if it has its own."""
        ...

    def calibrate(
        self, pair: Pair | BoundedPair, law: NoiseLaw, budget: Budget
    ) -> Calibrated:
        """Find the smallest factor of ``pair.weights``.

        An estimate is allowed: whoever asks confirms it by `holds`. Zero is proven.
        """
        ...

    def unit_scale(
        self, witness: Any, law: NoiseLaw, budget: Budget, weights: FloatArray
    ) -> float:
        """Find the same for one witness, ending on the private side."""
        ...

    def holds(
        self, witness: Any, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> bool:
        """Evaluate the condition at the scales, one per column."""
        ...

    def divergence(
        self, witness: Any, law: NoiseLaw, budget: Budget, scale: FloatArray
    ) -> float:
        """Bound the divergence of a release of given scales at the budget's order.

        What is proven holds whatever the budget's epsilon, which says where to look.
        """
        ...
