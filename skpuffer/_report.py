"""What a fit found, for people: a small table and its HTML."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill

import pandas as pd

from skpuffer.accounting import Guarantee

_WIDTH = 88


@dataclass(frozen=True)
class ReleaseReport:
    """Noise against spread for each released column, and the guarantee.

    Attributes
    ----------
    columns : tuple of str
        The released columns; the other tuples follow their order.
    scale : tuple of float
        Laplace b, Gaussian σ or exponential s, in the column's units; θ of a column of
        categories.
    noise_std : tuple of float
        Standard deviation of the noise, in the column's units; for categories the mean
        distance between a row's category and the one released.
    column_std : tuple of float
        Standard deviation of the column in the data that was fitted; for categories
        the mean distance between two rows.
    worst_pair : tuple of str
        The secret pair (and prior) that decides the scale.
    guarantee : Guarantee
    """

    columns: tuple[str, ...]
    scale: tuple[float, ...]
    noise_std: tuple[float, ...]
    column_std: tuple[float, ...]
    worst_pair: tuple[str, ...]
    guarantee: Guarantee

    @property
    def noise_to_spread(self) -> tuple[float, ...]:
        """``noise_std / column_std`` per column; nan for a constant column."""
        return tuple(
            noise / spread if spread > 0 else float("nan")
            for noise, spread in zip(self.noise_std, self.column_std, strict=True)
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the table, one row a released column."""
        return pd.DataFrame(
            {
                "scale": self.scale,
                "noise_std": self.noise_std,
                "column_std": self.column_std,
                "noise_to_spread": self.noise_to_spread,
                "worst_pair": self.worst_pair,
            },
            index=pd.Index(self.columns, name="column"),
        )

    def __str__(self) -> str:
        table = self.to_frame().to_string(float_format="{:.4g}".format)
        return f"{table}\n\n{fill(str(self.guarantee), width=_WIDTH)}"

    def _repr_html_(self) -> str:
        table = self.to_frame().to_html(float_format="{:.4g}".format, border=0)
        return f"<div>{table}{self.guarantee._repr_html_()}</div>"
