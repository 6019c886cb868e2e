"""Moments and divergences of a noise law by quadrature of its density.

Adaptive Gauss-Legendre panels, equal in the logarithm of the distance from where the
density may have a kink: its centre, and the centre of the density that is moved. What
lies beyond 2^44 scales is left out, so that no divergence comes out too large for it.
Imports numpy alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray

# The octaves that panels go over, and how many there are to an octave at first.
_LOW, _HIGH, _PER_OCTAVE = -20, 44, 4
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# Panels are halved until that changes the integral by less than this part of it.
_TOLERANCE, _ROUNDS = 1e-11, 40
# Log densities that are looked at for their ratio.
_FAR = -1000.0

LogFunction = Callable[[FloatArray], FloatArray]


def panel_edges(scale: float) -> FloatArray:
    """Return edges of panels from zero outwards."""
    octaves = np.arange(_LOW * _PER_OCTAVE, _HIGH * _PER_OCTAVE + 1) / _PER_OCTAVE
    return np.append(0.0, scale * np.exp2(octaves))


def log_panels(log_f: LogFunction, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the logarithm of the integral of exp(log_f) over each panel."""
    half = (high - low) / 2
    points = (low + half)[:, np.newaxis] + half[:, np.newaxis] * _NODES
    values = log_f(points)
    top = values.max(axis=1)
    shown = np.where(np.isfinite(top), top, 0.0)
    sums = (np.exp(values - shown[:, np.newaxis]) * _WEIGHTS).sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums * half) + shown)


def log_integral(log_f: LogFunction, edges: FloatArray) -> float:
    """Return log ∫ exp(log_f), over panels that are halved where it matters."""
    low, high = edges[:-1], edges[1:]
    whole = log_panels(log_f, low, high)
    done = [-math.inf]
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        halves = np.stack(
            [log_panels(log_f, low, middle), log_panels(log_f, middle, high)]
        )
        both = np.logaddexp(*halves)
        total = _log_sum(np.append(done, both))
        if not math.isfinite(total):
            return total
        close = np.abs(np.exp(both - total) - np.exp(whole - total)) <= (
            _TOLERANCE / len(edges)
        )
        done.append(_log_sum(both[close]))
        rest = ~close
        low, high = (
            np.append(low[rest], middle[rest]),
            np.append(middle[rest], high[rest]),
        )
        whole = halves[:, rest].ravel()
        if not len(low):
            break
    done.append(_log_sum(whole))
    return _log_sum(np.array(done))


def moment(law: NoiseLaw, scale: float, power: int) -> float:
    """Return the mean of |z|^power."""

    def log_f(z: FloatArray) -> FloatArray:
        return np.asarray(law.logpdf(z, scale=scale) + power * np.log(z))

    return 2 * math.exp(log_integral(log_f, panel_edges(scale)))


def log_shift_moment(
    law: NoiseLaw, *, alpha: float, shift: float, scale: float
) -> float:
    """Return log ∫ f(z)^α f(z − shift)^(1−α) dz, of a symmetric density f.

    On either side of the two centres, and between them, up to the middle from both.
    """

    def near(w: FloatArray) -> FloatArray:
        return law.logpdf(w, scale=scale)

    def beyond(w: FloatArray) -> FloatArray:
        return law.logpdf(w + shift, scale=scale)

    def between(w: FloatArray) -> FloatArray:
        return law.logpdf(shift - w, scale=scale)

    edges = panel_edges(scale)
    inner = np.append(edges[edges < shift / 2], shift / 2)
    parts = [
        log_integral(_ratio(first, second, alpha), places)
        for first, second, places in (
            (near, beyond, edges),
            (beyond, near, edges),
            (near, between, inner),
            (between, near, inner),
        )
    ]
    return _log_sum(np.array(parts))


def largest_log_ratio(law: NoiseLaw, *, shift: float, scale: float) -> float:
    """Return the largest log f(z) / f(z − shift) at the nodes, no more than D_∞."""
    edges = panel_edges(scale)
    # Farther out the two would not differ but for round-off.
    edges = edges[law.logpdf(edges, scale=scale) > _FAR]
    inner = edges[edges <= shift]
    near, beyond = (law.logpdf(w, scale=scale) for w in (edges, edges + shift))
    found = [near - beyond, law.logpdf(inner, scale=scale)]
    found[1] = found[1] - law.logpdf(shift - inner, scale=scale)
    # Where both vanish there is nothing to tell.
    return max(float(np.nanmax(ratio)) for ratio in found)


def _ratio(first: LogFunction, second: LogFunction, alpha: float) -> LogFunction:
    def log_f(w: FloatArray) -> FloatArray:
        over, under = first(w), second(w)
        with np.errstate(invalid="ignore"):
            value = alpha * over + (1 - alpha) * under
        return np.asarray(np.where(over == -math.inf, -math.inf, value))

    return log_f


def _log_sum(values: FloatArray) -> float:
    top = float(values.max(initial=-math.inf))
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.exp(values - top).sum()))
