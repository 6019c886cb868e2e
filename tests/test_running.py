"""The running audit: fair whatever happens, read at any time, merged, in small memory."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skpuffer.audit import RunningAudit, _stream
from skpuffer.audit._running_witnesses import Events, _thresholds
from skpuffer.exceptions import ParameterError

# Small and quick: what is learned decides power alone.
SMALL = {"n_components": 8, "reg": (1e-2,), "buffer_size": 400, "n_warmup": 40}


def coins(rng, rows, epsilon):
    """Randomised response at the boundary of ε."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return ((rng.random((rows, 1)) < chance) * 1.0 for chance in (p, 1 - p))


def shifted(seed, rows=600, columns=2, by=1.0):
    X, Y = np.random.default_rng(seed).laplace(size=(2, rows, columns))
    return X, Y + by * (np.arange(columns) == 0)


def state(audit):
    stream = audit._stream
    return np.concatenate([stream.log_fortunes.ravel(), stream.log_peaks])


def in_chunks(audit, X, Y, cuts_x, cuts_y):
    for x, y in zip(np.split(X, cuts_x), np.split(Y, cuts_y), strict=True):
        audit.partial_fit(x, y) if len(x) and len(y) else audit._stream.feed(x, y)
    return audit


# --- what is computed ---


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_fortune_is_the_product_over_the_pairs(monkeypatch, symmetric):
    # A fixed event and fixed stakes; every factor by hand.
    def fixed(first, second, *, epsilons, delta):
        assert len(first) == len(second)
        return Events(
            np.zeros(len(epsilons), dtype=int), np.zeros(len(epsilons)), stakes
        )

    class Sign:
        def scores(self, features):
            return features[:, -2:-1]  # The column in standard units, centred.

    stakes = np.array([0.1, 0.3, 0.0])
    monkeypatch.setattr(_stream, "choose_events", fixed)
    monkeypatch.setattr(_stream, "learn_witnesses", lambda *a: Sign())
    audit = RunningAudit(
        0.7, delta=0.05, epsilons=[0.2, 1.5], symmetric=symmetric, **SMALL
    )
    X, Y = shifted(0, 300, 1)
    audit.partial_fit(X, Y)
    middle = audit._stream.features.centre[0]
    fortunes = np.ones((2, 3))
    peaks = np.ones(3)
    for x, y in zip(X[40:, 0] > middle, Y[40:, 0] > middle, strict=True):
        for k, epsilon in enumerate([0.2, 0.7, 1.5]):
            for direction, (a, b) in enumerate([(x, y), (y, x)]):
                gain = float(a) - math.exp(epsilon) * b - 0.05
                fortunes[direction, k] *= 1 + stakes[k] * gain
        now = fortunes.mean(axis=0) if symmetric else fortunes[0]
        peaks = np.maximum(peaks, now)
    np.testing.assert_allclose(np.exp(audit._stream.log_peaks), peaks, rtol=1e-10)
    assert audit.e_value_ == pytest.approx(peaks[1])
    assert (audit.n_pairs_, audit.n_bets_) == (300, 260)


def test_no_pair_is_bet_on_by_events_that_it_taught():
    # Rows far from all others after pair 200: until then nothing knows of them.
    X, Y = shifted(1)
    other = X.copy()
    other[200:] += 100
    audits = [
        RunningAudit(0.5, **SMALL).partial_fit(x[:200], Y[:200]) for x in (X, other)
    ]
    np.testing.assert_array_equal(*map(state, audits))
    before = [a._stream.events for a in audits]
    for audit, x in zip(audits, (X, other), strict=True):
        audit.partial_fit(x[200:210], Y[200:210])
    for audit, events in zip(audits, before, strict=True):
        assert audit._stream.events is events


