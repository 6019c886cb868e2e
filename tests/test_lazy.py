"""Releases of rows that are not there yet: their columns, their noise, their key."""

import pickle
import re
import warnings
from itertools import combinations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from dask.dataframe.utils import assert_eq
from packaging.version import Version
from scipy import stats

from skpuffer import (
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    _lazy_release,
    held_out_divergence,
)
from skpuffer._lazy_release import PartitionRelease
from skpuffer.exceptions import (
    ParameterError,
    ReproducibleNoiseWarning,
    ZeroNoiseWarning,
)
from skpuffer.metrics import kernel_renyi_divergence

OLD_POLARS = Version(pl.__version__) < Version("1.25")
LABELS = ["low", "middle", "high"]
RELEASES = {
    "laplace": lambda: RenyiPufferfishLaplace(secret="sex"),
    "exponential": lambda: RenyiPufferfishExponential(2, 4, power=0.9, secret="sex"),
    "joint": lambda: JointRelease(secret="sex", categories=[LABELS]),
    "categories": lambda: RenyiPufferfishCategorical(secret="sex", categories=[LABELS]),
}


def people(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n) + 4 * (sex == "F"),
            "pay": rng.normal(30, 5, n).astype("float32") + (sex == "F"),
            "level": rng.choice(LABELS, n, p=[0.3, 0.3, 0.4]),
            "sex": sex,
        },
        index=pd.RangeIndex(1000, 1000 + n, name="person"),
    )


def columns_for(kind, frame):
    """Return what a release of the name takes."""
    wanted = {
        "joint": ["age", "pay", "level", "sex"],
        "categories": ["level", "sex"],
    }
    return frame[wanted.get(kind, ["age", "pay", "sex"])]


@pytest.fixture(params=["laplace", "exponential", "joint"], scope="module")
def release(request):
    """A fitted estimator with its rows; tests leave it as it is."""
    rows = columns_for(request.param, people())
    return RELEASES[request.param]().fit(rows[:200]), rows


@pytest.fixture
def laplace():
    return RELEASES["laplace"]().fit(columns_for("laplace", people(200)))


# --- one lazy release is one release ---


def test_every_way_to_compute_a_dask_frame_has_the_same_noise(release):
    estimator, rows = release
    released = estimator.transform(dd.from_pandas(rows, npartitions=5))
    whole = released.compute()
    pd.testing.assert_frame_equal(released.compute(scheduler="sync"), whole)
    for name in whole.columns:
        pd.testing.assert_series_equal(released[name].compute(), whole[name])
        pd.testing.assert_frame_equal(released[[name]].compute(), whole[[name]])
    third = released.partitions[3].compute()
    pd.testing.assert_frame_equal(third, whole.loc[third.index])
    assert len(third) == 240
    kept = released.loc[1300:1799].compute()
    pd.testing.assert_frame_equal(kept, whole.loc[1300:1799])
    pd.testing.assert_frame_equal(released.head(7), whole.head(7))
    pd.testing.assert_frame_equal(released.tail(7), whole.tail(7))
    last = whole.columns[-1]
    for other in (released.repartition(npartitions=2), released.persist()):
        pd.testing.assert_frame_equal(other.compute(), whole)
        pd.testing.assert_series_equal(other[last].compute(), whole[last])
    first = whole.columns[0]
    chosen = released[first] > whole[first].min()
    pd.testing.assert_frame_equal(
        released[chosen].compute(), whole[whole[first] > whole[first].min()]
    )
    both = dask.compute(released[first], released[last])
    pd.testing.assert_series_equal(both[1], whole[last])
    assert len(released) == len(whole)
    doubled = released.assign(more=released[last]).compute()
    assert (doubled["more"] == doubled[last]).all()


