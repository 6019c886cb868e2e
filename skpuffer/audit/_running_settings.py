"""The parameters of a running audit, checked at every chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpuffer._checks import boolean, choice, integer, number
from skpuffer._text import item_text
from skpuffer.audit._claims import read_regs, several
from skpuffer.exceptions import ParameterError
from skpuffer.metrics import STATIONARY

# Steps of .05 as far as most claims go, then coarser ones.
_EPSILONS = np.concatenate([np.arange(80) / 20, np.arange(16, 49) / 4])
# No stream is long enough to refute more, and e^ε and its square stay finite.
_LARGEST = 300.0


@dataclass(frozen=True)
class RunningSettings:
    """What an audit is about and how it learns; all of it fixed while it runs.

    Attributes
    ----------
    epsilon : float
        The claim that the verdict is about.
    epsilons : tuple of float
        All claims, ascending.
    delta, error : float
    symmetric : bool
    metric : str
    gamma : float or str
    reg : tuple of float
    n_components, n_warmup, buffer_size, seed : int
    """

    epsilon: float
    epsilons: tuple[float, ...]
    delta: float
    error: float
    symmetric: bool
    metric: str
    gamma: float | str
    reg: tuple[float, ...]
    n_components: int
    n_warmup: int
    buffer_size: int
    seed: int

    def refuse_other_claim(self, other: RunningSettings) -> None:
        """Refuse settings of an audit whose evidence is about something else.

        Raises
        ------
        ParameterError
            Names the parameter and both values.
        """
        for name in ("epsilon", "delta", "error", "symmetric", "epsilons"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                if name == "error":
                    name, one, two = "confidence", 1 - one, 1 - two
                shown = "" if name == "epsilons" else f", and have {one:g} and {two:g}"
                raise ParameterError(f"audits to be merged must agree in {name}{shown}")


def read_settings(params: Mapping[str, Any]) -> RunningSettings:
    """Check every parameter of a `RunningAudit`.

    Raises
    ------
    ParameterError
        Names the parameter, the value and what is allowed.
    """
    epsilon = _claim("epsilon", params["epsilon"])
    epsilons = [epsilon]
    if params["epsilons"] is None:
        epsilons += _EPSILONS.tolist()
    else:
        claims = several(params["epsilons"])
        epsilons += [_claim("epsilons", value, claims) for value in claims]
    gamma, seed = params["gamma"], params["random_state"]
    if not (isinstance(gamma, str) and gamma == "median"):
        gamma = number("gamma", gamma, above=0.0)
    delta = params["delta"]
    if isinstance(delta, bool) or delta != 0:
        delta = number("delta", delta, above=0.0, below=1.0)
    n_components = integer("n_components", params["n_components"], least=2)
    if n_components % 2:
        raise ParameterError(
            f"n_components={n_components} must be even: Fourier features come in pairs"
        )
    return RunningSettings(
        epsilon=epsilon,
        epsilons=tuple(sorted(set(epsilons))),
        delta=float(delta),
        error=1 - number("confidence", params["confidence"], above=0.0, below=1.0),
        symmetric=boolean("symmetric", params["symmetric"]),
        metric=choice("metric", params["metric"], STATIONARY),
        gamma=gamma,
        reg=read_regs(params["reg"]),
        n_components=n_components,
        n_warmup=integer("n_warmup", params["n_warmup"], least=10),
        buffer_size=integer("buffer_size", params["buffer_size"], least=50),
        seed=0 if seed is None else integer("random_state", seed, least=0),
    )


def _claim(name: str, value: Any, among: Any = ()) -> float:
    found = number(name, value, among=among)
    if found < 0:
        raise ParameterError(
            f"{name}={item_text(found, among)} must be a number from 0 upwards, finite"
        )
    if found > _LARGEST:
        raise ParameterError(
            f"{name}={item_text(found, among)} is above {_LARGEST:g}, and no stream is "
            "long enough to refute such a claim: give a smaller one"
        )
    return found
