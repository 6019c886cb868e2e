"""The kernel Rényi divergence of a pair of samples, with what is proved of it.

Beside an ε, (ε, δ) or Rényi claim it is a diagnostic; for regularised kernel Rényi
privacy it is the test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skpuffer.audit._views import KernelSettings
from skpuffer.core.concentration import LEAST_MARGIN_ORDER, PlugInMargin
from skpuffer.core.gram import moment_divergence
from skpuffer.core.prior import FloatArray

# Rows of either sample that a diagnostic looks at.
_DIAGNOSTIC_ROWS = 20_000
# At most this share of a sample chooses the kernel, and is not measured with it.
_SHARE = 0.2


@dataclass(frozen=True)
class KernelDivergence:
    """The divergence at each λ; of both directions, the larger.

    Attributes
    ----------
    values : tuple of float
        Plug-in estimates.
    lower : tuple of float
        Lower bounds, which hold together; −∞ where nothing is known.
    ceiling : float
        The largest lower bound that so many rows allow; −∞ where they allow none.
    """

    values: tuple[float, ...]
    lower: tuple[float, ...]
    ceiling: float

    @property
    def margin(self) -> tuple[float, ...]:
        """How far each value may lie above the truth."""
        return tuple(a - b for a, b in zip(self.values, self.lower, strict=True))

    @property
    def bound(self) -> float:
        """The largest lower bound: with λ > 0 the truth may be negative, and so this."""
        return max(self.lower)


def measure(
    x: FloatArray,
    y: FloatArray,
    *,
    kernel: KernelSettings,
    regs: tuple[float, ...],
    alpha: float,
    symmetric: bool,
    beta: float,
    seed: int,
    all_rows: bool,
) -> KernelDivergence:
    """Compute the divergence of order α at every λ, and its lower bounds.

    The kernel's width and landmarks come from rows that are not measured, so that it is
    a fixed kernel for the others; its Nyström features have k(x, x) ≤ 1.

    Parameters
    ----------
    x, y : ndarray of shape (n_x, d) and (n_y, d)
    kernel, regs, alpha, symmetric, seed
        As in `AuditSettings`.
    beta : float
        Error of all bounds together.
    all_rows : bool
        Whether a large sample is measured as a whole.

    Raises
    ------
    ValueError
        k(x, x) exceeds 1.
    """
    rng = np.random.default_rng([seed, 2])
    chosen, measured = [], []
    for rows in (x, y):
        order = rng.permutation(len(rows))
        first = math.ceil(min(_SHARE * len(rows), max(500, kernel.n_components)))
        last = len(rows) if all_rows else first + _DIAGNOSTIC_ROWS
        chosen.append(rows[order[:first]])
        measured.append(rows[order[first:last]])
    mapped = kernel.map_for(chosen[0], chosen[1], seed)
    moments = [mapped.second_moment(rows) for rows in measured]
    sizes = [len(rows) for rows in measured]
    ways = (1, -1) if symmetric else (1,)
    error = beta / (len(ways) * len(regs))
    values, lower, highest = [], [], []
    for way in ways:
        s_p, s_q = moments[::way]
        found = moment_divergence(s_p, s_q, alphas=[alpha], regs=regs)[0]
        values.append(found)
        lower.append([-math.inf] * len(regs))
        if alpha < LEAST_MARGIN_ORDER:
            continue
        n_p, n_q = sizes[::way]
        margins = [PlugInMargin(alpha, reg, n_p, n_q, error) for reg in regs]
        lower[-1] = [
            m.lower_bound(float(v)) for m, v in zip(margins, found, strict=True)
        ]
        # S_p has trace at most 1 and (S_q + λ)^r is at most λ^r: D is at most log 1/λ.
        highest += [m.lower_bound(-math.log(m.reg)) for m in margins]
    return KernelDivergence(
        tuple(np.max(values, axis=0).tolist()),
        tuple(np.max(lower, axis=0).tolist()),
        max(highest, default=-math.inf),
    )
