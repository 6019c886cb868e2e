"""Faults around the library: odd memory, full disks, interrupts, threads, switches."""

import ast
import io
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import skpuffer
from skpuffer import (
    ConditionalCounts,
    JointRelease,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)
from skpuffer.metrics import kernel_renyi_divergence

ROOT = Path(skpuffer.__file__).parents[1]
SECRET = np.arange(300) % 2
ROWS = np.random.default_rng(0).normal(size=(300, 2)) + SECRET[:, np.newaxis]
KINDS = [
    RenyiPufferfishLaplace,
    RenyiPufferfishGaussian,
    RenyiPufferfishExponential,
    JointRelease,
]


def read_only(rows, labels, _):
    rows, labels = rows.copy(), labels.copy()
    rows.flags.writeable = labels.flags.writeable = False
    return rows, labels


def mapped(rows, labels, folder):
    found = []
    for name, array in (("rows", rows), ("labels", labels)):
        np.save(folder / f"{name}.npy", array)
        found.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return found


MEMORY = {
    "read-only": read_only,
    "mapped": mapped,
    "big-endian": lambda rows, labels, _: (rows.astype(">f8"), labels.astype(">i8")),
    "by columns": lambda rows, labels, _: (np.asfortranarray(rows), labels),
    "backwards": lambda rows, labels, _: (rows[::-1], labels[::-1]),
    "with gaps": lambda rows, labels, _: (
        np.repeat(np.repeat(rows, 3, axis=0), 2, axis=1)[::3, ::2],
        np.repeat(labels, 3)[::3],
    ),
    "objects": lambda rows, labels, _: (rows.astype(object), labels.astype(object)),
    "wide floats": lambda rows, labels, _: (rows.astype(np.longdouble), labels),
}


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory", MEMORY)
def test_where_an_array_lies_makes_no_difference(kind, memory, tmp_path):
    rows, labels = MEMORY[memory](ROWS, SECRET, tmp_path)
    before = rows.tobytes(), labels.tobytes()
    plain = kind(secret_from_y=True).fit(ROWS, SECRET)
    found = kind(secret_from_y=True).fit(rows, labels)
    assert np.array_equal(found.scale_, plain.scale_)
    release = found.transform(rows)
    assert release.flags.writeable
    assert not np.shares_memory(release, rows)
    assert (rows.tobytes(), labels.tobytes()) == before
    if memory not in ("objects", "wide floats"):
        whole = kernel_renyi_divergence(rows[:20], rows[20:60])
        assert whole == kernel_renyi_divergence(*np.split(np.array(rows)[:60], [20]))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full disk at hand")
@pytest.mark.parametrize(
    "dump", [joblib.dump, lambda item, disk: pickle.dump(item, disk)]
)
def test_a_full_disk_costs_the_file_alone(dump):
    noise = RenyiPufferfishLaplace(secret_from_y=True).fit(ROWS, SECRET)
    state = pickle.dumps(noise)
    with pytest.raises(OSError, match="No space"), open("/dev/full", "wb", 0) as disk:
        dump(noise, disk)
    assert pickle.dumps(noise) == state
    assert noise.transform(ROWS).shape == ROWS.shape


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full disk at hand")
def test_a_card_that_finds_no_room_raises():
    noise = RenyiPufferfishLaplace(secret_from_y=True).fit(ROWS, SECRET)
    with pytest.raises(OSError, match="No space"):
        Path("/dev/full").write_text(noise.guarantee_.to_json(), encoding="utf-8")


