"""KernelRenyiAuditor as a user meets it."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from audit_support import alike, laplace, laplace_renyi, wider
from sklearn import config_context
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, scale
from sklearn.tree import DecisionTreeClassifier

from skpuffer.audit import KernelRenyiAuditor
from skpuffer.exceptions import (
    DuplicateRowsWarning,
    ParameterError,
    SkpufferWarning,
)


def samples(n=400, seed=0):
    return laplace(n, np.random.default_rng(seed))


def fast(**parameters):
    """An auditor with one cheap witness."""
    return KernelRenyiAuditor(**{"scorers": "linear", **parameters})


def released(n=300, seed=0, groups=("a", "b", "c")):
    rng = np.random.default_rng(seed)
    sex = rng.choice(groups, n * len(groups))
    shift = np.array([list(groups).index(s) for s in sex])
    age, pay = rng.laplace(size=len(sex)) + shift, rng.normal(size=len(sex))
    return pd.DataFrame({"age": age, "pay": pay, "sex": sex})


# --- verdicts ---


def test_a_violation_is_refuted_and_a_promise_kept_is_not():
    x, y = samples(2000)
    found = KernelRenyiAuditor(epsilon=0.3).fit(x, y)
    assert found.verdict_ == "refuted"
    assert 0.3 < found.bound_ < 1
    assert found.reason_ is None
    kept = KernelRenyiAuditor(epsilon=1.0).fit(x, y)
    assert kept.verdict_ == "no violation found"
    assert kept.bound_ == found.bound_


def test_every_claim_has_its_bound():
    x, y = samples(3000)
    pure = KernelRenyiAuditor().fit(x, y)
    approximate = KernelRenyiAuditor(delta=0.1).fit(x, y)
    renyi = KernelRenyiAuditor(alpha=2.0).fit(x, y)
    assert 0.6 < pure.bound_ < 1
    assert 0.3 < approximate.bound_ < 0.75
    assert 0.15 < renyi.bound_ < laplace_renyi(2.0)
    assert KernelRenyiAuditor(alpha=math.inf).fit(x, y).bound_ == pure.bound_


def test_equal_distributions_leave_nothing():
    x, y = alike(400, np.random.default_rng(0), columns=3)
    found = KernelRenyiAuditor(epsilon=0.0).fit(x, y)
    assert found.bound_ == 0.0
    assert found.verdict_ == "no violation found"


def test_no_claim_no_verdict():
    found = fast().fit(*samples())
    assert found.verdict_ is None
    assert "refuted" not in str(found.report_)
    assert "confidence 0.95" in found.report_.sentence


def test_few_rows_cannot_refute_a_large_epsilon():
    x, y = samples(60)
    assert fast(epsilon=5.0).fit(x, y).verdict_ == "too few samples"
    assert "can show no more than" in fast(epsilon=5.0).fit(x, y).report_.sentence
    # Even where every row of x is told from every row of y.
    apart = fast(epsilon=5.0).fit(x, y + 1000)
    assert apart.verdict_ == "too few samples"
    # The ceiling is what such samples reach.
    ceiling = apart.pairs_[0].ceiling
    assert 1 < apart.bound_ <= ceiling < 5
    assert fast(epsilon=ceiling * 0.9).fit(x, y + 1000).verdict_ == "refuted"
    assert fast(epsilon=ceiling * 0.9).fit(x, y).verdict_ == "no violation found"


def test_one_direction_alone():
    rng = np.random.default_rng(0)
    x, y = rng.random((2000, 1)), 2 * rng.random((2000, 1))
    one = KernelRenyiAuditor(symmetric=False).fit(x, y)
    assert 0.5 < one.bound_ < math.log(2)
    other = KernelRenyiAuditor(symmetric=False).fit(y, x)
    assert other.bound_ > 3
    both = KernelRenyiAuditor().fit(x, y)
    assert both.bound_ > 3


def test_a_leak_in_the_variance_alone():
    x, y = wider(2000, np.random.default_rng(0))
    assert KernelRenyiAuditor(delta=0.05).fit(x, y).bound_ > 2
    assert fast(delta=0.05).fit(x, y).bound_ < 0.5


# --- one fit answers every δ and order ---


def test_bounds_for_every_delta_and_order():
    audit = KernelRenyiAuditor().fit(*samples(2000))
    assert audit.epsilon_lower(delta=0.0) == audit.bound_
    assert isinstance(audit.epsilon_lower(delta=0), float)
    by_delta = audit.epsilon_lower(delta=[0.0, 0.05, 0.1, 0.9])
    assert by_delta.shape == (4,)
    assert (np.diff(by_delta) <= 0).all()
    assert by_delta[-1] == 0.0
    by_order = audit.epsilon_lower(alpha=np.array([[1.5, 2.0], [10.0, math.inf]]))
    assert by_order.shape == (2, 2)
    assert (np.diff(by_order.ravel()) > 0).all()
    assert by_order[1, 1] == audit.bound_
    truths = [laplace_renyi(a) for a in (1.5, 2.0, 10.0)]
    assert (by_order.ravel()[:3] < truths).all()


def test_bounds_need_one_question():
    audit = fast()
    with pytest.raises(NotFittedError):
        audit.epsilon_lower(delta=0.1)
    audit.fit(*samples())
    for arguments in ({}, {"delta": 0.1, "alpha": 2.0}):
        with pytest.raises(ParameterError, match="either delta or alpha"):
            audit.epsilon_lower(**arguments)
    with pytest.raises(
        ParameterError, match=r"delta=1\.5 must be a number in \[0, 1\)"
    ):
        audit.epsilon_lower(delta=[0.1, 1.5])
    with pytest.raises(ParameterError, match=r"alpha=1\.0 must be a number above 1"):
        audit.epsilon_lower(alpha=1.0)


def test_betting_finds_more_of_a_renyi_divergence_than_events_do():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(10_000, 1)), rng.normal(size=(10_000, 1)) + 1
    audit = fast(alpha=2.0).fit(x, y)
    events = max(fold.region.lower(fold.target) for fold in audit.pairs_[0].folds)
    # The truth is 1.
    assert events < 0.65 < audit.bound_ < 1
    assert audit.epsilon_lower(alpha=2.0) == audit.bound_
    one = fast(alpha=2.0, symmetric=False).fit(x, y)
    assert 0.65 < one.bound_ < 1
    few = fast(alpha=2.0).fit(x[:900], y[:900])
    assert all(fold.betting == 0 for fold in few.pairs_[0].folds)


# --- by a secret ---


def test_the_secret_as_a_column_or_beside():
    frame = released()
    by_column = fast(secret="sex").fit(frame)
    beside = fast().fit(frame[["age", "pay"]], secret=frame["sex"])
    as_array = fast().fit(frame[["age", "pay"]].to_numpy(), secret=list(frame["sex"]))
    in_polars = fast(secret="sex").fit(pl.DataFrame(frame.to_dict(orient="list")))
    assert by_column.bound_ > 0.5
    for other in (beside, as_array, in_polars):
        assert other.bound_ == by_column.bound_
        assert other.n_features_in_ == 2
    pairs = {pair.labels: pair for pair in by_column.pairs_}
    assert set(pairs) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert by_column.bound_ == max(pair.bound for pair in pairs.values())
    assert pairs["a", "c"].bound == by_column.bound_
    table = by_column.report_.to_frame()
    assert table["pair"].tolist() == ["a – b", "a – c", "b – c"]


def test_pairs_share_the_error():
    frame = released()
    every = fast(secret="sex").fit(frame)
    assert {round(pair.confidence, 9) for pair in every.pairs_} == {
        round(1 - 0.05 / 3, 9)
    }
    one = fast(secret="sex", secret_pairs=[("c", "a")]).fit(frame)
    (pair,) = one.pairs_
    assert (pair.labels, round(pair.confidence, 9)) == (("a", "c"), 0.95)
    assert one.bound_ > every.bound_


def test_a_pair_with_few_rows_is_nan_with_a_reason():
    few = released(30).query("sex == 'c'")[:12]
    frame = pd.concat([released(200, groups=("a", "b")), few], ignore_index=True)
    found = fast(secret="sex", epsilon=0.1).fit(frame)
    small = [pair for pair in found.pairs_ if "c" in pair.labels]
    assert len(small) == 2
    for pair in small:
        assert math.isnan(pair.bound)
        assert pair.reason == "an audit needs 20 rows of either sample: c has 12"
        assert pair.verdict == "too few samples"
    # The pair that can be audited has the whole error.
    assert found.pairs_[0].confidence == 0.95
    assert found.bound_ == found.pairs_[0].bound
    nothing = fast(secret="sex", secret_pairs=[("a", "c")], epsilon=0.1).fit(frame)
    assert math.isnan(nothing.bound_)
    assert nothing.verdict_ == "too few samples"
    assert "c has 12" in nothing.reason_
    assert "c has 12" in nothing.report_.sentence
    assert math.isnan(nothing.epsilon_lower(delta=0.1))
    assert math.isnan(nothing.score(frame))
    assert nothing.counts_ is None
    nothing.set_params(epsilon=None).fit(frame)
    assert nothing.verdict_ is None
    assert "c has 12" in nothing.report_.sentence


def test_the_secret_has_to_be_given_once():
    frame = released(40)
    with pytest.raises(ParameterError, match="one sample and no secret"):
        fast().fit(frame[["age"]])
    with pytest.raises(ParameterError, match="given twice"):
        fast(secret="sex").fit(frame, secret=frame["sex"])
    with pytest.raises(ParameterError, match="both Y and secret= in fit"):
        fast().fit(frame[["age"]], frame[["age"]], secret=frame["sex"])
    with pytest.raises(ParameterError, match="both Y and secret="):
        fast(secret="sex").fit(frame, frame)
    with pytest.raises(ParameterError, match="single value, 'a'"):
        fast(secret="sex").fit(frame[frame["sex"] == "a"])
    with pytest.raises(ParameterError, match=r"\('a', 'z'\)"):
        fast(secret="sex", secret_pairs=[("a", "z")]).fit(frame)
    with pytest.raises(ParameterError, match="'seks' is not a column of X"):
        fast(secret="seks").fit(frame)


# --- the scikit-learn contract ---


def test_calls_and_scores():
    x, y = samples()
    audit = fast()
    bound = audit(x, y)
    assert bound == fast().fit(x, y).bound_ > 0
    assert audit.score(x, y) == -bound
    assert not hasattr(audit, "bound_")
    frame = released()
    assert fast()(frame[["age"]], secret=frame["sex"]) > 0


def test_numbers_of_numpy_are_numbers():
    x, y = samples(100)
    audit = fast(epsilon=np.int64(0), delta=np.float64(0), reg=np.array([0.1, 0.2]))
    assert audit.fit(x, y).divergence_.shape == (2,)
    assert (
        fast(delta=np.int64(0), reg=0.1, random_state=np.int64(1)).fit(x, y).bound_ >= 0
    )


def test_clones_parameters_and_repetition():
    x, y = samples()
    audit = fast(epsilon=0.5, delta=0.01, random_state=3).fit(x, y)
    assert KernelRenyiAuditor(**audit.get_params()).get_params() == audit.get_params()
    again = clone(audit).fit(x, y)
    assert again.bound_ == audit.bound_
    assert again.counts_ == audit.counts_
    assert audit.fit(x, y).bound_ == again.bound_
    other = clone(audit).set_params(random_state=4).fit(x, y)
    assert other.counts_ != audit.counts_


def test_a_second_fit_forgets_the_first():
    x, y = samples()
    audit = fast(secret="sex", epsilon=0.3).fit(released())
    audit.set_params(secret=None).fit(x, y)
    assert len(audit.pairs_) == 1
    assert vars(audit).keys() == vars(fast(epsilon=0.3).fit(x, y)).keys()


def test_secrets_are_routed():
    with config_context(enable_metadata_routing=True):
        audit = KernelRenyiAuditor().set_fit_request(secret=True)
        audit.set_score_request(secret=True)
        request = audit.get_metadata_routing()
    assert request.fit.requests == {"secret": True}
    assert request.score.requests == {"secret": True}


def test_order_of_rows_is_no_matter_of_validity_but_units_are_none_of_power():
    x, y = samples(1000)
    plain = KernelRenyiAuditor().fit(x, y).bound_
    scaled = KernelRenyiAuditor().fit(1e6 * x + 1e9, 1e6 * y + 1e9).bound_
    assert scaled == pytest.approx(plain, abs=0.05)


def test_frames_and_arrays_alike():
    x, y = samples()
    expected = fast().fit(x, y).bound_
    frames = [pd.DataFrame(part, columns=["age"]) for part in (x, y)]
    assert fast().fit(*frames).bound_ == expected
    assert (
        fast().fit(*(pl.DataFrame(f.to_dict(orient="list")) for f in frames)).bound_
        == expected
    )
    single = fast().fit(x.astype(np.float32), y.astype(np.float32)).bound_
    assert single == pytest.approx(expected, abs=0.1)


def numbers_in(value, seen=None):
    """Every number that an object holds on to."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield from value.ravel().tolist()
    elif isinstance(value, (int, float)):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from numbers_in(item, seen)
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from numbers_in(item, seen)
    elif hasattr(value, "__dict__"):
        yield from numbers_in(vars(value), seen)


