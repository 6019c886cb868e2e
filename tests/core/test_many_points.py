"""Couplings of many points: against those of few, which are solved to optimality."""

import math

import numpy as np
import pytest
from plans_support import assert_coupling, pair_masses
from scipy.optimize import linprog

from skpuffer.core.calibration import RULES, Budget, Pair, _shift_rule
from skpuffer.core.laws import LAWS
from skpuffer.core.plans import (
    Column,
    Effort,
    Plan,
    Search,
    SummedCosts,
    TransportPlanError,
    _costs,
    _descend,
    _effort,
    _search,
    descended_plan,
    emd_plan,
    projected_plan,
    summed,
)
from skpuffer.core.prior import Conditional, common_masses

CASES = [
    ("transport", "gaussian", 2.0, 1.0),
    ("transport", "gaussian", 20.0, 0.3),
    ("transport", "laplace", 2.0, 1.0),
    ("transport", "laplace", 8.0, 0.5),
    ("transport", "exponential", 3.0, 1.0),
    ("alpha_wasserstein", "laplace", 2.0, 1.0),
    ("alpha_wasserstein", "exponential", 2.0, 1.0),
    ("transport", "laplace", math.inf, 1.0),
    ("w_inf", "gaussian", 2.0, 1.0),
]
EACH = pytest.mark.parametrize(("rule", "law", "alpha", "epsilon"), CASES)


def limit(patch, points=5):
    """Let the search begin beyond fewer points."""
    for module in (_shift_rule, _search):
        patch.setattr(module, "EXACT_LIMIT", points)


def small_parts(patch):
    for name, size in (("_LEAST", 8), ("_FIRST", 24), ("_USUAL", 48), ("_MOST", 96)):
        patch.setattr(_descend, name, size)


def groups(seed, n=160, heavy=True, k=3):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(n, k)), rng.normal(size=(n - 20, k)) + 0.3
    if heavy:
        a, b = (np.round(2 * x * np.abs(x), 1) for x in (a, b))
    return a, b


def pair_of(a, b, effort=None, weights=None):
    weights = np.ones(a.shape[1]) if weights is None else weights
    ends = Conditional.from_rows(a), Conditional.from_rows(b)
    return Pair(*ends, weights, Effort() if effort is None else effort)


def calibrated(pair, rule, law, alpha, epsilon):
    return RULES[rule]().calibrate(pair, LAWS[law](), Budget(alpha, epsilon))


# --- rules ---


@EACH
def test_one_part_that_holds_all_is_solved_to_optimality(
    rule, law, alpha, epsilon, monkeypatch
):
    a, b = groups(1, n=60)
    best = calibrated(pair_of(a, b), rule, law, alpha, epsilon)
    limit(monkeypatch)
    found = calibrated(pair_of(a, b), rule, law, alpha, epsilon)
    # The moment that stands for the largest exponent is not the largest exponent.
    largest = math.isinf(alpha) or rule == "w_inf"
    assert (
        best.unit * (1 - 1e-4) <= found.unit <= best.unit * (1.05 if largest else 1.002)
    )


@EACH
@pytest.mark.parametrize("seed", [2])
def test_small_parts_come_close(rule, law, alpha, epsilon, seed, monkeypatch):
    a, b = groups(seed)
    best = calibrated(pair_of(a, b), rule, law, alpha, epsilon)
    limit(monkeypatch)
    small_parts(monkeypatch)
    pair, budget = pair_of(a, b), Budget(alpha, epsilon)
    found = calibrated(pair, rule, law, alpha, epsilon)
    first = RULES[rule]().first(pair, LAWS[law](), budget)
    assert best.unit * (1 - 1e-4) <= found.unit <= 1.12 * best.unit
    assert found.unit <= first.unit
    # What is returned satisfies the condition, and its marginals those of the data.
    scale = found.unit * (1 + 1e-9) * pair.weights
    assert RULES[rule]().holds(found.witness, LAWS[law](), budget, scale)
    assert found.witness.mass.sum() == pytest.approx(1)


def test_the_optimum_is_that_of_a_linear_programme(monkeypatch):
    # By another road than the solver that the search uses.
    limit(monkeypatch)
    a, b = groups(4, n=50, k=2)
    pair, law, budget = pair_of(a, b), LAWS["gaussian"](), Budget(2.0, 1.0)
    found = calibrated(pair, "transport", "gaussian", 2.0, 1.0)
    first, second, total = common_masses(pair.first, pair.second)
    n, m = len(first), len(second)
    gaps = pair.first.support[:, None] - pair.second.support[None]
    cost = np.exp(np.minimum((gaps**2).sum(axis=2) / found.unit**2, 12.0))
    margins = np.vstack(
        [np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))]
    )
    shares = np.concatenate([first, second]) / total
    least = linprog(cost.ravel(), A_eq=margins, b_eq=shares, method="highs").fun
    assert least == pytest.approx(math.exp(budget.log_target), rel=2e-3)
    assert law.name == "gaussian"


