"""The privacy profile: true at every order, and of use in (ε, δ)."""

import math

import numpy as np
import oracles
import pandas as pd
import pytest
from core_support import cost, rounded
from scipy.integrate import quad
from scipy.stats import laplace, norm

from skpuffer import (
    PrivacyProfile,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    held_out_divergence,
)
from skpuffer.core.calibration import RULES
from skpuffer.exceptions import ExcessiveNoiseWarning, SkippedPairWarning
from skpuffer.profile import profile_orders

LAWS = {"laplace": RenyiPufferfishLaplace, "gaussian": RenyiPufferfishGaussian}
EACH_LAW = pytest.mark.parametrize("law", LAWS)
# On the grid of orders, between, and beyond its ends.
ORDERS = [1.003, 1.2, 2.0, 2.9, 4.0, 7.7, 17.0, 60.0]


def people(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 40, rows) + 3 * (sex == "M"),
            "pay": rng.integers(0, 12, rows) * 1.5 + 2 * (sex == "F"),
            "sex": sex,
        }
    )


def sides(noise, frame, columns):
    """The rounded rows of each secret value."""
    return [
        rounded(rows[columns].to_numpy(dtype=float), noise.scale_)
        for _, rows in frame.groupby("sex")
    ]


def truth(noise, frame, law, alpha, copies=1):
    """The divergence of the released ages, by quadrature."""
    first, second = sides(noise, frame, ["age"])
    return max(
        oracles.mixture_divergence(
            p,
            np.ones(len(p)),
            q,
            np.ones(len(q)),
            law=law,
            scale=noise.scale_[0] / math.sqrt(copies),
            alpha=alpha,
        )
        for p, q in ((first, second), (second, first))
    )


@EACH_LAW
@pytest.mark.parametrize("rule", RULES)
def test_the_divergence_is_below_the_profile_at_every_order(law, rule):
    frame = people()[["age", "sex"]]
    noise = LAWS[law](alpha=4, epsilon=0.8, secret="sex", calibration=rule).fit(frame)
    for alpha, bound in zip(ORDERS, noise.privacy_profile(ORDERS), strict=True):
        found = truth(noise, frame, law, alpha)
        assert found <= bound * (1 + 1e-10)
        if rule == "exact" and bound < 15:
            # Ten bits, and a chord between neighbouring orders.
            assert found >= bound * 0.93
    promised = noise.privacy_profile(4.0)
    assert promised <= 0.8
    if rule in ("exact", "transport", "alpha_wasserstein"):
        assert noise.privacy_profile(4.0 * (1 + 1e-12)) <= 0.8 * (1 + 1e-3)


@EACH_LAW
def test_transport_at_the_grid_of_orders_is_the_moment_of_the_shifts(law):
    frame = people()[["age", "sex"]]
    noise = LAWS[law](alpha=4, epsilon=0.8, secret="sex").fit(frame)
    first, second = (np.sort(side[:, 0]) for side in sides(noise, frame, ["age"]))
    # The quantile coupling, by levels: every row stands for as many as the other has.
    size = np.lcm(len(first), len(second))
    shifts = np.repeat(first, size // len(first)) - np.repeat(
        second, size // len(second)
    )
    for alpha in profile_orders(1)[::7]:
        exponents = cost(law, shifts[:, None], alpha=alpha, scale=noise.scale_)
        top = exponents.max()
        moment = top + math.log(np.mean(np.exp(exponents - top)))
        wanted = moment / (alpha - 1)
        (found,) = noise.privacy_profile([alpha])
        assert wanted * (1 - 1e-9) <= found <= wanted * (1 + 2.0**-9)
    if law == "laplace":
        limit = np.abs(shifts).max() / noise.scale_[0]
        assert limit <= noise.privacy_profile(math.inf) <= limit * (1 + 2.0**-9)
        far = noise.privacy_profile(1e7)
        assert limit * (1 - 1e-3) <= far <= noise.privacy_profile(math.inf)
    else:
        assert noise.privacy_profile(math.inf) == math.inf


