"""`JointRelease`: numbers and categories as one row under one guarantee."""

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from paths import shared
from scipy import stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from skpuffer import (
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)
from skpuffer.core.grid import grid_step
from skpuffer.core.laws import LAWS
from skpuffer.exceptions import (
    CalibrationError,
    CategoriesFromDataWarning,
    ParameterError,
    ReproducibleNoiseWarning,
    ZeroNoiseWarning,
)

JOBS = ["clerk", "cook", "judge"]
SETS = {"job": JOBS, "flag": [False, True]}
NUMERIC = {"laplace": RenyiPufferfishLaplace, "gaussian": RenyiPufferfishGaussian}
SKIPPED = {
    "check_transformer_general",
    "check_transformer_data_not_an_array",
    "check_pipeline_consistency",
    "check_array_api_input",
}
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
each_law = pytest.mark.parametrize("law", NUMERIC)


def people(n=240, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    woman = sex == "F"
    return pd.DataFrame(
        {
            "job": np.where(
                rng.random(n) < 0.3 + 0.3 * woman, "cook", rng.choice(JOBS, n)
            ),
            "age": rng.integers(20, 40, n) + 3 * woman,
            "pay": rng.normal(2000, 300, n).round(),
            "flag": rng.random(n) < 0.4 + 0.2 * woman,
            "sex": sex,
        }
    )


def fitted(table=None, **parameters):
    table = people() if table is None else table
    chosen = {"alpha": 4.0, "secret": "sex", "categories": SETS} | parameters
    return JointRelease(**chosen).fit(table)


# --- the promise ----------------------------------------------------------------


@quiet
@each_law
def test_without_categories_it_is_the_numeric_release(law):
    table = people()[["age", "pay", "sex"]]
    for parameters in (
        {},
        {"n_releases": 2},
        {"prior_model": "bounded", "bounds": {"age": (0, 99), "pay": (0, 5000)}},
        {"column_weights": "range", "bounds": {"age": (0, 99), "pay": (0, 5000)}},
        {"column_weights": [1.0, 50.0], "secret_pairs": [("F", "M")]},
    ):
        joint = JointRelease(alpha=4, secret="sex", law=law, **parameters).fit(table)
        numeric = NUMERIC[law](alpha=4, secret="sex", **parameters).fit(table)
        assert np.array_equal(joint.scale_, numeric.scale_)
        assert np.array_equal(joint.noise_std_, numeric.noise_std_)
        assert str(joint.guarantee_) == str(numeric.guarantee_)
        assert joint.channels_ == {}
    alone = JointRelease(alpha=4, secret="sex", law=law).fit(table[["age", "sex"]])
    same = NUMERIC[law](alpha=4, secret="sex").fit(table[["age", "sex"]])
    assert np.array_equal(alone.scale_, same.scale_)


def test_without_numbers_it_is_the_categorical_release():
    table = people()[["job", "flag", "sex"]]
    for parameters in (
        {},
        {"n_releases": 2, "metric": {"job": "ordinal"}},
        {"prior_model": "bounded"},
        {"column_weights": {"job": 1, "flag": 3}},
    ):
        joint = fitted(table, **parameters)
        other = RenyiPufferfishCategorical(
            alpha=4, secret="sex", categories=SETS, **parameters
        ).fit(table)
        if parameters != {"prior_model": "bounded"}:
            assert np.array_equal(joint.scale_, other.scale_)
        assert str(joint.guarantee_)[:60] == str(other.guarantee_)[:60]
        assert joint.guarantee_.law == "categorical"
    with_law = fitted(table, law="gaussian")
    assert np.array_equal(with_law.scale_, fitted(table).scale_)


def xor(n=80):
    return pd.DataFrame(
        {
            "job": ["a", "b", "a", "b"] * (n // 4),
            "hours": [20, 40, 40, 20] * (n // 4),
            "sex": ["F", "F", "M", "M"] * (n // 4),
        }
    )


@quiet
def test_what_only_the_row_gives_away_is_covered():
    table = xor()
    sets = {"job": ["a", "b"]}
    # Each column alone is distributed alike, and would be released as it is.
    job = RenyiPufferfishCategorical(secret="sex", categories=[["a", "b"]])
    assert job.fit(table[["job", "sex"]]).scale_ == 0
    assert RenyiPufferfishLaplace(secret="sex").fit(table[["hours", "sex"]]).scale_ == 0
    row = fitted(table, categories=sets)
    assert (row.scale_ > 0).all()
    # Sums over the job, quadrature over the hours.
    b, channel = row.scale_[1], row.channels_["job"]
    hours = np.linspace(20 - 45 * b, 40 + 45 * b, 400_001)
    near, far = (np.exp(-np.abs(hours - x) / b) / (2 * b) for x in (20, 40))
    p = [(channel[0, y] * near + channel[1, y] * far) / 2 for y in (0, 1)]
    q = [(channel[0, y] * far + channel[1, y] * near) / 2 for y in (0, 1)]
    step = hours[1] - hours[0]
    moment = step * sum((u**4 * v**-3.0).sum() for u, v in zip(p, q, strict=True))
    assert math.log(moment) / 3 <= 1.0


@quiet
def test_the_condition_at_the_released_scales():
    # The largest divergence of any two rows bounds that of any two mixtures.
    bounds = {"age": (20, 43), "pay": (0, 5000)}
    for law in NUMERIC:
        row = fitted(prior_model="bounded", bounds=bounds, law=law, epsilon=2.0)
        total = 0.0
        for name, (low, high) in bounds.items():
            place = row.guarantee_.columns.index(name)
            scale = row.scale_[place : place + 1]
            step = grid_step(float(scale[0]))
            span = [[math.ceil((high - low) / step) * step]]
            total += LAWS[law]().shift_divergence(span, alpha=4.0, scale=scale)[0]
        for channel in row.channels_.values():
            table = np.einsum("xy,zy->xz", channel**4, channel**-3.0)
            total += math.log(table.max()) / 3
        assert 2.0 * (1 - 1e-4) < total <= 2.0 + 1e-9


def test_more_columns_and_copies_need_more_noise():
    table = people()
    one = fitted(table[["job", "age", "sex"]], categories={"job": JOBS})
    assert fitted(table).scale_[:2].sum() > one.scale_.sum()
    assert (fitted(table, n_releases=2).scale_ > fitted(table).scale_).all()


@quiet
def test_weights_split_the_budget():
    table = people()
    usual = fitted(table)
    std = table[["age", "pay"]].std(ddof=0).to_numpy()
    unit = usual.scale_ / [1.0, *std, 1.0]
    assert unit == pytest.approx(unit[0], rel=1e-5)
    wide = fitted(
        table,
        column_weights="range",
        bounds={"age": (0, 100), "pay": (0, 8000)},
        metric={"job": "ordinal"},
    )
    unit = wide.scale_ / [2.0, 100, 8000, 1.0]
    assert unit == pytest.approx(unit[0], rel=1e-5)
    given = {"job": 1.0, "age": 5.0, "pay": 900.0, "flag": 2.0}
    unit = fitted(table, column_weights=given).scale_ / list(given.values())
    assert unit == pytest.approx(unit[0], rel=1e-5)


def test_the_order_may_follow_the_target():
    table = people(80)
    auto = fitted(table, alpha="auto", epsilon=2.0, delta=1e-3)
    assert auto.guarantee_.to_epsilon(1e-3) <= 2.0 + 1e-9
    assert auto.privacy_profile([auto.alpha_])[0] <= auto.epsilon_
    for alpha in (6.0, 30.0):
        other = fitted(table, alpha=alpha, epsilon=2.0, delta=1e-3)
        assert auto.scale_[0] <= other.scale_[0] * 1.01
    gaussian = fitted(table, alpha="auto", epsilon=2.0, delta=1e-3, law="gaussian")
    assert math.isfinite(gaussian.alpha_)


def test_a_constant_column_takes_no_budget():
    table = people().assign(flag=True)
    with pytest.warns(ZeroNoiseWarning, match="'flag' .constant"):
        row = fitted(table)
    assert row.scale_[3] == 0
    without = fitted(table.drop(columns="flag"), categories={"job": JOBS})
    assert row.scale_[:3] == pytest.approx(without.scale_, rel=1e-4)
    with pytest.warns(ZeroNoiseWarning):
        assert row.transform(table)["flag"].all()


# --- the release ----------------------------------------------------------------


@quiet
@each_law
def test_both_mechanisms_are_those_of_the_scales(law):
    table = pd.concat([people(seed=s) for s in range(20)], ignore_index=True)
    row = fitted(law=law, random_state=1)
    released = row.transform(table)
    step = grid_step(float(row.scale_[1]))
    index = released["age"].to_numpy() / step
    assert (index == np.rint(index)).all()
    noise = (released["age"] - table["age"]) / row.scale_[1]
    assert stats.kstest(noise, "laplace" if law == "laplace" else "norm").pvalue > 1e-3
    seen = pd.crosstab(table["job"], released["job"]).loc[JOBS, JOBS].to_numpy()
    expected = seen.sum(axis=1, keepdims=True) * row.channels_["job"]
    assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), 6) > 1e-3
    # One column says nothing of the draw of another.
    moved = released["job"] != table["job"]
    assert stats.ks_2samp(noise[moved], noise[~moved]).pvalue > 1e-3


def test_types_are_kept():
    table = people().astype({"pay": np.float32, "job": "category"})
    table.index = table.index[::-1]
    row = JointRelease(secret="sex", categories={"flag": [False, True], "job": JOBS})
    released = row.fit(table).transform(table)
    assert released.dtypes.to_dict() == {
        "job": pd.CategoricalDtype(JOBS),
        "age": np.dtype(float),
        "pay": np.dtype(np.float32),
        "flag": np.dtype(bool),
    }
    assert released.index.equals(table.index)
    assert row.get_feature_names_out().tolist() == ["job", "age", "pay", "flag"]
    frame = pl.DataFrame(people().to_dict("list"))
    other = fitted(frame).transform(frame)
    assert other.schema == {**frame.drop("sex").schema, "age": pl.Float64}
    mixed = people()[["age", "job"]].to_numpy(dtype=object)
    array = JointRelease(categories=[JOBS]).fit(mixed, secret=people()["sex"])
    assert array.transform(mixed).dtype == object
    assert array.guarantee_.categories == (None, tuple(JOBS))
    whole = people()[["age", "flag"]].to_numpy(dtype=int)
    coded = JointRelease(categorical=[1], categories=[[0, 1]])
    released = coded.fit(whole, secret=people()["sex"]).transform(whole)
    assert released.dtype == float
    assert set(released[:, 1]) <= {0.0, 1.0}
    lists = people()[["age", "job"]].to_numpy(dtype=object).tolist()
    assert np.array_equal(
        JointRelease(categories=[JOBS]).fit(lists, secret=people()["sex"]).scale_,
        array.scale_,
    )


def test_which_columns_are_categories():
    table = people().assign(
        kind=people()["flag"].astype("category"), odd=[1, 2.5] * 120, text="x"
    )
    table["odd"] = table["odd"].astype(object)
    table.loc[::3, "text"] = "y"
    with pytest.warns(CategoriesFromDataWarning, match=r"'kind' .2., 'text' .2. were"):
        row = fitted(table, categories=SETS)
    assert list(row.categories_) == ["job", "flag", "kind", "text"]
    assert row.categories_["kind"] == (False, True)
    # Whole numbers are categories where that is said.
    ages = list(range(20, 43))
    chosen = fitted(
        people(),
        categorical=["job", "age", "flag"],
        categories=SETS | {"age": ages},
        metric={"age": "ordinal"},
    )
    assert chosen.guarantee_.metrics == ("discrete", "ordinal", None, "discrete")
    released = chosen.transform(people())
    assert released["age"].dtype == people()["age"].dtype
    assert set(released["age"]) <= set(ages)
    flags = people()[["flag"]].to_numpy()
    with pytest.warns(CategoriesFromDataWarning):
        JointRelease().fit(flags, secret=people()["sex"])


@quiet
def test_bounds_and_clipping():
    bounds = {"age": (22, 35), "pay": (1000, 3000)}
    row = fitted(bounds=bounds, clip_output=True)
    released = row.transform(people())
    assert released["age"].between(22, 35).all()
    assert set(released["job"]) <= set(JOBS)
    with pytest.raises(ValueError, match=r"'age' has .* outside its bounds"):
        fitted(bounds=bounds, out_of_bounds="error")
    assert row.guarantee_.bounds == (None, (22, 35), (1000, 3000), None)
    assert "flag in 2 categories" in str(
        fitted(prior_model="bounded", bounds=bounds).guarantee_
    )


@quiet
def test_seeds_threads_and_copies():
    table = people(500)
    row = fitted(table, random_state=3)
    with pytest.warns(ReproducibleNoiseWarning):
        first = row.transform(table)
    assert fitted(table, random_state=3, n_jobs=2).transform(table).equals(first)
    assert not row.transform(table).equals(first)
    fresh = fitted(table)
    kept = pickle.loads(pickle.dumps(fresh))
    assert not kept.transform(table).equals(fresh.transform(table))
    assert np.array_equal(clone(fresh).fit(table).scale_, fresh.scale_)
    assert len(pickle.dumps(fitted(people(2000)))) < len(pickle.dumps(fresh)) + 300


@quiet
def test_in_pipelines_and_searches():
    table, target = people(300), np.resize([0, 0, 1], 300)
    encode = ColumnTransformer(
        [("one", OneHotEncoder(), ["job"])], remainder="passthrough"
    )
    steps = make_pipeline(
        JointRelease(secret="sex", categories=SETS),
        encode,
        LogisticRegression(max_iter=5000),
    )
    search = GridSearchCV(steps, {"jointrelease__epsilon": [0.5, 2.0]}, cv=2)
    assert search.fit(table, target).predict(table).shape == (300,)
    out = JointRelease(secret="sex", categories=SETS).set_output(transform="pandas")
    assert out.fit_transform(table)["job"].isin(JOBS).all()


@quiet
def test_check_estimator():
    estimator = JointRelease(secret_from_y=True)
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = [r for r in results if r["status"] not in ("passed", "skipped")]
    assert failed == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= SKIPPED
    assert sum(r["status"] == "passed" for r in results) >= 40
    assert get_tags(estimator).non_deterministic


# --- refusals, words ------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"law": "exponential"}, "law='exponential' must be one of laplace, gaussian"),
        ({"law": "gaussian", "alpha": math.inf}, "alpha=inf"),
        ({"prior_model": "population"}, "prior_model='population' does not go with"),
        ({"prior_model": "bounded"}, "declares no range for age, pay"),
        ({"column_weights": "range"}, "declares no range for age, pay"),
        ({"column_weights": {"job": 1}}, "give every released column a weight"),
        ({"bounds": {"job": (0, 1)}}, "bounds names 'job'"),
        ({"categorical": "job"}, "categorical='job' must be 'auto' or a list"),
        ({"categorical": ["wage"]}, "categorical names 'wage'"),
        ({"clip_output": True}, "declares no range"),
        (
            {"categorical": ["flag"], "categories": [[False, True]]},
            "'job' holds String",
        ),
        ({"secret": None}, "no secret to protect"),
    ],
)
def test_parameters_are_checked(parameters, complaint):
    with pytest.raises((ParameterError, ValueError), match=complaint):
        fitted(**parameters)


