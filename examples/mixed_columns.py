"""
Categories, and rows of numbers and categories
==============================================

A table often has categories beside its numbers. Noise cannot be added to a category: it
is drawn anew, with the true one as the likeliest outcome. This page releases one column of
categories, shows why two transformers side by side give no guarantee about the row, and
releases the row under one guarantee with :class:`~skpuffer.JointRelease`.

The data are the 442 patients of the diabetes table that comes with scikit-learn. The
secret is their sex, coded 1 and 2. Their blood pressure is released as one of three
bands, whose limits were fixed before anybody looked at the data, and their body mass
index (bmi) as a number. The page releases the same patients several times, to show how;
publish one release.
"""

# %%
import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.integrate import trapezoid
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skpuffer import (
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishLaplace,
    held_out_divergence,
    reuse_fits,
)
from skpuffer.displays import ReleaseDisplay, TradeoffDisplay
from skpuffer.exceptions import ExcessiveNoiseWarning

data, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
BANDS = ["low", "middle", "high"]
data["pressure"] = pd.cut(data["bp"], [0, 85, 100, 200], right=False, labels=BANDS)
rows = data[["bmi", "pressure", "sex"]]
print(rows.head(4).to_string(index=False))

# %%
# One column of categories
# ------------------------
# A true band x is released as a band y with probability P(y | x) ∝ exp(−d(x, y) / θ). The
# metric d says which bands may stand for each other, and θ is the smallest for which the
# fitted rows keep the promise. Under the metric "discrete" all other bands are equally
# likely, which is randomised response. Under "ordinal" a neighbour is likelier than a band
# further away.
#
# Declare the categories. If they were taken from the data, the release would tell which
# of them occur.

for metric in ("discrete", "ordinal"):
    draw = RenyiPufferfishCategorical(
        alpha=4, epsilon=0.5, secret="sex", categories=[BANDS], metric=metric
    ).fit(rows[["pressure", "sex"]])
    print(f"\nmetric={metric!r}, θ = {draw.scale_[0]:.2f}: P(released | true)")
    print(pd.DataFrame(draw.channels_["pressure"], BANDS, BANDS).round(3).to_string())

# %%
# The guarantee names its prior (the fitted rows given sex) and what it leaves out. It is
# about this column, released once.

print(textwrap.fill(str(draw.guarantee_), 80))

# %%
# The shares of the bands in a release are pulled together. The guarantee states the
# channel, so that this can be undone. The corrected shares have no bias; their error is
# that of the draws, which weighs less the more rows there are.

channel = draw.channels_["pressure"]
true = rows["pressure"].value_counts(normalize=True)[BANDS].to_numpy()
released = draw.transform(rows[["pressure"]])
seen = released["pressure"].value_counts(normalize=True)[BANDS].to_numpy()
shares = pd.DataFrame(
    {
        "true": true,
        "released, on average": true @ channel,
        "in this release": seen,
        "corrected": np.linalg.solve(channel.T, seen),
    },
    BANDS,
)
print(shares.round(3).to_string())

# %%
# Two transformers side by side
# -----------------------------
# Now the row: bmi with noise from one transformer, the band drawn by another, each of them
# with a true guarantee of order 4 and ε = 1 for its own column. Both take the least noise
# that there is for the fitted rows (``calibration="exact"``). The bands differ so little
# between the sexes that they need no noise at all, which the package warns of.

ALPHA, EPSILON = 4, 1
number = RenyiPufferfishLaplace(ALPHA, EPSILON, secret="sex", calibration="exact")
number.fit(rows[["bmi", "sex"]])
band = RenyiPufferfishCategorical(
    ALPHA, EPSILON, secret="sex", categories=[BANDS], calibration="exact"
)
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    band.fit(rows[["pressure", "sex"]])
for one in warned:
    print(textwrap.fill(f"{one.category.__name__}: {one.message}", 80))

# %%
# What does the *row* of these two releases say of the sex? Its divergence is an integral
# over bmi and a sum over the bands, here computed on a fine grid.


def divergence_of_rows(b, channel):
    """Return the larger Rényi divergence, of both directions, of the released rows."""
    grid = np.linspace(rows["bmi"].min() - 30 * b, rows["bmi"].max() + 30 * b, 20_001)
    densities = []
    for _, group in rows.groupby("sex"):
        drawn = channel[group["pressure"].cat.codes]
        # Patient by patient: the density of the released bmi, times P(released band).
        density = np.zeros((len(grid), len(BANDS)))
        for bmi, chances in zip(group["bmi"], drawn, strict=True):
            noise = np.exp(-np.abs(grid - bmi) / b) / (2 * b)
            density += noise[:, None] * chances / len(group)
        densities.append(density)
    integrals = [
        trapezoid(p**ALPHA * q ** (1 - ALPHA), grid, axis=0).sum()
        for p, q in (densities, densities[::-1])
    ]
    return np.log(max(integrals)) / (ALPHA - 1)


