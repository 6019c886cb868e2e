"""The campaign against profiles: every order, and every (ε, δ), of what is released."""

import math

import numpy as np
import pytest
from campaign_cases import attempt, clipping, runs, whole
from campaign_cells import hockey_stick, noise_law, renyi, seen
from campaign_kinds import cases
from campaign_labels import channels_of
from campaign_oracles import is_transported, limit, line_divergence, on_grid, shift_cost
from campaign_support import Books, campaign
from hypothesis import given, note
from hypothesis import strategies as st
from test_campaign_priors import normal_divergence

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")

ORDERS = st.one_of(
    st.floats(math.log(1e-3), math.log(2e3)).map(lambda x: 1 + math.exp(x)),
    st.sampled_from([1.01, 2.0, 3.0, 11.0, 64.0, 1001.0, 1e4]),
)


def places_of(case, noise, name, rows):
    """Return the places of the codes of a column in its channel."""
    ((_, labels, fitted),) = channels_of(noise, case.sets, [name])
    return [fitted.index(labels[int(code)]) for code in rows.tolist()]


def what_is_released(case, noise, names, side):
    """Return rows as they are released, before noise; categories as their places."""
    rows, mass = side
    columns = []
    for j, name in enumerate(names):
        if name in case.sets:
            columns.append(places_of(case, noise, name, rows[:, j]))
            continue
        scale = np.array([scale_at(case, noise, name)])
        rounded, _ = on_grid((rows[:, [j]], mass), scale)
        columns.append(rounded[:, 0])
    return np.stack([np.asarray(c, dtype=float) for c in columns], axis=1), mass


def scale_at(case, noise, name):
    return noise.scale_[case.table.names.index(name)]


def pairs_of(case, noise):
    """Yield columns of a block, and both sides of each pair as they are released."""
    table = case.table
    if case.numbers:
        clipped = clipping(case.declared, case.numbers)(table.values(case.numbers))
        changed = dict(zip(case.numbers, clipped.T, strict=True))
        table = type(table)(
            {name: changed.get(name, table.columns[name]) for name in table.names},
            table.secret,
            table.prior,
            table.weight,
        )
    joint = noise.guarantee_.scope == "joint"
    for names in [table.names] if joint else [[name] for name in table.names]:
        for pair in table.pairs(case.pairs, names):
            sides = [what_is_released(case, noise, names, side) for side in pair]
            yield names, sides, pair


def column_laws(case, noise, names):
    promise, found = noise.guarantee_, []
    for name in names:
        if name in case.sets:
            found.append(("channel", noise.channels_[name]))
        else:
            law = noise_law(promise.law, promise.power)
            found.append(("noise", (law, scale_at(case, noise, name))))
    return found


@runs(8)
def test_the_profile_bounds_every_order_and_every_delta(examples):
    kinds = ("numbers", "numbers", "bounded", "categories", "row", "row")
    with Books("profiles") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            case, draw = data.draw(cases(kinds=kinds, most_rows=12)), data.draw
            note(f"{case}")
            noise = attempt(case.fit, books)
            if noise is None:
                return
            promise, profile = noise.guarantee_, noise.profile_
            orders = [promise.alpha, draw(ORDERS), draw(ORDERS), math.inf]
            bounds = noise.privacy_profile(orders).tolist()
            assert bounds[0] <= promise.epsilon * (1 + 1e-9)
            assert bounds == profile.divergence(orders).tolist()
            targets = [draw(st.floats(0, 12)), draw(st.sampled_from([0.0, 1.0]))]
            deltas = [(profile.to_delta(e), promise.to_delta(e)) for e in targets]
            small = draw(st.sampled_from([1e-2, 1e-6, 0.3]))
            least = profile.to_epsilon(small)
            assert least <= promise.to_epsilon(small) * (1 + 1e-9)
            gaussian = promise.prior_model == "gaussian"
            for names, sides, pair in pairs_of(case, noise):
                books.count(f"pairs, {case.kind}")
                if gaussian:
                    assert_gaussian(case, noise, names[0], pair, orders, bounds)
                    continue
                if not case.sets:
                    assert_by_shifts(case, noise, names, sides, orders, bounds, books)
                columns = column_laws(case, noise, names)
                copies = promise.n_releases
                for one, other in (sides, sides[::-1]):
                    p, q = seen(one, other, columns, alpha=orders[1], copies=copies)
                    for order, bound in zip(orders, bounds, strict=True):
                        books.count("orders")
                        assert renyi(p, q, order) <= limit(bound, order)
                    for e, both in zip(targets, deltas, strict=True):
                        books.count("deltas")
                        assert hockey_stick(p, q, e) <= min(both) + 1e-13
                    if least < 700:
                        assert hockey_stick(p, q, least) <= small * (1 + 1e-9) + 1e-13
                    if len(names) == copies == 1 and names[0] in case.numbers:
                        assert_by_quadrature(
                            case, noise, one, other, orders[1:3], bounds[1:3]
                        )
                        books.count("integrals", 2)

        run()


def assert_gaussian(case, noise, name, pair, orders, bounds):
    scale = scale_at(case, noise, name)
    for order, bound in zip(orders, bounds, strict=True):
        if order < math.inf:
            for p, q in (pair, pair[::-1]):
                found = normal_divergence(p, q, scale, order)
                assert found <= limit(bound, order)


