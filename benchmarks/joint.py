"""Couplings of many rows of several columns: their noise and their time.

Run from the repository with `python benchmarks/joint.py`; SKPUFFER_SHARED names the
folder that has `data/adult.data`. The noise is τ, the factor of the columns' spreads,
and its peer the least τ of any coupling: the whole transport problem solved by POT, for
squared distances and then twice for the rule's own cost. That takes a minute or two and
a few gigabytes for Adult. Times are CPU seconds of one thread (set OMP_NUM_THREADS=1).
"""

import math
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from timing import print_rows

from skpuffer import (
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    coupling_effort,
)
from skpuffer.core.calibration import RULES, Budget, Pair
from skpuffer.core.coupling import Coupling
from skpuffer.core.laws import LAWS
from skpuffer.core.plans import emd_plan, exponential_cost
from skpuffer.core.prior import Conditional, common_masses, pooled_spread

COLUMNS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
MECHANISMS = {"gaussian": RenyiPufferfishGaussian, "laplace": RenyiPufferfishLaplace}
BUDGET = Budget(2.0, 1.0)
# Logarithms of costs that are told apart: no plan in the budget pays as much twice.
CLIP = 9.0
# Relative gap below the least τ found at which the dual problem is to prove that no
# coupling does.
GAP = 1e-4


def adult():
    root = os.environ.get("SKPUFFER_SHARED", Path(__file__).parents[2] / "shared")
    frame = pd.read_csv(Path(root) / "data" / "adult.data", skipinitialspace=True)
    return frame[[*COLUMNS, "sex"]]


def synthetic(rows, power=1.0, seed=0):
    """Return two groups that differ in one of five columns; heavy tails by a power."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, rows, 5))
    second[:, 0] += 0.5
    values = np.vstack([first, second])
    frame = pd.DataFrame(np.sign(values) * np.abs(values) ** power, columns=[*"abcde"])
    return frame.assign(sex=np.repeat([0, 1], rows))


def seconds_of(run):
    start = time.process_time()
    result = run()
    return result, time.process_time() - start


def pair_of(frame):
    groups = [group for _, group in frame.groupby("sex")]
    ends = [
        Conditional.from_rows(g.drop(columns="sex").to_numpy(float)) for g in groups
    ]
    return Pair(*ends, pooled_spread(ends)[0])


def exponents(pair, law, unit):
    """Return the rule's exponents of all pairs of rows."""
    ends = pair.first.support / pair.weights, pair.second.support / pair.weights
    found = np.zeros((len(ends[0]), len(ends[1])))
    for x, y in zip(*(end.T for end in ends), strict=True):
        distinct, place = np.unique(x, return_inverse=True)
        others, other = np.unique(y, return_inverse=True)
        shifts = np.abs(np.subtract.outer(distinct, others)).reshape(-1, 1)
        cost = LAWS[law]().shift_divergence(shifts, alpha=BUDGET.alpha, scale=unit)
        table = (BUDGET.alpha - 1) * cost.reshape(len(distinct), len(others))
        found += table[place[:, None], other]
    return found


def full(pair, law):
    """Return the τ of plans of the whole problem, and their seconds.

    That of squared distances, and those of two solutions for the rule's own cost.
    """
    rule, noise = RULES["transport"](), LAWS[law]()
    first, second, _ = common_masses(pair.first, pair.second)

    def needed(cost):
        plan, seconds = seconds_of(lambda: emd_plan(first, second, cost))
        bound = Coupling.from_plan(pair.first, pair.second, plan).shift_bound()
        return rule.unit_scale(bound, noise, BUDGET, pair.weights), seconds

    # Gaussian exponents are squared distances.
    found = [needed(exponents(pair, "gaussian", 1.0))]
    for _ in range(2):
        least = min(unit for unit, _ in found)
        cost = exponential_cost(exponents(pair, law, least), CLIP)
        found.append(needed(cost))
    return zip(*found, strict=True)


def proven(pair, law, unit):
    """Whether the dual problem proves that no coupling does with a factor this small."""
    from ot import emd

    first, second, total = common_masses(pair.first, pair.second)
    cost = np.expm1(np.minimum(exponents(pair, law, unit), CLIP))
    shares = first / total, second / total
    _, log = emd(*shares, cost, numItermax=10**8, log=True, check_marginals=False)
    # Potentials that are feasible, whatever the solver returned.
    lower = (cost - log["u"][:, None]).min(axis=0)
    value = shares[0] @ log["u"] + shares[1] @ lower
    return value > math.expm1(BUDGET.log_target)


def noise_and_time(name, frame, law, goal, share, hasty=None, prove=False):
    """Yield rows as `run.py` prints them.

    `hasty` is the number of solves of a search that ends early: its peer is the one
    solution for squared distances.
    """
    mechanism = MECHANISMS[law](
        alpha=BUDGET.alpha, epsilon=BUDGET.epsilon, secret="sex"
    )
    pair = pair_of(frame)
    fitted, ours = seconds_of(lambda: mechanism.fit(frame))
    unit = float(fitted.scale_[0] / pair.weights[0])
    units, times = full(pair, law)
    least, peer = min(units), times[0] + times[1]
    yield f"{name}, {law}: τ", unit, "least τ of any", least, unit / least, goal
    yield (
        f"{name}, {law}: fit, s",
        ours,
        "both full solutions",
        peer,
        ours / peer,
        share,
    )
    if hasty is not None:
        with coupling_effort(solves=hasty):
            fitted, ours = seconds_of(lambda: mechanism.fit(frame))
        then = float(fitted.scale_[0] / pair.weights[0])
        label = f"{name}, {law}, {hasty} solves"
        yield f"{label}: τ", then, "least τ of any", least, then / least, goal
        one = times[0]
        yield f"{label}: fit, s", ours, "one full solution", one, ours / one, share
    if prove:
        low = least * (1 - GAP)
        yield (
            f"{name}, {law}: a smaller τ refuted",
            float(proven(pair, law, low)),
            "at",
            low,
            unit / low,
            goal,
        )


def joint_couplings():
    """Yield rows as `run.py` prints them, of all cases."""
    frame = adult()
    # The import of POT and of pandas' engines is not the search's.
    RenyiPufferfishGaussian(secret="sex").fit(frame.head(200))
    part = frame.sample(5000, random_state=0)
    cases = (
        ("Adult, 5,000 rows", part, "gaussian", "≤ 1.04", 10),
        ("Gaussian, 5,000 rows a side", synthetic(5000), "gaussian", "≤ 1.04", 1500),
        ("Gaussian, 5,000 rows a side", synthetic(5000), "laplace", "≤ 1.04", 1500),
        ("heavy tails, 5,000 a side", synthetic(5000, 2.5), "gaussian", "≤ 1.04", 1500),
        ("Adult, 32,561 rows", frame, "gaussian", "≤ 1.02", None),
        ("Adult, 32,561 rows", frame, "laplace", "≤ 1.02", None),
    )
    for name, rows, law, goal, hasty in cases:
        prove = len(rows) > 10_000 and "Adult" in name
        yield from noise_and_time(name, rows, law, goal, "≤ 0.1", hasty, prove)


def main():
    print_rows(joint_couplings())


if __name__ == "__main__":
    main()