# Dask and pyarrow themselves, under a pandas newer than they know.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
@pytest.mark.filterwarnings("ignore:Passing a BlockManager")
def test_what_is_read_from_files_keeps_its_noise(tmp_path, laplace):
    rows = columns_for("laplace", people()).assign(other=1.0, more=2.0)
    for number in range(6):
        part = rows.iloc[200 * number :][:200]
        part.to_parquet(tmp_path / f"part{number}.parquet", index=False)
    read = dd.read_parquet(tmp_path)
    released = laplace.transform(read[["age", "pay", "sex"]])
    whole = released.compute()
    for name in whole.columns:
        pd.testing.assert_series_equal(released[name].compute(), whole[name])
    old = released[released["age"] > 40].compute()
    pd.testing.assert_frame_equal(old, whole[whole["age"] > 40])
    assert len(whole) == 1200


def test_every_way_to_compute_a_dask_array_has_the_same_noise():
    rows = people()[["age", "pay"]].to_numpy()
    secret = people()["sex"].to_numpy()
    estimator = RenyiPufferfishGaussian().fit(rows, secret=secret)
    for X in (
        da.from_array(rows, chunks=(500, 2)),
        da.from_array(rows, chunks=(500, 1)),
        da.from_array(rows.astype("float32"), chunks=(300, 1)),
    ):
        released = estimator.transform(X)
        whole = released.compute()
        assert released.chunks == (X.chunks[0], (2,))
        assert whole.dtype == released.dtype == X.dtype
        assert np.array_equal(released.compute(), whole)
        assert np.array_equal(released[450:620, 1].compute(), whole[450:620, 1])
        assert np.array_equal(released.rechunk(77).compute(), whole)
        assert np.array_equal(
            released.blocks[1].compute(),
            whole[released.chunks[0][0] :][: released.chunks[0][1]],
        )
        noise = (whole - rows) / estimator.noise_std_
        assert np.abs(noise.std(axis=0) - 1).max() < 0.1


def test_arrays_of_unknown_and_of_no_rows():
    rows = people()[["age", "pay"]].to_numpy()
    estimator = RenyiPufferfishLaplace().fit(rows, secret=people()["sex"].to_numpy())
    X = da.from_array(rows, chunks=(400, 1))
    kept = X[X[:, 0] > 45]
    released = estimator.transform(kept)
    assert np.isnan(released.shape[0])
    whole = released.compute()
    assert whole.shape == rows[rows[:, 0] > 45].shape
    assert np.array_equal(released[:, 1].compute(), whole[:, 1])
    assert estimator.transform(X[X[:, 0] > 1e6]).compute().shape == (0, 2)
    with pytest.raises(ValueError, match=r"1 dimension.*X\.reshape"):
        estimator.transform(X[:, 0])


def test_every_query_of_a_polars_frame_has_the_same_noise(release):
    estimator, rows = release
    frame = pl.DataFrame(rows.to_dict("list")).with_columns(
        *([pl.col("pay").cast(pl.Float32)] if "pay" in rows else [])
    )
    released = estimator.transform(frame.lazy())
    whole = released.collect()
    assert isinstance(released, pl.LazyFrame)
    assert released.collect_schema() == whole.schema
    assert whole.columns == [name for name in rows if name != "sex"]
    if "pay" in rows:
        assert whole.schema["pay"] == pl.Float32
    assert released.collect().equals(whole)
    last = whole.columns[-1]
    assert released.select(last).collect().equals(whole.select(last))
    assert released.head(5).collect().equals(whole.head(5))
    assert released.slice(100, 7).collect().equals(whole.slice(100, 7))
    level = whole[last].sort()[300]
    assert (
        released.filter(pl.col(last) > level)
        .collect()
        .equals(whole.filter(pl.col(last) > level))
    )
    if not OLD_POLARS:  # It panics where a plan holds one step twice.
        twice = pl.concat([released, released]).collect()
        assert twice.equals(pl.concat([whole, whole]))
    assert not estimator.transform(frame.lazy()).collect().equals(whole)


# --- no two places share noise ---


