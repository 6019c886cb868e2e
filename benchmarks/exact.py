"""Cost of the exact rule, and its noise against that of transport.

Run from the repository with `python benchmarks/exact.py`; `run.py` may take the rows
of `exact_calibration`. Times are those of a whole calibration, rounding to the grid
included, without the sort of the rows.
"""

import numpy as np
from timing import in_turns, print_rows

from skpuffer.core.calibration import RULES, Budget, Pair, calibrate
from skpuffer.core.laws import LAWS
from skpuffer.core.prior import Conditional

MANY = 1_000_000
GOALS = {"laplace": 1.0, "gaussian": 0.5}


def few_values():
    rng = np.random.default_rng(2)
    return [
        Conditional.from_rows(rng.integers(0, 100, (20_000, 1)) + shift)
        for shift in (0, 2)
    ]


def many_values(rows=MANY):
    rng = np.random.default_rng(0)
    return [
        Conditional.from_rows(rng.normal(mean, std, (rows, 1)))
        for mean, std in ((0, 1), (0.3, 1.2))
    ]


def exact_calibration():
    """Yield rows as `run.py` prints them."""
    few, many = few_values(), many_values()
    for law in LAWS.values():
        for groups, name, goal, repeats in (
            (few, "100 distinct values", 0.01, 20),
            (many, "2 × 10^6 distinct values", GOALS[law.name], 3),
        ):
            ours, peer = in_turns(
                *(
                    # A new pair: couplings are kept by the old one.
                    lambda law=law, groups=groups, rule=rule: calibrate(
                        [Pair(*groups, np.ones(1))], law(), rule(), Budget(4.0, 1.0)
                    )
                    for rule in (RULES["exact"], RULES["transport"])
                ),
                repeats=repeats,
            )
            name = f"calibration, exact, {name}, {law.name}"
            yield name, ours, "transport", peer, ours / goal, f"≤ 1 × {goal:g} s"


def noise_against_transport():
    """Yield the noise of the exact rule in units of that of transport."""
    groups, budget = few_values(), Budget(4.0, 1.0)
    for law in LAWS.values():
        exact, transport = (
            calibrate([Pair(*groups, np.ones(1))], law(), RULES[rule](), budget).scale[
                0
            ]
            for rule in ("exact", "transport")
        )
        name = f"scale, 100 distinct values, {law.name}"
        yield name, exact, "transport", transport, exact / transport, "< 1"


def main():
    for section in (exact_calibration, noise_against_transport):
        print_rows(section())


if __name__ == "__main__":
    main()
