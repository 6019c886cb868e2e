"""Where random bits come from, and what exact decisions on them share.

Imports the standard library and numpy; no mutable state in the module.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import numbers
import operator
import os
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import NoReturn, Protocol, SupportsIndex

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

KEY_BYTES = 32
_KEYED_BLOCK = 2**12  # words of one hash


class BitSource(Protocol):
    """Where random words come from: no bit of them may be used for two draws."""

    def words(self, n: int, /) -> Words:
        """Return `n` fresh words, uint64."""
        ...


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
        seed, call = checked_integer(seed, "seed", 0), checked_integer(call, "call", 0)
        entropy = [seed, call]
        if seed >= 2**32:
            # The words of both stand in a row there, and of a longer seed the last
            # would be those of another one's call.
            text = f"{seed},{call}".encode()
            entropy = [int.from_bytes(hashlib.sha256(text).digest(), "little")]
        self._generator = np.random.PCG64DXSM(np.random.SeedSequence(entropy))

    def words(self, n: int, /) -> Words:
        """Return the next `n` words of the stream."""
        drawn: Words = self._generator.random_raw(n)
        return drawn

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("SeededBits cannot be pickled: make one from seed and call.")


class KeyedBits:
    """Words that a secret key determines, for noise that is computed more than once.

    The words are SHAKE-256 of the key, the `stream` (integers from 0 to 2^64 - 1, at
    most 254 of them) and a block's number, so that no two streams share a block. They
    are as good as random to all who lack the key, if SHAKE-256 is a pseudorandom
    function of it; whoever holds the key, and knows the stream, can *subtract* the
    noise, as with a seed. So a key is 32 fresh bytes of `os.urandom`, is used for one
    release and stays with those who may see the values. One object serves one thread;
    it refuses to be pickled, and its repr does not show the key.

    >>> a, b, c = (KeyedBits(bytes(32), 7, column) for column in (0, 0, 1))
    >>> first = a.words(4)
    >>> bool((first == b.words(4)).all()), bool((first == c.words(4)).any())
    (True, False)
    """

    __slots__ = ("_block", "_prefix", "_spare")

    def __init__(self, key: bytes, *stream: int) -> None:
        checked = [checked_integer(i, "stream", 0, 2**64 - 1) for i in stream]
        checked_integer(len(checked), "the length of stream", 0, 254)
        # How many there are comes first: no stream is the beginning of another.
        self._prefix = b"".join(
            [
                _checked_key(key),
                len(checked).to_bytes(1, "little"),
                *(i.to_bytes(8, "little") for i in checked),
            ]
        )
        self._block = 0
        self._spare: Words = np.empty(0, dtype=np.uint64)

    def words(self, n: int, /) -> Words:
        """Return the next `n` words of the stream."""
        parts = [self._spare]
        missing = n - len(self._spare)
        while missing > 0:
            number = self._block.to_bytes(8, "little")
            block = hashlib.shake_256(self._prefix + number).digest(8 * _KEYED_BLOCK)
            self._block += 1
            parts.append(np.frombuffer(block, dtype="<u8").astype(np.uint64))
            missing -= _KEYED_BLOCK
        words: Words = np.concatenate(parts)
        self._spare = words[n:]
        return words[:n]

    def __repr__(self) -> str:
        return "KeyedBits(...)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("KeyedBits cannot be pickled: make one from key and stream.")


def bound_key(key: bytes, values: npt.NDArray[np.float64]) -> bytes:
    """Return a key for these values alone: HMAC-SHA-256 of the values under the key.

    Values that are computed again, and come out otherwise, get noise of their own: the
    difference of two results would show that of the values if they shared it.

    >>> one, other = (bound_key(bytes(32), np.array([x, 2.0])) for x in (1.0, 3.0))
    >>> len(one), one == other
    (32, False)
    """
    content = np.ascontiguousarray(values, dtype="<f8").data
    return hmac.digest(_checked_key(key), content, "sha256")


def _checked_key(key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        # The key itself is in no message.
        raise ValueError(f"key must be {KEY_BYTES} bytes.")
    return key


def checked_integer(value: int, name: str, least: int, most: float = math.inf) -> int:
    """Return `value` as an int, refusing bools, floats and numbers out of range."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        # What is no number may be data, and is not shown.
        shown = (
            repr(value) if isinstance(value, numbers.Number) else type(value).__name__
        )
        raise TypeError(f"{name} must be an integer, got {shown}.")
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
