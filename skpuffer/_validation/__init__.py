"""The only door for data: a frame or an array becomes arrays, codes and names.

Frames go through narwhals and scikit-learn's own validation; pandas serves to tell
labels apart. Nothing here knows of noise. Every complaint names the column or the
parameter, what was found and what helps, and comes before anything is computed.
"""

from skpuffer._validation._categories import CategorySet
from skpuffer._validation._frames import Dropped, frame_like
from skpuffer._validation._groups import Groups
from skpuffer._validation._rows import read_mixed_rows, read_rows, within_bounds
from skpuffer._validation._sample import Sample, read_sample
from skpuffer._validation._written import mixed_like

__all__ = [
    "CategorySet",
    "Dropped",
    "Groups",
    "Sample",
    "frame_like",
    "mixed_like",
    "read_mixed_rows",
    "read_rows",
    "read_sample",
    "within_bounds",
]
