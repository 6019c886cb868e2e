"""Lower the cost of a plan by re-solving parts of it, over and over.

Contract: integer marginals stay exactly what they are, and no pass costs more than it
found; the result repeats (directions have a fixed seed) unless time is limited.

Two pairs (x, y) and (x', y') of a plan gain by exchanging their targets, at squared
distances, if and only if their middles (x + y)/2 are nearer to each other than half the
difference of their shifts. So the pairs are put together by their middles, in all
columns at once: a tree of random hyperplanes, new ones in each pass, cuts them in
compact parts. Passes in small parts come first; where those gain little, larger ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skpuffer.core.plans._costs import LogCosts
from skpuffer.core.plans._effort import Effort, Meter
from skpuffer.core.plans._exact import emd_plan, exponential_cost
from skpuffer.core.plans._plan import (
    Floats,
    Indices,
    Plan,
    TransportPlanError,
    merged,
)

# Pairs in a part: at least where there are very many, at first, usually the largest,
# and at most, where a pass takes no more than a twentieth of the effort.
_LEAST, _FIRST, _USUAL, _MOST = 64, 200, 400, 1600
_SHARE = 0.05
# Passes in the smallest parts that the effort should last for.
_PASSES = 8
# Parts that pay less than this in all are left as they are.
_NEGLIGIBLE = 1e-3
# Logarithms of costs are told apart up to this above the largest that a part had:
# more costs precision, and a new pair that pays more must carry little.
_ROOM = 6.0
# Larger exponents count as this: differences of infinite ones are not numbers.
_HUGE = 1e5
_SEED = 20_240_613


class Search:
    """Passes over a plan, until they gain nothing or the effort is spent.

    Parameters
    ----------
    points_a, points_b : ndarray, shapes (n, k) and (m, k)
        Where the points lie, near a common origin and in comparable units.
    effort : Effort

    Attributes
    ----------
    level : int
        How often the parts have been enlarged.
    over : bool
        Whether another pass would be in vain, or too much.
    """

    def __init__(self, points_a: Floats, points_b: Floats, effort: Effort) -> None:
        self._points_a, self._points_b = points_a, points_b
        self._effort, self._meter = effort, Meter(effort)
        self._generator = np.random.Generator(np.random.PCG64(_SEED))
        least = len(points_a) + len(points_b)
        share = effort.pairs / (_PASSES * least)
        self._size = int(min(max(share, _LEAST), _FIRST))
        self._whole = False
        self._looked_at = 0
        self.level = 0
        self.over = self._meter.spent

    def pass_over(self, plan: Plan, costs: LogCosts) -> Plan:
        """Re-solve the parts of a plan, the costliest first.

        Parameters
        ----------
        plan : Plan
            Any coupling with integer masses.
        costs : LogCosts
            Of the same points.

        Returns
        -------
        Plan
            The same marginals; Σ mass · (e^cost − 1) is never larger.

        Raises
        ------
        TransportPlanError
            As `emd_plan`.
        """
        plan = merged(plan)
        exponents = np.minimum(costs.along(plan.rows, plan.columns), _HUGE)
        top = float(exponents.max())
        value = plan.mass.astype(np.float64) * _excess(exponents, top)
        middles = self._points_a[plan.rows] + self._points_b[plan.columns]
        parts = self._parts(middles)
        self._whole = len(parts) == 1
        paid = np.array([value[part].sum() for part in parts])
        dearest = np.argsort(-paid, kind="stable")
        rest = paid.sum() - np.cumsum(paid[dearest]) + paid[dearest]
        found = []
        self._looked_at = 0
        for place, left in zip(dearest.tolist(), rest.tolist(), strict=True):
            part = Plan(*(field[parts[place]] for field in plan))
            if paid[place] > 0 and left > _NEGLIGIBLE * rest[0]:
                if self._meter.spent:
                    self.over = True
                else:
                    part, looked_at = resolved(part, exponents[parts[place]], costs)
                    self._meter.count(looked_at)
                    self._looked_at += looked_at
            found.append(part)
        return Plan(*(np.concatenate(field) for field in zip(*found, strict=True)))

    def settle(self, gain: float) -> None:
        """Say by what share the last pass lowered the scale."""
        if not gain > self._effort.gain:
            # A pass in parts of twice the size looks at twice as many pairs.
            dear = 2 * self._looked_at > _SHARE * self._effort.pairs
            most = _USUAL if dear else _MOST
            self.over |= self._whole or self._size >= most
            self._size = min(2 * self._size, most)
            self.level += 1
        self.over |= self._meter.spent
        if self.over:
            self._meter.finish()

    def _parts(self, middles: Floats) -> list[Indices]:
        """Cut positions in compact parts of nearly equal size."""
        found: list[Indices] = []
        left = [np.arange(len(middles))]
        while left:
            part = left.pop()
            if len(part) <= self._size:
                found.append(part)
                continue
            direction = self._generator.standard_normal((middles.shape[1],))
            # Column by column: sums must not depend on how many rows there are.
            key = np.zeros(len(part))
            for column, factor in zip(middles.T, direction, strict=True):
                key += factor * column[part]
            half = len(part) // 2
            order = np.argpartition(key, half)
            left += [part[order[:half]], part[order[half:]]]
        return found


def resolved(old: Plan, exponents: Floats, costs: LogCosts) -> tuple[Plan, int]:
    """Solve some pairs of a plan afresh; keep them unless the cost falls.

    Parameters
    ----------
    old : Plan
        The pairs.
    exponents : ndarray of shape (p,)
        Their costs, finite and not all zero.
    costs : LogCosts

    Returns
    -------
    plan : Plan
    looked_at : int
        How many pairs of points there were to choose from.
    """
    atoms_a, rows = np.unique(old.rows, return_inverse=True)
    atoms_b, columns = np.unique(old.columns, return_inverse=True)
    left = np.zeros(len(atoms_a), dtype=old.mass.dtype)
    right = np.zeros(len(atoms_b), dtype=old.mass.dtype)
    np.add.at(left, rows, old.mass)
    np.add.at(right, columns, old.mass)
    table = costs.table(atoms_a, atoms_b)
    top = float(exponents.max())
    mass = old.mass.astype(np.float64)
    spent = float(mass @ _excess(exponents, top))
    new = emd_plan(left, right, exponential_cost(table, top + _ROOM))
    value = _excess(table[new.rows, new.columns], top)
    if float(new.mass.astype(np.float64) @ value) >= spent:
        return old, table.size
    return Plan(atoms_a[new.rows], atoms_b[new.columns], new.mass), table.size


def _excess(exponents: Floats, top: float) -> Floats:
    """Return (e^x − 1) / e^top."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(exponents - top) * -np.expm1(-exponents))


