"""The ways to the divergence of two validated samples: Gram matrices, or features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skpuffer.core.features import (
    Features,
    FourierFeatures,
    NystroemFeatures,
    moment_sum,
)
from skpuffer.core.gram import gram_divergence, moment_divergence
from skpuffer.core.low_rank import pivoted_features
from skpuffer.core.prior import FloatArray
from skpuffer.metrics._kernels import Kernel, check_definite, check_diagonal, root_of

# From here on it is worth a look whether the kernel is of low rank before its matrix
# is computed: that of one or two columns is, at any number of rows.
_MANY_ROWS = 2000
_MOST_NUMBERS = 2**26  # 512 MB.


def from_gram(
    kernel: Kernel, X: FloatArray, Y: FloatArray, alphas: FloatArray, regs: FloatArray
) -> FloatArray:
    """Compute the divergence for the kernel itself, shape (n_alphas, n_regs)."""
    unit = bool((alphas <= 1).any())
    if kernel.is_definite and len(X) + len(Y) > _MANY_ROWS:
        features = _few_features(kernel, X, Y, unit)
        if features is not None:
            moments = (rows @ rows.T / rows.shape[1] for rows in features)
            return moment_divergence(*moments, alphas=alphas, regs=regs)
    blocks = kernel(X, X), kernel(Y, Y), kernel(Y, X)
    for block in blocks:
        _refuse_non_finite(block)
    for block, name in zip(blocks[:2], "XY", strict=True):
        check_diagonal(np.diagonal(block), name, unit=unit)
    if not kernel.is_definite:
        check_definite(*blocks)
    return gram_divergence(*blocks, alphas=alphas, regs=regs)


def _few_features(
    kernel: Kernel, X: FloatArray, Y: FloatArray, unit: bool
) -> tuple[FloatArray, FloatArray] | None:
    """Return features of few columns or few points, without any Gram matrix."""
    rows = np.concatenate([X, Y])
    raw = replace(kernel, normalize=False)
    diagonal = raw.diagonal(rows)
    roots = root_of(diagonal) if kernel.normalize else np.ones(len(rows))
    diagonal = diagonal / roots**2
    check_diagonal(diagonal[: len(X)], "X", unit=unit)
    check_diagonal(diagonal[len(X) :], "Y", unit=unit)

    def row(index: int) -> FloatArray:
        found: FloatArray = raw(rows[index : index + 1], rows)[0]
        _refuse_non_finite(found)
        found = found / (roots[index] * roots)
        return found

    most = min(len(rows) // 8, _MOST_NUMBERS // len(rows))
    found = pivoted_features(diagonal, row, most=most)
    return None if found is None else (found[:, : len(X)], found[:, len(X) :])


def from_features(
    features: Features,
    X: FloatArray,
    Y: FloatArray,
    alphas: FloatArray,
    regs: FloatArray,
) -> FloatArray:
    """Compute the divergence for the kernel of features, in blocks of rows."""
    if features.n_features > max(len(X), len(Y)):
        # The smaller problem of the two, with the same answer.
        left, right = features.transform(X), features.transform(Y)
        blocks = left @ left.T, right @ right.T, right @ left.T
        return gram_divergence(*blocks, alphas=alphas, regs=regs)
    moments = (moment_sum(features, rows) / len(rows) for rows in (X, Y))
    return moment_divergence(*moments, alphas=alphas, regs=regs)


def _refuse_non_finite(block: FloatArray) -> None:
    bad = int((~np.isfinite(block)).sum())
    if bad:
        raise ValueError(
            f"the kernel is NaN or infinite in {bad} of {block.size} pairs of rows: "
            "rescale the columns, or check the kernel"
        )


def choose_features(
    approx: str,
    kernel: Kernel,
    X: FloatArray,
    Y: FloatArray,
    n_components: int,
    seed: int,
) -> Features:
    """Draw features of a kernel: frequencies, or landmarks among the rows."""
    rng = np.random.default_rng([seed, 1])
    if approx == "rff":
        gamma = kernel.parameters["gamma"]
        return FourierFeatures.draw(
            str(kernel.metric), gamma, X.shape[1], n_components, rng
        )
    for rows, name in ((X, "X"), (Y, "Y")):
        diagonal = kernel.diagonal(rows)
        _refuse_non_finite(diagonal)
        check_diagonal(diagonal, name, unit=False)
    total = len(X) + len(Y)
    chosen = np.sort(rng.choice(total, min(n_components, total), replace=False))
    landmarks = np.concatenate(
        [X[chosen[chosen < len(X)]], Y[chosen[chosen >= len(X)] - len(X)]]
    )
    gram = kernel(landmarks, landmarks)
    _refuse_non_finite(gram)
    if not kernel.is_definite:
        check_definite(gram, gram[:1, :1], gram[:1])
    return NystroemFeatures.fit(landmarks, kernel)


def normalized(
    k_xx: FloatArray, k_yy: FloatArray, k_yx: FloatArray, normalize: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Gram blocks divided by √(k(x,x) k(y,y)), where asked."""
    if not normalize:
        return k_xx, k_yy, k_yx
    left, right = root_of(np.diagonal(k_xx)), root_of(np.diagonal(k_yy))
    return (
        k_xx / np.outer(left, left),
        k_yy / np.outer(right, right),
        k_yx / np.outer(right, left),
    )
