"""Audit releases from outside, and see what samples of them refute.

Our own estimators on the diabetes data that come with scikit-learn, as they are and with
too little noise; a release without noise; columns that are harmless one by one; and the
Gaussian mechanism in 30 dimensions of Domingo-Enrich and Mroueh (2022), as a finished
sample and while it runs.
"""

import math
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.datasets import load_diabetes

from skpuffer import (
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    held_out_divergence,
)
from skpuffer.audit import KernelRenyiAuditor, RunningAudit, audit_estimator
from skpuffer.exceptions import ExcessiveNoiseWarning, ZeroNoiseWarning

N = 10_000
SIZES = 1_000, 10_000, 100_000


def title(text):
    print(f"\n{text}\n{'-' * len(text)}")


def shown(bound):
    return "nothing" if math.isnan(bound) else f"ε ≥ {bound:.2f}"


def our_estimators(data):
    title(
        f"1. Our estimators, and the same with less noise ({N:,} draws a secret value)"
    )
    laplace, gaussian = RenyiPufferfishLaplace, RenyiPufferfishGaussian
    promises = {
        "(∞, 1) Laplace, any bmi in [15, 50]": (
            laplace(math.inf, 1.0, prior_model="bounded", bounds=(15, 50)),
            ["bmi"],
        ),
        "(1, .01) Gaussian, bmi, exact": (
            gaussian("auto", 1.0, delta=0.01, calibration="exact"),
            ["bmi"],
        ),
        "(2, 1) Gaussian, bmi and bp": (gaussian(2, 1.0), ["bmi", "bp"]),
        "(2, 1) Laplace, bmi, exact": (laplace(2, 1.0, calibration="exact"), ["bmi"]),
    }
    print(f"  {'promise':<36} scale  found     verdict")
    for name, (noise, columns) in promises.items():
        rows = data[[*columns, "severe"]]
        noise.set_params(secret="severe").fit(rows)
        for part in (1, 1 / 2, 1 / 4):
            noise.scale_ = noise.scale_ * part
            found = audit_estimator(noise, rows, n_samples=N, random_state=0)
            print(f"  {name:<36} × {part:<4g} {shown(found.bound)}  {found.verdict}")
            if part < 1 and name.endswith("Laplace, bmi, exact"):
                true = held_out_divergence(noise, rows)["divergence"].max()
                print(f"  {'':<44} the truth is {true:.2f}")
            noise.scale_ = noise.scale_ / part
    print(
        "  A promise that is kept is refuted in 5 % of audits at most. One that is broken\n"
        "  need not be: samples bound ε from below, calibration has slack, and the last\n"
        "  promise is broken by rows so rare that no event with them can be counted."
    )


def a_small_excess():
    title("2. A small excess: ε = 1 promised, Laplace noise for ε = 1.05")
    rng = np.random.default_rng(4)
    for n in SIZES:
        X, Y = rng.laplace(scale=1 / 1.05, size=(2, n, 1))
        found = KernelRenyiAuditor(epsilon=1.0, random_state=0).fit(X, Y + 1)
        print(f"  {n:7,} samples a side: {shown(found.bound_)}, {found.verdict_}")


def no_noise(data):
    title(
        "3. A release that adds no noise: the bmi of 442 patients, about their illness"
    )
    rows = data[["bmi", "severe"]]
    for epsilon in (0.1, 1.0):
        found = KernelRenyiAuditor(epsilon=epsilon, secret="severe", random_state=0)
        found.fit(rows)
        print(
            f"  ε = {epsilon} from one release: {shown(found.bound_)}, {found.verdict_}"
        )
    noise = RenyiPufferfishLaplace(math.inf, 1.0, secret="severe").fit(rows)
    noise.scale_ = np.zeros(1)
    found = audit_estimator(noise, rows, n_samples=N, random_state=0)
    print(f"  ε = 1 from {N:,} draws of it: {shown(found.bound)}, {found.verdict}")


def columns_alone():
    title("4. Column by column: a and b say nothing, a and b together everything")
    rows = pd.DataFrame(
        {
            "a": [0, 1, 0, 1] * 50,
            "b": [0, 1, 1, 0] * 50,
            "secret": [0, 0, 1, 1] * 50,
        }
    ).astype(float)
    alone = RenyiPufferfishLaplace(4, 1.0, secret="secret", scope="column").fit(rows)
    print(f"  scope='column' finds the scales {alone.scale_}")
    print(f"  {audit_estimator(alone, rows, random_state=0)}")
    released = alone.transform(rows)
    found = KernelRenyiAuditor(epsilon=1.0, random_state=0)
    found.fit(released, secret=rows["secret"])
    print(f"  The rows of that release: ε ≥ {found.bound_:.2f}, {found.verdict_}")
    together = RenyiPufferfishLaplace(4, 1.0, secret="secret").fit(rows)
    found = audit_estimator(together, rows, random_state=0)
    print(f"  With scope='joint' instead: {shown(found.bound)}, {found.verdict}")


def sigma(epsilon, delta, distance):
    """Return the σ of the analytic Gaussian mechanism (Balle, Wang 2018)."""

    def excess(scale):
        half, shift = distance / (2 * scale), epsilon * scale / distance
        return (
            norm.cdf(half - shift) - math.exp(epsilon) * norm.cdf(-half - shift) - delta
        )

    return brentq(excess, 0.01 * distance, 1000 * distance)


def thirty_dimensions():
    title(f"5. The Gaussian mechanism in 30 dimensions, {N:,} samples of either side")
    rng = np.random.default_rng(0)
    shift = np.eye(30)[0] * 10
    for epsilon, delta in ((1, 0.005), (2, 0.2), (3, 0.03)):
        for part in (1, 1 / 2):
            scale = sigma(epsilon, delta, 10) * part
            X, Y = rng.normal(scale=scale, size=(2, N, 30))
            found = KernelRenyiAuditor(epsilon=epsilon, delta=delta, random_state=0)
            found.fit(X, Y + shift)
            print(
                f"  ({epsilon}, {delta}), σ × {part:g}: ε ≥ {found.bound_:.2f}, "
                f"{found.verdict_}"
            )


def while_it_runs():
    title("6. The same while it runs: (2, 0.2) promised, σ × 0.9")
    rng = np.random.default_rng(1)
    scale, shift = sigma(2, 0.2, 10) * 0.9, np.eye(30)[0] * 10
    audit = RunningAudit(epsilon=2.0, delta=0.2, random_state=0)
    for _ in range(20):
        X, Y = rng.normal(scale=scale, size=(2, 2_000, 30))
        audit.partial_fit(X, Y + shift)
        print(f"  {audit.n_pairs_:6,} pairs: {shown(audit.bound_)}, {audit.verdict_}")
        if audit.verdict_ == "refuted":
            break
    print(
        "  To look after every chunk, and to stop when it is refuted, costs no level."
    )


def main():
    # Scales of zero are the point of two examples, and wide bounds that of another.
    for category in (ZeroNoiseWarning, ExcessiveNoiseWarning):
        warnings.simplefilter("ignore", category)
    data, target = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    data["severe"] = np.where(target > target.median(), "yes", "no")
    our_estimators(data)
    a_small_excess()
    no_noise(data)
    columns_alone()
    thirty_dimensions()
    while_it_runs()


if __name__ == "__main__":
    main()
