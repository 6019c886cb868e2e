"""Divergence bounds of mixtures: proven from above, tight, at all magnitudes."""

import math
from itertools import product

import mpmath
import numpy as np
import oracles
import pytest
from core_support import conditional, fixed, orders
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from skpuffer.core.coupling import couple
from skpuffer.core.laws import LAWS
from skpuffer.core.mixtures import (
    MIXTURES,
    DivergenceBound,
    MixturePair,
    divergence_bound,
)
from skpuffer.core.mixtures import _gaussian as gaussian_module
from skpuffer.core.mixtures import _laplace as laplace_module
from skpuffer.core.mixtures._atomic import Atomic
from skpuffer.core.mixtures._excess import both_excesses, divergence, round_off
from skpuffer.core.mixtures._interpolated import SPACINGS, EqualNodes
from skpuffer.core.mixtures._moments import CellMoments
from skpuffer.core.mixtures._panels import Atoms, Nearby, Panels, integrate
from skpuffer.core.mixtures._recurrence import half_densities

EACH_LAW = pytest.mark.parametrize("law", MIXTURES)


def mixtures(first, second, masses=(None, None)):
    sides = [conditional(p, m) for p, m in zip((first, second), masses, strict=True)]
    return MixturePair.from_coupling(couple(*sides, np.ones(1)))


def bound(law, item, alpha, scale, epsilon, tolerance=1e-6):
    return MIXTURES[law]().bound(
        item, alpha=alpha, scale=scale, epsilon=epsilon, tolerance=tolerance
    )


def truth(law, item, alpha, scale):
    sides = [(part.places, part.mass) for part in (item.first, item.second)]
    return max(
        oracles.mixture_divergence(*p, *q, law=law, scale=scale, alpha=alpha)
        for p, q in (sides, sides[::-1])
    )


def test_the_registry():
    assert {"laplace", "gaussian"} <= set(MIXTURES) <= set(LAWS)
    assert all(cls.name == name for name, cls in MIXTURES.items())


@EACH_LAW
def test_above_the_truth_and_close_to_it(law):
    @fixed(60, law)
    @given(
        oracles.conditionals(8, ties=False),
        orders(LAWS[law]),
        st.floats(-0.5, 3).map(lambda p: 10**p),
    )
    def run(drawn, alpha, scale):
        item = mixtures(drawn.atoms_a, drawn.atoms_b, (drawn.mass_a, drawn.mass_b))
        expected = truth(law, item, alpha, scale)
        found = bound(law, item, alpha, scale, max(expected, 1e-9))
        assert found.upper >= expected * (1 - 1e-10) - 1e-13
        span = item.ends[1] - item.ends[0]
        if 1e-6 < expected < 20 and span < 50 * scale:
            assert found.upper <= expected * (1 + 2e-5)
            assert found.estimate == pytest.approx(expected, rel=1e-6)

    run()


@EACH_LAW
@pytest.mark.parametrize("level", [1e-4, 0.1, 30.0])
def test_a_bound_wherever_accuracy_was_wanted(law, level):
    item = mixtures([0.0, 1.0, 7.0], [0.0, 2.0, 6.0])
    for scale in (0.4, 1.0, 30.0):
        expected = truth(law, item, 4.0, scale)
        found = bound(law, item, 4.0, scale, level)
        assert found.upper >= expected * (1 - 1e-10)
        exact = divergence_bound(
            MIXTURES[law](), item, alpha=4.0, scale=scale, near=level
        )
        assert expected * (1 - 1e-10) <= exact <= expected * (1 + 1e-5)


@EACH_LAW
@pytest.mark.parametrize("factor", [1e-6, 0.1, 1.0, 3.0, 100.0])
def test_few_levels_are_tried(law, factor):
    item = mixtures([0.0, 1.0, 7.0], [0.0, 2.0, 6.0])
    levels = []

    class Counted:
        def bound(self, pair, **given):
            levels.append(given["epsilon"])
            return MIXTURES[law]().bound(pair, **given)

    expected = truth(law, item, 2.0, 3.0)
    found = divergence_bound(
        Counted(), item, alpha=2.0, scale=3.0, near=factor * expected
    )
    assert expected * (1 - 1e-10) <= found <= expected * (1 + 1e-5)
    assert len(levels) <= 4
    # The first is the guess, and one that was not too low is enough.
    assert levels[0] == factor * expected
    assert len(levels) == 1 or factor != 1


