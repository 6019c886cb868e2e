"""The noise that hides a pair of secret values, by law, rule, order and budget.

For the reproductions of Ding, Yang and Zhang 2026, which draw what is computed here.
"""

import pandas as pd

from skpuffer import ConditionalCounts, compare_mechanisms

RULES = ["w_inf", "alpha_wasserstein", "closed_form", "transport", "exact"]


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
    keys = ["epsilon", "alpha", "law", "calibration"]
    table = pd.concat(lines, ignore_index=True)
    return table[[*keys, "scale", "noise_std", "noise_to_spread"]]


def largest(tables):
    """Return the noise that hides every pair: the largest, line by line.

    More noise of the same law never raises a divergence, so that it keeps the promise
    about each of the pairs.
    """
    keys = ["epsilon", "alpha", "law", "calibration"]
    return pd.concat(tables).groupby(keys, sort=False).max().reset_index()
