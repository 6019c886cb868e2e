"""What counts of an event say about the divergence of two distributions.

An event that was fixed beforehand holds for a of n_p draws of P and b of n_q draws of
Q. The event probabilities (P, Q) that such counts do not contradict bound every
divergence from below, at every δ and every order at once. Several rounds, each with an
event that was chosen from the rows of the rounds before it, share one region and its
whole error. Counts in, bounds in nats out; numpy and scipy alone.

Scores. z_P = Φ⁻¹(1 − Pr(Bin(n_p, P) ≥ a)) and z_Q = Φ⁻¹(1 − Pr(Bin(n_q, Q) ≤ b)) are
large where P is too small, or Q too large, for the counts. They are independent and, at
the true (P, Q), each is stochastically below a standard normal, since exact p-values
are stochastically above a uniform. So a set of scores that holds, with a point, all
points below it holds the true point at least as often as a pair of normals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtr, ndtri

from skpuffer.core.event_divergence import Divergence
from skpuffer.core.prior import FloatArray

# Upper ends of the cells of scores from which acceptance sets are built. A score above
# the last is never accepted: 7e-6 of the error.
_SCORES = np.linspace(-2.5, 4.5, 281)
# A round's sets are this far apart, in z-scores, about the level of the region.
_LEVEL_STEP = 0.02
_LEVELS = np.arange(-150, 151)
# Of a level, that round-off in sums of cells may take away.
_ROUND_OFF = 1e-12
# A rate expected to be 0 or 1 is this many draws away from it.
_LEAST_COUNT = 0.5


@dataclass(frozen=True, eq=False)
class Shape:
    """A nested family of sets of scores (z_P, z_Q), fixed before an event is counted.

    Attributes
    ----------
    beta : float
        The error that the family is made for.
    cells : ndarray of shape (L, m)
        Set l holds z_P of the i-th cell together with z_Q of the first ``cells[l, i]``
        cells. Its probability under two normals is at least Φ(t_l), where the levels
        t_l are evenly spaced about Φ⁻¹(1 − β).

    Notes
    -----
    Any family of the kind is valid; the one built here is the best for its
    expectation. The least divergence of a set is at the upper corner of one of its
    cells, since it falls along both axes; so, taking in cells in the falling order of
    the divergence at that corner, every set has the largest least divergence of all
    sets that are as probable.
    """

    beta: float
    cells: NDArray[np.intp]

    @classmethod
    def for_rates(
        cls,
        target: Divergence,
        rates: tuple[float, float],
        sizes: tuple[int, int],
        beta: float,
    ) -> Shape:
        """Return the family that is best if an event is counted as expected.

        Parameters
        ----------
        target : Divergence
            What is to be bounded.
        rates : (float, float)
            Expected probabilities of the event, from other draws.
        sizes : (int, int)
            n_p and n_q.
        beta : float
            Error in (0, 1) of the region that the round will be part of.
        """
        hits = [
            min(max(rate * n, _LEAST_COUNT), n - _LEAST_COUNT) if n > 1 else n / 2
            for rate, n in zip(rates, sizes, strict=True)
        ]
        p = least_p(hits[0], sizes[0], _SCORES)
        q = largest_q(hits[1], sizes[1], _SCORES)
        values = target.of_event(p[:, None], q[None, :])
        # Falling along both axes, whatever round-off did: a set must be lower-closed.
        values = np.minimum.accumulate(np.minimum.accumulate(values, axis=0), axis=1)
        mass = np.diff(ndtr(_SCORES), prepend=0.0)
        order = np.argsort(-values, axis=None, kind="stable")
        covered = np.cumsum(np.outer(mass, mass).ravel()[order])
        wanted = 1 - _tails(beta)
        last = np.searchsorted(covered, wanted + _ROUND_OFF)
        reachable = last < covered.size
        least = values.ravel()[order[np.minimum(last, covered.size - 1)]]
        # Whole ties, so that the order among them plays no part.
        cells = np.stack(
            [np.searchsorted(-row, -least, side="right") for row in values], axis=1
        )
        # Where the cells do not suffice, everything is accepted.
        cells[~reachable] = len(_SCORES) + 1
        return cls(beta, cells)

    def least(self, values: FloatArray) -> FloatArray:
        """Return the least of `values` at the upper corners of each set's cells.

        Parameters
        ----------
        values : ndarray of shape (m, m)
            Falling along both axes.

        Returns
        -------
        ndarray of shape (L,)
            Non-increasing; ∞ for an empty set, −∞ for one that holds everything.
        """
        padded = np.full((len(values), len(values) + 2), -np.inf)
        padded[:, 1:-1] = values
        padded[:, 0] = np.inf
        rows = np.arange(len(values))[None, :]
        found: FloatArray = padded[rows, self.cells].min(axis=1)
        return np.minimum.accumulate(found)


@dataclass(frozen=True, eq=False)
class EventCount:
    """How often an event held in one round.

    Attributes
    ----------
    hits_p, n_p : int
        Draws of P for which it held, of all draws of P.
    hits_q, n_q : int
        The same for Q.
    shape : Shape
        Fixed before the count.

    Raises
    ------
    ValueError
        A count is not between 0 and the number of draws.
    """

    hits_p: int
    n_p: int
    hits_q: int
    n_q: int
    shape: Shape

    def __post_init__(self) -> None:
        for hits, n in ((self.hits_p, self.n_p), (self.hits_q, self.n_q)):
            if not (n >= 1 and 0 <= hits <= n):
                raise ValueError(
                    f"an event held for {hits} of {n} draws: counts lie between 0 and "
                    "the number of draws, which is at least 1"
                )

    def level_bounds(self, target: Divergence) -> FloatArray:
        """Return the least divergence that each set of the family leaves open."""
        p = least_p(self.hits_p, self.n_p, _SCORES)
        q = largest_q(self.hits_q, self.n_q, _SCORES)
        return self.shape.least(target.of_event(p[:, None], q[None, :]))


@dataclass(frozen=True, eq=False)
class CountingRegion:
    """All event probabilities that the counts of some rounds do not contradict.

    A round's point lies outside the J lowest sets of its family. Given the rounds
    before it, J is stochastically below its law under normal scores, so the sum over
    rounds is below a sum of independent such J; the region is where that sum is less
    than R, the least number with Pr(ΣJ ≥ R) ≤ β. With one round it is the set at
    Φ⁻¹(1 − β).

    Attributes
    ----------
    counts : sequence of EventCount
        One a round. Each event, and its shape, is independent of the draws on which it
        is counted; it may depend on those of the rounds before.
    beta : float
        Probability that the region misses the true (P, Q) of the rounds.

    Raises
    ------
    ValueError
        No counts, or shapes made for another error.

    Examples
    --------
    Randomised response says yes with probabilities .73 and .27, log-ratio 1:

    >>> shape = Shape.for_rates(Divergence(), (0.73, 0.27), (100, 100), beta=0.05)
    >>> region = CountingRegion([EventCount(73, 100, 27, 100, shape)], beta=0.05)
    >>> round(region.lower(Divergence()), 2), round(region.lower(Divergence(0.1)), 2)
    (0.69, 0.47)
    >>> round(region.lower(Divergence(alpha=2.0)), 2)
    0.29

    Counts that say nothing:

    >>> CountingRegion([EventCount(0, 100, 0, 100, shape)], 0.05).lower(Divergence())
    0.0
    """

    counts: Sequence[EventCount]
    beta: float

    def __post_init__(self) -> None:
        if not self.counts:
            raise ValueError("a counting region needs the counts of at least one round")
        if any(count.shape.beta != self.beta for count in self.counts):
            raise ValueError(f"beta={self.beta!r} is not the error the shapes are for")

    def lower(self, target: Divergence) -> float:
        """Return what the divergence is at least, but with probability `beta`.

        The same region serves every target: all these bounds hold at once.

        Returns
        -------
        float
            Nats; 0 where nothing is refuted.
        """
        # A value is refuted if ΣJ ≥ R wherever no round's divergence exceeds it: if R
        # sets, of all rounds together, leave only larger ones open.
        levels = np.concatenate([count.level_bounds(target) for count in self.counts])
        needed = _sets_needed(self.beta, len(self.counts))
        if needed > len(levels):
            return 0.0
        found = np.partition(levels, len(levels) - needed)[len(levels) - needed]
        return max(0.0, float(found))


def least_p(hits: float, n: int, scores: FloatArray) -> FloatArray:
    """Return the least P at which `hits` or more of n draws have so large a score."""
    if hits == 0:
        return np.zeros_like(scores)
    return np.asarray(betaincinv(hits, n - hits + 1, ndtr(-scores)))


def largest_q(hits: float, n: int, scores: FloatArray) -> FloatArray:
    """Return the largest Q at which `hits` or fewer of n draws have so large a score."""
    if hits == n:
        return np.ones_like(scores)
    return np.asarray(betainccinv(hits + 1, n - hits, ndtr(-scores)))


def _tails(beta: float) -> FloatArray:
    """Return the errors of the sets of a family, falling; β is one of them."""
    return np.asarray(ndtr(-(_LEVEL_STEP * _LEVELS - ndtri(beta))))


def _sets_needed(beta: float, n_rounds: int) -> int:
    """Return R: Pr(J_1 + … + J_K ≥ R) ≤ β where Pr(J ≥ l + 1) is the l-th error."""
    tails = np.concatenate([[1.0], _tails(beta), [0.0]])
    law = -np.diff(tails)
    total = law
    for _ in range(n_rounds - 1):
        total = np.convolve(total, law)
    above = np.cumsum(total[::-1])[::-1]
    return int(np.flatnonzero(above <= beta * (1 + 1e-9))[0])
