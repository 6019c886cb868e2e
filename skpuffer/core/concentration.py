"""How far the estimated kernel Rényi divergence may lie above the true one.

Pure. The plug-in value is biased upwards; what is proved here turns it into a test of
regularised kernel Rényi privacy, and into a lower bound on the true divergence. Both
hold in finite samples, for any kernel with k(x, x) ≤ 1 and in any dimension.

The proof, with B = S_q + λ, r = (1−α)/α, and hats for what is estimated:

1. Sample q. The summands of B^(−1/2) (S_q − Ŝ_q) B^(−1/2) are centred, below 1/n_q,
   and the second moment of their sum is at most B^(−1/2) S_q B^(−1/2) / (n_q λ), to
   which a projection may be added until its norm is 1/(n_q λ) and its trace at most
   (1 + 1/λ) times that. By Bernstein's inequality with intrinsic dimension [Tropp
   2015, Theorem 7.7.1] B̂ ≥ (1 − t) B but with probability β/2. As x^r is operator
   antitone and rα = 1 − α, the divergence rises by at most −log(1 − t).
2. Sample p. B^(r/2) φφ* B^(r/2) has a Hilbert-Schmidt norm of at most λ^r, and two of
   them are at most √2 λ^r apart, both being positive. So their mean is, but with
   probability β/2, within η λ^r of its expectation, η = (1 + √log(2/β)) / √n_p
   [McDiarmid 1989, Lemma 1.2]. For α ≥ 2 the Schatten norm is no larger, and
   D = α/(α−1) log ‖·‖_α.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skpuffer.core.gram import check_grid

LEAST_MARGIN_ORDER = 2.0


@dataclass(frozen=True)
class PlugInMargin:
    """Margins of the plug-in estimate of D_(α,λ)(S_p ‖ S_q), at one order and λ.

    Attributes
    ----------
    alpha : float
        Order in [2, ∞].
    reg : float
        λ.
    n_p, n_q : int
        Numbers of independent rows.
    beta : float
        Probability of an error, in (0, 1).

    Raises
    ------
    ValueError
        A value is out of range.

    Examples
    --------
    >>> margin = PlugInMargin(alpha=2.0, reg=0.1, n_p=50_000, n_q=50_000, beta=0.05)
    >>> round(margin.threshold(1.0), 3)
    1.106
    >>> round(margin.lower_bound(1.106), 2)
    1.0

    Too few rows for any statement:

    >>> margin = PlugInMargin(alpha=2.0, reg=0.1, n_p=100, n_q=100, beta=0.05)
    >>> margin.threshold(1.0), margin.lower_bound(5.0)
    (inf, -inf)
    """

    alpha: float
    reg: float
    n_p: int
    n_q: int
    beta: float

    def __post_init__(self) -> None:
        check_grid([self.alpha], [self.reg])
        if self.alpha < LEAST_MARGIN_ORDER:
            raise ValueError(
                f"alpha={self.alpha!r} has no margin: the proof needs alpha >= 2"
            )
        if not 0 < self.beta < 1:
            raise ValueError(f"beta={self.beta!r} must lie between 0 and 1")
        if not min(self.n_p, self.n_q) >= 1:
            raise ValueError(
                f"n_p={self.n_p!r} and n_q={self.n_q!r} must be at least 1"
            )

    def threshold(self, epsilon: float) -> float:
        """Return the plug-in value above which D_(α,λ) ≤ ε is refuted.

        If D_(α,λ)(S_p ‖ S_q) ≤ ε, the plug-in value exceeds
        ε + α/(α−1) log(1 + η (λ e^ε)^(−(α−1)/α)) − log(1 − t) with probability β at
        most.

        Parameters
        ----------
        epsilon : float
            The claim of regularised kernel Rényi privacy [Domingo-Enrich, Mroueh
            2022, eq. 15], in nats.

        Returns
        -------
        float
            In nats; infinite where the samples are too small to refute anything.
        """
        if self._loss >= 1:
            return math.inf
        share = self._share
        spread = self._deviation * math.exp(-share * (math.log(self.reg) + epsilon))
        return epsilon + math.log1p(spread) / share - math.log1p(-self._loss)

    def lower_bound(self, plug_in: float) -> float:
        """Return a lower bound on D_(α,λ)(S_p ‖ S_q) of confidence 1 − β.

        The largest ε that `plug_in` refutes.

        Parameters
        ----------
        plug_in : float
            The divergence of the two samples, in nats.

        Returns
        -------
        float
            In nats; minus infinity where nothing is refuted.
        """
        if self._loss >= 1:
            return -math.inf
        share = self._share
        # In units of the estimate, which may be too large to exponentiate.
        norm = share * (plug_in + math.log1p(-self._loss))
        left = math.log(self._deviation) - share * math.log(self.reg) - norm
        return (norm + math.log(-math.expm1(left))) / share if left < 0 else -math.inf

    @property
    def _share(self) -> float:
        """Return (α−1)/α."""
        return 1.0 if math.isinf(self.alpha) else (self.alpha - 1) / self.alpha

    @property
    def _deviation(self) -> float:
        """Return η."""
        return (1 + math.sqrt(math.log(2 / self.beta))) / math.sqrt(self.n_p)

    @property
    def _loss(self) -> float:
        """Return t, the root of t²/2 = L (1/(n_q λ) + t/(3 n_q))."""
        half = math.log(8 * (1 + 1 / self.reg) / self.beta) / self.n_q
        return half / 3 + math.sqrt(half * half / 9 + 2 * half / self.reg)
