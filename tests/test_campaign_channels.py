"""The campaign against channels: what is drawn, by enumeration of all that there is."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from campaign_cases import attempt, bounds, runs
from campaign_cells import renyi
from campaign_kinds import cases
from campaign_labels import CODES, channels_of, distances, labelled, metrics
from campaign_oracles import limit, shift_cost
from campaign_support import FRAMES, Books, budgets, campaign, tables
from core_support import grid_index, step_of
from hypothesis import given, note
from hypothesis import strategies as st
from sklearn.base import clone
from test_campaign_noise import LEVEL, ROWS, channel_from_definition, unlikely
from test_campaign_profiles import pairs_of

from skpuffer import JointRelease, RenyiPufferfishCategorical

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def between(channel, alpha):
    """Return D_α between all ordered pairs of inputs of a channel."""
    return np.array([[renyi(p, q, alpha) for q in channel] for p in channel])


@runs(4)
def test_channels_are_those_of_their_scale_and_metric(examples):
    kinds = ("categories", "categories", "population of categories", "row")
    with Books("channels") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            case = data.draw(cases(kinds=kinds, most_rows=12))
            note(f"{case}")
            noise = attempt(case.fit, books)
            if noise is None:
                return
            metric = noise.metric
            for name, labels in case.sets.items():
                ((channel, _, fitted),) = channels_of(noise, case.sets, [name])
                assert fitted == labels
                theta = noise.scale_[case.table.names.index(name)]
                expected = channel_from_definition(labels, metric, name, theta)
                np.testing.assert_allclose(channel, expected, rtol=1e-12, atol=2**-57)
                assert (abs(channel.sum(axis=1) - 1) < 1e-14).all()
                # A callable says the same.
                apart = distances(labels, metric, name)
                calls = {
                    name: lambda a, b, d=apart, of=labels: d[of.index(a), of.index(b)]
                }
                if isinstance(metric, dict):
                    other = clone(noise).set_params(metric=metric | calls)
                    case_of_calls = replace(case, estimator=other)
                    assert (case_of_calls.fit().scale_ == noise.scale_).all()
                    books.count("callables")
            books.count("channels", len(case.sets))

        run()


@runs(4)
def test_any_distributions_on_declared_sets_keep_the_promise(examples):
    with Books("declared sets") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            draw = data.draw
            table = draw(tables((1, 3), 8, pools=CODES, weighted=False, grouped=False))
            n_sets = draw(st.integers(1, len(table.names)))
            law = draw(st.sampled_from(["laplace", "gaussian"]))
            named = table.names[-n_sets:]
            sets = draw(labelled(table, named))
            numbers = table.names[:-n_sets]
            chosen = draw(budgets(law != "gaussian", 0.1)) | {
                "secret": "s",
                "prior_model": "bounded",
                "categories": sets,
                "metric": draw(metrics(sets)),
                "n_releases": draw(st.sampled_from([1, 1, 2, 3])),
            }
            if numbers:
                declared = draw(bounds(["a"]).filter(lambda b: isinstance(b, tuple)))
                chosen |= {"bounds": declared, "law": law, "categorical": named}
                noise = JointRelease(**chosen)
            else:
                scope = draw(st.sampled_from(["joint", "column"]))
                noise = RenyiPufferfishCategorical(scope=scope, **chosen)
            columns = {
                name: np.array(sets[name])[values.astype(int)]
                if name in sets
                else values
                for name, values in table.columns.items()
            }
            frame = FRAMES["pandas"](columns | {"s": np.array(table.secret)})
            note(f"{noise} {table}")
            noise = attempt(lambda: noise.fit(frame), books)
            if noise is None:
                return
            alpha, bound = noise.alpha_, limit(noise.epsilon_, noise.alpha_)
            worst = [between(noise.channels_[name], alpha).max() for name in named]
            if noise.guarantee_.scope == "column":
                total = max(worst)
            else:
                # Rows of all sets: columns are drawn on their own, so that it adds up.
                total = 0.0
                matrices = [noise.channels_[name] for name in named]
                places = [range(len(matrix)) for matrix in matrices]
                rows = list(itertools.product(*places))
                drawn = [row_law(matrices, row) for row in rows]
                some = draw(st.lists(st.sampled_from(range(len(rows))), max_size=6))
                for i, j in itertools.permutations(some, 2):
                    total = max(total, renyi(drawn[i], drawn[j], alpha))
                assert total <= sum(worst) * (1 + 1e-9) + 1e-12
                total = sum(worst)
            for name in numbers:
                width = np.array([[float(declared[1] - declared[0])]])
                scale = noise.scale_[table.names.index(name)]
                if alpha == math.inf:
                    total += width[0, 0] / scale
                else:
                    total += shift_cost(law, width, alpha=alpha, scale=scale)[0] / (
                        alpha - 1
                    )
            books.count("sums")
            assert noise.n_releases * total <= bound
            # Nothing is lost: some two rows come to it.
            assert noise.n_releases * total >= noise.epsilon_ * (1 - 1e-4)

        run()


def row_law(matrices, row):
    """Return the distribution of a released row of categories."""
    found = np.ones(1)
    for matrix, place in zip(matrices, row, strict=True):
        found = np.outer(found, matrix[place]).ravel()
    return found


@runs(5)
def test_labels_outside_the_set_count_as_one_or_are_drawn_from_all(examples):
    with Books("unknown labels") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            draw = data.draw
            case = draw(cases(kinds=("categories",), columns=(1, 2), most_rows=12))
            name = draw(st.sampled_from(case.table.names))
            labels = case.sets[name]
            instead = draw(st.sampled_from(labels))
            strange = "a stranger" if isinstance(instead, str) else 77
            frame = case.frame("pandas")
            known = frame.copy()
            odd = np.array(draw(st.lists(st.booleans(), min_size=1, max_size=4)))
            odd = np.resize(odd, len(frame))
            frame[name] = frame[name].astype(object).mask(odd, strange)
            known[name] = known[name].astype(object).mask(odd, instead)
            noise = clone(case.estimator).set_params(unknown={name: instead})
            weight = case.table.weight
            note(f"{case} {name} {instead} {odd}")
            expected = attempt(lambda: noise.fit(known, sample_weight=weight), books)
            if expected is None:
                return
            found = clone(noise).fit(frame, sample_weight=weight)
            assert (found.scale_ == expected.scale_).all()
            many = found.transform(frame.iloc[np.resize(np.arange(len(frame)), ROWS)])
            assert set(many[name]) <= set(labels)
            drawn = clone(noise).set_params(unknown="uniform", random_state=3)
            drawn = drawn.fit(known, sample_weight=weight)
            if drawn.guarantee_.prior_model != "empirical":
                return
            frame[name] = strange
            many = frame.iloc[np.resize(np.arange(len(frame)), ROWS)]
            many = drawn.transform(many)[name].tolist()
            mixed = drawn.channels_[name].mean(axis=0)
            for label, share in zip(drawn.categories_[name], mixed, strict=True):
                books.count("shares")
                # A sum of independent draws, one a row, all of one law.
                assert unlikely(many.count(label), ROWS, float(share)) > LEVEL

        run()


# --- the grid itself ------------------------------------------------------------


def log_masses(rows, mass, places, law, power, t):
    """Return log P of released places on the grid, of steps of each row."""
    k = np.abs(places[:, None] - rows[:, 0])
    if law == "laplace":
        # A continuous noise that is rounded: its middle has less than the peak.
        middle = math.log(-math.expm1(-1 / (2 * t)) / math.sinh(1 / (2 * t)))
        logs = np.where(k == 0, middle, -k / t)
    else:
        logs = -((k / t) ** power)
    logs = logs + np.log(mass / mass.sum())
    top = logs.max(axis=1)
    return top + np.log(np.exp(logs - top[:, None]).sum(axis=1))


@runs(4)
def test_no_point_of_the_grid_gives_away_more_than_epsilon(examples):
    with Books("points") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            draw = data.draw
            case = draw(cases(kinds=("numbers", "bounded"), most_rows=14))
            if not hasattr(case.estimator, "power") and draw(st.booleans()):
                return
            note(f"{case}")
            noise = (
                attempt(
                    lambda: case.fit(
                        alpha=math.inf, epsilon=1.5, delta=None, prior_model="empirical"
                    ),
                    books,
                )
                if case.estimator.law.name != "gaussian"
                else None
            )
            if noise is None:
                return
            promise = noise.guarantee_
            for names, sides, _ in pairs_of(case, noise):
                for j, name in enumerate(names):
                    scale = noise.scale_[case.table.names.index(name)]
                    if scale == 0:
                        continue
                    books.count(promise.law)
                    step = step_of(scale)
                    steps = []
                    for rows, mass in sides:
                        column = [[grid_index(v, step)] for v in rows[:, j].tolist()]
                        steps.append((np.array(column, dtype=float), mass))
                    atoms = np.concatenate([rows[:, 0] for rows, _ in steps])
                    near = (atoms[:, None] + np.arange(-2, 3)).ravel()
                    low, high = atoms.min(), atoms.max()
                    far = np.rint(
                        np.linspace(2 * low - high - 9, 2 * high - low + 9, 99)
                    )
                    places = np.unique(np.concatenate([near, far]))
                    options = {
                        "law": promise.law,
                        "power": promise.power,
                        "t": scale / step,
                    }
                    one, other = (
                        log_masses(*side, places, **options) for side in steps
                    )
                    books.count("places", len(places))
                    assert np.abs(one - other).max() <= limit(1.5, math.inf) + 1e-12

        run()
