"""Very many rows are fitted and released in little more memory than they are.

The benchmarks state the most that is allocated at once, the input included: 1.54 times
the input in a fit, 2.02 times in a release. At a million rows what is allocated is
counted here. At ten million the operating system is asked, in a process of its own: the
most that it ever held, less what it held before the rows were there.
"""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skpuffer

ROOT = Path(skpuffer.__file__).parents[1]
STATUS = Path("/proc/self/status")
LAWS = ["RenyiPufferfishLaplace", "RenyiPufferfishGaussian"]
KINDS = ["array", "frame"]

MEASURE = """
import re
import sys
import warnings

import numpy as np
import pandas as pd

import skpuffer

warnings.simplefilter("ignore")


def memory(name):
    # Not what `getrusage` says: that is at least what the parent has held.
    with open("/proc/self/status", encoding="ascii") as status:
        return 1024 * int(re.search(name + r":\\s+([0-9]+) kB", status.read())[1])


def rows_of(kind, n):
    rng = np.random.default_rng(0)
    secret, values = np.empty(n, dtype=np.int64), np.empty((n, 1))
    # In parts, so that nothing but the rows themselves counts.
    for start in range(0, n, 100_000):
        part = slice(start, start + 100_000)
        secret[part] = rng.integers(0, 2, len(secret[part]))
        values[part, 0] = rng.normal(size=len(secret[part])) + 0.3 * secret[part]
    if kind == "array":
        return values, {"secret": secret}, values.nbytes + secret.nbytes
    # Of the arrays themselves, without a copy.
    column = pd.Series(values[:, 0], copy=False, name="value")
    labels = pd.Series(secret, copy=False, name="secret")
    frame = pd.concat([column, labels], axis=1)
    return frame, {}, int(frame.memory_usage(index=False).sum())


kind, law, step, n = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
make = getattr(skpuffer, law)
named = {} if kind == "array" else {"secret": "secret"}
# Whatever is loaded when it is first used counts as held before.
few, beside, _ = rows_of(kind, 20_000)
noise = make(4, 1, **named).fit(few, **beside)
noise.transform(few)
before = memory("VmRSS")
rows, beside, given = rows_of(kind, n)
if step == "fit":
    make(4, 1, **named).fit(rows, **beside)
else:
    # The labels are not there.
    rows = rows if kind == "array" else rows[["value"]]
    beside, given = {}, given // 2
    released = noise.transform(rows)
print((memory("VmHWM") - before) / given)
"""


def share(kind, law, step, rows):
    """Return the most memory held for a step, in units of what it was given."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, kind, law, step, str(rows)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="the system does not tell its memory")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("step", "most"), [("fit", 1.9), ("transform", 2.5)])
def test_ten_million_rows_take_little_more_memory_than_they_are(kind, law, step, most):
    found = share(kind, law, step, 10_000_000)
    print(f"{step}, {kind}, {law}: {found:.3f}")
    if kind == "frame" and int(pd.__version__.split(".")[0]) < 3:
        most += 0.5 if step == "fit" else 2  # Older versions copy columns.
    assert 1 < found <= most


def allocated(run):
    """Return the most that was allocated at once."""
    tracemalloc.start()
    try:
        kept = run()
        return tracemalloc.get_traced_memory()[1], kept
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("kind", "law"), list(zip(KINDS, LAWS, strict=True)))
def test_a_million_rows_are_copied_half_in_a_fit_and_once_in_a_release(kind, law):
    n = 1_000_000
    rng = np.random.default_rng(0)
    secret = rng.integers(0, 2, n)
    values = rng.normal(size=(n, 1)) + 0.3 * secret[:, np.newaxis]
    given = values.nbytes + secret.nbytes
    noise = getattr(skpuffer, law)(4, 1)
    rows, beside = values, {"secret": secret}
    if kind == "frame":
        noise.set_params(secret="secret")
        rows, beside = pd.DataFrame({"x": values[:, 0], "secret": secret}), {}
    peak, _ = allocated(lambda: noise.fit(rows, **beside))
    # What does not grow with the rows is a part of it here; a copy of the column would
    # be half of the input in a fit, and all of it in a release. Older versions of pandas
    # make one.
    assert 1.2 <= 1 + peak / given <= 2.6
    rows = rows if kind == "array" else rows[["x"]]
    peak, released = allocated(lambda: noise.transform(rows))
    assert released.shape == (n, 1)
    assert 2 <= 1 + peak / values.nbytes <= 2.7
