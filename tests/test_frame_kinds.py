"""Frames of every eager kind: each is read alike, and comes out as it went in."""

import datetime
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer import (
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    compare_mechanisms,
    held_out_divergence,
)
from skpuffer.audit import (
    KernelRenyiAuditor,
    RunningAudit,
    audit_estimator,
    make_audit_scorer,
)
from skpuffer.metrics import KernelMoments, kernel_renyi_divergence

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")

N = 60
JOBS = ["clerk", "cook", "judge"]
RNG = np.random.default_rng(3)
PEOPLE = {
    "age": (RNG.permutation(N) * 10).tolist(),
    "bmi": (RNG.permutation(N) * 100.0).tolist(),
    "job": [JOBS[i % 3] for i in range(N)],
    "flag": [i % 4 == 0 for i in range(N)],
    "sex": ["F" if i % 7 % 3 else "M" for i in range(N)],
}
NUMBERS, TEXTS = ("age", "bmi"), ("job", "sex")


# --- the kinds ------------------------------------------------------------------


class InPandas:
    """Of numpy's types."""

    library = "pandas"
    types: ClassVar = {}

    def frame(self, columns):
        frame = pd.DataFrame(columns)
        return frame.astype(self._types(frame.columns))

    def _types(self, names):
        return {name: self.types[name] for name in names if name in self.types}

    def series(self, values, name="sex"):
        return self.frame({name: values})[name]

    def lists(self, frame):
        return {str(name): frame[name].tolist() for name in frame.columns}

    def dtypes(self, frame):
        return dict(frame.dtypes)

    float64, float32 = np.dtype(float), np.dtype(np.float32)
    narrow = "float32"

    def narrowed(self, frame, name):
        return frame.astype({name: self.narrow})

    def rows(self, frame, chosen):
        return frame.iloc[chosen]


class InNullable(InPandas):
    types: ClassVar = {
        "age": "Int64",
        "bmi": "Float64",
        "job": "string",
        "flag": "boolean",
        "sex": "string",
    }
    narrow = "Float32"


class InArrowTypes(InPandas):
    types: ClassVar = {
        "age": "int64[pyarrow]",
        "bmi": "double[pyarrow]",
        "flag": "bool[pyarrow]",
    }
    narrow = "float[pyarrow]"

    def _types(self, names):
        pa = pytest.importorskip("pyarrow")
        return super()._types(names) | {
            name: pd.ArrowDtype(pa.string()) for name in names if name in TEXTS
        }


class InCategories(InPandas):
    types: ClassVar = {
        "job": pd.CategoricalDtype(JOBS, ordered=True),
        "sex": "category",
    }


class InPolars(InPandas):
    library = "polars"

    def __init__(self):
        self.pl = pytest.importorskip("polars")
        self.float64, self.float32 = self.pl.Float64, self.pl.Float32
        self.narrow = self.pl.Float32

    def frame(self, columns):
        frame = self.pl.DataFrame(columns)
        return frame.cast(self._types(frame.columns))

    def lists(self, frame):
        return frame.to_dict(as_series=False)

    def dtypes(self, frame):
        return dict(frame.schema)

    def narrowed(self, frame, name):
        return frame.cast({name: self.narrow})

    def rows(self, frame, chosen):
        return frame[chosen]


class InPolarsCategories(InPolars):
    def __init__(self):
        super().__init__()
        self.types = {"job": self.pl.Enum(JOBS), "sex": self.pl.Categorical}


class InArrow(InPandas):
    """Of several chunks, as files are read."""

    library = "pyarrow"

    def __init__(self):
        self.pa = pytest.importorskip("pyarrow")
        self.float64, self.float32 = self.pa.float64(), self.pa.float32()

    def frame(self, columns):
        whole = self.pa.table({n: self.array(n, v) for n, v in columns.items()})
        parts = [whole.slice(0, 25), whole.slice(25)]
        return self.pa.concat_tables(parts) if len(whole) > 25 else whole

    def array(self, name, values):
        return self.pa.array(values)

    def series(self, values, name="sex"):
        return self.frame({name: values}).column(name)

    def lists(self, frame):
        return frame.to_pydict()

    def dtypes(self, frame):
        return dict(zip(frame.column_names, frame.schema.types, strict=True))

    def narrowed(self, frame, name):
        place = frame.column_names.index(name)
        column = frame.column(name).cast(self.float32)
        return frame.set_column(place, name, column)

    def rows(self, frame, chosen):
        return frame.take(self.pa.array(chosen, self.pa.int64()))


class InDictionaries(InArrow):
    def array(self, name, values):
        array = self.pa.array(values)
        return array.dictionary_encode() if name in TEXTS else array


KINDS = {
    "pandas": InPandas,
    "nullable": InNullable,
    "arrow-types": InArrowTypes,
    "categories": InCategories,
    "polars": InPolars,
    "polars-categories": InPolarsCategories,
    "pyarrow": InArrow,
    "dictionaries": InDictionaries,
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]()


