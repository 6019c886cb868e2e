"""Noise laws that are none of the package: the check of a law, and its mechanism."""

import json
import math
import pickle
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from skpuffer import (
    AdditiveRelease,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    compare_mechanisms,
    held_out_divergence,
    reuse_fits,
)
from skpuffer.core.calibration import RULES, Budget
from skpuffer.core.coupling import ShiftBound
from skpuffer.core.grid import grid_step
from skpuffer.core.law_checks._integrals import log_integral
from skpuffer.core.laws import LAWS
from skpuffer.exceptions import LawError, ParameterError, UnavailableRuleError
from skpuffer.laws import (
    Exponential,
    Gaussian,
    Laplace,
    NoiseLaw,
    SeededBits,
    check_law,
    discrete_gaussian,
    release_on_grid,
    rounded_laplace,
)

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_law.py"
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


@dataclass(frozen=True)
class Twin(NoiseLaw):
    """Gaussian noise of deviation factor · scale, written with nothing but the door."""

    factor: float = 1.0

    name: ClassVar[str] = "twin"
    max_order: ClassVar[float] = 1e300

    def shift_divergence(self, shifts, *, alpha, scale):
        size = self.factor * np.asarray(scale)
        return Gaussian().shift_divergence(shifts, alpha=alpha, scale=size)

    def noise_std(self, scale):
        return self.factor * np.asarray(scale, dtype=float)

    def logpdf(self, values, *, scale):
        return Gaussian().logpdf(values, scale=self.factor * scale)

    def perturb(self, values, *, scale, bits, out=None):
        def draw(size, t, bits):
            return discrete_gaussian(size, round(self.factor * t), bits)

        return release_on_grid(values, scale, draw, bits, out)


class TwinRelease(AdditiveRelease):
    law = Twin()


class LaplaceTwin(Laplace):
    """Laplace noise that goes by another name, with all that Laplace noise states."""

    name = "laplace twin"


class LaplaceTwinRelease(AdditiveRelease):
    law = LaplaceTwin()


class ScaledRelease(AdditiveRelease):
    """A law that follows from a parameter, and few of the others."""

    def __init__(
        self,
        alpha=2.0,
        epsilon=1.0,
        *,
        factor=1.0,
        secret_from_y=False,
        random_state=None,
    ):
        super().__init__(
            alpha, epsilon, secret_from_y=secret_from_y, random_state=random_state
        )
        self.factor = factor

    @property
    def law(self):
        return Twin(self.factor)


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    sex = np.repeat(["F", "M"], n // 2)
    age = rng.normal(40 + 2 * (sex == "M"), 8).round()
    return pd.DataFrame({"age": age, "pay": rng.normal(3e3 + 10 * age), "sex": sex})


quick = partial(check_law, alphas=[2, 8], shifts=[0.1, 2.0])


# --- the check: laws that are right ---------------------------------------------


@pytest.mark.parametrize(
    "law", [*(law() for law in LAWS.values()), Exponential(1), Exponential(0.2)]
)
def test_the_laws_of_the_package_pass(law):
    check = check_law(law)
    assert check.stated.shape == check.computed.shape == (6, 6)
    ratio = check.stated / check.computed
    if law.convex:
        np.testing.assert_allclose(ratio, 1, rtol=1e-6)
    else:
        assert (ratio > 1).all()
    assert 0 < check.distance < check.allowed < 0.006
    assert str(check).startswith(f"{law.name}: no failure found; at 36 orders")


def test_laws_of_ones_own_pass():
    assert (quick(Twin(2.0)).alphas == [2, 8]).all()
    quick(LaplaceTwin())


def test_the_largest_order_takes_the_place_of_those_that_a_law_lacks():
    class Low(Twin):
        max_order = 5.0

        def shift_divergence(self, shifts, *, alpha, scale):
            assert np.max(alpha) <= 5
            return super().shift_divergence(shifts, alpha=alpha, scale=scale)

    assert check_law(Low(), shifts=[1.0]).alphas.tolist() == [1.1, 1.5, 2.0, 4.0, 5.0]

    # An order below all that are looked at is no way past them.
    class Lower(Twin):
        max_order = 1.05

        def shift_divergence(self, shifts, *, alpha, scale):
            return super().shift_divergence(shifts, alpha=alpha, scale=scale) / 2

    with pytest.raises(LawError, match=r"stated at α = 1\.05"):
        check_law(Lower())


def test_a_density_that_ends_reveals_everything():
    # Uniform noise: the density vanishes where the one that is moved does not.
    class Uniform(Twin):
        def logpdf(self, values, *, scale):
            inside = np.abs(values) <= math.sqrt(3) * scale
            with np.errstate(divide="ignore"):
                return np.log(inside / (math.sqrt(12) * scale))

    with pytest.raises(LawError, match=r"that of the density is inf"):
        quick(Uniform())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alphas": [1.0]}, "alphas"),
        ({"alphas": []}, "alphas"),
        ({"shifts": [0.0]}, "shifts"),
        ({"level": 0}, "level"),
    ],
)
def test_parameters_of_the_check(given, message):
    with pytest.raises(ParameterError, match=message):
        check_law(Laplace(), **given)


