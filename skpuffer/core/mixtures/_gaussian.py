"""Mixtures under Gaussian noise: panels on the line, everything left out added.

The mass of p^α q^{1−α} sits around αx − (α−1)x' for couples (x, x'), far outside the
atoms at large orders. By joint convexity the integral of F over any set is at most
that of the couples' F, each a Gaussian there times e^{α(α−1)d²/2σ²}; beyond
√(α(α−1)d² + 80σ²) of the centres less than e^−40 is left. Within, panels are cut until
their proven errors, or their whole bound where nothing matters, are small.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from skpuffer.core.mixtures._excess import divergence, log_shift, round_off
from skpuffer.core.mixtures._interpolated import condensed_error
from skpuffer.core.mixtures._pair import MixturePair
from skpuffer.core.mixtures._panel_bounds import check
from skpuffer.core.mixtures._panels import Atoms, Nearby, Panels, integrate
from skpuffer.core.mixtures._protocol import DivergenceBound
from skpuffer.core.prior import FloatArray

_ULP = 2.0**-52
_MAX_PANELS = 20_000
# In units of σ: nearly all panels of half a unit pass at once where there are atoms.
_HALF, _COARSE = 0.5, 1.0
# Panels times the atoms that matter to them.
_MAX_CELLS = 2_000_000
# More atoms than this may be condensed.
_MANY = 500
# Nodes of a panel, and the least relative error in all, over α, that they serve.
_ORDERS = (8, 1e-4), (12, 1e-8), (20, 0.0)
# The part of the error that bounds may have that stand for panels.
_NOTHING = 1e-3
_LEFT_OUT = math.exp(-40)
_NOWHERE = DivergenceBound(math.inf, math.inf)


class GaussianMixtures:
    """Certified divergences under Gaussian noise."""

    name: ClassVar[str] = "gaussian"

    def bound(
        self,
        pair: MixturePair,
        *,
        alpha: float,
        scale: float,
        epsilon: float,
        tolerance: float,
    ) -> DivergenceBound:
        """Bound the divergence of the two releases.

        Examples
        --------
        >>> from skpuffer.core.coupling import couple
        >>> from skpuffer.core.prior import Conditional
        >>> points = [Conditional.from_rows([[x]]) for x in (0.0, 1.0)]
        >>> pair = MixturePair.from_coupling(couple(*points, np.ones(1)))
        >>> found = GaussianMixtures().bound(
        ...     pair, alpha=2.0, scale=1.0, epsilon=1.0, tolerance=1e-6
        ... )
        >>> round(found.upper, 5)
        1.0
        """
        centre = 0.5 * pair.ends[0] + 0.5 * pair.ends[1]
        low, high = _range(pair, alpha, scale, centre)
        if not high - low < 2 * _COARSE * _MAX_PANELS:
            return _NOWHERE
        shift = log_shift(alpha, epsilon)
        target = (alpha - 1) * epsilon
        allowed = tolerance * target * math.exp(target - shift)
        condensed = _condense(pair, scale)
        atoms = _atoms(pair, scale, centre, condensed)
        order = next(n for n, least in _ORDERS if tolerance * target >= least * alpha)
        found = _panels(atoms, low, high, alpha, shift, allowed, order)
        if found is None:
            return _NOWHERE
        panels, rest, missed = found
        totals = integrate(atoms, panels, alpha, shift, order)
        error = _round_off(pair, scale, centre, atoms, panels, condensed)
        if not (alpha * error < 1e-3 and np.isfinite(totals).all()):
            return _NOWHERE
        # Of bounds alone, far below the target, half is a better guess than nothing.
        totals += rest / 2
        missed += rest / 2 + alpha * _LEFT_OUT * math.exp(-shift)
        upper = 0.0
        for total, more in zip(totals.tolist(), missed.tolist(), strict=True):
            above = (total + more) * (1 + 1e-14)
            above += round_off(above, alpha, shift, error)
            upper = max(upper, divergence(above, alpha, shift))
        estimate = divergence(float(totals.max()), alpha, shift)
        return DivergenceBound(estimate, upper * (1 + 8 * _ULP))


def _condense(pair: MixturePair, scale: float) -> bool:
    """Whether fewer nodes can stand for the atoms."""
    return pair.size > _MANY and pair.equal_nodes.worth(scale) < pair.size


def _atoms(pair: MixturePair, scale: float, middle: float, condensed: bool) -> Atoms:
    """Return the atoms in units of the scale from their middle."""
    if condensed:
        nodes = pair.equal_nodes
        places, masses = nodes.condensed(scale)
        return Atoms(places + (nodes.low - middle) / scale, masses)
    return Atoms((pair.atoms - middle) / scale, np.array(pair.probabilities))


def _round_off(
    pair: MixturePair,
    scale: float,
    centre: float,
    atoms: Atoms,
    panels: Panels,
    condensed: bool,
) -> float:
    """Bound the relative error of all densities at the nodes."""
    places, middle = atoms.places, panels.middle
    beyond = _farthest(places, panels, 1.0, 0.0) if len(middle) else 0.0
    span = float(places[-1] - places[0])
    # Of an exponent, the square of a distance: those beyond the nearest atom's by 40
    # do not matter.
    error = (len(places) + 4000 + 2 * span * (40 + beyond)) * _ULP
    if not (condensed and len(middle)):
        return error
    parts = pair.first, pair.second
    # How far from a node the atoms are that a mixture's density there consists of: of
    # those beyond, whatever their masses, less than e^-45 is due.
    away = max(_farthest(part.places, panels, scale, centre) for part in parts)
    least = min(part.least for part in parts)
    reach = math.sqrt(away**2 + 2 * (45 - math.log(least)))
    nodes = pair.equal_nodes
    # Sums of up to as many terms as there are atoms.
    error += 30 * pair.size * _ULP
    return error + nodes.error(scale, reach) + condensed_error(reach) + 1e-15


def _farthest(
    support: FloatArray, panels: Panels, scale: float, centre: float
) -> float:
    """Return the largest distance of a panel's points from the nearest atom."""
    middle = panels.middle * scale + centre
    after = np.searchsorted(support, middle)
    left = np.abs(middle - support[np.maximum(after - 1, 0)])
    right = np.abs(middle - support[np.minimum(after, len(support) - 1)])
    return float((np.minimum(left, right) / scale + panels.half).max())


