"""The exact rule: the divergence of what is released, integrated by another road."""

import math

import numpy as np
import oracles
import pytest
from core_support import bounded, conditional, pair, rounded, step_of

from skpuffer.core.calibration import (
    RULES,
    Budget,
    MixtureWitness,
    calibrate,
)
from skpuffer.core.laws import LAWS
from skpuffer.core.mixtures import MIXTURES, DivergenceBound
from skpuffer.core.prior import Conditional

EACH_LAW = pytest.mark.parametrize("law", MIXTURES)


def scale_of(item, law, budget, rule="exact"):
    return calibrate([item], LAWS[law](), RULES[rule](), budget).scale[0]


def truth(law, item, scale, alpha):
    """The larger direction of the divergence of what is released, by quadrature."""
    sides = [
        (rounded(part.support, [scale]), part.mass)
        for part in (item.first, item.second)
    ]
    return max(
        oracles.mixture_divergence(*p, *q, law=law, scale=scale, alpha=alpha)
        for p, q in (sides, sides[::-1])
    )


def atoms_of(item):
    """Both directions, each with the atoms and masses of either side."""
    sides = [(side.support[:, 0], side.mass) for side in (item.first, item.second)]
    return sides, sides[::-1]


def random_item(rng):
    """Two conditionals of all sizes and gaps, with shared and with own atoms."""
    n = int(np.exp(rng.uniform(0, np.log(300))))
    if rng.random() < 0.5:
        gaps = 10 ** rng.uniform(-6, 6) * rng.uniform(0.5, 2, n)
    else:
        gaps = 10 ** rng.uniform(*np.sort(rng.uniform(-6, 6, 2)), n)
    places = np.cumsum(gaps)
    kind = rng.integers(4)
    first, second = rng.random((2, n)) < rng.choice([0.5, 0.9, 1.0])
    if kind == 0:
        first, second = np.ones((2, n), dtype=bool)
    first[rng.integers(n)] = second[rng.integers(n)] = True
    masses = [rng.integers(1, 10 ** rng.integers(1, 6), n) for _ in range(2)]
    if kind == 1:
        # Nearly alike.
        masses[1] = masses[0] + (rng.random(n) < 0.2)
    return pair(
        places[first],
        places[second],
        masses=(masses[0][first], masses[1][second]),
    )


def random_budget(rng):
    alpha = 1 + 10 ** rng.uniform(-2, math.log10(199))
    return Budget(alpha, 10 ** rng.uniform(-5, math.log10(5)))


def assert_never_exceeds(law, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        item, budget = random_item(rng), random_budget(rng)
        scale = scale_of(item, law, budget)
        transport = scale_of(item, law, budget, "transport")
        assert scale <= transport, seed
        if scale == 0:
            np.testing.assert_array_equal(item.first.support, item.second.support)
            continue
        limit = budget.epsilon * (1 + 1e-10) + 1e-13
        assert truth(law, item, scale, budget.alpha) <= limit, seed


@EACH_LAW
def test_no_divergence_exceeds_epsilon(law):
    # The fifth takes as long as all others.
    assert_never_exceeds(law, range(5, 17))


@pytest.mark.slow
@EACH_LAW
def test_no_divergence_exceeds_epsilon_at_length(law):
    assert_never_exceeds(law, range(1000, 1500))


@EACH_LAW
def test_it_is_the_smallest_scale(law):
    for seed in range(20):
        rng = np.random.default_rng([7, seed])
        places = np.cumsum(rng.uniform(0.5, 2, 8))
        item = pair(places[:-1], places[1:], masses=rng.integers(1, 50, (2, 7)))
        budget = Budget(1 + 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-2, 0))
        scale = scale_of(item, law, budget)
        assert truth(law, item, scale * (1 - 5e-5), budget.alpha) > budget.epsilon


