"""What is looked at when rows are released: that the promise of fit is still the one.

Nothing here draws noise or changes an estimator.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from skpuffer._statements import zero_noise_text
from skpuffer.accounting import Guarantee
from skpuffer.exceptions import (
    AlteredScaleWarning,
    ParameterError,
    ReproducibleNoiseWarning,
    ZeroNoiseWarning,
)

# Past the caller, `_release` and scikit-learn's wrapper of transform, at the user.
_STACK = 5


def refuse_release(X: Any, seed: int | None, guarantee: Guarantee) -> None:
    """Refuse a release that the guarantee does not describe, or that undoes it.

    Raises
    ------
    ParameterError
        `random_state` was set after fit.
    ValueError
        The index, which a release keeps, is called as the secret is.
    """
    if seed is not None and not guarantee.seeded:
        raise ParameterError(
            f"random_state={seed} was set after fit, whose guarantee says that the noise "
            "is not seeded: fit again, or leave it at None"
        )
    index = getattr(getattr(X, "index", None), "names", ())
    named = [name for name in index if name is not None and name in guarantee.secret]
    if named:
        raise ValueError(
            f"the index of X is called {named[0]!r}, as the secret is, and a release "
            "keeps the index: X.reset_index(drop=True)"
        )


def warn_of_release(
    seed: int | None,
    unchanged: tuple[tuple[str, str], ...],
    scale: np.ndarray,
    guarantee: Guarantee,
) -> None:
    """Warn of a release that hides less than it seems to.

    Parameters
    ----------
    seed : int or None
    unchanged : tuple of (column, reason)
        Columns that need no noise.
    scale : ndarray of shape (k,)
        That the noise is drawn with.
    guarantee : Guarantee
        What fit found.
    """
    if seed is not None:
        warnings.warn(
            f"random_state={seed} makes this noise repeatable: whoever "
            "knows or guesses the seed can subtract it, and copies of this "
            "estimator (workers, branches, pickles) repeat it. Leave it at None "
            "for data that matter",
            ReproducibleNoiseWarning,
            stacklevel=_STACK,
        )
    less = np.flatnonzero(np.asarray(scale) < np.asarray(guarantee.scale))
    if len(less):
        column = int(less[0])
        warnings.warn(
            f"scale_ of column {guarantee.columns[column]!r} is {scale[column]:.4g}, and "
            f"fit found {guarantee.scale[column]:.4g}: the guarantee does not hold for "
            "less noise; fit again",
            AlteredScaleWarning,
            stacklevel=_STACK,
        )
    if unchanged:
        warnings.warn(zero_noise_text(unchanged), ZeroNoiseWarning, stacklevel=_STACK)
