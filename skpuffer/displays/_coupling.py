"""The monotone coupling of one column: where each share of the rows would move."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from skpuffer._checks import as_list, choice
from skpuffer._text import label_text, value_text
from skpuffer._validation import read_sample, take_columns
from skpuffer.comparison import names_columns
from skpuffer.core.coupling import Coupling, couple
from skpuffer.core.prior import FloatArray
from skpuffer.displays._canvas import hues, ink, legend_above, pyplot, short, two_axes
from skpuffer.displays._pairs import compared_pairs
from skpuffer.exceptions import ParameterError
from skpuffer.mechanisms import RenyiPufferfishLaplace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

# A coupling of more steps than these is shown at so many levels.
_STEPS = 1000
_KINDS = ("both", "quantiles", "shifts")


class CouplingDisplay:
    """Two conditional distributions of a column, and the shifts between them.

    The quantile curves of the column given either secret value: the monotone coupling
    moves each level of the one to the same level of the other, and the distance is the
    shift that noise has to hide. Beside them, the share of the rows that moves at most
    so far. The rules weigh these shifts; "w_inf" looks at the largest alone.

    Parameters
    ----------
    column : str
    pair : (value, value)
    secret : str
        The secret's name.
    levels : ndarray of shape (m + 1,)
        Ascending, from 0 to 1; where the data have more steps, some thousand of them.
    first, second : ndarray of shape (m,)
        The quantiles at each level but the first, drawn up to it.
    sizes, shares : ndarray
        Absolute shifts, ascending, and the share of rows that moves at most so far.
    mean_shift, largest_shift : float
        Of the absolute shifts, of all rows.
    largest_at : (level, from, to)
        Where the largest is.

    Attributes
    ----------
    first_, second_ : matplotlib StepPatch
        The quantile curves.
    between_ : matplotlib PolyCollection
        The shifts.
    shares_ : matplotlib Line2D
        The distribution of the shifts.
    legend_ : matplotlib Legend
    axes_ : tuple of matplotlib Axes
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.displays import CouplingDisplay
    >>> df = pd.DataFrame({"age": [30, 31, 40, 45] * 10, "sex": ["F", "M"] * 20})
    >>> display = CouplingDisplay.from_frame(df, secret="sex", column="age")
    >>> display.pair, display.mean_shift, display.largest_shift
    (('F', 'M'), 3.0, 5.0)
    """

    first_: StepPatch
    second_: StepPatch
    between_: PolyCollection
    shares_: Line2D
    legend_: Legend
    axes_: tuple[Axes, ...]
    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        column: str,
        pair: tuple[Hashable, Hashable],
        secret: str,
        levels: FloatArray,
        first: FloatArray,
        second: FloatArray,
        sizes: FloatArray,
        shares: FloatArray,
        mean_shift: float,
        largest_shift: float,
        largest_at: tuple[float, float, float],
    ) -> None:
        self.column = column
        self.pair = pair
        self.secret = secret
        self.levels = levels
        self.first = first
        self.second = second
        self.sizes = sizes
        self.shares = shares
        self.mean_shift = mean_shift
        self.largest_shift = largest_shift
        self.largest_at = largest_at

    @classmethod
    def from_frame(
        cls,
        X: Any,
        *,
        secret: Any,
        column: Any,
        pair: tuple[Hashable, Hashable] | None = None,
        prior: Any = None,
        prior_value: Hashable = None,
        sample_weight: Any = None,
        ax: Any = None,
    ) -> Self:
        """Couple a column given two secret values, and draw.

        Parameters
        ----------
        X : frame or array-like of shape (n, d)
            Of whose columns only those that are named are looked at.
        secret : str, int, list of them, or array-like of shape (n,)
            The secret's column or columns in X; or its values, one a row. A list as
            long as X holds values.
        column : str or int
            A column of numbers.
        pair : (value, value), optional
            Two secret values; by default those with the largest shift.
        prior : str, int, list of them, or array-like of shape (n,), optional
            As `secret`.
        prior_value : hashable, optional
            Under which value of the prior; by default that of the largest shift.
        sample_weight : array-like of shape (n,), optional
        ax : matplotlib Axes or pair of them, optional
            As in `plot`.

        Returns
        -------
        CouplingDisplay

        Raises
        ------
        ParameterError
            The column, the pair or the value of the prior is unknown.
        ValueError
            The column is not numeric, or values are missing.
        """
        pyplot(cls.__name__)
        named = [spec for spec in (secret, prior) if names_columns(spec, X)]
        if column is None or isinstance(column, (list, tuple)):
            raise ParameterError(
                f"column={value_text(column)} must be the name of one column"
            )
        if column in [name for spec in named for name in as_list(spec)]:
            raise ParameterError(
                f"column={value_text(column)} is the secret or the prior itself"
            )
        (name,), (values,), _ = take_columns(X, column, "column")
        given = {}
        for parameter, spec in (("secret", secret), ("prior", prior)):
            if spec is not None and names_columns(spec, X):
                names, columns, _ = take_columns(X, spec, parameter)
                spec = pd.DataFrame(dict(zip(names, columns, strict=True)))
            given[parameter] = spec
        sample = read_sample(
            RenyiPufferfishLaplace(),
            pd.DataFrame({name: values}),
            None,
            given["secret"],
            given["prior"],
            sample_weight,
        )
        found = compared_pairs(sample.priors([0]), pair, prior_value)
        plans = [couple(one.first, one.second, np.ones(1)) for one in found]
        best = int(np.argmax([abs(_shifts(plan)).max() for plan in plans]))
        display = cls(
            column=name if found[best].prior is None
            else f"{name} ({label_text(found[best].prior)})",
            pair=found[best].labels,
            secret=" / ".join(sample.secret.names),
            **_curves(plans[best]),
        )  # fmt: skip
        return display.plot(ax)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: str | None = None,
        colors: Sequence[Any] | None = None,
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or pair of them, optional
            By default those of a new figure, side by side.
        kind : {"both", "quantiles", "shifts"}, optional
            Which of the two parts. By default both, or on a single axes the quantiles.
        colors : pair of colours, optional
            One for each secret value.

        Returns
        -------
        self
        """
        one = ax is not None and hasattr(ax, "plot")
        kind = choice("kind", kind or ("quantiles" if one else "both"), _KINDS)
        if kind == "both" and one:
            raise ParameterError(
                "kind='both' needs two axes, and ax is one: give a pair, or "
                "kind='quantiles' or 'shifts'"
            )
        layout: dict[str, Any] = {"ncols": 2, "width_ratios": (3, 2)}
        if kind != "both" and ax is None:
            plt = pyplot(type(self).__name__)
            ax = plt.subplots(layout="constrained")[1]
        left, right = two_axes(type(self).__name__, ax, **layout)
        self.axes_ = (left, right) if kind == "both" else (left,)
        self.ax_, self.figure_ = left, left.figure
        palette = hues(left, 2, colors)
        if kind != "shifts":
            self._plot_quantiles(left, palette)
        if kind != "quantiles":
            self._plot_shifts(right)
        return self

    def _plot_quantiles(self, ax: Any, palette: list[Any]) -> None:
        twice = np.repeat(self.levels, 2)[1:-1]
        low, high = np.repeat(self.first, 2), np.repeat(self.second, 2)
        self.between_ = ax.fill_between(
            twice, low, high, color=ink(ax, 0.15), lw=0, zorder=1,
            label="shift (arrow: the largest)",
        )  # fmt: skip
        curves = []
        for values, colour, style, label in zip(
            (self.first, self.second), palette, ("-", (0, (5, 1.5))), self.pair,
            strict=True,
        ):  # fmt: skip
            curves.append(
                ax.stairs(values, self.levels, baseline=None, color=colour, ls=style,
                          lw=1.8, label=f"{self.secret} = {label_text(label)}")
            )  # fmt: skip
        self.first_, self.second_ = curves
        level, start, end = self.largest_at
        if self.largest_shift:
            ax.annotate(
                "",
                (level, end),
                (level, start),
                arrowprops={"arrowstyle": "->", "color": ink(ax, 0.9), "shrinkA": 0,
                            "shrinkB": 0},
            )  # fmt: skip
        ax.set_xlim(0, 1)
        ax.set_xlabel("level (share of rows)")
        ax.set_ylabel(f"{self.column}, quantile")
        self.legend_ = legend_above(ax, [*curves, self.between_])

    def _plot_shifts(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator

        sizes = np.concatenate([[0.0], self.sizes])
        shares = np.concatenate([[0.0], self.shares])
        (self.shares_,) = ax.plot(
            sizes, shares, drawstyle="steps-post", color=ink(ax), lw=1.8
        )
        ax.plot([self.largest_shift], [1.0], "o", color=ink(ax), ms=5, clip_on=False)
        ax.axvline(self.mean_shift, color=ink(ax, 0.6), lw=1, ls="--", zorder=0)
        right = self.mean_shift > 0.5 * self.largest_shift
        ax.annotate(
            f"mean {short(self.mean_shift)}",
            (self.mean_shift, 0),
            xytext=(-4, 5) if right else (4, 5),
            textcoords="offset points",
            ha="right" if right else "left",
            color=ink(ax, 0.8),
        )
        ax.annotate(
            f"largest {short(self.largest_shift)}",
            (self.largest_shift, 1),
            xytext=(3, 6),
            textcoords="offset points",
            ha="right",
        )
        ax.set_xlim(0, 1.04 * self.largest_shift or 1.0)
        ax.set_ylim(0, 1.02)
        ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))
        ax.set_xlabel(f"|shift| at most\n(units of {self.column})")
        ax.set_ylabel("share of rows")


