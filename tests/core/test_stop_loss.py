"""The tighter bound for convex costs: each step of its proof by another road."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from core_support import conditional
from scipy import stats

from skpuffer.core import stop_loss
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.prior import Conditional
from skpuffer.core.stop_loss import Cells, tightened


def quantiles(atoms, levels):
    """Q(u) = the smallest atom with F ≥ u, of atoms of equal mass."""
    place = np.ceil(np.asarray(levels) * len(atoms) - 1e-9).astype(int) - 1
    return np.sort(atoms)[place]


def path(first, second):
    """Corners of the completed graph of (Q, Q'), both populations of equal atoms."""
    total = math.lcm(len(first), len(second))
    levels = np.arange(1, total + 1) / total
    return np.column_stack([quantiles(first, levels), quantiles(second, levels)])


def potentials(first, second, threshold):
    """f on the first atoms and g on the second, by integrating c' along the path."""
    corners = path(first, second)
    f, g = {corners[0, 0]: 0.0}, {}
    at = 0.0, max(abs(corners[0, 0] - corners[0, 1]) - threshold, 0.0)
    g[corners[0, 1]] = at[1]
    for (x, y), (x2, y2) in itertools.pairwise(corners):
        # c' is constant between the zeros of |x − y| − t on the segment.
        gap, rate = x - y, (x2 - y2) - (x - y)
        cuts = [0.0, 1.0]
        if rate:
            cuts += [(side * threshold - gap) / rate for side in (-1, 1)]
        cuts = sorted(c for c in cuts if 0 <= c <= 1)
        for a, b in itertools.pairwise(cuts):
            z = gap + rate * (a + b) / 2
            slope = float(z > threshold) - float(z < -threshold)
            at = at[0] + slope * (x2 - x) * (b - a), at[1] - slope * (y2 - y) * (b - a)
        f[x2], g[y2] = at
    return f, g


def cells_around(first, second, slack=0.0):
    """Bands around two known quantile functions; exact ones without slack."""
    corners = path(first, second)
    total = len(corners)
    lower = [corners[:, k] - slack for k in (0, 1)]
    upper = [corners[:, k] + slack for k in (0, 1)]
    distance = np.maximum(upper[0] - lower[1], upper[1] - lower[0])
    return Cells(np.full(total, 1 / total), tuple(lower), tuple(upper), distance)


def random_populations(rng):
    sizes = rng.integers(1, 9, 2)
    if rng.random() < 0.5:
        return [rng.integers(0, 7, n).astype(float) for n in sizes]
    return [rng.random(n) * 5 + rng.random() for n in sizes]


@pytest.mark.parametrize("seed", range(40))
def test_the_potentials_are_dual_and_vary_no_more_than_is_said(seed):
    rng = np.random.default_rng(seed)
    first, second = random_populations(rng)
    slack = rng.choice([0.0, 0.3])
    for threshold in (0.0, 0.5, 1.0, 2.2):
        f, g = potentials(first, second, threshold)
        for x, y in itertools.product(f, g):
            assert f[x] + g[y] <= max(abs(x - y) - threshold, 0) + 1e-9
        corners = path(first, second)
        truth = np.maximum(np.abs(corners[:, 0] - corners[:, 1]) - threshold, 0).mean()
        values = [np.array([f[x] for x in first]), np.array([g[y] for y in second])]
        assert values[0].mean() + values[1].mean() == pytest.approx(truth, abs=1e-9)
        # Samples from the populations: the inequality of the two deviations.
        drawn = [rng.integers(0, len(v), 6) for v in values]
        samples = [np.sort(p[d]) for p, d in zip((first, second), drawn, strict=True)]
        cost = np.maximum(np.abs(samples[0] - samples[1]) - threshold, 0).mean()
        short = sum(v.mean() - v[d].mean() for v, d in zip(values, drawn, strict=True))
        assert truth - cost <= short + 1e-9
        # Their spread, as the bands bound it.
        cells = cells_around(first, second, slack)
        active = cells.distance > threshold
        for v, low, high in zip(values, cells.lower, cells.upper, strict=True):
            if not active.any():
                assert np.ptp(v) == 0
                continue
            variance, length = stop_loss._spread(low, high, cells.mass, active)
            assert v.var() <= variance + 1e-12
            assert np.ptp(v) <= length + 1e-12


@pytest.mark.parametrize("p", [0.5, 0.1, 0.99])
@pytest.mark.parametrize("n", [40, 1000])
@pytest.mark.parametrize("error", [0.1, 1e-3])
def test_the_deviation_is_rarely_reached(p, n, error):
    # X is 0 or 1 and Y is 2: at threshold 0 the potential of X is −x, exactly.
    atoms = np.repeat([0.0, 1.0], [round(100 * (1 - p)), round(100 * p)])
    cells = cells_around(atoms, np.full(100, 2.0))
    reach = stop_loss._deviation(cells, (n, n), 0.0, math.log(1 / error))
    # E f − mean f ≥ reach: so many ones too many.
    most = math.ceil(n * (p + reach) - 1e-9)
    assert stats.binom.sf(most - 1, n, p) <= error
    # And it is no more than a few standard errors.
    spread = math.sqrt(p * (1 - p) / n)
    assert reach < 1.6 * math.sqrt(2 * math.log(1 / error)) * spread + 8 / n


def test_two_samples_deviate_together_less_than_apart():
    atoms = np.arange(100.0)
    far = cells_around(atoms, atoms + 500)
    both = stop_loss._deviation(far, (40_000, 40_000), 0.0, 5.0)
    one = stop_loss._deviation(far, (40_000, 4 * 10**11), 0.0, 5.0)
    assert both == pytest.approx(math.sqrt(2) * one, rel=0.01)
    assert one == pytest.approx(math.sqrt(2 * 5.0 * atoms.var() / 40_000), rel=0.02)


def mean_excess(bound, knots):
    return bound.mass @ np.maximum(bound.shifts - knots, 0)


def bounds_of(rng, n):
    first, second = (np.sort(rng.normal(m, 1, n).clip(-4, 4)) for m in (0, 0.4))
    cells = cells_around(first, second, slack=0.3)
    sample = ShiftBound(np.abs(first - second)[:, None], np.full(n, 1 / n))
    loose = ShiftBound(cells.distance[:, None], cells.mass)
    return tightened(cells, sample, (n, n), span=8.0, error=0.05), loose, sample


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_between_the_sample_and_the_bands(n):
    tight, loose, sample = bounds_of(np.random.default_rng(n), n)
    knots = np.linspace(0, 8, 500)
    allowed = mean_excess(loose, knots)
    assert (mean_excess(tight, knots) <= allowed * (1 + 1e-9) + 1e-9).all()
    assert (mean_excess(tight, knots) >= mean_excess(sample, knots) - 1e-12).all()
    assert tight.shifts.max() == loose.shifts.max()
    assert tight.shifts.min() > 0
    assert tight.grouped
    if n == 3000:
        assert mean_excess(tight, 0.0) < 0.8 * mean_excess(loose, 0.0)


def test_at_each_threshold_it_is_what_the_sample_says_and_may_deviate():
    n, rng = 3000, np.random.default_rng(2)
    first, second = (np.sort(rng.normal(m, 1, n).clip(-4, 4)) for m in (0, 2))
    cells = cells_around(first, second, slack=0.3)
    sample = ShiftBound(np.abs(first - second)[:, None], np.full(n, 1 / n))
    tight = tightened(cells, sample, (n, n), span=8.0, error=0.05)
    loose = ShiftBound(cells.distance[:, None], cells.mass)
    gained = 0
    thresholds = 8.0 * stop_loss._THRESHOLDS
    for threshold in thresholds[thresholds < cells.distance.max()].tolist():
        level = math.log(len(stop_loss._THRESHOLDS) / 0.05)
        most = mean_excess(sample, threshold)
        most += stop_loss._deviation(cells, (n, n), threshold, level)
        assert mean_excess(tight, threshold) <= most * (1 + 1e-9)
        gained += most < 0.95 * mean_excess(loose, threshold)
    # From the bands alone that would not follow.
    assert gained > 3


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**-20, 2.0**20, 2.0**60])
def test_the_unit_of_the_data_does_not_matter(unit):
    rng = np.random.default_rng(1)
    first, second = (np.sort(rng.normal(m, 1, 300).clip(-4, 4)) for m in (0, 0.4))
    sample = np.abs(first - second)[:, None]
    found = [
        tightened(
            cells_around(first * u, second * u, slack=0.3 * u),
            ShiftBound(sample * u, np.full(300, 1 / 300)),
            (300, 300),
            span=8.0 * u,
            error=0.05,
        )
        for u in (1.0, unit)
    ]
    np.testing.assert_array_equal(found[0].shifts * unit, found[1].shifts)
    np.testing.assert_allclose(found[0].mass, found[1].mass, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_the_envelope_is_the_greatest_convex_function_below(seed):
    rng = np.random.default_rng(seed)
    knots = np.unique(np.append(2.0**-40, rng.random(12) * 10))
    excess = np.append(np.sort(rng.random(len(knots) - 1) * 5)[::-1], 0.0)
    bound = stop_loss._distribution(knots, excess.copy())
    assert bound.mass.sum() == pytest.approx(1, abs=1e-9)
    # By all supporting lines of slope in [−1, 0]: biconjugation on a fine grid.
    slopes = -np.linspace(0, 1, 20_001)
    heights = np.min(excess - slopes[:, None] * knots, axis=1)
    for point in np.append(knots, rng.random(20) * knots[-1]):
        envelope = np.max(heights + slopes * point)
        assert mean_excess(bound, point) == pytest.approx(envelope, abs=2e-3)
        assert mean_excess(bound, point) >= envelope - 1e-10


def test_small_excesses_keep_their_digits():
    shifts = np.array([1.0, 1e9, 1e9 + 1e-6])
    mass = np.array([0.5, 0.5 - 1e-9, 1e-9])
    found = stop_loss._mean_excess(shifts, mass, shifts)
    step = (1e9 + 1e-6) - 1e9
    assert found[1] == pytest.approx(1e-9 * step, rel=1e-9)
    assert found[1] >= 1e-9 * step
    assert found[2] == 0.0


@pytest.mark.parametrize("step", [2.0**-6, 2.0**-3])
def test_the_grid_moves_the_bound_by_more_than_the_data(step):
    rng = np.random.default_rng(3)
    tight, _, sample = bounds_of(rng, 3000)
    on_grid = tight.on_grid(np.array([step]))
    knots = np.linspace(0, 8, 500)
    # Rounding moves each shift to the next multiple at most.
    up = ShiftBound(np.ceil(sample.shifts / step) * step, sample.mass)
    assert (mean_excess(on_grid, knots) >= mean_excess(up, knots) - 1e-12).all()
    shifted = np.maximum(knots - step, 0)
    assert (mean_excess(on_grid, knots) >= mean_excess(tight, shifted) - 1e-12)[
        knots >= step
    ].all()


def test_thresholds_beyond_every_shift_are_of_no_use():
    # The range is a thousand times wider than the bands.
    group = conditional(np.arange(3.0))
    assert isinstance(group, Conditional)
    cells = cells_around(np.arange(3.0), np.arange(3.0) + 1)
    sample = ShiftBound(np.ones((1, 1)), np.ones(1))
    bound = tightened(cells, sample, (3, 3), span=1000.0, error=0.05)
    assert bound.shifts.max() == 1.0
    assert mean_excess(bound, 0.0) == pytest.approx(1.0, rel=1e-9)


def test_a_variance_counts_what_the_bands_leave_open():
    # The truth may be low where it is low anyway, and high where it is high.
    lower, upper = np.arange(100.0), np.arange(100.0) + 30
    truth = np.where(np.arange(100) < 50, lower, upper)
    mass = np.full(100, 0.01)
    variance, length = stop_loss._spread(lower, upper, mass, np.ones(100, dtype=bool))
    assert variance >= truth.var() > ((lower + upper) / 2).var()
    assert variance == pytest.approx(truth.var(), rel=1e-6)
    assert length == pytest.approx(129)


def test_the_thresholds_share_the_error(monkeypatch):
    spent = []
    honest = stop_loss._deviation

    def record(cells, sizes, threshold, log_error):
        spent.append((threshold, math.exp(-log_error)))
        return honest(cells, sizes, threshold, log_error)

    monkeypatch.setattr(stop_loss, "_deviation", record)
    bounds_of(np.random.default_rng(0), 300)
    thresholds = [threshold for threshold, _ in spent]
    assert len(set(thresholds)) == len(spent) > 5
    assert set(thresholds) <= set(8.0 * stop_loss._THRESHOLDS)
    assert sum(error for _, error in spent) <= 0.05 * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_round_off_never_lowers_a_mean_excess(seed):
    # In fractions: what the floats of the bound mean, against what it was made from.
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.random(150)) * 80
    mass = rng.dirichlet(np.full(150, 0.3))
    excess = stop_loss._mean_excess(knots, mass, knots)
    bound = stop_loss._distribution(knots, excess)
    atoms = [
        (Fraction(shift), Fraction(share))
        for shift, share in zip(
            bound.shifts[:, 0].tolist(), bound.mass.tolist(), strict=True
        )
    ]
    for knot, wanted in zip(knots.tolist(), excess.tolist(), strict=True):
        reached = sum(m * max(s - Fraction(knot), Fraction(0)) for s, m in atoms)
        assert reached >= Fraction(wanted)
    assert bound.mass.sum() == pytest.approx(1, abs=1e-6)
