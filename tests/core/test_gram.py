"""The kernel Rényi divergence against explicit features, in floats and in mpmath."""

import math
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from core_support import fixed
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg

from skpuffer.core import gram
from skpuffer.core.gram import check_grid, gram_divergence, moment_divergence
from skpuffer.core.second_moments import GramMoments

ORDERS = [1.0, 1.5, 2.0, 6.0, 12.0, 50.0, math.inf]
REGS = [1e-6, 1e-4, 1e-2, 1.0]


def unit_rows(rng, n, width, spread=1.0):
    rows = rng.normal(size=(n, width)) * np.geomspace(1.0, spread, width)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_gram(first, second, alphas, regs):
    return gram_divergence(
        first @ first.T, second @ second.T, second @ first.T, alphas=alphas, regs=regs
    )


def by_blocks(first, second, alphas, regs):
    """As `by_gram`, whatever the rank."""
    blocks = first @ first.T, second @ second.T, second @ first.T
    return gram._divergences(
        GramMoments.from_blocks(*blocks), *check_grid(alphas, regs)
    )


def by_moments(first, second, alphas, regs):
    moments = (rows.T @ rows / len(rows) for rows in (first, second))
    return moment_divergence(*moments, alphas=alphas, regs=regs)


ROADS = pytest.mark.parametrize("road", [by_gram, by_blocks, by_moments])


def exactly(first, second, alpha, reg, digits=40):
    """The definition, in `digits` digits."""
    width = first.shape[1]
    with mp.workdps(digits):
        s_p, s_q = (
            mp.matrix(rows.tolist()).T * mp.matrix(rows.tolist()) / len(rows)
            for rows in (first, second)
        )
        base, vectors = mp.eigsy(s_q + mp.mpf(reg) * mp.eye(width))
        rotated = vectors.T * s_p * vectors
        if alpha == 1:
            own = [x for x in mp.eigsy(s_p)[0] if x > mp.mpf(10) ** (10 - digits)]
            entropy = mp.fsum(x * mp.log(x) for x in own)
            cross = mp.fsum(rotated[i, i] * mp.log(base[i]) for i in range(width))
            return float(entropy - cross)
        order = mp.mpf(alpha)
        power = mp.mpf(-1) if math.isinf(alpha) else (1 - order) / order
        root = mp.diag([x ** (power / 2) for x in base])
        values = mp.eigsy(root * rotated * root)[0]
        values = [x for x in values if x > mp.mpf(10) ** (10 - digits)]
        if math.isinf(alpha):
            return float(mp.log(max(values)))
        return float(mp.log(mp.fsum(x**order for x in values)) / (order - 1))


def densely(first, second, alpha, reg):
    """The definition with matrix powers of scipy, which know no eigenvectors."""
    s_p, s_q = (rows.T @ rows / len(rows) for rows in (first, second))
    base = s_q + reg * np.eye(len(s_q))
    if alpha == 1:
        logs = linalg.logm(s_p) - linalg.logm(base)
        return float(np.trace(s_p @ logs).real)
    power = -1.0 if math.isinf(alpha) else (1 - alpha) / alpha
    root = linalg.fractional_matrix_power(base, power / 2)
    inner = root @ s_p @ root
    if math.isinf(alpha):
        return math.log(np.linalg.norm(inner, 2))
    powered = linalg.fractional_matrix_power(inner, alpha)
    return math.log(np.trace(powered).real) / (alpha - 1)


@pytest.mark.parametrize(
    ("n_p", "n_q", "width"),
    [(9, 7, 4), (20, 6, 8), pytest.param(5, 11, 9, marks=pytest.mark.slow)],
)
def test_it_is_the_definition_in_forty_digits(n_p, n_q, width):
    rng = np.random.default_rng(n_p)
    # Eigenvalues down to 1e-6, on the left in one case.
    first = unit_rows(rng, n_p, width, 1e-3 if n_p == 20 else 1.0)
    second = unit_rows(rng, n_q, width, 1e-3)
    expected = [[exactly(first, second, a, reg) for reg in REGS] for a in ORDERS]
    for road in (by_gram, by_blocks, by_moments):
        found = road(first, second, ORDERS, REGS)
        assert found.shape == (7, 4)
        assert np.abs(found - expected).max() < 1e-10


