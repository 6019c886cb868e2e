"""Channels for categories: probabilities, divergences, draws and calibration.

Divergences by another road: fractions and multiprecision, from the definition.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from skpuffer.core.calibration import Budget, CalibrationError, calibrate
from skpuffer.core.channels import (
    OUTPUT_LIMIT,
    ROW_RULES,
    UNITS,
    Channel,
    ChannelMixtures,
    RowExact,
    RowPair,
    RowRange,
    RowTransport,
    WorstRow,
    check_distances,
    discrete,
    mean_distance,
    ordinal,
    population_rows,
    renyi_up,
    uniform_codes,
)
from skpuffer.core.channels import (
    exact_divergence as exact_divergence_of,
)
from skpuffer.core.laws import LAWS
from skpuffer.core.prior import Conditional
from skpuffer.core.sampling import SeededBits

LAW = LAWS["laplace"]()
ORDERS = [1.01, 1.5, 2.0, 4.0, 32.0, 200.0, math.inf]


def random_metric(rng, size):
    """Symmetric and positive, without the triangle inequality."""
    upper = np.triu(np.exp(rng.normal(size=(size, size))), 1)
    return upper + upper.T


def rows_of(counts):
    """One conditional a vector of counts."""
    return Conditional.from_rows(np.repeat(np.arange(len(counts)), counts)[:, None])


def random_pair(rng, size):
    counts = rng.integers(0, 12, (2, size))
    counts[0, 0] += 1
    counts[1, -1] += 1
    return counts


def pair_of(counts, distances):
    return RowPair(*map(rows_of, counts), np.ones(1), (distances,))


def exact_divergence(first, second, alpha):
    """D_α of two lists of fractions, from the definition."""
    if any(p and not q for p, q in zip(first, second, strict=True)):
        return math.inf
    ratios = [(p, p / q) for p, q in zip(first, second, strict=True) if p]
    if alpha == math.inf:
        return math.log(max(ratio for _, ratio in ratios))
    with mpmath.workdps(50):

        def real(x):
            return mpmath.mpf(x.numerator) / x.denominator

        total = mpmath.fsum(
            real(p) * real(ratio) ** (mpmath.mpf(alpha) - 1) for p, ratio in ratios
        )
        return float(mpmath.log(total) / (mpmath.mpf(alpha) - 1))


def probabilities(channel):
    return [[Fraction(int(n), UNITS) for n in row] for row in channel.counts]


def mixture(counts, channel):
    share = [Fraction(int(n), int(np.sum(counts))) for n in counts]
    rows = probabilities(channel)
    size = len(rows)
    return [sum(share[x] * rows[x][y] for x in range(len(share))) for y in range(size)]


def both_directions(counts, distances, theta, alpha):
    channel = Channel.of(distances, theta)
    p, q = (mixture(one, channel) for one in counts)
    return max(exact_divergence(p, q, alpha), exact_divergence(q, p, alpha))


# --- distances ------------------------------------------------------------------


def test_metrics():
    assert discrete(3).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert ordinal(3).tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert mean_distance(ordinal(3)) == pytest.approx(4 / 3)
    assert mean_distance(discrete(1)) == 1
    assert mean_distance(3 * discrete(2)) == 3
    nearly = np.array([[0, 1.0], [1.0 + 1e-15, 0]])
    checked = check_distances(nearly, 2)
    assert (checked == checked.T).all()
    assert check_distances([[0]], 1).tolist() == [[0]]
    # Round-off is in parts of the largest distance, not of one nor of the mean.
    for size in (1e-9, 1.0, 1e9):
        nearly = [
            [0, size, size / 2],
            [size * (1 + 9e-13), 0, size],
            [size / 2, size, 0],
        ]
        assert check_distances(nearly, 3)[0, 1] == size * (1 + 9e-13)
        nearly[1][0] = size * (1 + 2e-12)
        with pytest.raises(ValueError, match="symmetric"):
            check_distances(nearly, 3)
    # No triangle inequality is asked for.
    assert check_distances([[0, 1, 9], [1, 0, 1], [9, 1, 0]], 3)[0, 2] == 9


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        ("ab", "numbers"),
        ([[0, 1]], "shape"),
        ([[0, np.nan], [np.nan, 0]], "finite"),
        ([[0, -1], [-1, 0]], "not negative"),
        ([[1, 1], [1, 0]], "itself"),
        ([[0, 1], [2, 0]], "symmetric"),
        ([[0, 0], [0, 0]], "positive distance"),
    ],
)
def test_other_matrices_are_refused(matrix, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_distances(matrix, 2)


# --- channels -------------------------------------------------------------------


def test_probabilities_are_whole_and_right():
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 40):
        distances = random_metric(rng, size) if size > 1 else np.zeros((1, 1))
        for theta in (1e-3, 0.1, 1.0, 50.0, 1e9):
            counts = Channel.of(distances, theta).counts
            assert all(sum(row) == UNITS for row in counts.tolist())
            assert counts.min() > 0
            with np.errstate(under="ignore"):
                share = np.exp(-distances / theta)
            share /= share.sum(axis=1, keepdims=True)
            assert np.abs(counts / UNITS - share).max() < 1e-14
    assert (Channel.of(ordinal(3), 0.0).counts == UNITS * np.eye(3)).all()


def test_the_discrete_metric_is_randomised_response():
    for size in (2, 3, 8):
        for theta in (0.2, 1.0, 3.0):
            odds = math.exp(1 / theta)
            keep, other = odds / (odds + size - 1), 1 / (odds + size - 1)
            channel = Channel.of(discrete(size), theta)
            wanted = np.where(np.eye(size), keep, other)
            assert np.abs(channel.probabilities - wanted).max() < 1e-15
            table = channel.table(alpha=math.inf)
            assert np.array_equal(table, table.T)
            assert table[0, 1] == pytest.approx(1 / theta, rel=1e-13)
            for alpha in (1.5, 4.0):
                moment = (
                    keep**alpha * other ** (1 - alpha)
                    + other**alpha * keep ** (1 - alpha)
                    + (size - 2) * other
                )
                assert channel.table(alpha=alpha)[0, 1] == pytest.approx(
                    math.log(moment) / (alpha - 1), rel=1e-12
                )


def test_symmetric_channels_are_so_to_the_last_unit():
    # Both directions of a pair then share one coupling.
    for size in (2, 3, 7, 16, 100):
        for theta in np.geomspace(0.05, 30, 40):
            counts = Channel.of(discrete(size), theta).counts
            assert (counts.diagonal() == counts[0, 0]).all()
            assert len(np.unique(counts)) <= 2


def test_the_distance_over_theta_is_no_bound():
    # Points 0, 1, 2 with |x - y|: the normalisation depends on x.
    table = Channel.of(ordinal(3), 1.0).table(alpha=math.inf)
    assert table[0, 1] == pytest.approx(1.1438, abs=1e-4)
    assert table[0, 1] > 1
    assert (table <= 2 * ordinal(3)).all()
    rng = np.random.default_rng(1)
    for _ in range(50):
        points = rng.normal(size=(5, 2))
        distances = np.linalg.norm(points[:, None] - points, axis=2)
        table = Channel.of(distances, 0.7).table(alpha=math.inf)
        assert (table <= 2 * distances / 0.7 + 1e-12).all()


@pytest.mark.parametrize("alpha", ORDERS)
def test_divergences_are_bounds_and_hardly_above(alpha):
    rng = np.random.default_rng(2)
    for size, theta in ((2, 0.1), (3, 5.0), (6, 0.4), (9, 1e3), (4, 0.02)):
        channel = Channel.of(random_metric(rng, size), theta)
        rows, table = probabilities(channel), channel.table(alpha=alpha)
        assert not table.diagonal().any()
        for x in range(size):
            for z in range(size):
                truth = exact_divergence(rows[x], rows[z], alpha)
                assert truth <= table[x, z] <= truth * (1 + 1e-11) + 1e-12


def test_divergences_of_distributions_with_gaps():
    p, q = np.array([[0.5, 0.5, 0.0]]), np.array([[0.25, 0.25, 0.5]])
    for alpha in (2.0, 900.0, math.inf):
        assert renyi_up(p, q, alpha)[0] == pytest.approx(math.log(2), abs=1e-12)
        assert renyi_up(q, p, alpha)[0] == math.inf
    # Where exp would overflow.
    far = np.array([[1 - 2.0**-60, 2.0**-60]])
    value = renyi_up(far[:, ::-1].copy(), far, 500.0)[0]
    truth = exact_divergence(
        [Fraction(1, 2**60), 1 - Fraction(1, 2**60)],
        [1 - Fraction(1, 2**60), Fraction(1, 2**60)],
        500.0,
    )
    assert truth <= value * (1 + 1e-15) <= truth * (1 + 1e-11)


@pytest.mark.parametrize("alpha", ORDERS)
def test_divergences_cover_the_errors_of_probabilities(alpha):
    # Halves of either distribution that an error of 2^-20 makes larger or smaller:
    # sums stay one, and the likelier half of the ratios is raised.
    rng, error = np.random.default_rng(14), Fraction(1, 2**20)
    for size in (1, 2, 3, 6):
        halves = rng.dirichlet(np.full(size, 0.4), (40, 4)) * 2.0**29
        # Whole parts of 2^-30, so that floats are exact.
        units = np.maximum(np.rint(halves), 1)
        units[..., 0] += 2**29 - units.sum(axis=2)
        p, q = (np.hstack([units[:, k], units[:, k + 1]]) / 2**30 for k in (0, 2))
        bounds = renyi_up(p, q, alpha, error=float(error))
        plain = renyi_up(p, q, alpha)
        up = np.repeat([1 + error, 1 - error], size)
        for bound, near, first, second in zip(bounds, plain, p, q, strict=True):
            for more, less in ((up, up[::-1]), (up[::-1], up)):
                moved = [
                    [Fraction(x) * factor for x, factor in zip(row, side, strict=True)]
                    for row, side in ((first, more), (second, less))
                ]
                assert exact_divergence(*moved, alpha) <= bound
            # What it costs: the error twice, and once more in the sum.
            terms = 0 if alpha == math.inf else 2 / (alpha - 1)
            assert bound <= near + (2 + terms) * float(error) * (1 + 1e-6)


def test_dependence():
    assert Channel.of(discrete(4), 0.0).dependence == 1
    assert Channel.of(discrete(4), 1e9).dependence < 1e-8
    share = Channel.of(discrete(4), 1.0).probabilities
    assert Channel.of(discrete(4), 1.0).dependence == pytest.approx(
        share[0, 0] - share[0, 1]
    )


# --- draws ----------------------------------------------------------------------


def test_draws_follow_their_probabilities():
    # χ² at level 1e-3 over all inputs together, with a fixed seed.
    rng = np.random.default_rng(3)
    channel = Channel.of(np.sqrt(random_metric(rng, 6)), 0.8)
    codes = np.repeat(np.arange(6), 20_000)
    rng.shuffle(codes)
    drawn = channel.draw(codes, SeededBits(5, 0))
    seen = np.zeros((6, 6))
    np.add.at(seen, (codes, drawn), 1)
    expected = 20_000 * channel.probabilities
    assert expected.min() > 5
    statistic = ((seen - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, 6 * 5) > 1e-3


class Words:
    """A source of given words."""

    def __init__(self, words):
        self.given = np.array(words, dtype=np.uint64)

    def words(self, n):
        out, self.given = self.given[:n], self.given[n:]
        return out


def test_draws_compare_integers():
    # An output owns exactly its units, to the last one.
    counts = Channel.of(ordinal(3), 0.9).counts
    ends = np.cumsum(counts[1]).tolist()
    units = [0, ends[0] - 1, ends[0], ends[1] - 1, ends[1], UNITS - 1]
    words = Words([unit * 4 + 3 for unit in units])
    drawn = Channel(counts).draw(np.full(6, 1), words)
    assert drawn.tolist() == [0, 0, 1, 1, 2, 2]
    still = Channel.of(ordinal(3), 0.0).draw(np.array([2, 0]), SeededBits(0, 0))
    assert still.tolist() == [2, 0]


def test_uniform_codes():
    words = Words([2**64 - 1, 7, 2**64 - 2, 5])
    # 2^64 is 1 more than a multiple of 3: its last word would favour category 0.
    assert uniform_codes(2, 3, words).tolist() == [1, 2]
    seen = np.bincount(uniform_codes(60_000, 7, SeededBits(1, 0)), minlength=7)
    assert stats.chisquare(seen).pvalue > 1e-3
    assert uniform_codes(0, 3, SeededBits(0, 0)).tolist() == []


# --- calibration ----------------------------------------------------------------


@pytest.mark.parametrize("alpha", ORDERS)
@pytest.mark.parametrize("cases", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_soundness(alpha, cases):
    """Random priors and random metrics, every sum as a fraction."""
    rng = np.random.default_rng(round(100 * min(alpha, 999)))
    for _ in range(cases):
        size = int(rng.integers(2, 7))
        distances, counts = random_metric(rng, size), random_pair(rng, size)
        epsilon = math.exp(rng.uniform(math.log(0.02), math.log(4)))
        found = {}
        for name, rule in ROW_RULES.items():
            answer = calibrate(
                [pair_of(counts, distances)], LAW, rule(), Budget(alpha, epsilon)
            )
            theta = float(answer.scale[0])
            truth = both_directions(counts, distances, theta, alpha)
            assert truth <= epsilon
            assert truth <= answer.divergence(alpha) <= epsilon
            found[name] = theta
            if name == "exact" and theta > 0:
                assert truth > epsilon * (1 - 1e-4)
        assert found["exact"] <= found["transport"]


def best_moment(counts, distances, theta, alpha):
    """The larger of both directions' least E exp((α−1) D), by a linear programme."""
    shares = [one / one.sum() for one in counts]
    size = len(distances)
    marginals = np.zeros((2 * size, size * size))
    for x in range(size):
        marginals[x, x * size : (x + 1) * size] = 1
        marginals[size + x, x::size] = 1
    log_p = np.log(Channel.of(distances, theta).probabilities)
    cost = np.exp(alpha * log_p[:, None, :] + (1 - alpha) * log_p[None]).sum(axis=2)
    return max(
        linprog(cost.ravel(), A_eq=marginals, b_eq=np.concatenate([first, second])).fun
        for first, second in (shares, shares[::-1])
    )