# --- the check: laws that are wrong ---------------------------------------------


# Each is a right law, and what a broken one has in place of its members.


def divergence(change):
    """Change the divergence that is stated of some shifts, order and scale."""

    def shift_divergence(self, shifts, *, alpha, scale):
        right = Laplace().shift_divergence(shifts, alpha=alpha, scale=scale)
        return change(right, np.asarray(shifts), alpha, scale)

    return LaplaceTwin, {"shift_divergence": shift_divergence}


def capped(self, shifts, *, alpha, scale):
    """State of far shifts what holds of a nearer one."""
    reach = np.where(np.asarray(scale) > 0, 1.5 * np.asarray(scale), math.inf)
    near = np.minimum(np.abs(shifts), reach)
    return Laplace().shift_divergence(near, alpha=alpha, scale=scale)


def wavy(self, shifts, *, alpha, scale):
    """State an upper bound that goes up and down."""
    right = Laplace().shift_divergence
    scale = np.broadcast_to(scale, shifts.shape[1])
    columns = [
        right(shifts[:, [k]], alpha=alpha, scale=scale[k])
        * (2 + np.cos(5 * np.abs(shifts[:, k])))
        for k in range(shifts.shape[1])
    ]
    return np.sum(columns, axis=0)


def growing(self, shifts, *, alpha, scale):
    """State an upper bound that grows with the scale."""
    scale = np.broadcast_to(scale, shifts.shape[1])
    right = Laplace().shift_divergence
    columns = [
        right(shifts[:, [k]], alpha=alpha, scale=scale[k])
        * (2 + min(scale[k], 1e9) ** 2)
        for k in range(shifts.shape[1])
    ]
    return np.sum(columns, axis=0)


def density(change):
    def logpdf(self, values, *, scale):
        return change(Laplace().logpdf(values, scale=scale), np.asarray(values), scale)

    return LaplaceTwin, {"logpdf": logpdf}


def drawn(change):
    def perturb(self, values, *, scale, bits, out=None):
        right = partial(Laplace().perturb, scale=scale)
        return change(right, values, scale, bits, out)

    return LaplaceTwin, {"perturb": perturb}


def sampled(sampler):
    def perturb(self, values, *, scale, bits, out=None):
        return release_on_grid(values, scale, sampler, bits, out)

    return LaplaceTwin, {"perturb": perturb}


def members(law=LaplaceTwin, **given):
    return law, given


def columns_once(right, shifts, alpha, scale):
    several = np.ndim(alpha) == 0 and shifts.shape[1] > 1
    return right / shifts.shape[1] if several else right


def late(right, values, scale, bits, out):
    if out is not None and not np.isfinite(values).all():
        out[0] = 0.0
    return right(values, bits=bits, out=out)


def lenient(right, values, scale, bits, out):
    return right(np.nan_to_num(values, posinf=1.0, neginf=1.0), bits=bits, out=out)


def clipped(right, values, scale, bits, out):
    reach = 2.0**50 * grid_step(scale)
    if np.isfinite(values).all():
        values = np.clip(values, -reach, reach)
    return right(values, bits=bits, out=out)


def in_place(right, values, scale, bits, out):
    released = right(values, bits=bits, out=out)
    if out is None:
        values += 1
    return released


def own_randomness(right, values, scale, bits, out):
    released = right(values, bits=bits, out=out)
    released += grid_step(scale) * np.random.default_rng().integers(0, 2, len(values))
    return released


