"""Panels under Gaussian noise: what is near, the rule, and what its error may be."""

import math

import mpmath
import numpy as np
import pytest
from core_support import conditional
from scipy.stats import norm

from skpuffer.core.coupling import couple
from skpuffer.core.mixtures import MixturePair
from skpuffer.core.mixtures._gaussian import (
    GaussianMixtures,
    _atoms,
    _farthest,
    _panels,
    _round_off,
)
from skpuffer.core.mixtures._interpolated import EqualNodes
from skpuffer.core.mixtures._panel_bounds import _moments, _vanished, check
from skpuffer.core.mixtures._panels import Atoms, Nearby, Panels, integrate, windows

# The semi-axes of the ellipse with foci ±1 whose sum is ρ.
RHO = 3.0
LONG, SHORT = math.cosh(math.log(RHO)), math.sinh(math.log(RHO))
SMALLEST = 745.0


def mixtures(first, second, masses):
    sides = [conditional(p, m) for p, m in zip((first, second), masses, strict=True)]
    return MixturePair.from_coupling(couple(*sides, np.ones(1)))


def random_atoms(rng, n, span):
    places = np.sort(rng.uniform(-span, span, n)) + rng.uniform(-9, 9)
    return Atoms(places, rng.dirichlet(np.full(n, 0.5), 2) + 1e-6)


def random_panels(rng, n, reach, size):
    """Ascending, and apart or not."""
    middle = np.sort(rng.uniform(-reach, reach, n))
    return Panels(middle, size * rng.uniform(0.2, 1, n))


def log_density(atoms, points):
    """Both log densities, shape (2, points), at real or complex points."""
    power = -0.5 * np.square(np.asarray(points)[:, None] - atoms.places)
    top = power.real.max(axis=1)
    sums = atoms.masses @ np.exp(power - top[:, None]).T
    return np.log(np.abs(sums)) + top - 0.5 * math.log(2 * math.pi)


def terms(logs, alpha, shift=0.0):
    """|F| + α|p| + (α−1)|q| for both directions."""
    p, q = logs - shift
    return np.array(
        [
            np.exp(alpha * a - (alpha - 1) * b)
            + alpha * np.exp(a)
            + (alpha - 1) * np.exp(b)
            for a, b in ((p, q), (q, p))
        ]
    )


def test_what_is_near_points():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 40, 400):
        atoms = random_atoms(rng, n, 60.0)
        points = np.sort(rng.uniform(-150, 150, 30))
        points[7] = points[6]
        nearby = Nearby.of(atoms, points)
        apart = np.abs(points[:, None] - atoms.places)
        least = apart.min(axis=1)
        np.testing.assert_array_equal(np.abs(points - nearby.nearest), least)
        assert np.isin(nearby.nearest, atoms.places).all()
        matters = apart**2 <= least[:, None] ** 2 + 2 * SMALLEST
        within = np.arange(n) >= nearby.low[:, None]
        within &= np.arange(n) < nearby.high[:, None]
        assert within[matters].all()
        assert nearby.cells == within.sum()
        # Runs of points see what their first and their last see.
        assert (np.diff(nearby.low) >= 0).all()
        assert (np.diff(nearby.high) >= 0).all()
        # One alone sees no more than what matters.
        for point, near in zip(points[:, None], matters, strict=True):
            assert Nearby.of(atoms, point).cells == near.sum()