@pytest.mark.parametrize("law", [RenyiPufferfishLaplace, RenyiPufferfishGaussian])
def test_partitions_columns_and_calls_are_independent(law):
    # The same rows in every partition, and the same values in both columns.
    one = people(400)[["age"]].assign(same=lambda t: t["age"])
    sex = people(400)["sex"]
    estimator = law().fit(one, secret=sex)
    rows = dd.concat([dd.from_pandas(one, npartitions=1) for _ in range(6)])
    noises = []
    for _ in range(2):
        released = estimator.transform(rows)
        noises += [
            released.partitions[number].compute()[name].to_numpy() - one[name]
            for number in range(rows.npartitions)
            for name in one
        ]
    assert len(noises) == 24
    noises = [np.asarray(noise) / estimator.noise_std_[0] for noise in noises]
    for a, b in combinations(noises, 2):
        # Equal by chance in fewer than one of 2^18 rows.
        assert (a == b).sum() <= 1
        assert (a == b[::-1]).sum() <= 1
    correlations = np.corrcoef(noises)[np.triu_indices(24, 1)]
    # 276 pairs of 400 rows, at 1e-5 each.
    assert np.abs(correlations).max() < stats.norm.isf(1e-5 / 2) / np.sqrt(400)
    assert np.sqrt(np.mean(correlations**2)) < 1.3 / np.sqrt(400)
    pooled = np.concatenate(noises)
    exact = (
        stats.laplace(scale=np.sqrt(0.5))
        if law is RenyiPufferfishLaplace
        else stats.norm()
    )
    assert stats.kstest(pooled, exact.cdf).pvalue > 1e-3


def test_categories_are_drawn_afresh_in_every_partition():
    one = pd.DataFrame({"level": LABELS * 200, "sex": ["F", "M", "M"] * 200})
    estimator = RELEASES["categories"]().fit(one)
    rows = dd.concat([dd.from_pandas(one, npartitions=1) for _ in range(4)])
    drawn = [estimator.transform(rows).partitions[i].compute() for i in range(4)]
    moved = [(part["level"].to_numpy() != one["level"].to_numpy()) for part in drawn]
    rate = 1 - np.trace(estimator.channels_["level"]) / 3
    for a, b in combinations(moved, 2):
        both = (a & b).sum()
        assert abs(both - 600 * rate**2) < 5 * np.sqrt(600 * rate**2)
    counts = np.bincount(np.concatenate(moved), minlength=2)
    assert stats.binomtest(int(counts[1]), counts.sum(), rate).pvalue > 1e-3


def test_chunks_of_a_partition_are_independent(monkeypatch):
    monkeypatch.setattr("skpuffer._noise._CHUNK", 100)
    one = people(500)[["age"]].assign(age=[30, 31] * 250)
    estimator = RenyiPufferfishLaplace().fit(one, secret=["F", "M"] * 250)
    noise = estimator.transform(dd.from_pandas(one, npartitions=1)).compute() - one
    chunks = noise["age"].to_numpy().reshape(5, 100)
    for a, b in combinations(chunks, 2):
        assert (a == b).sum() <= 1


def test_rows_that_come_out_otherwise_have_other_noise(laplace):
    """Else the difference of two results would show that of the rows."""
    rows = columns_for("laplace", people(300)).astype({"pay": "float64"})
    step = PartitionRelease(laplace, None)
    noise = step(rows, 0)["age"] - rows["age"]
    pd.testing.assert_series_equal(step(rows.copy(), 0)["age"] - rows["age"], noise)
    changed = rows.copy()
    changed.loc[1250, "age"] += 1
    for other in (changed, rows.iloc[::-1], rows.iloc[:299], rows.iloc[1:]):
        found = step(other, 0)["age"] - other["age"]
        assert (found.to_numpy()[:299] == noise.to_numpy()[:299]).sum() <= 1
        assert (found - noise).eq(0).sum() <= 1
    # The other column's rows are as they were: the same release of them.
    pd.testing.assert_series_equal(step(changed, 0)["pay"], step(rows, 0)["pay"])