def test_a_fitted_auditor_holds_no_rows():
    x, y = samples(300)
    audit = KernelRenyiAuditor(epsilon=1.0).fit(x, y)
    held = set(numbers_in(audit))
    assert not held & set(np.concatenate([x, y]).ravel().tolist())
    sizes = []
    for n in (300, 3000):
        sizes.append(len(pickle.dumps(fast().fit(*samples(n)))))
        restored = pickle.loads(pickle.dumps(audit))
        assert restored.epsilon_lower(delta=0.1) == audit.epsilon_lower(delta=0.1)
    assert abs(sizes[1] - sizes[0]) < 100


# --- results for people ---


def test_the_report():
    audit = fast(epsilon=0.3).fit(*samples(2000))
    text = str(audit.report_)
    assert text.startswith("refuted at level 0.05: ε is at least")
    assert "linear score 0" in text
    assert "refuted" in audit.report_._repr_html_()
    hits_x, n_x, hits_y, n_y = audit.counts_
    assert f"{hits_x} of {n_x} against {hits_y} of {n_y}" in str(audit.event_)
    assert n_x == n_y == 1000
    assert "private" not in text
    for words in ("Rényi divergence of order 2", "δ = 0.1"):
        parameters = {"alpha": 2.0} if "order" in words else {"delta": 0.1}
        assert words in fast(**parameters).fit(*samples()).report_.sentence


