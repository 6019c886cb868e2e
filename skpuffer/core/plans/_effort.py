"""How long a search for a better plan may go on, and how far it has come.

Contract: a search without a time limit depends on nothing but its input. Imports the
standard library alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Effort:
    """What a search among many points may cost; it ends at the first limit.

    Attributes
    ----------
    solves : float
        Parts of the plan re-solved at most, each a small transport problem.
    pairs : float
        Pairs of points in those problems, what their time grows with: none is begun
        once there are as many.
    seconds : float or None
        Wall clock time after which none is begun; None for no limit. With a limit of
        time the plan depends on the speed of the machine.
    gain : float
        A pass over the plan that lowers the scale by a smaller share than this is
        followed by one in larger parts; after the largest, the search is over.
    report : callable or None
        ``report(done, total)`` after each part: how many were re-solved, and how many
        there will be as far as is known.

    Examples
    --------
    >>> Effort(solves=8).part(0.5).solves
    4.0
    """

    solves: float = 30_000
    pairs: float = 6e7
    seconds: float | None = None
    gain: float = 1e-3
    report: Report | None = None

    def part(self, share: float) -> Effort:
        """Return a share of it, for one of several searches."""
        return replace(
            self,
            solves=self.solves * share,
            pairs=self.pairs * share,
            seconds=None if self.seconds is None else self.seconds * share,
        )


USUAL_EFFORT = Effort()


class Meter:
    """What a search has cost so far.

    Examples
    --------
    >>> meter = Meter(Effort(solves=2))
    >>> meter.count(pairs=90)
    >>> meter.spent
    False
    >>> meter.count(pairs=90)
    >>> meter.spent
    True
    """

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._solves, self._pairs = 0, 0
        self._start = time.monotonic()

    @property
    def share(self) -> float:
        """The share of the effort that is spent, by the limit that is nearest."""
        effort = self._effort
        parts = [(float(self._solves), effort.solves), (self._pairs, effort.pairs)]
        if effort.seconds is not None:
            parts.append((time.monotonic() - self._start, effort.seconds))
        return max(used / most if most > 0 else math.inf for used, most in parts)

    @property
    def spent(self) -> bool:
        """Whether nothing more may be solved."""
        return self._solves + 1 > self._effort.solves or self.share >= 1

    def count(self, pairs: int) -> None:
        """Note a part that was solved."""
        self._solves += 1
        self._pairs += pairs
        if self._effort.report is not None:
            total = round(self._solves / min(self.share, 1.0))
            self._effort.report(self._solves, total)

    def finish(self) -> None:
        """Note that no more will be solved."""
        if self._effort.report is not None:
            self._effort.report(self._solves, self._solves)
