"""The public estimator with exponential noise, for a metric |x − y|^power."""

from __future__ import annotations

from typing import Any

from skpuffer._base import AdditiveRelease
from skpuffer._checks import number
from skpuffer._text import value_text
from skpuffer.core.laws import Exponential
from skpuffer.exceptions import ParameterError
from skpuffer.mechanisms import documented

_POWER = """\
    power : float, default=0.5
        p of the noise's density, proportional to ``exp(−(|z| / s)^p)``, from 0.2 to 1,
        where it is Laplace noise. A smaller power makes far shifts cheaper beside near
        ones, and the tails heavier: the noise's deviation is 11 s at 0.5. Below 0.2 it
        is more than 6e4 s, and the power is refused. Most data need least at 1.
"""


@documented(
    orders="in (1, ∞]",
    scale="s",
    std="s √(Γ(3/p) / Γ(1/p)), p the power",
    own=_POWER,
)
class RenyiPufferfishExponential(AdditiveRelease):
    """Release columns with exponential noise calibrated to a secret column.

    The exponential mechanism for the metric ``|x − y|^p``, of densities proportional
    to ``exp(−|z|^p / θ)``, θ = s^p. For p < 1 the divergence of a shift is known by an
    upper bound, what a log ratio within ``±|z|^p / θ`` allows at the order: "transport" and
    "w_inf" are calibrated with that (less than the α−1 form of the published condition
    needs), and ``calibration="exact"`` is refused. Costs are
    concave near zero there, so that the best of several couplings counts: the monotone
    one, one that leaves common mass in place, and one made for the rule itself, where
    no group has more than 1,000 distinct values. Of several columns released jointly one
    is always made for it (see `coupling_effort`).

    %(shared)s

    See Also
    --------
    RenyiPufferfishLaplace : The same with power 1, less noise for most data.
    compare_mechanisms : A table of laws, rules and scopes for a frame.

    References
    ----------
    Ding, Yang, Zhang: α-Wasserstein mechanism for Rényi Pufferfish privacy. 2026
    (section III-A4).

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer import RenyiPufferfishExponential
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> noise = RenyiPufferfishExponential(power=0.7, secret="sex").fit(df)
    >>> noise.scale_.round(2), noise.noise_std_.round(2)
    (array([0.74]), array([2.33]))
    >>> noise.transform(df).shape
    (40, 1)

    At power 1 it is Laplace noise:

    >>> from skpuffer import RenyiPufferfishLaplace
    >>> scale = RenyiPufferfishLaplace(secret="sex").fit(df).scale_
    >>> noise.set_params(power=1).fit(df).scale_ == scale
    array([ True])
    """

    def __init__(
        self,
        alpha: float | str = 2.0,
        epsilon: float = 1.0,
        *,
        power: float = 0.5,
        delta: float | None = None,
        secret: Any = None,
        secret_from_y: bool = False,
        secret_pairs: Any = "all",
        prior: Any = None,
        prior_model: str = "empirical",
        confidence: float = 0.95,
        bounds: Any = None,
        out_of_bounds: str = "clip",
        calibration: str = "transport",
        scope: str = "joint",
        column_weights: Any = "std",
        n_releases: int = 1,
        min_group_size: int = 20,
        clip_output: bool = False,
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            alpha,
            epsilon,
            delta=delta,
            secret=secret,
            secret_from_y=secret_from_y,
            secret_pairs=secret_pairs,
            prior=prior,
            prior_model=prior_model,
            confidence=confidence,
            bounds=bounds,
            out_of_bounds=out_of_bounds,
            calibration=calibration,
            scope=scope,
            column_weights=column_weights,
            n_releases=n_releases,
            min_group_size=min_group_size,
            clip_output=clip_output,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.power = power

    @property
    def law(self) -> Exponential:  # type: ignore[override]
        """The noise of the current power."""
        power = number("power", self.power)
        try:
            return Exponential(power)
        except ValueError:
            raise ParameterError(
                f"power={value_text(self.power)} must be a number from 0.2 to 1: below, "
                "little "
                "but noise is released, and above, |x − y|^power is no metric"
            ) from None
