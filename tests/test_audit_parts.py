"""The auditor's parts: witnesses, odds along a score, choice of events, bets, folds."""

import math

import numpy as np
import pytest
from audit_support import laplace, randomised_response, wider
from scipy import stats

from skpuffer.audit import KernelRenyiAuditor, _folds
from skpuffer.audit._choice import choose_event, forecast_bounds, score_curves
from skpuffer.audit._odds import OddsCurve
from skpuffer.audit._renyi import betting_bound, choose_tilts
from skpuffer.audit._views import KernelSettings, Views
from skpuffer.audit._witnesses import FEATURES, ROWS, WITNESSES
from skpuffer.core.event_divergence import Divergence
from skpuffer.core.events import AcceptanceSet, CountingRegion

KERNEL = KernelSettings("rbf", "median", 32)


def gaussians(n=2000, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n) + shift, rng.normal(size=n)


# --- witnesses ---


@pytest.mark.parametrize("name", WITNESSES)
def test_every_witness_scores_rows_of_x_higher(name):
    witness = WITNESSES[name]()
    assert witness.name == name
    assert witness.view in (ROWS, FEATURES)
    draw = wider if name == "quadratic" else laplace
    x, y = draw(400, np.random.default_rng(0))
    views = Views((x, y), (x, y), KERNEL, {witness.view}, np.random.default_rng(0))
    score = witness.fit(*views.learning(witness.view), seed=0)
    fresh = draw(300, np.random.default_rng(1))
    scores = [score(views.see(witness.view, rows)) for rows in fresh]
    assert [len(s) for s in scores] == [300, 300]
    assert scores[0].shape == scores[1].shape
    assert all(np.isfinite(s).all() for s in scores)
    ranks = [
        stats.mannwhitneyu(*pair, alternative="greater").pvalue
        for pair in zip(scores[0].T, scores[1].T, strict=True)
    ]
    assert np.mean(np.array(ranks) < 0.01) > 0.5


def test_a_new_witness_is_one_entry_of_the_registry(monkeypatch):
    class Sum:
        name, view = "sum", ROWS

        def fit(self, x, y, seed):
            sign = np.sign(x.mean() - y.mean())
            return lambda rows: sign * rows.sum(axis=1, keepdims=True)

    monkeypatch.setitem(WITNESSES, "sum", Sum)
    audit = KernelRenyiAuditor(scorers="sum").fit(
        *laplace(1000, np.random.default_rng(0))
    )
    assert audit.event_.witness == "sum"
    assert audit.bound_ > 0.4


def test_leading_kernel_witness_attains_the_divergence_of_order_infinity():
    x, y = laplace(300, np.random.default_rng(0))
    features = KERNEL.map_for(x, y, seed=0)
    phi_x, phi_y = features.transform(x), features.transform(y)
    reg = 0.05
    score = WITNESSES["kernel"]((reg,)).fit(phi_x, phi_y, 0)
    h = score(phi_x)[:, 0]
    # The largest of E_p h / (E_q h + λ‖w‖²): the top generalised eigenvalue.
    s_p, s_q = (phi.T @ phi / len(phi) for phi in (phi_x, phi_y))
    base = s_q + reg * np.eye(len(s_q))
    top = np.linalg.eigvals(np.linalg.solve(base, s_p)).real.max()
    assert h.mean() == pytest.approx(top, rel=1e-8)


# --- odds and choice ---


def test_odds_of_two_gaussians():
    x, y = gaussians(20_000)
    curve = OddsCurve.fit(x, y)
    at = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    np.testing.assert_allclose(curve.log_ratio_at(at), at - 0.5, atol=0.15)
    above = [stats.norm.sf(curve.thresholds - m) for m in (1, 0)]
    for found, expected in zip(curve.rates, above, strict=True):
        np.testing.assert_allclose(found, expected, atol=0.01)


def test_odds_of_two_outcomes():
    curve = OddsCurve.fit(
        np.repeat([0.0, 1.0], [30, 70]), np.repeat([0.0, 1.0], [70, 30])
    )
    event = curve.thresholds == 0.5
    assert event.any()
    assert float(curve.rates[0][event][0]) == pytest.approx(0.7, abs=0.03)
    assert curve.log_ratio_at(np.array([0.0, 1.0])) == pytest.approx(
        [-math.log(7 / 3), math.log(7 / 3)], abs=0.1
    )


@pytest.mark.parametrize("target", [Divergence(symmetric=True), Divergence(alpha=3.0)])
@pytest.mark.parametrize("rates", [(0.3, 0.1), (0.05, 0.01), (0.95, 0.8)])
def test_forecasts_are_close_to_what_such_counts_give(target, rates):
    n, beta = 2000, 0.025
    arrays = [np.array([rate]) for rate in rates]
    forecast = float(forecast_bounds(target, arrays, (n, n), beta)[0])
    accepted = AcceptanceSet.for_rates(target, rates, (n, n), beta)
    region = CountingRegion(int(rates[0] * n), n, int(rates[1] * n), n, accepted)
    found = region.lower(target)
    assert forecast == pytest.approx(found, rel=0.1, abs=0.01)


