"""An audit that runs while a mechanism produces samples, and may be read at any time.

For each claim ε of a grid there is a fortune (see `core.paired_betting`), staked on
events that only the past has chosen. Memory does not grow with the stream: second
moments of features, a bounded buffer of the latest rows, one number a claim.
"""

from __future__ import annotations

import math
from typing import Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from skpuffer._validation import read_tables, table_names
from skpuffer.audit._records import NO_VIOLATION, REFUTED, TOO_FEW
from skpuffer.audit._running_settings import read_settings
from skpuffer.audit._stream import Stream
from skpuffer.exceptions import ParameterError


class RunningAudit(BaseEstimator):
    """Test an (ε, δ) claim about two distributions while their samples arrive.

    The claim is P(X ∈ A) ≤ e^ε P(Y ∈ A) + δ for every event A (and the same with X
    and Y exchanged). `bound_` and `verdict_` may be read after every chunk, and acted
    upon: the probability that `bound_` ever exceeds the truth, or that a true claim is
    ever refuted, is at most ``1 - confidence``, however the moment to stop is chosen.
    That needs rows that are independent draws of two fixed distributions, paired in the
    order in which they come.

    Parameters
    ----------
    epsilon : float
        The claim, ≥ 0, in nats. It alone may be given by position.
    delta : float, default=0.0
        In [0, 1).
    confidence : float, default=0.95
    symmetric : bool, default=True
        Whether the claim holds in both directions. The fortunes of both are averaged.
    epsilons : array-like, optional
        Claims that `bound_` is chosen from, besides `epsilon` itself. By default in
        steps of .05 to 4 and of .25 to 12.
    metric : {"rbf", "laplacian"}, default="rbf"
    gamma : float or "median", default="median"
        Width of the kernel. "median": by the first rows, of columns with unit variance.
    reg : tuple of float, default=(1e-3, 1e-2, 1e-1)
        Regularisations λ of the kernel's scores, in units of k(x, x) = 1.
    n_components : int, default=128
        Number of random Fourier features, even.
    n_warmup : int, default=100
        Pairs that are only learned from, before the first stake.
    buffer_size : int, default=16384
        Pairs kept, at most twice as many, to choose events by; and rows of either
        sample that may wait for a partner.
    random_state : int, optional
        Seed of the features. None is a fixed seed.

    Attributes
    ----------
    bound_ : float
        The largest claim ε of the grid such that it and all smaller ones are refuted:
        larger is leakier. 0 where none is; NaN while nothing could be refuted. The
        truth lies above it: a claim equal to `bound_` is refuted too, unless both are
        0, where `verdict_` tells.
    verdict_ : {"refuted", "no violation found", "too few samples"}
        On the claim `epsilon`. Never a proof that the claim holds.
    reason_ : str or None
        Why `bound_` is NaN.
    e_value_ : float
        The largest fortune so far at the claim: 1/e_value_ is a p-value at any time.
    n_pairs_, n_bets_ : int
        Pairs seen, and bet on.

    Notes
    -----
    Samples of unequal length: rows pair up in the order of arrival, and the rest of the
    longer sample waits for the next chunk. Beyond `buffer_size` waiting rows the oldest
    are given up as partners and only learned from. Neither the sizes of the chunks nor
    the moment to stop may depend on rows that still wait; chunks of equal length leave
    none.

    Pickles hold rows: up to 2 · `buffer_size` pairs, and those that wait. The answer is
    the same however a stream is cut into chunks, but for rounding.

    References
    ----------
    * Ville: Étude critique de la notion de collectif. 1939.
    * Shekhar, Ramdas: Nonparametric two-sample testing by betting. 2024.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> audit = RunningAudit(epsilon=0.5, random_state=0)
    >>> for _ in range(10):
    ...     _ = audit.partial_fit(rng.laplace(0, 1, (200, 1)), rng.laplace(1, 1, (200, 1)))
    ...     if audit.verdict_ == "refuted":
    ...         break
    >>> audit.verdict_, audit.n_pairs_ < 2000
    ('refuted', True)
    >>> RunningAudit(epsilon=0.5).partial_fit([[0.0]], [[1.0]]).verdict_
    'too few samples'
    """

    def __init__(
        self,
        epsilon: float,
        *,
        delta: float = 0.0,
        confidence: float = 0.95,
        symmetric: bool = True,
        epsilons: Any = None,
        metric: str = "rbf",
        gamma: float | str = "median",
        reg: tuple[float, ...] = (1e-3, 1e-2, 1e-1),
        n_components: int = 128,
        n_warmup: int = 100,
        buffer_size: int = 16_384,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.confidence = confidence
        self.symmetric = symmetric
        self.epsilons = epsilons
        self.metric = metric
        self.gamma = gamma
        self.reg = reg
        self.n_components = n_components
        self.n_warmup = n_warmup
        self.buffer_size = buffer_size
        self.random_state = random_state

    def partial_fit(self, X: Any, Y: Any) -> Self:
        """Continue with further rows of both samples.

        Parameters
        ----------
        X, Y : frame or array-like of shape (n, d), (m, d)
            Finite numbers, the same columns as ever; n and m may differ (see Notes).

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            A parameter is out of range, or was changed while the audit runs.
        ValueError
            A value is missing or infinite, or columns differ.
        """
        settings = read_settings(self.get_params(deep=False))
        rows = read_tables(X, Y)
        width = rows[0].shape[1]
        stream: Stream = getattr(self, "_stream", None) or Stream(settings, width)
        if stream.settings != settings:
            raise ParameterError(
                "a parameter was changed while the audit runs, which would void its "
                "level: start anew (fit), or set it back"
            )
        stream.expect(width, tuple(map(str, table_names(X))))
        stream.feed(*rows)
        self._stream = stream
        return self

    def fit(self, X: Any, Y: Any) -> Self:
        """Forget everything and start with these rows; see `partial_fit`."""
        begun: RunningAudit = clone(self).partial_fit(X, Y)
        self._stream = begun._stream
        return self

    def spawn(self) -> RunningAudit:
        """Return an empty audit for another stream, with the features of this one.

        Moments of audits with the same features add up in `merge`.

        Raises
        ------
        ParameterError
            This audit has not learned its features yet.
        """
        check_is_fitted(self, "_stream")
        if self._stream.features is None:
            raise ParameterError(
                f"n_warmup={self.n_warmup} pairs teach the features, and there are "
                f"{self.n_pairs_} yet: spawn later"
            )
        other: RunningAudit = clone(self)
        other._stream = self._stream.spawn()
        return other

    def merge(self, other: RunningAudit) -> Self:
        """Add the evidence of an audit of an independent stream.

        The fortunes are multiplied. What was learned is put together where both have
        the same features (see `spawn`); otherwise the longer stream's is kept.

        At the merge and ever after, `bound_` and `verdict_` are those of the product,
        valid at any time, and the moment of the merge may depend on both. What either
        had refuted before is not kept: whoever acts on the first refutation by any of
        them acts on several audits, each with an error of its own.

        Parameters
        ----------
        other : RunningAudit
            Of the same claim; its rows are independent of these and of the same two
            distributions. It is left as it was.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            The claims differ, or both have seen pairs of the same stream.
        ValueError
            The columns differ.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(1)
        >>> rows = lambda: rng.laplace([[[0]], [[1]]], 1, (2, 400, 1))
        >>> first = RunningAudit(0.5).partial_fit(*rows())
        >>> second = first.spawn().partial_fit(*rows())
        >>> first.merge(second).n_pairs_
        800
        """
        if not isinstance(other, RunningAudit):
            raise ParameterError(
                f"merge takes a RunningAudit, and was given {type(other).__name__}"
            )
        check_is_fitted(other, "_stream")
        theirs = other._stream
        settings = read_settings(self.get_params(deep=False))
        stream = getattr(self, "_stream", None) or Stream(settings, theirs.width)
        stream.settings.refuse_other_claim(theirs.settings)
        stream.expect(theirs.width, theirs.columns)
        if stream.origins & theirs.origins:
            raise ParameterError(
                "both audits have seen pairs of the same stream, and pairs that count "
                "twice void the level: merge each audit once"
            )
        stream.merge(theirs)
        self._stream = stream
        return self

    @property
    def n_pairs_(self) -> int:
        """Pairs seen."""
        check_is_fitted(self, "_stream")
        return self._stream.n_pairs

    @property
    def n_bets_(self) -> int:
        """Pairs that were bet on."""
        check_is_fitted(self, "_stream")
        return self._stream.n_bets

    @property
    def bound_(self) -> float:
        """The largest claim such that it and all smaller ones are refuted, or NaN."""
        if self.reason_ is not None:
            return math.nan
        count = self._stream.refuted()
        return self._stream.settings.epsilons[count - 1] if count else 0.0

    @property
    def verdict_(self) -> str:
        """On the claim: refuted, no violation found, or too few samples."""
        check_is_fitted(self, "_stream")
        stream = self._stream
        # With all smaller ones, so that bound and verdict are right together.
        if stream.refuted() > stream.settings.epsilons.index(stream.settings.epsilon):
            return REFUTED
        if stream.could_refute(stream.settings.epsilon):
            return NO_VIOLATION
        return TOO_FEW

    @property
    def e_value_(self) -> float:
        """The largest fortune so far at the claim, at least 1."""
        check_is_fitted(self, "_stream")
        settings = self._stream.settings
        place = settings.epsilons.index(settings.epsilon)
        return math.exp(min(float(self._stream.log_peaks[place]), 709.0))

    @property
    def reason_(self) -> str | None:
        """Why there is no bound, or None."""
        check_is_fitted(self, "_stream")
        if self._stream.could_refute(self._stream.settings.epsilons[0]):
            return None
        return (
            f"{self.n_pairs_} pairs, {self.n_bets_} of them bet on, are too few to "
            f"refute any claim at confidence {1 - self._stream.settings.error:g}"
        )
