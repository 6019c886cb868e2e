"""Bands of populations: what they claim, at the ends, with ties and on the grid."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from core_support import conditional
from population_support import CASES, above, published_band
from scipy import stats

from skpuffer.core import bands
from skpuffer.core.bands import Band, cells_of, population_bound, quantile_band
from skpuffer.core.crossing import RankBounds, rank_bounds
from skpuffer.core.prior import Conditional

THREE = RankBounds(
    np.array([1, 2, 3]), np.array([0.1, 0.2, 0.3]), np.array([0.6, 0.8, 0.9])
)


@pytest.fixture
def three(monkeypatch):
    monkeypatch.setattr(bands, "rank_bounds", lambda n, error: THREE)


def bound_of(first, second, low, high, **errors):
    errors = {"beta_first": 0.025, "beta_second": 0.025, **errors}
    return population_bound(
        conditional(first), conditional(second), low=low, high=high, **errors
    )


def test_the_steps_of_a_band(three):
    band = quantile_band(conditional([5.0, 2.0, 5.0]), low=0, high=9, error=0.1)
    # Q(u) ≤ 2 for u ≤ .1, ≤ 5 for u ≤ .3 (the ranks 2 and 3 tie), ≤ 9 beyond.
    np.testing.assert_array_equal(band.upper_levels, THREE.lower)
    np.testing.assert_array_equal(band.upper_values, [2, 5, 5, 9])
    # Q(u) ≥ 0 for u ≤ .6, ≥ 2 for u in (.6, .8], ≥ 5 beyond.
    np.testing.assert_array_equal(band.lower_levels, THREE.upper)
    np.testing.assert_array_equal(band.lower_values, [0, 2, 5, 5])


def test_the_distance_of_two_bands_level_by_level(three):
    # u:      (0, .1]  (.1, .2]  (.2, .3]  (.3, .6]  (.6, .8]  (.8, .9]  (.9, 1]
    # up       1        2         4         8         8         8         8
    # lo       0        0         0         0         1         2         4
    # up'      3        5         6         8         8         8         8
    # lo'      0        0         0         0         3         5         6
    bound = bound_of([1.0, 2.0, 4.0], [3.0, 5.0, 6.0], 0, 8)
    expected = {3: 0.1, 4: 0.1, 5: 0.1, 6: 0.2, 7: 0.2, 8: 0.3}
    assert bound.shifts[:, 0].tolist() == list(expected)
    np.testing.assert_allclose(bound.mass, list(expected.values()), rtol=1e-14)
    assert not bound.grouped


@pytest.mark.parametrize("name", CASES)
def test_the_band_is_about_probabilities_not_about_ranks(name):
    # F(X_(i)) ≥ L_i and P(X < X_(i)) ≤ H_i are the event; a sample of exactly the
    # population's quantiles satisfies it, with all its ties and atoms.
    case = CASES[name]
    groups = [Conditional.from_rows(atoms[:, None]) for atoms in case.atoms]
    made = [quantile_band(g, low=case.low, high=case.high, error=0.05) for g in groups]
    for atoms, band in zip(case.atoms, made, strict=True):
        upto = np.searchsorted(atoms, band.upper_values[:-1], "right") / len(atoms)
        under = np.searchsorted(atoms, band.lower_values[1:], "left") / len(atoms)
        assert (upto >= band.upper_levels).all()
        assert (under <= band.lower_levels).all()
    assert above(cells_of(made[0], made[1]), case.shifts[0])


def test_counts_without_a_common_factor_are_still_ranks():
    doubled = Conditional.from_rows(np.repeat([[1.0], [2.0]], [200, 100], axis=0))
    assert doubled.mass.tolist() == [2, 1]
    band = quantile_band(doubled, low=0, high=9, error=0.05)
    ranks = rank_bounds(300, 0.05).ranks
    np.testing.assert_array_equal(
        band.upper_values[:-1], np.where(ranks <= 200, 1.0, 2.0)
    )


@pytest.mark.parametrize("beta_pair", [0.0, 0.02])
@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ([5.0] * 30, [5.0] * 30, 0, 9),
        ([0.0] * 30, [0.0] * 30, 0, 9),
        ([9.0] * 30, [9.0] * 30, 0, 9),
        ([0.0, 9.0] * 200, [0.0, 9.0] * 200, 0, 9),
        ([3.0], [4.0], 0, 9),
        (np.arange(500.0), np.arange(500.0), 0, 499),
        (0.1 * np.arange(400), 0.1 * np.arange(900), -1e9, 1e9),
    ],
)
def test_no_sample_is_alike_enough_for_no_noise(first, second, low, high, beta_pair):
    bound = bound_of(first, second, low, high, beta_pair=beta_pair)
    assert not bound.is_zero
    assert bound.mass.min() > 0
    assert 1 - 1e-12 <= bound.mass.sum() <= 1 + 1e-9
    assert bound.shifts.min() >= 0
    assert bound.shifts.max() <= np.nextafter(high - low, np.inf)
    # Growing, each value once.
    assert (np.diff(bound.shifts[:, 0]) > 0).all()
    # Rounded to a grid the bound is still a bound of the bound.
    step = 2.0 ** np.floor(np.log2(high - low)) / 64
    coarse = bound.on_grid(np.array([step]))
    assert (coarse.shifts >= bound.shifts).all()


def test_shifts_are_rounded_upwards(three):
    rounded = 0
    for low, high in np.random.default_rng(2).random((40, 2)) + [0, 9]:
        bound = bound_of([low] * 3, [high] * 3, low, high)
        exact = Fraction(high) - Fraction(low)
        assert Fraction(float(bound.shifts.max())) >= exact
        assert bound.shifts.max() <= np.nextafter(high - low, 99)
        rounded += Fraction(float(high - low)) < exact
        assert sum(map(Fraction, bound.mass.tolist())) >= 1
    # The plain difference would not do.
    assert rounded > 5


@pytest.mark.parametrize("beta_pair", [0.0, 0.02])
def test_a_common_offset_changes_nothing(beta_pair):
    rng = np.random.default_rng(11)
    first, second = rng.integers(0, 400, (2, 600)) / 4
    plain = bound_of(first, second, 0, 100, beta_pair=beta_pair)
    for offset in (-50.0, -1024.0, 4096.0):
        moved = bound_of(
            first + offset, second + offset, offset, 100 + offset, beta_pair=beta_pair
        )
        np.testing.assert_allclose(moved.shifts, plain.shifts, rtol=1e-12)
        np.testing.assert_allclose(moved.mass, plain.mass, rtol=1e-9, atol=1e-15)


def test_more_rows_and_less_confidence_need_smaller_shifts():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2, 4000)).clip(-5, 5)
    mean = [
        float(b.mass @ b.shifts[:, 0])
        for b in (
            bound_of(rows[0, :n], rows[1, :n], -5, 5, beta_first=e, beta_second=e)
            for n, e in [(200, 0.01), (200, 0.1), (1000, 0.1), (4000, 0.1)]
        )
    ]
    assert mean == sorted(mean, reverse=True)


@pytest.mark.parametrize("n", [50, 300, 3000])
def test_exact_levels_beat_the_union_bound(n):
    # Of the same law; a share of the published width.
    atoms = stats.norm.ppf((np.arange(n) + 0.5) / n).clip(-5, 5)
    group = Conditional.from_rows(atoms[:, None])
    widths = []
    for make in (quantile_band, published_band):
        band = make(group, low=-5, high=5, error=0.025)
        cells = cells_of(band, band)
        widths.append(float(cells.mass @ cells.distance))
    assert widths[0] < 0.93 * widths[1]


def test_what_a_band_cannot_be_made_of_is_refused():
    two = Conditional.from_rows(np.ones((5, 2)))
    weighted = [
        Conditional.from_rows(np.ones((2, 1)), [1.0, 2.0]),
        Conditional.from_rows([[1.0], [2.0]], [2.0, 2.0]),
        Conditional.from_rows([[1.0], [2.0], [3.0]], [1.0, 1.0, 0.5]),
    ]
    with pytest.raises(ValueError, match="single column"):
        quantile_band(two, low=0, high=9, error=0.1)
    for group in weighted:
        with pytest.raises(ValueError, match="without weights"):
            quantile_band(group, low=0, high=9, error=0.1)
    group = conditional([1.0, 5.0])
    same = conditional([5.0, 5.0])
    cases = [(group, 2, 9), (group, 0, 4), (group, 9, 0), (group, 5, 5), (same, 5, 5)]
    for rows, low, high in cases:
        with pytest.raises(ValueError, match="outside"):
            quantile_band(rows, low=low, high=high, error=0.1)


def test_levels_at_the_ends_of_the_unit_interval():
    # A level of zero bounds nothing, and no cell has no width.
    band = Band(np.zeros(1), np.array([1.0, 9.0]), np.ones(1), np.array([0.0, 1.0]))
    cells = cells_of(band, band)
    assert cells.mass.tolist() == [np.nextafter(1.0, 1.0)]
    assert cells.distance.tolist() == [9.0]


def test_no_cell_loses_mass():
    rng = np.random.default_rng(4)
    groups = [conditional(rng.random(n)) for n in (40, 57)]
    made = [quantile_band(g, low=0, high=1, error=0.05) for g in groups]
    cells = cells_of(*made)
    levels = {1.0}.union(*(band[k].tolist() for band in made for k in (0, 2)))
    ends = [Fraction(0), *map(Fraction, sorted(levels))]
    widths = [b - a for a, b in itertools.pairwise(ends)]
    assert len(widths) == len(cells.mass)
    for width, mass in zip(widths, cells.mass.tolist(), strict=True):
        assert width <= Fraction(mass) <= width * (1 + Fraction(1, 2**51))
