"""Noise on a grid, drawn exactly: with `sampling_blocks` the only place where it is.

Contract. Every released value is an integer multiple of a power of two, and the
integer noise in it has its stated law *exactly*, given ideal bits: floats only skip
work whose result is certain. A draw is a function of the words of its source, and of
tables whose floats may differ in a last bit between platforms: the draws then differ,
their law does not. Imports the standard library and numpy; no mutable state in the
module, so blocks may run in threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skpuffer.core.bits import BitSource, SeededBits, SystemBits, checked_integer
from skpuffer.core.grid import Floats, Ints, check_grid_range, grid_step, round_half_up
from skpuffer.core.sampling_blocks import FARTHEST, draw
from skpuffer.core.sampling_weights import (
    MAX_SCALE,
    GaussianWeights,
    RoundedLaplaceWeights,
)

__all__ = [
    "BitSource",
    "SeededBits",
    "SystemBits",
    "discrete_gaussian",
    "release_on_grid",
    "rounded_laplace",
]

_BLOCK = 2**16  # values: a few such buffers fit in a core's cache
_NEAR = 2**52  # sums of two such numbers are exact in float64
_FARTHEST = FARTHEST // 2  # of a sum


def rounded_laplace(size: int, t: int, bits: BitSource) -> Ints:
    """Draw `size` values of a continuous Laplace noise of scale `t`, each rounded.

    k = ±floor(t E + 1/2), E standard exponential, a fair sign: a rounding of the
    continuous noise, so what is proven for that holds here (data processing).
    P(0) = 1 - exp(-1/2t), P(±k) = exp(-k/t) sinh(1/2t). `t` is from 1 to 2^22.

    >>> k = rounded_laplace(10_000, 1000, SeededBits(0, 0))
    >>> bool(950 < abs(k).mean() < 1050)
    True
    >>> rounded_laplace(0, 1, SystemBits())
    array([], dtype=int64)
    """
    t = checked_integer(t, "t", 1, MAX_SCALE)
    return draw(size, RoundedLaplaceWeights(t), bits)


def discrete_gaussian(size: int, s: int, bits: BitSource) -> Ints:
    """Draw `size` integers with P(k) proportional to exp(-k^2 / 2 s^2), exactly.

    The discrete Gaussian of Canonne, Kamath and Steinke 2020. `s` is from 1 to 2^22.

    >>> k = discrete_gaussian(10_000, 1000, SeededBits(0, 0))
    >>> bool(970 < k.std() < 1030)
    True
    >>> discrete_gaussian(0, 1, SystemBits())
    array([], dtype=int64)
    """
    s = checked_integer(s, "s", 1, MAX_SCALE)
    return draw(size, GaussianWeights(s), bits)


def release_on_grid(
    values: Floats,
    scale: float,
    sampler: Callable[[int, int, BitSource], Ints],
    bits: BitSource,
    out: Floats | None = None,
) -> Floats:
    """Round values to the grid of `scale` and add integer noise: (n + k) step.

    `sampler(size, t, bits)` draws k, which it may cut off at 2^62: sums are cut off at
    2^61, so that nothing is seen of it. Beyond 2^53 a float has the nearest sum.

    `values` (n,) float64, may be strided; `scale` a multiple of its grid step; `out`
    (n,) may be `values` itself. Raises ValueError for a scale off its grid and as
    `round_to_grid` does, before any noise is drawn or anything is written.

    >>> x = np.array([0.0, 1.0])
    >>> y = release_on_grid(x, 0.5, rounded_laplace, SystemBits()) / grid_step(0.5)
    >>> bool((y == np.rint(y)).all())
    True
    """
    step = grid_step(scale)
    t = int(scale / step)
    if t * step != scale:
        raise ValueError(f"scale {scale!r} is off its grid: use scale_to_grid.")
    released = np.empty(values.shape) if out is None else out
    for array in (values, released):
        if array.dtype != np.float64 or array.shape != (values.size,):
            raise ValueError(
                f"Expected float64 arrays of shape ({values.size},), got "
                f"{array.dtype} of shape {array.shape}."
            )
    check_grid_range(values, step)
    scaled, work = np.empty((2, min(values.size, _BLOCK)))
    for start in range(0, values.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        n = values[part].size
        index = round_half_up(values[part], step, scaled[:n])
        noise = sampler(n, t, bits)
        if noise.min() >= -_NEAR and noise.max() <= _NEAR:
            work[:n] = noise
            index += work[:n]
            np.multiply(index, step, out=released[part])
            continue
        # Added, cut off and rounded as a sum of integers: functions of n + k alone.
        noise += index.astype(np.int64)
        np.clip(noise, -_FARTHEST, _FARTHEST, out=noise)
        np.multiply(noise, step, out=released[part])
    return released
