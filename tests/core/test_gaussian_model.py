"""The Gaussian model: its divergence by quadrature, its scale by the divergence."""

import math

import numpy as np
import pytest
from core_support import ORDERS, conditional, fixed, pair
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from skpuffer.core import gaussian_model
from skpuffer.core.calibration import RULES, Budget, CalibrationError, calibrate
from skpuffer.core.gaussian_model import GaussianPair, gaussian_divergence
from skpuffer.core.grid import grid_step
from skpuffer.core.laws import LAWS


def gaussian_scale(pairs, budget):
    return gaussian_model.gaussian_scale([GaussianPair(*p) for p in pairs], budget)


def by_quadrature(mean, variance, other_mean, other, alpha):
    p, q = stats.norm(mean, variance**0.5), stats.norm(other_mean, other**0.5)

    def integrand(x):
        return math.exp(alpha * p.logpdf(x) + (1 - alpha) * q.logpdf(x))

    # The integrand is a Gaussian: around its own mean.
    precision = alpha / variance + (1 - alpha) / other
    centre = (alpha * mean / variance + (1 - alpha) * other_mean / other) / precision
    width = 40 / math.sqrt(precision)
    value, _ = integrate.quad(
        integrand, centre - width, centre + width, points=[centre], epsabs=0, limit=200
    )
    return math.log(value) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 5.0])
@pytest.mark.parametrize(
    ("gap", "variance", "other"),
    [(0, 1, 1.1), (1, 2, 2), (-0.7, 0.9, 3), (0.1, 1.1, 1)],
)
def test_divergence_is_the_integral(alpha, gap, variance, other):
    expected = by_quadrature(3.0, variance, 3.0 + gap, other, alpha)
    found = gaussian_divergence(gap, variance, other, alpha=alpha)
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-10)


def test_divergence_is_infinite_just_where_the_integral_diverges():
    # v = α·other − (α−1)·variance must be positive.
    assert gaussian_divergence(0.5, 2.0, 1.0001, alpha=2.0) < math.inf
    assert gaussian_divergence(0.5, 2.0, 1.0, alpha=2.0) == math.inf
    assert gaussian_divergence(0.5, 2.0, 0.5, alpha=2.0) == math.inf
    assert gaussian_divergence(0.5, 0.5, 2.0, alpha=2.0) < math.inf


def test_point_masses():
    assert gaussian_divergence(0.0, 0.0, 0.0, alpha=2.0) == 0
    assert gaussian_divergence(1.0, 0.0, 0.0, alpha=2.0) == math.inf
    assert gaussian_divergence(0.0, 0.0, 1.0, alpha=2.0) == math.inf
    assert gaussian_divergence(0.0, 1.0, 0.0, alpha=2.0) == math.inf


def test_nearly_equal_variances_keep_their_digits():
    # D = α ρ² / 4 + O(ρ³) for variances 1 and 1 + ρ.
    rho = 1e-5
    found = gaussian_divergence(0.0, 1.0, 1 + rho, alpha=3.0)
    assert found == pytest.approx(3 * rho**2 / 4, rel=1e-4)


def worst_divergence(groups, sigma, alpha):
    """Both directions, from numpy's own moments and the textbook formula."""
    found = []
    for one, other in (groups, groups[::-1]):
        v1, v2 = np.var(one) + sigma**2, np.var(other) + sigma**2
        mixed = alpha * v2 - (alpha - 1) * v1
        if mixed <= 0:
            return math.inf
        gap = np.mean(one) - np.mean(other)
        logs = math.log(mixed) - (1 - alpha) * math.log(v1) - alpha * math.log(v2)
        found.append(alpha * gap**2 / (2 * mixed) + logs / (2 * (1 - alpha)))
    return max(found)


def values():
    return st.lists(
        st.floats(-20, 20).map(lambda x: round(x, 2)), min_size=2, max_size=9
    )


def test_the_scale_is_the_smallest_on_the_grid():
    @fixed(150, "gaussian model")
    @given(values(), values(), st.sampled_from(ORDERS), st.sampled_from([0.05, 0.5, 4]))
    def run(first, second, alpha, epsilon):
        item = conditional(first), conditional(second)
        sigma = gaussian_scale([item], Budget(alpha, epsilon)).scale[0]
        groups = np.array(first), np.array(second)
        if sigma == 0:
            same = item[0].same_distribution(item[1])
            floor = 1e-6
            assert same or worst_divergence(groups, floor, alpha) <= epsilon * 1.000001
            return
        assert worst_divergence(groups, sigma, alpha) <= epsilon * (1 + 1e-9)
        assert worst_divergence(groups, sigma * (1 - 3e-6), alpha) > epsilon * (
            1 - 1e-9
        )
        # From there on it holds: more noise is noise on a release.
        more = sigma * np.geomspace(1, 100, 30)
        spent = [worst_divergence(groups, s, alpha) for s in more]
        assert (np.diff(spent) <= 1e-9).all()
        # On the grid of the release.
        steps = sigma / grid_step(sigma)
        assert steps == int(steps)

    run()