@EACH_LAW
def test_a_joint_release_of_two_columns(law):
    frame = people(60)
    noise = LAWS[law](alpha=3, epsilon=1, secret="sex").fit(frame)
    first, second = sides(noise, frame, ["age", "pay"])
    for alpha in (1.5, 6.0):
        found = oracles.mixture_divergence_2d(
            first,
            np.ones(len(first)),
            second,
            np.ones(len(second)),
            law=law,
            scale=noise.scale_,
            alpha=alpha,
        )
        assert found <= noise.privacy_profile(alpha) * (1 + 1e-9)


def test_columns_alone_get_the_largest_of_theirs():
    frame = people()
    both = RenyiPufferfishLaplace(alpha=3, secret="sex", scope="column").fit(frame)
    single = [
        RenyiPufferfishLaplace(alpha=3, secret="sex").fit(frame[[column, "sex"]])
        for column in ("age", "pay")
    ]
    each = [noise.privacy_profile(ORDERS) for noise in single]
    largest = np.maximum(*each)
    together = both.privacy_profile(ORDERS)
    assert (together <= largest * (1 + 2.0**-9)).all()
    assert (together >= largest * (1 - 2.0**-9)).all()


def test_several_copies_are_in_the_profile():
    frame = people()[["age", "sex"]]
    noise = RenyiPufferfishGaussian(
        alpha=4, epsilon=0.8, secret="sex", n_releases=3, calibration="exact"
    ).fit(frame)
    for alpha, bound in zip(ORDERS, noise.privacy_profile(ORDERS), strict=True):
        assert truth(noise, frame, "gaussian", alpha, copies=3) <= bound * (1 + 1e-10)


def test_the_other_prior_models():
    frame = people()[["age", "sex"]]
    settings = {"alpha": 3, "epsilon": 0.7, "secret": "sex"}
    with pytest.warns(ExcessiveNoiseWarning):
        wide = RenyiPufferfishLaplace(
            **settings, prior_model="bounded", bounds=(20, 45)
        ).fit(frame)
    for alpha in ORDERS:
        point = oracles.shift_divergence("laplace", 25.0, wide.scale_[0], alpha)
        assert point <= wide.privacy_profile(alpha) <= point * 1.02
    assert wide.privacy_profile(3.0) == pytest.approx(0.7, rel=1e-4)

    likely = RenyiPufferfishLaplace(
        **settings, prior_model="population", bounds=(20, 45)
    ).fit(frame)
    plain = RenyiPufferfishLaplace(**settings).fit(frame)
    # The bands leave room for more than the sample's own shifts.
    assert likely.scale_[0] > plain.scale_[0]
    assert likely.privacy_profile(3.0) <= 0.7
    farthest = likely.privacy_profile(math.inf) * likely.scale_[0]
    assert farthest > plain.privacy_profile(math.inf) * plain.scale_[0]

    settings["epsilon"] = 0.1
    model = RenyiPufferfishGaussian(**settings, prior_model="gaussian").fit(frame)
    assert model.scale_[0] > 0
    moments = [
        (rows["age"].mean(), rows["age"].var(ddof=0) + model.scale_[0] ** 2)
        for _, rows in frame.groupby("sex")
    ]
    for alpha in (1.5, 3.0, 5.0):
        found = max(
            gaussian_divergence(*p, *q, alpha) for p, q in (moments, moments[::-1])
        )
        assert found <= model.privacy_profile(alpha) <= found * 1.02


def gaussian_divergence(mean, variance, other_mean, other_variance, alpha):
    p, q = norm(mean, math.sqrt(variance)), norm(other_mean, math.sqrt(other_variance))

    def integrand(y):
        return math.exp(alpha * p.logpdf(y) + (1 - alpha) * q.logpdf(y))

    # The integrand is a Gaussian of about this width around the two means.
    width = 40 * math.sqrt(max(variance, other_variance))
    value, _ = quad(integrand, mean - width, mean + width, limit=500, epsabs=0)
    return math.log(value) / (alpha - 1)


