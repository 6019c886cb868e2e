"""Noise laws by name; a new law is one file here and one line below."""

from skpuffer.core.laws._gaussian import Gaussian
from skpuffer.core.laws._laplace import Laplace
from skpuffer.core.laws._protocol import NoiseLaw

LAWS: dict[str, type[NoiseLaw]] = {law.name: law for law in (Laplace, Gaussian)}

__all__ = ["LAWS", "Gaussian", "Laplace", "NoiseLaw"]