def test_every_pair_is_bet_on_before_it_teaches(monkeypatch):
    seen = []

    def spy(stream):
        seen.append((stream.n_pairs, stream.n_bets))
        return choose(stream)

    choose = _stream.Stream._choose
    monkeypatch.setattr(_stream.Stream, "_choose", spy)
    RunningAudit(0.5, **SMALL).partial_fit(*shifted(34))
    assert len(seen) > 10
    assert seen == [(pairs, pairs - 40) for pairs, _ in seen]


def test_the_cuts_between_chunks_do_not_matter():
    X, Y = shifted(2)
    whole = state(RunningAudit(0.5, **SMALL).partial_fit(X, Y))
    equal = [1, 2, 39, 40, 41, 333]
    audit = in_chunks(RunningAudit(0.5, **SMALL), X, Y, equal, equal)
    np.testing.assert_allclose(state(audit), whole, atol=1e-8)
    # Rows wait for partners, of either sample.
    audit = in_chunks(
        RunningAudit(0.5, **SMALL), X, Y, [10, 200, 210, 350], [80, 90, 250, 590]
    )
    np.testing.assert_allclose(state(audit), whole, atol=1e-8)
    assert whole.max() > 3


def test_of_too_many_waiting_rows_the_latest_find_partners():
    X, Y = shifted(3, 3000)
    audit = RunningAudit(0.5, **SMALL).partial_fit(X[:100], Y[:100])
    seen = audit._stream.moments.counts[1]
    audit._stream.next_choice = 9999  # When rows would move from the buffer as well.
    audit.partial_fit(X[100:101], Y[100:2100])
    # One has found a partner; of the others the oldest 1,599 are learned from.
    assert audit.n_pairs_ == 101
    assert audit._stream.moments.counts[1] == seen + 1599
    np.testing.assert_array_equal(audit._stream.waiting[1], Y[1700:2100])
    audit.partial_fit(X[101:501], Y[2100:2101])
    assert audit.n_pairs_ == 501
    assert len(audit._stream.waiting[1]) == 1
    # Before anything is learned the oldest are only given up.
    audit = RunningAudit(0.5, **SMALL).partial_fit(X[:1], Y[:1000])
    assert (audit.n_pairs_, len(audit._stream.waiting[1])) == (1, 400)


def test_thresholds_are_clear_of_rounding():
    rng = np.random.default_rng(4)
    atoms = rng.choice([0.1, 0.2, 0.7], 500) * (1 + rng.normal(size=500) * 1e-15)
    cuts = _thresholds(atoms[:200], atoms[200:])
    np.testing.assert_allclose(cuts, [0.15, 0.45])
    assert len(_thresholds(np.ones(5), np.ones(5))) == 0
    cuts = _thresholds(*rng.normal(size=(2, 3000)))
    assert 20 < len(cuts) <= 48
    assert (np.diff(cuts) > 0).all()


# --- what it says ---


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_level_holds_for_whoever_stops_when_it_suits(symmetric):
    # 25 streams at the boundary, watched throughout, error .1: P(Bin(25, .1) > 7) < .003.
    rng = np.random.default_rng(5)
    above = 0
    for _ in range(25):
        audit = RunningAudit(
            1.0, epsilons=[0.5], confidence=0.9, symmetric=symmetric, **SMALL
        )
        audit.partial_fit(*coins(rng, 400, 1.0))
        above += audit.verdict_ == "refuted"
    assert above <= 7


def test_the_level_holds_after_merges():
    rng = np.random.default_rng(6)
    above = 0
    for _ in range(12):
        first, second = (
            RunningAudit(1.0, epsilons=[0.5], confidence=0.9, **SMALL).partial_fit(
                *coins(rng, 200, 1.0)
            )
            for _ in range(2)
        )
        first.merge(second).partial_fit(*coins(rng, 200, 1.0))
        above += first.verdict_ == "refuted"
    # P(Bin(12, .1) > 5) < .001.
    assert above <= 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["response", "laplace", "leaky response", "equal"])
