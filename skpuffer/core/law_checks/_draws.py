"""Whether what is drawn is noise of the stated density, on the grid, and nothing else."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from skpuffer.core.bits import SeededBits
from skpuffer.core.grid import GRID_BITS, grid_step, round_half_up
from skpuffer.core.law_checks._error import LawError
from skpuffer.core.law_checks._integrals import log_panels, panel_edges
from skpuffer.core.laws import NoiseLaw
from skpuffer.core.prior import FloatArray

_DRAWS = 2**18
_SEED = 20_240_817
# What quadrature and half a step of the grid may make of the mass of a tail.
_CLOSE = 1e-8


def check_release(law: NoiseLaw, scale: float) -> None:
    """Check that values are rounded to the grid, and that noise knows only its bits."""
    step = grid_step(scale)
    rng = np.random.default_rng(_SEED)
    values = rng.normal(0, 50 * scale, 1000)
    bits = [SeededBits(_SEED, call) for call in (0, 0, 0, 0, 0, 1)]
    before = values.copy()
    released = np.asarray(law.perturb(values, scale=scale, bits=bits[0]))
    if not np.array_equal(values, before):
        raise LawError("perturb changes the values that it is given")
    if released.shape != values.shape or released.dtype != np.float64:
        raise LawError(
            f"perturb of {len(values)} values returns {released.dtype} of shape "
            f"{released.shape}"
        )
    off = released / step != np.rint(released / step)
    if off.any():
        raise LawError(
            f"perturb leaves the grid: {float(released[off][0])!r} is no multiple of "
            f"{step:.17g}, "
            f"the step at scale {scale:g} (see release_on_grid)"
        )
    if not np.array_equal(released, law.perturb(values, scale=scale, bits=bits[1])):
        raise LawError(
            "perturb draws other noise from the same bits: randomness comes from `bits` "
            "alone"
        )
    rounded = round_half_up(values, step, np.empty(values.shape)) * step
    noise = law.perturb(np.zeros(len(values)), scale=scale, bits=bits[2])
    if not np.array_equal(released, rounded + noise):
        raise LawError(
            "perturb of values is not their rounding to the grid plus the noise of zeros "
            "from the same bits"
        )
    table = np.zeros((len(values), 2))
    table[:, 0] = values
    column, out = table[:, 0], np.empty(len(values))
    given = law.perturb(column, scale=scale, bits=bits[3], out=out)
    if given is not out or not np.array_equal(out, released):
        raise LawError("perturb does not write its release to `out`")
    law.perturb(column, scale=scale, bits=bits[4], out=column)
    if not np.array_equal(column, released):
        raise LawError("perturb is wrong where `out` is the values themselves")
    if np.array_equal(released, law.perturb(values, scale=scale, bits=bits[5])):
        raise LawError("perturb draws the same noise from other bits")


def check_refusals(law: NoiseLaw, scale: float) -> None:
    """Check that values that no noise covers are refused, and nothing is written."""
    far = 2.0**53 * grid_step(scale)
    for wrong in (math.nan, math.inf, -math.inf, far):
        values = np.array([0.0, wrong, 1.0])
        out = np.full(3, 7.0)
        try:
            law.perturb(values, scale=scale, bits=SeededBits(_SEED, 2), out=out)
        except ValueError:
            if (out != 7.0).any():
                raise LawError(
                    f"perturb refuses {wrong!r} after it has released other values"
                ) from None
            continue
        raise LawError(
            f"perturb releases {wrong!r}: values that are not finite, or beyond the "
            "reach of the grid, raise ValueError (see release_on_grid)"
        )


def check_draws(law: NoiseLaw, scale: float, level: float) -> tuple[float, float]:
    """Check the distribution of the noise against the density, tails and digits included.

    A law that draws what it states is refused with probability `level` at most, a third
    of it for each part, had the bits not been fixed: they are, so that a law always has
    the same answer.

    Returns
    -------
    found, allowed : float
        The largest difference of the two distribution functions.
    """
    bits = SeededBits(_SEED, 3)
    noise = np.sort(law.perturb(np.zeros(_DRAWS), scale=scale, bits=bits))
    places, cumulative = _distribution(law, scale)
    shares = np.searchsorted(noise, places, side="right") / _DRAWS
    gaps = np.abs(shares - cumulative)
    allowed = _allowed(level / 3)
    at = int(gaps.argmax())
    if gaps[at] > allowed:
        raise LawError(
            f"of {_DRAWS} draws at scale {scale:g} a share of {shares[at]:.6g} is at "
            f"most {places[at]:.4g}, and by the density it is {cumulative[at]:.6g}; a "
            f"difference of {allowed:.2g} is allowed at this level"
        )
    _check_tails(noise, places, cumulative, scale, level / 3)
    _check_digits(noise, scale, level / 3)
    return float(gaps[at]), allowed


def _allowed(level: float) -> float:
    """Return how far a share of all draws may be off [Massart 1990].

    The inequality of Dvoretzky, Kiefer and Wolfowitz for a distribution function, and
    that of Hoeffding for one share, with room for the mass of half a step.
    """
    return math.sqrt(math.log(2 / level) / (2 * _DRAWS)) + 1e-5


def _check_tails(
    noise: FloatArray,
    places: FloatArray,
    cumulative: FloatArray,
    scale: float,
    level: float,
) -> None:
    """Check how many draws lie beyond each place: far out a difference is small.

    By the binomial law of each count, the level shared by all of them.
    """
    right = len(places) // 2
    counts = np.concatenate(
        [
            np.searchsorted(noise, places[:right], side="right"),
            _DRAWS - np.searchsorted(noise, places[right:], side="right"),
        ]
    )
    tails = np.concatenate([cumulative[:right], 1 - cumulative[right:]])
    least, most = (np.clip(tails + by, 0, 1) for by in (-_CLOSE, _CLOSE))
    chances = np.minimum(
        binom.cdf(counts, _DRAWS, least), binom.sf(counts - 1, _DRAWS, most)
    )
    at = int(chances.argmin())
    if chances[at] < level / (2 * len(places)):
        raise LawError(
            f"of {_DRAWS} draws at scale {scale:g}, {counts[at]} lie beyond "
            f"{places[at]:.4g}, and by the density it is {tails[at] * _DRAWS:.6g}"
        )


def _check_digits(noise: FloatArray, scale: float, level: float) -> None:
    """Check that noise is on every step: where it is not, digits of values show.

    In two's complement all digits of k and of -1 - k differ, and these are about
    equally likely under a symmetric law that is smooth over a step.
    """
    steps = noise[np.abs(noise) < 2.0**52 * grid_step(scale)] / grid_step(scale)
    whole = steps.astype(np.int64)
    allowed = _allowed(level / GRID_BITS)
    for digit in range(GRID_BITS):
        share = np.count_nonzero(whole >> digit & 1) / _DRAWS
        if abs(share - 0.5) > allowed + 1 - len(whole) / _DRAWS:
            raise LawError(
                f"of {_DRAWS} draws at scale {scale:g} a share of {share:.6g} is an odd "
                f"number of {2**digit} steps of the grid, not a half: digits of values "
                "would show"
            )


def _distribution(law: NoiseLaw, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return the distribution function half a step right of edges, on either side."""
    edges = panel_edges(scale)
    low, high = edges[:-1], edges[1:]

    def log_f(z: FloatArray) -> FloatArray:
        return law.logpdf(z, scale=scale)

    mass = np.exp(log_panels(log_f, low, high))
    up = 0.5 + np.cumsum(mass)
    kept = high >= 16 * grid_step(scale)
    places = np.concatenate([-high[kept][::-1], high[kept]])
    return places, np.concatenate([1 - up[kept][::-1], up[kept]])
