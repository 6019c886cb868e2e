"""A campaign against the public door: random tables, frames, parameters and calls.

What is promised is computed anew from the table and the fitted scales by another road
(`campaign_support`). By default a few dozen examples of each, the same in every run; a
slow run takes thousands: `SKPUFFER_CAMPAIGN=5000 SKPUFFER_CAMPAIGN_SEED=7 pytest -m slow
-rP tests/test_campaign.py` prints what it has seen.
"""

import itertools
import math
import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from campaign_support import (
    ARRAYS,
    FRAMES,
    MANY,
    NARROW,
    Books,
    as_array,
    as_frame,
    atoms_divergence,
    budgets,
    campaign,
    chosen_pairs,
    is_transported,
    library_of,
    limit,
    line_divergence,
    on_grid,
    plain,
    plane_divergence,
    released_array,
    rows_of,
    shift_cost,
    tables,
)
from core_support import step_of
from hypothesis import given, note
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer import (
    ConditionalCounts,
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    reuse_fits,
)
from skpuffer.exceptions import CalibrationError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")

LAWS = {
    "laplace": RenyiPufferfishLaplace,
    "gaussian": RenyiPufferfishGaussian,
    "exponential": RenyiPufferfishExponential,
}
EACH_LAW = pytest.mark.parametrize("law", LAWS)
RULES = ["transport", "alpha_wasserstein", "closed_form", "w_inf"]
# What a valid call may still come to, and by which words it is known.
REFUSALS = {
    "no pair": (ParameterError, "no secret pair occurs"),
    "budget": (ParameterError, "out of reach at alpha"),
    "order": (CalibrationError, "no order up to"),
    "fine grid": (CalibrationError, "nearly as much as epsilon"),
    "far values": (ValueError, "the reach of the noise grid"),
    "scale": (ValueError, "A noise scale must be between"),
}


def runs(examples):
    """Give a test its number of examples, and thousands in a slow run."""
    many = pytest.param(MANY, marks=pytest.mark.slow, id="many")
    return pytest.mark.parametrize("examples", [pytest.param(examples, id="few"), many])


def attempt(fit, books):
    """Fit, and count what is refused with good reason."""
    try:
        found = fit()
    except (ValueError, CalibrationError) as error:
        for name, (kind, words) in REFUSALS.items():
            if isinstance(error, kind) and words in str(error):
                books.count(f"refused: {name}")
                return None
        raise
    books.count("fits")
    return found


# --- the promise: numbers -------------------------------------------------------


@st.composite
def bounds(draw, names):
    """Draw bounds, for all columns or by name, or none."""
    kind = draw(st.sampled_from(["none", "none", "all", "some"]))
    if kind == "none":
        return None
    ends = st.sampled_from([(-3, 4), (0, 1), (-2.5, 60), (0.25, 3.75)])
    if kind == "all":
        return draw(ends)
    some = draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
    return {name: draw(ends) for name in some}


def clipping(declared, names):
    """Return what the declared bounds make of rows."""
    limits = [(-np.inf, np.inf)] * len(names)
    if isinstance(declared, dict):
        limits = [declared.get(name, (-np.inf, np.inf)) for name in names]
    elif declared is not None:
        limits = [declared] * len(names)
    low, high = np.array(limits, dtype=float).T
    return lambda values: np.clip(values, low, high)


@st.composite
def releases(draw, law, table, scope):
    """Draw valid parameters of a release of numbers."""
    # A step of the grid costs √(2^-20) of exponential noise.
    chosen = draw(budgets(law != "gaussian", 0.1 if law == "exponential" else 1e-3))
    pairs, stand_for = draw(chosen_pairs(table))
    one = scope == "column" or len(table.names) == 1
    rules = RULES + ["exact", "exact"] * (one and law != "exponential")
    chosen |= {
        "scope": scope,
        "secret_pairs": pairs,
        "calibration": draw(st.sampled_from(rules)),
        "bounds": draw(bounds(table.names)),
        "n_releases": draw(st.sampled_from([1, 1, 1, 2, 3])),
    }
    if law == "exponential":
        chosen["power"] = draw(st.sampled_from([0.5, 0.5, 1.0, 0.3]))
    if chosen["calibration"] == "exact" and law == "laplace":
        chosen["n_releases"] = 1
    if len(table.names) > 1 and draw(st.integers(0, 2)) == 0:
        given = draw(st.lists(st.floats(0.2, 5), min_size=6, max_size=6))
        given = dict(zip(table.names, given, strict=False))
        as_list = draw(st.booleans())
        chosen["column_weights"] = list(given.values()) if as_list else given
    return chosen, stand_for


