"""Time and memory of functions, measured in turns so that load hits all of them."""

import time
import tracemalloc

REPEATS = 7


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
