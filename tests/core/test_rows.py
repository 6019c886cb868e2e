"""Rows of numbers and categories: soundness by quadrature and sums, and the search."""

import math
from dataclasses import replace

import numpy as np
import pytest
from core_support import cost, rounded
from scipy.optimize import linprog

from skpuffer.core.calibration import (
    RULES,
    Budget,
    CalibrationError,
    Pair,
    calibrate,
)
from skpuffer.core.channels import (
    Channel,
    RowPair,
    RowRange,
    RowTransport,
    RowWitness,
    WorstRow,
    _plans,
    _rows,
    _transport,
    discrete,
    ordinal,
)
from skpuffer.core.channels._plans import searched_plan
from skpuffer.core.channels._witness import Moves
from skpuffer.core.laws import LAWS
from skpuffer.core.plans import (
    Effort,
    Plan,
    TransportPlanError,
    _cells,
    _costs,
    _descend,
    cells_of,
    coarse_plan,
    in_place_plan,
    quadratic_plan,
)
from skpuffer.core.prior import Conditional, common_masses

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
EACH_LAW = pytest.mark.parametrize("law", ["laplace", "gaussian"])


def random_metric(rng, size):
    upper = np.triu(np.exp(0.5 * rng.normal(size=(size, size))), 1)
    return upper + upper.T


def random_rows(rng, n, size):
    """Numbers beside categories, often the same."""
    return np.column_stack(
        [rng.integers(0, 5, n) * rng.uniform(0.5, 2), rng.integers(0, size, n)]
    )


def log_density(law, distance):
    if law == "laplace":
        return -np.abs(distance) - math.log(2)
    return -(distance**2) / 2 - math.log(2 * math.pi) / 2


def mixed_divergence(first, second, law, scale, channel, alpha):
    """D_α of two releases of (number, category) rows: panels times finite sums."""
    sides = []
    for rows in (first, second):
        values, mass = np.unique(
            rounded(rows, [scale, 0.0]), axis=0, return_counts=True
        )
        sides.append((values[:, 0] / scale, values[:, 1].astype(int), mass / len(rows)))
    atoms = np.concatenate([sides[0][0], sides[1][0]])
    low, high = atoms.min(), atoms.max()
    # Gaussian integrands peak up to α − 1 spans outside.
    reach = 45.0 if law == "laplace" else 12.0 + alpha * (high - low)
    ends = np.unique(
        np.concatenate([atoms, np.arange(low - reach, high + reach + 1, 0.5)])
    )
    half = np.diff(ends) / 2
    points = (ends[:-1, None] + half[:, None] * (NODES + 1)).ravel()
    weights = (half[:, None] * WEIGHTS).ravel()
    logs = []
    for values, codes, mass in sides:
        noise = log_density(law, points[:, None] - values)
        terms = noise[:, None, :] + np.log(channel[codes].T * mass)
        top = terms.max(axis=2, keepdims=True)
        logs.append(
            (top + np.log(np.exp(terms - top).sum(axis=2, keepdims=True)))[..., 0]
        )
    found = []
    for p, q in (logs, logs[::-1]):
        integrand = np.exp(alpha * p + (1 - alpha) * q).sum(axis=1)
        found.append(math.log(weights @ integrand) / (alpha - 1))
    return max(found)


