"""The Gaussian mechanism and its kernel Rényi divergence, without samples.

For `kernel_divergence.py`, which draws what is computed here.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import comb
from scipy.stats import chi2, ncx2, norm

# Of the other columns, and of the line along the shift in standard deviations.
DEGREES, POINTS, REACH = 60, 600, 9.0


def gaussian_sigma(distance, epsilon, delta):
    """Return the least σ that keeps (ε, δ) between points this far apart.

    Balle, Wang 2018, Theorem 8: the analytic Gaussian mechanism.
    """

    def excess(sigma):
        half, shift = distance / (2 * sigma), epsilon * sigma / distance
        above = math.exp(epsilon) * norm.cdf(-half - shift)
        return norm.cdf(half - shift) - above - delta

    return brentq(excess, 0.01 * distance, 1000 * distance)


def draw_samples(n, rng, *, sigma, distance, columns):
    """Return releases of two points: n rows of either, the shift in some direction."""
    direction = rng.normal(size=columns)
    direction *= distance / np.linalg.norm(direction)
    X, Y = sigma * rng.normal(size=(2, n, columns))
    return X + direction, Y


def median_width(distance, columns):
    """Return γ = 1/m² for N(0, I) and its shift: m the median distance of two rows.

    Half of the pairs are of one sample; the squared distance of the others has a
    non-central χ² law.
    """

    def excess(square):
        if not distance:
            return chi2.cdf(square / 2, columns) - 0.5
        apart = ncx2.cdf(square / 2, columns, distance**2 / 2)
        return (chi2.cdf(square / 2, columns) + apart) / 2 - 0.5

    return 1 / brentq(excess, 1e-9, 10 * (columns + distance**2) + 100)


def population_divergence(distance, *, gamma, columns, alphas, regs):
    """Compute D_(α,λ) of N(shift, I) from N(0, I) under the kernel exp(−γ ‖x − y‖²).

    The kernel is a product over the columns, turned so that the first lies along the
    shift. In each of the others the second moment of N(0, 1) has the eigenvalues
    √(2a/A) B^k, a = 1/4, c = √(a² + 2aγ), A = a + γ + c, B = γ/A, the same under both
    distributions: Mercer's expansion in Hermite functions [Rasmussen, Williams 2006].
    So their joint eigenvalue for a total degree k belongs to C(k + d − 2, k) vectors,
    and for each degree what is left is a problem in one column, on a fine grid.

    Parameters
    ----------
    distance : float
        Length of the shift, in standard deviations.
    gamma : float
    columns : int
        At least 2.
    alphas, regs : sequence of float
        Orders above 1, and λ.

    Returns
    -------
    ndarray of shape (n_alphas, n_regs)
        In nats.
    """
    x = np.linspace(-REACH, distance + REACH, POINTS)
    step = x[1] - x[0]
    values, vectors = np.linalg.eigh(np.exp(-gamma * np.subtract.outer(x, x) ** 2))
    kept = values > 1e-15 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    s_p, s_q = (
        (features.T * (norm.pdf(x - mean) * step)) @ features for mean in (distance, 0)
    )
    along, basis = np.linalg.eigh(s_q)
    along, s_p = np.maximum(along, 0.0), basis.T @ s_p @ basis

    a = 0.25
    c = math.sqrt(a * a + 2 * a * gamma)
    degree = np.arange(DEGREES)
    across = (2 * a / (a + gamma + c)) ** ((columns - 1) / 2)
    across = across * (gamma / (a + gamma + c)) ** degree
    how_many = comb(degree + columns - 2, degree)
    assert abs(how_many @ across - 1) < 1e-9
    assert abs(np.trace(s_p) - 1) < 1e-9

    found = np.empty((len(alphas), len(regs)))
    for i, alpha in enumerate(alphas):
        for j, reg in enumerate(regs):
            root = (np.outer(across, along) + reg) ** ((1 - alpha) / (2 * alpha))
            inner = across[:, None, None] * root[:, :, None] * s_p * root[:, None, :]
            powers = np.maximum(np.linalg.eigvalsh(inner), 0.0) ** alpha
            found[i, j] = math.log(how_many @ powers.sum(axis=1)) / (alpha - 1)
    return found