@EACH_LAW
def test_two_groups_alike_beside_a_third(law):
    rows = people()["age"].to_numpy()[:60]
    frame = pd.DataFrame(
        {"age": np.concatenate([rows, rows, rows + 4]), "sex": np.repeat([0, 1, 2], 60)}
    )
    noise = LAWS[law](secret="sex", calibration="exact").fit(frame)
    assert 0 < noise.privacy_profile(1.5) <= noise.privacy_profile(2.0) <= 1
    alike = frame[frame["sex"] < 2]
    with pytest.warns(SkippedPairWarning):
        found = held_out_divergence(noise, alike)["divergence"]
    assert found.tolist() == [0.0]


@EACH_LAW
def test_no_noise_has_a_limit_under_every_law(law):
    alike = pd.DataFrame({"age": [1.0, 2.0] * 40, "sex": ["F", "F", "M", "M"] * 20})
    for rule in ("transport", "exact"):
        noise = LAWS[law](secret="sex", calibration=rule)
        with pytest.warns(UserWarning, match="released unchanged"):
            noise.fit(alike)
        assert noise.privacy_profile(math.inf) == 0
        assert noise.profile_.to_epsilon(0.0) == 0


def test_no_noise_no_shift_and_no_difference():
    alike = pd.DataFrame({"age": [1.0, 2.0] * 40, "sex": ["F", "F", "M", "M"] * 20})
    with pytest.warns(UserWarning, match="released unchanged"):
        noise = RenyiPufferfishLaplace(secret="sex").fit(alike)
    assert (noise.privacy_profile([1.5, 40.0, math.inf]) == 0).all()
    assert noise.profile_.to_epsilon(0.0) == 0
    assert noise.profile_.to_delta(0.0) == 0

    near = pd.DataFrame(
        {
            "age": [0.0] * 50 + [1.0] * 50 + [0.0] * 55 + [1.0] * 45,
            "sex": [0] * 100 + [1] * 100,
        }
    )
    with pytest.warns(UserWarning, match="released unchanged"):
        exact = RenyiPufferfishLaplace(secret="sex", calibration="exact").fit(near)
    assert exact.scale_[0] == 0
    atoms = np.log([0.5, 0.5]), np.log([0.55, 0.45])
    for alpha in (1.2, 2.0, 9.0):
        found = max(
            math.log(np.exp(alpha * p + (1 - alpha) * q).sum()) / (alpha - 1)
            for p, q in (atoms, atoms[::-1])
        )
        assert found <= exact.privacy_profile(alpha) <= found * 1.02
    assert exact.privacy_profile(math.inf) == pytest.approx(
        max(abs(atoms[0] - atoms[1])), rel=2.0**-9
    )


@EACH_LAW
@pytest.mark.parametrize("rule", ["transport", "exact"])
def test_epsilon_and_delta_hold_and_beat_the_single_order(law, rule):
    frame = people()[["age", "sex"]]
    noise = LAWS[law](alpha=4, epsilon=0.8, secret="sex", calibration=rule).fit(frame)
    first, second = sides(noise, frame, ["age"])
    density = {"laplace": laplace, "gaussian": norm}[law].pdf
    places = np.linspace(-400.0, 450.0, 400_001)
    p, q = (
        sum(
            density(places, atom, noise.scale_[0]) * count / len(side)
            for atom, count in zip(*np.unique(side, return_counts=True), strict=True)
        )
        for side in (first, second)
    )
    step = places[1] - places[0]
    for delta in (1e-6, 1e-3, 0.05):
        epsilon = noise.profile_.to_epsilon(delta)
        for one, other in ((p, q), (q, p)):
            missed = np.maximum(one - math.exp(epsilon) * other, 0).sum() * step
            assert missed <= delta * (1 + 1e-3)
        single = noise.guarantee_.to_epsilon(delta)
        assert epsilon <= single
        if delta == 1e-6:
            assert epsilon < 0.95 * single
        # Back again.
        assert noise.profile_.to_delta(epsilon) == pytest.approx(delta, rel=1e-2)


def test_a_chosen_order_is_the_best_of_the_profile():
    frame = people()[["age", "sex"]]
    noise = RenyiPufferfishGaussian(
        alpha="auto", epsilon=2, delta=1e-4, secret="sex"
    ).fit(frame)
    # The scale is the least for any order, so that no other order proves much more.
    assert 2 * (1 - 5e-3) <= noise.profile_.to_epsilon(1e-4) <= 2 * (1 + 1e-9)


