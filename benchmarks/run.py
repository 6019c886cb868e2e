"""Every speed that is promised, in one table: each row a ratio within this run.

Run from the repository, with nothing else running, after
`pip install -e '.[bench]'`:

    OMP_NUM_THREADS=1 python benchmarks/run.py [--plot scaling.png] [section ...]

A row is a measurement, its peer or limit measured in the same run, their ratio and the
goal. Times are the best of several, taken in turns, so that load hits both sides. The
whole takes a while; sections can be named. One whose packages or data are
missing says so and is left out.
"""

import argparse
import subprocess
import sys

import numpy as np
from attacks import attacks
from audit import divergence_of_a_grid, full_audit, streamed_moments
from dask_rows import dask_rows
from exact import exact_calibration
from joint import joint_couplings
from one_column import couplings, exact_peers, fits, memory, transforms
from sampling import samplers
from scaling import cost_by_rows
from search import searches
from timing import REPEATS, in_turns, print_head, print_rows

from skpuffer.core.calibration import RULES, Budget, Pair, calibrate
from skpuffer.core.laws import LAWS
from skpuffer.core.prior import Conditional


def calibration_of_few_values():
    """Yield the time of a calibration of 100 distinct values, by law and rule."""
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
    """Yield the time of the import: skpuffer's share beside what it stands on."""
    # In one process, one after the other.
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
    name, peer_name = "import skpuffer", "import sklearn.base, pandas"
    yield name, ours, peer_name, peer, ours / peer, "≤ 1.2"


SECTIONS = {
    section.__name__: section
    for section in (
        fits,
        transforms,
        samplers,
        exact_peers,
        couplings,
        memory,
        cost_by_rows,
        calibration_of_few_values,
        exact_calibration,
        joint_couplings,
        searches,
        dask_rows,
        divergence_of_a_grid,
        streamed_moments,
        full_audit,
        import_time,
        attacks,
    )
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--plot", help="where to draw cost against rows")
    given = parser.parse_args()
    unknown = [name for name in given.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"no section {unknown[0]!r}: there are {', '.join(SECTIONS)}")
    print_head()
    for name in given.sections or SECTIONS:
        options = {"plot": given.plot} if name == "cost_by_rows" else {}
        try:
            print_rows(SECTIONS[name](**options))
        except (ImportError, FileNotFoundError) as error:
            print(f"{name}: left out, {error}")


if __name__ == "__main__":
    main()
