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
)

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
        given, secret = table.replace({"sex": {"F": 0.0, "M": 1.0}}).to_numpy(float), 2
    counts = ConditionalCounts(secret=secret).update(given[:100]).update(given[100:])
    made = LAPLACE(secret=secret, random_state=1)
    rows = LAPLACE(secret=secret, random_state=1).fit(given)
    assert same_fit(rows, made.fit_counts(counts))
    released = [np.asarray(one.transform(given), float) for one in (made, rows)]
    np.testing.assert_array_equal(*released)