def test_the_range_follows_alpha():
    # A hull of ten deviations would give 16 for a divergence of 60.
    item = pair([0.0, 3.0], [0.0, 1.0], masses=([99, 1], [1, 1]))
    value = oracles.mixture_divergence(
        [0, 3], [0.99, 0.01], [0, 1], [0.5, 0.5], law="gaussian", scale=1.0, alpha=32.0
    )
    assert value == pytest.approx(60, abs=1)
    scale = scale_of(item, "gaussian", Budget(32.0, value))
    assert scale == pytest.approx(1, rel=2e-5)
    assert truth("gaussian", item, scale, 32.0) <= value


def test_a_wide_span_needs_a_finer_step():
    # A step of a tenth of σ over a span of thirty would be too low by 3.6e-4.
    values = np.arange(31.0)
    item = pair(values, values[::-3], masses=(None, None))
    budget = Budget(2.0, 0.05)
    scale = scale_of(item, "gaussian", budget)
    assert 0.99995 * 0.05 <= truth("gaussian", item, scale, 2.0) <= 0.05


@EACH_LAW
def test_no_smaller_than_the_floor(law):
    # Two atoms that differ by a hair more than ε: any noise would do.
    item = pair([0.0, 1.0], [0.0, 1.0], masses=([1, 1], [1, 2]))
    alone = RULES["exact"]().calibrate(item, LAWS[law](), Budget(2.0, 9)).witness
    divergence = alone.mixtures.divergence(2.0)
    scale = scale_of(item, law, Budget(2.0, divergence * (1 - 1e-9)))
    assert 1e-3 <= scale <= 0.2
    assert truth(law, item, scale, 2.0) <= divergence
    assert scale_of(item, law, Budget(2.0, divergence * (1 + 1e-12))) == 0


def test_a_scale_well_below_the_smallest_gap():
    # Nearly all of what the atoms say is allowed, and the span is short.
    item, budget = (
        pair([0.0, 1.0], [0.0, 1.0], masses=([1, 1], [1, 100])),
        Budget(2, 3.23),
    )
    scale = scale_of(item, "laplace", budget)
    assert scale < 0.08
    assert truth("laplace", item, scale, 2.0) <= 3.23
    assert truth("laplace", item, scale * 0.99, 2.0) > 3.23


@EACH_LAW
@pytest.mark.parametrize("far", [2.0**27, -(2.0**27)])
def test_the_floor_is_within_reach_of_the_release_grid(law, far):
    # As above, where the data are so far off that their grid needs more noise.
    item = pair([far, far + 1], [far, far + 1], masses=([1, 1], [1, 2]))
    divergence = MixtureWitness.of(item).mixtures.divergence(2.0)
    scale = scale_of(item, law, Budget(2.0, divergence * (1 - 1e-9)))
    assert 2.0**-4 * (1 - 1e-5) <= scale <= 0.2


def test_a_longer_shift_may_need_less_noise():
    values = np.arange(200.0)
    half, one = (
        scale_of(pair(values, values + shift), "laplace", Budget(2.0, 0.05))
        for shift in (0.5, 1.0)
    )
    assert half == pytest.approx(0.553, abs=1e-3)
    assert one == pytest.approx(0.368, abs=1e-3)


@EACH_LAW
@pytest.mark.parametrize("alpha", [1.5, math.inf])
def test_no_noise_where_none_is_needed(law, alpha):
    if alpha > LAWS[law].max_order:
        return
    same = pair([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], masses=([1, 2, 3], [2, 4, 6]))
    assert scale_of(same, law, Budget(alpha, 1e-9)) == 0
    near = pair([0.0, 1.0], [0.0, 1.0], masses=([1, 2], [2, 2]))
    # The largest ratio is 3/2, between 1/2 and 1/3.
    need = math.log(1.5) if alpha == math.inf else 0.08
    assert scale_of(near, law, Budget(alpha, need * 1.2)) == 0
    assert scale_of(near, law, Budget(alpha, need * 0.5)) > 0
    # The pair that needs none does not stop one that does.
    scale = calibrate(
        [same, pair([0.0], [1.0])], LAWS[law](), RULES["exact"](), Budget(alpha, 1.0)
    ).scale[0]
    assert scale > 0


