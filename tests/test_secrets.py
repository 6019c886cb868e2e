"""Labels and missing values: every guise of a secret, and of one that is not there."""

import re
import warnings
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skpuffer import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.exceptions import ParameterError, SkpufferWarning

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
N = 60


def values(n=N, seed=0):
    return pd.DataFrame(
        np.random.default_rng(seed).normal([50.0, 20.0], [9.0, 4.0], (n, 2)).round(3),
        columns=["age", "bmi"],
    )


def texts(n=N):
    return ["F" if i % 3 else "M" for i in range(n)]


def fit(secret, **parameters):
    return RenyiPufferfishLaplace(**parameters).fit(values(), secret=secret)


def with_missing(missing, rows=(3, 5)):
    return [missing if i in rows else label for i, label in enumerate(texts())]


# --- secrets that are missing ---------------------------------------------------

NOTHING = {"None": None, "nan": float("nan"), "NA": pd.NA, "NaT": pd.NaT}
numbers = [None if i in (3, 5) else i % 2 for i in range(N)]
MISSING = {
    f"{container.__name__} of {name}": container(with_missing(nothing))
    for name, nothing in NOTHING.items()
    for container in (list, tuple, pd.Series)
}
MISSING |= {
    f"object array of {name}": np.array(with_missing(nothing), dtype=object)
    for name, nothing in NOTHING.items()
}
MISSING |= {
    "text array of nan": np.array(with_missing(np.nan)),
    "text array of None": np.array(with_missing(None), dtype=object).astype(str),
    "text array of NA": np.array(with_missing(pd.NA), dtype=object).astype(str),
    "bytes of nan": np.array(with_missing(np.nan)).astype("S"),
    "column of a text array": np.array(with_missing(np.nan))[:, np.newaxis],
    "series of texts": pd.Series(np.array(with_missing(np.nan))),
    "masked texts": np.ma.array(texts(), mask=[i in (3, 5) for i in range(N)]),
    "masked integers": np.ma.array(
        np.arange(N) % 2, mask=[i in (3, 5) for i in range(N)]
    ),
    "float array": np.array(numbers, dtype=float),
    "Int64": pd.array(numbers, dtype="Int64"),
    "boolean series": pd.Series(numbers, dtype="boolean"),
    "string series": pd.Series(with_missing(None), dtype="string"),
    "categorical series": pd.Series(with_missing(None), dtype="category"),
    "categorical": pd.Categorical(with_missing(None)),
    "dates": pd.Series([pd.NaT if i in (3, 5) else "2020-01-01" for i in range(N)]),
    "date array": np.array(
        ["NaT" if i in (3, 5) else "2020-01-01" for i in range(N)], dtype="M8[D]"
    ),
    "cut": pd.cut([99 if i in (3, 5) else i % 9 for i in range(N)], [-1, 4, 9]),
    "pandas frame": pd.DataFrame({"secret": with_missing(None)}),
    "polars texts": pl.Series(with_missing(None)),
    "polars integers": pl.Series(numbers),
    "polars booleans": pl.Series([n if n is None else bool(n) for n in numbers]),
    "polars categories": pl.Series(with_missing(None), dtype=pl.Categorical),
    "polars nan": pl.Series([float("nan") if n is None else float(n) for n in numbers]),
    "polars frame": pl.DataFrame({"secret": with_missing(None)}),
    "tuples in a series": pd.Series([(label, 1) for label in with_missing(np.nan)]),
}


@pytest.mark.parametrize("secret", MISSING.values(), ids=MISSING)
def test_missing_secrets_raise_with_their_count(secret):
    with pytest.raises(ValueError, match=r"'secret' is missing in 2 of 60 rows"):
        fit(secret)
    with pytest.raises(ValueError, match=r"'secret' is missing in 2 of 60 rows"):
        RenyiPufferfishGaussian(secret_from_y=True).fit(values(), secret)
    with pytest.raises(ValueError, match=r"prior '\w+' is missing in 2 of 60 rows"):
        RenyiPufferfishLaplace().fit(values(), secret=texts(), prior=secret)


