"""The fit and the transform of releases with categories among their columns."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skpuffer._estimator import NO_ROWS, Release
from skpuffer._noise import (
    BitsOf,
    ColumnNoise,
    additive,
    refuse_off_grid,
    released_columns,
)
from skpuffer._parameters import Settings, check_parameters, check_release
from skpuffer._text import value_text
from skpuffer._validation import (
    Sample,
    read_layout,
    read_mixed_rows,
    to_multiples,
    unknown_code,
    within_bounds,
    written_like,
)
from skpuffer.core.channels import ROW_RULES, Channel, uniform_codes
from skpuffer.core.laws import LAWS
from skpuffer.core.sampling import BitSource
from skpuffer.exceptions import ParameterError


class RowRelease(Release):
    """Numbers get noise, categories are drawn from their channels.

    A subclass that lacks a parameter gives its value as an attribute of the class.
    """

    _mixed = True
    _prior_models: tuple[str, ...] = ("empirical", "bounded")
    law: str = "laplace"
    scope: str = "joint"
    calibration: str = "transport"
    confidence: float = 0.95
    bounds: Any = None
    out_of_bounds: str = "clip"
    clip_output: bool = False

    def _settings(self) -> dict[str, Any]:
        """Return every parameter, those of the class included."""
        shared = (
            *("scope", "calibration", "confidence"),
            *("bounds", "out_of_bounds", "clip_output"),
        )
        return {name: getattr(self, name) for name in shared} | self._parameters()

    def _check(self) -> Settings:
        name = type(self).__name__
        others = {"population", "gaussian"} - set(self._prior_models)
        if isinstance(self.prior_model, str) and self.prior_model in others:
            raise ParameterError(
                f"prior_model={value_text(self.prior_model)} does not go with {name}, "
                "which takes "
                f"{', '.join(map(repr, self._prior_models))} ('bounded': any "
                "distributions on the declared sets)"
            )
        # Which columns need bounds is known once they are read.
        given = self._settings() | {"bounds": ()}
        return check_parameters(LAWS[self.law](), given)

    def _settled(self, settings: Settings, sample: Sample) -> Settings:
        found = [
            column
            for column, one in zip(sample.names, sample.sets, strict=True)
            if one is not None and one.from_data
        ]
        if found and self.prior_model != "empirical":
            raise ParameterError(
                f"prior_model={value_text(self.prior_model)} is about declared "
                "categories, and "
                f"those of {', '.join(found)} come from the data, which may lack some: "
                "declare them in categories"
            )
        if not sample.is_number.all():
            # A rule all the same, for pairs of rows alone.
            rule: Any = ROW_RULES[settings.rule.name]()
            settings = replace(settings, rule=rule)
        return settings

    def _keep(self, sample: Sample) -> None:
        self._sets = sample.sets
        self._counts = tuple(
            None if one is None else Channel.of(one.distances, scale).counts
            for one, scale in zip(sample.sets, self.scale_.tolist(), strict=True)
        )

    def transform(self, X: Any) -> Any:
        """Release the rows: fresh noise for numbers, fresh draws for categories.

        Every call is a new release of its rows; the guarantee covers `n_releases` of
        them.

        Parameters
        ----------
        X : frame or array-like of shape (n, d), Dask frame or array, or LazyFrame
            With or without the secret and prior columns. Columns of an array go by
            their places: fewer columns are taken for those without secret and prior.

        Returns
        -------
        frame or ndarray of shape (n, k)
            The released columns, each of the type it had: a frame of the kind of X
            with its index, an array for an array, or what `set_output` asks for.
            Whole numbers with noise come out as float64. Of lazy rows a lazy frame or
            array: one release, however often it is computed.

        Raises
        ------
        NotFittedError
            Before fit.
        ParameterError
            A parameter was set, after fit, to a value that fit would have refused.
        ValueError
            A value is missing, or a label outside the declared categories and
            ``unknown="error"``; or columns differ from those in fit.
        """
        check_is_fitted(self)
        if X is NO_ROWS:
            return self._released_nothing()
        self._refuse_other_policy()
        numeric = np.array([counts is None for counts in self._counts])
        seed = check_release(self._settings(), self._ranges[numeric])
        return self._release(X, seed)

    def _rows(self, X: Any) -> tuple[Any, np.ndarray]:
        names = self.guarantee_.columns
        numeric = np.array([counts is None for counts in self._counts])
        remaining, values = read_mixed_rows(self, X, self._dropped, names, self._sets)
        values = to_multiples(values, self.guarantee_.rounding, names)
        values = within_bounds(
            values, self._ranges, names, refuse=self.out_of_bounds == "error"
        )
        refuse_off_grid(values, np.where(numeric, self.scale_, 0), names)
        return remaining, values

    def _released(self, rows: tuple[Any, np.ndarray], bits: BitsOf) -> Any:
        remaining, values = rows
        # The law is looked up for numbers alone: there may be none.
        noises = [
            additive(self._fitted_law(), scale)
            if counts is None
            else _drawn(Channel(counts))
            for counts, scale in zip(self._counts, self.scale_.tolist(), strict=True)
        ]
        released = released_columns(values, noises, bits, self.n_jobs)
        if self.clip_output:
            np.clip(released, self._ranges[:, 0], self._ranges[:, 1], out=released)
        asked = RowRelease.transform(self, NO_ROWS)
        return written_like(released, remaining, self._sets, asked)

    def _layout(self, X: Any) -> Any:
        names = self.guarantee_.columns
        remaining = read_layout(self, X, self._dropped, names)
        return written_like(np.empty((0, len(names))), remaining, self._sets)

    def _refuse_other_policy(self) -> None:
        """Refuse labels to stand for others that stood for themselves in fit.

        The channels were calibrated with the labels of the fitted rows replaced as
        `unknown` said then. Where it refused them, none was there.
        """
        for name, one in zip(self.guarantee_.columns, self._sets, strict=True):
            if one is None:
                continue
            now = unknown_code(self, one, name)
            if now is None or now == one.unknown:
                continue
            if one.unknown is not None or self.guarantee_.prior_model == "population":
                raise ParameterError(
                    f"unknown={value_text(self.unknown)} is not what column {name!r} "
                    "was fitted "
                    "with, and the guarantee is about labels replaced as in fit: fit "
                    "again, or set unknown='error'"
                )

    @property
    def channels_(self) -> dict[str, np.ndarray]:
        """P(released | true) of each column of categories, shape (K, K).

        Rows and columns in the order of `categories_`; for unbiased estimates of
        frequencies from a release.
        """
        check_is_fitted(self)
        return {
            name: Channel(counts).probabilities
            for name, counts in zip(self.guarantee_.columns, self._counts, strict=True)
            if counts is not None
        }

    @property
    def categories_(self) -> dict[str, tuple[Hashable, ...]]:
        """The declared categories of each column of categories, in their order."""
        check_is_fitted(self)
        return {
            name: one.labels
            for name, one in zip(self.guarantee_.columns, self._sets, strict=True)
            if one is not None
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _drawn(channel: Channel) -> ColumnNoise:
    """Return what draws the release of a column of codes."""

    def release(values: np.ndarray, out: np.ndarray, bits: BitSource) -> None:
        codes = values.astype(np.intp)
        outside = np.flatnonzero(codes < 0)
        if len(outside):
            codes[outside] = uniform_codes(len(outside), len(channel.counts), bits)
        out[:] = channel.draw(codes, bits)

    return release