def _shifts(plan: Coupling) -> FloatArray:
    """Return the signed shift of each part of a coupling."""
    moved = plan.second.support[plan.columns, 0] - plan.first.support[plan.rows, 0]
    return np.asarray(moved, dtype=np.float64)


def _curves(plan: Coupling) -> dict[str, Any]:
    """Return the curves of a coupling, at no more levels than a picture shows."""
    shifts, mass = _shifts(plan), plan.mass / plan.mass.sum()
    first, second = (
        plan.first.support[plan.rows, 0],
        plan.second.support[plan.columns, 0],
    )
    ends = np.cumsum(mass)
    ends[-1] = 1.0
    size = np.abs(shifts)
    order = np.argsort(size, kind="stable")
    sizes, shares = size[order], np.cumsum(mass[order])
    last = np.append(np.diff(sizes) > 0, True)
    sizes, shares = sizes[last], shares[last]
    shares[-1] = 1.0
    far = int(size.argmax())
    known: dict[str, Any] = {
        "mean_shift": float(size @ mass),
        "largest_shift": float(size[far]),
    }
    # Of many parts those at even levels, the outermost and the largest.
    parts = np.arange(len(ends))
    if len(ends) > _STEPS:
        even = np.searchsorted(ends, np.linspace(0, 1, _STEPS + 1)[1:])
        parts = np.unique(np.concatenate([even, [0, far, len(ends) - 1]]))
    levels = np.concatenate([[0.0], ends[parts]])
    first, second = first[parts], second[parts]
    place = int(np.searchsorted(parts, far))
    known["largest_at"] = (
        float(levels[place] + levels[place + 1]) / 2,
        float(first[place]),
        float(second[place]),
    )
    if len(sizes) > _STEPS:
        kept = np.searchsorted(shares, np.linspace(0, 1, _STEPS + 1)[1:])
        kept = np.unique(np.minimum(kept, len(shares) - 1))
        sizes, shares = sizes[kept], shares[kept]
    return {
        "levels": levels,
        "first": first,
        "second": second,
        "sizes": sizes,
        "shares": shares,
        **known,
    }