def test_a_source_whose_rows_change_their_order(laplace):
    rows = columns_for("laplace", people(300))
    turn = iter(range(10))

    def shuffled():
        return rows.sample(frac=1, random_state=next(turn))

    lazy = dd.from_delayed([dask.delayed(shuffled, pure=False)()], meta=rows.iloc[:0])
    released = laplace.transform(lazy)
    one, two = (released.compute(scheduler="sync") for _ in range(2))
    for shown in (
        one["age"].to_numpy() - two["age"].to_numpy(),
        one["age"] - two["age"],
    ):
        # Sums of two independent noises, and not differences of ages.
        assert np.std(shown) > 1.2 * laplace.noise_std_[0]


# --- the key ---


def test_the_key_is_in_the_graph_and_nowhere_else(monkeypatch, laplace):
    rows = dd.from_pandas(columns_for("laplace", people()), npartitions=3)
    key = bytes(range(100, 132))
    monkeypatch.setattr(_lazy_release, "urandom", lambda n: key[:n])
    before = pickle.dumps(laplace)
    released = laplace.transform(rows)
    other = laplace.transform(rows)
    monkeypatch.undo()
    for holder in (laplace, *vars(laplace).values()):
        assert key not in pickle.dumps(holder)
    assert len(pickle.dumps(laplace)) == len(before)
    # Two calls with one key, against all odds: their tasks still have other names.
    names = [str(name) for name in released.__dask_graph__()]
    others = {str(name) for name in other.__dask_graph__()}
    ours = {name for name in names if "skpuffer" in name}
    assert len(ours) >= 7
    assert not ours & others
    for name in ours:
        assert key.hex() not in name
        assert repr(key) not in name
    step = PartitionRelease(laplace, None)
    assert repr(step) == "PartitionRelease of RenyiPufferfishLaplace"
    again = pickle.loads(pickle.dumps(step))
    part = columns_for("laplace", people(50))
    pd.testing.assert_frame_equal(again(part, 1), step(part, 1))


def test_a_key_is_drawn_for_every_call(monkeypatch, laplace):
    drawn = []

    def noted(n, draw=_lazy_release.urandom):
        drawn.append(draw(n))
        return drawn[-1]

    monkeypatch.setattr(_lazy_release, "urandom", noted)
    rows = dd.from_pandas(columns_for("laplace", people()), npartitions=3)
    released = [laplace.transform(rows) for _ in range(3)]
    assert len(set(drawn)) == 3
    assert {len(key) for key in drawn} == {32}
    values = [one.compute()["age"].to_numpy() for one in released]
    for a, b in combinations(values, 2):
        assert (a == b).sum() <= 1
    assert len(drawn) == 3


def test_what_is_computed_is_what_was_fitted_then(laplace):
    rows = columns_for("laplace", people())
    released = laplace.transform(dd.from_pandas(rows, npartitions=3))
    before = released.compute()
    laplace.set_params(epsilon=0.1, bounds=(20, 50), clip_output=True)
    laplace.fit(rows[:200])
    pd.testing.assert_frame_equal(released.compute(), before)


# --- what it looks like ---


def test_names_types_index_and_divisions(release):
    estimator, rows = release
    X = dd.from_pandas(rows, npartitions=4)
    released = estimator.transform(X)
    in_memory = estimator.transform(X.compute())
    assert list(released.columns) == list(in_memory.columns)
    assert released.dtypes.to_dict() == in_memory.dtypes.to_dict()
    assert released.divisions == X.divisions
    assert released.index.name == "person"
    assert released.compute().index.equals(rows.index)
    # Compares partitions with what was declared.
    assert_eq(released, released.compute())
    unknown = estimator.transform(X.clear_divisions())
    assert not unknown.known_divisions
    assert unknown.npartitions == 4


def test_declared_categories_are_the_type_of_a_category_column():
    rows = people()[["age", "level", "sex"]].astype({"level": "category"})
    estimator = RELEASES["joint"]().fit(rows)
    released = estimator.transform(dd.from_pandas(rows, npartitions=3))
    assert list(released.dtypes["level"].categories) == LABELS
    assert list(released.compute()["level"].cat.categories) == LABELS
    assert_eq(released, released.compute())


