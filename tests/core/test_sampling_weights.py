"""The weights of noise on a grid, each by the definition of its law."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import mpmath
import numpy as np
import pytest

from skpuffer.core.bits import contexts
from skpuffer.core.sampling_weights import (
    GaussianWeights,
    PowerWeights,
    RoundedLaplaceWeights,
)

KINDS = {
    "laplace": RoundedLaplaceWeights,
    "gaussian": GaussianWeights,
    **{f"power {p}": lambda t, p=p: PowerWeights(t, p) for p in (0.2, 0.5, 1.0)},
}


def exact(weights, k):
    """w(k) by mpmath, each law by its own definition."""
    k = mpmath.mpf(k)
    if isinstance(weights, GaussianWeights):
        return mpmath.exp(-k * k / (2 * mpmath.mpf(weights.s) ** 2))
    t = mpmath.mpf(weights.t)
    if isinstance(weights, PowerWeights):
        return mpmath.exp(-((k / t) ** mpmath.mpf(weights.power)))
    # The mass that rounding gives to k and -k, each with one of the signs.
    mass = mpmath.exp(-(k - 0.5) / t) - mpmath.exp(-(k + 0.5) / t)
    if k == 0:
        mass = 2 * (1 - mpmath.exp(-0.5 / t))
    return mass / (2 * mpmath.sinh(0.5 / t))


@pytest.mark.parametrize("t", [1, 2, 7, 1000, 2**20, 2**22])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_by_their_definition(kind, t):
    weights = KINDS[kind](t)
    down, up = contexts(0)
    near_zero = np.arange(4)
    far = np.unique((np.geomspace(1, 30, 12) * t).astype(int))
    with mpmath.workdps(60):
        for k in np.append(near_zero, far).tolist():
            true = exact(weights, k)
            least, most = weights.bounds(k, down, up)
            assert mpmath.mpf(str(least)) <= true <= mpmath.mpf(str(most))
            assert most - least <= most * Decimal("1e-34")
            x = float(weights.exponent(np.array([float(k)]))[0])
            reference = -mpmath.log(true)
            assert abs(x - reference) <= 2**-48 * reference
        if t <= 1000:
            if kind in ("laplace", "gaussian", "power 1.0"):
                # Every so many are enough for a sum of slow steps.
                step = max(1, t // 50)
                near = [exact(weights, k) for k in range(0, 40 * t, step)]
                total = float(near[0] + step * mpmath.fsum(near[1:]))
                assert weights.total == pytest.approx(total, rel=0.15)
            ratios = [exact(weights, 2 * k) / exact(weights, k) for k in (t, 5 * t)]
            for k, ratio in zip((t, 5 * t), ratios, strict=True):
                # x(2k) is 2^power x(k).
                grown = (2**weights.power - 1) * -mpmath.log(exact(weights, k))
                assert -mpmath.log(ratio) >= grown * (1 - mpmath.mpf(10) ** -9)


@pytest.mark.parametrize("digits", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_with_few_digits(kind, digits):
    # There each rounding to the wrong side is seen, once in a few numbers.
    down, up = Context(digits, ROUND_FLOOR), Context(digits, ROUND_CEILING)
    for t in range(1, 15):
        weights = KINDS[kind](t)
        for k in range(5 * t):
            true = float(exact(weights, k))
            least, most = (float(bound) for bound in weights.bounds(k, down, up))
            assert least <= true * (1 + 1e-14)
            assert true <= most * (1 + 1e-14)
