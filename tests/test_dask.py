"""Fits of Dask frames and arrays: threads, processes, and workers that die."""

import os
import pickle
import signal
import warnings
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from distributed import Client, KilledWorker, LocalCluster

from skpuffer import (
    ConditionalCounts,
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)
from skpuffer.exceptions import ParameterError
from skpuffer.metrics import KernelMoments

LABELS = ["low", "middle", "high"]


def people(n=900, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 40, n) + 3 * (sex == "F"),
            "hours": rng.integers(0, 9, n) * 5.0,
            "level": rng.choice(LABELS, n, p=[0.3, 0.3, 0.4]),
            "sex": sex,
            "site": rng.choice(["north", "south"], n),
            "weight": rng.choice([0.0, 0.5, 1.0, 3.0], n),
        }
    )


ESTIMATORS = {
    "one column": (
        lambda: RenyiPufferfishLaplace(secret="sex"),
        ["age", "sex"],
    ),
    "joint columns": (
        lambda: RenyiPufferfishGaussian(secret="sex"),
        ["age", "hours", "sex"],
    ),
    "priors": (
        lambda: RenyiPufferfishLaplace(secret="sex", prior="site"),
        ["age", "sex", "site"],
    ),
    "several secrets": (
        lambda: RenyiPufferfishLaplace(secret=["sex", "site"]),
        ["age", "sex", "site"],
    ),
    "population": (
        lambda: RenyiPufferfishLaplace(
            secret="sex", prior_model="population", bounds=(0, 60)
        ),
        ["age", "sex"],
    ),
    "mixed": (
        lambda: JointRelease(secret="sex", categories=[LABELS]),
        ["age", "level", "sex"],
    ),
    "categories": (
        lambda: RenyiPufferfishCategorical(secret="sex", categories=[LABELS]),
        ["level", "sex"],
    ),
}
every_estimator = pytest.mark.parametrize("kind", ESTIMATORS)


def made(kind, rows):
    make, columns = ESTIMATORS[kind]
    return make(), rows[columns]


def assert_same_fit(found, expected):
    assert np.array_equal(found.scale_, expected.scale_)
    assert found.guarantee_ == expected.guarantee_
    assert str(found.report_) == str(expected.report_)
    names = getattr(expected, "feature_names_in_", None)
    if names is not None:
        assert list(found.feature_names_in_) == list(names)


# --- the same fit as in memory ---


@every_estimator
def test_partitions_are_fitted_as_their_rows_together(kind):
    estimator, rows = made(kind, people())
    expected = made(kind, people())[0].fit(rows)
    lazy = dd.from_pandas(rows, npartitions=11)
    # The other order, and partitions of other sizes, one of them empty.
    parts = [rows.iloc[600:], rows.iloc[:0], rows.iloc[10:600], rows.iloc[:10]]
    uneven = dd.from_delayed([dask.delayed(part) for part in parts], meta=rows.iloc[:0])
    for X in (lazy, uneven):
        assert_same_fit(estimator.fit(X), expected)
    assert estimator.fit_transform(lazy).npartitions == 11


@every_estimator
def test_a_query_is_fitted_as_its_rows(kind):
    estimator, rows = made(kind, people())
    expected = made(kind, people())[0].fit(rows)
    frame = pl.DataFrame(rows.to_dict("list"))
    assert_same_fit(estimator.fit(frame.lazy()), expected)
    assert estimator.fit_transform(frame.lazy()).collect().height == len(rows)


def test_weights_and_labels_beside_the_rows():
    rows = people()
    lazy = dd.from_pandas(rows, npartitions=6)
    for secret, prior, weight in (
        ("sex", None, None),
        ("sex", None, "weight"),
        ("sex", "site", None),
        (["sex", "site"], None, "weight"),
    ):

        def beside(frame, secret=secret, prior=prior, weight=weight):
            return {
                "secret": frame[secret],
                "prior": None if prior is None else frame[prior],
                "sample_weight": None if weight is None else frame[weight],
            }

        found = RenyiPufferfishLaplace().fit(lazy[["age"]], **beside(lazy))
        expected = RenyiPufferfishLaplace().fit(rows[["age"]], **beside(rows))
        assert_same_fit(found, expected)
    from_y = RenyiPufferfishLaplace(secret_from_y=True)
    expected = from_y.fit(rows[["age"]], rows["sex"]).scale_
    assert from_y.fit(lazy[["age"]], lazy["sex"]).scale_ == expected
    # In a pipeline y is the target, and no secret.
    named = RenyiPufferfishLaplace(secret="sex")
    assert named.fit(lazy[["age", "sex"]], lazy["hours"]).scale_ == expected


