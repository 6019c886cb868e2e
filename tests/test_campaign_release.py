"""The campaign against releases, and against what is refused."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from campaign_cases import LAWS, attempt, clipping, runs, small_releases, spoilt
from campaign_support import (
    FRAMES,
    Books,
    as_frame,
    campaign,
    library_of,
    released_array,
    rows_of,
    tables,
)
from core_support import step_of
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def dtypes_of(frame):
    if isinstance(frame, pa.Table):
        return [str(kind) for kind in frame.schema.types]
    return [str(kind) for kind in frame.dtypes]


@runs(12)
def test_a_release_looks_like_its_rows_and_lies_on_the_grid(examples):
    with Books("releases") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            table = data.draw(tables((1, 4), 20))
            make, given_ = data.draw(small_releases(table))
            clips = isinstance(given_["bounds"], tuple) and data.draw(st.booleans())
            priors = {"prior": "p"} if table.prior else {}
            noise = make(secret="s", clip_output=clips, **priors, **given_)
            kind = data.draw(st.sampled_from(list(FRAMES)))
            frame = as_frame(table, kind)
            before = released_copy(frame)
            noise = attempt(lambda: noise.fit(frame, sample_weight=table.weight), books)
            if noise is None:
                return
            state = pickle.dumps(noise)
            data_free = rows_of(table, kind)
            first = noise.transform(frame)
            second = noise.transform(data_free)
            assert released_copy(frame).equals(before)
            for released in (first, second):
                assert library_of(released) == library_of(frame)
                names = getattr(released, "column_names", None)
                assert list(names or released.columns) == table.names
                assert len(released) == table.n_rows
                if isinstance(frame, pd.DataFrame):
                    assert released.index.equals(frame.index)
                assert set(dtypes_of(released)) <= {"float64", "Float64", "double"}
            assert list(noise.get_feature_names_out()) == table.names
            clip = clipping(given_["bounds"], table.names)
            values, one, two = (
                clip(table.values()),
                released_array(first),
                released_array(second),
            )
            for j, scale in enumerate(noise.scale_):
                if scale == 0:
                    assert (one[:, j] == values[:, j]).all()
                    continue
                on_the_grid = one[:, j] / step_of(scale)
                if not clips:
                    assert (on_the_grid == np.rint(on_the_grid)).all()
                    assert table.n_rows < 4 or (one[:, j] != two[:, j]).any()
            if clips:
                low, high = given_["bounds"]
                assert one.min() >= low
                assert one.max() <= high
            # Copies release alike and share no noise; a clone forgets.
            copy = pickle.loads(state)
            assert (copy.scale_ == noise.scale_).all()
            assert copy.guarantee_ == noise.guarantee_
            third = released_array(copy.transform(frame))
            if (noise.scale_ > 0).any() and not clips and table.n_rows >= 4:
                assert (third != one).any()
                assert (third != two).any()
            assert not hasattr(clone(noise), "scale_")
            assert clone(noise).get_params().keys() == noise.get_params().keys()
            # Other kinds, alone and as an array.
            other = data.draw(st.sampled_from(list(FRAMES)))
            assert library_of(noise.transform(rows_of(table, other))) == library_of(
                rows_of(table, other)
            )
            single = rows_of(table).astype(np.float32)
            assert set(dtypes_of(noise.transform(single))) == {"float32"}

        run()


def released_copy(frame):
    """Return what compares a frame with itself later."""
    if isinstance(frame, pd.DataFrame):
        return frame.copy(deep=True)
    return frame.clone() if isinstance(frame, pl.DataFrame) else frame


BAD_PARAMETERS = [
    ("alpha", 1.0),
    ("alpha", math.nan),
    ("alpha", True),
    ("epsilon", 0.0),
    ("epsilon", -1.0),
    ("epsilon", math.inf),
    ("epsilon", "1"),
    ("delta", 1.0),
    ("calibration", "best"),
    ("scope", "rows"),
    ("prior_model", "mine"),
    ("secret_pairs", [("F", "nobody")]),
    ("secret_pairs", []),
    ("n_releases", 0),
    ("bounds", (1, 0)),
    ("bounds", {"nothing": (0, 1)}),
    ("column_weights", [0.0]),
    ("out_of_bounds", "wrap"),
    ("random_state", 1.5),
    ("min_group_size", 0),
    ("clip_output", True),
    ("secret", "nothing"),
]


@runs(24)
def test_what_is_refused_changes_nothing(examples):
    with Books("refusals") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            table = data.draw(tables((1, 3), 12, weighted=False))
            law = data.draw(st.sampled_from(list(LAWS)))
            priors = {"prior": "p"} if table.prior else {}
            noise = LAWS[law](secret="s", epsilon=2.0, **priors)
            frame = as_frame(table)
            if data.draw(st.booleans()):
                noise.fit(frame)
            before, held = pickle.dumps(noise), dict(vars(noise))
            if data.draw(st.booleans()):
                bad, words = spoilt(table, data.draw)
            else:
                name, value = data.draw(st.sampled_from(BAD_PARAMETERS))
                bad, words = frame, [name.split("_")[-1]]
                noise.set_params(**{name: value})
                before, held = pickle.dumps(noise), dict(vars(noise))
                books.count(name)
            with pytest.raises((ValueError, TypeError, KeyError)) as caught:
                noise.fit(bad)
            for word in words:
                assert word in str(caught.value)
            assert vars(noise) == held
            assert pickle.dumps(noise) == before

        run()
