"""Which two secret values, under which prior, a display compares."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from skpuffer._text import group_text, label_text, listed, value_text
from skpuffer.core.prior import Conditional, Prior
from skpuffer.exceptions import ParameterError


class Compared(NamedTuple):
    """Two conditional distributions of the columns, and what they are given."""

    labels: tuple[Hashable, Hashable]
    prior: Hashable
    first: Conditional
    second: Conditional

    @property
    def text(self) -> str:
        """The pair as a report names it."""
        pair = f"{label_text(self.labels[0])} – {label_text(self.labels[1])}"
        return group_text(self.prior, pair)


def compared_pairs(
    priors: Sequence[Prior], pair: Any = None, prior_value: Hashable = None
) -> list[Compared]:
    """Return the pairs to choose from: those that occur, or the one that is named.

    Parameters
    ----------
    priors : sequence of Prior
    pair : (value, value), optional
        Two secret values, in the order in which they are shown.
    prior_value : hashable, optional
        The value of the prior; None for any.

    Raises
    ------
    ParameterError
        There is no such pair or prior.
    """
    known = [prior.label for prior in priors]
    if prior_value is not None:
        if prior_value not in known:
            shown = listed([repr(label) for label in known if label is not None])
            raise ParameterError(
                f"prior_value={value_text(prior_value)} is not a value of the prior "
                f"({shown or 'there is none'})"
            )
        priors = [prior for prior in priors if prior.label == prior_value]
    wanted = None if pair is None else _as_pair(pair, priors)
    found = []
    for prior in priors:
        places = prior.pairs
        if wanted is not None:
            if not set(wanted) <= set(prior.secrets):
                continue
            first, second = map(prior.secrets.index, wanted)
            places = ((first, second),)
        for i, j in places:
            labels = prior.secrets[i], prior.secrets[j]
            both = prior.conditionals[i], prior.conditionals[j]
            found.append(Compared(labels, prior.label, *both))
    if not found:
        raise ParameterError(
            "no two values of the secret occur together under any prior"
            if wanted is None
            else f"pair={value_text(pair)} does not occur under any one prior"
        )
    return found


def _as_pair(pair: Any, priors: Sequence[Prior]) -> tuple[Hashable, Hashable]:
    values = list(dict.fromkeys(label for prior in priors for label in prior.secrets))
    try:
        given = () if isinstance(pair, (str, bytes)) else tuple(pair)
        right = len(given) == 2 and given[0] != given[1] and set(given) <= set(values)
    except TypeError:
        right = False
    if not right:
        raise ParameterError(
            f"pair={value_text(pair)} must be two different values of the secret "
            f"({listed([repr(value) for value in values])})"
        )
    return given[0], given[1]
