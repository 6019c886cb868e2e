"""What the probabilities of one event say about a divergence: arrays in, nats out.

An event with probability P under one distribution and Q under the other bounds every
divergence between them from below. All bounds here grow with P and fall with Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skpuffer.core.prior import FloatArray


@dataclass(frozen=True)
class Divergence:
    """The quantity that an event bounds.

    Attributes
    ----------
    delta : float
        In [0, 1): the smallest ε at which P(E) ≤ e^ε Q(E) + δ.
    alpha : float or None
        Order in (1, ∞] of a Rényi divergence instead; `delta` is 0 then.
    symmetric : bool
        The larger of both directions, of the event and of its complement.

    Raises
    ------
    ValueError
        A value is out of range.

    Examples
    --------
    >>> p, q = np.array([0.5, 0.9]), np.array([0.25, 0.6])
    >>> Divergence().of_event(p, q).round(3)
    array([0.693, 0.405])

    The complement says more of the second event:

    >>> Divergence(symmetric=True).of_event(p, q).round(3)
    array([0.693, 1.386])
    >>> Divergence(alpha=2.0).of_event(p, q).round(3)
    array([0.288, 0.318])
    """

    delta: float = 0.0
    alpha: float | None = None
    symmetric: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta={self.delta!r} must lie in [0, 1)")
        if self.alpha is not None and not self.alpha > 1:
            raise ValueError(f"alpha={self.alpha!r} must exceed 1")
        if self.alpha is not None and self.delta:
            raise ValueError(
                f"delta={self.delta!r} with alpha={self.alpha!r}: a Rényi divergence "
                "has no delta"
            )

    def of_event(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Return the bound, negative where P is the smaller: signed, so that it is
        strictly monotone.

        Parameters
        ----------
        p, q : ndarray
            Probabilities, of shapes that broadcast.

        Returns
        -------
        ndarray
            −∞ and ∞ are possible.
        """  # noqa: D205
        if self.alpha is None or math.isinf(self.alpha):
            found = _log_ratio(p - self.delta, q)
            if self.symmetric:
                other = _log_ratio(1 - q - self.delta, 1 - p)
                found = np.maximum(found, other)
            return found
        high, low = np.maximum(p, q), np.minimum(p, q)
        found = binary_renyi(self.alpha, high, low)
        if self.symmetric:
            found = np.maximum(found, binary_renyi(self.alpha, low, high))
        return np.where(p >= q, found, -found)


def _log_ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """log(x/y); −∞ where x is not positive, even over 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(numerator) - np.log(denominator)
    return np.where(numerator > 0, ratio, -np.inf)


def binary_renyi(alpha: float, p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the Rényi divergence of two coins, D_α((p, 1−p) ‖ (q, 1−q)), in nats.

    Parameters
    ----------
    alpha : float
        Order in (1, ∞).
    p, q : ndarray
        Probabilities.

    Returns
    -------
    ndarray
        Infinite where q excludes what p allows.

    Examples
    --------
    >>> binary_renyi(2.0, np.array([0.5, 0.5, 0.5]), np.array([0.5, 0.25, 0.0]))
    array([0.        , 0.28768207,        inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0, alpha * np.log(p) + (1 - alpha) * np.log(q), -np.inf)
        tails = np.where(
            p < 1, alpha * np.log1p(-p) + (1 - alpha) * np.log1p(-q), -np.inf
        )
        found = np.logaddexp(heads, tails) / (alpha - 1)
    # Round-off may leave equal coins below 0.
    return np.asarray(np.maximum(found, 0.0))