# --- what releases them ---------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An estimator and the columns that it releases."""

    make: Any
    columns: tuple[str, ...]
    faint: float = 1e6

    def estimator(self, **parameters):
        return self.make(**{"secret": "sex"} | parameters)

    def table(self, *others, **changed):
        given = PEOPLE | changed
        return {name: given[name] for name in (*self.columns, *(others or ["sex"]))}


CASES = {
    "laplace": Case(RenyiPufferfishLaplace, NUMBERS),
    "gaussian": Case(RenyiPufferfishGaussian, NUMBERS),
    "exponential": Case(RenyiPufferfishExponential, NUMBERS, 1e4),
    "categorical": Case(RenyiPufferfishCategorical, ("job", "flag")),
    "joint": Case(JointRelease, ("age", "job", "bmi", "flag")),
}
EVERY = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
LAPLACE, JOINT = CASES["laplace"], CASES["joint"]
BOTH = pytest.mark.parametrize("case", [LAPLACE, JOINT], ids=["numbers", "rows"])


@cache
def plain(case):
    """The same release of a frame of numpy's types, seeded."""
    return case.estimator(random_state=1).fit(pd.DataFrame(case.table()))


@cache
def first_release(case):
    released = clone(plain(case)).fit_transform(pd.DataFrame(case.table()))
    return released.to_dict("list")


def with_holes(values, hole=None):
    return [hole if i in (3, 14, 50) else value for i, value in enumerate(values)]


# --- in -------------------------------------------------------------------------


@EVERY
def test_every_kind_is_read_alike(kind, case):
    frame = kind.frame(case.table())
    estimator = case.estimator(random_state=1)
    released, expected = kind.lists(estimator.fit_transform(frame)), plain(case)
    np.testing.assert_array_equal(estimator.scale_, expected.scale_)
    assert str(estimator.guarantee_) == str(expected.guarantee_)
    assert estimator.guarantee_.pairs == (("F", "M"),)
    assert estimator.feature_names_in_.tolist() == list(case.columns)
    assert estimator.n_features_in_ == len(case.columns)
    for names in (None, list(case.columns), list(case.table())):
        assert estimator.get_feature_names_out(names).tolist() == list(case.columns)
    assert released == first_release(case)


@BOTH
def test_labels_and_weights_beside_the_frame_are_of_any_kind(kind, case):
    frame = kind.frame({name: PEOPLE[name] for name in case.columns})
    by_name = by_weight(case)
    beside = {"prior": kind.series(PEOPLE["job"], "job")} if case is LAPLACE else {}
    beside["sample_weight"] = kind.series(WEIGHT, "bmi")
    sex = kind.series(PEOPLE["sex"])
    for fitted in (
        case.estimator(secret=None, secret_from_y=True).fit(frame, sex, **beside),
        case.estimator(secret=None).fit(
            frame, secret=kind.frame({"sex": PEOPLE["sex"]}), **beside
        ),
    ):
        np.testing.assert_array_equal(fitted.scale_, by_name.scale_)
        assert fitted.guarantee_.pairs == by_name.guarantee_.pairs
        assert fitted.guarantee_.priors == by_name.guarantee_.priors


WEIGHT = [float(i * 5 % 7) for i in range(N)]


@cache
def by_weight(case):
    prior = ["job"] if case is LAPLACE else []
    table = pd.DataFrame(case.table("sex", *prior))
    noise = case.estimator(prior=prior[0] if prior else None)
    return noise.fit(table, sample_weight=WEIGHT)


SECRETS = {
    "integers": [-(i % 2) for i in range(N)],
    "booleans": [i % 2 == 0 for i in range(N)],
    "floats": [[0.5, -1.0][i % 2] for i in range(N)],
    "dates": [datetime.datetime(2020, 1, 3 - i % 2) for i in range(N)],
}


@pytest.mark.parametrize("values", SECRETS.values(), ids=list(SECRETS))
def test_labels_are_python_values_in_order(kind, values):
    frame = kind.frame({"x": PEOPLE["bmi"], "s": values, "sex": PEOPLE["sex"]})
    noise = LAPLACE.estimator(secret=["s", "sex"], calibration="w_inf")
    found = noise.fit(frame).guarantee_
    labels = sorted({label for pair in found.pairs for label in pair})
    assert labels == sorted(set(zip(values, PEOPLE["sex"], strict=True)))
    given = {type(value) for value in values}
    for value, sex in labels:
        assert isinstance(value, tuple(given))
        assert type(sex) is str


def test_numbers_beyond_the_whole_floats(kind):
    table = {"n": [2**60 + i for i in range(N)], "sex": PEOPLE["sex"]}
    estimator = LAPLACE.estimator(epsilon=1e3).fit(kind.frame(table))
    assert estimator.scale_ == plain_scale(table, epsilon=1e3)