def test_several_releases_and_a_constant_column(monkeypatch):
    limit(monkeypatch)
    small_parts(monkeypatch)
    a, b = groups(5)
    wide, other = (np.insert(x, 1, 7.0, axis=1) for x in (a, b))
    rule, law, budget = RULES["transport"](), LAWS["laplace"](), Budget(2.0, 1.0, 3)
    plain = rule.calibrate(pair_of(a, b), law, budget).unit
    weights = np.array([1.0, 0.0, 1.0, 1.0])
    assert (
        rule.calibrate(pair_of(wide, other, None, weights), law, budget).unit == plain
    )
    assert plain > rule.calibrate(pair_of(a, b), law, Budget(2.0, 1.0)).unit


@pytest.mark.parametrize("rule", ["transport", "w_inf"])
@pytest.mark.parametrize("heavy", [False, True])
def test_neither_row_order_nor_offset_nor_a_second_run_matters(
    rule, heavy, monkeypatch
):
    limit(monkeypatch)
    small_parts(monkeypatch)
    rng = np.random.default_rng(6)
    a, b = (np.round(256 * x) / 256 for x in groups(6, heavy=heavy))
    case = rule, "laplace", 4.0, 1.0
    first = calibrated(pair_of(a, b), *case)
    again = calibrated(pair_of(rng.permutation(a), rng.permutation(b)), *case)
    assert again.unit == first.unit
    assert np.array_equal(again.witness.shifts, first.witness.shifts)
    far = calibrated(pair_of(a + 2.0**30, b + 2.0**30), *case)
    assert far.unit == first.unit


def test_masses_beyond_int64(monkeypatch):
    limit(monkeypatch)
    small_parts(monkeypatch)
    rng = np.random.default_rng(7)
    a, b = groups(7, n=90)
    ends = [Conditional.from_rows(x, rng.random(len(x))) for x in (a, b)]
    assert common_masses(*ends)[0].dtype == object
    pair = Pair(*ends, np.ones(3))
    found = calibrated(pair, "transport", "gaussian", 2.0, 1.0)
    assert (
        found.unit
        < RULES["transport"]().first(pair, LAWS["gaussian"](), Budget(2.0, 1.0)).unit
    )


# --- effort ---


@pytest.mark.parametrize("solves", [0, 1, 2, 5, 30, 100])
def test_no_more_parts_are_solved_than_allowed(solves, monkeypatch):
    limit(monkeypatch)
    small_parts(monkeypatch)
    seen = []
    effort = Effort(solves=solves, report=lambda *told: seen.append(told))
    solved = []
    real = _descend.emd_plan
    monkeypatch.setattr(
        _descend, "emd_plan", lambda *args: solved.append(1) or real(*args)
    )
    pair = pair_of(*groups(8), effort)
    found = calibrated(pair, "transport", "gaussian", 2.0, 1.0)
    assert len(solved) <= solves
    # Once more for the end of each search: of the first plan there is none.
    assert len(seen) - len(solved) in (0, 1)
    assert all(done <= total for done, total in seen)
    if solves > 2:
        assert seen[-1][0] == seen[-1][1]
    first = RULES["transport"]().first(pair, LAWS["gaussian"](), Budget(2.0, 1.0))
    assert found.unit <= first.unit


def test_more_effort_needs_no_more_noise_here(monkeypatch):
    limit(monkeypatch)
    small_parts(monkeypatch)
    a, b = groups(9)
    units = [
        calibrated(
            pair_of(a, b, Effort(solves=n)), "transport", "gaussian", 2.0, 1.0
        ).unit
        for n in (0, 20, 100, 1000)
    ]
    # Not in every step: different first plans lead to different last ones.
    assert units[0] > max(units[1:])
    assert units[-1] <= 1.01 * min(units)
    assert units[-1] < 0.8 * units[0]


def test_pairs_of_points_are_counted(monkeypatch):
    limit(monkeypatch)
    small_parts(monkeypatch)
    looked_at = []
    real = _descend.emd_plan
    monkeypatch.setattr(
        _descend,
        "emd_plan",
        lambda a, b, cost: looked_at.append(cost.size) or real(a, b, cost),
    )
    pair = pair_of(*groups(8), Effort(pairs=4000))
    calibrated(pair, "transport", "gaussian", 2.0, 1.0)
    # The part under way in each of two searches is finished.
    assert 3000 < sum(looked_at) < 4000 + 2 * max(looked_at)