def _range(
    pair: MixturePair, alpha: float, scale: float, middle: float
) -> tuple[float, float]:
    """Return where to integrate, in units of the scale from the atoms' middle."""
    reach = pair.reach
    shift = reach.shift / scale
    beyond = (alpha - 1) * shift + np.sqrt(alpha * (alpha - 1) * shift * shift + 80.0)
    low = float(((reach.low - middle) / scale - beyond).min())
    high = float(((reach.high - middle) / scale + beyond).max())
    # Round-off of the ends.
    slack = 1e-12 * (abs(low) + abs(high))
    return low - slack, high + slack


def _panels(
    atoms: Atoms,
    low: float,
    high: float,
    alpha: float,
    shift: float,
    allowed: float,
    order: int,
) -> tuple[Panels, FloatArray, FloatArray] | None:
    """Return panels to integrate, a bound for the others, and one on the error.

    None where it is too much.
    """
    first = _HALF if high - low < _HALF * _MAX_PANELS else _COARSE
    count = math.ceil((high - low) / (2 * first))
    half: FloatArray = np.full(count, (high - low) / (2 * count))
    middle: FloatArray = low + half * (2 * np.arange(count) + 1)
    kept, made, work = [], 0, 0
    rest, missed = np.zeros((2, 2))
    while len(middle):
        panels = Panels(middle, half)
        made += len(middle)
        nearby = Nearby.of(atoms, middle)
        work += nearby.cells
        if made > _MAX_PANELS or work > _MAX_CELLS:
            return None
        found = check(atoms, panels, nearby, alpha, shift, order)
        share = allowed * 2 * half / (high - low)
        nothing = found.whole.max(axis=1) <= _NOTHING * share
        fine = ~nothing & (found.error.max(axis=1) <= share)
        rest += found.whole[nothing].sum(axis=0)
        missed += found.error[fine].sum(axis=0)
        kept.append((middle[fine], half[fine]))
        again = ~(nothing | fine)
        half = np.repeat(half[again] / 2, 2)
        middle = np.repeat(middle[again], 2)
        middle[::2] -= half[::2]
        middle[1::2] += half[1::2]
    middle, half = (np.concatenate(part) for part in zip(*kept, strict=True))
    ascending = np.argsort(middle)
    return Panels(middle[ascending], half[ascending]), rest, missed