def test_transport_is_as_good_as_a_linear_programme():
    # At a scale a thousandth smaller no coupling would do.
    rng = np.random.default_rng(4)
    for _ in range(25):
        size = int(rng.integers(2, 7))
        distances, counts = random_metric(rng, size), random_pair(rng, size)
        alpha, epsilon = rng.uniform(1.2, 6), rng.uniform(0.1, 1.5)
        budget = Budget(float(alpha), float(epsilon))
        pair = pair_of(counts, distances)
        theta = float(calibrate([pair], LAW, RowTransport(), budget).scale[0])
        target = math.exp(budget.log_target)
        assert best_moment(counts, distances, theta, alpha) <= target * (1 + 1e-7)
        assert best_moment(counts, distances, theta * 0.999, alpha) > target


def test_at_infinity_transport_is_the_best_bottleneck():
    # Two points against two: the straight plan moves only neighbours.
    counts = np.array([[1, 1, 0], [0, 1, 1]])
    budget = Budget(math.inf, 0.8)
    theta = calibrate([pair_of(counts, ordinal(3))], LAW, RowTransport(), budget).scale[
        0
    ]
    table = Channel.of(ordinal(3), theta).table(alpha=math.inf)
    assert max(table[0, 1], table[1, 2], table[1, 0], table[2, 1]) <= 0.8
    assert max(table[0, 1], table[1, 2]) > 0.8 * (1 - 1e-4)


