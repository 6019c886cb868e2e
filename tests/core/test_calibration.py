"""Calibration rules: order, limits, monotonicity, optimality and known values."""

import csv
import math

import numpy as np
import oracles
import pytest
from core_support import (
    EPSILONS,
    bounded,
    conditional,
    cost,
    fixed,
    orders,
    pair,
    step_of,
)
from hypothesis import given
from hypothesis import strategies as st
from paths import shared
from scipy.optimize import brentq

from skpuffer.core.calibration import (
    RULES,
    Budget,
    CalibrationError,
    CalibrationRule,
    Pair,
    calibrate,
)
from skpuffer.core.calibration import _solve as solve_module
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import LAWS
from skpuffer.core.plans import TransportPlanError
from skpuffer.core.prior import Conditional, pooled_spread

EACH_LAW = pytest.mark.parametrize("law", LAWS)
EVERY = pytest.mark.parametrize(
    ("law", "rule"), [(law, rule) for law in LAWS for rule in RULES]
)


def unit(item, law, rule, budget):
    """The rule's own answer, before it is rounded to the grid."""
    return RULES[rule]().calibrate(item, LAWS[law](), budget).unit


def released(items, law, rule, budget):
    items = items if isinstance(items, list) else [items]
    return calibrate(items, LAWS[law](), RULES[rule](), budget).scale


@st.composite
def bounds(draw, columns=None):
    """Explicit shifts with masses: some zero, some rare and far."""
    k = draw(st.integers(1, 3)) if columns is None else columns
    shift = st.one_of(
        st.just(0.0), st.floats(0.01, 5), st.floats(-3, 3).map(lambda p: 10**p)
    )
    rows = st.lists(shift, min_size=k, max_size=k)
    shifts = np.array(draw(st.lists(rows, min_size=1, max_size=6)))
    shifts[0, 0] += 0.5
    masses = st.one_of(st.integers(1, 50), st.sampled_from([1, 10**6]))
    mass = np.array([float(draw(masses)) for _ in shifts])
    weights = np.array([draw(st.floats(0.1, 9)) for _ in range(k)])
    return bounded(shifts, mass / mass.sum(), weights)


# --- every rule in the registry ---


def test_the_registry():
    assert set(RULES) >= {"w_inf", "alpha_wasserstein", "closed_form", "transport"}


@EVERY
def test_the_contract(law, rule):
    cls = RULES[rule]
    assert cls.name == rule
    assert len(cls.source) > 10
    for member in ("calibrate", "unit_scale", "holds"):
        assert getattr(cls, member).__doc__
        assert hasattr(CalibrationRule, member)

    @fixed(40, law, rule)
    @given(bounds(), orders(LAWS[law]), EPSILONS, st.integers(1, 3))
    def run(item, alpha, epsilon, n_releases):
        budget, chosen = Budget(alpha, epsilon, n_releases), cls()
        answer = chosen.calibrate(item, LAWS[law](), budget)
        witness, scale = answer.witness, answer.unit * item.weights
        options = (LAWS[law](), budget)
        assert chosen.unit_scale(witness, *options, item.weights) == answer.unit
        assert chosen.holds(witness, *options, scale)
        assert chosen.holds(witness, *options, 1.5 * scale)
        if rule != "closed_form" or alpha == math.inf:
            # It is the smallest one.
            assert not chosen.holds(witness, *options, scale * (1 - 1e-5))

    run()


@pytest.mark.parametrize("rule", RULES)
def test_the_theorem_that_is_named(rule):
    chosen = RULES[rule]()
    published = chosen.theorem(Budget(2.0, 1.0), several_columns=False)
    assert published == chosen.source
    extended = {
        chosen.theorem(Budget(2.0, 1.0), several_columns=True),
        chosen.theorem(Budget(2.0, 1.0, n_releases=2), several_columns=False),
    }
    assert len(extended) == 1
    assert (published in extended) == (rule == "transport")
    at_infinity = chosen.theorem(Budget(math.inf, 1.0), several_columns=False)
    assert ("w_inf" in at_infinity) == (rule in ("alpha_wasserstein", "closed_form"))


