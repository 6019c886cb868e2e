"""Transport plans between two weighted sets of points, several columns at once.

Contract: integer masses in, integer masses out. Every plan returned here is a
coupling *exactly*: its row and column sums equal the given masses as integers, or
an error is raised; no mass is ever missing. Any coupling is sound, a poor one only
costs noise, so optimality is best effort (and documented) while the marginals are
not. This is the only file that uses POT, imported inside a function because the
import is slow. May otherwise import numpy only.

What POT's network simplex does (``ot.emd``, versions 0.9.4 to 0.9.7), and what
follows from it:

- It works in float64 with additions, subtractions and minima of the masses, so
  integer masses with a total up to 2**53 give exact integer plans. But it first
  multiplies the target by sum(a) and divides by sum(b), which rounds; where that
  would change a mass, a dummy atom lifts both totals to a power of two.
- A reduced cost below 2.2e-15 of the node potential counts as zero, and potentials
  reach (largest cost + 1) times the number of nodes: with N nodes, differences below
  about 2e-15 N of the largest cost are invisible, and costs much smaller than 1 lose
  all digits. So costs are scaled to a largest value near 2**20, and the exponential
  cost must be clipped no higher than needed (``useful_ceiling``).
- NaN costs give wrong plans silently; at the iteration limit mass is missing and
  there is only a warning. Both are errors here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "EXACT_LIMIT",
    "Plan",
    "TransportPlanError",
    "emd_plan",
    "exponential_cost",
    "exponential_plan",
    "projected_plan",
    "quadratic_plan",
    "refine_plan",
    "useful_ceiling",
]

Floats = npt.NDArray[np.float64]
Masses = npt.NDArray[Any]
ShiftCost = Callable[[Floats], Floats]

EXACT_LIMIT = 2000  # points a side up to which quadratic_plan solves to optimality
_MAX_ITERATIONS = 20_000_000
_FLOAT_TOTAL = 2**53  # integers up to here are exact in float64
_SCALED_TOTAL = 2**50
_CHUNK = 300  # pairs re-solved together by refine_plan
_MAX_SOLVES = 1500  # chunks re-solved in all: about ten seconds
_CLIP_BITS = (24, 34, 44, 54)  # log2 of the range of costs resolved, in order
_SEED = 20_240_613  # directions of projections: fixed, so that plans repeat


class TransportPlanError(RuntimeError):
    """The solver did not return a coupling; no plan can be used."""


class Plan(NamedTuple):
    """A coupling as index pairs.

    Attributes
    ----------
    rows, columns : ndarray of intp, shape (p,)
        Atoms of the source and of the target.
    mass : ndarray, shape (p,)
        Positive mass of each pair, in the integer units of the inputs: int64, or
        Python ints (object dtype) when an input has object dtype.
    """

    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    mass: Masses


def emd_plan(mass_a: Masses, mass_b: Masses, cost: Floats) -> Plan:
    """Return a coupling of least total cost.

    Parameters
    ----------
    mass_a, mass_b : ndarray of positive integers, shapes (n,) and (m,)
        int64, or object dtype with Python ints; equal totals.
    cost : ndarray, shape (n, m)
        Finite and non-negative.

    Returns
    -------
    Plan
        Exact marginals. Optimal up to the precision in the module docstring. Totals
        beyond 2**53 are solved in rounds of quantised masses (2**50 units), each
        taking on what the last one left over.

    Raises
    ------
    ValueError
        Masses that are not positive integers with equal totals; NaN, infinite or
        negative costs; shapes that do not fit.
    TransportPlanError
        POT stopped early or returned something that is not a coupling.

    Examples
    --------
    >>> import numpy as np
    >>> plan = emd_plan(np.array([2, 1]), np.array([1, 2]), np.array([[0, 1], [9, 0]]))
    >>> [(int(i), int(j), int(w)) for i, j, w in zip(*plan)]
    [(0, 0, 1), (0, 1, 1), (1, 1, 1)]
    """
    left, right = _integers(mass_a, mass_b)
    cost = np.asarray(cost, dtype=np.float64)
    if cost.shape != (len(left), len(right)):
        raise ValueError(
            f"cost has shape {cost.shape}; the masses need {len(left), len(right)}."
        )
    if not np.isfinite(cost).all() or cost.min() < 0:
        raise ValueError(
            "cost has NaN, infinite or negative entries; clip it to a finite range."
        )
    divisor = math.gcd(*left.tolist(), *right.tolist())
    rest_a, rest_b = left // divisor, right // divisor
    found = []
    while True:
        total = sum(rest_a.tolist())
        rows, columns = np.flatnonzero(rest_a), np.flatnonzero(rest_b)
        if total <= _FLOAT_TOTAL:
            if total:
                part = _network_simplex(
                    rest_a[rows].astype(np.int64),
                    rest_b[columns].astype(np.int64),
                    cost[np.ix_(rows, columns)],
                )
                found.append(Plan(rows[part.rows], columns[part.columns], part.mass))
            break
        small_a, small_b = _quantise(rest_a, total), _quantise(rest_b, total)
        rows, columns = np.flatnonzero(small_a), np.flatnonzero(small_b)
        part = _network_simplex(
            small_a[rows], small_b[columns], cost[np.ix_(rows, columns)]
        )
        rows, columns = rows[part.rows], columns[part.columns]
        units = part.mass.astype(object)
        # the most these pairs can carry while their rows and columns stay within
        # what is left: floor of the smaller of two exact ratios
        mass = np.minimum(
            units * rest_a[rows] // small_a[rows].astype(object),
            units * rest_b[columns] // small_b[columns].astype(object),
        )
        found.append(Plan(rows, columns, mass))
        np.subtract.at(rest_a, rows, mass)
        np.subtract.at(rest_b, columns, mass)
    rows = np.concatenate([part.rows for part in found])
    columns = np.concatenate([part.columns for part in found])
    mass = np.concatenate([part.mass.astype(left.dtype) for part in found])
    return _checked(_merged(Plan(rows, columns, mass * divisor)), left, right)


def quadratic_plan(
    points_a: Floats, points_b: Floats, mass_a: Masses, mass_b: Masses
) -> Plan:
    """Return a coupling of small mean squared distance.

    Parameters
    ----------
    points_a, points_b : ndarray, shapes (n, k) and (m, k)
        Finite; the columns are already divided by their weights.
    mass_a, mass_b : ndarray of positive integers, shapes (n,) and (m,)
        Equal totals.

    Returns
    -------
    Plan
        Optimal if both sides have at most `EXACT_LIMIT` points, otherwise
        `projected_plan`. Does not depend on the order of distinct points, nor on
        a common offset of the points.

    Raises
    ------
    ValueError, TransportPlanError
        As `emd_plan`; points that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([1, 1])
    >>> plan = quadratic_plan(np.array([[0.0], [1]]), np.array([[2.0], [1]]), one, one)
    >>> plan.columns.tolist()
    [1, 0]
    """
    if max(len(points_a), len(points_b)) > EXACT_LIMIT:
        return projected_plan(points_a, points_b, mass_a, mass_b)
    left, right = _integers(mass_a, mass_b)
    a, b, order_a, order_b = _canonical(points_a, points_b, left, right)
    same = np.array_equal(a, b) and np.array_equal(left[order_a], right[order_b])
    if same:  # exactly zero whatever the precision of the solver
        return Plan(order_a, order_b, left[order_a])
    cost = np.zeros((len(a), len(b)))
    for x, y in zip(a.T, b.T, strict=True):  # differences: no cancellation
        cost += np.subtract.outer(x, y) ** 2
    plan = emd_plan(left[order_a], right[order_b], cost)
    return Plan(order_a[plan.rows], order_b[plan.columns], plan.mass)


def projected_plan(
    points_a: Floats,
    points_b: Floats,
    mass_a: Masses,
    mass_b: Masses,
    *,
    n_projections: int = 30,
) -> Plan:
    """Return a coupling of moderate mean squared distance, for many points.

    The best of several monotone couplings of one-dimensional projections (every
    axis, the difference of the means, the first principal direction and random
    ones from a fixed seed), improved by `refine_plan`.

    Parameters
    ----------
    points_a, points_b, mass_a, mass_b
        As in `quadratic_plan`.
    n_projections : int
        Number of directions tried; the named directions are always among them.

    Returns
    -------
    Plan
        Always a coupling; how far from optimal is not known.

    Raises
    ------
    ValueError, TransportPlanError
        As `quadratic_plan`.

    Examples
    --------
    >>> import numpy as np
    >>> x, one = np.array([[0.0, 1], [5, 0]]), np.array([1, 1])
    >>> plan = projected_plan(x, x[::-1], one, one)
    >>> sorted(zip(plan.rows.tolist(), plan.columns.tolist()))
    [(0, 1), (1, 0)]
    """
    left, right = _integers(mass_a, mass_b)
    a, b, order_a, order_b = _canonical(points_a, points_b, left, right)
    left, right = left[order_a], right[order_b]
    share_a, share_b = _shares(left), _shares(right)
    best, least = None, math.inf
    for direction in _directions(a, b, share_a, share_b, n_projections):
        plan = _monotone(a, b, left, right, direction)
        value = float(_shares(plan.mass) @ _squares(a[plan.rows] - b[plan.columns]))
        if best is None or value < least:
            best, least = plan, value
    assert best is not None
    plan = refine_plan(best, a, b, _squares)
    return Plan(order_a[plan.rows], order_b[plan.columns], plan.mass)


def refine_plan(
    plan: Plan,
    points_a: Floats,
    points_b: Floats,
    cost: ShiftCost,
    *,
    n_sweeps: int = 5,
) -> Plan:
    """Lower the total cost of a coupling by re-solving parts of it.

    Each sweep sorts the pairs by a random projection of source + target, cuts them
    in chunks of 300 pairs and solves each chunk as a small transport problem. A
    chunk changes only if its cost falls. At most 1,500 chunks are solved in all:
    with more than 90,000 pairs there are fewer sweeps, with more than 450,000 pairs
    only the costliest chunks are solved.

    Parameters
    ----------
    plan : Plan
        Any coupling with integer masses.
    points_a, points_b : ndarray, shapes (n, k) and (m, k)
        Finite.
    cost : callable
        ``cost(shifts)`` with shifts (p, k), signed source minus target, returns p
        finite non-negative costs. Clip exponential costs (`exponential_cost`).
    n_sweeps : int
        Number of sweeps wanted.

    Returns
    -------
    Plan
        The same marginals exactly; the total cost is never higher.

    Raises
    ------
    ValueError, TransportPlanError
        As `emd_plan`.

    Examples
    --------
    >>> import numpy as np
    >>> x, index = np.array([[0.0], [3.0]]), np.array([0, 1])
    >>> crossed = Plan(index, index[::-1], np.array([1, 1]))
    >>> plan = refine_plan(crossed, x, x, lambda shifts: abs(shifts).sum(axis=1))
    >>> plan.columns[np.argsort(plan.rows)].tolist()
    [0, 1]
    """
    a, b = _centred(points_a, points_b)
    points_a, points_b = np.asarray(points_a), np.asarray(points_b)
    generator = np.random.Generator(np.random.PCG64(_SEED))
    budget = _MAX_SOLVES
    for _ in range(n_sweeps):
        plan = _merged(plan)
        direction = generator.standard_normal((a.shape[1],))
        key = _project(a[plan.rows] + b[plan.columns], direction)
        pair_cost = _costs(cost, points_a[plan.rows] - points_b[plan.columns])
        value = plan.mass.astype(np.float64) * pair_cost
        chunks = np.array_split(np.argsort(key, kind="stable"), -(-len(key) // _CHUNK))
        chunks.sort(key=lambda chunk: -float(value[chunk].sum()))
        if len(chunks) > budget and budget < _MAX_SOLVES:
            break  # a whole sweep, or none
        parts = []
        for number, chunk in enumerate(chunks):
            old = Plan(*(field[chunk] for field in plan))
            spent = float(value[chunk].sum())
            if number < budget and spent > 0:
                parts.append(_resolve(old, spent, points_a, points_b, cost))
            else:
                parts.append(old)
        plan = Plan(*(np.concatenate(field) for field in zip(*parts, strict=True)))
        budget -= len(chunks)
    return plan


def useful_ceiling(mass_a: Masses, mass_b: Masses, log_budget: float) -> float:
    """Return the log cost above which no pair fits into the budget.

    A vertex of the transport polytope has masses that are multiples of the common
    divisor g of all masses. If E exp(c) <= exp(log_budget), a pair used has
    (g / total) (exp(c) - 1) <= exp(log_budget) - 1. Clipping there leaves the
    optimum unchanged, as long as some coupling meets the budget; clipping higher
    only costs precision.

    Parameters
    ----------
    mass_a, mass_b : ndarray of positive integers
        Equal totals.
    log_budget : float
        (alpha - 1) epsilon, positive, nats.

    Returns
    -------
    float
        Ceiling for `exponential_plan`, nats.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.array([1, 1])
    >>> round(useful_ceiling(one, one, 1.0), 4)  # log(1 + 2 (e - 1))
    1.4899
    """
    left, right = _integers(mass_a, mass_b)
    if not 0 < log_budget < math.inf:
        raise ValueError(f"log_budget must be positive and finite, got {log_budget}.")
    return _raised(log_budget, _log_units(left, right))


def exponential_cost(log_cost: Floats, ceiling: float) -> Floats:
    """Return (exp(c) - 1) / (exp(ceiling) - 1), c clipped at the ceiling.

    The subtracted 1 changes no optimum (the masses are fixed) and keeps the digits
    of costs near 1. Values lie in [0, 1]; infinite log costs are clipped.

    Parameters
    ----------
    log_cost : ndarray
        Nats; values below 0 count as 0, NaN stays NaN.
    ceiling : float
        Positive and finite, nats; see `useful_ceiling`.

    Examples
    --------
    >>> import numpy as np
    >>> exponential_cost(np.array([0.0, 1.0, np.inf]), 1.0).tolist()
    [0.0, 1.0, 1.0]
    """
    if not 0 < ceiling < math.inf:
        raise ValueError(f"ceiling must be positive and finite, got {ceiling}.")
    clipped = np.clip(np.asarray(log_cost, dtype=np.float64), 0.0, ceiling)
    return np.exp(clipped - ceiling) * (np.expm1(-clipped) / math.expm1(-ceiling))


def exponential_plan(
    log_cost: Floats, mass_a: Masses, mass_b: Masses, *, ceiling: float
) -> Plan:
    """Return a coupling of least E exp(log_cost), costs clipped at the ceiling.

    Parameters
    ----------
    log_cost : ndarray, shape (n, m)
        Non-negative, nats; infinite entries are clipped.
    mass_a, mass_b : ndarray of positive integers, shapes (n,) and (m,)
        Equal totals.
    ceiling : float
        Positive and finite, nats; take `useful_ceiling`.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError, TransportPlanError
        As `emd_plan`; a ceiling that is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> one, costs = np.array([1, 1]), np.array([[0.0, 1.0], [1.0, 3.0]])
    >>> exponential_plan(costs, one, one, ceiling=4.0).columns.tolist()
    [1, 0]
    """
    left, right = _integers(mass_a, mass_b)
    log_units = _log_units(left, right)
    best, least = None, math.inf
    for bits in _CLIP_BITS:
        cut = max(0.0, log_units - bits * math.log(2))
        clip = _raised(ceiling, -cut)
        plan = emd_plan(left, right, exponential_cost(log_cost, clip))
        used = log_cost[plan.rows, plan.columns]
        value = float(_shares(plan.mass) @ exponential_cost(used, ceiling))
        if best is None or value < least:
            best, least = plan, value
        if cut == 0 or used.max() <= clip:
            break
    assert best is not None
    return best


def _log_units(left: Masses, right: Masses) -> float:
    masses = left.tolist()
    return math.log(sum(masses) // math.gcd(*masses, *right.tolist()))


def _raised(log_value: float, log_factor: float) -> float:
    """Return log(1 + factor (exp(log_value) - 1)) without overflow."""
    log_excess = log_value + math.log(-math.expm1(-log_value))
    return float(np.logaddexp(0.0, log_excess + log_factor))


def _integers(mass_a: Masses, mass_b: Masses) -> tuple[Masses, Masses]:
    """Check the masses; object dtype for both if either has it or int64 is short."""
    checked = []
    for name, mass in (("mass_a", mass_a), ("mass_b", mass_b)):
        array = np.asarray(mass)
        whole = array.dtype.kind in "iu" or (
            array.dtype == object and all(isinstance(v, int) for v in array.flat)
        )
        if array.ndim != 1 or not array.size or not whole or min(array.tolist()) <= 0:
            raise ValueError(f"{name} must be a non-empty row of positive integers.")
        checked.append(array)
    totals = [sum(array.tolist()) for array in checked]
    if totals[0] != totals[1]:
        raise ValueError(f"mass_a sums to {totals[0]}, mass_b to {totals[1]}.")
    kind = object if totals[0] > np.iinfo(np.int64).max else np.int64
    if any(array.dtype == object for array in checked):
        kind = object
    return checked[0].astype(kind), checked[1].astype(kind)


def _quantise(mass: Masses, total: int) -> npt.NDArray[np.int64]:
    """Round masses to a total of 2**50 by largest remainder."""
    scaled = [int(v) * _SCALED_TOTAL for v in mass]
    floors = np.array([v // total for v in scaled], dtype=np.int64)
    remainders = [v % total for v in scaled]
    order = sorted(range(len(scaled)), key=lambda i: -remainders[i])
    floors[order[: _SCALED_TOTAL - int(floors.sum())]] += 1
    return floors


def _network_simplex(
    left: npt.NDArray[np.int64], right: npt.NDArray[np.int64], cost: Floats
) -> Plan:
    """Solve one transport problem with a total of at most 2**53 by POT."""
    from ot import emd

    a, b = left.astype(np.float64), right.astype(np.float64)
    total = float(a.sum())
    top = float(cost.max())
    # a power of two, so that scaling is exact
    cost = np.ldexp(cost, 20 - math.frexp(top)[1]) if top else cost
    if not np.array_equal(b * total / total, b):
        lifted = 2.0 ** math.ceil(math.log2(total))
        a, b = np.append(a, lifted - total), np.append(b, lifted - total)
        # through the dummy costs twice the largest cost, so nobody goes there
        cost = np.pad(cost, (0, 1), constant_values=float(cost.max()) + 1.0)
        cost[-1, -1] = 0.0
    try:
        dense, log = emd(
            a,
            b,
            np.ascontiguousarray(cost),
            numItermax=_MAX_ITERATIONS,
            log=True,
            center_dual=False,
            check_marginals=False,
        )
    except UserWarning as warning:  # warnings are errors in this process
        raise TransportPlanError(f"POT failed: {warning}") from warning
    if log["warning"] is not None:
        raise TransportPlanError(f"POT failed: {log['warning']}")
    dense = np.asarray(dense)[: len(left), : len(right)]
    whole = np.rint(dense)
    # written so that NaN fails; POT gives integers exactly for integer masses
    if not (np.abs(dense - whole) <= 1e-6).all():
        raise TransportPlanError("POT returned a plan that is not in whole units.")
    rows, columns = np.nonzero(whole)
    mass = whole[rows, columns].astype(np.int64)
    return _checked(Plan(rows, columns, mass), left, right)


def _checked(plan: Plan, left: Masses, right: Masses) -> Plan:
    """Return the plan if it is a coupling of these masses, in integers."""
    sums_a, sums_b = np.zeros_like(left), np.zeros_like(right)
    np.add.at(sums_a, plan.rows, plan.mass)
    np.add.at(sums_b, plan.columns, plan.mass)
    exact = np.array_equal(sums_a, left) and np.array_equal(sums_b, right)
    if not exact or (plan.mass <= 0).any():
        raise TransportPlanError(
            "the plan is not a coupling: negative or missing mass. Please report it."
        )
    return plan


def _merged(plan: Plan) -> Plan:
    """Return the plan sorted, every pair once."""
    order = np.lexsort((plan.columns, plan.rows))
    rows, columns, mass = (field[order] for field in plan)
    first = np.flatnonzero(
        np.append(True, (np.diff(rows) != 0) | (np.diff(columns) != 0))
    )
    return Plan(rows[first], columns[first], np.add.reduceat(mass, first))


def _centred(points_a: Floats, points_b: Floats) -> tuple[Floats, Floats]:
    """Shift both sets by their common midpoint, scale by a power of two."""
    a, b = (np.asarray(p, dtype=np.float64) for p in (points_a, points_b))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"points have shapes {a.shape} and {b.shape}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("points must be finite.")
    low = np.minimum(a.min(axis=0), b.min(axis=0))
    high = np.maximum(a.max(axis=0), b.max(axis=0))
    middle = low / 2 + high / 2
    a, b = a - middle, b - middle
    exponent = -math.frexp(float(max(np.abs(a).max(), np.abs(b).max())))[1]
    return np.ldexp(a, exponent), np.ldexp(b, exponent)


def _canonical(
    points_a: Floats, points_b: Floats, left: Masses, right: Masses
) -> tuple[Floats, Floats, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the centred points in lexicographic order, and the two orders."""
    a, b = _centred(points_a, points_b)
    if (len(a), len(b)) != (len(left), len(right)):
        raise ValueError(
            f"{len(a)} and {len(b)} points, but {len(left)} and {len(right)} masses."
        )
    order_a, order_b = np.lexsort(a.T[::-1]), np.lexsort(b.T[::-1])
    return a[order_a], b[order_b], order_a, order_b


