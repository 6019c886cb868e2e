"""The sampler by blocks, by other roads: exact masses, enumeration, forced tails.

Every statistical test has fixed seeds and a level of 1e-4 a case.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats
from test_sampling import LEVEL, SmallUniforms, Words, chi_square, near, split

from skpuffer.core import sampling, sampling_blocks
from skpuffer.core.grid import grid_step, round_to_grid
from skpuffer.core.sampling import SeededBits, SystemBits, release_on_grid
from skpuffer.core.sampling_blocks import FARTHEST, exponential_power

POWERS = [0.2, 0.25, 0.5, 0.7, 1.0]
SCALES = [1, 2, 7, 1000, 2**20, 2**20 + 12345]


def tail(k, t, power):
    """Sum of w beyond k, from the sums themselves or Euler and Maclaurin's formula."""
    k = np.asarray(k, dtype=float)
    x = (k / t) ** power
    whole = special.gammaincc(1 / power, x) * special.gamma(1 / power) * t / power
    slope = -power * x / np.maximum(k, 1) * np.exp(-x)
    return whole - np.exp(-x) / 2 - slope / 12


def cdf(k, t, power):
    """P(K <= k), exact up to 1e-9."""
    near = np.exp(-((np.arange(200_000) / t) ** power))
    below = np.cumsum(near)
    last = len(near) - 1
    total = below[-1] + tail(last, t, power)

    def beyond(m):  # sum of w over k > m >= 0
        inside = total - below[np.minimum(m, last).astype(int)]
        return np.where(m < last, inside, tail(np.maximum(m, last), t, power))

    k = np.asarray(k)
    sides = np.where(
        k >= 0, 2 * total - 1 - beyond(np.maximum(k, 0)), beyond(np.maximum(-k - 1, 0))
    )
    return sides / (2 * total - 1)


@pytest.mark.parametrize("t", SCALES)
@pytest.mark.parametrize("power", POWERS)
def test_law(power, t):
    draws = exponential_power(200_000, t, power, SeededBits(41, t))
    assert draws.dtype == np.int64
    assert chi_square(draws, lambda k: cdf(k, t, power)) > LEVEL
    signs = int((draws < 0).sum()), int((draws != 0).sum())
    assert stats.binomtest(*signs).pvalue > LEVEL


@pytest.mark.parametrize("t", [1, 3])
@pytest.mark.parametrize("power", POWERS)
def test_every_atom_of_a_small_scale(power, t):
    # Near zero each atom has its mass; zero is not counted twice.
    draws = exponential_power(300_000, t, power, SeededBits(42, t))
    atoms = np.arange(-12, 13)
    mass = cdf(atoms, t, power) - cdf(atoms - 1, t, power)
    weights = np.exp(-((abs(atoms) / t) ** power))
    np.testing.assert_allclose(mass / mass[12], weights, rtol=1e-6)
    often = mass * draws.size >= 20
    observed = np.array([(draws == k).sum() for k in atoms[often]])
    observed = np.append(observed, draws.size - observed.sum())
    expected = np.append(mass[often], 1 - mass[often].sum()) * draws.size
    assert stats.chisquare(observed, expected).pvalue > LEVEL


@pytest.mark.parametrize("t", [1, 5, 1000, 2**20, 2**21 - 1])
@pytest.mark.parametrize("power", POWERS)
def test_the_staircase_is_above_the_law_and_gives_each_value_its_share(power, t):
    stairs = sampling_blocks._staircase(power, t)
    first, shift, height = stairs.first[1:], stairs.shift[1:], stairs.height[1:]
    slots = 2**49 >> shift  # points of one slot for each k
    # The slots of a block lie on each other, and blocks side by side, down to zero.
    starts = np.flatnonzero(height == 0)
    assert (height[1:] == np.where(height[1:], height[:-1] + slots[:-1], 0)).all()
    low, e = first[starts], shift[starts]
    assert low[-1] == 0
    assert (low[:-1] == low[1:] + (1 << e[1:])).all()
    assert low[0] + (1 << int(e[0])) == 2**stairs.tail
    assert (stairs.mask[1:] == (1 << shift) - 1).all()
    ends = np.append(starts[1:], len(first)) - 1
    with mpmath.workdps(40):

        def points(k):
            return stairs.unit * mpmath.exp(-((mpmath.mpf(k) / t) ** power))

        for place, end in zip(low.tolist(), ends.tolist(), strict=True):
            size = 1 << int(shift[end])
            top = int(height[end]) + int(slots[end])
            assert top >= points(place)
            # All of a certain slot lies below the last value of its block.
            sure = stairs.certain[1:] & (first == place)
            if sure.any():
                highest = int(height[sure].max()) + int(slots[end])
                assert highest <= points(place + size - 1)
        # The tail: below its slot at every octave, falling from one to the next.
        edge = 2**stairs.tail
        first_share = points(edge) * 2 * edge
        assert first_share <= 2**49 / 2**6
        shares = [points(edge << i) * (edge << (2 * i + 1)) for i in range(60)]
        assert all(a > b for a, b in itertools.pairwise(shares))
    # What the error bound of the filter supposes.
    assert (edge / t) ** power <= 64
    assert edge < 2**53
    assert not stairs.certain[0]
    with pytest.raises(ValueError, match=r"0\.2 to 1"):
        sampling_blocks._staircase(0.1, t)


