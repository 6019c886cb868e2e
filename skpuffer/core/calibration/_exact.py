"""The exact rule: the divergence of the two releases itself, for one column."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

from skpuffer.core.calibration._descend import descend
from skpuffer.core.calibration._protocol import BoundedPair, Budget, Calibrated, Pair
from skpuffer.core.calibration._transport import Transport
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.mixtures import (
    MIXTURES,
    DivergenceBound,
    MixturePair,
    divergence_bound,
)
from skpuffer.core.prior import FloatArray

# Relative width between the divergence and its bound: looking for the root, and
# confirming it. The second is what optimality is given away for.
_SEARCH, _CONFIRM = 1e-3, 4e-6
# The scale is not looked for below the smallest gap or the span over these, nor where
# the release grid would not reach the data.
_GAP_FLOOR, _SPAN_FLOOR, _GRID_FLOOR = 10.0, 1000.0, 2.0**-31
# For bounds at many orders: their width; the divergence, and the atoms a cell, beyond
# which the quadrature is not worth its time.
_ROUGH, _USELESS, _ATOMS_PER_CELL = 1e-4, 20.0, 80


@dataclass(frozen=True, eq=False)
class MixtureWitness:
    """Two conditionals, and the shifts of a coupling of them.

    Either may vouch for a scale: the divergence of the mixtures, or the transport
    condition on the shifts.

    Attributes
    ----------
    mixtures : MixturePair or None
        None where only the shifts are known.
    bound : ShiftBound
    rough : bool
        Whether to bound the divergence at many orders quickly: less sharply, and by
        transport alone where it is large.
    """

    mixtures: MixturePair | None
    bound: ShiftBound
    rough: bool = False
    _rounded: dict[float, MixtureWitness] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(cls, pair: Pair | BoundedPair) -> MixtureWitness:
        """Take what a pair of one column offers."""
        if isinstance(pair, BoundedPair):
            return cls(None, pair.bound)
        return cls(pair.mixtures, pair.bound)

    def on_grid(self, step: FloatArray) -> MixtureWitness:
        """Return the same for the data rounded half up to the grid."""
        size = float(step[0])
        if size not in self._rounded:
            mixtures = None if self.mixtures is None else self.mixtures.on_grid(size)
            # One at a time: the last grid is the one that is asked for again.
            self._rounded.clear()
            self._rounded[size] = MixtureWitness(mixtures, self.bound.on_grid(step))
        return self._rounded[size]

    def compressed(self, cells: int) -> MixtureWitness:
        """Return what is quick to evaluate at many orders, for convex costs.

        Mixtures of very many atoms are left out: transport speaks for them.
        """
        mixtures = self.mixtures
        if mixtures is not None and mixtures.size > _ATOMS_PER_CELL * cells:
            mixtures = None
        return MixtureWitness(mixtures, self.bound.compressed(cells), rough=True)


class Exact:
    """The true divergence of the two releases is at most ε, in both directions.

    The least noise that an additive mechanism of this law can do with, above a floor
    and as far as a bound is proven: no scale is looked for below a tenth of the
    smallest gap between atoms, or a thousandth of their span where that is less. Right
    for exactly these two conditionals: other distributions, held-out rows among them,
    have no guarantee and often exceed ε. No noise at all is needed where the atoms
    satisfy the bound by themselves. The scale falls with ε, but not always with the
    shifts.

    The divergence is non-increasing in the scale, since more of the same noise is a
    function of less of it; the rounded Laplace release is a function of the continuous
    one of the rounded data (data processing). For the discrete Gaussian the divergence
    is a trapezoid sum of the continuous integrand with step 2^-20 σ, and equals it to
    all digits that can be represented.

    For one column. Several copies: the mean of k Gaussian releases is sufficient, so
    they need √k times the scale; for Laplace there is no such statistic, and they are
    refused. Where no certificate is found below the scale of `transport`, or where
    only bounds on shifts are known, its condition vouches for the scale. (One point
    mass against another is the worst case on a range, and transport is exact there.)
    """

    name: ClassVar[str] = "exact"
    source: ClassVar[str] = (
        "the Rényi divergence of the two noisy mixtures, bounded by quadrature with "
        "proven error (data processing), or by transport where that is smaller"
    )
    one_column: ClassVar[bool] = True

    def theorem(
        self, budget: Budget, *, several_columns: bool, law: NoiseLaw | None = None
    ) -> str:
        """Name what the promise rests on."""
        return self.source

    def calibrate(
        self, pair: Pair | BoundedPair, law: NoiseLaw, budget: Budget
    ) -> Calibrated:
        """Find the smallest factor of ``pair.weights``, by close estimates.

        What certifies a scale is `holds`, for the data as they are released: the
        answer leaves room for it, and is proven itself only by that.

        Raises
        ------
        ValueError
            There are several columns, several copies under Laplace noise, or a law
            whose mixtures have no certified divergence.
        """
        _refuse(law, budget)
        if len(pair.weights) != 1:
            raise ValueError(
                f"the exact rule is for one column, got {len(pair.weights)}: calibrate "
                "each alone, or use the transport rule"
            )
        witness = MixtureWitness.of(pair)
        witness = replace(witness, bound=witness.bound.compressed())
        unit = self._unit(witness, law, budget, pair.weights, certified=False)
        return Calibrated(unit, witness)

    def unit_scale(
        self,
        witness: MixtureWitness,
        law: NoiseLaw,
        budget: Budget,
        weights: FloatArray,
    ) -> float:
        """Find the smallest factor of the weights at which a certificate is found."""
        return self._unit(witness, law, budget, weights, certified=True)

    def _unit(
        self,
        witness: MixtureWitness,
        law: NoiseLaw,
        budget: Budget,
        weights: FloatArray,
        *,
        certified: bool,
    ) -> float:
        _refuse(law, budget)
        mixtures, epsilon = witness.mixtures, budget.epsilon
        if mixtures is None:
            return Transport().unit_scale(witness.bound, law, budget, weights)
        if mixtures.divergence(budget.alpha) <= epsilon:
            return 0.0
        ceiling = Transport().unit_scale(witness.bound, law, budget, weights)
        # In the data's units, for a single copy.
        factor = float(weights[0]) / math.sqrt(budget.n_releases)
        low, high = mixtures.ends
        floor = max(
            min(mixtures.least_gap / _GAP_FLOOR, (high - low) / _SPAN_FLOOR),
            max(-low, high) * _GRID_FLOOR,
        )

        def bound(scale: float, tolerance: float) -> DivergenceBound:
            return _bound(mixtures, law, budget, scale, tolerance)

        found = descend(
            bound,
            epsilon,
            ceiling=ceiling * factor,
            floor=floor,
            search=_SEARCH,
            confirm=_CONFIRM,
            certified=certified,
        )
        return ceiling if found is None else found / factor

    def holds(
        self,
        witness: MixtureWitness,
        law: NoiseLaw,
        budget: Budget,
        scale: FloatArray,
    ) -> bool:
        """Whether the divergence, or transport, vouches for the scale."""
        _refuse(law, budget)
        if Transport().holds(witness.bound, law, budget, scale):
            return True
        mixtures = witness.mixtures
        if mixtures is None:
            return False
        size = float(scale[0])
        if size == 0:
            return mixtures.divergence(budget.alpha) <= budget.epsilon
        size /= math.sqrt(budget.n_releases)
        return _bound(mixtures, law, budget, size, _CONFIRM).upper <= budget.epsilon

    def divergence(
        self,
        witness: MixtureWitness,
        law: NoiseLaw,
        budget: Budget,
        scale: FloatArray,
    ) -> float:
        """Bound the divergence of a release: of the mixtures, or by transport.

        Transport alone speaks for several copies under Laplace noise, and for laws
        whose mixtures have no certified divergence.
        """
        upper = Transport().divergence(witness.bound, law, budget, scale)
        single = budget.n_releases == 1 or law.name == "gaussian"
        if witness.mixtures is None or not (single or scale[0] == 0):
            return upper
        if law.name not in MIXTURES:
            # Without noise the law does not matter.
            atoms = witness.mixtures.divergence(budget.alpha)
            return upper if scale[0] > 0 else min(atoms, upper)
        if witness.rough and scale[0] > 0 and budget.epsilon > _USELESS:
            return upper
        found = divergence_bound(
            MIXTURES[law.name](),
            witness.mixtures,
            alpha=budget.alpha,
            scale=float(scale[0]) / math.sqrt(budget.n_releases),
            near=min(budget.epsilon, upper),
            tolerance=_ROUGH if witness.rough else _CONFIRM,
        )
        return min(found, upper)


def _bound(
    mixtures: MixturePair,
    law: NoiseLaw,
    budget: Budget,
    scale: float,
    tolerance: float,
) -> DivergenceBound:
    return MIXTURES[law.name]().bound(
        mixtures,
        alpha=budget.alpha,
        scale=scale,
        epsilon=budget.epsilon,
        tolerance=tolerance,
    )


def _refuse(law: NoiseLaw, budget: Budget) -> None:
    if law.name not in MIXTURES:
        raise ValueError(
            f"the exact rule has no certified divergence for mixtures of {law.name} "
            "noise: use the transport rule, or Laplace or Gaussian noise"
        )
    if budget.n_releases > 1 and law.name != "gaussian":
        raise ValueError(
            f"the exact rule does not cover n_releases={budget.n_releases} copies under "
            f"{law.name} noise: use the transport rule, or Gaussian noise"
        )
