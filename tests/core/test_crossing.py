"""Uniform order statistics: the exact failure probability by two other roads."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from skpuffer.core import crossing
from skpuffer.core.crossing import RankBounds, failure, rank_bounds


def steck(n, bounds):
    """1 − n! det[(H_i − L_j)^(j−i+1) / (j−i+1)!], Steck 1971, in fractions."""
    lower, upper = [], []
    for rank in range(1, n + 1):
        below = bounds.lower[bounds.ranks <= rank]
        above = bounds.upper[bounds.ranks >= rank]
        lower.append(Fraction(float(below[-1])) if len(below) else Fraction(0))
        upper.append(Fraction(float(above[0])) if len(above) else Fraction(1))
    matrix = [[Fraction(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(max(i - 1, 0), n):
            power = j - i + 1
            width = max(upper[i] - lower[j], Fraction(0))
            matrix[i][j] = width**power / math.factorial(power)
    return float(1 - math.factorial(n) * determinant(matrix))


def determinant(matrix):
    size, value = len(matrix), Fraction(1)
    for k in range(size):
        pivot = next((i for i in range(k, size) if matrix[i][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            matrix[k], matrix[pivot] = matrix[pivot], matrix[k]
            value = -value
        value *= matrix[k][k]
        for i in range(k + 1, size):
            factor = matrix[i][k] / matrix[k][k]
            for j in range(k, size):
                matrix[i][j] -= factor * matrix[k][j]
    return value


def random_bounds(n, rng):
    ranks = np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False)) + 1
    centre = ranks / (n + 1)
    lower = np.maximum.accumulate(np.clip(centre - rng.random(len(ranks)) / 2, 0, 1))
    upper = np.minimum.accumulate((centre + rng.random(len(ranks)) / 2)[::-1])[::-1]
    return RankBounds(ranks, lower, np.clip(upper, 0, 1))


@pytest.mark.parametrize("seed", range(60))
def test_failure_is_that_of_steck_s_determinant(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    bounds = random_bounds(n, rng)
    assert failure(n, bounds) == pytest.approx(steck(n, bounds), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 30])
@pytest.mark.parametrize("error", [0.3, 0.05, 1e-4])
def test_the_bounds_spend_the_error_and_no_more(n, error):
    bounds = rank_bounds(n, error)
    # The determinant is exact: the only slack is what the search leaves unspent.
    assert 0.995 * error < steck(n, bounds) <= error
    assert bounds.ranks[0] == 1
    assert bounds.ranks[-1] == n
    assert (np.diff(bounds.lower) >= 0).all()
    assert (np.diff(bounds.upper) >= 0).all()
    # The same from either end.
    np.testing.assert_allclose(bounds.lower, 1 - bounds.upper[::-1], atol=1e-12)


@pytest.mark.parametrize(("n", "error"), [(5, 0.05), (20, 0.05), (100, 0.2)])
def test_coverage_in_a_hundred_thousand_samples(n, error):
    bounds = rank_bounds(n, error)
    sample = np.random.default_rng(n).random((100_000, n))
    sample.sort(axis=1)
    chosen = sample[:, bounds.ranks - 1]
    failed = ((chosen < bounds.lower) | (chosen > bounds.upper)).any(axis=1).sum()
    # Both tails at 1e-4: too few failures would mean noise for nothing.
    low, high = stats.binom.interval(1 - 2e-4, 100_000, failure(n, bounds))
    assert low <= failed <= high
    assert high < 1.1 * error * 100_000


@pytest.mark.parametrize("n", [300, 3000, 20_000])
def test_coverage_of_larger_samples(n):
    bounds = rank_bounds(n, 0.05)
    rng = np.random.default_rng(n)
    rounds = 3_000_000 // n
    sample = np.sort(rng.random((rounds, n)), axis=1)[:, bounds.ranks - 1]
    failed = ((sample < bounds.lower) | (sample > bounds.upper)).any(axis=1).sum()
    assert failed <= stats.binom.isf(1e-4, rounds, 0.05)


def test_fourier_and_direct_convolution_agree(monkeypatch):
    bounds = rank_bounds(3000, 0.05)
    direct = failure(3000, bounds)
    monkeypatch.setattr(crossing, "_DIRECT", 0)
    assert failure(3000, bounds) == pytest.approx(direct, abs=1e-12)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 7), (8, 9), (300, 213), (64, 65)])
def test_a_convolution_by_fourier_transforms_is_one(sizes, monkeypatch):
    # Whatever stands at the ends: nothing is lost, and nothing comes round.
    monkeypatch.setattr(crossing, "_DIRECT", 0)
    rng = np.random.default_rng(sum(sizes))
    first, second = (rng.random(n) for n in sizes)
    found = crossing._convolve(first, second)
    np.testing.assert_allclose(found, np.convolve(first, second), atol=1e-12)
    assert (found >= 0).all()


@pytest.mark.parametrize("n", [10_000, 30_000, 10**6])
def test_ranks_are_half_a_standard_deviation_apart_or_twelve_hundred(n):
    ranks = crossing._chosen_ranks(n)
    assert len(ranks) <= 1200
    # Of a binomial count: its standard deviation at the middle of two ranks.
    middle = (ranks[1:] + ranks[:-1]) / 2
    apart = np.diff(ranks) / np.sqrt(middle * (n - middle) / n)
    # Away from the ends, and from the middle, where those from either end meet.
    inner = (middle > n / 4) & (np.abs(middle - n / 2) > 1)
    inner &= inner[::-1]
    if n < 10**6:
        assert np.abs(apart[inner] - 0.5).max() < 3 / math.sqrt(n)
    else:
        assert len(ranks) > 1000
        assert np.ptp(apart[inner]) < 0.01
    np.testing.assert_array_equal(ranks, n + 1 - ranks[::-1])


def test_tiny_errors_are_left_to_the_union_bound():
    bounds = rank_bounds(50, 1e-8)
    lower = stats.beta.cdf(bounds.lower, bounds.ranks, 51 - bounds.ranks)
    upper = stats.beta.sf(bounds.upper, bounds.ranks, 51 - bounds.ranks)
    assert lower.sum() + upper.sum() <= 1e-8
    assert lower.sum() + upper.sum() == pytest.approx(1e-8, rel=1e-6)


def test_an_error_close_to_one_asks_for_no_less_than_a_half():
    bounds = rank_bounds(4, 0.9999)
    assert 0.49 < failure(4, bounds) <= 0.5
    with pytest.raises(ValueError, match="read-only"):
        bounds.lower[0] = 0.9


def test_impossible_and_certain_bounds():
    ranks = np.array([1, 2])
    narrow = RankBounds(ranks, np.array([0.5, 0.5]), np.array([0.4, 0.4]))
    assert failure(2, narrow) == 1.0
    wide = RankBounds(ranks, np.zeros(2), np.ones(2))
    assert failure(2, wide) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("n", [1, 7, 19, 20, 21, 1000, 10**6])
def test_stirling_s_correction(n):
    exact = math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2
    assert crossing._stirling(n) == pytest.approx(exact, abs=1e-8)
