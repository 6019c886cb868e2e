"""What samples of a release refute: lower bounds on ε over δ, α or their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from skpuffer._checks import integer, numbers_in
from skpuffer._text import value_text
from skpuffer.audit import KernelRenyiAuditor, RunningAudit
from skpuffer.core.prior import FloatArray
from skpuffer.displays._canvas import (
    hues,
    ink,
    legend_above,
    number_axis,
    order_axis,
    pyplot,
    shade,
    single_axes,
)
from skpuffer.displays._claims import claim_text, claimed_line
from skpuffer.exceptions import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

_DELTAS = tuple(np.geomspace(1e-5, 0.5, 61).tolist())
_SIZES = 8
_LEAST = 50


class AuditDisplay:
    """A lower bound on the ε of a release, and the claim that it is held against.

    Shaded is what the samples refute: every claim below the bound. A claim (dashed)
    that runs through the shade is refuted; one that does not was not refuted, which
    does not make it true.

    Parameters
    ----------
    over : {"delta", "alpha", "n"}
        What the bound is drawn over.
    x, bound : ndarray
        nan where nothing could be computed.
    claim_x, claim : ndarray
        Where something is claimed, and the ε that is.
    claim_text : str or None
    ceiling : ndarray or None
        What so many rows could show at most (over n).
    confidence : float
    delta, alpha : float or None
        What ε is bounded for, over n.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The bound.
    claim_ : matplotlib Line2D or None
    ceiling_ : matplotlib Line2D or None
    refuted_ : matplotlib PolyCollection
        The shade; empty, and not in the legend, where the bound is nowhere above 0.
    legend_ : matplotlib Legend
    ax_, figure_ : matplotlib Axes and Figure

    See Also
    --------
    skpuffer.audit.KernelRenyiAuditor : The bounds and what they rest on.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer.audit import KernelRenyiAuditor
    >>> from skpuffer.displays import AuditDisplay
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.laplace([[[0]], [[1]]], 0.5, (2, 2000, 1))
    >>> audit = KernelRenyiAuditor(epsilon=1).fit(X, Y)
    >>> display = AuditDisplay.from_estimator(audit, deltas=[0.001, 0.01, 0.1])
    >>> bool((display.bound == audit.epsilon_lower(delta=[0.001, 0.01, 0.1])).all())
    True
    >>> AuditDisplay.from_samples(audit, X, Y, sizes=[100, 400]).x
    array([100., 400.])
    """

    line_: Line2D
    claim_: Line2D | None
    ceiling_: Line2D | None
    refuted_: PolyCollection
    legend_: Legend
    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        over: str,
        x: FloatArray,
        bound: FloatArray,
        claim_x: FloatArray,
        claim: FloatArray,
        claim_text: str | None,
        confidence: float,
        ceiling: FloatArray | None = None,
        delta: float | None = None,
        alpha: float | None = None,
    ) -> None:
        self.over = over
        self.x = x
        self.bound = bound
        self.claim_x = claim_x
        self.claim = claim
        self.claim_text = claim_text
        self.confidence = confidence
        self.ceiling = ceiling
        self.delta = delta
        self.alpha = alpha

    @classmethod
    def from_estimator(
        cls,
        auditor: KernelRenyiAuditor,
        *,
        deltas: Sequence[float] | None = None,
        alphas: Sequence[float] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the bounds of a fitted auditor, which all hold together.

        Parameters
        ----------
        auditor : KernelRenyiAuditor
            Fitted.
        deltas : sequence of float, optional
            In (0, 1): bounds on ε at these δ. A claim of a Rényi divergence is drawn as
            the ε that follows from it at each δ, a claim at some δ from there upwards.
        alphas : sequence of float, optional
            Finite, above 1: bounds on the Rényi divergence of these orders instead. A
            claim of order α covers all smaller orders.
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        AuditDisplay

        Raises
        ------
        NotFittedError
            Before fit.
        ParameterError
            Both `deltas` and `alphas` are given, or one is out of range; the auditor
            counts no events, or answers for one δ alone (`RunningAudit`: use
            `from_samples`).
        """
        pyplot(cls.__name__)
        if not isinstance(auditor, KernelRenyiAuditor):
            raise ParameterError(
                f"auditor={type(auditor).__name__} has no bounds over δ: give a fitted "
                "KernelRenyiAuditor, or draw bounds over n with from_samples"
            )
        check_is_fitted(auditor)
        if deltas is not None and alphas is not None:
            raise ParameterError(
                f"deltas={value_text(deltas)} and alphas={value_text(alphas)} are "
                "bounds of two kinds: give "
                "one of them, and not both"
            )
        report, (delta, alpha) = auditor.report_, _target(auditor)
        x: FloatArray
        if alphas is None:
            given = [*_DELTAS, delta or _DELTAS[0]] if deltas is None else deltas
            x = np.array(numbers_in("deltas", given, above=0.0, below=1.0))
            bound = auditor.epsilon_lower(delta=x)
        else:
            x = np.array(numbers_in("alphas", alphas, above=1.0))
            bound = auditor.epsilon_lower(alpha=x)
        claim_x, claim = claimed_line(
            report.epsilon, delta, alpha, x, alphas is not None
        )
        return cls(
            over="delta" if alphas is None else "alpha",
            x=x,
            bound=bound,
            claim_x=claim_x,
            claim=claim,
            claim_text=claim_text(report.epsilon, delta, alpha),
            confidence=report.confidence,
            delta=delta,
            alpha=alpha,
        ).plot(ax)

    @classmethod
    def from_samples(
        cls,
        auditor: KernelRenyiAuditor | RunningAudit,
        X: Any,
        Y: Any = None,
        *,
        secret: Any = None,
        sizes: Sequence[int] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the bound over the number of rows: audits of the first n, for each n.

        Parameters
        ----------
        auditor : KernelRenyiAuditor or RunningAudit
            Its parameters count; it is left as it is. Each bound of a
            `KernelRenyiAuditor` holds with its confidence alone, and not all of them
            together: name a size before looking. Those of a `RunningAudit` hold
            together.
        X, Y : frame or array-like
            Independent rows of two distributions, in random order.
        secret : array-like, optional
            The secret of each row of X, where there is no Y.
        sizes : sequence of int, optional
            How many rows (of X, and as many of Y) are looked at; by default 8 sizes
            from 50 on.
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        AuditDisplay

        Raises
        ------
        ParameterError
            A size is out of range.
        ValueError, TypeError
            As `fit` of the auditor.
        """
        pyplot(cls.__name__)
        X, Y, secret = (_by_place(rows) for rows in (X, Y, secret))
        n = min(_length(rows) for rows in (X, Y) if rows is not None)
        if sizes is None:
            sizes = np.geomspace(min(_LEAST, n), n, _SIZES).round().tolist()
        sizes = sizes if hasattr(sizes, "__len__") else list(sizes)
        chosen = sorted({_size(size, sizes) for size in sizes})
        if not chosen or chosen[-1] > n:
            raise ParameterError(
                f"sizes={value_text(sizes)} must be from 1 to {n}, the rows given"
            )
        running = isinstance(auditor, RunningAudit)
        bounds, ceilings, seen = [], [], 0
        fresh = clone(auditor)
        for size in chosen:
            if running:
                fresh.partial_fit(X[seen:size], Y[seen:size])
                seen = size
            elif Y is None:
                labels = None if secret is None else secret[:size]
                fresh.fit(X[:size], secret=labels)
            else:
                fresh.fit(X[:size], Y[:size])
            bounds.append(fresh.bound_)
            ceilings.append(
                math.nan if running else max(pair.ceiling for pair in fresh.pairs_)
            )
        delta, alpha = float(fresh.delta), None if running else fresh.alpha
        ends = np.array(chosen[:1] + chosen[-1:], dtype=np.float64)
        claimed = ends[: 0 if fresh.epsilon is None else 2]
        return cls(
            over="n",
            x=np.array(chosen, dtype=np.float64),
            bound=np.array(bounds, dtype=np.float64),
            claim_x=claimed,
            claim=np.full(len(claimed), fresh.epsilon, dtype=np.float64),
            claim_text=claim_text(fresh.epsilon, delta, alpha),
            confidence=float(fresh.confidence),
            ceiling=None if running else np.array(ceilings, dtype=np.float64),
            delta=delta,
            alpha=alpha,
        ).plot(ax)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        colors: Sequence[Any] | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw the bound.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        colors : pair of colours, optional
            Of the bound and of the claim.
        **line_options
            Of matplotlib's `plot`, for the bound.

        Returns
        -------
        self
        """
        axes: Any = single_axes(type(self).__name__, ax)
        self.ax_, self.figure_ = axes, axes.figure
        blue, red = (hues(axes, 2, colors) * 2)[:2]
        level = f"{100 * self.confidence:.4g} %"
        options = {
            "color": blue,
            "lw": 1.8,
            "marker": "o" if self.over == "n" else None,
            "ms": 5,
            "label": f"{level} lower bound",
        } | line_options
        # Nothing known from below is no point of a line.
        bound = np.where(np.isfinite(self.bound), self.bound, np.nan)
        (self.line_,) = axes.plot(self.x, bound, **options)
        self.refuted_ = axes.fill_between(
            self.x, np.minimum(0, bound), bound,
            color=self.line_.get_color(), alpha=shade(axes), lw=0, label="refuted",
        )  # fmt: skip
        self.claim_ = self.ceiling_ = None
        if len(self.claim):
            # The claim itself, from which the rest of the line follows, has a marker.
            own = {"marker": "s", "ms": 6, "markevery": [self._own_claim()]}
            (self.claim_,) = axes.plot(
                self.claim_x, self.claim, color=red, ls="--", lw=1.8,
                label=self.claim_text, **(own if own["markevery"] != [None] else {}),
            )  # fmt: skip
        self._scale(axes)
        known = np.empty(0) if self.ceiling is None else self.ceiling
        if (known < axes.get_ylim()[1]).any():
            (self.ceiling_,) = axes.plot(
                self.x, self.ceiling, color=ink(axes, 0.5), ls=":", lw=1.5,
                label="most that n rows can show", scaley=False,
            )  # fmt: skip
        # A bound that is nowhere above 0 refutes nothing.
        shaded = self.refuted_ if len(bound) > 1 and (bound > 0).any() else None
        handles = [self.line_, shaded, self.claim_, self.ceiling_]
        self.legend_ = legend_above(axes, [one for one in handles if one is not None])
        return self

    def _own_claim(self) -> int | None:
        """Return which point of the claim's line is the claim as it was made."""
        if self.over == "delta" and self.delta and self.claim_x[0] == self.delta:
            return 0
        if self.over == "alpha" and self.alpha and self.claim_x[-1] == self.alpha:
            return len(self.claim_x) - 1
        return None

    def _scale(self, ax: Any) -> None:
        ax.set_ylabel("ε (nats)")
        if self.over == "alpha":
            order_axis(ax, self.x.min(), self.x.max())
            ax.set_ylabel("Rényi divergence, ε (nats)")
        elif self.over == "delta":
            number_axis(ax, "x", self.x, log=True)
            if len(self.x) > 1:
                ax.set_xlim(self.x[0], self.x[-1])
            ax.set_xlabel("δ")
        else:
            number_axis(ax, "x", self.x)
            ax.set_xlabel("n, rows of each sample" if self.over == "n" else "")
            if self.alpha is not None:
                ax.set_ylabel(f"Rényi divergence of order {self.alpha:g}, ε (nats)")
            elif self.delta:
                ax.set_ylabel(f"ε at δ = {self.delta:g} (nats)")
        known = np.concatenate([self.bound, self.claim])
        known = known[np.isfinite(known)]
        high = 1.15 * max(known, default=1.0) or 1.0
        ax.set_ylim(min(0.0, *known) if len(known) else 0.0, high)


def _target(auditor: KernelRenyiAuditor) -> tuple[float, float | None]:
    """Return δ and the order of the claim that was audited."""
    if auditor.event_ is None:
        return auditor.delta, auditor.alpha
    target = auditor.event_.target
    return target.delta, target.alpha


def _size(size: Any, among: Any) -> int:
    """Return a number of rows; a whole float is one."""
    if isinstance(size, (float, np.floating)) and float(size).is_integer():
        size = int(size)
    return integer("sizes", size, least=1, among=among)


def _by_place(rows: Any) -> Any:
    """Return what gives rows, and their number, by slices of positions."""
    if isinstance(rows, (list, tuple)):
        rows = np.asarray(rows)
    return getattr(rows, "iloc", rows)


def _length(rows: Any) -> int:
    return len(getattr(rows, "obj", rows))
