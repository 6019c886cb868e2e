"""Counts of distinct rows: the same fit as from the rows, in any parts and order."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skpuffer import (
    ConditionalCounts,
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    held_out_divergence,
)
from skpuffer.audit import audit_estimator

quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def people(n=300, seed=0):
    """Return rows of every kind, with ties."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 60, n) + 3 * (sex == "M"),
            "pay": np.round(rng.normal(3000, 500, n), 1),
            "part": rng.normal(size=n).astype("float32"),
            "own": rng.random(n) < 0.4,
            "job": rng.choice(["clerk", "nurse", "smith"], n, p=[0.6, 0.3, 0.1]),
            "grade": pd.Categorical(
                rng.choice(["b", "a"], n), categories=["b", "a", "c"], ordered=True
            ),
            "sex": sex,
            "old": rng.integers(0, 2, n),
            "site": rng.choice(["north", "south"], n),
        }
    )


def same_fit(one, other, exact=True):
    """Whether two fitted estimators hold the same."""
    assert one.guarantee_ == other.guarantee_ or not exact
    assert str(one.guarantee_) == str(other.guarantee_)
    np.testing.assert_array_equal(one.scale_, other.scale_)
    assert one.report_.worst_pair == other.report_.worst_pair
    # Sums in another order.
    for name in ("noise_std", "column_std"):
        np.testing.assert_allclose(
            getattr(one.report_, name), getattr(other.report_, name), rtol=1e-12
        )
    orders = [1.5, 2.0, 7.0, 50.0]
    np.testing.assert_array_equal(
        one.privacy_profile(orders), other.privacy_profile(orders)
    )
    assert vars(one).keys() == vars(other).keys()
    for name in ("n_features_in_", "feature_names_in_", "_dropped", "_ranges"):
        np.testing.assert_equal(
            getattr(one, name, None), getattr(other, name, None), err_msg=name
        )
    return True


def numbers(law, **params):
    return lambda: law(secret="sex", **params)


LAPLACE, GAUSSIAN = RenyiPufferfishLaplace, RenyiPufferfishGaussian
EXPONENTIAL = RenyiPufferfishExponential
BOUNDS = {"age": (20, 60), "pay": (2000, 4000)}
CASES = {
    "one column": (numbers(LAPLACE), ["age", "sex"]),
    "measurements": (numbers(LAPLACE), ["part", "sex"]),
    "Gaussian noise": (numbers(GAUSSIAN), ["pay", "sex"]),
    "exponential noise": (numbers(EXPONENTIAL), ["age", "sex"]),
    "jointly": (numbers(LAPLACE), ["age", "own", "sex"]),
    "by range": (
        numbers(GAUSSIAN, bounds=BOUNDS, column_weights="range"),
        ["age", "pay", "sex"],
    ),
    "weights": (
        numbers(LAPLACE, column_weights={"age": 1.0, "own": 0.1}),
        ["age", "own", "sex"],
    ),
    "alone": (numbers(LAPLACE, scope="column"), ["age", "pay", "part", "sex"]),
    "w_inf": (numbers(LAPLACE, calibration="w_inf"), ["age", "sex"]),
    "exact": (numbers(GAUSSIAN, calibration="exact"), ["age", "sex"]),
    "alpha_wasserstein": (
        numbers(LAPLACE, calibration="alpha_wasserstein"),
        ["age", "sex"],
    ),
    "closed_form": (numbers(LAPLACE, calibration="closed_form"), ["age", "sex"]),
    "auto": (numbers(GAUSSIAN, alpha="auto", delta=1e-5), ["age", "sex"]),
    "population": (
        numbers(LAPLACE, prior_model="population", bounds=(0, 90)),
        ["age", "sex"],
    ),
    "gaussian": (
        numbers(GAUSSIAN, prior_model="gaussian", scope="column"),
        ["age", "pay", "sex"],
    ),
    "bounded": (
        numbers(LAPLACE, prior_model="bounded", bounds=BOUNDS),
        ["age", "pay", "sex"],
    ),
    "clipped": (numbers(LAPLACE, bounds=(20, 60), n_releases=2), ["age", "sex"]),
    "priors": (lambda: LAPLACE(secret="sex", prior="site"), ["age", "sex", "site"]),
    "two secrets": (
        lambda: LAPLACE(
            secret=["sex", "old"], secret_pairs=[(("F", 0), ("M", 1))], scope="column"
        ),
        ["age", "old", "pay", "sex"],
    ),
    "categories": (
        lambda: RenyiPufferfishCategorical(secret="sex", metric="discrete"),
        ["job", "grade", "old", "own", "sex"],
    ),
    "categories of the population": (
        lambda: RenyiPufferfishCategorical(
            secret="sex",
            prior_model="population",
            categories=[["nurse", "clerk", "smith"]],
        ),
        ["job", "sex"],
    ),
    "rows": (lambda: JointRelease(secret="sex"), ["age", "job", "own", "grade", "sex"]),
    "rows with priors": (
        lambda: JointRelease(secret="sex", prior="site", categorical=["old", "job"]),
        ["old", "job", "age", "site", "sex"],
    ),
}


