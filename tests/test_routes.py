"""The ways a secret reaches fit: the same noise whichever is taken."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpuffer import (
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
N = 70
LAWS = {
    "laplace": RenyiPufferfishLaplace,
    "gaussian": RenyiPufferfishGaussian,
    "exponential": RenyiPufferfishExponential,
}


def people():
    rng = np.random.default_rng(11)
    sex = rng.choice(["F", "M"], N)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, N) + 4.0 * (sex == "M"),
            "bmi": rng.normal(25, 4, N).round(2),
            "sex": sex,
            "income": rng.normal(30, 9, N).round(1),
        }
    )


PEOPLE = people()
X, SEX, INCOME = PEOPLE[["age", "bmi"]], PEOPLE["sex"], PEOPLE["income"]
WITH_SEX = PEOPLE[["age", "sex", "bmi"]]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def then_regress(step):
    return Pipeline([("noise", step), ("model", LinearRegression())])


def search(step):
    # One candidate: what is refitted on all rows is what the other ways fit.
    return GridSearchCV(
        then_regress(step),
        {"noise__epsilon": [1.0]},
        cv=3,
        n_jobs=2,
        error_score="raise",
    )


OFF = {
    "column": lambda law: law(secret="sex").fit(WITH_SEX),
    "list of one column": lambda law: law(secret=["sex"]).fit(WITH_SEX),
    "position": lambda law: law(secret=1).fit(WITH_SEX.to_numpy()),
    "position from the end": lambda law: law(secret=-2).fit(WITH_SEX.to_numpy()),
    "fit keyword": lambda law: law().fit(X, secret=SEX),
    "fit keyword and target": lambda law: law().fit(X, INCOME, secret=SEX),
    "fit_transform keyword": lambda law: fitted_by_fit_transform(law()),
    "y": lambda law: law(secret_from_y=True).fit(X, SEX),
    "column in a pipeline": lambda law: then_regress(law(secret="sex")).fit(
        WITH_SEX, INCOME
    )["noise"],
    "y of a pipeline": lambda law: make_pipeline(law(secret_from_y=True)).fit(X, SEX)[
        0
    ],
    "column in a ColumnTransformer": lambda law: (
        ColumnTransformer([("noise", law(secret="sex"), ["age", "bmi", "sex"])])
        .fit(PEOPLE)
        .named_transformers_["noise"]
    ),
    "position in a ColumnTransformer": lambda law: (
        ColumnTransformer([("noise", law(secret=1), [0, 1, 2])])
        .fit(WITH_SEX.to_numpy())
        .named_transformers_["noise"]
    ),
    "step__secret": lambda law: then_regress(law()).fit(X, INCOME, noise__secret=SEX)[
        "noise"
    ],
    "step__secret in a search": lambda law: (
        search(law()).fit(X, INCOME, noise__secret=SEX).best_estimator_["noise"]
    ),
    "column in a search": lambda law: (
        search(law(secret="sex")).fit(WITH_SEX, INCOME).best_estimator_["noise"]
    ),
}


def fitted_by_fit_transform(estimator):
    assert estimator.fit_transform(X, secret=SEX).shape == X.shape
    return estimator


def asking(law):
    return law().set_fit_request(secret=True)


ON = {
    "fit keyword": lambda law: asking(law).fit(X, secret=SEX),
    "fit_transform keyword": lambda law: fitted_by_fit_transform(asking(law)),
    "Pipeline": lambda law: then_regress(asking(law)).fit(X, INCOME, secret=SEX)[
        "noise"
    ],
    "ColumnTransformer": lambda law: (
        ColumnTransformer([("noise", asking(law), ["age", "bmi"])])
        .fit(PEOPLE, secret=SEX)
        .named_transformers_["noise"]
    ),
    "ColumnTransformer in a Pipeline": lambda law: (
        then_regress(ColumnTransformer([("noise", asking(law), ["age", "bmi"])]))
        .fit(PEOPLE, INCOME, secret=SEX)["noise"]
        .named_transformers_["noise"]
    ),
    "GridSearchCV": lambda law: (
        search(asking(law)).fit(X, INCOME, secret=SEX).best_estimator_["noise"]
    ),
    "under another name": lambda law: then_regress(
        law().set_fit_request(secret="gender")
    ).fit(X, INCOME, gender=SEX)["noise"],
}


@pytest.fixture(scope="module")
def expected():
    return {name: law(secret="sex").fit(WITH_SEX) for name, law in LAWS.items()}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("route", OFF)
def test_every_way_gives_the_same_scale_with_routing_off(route, law, expected):
    fitted = OFF[route](LAWS[law])
    np.testing.assert_array_equal(fitted.scale_, expected[law].scale_)
    assert fitted.guarantee_.pairs == (("F", "M"),)
    assert fitted.n_features_in_ == 2


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("route", ON)
def test_every_way_gives_the_same_scale_with_routing_on(route, law, expected):
    fitted = ON[route](LAWS[law])
    np.testing.assert_array_equal(fitted.scale_, expected[law].scale_)
    assert fitted.guarantee_.pairs == (("F", "M"),)


@pytest.mark.parametrize("law", LAWS.values())
def test_another_secret_gives_another_scale(law):
    # Or the tests above would say nothing.
    first = law().fit(X, secret=SEX).scale_
    second = law().fit(X, secret=SEX.sample(frac=1, random_state=0).to_numpy()).scale_
    assert (np.abs(second / first - 1) > 1e-3).all()


def test_a_fold_gets_the_secrets_of_its_rows():
    folds = list(KFold(3, shuffle=True, random_state=2).split(X))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(
            then_regress(asking(RenyiPufferfishLaplace)),
            X,
            INCOME,
            params={"secret": SEX},
            cv=folds,
            return_estimator=True,
            error_score="raise",
        )["estimator"]
    by_step = cross_validate(
        then_regress(RenyiPufferfishLaplace()),
        X,
        INCOME,
        params={"noise__secret": SEX},
        cv=folds,
        return_estimator=True,
        error_score="raise",
    )["estimator"]
    by_column = cross_validate(
        then_regress(RenyiPufferfishLaplace(secret="sex")),
        WITH_SEX,
        INCOME,
        cv=folds,
        return_estimator=True,
        error_score="raise",
    )["estimator"]
    scales = set()
    for (rows, _), *fitted in zip(folds, routed, by_step, by_column, strict=True):
        alone = RenyiPufferfishLaplace().fit(X.iloc[rows], secret=SEX.iloc[rows])
        for pipeline in fitted:
            noise = pipeline["noise"]
            np.testing.assert_array_equal(noise.scale_, alone.scale_)
            sizes = SEX.iloc[rows].value_counts().sort_index()
            assert noise.guarantee_.group_sizes == tuple(
                (None, value, size) for value, size in sizes.items()
            )
        scales.add(tuple(alone.scale_))
    assert len(scales) == 3


def test_a_column_transformer_without_routing_takes_no_secret():
    transformer = ColumnTransformer([("noise", RenyiPufferfishLaplace(), ["age"])])
    with pytest.raises((TypeError, ValueError)):
        transformer.fit(PEOPLE, secret=SEX)
    with pytest.raises((TypeError, ValueError)):
        transformer.fit(PEOPLE, noise__secret=SEX)


@pytest.mark.usefixtures("routing")
def test_a_secret_that_nobody_asked_for_raises():
    with pytest.raises(UnsetMetadataPassedError, match="secret"):
        then_regress(RenyiPufferfishLaplace()).fit(X, INCOME, secret=SEX)
    with pytest.raises(ValueError, match="no secret to protect"):
        then_regress(asking(RenyiPufferfishLaplace)).fit(X, INCOME)


def test_a_step_that_returns_an_array_loses_the_name_and_says_so():
    codes = WITH_SEX.assign(sex=(SEX == "F").astype(float))
    with pytest.raises(ValueError, match=r"set_output\(transform='pandas'\)"):
        make_pipeline(StandardScaler(), RenyiPufferfishLaplace(secret="sex")).fit(codes)
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, RenyiPufferfishLaplace(secret="sex")).fit(codes)
    assert list(pipeline.get_feature_names_out()) == ["age", "bmi"]


@pytest.mark.parametrize("law", LAWS.values())
def test_priors_and_weights_take_the_same_ways(law):
    site = np.array(["north", "south"])[np.arange(N) % 2]
    weight = 1.0 + np.arange(N) % 3
    table = WITH_SEX.assign(site=site)
    expected = law(secret="sex", prior="site").fit(table, sample_weight=weight)
    assert expected.guarantee_.priors == ("north", "south")
    unweighted = law(secret="sex", prior="site").fit(table)
    without = law(secret="sex").fit(WITH_SEX, sample_weight=weight)
    for other in (unweighted, without):
        assert not np.array_equal(other.scale_, expected.scale_)
    given = {"secret": SEX, "prior": site, "sample_weight": weight}
    with sklearn.config_context(enable_metadata_routing=True):
        step = law().set_fit_request(secret=True, prior=True, sample_weight=True)
        model = LinearRegression().set_fit_request(sample_weight=False)
        routed = make_pipeline(step, model).fit(X, INCOME, **given)[0]
    fitted = [
        law().fit(X, **given),
        law(secret=1, prior=3).fit(table.to_numpy(), sample_weight=weight),
        law(secret=1, prior=-1).fit(table.to_numpy(), sample_weight=weight),
        law(prior="site").fit(
            table.drop(columns="sex"), secret=SEX, sample_weight=weight
        ),
        law(secret_from_y=True).fit(X, SEX, prior=site, sample_weight=weight),
        then_regress(law()).fit(
            X, INCOME, **{f"noise__{name}": value for name, value in given.items()}
        )["noise"],
        routed,
    ]
    for estimator in fitted:
        np.testing.assert_array_equal(estimator.scale_, expected.scale_)
        assert estimator.guarantee_.priors == expected.guarantee_.priors


def test_labels_whose_index_disagrees_with_the_rows_are_refused():
    expected = RenyiPufferfishLaplace().fit(X, secret=SEX).scale_
    shuffled = SEX.sample(frac=1, random_state=1)
    for labels in (shuffled, shuffled.to_frame(), SEX.reset_index(drop=True) + ""):
        if labels.index.equals(X.index):
            continue
        with pytest.raises(ValueError, match="secret has another index than X"):
            RenyiPufferfishLaplace().fit(X, secret=labels)
    by_position = RenyiPufferfishLaplace().fit(X, secret=SEX.to_numpy()).scale_
    np.testing.assert_array_equal(by_position, expected)
    aligned = RenyiPufferfishLaplace().fit(X, secret=shuffled.loc[X.index]).scale_
    np.testing.assert_array_equal(aligned, expected)


@pytest.mark.parametrize("law", LAWS.values())
def test_a_weight_is_so_many_rows_and_no_weight_is_no_row(law):
    weight = np.arange(N) % 3
    fitted = law(secret="sex").fit(WITH_SEX, sample_weight=weight)
    repeated = WITH_SEX.loc[WITH_SEX.index.repeat(weight)]
    expected = law(secret="sex").fit(repeated).scale_
    np.testing.assert_allclose(fitted.scale_, expected, rtol=1e-5)
    kept = law(secret="sex").fit(WITH_SEX[weight > 0], sample_weight=weight[weight > 0])
    np.testing.assert_array_equal(fitted.scale_, kept.scale_)
    assert fitted.guarantee_ == kept.guarantee_


# --- transform needs no secret ------------------------------------------------------


def fitted_on(kind):
    if kind == "frame":
        return RenyiPufferfishLaplace(secret="sex", prior="income", random_state=4).fit(
            PEOPLE.assign(income=np.arange(N) % 2)
        )
    return RenyiPufferfishLaplace(secret=2, prior=-1, random_state=4).fit(
        PEOPLE.assign(income=np.arange(N) % 2).to_numpy()
    )


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_transform_takes_rows_with_or_without_what_fit_dropped(kind):
    expected = fitted_on("frame").transform(PEOPLE).to_numpy()
    if kind == "frame":
        given = [
            PEOPLE,
            X,
            WITH_SEX,
            PEOPLE[["sex", "age", "income", "bmi"]],
            PEOPLE.assign(sex=None, income=np.nan),
            PEOPLE.assign(sex="never seen"),
        ]
    else:
        given = [
            PEOPLE.to_numpy(),
            X.to_numpy(),
            PEOPLE.assign(sex="?", income=None).to_numpy(),
        ]
    for rows in given:
        np.testing.assert_array_equal(fitted_on(kind).transform(rows), expected)


def test_a_column_transformer_still_asks_for_the_column():
    transformer = ColumnTransformer(
        [("noise", RenyiPufferfishLaplace(secret="sex"), ["age", "bmi", "sex"])]
    ).fit(PEOPLE)
    assert transformer.transform(PEOPLE[:3]).shape == (3, 2)
    with pytest.raises(ValueError, match=r"columns are missing.*sex"):
        transformer.transform(X)


def test_a_pipeline_predicts_without_the_secret():
    pipeline = then_regress(RenyiPufferfishLaplace(secret="sex")).fit(WITH_SEX, INCOME)
    assert pipeline.predict(X).shape == (N,)
    assert pipeline.predict(WITH_SEX[:2]).shape == (2,)


# --- the secret in clear ------------------------------------------------------------


@pytest.mark.usefixtures("routing")
def test_a_routed_secret_that_stays_in_x_passes_through_in_clear():
    # Documented in the guide: no transformer can see what its neighbours do.
    leaky = ColumnTransformer(
        [("noise", asking(RenyiPufferfishLaplace), ["age", "bmi"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    released = leaky.fit_transform(WITH_SEX, secret=SEX)
    assert released["sex"].equals(SEX)
    # The right ways: the column is named among those of the transformer, or it is gone.
    tight = ColumnTransformer(
        [("noise", RenyiPufferfishLaplace(secret="sex"), ["age", "bmi", "sex"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    assert list(tight.fit_transform(WITH_SEX)) == ["age", "bmi"]
    released = leaky.fit_transform(WITH_SEX.drop(columns="sex"), secret=SEX)
    assert list(released) == ["age", "bmi"]


def test_no_way_lets_the_secret_out():
    keep = FunctionTransformer().set_output(transform="pandas")
    by_sex = RenyiPufferfishLaplace(secret="sex", random_state=0)
    constant = PEOPLE.assign(income=1)
    for estimator, rows in (
        (make_pipeline(keep, by_sex), WITH_SEX),
        (clone(by_sex).set_params(secret=["sex", "income"]), constant),
        (clone(by_sex).set_params(prior="income"), constant),
    ):
        released = estimator.fit_transform(rows)
        assert list(released) == ["age", "bmi"]
        assert not (released.to_numpy() == X.to_numpy()).any()