def plain_scale(table, **parameters):
    return LAPLACE.estimator(**parameters).fit(pd.DataFrame(table)).scale_


@pytest.mark.parametrize("build", ["decimal128", "uint64", "bool_", "float16"])
def test_numbers_of_every_arrow_type(build):
    pa = pytest.importorskip("pyarrow")
    dtype = pa.decimal128(20, 2) if build == "decimal128" else getattr(pa, build)()
    values = [i % 2 if build == "bool_" else i * 7 % N for i in range(N)]
    if build == "float16":
        array = pa.array(np.array(values, dtype=np.float16))
    else:
        array = pa.array(values, pa.int32()).cast(dtype)
    table = pa.table({"n": array, "sex": PEOPLE["sex"]})
    if build == "float16" and not hasattr(__import__("narwhals"), "Float16"):
        with pytest.raises(ValueError, match="column 'n' holds halffloat"):
            LAPLACE.estimator().fit(table)
        return
    expected = plain_scale({"n": np.array(values, float), "sex": PEOPLE["sex"]})
    assert LAPLACE.estimator().fit(table).scale_ == expected


# --- out ------------------------------------------------------------------------


@BOTH
def test_a_frame_comes_out_as_it_went_in(kind, case):
    frame = kind.frame(case.table())
    # Noise that hardly shows: each value is much closer to its own than to another.
    estimator = case.estimator(epsilon=case.faint, random_state=0).fit(frame)
    for given in (frame, kind.frame({n: PEOPLE[n] for n in case.columns})):
        released = estimator.transform(given)
        assert type(released) is type(frame)
        values, types = kind.lists(released), kind.dtypes(released)
        assert list(values) == list(case.columns)
        for name in case.columns:
            if name in NUMBERS:
                gap = 10 if name == "age" else 100
                distance = np.abs(np.subtract(values[name], PEOPLE[name]))
                assert ((distance > 0) & (distance < 0.4 * gap)).all()
                assert types[name] == kind.float64
            else:
                assert values[name] == PEOPLE[name]
                assert types[name] == kind.dtypes(frame)[name]


@BOTH
def test_float32_stays(kind, case):
    frame = kind.narrowed(kind.frame(case.table()), "bmi")
    estimator = case.estimator(random_state=2).fit(frame)
    released = estimator.transform(frame)
    assert kind.dtypes(released)["bmi"] == kind.float32
    assert kind.dtypes(released)["age"] == kind.float64
    # Whole numbers of hundreds are the same in both.
    np.testing.assert_allclose(estimator.scale_, plain(case).scale_, rtol=1e-12)
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
        other = estimator.set_output(transform=library).transform(frame)
        assert "32" in str(other["bmi"].dtype)
        assert "64" in str(other["age"].dtype)


@BOTH
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_another_kind_may_be_asked_for(kind, case, library):
    pytest.importorskip(library)
    frame = kind.frame(case.table())
    estimator = case.estimator(random_state=3)
    expected = kind.lists(estimator.fit_transform(frame))
    released = estimator.set_output(transform=library).fit_transform(frame)
    assert type(released).__module__.split(".")[0] == library
    asked = InPolars() if library == "polars" else InPandas()
    assert asked.lists(released) == expected
    types = asked.dtypes(released)
    for name in case.columns:
        if name in NUMBERS:
            assert types[name] == asked.float64
        elif name == "flag":
            assert str(types[name]).lower() in ("bool", "boolean", "bool[pyarrow]")
        elif kind.library == library:
            assert types[name] == kind.dtypes(frame)[name]
        elif isinstance(kind, InCategories):
            assert types[name] == asked.pl.Enum(JOBS)
        elif isinstance(kind, (InPolarsCategories, InDictionaries)):
            assert str(types[name]).lower().startswith("categor")
            if library == "pandas":
                assert types[name].categories.tolist() == JOBS
                assert types[name].ordered == isinstance(kind, InPolarsCategories)
        else:
            text = pd.DataFrame({"job": JOBS})
            wanted = text.dtypes if library == "pandas" else {"job": asked.pl.String}
            assert types[name] == wanted["job"]


class Shifted(JointRelease):
    """A subclass that changes the rows before they are released."""

    def transform(self, X):
        return super().transform(X.assign(age=X["age"] + 1000))


def test_a_subclass_may_look_at_its_rows():
    noise = Shifted(secret="sex", epsilon=1e6, random_state=0)
    noise.set_output(transform="pandas")
    released = noise.fit_transform(pd.DataFrame(JOINT.table()))
    np.testing.assert_allclose(released["age"], np.add(PEOPLE["age"], 1000), atol=1)
    assert released["flag"].dtype == bool


