"""Noise laws against multiprecision, quadrature and their own densities."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import mpmath
import numpy as np
import oracles
import pytest
from core_support import EXACT_LAWS, SHIFT_RULES, cost
from scipy.integrate import quad

from skpuffer.core.grid import grid_step, scale_to_grid
from skpuffer.core.laws import (
    LAWS,
    Exponential,
    Gaussian,
    Laplace,
    NoiseLaw,
    bears_a_taken_name,
    is_own,
    law_parameters,
    missing_members,
)
from skpuffer.core.sampling import SeededBits

EACH = pytest.mark.parametrize("name", LAWS)
ORDERS = [1.0001, 1.01, 1.5, 2.0, 7.0, 50.0, 1e3, 1e6]


def textbook(name, z, alpha):
    """D_alpha of a unit law at shift z, with 80 digits."""
    with mpmath.workdps(80):
        z, a = mpmath.mpf(z), mpmath.mpf(alpha)
        if name == "exponential":
            c = mpmath.sqrt(z)
            ratio = mpmath.sinh(a * c) - mpmath.sinh((a - 1) * c)
            return float(mpmath.log(ratio / mpmath.sinh(c)) / (a - 1))
        if name == "gaussian":
            return float(a * z * z / 2)
        phi = a / (2 * a - 1) * mpmath.exp((a - 1) * z)
        phi += (a - 1) / (2 * a - 1) * mpmath.exp(-a * z)
        return float(mpmath.log(phi) / (a - 1))


# --- every law in the registry ---


def test_the_registry():
    assert set(LAWS) >= {"laplace", "gaussian"}


@EACH
def test_the_contract(name):
    law = LAWS[name]()
    assert law.name == name
    assert law.homogeneity > 0
    assert law.max_order > 1e6
    assert isinstance(law.convex, bool)
    assert set(law.sources) <= set(SHIFT_RULES)
    for method in (m for m in dir(NoiseLaw) if not m.startswith("_")):
        assert hasattr(law, method)
    for member in ("shift_divergence", "wasserstein_exponent", "logpdf", "noise_std"):
        assert getattr(law, member).__doc__


@EACH
def test_the_density_is_one_and_has_the_stated_spread(name):
    law = LAWS[name]()
    for scale in (0.3, 1.0, 7.0):
        # In units that make a heavy tail exponential.
        power = 1 / min(1, law.homogeneity)

        def density(v, scale=scale, power=power):
            z = scale * v**power
            slope = power * scale * v ** (power - 1)
            return math.exp(law.logpdf(z, scale=scale)) * slope

        def second(v, density=density, scale=scale, power=power):
            return (scale * v**power) ** 2 * density(v)

        assert 2 * quad(density, 0, 60)[0] == pytest.approx(1, rel=1e-9)
        variance = 2 * quad(second, 0, 60)[0]
        assert math.sqrt(variance) == pytest.approx(law.noise_std(scale), rel=1e-8)
    assert law.noise_std([0.0, 2.0]).shape == (2,)
    assert law.noise_std([0.0, 2.0])[0] == 0


@EACH
@pytest.mark.parametrize("alpha", [1.2, 2.0, 9.0])
def test_the_density_has_the_stated_divergence(name, alpha):
    law, scale, shift = LAWS[name](), 0.7, 1.1

    def integrand(z):
        here, there = law.logpdf([z, z - shift], scale=scale)
        return math.exp(alpha * here - (alpha - 1) * there)

    peak = (1 - alpha) * shift if name == "gaussian" else 0.0
    cuts = [peak, 0.0, shift]
    reach = (40 if law.convex else 3600) * scale
    options = {"points": cuts, "limit": 500}
    value = quad(integrand, peak - reach, shift + reach, **options)[0]
    found = law.shift_divergence([[shift]], alpha=alpha, scale=scale)[0]
    divergence = math.log(value) / (alpha - 1)
    if name in EXACT_LAWS:
        assert divergence == pytest.approx(found, rel=1e-7)
    else:
        assert found / 50 < divergence < found


@pytest.mark.parametrize("name", EXACT_LAWS)
@pytest.mark.parametrize("alpha", [1.01, 2.0, 30.0])
@pytest.mark.parametrize("ratio", [1e-3, 0.05, 0.4, 2.0, 11.0])
def test_against_quadrature(name, alpha, ratio):
    found = LAWS[name]().shift_divergence([[3 * ratio]], alpha=alpha, scale=3.0)[0]
    expected = oracles.shift_divergence(name, 3 * ratio, 3.0, alpha)
    assert found == pytest.approx(expected, rel=1e-11)


@EACH
@pytest.mark.parametrize("alpha", ORDERS)
def test_against_multiprecision(name, alpha):
    # Also around the joints of the formulas: z = 1/alpha and the series.
    ratios = np.concatenate(
        [
            np.geomspace(1e-12, 1e3, 61),
            np.array([0.0999, 0.1001, 0.999, 1.0, 1.001]) / alpha,
            np.array([0.0999, 0.1001]) / (alpha - 1),
        ]
    )
    found = LAWS[name]().shift_divergence(ratios[:, None], alpha=alpha, scale=1.0)
    expected = [textbook(name, z, alpha) for z in ratios.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@EACH
def test_the_sign_of_a_shift_does_not_matter_and_columns_add_up(name):
    law, rng = LAWS[name](), np.random.default_rng(0)
    shifts = rng.normal(size=(50, 3)) * [1, 10, 0.1]
    scale = np.array([0.5, 7.0, 0.2])
    for alpha in (1.3, 2.0, 40.0):
        found = law.shift_divergence(shifts, alpha=alpha, scale=scale)
        assert found.shape == (50,)
        again = law.shift_divergence(-shifts, alpha=alpha, scale=scale)
        np.testing.assert_array_equal(found, again)
        expected = cost(name, shifts, alpha=alpha, scale=scale) / (alpha - 1)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@EACH
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 3)])
def test_several_orders_are_those_of_each(name, shape):
    law, alphas = LAWS[name](), np.array([1.2, 2.0, 30.0])
    shifts = np.random.default_rng(2).exponential(size=shape)
    scale = np.arange(1.0, shape[1] + 1)
    found = law.shift_divergence(shifts, alpha=alphas, scale=scale)
    assert found.shape == (3, shape[0])
    for row, alpha in zip(found, alphas.tolist(), strict=True):
        expected = cost(name, shifts, alpha=alpha, scale=scale) / (alpha - 1)
        np.testing.assert_allclose(row, expected, rtol=1e-9)


@EACH
def test_zero_shifts_and_zero_scales(name):
    law = LAWS[name]()
    orders = [1.5, 2.0] + [math.inf] * math.isinf(law.max_order)
    for alpha in orders:
        options = {"alpha": alpha, "scale": [0.0, 1.0]}
        shifts = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1e-300, 1.0]]
        zero, finite, *infinite = law.shift_divergence(shifts, **options)
        assert zero == 0
        assert 0 < finite < math.inf
        assert infinite == [math.inf, math.inf]
        if alpha < math.inf:
            exponents = law.wasserstein_exponent(shifts, **options)
            assert exponents[0] == 0
            assert exponents[2:].tolist() == [math.inf, math.inf]
    tiny = law.shift_divergence([[1e200]], alpha=2.0, scale=1e-200)
    assert tiny == [math.inf]


@EACH
def test_the_published_exponent_is_above_the_transport_cost_and_homogeneous(name):
    law, rng = LAWS[name](), np.random.default_rng(1)
    shifts = np.abs(rng.normal(size=(40, 2))) * 10.0 ** rng.integers(-6, 3, (40, 1))
    scale = np.array([1.0, 3.0])
    for alpha in (1.001, 1.5, 2.0, 30.0, 1e4):
        exponent = law.wasserstein_exponent(shifts, alpha=alpha, scale=scale)
        divergence = law.shift_divergence(shifts, alpha=alpha, scale=scale)
        assert (exponent >= (alpha - 1) * divergence * (1 - 1e-12)).all()
        again = law.wasserstein_exponent(shifts, alpha=alpha, scale=4 * scale)
        np.testing.assert_allclose(again * 4.0**law.homogeneity, exponent, rtol=1e-12)


@EACH
@pytest.mark.parametrize("alpha", [1.01, 2.0, 20.0])
def test_costs_increase_and_are_convex_where_they_say_so(name, alpha):
    law, z = LAWS[name](), np.linspace(0, 4, 4001)[:, None]
    for copies in (1, 3):
        for exponent in (
            (alpha - 1) * law.shift_divergence(z, alpha=alpha, scale=1.0),
            law.wasserstein_exponent(z, alpha=alpha, scale=1.0),
        ):
            value = np.exp(copies * (exponent - exponent.max()))
            slope = np.diff(value)
            assert (slope >= 0).all()
            if law.convex:
                assert (np.diff(slope) >= -1e-15).all()


@EACH
def test_a_release_lies_on_the_grid_and_has_the_spread(name):
    law, scale = LAWS[name](), scale_to_grid(2.7)
    values = np.linspace(-5, 5, 20_000)
    out = np.empty_like(values)
    released = law.perturb(values, scale=scale, bits=SeededBits(0, 0), out=out)
    assert released is out
    again = law.perturb(values, scale=scale, bits=SeededBits(0, 0))
    np.testing.assert_array_equal(released, again)
    index = released / grid_step(scale)
    np.testing.assert_array_equal(index, np.rint(index))
    # Five standard errors of the spread.
    kurtosis = 6 if law.convex else math.gamma(10) / math.gamma(6) ** 2
    error = 5 * math.sqrt((kurtosis - 1) / 4 / len(values))
    assert (released - values).std() == pytest.approx(law.noise_std(scale), rel=error)


# --- whose a law is ---


class Mine(NoiseLaw):
    """A law that bears a name and nothing else."""

    name = "mine"
    max_order = 2.0
    shift_divergence = noise_std = logpdf = perturb = None


def named(law, name):
    return type("Other", (type(law),), {"name": name})()


def marked(law):
    vars(law)["noise_std"] = None
    return law


@dataclass(frozen=True)
class Parts(Mine):
    second: float = 2.0
    first: str = "one"


def test_laws_of_the_package_and_others():
    ours = [*(law() for law in LAWS.values()), Exponential(0.3)]
    others = [Mine(), Parts(), *(marked(law()) for law in (*LAWS.values(), Mine))]
    others += [named(law, "other") for law in ours]
    assert not any(is_own(law) for law in ours)
    assert all(is_own(law) for law in others)


def test_a_name_is_taken_however_it_is_written():
    assert not any(bears_a_taken_name(law()) for law in (*LAWS.values(), Mine, Parts))
    for law in LAWS.values():
        for name in (law.name, law.name.upper(), f" {law.name}\n"):
            assert bears_a_taken_name(named(law(), name))
            assert bears_a_taken_name(named(Mine(), name))
        assert bears_a_taken_name(marked(law()))
        assert not bears_a_taken_name(named(law(), law.name + "s"))


def test_parameters_are_the_fields_in_their_order():
    assert law_parameters(Parts()) == (("second", 2.0), ("first", "one"))
    assert law_parameters(Exponential(0.7)) == (("power", 0.7),)
    assert law_parameters(Laplace()) == law_parameters(marked(Gaussian())) == ()


def test_members_that_are_missing():
    every = ["convex", "homogeneity", "logpdf", "max_order", "name", "noise_std"]
    every += ["perturb", "shift_divergence", "sources", "wasserstein_exponent"]
    assert missing_members(object()) == every
    for member in every:
        has = {name: None for name in every if name != member}
        assert missing_members(SimpleNamespace(**has)) == [member]
    assert not any(missing_members(law()) for law in (*LAWS.values(), Mine))


# --- one law alone ---


def test_gaussian_and_laplace_values():
    # Mironov 2017, Propositions 6 and 7.
    found = Gaussian().shift_divergence([[3.0, 4.0]], alpha=2.0, scale=[1.0, 2.0])
    assert found == pytest.approx([9 + 4])
    phi = 2 / 3 * math.e + math.exp(-2) / 3
    found = Laplace().shift_divergence([[1.0]], alpha=2.0, scale=1.0)
    assert found == pytest.approx([math.log(phi)], rel=1e-14)
    found = Laplace().wasserstein_exponent([[1.0, -6.0]], alpha=3.0, scale=[1, 2])
    assert found == pytest.approx([12.0])


def test_infinite_order():
    found = Laplace().shift_divergence([[2.0, -3.0]], alpha=math.inf, scale=[2.0, 1.0])
    assert found == [4.0]
    assert oracles.shift_divergence("laplace", 4.0, 1.0, math.inf) == 4.0
    near = Laplace().shift_divergence([[4.0]], alpha=1e12, scale=1.0)
    assert near == pytest.approx([4.0], rel=1e-10)
    assert Gaussian.max_order < math.inf
    shifts = [[0.0, 0.0], [0.0, 1e-9], [2.0, 0.0]]
    found = Gaussian().shift_divergence(shifts, alpha=math.inf, scale=1.0)
    assert found.tolist() == [0.0, math.inf, math.inf]


def test_order_one():
    # Kullback-Leibler: z - 1 + exp(-z) for Laplace, half of z squared for Gaussian.
    z = np.array([[1e-6], [0.1], [1.0], [20.0]])
    close = {"alpha": 1 + 1e-12, "scale": 1.0}
    expected = (z + np.expm1(-z)).ravel()
    expected[0] = 5e-13 * (1 - 1e-6 / 3)
    found = Laplace().shift_divergence(z, **close)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = Gaussian().shift_divergence(z, **close)
    np.testing.assert_allclose(found, z.ravel() ** 2 / 2, rtol=1e-9)