def test_infinite_order():
    # The log-ratio is largest at an atom.
    item = pair([0.0, 1.0, 5.0], [0.0, 2.0, 5.0], masses=([3, 1, 2], [2, 2, 3]))
    scale = scale_of(item, "laplace", Budget(math.inf, 0.7))
    assert 0.7 * (1 - 1e-4) <= truth("laplace", item, scale, math.inf) <= 0.7
    points = pair([0.0], [1.0])
    scale = scale_of(points, "laplace", Budget(math.inf, 0.5))
    assert scale == pytest.approx(2, rel=1e-5)


def test_copies():
    item = pair([0.0, 1.0, 4.0], [0.0, 2.0], masses=([3, 1, 1], [2, 2]))
    one = scale_of(item, "gaussian", Budget(3.0, 0.6))
    three = scale_of(item, "gaussian", Budget(3.0, 0.6, n_releases=3))
    assert three == pytest.approx(math.sqrt(3) * one, rel=3e-5)
    rule, law, budget = RULES["exact"](), LAWS["gaussian"](), Budget(3.0, 0.6, 3)
    witness = rule.calibrate(item, law, budget).witness
    assert rule.holds(witness, law, budget, np.array([three * 1.0001]))
    assert not rule.holds(witness, law, budget, np.array([three * 0.999]))
    # Rows (x, x) against (x', x'): both copies together.
    two = scale_of(item, "gaussian", Budget(3.0, 0.6, n_releases=2))
    sides = [
        (np.repeat(p.support, 2, axis=1), p.mass) for p in (item.first, item.second)
    ]
    both = max(
        oracles.mixture_divergence_2d(
            *p, *q, law="gaussian", scale=[two, two], alpha=3.0
        )
        for p, q in (sides, sides[::-1])
    )
    assert 0.6 * (1 - 1e-4) <= both <= 0.6 * (1 + 1e-5)
    for method in ("calibrate", "holds"):
        rule = RULES["exact"]()
        witness = item if method == "calibrate" else None
        rest = (np.ones(1),) if method == "holds" else ()
        with pytest.raises(ValueError, match=r"n_releases=2.*transport.*Gaussian"):
            getattr(rule, method)(
                witness, LAWS["laplace"](), Budget(3.0, 0.6, 2), *rest
            )


def test_no_scale_is_found_for_what_the_rule_does_not_cover():
    witness = MixtureWitness.of(pair([0.0, 1.0], [0.0, 2.0]))
    rule, weights = RULES["exact"](), np.ones(1)
    with pytest.raises(ValueError, match=r"n_releases=2.*laplace"):
        rule.unit_scale(witness, LAWS["laplace"](), Budget(3.0, 0.6, 2), weights)
    with pytest.raises(ValueError, match="mixtures of exponential"):
        rule.unit_scale(witness, LAWS["exponential"](), Budget(3.0, 0.6), weights)


def test_several_columns_are_refused():
    item = pair([[0.0, 1.0]], [[1.0, 1.0]])
    with pytest.raises(ValueError, match="one column, got 2"):
        scale_of(item, "laplace", Budget(2.0, 1.0))


@EACH_LAW
def test_bounds_on_shifts_are_left_to_transport(law):
    item = bounded([[2.0], [0.5]])
    budget = Budget(3.0, 0.4)
    expected = scale_of(item, law, budget, "transport")
    assert scale_of(item, law, budget) == expected
    witness = RULES["exact"]().calibrate(item, LAWS[law](), budget).witness
    holds = RULES["exact"]().holds
    assert not holds(witness, LAWS[law](), budget, np.array([expected * 0.99]))


@EACH_LAW
def test_transport_vouches_where_nothing_else_does(law, monkeypatch):
    class Blind:
        def bound(self, *_, **__):
            return DivergenceBound(math.inf, math.inf)

    item, budget = pair([0.0, 1.0, 3.0], [0.0, 4.0, 3.0]), Budget(2.0, 0.3)
    expected = scale_of(item, law, budget, "transport")
    assert scale_of(item, law, budget) < expected
    monkeypatch.setitem(
        __import__("skpuffer.core.mixtures").core.mixtures.MIXTURES, law, Blind
    )
    assert scale_of(item, law, budget) == expected


