"""The campaign against rows that are lazy or were counted: the same fit as in memory."""

import itertools
import math
import pickle
from collections import Counter
from dataclasses import replace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from campaign_cases import runs
from campaign_kinds import KINDS, cases, rounded_to
from campaign_support import FRAMES, Books, campaign
from core_support import step_of
from hypothesis import given, note
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer import ConditionalCounts
from skpuffer.exceptions import CalibrationError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")

# Kinds of frames that hold labels of any type as they are.
WRITTEN = [kind for kind in FRAMES if kind != "object"]


def outcome(fit):
    """Return the fitted estimator, or the class of its refusal."""
    try:
        return fit()
    except (ValueError, CalibrationError) as error:
        return type(error)


def assert_same_fit(found, expected, rounding=()):
    """Compare all that a fit says, to the last bit."""
    if isinstance(expected, type):
        assert found is expected
        return
    assert (found.scale_ == expected.scale_).all()
    assert replace(found.guarantee_, rounding=()) == expected.guarantee_
    assert found.guarantee_.rounding == rounding
    assert found.profile_ == expected.profile_
    assert (found.alpha_, found.epsilon_) == (expected.alpha_, expected.epsilon_)
    if not rounding:
        assert str(found.report_) == str(expected.report_)
    assert found.get_feature_names_out().tolist() == (
        expected.get_feature_names_out().tolist()
    )
    for name, channel in getattr(expected, "channels_", {}).items():
        assert (found.channels_[name] == channel).all()


def cuts(draw, n, most=5):
    """Draw where rows are cut; parts may be empty."""
    inner = draw(st.lists(st.integers(0, n), min_size=2, max_size=most - 1))
    ends = [0, *sorted(inner), n]
    return [range(a, b) for a, b in itertools.pairwise(ends)]


def parted(parts, empty):
    """Return a Dask frame or series of parts of any size."""
    return dd.from_delayed(
        [dask.delayed(part) for part in parts], meta=empty, verify_meta=False
    )


def in_dask(case, draw):
    """Return the rows as a Dask frame, and their weights as a series, cut alike."""
    frame, weight = case.frame(), case.table.weight
    chosen = [list(part) for part in cuts(draw, len(frame))]
    rows = parted([frame.iloc[part] for part in chosen], frame.iloc[:0])
    if weight is None:
        return rows, None
    series = pd.Series(weight, index=frame.index)
    return rows, parted([series.iloc[part] for part in chosen], series.iloc[:0])


def counted(case, draw, grid=None):
    """Count parts of the rows, of any kinds of frames, and merge in any order."""
    table = case.table
    places = {"secret": "s"} | ({"prior": "p"} if table.prior else {})
    heap = []
    for part in cuts(draw, table.n_rows):
        some = table.rows(list(part))
        kind = draw(st.sampled_from(WRITTEN))
        if not some.n_rows:
            continue
        counts = ConditionalCounts(**places, grid=grid)
        if heap and draw(st.booleans()):
            counts = heap.pop()
        heap.append(counts.update(case.frame(kind, some), sample_weight=some.weight))
    heap = draw(st.permutations(heap))
    while len(heap) > 1:
        other = heap.pop()
        heap[0] = heap[0].merge(other)
        if draw(st.booleans()):
            heap[0] = pickle.loads(pickle.dumps(heap[0]))
    assert heap[0].n_rows == (table.masses() > 0).sum()
    return heap[0]


def grouped(case, draw, grid=None):
    """Count the rows by a query of one's own; some groups come in two parts."""
    table = case.table
    frame = case.frame()
    weight = None if table.weight is None else "weight"
    rows = [tuple(row) for row in frame.to_numpy(dtype=object).tolist()]
    if weight is not None:
        rows = [(*row, w) for row, w in zip(rows, table.weight.tolist(), strict=True)]
    groups = []
    for row, n in Counter(rows).items():
        first = draw(st.integers(0, n))
        groups += [(*row, first), (*row, n - first)]
    names = [*frame.columns, *([weight] if weight else []), "how many"]
    groups = draw(st.permutations(groups))
    columns = {
        name: np.array(values)
        for name, values in zip(names, zip(*groups, strict=True), strict=True)
    }
    written = FRAMES[draw(st.sampled_from(WRITTEN))](columns)
    return ConditionalCounts.from_counts(
        written,
        secret="s",
        count="how many",
        prior="p" if table.prior else None,
        weight=weight,
        grid=grid,
    )


