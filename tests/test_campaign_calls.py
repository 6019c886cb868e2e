"""The campaign against any order of calls, of every kind of estimator and of rows."""

import pickle

import dask
import dask.dataframe as dd
import numpy as np
import pytest
from campaign_cases import assert_refused, runs, scale_of
from campaign_kinds import cases
from campaign_support import SEED, Books, campaign_settings, library_of
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
from test_campaign_noise import channel_from_definition

from skpuffer import ConditionalCounts
from skpuffer.exceptions import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")

EVERY = [
    {"epsilon": 0.5},
    {"epsilon": 2.0},
    {"alpha": 3.0},
    {"alpha": 1.2},
    {"n_releases": 2},
    {"n_releases": 1},
    {"secret_pairs": "all"},
    {"prior_model": "bounded"},
    {"prior_model": "empirical"},
]
SETS = [{"metric": "discrete"}, {"metric": "ordinal"}]
CHANGES = {
    "numbers": [
        *EVERY,
        {"bounds": (-2, 3)},
        {"bounds": None},
        {"calibration": "w_inf"},
    ],
    "population": [*EVERY, {"confidence": 0.6}, {"prior_model": "population"}],
    "categories": [*EVERY, *SETS, {"scope": "column"}, {"calibration": "exact"}],
    "row": [
        *EVERY,
        *SETS,
        {"law": "gaussian"},
        {"law": "laplace"},
        {"bounds": (-2, 3)},
    ],
}
LAZY = ("dask", "polars lazy")
WRITTEN = ("pandas", "polars", "pyarrow", "nullable", "categories")