def test_diagnostics_are_no_verdict():
    x, y = alike(100, np.random.default_rng(1), columns=20)
    audit = KernelRenyiAuditor(epsilon=0.1, alpha=12.0).fit(x, y)
    assert audit.divergence_.shape == audit.margin_.shape == (3,)
    # A plug-in value is biased upwards: a false alarm if it were believed.
    assert audit.divergence_.max() > 0.1
    assert audit.verdict_ != "refuted"
    assert np.isinf(audit.margin_).any()


# --- the paper's own claim ---


def test_kernel_renyi_claims():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20_000, 2)), rng.normal(size=(20_000, 2)) + 1.5
    parameters = {"claim": "kernel_renyi", "alpha": 2.0, "reg": (0.05, 0.2)}
    refuted = KernelRenyiAuditor(epsilon=0.1, **parameters).fit(x, y)
    assert refuted.verdict_ == "refuted"
    assert 0.1 < refuted.bound_ <= (refuted.divergence_ - refuted.margin_).max() + 1e-12
    assert refuted.counts_ is None
    assert "kernel Rényi divergence" in refuted.report_.sentence
    kept = KernelRenyiAuditor(epsilon=2.0, **parameters).fit(x, y)
    assert kept.verdict_ == "no violation found"
    few = KernelRenyiAuditor(epsilon=0.1, **parameters).fit(x[:200], y[:200])
    assert few.verdict_ == "too few samples"
    assert few.bound_ == -math.inf
    few.fit(x[:40], y[:40])
    assert "so many rows can show nothing" in few.report_.sentence
    few.set_params(epsilon=None).fit(x[:200], y[:200])
    assert few.report_.sentence.startswith("nothing is known from below of the larger")
    with pytest.raises(ParameterError, match="counts no events"):
        few.epsilon_lower(delta=0.1)
    for bad in ({"alpha": None}, {"alpha": 1.5}):
        with pytest.raises(ParameterError, match="must be at least 2"):
            KernelRenyiAuditor(**{**parameters, **bad}).fit(x, y)
    with pytest.raises(ValueError, match="normalise the kernel"):
        KernelRenyiAuditor(**parameters, metric="linear", gamma=None).fit(x, y)


