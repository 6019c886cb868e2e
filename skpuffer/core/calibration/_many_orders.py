"""The divergence of one release at many orders, bounded from its shifts alone."""

from __future__ import annotations

import numpy as np

from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import NoiseLaw, shift_moments
from skpuffer.core.prior import FloatArray

# Shifts times orders whose divergences are computed at once.
_WORK = 2**17
# What a mean of moments is wrong by, a part of 2^-40, is a part of 2^-20 of its logarithm
# where that is so large; bounds are raised by twice as much.
_CLEAR, _RAISED = 1 + 2.0**-20, 1 + 2.0**-19


def divergences_at(
    witness: ShiftBound,
    law: NoiseLaw,
    alphas: FloatArray,
    scale: FloatArray,
    n_releases: int,
) -> FloatArray:
    """Bound the divergence of a release at several finite orders, shape (a,).

    As `ShiftRule.divergence` does at one, which is the same for every rule; no less,
    and larger by no more than a part of 2^-18.
    """
    found: FloatArray = np.empty(len(alphas))
    most = max(_WORK // witness.shifts.size, 1)
    for begin in range(0, len(alphas), most):
        part = slice(begin, begin + most)
        at = witness, law, alphas[part], scale
        rough = _roughly(*at) if n_releases == 1 else None
        if rough is None:
            found[part] = _exactly(*at, n_releases)
            continue
        # Near one and beyond the floats, from the logarithms of all moments.
        unclear = np.isnan(rough)
        if unclear.any():
            rough[unclear] = _exactly(
                witness, law, alphas[part][unclear], scale, n_releases
            )
        found[part] = rough
    return found


def _roughly(
    witness: ShiftBound, law: NoiseLaw, alphas: FloatArray, scale: FloatArray
) -> FloatArray | None:
    """Return bounds that are not far above, NaN where they might be; or nothing."""
    moments = shift_moments(law, witness.shifts, alphas=alphas, scale=scale)
    if moments is None:
        return None
    with np.errstate(over="ignore"):
        moments *= witness.mass
        mean = moments.sum(axis=1)
    # Masses that were added up may miss a little of one: that much does not move.
    mean += max(1.0 - float(witness.mass.sum()), 0.0)
    clear = (mean > _CLEAR) & np.isfinite(mean)
    logs: FloatArray = np.log(mean, where=clear, out=np.full(len(alphas), np.nan))
    return logs * _RAISED / (alphas - 1)


def _exactly(
    witness: ShiftBound,
    law: NoiseLaw,
    alphas: FloatArray,
    scale: FloatArray,
    n_releases: int,
) -> FloatArray:
    excess = alphas - 1
    exponents = law.shift_divergence(witness.shifts, alpha=alphas, scale=scale)
    exponents *= (n_releases * excess)[:, np.newaxis]
    return log_moments(exponents, witness.mass) / excess


def log_moments(exponents: FloatArray, mass: FloatArray) -> FloatArray:
    """Return `log_moment` of each row of exponents, shape (a, m); they are overwritten.

    >>> log_moments(np.array([[0.0, 1.0], [0.0, 800.0]]), np.ones(2) / 2).round(4).tolist()
    [0.6201, 799.3069]
    """
    tops = exponents.max(axis=1)
    found: FloatArray = tops.copy()
    small = tops < 700.0
    if small.any():
        part = exponents if small.all() else exponents[small]
        np.expm1(part, out=part)
        part *= mass
        found[small] = np.log1p(part.sum(axis=1))
    large = ~small & np.isfinite(tops)
    if large.any():
        part = exponents[large]
        part -= tops[large, np.newaxis]
        np.exp(part, out=part)
        part *= mass
        found[large] += np.log(part.sum(axis=1))
    return found