alone = {"bmi": number, "pressure": band}
divergences = {
    f"{name} alone": held_out_divergence(one, rows[[name, "sex"]])["divergence"].max()
    for name, one in alone.items()
}
divergences["the row"] = divergence_of_rows(
    number.scale_[0], band.channels_["pressure"]
)
print(f"ε of either guarantee: {EPSILON}. Divergences:")
print(pd.Series(divergences).round(2).to_string())

# %%
# Neither guarantee was wrong: each is about its own column. The row says far more than
# their sum, since bmi and band together single out patients whom neither does alone.
# Under the rule "transport", the default, each transformer would have added more noise
# than it must, and the row of this table would happen to stay below ε. Nothing promises
# it.
#
# The same goes for two branches of a ColumnTransformer: they are two releases, and there
# is no guarantee that adds them up.
#
# One guarantee for the row
# -------------------------
# :class:`~skpuffer.JointRelease` moves whole rows when it calibrates, numbers and
# categories at once, and keeps its promise for the row.

joint = JointRelease(
    ALPHA, EPSILON, secret="sex", categories=[BANDS], metric="ordinal"
).fit(rows)
print(joint.report_)

divergence = divergence_of_rows(joint.scale_[0], joint.channels_["pressure"])
print(f"\nε = {EPSILON}, divergence of the row: {divergence:.2f}")

# %%
# In the table, ``noise_std`` of the bands is the mean distance from the true band to the
# released one, and ``column_std`` that of two patients' bands. The divergence is below ε
# because the rule bounds it from above. What comes out is a frame like the one that went
# in, without the secret.

released = joint.transform(rows)
print(released.dtypes.to_string())
print(released.head(4).round(1).to_string(index=False))

# %%
# A picture of both columns
# -------------------------
# Above, each column given either sex; below, its release: the exact density of bmi plus
# noise, and the exact shares of the bands. Whoever publishes such a picture publishes the
# upper half too: it is for those who may see the data.

figure, axes = plt.subplots(2, 2, figsize=(9, 5), layout="constrained", sharex="col")
for column, pair in zip(("bmi", "pressure"), axes.T, strict=True):
    ReleaseDisplay.from_estimator(joint, rows, column=column, ax=pair)

# %%
# What a model makes of it
# ------------------------
# A linear model predicts the progression of the disease a year on, from released rows
# alone, in training and in testing. It is compared with two others:
#
# * the raw columns, without their sex;
# * ``prior_model="bounded"``: a promise for *every* distribution of rows on declared
#   limits and categories. Columns that are released one by one can promise something about
#   the row in this way: given a row they are drawn independently, so that their worst
#   divergences add up, and each is allowed a part of ε.
#
# The search releases the training rows and the test rows once for every candidate and
# split. That is all right while scores stay with those who hold the data; what is
# published is one release.

columns = ["bmi", "pressure"]
raw = ColumnTransformer(
    [("raw", "passthrough", columns)], verbose_feature_names_out=False
).set_output(transform="pandas")
release = JointRelease(
    ALPHA, secret="sex", categories=[BANDS], metric="ordinal", bounds={"bmi": (15, 45)}
)
encode = make_column_transformer(
    (OneHotEncoder(categories=[BANDS]), ["pressure"]), (StandardScaler(), ["bmi"])
)
model = Pipeline([("release", release), ("encode", encode), ("model", RidgeCV())])
search = GridSearchCV(
    model,
    [
        {"release": [raw]},
        {
            "release__prior_model": ["empirical", "bounded"],
            "release__epsilon": [0.5, 1, 2, 4, 8],
        },
    ],
    cv=ShuffleSplit(8, test_size=0.25, random_state=0),
    scoring="r2",
    refit=False,
)

# %%
# Under ``"bounded"`` a small ε leaves little but noise. A warning says so for every fit;
# here it is the result, and one line of the picture.

with warnings.catch_warnings(), reuse_fits():
    warnings.simplefilter("ignore", ExcessiveNoiseWarning)
    search.fit(rows, progression)
display = TradeoffDisplay.from_cv_results(
    search.cv_results_, privacy="release__epsilon", lines=["release__prior_model"]
)
display.ax_.set_ylabel("R² (mean ± std of 8 splits)")
table = pd.DataFrame(
    {
        label: pd.Series(mean, epsilon)
        for label, (epsilon, mean, _) in display.lines.items()
    }
).rename_axis("ε")
table["raw columns"] = display.baselines["without noise"][0]
print(table.round(2).to_string())

# %%
# The fitted prior costs part of the score at small ε and little of it at larger ones; a
# promise for every prior costs nearly all of it. They are not the same promise. The first
# holds for rows drawn from the fitted ones given sex, the second for any.
plt.show()
