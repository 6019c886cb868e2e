"""Whether a noise law does what it states: by quadrature, on arrays, and on draws.

Contract: numbers are compared and nothing is proven. A check that fails raises
`LawError`, which says where and by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from skpuffer.core.grid import scale_to_grid
from skpuffer.core.law_checks._density import check_density, check_divergence
from skpuffer.core.law_checks._draws import check_draws, check_refusals, check_release
from skpuffer.core.law_checks._error import LawError
from skpuffer.core.law_checks._shape import check_arrays, check_exponent, check_form
from skpuffer.core.laws import NoiseLaw, bears_a_taken_name
from skpuffer.core.prior import FloatArray

__all__ = ["ALPHAS", "SHIFTS", "LawCheck", "LawError", "check_stated", "checked"]

ALPHAS = (1.1, 1.5, 2.0, 4.0, 16.0, 64.0)
# In units of the scale.
SHIFTS = (0.01, 0.1, 0.5, 1.0, 2.0, 6.0)
# Where the form of what is stated is looked at, and fewer points by quadrature; all on
# a grid of their own, at either end of an octave and within it.
_SCALES = tuple(scale_to_grid(scale) for scale in (1.0, 1.999, 0.037, 8123.4))


@dataclass(frozen=True, eq=False)
class LawCheck:
    """What a law states, beside what was computed of its density.

    Attributes
    ----------
    name : str
    alphas : ndarray of shape (a,)
        Finite orders.
    shifts : ndarray of shape (m,)
        In units of the scale, at scale 1.
    stated, computed : ndarray of shape (a, m)
        The divergence that the law states, and that of its density by quadrature.
    distance, allowed : float
        The largest difference of the distribution functions of draws and density, and
        what was allowed.
    """

    name: str
    alphas: FloatArray
    shifts: FloatArray
    stated: FloatArray = field(repr=False)
    computed: FloatArray = field(repr=False)
    distance: float
    allowed: float

    def __str__(self) -> str:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.stated / self.computed
        ratio = ratio[np.isfinite(ratio)]
        return (
            f"{self.name}: no failure found; at {self.stated.size} orders and shifts the "
            f"stated divergence is {ratio.min():.4g} to {ratio.max():.4g} times that of "
            f"the density; draws are within {self.distance:.2g} of its distribution "
            f"({self.allowed:.2g} allowed)"
        )


def checked(
    law: NoiseLaw, alphas: Sequence[float], shifts: Sequence[float], level: float
) -> LawCheck:
    """Look at a law from all sides; `alphas` are finite and the law has them."""
    _check_members(law)
    one, *others = _SCALES
    for scale in _SCALES:
        check_density(law, scale)
        check_arrays(law, alphas, scale)
    stated, computed = check_divergence(law, alphas, np.array(shifts) * one, one)
    for scale in others:
        check_divergence(law, alphas[:2], np.array(shifts[-3:]) * scale, scale)
    for scale in _SCALES[:2]:
        check_form(law, alphas, scale)
        check_exponent(law, alphas, scale)
    for scale in _SCALES:
        check_release(law, scale)
        check_refusals(law, scale)
    share = level / len(_SCALES)
    distances = [check_draws(law, scale, share) for scale in _SCALES]
    return LawCheck(
        name=law.name,
        alphas=np.array(alphas),
        shifts=np.array(shifts),
        stated=stated,
        computed=computed,
        distance=max(found for found, _ in distances),
        allowed=distances[0][1],
    )


def check_stated(law: NoiseLaw, alpha: float) -> None:
    """Look at a few numbers that a law states, before a calibration relies on them.

    Raises
    ------
    LawError
        One is negative, or not a number.
    """
    shifts = np.array(SHIFTS)[:, np.newaxis]
    stated: dict[str, Callable[..., FloatArray]] = {"divergence": law.shift_divergence}
    if law.homogeneity is not None and alpha < np.inf:
        stated["wasserstein_exponent"] = law.wasserstein_exponent
    for what, function in stated.items():
        found = np.asarray(function(shifts, alpha=alpha, scale=1.0), dtype=np.float64)
        for shift, value in zip(SHIFTS, found.ravel().tolist(), strict=False):
            if not value >= 0:
                raise LawError(
                    f"{law.name} noise states a {what} of {value:g} at α = {alpha:g} "
                    f"for a shift of {shift:g} at scale 1, and it is a number from 0 "
                    "upwards: correct the law (skpuffer.laws.check_law looks at it all)"
                )


def _check_members(law: NoiseLaw) -> None:
    if not (isinstance(law.name, str) and law.name):
        raise LawError(f"name is {law.name!r}: a text that says what the noise is")
    if bears_a_taken_name(law):
        raise LawError(
            f"name is {law.name!r}, that of another law: what is proven of that one may "
            "not hold for this"
        )
    if not isinstance(law.convex, bool):
        raise LawError(f"convex is {law.convex!r}: True or False")
    if not law.max_order > 1:
        raise LawError(f"max_order is {law.max_order!r}: an order above 1, or math.inf")
    for rule, source in law.sources.items():
        if not (isinstance(rule, str) and isinstance(source, str)):
            raise LawError(
                f"sources has {rule!r}: {source!r}: a text for a rule's name"
            )