def test_tiny_probabilities_are_left_to_transport():
    rows = Conditional.from_rows([[0.0], [1.0]], [1e-250, 1.0])
    item = type(pair([0.0], [1.0]))(rows, conditional([0.0]), np.ones(1))
    budget = Budget(2.0, 1.0)
    expected = scale_of(item, "laplace", budget, "transport")
    assert scale_of(item, "laplace", budget) == expected


def test_the_witness_rounds_half_up_and_remembers():
    item = pair([0.25, 0.2, 1.0], [0.0, 0.75])
    witness = RULES["exact"]().calibrate(item, LAWS["laplace"](), Budget(2, 1)).witness
    moved = witness.on_grid(np.array([0.5]))
    assert isinstance(moved, MixtureWitness)
    assert moved.mixtures.first.places.tolist() == [0.0, 0.5, 1.0]
    assert moved.mixtures.second.places.tolist() == [0.0, 1.0]
    assert witness.on_grid(np.array([0.5])) is moved
    assert witness.on_grid(np.array([1.0])).mixtures.first.mass.tolist() == [2, 1]
    assert witness.on_grid(np.array([0.0])).mixtures is witness.mixtures
    assert witness.on_grid(np.array([2.0**-60])).mixtures is None


def test_fractional_weights():
    first = Conditional.from_rows([[0.0], [1.0], [2.0]], [1e-9, 0.2, 0.7])
    assert first.mass.dtype == object
    item = type(pair([0.0], [1.0]))(first, conditional([0.0, 1.0]), np.ones(1))
    for law in MIXTURES:
        scale = scale_of(item, law, Budget(2.0, 0.5))
        assert 0.4999 <= truth(law, item, scale, 2.0) <= 0.5


def test_the_witness_vouches_for_no_noise_too():
    near = pair([0.0, 1.0], [0.0, 1.0], masses=([1, 2], [2, 2]))
    rule, law, none = RULES["exact"](), LAWS["laplace"](), np.zeros(1)
    witness = rule.calibrate(near, law, Budget(2.0, 0.5)).witness
    divergence = witness.mixtures.divergence(2.0)
    assert rule.holds(witness, law, Budget(2.0, divergence), none)
    assert not rule.holds(witness, law, Budget(2.0, divergence * 0.999), none)


@EACH_LAW
def test_the_divergence_at_other_orders(law):
    rule, noise = RULES["exact"](), LAWS[law]()
    for seed in range(3):
        rng = np.random.default_rng([11, seed])
        places = np.cumsum(rng.uniform(0.5, 2, 8))
        item = pair(places[:-1], places[1:], masses=rng.integers(1, 50, (2, 7)))
        answer = calibrate([item], noise, rule, Budget(2.0, 0.4))
        step = np.array([step_of(answer.scale[0])])
        witness = MixtureWitness.of(item).on_grid(step)
        for alpha in (1.2, 2.0, 7.0):
            exact = truth(law, item, answer.scale[0], alpha)
            # Rough for many orders, sharper for one.
            assert exact <= answer.divergence(alpha) * (1 + 1e-10) <= exact * 1.001
            found = rule.divergence(witness, noise, Budget(alpha, 0.4), answer.scale)
            assert exact <= found * (1 + 1e-10) <= exact * 1.00001
            apart = RULES["transport"]().divergence(
                witness.bound, noise, Budget(alpha, 0.4), answer.scale
            )
            assert found < 0.9 * apart


