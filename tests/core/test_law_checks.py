"""The parts of the check of a law, each by a law that is wrong there alone."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from skpuffer.core import law_checks
from skpuffer.core.bits import SeededBits
from skpuffer.core.law_checks import LawCheck, LawError, _draws, check_stated, checked
from skpuffer.core.law_checks._density import check_density, check_divergence
from skpuffer.core.law_checks._draws import (
    _check_digits,
    _check_tails,
    _distribution,
    check_draws,
    check_release,
)
from skpuffer.core.law_checks._integrals import (
    _ratio,
    largest_log_ratio,
    log_integral,
)
from skpuffer.core.law_checks._shape import check_form
from skpuffer.core.laws import Gaussian, Laplace
from skpuffer.core.sampling import release_on_grid, rounded_laplace

DRAWS = 2**18


def other(**members):
    """Laplace noise of another name, with members of its own."""
    return type("Other", (Laplace,), {"name": "other", **members})()


def stating(change):
    """Laplace noise whose stated divergence is changed, given the shifts in scales."""

    def shift_divergence(self, shifts, *, alpha, scale):
        right = Laplace().shift_divergence(shifts, alpha=alpha, scale=scale)
        with np.errstate(over="ignore"):
            places = np.abs(shifts).max(axis=1) / np.max(scale)
        return change(right, places, alpha, scale)

    return other(shift_divergence=shift_divergence)


def dense(change):
    """Laplace noise whose density is changed, given the places in scales."""

    def logpdf(self, values, *, scale):
        values = np.asarray(values)
        return change(Laplace().logpdf(values, scale=scale), values / scale)

    return other(logpdf=logpdf)


def drawing(sampler):
    def perturb(self, values, *, scale, bits, out=None):
        def draw(size, t, bits):
            return sampler(size, t, bits, scale)

        return release_on_grid(values, scale, draw, bits, out)

    return other(perturb=perturb)


# --- what is looked at, and what is told of it ---


def test_where_it_is_looked():
    assert law_checks.ALPHAS == (1.1, 1.5, 2.0, 4.0, 16.0, 64.0)
    assert law_checks.SHIFTS == (0.01, 0.1, 0.5, 1.0, 2.0, 6.0)
    # Both ends of an octave, which the steps of the grid follow, and what is within.
    places = [math.frexp(scale)[0] * 2 for scale in law_checks._SCALES]
    assert min(places) == 1.0
    assert 1.998 < max(places) < 2.0
    assert any(1.1 < place < 1.9 for place in places)


@pytest.mark.parametrize("scale", law_checks._SCALES)
def test_the_divergence_is_looked_at_at_every_scale(scale):
    law = stating(lambda d, z, a, s: d * (1 - 0.01 * (np.ndim(s) == 0 and s == scale)))
    where = rf"stated at α = 2, shift {0.1 * scale:g}, scale {scale:g}, is"
    with pytest.raises(LawError, match=where.replace(".", r"\.")):
        checked(law, [2.0, 8.0], [0.1, 2.0], 1e-6)


def test_a_check_tells_the_largest_distance_and_what_was_allowed(monkeypatch):
    asked = {}

    def watched(law, scale, level):
        asked[scale] = level
        return [2e-4, 3e-4, 1e-4, 2e-4][len(asked) - 1], level

    monkeypatch.setattr(law_checks, "check_draws", watched)
    told = checked(Laplace(), [2.0], [1.0], 1e-6)
    assert list(asked) == list(law_checks._SCALES)
    # Together no more than what was given.
    assert sum(asked.values()) == pytest.approx(1e-6)
    assert told.distance == 3e-4
    assert told.allowed == pytest.approx(2.5e-7)


def test_a_check_prints_the_ratios():
    stated, computed = np.array([[1.0, 6.0, 5.0]]), np.array([[2.0, 4.0, 0.0]])
    told = LawCheck("x", np.ones(1), np.ones(3), stated, computed, 0.001, 0.005)
    assert "at 3 orders and shifts the stated divergence is 0.5 to 1.5 times" in str(
        told
    )


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"name": 3}, "name is 3"),
        ({"name": None}, "name is None"),
        ({"name": ""}, "name is ''"),
        ({"sources": {"w_inf": 3}}, "sources has 'w_inf': 3"),
        ({"sources": {3: "a theorem"}}, "sources has 3: 'a theorem'"),
    ],
)
def test_what_a_law_is_called_and_rests_on_is_text(members, message):
    with pytest.raises(LawError, match=message):
        checked(other(**members), [2.0], [1.0], 1e-6)


# --- what is stated, before a calibration ---


def test_the_nearest_shift_is_looked_at_before_a_fit():
    law = stating(lambda d, z, a, s: np.where(z < 0.015, -1.0, d))
    with pytest.raises(LawError, match=r"for a shift of 0\.01 at scale 1"):
        check_stated(law, 2.0)


def test_nothing_is_a_divergence_too():
    # Of noise so wide that no digit of the divergence is left.
    check_stated(stating(lambda d, z, a, s: 0 * d), 2.0)


def test_no_exponent_is_asked_for_at_infinity():
    # There is none: what a law would state of it is no fault.
    def wasserstein_exponent(self, shifts, *, alpha, scale):
        return np.full(len(shifts), -1.0 if math.isinf(alpha) else 1.0)

    check_stated(other(wasserstein_exponent=wasserstein_exponent), math.inf)


# --- the density ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, z: np.where(z == 0, np.inf, f), "logpdf at 0, scale 1, is nan or"),
        (lambda f, z: f - 1e-4, r"mass 0\.9999"),
        (lambda f, z: f + 1e-4, r"mass 1\.0001"),
        # On one side, and at one of the places that are looked at.
        (
            lambda f, z: f + 0.1 * ((z > 0.5) & (z < 1.5)),
            r"not symmetric: logpdf at 0\.84",
        ),
    ],
)
def test_densities_that_are_none(change, message):
    with pytest.raises(LawError, match=message):
        check_density(dense(change), 1.0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda scale: math.sqrt(2) * scale[:, np.newaxis],
        lambda scale: math.sqrt(2) * scale[1:],
        lambda scale: math.sqrt(2) * scale + (scale == 0),
        lambda scale: 2 * scale,
    ],
)
def test_spreads_of_several_scales_that_are_none(wrong):
    def noise_std(self, scale):
        return wrong(scale) if np.ndim(scale) else Laplace().noise_std(scale)

    with pytest.raises(LawError, match="noise_std of the scales 0 and 3"):
        check_density(other(noise_std=noise_std), 3.0)


def test_rounding_of_a_density_far_out_is_no_asymmetry():
    # Of a logarithm of -1e13 in the tails, the digits beyond the sixth.
    check_density(dense(lambda f, z: f * (1 - 3e-7 * (z > 0))), 1.0)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 64.0])
def test_a_divergence_is_refused_if_it_is_too_low_by_a_digit_of_seven(alpha):
    shifts = np.array([0.5, 2.0])
    check_divergence(Laplace(), [alpha], shifts, 1.0)
    law = stating(lambda d, z, a, s: d * (1 - 1e-6 * (z > 1)))
    with pytest.raises(LawError, match=f"at α = {alpha:g}, shift 2"):
        check_divergence(law, [alpha], shifts, 1.0)


def test_where_there_is_no_density_nothing_is_revealed():
    # Uniform on [0, 1/2] against uniform on [0, 1]: the integral is 2^α / 2.
    def half(z):
        with np.errstate(divide="ignore"):
            return np.log(2.0 * (z < 0.5))

    def whole(z):
        with np.errstate(divide="ignore"):
            return np.log(1.0 * (z < 1))

    for alpha in (1.5, 3.0):
        edges = np.array([0.0, 0.5, 1.0, 2.0])
        found = log_integral(_ratio(half, whole, alpha), edges)
        assert found == pytest.approx((alpha - 1) * math.log(2), rel=1e-12)
        assert log_integral(_ratio(whole, half, alpha), edges) == math.inf


@pytest.mark.parametrize("spread", [0.05, 0.01, 0.002])
def test_a_peak_that_a_node_makes_too_much_of(spread):
    # At a node it counts for all about it, in halves of the panel for less.
    for node in np.polynomial.legendre.leggauss(16)[0][8:15]:
        peak = stats.norm((1 + node) / 2, spread)
        found = log_integral(peak.logpdf, np.array([0.0, 1.0]))
        assert math.exp(found) == pytest.approx(peak.cdf(1) - peak.cdf(0), rel=1e-9)


@pytest.mark.parametrize("shift", [0.75, 1.5, 1.9])
def test_the_largest_ratio_may_lie_between_the_two_centres(shift):
    # A hollow about zero, and tails that hardly fall.
    def hollow(values, *, scale):
        distance = np.abs(values) / scale
        return -3.0 * (distance < 0.5) - 0.1 * distance

    law, z = SimpleNamespace(logpdf=hollow), np.linspace(-20, 20, 400_001)
    ratios = hollow(z, scale=1.0) - hollow(z - shift, scale=1.0)
    found = largest_log_ratio(law, shift=2 * shift, scale=2.0)
    assert ratios.max() - 0.1 < found <= ratios.max() + 1e-6
    assert 0 < z[ratios.argmax()] < shift


# --- the form ---


@pytest.mark.parametrize("place", [1e-5, 0.01, 0.7, 5.9, 40.0, 900.0])
def test_costs_rise_over_nine_orders_of_magnitude(place):
    law = stating(lambda d, z, a, s: np.where(z > place, 0.9 * d, d))
    with pytest.raises(LawError, match="shift_divergence falls as the shift grows"):
        check_form(law, [2.0], 1.0)


@pytest.mark.parametrize("size", [0.002, 0.9, 3.0, 800.0])
def test_costs_fall_over_six_orders_of_magnitude_of_the_scale(size):
    law = stating(lambda d, z, a, s: d * (1 + 9 * (np.max(s) > size)))
    with pytest.raises(LawError, match="shift_divergence grows with the scale"):
        check_form(law, [2.0], 1.0)


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e4, 1e8, 1e170])
def test_convexity_is_not_denied_to_small_costs(size):
    # Gaussian noise of many scales, and of few; of the most, no digit is left.
    class Wide(Gaussian):
        name = "wide"

        def shift_divergence(self, shifts, *, alpha, scale):
            wide = size * np.asarray(scale)
            return super().shift_divergence(shifts, alpha=alpha, scale=wide)

    check_form(Wide(), [1.1, 2.0, 64.0], 1.0)


# --- draws ---


def test_the_distance_is_that_of_kolmogorov_and_smirnov():
    found, allowed = check_draws(Laplace(), 1.0, 1e-3)
    bits = SeededBits(20_240_817, 3)
    noise = Laplace().perturb(np.zeros(DRAWS), scale=1.0, bits=bits)
    # At some places alone.
    exact = stats.kstest(noise, stats.laplace.cdf).statistic
    assert 0.7 * exact < found <= exact
    # Massart's bound: 2 exp(-2 n x^2) is the level, of which each part has a third.
    level = 2 * math.exp(-2 * DRAWS * (allowed - 1e-5) ** 2)
    assert level == pytest.approx(1e-3 / 3)


def test_the_level_is_shared_by_all_that_is_looked_at(monkeypatch):
    levels = []
    for name in ("_check_tails", "_check_digits"):
        monkeypatch.setattr(_draws, name, lambda *rest: levels.append(rest[-1]))
    _, allowed = check_draws(Laplace(), 1.0, 0.03)
    levels.append(2 * math.exp(-2 * DRAWS * (allowed - 1e-5) ** 2))
    assert levels == pytest.approx([0.01] * 3)


def test_one_value_off_the_grid_is_enough():
    def perturb(self, values, *, scale, bits, out=None):
        released = Laplace().perturb(values, scale=scale, bits=bits, out=out)
        released[17] += 2.0**-21
        return released

    with pytest.raises(LawError, match="leaves the grid"):
        check_release(other(perturb=perturb), 1.0)


@pytest.mark.parametrize("side", [-1, 1])
def test_a_tail_that_ends_is_seen_on_either_side(side):
    def cut_off(size, t, bits, scale):
        return side * np.minimum(rounded_laplace(size, t, bits), int(5.5 * t))

    beyond = r"\b0 lie beyond " + ("-5.6" if side < 0 else "5.6")
    with pytest.raises(LawError, match=beyond):
        check_draws(drawing(cut_off), 1.0, 1e-6)


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("more", [True, False])
def test_counts_beyond_a_place_are_binomial(side, more):
    # Draws at the quantiles themselves, but for some more or less of them far out.
    places, cumulative = _distribution(Laplace(), 1.0)
    ranks = (np.arange(DRAWS) + 0.5) / DRAWS
    noise, level = stats.laplace.ppf(ranks), 1e-6
    _check_tails(noise, places, cumulative, 1.0, level)
    place = places[np.searchsorted(places, 6.0)]
    expected = DRAWS * stats.laplace.sf(place)
    law = stats.binom(DRAWS, stats.laplace.sf(place))
    share = level / (2 * len(places))
    # The first count that is too unlikely, and that before it.
    if more:
        counts = np.arange(int(expected), 20 * int(expected) + 99)
        first = int(counts[law.sf(counts - 1) < share][0])
        just = first - 1
    else:
        counts = np.arange(int(expected) + 1)
        first = int(counts[law.cdf(counts) < share][-1])
        just = first + 1
    ahead = int(np.count_nonzero(noise > place))
    for count, refused in ((first, True), (just, False)):
        moved = noise.copy()
        if count > ahead:
            moved[-count:-ahead] = np.nextafter(place, np.inf)
        else:
            # What is at a place is not above it.
            moved[-ahead : len(moved) - count] = (
                place if side > 0 else np.nextafter(place, 0)
            )
        moved = np.sort(side * moved)
        if refused:
            with pytest.raises(LawError, match=f"{count} lie beyond"):
                _check_tails(moved, places, cumulative, 1.0, level)
        else:
            _check_tails(moved, places, cumulative, 1.0, level)


@pytest.mark.parametrize("digit", [0, 7, 19])
def test_digits_may_be_off_by_what_chance_makes_of_them(digit):
    # Hoeffding's bound for twenty shares, each with 2 exp(-2 n x^2).
    level = 1e-6
    most = math.sqrt(math.log(2 * 20 / level) / (2 * DRAWS))
    for factor, refused in ((0.98, False), (1.02, True), (-0.98, False), (-1.02, True)):
        ones = round(DRAWS * (0.5 + factor * most))
        # All other digits are as often ones as not.
        steps = np.resize([0, 2**20 - 1 - 2**digit], DRAWS)
        steps += 2**digit * (np.arange(DRAWS) < ones)
        noise = steps * 2.0**-20
        if refused:
            with pytest.raises(LawError, match=f"number of {2**digit} steps"):
                _check_digits(noise, 1.0, level)
        else:
            _check_digits(noise, 1.0, level)