def test_arrays_by_position_of_known_and_unknown_chunks():
    rows = people()
    numbers = np.c_[rows["age"], rows["hours"], rows["sex"] == "F"]
    X = da.from_array(numbers, chunks=(200, 1))
    for secret in (2, -1):
        expected = RenyiPufferfishLaplace(secret=secret).fit(numbers)
        found = RenyiPufferfishLaplace(secret=secret).fit(X)
        assert_same_fit(found, expected)
        assert found.transform(X).compute().shape == (900, 2)
    kept = numbers[:, 0] > 25
    expected = RenyiPufferfishLaplace(secret=2).fit(numbers[kept])
    assert_same_fit(RenyiPufferfishLaplace(secret=2).fit(X[X[:, 0] > 25]), expected)
    labels = da.from_array(rows["sex"].to_numpy(object), chunks=200)
    expected = RenyiPufferfishLaplace().fit(
        numbers[:, :2], secret=rows["sex"].to_numpy(object)
    )
    assert_same_fit(RenyiPufferfishLaplace().fit(X[:, :2], secret=labels), expected)


def test_counts_of_a_grid_from_every_kind_of_rows():
    rows = people().assign(pay=np.random.default_rng(1).normal(30, 5, 900))
    rows.loc[3, "pay"], rows.loc[4, "pay"] = -0.0, 0.25
    rows = rows[["pay", "age", "sex"]]
    for grid in (0.5, {"pay": 0.1}):
        given = {"secret": "sex", "grid": grid}
        expected = ConditionalCounts.from_frame(rows, **given).to_frame()
        frames = (
            dd.from_pandas(rows, npartitions=4),
            pl.DataFrame(rows.to_dict("list")).lazy(),
        )
        for lazy in frames:
            counts = ConditionalCounts.from_frame(lazy, **given)
            pd.testing.assert_frame_equal(counts.to_frame(), expected)
            counts.update(rows).update(lazy)
            assert counts.n_rows == 2700
            assert counts.n_distinct == len(expected)
            alone = ConditionalCounts.from_frame(lazy, columns=["pay"], **given)
            assert list(alone.to_frame()) == ["pay", "sex", "count"]
    fitted = RenyiPufferfishLaplace(secret="sex").fit_counts(counts)
    released = fitted.transform(frames[0])
    assert "after rounding to multiples of" in str(fitted.guarantee_)
    noise = released.compute()["pay"] - rows["pay"]
    assert abs(noise.std() / fitted.noise_std_[0] - 1) < 0.2


def test_every_partition_is_read_once(tmp_path):
    def read(number):
        (tmp_path / f"{number}-{os.urandom(4).hex()}").touch()
        return people(seed=number)[["age", "sex"]]

    lazy = dd.from_map(read, range(5), meta=people(1)[["age", "sex"]].iloc[:0])
    RenyiPufferfishLaplace(secret="sex").fit(lazy)
    read_then = sorted(path.name[0] for path in tmp_path.iterdir())
    assert read_then == list("01234")


def test_kernel_moments_of_partitions():
    rows = np.random.default_rng(0).normal(size=(700, 2))
    X = da.from_array(rows, chunks=(150, 1))
    frame = dd.from_pandas(pd.DataFrame(rows, columns=["a", "b"]), npartitions=11)
    expected = KernelMoments(gamma=0.3, n_components=64).partial_fit(rows)
    for lazy in (X, frame, X[X[:, 0] > -np.inf]):
        found = KernelMoments(gamma=0.3, n_components=64).partial_fit(lazy)
        assert found.count == 700
        gap = np.abs(found.second_moment - expected.second_moment).max()
        assert gap < 1e-13
    found.partial_fit(rows).merge(expected)
    assert found.count == 2100
    for bad, words in (
        (X[:, :1], "X has 1 columns, and the batches before had 2"),
        (X[X[:, 0] > 9], "X has no rows in any of its partitions"),
        (da.where(X > 3, np.nan, X), r"partition \d: column . of X is missing"),
    ):
        with pytest.raises(ValueError, match=words):
            found.partial_fit(bad)
        assert found.count == 2100


# --- errors leave everything as it was ---