@EVERY
def test_the_released_scale_is_on_its_grid_and_barely_above(law, rule):
    @fixed(40, law, rule)
    @given(bounds(), orders(LAWS[law]), EPSILONS)
    def run(item, alpha, epsilon):
        budget = Budget(alpha, epsilon)
        scale = released(item, law, rule, budget)
        steps = scale / [step_of(b) for b in scale.tolist()]
        np.testing.assert_array_equal(steps, np.rint(steps))
        assert (steps >= 2**20).all()
        assert (steps < 2**21).all()
        need = unit(item, law, rule, budget) * item.weights
        assert (scale >= need * (1 - 2.0**-21)).all()
        shifts = item.bound.shifts
        smallest = np.where(shifts > 0, shifts, np.inf).min(axis=0)
        inflation = 1 + 3 * 2.0**-20 * (1 + max(scale / smallest))
        assert (scale <= need * inflation * (1 + 1e-9)).all()

    run()


@EVERY
def test_less_epsilon_or_longer_shifts_never_need_less_noise(law, rule):
    @fixed(40, law, rule)
    @given(bounds(), orders(LAWS[law]), EPSILONS, st.data())
    def run(item, alpha, epsilon, data):
        before = unit(item, law, rule, Budget(alpha, epsilon))
        less = data.draw(st.floats(0.1, 1)) * epsilon
        assert unit(item, law, rule, Budget(alpha, less)) >= before * (1 - 1e-9)
        twice = unit(item, law, rule, Budget(alpha, epsilon, n_releases=2))
        assert twice >= before * (1 - 1e-9)
        shifts = item.bound.shifts.copy()
        index = data.draw(st.integers(0, shifts.size - 1))
        shifts.flat[index] += data.draw(st.floats(0, 10))
        if rule == "closed_form":
            # A mean and a maximum: only both together are monotone.
            shifts = item.bound.shifts * 1.5
        longer = bounded(shifts, item.bound.mass, item.weights)
        after = unit(longer, law, rule, Budget(alpha, epsilon))
        assert after >= before * (1 - 1e-9)

    run()


@EVERY
def test_scales_are_in_the_units_of_the_data(law, rule):
    # All shifts and weights times 1024: the factor of the weights stays.
    item = bounded([[0.3, 1.0], [2.0, 0.0]], [0.8, 0.2], [1.0, 3.0])
    large = bounded(1024 * item.bound.shifts, item.bound.mass, 1024 * item.weights)
    wide = bounded(1024 * item.bound.shifts, item.bound.mass, item.weights)
    budget = Budget(2.0, 0.5)
    before = unit(item, law, rule, budget)
    assert unit(large, law, rule, budget) == pytest.approx(before, rel=1e-10)
    assert unit(wide, law, rule, budget) == pytest.approx(1024 * before, rel=1e-10)
    np.testing.assert_array_equal(
        released(large, law, rule, budget), 1024 * released(item, law, rule, budget)
    )


@EVERY
def test_the_worst_pair_decides(law, rule):
    budget = Budget(2.0, 0.5)
    items = [bounded([[d]]) for d in (1.0, 3.0, 2.0)]
    answer = calibrate(items, LAWS[law](), RULES[rule](), budget)
    assert answer.worst == 1
    np.testing.assert_array_equal(answer.scale, released(items[1], law, rule, budget))


# --- the order of the rules, on the same coupling ---


@EACH_LAW
def test_the_order_of_the_rules(law):
    @fixed(200, law)
    @given(bounds(), orders(LAWS[law]), EPSILONS, st.integers(1, 3))
    def run(item, alpha, epsilon, n_releases):
        budget = Budget(alpha, epsilon, n_releases)
        need = {rule: unit(item, law, rule, budget) for rule in RULES}
        slack = 1 + 1e-9
        assert need["transport"] <= need["w_inf"] * slack
        assert need["transport"] <= need["alpha_wasserstein"] * slack
        assert need["alpha_wasserstein"] <= need["closed_form"] * slack
        if law == "gaussian":
            same = pytest.approx(need["alpha_wasserstein"], rel=1e-9)
            assert need["transport"] == same

    run()


