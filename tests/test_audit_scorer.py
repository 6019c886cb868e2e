"""The audit as a score: how the secret reaches it, what it releases, what it prefers."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skpuffer import RenyiPufferfishLaplace
from skpuffer.audit import KernelRenyiAuditor, make_audit_scorer
from skpuffer.exceptions import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
N = 900
AUDITOR = KernelRenyiAuditor(epsilon=1.0, n_components=16, random_state=0)


def people():
    rng = np.random.default_rng(2)
    sex = rng.choice(["F", "M"], N)
    age = rng.integers(20, 40, N) + 9.0 * (sex == "M")
    return pd.DataFrame({"age": age, "sex": sex})


PEOPLE = people()
AGE, SEX = PEOPLE[["age"]], PEOPLE["sex"]
TARGET = PEOPLE["age"] * 0.1 + np.random.default_rng(3).normal(size=N)


def model(secret="sex", epsilon=1.0):
    noise = RenyiPufferfishLaplace(4, epsilon, secret=secret, random_state=0)
    return Pipeline([("noise", noise), ("model", LinearRegression())])


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def raw(X):
    """Release everything as it is."""
    return X[["age"]]


# --- the ways of the secret ---


def test_the_secret_as_a_column_beside_a_utility():
    scores = cross_validate(
        model(),
        PEOPLE,
        TARGET,
        cv=3,
        scoring={"utility": "r2", "secrecy": make_audit_scorer(AUDITOR, secret="sex")},
    )
    assert (scores["test_secrecy"] <= 0).all()
    assert np.isfinite(scores["test_secrecy"]).all()
    assert np.isfinite(scores["test_utility"]).all()


@pytest.mark.usefixtures("routing")
def test_the_secret_as_metadata_beside_a_utility():
    scorer = make_audit_scorer(AUDITOR).set_score_request(secret=True)
    scoring = {"utility": "r2", "secrecy": scorer}
    pipeline = model(secret=None)
    pipeline["noise"].set_fit_request(secret=True)
    scores = cross_validate(
        pipeline, AGE, TARGET, cv=3, scoring=scoring, params={"secret": SEX}
    )
    # The same folds, seeds and labels as with the column.
    beside = cross_validate(
        model(),
        PEOPLE,
        TARGET,
        cv=3,
        scoring={"utility": "r2", "secrecy": make_audit_scorer(AUDITOR, secret="sex")},
        # scikit-learn 1.6.0 wants them with routing on.
        params={},
    )
    np.testing.assert_allclose(scores["test_secrecy"], beside["test_secrecy"])
    search = GridSearchCV(
        pipeline,
        {"noise__epsilon": [0.2, 30.0]},
        cv=3,
        scoring=scoring,
        refit="secrecy",
        error_score="raise",
    ).fit(AGE, TARGET, secret=SEX)
    assert search.best_params_ == {"noise__epsilon": 0.2}
    assert search.cv_results_["mean_test_utility"].argmax() == 1


@pytest.mark.usefixtures("routing")
def test_metadata_that_is_not_requested_is_refused():
    pipeline = model(secret=None)
    pipeline["noise"].set_fit_request(secret=True)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="secret"):
        cross_validate(
            pipeline,
            AGE,
            TARGET,
            cv=3,
            scoring=make_audit_scorer(AUDITOR),
            params={"secret": SEX},
        )


def test_a_search_prefers_less_leakage_and_a_utility_more():
    search = GridSearchCV(
        model(),
        {"noise__epsilon": [0.2, 30.0]},
        cv=3,
        scoring={"utility": "r2", "secrecy": make_audit_scorer(AUDITOR, secret="sex")},
        refit="secrecy",
        error_score="raise",
    ).fit(PEOPLE, TARGET)
    assert search.best_params_ == {"noise__epsilon": 0.2}
    results = search.cv_results_
    assert results["mean_test_secrecy"][0] > results["mean_test_secrecy"][1] + 0.5
    assert results["mean_test_utility"].argmax() == 1
    # A search is scored by its best estimator.
    score = make_audit_scorer(AUDITOR, secret="sex")(search, PEOPLE)
    assert -1 < score <= 0


def test_several_secret_columns_arrays_and_polars():
    data = PEOPLE.assign(site=np.arange(N) % 2)
    scorer = make_audit_scorer(AUDITOR, secret=["sex", "site"])
    noise = RenyiPufferfishLaplace(4, 1.0, secret=["sex", "site"]).fit(data)
    assert scorer(noise, data) <= 0
    scorer = make_audit_scorer(AUDITOR, secret="sex")
    frame = pl.DataFrame(PEOPLE.to_dict("list"))
    noise = RenyiPufferfishLaplace(4, 30.0, secret="sex").fit(frame)
    assert scorer(noise, frame) < -0.3
    array = np.column_stack([PEOPLE["age"], SEX == "M"]).astype(float)
    noise = RenyiPufferfishLaplace(4, 30.0, secret=1).fit(array)
    assert make_audit_scorer(AUDITOR, secret=1)(noise, array) < -0.3


# --- what is released ---


def test_the_release_is_that_of_the_steps_before_a_classifier_or_of_a_named_step():
    scorer = make_audit_scorer(AUDITOR, secret="sex")
    leaky = FunctionTransformer(raw)
    late = Pipeline(
        [
            ("raw", leaky),
            ("noise", RenyiPufferfishLaplace(4, 0.2, random_state=0)),
            ("scale", StandardScaler()),
            ("model", LogisticRegression()),
        ]
    ).fit(PEOPLE, SEX, noise__secret=SEX)
    assert scorer(late, PEOPLE) > -0.3
    for step, low, high in (("raw", -9, -0.8), ("noise", -0.3, 0), ("scale", -0.3, 0)):
        named = make_audit_scorer(AUDITOR, secret="sex", step=step)
        assert low <= named(late, PEOPLE) <= high
    # A transformer, and a pipeline that ends in one.
    assert scorer(leaky.fit(PEOPLE), PEOPLE) < -0.8
    assert scorer(late[:3], PEOPLE) > -0.3
    assert scorer(late[:1], PEOPLE) < -0.8


@pytest.mark.parametrize("step", ["model", "other"])
def test_what_releases_nothing_is_refused(step):
    fitted = model().fit(PEOPLE, TARGET)
    with pytest.raises(ParameterError, match=f"'{step}'|no release"):
        make_audit_scorer(AUDITOR, secret="sex", step=step)(fitted, PEOPLE)
    scorer = make_audit_scorer(AUDITOR, secret="sex")
    for estimator in (
        LinearRegression().fit(AGE, TARGET),
        Pipeline([("model", LinearRegression())]).fit(AGE, TARGET),
    ):
        with pytest.raises(ParameterError, match="no release to audit"):
            scorer(estimator, PEOPLE)


# --- what comes out ---


def test_the_score_is_minus_the_bound():
    noise = RenyiPufferfishLaplace(4, 30.0, secret="sex", random_state=0).fit(PEOPLE)
    score = make_audit_scorer(AUDITOR, secret="sex")(noise, PEOPLE)
    released = clone(noise).fit(PEOPLE).transform(PEOPLE)
    bound = clone(AUDITOR).fit(released, secret=SEX).bound_
    assert score == pytest.approx(-bound)
    assert bound > 0.3
    given = make_audit_scorer(AUDITOR)
    again = clone(noise).fit(PEOPLE)
    assert given(again, AGE, secret=SEX) == score
    # The auditor itself is a pattern and stays unfitted.
    assert not hasattr(AUDITOR, "bound_")


def test_what_cannot_be_computed_is_nan_with_a_reason():
    few = PEOPLE.groupby("sex").head(6)
    noise = RenyiPufferfishLaplace(4, 1.0, secret="sex").fit(PEOPLE)
    scorer = make_audit_scorer(AUDITOR, secret="sex")
    with pytest.warns(UndefinedMetricWarning, match="the audit score is NaN: "):
        assert math.isnan(scorer(noise, few))


def test_the_secret_once_and_no_more():
    noise = RenyiPufferfishLaplace(4, 1.0, secret="sex").fit(PEOPLE)
    with pytest.raises(ParameterError, match="no secret"):
        make_audit_scorer(AUDITOR)(noise, PEOPLE)
    with pytest.raises(ParameterError, match="twice"):
        make_audit_scorer(AUDITOR, secret="sex")(noise, PEOPLE, secret=SEX)
    with pytest.raises(ParameterError, match="did you mean 'sex'"):
        make_audit_scorer(AUDITOR, secret="sexx")(noise, PEOPLE)


def test_scorers_are_cloned_and_pickled_with_their_requests():
    scorer = make_audit_scorer(AUDITOR, step="noise")
    with sklearn.config_context(enable_metadata_routing=True):
        scorer.set_score_request(secret=True)
    for copied in (clone(scorer), pickle.loads(pickle.dumps(scorer))):
        assert copied.step == "noise"
        assert copied.auditor.get_params() == AUDITOR.get_params()
        assert copied.get_metadata_routing().score.requests == {"secret": True}
    default = make_audit_scorer(secret="sex")
    noise = RenyiPufferfishLaplace(4, 1.0, secret="sex").fit(PEOPLE)
    assert -1.5 < default(noise, PEOPLE) <= 0


@pytest.mark.parametrize("wrong", ["kernel", KernelRenyiAuditor, 1])
def test_what_is_no_auditor_is_refused_at_once(wrong):
    with pytest.raises(ParameterError, match=r"such as KernelRenyiAuditor\(\)"):
        make_audit_scorer(wrong, secret="sex")
