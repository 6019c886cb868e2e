"""The sampler, by other roads: exact laws, exact rounding, an attack.

Every statistical test has fixed seeds and a level of 1e-4 a case.
"""

import copy
import hashlib
import math
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from skpuffer.core import sampling
from skpuffer.core.grid import grid_step, grid_steps, round_to_grid, scale_to_grid
from skpuffer.core.sampling import (
    SeededBits,
    SystemBits,
    discrete_gaussian,
    release_on_grid,
    rounded_laplace,
)

LEVEL = 1e-4
SCALES = [1, 2, 7, 1000, 2**20, 2**20 + 12345]
SAMPLERS = [rounded_laplace, discrete_gaussian]
MASK = 2**64 - 1


class Words:
    """A source that gives these words and no more."""

    def __init__(self, words):
        self.left = [int(word) & MASK for word in words]

    def words(self, n):
        taken, self.left = self.left[:n], self.left[n:]
        assert len(taken) == n, "more bits asked for than the decision needs"
        return np.array(taken, dtype=np.uint64)


def laplace_cdf(k, t):
    return stats.laplace.cdf((k + 0.5) / t)


def gaussian_cdf(k, t):
    s = t
    if s > 5000:  # Poisson summation: the difference is below 1e-12
        return stats.norm.cdf((k + 0.5) / s)
    support = np.arange(-40 * s, 40 * s + 1)
    weights = np.exp(-(support**2) / (2 * s**2))
    return (np.cumsum(weights) / weights.sum())[np.asarray(k) + 40 * s]


CDFS = {rounded_laplace: laplace_cdf, discrete_gaussian: gaussian_cdf}


