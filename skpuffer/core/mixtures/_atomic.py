"""A distribution of one column: its atoms with exact masses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skpuffer.core.grid import round_to_grid
from skpuffer.core.prior import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Atomic:
    """Distinct places in ascending order, with integer masses.

    Attributes
    ----------
    places : ndarray of shape (n,)
    mass : ndarray of shape (n,)
        Positive integers.
    """

    places: FloatArray
    mass: IntArray

    @cached_property
    def probabilities(self) -> FloatArray:
        """``mass / total`` as floats."""
        return (self.mass / int(self.mass.sum())).astype(np.float64, copy=False)

    @cached_property
    def least(self) -> float:
        """The smallest probability."""
        return int(self.mass.min()) / int(self.mass.sum())

    def on_grid(self, step: float) -> Atomic:
        """Return the distribution with places rounded half up to multiples of a step.

        Raises
        ------
        ValueError
            The grid does not reach them.
        """
        index = round_to_grid(self.places, step)
        new = np.append(True, index[1:] != index[:-1])
        places = np.asarray(index * step, dtype=np.float64)
        if new.all():
            return Atomic(places, self.mass)
        starts = np.flatnonzero(new)
        return Atomic(places[starts], np.add.reduceat(self.mass, starts))