def test_identical_distributions_need_no_noise():
    pair = pair_of(np.array([[3, 6], [1, 2]]), discrete(2))
    for rule in ROW_RULES.values():
        answer = calibrate([pair], LAW, rule(), Budget(2.0, 0.1))
        assert answer.scale.tolist() == [0]
        assert answer.divergence(5.0) < 1e-12


def test_exact_needs_no_noise_where_the_atoms_will_do():
    counts = np.array([[50, 50], [45, 55]])
    pair = pair_of(counts, discrete(2))
    p, q = ([Fraction(int(n), 100) for n in one] for one in counts)
    truth = max(exact_divergence(p, q, 2.0), exact_divergence(q, p, 2.0))
    for factor, zero in ((1 + 1e-9, True), (1 - 1e-9, False)):
        budget = Budget(2.0, truth * factor)
        scale = calibrate([pair], LAW, RowExact(), budget).scale[0]
        assert (scale == 0) == zero
    assert calibrate([pair], LAW, RowTransport(), Budget(2.0, truth)).scale[0] > 0


def test_a_bound_above_any_divergence():
    # Every output has at least one unit of 2^-62: nothing is beyond 62 log 2.
    pair = pair_of(np.array([[1, 0], [0, 1]]), discrete(2))
    for rule in ROW_RULES.values():
        for alpha in (2.0, math.inf):
            scale = calibrate([pair], LAW, rule(), Budget(alpha, 60.0)).scale[0]
            assert 0 < scale < 0.03
            truth = both_directions(np.eye(2, dtype=int), discrete(2), scale, alpha)
            assert truth <= 60