def test_the_smallest_bound_of_all_levels_counts():
    class Fickle:
        # Loose from far above, and nothing shown from near by.
        def bound(self, pair, *, epsilon, **given):
            return DivergenceBound(0.1, 0.5 if epsilon >= 1 else math.inf)

    for near in (1e-9, 0.9, 1.0, 7.0):
        found = divergence_bound(Fickle(), None, alpha=2.0, scale=1.0, near=near)
        assert found == 0.5


@EACH_LAW
def test_no_guess_at_all(law):
    item = mixtures([0.0, 1.0, 7.0], [0.0, 2.0, 6.0])
    expected = truth(law, item, 2.0, 3.0)
    found = divergence_bound(MIXTURES[law](), item, alpha=2.0, scale=3.0, near=0.0)
    assert expected * (1 - 1e-10) <= found <= expected * (1 + 1e-5)


def test_divergence_of_identical_mixtures_and_of_what_is_out_of_reach():
    same = mixtures([0.0, 1.0], [0.0, 1.0])
    for law in MIXTURES:
        found = divergence_bound(MIXTURES[law](), same, alpha=2, scale=1.0, near=1.0)
        assert 0 <= found < 1e-11
        far = mixtures([0.0], [1e6])
        found = divergence_bound(MIXTURES[law](), far, alpha=2, scale=1.0, near=1.0)
        assert found == math.inf
    assert divergence_bound(MIXTURES["laplace"](), same, alpha=2, scale=0, near=1) == 0


@EACH_LAW
@pytest.mark.parametrize("start", [-1e15, 1e15])
def test_places_far_from_zero_lose_no_digit(law, start):
    first, second = np.array([0.0, 1.0, 7.0]), np.array([0.0, 2.0, 6.0])
    expected = truth(law, mixtures(first, second), 3.0, 2.0)
    item = mixtures(first + start, second + start)
    found = bound(law, item, 3.0, 2.0, expected)
    assert expected * (1 - 1e-10) <= found.upper <= expected * (1 + 2e-6)
    assert found.estimate == pytest.approx(expected, rel=1e-8)


def test_large_targets_do_not_overflow():
    # (α−1) D is far beyond the largest exponent of a float.
    item = mixtures([0.0], [7.0])
    for law, expected in (("laplace", 7.0), ("gaussian", 200 * 49 / 2 / 64)):
        scale = 1.0 if law == "laplace" else 8.0
        found = bound(law, item, 200.0, scale, expected)
        assert found.upper == pytest.approx(truth(law, item, 200.0, scale), rel=1e-5)
    assert divergence(math.inf, 3.0, 10.0) == math.inf


@EACH_LAW
def test_an_order_too_large_for_floats_promises_nothing(law):
    item = mixtures([0.0, 1.0], [0.0, 2.0])
    assert bound(law, item, 1e15, 1e7, 1.0).upper == math.inf
    assert bound(law, item, 1e10, 1e7, 1e-9).upper == math.inf
    near = mixtures([0.0, 1.0], [0.0, 1.0], ([1, 2], [2, 3]))
    assert near.divergence(1e15) == math.inf


def test_densities_too_poor_for_the_order_promise_nothing(monkeypatch):
    item = mixtures([0.0, 1.0], [0.0, 2.0])
    monkeypatch.setattr(gaussian_module, "_ULP", 1e-7)
    assert bound("gaussian", item, 32.0, 5.0, 0.2).upper == math.inf


# --- the integrand ---


def test_excess_by_multiprecision():
    with mpmath.workdps(60):
        for alpha in (1.001, 2.0, 7.5, 200.0):
            for log_p, log_q in (
                (-1.0, -1.0 + 1e-7), (-1.0, -2.0), (-3.0, -1.0), (0.0, -40.0),
                (-90.0, -1.0), (-1.0, -1.4), (-1.0, -9.1), (-1.0, -8.8),
                (-2.0, -27.0), (-2.0, -31.9), (-40.0, -11.0), (-16.5, -1.0),
            ):  # fmt: skip
                p, q = mpmath.exp(log_p), mpmath.exp(log_q)
                expected = [
                    a * (a / b) ** (alpha - 1) - alpha * a + (alpha - 1) * b
                    for a, b in ((p, q), (q, p))
                ]
                found = both_excesses(np.array([log_p]), np.array([log_q]), alpha)
                for got, want in zip(found, expected, strict=True):
                    if want > 1e300:
                        assert got[0] == math.inf or got[0] > 1e299
                    else:
                        slack = 4e-16 * alpha * abs(log_p - log_q) * float(p + q)
                        assert got[0] == pytest.approx(
                            float(want), rel=1e-11, abs=slack
                        )


