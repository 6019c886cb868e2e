"""Scales for very many shifts: fewer looks, the same answers; several orders at once."""

import math

import numpy as np
import pytest
from core_support import EACH_LAW, SHIFT_RULES, bounded, cost
from scipy.special import logsumexp

from skpuffer.core.calibration import (
    RULES,
    Budget,
    Calibration,
    Pair,
    _many_orders,
    _shift_rule,
    _solve,
    calibrate,
)
from skpuffer.core.calibration._many_orders import divergences_at
from skpuffer.core.laws import LAWS, Exponential, Laplace, shift_moments
from skpuffer.core.prior import Conditional
from skpuffer.core.shifts import CELLS, ShiftBound

ONE = np.ones(1)


def pair(first, second):
    conditionals = (Conditional.from_rows(rows[:, None]) for rows in (first, second))
    return Pair(*conditionals, ONE)


def shapes():
    rng = np.random.default_rng(5)
    normal = rng.normal(size=3000), rng.normal(0.3, 1.1, 3000)
    tails = rng.lognormal(0, 1.5, 3000), rng.lognormal(0.2, 1.5, 3000)
    # So many that they are grouped.
    many = rng.normal(size=70_000), rng.normal(0.3, 1.1, 70_001)
    # All but one move alike: few cells know nothing of the rest.
    lonely = np.linspace(0, 1, 3000), np.append(np.linspace(0.1, 1.1, 2999), 1e6)
    return {"normal": normal, "tails": tails, "many": many, "lonely": lonely}


PAIRS = {name: pair(*rows) for name, rows in shapes().items()}


def plain(monkeypatch, item, law, rule, budget):
    """Calibrate with all shifts from the start."""
    with monkeypatch.context() as patch:
        patch.setattr(_shift_rule, "_few", lambda witness, law: witness)
        return calibrate([item], law, rule, budget).scale[0]


@EACH_LAW
@pytest.mark.parametrize("rule", SHIFT_RULES)
@pytest.mark.parametrize("name", PAIRS)
def test_the_scale_is_that_of_all_shifts(monkeypatch, law, rule, name):
    law, rule, item = LAWS[law](), RULES[rule](), PAIRS[name]
    if not law.convex and name != "normal":
        pytest.skip("takes long, and goes the same way")
    for alpha, epsilon in ((1.05, 0.5), (6.0, 0.1), (6.0, 3.0)):
        budget = Budget(alpha, epsilon)
        scale = calibrate([item], law, rule, budget).scale[0]
        expected = plain(monkeypatch, item, law, rule, budget)
        # A step of the grid, where the root is next to a multiple; two at its ends.
        assert abs(scale / expected - 1) < 3 * 2.0**-20
        step = 2.0 ** (math.floor(math.log2(scale)) - 20)
        first = rule.first(item, law, budget)
        witness = first.witness.on_grid(np.array([step]))
        assert rule.holds(witness, law, budget, np.array([scale]))
        if first.is_least:
            less = np.array([scale * (1 - 4 * 2.0**-20)])
            assert not rule.holds(witness, law, budget, less)


def test_few_looks_at_all_shifts(monkeypatch):
    item, looks = PAIRS["many"], []
    functional = RULES["transport"].functional

    def counted(self, bound, *given):
        looks.append(len(bound.mass))
        return functional(self, bound, *given)

    monkeypatch.setattr(RULES["transport"], "functional", counted)
    item.bound.compressed()
    for epsilon in (0.2, 2.0):
        looks.clear()
        calibrate([item], LAWS["laplace"](), RULES["transport"](), Budget(4.0, epsilon))
        assert sum(size > 1000 for size in looks) <= 3
        assert len(looks) <= 12


