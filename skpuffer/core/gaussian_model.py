"""The scale under a Gaussian model of one column, in closed form up to a root.

Pure. Between two Gaussians the divergence of the releases is known, so that nothing is
lost to a coupling; but the promise is about the model, not about the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skpuffer.core.calibration import Budget, Calibration, CalibrationError, solve_scale
from skpuffer.core.grid import scale_to_grid
from skpuffer.core.prior import Conditional, FloatArray

NAME = "gaussian_model"
SOURCE = "Rényi divergence of two Gaussians, Gil, Alajaji and Linder 2013"


def gaussian_divergence(
    mean_gap: float, variance: float, other: float, *, alpha: float
) -> float:
    """Rényi divergence of N(m, variance) from N(m + mean_gap, other).

    With v = α·other − (α−1)·variance it is α·mean_gap² / 2v +
    (log v − (1−α) log variance − α log other) / (2(1−α)), and infinite unless v > 0
    [Gil, Alajaji, Linder 2013].

    Parameters
    ----------
    mean_gap : float
    variance, other : float
        Non-negative; a variance of zero is a point mass.
    alpha : float
        Finite order above 1.

    Returns
    -------
    float
        In nats; infinite where the ratio of the densities has no moment.

    Examples
    --------
    >>> gaussian_divergence(1.0, 1.0, 1.0, alpha=2.0)
    1.0
    >>> gaussian_divergence(0.0, 2.0, 1.0, alpha=2.0)
    inf
    >>> gaussian_divergence(0.0, 0.0, 0.0, alpha=2.0)
    0.0
    """
    if variance == 0.0 or other == 0.0:
        return 0.0 if mean_gap == 0.0 and variance == other else math.inf
    # In units of the first variance, so that nearly equal ones keep their digits.
    excess = (other - variance) / variance
    if not alpha * excess > -1.0:
        return math.inf
    shape = alpha * math.log1p(excess) - math.log1p(alpha * excess)
    gap = alpha * mean_gap * mean_gap / (variance * (1 + alpha * excess))
    return (gap + shape / (alpha - 1)) / 2


class Moments(NamedTuple):
    """The gap of the means and the variances of a pair, in units of about its span.

    The unit is a power of two. Without it a variance may be no float where the scale
    is one, or a subnormal one with few digits, which means too little noise.
    """

    unit: float
    gap: float
    variance: float
    other: float


@dataclass(frozen=True, eq=False)
class GaussianPair:
    """Two conditionals of one column, of which only two moments count."""

    first: Conditional
    second: Conditional

    @cached_property
    def moments(self) -> Moments:
        """The gap of the means and the two variances."""
        return _moments(self.first, self.second)


def gaussian_scale(pairs: Sequence[GaussianPair], budget: Budget) -> Calibration:
    """Find the smallest σ that keeps the promise if a column is Gaussian.

    Each conditional is replaced by the Gaussian with its mean and its variance (the
    mean squared deviation, the maximum of the likelihood). Noise of scale σ adds σ² to
    both variances of a pair. More noise never raises the divergence, since it is
    noise added to a release, so that the condition holds from the root upwards. Of k
    copies of one row the mean is sufficient, and its noise has scale σ / √k: σ is √k
    times that of one copy.

    Parameters
    ----------
    pairs : sequence of GaussianPair
    budget : Budget
        Finite order.

    Returns
    -------
    Calibration
        On the release grid; zero where the two Gaussians are close enough without
        noise. The effect of rounding the data to the grid, some 2^-20 of σ, is
        neglected: rounded data are not Gaussian.

    Raises
    ------
    CalibrationError
        The condition could not be confirmed at the scale.

    Examples
    --------
    >>> import numpy as np
    >>> first, second = (
    ...     Conditional.from_rows([[m - 1.0], [m + 1.0]]) for m in (0.0, 3.0)
    ... )
    >>> gaussian_scale([GaussianPair(first, second)], Budget(2.0, 1.0)).scale.round(6)
    array([2.828428])
    """
    moments = [pair.moments for pair in pairs]
    roots = [_root(item, budget) for item in moments]
    worst = max(range(len(roots)), key=roots.__getitem__)
    copies = math.sqrt(budget.n_releases)
    scale = 0.0
    if roots[worst] > 0:
        scale = scale_to_grid(roots[worst] * copies * (1 + 2**-50))
    if not all(
        _larger_direction(item, scale / copies, budget.alpha) <= budget.epsilon
        for item in moments
    ):
        raise CalibrationError("the Gaussian condition fails at the scale found")

    def divergence(alpha: float) -> float:
        return max(_larger_direction(item, scale / copies, alpha) for item in moments)

    return Calibration(np.array([scale]), worst, divergence)


def _root(moments: Moments, budget: Budget) -> float:
    def worse(scale: float) -> float:
        return _larger_direction(moments, scale * moments.unit, budget.alpha)

    if worse(0.0) <= budget.epsilon:
        return 0.0
    start = math.sqrt(moments.gap * moments.gap + moments.variance + moments.other)
    return solve_scale(worse, budget.epsilon, start=start) * moments.unit


def _larger_direction(moments: Moments, scale: float, alpha: float) -> float:
    """Return the larger divergence of two releases with Gaussian noise."""
    unit, gap, variance, other = moments
    # In units of the noise where that is larger, so that no square overflows.
    part = min(1.0, unit / _power_of_two(scale)) if scale > 0 else 1.0
    noise = (scale / unit * part) ** 2
    gap, variance, other = gap * part, variance * part**2, other * part**2
    return max(
        gaussian_divergence(gap, variance + noise, other + noise, alpha=alpha),
        gaussian_divergence(gap, other + noise, variance + noise, alpha=alpha),
    )


def _power_of_two(value: float) -> float:
    """Return the largest power of two that is at most a positive value."""
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def _moments(first: Conditional, second: Conditional) -> Moments:
    """Return the gap of the means and the two variances."""
    # From one value of the data, so that a large offset costs no digits.
    origin = float(first.support[0, 0])
    moved: list[FloatArray] = [c.support[:, 0] - origin for c in (first, second)]
    span = max(float(np.abs(values).max()) for values in moved)
    unit = _power_of_two(span) if span > 0 else 1.0
    means, variances = [], []
    for conditional, values in zip((first, second), moved, strict=True):
        share, values = conditional.probabilities, values / unit
        mean = float((share * values).sum())
        means.append(mean)
        variances.append(float((share * (values - mean) ** 2).sum()))
    return Moments(unit, abs(means[1] - means[0]), *variances)
