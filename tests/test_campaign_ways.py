"""The campaign against fits: the same rows have the same scale, however they come."""

import pickle

import numpy as np
import polars as pl
import pytest
from campaign_cases import runs, same, scale_of, small_releases
from campaign_support import (
    ARRAYS,
    FRAMES,
    NARROW,
    Books,
    as_array,
    as_frame,
    campaign,
    rows_of,
    tables,
)
from hypothesis import given, note
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer import (
    ConditionalCounts,
    reuse_fits,
)

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


@runs(10)
def test_the_scale_is_that_of_the_rows_however_they_come(examples):
    with Books("ways") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            table = data.draw(tables((1, 3), 16))
            make, given_ = data.draw(small_releases(table))
            note(f"{table} {given_}")
            priors = {"prior": "p"} if table.prior else {}
            noise = make(secret="s", **priors, **given_)
            weight = table.weight
            first = scale_of(
                lambda: clone(noise).fit(as_frame(table), sample_weight=weight)
            )
            books.count("scales" if first.dtype.kind == "f" else "refusals")
            labels = {"secret": np.array(table.secret)}
            if table.prior:
                labels["prior"] = np.array(table.prior)
            beside = make(**given_)
            by_y = make(secret_from_y=True, **given_)
            others = {key: v for key, v in labels.items() if key == "prior"}
            kind = data.draw(st.sampled_from(list(FRAMES)))
            order = data.draw(st.permutations(range(table.n_rows)))
            moved = table.rows(order)
            rows = rows_of(table, kind)
            counts = ConditionalCounts(secret="s", **priors)
            cut = data.draw(st.integers(0, table.n_rows))
            for part in (range(cut), range(cut, table.n_rows)):
                some = table.rows(list(part))
                if some.n_rows:
                    counts.update(as_frame(some, kind), sample_weight=some.weight)
            ways = {
                "kind": lambda: clone(noise).fit(
                    as_frame(table, kind), sample_weight=weight
                ),
                "order": lambda: clone(noise).fit(
                    as_frame(moved), sample_weight=moved.weight
                ),
                "metadata": lambda: beside.fit(rows, sample_weight=weight, **labels),
                "y": lambda: by_y.fit(
                    rows, labels["secret"], sample_weight=weight, **others
                ),
                "counts": lambda: clone(noise).fit_counts(counts),
                "again": lambda: clone(noise).fit(
                    as_frame(table), sample_weight=weight
                ),
                "copy": lambda: pickle.loads(pickle.dumps(noise)).fit(
                    as_frame(table), sample_weight=weight
                ),
            }
            positions = not any(
                isinstance(given_.get(name), dict)
                for name in ("bounds", "column_weights")
            )
            if positions:
                array = as_array(table, data.draw(st.sampled_from(list(ARRAYS))))
                ways["array"] = lambda: clone(beside).fit(
                    array, sample_weight=weight, **labels
                )
                if not priors and isinstance(table.secret[0], (int, float)):
                    wide = np.column_stack([table.secret, table.values()]).astype(float)
                    if given_["secret_pairs"] == "all":
                        ways["position"] = lambda: make(secret=0, **given_).fit(
                            wide, sample_weight=weight
                        )
            other = clone(noise).set_params(bounds=(0, 2), secret_pairs="all")
            elsewhere = scale_of(
                lambda: clone(other).fit(as_frame(table), sample_weight=weight)
            )
            with reuse_fits():
                for fresh, expected in ((noise, first), (other, elsewhere)):
                    found = scale_of(
                        lambda fresh=fresh: clone(fresh).fit(
                            as_frame(table), sample_weight=weight
                        )
                    )
                    assert same(found, expected)
                some = data.draw(st.sets(st.sampled_from(sorted(ways)), min_size=3))
                for way in sorted(some):
                    books.count(way)
                    assert same(scale_of(ways[way]), first), way

        run()


