"""The release of a category: P(y | x) ∝ exp(−d(x, y) / θ) in whole units of 2^−62.

Contract. The probabilities are integers that sum to 2^62 in each row, fixed once; what
is calibrated is their divergence and what is drawn are they, by comparing integers: no
float takes part in a draw, no word is reduced modulo anything. Every output has at
least one unit. Divergences are upper bounds: each carries its own round-off.

D_∞(x ‖ x′) ≤ d(x, x′) / θ, as one would expect of an exponential mechanism, is *false*
in general, for the normalisation depends on x (points 0, 1, 2, d = |x − y|, θ = 1:
1.144 from 0 to 1); 2 d / θ holds. Hence the sums themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skpuffer.core.prior import FloatArray
from skpuffer.core.sampling import BitSource

UNITS = 2**62
# Pairs of rows whose sums are formed at a time.
_BLOCK = 2**12
_OVERFLOW = 700.0
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Channel:
    """The probabilities of every output given every input.

    Attributes
    ----------
    counts : ndarray of shape (K, K), int64
        Positive, in units of 2^−62; row x holds P(y | x).

    Examples
    --------
    >>> import numpy as np
    >>> channel = Channel.of(1 - np.eye(2), 1.0)  # keeps with odds of e to 1
    >>> channel.probabilities.round(3)
    array([[0.731, 0.269],
           [0.269, 0.731]])
    """

    counts: NDArray[np.int64]

    @classmethod
    def of(cls, distances: FloatArray, theta: float) -> Channel:
        """Round the probabilities of a scale to whole units.

        Parameters
        ----------
        distances : ndarray of shape (K, K)
            See `check_distances`.
        theta : float
            Positive; in the units of the distances. Zero keeps every category.
        """
        size = len(distances)
        if theta == 0:
            return cls(np.diag(np.full(size, UNITS, dtype=np.int64)))
        with np.errstate(under="ignore", over="ignore"):
            share = np.exp(-distances / theta)
            # In one order: rows of the same distances get the same probabilities.
            share /= np.sort(share, axis=1).sum(axis=1, keepdims=True)
            counts = np.maximum((share * 2.0**62).astype(np.int64), 1)
        # What rounding left over stays where the data are, at the likeliest output.
        place = np.arange(size)
        counts[place, place] = 0
        counts[place, place] = UNITS - counts.sum(axis=1)
        return cls(counts)

    @cached_property
    def probabilities(self) -> FloatArray:
        """``counts / 2^62`` as floats, shape (K, K)."""
        return np.asarray(self.counts / 2.0**62)

    @property
    def dependence(self) -> float:
        """The largest total variation distance between two inputs, in [0, 1].

        What an output says of its input at the most: 0 nothing, 1 all.
        """
        share = self.probabilities
        apart = [float(np.abs(share - row).sum(axis=1).max()) / 2 for row in share]
        return max(apart)

    @cached_property
    def _is_response(self) -> bool:
        """Whether this is randomised response: one probability to stay, one to move."""
        counts = self.counts
        if len(counts) < 2:
            return False
        off = counts[~np.eye(len(counts), dtype=bool)]
        stay = counts.diagonal()
        return bool((off == off[0]).all() and (stay == stay[0]).all())

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum(self.counts, axis=1)

    def divergence(
        self, first: NDArray[np.intp], second: NDArray[np.intp], *, alpha: float
    ) -> FloatArray:
        """Bound D_α(P(· | first) ‖ P(· | second)) for pairs of inputs.

        Parameters
        ----------
        first, second : ndarray of shape (p,)
            Inputs.
        alpha : float
            In (1, ∞].

        Returns
        -------
        ndarray of shape (p,)
            Nats; above the exact sum by its round-off, some 1e-14. Zero between an
            input and itself.
        """
        share = self.probabilities
        if self._is_response:
            # All pairs of different inputs are alike.
            between = float(renyi_up(share[:1], share[1:2], alpha)[0])
            return np.where(first == second, 0.0, between)
        found = np.empty(len(first))
        step = max(1, _BLOCK // len(share))
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            found[part] = renyi_up(share[first[part]], share[second[part]], alpha)
        return np.where(first == second, 0.0, found)

    def table(self, *, alpha: float) -> FloatArray:
        """Bound the divergence between all ordered pairs of inputs, shape (K, K)."""
        first, second = np.indices(self.counts.shape)
        flat = self.divergence(first.ravel(), second.ravel(), alpha=alpha)
        return flat.reshape(self.counts.shape)

    def draw(self, codes: NDArray[np.intp], bits: BitSource) -> NDArray[np.intp]:
        """Draw an output for each input, exactly.

        Parameters
        ----------
        codes : ndarray of shape (n,)
        bits : BitSource

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> from skpuffer.core.sampling import SeededBits
        >>> channel = Channel.of(1 - np.eye(3), 0.5)
        >>> drawn = channel.draw(np.zeros(9000, dtype=np.intp), SeededBits(0, 0))
        >>> (np.bincount(drawn) / 9000).round(2), channel.probabilities[0].round(2)
        (array([0.78, 0.11, 0.11]), array([0.79, 0.11, 0.11]))
        """
        # 62 of the 64 bits: a uniform integer below 2^62.
        uniform = (bits.words(len(codes)) >> np.uint64(2)).astype(np.int64)
        drawn = np.empty(len(codes), dtype=np.intp)
        for code in np.unique(codes).tolist():
            here = codes == code
            drawn[here] = np.searchsorted(self._ends[code], uniform[here], side="right")
        return drawn


def uniform_codes(size: int, categories: int, bits: BitSource) -> NDArray[np.intp]:
    """Draw categories uniformly, by rejection: no modulo bias.

    >>> from skpuffer.core.sampling import SeededBits
    >>> np.bincount(uniform_codes(9000, 3, SeededBits(0, 0))).round(-3)
    array([3000, 3000, 3000])
    """
    drawn = np.empty(size, dtype=np.intp)
    filled = 0
    limit = np.uint64((2**64 // categories) * categories - 1)
    while filled < size:
        words = bits.words(size - filled)
        kept = words[words <= limit] % np.uint64(categories)
        drawn[filled : filled + len(kept)] = kept
        filled += len(kept)
    return drawn


def renyi_up(
    first: FloatArray,
    second: FloatArray,
    alpha: float,
    *,
    error: float = 2 * _EPS,
) -> FloatArray:
    """Bound the Rényi divergence of finite distributions, one a row, from above.

    Parameters
    ----------
    first, second : ndarray of shape (p, m)
        Probabilities p and q; rows sum to one before they were rounded.
    alpha : float
        In (1, ∞].
    error : float
        Relative error of each probability.

    Returns
    -------
    ndarray of shape (p,)
        Nats; infinite where p has mass that q lacks.

    Notes
    -----
    With r = log(p/q), log Σ p e^{(α−1) r} = log(1 + Σ p (e^{(α−1) r} − 1)). An error of
    δ in r moves the sum by at most (α−1) δ of itself, one of `error` in p by `error`
    Σ p |e^{(α−1) r} − 1|; the rounding of the sums themselves is counted with the
    second.

    Examples
    --------
    >>> p, q = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
    >>> float(renyi_up(p, q, 2.0)[0].round(6))  # log(1 + 1/3)
    0.287682
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(first / second)
    present = first > 0
    ratio = np.where(present, ratio, 0.0 if math.isfinite(alpha) else -np.inf)
    largest = ratio.max(axis=1)
    finite = np.where(np.isfinite(ratio), np.abs(ratio), 0.0)
    # A quotient, a logarithm, and what the probabilities bring along.
    doubt = 2 * error + _EPS * (2.0 + 2.0 * finite.max(axis=1))
    if math.isinf(alpha):
        return np.where(np.isinf(largest), np.inf, np.maximum(largest + doubt, 0.0))
    excess = alpha - 1
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        high = np.maximum(excess * largest, 0.0)
        near = high < _OVERFLOW
        moved = np.expm1(np.where(near[:, None], excess * ratio, 0.0))
        rise = np.einsum("ij,ij->i", first, moved)
        spread = np.einsum("ij,ij->i", first, np.abs(moved))
        top = np.where(np.isfinite(high), high, 0.0)
        scaled = np.exp(excess * ratio - top[:, None])
        log_sum = top + np.log(np.einsum("ij,ij->i", first, scaled))
    terms = error + _EPS * (first.shape[1] + 4)
    by_excess = np.log1p(np.maximum(rise, 0.0) + terms * spread) / excess
    by_sum = (log_sum + 2 * terms + _EPS * top) / excess
    moment = np.where(near, by_excess, by_sum)
    found = np.where(np.isinf(largest), np.inf, np.maximum(moment + doubt, 0.0))
    return np.asarray(found)
