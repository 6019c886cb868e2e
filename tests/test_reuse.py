"""Fits on equal data share their reading and couplings, and nothing else changes."""

import contextlib
import gc
import math
import pickle
import threading
import warnings
import weakref
from dataclasses import asdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import config_context
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.parallel import Parallel, delayed

import skpuffer
from skpuffer import (
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    reuse_fits,
)
from skpuffer.core.coupling import Coupling
from skpuffer.exceptions import (
    CategoriesFromDataWarning,
    ParameterError,
    UnavailableRuleError,
)

ROWS = 300
BUDGETS = [{"alpha": 2.0}, {"alpha": 6.0, "epsilon": 0.3}, {"alpha": 2.0}]
TARGET = {"alpha": "auto", "epsilon": 2.0, "delta": 1e-3}
pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def people(n=ROWS, seed=0):
    """Ages, incomes and jobs that depend on the sex."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, n) + 4 * sex,
            "income": rng.normal(3, 1, n) + 0.5 * sex * rng.random(n),
            "job": np.array(["a", "b", "c"])[(rng.integers(0, 4, n) + sex) % 3],
            "town": rng.integers(0, 2, n),
            "sex": np.array(["F", "M"])[sex],
        }
    )


DF = people()
BOUNDS = {"age": (0.0, 100.0), "income": (-2.0, 9.0)}
JOBS = {"categories": {"job": ["a", "b", "c"]}}


def options(*columns, **parameters):
    return [*columns, "sex"], {"secret": "sex", **parameters}


CASES = {
    **{
        f"{law.__name__}-{rule}": (law, *options("age", calibration=rule))
        for law in (RenyiPufferfishLaplace, RenyiPufferfishGaussian)
        for rule in ("transport", "alpha_wasserstein", "closed_form", "w_inf", "exact")
    },
    "exponential": (RenyiPufferfishExponential, *options("age", power=0.5)),
    "prior": (RenyiPufferfishLaplace, *options("age", "town", prior="town")),
    "joint": (RenyiPufferfishGaussian, *options("age", "income")),
    "range": (
        RenyiPufferfishLaplace,
        *options("age", "income", column_weights="range", bounds=BOUNDS),
    ),
    "columns": (RenyiPufferfishLaplace, *options("age", "income", scope="column")),
    "gaussian": (RenyiPufferfishGaussian, *options("age", prior_model="gaussian")),
    **{
        model: (
            RenyiPufferfishLaplace,
            *options("age", prior_model=model, bounds=(0, 100)),
        )
        for model in ("population", "bounded")
    },
    **{
        f"categorical-{model}": (
            RenyiPufferfishCategorical,
            *options("job", prior_model=model, **JOBS),
        )
        for model in ("empirical", "population", "bounded")
    },
    "categorical-exact": (
        RenyiPufferfishCategorical,
        *options("job", calibration="exact", **JOBS),
    ),
    "rows": (JointRelease, *options("age", "job", **JOBS)),
    "rows-bounded": (
        JointRelease,
        *options("age", "job", prior_model="bounded", bounds={"age": (0, 100)}, **JOBS),
    ),
}


def found(noise):
    """Everything that a fit found, to the last bit."""
    guarantee = asdict(noise.guarantee_)
    profile = noise.profile_
    kept = ("n_features_in_", "feature_names_in_", "noise_std_")
    return (
        [float(b).hex() for b in noise.scale_],
        {name: value for name, value in guarantee.items() if name != "versions"},
        (profile.orders, profile.divergences, profile.limit),
        noise.report_.worst_pair,
        [repr(vars(noise).get(name)) for name in kept],
    )


def outcomes(law, frame, fixed, budgets, **labels):
    return [
        found(law(**fixed, **budget).fit(frame.copy(), **labels)) for budget in budgets
    ]


@pytest.mark.parametrize("name", CASES)
def test_the_same_with_and_without(name):
    law, columns, fixed = CASES[name]
    # Quadratures and programmes take their time.
    frame = DF[columns].head(60 if "exact" in name or law is JointRelease else ROWS)
    budgets = BUDGETS
    plain = outcomes(law, frame, fixed, budgets)
    with reuse_fits() as reuse:
        assert outcomes(law, frame, fixed, budgets) == plain
    assert (reuse.hits, reuse.misses) == (len(budgets) - 1, 1)
    assert outcomes(law, frame, fixed, budgets[:1]) == plain[:1]


@pytest.mark.parametrize(
    ("law", "columns", "fixed"),
    [
        (RenyiPufferfishLaplace, ["age", "sex"], {}),
        (RenyiPufferfishGaussian, ["age", "income", "sex"], {}),
        (RenyiPufferfishCategorical, ["job", "sex"], JOBS),
    ],
)
def test_the_same_for_chosen_orders(law, columns, fixed):
    frame, fixed = DF[columns], {"secret": "sex", **fixed, **TARGET}
    budgets = [{"epsilon": 1.0}, {"epsilon": 3.0}]
    wanted = [{**fixed, **budget} for budget in budgets]
    plain = [found(law(**one).fit(frame)) for one in wanted]
    with reuse_fits() as reuse:
        assert [found(law(**one).fit(frame.copy())) for one in wanted] == plain
    assert reuse.hits == 1


def test_laws_and_rules_share_a_reading():
    plain, shared = [], []
    laws = (
        RenyiPufferfishLaplace,
        RenyiPufferfishGaussian,
        RenyiPufferfishExponential,
    )
    rules = ("transport", "w_inf", "closed_form")
    for target in (plain, shared):
        with reuse_fits() as reuse:
            for law in laws:
                for rule in rules:
                    noise = law(secret="sex", calibration=rule)
                    target.append(found(noise.fit(DF[["age", "sex"]])))
                    if target is plain:
                        reuse._forget()
    assert plain == shared
    assert reuse.hits == 8


# --- what is the same data ---


X = DF[["age"]].to_numpy()
SEX = (DF["sex"] == "M").to_numpy().astype(int)
WEIGHTS = np.random.default_rng(1).integers(1, 4, ROWS).astype(float)


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


def hits(first, second, law=RenyiPufferfishLaplace):
    """Whether a fit of the second finds the first, and gets what it would alone."""
    alone = None
    for reuse_it in (False, True):
        with reuse_fits() as reuse:
            if reuse_it:
                parameters, given = first
                law(**parameters).fit(**given)
            parameters, given = second
            result = found(law(**parameters).fit(**given))
        assert alone in (None, result)
        alone = result
    return bool(reuse.hits)


HITS = {
    "copies": ({}, {"X": X.copy(), "secret": SEX.copy()}),
    "fortran": ({}, {"X": np.asfortranarray(X), "secret": SEX}),
    "strided": (
        {},
        {"X": np.repeat(X, 2, axis=0)[::2], "secret": np.repeat(SEX, 2)[::2]},
    ),
    "another budget": (
        {"alpha": 5, "epsilon": 2, "n_releases": 3},
        {"X": X, "secret": SEX},
    ),
    "y is no secret": ({}, {"X": X, "secret": SEX, "y": SEX}),
    "the same weights of columns": (
        {"column_weights": "std", "scope": "joint"},
        {"X": X, "secret": SEX},
    ),
}
MISSES = {
    "a value": ({}, {"X": changed(X, 200, X[200] + 1e-9), "secret": SEX}),
    "the last value": ({}, {"X": changed(X, -1, 50.0), "secret": SEX}),
    "a label": ({}, {"X": X, "secret": changed(SEX, 7, 1 - SEX[7])}),
    "float labels": ({}, {"X": X, "secret": SEX.astype(float)}),
    "short labels": ({}, {"X": X, "secret": SEX.astype(np.int32)}),
    "true labels": ({}, {"X": X, "secret": SEX.astype(bool)}),
    "a list of labels": ({}, {"X": X, "secret": SEX.tolist()}),
    "named labels": ({}, {"X": X, "secret": pd.Series(SEX, name="group")}),
    "a dtype": ({}, {"X": X.astype(np.float32), "secret": SEX}),
    "a frame": ({}, {"X": pd.DataFrame({"age": X[:, 0]}), "secret": SEX}),
    "weights": ({}, {"X": X, "secret": SEX, "sample_weight": WEIGHTS}),
    "a prior": ({}, {"X": X, "secret": SEX, "prior": np.arange(ROWS) % 2}),
    "bounds": ({"bounds": (0, 60)}, {"X": X, "secret": SEX}),
    "a prior model": (
        {"bounds": (0, 60), "prior_model": "bounded"},
        {"X": X, "secret": SEX},
    ),
    "pairs": ({"secret_pairs": [(0, 1)]}, {"X": X, "secret": SEX}),
    "a secret in X": ({"secret": 1}, {"X": np.column_stack([X, SEX])}),
    "a secret from y": ({"secret_from_y": True}, {"X": X, "y": SEX}),
}


@pytest.mark.parametrize("name", HITS)
def test_equal_data_are_recognised(name):
    assert hits(({}, {"X": X, "secret": SEX}), HITS[name])


@pytest.mark.parametrize("name", MISSES)
def test_other_data_are_not_taken_for_the_same(name):
    assert not hits(({}, {"X": X, "secret": SEX}), MISSES[name])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array([0.0] * 5), np.array([0.0] * 4 + [-0.0])),
        (np.array([1, 1, 2], dtype=object), np.array([1, True, 2], dtype=object)),
        (np.array([0.0, 1.0], dtype=object), np.array([-0.0, 1.0], dtype=object)),
        (np.array(["a", "b"]), np.array(["a", "c"])),
        (np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object)),
        (pd.Series(["a", "b"]), pd.Series(["a", "c"])),
        (pd.Series(["a", "b"]), pd.Series(["a", "b"], name="sex")),
        (pd.Series(["a", "b"]), pd.Series(["a", "b"], dtype="category")),
        (
            pd.Series(pd.Categorical(["a", "b"], categories=["a", "b"])),
            pd.Series(pd.Categorical(["a", "b"], categories=["b", "a"])),
        ),
        (
            pd.Series(pd.Categorical(["a", "b"], ordered=True)),
            pd.Series(pd.Categorical(["a", "b"])),
        ),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"b": [1, 2]})),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]}, dtype="Int64")),
        (pd.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 2]})),
        (pl.DataFrame({"a": ["x", "y"]}), pl.DataFrame({"a": ["x", "z"]})),
        (
            pl.DataFrame({"a": ["x", "y"]}, schema={"a": pl.Enum(["x", "y"])}),
            pl.DataFrame({"a": ["x", "y"]}, schema={"a": pl.Enum(["y", "x"])}),
        ),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (["a", "b"], ("a", "b")),
        (None, np.zeros(2)),
    ],
    ids=str,
)
def test_contents_that_differ(first, second):
    one, other = (skpuffer._validation.Contents.of(item) for item in (first, second))
    for item, copy in ((one, one.copied()), (other, other.copied())):
        assert item.same_as(copy)
        assert copy.same_as(item)
    assert not one.same_as(other.copied())
    assert not other.same_as(one.copied())


@pytest.mark.parametrize("kind", [np.asarray, pd.Series], ids=["array", "series"])
def test_what_is_kept_is_nobody_elses(kind):
    # Read, but not calibrated: couplings made before a change would hide it.
    values, codes = np.stack([X[:, 0], X[:, 0] ** 2], axis=1), SEX.astype(np.int64)
    given = {
        "secret": kind(codes.copy()),
        "prior": kind(np.repeat(np.arange(2), ROWS // 2)),
        "sample_weight": kind(np.linspace(1, 2, ROWS)),
    }
    first = {name: item.copy() for name, item in given.items()}
    rows, weights = values.copy(), np.array([1.0, 3.0])
    noise = RenyiPufferfishLaplace(column_weights=weights, calibration="exact")
    usual = RenyiPufferfishLaplace(column_weights=[1.0, 3.0]).fit(values, **first)
    with reuse_fits() as reuse:
        with pytest.raises(UnavailableRuleError):
            noise.fit(rows, **given)
        rows[:], weights[:] = 0.0, 7.0
        for item in given.values():
            item[:] = np.random.default_rng(1).permutation(np.asarray(item))
        weight = np.array([1.0, 3.0])
        noise.set_params(column_weights=weight, calibration="transport")
        noise.fit(values, **first)
    assert reuse.hits == 1
    assert found(noise) == found(usual)


def test_names_that_an_estimator_has_are_its_own():
    noises = [RenyiPufferfishLaplace(secret="sex") for _ in range(3)]
    with reuse_fits() as reuse:
        for noise in noises:
            noise.fit(DF[["age", "sex"]])
            assert noise.feature_names_in_[0] == "age"
            noise.feature_names_in_[0] = "other"
    assert reuse.hits == 2


@pytest.mark.parametrize(
    "data",
    [
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.array([[1], [1, 2], None], dtype=object),
        [[1, 2], [3, 4]],
        pd.Series(pd.date_range("2020", periods=2, tz="UTC")),
        pd.Series([1, 2], name=("a", "b")),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        iter([1, 2]),
        # As arrays they are those of 2^53 + 1, or of NaN, in place of 2^53 and nothing.
        pd.Series([2**53, None], dtype="Int64"),
        pd.Series([1.0, None], dtype="Float64"),
        pd.DataFrame({"a": pd.Series([2**53, None], dtype="int64[pyarrow]")}),
        pl.DataFrame({"a": [2**53, None]}),
        pl.DataFrame({"a": [1.0, None]}),
        pa.table({"a": [2**53, None]}),
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_cannot_be_compared_with_certainty_has_no_copy(data):
    contents = skpuffer._validation.Contents.of(data)
    assert contents is None or contents.copied() is None


def test_data_that_cannot_be_compared_are_read_anew():
    dates = pd.Series(pd.date_range("2020", periods=2, tz="UTC").repeat(ROWS // 2))
    with reuse_fits() as reuse:
        for _ in range(2):
            RenyiPufferfishLaplace().fit(X, secret=dates)
            RenyiPufferfishLaplace().fit(X.tolist(), secret=SEX)
            RenyiPufferfishCategorical(
                secret="sex", categories=[["a", "b", "c"]], metric=lambda a, b: a != b
            ).fit(DF[["job", "sex"]])
    assert (reuse.hits, reuse.misses) == (0, 6)


def test_a_change_in_place_is_noticed():
    values, labels = X.copy(), SEX.copy()
    noise = RenyiPufferfishLaplace()
    with reuse_fits() as reuse:
        before = found(noise.fit(values, secret=labels))
        values[3, 0] = 400.0
        after = found(noise.fit(values, secret=labels))
        labels[:50] = 1 - labels[:50]
        last = found(noise.fit(values, secret=labels))
        assert found(noise.fit(X, secret=SEX)) == before
    assert reuse.hits == 1
    assert after == found(noise.fit(changed(X, (3, 0), 400.0), secret=SEX))
    assert last == found(noise.fit(values, secret=labels))
    frame = DF[["age", "sex"]].copy()
    with reuse_fits() as reuse:
        noise.set_params(secret="sex").fit(frame)
        frame.loc[4, "age"] = 300.0
        assert found(noise.fit(frame)) == after or reuse.hits == 0


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(make):
    def frame():
        return make({name: DF[name].tolist() for name in ("age", "job", "sex")})

    row = JointRelease(secret="sex", **JOBS)
    plain = found(row.fit(frame()))
    with reuse_fits() as reuse:
        assert found(row.fit(frame())) == found(row.fit(frame())) == plain
    assert reuse.hits == 1
    assert row.feature_names_in_.tolist() == ["age", "job"]


# --- what still happens ---


def test_what_raised_still_raises():
    noise = RenyiPufferfishLaplace()
    frame = DF[["age"]]
    labels = DF["sex"]
    moved = labels.set_axis(labels.index[::-1])
    with reuse_fits() as reuse:
        noise.fit(frame, secret=labels)
        with pytest.raises(ParameterError, match="another index"):
            noise.fit(frame, secret=moved)
        with pytest.raises(ParameterError, match="alpha"):
            RenyiPufferfishLaplace(alpha=0.5).fit(frame, secret=labels)
        for _ in range(2):
            with pytest.raises(ValueError, match="missing"):
                noise.fit(changed(X, 5, math.nan), secret=SEX)
        far = RenyiPufferfishLaplace()
        for _ in range(2):
            with pytest.raises(ValueError, match="300 of 300 values are beyond"):
                far.fit(X + 1e13, secret=SEX)
        assert not hasattr(far, "scale_")
    assert reuse.hits == 1 + 1
    with pytest.raises(ParameterError, match="max_entries"), reuse_fits(0):
        pass


def test_warnings_are_repeated():
    draw = RenyiPufferfishCategorical(secret="sex")
    texts = []
    with reuse_fits() as reuse:
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                draw.fit(DF[["job", "sex"]])
            mine = [w for w in caught if w.category is CategoriesFromDataWarning]
            texts.append([(str(w.message), w.filename) for w in mine])
    assert reuse.hits == 1
    assert texts[0] == texts[1]
    assert texts[0][0][1] == __file__


# --- what is held, and how long ---


def arrays_of(reading):
    """Weak references to what grows with the data."""
    sample = reading.sample
    pairs = next(made[0] for key, made in sample._made.items() if key[0] == "pairs")
    kept = [sample.values, sample.secret.codes, pairs[0].first.support]
    kept += [pairs[0].bound.shifts, pairs[0].coupling.mass]
    kept += [part for item in reading.given.contents for part in item.parts]
    return [weakref.ref(item) for item in kept if item is not None]


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_left_after_the_block(fails):
    noise, held = RenyiPufferfishLaplace(), []
    try:
        with reuse_fits() as reuse:
            noise.fit(X.copy(), secret=SEX.copy())
            held += arrays_of(reuse._readings[0])
            assert all(ref() is not None for ref in held)
            if fails:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    gc.collect()
    assert len(held) > 5
    assert all(ref() is None for ref in held)
    with reuse_fits() as again:
        noise.fit(X, secret=SEX)
    assert (again.hits, repr(again)) == (0, "FitReuse(hits=0, misses=1)")


def reachable(thing):
    """Every array that an object leads to."""
    seen, stack, arrays = set(), [thing], []
    while stack:
        item = stack.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            arrays.append(item)
        elif isinstance(item, bytearray):
            arrays.append(np.frombuffer(item, dtype=np.uint8))
        elif isinstance(item, dict):
            stack += [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple, set)):
            stack += list(item)
        elif hasattr(item, "__dict__"):
            stack += list(vars(item).values())
    return arrays


def test_estimators_hold_nothing_of_it():
    row = JointRelease(secret="sex", **JOBS)
    small = len(pickle.dumps(row.fit(DF[["age", "job", "sex"]])))
    with reuse_fits() as reuse:
        for _ in range(2):
            row.fit(DF[["age", "job", "sex"]])
        assert reuse.hits == 1
        held = reachable(reuse._readings[0])
        assert sum(array.size for array in held) > ROWS
        large = [array for array in held if array.size >= 50]
        for array in reachable(row):
            assert array.size < 50
            assert not any(np.shares_memory(array, other) for other in large)
        assert len(pickle.dumps(row)) == small
        assert not any(
            np.shares_memory(row._ranges, array)
            for array in held
            if array.dtype == row._ranges.dtype
        )


def test_the_oldest_folds_go_first():
    noise = RenyiPufferfishLaplace()
    with reuse_fits(max_entries=2) as reuse:
        for shift in (0, 1, 0, 2, 0, 1):
            noise.fit(X + shift, secret=SEX)
        assert len(reuse._readings) == 2
    # Only 1 was gone when it came again.
    assert (reuse.hits, reuse.misses) == (2, 4)


def test_nested_blocks():
    noise = RenyiPufferfishLaplace()
    with reuse_fits() as outer:
        noise.fit(X, secret=SEX)
        with reuse_fits() as inner:
            noise.fit(X, secret=SEX)
            noise.fit(2 * X, secret=SEX)
            noise.fit(2 * X, secret=SEX)
        assert (outer.hits, inner.hits, inner.misses) == (1, 1, 1)
        assert (len(outer._readings), len(inner._readings)) == (1, 0)
        noise.fit(2 * X, secret=SEX)
        assert outer.misses == 2


def test_another_process_has_no_part_in_it(monkeypatch):
    with reuse_fits() as reuse:
        RenyiPufferfishLaplace().fit(X, secret=SEX)
        monkeypatch.setattr(reuse, "_process", -1)
        RenyiPufferfishLaplace().fit(X, secret=SEX)
    assert (reuse.hits, reuse.misses) == (0, 1)


@pytest.mark.slow
def test_workers_have_no_part_in_it():
    noise = RenyiPufferfishLaplace()
    plain = found(noise.fit(X, secret=SEX))
    with reuse_fits() as reuse:
        noise.fit(X, secret=SEX)
        fitted = Parallel(n_jobs=2, backend="loky")(
            delayed(RenyiPufferfishLaplace().fit)(X, secret=SEX) for _ in range(2)
        )
    assert [found(one) for one in fitted] == [plain] * 2
    assert (reuse.hits, reuse.misses) == (0, 1)


@pytest.fixture
def couplings(monkeypatch):
    """Count the couplings that are made."""
    made, lock, make = [], threading.Lock(), Coupling.from_plan

    def counted(*given):
        with lock:
            made.append(given)
        return make(*given)

    monkeypatch.setattr(Coupling, "from_plan", counted)
    return made


def test_threads(couplings):
    folds = [X + shift for shift in range(3)]
    plain = [found(RenyiPufferfishLaplace(alpha=3).fit(f, secret=SEX)) for f in folds]
    couplings.clear()
    with reuse_fits() as reuse:
        for fold in folds:
            RenyiPufferfishLaplace().fit(fold, secret=SEX)
        results = Parallel(n_jobs=4, backend="threading")(
            delayed(
                lambda f: found(RenyiPufferfishLaplace(alpha=3).fit(f, secret=SEX))
            )(fold.copy())
            for fold in folds * 8
        )
    assert results == plain * 8
    assert len(couplings) == 3
    assert reuse.hits == 24


# --- searches ---


def searched(n_jobs=None, **labels):
    frame = people(240, seed=3)
    noise = RenyiPufferfishLaplace(random_state=0)
    data = frame[["age"]]
    y = frame["age"] + frame["income"]
    if labels.pop("in_x", False):
        noise.set_params(secret="sex")
        data = frame[["age", "sex"]]
    elif labels.pop("routed", False):
        with config_context(enable_metadata_routing=True):
            noise.set_fit_request(secret=True)
        labels = {"secret": frame["sex"]}
    else:
        noise.set_params(secret_from_y=True)
        y, labels = frame["town"], {}
    pipeline = make_pipeline(noise, LinearRegression())
    name = pipeline.steps[0][0]
    grid = {f"{name}__alpha": [2, 4, 8], f"{name}__calibration": ["transport", "w_inf"]}
    search = GridSearchCV(pipeline, grid, cv=KFold(3), refit=False, n_jobs=n_jobs)
    with config_context(enable_metadata_routing=True):
        search.fit(data, y, **labels)
        return search.cv_results_["mean_test_score"].tolist()


@pytest.mark.parametrize("way", [{"in_x": True}, {"routed": True}, {}], ids=str)
def test_searches(way, couplings):
    plain = searched(**way)
    # Three folds, six candidates.
    assert len(couplings) == 18
    couplings.clear()
    with reuse_fits() as reuse:
        assert searched(**way) == plain
    assert len(couplings) == 3
    assert (reuse.hits, reuse.misses) == (15, 3)


def test_cross_validation(couplings):
    frame = people(240, seed=4)
    noise = RenyiPufferfishGaussian(secret="sex", random_state=0)
    model = make_pipeline(noise, LinearRegression())
    with reuse_fits() as reuse:
        for alpha in (2, 5):
            noise.set_params(alpha=alpha)
            scores = cross_validate(
                model,
                frame[["age", "sex"]],
                frame["age"],
                cv=KFold(4),
                error_score="raise",
            )
            assert len(scores["test_score"]) == 4
    assert (reuse.hits, len(couplings)) == (4, 4)


def test_parameters_of_another_type_are_not_taken_for_the_same():
    days = np.array([[1, 2]]).astype("datetime64[ns]")
    for pairs in (days, days.view("timedelta64[ns]"), days.astype(object)):
        noise = RenyiPufferfishLaplace(secret_pairs=[(1, 2)])
        secret = np.tile([1, 2], ROWS // 2)
        with reuse_fits() as reuse:
            noise.fit(X[:, :1], secret=secret)
            with contextlib.suppress(ParameterError):
                noise.set_params(secret_pairs=pairs).fit(X[:, :1], secret=secret)
        assert reuse.hits == 0
