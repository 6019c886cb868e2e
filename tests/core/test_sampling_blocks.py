"""The sampler by blocks, by other roads: exact masses, enumeration, forced tails.

Every statistical test has fixed seeds and a level of 1e-4 a case.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats
from test_sampling import LEVEL, Words, chi_square, near, split
from test_sampling_weights import KINDS, exact

from skpuffer.core import sampling, sampling_blocks
from skpuffer.core.grid import grid_step, round_to_grid
from skpuffer.core.sampling import SeededBits, SystemBits, release_on_grid
from skpuffer.core.sampling_blocks import FARTHEST, draw, exponential_power, staircase
from skpuffer.core.sampling_weights import (
    PowerWeights,
    RoundedLaplaceWeights,
)

POWERS = [0.2, 0.25, 0.5, 0.7, 1.0]
SCALES = [1, 2, 7, 1000, 2**20, 2**20 + 12345]


def beyond(weights, k):
    """Sum of w over what is larger than k, for a large k."""
    k = np.asarray(k, dtype=float)
    if isinstance(weights, RoundedLaplaceWeights):
        return np.exp(-(k + 1) / weights.t) / -np.expm1(-1 / weights.t)
    if isinstance(weights, PowerWeights):
        return tail(k, weights.t, weights.power)
    s = weights.s
    if s < 100:
        steps = k[..., np.newaxis] + np.arange(1, 400)
        return np.exp(-(steps**2) / (2 * s**2)).sum(axis=-1)
    return s * math.sqrt(2 * math.pi) * stats.norm.sf((k + 0.5) / s)


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

    def above(m):  # sum of w over k > m >= 0
        inside = total - below[np.minimum(m, last).astype(int)]
        return np.where(m < last, inside, tail(np.maximum(m, last), t, power))

    k = np.asarray(k)
    sides = np.where(
        k >= 0, 2 * total - 1 - above(np.maximum(k, 0)), above(np.maximum(-k - 1, 0))
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


def blocks_of(stairs):
    """(l, e, certain slots, heights of open ones) of each block, from zero upwards."""
    found = {}
    slots = itertools.chain(
        zip(
            stairs.first[stairs.n_open :].tolist(),
            (17 - stairs.shift[stairs.n_open :]).tolist(),
            itertools.repeat(None),
            strict=False,
        ),
        zip(
            stairs.low[1:].tolist(),
            (49 - stairs.width[1:]).tolist(),
            stairs.height[1:].tolist(),
            strict=True,
        ),
    )
    for low, e, height in slots:
        block = found.setdefault(low, [e, 0, []])
        assert block[0] == e
        if height is None:
            block[1] += 1
        else:
            block[2].append(height)
    return sorted((low, *block) for low, block in found.items())


@pytest.mark.parametrize("t", [1, 5, 1000, 2**20, 2**21 - 1, 2**22])
@pytest.mark.parametrize("kind", KINDS)
def test_the_staircase_is_above_the_law_and_gives_each_value_its_share(kind, t):
    weights = KINDS[kind](t)
    stairs = staircase(weights)
    assert stairs.n_open + np.count_nonzero(stairs.first) == 2**14
    edge, last = 2**stairs.tail, 0
    with mpmath.workdps(40):
        for low, e, certain, heights in blocks_of(stairs):
            assert low == last  # blocks stand side by side, up to the tail
            last = low + 2**e
            # Slots stand on each other: the certain ones, then those left open.
            size = 2**49 >> e
            ranks = range(certain, certain + len(heights))
            assert heights == [rank * size for rank in ranks]
            top = (certain + len(heights)) * size
            assert top >= stairs.unit * exact(weights, low)
            # All of a certain slot lies below the last value of its block.
            assert certain * size <= stairs.unit * exact(weights, last - 1)
            assert certain == 0 or (low > 0 and e <= 17 and last <= 2**31)
        assert last == edge
        # The tail: below its slot at every octave, falling from one to the next.
        shares = [
            stairs.unit * exact(weights, edge << i) * (edge << (2 * i + 1))
            for i in range(60)
        ]
        assert shares[0] <= 2**49 / 2**6
        assert all(a > b for a, b in itertools.pairwise(shares))
        nearest = stairs.unit * 2 * edge
        assert stairs.factor[0] == nearest
        assert (stairs.low[0], stairs.width[0], stairs.height[0]) == (edge, 49, 0)
        assert (stairs.factor[1:] == stairs.unit).all()
    # What the error bound of the filter supposes.
    assert weights.exponent(np.array([float(edge)]))[0] <= 100
    assert edge < 2**53
    # Few draws are in vain, or take more than half a word.
    if 2**20 <= t < 2**21:
        assert stairs.rate > 0.95
        assert stairs.n_open < 2**14 / 20 or kind.startswith("power")


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("t", [1, 5, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_the_staircase_leaves_room_for_what_floats_may_be_off_by(
    kind, t, side, monkeypatch
):
    # With a margin that is seen, and weights that are off by nearly as much.
    law = KINDS[kind](t)
    monkeypatch.setattr(sampling_blocks, "_MARGIN", 2.0**-6)

    class Wrong:
        power, total, bounds = law.power, law.total, law.bounds

        def exponent(self, k):
            return law.exponent(k) + side * 0.9 * 2.0**-6

    stairs = staircase(Wrong())
    with mpmath.workdps(30):
        for low, e, certain, heights in blocks_of(stairs):
            size = 2**49 >> e
            top = (certain + len(heights)) * size
            assert top >= stairs.unit * exact(law, low)
            assert certain * size <= stairs.unit * exact(law, low + 2**e - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_word_decides_in_certain_slots(kind):
    weights = KINDS[kind](2**20 + 12345)
    stairs = staircase(weights)
    rng = np.random.default_rng(43)
    slot = rng.integers(stairs.n_open, 2**14, 400)
    place = rng.integers(2**17, size=400)
    place[:3] = 0, 2**17 - 1, 2**16
    half = slot << 17 | place
    half = np.where(rng.random(400) < 0.5, half, ~half) & (2**32 - 1)
    words = half[::2] | half[1::2] << 32
    drawn, missing = sampling_blocks._attempt(400, weights, stairs, Words(words))
    sign = np.where(half >> 31, -1, 1)
    expected = stairs.first[slot] + (place >> stairs.shift[slot])
    assert drawn.tolist() == (sign * expected).tolist()
    assert missing.size == 0
    # As many words as are needed, and no more.
    sampling_blocks._attempt(399, weights, stairs, Words(words))


@pytest.mark.parametrize("t", [1, pytest.param(1000, marks=pytest.mark.slow), 2**20])
@pytest.mark.parametrize("kind", KINDS)
def test_the_tail_is_exact(kind, t):
    # Draws in the tail's slot with heights up to its highest share, but just.
    weights = KINDS[kind](t)
    stairs = staircase(weights)
    edge = 2**stairs.tail
    share = stairs.factor[0] * math.exp(-weights.exponent(np.array([float(edge)]))[0])
    rng = np.random.default_rng(44)
    n = 2500 if kind != "gaussian" or t == 1 else 25_000
    v = rng.integers(int(share * 1.001) + 1, size=n)
    assert v.max() < 2**49
    k, accept = sampling_blocks._compare(
        np.zeros(n, dtype=np.int32),
        (v >> 32).astype(np.int32),
        (v & (2**32 - 1)).astype(np.uint32),
        weights,
        stairs,
        SeededBits(45, 0),
    )
    k = k[accept]
    assert k.min() >= edge
    of_tail = beyond(weights, edge - 1)
    above, below = (beyond(weights, m) / of_tail for m in (k - 1, k))
    # Uniform, each atom spread over its own mass.
    u = below + (above - below) * rng.random(k.size)
    assert k.size > 30
    assert stats.kstest(u, "uniform").pvalue > LEVEL
    # And its probability is that of the law.
    expected = of_tail * stairs.unit / float(int(share * 1.001) + 1)
    assert stats.binomtest(k.size, n, min(expected, 1.0)).pvalue > LEVEL


@pytest.mark.parametrize("t", [1, 2**20 + 12345])
@pytest.mark.parametrize("kind", KINDS)
def test_acceptance_in_the_octaves_of_the_tail(kind, t):
    # k is accepted with a probability that makes up for that of its octave, exactly.
    weights = KINDS[kind](t)
    stairs = staircase(weights)
    rng, tried = np.random.default_rng(47), 0
    for octave in range(12):
        size = stairs.tail + octave
        place = int(rng.integers(2**40)) * 2**size // 2**42
        k = 2**size + place
        with mpmath.workdps(60):
            # The octave has 2^-(i+1) of the slot, and 2^(J+i) values.
            edge = stairs.unit * exact(weights, k) * 2 ** (size + octave + 1)
            height = int(edge)
        if height < 2:
            break
        tried += 1
        for v, accepted in ((height - 1, True), (height + 1, False)):
            found, accept = sampling_blocks._compare(
                np.zeros(1, dtype=np.int32),
                np.array([v >> 32], dtype=np.int32),
                np.array([v & (2**32 - 1)], dtype=np.uint32),
                weights,
                stairs,
                Words([2 ** (63 - octave), place << (64 - size)]),
            )
            assert accept.tolist() == [accepted]
            if accepted:
                assert found.tolist() == [k]
    assert tried >= (5 if kind == "power 0.2" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_acceptance_at_boundaries(kind):
    rng = np.random.default_rng(46)
    weights = KINDS[kind](2**20 + 12345)
    stairs = staircase(weights)
    tried = 0
    with mpmath.workprec(500):
        for slot in [1, *rng.integers(1, stairs.n_open, 500).tolist()]:
            width, low = int(stairs.width[slot]), int(stairs.low[slot])
            k = low + int(rng.integers(2 ** (49 - width)))
            edge = stairs.unit * exact(weights, k)
            base = int(stairs.height[slot])
            # Where the boundary cuts this slot: heights just beside it.
            place = (edge - base) / mpmath.mpf(2) ** width
            if not 0 < place < 1:
                continue
            tried += 1
            if tried > 25:
                break
            for value in near(place, width):
                v = base + (value + mpmath.mpf(0.5)) / mpmath.mpf(2) ** 192
                known, more = split(value, width)
                point = slot << 49 | (k - low) << width | known
                half, rest = point >> 32, point & (2**32 - 1)
                for signed, sign in ((half, 1), (~half & (2**32 - 1), -1)):
                    drawn, missing = sampling_blocks._attempt(
                        1, weights, stairs, Words([signed, rest, *more])
                    )
                    if v < edge and not (k == 0 and sign < 0):
                        assert (drawn.tolist(), missing.size) == ([sign * k], 0)
                    else:
                        assert missing.tolist() == [0]
    assert tried > 5


class Off:
    """Weights whose floats are off by half of what they may be."""

    def __init__(self, weights, side):
        self.power, self.total, self.bounds = (
            weights.power,
            weights.total,
            weights.bounds,
        )
        self.exponent = lambda k: weights.exponent(k) * (1 + side * 2.0**-49)


@pytest.mark.parametrize("side", [-1, 0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_floats_decide_nothing_that_is_in_doubt(kind, side):
    # At small scales heights are whole numbers that floats do not tell apart.
    law, rng, tried = KINDS[kind](7), np.random.default_rng(48), 0
    weights = Off(law, side)
    stairs = staircase(weights)
    for slot in rng.integers(1, stairs.n_open, 400).tolist():
        width, low = int(stairs.width[slot]), int(stairs.low[slot])
        k = low + int(rng.integers(2 ** (49 - width)))
        with mpmath.workdps(60):
            edge = int(stairs.unit * exact(law, k))
        place = edge - int(stairs.height[slot])
        if not 1000 < place < 2**width - 1000:
            continue
        tried += 1
        for beside in (-999, -100, -9, -1, 1, 9, 100, 999):
            point = (k - low) << width | (place + beside)
            found, accept = sampling_blocks._compare(
                np.array([slot], dtype=np.int32),
                np.array([point >> 32], dtype=np.int32),
                np.array([point & (2**32 - 1)], dtype=np.uint32),
                weights,
                stairs,
                Words([]),
            )
            assert (found.tolist(), accept.tolist()) == ([k], [beside < 0])
        if tried == 12:
            break
    assert tried > 3


@pytest.mark.parametrize("kind", KINDS)
def test_zero_has_one_sign(kind):
    weights = KINDS[kind](7)
    stairs = staircase(weights)
    zero = int(np.flatnonzero((stairs.low == 0) & (stairs.height == 0))[0])
    half = zero << 17
    for word, lost in ((half, []), (~half & (2**32 - 1), [0])):
        found = sampling_blocks._attempt(1, weights, stairs, Words([word, 0]))
        assert found[0].tolist() == [0]
        assert found[1].tolist() == lost


def test_lazy_decisions_ask_for_more():
    # A slot's heights that begin like the boundary: one word more decides.
    edge = mpmath.mpf(2) ** 49 * mpmath.exp(-1)
    whole = int(edge)
    with mpmath.workprec(300):
        rest = int((2**49 * mpmath.exp(-1) - whole) * 2**128)
    high, low = rest >> 64, rest & (2**64 - 1)
    one = PowerWeights(1000, 0.5)
    for last, expected in ((low - 1, True), (low + 1, False)):
        source = Words([high, last, 0])
        found = sampling_blocks._below(whole, 1000, 2**49, one, source)
        assert found == expected
        assert len(source.left) == 1
    seven = PowerWeights(7, 0.5)
    assert sampling_blocks._below(2**49 - 1, 0, 2**49, seven, Words([]))


def test_octaves_and_uniforms():
    top = 2**63
    assert sampling_blocks._octave(Words([top])) == 0
    assert sampling_blocks._octave(Words([top - 1])) == 1
    assert sampling_blocks._octave(Words([0, 0, 1])) == 2 * 64 + 63
    assert sampling_blocks._uniform(0, Words([])) == 0
    assert sampling_blocks._uniform(3, Words([5 << 61])) == 5
    assert sampling_blocks._uniform(66, Words([7, 3 << 62])) == 7 * 4 + 3
    # The first bits of as many words as they take, and no word more.
    words = np.random.default_rng(52).integers(2**64, size=4, dtype=np.uint64).tolist()
    digits = "".join(f"{word:064b}" for word in words)
    for n_bits in range(1, 257):
        source = Words(words)
        found = sampling_blocks._uniform(n_bits, source)
        assert found == int(digits[:n_bits], 2)
        assert len(source.left) == 4 - math.ceil(n_bits / 64)


def test_values_beyond_64_bits_are_cut_off_as_sums():
    # The octave from 2^63 on, and a height that is zero as far as one looks.
    weights = PowerWeights(2**20, 0.2)
    stairs = staircase(weights)
    octave = 63 - stairs.tail
    for word, expected in ((0, FARTHEST), (2**32 - 1, -FARTHEST)):
        source = Words([word, 0, 2 ** (63 - octave), *[0] * 20])
        drawn, missing = sampling_blocks._attempt(1, weights, stairs, source)
        assert (drawn.tolist(), missing.size) == ([expected], 0)
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
    # Either side alone: floats would add another number than the nearest to the sum.
    for sign, (noise, index) in itertools.product(
        (1, -1),
        (
            ([FARTHEST, 2**60 + 129, 5], [0, 2**52 - 1, 3]),
            # One value alone is far away, and just.
            ([2**53 + 1, 0, 0, 0, 0], [1, 2, 0, 0, 0]),
        ),
    ):
        values = sign * np.array(index, dtype=float) * grid_step(1.0)
        drawn = sign * np.array(noise)
        released = release_on_grid(
            values, 1.0, lambda size, t, bits, drawn=drawn: drawn.copy(), SystemBits()
        )
        found = released / grid_step(1.0) * sign
        sums = [min(k + i, 2**61) for k, i in zip(noise, index, strict=True)]
        assert found.tolist() == [float(k) for k in sums]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_accepted_is_drawn_again(kind, monkeypatch):
    # Draws are those of one long attempt, with the spare ones in place of the lost.
    weights = KINDS[kind](1000)
    stairs = staircase(weights)
    n = 5000
    found = sampling_blocks._draw_block(n, weights, stairs, SeededBits(50, 0))
    lost = 1 - stairs.rate
    spare = int(lost * n + 3 * math.sqrt(lost * n)) + 2
    whole, missing = sampling_blocks._attempt(
        n + spare, weights, stairs, SeededBits(50, 0)
    )
    accepted = np.delete(whole, missing)
    assert len(accepted) >= n
    kept = np.setdiff1d(np.arange(n), missing)
    np.testing.assert_array_equal(found[kept], whole[kept])
    gaps = np.setdiff1d(np.arange(n), kept)
    np.testing.assert_array_equal(found[gaps], accepted[len(kept) : n])
    # With nothing accepted at first, or too few, the rest comes from further words.
    attempt, calls = sampling_blocks._attempt, []

    def unlucky(size, *rest):
        drawn, missing = attempt(size, *rest)
        calls.append(size)
        return drawn, np.arange(size) if len(calls) <= 2 else missing

    monkeypatch.setattr(sampling_blocks, "_attempt", unlucky)
    found = draw(300, weights, SeededBits(51, 0))
    assert len(calls) >= 3
    assert found.shape == (300,)
    again = SeededBits(51, 0)
    for size in calls[:2]:
        attempt(size, weights, stairs, again)
    monkeypatch.setattr(sampling_blocks, "_attempt", attempt)
    np.testing.assert_array_equal(found, draw(300, weights, again))


@pytest.mark.parametrize("spare", [0, 2])
@pytest.mark.parametrize("accepted", [0, 1, 250, 299, 300])
def test_no_more_is_drawn_than_is_missing(accepted, spare, monkeypatch):
    weights, asked = KINDS["laplace"](1000), []
    stairs = staircase(weights)

    def attempt(size, *rest):
        # The first time so many are accepted, and the last few, then all.
        missing = np.arange(accepted if not asked else size, size - spare)
        asked.append(size)
        return np.full(size, len(asked), dtype=np.int64), missing

    monkeypatch.setattr(sampling_blocks, "_attempt", attempt)
    found = sampling_blocks._draw_block(300, weights, stairs, Words([]))
    left = max(0, 300 - accepted - spare)
    assert np.bincount(found, minlength=3).tolist() == [0, 300 - left, left]
    assert len(asked) == 1 + (left > 0)
    for size, n in zip(asked, (300, left), strict=False):
        lost = 1 - stairs.rate
        assert n + lost * n <= size <= n + lost * n + 3 * math.sqrt(lost * n) + 2


def test_blocks_and_arguments(monkeypatch):
    for size, t in ((-1, 1), (1, 0), (1, 2**22 + 1)):
        with pytest.raises(ValueError, match="must be from"):
            exponential_power(size, t, 0.5, SystemBits())
    for power in (0.0, 0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match=r"power must be from 0\.2 to 1"):
            exponential_power(1, 5, power, SystemBits())
    with np.errstate(all="raise"):
        exponential_power(1000, 2**20, 0.2, SystemBits())
    assert exponential_power(0, 5, 0.5, Words([])).shape == (0,)
    monkeypatch.setattr(sampling_blocks, "_BLOCK", 700)  # the last is not full
    draws = exponential_power(50_000, 1000, 0.5, SeededBits(47, 0))
    assert chi_square(draws, lambda k: cdf(k, 1000, 0.5)) > LEVEL


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


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_writes_to_the_tables_that_all_draws_share(kind):
    stairs = staircase(KINDS[kind](1000))
    for name in ("first", "shift", "low", "width", "height", "factor"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(stairs, name)[0] = 1
