"""What the metrics are given beside samples: orders, regularisations, Gram matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skpuffer._text import item_text, value_text
from skpuffer._validation import read_table
from skpuffer.core.gram import check_grid
from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import ParameterError


def read_grid(alpha: Any, reg: Any) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Return orders and λ in one dimension, and the shape of the result.

    Raises
    ------
    ParameterError
        One is not a number or a one-dimensional array of them, or is out of range.
    """
    orders, levels = _numbers("alpha", alpha), _numbers("reg", reg)
    _check_each("alpha", alpha, lambda order: check_grid([order], []))
    _check_each("reg", reg, lambda level: check_grid([], [level]))
    return orders.ravel(), levels.ravel(), orders.shape + levels.shape


def _check_each(name: str, given: Any, check: Callable[[float], object]) -> None:
    """Check numbers one by one, and show no single one of what may be data."""
    among = given if np.ndim(given) else ()
    for value in np.ravel(given).tolist():
        try:
            check(float(value))
        except ValueError as error:
            said = str(error).partition(" must ")[2]
            raise ParameterError(
                f"{name}={item_text(float(value), among)} must {said}"
            ) from None


def _numbers(name: str, value: Any) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.empty((0, 0))
    mixed = not isinstance(value, np.ndarray) and array.ndim == 1
    booleans = mixed and any(isinstance(item, (bool, np.bool_)) for item in value)
    if array.dtype.kind not in "iuf" or array.ndim > 1 or not array.size or booleans:
        raise ParameterError(
            f"{name}={value_text(value)} must be a number, or a non-empty one-dimensional "
            "array of numbers"
        )
    return array.astype(np.float64)


def shaped(found: FloatArray, shape: tuple[int, ...]) -> Any:
    """Return a float for an empty shape, an array otherwise."""
    return found.reshape(shape) if shape else float(found[0, 0])


def read_gram(X: Any, Y: Any, K_yx: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return precomputed Gram blocks as float64 arrays whose shapes fit.

    Raises
    ------
    ParameterError
        `K_yx` is missing.
    ValueError
        The shapes do not fit, or a block is not finite.
    """
    if K_yx is None:
        raise ParameterError(
            "metric='precomputed' takes X=k(X, X), Y=k(Y, Y) and K_yx=k(Y, X), and "
            "K_yx is missing"
        )
    blocks = read_table(X, "X"), read_table(Y, "Y"), read_table(K_yx, "K_yx")
    for block, name in zip(blocks[:2], "XY", strict=True):
        if block.shape[0] != block.shape[1]:
            raise ValueError(
                f"{name} has shape {block.shape}, and with metric='precomputed' it is "
                "the kernel of a sample with itself: it must be square"
            )
    wanted = len(blocks[1]), len(blocks[0])
    if blocks[2].shape != wanted:
        turned = "; transpose it" if blocks[2].shape == wanted[::-1] else ""
        raise ValueError(
            f"K_yx has shape {blocks[2].shape}, and {wanted} is needed: a row for each "
            f"row of Y, a column for each row of X{turned}"
        )
    return blocks
