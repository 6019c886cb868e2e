"""Where random bits come from, and what exact decisions on them share.

Imports the standard library and numpy; no mutable state in the module.
"""

from __future__ import annotations

import math
import operator
import os
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import NoReturn, Protocol, SupportsIndex

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


class BitSource(Protocol):
    """Where random words come from: `words(n)` never returns the same word twice."""

    def words(self, n: int, /) -> Words: ...  # noqa: D102


class SystemBits:
    """The operating system's generator: no state here, nothing to pickle or fork.

    >>> SystemBits().words(3).shape
    (3,)
    """

    __slots__ = ()

    def words(self, n: int, /) -> Words:
        """Return `n` words of `os.urandom`."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class SeededBits:
    """Repeatable words for tests and papers: whoever knows the seed can *remove* it.

    The stream is a function of `seed` and `call` (integers >= 0): take a new `call`
    for every release. One object serves one thread; it refuses to be pickled.

    >>> a, b = SeededBits(7, 0), SeededBits(7, 0)
    >>> bool((a.words(4) == b.words(4)).all())
    True
    """

    __slots__ = ("_generator",)

    def __init__(self, seed: int, call: int) -> None:
        entropy = [checked_integer(seed, "seed", 0), checked_integer(call, "call", 0)]
        self._generator = np.random.PCG64DXSM(np.random.SeedSequence(entropy))

    def words(self, n: int, /) -> Words:
        """Return the next `n` words of the stream."""
        drawn: Words = self._generator.random_raw(n)
        return drawn

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("SeededBits cannot be pickled: make one from seed and call.")


def checked_integer(value: int, name: str, least: int, most: float = math.inf) -> int:
    """Return `value` as an int, refusing bools, floats and numbers out of range."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, got {value}.")
    return operator.index(value)


def contexts(n_bits: int) -> tuple[Context, Context]:
    """Return contexts that round down and up, with digits to spare for `n_bits`."""
    digits = 40 + n_bits // 3
    return Context(digits, ROUND_FLOOR), Context(digits, ROUND_CEILING)


def append_word(j: int, bits: BitSource) -> int:
    """Append a word of fresh bits to `j`."""
    return (j << 64) | int(bits.words(1)[0])