def fitted_ways(make, chunk, places, **update):
    """Return a fit on the rows and a fit on their counts, and what each warned of."""
    with warnings.catch_warnings(record=True) as fit_said:
        warnings.simplefilter("always")
        rows = make().fit(chunk, **update)
    counts = ConditionalCounts(**places).update(chunk, **update)
    with warnings.catch_warnings(record=True) as counts_said:
        warnings.simplefilter("always")
        counted = make().fit_counts(counts)
    said = [
        [(str(w.message), w.category, w.filename) for w in found]
        for found in (fit_said, counts_said)
    ]
    return rows, counted, said


@pytest.mark.parametrize("case", CASES)
def test_counts_fit_as_rows_do(case):
    make, columns = CASES[case]
    places = {"secret": make().secret, "prior": make().prior}
    rows, counted, said = fitted_ways(make, people()[columns], places)
    assert same_fit(rows, counted)
    # Also the same warnings, at the line that called.
    assert said[0] == said[1]
    assert {filename for *_, filename in said[1]} <= {__file__}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("case", CASES)
def test_counts_of_other_rows_fit_as_rows_do(case, seed):
    make, columns = CASES[case]
    table = people(40 * seed, seed)[columns]
    counts = ConditionalCounts(secret=make().secret, prior=make().prior)
    for part in np.array_split(np.arange(len(table)), seed):
        counts.update(table.iloc[part])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert same_fit(make().fit(table), make().fit_counts(counts))


@quiet
@pytest.mark.parametrize("case", ["one column", "jointly", "categories", "rows"])
def test_any_parts_in_any_order_make_the_same_counts(case):
    make, columns = CASES[case]
    table = people(400)[columns]
    whole = ConditionalCounts.from_frame(table, secret="sex")
    rng = np.random.default_rng(1)
    for _ in range(6):
        mixed = table.iloc[rng.permutation(len(table))]
        cuts = np.sort(rng.integers(0, len(table), 7))
        parts = [
            ConditionalCounts(secret="sex").update(mixed.iloc[a:b])
            for a, b in itertools.pairwise([0, *cuts, len(table)])
        ]
        while len(parts) > 1:
            i, j = rng.choice(len(parts), 2, replace=False)
            one, other = parts[i], parts[j]
            if rng.random() < 0.3:
                repr(one)
            one.merge(other)
            parts.pop(j)
        pd.testing.assert_frame_equal(parts[0].to_frame(), whole.to_frame())
        assert parts[0].n_rows == whole.n_rows == len(table)
        assert parts[0].n_distinct == whole.n_distinct
    assert same_fit(make().fit_counts(parts[0]), make().fit_counts(whole))


@quiet
def test_pickles_and_copies_count_on_by_themselves():
    table = people()[["age", "sex"]]
    counts = ConditionalCounts(secret="sex").update(table)
    for other in (
        pickle.loads(pickle.dumps(counts)),
        copy.copy(counts),
        copy.deepcopy(counts),
    ):
        other.update(table)
        assert (counts.n_rows, other.n_rows) == (300, 600)