def test_the_scale_falls_with_epsilon():
    rng = np.random.default_rng(6)
    distances, counts = random_metric(rng, 5), random_pair(rng, 5)
    for rule in ROW_RULES.values():
        scales = [
            calibrate(
                [pair_of(counts, distances)], LAW, rule(), Budget(3.0, epsilon)
            ).scale[0]
            for epsilon in np.geomspace(0.02, 3, 8)
        ]
        assert (np.diff(scales) <= 0).all()


@pytest.mark.parametrize("epsilon", [0.5, 20.0, 50.0])
def test_scales_of_a_single_column_are_in_the_units_of_its_distances(epsilon):
    rng = np.random.default_rng(8)
    distances, counts = random_metric(rng, 3), np.array([[2, 1, 0], [1, 0, 3]])
    sides = list(map(rows_of, counts))
    for rule in ROW_RULES.values():

        def scale(weight, unit, rule=rule):
            pair = RowPair(*sides, np.array([weight]), (distances * unit,))
            return calibrate([pair], LAW, rule(), Budget(1.5, epsilon)).scale[0]

        expected = scale(1.0, 1.0)
        for weight in (1e-4, 1e4):
            assert scale(weight, 1.0) == pytest.approx(expected, rel=1e-4)
            moved = scale(1.0, weight) / weight
            assert moved == pytest.approx(expected, rel=1e-4)
    if epsilon < 50:
        # Less noise than the last one, of the exact rule, is too little.
        assert both_directions(counts, distances, expected * 0.999, 1.5) > epsilon


