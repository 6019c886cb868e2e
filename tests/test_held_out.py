"""The exact rule and the divergence on held-out rows, as a user meets them."""

import math

import numpy as np
import oracles
import pandas as pd
import pytest
from core_support import rounded
from sklearn.exceptions import NotFittedError

from skpuffer import (
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    held_out_divergence,
)
from skpuffer.exceptions import (
    ParameterError,
    SkippedPairWarning,
    UnavailableRuleError,
    ZeroNoiseWarning,
)

LAWS = {"laplace": RenyiPufferfishLaplace, "gaussian": RenyiPufferfishGaussian}
EACH_LAW = pytest.mark.parametrize("law", LAWS)


def people(seed, rows=400):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, rows) + 3 * (sex == "M"),
            "pay": rng.integers(0, 30, rows) * 1.5 + 2 * (sex == "F"),
            "sex": sex,
        }
    )


def one(seed=0):
    return people(seed)[["age", "sex"]]


def by_quadrature(noise, frame, column, law):
    scale = noise.scale_[list(noise.feature_names_in_).index(column)]
    sides = []
    for _, rows in frame.groupby("sex"):
        values = rows[column].to_numpy(dtype=float)[:, None]
        sides.append((rounded(values, [scale]), np.ones(len(values))))
    return max(
        oracles.mixture_divergence(*p, *q, law=law, scale=scale, alpha=noise.alpha_)
        for p, q in (sides, sides[::-1])
    )


@EACH_LAW
def test_the_fitted_rows_keep_the_promise_and_nearly_use_it_up(law):
    noise = LAWS[law](alpha=3, epsilon=0.4, secret="sex", calibration="exact")
    noise.fit(one())
    line = held_out_divergence(noise, one()).iloc[0]
    assert line["holds"]
    assert line["epsilon"] == 0.4
    assert 0.4 * (1 - 5e-5) <= line["divergence"] <= 0.4
    assert (line["pair"], line["prior"], line["column"]) == (("F", "M"), None, "age")


@EACH_LAW
def test_other_rows_have_the_divergence_of_the_quadrature(law):
    noise = LAWS[law](alpha=3, epsilon=0.4, secret="sex", calibration="exact")
    noise.fit(one())
    found = held_out_divergence(noise, one(1))
    expected = by_quadrature(noise, one(1), "age", law)
    assert expected * (1 - 1e-9) <= found["divergence"][0] <= expected * (1 + 1e-5)
    assert found["holds"][0] == (expected <= 0.4)
    # Far beyond epsilon too.
    far = one(1).assign(age=lambda f: f["age"] + 12 * (f["sex"] == "M"))
    found = held_out_divergence(noise, far)
    expected = by_quadrature(noise, far, "age", law)
    assert expected * (1 - 1e-9) <= found["divergence"][0] <= expected * (1 + 1e-5)
    assert not found["holds"][0]


def test_each_column_pair_and_prior():
    frame = people(0).assign(region=np.tile(["n", "s"], 200))
    frame.loc[::5, "sex"] = "X"
    noise = RenyiPufferfishLaplace(
        epsilon=0.5, secret="sex", prior="region", scope="column",
        secret_pairs=[("F", "M"), ("X", "M")],
    ).fit(frame)  # fmt: skip
    found = held_out_divergence(noise, frame)
    assert len(found) == 2 * 2 * 2
    assert set(found["pair"]) == {("F", "M"), ("M", "X")}
    assert set(found["prior"]) == {"n", "s"}
    assert set(found["column"]) == {"age", "pay"}
    assert found["holds"].all()
    # A pair that does not occur is left out.
    with pytest.warns(SkippedPairWarning, match="said of them: n: M – X, s: M – X$"):
        some = held_out_divergence(noise, frame[(frame["sex"] != "X")])
    assert set(some["pair"]) == {("F", "M")}


def test_secrets_and_priors_from_outside():
    frame = one()
    noise = RenyiPufferfishGaussian(epsilon=0.5, secret="sex").fit(frame)
    inside = held_out_divergence(noise, frame)
    outside = held_out_divergence(noise, frame[["age"]], frame["sex"])
    pd.testing.assert_frame_equal(inside, outside)
    both = held_out_divergence(noise, frame, frame["sex"])
    pd.testing.assert_frame_equal(inside, both)
    from_y = RenyiPufferfishGaussian(epsilon=0.5, secret_from_y=True)
    from_y.fit(frame[["age"]], frame["sex"])
    again = held_out_divergence(from_y, frame[["age"]], frame["sex"])
    pd.testing.assert_frame_equal(inside, again)
    by_prior = held_out_divergence(
        noise, frame, prior=np.tile(["a", "b"], 200), sample_weight=np.ones(400)
    )
    assert by_prior["prior"].tolist() == ["a", "b"]


