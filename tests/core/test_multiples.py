"""Rounding to multiples of any step."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.core.grid import round_half_up, round_to_multiples

STEPS = st.floats(1e-300, 1e300) | st.sampled_from([0.1, 1 / 3, 5.0, 1e-3, 2.0**-1074])
LIMIT = 2**50


@given(st.lists(st.floats(-1e15, 1e15), min_size=1), st.floats(1.0, 1e9))
def test_a_multiple_within_half_a_step(values, step):
    values = np.array(values)
    rounded = round_to_multiples(values, step)
    for value, found in zip(values.tolist(), rounded.tolist(), strict=True):
        # In exact arithmetic: the nearest multiple, but for the rounding of quotients.
        times = round(Fraction(found) / Fraction(step))
        assert found == times * step
        off = abs(Fraction(value) / Fraction(step) - times)
        assert off <= Fraction(1, 2) + abs(times) * Fraction(1, 2**52)


@given(STEPS, st.lists(st.integers(1 - LIMIT, LIMIT - 1), min_size=1, max_size=5))
def test_what_is_rounded_stays(step, times):
    with np.errstate(all="ignore"):
        values = np.array(times, dtype=float) * step
    values = values[np.isfinite(values)]
    np.testing.assert_array_equal(round_to_multiples(values, step), values)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_order_is_kept(one, other, step):
    low, high = round_to_multiples(np.sort([one, other]), step)
    assert low <= high


def test_halves_go_upwards():
    values = np.array([[-1.5, -0.5], [0.5, 1.5]])
    np.testing.assert_array_equal(
        round_to_multiples(values, 1.0), [[-1.0, 0.0], [1.0, 2.0]]
    )
    # The largest number below a half, which a half would round up to one.
    assert round_to_multiples(np.array([np.nextafter(0.5, 0)]), 1.0) == 0
    assert not np.signbit(round_to_multiples(np.array([-0.0, -0.2]), 1.0)).any()
    assert round_to_multiples(np.zeros(0), 3.0).shape == (0,)


def test_powers_of_two_as_on_the_noise_grid():
    values = np.random.default_rng(0).normal(0, 1e3, 1000)
    expected = round_half_up(values, 0.25, np.empty(1000)) * 0.25
    np.testing.assert_array_equal(round_to_multiples(values, 0.25), expected)


@pytest.mark.parametrize(
    ("value", "step"),
    [
        (2.0**50, 1.0),
        (-(2.0**50), 1.0),
        (1e300, 1e-300),
        (np.inf, 1.0),
        (np.nan, 1.0),
        # Rounded up, beyond all floats.
        (1.7e308, 1e308),
    ],
)
def test_values_out_of_reach(value, step):
    with pytest.raises(ValueError, match=r"1 of 2 values are 2\*\*50 steps of .* or"):
        round_to_multiples(np.array([0.0, value]), step)
    assert round_to_multiples(np.array([2.0**50 - 1]), 1.0) == 2.0**50 - 1