def assert_released_promise(noise, table, pairs, declared, books):
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
            assert_pair(promise, p, q, scale, books)


def assert_no_noise_needed(promise, p, q):
    for first, second in ((p, q), (q, p)):
        found = atoms_divergence(first, second, promise.alpha)
        if promise.rule == "exact":
            assert found <= limit(promise.epsilon, promise.alpha)
        else:
            assert found <= 1e-12 * (1 + 1 / (promise.alpha - 1))


def assert_pair(promise, p, q, scale, books):
    """Integrate both directions of a pair, or what can be integrated of it."""
    alpha, copies, k = promise.alpha, promise.n_releases, len(scale)
    options = {"law": promise.law, "alpha": alpha}
    if promise.law == "exponential":
        options["power"] = promise.power
    bound = limit(promise.epsilon, alpha)
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


def whole(p, q):
    """Whether a linear programme of whole masses is small enough."""
    masses = np.concatenate([p[1], q[1]])
    lcm = math.lcm(*(max(int(side[1].sum()), 1) for side in (p, q)))
    return (masses == np.rint(masses)).all() and lcm < 1e6


def assert_record(noise, given, table, pairs):
    """Hold the record to the parameters."""
    promise = noise.guarantee_
    assert promise.columns == tuple(table.names)
    assert promise.scale == tuple(noise.scale_.tolist())
    assert (promise.alpha, promise.epsilon) == (noise.alpha_, noise.epsilon_)
    if "delta" in given:
        assert promise.target == (given["epsilon"], given["delta"])
        assert promise.to_epsilon(given["delta"]) <= given["epsilon"] * (1 + 1e-9)
    else:
        assert (promise.alpha, promise.epsilon) == (given["alpha"], given["epsilon"])
        assert promise.target is None
    for name in ("scope", "n_releases"):
        assert getattr(promise, name) == given.get(name, getattr(promise, name))
    assert {frozenset(pair) for pair in promise.pairs} == set(map(frozenset, pairs))
    assert promise.weighted == (table.weight is not None)
    groups = table.groups()
    towns = {town for town, _ in groups if town is not None}
    assert set(promise.priors) == towns
    assert noise.n_features_in_ == len(table.names)
    profile = noise.privacy_profile([promise.alpha])
    assert profile[0] <= promise.epsilon * (1 + 1e-9)


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
            noise = attempt(
                lambda: noise.fit(frame, sample_weight=table.weight), books
            )
            if noise is None:
                return
            assert_record(noise, given_, table, pairs)
            assert_released_promise(noise, table, pairs, given_["bounds"], books)

        run()


@EACH_LAW
@runs(25)
def test_one_column_keeps_the_promise(law, examples):
    check_numbers(law, examples, f"one column, {law}", (1, 1), "joint", 24)


@EACH_LAW
@runs(8)
def test_columns_alone_keep_the_promise(law, examples):
    check_numbers(law, examples, f"columns alone, {law}", (2, 4), "column", 14)


@EACH_LAW
@runs(15)
def test_rows_of_two_columns_keep_the_promise(law, examples):
    check_numbers(law, examples, f"two columns, {law}", (2, 2), "joint", 8)


@EACH_LAW
@runs(12)
def test_rows_of_many_columns_keep_the_promise(law, examples):
    check_numbers(law, examples, f"many columns, {law}", (2, 6), "joint", 30)
