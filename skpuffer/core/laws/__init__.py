"""Noise laws by name; a new law is one file here and one line below."""

from collections.abc import Callable

from skpuffer.core.laws._exponential import Exponential
from skpuffer.core.laws._gaussian import Gaussian
from skpuffer.core.laws._laplace import Laplace
from skpuffer.core.laws._protocol import NoiseLaw

# Each makes a law; parameters that a law has are keywords with defaults.
LAWS: dict[str, Callable[..., NoiseLaw]] = {
    law.name: law for law in (Laplace, Gaussian, Exponential)
}

__all__ = ["LAWS", "Exponential", "Gaussian", "Laplace", "NoiseLaw"]
