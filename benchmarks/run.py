"""Speed and memory as ratios within one run, against named peers.

Run from the repository with `python benchmarks/run.py`: one table, each line a
measurement, its peer in the same run, their ratio and the goal. Times are the best of
several, taken in turns, so that load hits both sides.
"""

import subprocess
import sys

import numpy as np
from audit import divergence_of_a_grid, full_audit, streamed_moments
from exact import exact_calibration
from search import searches
from timing import REPEATS, in_turns, peak_bytes

from skpuffer import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.core.calibration import RULES, Budget, Pair, calibrate
from skpuffer.core.laws import LAWS
from skpuffer.core.prior import Conditional

ROWS = 1_000_000


def two_groups(rows=ROWS):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 1, rows), rng.normal(0.3, 1.2, rows)])
    return values[:, np.newaxis], np.repeat([0, 1], rows)


def fit_against_sort():
    values, secret = two_groups()
    for mechanism in (RenyiPufferfishLaplace, RenyiPufferfishGaussian):
        noise = mechanism(alpha=4, epsilon=1)
        ours, peer = in_turns(
            lambda noise=noise: noise.fit(values, secret=secret),
            lambda: np.sort(values[:, 0]),
        )
        name = f"fit, transport, {mechanism.__name__}, 2 × 10^6 rows"
        yield name, ours, "np.sort of the pooled column", peer, ours / peer, "≤ 5"


def transform_against_numpy():
    values, secret = two_groups()
    rng = np.random.default_rng(1)
    for mechanism, unsafe, goal in (
        (RenyiPufferfishLaplace, rng.laplace, "≥ 0.4"),
        (RenyiPufferfishGaussian, rng.normal, "≥ 0.1"),
    ):
        noise = mechanism(alpha=4, epsilon=1).fit(values, secret=secret)
        ours, peer = in_turns(
            lambda noise=noise: noise.transform(values),
            lambda unsafe=unsafe: values + unsafe(size=values.shape),
        )
        name = f"transform, {mechanism.__name__}, 2 × 10^6 rows"
        yield name, ours, f"x + rng.{unsafe.__name__} (unsafe)", peer, peer / ours, goal
        peak = peak_bytes(lambda noise=noise: noise.transform(values)) + values.nbytes
        name = f"peak bytes of transform, input included, {mechanism.__name__}"
        yield (
            name,
            peak,
            "bytes of the input",
            values.nbytes,
            peak / values.nbytes,
            "≤ 3",
        )


def calibration_of_few_values():
    rng = np.random.default_rng(2)
    groups = [
        Conditional.from_rows(rng.integers(0, 100, (20_000, 1)) + shift)
        for shift in (0, 2)
    ]
    for law in LAWS.values():
        for rule in RULES.values():
            if rule.one_column:
                continue  # See exact_calibration.
            ours, _ = in_turns(
                lambda law=law, rule=rule: calibrate(
                    [Pair(*groups, np.ones(1))], law(), rule(), Budget(4.0, 1.0)
                ),
                lambda: None,
                repeats=20,
            )
            name = f"calibration, 100 distinct values, {law.name}, {rule.name}"
            yield name, ours, "5 ms", 0.005, ours / 0.005, "≤ 1"


def import_time():
    # In one process, one after the other: skpuffer's share of an import of all three.
    code = (
        "import time; start = time.perf_counter(); import sklearn.base, pandas; "
        "middle = time.perf_counter(); import skpuffer; "
        "print(middle - start, time.perf_counter() - middle)"
    )
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        runs.append([float(part) for part in done.stdout.split()])
    peer, share = np.median(runs, axis=0).tolist()
    ours = peer + share
    yield (
        "import skpuffer",
        ours,
        "import sklearn.base, pandas",
        peer,
        ours / peer,
        "≤ 1.2",
    )


def main():
    print(f"{'measured':64} {'':>9} {'peer':32} {'':>9} {'ratio':>7}  goal")
    for section in (
        fit_against_sort,
        transform_against_numpy,
        calibration_of_few_values,
        searches,
        exact_calibration,
        divergence_of_a_grid,
        streamed_moments,
        full_audit,
        import_time,
    ):
        for name, ours, peer_name, peer, ratio, goal in section():
            print(
                f"{name:64} {ours:9.4g} {peer_name:32} {peer:9.4g} {ratio:7.3g}  {goal}",
                flush=True,
            )


if __name__ == "__main__":
    main()
