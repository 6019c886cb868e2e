"""What a law's mixture divergence is asked, and what it answers."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

from skpuffer.core.mixtures._pair import MixturePair


class DivergenceBound(NamedTuple):
    """The larger of D_α(p‖q) and D_α(q‖p) for two noisy mixtures, in nats.

    Attributes
    ----------
    estimate : float
        Good for root finding; promises nothing.
    upper : float
        Proven: quadrature error, what is left out and round-off are in it. Infinite
        where nothing could be shown.
    """

    estimate: float
    upper: float


class MixtureDivergence(Protocol):
    """Certified divergence of two one-column mixtures under one noise law."""

    name: ClassVar[str]

    def bound(
        self,
        pair: MixturePair,
        *,
        alpha: float,
        scale: float,
        epsilon: float,
        tolerance: float,
    ) -> DivergenceBound:
        """Bound the divergence of the releases of the two conditionals.

        Parameters
        ----------
        pair : MixturePair
        alpha : float
            Order, as the noise law allows.
        scale : float
            Positive, in data units.
        epsilon : float
            The value near which accuracy is wanted.
        tolerance : float
            Relative width aimed at between the truth and the upper bound there. The
            bound is proven whether or not it is reached.
        """
        ...
