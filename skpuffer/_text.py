"""Labels, numbers and lists as sentences show them; the standard library alone."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

_LISTED = 8


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
