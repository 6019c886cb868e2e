"""The only door for data: a frame or an array becomes arrays, codes and names.

Frames go through narwhals and scikit-learn's own validation; pandas serves to tell
labels apart. Nothing here knows of noise. Every complaint names the column or the
parameter, what was found and what helps, and comes before anything is computed.
"""

from skpuffer._validation._again import read_again
from skpuffer._validation._frames import Dropped, frame_like, take_columns
from skpuffer._validation._groups import Groups
from skpuffer._validation._sample import (
    Sample,
    read_rows,
    read_sample,
    within_bounds,
)
from skpuffer._validation._tables import read_table, read_tables, table_names

__all__ = [
    "Dropped",
    "Groups",
    "Sample",
    "frame_like",
    "read_again",
    "read_rows",
    "read_sample",
    "read_table",
    "read_tables",
    "table_names",
    "take_columns",
    "within_bounds",
]
