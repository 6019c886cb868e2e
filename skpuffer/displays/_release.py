"""What a release does to one column: both conditional distributions, before and after."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skpuffer._checks import column_position, refuse_swapped
from skpuffer._text import capitalised, label_text
from skpuffer._validation import read_again
from skpuffer.core.prior import FloatArray
from skpuffer.displays._canvas import (
    hues,
    legend_above,
    legend_room,
    legend_width,
    pyplot,
    shade,
    short,
    two_axes,
)
from skpuffer.displays._curves import (
    bin_edges,
    central_range,
    curve_points,
    histogram,
    mixture_density,
    noise_reach,
)
from skpuffer.displays._pairs import Compared, compared_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

# Categories that have bars of their own; the rest share one.
_BARS = 16
_SYMBOLS = {"laplace": "b", "gaussian": "σ", "exponential": "s"}


class ReleaseDisplay:
    """The distributions of a column given two secret values, and those of its release.

    Above, what the column gives away: a histogram for either secret value (for
    categories, bars). Below, on the same axis, what the release leaves of it: the exact
    density of values plus noise, a mixture over all rows, and no sample of it (for
    categories, the exact shares). Nothing is released. Of several columns one is shown,
    and the axis says of how many; what they give away together is not seen in it.

    Parameters
    ----------
    column : str
    pair : (value, value)
        The two secret values.
    secret, title : str
        The secret's name; what is done to the column, in words.
    before, after : pair of ndarray
        Heights for either secret value.
    edges, points : ndarray or None
        Edges of the bins of `before`, and where the densities of `after` are taken;
        None for categories.
    categories : sequence of str, optional
        What each bar stands for.
    n_columns : int, default=1
        How many columns the release has.

    Attributes
    ----------
    before_, after_ : pair of matplotlib artists
        StepPatch or BarContainer; Line2D (StepPatch where nothing is added to the
        column), or BarContainer.
    axes_ : pair of matplotlib Axes
        One twice where one was given.
    ax_, figure_ : matplotlib Axes and Figure
        The first of them.
    legend_ : matplotlib Legend

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer import RenyiPufferfishLaplace
    >>> from skpuffer.displays import ReleaseDisplay
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(df)
    >>> display = ReleaseDisplay.from_estimator(noise, df)
    >>> display.pair, display.title
    (('F', 'M'), 'Laplace noise, b = 0.843')
    """

    before_: tuple[Any, ...]
    after_: tuple[Any, ...]
    axes_: tuple[Axes, Axes]
    legend_: Legend
    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        column: str,
        pair: tuple[Hashable, Hashable],
        secret: str,
        title: str,
        before: tuple[FloatArray, FloatArray],
        after: tuple[FloatArray, FloatArray],
        edges: FloatArray | None = None,
        points: FloatArray | None = None,
        categories: Sequence[str] | None = None,
        n_columns: int = 1,
    ) -> None:
        self.column = column
        self.pair = pair
        self.secret = secret
        self.title = title
        self.before = before
        self.after = after
        self.edges = edges
        self.points = points
        self.categories = categories
        self.n_columns = n_columns

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        column: Any = None,
        pair: tuple[Hashable, Hashable] | None = None,
        secret: Any = None,
        prior: Any = None,
        prior_value: Hashable = None,
        sample_weight: Any = None,
        ax: Any = None,
    ) -> Self:
        """Compute the distributions of a fitted release, and draw them.

        Parameters
        ----------
        estimator : any release of this package
            Fitted.
        X : frame or array-like of shape (n, d)
            Rows with the columns of the fit: those of the fit, or others.
        column : str or int, optional
            A released column; the first by default.
        pair : (value, value), optional
            Two secret values. By default the pair that decided the column's scale, and
            where none did, the first that was fitted.
        secret, prior : array-like, optional
            Of each row, where they are no columns of X.
        prior_value : hashable, optional
            Under which value of the prior; by default that of the worst pair.
        sample_weight : array-like of shape (n,), optional
        ax : matplotlib Axes or pair of them, optional
            As in `plot`.

        Returns
        -------
        ReleaseDisplay

        Raises
        ------
        NotFittedError
            Before fit.
        ParameterError
            The column, the pair or the value of the prior is unknown.
        """
        pyplot(cls.__name__)
        refuse_swapped(estimator, f"{cls.__name__}.from_estimator(estimator, X)")
        check_is_fitted(estimator)
        guarantee = estimator.guarantee_
        names = guarantee.columns
        place = 0 if column is None else column_position(column, names, "column")
        sample = read_again(estimator, X, secret, prior, sample_weight)
        worst = estimator.report_.worst_pair[place]
        found = compared_pairs(sample.priors([place]), pair, prior_value)
        fitted = {frozenset(known) for known in guarantee.pairs}
        found.sort(
            key=lambda one: (one.text != worst, frozenset(one.labels) not in fitted)
        )
        shown, scale = found[0], float(estimator.scale_[place])
        known = getattr(estimator, "channels_", {}).get(names[place])
        what: dict[str, Any]
        if known is None:
            what = _numbers(shown, estimator._fitted_law(), scale)
            clipped = ", before clipping" if estimator.clip_output else ""
            law = capitalised(guarantee.law_text)
            sign = _SYMBOLS.get(guarantee.law, "scale")
            title = f"{law} noise, {sign} = {short(scale)}{clipped}"
        else:
            what = _categories(shown, known, estimator.categories_[names[place]])
            title = f"categories drawn, θ = {short(scale)}"
        given = "" if shown.prior is None else f", {label_text(shown.prior)}"
        display = cls(
            column=names[place],
            pair=shown.labels,
            secret=" / ".join(guarantee.secret),
            title=(title if scale else "unchanged, no noise needed") + given,
            n_columns=len(names),
            **what,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None, *, colors: Sequence[Any] | None = None) -> Self:
        """Draw the distributions.

        Parameters
        ----------
        ax : matplotlib Axes or pair of them, optional
            Two axes, for before and after; or one, for both on top of each other. By
            default two of a new figure, one above the other.
        colors : pair of colours, optional
            One for each secret value.

        Returns
        -------
        self
        """
        layout = {"sharex": True, "sharey": self.categories is not None}
        top, bottom = two_axes(type(self).__name__, ax, nrows=2, **layout)
        self.axes_, self.ax_, self.figure_ = (top, bottom), top, top.figure
        palette = hues(top, 2, colors)
        labels = [f"{self.secret} = {label_text(label)}" for label in self.pair]
        if self.categories is None:
            self._plot_numbers(palette, labels)
        else:
            self._plot_categories(palette, labels)
        if top is not bottom:
            top.set_title("Before", loc="left", fontsize="medium")
            bottom.set_title(f"After: {self.title}", loc="left", fontsize="medium")
        others = self.n_columns > 1
        beside = f" (1 of {self.n_columns} columns released)" if others else ""
        bottom.set_xlabel(f"{self.column}{beside}")
        return self

    def _plot_numbers(self, palette: list[Any], labels: list[str]) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        top: Any
        bottom: Any
        drawn: list[Any] = []
        lines: list[Any] = []
        top, bottom = self.axes_
        alone = top is bottom
        styles = ("-", (0, (5, 1.5)))
        for heights, colour, style in zip(self.before, palette, styles, strict=True):
            drawn.append(
                top.stairs(
                    heights, self.edges, fill=True, color=colour, alpha=2 * shade(top)
                )
            )
            if not alone:
                top.stairs(heights, self.edges, color=colour, ls=style, lw=1.3)
        for heights, colour, style in zip(self.after, palette, styles, strict=True):
            options = {"color": colour, "ls": style, "lw": 1.8}
            if self.points is None:
                lines.append(bottom.stairs(heights, self.edges, **options))
            else:
                lines.append(bottom.plot(self.points, heights, **options)[0])
        self.before_, self.after_ = tuple(drawn), tuple(lines)
        for one in (top, bottom):
            one.set_ylim(bottom=0)
            one.set_ylabel("density")
            one.yaxis.set_major_locator(MaxNLocator(6 if alone else 3))
            one.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            if self.points is not None:
                one.set_xlim(self.points[0], self.points[-1])
        handles = [
            Line2D([], [], color=colour, ls=style, lw=1.8, label=label)
            for colour, style, label in zip(palette, styles, labels, strict=True)
        ]
        self.legend_ = self._legend(handles, "filled: before, lines: after")

    def _plot_categories(self, palette: list[Any], labels: list[str]) -> None:
        top: Any
        bottom: Any
        drawn: list[Any] = []
        after: list[Any] = []
        top, bottom = self.axes_
        alone = top is bottom
        assert self.categories is not None
        places = np.arange(len(self.categories))
        for side, colour in enumerate(palette):
            at = places + (-0.2, 0.2)[side]
            fill = {
                "facecolor": colour,
                "hatch": ("", "////")[side],
                "edgecolor": colour,
            }
            if side:
                fill |= {"facecolor": "none"}
            drawn.append(
                top.bar(at, self.before[side], 0.38, label=labels[side],
                        alpha=0.5 if alone else 1.0, **fill)
            )  # fmt: skip
            if alone:
                after.append(
                    bottom.plot(at, self.after[side], "D", color=colour, ms=6)[0]
                )
            else:
                after.append(bottom.bar(at, self.after[side], 0.38, **fill))
        self.before_, self.after_ = tuple(drawn), tuple(after)
        long = max(map(len, self.categories)) * len(places) > 60
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        bottom.set_xticks(places, self.categories, **(turned if long else {}))
        bottom.set_xlim(-0.6, len(places) - 0.4)
        for one in (top, bottom):
            one.set_ylabel("share of rows")
        self.legend_ = self._legend(drawn, "bars: before, diamonds: after")

    def _legend(self, handles: list[Any], both: str) -> Any:
        top, bottom = self.axes_
        if top is bottom:
            return legend_above(top, handles, title=f"{both}\n{self.title}",
                                alignment="left")  # fmt: skip
        # Beside the title "Before", in two rows where one is too long for that.
        width = legend_width([len(handle.get_label()) for handle in handles])
        rows = [handles] if width + 5 < legend_room(top) else [[one] for one in handles]
        return legend_above(top, *rows, loc="lower right", bbox_to_anchor=(1.0, 1.0))


def _numbers(shown: Compared, law: Any, scale: float) -> dict[str, Any]:
    """Return histograms, and densities of the release."""
    pair = shown.first, shown.second
    low, high = central_range(pair)
    edges = bin_edges(pair, low, high)
    before = histogram(shown.first, edges), histogram(shown.second, edges)
    if not scale:
        return {"before": before, "after": before, "edges": edges}
    reach = noise_reach(law, scale)
    points = curve_points(
        pair, min(low, edges[0]) - reach, max(high, edges[-1]) + reach
    )
    densities = [mixture_density(one, law, scale, points) for one in pair]
    return {
        "before": before,
        "after": tuple(densities),
        "edges": edges,
        "points": points,
    }


def _categories(
    shown: Compared, channel: FloatArray, labels: Sequence[Hashable]
) -> dict[str, Any]:
    """Return shares before and after the draw, of rare categories together."""
    before = np.zeros((2, len(labels)))
    for side, one in enumerate((shown.first, shown.second)):
        before[side, one.support[:, 0].astype(np.intp)] = one.probabilities
    after = before @ channel
    names = [label_text(label) for label in labels]
    if len(names) > _BARS:
        order = np.argsort(-before.sum(axis=0), kind="stable")
        kept, rest = np.sort(order[: _BARS - 1]), order[_BARS - 1 :]
        before, after = (
            np.column_stack([shares[:, kept], shares[:, rest].sum(axis=1)])
            for shares in (before, after)
        )
        names = [names[place] for place in kept] + [f"{len(rest)} others"]
    return {
        "before": (before[0], before[1]),
        "after": (after[0], after[1]),
        "categories": names,
    }
