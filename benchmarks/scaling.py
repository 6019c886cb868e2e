"""Cost of a fit and a transform against the number of rows, with peers and a picture.

Run from the repository with `python benchmarks/scaling.py [FILE.png]`: from 10³ to 10⁷
rows of one column beside its secret, in a pandas frame. Times are the best of several,
taken in turns; memory is the most that was allocated at once, without the input. The
picture needs matplotlib.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler
from timing import best_of, peak_bytes

from skpuffer import RenyiPufferfishGaussian, RenyiPufferfishLaplace

SIZES = [10**power for power in range(3, 8)]
# About this many rows are worked on for every size, within these numbers of rounds.
WORK, LEAST, MOST = 2 * 10**7, 3, 25


def frame(rows):
    """Return a normal column and a secret of two values that moves it."""
    rng = np.random.default_rng(0)
    secret = rng.integers(0, 2, rows)
    return pd.DataFrame({"x": rng.normal(0.3 * secret, 1 + 0.2 * secret), "s": secret})


def runs(table):
    """Return what is measured at one size: names and functions without arguments."""
    rng = np.random.default_rng(1)
    column = table[["x"]]
    values = column.to_numpy()
    measured = {
        "np.sort": lambda: np.sort(values[:, 0]),
        "x + rng.laplace (unsafe)": lambda: values + rng.laplace(size=values.shape),
        "x + rng.normal (unsafe)": lambda: values + rng.normal(size=values.shape),
        "StandardScaler, fit and transform": lambda: (
            StandardScaler().set_output(transform="pandas").fit_transform(column)
        ),
    }
    for name, mechanism in (
        ("Laplace", RenyiPufferfishLaplace),
        ("Gaussian", RenyiPufferfishGaussian),
    ):
        noise = mechanism(alpha=4, epsilon=1, secret="s").fit(table)
        measured[f"{name}, fit"] = lambda noise=noise: noise.fit(table)
        measured[f"{name}, transform"] = lambda noise=noise: noise.transform(table)
    return measured


def measure():
    """Return seconds and peak bytes: tables of rows by what is measured."""
    seconds, peaks = {}, {}
    for rows in SIZES:
        measured = runs(frame(rows))
        rounds = min(max(WORK // rows, LEAST), MOST)
        times = best_of(measured.values(), rounds)
        seconds[rows] = dict(zip(measured, times, strict=True))
        peaks[rows] = {name: peak_bytes(run) for name, run in measured.items()}
    return (pd.DataFrame.from_dict(found, orient="index") for found in (seconds, peaks))


def draw(seconds, peaks, path):
    """Draw time and memory a row against the number of rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    for axes, table, unit, title in zip(
        figure.subplots(1, 2),
        (seconds, peaks),
        (1e-9, 1),
        ("nanoseconds a row", "peak bytes a row, without the input"),
        strict=True,
    ):
        for name in table:
            ours = "fit" in name.split(", ")[-1] and "Scaler" not in name
            ours |= name.endswith(", transform")
            style = {"marker": "o"} if ours else {"ls": "--", "color": "0.5"}
            style |= {"marker": "s"} if "Scaler" in name else {}
            style |= {"ls": ":" if "laplace" in name else "-."} if "rng" in name else {}
            axes.loglog(
                table.index, table[name] / table.index / unit, label=name, **style
            )
        axes.set(xlabel="rows", ylabel=title, title=title)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="small")
    figure.savefig(path, dpi=110)


def cost_by_rows(plot=None):
    """Yield rows as `run.py` prints them: how the cost grows, and what peers take."""
    seconds, peaks = measure()
    if plot:
        draw(seconds, peaks, plot)
    for name in ("Laplace, fit", "Laplace, transform"):
        large, small = (seconds[name][rows] / rows for rows in (10**7, 10**5))
        yield (
            f"{name}, pandas frame: seconds a row, 10^7 rows",
            large,
            "10^5 rows",
            small,
            large / small,
            "≤ 2",
        )
        ours = seconds[name][10**6]
        peer_name = "StandardScaler, fit and transform"
        peer = seconds[peer_name][10**6]
        name = f"{name}, pandas frame, 10^6 rows"
        yield name, ours, peer_name, peer, ours / peer, ""
    nbytes = 8 * 10**7
    for name in ("Laplace, fit", "Laplace, transform"):
        peak = peaks[name][10**7] + nbytes
        name = f"{name}, 10^7 rows: peak bytes, input included"
        yield name, peak, "bytes of the column", nbytes, peak / nbytes, "≤ 4"


def main():
    seconds, peaks = measure()
    pd.set_option("display.width", 200, "display.max_columns", None)
    pd.set_option("display.float_format", "{:.3g}".format)
    print("nanoseconds a row\n", (seconds.div(seconds.index, axis=0) * 1e9).T, sep="")
    print("\nof np.sort\n", seconds.div(seconds["np.sort"], axis=0).T, sep="")
    print("\npeak bytes a row\n", peaks.div(peaks.index, axis=0).T, sep="")
    if sys.argv[1:]:
        draw(seconds, peaks, sys.argv[1])


if __name__ == "__main__":
    main()