def of_the_value(right, values, scale, bits, out):
    released = right(values, bits=bits, out=out)
    released[values > scale] += grid_step(scale)
    return released


def no_out(right, values, scale, bits, out):
    return right(values, bits=bits)


def writes_first(right, values, scale, bits, out):
    if out is not None:
        finite = np.isfinite(values).all() and np.abs(values).max() < 1e9 * scale
        if finite:
            out[:] = 0.0
    return right(values, bits=bits, out=out)


def same_noise(right, values, scale, bits, out):
    return right(values, bits=SeededBits(0, 0), out=out)


def deaf_noise(size, t, bits):
    return np.zeros(size, dtype=np.int64)


def right_near_powers_of_two(size, t, bits):
    return rounded_laplace(size, t if not 1.1 < t / 2**20 < 1.9 else t // 2, bits)


def cut_off(size, t, bits):
    # A share of 0.004 is beyond the ends, less than whole shares can tell.
    return np.clip(rounded_laplace(size, t, bits), -int(5.5 * t), int(5.5 * t))


def coarse(size, t, bits):
    return (rounded_laplace(size, t, bits) + 512) // 1024 * 1024


def off_grid(right, values, scale, bits, out):
    released = right(values, bits=bits, out=out)
    released += grid_step(scale) / 4
    return released


BROKEN = {
    # What is stated against the density.
    "half": (
        divergence(lambda d, z, a, s: d / 2),
        r"stated at α = 2, shift 0.1, scale 1, is 0.0048221, and that of the density is "
        r"0.00964421: a release would reveal more than its guarantee",
    ),
    "a part in a thousand": (
        divergence(lambda d, z, a, s: d * 0.999),
        r"stated at α = 2, shift 0.1, scale 1",
    ),
    "far shifts too cheap": (
        members(shift_divergence=capped),
        r"stated at α = 2, shift 2, scale 1",
    ),
    "infinite order": (
        divergence(lambda d, z, a, s: d * (0.9 if np.ndim(a) == 0 and a > 1e9 else 1)),
        r"stated at α = ∞, shift 0.1, scale 1, is 0.09",
    ),
    "vacuous": (
        divergence(lambda d, z, a, s: d + math.inf if z.shape == (2, 1) else d),
        r"α = 2, shift 0.1, scale 1, is infinite: max_order=inf",
    ),
    "vacuous at infinity": (
        members(Twin, max_order=math.inf),
        r"α = ∞, shift 0.1, scale 1, is infinite: max_order=inf",
    ),
    # The density alone.
    "skew": (density(lambda f, z, s: f + 0.1 * (z > 0)), "not symmetric: logpdf at"),
    "not normalised": (density(lambda f, z, s: f + 1e-4), "mass 1.0001"),
    "nan": (density(lambda f, z, s: np.where(z == 0, np.nan, f)), "logpdf at 0, scale"),
    "one number": (density(lambda f, z, s: f.ravel()[0]), r"returns shape \(\)"),
    "flat": (
        density(lambda f, z, s: f if f.ndim != 2 or len(f) > 2 else f[::-1]),
        "2, 2",
    ),
    "spread": (members(noise_std=lambda self, scale: np.asarray(scale)), "noise_std"),
    "spread of several": (
        members(noise_std=lambda self, scale: math.sqrt(2) * np.max(scale)),
        r"noise_std of the scales 0 and 1",
    ),
    # Form.
    "sign": (
        divergence(lambda d, z, a, s: d * (1 + (z.sum(axis=1) > 0))),
        "sign of a shift",
    ),
    "columns": (divergence(columns_once), "it is a sum over columns"),
    "cost of no shift": (
        members(
            shift_divergence=lambda self, shifts, *, alpha, scale: (
                Laplace().shift_divergence(shifts, alpha=alpha, scale=scale)
                + 1e-3 * shifts.shape[1]
            )
        ),
        "of no shift is 0.002",
    ),
    "no shift": (divergence(lambda d, z, a, s: d + 1e-3), "over columns"),
    "no scale": (
        divergence(lambda d, z, a, s: np.where(np.isinf(d), 1e300, d)),
        "at a scale of 0",
    ),
    "extreme": (
        divergence(lambda d, z, a, s: np.where(np.max(s) > 1e200, np.nan, d)),
        "not a number for shifts",
    ),
    "shape": (divergence(lambda d, z, a, s: d[..., np.newaxis]), "3 shifts has shape"),
    "orders": (
        divergence(lambda d, z, a, s: d.T if np.ndim(a) else d),
        r"of 2 orders and 3 shifts has shape \(3, 2\)",
    ),
    "values of orders": (
        divergence(lambda d, z, a, s: d[::-1] if np.ndim(a) else d),
        "several orders is not that of each",
    ),
    "falls with the shift": (
        members(shift_divergence=wavy),
        "shift_divergence falls as the shift grows",
    ),
    "grows with the scale": (
        members(shift_divergence=growing),
        "shift_divergence grows with the scale",
    ),
    "low exponent": (
        members(
            wasserstein_exponent=lambda self, shifts, *, alpha, scale: (
                Laplace().wasserstein_exponent(shifts, alpha=alpha, scale=scale) / 4
            )
        ),
        "wasserstein_exponent at α = 2.*below the cost",
    ),
    "homogeneity": (members(homogeneity=2), r"not proportional to scale\^-2"),
    "negative homogeneity": (members(homogeneity=-1), "homogeneity is -1"),
    "concave": (
        (Exponential, {"name": "other", "convex": True}),
        "convex is True, and the exponential of",
    ),
    # Draws.
    "keeps the values": (drawn(in_place), "changes the values"),
    "none": (drawn(lambda right, values, scale, bits, out: None), "returns object"),
    "off the grid": (drawn(off_grid), "leaves the grid"),
    "own randomness": (drawn(own_randomness), "comes from `bits` alone"),
    "of the value": (drawn(of_the_value), "plus the noise of zeros"),
    "no out": (drawn(no_out), "to `out`"),
    "in place": (drawn(writes_first), "`out` is the values themselves"),
    "same noise": (drawn(same_noise), "same noise from other bits"),
    "no noise": (sampled(deaf_noise), "same noise from other bits"),
    "writes before it refuses": (drawn(late), "after it has released"),
    "releases nan": (drawn(lenient), "releases nan"),
    "releases what is far": (drawn(clipped), "releases 8589934592.0"),
    "too little noise": (
        sampled(lambda size, t, bits: rounded_laplace(size, int(0.9 * t), bits)),
        "draws at scale 1 a share of",
    ),
    "another noise": (
        sampled(lambda size, t, bits: discrete_gaussian(size, int(1.4142 * t), bits)),
        "draws at scale 1 a share of",
    ),
    "moved noise": (
        sampled(lambda size, t, bits: rounded_laplace(size, t, bits) + t // 50),
        "draws at scale 1 a share of",
    ),
    "a tail that ends": (sampled(cut_off), "0 lie beyond -5.6.*by the density it is"),
    "a grid of its own": (sampled(coarse), "a share of 0 is an odd number of 1 steps"),
    "another scale": (sampled(right_near_powers_of_two), "draws at scale 0.037"),
    # What it is.
    "no name": (members(name=""), "name is ''"),
    "nearly another's name": (
        members(name=" Gaussian"),
        "name is ' Gaussian', that of another",
    ),
    "another's name": (members(name="gaussian"), "name is 'gaussian', that of another"),
    "convexity": (members(convex="yes"), "convex is 'yes'"),
    "order": (members(max_order=1.0), "max_order is 1.0"),
    "sources": (members(sources={"w_inf": 3}), "sources has 'w_inf': 3"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_law_fails(name):
    (base, changed), message = BROKEN[name]
    law = type("Broken", (base,), changed)()
    with pytest.raises(LawError, match=f"(?s){message}"):
        quick(law)


@pytest.mark.parametrize("wrong", [-1.0, math.nan])
@pytest.mark.parametrize("member", ["shift_divergence", "wasserstein_exponent"])
@pytest.mark.parametrize("calibration", ["w_inf", "alpha_wasserstein", "transport"])
def test_a_fit_says_that_the_law_states_what_no_divergence_is(
    member, wrong, calibration
):
    def stated(self, shifts, **rest):
        return wrong * getattr(Laplace, member)(self, shifts, **rest)

    law = type("Broken", (Laplace,), {"name": "broken", member: stated})()
    noise = of_law(law)(secret="s", calibration=calibration)
    frame = pd.DataFrame({"x": np.arange(40) / 7, "s": np.arange(40) % 2})
    with pytest.raises(
        LawError, match=r"broken noise states a .* of (-|nan).* at α = 2"
    ):
        noise.fit(frame)


def of_law(law):
    return type("Own", (AdditiveRelease,), {"law": law})


def test_a_class_is_no_law():
    with pytest.raises(ParameterError, match=r"give an instance, Laplace\(\)"):
        check_law(Laplace)


def test_messages_have_plain_numbers():
    def off(self, values, *, scale, bits, out=None):
        return np.asarray(values) + np.pi

    with pytest.raises(LawError) as caught:
        check_law(type("Off", (Laplace,), {"name": "off", "perturb": off})())
    assert "np." not in str(caught.value)


def test_the_lack_of_a_member_is_named():
    with pytest.raises(LawError, match="it lacks convex, homogeneity"):
        check_law(object())
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (NoiseLaw,), {"name": "half"})()


def test_an_integral_that_halving_does_not_resolve_ends_all_the_same():
    # Of z^-0.9 from 0 to 1, which is 10: a sixteenth of it lies in the last panel.
    found = log_integral(lambda z: -0.9 * np.log(z), np.array([0.0, 1.0]))
    assert 0.9 * 10 < math.exp(found) < 10


def test_the_answer_is_always_the_same():
    assert quick(Twin()).distance == quick(Twin()).distance


# --- the mechanism ---------------------------------------------------------------


@quiet
@pytest.mark.parametrize("mechanism", [TwinRelease, ScaledRelease])
def test_check_estimator(mechanism):
    check_estimator(mechanism(secret_from_y=True), on_skip=None)


@quiet
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"alpha": 8, "epsilon": 0.3, "scope": "column"},
        {"alpha": "auto", "delta": 1e-3},
        {"calibration": "w_inf", "n_releases": 3},
        {"prior_model": "bounded", "bounds": {"age": (0, 100), "pay": (0, 1e4)}},
        {
            "prior_model": "population",
            "scope": "column",
            "bounds": {"age": (0, 100), "pay": (0, 1e4)},
        },
    ],
    ids=str,
)
def test_a_twin_is_calibrated_and_draws_as_the_law_that_it_repeats(parameters):
    df = people()
    first, second = (
        mechanism(secret="sex", random_state=3, **parameters).fit(df)
        for mechanism in (TwinRelease, RenyiPufferfishGaussian)
    )
    # Without convexity shifts are rounded up where there are many, means are not used,
    # and other couplings may be found.
    np.testing.assert_allclose(first.scale_, second.scale_, rtol=0.02)
    np.testing.assert_allclose(
        first.privacy_profile([2, 5]), second.privacy_profile([2, 5]), rtol=0.05
    )
    if (first.scale_ == second.scale_).all():
        pd.testing.assert_frame_equal(first.transform(df), second.transform(df))


