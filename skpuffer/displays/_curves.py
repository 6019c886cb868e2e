"""Histograms, densities and quantile curves of weighted atoms, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import Conditional, FloatArray

# Numbers of a block of (points, atoms) that are worked on at a time.
_BLOCK = 2**16
# Points of a curve, and of one of many atoms, which is smooth; atoms are points too
# where there are no more than these.
_POINTS, _FEWER, _ATOMS = 401, 201, 400
_MANY = 20_000
_BINS = 50
_TAIL = 0.002


def quantiles(conditional: Conditional, levels: Any) -> FloatArray:
    """Return the quantile function of one column: the least value of enough mass."""
    masses = np.cumsum(conditional.probabilities)
    places = np.searchsorted(masses, np.asarray(levels) * masses[-1], side="left")
    found: FloatArray = conditional.support[np.minimum(places, len(masses) - 1), 0]
    return found


def noise_reach(law: NoiseLaw, scale: float, share: float = 0.97) -> float:
    """Return what the absolute noise stays within, with this probability."""
    sizes = float(law.noise_std(scale)) * np.geomspace(1e-5, 30, 4000)
    density = np.exp(law.logpdf(sizes, scale=scale))
    steps = np.diff(sizes, prepend=0.0)
    mass = np.cumsum(2 * density * steps)
    place = int(np.searchsorted(mass, share))
    return float(sizes[min(place, len(sizes) - 1)])


def bin_edges(
    pair: tuple[Conditional, Conditional], low: float, high: float
) -> FloatArray:
    """Return the edges of bins that suit both: whole steps where values have steps.

    The width is that of Freedman and Diaconis for the smaller group.
    """
    n_rows = min(conditional.n_rows for conditional in pair)
    spans = [np.diff(quantiles(one, [0.25, 0.75]))[0] for one in pair]
    width = 2 * max(spans) * n_rows ** (-1 / 3)
    width = max(width, (high - low) / _BINS)
    if high == low:
        return np.array([low - 0.5, low + 0.5])
    values = np.unique(np.concatenate([one.support[:, 0] for one in pair]))
    values = values[(values >= low) & (values <= high)]
    gaps = np.diff(values)
    step = gaps.min() if len(gaps) else 0.0
    steps = (values - low) / step if step else np.zeros(1)
    even = bool(step) and np.allclose(steps, np.round(steps), atol=1e-6)
    if even and step >= (high - low) / 400:
        width = step * max(1, round(width / step))
        low -= step / 2
    count = max(1, int(np.ceil((high - low) / width * (1 - 1e-12))))
    edges: FloatArray = low + width * np.arange(count + 1)
    if edges[-1] <= high:
        edges = np.append(edges, edges[-1] + width)
    return edges


def histogram(conditional: Conditional, edges: FloatArray) -> FloatArray:
    """Return the density of each bin: its share of all mass, by its width."""
    mass, _ = np.histogram(
        conditional.support[:, 0], edges, weights=conditional.probabilities
    )
    heights: FloatArray = mass / np.diff(edges)
    return heights


def central_range(pair: tuple[Conditional, Conditional]) -> tuple[float, float]:
    """Return what holds all but the outermost mass of both."""
    ends = [quantiles(one, [_TAIL, 1 - _TAIL]) for one in pair]
    return min(end[0] for end in ends), max(end[1] for end in ends)


def curve_points(
    pair: tuple[Conditional, Conditional], low: float, high: float
) -> FloatArray:
    """Return where a density is computed: evenly, and at the atoms if they are few."""
    atoms = np.concatenate([one.support[:, 0] for one in pair])
    count = _POINTS if len(atoms) <= _MANY else _FEWER
    points: FloatArray = np.linspace(low, high, count)
    if len(atoms) <= _ATOMS:
        # Peaks are there.
        points = np.union1d(points, atoms[(atoms >= low) & (atoms <= high)])
    return points


def mixture_density(
    conditional: Conditional, law: NoiseLaw, scale: float, points: FloatArray
) -> FloatArray:
    """Return the density of value + noise at each point, summed over all atoms."""
    values, mass = conditional.support[:, 0], conditional.probabilities
    density = np.zeros(len(points))
    rows = max(1, _BLOCK // len(points))
    for start in range(0, len(values), rows):
        part = slice(start, start + rows)
        away = points[:, None] - values[None, part]
        density += np.exp(law.logpdf(away, scale=scale)) @ mass[part]
    return density