@quiet
@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_kinds_of_frames(kind):
    table = people()[["age", "pay", "sex"]]
    given, secret = table, "sex"
    if kind == "polars":
        given = pl.DataFrame(table.to_dict("list"))
    if kind == "array":
        given = table.assign(sex=table["sex"] == "M").to_numpy(float)
        secret = 2
    counts = ConditionalCounts(secret=secret).update(given[:100]).update(given[100:])
    made = LAPLACE(secret=secret, random_state=1)
    rows = LAPLACE(secret=secret, random_state=1).fit(given)
    assert same_fit(rows, made.fit_counts(counts))
    released = [np.asarray(one.transform(given), float) for one in (made, rows)]
    np.testing.assert_array_equal(*released)


# --- weights --------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("make", [LAPLACE, GAUSSIAN], ids=["Laplace", "Gaussian"])
def test_a_weight_is_a_row_that_stands_there_as_often(make):
    table = people()[["age", "sex"]]
    weight = np.random.default_rng(2).integers(0, 4, len(table))
    counts = ConditionalCounts(secret="sex")
    for part in (slice(0, 50), slice(50, 51), slice(51, None)):
        counts.update(table[part], sample_weight=weight[part].astype(float))
    weighted = make(secret="sex").fit_counts(counts)
    assert same_fit(
        make(secret="sex").fit(table, sample_weight=weight.astype(float)), weighted
    )
    assert counts.n_rows == (weight > 0).sum()
    repeated = table.loc[table.index.repeat(weight)]
    again = make(secret="sex").fit_counts(
        ConditionalCounts.from_frame(repeated, secret="sex")
    )
    np.testing.assert_array_equal(again.scale_, weighted.scale_)
    assert again.guarantee_.weighted is False
    assert weighted.guarantee_.weighted is True


@quiet
def test_fractions_add_up_exactly_in_any_order():
    table = people(200)[["own", "sex"]]
    weight = np.random.default_rng(3).choice([0.1, 0.2, 1e-9, 3.0], 200)
    whole = ConditionalCounts.from_frame(table, secret="sex", sample_weight=weight)
    order = np.random.default_rng(4).permutation(200)
    parts = ConditionalCounts(secret="sex")
    for rows in np.array_split(order, 9):
        parts.update(table.iloc[rows], sample_weight=weight[rows])
    pd.testing.assert_frame_equal(parts.to_frame(), whole.to_frame())
    fitted = LAPLACE(secret="sex").fit(table, sample_weight=weight)
    assert same_fit(fitted, LAPLACE(secret="sex").fit_counts(parts))


@quiet
def test_rows_of_weight_zero_are_not_there():
    table = people()[["job", "sex"]]
    weight = np.where(table["job"] == "smith", 0.0, 1.0)
    table.loc[0, "sex"], weight[0] = "?", 0.0
    counts = ConditionalCounts(secret="sex").update(table, sample_weight=weight)
    counts.update(table[:3], sample_weight=np.zeros(3))
    made = RenyiPufferfishCategorical(secret="sex").fit_counts(counts)
    rows = RenyiPufferfishCategorical(secret="sex").fit(table, sample_weight=weight)
    assert same_fit(rows, made)
    assert made.categories_ == {"job": ("clerk", "nurse")}
    assert made.guarantee_.secret_values == ("F", "M")
    nothing = ConditionalCounts(secret="sex").update(table[:1], sample_weight=[0])
    with pytest.raises(ValueError, match="no rows were counted yet"):
        LAPLACE().fit_counts(nothing)


# --- where the secret comes from ------------------------------------------------


@quiet
def test_the_secret_need_not_be_named_again():
    table = people()[["sex", "age", "pay", "site"]]
    counts = ConditionalCounts(secret="sex", prior="site").update(table)
    named = LAPLACE(secret="sex", prior="site").fit(table)
    for made in (LAPLACE(), LAPLACE(secret_from_y=True), LAPLACE(secret=["sex"])):
        assert same_fit(named, made.fit_counts(counts))
        # With and without the secret's column, as after fit.
        assert made.transform(table).shape == (300, 2)
        assert made.transform(table[["age", "pay"]]).shape == (300, 2)
        np.testing.assert_array_equal(made.get_feature_names_out(), ["age", "pay"])


