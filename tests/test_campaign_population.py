"""The campaign against populations: what their samples' bounds cover, and how often."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from campaign_cases import LAWS, RULES, attempt, runs, scale_of
from campaign_kinds import cases
from campaign_labels import channels_of, drawn_from
from campaign_oracles import atoms_divergence, limit
from campaign_support import Books, Table, campaign
from hypothesis import given, note
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from skpuffer import RenyiPufferfishCategorical

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")

CONFIDENCES = [0.5, 0.8, 0.9]
LEVEL = 1e-6


@runs(2)
def test_confidence_never_takes_noise_away(examples):
    kinds = ("population", "population", "population of categories")
    with Books("confidence") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            case = data.draw(cases(kinds=kinds))
            note(f"{case}")
            noise = attempt(case.fit, books)
            if noise is None:
                return
            books.count(case.kind)
            chosen = {"alpha": noise.alpha_}
            chosen |= {"epsilon": noise.epsilon_, "delta": None}
            fixed = case.fit(**chosen)
            assert (fixed.scale_ >= noise.scale_ * (1 - 1e-6)).all()
            assert fixed.guarantee_.confidence == noise.confidence
            sample = scale_of(lambda: case.fit(**chosen, prior_model="empirical"))
            if sample.dtype.kind == "f":
                assert (fixed.scale_ >= sample * (1 - 1e-6)).all()
                books.count("samples")
            before = sample if sample.dtype.kind == "f" else 0
            for confidence in (0.3, 0.95, 0.9999999):
                scale = case.fit(**chosen, confidence=confidence).scale_
                assert (scale >= before * (1 - 1e-6)).all()
                before = scale
            # Any distributions on the range are more than any population.
            whole = case.fit(**chosen, prior_model="bounded").scale_
            assert (whole >= before * (1 - 1e-6)).all()

        run()


class Tallies:
    """How often a promise failed, by its confidence."""

    def __init__(self):
        self.failed, self.made = Counter(), Counter()

    def add(self, confidence, failed):
        self.made[confidence] += 1
        self.failed[confidence] += bool(failed)

    def check(self, books):
        for confidence, made in self.made.items():
            failed = self.failed[confidence]
            books.count(f"samples at {confidence}", made)
            books.count(f"failed at {confidence}", failed)
            assert stats.binom.sf(failed - 1, made, 1 - confidence) > LEVEL


@st.composite
def populations(draw, values):
    """Draw probabilities of some values for two or three groups, in thousandths."""
    n_groups = draw(st.integers(2, 3))
    groups = []
    for _ in range(n_groups):
        parts = draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=7))
        parts = np.array(parts[: len(values)], dtype=float) ** 2 + 1e-9
        groups.append(np.maximum(np.rint(1000 * parts / parts.sum()), 0))
    return groups


def table_of(values, groups):
    """Write weighted values, those of each group below each other."""
    secret, column, weight = [], [], []
    for label, masses in zip("abc", groups, strict=False):
        for value, mass in zip(values, masses.tolist(), strict=True):
            if mass > 0:
                secret.append(label)
                column.append(value)
                weight.append(mass)
    return Table({"x": np.array(column)}, secret, None, np.array(weight))


def sampled(values, groups, n, rng):
    """Draw n rows of each group, without weights."""
    counts = [rng.multinomial(n, masses / masses.sum()) for masses in groups]
    whole = table_of(values, counts)
    return whole.rows(np.repeat(np.arange(whole.n_rows), whole.weight.astype(int)))


def frame_of(table, labels=None):
    frame = {"x": table.columns["x"], "s": np.array(table.secret)}
    if labels is not None:
        frame["x"] = np.array(labels)[frame["x"].astype(int)]
    return pd.DataFrame(frame)


@runs(3)
def test_samples_fall_short_of_their_population_no_more_often_than_said(examples):
    tallies = Tallies()
    with Books("coverage") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            draw = data.draw
            values = sorted(draw(st.sets(st.integers(0, 12), min_size=2, max_size=6)))
            values = np.array(values, dtype=float)
            groups = draw(populations(values))
            law, rule = draw(st.sampled_from(list(LAWS))), draw(st.sampled_from(RULES))
            confidence = draw(st.sampled_from(CONFIDENCES))
            made = LAWS[law](
                draw(st.sampled_from([1.5, 2.0, 8.0])),
                draw(st.sampled_from([0.3, 1.0, 4.0])),
                secret="s",
                bounds=(0, 12),
                calibration=rule,
                prior_model="population",
                confidence=confidence,
            )
            whole = table_of(values, groups)
            note(f"{made} {whole}")
            truth = clone(made).set_params(prior_model="empirical")
            truth = truth.fit(frame_of(whole), sample_weight=whole.weight).scale_
            n = draw(st.sampled_from([20, 60, 300]))
            rng = np.random.default_rng(draw(st.integers(0, 2**20)))
            for _ in range(4 if examples > 3 else 24):
                sample = sampled(values, groups, n, rng)
                found = clone(made).fit(frame_of(sample)).scale_
                tallies.add(confidence, (found < truth * (1 - 1e-6)).any())

        run()
        tallies.check(books)


@runs(2)
def test_released_categories_of_the_population_keep_the_promise_as_said(examples):
    tallies = Tallies()
    with Books("coverage of categories") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            draw = data.draw
            labels = ["p", "q", "r", "t"][: draw(st.integers(2, 4))]
            values = np.arange(len(labels), dtype=float)
            groups = draw(populations(values))
            confidence = draw(st.sampled_from(CONFIDENCES))
            made = RenyiPufferfishCategorical(
                draw(st.sampled_from([1.5, 2.0, 8.0])),
                draw(st.sampled_from([0.05, 0.3, 1.0])),
                secret="s",
                categories=[labels],
                metric=draw(st.sampled_from(["discrete", "ordinal"])),
                prior_model="population",
                confidence=confidence,
                n_releases=draw(st.sampled_from([1, 2])),
            )
            whole = table_of(values, groups)
            note(f"{made} {whole}")
            occur = list(dict.fromkeys(whole.secret))
            pairs = [(a, b) for a in occur for b in occur if a < b]
            n = draw(st.sampled_from([20, 60, 300]))
            rng = np.random.default_rng(draw(st.integers(0, 2**20)))
            sets = {"x": labels}
            for _ in range(4 if examples > 3 else 24):
                sample = sampled(values, groups, n, rng)
                found = clone(made).fit(frame_of(sample, labels))
                channels = channels_of(found, sets, ["x"])
                failed = False
                for pair in whole.pairs(pairs):
                    sides = [
                        drawn_from(side, channels, sets, made.n_releases)
                        for side in pair
                    ]
                    for one, other in (sides, sides[::-1]):
                        here = atoms_divergence(one, other, made.alpha)
                        failed |= here > limit(made.epsilon, made.alpha)
                tallies.add(confidence, failed)

        run()
        tallies.check(books)
