"""A campaign against the public door: random tables, frames, parameters and calls.

What is promised is computed anew from the table and the fitted scales by another road
(`campaign_oracles`). By default a few dozen examples of each, the same in every run; a
slow run takes thousands: `SKPUFFER_CAMPAIGN=5000 SKPUFFER_CAMPAIGN_SEED=7 pytest -m slow
-rP tests/test_campaign*.py` prints what it has seen. Here the promise of numbers, for the
fitted rows; one file for each other part.
"""

import math

import numpy as np
import pytest
from campaign_cases import (
    EACH_LAW,
    LAWS,
    assert_record,
    attempt,
    clipping,
    releases,
    runs,
    whole,
)
from campaign_oracles import (
    atoms_divergence,
    is_transported,
    limit,
    line_divergence,
    on_grid,
    plain,
    plane_divergence,
)
from campaign_support import FRAMES, Books, as_frame, campaign, tables
from hypothesis import given, note
from hypothesis import strategies as st

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def assert_released_promise(noise, table, pairs, declared, order, books):
    """Hold a fitted release of numbers to what it says, pair by pair."""
    promise = noise.guarantee_
    blocks = [table.names] if promise.scope == "joint" else [[n] for n in table.names]
    for names in blocks:
        scale = np.array([noise.scale_[table.names.index(name)] for name in names])
        change = clipping(declared, table.names)
        clipped = table.values()
        clipped = dict(zip(table.names, change(clipped).T, strict=True))
        seen = type(table)(clipped, table.secret, table.prior, table.weight)
        if scale.any() and not scale.all():
            there = seen.masses() > 0
            for name in [n for n, b in zip(names, scale, strict=True) if b == 0]:
                # Only what is constant goes without noise in a row that needs some.
                assert np.ptp(seen.columns[name][there]) == 0
            names = [name for name, b in zip(names, scale, strict=True) if b > 0]
            scale = scale[scale > 0]
        for p, q in seen.pairs(pairs, names):
            books.count("pairs")
            note(f"{names} {scale} {plain(p)} {plain(q)}")
            if not scale.any():
                assert_no_noise_needed(promise, p, q)
                continue
            assert_pair(noise, p, q, scale, order, books)


def assert_no_noise_needed(promise, p, q):
    for first, second in ((p, q), (q, p)):
        found = atoms_divergence(first, second, promise.alpha)
        if promise.rule == "exact":
            assert found <= limit(promise.epsilon, promise.alpha)
        else:
            assert found <= 1e-12 * (1 + 1 / (promise.alpha - 1))


def assert_pair(noise, p, q, scale, order, books):
    """Integrate both directions of a pair, or what can be integrated of it."""
    promise, k = noise.guarantee_, len(scale)
    alpha, copies = promise.alpha, promise.n_releases
    options = {"law": promise.law, "alpha": alpha}
    if promise.law == "exponential":
        options["power"] = promise.power
    bound = limit(promise.epsilon, alpha)
    profile = noise.privacy_profile(order)
    forms = [tuple(on_grid(side, scale) for side in (p, q))]
    if promise.rule != "exact":
        forms.append((plain(p), plain(q)))
    for form in forms:
        for one, other in (form, form[::-1]):
            for j in range(k):
                # The mean says all of Gaussian copies; of others, one copy is less.
                narrow = math.sqrt(copies) if promise.law == "gaussian" else 1.0
                sides = [(rows[:, [j]], mass) for rows, mass in (one, other)]
                found = line_divergence(*sides, scale=scale[j] / narrow, **options)
                assert found <= bound
                books.count("integrals")
                if form is forms[0]:
                    options["alpha"] = order
                    found = line_divergence(*sides, scale=scale[j] / narrow, **options)
                    options["alpha"] = alpha
                    assert found <= limit(profile, order)
        if promise.rule != "exact" and whole(p, q):
            books.count("programmes")
            assert is_transported(
                *form, epsilon=promise.epsilon, scale=scale, copies=copies, **options
            )
    both = k * copies
    if both != 2 or promise.rule == "exact" or len(p[0]) + len(q[0]) > 9:
        return
    repeated = np.tile(scale, copies)
    first, second = ((np.tile(rows, (1, copies)), m) for rows, m in forms[0])
    for one, other in ((first, second), (second, first)):
        try:
            found = plane_divergence(one, other, scale=repeated, **options)
        except RuntimeError:
            books.count("planes too fine to integrate")
            return
        assert found <= bound
        books.count("planes")


def check_numbers(law, examples, key, shape, scope, most_rows):
    make = LAWS[law]

    with Books(key) as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            table = data.draw(tables(shape, most_rows))
            given_, pairs = data.draw(releases(law, table, scope))
            note(f"{table}")
            columns = {"prior": "p"} if table.prior else {}
            noise = make(secret="s", **columns, **given_)
            kind = data.draw(st.sampled_from(list(FRAMES)))
            frame = as_frame(table, kind)
            noise = attempt(lambda: noise.fit(frame, sample_weight=table.weight), books)
            if noise is None:
                return
            assert_record(noise, given_, table, pairs)
            order = data.draw(st.sampled_from([1.3, 2.5, 7.0, 40.0]))
            assert_released_promise(noise, table, pairs, given_["bounds"], order, books)

        run()


@EACH_LAW
@runs(15)
def test_one_column_keeps_the_promise(law, examples):
    check_numbers(law, examples, f"one column, {law}", (1, 1), "joint", 24)


@EACH_LAW
@runs(5)
def test_columns_alone_keep_the_promise(law, examples):
    check_numbers(law, examples, f"columns alone, {law}", (2, 4), "column", 14)


@EACH_LAW
@runs(9)
def test_rows_of_two_columns_keep_the_promise(law, examples):
    check_numbers(law, examples, f"two columns, {law}", (2, 2), "joint", 8)


@EACH_LAW
@runs(7)
def test_rows_of_many_columns_keep_the_promise(law, examples):
    check_numbers(law, examples, f"many columns, {law}", (2, 6), "joint", 30)