def test_half_a_pickle_is_no_estimator():
    for item in (
        RenyiPufferfishLaplace(secret_from_y=True).fit(ROWS, SECRET),
        ConditionalCounts().update(ROWS, secret=SECRET),
    ):
        whole = pickle.dumps(item)
        for length in range(0, len(whole), max(len(whole) // 60, 1)):
            with pytest.raises((EOFError, pickle.UnpicklingError, ValueError)):
                pickle.load(io.BytesIO(whole[:length]))


class Interrupt(KeyboardInterrupt):
    """An interrupt of ours."""


def interrupted(run, at):
    """Run, and raise where the package makes its `at`-th call; whether it got there."""
    calls = 0
    inside = str(ROOT / "skpuffer")

    def trace(frame, event, _):
        nonlocal calls
        code = frame.f_code
        # Not generators within expressions: that they are closed is a call too, from
        # which nothing can be raised.
        if code.co_name != "<genexpr>" and code.co_filename.startswith(inside):
            calls += event == "call"
            if calls == at:
                sys.settrace(before)
                raise Interrupt

    # Whoever measures coverage traces too, and goes on to.
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(
    ("kind", "columns"),
    [(RenyiPufferfishLaplace, 1), (RenyiPufferfishGaussian, 2), (JointRelease, 2)],
)
def test_an_interrupt_anywhere_in_fit_leaves_the_estimator_as_it_was(kind, columns):
    frame = pd.DataFrame(ROWS[:80, :columns]).rename(columns=str).assign(s=SECRET[:80])
    fitted = kind(secret="s").fit(frame)
    before, unfitted = pickle.dumps(fitted), pickle.dumps(kind(secret="s"))
    other = frame.assign(**{"0": frame["0"] * 3})
    at, stops = 1, 0
    while interrupted(lambda: fitted.fit(other), at):
        assert pickle.dumps(fitted) == before
        # On other rows it may end in fewer calls.
        fresh = kind(secret="s")
        if interrupted(partial(fresh.fit, frame), at):
            assert pickle.dumps(fresh) == unfitted
        # Closely at first, then in growing strides: fits make thousands of calls.
        at += 1 + at // 12
        stops += 1
    assert stops > 20
    assert pickle.dumps(fitted) != before


def test_an_interrupt_anywhere_in_an_update_leaves_the_counts_as_they_were():
    frame = pd.DataFrame({"x": np.arange(40) % 7, "s": SECRET[:40]})
    counts = ConditionalCounts(secret="s").update(frame)
    before = counts.to_frame()
    at = 1
    while interrupted(lambda: counts.update(frame + 1), at):
        pd.testing.assert_frame_equal(counts.to_frame(), before)
        at += 1 + at // 12
    assert counts.n_rows == 80


def test_an_interrupt_anywhere_in_reuse_leaves_nothing_behind():
    def search():
        with skpuffer.reuse_fits():
            for alpha in (2, 4):
                noise = RenyiPufferfishLaplace(alpha, secret_from_y=True)
                noise.fit(ROWS, SECRET)

    at = 1
    while interrupted(search, at):
        assert not skpuffer.reuse._OPEN
        at += 1 + at // 8
    assert not skpuffer.reuse._OPEN


def test_threads_that_fit_and_release_at_once_see_one_fit_or_none():
    near, far = ROWS, ROWS * 2.0**20
    noise = RenyiPufferfishLaplace(secret_from_y=True).fit(near, SECRET)
    scales = [noise.scale_[0], noise.scale_[0] * 2.0**20]
    stop, strange = threading.Event(), []

    def release():
        while not stop.is_set():
            try:
                spread = np.abs(noise.transform(np.zeros((400, 2)))[:, 0]).mean()
            except (NotFittedError, AttributeError):
                continue  # No noise was promised then, and none was given.
            if not any(0.5 < spread / scale < 2 for scale in scales):
                strange.append(spread)

    threads = [threading.Thread(target=release) for _ in range(2)]
    for thread in threads:
        thread.start()
    for rows in [far, near] * 8:
        noise.fit(rows, SECRET)
    stop.set()
    for thread in threads:
        thread.join()
    assert strange == []


def run_python(code, *switches):
    done = subprocess.run(
        [sys.executable, *switches, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_assertions_are_for_types_alone():
    # Python's switch -O leaves them out.
    for path in (ROOT / "skpuffer").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assert):
                assert ast.unparse(node.test).endswith("is not None"), path


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["-O", "-OO"])
def test_without_assertions_the_scale_is_the_same_and_refusals_stand(switch):
    code = """
        import numpy as np
        from skpuffer import RenyiPufferfishGaussian
        rows = np.arange(60.0).reshape(30, 2) ** 1.5
        noise = RenyiPufferfishGaussian(secret_from_y=True, random_state=0)
        noise.set_params(random_state=None).fit(rows, np.arange(30) % 2)
        print(*map(float.hex, noise.scale_.tolist()))
        rows[3] = np.nan
        try:
            noise.fit(rows, np.arange(30) % 2)
        except ValueError:
            print("refused")
    """
    outputs = {run_python(code, *switches) for switches in ((), (switch,))}
    assert len(outputs) == 1
    assert "refused" in outputs.pop()


def test_nothing_asks_for_the_network():
    assert "released" in run_python(
        """
        import socket

        def refuse(*given, **named):
            raise AssertionError(f"asked for the network: {given}")

        socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
        import numpy as np
        import skpuffer, skpuffer.audit, skpuffer.displays, skpuffer.metrics

        rows, secret = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
        noise = skpuffer.JointRelease(secret_from_y=True).fit(rows, secret)
        noise.guarantee_.to_json()
        noise._repr_html_()
        print("released", noise.transform(rows).shape)
        """,
        "-W",
        "ignore",
    )
