"""Checks of single parameters, which every public function shares.

Each names the parameter, the value received and what is allowed.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from skpuffer._text import item_text, value_text
from skpuffer.exceptions import ParameterError


def number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    infinite: bool = False,
    among: Any = (),
) -> float:
    """Return a real parameter strictly between two limits.

    It may be one of several numbers, `among` which it is named in messages.
    """
    limits = f"a number above {above:g}" if math.isfinite(above) else "a number"
    limits += f" and below {below:g}" if math.isfinite(below) else ""
    limits += " (inf allowed)" if infinite else ", finite"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise ParameterError(f"{name}={item_text(value, among)} must be {limits}")
    found = float(value)
    in_range = above < found and (found < below or (infinite and found == math.inf))
    if not in_range:
        raise ParameterError(f"{name}={item_text(found, among)} must be {limits}")
    return found


def integer(
    name: str, value: Any, *, least: int, booleans: bool = False, among: Any = ()
) -> int:
    """Return an integer parameter from `least` upwards.

    It may be one of several, `among` which it is named in messages.
    """
    whole = is_integer(value) or (booleans and isinstance(value, bool))
    if not whole or value < least:
        raise ParameterError(
            f"{name}={item_text(value, among)} must be an integer from {least} upwards"
        )
    return int(value)


def boolean(name: str, value: Any) -> bool:
    """Return a parameter that is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{name}={value_text(value)} must be True or False")
    return bool(value)


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return a parameter that is one of several words."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(
            f"{name}={value_text(value)} must be one of {', '.join(allowed)}"
        )
    return value


def column_position(
    name: Hashable,
    names: Sequence[str],
    parameter: str,
    kind: str = "released column",
    among: Any = (),
) -> int:
    """Return where a column stands that is given by name, or by position in an array.

    It may be one of several, `among` which it is named in messages.
    """
    for known in (str(name), f"x{name}") if is_integer(name) else (str(name),):
        if known in names:
            return list(names).index(known)
    raise ParameterError(
        f"{parameter} names {item_text(name, among)}, which is not a {kind} "
        f"({', '.join(names)})"
    )


def numbers_in(
    name: str, given: Any, *, above: float = -math.inf, below: float = math.inf
) -> list[float]:
    """Return several real parameters strictly between two limits, in order, each once."""
    each = np.ravel(given).tolist()
    values = {
        number(name, value, above=above, below=below, among=each) for value in each
    }
    if not values:
        raise ParameterError(
            f"{name}={value_text(given)} must hold at least one number"
        )
    return sorted(values)


def orders(name: str, given: Any) -> np.ndarray:
    """Return Rényi orders above 1, of the shape that was given.

    What is not one is shown as a value of a parameter is: a column of data that
    stands here by mistake is not.
    """
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{name}={value_text(given)} must be numbers in (1, inf]"
        ) from None
    if not (found > 1).all():
        bad = float(found[~(found > 1)].flat[0])
        shown = item_text(bad, given if found.ndim else ())
        raise ParameterError(f"{name} must lie in (1, inf], got {shown}")
    return found


def refuse_class(law: Any, called: str) -> None:
    """Refuse a class where one of its instances belongs."""
    if isinstance(law, type):
        raise ParameterError(
            f"{called} is the class {law.__name__}: give an instance, {law.__name__}()"
        )


def refuse_swapped(estimator: Any, call: str) -> None:
    """Refuse data where a fitted estimator belongs, and show none of them.

    scikit-learn's message shows all that it is given.
    """
    if not hasattr(estimator, "fit") and not isinstance(estimator, type):
        raise ParameterError(
            f"estimator={value_text(estimator)} is no estimator: a fitted one comes "
            f"first, {call}"
        )


def as_list(spec: Any) -> list[Any]:
    """Return one column or several as a list; none where nothing is named."""
    if spec is None:
        return []
    return list(spec) if isinstance(spec, (list, tuple)) else [spec]


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number, and no truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(
        value, (bool, np.bool_)
    )