def test_arrays_of_objects_in_frames_that_are_asked_for():
    pl = pytest.importorskip("polars")
    array = pd.DataFrame(PEOPLE)[["age", "job", "flag"]].to_numpy(dtype=object)
    estimator = JointRelease(random_state=1)
    given = estimator.fit_transform(array, secret=PEOPLE["sex"])
    for library in ("pandas", "polars"):
        estimator.set_output(transform=library)
        released = estimator.fit_transform(array, secret=PEOPLE["sex"])
        assert list(released.columns) == ["x0", "x1", "x2"]
        assert released["x0"].dtype == (float if library == "pandas" else pl.Float64)
        assert released["x1"].to_list() == given[:, 1].tolist()
        assert str(released["x2"].dtype).lower().startswith("bool")


def test_types_of_declared_categories(kind):
    # Labels that no row has are in the types that list them, and no others.
    declared = ["baker", *JOBS]
    estimator = RenyiPufferfishCategorical(
        secret="sex", categories=[declared], epsilon=1e6, random_state=0
    )
    frame = kind.frame({name: PEOPLE[name] for name in ("job", "sex")})
    released = estimator.fit_transform(frame)
    assert kind.lists(released)["job"] == PEOPLE["job"]
    dtype = kind.dtypes(released)["job"]
    if isinstance(kind, (InCategories, InPolarsCategories)):
        assert list(dtype.categories) == declared
    elif isinstance(kind, InDictionaries):
        chunk = released.column("job").combine_chunks()
        assert chunk.dictionary.to_pylist() == declared
    else:
        assert dtype == kind.dtypes(frame)["job"]


@pytest.mark.parametrize("name", ["large_string", "int8", "date32"])
def test_labels_of_every_arrow_type_keep_it(name):
    pa = pytest.importorskip("pyarrow")
    dtype = getattr(pa, name)()
    days = [datetime.date(2020, 1, 1 + i % 3) for i in range(N)]
    given = {"int8": [i % 3 for i in range(N)], "date32": days}.get(name, PEOPLE["job"])
    column = pa.array(given, dtype)
    table = pa.table({"x": column, "sex": PEOPLE["sex"]})
    noise = RenyiPufferfishCategorical(secret="sex", epsilon=1e6, random_state=0)
    released = noise.fit_transform(table)
    assert released.schema.types == [dtype]
    assert released["x"].to_pylist() == given
    one = RenyiPufferfishLaplace(secret="x").fit(
        pa.table({"n": PEOPLE["bmi"], "x": column})
    )
    assert len(one.guarantee_.pairs) == 3


def test_declared_labels_that_the_type_does_not_hold():
    pa = pytest.importorskip("pyarrow")
    few = pa.array([i % 3 for i in range(N)], pa.int8())
    for column, declared, wanted in (
        (few, [0, 1, 2, 1000], pa.int64()),
        (few, [0, 1, 2, "more"], pa.string()),
        (few.dictionary_encode(), [0, 1, 2, 1000], pa.int64()),
    ):
        noise = RenyiPufferfishCategorical(
            secret="sex", categories=[declared], epsilon=1e6, random_state=0
        )
        table = pa.table({"x": column, "sex": PEOPLE["sex"]})
        released = noise.fit_transform(table)
        (found,) = released.schema.types
        assert getattr(found, "value_type", found) == wanted
        kept = [str(value) for value in released["x"].to_pylist()]
        assert kept == [str(i % 3) for i in range(N)]


def test_labels_of_several_values_are_refused():
    pl = pytest.importorskip("polars")
    for values in ([{"a": 1, "b": 2}] * N, [[1]] * N):
        frame = pl.DataFrame({"x": PEOPLE["bmi"], "s": values})
        with pytest.raises(ValueError, match="secret 's' must hold one label a row"):
            RenyiPufferfishLaplace(secret="s").fit(frame)


def test_numbers_that_stand_for_categories(kind):
    levels = [i % 3 for i in range(N)]
    frame = kind.frame({"age": levels, "sex": PEOPLE["sex"]})
    estimator = RenyiPufferfishCategorical(
        secret="sex", categories=[[0, 1, 2]], metric="ordinal", random_state=0
    )
    released = estimator.fit_transform(frame)
    assert kind.dtypes(released)["age"] == kind.dtypes(frame)["age"]
    assert set(kind.lists(released)["age"]) == {0, 1, 2}
    other = estimator.set_output(transform="pandas").transform(frame)
    if kind.library != "pandas":
        assert other["age"].dtype == np.int64


# --- what is refused ------------------------------------------------------------


def complaint_in_fit_and_transform(kind, case, table, message):
    frame = kind.frame(table)
    with pytest.raises(ValueError, match=message):
        case.estimator().fit(frame)
    with pytest.raises(ValueError, match=message):
        plain(case).transform(frame)


