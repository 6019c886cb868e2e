"""Calibration rules: contract, order, limits and monotonicity."""

import math

import numpy as np
import pytest
from core_support import (
    EACH_LAW,
    EPSILONS,
    EVERY,
    SHIFT_RULES,
    bounded,
    epsilons,
    fixed,
    orders,
    pair,
    released,
    step_of,
    unit,
)
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy.optimize import brentq

from skpuffer.core.calibration import (
    RULES,
    Budget,
    CalibrationError,
    CalibrationRule,
    calibrate,
)
from skpuffer.core.laws import LAWS

# CI takes the many examples of the default rule alone.
EXAMPLES = pytest.mark.parametrize(
    "examples", [25, pytest.param(120, marks=pytest.mark.slow, id="at_length")]
)


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
@EXAMPLES
def test_the_contract(law, rule, examples):
    cls = RULES[rule]
    assert cls.name == rule
    assert len(cls.source) > 10
    for member in ("calibrate", "unit_scale", "holds"):
        assert getattr(cls, member).__doc__
        assert hasattr(CalibrationRule, member)

    @fixed(examples, law, rule)
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


@pytest.mark.parametrize("rule", SHIFT_RULES)
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
@EXAMPLES
def test_the_released_scale_is_on_its_grid_and_barely_above(law, rule, examples):
    @fixed(examples, law, rule)
    @given(bounds(), orders(LAWS[law]), epsilons(law))
    def run(item, alpha, epsilon):
        budget = Budget(alpha, epsilon)
        try:
            scale = released(item, law, rule, budget)
        except CalibrationError:
            # A step of the grid costs a concave law too much of a tiny (α−1) ε.
            if law != "exponential" or (alpha - 1) * epsilon > 0.01:
                raise
            reject()
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
@EXAMPLES
def test_less_epsilon_or_longer_shifts_never_need_less_noise(law, rule, examples):
    @fixed(examples, law, rule)
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
@pytest.mark.parametrize("examples", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_the_order_of_the_rules(law, examples):
    @fixed(examples, law)
    @given(bounds(), orders(LAWS[law]), EPSILONS, st.integers(1, 3))
    def run(item, alpha, epsilon, n_releases):
        budget = Budget(alpha, epsilon, n_releases)
        need = {rule: unit(item, law, rule, budget) for rule in SHIFT_RULES}
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
    if law != "gaussian":
        d = ratio.sum(axis=1) if law == "laplace" else np.sqrt(ratio).sum(axis=1)
        scale = alpha * d.max() / math.log1p(d.max() / (item.bound.mass @ d) * grown)
    else:
        d = (ratio**2).sum(axis=1)
        below = math.log1p(d.max() / (item.bound.mass @ d) * grown)
        scale = math.sqrt(alpha * (alpha - 1) * d.max() / (2 * below))
    if law == "exponential":
        scale = scale**2
    found = unit(item, law, "closed_form", Budget(alpha, epsilon))
    assert found == pytest.approx(scale, rel=1e-11)


@EVERY
@pytest.mark.parametrize("power", [-975, -600, 600, 870])
def test_scales_follow_the_unit_of_the_data(law, rule, power):
    # The square of a shift may be no float, and its scale is one all the same.
    shifts, mass = [[1.0], [3.0], [20.0]], [0.6, 0.3, 0.1]
    budget = Budget(2.0, 1.0)
    expected = released(bounded(shifts, mass), law, rule, budget)
    moved = bounded(np.multiply(shifts, 2.0**power), mass)
    found = released(moved, law, rule, budget) * 2.0**-power
    assert found == pytest.approx(expected, rel=1e-9)


# --- limits ---


def test_infinite_order():
    # b = W_inf / epsilon for all, and the limit of large orders.
    item, budget = bounded([[1.0], [3.0]], [0.9, 0.1]), Budget(math.inf, 0.5)
    for rule in SHIFT_RULES:
        assert unit(item, "laplace", rule, budget) == pytest.approx(6.0, rel=1e-10)
        assert released(item, "laplace", rule, budget)[0] == pytest.approx(6.0)
        large = unit(item, "laplace", rule, Budget(1e9, 0.5))
        assert large == pytest.approx(6.0, rel=1e-7)
    joint = bounded([[1.0, 2.0], [3.0, 1.0]], weights=[1.0, 2.0])
    for rule in SHIFT_RULES:
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
        # An upper bound of it.
        kl = np.sqrt(z) * np.tanh(np.sqrt(z) / 2) if law == "exponential" else kl
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
