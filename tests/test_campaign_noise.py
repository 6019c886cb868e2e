"""The campaign against the law of a release: that which its guarantee names, and fresh.

Numbers: on the grid of the promised scale, by Kolmogorov and Smirnov's test and the sum
of powers, which is a Gamma variable. Categories: the binomial law of each cell. Bits of
the noise of other rows, columns, calls and values agree as often as coins do. The level
of each test is 1e-9, and seeds are fixed; long runs draw from the system as well.
"""

import itertools
import math

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from campaign_cases import attempt, clipping, runs
from campaign_kinds import cases
from campaign_labels import distances
from campaign_support import Books, campaign
from core_support import grid_index, step_of
from hypothesis import given, note
from hypothesis import strategies as st
from scipy import special, stats

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")

LEVEL = 1e-9
ROWS = 3000


def unlikely(count, n, share):
    """Two-sided p-value of a binomial count."""
    if share in (0.0, 1.0):
        return float(count == n * share)
    above = special.bdtrc(count - 1, n, share) if count > 0 else 1.0
    return min(1.0, 2 * min(special.bdtr(count, n, share), above))


def steps_of_noise(released, values, scale):
    """Return released less rounded values, in whole steps of the grid."""
    step = step_of(scale)
    known = {v: grid_index(v, step) for v in np.unique(values).tolist()}
    places = np.array([known[v] for v in values.tolist()], dtype=float)
    found = released / step
    assert (found == np.rint(found)).all()
    return found - places, scale / step


def law_of(promise):
    """Return the law of noise by its standard unit: cdf, and powers that are Gamma."""
    if promise.law == "gaussian":
        return stats.norm.cdf, lambda z: z**2 / 2, 0.5
    power = 1.0 if promise.law == "laplace" else promise.power
    # The grid's cusp at zero moves no probability by more than a step, 2^-20.
    return stats.gennorm(power).cdf, lambda z: np.abs(z) ** power, 1 / power


def assert_law(k, t, promise):
    """Hold the steps of one column to the law on the grid."""
    cdf, gamma, shape = law_of(promise)
    # P(K <= k) is that of the continuous noise up to the middle between two steps.
    values, counts = np.unique(k, return_counts=True)
    after = cdf((values + 0.5) / t)
    before = cdf((values - 0.5) / t)
    seen = np.cumsum(counts) / len(k)
    gap = max((seen - after).max(), (before - seen + counts / len(k)).max())
    assert stats.kstwo.sf(gap, len(k)) > LEVEL
    total, law = gamma(k / t).sum(), stats.gamma(shape * len(k))
    assert min(law.cdf(total), law.sf(total)) > LEVEL


def bits_of(k, t, promise):
    """Two bits of each draw that are fair coins: its sign, and whether it is large."""
    _, gamma, shape = law_of(promise)
    small = gamma(k / t) > stats.gamma(shape).median()
    return {"sign": np.where(k == 0, np.arange(len(k)) % 2 == 0, k > 0), "size": small}


def assert_fair(first, second):
    """Two streams of fair coins agree in half of the places."""
    agree = int((first == second).sum())
    assert unlikely(agree, len(first), 0.5) > LEVEL


def assert_independent(streams, books):
    """Hold bits of several columns and calls to independence, rows among themselves."""
    for bits in streams:
        for kind in bits.values():
            books.count("coins")
            assert unlikely(int(kind.sum()), len(kind), 0.5) > LEVEL
            for lag in (1, 2, 7):
                assert_fair(kind[lag:], kind[:-lag])
        assert_fair(bits["sign"], bits["size"])
    for one, two in itertools.combinations(streams, 2):
        for kind in one:
            assert_fair(one[kind], two[kind])
            assert_fair(one[kind][1:], two[kind][:-1])


def assert_nothing_comes_again(calls):
    """No three neighbours of a column come twice, in one call or in two.

    A value has less than one chance in 2^20, so that three have less than one in 2^60.
    """
    parts = [np.stack([k[:-2], k[1:-1], k[2:]], axis=1) for k in calls]
    every = np.concatenate(parts)
    assert len(np.unique(every, axis=0)) == len(every)


def assert_value_is_not_in_noise(bits, values):
    """The noise of one value is that of the others."""
    for value in np.unique(values)[:3]:
        here = values == value
        for kind in bits.values():
            assert unlikely(int(kind[here].sum()), int(here.sum()), 0.5) > LEVEL


def channel_from_definition(labels, metric, name, theta):
    """P(y | x) proportional to exp(-d(x, y) / θ)."""
    if theta == 0:
        return np.eye(len(labels))
    found = np.exp(-distances(labels, metric, name) / theta)
    return found / found.sum(axis=1, keepdims=True)


def assert_drawn(places, drawn, channel):
    """Hold each cell to its binomial law; a row is an input."""
    for x in np.unique(places).tolist():
        here = drawn[places == x]
        for y, share in enumerate(channel[x].tolist()):
            assert unlikely(int((here == y).sum()), len(here), share) > LEVEL


