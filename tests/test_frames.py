"""Frames: what goes in with names, an index and types comes out with them."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skpuffer import (
    ConditionalCounts,
    JointRelease,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    held_out_divergence,
)

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
mechanisms = pytest.mark.parametrize(
    "mechanism",
    [RenyiPufferfishLaplace, RenyiPufferfishGaussian, RenyiPufferfishExponential],
)
kinds = pytest.mark.parametrize("kind", ["pandas", "polars"])
N = 60
# An epsilon so large that the noise is far smaller than the gaps between values.
FAINT = {"epsilon": 1e6, "random_state": 0}


def faint(mechanism):
    """For noise that hardly shows, on a grid that still reaches the values."""
    exponential = mechanism is RenyiPufferfishExponential
    return {**FAINT, "epsilon": 1e4} if exponential else FAINT


def people():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.permutation(N) * 10,
            "sex": np.where(np.arange(N) % 3, "F", "M"),
            "bmi": rng.permutation(N) * 100.0,
            "job": [f"job {i % 7}" for i in range(N)],
            "children": np.arange(N) % 4,
        }
    )


PEOPLE = people()
BRANCH = ["age", "sex", "bmi"]
TABLE = PEOPLE[BRANCH]


def frame_of(kind, table=TABLE):
    return table if kind == "pandas" else pl.DataFrame(table.to_dict("list"))


def to_numpy(frame):
    return np.asarray(frame, dtype=float)


def dtypes(frame):
    return [str(dtype).lower() for dtype in frame.dtypes]


# --- the release of a frame -----------------------------------------------------


@mechanisms
def test_a_frame_gets_the_noise_that_its_array_gets(mechanism):
    released = mechanism(secret="sex", random_state=1).fit_transform(TABLE)
    array = mechanism(secret=1, random_state=1).fit_transform(TABLE.to_numpy())
    assert type(array) is np.ndarray
    np.testing.assert_array_equal(to_numpy(released), array)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([f"person {i}" for i in range(N)], name="id"),
        pd.RangeIndex(100, 100 - N, -1),
        pd.Index(np.arange(N) // 2),
        pd.MultiIndex.from_product([["a", "b"], range(N // 2)], names=["u", "v"]),
        pd.date_range("2020-01-01", periods=N, freq="D"),
    ],
    ids=["texts", "backwards", "repeated", "levels", "dates"],
)
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_the_index_survives_and_aligns_nothing(index, output):
    table = TABLE.set_axis(index)
    estimator = RenyiPufferfishLaplace(secret="sex", random_state=2)
    expected = estimator.fit_transform(TABLE)
    released = estimator.set_output(transform=output).fit_transform(table)
    pd.testing.assert_index_equal(released.index, index)
    np.testing.assert_array_equal(released.to_numpy(), expected.to_numpy())
    by_keyword = RenyiPufferfishLaplace(random_state=2).fit_transform(
        table[["age", "bmi"]], secret=PEOPLE["sex"].to_numpy()
    )
    np.testing.assert_array_equal(by_keyword.to_numpy(), expected.to_numpy())


@mechanisms
def test_rows_may_be_transformed_in_any_order_and_part(mechanism):
    estimator = mechanism(secret="sex", **faint(mechanism)).fit(TABLE)
    part = TABLE.sample(frac=0.4, random_state=0)
    released = estimator.transform(part)
    pd.testing.assert_index_equal(released.index, part.index)
    distance = np.abs(released.to_numpy() - part[["age", "bmi"]].to_numpy())
    assert (distance < [4, 40]).all()


# --- types ----------------------------------------------------------------------

TYPES = {
    "pandas": {
        "float32": "float32",
        "Float32": "float32",
        "float64": "float64",
        "Float64": "float64",
        "int8": "float64",
        "Int64": "float64",
        "uint16": "float64",
        "object": "float64",
    },
    "polars": {
        pl.Float32: "float32",
        pl.Float64: "float64",
        pl.Int8: "float64",
        pl.UInt32: "float64",
        pl.Decimal(10, 2): "float64",
    },
}


@pytest.mark.parametrize("other", ["float64", "float32"])
@pytest.mark.parametrize(
    ("kind", "dtype", "expected"),
    [(kind, *item) for kind, types in TYPES.items() for item in types.items()],
)
def test_float32_stays_and_everything_else_becomes_float64(
    kind, dtype, expected, other
):
    table = TABLE.assign(age=np.arange(N) % 100)
    if kind == "pandas":
        frame = table.astype({"age": dtype, "bmi": other})
    else:
        wide = {"float32": pl.Float32, "float64": pl.Float64}[other]
        frame = frame_of("polars", table).cast({"age": dtype, "bmi": wide})
    estimator = RenyiPufferfishLaplace(secret="sex", random_state=9).fit(frame)
    released = estimator.transform(frame)
    assert dtypes(released) == [expected, other]
    double = RenyiPufferfishLaplace(secret="sex", random_state=9).fit(table)
    np.testing.assert_allclose(estimator.scale_, double.scale_, rtol=1e-12)
    np.testing.assert_allclose(
        to_numpy(released), double.transform(table).to_numpy(), rtol=1e-6, atol=1e-3
    )


@kinds
def test_booleans_are_released_as_numbers(kind):
    table = TABLE.assign(age=TABLE["age"] > 300)
    estimator = RenyiPufferfishLaplace(secret="sex", **FAINT)
    released = to_numpy(estimator.fit_transform(frame_of(kind, table)))
    np.testing.assert_allclose(released[:, 0], table["age"], atol=0.2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.float16, bool])
def test_arrays_keep_float32(dtype):
    array = TABLE[["age", "bmi"]].to_numpy().astype(dtype)
    estimator = RenyiPufferfishLaplace()
    released = estimator.fit_transform(array, secret=PEOPLE["sex"])
    assert released.dtype == (np.float32 if dtype == np.float32 else np.float64)
    both = estimator.set_output(transform="pandas").transform(array)
    assert set(both.dtypes) == {released.dtype}


@kinds
@pytest.mark.parametrize(
    ("column", "held"),
    [
        ([f"{i}" for i in range(N)], "String"),
        (pd.date_range("2020", periods=N), "Datetime"),
        (pd.Series(["a", "b"] * (N // 2), dtype="category"), "Categorical"),
    ],
    ids=["texts", "dates", "categories"],
)
def test_what_is_no_number_is_named_and_refused(kind, column, held):
    table = TABLE.assign(bmi=column)
    frame = frame_of(kind, table)
    if kind == "polars" and held == "Categorical":
        frame = frame.cast({"bmi": pl.Categorical})
    with pytest.raises(ValueError, match=rf"column 'bmi' holds {held}.*ColumnTransfor"):
        RenyiPufferfishLaplace(secret="sex").fit(frame)
    fitted = RenyiPufferfishLaplace(secret="sex").fit(frame_of(kind))
    with pytest.raises(ValueError, match=rf"column 'bmi' holds {held}.*ColumnTransfor"):
        fitted.transform(frame)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_refusal_does_not_list_the_labels_of_a_column(kind):
    frame = frame_of(kind)
    if kind == "pandas":
        text = pd.Categorical(["low", "high"] * (N // 2), ["low", "high"], ordered=True)
        frame = frame.assign(bmi=text)
    else:
        text = pl.Series("bmi", ["low", "high"] * (N // 2), pl.Enum(["low", "high"]))
        frame = frame.with_columns(text)
    with pytest.raises(
        ValueError, match=r"'bmi' holds (Enum|Categorical), and"
    ) as refusal:
        RenyiPufferfishLaplace(secret="sex").fit(frame)
    assert "high" not in str(refusal.value)


# --- set_output -----------------------------------------------------------------


@mechanisms
@pytest.mark.parametrize("output", ["pandas", "polars", "default"])
def test_set_output_of_an_array(mechanism, output):
    rows = TABLE.to_numpy()
    estimator = mechanism(secret=1, random_state=3)
    expected = estimator.fit_transform(rows)
    released = estimator.set_output(transform=output).fit_transform(rows)
    types = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "default": np.ndarray}
    assert type(released) is types[output]
    if output != "default":
        assert list(released.columns) == ["x0", "x2"]
        assert dtypes(released) == ["float64", "float64"]
    np.testing.assert_array_equal(np.asarray(released), expected)


# --- ColumnTransformer and Pipeline ---------------------------------------------


@kinds
def test_steps_before_and_after_in_a_pipeline(kind):
    frame = frame_of(kind, PEOPLE)
    first = ColumnTransformer(
        [
            ("scaled", StandardScaler(), ["age", "bmi"]),
            ("sex", "passthrough", ["sex"]),
        ],
        verbose_feature_names_out=False,
    )
    noise = RenyiPufferfishLaplace(secret="sex", **FAINT)
    pipeline = make_pipeline(first, noise, StandardScaler()).set_output(transform=kind)
    released = pipeline.fit_transform(frame)
    assert list(released.columns) == ["age", "bmi"]
    assert list(pipeline.get_feature_names_out()) == ["age", "bmi"]
    assert list(pipeline.get_feature_names_out(list(PEOPLE))) == ["age", "bmi"]
    scaled = StandardScaler().fit_transform(PEOPLE[["age", "bmi"]])
    np.testing.assert_allclose(to_numpy(released), scaled, atol=0.05)


def test_arrays_in_a_column_transformer():
    array = PEOPLE[["age", "children", "bmi"]].to_numpy()
    transformer = ColumnTransformer(
        [
            ("noise", RenyiPufferfishLaplace(secret=1), [0, 1, 2]),
            ("hot", OneHotEncoder(sparse_output=False), [1]),
        ]
    )
    assert transformer.fit_transform(array).shape == (N, 2 + 4)
    names = list(transformer.get_feature_names_out())
    assert names[:2] == ["noise__x0", "noise__x2"]


# --- names ----------------------------------------------------------------------


@mechanisms
@kinds
def test_names_out_of_a_frame(mechanism, kind):
    frame = frame_of(kind, PEOPLE[["age", "sex", "bmi", "children"]])
    estimator = mechanism(secret="sex", prior="children").fit(frame)
    assert list(estimator.feature_names_in_) == ["age", "bmi"]
    assert estimator.n_features_in_ == 2
    for names in (
        None,
        ["age", "bmi"],
        ["age", "sex", "bmi", "children"],
        ["sex", "age", "bmi"],
        np.array(["age", "bmi", "children"], dtype=object),
    ):
        out = estimator.get_feature_names_out(names)
        assert out.dtype == object
        assert out.tolist() == ["age", "bmi"]
    for names in (["bmi", "age"], ["age", "other"], ["age", "sex", "other"]):
        with pytest.raises(ValueError, match="not equal to feature_names_in_"):
            estimator.get_feature_names_out(names)
    for names in (["age"], ["age", "bmi", "other"], []):
        with pytest.raises(ValueError, match="length equal to number of features"):
            estimator.get_feature_names_out(names)


def test_names_out_of_an_array():
    estimator = RenyiPufferfishLaplace(secret=1).fit(TABLE.to_numpy())
    # By their positions in what fit was given.
    assert estimator.get_feature_names_out().tolist() == ["x0", "x2"]
    for names, out in ((["a", "s", "b"], ["a", "b"]), (["a", "b"], ["a", "b"])):
        assert estimator.get_feature_names_out(names).tolist() == out
    for names in (["a"], ["a", "b", "c", "d"]):
        with pytest.raises(ValueError, match="length equal to number of features"):
            estimator.get_feature_names_out(names)


def test_an_array_for_a_frame_warns_as_in_scikit_learn():
    estimator = RenyiPufferfishLaplace(secret="sex").fit(TABLE)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        released = estimator.transform(TABLE[["age", "bmi"]].to_numpy())
    assert type(released) is np.ndarray


# --- what is no table -----------------------------------------------------------


@mechanisms
@pytest.mark.parametrize("secret", [None, 1, "sex"])
@pytest.mark.parametrize(
    "form", ["csr_matrix", "csr_array", "csc_matrix", "coo_array", "lil_matrix"]
)
def test_sparse_input_raises_the_same_message_in_fit_and_transform(
    mechanism, secret, form
):
    table = PEOPLE[["age", "children"]]
    matrix = getattr(scipy.sparse, form)(table.to_numpy())
    estimator = mechanism(secret=secret)
    labels = {"secret": PEOPLE["sex"]} if secret is None else {}
    with pytest.raises(TypeError, match=r"Sparse data was passed.*dense") as in_fit:
        estimator.fit(matrix, **labels)
    if secret == "sex":
        table = TABLE
    estimator.fit(table if secret != 1 else table.to_numpy(), **labels)
    with pytest.raises(TypeError, match=r"Sparse data was passed.*dense") as later:
        estimator.transform(matrix)
    assert str(later.value) == str(in_fit.value)


def test_lazy_frames_are_to_be_collected_but_for_a_fit_and_a_release():
    frame = frame_of("polars").select("age", "sex")
    fitted = RenyiPufferfishLaplace(secret="sex").fit(frame.lazy())
    with pytest.raises(TypeError, match=r"collect it first, X\.collect\(\)"):
        held_out_divergence(fitted, frame.lazy())


@pytest.mark.parametrize("rows", [TABLE["age"], TABLE["age"].to_numpy(), 3.0])
def test_one_dimension_is_too_few(rows):
    with pytest.raises(ValueError, match=r"(?i)expected (a )?2"):
        RenyiPufferfishLaplace().fit(rows, secret=PEOPLE["sex"])
    with pytest.raises(ValueError, match=r"(?i)dimension|2D array"):
        RenyiPufferfishLaplace(secret=0).fit(rows)


def test_text_is_refused_with_what_helps():
    frame = pd.DataFrame({"x": ["1", "2"] * 20, "s": [0, 0, 1, 1] * 10})
    noise = RenyiPufferfishLaplace(secret="s")
    for text in ("str", "category", object):
        with pytest.raises(ValueError, match=r"'x' holds .*JointRelease.*to_numeric"):
            noise.fit(frame.astype({"x": text}))
    days = frame.assign(x=pd.to_datetime("2020-01-01"))
    with pytest.raises(ValueError, match=r"'x' holds Datetime.*leave it out") as caught:
        noise.fit(days)
    assert "to_numeric" not in str(caught.value)


def test_decimals_in_a_column_of_objects_are_numbers():
    floats = pd.DataFrame({"x": np.arange(40) * 0.25, "s": [0, 1] * 20})
    frame = floats.assign(x=list(map(Decimal, floats["x"])))
    assert frame["x"].dtype == object
    noise = RenyiPufferfishLaplace(secret="s", random_state=0)
    expected = noise.fit_transform(floats)
    assert np.array_equal(noise.fit_transform(frame), expected)
    joint = JointRelease(secret="s").fit(frame)
    assert joint.transform(frame)["x"].dtype == np.float64
    counted = ConditionalCounts(secret="s").update(frame)
    counted = RenyiPufferfishLaplace().fit_counts(counted)
    assert (counted.scale_ == noise.scale_).all()
    with pytest.raises(ValueError, match=r"'x' is missing .* in 1 of 40 rows"):
        noise.fit(frame.assign(x=[None, *frame["x"][1:]]))