def _directions(
    a: Floats, b: Floats, share_a: Floats, share_b: Floats, n_projections: int
) -> list[Floats]:
    """Axes, mean difference, first principal direction, then random directions."""
    width = a.shape[1]
    mean_a, mean_b = share_a @ a, share_b @ b
    centre = (mean_a + mean_b) / 2
    scatter = ((a - centre).T * share_a) @ (a - centre)
    scatter += ((b - centre).T * share_b) @ (b - centre)
    named = [*np.eye(width), mean_b - mean_a, np.linalg.eigh(scatter)[1][:, -1]]
    generator = np.random.Generator(np.random.PCG64(_SEED))
    n_random = max(0, n_projections - len(named))
    return [*named, *generator.standard_normal((n_random, width))]


def _project(points: Floats, direction: Floats) -> Floats:
    """Project row by row, so that equal rows have equal projections."""
    value = np.zeros(len(points))
    for column, factor in zip(points.T, direction, strict=True):
        value += column * factor
    return value


def _monotone(
    a: Floats, b: Floats, left: Masses, right: Masses, direction: Floats
) -> Plan:
    """Couple the quantiles of a projection: merge the cumulative masses."""
    order_a = np.argsort(_project(a, direction), kind="stable")
    order_b = np.argsort(_project(b, direction), kind="stable")
    cum_a, cum_b = np.cumsum(left[order_a]), np.cumsum(right[order_b])
    levels = np.union1d(cum_a, cum_b)
    mass = np.concatenate((levels[:1], np.diff(levels)))
    rows = order_a[np.searchsorted(cum_a, levels)]
    return Plan(rows, order_b[np.searchsorted(cum_b, levels)], mass)


