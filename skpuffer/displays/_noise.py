"""How much noise each mechanism needs, over the Rényi order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from skpuffer._checks import column_position, numbers_in
from skpuffer._text import capitalised, value_text
from skpuffer.comparison import compare_mechanisms, count_lazy_rows
from skpuffer.core.laws import NoiseLaw
from skpuffer.displays._canvas import (
    DASHES,
    MARKERS,
    hues,
    ink,
    legend_above,
    number_axis,
    order_axis,
    pyplot,
    single_axes,
)
from skpuffer.exceptions import ParameterError
from skpuffer.reuse import reuse_fits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D


class NoiseDisplay:
    """Noise against the Rényi order, for laws, rules and budgets.

    A colour and a marker for each law and rule, a kind of line for each ε. At a fixed
    ε noise grows with the order since the promise does.

    Parameters
    ----------
    table : pandas.DataFrame
        A line each of `law`, `calibration`, `epsilon`, `alpha`: `noise_std` and
        `noise_to_spread`.
    column : str or None
        The column whose noise it is; None for a mean over several columns, where
        `noise_std` has no meaning.
    delta : float, optional
        Where the budgets are the ε of (ε, δ) promises.

    Attributes
    ----------
    lines_ : dict of matplotlib Line2D
        By (law, calibration, epsilon).
    legend_ : matplotlib Legend
    ax_, figure_ : matplotlib Axes and Figure

    See Also
    --------
    skpuffer.compare_mechanisms : The table at one order and ε.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer.displays import NoiseDisplay
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> display = NoiseDisplay.from_frame(
    ...     df, secret="sex", alphas=[2, 8], epsilons=[1], laws=["laplace"]
    ... )
    >>> display.table[["alpha", "noise_std"]].round(2)
       alpha  noise_std
    0    2.0       1.01
    1    8.0       1.30
    """

    lines_: dict[tuple[str, str, float], Line2D]
    legend_: Legend
    ax_: Axes
    figure_: Figure

    def __init__(
        self, table: pd.DataFrame, *, column: str | None, delta: float | None = None
    ) -> None:
        self.table = table
        self.column = column
        self.delta = delta

    @classmethod
    def from_frame(
        cls,
        X: Any,
        *,
        secret: Any,
        alphas: Sequence[float] = (1.5, 2, 4, 8, 16, 32),
        epsilons: Sequence[float] = (0.5, 1, 2),
        laws: Sequence[str | NoiseLaw] = ("laplace", "gaussian"),
        calibrations: Sequence[str] = ("transport",),
        scope: str = "joint",
        column: Any = None,
        relative: bool | None = None,
        ax: Axes | None = None,
        **parameters: Any,
    ) -> Self:
        """Fit every mechanism at every order and ε, and draw; nothing is released.

        Parameters
        ----------
        X : frame or array-like of shape (n, d)
            The columns to release, and the secret where it is named.
        secret : str, int, list of them, or array-like of shape (n,)
            As in `compare_mechanisms`.
        alphas : sequence of float
            Finite orders above 1.
        epsilons : sequence of float
            Budgets, nats.
        laws : sequence of {"laplace", "gaussian", "exponential"} or NoiseLaw
        calibrations : sequence of str
            Rules; those that cannot serve such a release are left out.
        scope : {"joint", "column"}, default="joint"
        column : str or int, optional
            The released column whose noise is shown. None: the only one, or the mean
            over all of noise divided by spread.
        relative : bool, optional
            As in `plot`.
        ax : matplotlib Axes, optional
            By default those of a new figure.
        **parameters
            Further parameters of the estimators (`delta`, `bounds`, `power`, ...);
            `prior` and `sample_weight` as in `fit`.

        Returns
        -------
        NoiseDisplay

        Raises
        ------
        ParameterError, ValueError
            As `compare_mechanisms` does, and for an unknown column.
        """
        pyplot(cls.__name__)
        for name in ("alpha", "epsilon", "scopes"):
            if name in parameters:
                instead = "scope=..." if name == "scopes" else f"{name}s=[...]"
                raise ParameterError(
                    f"{name}={value_text(parameters[name])}: a display of noise takes "
                    f"{instead}"
                )
        orders = numbers_in("alphas", alphas, above=1.0)
        budgets = numbers_in("epsilons", epsilons, above=0.0)
        X, secret, parameters = count_lazy_rows(X, secret, parameters)
        found = []
        shown = None if column is None else column
        with reuse_fits(1):
            for epsilon in budgets:
                for alpha in orders:
                    lines = compare_mechanisms(
                        X,
                        secret=secret,
                        laws=laws,
                        calibrations=calibrations,
                        scopes=[scope],
                        alpha=alpha,
                        epsilon=epsilon,
                        **parameters,
                    )
                    names = list(dict.fromkeys(lines["column"]))
                    if column is not None:
                        shown = names[column_position(column, names, "column")]
                        lines = lines[lines["column"] == shown]
                    elif len(names) == 1:
                        shown = names[0]
                    keys = ["law", "calibration"]
                    values = lines.groupby(keys, sort=False)[
                        ["noise_std", "noise_to_spread"]
                    ]
                    found.append(
                        values.mean().reset_index().assign(epsilon=epsilon, alpha=alpha)
                    )
        table = pd.concat(found, ignore_index=True)
        if shown is None:
            table["noise_std"] = math.nan
        keys = ["law", "calibration", "epsilon", "alpha"]
        table = table[[*keys, "noise_std", "noise_to_spread"]]
        display = cls(table, column=shown, delta=parameters.get("delta"))
        return display.plot(ax, relative=relative)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        relative: bool | None = None,
        colors: Sequence[Any] | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        relative : bool, optional
            Whether to show the noise's standard deviation divided by the column's, and
            not in the column's units. None: where several columns are averaged.
        colors : sequence of colours, optional
            One for each law and rule.
        **line_options
            Of matplotlib's `plot`, for every line.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            Several columns are shown in units of one.
        """
        if relative is None:
            relative = self.column is None
        if not relative and self.column is None:
            raise ParameterError(
                "relative=False shows noise in a column's units, and several columns "
                "are averaged: choose one with column='...'"
            )
        axes: Any = single_axes(type(self).__name__, ax)
        self.ax_, self.figure_, self.lines_ = axes, axes.figure, {}
        value = "noise_to_spread" if relative else "noise_std"
        table = self.table
        mechanisms = list(
            dict.fromkeys(zip(table["law"], table["calibration"], strict=True))
        )
        budgets = list(dict.fromkeys(table["epsilon"]))
        palette = hues(axes, len(mechanisms), colors)
        for place, (law, rule) in enumerate(mechanisms):
            for turn, epsilon in enumerate(budgets):
                here = table[
                    (table["law"] == law)
                    & (table["calibration"] == rule)
                    & (table["epsilon"] == epsilon)
                ]
                options = {
                    "color": palette[place],
                    "marker": MARKERS[place % len(MARKERS)],
                    "ms": 4.5,
                    "ls": DASHES[turn % len(DASHES)],
                    "lw": 1.6,
                } | line_options
                key = law, rule, float(epsilon)
                (self.lines_[key],) = axes.plot(here["alpha"], here[value], **options)
        order_axis(axes, table["alpha"].min(), table["alpha"].max())
        if not number_axis(axes, "y", table[value]):
            axes.set_ylim(bottom=0)
        self._label(axes, relative)
        self.legend_ = self._legend(axes, mechanisms, budgets)
        return self

    def _label(self, ax: Any, relative: bool) -> None:
        laws = set(self.table["law"])
        noise = f"{capitalised(min(laws))} noise" if len(laws) == 1 else "noise"
        named = "mean over columns" if self.column is None else f"of {self.column}"
        if not relative:
            ax.set_ylabel(f"{noise}, standard deviation\n(units {named})")
            return
        ax.set_ylabel(f"{noise} / spread ({named})")
        low, high = ax.get_ylim()
        if low < 1 < high:
            line = ax.axhline(1, color=ink(ax, 0.35), lw=1, zorder=0)
            line.set_label("_spread")

    def _legend(self, ax: Any, mechanisms: list[Any], budgets: list[float]) -> Any:
        from matplotlib.lines import Line2D

        handles: list[list[Any]] = [[], []]
        laws, rules = ({one[part] for one in mechanisms} for part in (0, 1))
        for law, rule in mechanisms if len(mechanisms) > 1 else []:
            line = self.lines_[law, rule, budgets[0]]
            words = [capitalised(law)] if len(laws) > 1 else []
            words += [rule] if len(rules) > 1 else []
            style: dict[str, Any] = {
                "color": line.get_color(),
                "marker": line.get_marker(),
                "ms": 5,
            }
            handles[0].append(Line2D([], [], label=", ".join(words), **style))
        suffix = "" if self.delta is None else f" at δ = {self.delta:g}"
        for turn, epsilon in enumerate(budgets):
            style = {"color": ink(ax, 0.8), "ls": DASHES[turn % len(DASHES)]}
            handles[1].append(Line2D([], [], label=f"ε = {epsilon:g}{suffix}", **style))
        return legend_above(ax, *handles)