@quiet
@pytest.mark.parametrize("alpha", [2.0, math.inf])
@pytest.mark.parametrize("rule", [name for name in RULES if name != "exact"])
def test_a_twin_that_states_as_much_has_the_same_scale(rule, alpha):
    df = people()
    first, second = (
        mechanism(alpha, secret="sex", calibration=rule, random_state=1).fit(df)
        for mechanism in (LaplaceTwinRelease, RenyiPufferfishLaplace)
    )
    np.testing.assert_array_equal(first.scale_, second.scale_)
    pd.testing.assert_frame_equal(first.transform(df), second.transform(df))
    assert (
        first.privacy_profile([2, math.inf]) == second.privacy_profile([2, math.inf])
    ).all()


def test_a_factor_of_the_law_is_one_of_the_scale():
    df = people()[["age", "sex"]]
    one, two = (
        ScaledRelease(factor=factor).fit(df["age"].to_frame(), secret=df["sex"])
        for factor in (1.0, 2.0)
    )
    np.testing.assert_allclose(two.scale_, one.scale_ / 2, rtol=1e-5)
    np.testing.assert_allclose(two.noise_std_, one.noise_std_, rtol=1e-5)


def test_the_guarantee_says_whose_statement_it_is():
    df = people()[["age", "sex"]]
    fitted = ScaledRelease(factor=0.5).fit(df[["age"]], secret=df["sex"])
    promise = fitted.guarantee_
    assert "Twin (factor 0.5) noise of scale" in str(promise)
    assert "by the shift divergence that this noise law states of itself" in str(
        promise
    )
    card = json.loads(promise.to_json())
    assert card["law"] == "twin"
    assert card["law_parameters"] == {"factor": 0.5}
    assert card["power"] is None
    packaged = RenyiPufferfishLaplace(secret="sex").fit(df).guarantee_
    assert packaged.law_parameters == ()
    assert "states of itself" not in str(packaged)


