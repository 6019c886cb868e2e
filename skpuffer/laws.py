"""Noise laws, and what it takes to write one: the door for laws of one's own.

A law is a class that says which noise it adds, and what a shift of that noise reveals at
most. With `AdditiveRelease` it becomes a mechanism like those of the package. Nothing
here knows of data.
"""

from __future__ import annotations

from collections.abc import Sequence

from skpuffer._checks import number, numbers_in, refuse_class
from skpuffer._text import value_text
from skpuffer.core.bits import BitSource, SeededBits, SystemBits
from skpuffer.core.grid import GRID_BITS, grid_step, scale_to_grid
from skpuffer.core.law_checks import ALPHAS, SHIFTS, LawCheck, LawError, checked
from skpuffer.core.laws import (
    Exponential,
    Gaussian,
    Laplace,
    NoiseLaw,
    missing_members,
    standardised,
)
from skpuffer.core.sampling import discrete_gaussian, release_on_grid, rounded_laplace
from skpuffer.core.sampling_blocks import exponential_power

__all__ = [
    "GRID_BITS",
    "BitSource",
    "Exponential",
    "Gaussian",
    "Laplace",
    "LawCheck",
    "NoiseLaw",
    "SeededBits",
    "SystemBits",
    "check_law",
    "discrete_gaussian",
    "exponential_power",
    "grid_step",
    "release_on_grid",
    "rounded_laplace",
    "scale_to_grid",
    "standardised",
]


def check_law(
    law: NoiseLaw,
    *,
    alphas: Sequence[float] = ALPHAS,
    shifts: Sequence[float] = SHIFTS,
    level: float = 1e-6,
) -> LawCheck:
    """Compare what a noise law states with quadrature of its density, and with draws.

    The promise of a release rests on the divergence that its law states. This looks for
    numbers that refute it, and is no proof: it sees some orders, shifts and scales, the
    density that `logpdf` states, and so many draws, which say nothing of far tails, nor
    whether rows have noise that is independent. That the noise on the grid has no larger
    divergence than the stated one is for the author of the law to prove.

    Looked at, at several scales: that the density is symmetric, has mass one and the
    stated standard deviation; that no stated divergence is below that of the density;
    that it is a sum over columns, the same for either sign and for several orders at
    once, grows with the shift and does not with the scale; `wasserstein_exponent` and
    `convex`, where they are stated; that `perturb` stays on the grid, adds noise that
    depends on its bits alone, writes where it should and refuses what it should; and its
    distribution, down to single steps of the grid.

    Parameters
    ----------
    law : NoiseLaw
        With its parameters: another value of them is another law.
    alphas : sequence of float
        Finite orders above 1; in place of those above the law's `max_order` that one is
        taken. α = ∞ is looked at where the law has it.
    shifts : sequence of float
        Positive, in units of the scale.
    level : float, default=1e-6
        Probability with which draws of the right distribution may be refused. The bits
        are always the same ones, and so is the answer.

    Returns
    -------
    LawCheck
        What is stated beside what was computed; prints as a sentence.

    Raises
    ------
    LawError
        Something failed: says what, where, and by how much.
    ParameterError
        An order, a shift or the level is out of range.

    See Also
    --------
    skpuffer.AdditiveRelease : The mechanism of a law.

    Examples
    --------
    >>> from skpuffer.laws import Exponential, Laplace, check_law
    >>> check = check_law(Laplace(), alphas=[2, 8], shifts=[0.1, 1])
    >>> (check.stated / check.computed).round(6)
    array([[1., 1.],
           [1., 1.]])

    A law may state an upper bound:

    >>> check = check_law(Exponential(0.5), alphas=[2, 8], shifts=[0.1, 1])
    >>> bool((check.stated > check.computed).all())
    True

    What is stated below the truth is refused:

    >>> class TooLittle(Laplace):
    ...     name = "too little"
    ...     def shift_divergence(self, shifts, *, alpha, scale):
    ...         return super().shift_divergence(shifts, alpha=alpha, scale=scale) / 2
    >>> check_law(TooLittle(), alphas=[2, 8], shifts=[0.1, 1])
    Traceback (most recent call last):
    ...
    skpuffer.exceptions.LawError: the divergence stated at α = 2, shift 0.1, scale 1, is
    0.0048221, and that of the density is 0.00964421: a release would reveal more than
    its guarantee says
    """
    refuse_class(law, "law")
    missing = missing_members(law)
    if missing:
        raise LawError(
            f"{value_text(law)} is no noise law: it lacks {', '.join(missing)}"
        )
    orders = numbers_in("alphas", alphas, above=1.0)
    places = numbers_in("shifts", shifts, above=0.0)
    level = number("level", level, above=0.0, below=1.0)
    most = getattr(law, "max_order", float("inf"))
    return checked(
        law, list(dict.fromkeys(min(a, most) for a in orders)), places, level
    )
