"""Populations whose quantile functions are known exactly, samples, and the truth."""

import itertools
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import betaincinv

from skpuffer._parameters import Settings
from skpuffer._prior_models import population_pairs
from skpuffer.core.bands import Band, cells_of, quantile_band
from skpuffer.core.calibration import RULES, BoundedPair, Budget, Pair, calibrate
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import LAWS
from skpuffer.core.prior import Conditional, Prior

ATOMS = 4096
BUDGET = Budget(2.0, 0.5)
ERROR = 0.05
UNIT = np.ones(1)


class Populations(NamedTuple):
    """Atoms of equal mass a secret value, in order, and the declared bounds."""

    atoms: tuple
    low: float
    high: float

    @property
    def shifts(self):
        """|Q − Q'| at the levels of the atoms, for each pair."""
        pairs = itertools.combinations(self.atoms, 2)
        return [np.abs(first - second) for first, second in pairs]


def populations(laws, low, high, atoms=()):
    """Quantiles so fine that a law is continuous to all intents, and known exactly."""
    drawn = []
    for law, atom in itertools.zip_longest(laws, atoms):
        values = law.ppf((np.arange(ATOMS) + 0.5) / ATOMS)
        if atom is not None:
            values[: int(atom[1] * ATOMS)] = atom[0]
        drawn.append(np.sort(np.clip(values, low, high)))
    return Populations(tuple(drawn), low, high)


CASES = {
    "normal": populations([stats.norm(0, 1), stats.norm(0.3, 1.2)], -5, 5),
    "alike": populations([stats.norm(0, 1)] * 2, -5, 5),
    "counts": populations([stats.poisson(3), stats.poisson(4)], 0, 20),
    "two values": populations([stats.bernoulli(0.3), stats.bernoulli(0.4)], 0, 1),
    "heavy tails": populations([stats.t(2), stats.t(2, 0.5, 1.3)], -30, 30),
    "atoms, tails": populations(
        [stats.lognorm(1.2), stats.lognorm(1.2, 0, 1.5)], 0, 40, [(0, 0.4), (2, 0.2)]
    ),
    "rare, far": populations([stats.randint(0, 2)] * 2, 0, 100, [None, (100, 2**-9)]),
    "four counts": populations([stats.poisson(m) for m in (2, 3, 4, 5)], 0, 20),
    "four laws": populations(
        [stats.norm(0, 0.8), stats.norm(0, 1), stats.uniform(-2, 4), stats.laplace()],
        -6,
        6,
    ),
}


class Outcome(NamedTuple):
    """What failed in one sample, and the noise that it asked for.

    bands: a shift was above that of the bands somewhere; excess: a mean excess was
    above that of the bound in use; condition: the scale in use was below what the
    populations themselves need.
    """

    bands: bool
    excess: bool
    condition: bool
    scale: float
    scale_bands: float
    scale_published: float
    scale_sample: float


def settings(law, rule):
    return Settings(LAWS[law](), RULES[rule](), BUDGET, None, 1 - ERROR)


def needed(case, chosen):
    """The scale that the populations themselves need, were they known."""
    bounds = [ShiftBound(d[:, None], np.full(ATOMS, 1 / ATOMS)) for d in case.shifts]
    units = [
        chosen.rule.unit_scale(bound, chosen.law, BUDGET, UNIT) for bound in bounds
    ]
    return max(units) * (1 - 1e-9)