def test_a_limit_of_time_ends_a_search_early(monkeypatch):
    limit(monkeypatch)
    small_parts(monkeypatch)
    now = [1e6]  # as of a machine that has run for long

    def clock():
        now[0] += 0.01
        return now[0]

    monkeypatch.setattr(_effort.time, "monotonic", clock)
    seen = []
    effort = Effort(
        math.inf, math.inf, 1.0, gain=0.0, report=lambda *told: seen.append(told)
    )
    pair = pair_of(*groups(8), effort)
    rule, law, budget = RULES["transport"](), LAWS["gaussian"](), Budget(2.0, 1.0)
    found = rule.calibrate(pair, law, budget)
    assert 5 < len(seen) < 100
    assert seen[-1][0] == seen[-1][1]
    assert rule.holds(
        found.witness, law, budget, found.unit * (1 + 1e-9) * pair.weights
    )


def test_a_pair_keeps_its_first_plan_within_a_share_of_its_effort():
    pair = pair_of(*groups(8))
    part = pair.within(0.25)
    assert part.plan is pair.plan
    assert part.effort == Effort().part(0.25)


def test_a_share_of_no_time_limit_is_none():
    assert Effort().part(0.5).seconds is None
    assert Effort(seconds=8.0).part(0.5).seconds == 4.0
    assert _effort.Meter(Effort(solves=0)).spent
    assert _effort.Meter(Effort(seconds=0.0)).spent


# --- the search itself ---


def squares(a, b):
    columns = [Column(x, y) for x, y in zip(a.T, b.T, strict=True)]
    return summed(columns, lambda _, distance: distance**2)


def paid(plan, a, b):
    distance = ((a[plan.rows] - b[plan.columns]) ** 2).sum(axis=1)
    return plan.mass.astype(float) @ np.expm1(distance)


@pytest.mark.parametrize("kind", [np.int64, object])
@pytest.mark.parametrize("spread", [1e-9, 1.0, 3.0])
def test_a_pass_keeps_marginals_and_never_costs_more(kind, spread, monkeypatch):
    small_parts(monkeypatch)
    rng = np.random.default_rng(10)
    a, b = spread * rng.normal(size=(150, 2)), spread * (rng.normal(size=(170, 2)) + 1)
    masses = [v.astype(kind) for v in pair_masses(rng, 150, 170, 30)]
    plan = emd_plan(*masses, rng.random((150, 170)))  # any coupling
    search, costs = Search(a, b, Effort()), squares(a, b)
    before = paid(plan, a, b)
    for number in range(6):
        plan = search.pass_over(plan, costs)
        assert_coupling(plan, *masses)
        assert plan.mass.dtype == masses[0].dtype
        assert paid(plan, a, b) <= before * (1 + 1e-9)
        assert number > 0 or paid(plan, a, b) < 0.6 * before
        before = paid(plan, a, b)


def test_infinite_costs_are_left_where_they_can_be():
    a, b = np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])
    index, one = np.arange(2), np.ones(2, dtype=np.int64)
    costs = SummedCosts(1.0)
    costs.add_table(index, index, np.array([[np.inf, 1.0], [0.5, np.inf]]))
    plan = Search(a, b, Effort()).pass_over(Plan(index, index, one), costs)
    assert sorted(zip(plan.rows.tolist(), plan.columns.tolist(), strict=True)) == [
        (0, 1),
        (1, 0),
    ]


@pytest.mark.parametrize("far", [800.0, 1e4, 3e5, np.inf])
def test_costs_of_any_range_are_told_apart(far):
    # One pair costs beyond all floats, another little; an exchange spares both.
    index, one = np.arange(2), np.ones(2, dtype=np.int64)
    costs = SummedCosts(1.0)
    costs.add_table(index, index, np.array([[far, 1.0], [0.5, 0.01]]))
    x = np.array([[0.0], [1.0]])
    plan = Search(x, x, Effort()).pass_over(Plan(index, index, one), costs)
    assert sorted(zip(plan.rows.tolist(), plan.columns.tolist(), strict=True)) == [
        (0, 1),
        (1, 0),
    ]


