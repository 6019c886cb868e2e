"""The noise that hides pairs of secret values, by law, rule, order and budget.

For the reproductions of Ding, Yang and Zhang 2026, which show what is computed and drawn
here, and which find the loaders of the folder above, `tables`, after importing this.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from skpuffer import ConditionalCounts, compare_mechanisms
from skpuffer.displays import NoiseDisplay

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

RULES = ["w_inf", "alpha_wasserstein", "closed_form", "transport", "exact"]
# As the paper has them; Gaussian transport is Theorem 2.
NAMES = {
    "laplace": {
        "w_inf": "W∞",
        "alpha_wasserstein": "Theorem 1",
        "closed_form": "chord (Corollary 1)",
        "transport": "transport",
        "exact": "exact",
    },
    "gaussian": {
        "w_inf": "W∞",
        "alpha_wasserstein": "Theorem 2 = transport",
        "closed_form": "chord (Corollary 3)",
        "exact": "exact",
    },
}
_KEYS = ["epsilon", "alpha", "law", "calibration"]


def noise_of_pair(
    data, column, pair, *, alphas, epsilons, laws=("laplace", "gaussian"), rules=RULES
):
    """Return the noise that one column needs, about one pair of secret values.

    Parameters
    ----------
    data : frame
    column : str
        What would be released.
    pair : (secret, value, other value)
        The column of the secret, and two of its values.
    alphas, epsilons : sequences of float
        Rényi orders and budgets.
    laws, rules : sequences of str

    Returns
    -------
    pandas.DataFrame
        One line for each ε, α, law and rule: `scale` (Laplace b, Gaussian σ) and
        `noise_std`, in units of the column, and `noise_to_spread`.
    """
    secret, *values = pair
    counts = ConditionalCounts.from_frame(data[[column, secret]], secret=secret)
    lines = [
        compare_mechanisms(
            counts,
            laws=laws,
            calibrations=rules,
            scopes="column",
            secret_pairs=[tuple(values)],
            alpha=alpha,
            epsilon=epsilon,
        ).assign(epsilon=epsilon, alpha=alpha)
        for epsilon in epsilons
        for alpha in alphas
    ]
    table = pd.concat(lines, ignore_index=True)
    return table[[*_KEYS, "scale", "noise_std", "noise_to_spread"]]


def noise_by_pair(data, column, pairs, *, alphas, exact_alphas, epsilons):
    """Return a table for each pair, and one for the noise that hides all of them.

    The exact rule takes most of the time, and has orders of its own.
    """
    tables = {}
    for pair in pairs:
        setting = data, column, pair
        most = {"alphas": alphas, "rules": RULES[:-1]}
        exact = {"alphas": exact_alphas, "rules": ["exact"]}
        tables["{}: {}, {}".format(*pair)] = pd.concat(
            noise_of_pair(*setting, epsilons=epsilons, **which)
            for which in (most, exact)
        )
    return tables | {"all pairs": largest(tables.values())}


def largest(tables):
    """Return the noise that hides every pair: the largest, line by line.

    More noise of the same law never raises a divergence, so that it keeps the promise
    about each of the pairs.
    """
    return pd.concat(tables).groupby(_KEYS, sort=False).max().reset_index()


def draw(tables, law, *, title, column):
    """Draw a row for each ε and a panel for each table."""
    names = NAMES[law]
    epsilons = tables["all pairs"]["epsilon"].unique()
    figure, axes = plt.subplots(
        len(epsilons),
        len(tables),
        figsize=(11, 6),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for row, epsilon in zip(axes, epsilons, strict=True):
        for ax, (label, table) in zip(row, tables.items(), strict=True):
            shown = table[(table["law"] == law) & (table["epsilon"] == epsilon)]
            display = NoiseDisplay(shown, column=column).plot(ax)
            display.legend_.remove()
            drawn = {rule: display.lines_[law, rule, epsilon] for rule in RULES}
            drawn["transport"].set_visible("transport" in names)
            # Computed at few orders.
            drawn["exact"].set_linestyle("")
            ax.set(title=label if epsilon == epsilons[0] else "", ylabel="")
            ax.label_outer()
        row[0].set_ylabel(f"ε = {epsilon:g}")
    figure.suptitle(f"{title}: {law.capitalize()} noise on {column}")
    figure.supylabel(f"standard deviation (units of {column})")
    lines = [drawn[rule] for rule in names]
    figure.legend(lines, names.values(), loc="outside lower center", ncols=len(names))


def show(tables, law):
    """Print the standard deviations of the noise that hides all pairs."""
    names, table = NAMES[law], tables["all pairs"]
    wide = table[table["law"] == law].pivot(
        index=["epsilon", "alpha"], columns="calibration", values="noise_std"
    )
    wide = wide[list(names)].rename(columns=names).rename_axis(columns=None)
    print(f"{law.capitalize()} noise that hides all pairs, standard deviation")
    print(wide.to_string(float_format="{:.2f}".format, na_rep=""))
