"""What is promised holds, by another road: numerical integration of the releases.

For every law and rule: hundreds of random priors, the scales that `calibrate`
returns, and the divergence of the two noisy mixtures integrated by `oracles`, which
knows nothing of the library. The only slack is the oracle's own accuracy.
"""

import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import oracles
import power_oracle
import pytest
from core_support import (
    SERVED,
    SHIFT_RULES,
    bounded,
    epsilons,
    fixed,
    orders,
    pair,
    rounded,
)
from hypothesis import given
from scipy.optimize import brentq

from skpuffer.core.calibration import RULES, Budget, calibrate
from skpuffer.core.laws import LAWS
from skpuffer.core.prior import pooled_spread

# The oracle's relative accuracy; a two-dimensional integral has many more cells.
LINE, PLANE = 1e-10, 1e-9

EVERY = pytest.mark.parametrize(("law", "rule"), SERVED)
EVERY_SHIFT = pytest.mark.parametrize(
    ("law", "rule"), [(law, rule) for law in LAWS for rule in SHIFT_RULES]
)


def at_length(examples):
    return pytest.param(examples, marks=pytest.mark.slow)


def divergence(law, drawn, scale, alpha):
    """The larger direction of the divergence between the two releases."""
    if law == "exponential":
        sides = (drawn.atoms_a, drawn.mass_a), (drawn.atoms_b, drawn.mass_b)
        options = {"power": LAWS[law]().power, "scale": scale, "alpha": alpha}
        return max(
            power_oracle.mixture_divergence(*p, *q, **options)
            for p, q in (sides, sides[::-1])
        )
    if drawn.atoms_a.shape[1] == 1:
        integrate, scale = oracles.mixture_divergence, scale[0]
    else:
        integrate = oracles.mixture_divergence_2d
    first, second = (drawn.atoms_a, drawn.mass_a), (drawn.atoms_b, drawn.mass_b)
    options = {"law": law, "scale": scale, "alpha": alpha}
    return max(
        integrate(*first, *second, **options)
        for first, second in ((first, second), (second, first))
    )


def on_grid(drawn, scale):
    return drawn._replace(
        atoms_a=rounded(drawn.atoms_a, scale), atoms_b=rounded(drawn.atoms_b, scale)
    )


def shares(drawn):
    """The probability of each row on both sides, as fractions."""
    sides = []
    for atoms, mass in ((drawn.atoms_a, drawn.mass_a), (drawn.atoms_b, drawn.mass_b)):
        share = Counter()
        for row, m in zip(atoms.tolist(), mass.tolist(), strict=True):
            share[tuple(row)] += Fraction(m, int(mass.sum()))
        sides.append(share)
    return sides


def same(drawn):
    """Whether the two sides are one distribution, in exact arithmetic."""
    first, second = shares(drawn)
    return first == second


def atoms_divergence(drawn, alpha):
    """The larger direction without any noise, from the definition."""
    first, second = shares(drawn)
    if set(first) != set(second):
        return math.inf
    if alpha == math.inf:
        return max(abs(math.log(first[row] / second[row])) for row in first)
    with mpmath.workdps(40):
        return max(
            float(
                mpmath.log(
                    sum(
                        mpmath.mpf(p[row].numerator)
                        / p[row].denominator
                        * (
                            mpmath.mpf((p[row] / q[row]).numerator)
                            / (p[row] / q[row]).denominator
                        )
                        ** (alpha - 1)
                        for row in p
                    )
                )
                / (alpha - 1)
            )
            for p, q in ((first, second), (second, first))
        )


def assert_sound(law, rule, drawn, budget, accuracy):
    item = pair(drawn.atoms_a, drawn.atoms_b, masses=(drawn.mass_a, drawn.mass_b))
    columns = drawn.atoms_a.shape[1]
    weights = (
        np.ones(1) if columns == 1 else pooled_spread([item.first, item.second])[0]
    )
    item = type(item)(item.first, item.second, weights)
    scale = calibrate([item], LAWS[law](), RULES[rule](), budget).scale
    if not scale.any():
        if rule == "exact":
            assert atoms_divergence(drawn, budget.alpha) <= budget.epsilon * (1 + 1e-12)
        else:
            assert same(drawn)
        return
    if not scale.all():
        # A constant column, released without noise.
        left, k = scale == 0, int(scale.argmax())
        assert np.ptp(np.vstack([drawn.atoms_a, drawn.atoms_b])[:, left]) == 0
        drawn = drawn._replace(
            atoms_a=drawn.atoms_a[:, [k]], atoms_b=drawn.atoms_b[:, [k]]
        )
        scale = scale[[k]]
    limit = budget.epsilon * (1 + accuracy) + 1e-13
    assert divergence(law, on_grid(drawn, scale), scale, budget.alpha) <= limit
    if rule != "exact":
        # That one answers for what is released, the rounded values, and nothing else.
        assert divergence(law, drawn, scale, budget.alpha) <= limit


@EVERY
@pytest.mark.parametrize("examples", [50, at_length(2000)])
def test_one_column(law, rule, examples):
    @fixed(examples, law, rule)
    @given(oracles.conditionals(), orders(LAWS[law]), epsilons(law))
    def run(drawn, alpha, epsilon):
        assert_sound(law, rule, drawn, Budget(alpha, epsilon), LINE)

    run()