@quiet
def test_labels_given_beside_the_rows():
    table = people()
    X, sex, site = table[["age", "pay"]], table["sex"], table["site"]
    counts = ConditionalCounts()
    for part in (slice(0, 7), slice(7, None)):
        counts.update(X[part], secret=sex[part], prior=site[part])
    assert same_fit(
        LAPLACE().fit(X, secret=sex, prior=site), LAPLACE().fit_counts(counts)
    )
    both = ConditionalCounts().update(X, secret=table[["sex", "old"]])
    assert same_fit(
        LAPLACE().fit(X, secret=table[["sex", "old"]]), LAPLACE().fit_counts(both)
    )
    assert list(both.to_frame()) == ["age", "pay", "sex", "old", "count"]
    y = ConditionalCounts().update(X.to_numpy(), secret=sex.to_numpy())
    rows = LAPLACE(secret_from_y=True).fit(X.to_numpy(), sex.to_numpy())
    assert same_fit(rows, LAPLACE(secret_from_y=True).fit_counts(y))


DISAGREEING = {
    "another secret": (
        LAPLACE(secret="site"),
        r"secret='site', and the counts have secret=\['sex'\]",
    ),
    "another prior": (
        LAPLACE(prior="site"),
        "prior='site', and the counts have no prior: count with prior='site', or set",
    ),
    "two secrets": (LAPLACE(secret=["sex", "site"]), "secret"),
    "twice": (LAPLACE(secret="sex", secret_from_y=True), "more than once"),
}


@pytest.mark.parametrize("case", DISAGREEING)
def test_an_estimator_that_names_another_column_is_refused(case):
    made, words = DISAGREEING[case]
    counts = ConditionalCounts(secret="sex").update(people()[["age", "sex"]])
    with pytest.raises(ValueError, match=words):
        made.fit_counts(counts)
    assert not hasattr(made, "scale_")


def test_an_estimator_with_a_column_for_labels_given_beside_is_refused():
    table = people()
    counts = ConditionalCounts().update(table[["age"]], secret=table["sex"])
    with pytest.raises(ValueError, match=r"were given its labels \(update"):
        LAPLACE(secret="sex").fit_counts(counts)
    with pytest.raises(ValueError, match="fit_counts takes ConditionalCounts, got Dat"):
        LAPLACE(secret="sex").fit_counts(table)
    with pytest.raises(ValueError, match="no rows were counted yet"):
        LAPLACE(secret="sex").fit_counts(ConditionalCounts())


@quiet
def test_a_failed_fit_changes_nothing():
    table = people()[["age", "sex"]]
    counts = ConditionalCounts.from_frame(table, secret="sex")
    made = LAPLACE(secret="sex").fit_counts(counts)
    before = pickle.dumps(made)
    other = ConditionalCounts.from_frame(table.assign(sex="F"), secret="sex")
    with pytest.raises(ValueError, match="single value, 'F'"):
        made.fit_counts(other)
    with pytest.raises(ValueError, match="'age' has 300 values outside"):
        made.set_params(bounds=(0, 1), out_of_bounds="error").fit_counts(counts)
    assert pickle.dumps(made.set_params(bounds=None, out_of_bounds="clip")) == before


# --- a grid ---------------------------------------------------------------------


def on_grid(values, step):
    return np.floor(np.asarray(values, float) / step + 0.5) * step


