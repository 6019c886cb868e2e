"""Random tables, kinds of frames and parameters for the campaign.

A `Table` is the truth in plain numpy, with the conditionals of its rows; `as_frame` writes
it as any kind of frame.
"""

import itertools
import math
import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st

# A slow run draws so many examples of each test, from this seed.
MANY = int(os.environ.get("SKPUFFER_CAMPAIGN", "2000"))
SEED = os.environ.get("SKPUFFER_CAMPAIGN_SEED")
# Minimising what fails takes longer than finding it: this leaves it out.
PHASES = [Phase.generate] + [Phase.shrink] * ("SKPUFFER_CAMPAIGN_RAW" not in os.environ)


def campaign_settings(examples):
    """The same examples in every run, unless a seed is given."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=SEED is None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )


def campaign(examples):
    """Decorate a test with the settings of the campaign."""
    chosen = campaign_settings(examples)

    def decorate(test):
        return chosen(test) if SEED is None else seed(int(SEED))(chosen(test))

    return decorate


class Books:
    """What a run has seen: printed, so that nothing is skipped unnoticed."""

    def __init__(self, name):
        self.name, self.seen = name, Counter()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        found = ", ".join(f"{what} {n}" for what, n in sorted(self.seen.items()))
        print(f"{self.name}: {found}")

    def count(self, what, n=1):
        self.seen[what] += n


# --- tables ---------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Rows with the labels of their secret, and maybe of a prior, and weights."""

    columns: dict[str, np.ndarray]
    secret: list
    prior: list | None = None
    weight: np.ndarray | None = None

    @property
    def n_rows(self):
        return len(self.secret)

    @property
    def names(self):
        return list(self.columns)

    def values(self, names=None):
        return np.stack([self.columns[name] for name in names or self.names], axis=1)

    def masses(self):
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def rows(self, chosen):
        """Return some rows, in any order, maybe more than once."""
        chosen = np.asarray(chosen, dtype=int)
        return replace(
            self,
            columns={name: values[chosen] for name, values in self.columns.items()},
            secret=[self.secret[i] for i in chosen],
            prior=None if self.prior is None else [self.prior[i] for i in chosen],
            weight=None if self.weight is None else self.weight[chosen],
        )

    def changed(self, change):
        """Return the table with every column changed."""
        changed = {name: change(values) for name, values in self.columns.items()}
        return replace(self, columns=changed)

    def groups(self, names=None, change=lambda values: values):
        """Return rows and their masses for each prior and secret value, from scratch."""
        values = change(self.values(names))
        found: dict[Any, Counter] = {}
        priors = self.prior or [None] * self.n_rows
        for row, label, prior, mass in zip(
            values.tolist(), self.secret, priors, self.masses().tolist(), strict=True
        ):
            if mass > 0:
                group = found.setdefault((prior, label), Counter())
                group[tuple(row)] += mass
        return {
            key: (np.array(list(group), dtype=object), np.array(list(group.values())))
            for key, group in found.items()
        }

    def pairs(self, chosen, names=None, change=lambda values: values):
        """Yield both sides of each pair of secret values under each prior."""
        groups = self.groups(names, change)
        for prior in dict.fromkeys(key[0] for key in groups):
            for first, second in chosen:
                if (prior, first) in groups and (prior, second) in groups:
                    yield groups[prior, first], groups[prior, second]


LABELS = st.sampled_from(
    [("F", "M", "x", "é"), (0, 1, 2, 3), (-1, 7, 10, 2), (False, True), (0.5, 1.5, 2.0)]
)


def _pools():
    """Return few values for a column: ties, constants, outliers, odd digits."""
    small = st.integers(-4, 9).map(float)
    halves = st.integers(-9, 9).map(lambda n: n / 2)
    digits = st.floats(-9.99, 9.99).map(lambda x: round(x, 3))
    outlier = st.sampled_from([0.0, 1.0, 2.0, 50.0, 400.0])
    one = st.sampled_from([small, small, halves, digits, outlier])
    return one.flatmap(lambda values: st.lists(values, min_size=1, max_size=5))


def _choices(n):
    """Return n small numbers, in one draw."""
    return st.binary(min_size=n, max_size=n).map(list)


def weights(n):
    """None, whole numbers with zeros, decimals, or numbers far apart."""
    return st.one_of(
        st.none(),
        _choices(n).map(lambda b: np.array([1 + (v % 6 if v > 40 else 0) for v in b])),
        _choices(n).map(lambda b: np.array([v % 4 for v in b])),
        _choices(n).map(lambda b: np.array([(1 + v % 30) / 10 for v in b])),
        _choices(n).map(lambda b: np.array([10.0 ** (v % 7 - 3) / 3 for v in b])),
    )


