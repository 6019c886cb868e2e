"""Ends of cells in place of many atoms: exact at the ends, bounds in between."""

import math

import numpy as np
import pytest
from core_support import conditional

from skpuffer.core.coupling import couple
from skpuffer.core.mixtures import MixturePair
from skpuffer.core.mixtures import _laplace as laplace_module
from skpuffer.core.mixtures._atomic import Atomic
from skpuffer.core.mixtures._ends import Ends
from skpuffer.core.mixtures._laplace import LaplaceMixtures
from skpuffer.core.mixtures._moments import CellMoments


def random_parts(rng, n=400):
    """Two distributions on [0, 1], each with a bare half, and dense in one place."""
    parts = []
    for low in (0.0, 0.5):
        places = np.sort(np.concatenate([[0, 1], low + rng.random(n) / 2]))
        places[50:90] = places[50] + np.arange(40) * 1e-5
        places.sort()
        parts.append(Atomic(places, rng.integers(1, 50, len(places))))
    return parts


def pair_of(parts):
    sides = [conditional(part.places, part.mass) for part in parts]
    return MixturePair.from_coupling(couple(*sides, np.ones(1)))


def bound(item, alpha, scale, epsilon, tolerance):
    return LaplaceMixtures().bound(
        item, alpha=alpha, scale=scale, epsilon=epsilon, tolerance=tolerance
    )


def test_densities_outside_a_cell_do_not_change():
    parts = random_parts(np.random.default_rng(0))
    for cells, scale in ((64, 1.0), (64, 50.0), (1024, 0.1)):
        moments = CellMoments.of(parts, cells)
        ends = Ends.of(moments, scale)
        assert ends.places[-1] == pytest.approx(1)
        for part, mass, rest in zip(parts, ends.masses, ends.rest, strict=True):
            at = ends.places[:, None]
            direct = np.exp(-np.abs(at - part.places) / scale) @ part.probabilities
            found = np.exp(-np.abs(at - ends.places) / scale) @ mass
            np.testing.assert_allclose(found, direct, rtol=ends.error)
            # Nothing is lost.
            assert mass.sum() + rest.sum() == pytest.approx(1, abs=1e-9)
    assert moments.table[:, 0].sum(axis=1) == pytest.approx(1)
    assert 35 <= moments.most <= 45


def test_wide_cells_are_refused():
    moments = CellMoments.of(random_parts(np.random.default_rng(0)), 64)
    assert Ends.of(moments, 0.9) is None
    assert Ends.of(moments, 1.1) is not None


@pytest.mark.parametrize("alpha", [1.1, 2.0, 6.0, 40.0])
def test_bounds_enclose_the_divergence(alpha, monkeypatch):
    # As wide as cells may be, where what they lack shows.
    for seed in range(5):
        parts = random_parts(np.random.default_rng(seed))
        item, scale = pair_of(parts), 1.05
        truth = bound(item, alpha, scale, 0.5, 1e-8)
        assert truth.upper <= truth.estimate * (1 + 1e-7)
        ends = Ends.of(CellMoments.of(parts, 64), scale)
        seen = []

        def spy(self, *arguments, seen=seen, missing=Ends.missing):
            seen.extend(missing(self, *arguments))
            return seen[-2:]

        with monkeypatch.context() as patch:
            patch.setattr(Ends, "missing", spy)
            found = laplace_module._from_ends(ends, alpha, scale, 0.5, 0.01)
        assert truth.upper * (1 - 1e-7) <= found.upper <= truth.upper * 1.01
        assert found.estimate == pytest.approx(truth.upper, rel=2e-4)
        # Without what is missing it would be too low.
        for below, above in seen:
            assert 0 < below < above


def test_the_smaller_set_serves_where_it_is_close(monkeypatch):
    rng = np.random.default_rng(2)
    item = pair_of([Atomic(np.sort(rng.normal(m, s, 3000)), np.ones(3000, int))
                    for m, s in ((0, 1), (0.3, 1.2))])  # fmt: skip
    for alpha, scale in ((3.0, 0.5), (1.2, 0.3), (20.0, 2.0)):
        direct = bound(item, alpha, scale, 0.3, 1e-8)
        with monkeypatch.context() as patch:
            patch.setattr(laplace_module, "_MANY", 1000)
            found = bound(item, alpha, scale, 0.3, 4e-6)
        assert direct.estimate * (1 - 1e-9) <= found.upper
        if found.upper < 1:
            assert found.upper <= direct.upper * (1 + 4e-5)
    atoms = bound(item, 3.0, 0.5, 0.3, 1e-6)
    limit = bound(item, math.inf, 0.5, 0.3, 1e-6)
    monkeypatch.setattr(laplace_module, "_MANY", 1000)
    rough = bound(item, math.inf, 0.5, 0.3, 1e-3)
    assert rough.upper == math.inf
    assert rough.estimate == pytest.approx(limit.upper, rel=1e-3)
    assert bound(item, math.inf, 0.5, 0.3, 1e-6) == limit
    # The atoms themselves: for a tolerance too fine, and cells too wide.
    fine = bound(item, 3.0, 0.5, 0.3, 1e-12)
    assert atoms.estimate == pytest.approx(fine.estimate, rel=1e-7)
    monkeypatch.setattr(Ends, "of", lambda *_: None)
    assert bound(item, 3.0, 0.5, 0.3, 1e-6) == atoms


def test_ends_out_of_reach_leave_it_to_the_atoms():
    # Some 900 scales from each to the other, for both or for one side alone.
    places = np.linspace(0, 0.05, 50)
    near, far = (Atomic(places + low, np.ones(50, int)) for low in (0.0, 0.95))
    both = Atomic(np.append(near.places, far.places), np.ones(100, int))
    for parts in ((near, far), (near, both), (both, near)):
        ends = Ends.of(CellMoments.of(parts), 1e-3)
        assert laplace_module._from_ends(ends, 2.0, 1e-3, 1.0, 1e-3) is None


def test_what_overflows_is_not_known():
    ends = Ends.of(CellMoments.of(random_parts(np.random.default_rng(1)), 64), 2.0)
    assert (ends.rest == 0).any()
    (_, there), (_, back) = ends.missing(np.full(65, 800.0), 1e-9, 3.0, 0.0)
    assert there == math.inf
    assert -1 < back < 0
