"""The other road for exponential noise: mixtures of generalised normal densities.

Nothing here imports the package under test. Between atoms and beyond them the densities
are analytic, at the atoms their derivatives are infinite: double-exponential quadrature
from atom to atom, on one axis or a plane. On a lattice the sums themselves.
"""

import itertools
import math

import numpy as np
from oracles import SMALL, _excess, _log_sum

# Steps of the trapezoid rule behind each quadrature, on a line and on a plane.
LINE_STEP, PLANE_STEP = 1 / 12, 1 / 10
# Exponents of the tails that are kept.
TAIL = 45.0


def _between(low, high, step):
    """Nodes and log weights of the tanh-sinh rule, as distances from the nearer end."""
    count = round(3.6 / step)
    tau = step * np.arange(-count, count + 1)
    inner = np.pi / 2 * np.sinh(tau)
    # The part of the interval on the left, without cancellation.
    part = 1 / (1 + np.exp(-2 * inner))
    log_weight = np.log(step * np.pi / 2 * np.cosh(tau)) - 2 * np.log(np.cosh(inner))
    width = high - low
    nodes = np.where(part < 0.5, low + width * part, high - width * part[::-1])
    return nodes, log_weight + math.log(width / 2)


def _beyond(end, side, power, step):
    """The same for a tail, in v with y = end ± v^(1/power)."""
    tau = np.arange(-4.2, 3.0, step)
    v = np.exp(np.pi / 2 * np.sinh(tau))
    v, tau = v[v < 4 * TAIL], tau[v < 4 * TAIL]
    log_weight = np.log(step * np.pi / 2 * np.cosh(tau)) + np.log(v) / power
    return end + side * v ** (1 / power), log_weight - math.log(power)


def _axis(places, power, step):
    """Nodes and log weights for all of one axis, in units of the scale."""
    places = np.unique(places)
    parts = [_between(a, b, step) for a, b in itertools.pairwise(places)]
    parts += [_beyond(places[0], -1, power, step), _beyond(places[-1], 1, power, step)]
    nodes, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    return nodes, weights


def _atoms(atoms, mass, centre, scale):
    atoms = np.asarray(atoms, dtype=float).reshape(len(mass), -1)
    mass = np.array([float(m) for m in mass])
    return (atoms - centre) / scale, np.log(mass) - math.log(mass.sum())


def mixture_divergence(atoms_p, mass_p, atoms_q, mass_q, *, power, scale, alpha):
    """D_alpha (nats) of two noisy mixtures of one or two columns; scale (k,).

    At alpha = inf the largest log ratio at the nodes and the atoms.
    """
    rows = [
        np.asarray(a, dtype=float).reshape(len(m), -1)
        for a, m in ((atoms_p, mass_p), (atoms_q, mass_q))
    ]
    scale = np.broadcast_to(np.asarray(scale, dtype=float), rows[0].shape[1:])
    both = np.vstack(rows)
    centre = (both.min(axis=0) + both.max(axis=0)) / 2
    p, q = (
        _atoms(a, m, centre, scale) for a, m in zip(rows, (mass_p, mass_q), strict=True)
    )
    step = LINE_STEP if both.shape[1] == 1 else PLANE_STEP
    axes = [
        _axis(np.append(p[0][:, k], q[0][:, k]), power, step)
        for k in range(both.shape[1])
    ]
    constant = math.log(2) + math.lgamma(1 + 1 / power)

    def log_density(mix, nodes):
        atoms, log_mass = mix
        exponents = log_mass
        for k, y in enumerate(nodes):
            shape = [1] * len(nodes) + [len(log_mass)]
            shape[k] = len(y)
            distance = np.abs(y[:, None] - atoms[:, k])
            exponents = exponents - (distance**power + constant).reshape(shape)
        return _log_sum(exponents)[0]

    nodes = [a[0] for a in axes]
    if alpha == math.inf:
        nodes = [
            np.append(n, np.append(p[0][:, k], q[0][:, k])) for k, n in enumerate(nodes)
        ]
        return float((log_density(p, nodes) - log_density(q, nodes)).max())
    log_p, log_q = log_density(p, nodes), log_density(q, nodes)
    weights = axes[0][1] if len(axes) == 1 else np.add.outer(axes[0][1], axes[1][1])
    return _divergence(log_p, log_q, weights, alpha)


def _divergence(log_p, log_q, log_weights, alpha):
    log_f = alpha * log_p - (alpha - 1) * log_q + log_weights
    log_integral = float(_log_sum(log_f.ravel())[0])
    if log_integral >= SMALL:
        return log_integral / (alpha - 1)
    excess = float((_excess(log_p, log_q, alpha)[0] * np.exp(log_weights)).sum())
    return math.log1p(max(excess, 0.0)) / (alpha - 1)


def lattice_divergence(atoms_p, mass_p, atoms_q, mass_q, *, power, scale, alpha):
    """D_alpha of integer atoms plus k, P(k) proportional to exp(-(|k| / scale)^power)."""
    low = min(*atoms_p, *atoms_q)
    high = max(*atoms_p, *atoms_q)
    reach = int(scale * TAIL ** (1 / power)) + high - low + 2
    y = np.arange(low - reach, high + reach + 1)
    # Zeros of no consequence: beyond the reach less than e^-45 is left.
    k = np.arange(y[0] - high, y[-1] - low + 1)
    total = _log_sum(-((np.abs(k) / scale) ** power))[0]

    def log_mass(atoms, mass):
        share = np.log(np.asarray(mass, dtype=float) / sum(mass))
        distance = np.abs(y[:, None] - np.asarray(atoms))
        return _log_sum(share - (distance / scale) ** power - total)[0]

    log_p, log_q = log_mass(atoms_p, mass_p), log_mass(atoms_q, mass_q)
    if alpha == math.inf:
        return float((log_p - log_q).max())
    return _divergence(log_p, log_q, np.zeros(len(y)), alpha)