def one_sample(
    case, n, rng, *, law="laplace", rule="transport", truth=None, scales=True
):
    """Draw a sample, bound the populations, and compare with the truth."""
    chosen = settings(law, rule)
    truth = needed(case, chosen) if truth is None else truth
    groups = [
        Conditional.from_rows(atoms[rng.integers(0, ATOMS, (n, 1))])
        for atoms in case.atoms
    ]
    pairs = list(itertools.combinations(range(len(groups)), 2))
    prior = Prior(None, tuple(range(len(groups))), tuple(groups), tuple(pairs))
    limits = np.array([case.low, case.high])
    bounded, _ = population_pairs([prior], limits, chosen, ERROR)
    excess = any(
        not dominates(item.bound, shifts)
        for item, shifts in zip(bounded, case.shifts, strict=True)
    )
    # The scale is below the truth just if every pair is content with the truth.
    condition = truth > 0 and all(
        chosen.rule.holds(item.bound, chosen.law, BUDGET, truth * UNIT)
        for item in bounded
    )
    span = {"low": case.low, "high": case.high}
    beta = ERROR / len(groups)
    exact = [quantile_band(group, **span, error=beta) for group in groups]
    missed = any(
        not above(cells_of(exact[i], exact[j]), shifts)
        for (i, j), shifts in zip(pairs, case.shifts, strict=True)
    )
    if not scales:
        return Outcome(missed, excess, condition, *[np.nan] * 4)

    def scale_of(items):
        return calibrate(items, chosen.law, chosen.rule, BUDGET).scale[0]

    published = [published_band(group, **span, error=beta) for group in groups]
    compared = [
        scale_of([bounded_by(bands[i], bands[j]) for i, j in pairs])
        for bands in (exact, published)
    ]
    sample = scale_of([Pair(groups[i], groups[j], UNIT) for i, j in pairs])
    return Outcome(missed, excess, condition, scale_of(bounded), *compared, sample)


def simulate(case, n, samples, seed, **options):
    """Stack the outcomes of many samples, one array a field."""
    rng = np.random.default_rng(seed)
    chosen = settings(options.get("law", "laplace"), options.get("rule", "transport"))
    truth = needed(case, chosen)
    outcomes = [
        one_sample(case, n, rng, truth=truth, **options) for _ in range(samples)
    ]
    return Outcome(*map(np.array, zip(*outcomes, strict=True)))


def above(cells, shifts):
    """Whether the distance of the cells is at least the true shift at every level."""
    ends = np.cumsum(cells.mass)
    levels = np.arange(1, len(shifts) + 1) / len(shifts)
    # Levels just above each end of either step function.
    points = np.concatenate([[0.0], ends[:-1], levels[:-1]]) + 1e-9
    cell = np.minimum(np.searchsorted(ends, points), len(ends) - 1)
    atom = np.minimum((points * len(shifts)).astype(int), len(shifts) - 1)
    return bool((shifts[atom] <= cells.distance[cell] + 1e-12).all())


def dominates(bound, shifts):
    """Whether no mean excess of the shifts is above that of the bound."""
    knots = np.append(0.0, bound.shifts[:, 0])
    allowed = bound.mass @ np.maximum(bound.shifts - knots, 0)
    ordered = np.sort(shifts)
    start = np.searchsorted(ordered, knots)
    beyond = np.append(np.cumsum(ordered[::-1])[::-1], 0.0)[start]
    true = (beyond - knots * (len(shifts) - start)) / len(shifts)
    return bool((true <= allowed * (1 + 1e-9) + 1e-12).all())


def bounded_by(one, other):
    cells = cells_of(one, other)
    return BoundedPair(ShiftBound(cells.distance[:, None], cells.mass), UNIT)


def published_band(conditional, *, low, high, error, number=200):
    """200 order statistics, geometric in both tails, by the union bound."""
    n = conditional.n_rows
    below = np.rint(np.geomspace(1, (n + 1) / 2, number // 2)).astype(int)
    ranks = np.unique(np.append(below, n + 1 - below))
    level = error / (2 * len(ranks))
    rows = np.repeat(
        conditional.support[:, 0], conditional.mass * (n // conditional.total)
    )
    return Band(
        betaincinv(ranks, n + 1 - ranks, level),
        np.append(rows[ranks - 1], high),
        1 - betaincinv(n + 1 - ranks, ranks, level),
        np.append(low, rows[ranks - 1]),
    )