@pytest.mark.parametrize("span", [2.0, 7.9, 8.1, 15.0, 20.0, 26.0, 28.1, 29.9, 45.0])
def test_two_atoms_against_one_in_closed_form(span):
    # ∫ (½n_0 + ½n_z)² / n_0 = (3 + φ(z)) / 4: a long way from one atom to the other.
    expected = math.log(0.75 + math.exp(span) / 6 + math.exp(-2 * span) / 12)
    found = bound("laplace", mixtures([0.0], [0.0, span]), 2.0, 1.0, expected)
    assert expected <= found.upper * (1 + 1e-15) <= expected * (1 + 2e-5)
    assert found.estimate == pytest.approx(expected, rel=1e-9)


def test_the_divergence_of_an_excess_keeps_its_digits():
    for alpha in (1.01, 2.0, 64.0):
        for excess in (0.0, 1e-300, 1e-17, 3e-12, 0.2, 1e9):
            expected = math.log1p(excess) / (alpha - 1)
            assert divergence(excess, alpha, 0.0) == pytest.approx(expected, rel=1e-15)
        # Round-off below zero is no divergence.
        assert divergence(-1e-17, alpha, 0.0) == 0
        for shift, excess in ((5.0, 1e-9), (5.0, 3.0), (900.0, 2.0), (900.0, 1e-200)):
            # log(1 + excess e^shift), without the power where it is too large.
            large = shift + math.log(excess)
            expected = float(np.logaddexp(0, large)) / (alpha - 1)
            found = divergence(excess, alpha, shift)
            assert found == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("alpha", [1.05, 1.5, 2.0, 3.0, 30.0])
def test_round_off_covers_disturbed_densities(alpha):
    rng = np.random.default_rng(0)
    for spread in (0.0, 1e-6, 1e-3, 0.3, 2.0):
        p = rng.uniform(0.5, 1, 200)
        q = p * np.exp(rng.normal(0, spread, 200))
        p, q = p / p.sum(), q / q.sum()
        for error in (1e-9, 1e-3 / alpha):
            total = both_excesses(np.log(p), np.log(q), alpha)[0].sum()
            allowed = round_off(total, alpha, 0.0, error)
            power = p * (p / q) ** (alpha - 1)
            # Where G moves the most, both ways; and any others.
            signs = [[np.sign(power - p), np.sign(q - power)]]
            signs.append(-np.array(signs[0]))
            signs.extend(rng.choice([-1, 1], (5, 2, 200)))
            for first, second in signs:
                moved = both_excesses(
                    np.log(p) + np.log1p(error * first),
                    np.log(q) + np.log1p(error * second),
                    alpha,
                )[0]
                assert abs(moved.sum() - total) <= allowed
            # And of that order: what the proof gives away is not the order.
            if spread:
                worst = abs(alpha * (power - p)) + abs((alpha - 1) * (power - q))
                assert allowed <= 6 * error * worst.sum() + 8 * (alpha * error) ** 2
        # Integrals that are lowered by a factor are off by as much less.
        lowered = round_off(total * math.exp(-9), alpha, 9.0, error)
        assert lowered == pytest.approx(allowed * math.exp(-9), rel=1e-12)


# --- Laplace ---


@pytest.mark.parametrize("span", [1.0, 500.0, 5e3])
def test_sums_of_exponentials(span):
    rng = np.random.default_rng(1)
    atoms = np.sort(rng.uniform(0, span, 400)) + 1e6
    masses = rng.random((2, 400)) * (rng.random((2, 400)) < 0.7)
    first, second, error = half_densities(atoms, 1.0, tuple(masses))
    table = np.exp(-np.abs(atoms[:, None] - atoms))
    for found, mass in ((first, masses[0]), (second, masses[1])):
        np.testing.assert_allclose(found, table @ mass, rtol=error, atol=1e-280)