@pytest.mark.parametrize("epsilon", [0.5, 12.0, 60.0, 100.0])
def test_two_columns_of_very_unlike_weights(epsilon):
    sides = [
        Conditional.from_rows(rows)
        for rows in ([[0.0, 0.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    ]
    pair = RowPair(*sides, np.array([1.0, 1e3]), (discrete(2), ordinal(3)))
    budget, found = Budget(2.0, epsilon), {}
    for name, rule in ROW_RULES.items():
        answer = rule().calibrate(pair, LAW, budget)
        scale = answer.unit * pair.weights
        assert rule().holds(answer.witness, LAW, budget, scale)
        found[name] = calibrate([pair], LAW, rule(), budget).scale
        assert found[name] == pytest.approx(scale, rel=1e-5)
    assert (found["exact"] <= found["transport"]).all()
    assert epsilon < 90 or found["transport"][0] < 1e-4


def test_copies_of_a_row():
    counts = np.array([[9, 1], [10, 0]])
    pair, budget = pair_of(counts, discrete(2)), Budget(2.0, 0.2, n_releases=2)
    theta = calibrate([pair], LAW, RowTransport(), budget).scale[0]
    channel = Channel.of(discrete(2), theta)
    rows, copies = probabilities(channel), []
    for one in counts:
        share = [Fraction(int(n), 10) for n in one]
        copies.append(
            [
                sum(share[x] * rows[x][y] * rows[x][z] for x in range(2))
                for y in range(2)
                for z in range(2)
            ]
        )
    assert exact_divergence(*copies, 2.0) <= 0.2
    assert exact_divergence(*copies[::-1], 2.0) <= 0.2
    assert theta > calibrate([pair], LAW, RowTransport(), Budget(2.0, 0.2)).scale[0]
    with pytest.raises(ValueError, match="n_releases=2"):
        calibrate([pair], LAW, RowExact(), budget)


def test_any_distributions_on_a_set():
    rng = np.random.default_rng(7)
    distances = random_metric(rng, 4)
    bound = RowRange(WorstRow(np.empty((1, 0)), (distances,)), np.ones(1))
    for rule in ROW_RULES.values():
        for alpha in (1.5, 4.0, math.inf):
            answer = calibrate([bound], LAW, rule(), Budget(alpha, 0.7))
            theta = answer.scale[0]
            table = Channel.of(distances, theta).table(alpha=alpha)
            assert 0.7 * (1 - 1e-4) < table.max() <= 0.7
            assert answer.divergence(alpha) == table.max()
            for _ in range(10):
                counts = random_pair(rng, 4)
                assert both_directions(counts, distances, theta, alpha) <= 0.7
    units = [
        rule().unit_scale(bound.bound, LAW, Budget(2.0, 0.7), np.ones(1))
        for rule in ROW_RULES.values()
    ]
    assert units[0] == units[1]
    alone = RowRange(WorstRow(np.empty((1, 0)), (discrete(1),)), np.ones(1))
    assert calibrate([alone], LAW, RowTransport(), Budget(2.0, 1.0)).scale[0] == 0
    assert bound.bound.divergence(LAW, alpha=2.0, scale=np.zeros(1)) == math.inf


def test_the_exact_rule_refuses_what_it_cannot_sum():
    numbers = RowPair(rows_of([1, 1]), rows_of([1, 2]), np.ones(1), (None,))
    with pytest.raises(ValueError, match="categories alone"):
        RowExact().calibrate(numbers, LAW, Budget(2.0, 1.0))
    many = np.zeros((2, 17))
    many[1] = 1
    wide = RowPair(
        Conditional.from_rows(many),
        Conditional.from_rows(many[:1]),
        np.ones(17),
        (discrete(2),) * 17,
    )
    with pytest.raises(ValueError, match=f"131072, and serves {OUTPUT_LIMIT}"):
        RowExact().calibrate(wide, LAW, Budget(2.0, 1.0))


def test_exact_falls_back_on_transport():
    # A direction in which the sums do not pass, but their coupling does.
    pair = pair_of(np.array([[3, 1], [1, 3]]), discrete(2))
    budget = Budget(2.0, 0.3)
    answer = RowExact().calibrate(pair, LAW, budget)
    mixtures = answer.witness
    theta = RowTransport().calibrate(pair, LAW, budget).unit
    scale = np.array([theta * 1.0000001])
    hollow = ChannelMixtures(
        np.array([1.0, 0.0]), np.array([0.0, 1.0]), (discrete(2),), 1.0, mixtures.bound
    )
    assert RowExact().holds(hollow, LAW, budget, scale)
    assert not RowExact().holds(hollow, LAW, budget, scale / 2)
    assert RowExact().unit_scale(hollow, LAW, budget, np.ones(1)) == pytest.approx(
        theta
    )
    assert RowExact().divergence(hollow, LAW, budget, scale) <= 0.3
    assert "joint convexity" in RowTransport().theorem(budget, several_columns=True)
    assert "summed" in RowExact().theorem(budget, several_columns=False)


def test_no_scale_is_an_error():
    # At order 1e9 nothing finite passes this bound in floats.
    pair = pair_of(np.array([[1, 0], [0, 1]]), discrete(2))
    with pytest.raises(CalibrationError):
        calibrate([pair], LAW, RowTransport(), Budget(math.inf, 1e-300))


# --- the population -------------------------------------------------------------


def test_lower_bounds_hold_together_as_often_as_they_say():
    # Level: with 19 in 20 expected, 1,500 samples fall below .94 with probability .05.
    rng = np.random.default_rng(20)
    share = np.array([0.6, 0.25, 0.1, 0.04, 0.01])
    held = 0
    for counts in rng.multinomial(80, share, 1500):
        bounds = population_rows(rows_of(counts), 5, 0.05)
        lower = np.zeros(6)
        lower[bounds.support[:, 0].astype(int)] = bounds.probabilities
        held += bool((lower[:5] <= share).all())
        # What a sample is short of is left open.
        assert lower[5] > 0
        assert sum(bounds.mass.tolist()) == bounds.total
    assert held / 1500 >= 0.94


def test_bounds_are_those_of_the_binomial():
    counts = np.array([90, 0, 10])
    bounds = population_rows(rows_of(counts), 3, 0.03)
    for code, lower in zip(
        bounds.support[:-1, 0], bounds.probabilities[:-1], strict=True
    ):
        seen = int(counts[int(code)])
        # So many or more would be seen with this probability at the bound.
        assert stats.binom.sf(seen - 1, 100, lower) == pytest.approx(0.01, rel=1e-6)
    assert bounds.support[:, 0].tolist() == [0, 2, 3]


def test_bounds_leave_room_for_the_round_off_of_a_quantile():
    # One row of very many, and all rows: the bounds in closed form.
    for n, beta in ((10**6, 1e-3), (300, 0.05), (40, 1e-9)):
        bounds = population_rows(rows_of([1, n - 1]), 2, beta)
        lower = bounds.probabilities[0] if bounds.support[0, 0] == 0 else 0.0
        exact = -math.expm1(math.log1p(-beta / 2) / n)
        assert exact * (1 - 2e-9) - 2.0**-39 <= lower <= exact * (1 - 5e-10)
        bounds = population_rows(rows_of([n, 0]), 2, beta)
        exact = math.exp(math.log(beta / 2) / n)
        assert exact * (1 - 2e-9) <= bounds.probabilities[0] <= exact * (1 - 5e-10)


@pytest.mark.parametrize("alpha", [1.5, 4.0, math.inf])
def test_any_population_within_the_bounds_keeps_the_promise(alpha):
    rng = np.random.default_rng(21)
    for distances in (discrete(4), ordinal(4), random_metric(rng, 4)):
        samples = [rng.multinomial(300, rng.dirichlet(np.ones(4))) for _ in range(2)]
        bounds = [population_rows(rows_of(one), 4, 0.02) for one in samples]
        pair = RowPair(*bounds, np.ones(1), (distances,))
        answer = calibrate([pair], LAW, RowTransport(), Budget(alpha, 0.5))
        theta = float(answer.scale[0])
        fitted = pair_of(np.array(samples), distances)
        assert (
            calibrate([fitted], LAW, RowTransport(), Budget(alpha, 0.5)).scale[0]
            <= theta
        )
        worst = RowRange(WorstRow(np.empty((1, 0)), (distances,)), np.ones(1))
        assert calibrate([worst], LAW, RowTransport(), Budget(alpha, 0.5)).scale[
            0
        ] >= theta * (1 - 1e-5)
        channel = Channel.of(distances, theta).probabilities
        for trial in range(40):
            # All that is left to one category, or to several.
            rest = np.eye(4)[rng.integers(0, 4, 2)] if trial % 2 else None
            sides = []
            for place, one in enumerate(bounds):
                share = np.zeros(5)
                share[one.support[:, 0].astype(int)] = one.probabilities
                left = rng.dirichlet(np.ones(4)) if rest is None else rest[place]
                sides.append((share[:4] + share[4] * left) @ channel)
            p, q = sides
            for first, second in ((p, q), (q, p)):
                if alpha == math.inf:
                    value = math.log((first / second).max())
                else:
                    moment = (first**alpha * second ** (1 - alpha)).sum()
                    value = math.log(moment) / (alpha - 1)
                assert value <= 0.5


def test_equal_bounds_are_no_equal_populations():
    bounds = population_rows(rows_of([50, 50]), 2, 0.05)
    pair = RowPair(bounds, bounds, np.ones(1), (discrete(2),))
    answer = calibrate([pair], LAW, RowTransport(), Budget(2.0, 0.1))
    assert answer.scale[0] > 0
    assert not pair.bound.is_zero
    at_rest = RowTransport().divergence(pair.bound, LAW, Budget(2.0, 0.1), np.zeros(1))
    assert at_rest == math.inf


def test_the_divergence_of_any_pair_at_any_scale():
    rng = np.random.default_rng(22)
    distances, counts = random_metric(rng, 4), random_pair(rng, 4)
    pair = RowPair(*map(rows_of, counts), np.array([0.7]), (distances,))
    truth = both_directions(counts, distances, 0.7, 3.0)
    value = exact_divergence_of(pair, Budget(3.0, 1.0), np.array([0.7]))
    assert truth <= value <= truth * (1 + 1e-10)
    # As it is, without noise.
    bare = exact_divergence_of(pair, Budget(3.0, 1.0), np.zeros(1))
    p, q = ([Fraction(int(n), int(one.sum())) for n in one] for one in counts)
    bare_truth = max(exact_divergence(p, q, 3.0), exact_divergence(q, p, 3.0))
    assert bare == pytest.approx(bare_truth, rel=1e-10)
    still = RowPair(*map(rows_of, counts), np.zeros(1), (distances,))
    assert exact_divergence_of(still, Budget(3.0, 1.0), np.zeros(1)) == bare
    # Copies, and too many combinations: what transport proves.
    twice = exact_divergence_of(pair, Budget(3.0, 1.0, n_releases=2), np.array([0.7]))
    assert twice > value
    wide = RowPair(
        *(Conditional.from_rows(rng.integers(0, 2, (9, 17))) for _ in range(2)),
        np.ones(17),
        (discrete(2),) * 17,
    )
    assert math.isfinite(exact_divergence_of(wide, Budget(3.0, 1.0), np.ones(17)))


def test_a_rare_row_of_either_side_counts_as_a_product_that_may_vanish():
    # 2^-62 in each of fifteen columns is 1e-280; a row in 1e12 is too rare beside it.
    rows = np.zeros((2, 15))
    rows[1] = 1
    scale = np.full(15, 1 / 276)
    for masses, known in (([1.0, 1e3], True), ([1.0, 1e12], False)):
        sides = [Conditional.from_rows(rows, mass) for mass in (masses, [1.0, 1.0])]
        for both in (sides, sides[::-1]):
            pair = RowPair(*both, np.ones(15), (discrete(2),) * 15)
            found = ChannelMixtures.of(pair, pair.bound).divergence(2.0, scale)
            assert math.isfinite(found) == known


def test_transport_speaks_where_a_product_may_vanish():
    theta = 1 / 276
    rows = np.zeros((3, 16))
    rows[1:, 0] = 1
    sides = Conditional.from_rows(rows[:2]), Conditional.from_rows(rows)
    pair = RowPair(*sides, np.ones(16), (discrete(2),) * 16)
    budget, scale = Budget(2.0, 0.2), np.full(16, theta)
    assert ChannelMixtures.of(pair, pair.bound).divergence(2.0, scale) == math.inf
    # One row in six moves, as far as a channel lets it.
    found = exact_divergence_of(pair, budget, scale)
    table = Channel.of(discrete(2), theta).table(alpha=2.0)
    assert found == pytest.approx(math.log(5 / 6 + math.exp(table[0, 1]) / 6))


def test_a_single_category_says_nothing():
    channel = Channel.of(np.zeros((1, 1)), 1.0)
    assert channel.table(alpha=2.0).tolist() == [[0.0]]
    assert channel.table(alpha=math.inf).tolist() == [[0.0]]


def test_products_that_may_vanish_say_nothing():
    # Sixteen columns, each changed with a probability of 2^-62: all of them at once
    # are near the end of the floats.
    shape, theta = (2,) * 16, 1 / 276
    shares = np.full((2, *shape), 1 / 2**16)
    shares[0, 0], shares[0, 1] = 1.2 / 2**16, 0.8 / 2**16
    item = ChannelMixtures(*shares, (discrete(2),) * 16, 0.8 / 2**16, None)
    assert item.divergence(2.0, np.full(16, theta)) == math.inf
    # Two that stay: what is changed so rarely is as good as kept.
    scale = np.append(np.full(14, theta), [0.0, 0.0])
    found = item.divergence(2.0, scale)
    expected = math.log(max((1.2**2 + 0.8**2) / 2, (1 / 1.2 + 1 / 0.8) / 2))
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_constant_category_costs_nothing_in_the_exact_rule():
    alone = pair_of(([3, 1], [1, 2]), discrete(2))
    sides = (
        Conditional.from_rows([[0.0, 0.0]] * n + [[1.0, 0.0]] * m)
        for n, m in ((3, 1), (1, 2))
    )
    both = RowPair(*sides, np.array([1.0, 0.0]), (discrete(2), discrete(1)))
    budget = Budget(2.0, 0.2)
    expected, found = (
        calibrate([pair], LAW, RowExact(), budget).scale for pair in (alone, both)
    )
    assert expected[0] > 0
    assert found.tolist() == [expected[0], 0.0]