def test_values_are_clipped_as_in_a_release():
    frame = one()
    noise = RenyiPufferfishLaplace(secret="sex", bounds=(20, 62)).fit(frame)
    wild = frame.assign(age=frame["age"] + 0.0)
    wild.loc[0, "age"] = 1e6
    tame = wild.assign(age=wild["age"].clip(20, 62))
    pd.testing.assert_frame_equal(
        held_out_divergence(noise, wild), held_out_divergence(noise, tame)
    )


def test_without_noise():
    frame = pd.DataFrame({"x": [1.0, 2.0] * 40, "s": ["a", "a", "b", "b"] * 20})
    noise = RenyiPufferfishLaplace(secret="s")
    with pytest.warns(ZeroNoiseWarning):
        noise.fit(frame)
    assert held_out_divergence(noise, frame)["divergence"][0] == 0
    moved = frame.assign(x=frame["x"] + (frame["s"] == "b"))
    assert held_out_divergence(noise, moved)["divergence"][0] == math.inf


@EACH_LAW
def test_copies_together(law):
    frame = one()
    noise = LAWS[law](epsilon=0.5, secret="sex", n_releases=2).fit(frame)
    found = held_out_divergence(noise, frame)["divergence"][0]
    assert 0 < found <= 0.5
    if law == "gaussian":
        exact = LAWS[law](
            epsilon=0.5, secret="sex", n_releases=2, calibration="exact"
        ).fit(frame)
        assert held_out_divergence(exact, frame)["divergence"][0] == pytest.approx(
            0.5, rel=5e-5
        )


@EACH_LAW
def test_copies_are_bounded_by_the_quadrature_of_both(law):
    values = {"F": [0, 0, 1, 2] * 10, "M": [0, 1, 2, 2] * 10}
    frame = pd.DataFrame(values).melt(var_name="sex", value_name="age")
    noise = LAWS[law](epsilon=0.5, secret="sex", n_releases=2).fit(frame)
    # Two copies are two columns of the same value.
    sides = []
    for rows in values.values():
        atoms, mass = np.unique(rows, return_counts=True)
        atoms = rounded(atoms[:, None].astype(float), noise.scale_)
        sides.append((np.hstack([atoms, atoms]), mass))
    true, alone = (
        max(
            divergence(*p, *q, law=law, scale=noise.scale_[0], alpha=2.0)
            for p, q in (pairs, pairs[::-1])
        )
        for divergence, pairs in (
            (oracles.mixture_divergence_2d, sides),
            (
                oracles.mixture_divergence,
                [(points[:, :1], mass) for points, mass in sides],
            ),
        )
    )
    assert true > 1.2 * alone
    found = held_out_divergence(noise, frame)["divergence"][0]
    most = true * (1 + 1e-5) if law == "gaussian" else 0.5
    assert true * (1 - 1e-9) <= found <= most


def test_infinite_order_and_tiny_weights():
    frame = one()
    noise = RenyiPufferfishLaplace(alpha=math.inf, epsilon=0.7, secret="sex").fit(frame)
    found = held_out_divergence(noise, frame)["divergence"][0]
    assert found == pytest.approx(by_quadrature(noise, frame, "age", "laplace"))
    weight = np.ones(400)
    weight[0] = 1e-300
    rare = frame.assign(age=frame["age"].where(frame.index > 0, 19.5))
    assert held_out_divergence(noise, rare, sample_weight=weight)["divergence"][0] <= (
        0.7 + 1e-9
    )


def test_what_cannot_be_computed_is_refused():
    frame = people(0)
    with pytest.raises(NotFittedError):
        held_out_divergence(RenyiPufferfishLaplace(secret="sex"), frame)
    noise = RenyiPufferfishLaplace(secret="sex").fit(frame)
    with pytest.raises(ParameterError, match="scope='joint' releases 2"):
        held_out_divergence(noise, frame)
    noise = RenyiPufferfishLaplace(secret="sex").fit(frame[["age", "sex"]])
    with pytest.raises(ParameterError, match=r"columns pay to release.*age"):
        held_out_divergence(noise, frame[["pay", "sex"]])


