"""Plans with a small largest cost, against permutations and linear programmes."""

from itertools import permutations

import numpy as np
import pytest
from plans_support import assert_coupling, pair_masses
from scipy.optimize import linprog

from skpuffer.core.calibration import RULES, Budget, Pair
from skpuffer.core.laws import LAWS
from skpuffer.core.plans import bottleneck_plan, emd_plan
from skpuffer.core.prior import Conditional, common_masses


@pytest.mark.parametrize("seed", range(20))
def test_equal_masses_against_every_permutation(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    cost = rng.integers(0, 8, (n, n)).astype(float)
    ones = np.ones(n, dtype=np.int64)
    plan = bottleneck_plan(ones, ones, cost, emd_plan(ones, ones, cost**0))
    best = min(
        max(cost[i, j] for i, j in enumerate(order)) for order in permutations(range(n))
    )
    reached = cost[plan.rows, plan.columns].max()
    assert best <= reached <= best * (1 + 1e-4)


def feasible(a, b, allowed):
    """Whether mass a can be moved to b along the allowed pairs alone."""
    n, m = allowed.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    answer = linprog(
        np.zeros(n * m),
        A_eq=np.vstack([rows, columns]),
        b_eq=np.concatenate([a, b]) / a.sum(),
        bounds=[(0, 1 if ok else 0) for ok in allowed.ravel()],
    )
    return answer.status == 0


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
@pytest.mark.parametrize("seed", range(4))
def test_masses_and_costs_of_any_size_against_linear_programmes(seed, scale):
    rng = np.random.default_rng(20 + seed)
    n, m = rng.integers(2, 6, 2)
    masses = pair_masses(rng, n, m, 9)
    cost = rng.integers(0, 40, (n, m)) * scale
    # Any coupling; the dearest that there is.
    start = emd_plan(*masses, cost.max() - cost)
    plan = bottleneck_plan(*masses, cost, start)
    assert_coupling(plan, *masses)
    least = min(top for top in np.unique(cost) if feasible(*masses, cost <= top))
    assert cost[start.rows, start.columns].max() > least
    assert cost[plan.rows, plan.columns].max() == least


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", range(6))
def test_w_inf_reaches_the_optimum_over_all_couplings(law, seed):
    rng = np.random.default_rng(100 + seed)
    first, second = (
        Conditional.from_rows(rng.normal(size=(rng.integers(2, 8), 2)).round(1))
        for _ in range(2)
    )
    budget = Budget(3.0, 0.7, 2)
    pair = Pair(first, second, np.array([1.0, 2.0]))
    rule = RULES["w_inf"]()
    found = rule.calibrate(pair, LAWS[law](), budget)
    shifts = np.abs(first.support[:, None] - second.support[None])
    a, b, _ = common_masses(first, second)

    def allowed(unit):
        divergence = LAWS[law]().shift_divergence(
            shifts.reshape(-1, 2), alpha=3.0, scale=unit * pair.weights
        )
        return (2 * divergence <= 0.7 * (1 + 1e-12)).reshape(shifts.shape[:2])

    assert feasible(a, b, allowed(found.unit))
    assert not feasible(a, b, allowed(found.unit * (1 - 1e-3)))


def test_an_infinite_order_uses_it_for_every_moment_rule():
    rng = np.random.default_rng(5)
    first, second = (Conditional.from_rows(rng.normal(size=(30, 2))) for _ in range(2))
    pair, budget = Pair(first, second, np.ones(2)), Budget(np.inf, 1.0)
    law = LAWS["laplace"]()
    expected = RULES["w_inf"]().calibrate(pair, law, budget).unit
    for rule in ("transport", "alpha_wasserstein"):
        assert RULES[rule]().calibrate(pair, law, budget).unit == expected
    plain = RULES["w_inf"]().unit_scale(pair.bound, law, budget, pair.weights)
    assert expected < plain


def test_the_start_is_kept_where_nothing_is_better():
    a, b = np.array([2, 1]), np.array([1, 2])
    cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    start = emd_plan(a, b, cost)
    assert bottleneck_plan(a, b, cost, start) is start