@pytest.mark.parametrize("build", [pd.DataFrame, pl.DataFrame])
def test_missing_secrets_in_a_column_raise_with_its_name(build):
    frame = build({**values().to_dict("list"), "disease": with_missing(None)})
    estimator = RenyiPufferfishLaplace(secret="disease")
    with pytest.raises(ValueError, match=r"secret 'disease' is missing in 2 of 60"):
        estimator.fit(frame)
    estimator = RenyiPufferfishLaplace(secret=["disease", "group"])
    extra = {"group": [None if i == 7 else "a" for i in range(N)]}
    frame = build({**values().to_dict("list"), "disease": texts(), **extra})
    with pytest.raises(ValueError, match=r"secret 'group' is missing in 1 of 60"):
        estimator.fit(frame)


def test_a_missing_value_spelt_out_is_shown_as_found():
    with pytest.raises(ValueError, match=r"as the text 'nan'\): drop these rows"):
        fit(np.array(with_missing(np.nan)))


def test_missing_and_spelt_out_are_counted_together():
    mixed = with_missing("nan", rows=(1,))
    mixed[9] = None
    with pytest.raises(ValueError, match="missing in 2 of 60"):
        fit(mixed)


@pytest.mark.parametrize("label", ["None", "none", "N/A", "", "Nana", "unknown"])
def test_words_that_may_be_a_category_stay_one(label):
    secret = [label if i % 2 else "mild" for i in range(N)]
    assert set(fit(secret).guarantee_.pairs[0]) == {label, "mild"}


# --- values that are missing or infinite ----------------------------------------


def frames_with_a_hole():
    yield "float", values().assign(bmi=lambda t: t["bmi"].mask(t.index < 2))
    for dtype in ("Float64", "Float32", "Int64", "boolean"):
        column = pd.array([pd.NA, pd.NA] + [1] * (N - 2), dtype=dtype)
        yield dtype, values().assign(bmi=column)
    for name, nothing in (("None", None), ("nan", np.nan), ("NA", pd.NA)):
        column = pd.Series([nothing, nothing] + [1.5] * (N - 2), dtype=object)
        yield f"object {name}", values().assign(bmi=column)
    for name, column in (
        ("null", [None, None] + [1.5] * (N - 2)),
        ("integer null", [None, None] + [1] * (N - 2)),
        ("boolean null", [None, None] + [True] * (N - 2)),
        ("nan", [float("nan")] * 2 + [1.5] * (N - 2)),
    ):
        ages = values()["age"].to_list()
        yield f"polars {name}", pl.DataFrame({"age": ages, "bmi": column})


@pytest.mark.parametrize(
    "frame", [pytest.param(frame, id=name) for name, frame in frames_with_a_hole()]
)
def test_missing_values_raise_with_column_and_count(frame):
    message = r"column 'bmi' is missing \(NaN\) in 2 of 60 rows"
    with pytest.raises(ValueError, match=message):
        RenyiPufferfishLaplace().fit(frame, secret=texts())
    whole = (
        values()
        if isinstance(frame, pd.DataFrame)
        else pl.DataFrame(values().to_dict("list"))
    )
    estimator = RenyiPufferfishLaplace().fit(whole, secret=texts())
    with pytest.raises(ValueError, match=message):
        estimator.transform(frame)


@pytest.mark.parametrize(
    ("hole", "dtype"),
    [
        *product([np.nan, np.inf, -np.inf], [np.float64, np.float32, object]),
        *product([None, pd.NA], [object]),
    ],
)
def test_holes_in_arrays_raise_with_column_and_count(hole, dtype):
    what = "missing (NaN)" if pd.isna(hole) else "infinite (inf)"
    message = re.escape(f"column 'x1' is {what} in 3 of 60 rows")
    whole = values().to_numpy()
    estimator = RenyiPufferfishLaplace().fit(whole, secret=texts())
    holed = whole.astype(dtype)
    holed[[1, 4, 6], 1] = hole
    with pytest.raises(ValueError, match=message):
        RenyiPufferfishLaplace().fit(holed, secret=texts())
    with pytest.raises(ValueError, match=message):
        estimator.transform(holed)


def test_opposite_infinities_do_not_hide_each_other():
    holed = values().to_numpy(copy=True)
    holed[[1, 4], 0] = np.inf, -np.inf
    with pytest.raises(ValueError, match=r"column 'x0' is infinite \(inf\) in 2 of 60"):
        RenyiPufferfishLaplace().fit(holed, secret=texts())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("secret", [None, 2])