@pytest.mark.parametrize(
    ("case", "name"),
    [(LAPLACE, "age"), (LAPLACE, "bmi"), *((JOINT, name) for name in JOINT.columns)],
    ids=["age", "bmi", *(f"row-{name}" for name in JOINT.columns)],
)
def test_missing_values_are_counted(kind, case, name):
    table = case.table(**{name: with_holes(PEOPLE[name])})
    message = rf"column '{name}' is missing \(NaN\) in 3 of 60 rows"
    complaint_in_fit_and_transform(kind, case, table, message)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_counted(kind, value):
    table = LAPLACE.table(bmi=with_holes(PEOPLE["bmi"], value))
    word = "missing" if np.isnan(value) else "infinite"
    message = rf"column 'bmi' is {word} \(.*\) in 3 of 60 rows"
    complaint_in_fit_and_transform(kind, LAPLACE, table, message)
    complaint_in_fit_and_transform(kind, JOINT, JOINT.table(bmi=table["bmi"]), message)


@pytest.mark.parametrize("parameter", ["secret", "prior"])
@pytest.mark.parametrize("name", ["sex", "age", "bmi", "flag"])
def test_missing_labels_are_counted(kind, parameter, name):
    labels = [value if name == "sex" else i % 3 for i, value in enumerate(PEOPLE[name])]
    labels = with_holes([i % 2 == 0 for i in range(N)] if name == "flag" else labels)
    frame = kind.frame({"x": PEOPLE["bmi"], name: labels, "other": PEOPLE["job"]})
    message = rf"{parameter} '{name}' is missing in 3 of 60 rows"
    other = "prior" if parameter == "secret" else "secret"
    with pytest.raises(ValueError, match=message):
        RenyiPufferfishLaplace(**{parameter: name, other: "other"}).fit(frame)
    beside = {"secret": PEOPLE["job"], parameter: kind.series(labels, name)}
    rows = kind.frame({"x": PEOPLE["bmi"]})
    with pytest.raises(ValueError, match=rf"{parameter} '\w+' is missing in 3 of 60"):
        RenyiPufferfishLaplace().fit(rows, **beside)


def test_no_group_is_called_nan(kind):
    # A NaN that is no missing value to its own library.
    zeros = kind.series([0.0 if i % 5 == 0 else 1.0 for i in range(N)], "bmi")
    if kind.library == "pyarrow":
        import pyarrow.compute as pc

        secret = pc.divide(zeros, zeros)
    else:
        secret = zeros / zeros
    rows = kind.frame({"x": PEOPLE["bmi"]})
    with pytest.raises(ValueError, match="is missing in 12 of 60 rows"):
        RenyiPufferfishLaplace().fit(rows, secret=secret)
    if kind.library == "pandas":
        frame = secret.to_frame("x")
    elif kind.library == "polars":
        frame = rows.with_columns(secret.alias("x"))
    else:
        frame = rows.set_column(0, "x", secret)
    with pytest.raises(ValueError, match=r"column 'x' is missing \(NaN\) in 12 of 60"):
        RenyiPufferfishLaplace().fit(frame, secret=PEOPLE["sex"])


def test_nothing_but_missing_values(kind):
    table = LAPLACE.table(bmi=[None] * N)
    with pytest.raises(ValueError, match=r"column 'bmi' is missing .* 60 of 60 rows"):
        LAPLACE.estimator().fit(kind.frame(table))
    table = LAPLACE.table(sex=[None] * N)
    with pytest.raises(ValueError, match=r"secret 'sex' is missing in 60 of 60 rows"):
        LAPLACE.estimator().fit(kind.frame(table))


def test_missing_spelt_as_text(kind):
    for case, table, message in (
        (LAPLACE, LAPLACE.table(sex=with_holes(PEOPLE["sex"], "nan")), "secret 'sex'"),
        (
            JOINT,
            JOINT.table(sex=with_holes(PEOPLE["sex"], "<NA>")),
            "secret 'sex'",
        ),
    ):
        with pytest.raises(ValueError, match=rf"{message} is missing in 3 of 60 rows"):
            case.estimator().fit(kind.frame(table))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "finite and non-negative"),
        (float("inf"), "finite and non-negative"),
        (-1.0, "finite and non-negative"),
    ],
)
def test_weights_are_checked(kind, value, message):
    weight = kind.series(with_holes([1.0] * N, value), "bmi")
    with pytest.raises(ValueError, match=f"sample_weight must be {message}"):
        LAPLACE.estimator().fit(kind.frame(LAPLACE.table()), sample_weight=weight)
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        LAPLACE.estimator().fit(
            kind.frame(LAPLACE.table()), sample_weight=kind.series(PEOPLE["job"], "job")
        )


