"""Mixtures under Laplace noise: a trapezoid rule that bounds from above.

In units of the scale both densities solve y'' = y between neighbouring atoms, so that
on a cell of width Δ the vector (p, q) is a combination of its two ends with weights
sinh(Δ−s)/sinh Δ and sinh(s)/sinh Δ. G = F − αp + (α−1)q is sublinear. Hence
∫G ≤ (G_left + G_right) tanh(Δ/2) for every cell, however wide, and the tails are
exact, since the densities are proportional there. Where the bound is not tight enough
cells are cut, and the densities at the new nodes follow from the ends alone. Very many
atoms are laid on the ends of cells that hold several.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from skpuffer.core.mixtures._ends import Ends
from skpuffer.core.mixtures._excess import (
    both_excesses,
    divergence,
    log_shift,
    round_off,
)
from skpuffer.core.mixtures._moments import CELLS
from skpuffer.core.mixtures._pair import MixturePair
from skpuffer.core.mixtures._protocol import DivergenceBound
from skpuffer.core.mixtures._recurrence import half_densities
from skpuffer.core.prior import FloatArray, IntArray

_ULP = 2.0**-52
# A density at an atom below this is out of reach.
_LEAST = 1e-280
_MAX_NODES = 2**18
_PIECE = 2**14
# More atoms than this are laid on fewer nodes.
_MANY = 2 * CELLS
# A tolerance for which an estimate is enough.
_ROUGH = 1e-5
_MAX_ROUNDS = 16
_MAX_PARTS = 32
_NOWHERE = DivergenceBound(math.inf, math.inf)


class LaplaceMixtures:
    """Certified divergences under Laplace noise; exact at α = ∞."""

    name: ClassVar[str] = "laplace"

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
        >>> found = LaplaceMixtures().bound(
        ...     pair, alpha=2.0, scale=1.0, epsilon=1.0, tolerance=1e-6
        ... )
        >>> round(found.upper, 4)
        0.6191
        """
        wanted = alpha, scale, epsilon, tolerance
        if pair.size > _MANY:
            ends = Ends.of(pair.cell_moments, scale)
            found = None if ends is None else _from_ends(ends, *wanted)
            if found is not None:
                return found
        p, q, error = half_densities(pair.atoms, scale, pair.probabilities)
        if not min(p.min(), q.min()) > _LEAST:
            return _NOWHERE
        log_p, log_q = np.log(p), np.log(q)
        if math.isinf(alpha):
            # log(p/q) is monotone between atoms and constant beyond them.
            top = float(np.abs(log_p - log_q).max())
            return DivergenceBound(top, top + 2 * error + 2e3 * _ULP)
        gaps = np.diff(pair.atoms) / scale
        found = _integrated(gaps, log_p, log_q, error, None, alpha, epsilon, tolerance)
        return _NOWHERE if found is None else found


def _from_ends(
    ends: Ends, alpha: float, scale: float, epsilon: float, tolerance: float
) -> DivergenceBound | None:
    """Bound the divergence from cells, or None where the atoms themselves are needed."""
    p, q, error = half_densities(ends.places, scale, ends.masses)
    if not min(p.min(), q.min()) > _LEAST:
        return None
    log_p, log_q = np.log(p), np.log(q)
    if math.isinf(alpha):
        # Good for an estimate alone.
        top = float(np.abs(log_p - log_q).max())
        return DivergenceBound(top, math.inf) if tolerance > _ROUGH else None
    gaps = np.full(len(p) - 1, 2 * ends.half)
    error += ends.error
    return _integrated(gaps, log_p, log_q, error, ends, alpha, epsilon, tolerance)


def _integrated(
    gaps: FloatArray,
    log_p: FloatArray,
    log_q: FloatArray,
    error: float,
    ends: Ends | None,
    alpha: float,
    epsilon: float,
    tolerance: float,
) -> DivergenceBound | None:
    """Turn densities at nodes into a bound, or None where nothing good comes of it.

    Log densities are those of half the mixtures, known to a relative `error`.
    """
    # Cutting adds a few roundings of logarithms of a thousand or so.
    error += (2e4 + len(log_p)) * _ULP
    if alpha * error > 1e-3:
        return None
    shift = log_shift(alpha, epsilon)
    target = (alpha - 1) * epsilon
    # What an excess of e^L − 1 may be off for a relative error in L.
    allowed = tolerance * target * math.exp(target - shift)
    missing = [(0.0, 0.0)] * 2
    if ends is not None:
        missing = ends.missing(log_p - log_q, error, alpha, shift)
        if not max(above - below for below, above in missing) <= allowed:
            return None
    log_p = log_p - (math.log(2) + shift)
    log_q = log_q - (math.log(2) + shift)
    flat = math.sqrt(0.8 * tolerance * target / (alpha * (alpha - 1)))
    parts = _integrals(gaps, log_p, log_q, alpha, allowed, flat)
    estimates, uppers = [], []
    for (lower, upper), (below, above) in zip(parts, missing, strict=True):
        estimate = (2 * (lower + below) + upper + above) / 3
        estimates.append(divergence(max(estimate, 0.0), alpha, shift))
        upper += above
        upper += round_off(upper, alpha, shift, error)
        uppers.append(divergence(upper, alpha, shift) * (1 + 8 * _ULP))
    return DivergenceBound(max(estimates), max(uppers))


