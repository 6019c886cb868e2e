"""Random Fourier and Nyström features against the kernels that they stand for."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from skpuffer.core import features as module
from skpuffer.core.features import (
    FourierFeatures,
    NystroemFeatures,
    median_distance,
    moment_sum,
)


def rbf(X, Y, gamma=0.3):
    return np.exp(-gamma * cdist(X, Y, "sqeuclidean"))


def laplacian(X, Y, gamma=0.3):
    return np.exp(-gamma * cdist(X, Y, "cityblock"))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(("metric", "kernel"), [("rbf", rbf), ("laplacian", laplacian)])
class TestFourier:
    def test_they_converge_to_the_kernel(self, metric, kernel, rng):
        X, Y = rng.normal(size=(12, 3)), rng.normal(size=(9, 3))
        errors = []
        for m in (100, 40_000):
            features = FourierFeatures.draw(metric, 0.3, 3, 2 * m, rng)
            assert features.n_features == 2 * m
            gram = features.transform(X) @ features.transform(Y).T
            # Means of m cosines: a normal deviation at the 1e-6 level, 108 of them.
            assert np.abs(gram - kernel(X, Y)).max() < 5.5 / math.sqrt(m)
            errors.append(np.sqrt(np.mean((gram - kernel(X, Y)) ** 2)))
        assert errors[1] < errors[0] / 5

    def test_rows_have_length_one(self, metric, kernel, rng):
        features = FourierFeatures.draw(metric, 0.3, 3, 20, rng)
        phi = features.transform(100 * rng.normal(size=(50, 3)))
        assert np.abs((phi**2).sum(axis=1) - 1).max() < 1e-14

    def test_a_shift_of_all_rows_changes_no_inner_product(self, metric, kernel, rng):
        features = FourierFeatures.draw(metric, 0.3, 3, 20, rng)
        X = rng.normal(size=(5, 3))
        plain, moved = features.transform(X), features.transform(X + [1.0, -2.0, 7.0])
        assert np.abs(plain @ plain.T - moved @ moved.T).max() < 1e-12


def test_fourier_features_it_cannot_have(rng):
    with pytest.raises(ValueError, match="'chi2' has no Fourier features"):
        FourierFeatures.draw("chi2", 1.0, 2, 4, rng)
    for n_components in (0, 1, 7):
        with pytest.raises(
            ValueError, match=f"n_components={n_components} must be even"
        ):
            FourierFeatures.draw("rbf", 1.0, 2, n_components, rng)


def test_nystroem_is_exact_between_landmarks_and_below_elsewhere(rng):
    X, landmarks = rng.normal(size=(40, 3)), rng.normal(size=(15, 3))
    features = NystroemFeatures.fit(landmarks, rbf)
    assert features.n_features == 15
    own = features.transform(landmarks)
    assert np.abs(own @ own.T - rbf(landmarks, landmarks)).max() < 1e-8
    phi = features.transform(X)
    left = rbf(X, X) - phi @ phi.T
    assert np.linalg.eigvalsh(left)[0] > -1e-8
    assert (phi**2).sum(axis=1).max() <= 1 + 1e-15
    # By least squares, without any eigenvector.
    cross = rbf(X, landmarks)
    expected = cross @ np.linalg.solve(rbf(landmarks, landmarks), cross.T)
    assert np.abs(phi @ phi.T - expected).max() < 1e-8


def test_nystroem_with_repeated_landmarks(rng):
    landmarks = rng.normal(size=(6, 2))
    once = NystroemFeatures.fit(landmarks, rbf)
    often = NystroemFeatures.fit(np.tile(landmarks, (4, 1)), rbf)
    assert often.n_features == once.n_features == 6
    X = rng.normal(size=(9, 2))
    a, b = once.transform(X), often.transform(X)
    assert np.abs(a @ a.T - b @ b.T).max() < 1e-9


@pytest.mark.parametrize("n", [1, 2, 7])
def test_nystroem_with_one_point(n, rng):
    landmarks = np.tile(rng.normal(size=(1, 2)), (n, 1))
    features = NystroemFeatures.fit(landmarks, rbf)
    assert features.n_features == 1
    X = rng.normal(size=(9, 2))
    expected = np.outer(*[rbf(X, landmarks[:1]).ravel()] * 2)
    phi = features.transform(X)
    assert np.abs(phi @ phi.T - expected).max() < 1e-12


def test_features_of_nothing(rng):
    features = NystroemFeatures.fit(np.zeros((3, 2)), lambda X, Y: X @ Y.T)
    assert features.n_features == 0
    assert features.transform(rng.normal(size=(4, 2))).shape == (4, 0)


def test_one_frequency_is_enough(rng):
    features = FourierFeatures.draw("rbf", 0.5, 3, 2, rng)
    phi = features.transform(rng.normal(size=(5, 3)))
    assert phi.shape == (5, features.n_features) == (5, 2)
    assert np.abs((phi**2).sum(axis=1) - 1).max() < 1e-15


def test_nystroem_scales_rounding_down_and_refuses_more(rng):
    landmarks = np.eye(2)

    def slightly_long(X, Y):
        return (1 + 1e-9) * (X @ Y.T)

    features = NystroemFeatures.fit(landmarks, slightly_long)
    assert (features.transform(landmarks) ** 2).sum(axis=1).max() <= 1 + 1e-15
    features = NystroemFeatures.fit(landmarks, lambda X, Y: X @ Y.T)
    with pytest.raises(ValueError, match=r"k\(x, x\) is 4 .* normalise"):
        features.transform(np.array([[2.0, 0.0]]))
    with pytest.raises(ValueError, match=r"k\(x, x\) is nan"):
        features.transform(np.array([[np.nan, 0.0]]))


def test_sums_in_blocks(rng, monkeypatch):
    X = rng.normal(size=(103, 3))
    features = FourierFeatures.draw("rbf", 0.3, 3, 10, rng)
    phi = features.transform(X)
    whole = moment_sum(features, X)
    assert np.abs(whole - phi.T @ phi).max() < 1e-12
    sizes = []

    class Watched:
        n_features = 10

        def transform(self, X):
            sizes.append(len(X))
            return features.transform(X)

    monkeypatch.setattr(module, "_BLOCK", 200)
    assert np.abs(moment_sum(Watched(), X) - whole).max() < 1e-12
    assert sizes == [20] * 5 + [3]
    monkeypatch.setattr(module, "_BLOCK", 1)
    assert np.abs(moment_sum(features, X) - whole).max() < 1e-12


def test_median_distance(rng):
    X = rng.normal(size=(30, 2))
    upper = np.triu_indices(30, 1)
    for metric in ("euclidean", "cityblock"):
        expected = np.median(cdist(X, X, metric)[upper])
        assert median_distance(X, metric) == pytest.approx(expected, rel=1e-12)