def test_far_clusters_are_out_of_reach():
    item = mixtures([0.0, 5e3], [0.0, 9e3])
    assert bound("laplace", item, 2.0, 1.0, 1.0).upper == math.inf


@pytest.mark.parametrize("far", [600.0, 650.0, 1e3])
def test_densities_of_one_side_out_of_reach(far):
    # e^-650 is a float, but none to be relied on.
    for sides in (([0.0], [0.0, far]), ([0.0, far], [0.0])):
        found = bound("laplace", mixtures(*sides), 2.0, 1.0, 600.0)
        assert (found.upper == math.inf) == (far > 600)


@pytest.mark.parametrize("shift", [2.0, 600.0])
def test_what_overflows_is_infinite(shift):
    # Where both bounds of a cell overflow, and where only one does.
    item = mixtures([0.0, 1.0, 2.0], [shift, shift + 1])
    assert (
        bound("laplace", item, 1e5, 0.5 if shift == 2 else 1.0, 1.0).upper == math.inf
    )


def test_too_many_nodes_leave_a_looser_bound(monkeypatch):
    item = mixtures(np.arange(20.0), np.arange(20.0) + 0.5)
    tight = bound("laplace", item, 3.0, 0.7, 0.5)
    monkeypatch.setattr(laplace_module, "_MAX_NODES", 100)
    loose = bound("laplace", item, 3.0, 0.7, 0.5)
    assert tight.upper < loose.upper < 2 * tight.upper


@pytest.mark.parametrize("alpha", [1.1, 30.0, 150.0])
@pytest.mark.parametrize("n", [5, 10, 20])
def test_bounds_are_as_wide_as_was_aimed_at(alpha, n):
    # Ratios that change by little from one atom to the next.
    for rise, gap in product((0.01, 0.1), (0.1, 0.5, 1.0)):
        masses = np.ones(n), np.round(1e6 * np.exp(rise * np.arange(n)))
        item = mixtures(gap * np.arange(n), gap * np.arange(n), masses)
        expected = bound("laplace", item, alpha, 1.0, 0.01, 1e-8).estimate
        for tolerance in (1e-2, 1e-3):
            found = bound("laplace", item, alpha, 1.0, expected, tolerance)
            assert expected * (1 - 1e-9) <= found.upper
            assert found.upper <= expected * (1 + tolerance)


def test_one_atom_alone():
    same = mixtures([3.0], [3.0])
    assert bound("laplace", same, 3.0, 0.7, 0.5).upper < 1e-11


# --- Gaussian ---


def test_the_range_follows_alpha():
    item = mixtures([0.0, 3.0], [0.0, 1.0], ([99, 1], [1, 1]))
    found = bound("gaussian", item, 32.0, 1.0, 60.0)
    assert found.upper == pytest.approx(60, abs=1)
    assert found.upper == pytest.approx(truth("gaussian", item, 32.0, 1.0), rel=1e-5)


@pytest.mark.parametrize("alpha", [1.01, 2.0, 9.0, 64.0])
def test_what_the_range_leaves_out_is_nothing(alpha):
    # Of each couple F is a Gaussian about αx − (α−1)x', times e^{α(α−1)d²/2}: beyond
    # the range less than e^-40 is left of their mean, however large the factor is.
    rng = np.random.default_rng(8)
    first, second = rng.normal(0, 1, 40), rng.normal(0.7, 2, 40)
    item, scale = mixtures(first, second), 0.4
    middle = 0.1
    low, high = gaussian_module._range(item, alpha, scale, middle)
    x, y = np.sort(first), np.sort(second)
    for p, q in ((x, y), (y, x)):
        centre = (alpha * p - (alpha - 1) * q - middle) / scale
        factor = alpha * (alpha - 1) * ((p - q) / scale) ** 2 / 2
        below, above = norm.logsf(centre - low), norm.logsf(high - centre)
        assert (np.logaddexp(below, above) + factor).max() < -40


