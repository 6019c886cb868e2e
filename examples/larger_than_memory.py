"""
Tables larger than memory
=========================

The fitted prior is made of distinct rows and how often each occurs. So a fit does not need
the rows: it needs their counts, which are made chunk by chunk, by a database, or by Dask
where the partitions are. Each way gives the scale and the guarantee that ``fit`` gives for
all rows at once. This page counts in all of these ways, shows what to do
where nearly every row is distinct, and releases chunk by chunk and lazily.

A large table is made here out of a small one: rows of the diabetes table that comes with
scikit-learn, drawn again and again, each standing for a person of its own. Their sex is
the secret. Blood pressure is given more digits than the table has, as a finer device
would, so that it hardly repeats.

It needs Dask: ``pip install 'skpuffer[dask,plot]'``.
"""

# %%
import sqlite3
import textwrap

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from skpuffer import ConditionalCounts, RenyiPufferfishLaplace

PATIENTS = load_diabetes(as_frame=True, scaled=False).data
CHUNKS = 20


def chunk(number):
    """Return the rows of one chunk of the large table, the same in every call."""
    rng = np.random.default_rng(number)
    rows = PATIENTS.sample(20_000, replace=True, random_state=rng, ignore_index=True)
    pressure = rows["bp"] + rng.uniform(-0.5, 0.5, len(rows))
    return pd.DataFrame(
        {"age": rows["age"], "pressure": pressure, "sex": rows["sex"].astype(int)}
    )


print(chunk(0).head(3).to_string(index=False))
print(f"... {CHUNKS} chunks, {20_000 * CHUNKS:,} rows in all")

# %%
# Chunk by chunk
# --------------
# Ages are whole numbers and have few distinct values.
# :class:`~skpuffer.ConditionalCounts` keeps those and their numbers of rows; its memory
# does not grow with the table. ``fit_counts`` takes it in place of the rows.

noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex")
counts = ConditionalCounts(secret="sex")
for number in range(CHUNKS):
    counts.update(chunk(number)[["age", "sex"]])
print(counts)

promises = {"chunk by chunk": noise.fit_counts(counts).guarantee_}

# %%
# Parts may be counted by other processes, on other days, and merged in any order. An
# update or a merge counts rows once more: do either once for each.

odd, even = (ConditionalCounts(secret="sex", columns=["age"]) for _ in ("odd", "even"))
for number in range(CHUNKS):
    (odd if number % 2 else even).update(chunk(number)[["age", "sex"]])
promises["two parts, merged"] = noise.fit_counts(odd.merge(even)).guarantee_

# %%
# In a database
# -------------
# A database counts by itself, with GROUP BY, and only its groups leave it. Here it is
# SQLite, which comes with Python; any other does as well.

database = sqlite3.connect(":memory:")
for number in range(CHUNKS):
    chunk(number).to_sql("patients", database, if_exists="append", index=False)

groups = pd.read_sql(
    "SELECT age, sex, COUNT(*) AS n FROM patients GROUP BY age, sex", database
)
print(groups.head(3).to_string(index=False))
counted = ConditionalCounts.from_counts(groups, secret="sex", count="n")
promises["SQL"] = noise.fit_counts(counted).guarantee_

# %%
# Dask
# ----
# ``fit`` takes Dask frames as they are: the partitions are counted where they are, and
# only counts come together. LazyFrames of polars are counted by one query in the same way.

lazy = dd.from_map(chunk, range(CHUNKS))
promises["Dask"] = noise.fit(lazy[["age", "sex"]]).guarantee_

# %%
# All of them against the fit of all rows in memory:

ages = pd.concat([chunk(number)[["age", "sex"]] for number in range(CHUNKS)])
promises["in memory"] = noise.fit(ages).guarantee_
for name, promise in promises.items():
    print(f"{name:<18} b = {promise.scale[0]}")
print("the same guarantee each way:", len(set(promises.values())) == 1)

# %%
# Grids
# -----
# Of a measurement nearly every value is distinct, and counting saves nothing. A ``grid``
# rounds values to multiples of a step before they are counted. An estimator that is fitted
# on such counts rounds to the same multiples in ``transform``, before it adds noise, and
# its guarantee says so: what is calibrated is what is released.

for grid in (None, 0.5):
    fine = ConditionalCounts(secret="sex", grid=grid)
    for number in range(CHUNKS):
        fine.update(chunk(number)[["pressure", "sex"]])
    print(fine)

noise.fit_counts(fine)
print(textwrap.fill(str(noise.guarantee_), 80))

# %%
# If a query rounds, tell the counts to which step. Otherwise ``transform`` would release
# rows as they come, and a guarantee about rounded rows would not cover them.

groups = pd.read_sql(
    "SELECT ROUND(pressure / 0.5) * 0.5 AS pressure, sex, COUNT(*) AS n "
    "FROM patients GROUP BY 1, 2",
    database,
)
rounded = ConditionalCounts.from_counts(groups, secret="sex", count="n", grid=0.5)
print(f"counted by this page: b = {noise.scale_[0]}")
print(f"counted by SQL:       b = {noise.fit_counts(rounded).scale_[0]}")

# %%
# How coarse may a grid be? A step that is small beside the noise leaves few rows to count
# and hardly moves the scale; a coarse one makes groups look more different than they are.
# The rounding itself moves a value by half a step at most.

steps = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
distinct, scale = [], []
for step in steps:
    on_grid = ConditionalCounts(secret="sex", grid=step)
    for number in range(CHUNKS):
        on_grid.update(chunk(number)[["pressure", "sex"]])
    distinct.append(on_grid.n_distinct)
    scale.append(noise.fit_counts(on_grid).scale_[0])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(steps, distinct, marker="o")
left.set(xscale="log", yscale="log", ylabel="distinct rows")
right.plot(steps, scale, marker="o")
right.set(xscale="log", ylabel="Laplace b", ylim=(0, 1.15 * max(scale)))
for ax in (left, right):
    ax.set_xlabel("step of the grid (units of pressure)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.spines[["top", "right"]].set_visible(False)

# %%
# The release
# -----------
# Rows are released chunk by chunk, each row once: a second ``transform`` of the same rows
# would be a second release, which the guarantee does not cover. Both columns are released
# as one row, fitted on counts that Dask made on a coarse grid.

counts = ConditionalCounts.from_frame(
    lazy, secret="sex", grid={"age": 5, "pressure": 5}
)
row = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit_counts(counts)
print(row.report_)

database.execute("CREATE TABLE released (age REAL, pressure REAL)")
for number in range(CHUNKS):
    released = row.transform(chunk(number))
    released.to_sql("released", database, if_exists="append", index=False)
print()
print(pd.read_sql("SELECT * FROM released LIMIT 3", database).round(2).to_string())

# %%
# Of a Dask frame the release is lazy. Its noise is a function of 32 random bytes that the
# call of ``transform`` draws: to compute it twice, or in parts, gives the same values, and
# is one release. These bytes are in the task graph, and whoever has them can subtract the
# noise: hand on what was computed, never the lazy frame.
#
# (Here it is a second release of the rows above, to show how. Publish one of them, or fit
# with ``n_releases=2``.)

released = row.transform(lazy)
print(released)
first, again = (released.get_partition(3).compute() for _ in range(2))
print("computed twice, the same values:", first.equals(again))

# %%
# Counts are rows and how often they occur. Guard them like the data, and let neither counts
# nor their pickles travel beside a release. A fitted estimator keeps none of them.
database.close()
plt.show()
