"""Random categories for the campaign, and sums over what is drawn of them."""

import itertools
import math

import numpy as np
import pandas as pd
from campaign_oracles import atoms_divergence, line_divergence, on_grid
from campaign_support import FRAMES
from hypothesis import strategies as st

WORDS = {
    "text": ("ab", "b", "ç", "d"),
    "numbers": (3, 1, 4, 2),
    "truth": (False, True),
}


@st.composite
def labelled(draw, table, names):
    """Draw what the whole numbers of some columns stand for."""
    sets = {}
    for name in names:
        words = WORDS[draw(st.sampled_from(list(WORDS)))]
        table.columns[name] %= len(words)
        sets[name] = list(words)
    return sets


CODES = st.lists(st.integers(0, 3).map(float), min_size=1, max_size=4)


def labelled_frame(table, sets, kind):
    """Write a table whose codes are labels."""
    columns = {
        name: np.array(sets[name])[values.astype(int)] if name in sets else values
        for name, values in table.columns.items()
    }
    columns["s"] = np.array(table.secret)
    if table.prior is not None:
        columns["p"] = np.array(table.prior)
    if kind == "categories":
        return pd.DataFrame(
            {
                name: pd.Categorical(values) if name in sets else values
                for name, values in columns.items()
            }
        )
    return FRAMES[kind](columns)


@st.composite
def metrics(draw, sets):
    """Draw a metric for each set: by name, as a matrix, or a callable."""
    kind = draw(st.sampled_from(["discrete", "ordinal", "matrix", "matrix"]))
    if kind != "matrix":
        return kind
    given_ = {}
    for name, labels in sets.items():
        n = len(labels)
        flat = draw(st.lists(st.floats(0.1, 4), min_size=n * n, max_size=n * n))
        above = np.triu(np.reshape(flat, (n, n)), 1)
        given_[name] = above + above.T
    return given_


def distances(labels, metric, name):
    """Return the distances of a set of labels, from what names them."""
    n = len(labels)
    if isinstance(metric, dict):
        return np.asarray(metric[name], dtype=float)
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(float)
    return apart if metric == "ordinal" else np.minimum(apart, 1.0)


def drawn_from(p, channels, sets, copies=1):
    """Return the distribution of a released row of categories, or of its copies."""
    rows, mass = p
    total = 0.0
    for row, m in zip(rows, mass / mass.sum(), strict=True):
        outcome = np.ones(1)
        for _ in range(copies):
            for code, (channel, labels, fitted) in zip(row, channels, strict=True):
                place = fitted.index(labels[int(code)])
                outcome = np.outer(outcome, channel[place]).ravel()
        total = total + m * outcome
    kept = np.flatnonzero(total > 0)
    return kept[:, None], total[kept]


def moving(p, q, channels, draw):
    """Return (α − 1) times the divergence of each row of p from each of q."""
    alpha, order = draw.alpha_, math.inf if draw.alpha_ == math.inf else draw.alpha_ - 1
    costs = np.zeros((len(p[0]), len(q[0])))
    for j, (channel, labels, fitted) in enumerate(channels):
        every = np.arange(len(channel))[:, None]
        between = [
            [atoms_divergence((every, one), (every, other), alpha) for other in channel]
            for one in channel
        ]
        places = [
            [fitted.index(labels[int(code)]) for code in side[0][:, j]]
            for side in (p, q)
        ]
        costs += np.array(between)[np.ix_(*places)]
    return draw.n_releases * costs * (1 if order == math.inf else order)


def channels_of(draw, sets, names):
    return [
        (draw.channels_[name], sets[name], list(draw.categories_[name]))
        for name in names
    ]


def halves():
    return st.lists(st.integers(-9, 9).map(lambda n: n / 2), min_size=1, max_size=4)


def mixed_divergence(p, q, scale, channels, row):
    """The divergence of one number and all categories of a released row."""
    alpha, parts, absent = row.alpha_, [], 0.0
    n_outcomes = [len(channel) for channel, *_ in channels]
    for outcome in itertools.product(*map(range, n_outcomes)):
        sides, totals = [], []
        for rows, mass in (p, q):
            share = mass / mass.sum()
            for j, (channel, labels, fitted) in enumerate(channels):
                places = [fitted.index(labels[int(code)]) for code in rows[:, j + 1]]
                share = share * channel[places, outcome[j]]
            kept = share > 0
            sides.append((rows[kept, :1].astype(float), share[kept]))
            totals.append(share.sum())
        if totals[0] == 0:
            absent += totals[1]
            continue
        if totals[1] == 0:
            return math.inf
        if scale > 0:
            sides = [on_grid(side, np.array([scale])) for side in sides]
            options = {"law": row.law, "scale": scale, "alpha": alpha}
            within = line_divergence(*sides, **options)
        else:
            within = atoms_divergence(*sides, alpha)
        parts.append((totals, within))
    if alpha == math.inf:
        return max(math.log(t[0] / t[1]) + within for t, within in parts)
    logs = [
        alpha * math.log(t[0]) - (alpha - 1) * math.log(t[1]) + (alpha - 1) * within
        for t, within in parts
    ]
    top = max(logs)
    if top > 1:
        return (top + math.log(math.fsum(math.exp(x - top) for x in logs))) / (
            alpha - 1
        )
    # The outcomes sum to one on either side, so that only the excess counts.
    excess = math.fsum(
        math.exp(x) - alpha * t[0] + (alpha - 1) * t[1]
        for x, (t, _) in zip(logs, parts, strict=True)
    )
    return math.log1p(max(excess + (alpha - 1) * absent, 0.0)) / (alpha - 1)
