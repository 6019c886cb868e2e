"""The campaign against releases of categories, alone and beside numbers."""

import numpy as np
import pytest
from campaign_cases import assert_record, attempt, bounds, clipping, runs, whole
from campaign_labels import (
    CODES,
    channels_of,
    drawn_from,
    halves,
    labelled,
    labelled_frame,
    metrics,
    mixed_divergence,
    moving,
)
from campaign_oracles import atoms_divergence, can_move, limit
from campaign_support import (
    FRAMES,
    Books,
    budgets,
    campaign,
    chosen_pairs,
    library_of,
    tables,
)
from hypothesis import given, note
from hypothesis import strategies as st

from skpuffer import (
    JointRelease,
    RenyiPufferfishCategorical,
)

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


@runs(18)
def test_categories_keep_the_promise(examples):
    with Books("categories") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            table = data.draw(tables((1, 3), 30, pools=CODES))
            sets = data.draw(labelled(table, table.names))
            metric = data.draw(metrics(sets))
            pairs, stand_for = data.draw(chosen_pairs(table))
            given_ = data.draw(budgets()) | {
                "scope": data.draw(st.sampled_from(["joint", "column"])),
                "calibration": data.draw(st.sampled_from(["transport", "exact"])),
                "secret_pairs": pairs,
            }
            if given_["calibration"] == "transport":
                given_["n_releases"] = data.draw(st.sampled_from([1, 1, 2]))
            # Text tells no order.
            declared = not isinstance(metric, str) or metric == "ordinal"
            declared = declared or data.draw(st.booleans())
            draw = RenyiPufferfishCategorical(
                secret="s",
                categories=sets if declared else "auto",
                metric=metric,
                **({"prior": "p"} if table.prior else {}),
                **given_,
            )
            kinds = [kind for kind in FRAMES if kind != "object"] + ["categories"]
            frame = labelled_frame(table, sets, data.draw(st.sampled_from(kinds)))
            note(f"{table} {draw}")
            draw = attempt(lambda: draw.fit(frame, sample_weight=table.weight), books)
            if draw is None:
                return
            assert_record(draw, given_, table, stand_for)
            blocks = [table.names]
            if draw.scope == "column":
                blocks = [[name] for name in table.names]
            for names in blocks:
                channels = channels_of(draw, sets, names)
                for p, q in table.pairs(stand_for, names):
                    if draw.calibration == "transport" and whole(p, q):
                        books.count("programmes", 2)
                        assert all(
                            can_move(
                                moving(one, other, channels, draw),
                                one[1],
                                other[1],
                                draw.alpha_,
                                draw.epsilon_,
                            )
                            for one, other in ((p, q), (q, p))
                        )
                    sides = [
                        drawn_from(side, channels, sets, draw.n_releases)
                        for side in (p, q)
                    ]
                    for one, other in (sides, sides[::-1]):
                        books.count("sums")
                        found = atoms_divergence(one, other, draw.alpha_)
                        assert found <= limit(draw.epsilon_, draw.alpha_)
            released = draw.transform(frame)
            assert library_of(released) == library_of(frame)

        run()


@runs(10)
def test_numbers_beside_categories_keep_the_promise(examples):
    with Books("numbers beside categories") as books:

        @campaign(examples)
        @given(st.sampled_from(["laplace", "gaussian"]), st.data())
        def run(law, data):
            table = data.draw(tables((2, 4), 16, pools=st.one_of(CODES, halves())))
            n_sets = data.draw(st.integers(1, len(table.names) - 1))
            chosen = table.names[-n_sets:]
            for name in chosen:
                table.columns[name] = np.abs(np.rint(table.columns[name]))
            sets = data.draw(labelled(table, chosen))
            pairs, stand_for = data.draw(chosen_pairs(table))
            numbers = [name for name in table.names if name not in sets]
            declared = data.draw(bounds(numbers))
            given_ = data.draw(budgets(law != "gaussian")) | {
                "secret_pairs": pairs,
                "n_releases": data.draw(st.sampled_from([1, 1, 2])),
            }
            row = JointRelease(
                law=law,
                secret="s",
                categorical=chosen,
                categories=sets,
                metric=data.draw(metrics(sets)),
                bounds=declared,
                **({"prior": "p"} if table.prior else {}),
                **given_,
            )
            kinds = [kind for kind in FRAMES if kind != "object"]
            frame = labelled_frame(table, sets, data.draw(st.sampled_from(kinds)))
            note(f"{table} {row}")
            row = attempt(lambda: row.fit(frame, sample_weight=table.weight), books)
            if row is None:
                return
            assert_record(row, given_, table, stand_for)
            channels = channels_of(row, sets, chosen)
            for j, name in enumerate(numbers):
                names = [name, *chosen]
                limits = clipping(declared, numbers)(table.values(numbers))[:, j]
                clipped = type(table)(
                    table.columns | {name: limits},
                    table.secret,
                    table.prior,
                    table.weight,
                )
                for p, q in clipped.pairs(stand_for, names):
                    books.count("pairs")
                    for one, other in ((p, q), (q, p)):
                        scale = row.scale_[table.names.index(name)]
                        found = mixed_divergence(one, other, scale, channels, row)
                        assert found <= limit(row.epsilon_, row.alpha_)

        run()