def test_a_guess_that_leads_nowhere_is_replaced_by_the_root(monkeypatch):
    law, rule, item = LAWS["laplace"](), RULES["transport"](), PAIRS["normal"]
    budget = Budget(4.0, 1.0)
    expected = rule.first(item, law, budget)
    for bad in (1e-9, 1e9):
        with monkeypatch.context() as patch:
            near = _solve.Root(bad * expected.unit, 1.5)
            patch.setattr(type(rule), "_near", lambda *given, near=near: near)
            found = rule.first(item, law, budget)
        assert not found.is_least
        assert found.unit == pytest.approx(expected.unit, rel=1e-5)
        assert rule.holds(item.bound, law, budget, found.unit * ONE)
    # Steps that never become short.
    monkeypatch.setattr(_shift_rule, "_SETTLED", 0.0)
    found = rule.first(item, law, budget)
    assert not found.is_least
    assert found.unit == pytest.approx(expected.unit, rel=1e-5)


def test_a_guess_that_fails_on_the_grid_is_looked_at_again(monkeypatch):
    law, rule, item = LAWS["laplace"](), RULES["transport"](), PAIRS["normal"]
    budget = Budget(4.0, 1.0)
    expected = calibrate([item], law, rule, budget).scale
    monkeypatch.setattr(_shift_rule, "_MARGIN", -1e-3)
    scale = calibrate([item], law, rule, budget).scale
    assert scale == pytest.approx(expected, rel=4e-6)
    assert (scale >= expected * (1 - 2.0**-19)).all()


def test_equal_groups_of_many_rows_need_nothing():
    rows = np.linspace(0, 1, 3000)
    item = pair(rows, rows)
    answer = RULES["transport"]().first(item, LAWS["laplace"](), Budget(2.0, 1.0))
    assert answer.unit == 0
    assert not RULES["w_inf"]().first(item, LAWS["gaussian"](), Budget(2.0, 1.0)).unit


# --- several orders at once ---


ORDERS = np.array([1.001, 1.5, 2.0, 7.0, 40.0, 1000.0])


@pytest.mark.parametrize(
    "law", [*(LAWS[name]() for name in LAWS), Exponential(1.0)], ids=[*LAWS, "power 1"]
)
def test_a_law_takes_several_orders(law):
    rng = np.random.default_rng(2)
    shifts = np.abs(rng.normal(size=(40, 2))) * 10.0 ** rng.integers(-9, 4, (40, 1))
    shifts[0] = 0
    scale = np.array([1.0, 0.3])
    for width in (1, 2):
        part, units = shifts[:, :width], scale[:width]
        found = law.shift_divergence(part, alpha=ORDERS, scale=units)
        one = [
            law.shift_divergence(part, alpha=a, scale=units) for a in ORDERS.tolist()
        ]
        assert found.shape == (len(ORDERS), 40)
        np.testing.assert_allclose(found, one, rtol=1e-13)
    still = law.shift_divergence([[0.0], [1.0]], alpha=ORDERS, scale=0.0)
    assert (still[:, 0] == 0).all()
    assert np.isposinf(still[:, 1]).all()


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_divergences_at_several_orders(law, copies):
    rule, law = RULES["transport"](), LAWS[law]()
    rng = np.random.default_rng(3)
    for size in (5, 30_000):
        mass = rng.random(size)
        bound = ShiftBound(rng.exponential(size=(size, 1)), mass / mass.sum())
        for scale in (np.array([2.0]), np.array([0.01]), np.zeros(1)):
            found = divergences_at(bound, law, ORDERS, scale, copies)
            one = [
                rule.divergence(bound, law, Budget(a, 1.0, copies), scale)
                for a in ORDERS.tolist()
            ]
            # Bounds, if rough ones; no less than the sums at one order.
            assert (found >= np.array(one) * (1 - 1e-14)).all()
            np.testing.assert_allclose(found, one, rtol=2.0**-18)


