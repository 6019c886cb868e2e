"""Counts from queries and from chunks of many types; what estimators keep of them."""

import sys
import threading
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_counts import GAUSSIAN, LAPLACE, on_grid, people, quiet, same_fit

from skpuffer import ConditionalCounts, JointRelease, RenyiPufferfishCategorical


def adult(n=20_000, seed=0):
    """Return rows that look like a census: few distinct ones, two secrets."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], n, p=[0.33, 0.67])
    return pd.DataFrame(
        {
            "age": rng.integers(17, 60, n) + 2 * (sex == "Male"),
            "hours": rng.choice([20, 38, 40, 50], n),
            "job": rng.choice(["Sales", "Craft", "Other"], n),
            "sex": sex,
            "income": rng.choice(["<=50K", ">50K"], n),
        }
    )


def query(table, sql):
    """Run a query over a frame called t."""
    with duckdb.connect() as connection:
        connection.register("t", table)
        return connection.sql(sql).df()


# --- queries --------------------------------------------------------------------


@quiet
@pytest.mark.parametrize(
    ("columns", "make"),
    [
        (["age"], lambda: LAPLACE(secret="sex")),
        (["age", "hours"], lambda: LAPLACE(secret="sex", scope="column")),
        (["age"], lambda: GAUSSIAN(secret=["sex", "income"])),
        (["job"], lambda: RenyiPufferfishCategorical(secret="sex")),
        (["hours", "job"], lambda: JointRelease(secret="sex", prior="income")),
        (
            ["age"],
            lambda: LAPLACE(secret="sex", prior_model="population", bounds=(0, 99)),
        ),
    ],
)
def test_group_by_is_a_way_to_count(columns, make):
    table = adult()
    made = make()
    secret = made.secret if isinstance(made.secret, list) else [made.secret]
    prior = [] if made.prior is None else [made.prior]
    keys = [*columns, *secret, *prior]
    counted = query(
        table,
        f"SELECT {', '.join(keys)}, COUNT(*) AS n FROM t "
        f"GROUP BY {', '.join(keys)} ORDER BY random()",
    )
    counts = ConditionalCounts.from_counts(
        counted, secret=made.secret, prior=made.prior, count="n"
    )
    assert counts.n_rows == len(table)
    assert counts.n_distinct == len(counted)
    assert same_fit(make().fit(table[keys]), made.fit_counts(counts))


def test_missing_keys_are_refused_with_the_rows_behind_them():
    table = adult(1000)
    table.loc[:98, "age"] = np.nan
    table.loc[200:206, "sex"] = None
    sql = "SELECT age, sex, COUNT(*) AS n FROM t GROUP BY age, sex"
    with pytest.raises(ValueError, match="secret 'sex' is missing in 7 of 1000 rows"):
        ConditionalCounts.from_counts(query(table, sql), secret="sex", count="n")
    counted = query(table, f"SELECT * FROM ({sql}) WHERE sex IS NOT NULL")
    with pytest.raises(ValueError, match=r"'age' is missing .NaN. in 99 of 993"):
        ConditionalCounts.from_counts(counted, secret="sex", count="n")
    labels = counted.assign(age=counted["age"].map(str))
    with pytest.raises(ValueError, match="as the text 'nan', in 99 of 993 rows"):
        ConditionalCounts.from_counts(labels, secret="sex", count="n")


COUNTS = {
    "whole floats": [2.0, 3.0, 0.0],
    "decimals": [Decimal(2), Decimal(3), Decimal(0)],
    "objects": np.array([2, 3, 0], dtype=object),
    "short": np.array([2, 3, 0], dtype="uint8"),
    "nullable": pd.array([2, 3, 0], dtype="Int32"),
}


@pytest.mark.parametrize("kind", COUNTS)
def test_counts_of_every_kind(kind):
    table = pd.DataFrame({"a": [1.5, 2.5, 9.0], "s": ["x", "y", "z"]})
    made = ConditionalCounts.from_counts(
        table.assign(n=COUNTS[kind]), secret="s", count="n"
    )
    assert made.n_rows == 5
    # A group of no rows is not there, and neither is its label.
    assert made.to_frame()["s"].tolist() == ["x", "y"]
    assert made.to_frame()["count"].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("n", "words"),
    [
        ([1, -2], "no whole number from 0 upwards in 1 of 2 rows of the table"),
        ([0.5, 1.5], "no whole number from 0 upwards in 2 of 2"),
        ([np.nan, 1], "'n' is missing in 1 of 2 rows of the table"),
        (pd.array([None, 1], dtype="Int64"), "'n' is missing in 1 of 2"),
        (["1", "2"], "no whole number"),
        ([True, True], "no whole number"),
        ([np.inf, 1.0], "2..62 or more"),
        ([2**62, 1], "2..62 or more"),
        ([2**61, 2**61], f"there are {2**62} rows, and fewer than 2..62"),
    ],
)
def test_counts_that_are_refused(n, words):
    table = pd.DataFrame({"a": [1.5, 2.5], "s": ["x", "y"]}).assign(n=n)
    with pytest.raises(ValueError, match=words):
        ConditionalCounts.from_counts(table, secret="s", count="n")


def test_tables_that_are_refused():
    table = pd.DataFrame({"a": [1.5], "s": ["x"], "n": [1]})
    with pytest.raises(ValueError, match="count='m' is not a column of X"):
        ConditionalCounts.from_counts(table, secret="s", count="m")
    with pytest.raises(ValueError, match="table is of type ndarray: give a frame"):
        ConditionalCounts.from_counts(table.to_numpy(), secret="s", count="n")
    with duckdb.connect() as connection, pytest.raises(TypeError, match=r"\.df\(\)"):
        ConditionalCounts.from_counts(
            connection.sql("SELECT 1 AS a, 2 AS s, 3 AS n"), secret="s", count="n"
        )


@quiet
def test_groups_that_occur_twice_are_added():
    table = query(adult(), "SELECT age, sex, COUNT(*) AS n FROM t GROUP BY ALL")
    once = ConditionalCounts.from_counts(table, secret="sex", count="n")
    twice = ConditionalCounts.from_counts(
        pd.concat([table, table]), secret="sex", count="n"
    )
    assert (twice.n_rows, twice.n_distinct) == (2 * once.n_rows, once.n_distinct)
    np.testing.assert_array_equal(
        once.to_frame()["count"] * 2, twice.to_frame()["count"]
    )
    # A grid merges groups.
    coarse = ConditionalCounts.from_counts(table, secret="sex", count="n", grid=10)
    rows = adult().assign(age=lambda t: on_grid(t["age"], 10))[["age", "sex"]]
    pd.testing.assert_frame_equal(
        coarse.to_frame(), ConditionalCounts.from_frame(rows, secret="sex").to_frame()
    )
    back = ConditionalCounts.from_counts(once.to_frame(), secret="sex", count="count")
    pd.testing.assert_frame_equal(back.to_frame(), once.to_frame())


@quiet
def test_frames_of_a_query():
    table = adult(500)[["age", "sex"]]
    counted = query(table, "SELECT age, sex, COUNT(*) AS n FROM t GROUP BY ALL")
    expected = ConditionalCounts.from_frame(table, secret="sex").to_frame()
    frames = [pl.DataFrame(counted.to_dict("list"))]
    pyarrow = pytest.importorskip("pyarrow")
    arrow = pyarrow.Table.from_pandas(counted)
    frames += [arrow, pyarrow.RecordBatchReader.from_batches(arrow.schema, [])]
    frames[-1] = arrow.to_reader()
    for frame in frames:
        made = ConditionalCounts.from_counts(frame, secret="sex", count="n")
        pd.testing.assert_frame_equal(made.to_frame(), expected)


# --- types of columns -----------------------------------------------------------

TYPES = {
    "whole then not": ([1, 2], [0.5, 2.0]),
    "short and long": (np.array([1, 2], "int8"), np.array([300, 2], "uint16")),
    "float32": (np.float32([0.1, 2]), np.array([0.1, 2])),
    "nullable": (pd.array([1, 2], dtype="Int64"), [2, 3]),
    "negative zero": ([-0.0, 1.0], [0.0, 1.0]),
    "truth": ([True, False], [True, True]),
    "labels": (["b", "a"], ["c", "a"]),
    "same categories": (
        pd.Categorical(["b", "a"], ["b", "a", "c"]),
        pd.Categorical(["c", "a"], ["b", "a", "c"]),
    ),
    "other categories": (
        pd.Categorical(["b", "a"], ["b", "a"]),
        pd.Categorical(["c", "a"], ["c", "a"]),
    ),
    "categories and text": (pd.Categorical(["b", "a"], ["b", "a", "z"]), ["c", "a"]),
    "objects": (np.array([1, 2.5], object), np.array([2.5, 7], object)),
    "decimals": ([Decimal(1), Decimal("2.5")], [Decimal("2.5"), Decimal(7)]),
    "days": (
        pd.to_datetime(["2020-01-02", "2021-01-01"]),
        pd.to_datetime(["2020"] * 2),
    ),
    "intervals": (pd.cut([1, 5], [0, 2, 6]), pd.cut([1, 1], [0, 2, 6])),
    "tuples": ([(1, 2), (3, 4)], [(1, 2), (0, 1)]),
    "fractions": ([Fraction(1, 3), Fraction(1, 2)], [Fraction(1, 3), Fraction(2)]),
}


@quiet
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("role", ["column", "secret"])
def test_columns_of_every_type(kind, role):
    one, other = TYPES[kind]
    parts = []
    for values in (one, other):
        part = pd.DataFrame({"v": range(24)})
        part["v"] = pd.Series(values)[np.arange(24) % 2].reset_index(drop=True)
        part["w"] = np.arange(24) // 2 % 2 + np.arange(24) // 13
        parts.append(part)
    secret = "v" if role == "secret" else "w"
    forth = ConditionalCounts(secret=secret).update(parts[0]).update(parts[1])
    back = ConditionalCounts(secret=secret).update(parts[1]).update(parts[0])
    pd.testing.assert_frame_equal(forth.to_frame(), back.to_frame())
    whole = pd.concat(parts, ignore_index=True)
    makes = [lambda: RenyiPufferfishCategorical(secret=secret, scope="column")]
    if role == "secret":
        makes = [lambda: LAPLACE(secret=secret)]
    elif kind in ("whole then not", "short and long", "float32", "nullable", "truth"):
        makes.append(lambda: LAPLACE(secret=secret))
    for make in makes:
        assert same_fit(make().fit(whole), make().fit_counts(forth))


@quiet
def test_equal_labels_of_two_types_do_not_depend_on_the_order():
    one = pd.DataFrame({"v": np.array([1, "a"] * 20, object), "w": [0, 0, 1, 1] * 10})
    other = pd.DataFrame(
        {"v": np.array([1.0, True] * 20, object), "w": [0, 0, 1, 1] * 10}
    )
    forth = ConditionalCounts(secret="w").update(one).update(other)
    back = ConditionalCounts(secret="w").update(pd.concat([other, one]))
    pd.testing.assert_frame_equal(forth.to_frame(), back.to_frame())
    fitted = [RenyiPufferfishCategorical().fit_counts(c) for c in (forth, back)]
    assert same_fit(*fitted)
    labels = fitted[0].categories_["v"]
    assert set(labels) == {1, "a"}
    secrets = [
        LAPLACE().fit_counts(ConditionalCounts(secret="v").update(a).update(b))
        for a, b in ((one, other), (other, one))
    ]
    assert same_fit(*secrets)


def test_parts_of_two_kinds_are_told_apart():
    made = ConditionalCounts(secret="s")
    made.update(pd.DataFrame({"v": [True, False], "s": [0, 1]}))
    with pytest.raises(ValueError, match=r"kinds: .'truth values',. and .'num"):
        made.update(pd.DataFrame({"v": [1, 0], "s": [0, 1]}))
    # Labels of secrets may be of any type.
    made.update(pd.DataFrame({"v": [True, False], "s": ["x", 1.5]}))
    assert made.n_distinct == 4


@quiet
@pytest.mark.parametrize(
    "array",
    [
        np.random.default_rng(0).integers(0, 3, (20, 3)) * 1.0,
        np.random.default_rng(1).integers(0, 3, (20, 3), dtype="int16"),
        np.array([[i % 3, i % 2 + 0.5, i % 2] for i in range(20)], dtype=object),
        [[i % 3, i % 2 + 0.5, i % 2] for i in range(20)],
    ],
)
@pytest.mark.parametrize("secret", [2, -1, [0]])
def test_arrays(array, secret):
    counts = ConditionalCounts.from_frame(array, secret=secret)
    rows = LAPLACE(secret=secret, scope="column").fit(array)
    made = LAPLACE(secret=secret, scope="column").fit_counts(counts)
    assert same_fit(rows, made)
    assert made.transform(array).shape == (20, 2)
    np.testing.assert_array_equal(
        made.get_feature_names_out(), rows.get_feature_names_out()
    )


@quiet
def test_names_that_are_no_text():
    table = pd.DataFrame(
        {7: [1, 2, 3] * 9, 3: [0.5] * 13 + [2.0] * 14, 5: [1, 1, 2] * 9}
    )
    counts = ConditionalCounts.from_frame(table, secret=5)
    rows = LAPLACE(secret=5, scope="column").fit(table)
    made = LAPLACE(scope="column").fit_counts(counts)
    assert same_fit(rows, made)
    assert made.transform(table).columns.tolist() == [7, 3]
    with pytest.raises(ValueError, match="several columns named 7"):
        counts.update(table.set_axis([7, 7, 5], axis=1))


@quiet
def test_arrays_of_text():
    array = np.array([["a", "x", "F"], ["b", "y", "M"], ["b", "x", "M"]] * 9)
    counts = ConditionalCounts.from_frame(array, secret=2)
    rows = RenyiPufferfishCategorical(secret=2).fit(array)
    assert same_fit(rows, RenyiPufferfishCategorical().fit_counts(counts))
    with pytest.raises(ValueError, match="array without names"):
        ConditionalCounts(secret=2, columns=[0]).update(array)
    mixed = array.astype(object)
    mixed[:, 0] = mixed[:, 0] == "a"
    assert same_fit(
        JointRelease(secret=2).fit(mixed),
        JointRelease().fit_counts(ConditionalCounts.from_frame(mixed, secret=2)),
    )


@quiet
def test_columns_that_are_chosen():
    table = people()
    counts = ConditionalCounts(secret="sex", columns=["part", "age"])
    counts.update(table[:10]).update(table[table.columns[::-1]][10:])
    chosen = table[["part", "age", "sex"]]
    rows = LAPLACE(secret="sex", scope="column").fit(chosen)
    assert same_fit(rows, LAPLACE(scope="column").fit_counts(counts))


def test_wide_and_narrow_columns_are_counted_alike():
    # Every way of telling rows apart, against pandas.
    rng = np.random.default_rng(0)
    n = 5000
    floats = rng.normal(size=40)
    columns = {
        "narrow": rng.integers(-3, 3, n),
        "whole": rng.integers(0, 5, n).astype(float),
        "far": rng.choice([-(2**60), 0, 2**60], n),
        "wide": rng.choice(floats, n),
        "huge": rng.choice([1e300, -1e300, 0.5], n),
        "beyond": rng.choice([2.0**53, 2.0**53 + 2, 1.0], n),
        "long": rng.integers(0, 2**62, n),
        "longer": rng.integers(0, 2**62, n),
    }
    for names in (
        ["narrow"],
        ["whole"],
        ["far"],
        ["wide"],
        ["narrow", "wide"],
        ["wide", "whole"],
        ["wide", "far", "narrow"],
        ["huge", "beyond"],
        ["long", "longer", "narrow"],
        ["long", "longer", "wide", "far"],
    ):
        table = pd.DataFrame({name: columns[name] for name in names})
        table["s"] = rng.choice(["x", "y"], n)
        found = ConditionalCounts(secret="s")
        for part in (slice(0, 1), slice(1, 4000), slice(4000, None)):
            found.update(table[part])
        wanted = table.groupby([*names, "s"]).size().rename("count").reset_index()
        pd.testing.assert_frame_equal(found.to_frame(), wanted, check_dtype=False)


# --- large counts ---------------------------------------------------------------


@quiet
def test_ten_million_rows_as_counts():
    table = pd.DataFrame(
        {"age": np.tile(range(20, 70), 2), "sex": ["F"] * 50 + ["M"] * 50}
    )
    n = np.random.default_rng(0).integers(50_000, 150_000, 100)
    counts = ConditionalCounts.from_counts(table.assign(n=n), secret="sex", count="n")
    made = LAPLACE().fit_counts(counts)
    assert counts.n_rows == n.sum() > 9_000_000
    assert [rows for *_, rows in made.guarantee_.group_sizes] == [
        n[:50].sum(),
        n[50:].sum(),
    ]
    # Proportions decide: the same as weights.
    rows = LAPLACE(secret="sex").fit(table, sample_weight=n)
    np.testing.assert_array_equal(made.scale_, rows.scale_)


@quiet
def test_counts_up_to_the_limit():
    table = pd.DataFrame({"age": [1, 2, 3, 4], "sex": ["F", "M"] * 2})
    most = [2**60 - 1, 2**60, 2**60, 2**59]
    counts = ConditionalCounts.from_counts(
        table.assign(n=most), secret="sex", count="n"
    )
    assert counts.n_rows == sum(most)
    made = LAPLACE().fit_counts(counts)
    assert made.guarantee_.group_sizes[0][2] == 2**61 - 1
    with pytest.raises(ValueError, match="divide all counts by a common number"):
        counts.merge(counts)
    assert counts.n_rows == sum(most)


# --- threads --------------------------------------------------------------------


def test_threads_may_count_into_one():
    table = adult(2000)[["age", "hours", "sex"]]
    counts = ConditionalCounts(secret="sex")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [
            threading.Thread(target=lambda part: counts.update(part), args=(part,))
            for part in np.array_split(np.arange(2000), 40)
            for part in [table.iloc[part]]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    whole = ConditionalCounts.from_frame(table, secret="sex")
    pd.testing.assert_frame_equal(counts.to_frame(), whole.to_frame())


def test_one_merged_with_itself_is_twice_itself():
    counts = ConditionalCounts.from_frame(adult(50)[["age", "sex"]], secret="sex")
    once = counts.to_frame()
    counts.merge(counts)
    np.testing.assert_array_equal(counts.to_frame()["count"], 2 * once["count"])


@quiet
def test_one_row_many_times():
    table = pd.DataFrame({"age": [3.0] * 9, "sex": ["F"] * 9})
    counts = ConditionalCounts.from_frame(table, secret="sex")
    with pytest.raises(ValueError, match="single value, 'F'"):
        LAPLACE(secret="sex").fit_counts(counts)