def assert_by_shifts(case, noise, names, sides, orders, bounds, books):
    """Hold the profile to the shifts that it rests on, which mixtures may hide.

    Some coupling proves it; of any distributions on bounds, it is that of both ends.
    """
    promise = noise.guarantee_
    scale = np.array([scale_at(case, noise, name) for name in names])
    if not scale.all() or promise.rule == "exact":
        return
    options = {"law": promise.law, "scale": scale, "copies": promise.n_releases}
    if promise.law == "exponential":
        options["power"] = promise.power
    for order, bound in zip(orders, bounds, strict=True):
        if promise.prior_model == "bounded" and order < math.inf:
            width = np.full((1, len(names)), float(case.declared[1] - case.declared[0]))
            found = shift_cost(shifts=width, alpha=order, **options)[0] / (order - 1)
            assert found <= limit(bound, order)
            books.count("ends")
        if (order - 1) * bound < 300 and whole(*sides):
            books.count("programmes")
            assert is_transported(*sides, epsilon=bound, alpha=order, **options)


def assert_by_quadrature(case, noise, p, q, orders, bounds):
    promise = noise.guarantee_
    options = {"law": promise.law, "scale": float(noise.scale_.max())}
    if promise.scope == "column" or len(noise.scale_) > 1:
        return
    if promise.law == "exponential":
        options["power"] = promise.power
    if options["scale"] == 0:
        return
    for order, bound in zip(orders, bounds, strict=True):
        if order < 300:
            found = line_divergence(p, q, alpha=order, **options)
            assert found <= limit(bound, order)


@runs(4)
def test_conversions_take_the_best_order_and_turn_back(examples):
    kinds = ("numbers", "numbers", "population", "bounded", "categories", "row")
    with Books("conversions") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            case, draw = data.draw(cases(kinds=kinds, most_rows=10)), data.draw
            noise = attempt(case.fit, books)
            if noise is None:
                return
            promise, profile = noise.guarantee_, noise.profile_
            delta = draw(st.floats(-25, -0.1)) if draw(st.booleans()) else -1.0
            delta = math.exp(delta)
            found = profile.to_epsilon(delta)
            bounds = zip(profile.orders, profile.divergences, strict=True)
            ways = [by_hand(alpha, bound, delta) for alpha, bound in bounds]
            if profile.limit < 700:
                ways.append(by_hand(math.inf, profile.limit, delta))
            ways += [by_hand(promise.alpha, promise.epsilon, delta)]
            note(f"{found} {ways}")
            assert 0 <= found <= max(min(ways), 0.0) + 1e-12
            # Between two orders of the grid there is little to win.
            least = max(min(ways), 0.0)
            assert found >= least * 0.9 - 0.05 or math.isinf(least)
            if found < math.inf:
                # A last digit of ε′ moves δ by as much at α = ∞.
                slack = 2.0**-51 * (1 + found)
                assert profile.to_delta(found) <= delta * (1 + 1e-9) + slack
                assert profile.to_delta(found + 0.1) <= profile.to_delta(found)
            assert profile.to_epsilon(0) == profile.limit
            target = draw(st.floats(0, 1.5)) * max(promise.epsilon, 0.5)
            wanted = delta_by_hand(promise.alpha, promise.epsilon, target)
            assert promise.to_delta(target) == pytest.approx(
                wanted, rel=1e-9, abs=1e-15
            )
            bounds = zip(profile.orders, profile.divergences, strict=True)
            wanted = min(delta_by_hand(alpha, b, target) for alpha, b in bounds)
            assert profile.to_delta(target) <= wanted * (1 + 1e-9) + 1e-15
            assert profile.to_delta(target) <= promise.to_delta(target) * (1 + 1e-9)
            assert promise.to_epsilon(delta) == pytest.approx(
                max(by_hand(promise.alpha, promise.epsilon, delta), 0.0), rel=1e-9
            )
            # Bounds rise, and their moments are convex.
            orders = np.array(profile.orders)
            known = np.array(profile.divergences)
            finite = known < math.inf
            assert finite.tolist() == sorted(finite.tolist(), reverse=True)
            orders, known = orders[finite], known[finite]
            assert (np.diff(known) >= -1e-9 * known[1:]).all()
            alphas = np.concatenate([[1.0], orders])
            moments = np.concatenate([[0.0], (orders - 1) * known])
            gaps = np.diff(alphas)
            chords = moments[:-2] * gaps[1:] + moments[2:] * gaps[:-1]
            chords /= alphas[2:] - alphas[:-2]
            assert (moments[1:-1] <= chords * (1 + 1e-9)).all()
            books.count("profiles")

        run()


def by_hand(alpha, epsilon, delta):
    """The (ε′, δ) of a Rényi bound [Mironov 2017; Canonne, Kamath and Steinke 2020]."""
    if alpha == math.inf:
        # Two outcomes with odds of e^ε, and of e^-ε, are the worst that there is.
        left = math.exp(epsilon) - delta * (1 + math.exp(epsilon))
        return math.log(left) if left > 0 else -math.inf
    plain = epsilon - math.log(delta) / (alpha - 1)
    better = epsilon + math.log1p(-1 / alpha)
    better -= (math.log(delta) + math.log(alpha)) / (alpha - 1)
    return min(plain, better)


def delta_by_hand(alpha, epsilon, target):
    """The δ of a target ε′ for which `by_hand` gives it."""
    if alpha == math.inf:
        odds = math.exp(epsilon)
        return max((odds - math.exp(target)) / (1 + odds), 0.0)
    plain = (alpha - 1) * (epsilon - target)
    better = plain - math.log(alpha) + (alpha - 1) * math.log1p(-1 / alpha)
    return math.exp(min(plain, better, 0.0))
