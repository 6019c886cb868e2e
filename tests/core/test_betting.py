"""Bounds by betting: brute force, fair by enumeration, as often right as stated."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from skpuffer.core import betting
from skpuffer.core.betting import lower_mean_bound, upper_mean_bound


def mean_bounds(values, error):
    return lower_mean_bound(values, error), upper_mean_bound(values, error)


def brute_force_lower(values, stakes, error):
    """The smallest m on a fine grid whose fortune stays below 1/error."""
    for m in np.linspace(0, 1, 20_001):
        capped = np.minimum(stakes, 0.99 / m) if m else stakes
        if math.prod((1 + capped * (values - m)).tolist()) < 1 / error:
            return m
    return 1.0


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_the_root_of_the_product(seed):
    rng = np.random.default_rng(seed)
    values, pilot = rng.beta(0.5, 1.5, (2, 60))
    bound = lower_mean_bound(values, 0.1, pilot=pilot)
    stake = betting._learned_stake(pilot, 60, 0.1)
    assert bound == pytest.approx(brute_force_lower(values, stake, 0.1), abs=6e-5)
    # One stake for all: the order does not matter.
    assert lower_mean_bound(values[::-1], 0.1, pilot=pilot) == pytest.approx(bound)
    bound = lower_mean_bound(values, 0.1)
    stakes = betting._predictable_stakes(values, 0.1)
    assert bound == pytest.approx(brute_force_lower(values, stakes, 0.1), abs=6e-5)


def test_the_upper_bound_is_the_lower_one_in_the_mirror():
    values = np.random.default_rng(5).random(200)
    low, high = mean_bounds(values, 0.05)
    assert low == lower_mean_bound(values, 0.05)
    assert high == pytest.approx(1 - lower_mean_bound(1 - values, 0.05), abs=1e-15)
    assert 0 < low < values.mean() < high < 1
    pilot = np.random.default_rng(50).random(60) ** 4
    high = upper_mean_bound(values, 0.05, pilot=pilot)
    assert high == pytest.approx(
        1 - lower_mean_bound(1 - values, 0.05, pilot=1 - pilot)
    )
    assert high > values.mean()


def test_stakes_look_at_the_past_alone():
    values = np.random.default_rng(6).random(300)
    stakes = betting._predictable_stakes(values, 0.05)
    for row in (0, 15, 16, 40, 127, 128, 250):
        changed = values.copy()
        changed[row:] = 1 - changed[row:]
        np.testing.assert_array_equal(
            betting._predictable_stakes(changed, 0.05)[: row + 1], stakes[: row + 1]
        )


def test_stakes_are_learned_anew_at_each_doubling(monkeypatch):
    values, seen = np.random.default_rng(60).random(600), []

    def learned(pilot, *rest):
        np.testing.assert_array_equal(pilot, values[: len(pilot)])
        seen.append(len(pilot))
        return float(len(pilot))

    monkeypatch.setattr(betting, "_learned_stake", learned)
    stakes = betting._predictable_stakes(values, 0.05)
    assert seen == [0, 16, 32, 64, 128, 256, 512]
    assert (np.flatnonzero(np.diff(stakes)) + 1).tolist() == seen[1:]
    assert (stakes <= np.arange(600)).all()


@pytest.mark.parametrize("mean", [0.02, 0.3, 0.9])
def test_a_fortune_at_the_true_mean_has_expectation_one(mean):
    # Every outcome of 18 coins, beyond the first stake that is learned.
    n, error = 18, 0.2
    outcomes = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    total = 0.0
    for tail in outcomes:
        for ones in range(n - 1):
            values = np.concatenate([np.ones(ones), np.zeros(n - 2 - ones), tail])
            stakes = betting._predictable_stakes(values, error)
            capped = np.minimum(stakes, 0.99 / mean)
            fortune = np.prod(1 + capped * (values - mean))
            chance = mean ** values.sum() * (1 - mean) ** (n - values.sum())
            total += math.comb(n - 2, ones) * chance * fortune
    assert total == pytest.approx(1, abs=1e-12)


def test_the_bounds_are_wrong_no_more_often_than_stated():
    # 100 samples at error .1 a side; P(Bin(100, .1) > 20) < .001.
    rng = np.random.default_rng(7)
    for draw, mean in (
        (lambda: (rng.random(100) < 0.06) * 1.0, 0.06),
        (lambda: rng.random(100) ** 3, 0.25),
    ):
        bounds = np.array([mean_bounds(draw(), 0.1) for _ in range(100)])
        assert (bounds[:, 0] > mean).sum() <= 20
        assert (bounds[:, 1] < mean).sum() <= 20
        assert (bounds[:, 0] > mean).sum() + (bounds[:, 1] < mean).sum() >= 2


def test_rare_values_cost_little_more_than_clopper_pearson():
    # Clopper-Pearson at error .05: 7.75 / n for 3 of n, and .05^(1/n) for all ones.
    values = np.zeros(1000)
    values[[100, 500, 900]] = 1
    assert 0.00775 <= upper_mean_bound(values, 0.05) <= 0.0105
    assert 0.984 <= lower_mean_bound(np.ones(300), 0.05) <= 0.05 ** (1 / 300)
    assert upper_mean_bound(np.zeros(1000), 0.05) <= 0.004
    rng = np.random.default_rng(61)
    for ones, share in ((3, 0.3), (30, 0.8), (300, 0.95)):
        values = rng.permutation(np.arange(1000) < ones) * 1.0
        closest = stats.beta.ppf(0.05, ones, 1001 - ones)
        assert share * closest < lower_mean_bound(values, 0.05) < closest
        bound = lower_mean_bound(values, 0.05, pilot=values)
        assert share * closest < bound
    # Far smaller values than one in n are no obstacle.
    tiny = np.random.default_rng(8).random(4000) * 1e-4
    low, high = mean_bounds(tiny, 0.05)
    assert low <= tiny.mean() <= high <= 2e-3


def test_more_values_and_more_error_give_closer_bounds():
    values = np.random.default_rng(9).random(6400) ** 2
    widths = [
        np.subtract(*mean_bounds(values[:n], error)[::-1])
        for n, error in [(100, 0.01), (100, 0.1), (1600, 0.1), (6400, 0.1)]
    ]
    assert widths == sorted(widths, reverse=True)
    # Within 1.75 of the Gaussian half-width, at z = 1.2816.
    assert widths[-1] < 1.75 * 2 * 1.2816 * values.std() / math.sqrt(6400)


def test_a_bound_is_rounded_to_the_safe_side():
    values = np.random.default_rng(10).random(500)
    bound = lower_mean_bound(values, 0.05)
    stakes = betting._predictable_stakes(values, 0.05)
    exact = math.fsum(
        math.log1p(min(s, 0.99 / bound) * (u - bound))
        for s, u in zip(stakes, values, strict=True)
    )
    assert math.log(20) <= exact <= math.log(20) + 1e-4


@pytest.mark.parametrize("n", [1, 100, 100_000])
def test_what_rounding_could_have_made_refutes_nothing(n, monkeypatch):
    # One stake and one win, n - 1 factors of one: the fortune is 1 + stake.
    stake = 10.0
    monkeypatch.setattr(betting, "_learned_stake", lambda *rest: stake)
    values = np.zeros(n)
    values[0] = 1.0
    # A sum of n logarithms, each of a factor down to .01, may be off by so much.
    room = n * 2.0**-52 * 100
    for excess, refuted in ((room, False), (100 * room + 1e-14, True)):
        error = math.exp(excess - math.log1p(stake))
        found = lower_mean_bound(values, error, pilot=values)
        assert (found > 0) == refuted


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([], 0.1, "at least one"),
        ([[0.1]], 0.1, "at least one"),
        ([0.5, 1.5], 0.1, "1 of 2"),
        ([0.5, np.nan, -1], 0.1, "2 of 3"),
        ([0.5], 0.0, "error"),
        ([0.5], 1.0, "error"),
    ],
)
def test_what_no_mean_is_bounded_from(values, error, message):
    with pytest.raises(ValueError, match=message):
        lower_mean_bound(values, error)
