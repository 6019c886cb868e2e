"""What the auditor finds in mechanisms that break their promise, by number of samples.

Run from the repository with `python benchmarks/broken.py [n ...]`. Each mechanism claims
that releases given one secret value and the other are within ε = 1 (δ = 0 but where it
says so). The table says what is true, as far as it is known, and the bound that
`KernelRenyiAuditor` found, in the mean of a few repetitions, with how many of them refuted
the claim; a star where the auditor warned of rows that occur twice. Everything is drawn
by numpy, whose own low bits are not what is tested.
"""

import math
import sys
import time
import warnings

import numpy as np

from skpuffer.audit import KernelRenyiAuditor
from skpuffer.exceptions import DuplicateRowsWarning

SIZES = 1_000, 10_000, 100_000
REPEATS = 3
CLAIM = 1.0
DELTA = 0.01


def laplace(rng, values, scale=1.0):
    return values + rng.laplace(scale=scale, size=values.shape)


def constant(n, secret, columns=1):
    return np.full((n, columns), float(secret))


def right(rng, n, secret):
    return laplace(rng, constant(n, secret))


def wrong_scale(rng, n, secret):
    return laplace(rng, constant(n, secret), 0.5)


def nearly_right_scale(rng, n, secret):
    return laplace(rng, constant(n, secret), 0.9)


def wrong_sensitivity(rng, n, secret):
    # Calibrated for one column, though three move together.
    return laplace(rng, constant(n, secret, 3))


def noise_used_twice(rng, n, secret):
    # Each column alone is right; their difference has no noise at all.
    values = constant(n, secret, 2) * [1, 0.5]
    return values + rng.laplace(scale=2.0, size=(n, 1))


def one_column_forgotten(rng, n, secret):
    other = rng.normal(secret, 1, (n, 1))
    return np.hstack([laplace(rng, constant(n, secret)), other])


def raw_at_times(rng, n, secret):
    values = constant(n, secret)
    return np.where(rng.random((n, 1)) < DELTA, values, laplace(rng, values))


def wrong_jointly(rng, n, secret):
    # (0, 0) or (1, 1) against (0, 1) or (1, 0): columns alike one by one. Far below
    # zero the densities have the ratio (1 + e^-4) / 2 e^-2.
    first = rng.integers(0, 2, n)
    rows = np.column_stack([first, first ^ secret]).astype(float)
    return laplace(rng, rows, 0.5)


def scale_of_the_value(rng, n, secret):
    # No mean differs, only how far the noise spreads.
    return rng.laplace(scale=1.0 + 2.0 * secret, size=(n, 1))


def rounded_before(rng, n, secret):
    # 4.9 and 5.1 are .2 apart, 0 and 10 once they are rounded; noise for .2.
    return laplace(rng, 10 * np.round(constant(n, 0.49 + 0.02 * secret)), 0.2)


def few_seeds(rng, n, secret):
    # One of 1,000 seeds: a value can have no more outputs than that.
    known = np.random.default_rng(0).laplace(size=1_000)
    return constant(n, secret) + rng.choice(known, (n, 1))


def rare_value(rng, n, secret):
    # One row in 2,000 of one group is far away, and no noise was made for it: e^50 / 2,000.
    values = constant(n, secret)
    values[rng.random(n) < secret / 2_000] = 50.0
    return laplace(rng, values)


MECHANISMS = {
    # name: (sampler, true ε at the δ of the claim, δ)
    "right": (right, "1", 0.0),
    "scale half of what it must be": (wrong_scale, "2", 0.0),
    "scale nine tenths of it": (nearly_right_scale, "1.11", 0.0),
    "three columns, noise for one": (wrong_sensitivity, "3", 0.0),
    "the same noise in two columns": (noise_used_twice, "∞", 0.0),
    "one column without noise": (one_column_forgotten, "∞", 0.0),
    "raw with probability .01": (raw_at_times, "∞", 0.0),
    "raw with probability .01, δ = .01": (raw_at_times, "≤ 1", DELTA),
    "right in each column, not jointly": (wrong_jointly, "1.32", 0.0),
    "scale that depends on the value": (scale_of_the_value, "∞", 0.0),
    "rounded before noise": (rounded_before, "50", 0.0),
    "noise of a thousand seeds": (few_seeds, "∞", 0.0),
    "a far value in 2,000": (rare_value, "42", 0.0),
}


def audited(sampler, delta, n, seed):
    """Return the auditor after a fit of n releases of each secret value."""
    rng = np.random.default_rng(seed)
    samples = [sampler(rng, n, secret) for secret in (1, 0)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DuplicateRowsWarning)
        audit = KernelRenyiAuditor(epsilon=CLAIM, delta=delta).fit(*samples)
    return audit, any(issubclass(w.category, DuplicateRowsWarning) for w in caught)


def table(sizes=SIZES, repeats=REPEATS):
    """Yield for each mechanism its name, the truth, and what was found by size."""
    for name, (sampler, truth, delta) in MECHANISMS.items():
        found = []
        for n in sizes:
            done = [audited(sampler, delta, n, seed) for seed in range(repeats)]
            bound = float(np.mean([audit.bound_ for audit, _ in done]))
            refuted = sum(audit.verdict_ == "refuted" for audit, _ in done)
            found.append((bound, refuted, any(twice for _, twice in done)))
        yield name, truth, found


def main():
    sizes = [int(n) for n in sys.argv[1:]] or SIZES
    heads = " ".join(f"{f'n = {n:,}':>15}" for n in sizes)
    print(f"{'mechanism':40} {'true ε':>7} {heads}")
    start = time.process_time()
    for name, truth, found in table(sizes):
        cells = " ".join(
            f"{'–' if math.isnan(bound) else f'{bound:.2f}':>8}"
            f" ({hits}/{REPEATS}){'*' if twice else ' '}"
            for bound, hits, twice in found
        )
        print(f"{name:40} {truth:>7} {cells}", flush=True)
    print(f"{time.process_time() - start:.0f} s of CPU")


if __name__ == "__main__":
    main()
