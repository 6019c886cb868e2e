"""Transport plans between two weighted sets of points, several columns at once.

Contract: integer masses in, integer masses out. Every plan returned is a coupling
*exactly*: its row and column sums equal the given masses as integers, or an error is
raised; no mass is ever missing. Any coupling is sound, a poor one only costs noise,
so optimality is best effort (each docstring says how far it goes) while the
marginals are not. Pure arrays; POT, in `_exact` alone, is imported when needed.

Up to `EXACT_LIMIT` points a side: `quadratic_plan`, then `exponential_plan` or
`bottleneck_plan` at the scale found. Beyond, `quadratic_plan` takes the best of several
sorted projections, `coarse_plan` solves a problem of few cells and spreads it out, and
`descended_plan` lowers any cost from there, part by part, as far as an `Effort` allows.
"""

from skpuffer.core.plans._bottleneck import bottleneck_plan
from skpuffer.core.plans._cells import cells_of, coarse_plan
from skpuffer.core.plans._costs import Column, LogCosts, SummedCosts, summed
from skpuffer.core.plans._descend import Search, descended_plan
from skpuffer.core.plans._effort import USUAL_EFFORT, Effort
from skpuffer.core.plans._exact import (
    emd_plan,
    exponential_cost,
    exponential_plan,
    useful_ceiling,
)
from skpuffer.core.plans._in_place import in_place_plan
from skpuffer.core.plans._plan import Plan, TransportPlanError, monotone_plan
from skpuffer.core.plans._search import EXACT_LIMIT, projected_plan, quadratic_plan

__all__ = [
    "EXACT_LIMIT",
    "USUAL_EFFORT",
    "Column",
    "Effort",
    "LogCosts",
    "Plan",
    "Search",
    "SummedCosts",
    "TransportPlanError",
    "bottleneck_plan",
    "cells_of",
    "coarse_plan",
    "descended_plan",
    "emd_plan",
    "exponential_cost",
    "exponential_plan",
    "in_place_plan",
    "monotone_plan",
    "projected_plan",
    "quadratic_plan",
    "summed",
    "useful_ceiling",
]