@EVERY_SHIFT
@pytest.mark.parametrize("examples", [10, at_length(300)])
def test_two_columns(law, rule, examples):
    @fixed(examples, law, rule)
    @given(
        oracles.conditionals(4, columns=2, max_magnitude=1),
        orders(LAWS[law]),
        epsilons(law),
    )
    def run(drawn, alpha, epsilon):
        assert_sound(law, rule, drawn, Budget(alpha, epsilon), PLANE)

    run()


@EVERY_SHIFT
def test_two_copies_of_one_column(law, rule):
    # Both copies are of the same x: rows (x, x) against (x', x').
    @fixed(8, law, rule, "copies")
    @given(oracles.conditionals(4, max_magnitude=1), orders(LAWS[law]), epsilons(law))
    def run(drawn, alpha, epsilon):
        item = pair(drawn.atoms_a, drawn.atoms_b, masses=(drawn.mass_a, drawn.mass_b))
        budget = Budget(alpha, epsilon, n_releases=2)
        scale = calibrate([item], LAWS[law](), RULES[rule](), budget).scale
        if not scale.any():
            return
        twice = np.repeat(scale, 2)
        drawn = on_grid(drawn, scale)
        drawn = drawn._replace(
            atoms_a=np.repeat(drawn.atoms_a, 2, axis=1),
            atoms_b=np.repeat(drawn.atoms_b, 2, axis=1),
        )
        limit = epsilon * (1 + PLANE) + 1e-13
        assert divergence(law, drawn, twice, alpha) <= limit

    run()


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_copies_do_not_add_up(law):
    # .9 at 0 and .1 at z against 0, with exp(D_2(z)) = 100: one copy has .688, two
    # have 4.615, and twice .688 promises nothing.
    z = math.sqrt(math.log(100))
    if law == "laplace":
        z = brentq(lambda z: 2 / 3 * math.exp(z) + math.exp(-2 * z) / 3 - 100, 1, 9)
    first = [[0.0, 0.0], [z, z]]
    options = {"law": law, "alpha": 2.0}
    mass = [0.9, 0.1]
    one = oracles.mixture_divergence([0, z], mass, [0], [1], scale=1.0, **options)
    two = oracles.mixture_divergence_2d(
        first, mass, [[0.0, 0.0]], [1], scale=[1.0, 1.0], **options
    )
    assert one == pytest.approx(math.log(1.99), abs=1e-9)
    assert two == pytest.approx(math.log(0.99 + 100), abs=1e-9)
    assert two > 3 * 2 * one
    # Nor is √2 times the scale enough for two copies, unless their mean says it all.
    root = math.sqrt(2)
    wider = oracles.mixture_divergence_2d(
        first, mass, [[0.0, 0.0]], [1], scale=[root, root], **options
    )
    if law == "laplace":
        assert wider > 2 * one
    else:
        assert wider == pytest.approx(one, abs=1e-9)
    # With n_releases = 2 the two copies together stay below epsilon.
    item = pair([0.0, z], [0.0], masses=([9, 1], [1]))
    budget = Budget(2.0, 2 * one, n_releases=2)
    scale = calibrate([item], LAWS[law](), RULES["transport"](), budget).scale[0]
    two = oracles.mixture_divergence_2d(
        first, mass, [[0.0, 0.0]], [1], scale=[scale, scale], **options
    )
    assert scale > 1
    assert two <= 2 * one


@EVERY
def test_any_distributions_on_a_range(law, rule):
    @fixed(10, law, rule, "range")
    @given(oracles.conditionals(max_magnitude=0), orders(LAWS[law]), epsilons(law))
    def run(drawn, alpha, epsilon):
        values = np.vstack([drawn.atoms_a, drawn.atoms_b])
        width = float(np.ptp(values)) or 1.0
        item, budget = bounded([[width]]), Budget(alpha, epsilon)
        scale = calibrate([item], LAWS[law](), RULES[rule](), budget).scale
        limit = epsilon * (1 + LINE) + 1e-13
        assert divergence(law, on_grid(drawn, scale), scale, alpha) <= limit

    run()


@pytest.mark.parametrize("rule", RULES)
def test_the_printed_jensen_step_would_break_the_promise(rule):
    # E exp(alpha d / b) is not below exp(alpha E d / b): it would allow b = .02 here.
    atoms = [0.0, 1.0]
    assert 4.19 < (1 + math.exp(2)) / 2 < 4.2
    assert math.exp(1) < 2.72
    options = {"law": "laplace", "alpha": 2.0}
    against = (atoms, [99, 1], [0.0], [1])
    broken = oracles.mixture_divergence(*against, scale=0.02, **options)
    assert broken == pytest.approx(40.4, abs=0.05)
    item = pair([0.0], atoms, masses=([1], [99, 1]))
    scale = calibrate([item], LAWS["laplace"](), RULES[rule](), Budget(2.0, 1.0)).scale
    sound = oracles.mixture_divergence(*against, scale=scale[0], **options)
    assert scale[0] > (0.05 if rule == "exact" else 0.15)
    assert sound <= 1
