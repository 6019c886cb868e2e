"""The only door for data: a frame or an array becomes arrays, codes and names.

Frames go through narwhals and scikit-learn's own validation; pandas serves to tell
labels apart. Nothing here knows of noise. Every complaint names the column or the
parameter, what was found and what helps, and comes before anything is computed.
"""

from skpuffer._validation._again import read_again
from skpuffer._validation._categories import unknown_code, warn_of_categories
from skpuffer._validation._chunks import read_chunk, read_counts, read_weights
from skpuffer._validation._contents import Contents
from skpuffer._validation._counted import CountedRows, Layout, rows_to_fit, to_frame
from skpuffer._validation._distinct import Part, added, sorted_rows
from skpuffer._validation._frames import take_columns
from skpuffer._validation._groups import MAX_VALUES, refuse_alike, refuse_misaligned
from skpuffer._validation._reading import labels_beside, read_sample
from skpuffer._validation._rows import (
    read_layout,
    read_mixed_rows,
    read_rows,
    to_multiples,
    within_bounds,
)
from skpuffer._validation._sample import Sample
from skpuffer._validation._tables import read_table, read_tables, table_names
from skpuffer._validation._values import COMPARED
from skpuffer._validation._written import written_like

__all__ = [
    "COMPARED",
    "MAX_VALUES",
    "Contents",
    "CountedRows",
    "Layout",
    "Part",
    "Sample",
    "added",
    "labels_beside",
    "read_again",
    "read_chunk",
    "read_counts",
    "read_layout",
    "read_mixed_rows",
    "read_rows",
    "read_sample",
    "read_table",
    "read_tables",
    "read_weights",
    "refuse_alike",
    "refuse_misaligned",
    "rows_to_fit",
    "sorted_rows",
    "table_names",
    "take_columns",
    "to_frame",
    "to_multiples",
    "unknown_code",
    "warn_of_categories",
    "within_bounds",
    "written_like",
]
