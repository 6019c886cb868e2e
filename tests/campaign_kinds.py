"""Random estimators of every kind for the campaign, with the rows that they are for."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from campaign_cases import LAWS, RULES, bounds, small_releases
from campaign_labels import CODES, halves, labelled, labelled_frame, metrics
from campaign_support import FRAMES, Table, budgets, chosen_pairs, tables
from core_support import grid_index
from hypothesis import strategies as st
from sklearn.base import clone

from skpuffer import JointRelease, RenyiPufferfishCategorical

KINDS = (
    *("numbers", "numbers", "numbers", "population", "bounded"),
    *("categories", "categories", "population of categories", "row", "row"),
)


@dataclass(frozen=True)
class Case:
    """An estimator that was not fitted, and rows for it.

    `sets` has the labels that the whole numbers of some columns stand for; `pairs` the
    pairs of secret values that `secret_pairs` stands for.
    """

    kind: str
    estimator: Any
    table: Table
    sets: dict[str, list]
    pairs: list
    declared: Any = None

    @property
    def numbers(self):
        return [name for name in self.table.names if name not in self.sets]

    def frame(self, kind="pandas", table=None):
        return labelled_frame(table or self.table, self.sets, kind)

    def rows(self, kind="pandas"):
        """Write the columns to release alone."""
        rows = labelled_frame(self.table, self.sets, "pandas")[self.table.names]
        return FRAMES[kind]({name: rows[name].to_numpy() for name in rows})

    def fit(self, kind="pandas", **parameters):
        fresh = clone(self.estimator).set_params(**parameters)
        return fresh.fit(self.frame(kind), sample_weight=self.table.weight)

    def given(self):
        """Return the parameters, without those that name columns."""
        given_ = self.estimator.get_params()
        return {key: v for key, v in given_.items() if key not in ("secret", "prior")}


@st.composite
def cases(draw, columns=(1, 3), most_rows=16, *, kinds=KINDS, weighted=True):
    """Draw an estimator and its rows."""
    kind = draw(st.sampled_from(kinds))
    weighted = weighted and draw(st.booleans()) and not kind.startswith("population")
    drawer = {
        "numbers": _numbers,
        "population": _population,
        "bounded": _bounded,
        "categories": _categories,
        "population of categories": _categories,
        "row": _row,
    }[kind]
    return draw(drawer(kind, columns, most_rows, weighted))


def _made(kind, make, table, chosen, *, sets=None, pairs=None, **others):
    priors = {"prior": "p"} if table.prior else {}
    estimator = make(secret="s", **priors, **chosen)
    return Case(kind, estimator, table, sets or {}, pairs or [], **others)


@st.composite
def _numbers(draw, kind, columns, most_rows, weighted):
    table = draw(tables(columns, most_rows, weighted=weighted))
    make, chosen = draw(small_releases(table))
    pairs, stand_for = draw(chosen_pairs(table))
    chosen["secret_pairs"] = pairs
    declared = chosen["bounds"]
    return _made(kind, make, table, chosen, pairs=stand_for, declared=declared)


@st.composite
def _declaring(draw, kind, columns, most_rows, weighted, **others):
    law = draw(st.sampled_from(list(LAWS)))
    table = draw(tables(columns, most_rows, weighted=weighted))
    pairs, stand_for = draw(chosen_pairs(table))
    declared = draw(bounds(["a"]).filter(lambda found: isinstance(found, tuple)))
    chosen = draw(budgets(law != "gaussian", 0.1)) | {
        "bounds": declared,
        "calibration": draw(st.sampled_from(RULES)),
        "secret_pairs": pairs,
        **others,
    }
    return _made(kind, LAWS[law], table, chosen, pairs=stand_for, declared=declared)


@st.composite
def _population(draw, kind, columns, most_rows, weighted):
    others = {
        "prior_model": "population",
        "confidence": draw(st.sampled_from([0.5, 0.9, 0.99])),
        "scope": "column",
    }
    return draw(_declaring(kind, columns, 2 * most_rows, weighted, **others))


@st.composite
def _bounded(draw, kind, columns, most_rows, weighted):
    copies = draw(st.sampled_from([1, 2]))
    others = {"prior_model": "bounded", "n_releases": copies}
    return draw(_declaring(kind, columns, most_rows, weighted, **others))


@st.composite
def _cheap_budgets(draw, infinite=True):
    """Draw budgets, few of which ask for the best order: that takes many fits."""
    chosen = draw(budgets(infinite, 0.1))
    if chosen["alpha"] == "auto" and draw(st.integers(0, 3)):
        chosen["alpha"] = 4.0
    return chosen


@st.composite
def _categories(draw, kind, columns, most_rows, weighted):
    table = draw(tables(columns, most_rows, pools=CODES, weighted=weighted))
    sets = draw(labelled(table, table.names))
    pairs, stand_for = draw(chosen_pairs(table))
    chosen = draw(_cheap_budgets()) | {
        "scope": draw(st.sampled_from(["joint", "column"])),
        "calibration": draw(st.sampled_from(["transport", "transport", "exact"])),
        "metric": draw(metrics(sets)),
        "secret_pairs": pairs,
        "categories": sets,
    }
    if kind == "population of categories":
        chosen |= {
            "prior_model": "population",
            "confidence": draw(st.sampled_from([0.5, 0.9, 0.99])),
            "scope": "column",
            "calibration": "transport",
        }
    if chosen["calibration"] == "transport":
        chosen["n_releases"] = draw(st.sampled_from([1, 1, 2]))
    make = RenyiPufferfishCategorical
    return _made(kind, make, table, chosen, sets=sets, pairs=stand_for)


@st.composite
def _row(draw, kind, columns, most_rows, weighted):
    columns = max(columns[0], 2), max(columns[1], 2)
    pools = st.one_of(CODES, halves())
    table = draw(tables(columns, most_rows, pools=pools, weighted=weighted))
    named = table.names[-draw(st.integers(1, len(table.names) - 1)) :]
    for name in named:
        table.columns[name] = np.abs(np.rint(table.columns[name]))
    sets = draw(labelled(table, named))
    pairs, stand_for = draw(chosen_pairs(table))
    law = draw(st.sampled_from(["laplace", "gaussian"]))
    declared = draw(bounds([name for name in table.names if name not in sets]))
    chosen = draw(_cheap_budgets(law != "gaussian")) | {
        "law": law,
        "categorical": named,
        "categories": sets,
        "metric": draw(metrics(sets)),
        "bounds": declared,
        "secret_pairs": pairs,
        "n_releases": draw(st.sampled_from([1, 1, 2])),
    }
    return _made(
        kind, JointRelease, table, chosen, sets=sets, pairs=stand_for, declared=declared
    )


def rounded_to(case, grid):
    """Return a case whose numbers are rounded to multiples of steps, half upwards."""
    columns = dict(case.table.columns)
    for name, step in grid.items():
        columns[name] = np.array(
            [grid_index(value, step) * step for value in columns[name].tolist()]
        )
    return replace(case, table=replace(case.table, columns=columns))