def _resolve(
    old: Plan, spent: float, points_a: Floats, points_b: Floats, cost: ShiftCost
) -> Plan:
    """Solve one chunk afresh; keep the old pairs unless the cost falls."""
    atoms_a, rows = np.unique(old.rows, return_inverse=True)
    atoms_b, columns = np.unique(old.columns, return_inverse=True)
    left = np.zeros(len(atoms_a), dtype=old.mass.dtype)
    right = np.zeros(len(atoms_b), dtype=old.mass.dtype)
    np.add.at(left, rows, old.mass)
    np.add.at(right, columns, old.mass)
    shifts = points_a[atoms_a][:, None, :] - points_b[atoms_b][None, :, :]
    table = _costs(cost, shifts.reshape(-1, shifts.shape[-1]))
    table = table.reshape(len(atoms_a), len(atoms_b))
    new = emd_plan(left, right, table)
    value = new.mass.astype(np.float64) @ table[new.rows, new.columns]
    if value >= spent:
        return old
    return Plan(atoms_a[new.rows], atoms_b[new.columns], new.mass)


def _costs(cost: ShiftCost, shifts: Floats) -> Floats:
    values = np.asarray(cost(shifts), dtype=np.float64)
    if values.shape != (len(shifts),) or not (values >= 0).all():
        raise ValueError("cost must return one finite non-negative value a shift.")
    return values


def _squares(shifts: Floats) -> Floats:
    return np.asarray(_project(shifts**2, np.ones(shifts.shape[1])))


def _shares(mass: Masses) -> Floats:
    value = mass.astype(np.float64)
    return np.asarray(value / value.sum())