def test_the_level_holds_at_length(kind):
    # 500 streams of 3,000 pairs at the truth, error .05: P(Bin(500, .05) > 40) < .002.
    above = 0
    for seed in range(500):
        rng = np.random.default_rng([8, seed])
        epsilon, delta = (0.0 if kind == "equal" else 1.0), 0.0
        if kind == "response":
            X, Y = coins(rng, 3000, 1.0)
        elif kind == "laplace":
            X, Y = rng.laplace([[[0.0]], [[1.0]]], size=(2, 3000, 1))
        elif kind == "equal":
            X, Y = rng.normal(size=(2, 3000, 30))
        else:
            delta = 0.1
            X, Y = coins(rng, 3000, 1.0)
            for value, side in ((2, X), (3, Y)):
                side[rng.random((3000, 1)) < delta] = value
        audit = RunningAudit(epsilon, delta=delta, **SMALL).partial_fit(X, Y)
        above += audit.verdict_ == "refuted"
    assert above <= 40


@pytest.mark.slow
def test_a_leak_in_the_variance_is_found():
    # Truth: N(0, I) against N(0, 1.96 I) in 10 columns, δ = .05: 4.64.
    X, Y = np.random.default_rng(10).normal(size=(2, 4000, 10))
    audit = RunningAudit(1.0, delta=0.05).partial_fit(X, 1.4 * Y)
    assert 1.5 <= audit.bound_ < 4.64


def test_leaks_are_found():
    # Truth: Laplace 1.
    X, Y = shifted(9, 2000, 1)
    audit = RunningAudit(0.4).partial_fit(X, Y)
    assert 0.6 <= audit.bound_ < 1
    assert audit.verdict_ == "refuted"
    # Rows in either order of the samples.
    assert 0.6 <= RunningAudit(0.4).partial_fit(Y, X).bound_ < 1
    # In one direction alone: X has no event that Y makes unlikely.
    X = np.zeros((2000, 1))
    Y = (np.random.default_rng(11).random((2000, 1)) < 0.3) * 1.0
    one = RunningAudit(1.0, symmetric=False, **SMALL).partial_fit(X, Y)
    assert 0.2 <= one.bound_ <= -math.log(0.7)
    assert RunningAudit(1.0, symmetric=False, **SMALL).partial_fit(Y, X).bound_ > 3


@pytest.mark.parametrize("given", [{"gamma": 0.2}, {"metric": "laplacian"}])
def test_other_kernels_serve_as_well(given):
    X, Y = np.random.default_rng(10).normal(size=(2, 2000, 4))
    audit = RunningAudit(1.0, delta=0.05, **{**SMALL, "n_components": 32}, **given)
    assert 0.3 <= audit.partial_fit(X, 1.6 * Y).bound_ < 4.5


def test_neither_units_nor_origins_matter():
    X, Y = np.random.default_rng(35).normal(size=(2, 600, 3))
    Y[:, 1] *= 2.5
    whole = RunningAudit(0.5, **SMALL).partial_fit(X, Y)
    moved = [rows * [1e-4, 1.0, 1e5] + [3.0, 1e6, -2e9] for rows in (X, Y)]
    other = RunningAudit(0.5, **SMALL).partial_fit(*moved)
    np.testing.assert_allclose(state(other), state(whole), atol=1e-3)
    assert whole.bound_ > 0


def test_equal_distributions_and_constant_columns_are_no_violation():
    X, Y = np.random.default_rng(12).normal(size=(2, 500, 3))
    audit = RunningAudit(0.5, **SMALL).partial_fit(X, Y)
    assert (audit.bound_, audit.verdict_) == (0.0, "no violation found")
    assert audit.reason_ is None
    same = np.ones((500, 2))
    audit = RunningAudit(0.5, **SMALL).partial_fit(same, same)
    assert (audit.bound_, audit.e_value_) == (0.0, 1.0)