def test_masked_values_are_missing(dtype, secret):
    whole = np.column_stack([values(), np.arange(N) % 2]).astype(dtype)
    masked = np.ma.array(whole, mask=np.zeros_like(whole, dtype=bool))
    estimator = RenyiPufferfishLaplace(secret=2).fit(masked)
    assert estimator.transform(masked).shape == (N, 2)
    masked[7, 1] = np.ma.masked
    message = r"column 'x1' is missing \(NaN\) in 1 of 60 rows"
    with pytest.raises(ValueError, match=message):
        RenyiPufferfishLaplace(secret=secret).fit(
            masked, secret=texts() if secret is None else None
        )
    with pytest.raises(ValueError, match=message):
        estimator.transform(masked)
    masked = np.ma.array(whole, mask=np.zeros_like(whole, dtype=bool))
    masked[7, 2] = np.ma.masked
    with pytest.raises(ValueError, match=r"secret 'x2' is missing in 1 of 60 rows"):
        RenyiPufferfishLaplace(secret=2).fit(masked)


def test_nothing_is_drawn_for_rows_that_are_refused():
    estimator = RenyiPufferfishLaplace(random_state=3).fit(values(), secret=texts())
    twin = RenyiPufferfishLaplace(random_state=3).fit(values(), secret=texts())
    with pytest.raises(ValueError, match="is missing"):
        estimator.transform(values().assign(age=np.nan))
    pd.testing.assert_frame_equal(
        estimator.transform(values()), twin.transform(values())
    )


# --- kinds of labels ------------------------------------------------------------

KINDS = {
    "texts": (["b", "a"], ("a", "b")),
    "bools": ([True, False], (False, True)),
    "numpy bools": (list(np.array([True, False])), (False, True)),
    "integers": ([10, 9], (9, 10)),
    "numpy integers": (list(np.array([10, 9], dtype=np.int8)), (9, 10)),
    "floats": ([1.5, -2.0], (-2.0, 1.5)),
}


@pytest.mark.parametrize(("given", "expected"), KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    "container",
    [list, pd.Series, pl.Series, np.array, lambda v: pd.Series(v, dtype="category")],
    ids=["list", "pandas", "polars", "array", "category"],
)
def test_labels_come_out_sorted_as_python_values(given, expected, container):
    if container is pl.Series and isinstance(given[0], np.generic):
        given = [value.item() for value in given]
    pairs = fit(container([given[i % 2] for i in range(N)])).guarantee_.pairs
    assert pairs == (expected,)
    assert [type(label) for label in pairs[0]] == [type(label) for label in expected]


@pytest.mark.parametrize("order", [1, -1])
def test_labels_of_mixed_types_are_sorted_whatever_the_order_of_rows(order):
    labels = ["b", 10, "a", 9, 2.5]
    secret = [labels[i % 5] for i in range(N)][::order]
    pairs = fit(secret).guarantee_.pairs
    seen = [pairs[0][0]] + [second for first, second in pairs if first == pairs[0][0]]
    assert seen == [2.5, 10, 9, "a", "b"]


