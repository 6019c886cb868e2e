"""What all displays share: axes to draw on, colours that suit them, and their ticks.

Matplotlib is imported by the functions, never with the module. Neutral colours come
from the style in force; hues are those of Okabe and Ito, which the colour-blind tell
apart, in an order that suits a light or a dark background.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skpuffer._text import value_text
from skpuffer.exceptions import ParameterError

_ON_LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_ON_DARK = ("#56B4E9", "#E69F00", "#CC79A7", "#F0E442", "#009E73", "#D55E00")
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P")
# Orders that are labelled where the axis reaches them.
_ORDERS = (1.001, 1.01, 1.1, 1.5, 2, 3, 5, 10, 30, 100, 1000)
_WEIGHTS = (0.2126, 0.7152, 0.0722)


def pyplot(owner: str) -> Any:
    """Import matplotlib.pyplot for a display.

    Raises
    ------
    ImportError
        It is not installed; says how to install it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{owner} draws with matplotlib, which is not installed: "
            "pip install 'skpuffer[plot]'"
        ) from error
    return plt


def single_axes(owner: str, ax: Any) -> Any:
    """Return the axes that were given, or those of a new figure."""
    plt = pyplot(owner)
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    if not hasattr(ax, "plot"):
        raise ParameterError(f"ax={type(ax).__name__} must be one matplotlib Axes")
    return tidy(ax)


def two_axes(owner: str, ax: Any, **layout: Any) -> tuple[Any, Any]:
    """Return two axes: those that were given, those of a new figure, or one twice."""
    plt = pyplot(owner)
    if ax is None:
        _, ax = plt.subplots(layout="constrained", **layout)
    given = [ax, ax] if hasattr(ax, "plot") else list(np.ravel(ax))
    if len(given) != 2 or not all(hasattr(one, "plot") for one in given):
        raise ParameterError(
            f"ax={type(ax).__name__} must be one matplotlib Axes, or a pair of them"
        )
    return tidy(given[0]), tidy(given[1])


def tidy(ax: Any) -> Any:
    """Leave out the two lines of the frame that carry no scale."""
    for side in ("top", "right"):
        if side in ax.spines:
            ax.spines[side].set_visible(False)
    return ax


def background(ax: Any) -> tuple[float, float, float]:
    """Return the colour behind the data, as RGB."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb, to_rgba

    for colour in (ax.get_facecolor(), ax.figure.get_facecolor()):
        red, green, blue, opacity = to_rgba(colour)
        if opacity:
            return red, green, blue
    # Transparent: text is made to be read there.
    red, green, blue = to_rgb(rcParams["text.color"])
    return 1 - red, 1 - green, 1 - blue


def hues(ax: Any, count: int, colors: Sequence[Any] | None = None) -> list[Any]:
    """Return so many colours, those given or those that suit the background."""
    chosen: Sequence[Any] | None = colors
    if chosen is None:
        chosen = _ON_LIGHT if _is_light(ax) else _ON_DARK
    if not len(chosen):
        raise ParameterError(
            f"colors={value_text(colors)} must hold at least one colour"
        )
    return [chosen[place % len(chosen)] for place in range(count)]


def shade(ax: Any) -> float:
    """Return the opacity of a shaded area, which needs more of it on dark ground."""
    return 0.15 if _is_light(ax) else 0.2


def _is_light(ax: Any) -> bool:
    return bool(np.dot(background(ax), _WEIGHTS) > 0.4)


def ink(ax: Any, share: float = 1.0) -> tuple[float, ...]:
    """Return the colour of text, faded to a share of its contrast."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    text, behind = to_rgb(rcParams["text.color"]), background(ax)
    return tuple(share * t + (1 - share) * b for t, b in zip(text, behind, strict=True))


