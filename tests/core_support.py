"""Helpers shared by the tests of the mathematical core."""

import math
import zlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st

from skpuffer.core.calibration import RULES, BoundedPair, Pair, calibrate
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.laws import LAWS
from skpuffer.core.mixtures import MIXTURES
from skpuffer.core.prior import Conditional

ORDERS = [1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 32.0, 64.0, 200.0]
EACH_LAW = pytest.mark.parametrize("law", LAWS)
# Those whose noisy mixtures have a certified divergence.
EXACT_LAWS = list(MIXTURES)
EACH_EXACT_LAW = pytest.mark.parametrize("law", EXACT_LAWS)
# Those that see shifts alone: any number of columns and copies, and bounds on shifts.
SHIFT_RULES = [name for name, rule in RULES.items() if not rule.one_column]
# Every law with every rule that serves it.
SERVED = [
    (law, rule)
    for law in LAWS
    for rule in RULES
    if law in MIXTURES or rule in SHIFT_RULES
]
EVERY = pytest.mark.parametrize(
    ("law", "rule"), [(law, rule) for law in LAWS for rule in SHIFT_RULES]
)


def fixed(examples, *key):
    """Hypothesis with the same examples in every run, others for another key."""
    chosen = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: seed(zlib.crc32(repr(key).encode()))(chosen(test))


def orders(law):
    finite = st.one_of(st.sampled_from(ORDERS), st.floats(1.01, 200))
    if math.isinf(law.max_order):
        return st.one_of(finite, st.sampled_from([2.0, math.inf]))
    return finite


EPSILONS = st.floats(math.log(1e-3), math.log(10)).map(math.exp)


def epsilons(law):
    """Those that a release on the grid reaches: a step of it is 2^-20 of the scale."""
    least = 1e-3 if LAWS[law]().convex else 0.1
    return st.floats(math.log(least), math.log(10)).map(math.exp)


def conditional(atoms, mass=None):
    rows = np.asarray(atoms, dtype=float).reshape(len(atoms), -1)
    return Conditional.from_rows(rows, mass)


def pair(first, second, weights=None, masses=(None, None)):
    """A `Pair` of rows; unit weights unless given."""
    left, right = conditional(first, masses[0]), conditional(second, masses[1])
    weights = np.ones(left.support.shape[1]) if weights is None else weights
    return Pair(left, right, np.asarray(weights, dtype=float))


def bounded(shifts, mass=None, weights=None):
    """A `BoundedPair` of explicit shifts."""
    shifts = np.asarray(shifts, dtype=float).reshape(len(shifts), -1)
    mass = np.full(len(shifts), 1 / len(shifts)) if mass is None else np.asarray(mass)
    weights = np.ones(shifts.shape[1]) if weights is None else np.asarray(weights)
    return BoundedPair(ShiftBound(shifts, mass), weights)


def grid_index(value, step):
    """Half up, in exact rational arithmetic."""
    return math.floor(Fraction(value) / Fraction(step) + Fraction(1, 2))


def step_of(scale):
    """2^(floor(log2 scale) - 20), from the definition."""
    return 2.0 ** (math.floor(math.log2(scale)) - 20)


def rounded(values, scale):
    """Round rows to the release grid of the scales, column by column."""
    values = np.asarray(values, dtype=float)
    if not np.any(scale):
        return values
    columns = [
        [grid_index(v, step_of(b)) * step_of(b) for v in column] if b > 0 else column
        for column, b in zip(values.T, scale, strict=True)
    ]
    return np.array(columns).T


def cost(law, shifts, *, alpha, scale, copies=1):
    """(alpha - 1) times the divergence of shift vectors, from the textbook."""
    z = np.abs(shifts) / scale
    if law == "gaussian":
        return copies * alpha * (alpha - 1) * (z**2).sum(axis=1) / 2
    if law == "exponential":
        c = np.sqrt(z)  # log of cosh((alpha - 1/2) c) / cosh(c / 2)
        above, below = np.logaddexp(0, (1 - 2 * alpha) * c), np.logaddexp(0, -c)
        return copies * ((alpha - 1) * c + above - below).sum(axis=1)
    rising = math.log(alpha / (2 * alpha - 1)) + (alpha - 1) * z
    falling = math.log((alpha - 1) / (2 * alpha - 1)) - alpha * z
    return copies * np.logaddexp(rising, falling).sum(axis=1)


def unit(item, law, rule, budget):
    """The rule's own answer, before it is rounded to the grid."""
    return RULES[rule]().calibrate(item, LAWS[law](), budget).unit


def released(items, law, rule, budget):
    items = items if isinstance(items, list) else [items]
    return calibrate(items, LAWS[law](), RULES[rule](), budget).scale