def test_dates_are_the_same_labels_from_arrays_and_series():
    days = np.array(["2020-01-02", "2020-01-01"] * (N // 2), dtype="M8[D]")
    expected = ((pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")),)
    for secret in (days, days.astype("M8[ns]"), pd.Series(days)):
        assert fit(secret).guarantee_.pairs == expected
    assert fit(days, secret_pairs=list(expected)).guarantee_.pairs == expected


def test_categories_without_rows_are_no_labels():
    secret = pd.Series(pd.Categorical(texts(), categories=["X", "M", "F"]))
    assert fit(secret).guarantee_.pairs == (("F", "M"),)


def test_the_scale_does_not_depend_on_the_kind_of_label():
    as_text = fit(texts()).scale_
    for secret in (
        [label == "F" for label in texts()],
        [7 if label == "F" else 3 for label in texts()],
        pd.Categorical(texts()),
        pl.Series(texts()),
        np.array(texts())[:, np.newaxis],
        pd.DataFrame({"sex": texts()}),
    ):
        np.testing.assert_array_equal(fit(secret).scale_, as_text)


def test_labels_under_a_name_carry_it_into_the_guarantee():
    named = pd.Series(texts(), name="sex")
    assert fit(named).guarantee_.secret == ("sex",)
    assert fit(pl.Series("sex", texts())).guarantee_.secret == ("sex",)
    assert fit(named.to_frame()).guarantee_.secret == ("sex",)
    for unnamed in (texts(), pl.Series(texts()), pd.Series(texts())):
        assert fit(unnamed).guarantee_.secret == ("secret",)


# --- several secret columns -----------------------------------------------------


def two_secrets():
    return pd.DataFrame({"sex": texts(), "ill": [bool(i % 2) for i in range(N)]})


def test_several_secret_columns_give_tuples_however_they_come():
    both = two_secrets()
    together = pd.concat([values(), both], axis=1)
    column = RenyiPufferfishLaplace(secret=["sex", "ill"]).fit(together)
    labels = [("F", False), ("F", True), ("M", False), ("M", True)]
    assert column.guarantee_.pairs == tuple(
        (first, second) for i, first in enumerate(labels) for second in labels[i + 1 :]
    )
    assert column.guarantee_.secret == ("sex", "ill")
    sizes = both.value_counts()
    assert column.guarantee_.group_sizes == tuple(
        (None, label, sizes[label]) for label in labels
    )
    for secret in (
        both,
        both.to_numpy(),
        list(both.itertuples(index=False, name=None)),
        both.to_numpy().tolist(),
        list(both.to_numpy()),
        pl.DataFrame(both.to_dict("list")),
    ):
        other = fit(secret)
        np.testing.assert_array_equal(other.scale_, column.scale_)
        assert other.guarantee_.pairs == column.guarantee_.pairs
    # The pairs of one secret alone are fewer, and need less noise.
    assert (fit(both["sex"]).scale_ < column.scale_).all()


def test_combinations_that_do_not_occur_are_no_labels():
    both = two_secrets()
    both.loc[both["sex"] == "M", "ill"] = True
    assert len(fit(both).guarantee_.pairs) == 3


def test_pairs_of_tuples():
    chosen = [(("M", True), ("F", True))]
    fitted = fit(two_secrets(), secret_pairs=chosen)
    assert fitted.guarantee_.pairs == ((("F", True), ("M", True)),)
    assert (fitted.scale_ < fit(two_secrets()).scale_).all()


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        (
            [["a", 1]] * 30 + [["b"]] * 30,
            "equally many labels in every row, got 1 to 2",
        ),
        ([["a", 1]] * 30 + ["b"] * 30, "equally many labels in every row, got 0 to 2"),
        (pd.Series([["a"], ["b"]] * 30), "one label a row.*unhashable"),
        (np.zeros((N, 2, 2)), "one label a row, got 3 dimensions"),
        ("F", "name a column in the constructor"),
        ({"F": 1}, "one label a row, got 0 dimensions"),
    ],
)
def test_what_is_no_label_a_row_is_refused(secret, message):
    with pytest.raises(ParameterError, match=message):
        fit(secret)


@pytest.mark.parametrize("secret", [texts(59), pd.Series(texts(61)), two_secrets()[1:]])
def test_a_secret_of_another_length_is_refused(secret):
    with pytest.raises(ValueError, match=rf"has {len(secret)} labels for 60 rows of X"):
        fit(secret)


# --- pairs ----------------------------------------------------------------------


def three(n=N):
    return np.array(["a", "b", "c"])[np.arange(n) % 3]


def test_all_pairs_by_default():
    assert fit(three()).guarantee_.pairs == (("a", "b"), ("a", "c"), ("b", "c"))


@pytest.mark.parametrize(
    "pairs",
    [
        [("c", "a"), ("a", "b")],
        [["a", "c"], ["b", "a"], ["c", "a"]],
        (("a", "c"), ("a", "b")),
        np.array([["a", "c"], ["a", "b"]]),
    ],
)
def test_given_pairs_only_each_once_in_order(pairs):
    fitted = fit(three(), secret_pairs=pairs)
    assert set(fitted.guarantee_.pairs) == {("a", "b"), ("a", "c")}
    assert len(fitted.guarantee_.pairs) == 2


def test_the_scale_is_the_largest_over_the_pairs_given():
    data = values().assign(age=lambda t: t["age"] + 30 * (three() == "c"))

    def scale(pairs):
        return (
            RenyiPufferfishLaplace(secret_pairs=pairs).fit(data, secret=three()).scale_
        )

    near, far = scale([("a", "b")]), scale([("a", "c")])
    assert (near < far).all()
    np.testing.assert_array_equal(scale([("a", "b"), ("a", "c")]), far)
    assert (scale("all") >= far).all()


def test_numbers_in_pairs_match_labels_of_another_number_type():
    X = np.column_stack([values(), np.arange(N) % 3])
    fitted = RenyiPufferfishLaplace(secret=2, secret_pairs=[(0, 2)]).fit(X)
    assert fitted.guarantee_.pairs == ((0.0, 2.0),)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "z")], r"holds \('a', 'z'\).*\('a', 'b', 'c'\)"),
        ([("a", "a")], "not a pair of two different values"),
        ([("a", "b", "c")], "must be 'all' or a list of pairs"),
        ([("a",)], "must be 'all' or a list of pairs"),
        (["ab"], "must be 'all' or a list of pairs"),
        (("a", "b"), "must be 'all' or a list of pairs"),
        ([], "must be 'all' or a list of pairs"),
        (None, "must be 'all' or a list of pairs"),
        (7, "must be 'all' or a list of pairs"),
        ("every", "'every' must be 'all' or a list of pairs"),
        ([(1, 2)], r"holds \(1, 2\)"),
    ],
)
def test_a_wrong_pair_is_named(pairs, message):
    with pytest.raises(ParameterError, match=f"(?s)secret_pairs.*{message}"):
        fit(three(), secret_pairs=pairs)


