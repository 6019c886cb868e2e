"""What the reproduction of the kernel divergence computes, by other roads."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.distance import cdist, pdist
from scipy.stats import norm

from skpuffer.core.gram import moment_divergence
from skpuffer.metrics import kernel_renyi_divergence

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples" / "reproduce"))
from _gaussian_kernel import (
    draw_samples,
    gaussian_sigma,
    median_width,
    population_divergence,
)

ALPHAS, REGS = [2, 6, 12], [2.5e-4, 1e-2, 0.1]


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0.005), (2, 0.2), (3, 0.03)])
def test_the_noise_just_keeps_the_promise(epsilon, delta):
    sigma = gaussian_sigma(10, epsilon, delta)

    def excess(x):
        p, q = norm.pdf(x, 10, sigma), norm.pdf(x, 0, sigma)
        return max(p - math.exp(epsilon) * q, 0)

    start = 5 + epsilon * sigma**2 / 10
    assert quad(excess, start, 10 + 12 * sigma)[0] == pytest.approx(delta, rel=1e-6)


def test_samples_lie_as_far_apart_as_they_should():
    rng = np.random.default_rng(0)
    X, Y = draw_samples(40_000, rng, sigma=2.0, distance=10.0, columns=3)
    # Each mean is off by 0.01 in each column.
    assert np.linalg.norm(X.mean(0) - Y.mean(0)) == pytest.approx(10, abs=0.06)
    assert np.std(Y) == pytest.approx(2, abs=0.02)


@pytest.mark.parametrize("distance", [0.0, 1.6])
def test_the_median_distance(distance):
    rng = np.random.default_rng(1)
    X, Y = draw_samples(1000, rng, sigma=1.0, distance=distance, columns=30)
    found = np.median(pdist(np.concatenate([X, Y])))
    assert median_width(distance, 30) == pytest.approx(1 / found**2, rel=0.02)


@pytest.mark.parametrize("distance", [0.0, 1.3])
def test_the_population_in_two_columns_on_a_grid(distance):
    # All of the plane at once, without the eigenvalues of the other column.
    line = np.linspace(-5.0, 5.0 + distance, 34)
    plane = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    values, vectors = np.linalg.eigh(np.exp(-0.2 * cdist(plane, plane) ** 2))
    kept = values > 1e-13 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    s_p, s_q = (
        (features.T * (mass / mass.sum())) @ features
        for mass in (
            np.exp(-((plane - [0, mean]) ** 2).sum(axis=1) / 2)
            for mean in (distance, 0)
        )
    )
    expected = moment_divergence(s_p, s_q, alphas=ALPHAS, regs=REGS)
    found = population_divergence(
        distance, gamma=0.2, columns=2, alphas=ALPHAS, regs=REGS
    )
    assert np.abs(found - expected).max() < 1e-4


def test_what_the_population_must_keep():
    for epsilon, delta in ((1, 0.005), (2, 0.2), (3, 0.03)):
        shift = 10 / gaussian_sigma(10, epsilon, delta)
        found = population_divergence(
            shift,
            gamma=median_width(shift, 30),
            columns=30,
            alphas=ALPHAS,
            regs=[delta * math.exp(-epsilon), 0.1],
        )
        assert (found <= epsilon).all()
        assert (found[:, 1] < found[:, 0]).all()
        assert (found <= np.array(ALPHAS)[:, None] * shift**2 / 2).all()
        assert (np.diff(found, axis=0) > 0).all()


def test_estimates_lie_above_the_population():
    X, Y = draw_samples(
        200, np.random.default_rng(2), sigma=1.0, distance=0.0, columns=30
    )
    grid = {"alphas": ALPHAS, "regs": REGS}
    truth = population_divergence(0.0, gamma=median_width(0, 30), columns=30, **grid)
    assert (truth < 0).all()
    found = kernel_renyi_divergence(X, Y, alpha=ALPHAS, reg=REGS)
    assert (found > truth).all()
    # The false alarm: nothing differs, and the estimate exceeds ε = 1.
    assert kernel_renyi_divergence(X, Y, alpha=12, reg=0.005 / math.e) > 1
