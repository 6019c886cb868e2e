"""Integers with P(k) proportional to exp(-(|k| / t)^p), 0 < p <= 1, drawn exactly.

Contract: that of `sampling`. Given ideal bits the law is exact, tails included; floats
only skip work whose result is certain. Imports the standard library and numpy; tables
are computed once for each p and t and never change.

Let w(k) = exp(-(k / t)^p) for k >= 0, which falls. A word is a sign and a point V of
[0, 2^63), which a staircase above w shares out: block i of 2^e neighbouring k, from l
upwards, has a whole number n of slots of 2^49 points, and n 2^49 / 2^e >= C w(l) points
for each of its k, C an integer. The low e bits of the place in a slot choose k, the
rest is a height v < n 2^49 / 2^e, and k is accepted if v < C w(k): given the block,
both are uniform without a division, so that each k has C w(k) points in all, and none
is left out, nor favoured by a remainder. Zero is accepted with one sign only.

- C and the slots are found with upper bounds on w in `decimal`, as integers.
- Slots that lie below C w of the last k of their block need no comparison: nearly all.
- In the others floats decide if v + 1 <= f (1 - 2^-40) or v >= f (1 + 2^-40), f = C w(k)
  in float64. With x = (k / t)^p <= 64 and functions right to 16 ulp, x is right to
  64 (2^-53 + 2^-48) and f to a relative 2^-41.8. What is left, a few draws in 2^40, is
  decided in `decimal`, with outward rounding and further bits of v.
- The tail from K = 2^J upwards has one slot, and draws of it take further words: its
  octave 2^(J+i) with probability 2^-(i+1), k uniform in it, accepted if
  v < C w(k) 2^(J+2i+1), v the place in the slot. At i = 0 and k = K that is at most
  2^49 / 2^6 by the choice of J, and it falls as i grows where p (K / t)^p >= 2, since
  (2^i K / t)^p grows by a factor 2^p, at least by 2 ln 2, with each i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from skpuffer.core.bits import BitSource, append_word, checked_integer, contexts
from skpuffer.core.grid import Ints

LEAST_POWER = 0.2
FARTHEST = 2**62

_MAX_T = 2**22
_BLOCK = 2**15  # words
_SLOT_BITS, _PLACE_BITS = 14, 49
_SLOTS = 2**_SLOT_BITS
_WEIGHT_BITS = 80  # of w as an integer
_ONE, _DIGITS = 2**_WEIGHT_BITS, 25
_MARGIN = 2.0**-40


@dataclass(frozen=True, eq=False)
class _Staircase:
    """The slots of all blocks, from the tail down to zero.

    `first`, `mask` (2^e - 1), `shift` (e), `height` (of the slot's lowest point) and
    `factor` (C, or that of the tail's nearest k) have one entry a slot, as `certain`
    has: whether all of it is accepted. `tail` is J, `rate` the share of accepted words.
    """

    unit: int
    tail: int
    first: Ints
    mask: Ints
    shift: Ints
    height: Ints
    factor: npt.NDArray[np.float64]
    certain: npt.NDArray[np.bool_]
    rate: float


def exponential_power(size: int, t: int, power: float, bits: BitSource) -> Ints:
    """Draw `size` integers with P(k) proportional to exp(-(|k| / t)^power), exactly.

    `t` is from 1 to 2^22, `power` from 0.2 to 1: below, the law's deviation is beyond
    6e4 t and 63 bits no longer resolve its tail. Values beyond ±2^62, fewer
    than one in 2^340, are returned as ±2^62; a sum that is cut off at 2^61 does not
    show it.

    >>> from skpuffer.core.bits import SeededBits, SystemBits
    >>> k = exponential_power(10_000, 1000, 0.5, SeededBits(0, 0))
    >>> bool(5700 < abs(k).mean() < 6300)
    True
    >>> exponential_power(0, 1, 0.5, SystemBits())
    array([], dtype=int64)
    """
    size, t = checked_integer(size, "size", 0), checked_integer(t, "t", 1, _MAX_T)
    stairs = _staircase(float(power), t)
    drawn = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        need = size - filled
        n = min(_BLOCK, int(need / stairs.rate + math.sqrt(need)) + 8)
        words = bits.words(n).view(np.int64)
        accepted = _accepted(words, stairs, t, float(power), bits)[:need]
        drawn[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return drawn


def _accepted(
    words: Ints, stairs: _Staircase, t: int, power: float, bits: BitSource
) -> Ints:
    """Return the accepted values of a block of words, in order."""
    sign = words >> 63  # 0 or -1
    place = words ^ sign
    slot = place >> _PLACE_BITS
    k = stairs.mask.take(slot)
    k &= place
    k += stairs.first.take(slot)
    accept = stairs.certain.take(slot)
    open_ = np.flatnonzero(~accept)
    slot = slot[open_]
    v = place[open_] & (2**_PLACE_BITS - 1)
    v >>= stairs.shift.take(slot)
    v += stairs.height.take(slot)
    f = stairs.factor.take(slot) * np.exp(-((k[open_] / t) ** power))
    below = (v + 1 <= f * (1 - _MARGIN)) & (slot > 0)
    accept[open_] = below
    for i in np.flatnonzero(~below & (v < f * (1 + _MARGIN))):
        if slot[i] > 0:
            found = int(k[open_[i]])
            unit = stairs.unit
        else:
            octave = _octave(bits)
            size = stairs.tail + octave
            found = (1 << size) + _uniform(size, bits)
            unit = stairs.unit << (size + octave + 1)
        accept[open_[i]] = _below(int(v[i]), found, unit, t, power, bits)
        k[open_[i]] = min(found, FARTHEST)
    k ^= sign  # -k - 1 or k
    k -= sign
    accept &= (k != 0) | (sign == 0)
    return np.compress(accept, k)


def _octave(bits: BitSource) -> int:
    """Return i >= 0 with probability 2^-(i+1)."""
    zeros = 0
    while not (word := int(bits.words(1)[0])):
        zeros += 64
    return zeros + 64 - word.bit_length()


def _uniform(n_bits: int, bits: BitSource) -> int:
    """Return an integer below 2^n_bits."""
    value = 0
    for _ in range(0, n_bits, 64):
        value = append_word(value, bits)
    return value >> (-n_bits % 64)


def _below(v: int, k: int, unit: int, t: int, power: float, bits: BitSource) -> bool:
    """Whether a uniform of [v, v + 1] is below unit · w(k); decided lazily."""
    known = 0
    while True:
        down, up = contexts(known)
        least, most = _weight(k, t, power, down, up)
        scaled = unit << known
        if v + 1 <= down.multiply(scaled, least):
            return True
        if v >= up.multiply(scaled, most):
            return False
        v, known = append_word(v, bits), known + 64


def _weight(
    k: int, t: int, power: float, down: Context, up: Context
) -> tuple[Decimal, Decimal]:
    """Return bounds on exp(-(k / t)^power), with contexts that round down and up."""
    if k == 0:
        return Decimal(1), Decimal(1)
    p = Decimal(power)
    # Decimal's ln and exp are within half an ulp. (No unary minus on a Decimal: it
    # would round to the caller's own context.)
    low = down.multiply(p, down.next_minus(down.ln(down.divide(k, t))))
    high = up.multiply(p, up.next_plus(up.ln(up.divide(k, t))))
    low, high = down.next_minus(down.exp(low)), up.next_plus(up.exp(high))
    least = down.next_minus(down.exp(down.minus(high)))
    return least, up.next_plus(up.exp(up.minus(low)))


def _whole_weight(k: int, t: int, power: float) -> tuple[int, int]:
    """Return bounds on 2^80 w(k) in whole numbers."""
    down, up = Context(_DIGITS, ROUND_FLOOR), Context(_DIGITS, ROUND_CEILING)
    least, most = _weight(k, t, power, down, up)
    return math.floor(down.multiply(least, _ONE)), math.ceil(up.multiply(most, _ONE))


@lru_cache(maxsize=256)
def _staircase(power: float, t: int) -> _Staircase:
    """Build the staircase above w; floats choose the blocks, integers their slots."""
    if not LEAST_POWER <= power <= 1:
        raise ValueError(f"power must be from {LEAST_POWER} to 1, got {power}.")

    def weight(k: int) -> float:
        return math.exp(-((k / t) ** power))

    slot = (t * math.gamma(1 + 1 / power) + 0.5) / _SLOTS
    tail = t.bit_length()
    while (2**tail / t) ** power < 2.1 / power or (
        2.0 ** (tail + 8) * weight(2**tail) > slot
    ):
        tail += 1
    # The blocks (l, e), from zero upwards, halved where that saves more than a slot.
    blocks, todo = [], [(1 << e, e) for e in reversed(range(tail))] + [(0, 0)]
    while todo:
        low, e = todo.pop()
        half = 1 << e >> 1
        if half * (weight(low) - weight(low + half)) > slot:
            todo += [(low + half, e - 1), (low, e - 1)]
        else:
            blocks.append((low, e))
    bounds = [_whole_weight(low, t, power) for low, _ in blocks]
    bounds.append(_whole_weight(2**tail, t, power))
    room = _SLOTS - 1
    tops = [most << e for (_, most), (_, e) in zip(bounds, blocks, strict=False)]
    unit = (_ONE << 63) // sum(tops)
    while True:
        counts = [-(-unit * top >> (_WEIGHT_BITS + _PLACE_BITS)) for top in tops]
        if (used := sum(counts)) <= room:
            break
        unit = unit * room // (used + 1)
    counts[0] += room - used  # nothing is gained, and nothing lost
    first, mask, shift, height, certain = [], [], [], [], []
    # The next block's first k is beyond the last one of this.
    nexts = [least for least, _ in bounds[1:]]
    for (low, e), least, count in zip(blocks, nexts, counts, strict=True):
        rank = np.arange(count, dtype=np.int64)
        below = (unit * least >> _WEIGHT_BITS) >> (_PLACE_BITS - e)
        first.append(np.full(count, low, dtype=np.int64))
        mask.append(np.full(count, (1 << e) - 1, dtype=np.int64))
        shift.append(np.full(count, e, dtype=np.int64))
        height.append(rank << (_PLACE_BITS - e))
        certain.append(rank < below)

    def slots(parts: list[Ints], of_tail: int) -> Ints:
        of_slots = np.concatenate([np.array([of_tail], dtype=np.int64), *parts[::-1]])
        of_slots.flags.writeable = False
        return of_slots

    factor = np.full(_SLOTS, float(unit))
    factor[0] *= 2.0 ** (tail + 1)
    return _Staircase(
        unit,
        tail,
        slots(first, 2**tail),
        slots(mask, 0),
        slots(shift, 0),
        slots(height, 0),
        factor,
        slots(certain, 0).astype(bool),
        unit * t * math.gamma(1 + 1 / power) / 2.0**63,
    )