@ROADS
def test_it_is_the_definition_by_matrix_powers(road):
    rng = np.random.default_rng(5)
    first, second = unit_rows(rng, 90, 10), unit_rows(rng, 70, 10, 0.1)
    for alpha in ORDERS:
        for reg in (1e-3, 0.1, 1.0):
            found = road(first, second, [alpha], [reg])[0, 0]
            assert found == pytest.approx(densely(first, second, alpha, reg), abs=1e-10)


@cache
def by_definition(alpha):
    rng = np.random.default_rng(6)
    first, second = unit_rows(rng, 6, 7), unit_rows(rng, 9, 7)
    return first, second, [exactly(first, second, alpha, reg) for reg in REGS]


@ROADS
@pytest.mark.parametrize("alpha", [0.5, 0.75, 0.95, 1.05, 1.2, 3.0, 4.0])
def test_other_orders(alpha, road):
    first, second, expected = by_definition(alpha)
    for reg, value in zip(REGS, expected, strict=True):
        found = road(first, second, [alpha], [reg])[0, 0]
        assert found == pytest.approx(value, abs=1e-9)


@ROADS
def test_shorter_vectors_near_order_one(road):
    rng = np.random.default_rng(16)
    first = unit_rows(rng, 6, 5) * rng.uniform(0.5, 1, (6, 1))
    second = unit_rows(rng, 8, 5) * rng.uniform(0.5, 1, (8, 1))
    for alpha in (1.0, 1.001, 1.05, 1.2):
        found = road(first, second, [alpha], REGS)[0]
        expected = [exactly(first, second, alpha, reg) for reg in REGS]
        assert np.abs(found - expected).max() < 1e-9


@ROADS
def test_rounding_of_the_length_is_not_magnified_near_order_one(road):
    rng = np.random.default_rng(17)
    rows = [unit_rows(rng, n, 4) for n in (6, 8)]
    near = road(*((1 + 1e-12) * r for r in rows), [1 + 1e-9, 1 - 1e-9], REGS)
    assert np.abs(near - road(*rows, [1.0], REGS)).max() < 1e-7


def test_small_eigenvalues_count_below_order_one():
    # A row that is left to rounding costs at most its root, 1e-8.
    rng = np.random.default_rng(7)
    first, second = unit_rows(rng, 30, 4), unit_rows(rng, 20, 4)
    found = by_gram(first, second, [0.5], REGS)[0]
    expected = [exactly(first, second, 0.5, reg) for reg in REGS]
    assert np.abs(found - expected).max() < 30 * 2e-8


@ROADS
def test_limits_at_one_and_at_infinity(road):
    rng = np.random.default_rng(8)
    first, second = unit_rows(rng, 12, 6), unit_rows(rng, 15, 6)
    steps = np.array([1e-9, 1e-7, 1e-5, 1e-3])
    at_one = road(first, second, [1.0], REGS)
    for side in (1 + steps, 1 - steps):
        gaps = np.abs(road(first, second, side, REGS) - at_one)
        # Linear in the distance from 1, down to rounding.
        assert (gaps <= 20 * steps[:, np.newaxis] + 1e-13).all()
    large = np.array([1e3, 1e5, 1e7])
    gaps = road(first, second, [math.inf], REGS) - road(first, second, large, REGS)
    assert (np.abs(gaps) <= 20 / large[:, np.newaxis]).all()


def samples(seed):
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 7))
    sizes = rng.integers(1, 12, 2)
    return [unit_rows(rng, n, width, rng.uniform(0.01, 1)) for n in sizes]


SEEDS = st.integers(0, 10**6)


def test_monotone_in_order_and_regularisation():
    @fixed(40, "monotone")
    @given(SEEDS)
    def run(seed):
        alphas = [0.6, 0.9, 1.0, 1.001, 1.1, 1.5, 2.0, 2.5, 3.0, 4.0, 12.0, math.inf]
        road = (by_gram, by_blocks)[seed % 2]
        found = road(*samples(seed), alphas, [1e-3, 1e-2, 0.1, 1.0, 10.0])
        assert (np.diff(found[2:], axis=0) >= -1e-10).all()
        assert (np.diff(found[:3], axis=0) >= -1e-6).all()  # Rounding counts there.
        assert (np.diff(found, axis=1) <= 1e-10).all()

    run()


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(9)
    first, second = unit_rows(rng, 40, 30), unit_rows(rng, 25, 30)
    plain = by_gram(first, second, ORDERS, REGS)
    mixed = by_gram(first[::-1], rng.permutation(second), ORDERS, REGS)
    assert np.abs(plain - mixed).max() < 1e-10


