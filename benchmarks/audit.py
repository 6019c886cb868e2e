"""Speed and memory of the audit's statistics, against the plainest way to get them.

Run from the repository with `python benchmarks/audit.py`; `run.py` takes the rows of
`divergence_of_a_grid`, `streamed_moments` and `full_audit`. Use one thread
(OMP_NUM_THREADS=1).
"""

import resource
import subprocess
import sys
import time

import numpy as np
from scipy import linalg
from timing import in_turns, print_rows

from skpuffer.audit import KernelRenyiAuditor
from skpuffer.core.gram import gram_divergence
from skpuffer.metrics import KernelMoments

ROWS = 600
# 27 pairs, most of them without a shortcut.
ORDERS = [1.0, 1.5, 2.0, 2.5, 4.0, 6.0, 12.0, 50.0, np.inf]
REGS = [1e-3, 1e-2, 1e-1]
STREAMED = (1_000_000, 30)
COMPONENTS = 512
GOAL_BYTES = 5e8
AUDITED = (100_000, 30)
GOAL_SECONDS = 15


def blocks(rows, width):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(rows, width)), rng.normal(0.2, 1, (rows, width))

    def kernel(A, B):
        squares = (A**2).sum(axis=1)[:, np.newaxis] + (B**2).sum(axis=1) - 2 * A @ B.T
        return np.exp(-np.maximum(squares, 0) / (2 * width))

    return kernel(X, X), kernel(Y, Y), kernel(Y, X)


def divergence_of_a_grid():
    """Yield rows as `run.py` prints them."""
    pairs = len(ORDERS) * len(REGS)
    # One column has a kernel of low rank, thirty have not.
    for width, goal in ((30, "≤ 1"), (1, "≤ 0.05")):
        k_pp, k_qq, k_qp = blocks(ROWS, width)
        ours, one = in_turns(
            lambda p=k_pp, q=k_qq, qp=k_qp: gram_divergence(
                p, q, qp, alphas=ORDERS, regs=REGS
            ),
            lambda q=k_qq: linalg.eigh(q),
            repeats=5,
        )
        peer = pairs * one
        name = (
            f"divergence, n = {ROWS}, {width} columns, {pairs} pairs of alpha and reg"
        )
        yield name, ours, f"{pairs} scipy.linalg.eigh", peer, ours / peer, goal


def stream():
    """Stream the rows through one sample and print what it took."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=STREAMED)
    moments = KernelMoments(gamma=0.01, n_components=COMPONENTS)
    start = time.perf_counter()
    moments.partial_fit(rows)
    seconds = time.perf_counter() - start
    # In kilobytes, but in bytes on macOS; the whole process, input and imports included.
    unit = 1 if sys.platform == "darwin" else 1024
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def streamed_moments():
    """Yield rows as `run.py` prints them."""
    command = [sys.executable, __file__, "stream"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = map(float, done.stdout.split())
    name = f"random features, 10^6 × 30 rows, {COMPONENTS}: peak bytes, input included"
    yield name, peak, "0.5 GB", GOAL_BYTES, peak / GOAL_BYTES, "≤ 1"
    # What any road must do: the symmetric product of the features with themselves.
    block = np.random.default_rng(1).normal(size=(4096, COMPONENTS))
    _, product = in_turns(lambda: None, lambda: block.T @ block, repeats=5)
    peer = product * STREAMED[0] / len(block)
    name = f"random features, 10^6 × 30 rows, {COMPONENTS} components"
    yield name, seconds, "their products alone", peer, seconds / peer, "≤ 5"


def full_audit():
    """Yield rows as `run.py` prints them."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=AUDITED), rng.normal(0.05, 1, AUDITED)
    ours, _ = in_turns(
        lambda: KernelRenyiAuditor(delta=0.005).fit(X, Y), lambda: None, repeats=2
    )
    name = "full audit, 2 × 10^5 × 30 rows, three witnesses, two folds"
    yield name, ours, "15 s", GOAL_SECONDS, ours / GOAL_SECONDS, "≤ 1"


def main():
    if sys.argv[1:] == ["stream"]:
        stream()
        return
    for section in (divergence_of_a_grid, streamed_moments, full_audit):
        print_rows(section())


if __name__ == "__main__":
    main()
