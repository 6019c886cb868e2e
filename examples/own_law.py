"""
A noise law of one's own
========================

The package adds Laplace, Gaussian or exponential noise. Another noise takes a class that
says what it is and what a shift of it reveals, and nothing in the package is changed. Here
it is the sum of a Laplace and a Gaussian draw. The page states what a shift of the sum
reveals and why, lets ``check_law`` look for numbers that refute the statement, makes a
mechanism of the law, and compares its noise with that of either part alone.

The data are the 442 patients of scikit-learn's diabetes table, and the secret is their
sex. Every promise on this page is for the fitted prior, that is for rows drawn from these,
and for one release of one row; several rows of a person, and columns kept beside the
release, are not covered.
"""

# %%
import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import log_ndtr
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer import AdditiveRelease, compare_mechanisms
from skpuffer.audit import KernelRenyiAuditor
from skpuffer.displays import NoiseDisplay
from skpuffer.exceptions import AlteredScaleWarning, LawError
from skpuffer.laws import (
    GRID_BITS,
    Gaussian,
    Laplace,
    NoiseLaw,
    check_law,
    discrete_gaussian,
    release_on_grid,
    rounded_laplace,
)

# %%
# What a shift of the sum reveals
# -------------------------------
#
# A release of the value *x* is *x* + *L* + *G*, with Laplace noise *L* of scale *b* and
# Gaussian noise *G* of standard deviation σ = *rb*, for a fixed ratio *r*. The rules of the
# package ask how far the noise and the same noise, moved by *z*, are apart: the Rényi
# divergence D(*z*) of order α.
#
# The sum moved by *z* = *u* + *v* is the sum of *L* moved by *u* and of *G* moved by *v*.
# A sum is a function of its parts, and no function of two things tells more than the two
# do (data processing). Divergences of independent parts add up, so that
#
#     D(*z*) ≤ D\ :sub:`Laplace`\ (*u*) + D\ :sub:`Gauss`\ (*v*) for each way to split
#     *z* = *u* + *v*.
#
# All to one part is such a way, so D is at most the smaller of the two. It is often much
# less. A near shift costs either part its square, and is cheapest when it is shared in
# proportion to *b*\ ² and σ². Further on, one more unit costs Laplace noise no more than
# 1 / *b*, and Gaussian noise that was moved by *v* already α *v* / σ², so the Gaussian part
# takes no more than *v* = σ² / (α *b*). The law below takes the smaller of the two. As α
# grows that cap goes to zero, and at α = ∞, where Gaussian noise alone promises nothing,
# the sum promises what its Laplace part does.
#
# The law
# -------
#
# The noise that is added lies on a grid, and there the argument has a catch. The Laplace
# draw of the package is a rounding of the continuous one, and may be moved by any amount.
# The discrete Gaussian can only be compared with itself moved by *whole steps*: moved by
# half a step it has no value in common with itself. The comment in ``_divergence`` says
# what is done about it.


