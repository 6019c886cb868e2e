"""What one release reveals at every Rényi order, and as an (ε′, δ) curve."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer._checks import choice, number, refuse_swapped
from skpuffer._text import value_text
from skpuffer.core.conversions import renyi_to_delta
from skpuffer.core.prior import FloatArray
from skpuffer.displays._canvas import (
    hues,
    ink,
    legend_above,
    number_axis,
    order_axis,
    pyplot,
    single_axes,
)
from skpuffer.exceptions import ParameterError
from skpuffer.profile import PrivacyProfile

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_KINDS = ("epsilon", "delta")
# Orders and values of ε′ at which the curves are computed.
_POINTS, _STEPS = 241, 31
# From this ratio of its ends on the scale of ε is logarithmic.
_FAR = 40
# The curve of δ is drawn down to here.
_LEAST_DELTA = 1e-10


class PrivacyProfileDisplay:
    """A curve of the privacy that a fitted release keeps.

    Two kinds of curve. "epsilon": the bound on the Rényi divergence over its order α, on
    a scale of log(α − 1), with the promised pair marked and the bound at α = ∞, where
    there is one, as a dashed line. "delta": the δ of the best (ε′, δ) promise over ε′,
    by all orders together, and by the promised order alone (dashed).

    Parameters
    ----------
    profile : PrivacyProfile
    promised : (alpha, epsilon), optional
        The pair of the guarantee.
    kind : {"epsilon", "delta"}, default="epsilon"
        What `plot` draws unless told otherwise.
    name : str, optional
        For a legend, where several profiles are drawn on the same axes.

    Attributes
    ----------
    alphas, epsilons : ndarray
        Orders and bounds of the first kind of curve.
    epsilons_prime, deltas : ndarray
        The curve of the second kind; δ is 0 from some ε′ on where the release has a
        bound at α = ∞.
    line_ : matplotlib Line2D
        The curve.
    promised_ : matplotlib Line2D or None
        The marked promise, or the curve of its order alone.
    limit_ : matplotlib Line2D or None
        The bound at α = ∞.
    ax_, figure_ : matplotlib Axes and Figure

    See Also
    --------
    skpuffer.PrivacyProfile : The numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer import RenyiPufferfishLaplace
    >>> from skpuffer.displays import PrivacyProfileDisplay
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(df)
    >>> display = PrivacyProfileDisplay.from_estimator(noise)
    >>> display.promised, display.ax_.get_ylabel()
    ((4.0, 1.0), 'ε (nats)')

    Again, as an (ε′, δ) curve:

    >>> display.plot(kind="delta").ax_.get_ylabel()
    'δ'
    """

    line_: Line2D
    promised_: Line2D | None
    limit_: Line2D | None
    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        profile: PrivacyProfile,
        *,
        promised: tuple[float, float] | None = None,
        kind: str = "epsilon",
        name: str | None = None,
    ) -> None:
        self.profile = profile
        self.promised = promised
        self.kind = kind
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        kind: str = "epsilon",
        name: str | None = None,
        ax: Axes | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw the profile of a fitted release.

        Parameters
        ----------
        estimator : any release of this package
            Fitted.
        kind : {"epsilon", "delta"}, default="epsilon"
        name : str, optional
            For a legend.
        ax : matplotlib Axes, optional
            By default those of a new figure.
        **line_options
            Of matplotlib's `plot`.

        Returns
        -------
        PrivacyProfileDisplay

        Raises
        ------
        NotFittedError
            Before fit.
        """
        refuse_swapped(estimator, f"{cls.__name__}.from_estimator(estimator)")
        check_is_fitted(estimator)
        guarantee = estimator.guarantee_
        return cls.from_profile(
            estimator.profile_,
            promised=(guarantee.alpha, guarantee.epsilon),
            kind=kind,
            name=name,
            ax=ax,
            **line_options,
        )

    @classmethod
    def from_profile(
        cls,
        profile: PrivacyProfile,
        *,
        promised: tuple[float, float] | None = None,
        kind: str = "epsilon",
        name: str | None = None,
        ax: Axes | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw a profile.

        Parameters
        ----------
        profile : PrivacyProfile
        promised : (alpha, epsilon), optional
            A pair to mark.
        kind, name, ax, **line_options
            As in `from_estimator`.

        Returns
        -------
        PrivacyProfileDisplay
        """
        pyplot(cls.__name__)
        if not isinstance(profile, PrivacyProfile):
            raise ParameterError(
                f"profile={type(profile).__name__} must be a PrivacyProfile, such as "
                "profile_ of a fitted release"
            )
        if promised is not None:
            try:
                alpha, epsilon = promised
                promised = alpha, epsilon  # From an iterator, too.
            except (TypeError, ValueError):
                raise ParameterError(
                    f"promised={value_text(promised)} must be a pair (alpha, epsilon)"
                ) from None
            number("promised", alpha, above=1.0, infinite=True, among=promised)
            number("promised", epsilon, among=promised)
        display = cls(profile, promised=promised, kind=kind, name=name)
        return display.plot(ax, **line_options)

    @cached_property
    def alphas(self) -> FloatArray:
        """Finite orders, ascending."""
        low, high = self.profile.orders[0], self.profile.orders[-1]
        orders = 1 + np.geomspace(low - 1, high - 1, _POINTS)
        if self.promised is not None and math.isfinite(self.promised[0]):
            orders = np.union1d(orders, [self.promised[0]])
        return orders

    @cached_property
    def epsilons(self) -> FloatArray:
        """Bounds at `alphas`, nats."""
        return self.profile.divergence(self.alphas)

    @cached_property
    def epsilons_prime(self) -> FloatArray:
        """Values of ε′, from 0 to where δ is 1e-10."""
        most = self.profile.to_epsilon(_LEAST_DELTA)
        if math.isinf(most):
            raise ParameterError("the profile is infinite: no (ε′, δ) follows from it")
        # Even steps, and more of them where δ falls steeply.
        steep = [
            self.profile.to_epsilon(d) for d in np.geomspace(_LEAST_DELTA, 0.1, 20)
        ]
        return np.union1d(np.linspace(0.0, most or 1.0, _STEPS), steep)

    @cached_property
    def deltas(self) -> FloatArray:
        """The least δ at `epsilons_prime` that any order proves."""
        return np.array(
            [self.profile.to_delta(e) for e in self.epsilons_prime.tolist()]
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str | None = None,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        kind : {"epsilon", "delta"}, optional
        name : str, optional
            Both default to what the display was made with.
        **line_options
            Of matplotlib's `plot`, for the curve.

        Returns
        -------
        self
        """
        kind = choice("kind", self.kind if kind is None else kind, _KINDS)
        name = self.name if name is None else name
        axes: Any = single_axes(type(self).__name__, ax)
        options = {"label": name, **line_options}
        # Profiles on the same axes take the next colour.
        drawn = sum(line.get_gid() == "profile" for line in axes.lines)
        if not {"color", "c"} & set(options):
            options["color"] = hues(axes, drawn + 1)[-1]
        self.ax_, self.figure_ = axes, axes.figure
        self.promised_ = self.limit_ = None
        if kind == "epsilon":
            self._plot_epsilon(axes, options)
        else:
            self._plot_delta(axes, options)
        if any(not h.get_label().startswith("_") for h in axes.lines):
            legend_above(axes)
        return self

    def _plot_epsilon(self, ax: Any, options: dict[str, Any]) -> None:
        known = np.where(np.isfinite(self.epsilons), self.epsilons, np.nan)
        low, high = self.alphas[0], self.alphas[-1]
        before = ax.get_xlim() if ax.lines else None
        (self.line_,) = ax.plot(self.alphas, known, gid="profile", **options)
        if before is not None:
            low, high = max(1.0001, min(low, before[0])), max(high, before[1])
        order_axis(ax, low, high)
        ax.set_ylabel("ε (nats)")
        colour, faint = self.line_.get_color(), ink(ax, 0.7)
        named = options["label"] is not None
        if math.isfinite(self.profile.limit):
            self.limit_ = ax.axhline(
                self.profile.limit, color=colour if named else faint, ls="--", lw=1
            )
            if not named:
                ax.annotate(
                    f"α = ∞: ε = {self.profile.limit:.3g}",
                    (0, self.profile.limit),
                    xycoords=("axes fraction", "data"),
                    xytext=(6, -4),
                    textcoords="offset points",
                    va="top",
                    color=faint,
                )
        if self.promised is not None and math.isfinite(self.promised[0]):
            (self.promised_,) = ax.plot(
                *self.promised, "o", color=colour, ms=7, zorder=3, label=None
            )
            if not named:
                right = self.promised[0] > self.alphas[len(self.alphas) * 3 // 5]
                ax.annotate(
                    f"promised: α = {self.promised[0]:.4g}, ε = {self.promised[1]:.4g}",
                    self.promised,
                    xytext=(-8, 8) if right else (8, -8),
                    textcoords="offset points",
                    ha="right" if right else "left",
                    va="bottom" if right else "top",
                )
        self._scale_epsilon(ax)

    def _scale_epsilon(self, ax: Any) -> None:
        """Choose the scale of ε that shows all profiles drawn here."""
        drawn = [line.get_ydata() for line in ax.lines if line.get_gid() == "profile"]
        every = np.concatenate(drawn)
        every = every[np.isfinite(every)]
        if len(every) and every.max() > _FAR * every.min() > 0:
            number_axis(ax, "y", every, log=True)
            ax.set_ylim(every.min() / 1.5, every.max() * 1.5)
        else:
            ax.set_yscale("linear")
            ax.set_ylim(0, 1.05 * max(every, default=1.0) or 1.0)

    def _plot_delta(self, ax: Any, options: dict[str, Any]) -> None:
        shown = np.where(self.deltas > 0, self.deltas, np.nan)
        named = options["label"] is not None
        options["label"] = options["label"] or "all orders together"
        (self.line_,) = ax.plot(self.epsilons_prime, shown, gid="profile", **options)
        promised = self.promised if self.promised and not named else (math.inf, 0.0)
        if math.isfinite(promised[0]):
            every = self.epsilons_prime
            (self.promised_,) = ax.plot(
                every,
                [renyi_to_delta(*promised, e) for e in every.tolist()],
                ls="--",
                lw=1.2,
                color=ink(ax, 0.7),
                label=f"promised order α = {promised[0]:.4g} alone",
            )
        ax.set_yscale("log")
        ax.set_ylim(_LEAST_DELTA, 1.5)
        drawn = [line.get_xdata() for line in ax.lines if line.get_gid() == "profile"]
        ax.set_xlim(0, 1.04 * max(line[-1] for line in drawn))
        ax.set_xlabel("ε′ (nats)")
        ax.set_ylabel("δ")
