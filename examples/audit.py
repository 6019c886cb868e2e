"""
Auditing a release
==================

An audit takes nobody's word for a guarantee. It looks at samples of a release, given one
secret value and given another, and says what they refute: here of a release of this
package, with the noise that it promises and with less; of three mechanisms written by
hand, each with a fault that is easy to make; and of a mechanism while it runs.

An audit returns a lower bound on ε and one of three verdicts:

* **refuted** at level β = 5 %: the bound exceeds the claim. Of claims that are true, at
  most a share of β is refuted, for any distributions, sample sizes and dimensions.
* **no violation found**: nothing more. There may be one that these samples, or this
  search, do not show. It is no proof that a claim holds.
* **too few samples**: even the most telling samples of this size would not have refuted
  the claim.

The larger the bound, the leakier the release. All of it needs independent draws: each row
released once, and no sample chosen after a look at it.
"""

# %%
import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from skpuffer import RenyiPufferfishLaplace, held_out_divergence
from skpuffer.audit import KernelRenyiAuditor, RunningAudit, audit_estimator
from skpuffer.displays import AuditDisplay
from skpuffer.metrics import kernel_renyi_divergence

patients = load_diabetes(as_frame=True, scaled=False).data
rng = np.random.default_rng(0)

# %%
# A release of ours
# -----------------
# Body mass index (bmi) of 442 patients, their sex the secret.
# :func:`~skpuffer.audit.audit_estimator` draws rows from the prior that the guarantee
# names, here the fitted rows given sex, releases each draw once, and audits the releases.

rows = patients[["bmi", "sex"]]
noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(rows)
print(audit_estimator(noise, rows, n_samples=10_000))

# %%
# What if the code had a bug, and the noise were a half, an eighth or a 32nd of what was
# calibrated? For one column the true divergence can be computed, and laid beside what the
# audit finds.

calibrated = noise.scale_
lines = []
for divisor in (1, 2, 8, 32):
    noise.scale_ = calibrated / divisor
    found = audit_estimator(noise, rows, n_samples=10_000)
    truth = held_out_divergence(noise, rows)["divergence"].max()
    lines.append(
        (f"1/{divisor}" if divisor > 1 else "all", truth, found.bound, found.verdict)
    )
noise.scale_ = calibrated
ours = pd.DataFrame(lines, columns=["noise", "truth", "at least", "verdict on ε = 1"])
print(ours.round(2).to_string(index=False))

# %%
# Half of the noise would still keep the promise: the rule of the calibration has slack.
# With less it is broken, and refuted once it is broken by enough. The bound stays far
# below the truth: a divergence of order 4 is decided by rare values, and few samples of
# those are seen.
#
# The released table itself can be audited too, with the secret beside it. Each of its rows
# is one draw from the population of patients, about which this guarantee says nothing; so
# a refutation would not show a bug.

released = noise.transform(rows)
audit = KernelRenyiAuditor(alpha=4, epsilon=1).fit(released, secret=rows["sex"])
print(f"{len(released)} released rows: at least {audit.bound_:.2f}, {audit.verdict_}")

# %%
# Three mechanisms by hand
# ------------------------
# Somebody's script promises ε = 1 for whatever bmi between 15 and 50 a patient has, one
# patient at a time. Laplace noise of scale (50 − 15) / ε would do. The first function takes
# this for the standard deviation. The second answers a question with yes or no, truthfully
# with probability e\ :sup:`ε` / (1 + e\ :sup:`ε`), and *otherwise tosses a coin* instead of
# answering falsely. The third adds more noise than it must, but forgets it in 3 of 1,000
# cases, as a race between two threads may do.

LOW, HIGH, EPSILON = 15, 50, 1
FORGETS = 0.003


def too_little_noise(bmi):
    std = (HIGH - LOW) / EPSILON
    return bmi + rng.laplace(0, std / math.sqrt(2), bmi.shape)


def coin_instead_of_lie(yes):
    truthful = rng.random(yes.shape) < math.exp(EPSILON) / (1 + math.exp(EPSILON))
    return np.where(truthful, yes, rng.random(yes.shape) < 0.5).astype(float)


def forgetful(bmi):
    noised = bmi + rng.laplace(0, 1.25 * (HIGH - LOW) / EPSILON, bmi.shape)
    return np.where(rng.random(bmi.shape) < FORGETS, bmi, noised)


# %%
# An audit needs many independent releases of two inputs, those that are hardest to hide
# from each other: the lowest bmi and the highest, a yes and a no. With other inputs it
# would find less.


def samples(mechanism, first, second, n):
    return mechanism(np.full((n, 1), first)), mechanism(np.full((n, 1), second))


def verdict(audit):
    return f"ε at least {audit.bound_:.2f}, {audit.verdict_}"