def test_a_calibration_bounds_orders_one_by_one_where_it_knows_no_better():
    answer = Calibration(ONE, 0, lambda alpha: 2 * alpha)
    assert answer.at([2.0, 3.0]).tolist() == [4.0, 6.0]
    many = calibrate(
        [PAIRS["normal"], PAIRS["tails"]],
        LAWS["laplace"](),
        RULES["transport"](),
        Budget(4.0, 1.0),
    )
    found = many.at(ORDERS.tolist())
    one = [many.divergence(alpha) for alpha in ORDERS.tolist()]
    assert (found >= np.array(one) * (1 - 1e-14)).all()
    np.testing.assert_allclose(found, one, rtol=2.0**-18)
    assert one[3] > 1 > one[0]


@EACH_LAW
@pytest.mark.parametrize("alpha", [1.3, 4.0, 20.0])
def test_a_profile_is_no_less_than_the_mean_over_all_shifts(law, alpha):
    # Whatever stands for very many shifts, where costs are concave too.
    rng = np.random.default_rng(9)
    shifts, mass = rng.lognormal(0, 1, (3000, 1)), rng.dirichlet(np.ones(3000))
    answer = calibrate(
        [bounded(shifts, mass)], LAWS[law](), RULES["transport"](), Budget(2.0, 0.5)
    )
    exponents = cost(law, shifts, alpha=alpha, scale=answer.scale)
    least = logsumexp(exponents, b=mass) / (alpha - 1)
    for found in (answer.divergence(alpha), answer.at([alpha, 2 * alpha])[0]):
        assert least * (1 - 1e-12) <= found <= least * 1.01


def test_at_infinity_the_largest_shift_of_any_pair_counts():
    both = [PAIRS["normal"], PAIRS["tails"]]
    answer = calibrate(both, LAWS["laplace"](), RULES["transport"](), Budget(4.0, 1.0))
    sides = ((item.first.support, item.second.support) for item in both)
    farthest = max(np.abs(first - second).max() for first, second in sides)
    found = answer.divergence(math.inf) * answer.scale[0]
    # Rounding to the grid adds a step at the most.
    assert farthest <= found <= farthest + 2**-19 * answer.scale[0]


# --- what a bound remembers ---


def test_a_bound_remembers_its_last_answers():
    shifts = np.random.default_rng(0).exponential(size=(5000, 1))
    bound = ShiftBound(shifts, np.full(5000, 1 / 5000))
    fewer = bound.compressed(64)
    assert bound.compressed(64) is fewer
    others = [bound.compressed(cells) for cells in (16, 32, 128)]
    assert bound.compressed(64) is fewer
    bound.compressed(256)
    assert bound.compressed(128) is others[-1]
    again = bound.compressed(64)
    assert again is not fewer
    np.testing.assert_array_equal(again.shifts, fewer.shifts)
    # Itself it does not hold.
    assert bound.compressed(5000) is bound
    assert all(item is not bound for item in vars(bound)["_compressed"].values())
    step = np.array([0.25])
    moved = bound.on_grid(step)
    assert bound.on_grid(step.copy()) is moved
    assert not np.array_equal(bound.on_grid(2 * step).shifts, moved.shifts)
    assert bound.rounded_up(64) is bound.rounded_up(64)


# --- the root finder ---


def test_looks_at_a_smooth_functional():
    looks = []

    def functional(scale):
        looks.append(scale)
        return (3 / scale) ** 1.7 + (1 / scale) ** 3

    for start in (0.01, 3.0, 1e4):
        looks.clear()
        root = _solve.find_root(functional, 1.0, start=start)
        assert len(looks) <= 9
        assert functional(root.scale) <= 1 < functional(root.scale * (1 - 1e-10))
        slope = math.log(functional(2.9) / functional(3.5)) / math.log(3.5 / 2.9)
        assert root.fall == pytest.approx(slope, rel=0.1)
        looks.clear()
        rough = _solve.find_root(functional, 1.0, start=start, tolerance=1e-4)
        assert root.scale <= rough.scale <= root.scale * (1 + 1.1e-4)
        looks.clear()
        near = _solve.find_root(functional, 1.0, start=rough.scale, fall=rough.fall)
        assert near.scale == pytest.approx(root.scale, rel=1e-10)
        assert len(looks) <= 4