def test_an_exponent_of_its_own_is_named_where_a_rule_rests_on_it():
    df = people()[["age", "sex"]]
    for rule in ("alpha_wasserstein", "closed_form"):
        text = str(
            LaplaceTwinRelease(calibration=rule, secret="sex").fit(df).guarantee_
        )
        assert "by the exponent that this noise law states of itself" in text
        assert "a coupling, in the manner of " in text
    at_infinity = LaplaceTwinRelease(math.inf, calibration=rule, secret="sex").fit(df)
    assert "by the shift divergence that" in str(at_infinity.guarantee_)


def test_parameters_of_a_law_that_is_registered_are_those_released(monkeypatch):
    # As of a new law of the package: `LAWS` alone would make it with its defaults.
    monkeypatch.setitem(LAWS, "twin", Twin)
    mechanism = type("Release", (AdditiveRelease,), {"law": Twin(0.5)})
    df = people(2000)[["age", "sex"]]
    fitted = mechanism(secret="sex").fit(df)
    noise = (fitted.transform(df) - df[["age"]]).to_numpy()
    assert noise.std() == pytest.approx(fitted.noise_std_[0], rel=0.2)
    assert fitted.guarantee_.law_parameters == (("factor", 0.5),)


def test_what_fit_took_is_what_is_released():
    df = people()[["age", "sex"]]
    fitted = ScaledRelease(factor=1.0).fit(df[["age"]], secret=df["sex"])
    fitted.set_params(factor=1e-3)
    released = fitted.transform(df[["age"]])
    assert (released - df[["age"]]).to_numpy().std() > fitted.noise_std_[0] / 2

    class Mutable(LaplaceTwin):
        name = "mutable"
        size = 1.0

        def perturb(self, values, *, scale, bits, out=None):
            def draw(size, t, bits):
                return rounded_laplace(size, max(1, round(self.size * t)), bits)

            return release_on_grid(values, scale, draw, bits, out)

    class MutableRelease(AdditiveRelease):
        law = Mutable()

    fitted = MutableRelease(secret="sex").fit(df)
    MutableRelease.law.size = 1e-3
    released = fitted.transform(df)
    assert (released - df[["age"]]).to_numpy().std() > fitted.noise_std_[0] / 2


