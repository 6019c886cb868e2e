"""
Gaussian against Laplace noise
==============================

Which of the two laws takes less noise? Ding, Yang and Zhang (2026, arXiv:2605.05723)
report that it is the Gaussian, and find so at α = 2 where each is calibrated by its own
theorem. The two theorems are not equally sharp, however: the Gaussian one gives nothing
away to the transport rule, the Laplace one does, most at low orders
(:ref:`sphx_glr_gallery_reproduce_alpha_wasserstein.py`). On this page both laws are
calibrated by the same rule, at α = 2 and 4, ε = 0.5 and 1.

Every promise is about one column of one row and one pair of secret values, for rows drawn
from the table (the fitted, empirical prior), and covers nothing else: no other column, no
second release, no other prior. Nothing is released here. The columns are our choice.
"""

# %%
# Six columns and secrets of the tables Adult, Heart Disease and Student Performance.

# sphinx_gallery_thumbnail_path = "images/thumbnails/gaussian_against_laplace.png"
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from _noise_of_pairs import RULES, noise_of_pair
from tables import load_adult, load_heart, load_student

FOLDER = sys.argv[1] if len(sys.argv) > 1 else None
adult, heart, student = load_adult(FOLDER), load_heart(FOLDER), load_student(FOLDER)
COLUMNS = {
    "age | sex": (adult, "age", ("sex", "Female", "Male")),
    "age | income": (adult, "age", ("income", "<=50K", ">50K")),
    "education-num | race": (adult, "education-num", ("race", "Black", "White")),
    "age | disease": (heart, "age", ("disease", "absent", "present")),
    "thalach | disease": (heart, "thalach", ("disease", "absent", "present")),
    "G3 | sex": (student, "G3", ("sex", "F", "M")),
}


def noise(alphas, epsilons, rules):
    """Return the noise of every column, one line a setting and rule."""
    return pd.concat(
        noise_of_pair(*setting, alphas=alphas, epsilons=epsilons, rules=rules).assign(
            case=case
        )
        for case, setting in COLUMNS.items()
    )


def compare_laws(table):
    """Return the two standard deviations side by side, and Laplace over Gaussian."""
    keys = ["case", "epsilon", "alpha", "calibration"]
    wide = table.pivot(index=keys, columns="law", values="noise_std").reset_index()
    # No noise at all is needed by either: no ratio.
    ratio = wide["laplace"] / wide["gaussian"].where(wide["gaussian"] > 0)
    return wide.assign(ratio=ratio)


ALPHAS, EPSILONS = [2, 4], [0.5, 1]
# α = 8 is for the count further down.
both = compare_laws(noise([*ALPHAS, 8], EPSILONS, RULES[:-1]))
exact = compare_laws(noise(ALPHAS, EPSILONS, ["exact"]))
both = pd.concat([both, exact], ignore_index=True)

# %%
# The standard deviation of Laplace noise, divided by that of Gaussian noise:

NAMES = {
    "w_inf": "W∞",
    "alpha_wasserstein": "Theorems",
    "closed_form": "chords",
    "transport": "transport",
    "exact": "exact",
}
# Told apart on light and on dark ground, and by the colour-blind.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
MARKS = "os^Dv"
shown = both[both["alpha"].isin(ALPHAS)]
ratios = shown.pivot(
    index=["alpha", "epsilon", "case"], columns="calibration", values="ratio"
)
ratios = ratios[list(NAMES)].rename(columns=NAMES).rename_axis(columns=None)
ratios = ratios.reindex(list(COLUMNS), level="case")
print(ratios.to_string(float_format="{:.2f}".format, na_rep=""))

# %%
# To the left of 1, Laplace noise is the smaller.