def test_bounds_rise_and_their_moments_are_convex():
    frame = people()[["age", "sex"]]
    for law, rule in (("laplace", "exact"), ("gaussian", "transport")):
        noise = LAWS[law](alpha=4, secret="sex", calibration=rule).fit(frame)
        orders = np.sort(1 + np.exp(np.random.default_rng(1).uniform(-6, 6.9, 400)))
        bounds = noise.privacy_profile(orders)
        assert (np.diff(bounds) >= -1e-12 * bounds[1:]).all()
        moments = (orders - 1) * bounds
        slopes = np.diff(moments) / np.diff(orders)
        assert (np.diff(slopes) >= -1e-9 * np.abs(slopes[1:])).all()


def test_shape_types_and_refusals():
    noise = RenyiPufferfishLaplace(secret="sex").fit(people())
    assert noise.privacy_profile([[2.0, 3.0], [4.0, 5.0]]).shape == (2, 2)
    assert noise.privacy_profile(2).shape == ()
    assert noise.privacy_profile([]).shape == (0,)
    for bad in (1.0, 0.5, -math.inf, math.nan):
        with pytest.raises(ValueError, match=r"alphas must lie in \(1, inf\], got"):
            noise.privacy_profile([2.0, bad])
    with pytest.raises(ValueError, match="delta must lie in"):
        noise.profile_.to_epsilon(1.0)
    with pytest.raises(ValueError, match="epsilon must be at least 0"):
        noise.profile_.to_delta(-1.0)


def test_the_lowest_chord_wins_and_the_promise_is_kept_exactly():
    # f = (α−1) D at α = 2, 3, 4: 1, 4 and 6. The chord from 1 to 6 lies at 3.5.
    values = {2.0: 1.0, 3.0: 2.0, 4.0: 2.0}
    profile = PrivacyProfile.of(
        values.get, sorted(values), promised=(2.0, 0.9), limit=math.inf
    )
    assert profile.divergence(2.0) == 0.9
    assert profile.divergence(3.0) == pytest.approx((0.9 + 6) / 2 / 2, rel=1e-12)
    assert profile.divergence(4.0) == 2.0
    assert profile.divergence(1.5) == 0.9
    # An order at which nothing could be shown lies below a chord as well.
    values[3.0] = math.inf
    again = PrivacyProfile.of(
        values.get, sorted(values), promised=(2.0, 0.9), limit=math.inf
    )
    assert again.divergence(3.0) == profile.divergence(3.0)
    # A line of slope D_∞ from any order bounds the later ones.
    steep = PrivacyProfile.of(
        {2.0: 0.5, 3.0: 2.0}.get, [2.0, 3.0], promised=(math.inf, 1.0), limit=3.0
    )
    assert steep.divergence([3.0, 5.0, math.inf]).tolist() == pytest.approx(
        [0.75, (0.5 + 3) / 4, 1.0], rel=1e-12
    )


def test_many_pairs_are_looked_at_at_fewer_orders():
    assert len(profile_orders(8)) > len(profile_orders(9)) > len(profile_orders(65))
    assert profile_orders(10**6)[-1] == pytest.approx(1_001)


def test_very_many_atoms_leave_the_profile_to_transport():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"pay": rng.normal(size=24_000), "sex": [0, 1] * 12_000})
    frame["pay"] += 0.2 * frame["sex"]
    scales = {}
    for rule in ("exact", "transport"):
        noise = RenyiPufferfishLaplace(
            alpha=4, epsilon=0.05, secret="sex", calibration=rule
        ).fit(frame)
        assert noise.privacy_profile(4.0) == pytest.approx(0.05, rel=1e-3)
        scales[rule] = noise
    # At twice the order nothing but the shifts speaks for the smaller scale.
    assert scales["exact"].scale_[0] < scales["transport"].scale_[0]
    assert scales["exact"].privacy_profile(8.0) > scales["transport"].privacy_profile(
        8.0
    )
