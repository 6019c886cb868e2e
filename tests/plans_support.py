"""Pieces shared by the tests of transport plans."""

import math

import numpy as np


def dense(plan, n, m):
    table = np.zeros((n, m), dtype=object)
    np.add.at(table, (plan.rows, plan.columns), plan.mass.astype(object))
    return table


def assert_coupling(plan, mass_a, mass_b):
    table = dense(plan, len(mass_a), len(mass_b))
    assert table.sum(axis=1).tolist() == [int(v) for v in mass_a]
    assert table.sum(axis=0).tolist() == [int(v) for v in mass_b]
    assert (plan.mass > 0).all()


def pair_masses(rng, n, m, top):
    """Counts brought to a common total, as a caller does."""
    counts_a, counts_b = (
        [int(v) for v in rng.integers(1, top, size, endpoint=True)] for size in (n, m)
    )
    total_a, total_b = sum(counts_a), sum(counts_b)
    g = math.gcd(total_a, total_b)
    mass_a = np.array([v * (total_b // g) for v in counts_a], dtype=object)
    mass_b = np.array([v * (total_a // g) for v in counts_b], dtype=object)
    if sum(mass_a) <= np.iinfo(np.int64).max:
        return mass_a.astype(np.int64), mass_b.astype(np.int64)
    return mass_a, mass_b


def mean_square(plan, a, b):
    mass = plan.mass.astype(float)
    return mass @ ((a[plan.rows] - b[plan.columns]) ** 2).sum(axis=1) / mass.sum()
