"""What counts of an event say about the divergence of two distributions.

An event that was fixed beforehand holds for a of n_p draws of P and b of n_q draws of
Q. The event probabilities (P, Q) that such counts do not contradict bound every
divergence from below, at every δ and every order at once. Counts in, bounds in nats
out; numpy and scipy alone.

Scores. z_P = Φ⁻¹(1 − Pr(Bin(n_p, P) ≥ a)) and z_Q = Φ⁻¹(1 − Pr(Bin(n_q, Q) ≤ b)) are
large where P is too small, or Q too large, for the counts. They are independent and, at
the true (P, Q), each is stochastically below a standard normal, since exact p-values
are stochastically above a uniform. So a set of scores that holds, with a point, all
points below it holds the true point at least as often as it does a pair of independent
normals. Which such set is free to choose before the count. A half plane of z_P⁺ and
z_Q⁺ is one; the one made here is the best for the counts to be expected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtr, ndtri

from skpuffer.core.event_divergence import Divergence
from skpuffer.core.prior import FloatArray

# Upper ends of the cells of scores that a set is made of. A score above the last is
# never accepted: 3e-12 of the error.
_SCORES = np.concatenate([np.linspace(-2.5, 4.5, 281), np.linspace(4.6, 7.0, 25)])
# Share of the error for which scores far out are given up on either axis: other targets
# than the one a set is made for would pay dearly for a long, thin tail.
_OUTER_SHARE = 0.01
# What round-off may add to a sum of 93,636 cells, one after the other: each step half a
# unit of a number below 1.
_ROUND_OFF = 2e-11
_LEAST_BETA = 1e-9
# A rate expected to be 0 or 1 is this many draws away from it.
_LEAST_COUNT = 0.5


@dataclass(frozen=True, eq=False)
class AcceptanceSet:
    """A set of scores (z_P, z_Q) of probability at least 1 − β under two normals.

    Attributes
    ----------
    cells : ndarray of shape (m,)
        It holds z_P of the i-th cell together with z_Q of the first ``cells[i]`` cells;
        non-increasing, so that it holds all points below its own.
    """

    cells: NDArray[np.intp]

    @classmethod
    def for_rates(
        cls,
        target: Divergence,
        rates: tuple[float, float],
        sizes: tuple[int, int],
        beta: float,
    ) -> AcceptanceSet:
        """Return the set that gives the largest bound if counts come as expected.

        The least divergence over a set is at the upper corner of one of its cells,
        since it falls along both axes. So, taking in cells in the falling order of the
        divergence at that corner until β is left, no set as probable has a larger least
        divergence.

        Parameters
        ----------
        target : Divergence
            What is to be bounded; the set is valid for every other too.
        rates : (float, float)
            Probabilities of the event to be expected, from other draws.
        sizes : (int, int)
            n_p and n_q, at least 1.
        beta : float
            Error in (0, 1).

        Raises
        ------
        ValueError
            `beta` is out of range, or below 1e-9.
        """
        if not _LEAST_BETA <= beta < 1:
            raise ValueError(f"beta={beta!r} must be at least {_LEAST_BETA:g}, below 1")
        mass = np.diff(ndtr(_SCORES), prepend=0.0)
        # Between 0 and n, so that no probability is beyond doubt.
        hits = [
            min(max(rate * n, _LEAST_COUNT), n - _LEAST_COUNT)
            for rate, n in zip(rates, sizes, strict=True)
        ]
        p = least_p(hits[0], sizes[0], _SCORES)
        q = largest_q(hits[1], sizes[1], _SCORES)
        values = target.of_event(p[:, None], q[None, :])
        # Falling along both axes, whatever round-off did.
        values = np.minimum.accumulate(np.minimum.accumulate(values, axis=0), axis=1)
        outer = np.searchsorted(_SCORES, -ndtri(_OUTER_SHARE * beta))
        values[outer:, :] = values[:, outer:] = -np.inf
        order = np.argsort(-values, axis=None, kind="stable")
        covered = np.cumsum(np.outer(mass, mass).ravel()[order])
        last = int(np.searchsorted(covered, 1 - beta + _ROUND_OFF))
        least = values.ravel()[order[last]]
        # Ties are taken in as a whole: their order plays no part.
        return cls((values >= least).sum(axis=1))


@dataclass(frozen=True, eq=False)
class CountingRegion:
    """The event probabilities (P, Q) that counts do not contradict, all at once.

    Those whose scores lie in the acceptance set: the true ones are among them with
    probability at least 1 − β.

    Attributes
    ----------
    hits_p, n_p : int
        Draws of P for which the event held, of all draws of P.
    hits_q, n_q : int
        The same for Q.
    accepted : AcceptanceSet
        Fixed before the count, as was the event.

    Raises
    ------
    ValueError
        A count is not between 0 and the number of draws.

    Examples
    --------
    Randomised response says yes with probabilities .73 and .27, log-ratio 1:

    >>> expected = AcceptanceSet.for_rates(Divergence(), (0.73, 0.27), (100, 100), 0.05)
    >>> region = CountingRegion(73, 100, 27, 100, expected)
    >>> round(region.lower(Divergence()), 2), round(region.lower(Divergence(0.1)), 2)
    (0.69, 0.5)
    >>> round(region.lower(Divergence(alpha=2.0)), 2)
    0.33

    Counts that say nothing:

    >>> CountingRegion(0, 100, 0, 100, expected).lower(Divergence())
    0.0
    """

    hits_p: int
    n_p: int
    hits_q: int
    n_q: int
    accepted: AcceptanceSet

    def __post_init__(self) -> None:
        for hits, n in ((self.hits_p, self.n_p), (self.hits_q, self.n_q)):
            if not (n >= 1 and 0 <= hits <= n):
                raise ValueError(
                    f"an event held for {hits} of {n} draws: counts lie between 0 and "
                    "the number of draws, which is at least 1"
                )

    @property
    def corners(self) -> tuple[FloatArray, FloatArray]:
        """(P, Q) at the upper corners of the set, shapes (k,).

        Every point of the region has P at least, and Q at most, that of a corner: the
        scores fall in P and grow in Q. So every divergence is least at a corner.
        """
        cells = self.accepted.cells
        row = np.flatnonzero(cells)
        p = least_p(self.hits_p, self.n_p, _SCORES)
        q = largest_q(self.hits_q, self.n_q, _SCORES)
        return p[row], q[cells[row] - 1]

    def lower(self, target: Divergence) -> float:
        """Return what the divergence is at least, but with probability β.

        Returns
        -------
        float
            Nats; 0 where nothing is refuted.
        """
        return max(0.0, float(target.of_event(*self.corners).min()))


def least_p(hits: float, n: int, scores: FloatArray) -> FloatArray:
    """Return the least P whose score for `hits` of n draws is at most each score."""
    if hits == 0:
        return np.zeros_like(scores)
    return np.asarray(betaincinv(hits, n - hits + 1, ndtr(-scores)))


def largest_q(hits: float, n: int, scores: FloatArray) -> FloatArray:
    """Return the largest Q whose score for `hits` of n draws is at most each score."""
    if hits == n:
        return np.ones_like(scores)
    return np.asarray(betainccinv(hits + 1, n - hits, ndtr(-scores)))