@fixed(60)
@given(bounds(), orders(LAWS["gaussian"]), EPSILONS)
def test_one_less_than_alpha_suffices_for_laplace(item, alpha, epsilon):
    # E exp((alpha-1) d / b) <= exp((alpha-1) eps): exactly (alpha-1)/alpha the scale,
    # and still no less than the transport rule.
    distance = (item.bound.shifts / item.weights).sum(axis=1)
    target = (alpha - 1) * epsilon

    def excess(log_scale):
        x = (alpha - 1) * distance / math.exp(log_scale)
        top = x.max()
        if top < 600:
            return math.log1p(item.bound.mass @ np.expm1(x)) / target - 1
        return (top + math.log(item.bound.mass @ np.exp(x - top))) / target - 1

    root = math.exp(brentq(excess, -40, 40, xtol=1e-13))
    budget = Budget(alpha, epsilon)
    published = unit(item, "laplace", "alpha_wasserstein", budget)
    assert root == pytest.approx(published * (alpha - 1) / alpha, rel=1e-9)
    assert unit(item, "laplace", "transport", budget) <= root * (1 + 1e-9)


@fixed(60)
@given(bounds(), orders(LAWS["gaussian"]), EPSILONS, st.sampled_from(list(LAWS)))
def test_the_closed_form_is_its_formula(item, alpha, epsilon, law):
    ratio = item.bound.shifts / item.weights
    grown = math.expm1((alpha - 1) * epsilon) if (alpha - 1) * epsilon < 600 else None
    if grown is None:
        return
    if law == "laplace":
        d = ratio.sum(axis=1)
        scale = alpha * d.max() / math.log1p(d.max() / (item.bound.mass @ d) * grown)
    else:
        d = (ratio**2).sum(axis=1)
        below = math.log1p(d.max() / (item.bound.mass @ d) * grown)
        scale = math.sqrt(alpha * (alpha - 1) * d.max() / (2 * below))
    found = unit(item, law, "closed_form", Budget(alpha, epsilon))
    assert found == pytest.approx(scale, rel=1e-11)


# --- limits ---


def test_infinite_order():
    # b = W_inf / epsilon for all, and the limit of large orders.
    item, budget = bounded([[1.0], [3.0]], [0.9, 0.1]), Budget(math.inf, 0.5)
    for rule in RULES:
        assert unit(item, "laplace", rule, budget) == pytest.approx(6.0, rel=1e-10)
        assert released(item, "laplace", rule, budget)[0] == pytest.approx(6.0)
        large = unit(item, "laplace", rule, Budget(1e9, 0.5))
        assert large == pytest.approx(6.0, rel=1e-7)
    joint = bounded([[1.0, 2.0], [3.0, 1.0]], weights=[1.0, 2.0])
    for rule in RULES:
        found = unit(joint, "laplace", rule, Budget(math.inf, 0.5, n_releases=3))
        assert found == pytest.approx(3.5 * 3 / 0.5, rel=1e-10)


@EACH_LAW
def test_order_one(law):
    # The mean of the Kullback-Leibler divergences is the limit of `transport`.
    item = bounded([[0.5], [1.0], [6.0]], [0.5, 0.3, 0.2])
    d, mass, epsilon = item.bound.shifts[:, 0], item.bound.mass, 0.4

    def excess(scale):
        z = d / scale
        kl = z**2 / 2 if law == "gaussian" else z + np.expm1(-z)
        return mass @ kl - epsilon

    limit = brentq(excess, 0.1, 100, xtol=1e-14)
    for gap in (1e-6, 1e-9):
        found = unit(item, law, "transport", Budget(1 + gap, epsilon))
        assert found == pytest.approx(limit, rel=10 * gap + 1e-9)
    # The published Laplace rule diverges like E d / ((alpha-1) epsilon).
    if law == "laplace":
        found = unit(item, law, "alpha_wasserstein", Budget(1 + 1e-9, epsilon))
        assert found * 1e-9 == pytest.approx(mass @ d / epsilon, rel=1e-6)


@EVERY
def test_nothing_moves_nothing_is_needed(law, rule):
    budget = Budget(2.0, 0.5)
    same = pair([[1.0, 2.0], [3.0, 4.0]], [[3.0, 4.0], [1.0, 2.0]] * 3)
    assert unit(same, law, rule, budget) == 0
    assert released(same, law, rule, budget).tolist() == [0.0, 0.0]
    assert released([bounded([[0.0]])] * 2, law, rule, budget).tolist() == [0.0]
    # One pair that moves is enough for noise.
    both = [bounded([[0.0]]), bounded([[1.0]])]
    assert released(both, law, rule, budget)[0] > 0