@pytest.mark.parametrize("rule", RULES)
def test_several_orders_at_once_and_one_order_again(rule):
    items = [
        pair([0.0, 1.0, 4.0], [0.0, 2.0], masses=([3, 1, 1], [2, 2])),
        pair([0.0, 1.0], [0.0, 3.0], masses=([30, 1], [9, 1])),
    ]
    answer, fresh = (
        calibrate(items, LAWS["laplace"](), RULES[rule](), Budget(2.0, 0.5))
        for _ in range(2)
    )
    orders = (1.5, 2.0, 2.0, 2.0, 9.0, 1.5)
    each = [answer.divergence(alpha) for alpha in orders]
    assert answer.at(orders) == pytest.approx(each, rel=1e-3)
    assert each[1:4] == pytest.approx([each[1]] * 3, rel=1e-3)
    assert each[0] < each[1] < each[4]
    # What is known of finite orders does not blur the infinite one.
    last = answer.divergence(math.inf)
    assert last == pytest.approx(fresh.divergence(math.inf), rel=1e-3)


def test_the_divergence_of_copies_and_without_noise():
    rule, transport = RULES["exact"](), RULES["transport"]()
    item = pair([0.0, 1.0, 4.0], [0.0, 1.0, 4.0], masses=([3, 1, 1], [2, 2, 2]))
    witness, scale = MixtureWitness.of(item), np.array([1.5])
    # The mean of copies is sufficient under Gaussian noise, and under no other.
    for copies in (1, 3):
        budget = Budget(3.0, 0.6, copies)
        for law in ("gaussian", "laplace", "exponential"):
            found = rule.divergence(witness, LAWS[law](), budget, scale)
            apart = transport.divergence(witness.bound, LAWS[law](), budget, scale)
            if law == "gaussian" or (law == "laplace" and copies == 1):
                alone = scale[0] / math.sqrt(copies)
                exact = max(
                    oracles.mixture_divergence(*p, *q, law=law, scale=alone, alpha=3.0)
                    for p, q in atoms_of(item)
                )
                assert exact <= found * (1 + 1e-10) <= exact * 1.00001
            else:
                assert found == apart
    # Without noise it is that of the atoms, whatever the law and the copies.
    for law in LAWS:
        for copies in (1, 2):
            budget = Budget(3.0, 0.6, copies)
            found = rule.divergence(witness, LAWS[law](), budget, np.zeros(1))
            p, q = np.array([3, 1, 1]) / 5, np.array([2, 2, 2]) / 6
            moments = (p**3 / q**2).sum(), (q**3 / p**2).sum()
            assert found == pytest.approx(math.log(max(moments)) / 2, rel=1e-9)
    # Of two points nothing is below transport, to the last bit.
    points = MixtureWitness.of(pair([0.0], [3.0])).compressed(16)
    for law in MIXTURES:
        for alpha in (1.1, 2.0, 5.0):
            options = LAWS[law](), Budget(alpha, 0.6), scale
            apart = transport.divergence(points.bound, *options)
            assert rule.divergence(points, *options) == apart


def test_an_estimate_does_not_vouch(monkeypatch):
    class Guess:
        def bound(self, *given, **options):
            return DivergenceBound(0.4, 0.6)

    item, rule, law = pair([0.0, 1.0], [0.0, 2.0]), RULES["exact"](), LAWS["laplace"]()
    witness = rule.calibrate(item, law, Budget(2.0, 0.5)).witness
    monkeypatch.setitem(MIXTURES, "laplace", Guess)
    scale = np.full(1, 0.1)
    assert not rule.holds(witness, law, Budget(2.0, 0.5), scale)
    assert rule.holds(witness, law, Budget(2.0, 0.6), scale)


# --- many values ---


@EACH_LAW
def test_many_distinct_values(law):
    rng = np.random.default_rng(1)
    first, second = rng.normal(0, 1, 100_000), rng.normal(0.3, 1.2, 100_000)
    item = pair(first, second)
    scale = scale_of(item, law, Budget(4.0, 1.0))
    # Quantiles of it: nearly the same but for the tails.
    few = pair(np.sort(first)[50::100], np.sort(second)[50::100])
    assert scale == pytest.approx(scale_of(few, law, Budget(4.0, 1.0)), rel=0.15)
