"""The oracles against multiprecision quadrature, closed forms and brute force."""

import ast
import itertools
import math
from pathlib import Path

import mpmath
import numpy as np
import oracles
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import (
    conditionals,
    lp_scale,
    mixture_divergence,
    mixture_divergence_2d,
    shift_divergence,
)
from scipy.optimize import brentq
from scipy.special import logsumexp

ALPHAS = [1.01, 2, 32, 200]
LAWS = ["laplace", "gaussian"]
SLOW = pytest.mark.slow


def closed_shift(law, z, alpha):
    """[Mironov 2017, Prop. 6 and 7] at scale one, with 60 digits."""
    with mpmath.workdps(60):
        z, a = mpmath.mpf(z), mpmath.mpf(alpha)
        if law == "gaussian":
            return float(a * z * z / 2)
        phi = a / (2 * a - 1) * mpmath.exp((a - 1) * z)
        phi += (a - 1) / (2 * a - 1) * mpmath.exp(-a * z)
        return float(mpmath.log(phi) / (a - 1))


def gauss_nodes(n=24):
    """Gauss-Legendre nodes and weights in the working precision, by Newton."""
    out = []
    for start in np.polynomial.legendre.leggauss(n)[0]:
        x = mpmath.mpf(float(start))
        for _ in range(3):
            value = mpmath.legendre(n, x)
            slope = n * (x * value - mpmath.legendre(n - 1, x)) / (x * x - 1)
            x -= value / slope
        out.append((x, 2 / ((1 - x * x) * slope**2)))
    return out


def by_mpmath(p, q, law, alphas, cuts):
    """D_alpha at scale one, 30 digits, 24 Gauss nodes between neighbouring cuts."""
    with mpmath.workdps(30):
        nodes = gauss_nodes()
        orders = [mpmath.mpf(a) for a in alphas]
        totals = [mpmath.mpf(0) for _ in alphas]
        factor = 0.5 if law == "laplace" else 1 / mpmath.sqrt(2 * mpmath.pi)

        def density(y, atoms, mass):
            if law == "laplace":
                terms = [mpmath.exp(-abs(y - x)) for x in atoms]
            else:
                terms = [mpmath.exp(-((y - x) ** 2) / 2) for x in atoms]
            return mpmath.fdot(mass, terms) * factor / mpmath.fsum(mass)

        for low, high in itertools.pairwise(float(c) for c in cuts):
            half = (mpmath.mpf(high) - low) / 2
            for x, weight in nodes:
                y = low + half + half * x
                at_p = density(y, *p)
                log_ratio = mpmath.log(at_p / density(y, *q))
                for k, a in enumerate(orders):
                    value = at_p * mpmath.exp((a - 1) * log_ratio)
                    totals[k] += half * weight * value
        return [
            float(mpmath.log(t) / (a - 1)) for t, a in zip(totals, orders, strict=True)
        ]


def test_independence():
    """The oracles never import the package they judge."""
    tree = ast.parse(Path(oracles.__file__).read_text(encoding="utf-8"))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module.split(".")[0])
    allowed = "__future__ collections hypothesis math mpmath numpy scipy typing"
    assert modules <= set(allowed.split())


# ------------------------------------------------------------- one dimension


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    "z", [1e-6, 0.3, 45.0, *(pytest.param(z, marks=SLOW) for z in (1e-3, 2.0, 1e4))]
)
def test_single_atoms(law, alpha, z):
    expected = closed_shift(law, z, alpha)
    assert shift_divergence(law, z, 1.0, alpha) == pytest.approx(expected, rel=1e-10)
    for start, end in ((0.0, z), (z, 0.0)):
        got = mixture_divergence(
            [start], [3], [end], [1], law=law, scale=1, alpha=alpha
        )
        assert got == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_units_and_location(law):
    first = mixture_divergence(
        [0, 1, 4], [1, 2, 1], [0, 5], [3, 1], law=law, scale=0.7, alpha=3
    )
    moved = mixture_divergence(
        [1e6, 1e6 + 10, 1e6 + 40],
        [0.25, 0.5, 0.25],
        [1e6 + 50, 1e6, 7],
        [1, 3, 0],
        law=law,
        scale=7,
        alpha=3,
    )
    # the atom without mass is dropped, the 7 far away included
    assert moved == pytest.approx(first, rel=1e-9)


def test_range_follows_alpha():
    """Hull and ten deviations give 16 where the truth is 60."""
    p, q = ([0, 3], [0.99, 0.01]), ([0, 1], [0.5, 0.5])
    (short,) = by_mpmath(p, q, "gaussian", [32], range(-10, 14))
    (full,) = by_mpmath(p, q, "gaussian", [32], range(-50, 121, 3))
    assert 16 < short < 17
    assert 59 < full < 61
    got = mixture_divergence(*p, *q, law="gaussian", scale=1, alpha=32)
    assert got == pytest.approx(full, rel=1e-12)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("law", LAWS)
