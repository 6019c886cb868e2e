"""Stub."""
import numpy as np
from skpuffer.core.mixtures._panels import Atoms
def atoms_near(pair, scale, tolerance, low, high):
    return Atoms((pair.atoms-pair.middle)/scale, np.stack([pair.first, pair.second],axis=1)), 0.0
