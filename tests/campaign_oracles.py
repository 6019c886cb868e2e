"""Oracles of the campaign: what a release reveals, from the definition.

By integration, sums or a linear programme: nothing of the library takes part.
"""

import math
from collections import Counter

import numpy as np
import oracles
import power_oracle
from core_support import cost, rounded

# Relative accuracy that the promise is held to, and what a sum near 1 is good for.
ACCURACY, ROUND_OFF = 1e-9, 1e-13


def line_divergence(p, q, *, law, scale, alpha, power=None):
    """The divergence of two noisy mixtures of one column."""
    (atoms_p, mass_p), (atoms_q, mass_q) = p, q
    if law == "exponential":
        return power_oracle.mixture_divergence(
            *p, *q, power=power, scale=np.array([scale]), alpha=alpha
        )
    return oracles.mixture_divergence(
        atoms_p, mass_p, atoms_q, mass_q, law=law, scale=scale, alpha=alpha
    )


def plane_divergence(p, q, *, law, scale, alpha, power=None):
    """The divergence of two noisy mixtures of two columns."""
    if law == "exponential":
        return power_oracle.mixture_divergence(
            *p, *q, power=power, scale=scale, alpha=alpha
        )
    return oracles.mixture_divergence_2d(*p, *q, law=law, scale=scale, alpha=alpha)


def atoms_divergence(p, q, alpha):
    """The divergence of two discrete distributions, from the definition."""
    first, second = Counter(), Counter()
    for side, (rows, mass) in ((first, p), (second, q)):
        for row, m in zip(rows.tolist(), (mass / mass.sum()).tolist(), strict=True):
            if m > 0:
                side[tuple(row)] += m
    if not set(first) <= set(second):
        return math.inf
    logs = [(math.log(m), math.log(second[row])) for row, m in first.items()]
    if alpha == math.inf:
        return max(a - b for a, b in logs)
    top = max(alpha * a - (alpha - 1) * b for a, b in logs)
    if top > 1:
        terms = [math.exp(alpha * a - (alpha - 1) * b - top) for a, b in logs]
        return (top + math.log(math.fsum(terms))) / (alpha - 1)
    excess = [
        second[row] * _excess_of(a - b, alpha)
        for row, (a, b) in zip(first, logs, strict=True)
    ]
    left = sum(m for row, m in second.items() if row not in first)
    return math.log1p(max(math.fsum(excess) + (alpha - 1) * left, 0.0)) / (alpha - 1)


def _excess_of(ratio, alpha):
    """Return e^(αr) − αe^r + α − 1 ≥ 0 without cancellation near r = 0."""
    if abs(alpha * ratio) < 1e-2:
        return math.fsum(
            ratio**n * (alpha**n - alpha) / math.factorial(n) for n in range(2, 9)
        )
    return math.exp(alpha * ratio) - alpha * math.exp(ratio) + alpha - 1


def shift_cost(law, shifts, *, alpha, scale, copies=1, power=None):
    """(α − 1) times what bounds the divergence of shift vectors (p, k), finite α."""
    if power == 1:
        law = "laplace"
    if law != "exponential":
        return cost(law, shifts, alpha=alpha, scale=scale, copies=copies)
    c = (np.abs(shifts) / scale) ** power
    # The log of cosh((α − 1/2) c) / cosh(c / 2).
    above, below = np.logaddexp(0, (1 - 2 * alpha) * c), np.logaddexp(0, -c)
    return copies * ((alpha - 1) * c + above - below).sum(axis=1)


def is_transported(p, q, *, epsilon, **options):
    """Whether some coupling of numbers proves the promise.

    By joint convexity D ≤ log E exp((α−1) Σ D_α) / (α−1) for each coupling: what a rule
    proves with its own, the best one proves too.
    """
    shifts = np.abs(p[0][:, None, :] - q[0][None, :, :]).astype(float)
    alpha = options["alpha"]
    if alpha == math.inf:
        z = shifts / options["scale"]
        z = z if options["law"] == "laplace" else z ** options["power"]
        logs = options.get("copies", 1) * z.sum(axis=-1)
    else:
        flat = shifts.reshape(-1, shifts.shape[-1])
        logs = shift_cost(shifts=flat, **options).reshape(shifts.shape[:2])
    return can_move(logs, p[1], q[1], alpha, epsilon)


def can_move(logs, mass_p, mass_q, alpha, epsilon):
    """Whether a linear programme finds a coupling with E e^logs ≤ e^((α−1)ε).

    Of whole masses; at α = ∞ one that moves nothing at more than ε.
    """
    masses = [np.rint(mass).astype(int) for mass in (mass_p, mass_q)]
    total = math.lcm(*(int(mass.sum()) for mass in masses))
    whole = [(mass * (total // int(mass.sum()))).astype(float) for mass in masses]
    target = (alpha - 1) * epsilon
    if alpha == math.inf:
        price = np.where(logs <= limit(epsilon, alpha), 0.0, np.inf)
    else:
        # With an optimum below one, no pair that is used costs more than the total.
        usable = logs - target <= math.log(total) + 1e-6
        price = np.where(usable, np.exp(np.where(usable, logs - target, 0.0)), np.inf)
    least = oracles._transport_optimum(price, *whole)
    return least is not None and least <= total * (1 + 1e-7 * min(target, 1.0))


def limit(epsilon, alpha):
    """What a divergence that is promised to be at most epsilon may come to."""
    off = ROUND_OFF if alpha == math.inf else ROUND_OFF * (1 + 1 / (alpha - 1))
    return epsilon * (1 + ACCURACY) + off


def on_grid(side, scale):
    """Return atoms of numbers as they are released, on the grid of their noise."""
    return rounded(side[0].astype(float), scale), side[1]


def plain(side):
    return side[0].astype(float), side[1]