by_hand = {
    "too little noise": samples(too_little_noise, LOW, HIGH, 20_000),
    "coin instead of lie": samples(coin_instead_of_lie, 1, 0, 20_000),
    "forgetful": samples(forgetful, LOW, HIGH, 40_000),
}
audits = {
    name: KernelRenyiAuditor(epsilon=EPSILON).fit(X, Y)
    for name, (X, Y) in by_hand.items()
}
for name, audit in audits.items():
    print(f"{name}: {verdict(audit)}")

# %%
# The first two are refuted, with bounds close to the truth: √2 = 1.41, and
# log((1 + p) / (1 − p)) = 1.86 for p = e / (1 + e). In the third no violation is found: its
# fault hides in rare releases, and the audit looks with a kernel and with plain curves.
#
# A look of one's own
# -------------------
# An audit learns on some rows which releases speak for one input, and counts on *other*
# rows how often they occur. Whatever was learned, the counts are a fair test. So any idea
# may be tried as a scorer, as long as the score of a row depends on that row alone. Here
# it is that Laplace noise hardly ever repeats a value, so that what repeats was released
# without noise.


def repeated_values(X, Y):
    """Learn which values repeat in either sample; score a row by whether it is one."""
    in_x, in_y = (
        values[count > 1]
        for values, count in (np.unique(one, return_counts=True) for one in (X, Y))
    )
    return lambda rows: 1.0 * np.isin(rows[:, 0], in_x) - np.isin(rows[:, 0], in_y)


look = KernelRenyiAuditor(epsilon=EPSILON, scorers=[repeated_values])
look.fit(*by_hand["forgetful"])
print(f"forgetful, by its repeated values: {verdict(look)}")
allowed = KernelRenyiAuditor(
    epsilon=EPSILON, delta=2 * FORGETS, scorers=[repeated_values, "linear"]
).fit(*by_hand["forgetful"])
print(f"against ε = 1 at δ = {2 * FORGETS}: {verdict(allowed)}")

# %%
# The fault breaks the promise of ε = 1, and would not break one of ε = 1 at a δ above
# 0.003: what happens no more often than δ is left out of such a promise. This is also why
# a δ is to be chosen small: it may be the probability of handing out the raw value.
#
# Bounds over n and over δ
# ------------------------
# Shaded is what the samples refute: every ε below the line. The bound grows with the
# number of releases, here of the first mechanism, and crosses the claim (dashed). Each
# point is an audit of its own: choose one size before you look.

over_n = AuditDisplay.from_samples(
    KernelRenyiAuditor(epsilon=EPSILON),
    *by_hand["too little noise"],
    sizes=[100, 300, 1_000, 3_000, 10_000, 20_000],
)

# %%
# The bounds of one audit at every δ, here of the third mechanism, hold together. A claim
# of ε = 1 is refuted up to some δ below 0.003, and not beyond.

over_delta = AuditDisplay.from_estimator(look, deltas=np.geomspace(1e-4, 0.02, 60))

# %%
# While it runs
# -------------
# :class:`~skpuffer.audit.RunningAudit` follows a mechanism in constant memory. It may be
# read after every chunk, and stopped once it refutes: the probability that a true claim is
# *ever* refuted is at most β. Looking all the time is paid for by more samples.

running = RunningAudit(epsilon=EPSILON)
for _ in range(100):
    running.partial_fit(*samples(too_little_noise, LOW, HIGH, 200))
    if running.verdict_ == "refuted":
        break
print(f"after {running.n_pairs_:,} pairs of releases: {verdict(running)}")

# %%
# Few samples
# -----------
# Thirty releases can refute little, and the audit says so.

X, Y = by_hand["too little noise"]
few = KernelRenyiAuditor(epsilon=3).fit(X[:30], Y[:30])
print(f"30 releases against ε = 3: {verdict(few)}")

# %%
# A kernel divergence is no verdict
# ---------------------------------
# The regularised kernel Rényi divergence of Domingo-Enrich and Mroueh (2022) of two
# *distributions* is a lower bound of their Rényi divergence. Computed from *samples* it is
# biased upwards, since two samples of one distribution differ too. Here both samples are
# patients drawn from one and the same table, so that the true divergence is 0.

table = scale(patients.drop(columns="sex"))
order = rng.permutation(len(table))
lines = []
for n in (30, 60, 120, 221):
    one, other = table[order[:n]], table[order[-n:]]
    divergence = kernel_renyi_divergence(one, other, alpha=12, reg=0.001)
    audit = KernelRenyiAuditor(epsilon=0.5).fit(one, other)
    lines.append((n, divergence, audit.bound_, audit.verdict_))
same = pd.DataFrame(
    lines, columns=["rows", "kernel divergence", "ε at least", "verdict on ε = 0.5"]
)
print(same.round(2).to_string(index=False))

# %%
# Whoever took the divergence for a verdict would accuse a release that gives nothing away.
# It falls as rows are added, but slowly, and how large its bias is depends on distributions
# that nobody knows. Therefore the auditor shows it as a diagnostic (``divergence_``),
# learns with the same kernel where to look, and takes its verdict from other rows than
# those.
plt.show()