def descended_plan(
    start: Plan,
    scale: float,
    points_a: Floats,
    points_b: Floats,
    costs_at: Callable[[float, int], LogCosts],
    scale_of: Callable[[Plan], float],
    effort: Effort,
    *,
    enough: float = 0.0,
) -> Plan:
    """Alternate between a better plan at a scale and the scale that it needs.

    Parameters
    ----------
    start : Plan
        Any coupling with integer masses.
    scale : float
        What it needs.
    points_a, points_b : ndarray, shapes (n, k) and (m, k)
        As in `Search`.
    costs_at : callable
        ``costs_at(scale, level)``: the costs at a scale; `level` counts how often the
        parts have been enlarged.
    scale_of : callable
        The scale that a plan needs.
    effort : Effort
    enough : float
        A scale below which nothing is gained.

    Returns
    -------
    Plan
        The best that was seen: `start`, or one that needs a smaller scale.
    """
    search = Search(points_a, points_b, effort)
    best = plan = start
    while scale > enough and not search.over:
        try:
            plan = search.pass_over(plan, costs_at(scale, search.level))
        except TransportPlanError:
            # A search that fails costs noise, not privacy.
            break
        found = scale_of(plan)
        search.settle(1 - found / scale)
        if found < scale:
            best, scale = plan, found
    return best
