"""Speed of a release on the grid against numpy's floating-point noise, on one core.

Run from the repository with `python benchmarks/sampling.py`; `run.py` takes the rows of
`samplers`. Exponential noise is of power 1/2, beside the square of a gamma variate with
a sign.
"""

import numpy as np
from timing import in_turns, print_rows

from skpuffer.core.sampling import (
    SeededBits,
    SystemBits,
    discrete_gaussian,
    release_on_grid,
    rounded_laplace,
)
from skpuffer.core.sampling_blocks import exponential_power

SIZE = 1_000_000


def samplers():
    """Yield the time of a release by law and source of bits; numpy's is the peer."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=SIZE)

    def root_power(size, t, bits):
        return exponential_power(size, t, 0.5, bits)

    def unsafe_root():
        size_of = rng.standard_gamma(2.0, size=SIZE)
        size_of *= size_of
        size_of *= rng.choice((-1.0, 1.0), size=SIZE)
        return values + size_of

    laws = [
        ("laplace", rounded_laplace, lambda: values + rng.laplace(size=SIZE), 0.45),
        ("gaussian", discrete_gaussian, lambda: values + rng.normal(size=SIZE), 0.25),
        ("exponential", root_power, unsafe_root, 0.4),
    ]
    for law, sampler, unsafe, goal in laws:
        for source in (SystemBits(), SeededBits(0, 0)):
            ours, peer = in_turns(
                lambda sampler=sampler, source=source: release_on_grid(
                    values, 1.5, sampler, source
                ),
                unsafe,
            )
            name = f"noise on a grid, {law}, 10^6 values, {type(source).__name__}"
            yield name, ours, "numpy (unsafe)", peer, peer / ours, f"≥ {goal:g}"


if __name__ == "__main__":
    print_rows(samplers())