@pytest.mark.parametrize("power", [0.2, 0.5, 1.0])
def test_every_word_of_few_bits(power):
    # Each k has the same share of points, counted: the words of 17 leading bits.
    t = 3
    words = (np.arange(2**17, dtype=np.uint64) << np.uint64(47)).view(np.int64)
    more = SeededBits(43, 0)
    drawn = sampling_blocks._accepted(
        words, sampling_blocks._staircase(power, t), t, power, more
    )
    stairs = sampling_blocks._staircase(power, t)
    alone = np.unique(
        stairs.first[(stairs.shift == 0) & (stairs.first < 2**stairs.tail)]
    )
    counts = np.array([(drawn == k).sum() for k in alone])
    shares = np.exp(-((alone / t) ** power))
    assert len(alone) >= 3
    # A height is known to one of these words.
    np.testing.assert_allclose(counts / counts[0], shares, atol=2 / counts[0])


@pytest.mark.parametrize("t", [1, 1000, 2**20])
@pytest.mark.parametrize("power", [0.2, 0.5, 0.7])
def test_the_tail_is_exact(power, t):
    # Words in the tail's slot with heights up to its highest share, but just.
    stairs = sampling_blocks._staircase(power, t)
    edge = 2**stairs.tail
    share = stairs.factor[0] * math.exp(-((edge / t) ** power)) / 2**49
    zeros = 14 + int(-math.log2(share))
    words = SmallUniforms(44, zeros).words(2500).view(np.int64)
    drawn = sampling_blocks._accepted(words, stairs, t, power, SeededBits(45, 0))
    k = abs(drawn)
    assert k.min() >= edge
    assert stats.binomtest(int((drawn < 0).sum()), drawn.size).pvalue > LEVEL
    beyond = tail(edge - 1, t, power)
    above, below = (tail(m, t, power) / beyond for m in (k - 1, k))
    # Uniform, each atom spread over its own mass.
    u = below + (above - below) * np.random.default_rng(45).random(k.size)
    assert k.size > 30
    assert stats.kstest(u, "uniform").pvalue > LEVEL


@pytest.mark.parametrize("power", [0.2, 0.37, 0.5, 1.0])
def test_acceptance_at_boundaries(power):
    t, rng = 2**20 + 12345, np.random.default_rng(46)
    stairs = sampling_blocks._staircase(power, t)
    open_ = np.flatnonzero(~stairs.certain[1:]) + 1
    tried = 0
    with mpmath.workprec(500):
        for slot in rng.choice(open_, 60).tolist():
            e, low = int(stairs.shift[slot]), int(stairs.first[slot])
            k = low + int(rng.integers(1 << e))
            edge = stairs.unit * mpmath.exp(-((mpmath.mpf(k) / t) ** mpmath.mpf(power)))
            base = int(stairs.height[slot])
            width = 49 - e
            # Where the boundary cuts this slot: heights just beside it.
            place = (edge - base) / mpmath.mpf(2) ** width
            if not 0 < place < 1:
                continue
            tried += 1
            for value in near(place, width):
                v = base + (value + mpmath.mpf(0.5)) / mpmath.mpf(2) ** 192
                known, more = split(value, width)
                word = slot << 49 | known << e | (k - low)
                for signed, sign in ((word, 1), (~word, -1)):
                    drawn = sampling_blocks._accepted(
                        np.array([signed]), stairs, t, power, Words(more)
                    )
                    zero = k == 0 and sign < 0
                    assert drawn.tolist() == (
                        [sign * k] if v < edge and not zero else []
                    )
    assert tried > 5