@runs(10)
def test_the_scale_of_numbers_of_any_type(examples):
    with Books("types") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            whole_numbers = st.lists(
                st.integers(0, 120).map(float), min_size=1, max_size=5
            )
            table = data.draw(tables((1, 3), 16, pools=whole_numbers, grouped=False))
            make, given_ = data.draw(small_releases(table))
            for name in ("bounds", "column_weights"):
                if isinstance(given_.get(name), dict):
                    del given_[name]
            noise = make(**given_)

            def fit(values):
                return lambda: clone(noise).fit(
                    values, secret=table.secret, sample_weight=table.weight
                )

            first = scale_of(fit(table.values()))
            books.count("scales" if first.dtype.kind == "f" else "refusals")
            dtype = data.draw(st.sampled_from(NARROW))
            narrow = table.values().astype(dtype)
            assert same(scale_of(fit(narrow)), first)
            frame = pl.DataFrame(narrow.astype(narrow.dtype.newbyteorder("=")))
            assert same(scale_of(fit(frame)), first)
            # Numbers that float32 holds nearly.
            table = table.changed(lambda values: values / 7)
            single = scale_of(fit(table.values().astype(np.float32)))
            exact = given_["calibration"] == "exact"
            if not exact or first.all():
                assert same(
                    single, scale_of(fit(table.values())), 1e-2 if exact else 1e-4
                )

        run()


@runs(10)
def test_the_scale_follows_units_and_offsets_and_falls_with_no_epsilon(examples):
    with Books("units") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            table = data.draw(tables((1, 3), 16))
            make, given_ = data.draw(small_releases(table))
            del given_["bounds"]
            note(f"{table} {given_}")
            priors = {"prior": "p"} if table.prior else {}
            noise = make(secret="s", **priors, **given_)

            def fit(table, **other):
                return scale_of(
                    lambda: (
                        clone(noise)
                        .set_params(**other)
                        .fit(as_frame(table), sample_weight=table.weight)
                    )
                )

            first = fit(table)
            if first.dtype.kind != "f":
                books.count("refusals")
                return
            books.count("scales")
            # Powers of two change no digit.
            power = data.draw(st.sampled_from([-960, -700, -31, 5, 600, 850]))
            unit = 2.0**power
            scaled = fit(table.changed(lambda values: values * unit))
            if scaled.dtype.kind == "f":
                books.count("units")
                assert same(scaled, first * unit, 1e-9)
            # Nor does an offset of whole numbers, where the grid reaches.
            halves = table.changed(lambda values: np.rint(values * 2) / 2)
            offset = data.draw(st.sampled_from([-(2.0**24), 1e6, 2.0**30]))
            moved = fit(halves.changed(lambda values: values + offset))
            still = fit(halves)
            if moved.dtype.kind == still.dtype.kind == "f":
                books.count("offsets")
                assert same(moved, still, 1e-6)
            # The couplings of several columns are refined to this accuracy.
            if given_["alpha"] != "auto":
                less = given_["epsilon"] * data.draw(st.floats(0.5, 0.999))
                lower = fit(table, epsilon=less)
                if lower.dtype.kind == "f":
                    books.count("epsilons")
                    slack = 1e-9 if len(table.names) == 1 else 1e-4
                    assert (lower >= first * (1 - slack)).all()
            # Whole weights are repetitions.
            if table.weight is not None and (table.weight % 1 == 0).all():
                repeated = np.repeat(np.arange(table.n_rows), table.weight.astype(int))
                plain_rows = table.rows(repeated)
                plain_rows = type(table)(
                    plain_rows.columns, plain_rows.secret, plain_rows.prior
                )
                books.count("repetitions")
                assert same(fit(plain_rows), first, 1e-9)
            # Nothing but the proportions of weights counts.
            if table.weight is not None:
                other = type(table)(
                    table.columns, table.secret, table.prior, table.weight * 4
                )
                assert same(fit(other), first, 1e-9)

        run()
