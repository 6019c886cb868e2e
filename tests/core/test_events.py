"""The counting region: its level by enumeration, its bounds by brute force."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import owens_t

from skpuffer.core.event_divergence import Divergence, binary_renyi
from skpuffer.core.events import AcceptanceSet, CountingRegion, largest_q, least_p

BETA = 0.05
TARGETS = [
    Divergence(),
    Divergence(symmetric=True),
    Divergence(delta=0.1, symmetric=True),
    Divergence(alpha=2.0),
    Divergence(alpha=1.3, symmetric=True),
    Divergence(alpha=20.0),
    Divergence(alpha=math.inf, symmetric=True),
]
IDS = [repr(target)[10:] for target in TARGETS]
RATES = [(0.6, 0.2), (0.9, 0.5), (0.5, 0.5), (0.2, 0.02), (1.0, 0.0), (0.1, 0.8)]


SCORES = np.concatenate([np.linspace(-2.5, 4.5, 281), np.linspace(4.6, 7.0, 25)])


def region(counts, sizes, target, rates=None, beta=BETA):
    rates = rates or tuple(c / n for c, n in zip(counts, sizes, strict=True))
    accepted = AcceptanceSet.for_rates(target, rates, sizes, beta)
    return CountingRegion(counts[0], sizes[0], counts[1], sizes[1], accepted)


def value(target, p, q):
    return float(target.of_event(np.array([p]), np.array([q]))[0])


# --- divergences of an event ---


def test_divergences_by_hand():
    assert value(Divergence(), 0.6, 0.2) == pytest.approx(math.log(3))
    assert value(Divergence(delta=0.1), 0.6, 0.2) == pytest.approx(math.log(2.5))
    both = Divergence(delta=0.1, symmetric=True)
    assert value(both, 0.9, 0.4) == pytest.approx(math.log(0.5 / 0.1))
    order_two = math.log(0.6**2 / 0.2 + 0.4**2 / 0.8)
    assert value(Divergence(alpha=2.0), 0.6, 0.2) == pytest.approx(order_two)
    swapped = math.log(0.2**3 / 0.6**2 + 0.8**3 / 0.4**2) / 2
    larger = max(swapped, math.log(0.6**3 / 0.2**2 + 0.4**3 / 0.8**2) / 2)
    found = value(Divergence(alpha=3.0, symmetric=True), 0.6, 0.2)
    assert found == pytest.approx(larger)
    assert value(Divergence(alpha=math.inf), 0.6, 0.2) == pytest.approx(math.log(3))


def test_the_larger_direction_of_two_coins():
    # Order two by hand: Σ p²/q is 1.375 one way and 2 the other.
    target = Divergence(alpha=2.0, symmetric=True)
    assert value(target, 0.9, 0.6) == pytest.approx(math.log(2))
    assert value(target, 0.4, 0.1) == pytest.approx(math.log(2))
    # Where P is the smaller, the same of the other sign.
    assert value(target, 0.6, 0.9) == pytest.approx(-math.log(2))


@pytest.mark.parametrize("alpha", [1.2, 2.0, 5.0])
def test_one_direction_says_nothing_of_the_other(alpha):
    # P against Q alone, which is the smaller of both for some and the larger for others.
    grid = np.linspace(0.05, 0.95, 19)
    p, q = (side.ravel() for side in np.meshgrid(grid, grid))
    p, q = p[p > q], q[p > q]
    there, back = (
        np.log(a**alpha * b ** (1 - alpha) + (1 - a) ** alpha * (1 - b) ** (1 - alpha))
        / (alpha - 1)
        for a, b in ((p, q), (q, p))
    )
    assert (there > back + 1e-3).any()
    assert (back > there + 1e-3).any()
    np.testing.assert_allclose(
        Divergence(alpha=alpha).of_event(p, q), there, atol=1e-12
    )
    both = Divergence(alpha=alpha, symmetric=True).of_event(p, q)
    np.testing.assert_allclose(both, np.maximum(there, back), atol=1e-12)
    # Of the larger ratio, that of the event is the one asked for.
    np.testing.assert_allclose(Divergence().of_event(p, q), np.log(p / q), atol=1e-12)


def test_divergences_at_the_corners():
    assert value(Divergence(), 0.5, 0.0) == math.inf
    assert value(Divergence(), 0.0, 0.0) == -math.inf
    assert value(Divergence(delta=0.2), 0.1, 0.0) == -math.inf
    assert value(Divergence(symmetric=True), 1.0, 0.3) == math.inf
    assert value(Divergence(alpha=2.0), 1.0, 1.0) == 0.0
    assert value(Divergence(alpha=2.0), 1.0, 0.0) == math.inf
    assert value(Divergence(alpha=2.0), 0.0, 1.0) == -math.inf
    assert value(Divergence(alpha=2.0), 0.0, 0.0) == 0.0


@pytest.mark.parametrize("alpha", [1.1, 2.0, 30.0])
def test_a_coin_that_has_one_side(alpha):
    # What it never shows plays no part: -log of the other's probability of the rest.
    q = np.linspace(0.0, 0.9, 10)
    found = binary_renyi(alpha, np.zeros(10), q)
    np.testing.assert_allclose(found, -np.log1p(-q), atol=1e-12)
    found = binary_renyi(alpha, np.ones(10), 1 - q)
    np.testing.assert_allclose(found, -np.log1p(-q), atol=1e-12)


def test_large_orders_tend_to_the_largest_ratio():
    p, q = np.array([0.6, 0.3]), np.array([0.2, 0.25])
    found = binary_renyi(1e6, p, q)
    np.testing.assert_allclose(found, np.log(p / q), rtol=1e-4)


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
def test_every_divergence_is_monotone(target):
    grid = np.linspace(0, 1, 60)
    found = target.of_event(grid[:, None], grid[None, :])
    assert not np.isnan(found).any()
    with np.errstate(invalid="ignore"):
        assert not (np.diff(found, axis=0) < -1e-12).any()
        assert not (np.diff(found, axis=1) > 1e-12).any()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"delta": 1.0}, "delta=1.0"),
        ({"delta": -0.1}, "delta=-0.1"),
        ({"alpha": 1.0}, "alpha=1.0"),
        ({"alpha": math.nan}, "alpha=nan"),
        ({"alpha": 2.0, "delta": 0.1}, "delta=0.1 with alpha=2.0"),
    ],
)
def test_impossible_divergences_are_refused(arguments, named):
    with pytest.raises(ValueError, match=named):
        Divergence(**arguments)


# --- the level, by enumeration of all counts ---


@pytest.mark.parametrize("made_for", [TARGETS[1], TARGETS[3]], ids=["epsilon", "renyi"])
@pytest.mark.parametrize("rates", [(0.6, 0.2), (0.1, 0.8), (1.0, 0.0)])
def test_no_bound_exceeds_the_truth_more_often_than_stated(made_for, rates):
    n_p, n_q = 11, 8
    asked = [TARGETS[1], TARGETS[2], TARGETS[3]]
    accepted = AcceptanceSet.for_rates(made_for, rates, (n_p, n_q), BETA)
    lowers = np.zeros((len(asked), n_p + 1, n_q + 1))
    for a in range(n_p + 1):
        for b in range(n_q + 1):
            found = CountingRegion(a, n_p, b, n_q, accepted)
            lowers[:, a, b] = [found.lower(target) for target in asked]
    worst = 0.0
    for p in np.linspace(0.02, 0.98, 25):
        for q in np.linspace(0.02, 0.98, 25):
            truths = np.array([max(0.0, value(target, p, q)) for target in asked])
            # All targets at once: the bounds of one region hold together.
            over = (lowers > truths[:, None, None] + 1e-9).any(axis=0)
            pmf_p = stats.binom.pmf(np.arange(n_p + 1), n_p, p)
            pmf_q = stats.binom.pmf(np.arange(n_q + 1), n_q, q)
            worst = max(worst, float(pmf_p @ over @ pmf_q))
    assert worst <= BETA
    if rates != (0.1, 0.8):  # It is no idle statement.
        assert worst > BETA / 5


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
def test_sets_are_as_probable_as_they_say_and_no_more(target):
    for rates in RATES:
        for beta in (0.05, 0.001, 1e-7):
            accepted = AcceptanceSet.for_rates(target, rates, (200, 150), beta)
            assert (np.diff(accepted.cells) <= 0).all()
            edges = np.concatenate([[0.0], stats.norm.cdf(SCORES)])
            mass = float((np.diff(edges) * edges[accepted.cells]).sum())
            assert mass >= 1 - beta
            # Up to ties: where P may be below δ, everything is one.
            assert mass <= 1 - beta / 2 or (accepted.cells == len(SCORES)).all()


def test_what_rounding_could_have_made_is_not_counted_on():
    # A sum of 93,636 terms below 1 may be off by so many times 2^-53, about 1e-11.
    edges = np.concatenate([[0.0], stats.norm.cdf(SCORES)])
    for target, rates in ((TARGETS[1], (0.6, 0.2)), (TARGETS[3], (0.2, 0.02))):
        for beta in (0.05, 0.2):
            first = AcceptanceSet.for_rates(target, rates, (200, 150), beta).cells
            spare = 1 - math.fsum((np.diff(edges) * edges[first]).tolist())
            for more, larger in ((1e-11, True), (1e-10, False)):
                found = AcceptanceSet.for_rates(target, rates, (200, 150), spare + more)
                assert (found.cells >= first).all()
                assert (found.cells > first).any() == larger


@pytest.mark.parametrize("target", TARGETS[1:5], ids=IDS[1:5])
def test_no_rate_is_expected_beyond_doubt(target):
    # Half a draw away from never and from always; what lies between stays as it is.
    n_p, n_q = 40, 60
    for p, near in ((0.0, 0.5), (0.999, 39.5), (0.6, 24.0)):
        for q, close in ((0.0, 0.5), (1.0, 59.5)):
            found, expected = (
                AcceptanceSet.for_rates(target, rates, (n_p, n_q), BETA).cells
                for rates in ((p, q), (near / n_p, close / n_q))
            )
            np.testing.assert_array_equal(found, expected)


# --- the bound, by brute force ---


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
@pytest.mark.parametrize(
    "counts", [(40, 12), (60, 0), (60, 15), (0, 10), (10, 60), (3, 0), (0, 0), (60, 60)]
)
def test_the_bound_is_the_least_divergence_in_the_region(target, counts):
    sizes = (60, 60)
    rates = (0.65, 0.2)
    found = region(counts, sizes, target, rates)
    grid = np.unique(
        np.concatenate([np.geomspace(1e-4, 1, 350), np.linspace(0, 1, 350)])
    )
    with np.errstate(divide="ignore"):
        z_p = stats.norm.isf(stats.binom.sf(counts[0] - 1, sizes[0], grid))
        z_q = stats.norm.isf(stats.binom.cdf(counts[1], sizes[1], grid))
    # The cell that a score lies in; its upper end belongs to it.
    cell_p = np.searchsorted(SCORES, z_p - 1e-9)
    cell_q = np.searchsorted(SCORES, z_q - 1e-9)
    allowed = np.append(found.accepted.cells, 0)[np.minimum(cell_p, len(SCORES))]
    inside = cell_q[None, :] < allowed[:, None]
    values = target.of_event(grid[:, None], grid[None, :])
    brute = max(0.0, float(values[inside].min()))
    lower = found.lower(target)
    assert lower <= brute + 1e-6
    assert lower == pytest.approx(brute, rel=0.02, abs=0.02)


@pytest.mark.parametrize("n", [1, 7, 300])
def test_the_ends_of_a_rate_are_those_of_exact_tests(n):
    scores = np.array([-1.0, 0.0, 2.0, 5.0])
    for hits in {0, 1, n // 2, n}:
        p, q = least_p(hits, n, scores), largest_q(hits, n, scores)
        assert ((p == 0) == (hits == 0)).all()
        assert ((q == 1) == (hits == n)).all()
        # The probabilities of as many, and of as few.
        if hits > 0:
            chance = stats.binom.sf(hits - 1, n, p)
            np.testing.assert_allclose(chance, stats.norm.sf(scores), rtol=1e-9)
        if hits < n:
            chance = stats.binom.cdf(hits, n, q)
            np.testing.assert_allclose(chance, stats.norm.sf(scores), rtol=1e-9)


def linear_bound(counts, sizes, weights, delta):
    """The region {w_p z_p⁺ + w_q z_q⁺ ≤ c}, c by Owen's T function."""
    w_p, w_q = weights

    def excess(c):
        tails = (stats.norm.sf(c / w_p) + stats.norm.sf(c / w_q)) / 2
        return tails + owens_t(c, w_p / w_q) + owens_t(c, w_q / w_p) - BETA

    c = brentq(excess, 0, 10, xtol=1e-13)
    z_p = np.linspace(0, c / w_p, 4001)
    z_q = np.maximum((c - w_p * z_p) / w_q, 0)
    p = stats.beta.ppf(stats.norm.sf(z_p), counts[0], sizes[0] - counts[0] + 1)
    q = stats.beta.isf(stats.norm.sf(z_q), counts[1] + 1, sizes[1] - counts[1])
    return c, float(np.log((p - delta) / q).min())


