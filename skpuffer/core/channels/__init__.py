"""Channels for categories, and rows of numbers and categories released together.

Contract: a category is a code, a set of categories a matrix of distances, a release a
row of integer probabilities that the calibration is made for. A new rule is one file
here and one line below. Pure; numpy and the neighbouring modules.
"""

from skpuffer.core.channels._channel import UNITS, Channel, renyi_up, uniform_codes
from skpuffer.core.channels._exact import (
    OUTPUT_LIMIT,
    ChannelMixtures,
    RowExact,
    exact_divergence,
)
from skpuffer.core.channels._metric import (
    check_distances,
    discrete,
    mean_distance,
    ordinal,
)
from skpuffer.core.channels._population import population_rows
from skpuffer.core.channels._rows import RowPair, RowRange
from skpuffer.core.channels._transport import RowTransport
from skpuffer.core.channels._witness import RowWitness, WorstRow

ROW_RULES = {rule.name: rule for rule in (RowTransport, RowExact)}

__all__ = [
    "OUTPUT_LIMIT",
    "ROW_RULES",
    "UNITS",
    "Channel",
    "ChannelMixtures",
    "RowExact",
    "RowPair",
    "RowRange",
    "RowTransport",
    "RowWitness",
    "WorstRow",
    "check_distances",
    "discrete",
    "exact_divergence",
    "mean_distance",
    "ordinal",
    "population_rows",
    "renyi_up",
    "uniform_codes",
]
