"""Exponential noise: its divergence, its couplings, and soundness by sums and integrals."""

import math

import numpy as np
import oracles
import power_oracle
import pytest
from core_support import (
    SHIFT_RULES,
    bounded,
    conditional,
    fixed,
    orders,
    pair,
    released,
)
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.core.calibration import RULES, Budget, CalibrationError, calibrate
from skpuffer.core.coupling import Coupling, couple, plan_in_place
from skpuffer.core.grid import grid_step
from skpuffer.core.laws import LAWS, Exponential, Laplace
from skpuffer.core.plans import TransportPlanError
from skpuffer.core.prior import common_masses
from skpuffer.core.sampling import SeededBits
from skpuffer.core.shifts import ShiftBound

POWERS = [0.25, 0.5, 0.8]
EPSILONS = st.floats(math.log(0.2), math.log(10)).map(math.exp)
FINITE_RULES = [rule for rule in SHIFT_RULES if rule != "w_inf"]


def unit(item, law, rule, budget):
    return RULES[rule]().calibrate(item, law, budget).unit


# --- the divergence ---


@pytest.mark.parametrize("power", [0.2, 0.37, 0.5, 0.9])
@pytest.mark.parametrize("alpha", [1.01, 2.0, 30.0, math.inf])
def test_no_divergence_exceeds_the_distance(power, alpha):
    law = Exponential(power)
    for shift in (1, 3, 40):
        for scale in (0.5, 5.0, 300.0):
            bound = law.shift_divergence([[shift]], alpha=alpha, scale=scale)[0]
            distance = (shift / scale) ** power
            assert bound <= min(distance, alpha * distance**2 / 2) * (1 + 1e-12)
            point = [0], [1], [shift], [1]
            options = {"power": power, "scale": scale, "alpha": alpha}
            found = [power_oracle.mixture_divergence(*point, **options)]
            if scale * 45 ** (1 / power) < 3e5:
                found.append(power_oracle.lattice_divergence(*point, **options))
            assert max(found) <= bound * (1 + 1e-12)
            if alpha == math.inf:
                assert bound == pytest.approx(distance, rel=1e-14)
                assert min(found) == pytest.approx(bound, rel=1e-9)


def test_the_law():
    with pytest.raises(ValueError, match=r"power must be from 0\.2 to 1, got 0\.1"):
        Exponential(0.1)
    for wrong in (0.0, -1.0, 1.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="power must be"):
            Exponential(wrong)
    assert LAWS["exponential"](power=0.7) == Exponential(0.7)
    # The published exponent, and the standard deviations of scipy's gennorm.
    exponent = Exponential(0.5).wasserstein_exponent([[4.0, 9.0]], alpha=3, scale=1)
    assert exponent == pytest.approx([15.0])
    for power, std in (
        (0.2, math.sqrt(math.factorial(14) / 24)),
        (0.5, math.sqrt(120)),
        (1.0, math.sqrt(2)),
    ):
        assert Exponential(power).noise_std(2.0) == pytest.approx(2 * std, rel=1e-6)


def test_the_theorem_is_that_of_the_law():
    law, once = Exponential(0.5), Budget(2.0, 1.0)
    named = {
        rule: RULES[rule]().theorem(once, several_columns=False, law=law)
        for rule in SHIFT_RULES
    }
    assert all("III-A4" in named[rule] for rule in SHIFT_RULES if rule != "transport")
    assert "largest log ratio of a shift" in named["transport"]
    twice = RULES["w_inf"]().theorem(once, several_columns=True, law=law)
    assert twice == named["w_inf"] + ", extended to vectors by joint convexity"
    for rule in SHIFT_RULES:
        plain = RULES[rule]().theorem(once, several_columns=False)
        for law in (Laplace(), Exponential(1.0)):
            found = RULES[rule]().theorem(once, several_columns=False, law=law)
            assert found == plain


# --- power one ---


