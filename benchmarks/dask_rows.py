"""Rows beyond memory: a fit and a release of generated partitions on two workers.

Run from the repository with `python benchmarks/dask_rows.py [rows ...]`; by default
2·10^6, 2·10^7 and 2·10^8 rows. Partitions of 10^6 rows are made by the workers and
never kept: a whole-numbered column, a float that is counted on a grid, and the secret.
Use one thread (OMP_NUM_THREADS=1); each line is a measurement, what it is compared
with, their ratio and the goal.
"""

import resource
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
from timing import print_rows

from skpuffer import ConditionalCounts, RenyiPufferfishLaplace
from skpuffer.core.grid import round_to_multiples

PART = 1_000_000
SIZES = (2_000_000, 20_000_000, 200_000_000)
IN_MEMORY = 20_000_000
GRID = 0.5
LIMIT = 4e9
# Of one worker: with this process and its scheduler they stay below the limit.
WORKER_LIMIT = "1.5GB"


def part(number, rows=PART):
    rng = np.random.default_rng([7, number])
    secret = rng.integers(0, 2, rows, dtype=np.int8)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows) + 3 * secret,
            "pay": rng.normal(30, 6, rows) + secret,
            "secret": secret,
        }
    )


def frame(rows):
    # Where it is needed: the other sections run without Dask.
    import dask.dataframe as dd

    numbers = range(-(-rows // PART))
    return dd.from_map(
        partial(part, rows=min(rows, PART)), numbers, meta=part(0, 1)[:0]
    )


def estimator():
    return RenyiPufferfishLaplace(secret="secret", scope="column")


def totals(rows):
    return rows[["age", "pay"]].sum().to_frame().T


def total(lazy):
    meta = pd.DataFrame({"age": [0.0], "pay": [0.0]})
    parts = lazy.map_partitions(lambda rows: totals(rows).astype(float), meta=meta)
    return parts.compute().sum()


def peak_bytes():
    # In kilobytes, but in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def all_cpu(client):
    """Return what the workers and this process have used: load hits it less."""
    return sum(client.run(cpu_seconds).values()) + cpu_seconds()


def timed(run):
    start = time.perf_counter()
    found = run()
    return found, time.perf_counter() - start


def one_size(client, rows):
    """Return seconds of making, fitting and releasing rows, CPU seconds, fit, bytes."""
    lazy = frame(rows)
    plain, making = timed(lambda: total(lazy))
    cpu = [all_cpu(client)]
    counts, counting = timed(
        lambda: ConditionalCounts.from_frame(lazy, secret="secret", grid={"pay": GRID})
    )
    fitted, fitting = timed(lambda: estimator().fit_counts(counts))
    cpu.append(all_cpu(client))
    released, releasing = timed(lambda: total(fitted.transform(lazy)))
    cpu.append(all_cpu(client))
    # Noise has mean 0; six of its standard errors.
    gap = np.abs(released - plain).to_numpy() / rows
    rounding = np.array([0, GRID / np.sqrt(12)])
    error = np.hypot(fitted.noise_std_, rounding) / np.sqrt(rows)
    assert (gap < 6 * error).all(), gap / error
    assert counts.n_rows == rows
    workers = client.run(peak_bytes)
    peak = sum(workers.values()) + peak_bytes()
    return making, counting + fitting, releasing, np.diff(cpu), fitted, peak


def rounded(rows):
    return rows.assign(pay=round_to_multiples(rows["pay"].to_numpy(), GRID))


def unsafe(rows):
    rng = np.random.default_rng()
    noise = rng.laplace(size=(len(rows), 2))
    return rows[["age", "pay"]] + noise


def peers(rows):
    """Return the seconds that Dask takes for its own counts and for unsafe noise."""
    lazy = frame(rows)
    groups = lazy.map_partitions(rounded).groupby(["secret", "age", "pay"])
    _, counting = timed(lambda: groups.size().compute())
    _, noise = timed(lambda: total(lazy.map_partitions(unsafe)))
    return counting, noise


def in_memory(rows):
    whole = rounded(pd.concat([part(number) for number in range(rows // PART)]))
    return estimator().fit(whole)


def against_peers(found):
    """Yield rows for a size that this process and Dask's own functions can do too."""
    if found is None:
        return
    fitted, fit, release = found
    shown = f"{IN_MEMORY:.0e} rows of Dask"
    equal = in_memory(IN_MEMORY)
    gap = float(np.abs(equal.scale_ - fitted.scale_).max())
    name = f"{shown}: largest difference of scales"
    yield name, gap, "a fit in memory", equal.scale_.max(), gap, "= 0"
    counting, noise = peers(IN_MEMORY)
    name, peer = f"{shown}: seconds of fit", "Dask's own groupby.size"
    yield name, fit, peer, counting, fit / counting, "≤ 2"
    name, peer = f"{shown}: seconds of transform", "x + rng.laplace (unsafe)"
    yield name, release, peer, noise, release / noise, "≤ 3"


def dask_rows(sizes=SIZES):
    """Yield rows as `run.py` prints them."""
    from distributed import Client, LocalCluster

    before, fits = None, {}
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=WORKER_LIMIT,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        one_size(client, PART)
        for rows in sizes:
            making, fit, release, cpu, fitted, peak = one_size(client, rows)
            shown = f"{rows:.0e} rows of Dask"
            for what, seconds in (("fit", fit), ("transform", release)):
                rate, peer = rows / seconds, rows / making
                name = f"{shown}: rows/s of {what}"
                yield name, rate, "making and summing them", peer, peer / rate, ""
            name = f"{shown}: peak bytes of 2 workers and this process"
            yield name, peak, "4 GB", LIMIT, peak / LIMIT, "≤ 1"
            if before is not None:
                more = rows / before[0]
                for what, now, then in zip(
                    ("fit", "transform"), cpu, before[1], strict=True
                ):
                    name = f"{shown}: CPU seconds of {what}"
                    peer = f"{more:.3g} times those of {before[0]:.0e}"
                    yield name, now, peer, more * then, now / (more * then), "≤ 1.2"
            before = rows, cpu
            fits[rows] = fitted, fit, release
        # Last: the most bytes of a process are those of all its past.
        yield from against_peers(fits.get(IN_MEMORY))


def main():
    sizes = [int(float(given)) for given in sys.argv[1:]] or SIZES
    print_rows(dask_rows(sizes))


if __name__ == "__main__":
    main()
