"""Fortunes: fair by enumeration, level under optional stopping, bounds by brute force."""

import itertools
import math

import numpy as np
import pytest

from skpuffer.core import betting
from skpuffer.core.betting import (
    growth_stakes,
    largest_stake,
    log_factors,
    lower_mean_bound,
    mean_bounds,
    upper_mean_bound,
)

# --- bounds on a mean ---


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
    assert upper_mean_bound(values, 0.05, pilot=values) > values.mean()


def test_stakes_look_at_the_past_alone():
    values = np.random.default_rng(6).random(300)
    stakes = betting._predictable_stakes(values, 0.05)
    for row in (0, 15, 16, 40, 127, 128, 250):
        changed = values.copy()
        changed[row:] = 1 - changed[row:]
        np.testing.assert_array_equal(
            betting._predictable_stakes(changed, 0.05)[: row + 1], stakes[: row + 1]
        )


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


# --- pairs ---

CLAIMS = [(0.0, 0.0), (1.0, 0.0), (0.7, 0.1), (0.0, 0.3), (6.0, 1e-6)]


def at_the_boundary(epsilon, delta, q):
    """P(event) under both distributions of a pair that just keeps the claim."""
    return min(1.0, math.exp(epsilon) * q + delta), q


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_no_factor_is_above_one_on_average(epsilon, delta, share):
    stake = share * largest_stake(epsilon, delta)
    for h in ([0.0, 1.0], [0.25, 0.8]):
        for q in (0.0, 1e-3, 0.2, 0.9):
            p, q = at_the_boundary(epsilon, delta, q)
            # h as a mixture of the claim's events: E h(x) ≤ e^ε E h(y) + δ.
            mean = 0.0
            for (a, pa), (b, qb) in itertools.product(
                zip(h, [1 - p, p], strict=True), zip(h, [1 - q, q], strict=True)
            ):
                logs = log_factors(a, b, epsilon=epsilon, delta=delta, stake=stake)
                assert np.isfinite(logs)
                mean += pa * qb * math.exp(logs)
            assert mean <= 1 + 1e-12
            if h[0] == 0 and p < 1:
                assert mean == pytest.approx(1, abs=1e-12)


def adaptive_fortunes(pairs, epsilon, delta):
    """Log fortunes of many streams, stakes learned from the pairs before.

    `pairs` has the shape (pairs, 2, streams); so has the answer but for its middle.
    """
    streams = pairs.shape[-1]
    claim = {"epsilon": np.full(streams, epsilon), "delta": delta}
    counts, path = np.zeros((4, streams)), np.zeros((len(pairs) + 1, streams))
    for row, (first, second) in enumerate(pairs):
        stake = growth_stakes(counts, **claim)
        path[row + 1] = path[row] + log_factors(first, second, stake=stake, **claim)
        counts[(1 - first) * 2 + (1 - second), np.arange(streams)] += 1
    return path[1:]


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.0), (0.7, 0.1)])
def test_learned_stakes_keep_the_expectation_at_one(epsilon, delta):
    # All 4^6 outcomes of six pairs at the boundary of the claim.
    p, q = at_the_boundary(epsilon, delta, 0.2)
    cells = list(itertools.product([1, 0], [1, 0]))
    pairs = np.array(list(itertools.product(cells, repeat=6))).transpose(1, 2, 0)
    chance = np.where(pairs, [[p], [q]], [[1 - p], [1 - q]]).prod(axis=(0, 1))
    path = adaptive_fortunes(pairs, epsilon, delta)
    np.testing.assert_allclose(np.exp(path) @ chance, 1, atol=1e-12)
    # Whoever stops when it suits has a fortune of 1.3 no more often than any other.
    crossed = chance @ (path.max(axis=0) >= math.log(1.3))
    assert 0.01 < crossed <= 1 / 1.3


def test_the_level_holds_for_whoever_stops_when_it_suits():
    # 400 streams at the boundary, watched for 300 pairs; P(Bin(400, .1) > 60) < .001.
    rng = np.random.default_rng(11)
    chances = np.array(at_the_boundary(0.8, 0.05, 0.15))[:, None]
    pairs = (rng.random((300, 2, 400)) < chances).astype(int)
    peak = adaptive_fortunes(pairs, 0.8, 0.05).max(axis=0)
    assert 1 <= (peak >= math.log(10)).sum() <= 60


def test_stakes_are_the_best_on_the_counts():
    rng = np.random.default_rng(12)
    counts = rng.integers(0, 50, (4, 30)).astype(float)
    epsilon, delta = rng.random(30) * 2, 0.02
    stakes = growth_stakes(counts, epsilon=epsilon, delta=delta)
    # The largest stakes are tried as well.
    grid = np.linspace(0, 0.99, 4001)[:, None] * largest_stake(epsilon, delta)
    cells = [(1, 1), (1, 0), (0, 1), (0, 0)]
    growth = sum(
        (c + 0.5) * log_factors(a, b, epsilon=epsilon, delta=delta, stake=grid)
        for c, (a, b) in zip(counts, cells, strict=True)
    )
    best = grid[growth.argmax(axis=0), np.arange(30)]
    np.testing.assert_allclose(stakes, best, atol=3e-4)
    assert (stakes == 0).any()
    assert (stakes > 0).any()
    one = growth_stakes(counts[:, 0], epsilon=epsilon, delta=delta)
    assert one.shape == (30,)


def test_no_stake_can_lose_everything():
    epsilon = np.array([0.0, 1.0, 30.0, 500.0])
    for delta in (0.0, 1e-9, 0.5):
        # Nothing but wins: as much as is allowed.
        stakes = growth_stakes([0, 10**9, 0, 0], epsilon=epsilon, delta=delta)
        assert (stakes > 0.98 * largest_stake(epsilon, delta))[:2].all()
        worst = log_factors(0, 1, epsilon=epsilon, delta=delta, stake=stakes)
        assert (worst >= math.log(0.01) - 1e-9).all()
        for stake in (-1e-9, largest_stake(1.0, delta)):
            with pytest.raises(ValueError, match="stake"):
                log_factors(1, 0, epsilon=1.0, delta=delta, stake=stake)
    with pytest.raises(ValueError, match="stake"):
        log_factors(1, 0, epsilon=1.0, delta=0.0, stake=np.nan)
