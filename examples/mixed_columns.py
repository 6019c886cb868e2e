"""Release work class, education, age and hours as one row that says little about sex.

The Adult census extract of 1994: `python mixed_columns.py [adult.data]`; without a path
it is fetched from OpenML. One joint release against the simplest alternative with the
same promise about the row, and what a model of income makes of either.
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.datasets import fetch_openml
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

from skpuffer import JointRelease, RenyiPufferfishCategorical, RenyiPufferfishLaplace
from skpuffer.exceptions import ExcessiveNoiseWarning

# From the census' code book, not from the rows. "?": not answered.
CATEGORIES = {
    "workclass": [
        "Private",
        "Self-emp-not-inc",
        "Self-emp-inc",
        "Federal-gov",
        "Local-gov",
        "State-gov",
        "Without-pay",
        "Never-worked",
        "?",
    ],
    "education": [
        "Preschool",
        "1st-4th",
        "5th-6th",
        "7th-8th",
        "9th",
        "10th",
        "11th",
        "12th",
        "HS-grad",
        "Some-college",
        "Assoc-voc",
        "Assoc-acdm",
        "Bachelors",
        "Masters",
        "Prof-school",
        "Doctorate",
    ],
}
BOUNDS = {"age": (17, 90), "hours-per-week": (1, 99)}
COLUMNS = [*CATEGORIES, *BOUNDS]
# A degree may be taken for its neighbours.
METRIC = {"education": "ordinal"}
ALPHA, EPSILON = 4, 1
RELEASES = 5


def load(path):
    if path is not None:
        table = pd.read_csv(path, skipinitialspace=True)
        table = table.rename(columns={"Salary": "income", "class": "income"})
    else:
        try:
            table = fetch_openml("adult", version=2, as_frame=True).frame
        except OSError as error:
            raise SystemExit(
                f"OpenML cannot be reached ({error}): give the path of adult.data, "
                "with its header, as the argument"
            ) from None
        table = table.rename(columns={"class": "income"})
    for name in CATEGORIES:
        table[name] = table[name].astype(object).fillna("?").astype(str)
    rich = table["income"].astype(str).str.startswith(">50K").to_numpy()
    return table[[*COLUMNS, "sex"]].astype({"sex": str}), rich


def joint_release(data, metric):
    start = time.perf_counter()
    release = JointRelease(
        alpha=ALPHA,
        epsilon=EPSILON,
        secret="sex",
        categories=CATEGORIES,
        metric=metric,
        bounds=BOUNDS,
    ).fit(data)
    print(f"\nfitted in {time.perf_counter() - start:.0f} s\n{release.report_}")
    return release


class ByColumn:
    """A release of each column for any distribution on its set, at a quarter of ε.

    Given a row the columns are drawn independently, so that the divergences of two
    rows add up, to ε at the most; and two mixtures of rows differ no more than their
    worst rows. Less is not known to do: what is fitted to the columns one by one says
    nothing of the row.
    """

    def __init__(self, data, metric):
        share = {"alpha": ALPHA, "epsilon": EPSILON / len(COLUMNS), "secret": "sex"}
        self.parts = {}
        for name in COLUMNS:
            if name in CATEGORIES:
                part = RenyiPufferfishCategorical(
                    categories=[CATEGORIES[name]],
                    metric=metric.get(name, "discrete"),
                    prior_model="bounded",
                    **share,
                )
            else:
                part = RenyiPufferfishLaplace(
                    bounds=BOUNDS[name], prior_model="bounded", **share
                )
            self.parts[name] = part.fit(data[[name, "sex"]])

    def transform(self, data):
        """Release each column by its own mechanism."""
        return pd.concat(
            [part.transform(data[[name]]) for name, part in self.parts.items()], axis=1
        )


def model():
    return make_pipeline(
        ColumnTransformer(
            [
                ("one", OneHotEncoder(handle_unknown="ignore"), [*CATEGORIES]),
                ("smooth", SplineTransformer(extrapolation="constant"), [*BOUNDS]),
            ]
        ),
        StandardScaler(with_mean=False),
        LogisticRegression(C=0.1, max_iter=1000),
    )


def scores(released, raw, target, train, test):
    """Return AUC on released rows and on raw ones, and accuracy on released ones."""
    fitted = model().fit(released.iloc[train], target[train])
    said = fitted.predict_proba(released.iloc[test])[:, 1]
    clear = fitted.predict_proba(raw.iloc[test])[:, 1]
    return (
        roc_auc_score(target[test], said),
        roc_auc_score(target[test], clear),
        accuracy_score(target[test], said > 0.5),
    )


def compare(data, rich, releases):
    raw = data[COLUMNS]
    woman = (data["sex"] == "Female").to_numpy()
    train, test = train_test_split(
        np.arange(len(data)), test_size=0.3, random_state=0, stratify=rich
    )
    lines = [("raw columns", *scores(raw, raw, rich, train, test))]
    leaks = [scores(raw, raw, woman, train, test)[0]]
    for name, release in releases.items():
        # Several releases for a mean of the figures: publish one.
        drawn = [release.transform(data) for _ in range(RELEASES)]
        each = [scores(one, raw, rich, train, test) for one in drawn]
        lines.append((name, *np.mean(each, axis=0)))
        leaks.append(np.mean([scores(o, raw, woman, train, test)[0] for o in drawn]))
    table = pd.DataFrame(
        lines,
        columns=["trained on", "AUC, released rows", "AUC, raw rows", "accuracy"],
    )
    table["AUC of sex"] = leaks
    print(
        f"\nIncome above 50,000, from rows left out (share below: {1 - rich.mean():.3f}); "
        f"means of {RELEASES} releases"
    )
    print(table.to_string(index=False, float_format="{:.3f}".format))


def main():
    # What each column alone can keep at a quarter of ε is mostly noise.
    warnings.simplefilter("ignore", ExcessiveNoiseWarning)
    data, rich = load(sys.argv[1] if len(sys.argv) > 1 else None)
    print(f"{len(data)} rows; ({ALPHA}, {EPSILON})-Rényi Pufferfish about sex, jointly")
    releases = {
        "joint release": joint_release(data, METRIC),
        "joint release, discrete": joint_release(data, {}),
        "column by column, any prior": ByColumn(data, METRIC),
        "column by column, discrete": ByColumn(data, {}),
    }
    for name in ("column by column, any prior", "column by column, discrete"):
        scales = {k: float(part.scale_[0]) for k, part in releases[name].parts.items()}
        print(f"\n{name}: scales", {k: round(b, 3) for k, b in scales.items()})
    compare(data, rich, releases)


if __name__ == "__main__":
    main()