@quiet
def test_clones_pickles_and_pipelines():
    df = people()[["age", "sex"]]
    release = TwinRelease(secret="sex", random_state=4)
    pipeline = make_pipeline(clone(release), StandardScaler())
    released = release.fit(df).transform(df)
    again = pickle.loads(pickle.dumps(release.fit(df))).transform(df)
    scaled = pipeline.fit_transform(df)
    pd.testing.assert_frame_equal(released, again)
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(released))


def test_fits_are_reused():
    df = people()[["age", "sex"]]
    with reuse_fits() as reuse:
        scales = [
            TwinRelease(alpha, secret="sex").fit(df).scale_[0] for alpha in (2, 4, 8)
        ]
        other = RenyiPufferfishGaussian(2, secret="sex").fit(df).scale_[0]
    # Its readings are its own: nobody knows what a class of another package reads.
    assert (reuse.hits, reuse.misses) == (2, 2)
    assert scales[0] == pytest.approx(other, rel=1e-3)


def test_held_out_rows():
    df = people()[["age", "sex"]]
    fitted = TwinRelease(4, secret="sex").fit(df)
    found = held_out_divergence(fitted, df)["divergence"].iloc[0]
    assert found <= 1 + 1e-9


def test_orders_that_the_law_lacks():
    class Low(Twin):
        max_order = 5.0

        def shift_divergence(self, shifts, *, alpha, scale):
            assert np.max(alpha) <= 5
            return super().shift_divergence(shifts, alpha=alpha, scale=scale)

    class LowRelease(AdditiveRelease):
        law = Low()

    df = people()[["age", "sex"]]
    with pytest.raises(ParameterError, match="alpha=6 is out of reach of twin noise"):
        LowRelease(6, secret="sex").fit(df)
    fitted = LowRelease(4, secret="sex").fit(df)
    profile = fitted.privacy_profile([4, 6])
    assert profile[0] <= 1
    assert math.isinf(profile[1])
    # The order of the least noise for this target is above 5.
    fitted = LowRelease("auto", 1, delta=1e-6, secret="sex")
    assert TwinRelease("auto", 3, delta=1e-6, secret="sex").fit(df).alpha_ > 5
    assert 4 < fitted.set_params(epsilon=3).fit(df).alpha_ <= 5
    with pytest.raises(ParameterError, match="nothing to compare"):
        compare_mechanisms(df, secret="sex", laws=[Low()], alpha=6)