def test_repeated_samples_change_nothing():
    rng = np.random.default_rng(10)
    first, second = unit_rows(rng, 10, 8), unit_rows(rng, 7, 8)
    plain = by_gram(first, second, ORDERS, REGS)
    repeated = by_gram(np.tile(first, (3, 1)), np.tile(second, (2, 1)), ORDERS, REGS)
    assert np.abs(plain - repeated).max() < 1e-10


def test_at_least_what_the_rank_allows():
    @fixed(30, "floor")
    @given(SEEDS)
    def run(seed):
        first, second = samples(seed)
        found = by_gram(first, second, [0.6, 1.0, 2.0, math.inf], [1e-3, 0.1, 2.0])
        floor = -np.log1p(len(first) * np.array([1e-3, 0.1, 2.0]))
        assert (found >= floor - 1e-6).all()

    run()


# --- distributions on a few points: the classical divergence is a ceiling ---


def distributions(rng, m):
    p, q = rng.dirichlet(np.full(m, 0.7), 2)
    return p, q


def weighted(points, mass):
    return points.T @ (mass[:, np.newaxis] * points)


def classical(p, q, alpha):
    if alpha == 1:
        return float(np.sum(p * np.log(p / q)))
    if math.isinf(alpha):
        return float(np.log((p / q).max()))
    return math.log(np.sum(p**alpha * q ** (1 - alpha))) / (alpha - 1)


def test_at_most_the_classical_divergence_and_equal_for_orthogonal_points():
    @fixed(40, "classical")
    @given(SEEDS)
    def run(seed):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(2, 6))
        p, q = distributions(rng, m)
        points = unit_rows(rng, m, int(rng.integers(1, 6)))
        for alpha in (0.5, 1.0, 1.3, 2.0, 5.0, math.inf):
            ceiling = classical(p, q, alpha)
            found = moment_divergence(
                weighted(points, p), weighted(points, q), alphas=[alpha], regs=[1e-8]
            )
            assert found[0, 0] <= ceiling + 1e-6
            apart = moment_divergence(
                np.diag(p), np.diag(q), alphas=[alpha], regs=[0.05]
            )
            assert apart[0, 0] == pytest.approx(classical(p, q + 0.05, alpha), abs=1e-9)

    run()


def test_approximate_privacy_bounds_it():
    # If P(A) ≤ e^ε Q(A) + δ for every event, then S_p ≤ e^ε (S_q + δ e^(−ε)), hence
    # D ≤ ε for every order at λ = δ e^(−ε).
    @fixed(40, "approximate")
    @given(SEEDS, st.floats(0, 2))
    def run(seed, epsilon):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(2, 6))
        p, q = distributions(rng, m)
        delta = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        reg = max(delta * math.exp(-epsilon), 1e-10)
        for points in (unit_rows(rng, m, int(rng.integers(1, 6))), np.eye(m)):
            moments = weighted(points, p), weighted(points, q)
            for alpha in (1.0, 1.5, 2.0, 20.0, math.inf):
                found = moment_divergence(*moments, alphas=[alpha], regs=[reg])[0, 0]
                assert found <= epsilon + 1e-9

    run()


def test_post_processing_does_not_raise_it_above_what_was_there():
    @fixed(40, "post-processing")
    @given(SEEDS)
    def run(seed):
        rng = np.random.default_rng(seed)
        p, q = distributions(rng, 5)
        channel = rng.dirichlet(np.full(4, 0.3), 5)
        points = unit_rows(rng, 4, 3)
        for alpha in (1.0, 1.5, 2.0, 8.0, math.inf):
            found = moment_divergence(
                weighted(points, p @ channel),
                weighted(points, q @ channel),
                alphas=[alpha],
                regs=[1e-4],
            )
            assert found[0, 0] <= classical(p, q, alpha) + 1e-9

    run()