@quiet
@pytest.mark.parametrize("kind", ["float64", "float32", "int64"])
def test_rows_are_rounded_before_noise_as_they_were_counted(kind):
    table = people()[["pay", "age", "sex"]].astype({"pay": kind, "age": kind})
    grid = {"pay": 64.0, "age": 5}
    counts = ConditionalCounts.from_frame(table, secret="sex", grid=grid)
    rounded = table.assign(
        pay=on_grid(table["pay"], 64.0), age=on_grid(table["age"], 5.0)
    )
    assert set(counts.to_frame()["pay"]) == set(rounded["pay"])
    made = LAPLACE(secret="sex", random_state=3).fit_counts(counts)
    other = LAPLACE(secret="sex", random_state=3).fit(rounded)
    np.testing.assert_array_equal(made.scale_, other.scale_)
    assert made.guarantee_.rounding == (64.0, 5.0)
    assert other.guarantee_.rounding == ()
    # The same noise on top of the rounded rows, at the precision of the column.
    released = made.transform(table)
    expected = other.transform(rounded).astype(released.dtypes)
    pd.testing.assert_frame_equal(released, expected)
    # Bounds after rounding, in fit and in transform.
    clipped = LAPLACE(secret="sex", bounds=(21, 47), random_state=3)
    apart = clipped.fit_counts(counts).transform(table).to_numpy()
    clipped.fit(rounded)
    np.testing.assert_array_equal(
        apart, clipped.transform(rounded).astype(released.dtypes).to_numpy()
    )


@quiet
def test_one_step_rounds_all_numbers_and_nothing_else():
    table = people()[["age", "job", "own", "sex"]]
    counts = ConditionalCounts.from_frame(table, secret="sex", grid=10)
    made = JointRelease(secret="sex", random_state=0).fit_counts(counts)
    rounded = table.assign(age=on_grid(table["age"], 10))
    other = JointRelease(secret="sex", random_state=0).fit(rounded)
    np.testing.assert_array_equal(made.scale_, other.scale_)
    assert made.guarantee_.rounding == (10.0, None, None)
    pd.testing.assert_frame_equal(made.transform(table), other.transform(rounded))


@quiet
def test_what_is_unchanged_is_on_the_grid():
    table = people()[["age", "sex"]].assign(age=[17.4, 17.6] * 150)
    counts = ConditionalCounts.from_frame(table, secret="sex", grid=2)
    made = LAPLACE(secret="sex").fit_counts(counts)
    assert made.scale_ == 0
    assert set(made.transform(table)["age"]) == {18.0}


@quiet
def test_the_guarantee_says_that_rows_are_rounded():
    table = people()[["age", "pay", "sex"]]
    counts = ConditionalCounts.from_frame(table, secret="sex", grid={"age": 2.5})
    assert "rounded to multiples of 2.5 (age)" in repr(counts)
    promise = LAPLACE(scope="column").fit_counts(counts).guarantee_
    assert "after rounding to multiples of 2.5 (age); Laplace" in str(promise)
    assert promise.to_dict()["rounding"] == [2.5, None]
    assert '"rounding": [\n    2.5,\n    null\n  ]' in promise.to_json()
    assert "2.5 (age)" in promise._repr_html_()
    plain = LAPLACE(scope="column", secret="sex").fit(table).guarantee_
    assert "rounding" not in str(plain)
    assert plain.to_dict()["rounding"] == []


@quiet
def test_held_out_rows_are_rounded_too():
    table, other = (people(seed=seed)[["pay", "sex"]] for seed in (0, 1))
    counts = ConditionalCounts.from_frame(table, secret="sex", grid=250)
    made = LAPLACE(secret="sex").fit_counts(counts)
    rounded = other.assign(pay=on_grid(other["pay"], 250))
    found = held_out_divergence(made, other)
    pd.testing.assert_frame_equal(found, held_out_divergence(made, rounded))
    plain = LAPLACE(secret="sex").fit(table.assign(pay=on_grid(table["pay"], 250)))
    assert held_out_divergence(plain, other)["divergence"][0] != found["divergence"][0]


@quiet
def test_an_audit_draws_rows_that_are_rounded():
    table = people()[["age", "sex"]]
    table["age"] += 30 * (table["sex"] == "M")
    counts = ConditionalCounts.from_frame(table, secret="sex", grid=20)
    made = LAPLACE(secret="sex", alpha=np.inf).fit_counts(counts)
    found = audit_estimator(made, table, n_samples=400, random_state=0)
    assert found.verdict == "no violation found"
    made.scale_ = made.scale_ / 64
    assert (
        audit_estimator(made, table, n_samples=2000, random_state=0).verdict
        == "refuted"
    )