@runs(5)
def test_lazy_and_counted_rows_are_fitted_as_those_in_memory(examples):
    with Books("lazy and counted") as books, dask.config.set(scheduler="sync"):

        @campaign(examples)
        @given(st.data())
        def run(data):
            case = data.draw(cases())
            table, draw = case.table, data.draw
            note(f"{case}")
            expected = outcome(case.fit)
            books.count("refusals" if isinstance(expected, type) else "fits")
            books.count(case.kind)
            noise = case.estimator

            def counts_of(make):
                return lambda: clone(noise).fit_counts(make(case, draw))

            ways = {"counts": counts_of(counted), "group by": counts_of(grouped)}
            rows, weight = in_dask(case, draw)
            ways["dask"] = lambda: clone(noise).fit(rows, sample_weight=weight)
            if table.weight is None:
                lazy = case.frame("polars").lazy()
                ways["polars"] = lambda: clone(noise).fit(lazy)
                places = {"secret": "s"} | ({"prior": "p"} if table.prior else {})
                ways["a query of counts"] = lambda: clone(noise).fit_counts(
                    ConditionalCounts.from_frame(lazy, **places)
                )
            for way in draw(st.sets(st.sampled_from(sorted(ways)), min_size=3)):
                books.count(way)
                assert_same_fit(outcome(ways[way]), expected)

        run()


@runs(3)
def test_dask_arrays_are_fitted_as_those_in_memory(examples):
    kinds = ("numbers", "numbers", "population", "bounded")
    with Books("dask arrays") as books, dask.config.set(scheduler="sync"):

        @campaign(examples)
        @given(st.data())
        def run(data):
            case = data.draw(cases(kinds=kinds))
            given_ = case.given()
            for name in ("bounds", "column_weights"):
                if isinstance(given_[name], dict):
                    given_[name] = {"bounds": None, "column_weights": "std"}[name]
            table, make = case.table, type(case.estimator)
            values = table.values()
            beside = {"secret": np.array(table.secret, dtype=object)}
            if table.prior:
                beside["prior"] = np.array(table.prior, dtype=object)
            if table.weight is not None:
                beside["sample_weight"] = table.weight
            note(f"{case} {given_}")
            expected = outcome(lambda: make(**given_).fit(values, **beside))
            books.count("refusals" if isinstance(expected, type) else "fits")
            sizes = tuple(map(len, cuts(data.draw, table.n_rows)))
            lazy = {
                name: da.from_array(column, chunks=(sizes,))
                for name, column in beside.items()
            }
            wide = data.draw(st.sampled_from([1, len(table.names)]))
            rows = da.from_array(values, chunks=(sizes, wide))
            found = outcome(lambda: make(**given_).fit(rows, **lazy))
            assert_same_fit(found, expected)

        run()


@runs(6)
def test_counts_on_a_grid_are_rows_that_were_rounded(examples):
    kinds = [kind for kind in KINDS if "categories" not in kind]
    with Books("grids") as books, dask.config.set(scheduler="sync"):

        @campaign(examples)
        @given(st.data())
        def run(data):
            case, draw = data.draw(cases(kinds=kinds)), data.draw
            # The same bits, so that what differs in a release is the rows.
            noise = clone(case.estimator).set_params(random_state=5)
            if noise.get_params().get("prior_model") == "gaussian":
                noise.set_params(prior_model="empirical")
            step = st.sampled_from([0.5, 0.1, 3.0, 1.0, 7e-3, 1e-12])
            if draw(st.booleans()) and not case.sets:
                grid = draw(step)
                steps = dict.fromkeys(case.numbers, grid)
            else:
                names = st.lists(st.sampled_from(case.numbers), unique=True, min_size=1)
                grid = steps = {name: draw(step) for name in draw(names)}
            note(f"{case} {grid}")
            plain = rounded_to(case, steps)
            expected = outcome(
                lambda: clone(noise).fit(plain.frame(), sample_weight=case.table.weight)
            )
            books.count("refusals" if isinstance(expected, type) else "fits")
            rounding = tuple(steps.get(name) for name in case.table.names)
            places = {"secret": "s"} | ({"prior": "p"} if case.table.prior else {})
            rows, weight = in_dask(case, draw)
            ways = {
                "counts": lambda: counted(case, draw, grid),
                "group by": lambda: grouped(case, draw, grid),
                "dask": lambda: ConditionalCounts(**places, grid=grid).update(
                    rows, sample_weight=weight
                ),
            }
            if weight is None:
                lazy = case.frame("polars").lazy()
                ways["polars"] = lambda: ConditionalCounts.from_frame(
                    lazy, **places, grid=grid
                )
            for way in draw(st.sets(st.sampled_from(sorted(ways)), min_size=1)):
                books.count(way)
                counts = ways[way]()
                found = outcome(lambda c=counts: clone(noise).fit_counts(c))
                assert_same_fit(found, expected, rounding)
            if isinstance(expected, type):
                return
            released = found.transform(case.rows())
            assert released.equals(expected.transform(plain.rows()))
            assert released.equals(found.fit_counts(counts).transform(plain.rows()))

        run()


