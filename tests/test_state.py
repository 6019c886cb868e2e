"""What a fitted estimator holds, what copies of it share, and which noise it draws."""

import copy
import gc
import io
import pickle
import types
import warnings
from collections import Counter
from functools import cache

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skpuffer import (
    ConditionalCounts,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    _estimator,
    _noise,
)
from skpuffer.exceptions import SmallGroupWarning

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
N = 101
LAWS = [RenyiPufferfishLaplace, RenyiPufferfishGaussian, RenyiPufferfishExponential]
mechanisms = pytest.mark.parametrize("mechanism", LAWS)


def people(n=N, seed=0):
    """Return rows whose every value is unmistakable when it turns up elsewhere."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "pay": rng.normal(31234.567, 4321.123, n),
            "pin": 10_000_001 + 7919 * rng.permutation(9000)[:n],
            "sex": rng.choice(["F", "M"], n),
            "site": rng.choice(["north", "south"], n),
            "target": rng.normal(1.23e-3, 4.56e-4, n),
            "weight": rng.uniform(0.5, 1.5, n),
        },
        index=[
            f"person-{number}" for number in 10**6 + 773 * rng.permutation(9000)[:n]
        ],
    )


WAYS = {
    "column": lambda law, t: law(secret="sex").fit(t[["pay", "pin", "sex"]]),
    "keyword": lambda law, t: law().fit(t[["pay", "pin"]], secret=t["sex"]),
    "y": lambda law, t: law(secret_from_y=True).fit(t[["pay", "pin"]], t["sex"]),
    "array": lambda law, t: law(secret=2).fit(t[["pay", "pin", "sex"]].to_numpy()),
    "one column of an array": lambda law, t: law().fit(
        t[["pay"]].to_numpy(), secret=t["sex"].to_numpy()
    ),
    "priors and weights": lambda law, t: law(secret="sex", prior="site").fit(
        t[["pay", "pin", "sex", "site"]], sample_weight=t["weight"]
    ),
    "each column alone": lambda law, t: law(secret="sex", scope="column").fit(
        t[["pay", "pin", "sex"]]
    ),
    "bounds": lambda law, t: law(
        secret="sex", bounds=(0, 1e9), prior_model="bounded", clip_output=True
    ).fit(t[["pay", "pin", "sex"]]),
    "clipped": lambda law, t: law(secret="sex", bounds={"pay": (3e4, 3.2e4)}).fit(
        t[["pay", "pin", "sex"]]
    ),
    "polars": lambda law, t: law(secret="sex").fit(
        pl.DataFrame(t[["pay", "pin", "sex"]].to_dict("list"))
    ),
    "float32": lambda law, t: law(secret="sex").fit(
        t[["pay", "sex"]].astype({"pay": "float32"})
    ),
    "seeded": lambda law, t: law(secret="sex", random_state=1).fit(
        t[["pay", "pin", "sex"]]
    ),
    "frame output": lambda law, t: (
        law(secret="sex").set_output(transform="pandas").fit(t[["pay", "pin", "sex"]])
    ),
    "counts": lambda law, t: law(secret="sex").fit_counts(
        ConditionalCounts.from_frame(t[["pay", "pin", "sex"]], secret="sex")
    ),
    "counts with labels beside and weights": lambda law, t: law().fit_counts(
        ConditionalCounts().update(
            t[["pay", "pin"]],
            secret=t["sex"],
            prior=t["site"],
            sample_weight=t["weight"],
        )
    ),
    "counts on a grid": lambda law, t: law(secret="sex").fit_counts(
        ConditionalCounts.from_frame(
            t[["pay", "pin", "sex"]], secret="sex", grid={"pay": 7.77, "pin": 1.25}
        )
    ),
    "pipeline": lambda law, t: Pipeline([("noise", law(secret="sex"))]).fit(
        t[["pay", "pin", "sex"]], t["target"]
    ),
}


# Every way with one of the mechanisms, which share what they keep; all are slow.
EACH_WAY = pytest.mark.parametrize(
    ("mechanism", "way"),
    [
        pytest.param(law, way, marks=[] if i % 3 == j else pytest.mark.slow)
        for i, way in enumerate(WAYS)
        for j, law in enumerate(LAWS)
    ],
)


# --- no data in the state -------------------------------------------------------


def reachable(root):
    """Yield every object that can be reached from the attributes of an object."""
    seen, waiting = set(), [root]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(
            item, (type, types.ModuleType, types.FunctionType, types.MethodType)
        ):
            continue
        seen.add(id(item))
        yield item
        # Slots, containers, instance dictionaries and object arrays alike.
        waiting += gc.get_referents(item)
        if isinstance(item, np.ndarray):
            waiting += [] if item.base is None else [item.base]
            waiting += item.tolist()
        if hasattr(item, "__dict__"):
            waiting += list(vars(item).values())


def values_of(table):
    """Return the training values as Python objects: numbers and texts."""
    numbers = [*table["pay"], *table["pin"], *table["target"], *table["weight"]]
    numbers += table["pay"].astype("float32").tolist()
    return numbers, list(table.index)


def bytes_of(table):
    """Return every training value as bytes, in the encodings in which it may hide."""
    numbers, texts = values_of(table)
    needles = set()
    for number in numbers:
        for dtype in ("<f8", ">f8", "<f4", ">f4"):
            needles.add(np.array(number, dtype=dtype).tobytes())
        if float(number).is_integer() and number < 2**31:
            for dtype in ("<i8", ">i8", "<i4", ">i4"):
                needles.add(np.array(number, dtype=dtype).tobytes())
        texts += [repr(number), str(number)]
    for text in texts:
        for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
            needles.add(text.encode(encoding))
    return needles


def leaks(fitted, table):
    """Return what of a table is found in an estimator, its pickle and its dump."""
    numbers, texts = values_of(table)
    numbers, texts = set(numbers), set(texts)
    found = []
    for item in reachable(fitted):
        if isinstance(item, np.ndarray) and item.size and len(table) in item.shape:
            found.append(f"an array of shape {item.shape}")
        elif isinstance(item, (pd.DataFrame, pd.Series, pl.DataFrame, pl.Series)):
            found.append(f"a {type(item).__name__}")
        elif isinstance(item, (list, tuple, dict, set)) and len(item) >= len(table):
            found.append(f"a {type(item).__name__} of {len(item)}")
        elif isinstance(item, (int, float)) and item in numbers:
            found.append(f"the number {item}")
        elif isinstance(item, str) and any(text in item for text in texts):
            found.append(f"the text {item}")
    dump = io.BytesIO()
    joblib.dump(fitted, dump)
    for state in (pickle.dumps(fitted), pickle.dumps(fitted, 0), dump.getvalue()):
        found += [f"bytes {needle!r}" for needle in bytes_of(table) if needle in state]
    return found


@EACH_WAY
def test_nothing_of_the_data_is_kept(mechanism, way):
    table = people()
    fitted = WAYS[way](mechanism, table)
    assert leaks(fitted, table) == []
    rows = table[["pay", "pin"]]
    if way in ("one column of an array", "float32"):
        rows = rows[["pay"]].astype("float32" if way == "float32" else float)
    if "array" in way:
        rows = rows.to_numpy()
    fitted.transform(pl.DataFrame(rows.to_dict("list")) if way == "polars" else rows)
    assert leaks(fitted, table) == []


@mechanisms
def test_nothing_of_the_rounded_data_is_kept(mechanism):
    table = people()
    fitted = WAYS["counts on a grid"](mechanism, table)
    rounded = table.assign(
        pay=np.floor(table["pay"] / 7.77 + 0.5) * 7.77,
        pin=np.floor(table["pin"] / 1.25 + 0.5) * 1.25,
    )
    assert leaks(fitted, rounded) == []
    fitted.transform(table[["pay", "pin"]])
    assert leaks(fitted, rounded) == []


def test_nothing_of_the_counts_is_kept():
    table = people()
    counts = ConditionalCounts.from_frame(table[["pay", "pin", "sex"]], secret="sex")
    held = {id(item) for item in reachable(counts) if isinstance(item, np.ndarray)}
    assert held
    fitted = RenyiPufferfishLaplace(secret="sex").fit_counts(counts)
    for item in reachable(fitted):
        assert not isinstance(item, ConditionalCounts)
        assert not type(item).__module__.startswith("skpuffer._tally")
        assert id(item) not in held


PLANTED = {
    "a view": lambda t: t["pay"].to_numpy()[:1],
    "a value": lambda t: float(t["pay"].iloc[3]),
    "a float32 array": lambda t: t["pay"].to_numpy("float32")[:2].copy(),
    "big-endian floats": lambda t: t["pay"].to_numpy(">f8")[:1].copy(),
    "an integer": lambda t: {"deep": [(int(t["pin"].iloc[0]),)]},
    "int32": lambda t: t["pin"].to_numpy("int32")[:1].copy(),
    "big-endian integers": lambda t: t["pin"].to_numpy(">i4")[:1].copy(),
    "a label of the index": lambda t: frozenset({t.index[0]}),
    "a text array": lambda t: np.array(t.index[:1], dtype="U"),
    "bytes": lambda t: t.index[0].encode("utf-16"),
    "a number as text": lambda t: f"the largest is {t['pay'].iloc[0]}",
    "a target": lambda t: types.SimpleNamespace(y=t["target"].iloc[0]),
    "codes of the rows": lambda t: np.zeros(len(t), dtype=np.int8),
    "a list as long as the rows": lambda t: [None] * len(t),
    "an empty frame": lambda t: t[:0],
}


@pytest.mark.parametrize("planted", PLANTED)
def test_the_search_finds_what_is_planted(planted):
    table = people()
    fitted = WAYS["column"](RenyiPufferfishLaplace, table)
    # The record is frozen, but not against this.
    object.__setattr__(fitted.guarantee_, "versions", PLANTED[planted](table))
    assert leaks(fitted, table)


@EACH_WAY
def test_the_state_does_not_grow_with_the_rows(mechanism, way):
    if way in ("bounds", "one column of an array", "float32"):
        few, many = people(60), people(3000)
    else:
        few, many = people(30), people(150)
    small, large = (WAYS[way](mechanism, table) for table in (few, many))
    # A count may take three bytes more, and there are at most four of them, twice.
    assert abs(len(pickle.dumps(large)) - len(pickle.dumps(small))) <= 24
    counts = [Counter(type(item) for item in reachable(f)) for f in (small, large)]
    for kind in (np.ndarray, dict, list, tuple):
        assert counts[0][kind] == counts[1][kind]


@EACH_WAY
def test_no_generator_is_kept(mechanism, way):
    fitted = WAYS[way](mechanism, people())
    for item in reachable(fitted):
        assert not isinstance(
            item,
            (
                np.random.Generator,
                np.random.RandomState,
                np.random.BitGenerator,
                np.random.SeedSequence,
            ),
        )
        assert not type(item).__module__.startswith("skpuffer.core")


# --- failed and repeated fits ---------------------------------------------------


def fit_people(estimator):
    return estimator.fit(people()[["pay", "pin", "sex"]])


@cache
def fitted_state(mechanism):
    return pickle.dumps(fit_people(mechanism(secret="sex", random_state=0)))


def failing_fits(table):
    good = table[["pay", "pin", "sex"]]
    return {
        "a missing value": lambda e: e.fit(good.assign(pay=np.nan)),
        "another table": lambda e: e.fit(good.rename(columns={"pay": "wage"})[:1]),
        "a text": lambda e: e.fit(good.assign(note="x")),
        "no secret": lambda e: e.fit(good.drop(columns="sex")),
        "one secret": lambda e: e.fit(good.assign(sex="F")),
        "a missing secret": lambda e: e.fit(good.assign(sex=None)),
        "two secrets": lambda e: e.fit(good, secret=table["sex"]),
        "weights": lambda e: e.fit(good, sample_weight=[-1.0] * len(good)),
        "an array": lambda e: e.fit(good[["pay", "pin"]].to_numpy()),
        "values off the grid": lambda e: e.fit(good.assign(pin=table["pin"] + 1e17)),
        "no counts": lambda e: e.fit_counts(ConditionalCounts(secret="sex")),
        "counts of one secret": lambda e: e.fit_counts(
            ConditionalCounts.from_frame(good.assign(sex="F"), secret="sex")
        ),
        "counts by another column": lambda e: e.fit_counts(
            ConditionalCounts.from_frame(table[["pay", "pin", "site"]], secret="site")
        ),
    }


@mechanisms
@pytest.mark.parametrize("failure", failing_fits(people()))
def test_a_failed_fit_changes_nothing(mechanism, failure):
    estimator, twin = (pickle.loads(fitted_state(mechanism)) for _ in range(2))
    rows = people()[["pay", "pin"]]
    estimator.transform(rows)
    twin.transform(rows)
    before, state = dict(vars(estimator)), pickle.dumps(estimator)
    with pytest.raises((ValueError, TypeError)):
        failing_fits(people(seed=1))[failure](estimator)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is value for name, value in before.items())
    assert pickle.dumps(estimator) == state
    # The stream of its noise goes on as well.
    pd.testing.assert_frame_equal(estimator.transform(rows), twin.transform(rows))


@mechanisms
@pytest.mark.parametrize("failure", failing_fits(people()))
def test_a_failed_first_fit_leaves_it_unfitted(mechanism, failure):
    estimator = mechanism(secret="sex")
    state = pickle.dumps(estimator)
    with pytest.raises((ValueError, TypeError)):
        failing_fits(people())[failure](estimator)
    assert pickle.dumps(estimator) == state
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    with pytest.raises(NotFittedError):
        estimator.get_feature_names_out()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_fit_changes_nothing(monkeypatch, error):
    estimator = fit_people(RenyiPufferfishLaplace(secret="sex"))
    state = pickle.dumps(estimator)

    def interrupt(*args, **kwargs):
        raise error

    for late in ("fit_scales", "make_guarantee", "ReleaseReport", "warn_about"):
        with monkeypatch.context() as patch:
            patch.setattr(_estimator, late, interrupt)
            with pytest.raises(error):
                estimator.fit(people(seed=1)[["pay", "sex"]])
        assert pickle.dumps(estimator) == state


def test_a_warning_made_an_error_leaves_it_unfitted():
    estimator = RenyiPufferfishLaplace(secret="sex", min_group_size=70)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallGroupWarning)
        with pytest.raises(SmallGroupWarning):
            fit_people(estimator)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


def same(first, second):
    """Whether two estimators hold the same, attribute by attribute."""
    assert vars(first).keys() == vars(second).keys()
    for name, value in vars(first).items():
        np.testing.assert_equal(value, vars(second)[name])
    return True


@mechanisms
def test_a_second_fit_forgets_the_first(mechanism):
    table = people()
    array = people(seed=1)[["pin", "pay", "target"]].to_numpy()
    secret = people(seed=1)["site"]
    estimator = mechanism(secret=["sex"], prior="site", bounds={"pay": (0, 1e6)})
    estimator.fit(table[["pay", "sex", "site"]]).transform(table[["pay"]])
    # Other columns, no names, another secret and prior, no bounds.
    estimator.set_params(secret=None, prior=None, bounds=None)
    estimator.fit(array, secret=secret)
    assert same(estimator, mechanism().fit(array, secret=secret))
    assert not hasattr(estimator, "feature_names_in_")
    assert leaks(estimator, table) == []
    # And back again.
    estimator.set_params(secret="sex")
    estimator.fit(table[["pay", "pin", "sex"]])
    assert same(estimator, fit_people(mechanism(secret="sex")))


# --- copies and workers ---------------------------------------------------------


def copies_of(estimator):
    return {
        "clone": fit_people(clone(estimator)),
        "copy": copy.copy(estimator),
        "deepcopy": copy.deepcopy(estimator),
        "pickle": pickle.loads(pickle.dumps(estimator)),
    }


@mechanisms
def test_copies_keep_scale_names_and_guarantee(mechanism):
    estimator = fit_people(mechanism(secret="sex", alpha=3))
    for other in copies_of(estimator).values():
        np.testing.assert_array_equal(other.scale_, estimator.scale_)
        assert other.guarantee_ == estimator.guarantee_
        assert other.report_ == estimator.report_
        assert other.get_params() == estimator.get_params()
        assert other.get_feature_names_out().tolist() == ["pay", "pin"]


@mechanisms
@pytest.mark.parametrize("seed", [None, 4])
def test_copies_share_nothing_that_changes(mechanism, seed):
    estimator = fit_people(mechanism(secret="sex", random_state=seed))
    mutable = {id(i) for i in reachable(estimator) if isinstance(i, (dict, np.ndarray))}
    for name, other in copies_of(estimator).items():
        if name == "copy":  # shallow, as its name says
            continue
        shared = [
            i
            for i in reachable(other)
            if isinstance(i, (dict, list, np.ndarray)) and id(i) in mutable
        ]
        assert shared == [], name


ROWS = people()[["pay", "pin"]]


def noise_of(estimator, released=None):
    """Return the noise of a release in units of its scale."""
    released = estimator.transform(ROWS) if released is None else released
    return (released - ROWS).to_numpy() / estimator.scale_


def assert_all_differ(noises):
    """Compare noise entry by entry: few coincide up to the rounding to the grid."""
    flat = [noise.ravel(order="F") for noise in noises]
    for i, first in enumerate(flat):
        for second in flat[:i]:
            for sign in (1, -1):
                near = np.abs(first - sign * second) < 1e-4 * first.std()
                assert near.mean() < 0.05


@mechanisms
def test_noise_is_never_repeated(mechanism):
    estimator = fit_people(mechanism(secret="sex", scope="column"))
    noises = [noise_of(estimator), noise_of(estimator), noise_of(fit_people(estimator))]
    noises += [noise_of(other) for other in copies_of(estimator).values()]
    fresh = mechanism(secret="sex", scope="column")
    table = people()[["pay", "pin", "sex"]]
    # Fitted here and used there; fitted and used there, twice the same object.
    there = Parallel(n_jobs=2)(delayed(estimator.transform)(ROWS) for _ in range(4))
    there += Parallel(n_jobs=2)(delayed(fresh.fit_transform)(table) for _ in range(2))
    there += Parallel(n_jobs=2, prefer="threads")(
        delayed(estimator.transform)(ROWS) for _ in range(4)
    )
    noises += [noise_of(estimator, released) for released in there]
    assert_all_differ(noises)


@mechanisms
def test_workers_calibrate_as_we_do(mechanism):
    table = people()[["pay", "pin", "sex"]]
    fresh = mechanism(secret="sex", n_jobs=2)
    there = Parallel(n_jobs=2)(delayed(fresh.fit)(table) for _ in range(2))
    for fitted in there:
        np.testing.assert_array_equal(fitted.scale_, fit_people(clone(fresh)).scale_)


# --- the stream of a seed -------------------------------------------------------


@mechanisms
def test_a_seed_and_the_number_of_the_call_decide_the_noise(mechanism):
    estimator = fit_people(mechanism(secret="sex", random_state=8))
    first, second, third = (noise_of(estimator) for _ in range(3))
    assert_all_differ([first, second, third])
    # fit restarts the stream.
    fit_people(estimator)
    np.testing.assert_array_equal(noise_of(estimator), first)
    # Other rows are a call too; refused rows are none.
    estimator.transform(ROWS[:3])
    with pytest.raises(ValueError, match="missing"):
        estimator.transform(ROWS.assign(pay=np.nan))
    np.testing.assert_array_equal(noise_of(estimator), third)
    again = fit_people(mechanism(secret="sex", random_state=np.int16(8)))
    np.testing.assert_array_equal(noise_of(again), first)


@mechanisms
def test_seeds_differ(mechanism):
    seeds = [0, 1, 2, 2**32, 2**32 + 1, 2**64, 10**30]
    estimator = mechanism(secret="sex", scope="column")
    noises = [
        noise_of(fit_people(clone(estimator).set_params(random_state=seed)))
        for seed in seeds
    ]
    assert_all_differ(noises)


def test_a_copy_with_a_seed_repeats_the_noise_as_the_warning_says():
    estimator = fit_people(RenyiPufferfishLaplace(secret="sex", random_state=8))
    other = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(noise_of(estimator), noise_of(other))
    np.testing.assert_array_equal(noise_of(estimator), noise_of(other))


@mechanisms
def test_the_stream_does_not_depend_on_threads(mechanism, monkeypatch):
    monkeypatch.setattr(_noise, "_CHUNK", 16)
    table = people()[["pay", "pin", "sex"]]
    releases = []
    for n_jobs in (None, 1, 2, -1):
        estimator = mechanism(secret="sex", random_state=5, n_jobs=n_jobs).fit(table)
        releases.append([estimator.transform(ROWS).to_numpy() for _ in range(2)])
    for other in releases[1:]:
        np.testing.assert_array_equal(other, releases[0])


@mechanisms
@pytest.mark.parametrize("seed", [None, 5])
def test_no_two_columns_and_no_two_chunks_get_the_same_noise(
    mechanism, seed, monkeypatch
):
    monkeypatch.setattr(_noise, "_CHUNK", 32)
    table = people(96)[["pay", "sex"]]
    table = table.assign(again=table["pay"], third=table["pay"])
    estimator = mechanism(secret="sex", scope="column", random_state=seed, n_jobs=2)
    rows = table.drop(columns="sex")
    estimator.fit(table)
    noises = [estimator.transform(rows).to_numpy() - rows for _ in range(2)]
    assert_all_differ(
        [
            noise[name].to_numpy()[start : start + 32]
            for noise in noises
            for name in rows
            for start in (0, 32, 64)
        ]
    )


@pytest.mark.parametrize("n_rows", [1, 16, 17, 75])
def test_chunks_cover_every_row_once(n_rows, monkeypatch):
    monkeypatch.setattr(_noise, "_CHUNK", 16)
    rows = np.random.default_rng(0).permutation(75)[:, np.newaxis] * 1000.0
    estimator = RenyiPufferfishLaplace(epsilon=1e4, random_state=0)
    estimator.fit(rows, secret=rows[:, 0] % 3)
    distance = np.abs(estimator.transform(rows[:n_rows]) - rows[:n_rows])
    assert (distance > 0).all()
    assert (distance < 100).all()


def test_a_model_behind_the_release_stays_usable_in_workers():
    table = people()
    pipeline = Pipeline(
        [("noise", RenyiPufferfishLaplace(secret="sex")), ("model", LinearRegression())]
    )
    pipeline.fit(table[["pay", "pin", "sex"]], table["target"])
    first, second = Parallel(n_jobs=2)(
        delayed(pipeline.predict)(ROWS) for _ in range(2)
    )
    assert first.shape == (N,)
    assert not np.array_equal(first, second)