# --- the rule, from the estimator ---


@EACH_LAW
def test_the_exact_rule_needs_the_least_noise(law):
    scales = {
        rule: LAWS[law](secret="sex", calibration=rule).fit(one()).scale_[0]
        for rule in ("transport", "exact")
    }
    assert scales["exact"] < 0.9 * scales["transport"]


def test_the_exact_rule_has_a_floor_below_which_less_noise_would_do():
    values = {"F": [0.0] * 20 + [50.0] * 20, "M": [0.0] * 20 + [50.0] * 19 + [1.0]}
    frame = pd.DataFrame(values).melt(var_name="sex", value_name="age")
    noise = RenyiPufferfishLaplace(1.05, 1, secret="sex", calibration="exact")
    noise.fit(frame)
    assert 0.05 <= noise.scale_[0] < 0.05001  # a thousandth of the range
    noise.fit(frame.replace({"age": {50.0: 200.0}}))
    assert 0.1 <= noise.scale_[0] < 0.10001  # a tenth of the gap
    sides = [
        (np.array([[0.0], [200.0]]), np.array([20, 20])),
        (np.array([[0.0], [1.0], [200.0]]), np.array([20, 1, 19])),
    ]
    for p, q in (sides, sides[::-1]):
        less = oracles.mixture_divergence(*p, *q, law="laplace", scale=0.07, alpha=1.05)
        assert less < 1


def test_the_exact_rule_column_by_column():
    noise = RenyiPufferfishLaplace(secret="sex", calibration="exact", scope="column")
    noise.fit(people(0))
    alone = RenyiPufferfishLaplace(secret="sex", calibration="exact").fit(one())
    assert noise.scale_[0] == alone.scale_[0]
    assert noise.guarantee_.rule == "exact"
    assert "for the fitted prior" in str(noise.guarantee_)


def test_the_exact_rule_refuses_what_it_cannot_serve():
    noise = RenyiPufferfishLaplace(secret="sex", calibration="exact")
    with pytest.raises(
        UnavailableRuleError, match=r"scope='column'.*calibration='transport'"
    ):
        noise.fit(people(0))
    noise.set_params(n_releases=2)
    with pytest.raises(
        UnavailableRuleError, match=r"n_releases=2.*transport.*RenyiPufferfishGaussian"
    ):
        noise.fit(one())


def test_no_noise_says_why():
    frame = pd.DataFrame(
        {
            "x": [0.0] * 50 + [1.0] * 50 + [0.0] * 55 + [1.0] * 45,
            "s": [0] * 100 + [1] * 100,
        }
    )
    noise = RenyiPufferfishGaussian(epsilon=0.5, secret="s", calibration="exact")
    with pytest.warns(ZeroNoiseWarning, match="within epsilon as it is"):
        noise.fit(frame)
    assert noise.scale_[0] == 0
    assert held_out_divergence(noise, frame)["divergence"][0] < 0.5


def test_rows_of_no_fitted_pair_are_refused():
    noise = RenyiPufferfishLaplace(secret="sex").fit(one())
    other = one().replace({"sex": {"F": "female", "M": "male"}})
    with pytest.raises(ParameterError, match=r"no pair that was fitted \(F – M\)"):
        held_out_divergence(noise, other)


def test_pairs_without_rows_are_named():
    frame = pd.DataFrame({"age": np.arange(90.0), "job": ["a", "b", "c"] * 30})
    noise = RenyiPufferfishLaplace(secret="job").fit(frame)
    fewer = frame[frame["job"] != "b"]
    with pytest.warns(
        SkippedPairWarning, match=r"nothing is said of them: a – b, b – c$"
    ):
        found = held_out_divergence(noise, fewer)
    assert found["pair"].tolist() == [("a", "c")]


def test_a_pair_that_lacks_rows_under_one_prior_is_named():
    frame = people(0).assign(region=np.tile(["n", "s"], 200))
    noise = RenyiPufferfishLaplace(secret="sex", prior="region", scope="column")
    noise.fit(frame)
    fewer = frame[(frame["region"] == "n") | (frame["sex"] == "F")]
    with pytest.warns(SkippedPairWarning, match="said of them: s: F – M$"):
        found = held_out_divergence(noise, fewer)
    assert set(found["prior"]) == {"n"}
