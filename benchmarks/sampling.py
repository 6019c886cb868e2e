"""Speed of a release on the grid against numpy's floating-point noise, on one core.

Run from the repository with `python benchmarks/sampling.py`. Ratios are within one
run: 1 is numpy's own speed. The goals are 0.4 for Laplace and 0.1 for the Gaussian.
Exponential noise is of power 1/2, beside the square of a gamma variate with a sign.
"""

from __future__ import annotations

import numpy as np
from timing import in_turns, peak_bytes

from skpuffer.core.sampling import (
    SeededBits,
    SystemBits,
    discrete_gaussian,
    release_on_grid,
    rounded_laplace,
)
from skpuffer.core.sampling_blocks import exponential_power


def measure(size: int = 1_000_000, repeats: int = 7) -> list[dict[str, object]]:
    """Return one row a law and source: values per second, ratio, goal, peak memory."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=size)

    def root_power(size, t, bits):
        return exponential_power(size, t, 0.5, bits)

    def unsafe_root():
        size_of = rng.standard_gamma(2.0, size=size)
        size_of *= size_of
        size_of *= rng.choice((-1.0, 1.0), size=size)
        return values + size_of

    laws = [
        ("laplace", rounded_laplace, lambda: values + rng.laplace(size=size), 0.4),
        ("gaussian", discrete_gaussian, lambda: values + rng.normal(size=size), 0.1),
        ("exponential", root_power, unsafe_root, 0.4),
    ]
    rows: list[dict[str, object]] = []
    for law, sampler, unsafe, goal in laws:
        for source in (SystemBits(), SeededBits(0, 0)):

            def release(sampler=sampler, source=source):
                return release_on_grid(values, 1.5, sampler, source)

            seconds, reference = in_turns(release, unsafe, repeats)
            rows.append(
                {
                    "law": law,
                    "source": type(source).__name__,
                    "million_per_second": size / seconds / 1e6,
                    "numpy_million_per_second": size / reference / 1e6,
                    "ratio": reference / seconds,
                    "goal": goal,
                    "peak_memory_over_input": 1 + peak_bytes(release) / values.nbytes,
                }
            )
    return rows


def main() -> None:
    """Print the table."""
    print("law         source      10^6/s   numpy   ratio   goal   memory/input")
    for row in measure():
        print(
            f"{row['law']:11} {row['source']:10} {row['million_per_second']:7.1f} "
            f"{row['numpy_million_per_second']:7.1f} {row['ratio']:7.2f} "
            f"{row['goal']:6.1f} {row['peak_memory_over_input']:9.2f}"
        )


if __name__ == "__main__":
    main()
