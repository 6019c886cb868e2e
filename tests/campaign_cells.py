"""The other road for rows of numbers and categories: what is seen of them in cells.

A released number is only seen in a cell of its range, a category as it is. Seeing less
never raises a divergence (data processing), so that what is promised of the release
bounds the finite sums here, for any number of columns and copies, to the last digit.
Nothing here imports the package under test.
"""

import math

import numpy as np
from oracles import SMALL, _excess
from scipy import stats

# Cells for all columns together.
CELLS = 20_000


def noise_law(law, power=None):
    """The standard law, whose cdf and sf keep their digits in either tail."""
    if law == "exponential":
        return stats.gennorm(power)
    return {"laplace": stats.laplace, "gaussian": stats.norm}[law]


def cell_masses(atoms, scale, edges, law):
    """Return the masses of noisy atoms in cells between edges, shape (m, cells)."""
    z = (edges - atoms[:, None]) / scale
    left, right = z[:, :-1], z[:, 1:]
    above = left + right > 0
    by_sf = law.sf(left) - law.sf(right)
    by_cdf = law.cdf(right) - law.cdf(left)
    return np.where(above, by_sf, by_cdf)


def edges_of(atoms, scale, count, alpha):
    """Return edges around all atoms, as far as orders up to alpha look."""
    low, high = atoms.min(), atoms.max()
    reach = scale * 12 + min(min(alpha, 50.0) * (high - low), 25 * scale)
    inner = np.linspace(low - reach, high + reach, count)
    inner = np.union1d(inner, atoms) if len(np.unique(atoms)) < count else inner
    return np.concatenate([[-np.inf], inner, [np.inf]])


def seen(first, second, columns, *, alpha, copies=1):
    """Return the distributions of a released row of either side, as it is seen.

    Parameters
    ----------
    first, second : (rows, mass)
        Distinct rows and their masses.
    columns : list of (kind, parameters)
        Of each column: ("noise", (law, scale)) or ("channel", matrix), whose values are
        places in it.
    """
    sides = [(np.asarray(rows), mass / mass.sum()) for rows, mass in (first, second)]
    n_noisy = copies * sum(kind == "noise" and par[1] > 0 for kind, par in columns)
    most = CELLS
    for kind, matrix in columns:
        if kind == "channel":
            most = max(most // len(matrix) ** copies, 1)
    count = max(int(most ** (1 / n_noisy)) - 1, 2) if n_noisy else 0
    # Masses that a float cannot hold: such cells are put together with a large one.
    least = 10.0 ** (-300 / max(n_noisy, 1))
    totals, shared = [], []
    for j, (kind, parameters) in enumerate(columns):
        both = np.concatenate([rows[:, j] for rows, _ in sides]).astype(float)
        if kind == "channel":
            shared.append(None)
        elif parameters[1] == 0:
            shared.append(np.unique(both))
        else:
            shared.append(edges_of(both, parameters[1], min(count, 400), alpha))
    for rows, mass in sides:
        outcome = mass[:, None]
        for _ in range(copies):
            for j, (kind, parameters) in enumerate(columns):
                values = rows[:, j].astype(float)
                if kind == "channel":
                    seen_here = parameters[values.astype(int)]
                elif parameters[1] == 0:
                    seen_here = (values[:, None] == shared[j]).astype(float)
                else:
                    law, scale = parameters
                    masses = cell_masses(values, scale, shared[j], law)
                    seen_here = np.maximum(masses, least)
                outcome = outcome[:, :, None] * seen_here[:, None, :]
                outcome = outcome.reshape(len(rows), -1)
        totals.append(outcome.sum(axis=0))
    p, q = totals
    small = (p > 0) & (q > 0) & (np.minimum(p, q) < 1e6 * least)
    largest = int(np.argmax(np.where(small, 0.0, np.minimum(p, q))))
    p[largest] += p[small].sum()
    q[largest] += q[small].sum()
    kept = ~small & ((p > 0) | (q > 0))
    return p[kept], q[kept]


def renyi(p, q, alpha):
    """D_α of finite distributions, from the definition, without cancellation."""
    there, absent = p > 0, q[p == 0].sum()
    p, q = p[there], q[there]
    if (q == 0).any():
        return math.inf
    log_p, log_q = np.log(p), np.log(q)
    if alpha == math.inf:
        return float((log_p - log_q).max())
    logs = alpha * log_p - (alpha - 1) * log_q
    top = float(logs.max())
    whole = top + math.log(math.fsum(np.exp(logs - top).tolist()))
    if whole >= SMALL:
        return whole / (alpha - 1)
    excess = math.fsum(_excess(log_p, log_q, alpha)[0].tolist()) + (alpha - 1) * absent
    return math.log1p(max(excess, 0.0)) / (alpha - 1)


def hockey_stick(p, q, epsilon):
    """Return the least δ of an (ε, δ) promise of these distributions in one direction."""
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0).tolist())