def test_the_linear_region_of_the_same_level_says_less():
    half = math.sqrt(0.5)
    assert linear_bound((82, 30), (500, 500), (half, half), 0.0)[0] == pytest.approx(
        1.7059, abs=1e-4
    )
    for counts, sizes in [((82, 30), (500, 500)), ((20, 5), (150, 150))]:
        best = max(
            linear_bound(counts, sizes, (math.cos(t), math.sin(t)), 0.0)[1]
            for t in np.linspace(0.1, 1.5, 15)
        )
        found = region(counts, sizes, Divergence()).lower(Divergence())
        assert found > best + 0.01
        separate = math.log(
            stats.beta.ppf(BETA / 2, counts[0], sizes[0] - counts[0] + 1)
            / stats.beta.isf(BETA / 2, counts[1] + 1, sizes[1] - counts[1])
        )
        assert found > separate + 0.1


def test_many_draws_come_close_to_a_normal_test():
    counts, n = (300_000, 110_000), 1_000_000
    p, q = counts[0] / n, counts[1] / n
    spread = math.sqrt((1 - p) / (p * n) + (1 - q) / (q * n))
    found = region(counts, (n, n), Divergence()).lower(Divergence())
    normal = math.log(p / q) - stats.norm.isf(BETA) * spread
    assert found == pytest.approx(normal, abs=0.02 * 1.65 * spread)
    assert found <= math.log(p / q)


