"""A campaign against the public door: random tables, frames, parameters and calls.

What is promised is computed anew from the table and the fitted scales by another road
(`campaign_support`). By default a few dozen examples of each, the same in every run; a
slow run takes thousands: `SKPUFFER_CAMPAIGN=5000 SKPUFFER_CAMPAIGN_SEED=7 pytest -m slow
-rP tests/test_campaign.py` prints what it has seen.
"""

import itertools
import math
import pickle
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
    SEED,
    Books,
    as_array,
    as_frame,
    atoms_divergence,
    budgets,
    campaign,
    campaign_settings,
    can_move,
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
from hypothesis import given, note, seed, settings
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
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    reuse,
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


# --- the promise: other priors --------------------------------------------------


@runs(12)
def test_declared_bounds_keep_the_promise_for_any_rows(examples):
    with Books("bounded") as books:

        @campaign(examples)
        @given(st.sampled_from(list(LAWS)), st.data())
        def run(law, data):
            fitted_on, other = (data.draw(tables((1, 4), 12)) for _ in range(2))
            names = fitted_on.names
            declared = data.draw(bounds(names).filter(lambda b: isinstance(b, tuple)))
            given_ = data.draw(budgets(law != "gaussian", 0.1))
            noise = LAWS[law](
                secret="s",
                prior_model="bounded",
                bounds=declared,
                calibration=data.draw(st.sampled_from(RULES)),
                n_releases=data.draw(st.sampled_from([1, 2])),
                **({"prior": "p"} if fitted_on.prior else {}),
                **given_,
            )
            noise = attempt(lambda: noise.fit(as_frame(fitted_on)), books)
            if noise is None:
                return
            promise, scale = noise.guarantee_, noise.scale_
            assert (scale > 0).all()
            width = np.full((1, len(names)), float(declared[1] - declared[0]))
            options = {"law": law, "alpha": promise.alpha}
            if law == "exponential":
                options["power"] = 0.5
            bound = limit(promise.epsilon, promise.alpha)
            if promise.alpha < math.inf:
                # One row at either end is the worst that there is, and known exactly.
                copies = promise.n_releases
                found = shift_cost(shifts=width, scale=scale, copies=copies, **options)
                assert found[0] / (promise.alpha - 1) <= bound
            # Any rows at all, those of another table say.
            column = data.draw(st.sampled_from(other.names))
            values = np.clip(other.columns[column], *map(float, declared))[:, None]
            half = np.arange(len(values)) % 2 == 0
            sides = [(values[part], np.ones(part.sum())) for part in (half, ~half)]
            j = data.draw(st.integers(0, len(names) - 1))
            for p, q in (sides, sides[::-1]):
                books.count("integrals")
                assert line_divergence(p, q, scale=scale[j], **options) <= bound

        run()


@runs(7)
def test_a_population_covers_its_own_sample(examples):
    # The bands hold the sample's quantiles, so that it is one of the populations.
    with Books("population") as books:

        @campaign(examples)
        @given(st.sampled_from(list(LAWS)), st.data())
        def run(law, data):
            table = data.draw(tables((1, 3), 40, weighted=False))
            declared = data.draw(bounds(["a"]).filter(lambda b: isinstance(b, tuple)))
            given_ = data.draw(budgets(law != "gaussian", 0.1))
            pairs, stand_for = data.draw(chosen_pairs(table))
            noise = LAWS[law](
                secret="s",
                prior_model="population",
                confidence=data.draw(st.sampled_from([0.5, 0.9, 0.99])),
                bounds=declared,
                scope="column",
                secret_pairs=pairs,
                calibration=data.draw(st.sampled_from(RULES)),
                **({"prior": "p"} if table.prior else {}),
                **given_,
            )
            noise = attempt(lambda: noise.fit(as_frame(table)), books)
            if noise is None:
                return
            assert (noise.scale_ > 0).all()
            sample = clone(noise).set_params(prior_model="empirical")
            sample = attempt(lambda: sample.fit(as_frame(table)), books)
            if sample is not None and noise.alpha != "auto":
                assert (noise.scale_ >= sample.scale_ * (1 - 1e-6)).all()
            assert_released_promise(noise, table, stand_for, declared, 3.0, books)

        run()


@runs(12)
def test_a_gaussian_model_keeps_the_promise(examples):
    with Books("gaussian model") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            table = data.draw(tables((1, 3), 30))
            given_ = data.draw(budgets(infinite=False))
            pairs, stand_for = data.draw(chosen_pairs(table))
            noise = RenyiPufferfishGaussian(
                secret="s",
                prior_model="gaussian",
                scope="column",
                secret_pairs=pairs,
                **({"prior": "p"} if table.prior else {}),
                **given_,
            )
            frame = as_frame(table, data.draw(st.sampled_from(list(FRAMES))))
            noise = attempt(lambda: noise.fit(frame, sample_weight=table.weight), books)
            if noise is None:
                return
            bound = limit(noise.epsilon_, noise.alpha_)
            for name, scale in zip(table.names, noise.scale_, strict=True):
                for sides in table.pairs(stand_for, [name]):
                    for p, q in (sides, sides[::-1]):
                        books.count("pairs")
                        assert normal_divergence(p, q, scale, noise.alpha_) <= bound

        run()