def test_a_factor_of_the_kernel_may_be_dropped():
    # k = k1 k2, and a partial trace forgets the second factor: with m features there,
    # D_λ of the pair is at least D_(mλ) of the first alone.
    @fixed(40, "factor")
    @given(SEEDS)
    def run(seed):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(1, 4))
        first = [unit_rows(rng, n, 3) for n in (6, 8)]
        second = [unit_rows(rng, n, m) for n in (6, 8)]
        both = [
            np.einsum("ij,ik->ijk", a, b).reshape(len(a), -1)
            for a, b in zip(first, second, strict=True)
        ]
        alphas = [0.7, 1.0, 2.0, 7.0, math.inf]
        whole = by_gram(*both, alphas, [0.01])
        part = by_gram(*first, alphas, [0.01 * m])
        assert (part <= whole + 1e-6).all()

    run()


def test_composition_of_independent_parts():
    # S_p and S_q are tensor products, and between (S_1 + λ1) ⊗ (S_2 + λ2) and
    # S_1 ⊗ S_2 lie at least λ1 λ2 and at most λ1 + λ2 + λ1 λ2.
    @fixed(40, "composition")
    @given(SEEDS)
    def run(seed):
        rng = np.random.default_rng(seed)
        pairs = [
            [rows.T @ rows / len(rows) for rows in (unit_rows(rng, 5, w) for _ in "pq")]
            for w in (2, 3)
        ]
        joint = [np.kron(pairs[0][side], pairs[1][side]) for side in (0, 1)]
        alphas = [0.6, 1.0, 1.7, 2.0, 9.0, math.inf]
        one, two = rng.uniform(1e-3, 0.5, 2)
        total = sum(
            moment_divergence(*pair, alphas=alphas, regs=[reg])
            for pair, reg in zip(pairs, (one, two), strict=True)
        )
        regs = [one + two + one * two, one * two]
        low, high = moment_divergence(*joint, alphas=alphas, regs=regs).T
        assert (low <= total[:, 0] + 1e-6).all()
        assert (total[:, 0] <= high + 1e-6).all()

    run()


def test_convexity():
    # exp((α−1) D) is jointly convex above order 1, and D itself at 1; D is convex in
    # its second argument; jointly it is at most the larger one.
    @fixed(40, "convexity")
    @given(SEEDS, st.floats(0.05, 0.95))
    def run(seed, share):
        rng = np.random.default_rng(seed)
        (p0, p1), (q0, q1) = (
            [rows.T @ rows / 4 for rows in (unit_rows(rng, 4, 3) for _ in "01")]
            for _ in "pq"
        )
        alphas = np.array([1.0, 1.3, 2.0, 6.0, math.inf])

        def of(p, q):
            return moment_divergence(p, q, alphas=alphas, regs=[0.02])[:, 0]

        p, q = (1 - share) * p0 + share * p1, (1 - share) * q0 + share * q1
        ends, mixed = [of(p0, q0), of(p1, q1)], of(p, q)
        assert (mixed <= np.maximum(*ends) + 1e-9).all()
        assert mixed[0] <= (1 - share) * ends[0][0] + share * ends[1][0] + 1e-9
        for i in (1, 2, 3):
            powers = [math.exp((alphas[i] - 1) * end[i]) for end in ends]
            mixture = (1 - share) * powers[0] + share * powers[1]
            assert math.exp((alphas[i] - 1) * mixed[i]) <= mixture * (1 + 1e-9)
        line = (1 - share) * of(p0, q0) + share * of(p0, q1)
        assert (of(p0, q) <= line + 1e-9).all()

    run()


def test_shorter_vectors_never_raise_it_above_order_one():
    # k(x, x) <= 1: what is missing may be thought of as one more feature.
    @fixed(30, "short")
    @given(SEEDS)
    def run(seed):
        first, second = samples(seed)
        rng = np.random.default_rng(seed)
        share = [rng.uniform(0.2, 1, (len(rows), 1)) for rows in (first, second)]
        short = [rows * s for rows, s in zip((first, second), share, strict=True)]
        full = [
            np.hstack([rows, np.sqrt(1 - s**2)])
            for rows, s in zip(short, share, strict=True)
        ]
        alphas, regs = [1.1, 1.5, 2.0, 6.0, math.inf], [1e-3, 0.1]
        assert (
            by_gram(*short, alphas, regs) <= by_gram(*full, alphas, regs) + 1e-9
        ).all()

    run()


# --- extremes ---