@runs(2)
def test_a_lazy_release_is_one_release_of_its_rows(examples):
    with Books("lazy releases") as books, dask.config.set(scheduler="sync"):

        @campaign(examples)
        @given(st.data())
        def run(data):
            case, draw = data.draw(cases(weighted=False)), data.draw
            note(f"{case}")
            noise = outcome(case.fit)
            if isinstance(noise, type):
                books.count("refusals")
                return
            books.count(case.kind)
            before = dict(vars(noise))
            frame = case.frame()
            lazy, _ = in_dask(case, draw)
            query = case.frame("polars").lazy()
            beside = noise.transform(frame)
            for rows in (lazy, query):
                kept = noise.transform(rows)
                again = noise.transform(rows)
                compute = "compute" if rows is lazy else "collect"
                one, same_one, other = (
                    getattr(item, compute)() for item in (kept, kept, again)
                )
                assert one.equals(same_one)
                assert list(one.columns) == case.table.names
                assert len(one) == case.table.n_rows
                if rows is lazy:
                    assert one.index.equals(frame.index)
                    assert (one.dtypes == beside.dtypes).all()
                assert_on_grid(noise, case, one)
                if len(one) >= 4 and moved(noise, case):
                    assert not one.equals(other)
            assert vars(noise) == before
            wanted = "pandas" if draw(st.booleans()) else "polars"
            with pytest.raises(ParameterError, match="lazy"):
                noise.set_output(transform=wanted).transform(lazy)

        run()


def moved(noise, case):
    """Whether some number has noise."""
    places = [case.table.names.index(name) for name in case.numbers]
    return bool((noise.scale_[places] > 0).any())


def assert_on_grid(noise, case, released):
    for name, scale in zip(case.table.names, noise.scale_.tolist(), strict=True):
        column = (
            released[name].to_numpy()
            if hasattr(released, "iloc")
            else (released[name].to_list())
        )
        if name in case.sets:
            assert set(column) <= set(case.sets[name])
        elif scale > 0:
            steps = np.asarray(column, dtype=float) / step_of(scale)
            assert (steps == np.rint(steps)).all()
            assert all(map(math.isfinite, steps))


def test_a_query_takes_no_weights_beside_it():
    rows = pl.LazyFrame({"x": [0.0, 1.0], "s": ["a", "b"]})
    with pytest.raises(ParameterError, match="have no places"):
        ConditionalCounts(secret="s").update(rows, sample_weight=[1, 2])


def test_a_grid_rounds_no_label_of_a_query():
    rows = pl.DataFrame(
        {
            "x": [0.2, 1.3, 0.9, 2.2],
            "s": [0.1, 0.4, 0.1, 1.6],
            "p": [0.3, 0.3, 0.2, 0.3],
        }
    )
    for places in (
        {"secret": "s"},
        {"secret": "s", "prior": "p"},
        {"secret": ["s", "p"]},
    ):
        counts = ConditionalCounts.from_frame(rows.lazy(), grid=1.0, **places)
        expected = ConditionalCounts.from_frame(rows, grid=1.0, **places)
        pd.testing.assert_frame_equal(counts.to_frame(), expected.to_frame())
        assert set(counts.to_frame()["s"]) == {0.1, 0.4, 1.6}
