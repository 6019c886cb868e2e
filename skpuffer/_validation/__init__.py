"""The only door for data: a frame or an array becomes arrays, codes and names.

Frames go through narwhals and scikit-learn's own validation; pandas serves to tell
labels apart. Nothing here knows of noise. Every complaint names the column or the
parameter, what was found and what helps, and comes before anything is computed.
"""

from skpuffer._validation._again import read_again
from skpuffer._validation._categories import CategorySet, unknown_code
from skpuffer._validation._frames import Dropped, take_columns
from skpuffer._validation._groups import Groups
from skpuffer._validation._rows import read_mixed_rows, read_rows, within_bounds
from skpuffer._validation._sample import Sample, read_sample
from skpuffer._validation._tables import read_table, read_tables, table_names
from skpuffer._validation._written import written_like

__all__ = [
    "CategorySet",
    "Dropped",
    "Groups",
    "Sample",
    "read_again",
    "read_mixed_rows",
    "read_rows",
    "read_sample",
    "read_table",
    "read_tables",
    "table_names",
    "take_columns",
    "unknown_code",
    "within_bounds",
    "written_like",
]
