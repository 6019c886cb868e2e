"""The search for an order on functions whose least order is known."""

import math

import pytest
from scipy.optimize import brentq

from skpuffer.core.calibration import best_order
from skpuffer.core.conversions import renyi_budget

# Reached by every order that is looked at.
TARGET = 1e4, 0.1


@pytest.mark.parametrize("deepest", [-1.98, -1.85, -1.37, 0.0, 1.26, 2.9, 3.98])
def test_the_deeper_of_two_valleys(deepest):
    # The other is wide, and ends at an order that is looked at first.
    for wide in (-1.0, 0.0, 3.0):

        def noise(alpha, _, wide=wide):
            place = math.log10(alpha - 1)
            return min(10 * abs(place - deepest) - 5, abs(place - wide) / 2)

        found = best_order(noise, *TARGET, infinite=False)
        assert math.log10(found - 1) == pytest.approx(deepest, abs=1e-3)


def test_the_ends():
    assert best_order(lambda alpha, _: alpha, *TARGET, infinite=True) == 1 + 10**-2
    assert best_order(lambda alpha, _: -alpha, *TARGET, infinite=False) == 1 + 10**4
    # Among equals the least.
    assert best_order(lambda *_: 0.0, *TARGET, infinite=True) == 1 + 10**-2


def test_orders_beyond_which_no_noise_is_needed():
    def noise(alpha, _):
        return 1.0 if alpha < 3.3 else -math.inf

    assert 3.3 <= best_order(noise, *TARGET, infinite=True) < 3.3 * 1.2


def test_no_order_is_asked_for_an_empty_budget():
    # At order 2 nothing is left of this target, to the last bit.
    target = 0.9162907318741548, 0.1
    assert renyi_budget(2.0, *target) == 0

    def noise(alpha, epsilon):
        seen.append(alpha)
        return math.log(alpha / epsilon)

    seen = []
    found = best_order(noise, *target, infinite=True)
    assert 2 < min(seen) < found < max(seen) == math.inf
    least = math.log(found / renyi_budget(found, *target))
    for factor in (0.9, 0.99, 1.01, 1.1):
        near = 1 + (found - 1) * factor
        assert least <= math.log(near / renyi_budget(near, *target))


@pytest.mark.parametrize("epsilon", [1.06, 1.02, 0.96, 0.3])
def test_the_least_order_within_reach(epsilon):
    # The search looks at orders beyond reach on its way.
    least = brentq(lambda alpha: renyi_budget(alpha, epsilon, 0.1), 1.01, 9)
    found = best_order(lambda alpha, _: alpha, epsilon, 0.1, infinite=False)
    assert least < found < 1 + (least - 1) * 1.005