@fixed(40, "power one")
@given(oracles.conditionals(), orders(Laplace), EPSILONS, st.integers(1, 3))
def test_power_one_is_laplace(drawn, alpha, epsilon, copies):
    budget = Budget(alpha, epsilon, copies)
    item = pair(drawn.atoms_a, drawn.atoms_b, masses=(drawn.mass_a, drawn.mass_b))
    for rule in SHIFT_RULES:
        first, second = (
            calibrate([item], law, RULES[rule](), budget).scale
            for law in (Exponential(1.0), Laplace())
        )
        np.testing.assert_array_equal(first, second)


def test_power_one_draws_what_laplace_draws(monkeypatch):
    # Not the discrete law of power one, which is another, if nearly the same.
    monkeypatch.setattr("skpuffer.core.laws._exponential.exponential_power", None)
    values = np.linspace(-3, 3, 1000)
    first, second = (
        law.perturb(values, scale=1.5, bits=SeededBits(1, 0))
        for law in (Exponential(1), Laplace())
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("rule", ["w_inf", "alpha_wasserstein", "closed_form"])
def test_powers_near_one_are_near_laplace(rule):
    item = pair([0.0, 1.0, 5.0], [0.5, 2.0], masses=([1, 3, 1], [2, 1]))
    for alpha in (1.5, 4.0, math.inf):
        budget = Budget(alpha, 0.7)
        limit = unit(item, Laplace(), "alpha_wasserstein", budget)
        if rule == "closed_form":
            limit = unit(item, Laplace(), rule, budget)
        if rule == "w_inf":
            limit = item.bound.shifts.max() / 0.7
        for gap in (1e-3, 1e-6):
            found = unit(item, Exponential(1 - gap), rule, budget)
            if rule == "w_inf" and alpha < math.inf:
                # An upper bound on the divergence takes its place.
                assert unit(item, Laplace(), rule, budget) < found < limit
            else:
                assert found == pytest.approx(limit, rel=20 * gap)


# --- soundness ---


@pytest.mark.parametrize("rule", SHIFT_RULES)
@pytest.mark.parametrize("power", [0.4, 0.5, 0.8])
@pytest.mark.parametrize("examples", [12, pytest.param(400, marks=pytest.mark.slow)])
def test_releases_on_a_lattice_keep_the_promise(rule, power, examples):
    # The sums themselves, with a noise far coarser than any release's.
    whole = st.lists(st.integers(-4, 4), min_size=1, max_size=5, unique=True)
    masses = st.lists(st.integers(1, 30), min_size=5, max_size=5)
    reached = []

    @fixed(examples, rule, power, "lattice")
    @given(whole, masses, whole, masses, orders(Laplace), st.floats(0.6, 9))
    def run(first, mass_a, second, mass_b, alpha, epsilon):
        mass_a, mass_b = mass_a[: len(first)], mass_b[: len(second)]
        item = pair(first, second, masses=(mass_a, mass_b))
        scale = unit(item, Exponential(power), rule, Budget(alpha, epsilon))
        if scale * 45 ** (1 / power) > 4e5:
            return  # heavy tails take long to sum
        reached.append(scale)
        if scale == 0:
            assert item.first.same_distribution(item.second)
            return
        sides = (first, mass_a), (second, mass_b)
        options = {"power": power, "scale": scale, "alpha": alpha}
        for p, q in (sides, sides[::-1]):
            found = power_oracle.lattice_divergence(*p, *q, **options)
            assert found <= epsilon * (1 + 1e-10) + 1e-12

    run()
    assert len(reached) >= examples / 4


@pytest.mark.parametrize("rule", SHIFT_RULES)
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("examples", [15, pytest.param(400, marks=pytest.mark.slow)])
def test_continuous_releases_keep_the_promise(rule, power, examples):
    @fixed(examples, rule, power, "line")
    @given(oracles.conditionals(), orders(Laplace), EPSILONS)
    def run(drawn, alpha, epsilon):
        item = pair(drawn.atoms_a, drawn.atoms_b, masses=(drawn.mass_a, drawn.mass_b))
        scale = unit(item, Exponential(power), rule, Budget(alpha, epsilon))
        if scale == 0:
            assert item.first.same_distribution(item.second)
            return
        sides = (drawn.atoms_a, drawn.mass_a), (drawn.atoms_b, drawn.mass_b)
        options = {"power": power, "scale": scale, "alpha": alpha}
        for p, q in (sides, sides[::-1]):
            found = power_oracle.mixture_divergence(*p, *q, **options)
            assert found <= epsilon * (1 + 1e-10) + 1e-12

    run()


@pytest.mark.parametrize("power", POWERS)
def test_any_distributions_on_a_range_are_covered(power):
    # The worst case: D_inf of a shift reaches the bound.
    item, budget = bounded([[7.0]]), Budget(math.inf, 0.6)
    scale = calibrate([item], Exponential(power), RULES["transport"](), budget).scale
    options = {"power": power, "scale": scale, "alpha": math.inf}
    found = power_oracle.mixture_divergence([0], [1], [7], [1], **options)
    assert 0.6 * (1 - 2.0**-19) <= found <= 0.6


# --- couplings ---


def test_the_better_coupling_of_two():
    # In theta, with alpha - 1 in the place of the published alpha: half of it here.
    item, budget = pair([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]), Budget(2.0, 1.0)
    expected = {0.5: (1.0, 0.953), 0.7: (1.0, 1.187)}
    rule = RULES["alpha_wasserstein"]()
    for power, (monotone, in_place) in expected.items():
        law = Exponential(power)
        found = [
            rule.unit_scale(bound, law, budget, item.weights) ** power / 2
            for bound in (item.bound, item.bound_in_place)
        ]
        assert [round(theta, 3) for theta in found] == [monotone, in_place]
        theta = rule.calibrate(item, law, budget).unit ** power / 2
        # No other coupling of these does better.
        assert theta == pytest.approx(min(found), rel=1e-9)
        # The transport rule needs less than the form with alpha - 1.
        assert unit(item, law, "transport", budget) ** power < 0.9 * theta
        assert unit(item, law, "closed_form", budget) ** power >= 2 * theta * (1 - 1e-9)
    # The largest shift is smallest when nothing is left in place.
    for rule in ("w_inf", "transport"):
        assert unit(item, Exponential(0.5), rule, Budget(math.inf, 1.0)) == (
            pytest.approx(1)
        )


@pytest.mark.parametrize("rule", ["transport", "alpha_wasserstein"])
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2)), 3]
)
def test_no_coupling_needs_less(rule, power, seed):
    rng = np.random.default_rng(seed)
    law, alpha, epsilon = Exponential(power), [1.3, 2.0, 4.0, 8.0][seed], 0.9
    points = [np.sort(rng.choice(30, n, replace=False)) * 1.0 for n in (9, 12)]
    masses = [rng.integers(1, 9, n) for n in (9, 12)]
    item, budget = pair(*points, masses=masses), Budget(alpha, epsilon)
    found = unit(item, law, rule, budget)

    def log_cost(z, tau):
        c = (np.abs(z[:, 0]) / tau) ** power
        if rule == "alpha_wasserstein":
            return alpha * c
        rising = np.logaddexp(0, (1 - 2 * alpha) * c)
        return (alpha - 1) * c + rising - np.logaddexp(0, -c)

    least = oracles.lp_scale(
        *points,
        *masses,
        log_cost=log_cost,
        target=(alpha - 1) * epsilon,
        lo=found / 30,
        hi=found * 1.01,
        rtol=1e-7,
    )
    assert least * (1 - 1e-6) <= found <= least * (1 + 1e-3)
    rough = RULES[rule]().first(item, law, budget).unit
    assert rough >= found


