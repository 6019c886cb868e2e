"""What every release shares: an atomic fit, fresh bits, names, and what is known of it.

A subclass declares parameters and says how rows are read and released.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import signature
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skpuffer._at_release import refuse_release, warn_of_release
from skpuffer._fit import fit_scales
from skpuffer._lazy import is_lazy
from skpuffer._lazy_release import count_lazily, release_lazily
from skpuffer._noise import BitsOf, fresh_source, refuse_off_grid
from skpuffer._parameters import Settings
from skpuffer._report import ReleaseReport
from skpuffer._statements import make_guarantee, warn_about
from skpuffer._validation import CountedRows, Sample, read_sample
from skpuffer.accounting import Guarantee
from skpuffer.core.laws import LAWS, NoiseLaw, is_own, law_parameters
from skpuffer.counts import ConditionalCounts, counted_rows
from skpuffer.effort import effort_of_a_fit
from skpuffer.profile import PrivacyProfile
from skpuffer.reuse import recalled, remembered

# What transform gives itself to find out what kind of frame `set_output` asks for:
# scikit-learn tells nobody, and wraps what transform returns. What it makes of a frame
# of another kind loses the types of columns, so that a release is written as the right
# kind from the start.
NO_ROWS = object()
_COUNTING = Lock()


class Release(TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """A transformer that calibrates a release in fit and draws it in transform."""

    # Whether there may be categories among the columns.
    _mixed: ClassVar[bool] = False

    # What fit sets; scikit-learn, which has no types, sets the last two.
    scale_: np.ndarray
    noise_std_: np.ndarray
    alpha_: float
    epsilon_: float
    guarantee_: Guarantee
    profile_: PrivacyProfile
    report_: ReleaseReport
    n_features_in_: int
    feature_names_in_: np.ndarray

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        secret: Any = None,
        prior: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Calibrate the noise to the secret's conditional distributions.

        Nothing random happens here. A fit that fails leaves the estimator as it was.

        Parameters
        ----------
        X : frame or array-like of shape (n, d), Dask frame or array, or LazyFrame
            The columns to release, and the secret and prior columns where the
            constructor names them. Lazy rows are counted where they are, in one pass,
            and distinct ones alone come here; what is beside them is of Dask too.
        y : array-like of shape (n,), optional
            The secret if ``secret_from_y=True``; otherwise ignored: in a pipeline it
            is the target.
        secret : array-like of shape (n,) or (n, m), or frame, optional
            The secret of each row, where it is no column of X. Rows are matched by
            position, as for y, and an index that differs from that of X is refused.
        prior : array-like of shape (n,) or (n, m), or frame, optional
            The prior that each row belongs to, where it is no column of X.
        sample_weight : array-like of shape (n,), optional
            Non-negative, by position; a weight of two is a row that stands there twice.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            A parameter is out of range, or the secret is given twice or not at all.
        ValueError
            A column to release is of another kind or has missing or infinite values, a
            secret is missing, or lengths differ.
        CalibrationError, TransportPlanError
            No scale could be confirmed to satisfy the condition.
        """
        if is_lazy(X):
            self._check()
            return self.fit_counts(
                count_lazily(self, X, y, secret, prior, sample_weight)
            )
        with self._all_or_nothing():
            settings, sample = self._prepare(X, y, secret, prior, sample_weight)
            self._calibrate(settings, sample)
        return self

    def fit_counts(self, counts: ConditionalCounts) -> Self:
        """Calibrate the noise to rows that were counted.

        The result is that of `fit` on all the rows that were counted: the same scale
        and the same guarantee, with memory for the distinct rows alone. With a grid,
        `transform` rounds to it before it adds noise, and `guarantee_` says so.

        Parameters
        ----------
        counts : ConditionalCounts
            With the secret, and the prior if any; where the constructor names their
            columns too, with the same ones. It stays as it is, and nothing of it is
            kept.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            A parameter is out of range, `counts` has no rows, or its secret or prior
            is another.
        ValueError
            As in `fit`.
        CalibrationError, TransportPlanError
            No scale could be confirmed to satisfy the condition.
        """
        with self._all_or_nothing():
            rows = counted_rows(counts, self)
            settings, sample = self._prepare(counted=rows)
            self._calibrate(settings, sample)
        return self

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Forget an earlier fit, and remember it again if this one fails."""
        before = dict(vars(self))
        try:
            for name in [name for name in before if name.endswith("_")]:
                delattr(self, name)
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    @abstractmethod
    def _check(self) -> Settings:
        """Check the parameters, as far as they go without data."""

    def _prepare(
        self,
        X: Any = None,
        y: Any = None,
        secret: Any = None,
        prior: Any = None,
        weight: Any = None,
        *,
        counted: CountedRows | None = None,
    ) -> tuple[Settings, Sample]:
        """Check the parameters and read the data, or take what was counted."""
        settings = self._check()
        given = X, y, secret, prior, weight
        # Unless a block of `reuse_fits` has it read.
        sample = recalled(self, *given, counted)
        if sample is None:
            sample = read_sample(self, *given, mixed=self._mixed, counted=counted)
            sample = remembered(self, sample, *given, counted)
        return self._settled(settings, sample), sample

    def _settled(self, settings: Settings, sample: Sample) -> Settings:
        """Check the parameters against the data; return what is to be calibrated."""
        return settings

    def _calibrate(self, settings: Settings, sample: Sample) -> None:
        """Find the scales, and set what a fitted estimator has."""
        with effort_of_a_fit(self.verbose) as effort:
            fitted = fit_scales(
                sample,
                settings,
                scope=self.scope,
                prior_model=self.prior_model,
                column_weights=self.column_weights,
                effort=effort,
            )
        numeric = sample.is_number
        needed = np.where(numeric, fitted.scale, 0)
        try:
            refuse_off_grid(sample.limits, needed, sample.names)
        except ValueError:
            # Says how many there are.
            refuse_off_grid(sample.values, needed, sample.names)
            raise
        guarantee = make_guarantee(
            sample,
            settings,
            fitted,
            scope=self.scope,
            prior_model=self.prior_model,
            seeded=self.random_state is not None,
        )
        self.scale_ = fitted.scale
        # For reading: the guarantee is about what fit found.
        self.scale_.flags.writeable = False
        if numeric.any():
            self.noise_std_ = np.where(numeric, fitted.noise, np.nan)
            self.noise_std_.flags.writeable = False
        self.alpha_ = fitted.budget.alpha
        self.epsilon_ = fitted.budget.epsilon
        self.guarantee_ = guarantee
        self.profile_ = fitted.profile
        self.report_ = ReleaseReport(
            columns=guarantee.columns,
            scale=guarantee.scale,
            noise_std=tuple(fitted.noise.tolist()),
            column_std=tuple(fitted.spread.tolist()),
            worst_pair=fitted.worst_pair,
            guarantee=guarantee,
        )
        self._dropped = sample.dropped
        self._ranges = sample.ranges.copy()
        self._unchanged = fitted.unchanged
        # The guarantee knows those of the package by their names and powers.
        others = {name for name, _ in law_parameters(settings.law)} - {"power"}
        own = others or is_own(settings.law)
        self._own_law = settings.law if own else None
        self._keep(sample)
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

    def _parameters(self) -> dict[str, Any]:
        """Return every parameter: `get_params`, without reading the signature again."""
        return {name: getattr(self, name) for name in _names_of(type(self))}

    def _fitted_law(self) -> NoiseLaw:
        """Return the law that fit calibrated: parameters may have been set anew since."""
        if self._own_law is not None:
            return self._own_law
        guarantee = self.guarantee_
        power = {} if guarantee.power is None else {"power": guarantee.power}
        return LAWS[guarantee.law](**power)

    def _keep(self, sample: Sample) -> None:
        """Keep what else transform needs: nothing of the rows."""

    def _release(self, X: Any, seed: int | None) -> Any:
        """Release rows, those that are not there yet lazily; bad ones use no bits."""
        refuse_release(X, seed, self.guarantee_)
        lazily = is_lazy(X)
        rows = release_lazily(self, X, seed) if lazily else self._rows(X)
        warn_of_release(seed, self._unchanged, self.scale_, self.guarantee_)
        return rows if lazily else self._released(rows, self._fresh_bits(seed))

    def _next_call(self) -> int:
        """Count a release, before any of its bits are drawn."""
        with _COUNTING:
            # Threads that transform at the same time get numbers of their own.
            call: int = self._calls["made"] + 1
            self._calls["made"] = call
        return call

    def _fresh_bits(self, seed: int | None) -> BitsOf:
        """Return bits for one release, which no other call shares."""
        return fresh_source(seed, self._next_call())

    @abstractmethod
    def _rows(self, X: Any) -> Any:
        """Read and check rows to release."""

    @abstractmethod
    def _released(self, rows: Any, bits: BitsOf) -> Any:
        """Release rows that were read."""

    @abstractmethod
    def _layout(self, X: Any) -> Any:
        """Return the release of no rows; wrong columns are refused here."""

    def _released_nothing(self) -> np.ndarray:
        return np.empty((0, len(self.guarantee_.columns)))

    def privacy_profile(self, alphas: ArrayLike) -> np.ndarray:
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
            `alphas`: what transport proves at a grid of orders (the exact rule its
            sums or quadrature, the Gaussian model its closed form), rounded up to ten
            bits, and chords between them; infinite where nothing is known.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            An order is not above 1.
        """
        check_is_fitted(self)
        return self.profile_.divergence(alphas)

    def get_feature_names_out(
        self, input_features: Iterable[str] | None = None
    ) -> np.ndarray:
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
        return tags


@cache
def _names_of(kind: type[Release]) -> tuple[str, ...]:
    return tuple(list(signature(kind.__init__).parameters)[1:])
