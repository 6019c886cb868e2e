"""The noise of columns: chunks of rows, and the source of bits that each has.

Contract: no two calls, partitions, columns or chunks share a source, and how many
threads draw changes nothing. Knows of arrays alone; imports `core` and joblib, which
says how many threads there may be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import effective_n_jobs

from skpuffer.core.bits import (
    BitSource,
    KeyedBits,
    SeededBits,
    SystemBits,
    bound_key,
)
from skpuffer.core.grid import check_grid_range, grid_step
from skpuffer.core.law_checks import LawError
from skpuffer.core.laws import NoiseLaw, is_own

# Rows that a thread releases at a time, each chunk with its own stream of bits.
_CHUNK = 2**18

# Writes the release of some values of one column.
ColumnNoise = Callable[[np.ndarray, np.ndarray, BitSource], None]
# The source of bits for a column's chunk, by their numbers and the chunk's values.
BitsOf = Callable[[int, int, np.ndarray], BitSource]


def fresh_source(seed: int | None, call: int) -> BitsOf:
    """Return bits for rows in memory, of the system or of a seed and a call's number."""

    def bits(column: int, chunk: int, values: np.ndarray) -> BitSource:
        if seed is None:
            return SystemBits()
        # One number for the three, each below 2^32.
        return SeededBits(seed, (call << 64) + (column << 32) + chunk)

    return bits


def keyed_source(key: bytes, partition: int) -> BitsOf:
    """Return bits of a secret key for a partition: for these values, and no others."""

    def bits(column: int, chunk: int, values: np.ndarray) -> BitSource:
        return KeyedBits(bound_key(key, values), partition, column, chunk)

    return bits


def seeded_source(seed: int, call: int, partition: int) -> BitsOf:
    """Return bits of a seed and the number of a call, for a partition."""

    def bits(column: int, chunk: int, values: np.ndarray) -> BitSource:
        # One number for the four, each below 2^32; rows in memory have 0 in front.
        number = (partition + 1 << 96) + (call << 64) + (column << 32) + chunk
        return SeededBits(seed, number)

    return bits


def released_columns(
    values: np.ndarray,
    noises: Sequence[ColumnNoise],
    bits: BitsOf,
    n_jobs: int | None,
) -> np.ndarray:
    """Release each column, chunk by chunk, on `n_jobs` threads."""
    released = np.empty_like(values, order="F")
    tasks = [
        (column, start)
        for column in range(values.shape[1])
        for start in range(0, len(values), _CHUNK)
    ]

    def run(task: tuple[int, int]) -> None:
        column, start = task
        noises[column](
            values[start : start + _CHUNK, column],
            released[start : start + _CHUNK, column],
            bits(column, start // _CHUNK, values[start : start + _CHUNK, column]),
        )

    n_threads = min(effective_n_jobs(n_jobs), len(tasks))
    if n_threads == 1:
        for task in tasks:
            run(task)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(run, tasks))
    return released


def additive(law: NoiseLaw, scale: float) -> ColumnNoise:
    """Return what adds the noise of a law to a column of numbers.

    It raises LawError where the law does not write where it is told to.
    """

    def release(values: np.ndarray, out: np.ndarray, bits: BitSource) -> None:
        if not scale:
            out[:] = values
            return
        if is_own(law):
            # The caller's rows, which a law of somebody else's may not write to.
            values = values.view()
            values.flags.writeable = False
            out.fill(np.nan)
        written = law.perturb(values, scale=scale, bits=bits, out=out)
        # What else stands in `out` may be of anything, raw values included.
        if written is not out or (is_own(law) and not _on_grid(out, scale)):
            raise LawError(
                f"perturb of {law.name} noise does not write a release on the grid of "
                "its scale to `out`, or does not return it: see skpuffer.laws.check_law"
            )

    return release


def _on_grid(values: np.ndarray, scale: float) -> bool:
    steps = values / grid_step(scale)
    return bool(np.isfinite(steps).all() and (steps == np.rint(steps)).all())


def refuse_off_grid(
    values: np.ndarray, scale: np.ndarray, names: Sequence[str]
) -> None:
    """Refuse values too large for the grid, before any noise is drawn."""
    for column, name in enumerate(names):
        if scale[column]:
            try:
                check_grid_range(values[:, column], grid_step(float(scale[column])))
            except ValueError as error:
                raise ValueError(f"column {name!r}: {error}") from None
