"""Whether a density is one, and has the spread and the divergence that are stated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skpuffer.core.law_checks._error import LawError
from skpuffer.core.law_checks._integrals import (
    largest_log_ratio,
    log_shift_moment,
    moment,
    panel_edges,
)
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray

# What the total mass and the deviation may be off by; and the logarithm of a moment, as
# a part of it and of one.
_CLOSE, _ROUND_OFF = 1e-6, 1e-8


def check_density(law: NoiseLaw, scale: float) -> None:
    """Check that the density is symmetric and has mass one and the stated spread."""
    z = panel_edges(scale)[::8]
    right, left = (law.logpdf(side, scale=scale) for side in (z, -z))
    for side, values in ((z, right), (-z, left)):
        if np.shape(values) != z.shape:
            raise LawError(
                f"logpdf of {len(z)} values returns shape {np.shape(values)}, not {z.shape}"
            )
        if np.isnan(values).any() or (values == math.inf).any():
            at = side[np.flatnonzero(np.isnan(values) | (values == math.inf))[0]]
            raise LawError(f"logpdf at {at:g}, scale {scale:g}, is nan or infinite")
    with np.errstate(invalid="ignore"):
        apart = np.abs(right - left) > _CLOSE * (1 + np.abs(right))
    if apart.any():
        at = int(np.flatnonzero(apart)[0])
        raise LawError(
            f"the density is not symmetric: logpdf at {z[at]:g} is {right[at]:.9g} and at "
            f"{-z[at]:g} {left[at]:.9g}, scale {scale:g}"
        )
    table = z[:4].reshape(2, 2)
    if not np.array_equal(law.logpdf(table, scale=scale), right[:4].reshape(2, 2)):
        raise LawError("logpdf of values of shape (2, 2) is not that of each value")
    total = moment(law, scale, 0)
    if not abs(total - 1) <= _CLOSE:
        raise LawError(
            f"the density has mass {total:.9g} at scale {scale:g}, not 1: it is not "
            "normalised, or its tail is too heavy for this check"
        )
    found = math.sqrt(moment(law, scale, 2))
    stated = float(law.noise_std(scale))
    if not abs(stated / found - 1) <= _CLOSE:
        raise LawError(
            f"noise_std({scale:g}) is {stated:.9g}, and the standard deviation of the "
            f"density is {found:.9g}"
        )
    several = np.asarray(law.noise_std(np.array([0.0, scale])))
    if several.shape != (2,) or several[0] != 0 or several[1] != stated:
        raise LawError(
            f"noise_std of the scales 0 and {scale:g} is {several.tolist()}, not 0 and "
            f"{stated:g}"
        )


def check_divergence(
    law: NoiseLaw, alphas: Sequence[float], shifts: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Check that no divergence is stated below that of the density.

    Returns
    -------
    stated, computed : ndarray of shape (a, m)
        At the finite orders.
    """
    stated, computed = np.empty((2, len(alphas), len(shifts)))
    for i, alpha in enumerate(alphas):
        stated[i] = law.shift_divergence(
            shifts[:, np.newaxis], alpha=alpha, scale=scale
        )
        for j, shift in enumerate(shifts.tolist()):
            least = log_shift_moment(law, alpha=alpha, shift=shift, scale=scale)
            computed[i, j] = max(least, 0.0) / (alpha - 1)
            # As logarithms of moments, which is what quadrature finds.
            claim = (alpha - 1) * stated[i, j]
            if not claim >= least - _ROUND_OFF * (1 + abs(least)):
                raise _below(alpha, shift, scale, stated[i, j], computed[i, j])
            if math.isinf(claim):
                raise LawError(
                    f"the divergence stated at α = {alpha:g}, shift {shift:g}, scale "
                    f"{scale:g}, is infinite: max_order={law.max_order:g} says that it is "
                    "not"
                )
    if math.isinf(law.max_order):
        limits = law.shift_divergence(
            shifts[:, np.newaxis], alpha=math.inf, scale=scale
        )
        for shift, limit in zip(shifts.tolist(), limits.tolist(), strict=True):
            least = largest_log_ratio(law, shift=shift, scale=scale)
            if not limit >= least - _ROUND_OFF * (1 + abs(least)):
                raise _below(math.inf, shift, scale, limit, least)
            if math.isinf(limit):
                raise LawError(
                    f"the divergence stated at α = ∞, shift {shift:g}, scale {scale:g}, "
                    "is infinite: max_order=inf says that it is not"
                )
    return stated, computed


def _below(
    alpha: float, shift: float, scale: float, stated: float, found: float
) -> LawError:
    order = "∞" if math.isinf(alpha) else f"{alpha:g}"
    return LawError(
        f"the divergence stated at α = {order}, shift {shift:g}, scale {scale:g}, is "
        f"{stated:.6g}, and that of the density is {found:.6g}: a release would reveal "
        "more than its guarantee says"
    )