@EVERY
def test_a_constant_column_gets_no_noise(law, rule):
    first, second = [[1.0, 7.0], [2.0, 7.0]], [[2.0, 7.0], [3.0, 7.0]]
    alone = pair([1.0, 2.0], [2.0, 3.0])
    budget = Budget(2.0, 0.5)
    found = released(pair(first, second, [1.0, 0.0]), law, rule, budget)
    assert found.tolist() == [released(alone, law, rule, budget)[0], 0.0]
    # A column that moves but may have no noise has no solution.
    with pytest.raises(CalibrationError):
        released(bounded([[1.0, 1.0]], weights=[1.0, 0.0]), law, rule, budget)


@EVERY
def test_identical_columns_are_not_identical_rows(law, rule):
    # Every marginal agrees, and the row gives the secret away.
    xor = pair([[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]])
    assert (released(xor, law, rule, Budget(2.0, 0.5)) > 0.3).all()


@EVERY
def test_overflowing_orders_are_refused(law, rule):
    item = bounded([[1.0]], weights=[1e10])
    budget = Budget(1e308, 10.0)
    if rule != "w_inf":
        with (
            np.errstate(over="ignore"),
            pytest.raises(ValueError, match="overflows"),
        ):
            unit(item, law, rule, budget)


# --- known values ---


@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 4.0])
def test_point_masses(alpha, epsilon):
    # Two points at distance z: Laplace b solves D_alpha(z / b) = epsilon.
    z, budget = 3.0, Budget(alpha, epsilon)
    item = pair([10.0], [13.0])
    b = math.exp(
        brentq(
            lambda t: (
                cost("laplace", np.array([[z]]), alpha=alpha, scale=math.exp(t))[0]
                / (alpha - 1)
                / epsilon
                - 1
            ),
            -5,
            15,
            xtol=1e-13,
        )
    )
    sigma = z * math.sqrt(alpha / (2 * epsilon))
    published = alpha * z / ((alpha - 1) * epsilon)
    rel = 1e-8 if (alpha - 1) * epsilon > 1e-3 else 1e-5
    for rule in ("w_inf", "transport"):
        assert unit(item, "laplace", rule, budget) == pytest.approx(b, rel=rel)
    for rule in ("alpha_wasserstein", "closed_form"):
        assert unit(item, "laplace", rule, budget) == pytest.approx(published, rel=1e-9)
    for rule in RULES:
        assert unit(item, "gaussian", rule, budget) == pytest.approx(sigma, rel=1e-9)
    # The published rule is not always better than w_inf.
    assert published > z / epsilon > b


def test_zero_one_against_one_two():
    item, budget = pair([0.0, 1.0], [1.0, 2.0]), Budget(2.0, 1.0)
    for law in LAWS:
        for rule in RULES:
            point = unit(pair([0.0], [1.0]), law, rule, budget)
            assert unit(item, law, rule, budget) == pytest.approx(point, rel=1e-9)
    assert unit(item, "gaussian", "transport", budget) == pytest.approx(1.0, rel=1e-9)


def test_the_published_rule_against_w_inf_in_the_reference_table():
    with shared("reference", "calibration.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    worse = [
        float(row["alpha"])
        for row in rows
        if float(row["laplace_alpha_wasserstein"]) > float(row["laplace_w_inf"])
    ]
    assert len(rows) == 36
    assert len(worse) == 17
    assert worse.count(2.0) == 10


@EVERY
def test_offset_and_order_of_the_rows_do_not_matter(law, rule):
    rng = np.random.default_rng(2)
    first = rng.integers(17, 90, (60, 2)).astype(float)
    second = rng.integers(20, 80, (40, 2)).astype(float)
    budget = Budget(2.0, 0.5)

    def scale(left, right):
        sides = [Conditional.from_rows(rows) for rows in (left, right)]
        return released(Pair(*sides, pooled_spread(sides)[0]), law, rule, budget)

    found = scale(first, second)
    np.testing.assert_array_equal(scale(first[::-1], rng.permutation(second)), found)
    np.testing.assert_allclose(scale(first + 1e9, second + 1e9), found, rtol=1e-12)
    single = [
        Conditional.from_rows(rows.astype(np.float32)) for rows in (first, second)
    ]
    found32 = released(Pair(*single, pooled_spread(single)[0]), law, rule, budget)
    np.testing.assert_allclose(found32, found, rtol=1e-4)


