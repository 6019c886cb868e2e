"""What calibration and release ask of a noise law; numerics that laws share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from skpuffer.core.prior import FloatArray
from skpuffer.core.sampling import BitSource

# One Rényi order, or several finite ones, shape (a,).
Order = float | FloatArray


class NoiseLaw(Protocol):
    """A symmetric additive noise, independent per column, with a scale per column.

    The base of a law of one's own, which gives what has no default here: `name`,
    `max_order`, `shift_divergence`, `noise_std`, `logpdf` and `perturb`. A law does not
    change once it is made: threads share it, and what fit took is what is released.
    Parameters are the fields of a frozen dataclass, and stand in the guarantee.

    A promise is as good as the law's `shift_divergence`, which nothing proves but its
    author; `skpuffer.laws.check_law` compares it with quadrature.

    Attributes
    ----------
    name : str
        The key in `LAWS`; of another law, a name that none of these has.
    max_order : float
        The largest Rényi order with a finite divergence between shifts. None above is
        asked for.
    """

    name: ClassVar[str]
    max_order: ClassVar[float]

    @property
    def homogeneity(self) -> float | None:
        """`wasserstein_exponent` is proportional to ``scale ** -homogeneity``.

        None, the default, where there is no such exponent: the rules that use it are
        refused.
        """
        return None

    @property
    def convex(self) -> bool:
        """Whether the exponential of every exponent is convex in one shift.

        At every order, of (α−1) times the divergence and of `wasserstein_exponent`
        alike. Where it is concave somewhere, no mean of shifts bounds it, and the
        monotone coupling may not be the best one. False, the default, costs time and a
        little noise, and is right for every law; True is a claim to be proven.
        """
        return False

    @property
    def sources(self) -> Mapping[str, str]:
        """What rules rest on for this law, by name, where not on their own source."""
        return {}

    @abstractmethod
    def shift_divergence(
        self, shifts: ArrayLike, *, alpha: Order, scale: ArrayLike
    ) -> FloatArray:
        """Rényi divergence between the noise and the noise moved by each shift.

        Parameters
        ----------
        shifts : array-like of shape (m, k)
            Rows are shift vectors in data units; the sign does not matter.
        alpha : float or ndarray of shape (a,)
            Order in (1, `max_order`], or several finite ones.
        scale : array-like of shape (k,) or scalar
            Positive scales; where a scale is zero, the divergence is 0 for a zero
            shift and infinite otherwise.

        Returns
        -------
        ndarray of shape (m,), or (a, m) of several orders
            In nats, summed over the columns: exact up to round-off, or an upper bound
            where the law says so. It bounds the noise that `perturb` adds, whose shifts
            are whole steps of the grid.
        """
        ...

    def wasserstein_exponent(
        self, shifts: ArrayLike, *, alpha: float, scale: ArrayLike
    ) -> FloatArray:
        """Exponent of the published α-Wasserstein condition, shape (m,).

        Its exponential bounds the transport cost ``exp((alpha - 1) * divergence)``
        from above.
        """
        raise ValueError(
            f"{self.name} noise has no exponent for the α-Wasserstein condition: use the "
            "transport rule"
        )

    @abstractmethod
    def noise_std(self, scale: ArrayLike) -> FloatArray:
        """Return the noise's standard deviation, in data units, shape of `scale`."""
        ...

    @abstractmethod
    def logpdf(self, values: ArrayLike, *, scale: float) -> FloatArray:
        """Log density of the continuous law at `values`, of any shape."""
        ...

    @abstractmethod
    def perturb(
        self,
        values: FloatArray,
        *,
        scale: float,
        bits: BitSource,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Release one column: round to the grid, add exact integer noise.

        Parameters
        ----------
        values : ndarray of shape (n,), float64
        scale : float
            A multiple of its own grid step (`sampling.scale_to_grid`).
        bits : BitSource
        out : ndarray of shape (n,), float64, optional
            Where to write.

        Returns
        -------
        ndarray of shape (n,), float64
            `out` itself, where it is given.

        Raises
        ------
        ValueError
            A value is not finite or too large for the grid.
        """
        ...


def standardised(shifts: ArrayLike, scale: ArrayLike) -> FloatArray:
    """Return |shift| / scale per column, shape (m, k); 0/0 is 0 and z/0 infinite."""
    distance = np.abs(np.asarray(shifts, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = distance / np.asarray(scale, dtype=np.float64)
    ratio[distance == 0] = 0.0
    return ratio
