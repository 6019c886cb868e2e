"""Second moments of two samples, as the kernel Rényi divergence needs them.

Pure. Two roads to the same quantities: Gram blocks, where n rows cost n² numbers, and
explicit features, where any number of rows costs D². Each decomposes S_q once, for
all orders and all λ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skpuffer.core.prior import FloatArray


class SecondMoments(Protocol):
    """What the divergence needs to know about S_p and B = S_q + reg."""

    @property
    def mass(self) -> float:
        """Return tr S_p, the mean of k(x, x)."""

    def spectrum(self) -> FloatArray:
        """Return the eigenvalues of S_p, and possibly further zeros."""

    def matrix(self, power: float, reg: float) -> FloatArray:
        """Return a matrix with the eigenvalues of B^(power/2) S_p B^(power/2)."""

    def trace_change(self, power: float, reg: float) -> float:
        """Return tr S_p (B^power - 1), without cancellation for small powers."""

    def mean_log(self, reg: float) -> float:
        """Return tr S_p log B."""


def eigenvalues(matrix: FloatArray) -> FloatArray:
    """Return the eigenvalues of a symmetric matrix, ascending."""
    values: FloatArray = np.linalg.eigvalsh(matrix).astype(np.float64, copy=False)
    return values


@dataclass(frozen=True, eq=False)
class GramMoments:
    """Second moments in terms of Gram blocks.

    With S_q = Σ μ v v* (v of unit length), B^r = λ^r + Σ ((μ+λ)^r − λ^r) v v*, and
    A* v = w/√μ for the rows w of W = Uᵀ K_qp / √(n_q n_p): a function f of S_q + λ
    enters as f(λ) A*A + Wᵀ diag((f(μ+λ) − f(λ))/μ) W, where μ = 0 is a limit.
    """

    own: FloatArray  # K_pp / n_p, which is A*A.
    cross: FloatArray  # W, of shape (n_q, n_p).
    weights: FloatArray  # μ, ascending.
    lengths: FloatArray  # Squared lengths of the rows of W.
    mass: float

    @classmethod
    def from_blocks(
        cls, k_pp: FloatArray, k_qq: FloatArray, k_qp: FloatArray
    ) -> GramMoments:
        """Decompose K_qq, and express the rest in its eigenvectors."""
        n_q, n_p = k_qp.shape
        weights, vectors = np.linalg.eigh(k_qq / n_q)
        cross = vectors.T @ k_qp / math.sqrt(n_q * n_p)
        own = k_pp / n_p
        lengths = np.einsum("ij,ij->i", cross, cross)
        mass = float(np.trace(own))
        return cls(own, cross, np.maximum(weights, 0.0), lengths, mass)

    def spectrum(self) -> FloatArray:
        """Return the eigenvalues of S_p, and possibly further zeros."""
        return eigenvalues(self.own)

    def matrix(self, power: float, reg: float) -> FloatArray:
        """Return a matrix with the eigenvalues of B^(power/2) S_p B^(power/2)."""
        slopes = self._slopes(power, reg)
        # All of one sign, so that the product is symmetric and costs half.
        scaled = np.sqrt(np.abs(slopes))[:, np.newaxis] * self.cross
        product: FloatArray = scaled.T @ scaled
        product *= math.copysign(1.0, power)
        product += reg**power * self.own
        return product

    def trace_change(self, power: float, reg: float) -> float:
        """Return tr S_p (B^power - 1), without cancellation for small powers."""
        base = math.expm1(power * math.log(reg)) * self.mass
        return base + float(self._slopes(power, reg) @ self.lengths)

    def mean_log(self, reg: float) -> float:
        """Return tr S_p log B."""
        ratio = self.weights / reg
        slopes = _per_unit(np.log1p(ratio), ratio, limit=1.0) / reg
        return math.log(reg) * self.mass + float(slopes @ self.lengths)

    def _slopes(self, power: float, reg: float) -> FloatArray:
        """Return ((μ+λ)^r − λ^r)/μ."""
        ratio = self.weights / reg
        grown = np.expm1(power * np.log1p(ratio))
        slopes = _per_unit(grown, ratio, limit=power)
        slopes *= reg ** (power - 1)
        return slopes


def _per_unit(grown: FloatArray, ratio: FloatArray, *, limit: float) -> FloatArray:
    """Return grown / ratio, and its limit where both are 0."""
    out: FloatArray = np.full(len(ratio), limit)
    np.divide(grown, ratio, out=out, where=ratio > 0)
    return out


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Second moments of explicit features, in the eigenvectors of S_q."""

    rotated: FloatArray  # S_p in that basis.
    weights: FloatArray  # μ, ascending.
    mass: float

    @classmethod
    def from_moments(cls, s_p: FloatArray, s_q: FloatArray) -> FeatureMoments:
        """Decompose S_q, and rotate S_p into its eigenvectors."""
        weights, vectors = np.linalg.eigh(s_q)
        rotated = vectors.T @ s_p @ vectors
        mass = float(np.trace(s_p))
        return cls(rotated, np.maximum(weights, 0.0), mass)

    def spectrum(self) -> FloatArray:
        """Return the eigenvalues of S_p."""
        return eigenvalues(self.rotated)

    def matrix(self, power: float, reg: float) -> FloatArray:
        """Return a matrix with the eigenvalues of B^(power/2) S_p B^(power/2)."""
        root = (self.weights + reg) ** (power / 2)
        scaled: FloatArray = root[:, np.newaxis] * self.rotated * root
        return scaled

    def trace_change(self, power: float, reg: float) -> float:
        """Return tr S_p (B^power - 1), without cancellation for small powers."""
        changes = np.expm1(power * np.log(self.weights + reg))
        return float(changes @ np.diagonal(self.rotated))

    def mean_log(self, reg: float) -> float:
        """Return tr S_p log B."""
        return float(np.log(self.weights + reg) @ np.diagonal(self.rotated))
