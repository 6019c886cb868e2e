"""The root finder ends on the private side; log-moments keep their digits."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from core_support import fixed
from hypothesis import assume, given
from hypothesis import strategies as st

from skpuffer.core.calibration import Budget, CalibrationError, log_moment, solve_scale

logs = st.floats(-30, 30)


def steps(places, values):
    """A decreasing step function: values[i] below places[i]."""
    places = np.exp(np.sort(places))
    values = np.sort(values)[::-1]
    return lambda scale: float(values[np.searchsorted(places, scale)])


def power(root, slope, target):
    def function(scale):
        log_value = math.log(target) - slope * (math.log(scale) - root)
        return math.exp(log_value) if log_value < 700 else math.inf

    return function


# --- solve_scale ---


@fixed(200)
@given(logs, st.floats(-3, 6).map(lambda p: 10**p), logs, logs)
def test_smooth_functions(root, slope, target, start):
    target = math.exp(target)
    function = power(root, slope, target)
    scale = solve_scale(function, target, start=math.exp(start))
    assert function(scale) <= target
    if slope >= 0.1:
        assert scale == pytest.approx(math.exp(root), rel=2e-10)
        assert function(scale * (1 - 3e-10)) > target


@fixed(300)
@given(
    st.lists(logs, min_size=5, max_size=5),
    st.lists(
        st.one_of(logs.map(math.exp), st.sampled_from([0.0, math.inf, 1e300, 1e-300])),
        min_size=6,
        max_size=6,
    ),
    logs,
    logs,
)
def test_step_functions(places, values, target, start):
    # Jumps, infinite values and zeros; the target is never reached but jumped over.
    function, target = steps(places, values), math.exp(target)
    assume(min(values) <= target and target not in values)
    scale = solve_scale(function, target, start=math.exp(start))
    assert function(scale) <= target
    if max(values) > target:
        assert function(scale * (1 - 2e-10)) > target
    else:
        # Any scale will do: the smallest that can be tried.
        assert scale < 1e-300


@pytest.mark.parametrize("target", [1e-300, 1e-5, 0.3, 1e300])
@pytest.mark.parametrize("start", [1e-3, 6.9, 1e4])
def test_one_rounding_above_the_target_is_above_it(target, start):
    # The logarithms of neighbouring floats can be the same number.
    above = math.nextafter(target, math.inf)
    scale = solve_scale(lambda s: above if s < 7 else target, target, start=start)
    # Where the target is met exactly, the search may stop within its last doubling.
    assert 7 <= scale <= 14 * (1 + 1e-12)


@pytest.mark.parametrize("target", [1e-3, 1.0])
def test_ripples_do_not_matter(target):
    # Round-off makes a real functional rise here and there.
    def function(scale):
        return target * (3 / scale) * (1 + 1e-13 * math.sin(1e15 * scale))

    for start in (0.1, 3.0, 50.0):
        scale = solve_scale(function, target, start=start)
        assert function(scale) <= target
        assert scale == pytest.approx(3, rel=1e-10)


def test_a_functional_that_fails_at_the_root_is_met_further_up():
    # Wherever the root finder lands below 5 the condition is not met.
    calls = itertools.count()

    def function(scale):
        return 2.0 if scale < 5 and next(calls) < 10**4 else 1.0 / scale

    assert solve_scale(function, 1.0, start=5.5) >= 5

    # The condition that `upper` met is not met between it and the root.
    met = set()

    def brittle(scale):
        if not met or scale in met:
            met.add(scale)
            return 0.5
        return 2.0

    assert solve_scale(brittle, 1.0, start=3.0) in met


def test_no_solution():
    for function in (lambda s: 2.0, lambda s: math.inf, lambda s: 1.5 + 1 / s):
        with pytest.raises(CalibrationError, match="no finite scale"):
            solve_scale(function, 1.0, start=1.0)


@pytest.mark.parametrize("edge", [0.0, 0.5, 8.0, math.inf])
def test_not_a_number(edge):
    def function(scale):
        return math.nan if scale > edge or edge == math.inf else 7.0

    with pytest.raises(CalibrationError, match="not a number"):
        solve_scale(function, 1.0, start=1.0)


# --- log_moment ---


def precise(exponents, mass):
    """Log of E exp(exponent), 60 digits, where the masses sum to one exactly."""
    with mpmath.workdps(60):
        excess = mpmath.fsum(
            mpmath.mpf(m) * mpmath.expm1(mpmath.mpf(x))
            for m, x in zip(mass, exponents, strict=True)
        )
        return float(mpmath.log1p(excess))


@fixed(300)
@given(
    st.lists(
        st.tuples(
            st.one_of(
                st.just(0.0),
                st.floats(-12, 3.4).map(lambda p: 10**p),
            ),
            st.one_of(st.floats(0.1, 1), st.floats(-12, 0).map(lambda p: 10**p)),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_log_moment_against_multiprecision(atoms):
    exponents, mass = np.array(atoms).T
    mass = mass / mass.sum()
    found = log_moment(exponents, mass)
    assert found == pytest.approx(precise(exponents, mass), rel=1e-12, abs=0)


def test_log_moment_of_a_rare_large_exponent():
    # 1e-9 e^2 over a moment of one: the digits of the excess must survive.
    found = log_moment(np.array([0.0, 2.0]), np.array([1 - 1e-9, 1e-9]))
    assert found == pytest.approx(1e-9 * math.expm1(2), rel=1e-8)
    expected = math.log1p(1e-9 * math.expm1(2))
    assert found == pytest.approx(expected, rel=1e-14)


def test_log_moment_limits():
    one = np.array([1.0])
    assert log_moment(np.array([0.0]), one) == 0
    assert log_moment(np.array([1e-320]), one) == pytest.approx(1e-320)
    assert log_moment(np.array([1e6]), one) == 1e6
    assert log_moment(np.array([math.inf, 0.0]), np.array([0.1, 0.9])) == math.inf
    found = log_moment(np.array([5000.0, 4000.0]), np.array([0.25, 0.75]))
    assert found == pytest.approx(5000 + math.log(0.25), rel=1e-15)
    # Mass that is charged twice only raises it.
    for top in (0.5, 50.0, 5000.0):
        exponents = np.array([0.0, top])
        less = log_moment(exponents, np.array([0.5, 0.5]))
        assert log_moment(exponents, np.array([0.5, 0.6])) > less
        assert log_moment(exponents, np.array([0.6, 0.5])) >= less


# --- the target ---


def test_the_target_of_a_budget():
    assert Budget(3.0, 0.5).log_target == 1.0
    assert Budget(2.0, 0.5).n_releases == 1
    # Beyond the floats every moment would be small enough.
    with pytest.raises(ValueError, match="overflows at alpha=1e\\+308"):
        _ = Budget(1e308, 10.0).log_target
