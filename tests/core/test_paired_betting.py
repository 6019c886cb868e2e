"""Betting on pairs: fair by enumeration, level under optional stopping, best stakes."""

import itertools
import math

import numpy as np
import pytest

from skpuffer.core.paired_betting import growth_stakes, largest_stake, log_factors

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


@pytest.mark.parametrize(
    ("counts", "epsilon"),
    [((4,), ()), ((4, 3), ()), ((4,), (5,)), ((4, 3), (5, 1)), ((4, 2, 3), (2, 1))],
)
def test_stakes_are_those_of_each_claim_and_count(counts, epsilon):
    rng = np.random.default_rng(13)
    counts, epsilon = rng.integers(0, 60, counts), 0.6 * rng.random(epsilon)
    found = growth_stakes(counts, epsilon=epsilon, delta=0.02)
    shape = np.broadcast_shapes(counts.shape[1:], epsilon.shape)
    assert found.shape == shape
    for place in np.ndindex(shape):
        one = [np.broadcast_to(kind, shape)[place] for kind in counts]
        claim = np.broadcast_to(epsilon, shape)[place]
        alone = growth_stakes(one, epsilon=claim, delta=0.02)
        assert found[place] == pytest.approx(float(alone), rel=1e-12)
    assert counts.ndim == 1 or (found > 0).any()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_stakes_are_the_best_of_large_claims_too(delta):
    # Events that have come e^epsilon times as often on one side, or more.
    epsilon = np.array([0.0, 3.0, 8.0, 15.0, 25.0])
    cells = [(1, 1), (1, 0), (0, 1), (0, 0)]
    for times in (0.5, 1.3, 3.0):
        counts = [0 * epsilon, times * 100 * np.exp(epsilon), 100 + 0 * epsilon, 10]
        counts = np.stack(np.broadcast_arrays(*counts))
        stakes = growth_stakes(counts, epsilon=epsilon, delta=delta)
        largest = largest_stake(epsilon, delta)
        grid = np.linspace(0, 0.99, 4001)[:, None] * largest
        growth = sum(
            (c + 0.5) * log_factors(a, b, epsilon=epsilon, delta=delta, stake=grid)
            for c, (a, b) in zip(counts, cells, strict=True)
        )
        best = np.linspace(0, 0.99, 4001)[growth.argmax(axis=0)]
        np.testing.assert_allclose(stakes / largest, best, atol=3e-4)
        assert (best > 0).all() == (times > 1)


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
    # One among others is enough.
    for stake in ([0.1, -0.1], [0.1, 0.5]):
        with pytest.raises(ValueError, match="stake"):
            log_factors(1, 0, epsilon=1.0, delta=0.0, stake=stake)
