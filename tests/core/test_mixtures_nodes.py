"""What stands for many atoms: sums, moments, nodes and ends, each to its stated error."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from numpy.polynomial import hermite_e

from skpuffer.core.mixtures._atomic import Atomic
from skpuffer.core.mixtures._ends import Ends, _weighed
from skpuffer.core.mixtures._interpolated import (
    EqualNodes,
    _chebyshev,
    _derivative,
    condensed_error,
)
from skpuffer.core.mixtures._moments import CellMoments
from skpuffer.core.mixtures._recurrence import half_densities

# --- sums of exponentials ---


@pytest.mark.parametrize("span", [299.0, 640.0, 5e3])
def test_the_error_of_few_exponentials_is_stated(span):
    # Each exponent of a few hundred is rounded, whatever the number of atoms.
    rng = np.random.default_rng(0)
    for _ in range(20):
        scale = 10 ** rng.uniform(-4, 2)
        start = rng.uniform(-2, 2) * span * scale
        atoms = np.sort(rng.uniform(0, span * scale, 6)) + start
        masses = np.eye(6)[[0, 5]]
        first, second, error = half_densities(atoms, scale, tuple(masses))
        assert error < 2e-12
        for found, own in ((first, 0), (second, 5)):
            for got, x in zip(found, atoms, strict=True):
                step = abs(mpmath.mpf(x) - mpmath.mpf(atoms[own]))
                expected = mpmath.exp(-step / mpmath.mpf(scale))
                if expected > 1e-280:
                    assert abs(mpmath.mpf(got) / expected - 1) <= error


def test_the_error_of_many_additions_is_stated():
    # Each is rounded up by a quarter of the last digit.
    atoms, masses = np.arange(40_000) * 1e-30, np.full(40_000, 0.75 * 2.0**-52)
    masses[0] = 1.0
    first, second, error = half_densities(atoms, 1.0, (masses, masses[::-1]))
    truth = math.fsum(masses)
    assert abs(first / truth - 1).max() > 9000 * 2.0**-52
    for found in (first, second):
        assert abs(found / truth - 1).max() <= error


def test_atoms_that_do_not_see_each_other():
    rng = np.random.default_rng(1)
    atoms, masses = np.arange(3000) * 900.0, rng.random((2, 3000))
    first, second, error = half_densities(atoms, 1.0, tuple(masses))
    np.testing.assert_array_equal([first, second], masses)
    assert 0 < error < 1e-11


# --- moments ---


@pytest.mark.parametrize("masses", [[3], [2, 2], [1, 5], [7, 2, 2, 2]])
def test_moments_of_few_atoms_beside_others(masses):
    rng = np.random.default_rng(2)
    few = Atomic(np.sort(rng.uniform(3, 9, len(masses))), np.array(masses))
    many = Atomic(np.sort(rng.uniform(2, 11, 50)), np.ones(50, int))
    for parts in ((few, many), (many, few)):
        moments = CellMoments.of(parts, 4)
        assert moments.low == many.places[0]
        edges = np.linspace(many.places[0], many.places[-1], 5)
        assert moments.width == pytest.approx(edges[1] - edges[0], rel=1e-14)
        most = 0
        for part, table in zip(parts, moments.table, strict=True):
            cell = np.clip(np.searchsorted(edges, part.places, "right") - 1, 0, 3)
            most = max(most, np.bincount(cell).max())
            u = (part.places - (edges[cell] + edges[cell + 1]) / 2) / moments.width
            for degree in range(4):
                weights = part.mass / part.mass.sum() * u**degree
                expected = np.bincount(cell, weights, 4)
                np.testing.assert_allclose(table[degree], expected, atol=1e-14)
        assert moments.most == most


# --- interpolation ---


@pytest.mark.parametrize("order", [4, 16])
def test_derivatives_of_the_density_are_bounded(order):
    # f^(k) is f times a Hermite polynomial; f itself varies on the cell.
    series = np.eye(order + 1)[order]
    for width in (0.01, 0.25):
        for reach in (0.0, 0.5, 3.0, 10.0, 100.0, 1000.0):
            # No point of the cell is beyond `reach` but by its width.
            far = np.linspace(max(reach - width, 0), reach + width, 200)
            size = np.abs(hermite_e.hermeval(far, series))
            top, bottom = -(far**2) / 2, -((reach + width) ** 2) / 2
            inner = -(np.minimum(far + width, reach + width) ** 2) / 2
            most = (size * np.exp(top - np.maximum(inner, bottom))).max()
            found = _derivative(order, reach, width)
            assert most <= found * (1 + 1e-9)
            if reach == 1000:
                assert found <= 1.2 * most


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("scale", [0.01, 0.03])
def test_cubic_nodes_err_as_stated(scale, side):
    # The atom in the middle of a cell lies where the polynomial is 9/16; the other
    # one where it is one. Far away all bounds are close to what happens.
    cell = 31_000
    for place in (0.5, 0.5 - math.sqrt(5) / 6):
        inner = (cell + place) / 2**16
        parts = [Atomic(np.array([0, inner, 1.0]), np.array([1, 7, 1]))] * 2
        nodes = EqualNodes.of(CellMoments.of(parts))
        for reach in (5.0, 12.0, 40.0):
            point = inner + side * reach * scale
            at = nodes.low + nodes.spacing * np.arange(3 * cell, 3 * cell + 4)
            masses = nodes.masses[0][3 * cell : 3 * cell + 4] * 9 / 7
            # Relative to the atom's own density, which may be below all floats.
            power = (inner - at) * (at + inner - 2 * point) / (2 * scale**2)
            missed = abs(masses @ np.exp(power) - 1)
            found = nodes.error(scale, reach)
            assert missed <= found
            if reach == 40 and place != 0.5:
                assert found <= 2 * missed


def test_chebyshev_nodes_err_as_stated():
    series = np.eye(17)[16]
    for size in (40, 700):
        nodes, weights = _chebyshev(size)
        assert len(nodes) == 16
        at = np.arange(size)
        # Polynomials of a degree below their number are exact.
        for degree in range(16):
            power = (2 * nodes / (size - 1) - 1) ** degree
            np.testing.assert_allclose(
                weights @ power, (2 * at / (size - 1) - 1) ** degree, atol=1e-12
            )
        # A cell is a quarter of the scale wide; f^(16) times what the nodes leave.
        left = np.abs(np.subtract.outer(at, nodes) * 0.25 / (size - 1)).prod(axis=1)
        for reach in (0.0, 3.0, 12.0, 30.0, 300.0):
            largest = np.abs(hermite_e.hermeval(reach + 0.25, series))
            largest *= math.exp(0.25 * reach + 0.25**2 / 2)
            found = condensed_error(reach)
            expected = left.max() * largest / math.factorial(16)
            assert found >= expected * (1 - 1e-9)
            assert found <= 1.5 * expected or reach < 300
            # And what truly happens to an atom at either end of the cell.
            steps = np.array([reach, reach + 0.25]), nodes * 0.25 / (size - 1) + reach
            own, there = (np.exp(-(s**2) / 2 + reach**2 / 2) for s in steps)
            missed = np.abs(weights[[0, -1]] @ there / own - 1)
            assert (missed <= found + 1e-12).all()


# --- ends of cells ---


def parts_of(rng, n=300):
    places = [np.sort(np.append(rng.random(n), [0.0, 1.0])) for _ in range(2)]
    return [Atomic(x, rng.integers(1, 50, n + 2)) for x in places]


@pytest.mark.parametrize("scale", [1.01, 30.0, 1e3])
def test_what_the_ends_lack_is_enclosed(scale):
    # 1 − cosh u / cosh h for each atom, with differences in place of powers.
    parts = parts_of(np.random.default_rng(3))
    ends = Ends.of(CellMoments.of(parts, 64), scale)
    assert ends.half == pytest.approx(1 / 128 / scale, rel=1e-14)
    h = 1 / 128 / scale
    for part, rest, least in zip(parts, ends.rest, ends.least, strict=True):
        cell = np.minimum((part.places * 64).astype(int), 63)
        u = (part.places - (cell + 0.5) / 64) / scale
        lack = 2 * np.sinh((h + u) / 2) * np.sinh((h - u) / 2) / math.cosh(h)
        mass = part.mass / part.mass.sum()
        lacking = np.bincount(cell, mass * lack, 64)
        mass = np.bincount(cell, mass, 64)
        assert (least <= lacking).all()
        assert (lacking <= rest).all()
        # The next terms of the series, and round-off.
        assert (rest - least <= mass * (h**4 / 6 + 4e-8 * h**2)).all()


def test_signs_choose_the_masses():
    # The sum is that of the larger terms for one order of the masses, of the smaller
    # ones for the other.
    rng = np.random.default_rng(4)
    factors = tuple(rng.normal(0, 0.4, (2, 50)))
    small = tuple(rng.random((2, 50)))
    large = tuple(x + rng.random(50) for x in small)
    for given, most in (((large, small), np.min), ((small, large), np.max)):
        expected = sum(
            most([f * a, f * b], axis=0).sum()
            for f, a, b in zip(factors, small, large, strict=True)
        )
        assert _weighed(factors, *given) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("alpha", [1.1, 3.0, 20.0])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_the_rest_is_charged_at_any_ratio_it_may_have(alpha, shift):
    # What is missing lies between `least` and `rest`, here far apart, and the ratio
    # between those of the ends, which the rest itself and round-off move.
    rng = np.random.default_rng(5)
    half, error, cells = 1 / 130, 1e-4, 30
    rest = rng.random((2, cells))
    least = rest * rng.random((2, cells))
    ends = Ends(np.zeros(0), (np.zeros(0),) * 2, rest, least, half, 0.0)
    ratio = np.cumsum(rng.normal(0, 0.3, cells + 1))
    found = ends.missing(ratio, error, alpha, shift)
    moved, one = math.log1p(half * math.exp(3 * half)), math.exp(-shift)
    for side, (below, above) in enumerate(found):
        there = ratio if side == 0 else -ratio
        bottom = np.minimum(there[1:], there[:-1]) - 2 * error
        top = np.maximum(there[1:], there[:-1]) + 2 * error
        for got, ends_of, most in (
            (below, (bottom, top), np.min),
            (above, (bottom - moved, top + moved), np.max),
        ):
            ratios = np.exp(ends_of)
            rising = alpha * (ratios ** (alpha - 1) - 1) * one
            falling = (alpha - 1) * (1 - ratios**alpha) * one
            # Each of the two terms at its worst.
            expected = sum(
                most([f * m for f, m in product(factor, masses)], axis=0).sum()
                for factor, masses in (
                    (rising, (least[side], rest[side])),
                    (falling, (least[1 - side], rest[1 - side])),
                )
            )
            assert got == pytest.approx(expected, rel=1e-11)