def test_log_moments_are_those_of_each_row():
    exponents = np.array(
        [[0.0, 1.0, 2.0], [0.0, 900.0, 3.0], [math.inf, 0.0, 1.0], [0.0, 0.0, 0.0]]
    )
    mass = np.array([0.2, 0.5, 0.3])
    one = [_solve.log_moment(row, mass) for row in exponents]
    np.testing.assert_allclose(
        _many_orders.log_moments(exponents.copy(), mass), one, rtol=1e-14
    )
    np.testing.assert_allclose(
        _many_orders.log_moments(exponents[:1].copy(), mass), one[:1], rtol=1e-14
    )
    assert _many_orders.log_moments(exponents[1:3].copy(), mass)[1] == math.inf


def test_equal_groups_of_many_uneven_masses_need_nothing():
    size = 2 * CELLS + 2
    group = Conditional.from_rows(
        np.arange(size, dtype=float)[:, np.newaxis], counts=1 + np.arange(size) % 2
    )
    same = Conditional.from_rows(group.support, counts=group.mass)
    answer = calibrate(
        [Pair(group, same, ONE)],
        LAWS["laplace"](),
        RULES["transport"](),
        Budget(2.0, 1.0),
    )
    assert answer.scale.tolist() == [0.0]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("columns", [1, 3])
def test_moments_are_those_of_the_divergences(law, columns):
    law, rng = LAWS[law](), np.random.default_rng(7)
    shifts = rng.exponential(size=(60, columns)) * 10.0 ** rng.integers(-6, 2, (60, 1))
    shifts[0] = 0
    scale = rng.uniform(0.5, 2.0, columns)
    excess = ORDERS[:, np.newaxis] - 1
    logs = excess * law.shift_divergence(shifts, alpha=ORDERS, scale=scale)
    found = shift_moments(law, shifts, alphas=ORDERS, scale=scale)
    small = logs < 700
    assert small.sum() > 200
    np.testing.assert_allclose(found[small], np.exp(logs[small]), rtol=2.0**-40.9)
    assert not (found < np.exp(np.minimum(logs, 700)) * (1 - 2.0**-40.9)).any()


def test_other_laws_have_no_quick_moments():
    class Derived(Laplace):
        """Laplace noise that may have another divergence."""

    marked = Laplace()
    marked.shift_divergence = lambda *_, **given: np.ones(1)
    for law in (Derived(), marked, Exponential(0.5)):
        assert shift_moments(law, ONE[:, None], alphas=ORDERS, scale=ONE) is None


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_rough_bounds_are_bounds_where_moments_are_near_one(law):
    # By the least divergence that a mean may be rough at, and below it.
    law = LAWS[law]()
    bound = ShiftBound(np.array([[1.0], [3.0]]), np.array([0.9, 0.1]))
    for scale in np.logspace(0, 8, 33):
        scales = np.array([scale])
        found = divergences_at(bound, law, ORDERS, scales, 1)
        exact = _many_orders._exactly(bound, law, ORDERS, scales, 1)
        assert (found >= exact * (1 - 1e-14)).all()
        np.testing.assert_allclose(found, exact, rtol=2.0**-18)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_rough_bounds_count_what_masses_miss(law):
    # Cells add up very many masses, and may miss a part of 2^-38 of one.
    law = LAWS[law]()
    mass = np.array([0.5, 0.5]) * (1 - 2.0**-36)
    bound = ShiftBound(np.array([[1.0], [1 - 1e-9]]), mass, grouped=True)
    for scale in np.logspace(1, 4, 25):
        at = bound, law, ORDERS, np.array([scale])
        exact = _many_orders._exactly(*at, 1)
        assert (divergences_at(*at, 1) >= exact * (1 - 1e-14)).all()
