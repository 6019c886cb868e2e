"""What a sample of categories says of the population: lower bounds, and the rest.

With confidence 1 − β every probability of the population is at least its bound
(Clopper and Pearson 1934, one-sided, at level β / K each). A coupling may then be made
of the bounds, and what is left of either side, whose categories are not known, is
charged at the dearest pair: no population within the bounds pays more.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import beta as beta_distribution

from skpuffer.core.prior import Conditional

# Bounds are rounded down to whole parts of this.
_UNITS = 2**40
_ROUND_OFF = 1e-9


def population_rows(sample: Conditional, size: int, beta: float) -> Conditional:
    """Bound the distribution of a category that a sample was drawn from.

    Parameters
    ----------
    sample : Conditional
        One column of codes below `size`, unweighted rows.
    size : int
        Number K of declared categories.
    beta : float
        Probability with which any of the bounds may fail.

    Returns
    -------
    Conditional
        Its atoms have their lower bounds; code K stands for any category, with the
        mass that is left.

    Examples
    --------
    >>> rows = Conditional.from_rows([[0.0]] * 90 + [[2.0]] * 10)
    >>> bounded = population_rows(rows, 3, 0.05)
    >>> bounded.support.ravel(), bounded.probabilities.round(3)
    (array([0., 2., 3.]), array([0.817, 0.046, 0.137]))
    """
    n = sample.n_rows
    counts = np.zeros(size)
    counts[sample.support[:, 0].astype(np.intp)] = sample.probabilities * n
    seen = np.rint(counts)
    lower = np.zeros(size)
    found = seen > 0
    lower[found] = beta_distribution.ppf(beta / size, seen[found], n - seen[found] + 1)
    units = np.floor(lower * (1 - _ROUND_OFF) * _UNITS).astype(np.int64)
    codes = np.append(np.flatnonzero(units), size).astype(np.float64)
    mass = np.append(units[units > 0], _UNITS - units.sum())
    return Conditional(codes[:, np.newaxis], mass, n, float(n))