def test_refinement_helps_and_may_fail(monkeypatch):
    rng = np.random.default_rng(20)
    points = [np.sort(rng.choice(14, 6, replace=False)) * 1.0 for _ in range(2)]
    masses = [rng.integers(1, 9, 6) for _ in range(2)]
    item, law = pair(*points, masses=masses), Exponential(0.3)
    gains = []
    for epsilon in (0.3, 1.0, 3.0):
        budget = Budget(3.0, epsilon)
        first = RULES["transport"]().first(item, law, budget).unit
        gains.append(1 - unit(item, law, "transport", budget) / first)
    assert max(gains) > 0.05
    assert min(gains) >= 0
    # The closed form takes no plan made for another functional; nor do huge groups.
    for rule, limit in (("closed_form", 2000), ("transport", 3)):
        monkeypatch.setattr("skpuffer.core.calibration._shift_rule.EXACT_LIMIT", limit)
        answer = RULES[rule]().calibrate(item, law, Budget(3.0, 0.3))
        assert answer.unit == RULES[rule]().first(item, law, Budget(3.0, 0.3)).unit
    monkeypatch.undo()

    def fail(*args, **options):
        raise TransportPlanError("no plan")

    monkeypatch.setattr("skpuffer.core.calibration._shift_rule.exponential_plan", fail)
    answer = RULES["transport"]().calibrate(item, law, Budget(3.0, 0.3))
    assert answer.unit == RULES["transport"]().first(item, law, Budget(3.0, 0.3)).unit


