"""Words of a key: a known answer, streams that share nothing, and no way to the key."""

import hashlib
import pickle
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from skpuffer.core.bits import KEY_BYTES, KeyedBits, bound_key
from skpuffer.core.sampling import discrete_gaussian, rounded_laplace

KEY = bytes(range(32))
STREAMS = [
    *((), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (256,), (1, 2, 3)),
    *((2**64 - 1,), (2**32, 0), (0, 2**32)),
]


def shake(key, stream, blocks, words=2**12):
    """The documented function, byte by byte."""
    found = b""
    for block in range(blocks):
        text = key + bytes([len(stream)])
        for number in (*stream, block):
            text += bytes((number >> shift) & 255 for shift in range(0, 64, 8))
        found += hashlib.shake_256(text).digest(8 * words)
    return [
        sum(byte << 8 * place for place, byte in enumerate(found[start : start + 8]))
        for start in range(0, len(found), 8)
    ]


@pytest.mark.parametrize("stream", [(), (5,), (3, 2**40, 0)])
def test_a_known_answer(stream):
    assert KeyedBits(KEY, *stream).words(9000).tolist() == shake(KEY, stream, 3)[:9000]


def test_the_words_do_not_depend_on_how_many_are_asked_for():
    whole = KeyedBits(KEY, 1).words(20_000)
    bits = KeyedBits(KEY, 1)
    pieces = [bits.words(n) for n in (0, 1, 4095, 1, 1, 10_000, 0, 5902)]
    assert [len(piece) for piece in pieces] == [0, 1, 4095, 1, 1, 10_000, 0, 5902]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert whole.dtype == np.uint64


def test_no_two_streams_or_keys_share_a_word():
    drawn = [KeyedBits(KEY, *stream).words(9000) for stream in STREAMS]
    drawn += [KeyedBits(KEY[::-1], *stream).words(9000) for stream in STREAMS]
    # 2^-64 * (2e5)^2: a word that repeats is a stream that does.
    counts = Counter(np.concatenate(drawn).tolist())
    assert max(counts.values()) == 1


def test_bits_are_fair_and_independent():
    words = KeyedBits(KEY, 9).words(2**16)
    ones = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0)
    # 64 tests at 1e-6 each.
    assert np.abs(ones.astype(int) - 2**15).max() < stats.norm.isf(1e-6 / 2) * 2**7
    counts = np.bincount((words >> np.uint64(56)).astype(int), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4
    other = KeyedBits(KEY, 10).words(2**16)
    agree = np.unpackbits((words ^ other).view(np.uint8)).sum()
    assert abs(int(agree) - 2**21) < 5 * 2**10


@pytest.mark.parametrize("sampler", [rounded_laplace, discrete_gaussian])
def test_samplers_draw_their_law_from_it(sampler):
    draws = sampler(50_000, 1000, KeyedBits(KEY, 1, 2)) / 1000
    law = stats.laplace if sampler is rounded_laplace else stats.norm
    assert stats.kstest(draws, law.cdf).pvalue > 1e-3
    same = sampler(50_000, 1000, KeyedBits(KEY, 1, 2)) / 1000
    assert np.array_equal(draws, same)


def test_a_bound_key_is_of_the_key_and_every_value():
    values = np.arange(1000.0)
    keys = {bound_key(KEY, values), bound_key(KEY[::-1], values)}
    for place in (0, 500, 999):
        changed = values.copy()
        changed[place] = np.nextafter(changed[place], np.inf)
        keys.add(bound_key(KEY, changed))
    keys |= {bound_key(KEY, values[:0]), bound_key(KEY, values[::-1])}
    assert len(keys) == 7
    assert all(len(key) == KEY_BYTES for key in keys)
    assert bound_key(KEY, values) == bound_key(KEY, np.arange(2000.0)[::2] / 2)
    # RFC 2104, spelt out.
    inner, outer = (bytes(b ^ pad for b in KEY + bytes(32)) for pad in (0x36, 0x5C))
    found = hashlib.sha256(inner + values.astype("<f8").tobytes()).digest()
    assert bound_key(KEY, values) == hashlib.sha256(outer + found).digest()


def test_the_key_is_shown_and_pickled_nowhere():
    bits = KeyedBits(b"secret" + bytes(26), 1)
    assert "secret" not in repr(bits) + str(bits)
    assert not hasattr(bits, "__dict__")
    with pytest.raises(TypeError, match="make one from key and stream"):
        pickle.dumps(bits)


def test_keys_and_streams_are_checked_before_use():
    for key in (b"short secret", bytes(33), bytearray(32), "x" * 32, None):
        for use in (KeyedBits, lambda key: bound_key(key, np.zeros(1))):
            with pytest.raises(ValueError, match=r"key must be 32 bytes\.$"):
                use(key)
    for stream in (-1, 2**64):
        with pytest.raises(ValueError, match="stream must be from 0 to"):
            KeyedBits(KEY, 0, stream)
    for stream in (1.0, True, "1"):
        with pytest.raises(TypeError, match="stream must be an integer"):
            KeyedBits(KEY, stream)
    KeyedBits(KEY, *range(254))
    with pytest.raises(ValueError, match="length of stream"):
        KeyedBits(KEY, *range(255))