figure, axes = plt.subplots(
    2, 2, figsize=(9, 7), sharex=True, sharey=True, layout="constrained"
)
places = {case: -place for place, case in enumerate(COLUMNS)}
for row, alpha in zip(axes, ALPHAS, strict=True):
    for ax, epsilon in zip(row, EPSILONS, strict=True):
        panel = shown[(shown["alpha"] == alpha) & (shown["epsilon"] == epsilon)]
        ax.axvline(1, color=plt.rcParams["axes.edgecolor"], lw=0.8)
        for turn, (rule, name) in enumerate(NAMES.items()):
            here = panel[panel["calibration"] == rule]
            heights = here["case"].map(places) + 0.24 - 0.12 * turn
            style = {"color": COLOURS[turn], "marker": MARKS[turn], "ls": ""}
            ax.plot(here["ratio"], heights, label=name, **style)
        ax.set(title=f"α = {alpha}, ε = {epsilon:g}", xscale="log")
        ax.set_yticks(list(places.values()), list(places))
ticks = [0.5, 0.7, 1, 1.5, 2, 3]
for ax in axes[1]:
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
figure.supxlabel("standard deviation, Laplace / Gaussian")
figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)

# %%
# With the paper's theorems (and the chords) Gaussian noise is the smaller at α = 2, for
# every column: that agrees. At α = 4 it mostly is, by less. What does not hold up is that
# the *law* were the better one. Under the transport rule, which is Theorem 2 for the
# Gaussian and sharper than Theorem 1 for Laplace noise, Laplace noise is the smaller in
# most settings. The exact rule gives next to nothing away for either law, and Laplace
# noise is the smaller in all that are shown. For education-num and race it asks for no
# noise at all, hence no ratio: the two distributions are within ε of each other as they
# are.
#
# W∞ looks at the largest shift alone, so that its ratio is the same for every column.
#
# The counts, with α = 8 as a third order, of the rules that need no long computation:

counts = both[both["calibration"] != "exact"].groupby("calibration")["ratio"]
for rule, ratio in counts:
    print(f"{NAMES[rule]:9}: Laplace smaller in {(ratio < 1).sum()} of {len(ratio)}")

wide = both.pivot(
    index=["case", "epsilon", "alpha"], columns="calibration", values="laplace"
)
above = wide["alpha_wasserstein"] > wide["w_inf"] * (1 + 1e-5)
at_two = above.xs(2, level="alpha")
print(f"Laplace noise of Theorem 1 above that of W∞: {above.sum()} of {len(above)},")
print(f"at α = 2: {at_two.sum()} of {len(at_two)}")

# %%
# Small budgets
# -------------
#
# There is a regime in which the Gaussian is the better law: small ε. Both divergences are
# quadratic in a small shift, and the same variance makes the Gaussian's half as large
# (α z²/2σ² against α z²/2b², with a variance of 2b²). As ε falls, the ratio therefore tends
# to √2 for every column. Here it is for the transport rule at α = 2.

small = compare_laws(noise([2], [0.001, 0.005, 0.02, 0.1, 0.4, 1, 4], ["transport"]))
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for case, marker in zip(COLUMNS, "os^DvP", strict=True):
    here = small[small["case"] == case]
    ax.plot(here["epsilon"], here["ratio"], marker=marker, ms=4, label=case)
for level in (1, np.sqrt(2)):
    ax.axhline(level, color=plt.rcParams["axes.edgecolor"], lw=0.8)
ax.annotate("√2", (0.001, np.sqrt(2)), xytext=(0, 3), textcoords="offset points")
ax.set(xscale="log", xlabel="ε", ylabel="standard deviation, Laplace / Gaussian")
ax.set_ylim(top=1.5)
ax.set_title("Transport rule, α = 2")
ax.legend(frameon=False)

wide = small.pivot(index="case", columns="epsilon", values="ratio")
print(wide.loc[list(COLUMNS)].round(3))

# %%
# So there is no better law as such. :func:`skpuffer.compare_mechanisms` tabulates both for
# one's own columns, order and budget before anything is released.

plt.show()
