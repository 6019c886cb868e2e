"""Noise laws by name; a new law is one file here and one line below."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from skpuffer.core.laws._exponential import Exponential
from skpuffer.core.laws._gaussian import Gaussian
from skpuffer.core.laws._laplace import Laplace
from skpuffer.core.laws._protocol import NoiseLaw, standardised
from skpuffer.core.prior import FloatArray

# Each makes a law; parameters that a law has are keywords with defaults.
LAWS: dict[str, Callable[..., NoiseLaw]] = {
    law.name: law for law in (Laplace, Gaussian, Exponential)
}

__all__ = [
    "LAWS",
    "Exponential",
    "Gaussian",
    "Laplace",
    "NoiseLaw",
    "bears_a_taken_name",
    "is_own",
    "law_parameters",
    "missing_members",
    "shift_moments",
    "standardised",
]


def is_own(law: NoiseLaw) -> bool:
    """Whether a law is none of this package, or one with attributes put upon it.

    >>> is_own(Laplace())
    False
    """
    known = {name for name, _ in law_parameters(law)}
    return type(law) not in LAWS.values() or not known.issuperset(vars(law))


def bears_a_taken_name(law: NoiseLaw) -> bool:
    """Whether a law is called as another of this package is, or reads like it.

    >>> bears_a_taken_name(Laplace())
    False
    """
    if law.name.strip().casefold() not in LAWS:
        return False
    return is_own(law) or type(law) is not LAWS.get(law.name)


def law_parameters(law: NoiseLaw) -> tuple[tuple[str, Any], ...]:
    """Return the parameters of a law that is a dataclass: its fields.

    >>> law_parameters(Exponential(0.5)), law_parameters(Laplace())
    ((('power', 0.5),), ())
    """
    if not is_dataclass(law):
        return ()
    return tuple((one.name, getattr(law, one.name)) for one in fields(law))


def missing_members(law: Any) -> list[str]:
    """Return what a law has to have and something lacks, in alphabetical order.

    >>> missing_members(Laplace()), missing_members(1)[:2]
    ([], ['convex', 'homogeneity'])
    """
    return [name for name in _members() if not hasattr(law, name)]


@cache
def _members() -> list[str]:
    names = {*dir(NoiseLaw), *NoiseLaw.__annotations__}
    return sorted(name for name in names if not name.startswith("_"))


def shift_moments(
    law: NoiseLaw, shifts: FloatArray, *, alphas: FloatArray, scale: FloatArray
) -> FloatArray | None:
    """Return exp((α−1) D_α) of each shift, where the law has a quick way to it.

    Parameters
    ----------
    law : NoiseLaw
    shifts : ndarray of shape (m, k)
    alphas : ndarray of shape (a,)
        Finite orders above 1.
    scale : ndarray of shape (k,)

    Returns
    -------
    ndarray of shape (a, m) or None
        To a part of 2^-40.9; infinite beyond the floats. None for other laws, whose
        divergence may be another than that of the law they are derived from.

    Examples
    --------
    >>> shift_moments(Laplace(), np.ones((1, 1)), alphas=np.array([2.0]), scale=np.ones(1))
    array([[1.85729965]])
    """
    if is_own(law) or not isinstance(law, (Laplace, Gaussian)):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return law.moments(standardised(shifts, scale), alphas)
