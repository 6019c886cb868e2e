"""Certified divergences of noisy one-column mixtures, by noise law.

A new law is one file here and one line below.
"""

from skpuffer.core.mixtures._evaluate import divergence_bound
from skpuffer.core.mixtures._gaussian import GaussianMixtures
from skpuffer.core.mixtures._laplace import LaplaceMixtures
from skpuffer.core.mixtures._pair import MixturePair
from skpuffer.core.mixtures._protocol import DivergenceBound, MixtureDivergence

MIXTURES: dict[str, type[MixtureDivergence]] = {
    law.name: law for law in (LaplaceMixtures, GaussianMixtures)
}

__all__ = [
    "MIXTURES",
    "DivergenceBound",
    "MixtureDivergence",
    "MixturePair",
    "divergence_bound",
]
