"""The one fit and the one transform of every additive mechanism."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skpuffer._fit import fit_scales
from skpuffer._parameters import check_parameters, check_release
from skpuffer._report import ReleaseReport
from skpuffer._statements import make_guarantee, warn_about, zero_noise_text
from skpuffer._validation import (
    frame_like,
    read_rows,
    read_sample,
    within_bounds,
)
from skpuffer.core.grid import check_grid_range, grid_step
from skpuffer.core.laws import LAWS, NoiseLaw
from skpuffer.core.sampling import (
    BitSource,
    SeededBits,
    SystemBits,
)
from skpuffer.exceptions import ReproducibleNoiseWarning, ZeroNoiseWarning

# Rows that a thread releases at a time, each chunk with its own stream of bits.
_CHUNK = 2**18
_COUNTING = Lock()


class AdditiveRelease(TransformerMixin, BaseEstimator):
    """Fit calibrates the noise, transform adds it; a subclass names its law."""

    _law: ClassVar[str]

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
    ):
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

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        secret: Any = None,
        prior: Any = None,
        sample_weight: Any = None,
    ) -> AdditiveRelease:
        """Calibrate the noise to the secret's conditional distributions.

        Nothing random happens here. A fit that fails leaves the estimator as it was.

        Parameters
        ----------
        X : frame or array-like of shape (n, d)
            The columns to release, and the secret and prior columns where the
            constructor names them.
        y : array-like of shape (n,), optional
            The secret if ``secret_from_y=True``; otherwise ignored: in a pipeline it
            is the target.
        secret : array-like of shape (n,) or (n, m), or frame, optional
            The secret of each row, where it is no column of X. Rows are matched by
            position, as for y; an index is not looked at.
        prior : array-like of shape (n,) or (n, m), or frame, optional
            The prior that each row belongs to, where it is no column of X.
        sample_weight : array-like of shape (n,), optional
            Non-negative; a weight of two is a row that stands there twice.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            A parameter is out of range, or the secret is given twice or not at all.
        ValueError
            A column to release is not numeric or has missing or infinite values, a
            secret is missing, or lengths differ.
        CalibrationError, TransportPlanError
            No scale could be confirmed to satisfy the condition.
        """
        before = dict(vars(self))
        try:
            for name in [name for name in before if name.endswith("_")]:
                delattr(self, name)
            self._fit(X, y, secret, prior, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: Any, y: Any, secret: Any, prior: Any, weight: Any) -> None:
        settings = check_parameters(self._law, self.get_params(deep=False))
        sample = read_sample(self, X, y, secret, prior, weight)
        fitted = fit_scales(
            sample,
            settings,
            scope=self.scope,
            prior_model=self.prior_model,
            column_weights=self.column_weights,
        )
        noise_std = settings.law.noise_std(fitted.scale)
        _refuse_off_grid(sample.values, fitted.scale, sample.names)
        guarantee = make_guarantee(
            sample,
            settings,
            fitted,
            scope=self.scope,
            prior_model=self.prior_model,
            seeded=self.random_state is not None,
        )
        self.scale_ = fitted.scale
        self.noise_std_ = noise_std
        self.alpha_ = fitted.budget.alpha
        self.epsilon_ = fitted.budget.epsilon
        self.guarantee_ = guarantee
        self.profile_ = fitted.profile
        self.report_ = ReleaseReport(
            columns=guarantee.columns,
            scale=guarantee.scale,
            noise_std=tuple(noise_std.tolist()),
            column_std=tuple(fitted.spread.tolist()),
            worst_pair=fitted.worst_pair,
            guarantee=guarantee,
        )
        self._dropped = sample.dropped
        self._ranges = sample.ranges
        self._unchanged = fitted.unchanged
        # A holder, so that transform can count without changing an attribute.
        self._calls = {"made": 0}
        if self.verbose:
            print(self.report_)
        warn_about(
            fitted,
            self.report_,
            min_group_size=self.min_group_size,
            prior_model=self.prior_model,
        )

    def transform(self, X: Any) -> Any:
        """Release the rows: round them to the noise's grid and add fresh noise.

        Every call draws new noise, so that calls on the same rows are repeated
        releases; the guarantee covers `n_releases` of them.

        Parameters
        ----------
        X : frame or array-like of shape (n, d)
            With or without the secret and prior columns.

        Returns
        -------
        frame or ndarray of shape (n, k)
            The released columns: a frame of the kind of X with its index, an array for
            an array, or what `set_output` asks for. float32 stays float32.

        Raises
        ------
        NotFittedError
            Before fit.
        ParameterError
            `random_state`, `out_of_bounds` or `clip_output` was set, after fit, to a
            value that fit would have refused.
        ValueError
            A value is missing, infinite, out of bounds (``out_of_bounds="error"``) or
            too large for the grid; or columns differ from those in fit.
        """
        check_is_fitted(self)
        seed = check_release(self.get_params(deep=False), self._ranges)
        names = self.guarantee_.columns
        remaining, given = read_rows(self, X, self._dropped, names)
        values = within_bounds(
            given.astype(np.float64, copy=False),
            self._ranges,
            names,
            refuse=self.out_of_bounds == "error",
        )
        _refuse_off_grid(values, self.scale_, names)
        # Warnings point past scikit-learn's wrapper of transform, at the caller.
        if seed is not None:
            warnings.warn(
                f"random_state={seed} makes this noise repeatable: whoever "
                "knows or guesses the seed can subtract it, and copies of this "
                "estimator (workers, branches, pickles) repeat it. Leave it at None "
                "for data that matter",
                ReproducibleNoiseWarning,
                stacklevel=3,
            )
        if self._unchanged:
            warnings.warn(
                zero_noise_text(self._unchanged), ZeroNoiseWarning, stacklevel=3
            )
        released = self._release(values, seed)
        if self.clip_output:
            np.clip(released, self._ranges[:, 0], self._ranges[:, 1], out=released)
        return frame_like(released, remaining, given.dtype)

    def _release(self, values: np.ndarray, seed: int | None) -> np.ndarray:
        """Add noise to each column, chunk by chunk, on `n_jobs` threads."""
        law = LAWS[self._law]()
        with _COUNTING:
            # Threads that transform at the same time get numbers of their own.
            call = self._calls["made"] = self._calls["made"] + 1
        released = np.empty_like(values, order="F")
        tasks = [
            (column, start)
            for column in range(values.shape[1])
            for start in range(0, len(values), _CHUNK)
        ]
        Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(_release_chunk)(
                law,
                values[start : start + _CHUNK, column],
                released[start : start + _CHUNK, column],
                float(self.scale_[column]),
                _bits(seed, call, column, start // _CHUNK),
            )
            for column, start in tasks
        )
        return released

    def privacy_profile(self, alphas: Any) -> np.ndarray:
        """Bound what the fitted scale reveals at other Rényi orders.

        For the prior, the pairs and the number of releases that `guarantee_` names;
        with ``scope="column"`` the largest over the columns, each released alone.
        `profile_` turns the whole profile into (ε′, δ), which is tighter than
        converting the one order of the guarantee.

        Parameters
        ----------
        alphas : array-like
            Orders in (1, ∞].

        Returns
        -------
        ndarray
            Upper bounds on the divergence in both directions, nats, of the shape of
            `alphas`: what transport (or ``calibration="exact"`` its quadrature) proves
            at a grid of orders, rounded up to ten bits, and chords between them;
            infinite where nothing is known.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            An order is not above 1.
        """
        check_is_fitted(self)
        return self.profile_.divergence(alphas)

    @property
    def noise_covariance_(self) -> np.ndarray:
        """Covariance of the noise of one release, shape (k, k): it is diagonal.

        Not that of the error where ``clip_output=True`` or bounds clip.
        """
        check_is_fitted(self)
        return np.diag(np.square(self.noise_std_))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the released columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the input, with or without the secret and prior columns.

        Returns
        -------
        ndarray of str objects, shape (k,)

        Raises
        ------
        ValueError
            The names do not fit those seen in fit.
        """
        check_is_fitted(self)
        names = list(self.guarantee_.columns)
        if input_features is not None:
            given = self._dropped.remove_names([str(name) for name in input_features])
            known = getattr(self, "feature_names_in_", None)
            if len(given) != len(names):
                raise ValueError(
                    f"input_features should have length equal to number of features "
                    f"({len(names)}), got {len(given)}"
                )
            if known is not None and given != names:
                raise ValueError(
                    f"input_features is not equal to feature_names_in_: {given!r} "
                    f"against {names!r}"
                )
            names = given
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = bool(self.secret_from_y)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _bits(seed: int | None, call: int, column: int, chunk: int) -> BitSource:
    """Return a source of bits that no other call, column or chunk shares."""
    if seed is None:
        return SystemBits()
    # One number for the three, each below 2^32.
    return SeededBits(seed, (call << 64) + (column << 32) + chunk)


def _release_chunk(
    law: NoiseLaw, values: np.ndarray, out: np.ndarray, scale: float, bits: BitSource
) -> None:
    if scale:
        law.perturb(values, scale=scale, bits=bits, out=out)
    else:
        out[:] = values


def _refuse_off_grid(
    values: np.ndarray, scale: np.ndarray, names: Sequence[str]
) -> None:
    """Refuse values too large for the grid, before any noise is drawn."""
    for column, name in enumerate(names):
        if scale[column]:
            try:
                check_grid_range(values[:, column], grid_step(float(scale[column])))
            except ValueError as error:
                raise ValueError(f"column {name!r}: {error}") from None