def assert_apart(one, two):
    """Two independent events happen together as often as the product says.

    Of each: whether it happened, and its probability at every row.
    """
    (a, p), (b, q) = one, two
    both = np.round(p * q, 12)
    for share in np.unique(both).tolist():
        here = both == share
        joint = int((a & b)[here].sum())
        assert unlikely(joint, int(here.sum()), share) > LEVEL


def released_by(noise, frame, draw):
    """Release rows in one of several containers, back as a pandas frame."""
    names = list(frame.columns)
    ways = ["pandas", "polars", "polars lazy", "dask", "threads"]
    way = draw(st.sampled_from(ways))
    if way == "threads":
        noise.set_params(n_jobs=2)
    if way == "dask":
        parts = dd.from_pandas(frame, npartitions=draw(st.integers(1, 9)))
        return way, noise.transform(parts).compute()
    if way.startswith("polars"):
        rows = pl.DataFrame({name: frame[name].to_numpy() for name in names})
        if way == "polars":
            found = noise.transform(rows)
        else:
            found = noise.transform(rows.lazy()).collect()
        return way, pd.DataFrame({name: found[name].to_list() for name in names})
    return way, noise.transform(frame)


@runs(4)
def test_a_release_has_the_law_that_its_guarantee_names(examples):
    kinds = ("numbers", "numbers", "bounded", "categories", "row", "row")
    with Books("laws") as books, dask.config.set(scheduler="sync"):

        @campaign(examples)
        @given(st.data())
        def run(data):
            draw = data.draw
            case = draw(cases(kinds=kinds))
            note(f"{case}")
            random = draw(st.integers(0, 2**32))
            if examples > 50 and draw(st.booleans()):
                random = None
            noise = case.estimator.set_params(random_state=random)
            noise = attempt(lambda: case.fit(), books)
            if noise is None:
                return
            promise = noise.guarantee_
            chosen = np.random.default_rng(draw(st.integers(0, 99)))
            big = case.table.rows(chosen.integers(0, case.table.n_rows, ROWS))
            frame = case.frame("pandas", big)[big.names]
            streams, stays, noises = [], [], {}
            for _ in range(2):
                way, released = released_by(noise, frame, draw)
                books.count(way)
                for name, scale in zip(big.names, promise.scale, strict=True):
                    if name in case.sets:
                        books.count("categories")
                        labels = case.sets[name]
                        channel = channel_from_definition(
                            labels, noise.metric, name, scale
                        )
                        places = big.columns[name].astype(int)
                        drawn = released[name].tolist()
                        drawn = np.array([labels.index(label) for label in drawn])
                        assert_drawn(places, drawn, channel)
                        stays.append((drawn == places, channel[places, places]))
                        continue
                    clip = clipping(case.declared, case.numbers)
                    clipped = clip(big.values(case.numbers))
                    values = clipped[:, case.numbers.index(name)]
                    found = released[name].to_numpy(dtype=float)
                    if scale == 0:
                        assert (found == values).all()
                        continue
                    books.count(promise.law)
                    k, t = steps_of_noise(found, values, scale)
                    assert_law(k, t, promise)
                    noises.setdefault(name, []).append(k)
                    bits = bits_of(k, t, promise)
                    assert_value_is_not_in_noise(bits, values)
                    streams.append(bits)
            assert_independent(streams, books)
            for calls in noises.values():
                assert_nothing_comes_again(calls)
            half = np.full(ROWS, 0.5)
            coins = [(bits["sign"], half) for bits in streams]
            events = stays + coins
            for one, two in itertools.combinations(events, 2):
                assert_apart(one, two)
            for happened, share in stays:
                even, odd = slice(0, None, 2), slice(1, None, 2)
                assert_apart((happened[even], share[even]), (happened[odd], share[odd]))

        run()


def test_the_tests_of_a_law_see_another_scale_and_a_copy():
    # Four in a hundred more noise, or the noise of another column, is found.
    rng = np.random.default_rng(0)
    promise = type("Promise", (), {"law": "laplace", "power": None})
    t = 1.5 * 2**20
    k = np.rint(rng.laplace(0, t, 30_000))
    assert_law(k, t, promise)
    with pytest.raises(AssertionError):
        assert_law(k, 1.04 * t, promise)
    with pytest.raises(AssertionError):
        assert_law(k + t / 15, t, promise)
    bits = bits_of(k, t, promise)
    books = Books("none")
    assert_independent([bits], books)
    with pytest.raises(AssertionError):
        assert_independent([bits, bits], books)
    with pytest.raises(AssertionError):
        assert_fair(np.repeat(bits["sign"], 2)[1:], np.repeat(bits["sign"], 2)[:-1])
    assert_nothing_comes_again([k])
    with pytest.raises(AssertionError):
        assert_nothing_comes_again([k, k[100:200]])
    assert math.isclose(unlikely(5, 10, 0.5), 1.0)
