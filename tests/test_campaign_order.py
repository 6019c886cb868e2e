"""The campaign against any order of calls."""

import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from campaign_cases import LAWS, SPOILT, assert_refused, runs, scale_of, spoilt
from campaign_support import (
    SEED,
    Books,
    as_frame,
    campaign_settings,
    released_array,
    rows_of,
    tables,
)
from core_support import step_of
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skpuffer import (
    ConditionalCounts,
    reuse,
    reuse_fits,
)

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


CHANGES = st.sampled_from(
    [
        {"epsilon": 0.5},
        {"epsilon": 2.0},
        {"alpha": 3.0},
        {"alpha": 1.2},
        {"calibration": "w_inf"},
        {"calibration": "transport"},
        {"scope": "column"},
        {"scope": "joint"},
        {"n_releases": 2},
        {"bounds": (-2, 3)},
        {"bounds": None},
        {"prior_model": "bounded"},
        {"prior_model": "empirical"},
    ]
)


class AnyOrder(RuleBasedStateMachine):
    """An estimator against the parameters and rows of its last fit that succeeded.

    What a fit must find is what a fresh estimator finds alone, outside any block and
    with nothing before it.
    """

    books: Books

    def __init__(self):
        super().__init__()
        self.blocks, self.known, self.calls = [], {}, Counter()
        self.released = []

    @initialize(
        law=st.sampled_from(list(LAWS)),
        drawn=st.lists(
            tables((1, 2), 8, weighted=False, grouped=False), min_size=2, max_size=2
        ),
    )
    def begin(self, law, drawn):
        self.noise = LAWS[law](secret="s")
        first = drawn[0]
        # Other rows of the same columns, and other columns.
        self.tables = [first, first.changed(lambda v: v * 2 + 1), *drawn[1:]]
        self.fitted = None
        self.counts, self.counted = ConditionalCounts(secret="s"), []
        self.fit(0)

    def alone(self, frame, parameters):
        """Return the scale of a fresh estimator, or its refusal."""
        key = (tuple(map(tuple, frame.to_numpy().tolist())), *frame.columns)
        key = key, tuple(sorted((k, str(v)) for k, v in parameters.items()))
        if key not in self.known:
            fresh = type(self.noise)(**parameters)
            hidden = [reuse._OPEN.pop() for _ in range(len(reuse._OPEN))]
            self.known[key] = scale_of(lambda: fresh.fit(frame))
            reuse._OPEN.extend(reversed(hidden))
        return self.known[key]

    def hold(self, fit, frame):
        """Fit, and hold what comes to what a fresh estimator finds."""
        parameters = self.noise.get_params()
        expected = self.alone(frame, parameters)
        if expected.dtype.kind == "f":
            assert fit() is self.noise
            self.fitted = {
                "scale": expected,
                "columns": list(frame.columns[:-1]),
                "parameters": parameters,
            }
            self.books.count("fits")
            return
        assert_refused(fit, self.noise, expected[0])
        self.books.count("refusals")

    @rule(i=st.integers(0, 2))
    def fit(self, i):
        frame = as_frame(self.tables[i])
        self.hold(lambda: self.noise.fit(frame), frame)

    @rule(i=st.integers(0, 2), kind=st.sampled_from(["polars", "pyarrow", "nullable"]))
    def fit_another_kind(self, i, kind):
        frame = as_frame(self.tables[i])
        self.hold(lambda: self.noise.fit(as_frame(self.tables[i], kind)), frame)

    @rule(i=st.integers(0, 2), n=st.integers(1, 8))
    def update(self, i, n):
        some = self.tables[i].rows(range(min(n, self.tables[i].n_rows)))
        self.count(some, lambda counts: counts.update(as_frame(some)))

    @rule(i=st.integers(0, 2))
    def merge(self, i):
        part = ConditionalCounts.from_frame(as_frame(self.tables[i]), secret="s")
        self.count(self.tables[i], lambda counts: counts.merge(part))

    def count(self, some, add):
        """Count rows, or see them refused whole where their columns are others."""
        self.books.count("counts")
        if self.counted and self.counted[0].names != some.names:
            with pytest.raises((ValueError, TypeError)):
                add(self.counts)
        elif self.counted and not alike(self.counted[0].secret, some.secret):
            # Labels of another type may be told apart, refused, or be the same.
            return
        else:
            add(self.counts)
            self.counted.append(some)
        assert self.counts.n_rows == sum(part.n_rows for part in self.counted)

    @precondition(lambda self: self.counted)
    @rule()
    def fit_counts(self):
        frame = pd.concat([as_frame(part) for part in self.counted], ignore_index=True)
        self.hold(lambda: self.noise.fit_counts(self.counts), frame)

    @rule()
    def count_anew(self):
        self.counts, self.counted = ConditionalCounts(secret="s"), []

    @rule()
    def pickle_counts(self):
        self.counts = pickle.loads(pickle.dumps(self.counts))

    @precondition(lambda self: self.fitted is None)
    @rule(i=st.integers(0, 2))
    def transform_before_fit(self, i):
        with pytest.raises(NotFittedError):
            self.noise.transform(rows_of(self.tables[i]))

    def fits(self, i):
        return self.fitted["columns"] == self.tables[i].names

    @precondition(lambda self: self.fitted is not None)
    @rule(i=st.integers(0, 2))
    def transform_other_columns(self, i):
        frame = rows_of(self.tables[i])
        if self.fits(i):
            frame = frame.rename(columns={self.tables[i].names[-1]: "other"})
        with pytest.raises(ValueError, match="feature"):
            self.noise.transform(frame)

    @precondition(lambda self: self.fitted is not None)
    @rule(i=st.integers(0, 2), kind=st.sampled_from(["pandas", "polars", "pyarrow"]))
    def transform(self, i, kind):
        i = i if self.fits(i) else [self.fits(i) for i in range(3)].index(True)
        rows = rows_of(self.tables[i], kind)
        before = dict(vars(self.noise))
        released = released_array(self.noise.transform(rows))
        assert vars(self.noise) == before
        assert released.shape == (self.tables[i].n_rows, len(self.fitted["columns"]))
        values = self.tables[i].values()
        declared = self.fitted["parameters"]["bounds"]
        if declared is not None:
            values = np.clip(values, *declared)
        for j, scale in enumerate(self.fitted["scale"]):
            # Noise of a draw, on the grid of the fitted scale, whatever was set since.
            noise = released[:, j] / (step_of(scale) if scale else 1)
            assert (noise == np.rint(noise)).all() if scale else True
            assert scale or (released[:, j] == values[:, j]).all()
        if (self.fitted["scale"] > 0).all():
            assert not any(np.array_equal(released, old) for old in self.released)
        self.released.append(released)
        self.books.count("releases")

    @rule(change=CHANGES)
    def set_params(self, change):
        self.noise.set_params(**change)

    @rule()
    def take_a_clone(self):
        self.noise, self.fitted = clone(self.noise), None

    @rule()
    def pickle(self):
        self.noise = pickle.loads(pickle.dumps(self.noise))

    @rule(data=st.data(), i=st.integers(0, 2))
    def fit_what_is_refused(self, data, i):
        bad, _ = spoilt(self.tables[i], data.draw)
        before = dict(vars(self.noise))
        with pytest.raises((ValueError, TypeError)):
            self.noise.fit(bad)
        assert vars(self.noise) == before
        self.books.count("refusals")

    @rule(data=st.data(), i=st.integers(0, 2))
    def count_what_is_refused(self, data, i):
        # Text, a single secret value and no rows at all may be counted.
        bad, _ = spoilt(self.tables[i], data.draw, SPOILT[:3])
        with pytest.raises((ValueError, TypeError)):
            self.counts.update(bad)
        assert self.counts.n_rows == sum(part.n_rows for part in self.counted)

    @precondition(lambda self: len(self.blocks) < 2)
    @rule(entries=st.integers(1, 3))
    def open_a_block(self, entries):
        block = reuse_fits(entries)
        block.__enter__()
        self.blocks.append(block)

    @precondition(lambda self: self.blocks)
    @rule()
    def close_a_block(self):
        self.blocks.pop().__exit__(None, None, None)

    @invariant()
    def it_is_what_its_last_fit_made_it(self):
        if getattr(self, "fitted", None) is None:
            if hasattr(self, "noise"):
                assert not hasattr(self.noise, "scale_")
                assert not hasattr(self.noise, "guarantee_")
            return
        assert (self.noise.scale_ == self.fitted["scale"]).all()
        promise, parameters = self.noise.guarantee_, self.fitted["parameters"]
        for name in ("alpha", "epsilon", "scope", "n_releases", "prior_model"):
            assert getattr(promise, name) == parameters[name]
        assert promise.columns == tuple(self.fitted["columns"])

    def teardown(self):
        while self.blocks:
            self.close_a_block()


def alike(first, second):
    return {type(label) for label in first} == {type(label) for label in second}


@runs(6)
def test_any_order_of_calls(examples):
    with Books("any order") as books:
        AnyOrder.books = books
        machine = AnyOrder if SEED is None else seed(int(SEED))(AnyOrder)
        chosen = settings(campaign_settings(examples), stateful_step_count=40)
        run_state_machine_as_test(machine, settings=chosen)
