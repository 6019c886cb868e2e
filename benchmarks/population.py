"""What a promise for the population costs, and how often it fails in simulation.

Run from the repository with `python benchmarks/population.py [samples]`: 200 samples of
each population and size by default, a few minutes; 2,000 are the `slow` tests. The
populations are those of the tests. The last table needs the folder with the UCI files
(SKPUFFER_SHARED).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT / "tests"))

from population_support import (  # noqa: E402
    BUDGET,
    CASES,
    ERROR,
    UNIT,
    bounded_by,
    needed,
    published_band,
    settings,
    simulate,
)

from skpuffer._prior_models import population_pairs  # noqa: E402
from skpuffer.core.bands import quantile_band  # noqa: E402
from skpuffer.core.calibration import Pair, calibrate  # noqa: E402
from skpuffer.core.crossing import failure, rank_bounds  # noqa: E402
from skpuffer.core.prior import Conditional, Prior  # noqa: E402

SIZES = (50, 300, 3000)
TRANSPORT = settings("laplace", "transport")


def coverage() -> None:
    print("error spent of 0.025, exactly")
    for n in (1, 5, 50, 300, 3000, 20_000):
        bounds = rank_bounds(n, 0.025)
        print(f"  n = {n:6}  {failure(n, bounds):.6f}  {len(bounds.ranks)} ranks")


def failures(samples: int) -> None:
    print(f"\nshare of {samples} samples in which the bound fails (promised: {ERROR})")
    print("population      n     bands  excess  condition   ms/sample")
    for name, case in CASES.items():
        for n in SIZES:
            start = time.process_time()
            found = simulate(case, n, samples, n, scales=False)
            spent = (time.process_time() - start) / samples
            print(
                f"{name:14} {n:5}  {found.bands.mean():.4f}  {found.excess.mean():.4f}  "
                f"{found.condition.mean():.4f}  {1e3 * spent:10.1f}",
                flush=True,
            )


def noise(samples: int = 15) -> None:
    print(f"\nLaplace b at α = 2, ε = 0.5: medians of {samples} samples")
    print("population      n     truth   sample  published  bands    in use")
    for name, case in CASES.items():
        truth = needed(case, TRANSPORT)
        for n in SIZES:
            found = simulate(case, n, samples, n + 1)
            columns = (
                truth,
                np.median(found.scale_sample),
                np.median(found.scale_published),
                np.median(found.scale_bands),
                np.median(found.scale),
            )
            print(
                f"{name:14} {n:5} " + " ".join(f"{value:8.3f}" for value in columns),
                flush=True,
            )


def uci() -> None:
    root = Path(os.environ.get("SKPUFFER_SHARED", _ROOT.parent / "shared")) / "data"
    adult = pd.read_csv(root / "adult.data", skipinitialspace=True)
    heart = pd.read_csv(root / "processed.cleveland.data", header=None)
    columns = {
        "adult age|sex": (adult["age"], adult["sex"], 17, 90),
        "adult age|salary": (adult["age"], adult["Salary"], 17, 90),
        "adult hours|sex": (adult["hours-per-week"], adult["sex"], 1, 99),
        "heart age|num>0": (heart[0], heart[13] > 0, 20, 90),
    }
    print("\nLaplace b at α = 2, ε = 0.5, 95 %")
    print("column             sample  published  bands    in use")
    for name, (values, secret, low, high) in columns.items():
        groups = [
            Conditional.from_rows(values[secret == label].to_numpy()[:, None])
            for label in sorted(secret.unique())
        ]
        prior = Prior(None, (0, 1), tuple(groups), ((0, 1),))
        limits = np.array([low, high], dtype=float)
        span = {"low": low, "high": high, "error": ERROR / 2}
        tried = [
            [Pair(*groups, UNIT)],
            [bounded_by(*(published_band(g, **span) for g in groups))],
            [bounded_by(*(quantile_band(g, **span) for g in groups))],
            population_pairs([prior], limits, TRANSPORT, ERROR)[0],
        ]
        scales = [
            calibrate(pairs, TRANSPORT.law, TRANSPORT.rule, BUDGET).scale[0]
            for pairs in tried
        ]
        print(f"{name:17}" + " ".join(f"{scale:8.3f}" for scale in scales))


def main() -> None:
    coverage()
    uci()
    noise()
    failures(int(sys.argv[1]) if len(sys.argv) > 1 else 200)


if __name__ == "__main__":
    main()