def test_partitions_without_rows(release):
    estimator, rows = release
    X = dd.from_pandas(rows, npartitions=6)
    X = X.map_partitions(lambda part: part[part.index > 1700])
    released = estimator.transform(X)
    assert_eq(released, released.compute())
    assert len(released.compute()) == (rows.index > 1700).sum()
    assert (
        len(estimator.transform(X.map_partitions(lambda part: part[:0])).compute()) == 0
    )
    lazy = pl.DataFrame(rows.to_dict("list")).lazy().filter(pl.col("sex") == "none")
    if "pay" not in rows:
        assert estimator.transform(lazy).collect().shape == (0, 1)


def test_rows_with_or_without_the_secret(laplace):
    rows = dd.from_pandas(columns_for("laplace", people()), npartitions=3)
    for X in (rows, rows[["age", "pay"]]):
        assert list(laplace.transform(X).compute().columns) == ["age", "pay"]
    array = rows.to_dask_array(lengths=True)
    numbers = RenyiPufferfishLaplace(secret=1).fit(
        people()[["age", "pay"]].assign(pay=lambda t: t["pay"] > 30).to_numpy(float)
    )
    assert numbers.transform(array[:, :2].astype(float)).shape == (1200, 1)
    assert numbers.transform(array[:, :1].astype(float)).shape == (1200, 1)


# --- errors and warnings ---


def test_other_columns_are_refused_at_once(laplace):
    rows = dd.from_pandas(columns_for("laplace", people()), npartitions=3)
    with pytest.raises(ValueError, match=r"now missing:\n- pay"):
        laplace.transform(rows[["age", "sex"]])
    with pytest.raises(ValueError, match="unseen at fit time:\n- new"):
        laplace.transform(rows.assign(new=1.0))
    with pytest.raises(ValueError, match="must be in the same order"):
        laplace.transform(rows[["pay", "age"]])
    with pytest.raises(ValueError, match="column 'pay' holds String"):
        laplace.transform(rows.assign(pay="much"))
    with pytest.raises(ValueError, match="now missing:\n- pay"):
        laplace.transform(pl.LazyFrame({"age": [1.0]}))
    numbers = RenyiPufferfishLaplace().fit(np.eye(40)[:, :2], secret=[0, 1] * 20)
    with pytest.raises(ValueError, match="X has 3 features"):
        numbers.transform(da.ones((10, 3)))
    assert laplace._calls["made"] == 0


def test_bad_values_are_refused_when_they_are_computed(laplace):
    rows = columns_for("laplace", people())
    missing = rows.assign(pay=rows["pay"].mask(rows.index > 2197))
    released = laplace.transform(dd.from_pandas(missing, npartitions=4))
    with pytest.raises(
        ValueError,
        match=r"partition 3: column 'pay' is missing \(NaN\) in 2 of 300 rows",
    ):
        released.compute()
    released.partitions[0].compute()
    bounded = RenyiPufferfishLaplace(
        secret="sex", bounds={"age": (0, 70)}, out_of_bounds="error"
    ).fit(rows)
    released = bounded.transform(dd.from_pandas(rows.assign(age=71), npartitions=4))
    with pytest.raises(ValueError, match=r"partition .*'age' has 300 values outside"):
        released.compute()
    levels = people()[["level", "sex"]]
    drawn = RELEASES["categories"]().fit(levels)
    released = drawn.transform(
        dd.from_pandas(levels.assign(level="top"), npartitions=2)
    )
    with pytest.raises(ValueError, match="column 'level' has labels outside its"):
        released.compute()
    lazy = pl.LazyFrame({"age": [1.0, None], "pay": [1.0, 2.0]})
    with pytest.raises(Exception, match="column 'age' is missing"):
        laplace.transform(lazy).collect()


