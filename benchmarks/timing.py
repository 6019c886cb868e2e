"""Time and memory of functions, measured in turns so that load hits all of them.

A section of the benchmarks yields rows: what is measured, its figure, a peer or limit,
its figure, their ratio and the goal of that.
"""

import time
import tracemalloc

REPEATS = 7


def print_head():
    """Print the names of the columns of `print_rows`."""
    print(f"{'measured':72} {'':>9} {'peer':34} {'':>9} {'ratio':>7}  goal")


def print_rows(rows):
    """Print the rows of a section as they come."""
    for row in rows:
        print("{:72} {:9.4g} {:34} {:9.4g} {:7.4g}  {}".format(*row), flush=True)


def best_of(runs, repeats=REPEATS):
    """Return the best time of each of several functions."""
    runs = list(runs)
    best = [float("inf")] * len(runs)
    for _ in range(repeats):
        for place, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[place] = min(best[place], time.perf_counter() - start)
    return best


def in_turns(first, second, repeats=REPEATS):
    """Return the best time of each of two functions."""
    return best_of((first, second), repeats)


def peak_bytes(run):
    """Return the most bytes allocated at once during a run."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