def test_a_value_without_weight_is_unknown():
    weight = (three() != "c").astype(float)
    estimator = RenyiPufferfishLaplace(secret_pairs=[("a", "c")])
    with pytest.raises(ParameterError, match="not a pair of two different"):
        estimator.fit(values(), secret=three(), sample_weight=weight)
    fitted = RenyiPufferfishLaplace().fit(
        values(), secret=three(), sample_weight=weight
    )
    assert fitted.guarantee_.pairs == (("a", "b"),)


# --- secrets that are none ------------------------------------------------------


@pytest.mark.parametrize(
    "secret",
    [np.arange(N), np.linspace(0, 1, N), [f"name{i}" for i in range(N)]],
    ids=["integers", "floats", "names"],
)
def test_a_continuous_secret_is_refused_with_advice(secret):
    with pytest.raises(ValueError, match=r"has 60 distinct values, more than 50: bin"):
        fit(secret)
    with pytest.raises(ValueError, match=r"has 60 distinct values, more than 50: bin"):
        RenyiPufferfishLaplace(secret_from_y=True).fit(values(), secret)


def test_fifty_values_are_not_too_many_and_one_is_too_few():
    data, codes = np.arange(100.0)[:, np.newaxis] ** 2, np.arange(100) % 51
    estimator = RenyiPufferfishLaplace(secret_pairs=[(0, 1)])
    with pytest.raises(ValueError, match="51 distinct values"):
        estimator.fit(data, secret=codes)
    assert estimator.fit(data, secret=codes % 50).guarantee_.pairs == ((0, 1),)
    with pytest.raises(ParameterError, match="single value, 'F'"):
        fit(["F"] * N)


@pytest.mark.parametrize(
    "spec",
    [
        np.array(texts()),
        pd.Series(texts()),
        pd.DataFrame({"sex": texts()}),
        pl.Series(texts()),
        {"sex"},
        texts(),
    ],
    ids=lambda spec: type(spec).__name__,
)
@pytest.mark.parametrize("parameter", ["secret", "prior"])
def test_labels_in_the_constructor_are_sent_to_fit(spec, parameter):
    estimator = RenyiPufferfishLaplace(**{"secret": "sex", parameter: spec})
    with pytest.raises(
        ParameterError, match=rf"fit\(X, {parameter}=labels\)"
    ) as caught:
        estimator.fit(values().assign(sex=texts()))
    # The data are not spelt out in the message.
    assert len(str(caught.value)) < 250


def test_a_frame_of_secrets_only_has_nothing_to_release():
    frame = pd.DataFrame({"sex": texts(), "ill": texts()})
    for X, secret in ((frame, ["sex", "ill"]), (frame.to_numpy(), [0, 1])):
        with pytest.raises(ParameterError, match="no column to release"):
            RenyiPufferfishLaplace(secret=secret).fit(X)


def test_good_secrets_fit_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SkpufferWarning)
        data = values(600)
        RenyiPufferfishLaplace(epsilon=5).fit(data, secret=texts(600))
