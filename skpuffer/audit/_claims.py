"""What is claimed, and how it is tested: the auditor's parameters, checked once."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from skpuffer._checks import boolean, choice, integer, number
from skpuffer._text import item_text, value_text
from skpuffer.audit._views import KernelSettings
from skpuffer.audit._witnesses import Witness, read_scorers
from skpuffer.core.concentration import LEAST_MARGIN_ORDER
from skpuffer.core.event_divergence import Divergence
from skpuffer.core.gram import LEAST_REG
from skpuffer.exceptions import ParameterError

CLAIMS = ("auto", "kernel_renyi")


@dataclass(frozen=True, eq=False)
class AuditSettings:
    """The parameters of an audit.

    Attributes
    ----------
    target : Divergence
        What the claim bounds.
    epsilon : float or None
        By how much.
    kernel_claim : bool
        Whether it is regularised kernel Rényi privacy.
    confidence : float
    kernel : KernelSettings
    regs : tuple of float
    witnesses : list of Witness
    seed : int
    """

    target: Divergence
    epsilon: float | None
    kernel_claim: bool
    confidence: float
    kernel: KernelSettings
    regs: tuple[float, ...]
    witnesses: list[Witness]
    seed: int

    @property
    def kernel_order(self) -> float:
        """The order at which kernel divergences are computed."""
        alpha = self.target.alpha
        return LEAST_MARGIN_ORDER if alpha is None else alpha

    @property
    def claim(self) -> str:
        """The claimed quantity in words."""
        ways = "the larger of both directions of " if self.target.symmetric else ""
        if self.kernel_claim:
            return f"{ways}the kernel Rényi divergence of order {self.kernel_order:g}"
        if self.target.alpha is not None:
            return f"{ways}the Rényi divergence of order {self.target.alpha:g}"
        if self.target.delta:
            return f"ε at δ = {self.target.delta:g}"
        return "ε"


def check_settings(params: Mapping[str, Any]) -> AuditSettings:
    """Check every parameter that does not depend on the data.

    Raises
    ------
    ParameterError
        Names the parameter, the value and what is allowed.
    """
    epsilon = params["epsilon"]
    if epsilon is not None:
        # Zero is a claim too: that both samples are of one distribution.
        epsilon = 0.0 if _is_zero(epsilon) else number("epsilon", epsilon, above=0.0)
    claim = choice("claim", params["claim"], CLAIMS)
    target = read_target(
        params["delta"], params["alpha"], boolean("symmetric", params["symmetric"])
    )
    if claim == "kernel_renyi" and not (
        target.alpha is not None and target.alpha >= LEAST_MARGIN_ORDER
    ):
        raise ParameterError(
            f"alpha={value_text(params['alpha'])} with claim='kernel_renyi' must be at "
            "least 2 "
            "(inf allowed): the margin of the kernel divergence is proved there"
        )
    seed = params["random_state"]
    regs = read_regs(params["reg"])
    return AuditSettings(
        target=target,
        epsilon=epsilon,
        kernel_claim=claim == "kernel_renyi",
        confidence=number("confidence", params["confidence"], above=0.0, below=1.0),
        kernel=_kernel(params["metric"], params["gamma"], params["n_components"]),
        regs=regs,
        witnesses=read_scorers(params["scorers"], regs),
        seed=0 if seed is None else integer("random_state", seed, least=0),
    )


def read_target(delta: Any, alpha: Any, symmetric: bool, among: Any = ()) -> Divergence:
    """Return the divergence of an (ε, δ) or a Rényi claim.

    What is given may be one of several, `among` which it is named in messages.

    Raises
    ------
    ParameterError
        One is out of range, or both are given.
    """
    if not _is_zero(delta):
        try:
            delta = number("delta", delta, above=0.0, below=1.0)
        except ParameterError:
            raise ParameterError(
                f"delta={item_text(delta, among)} must be a number in [0, 1): the share "
                "of outcomes that an (epsilon, delta) promise leaves open"
            ) from None
    if alpha is None:
        return Divergence(delta=float(delta), symmetric=symmetric)
    try:
        order = number("alpha", alpha, above=1.0, infinite=True)
    except ParameterError:
        raise ParameterError(
            f"alpha={item_text(alpha, among)} must be a number above 1 (inf allowed): a "
            "claim of Rényi privacy has an order above 1; alpha=None is for (epsilon, "
            "delta) claims"
        ) from None
    if delta:
        raise ParameterError(
            f"delta={value_text(delta)} and alpha={value_text(alpha)} are two different "
            "claims: an (epsilon, "
            "delta) claim has alpha=None, a Rényi claim delta=0"
        )
    return Divergence(alpha=order, symmetric=symmetric)


def _is_zero(value: Any) -> bool:
    boolean = isinstance(value, (bool, np.bool_))
    return not boolean and isinstance(value, numbers.Real) and value == 0


def several(given: Any) -> list[Any]:
    """Return one number, or an array-like of them, as a list of what to check."""
    if isinstance(given, (list, tuple)):
        return list(given)
    found: list[Any] = np.atleast_1d(given).ravel().tolist()
    return found


def read_regs(reg: Any) -> tuple[float, ...]:
    """Return every λ.

    Raises
    ------
    ParameterError
        There is none, or one is no number of at least 1e-10.
    """
    values = several(reg)
    if not values:
        raise ParameterError("reg=() must hold at least one number")
    found = tuple(number("reg", value, above=0.0, among=values) for value in values)
    small = [value for value in found if value < LEAST_REG]
    if small:
        raise ParameterError(
            f"reg={item_text(small[0], values)} is below {LEAST_REG:g}, where round-off "
            "takes over: raise it"
        )
    return found


def _kernel(metric: Any, gamma: Any, n_components: Any) -> KernelSettings:
    known = isinstance(metric, str) and metric in PAIRWISE_KERNEL_FUNCTIONS
    if not known and not callable(metric):
        hint = (
            ": an audit needs the kernel of rows that it has not seen"
            if isinstance(metric, str) and metric == "precomputed"
            else ""
        )
        raise ParameterError(
            f"metric={value_text(metric)} must be a function of two rows, or one of "
            f"{', '.join(sorted(PAIRWISE_KERNEL_FUNCTIONS))}{hint}"
        )
    if isinstance(gamma, str):
        choice("gamma", gamma, ("median",))
    elif gamma is not None:
        gamma = number("gamma", gamma, above=0.0)
    return KernelSettings(metric, gamma, integer("n_components", n_components, least=2))