def test_no_more_is_said_of_the_kernel_divergence_than_is_measured():
    # Of equal distributions it is below 0: −log tr S (S + λ)^(−1/2) S (S + λ)^(−1/2).
    x, y = alike(20_000, np.random.default_rng(3), columns=2)
    audit = KernelRenyiAuditor(claim="kernel_renyi", alpha=2.0, reg=0.1).fit(x, y)
    assert -math.inf < audit.bound_ < audit.divergence_[0] < 0
    assert audit.bound_ == pytest.approx((audit.divergence_ - audit.margin_)[0])
    assert f"at least {audit.bound_:.4g}" in audit.report_.sentence
    assert audit.score(x[:40], y[:40]) == 0.0


# --- witnesses ---


@pytest.mark.parametrize(
    "scorers",
    [
        "kernel",
        "linear",
        ["quadratic"],
        LogisticRegression(),
        [QuadraticDiscriminantAnalysis(), "linear"],
        DecisionTreeClassifier(max_depth=3),
        lambda X, Y: lambda rows: rows[:, 0] * np.sign(X.mean() - Y.mean()),
        [lambda X, Y: lambda rows: -rows],
    ],
)
def test_any_scorer_is_a_witness(scorers):
    found = KernelRenyiAuditor(scorers=scorers).fit(*samples(1500, seed=2))
    assert 0.2 < found.bound_ < 1