def test_values_are_checked():
    row = fitted()
    for broken, complaint in (
        (people().assign(age=np.nan), "'age' is missing"),
        (people().assign(job=None), "'job' is missing"),
        (people().assign(job="chef"), "'job' has labels outside"),
        (people().assign(age="x"), "'age' holds String"),
        (people()[["age", "job", "pay", "flag"]], "feature names"),
    ):
        with pytest.raises(ValueError, match=complaint):
            row.transform(broken)
    with pytest.raises(ValueError, match="infinite"):
        row.transform(people().assign(pay=np.inf))
    with pytest.raises(ValueError, match=r"column 'pay'.*noise grid"):
        row.transform(people().assign(pay=1e18))
    with pytest.raises(ParameterError, match="clip_output=True was set after"):
        row.set_params(clip_output=True).transform(people())


def test_it_says_what_it_does():
    row = fitted()
    text = str(row.guarantee_)
    assert text.startswith("Each released row (job, age, pay, flag) is (4, 1)-Rényi")
    assert "Laplace noise of scale" in text
    assert "(pay); categories drawn with" in text
    assert "rule transport (joint convexity" in text
    card = json.loads(row.guarantee_.to_json())
    assert card["law"] == "laplace"
    assert card["categories"] == [JOBS, None, None, [False, True]]
    assert np.isnan(row.noise_std_[[0, 3]]).all()
    assert row.noise_std_[1] == pytest.approx(math.sqrt(2) * row.scale_[1])
    report = row.report_.to_frame()
    assert report.index.tolist() == ["job", "age", "pay", "flag"]
    assert report["noise_std"].notna().all()


@pytest.mark.slow
@quiet
def test_adult():
    table = pd.read_csv(shared("data", "adult.data"), skipinitialspace=True)
    columns = ["workclass", "education", "age", "hours-per-week", "sex"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CategoriesFromDataWarning)
        row = JointRelease(alpha=4, epsilon=1, secret="sex").fit(table[columns])
    # A full search found .8688 for θ; a sixth of the rows' time finds .876.
    assert row.scale_[0] < 0.9
    assert row.transform(table[columns]).shape == (len(table), 4)


def test_shifts_that_vanish_in_units_of_the_weights_are_no_reason_for_no_noise():
    rows = pd.DataFrame(
        {
            "age": np.repeat([0.0, 1e-23], 30),
            "job": ["clerk", "cook"] * 30,
            "sex": np.repeat(["F", "M"], 30),
        }
    )
    with pytest.raises(CalibrationError, match="units of the column weights"):
        JointRelease(secret="sex", categories=[JOBS], column_weights=[1.7e308, 1]).fit(
            rows
        )