def test_mixture(law, swap):
    p, q = ([0, 0.5, 1], [5, 1, 2]), ([0.25, 1, 1.5], [1, 50, 3])
    p, q = (q, p) if swap else (p, q)
    for alphas in ([1.01, 2], [32]) if swap else ([1.01, 2], [200]):
        if law == "laplace":
            # all atoms are cuts; pieces of at most 25 / slope
            inner = np.linspace(0, 1.5, 37 if alphas[-1] > 100 else 13)
            cuts = [-50, -30, -16, -8, -3, *inner, 4.5, 9.5, 17.5, 31.5, 51.5]
        else:
            low, high = -12 - 1.5 * alphas[-1], 12 + 1.5 * alphas[-1]
            cuts = np.linspace(low, high, int(high - low) // 4 + 2)
        for alpha, expected in zip(
            alphas, by_mpmath(p, q, law, alphas, cuts), strict=True
        ):
            got = mixture_divergence(*p, *q, law=law, scale=1, alpha=alpha)
            assert got == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("law", LAWS)
def test_tiny(law):
    """A divergence of 1e-9 keeps its digits: second order in the small mass."""
    p, q = ([0], [1]), ([0, 1], [1, 3e-5])
    alphas = [1.01, 2, 8]
    if law == "laplace":
        cuts = [-60, -40, -28, -20, -13, -7, -3, 0, 0.5, 1, 4, 8, 14, 21, 29, 41, 61]
    else:
        cuts = range(-15, 17, 2)
    for alpha, expected in zip(alphas, by_mpmath(p, q, law, alphas, cuts), strict=True):
        assert 1e-10 < expected < 1e-8
        got = mixture_divergence(*p, *q, law=law, scale=1, alpha=alpha)
        assert got == pytest.approx(expected, rel=1e-8, abs=0)
    tiny = mixture_divergence([0], [1], [1e-6], [1], law=law, scale=1, alpha=2)
    assert tiny == pytest.approx(closed_shift(law, 1e-6, 2), rel=1e-8, abs=0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_far_clusters(law, alpha):
    """At span / scale = 1e4 clusters do not meet: the integrals add up."""
    p_0, q_0 = ([0, 1], [1, 1]), ([0, 1], [1, 2])
    p_1, q_1 = ([0, 2], [1, 3]), ([1, 2], [1, 1])
    far = 1e4
    got = mixture_divergence(
        [0, 1, far, far + 2],
        [2, 2, 1, 3],
        [0, 1, far + 1, far + 2],
        [2, 4, 3, 3],
        law=law,
        scale=1,
        alpha=alpha,
    )
    kwargs = {"law": law, "scale": 1, "alpha": alpha}
    terms = [
        (alpha - 1) * mixture_divergence(*p_0, *q_0, **kwargs),
        (alpha - 1) * mixture_divergence(*p_1, *q_1, **kwargs),
    ]
    # equal masses in both clusters of both mixtures
    expected = (logsumexp(terms) - math.log(2)) / (alpha - 1)
    assert got == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("law", LAWS)
def test_many_uneven_atoms(law):
    """Random atoms over three magnitudes against a plain fine grid."""
    rng = np.random.default_rng(3)
    for alpha in (1.5, 2, 8):
        p = rng.choice([0.01, 1, 5], 10) * rng.normal(size=10), rng.integers(1, 50, 10)
        q = rng.choice([0.01, 1, 5], 8) * rng.normal(size=8), rng.integers(1, 50, 8)
        span = max(p[0].max(), q[0].max()) - min(p[0].min(), q[0].min())
        y = np.linspace(-12 - alpha * span, 12 + alpha * span, 40_001)

        def log_density(y, atoms, mass):
            d = y[:, None] - atoms
            kernel = (
                -np.abs(d) - math.log(2)
                if law == "laplace"
                else -d * d / 2 - math.log(2 * math.pi) / 2
            )
            return logsumexp(kernel, b=mass / mass.sum(), axis=1)

        log_f = alpha * log_density(y, *p) - (alpha - 1) * log_density(y, *q)
        expected = (logsumexp(log_f) + math.log(y[1] - y[0])) / (alpha - 1)
        got = mixture_divergence(*p, *q, law=law, scale=1, alpha=alpha)
        assert got == pytest.approx(expected, rel=1e-4 if law == "laplace" else 1e-9)


def test_infinite_order():
    assert shift_divergence("laplace", 3, 2, math.inf) == pytest.approx(1.5)
    p, q = ([0, 1, 6], [1, 5, 1]), ([0, 2], [4, 1])
    got = mixture_divergence(*p, *q, law="laplace", scale=0.5, alpha=math.inf)
    y = np.linspace(-5, 11, 16_001)
    ratio = [
        logsumexp(-np.abs(y[:, None] - np.array(x)) / 0.5, b=np.array(m), axis=1)
        - math.log(sum(m))
        for x, m in (p, q)
    ]
    assert got == pytest.approx((ratio[0] - ratio[1]).max(), rel=1e-12)
    large = mixture_divergence(*p, *q, law="laplace", scale=0.5, alpha=5000)
    assert got * 0.99 < large < got


@pytest.mark.parametrize(
    "bad",
    [
        {"law": "gaussian", "alpha": math.inf},
        {"alpha": 1.0},
        {"scale": 0.0},
        {"law": "cauchy"},
    ],
)
def test_refusals(bad):
    kwargs = {"law": "laplace", "scale": 1.0, "alpha": 2.0} | bad
    with pytest.raises(ValueError):
        mixture_divergence([0], [1], [1], [1], **kwargs)
    with pytest.raises(ValueError):
        shift_divergence(kwargs["law"], 1.0, kwargs["scale"], kwargs["alpha"])
    with pytest.raises(ValueError):
        mixture_divergence([0], [0], [1], [1], law="laplace", scale=1, alpha=2)


# ------------------------------------------------------------ two dimensions


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("span", [1e-3, pytest.param(0.5, marks=SLOW), 4.0])
def test_product_adds_up(law, alpha, span):
    rng = np.random.default_rng([int(100 * alpha), int(1000 * span)])
    p, q = [], []
    for side in (p, q):
        for _ in range(2):
            side.append((span * rng.normal(size=2), rng.integers(1, 20, 2)))
    scales = (0.5, 3.0)
    expected = sum(
        mixture_divergence(*a, *b, law=law, scale=scale, alpha=alpha)
        for a, b, scale in zip(p, q, scales, strict=True)
    )

    def product(side):
        (x, m), (y, n) = side
        return np.array(list(itertools.product(x, y))), np.outer(m, n).ravel()

    got = mixture_divergence_2d(
        *product(p), *product(q), law=law, scale=scales, alpha=alpha
    )
    assert got == pytest.approx(expected, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_dependent_columns(law):
    """The row gives S away though the marginals agree; against a plain grid."""
    p, q = np.array([[0, 0], [1, 1]]), np.array([[0, 1], [1, 0]])
    nodes, weights = np.polynomial.legendre.leggauss(40)
    cuts = np.array([-40, -15, -5, 0, 0.5, 1, 6, 16, 41.0])
    half = np.diff(cuts)[:, None] / 2
    y = (cuts[:-1, None] + half + half * nodes).ravel()
    w = (half * weights).ravel()

    def density(points):
        kernel = [
            np.exp(-np.abs(d) if law == "laplace" else -d * d / 2)
            for d in (y[:, None] - points[:, 0], y[:, None] - points[:, 1])
        ]
        norm = 4 if law == "laplace" else 2 * math.pi
        return kernel[0] @ kernel[1].T / norm / 2

    a, b = density(p), density(q)
    for alpha in (1.5, 4):
        positive = (a > 0) & (b > 0)
        ratio = np.where(positive, a, 1) / np.where(positive, b, 1)
        power = a * ratio ** (alpha - 1)
        expected = math.log(w @ power @ w) / (alpha - 1)
        got = mixture_divergence_2d(
            p, [1, 1], q, [1, 1], law=law, scale=(1, 1), alpha=alpha
        )
        assert got == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("alpha", [1.01, 2, 200, math.inf])
def test_constant_column(alpha):
    p, q = ([0, 1, 3], [1, 2, 1]), ([0, 2], [4, 1])
    one = mixture_divergence(*p, *q, law="laplace", scale=2, alpha=alpha)
    for flip in (1, -1):
        two = mixture_divergence_2d(
            np.column_stack([p[0], [7, 7, 7]])[:, ::flip],
            p[1],
            np.column_stack([q[0], [7, 7]])[:, ::flip],
            q[1],
            law="laplace",
            scale=np.array([2, 5])[::flip],
            alpha=alpha,
        )
        assert two == pytest.approx(one, rel=1e-10)


# ---------------------------------------------------------------- properties

order = st.sampled_from([1.01, 1.5, 2.0, 8.0, 64.0])
quick = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@quick
@given(pair=conditionals(5), law=st.sampled_from(LAWS), alpha=order)
def test_bounds_hold(pair, law, alpha):
    """Non-negative, zero for equals, at most the largest shift, monotone in scale."""
    shift = np.abs(pair.atoms_a - pair.atoms_b.T).max()
    small, large = (
        mixture_divergence(*pair, law=law, scale=scale, alpha=alpha)
        for scale in (1.0, 1.5)
    )
    assert 0 <= large <= small * (1 + 1e-9) + 1e-13
    assert small <= closed_shift(law, shift, alpha) * (1 + 1e-9) + 1e-13
    same = mixture_divergence(*pair[:2], *pair[:2], law=law, scale=1, alpha=alpha)
    assert same == pytest.approx(0, abs=1e-15)


@settings(quick, max_examples=20)
@given(
    pair=conditionals(3, columns=2, max_magnitude=0),
    law=st.sampled_from(LAWS),
    alpha=order,
)
def test_marginals_reveal_less(pair, law, alpha):
    both = mixture_divergence_2d(*pair, law=law, scale=(1, 2), alpha=alpha)
    for k, scale in enumerate((1, 2)):
        one = mixture_divergence(
            pair.atoms_a[:, k],
            pair.mass_a,
            pair.atoms_b[:, k],
            pair.mass_b,
            law=law,
            scale=scale,
            alpha=alpha,
        )
        assert one <= both * (1 + 1e-8) + 1e-12


@quick
@given(pair=conditionals(6, columns=2, ties=False))
def test_strategy(pair):
    for atoms, mass in (pair[:2], pair[2:]):
        assert atoms.shape == (len(mass), 2)
        assert 1 <= len(mass) <= 6
        assert mass.dtype == np.int64
        assert mass.min() >= 1
        assert np.array_equal(atoms, np.unique(atoms, axis=0))


# -------------------------------------------------------------- transport LP


def gaussian_cost(alpha):
    return lambda shifts, tau: alpha * (alpha - 1) * (shifts**2).sum(1) / 2 / tau**2


def test_lp_one_pair():
    alpha, epsilon = 3, 0.5
    got = lp_scale(
        [[0, 0]],
        [[3, 4]],
        [2],
        [5],
        log_cost=gaussian_cost(alpha),
        target=(alpha - 1) * epsilon,
        lo=0.1,
        hi=1e3,
    )
    assert got == pytest.approx(math.sqrt(alpha * 25 / (2 * epsilon)), rel=1e-8)


@pytest.mark.parametrize("alpha", [1.5, 2, 12])
def test_lp_against_monotone_coupling(alpha):
    """In one dimension the quantile coupling is optimal for convex costs."""
    rng = np.random.default_rng(int(alpha * 10))
    a, b = rng.integers(0, 20, 7), rng.integers(3, 30, 9)
    m, n = rng.integers(1, 50, 7), rng.integers(1, 50, 9)
    rows = [np.sort(np.repeat(x, w)) for x, w in ((a, m), (b, n))]
    total = math.lcm(*(len(r) for r in rows))
    shifts = np.abs(
        np.repeat(rows[0], total // len(rows[0]))
        - np.repeat(rows[1], total // len(rows[1]))
    )[:, None]
    cost, target = gaussian_cost(alpha), 0.4 * (alpha - 1)
    expected = brentq(
        lambda tau: logsumexp(cost(shifts, tau)) - math.log(total) - target,
        0.5,
        1e3,
        rtol=1e-12,
    )
    got = lp_scale(a, b, m, n, log_cost=cost, target=target, lo=0.5, hi=1e3)
    assert got == pytest.approx(expected, rel=1e-7)


def test_lp_against_permutations():
    """Equal masses: some permutation is optimal."""
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)) * 2
    target = 0.3

    def cost(shifts, tau):
        return 4 * shifts.sum(axis=1) / tau

    def best(tau):
        return min(
            logsumexp(cost(np.abs(a - b[list(order)]), tau)) - math.log(4)
            for order in itertools.permutations(range(4))
        )

    expected = brentq(lambda tau: best(tau) - target, 1, 1e3, rtol=1e-10)
    got = lp_scale(a, b, [1] * 4, [3] * 4, log_cost=cost, target=target, lo=0.1, hi=1e3)
    assert got == pytest.approx(expected, rel=1e-8)


def test_lp_ends():
    kwargs = {"log_cost": gaussian_cost(2), "target": 0.5}
    same = lp_scale([0, 1], [0, 1], [1, 2], [2, 4], lo=1e-3, hi=1, **kwargs)
    assert same == 1e-3
    with pytest.raises(ValueError, match="hi"):
        lp_scale([0], [1e3], [1], [1], lo=1e-3, hi=1, **kwargs)