@fixed(100, "in place")
@given(oracles.conditionals(6, columns=2, ties=False), st.booleans())
def test_common_mass_stays_in_place(drawn, one_column):
    k = 1 if one_column else 2
    first = conditional(drawn.atoms_a[:, :k], drawn.mass_a)
    second = conditional(drawn.atoms_b[:, :k], drawn.mass_b)
    plan = plan_in_place(first, second, np.ones(k))
    coupling = Coupling.from_plan(first, second, plan)
    first_mass, second_mass, total = common_masses(first, second)
    left = {tuple(r): m for r, m in zip(first.support, first_mass, strict=True)}
    right = {tuple(r): m for r, m in zip(second.support, second_mass, strict=True)}
    stays = sum(min(left[row], right[row]) for row in set(left) & set(right))
    bound = coupling.shift_bound()
    still = ~bound.shifts.any(axis=1)
    assert bound.mass[still].sum() == pytest.approx(stays / total, abs=1e-12)
    # What moves is coupled as ever: alone, it is the monotone coupling.
    if one_column and still.any() and not still.all():
        moved = coupling.first.support[coupling.rows[~still], 0]
        to = coupling.second.support[coupling.columns[~still], 0]
        assert (np.diff(moved) >= 0).all()
        assert (np.diff(to) >= 0).all()


def test_fractional_weights_stay_exact():
    first = conditional([[0.0], [1.0], [2.0]], [1e-9, 0.2, 0.7])
    second = conditional([[1.0], [2.0]], [0.3, 0.7])
    assert first.mass.dtype == object
    plan = plan_in_place(first, second, np.ones(1))
    bound = Coupling.from_plan(first, second, plan).shift_bound()
    assert bound.mass.sum() == pytest.approx(1)
    plain = couple(first, second, np.ones(1)).shift_bound()
    assert len(bound.mass) >= len(plain.mass) - 1


# --- very many shifts ---