def chi_square(draws, cdf):
    """P-value against a law on integers, in some 60 cells (fewer of few draws)."""
    edges = np.unique(
        np.quantile(draws, np.linspace(0, 1, min(62, draws.size // 150))[1:-1]).astype(
            int
        )
    )
    far = max(abs(draws)) + 1
    cells = np.concatenate([[-far], edges, [far]])
    probability = np.diff(np.concatenate([[0.0], cdf(edges), [1.0]]))
    observed = np.bincount(np.searchsorted(cells, draws) - 1, minlength=edges.size + 1)
    good = probability * draws.size >= 100
    assert good.sum() >= 3
    observed = np.append(observed[good], observed[~good].sum() + 1e-9)
    expected = np.append(probability[good], probability[~good].sum()) * draws.size
    expected[-1] += 1e-9
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("t", SCALES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_law(sampler, t):
    draws = sampler(500_000, t, SeededBits(11, t))
    assert draws.dtype == np.int64
    assert chi_square(draws, partial(CDFS[sampler], t=t)) > LEVEL
    assert stats.binomtest(int((draws < 0).sum()), int((draws != 0).sum())).pvalue > (
        LEVEL
    )


@pytest.mark.parametrize("t", [1, 2, 7])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_atom_of_a_small_scale(sampler, t):
    draws = sampler(500_000, t, SeededBits(12, t))
    atoms = np.arange(-12 * t, 12 * t + 1)
    mass = CDFS[sampler](atoms, t) - CDFS[sampler](atoms - 1, t)
    if sampler is rounded_laplace:  # the closed form agrees with the rounding
        closed = np.exp(-abs(atoms) / t) * math.sinh(1 / (2 * t))
        closed[atoms == 0] = 1 - math.exp(-1 / (2 * t))
        np.testing.assert_allclose(mass, closed, atol=1e-15)
    often = mass * draws.size >= 20
    observed = np.array([(draws == k).sum() for k in atoms[often]])
    rest = draws.size - observed.sum()
    expected = np.append(mass[often], 1 - mass[often].sum()) * draws.size
    assert stats.chisquare(np.append(observed, rest), expected).pvalue > LEVEL


@pytest.mark.parametrize("t", [2**20, 2**21 - 1, 2**22])
def test_large_scales_against_the_continuous_laws(t):
    n = 200_000
    laplace = rounded_laplace(n, t, SeededBits(13, t)) / t
    gaussian = discrete_gaussian(n, t, SeededBits(14, t)) / t
    assert stats.kstest(laplace, stats.laplace.cdf).pvalue > LEVEL
    assert stats.kstest(gaussian, stats.norm.cdf).pvalue > LEVEL


def test_variance_of_a_million_draws():
    n, t = 1_000_000, 2**20
    laplace = rounded_laplace(n, t, SeededBits(15, 0)).astype(float) / t
    gaussian = discrete_gaussian(n, t, SeededBits(16, 0)).astype(float) / t
    # A sample variance varies by (kurtosis - 1) / n, relatively; 3.9 deviations.
    assert abs(laplace.var() / 2 - 1) < 3.9 * math.sqrt(5 / n)
    assert abs(gaussian.var() - 1) < 3.9 * math.sqrt(2 / n)


def split(value, first, n_words=3):
    """Cut an integer of first + 64 n bits into its first bits and n words."""
    words = [(value >> (64 * i)) & MASK for i in reversed(range(n_words))]
    return value >> (64 * n_words), words


def near(boundary, n_bits):
    """Integers of n_bits + 192 bits just beside a real number in (0, 1)."""
    centre = int(mpmath.floor(boundary * mpmath.mpf(2) ** (n_bits + 192)))
    steps = [-1, 1] + [i << 192 for i in (-300, -37, -2, -1, 1, 2, 37, 300)]
    inside = (centre + step for step in steps)
    return [value for value in inside if 0 <= value < 1 << (n_bits + 192)]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_blocks_and_reproducibility(sampler):
    def draw(call):
        return sampler(70_001, 2**20, SeededBits(24, call))

    alone = [draw(call) for call in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(draw, range(4)))
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(alone[0], alone[1])
    assert np.unique(alone[0]).size > 60_000
    other = sampler(70_001, 2**20, SeededBits(25, 0))
    assert abs(np.corrcoef(alone[0], other)[0, 1]) < 4 / math.sqrt(70_001)
    assert sampler(0, 5, Words([])).shape == (0,)


def test_arguments_must_be_integers_in_range():
    bits = SystemBits()
    for sampler in SAMPLERS:
        for wrong in (1.0, True, "1", None):
            with pytest.raises(TypeError, match="must be an integer"):
                sampler(1, wrong, bits)
            with pytest.raises(TypeError, match="size must be an integer"):
                sampler(wrong, 1, bits)
        for size, t in ((-1, 1), (1, 0), (1, -3), (1, 2**22 + 1)):
            with pytest.raises(ValueError, match="must be from"):
                sampler(size, t, bits)
        assert sampler(np.int64(3), np.int32(5), bits).shape == (3,)
    for seed, call in ((-1, 0), (0, -1)):
        with pytest.raises(ValueError, match="must be from"):
            SeededBits(seed, call)


def test_no_long_seed_has_the_stream_of_another_seed_and_call():
    seen = set()
    for seed in (5, 5 + 2**32, 5 + 2**64, 5 + 2**33 + 2**64):
        for call in (0, 1, 2, 2**32, 1 + 2**32, 2 + 2**32, 2**64):
            seen.add(tuple(SeededBits(seed, call).words(2).tolist()))
            again = SeededBits(seed, call).words(2).tolist()
            assert tuple(again) in seen
    assert len(seen) == 4 * 7


def test_the_stream_of_a_seed_and_a_call_is_always_the_same():
    # A release that a seed repeats is repeated by later versions too.
    for seed, call in ((0, 0), (7, 3), (2**32 - 1, 2**40), (2**32, 0), (2**70, 5)):
        entropy = [seed, call]
        if seed >= 2**32:
            digest = hashlib.sha256(b"%d,%d" % (seed, call)).digest()
            entropy = sum(byte << 8 * place for place, byte in enumerate(digest))
        generator = np.random.PCG64DXSM(np.random.SeedSequence(entropy))
        expected = generator.random_raw(5).tolist()
        assert SeededBits(seed, call).words(5).tolist() == expected
    found = SeededBits(7, 3).words(1).tolist() + SeededBits(2**32, 0).words(1).tolist()
    assert found == [5757029706844383020, 6484661957484524079]


def test_sources_hold_nothing_that_can_be_stored():
    seeded = SeededBits(1, 2)
    for store in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            store(seeded)
    system = pickle.loads(pickle.dumps(SystemBits()))
    assert not hasattr(system, "__dict__")
    assert not np.array_equal(system.words(4), system.words(4))
    assert system.words(0).shape == (0,)
    assert system.words(2).dtype == seeded.words(2).dtype == np.uint64


def test_grid_step_at_powers_of_two():
    for exponent in (-1000, -30, -1, 0, 1, 20, 899):
        power = 2.0**exponent
        below = np.nextafter(power, 0.0)
        assert grid_step(power) == grid_step(np.nextafter(power, np.inf))
        assert grid_step(power) == 2.0 ** (exponent - 20)
        if exponent > -1000:
            assert grid_step(below) == grid_step(power) / 2
            assert scale_to_grid(below) == power  # changes grid, and is on the new one
    # Without noise there is no grid.
    assert grid_steps(np.array([0.0, 1.5])).tolist() == [0.0, 2.0**-20]
    assert grid_step(2.0**900) == 2.0**880
    beyond = np.nextafter([2.0**-1000, 2.0**900], [0.0, math.inf]).tolist()
    for wrong in (0.0, -1.0, math.nan, math.inf, 1e-320, 1e300, *beyond):
        with pytest.raises(ValueError, match="noise scale"):
            grid_step(wrong)


@given(st.floats(2.0**-1000, 2.0**899))
def test_scale_to_grid(scale):
    rounded = scale_to_grid(scale)
    assert scale <= rounded <= scale * (1 + 2.0**-20)
    steps = Fraction(rounded) / Fraction(grid_step(rounded))
    assert steps.denominator == 1
    assert 2**20 <= steps < 2**21
    assert scale_to_grid(rounded) == rounded
    # The smallest such multiple.
    assert Fraction(rounded) - Fraction(grid_step(scale)) < Fraction(scale)


@given(st.floats(-(2.0**53), 2.0**53), st.integers(-60, 60))
@example(0.49999999999999994, 0)
@example(-0.49999999999999994, 0)
@example(-0.5, 0)
@example(-0.5000000000000001, 0)
@example(-1.5, 0)
@example(2.5, 0)
@example(4503599627370495.5, 0)
@example(-4503599627370495.5, 0)
@example(2.0**52, 0)
@example(5e-324, 60)
@example(-5e-324, 60)
@example(-5e-324, -60)
@example(-1e-20, 0)
def test_round_to_grid_is_half_up(value, exponent):
    step = 2.0**exponent
    exact = Fraction(value) / Fraction(step)
    values = np.array([value])
    if abs(exact) > 2**52:
        with pytest.raises(ValueError, match="centre or rescale"):
            round_to_grid(values, step)
    else:
        assert round_to_grid(values, step)[0] == math.floor(exact + Fraction(1, 2))
        assert values[0] == value


def test_values_off_the_grid_are_counted():
    values = np.array([[0.0, np.nan], [np.inf, -1e300], [2.0**52, 2.0**52 + 1]])
    with pytest.raises(ValueError, match=r"2 of 6 values are not finite"):
        round_to_grid(values, 1.0)
    with pytest.raises(ValueError, match=r"2 of 4 values are beyond 4\.5e\+15"):
        round_to_grid(np.array([1, -1e300, 2.0**52, 1e16]), 1.0)
    for bad in (np.nan, np.inf, -np.inf, np.nextafter(2.0**32, np.inf), -1e12):
        values, used = np.array([1.0, bad]), Words([])
        before = values.copy()
        with pytest.raises(ValueError, match=r"1 of 2 .*(centre or|drop or)"):
            release_on_grid(values, 1.0, rounded_laplace, used, out=values)
        np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_release(sampler, monkeypatch):
    scale, rng = scale_to_grid(3.3), np.random.default_rng(27)
    step, t = grid_step(scale), round(scale / grid_step(scale))
    values = rng.normal(0, 1e4, size=(3000, 2))[:, 1]
    y = release_on_grid(values, scale, sampler, SeededBits(28, 0))
    index = round_to_grid(values, step) + sampler(3000, t, SeededBits(28, 0))
    np.testing.assert_array_equal(y, index * step)
    place = values.copy()
    assert release_on_grid(place, scale, sampler, SeededBits(28, 0), out=place) is place
    np.testing.assert_array_equal(place, y)
    monkeypatch.setattr(sampling, "_BLOCK", 700)  # the last block is not full
    pieces = release_on_grid(values, scale, sampler, SeededBits(28, 1))
    noise = (pieces - values) / scale
    assert (
        stats.kstest(
            noise, {rounded_laplace: stats.laplace.cdf}.get(sampler, stats.norm.cdf)
        ).pvalue
        > LEVEL
    )
    # The ends of the range, where index and noise must still add exactly.
    ends = np.array([2.0**52, -(2.0**52)]) * step
    y = release_on_grid(ends, scale, sampler, SeededBits(28, 2))
    k = sampler(2, t, SeededBits(28, 2))
    assert [int(v) for v in y / step] == [2**52 + int(k[0]), -(2**52) + int(k[1])]
    assert release_on_grid(values[:0], scale, sampler, Words([])).shape == (0,)


def test_underflow_is_no_error():
    tiny = np.array([5e-324, -5e-324, 0.0])
    with np.errstate(all="raise"):
        assert round_to_grid(tiny, 2.0**30).tolist() == [0, 0, 0]
        release_on_grid(tiny, 2.0**50, discrete_gaussian, SystemBits())
        release_on_grid(tiny, 2.0**-1000, rounded_laplace, SystemBits())


def test_release_arguments():
    x, bits = np.zeros(3), SystemBits()
    with pytest.raises(ValueError, match="scale_to_grid"):
        release_on_grid(x, 3.3, rounded_laplace, bits)
    for values, out in (
        (x.astype(np.float32), None),
        (np.zeros((3, 1)), None),
        (x, np.zeros(2)),
        (x, np.zeros(3, dtype=int)),
    ):
        with pytest.raises(ValueError, match="Expected float64 arrays"):
            release_on_grid(values, 1.0, rounded_laplace, bits, out=out)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_memory_of_a_release(sampler):
    values = np.zeros(1_000_000)
    tracemalloc.start()
    release_on_grid(values, 1.0, sampler, SeededBits(29, 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert values.nbytes + peak <= 3 * values.nbytes


def impossible(y, x):
    """Which outputs y of `x + rng.laplace()` no uniform of numpy's can produce.

    numpy maps U, a multiple of 2^-53, to log(U + U) below 1/2 and to -log(2 - U - U)
    above: try the neighbours of the U that y asks for.
    """
    noise = y - x
    half = np.exp(-abs(noise)) / 2
    centre = np.rint(np.where(noise > 0, 1 - half, half) * 2.0**53)
    possible = np.zeros(y.shape, dtype=bool)
    for offset in range(-4, 5):
        u = np.clip(centre + offset, 1.0, 2.0**53 - 1) / 2.0**53
        folded = np.where(u >= 0.5, 2.0 - u - u, u + u)
        # The C library's log, as numpy's generator: np.log may differ by an ulp.
        size = np.array([-math.log(v) for v in folded.tolist()])
        possible |= x + np.where(u >= 0.5, size, -size) == y
    return ~possible


def test_the_low_bits_do_not_tell_the_input():
    n, rng = 200_000, np.random.default_rng(30)
    for x, other in ((0.0, 1.0), (1.0, 0.0)):
        floats = x + rng.laplace(size=20_000)
        assert impossible(floats, x).mean() < 1e-3  # the attack knows the sampler
        assert impossible(floats, other).mean() > 0.5  # and it works
    step = grid_step(1.0)
    for sampler in SAMPLERS:
        y0 = release_on_grid(np.zeros(n), 1.0, sampler, SeededBits(31, 0)) / step
        y1 = release_on_grid(np.ones(n), 1.0, sampler, SeededBits(31, 1)) / step
        # Both live on the same lattice, and every point of it has positive mass.
        assert (y0 == np.rint(y0)).all()
        assert (y1 == np.rint(y1)).all()
        for modulus in (2, 3, 16):  # no residue tells them apart either
            table = [np.bincount((y % modulus).astype(int)) for y in (y0, y1)]
            assert stats.chi2_contingency(table).pvalue > LEVEL
        both = np.concatenate([y0, y1 - 2**20]).astype(int)
        assert chi_square(both, partial(CDFS[sampler], t=2**20)) > LEVEL