@EACH_LAW
@pytest.mark.parametrize("cases", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_soundness(law, cases):
    rng = np.random.default_rng(11)
    tight = 0
    for _ in range(cases):
        size = int(rng.integers(2, 5))
        distances = random_metric(rng, size)
        first, second = (random_rows(rng, int(n), size) for n in rng.integers(1, 8, 2))
        alpha = float(rng.choice([1.1, 1.5, 2.0, 4.0, 8.0]))
        epsilon = math.exp(rng.uniform(math.log(0.05), math.log(3)))
        pair = RowPair(
            Conditional.from_rows(first),
            Conditional.from_rows(second),
            rng.uniform(0.3, 3, 2),
            (None, distances),
        )
        answer = calibrate([pair], LAWS[law](), RowTransport(), Budget(alpha, epsilon))
        if not answer.scale.any():
            assert pair.first.same_distribution(pair.second)
            continue
        scale, theta = answer.scale.tolist()
        channel = Channel.of(distances, theta).probabilities
        truth = mixed_divergence(first, second, law, scale, channel, alpha)
        assert truth <= epsilon * (1 + 1e-9)
        assert answer.divergence(alpha) <= epsilon
        tight += truth > 0.5 * epsilon
    assert tight > cases / 10


@EACH_LAW
def test_without_categories_it_is_the_numeric_rule(law):
    rng = np.random.default_rng(12)
    for alpha in (1.5, 4.0) + ((math.inf,) if law == "laplace" else ()):
        rows = rng.integers(0, 5, (2, 12, 2)).astype(float)
        first, second = map(Conditional.from_rows, rows)
        weights, budget = np.array([1.0, 2.0]), Budget(alpha, 0.6)
        numeric = calibrate(
            [Pair(first, second, weights)],
            LAWS[law](),
            RULES["transport"](),
            budget,
        )
        mixed = calibrate(
            [RowPair(first, second, weights, (None, None))],
            LAWS[law](),
            RowTransport(),
            budget,
        )
        # Two searches for the same optimum.
        assert mixed.scale == pytest.approx(numeric.scale, rel=2e-4)
        worst = RowRange(WorstRow(np.array([[4.0, 4.0]]), (None, None)), weights)
        wide = calibrate([worst], LAWS[law](), RowTransport(), budget)
        assert (wide.scale >= mixed.scale).all()


@pytest.mark.parametrize(("alpha", "copies"), [(2.0, 1), (4.0, 1), (1.5, 3)])
def test_the_scale_is_that_of_a_linear_programme(alpha, copies):
    rng = np.random.default_rng(13)
    law = LAWS["laplace"]()
    for _ in range(8):
        distances = random_metric(rng, 3)
        first, second = (
            Conditional.from_rows(random_rows(rng, 8, 3)) for _ in range(2)
        )
        budget, weights = Budget(alpha, 0.8, copies), np.array([1.0, 0.7])
        pair = RowPair(first, second, weights, (None, distances))
        unit = RowTransport().calibrate(pair, law, budget).unit

        def best(unit, pair=pair, distances=distances, weights=weights):
            values = []
            for a, b in ((pair.first, pair.second), (pair.second, pair.first)):
                numbers = np.abs(np.subtract.outer(a.support[:, 0], b.support[:, 0]))
                moved = law.shift_divergence(
                    numbers.reshape(-1, 1), alpha=alpha, scale=unit * weights[:1]
                ).reshape(numbers.shape)
                table = Channel.of(distances, unit * weights[1]).table(alpha=alpha)
                moved += table[
                    np.ix_(a.support[:, 1].astype(int), b.support[:, 1].astype(int))
                ]
                n, m = moved.shape
                sums = np.zeros((n + m, n * m))
                for i in range(n):
                    sums[i, i * m : (i + 1) * m] = 1
                for j in range(m):
                    sums[n + j, j::m] = 1
                shares = np.concatenate([a.probabilities, b.probabilities])
                costs = np.exp((alpha - 1) * copies * moved).ravel()
                values.append(linprog(costs, A_eq=sums, b_eq=shares).fun)
            return max(values)

        target = math.exp(budget.log_target)
        assert best(unit) <= target * (1 + 1e-7)
        assert best(unit * 0.999) > target


def test_channels_of_two_directions_have_plans_of_their_own():
    first = Conditional.from_rows([[0.0], [1.0], [1.0]])
    second = Conditional.from_rows([[1.0], [2.0]])
    lopsided = np.array([[0, 1.0, 5], [1, 0, 1], [5, 1, 0]])
    for distances, directions in ((lopsided, 2), (discrete(3), 1)):
        pair = RowPair(first, second, np.ones(1), (distances,))
        assert len(pair.bound.directions) == directions
        assert (
            len(
                RowTransport()
                .calibrate(pair, LAWS["laplace"](), Budget(3.0, 0.4))
                .witness.directions
            )
            == directions
        )
    assert RowPair(first, second, np.ones(1), (ordinal(2),)).symmetric


@EACH_LAW
@pytest.mark.parametrize("alpha", [1.5, 4.0])
def test_the_worst_of_any_two_rows_of_a_set(law, alpha):
    # The widest shift of each number, and the worst inputs of each channel.
    columns = (None, discrete(2), None, ordinal(3), discrete(1))
    scale, ends = np.array([1.5, 0.8, 4.0, 0.6, 0.0]), np.array([[3.0, 1.0]])
    expected = cost(law, ends, alpha=alpha, scale=scale[[0, 2]])[0] / (alpha - 1)
    for place in (1, 3):
        rows = Channel.of(columns[place], scale[place]).probabilities
        moments = (rows[:, None] ** alpha * rows[None] ** (1 - alpha)).sum(axis=2)
        expected += math.log(moments.max()) / (alpha - 1)
    item = RowRange(WorstRow(ends, columns), np.ones(5))
    rule, noise, budget = RowTransport(), LAWS[law](), Budget(alpha, 1.0)
    found = rule.divergence(item.bound, noise, budget, scale)
    assert found == pytest.approx(expected, rel=1e-12)
    answer = calibrate([item], noise, rule, budget)
    assert 1 - 1e-4 < answer.divergence(alpha) <= 1


def test_a_column_without_noise_must_not_move():
    first = Conditional.from_rows([[1.0, 0.0], [1.0, 1.0]])
    second = Conditional.from_rows([[1.0, 0.0]])
    columns = (discrete(2), discrete(2))
    pair = RowPair(first, second, np.array([0.0, 1.0]), columns)
    answer = calibrate([pair], LAWS["laplace"](), RowTransport(), Budget(2.0, 0.5))
    assert answer.scale[0] == 0
    assert answer.scale[1] > 0
    moves = Moves.between(discrete(2), np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    assert moves.divergences(alpha=2.0, theta=0.0).tolist() == [0, math.inf]
    still = RowPair(first, first, np.ones(2), columns).bound
    assert (
        RowTransport().unit_scale(
            still, LAWS["laplace"](), Budget(2.0, 0.5), np.ones(2)
        )
        == 0
    )
    assert all(part.is_zero for part in still.directions)


def test_shifts_that_vanish_in_their_units_are_found_beside_others_that_stay():
    weights = np.array([1e10])
    tiny, still = (
        RowRange(WorstRow(np.array([[span]]), (None,)), weights)
        for span in (5e-324, 0.0)
    )
    for pairs in ([tiny], [still, tiny], [tiny, still]):
        with pytest.raises(CalibrationError, match="units of the column weights"):
            calibrate(pairs, LAWS["laplace"](), RowTransport(), Budget(2.0, 1.0))


def test_a_failed_refinement_costs_noise_alone(monkeypatch):
    rng = np.random.default_rng(14)
    pair = RowPair(
        *(Conditional.from_rows(random_rows(rng, 9, 3)) for _ in range(2)),
        np.ones(2),
        (None, ordinal(3)),
    )
    law, budget = LAWS["laplace"](), Budget(3.0, 0.5)
    best = RowTransport().calibrate(pair, law, budget).unit
    # As many plans as there may be, however little each gains.
    monkeypatch.setattr(_transport, "_REFINE_GAIN", -math.inf)
    assert RowTransport().calibrate(pair, law, budget).unit <= best

    def fail(*args):
        raise TransportPlanError

    monkeypatch.setattr(_transport, "solved_plan", fail)
    assert RowTransport().calibrate(pair, law, budget).unit >= best


def test_plans_are_solved_again_as_long_as_that_gains(monkeypatch):
    law, budget = LAWS["gaussian"](), Budget(8.0, 0.5)

    def gain(seed):
        rng = np.random.default_rng(seed)
        distances = random_metric(rng, 3)
        sides = [Conditional.from_rows(random_rows(rng, 7, 3)) for _ in range(2)]
        pair = RowPair(*sides, np.array([1.0, 0.5]), (None, distances))
        found = RowTransport().calibrate(pair, law, budget).unit
        with monkeypatch.context() as patch:
            patch.setattr(_transport, "_MAX_REFINEMENTS", 1)
            return 1 - found / RowTransport().calibrate(pair, law, budget).unit

    # Which of them gain depends on the plan that a solver begins with.
    gains = [gain(seed) for seed in range(85, 105)]
    assert min(gains) >= -1e-9
    assert max(gains) > 1e-4


def test_a_plan_that_needs_more_is_not_kept(monkeypatch):
    rng = np.random.default_rng(16)
    sides = [Conditional.from_rows(random_rows(rng, 9, 3)) for _ in range(2)]
    pair = RowPair(*sides, np.ones(2), (None, discrete(3)))
    law, budget, rule = LAWS["laplace"](), Budget(3.0, 0.5), RowTransport()
    first, second, _ = common_masses(*sides)

    def crossed(*_):
        rows, columns = (np.repeat(np.arange(len(m)), m) for m in (first, second))
        return Plan(rows, columns[::-1], np.ones_like(rows))

    monkeypatch.setattr(_transport, "solved_plan", crossed)
    found = rule.calibrate(pair, law, budget)
    assert found.unit == rule.unit_scale(pair.bound, law, budget, pair.weights)
    start = RowWitness((pair.direction(crossed()),))
    assert found.unit < rule.unit_scale(start, law, budget, pair.weights)


# --- very many rows -------------------------------------------------------------


def crowd(seed, n=150, size=4):
    rng = np.random.default_rng(seed)
    first, second = (
        Conditional.from_rows(
            np.column_stack(
                [
                    rng.normal(lean, 1, n),
                    rng.integers(0, 12, n),
                    rng.integers(lean, size, n),
                ]
            )
        )
        for lean in (0, 1)
    )
    return RowPair(
        first, second, np.array([1.0, 3.0, 1.0]), (None, None, discrete(size))
    )


def exact_margins(plan, pair):
    first, second, _ = common_masses(pair.first, pair.second)
    sums = np.zeros_like(first), np.zeros_like(second)
    np.add.at(sums[0], plan.rows, plan.mass)
    np.add.at(sums[1], plan.columns, plan.mass)
    return np.array_equal(sums[0], first) and np.array_equal(sums[1], second)


def test_cells():
    pair = crowd(0)
    first, second = cells_of(pair.first.support, pair.second.support, pair.is_number)
    # Never across categories.
    for rows, cells in ((pair.first, first), (pair.second, second)):
        for cell in np.unique(cells):
            assert len(np.unique(rows.support[cells == cell, 2])) == 1
    both = np.intersect1d(first, second)
    assert len(both) > 0
    # Too many categories for cells.
    many = np.arange(2.0 * _cells.CELLS).reshape(-1, 1)
    assert cells_of(many, many[:2], np.array([False])) is None


def test_cells_get_wider_until_they_are_few(monkeypatch):
    pair = crowd(1)
    monkeypatch.setattr(_cells, "CELLS", 40)
    first, second = cells_of(pair.first.support, pair.second.support, pair.is_number)
    assert max(len(np.unique(first)), len(np.unique(second))) <= 40


@pytest.mark.parametrize("alpha", [4.0, math.inf])
@pytest.mark.parametrize("table", [2**20, 10])
def test_the_search_comes_close_to_the_optimum(monkeypatch, alpha, table):
    law, budget = LAWS["laplace"](), Budget(alpha, 1.0, n_releases=2)
    best = RowTransport().calibrate(crowd(2), law, budget).unit
    monkeypatch.setattr(_rows, "EXACT_LIMIT", 10)
    monkeypatch.setattr(_cells, "CELLS", 60)
    monkeypatch.setattr(_costs, "_TABLE", table)
    pair = crowd(2)
    assert not pair.small
    assert exact_margins(pair.start, pair)
    found = RowTransport().calibrate(pair, law, budget)
    assert found.unit <= best * (1.1 if alpha == 4.0 else 1.3)
    assert RowTransport().holds(
        found.witness, law, budget, found.unit * (1 + 1e-9) * pair.weights
    )


def test_the_search_without_cells(monkeypatch):
    law, budget = LAWS["laplace"](), Budget(4.0, 1.0)
    best = RowTransport().calibrate(crowd(3), law, budget).unit
    monkeypatch.setattr(_rows, "EXACT_LIMIT", 10)
    monkeypatch.setattr(_cells, "CELLS", 1)
    pair = crowd(3)
    assert pair.cells is None
    assert exact_margins(pair.start, pair)
    assert RowTransport().calibrate(pair, law, budget).unit <= best * 1.1


@EACH_LAW
@pytest.mark.parametrize("budget", [Budget(1.5, 1.0), Budget(8.0, 0.5, n_releases=3)])
def test_the_search_ends_at_the_optimum_of_its_own_cost(monkeypatch, law, budget):
    # A plan for another order, or for one copy, needs up to a fifth more.
    best = RowTransport().calibrate(crowd(2), LAWS[law](), budget).unit
    monkeypatch.setattr(_rows, "EXACT_LIMIT", 10)
    monkeypatch.setattr(_cells, "CELLS", 60)
    found = RowTransport().calibrate(crowd(2), LAWS[law](), budget).unit
    assert found <= best * 1.0005


@pytest.mark.parametrize("solves", [0, 1, 3])
def test_plans_of_the_search_are_couplings(monkeypatch, solves):
    law, budget = LAWS["gaussian"](), Budget(3.0, 0.7)
    monkeypatch.setattr(_cells, "CELLS", 30)
    pair = replace(crowd(4), effort=Effort(solves=solves))
    first, second, _ = common_masses(pair.first, pair.second)

    def costs(rows, columns):
        return np.abs(
            np.subtract.outer(
                pair.first.support[rows, 0], pair.second.support[columns, 0]
            )
        )

    plan = coarse_plan(costs, pair.cells, pair.keys, first, second)
    assert exact_margins(plan, pair)

    def scale_of(found):
        witness = RowWitness((pair.direction(found),))
        return RowTransport().unit_scale(witness, law, budget, pair.weights)

    unit = scale_of(plan)
    for start in (plan, pair.start):
        better = searched_plan(pair, start, law, budget, unit, scale_of, 0.0)
        assert exact_margins(better, pair)
        assert scale_of(better) <= unit
    needed = scale_of(better)
    again = searched_plan(pair, better, law, budget, needed, scale_of, 2 * needed)
    assert scale_of(again) <= needed


def test_a_search_that_fails_costs_noise_alone(monkeypatch):
    law, budget, pair = LAWS["laplace"](), Budget(4.0, 1.0), crowd(4)
    start = pair.start

    def fail(*_):
        raise TransportPlanError("not today")

    monkeypatch.setattr(_descend, "emd_plan", fail)
    monkeypatch.setattr(_cells, "emd_plan", fail)
    needed = 2.0
    assert pair.cells is not None
    found = searched_plan(pair, start, law, budget, needed, lambda _: needed, 0.0)
    assert found is start


def test_a_pair_keeps_its_first_plan_within_a_share_of_its_effort():
    pair = crowd(5)
    part = pair.within(0.25)
    assert part.start is pair.start
    assert part.effort == pair.effort.part(0.25)


def test_both_directions_share_the_effort(monkeypatch):
    calls = []
    monkeypatch.setattr(_rows, "EXACT_LIMIT", 10)

    def searched(pair, start, *_):
        calls.append(pair.effort.solves)
        return start

    monkeypatch.setattr(_transport, "searched_plan", searched)
    both = replace(crowd(6), effort=Effort(solves=8))
    ends = (None, None, ordinal(both.columns[2].shape[0]))
    law, budget = LAWS["laplace"](), Budget(4.0, 1.0)
    RowTransport().calibrate(both, law, budget)
    assert calls == [8]
    calls.clear()
    RowTransport().calibrate(replace(both, columns=ends), law, budget)
    assert calls[0] == 4


def test_the_first_plan_and_the_search_share_the_effort(monkeypatch):
    spent = []

    def searched(plan, unit, *others, enough):
        spent.append(others[-1].solves)
        return plan

    def quadratic(*given, effort):
        spent.append(effort.solves)
        return quadratic_plan(*given, effort=effort)

    monkeypatch.setattr(_rows, "EXACT_LIMIT", 10)
    monkeypatch.setattr(_cells, "CELLS", 1)
    monkeypatch.setattr(_rows, "quadratic_plan", quadratic)
    monkeypatch.setattr(_plans, "descended_plan", searched)
    pair = replace(crowd(6), effort=Effort(solves=80))
    RowTransport().calibrate(pair, LAWS["laplace"](), Budget(4.0, 1.0))
    assert spent == [20, 60]


def test_weights_of_zero_do_not_count_in_the_embedding():
    rows = Conditional.from_rows([[5.0, 0.0], [9.0, 1.0]])
    pair = RowPair(rows, rows, np.array([0.0, 2.0]), (None, discrete(2)))
    points = pair.embedded(rows)
    assert points[:, 0].tolist() == [0, 0]
    assert np.linalg.norm(points[0] - points[1]) == pytest.approx(0.5)
    other = RowPair(rows, rows, np.array([1.0, 0.0]), (None, discrete(2)))
    assert np.linalg.norm(other.embedded(rows)[:, 1:], axis=1).all()


def test_equal_rows_stay_where_they_are():
    rows, mass = np.array([[0.0], [4.0]]), np.array([1, 2])
    plan = in_place_plan(rows, rows, mass, mass, pytest.fail)
    assert plan.rows.tolist() == plan.columns.tolist() == [0, 1]
    assert plan.mass.tolist() == [1, 2]


def test_points_share_an_origin_in_the_middle_of_both():
    # Sums of powers of two: exact near the origin and far from it.
    rng = np.random.default_rng(15)
    first, second = (rng.integers(0, 32, (n, 3)) / 4 for n in (9, 5))
    first[:, 2], second[:, 2] = rng.integers(0, 3, 9), rng.integers(0, 3, 5)
    first[3, 0], second[2, 1] = -20.0, 30.0
    found = []
    for far in (0.0, 2.0**40):
        sides = [
            Conditional.from_rows(rows + [far, -far, 0.0]) for rows in (first, second)
        ]
        pair = RowPair(*sides, np.array([2.0, 4.0, 1.0]), (None, None, ordinal(3)))
        points, others = pair.points
        both = np.concatenate([points, others])[:, :2]
        assert (both.min(axis=0) == -both.max(axis=0)).all()
        moved = sides[0].support[:, None, :2] - sides[1].support[None, :, :2]
        assert (points[:, None, :2] - others[None, :, :2] == moved / [2, 4]).all()
        found.append(both)
    assert (found[0] == found[1]).all()


def test_keys_add_numbers_in_their_units():
    rows = Conditional.from_rows([[1.0, 2.0, 7.0, 1.0], [4.0, 6.0, 7.0, 0.0]])
    other = Conditional.from_rows([[2.0, 0.5, 7.0, 1.0]])
    weights = np.array([0.5, 4.0, 0.0, 1.0])
    pair = RowPair(rows, other, weights, (None, None, None, discrete(2)))
    first, second = pair.keys
    assert first.tolist() == [2.5, 9.5]
    assert second.tolist() == [4.125]


def test_the_embedding_keeps_distances_in_their_units():
    distances = np.array([[0, 1.0, 5], [1, 0, 3], [5, 3, 0]])
    # The last code stands for any category, and is as far from each.
    rows = Conditional.from_rows(
        [[x, y, code] for x, y in ((0.0, 7.0), (2.0, 9.0)) for code in (0.0, 2.0, 3.0)]
    )
    for weights in ([0.5, 0.0, 0.25], [4.0, 1.0, 2.0]):
        pair = RowPair(rows, rows, np.array(weights), (None, None, distances))
        points = pair.embedded(rows)
        found = np.linalg.norm(points[:, None] - points[None], axis=2)
        apart = rows.support[:, None] - rows.support[None]
        numbers = [
            apart[..., k] / weight for k, weight in enumerate(weights[:2]) if weight
        ]
        moved = (apart[..., 2] != 0) * 3 / weights[2]
        expected = np.sqrt(sum(part**2 for part in [*numbers, moved]))
        assert found == pytest.approx(expected, rel=1e-12)