# --- what is refused ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (None, r"Release\.law is None"),
        (Twin, r"is the class Twin: give an instance, Twin\(\)"),
        ("laplace", "it lacks convex, homogeneity, logpdf"),
        (type("Sharper", (Gaussian,), {})(), "a Sharper named 'gaussian'"),
        (type("Sharper", (Gaussian,), {"name": "Laplace "})(), "named 'Laplace '"),
        (type("Nameless", (Twin,), {"name": None})(), "law.name=None must be a text"),
        (type("Codes", (Twin,), {"name": "categorical"})(), "named 'categorical'"),
    ],
)
def test_what_is_no_law_is_refused(law, message):
    mechanism = type("Release", (AdditiveRelease,), {} if law is None else {"law": law})
    with pytest.raises(ParameterError, match=message):
        mechanism(secret="sex").fit(people()[["age", "sex"]])


def test_a_name_of_the_package_opens_no_certificate():
    # It would be calibrated with the divergence of Gaussian mixtures.
    class Sharper(Gaussian):
        def perturb(self, values, *, scale, bits, out=None):
            return super().perturb(values, scale=scale / 4, bits=bits, out=out)

    mechanism = type("Release", (AdditiveRelease,), {"law": Sharper()})
    for parameters in (
        {"calibration": "exact"},
        {"prior_model": "gaussian"},
        {"calibration": "exact", "n_releases": 2},
    ):
        with pytest.raises(ParameterError, match="named 'gaussian'"):
            mechanism(secret="sex", **parameters).fit(people()[["age", "sex"]])
    with pytest.raises(ParameterError, match="named 'gaussian'"):
        compare_mechanisms(people(), secret="sex", laws=[Sharper()])


def test_attributes_put_upon_a_law_of_the_package_make_it_another():
    law = Laplace()
    law.shift_divergence = lambda shifts, *, alpha, scale: np.zeros(len(shifts))
    mechanism = type("Release", (AdditiveRelease,), {"law": law})
    with pytest.raises(ParameterError, match="a Laplace named 'laplace'"):
        mechanism(secret="sex").fit(people()[["age", "sex"]])


def test_memory_that_a_law_did_not_write_is_not_released():
    (base, changed), _ = BROKEN["no out"]
    law = type("Forgetful", (base,), changed)()
    fitted = type("Release", (AdditiveRelease,), {"law": law})(secret="sex")
    fitted.fit(people()[["age", "sex"]])
    with pytest.raises(LawError, match="does not write a release on the grid"):
        fitted.transform(people()[["age"]])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"calibration": "exact"}, UnavailableRuleError, "under twin noise"),
        (
            {"calibration": "closed_form"},
            UnavailableRuleError,
            "twin noise states none",
        ),
        (
            {"calibration": "alpha_wasserstein"},
            UnavailableRuleError,
            "homogeneity is None",
        ),
        ({"prior_model": "gaussian"}, ParameterError, "not for twin noise"),
    ],
)
def test_what_a_law_does_not_have(parameters, error, message):
    with pytest.raises(error, match=message):
        TwinRelease(secret="sex", **parameters).fit(people()[["age", "sex"]])


def test_the_core_refuses_an_exponent_that_is_not_stated():
    witness = ShiftBound(np.array([[1.0], [2.0]]), np.array([0.5, 0.5]))
    for name, law, message in (
        ("alpha_wasserstein", Twin(), "no exponent for the α-Wasserstein"),
        ("closed_form", Twin(), "twin noise states none"),
    ):
        with pytest.raises(ValueError, match=message):
            RULES[name]().unit_scale(witness, law, Budget(2.0, 1.0), np.ones(1))


# --- tables and pictures -----------------------------------------------------------