def test_too_few_samples_are_no_zero():
    X, Y = shifted(13, 45)
    audit = RunningAudit(0.5, **SMALL).partial_fit(X[:40], Y[:40])
    assert math.isnan(audit.bound_)
    assert audit.verdict_ == "too few samples"
    assert "40 pairs, 0 of them bet on" in audit.reason_
    # Four pairs can at best double a fortune four times, and 20 is needed.
    assert math.isnan(audit.partial_fit(X[40:44], Y[40:44]).bound_)
    assert audit.partial_fit(X[44:], Y[44:]).bound_ == 0
    more = RunningAudit(8.0, **SMALL).partial_fit(*shifted(13, 600))
    # A claim of 8 takes thousands of pairs, smaller ones do not.
    assert more.verdict_ == "too few samples"
    assert more.bound_ > 0


def test_a_claim_counts_as_refuted_with_all_smaller_ones_alone():
    audit = RunningAudit(1.0, epsilons=[0.5, 1.5, 2.0], **SMALL)
    audit.partial_fit(*coins(np.random.default_rng(14), 300, 0.0))
    audit._stream.log_peaks = np.array([9.0, 2.0, 9.0, 9.0])
    assert (audit.bound_, audit.verdict_) == (0.5, "no violation found")
    audit._stream.log_peaks = np.array([9.0, 3.1, 2.9, 9.0])
    assert (audit.bound_, audit.verdict_) == (1.0, "refuted")
    audit._stream.log_peaks = np.full(4, 3.0)
    assert (audit.bound_, audit.verdict_) == (2.0, "refuted")


# --- merging ---


def test_fortunes_of_independent_streams_multiply():
    first = RunningAudit(0.5, **SMALL).partial_fit(*shifted(15))
    second = RunningAudit(0.5, **SMALL).partial_fit(*shifted(16))
    one, two = (
        _stream.log_mean(audit._stream.log_fortunes) for audit in (first, second)
    )
    before = pickle.dumps(second)
    sides = first._stream.log_fortunes + second._stream.log_fortunes
    first.merge(second)
    merged = first._stream
    np.testing.assert_allclose(_stream.log_mean(merged.log_fortunes), one + two)
    np.testing.assert_allclose(merged.log_peaks, np.maximum(one + two, 0))
    # The directions keep their proportions.
    np.testing.assert_allclose(
        np.diff(merged.log_fortunes, axis=0), np.diff(sides, axis=0)
    )
    assert (first.n_pairs_, first.n_bets_) == (1200, 1120)
    assert pickle.dumps(second) == before
    # It goes on.
    assert first.partial_fit(*shifted(17)).bound_ > 0.5


def test_what_was_refuted_before_a_merge_is_not_kept():
    first = RunningAudit(0.5, **SMALL).partial_fit(*shifted(18))
    assert first.verdict_ == "refuted"
    other = RunningAudit(0.5, **SMALL).partial_fit(*shifted(19, by=0.0))
    other._stream.log_fortunes -= 50
    assert first.merge(other).verdict_ == "no violation found"
    assert first.bound_ == 0


def test_moments_of_the_same_features_add_up():
    first = RunningAudit(0.5, **SMALL).partial_fit(*shifted(20))
    second = first.spawn().partial_fit(*shifted(21))
    sums = [a._stream.moments for a in (first, second)]
    expected = [m.counts[0] for m in sums]
    recent = first._stream.n_recent + second._stream.n_recent
    first.merge(second)
    assert first._stream.moments.counts[0] == sum(expected) + recent - 400
    # Other features: those of the longer stream, and the rows of both buffers.
    short = RunningAudit(0.5, **SMALL).partial_fit(*shifted(22, 100))
    assert not short._stream.features.same_as(first._stream.features)
    features = first._stream.features
    assert short.merge(first)._stream.features is features