@pytest.mark.parametrize("n", [3, 30, 3000, 120_000])
def test_windows_show_all_panels_what_matters(n):
    rng = np.random.default_rng(n)
    atoms = random_atoms(rng, n, 80.0)
    count = 120 if n <= 3000 else 4
    panels = random_panels(rng, count, 130.0 if count > 4 else 30.0, 0.5)
    nearby = Nearby.of(atoms, panels.middle)
    seen = []
    for window in windows(atoms, panels, nearby):
        rows = np.arange(count)[window.rows]
        seen.extend(rows)
        assert len(rows) == 1 or len(rows) * len(window.places) <= 40_000
        for name in ("middle", "half"):
            found = getattr(window, name)
            np.testing.assert_array_equal(found, getattr(panels, name)[rows])
        place = np.searchsorted(atoms.places, window.places)
        np.testing.assert_array_equal(atoms.places[place], window.places)
        np.testing.assert_array_equal(atoms.masses[:, place], window.masses)
        apart = window.middle[:, None] - atoms.places
        power = -0.5 * (apart**2 - np.abs(apart).min(axis=1, keepdims=True) ** 2)
        assert (np.delete(power, place, axis=1) < -SMALLEST).all()
        np.testing.assert_allclose(
            window.weight, np.exp(power[:, place]), rtol=1e-10, atol=1e-320
        )
        away = window.places - window.nearest[:, None]
        np.testing.assert_array_equal(window.distance, away * (window.weight > 0))
        # What vanished there is little at the ends of the ellipse, too.
        power += (
            LONG * window.half[:, None] * np.abs(atoms.places - window.nearest[:, None])
        )
        least = np.abs(apart).min(axis=1, keepdims=True)
        gone = apart**2 > least**2 + 2 * SMALLEST
        most = np.where(gone, power, -np.inf).max(axis=1)
        np.testing.assert_allclose(_vanished(atoms, window), most, rtol=1e-9)
    assert seen == list(range(count))
    if n == 120_000:
        assert np.diff(window.places[[0, -1]]) > 60
        assert len(window.places) > 40_000
    else:
        # As many as there is room for.
        assert (len(seen) > len(window.middle)) == (n == 3000)


@pytest.mark.parametrize("order", [4, 8, 12, 20])
def test_the_rule_for_two_atoms_in_closed_form(order):
    # F is a Gaussian about αa − (α−1)b, times e^{α(α−1)(a−b)²/2}.
    rng = np.random.default_rng(1)
    for _ in range(8):
        a, b = np.sort(rng.uniform(-1, 1, 2))
        alpha, shift = 1 + rng.uniform(0.1, 2), rng.uniform(0, 2)
        atoms = Atoms(np.array([a, b]), np.eye(2))
        size = 0.02 if order == 4 else 0.4
        panels = random_panels(rng, 5, 4.0, size)
        low, high = panels.middle - panels.half, panels.middle + panels.half

        def part(centre, low=low, high=high):
            return (norm.cdf(high - centre) - norm.cdf(low - centre)).sum()

        factor = math.exp(alpha * (alpha - 1) * (a - b) ** 2 / 2)
        expected = [
            factor * part(alpha * x - (alpha - 1) * y)
            - alpha * part(x)
            + (alpha - 1) * part(y)
            for x, y in ((a, b), (b, a))
        ]
        found = integrate(atoms, panels, alpha, shift, order) * math.exp(shift)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("gap", [60.0, 800.0, 1500.0])
def test_atoms_far_apart_do_not_see_each_other(alpha, gap):
    masses = np.array([[1, 3, 4], [2, 2, 4]])
    item = mixtures([-gap, 0.0, gap], [-gap, 0.0, gap], masses)
    p, q = masses / 8
    expected = max(
        math.log((a**alpha * b ** (1 - alpha)).sum()) / (alpha - 1)
        for a, b in ((p, q), (q, p))
    )
    found = GaussianMixtures().bound(
        item, alpha=alpha, scale=1.0, epsilon=expected, tolerance=1e-6
    )
    assert expected <= found.upper <= expected * (1 + 2e-6)
    assert found.estimate == pytest.approx(expected, rel=1e-6)