def legend_above(ax: Any, *rows: Any, **options: Any) -> Any:
    """Lay a legend above the data, which it therefore never covers.

    Parameters
    ----------
    ax : matplotlib Axes
    *rows : lists of artists
        Each begins a row of its own; by default all that have a label.
    **options
        Of matplotlib's `legend`.
    """
    from matplotlib.lines import Line2D

    given = [list(row) for row in rows if len(row)]
    given = given or [ax.get_legend_handles_labels()[0]]
    # As many columns as there is room for.
    room = legend_room(ax)
    for most in range(max(map(len, given)), 0, -1):
        lines = [
            row[start : start + most]
            for row in given
            for start in range(0, len(row), most)
        ]
        widths = [
            max(len(line[place].get_label()) for line in lines if place < len(line))
            for place in range(most)
        ]
        if legend_width(widths) <= room:
            break
    columns = max(map(len, lines))
    nothing = Line2D([], [], ls="", label=" ")
    padded = [line + [nothing] * (columns - len(line)) for line in lines]
    settings = {
        "loc": "lower left",
        "bbox_to_anchor": (0.0, 1.0),
        "ncols": columns,
        "frameon": False,
        "borderaxespad": 0.2,
        "columnspacing": 1.4,
        "handlelength": 2.4,
    }
    # Matplotlib fills columns first.
    handles = [line[place] for place in range(columns) for line in padded]
    return ax.legend(handles=handles, **(settings | options))


def legend_room(ax: Any) -> float:
    """Return the width of the axes in units of the font's size."""
    from matplotlib import rcParams

    return float(ax.bbox.width / ax.figure.dpi * 72 / rcParams["font.size"])


def legend_width(letters: Sequence[int]) -> float:
    """Return how wide a row of a legend is, about, for labels of so many letters."""
    return sum(0.55 * count + 4.6 for count in letters)


def log_order(alpha: Any) -> Any:
    """Return log(α − 1), the scale of an axis of Rényi orders."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(np.asarray(alpha, dtype=np.float64) - 1)


def order_of_log(value: Any) -> Any:
    """Return the α of a log(α − 1)."""
    with np.errstate(over="ignore"):
        return 1 + np.exp(value)


def order_axis(ax: Any, low: float, high: float) -> None:
    """Make x an axis of Rényi orders, on a scale of log(α − 1), with a little room."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    ax.set_xscale("function", functions=(log_order, order_of_log))
    room = 0.03 * (log_order(high) - log_order(low)) or 0.1
    ends = log_order([low, high]) + np.array([-room, room])
    ax.set_xlim(*order_of_log(ends))
    shown = [
        order for order in _ORDERS if ax.get_xlim()[0] <= order <= ax.get_xlim()[1]
    ]
    if len(shown) < 2:
        shown = sorted({low, high})
    ax.xaxis.set_major_locator(FixedLocator(shown))
    ax.xaxis.set_major_formatter(FixedFormatter([f"{order:.4g}" for order in shown]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("Rényi order α")


def number_axis(ax: Any, which: str, values: Any, *, log: bool | None = None) -> bool:
    """Scale an axis of positive numbers, by decades where they span enough of one.

    Returns
    -------
    bool
        Whether the scale is logarithmic.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    seen = np.asarray(values, dtype=np.float64)
    seen = seen[np.isfinite(seen)]
    ratio = seen.max() / seen.min() if len(seen) and seen.min() > 0 else 1.0
    if log is None:
        log = bool(ratio > 6)
    if not log:
        return False
    axis = getattr(ax, f"{which}axis")
    getattr(ax, f"set_{which}scale")("log")
    if ratio < 2000:
        # Labels of a narrow axis would run into one another; of decades alone two are
        # needed.
        low, high = np.log10([seen.min(), seen.max()])
        length = max(len(f"{value:g}") for value in (seen.min(), seen.max()))
        room = (3 * (high - low) + 1) * (0.62 * length + 0.6)
        crowded = which == "x" and room > legend_room(ax)
        crowded &= np.floor(high) > np.ceil(low)
        axis.set_major_locator(LogLocator(subs=(1,) if crowded else (1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    return True


def short(value: float) -> str:
    """Write a number in three digits, in full where that is short."""
    return f"{float(f'{value:.3g}'):g}"
