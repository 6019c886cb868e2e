"""Speed and memory with one column of very many rows, against named peers.

Run from the repository with `python benchmarks/one_column.py`, with one thread of BLAS
(OMP_NUM_THREADS=1); `run.py` may take the rows of `fits`, `transforms`, `exact_peers`,
`couplings` and `memory`. Two threads need two idle cores.
"""

import time

import numpy as np
import pandas as pd
from peers import opendp_noise, pot_plan
from timing import in_turns, peak_bytes, print_rows

from skpuffer import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.core.calibration import Pair
from skpuffer.core.prior import Conditional

ROWS = 10_000_000
PEER_ROWS = 1_000  # OpenDP takes some ten microseconds a value
COUPLED = 1_000_000  # a side
LAWS = {
    "laplace": (RenyiPufferfishLaplace, 0.9, "x + rng.laplace (unsafe)"),
    "gaussian": (RenyiPufferfishGaussian, 0.5, "x + rng.normal (unsafe)"),
}


def data(rows=ROWS):
    """Return a column of normal values, and a secret of two values, shuffled."""
    rng = np.random.default_rng(0)
    secret = rng.integers(0, 2, rows)
    values = rng.normal(size=rows)
    values *= np.where(secret, 1.2, 1.0)
    values += 0.3 * secret
    return values[:, np.newaxis], secret


def fits(repeats=5):
    """Yield rows as `run.py` prints them."""
    values, secret = data()
    frame = pd.DataFrame({"value": values[:, 0], "secret": secret})
    for name, noise, run in (
        ("arrays", RenyiPufferfishLaplace(4, 1), {"X": values, "secret": secret}),
        ("a frame", RenyiPufferfishLaplace(4, 1, secret="secret"), {"X": frame}),
    ):
        ours, peer = in_turns(
            lambda noise=noise, run=run: noise.fit(**run),
            lambda: np.sort(values[:, 0]),
            repeats,
        )
        name = f"fit, one column, 10^7 rows, {name}"
        yield name, ours, "np.sort of the column", peer, ours / peer, "≤ 3"
    values, secret = data(1000)
    noise = RenyiPufferfishLaplace(4, 1)
    ours, _ = in_turns(lambda: noise.fit(values, secret=secret), lambda: None, 20)
    yield "fit, one column, 1000 rows", ours, "50 ms", 0.05, ours / 0.05, "≤ 1"
    ours, _ = in_turns(lambda: noise.transform(values), lambda: None, 50)
    yield "transform, one column, 1000 rows", ours, "2 ms", 2e-3, ours / 2e-3, "≤ 1"


def transforms(repeats=5):
    """Yield rows as `run.py` prints them."""
    values, secret = data()
    rng = np.random.default_rng(1)
    for law, (mechanism, two, peer_name) in LAWS.items():
        unsafe = {"laplace": rng.laplace, "gaussian": rng.normal}[law]
        for n_jobs, goal in ((1, two / 2), (2, two)):
            noise = mechanism(4, 1, n_jobs=n_jobs)
            noise.fit(values[:10_000], secret=secret[:10_000])
            ours, peer = in_turns(
                lambda noise=noise: noise.transform(values),
                lambda unsafe=unsafe: values + unsafe(size=values.shape),
                repeats,
            )
            name = f"transform, {law}, 10^7 rows, n_jobs={n_jobs}"
            yield name, ours, peer_name, peer, peer / ours, f"≥ {goal:g}"


def exact_peers():
    """Yield rows as `run.py` prints them: seconds per value."""
    values, secret = data(1_000_000)
    few = values[:PEER_ROWS, 0].copy()
    for law, (mechanism, *_) in LAWS.items():
        noise = mechanism(4, 1).fit(values, secret=secret)
        scale = float(noise.scale_[0])
        for k, name in ((-20, "on multiples of 2^-20"), (None, "by default")):
            peer = opendp_noise(law, PEER_ROWS, scale, k)
            ours, theirs = in_turns(
                lambda noise=noise: noise.transform(values),
                lambda peer=peer: peer(few),
                3,
            )
            ours, theirs = ours / len(values), theirs / len(few)
            label = f"release of a value, {law}"
            yield label, ours, f"OpenDP {name}", theirs, theirs / ours, "≥ 100"


def couplings(repeats=3):
    """Yield rows as `run.py` prints them."""
    rng = np.random.default_rng(2)
    columns = rng.normal(size=COUPLED), rng.normal(0.3, 1.2, COUPLED)

    def ours():
        groups = [Conditional.from_rows(column[:, np.newaxis]) for column in columns]
        return Pair(*groups, np.ones(1)).bound.compressed()

    mine, peer = in_turns(ours, lambda: pot_plan(*columns), repeats)
    name = "sorted, coupled and summarised, 10^6 values a side"
    yield name, mine, "POT's emd_1d", peer, mine / peer, "≤ 1"


def memory():
    """Yield rows as `run.py` prints them: bytes, the input included."""
    values, secret = data()
    given = values.nbytes + secret.nbytes
    for law, (mechanism, *_) in LAWS.items():
        noise = mechanism(4, 1)
        peak = peak_bytes(lambda noise=noise: noise.fit(values, secret=secret)) + given
        name = f"peak bytes of fit, {law}, 10^7 rows, input included"
        yield name, peak, "bytes of X and secret", given, peak / given, "≤ 3"
        peak = peak_bytes(lambda noise=noise: noise.transform(values)) + values.nbytes
        name = f"peak bytes of transform, {law}, 10^7 rows, input included"
        yield name, peak, "bytes of X", values.nbytes, peak / values.nbytes, "≤ 3"


def main():
    start = time.perf_counter()
    for section in (fits, transforms, exact_peers, couplings, memory):
        print_rows(section())
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
