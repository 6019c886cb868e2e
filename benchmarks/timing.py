"""Time and memory of functions, measured in turns so that load hits all of them."""

import time
import tracemalloc

REPEATS = 7


def in_turns(first, second, repeats=REPEATS):
    """Return the best time of each of two functions."""
    best = [float("inf"), float("inf")]
    for _ in range(repeats):
        for side, run in enumerate((first, second)):
            start = time.perf_counter()
            run()
            best[side] = min(best[side], time.perf_counter() - start)
    return best


def peak_bytes(run):
    """Return the most bytes allocated at once during a run."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
