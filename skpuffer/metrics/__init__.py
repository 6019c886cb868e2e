"""Divergences between samples that a kernel can tell apart.

Validates, chooses a kernel, and leaves the mathematics to the core. Nothing here
knows of mechanisms, and a divergence is no verdict: the plug-in value is biased
upwards.
"""

from skpuffer.metrics._divergence import kernel_renyi_divergence
from skpuffer.metrics._kernels import STATIONARY as STATIONARY
from skpuffer.metrics._kernels import median_gamma
from skpuffer.metrics._moments import KernelMoments

__all__ = ["KernelMoments", "kernel_renyi_divergence", "median_gamma"]
