"""Calibration of known cases: values, several columns, the release grid."""

import csv
import math

import numpy as np
import oracles
import pytest
from core_support import (
    EACH_LAW,
    EVERY,
    SHIFT_RULES,
    bounded,
    conditional,
    cost,
    fixed,
    pair,
    released,
    step_of,
    unit,
)
from hypothesis import given
from hypothesis import strategies as st
from paths import shared
from scipy.optimize import brentq

from skpuffer.core.calibration import (
    RULES,
    BoundedPair,
    Budget,
    CalibrationError,
    Pair,
    calibrate,
)
from skpuffer.core.calibration import _searched as searched_module
from skpuffer.core.calibration import _shift_rule as rule_module
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import LAWS
from skpuffer.core.plans import TransportPlanError
from skpuffer.core.prior import Conditional, pooled_spread

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
    for rule in SHIFT_RULES:
        assert unit(item, "gaussian", rule, budget) == pytest.approx(sigma, rel=1e-9)
    # The published rule is not always better than w_inf.
    assert published > z / epsilon > b


def test_zero_one_against_one_two():
    item, budget = pair([0.0, 1.0], [1.0, 2.0]), Budget(2.0, 1.0)
    for law in LAWS:
        for rule in SHIFT_RULES:
            point = unit(pair([0.0], [1.0]), law, rule, budget)
            found = unit(item, law, rule, budget)
            if LAWS[law]().convex:
                assert found == pytest.approx(point, rel=1e-9)
            # Where costs are concave, half of it may stay where it is.
            assert found <= point * (1 + 1e-9)
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
@pytest.mark.parametrize("examples", [12, pytest.param(300, marks=pytest.mark.slow)])
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


@EVERY
def test_couplings_are_sought_in_units_of_the_weights(law, rule):
    # A plan for unlike units needs more noise, and the rule that refines none keeps it.
    first, second = np.random.default_rng(3).integers(0, 9, (2, 12, 2)).astype(float)
    weights, budget = np.array([0.5, 0.0625]), Budget(3.0, 0.7)
    expected = unit(pair(first, second, weights), law, rule, budget)
    for factors in np.array([[512.0, 4096.0], [2.0**-9, 2.0**-2]]):
        moved = pair(first * factors, second * factors, weights * factors)
        assert unit(moved, law, rule, budget) == pytest.approx(expected, rel=1e-9)
    # Far below one and far above they are refined alike.
    for power in (-30, 30):
        moved = pair(first * 2.0**power, second * 2.0**power, weights)
        found = unit(moved, law, rule, budget) * 2.0**-power
        assert found == pytest.approx(expected, rel=1e-9)


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

    monkeypatch.setattr(rule_module, "exponential_plan", fail)
    found = unit(item, law, "transport", budget)
    assert found == unit(plain, law, "transport", budget)


@EACH_LAW
def test_a_refinement_that_is_worse_is_not_kept(law, monkeypatch):
    first, second = np.random.default_rng(5).normal(size=(2, 8, 2)).round(1) ** 3
    item, budget = pair(first, second), Budget(12.0, 0.5)
    plain = bounded(item.bound.shifts, item.bound.mass)
    worse = ShiftBound(2 * item.bound.shifts, item.bound.mass)
    monkeypatch.setattr(rule_module.ShiftRule, "_refined", lambda *_: worse)
    answer = RULES["transport"]().calibrate(item, LAWS[law](), budget)
    assert answer.unit == unit(plain, law, "transport", budget)
    assert answer.witness is not worse


@pytest.mark.parametrize("far", [0.0, 2.0**40])
@pytest.mark.parametrize(
    ("rule", "law", "alpha"),
    [
        ("transport", "laplace", 3.0),
        ("alpha_wasserstein", "laplace", math.inf),
        ("w_inf", "gaussian", 2.0),
    ],
)
def test_what_a_search_among_many_points_is_given(rule, law, alpha, far, monkeypatch):
    rng = np.random.default_rng(9)
    first, second = (rng.integers(-9, 30, (n, 3)) / 4 for n in (8, 7))
    first[:, 1] = second[:, 1] = 5.0
    first[0], second[0] = [-20.0, 5.0, 40.0], [12.0, 5.0, -30.0]
    weights = np.array([2.0, 0.0, 0.5])
    item = pair(first + far, second + far, weights)
    budget, chosen, noise = Budget(alpha, 0.8, 2), RULES[rule](), LAWS[law]()
    given = []
    monkeypatch.setattr(rule_module, "EXACT_LIMIT", 6)
    monkeypatch.setattr(
        searched_module, "descended_plan", lambda *all: given.extend(all) or all[0]
    )
    answer = chosen.calibrate(item, noise, budget)
    start, unit, x, y, costs_at, scale_of, effort = given
    assert scale_of(start) == pytest.approx(unit, rel=1e-9)
    assert answer.unit == pytest.approx(unit, rel=1e-9)
    assert effort.solves == 0.75 * item.effort.solves
    # Points of the columns that move in their units, about one origin for both.
    a, b = (side.support[:, [0, 2]] for side in (item.first, item.second))
    moved = (a[:, None] - b[None]) / weights[[0, 2]]
    assert (x[:, None] - y[None] == moved).all()
    both = np.concatenate([x, y])
    assert (both.min(axis=0) == -both.max(axis=0)).all()
    # What each pair of them costs.
    for level in (0, 2):
        found = costs_at(1.5, level).table(np.arange(len(a)), np.arange(len(b)))
        if rule == "transport":
            flat = moved.reshape(-1, 2)
            expected = cost(law, flat, alpha=alpha, scale=1.5, copies=2)
        else:
            z = np.abs(moved) / 1.5
            d = z.sum(axis=2) if law == "laplace" else (z**2).sum(axis=2)
            expected = 64 * 2**level * 2 * d.ravel() / 0.8
        assert found.ravel() == pytest.approx(expected, rel=1e-6)


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
    witness = chosen.calibrate(item, LAWS[law](), budget).witness
    assert len(witness.mass) <= n / 2 + 1
    assert witness.grouped == LAWS[law]().convex
    need = chosen.unit_scale(exact.bound, LAWS[law](), budget, np.ones(1))
    assert scale[0] == pytest.approx(need, rel=1e-5 if LAWS[law]().convex else 1e-4)


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


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("rule", SHIFT_RULES)
def test_shifts_that_vanish_in_units_of_the_weights_are_no_riddle(rule, law):
    # Either the scale is out of reach, which the message says, or it is large enough.
    tiny, budget = 1e-310, Budget(2.0, 1.0)
    bound = ShiftBound(np.array([[0.0, tiny], [0.0, tiny]]), np.array([0.5, 0.5]))
    for large in (1e-3, 1.0, 1e20, 1e300):
        item = BoundedPair(bound, np.array([1.0, large]))
        try:
            scale = calibrate([item], LAWS[law](), RULES[rule](), budget).scale
        except ValueError as error:
            assert "A noise scale must be between" in str(error)  # noqa: PT017
        else:
            assert RULES[rule]().holds(bound, LAWS[law](), budget, scale)
            assert scale[1] > tiny


@EVERY
def test_a_shift_that_underflows_needs_no_more_than_the_smallest_unit(law, rule):
    item = bounded([[5e-324]], weights=[1e10])
    assert 0 < unit(item, law, rule, Budget(2.0, 1.0)) < 3e-308