def test_parts_are_compact_and_all_there(monkeypatch):
    small_parts(monkeypatch)
    rng = np.random.default_rng(11)
    middles = rng.normal(size=(500, 2))
    search = Search(middles, middles, Effort())
    parts = search._parts(middles)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(500))
    sizes = [len(part) for part in parts]
    assert 12 <= min(sizes) <= max(sizes) <= 24
    within = np.mean([middles[part].var(axis=0).sum() for part in parts])
    assert within < 0.2 * middles.var(axis=0).sum()
    # New directions each time.
    assert not np.array_equal(parts[0], search._parts(middles)[0])


def test_parts_grow_when_little_is_gained(monkeypatch):
    small_parts(monkeypatch)
    a, b = groups(12, heavy=False)
    costs = squares(a, b)
    plan = projected_plan(
        a, b, np.full(160, 7), np.full(140, 8), effort=Effort(solves=0)
    )

    def sizes(effort):
        search, found = Search(a, b, effort), []
        while not search.over:
            search.pass_over(plan, costs)
            found.append(search._size)
            search.settle(0.0)
        assert search.level == len(found)
        return found

    # A pass in the largest parts would take more than a twentieth of the effort.
    assert sizes(Effort(pairs=1e5)) == [24, 48]
    assert sizes(Effort()) == [24, 48, 96]
    search = Search(a, b, Effort())
    search.settle(0.5)
    assert (search.level, search.over, search._size) == (0, False, 24)
    # Very many points begin in smaller parts.
    assert Search(a, b, Effort(pairs=1e4))._size == 8


def test_a_search_is_over_once_one_part_held_all(monkeypatch):
    small_parts(monkeypatch)
    x, index = np.arange(40.0)[:, None] / 20, np.arange(40)
    plan, seen = Plan(index, index[::-1], np.ones(40, dtype=np.int64)), []
    search = Search(x, x, Effort())
    while not search.over:
        seen.append((len(search._parts(x)), search._size))
        search.pass_over(plan, squares(x, x))
        search.settle(0.0)
    assert seen == [(2, 24), (1, 48)]


def test_a_search_is_over_with_its_effort(monkeypatch):
    small_parts(monkeypatch)
    x, index = np.arange(40.0)[:, None] / 20, np.arange(40)
    plan = Plan(index, index[::-1], np.ones(40, dtype=np.int64))
    for solves, over in ((2, True), (3, False)):
        told = []
        search = Search(
            x, x, Effort(solves=solves, report=lambda *now, told=told: told.append(now))
        )
        search.pass_over(plan, squares(x, x))
        search.settle(0.5)
        assert search.over == over
        assert told == [(1, solves), (2, solves), (2, 2)][: 2 + over]


def test_parts_that_pay_next_to_nothing_are_left(monkeypatch):
    monkeypatch.setattr(_descend, "_FIRST", 4)
    monkeypatch.setattr(_descend, "_LEAST", 4)
    index, told = np.arange(8), []
    columns = np.array([2, 1, 0, 3, 6, 5, 4, 7])
    for near, parts in ((0.5, 2), (0.02, 1)):
        # Two parts far from each other; in one the moves are of 2, in one of `near`.
        x = np.append(np.arange(4.0), 100 + near / 2 * np.arange(4))[:, None]
        told.clear()
        effort = Effort(report=lambda *now: told.append(now))
        crossed = Plan(index, columns, np.ones(8, dtype=np.int64))
        plan = Search(x, x, effort).pass_over(crossed, squares(x, x))
        assert len(told) == parts
        assert (plan.rows != plan.columns).sum() == 4 - 2 * parts


def test_the_costliest_parts_come_first(monkeypatch):
    monkeypatch.setattr(_descend, "_FIRST", 4)
    monkeypatch.setattr(_descend, "_LEAST", 4)
    x, index = np.arange(40.0)[:, None] / 20, np.arange(40)
    x[39] = 3.0
    columns = np.array([2, 1, 0, *range(3, 37), 39, 38, 37])  # the second is dearer
    crossed = Plan(index, columns, np.ones(40, dtype=np.int64))
    plan = Search(x, x, Effort(solves=1)).pass_over(crossed, squares(x, x))
    assert sorted(plan.rows[plan.rows != plan.columns]) == [0, 2]


def test_a_solver_that_finds_nothing_better_changes_nothing(monkeypatch):
    x, index = np.arange(3.0)[:, None], np.arange(3)
    crossed = Plan(index, np.array([2, 1, 0]), np.ones(3, dtype=np.int64))
    monkeypatch.setattr(_descend, "emd_plan", lambda *_: crossed)
    plan = Search(x, x, Effort()).pass_over(crossed, squares(x, x))
    assert sorted(zip(*plan, strict=True)) == sorted(zip(*crossed, strict=True))


