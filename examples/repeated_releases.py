"""
Releasing more than once
========================

Every ``transform`` draws fresh noise, and so does every ``predict`` of a pipeline. Whoever
sees several releases of the same row sees more than one promise covers, and how much more
is not told by adding ε up. This page shows what one release promises, in several
currencies; what repeats reveal; and what to do instead.

The data are scikit-learn's diabetes patients, their ``bmi`` with the sex as the secret.
Every promise is for the fitted prior, that is for rows drawn from these.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from skpuffer import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.displays import PrivacyProfileDisplay

data, target = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
bmi = data[["bmi", "sex"]]

# %%
# One release, in several currencies
# ----------------------------------
#
# The promise asked for is a pair, here (α, ε) = (4, 1). An (ε′, δ) promise follows from it
# for every δ, and a δ for every ε′. The scale that was fitted proves more than the pair
# that was asked for: ``profile_`` knows a bound at every order, and takes the best.

noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(bmi)
lines = [
    (delta, noise.guarantee_.to_epsilon(delta), noise.profile_.to_epsilon(delta))
    for delta in (1e-2, 1e-4, 1e-6, 0)
]
header = ["δ", "ε′ by the order α = 4", "ε′ by all orders"]
print(pd.DataFrame(lines, columns=header).to_string(index=False, float_format="%.3g"))

# %%
# A single order says nothing at δ = 0, hence the infinity. Laplace noise has a bound
# there too, and the profile finds it. The same as a curve:

display = PrivacyProfileDisplay.from_estimator(noise, kind="delta")

# %%
# All of these are readings of *one* release. Convert the promise of the release as it is
# made, total, and do not add converted numbers up.
#
# An average undoes the noise
# ---------------------------
#
# The noise has mean zero. If the same 442 rows are released again and again, the average
# of what is seen approaches the raw values, which are given to a tenth:

raw = bmi["bmi"].to_numpy()


def average(copies):
    """Release every row so many times, and average."""
    released = noise.transform(bmi.loc[np.tile(bmi.index, copies)])
    return released["bmi"].to_numpy().reshape(copies, -1).mean(axis=0)


fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
lines = []
for copies in (1, 10, 100, 1000, 10_000):
    seen = average(copies)
    error = np.sqrt(np.mean((seen - raw) ** 2))
    found = np.mean(np.abs(seen - raw) < 0.05)
    lines.append((copies, error, f"{found:.0%}"))
    if copies in (1, 100, 10_000):
        ax = axes[[1, 100, 10_000].index(copies)]
        ax.plot(raw, seen, ".", ms=4, alpha=0.7)
        plural = "" if copies == 1 else "s"
        ax.set(title=f"{copies:,} release{plural} of each row", xlabel="raw bmi")
axes[0].set_ylabel("average of the releases")
header = ["releases", "error of the average", "found to the last digit"]
print(pd.DataFrame(lines, columns=header).round(3).to_string(index=False))

# %%
# Each of these releases keeps (4, 1) by itself. Together they keep nothing of the kind.
#
# Why k · ε is false
# ------------------
#
# In differential privacy k releases at ε are one at k · ε. Not here. The copies of a row
# are independent given *the row*, and not given *the secret*: the first tells which row it
# may be, and what the second tells comes on top of that.
#
# Two groups show it. In the one, every value is 0; in the other, one in ten is 1. The rule
# ``"exact"`` finds the noise that just keeps ε = 0.688 at α = 2:

epsilon = 0.688
groups = pd.DataFrame(
    {"value": [0] * 1000 + [1] * 100, "group": ["a"] * 100 + ["b"] * 1000}
)
exact = RenyiPufferfishGaussian(2, epsilon, secret="group", calibration="exact")
sigma = exact.fit(groups).scale_[0]

# %%
# At α = 2 the divergence of k releases can be written down. With Gaussian noise it is
# log(0.99 + 0.01 · exp(k/σ²)): the integral of (0.9 p + 0.1 q)²/p, with p and q the
# densities of k noisy copies of 0 and of 1.

for k in (1, 2, 3):
    truth = np.log(0.99 + 0.01 * np.exp(k / sigma**2))
    print(f"{k} releases: k · ε = {k * epsilon:.3f}, the divergence is {truth:.3f}")

# %%
# So guarantees of this package have no addition. What can be had is a promise for k copies
# *together*, which is calibrated as one: ``n_releases``.

together = exact.set_params(n_releases=2).fit(groups)
print(f"σ = {sigma:.3f} for one release, {together.scale_[0]:.3f} in each of two")

# %%
# Is it worth it?
# ---------------
#
# Back to the patients. For k copies covered together at (4, 1), the noise of each, and that
# of the average of all k, divided by the spread of ``bmi``:

lines = []
for mechanism in (RenyiPufferfishLaplace, RenyiPufferfishGaussian):
    for k in (1, 2, 4, 8):
        noise_of_k = mechanism(4, 1, secret="sex", n_releases=k).fit(bmi)
        ratio = noise_of_k.report_.noise_to_spread[0]
        lines.append((noise_of_k.guarantee_.law, k, ratio, ratio / np.sqrt(k)))
header = ["law", "n_releases", "noise of each", "noise of the average"]
print(pd.DataFrame(lines, columns=header).round(2).to_string(index=False))

sentences = str(noise_of_k.guarantee_).split(". ")
print(f"\nThe last one says: {sentences[1]}.")

# %%
# Nothing is won: the average of k Gaussian copies is as noisy as a single release, and of
# Laplace copies noisier. ``n_releases`` is for when several copies have to be made, for
# several receivers who may compare them, say. Otherwise make one.
#
# What a pipeline does
# --------------------
#
# A pipeline releases whenever data pass through it: in ``fit``, and in each ``predict``.
# The same patient has another prediction each time, and each is a function of another
# release.

pipeline = make_pipeline(noise, LinearRegression()).fit(bmi, target)
rows = bmi.head(3)
for _ in range(3):
    print("pipeline:", pipeline.predict(rows).round(0))

# %%
# Release once, and train and predict on the release. What is computed from a release needs
# no further noise. (The model also depends on the target, which is raw here, and of which
# nothing was promised.)

released = noise.fit_transform(bmi)
model = LinearRegression().fit(released, target)
for _ in range(2):
    print("model on the release:", model.predict(released.head(3)).round(0))

# %%
# A new patient is released once as well, when she comes, and the released row is what is
# kept of her. She is not one of the fitted rows: ``prior_model="population"`` makes a
# promise for such rows, with a stated confidence.
#
# A pipeline is right where each row passes once: in cross-validation to learn what noise
# costs, where nothing leaves your machine, or in front of a model that serves every
# row a single time.
#
# A seed is no way out. With ``random_state`` a release can be repeated exactly, and anyone
# who knows or guesses the seed can subtract the noise.

plt.show()
