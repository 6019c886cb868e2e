"""Sums of exponentials at all atoms, by a recurrence over blocks of atoms.

Everything added is positive and seen from at most one block away, so that errors stay
relative; distances beyond a few hundred scales end as zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skpuffer.core.prior import FloatArray

# Exponents within a block stay below this.
_BLOCK = 300.0
_ULP = 2.0**-52


def half_densities(
    atoms: FloatArray, scale: float, masses: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray, float]:
    """Return Σ_j m_j e^{−|x_i − x_j| / scale} at every atom, for two sets of masses.

    Parameters
    ----------
    atoms : ndarray of shape (n,)
        Ascending.
    scale : float
    masses : two ndarrays of shape (n,)
        Non-negative.

    Returns
    -------
    first_sums, second_sums : ndarray of shape (n,)
    error : float
        Bound on their relative error, for sums above 1e-280.
    """
    blocks = _Blocks.of(atoms, scale)
    sums = [blocks.sums(mass) for mass in masses]
    longest, count = blocks.shape[1], blocks.shape[0]
    # Additions, and the rounding of exponents of up to 700 in all.
    return sums[0], sums[1], _ULP * (2 * longest + 4 * count + 4000)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Runs of neighbouring atoms less than `_BLOCK` scales wide.

    Attributes
    ----------
    starts : ndarray of shape (b,)
        The first atom of each block.
    owner, column : ndarray of shape (n,), or None for a single block
        The block of each atom, and its place there.
    shape : tuple
        Number of blocks, and length of the longest.
    up, down : ndarray of shape (n,)
        e^u and e^−u for the distance u of each atom from its block's first.
    bridge : list of length b − 1
        e^−d for the distance d from a block's last atom to the next one's first.
    """

    starts: Any
    owner: Any
    column: Any
    shape: tuple[int, int]
    up: FloatArray
    down: FloatArray
    bridge: list[float]

    @classmethod
    def of(cls, atoms: FloatArray, scale: float) -> _Blocks:
        n = len(atoms)
        if atoms[-1] - atoms[0] <= _BLOCK * scale:
            up = np.exp((atoms - atoms[0]) / scale)
            return cls(np.zeros(1, np.intp), None, None, (1, n), up, 1 / up, [])
        index = np.floor((atoms - atoms[0]) / (_BLOCK * scale))
        new = np.empty(n, dtype=bool)
        np.not_equal(index[1:], index[:-1], out=new[1:])
        # Rows of a table: a single dense block must not make all of them long.
        new[:: 4 * math.isqrt(n) + 4] = True
        starts = np.flatnonzero(new)
        owner = np.cumsum(new) - 1
        up = np.exp((atoms - atoms[starts][owner]) / scale)
        column = np.arange(n) - starts[owner]
        between = (atoms[starts[1:]] - atoms[starts[1:] - 1]) / scale
        return cls(
            starts,
            owner,
            column,
            (len(starts), int(column.max()) + 1),
            up,
            1 / up,
            np.exp(-between).tolist(),
        )

    def sums(self, mass: FloatArray) -> FloatArray:
        """Return the sums for one set of masses."""
        before = self._running(mass * self.up, 1) * self.down
        after = self._running(mass * self.down, -1) * self.up
        total = before + after - mass
        if self.owner is not None:
            self._carry(total, before, after)
        # The atom's own mass was counted twice and taken off once.
        return np.maximum(total, mass, out=total)

    def _running(self, terms: FloatArray, direction: int) -> FloatArray:
        """Return cumulative sums within each block, from the left or the right."""
        if self.owner is None:
            return np.cumsum(terms[::direction])[::direction]
        table = np.zeros(self.shape)
        table[self.owner, self.column] = terms
        table = np.cumsum(table[:, ::direction], axis=1)[:, ::direction]
        running: FloatArray = table[self.owner, self.column]
        return running

    def _carry(self, total: FloatArray, before: FloatArray, after: FloatArray) -> None:
        """Add what the atoms of other blocks contribute."""
        ends = np.append(self.starts[1:], len(total)) - 1
        left, right = before[ends].tolist(), after[self.starts].tolist()
        fade = self.down[ends].tolist()
        last = len(ends) - 1
        # As seen from a block's first atom, and from its last.
        from_left, from_right = [0.0] * (last + 1), [0.0] * (last + 1)
        for i in range(last):
            from_left[i + 1] = (from_left[i] * fade[i] + left[i]) * self.bridge[i]
        for i in range(last, 0, -1):
            seen = from_right[i] * fade[i] + right[i]
            from_right[i - 1] = seen * self.bridge[i - 1]
        total += np.array(from_left)[self.owner] * self.down
        # e^{u − U} first: its factors apart could leave the floats.
        total += np.array(from_right)[self.owner] * (
            self.up * self.down[ends][self.owner]
        )