class AnyCalls(RuleBasedStateMachine):
    """An estimator against a fresh one with the parameters and rows of its last fit."""

    books: Books

    @initialize(
        case=cases(kinds=tuple(CHANGES), columns=(1, 2), most_rows=8, weighted=False),
        again=st.integers(1, 5),
    )
    def begin(self, case, again):
        self.case = case
        n = case.table.n_rows
        more = [*range(n), *[i % n for i in range(1, 3 * again, 2)]]
        self.tables = [case.table, case.table.rows(more)]
        self.noise = clone(case.estimator).set_params(
            alpha=2.0, epsilon=1.0, delta=None
        )
        self.known, self.fitted, self.released = {}, None, []
        self.places = {"secret": "s"} | ({"prior": "p"} if case.table.prior else {})
        self.books.count(case.kind)
        self.fit(0, "pandas")

    def rows(self, i, kind):
        if kind == "dask":
            return dd.from_pandas(self.case.frame(table=self.tables[i]), npartitions=3)
        if kind == "polars lazy":
            return self.case.frame("polars", self.tables[i]).lazy()
        if kind == "categories" and not self.case.sets:
            kind = "pandas"
        return self.case.frame(kind, self.tables[i])

    def alone(self, i):
        """Return the scale of a fresh estimator on rows in memory, or its refusal."""
        parameters = self.noise.get_params()
        key = i, str(sorted((name, str(v)) for name, v in parameters.items()))
        if key not in self.known:
            fresh = type(self.noise)(**parameters)
            self.known[key] = scale_of(lambda: fresh.fit(self.rows(i, "pandas")))
        return self.known[key]

    def hold(self, i, fit):
        expected = self.alone(i)
        if expected.dtype.kind == "f":
            assert fit() is self.noise
            self.fitted = {"scale": expected, "parameters": self.noise.get_params()}
            self.books.count("fits")
            return
        assert_refused(fit, self.noise, expected[0])
        self.books.count("refusals")

    @rule(i=st.integers(0, 1), kind=st.sampled_from(WRITTEN + LAZY))
    def fit(self, i, kind):
        if kind == "categories" and self.noise.get_params().get("categories") == "auto":
            return
        rows = self.rows(i, kind)
        self.hold(i, lambda: self.noise.fit(rows))

    @rule(i=st.integers(0, 1), cut=st.integers(0, 8), merged=st.booleans())
    def fit_counts(self, i, cut, merged):
        table = self.tables[i]
        cut = min(cut, table.n_rows)
        parts = [table.rows(range(cut)), table.rows(range(cut, table.n_rows))]
        found = [
            ConditionalCounts(**self.places).update(self.case.frame(table=part))
            for part in parts
            if part.n_rows
        ]
        if merged:
            counts = found[0]
            for other in found[1:]:
                counts.merge(other)
        else:
            counts = ConditionalCounts(**self.places).update(self.rows(i, "dask"))
        self.hold(i, lambda: self.noise.fit_counts(counts))

    @rule(data=st.data())
    def set_params(self, data):
        self.noise.set_params(**data.draw(st.sampled_from(CHANGES[self.case.kind])))

    @rule()
    def take_a_clone(self):
        self.noise, self.fitted = clone(self.noise), None

    @rule()
    def pickle(self):
        self.noise = pickle.loads(pickle.dumps(self.noise))

    def spoilt(self, data):
        """Return rows that must be refused."""
        frame, name = self.rows(0, "pandas"), data.draw(st.sampled_from(self.names))
        row = data.draw(st.integers(0, len(frame) - 1))
        how = data.draw(st.sampled_from(["missing", "strange", "secret", "name"]))
        self.books.count(how)
        if how == "secret":
            frame["s"] = frame["s"].astype(object)
            frame.loc[row, "s"] = None
            return frame
        if how == "name":
            frame.columns = [*frame.columns[:-1], frame.columns[0]]
            return frame
        frame[name] = frame[name].astype(object)
        frame.loc[row, name] = None if how == "missing" else ("a", "stranger")
        return frame

    @property
    def names(self):
        return self.case.table.names

    @rule(data=st.data())
    def fit_what_is_refused(self, data):
        bad, before = self.spoilt(data), dict(vars(self.noise))
        with pytest.raises((ValueError, TypeError)):
            self.noise.fit(bad)
        assert vars(self.noise) == before

    @rule(data=st.data(), number=st.sampled_from(["epsilon", "alpha", "n_releases"]))
    def fit_with_a_bad_parameter(self, data, number):
        good = self.noise.get_params()[number]
        bad = data.draw(st.sampled_from([0, -1, "many", float("nan"), None]))
        self.noise.set_params(**{number: bad})
        before = dict(vars(self.noise))
        rows = self.rows(0, data.draw(st.sampled_from(("pandas", *LAZY))))
        with pytest.raises((ValueError, TypeError)):
            self.noise.fit(rows)
        assert vars(self.noise) == before
        self.noise.set_params(**{number: good})

    @precondition(lambda self: self.fitted is None)
    @rule(kind=st.sampled_from(("pandas", *LAZY)))
    def transform_before_fit(self, kind):
        with pytest.raises(NotFittedError):
            self.noise.transform(self.rows(0, kind))

    @precondition(lambda self: self.fitted is not None)
    @rule(data=st.data())
    def transform_what_is_refused(self, data):
        frame = self.rows(0, "pandas")
        name = data.draw(st.sampled_from(self.names))
        how = data.draw(st.sampled_from(["missing", "strange", "absent"]))
        if how == "absent":
            frame = frame.rename(columns={name: "other"})
        else:
            frame[name] = frame[name].astype(object)
            frame.loc[1, name] = None if how == "missing" else ("a", "stranger")
        before = dict(vars(self.noise))
        with pytest.raises((ValueError, TypeError, KeyError)):
            self.noise.transform(frame)
        assert vars(self.noise) == before

    @precondition(lambda self: self.fitted is not None)
    @rule(i=st.integers(0, 1), kind=st.sampled_from(("pandas", "polars", *LAZY)))
    def transform(self, i, kind):
        rows, before = self.rows(i, kind), dict(vars(self.noise))
        now = self.noise.get_params()
        copies = now["n_releases"] > 1 and now.get("calibration") == "exact"
        if copies and self.case.kind == "categories":
            with pytest.raises(ParameterError, match="copies of a category"):
                self.noise.transform(rows)
            return
        released = self.noise.transform(rows)
        assert library_of(released) == library_of(rows)
        if kind == "dask":
            released = released.compute()
        elif kind == "polars lazy":
            released = released.collect()
        assert vars(self.noise) == before
        assert list(released.columns) == self.names
        assert len(released) == self.tables[i].n_rows
        numbers = []
        for name, scale in zip(self.names, self.fitted["scale"].tolist(), strict=True):
            column = np.array(released[name].to_list())
            if name in self.case.sets:
                assert set(column.tolist()) <= set(self.case.sets[name])
                continue
            numbers.append(column)
            if scale > 0:
                # The grid of what was fitted, whatever was set since.
                steps = column.astype(float) / step_of(scale)
                assert (steps == np.rint(steps)).all()
        if numbers and (self.fitted["scale"][: len(numbers)] > 0).all():
            found = np.stack(numbers, axis=1)
            assert not any(np.array_equal(found, old) for old in self.released)
            self.released.append(found)
        self.books.count(f"releases, {kind}")

    @invariant()
    def it_is_what_its_last_fit_made_it(self):
        if not hasattr(self, "fitted"):
            return
        if self.fitted is None:
            assert not hasattr(self.noise, "scale_")
            assert not hasattr(self.noise, "guarantee_")
            return
        promise, parameters = self.noise.guarantee_, self.fitted["parameters"]
        assert (self.noise.scale_ == self.fitted["scale"]).all()
        assert promise.scale == tuple(self.fitted["scale"].tolist())
        for name in ("alpha", "epsilon", "n_releases", "prior_model"):
            assert getattr(promise, name) == parameters[name]
        if "law" in parameters and self.case.numbers:
            assert promise.law == parameters["law"]
        assert promise.columns == tuple(self.names)
        bound = self.noise.privacy_profile(promise.alpha)
        assert bound <= promise.epsilon * (1 + 1e-9)
        for name, labels in self.case.sets.items():
            theta = promise.scale[self.names.index(name)]
            metric = parameters["metric"]
            channel = channel_from_definition(labels, metric, name, theta)
            np.testing.assert_allclose(self.noise.channels_[name], channel, atol=1e-15)


@runs(4)
def test_any_order_of_calls_of_every_kind(examples):
    with Books("any calls") as books, dask.config.set(scheduler="sync"):
        AnyCalls.books = books
        machine = AnyCalls if SEED is None else seed(int(SEED))(AnyCalls)
        chosen = settings(
            campaign_settings(examples), stateful_step_count=15 if examples < 50 else 30
        )
        run_state_machine_as_test(machine, settings=chosen)
