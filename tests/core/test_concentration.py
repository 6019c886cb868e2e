"""The margin: its two steps by simulation, its formula by other arithmetic."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import optimize

from skpuffer.core.concentration import PlugInMargin
from skpuffer.core.gram import moment_divergence

GRID = [
    (alpha, reg, n, m, beta)
    for alpha in (2.0, 3.5, 12.0, math.inf)
    for reg in (0.02, 0.3)
    for n, m in ((20_000, 70_000), (10**6, 4000))
    for beta in (0.05, 1e-4)
]


def published(epsilon, alpha, reg, n_p, n_q, beta):
    """The threshold as it is written, with the root by bisection."""
    with mp.workdps(40):
        level = mp.log(8 * (1 + mp.mpf(1) / reg) / beta)
        t = mp.findroot(
            lambda t: t * t / 2 - level * (mp.mpf(1) / (n_q * reg) + t / (3 * n_q)),
            (0, 100),
            solver="anderson",
        )
        if t >= 1:
            return math.inf
        eta = (1 + mp.sqrt(mp.log(mp.mpf(2) / beta))) / mp.sqrt(n_p)
        share = mp.mpf(1) if math.isinf(alpha) else (mp.mpf(alpha) - 1) / alpha
        spread = eta * (reg * mp.exp(epsilon)) ** -share
        return float(epsilon + mp.log(1 + spread) / share - mp.log(1 - t))


@pytest.mark.parametrize("case", GRID)
def test_threshold_and_bound(case):
    margin = PlugInMargin(*case)
    for epsilon in (0.0, 1.0, 7.0):
        threshold = margin.threshold(epsilon)
        assert threshold == pytest.approx(published(epsilon, *case), rel=1e-12)
        if math.isfinite(threshold):
            assert threshold > epsilon
            assert margin.lower_bound(threshold) == pytest.approx(epsilon, abs=1e-9)
            assert margin.lower_bound(threshold + 0.1) > epsilon


def test_vacuous_below_12400_rows():
    reg = 0.005 / math.e

    def excess(n):
        return PlugInMargin(2.0, reg, 10**9, int(n), 0.05)._loss - 1

    rows = optimize.brentq(excess, 1000, 10**6)
    assert rows == pytest.approx(12_400, rel=0.01)
    margin = PlugInMargin(2.0, reg, 10**9, int(rows) - 100, 0.05)
    assert margin.threshold(1.0) == math.inf
    assert margin.lower_bound(100.0) == -math.inf


def test_more_rows_and_less_confidence_help():
    rows = [10**k for k in range(3, 8)]
    for reg in (0.05, 0.5):
        found = [PlugInMargin(4.0, reg, n, n, 0.05).threshold(1.0) for n in rows]
        assert (np.diff([x for x in found if math.isfinite(x)]) < 0).all()
        assert found[-1] < 1.05
        strict = [PlugInMargin(4.0, reg, n, n, 1e-6).threshold(1.0) for n in rows]
        assert all(a <= b for a, b in zip(found, strict, strict=True))


def test_small_values_refute_nothing_and_large_ones_do_not_overflow():
    margin = PlugInMargin(2.0, 0.1, 10**5, 10**5, 0.05)
    assert margin.lower_bound(-10.0) == -math.inf
    assert margin.lower_bound(1e4) == pytest.approx(1e4, rel=1e-3)
    assert margin.threshold(1e4) == pytest.approx(1e4, rel=1e-3)


def points(rng, m):
    rows = rng.normal(size=(m, 4))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def moment(rows, mass):
    return rows.T @ (mass[:, np.newaxis] * rows)


def settings():
    """Points, true masses of both sides, sizes and λ."""
    rng = np.random.default_rng(0)
    rare = np.array([0.9, 0.0995, 0.0005])
    yield "orthogonal", np.eye(6), np.full(6, 1 / 6), np.full(6, 1 / 6), 4000, 0.1
    yield "a rare point", np.eye(3), np.array([0.8, 0.1, 0.1]), rare, 20_000, 0.02
    p, q = rng.dirichlet(np.ones(8), 2)
    yield "in between", points(rng, 8), p, q, 8000, 0.05


CASES = list(settings())


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("beta", [0.05, 0.3])
def test_both_steps_hold_in_samples(case, beta):
    _, rows, p, q, n, reg = case
    rng = np.random.default_rng(1)
    s_p, s_q = moment(rows, p), moment(rows, q)
    width = rows.shape[1]
    values, vectors = np.linalg.eigh(s_q + reg * np.eye(width))
    repeats, broken = 400, np.zeros(3)
    for alpha in (2.0, 5.0, math.inf):
        margin = PlugInMargin(alpha, reg, n, n, beta)
        truth = moment_divergence(s_p, s_q, alphas=[alpha], regs=[reg])[0, 0]
        root = (vectors * values ** (-margin._share / 2)) @ vectors.T
        half = (vectors * values**-0.5) @ vectors.T
        for _ in range(repeats // 2):
            e_p, e_q = (moment(rows, rng.multinomial(n, m) / n) for m in (p, q))
            spread = np.linalg.norm(root @ (e_p - s_p) @ root)
            loss = np.linalg.eigvalsh(half @ (s_q - e_q) @ half)[-1]
            value = moment_divergence(e_p, e_q, alphas=[alpha], regs=[reg])[0, 0]
            limit = margin._deviation * reg**-margin._share
            broken += [
                spread > limit,
                loss > margin._loss,
                value > margin.threshold(truth),
            ]
            # And what follows from the two, in every sample.
            if margin._loss < 1 and spread <= limit and loss <= margin._loss:
                assert value <= margin.threshold(truth) + 1e-9
    # Three orders, 200 samples each: binomial sampling error at the 1e-4 level.
    total = 3 * repeats // 2
    for count, level in zip(broken, (beta / 2, beta / 2, beta), strict=True):
        assert count <= total * level + 3.7 * math.sqrt(total * level * (1 - level))


def test_the_deviation_of_the_first_sample_is_of_the_right_size():
    # Many orthogonal points: ‖Ŝ − S‖ is about 1/√n, and η promises 1 + √log(2/β)
    # times that. A fourth of it would fail.
    rng = np.random.default_rng(2)
    m, n = 4000, 500
    margin = PlugInMargin(2.0, 1.0, n, n, 0.05)
    found = [
        np.linalg.norm(rng.multinomial(n, np.full(m, 1 / m)) / n - 1 / m)
        for _ in range(200)
    ]
    assert 0.25 * margin._deviation < np.median(found) < margin._deviation
    assert max(found) < margin._deviation


@pytest.mark.parametrize(("n_p", "n_q"), [(1, 10**6), (10**6, 1), (1, 1)])
def test_one_row_is_enough_for_a_margin(n_p, n_q):
    case = 2.0, 0.3, n_p, n_q, 0.05
    margin = PlugInMargin(*case)
    assert margin.threshold(1.0) == pytest.approx(published(1.0, *case), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 1.9}, "alpha=1.9 has no margin"),
        ({"alpha": math.nan}, "alpha=nan"),
        ({"reg": 0.0}, "reg=0.0"),
        ({"beta": 0.0}, "beta=0.0 must lie"),
        ({"beta": 1.0}, "beta=1.0 must lie"),
        ({"beta": math.nan}, "beta=nan must lie"),
        ({"n_p": 0}, "n_p=0"),
        ({"n_q": 0}, "n_q=0"),
    ],
)
def test_out_of_range(changes, message):
    given = {"alpha": 2.0, "reg": 0.1, "n_p": 100, "n_q": 100, "beta": 0.05} | changes
    with pytest.raises(ValueError, match=message):
        PlugInMargin(**given)