def test_classifiers_are_left_unfitted():
    model = LogisticRegression()
    KernelRenyiAuditor(scorers=model).fit(*samples(100))
    assert not hasattr(model, "coef_")


def test_scorers_that_look_at_the_rows_beside_are_refused():
    # Of equal distributions such a score would refute in two of five audits.
    x, y = alike(400, np.random.default_rng(4), columns=2)

    def of_batch(X, Y):
        return lambda rows: np.full(len(rows), rows.mean())

    def centred(X, Y):
        return lambda rows: rows[:, 0] - rows[:, 0].mean()

    def ranked(X, Y):
        return lambda rows: rows[:, 0].argsort().argsort()

    def by_chance(X, Y):
        rng = np.random.default_rng(0)
        return lambda rows: rng.random(len(rows))

    for scorer in (of_batch, centred, ranked, by_chance):
        with pytest.raises(ParameterError, match=f"{scorer.__name__}.* row by itself"):
            KernelRenyiAuditor(scorers=scorer).fit(x, y)
    scaled = make_pipeline(FunctionTransformer(scale), LogisticRegression())
    with pytest.raises(ParameterError, match=r"'Pipeline' .* row by itself"):
        KernelRenyiAuditor(scorers=scaled).fit(x, y)


def test_neighbours_that_rounding_chooses_are_refused_with_a_remedy():
    rng = np.random.default_rng(0)
    x, y = 7 + 0.1 * rng.integers(0, 2, size=(2, 300, 20))
    with pytest.raises(ParameterError, match="ties: algorithm='kd_tree'"):
        KernelRenyiAuditor(scorers=KNeighborsClassifier(algorithm="brute")).fit(x, y)
    tree = KNeighborsClassifier(algorithm="kd_tree")
    assert KernelRenyiAuditor(scorers=tree).fit(x, y).bound_ < 0.5


def test_rounding_is_no_look_at_the_rows_beside():
    def single(X, Y):
        slope = (X.mean(axis=0) - Y.mean(axis=0)).astype(np.float32)
        return lambda rows: rows.astype(np.float32) @ slope

    def constant(X, Y):
        return lambda rows: (rows * 0 + [0.1, 0.2, -0.3]) @ np.ones(3)

    x, y = alike(400, np.random.default_rng(5), columns=3)
    forest = RandomForestClassifier(5)
    assert fast(scorers=[single, constant, forest]).fit(x, y).bound_ < 0.5


def fails(X, Y):
    return None


