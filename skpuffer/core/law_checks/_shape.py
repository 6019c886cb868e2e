"""Whether what is stated has the form that calibration relies on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from skpuffer.core.law_checks._error import LawError
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray

_ROUND_OFF = 1e-10
# Shifts between which costs have to rise and, where they are said to, to be convex.
_FAR, _STEPS = 6.0, 600
_COPIES = (1, 3)


def check_arrays(law: NoiseLaw, alphas: Sequence[float], scale: float) -> None:
    """Check shapes, signs, sums over columns, several orders, and the limits."""
    shifts = scale * np.array([[0.5, -2.0], [1.5, 0.0], [0.0, 0.0]])
    scales = np.array([scale, 3 * scale])
    orders = [*alphas, *([math.inf] if math.isinf(law.max_order) else [])]
    for alpha in orders:
        found = _divergence(law, shifts, alpha, scales)
        if (_divergence(law, -shifts, alpha, scales) != found).any():
            raise LawError(
                f"shift_divergence depends on the sign of a shift at α = {alpha:g}"
            )
        parts = [_divergence(law, shifts[:, [k]], alpha, scales[[k]]) for k in range(2)]
        if not np.allclose(found, parts[0] + parts[1], rtol=_ROUND_OFF, atol=0):
            raise LawError(
                f"shift_divergence of two columns at α = {alpha:g} is {found[0]:.9g}, and "
                f"of either alone {parts[0][0]:.9g} and {parts[1][0]:.9g}: it is a sum "
                "over columns"
            )
        if found[2] != 0:
            raise LawError(
                f"shift_divergence of no shift is {found[2]:g} at α = {alpha:g}, not 0"
            )
        still = _divergence(law, shifts, alpha, np.array([0.0, scale]))
        if still[2] != 0 or (still[:2] != math.inf).any():
            raise LawError(
                f"shift_divergence at a scale of 0 is {still.tolist()} for a shift, a "
                "shift and none: it is infinite for a shift, and 0 for none"
            )
        extreme = np.array([[1e-300], [1e200]])
        for size in (1e-250, 1e250):
            if np.isnan(_divergence(law, extreme, alpha, np.array([size]))).any():
                raise LawError(
                    f"shift_divergence is not a number for shifts of 1e-300 and 1e200 at "
                    f"scale {size:g}, α = {alpha:g}"
                )
    together = np.asarray(
        law.shift_divergence(shifts, alpha=np.array(alphas), scale=scales)
    )
    each = np.stack([_divergence(law, shifts, alpha, scales) for alpha in alphas])
    if together.shape != each.shape:
        raise LawError(
            f"shift_divergence of {len(alphas)} orders and 3 shifts has shape "
            f"{together.shape}, not {each.shape}"
        )
    if not np.allclose(together, each, rtol=_ROUND_OFF, atol=0):
        raise LawError("shift_divergence of several orders is not that of each")


def check_form(law: NoiseLaw, alphas: Sequence[float], scale: float) -> None:
    """Check that costs rise with the shift, fall with the scale, and are convex."""
    far = scale * np.linspace(0, _FAR, _STEPS + 1)
    places = np.concatenate([scale * np.geomspace(1e-6, 1e3, 901), far])
    orders = [*alphas, *([math.inf] if math.isinf(law.max_order) else [])]
    for alpha in orders:
        for name, exponent in _exponents(law, alpha):
            values = exponent(np.sort(places)[:, np.newaxis], scale)
            _refuse_fall(values, f"{name} falls as the shift grows", alpha)
            scales = scale * np.geomspace(1e-3, 1e3, 121)
            falling = np.array([exponent(far[[100]], size)[0] for size in scales])
            _refuse_fall(falling[::-1], f"{name} grows with the scale", alpha)
            if law.convex and alpha < math.inf:
                _refuse_bend(exponent(far[:, np.newaxis], scale), name, alpha)


def check_exponent(law: NoiseLaw, alphas: Sequence[float], scale: float) -> None:
    """Check that the exponent lies above the costs and is a power of the scale."""
    if law.homogeneity is None:
        return
    if not law.homogeneity > 0:
        raise LawError(
            f"homogeneity is {law.homogeneity!r}: a positive number, or None"
        )
    shifts = scale * np.geomspace(1e-4, 1e2, 61)[:, np.newaxis]
    for alpha in alphas:
        exponent = law.wasserstein_exponent(shifts, alpha=alpha, scale=scale)
        cost = (alpha - 1) * _divergence(law, shifts, alpha, scale)
        below = exponent < cost * (1 - _ROUND_OFF)
        if below.any():
            at = int(np.flatnonzero(below)[0])
            raise LawError(
                f"wasserstein_exponent at α = {alpha:g}, shift {shifts[at, 0]:g}, scale "
                f"{scale:g}, is {exponent[at]:.6g}, below the cost of the shift, (α−1) "
                f"times its divergence, {cost[at]:.6g}"
            )
        other = law.wasserstein_exponent(shifts, alpha=alpha, scale=4 * scale)
        if not np.allclose(other * 4.0**law.homogeneity, exponent, rtol=1e-9):
            raise LawError(
                f"wasserstein_exponent is not proportional to scale^-{law.homogeneity:g} "
                f"at α = {alpha:g}, which homogeneity states"
            )


_Exponent = Callable[[FloatArray, float], FloatArray]


def _exponents(law: NoiseLaw, alpha: float) -> list[tuple[str, _Exponent]]:
    """Return what costs are exponentials of, by name."""

    def cost(shifts: FloatArray, scale: float) -> FloatArray:
        factor = 1.0 if math.isinf(alpha) else alpha - 1
        return factor * _divergence(law, shifts.reshape(-1, 1), alpha, scale)

    def published(shifts: FloatArray, scale: float) -> FloatArray:
        return law.wasserstein_exponent(shifts.reshape(-1, 1), alpha=alpha, scale=scale)

    found: list[tuple[str, _Exponent]] = [("shift_divergence", cost)]
    if law.homogeneity is not None and alpha < math.inf:
        found.append(("wasserstein_exponent", published))
    return found


def _divergence(
    law: NoiseLaw, shifts: FloatArray, alpha: float, scale: FloatArray | float
) -> FloatArray:
    found = np.asarray(law.shift_divergence(shifts, alpha=alpha, scale=scale))
    if found.shape != (len(shifts),):
        raise LawError(
            f"shift_divergence of {len(shifts)} shifts has shape {found.shape}, not "
            f"{(len(shifts),)}"
        )
    return found


def _refuse_fall(values: FloatArray, text: str, alpha: float) -> None:
    # Infinities are equal.
    with np.errstate(invalid="ignore"):
        fall = np.diff(values) < -_ROUND_OFF * np.abs(values[1:])
    if fall.any():
        at = int(np.flatnonzero(fall)[0])
        raise LawError(
            f"{text} at α = {alpha:g}: from {values[at]:.9g} to {values[at + 1]:.9g}"
        )


def _refuse_bend(exponents: FloatArray, name: str, alpha: float) -> None:
    """Refuse an exponential that is not convex, of equal steps, for several copies."""
    for copies in _COPIES:
        # Three at a time, so that small ones are not lost beside large ones.
        triples = np.stack([exponents[:-2], exponents[1:-1], exponents[2:]]) * copies
        triples = np.expm1(triples - triples[2]) - np.expm1(triples[0] - triples[2])
        bend = 2 * triples[1] - triples[2]
        rounding = _ROUND_OFF * triples[2] + 1e-14
        if (bend > rounding).any():
            at = int(np.flatnonzero(bend > rounding)[0])
            raise LawError(
                f"convex is True, and the exponential of {name} is not convex at "
                f"α = {alpha:g}, near {_FAR * (at + 1) / _STEPS:g} scales: set it to "
                "False, which is right for every law"
            )
