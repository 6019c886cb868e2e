"""What a grid search pays for calibration when its fits share what they can.

Run from the repository with `python benchmarks/search.py`; `run.py` takes the rows of
`searches`. Use one thread (OMP_NUM_THREADS=1). Times are of `fit` alone, added up over
the candidates of one fold, against one fit of that fold without `reuse_fits`.
"""

import contextlib
import time
import warnings

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from timing import print_rows

import skpuffer

ALPHAS = [1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32]
EPSILONS = [0.1, 0.3, 1, 2, 4]
ROWS, JOINT = 1_000_000, (2_000, 3)
REPEATS = 3


class Mean(RegressorMixin, BaseEstimator):
    """Predicts the mean: a search with next to no time for the model."""

    def fit(self, X, y):  # noqa: D102
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):  # noqa: D102
        return np.full(len(X), self.mean_)


def timed(law):
    """Return a mechanism, and where its fits write down how long they took."""
    times = []

    class Timed(law):
        def fit(self, X, y=None, **given):
            start = time.perf_counter()
            super().fit(X, y, **given)
            times.append(time.perf_counter() - start)
            return self

        def transform(self, X):
            # Noise is not what is measured.
            return np.zeros((len(X), 1))

    # Shares what fits of the mechanism itself share.
    Timed.__module__ = law.__module__
    return Timed, times


def seconds(law, X, y, grid, *, reuse):
    """Return the time of the fits of a search over one fold, secret in y."""
    mechanism, times = timed(law)
    pipeline = Pipeline([("noise", mechanism(secret_from_y=True)), ("model", Mean())])
    every = np.arange(len(X))
    search = GridSearchCV(pipeline, grid, cv=[(every, every[:100])], refit=False)
    with skpuffer.reuse_fits() if reuse else contextlib.nullcontext():
        search.fit(X, y)
    return times


def case(rows, columns):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    return rng.normal(size=(rows, columns)) + 0.3 * y[:, np.newaxis], y


def searches():
    """Yield rows as `run.py` prints them."""
    cases = [
        ("10^6 rows", case(ROWS, 1), REPEATS, "≤ 3"),
        ("2000 × 3 rows, jointly", case(*JOINT), 1, "≤ 50"),
    ]
    for size, (X, y), repeats, goal in cases:
        several = X.shape[1] > 1
        alphas, epsilons = (ALPHAS[1::4], [0.3, 2]) if several else (ALPHAS, EPSILONS)
        grid = {"noise__alpha": alphas, "noise__epsilon": epsilons}
        single = {"noise__alpha": [4], "noise__epsilon": [1]}
        for law in (skpuffer.RenyiPufferfishLaplace, skpuffer.RenyiPufferfishGaussian):
            ours, peer = np.inf, np.inf
            for _ in range(repeats):
                ours = min(ours, sum(seconds(law, X, y, grid, reuse=True)))
                peer = min(peer, *seconds(law, X, y, single, reuse=False), np.inf)
            count = len(alphas) * len(epsilons)
            name = f"{count} candidates, {size}, {law.__name__}"
            yield name, ours, "a single fit", peer, ours / peer, goal


def main():
    warnings.simplefilter("ignore")
    print_rows(searches())


if __name__ == "__main__":
    main()
