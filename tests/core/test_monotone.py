"""Shifts of very many distinct values, against the coupling with all its pairs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from core_support import conditional

from skpuffer.core import monotone
from skpuffer.core.calibration import RULES, Budget, Pair, calibrate
from skpuffer.core.coupling import couple
from skpuffer.core.laws import LAWS
from skpuffer.core.monotone import Gate, Matching, MonotoneShifts, Part
from skpuffer.core.plans import TransportPlanError

SIZES = [(1, 1), (1, 7), (3, 7), (4, 6), (5, 5), (8, 12), (17, 64), (63, 64), (30, 210)]


def values(rng, n, kind="normal"):
    """Distinct sorted values."""
    drawn = {
        "normal": lambda: rng.normal(size=n),
        "integers": lambda: rng.permutation(2 * n + 3)[:n].astype(float),
        "far": lambda: 1e9 + rng.permutation(3 * n)[:n] / 64,
        "wide": lambda: np.exp(rng.normal(0, 8, n)),
    }[kind]()
    assert len(np.unique(drawn)) == n
    return np.sort(drawn)


def pairs(few, many):
    """(shift, mass) of the coupling that has all its pairs."""
    bound = couple(conditional(few), conditional(many), np.ones(1)).shift_bound()
    return sorted(zip(bound.shifts[:, 0].tolist(), bound.mass.tolist(), strict=True))


@pytest.fixture
def small(monkeypatch):
    """Blocks, runs and cells that small samples fill."""
    monkeypatch.setattr(monotone, "CELLS", 2)
    monkeypatch.setattr(monotone, "_LONGEST_RUN", 4)
    monkeypatch.setattr(monotone, "_BLOCK", 8)


@pytest.mark.parametrize("kind", ["normal", "integers", "far", "wide"])
@pytest.mark.parametrize("sizes", SIZES)
def test_parts_are_the_pairs_of_the_coupling(sizes, kind):
    n, m = sizes
    rng = np.random.default_rng(n + m)
    few, many = values(rng, n, kind), values(rng, m, kind) + 1
    matching = Matching(few, many)
    expected = pairs(few, many)
    for columns in (slice(0, m), np.arange(m)):
        near, far, share = matching.shifts(matching.part(columns))
        if far is None:
            assert n == m
            far, share = near, np.zeros(m)
        found = [
            *zip(near.tolist(), ((1 - share) / m).tolist(), strict=True),
            *((d, s / m) for d, s in zip(far, share, strict=True) if s > 0),
        ]
        found = np.array(sorted(found))
        assert len(found) == n + m - math.gcd(n, m)
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)
        assert (found[:, 0] >= np.array(expected)[:, 0]).all()
    # Some of the columns, as they are looked at again.
    chosen = np.arange(0, m, 2)
    part, whole = matching.part(chosen), matching.part(np.arange(m))
    if part.mass is not None:
        assert part.rows.tolist() == whole.rows[chosen].tolist()
        assert part.mass.tolist() == whole.mass[chosen].tolist()


def test_shifts_are_never_rounded_down():
    rng = np.random.default_rng(0)
    few = np.append(rng.normal(size=2000), [1e300, 5e-324, 0.0, 3e-310])
    many = np.append(rng.normal(1e-3, 1, size=2000), [-1e300, 0.0, 0.0, -4e-310])
    found = monotone._distance(few, many)
    for x, y, distance in zip(few.tolist(), many.tolist(), found.tolist(), strict=True):
        true = abs(Fraction(x) - Fraction(y))
        assert true <= Fraction(distance) <= true * (1 + Fraction(1, 2**51))
    assert found[-2] == 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["normal", "integers", "far", "wide"])
@pytest.mark.parametrize("seed", range(25))
def test_fewer_shifts_bound_all_of_them(seed, kind):
    rng = np.random.default_rng(seed)
    n, m = sorted(rng.integers(1, 90, 2).tolist())
    if seed % 5 == 0:
        n = m
    few, many = values(rng, n, kind), values(rng, m, kind)
    shifts, mass = np.array(pairs(few, many)).T
    fewer = monotone.compressed_shifts(few, many, 16)
    positive = shifts[shifts > 0]
    if fewer is None:
        assert len(np.unique(positive)) <= 1
        return
    assert fewer.grouped
    nodes = fewer.shifts[:, 0]
    assert nodes.max() == pytest.approx(shifts.max(), rel=3e-16)
    assert nodes[nodes > 0].min() == pytest.approx(positive.min(), rel=1e-3)
    assert nodes[nodes > 0].min() >= positive.min()
    assert 1 - 1e-12 <= fewer.mass.sum() <= 1 + 1e-10
    assert fewer.mass[nodes == 0].sum() == pytest.approx(mass[shifts == 0].sum())
    assert fewer.mass @ nodes == pytest.approx(mass @ shifts, rel=1e-8)
    width = (shifts.max() - positive.min()) / 16
    for scale in (shifts.max() / 30, shifts.max() / 3, shifts.max()):
        exact = math.fsum((mass * np.exp(shifts / scale)).tolist())
        found = math.fsum((fewer.mass * np.exp(nodes / scale)).tolist())
        assert found >= exact * (1 - 1e-14)
        # Twice the error of a chord over a cell: of runs, then of cells.
        chord = np.cosh(width / scale)
        assert found <= exact * chord**2 * (1 + 1e-8)
    # What the data rounded to a grid move is bounded as well.
    step = 2.0 ** math.floor(math.log2(width) - 3)
    up = np.ceil(shifts / step) * step
    on_grid = fewer.on_grid(np.array([step]))
    for scale in (shifts.max() / 30, shifts.max()):
        exact = math.fsum((mass * np.exp(up / scale)).tolist())
        assert (
            math.fsum((on_grid.mass * np.exp(on_grid.shifts[:, 0] / scale)).tolist())
            >= exact
        )


def test_very_many_are_summarised_closely():
    rng = np.random.default_rng(3)
    few, many = np.sort(rng.normal(size=200_000)), np.sort(rng.normal(0.3, 2, 300_001))
    bound = couple(conditional(few), conditional(many), np.ones(1)).shift_bound()
    fewer = monotone.compressed_shifts(few, many, monotone.CELLS)
    general = bound.compressed()
    assert len(fewer.mass) <= len(general.mass) * 1.01
    shifts = bound.shifts[:, 0]
    for scale in (0.2, 1.0, 5.0):
        exact = math.fsum((bound.mass * np.expm1(shifts / scale)).tolist())
        found = math.fsum((fewer.mass * np.expm1(fewer.shifts[:, 0] / scale)).tolist())
        assert exact * (1 - 1e-13) <= found <= exact * (1 + 1e-7)


def test_a_common_offset_changes_nothing():
    rng = np.random.default_rng(4)
    few = np.sort(rng.permutation(2**20)[:70_000] / 64)
    many = np.sort(rng.permutation(2**20)[:80_000] / 32)
    found, moved = (
        monotone.compressed_shifts(few + by, many + by, monotone.CELLS)
        for by in (0.0, 2.0**30)
    )
    np.testing.assert_array_equal(found.shifts, moved.shifts)
    np.testing.assert_allclose(found.mass, moved.mass, rtol=1e-9, atol=1e-15)


# --- the gate ---


def parts(n, m, block=5):
    matching = Matching(np.arange(float(n)), np.arange(float(m)))
    return [
        matching.part(slice(start, min(start + block, m)))
        for start in range(0, m, block)
    ]


def gate_of(n, m, some):
    gate = Gate(n, m)
    for part in some:
        gate.let_through(part)
    gate.close()


@pytest.mark.parametrize("sizes", SIZES)
def test_the_gate_lets_a_coupling_through(sizes):
    for block in (1, 3, 5, 1000):
        gate_of(*sizes, parts(*sizes, block))


def changed(part, field, change):
    array = getattr(part, field).copy()
    change(array)
    return part._replace(**{field: array})


def add(place, by):
    def change(array):
        array[place] += by

    return change


def swap(array):
    array[[1, -1]] = array[[-1, 1]]


BROKEN = {
    "missing at the end": lambda all_: all_[:-1],
    "missing at the start": lambda all_: all_[1:],
    "missing between": lambda all_: [all_[0], *all_[2:]],
    "twice": lambda all_: [all_[0], *all_],
    "out of order": lambda all_: [all_[1], all_[0], *all_[2:]],
    "no slice": lambda all_: [all_[0]._replace(columns=np.arange(5)), *all_[1:]],
    "too few": lambda all_: [all_[0]._replace(columns=slice(0, 6)), *all_[1:]],
    "too short": lambda all_: [all_[0]._replace(mass=all_[0].mass[:-1]), *all_[1:]],
    "another row": lambda all_: [changed(all_[0], "rows", add(4, 1)), *all_[1:]],
    "a row before": lambda all_: [all_[0], changed(all_[1], "rows", add(0, -2))],
    "a row beyond": lambda all_: [*all_[:-1], changed(all_[-1], "rows", add(-1, 1))],
    "rows swapped": lambda all_: [changed(all_[0], "rows", swap), *all_[1:]],
    "less mass": lambda all_: [changed(all_[0], "mass", add(1, -1)), *all_[1:]],
    "more mass": lambda all_: [changed(all_[0], "mass", add(2, 1)), *all_[1:]],
    "no mass": lambda all_: [
        changed(all_[0], "mass", lambda a: a.__setitem__(0, 0)),
        *all_[1:],
    ],
    "a fraction": lambda all_: [changed(all_[0], "mass", add(2, -0.5)), *all_[1:]],
    "fractions that add up": lambda all_: [
        changed(all_[0], "mass", add([0, 1], [-0.5, 0.5])),
        *all_[1:],
    ],
    "not a number": lambda all_: [
        changed(all_[0], "mass", add(2, math.nan)),
        *all_[1:],
    ],
    "all to the first": lambda all_: [all_[0]._replace(mass=None), *all_[1:]],
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_gate_stops_everything_else(name):
    # Seven of mass 12 against twelve of mass 7.
    good = parts(7, 12)
    gate_of(7, 12, good)
    with pytest.raises(TransportPlanError, match="marginals"):
        gate_of(7, 12, BROKEN[name](good))


@pytest.mark.parametrize("rows", [slice(0, 4), slice(1, 6), np.array([0, 1, 2, 2, 4])])
def test_the_gate_stops_a_wrong_match_of_equal_sizes(rows):
    gate_of(5, 5, [Part(slice(0, 5), slice(0, 5), None)])
    with pytest.raises(TransportPlanError):
        gate_of(5, 5, [Part(slice(0, 5), rows, None)])


@pytest.mark.usefixtures("small")
def test_what_the_gate_stops_is_not_summarised(monkeypatch):
    good = Matching.part

    def forgetful(self, columns):
        part = good(self, columns)
        return part._replace(mass=np.maximum(part.mass - 1, 1))

    monkeypatch.setattr(Matching, "part", forgetful)
    with pytest.raises(TransportPlanError):
        monotone.compressed_shifts(np.arange(7.0), np.arange(12.0) + 0.5, 4)


# --- where it serves ---


def test_it_serves_very_many_distinct_values_of_one_column():
    rng = np.random.default_rng(5)
    many = conditional(rng.normal(size=2**16 + 1))
    few = conditional([1.0, 2.0])
    assert MonotoneShifts.serves(few, many)
    assert MonotoneShifts.serves(many, few)
    for other in (
        conditional([1.0, 1.0, 2.0]),
        conditional([1.0, 2.0], [1.0, 2.0]),
    ):
        assert not MonotoneShifts.serves(other, many)
        assert not MonotoneShifts.serves(many, other)
    assert not MonotoneShifts.serves(few, conditional(rng.normal(size=2**16)))
    two = conditional(rng.normal(size=(2**16 + 1, 2)))
    assert not MonotoneShifts.serves(two, two)


def test_masses_must_be_whole_numbers_of_floats(monkeypatch):
    many = conditional(np.random.default_rng(6).normal(size=2**16 + 1))
    few = conditional([1.0, 2.0])
    monkeypatch.setattr(monotone, "_EXACT", 2 * (2**16 + 1))
    assert not MonotoneShifts.serves(few, many)
    monkeypatch.setattr(monotone, "_EXACT", 2 * (2**16 + 1) + 1)
    assert MonotoneShifts.serves(few, many)


def test_a_pair_keeps_no_more_pairs_than_it_is_asked_for():
    rng = np.random.default_rng(7)
    first, second = (conditional(rng.normal(m, 1, 70_000)) for m in (0, 1))
    pair = Pair(first, second, np.ones(1))
    assert isinstance(pair.bound, MonotoneShifts)
    assert not pair.bound.is_zero
    assert len(pair.bound.compressed().mass) < 2**16
    assert "coupling" not in vars(pair)
    whole = couple(first, second, np.ones(1)).shift_bound()
    np.testing.assert_array_equal(pair.bound.shifts, whole.shifts)
    np.testing.assert_array_equal(pair.bound.mass, whole.mass)
    assert pair.bound.rounded_up().shifts.max() == whole.shifts.max()
    same = Pair(first, conditional(first.support), np.ones(1))
    assert same.bound.is_zero
    assert same.bound.compressed().is_zero
    # A constant shift leaves cells no width.
    moved = Pair(first, conditional(first.support + 2.0**60), np.ones(1))
    assert moved.bound.compressed().shifts.max() >= 2.0**60


@pytest.mark.parametrize("sizes", [(70_000, 70_000), (50_000, 90_001)])
@pytest.mark.parametrize("rule", sorted(set(RULES) - {"exact"}))
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_scales_are_those_of_the_general_path(law, rule, sizes, monkeypatch):
    rng = np.random.default_rng(8)
    first, second = (
        conditional(rng.normal(mean, std, n))
        for n, mean, std in zip(sizes, (0.0, 0.3), (1.0, 1.2), strict=True)
    )

    def scale():
        pair = Pair(first, second, np.ones(1))
        return calibrate([pair], LAWS[law](), RULES[rule](), Budget(4.0, 1.0)).scale[0]

    streamed = scale()
    monkeypatch.setattr(MonotoneShifts, "serves", staticmethod(lambda *_: False))
    # Scales are multiples of 2^-20 of themselves.
    assert streamed == pytest.approx(scale(), rel=1.1 * 2.0**-20)