@pytest.mark.parametrize("shape", ["wide", "zeros", "far"])
def test_fewer_shifts_bound_very_many_where_costs_are_concave(shape):
    rng, n = np.random.default_rng(6), 2**18 + 500
    shifts = np.exp(rng.normal(0, 1.5, n))
    if shape == "zeros":
        shifts[rng.random(n) < 0.4] = 0.0
    if shape == "far":
        shifts = 1e6 + rng.random(n)
    mass = np.full(n, 1 / n)
    bound = ShiftBound(shifts[:, None], mass)
    fewer = bound.rounded_up()
    assert not fewer.grouped
    assert len(fewer.mass) <= n / 2
    assert fewer.shifts.max() == shifts.max()
    zero = fewer.shifts[:, 0] == 0
    assert fewer.mass[zero].sum() == pytest.approx(mass[shifts == 0].sum(), rel=1e-9)
    step = 2.0**-12
    on_grid = fewer.on_grid(np.array([step]))
    up = np.ceil(shifts / step) * step
    for power in POWERS:
        for c in (0.01, 1.0, 20.0):

            def cost(z, c=c, power=power):
                return np.exp(c * (z / shifts.max()) ** power)

            exact = math.fsum((mass * cost(shifts)).tolist())
            found = math.fsum((fewer.mass * cost(fewer.shifts[:, 0])).tolist())
            assert exact * (1 - 1e-13) <= found <= exact * (1 + 1e-3)
            exact = math.fsum((mass * cost(up)).tolist())
            found = math.fsum((on_grid.mass * cost(on_grid.shifts[:, 0])).tolist())
            assert found >= exact * (1 - 1e-13)
    # One that is for convex costs is no bound for concave ones.
    plain = bound.compressed(64)
    if shape == "wide":
        mean = math.fsum((plain.mass * np.sqrt(plain.shifts[:, 0])).tolist())
        assert mean < math.fsum((mass * np.sqrt(shifts)).tolist())
    assert bounded([[1.0], [2.0]]).bound.rounded_up().shifts.size == 2


# --- limits ---


def test_the_exact_rule_is_refused():
    item, law = pair([0.0, 1.0], [1.0, 2.0]), Exponential(0.5)
    rule, budget = RULES["exact"](), Budget(2.0, 1.0)
    with pytest.raises(ValueError, match=r"no certified divergence.*exponential noise"):
        rule.calibrate(item, law, budget)
    # Elsewhere transport speaks for it.
    laplace = RULES["exact"]().calibrate(item, Laplace(), budget).witness
    scale = np.array([3.0])
    expected = RULES["transport"]().divergence(item.bound, law, budget, scale)
    assert rule.divergence(laplace, law, budget, scale) == expected
    none = np.zeros(1)
    same = RULES["exact"]().calibrate(pair([0.0], [0.0]), Laplace(), budget).witness
    assert rule.divergence(same, law, budget, none) == 0


def test_promises_out_of_reach_of_the_grid_say_so(monkeypatch):
    # A step of the grid is 2^-20 of the scale, and its distance 2^-10.
    item = bounded([[1.0]])
    for rule, epsilon in (("transport", 2e-7), ("alpha_wasserstein", 1e-3)):
        with pytest.raises(CalibrationError, match="raise epsilon, or the power"):
            released(item, "exponential", rule, Budget(2.0, epsilon))
    for epsilon in (2e-6, 1e-3, 0.02):
        scale = released(item, "exponential", "transport", Budget(2.0, epsilon))
        shift = math.ceil(1 / grid_step(scale[0])) * grid_step(scale[0])
        options = {"alpha": 2.0, "scale": scale}
        assert Exponential(0.5).shift_divergence([[shift]], **options)[0] <= epsilon
    monkeypatch.setattr("skpuffer.core.calibration._calibrate._MAX_ROUNDS", 1)
    with pytest.raises(CalibrationError, match="raise epsilon"):
        released(item, "exponential", "transport", Budget(2.0, 2e-7))


@fixed(30, "monotone")
@given(oracles.conditionals(), st.sampled_from(POWERS), orders(Laplace), EPSILONS)
def test_constants_do_not_count_and_noise_falls_with_epsilon(
    drawn, power, alpha, epsilon
):
    law, budget = Exponential(power), Budget(alpha, epsilon)
    masses = (drawn.mass_a, drawn.mass_b)
    # Whole numbers, so that the constant costs no digits.
    first, second = np.rint(8 * drawn.atoms_a), np.rint(8 * drawn.atoms_b)
    here = pair(first, second, masses=masses)
    there = pair(first + 2.0**30, second + 2.0**30, masses=masses)
    for rule in SHIFT_RULES:
        found = unit(here, law, rule, budget)
        assert unit(there, law, rule, budget) == pytest.approx(found, rel=1e-9)
        more = unit(here, law, rule, Budget(alpha, 1.3 * epsilon))
        assert more <= found * (1 + 2e-4)
