"""The scikit-learn contract: its own checks, and those that it skips."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from skpuffer import (
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)
from skpuffer.exceptions import (
    ParameterError,
    ReproducibleNoiseWarning,
    ZeroNoiseWarning,
)

quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
mechanisms = pytest.mark.parametrize(
    "mechanism",
    [RenyiPufferfishLaplace, RenyiPufferfishGaussian, RenyiPufferfishExponential],
)
# What scikit-learn leaves out for a transformer that says it is not deterministic
# (tested below), and what needs another array library.
SKIPPED = {
    "check_transformer_general",
    "check_transformer_data_not_an_array",
    "check_pipeline_consistency",
    "check_array_api_input",
}


def data(n=90, seed=0):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, n)
    return rng.normal(secret[:, np.newaxis] * 0.5, [1.0, 7.0], (n, 2)), secret


@quiet
@mechanisms
def test_check_estimator(mechanism):
    results = check_estimator(mechanism(secret_from_y=True), on_skip=None, on_fail=None)
    failed = [r for r in results if r["status"] not in ("passed", "skipped")]
    assert failed == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= SKIPPED
    assert sum(r["status"] == "passed" for r in results) >= 40


@mechanisms
def test_tags(mechanism):
    tags = get_tags(mechanism())
    assert tags.non_deterministic
    assert not tags.target_tags.required
    assert get_tags(mechanism(secret_from_y=True)).target_tags.required
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]
    assert not tags.input_tags.sparse
    assert not tags.input_tags.allow_nan


# --- checks that scikit-learn skips for what is not deterministic ---------------


@quiet
@mechanisms
def test_fit_and_transform_is_fit_transform(mechanism):
    X, secret = data()
    estimator = mechanism(secret_from_y=True, random_state=5)
    released = estimator.fit_transform(X, secret)
    np.testing.assert_array_equal(
        clone(estimator).fit(X, secret).transform(X), released
    )
    np.testing.assert_array_equal(
        make_pipeline(clone(estimator)).fit_transform(X, secret), released
    )
    np.testing.assert_array_equal(
        make_pipeline(clone(estimator)).fit(X, secret).transform(X), released
    )


class NotAnArray:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


@quiet
@mechanisms
@pytest.mark.parametrize("wrap", [NotAnArray, np.ndarray.tolist, np.asfortranarray])
def test_data_that_are_no_array(mechanism, wrap):
    X, secret = data()
    estimator = mechanism(secret_from_y=True, random_state=5)
    expected = estimator.fit_transform(X, secret)
    wrapped = clone(estimator).fit(wrap(X), wrap(secret))
    np.testing.assert_array_equal(wrapped.scale_, estimator.scale_)
    np.testing.assert_array_equal(wrapped.transform(wrap(X)), expected)


@quiet
@mechanisms
@pytest.mark.parametrize("columns", [[0], [0, 1, 0], [0, 1, 0, 1]])
@pytest.mark.parametrize("secret", [None, 2, -1])
def test_a_wrong_number_of_columns_raises(mechanism, columns, secret):
    X, labels = data()
    if secret is None:
        estimator = mechanism().fit(X, secret=labels)
    else:
        estimator = mechanism(secret=secret).fit(np.column_stack([X, labels]))
        assert estimator.transform(np.column_stack([X, labels])).shape == X.shape
        if len(columns) == 3:
            columns = [*columns, 1, 0]
    with pytest.raises(ValueError, match=r"has \d features, but \w+ is expecting 2"):
        estimator.transform(X[:, columns])
    assert estimator.transform(X).shape == X.shape
    assert estimator.transform(X[:1]).shape == (1, 2)


@quiet
@mechanisms
def test_input_is_left_alone(mechanism):
    X, secret = data()
    for given in (X.copy(), np.asfortranarray(X), pd.DataFrame(X, columns=["a", "b"])):
        estimator = mechanism(bounds=(-1, 1), clip_output=True, random_state=0)
        released = estimator.fit(given, secret=secret).transform(given)
        np.testing.assert_array_equal(given, X)
        assert not np.shares_memory(np.asarray(released), np.asarray(given))


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ZeroNoiseWarning")
def test_an_unchanged_column_is_a_copy_too():
    X, secret = np.ones((90, 1)), np.arange(90) % 2
    released = RenyiPufferfishLaplace().fit(X, secret=secret).transform(X)
    np.testing.assert_array_equal(released, X)
    assert not np.shares_memory(released, X)


# --- where the secret is, and is not ---------------------------------------------


@mechanisms
def test_without_a_secret_fit_raises(mechanism):
    X, secret = data()
    with pytest.raises(ParameterError, match="no secret to protect"):
        mechanism().fit(X)
    # y is the target of a pipeline, whatever it looks like.
    with pytest.raises(ParameterError, match="no secret to protect"):
        mechanism().fit(X, secret)
    with pytest.raises(ValueError, match="requires y to be passed, but the target y"):
        mechanism(secret_from_y=True).fit(X)


@quiet
@mechanisms
def test_y_is_never_taken_for_the_secret(mechanism):
    X, secret = data()
    other = np.arange(len(X)) % 3
    expected = mechanism().fit(X, secret=secret)
    for y in (other, X[:, 0], [None] * len(X), np.full(len(X), np.nan)):
        fitted = mechanism().fit(X, y, secret=secret)
        np.testing.assert_array_equal(fitted.scale_, expected.scale_)
        assert fitted.guarantee_ == expected.guarantee_
    from_y = mechanism(secret_from_y=True).fit(X, other)
    assert not np.array_equal(from_y.scale_, expected.scale_)


@mechanisms
@pytest.mark.parametrize(
    ("parameters", "passed", "named"),
    [
        ({"secret": 0}, ["secret"], "constructor and secret= in fit"),
        ({"secret": 0, "secret_from_y": True}, [], "constructor and secret_from_y"),
        ({"secret_from_y": True}, ["secret"], "fit and secret_from_y"),
        ({"secret": 0, "prior": 1}, ["prior"], "prior more than once"),
        ({"secret": 0, "prior": 0}, [], "name the same column"),
        ({"secret": 0, "prior": -2}, [], "name the same column"),
        ({"secret": [0, -2]}, [], "names one column twice"),
        ({"secret": 2}, [], "no position in X, which has 2 columns"),
        ({"secret": True}, [], "True is a column name, but X has none"),
        ({"secret": "sex"}, [], "a step before this one may have returned an array"),
    ],
)
def test_a_contradictory_secret_raises(mechanism, parameters, passed, named):
    X, secret = data()
    with pytest.raises(ParameterError, match=named):
        mechanism(**parameters).fit(X, secret, **dict.fromkeys(passed, secret))


# --- fitted and not ---------------------------------------------------------------


@quiet
@mechanisms
def test_before_fit(mechanism):
    X, secret = data()
    estimator = mechanism(secret_from_y=True)
    for use in (
        lambda: estimator.transform(X),
        lambda: estimator.get_feature_names_out(),
        lambda: estimator.noise_covariance_,
    ):
        with pytest.raises(NotFittedError):
            use()
    assert estimator.fit(X, secret) is estimator
    with pytest.raises(NotFittedError):
        clone(estimator).transform(X)


@quiet
@mechanisms
def test_fit_leaves_the_parameters_alone(mechanism):
    X, secret = data()
    parameters = {
        "alpha": 3,
        "bounds": {"x0": [-9, 9], 1: (-99, 99)},
        "column_weights": np.array([1.0, 2.0]),
        "secret_pairs": [[1, 0]],
        "random_state": np.int64(3),
    }
    estimator = mechanism(**parameters)
    before = pickle.dumps(estimator.get_params())
    estimator.fit(X, secret=secret).transform(X)
    assert pickle.dumps(estimator.get_params()) == before
    for name, value in parameters.items():
        assert getattr(estimator, name) is value


@quiet
@mechanisms
def test_fitted_attributes(mechanism):
    X, secret = data()
    estimator = mechanism().fit(X, secret=secret)
    assert estimator.n_features_in_ == 2
    assert not hasattr(estimator, "feature_names_in_")
    assert estimator.scale_.shape == estimator.noise_std_.shape == (2,)
    np.testing.assert_array_equal(
        estimator.noise_covariance_, np.diag(estimator.noise_std_**2)
    )
    assert estimator.guarantee_.columns == ("x0", "x1")
    assert "<" in estimator._repr_html_()
    assert repr(mechanism(alpha=3.0)) == f"{mechanism.__name__}(alpha=3.0)"


# --- random_state -----------------------------------------------------------------

NO_SEEDS = [
    np.random.default_rng(0),
    np.random.RandomState(0),
    np.random.SeedSequence(0),
    np.random,
    "0",
    0.0,
    True,
    -1,
]


@quiet
@mechanisms
@pytest.mark.parametrize("seed", NO_SEEDS, ids=lambda seed: type(seed).__name__)
def test_only_an_integer_seeds(mechanism, seed):
    X, secret = data()
    with pytest.raises(ParameterError, match="random_state="):
        mechanism(random_state=seed).fit(X, secret=secret)
    # Not after fit either.
    estimator = mechanism().fit(X, secret=secret).set_params(random_state=seed)
    with pytest.raises(ParameterError, match="random_state="):
        estimator.transform(X)


def caught(use):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        use()
    return found


@mechanisms
def test_repeatable_noise_warns_at_every_transform_where_it_is_called(mechanism):
    X, secret = data(300)
    estimator = mechanism(random_state=7, epsilon=3.0)
    assert caught(lambda: estimator.fit(X, secret=secret)) == []
    for _ in range(2):
        (warning,) = caught(lambda: estimator.transform(X))
        assert warning.category is ReproducibleNoiseWarning
        assert "random_state=7" in str(warning.message)
        assert "subtract" in str(warning.message)
        assert warning.filename == __file__
    estimator.set_params(random_state=None)
    assert caught(lambda: estimator.transform(X)) == []


@mechanisms
def test_zero_noise_warns_in_fit_and_at_every_transform(mechanism):
    X, secret = np.ones((300, 1)), np.arange(300) % 2
    estimator = mechanism()
    for use in (
        lambda: estimator.fit(X, secret=secret),
        lambda: estimator.transform(X),
    ):
        for _ in range(2):
            (warning,) = caught(use)
            assert warning.category is ZeroNoiseWarning
            assert warning.filename == __file__