def test_merging_with_what_has_seen_nothing():
    first = RunningAudit(0.5, **SMALL).partial_fit(*shifted(22))
    before = _stream.log_mean(first._stream.log_fortunes)
    total = RunningAudit(0.5, **SMALL).merge(first)
    np.testing.assert_allclose(_stream.log_mean(total._stream.log_fortunes), before)
    assert (total.n_pairs_, total.n_bets_) == (600, 560)
    few = RunningAudit(0.5, **SMALL).partial_fit(*shifted(23, 5))
    first.merge(few).merge(first.spawn())
    np.testing.assert_allclose(_stream.log_mean(first._stream.log_fortunes), before)
    assert first.n_pairs_ == 605
    heir = first.spawn().merge(first)
    np.testing.assert_allclose(_stream.log_mean(heir._stream.log_fortunes), before)
    assert heir._stream.moments.counts == first._stream.moments.counts


def test_waiting_rows_find_partners_in_the_other_stream():
    X, Y = shifted(24)
    first = RunningAudit(0.5, **SMALL).partial_fit(X[:100], Y[:90])
    second = RunningAudit(0.5, **SMALL).partial_fit(X[200:300], Y[200:320])
    assert first.merge(second).n_pairs_ == 200
    assert [len(rows) for rows in first._stream.waiting] == [0, 10]


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0.6}, {"delta": 0.1}, {"confidence": 0.9}, {"symmetric": False}],
)
def test_audits_of_other_claims_are_not_merged(change):
    first = RunningAudit(0.5, **SMALL).partial_fit(*shifted(25, 50))
    other = RunningAudit(**{"epsilon": 0.5, **SMALL, **change})
    with pytest.raises(NotFittedError):
        first.merge(other)
    name = next(iter(change))
    with pytest.raises(ParameterError, match=f"agree in {name}, and have"):
        first.merge(other.partial_fit(*shifted(26, 50)))
    grid = RunningAudit(0.5, epsilons=[2.0], **SMALL).partial_fit(*shifted(26, 50))
    with pytest.raises(ParameterError, match="agree in epsilons"):
        first.merge(grid)
    with pytest.raises(ValueError, match="3 columns"):
        first.merge(RunningAudit(0.5, **SMALL).partial_fit(*shifted(26, 50, 3)))
    with pytest.raises(ParameterError, match="spawn later"):
        RunningAudit(0.5).partial_fit(*shifted(26, 50)).spawn()


def test_no_pair_counts_twice():
    first = RunningAudit(0.5, **SMALL).partial_fit(*shifted(31, 50))
    second = first.spawn().partial_fit(*shifted(32, 50))
    copied = pickle.loads(pickle.dumps(second)).partial_fit(*shifted(33, 50))
    first.merge(second)
    for other in (first, second, copied, pickle.loads(pickle.dumps(first))):
        with pytest.raises(ParameterError, match="count twice"):
            first.merge(other)
    with pytest.raises(ParameterError, match="given int"):
        first.merge(3)
    assert first.n_pairs_ == 100


# --- memory, state, parameters ---


def test_memory_does_not_grow_with_the_stream():
    sizes = []
    audit = RunningAudit(0.5, **SMALL)
    for seed in range(8):
        audit.partial_fit(*shifted(seed, 1000))
        assert audit._stream.n_recent <= 800
        sizes.append(len(pickle.dumps(audit)))
    assert max(sizes[2:]) < 1.5 * min(sizes[2:])
    # No view keeps a chunk alive.
    assert all(rows.base is None for side in audit._stream.recent for rows in side)


def test_copies_continue_alike_and_clones_start_anew():
    X, Y = shifted(27)
    audit = RunningAudit(0.5, **SMALL).partial_fit(X[:300], Y[:300])
    other = pickle.loads(pickle.dumps(audit))
    for one in (audit, other):
        one.partial_fit(X[300:], Y[300:])
    np.testing.assert_array_equal(state(audit), state(other))
    fresh = clone(audit)
    with pytest.raises(NotFittedError):
        fresh.bound_
    fresh.fit(X[:300], Y[:300]).fit(X, Y)
    np.testing.assert_allclose(state(fresh), state(audit), atol=1e-8)