# --- what a bound never does ---


def test_bounds_are_monotone_in_what_is_asked():
    found = region((82, 30), (500, 500), Divergence(symmetric=True))
    by_delta = [found.lower(Divergence(delta=d)) for d in (0, 0.01, 0.05, 0.1, 0.5)]
    assert by_delta == sorted(by_delta, reverse=True)
    assert by_delta[-1] == 0.0
    by_order = [found.lower(Divergence(alpha=a)) for a in (1.1, 2, 5, 50, math.inf)]
    assert by_order == sorted(by_order)
    assert by_order[-1] == pytest.approx(by_delta[0])
    one, both = (found.lower(Divergence(symmetric=s)) for s in (False, True))
    assert one <= both


def test_more_hits_say_more():
    target = Divergence(symmetric=True)
    accepted = AcceptanceSet.for_rates(target, (0.5, 0.2), (50, 50), BETA)
    steps = range(0, 51, 10)
    lowers = np.array(
        [
            [CountingRegion(a, 50, b, 50, accepted).lower(target) for b in steps]
            for a in steps
        ]
    )
    assert (np.diff(lowers, axis=0) >= 0).all()
    assert (np.diff(lowers, axis=1) <= 0).all()
    assert lowers[-1, 0] > 2
    assert (np.diag(lowers) == 0).all()


@pytest.mark.parametrize("target", TARGETS, ids=IDS)
@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (2, 1000)])
def test_tiny_samples(target, sizes):
    found = region((sizes[0], 0), sizes, target, rates=(1.0, 0.0)).lower(target)
    assert 0 <= found < math.log(sizes[1]) + 1
    # A single draw of either says nothing of a ratio: 1/20 against 19/20.
    assert sizes != (1, 1) or found == 0


def test_impossible_counts_and_errors_are_refused():
    target = Divergence()
    accepted = AcceptanceSet.for_rates(target, (0.5, 0.2), (10, 10), BETA)
    for counts in [(11, 10, 0, 10), (-1, 10, 0, 10), (0, 0, 0, 10), (1, 10, 3, 2)]:
        with pytest.raises(ValueError, match="an event held for"):
            CountingRegion(*counts, accepted)
    for beta in (0.0, 1.0, 1e-13, math.nan):
        with pytest.raises(ValueError, match="beta="):
            AcceptanceSet.for_rates(target, (0.5, 0.2), (10, 10), beta)