@pytest.mark.parametrize(
    ("scorers", "message"),
    [
        ([], "leaves nothing"),
        ("kernels", "'kernels'"),
        ([3], "scorers holds 3"),
        (LinearRegression(), "no classifier"),
        (LogisticRegression, "unfitted classifiers"),
        (fails, "returned NoneType"),
        (lambda X, Y: lambda rows: rows[:5, 0], "shape"),
        (lambda X, Y: lambda rows: rows[:, 0] * np.nan, "not finite"),
    ],
)
def test_scorers_that_are_none(scorers, message):
    with pytest.raises(ParameterError, match=message):
        KernelRenyiAuditor(scorers=scorers).fit(*samples(100))


@pytest.mark.parametrize(
    ("metric", "gamma"),
    [
        ("rbf", 0.3),
        ("laplacian", "median"),
        ("linear", None),
        ("polynomial", 0.1),
        ("cosine", "median"),
        (lambda a, b: float(np.exp(-np.abs(a - b).sum())), None),
    ],
)
def test_any_kernel(metric, gamma):
    x, y = samples(300)
    audit = KernelRenyiAuditor(
        scorers="kernel", metric=metric, gamma=gamma, n_components=16
    )
    bound = audit.fit(np.hstack([x, x]), np.hstack([y, y])).bound_
    assert 0 <= bound < 1


# --- bad input ---

BAD_PARAMETERS = [
    ({"epsilon": -1.0}, r"epsilon=-1\.0"),
    ({"epsilon": math.nan}, "epsilon=nan"),
    ({"epsilon": "1"}, "epsilon='1'"),
    ({"epsilon": True}, "epsilon=True"),
    ({"delta": 1.0}, r"delta=1\.0 must be a number in \[0, 1\)"),
    ({"delta": -0.1}, r"delta=-0\.1"),
    ({"delta": None}, "delta=None"),
    ({"alpha": 1.0}, r"alpha=1\.0 must be a number above 1"),
    ({"alpha": 0.3}, r"alpha=0\.3"),
    ({"alpha": 2.0, "delta": 0.1}, "two different claims"),
    ({"confidence": 1.0}, r"confidence=1\.0"),
    ({"confidence": 95}, "confidence=95"),
    ({"symmetric": 1}, "symmetric=1"),
    ({"metric": "rfb"}, "metric='rfb'"),
    ({"metric": "precomputed"}, "rows that it has not seen"),
    ({"gamma": 0.0}, r"gamma=0\.0"),
    ({"gamma": "auto"}, "gamma='auto'"),
    ({"reg": 1e-11}, "reg=1e-11 is below 1e-10"),
    ({"reg": (0.1, -1.0)}, r"reg=-1\.0"),
    ({"reg": ()}, "at least one number"),
    ({"n_components": 1}, "n_components=1"),
    ({"claim": "renyi"}, "claim='renyi'"),
    ({"random_state": -1}, "random_state=-1"),
    ({"random_state": np.random.default_rng(0)}, "random_state="),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ParameterError, match=message):
        KernelRenyiAuditor(**parameters).fit(*samples(40))


@pytest.mark.parametrize(
    ("gamma", "factor"), [(0.5, 2.0**12), (50.0, 2.0**12), (1e6, 1)]
)
def test_a_kernel_too_narrow_for_any_two_rows_finds_little(gamma, factor):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) * [1, 3]
    x, y = (rows * [1, factor] for rows in (x, y))
    audit = KernelRenyiAuditor(epsilon=1, gamma=gamma, scorers="kernel").fit(x, y)
    assert 0 <= audit.bound_ < 1
    assert np.isinf(audit.margin_).all()


def test_bad_samples_are_refused():

    x, y = samples(50)
    gaps = x.copy()
    gaps[3] = np.nan
    with pytest.raises(ValueError, match=r"missing \(NaN\) in 1 of 50"):
        fast().fit(gaps, y)
    with pytest.raises(ValueError, match="infinite"):
        fast().fit(x, np.where(y > 1, np.inf, y))
    with pytest.raises(ValueError, match="X has 1 columns and Y has 2"):
        fast().fit(x, np.hstack([y, y]))
    with pytest.raises(ValueError, match="needs 20 rows of either sample: X has 19"):
        fast().fit(x[:19], y)
    with pytest.raises(ValueError, match="hold the same 50 rows"):
        fast().fit(x, x.copy())
    with pytest.raises(ValueError, match="hold the same 50 rows"):
        fast().fit(x, x[::-1])
    with pytest.raises(ValueError, match="not have the same columns"):
        fast().fit(pd.DataFrame(x, columns=["a"]), pd.DataFrame(y, columns=["b"]))
    frame = released(40)
    with pytest.raises(ValueError, match="column 'sex'"):
        fast().fit(frame, frame)
    frame.loc[2, "age"] = np.nan
    with pytest.raises(ValueError, match="column 'age' is missing"):
        fast(secret="sex").fit(frame)


