"""Conditionals: exact masses, whatever the order, the weights and the offset."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from core_support import conditional, fixed
from hypothesis import given
from hypothesis import strategies as st

from skpuffer.core.prior import Conditional, Prior, common_masses, pooled_spread

rows = st.integers(1, 3).flatmap(
    lambda k: st.lists(
        st.lists(st.integers(-2, 2).map(lambda n: n / 2), min_size=k, max_size=k),
        min_size=1,
        max_size=12,
    )
)
weight = st.one_of(
    st.just(0.0),
    st.integers(1, 9).map(float),
    st.floats(1e-3, 1e3),
    st.sampled_from([2.0**-60, 2.0**40, 1e-300, 1e300, 5e-324]),
)


def shares(values, weights):
    """The distribution, as exact fractions."""
    total = sum(map(Fraction, weights))
    found = Counter()
    for row, w in zip(values, weights, strict=True):
        if w:
            found[tuple(row)] += Fraction(w) / total
    return found


def read(item):
    """The distribution that a `Conditional` states."""
    total = sum(item.mass.tolist())
    assert total == item.total
    pairs = zip(item.support.tolist(), item.mass.tolist(), strict=True)
    return {tuple(row): Fraction(m, total) for row, m in pairs}


def assert_in_form(item):
    listed = item.support.tolist()
    assert listed == sorted(listed)
    assert len({tuple(row) for row in listed}) == len(listed)
    masses = item.mass.tolist()
    assert all(type(m) is int and m > 0 for m in masses)
    assert math.gcd(*masses) == 1
    assert item.mass.dtype == (np.int64 if sum(masses) < 2**62 else object)
    assert item.probabilities.dtype == np.float64
    assert item.probabilities.sum() == pytest.approx(1)


@fixed(150)
@given(rows, st.data())
def test_every_distribution_is_kept_exactly(values, data):
    item = conditional(values)
    assert_in_form(item)
    assert read(item) == shares(values, [1] * len(values))
    assert (item.n_rows, item.weight) == (len(values), len(values))
    weights = data.draw(st.lists(weight, min_size=len(values), max_size=len(values)))
    if not any(weights):
        with pytest.raises(ValueError, match="positive mass"):
            conditional(values, weights)
        return
    item = conditional(values, weights)
    assert_in_form(item)
    assert read(item) == shares(values, weights)
    assert item.n_rows == sum(w > 0 for w in weights)
    assert item.weight == math.fsum(weights)
    # Neither the order of the rows nor a power of two in the weights matters.
    order = data.draw(st.permutations(range(len(values))))
    again = conditional([values[i] for i in order], [weights[i] for i in order])
    assert again.same_distribution(item)
    assert again.weight == item.weight
    if max(weights) < 1e200:
        again = conditional(values, [4 * w for w in weights])
        assert again.same_distribution(item)


def test_nothing_left_is_an_error():
    for values, weights in (([], None), ([[1.0]], [0.0])):
        with pytest.raises(ValueError, match="positive mass"):
            Conditional.from_rows(np.reshape(values, (-1, 1)), weights)


@pytest.mark.parametrize("factor", [1.0, 0.25, 2.0**-60, 2.0**40])
def test_weights_equal_repetition(factor):
    values, counts = [[3.0], [1.0], [2.0], [1.0]], [2, 1, 3, 4]
    repeated = np.repeat(values, counts, axis=0)
    weighted = conditional(values, [factor * n for n in counts])
    assert weighted.same_distribution(conditional(repeated))


def test_masses_beyond_int64():
    # 1 against 2^-80: the common unit needs 80 bits.
    item = conditional([[0.0], [1.0]], [1.0, 2.0**-80])
    assert item.mass.dtype == object
    assert item.mass.tolist() == [2**80, 1]
    assert item.total == 2**80 + 1
    # Whole numbers too large for int64 together.
    item = conditional([[0.0], [1.0]], [2.0**62, 2.0**62 + 1024])
    assert item.mass.tolist() == [2**52, 2**52 + 1]
    assert item.mass.dtype == np.int64


def test_same_distribution_is_exact():
    item = conditional([0.0, 1.0, 1.0])
    assert item.same_distribution(conditional([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]))
    assert not item.same_distribution(conditional([0.0, 0.0, 1.0]))
    assert not item.same_distribution(conditional([0.0, 1.0, 2.0]))
    assert not item.same_distribution(conditional([0.0, math.nextafter(1, 2), 1.0]))
    big = 10**15
    close = conditional([0.0, 1.0], [big, big + 1.0])
    assert not close.same_distribution(conditional([0.0, 1.0]))
    assert conditional([-0.0, 0.0]).same_distribution(conditional([0.0]))


@fixed(150)
@given(rows, rows, st.data())
def test_common_masses(first, second, data):
    scale = data.draw(st.sampled_from([1, 10**7, 2**61]))
    left = conditional(first, [1] * (len(first) - 1) + [scale])
    right = conditional(second, [1] * (len(second) - 1) + [scale - scale // 3])
    a, b, total = common_masses(left, right)
    assert sum(a.tolist()) == sum(b.tolist()) == total
    assert total == math.lcm(left.total, right.total)
    for mass, item in ((a, left), (b, right)):
        for m, n in zip(mass.tolist(), item.mass.tolist(), strict=True):
            assert type(m) is int
            assert Fraction(m, total) == Fraction(n, item.total)


@fixed(60)
@given(rows.filter(lambda values: len(values) > 1), st.integers(1, 5))
def test_the_pooled_spread(values, cut):
    cut = min(cut, len(values) - 1)
    values = np.array(values)
    items = [Conditional.from_rows(part) for part in (values[:cut], values[cut:])]
    found, span = pooled_spread(items)
    np.testing.assert_allclose(found, values.std(axis=0), atol=1e-15, rtol=1e-13)
    np.testing.assert_array_equal(span, np.ptp(values, axis=0))
    # Weighted as it should be, and no digit lost to an offset.
    weights = np.arange(1.0, len(values) + 1)
    items = [
        Conditional.from_rows(values[part] + 2.0**40, weights[part])
        for part in (slice(cut), slice(cut, None))
    ]
    mean = weights @ values / weights.sum()
    expected = np.sqrt(weights @ (values - mean) ** 2 / weights.sum())
    np.testing.assert_allclose(
        pooled_spread(items)[0], expected, atol=1e-13, rtol=1e-12
    )


def test_the_pooled_spread_of_many_rows():
    rng = np.random.default_rng(0)
    parts = [1e6 + rng.normal(size=(n, 2)) * [1, 50] for n in (70_000, 40_000)]
    parts[1] += [3.0, -20.0]
    found = pooled_spread([Conditional.from_rows(part) for part in parts])[0]
    expected = (np.vstack(parts) - 1e6).std(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_rare_value_far_away_counts():
    # Variance p (1 - p), with a p that is lost when added to one.
    items = [conditional([0.0], [1.0]), conditional([0.0, 1.0], [1.0, 1e-20])]
    assert pooled_spread(items)[0][0] == pytest.approx(math.sqrt(1e-20 / 2), rel=1e-12)


def test_groups_without_any_weight_and_columns_without_end():
    # A share that underflows adds nothing, but its values still span the column.
    items = [conditional([0.0, 2.0], [1e300, 1e300]), conditional([5.0], [1e-300])]
    found, span = pooled_spread(items)
    assert found.tolist() == [1.0]
    assert span.tolist() == [5.0]
    with pytest.raises(ValueError, match="too far apart"):
        pooled_spread([conditional([-1e308]), conditional([1e308])])


@pytest.mark.parametrize("place", [2**15 - 1, 2**15, 2**15 + 1])
def test_equal_values_meet_wherever_they_lie(place):
    # Distinct values are told by blocks: two that are equal may be in two of them.
    values = np.arange(2.0**16)
    values[place] = values[place - 1]
    item = conditional(values)
    assert_in_form(item)
    assert len(item.mass) == 2**16 - 1
    assert item.mass[place - 1] == 2


def test_constant_columns_have_no_spread_at_all():
    items = [conditional([[0.1, 1.0]] * 7), conditional([[0.1, 3.0]] * 3)]
    constant, other = pooled_spread(items)[1]
    assert constant == 0
    assert other > 0


def test_a_prior_is_a_frozen_record():
    item = conditional([0.0])
    prior = Prior(None, ("a", "b"), (item, item), ((0, 1),))
    with pytest.raises(AttributeError):
        prior.label = "x"
    with pytest.raises(AttributeError):
        item.mass = np.array([2])


def test_counted_rows_are_rows_repeated():
    rng = np.random.default_rng(3)
    rows, counts = rng.integers(0, 4, (30, 2)).astype(float), rng.integers(1, 6, 30)
    weights = rng.choice([0.25, 1.0, 0.1, 0.0], 30)
    for weight in (None, weights):
        counted = Conditional.from_rows(rows, weight, counts)
        again = Conditional.from_rows(
            rows.repeat(counts, axis=0),
            None if weight is None else weight.repeat(counts),
        )
        assert counted.same_distribution(again)
        assert counted.n_rows == again.n_rows
        assert counted.weight == again.weight
        assert counted.mass.dtype == again.mass.dtype


@pytest.mark.parametrize("masses", [[1e-300, 1e-300], [1e-300, 3e-300]])
def test_a_group_of_vanishing_weight_adds_nothing_to_the_spread(masses):
    light = Conditional.from_rows([[0.0], [9.0]], masses)
    heavy = Conditional.from_rows([[0.0], [2.0], [4.0]], [1e300, 2e300, 1e300])
    for groups in ([light, heavy], [heavy, light]):
        std, span = pooled_spread(groups)
        np.testing.assert_allclose(std, [math.sqrt(2)], rtol=1e-15)
        assert span.tolist() == [9.0]