def test_densities_within_the_ellipse_are_bounded_from_below():
    # |q(x+iy)| ≥ e^{y²/2} q(x) (1 − y² V/2) for all second moments V within.
    rng = np.random.default_rng(2)
    angle = np.linspace(0, 2 * math.pi, 40)
    for _ in range(40):
        atoms = random_atoms(rng, rng.integers(2, 7), 3.0)
        panels = random_panels(rng, 3, 6.0, 0.4)
        nearby = Nearby.of(atoms, panels.middle)
        (window,) = windows(atoms, panels, nearby)
        points, damping = _moments(atoms, window)
        for row, (middle, half) in enumerate(zip(*panels, strict=True)):
            nearest = nearby.nearest[row]
            weights = atoms.masses * np.exp(
                -0.5 * (middle - atoms.places) ** 2 + 0.5 * (middle - nearest) ** 2
            )
            tilt = LONG * half * (atoms.places - nearest)
            for found, factor in (
                (points.middle, 1.0),
                (points.right, np.exp(tilt)),
                (points.left, np.exp(-tilt)),
            ):
                expected = np.log((weights * factor).sum(axis=1))
                np.testing.assert_allclose(found[row], expected, rtol=0, atol=1e-12)
            mean = weights @ atoms.places / weights.sum(axis=1)
            np.testing.assert_allclose(points.mean[row], mean - nearest, atol=1e-12)
            at = middle + half * (LONG * np.cos(angle) + 1j * SHORT * np.sin(angle))
            complex_, real = log_density(atoms, at), log_density(atoms, at.real)
            least = np.exp(complex_ - real - at.imag**2 / 2).min(axis=1)
            assert (damping[row] <= least + 1e-12).all()
            # And no lower than the moments make it.
            for side in (0, 1):
                away = atoms.places - mean[side]
                moment = max(
                    weights[side] @ (away**2 * np.exp(t * away)) / weights[side].sum()
                    for t in (LONG * half, -LONG * half)
                )
                height = SHORT * half
                assert damping[row, side] >= 1 - height**2 / 2 * (1.03 * moment + 2e-5)


@pytest.mark.parametrize("order", [4, 8, 20])
def test_errors_are_those_of_the_largest_value_in_the_ellipse(order):
    # Chebyshev coefficients are at most 2Mρ^−k, and a rule of m nodes takes none of
    # those up to 2m − 1 wrong, and each of the others by 2 + 2/(k² − 1) at most.
    rng = np.random.default_rng(order)
    angle = np.linspace(0, 2 * math.pi, 60)
    constant = 4 * (1 + 1 / (4 * order**2 - 1)) * RHO ** (-2 * order)
    constant /= 1 - RHO**-2
    bounded = 0
    for _ in range(30):
        atoms = random_atoms(rng, rng.integers(1, 7), 3.0)
        alpha, shift = 1 + 10 ** rng.uniform(-1, 1), rng.uniform(0, 3)
        panels = random_panels(rng, 4, 6.0, 0.8)
        nearby = Nearby.of(atoms, panels.middle)
        found = check(atoms, panels, nearby, alpha, shift, order)
        bounded += np.isfinite(found.error).sum()
        for row, (middle, half) in enumerate(zip(*panels, strict=True)):
            at = middle + half * (LONG * np.cos(angle) + 1j * SHORT * np.sin(angle))
            most = terms(log_density(atoms, at), alpha, shift).max(axis=1)
            assert (found.error[row] >= constant * half * most * (1 - 1e-9)).all()
    assert bounded > 120
    # On a narrow panel there is one value alone, and nothing to add to it.
    half = 1e-4
    for _ in range(20):
        atoms = random_atoms(rng, rng.integers(1, 7), 3.0)
        alpha, shift = 1 + 10 ** rng.uniform(-1, 1), rng.uniform(0, 3)
        panels = Panels(rng.uniform(-6, 6, 1), np.array([half]))
        nearby = Nearby.of(atoms, panels.middle)
        found = check(atoms, panels, nearby, alpha, shift, order)
        logs = log_density(atoms, panels.middle)
        value = terms(logs, alpha, shift)[:, 0]
        assert (found.error[0] <= 1.05 * constant * half * value).all()
        p, q = np.exp(logs[:, 0] - shift)
        # G without its negative part.
        value -= alpha * np.array([p, q])
        np.testing.assert_allclose(found.whole[0], 2 * half * value, rtol=0.01)