@EVERY
def test_weights_equal_repetition(law, rule):
    values, counts = np.array([0.0, 1.0, 5.0]), [3, 1, 2]
    other = [0.5, 2.0]
    budget = Budget(3.0, 0.7)
    repeated = pair(np.repeat(values, counts), other)
    weighted = pair(values, other, masses=([c / 4 for c in counts], None))
    expected = released(repeated, law, rule, budget)
    np.testing.assert_array_equal(released(weighted, law, rule, budget), expected)
    # Masses beyond int64 give what nearly equal masses give.
    tiny = pair(values, other, masses=([3 + 2.0**-49, 1.0, 2.0], [1.0, 1 + 2.0**-52]))
    assert tiny.first.mass.sum() > 2**50
    np.testing.assert_allclose(released(tiny, law, rule, budget), expected, rtol=1e-5)
    huge = pair(values, other, masses=([3 + 2.0**-51, 2.0**-60, 2.0], [1.0, 2.0**-70]))
    assert huge.first.mass.dtype == object
    assert released(huge, law, rule, budget)[0] > 0


# --- not too much noise, several columns ---


def cheapest(item, law, budget, guess):
    """The smallest factor that any coupling allows, by a linear programme."""
    return oracles.lp_scale(
        item.first.support,
        item.second.support,
        item.first.mass,
        item.second.mass,
        log_cost=lambda shifts, tau: cost(
            law,
            shifts,
            alpha=budget.alpha,
            scale=tau * item.weights,
            copies=budget.n_releases,
        ),
        target=budget.log_target,
        lo=guess / 4,
        hi=guess * 1.01,
        rtol=1e-6,
    )