@st.composite
def tables(
    draw, columns=(1, 6), most_rows=40, *, pools=None, weighted=True, grouped=True
):
    """Draw a table with at least two secret values of some weight under one prior."""
    labels = draw(LABELS)
    n_labels = draw(st.integers(2, min(4, len(labels))))
    n = draw(st.integers(n_labels, most_rows))
    k = draw(st.integers(*columns))
    # Sizes of groups fall, so that some are tiny.
    codes = [min(v % (n_labels + 3), n_labels - 1) for v in draw(_choices(n))]
    codes[:n_labels] = range(n_labels)
    named = {}
    for j in range(k):
        pool = np.array(draw(_pools() if pools is None else pools))
        named["abcdef"[j]] = pool[[v % len(pool) for v in draw(_choices(n))]]
    prior = None
    if grouped and draw(st.integers(0, 3)) == 0:
        towns = [f"town {v % 3}" if v > 90 else "town 0" for v in draw(_choices(n))]
        prior = ["town 0", "town 0", *towns[2:]]
    weight = draw(weights(n)) if weighted else None
    if weight is not None:
        weight = weight.astype(float)
        weight[:2] = np.maximum(weight[:2], 1)
    table = Table(named, [labels[code] for code in codes], prior, weight)
    return table.rows(draw(st.permutations(range(n)))) if n <= 12 else table


@st.composite
def chosen_pairs(draw, table):
    """Draw secret_pairs and the pairs that they stand for."""
    masses = zip(table.secret, table.masses(), strict=True)
    occur = list(dict.fromkeys(label for label, mass in masses if mass > 0))
    every = list(itertools.combinations(occur, 2))
    if draw(st.integers(0, 2)):
        return "all", every
    some = draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    return [pair[::-1] if draw(st.booleans()) else pair for pair in some], some


# --- kinds of frames ------------------------------------------------------------


def _pandas(columns):
    return pd.DataFrame(columns)


def _typed(name, whole):
    """Write numbers as a type of pandas; whole numbers as one for whole numbers."""

    def write(columns):
        frame = pd.DataFrame(columns)
        for column, values in columns.items():
            if np.asarray(values).dtype.kind == "f":
                fits = whole is not None and (values == np.rint(values)).all()
                frame[column] = frame[column].astype(whole if fits else name)
        return frame

    return write


def _odd_rows(columns):
    frame = pd.DataFrame(columns)
    frame.index = [f"row {7 * i % 1000}" for i in range(len(frame))]
    return frame


def _in_chunks(columns):
    whole = pa.table({name: np.asarray(v) for name, v in columns.items()})
    cut = len(whole) // 2
    return pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])


FRAMES = {
    "pandas": _pandas,
    "pandas, odd index": _odd_rows,
    "nullable": _typed("Float64", "Int64"),
    "arrow types": _typed("double[pyarrow]", "int64[pyarrow]"),
    "object": _typed("object", None),
    "polars": lambda columns: pl.DataFrame(
        {name: np.asarray(v) for name, v in columns.items()}
    ),
    "pyarrow": _in_chunks,
}


def as_frame(table, kind="pandas", *, prior=True):
    """Write a table as a frame, with its secret "s" and prior "p" among the columns."""
    columns = dict(table.columns) | {"s": np.array(table.secret)}
    if prior and table.prior is not None:
        columns["p"] = np.array(table.prior)
    return FRAMES[kind](columns)


def rows_of(table, kind="pandas"):
    """Write the columns to release alone."""
    return FRAMES[kind](dict(table.columns))


def as_array(table, kind):
    """Write the columns to release as an array of one of the kinds of `ARRAYS`."""
    return ARRAYS[kind](table.values())


def _every_other(values):
    wide = np.full((2 * len(values), 2 * values.shape[1]), np.nan)
    wide[::2, ::2] = values
    return wide[::2, ::2]


ARRAYS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": _every_other,
    "reversed": lambda values: np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1],
    "big-endian": lambda values: values.astype(">f8"),
    "object": lambda values: values.astype(object),
    "list": lambda values: values.tolist(),
}
# For whole numbers that fit.
NARROW = ["int8", "int16", ">i4", "int64", "uint8", "uint16", "uint32", "uint64", "f4"]


def library_of(frame):
    return type(frame).__module__.split(".")[0]


def released_array(frame):
    """Return what was released as float64, whatever its kind."""
    if isinstance(frame, pa.Table):
        return np.stack([frame[name].to_numpy() for name in frame.column_names], axis=1)
    return np.asarray(frame, dtype=float)


# --- parameters -----------------------------------------------------------------

ALPHAS = [1.001, 1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 32.0, 64.0, 200.0]


def alphas(infinite):
    finite = st.one_of(st.sampled_from(ALPHAS), st.floats(1.01, 200))
    return st.one_of(finite, finite, st.just(math.inf)) if infinite else finite


def epsilons(least=1e-3):
    return st.floats(math.log(least), math.log(50)).map(math.exp)


@st.composite
def budgets(draw, infinite=True, least=1e-3):
    """Draw a Rényi pair, or an (ε, δ) target of some order."""
    chosen = {"alpha": draw(alphas(infinite)), "epsilon": draw(epsilons(least))}
    if draw(st.integers(0, 5)) == 0:
        return {
            "alpha": draw(st.sampled_from(["auto", 4.0, 16.0])),
            "epsilon": draw(st.floats(1.5, 20)),
            "delta": draw(st.sampled_from([1e-5, 1e-2, 0.2])),
        }
    return chosen