def test_rounded_numbers_are_neither_gaussian_nor_categories():
    table = people()[["age", "sex"]]
    counts = ConditionalCounts.from_frame(table, secret="sex", grid=5)
    with pytest.raises(ValueError, match="count without a grid, or choose another"):
        GAUSSIAN(prior_model="gaussian").fit_counts(counts)
    with pytest.raises(ValueError, match="rounded to multiples of 5: count them as"):
        RenyiPufferfishCategorical(categories=[list(range(99))]).fit_counts(counts)


GRIDS = {
    "zero": (0, "grid=0.0 must be a number above 0"),
    "negative": (-1.0, "grid=-1.0 must be"),
    "text": ("5", "grid='5' must be"),
    "true": (True, "grid=True must be"),
    "infinite": (np.inf, "grid=inf must be"),
    "one of many": ({"age": np.nan}, r"grid\['age'\]=nan must be"),
    "an unknown column": ({"wage": 1}, "grid names 'wage', which is not a released"),
    "labels": ({"job": 1}, "grid names 'job', which holds labels: only numbers"),
    "too fine": ({"age": 1e-15}, r"column 'age': 300 of 300 values are 2\*\*50 steps"),
}


@pytest.mark.parametrize("case", GRIDS)
def test_grids_that_are_refused(case):
    grid, words = GRIDS[case]
    with pytest.raises(ValueError, match=words):
        ConditionalCounts.from_frame(
            people()[["age", "job", "sex"]], secret="sex", grid=grid
        )


# --- what is refused ------------------------------------------------------------


def chunk(**changes):
    table = people(40)[["age", "pay", "job", "own", "sex", "site"]]
    return table.assign(**changes)


WITH_HOLE = ["a", *([None] * 3), *"b" * 36]
UPDATES = {
    "a missing number": (
        chunk(pay=[np.nan, np.nan] + [1.0] * 38),
        "'pay' is missing .NaN. in 2 of 40 rows",
    ),
    "an infinite number": (
        chunk(pay=[np.inf] + [1.0] * 39),
        "'pay' is infinite .inf. in 1 of 40 rows",
    ),
    "pandas NA": (
        chunk(age=pd.array([pd.NA] + [1] * 39, dtype="Int64")),
        "'age' is missing .NaN. in 1 of 40 rows",
    ),
    "a missing label": (chunk(job=WITH_HOLE), "'job' is missing .NaN. in 3 of 40"),
    "a label that was missing": (
        chunk(job=["nan"] + ["a"] * 39),
        "'job' is missing, as the text 'nan', in 1 of 40",
    ),
    "a missing secret": (chunk(sex=WITH_HOLE), "secret 'sex' is missing in 3 of 40"),
    "a missing prior": (chunk(site=WITH_HOLE), "prior 'site' is missing in 3 of 40"),
    "many secrets": (
        pd.concat([chunk(), chunk()]).assign(sex=range(80)),
        "secret 'sex' has 80 distinct values, more than 50",
    ),
    "many secrets together": (
        chunk(sex=np.arange(40)),
        "the secret has 55 distinct values in all chunks, more than 50",
    ),
    "no secret": (chunk().drop(columns="sex"), "secret='sex' is not a column of X"),
    "a column less": (chunk().drop(columns="own"), "other columns than those counted"),
    "a column more": (chunk(more=1), "columns: .*'more'"),
    "another order": (chunk()[["pay", "age", "job", "own", "sex", "site"]], "order"),
    "text for numbers": (chunk(pay="1.5"), "kinds: .*numbers.* and .*labels"),
    "an array": (chunk().to_numpy(), "secret='sex' is a column name, but X has none"),
    "a lazy frame without a column": (
        pl.DataFrame(chunk().to_dict("list")).lazy().drop("pay"),
        "the rows have other columns",
    ),
    "a text": ("rows", "X must be a frame or a 2-D array, got a str"),
    "large whole numbers": (chunk(age=np.uint64(2**63)), "from 2..63 upwards"),
}


