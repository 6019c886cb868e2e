"""Plans of least total cost, solved by POT's network simplex.

Contract: exact integer marginals or an error. The only file that uses POT, imported
inside a function because the import is slow.

What ``ot.emd`` does (versions 0.9.4 to 0.9.7), and what follows from it:

- It adds, subtracts and compares masses in float64, so integer masses with a total
  up to 2**53 give exact integer plans. But it first multiplies the target by sum(a)
  and divides by sum(b), which rounds, and then calls the problem infeasible; where
  that would change a mass, a dummy atom lifts both totals to a power of two.
- A reduced cost below 2.2e-15 of the node potential counts as zero, and potentials
  reach (largest cost + 1) times the number of nodes: with N nodes, differences below
  about 4e-15 N of the largest cost are invisible, and costs much smaller than 1 lose
  all digits. So costs are scaled to a largest value near 2**20, and exponential
  costs are clipped no higher than needed.
- NaN costs give wrong plans silently; at the iteration limit mass is missing and
  there is only a warning. Both are errors here.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from skpuffer.core.plans._plan import (
    Floats,
    Masses,
    Plan,
    TransportPlanError,
    check_coupling,
    check_masses,
    merged,
    shares,
)

_MAX_ITERATIONS = 20_000_000
_FLOAT_TOTAL = 2**53  # integers up to here are exact in float64
_SCALED_TOTAL = 2**50
_CLIP_BITS = (24, 34, 44, 54)  # log2 of the range of costs resolved, in order


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
        Exact marginals; optimal up to the precision above. Totals beyond 2**53 are
        solved in rounds of 2**50 units, each taking on what the last left over.

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
    left, right = check_masses(mass_a, mass_b)
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
    while total := sum(rest_a.tolist()):
        if total <= _FLOAT_TOTAL:
            small_a, small_b = rest_a.astype(np.int64), rest_b.astype(np.int64)
        else:
            small_a, small_b = _quantise(rest_a, total), _quantise(rest_b, total)
        rows, columns = np.flatnonzero(small_a), np.flatnonzero(small_b)
        part = _network_simplex(
            small_a[rows], small_b[columns], cost[np.ix_(rows, columns)]
        )
        rows, columns = rows[part.rows], columns[part.columns]
        # the most these pairs can carry while their rows and columns stay within
        # what is left: floor of the smaller of two exact ratios
        units = part.mass.astype(object)
        mass = np.minimum(
            units * rest_a[rows] // small_a[rows].astype(object),
            units * rest_b[columns] // small_b[columns].astype(object),
        ).astype(left.dtype)
        found.append(Plan(rows, columns, mass))
        np.subtract.at(rest_a, rows, mass)
        np.subtract.at(rest_b, columns, mass)
    rows, columns, mass = (np.concatenate(field) for field in zip(*found, strict=True))
    return check_coupling(merged(Plan(rows, columns, mass * divisor)), left, right)


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
    left, right = check_masses(mass_a, mass_b)
    _check_positive("log_budget", log_budget)
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
    _check_positive("ceiling", ceiling)
    clipped = np.clip(np.asarray(log_cost, dtype=np.float64), 0.0, ceiling)
    return np.exp(clipped - ceiling) * (np.expm1(-clipped) / math.expm1(-ceiling))


def exponential_plan(
    log_cost: Floats, mass_a: Masses, mass_b: Masses, *, ceiling: float
) -> Plan:
    """Return a coupling of least E exp(log_cost), costs clipped at the ceiling.

    Where one unit of mass is too small a share for the solver's precision, lower
    ceilings are tried first, and the best of the plans found is returned.

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
    left, right = check_masses(mass_a, mass_b)
    _check_positive("ceiling", ceiling)
    log_cost = np.asarray(log_cost, dtype=np.float64)
    log_units = _log_units(left, right)
    best, least = None, math.inf
    for bits in _CLIP_BITS:
        cut = max(0.0, log_units - bits * math.log(2))
        clip = _raised(ceiling, -cut)
        plan = emd_plan(left, right, exponential_cost(log_cost, clip))
        used = log_cost[plan.rows, plan.columns]
        value = float(shares(plan.mass) @ exponential_cost(used, ceiling))
        if best is None or value < least:
            best, least = plan, value
        if cut == 0 or used.max() <= clip:
            break
    assert best is not None
    return best


def _check_positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}.")


def _log_units(left: Masses, right: Masses) -> float:
    masses = left.tolist()
    return math.log(sum(masses) // math.gcd(*masses, *right.tolist()))


def _raised(log_value: float, log_factor: float) -> float:
    """Return log(1 + factor (exp(log_value) - 1)) without overflow."""
    log_excess = log_value + math.log(-math.expm1(-log_value))
    return float(np.logaddexp(0.0, log_excess + log_factor))


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
    # POT gives integers exactly for integer masses
    if not np.isfinite(dense).all() or np.abs(dense - whole).max() > 1e-6:
        raise TransportPlanError("POT returned a plan that is not in whole units.")
    rows, columns = np.nonzero(whole)
    mass = whole[rows, columns].astype(np.int64)
    return check_coupling(Plan(rows, columns, mass), left, right)
