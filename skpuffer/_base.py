"""The one fit and the one transform of every additive mechanism."""

from __future__ import annotations

import copy
from inspect import signature
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skpuffer._estimator import NO_ROWS, Release
from skpuffer._noise import BitsOf, additive, refuse_off_grid, released_columns
from skpuffer._parameters import (
    Settings,
    check_law_given,
    check_parameters,
    check_release,
)
from skpuffer._validation import (
    read_layout,
    read_rows,
    to_multiples,
    within_bounds,
    written_like,
)
from skpuffer.core.laws import NoiseLaw


class AdditiveRelease(Release):
    """The base of every mechanism that adds noise: a subclass gives its law.

    With a law of one's own the subclass is a mechanism like those of the package, with
    their parameters, attributes and guarantee (see `RenyiPufferfishLaplace`).
    The guarantee rests on the divergence that the law states, and says so: let
    `skpuffer.laws.check_law` look at a law before it is used.

    Attributes
    ----------
    law : NoiseLaw
        The noise. An attribute of the class; a property where it follows from
        parameters of the constructor. Fit takes a copy of it.

    See Also
    --------
    skpuffer.laws.NoiseLaw : What a law of one's own has to give.
    skpuffer.laws.check_law : Compare what a law states with quadrature and draws.
    skpuffer.compare_mechanisms : Takes laws of one's own beside those of the package.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpuffer import AdditiveRelease
    >>> from skpuffer.laws import Exponential
    >>> class SharpRelease(AdditiveRelease):
    ...     law = Exponential(power=0.8)
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> release = SharpRelease(alpha=4, epsilon=1, secret="sex").fit(df)
    >>> release.scale_.round(3), release.transform(df).shape
    (array([0.892]), (40, 1))
    """

    law: ClassVar[NoiseLaw]

    def __init__(
        self,
        alpha: float | str = 2.0,
        epsilon: float = 1.0,
        *,
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
        self.alpha = alpha
        self.epsilon = epsilon
        self.delta = delta
        self.secret = secret
        self.secret_from_y = secret_from_y
        self.secret_pairs = secret_pairs
        self.prior = prior
        self.prior_model = prior_model
        self.confidence = confidence
        self.bounds = bounds
        self.out_of_bounds = out_of_bounds
        self.calibration = calibration
        self.scope = scope
        self.column_weights = column_weights
        self.n_releases = n_releases
        self.min_group_size = min_group_size
        self.clip_output = clip_output
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _law_instance(self) -> NoiseLaw:
        """Copy the law of the current parameters: what fit took is what is released."""
        owner = type(self)
        # An error within a property of that name is shown as it is.
        known = hasattr(owner, "law") or "law" in vars(self)
        law: NoiseLaw | None = self.law if known else None
        check_law_given(law, f"{owner.__name__}.law")
        return cast("NoiseLaw", copy.deepcopy(law))

    def _parameters(self) -> dict[str, Any]:
        """Return every parameter, those included that a subclass does not take."""
        shared = {name: getattr(self, name) for name in _SHARED}
        return shared | super()._parameters()

    def _check(self) -> Settings:
        return check_parameters(self._law_instance(), self._parameters())

    def transform(self, X: Any) -> Any:
        """Release the rows: round them to the noise's grid and add fresh noise.

        After `fit_counts` of counts on a grid, rows are rounded to that grid before.
        Every call draws new noise, so that calls on the same rows are repeated
        releases; the guarantee covers `n_releases` of them.

        Parameters
        ----------
        X : frame or array-like of shape (n, d), Dask frame or array, or LazyFrame
            With or without the secret and prior columns. Columns of an array go by
            their places: fewer columns are taken for those without secret and prior.

        Returns
        -------
        frame or ndarray of shape (n, k)
            The released columns: a frame of the kind of X with its index, an array for
            an array, or what `set_output` asks for. float32 stays float32. Of lazy
            rows a lazy frame or array: one release, however often it is computed.

        Raises
        ------
        NotFittedError
            Before fit.
        ParameterError
            `random_state`, `out_of_bounds` or `clip_output` was set, after fit, to a
            value that fit would have refused.
        ValueError
            A value is missing, infinite, out of bounds (``out_of_bounds="error"``) or
            too large for the grid; or columns differ from those in fit. Of lazy rows,
            values are refused once they are computed.
        """
        check_is_fitted(self)
        if X is NO_ROWS:
            return self._released_nothing()
        seed = check_release(self._parameters(), self._ranges)
        return self._release(X, seed)

    def _rows(self, X: Any) -> tuple[Any, np.ndarray]:
        names = self.guarantee_.columns
        remaining, given = read_rows(self, X, self._dropped, names)
        values = within_bounds(
            to_multiples(
                given.astype(np.float64, copy=False), self.guarantee_.rounding, names
            ),
            self._ranges,
            names,
            refuse=self.out_of_bounds == "error",
        )
        refuse_off_grid(values, self.scale_, names)
        return remaining, values

    def _released(self, rows: tuple[Any, np.ndarray], bits: BitsOf) -> Any:
        remaining, values = rows
        law = self._fitted_law()
        noises = [additive(law, scale) for scale in self.scale_.tolist()]
        released = released_columns(values, noises, bits, self.n_jobs)
        if self.clip_output:
            np.clip(released, self._ranges[:, 0], self._ranges[:, 1], out=released)
        sets = (None,) * len(self.guarantee_.columns)
        asked = AdditiveRelease.transform(self, NO_ROWS)
        return written_like(released, remaining, sets, asked)

    def _layout(self, X: Any) -> Any:
        names = self.guarantee_.columns
        remaining = read_layout(self, X, self._dropped, names, numeric=True)
        return written_like(np.empty((0, len(names))), remaining, (None,) * len(names))

    @property
    def noise_covariance_(self) -> np.ndarray:
        """Covariance of the noise of one release, shape (k, k): it is diagonal.

        Not that of the error where ``clip_output=True``, bounds clip, or rows are
        rounded to the grid of their counts.
        """
        check_is_fitted(self)
        return np.diag(np.square(self.noise_std_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


_SHARED = tuple(list(signature(AdditiveRelease.__init__).parameters)[1:])
