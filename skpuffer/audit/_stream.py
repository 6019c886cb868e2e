"""The fortunes of a running audit, and what it learns from the rows gone by.

Arrays in, numbers out: what a user gives is checked in `_running`.
"""

from __future__ import annotations

import math
from uuid import uuid4

import numpy as np

from skpuffer._text import listed
from skpuffer.audit._running_settings import RunningSettings
from skpuffer.audit._running_witnesses import (
    Events,
    Moments,
    RowFeatures,
    Witnesses,
    choose_events,
    learn_witnesses,
)
from skpuffer.core.paired_betting import largest_stake, log_factors
from skpuffer.core.prior import FloatArray

# Events and stakes are chosen anew each time the stream has grown by this factor.
_GROWTH = 1.2
# Of the pairs seen, at most this share is held back from the moments to choose events.
_HELD_BACK = 0.4
# Pairs that are bet on at a time.
_BLOCK = 2048


class Stream:
    """Two streams of rows, paired in order, and a fortune for each claim.

    Parameters
    ----------
    settings : RunningSettings
    width : int
        Number of columns.
    """

    def __init__(self, settings: RunningSettings, width: int) -> None:
        self.settings = settings
        self.width = width
        self.columns: tuple[str, ...] = ()
        # Names of the streams of which pairs are counted here.
        self.origins = {uuid4().hex}
        self.n_pairs = self.n_bets = 0
        self.features: RowFeatures | None = None
        self.moments: Moments | None = None
        self.waiting = [np.empty((0, width)), np.empty((0, width))]
        self.recent: list[list[FloatArray]] = [[], []]
        self.n_recent = 0
        self.next_choice = settings.n_warmup
        # One for each direction: what is learned of first against second.
        self.witnesses: list[Witnesses] = []
        self.events: list[Events] = []
        claims = len(settings.epsilons)
        self.log_fortunes = np.zeros((1 + settings.symmetric, claims))
        self.log_peaks = np.zeros(claims)

    def spawn(self) -> Stream:
        """Return an empty stream with the same features."""
        other = Stream(self.settings, self.width)
        other.columns, other.features = self.columns, self.features
        return other

    def expect(self, width: int, columns: tuple[str, ...]) -> None:
        """Refuse rows with other columns than those before.

        Raises
        ------
        ValueError
            Their number or, where both are known, their names differ.
        """
        if width != self.width:
            raise ValueError(
                f"X has {width} columns, and had {self.width} before: give the same"
            )
        if columns and self.columns and columns != self.columns:
            raise ValueError(
                f"X has the columns {listed(list(columns))}, and had "
                f"{listed(list(self.columns))} before: give the same in the same order"
            )
        self.columns = self.columns or columns

    def feed(self, X: FloatArray, Y: FloatArray) -> None:
        """Pair the rows with those that wait, and bet on each pair in turn."""
        rows = [np.concatenate(two) for two in zip(self.waiting, (X, Y), strict=True)]
        paired = min(map(len, rows))
        start = 0
        while start < paired:
            stop = min(paired, start + _BLOCK, start + self.next_choice - self.n_pairs)
            self._take(*(side[start:stop] for side in rows))
            start = stop
        for side, given in enumerate(rows):
            given_up = max(paired, len(given) - self.settings.buffer_size)
            if given_up > paired and self.moments is not None:
                # Never to be bet on: they may be learned from.
                assert self.features is not None
                features = self.features.transform(given[paired:given_up])
                self.moments.add(side, features)
            self.waiting[side] = given[given_up:].copy()

    def _take(self, x: FloatArray, y: FloatArray) -> None:
        if self.events:
            self._bet(x, y)
        for side, rows in enumerate((x, y)):
            self.recent[side].append(rows.copy())
        self.n_recent += len(x)
        self.n_pairs += len(x)
        if self.n_recent >= 2 * self.settings.buffer_size and self.moments is not None:
            self._absorb(self.settings.buffer_size)
        if self.n_pairs == self.next_choice:
            self._choose()

    def _bet(self, x: FloatArray, y: FloatArray) -> None:
        """Multiply the fortunes, and note the largest each has ever been.

        Events and stakes come from earlier pairs: of the factors of a pair each has
        mean at most 1 given the past if the claim is true (`log_factors`). The mean of
        two fortunes with that property has it too.
        """
        assert self.features is not None
        sides = [self.features.transform(x), self.features.transform(y)]
        paths = np.empty((len(self.log_fortunes), len(x), len(self.log_peaks)))
        for direction, (witnesses, events) in enumerate(
            zip(self.witnesses, self.events, strict=True)
        ):
            first, second = (
                events.occur(witnesses.scores(side))
                for side in (sides if direction == 0 else sides[::-1])
            )
            paths[direction] = log_factors(
                first,
                second,
                epsilon=np.array(self.settings.epsilons),
                delta=self.settings.delta,
                stake=events.stake,
            )
        paths[:, 0] += self.log_fortunes
        np.cumsum(paths, axis=1, out=paths)
        self.log_fortunes = paths[:, -1].copy()
        self.log_peaks = np.maximum(self.log_peaks, log_mean(paths).max(axis=0))
        self.n_bets += len(x)

    def _absorb(self, kept: int) -> None:
        """Move all but the latest pairs into the moments."""
        assert self.features is not None
        assert self.moments is not None
        for side in (0, 1):
            rows = np.concatenate(self.recent[side])
            old, self.recent[side] = rows[:-kept], [rows[-kept:].copy()]
            for start in range(0, len(old), _BLOCK):
                part = self.features.transform(old[start : start + _BLOCK])
                self.moments.add(side, part)
        self.n_recent = kept

    def _choose(self) -> None:
        """Learn witnesses from the older pairs, and choose events by the latest."""
        settings = self.settings
        if self.features is None:
            self.features = RowFeatures.learn(
                *(np.concatenate(side) for side in self.recent),
                metric=settings.metric,
                gamma=settings.gamma,
                n_components=settings.n_components,
                seed=settings.seed,
            )
        if self.moments is None:
            self.moments = Moments.empty(self.features.n_features)
        kept = max(1, min(settings.buffer_size, int(_HELD_BACK * self.n_pairs)))
        if self.n_recent > kept:
            self._absorb(kept)
        sides = [self.features.transform(np.concatenate(s)) for s in self.recent]
        self.witnesses, self.events = [], []
        for direction in range(len(self.log_fortunes)):
            turned = slice(None, None, -1 if direction else 1)
            found = learn_witnesses(
                self.moments.sums[turned],
                self.moments.counts[turned],
                self.width,
                settings.reg,
            )
            self.witnesses.append(found)
            self.events.append(
                choose_events(
                    *(found.scores(side) for side in sides[turned]),
                    epsilons=np.array(settings.epsilons),
                    delta=settings.delta,
                )
            )
        self.next_choice = math.ceil(self.n_pairs * _GROWTH)

    def merge(self, other: Stream) -> None:
        """Multiply the fortunes with those of an independent stream.

        Given everything else, a pair of either stream multiplies the product
        M(t, t') = E(t) E'(t') by a factor of mean at most 1 if the claim is true, so
        that the product is an e-process in whatever order the streams advance, at the
        moment of a merge and after it. The peaks that either fortune has had before
        are those of other processes: P(any of E, E', M ever reaches 1/β) is bounded by
        3β alone, so that they are forgotten. After the merge the product is split over
        the directions in the proportions of the past.
        """
        self.origins |= other.origins
        product = log_mean(self.log_fortunes) + log_mean(other.log_fortunes)
        both = self.log_fortunes + other.log_fortunes
        self.log_fortunes = both - log_mean(both) + product
        self.log_peaks = np.maximum(product, 0.0)
        self.n_bets += other.n_bets
        larger = other.features is not None and (
            self.features is None or other.n_pairs > self.n_pairs
        )
        given = None if other.moments is None else other.moments.copy()
        if (
            self.features is not None
            and other.features is not None
            and self.features.same_as(other.features)
        ):
            if self.moments is not None and given is not None:
                given.merge(self.moments)
            self.moments = given or self.moments
        elif larger:
            self.features, self.moments = other.features, given
        self.n_pairs += other.n_pairs
        self.n_recent += other.n_recent
        for side in (0, 1):
            self.recent[side] = [*self.recent[side], *other.recent[side]]
        if self.n_pairs >= self.settings.n_warmup:
            self._choose()
        self.feed(*other.waiting)

    @property
    def needed(self) -> float:
        """The log fortune at which a claim is refuted [Ville 1939]."""
        return -math.log(self.settings.error)

    def could_refute(self, epsilon: float) -> bool:
        """Whether the luckiest stream of this length would have refuted a claim."""
        delta = self.settings.delta
        most = math.log1p(float(largest_stake(epsilon, delta)) * (1 - delta))
        return self.n_bets * most >= self.needed

    def refuted(self) -> int:
        """Return how many claims are refuted, counted from the smallest on.

        The first true claim of the grid is one fixed claim, and all later ones are true
        too. To count it as refuted its own fortune must have reached 1/β, which has
        probability at most β. So none of the others needs a share of β.
        """
        reached = self.log_peaks >= self.needed
        return len(reached) if reached.all() else int(reached.argmin())


def log_mean(logs: FloatArray) -> FloatArray:
    """Return the log of the mean over the first axis."""
    found: FloatArray = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
    return found