def test_frames_are_read_by_name():
    X, Y = (pd.DataFrame(rows, columns=["a", "b"]) for rows in shifted(28, 50))
    audit = RunningAudit(0.5, **SMALL).partial_fit(X, Y)
    with pytest.raises(ValueError, match="same columns"):
        audit.partial_fit(X, Y[["b", "a"]])
    with pytest.raises(ValueError, match="b, a, and had a, b before"):
        audit.partial_fit(X[["b", "a"]], Y[["b", "a"]])
    # An array has no names to compare; a new fit forgets them.
    audit.partial_fit(X.to_numpy(), Y.to_numpy()).partial_fit(X, Y)
    with pytest.raises(ValueError, match="b, a, and had a, b before"):
        audit.merge(
            RunningAudit(0.5, **SMALL).partial_fit(X[["b", "a"]], Y[["b", "a"]])
        )
    audit.fit(X[["b", "a"]], Y[["b", "a"]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": -0.1}, "epsilon=-0.1"),
        ({"epsilon": np.nan}, "epsilon=nan"),
        ({"epsilon": "1"}, "epsilon='1'"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"delta": -0.1}, "delta=-0.1"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"epsilons": [-1.0]}, "epsilons"),
        ({"epsilons": "low"}, "epsilons='low'"),
        ({"epsilons": [[1.0]]}, r"epsilons=\[1.0\]"),
        ({"epsilon": 710.0}, "epsilon=710.0 is above 300"),
        ({"epsilons": [301.0]}, "epsilons=301.0 is above 300"),
        ({"metric": "cosine"}, "metric='cosine'"),
        ({"gamma": 0.0}, "gamma=0.0"),
        ({"gamma": "mean"}, "gamma='mean'"),
        ({"reg": (0.0,)}, "reg=0.0"),
        ({"reg": 1e-11}, "reg=1e-11 is below 1e-10"),
        ({"reg": ()}, r"reg=\(\)"),
        ({"reg": None}, "reg=None"),
        ({"n_components": 7}, "n_components=7"),
        ({"n_warmup": 3}, "n_warmup=3"),
        ({"buffer_size": 10}, "buffer_size=10"),
        ({"symmetric": "yes"}, "symmetric='yes'"),
        ({"random_state": np.random.default_rng()}, "random_state"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    with pytest.raises(ParameterError, match=message):
        RunningAudit(**{"epsilon": 0.5, **parameters}).partial_fit(*shifted(29, 50))


def test_one_number_is_a_list_of_one():
    rows = shifted(29, 50)
    for one, several in (
        ({"reg": 0.1}, {"reg": np.array([0.1])}),
        ({"reg": 1e-10}, {"reg": [1e-10]}),
        ({"epsilons": 2.0}, {"epsilons": pd.Series([2.0])}),
    ):
        audits = [
            RunningAudit(0.5, **{**SMALL, **given}).partial_fit(*rows)
            for given in (one, several)
        ]
        assert audits[0]._stream.settings == audits[1]._stream.settings
        np.testing.assert_array_equal(*map(state, audits))


def test_the_largest_claim_is_too_much_for_any_stream():
    for delta in (0.0, 0.1):
        audit = RunningAudit(300.0, delta=delta, **SMALL).partial_fit(*shifted(29))
        assert audit.verdict_ == "too few samples"
        assert audit.bound_ > 0


def test_nothing_changes_while_an_audit_runs():
    X, Y = shifted(30, 100)
    audit = RunningAudit(0.5, **SMALL).partial_fit(X, Y)
    before = state(audit)
    with pytest.raises(ParameterError, match="while the audit runs"):
        audit.set_params(epsilon=0.4).partial_fit(X, Y)
    audit.set_params(epsilon=0.5)
    for x, y in ((X[:, :1], Y[:, :1]), (X, np.where(Y > 0, Y, np.nan))):
        with pytest.raises(ValueError, match="column"):
            audit.partial_fit(x, y)
    np.testing.assert_array_equal(state(audit), before)
