"""Noise on a grid, drawn exactly: with `sampling_blocks` the only place where it is.

Contract. Every released value is an integer multiple of a power of two, and the
integer noise in it has its stated law *exactly*, given ideal bits: floats only skip
work whose result is certain. A draw is a function of the words of its source alone,
hence the same on every platform. Imports the standard library and numpy; no mutable
state in the module, so blocks may run in threads.

Why the filter may be trusted. Of a uniform U the first L bits j are known: U is in
[j, j+1] / 2^L. Wanted is floor(t E + h), E = -log U, t an integer, h = 0 or 1/2. With
m = j + 1/2 the computed value is v = (t L ln 2 + h) - t log m. Its error is at most

- interval: |log m - log(2^L U)| <= -log(1 - 1/2m) <= 0.63/m if j >= 1; taken as 0.7/m,
  which also covers the rounding of the radius. At j = 0 the radius is at least 1.4,
  both floors differ and the draw is never decided here;
- m in float64: relative error 2^-52 if L = 63 (none if L = 41), so t 2^-52;
- log: at most 43.7 < 2^6, so u ulp are at most u t 2^-47;
- eight roundings (ln 2, L ln 2, times t, adding h, t log m, their difference, adding
  the radius) of numbers below 64 t: at most 8 t 2^-48.

All but the interval stay below the margin t 2^-42 if u <= 16 (numpy's own log and the
C libraries in use stay below 4). If v minus and plus t (0.7/m + 2^-42) have one floor,
it is the floor for every U in the interval, whatever the further bits; else `decimal`
decides with outward rounding, asking for more bits until both ends agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from skpuffer.core.bits import (
    BitSource,
    SeededBits,
    SystemBits,
    append_word,
    checked_integer,
    contexts,
)
from skpuffer.core.grid import Floats, Ints, check_grid_range, grid_step, round_half_up

__all__ = [
    "BitSource",
    "SeededBits",
    "SystemBits",
    "discrete_gaussian",
    "release_on_grid",
    "rounded_laplace",
]

Bools = npt.NDArray[np.bool_]

_MAX_T = 2**32
_BLOCK = 2**15  # words: a few such buffers fit in a core's cache
_MARGIN = 2.0**-42
_LN2 = math.log(2.0)
# A word is a sign and 63 bits of U; or a sign, 41 bits of U and 22 bits of U2.
_LAPLACE_BITS, _GAUSSIAN_BITS, _ACCEPT_BITS = 63, 41, 22
_ACCEPT_MARGIN = 8.0  # in units of 2^-22, see _gaussian_block
_NEAR = 2**52  # sums of two such numbers are exact in float64
_FARTHEST = 2**61  # of a sum; samplers may stop at twice that


def rounded_laplace(size: int, t: int, bits: BitSource) -> Ints:
    """Draw `size` values of a continuous Laplace noise of scale `t`, each rounded.

    k = ±floor(t E + 1/2), E standard exponential, a fair sign: a rounding of the
    continuous noise, so what is proven for that holds here (data processing).
    P(0) = 1 - exp(-1/2t), P(±k) = exp(-k/t) sinh(1/2t). `t` is from 1 to 2^32.

    >>> k = rounded_laplace(10_000, 1000, SeededBits(0, 0))
    >>> bool(950 < abs(k).mean() < 1050)
    True
    >>> rounded_laplace(0, 1, SystemBits())
    array([], dtype=int64)
    """
    size, t = checked_integer(size, "size", 0), checked_integer(t, "t", 1, _MAX_T)
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        words = bits.words(min(_BLOCK, size - start)).view(np.int64)
        # A negative word is ~j, and ~j + 1/2 = -(j + 1/2): the sign comes free.
        signed = words.astype(np.float64)
        signed += 0.5
        floors, unsure = _floor_filter(signed, t, _LAPLACE_BITS, 0.5)
        np.copysign(floors, signed, out=floors)
        for i in np.flatnonzero(unsure):
            floors[i] = _decimal_laplace(int(words[i]), t, bits)
        drawn[start : start + _BLOCK] = floors
    return drawn


def discrete_gaussian(size: int, s: int, bits: BitSource) -> Ints:
    """Draw `size` integers with P(k) proportional to exp(-k^2 / 2 s^2), exactly.

    By rejection from a discrete Laplace of scale s + 1 [Canonne, Kamath, Steinke
    2020, Algorithm 3]: accepted draws in their order, the surplus discarded. `s` is
    from 1 to 2^32 - 1.

    >>> k = discrete_gaussian(10_000, 1000, SeededBits(0, 0))
    >>> bool(970 < k.std() < 1030)
    True
    >>> discrete_gaussian(0, 1, SystemBits())
    array([], dtype=int64)
    """
    size, s = checked_integer(size, "size", 0), checked_integer(s, "s", 1, _MAX_T - 1)
    drawn = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        need = size - filled
        # 1.316 proposals a draw for large s, and two deviations more.
        n = min(_BLOCK, int(1.316 * need + 2.0 * math.sqrt(need)) + 8)
        accepted = _gaussian_block(bits.words(n).view(np.int64), s, bits)[:need]
        drawn[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return drawn


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
        index = round_half_up(values[part], step, scaled[:n], work[:n])
        noise = sampler(n, t, bits)
        if noise.min() >= -_NEAR and noise.max() <= _NEAR:
            index += noise
            np.multiply(index, step, out=released[part])
            continue
        # Added, cut off and rounded as a sum of integers: functions of n + k alone.
        noise += index.astype(np.int64)
        np.clip(noise, -_FARTHEST, _FARTHEST, out=noise)
        np.multiply(noise, step, out=released[part])
    return released


def _floor_filter(
    signed: Floats, t: int, n_bits: int, offset: float
) -> tuple[Floats, Bools]:
    """Return floor(t E + offset) for `signed` = ±(j + 1/2), and where it is unsure."""
    v = np.abs(signed)
    radius = 0.7 * t / v
    radius += _MARGIN * t
    np.log(v, out=v)
    v *= -t
    v += t * (n_bits * _LN2) + offset
    low = v - radius
    v += radius
    np.floor(low, out=low)
    np.floor(v, out=v)
    return low, low != v


def _gaussian_block(words: Ints, s: int, bits: BitSource) -> Floats:
    """Return the accepted proposals of a block of words, in order.

    Accept if U2 < p = exp(-u^2), u = (y - s^2/(s+1)) / (s sqrt 2). As u^2 p <= 1/e,
    float32 gives 2^22 p to 3 * 2^-24 * 2^22 / e for u^2, half of it per ulp of exp and
    1/4 for the difference with j2: below 8 with 14 ulp (numpy: 3), and float64 adds
    nothing to speak of (y is an exact integer, u is right to 2^-50 (1 + u)).
    """
    signed = (words >> _ACCEPT_BITS).astype(np.float64)
    signed += 0.5
    y, unsure = _floor_filter(signed, s + 1, _GAUSSIAN_BITS, 0.0)
    u = y - (s - 1 + 1 / (s + 1))  # s^2/(s+1)
    u *= math.sqrt(0.5) / s
    with np.errstate(under="ignore"):
        p = u.astype(np.float32)
        p *= p
        np.negative(p, out=p)
        np.exp(p, out=p)
    p *= np.float32(-(2.0**_ACCEPT_BITS))
    p += (words & (2**_ACCEPT_BITS - 1)).astype(np.float32)  # j2 - 2^22 p
    accept = p <= -1.0 - _ACCEPT_MARGIN
    unsure |= ~accept & (p < _ACCEPT_MARGIN)
    accept &= (y != 0.0) | (signed > 0.0)  # zero has one sign
    np.copysign(y, signed, out=y)
    for i in np.flatnonzero(unsure):
        k = _decimal_gaussian(int(words[i]), s, bits)
        accept[i] = k is not None
        y[i] = k or 0
    return np.compress(accept, y)


def _decimal_laplace(word: int, t: int, bits: BitSource) -> int:
    """Decide a draw of `rounded_laplace` from a signed word, without floats."""
    magnitude = _decimal_floor(max(word, ~word), _LAPLACE_BITS, t, True, bits)
    return magnitude if word >= 0 else -magnitude


def _decimal_gaussian(word: int, s: int, bits: BitSource) -> int | None:
    """Decide a proposal of `discrete_gaussian`, None if rejected, without floats."""
    proposal, j2 = word >> _ACCEPT_BITS, word & (2**_ACCEPT_BITS - 1)
    j = max(proposal, ~proposal)
    y = _decimal_floor(j, _GAUSSIAN_BITS, s + 1, False, bits)
    if proposal < 0 and y == 0:
        return None
    numerator, denominator = -((y * (s + 1) - s * s) ** 2), 2 * (s * (s + 1)) ** 2
    n_bits = _ACCEPT_BITS
    while True:
        down, up = contexts(n_bits)
        # p is exp(numerator / denominator); decimal's exp is within half an ulp. (No
        # unary minus on a Decimal: it would round to the caller's own context.)
        least = down.exp(down.divide(numerator, denominator))
        most = up.exp(up.divide(numerator, denominator))
        if j2 + 1 <= down.multiply(down.next_minus(least), 2**n_bits):
            return y if proposal >= 0 else -y
        if j2 >= up.multiply(up.next_plus(most), 2**n_bits):
            return None
        j2, n_bits = append_word(j2, bits), n_bits + 64


def _decimal_floor(j: int, n_bits: int, t: int, half: bool, bits: BitSource) -> int:
    """Return floor(-t log U + half / 2), U in [j, j+1] / 2^n_bits; decided lazily."""
    offset = Decimal(0.5 if half else 0.0)
    while True:
        down, up = contexts(n_bits)
        if j > 0:
            # decimal's ln is within half an ulp; E >= 0 because U <= 1.
            low = down.next_minus(down.ln(down.divide(2**n_bits, j + 1)))
            high = up.next_plus(up.ln(up.divide(2**n_bits, j)))
            least = down.fma(t, max(low, Decimal(0)), offset)
            most = up.fma(t, high, offset)
            if math.floor(least) == math.floor(most):
                return math.floor(least)
        j, n_bits = append_word(j, bits), n_bits + 64
