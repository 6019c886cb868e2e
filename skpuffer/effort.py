"""How long a fit searches for couplings of very many rows: `coupling_effort`.

Contract: an effort is in force while its block lasts, in this process, and no estimator
keeps one. It decides how much noise a fit finds to be enough, never what it promises.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from skpuffer._checks import integer, number
from skpuffer._progress import progress
from skpuffer.core.plans import USUAL_EFFORT, Effort
from skpuffer.exceptions import ParameterError

# With an effort of their own choice users want gains that take longer.
_LONG_GAIN = 1e-4

_LOCK = threading.Lock()
# Those in force, the last one counts.
_EFFORTS: list[Effort] = []


def coupling_effort(
    *, seconds: float | None = None, solves: int | None = None
) -> AbstractContextManager[None]:
    """Let fits within the block search longer, or shorter, for their couplings.

    The scale of several columns released together rests on a coupling of the rows of
    two secret values. Up to 2,000 distinct rows a side the best one is computed. Among
    more it is searched: the search starts from sorted projections, re-solves parts of
    the plan, and ends where a pass over all of it gains little or the effort is spent.
    Any coupling keeps the promise; a better one needs less noise.

    Parameters
    ----------
    seconds : float, optional
        Wall clock time that the searches of one fit may take in all, shared evenly
        among its secret pairs. What is found within a time depends on the speed of the
        machine, and so do the scales: without `seconds` a fit repeats exactly.
    solves : int, optional
        How many parts of a plan may be re-solved for each secret pair; 30,000 without
        this function. Larger numbers also allow for larger parts.

    Returns
    -------
    context manager
        In force in all threads of the process until the block ends; of several, the
        one entered last counts. Worker processes of joblib's default backend know
        nothing of it; a process that is forked meanwhile does.

    Raises
    ------
    ParameterError
        Neither limit is given, or one is not positive.

    Notes
    -----
    Fewer rows, columns released one by one and a ``prior_model`` other than
    ``"empirical"`` need no search, and do not notice.
    ``verbose=1`` on the estimator shows how far a search has come.

    Examples
    --------
    >>> import numpy as np
    >>> from skpuffer import RenyiPufferfishGaussian, coupling_effort
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(4200, 2))
    >>> secret = np.arange(4200) % 2
    >>> scales = []
    >>> for solves in (1, 400):
    ...     with coupling_effort(solves=solves):
    ...         noise = RenyiPufferfishGaussian(secret_from_y=True).fit(rows, secret)
    ...     scales.append(noise.scale_[0])
    >>> bool(scales[1] < scales[0])
    True

    A fit that may take ten minutes longer, where it finds something:

    >>> with coupling_effort(seconds=600):
    ...     noise = RenyiPufferfishGaussian(secret_from_y=True).fit(rows[:99], secret[:99])
    """
    if seconds is None and solves is None:
        raise ParameterError(
            "coupling_effort needs a limit: give seconds, solves or both"
        )
    usual = USUAL_EFFORT
    pairs = most = math.inf
    if solves is not None:
        most = integer("solves", solves, least=1)
        pairs = usual.pairs * most / usual.solves
    if seconds is not None:
        seconds = number("seconds", seconds, above=0)
    return _in_force(Effort(most, pairs, seconds, gain=_LONG_GAIN))


@contextmanager
def _in_force(effort: Effort) -> Iterator[None]:
    with _LOCK:
        _EFFORTS.append(effort)
    try:
        yield
    finally:
        with _LOCK:
            # This one, not an equal one.
            place = [entry is effort for entry in _EFFORTS].index(True)
            del _EFFORTS[place]


@contextmanager
def effort_of_a_fit(verbose: int) -> Iterator[Effort]:
    """Yield the effort in force, which shows a bar where a fit should tell."""
    with _LOCK:
        effort = _EFFORTS[-1] if _EFFORTS else USUAL_EFFORT
    with progress("coupling", "part", shown=verbose) as report:
        yield effort if report is None else replace(effort, report=report)