def test_lazy_decisions_ask_for_more():
    # A slot's heights that begin like the boundary: one word more decides.
    edge = mpmath.mpf(2) ** 49 * mpmath.exp(-1)
    whole = int(edge)
    with mpmath.workprec(300):
        rest = int((2**49 * mpmath.exp(-1) - whole) * 2**128)
    high, low = rest >> 64, rest & (2**64 - 1)
    for last, expected in ((low - 1, True), (low + 1, False)):
        source = Words([high, last, 0])
        found = sampling_blocks._below(whole, 1000, 2**49, 1000, 0.5, source)
        assert found == expected
        assert len(source.left) == 1
    assert sampling_blocks._below(2**49 - 1, 0, 2**49, 7, 0.5, Words([]))


def test_octaves_and_uniforms():
    top = 2**63
    assert sampling_blocks._octave(Words([top])) == 0
    assert sampling_blocks._octave(Words([top - 1])) == 1
    assert sampling_blocks._octave(Words([0, 0, 1])) == 2 * 64 + 63
    assert sampling_blocks._uniform(0, Words([])) == 0
    assert sampling_blocks._uniform(3, Words([5 << 61])) == 5
    assert sampling_blocks._uniform(66, Words([7, 3 << 62])) == 7 * 4 + 3


def test_values_beyond_64_bits_are_cut_off_as_sums():
    # The octave from 2^63 on, and a height that is zero as far as one looks.
    stairs = sampling_blocks._staircase(0.2, 2**20)
    octave = 63 - stairs.tail
    for word, expected in ((0, FARTHEST), (-1, -FARTHEST)):
        source = Words([2 ** (63 - octave), *[0] * 20])
        drawn = sampling_blocks._accepted(np.array([word]), stairs, 2**20, 0.2, source)
        assert drawn.tolist() == [expected]
        assert 5 < len(source.left) < 15

    def sampler(size, t, bits):
        return np.array([FARTHEST, -FARTHEST, 2**60 + 3, 2**53 + 1])

    values = np.array([2.0**52, 2.0**52, -5.0, 2.0]) * grid_step(1.0)
    released = release_on_grid(values, 1.0, sampler, SystemBits()) / grid_step(1.0)
    assert released.tolist() == [
        2.0**61,
        -(2.0**61),
        float(2**60 - 2),
        float(2**53 + 3),
    ]


def test_blocks_reproducibility_and_arguments(monkeypatch):
    whole = exponential_power(600, 1000, 0.5, SeededBits(47, 0))
    monkeypatch.setattr(sampling_blocks, "_BLOCK", 7)
    few = exponential_power(500, 1000, 0.5, SeededBits(47, 0))
    np.testing.assert_array_equal(whole[:400], few[:400])
    assert exponential_power(0, 5, 0.5, Words([])).shape == (0,)
    for size, t in ((-1, 1), (1, 0), (1, 2**22 + 1)):
        with pytest.raises(ValueError, match="must be from"):
            exponential_power(size, t, 0.5, SystemBits())
    for power in (0.0, 0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match=r"power must be from 0\.2 to 1"):
            exponential_power(1, 5, power, SystemBits())
    with np.errstate(all="raise"):
        exponential_power(1000, 2**20, 0.2, SystemBits())


def test_the_low_bits_do_not_tell_the_input():
    n, step, law = (
        100_000,
        grid_step(1.0),
        lambda size, t, bits: exponential_power(size, t, 0.5, bits),
    )
    y0 = release_on_grid(np.zeros(n), 1.0, law, SeededBits(48, 0)) / step
    y1 = release_on_grid(np.ones(n), 1.0, law, SeededBits(48, 1)) / step
    index = round_to_grid(np.ones(1), step)[0]
    assert (y0 == np.rint(y0)).all()
    for modulus in (2, 3, 16):
        table = [np.bincount((y % modulus).astype(int)) for y in (y0, y1)]
        assert stats.chi2_contingency(table).pvalue > LEVEL
    both = np.concatenate([y0, y1 - index]).astype(int)
    assert chi_square(both, lambda k: cdf(k, 2**20, 0.5)) > LEVEL
    assert sampling._FARTHEST * 2 == FARTHEST
