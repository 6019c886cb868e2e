"""Labels, numbers and lists as sentences show them; the standard library alone."""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

_LISTED = 8
# A longer text, or more items, may be data that were passed by mistake.
_MOST_LETTERS, MOST_ITEMS = 60, 10
_SCALAR = (numbers.Number, datetime.date, datetime.time, datetime.timedelta, type(None))


def value_text(value: Any) -> str:
    """Write the value of a parameter as a message shows it.

    What is short and plain is written as it is, and all else by its type and size:
    data that were passed by mistake are no message, which may end in a log.

    Examples
    --------
    >>> value_text("auto"), value_text((0, 1)), value_text([[30.5, 1.0], [31.5, 0.0]])
    ("'auto'", '(0, 1)', 'a list of 2')
    """
    text = _plain_text(value)
    return _kind_text(value) if text is None else text


def item_text(item: Any, among: Any) -> str:
    """Write one of several items; by its type alone where they may be data.

    Examples
    --------
    >>> item_text("age", ["age", "pay"]), item_text(30.5, [30.5] * 100)
    ("'age'", 'a float')
    >>> item_text(30.5, [[30.5, 1.0]])
    'a float'
    """
    if getattr(among, "shape", ()) or len(among) > MOST_ITEMS:
        return _kind_text(item)
    rows = any(hasattr(one, "__len__") and not isinstance(one, str) for one in among)
    if rows and isinstance(item, (str, numbers.Number)):
        return _kind_text(item)
    return value_text(item)


def _plain_text(value: Any, *, within: bool = False) -> str | None:
    """Return a short and plain value as it is written in code; None for another."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # 2.0, and not np.float64(2.0)
    if isinstance(value, (str, bytes)):
        return repr(value) if len(value) <= _MOST_LETTERS else None
    if isinstance(value, _SCALAR):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if type(value) in (list, set, frozenset) and within:
        return None  # rows
    if type(value) not in (list, tuple, set, frozenset, dict):
        return None
    if len(value) > MOST_ITEMS:
        return None
    items = list(value.items()) if isinstance(value, dict) else list(value)
    if not all(_is_plain(item) for item in items):
        return None
    if isinstance(value, dict):
        pairs = [f"{_plain_text(a)}: {_plain_text(b)}" for a, b in items]
        return "{" + ", ".join(pairs) + "}"
    written = ", ".join(str(_plain_text(item, within=True)) for item in items)
    if isinstance(value, tuple):
        return f"({written},)" if len(items) == 1 else f"({written})"
    return f"[{written}]" if isinstance(value, list) else f"{{{written}}}"


def _is_plain(item: Any) -> bool:
    return _plain_text(item, within=True) is not None


def _kind_text(value: Any) -> str:
    """Write the type of a value, and its size where it has one."""
    kind = type(value).__name__
    article = "an" if kind[0] in "AEIOUaeiou" or kind == "ndarray" else "a"
    size = getattr(value, "shape", None)
    if isinstance(value, str):
        kind, article, size = "text", "a", (f"{len(value)} characters",)
    elif not isinstance(size, tuple):
        size = (len(value),) if hasattr(value, "__len__") else ()
    if not size or isinstance(value, type):
        return f"{article} {kind}"
    return f"{article} {kind} of {' × '.join(map(str, size))}"


def label_text(label: Hashable) -> str:
    """Write a secret value as a reader expects it: 1.0 as 1, a tuple as a / b."""
    if isinstance(label, tuple):
        return " / ".join(label_text(part) for part in label)
    if isinstance(label, float) and math.isinf(label):
        return "∞"
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return str(label)


def number_text(value: float) -> str:
    """Write a bound in at most six digits, rounded up where it has more."""
    short = f"{value:.6g}"
    if float(short) < value:
        exponent = math.floor(math.log10(value)) - 5
        short = f"{(round(value / 10.0**exponent) + 1) * 10.0**exponent:.6g}"
    return short


def order_text(alpha: float) -> str:
    """Write a Rényi order in at most six digits, rounded down where it has more.

    A bound at an order holds at every smaller one.
    """
    short = f"{alpha:.6g}"
    if math.isinf(alpha) or float(short) == alpha:
        return label_text(alpha)
    if float(short) > alpha:
        exponent = math.floor(math.log10(alpha)) - 5
        short = f"{(round(alpha / 10.0**exponent) - 1) * 10.0**exponent:.6g}"
    return label_text(float(short)) if float(short) > 1 else str(alpha)


def listed(items: list[str]) -> str:
    """Join a list with commas, cut short where it is long."""
    if len(items) <= _LISTED:
        return ", ".join(items)
    return ", ".join(items[:_LISTED]) + f", … {len(items) - _LISTED} more"


def group_text(prior: Hashable, secret: Hashable) -> str:
    """Name a secret value, or a pair of them, under a prior."""
    shown = label_text(secret)
    return shown if prior is None else f"{label_text(prior)}: {shown}"


def range_text(
    columns: Sequence[str],
    bounds: Sequence[tuple[float, float] | None],
    categories: Sequence[tuple[Hashable, ...] | None],
) -> str:
    """Write the declared range of each column, or the size of its set."""
    shown = []
    for place, (column, ends) in enumerate(zip(columns, bounds, strict=True)):
        labels = categories[place] if categories else None
        if labels is not None:
            shown.append(f"{column} in {len(labels)} categories")
        elif ends is not None:
            shown.append(f"{column} in [{ends[0]:.10g}, {ends[1]:.10g}]")
    return listed(shown)


def law_text(name: str, parameters: Sequence[tuple[str, Any]]) -> str:
    """Write a noise law with its parameters."""
    shown = [
        f"{key} {value:.10g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in parameters
    ]
    return f"{name} ({', '.join(shown)})" if shown else name


def capitalised(text: str) -> str:
    """Begin with a capital letter, and leave the others as they are."""
    return text[:1].upper() + text[1:]


def mechanism_text(
    law: str,
    columns: Sequence[str],
    scale: Sequence[float],
    categories: Sequence[tuple[Hashable, ...] | None],
    metrics: Sequence[str | None],
) -> str:
    """Write what is drawn for each column: noise of a scale, or a category."""
    numbers, drawn = [], []
    for place, (column, size) in enumerate(zip(columns, scale, strict=True)):
        labels = categories[place] if categories else None
        if labels is None:
            numbers.append(f"{size:.4g} ({column})")
        else:
            drawn.append(
                f"{size:.4g} ({column}: {len(labels)} categories, {metrics[place]} "
                "distances)"
            )
    parts = []
    if numbers:
        parts.append(f"{capitalised(law)} noise of scale {listed(numbers)}")
    if drawn:
        parts.append(
            "categories drawn with P(y | x) ∝ exp(−d(x, y)/θ), in whole units of "
            f"2^−62, θ = {listed(drawn)}"
        )
    return "; ".join(parts)


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; what it cannot hold as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