@BOTH
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda names: names[::-1], "must be in the same order"),
        (lambda names: names[1:], "seen at fit time, yet now missing:\n- "),
        (lambda names: [*names, "more"], "unseen at fit time:\n- more"),
        (lambda names: [*names[:-1], "more"], "unseen at fit time:\n- more"),
    ],
    ids=["order", "missing", "new", "other"],
)
def test_other_columns_raise_as_in_scikit_learn(kind, case, change, message):
    estimator = plain(case)
    names = change(list(case.columns))
    table = PEOPLE | {"more": PEOPLE["age"]}
    found = []
    # With and without the secret, which is taken out.
    for given in (names, [names[0], "sex", *names[1:]]):
        with pytest.raises(ValueError, match=message) as raised:
            estimator.transform(kind.frame({name: table[name] for name in given}))
        found.append(str(raised.value))
    numbers = {name: np.arange(float(N)) for name in [*case.columns, "more"]}
    reference = StandardScaler().fit(pd.DataFrame(numbers)[list(case.columns)])
    with pytest.raises(ValueError, match=message) as expected:
        reference.transform(pd.DataFrame(numbers)[names])
    assert found == [str(expected.value)] * 2


def test_what_is_no_number_is_named(kind):
    table = LAPLACE.table(bmi=PEOPLE["job"])
    if isinstance(kind, (InNullable, InArrowTypes)):
        kind.types = kind.types | {"bmi": "string"}
    for frame in (
        kind.frame(table),
        kind.frame({"age": PEOPLE["age"], "job": PEOPLE["job"], "sex": PEOPLE["sex"]}),
    ):
        with pytest.raises(ValueError, match=r"column '(bmi|job)' holds (S|s|C|E)"):
            LAPLACE.estimator().fit(frame)


def test_a_column_that_does_not_exist(kind):
    frame = kind.frame(LAPLACE.table())
    for parameters in ({"secret": "sexe"}, {"secret": "sex", "prior": "sexe"}):
        with pytest.raises(ValueError, match=r"'sexe' is not a column.*mean 'sex'\?"):
            LAPLACE.estimator(**parameters).fit(frame)
    with pytest.raises(ValueError, match="its columns are 'age', 'bmi', 'sex'"):
        LAPLACE.estimator(secret="zzz").fit(frame)
    only = kind.frame({"sex": PEOPLE["sex"]})
    with pytest.raises(ValueError, match="X has no column to release"):
        LAPLACE.estimator().fit(only)


@BOTH
def test_too_few_rows(kind, case):
    frame = kind.frame(case.table())
    estimator = case.estimator()
    for count in (0, 1):
        with pytest.raises(ValueError, match=rf"{count} sample\(s\).*minimum of 2"):
            estimator.fit(kind.rows(frame, list(range(count))))
    estimator.fit(frame)
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1"):
        estimator.transform(kind.rows(frame, []))
    part = kind.rows(frame, [7, 2])
    released = kind.lists(estimator.transform(part))
    assert [len(values) for values in released.values()] == [2] * len(case.columns)


def test_labels_without_rows_are_no_groups(kind):
    frame = kind.frame(LAPLACE.table(sex=["D", *PEOPLE["sex"][1:]]))
    part = kind.rows(frame, list(range(1, N)))
    found = LAPLACE.estimator().fit(part)
    assert found.guarantee_.pairs == (("F", "M"),)


# --- odd frames -----------------------------------------------------------------


def repeated(library):
    if library == "pandas":
        return pd.DataFrame([[1.0, 2.0, "F"]] * 4, columns=["age", "age", "sex"])
    pa = pytest.importorskip("pyarrow")
    return pa.table([[1.0] * 4, [2.0] * 4, ["F"] * 4], names=["age", "age", "sex"])


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_repeated_names_are_refused(library):
    twice = repeated(library)
    fitted = LAPLACE.estimator(scope="column").fit(pd.DataFrame(LAPLACE.table()))
    for attempt in (
        lambda: LAPLACE.estimator().fit(twice),
        lambda: LAPLACE.estimator(secret="age").fit(twice),
        lambda: JOINT.estimator().fit(twice),
        lambda: fitted.transform(twice),
        lambda: held_out_divergence(fitted, twice),
        lambda: compare_mechanisms(twice, secret="sex"),
        lambda: KernelMoments(gamma=1).partial_fit(twice),
    ):
        with pytest.raises(ValueError, match="X has several columns named age: rename"):
            attempt()
    with pytest.raises(ValueError, match="secret has several columns named age"):
        RenyiPufferfishLaplace().fit(np.ones((4, 1)), secret=twice)
    with pytest.raises(ValueError, match="Y has several columns named age"):
        kernel_renyi_divergence(np.ones((4, 2)), twice)


def test_columns_named_by_numbers():
    table = pd.DataFrame(LAPLACE.table()).set_axis([10, 20, 30], axis=1)
    estimator = RenyiPufferfishLaplace(secret=30, random_state=0).fit(table)
    released = estimator.transform(table)
    assert list(released.columns) == [10, 20]
    assert estimator.get_feature_names_out(["10", "20", "30"]).tolist() == ["10", "20"]
    # A name, not a position.
    with pytest.raises(ValueError, match="secret=1 is not a column of X"):
        RenyiPufferfishLaplace(secret=1).fit(table)
    joint = pd.DataFrame(JOINT.table()).set_axis(range(5), axis=1)
    released = JointRelease(secret=4).fit_transform(joint)
    assert released.columns.tolist() == [0, 1, 2, 3]
    assert released[1].isin(JOBS).all()