@pytest.mark.parametrize("kind", ["dask", "polars"])
def test_bad_rows_are_named_and_change_nothing(kind):
    rows = people()[["age", "hours", "sex"]]

    def lazy(frame):
        if kind == "dask":
            return dd.from_pandas(frame, npartitions=6)
        return pl.DataFrame(frame.to_dict("list"), strict=False).lazy()

    estimator = RenyiPufferfishLaplace(secret="sex").fit(rows)
    before = pickle.dumps(estimator)
    where = r"partition 4: .*in 3 of 150" if kind == "dask" else "in 3 of 900"
    few = rows.index.isin([610, 620, 630])
    for column, value, words in (
        ("hours", np.nan, rf"column 'hours' is missing.*{where[-11:]} rows"),
        ("hours", np.inf, r"column 'hours' is infinite \(inf\) in 3 of"),
        ("sex", None, "secret 'sex' is missing in 3 of"),
    ):
        bad = rows.assign(**{column: rows[column].mask(few, value)})
        with pytest.raises(ValueError, match=words) as caught:
            estimator.fit(lazy(bad))
        if kind == "dask":
            assert str(caught.value).startswith("partition 4: ")
        assert pickle.dumps(estimator) == before
    with pytest.raises(ParameterError, match="secret='hour' is not a column of X"):
        RenyiPufferfishLaplace(secret="hour").fit(lazy(rows))
    nothing = lazy(rows)
    nothing = nothing[nothing["age"] > 99] if kind == "dask" else nothing.clear()
    with pytest.raises(ValueError, match="X has no rows"):
        estimator.fit(nothing)
    with pytest.raises(ParameterError, match="single value"):
        estimator.fit(lazy(rows.assign(sex="F")))
    assert pickle.dumps(estimator) == before


def test_parameters_are_checked_before_a_row_is_read():
    def read(number):
        raise AssertionError("read")

    lazy = dd.from_map(read, range(3), meta=people(1)[["age", "sex"]].iloc[:0])
    for bad in (
        RenyiPufferfishLaplace(alpha=1, secret="sex"),
        RenyiPufferfishLaplace(secret="sex", epsilon=-1),
        RenyiPufferfishLaplace(),
        RenyiPufferfishLaplace(secret="six"),
        JointRelease(secret="sex", law="cauchy"),
    ):
        with pytest.raises(ParameterError):
            bad.fit(lazy)


def test_what_is_beside_the_rows_must_be_partitioned_like_them():
    rows = people()
    lazy = dd.from_pandas(rows, npartitions=6)
    X, sex = lazy[["age"]], lazy["sex"]
    estimator = RenyiPufferfishLaplace()
    with pytest.raises(ParameterError, match="X is of Dask and secret is not"):
        estimator.fit(X, secret=rows["sex"])
    with pytest.raises(ParameterError, match="secret has 3 partitions and X has 6"):
        estimator.fit(X, secret=sex.repartition(npartitions=3))
    shifted = dd.from_pandas(rows["sex"], npartitions=1).repartition(
        divisions=[0, 151, 300, 450, 600, 750, 899]
    )
    with pytest.raises(
        ParameterError, match=r"partition \d of X has 1.. rows and that of secret 1"
    ):
        estimator.fit(X, secret=shifted)
    turned = sex.map_partitions(lambda part: part.iloc[::-1])
    with pytest.raises(ParameterError, match="secret has another index than X"):
        estimator.fit(X, secret=turned)
    with pytest.raises(ParameterError, match="sample_weight has 2 partitions"):
        estimator.fit(
            X, secret=sex, sample_weight=lazy["weight"].repartition(npartitions=2)
        )
    with pytest.raises(ParameterError, match="a LazyFrame, whose rows have no places"):
        estimator.fit(pl.LazyFrame({"age": [1.0]}), secret=["F"])
    assert not hasattr(estimator, "scale_")


def test_too_many_distinct_rows_are_refused_where_they_are():
    rows = people().assign(pay=np.random.default_rng(1).normal(30, 5, 900))
    counts = ConditionalCounts(secret="sex", max_distinct=200)
    for lazy in (
        dd.from_pandas(rows[["pay", "sex"]], npartitions=6),
        pl.DataFrame(rows[["pay", "sex"]].to_dict("list")).lazy(),
    ):
        with pytest.raises(ParameterError, match=r"max_distinct=200: round.*grid"):
            counts.update(lazy)
        assert counts.n_rows == 0