@pytest.mark.parametrize("case", UPDATES)
def test_a_chunk_that_is_refused_changes_nothing(case):
    rows, words = UPDATES[case]
    made = ConditionalCounts(secret="sex", prior="site")
    made.update(chunk(sex=[f"s{i % 15}" for i in range(40)]))
    before = made.to_frame()
    with pytest.raises((ValueError, TypeError), match=words):
        made.update(rows)
    pd.testing.assert_frame_equal(made.to_frame(), before)
    assert made.n_rows == 40


@pytest.mark.parametrize(
    ("places", "given", "words"),
    [
        ({}, {}, "there is no secret to count by: name its column"),
        ({"secret": "sex"}, {"secret": [1] * 40}, "secret is given twice, as a column"),
        (
            {"secret": "sex", "prior": "sex"},
            {},
            "secret and prior name the same column",
        ),
        (
            {"secret": "sex", "columns": ["sex"]},
            {},
            "columns names 'sex', which is the",
        ),
        ({"secret": "sex", "columns": []}, {}, "columns=.. must name at least one"),
        ({"secret": "sex", "columns": ["agee"]}, {}, "did you mean 'age'"),
        ({"secret": "sex"}, {"sample_weight": [-1.0] * 40}, "non-negative"),
        ({"secret": "sex"}, {"sample_weight": [1.0] * 3}, "3 values for 40 rows"),
        ({"max_distinct": 0}, {}, "max_distinct=0 must be an integer from 1"),
    ],
)
def test_arguments_that_are_refused(places, given, words):
    with pytest.raises(ValueError, match=words):
        ConditionalCounts(**places).update(chunk(), **given)


def test_weights_are_for_all_chunks_or_for_none():
    made = ConditionalCounts(secret="sex").update(chunk())
    with pytest.raises(ValueError, match="weighted: False and True"):
        made.update(chunk(), sample_weight=np.ones(40))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (ConditionalCounts(secret="site"), r"secret: .'sex'. and .'site'."),
        (ConditionalCounts(secret="sex", prior="site"), r"prior: None and .'site'."),
        (ConditionalCounts(secret="sex", grid=1), "grid: None and 1.0"),
        (ConditionalCounts(secret="sex", columns=["age"]), "columns: None and"),
        (chunk(), "cannot be merged with DataFrame"),
    ],
)
def test_counts_of_another_kind_are_not_merged(other, words):
    made = ConditionalCounts(secret="sex").update(chunk())
    before = made.to_frame()
    with pytest.raises(ValueError, match=words):
        made.merge(other)
    pd.testing.assert_frame_equal(made.to_frame(), before)
    # Of other columns, with the same parameters.
    with pytest.raises(ValueError, match="other columns than those counted before"):
        made.merge(ConditionalCounts(secret="sex").update(chunk(more=1)))
    pd.testing.assert_frame_equal(made.to_frame(), before)


def test_the_number_of_distinct_rows_is_limited():
    made = ConditionalCounts(secret="sex", max_distinct=50)
    rng = np.random.default_rng(0)
    few = pd.DataFrame({"age": range(20), "sex": ["F", "M"] * 10})
    for _ in range(20):
        made.update(few)
    assert (made.n_rows, made.n_distinct) == (400, 20)
    before = made.to_frame()
    many = pd.DataFrame({"age": rng.random(31), "sex": "F"})
    with pytest.raises(ValueError, match=r"51 distinct rows.*max_distinct=50.*grid="):
        made.update(many)
    with pytest.raises(ValueError, match=r"51 distinct rows"):
        made.merge(ConditionalCounts(secret="sex").update(many))
    pd.testing.assert_frame_equal(made.to_frame(), before)
    assert made.update(many[:30]).n_distinct == 50


def test_nothing_of_the_values_is_shown():
    table = pd.DataFrame({"age": [73.25, 73.25], "sex": ["Zoë", "Yan"]})
    made = ConditionalCounts(secret="sex").update(table)
    assert repr(made) == "<ConditionalCounts of 2 rows, 2 distinct: age given sex>"
    assert repr(ConditionalCounts()) == "<ConditionalCounts of 0 rows>"


def test_no_rows_are_no_mistake():
    made = ConditionalCounts(secret="sex").update(chunk()[:0]).update(chunk())
    assert made.update(chunk()[:0]).merge(ConditionalCounts(secret="sex")).n_rows == 40
