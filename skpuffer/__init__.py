"""Rényi Pufferfish privacy for scikit-learn.

Release the columns of a frame with noise that is calibrated, by optimal transport, so
that the release says little about a secret column.
"""

from skpuffer import exceptions
from skpuffer._base import AdditiveRelease
from skpuffer._report import ReleaseReport
from skpuffer.accounting import Guarantee
from skpuffer.categorical import RenyiPufferfishCategorical
from skpuffer.comparison import compare_mechanisms
from skpuffer.counts import ConditionalCounts
from skpuffer.effort import coupling_effort
from skpuffer.exponential import RenyiPufferfishExponential
from skpuffer.held_out import held_out_divergence
from skpuffer.joint_release import JointRelease
from skpuffer.mechanisms import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.profile import PrivacyProfile
from skpuffer.reuse import FitReuse, reuse_fits

__version__ = "0.1.0"

__all__ = [
    "AdditiveRelease",
    "ConditionalCounts",
    "FitReuse",
    "Guarantee",
    "JointRelease",
    "PrivacyProfile",
    "ReleaseReport",
    "RenyiPufferfishCategorical",
    "RenyiPufferfishExponential",
    "RenyiPufferfishGaussian",
    "RenyiPufferfishLaplace",
    "__version__",
    "compare_mechanisms",
    "coupling_effort",
    "exceptions",
    "held_out_divergence",
    "reuse_fits",
]
