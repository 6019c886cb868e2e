"""Plans for rows at given scales: the best ones of few rows, good ones of very many."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from skpuffer.core.calibration import NEARLY_MAXIMUM, START_SHARE, Budget
from skpuffer.core.channels._channel import Channel
from skpuffer.core.channels._rows import RowPair
from skpuffer.core.channels._witness import dearest
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.plans import (
    LogCosts,
    Plan,
    SummedCosts,
    TransportPlanError,
    bottleneck_plan,
    coarse_plan,
    descended_plan,
    exponential_cost,
    exponential_plan,
    useful_ceiling,
)
from skpuffer.core.prior import FloatArray, IntArray, common_masses


def _divergences(
    pair: RowPair, law: NoiseLaw, budget: Budget, scale: FloatArray, factor: float
) -> SummedCosts:
    """Return a factor times the divergence of pairs of rows, all copies."""
    costs = SummedCosts(factor * budget.n_releases)
    for distances, column, size in zip(pair.columns, pair.values, scale, strict=True):
        if distances is None:

            def cost(moved: FloatArray, size: FloatArray = size) -> FloatArray:
                return law.shift_divergence(
                    moved[:, None], alpha=budget.alpha, scale=size[None]
                )

            costs.add(column, cost)
        elif size > 0:
            table = dearest(
                Channel.of(distances, float(size)).table(alpha=budget.alpha)
            )
            place = column.values.astype(np.intp)
            costs.add_table(place, column.others.astype(np.intp), table)
    return costs


def solved_plan(
    pair: RowPair, start: Plan, law: NoiseLaw, budget: Budget, scale: FloatArray
) -> Plan:
    """Return the plan with the least functional at the scales."""
    first, second, _ = common_masses(pair.first, pair.second)
    costs = _divergences(pair, law, budget, scale, 1.0)
    total = costs.table(np.arange(len(first)), np.arange(len(second)))
    if math.isinf(budget.alpha):
        return bottleneck_plan(first, second, total, start)
    ceiling = useful_ceiling(first, second, budget.log_target)
    return exponential_plan((budget.alpha - 1) * total, first, second, ceiling=ceiling)


def searched_plan(
    pair: RowPair,
    start: Plan,
    law: NoiseLaw,
    budget: Budget,
    unit: float,
    scale_of: Callable[[Plan], float],
    enough: float,
) -> Plan:
    """Return a better plan of very many rows: cells first, then parts.

    Parameters
    ----------
    pair : RowPair
    start : Plan
    law : NoiseLaw
    budget : Budget
    unit : float
        The factor of the weights that `start` needs.
    scale_of : callable
        The factor that a plan needs.
    enough : float
        A factor below which nothing is gained.
    """
    finite = math.isfinite(budget.alpha)
    goal = budget.log_target if finite else NEARLY_MAXIMUM

    def costs_at(scale: float, level: int) -> LogCosts:
        sharpness = NEARLY_MAXIMUM * 2.0**level / budget.epsilon
        factor = budget.alpha - 1 if finite else sharpness
        return _divergences(pair, law, budget, scale * pair.weights, factor)

    plan = start
    if pair.cells is not None:
        first, second, _ = common_masses(pair.first, pair.second)
        ceiling = useful_ceiling(first, second, goal)
        costs = costs_at(unit, 0)

        def bounded(rows: IntArray, columns: IntArray) -> FloatArray:
            return exponential_cost(costs.table(rows, columns), ceiling)

        # A refinement that fails costs noise, not privacy.
        with suppress(TransportPlanError):
            plan = coarse_plan(bounded, pair.cells, pair.keys, first, second)
        needed = scale_of(plan)
        plan, unit = (plan, needed) if needed < unit else (start, unit)
    points, others = pair.points
    effort = pair.effort.part(1 - START_SHARE)
    return descended_plan(
        plan, unit, points, others, costs_at, scale_of, effort, enough=enough
    )
