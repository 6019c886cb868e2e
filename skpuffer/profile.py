"""The privacy profile: what one release reveals at every Rényi order.

A fit keeps its promise at one order; the scale that it found bounds all others
too. Bounds at a grid of orders are joined by chords: log ∫ p^α q^{1−α} =
(α−1) D_α(p‖q) is convex in α and zero at α = 1 (Hölder's inequality; van Erven and
Harremoës 2014, Corollary 2), so that a chord between two orders lies above it, and so
does a line of slope D_∞ beyond the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from skpuffer._checks import orders as checked
from skpuffer.core.conversions import renyi_to_delta, renyi_to_epsilon
from skpuffer.core.prior import FloatArray

# Bounds go up to so many binary digits: a profile is for reading, and moments to all
# digits would all but give away the distribution of the shifts.
_BITS = 10
# Orders tried between two neighbours when a profile is converted.
_BETWEEN = 8
# Orders of a profile: α − 1 from 10^-2 to 10^3, so many to a power of ten, fewer where
# many pairs have to be looked at.
_LOW, _HIGH = -2, 3
_DENSITY = ((8, 16), (64, 8), (math.inf, 4))


@lru_cache
def profile_orders(n_pairs: int) -> tuple[float, ...]:
    """Return the finite orders at which a release of so many pairs is bounded.

    Examples
    --------
    >>> len(profile_orders(1)), len(profile_orders(1000))
    (81, 21)
    """
    density = next(density for most, density in _DENSITY if n_pairs <= most)
    count = (_HIGH - _LOW) * density + 1
    return tuple((1 + np.logspace(_LOW, _HIGH, count)).tolist())


@dataclass(frozen=True)
class PrivacyProfile:
    """Upper bounds on the Rényi divergence of one release, at every order.

    The bounds hold together, for the prior that the fit's guarantee names.

    Attributes
    ----------
    orders : tuple of float
        Ascending finite orders above 1.
    divergences : tuple of float
        Bounds at them, nats; infinite from some order on where none is known.
    limit : float
        Bound at α = ∞; infinite where there is none.

    Examples
    --------
    >>> profile = PrivacyProfile((2.0, 3.0), (0.5, 0.75), math.inf)
    >>> profile.divergence([1.5, 2.5, 3.5]).round(3)
    array([0.5  , 0.667,   inf])
    >>> round(profile.to_epsilon(0.01), 3)
    2.098
    """

    orders: tuple[float, ...]
    divergences: tuple[float, ...]
    limit: float

    @classmethod
    def of(
        cls,
        divergence: Callable[[float], float],
        orders: Sequence[float],
        *,
        promised: tuple[float, float],
        limit: float,
    ) -> PrivacyProfile:
        """Take the bounds at some orders, and draw the others down to their chords.

        Parameters
        ----------
        divergence : callable
            A proven upper bound at a finite order, nats.
        orders : sequence of float
            Finite, above 1.
        promised : (alpha, epsilon)
            A bound known already; it is kept as it is.
        limit : float
            Bound at α = ∞.
        """
        bounds = _up(np.array(list(map(divergence, orders))))
        known = dict(zip(orders, bounds.tolist(), strict=True))
        alpha, epsilon = promised
        limit = float(_up(np.array(limit)))
        if math.isinf(alpha):
            limit = min(limit, epsilon)
        else:
            known[alpha] = min(known.get(alpha, math.inf), epsilon)
        places = sorted(known)
        values = [min(known[place], limit) for place in places]
        lowered = _lowered(places, values, limit)
        return cls(tuple(places), tuple(lowered), limit)

    def divergence(self, alphas: ArrayLike) -> FloatArray:
        """Bound D_α, in both directions, at each order.

        Parameters
        ----------
        alphas : array-like
            Orders in (1, ∞].

        Returns
        -------
        ndarray
            Nats, of the shape of `alphas`.

        Raises
        ------
        ParameterError
            An order is not above 1.
        """
        wanted = checked("alphas", alphas)
        flat = [self._at(alpha) for alpha in wanted.ravel().tolist()]
        return np.array(flat).reshape(wanted.shape)

    def _at(self, alpha: float) -> float:
        orders, bounds = self.orders, self.divergences
        if math.isinf(alpha):
            return self.limit
        after = int(np.searchsorted(orders, alpha))
        if after == 0:
            # The chord from α = 1, where (α−1) D_α is zero.
            return bounds[0]
        left, below = orders[after - 1], bounds[after - 1]
        if after == len(orders):
            share = (left - 1) / (alpha - 1)
            bound = (share * below + (1 - share) * self.limit) * (1 + 2.0**-50)
            return min(bound, self.limit)
        if alpha == orders[after]:
            return bounds[after]
        return _chord(alpha, (left, below), (orders[after], bounds[after]))

    def to_epsilon(self, delta: float) -> float:
        """Return the least ε′ of an (ε′, δ) promise that any order proves.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            At least 0, perhaps infinite.

        Raises
        ------
        ValueError
            `delta` is not in [0, 1).
        """
        return min(
            renyi_to_epsilon(alpha, bound, delta) for alpha, bound in self._candidates()
        )

    def to_delta(self, epsilon: float) -> float:
        """Return the least δ of an (ε′, δ) promise that any order proves.

        Parameters
        ----------
        epsilon : float
            ε′ ≥ 0.

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        ValueError
            `epsilon` is negative or not a number.
        """
        return min(
            renyi_to_delta(alpha, bound, epsilon) for alpha, bound in self._candidates()
        )

    def _candidates(self) -> list[tuple[float, float]]:
        """Orders and bounds among which a conversion looks for its best."""
        logs = np.log(np.asarray(self.orders) - 1)
        steps = np.arange(_BETWEEN) / _BETWEEN
        between = logs[:-1, None] + np.diff(logs)[:, None] * steps
        orders = {*self.orders, *(1 + np.exp(between.ravel())).tolist(), math.inf}
        return [(alpha, self._at(alpha)) for alpha in sorted(orders)]


def _up(values: FloatArray) -> FloatArray:
    """Round up to few binary digits."""
    mantissa, exponent = np.frexp(values)
    up: FloatArray = np.ldexp(np.ceil(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    return up


def _chord(
    alpha: float, left: tuple[float, float], right: tuple[float, float]
) -> float:
    """Return the bound at `alpha` from two orders around it."""
    if math.isinf(right[1]):
        return math.inf
    span = right[0] - left[0]
    near, far = (right[0] - alpha) / span, (alpha - left[0]) / span
    moment = near * (left[0] - 1) * left[1] + far * (right[0] - 1) * right[1]
    # Bounds rise with the order; and no round-off below the chord.
    return min(moment / (alpha - 1) * (1 + 2.0**-50), right[1])


def _lowered(orders: list[float], bounds: list[float], limit: float) -> list[float]:
    """Replace each bound by that of the lowest chord between any two of them.

    The largest of several proven bounds need not be convex in α by itself.
    """
    hull: list[tuple[float, float]] = [(1.0, 0.0)]
    rises: list[float] = []
    for alpha, bound in zip(orders, bounds, strict=True):
        moment = (alpha - 1) * bound
        if math.isinf(moment):
            continue
        while True:
            before, below = hull[-1]
            rise = (moment - below) / (alpha - before)
            if not rises or rises[-1] < rise:
                break
            hull.pop()
            rises.pop()
        hull.append((alpha, moment))
        rises.append(rise)
    while len(rises) > 1 and rises[-1] > limit:
        hull.pop()
        rises.pop()
    last, moment = hull[-1]
    places, moments = np.array(hull).T
    alphas = np.array(orders)
    chords = np.interp(alphas, places, moments)
    beyond = alphas > last
    chords[beyond] = moment + (alphas[beyond] - last) * limit
    chords /= alphas - 1
    chords *= 1 + 2.0**-50
    lowered: list[float] = np.minimum(bounds, chords).tolist()
    return lowered