def test_a_search_that_fails_keeps_its_start(monkeypatch):
    def fail(*_):
        raise TransportPlanError("not today")

    monkeypatch.setattr(_descend, "emd_plan", fail)
    x, index = np.arange(3.0)[:, None], np.arange(3)
    crossed = Plan(index, np.array([2, 1, 0]), np.ones(3, dtype=np.int64))
    found = descended_plan(
        crossed, 1.0, x, x, lambda *_: squares(x, x), lambda _: 0.5, Effort()
    )
    assert found is crossed


def test_the_best_plan_counts_not_the_last():
    x, index = np.arange(3.0)[:, None], np.arange(3)
    crossed = Plan(index, np.array([2, 1, 0]), np.ones(3, dtype=np.int64))
    told = [2.0]
    found = descended_plan(
        crossed, 1.0, x, x, lambda *_: squares(x, x), lambda _: told[0], Effort()
    )
    assert found is crossed
    assert (
        descended_plan(crossed, 1.0, x, x, None, None, Effort(), enough=1.0) is crossed
    )


# --- costs ---


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("table", [10, 2**17])
def test_costs_add_up_over_columns(power, table, monkeypatch):
    monkeypatch.setattr(_costs, "_TABLE", table)
    rng = np.random.default_rng(13)
    a, b = rng.normal(size=(30, 2)), rng.normal(size=(20, 2)) * 3
    columns = [Column(x, y) for x, y in zip(a.T, b.T, strict=True)]
    assert columns[0].few == (table > 10)
    costs = summed(columns, lambda k, distance: (k + 1) * distance**power, 0.25)
    gaps = np.abs(a[:, None] - b[None]) ** power
    expected = 0.25 * (gaps * [1, 2]).sum(axis=2)
    rows, others = np.arange(5, 30), np.arange(20)
    np.testing.assert_allclose(
        costs.table(rows, others), expected[5:], rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(
        costs.along(others, others), np.diag(expected), rtol=1e-12
    )


def test_no_table_holds_all_pairs_of_very_many_values():
    # Of either side the values count once, however often they occur.
    rng, seen = np.random.default_rng(15), []

    def cost(distance):
        seen.append(distance.size)
        return distance

    for n, m, few in ((2000, 2000, False), (2, 100_000, False), (300, 300, True)):
        seen.clear()
        column = Column(rng.normal(size=n).repeat(2), rng.normal(size=m).repeat(2))
        costs = SummedCosts(1.0)
        costs.add(column, cost)
        assert (max(seen) == n * m) == column.few == few
        assert max(seen) <= 2**17
        found = costs.table(np.arange(2 * n)[-4:], np.arange(2 * m)[-3:])
        gaps = np.abs(column.values[-4:, None] - column.others[None, -3:])
        np.testing.assert_allclose(found, gaps, rtol=1e-3, atol=1e-3)


def test_the_farthest_of_two_columns():
    rng = np.random.default_rng(14)
    for offset in (-40.0, -1.0, 0.0, 1.0, 40.0):
        for n, m in ((1, 1), (1, 4), (6, 3)):
            a, b = rng.normal(size=n), rng.normal(size=m) * 3 + offset
            expected = np.abs(a[:, None] - b[None]).max()
            assert Column(a, b).farthest == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("farthest", 8.01 * np.exp(np.linspace(0, 4, 9)))
def test_a_curve_is_near_where_costs_matter(farthest, monkeypatch):
    # However far the farthest are: an exponent of 16 is told from all others.
    monkeypatch.setattr(_costs, "_TABLE", 1)
    x = np.array([0.0, farthest])
    others = np.array([0.0, 1e-3, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0])
    index = np.arange(8)
    for cost in (np.square, np.sqrt, lambda distance: distance):
        costs = summed([Column(x, others)], lambda _, distance, f=cost: f(distance))
        found = costs.table(np.array([0]), index)[0]
        np.testing.assert_allclose(found, cost(others), rtol=2e-3, atol=2e-3)
        exact = costs.along(np.zeros(8, dtype=int), index)
        np.testing.assert_array_equal(exact, cost(others))


def test_a_curve_reaches_as_far_as_costs_matter(monkeypatch):
    monkeypatch.setattr(_costs, "_TABLE", 1)
    ends = np.array([0.0, 1e6])
    costs = summed([Column(ends, ends + 0.25)], lambda _, distance: distance**2)
    table = costs.table(np.arange(2), np.arange(2))
    assert table[0, 0] == pytest.approx(1 / 16, rel=1e-3)
    assert table[0, 1] > _costs._USEFUL
