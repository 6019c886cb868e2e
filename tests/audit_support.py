"""Distributions with known divergences, and how often an audit says too much of them."""

import math

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from skpuffer.audit import KernelRenyiAuditor


def laplace(n, rng, *, shift=1.0):
    """Laplace noise on values `shift` apart: ε = shift, δ = 0."""
    return rng.laplace(size=(n, 1)), rng.laplace(size=(n, 1)) + shift


def laplace_renyi(alpha, shift=1.0):
    """Mironov 2017, Proposition 6."""
    first = alpha / (2 * alpha - 1) * math.exp((alpha - 1) * shift)
    second = (alpha - 1) / (2 * alpha - 1) * math.exp(-alpha * shift)
    return math.log(first + second) / (alpha - 1)


def randomised_response(n, rng, *, epsilon=1.0, delta=0.0):
    """The worst pair of an (ε, δ) promise: two outcomes, and with δ two that tell."""
    keep = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    law = np.array([delta, keep, 1 - delta - keep, 0.0])
    x, y = (rng.choice(4, n, p=p) for p in (law, law[::-1]))
    return x[:, None].astype(float), y[:, None].astype(float)


def analytic_sigma(shift, epsilon, delta):
    """Balle and Wang 2018, Theorem 8: the least σ of an (ε, δ) promise."""

    def excess(sigma):
        a, b = shift / (2 * sigma), epsilon * sigma / shift
        found = stats.norm.cdf(a - b) - math.exp(epsilon) * stats.norm.cdf(-a - b)
        return found - delta

    return brentq(excess, shift / 100, shift * 1000)


def gaussian_mechanism(n, rng, *, epsilon, delta, columns=30, shift=10.0):
    """Noise that just keeps an (ε, δ) promise, on points `shift` apart."""
    sigma = analytic_sigma(shift, epsilon, delta)
    direction = rng.standard_normal(columns)
    direction *= shift / np.linalg.norm(direction)
    x, y = sigma * rng.standard_normal((2, n, columns))
    return x, y + direction


def wider(n, rng, *, columns=10, factor=1.4):
    """A leak in the variance alone."""
    x, y = rng.standard_normal((2, n, columns))
    return x, factor * y


def alike(n, rng, *, columns=30):
    return tuple(rng.standard_normal((2, n, columns)))


def bounds(draw, *, n, seeds, seed=0, **parameters):
    """Bounds of independent audits of fresh samples."""
    found = []
    for k in range(seeds):
        x, y = draw(n, np.random.default_rng([seed, k]))
        audit = KernelRenyiAuditor(random_state=k, **parameters).fit(x, y)
        found.append(audit.bound_)
    return np.array(found)