def test_a_wide_span_needs_a_finer_step():
    item = mixtures(np.arange(31.0), np.arange(0.0, 31.0, 3.0))
    expected = truth("gaussian", item, 2.0, 1.0)
    found = bound("gaussian", item, 2.0, 1.0, expected)
    assert expected * (1 - 1e-12) <= found.upper <= expected * (1 + 1e-6)


def test_what_only_bounds_speak_for_is_charged_in_full(monkeypatch):
    # Panels where nothing matters have a bound, and half of it in the estimate.
    none, rest = Panels(np.zeros(0), np.zeros(0)), np.array([2.0, 3.0])
    monkeypatch.setattr(
        gaussian_module, "_panels", lambda *given: (none, rest.copy(), np.zeros(2))
    )
    found = bound("gaussian", mixtures([0.0], [1.0]), 2.0, 1.0, 1.0)
    assert found.estimate == pytest.approx(math.log1p(1.5))
    # Round-off of some thousand last digits included.
    least = math.log1p(3.0 + round_off(3.0, 2.0, 0.0, 4000 * 2.0**-52))
    assert least <= found.upper <= math.log1p(3.0) * (1 + 1e-9)
    # What lies beyond the range: e^-40 of F and as much of q.
    rest[:] = 0
    for alpha in (1.5, 2.0, 30.0):
        found = bound("gaussian", mixtures([0.0], [1.0]), alpha, 1.0, 1.0)
        left_out = alpha * math.exp(-40)
        assert left_out <= found.upper * (alpha - 1) <= 1.1 * left_out


def test_few_nodes_stand_for_many_atoms(monkeypatch):
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 9, 3000)
    item = mixtures(rng.normal(0, 1, 3000), rng.normal(0.3, 1.2, 3000), (None, weights))
    for alpha, scale in ((2.0, 0.5), (4.0, 1.0), (1.05, 0.1), (2.0, 50.0)):
        assert gaussian_module._condense(item, scale)
        found = bound("gaussian", item, alpha, scale, 0.5)
        with monkeypatch.context() as patch:
            patch.setattr(gaussian_module, "_MANY", 10**9)
            direct = bound("gaussian", item, alpha, scale, 0.5)
        assert found.estimate == pytest.approx(direct.estimate, rel=1e-10)
        assert found.upper >= direct.estimate


def test_nodes_carry_the_density_to_their_stated_error():
    rng = np.random.default_rng(4)
    places = np.sort(rng.uniform(0, 40, 900))
    parts = [
        Atomic(places, rng.integers(1, 50, 900)),
        Atomic(places[::2], np.ones(450, int)),
    ]
    nodes = EqualNodes.of(CellMoments.of(parts))
    assert nodes.masses.sum(axis=1) == pytest.approx(1)
    at = np.linspace(-9, 49, 200)
    for scale in (0.8, 3.0):
        low, masses = nodes.condensed(scale)
        assert len(low) < SPACINGS
        distance = (at[:, None] - nodes.low) / scale - low
        equal = nodes.low + nodes.spacing * np.arange(SPACINGS + 1)
        for part, mass, whole in zip(parts, masses, nodes.masses, strict=True):
            steps = (at[:, None] - part.places) / scale
            direct = np.exp(-0.5 * steps**2) @ part.probabilities
            few = np.exp(-0.5 * distance**2) @ mass
            np.testing.assert_allclose(few, direct, rtol=1e-9)
            many = np.exp(-0.5 * ((at[::20, None] - equal) / scale) ** 2) @ whole
            limit = nodes.error(scale, 12.0)
            assert limit < 1e-5
            np.testing.assert_allclose(many, direct[::20], rtol=limit + 1e-12)


def test_a_release_too_fine_for_the_panels(monkeypatch):
    item = mixtures([0.0, 1.0], [0.0, 2.0])
    assert bound("gaussian", item, 2.0, 1e-6, 1.0).upper == math.inf
    monkeypatch.setattr(gaussian_module, "_MAX_CELLS", 10)
    assert bound("gaussian", item, 2.0, 1.0, 1.0).upper == math.inf


