"""A progress bar for what may take more than a few seconds.

The one file that knows tqdm, which is imported once there is something to show. A bar
changes nothing of what a task finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Takes how many steps are done, and how many there will be as far as is known.
Report = Callable[[int, int], None]


@contextmanager
def progress(description: str, unit: str, *, shown: Any) -> Iterator[Report | None]:
    """Yield what shows how far a task has come, or None if nothing is to be shown.

    Parameters
    ----------
    description, unit : str
        What the bar calls the task and its steps.
    shown : int or bool
        As `verbose`: 0 shows nothing.
    """
    if not shown:
        yield None
        return
    bar = _Bar(description, unit)
    try:
        yield bar.report
    finally:
        bar.close()


def stepwise(report: Report | None, total: int) -> Callable[[], None]:
    """Return what is called after each of `total` steps, and reports them."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if report is not None:
            report(done, total)

    return step


class _Bar:
    """A bar over one task after another, there from the first report on."""

    def __init__(self, description: str, unit: str) -> None:
        self._names = {"desc": description, "unit": unit}
        self._bar: Any = None
        self._before = self._done = 0

    def report(self, done: int, total: int) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(leave=False, **self._names)
        if done < self._done:
            # Another task has begun.
            self._before += self._done
            self._done = 0
        self._bar.total = self._before + total
        self._bar.update(done - self._done)
        self._done = done

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