# --- real workers ---


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def read_people(number, fatal=None, marker=None):
    """Read a partition; the first who reads the fatal one dies of it."""
    if number == fatal and not os.path.exists(marker):
        with open(marker, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return people(300, seed=number)


def in_memory(n=8):
    return pd.concat([read_people(number) for number in range(n)], ignore_index=True)


@pytest.mark.parametrize("kind", ["one column", "joint columns", "mixed"])
def test_a_cluster_fits_and_releases_as_threads_do(client, kind):
    make, columns = ESTIMATORS[kind]
    lazy = dd.from_map(read_people, range(8), meta=people(1).iloc[:0])[columns]
    expected = make().fit(in_memory()[columns])
    estimator = make().fit(lazy)
    assert_same_fit(estimator, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released = estimator.transform(lazy)
    whole = released.compute()
    assert len(whole) == 2400
    # Two workers, this process, and one column alone: one release.
    pd.testing.assert_frame_equal(released.compute(), whole)
    pd.testing.assert_frame_equal(released.compute(scheduler="sync"), whole)
    pd.testing.assert_series_equal(released["age"].compute(), whole["age"])
    noise = whole["age"].to_numpy() - in_memory()["age"].to_numpy()
    assert len(np.unique(noise)) > 2350
    assert abs(noise.std() / estimator.noise_std_[0] - 1) < 0.15


def test_errors_of_a_worker_say_what_they_would_here(client):
    def read(number):
        return people(seed=number).assign(
            hours=lambda t: t["hours"].mask(t.index < number, np.nan)
        )

    estimator = RenyiPufferfishLaplace(secret="sex").fit(people()[["hours", "sex"]])
    before = pickle.dumps(estimator)
    lazy = dd.from_map(read, [0, 0, 2, 0], meta=people(1).iloc[:0])[["hours", "sex"]]
    words = r"^partition 2: column 'hours' is missing \(NaN\) in 2 of 900 rows"
    with pytest.raises(ValueError, match=words):
        estimator.fit(lazy)
    assert pickle.dumps(estimator) == before
    with pytest.raises(ValueError, match=words):
        estimator.transform(lazy).compute()


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_costs_nothing_but_time(client, tmp_path):
    read = partial(read_people, fatal=5, marker=str(tmp_path / "killed"))
    columns = ["age", "sex"]
    lazy = dd.from_map(read, range(8), meta=people(1).iloc[:0])[columns]
    estimator = RenyiPufferfishLaplace(secret="sex").fit(lazy)
    assert (tmp_path / "killed").exists()
    assert_same_fit(
        estimator, RenyiPufferfishLaplace(secret="sex").fit(in_memory()[columns])
    )


@pytest.mark.slow
def test_a_release_that_loses_a_worker_is_still_one_release(client, tmp_path):
    estimator = RenyiPufferfishLaplace(secret="sex").fit(people()[["age", "sex"]])
    read = partial(read_people, fatal=5, marker=str(tmp_path / "killed"))
    lazy = dd.from_map(read, range(8), meta=people(1).iloc[:0])[["age", "sex"]]
    released = estimator.transform(lazy)
    whole = released.compute()
    assert (tmp_path / "killed").exists()
    pd.testing.assert_frame_equal(released.compute(), whole)
    assert len(whole) == 2400


@pytest.mark.slow
def test_moments_of_a_cluster(client):
    X = da.random.default_rng(1).normal(size=(4000, 3), chunks=(500, 3))
    found = KernelMoments(gamma=0.2, n_components=32).partial_fit(X)
    whole = KernelMoments(gamma=0.2, n_components=32).partial_fit(X.compute())
    assert np.abs(found.second_moment - whole.second_moment).max() < 1e-13
    assert found.count == 4000


@pytest.mark.slow
def test_a_partition_that_kills_every_worker_is_an_error(client):
    estimator = RenyiPufferfishLaplace(secret="sex").fit(people()[["age", "sex"]])
    before = pickle.dumps(estimator)
    lazy = dd.from_map(partial(read_fatally, 3), range(6), meta=people(1).iloc[:0])
    with pytest.raises(KilledWorker, match="died"):
        estimator.fit(lazy[["age", "sex"]])
    assert pickle.dumps(estimator) == before


def read_fatally(fatal, number):
    if number == fatal:
        os.kill(os.getpid(), signal.SIGKILL)
    return people(300, seed=number)