def test_a_density_out_of_reach_ends_the_integral():
    atoms = Atoms(np.array([0.0, 60.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    panels = Panels(np.array([0.0]), np.array([0.5]))
    assert integrate(atoms, panels, 2.0, 0.0, 12).tolist() == [math.inf, math.inf]


def test_bounds_of_panels_hold():
    # Each panel's rule against one of many more nodes.
    from skpuffer.core.mixtures._panel_bounds import check

    rng = np.random.default_rng(5)
    for _ in range(60):
        n = rng.integers(2, 7)
        atoms = Atoms(
            np.sort(rng.uniform(-4, 4, n)), rng.dirichlet(np.full(n, 0.5), 2) + 1e-6
        )
        alpha = 1 + 10 ** rng.uniform(-1, 1.5)
        half = 10 ** rng.uniform(-1.5, 0.5)
        panel = Panels(np.array([rng.uniform(-6, 6)]), np.array([half]))
        found = check(atoms, panel, Nearby.of(atoms, panel.middle), alpha, 0.0, 4)
        parts = 64
        fine = Panels(
            panel.middle + half * (2 * np.arange(parts) + 1 - parts) / parts,
            np.full(parts, half / parts),
        )
        value = integrate(atoms, fine, alpha, 0.0, 20)
        rule = integrate(atoms, panel, alpha, 0.0, 4)
        assert (value <= found.whole[0] * (1 + 1e-9)).all()
        assert (np.abs(rule - value) <= found.error[0] + 1e-12 * value).all()


def test_a_zero_near_the_axis_is_paid_for():
    # q has zeros above and below the middle of its two atoms, where p has its mass.
    from skpuffer.core.mixtures._panel_bounds import check

    atoms = Atoms(np.array([-2.0, 0.0, 2.0]), np.array([[0.0, 1, 0], [0.5, 0, 0.5]]))
    for half in (0.2, 0.3, 0.35):
        panel = Panels(np.array([0.0]), np.array([half]))
        found = check(atoms, panel, Nearby.of(atoms, panel.middle), 60.0, 0.0, 4)
        parts = Panels(half * np.arange(-0.9, 1, 0.2), np.full(10, half / 10))
        value = integrate(atoms, parts, 60.0, 0.0, 20)[0]
        missed = abs(integrate(atoms, panel, 60.0, 0.0, 4)[0] - value)
        assert missed <= found.error[0, 0] < math.inf
    # And beyond that nothing is claimed.
    wide = Panels(np.array([0.0]), np.array([0.6]))
    nearby = Nearby.of(atoms, wide.middle)
    assert check(atoms, wide, nearby, 60.0, 0.0, 4).error[0, 0] == math.inf


# --- the pair ---


def test_the_divergence_of_the_atoms_by_fractions():
    item = mixtures([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], ([1, 2, 3], [3, 2, 1]))
    # Σ p²/q = 1/18 + 1/3 + 9/6.
    expected = math.log(1 / 18 + 1 / 3 + 3 / 2)
    assert expected <= item.divergence(2.0) <= expected * (1 + 1e-12)
    assert item.divergence(math.inf) == pytest.approx(math.log(3), rel=1e-13)
    assert item.divergence(math.inf) >= math.log(3)
    assert mixtures([0.0, 1.0], [0.0, 2.0]).divergence(2.0) == math.inf


@pytest.mark.parametrize("kind", ["far", "near"])
def test_the_divergence_of_atoms_is_above_the_truth_by_round_off_only(kind):
    rng = np.random.default_rng(9)
    for _ in range(60):
        if kind == "near":
            # What differs is far below what is rounded.
            first = rng.integers(10**8, 10**9, rng.integers(2, 6))
            second = first + rng.integers(0, 3, len(first))
        else:
            first = 10.0 ** -rng.uniform(0, 190, 3)
            second = 10.0 ** -rng.uniform(0, rng.choice([1, 190]), 3)
            if rng.random() < 0.5:
                first, second = second, first
        places = np.arange(float(len(first)))
        item = mixtures(places, places, (first, second))
        alpha = 1 + 10 ** rng.uniform(-2, 2)
        with mpmath.workdps(60):
            p, q = (
                [mpmath.mpf(int(m)) / int(part.mass.sum()) for m in part.mass]
                for part in (item.first, item.second)
            )
            power = mpmath.mpf(alpha)
            finite = max(
                mpmath.log(
                    sum(a * (a / b) ** (power - 1) for a, b in zip(*both, strict=True))
                )
                / (power - 1)
                for both in ((p, q), (q, p))
            )
            most = max(abs(mpmath.log(a / b)) for a, b in zip(p, q, strict=True))
            for order, expected in ((alpha, finite), (math.inf, most)):
                found = item.divergence(order)
                assert found >= expected
                if order == math.inf or (alpha - 1) * expected < 350:
                    assert found <= float(expected) * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("masses", [([1, 2, 3], [1, 1, 1]), ([1, 1, 1], [1, 2, 3])])
def test_the_larger_direction_of_the_atoms_counts(masses):
    # Σ p²/q is 7/6 one way and 11/9 the other; the largest ratios are 3/2 and 2.
    item = mixtures([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], masses)
    assert item.divergence(2.0) == pytest.approx(math.log(11 / 9), rel=1e-12)
    assert item.divergence(math.inf) == pytest.approx(math.log(2), rel=1e-12)


@pytest.mark.parametrize("least", [1e-250, 1e-150])
def test_probabilities_near_the_end_of_the_floats_are_left_out(least):
    for sides in (([0.0, 1.0], [2.0]), ([2.0], [0.0, 1.0])):
        masses = [[least, 1.0] if len(side) == 2 else None for side in sides]
        item = mixtures(*sides, masses)
        assert (item is None) == (least < 1e-200)
        if item is not None:
            found = min(item.first.least, item.second.least)
            assert found == pytest.approx(least, rel=1e-12)


def test_probabilities_and_the_least_of_them():
    item = Atomic(np.arange(4.0), np.array([5, 2, 3, 6]))
    assert item.probabilities == pytest.approx([5 / 16, 2 / 16, 3 / 16, 6 / 16])
    assert item.least == 2 / 16


def test_atoms_that_meet_on_the_grid_are_one():
    item = Atomic(np.array([0.0, 0.5, 1.0, 1.2, 1.3]), np.array([1, 2, 3, 4, 5]))
    moved = item.on_grid(0.5)
    assert moved.places.tolist() == [0.0, 0.5, 1.0, 1.5]
    assert moved.mass.tolist() == [1, 2, 7, 5]


def test_a_pair_of_one_column_only():
    sides = [conditional([[0.0, x]]) for x in (0.0, 1.0)]
    with pytest.raises(ValueError, match="one column"):
        MixturePair.from_coupling(couple(*sides, np.ones(2)))


@pytest.mark.parametrize("back", [False, True])
def test_ends_and_gaps_of_a_few_atoms(back):
    for first, second, ends, gap in (
        ([3.0], [3.0], (3.0, 3.0), 0.0),
        ([3.0], [5.0], (3.0, 5.0), 2.0),
        ([1.0, 9.0], [2.0, 2.5], (1.0, 9.0), 0.5),
        ([1.0, 4.0], [2.0, 9.0], (1.0, 9.0), 1.0),
    ):
        item = mixtures(second, first) if back else mixtures(first, second)
        assert item.ends == ends
        assert item.least_gap == gap
        assert item.size == len(first) + len(second)


def test_gaps_of_very_many_atoms_are_not_looked_for(monkeypatch):
    from skpuffer.core.mixtures import _pair

    item = mixtures([0.0, 1.0, 1.25], [4.0])
    assert item.least_gap == 0.25
    assert item.ends == (0.0, 4.0)
    monkeypatch.setattr(_pair, "_MANY", 3)
    assert item.least_gap == 0


def test_reach_covers_every_couple():
    rng = np.random.default_rng(6)
    item = mixtures(rng.normal(0, 1, 9000), rng.normal(1, 2, 8000))
    assert len(item.reach.low) <= 4096
    wider = item.reach.widened(0.5)
    coupling = couple(
        conditional(item.first.places), conditional(item.second.places), np.ones(1)
    )
    first = item.first.places[coupling.rows]
    second = item.second.places[coupling.columns]
    size = -(-len(first) // 4096)
    for reach, slack in ((item.reach, 0.0), (wider, 0.25)):
        group = np.arange(len(first)) // size
        assert (np.minimum(first, second) >= reach.low[group] + slack - 1e-12).all()
        assert (np.maximum(first, second) <= reach.high[group] - slack + 1e-12).all()
        assert (np.abs(first - second) <= reach.shift[group] - 2 * slack + 1e-12).all()