@BOTH
def test_columns_of_several_levels(case):
    table = pd.DataFrame(case.table())
    levels = [("who", name) for name in table.columns]
    table.columns = pd.MultiIndex.from_tuples(levels, names=["part", "what"])
    for secret in (("who", "sex"), [("who", "sex")]):
        estimator = case.estimator(secret=secret).fit(table)
        np.testing.assert_array_equal(estimator.scale_, plain(case).scale_)
        released = estimator.transform(table)
        pd.testing.assert_index_equal(released.columns, table.columns[:-1])
        names = estimator.get_feature_names_out().tolist()
        assert names == [str(level) for level in levels[:-1]]
        flat = estimator.set_output(transform="pandas").transform(table)
        assert flat.columns.tolist() == names
    with pytest.raises(ValueError, match="secret='sex' is not a column of X"):
        case.estimator(secret="sex").fit(table)


def test_sparse_columns_are_named():
    table = pd.DataFrame(LAPLACE.table())
    table["bmi"] = table["bmi"].astype(pd.SparseDtype(float))
    for case in (LAPLACE, JOINT):
        with pytest.raises(ValueError, match=r"column 'bmi' holds Sparse\[float64"):
            case.estimator().fit(table)


def test_tables_of_unknown_kinds_are_named():
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch(pa.table(LAPLACE.table()).to_batches()[0].columns, "abc")
    estimator = plain(LAPLACE)
    for attempt in (
        lambda: LAPLACE.estimator().fit(batch),
        lambda: estimator.transform(batch),
        lambda: KernelMoments(gamma=1).partial_fit(batch),
    ):
        with pytest.raises(TypeError, match=r"not read: .* \(got a pyarrow RecordBat"):
            attempt()


def test_relations_of_duckdb_are_to_be_collected_or_counted():
    duckdb = pytest.importorskip("duckdb")
    table = pd.DataFrame(LAPLACE.table())
    relation = duckdb.from_df(table)
    estimator = LAPLACE.estimator()
    for attempt in (
        lambda: estimator.fit(relation),
        lambda: estimator.fit(table).transform(relation),
    ):
        with pytest.raises(
            TypeError, match=r"collect it first, .* or count .*\(got a _?du"
        ):
            attempt()


def test_dictionaries_with_repeated_and_missing_entries():
    pa = pytest.importorskip("pyarrow")
    indices = pa.array([i % 4 for i in range(N)])

    def column(*entries):
        return pa.DictionaryArray.from_arrays(indices, pa.array(entries))

    table = pa.table({"age": PEOPLE["age"], "s": column("b", "a", "b", "a")})
    found = LAPLACE.estimator(secret="s").fit(table)
    labels = ["ba"[i % 2] for i in range(N)]
    expected = RenyiPufferfishLaplace().fit(table.select(["age"]), secret=labels)
    assert found.guarantee_.pairs == (("a", "b"),)
    assert found.scale_ == expected.scale_
    table = table.set_column(1, "s", column("b", None, "a", "b"))
    with pytest.raises(ValueError, match="secret 's' is missing in 15 of 60 rows"):
        LAPLACE.estimator(secret="s").fit(table)


# --- beside the releases --------------------------------------------------------


def comparisons(kind):
    frame = kind.frame(LAPLACE.table())
    rows = kind.frame({name: PEOPLE[name] for name in NUMBERS})
    beside = {
        "secret": kind.series(PEOPLE["sex"]),
        "sample_weight": kind.series([1.0] * N, "bmi"),
    }
    options = {"laws": "laplace", "calibrations": "w_inf", "scopes": "column"}
    noise = LAPLACE.estimator(scope="column", calibration="w_inf").fit(frame)
    # A chunked array has no name by which a guarantee could call it.
    return (
        compare_mechanisms(frame, secret="sex", **options),
        compare_mechanisms(rows, **beside, **options).drop(columns="guarantee"),
        held_out_divergence(noise, frame),
        held_out_divergence(noise, rows, **beside),
    )


def test_comparisons_and_held_out_rows(kind):
    for found, expected in zip(comparisons(kind), compared(), strict=True):
        pd.testing.assert_frame_equal(found, expected)


@cache
def compared():
    return comparisons(InPandas())


