"""Bars for what takes its time: shown when asked for, counted to the end, then gone."""

import numpy as np
import pandas as pd
import pytest
import tqdm

from skpuffer import compare_mechanisms
from skpuffer._progress import progress, stepwise
from skpuffer.audit import KernelRenyiAuditor


@pytest.fixture
def bars(monkeypatch):
    """Every bar that is made, by its last state."""
    made = []

    class Bar:
        def __init__(self, **names):
            self.names, self.total, self.n, self.closed = names, None, 0, False
            made.append(self)

        def update(self, steps):
            assert not self.closed
            self.n += steps

        def close(self):
            self.closed = True

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    return made


def people(n=200):
    rng = np.random.default_rng(0)
    sex = np.arange(n) % 2
    return pd.DataFrame({"age": rng.integers(20, 60, n) + sex, "sex": sex})


def test_an_audit_counts_its_witnesses(bars):
    table = people()
    audit = KernelRenyiAuditor(epsilon=1, secret="sex", verbose=1).fit(table)
    assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(6, 6, True)]
    quiet = KernelRenyiAuditor(epsilon=1, secret="sex").fit(table)
    assert len(bars) == 1
    assert quiet.bound_ == audit.bound_


def test_a_comparison_counts_its_fits(bars):
    loud = compare_mechanisms(people(), secret="sex", verbose=1)
    # Two laws and scopes, five rules.
    assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(20, 20, True)]
    pd.testing.assert_frame_equal(loud, compare_mechanisms(people(), secret="sex"))
    assert len(bars) == 1


def test_a_bar_ends_with_an_error(bars):
    def fails():
        with progress("work", "step", shown=1) as report:
            stepwise(report, 3)()
            raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert [(bar.n, bar.total, bar.closed) for bar in bars] == [(1, 3, True)]


def test_one_bar_serves_one_task_after_another(bars):
    with progress("work", "step", shown=1) as report:
        for done in (1, 2, 1):
            report(done, 2)
    assert [(bar.n, bar.total) for bar in bars] == [(3, 4)]


def test_no_bar_without_anything_to_tell(bars):
    with progress("work", "step", shown=1):
        pass
    with progress("work", "step", shown=0) as report:
        stepwise(report, 1)()
    assert bars == []