def test_laws_stand_in_a_comparison():
    df = people()[["age", "sex"]]
    laws = ["gaussian", Twin(), Twin(2.0)]
    table = compare_mechanisms(df, secret="sex", laws=laws, scopes=["joint"])
    assert table.groupby("law", sort=False)["calibration"].agg(list).to_dict() == {
        "gaussian": list(RULES),
        "twin (factor 1)": ["w_inf", "transport"],
        "twin (factor 2)": ["w_inf", "transport"],
    }
    noise = table[table["calibration"] == "transport"]["noise_std"].to_numpy()
    np.testing.assert_allclose(noise, noise[0], rtol=1e-3)


def test_laws_stand_in_pictures():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from skpuffer.displays import NoiseDisplay, ReleaseDisplay

    df = people()[["age", "sex"]]
    shown = NoiseDisplay.from_frame(
        df, secret="sex", alphas=[2, 4], epsilons=[1], laws=["laplace", Twin(2.0)]
    )
    labels = [text.get_text() for text in shown.legend_.get_texts()]
    assert {"Laplace", "Twin (factor 2)"} < set(labels)
    release = ReleaseDisplay.from_estimator(TwinRelease(secret="sex").fit(df), df)
    assert release.title.startswith("Twin (factor 1) noise, scale = ")
    pyplot.close("all")


# --- the law of the example ----------------------------------------------------------


@pytest.fixture(scope="module")
def example():
    """Return the names of the example's law, without the runs that follow it."""
    source = EXAMPLE.read_text(encoding="utf-8")
    names = {"__name__": "own_law"}
    head, mark, _ = source.partition("# ``convex`` is left at False")
    assert mark
    exec(compile(head, str(EXAMPLE), "exec"), names)
    return names


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.0])
def test_the_sum_passes(example, ratio):
    law = example["LaplacePlusGaussian"](ratio)
    check = check_law(law)
    assert (check.stated < 1.5 * check.computed).all()
    # Never worse than either part alone.
    for part, size in ((Laplace(), 1.0), (Gaussian(), ratio)):
        alone = [
            part.shift_divergence(check.shifts[:, None], alpha=a, scale=size)
            for a in check.alphas
        ]
        assert (check.stated <= np.array(alone) * (1 + 1e-5)).all()


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.7])
def test_the_sum_keeps_its_statement_on_a_grid(example, monkeypatch, ratio, bits):
    # On a grid so coarse that its step decides: all probabilities, summed.
    monkeypatch.setitem(example, "GRID_BITS", bits)
    law, t = example["LaplacePlusGaussian"](ratio), 2**bits
    s = math.ceil(ratio * t)
    k = np.arange(-60 * t, 60 * t + 1)
    laplace = np.exp(-np.abs(k) / t) * math.sinh(1 / (2 * t))
    laplace[k == 0] = -math.expm1(-1 / (2 * t))
    gaussian = np.exp(-(k**2) / (2 * s**2))
    mass = np.convolve(laplace, gaussian / gaussian.sum())
    assert mass.sum() == pytest.approx(1, rel=1e-12)
    mass = mass[90 * t : -90 * t]
    for m in (1, 2, 3, 2 * t, 5 * t):
        for alpha in (1.2, 2.0, 4.0, 12.0):
            first, second = np.log(mass[m:]), np.log(mass[:-m])
            terms = alpha * first + (1 - alpha) * second
            true = np.log(np.exp(terms).sum()) / (alpha - 1)
            stated = law.shift_divergence([[m / t]], alpha=alpha, scale=1.0)[0]
            assert true <= stated * (1 + 1e-9), (m, alpha)


def test_the_sum_draws_no_less_gaussian_noise_than_it_states(example, monkeypatch):
    asked = []
    monkeypatch.setitem(example, "rounded_laplace", lambda size, t, bits: 0)
    monkeypatch.setitem(
        example, "discrete_gaussian", lambda size, s, bits: asked.append(s) or 0
    )
    for ratio in (0.3, 1.0, 2.0):
        for t in (2**20, 2**20 + 7, 2**21 - 1):
            example["LaplacePlusGaussian"](ratio)._draw(1, t, None)
            assert 0 <= asked[-1] - ratio * t < 1
            assert asked[-1] <= 2**22
    with pytest.raises(ValueError, match=r"ratio must be from 0\.01 to 2, got 3"):
        example["LaplacePlusGaussian"](3)