@dataclass(frozen=True)
class LaplacePlusGaussian(NoiseLaw):
    """The sum of Laplace noise of scale b and Gaussian noise of deviation ratio · b."""

    ratio: float = 1.0

    name: ClassVar[str] = "Laplace plus Gaussian"
    max_order: ClassVar[float] = math.inf
    homogeneity: ClassVar[float] = 1
    sources: ClassVar[dict[str, str]] = dict.fromkeys(
        ("alpha_wasserstein", "closed_form"),
        "Ding, Yang and Zhang 2026, Theorem 1, for the Laplace noise that the release is "
        "a function of",
    )

    def __post_init__(self):
        # What the sampler of the Gaussian part can draw.
        if not 0.01 <= self.ratio <= 2:
            raise ValueError(f"ratio must be from 0.01 to 2, got {self.ratio!r}")

    def shift_divergence(self, shifts, *, alpha, scale):
        """Bound it by what both parts reveal of their share, summed over columns."""
        if np.ndim(alpha):
            return np.stack([self._divergence(shifts, a, scale) for a in alpha])
        return self._divergence(shifts, alpha, scale)

    def _divergence(self, shifts, alpha, scale):
        b, square = np.asarray(scale, dtype=float), self.ratio**2
        z = np.abs(np.asarray(shifts, dtype=float))
        v = np.minimum(z * square / (1 + square), b * square / alpha)
        # On the grid of step g a release is g · (n + l + k), n the rounded value, l a
        # rounded Laplace draw of scale b and k a discrete Gaussian draw, whose deviation
        # is not below ratio · b. Shifts of n are whole steps: z = m g. Give the Gaussian
        # part i = floor(v / g) of the m steps. It is moved by whole steps, which costs no
        # more than the continuous law states for i g <= v [Canonne, Kamath and Steinke
        # 2020, Proposition 5]. The Laplace part has z - i g left, at most z and less than
        # z - v + g, where g <= b / 2^GRID_BITS. So one step is counted on both sides:
        u = z - np.maximum(v - b / 2**GRID_BITS, 0)
        return Laplace().shift_divergence(
            u, alpha=alpha, scale=b
        ) + Gaussian().shift_divergence(v, alpha=alpha, scale=self.ratio * b)

    def wasserstein_exponent(self, shifts, *, alpha, scale):
        """Return that of the Laplace part, whose release this one is a function of."""
        return Laplace().wasserstein_exponent(shifts, alpha=alpha, scale=scale)

    def noise_std(self, scale):
        """Add up variances."""
        return math.sqrt(2 + self.ratio**2) * np.asarray(scale, dtype=float)

    def logpdf(self, values, *, scale):
        """Return the logarithm of the convolution of both densities."""
        z, r = np.abs(np.asarray(values, dtype=float)) / scale, self.ratio
        sides = np.logaddexp(log_ndtr(z / r - r) - z, log_ndtr(-z / r - r) + z)
        return sides + r**2 / 2 - math.log(2 * scale)

    def perturb(self, values, *, scale, bits, out=None):
        """Round values to the grid, and add both draws."""
        return release_on_grid(values, scale, self._draw, bits, out)

    def _draw(self, size, t, bits):
        # One grid for both, that of b = t steps. Rounded up in exact arithmetic, so that
        # the Gaussian part has no less noise than is stated.
        s = math.ceil(Fraction(self.ratio) * t)
        return rounded_laplace(size, t, bits) + discrete_gaussian(size, s, bits)


# %%
# ``convex`` is left at False, and has to be. Where the Gaussian part has reached its cap,
# the whole rest of a shift goes to the Laplace part, and the cost of a unit falls there:
# exp((α − 1) D) has a bend the wrong way. With ``convex = True`` the package would replace
# neighbouring shifts by their mean, and might find too small a scale. False is right for
# every law. It costs time, since shifts are rounded up instead and several couplings are
# tried.
#
# The check
# ---------
#
# ``check_law`` computes the divergence of the density by quadrature, draws noise, and
# compares both with what the law states. It looks for numbers that refute a law, at some
# orders, shifts and scales. That none was found is no proof; the proof is the argument
# above.

law = LaplacePlusGaussian(ratio=1.0)
print(check_law(law))

# %%
# What is stated is an upper bound, and the figure shows how good a one, at the order 4.
# All shifts are in units of the standard deviation of the noise, the same for the three
# laws. By its own statement the sum reveals less of near shifts than Laplace noise does,
# and much less of far ones than Gaussian noise, but never less than the better of the two.

ALPHA = 4
check = check_law(law, alphas=[ALPHA], shifts=np.geomspace(0.02, 8, 25))
std = float(law.noise_std(1.0))
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
shifts = check.shifts / std
for other, style in ((Laplace(), "--"), (Gaussian(), ":")):
    scale = 1 / float(other.noise_std(1.0))
    value = other.shift_divergence(shifts[:, None], alpha=ALPHA, scale=scale)
    ax.loglog(shifts, value, style, lw=1.6, label=other.name.capitalize())
(line,) = ax.loglog(shifts, check.stated[0], lw=1.8, label="sum, as stated")
ax.loglog(
    shifts, check.computed[0], "o", ms=4, color=line.get_color(), label="by quadrature"
)
ax.set_xlabel("shift / standard deviation of the noise")
ax.set_ylabel(f"Rényi divergence of order {ALPHA} (nats)")
ax.legend(frameon=False)
ratio = check.stated / check.computed
print(f"Stated / computed: {ratio.min():.3f} to {ratio.max():.3f}.")

# %%
# A law that is wrong
# -------------------
#
# A factor forgotten in a formula is the usual mistake. Everything would still run with it,
# and every guarantee would be false. And a claim of convexity, taken over from another
# law:


class HalfStated(LaplacePlusGaussian):
    """States half of the divergence."""

    name = "half stated"

    def _divergence(self, shifts, alpha, scale):
        return super()._divergence(shifts, alpha, scale) / 2


class SaidToBeConvex(LaplacePlusGaussian):
    """States convex costs, which it has not."""

    name = "said to be convex"
    convex = True


for wrong in (HalfStated(), SaidToBeConvex()):
    try:
        check_law(wrong)
    except LawError as error:
        print(f"{type(wrong).__name__}: {error}\n")