def test_the_event_is_chosen_for_the_claim():
    x, y = gaussians(20_000)
    curves = score_curves([(x[:, None], y[:, None])])
    chosen = {
        delta: choose_event(curves, Divergence(delta=delta), 0.05, (20_000, 20_000))
        for delta in (0.0, 0.2)
    }
    # Without δ a rare event, with it one of some size.
    assert chosen[0.0].rates[0] < 0.35 < chosen[0.2].rates[0]
    assert all(e.rates[0] > e.rates[1] for e in chosen.values())


# --- bets ---


def test_tilts_and_bets_approach_the_divergence():
    x, y = gaussians(20_000)
    scores = [(x[:, None], y[:, None])]
    curves = score_curves(scores)
    tilts = choose_tilts(curves, scores, 2.0, 0.05, (20_000, 20_000), symmetric=True)
    assert [tilt.reverse for tilt in tilts] == [False, True]
    fresh = gaussians(20_000, seed=1)
    for tilt in tilts:
        u = [tilt.of(side) for side in fresh]
        assert all(((v >= 0) & (v <= 1)).all() for v in u)
        pilots = [tilt.of(side) for side in (x, y)]
        way = -1 if tilt.reverse else 1
        found = betting_bound(*u[::way], pilots[::way], 2.0, 0.05)
        # The truth is 1.
        assert 0.6 < found < 1
        assert found == pytest.approx(tilt.forecast, abs=0.1)


def test_any_function_bounds_the_divergence_from_below():
    # Means are exact here: u of two outcomes.
    rng = np.random.default_rng(0)
    for _ in range(200):
        p, q, a, b = rng.random(4)
        alpha = 1 + 3 * rng.random()
        mean_p = p * a ** (alpha - 1) + (1 - p) * b ** (alpha - 1)
        mean_q = q * a**alpha + (1 - q) * b**alpha
        bound = alpha / (alpha - 1) * math.log(mean_p) - math.log(mean_q)
        total = p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
        assert bound <= math.log(total) / (alpha - 1) + 1e-12


def test_a_bet_on_nothing_is_nothing():
    zeros, ones = np.zeros(100), np.ones(100)
    assert betting_bound(zeros, ones, (zeros, ones), 2.0, 0.05) == 0.0


# --- folds ---


def test_what_is_counted_was_not_learned_from():
    seen = []

    def spy(X, Y):
        seen.append((X, Y))

        def score(rows):
            # A row alone is one that is scored again.
            if len(rows) > 1:
                seen.append(rows)
            return rows[:, 0]

        return score

    x, y = laplace(101, np.random.default_rng(0))
    y = y[:60]
    audit = KernelRenyiAuditor(scorers=spy).fit(x, y)
    counts = [fold.counts for fold in audit.pairs_[0].folds]
    assert {c[1] for c in counts} == {50, 51}
    assert {c[3] for c in counts} == {30}
    # Four fits a fold, each with two samples of its left-out part; then the counting
    # rows, in eight portions or fewer.
    learned = [i for i, item in enumerate(seen) if isinstance(item, tuple)]
    assert len(learned) == 8
    for first, last in ((learned[0], learned[4]), (learned[4], len(seen))):
        fold = seen[first:last]
        pairs = [item for item in fold if isinstance(item, tuple)]
        taught = {float(v) for pair in pairs for rows in pair for v in rows[:, 0]}
        portions = [item for item in fold if not isinstance(item, tuple)]
        held_out = {float(v) for rows in portions[:8] for v in rows[:, 0]}
        counted = {float(v) for rows in portions[8:] for v in rows[:, 0]}
        assert held_out == taught
        assert not counted & taught
        assert len(counted) + len(taught) == 161


def test_no_more_rows_are_learned_from_than_needed(monkeypatch):
    sizes = []

    def spy(X, Y):
        sizes.append(len(X))
        return lambda rows: -rows[:, 0]

    monkeypatch.setattr(_folds, "_MOST_LEARNED", 40)
    x, y = laplace(1000, np.random.default_rng(0))
    audit = KernelRenyiAuditor(scorers=spy).fit(x, y)
    assert set(sizes) == {30}
    assert audit.counts_[1] == 500
    assert audit.bound_ > 0.4


def test_outcomes_that_repeat_are_told_apart_by_one_fit():
    x, y = randomised_response(300, np.random.default_rng(0))
    audit = KernelRenyiAuditor().fit(x, y)
    # The two outcomes fall on different sides: the halves add up to a whole.
    folds = audit.pairs_[0].folds
    for rows, place in ((x, 0), (y, 2)):
        assert sum(fold.counts[place] for fold in folds) == (rows == 1).sum()
