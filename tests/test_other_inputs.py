"""What is given in the wrong place, or of two kinds, is named; lazy rows are read once."""

import numpy as np
import pandas as pd
import pytest

from skpuffer import (
    ConditionalCounts,
    RenyiPufferfishLaplace,
    compare_mechanisms,
)
from skpuffer.displays import NoiseDisplay
from skpuffer.exceptions import ParameterError
from skpuffer.metrics import KernelMoments

dd = pytest.importorskip("dask.dataframe")


def people(n=120):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "pay": rng.integers(0, 9, n),
            "sex": np.arange(n) % 2,
        }
    )


def read_once(table):
    """Return a Dask frame, and how often each of its partitions was read."""
    reads = []

    def part(place):
        reads.append(place)
        return table.iloc[place::3]

    lazy = dd.from_map(part, range(3), meta=table.head(0))
    return lazy, reads


@pytest.mark.parametrize("way", ["frames", "dask"])
def test_moments_are_of_the_same_columns_in_the_same_order(way):
    table = people()[["age", "pay"]]
    make = (
        (lambda x: dd.from_pandas(x, npartitions=2)) if way == "dask" else (lambda x: x)
    )
    right, wrong = make(table), make(table[["pay", "age"]])
    moments = KernelMoments(gamma=0.1).partial_fit(right)
    other = KernelMoments(gamma=0.1).partial_fit(wrong)
    with pytest.raises(ValueError, match=r"columns pay, age, .* had age, pay"):
        moments.partial_fit(wrong)
    for attempt in (moments.merge, moments.divergence):
        with pytest.raises(ParameterError, match=r"\(age, pay; pay, age\)"):
            attempt(other)
    assert moments.count == len(table)
    # An array has no names to differ.
    moments.merge(KernelMoments(gamma=0.1).partial_fit(table.to_numpy()))
    assert moments.count == 2 * len(table)


def test_one_column_under_several_levels_is_a_secret_everywhere():
    table = people()
    table.columns = pd.MultiIndex.from_tuples(
        [("v", "age"), ("v", "pay"), ("p", "sex")]
    )
    secret = ("p", "sex")
    fitted = RenyiPufferfishLaplace(secret=secret).fit(table)
    counts = ConditionalCounts.from_frame(table, secret=secret)
    lazy = dd.from_pandas(table, npartitions=2)
    for other in (
        RenyiPufferfishLaplace(secret=secret).fit_counts(counts),
        RenyiPufferfishLaplace(secret=secret).fit(lazy),
    ):
        np.testing.assert_array_equal(other.scale_, fitted.scale_)


def test_lazy_rows_are_read_once_for_a_comparison():
    table = people()
    expected = compare_mechanisms(table, secret="sex")
    lazy, reads = read_once(table)
    pd.testing.assert_frame_equal(compare_mechanisms(lazy, secret="sex"), expected)
    assert sorted(reads) == [0, 1, 2]
    counts = ConditionalCounts.from_frame(table, secret="sex")
    pd.testing.assert_frame_equal(compare_mechanisms(counts), expected)
    NoiseDisplay.from_frame(
        lazy, secret="sex", alphas=[2, 4], epsilons=[1], column="age"
    )
    assert sorted(reads) == [0, 0, 1, 1, 2, 2]


def test_the_secret_of_lazy_rows_may_stand_beside_them():
    lazy = dd.from_pandas(people(), npartitions=2)
    beside = compare_mechanisms(lazy[["age", "pay"]], secret=lazy["sex"])
    pd.testing.assert_frame_equal(
        beside.drop(columns="guarantee"),
        compare_mechanisms(people(), secret="sex").drop(columns="guarantee"),
    )


def test_weighted_counts_come_back():
    rng = np.random.default_rng(0)
    weight = rng.choice([0.5, 1.0, 3.0], 120)
    counts = ConditionalCounts(secret="sex").update(people(), sample_weight=weight)
    again = ConditionalCounts.from_counts(
        counts.to_frame(), secret="sex", count="count", weight="weight"
    )
    pd.testing.assert_frame_equal(again.to_frame(), counts.to_frame())


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (ConditionalCounts(secret="sex"), "ConditionalCounts; counts serve fit_counts"),
        ({"age": [1, 2]}, "got a dict"),
        ("people.csv", "got a str"),
    ],
    ids=["counts", "dict", "path"],
)
def test_what_is_no_table_is_named(given, told):
    noise = RenyiPufferfishLaplace(secret="sex")
    fitted = RenyiPufferfishLaplace(secret="sex").fit(people())
    for attempt in (
        noise.fit,
        fitted.transform,
        ConditionalCounts(secret="sex").update,
    ):
        with pytest.raises(TypeError, match=told):
            attempt(given)


def test_labels_that_differ_by_their_type_alone_are_refused():
    numbers, texts = people(), people().astype({"sex": str}).astype({"sex": object})
    told = "has both 0 and '0' among its values"
    with pytest.raises(ParameterError, match=told):
        RenyiPufferfishLaplace(secret="sex").fit(pd.concat([numbers, texts]))
    counts = ConditionalCounts(secret="sex").update(numbers)
    with pytest.raises(ParameterError, match=told):
        counts.update(texts)
    assert counts.n_rows == len(numbers)
    # Equal numbers are one label, whatever their type.
    assert counts.update(numbers.astype({"sex": float})).n_rows == 2 * len(numbers)
