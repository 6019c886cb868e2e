"""Integers with P(k) proportional to a falling weight w(|k|), drawn exactly.

Contract: that of `sampling`. Given ideal bits the law is exact, tails included; floats
only skip work whose result is certain. Imports the standard library and numpy; tables
are computed once for each law and never change.

A sign and a point V of [0, 2^63), which a staircase above w shares out, are a draw:
block i of 2^e neighbouring k, from l upwards, has a whole number n of slots of 2^49
points, and n 2^49 / 2^e >= C w(l) points for each of its k, C an integer. The high e
bits of the place in a slot choose k, the rest is a height v < n 2^49 / 2^e, and k is
accepted if v < C w(k): given the block, both are uniform without a division, so that
each k has C w(k) points in all, and none is left out, nor favoured by a remainder. Zero
is accepted with one sign only. A draw that is not accepted is made again.

- The sign and the first 31 bits of V are one half of a word: a slot, and the first 17
  bits of the place. In a certain slot, one that lies below C w of the last k of its
  block, has e <= 17 and not zero, they decide. The others take 32 bits more: at the
  scales of a release a few in a hundred, of heavy tails most, since their blocks are
  long.
- Slots are found with bounds on w in floats: w in float64, with x <= 100 right to 2^-48
  and exp to 16 ulp, is right to a relative 2^-41, and 2^-40 is added or taken away.
- Heights are compared in floats if v + 1 <= f (1 - 2^-40) or v >= f (1 + 2^-40), f =
  C w(k) in float64. What is left, a few draws in 2^32, is decided in `decimal`, with
  outward rounding and further bits of v.
- The tail from K = 2^J upwards has one slot, and draws of it take further words: its
  octave 2^(J+i) with probability 2^-(i+1), k uniform in it, accepted if
  v < C w(k) 2^(J+2i+1), v the place in the slot. At i = 0 and k = K that is at most
  2^49 / 2^6 by the choice of J, and it falls as i grows where p x(K) >= 2, since x
  grows by a factor 2^p, at least by 2 ln 2, with each i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from skpuffer.core.bits import BitSource, append_word, checked_integer, contexts
from skpuffer.core.grid import Ints
from skpuffer.core.sampling_weights import MAX_SCALE, PowerWeights, Weights

FARTHEST = 2**62

_BLOCK = 2**16  # draws
_SLOT_BITS, _PLACE_BITS, _MORE_BITS = 14, 49, 32
_FIRST_BITS = _PLACE_BITS - _MORE_BITS
_SLOTS = 2**_SLOT_BITS
_MARGIN = 2.0**-40

Halves = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Staircase:
    """The slots of all blocks: that of the tail, those left open, certain ones.

    Attributes
    ----------
    unit : int
        C.
    tail : int
        J.
    n_open : int
        How many slots are not certain.
    first, shift : ndarray of shape (2^14,), int32
        l, and 17 - e, of certain slots.
    low, width, height : ndarray of shape (n_open,), int64
        l, 49 - e, and the slot's lowest point, of open slots.
    factor : ndarray of shape (n_open,)
        C, or that of the tail's nearest k.
    rate : float
        The share of draws that are accepted, nearly.
    """

    unit: int
    tail: int
    n_open: int
    first: Halves
    shift: Halves
    low: Ints
    width: Ints
    height: Ints
    factor: npt.NDArray[np.float64]
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
    t = checked_integer(t, "t", 1, MAX_SCALE)
    return draw(size, PowerWeights(t, float(power)), bits)


def draw(size: int, weights: Weights, bits: BitSource) -> Ints:
    """Draw `size` integers with P(k) proportional to the weight of |k|, exactly."""
    size = checked_integer(size, "size", 0)
    stairs = staircase(weights)
    if size <= _BLOCK:
        return _draw_block(size, weights, stairs, bits)
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        n = min(_BLOCK, size - start)
        drawn[start : start + n] = _draw_block(n, weights, stairs, bits)
    return drawn


def _draw_block(n: int, weights: Weights, stairs: Staircase, bits: BitSource) -> Ints:
    """Draw n values; others take the places of those that are not accepted."""
    if n == 0:
        return np.empty(0, dtype=np.int64)
    # As many as are lost, and three deviations more.
    lost = 1.0 - stairs.rate
    spare = int(lost * n + 3 * math.sqrt(lost * n)) + 2
    drawn, missing = _attempt(n + spare, weights, stairs, bits)
    first = int(np.searchsorted(missing, n))
    others = np.delete(drawn[n:], missing[first:] - n)
    missing = missing[:first]
    drawn = drawn[:n]
    if len(others) < len(missing):
        more = _draw_block(len(missing) - len(others), weights, stairs, bits)
        others = np.append(others, more)
    drawn[missing] = others[: len(missing)]
    return drawn


def _attempt(
    n: int, weights: Weights, stairs: Staircase, bits: BitSource
) -> tuple[Ints, npt.NDArray[np.intp]]:
    """Return n draws, and where they are not accepted."""
    half = _halves(n, bits)
    sign = half >> 31  # 0 or -1
    half ^= sign
    slot = half >> _FIRST_BITS
    open_ = np.flatnonzero(slot < stairs.n_open)
    half &= 2**_FIRST_BITS - 1
    known = half[open_]
    half >>= stairs.shift.take(slot)
    half += stairs.first.take(slot)
    half ^= sign  # -k - 1 or k
    half -= sign
    drawn = half.astype(np.int64)
    slot, sign = slot[open_], sign[open_]
    more = _halves(open_.size, bits).view(np.uint32)
    k, accept = _compare(slot, known, more, weights, stairs, bits)
    accept &= (k != 0) | (sign == 0)
    k ^= sign
    k -= sign
    drawn[open_] = k
    return drawn, open_[~accept]


def _halves(n: int, bits: BitSource) -> Halves:
    """Return n half words, low halves first whatever the machine's order."""
    words = bits.words((n + 1) // 2).astype("<u8", copy=False)
    return words.view("<i4")[:n].astype(np.int32)


def _compare(
    slot: Halves,
    known: Halves,
    more: npt.NDArray[np.uint32],
    weights: Weights,
    stairs: Staircase,
    bits: BitSource,
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the magnitudes of draws in open slots, and whether they are accepted."""
    place = (known.astype(np.int64) << _MORE_BITS) | more
    width = stairs.width.take(slot)
    k = place >> width
    v = place - (k << width)
    k += stairs.low.take(slot)
    v += stairs.height.take(slot)
    f = stairs.factor.take(slot) * np.exp(-weights.exponent(k.astype(np.float64)))
    accept = (v + 1 <= f * (1 - _MARGIN)) & (slot > 0)
    for i in np.flatnonzero(~accept & (v < f * (1 + _MARGIN))):
        if slot[i] > 0:
            found, unit = int(k[i]), stairs.unit
        else:
            octave = _octave(bits)
            size = stairs.tail + octave
            found = (1 << size) + _uniform(size, bits)
            unit = stairs.unit << (size + octave + 1)
        accept[i] = _below(int(v[i]), found, unit, weights, bits)
        k[i] = min(found, FARTHEST)
    return k, accept


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


def _below(v: int, k: int, unit: int, weights: Weights, bits: BitSource) -> bool:
    """Whether a uniform of [v, v + 1] is below unit · w(k); decided lazily."""
    known = 0
    while True:
        down, up = contexts(known)
        least, most = weights.bounds(k, down, up)
        scaled = unit << known
        if v + 1 <= down.multiply(scaled, least):
            return True
        if v >= up.multiply(scaled, most):
            return False
        v, known = append_word(v, bits), known + 64


@lru_cache(maxsize=256)
def staircase(weights: Weights) -> Staircase:
    """Build the staircase above w."""

    def value(k: Ints) -> npt.NDArray[np.float64]:
        return np.asarray(np.exp(-weights.exponent(k.astype(np.float64))))

    slot = weights.total / _SLOTS
    # The tail begins where it has little mass, and falls fast.
    log_ends = np.arange(1, 60)
    exponents = weights.exponent(np.ldexp(1.0, log_ends))
    light = exponents >= (log_ends + 8) * math.log(2) - math.log(slot)
    tail = int(log_ends[light & (weights.power * exponents >= 2.1)][0])
    # The blocks (l, e), halved where that saves more than a slot.
    todo = np.array([(0, 0), *((1 << e, e) for e in range(tail))], dtype=np.int64)
    done = []
    while len(todo):
        low, e = todo.T
        half = np.int64(1) << e >> 1
        halved = half * (value(low) - value(low + half)) > slot
        done.append(todo[~halved])
        low, e, half = low[halved], e[halved] - 1, half[halved]
        todo = np.concatenate([np.stack([x, e], axis=1) for x in (low, low + half)])
    blocks = np.concatenate(done)
    lows, es = blocks[np.argsort(blocks[:, 0])].T
    ends = lows + (np.int64(1) << es)
    most, least = (
        value(k) * (1 + side * _MARGIN) for k, side in ((lows, 1), (ends, -1))
    )
    tops = np.ldexp(most, es.astype(np.intc) - _PLACE_BITS)
    room = _SLOTS - 1
    unit = math.floor(room / float(tops.sum()))
    while (used := int((counts := np.ceil(unit * tops)).sum())) > room:
        unit = math.floor(unit * (room / (used + 1)))
    counts[0] += room - used  # nothing is gained, and nothing lost
    # Never zero, which has one sign only.
    sure = np.where(
        (es <= _FIRST_BITS) & (lows > 0) & (ends < 2**31),
        np.floor(unit * np.ldexp(least, es.astype(np.intc) - _PLACE_BITS)),
        0,
    )
    counts = counts.astype(np.intp)
    block = np.repeat(np.arange(len(lows)), counts)
    rank = np.arange(room) - np.repeat(np.cumsum(counts) - counts, counts)
    certain = rank < sure[block]
    n_open = _SLOTS - int(np.count_nonzero(certain))
    first, shift = np.zeros((2, _SLOTS), dtype=np.int32)
    first[n_open:] = lows[block[certain]]
    shift[n_open:] = _FIRST_BITS - es[block[certain]]
    left, rank = block[~certain], rank[~certain]
    width = np.append(_PLACE_BITS, _PLACE_BITS - es[left])
    factor = np.full(n_open, float(unit))
    factor[0] *= 2.0 ** (tail + 1)
    low, height = np.append(2**tail, lows[left]), np.append(0, rank << width[1:])
    for table in (first, shift, low, width, height, factor):
        # Every draw of the law, in every thread, looks them up.
        table.flags.writeable = False
    accepted = unit * (weights.total - 0.5) / 2.0**63
    return Staircase(
        unit, tail, n_open, first, shift, low, width, height, factor, accepted
    )
