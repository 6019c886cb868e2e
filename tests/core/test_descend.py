"""The search for an exact scale: close, certified, and not lost on any curve."""

import math

import pytest

from skpuffer.core.calibration._descend import descend
from skpuffer.core.mixtures import DivergenceBound


def test_descend_stops_at_the_floor():
    def bound(scale, tolerance):
        return DivergenceBound(0.1 * scale**-0.01, 0.1 * scale**-0.01)

    options = {"floor": 1e-3, "search": 1e-3, "confirm": 1e-6}
    found = descend(bound, 1.0, ceiling=1.0, **options)
    assert found == pytest.approx(1e-3, rel=1e-4)
    assert descend(bound, 0.05, ceiling=1.0, **options) is None
    assert descend(bound, 1.0, ceiling=1e-4, **options) is None


def test_descend_gives_up_when_nothing_is_certified():
    def bound(scale, tolerance):
        return DivergenceBound(1 / scale, math.inf)

    options = {"floor": 1e-3, "search": 1e-3, "confirm": 1e-6}
    assert descend(bound, 1.0, ceiling=3.0, **options) is None


def test_descend_recovers_from_poor_estimates():
    def bound(scale, tolerance):
        return DivergenceBound(1 / scale**2, 1.02 / scale**2)

    found = descend(bound, 1.0, ceiling=9.0, floor=1e-3, search=1e-3, confirm=1e-6)
    assert found == pytest.approx(math.sqrt(1.02), rel=1e-5)
    assert 1.02 / found**2 <= 1


@pytest.mark.parametrize("beyond", [math.inf, math.nan])
def test_a_cliff_is_no_obstacle(beyond):
    def bound(scale, tolerance):
        value = 0.5 / scale if scale > 0.7 else beyond
        return DivergenceBound(value, value)

    found = descend(bound, 1.0, ceiling=9.0, floor=1e-3, search=1e-3, confirm=1e-6)
    assert 0.7 < found < 0.7 * 1.03


def test_few_looks_suffice_even_where_interpolation_stalls():
    # Nearly flat on one side, steep on the other.
    def bound(scale, tolerance):
        seen.append(scale)
        value = 1 / scale**40 if scale > 1 else 1 + 60 * (1 - scale)
        return DivergenceBound(value, value)

    for goal, root in ((0.5, 2 ** (1 / 40)), (1.5, 1 - 1 / 120), (20.0, 41 / 60)):
        seen = []
        options = {"floor": 1e-3, "search": 1e-3, "confirm": 1e-6}
        found = descend(bound, goal, ceiling=1.7, certified=False, **options)
        assert len(seen) <= 12
        assert found == pytest.approx(root, rel=3e-5)


def test_a_cliff_in_the_certificate():
    def bound(scale, tolerance):
        return DivergenceBound(1 / scale, 1 / scale if scale > 5 else 1.5)

    found = descend(bound, 1.0, ceiling=90.0, floor=1e-3, search=1e-3, confirm=1e-6)
    assert 5 < found < 5.01