@pytest.mark.parametrize("k", [2, 5])
def test_copies_by_the_covariance_of_all_of_them(k):
    # k copies of X ~ N(m, v) are Gaussian with covariance v 11' + σ² I.
    first, second = [0.0, 4.0, 5.0], [1.0, 2.0, 9.0]
    alpha, epsilon = 2.5, 0.3
    item = conditional(first), conditional(second)
    one = gaussian_scale([item], Budget(alpha, epsilon)).scale[0]
    sigma = gaussian_scale([item], Budget(alpha, epsilon, k)).scale[0]
    assert sigma == pytest.approx(one * math.sqrt(k), rel=3e-6)
    gap = np.full(k, np.mean(first) - np.mean(second))
    shared = [
        np.var(x) * np.ones((k, k)) + sigma**2 * np.eye(k) for x in (first, second)
    ]
    spent = []
    for a, b in (shared, shared[::-1]):
        mixed = alpha * b + (1 - alpha) * a
        assert np.linalg.eigvalsh(mixed).min() > 0
        logs = [np.linalg.slogdet(m)[1] for m in (mixed, a, b)]
        spent.append(
            alpha / 2 * gap @ np.linalg.solve(mixed, gap)
            - (logs[0] - (1 - alpha) * logs[1] - alpha * logs[2]) / (2 * (alpha - 1))
        )
    assert max(spent) == pytest.approx(epsilon, rel=1e-5)
    assert max(spent) <= epsilon * (1 + 1e-9)


def test_point_masses_need_what_their_shift_needs():
    budget = Budget(3.0, 0.5)
    item = conditional([1.0] * 5), conditional([3.0] * 9)
    rule, law = RULES["w_inf"](), LAWS["gaussian"]()
    expected = calibrate([pair([1.0], [3.0])], law, rule, budget).scale[0]
    assert gaussian_scale([item], budget).scale[0] == pytest.approx(expected, rel=2e-6)


def test_the_worst_pair_decides():
    near = conditional([0.0, 2.0]), conditional([0.5, 2.5])
    far = conditional([0.0, 2.0]), conditional([5.0, 7.0])
    budget = Budget(2.0, 0.1)
    both = gaussian_scale([near, far], budget)
    assert both.worst == 1
    assert both.scale == gaussian_scale([far], budget).scale
    assert both.scale[0] > gaussian_scale([near], budget).scale[0] > 0


def test_what_is_spent_at_other_orders_is_the_worst_of_all_pairs():
    groups = [([0.0, 2.0, 7.0], [0.5, 2.5]), ([0.0, 2.0], [3.0, 5.5]), ([1.0], [2.0])]
    items = [tuple(conditional(rows) for rows in pair) for pair in groups]
    for k in (1, 3):
        found = gaussian_scale(items, Budget(2.0, 0.4, k))
        sigma = found.scale[0] / math.sqrt(k)
        for alpha in (1.1, 2.0, 6.0, 40.0):
            expected = [worst_divergence(pair, sigma, alpha) for pair in groups]
            assert found.divergence(alpha) == pytest.approx(max(expected), rel=1e-9)
        assert 0.4 * (1 - 1e-5) < found.divergence(2.0) <= 0.4


def test_no_noise_where_the_model_needs_none():
    budget = Budget(2.0, 0.5)
    item = conditional([0.0, 10.0, 20.0]), conditional([0.1, 10.0, 20.0])
    assert gaussian_scale([item], budget).scale[0] == 0
    same = conditional([1.0, 1.0]), conditional([1.0])
    assert gaussian_scale([same], budget).scale[0] == 0
    # In any unit: no square of it is needed.
    for unit in (2.0**-600, 2.0**-100, 2.0**600):
        first, second = (unit * np.array(x) for x in ([0.0, 10.0, 20.0], [0.1, 10, 20]))
        item = conditional(first), conditional(second)
        assert gaussian_scale([item], budget).scale[0] == 0
        first[2] += 0.1 * unit
        item = conditional(first), conditional(second - 0.1 * (second < unit) * unit)
        assert gaussian_scale([item], budget).scale[0] == 0
    # All of the promise may be spent: variances 1, and a gap of 1.
    item = conditional([-1.0, 1.0]), conditional([0.0, 2.0])
    assert gaussian_scale([item], Budget(2.0, 1.0)).scale[0] == 0
    assert gaussian_scale([item], Budget(2.0, math.nextafter(1.0, 0))).scale[0] > 0


def test_an_offset_and_weights_do_not_matter():
    first, second = np.array([0.5, 2.0, 3.25]), np.array([1.0, 5.0])
    budget = Budget(2.0, 0.2)
    plain = gaussian_scale([(conditional(first), conditional(second))], budget)
    moved = conditional(first + 2.0**33), conditional(second + 2.0**33)
    assert gaussian_scale([moved], budget).scale == plain.scale
    weighted = conditional(first, [2.0, 2.0, 2.0]), conditional(second, [0.5, 0.5])
    assert gaussian_scale([weighted], budget).scale == plain.scale


@pytest.mark.parametrize("k", [1, 4])
def test_a_scale_that_fails_its_condition_raises(k, monkeypatch):
    monkeypatch.setattr(gaussian_model, "scale_to_grid", lambda scale: 0.9 * scale)
    item = conditional([0.0, 2.0]), conditional([5.0, 7.0])
    with pytest.raises(CalibrationError, match="Gaussian condition"):
        gaussian_scale([item], Budget(2.0, 0.1, k))