# %%
# Some mistakes it cannot see: without the one step that is counted twice, the law passes
# too. A millionth is beyond what quadrature and draws resolve; the argument alone knows of
# it.
#
# The mechanism
# -------------
#
# A subclass of ``AdditiveRelease`` with the law as its attribute is a mechanism like those
# of the package. The guarantee says whose statement it rests on.


class SumRelease(AdditiveRelease):
    """Release columns with the sum of Laplace and Gaussian noise."""

    law = LaplacePlusGaussian(ratio=1.0)


data, target = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
rows = data[["bmi", "sex"]]
release = SumRelease(alpha=4, epsilon=1, secret="sex").fit(rows)
print(release.guarantee_)
print(rows[["bmi"]].join(release.transform(rows).add_suffix(" released")).head(3))

# %%
# In a pipeline the model sees what was released: here a ridge regression of the disease
# score, over 20 splits, in each of which every patient is released once.

ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
splits = ShuffleSplit(n_splits=20, test_size=0.25, random_state=0)
for name, model, columns in (
    ("bmi as it is", ridge, ["bmi"]),
    ("bmi released", make_pipeline(SumRelease(alpha=4, secret="sex"), ridge), rows),
):
    scores = cross_val_score(model, data[list(columns)], target, cv=splits)
    print(f"R² of {name}: {scores.mean():.3f} ± {scores.std():.3f}")

# %%
# Its noise, honestly
# -------------------
#
# ``NoiseDisplay`` and ``compare_mechanisms`` take laws beside the names of those of the
# package. For ``bmi``, at two budgets over the orders:

display = NoiseDisplay.from_frame(
    rows, secret="sex", laws=["laplace", "gaussian", law], epsilons=[0.2, 1]
)
table = display.table
noise = table.pivot(index=["epsilon", "alpha"], columns="law", values="noise_std")
ours = next(name for name in noise if name.startswith(law.name))
best = noise[["laplace", "gaussian"]].min(axis=1)
print(noise.div(best, axis=0).rename(columns={ours: "sum"}).round(2))
better = int((noise[ours] < best).sum())
print(f"The sum needs the least noise at {better} of {len(noise)} orders and budgets.")

# %%
# The table is in units of the better of the two. At low orders and small budgets Gaussian
# noise needs the least, at high orders Laplace noise does, and by far: no single choice of
# these two is good everywhere. The sum keeps nearer to the better one, but it needs more
# than that one, and in between more than either: whoever knows the order and the budget
# takes the better of the two and not the sum. Its price at high orders is that of the
# Gaussian part, which then hides nothing: a factor √(1 + r²/2).
#
# Is there a place where it needs less than either? Where nearly all rows move a little,
# in several columns, and a rare one moves far. The near shifts add up and want Gaussian
# noise, which the far one makes dear. A made-up table of 10,000 rows a group:

n = 10_000
made_up = pd.DataFrame(
    np.repeat([[0.0] * 4, [1.0] * 4], n, axis=0), columns=list("abcd")
)
made_up["secret"] = np.repeat(["no", "yes"], n)
made_up.loc[2 * n - 1, "a"] = 10.0
table = compare_mechanisms(
    made_up,
    secret="secret",
    laws=["laplace", "gaussian", law, LaplacePlusGaussian(ratio=2.0)],
    calibrations=["transport"],
    scopes=["joint"],
    alpha=2,
    epsilon=0.5,
)
print(
    table[table["column"] == "b"][["law", "noise_std"]].round(2).to_string(index=False)
)

# %%
# There it does, by a tenth or so.
#
# An audit
# --------
#
# An audit believes neither the law nor its check: it looks at releases alone. The promise
# is for rows drawn from the fitted ones, so such rows are drawn for either secret value,
# each is released once, and the two samples are held against the claim. The same with a
# release whose scale was divided by 32, of which ``transform`` would warn:

warnings.simplefilter("ignore", AlteredScaleWarning)
groups = [group[["bmi"]] for _, group in rows.groupby("sex")]
for part in (1, 1 / 32):
    release.scale_ = release.scale_ * part
    X, Y = (
        release.transform(group.sample(10_000, replace=True, random_state=0))
        for group in groups
    )
    audit = KernelRenyiAuditor(alpha=4, epsilon=1, random_state=0).fit(X, Y)
    print(f"Scale × {part:<7g}: ε is at least {audit.bound_:.2f}, {audit.verdict_}.")

# %%
# A promise that is kept is refuted in at most 5 % of audits. That no violation was found
# does not make it true.
#
# To write a law, then: state the divergence with its reason, sample on the grid from the
# bits that are given, let ``check_law`` look at it, and keep what the proof rests on in a
# test.

plt.show()
