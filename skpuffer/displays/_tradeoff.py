"""Utility against privacy, from the results of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skpuffer._text import label_text, listed, value_text
from skpuffer.core.prior import FloatArray
from skpuffer.displays._canvas import (
    DASHES,
    MARKERS,
    hues,
    ink,
    legend_above,
    number_axis,
    order_axis,
    pyplot,
    shade,
    single_axes,
)
from skpuffer.exceptions import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

_SIGNS = {"alpha": "α", "epsilon": "ε", "delta": "δ"}
_LABELS = {"epsilon": "ε (nats)", "delta": "δ"}


class TradeoffDisplay:
    """The score of a model against a privacy parameter, a line for each other setting.

    Points are means over the folds of a search, bands their standard deviations: how
    much the folds differ, and no interval of confidence. Candidates without the privacy
    parameter (where a grid also has the step as "passthrough", say) are a level line to
    compare with. That a choice was made by scores on the data is covered by no
    guarantee.

    Parameters
    ----------
    privacy : str
        The privacy parameter.
    metric : str
        What is scored.
    n_folds : int
    lines : dict of {str: (x, mean, std)}
        By label, arrays in the order of the privacy parameter.
    baselines : dict of {str: (mean, std)}

    Attributes
    ----------
    lines_ : dict of {str: matplotlib Line2D}
        By label.
    bands_ : dict of {str: matplotlib PolyCollection}
    legend_ : matplotlib Legend or None
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from skpuffer import RenyiPufferfishLaplace
    >>> from skpuffer.displays import TradeoffDisplay
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 30, "sex": ["F", "M"] * 60})
    >>> model = make_pipeline(RenyiPufferfishLaplace(secret="sex"), Ridge())
    >>> name = "renyipufferfishlaplace__epsilon"
    >>> search = GridSearchCV(model, {name: [0.1, 1, 10]}, cv=3).fit(df, df["age"])
    >>> display = TradeoffDisplay.from_cv_results(
    ...     search.cv_results_, privacy=f"param_{name}"
    ... )
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('ε (nats)', 'test score (mean ± std of 3 folds)')
    """

    lines_: dict[str, Line2D]
    bands_: dict[str, PolyCollection]
    legend_: Legend | None
    ax_: Axes
    figure_: Figure

    def __init__(
        self,
        *,
        privacy: str,
        metric: str,
        n_folds: int,
        lines: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]],
        baselines: Mapping[str, tuple[float, float]],
    ) -> None:
        self.privacy = privacy
        self.metric = metric
        self.n_folds = n_folds
        self.lines = lines
        self.baselines = baselines

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        privacy: str,
        metric: str | None = None,
        lines: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the results of GridSearchCV, RandomizedSearchCV and their kind.

        Parameters
        ----------
        cv_results : mapping
            ``search.cv_results_``.
        privacy : str
            The privacy parameter, with or without ``param_`` before it. It holds numbers.
        metric : str, optional
            The name of the scorer where there are several; "score" where there is one.
        lines : sequence of str, optional
            The parameters that tell lines apart; by default all others that vary. Of
            candidates that agree in these and in the privacy parameter the best is
            shown.
        ax : matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        TradeoffDisplay

        Raises
        ------
        ParameterError
            There is no such parameter or metric, or the privacy parameter is no number.
        """
        pyplot(cls.__name__)
        params = [key for key in cv_results if key.startswith("param_")]
        privacy = _known(privacy, params, "privacy")
        means, deviations, metric = _scores(cv_results, metric)
        others = [key for key in params if key != privacy]
        if lines is None:
            others = [key for key in others if len({*map(_text, cv_results[key])}) > 1]
        else:
            given = [lines] if isinstance(lines, str) else list(lines)
            others = [_known(key, params, "lines") for key in given]
        short = _short_names(others)
        # Names of estimators and the like speak for themselves.
        plain = len(others) == 1 and all(
            not isinstance(value, (int, float, np.number))
            for value in cv_results[others[0]]
        )
        best: dict[tuple[str, float | None], tuple[float, float]] = {}
        for place, value in enumerate(cv_results[privacy]):
            label = ", ".join(
                ("" if plain else f"{short[key]} = ") + _text(cv_results[key][place])
                for key in others
                if not _is_missing(cv_results[key][place])
            )
            key = label, None if _is_missing(value) else _number(privacy, value)
            score = float(means[place]), float(deviations[place])
            if key not in best or score[0] > best[key][0] or np.isnan(best[key][0]):
                best[key] = score
        found: dict[str, Any] = {}
        for (label, at), score in best.items():
            if at is not None:
                found.setdefault(label, []).append((at, *score))
        if not found:
            raise ParameterError(
                f"privacy={value_text(privacy)} has no value in any candidate"
            )
        return cls(
            privacy=privacy.removeprefix("param_"),
            metric=metric,
            n_folds=sum(
                key.startswith("split") and key.endswith(f"_test_{metric}")
                for key in cv_results
            ),
            lines={
                label: tuple(np.array(sorted(points)).T)
                for label, points in found.items()
            },
            baselines={
                label or "without noise": score
                for (label, at), score in best.items()
                if at is None
            },
        ).plot(ax)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        colors: Sequence[Any] | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        colors : sequence of colours, optional
            One a line.
        **line_options
            Of matplotlib's `plot`, for every line.

        Returns
        -------
        self
        """
        axes: Any = single_axes(type(self).__name__, ax)
        self.ax_, self.figure_ = axes, axes.figure
        self.lines_, self.bands_, self.legend_ = {}, {}, None
        palette = hues(axes, len(self.lines), colors)
        for place, (label, (x, mean, std)) in enumerate(self.lines.items()):
            options = {
                "color": palette[place],
                "marker": MARKERS[place % len(MARKERS)],
                "ls": DASHES[place % len(DASHES)],
                "ms": 5,
                "lw": 1.8,
                "label": label,
            } | line_options
            (line,) = axes.plot(x, mean, **options)
            band = axes.fill_between(
                x,
                mean - std,
                mean + std,
                color=line.get_color(),
                alpha=shade(axes),
                lw=0,
            )
            self.lines_[label], self.bands_[label] = line, band
        for place, (label, (level, _)) in enumerate(self.baselines.items()):
            self.lines_[label] = axes.axhline(
                level, color=ink(axes, 0.6), lw=1.2, ls=DASHES[(place + 1) % len(DASHES)],
                label=label, zorder=1,
            )  # fmt: skip
        name = self.privacy.rpartition("__")[2]
        every = np.concatenate([x for x, *_ in self.lines.values()])
        if name == "alpha" and every.min() > 1 and np.isfinite(every).all():
            order_axis(axes, every.min(), every.max())
        else:
            number_axis(axes, "x", every)
            axes.set_xlabel(_LABELS.get(name, name))
        folds = f"(mean ± std of {self.n_folds} folds)"
        metric = "test score" if self.metric == "score" else self.metric
        axes.set_ylabel(f"{metric} {folds}")
        if len(self.lines_) > 1:
            self.legend_ = legend_above(axes, list(self.lines_.values()))
        return self


def _known(name: Any, params: list[str], parameter: str) -> str:
    """Return the key of a parameter of the search."""
    for key in (str(name), f"param_{name}"):
        if key in params:
            return key
    raise ParameterError(
        f"{parameter}={value_text(name)} is not a parameter of the search "
        f"({listed([key.removeprefix('param_') for key in params])})"
    )


def _scores(
    cv_results: Mapping[str, Any], metric: str | None
) -> tuple[FloatArray, FloatArray, str]:
    start = "mean_test_"
    known = [key.removeprefix(start) for key in cv_results if key.startswith(start)]
    if metric is None and len(known) == 1:
        metric = known[0]
    if metric not in known:
        raise ParameterError(
            f"metric={value_text(metric)} must be one of the scores of the search "
            f"({listed(known)})"
        )
    assert metric is not None
    return (
        np.asarray(cv_results[f"mean_test_{metric}"], dtype=np.float64),
        np.asarray(cv_results[f"std_test_{metric}"], dtype=np.float64),
        metric,
    )


def _is_missing(value: Any) -> bool:
    """Whether a candidate has no such parameter."""
    return value is np.ma.masked


def _text(value: Any) -> str:
    """Write a parameter's value: an estimator by the name of its class."""
    if hasattr(value, "get_params"):
        return type(value).__name__
    if hasattr(value, "__name__"):
        return str(value.__name__)
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:g}" if isinstance(value, float) else label_text(value)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ParameterError(
            f"privacy={name.removeprefix('param_')!r} must hold numbers, got {value!r}"
        ) from None


def _short_names(keys: list[str]) -> dict[str, str]:
    """Return the last part of each name, or all of it where that is not unique."""
    full = {key: key.removeprefix("param_") for key in keys}
    last = {key: name.rpartition("__")[2] for key, name in full.items()}
    ends = list(last.values())
    return {
        key: _SIGNS.get(last[key], last[key])
        if ends.count(last[key]) == 1
        else full[key]
        for key in keys
    }
