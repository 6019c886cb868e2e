"""
A first release
===============

Clinical measurements are released so that they say little about the patient's sex: one
column, then three together, what the release promises and what it does not, and a model
trained on it beside one trained on the raw columns.

The data come with scikit-learn: 442 patients with diabetes, some measurements, and how far
the disease had progressed a year later, which is to be predicted.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer import RenyiPufferfishLaplace
from skpuffer.displays import ReleaseDisplay

data, target = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
data = data[["age", "bmi", "bp", "sex"]]

# %%
# One column
# ----------
#
# The body mass index, ``bmi``, is to be published for each patient. The *secret* is the
# column ``sex``, coded 1 and 2. It is needed to find how much noise it takes, and is
# dropped from the release.

bmi = data[["bmi", "sex"]]
noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex")
released = noise.fit_transform(bmi)

print("The first rows, as they are and as released:")
print(bmi.join(released.add_suffix(" released")).head().round(2))

# %%
# ``fit`` computes the scale of the noise, ``transform`` adds it. How much it is, beside
# the spread of the column itself, stands in ``report_``, with the promise in words:

print("\nThe noise, and the promise:")
print(noise.report_)

# %%
# The sentence is ``guarantee_``. It says that the releases of a row of the one sex and of
# a row of the other differ little: their Rényi divergence of order α = 4 is at most ε = 1,
# for rows drawn from the fitted ones (the *prior*). A smaller ε is a stronger promise, and
# so is a larger order at the same ε.
#
# If you know (ε, δ) promises better: the same noise keeps one at any δ. Whatever event of
# the release you look at, its probability given the one sex is at most e\ :sup:`ε` times
# its probability given the other, plus δ.

print("\nAs (ε, δ) promises, with e to the power of ε:")
for delta in (0, 1e-3, 1e-2):
    epsilon = noise.profile_.to_epsilon(delta)
    print(f"δ = {delta:<5g}  ε = {epsilon:.2f}  a factor of {np.exp(epsilon):.1f}")

# %%
# The picture shows the column for either sex. Above, before the release: a value, to its
# last digit, may belong to one sex alone. Below, after it: every value is possible for
# both, and what is left of the difference is bounded. These curves are exact densities and
# no sample, since the noise is known.

display = ReleaseDisplay.from_estimator(noise, bmi)

first, second = display.after
ratio = np.maximum(first / second, second / first).max()
print(f"\nNo released value in the picture is more than {ratio:.1f} times as likely")
print("for the one sex as for the other.")

# %%
# The promise allows for more than that: the rule that finds the scale leaves some slack,
# which helps where the rows are not quite the fitted ones
# (:ref:`sphx_glr_gallery_law_and_rule.py`). A smaller ε brings the curves closer together.
#
# A picture shows the data, and is no part of the release. The promise may be: as a card to
# lay beside a released file, which ``guarantee_.to_json(path)`` writes. Some of its lines:

card = noise.guarantee_.to_dict()
print("\nFrom the card:")
for key in ("alpha", "epsilon", "law", "scale", "secret", "prior_model", "n_releases"):
    print(f"{key}: {card[key]}")

# %%
# Several columns
# ---------------
#
# Three columns together tell more about the sex than one. They are released as one row
# and under one promise for the whole row, which takes more noise in each of them:

several = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(data)
print("\nThree columns as one row:")
print(several.report_)

# %%
# A model on the release
# ----------------------
#
# Release once, then do with the release what you like: each split below trains and tests
# on the same released rows, so nothing is released again. (A pipeline with the noise in
# it would release the rows anew at each ``predict``.) What remains of the model, as R²
# over 20 splits, depends on the columns and on ε. The table makes six releases of the same
# rows in order to compare; of those, one could be published under its promise, not all.

ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
splits = ShuffleSplit(n_splits=20, test_size=0.25, random_state=0)


def r_squared(columns):
    scores = cross_val_score(ridge, columns, target, cv=splits)
    return f"{scores.mean():.2f} ± {scores.std():.2f}"


lines = []
for columns in (["bmi"], ["age", "bmi", "bp"]):
    names = ", ".join(columns)
    lines.append((names, "none, raw columns", 0, r_squared(data[columns])))
    for epsilon in (8, 4, 1):
        noise = RenyiPufferfishLaplace(alpha=4, epsilon=epsilon, secret="sex")
        released = noise.fit_transform(data[[*columns, "sex"]])
        ratio = np.mean(noise.report_.noise_to_spread)
        lines.append((names, f"(4, {epsilon})", ratio, r_squared(released)))
table = pd.DataFrame(lines, columns=["columns", "promise", "noise / spread", "R²"])
print("\nA model on the release, R² (mean and spread over 20 splits):")
print(table.round(2).to_string(index=False))

# %%
# Noise differs from run to run, and so do the scores. A small ε and many columns cost the
# most: at ε = 1 three noisy columns may well predict less than one.
#
# What is not promised
# --------------------
#
# * The promise is for the *fitted prior*: rows drawn from these 442. For the population
#   that they come from there is ``prior_model="population"``, at the price of more noise.
# * It covers *one row, released once*. Several rows of one patient, and a second release
#   of the same rows, are not covered together.
# * It is about the *released columns*. The target, columns kept beside the release and
#   models trained on those are not covered. ``target`` above is raw.
# * It says nothing of *other secrets*. The release limits what a row says of the sex, not
#   what it says of the age, nor whose row it may be.
#
# Where to go from here: :ref:`sphx_glr_gallery_law_and_rule.py` chooses the noise,
# :ref:`sphx_glr_gallery_choosing_alpha.py` the order,
# :ref:`sphx_glr_gallery_several_columns.py` says why one promise for the row is needed,
# and :ref:`sphx_glr_gallery_repeated_releases.py` what happens if you release again.

plt.show()
