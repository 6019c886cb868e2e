"""The grid that values are released on: its step, and rounding to it.

A released value is a multiple of a power of two some 2^-20 of the noise scale, so that
no digit of the data survives beside the noise. Imports the standard library and numpy.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

GRID_BITS = 20
_MAX_INDEX = 2.0**52  # n and n + k stay exact in float64
# A quotient by any step is off by up to two parts in 2^53: below this, by less than a
# half, so that a multiple is its own rounding.
_MAX_MULTIPLE = 2.0**50


def grid_step(scale: float) -> float:
    """Return the grid's step for a noise scale: 2^(floor(log2 scale) - 20).

    Raises ValueError if `scale` is not between 2^-1000 and 2^900.

    >>> grid_step(1.0) == grid_step(1.9) == 2.0**-20
    True
    """
    if not 2.0**-1000 <= scale <= 2.0**900:  # nan fails too
        raise ValueError(
            f"A noise scale must be between 2**-1000 and 2**900, got {float(scale)!r}; "
            "rescale the data."
        )
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - GRID_BITS)


def grid_steps(scales: Floats) -> Floats:
    """Return the step of each scale's grid; zero for a scale of zero.

    >>> grid_steps(np.array([0.0, 1.5])) * 2.0**20
    array([0., 1.])
    """
    return np.array([grid_step(b) if b > 0 else 0.0 for b in scales.tolist()])


def scale_to_grid(scale: float) -> float:
    """Round a noise scale up (the safe side) to a multiple of its grid step.

    The result exceeds `scale` by less than 2^-20 of it, and is `t` steps of its own
    grid, t an integer in [2^20, 2^21).

    >>> scale_to_grid(1.5), scale_to_grid(3.3) >= 3.3
    (1.5, True)
    """
    step = grid_step(scale)
    return float(math.ceil(scale / step) * step)


def round_to_grid(values: Floats, step: float) -> Ints:
    """Return the index of the grid point nearest to each value, halves upwards.

    `values` is float64 of any shape, `step` a power of two from `grid_step`. Raises
    ValueError if a value is not finite or farther than 2^52 steps from 0.

    >>> round_to_grid(np.array([0.24, 0.25, -0.25, -0.3]), 0.5)
    array([ 0,  1,  0, -1])
    >>> round_to_grid(np.array([]), 0.5)
    array([], dtype=int64)
    """
    check_grid_range(values, step)
    return round_half_up(values, step, np.empty(values.shape)).astype(np.int64)


def check_grid_range(values: Floats, step: float) -> None:
    """Refuse values that are not finite or more than 2^52 steps from 0.

    Raises ValueError, which says how many there are and what helps.

    >>> check_grid_range(np.array([1e9]), 2.0**-20)
    """
    limit = _MAX_INDEX * step
    if values.size == 0 or (values.min() >= -limit and values.max() <= limit):
        return  # nan fails both
    strange = values.size - np.count_nonzero(np.isfinite(values))
    if strange:
        raise ValueError(
            f"{strange} of {values.size} values are not finite: drop or impute them."
        )
    far = np.count_nonzero(np.abs(values) > limit)
    raise ValueError(
        f"{far} of {values.size} values are beyond {limit:.3g}, the reach of the noise "
        "grid: centre or rescale the data, or clip outliers by bounds."
    )


def round_to_multiples(values: Floats, step: float) -> Floats:
    """Round values to the nearest multiples of a step, halves upwards.

    What is rounded once stays as it is.

    Parameters
    ----------
    values : ndarray of any shape, float64
        Finite.
    step : float
        Positive; any, not only a power of two.

    Returns
    -------
    ndarray of the same shape

    Raises
    ------
    ValueError
        A value is 2^50 steps or more from 0, where quotients lose their fractions.

    Examples
    --------
    >>> round_to_multiples(np.array([12.4, 12.5, -12.5, -12.6]), 5.0)
    array([ 10.,  15., -10., -15.])
    >>> round_to_multiples(np.array([1e20]), 0.1)
    Traceback (most recent call last):
    ...
    ValueError: 1 of 1 values are 2**50 steps of 0.1 or more from 0, ...
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        quotient: Floats = np.asarray(values / step)
        whole = np.floor(quotient)
        # Adding a half instead would round: 0.5 - 2^-54 plus 0.5 is 1.
        whole += quotient - whole >= 0.5
        # A zero has no sign.
        rounded: Floats = whole * step + 0.0
    near = np.abs(quotient) < _MAX_MULTIPLE
    near &= np.isfinite(rounded)
    if not near.all():
        raise ValueError(
            f"{values.size - np.count_nonzero(near)} of {values.size} values are 2**50 "
            f"steps of {step:g} or more from 0, or round to infinity: take another "
            "step, or centre the data"
        )
    return rounded


def round_half_up(values: Floats, step: float, scaled: Floats) -> Floats:
    """Return floor + (fraction >= 1/2) of values / step, in `scaled`.

    That is floor((r + 1) / 2) with r the floor of twice the quotient, a whole number up
    to 2^53: r + 1 is exact, but for r = 2^53, where it stays what it is, and halving
    gives 2^52 as it should. The quotient by a power of two is exact, or underflows to
    something of its sign far below 1/2 (to zero if at all: the floor is then -1 or 0,
    both of which give 0).
    """
    with np.errstate(under="ignore"):
        np.multiply(values, 2.0 / step, out=scaled)
    np.floor(scaled, out=scaled)
    scaled += 1.0
    scaled *= 0.5
    np.floor(scaled, out=scaled)
    return scaled