def normal_divergence(p, q, scale, alpha):
    """The divergence of two Gaussians with the moments of two samples, and noise."""
    moments = []
    for rows, mass in (p, q):
        values, share = rows[:, 0].astype(float), mass / mass.sum()
        mean = share @ values
        moments.append((mean, share @ (values - mean) ** 2 + scale**2))
    (m, v), (n, w) = moments
    if v == w == 0:
        return 0.0 if abs(m - n) < 1e-12 else math.inf
    mixed = alpha * w + (1 - alpha) * v
    if mixed <= 0 or v == 0 or w == 0:
        return math.inf
    # Of logarithms near each other: log(mixed) − (1−α) log v − α log w.
    logs = math.log1p((mixed - w) / w) - (1 - alpha) * math.log1p((v - w) / w)
    return alpha * (m - n) ** 2 / (2 * mixed) + logs / (2 * (1 - alpha))


# --- the promise: categories ----------------------------------------------------

WORDS = {
    "text": ("ab", "b", "ç", "d"),
    "numbers": (3, 1, 4, 2),
    "truth": (False, True),
}


@st.composite
def labelled(draw, table, names):
    """Draw what the whole numbers of some columns stand for."""
    sets = {}
    for name in names:
        words = WORDS[draw(st.sampled_from(list(WORDS)))]
        table.columns[name] %= len(words)
        sets[name] = list(words)
    return sets


CODES = st.lists(st.integers(0, 3).map(float), min_size=1, max_size=4)


def labelled_frame(table, sets, kind):
    """Write a table whose codes are labels."""
    columns = {
        name: np.array(sets[name])[values.astype(int)] if name in sets else values
        for name, values in table.columns.items()
    }
    columns["s"] = np.array(table.secret)
    if table.prior is not None:
        columns["p"] = np.array(table.prior)
    if kind == "categories":
        return pd.DataFrame(
            {
                name: pd.Categorical(values) if name in sets else values
                for name, values in columns.items()
            }
        )
    return FRAMES[kind](columns)


@st.composite
def metrics(draw, sets):
    """Draw a metric for each set: by name, as a matrix, or a callable."""
    kind = draw(st.sampled_from(["discrete", "ordinal", "matrix", "matrix"]))
    if kind != "matrix":
        return kind
    given_ = {}
    for name, labels in sets.items():
        n = len(labels)
        flat = draw(st.lists(st.floats(0.1, 4), min_size=n * n, max_size=n * n))
        above = np.triu(np.reshape(flat, (n, n)), 1)
        given_[name] = above + above.T
    return given_


def drawn_from(p, channels, sets, copies=1):
    """Return the distribution of a released row of categories, or of its copies."""
    rows, mass = p
    total = 0.0
    for row, m in zip(rows, mass / mass.sum(), strict=True):
        outcome = np.ones(1)
        for _ in range(copies):
            for code, (channel, labels, fitted) in zip(row, channels, strict=True):
                place = fitted.index(labels[int(code)])
                outcome = np.outer(outcome, channel[place]).ravel()
        total = total + m * outcome
    kept = np.flatnonzero(total > 0)
    return kept[:, None], total[kept]


def moving(p, q, channels, draw):
    """Return (α − 1) times the divergence of each row of p from each of q."""
    alpha, order = draw.alpha_, math.inf if draw.alpha_ == math.inf else draw.alpha_ - 1
    costs = np.zeros((len(p[0]), len(q[0])))
    for j, (channel, labels, fitted) in enumerate(channels):
        every = np.arange(len(channel))[:, None]
        between = [
            [atoms_divergence((every, one), (every, other), alpha) for other in channel]
            for one in channel
        ]
        places = [
            [fitted.index(labels[int(code)]) for code in side[0][:, j]]
            for side in (p, q)
        ]
        costs += np.array(between)[np.ix_(*places)]
    return draw.n_releases * costs * (1 if order == math.inf else order)


def channels_of(draw, sets, names):
    return [
        (draw.channels_[name], sets[name], list(draw.categories_[name]))
        for name in names
    ]


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
            table = data.draw(tables((2, 4), 16, pools=st.one_of(CODES, _numbers())))
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


def _numbers():
    return st.lists(st.integers(-9, 9).map(lambda n: n / 2), min_size=1, max_size=4)