@EACH_LAW
@pytest.mark.parametrize("examples", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_several_columns_need_what_the_best_coupling_needs(law, examples):
    @fixed(examples, law)
    @given(
        st.integers(2, 3).flatmap(
            lambda k: oracles.conditionals(7, columns=k, max_magnitude=0)
        ),
        st.sampled_from([1.2, 2.0, 5.0, 20.0]),
        st.floats(0.05, 3),
        st.integers(1, 2),
    )
    def run(drawn, alpha, epsilon, n_releases):
        budget = Budget(alpha, epsilon, n_releases)
        item = pair(drawn.atoms_a, drawn.atoms_b, masses=(drawn.mass_a, drawn.mass_b))
        weights = pooled_spread([item.first, item.second])[0]
        item = Pair(item.first, item.second, np.where(weights > 0, weights, 1.0))
        found = unit(item, law, "transport", budget)
        if found == 0:
            assert item.first.same_distribution(item.second)
            return
        best = cheapest(item, law, budget, found)
        assert best <= found * (1 + 1e-6)
        assert found <= best * (1 + 1e-3)
        # Each rule has its own plan by now, and the order still holds.
        for rule in ("w_inf", "alpha_wasserstein", "closed_form"):
            assert found <= unit(item, law, rule, budget) * (1 + 1e-3)

    run()


def test_a_plan_of_least_squares_is_improved_upon():
    # Some coupling is better for this cost than the best one for squares.
    first, second = np.random.default_rng(5).normal(size=(2, 8, 2)).round(1) ** 3
    item, budget = pair(first, second), Budget(12.0, 0.5)
    for law in LAWS:
        plain = bounded(item.bound.shifts, item.bound.mass)
        for rule in ("transport", "alpha_wasserstein"):
            refined = unit(item, law, rule, budget)
            assert refined < 0.9 * unit(plain, law, rule, budget)


@EACH_LAW
def test_a_refinement_that_fails_costs_noise_alone(law, monkeypatch):
    first, second = np.random.default_rng(5).normal(size=(2, 8, 2)).round(1) ** 3
    item, budget = pair(first, second), Budget(12.0, 0.5)
    plain = bounded(item.bound.shifts, item.bound.mass)

    def fail(*args, **kwargs):
        raise TransportPlanError("no plan")

    monkeypatch.setattr(solve_module, "exponential_plan", fail)
    found = unit(item, law, "transport", budget)
    assert found == unit(plain, law, "transport", budget)


@EACH_LAW
def test_a_refinement_that_is_worse_is_not_kept(law, monkeypatch):
    first, second = np.random.default_rng(5).normal(size=(2, 8, 2)).round(1) ** 3
    item, budget = pair(first, second), Budget(12.0, 0.5)
    plain = bounded(item.bound.shifts, item.bound.mass)
    worse = ShiftBound(2 * item.bound.shifts, item.bound.mass)
    monkeypatch.setattr(solve_module.ShiftRule, "_refined", lambda *_: worse)
    answer = RULES["transport"]().calibrate(item, LAWS[law](), budget)
    assert answer.unit == unit(plain, law, "transport", budget)
    assert answer.witness is not worse


def test_very_many_points_are_not_refined(monkeypatch):
    monkeypatch.setattr(solve_module, "EXACT_LIMIT", 5)
    first, second = np.random.default_rng(5).normal(size=(2, 8, 2)).round(1) ** 3
    item, budget = pair(first, second), Budget(12.0, 0.5)
    plain = bounded(item.bound.shifts, item.bound.mass)
    found = unit(item, "laplace", "transport", budget)
    assert found == unit(plain, "laplace", "transport", budget)


# --- the grid ---


@EVERY
def test_very_many_shifts(law, rule):
    rng = np.random.default_rng(8)
    n = 2**17 + 500
    shifts = np.where(rng.random(n) < 0.3, 0.0, rng.exponential(size=n))
    item, budget = bounded(shifts), Budget(2.0, 0.5)
    exact = bounded(shifts)
    chosen = RULES[rule]()
    scale = released(item, law, rule, budget)
    on_grid = exact.bound.on_grid(np.array([step_of(scale[0])]))
    assert chosen.holds(on_grid, LAWS[law](), budget, scale)
    assert chosen.calibrate(item, LAWS[law](), budget).witness.grouped
    need = chosen.unit_scale(exact.bound, LAWS[law](), budget, np.ones(1))
    assert scale[0] == pytest.approx(need, rel=1e-5)


@EVERY
def test_shifts_smaller_than_a_step_are_noised_as_a_step(law, rule):
    # The grid is coarser than the shift: what is released moves by a whole step.
    scale = released(
        bounded([[1e-9], [1.0]], [1 - 1e-9, 1e-9]), law, rule, Budget(2, 1)
    )
    step = step_of(scale[0])
    assert step > 1e-9
    moved = ShiftBound(np.array([[step], [1.0]]), np.array([1 - 1e-9, 1e-9]))
    assert RULES[rule]().holds(moved, LAWS[law](), Budget(2, 1), scale)


def test_every_pair_is_checked_again_on_the_grid():
    # By the raw shifts the first pair needs a little more noise; by the shifts on the
    # grid, where tiny ones become a step, the second does.
    budget, b = Budget(2.0, 0.01), 200 * (1 - 1e-6)
    far = b / 2 * math.log((math.exp(0.01) - 0.9) / 0.1)
    items = [bounded([[1.0]]), bounded([[1e-9], [far]], [0.9, 0.1])]
    rule = RULES["alpha_wasserstein"]()
    first, second = (rule.calibrate(i, LAWS["laplace"](), budget).unit for i in items)
    assert second < first
    for order in (items, items[::-1]):
        scale = released(order, "laplace", "alpha_wasserstein", budget)
        assert scale[0] > first * (1 + 1e-5)
        for item in items:
            moved = item.bound.on_grid(np.array([step_of(scale[0])]))
            assert rule.holds(moved, LAWS["laplace"](), budget, scale)


def test_a_grid_that_cannot_be_reached():
    # Every shift is a step of 2^-20 σ: at this order that alone is too much.
    with pytest.raises(CalibrationError, match="release grid"):
        released(bounded([[1.0]]), "gaussian", "w_inf", Budget(1e14, 1.0))


def test_a_mixed_unit_is_not_lost():
    first, second = conditional([0.0, 1.0]), conditional([1.0, 2.0])
    scale = released(
        Pair(first, second, np.array([3.0])), "laplace", "w_inf", Budget(2, 1)
    )
    same = released(
        Pair(first, second, np.array([1.0])), "laplace", "w_inf", Budget(2, 1)
    )
    np.testing.assert_allclose(scale, same, rtol=2e-6)