def test_nothing_is_claimed_where_densities_are_out_of_reach():
    atoms = Atoms(np.array([0.0, 60.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    panels = Panels(np.array([-1.0, 0.0, 61.0]), np.full(3, 0.5))
    found = check(atoms, panels, Nearby.of(atoms, panels.middle), 2.0, 0.0, 8)
    assert (found.error == math.inf).all()
    assert (found.whole == math.inf).all()
    # At the middle or at one end of the ellipse alone.
    panels = Panels(np.zeros(1), np.ones(1))
    for place in (30.0, -30.0, 33.0, -33.0, 34.5, -34.5):
        own = np.array([[1.0, 0.0], [0.0, 1.0]])
        atoms = Atoms(np.sort([0.0, place]), own if place > 0 else own[::-1])
        found = check(atoms, panels, Nearby.of(atoms, panels.middle), 2.0, 0.0, 8)
        assert np.isfinite(found.whole).all() == (abs(place) == 30)
    # And at the middle alone, between two atoms.
    for place in (30.0, 34.0):
        masses = np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
        atoms = Atoms(np.array([-place, 0.0, place]), masses)
        found = check(atoms, panels, Nearby.of(atoms, panels.middle), 2.0, 0.0, 8)
        assert np.isfinite(found.whole).all() == (place == 30)


def test_for_single_atoms_nothing_is_added_but_what_the_proof_costs():
    # The logs are parabolas: largest where they have their tops, or at an end.
    rng = np.random.default_rng(6)
    for _ in range(60):
        a, b = rng.uniform(-2, 2, 2)
        alpha, shift = 1 + 10 ** rng.uniform(-1, 0.7), rng.uniform(0, 2)
        atoms = Atoms(np.sort([a, b]), np.eye(2) if a < b else np.eye(2)[::-1])
        middle, half = rng.uniform(-4, 4), rng.uniform(0.1, 1)
        panels = Panels(np.array([middle]), np.array([half]))

        def most(centre, middle=middle, half=half):
            end = np.clip(centre, middle - LONG * half, middle + LONG * half)
            return norm.pdf(end - centre)

        found = check(atoms, panels, Nearby.of(atoms, panels.middle), alpha, shift, 8)
        constant = 4.1 * RHO**-16 / (1 - RHO**-2) * math.exp((SHORT * half) ** 2 / 2)
        for side, (x, y) in enumerate(((a, b), (b, a))):
            power = math.exp(alpha * (alpha - 1) * (x - y) ** 2 / 2)
            power *= most(alpha * x - (alpha - 1) * y)
            error = constant * half * (power + alpha * most(x) + (alpha - 1) * most(y))
            whole = 2 * half * (power + (alpha - 1) * most(y))
            for got, want in ((found.error, error), (found.whole, whole)):
                want *= math.exp(-shift)
                assert want * (1 - 1e-12) <= got[0, side] <= want * (1 + 1e-4)


def test_what_vanished_at_the_middle_may_return():
    # Halfway between two atoms far apart: the other one's weight has vanished at the
    # middle, and is the larger one at the end of the ellipse.
    far, half, alpha = 500.0, 0.5, 50.0
    masses = np.array([[0.5, 0.5], [1 - 1e-9, 1e-9]])
    atoms = Atoms(np.array([-far, far]), masses)
    angle = np.linspace(0, 2 * math.pi, 60)
    for middle, known in ((-0.75, False), (0.75, False), (-1.5, True), (1.5, True)):
        at = middle + half * (LONG * np.cos(angle) + 1j * SHORT * np.sin(angle))
        logs = log_density(atoms, at)
        shift = max((alpha * p - (alpha - 1) * q).max() for p, q in (logs, logs[::-1]))
        panels = Panels(np.array([middle]), np.array([half]))
        nearby = Nearby.of(atoms, panels.middle)
        found = check(atoms, panels, nearby, alpha, shift, 8)
        most = terms(logs, alpha, shift).max(axis=1)
        least = 4 * half * most * RHO**-16 / (1 - RHO**-2)
        assert (found.error[0] >= least).all()
        assert np.isfinite(found.error).all() == known


@pytest.mark.parametrize("far", [50.0, 500.0, 5000.0])
def test_round_off_far_from_all_atoms_is_stated(far):
    # Halfway between, where exponents are the largest and several atoms matter.
    rng = np.random.default_rng(7)
    for _ in range(20):
        sides = [rng.uniform(-1, 1, 3) + shift for shift in (-far, far)]
        atoms = Atoms(np.sort(np.concatenate(sides)), np.full((2, 6), 1 / 6))
        middle = atoms.places[2:4].mean() + rng.normal() / far
        panels = Panels(np.array([middle]), np.array([0.01]))
        (window,) = windows(atoms, panels, Nearby.of(atoms, panels.middle))
        found = math.log((window.weight @ window.masses[0])[0])
        found -= 0.5 * float(window.middle[0] - window.nearest[0]) ** 2
        with mpmath.workdps(50):
            steps = [mpmath.mpf(middle) - mpmath.mpf(x) for x in atoms.places]
            total = sum(mpmath.exp(-(s**2) / 2) for s in steps) / 6
            missed = abs(float(mpmath.mpf(found) - mpmath.log(total)))
        error = _round_off(None, 1.0, 0.0, atoms, panels, condensed=False)
        assert missed <= error <= 1e-14 * far**2 + 1e-11


def test_round_off_grows_with_the_square_of_distances():
    # Places are rounded to the last digit of their span, and of the squares of their
    # distances those within some 38.6 of the nearest matter.
    rng = np.random.default_rng(8)
    for span in (1.0, 100.0, 1e4):
        for start in (-span, 0.0, 3 * span):
            places = np.sort(rng.uniform(0, 0.4, 5)) * span + start
            places[[0, -1]] = start, start + span
            atoms = Atoms(places, np.full((2, 5), 0.2))
            low, high = start - 0.3 * span, start + 1.1 * span
            middle = np.sort(rng.uniform(low, high, 6))
            panels = Panels(middle, np.full(6, 0.3))
            away = np.abs(middle[:, None] - places).min(axis=1).max()
            least = (5 + 700 + 2 * span * (away + 38.6)) * 2.0**-52
            error = _round_off(None, 1.0, 0.0, atoms, panels, condensed=False)
            assert least <= error <= 1.1 * least + 4000 * 2.0**-52


def test_where_nothing_is_integrated_nothing_is_far():
    none = Panels(np.zeros(0), np.zeros(0))
    item = mixtures([0.0, 1.0], [0.0, 1.0], (None, None))
    for condensed in (False, True):
        atoms = _atoms(item, 1.0, 0.5, condensed)
        assert 0 < _round_off(item, 1.0, 0.5, atoms, none, condensed) < 1e-9


def test_round_off_of_nodes_counts_all_atoms_that_matter(monkeypatch):
    # A rare atom near by, and very many some ten deviations away.
    seen = []

    def spy(self, scale, reach, error=EqualNodes.error):
        seen.append(reach)
        return error(self, scale, reach)

    monkeypatch.setattr(EqualNodes, "error", spy)
    scale = 2.0
    for apart in np.arange(8.0, 12.0, 0.5):
        places, mass = [0.0, scale * apart], [1, 10**6]
        item = mixtures(places, [0.0], (mass, None))
        centre = scale * apart / 2
        atoms = _atoms(item, scale, centre, condensed=True)
        panels = Panels(np.array([-apart / 2 - 0.3]), np.array([0.1]))
        error = _round_off(item, scale, centre, atoms, panels, condensed=True)
        assert error > EqualNodes.error(item.equal_nodes, scale, seen[-1])
        # Of those beyond what was counted on less than e^-45 is due.
        steps = np.array([0.3, apart + 0.3])
        due = np.array(mass) * np.exp(-(steps**2) / 2)
        assert due[steps > seen[-1]].sum() <= math.exp(-45) * due.sum()
        assert seen[-1] <= math.hypot(0.4, math.sqrt(2 * (45 + math.log(1.1e6))))


def test_what_is_not_a_number_is_not_known():
    # Nothing of F, times what its size within the ellipse has too much of.
    atoms = Atoms(np.array([-1.0, 1.0, 6.0]), np.array([[0.0, 0, 1], [0.5, 0.5, 0]]))
    halves = np.linspace(0.5, 1.0, 60)
    unknown = 0
    for half in halves:
        panels = Panels(np.zeros(1), np.array([half]))
        found = check(atoms, panels, Nearby.of(atoms, panels.middle), 400.0, 0.0, 8)
        assert (found.error > 0).all()
        assert (found.whole > 0).all()
        unknown += found.error[0, 0] == math.inf > found.whole[0, 0]
    assert 0 < unknown < len(halves)


def test_panels_leave_no_gap_and_no_error_beyond_what_is_allowed():
    # What is allowed is less than a panel of any width has at too low an order.
    rng = np.random.default_rng(3)
    for order, tolerance in ((8, 3e-6), (12, 3e-10), (20, 1e-15)):
        for alpha in (1.5, 4.0, 20.0):
            atoms = random_atoms(rng, 6, 3.0)
            low, high = atoms.places[0] - 1.3, atoms.places[-1] + 0.7
            edges = np.linspace(low, high, 401)
            fine = Panels((edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2)
            value = integrate(atoms, fine, alpha, 0.0, 20)
            allowed = tolerance * (value.max() + 2 * alpha)
            panels, rest, missed = _panels(atoms, low, high, alpha, 0.0, allowed, order)
            assert (rest <= 1e-3 * allowed).all()
            left, right = panels.middle - panels.half, panels.middle + panels.half
            if not rest.any():
                assert left[0] == pytest.approx(low, rel=1e-13)
                assert right[-1] == pytest.approx(high, rel=1e-13)
                np.testing.assert_allclose(right[:-1], left[1:], atol=1e-12)
            # Each panel has its share of the error, all together what is allowed.
            nearby = Nearby.of(atoms, panels.middle)
            found = check(atoms, panels, nearby, alpha, 0.0, order)
            shares = allowed * 2 * panels.half / (high - low)
            assert (found.error <= shares[:, None] * (1 + 1e-9)).all()
            np.testing.assert_allclose(missed, found.error.sum(axis=0), rtol=1e-9)
            assert (missed <= allowed).all()
            total = integrate(atoms, panels, alpha, 0.0, order)
            slack = missed + rest + 1e-12 * value
            assert (np.abs(total - value) <= slack).all()
            # No finer than it need be: those twice as wide would not do.
            assert len(left) < 200


def test_bounds_stand_for_little():
    # Far out there is nothing to integrate.
    atoms = Atoms(np.array([0.0, 1.0]), np.eye(2))
    allowed = 1e-6
    panels, rest, missed = _panels(atoms, -40.0, 40.0, 2.0, 0.0, allowed, 12)
    assert (rest > 0).all()
    assert (rest <= 1e-3 * allowed).all()
    assert (missed <= allowed).all()
    assert np.abs(panels.middle).max() < 12
    # Of F, a Gaussian about 2 and another about −1; and of both densities.
    factor = math.e
    total = integrate(atoms, panels, 2.0, 0.0, 12)
    np.testing.assert_allclose(total, [factor - 1] * 2, rtol=1e-8)


def test_the_farthest_point_of_all_panels():
    rng = np.random.default_rng(4)
    for _ in range(20):
        support = np.sort(rng.uniform(-5, 5, rng.integers(1, 8)))
        panels = random_panels(rng, 6, 8.0, 0.5)
        scale, centre = rng.uniform(0.2, 3), rng.normal()
        at = panels.middle * scale + centre
        nearest = np.abs(at[:, None] - support).min(axis=1)
        found = _farthest(support, panels, scale, centre)
        expected = (nearest / scale + panels.half).max()
        assert found == pytest.approx(expected, rel=1e-12)