def test_warnings_come_when_transform_is_called(laplace):
    rows = columns_for("laplace", people())
    lazies = (
        dd.from_pandas(rows, npartitions=3),
        pl.DataFrame(rows.to_dict("list")).lazy(),
    )
    alike = pd.DataFrame({"a": [1.0, 2.0] * 40, "sex": ["F", "F", "M", "M"] * 20})
    with pytest.warns(ZeroNoiseWarning):
        zero = RenyiPufferfishLaplace(secret="sex").fit(alike)
    joint = RELEASES["joint"]().set_params(random_state=1).fit(people(200))
    seeded = laplace.set_params(random_state=1)
    seeded.fit(columns_for("laplace", people(200)))
    for X in lazies:
        with pytest.warns(ReproducibleNoiseWarning) as caught:
            released = seeded.transform(X)
        assert [w.filename for w in caught] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(released, "compute", getattr(released, "collect", None))()
    with pytest.warns(ReproducibleNoiseWarning) as caught:
        joint.transform(dd.from_pandas(people(), npartitions=2))
    assert [w.filename for w in caught] == [__file__]
    with pytest.warns(ZeroNoiseWarning) as caught:
        released = zero.transform(dd.from_pandas(alike, npartitions=2))
    assert [w.filename for w in caught] == [__file__]
    assert (released.compute()["a"] == alike["a"]).all()


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ReproducibleNoiseWarning")
def test_seeds_repeat_by_call_partition_column_and_chunk(laplace):
    one = people(300)[["age"]].assign(same=lambda t: t["age"])
    rows = dd.concat([dd.from_pandas(one, npartitions=1) for _ in range(3)])
    seen = []
    for _ in range(2):
        seeded = RenyiPufferfishLaplace(random_state=5).fit(
            one, secret=people(300)["sex"]
        )
        seen.append([seeded.transform(rows).compute() for _ in range(2)])
    for a, b in zip(*seen, strict=True):
        pd.testing.assert_frame_equal(a, b)
    noises = [
        part[name].to_numpy() - one["age"].to_numpy()
        for released in seen[0]
        for part in (released.iloc[i : i + 300] for i in (0, 300, 600))
        for name in one
    ]
    seeded.fit(one, secret=people(300)["sex"])
    noises += [seeded.transform(one)[name].to_numpy() - one["age"] for name in one]
    for a, b in combinations(noises, 2):
        assert (np.asarray(a) == np.asarray(b)).sum() <= 1


def test_frames_in_memory_are_not_made_of_lazy_ones(laplace):
    rows = columns_for("laplace", people())
    fitted = RELEASES["laplace"]().fit(rows[:200])
    lazies = {
        "dask": dd.from_pandas(rows, npartitions=3),
        "polars": pl.DataFrame(rows.to_dict("list")).lazy(),
    }
    for kind, X in lazies.items():
        words = re.escape(
            f"transform='pandas') asks for a frame in memory, and X is lazy ({kind})"
        )
        with sklearn.config_context(transform_output="pandas"):
            with pytest.raises(ParameterError, match=words):
                fitted.transform(X)
            laplace.set_output(transform="default")
            laplace.transform(X)
        laplace.set_output(transform="pandas")
        with pytest.raises(ParameterError, match=words):
            laplace.transform(X)
        laplace.set_output(transform="default")
        assert type(laplace.transform(X)) is type(X)


def test_a_series_is_no_table(laplace):
    rows = dd.from_pandas(columns_for("laplace", people()), npartitions=3)
    for X in (rows["age"], da.ones(10)):
        with pytest.raises(ValueError, match=r"with 1 dimension.*X\.to_frame"):
            laplace.transform(X)


def test_what_takes_rows_in_memory_says_how_to_get_them():
    rows = people(200)[["age", "sex"]]
    fitted = RELEASES["laplace"]().fit(rows)
    with pytest.raises(TypeError, match=r"collect it first, X\.compute\(\)"):
        held_out_divergence(fitted, dd.from_pandas(rows, npartitions=3))
    with pytest.raises(TypeError, match=r"Y is lazy: .*Y\.compute\(\)"):
        kernel_renyi_divergence(np.eye(3), da.eye(3))