def test_kernels(kind):
    table = {name: PEOPLE[name] for name in NUMBERS}
    other = {name: [v + 50.0 for v in PEOPLE[name][::-1]] for name in NUMBERS}
    x, y = (np.column_stack(list(t.values())) for t in (table, other))
    frames = kind.frame(table), kind.frame({n: list(v) for n, v in other.items()})
    if isinstance(kind, (InNullable, InArrowTypes)):
        assert str(frames[0].dtypes["age"]).lower().startswith("int64")
    assert kernel_renyi_divergence(*frames, gamma=1e-4) == kernel_renyi_divergence(
        x, y, gamma=1e-4
    )
    with pytest.raises(ValueError, match="in another order"):
        kernel_renyi_divergence(frames[0], kind.frame(dict(reversed(other.items()))))
    moments = [
        KernelMoments(gamma=1e-4, n_components=8).partial_fit(rows).second_moment
        for rows in (frames[0], x)
    ]
    np.testing.assert_array_equal(*moments)


def audits(kind):
    """Every audit, of a release that says too much."""
    values = np.random.default_rng(0).normal(size=120) + np.arange(120) % 2
    table = {"bmi": values.tolist(), "sex": ["F", "M"] * 60, "job": JOBS[:2] * 60}
    frame = kind.frame({name: table[name] for name in ("bmi", "sex")})
    rows, labels = kind.frame({"bmi": table["bmi"]}), kind.series(table["sex"])
    halves = [kind.rows(rows, list(range(i, i + 60))) for i in (0, 60)]
    auditor = KernelRenyiAuditor(scorers="linear", n_components=16)
    options = {"n_samples": 60, "auditor": auditor, "random_state": 0}
    noise = LAPLACE.estimator(random_state=0).fit(frame)
    both = LAPLACE.estimator(secret=["sex", "job"], random_state=0)
    both.fit(kind.frame(table))
    return [
        clone(auditor).set_params(secret="sex").fit(frame).bound_,
        clone(auditor).fit(rows, secret=labels).bound_,
        RunningAudit(1.0, n_components=16, random_state=0).fit(*halves).e_value_,
        audit_estimator(noise, frame, **options).cases[0].bound,
        make_audit_scorer(auditor, secret="sex")(noise, frame),
        make_audit_scorer(auditor, secret=["sex", "job"])(both, kind.frame(table)),
    ]


def test_audits(kind):
    assert audits(kind) == audited()


@cache
def audited():
    found = audits(InPandas())
    assert not np.isnan(found).any()
    return found


# --- in pipelines ---------------------------------------------------------------


@BOTH
def test_other_branches_keep_their_types(kind, case):
    if kind.library == "pyarrow":
        pytest.skip("a ColumnTransformer does not pass columns of pyarrow through")
    frame = kind.frame(case.table("sex") | {"rest": PEOPLE["job"], "more": [1] * N})
    transformer = ColumnTransformer(
        [
            ("noise", case.estimator(), ["sex", *case.columns[::-1]]),
            ("rest", "passthrough", ["rest", "more"]),
        ],
        verbose_feature_names_out=False,
    ).set_output(transform=kind.library)
    released = transformer.fit_transform(frame)
    names = [*case.columns[::-1], "rest", "more"]
    assert type(released) is type(frame)
    assert list(kind.lists(released)) == names
    assert list(transformer.get_feature_names_out()) == names
    types, before = kind.dtypes(released), kind.dtypes(frame)
    for name in names:
        wanted = kind.float64 if name in NUMBERS else before[name]
        assert types[name] == wanted
    assert kind.lists(released)["rest"] == PEOPLE["job"]
    again = transformer.transform(kind.rows(frame, list(range(5))))
    assert list(kind.lists(again)) == names


def test_two_branches_with_their_own_secrets(kind):
    if kind.library == "pyarrow":
        pytest.skip("a ColumnTransformer takes no pyarrow table")
    frame = kind.frame({name: PEOPLE[name] for name in ("age", "bmi", "job", "sex")})
    transformer = ColumnTransformer(
        [
            ("a", RenyiPufferfishLaplace(secret="sex"), ["age", "sex"]),
            ("b", RenyiPufferfishLaplace(secret="job"), ["bmi", "job"]),
        ]
    ).set_output(transform=kind.library)
    released = transformer.fit_transform(frame)
    assert list(kind.lists(released)) == ["a__age", "b__bmi"]
    alone = plain_scale({"bmi": PEOPLE["bmi"], "job": PEOPLE["job"]}, secret="job")
    np.testing.assert_array_equal(transformer.named_transformers_["b"].scale_, alone)


def test_steps_after_in_a_pipeline(kind):
    frame = kind.frame(LAPLACE.table())
    noise = LAPLACE.estimator(epsilon=1e6, random_state=0)
    scaled = StandardScaler().fit_transform(
        pd.DataFrame(LAPLACE.table())[list(NUMBERS)]
    )
    for library in ("pandas", "polars", "default"):
        pipeline = make_pipeline(noise, StandardScaler()).set_output(transform=library)
        released = pipeline.fit_transform(frame)
        if library != "default":
            assert list(released.columns) == list(NUMBERS)
        assert list(pipeline.get_feature_names_out()) == list(NUMBERS)
        np.testing.assert_allclose(np.asarray(released), scaled, atol=0.05)
