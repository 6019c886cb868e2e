"""What those who hold a release, a pickle or a message can find out, in figures.

Run from the repository with `python benchmarks/attacks.py`. Each attack returns the
adversary's success against this package and against a naive mechanism or a use that the
documentation warns of: the share of guesses that are right (half of them by chance), or
the share of outputs that give the secret away. The tests hold the former to what the
documentation says.
"""

import gc
import multiprocessing
import os
import pickle
import time
import warnings

import numpy as np
import pandas as pd
from timing import print_rows

import skpuffer
from skpuffer import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.core.grid import grid_step
from skpuffer.exceptions import (
    ExcessiveNoiseWarning,
    ReproducibleNoiseWarning,
)

MECHANISMS = {"Laplace": RenyiPufferfishLaplace, "Gaussian": RenyiPufferfishGaussian}
LOW_BITS = 12


def two_points(rows):
    """Return rows 0 and 1 in equal parts, whose value is the secret."""
    value = np.arange(rows) % 2
    return pd.DataFrame({"x": value.astype(float), "s": value})


def fitted(mechanism, rows=200, **parameters):
    """Return a mechanism that keeps 0 and 1 apart by no more than ε = 1 at order 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExcessiveNoiseWarning)
        return mechanism(alpha=2, epsilon=1, secret="s", **parameters).fit(
            two_points(rows)
        )


def released(noise, values):
    return noise.transform(pd.DataFrame({"x": values}))["x"].to_numpy()


def impossible(outputs, other):
    """Share of outputs that floating-point noise cannot make of another value."""
    noise = outputs - other
    tried = (np.nextafter(noise, -np.inf), noise, np.nextafter(noise, np.inf))
    return 1 - np.any([other + step == outputs for step in tried], axis=0).mean()


def support(mechanism, rows=20_000):
    """Look for outputs that only one of two values can have.

    Returns
    -------
    ours, naive : float
        Shares of the releases of 0 that are no release of 1.
    """
    noise = fitted(mechanism)
    ours = released(noise, np.zeros(rows))
    steps = (ours - 1) / grid_step(float(noise.scale_[0]))
    rng = np.random.default_rng(0)
    naive = rng.laplace(scale=noise.scale_[0], size=rows)
    return float((steps != np.rint(steps)).mean()), float(impossible(naive, 1.0))


def accuracy_of_bits(bits, mark):
    """Learn a mark from low bits on half of the rows; return how often it is right."""
    half = len(mark) // 2
    ones = np.bincount(bits[:half], mark[:half], minlength=2**LOW_BITS)
    every = np.bincount(bits[:half], minlength=2**LOW_BITS)
    guess = 2 * ones[bits[half:]] > every[bits[half:]]
    return float((guess == mark[half:]).mean())


def low_bits(mechanism, rows=200_000):
    """Read a mark in the lowest bits of the values off those of the release.

    Marked values are a 4096th larger; the naive release adds noise of two decimals.

    Returns
    -------
    ours, naive : float
        Shares of right guesses.
    """
    rng = np.random.default_rng(1)
    mark = rng.integers(0, 2, rows)
    values = rng.integers(0, 2, rows) + mark / 2**LOW_BITS
    noise = fitted(mechanism)
    steps = released(noise, values) / grid_step(float(noise.scale_[0]))
    ours = np.mod(steps, 2**LOW_BITS).astype(int)
    rough = values + np.round(rng.laplace(scale=noise.scale_[0], size=rows), 2)
    # Hundredths are multiples of 2^12 in these units, marks are not.
    naive = np.rint(rough * 100 * 2**LOW_BITS).astype(np.int64) % 2**LOW_BITS
    return accuracy_of_bits(ours, mark), accuracy_of_bits(naive, mark)


def stolen_pickle(mechanism, rows=500):
    """Subtract the noise that a stolen pickle makes.

    Returns
    -------
    ours, naive : float
        Shares of values recovered from the release, without and with a seed.
    """
    shares = []
    values = two_points(rows)["x"].to_numpy()
    for seed in (None, 7):
        noise = fitted(mechanism, random_state=seed)
        thief = pickle.loads(pickle.dumps(noise))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReproducibleNoiseWarning)
            guess = released(noise, values) - released(thief, np.zeros(rows))
        shares.append(float((np.abs(guess - values) < 1e-3).mean()))
    return tuple(shares)


def averaging(mechanism, times=100, rows=4000):
    """Average repeated releases of the same rows.

    Returns
    -------
    once, often : float
        Shares of rows whose value, 0 or 1, is guessed right from one release and from
        the mean of many. Nothing prevents it: every release spends the promise again.
    """
    noise = fitted(mechanism)
    values = two_points(rows)["x"].to_numpy()
    total, shares = np.zeros(rows), {}
    for made in range(1, times + 1):
        total += released(noise, values)
        shares[made] = float(((total > made / 2) == (values > 0.5)).mean())
    return shares[1], shares[times]


def differencing(mechanism, repeats=400, rows=20):
    """Guess the value of a person who came between two releases of a table.

    Returns
    -------
    ours, naive : float
        Shares of right guesses from the difference of the first rows and the last row;
        the naive release draws the noise of both tables from one seed.
    """
    rng = np.random.default_rng(2)
    noise = fitted(mechanism)
    right = np.zeros(2)
    for trial in range(repeats):
        values = rng.integers(0, 2, rows + 1).astype(float)
        old, new = released(noise, values[:rows]), released(noise, values)
        # The sums differ by the newcomer and by noise that is not the same.
        right[0] += ((new.sum() - old.sum()) > 0.5) == (values[-1] > 0.5)
        scale = noise.scale_[0]
        shared = np.random.default_rng(trial).laplace(scale=scale, size=rows + 1)
        known = np.random.default_rng(trial).laplace(scale=scale, size=rows + 1)
        right[1] += ((values + shared)[-1] - known[-1] > 0.5) == (values[-1] > 0.5)
    return tuple((right / repeats).tolist())


def extreme_member(mechanism, repeats=60, rows=300):
    """Tell from `scale_` whether a person of 500 years is among the fitted rows.

    Returns
    -------
    bounded, empirical : float
        Shares of right guesses for ``prior_model="bounded"``, whose scale depends on
        no row, and for the fitted prior, whose scale is part of what it knows.
    """
    rng = np.random.default_rng(3)
    right = np.zeros(2)
    settings = ({"prior_model": "bounded", "bounds": (0, 100)}, {})
    for _ in range(repeats):
        member = bool(rng.integers(0, 2))
        group = rng.integers(0, 2, rows)
        age = rng.normal(40 + 5 * group, 10)
        if member:
            age[0] = 500.0
        for place, parameters in enumerate(settings):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExcessiveNoiseWarning)
                noise = mechanism(secret_from_y=True, **parameters)
                scale = noise.fit(age[:, np.newaxis], group).scale_[0]
            usual = 30.0 if place else 1.1 * 100.0
            right[place] += (scale > usual) == member
    return tuple((right / repeats).tolist())


def order_of_rows(mechanism, rows=400):
    """Guess the secret from where a row stands in a table that was sorted by it.

    Returns
    -------
    shuffled, sorted : float
        Shares of right guesses. The order and the index of rows are released as they
        are: who sorts by the secret releases it.
    """
    frame = two_points(rows).sort_values("s", ignore_index=True)
    mixed = frame.sample(frac=1, random_state=0, ignore_index=True)
    shares = []
    for table in (mixed, frame):
        release = fitted(mechanism).transform(table)
        guess = release.index.to_numpy() >= rows // 2
        shares.append(float((guess == (table["s"] == 1)).mean()))
    return tuple(shares)


def timing(mechanism, rows=2**16, repeats=25):
    """Compare how long releases of small, large and fractional values take.

    Returns
    -------
    spread, noise : float
        The largest relative difference of the median times between kinds of values,
        and between repetitions of one kind.
    """
    noise = fitted(mechanism)
    rng = np.random.default_rng(4)
    kinds = {
        "zero": np.zeros(rows),
        "again": np.zeros(rows),
        "large": np.full(rows, 1e6),
        "fractions": rng.normal(size=rows),
    }
    times = {name: [] for name in kinds}
    for _ in range(repeats):
        for name, values in kinds.items():
            table = pd.DataFrame({"x": values})
            start = time.perf_counter()
            noise.transform(table)
            times[name].append(time.perf_counter() - start)
    median = {name: float(np.median(taken)) for name, taken in times.items()}
    apart = [abs(median[name] / median["zero"] - 1) for name in ("large", "fractions")]
    return max(apart), abs(median["again"] / median["zero"] - 1)


def arrays_with(value):
    """Count the arrays of this process that hold a value."""
    # Arrays are not tracked themselves, what holds them is.
    held = {id(item): item for item in gc.get_referents(*gc.get_objects())}
    arrays = [item for item in held.values() if isinstance(item, np.ndarray)]
    return sum(
        bool((array == value).any()) for array in arrays if array.dtype == np.float64
    )


def leftovers(mechanism, rows=400):
    """Search the memory of the process for a fitted value, after a search is over.

    Returns
    -------
    after, within : float
        Arrays with the value after the fits and their block of `reuse_fits`, and
        within it, where copies are kept for the next fit.
    """
    secret = np.arange(rows) % 2
    planted = 12345.678901
    noise = mechanism(secret_from_y=True)

    def fit(alpha):
        values = np.linspace(0, 1, rows)
        values[0] = planted
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExcessiveNoiseWarning)
            noise.set_params(alpha=alpha).fit(values[:, np.newaxis], secret)

    with skpuffer.reuse_fits():
        fit(2)
        fit(4)
        gc.collect()
        within = arrays_with(planted)
    gc.collect()
    return arrays_with(planted), within


def _forked(noise, values, generator, queue):
    queue.put((released(noise, values), generator.laplace(size=len(values))))


def forks(mechanism, rows=1000):
    """Compare the noise that two forked workers draw.

    Returns
    -------
    ours, naive : float
        Shares of values that are the same in both.
    """
    noise, generator = fitted(mechanism), np.random.default_rng(5)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    arguments = (noise, np.zeros(rows), generator, queue)
    workers = [context.Process(target=_forked, args=arguments) for _ in range(2)]
    for worker in workers:
        worker.start()
    (ours, naive), (others, again) = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    return float((ours == others).mean()), float((naive == again).mean())


# What is measured, the attack, and its peer: a naive mechanism or a use to beware of.
ATTACKS = (
    ("outputs that only one of two values can have", support, "floating-point noise"),
    ("a mark guessed from the lowest bits", low_bits, "noise of two decimals"),
    ("values recovered with a stolen pickle", stolen_pickle, "random_state=7"),
    ("values guessed from one release", averaging, "mean of 100 releases"),
    ("newcomer guessed from two releases", differencing, "one seed for both"),
    ("extreme member guessed from scale_", extreme_member, "the fitted prior"),
    ("secret guessed from the order of rows", order_of_rows, "sorted by the secret"),
    ("values that two forked workers share", forks, "a numpy generator"),
    ("arrays with a fitted value left behind", leftovers, "within reuse_fits"),
    ("difference of time between values", timing, "between repetitions"),
)


def attacks():
    """Yield rows as `run.py` prints them."""
    for law, mechanism in MECHANISMS.items():
        for what, attack, peer in ATTACKS:
            if attack is forks and not hasattr(os, "fork"):
                continue
            ours, other = attack(mechanism)
            ratio = ours / other if other else float("nan")
            yield f"{law}: {what}", ours, peer, other, ratio, ""


def main():
    print_rows(attacks())


if __name__ == "__main__":
    main()
