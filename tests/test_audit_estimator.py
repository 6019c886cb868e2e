"""Audits of fitted estimators: what is drawn, released and held against which claim."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError

from skpuffer import (
    RenyiPufferfishCategorical,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)
from skpuffer.audit import KernelRenyiAuditor, audit_estimator
from skpuffer.audit._promised import promised_cases
from skpuffer.exceptions import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
LAWS = {"laplace": RenyiPufferfishLaplace, "gaussian": RenyiPufferfishGaussian}
EACH_LAW = pytest.mark.parametrize("law", LAWS)
QUICK = {"n_samples": 1500, "random_state": 0}


def people(rows=240, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 40, rows) + 6.0 * (sex == "M"),
            "sex": sex,
            "pay": rng.integers(0, 9, rows) * 1.5,
        }
    )


PEOPLE = people()
ONE = PEOPLE[["age", "sex"]]


def cases(noise, *data, held_out=False, n=4000, prior=None, sample_weight=None):
    X, secret = (*data, None, None)[:2]
    return list(
        promised_cases(
            noise,
            X,
            secret,
            prior,
            sample_weight,
            held_out=held_out,
            n_samples=n,
            rng=np.random.default_rng(1),
        )
    )


# --- what is drawn ---


def test_rows_are_drawn_from_the_fitted_conditionals():
    noise = RenyiPufferfishLaplace(secret="sex").fit(PEOPLE)
    (case,) = cases(noise, PEOPLE)
    assert (case.prior, case.pair) == (None, ("F", "M"))
    for label, rows in zip(case.pair, (case.first, case.second), strict=True):
        given = PEOPLE.loc[PEOPLE["sex"] == label, ["age", "pay"]]
        known, counts = np.unique(given, axis=0, return_counts=True)
        drawn, seen = np.unique(rows, axis=0, return_counts=True)
        # Whole rows, in their proportions.
        assert {tuple(row) for row in drawn} <= {tuple(row) for row in known}
        found = dict(zip(map(tuple, drawn), seen, strict=True))
        observed = [found.get(tuple(row), 0) for row in known]
        expected = counts / counts.sum() * 4000
        assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_draws_follow_sample_weights():
    weight = np.where(PEOPLE["age"] > 30, 3.0, 0.0)
    noise = RenyiPufferfishLaplace(secret="sex").fit(PEOPLE, sample_weight=weight)
    (case,) = cases(noise, PEOPLE, sample_weight=weight)
    assert min(case.first[:, 0].min(), case.second[:, 0].min()) > 30


def test_every_pair_of_every_prior_is_drawn():
    data = people(600).assign(
        site=np.arange(600) % 2, sex=np.array(["F", "M", "X"])[np.arange(600) % 3]
    )
    noise = RenyiPufferfishLaplace(
        secret="sex", prior="site", secret_pairs=[("F", "M"), ("X", "F")]
    ).fit(data)
    assert [(c.prior, c.pair) for c in cases(noise, data)] == [
        (site, pair) for site in (0, 1) for pair in (("F", "M"), ("F", "X"))
    ]
    # A pair that does not occur under a prior is left out there.
    some = data[~((data["site"] == 1) & (data["sex"] == "X"))]
    assert len(cases(clone(noise).fit(some), some)) == 3
    # Labels beside X, as fit takes them.
    bare = data.drop(columns=["sex", "site"])
    beside = RenyiPufferfishLaplace().fit(bare, secret=data["sex"], prior=data["site"])
    found = cases(beside, bare, data["sex"], prior=data["site"])
    assert len(found) == 6


def test_gaussian_draws_have_the_fitted_moments():
    noise = RenyiPufferfishGaussian(secret="sex", prior_model="gaussian").fit(ONE)
    (case,) = cases(noise, ONE)
    given = ONE.loc[ONE["sex"] == "F", "age"]
    law = stats.norm(given.mean(), given.std(ddof=0))
    assert stats.kstest(case.first[:, 0], law.cdf).pvalue > 1e-3


def test_bounded_draws_are_the_ends_of_the_bounds():
    noise = RenyiPufferfishLaplace(
        secret="sex", prior_model="bounded", bounds={"age": (18, 90), "pay": (0, 20)}
    ).fit(PEOPLE)
    (case,) = cases(noise, n=3)
    np.testing.assert_array_equal(case.first, [[18, 0]] * 3)
    np.testing.assert_array_equal(case.second, [[90, 20]] * 3)


def test_rows_held_out_are_taken_as_they_are():
    noise = RenyiPufferfishLaplace(secret="sex").fit(PEOPLE)
    other = people(90, seed=3)
    (case,) = cases(noise, other, held_out=True)
    for label, rows in zip(case.pair, (case.first, case.second), strict=True):
        given = other.loc[other["sex"] == label, ["age", "pay"]]
        np.testing.assert_array_equal(rows, given)


# --- verdicts ---


@EACH_LAW
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"epsilon": 2.0, "delta": 0.01, "alpha": 8},
        {"calibration": "exact"},
        {"n_releases": 2},
        {"prior_model": "bounded", "bounds": (10, 60)},
    ],
    ids=["renyi", "target", "exact", "copies", "bounded"],
)
def test_our_estimators_hold_and_a_sixteenth_of_the_noise_does_not(law, parameters):
    if law == "laplace" and "n_releases" in parameters:
        parameters = {**parameters, "calibration": "w_inf"}
    noise = LAWS[law](**{"alpha": 4, "epsilon": 1.0, **parameters}, secret="sex")
    noise.fit(ONE)
    found = audit_estimator(noise, ONE, **QUICK)
    assert found.verdict == "no violation found"
    assert 0 <= found.bound <= found.epsilon
    target = parameters.get("delta")
    assert found.delta == (target or 0.0)
    assert found.alpha == (None if target else 4)
    assert found.guarantee is noise.guarantee_
    # A power of two: scales lie on the grid of the release.
    noise.scale_ = noise.scale_ / 16
    found = audit_estimator(noise, ONE, **QUICK)
    assert found.verdict == "refuted"
    assert found.bound > found.epsilon


def test_an_infinite_order_is_a_pure_epsilon():
    noise = RenyiPufferfishLaplace(math.inf, 1.0, secret="sex").fit(ONE)
    found = audit_estimator(noise, ONE, **QUICK)
    assert (found.alpha, found.epsilon, found.delta) == (None, 1.0, 0.0)
    assert f"(ε ≥ {found.bound:.3g})" in str(found)
    assert found.verdict == "no violation found"


def test_several_copies_say_more_than_one():
    noise = RenyiPufferfishGaussian(2, 1.0, secret="sex").fit(ONE)
    one = audit_estimator(noise, ONE, n_samples=3000, random_state=0)
    assert one.verdict == "no violation found"
    # The noise of one copy under a promise about many.
    many = RenyiPufferfishGaussian(2, 1.0, secret="sex", n_releases=16).fit(ONE)
    assert audit_estimator(many, ONE, **QUICK).verdict == "no violation found"
    many.scale_ = noise.scale_
    found = audit_estimator(many, ONE, n_samples=3000, random_state=0)
    assert found.verdict == "refuted"
    assert found.bound > one.bound + 0.5


def test_each_column_alone_says_nothing_and_the_row_everything():
    rows = pd.DataFrame(
        {
            "a": [0, 1, 0, 1] * 50,
            "b": [0, 1, 1, 0] * 50,
            "secret": [0, 0, 1, 1] * 50,
        }
    )
    noise = RenyiPufferfishLaplace(secret="secret", scope="column").fit(rows)
    assert not noise.scale_.any()
    found = audit_estimator(noise, rows, **QUICK)
    assert [case.columns for case in found.cases] == [("a",), ("b",)]
    assert {case.verdict for case in found.cases} == {"no violation found"}
    # The same release, if the row were promised.
    joint = RenyiPufferfishLaplace(secret="secret").fit(rows)
    joint.scale_ = noise.scale_
    found = audit_estimator(joint, rows, **QUICK)
    assert [case.columns for case in found.cases] == [("a", "b")]
    assert found.verdict == "refuted"


def test_a_constant_column_says_nothing():
    rows = ONE.assign(one=1.0)
    noise = RenyiPufferfishLaplace(4, secret="sex", scope="column").fit(rows)
    found = audit_estimator(noise, rows, **QUICK)
    assert (found.cases[1].columns, found.cases[1].bound) == (("one",), 0.0)
    assert found.verdict == "no violation found"


def test_all_cases_share_the_confidence(monkeypatch):
    given = []
    fit = KernelRenyiAuditor.fit

    def spy(self, *args, **kwargs):
        given.append((self.confidence, self.n_components))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(KernelRenyiAuditor, "fit", spy)
    data = people(300).assign(site=np.arange(300) % 2)
    noise = RenyiPufferfishLaplace(secret="sex", prior="site", scope="column").fit(data)
    found = audit_estimator(
        noise,
        data,
        n_samples=100,
        confidence=0.9,
        auditor=KernelRenyiAuditor(n_components=16),
    )
    assert len(found.cases) == len(given) == 4
    assert given == [(pytest.approx(1 - 0.1 / 4), 16)] * 4
    assert found.confidence == 0.9


def test_rows_held_out_test_the_population():
    # Two groups that overlap in the fitted rows and hardly in the population.
    rng = np.random.default_rng(4)
    sex = np.array(["F", "M"])[np.arange(4000) % 2]
    other = pd.DataFrame(
        {"age": rng.integers(0, 5, 4000) + 6.0 * (sex == "M"), "sex": sex}
    )
    noise = RenyiPufferfishLaplace(4, 1.0, secret="sex").fit(
        other.assign(age=rng.integers(0, 6, 4000) * 1.0)
    )
    found = audit_estimator(noise, other, held_out=True, random_state=0)
    assert found.verdict == "refuted"
    assert found.held_out
    assert "for the population of X: refuted at confidence 95 %" in str(found)
    assert f"refuted (D_4 ≥ {found.bound:.3g})" in str(found)
    assert found.cases[0].n_rows == (2000, 2000)
    bounds = {"bounds": (0, 12), "prior_model": "population"}
    noise = RenyiPufferfishLaplace(4, 1.0, secret="sex", **bounds).fit(other)
    found = audit_estimator(noise, other, held_out=True, random_state=0)
    assert found.verdict == "no violation found"


def test_nothing_that_could_be_looked_at_is_nan():
    noise = RenyiPufferfishLaplace(secret="sex").fit(ONE)
    found = audit_estimator(noise, ONE.groupby("sex").head(5), held_out=True)
    assert math.isnan(found.bound)
    assert found.verdict == "too few samples"
    assert found.reason
    assert found.cases[0].reason in str(found)
    # Secret values that no pair of the guarantee names.
    other = ONE.assign(sex=np.where(ONE["sex"] == "F", "A", "B"))
    found = audit_estimator(noise, other, held_out=True)
    assert (found.verdict, found.cases) == ("too few samples", ())
    assert "no pair of the guarantee" in found.reason
    assert found.reason in str(found)


# --- the estimator and its copies ---


def test_the_estimator_is_left_as_it_is():
    noise = RenyiPufferfishLaplace(secret="sex", random_state=3).fit(ONE)
    before = pickle.dumps(noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = audit_estimator(noise, ONE, n_samples=500)
    assert found.verdict == "no violation found"
    assert pickle.dumps(noise) == before


def test_arrays_and_secrets_from_y():
    values, sex = ONE[["age"]].to_numpy(), ONE["sex"].to_numpy()
    noise = RenyiPufferfishLaplace(4, secret_from_y=True).fit(values, sex)
    found = audit_estimator(noise, values, sex, **QUICK)
    assert found.verdict == "no violation found"
    assert found.cases[0].columns == ("x0",)
    with_secret = np.column_stack([values[:, 0], sex == "M"]).astype(float)
    noise = RenyiPufferfishLaplace(4, secret=1).fit(with_secret)
    assert audit_estimator(noise, with_secret, **QUICK).cases[0].pair == (0.0, 1.0)


def test_any_estimator_with_a_guarantee_is_audited():
    class Forgetful(TransformerMixin, BaseEstimator):
        """A wrapper whose release adds nothing."""

        def __init__(self, inner):
            self.inner = inner

        def fit(self, X, y=None):
            self.inner.fit(X)
            for name in ("guarantee_", "feature_names_in_", "_dropped"):
                setattr(self, name, getattr(self.inner, name))
            return self

        def __getattr__(self, name):
            return getattr(vars(self)["inner"], name)

        def transform(self, X):
            return X

    noise = RenyiPufferfishLaplace(4, secret="sex")
    assert audit_estimator(noise.fit(ONE), ONE, **QUICK).verdict != "refuted"
    noise.transform = lambda X: X
    assert audit_estimator(noise, ONE, **QUICK).verdict == "refuted"


def test_what_cannot_be_audited():
    noise = RenyiPufferfishLaplace(secret="sex")
    with pytest.raises(NotFittedError):
        audit_estimator(noise, ONE)
    noise.fit(ONE)
    for parameters, message in (
        ({"n_samples": 0}, "n_samples=0"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"held_out": "yes"}, "held_out='yes'"),
        ({"random_state": -1}, "random_state=-1"),
        ({"X": None}, "X=None"),
        ({"X": people(90)[["age", "sex"]]}, "the fit had"),
        ({"X": PEOPLE}, "age, pay"),
        ({"X": ONE[["sex"]]}, "no column"),
        ({"held_out": True, "sample_weight": np.ones(240)}, "sample_weight"),
    ):
        with pytest.raises(ParameterError, match=message):
            audit_estimator(noise, **{"X": ONE, **parameters})
    bounds = {"bounds": (0, 99), "prior_model": "population"}
    noise.set_params(**bounds).fit(ONE)
    with pytest.raises(ParameterError, match="held_out=True"):
        audit_estimator(noise, ONE)
    with pytest.raises(ParameterError, match="no guarantee_"):
        audit_estimator(
            KernelRenyiAuditor().fit(*np.random.default_rng(0).random((2, 50, 1)))
        )


def test_other_rows_and_forgotten_weights_are_refused():
    noise = RenyiPufferfishLaplace(alpha=2, secret="sex").fit(ONE)
    wide = ONE.assign(**{ONE.columns[0]: 3 * ONE[ONE.columns[0]]})
    with pytest.raises(ParameterError, match=r"standard deviation.*held_out=True"):
        audit_estimator(noise, wide, **QUICK)
    weight = np.where(np.arange(len(ONE)) % 3, 1.0, 5.0)
    with pytest.raises(ParameterError, match=r"sample_weight=given.*not weighted"):
        audit_estimator(noise, ONE, sample_weight=weight, **QUICK)
    weighted = RenyiPufferfishLaplace(alpha=2, secret="sex")
    weighted.fit(ONE, sample_weight=weight)
    with pytest.raises(ParameterError, match=r"sample_weight=None.*was weighted"):
        audit_estimator(weighted, ONE, **QUICK)
    assert audit_estimator(weighted, ONE, sample_weight=weight, **QUICK).bound >= 0


def test_categories_are_refused():
    frame = pd.DataFrame({"job": ["a", "b", "c", "a"] * 20, "sex": ["F", "M"] * 40})
    noise = RenyiPufferfishCategorical(secret="sex", categories=[["a", "b", "c"]])
    with pytest.raises(
        ParameterError, match=r"Categorical releases categories.*one-hot"
    ):
        audit_estimator(noise.fit(frame), frame)


def test_arguments_in_another_order_are_told_apart():
    data = people()
    noise = RenyiPufferfishLaplace(secret="sex", scope="column").fit(data)
    with pytest.raises(
        ParameterError, match=r"240 × 3 .* audit_estimator\(estimator, X"
    ):
        audit_estimator(data, noise)
    with pytest.raises(ParameterError, match="name the auditor"):
        audit_estimator(noise, data, KernelRenyiAuditor())
    with pytest.raises(ParameterError, match="auditor='kernel' must be"):
        audit_estimator(noise, data, auditor="kernel")


def test_an_auditor_speaks_of_what_it_compares():
    data = people()
    for X, secret in ((data, data["sex"]), (data.to_numpy(), data["sex"])):
        with pytest.raises(ValueError, match="and a kernel compares numbers: encode"):
            KernelRenyiAuditor(epsilon=1).fit(X, secret=secret)
