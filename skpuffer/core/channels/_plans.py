"""Plans for rows at given scales: the best ones of few rows, good ones of very many."""

from __future__ import annotations

import math

import numpy as np

from skpuffer.core.calibration import Budget
from skpuffer.core.channels._channel import Channel
from skpuffer.core.channels._coarse import (
    Costs,
    Indices,
    coarse_plan,
    improved_plan,
)
from skpuffer.core.channels._rows import RowPair
from skpuffer.core.channels._witness import dearest
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.plans import (
    Plan,
    bottleneck_plan,
    exponential_cost,
    exponential_plan,
    useful_ceiling,
)
from skpuffer.core.prior import FloatArray, common_masses

# Pairs of values whose divergences are looked up; pairs of rows looked at together.
_TABLE, _PART = 2**20, 2**9
# At α = ∞ a search of parts lowers a moment of this many times the bound.
_NEARLY_MAXIMUM = 64.0


def _divergences(
    pair: RowPair, law: NoiseLaw, budget: Budget, scale: FloatArray
) -> Costs:
    """Return what gives the divergence of all pairs of some rows, all copies."""
    tables: list[tuple[Indices, Indices, FloatArray]] = []
    direct: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for column, distances in enumerate(pair.columns):
        values, others = pair.first.support[:, column], pair.second.support[:, column]
        size = scale[[column]]
        if distances is not None:
            if size > 0:
                table = Channel.of(distances, float(size[0])).table(alpha=budget.alpha)
                place = values.astype(np.intp), others.astype(np.intp)
                tables.append((*place, dearest(table)))
            continue
        distinct, place_a = np.unique(values, return_inverse=True)
        opposite, place_b = np.unique(others, return_inverse=True)
        if len(distinct) * len(opposite) <= _TABLE:
            table = _shift_table(law, budget.alpha, distinct, opposite, size)
            tables.append((place_a, place_b, table))
        else:
            direct.append((values, others, size))

    def costs(rows: Indices, columns: Indices) -> FloatArray:
        total = np.zeros((len(rows), len(columns)))
        for place_a, place_b, table in tables:
            total += table[np.ix_(place_a[rows], place_b[columns])]
        for values, others, size in direct:
            total += _shift_table(
                law, budget.alpha, values[rows], others[columns], size
            )
        return budget.n_releases * total

    return costs


def _shift_table(
    law: NoiseLaw,
    alpha: float,
    values: FloatArray,
    others: FloatArray,
    scale: FloatArray,
) -> FloatArray:
    shifts = np.abs(np.subtract.outer(values, others)).reshape(-1, 1)
    found = law.shift_divergence(shifts, alpha=alpha, scale=scale)
    return np.asarray(found.reshape(len(values), len(others)))


def solved_plan(
    pair: RowPair, start: Plan, law: NoiseLaw, budget: Budget, scale: FloatArray
) -> Plan:
    """Return the plan with the least functional at the scales."""
    first, second, _ = common_masses(pair.first, pair.second)
    costs = _divergences(pair, law, budget, scale)
    total = costs(np.arange(len(first)), np.arange(len(second)))
    if math.isinf(budget.alpha):
        return bottleneck_plan(first, second, total, start)
    ceiling = useful_ceiling(first, second, budget.log_target)
    return exponential_plan((budget.alpha - 1) * total, first, second, ceiling=ceiling)


def searched_plan(
    pair: RowPair, start: Plan, law: NoiseLaw, budget: Budget, scale: FloatArray
) -> Plan:
    """Return a better plan of very many rows: cells first, then parts."""
    first, second, _ = common_masses(pair.first, pair.second)
    finite = math.isfinite(budget.alpha)
    excess = budget.alpha - 1 if finite else _NEARLY_MAXIMUM / budget.epsilon
    goal = budget.log_target if finite else _NEARLY_MAXIMUM
    ceiling = useful_ceiling(first, second, goal)
    divergences = _divergences(pair, law, budget, scale)

    def costs(rows: Indices, columns: Indices) -> FloatArray:
        return exponential_cost(excess * divergences(rows, columns), ceiling)

    plans = [start]
    if pair.cells is not None:
        plans.append(coarse_plan(costs, pair.cells, pair.keys, first, second))
    spent = [_cost_of(plan, costs) for plan in plans]
    points, others = pair.embedded(pair.first), pair.embedded(pair.second)
    return improved_plan(plans[int(np.argmin(spent))], costs, points, others)


def _cost_of(plan: Plan, costs: Costs) -> float:
    """Add up what a plan pays, part by part."""
    total, mass = 0.0, plan.mass.astype(np.float64)
    order = np.argsort(plan.rows, kind="stable")
    for part in np.array_split(order, -(-len(order) // _PART)):
        rows, place = np.unique(plan.rows[part], return_inverse=True)
        columns, other = np.unique(plan.columns[part], return_inverse=True)
        total += float(mass[part] @ costs(rows, columns)[place, other])
    return total
