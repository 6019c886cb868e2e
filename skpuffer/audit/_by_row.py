"""Scores of scorers that a user gives, checked to be of each row by itself.

Counts are binomial only if the score of a row depends on that row alone. A scorer that
looks at the rows beside it turns a whole sample over at once, and voids the level.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import ParameterError

# Rows of a batch that are scored again.
_AGAIN = 8
# What rounding may do to a score, as large as single precision needs: of the score, of
# the spread of all scores, and of scores that are 0 but for rounding.
_RELATIVE, _OF_SPREAD, _OF_ZERO = 1e-6, 1e-6, 1e-12


def by_row(
    score: Callable[[FloatArray], FloatArray], name: str, *, alone: bool
) -> Callable[[FloatArray], FloatArray]:
    """Return the same score, which refuses to look at more than a row at a time.

    Some rows of each batch are scored again, apart from the others. Nothing but the
    refusal depends on what they get.

    Parameters
    ----------
    score : function from rows to scores of shape (n, 1)
    name : str
        Of the scorer.
    alone : bool
        Whether each is scored alone, or they are scored as one smaller batch, where a
        call is dear.

    Returns
    -------
    function
        It raises ParameterError where the scores differ.
    """

    def checked(rows: FloatArray) -> FloatArray:
        found = score(rows)
        few = min(_AGAIN, len(rows) if alone else len(rows) // 2)
        if len(rows) < 2:
            return found
        chosen = np.unique(np.linspace(0, len(rows) - 1, few).astype(np.intp))
        batches = chosen[:, None] if alone else chosen[None, :]
        again = np.concatenate([score(rows[batch]) for batch in batches])
        room = _OF_SPREAD * float(np.ptp(found)) + _OF_ZERO
        if not np.allclose(
            again, found[chosen], rtol=_RELATIVE, atol=room, equal_nan=True
        ):
            # Brute force finds other nearest neighbours among ties in another batch.
            ties = (
                "" if alone else "; nearest neighbours with ties: algorithm='kd_tree'"
            )
            raise ParameterError(
                f"the scorer {name!r} gives a row another score beside other rows, which "
                "would void the level of an audit: score each row by itself, without "
                f"means or ranks over the rows that are scored, and without chance{ties}"
            )
        return found

    return checked