def test_large_orders_and_small_regularisations_stay_finite():
    first, second = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    found = by_gram(first, second, [1.0, 2.0, 50.0, 1e6, math.inf], [1e-10, 1e6])
    assert np.allclose(found[:, 0], 10 * math.log(10), rtol=1e-6)
    assert np.allclose(found[:, 1], -6 * math.log(10), rtol=1e-6)
    found = by_gram(first, first, [1.0, 2.0, 3.0, 4.0, 9.0, math.inf], [1e150])
    assert np.allclose(found, -150 * math.log(10))


def test_nothing_in_common_with_features_is_minus_infinity():
    zero, one = np.zeros((2, 1)), np.ones((3, 1))
    for road in (by_gram, by_blocks, by_moments):
        for other in (one, zero):
            found = road(zero, other, [1.5, 2.0, math.inf], [0.1])
            assert (found == -math.inf).all()


def test_directions_that_the_second_sample_lacks_are_a_limit():
    # ((μ+λ)^r − λ^r)/μ and log(1 + μ/λ)/μ at μ = 0, where they are λ^(r−1) r and 1/λ.
    for power, reg in ((-1.0, 0.01), (-0.5, 1e-6), (0.7, 2.0)):
        moments = GramMoments(
            np.zeros((2, 2)), np.eye(2), np.array([0.0, 1e-12 * reg]), np.ones(2), 1.0
        )
        slopes = moments._slopes(power, reg)
        assert slopes == pytest.approx([power * reg ** (power - 1)] * 2, rel=1e-9)
        each = moments.mean_log(reg) - math.log(reg)
        assert each == pytest.approx(2 / reg, rel=1e-9)


def test_slightly_negative_eigenvalues_count_as_zero():
    k_qq = np.diag([1.0, 1.0, -1e-8])
    k_qp = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    args = np.eye(2), k_qq, k_qp
    found = gram_divergence(*args, alphas=[1.0, 1.05, 2.5], regs=[1e-10])
    assert np.isfinite(found).all()
    s_p, s_q = np.eye(3) / 2, np.diag([1.0, 1.0, -1e-8])
    found = moment_divergence(s_p, s_q, alphas=[1.0, 1.05, 2.5], regs=[1e-10])
    assert np.isfinite(found).all()


def test_inputs_are_left_alone():
    rng = np.random.default_rng(3)
    first, second = unit_rows(rng, 4, 3), unit_rows(rng, 5, 3)
    blocks = first @ first.T, second @ second.T, second @ first.T
    for block in blocks:
        block.flags.writeable = False
    gram_divergence(*blocks, alphas=ORDERS, regs=REGS)


@pytest.mark.parametrize("alpha", [0.49, 0.0, -1.0, math.nan])
def test_orders_out_of_range(alpha):
    with pytest.raises(ValueError, match=r"alpha=.* must be at least 1/2"):
        check_grid([2.0, alpha], [0.1])


@pytest.mark.parametrize("reg", [9e-11, 0.0, -1.0, math.nan, math.inf])
def test_regularisations_out_of_range(reg):
    with pytest.raises(ValueError, match=r"reg=.* at least 1e-10"):
        check_grid([2.0], [0.1, reg])


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 2), (3, 3), (2, 3)),
        ((2, 3), (3, 3), (3, 2)),
        ((2, 2), (4, 4), (3, 2)),
        ((2, 2), (3, 2), (3, 2)),
    ],
)
def test_blocks_that_do_not_fit(shapes):
    with pytest.raises(ValueError, match="do not fit"):
        gram_divergence(*(np.ones(s) for s in shapes), alphas=[2.0], regs=[0.1])


@pytest.mark.parametrize(("n_p", "n_q"), [(0, 1), (1, 0), (0, 0)])
def test_empty_blocks(n_p, n_q):
    blocks = np.ones((n_p, n_p)), np.ones((n_q, n_q)), np.ones((n_q, n_p))
    with pytest.raises(ValueError, match="do not fit"):
        gram_divergence(*blocks, alphas=[2.0], regs=[0.1])


@pytest.mark.parametrize("shapes", [((2, 2), (3, 3)), ((2, 3), (2, 3)), ((2,), (2,))])
def test_moments_that_do_not_fit(shapes):
    with pytest.raises(ValueError, match="do not fit"):
        moment_divergence(*(np.ones(s) for s in shapes), alphas=[2.0], regs=[0.1])