def test_bad_input_is_told_before_anything_is_computed():
    def never(X, Y):
        raise AssertionError

    x, y = samples(50)
    with pytest.raises(ParameterError, match="confidence"):
        KernelRenyiAuditor(scorers=never, confidence=2.0).fit(x, y)
    with pytest.raises(ValueError, match="needs 20 rows"):
        KernelRenyiAuditor(scorers=never).fit(x[:5], y)


def test_a_failed_fit_leaves_the_auditor_as_it_was():
    audit = fast().fit(*samples())
    before = audit.bound_
    with pytest.raises(ValueError, match="needs 20 rows"):
        audit.fit(*samples(10))
    assert audit.bound_ == before


def test_repeated_rows_are_warned_of_where_values_are_not_discrete():
    x, y = samples(200)
    with pytest.warns(DuplicateRowsWarning, match="40 of 400 rows") as caught:
        fast().fit(np.concatenate([x[:160], x[:40]]), y)
    assert issubclass(DuplicateRowsWarning, SkpufferWarning)
    assert caught[0].filename == __file__
    with pytest.warns(DuplicateRowsWarning, match="1 of 400 rows"):
        fast().fit(np.concatenate([x[:199], y[:1]]), y)
    # Coins repeat themselves.
    coins = np.random.default_rng(0).integers(0, 2, (2, 200, 3)).astype(float)
    assert fast().fit(coins[0], coins[1]).bound_ < 1
    whole = np.round(10 * samples(200)[0]), np.round(10 * samples(200, seed=1)[1])
    assert fast().fit(*whole).bound_ < 1
    # A released column lies on a grid, where some values agree by chance.
    grid = np.round(np.random.default_rng(0).laplace(size=(2, 3000, 1)) * 2.0**20)
    assert len(np.unique(grid)) < 6000
    assert fast().fit(*(grid / 2.0**20)).bound_ < 1


@pytest.mark.parametrize("n", [20, 21, 39])
def test_the_smallest_samples(n):
    x, y = samples(n)
    audit = KernelRenyiAuditor(epsilon=0.5).fit(x, y[:20])
    assert audit.bound_ >= 0
    assert audit.verdict_ in ("refuted", "no violation found", "too few samples")


def test_constant_columns():
    ones = np.ones((60, 1))
    assert KernelRenyiAuditor(epsilon=1).fit(ones, ones).bound_ == 0
    x, y = samples(300)
    zeros = np.zeros((300, 1))
    audit = KernelRenyiAuditor().fit(np.hstack([x, zeros]), np.hstack([y, zeros]))
    assert 0 <= audit.bound_ < 1
    told = KernelRenyiAuditor().fit(
        np.hstack([x, zeros]), np.hstack([x + 1e-9, zeros + 1])
    )
    assert told.bound_ > 2


def test_samples_of_different_sizes():
    rng = np.random.default_rng(0)
    x, y = laplace(4000, rng)
    for sizes in [(4000, 400), (400, 4000)]:
        assert 0.4 < KernelRenyiAuditor().fit(x[: sizes[0]], y[: sizes[1]]).bound_ < 1


def test_the_printed_event_is_the_telling_one():
    rng = np.random.default_rng(0)
    # An event for 1 in 2 rows of X and nearly all of Y: its complement tells more.
    x, y = (rng.uniform(size=(2000, 1)) < p for p in (0.5, 0.98))
    audit = KernelRenyiAuditor(scorers=["linear"]).fit(x * 1.0, y * 1.0)
    hits_x, n_x, hits_y, n_y = audit.counts_
    shown = str(audit.event_)
    if hits_x > n_x / 4 and hits_y > n_y / 2:
        assert f"{n_x - hits_x} of {n_x} against {n_y - hits_y} of {n_y}" in shown
    else:
        assert f"{hits_x} of {n_x} against {hits_y} of {n_y}" in shown
    assert audit.bound_ > 2