def _upper_sums(
    gaps: FloatArray, log_p: FloatArray, log_q: FloatArray, alpha: float
) -> list[float]:
    """Return the upper bounds of all cells and both tails, for both directions."""
    # tanh(Δ/2) ≤ Δ/2, and equal to it to nine digits on narrow cells.
    narrow = gaps.max(initial=0.0) < 1e-4
    weight = gaps / 2 if narrow else np.tanh(gaps / 2)
    # Each node belongs to two cells, the outermost to a tail.
    node = np.ones(len(log_p))
    node[:-1] += weight
    node[-1:] += 1 if len(node) == 1 else 0
    node[1:] += weight
    node[1:-1] -= 1
    sums = np.zeros(2)
    # A piece at a time, in the cache.
    for start in range(0, len(node), _PIECE):
        piece = slice(start, start + _PIECE)
        for side, excess in enumerate(both_excesses(log_p[piece], log_q[piece], alpha)):
            with np.errstate(invalid="ignore"):
                sums[side] += float((excess * node[piece]).sum())
    # Infinite times nothing: not known.
    sums[np.isnan(sums)] = math.inf
    return sums.tolist()


class _Cells(NamedTuple):
    """Cells side by side or not: width, and log densities at both ends."""

    width: FloatArray
    left: tuple[FloatArray, FloatArray]
    right: tuple[FloatArray, FloatArray]

    def take(self, kept: FloatArray) -> _Cells:
        return _Cells(
            self.width[kept],
            (self.left[0][kept], self.left[1][kept]),
            (self.right[0][kept], self.right[1][kept]),
        )


def _integrals(
    gaps: FloatArray,
    log_p: FloatArray,
    log_q: FloatArray,
    alpha: float,
    allowed: float,
    flat_change: float,
) -> list[tuple[float, float]]:
    """Return lower and upper bounds of ∫G for both directions.

    Cells on which log(p/q) changes by less than `flat_change` are never cut.
    """
    # The ratio is monotone on a cell, and to leading order its bound is too large by
    # α(α−1) change² / 8 times its F.
    cut = np.abs(np.diff(log_p - log_q)) > flat_change
    uppers = _upper_sums(np.where(cut, 0.0, gaps), log_p, log_q, alpha)
    lowers = list(uppers)
    if cut.any():
        cells = _Cells(
            gaps[cut],
            (log_p[:-1][cut], log_q[:-1][cut]),
            (log_p[1:][cut], log_q[1:][cut]),
        )
        for side, (lower, upper) in enumerate(_cut(cells, alpha, allowed)):
            lowers[side] += lower
            uppers[side] += upper
    return list(zip(lowers, uppers, strict=True))


def _cut(cells: _Cells, alpha: float, allowed: float) -> list[tuple[float, float]]:
    """Cut cells until lower and upper bounds meet; return both, each direction."""
    lower, upper = np.zeros(2), np.zeros(2)
    left = allowed
    nodes, rounds = 0, 0
    while True:
        below, above = _cell_bounds(cells, alpha)
        with np.errstate(invalid="ignore"):
            gap = np.maximum((above - below).max(axis=0), 0.0)
        total = float(gap.sum())
        parts = _how_many(gap, total, left)
        nodes, rounds = nodes + int(parts.sum()), rounds + 1
        # What is infinite or not a number does not improve.
        if not left < total < math.inf or rounds > _MAX_ROUNDS or nodes > _MAX_NODES:
            lower += below.sum(axis=1)
            upper += above.sum(axis=1)
            return list(zip(lower.tolist(), upper.tolist(), strict=True))
        done = parts == 1
        lower += below[:, done].sum(axis=1)
        upper += above[:, done].sum(axis=1)
        left = max(left - float(gap[done].sum()), 0.1 * left)
        cells = _parts(cells.take(~done), parts[~done])


def _how_many(gap: FloatArray, total: float, allowed: float) -> IntArray:
    """Return in how many parts to cut each cell, given its gap between the bounds."""
    if not allowed < total < math.inf:
        return np.ones(len(gap), dtype=np.intp)
    # m parts leave 1/m² of a cell's gap; equal shares a part are the cheapest.
    root = np.cbrt(gap)
    # Aimed a little too low, for a round less.
    root *= math.sqrt(float(root.sum()) / (0.7 * allowed))
    parts: IntArray = np.ceil(np.clip(root, 1, _MAX_PARTS)).astype(np.intp)
    return parts


def _cell_bounds(cells: _Cells, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds of ∫G on each cell, shape (2, cells)."""
    weight = np.tanh(cells.width / 2)
    # At the midpoint (p, q) is the sum of the ends over 2 cosh(Δ/2).
    ends = zip(cells.left, cells.right, strict=True)
    logs = [np.concatenate([a, b, np.logaddexp(a, b)]) for a, b in ends]
    excesses = np.array(both_excesses(logs[0], logs[1], alpha)).reshape(2, 3, -1)
    excesses *= weight
    return excesses[:, 2], excesses[:, 0] + excesses[:, 1]


def _parts(cells: _Cells, parts: IntArray) -> _Cells:
    """Cut each cell in equal parts."""
    owner = np.repeat(np.arange(len(parts)), parts)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    width = (cells.width / parts)[owner]
    whole = cells.width[owner]
    # The nodes at the right of all parts but the last.
    inner = place < parts[owner] - 1
    near = width[inner] * (place[inner] + 1)
    far = width[inner] * (parts[owner][inner] - place[inner] - 1)
    scale = np.log(-np.expm1(-2 * whole[inner]))
    from_left = np.log(-np.expm1(-2 * far)) - near - scale
    from_right = np.log(-np.expm1(-2 * near)) - far - scale
    left, right = [], []
    for k in (0, 1):
        start, end = cells.left[k][owner], cells.right[k][owner]
        node = np.logaddexp(start[inner] + from_left, end[inner] + from_right)
        end[inner] = node
        start[1:][inner[:-1]] = node[: int(inner[:-1].sum())]
        left.append(start)
        right.append(end)
    return _Cells(width, (left[0], left[1]), (right[0], right[1]))
