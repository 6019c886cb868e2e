"""The campaign against promises for other priors than the fitted rows."""

import math

import numpy as np
import pytest
from campaign_cases import (
    LAWS,
    RULES,
    attempt,
    bounds,
    runs,
)
from campaign_oracles import limit, line_divergence, shift_cost
from campaign_support import (
    FRAMES,
    Books,
    as_frame,
    budgets,
    campaign,
    chosen_pairs,
    tables,
)
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from test_campaign import assert_released_promise

from skpuffer import (
    RenyiPufferfishGaussian,
)

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


@runs(12)
def test_declared_bounds_keep_the_promise_for_any_rows(examples):
    with Books("bounded") as books:

        @campaign(examples)
        @given(st.sampled_from(list(LAWS)), st.data())
        def run(law, data):
            fitted_on, other = (data.draw(tables((1, 4), 12)) for _ in range(2))
            names = fitted_on.names
            declared = data.draw(bounds(names).filter(lambda b: isinstance(b, tuple)))
            given_ = data.draw(budgets(law != "gaussian", 0.1))
            noise = LAWS[law](
                secret="s",
                prior_model="bounded",
                bounds=declared,
                calibration=data.draw(st.sampled_from(RULES)),
                n_releases=data.draw(st.sampled_from([1, 2])),
                **({"prior": "p"} if fitted_on.prior else {}),
                **given_,
            )
            noise = attempt(lambda: noise.fit(as_frame(fitted_on)), books)
            if noise is None:
                return
            promise, scale = noise.guarantee_, noise.scale_
            assert (scale > 0).all()
            width = np.full((1, len(names)), float(declared[1] - declared[0]))
            options = {"law": law, "alpha": promise.alpha}
            if law == "exponential":
                options["power"] = 0.5
            bound = limit(promise.epsilon, promise.alpha)
            if promise.alpha < math.inf:
                # One row at either end is the worst that there is, and known exactly.
                copies = promise.n_releases
                found = shift_cost(shifts=width, scale=scale, copies=copies, **options)
                assert found[0] / (promise.alpha - 1) <= bound
            # Any rows at all, those of another table say.
            column = data.draw(st.sampled_from(other.names))
            values = np.clip(other.columns[column], *map(float, declared))[:, None]
            half = np.arange(len(values)) % 2 == 0
            sides = [(values[part], np.ones(part.sum())) for part in (half, ~half)]
            j = data.draw(st.integers(0, len(names) - 1))
            for p, q in (sides, sides[::-1]):
                books.count("integrals")
                assert line_divergence(p, q, scale=scale[j], **options) <= bound

        run()


@runs(7)
def test_a_population_covers_its_own_sample(examples):
    # The bands hold the sample's quantiles, so that it is one of the populations.
    with Books("population") as books:

        @campaign(examples)
        @given(st.sampled_from(list(LAWS)), st.data())
        def run(law, data):
            table = data.draw(tables((1, 3), 40, weighted=False))
            declared = data.draw(bounds(["a"]).filter(lambda b: isinstance(b, tuple)))
            given_ = data.draw(budgets(law != "gaussian", 0.1))
            pairs, stand_for = data.draw(chosen_pairs(table))
            noise = LAWS[law](
                secret="s",
                prior_model="population",
                confidence=data.draw(st.sampled_from([0.5, 0.9, 0.99])),
                bounds=declared,
                scope="column",
                secret_pairs=pairs,
                calibration=data.draw(st.sampled_from(RULES)),
                **({"prior": "p"} if table.prior else {}),
                **given_,
            )
            noise = attempt(lambda: noise.fit(as_frame(table)), books)
            if noise is None:
                return
            assert (noise.scale_ > 0).all()
            sample = clone(noise).set_params(prior_model="empirical")
            sample = attempt(lambda: sample.fit(as_frame(table)), books)
            if sample is not None and noise.alpha != "auto":
                assert (noise.scale_ >= sample.scale_ * (1 - 1e-6)).all()
            assert_released_promise(noise, table, stand_for, declared, 3.0, books)

        run()


@runs(12)
def test_a_gaussian_model_keeps_the_promise(examples):
    with Books("gaussian model") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            table = data.draw(tables((1, 3), 30))
            given_ = data.draw(budgets(infinite=False))
            pairs, stand_for = data.draw(chosen_pairs(table))
            noise = RenyiPufferfishGaussian(
                secret="s",
                prior_model="gaussian",
                scope="column",
                secret_pairs=pairs,
                **({"prior": "p"} if table.prior else {}),
                **given_,
            )
            frame = as_frame(table, data.draw(st.sampled_from(list(FRAMES))))
            noise = attempt(lambda: noise.fit(frame, sample_weight=table.weight), books)
            if noise is None:
                return
            bound = limit(noise.epsilon_, noise.alpha_)
            for name, scale in zip(table.names, noise.scale_, strict=True):
                for sides in table.pairs(stand_for, [name]):
                    for p, q in (sides, sides[::-1]):
                        books.count("pairs")
                        assert normal_divergence(p, q, scale, noise.alpha_) <= bound

        run()


def normal_divergence(p, q, scale, alpha):
    """The divergence of two Gaussians with the moments of two samples, and noise."""
    moments = []
    for rows, mass in (p, q):
        values, share = rows[:, 0].astype(float), mass / mass.sum()
        mean = share @ values
        moments.append((mean, share @ (values - mean) ** 2 + scale**2))
    (m, v), (n, w) = moments
    if v == w == 0:
        return 0.0 if abs(m - n) < 1e-12 else math.inf
    mixed = alpha * w + (1 - alpha) * v
    if mixed <= 0 or v == 0 or w == 0:
        return math.inf
    # Of logarithms near each other: log(mixed) − (1−α) log v − α log w.
    logs = math.log1p((mixed - w) / w) - (1 - alpha) * math.log1p((v - w) / w)
    return alpha * (m - n) ** 2 / (2 * mixed) + logs / (2 * (1 - alpha))