def mixed_divergence(p, q, scale, channels, row):
    """The divergence of one number and all categories of a released row."""
    alpha, parts, absent = row.alpha_, [], 0.0
    n_outcomes = [len(channel) for channel, *_ in channels]
    for outcome in itertools.product(*map(range, n_outcomes)):
        sides, totals = [], []
        for rows, mass in (p, q):
            share = mass / mass.sum()
            for j, (channel, labels, fitted) in enumerate(channels):
                places = [fitted.index(labels[int(code)]) for code in rows[:, j + 1]]
                share = share * channel[places, outcome[j]]
            kept = share > 0
            sides.append((rows[kept, :1].astype(float), share[kept]))
            totals.append(share.sum())
        if totals[0] == 0:
            absent += totals[1]
            continue
        if totals[1] == 0:
            return math.inf
        if scale > 0:
            sides = [on_grid(side, np.array([scale])) for side in sides]
            options = {"law": row.law, "scale": scale, "alpha": alpha}
            within = line_divergence(*sides, **options)
        else:
            within = atoms_divergence(*sides, alpha)
        parts.append((totals, within))
    if alpha == math.inf:
        return max(math.log(t[0] / t[1]) + within for t, within in parts)
    logs = [
        alpha * math.log(t[0]) - (alpha - 1) * math.log(t[1]) + (alpha - 1) * within
        for t, within in parts
    ]
    top = max(logs)
    if top > 1:
        return (top + math.log(math.fsum(math.exp(x - top) for x in logs))) / (
            alpha - 1
        )
    # The outcomes sum to one on either side, so that only the excess counts.
    excess = math.fsum(
        math.exp(x) - alpha * t[0] + (alpha - 1) * t[1]
        for x, (t, _) in zip(logs, parts, strict=True)
    )
    return math.log1p(max(excess + (alpha - 1) * absent, 0.0)) / (alpha - 1)


# --- the same rows, the same scale ----------------------------------------------


@st.composite
def small_releases(draw, table):
    """Draw parameters of a release that is served, of any law, and its make."""
    law = draw(st.sampled_from(list(LAWS)))
    scope = draw(st.sampled_from(["joint", "column"]))
    given_, _ = draw(releases(law, table, scope))
    given_["epsilon"] = max(given_["epsilon"], 0.1)
    # The exact rule takes ten times as long, and reads nothing in ways of its own.
    if given_["calibration"] == "exact" and draw(st.integers(0, 3)):
        given_["calibration"] = "transport"
    if law == "gaussian" and scope == "column" and draw(st.booleans()):
        given_ |= {"prior_model": "gaussian", "calibration": "transport"}
    return LAWS[law], given_


def scale_of(fit):
    """Return the scale of a fit, or the class of its refusal."""
    try:
        return fit().scale_
    except (ValueError, CalibrationError) as error:
        return np.array([type(error).__name__])


def same(first, second, tolerance=0.0):
    if first.dtype.kind != "f" or second.dtype.kind != "f":
        return first.tolist() == second.tolist()
    return bool((np.abs(first - second) <= tolerance * np.abs(second)).all())


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


# --- the release ----------------------------------------------------------------


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


# --- what is refused ------------------------------------------------------------

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


SPOILT = ("nan", "inf", "secret", "text", "one", "name", "rows")


def spoilt(table, draw, ways=SPOILT):
    """Return a frame that must be refused, and words that its refusal says."""
    name = draw(st.sampled_from(table.names))
    frame = as_frame(table)
    row = draw(st.integers(0, table.n_rows - 1))
    kind = draw(st.sampled_from(ways))
    if kind in ("nan", "inf"):
        frame[name] = frame[name].astype(float)
        frame.loc[row, name] = np.nan if kind == "nan" else -np.inf
        return frame, [repr(name), f"1 of {table.n_rows} rows"]
    if kind == "text":
        return frame.assign(**{name: "many"}), [repr(name)]
    if kind == "secret":
        frame["s"] = frame["s"].astype(object)
        frame.loc[row, "s"] = draw(st.sampled_from([None, np.nan, "nan"]))
        return frame, ["secret 's' is missing", f"1 of {table.n_rows} rows"]
    if kind == "one":
        return frame.assign(s="F"), ["single value"]
    if kind == "name":
        frame.columns = [*frame.columns[:-1], frame.columns[0]]
        return frame, [""]
    return frame.iloc[:0], [""]


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


# --- any order of calls ---------------------------------------------------------

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
        expected, before = self.alone(frame, parameters), dict(vars(self.noise))
        if expected.dtype.kind == "f":
            assert fit() is self.noise
            self.fitted = {
                "scale": expected,
                "columns": list(frame.columns[:-1]),
                "parameters": parameters,
            }
            self.books.count("fits")
            return
        with pytest.raises((ValueError, CalibrationError)) as caught:
            fit()
        assert type(caught.value).__name__ == expected[0]
        assert vars(self.noise) == before
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
