"""The other road: slow but accurate answers computed without the library.

Nothing here imports the package under test. Divergences of noisy mixtures come
from adaptive Gauss-Legendre quadrature in log space (a piece is left out only
when a proved bound makes it negligible), shift divergences from multiprecision
quadrature of the densities, transport optima from a linear programme. All
divergences are in nats. `conditionals` is a hypothesis strategy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import mpmath
import numpy as np
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

RANGE = 12.0  # noise deviations kept beyond the outermost possible peak
DROP = 36.0  # a piece is dropped when its bound is e^-36 of the whole
MAX_CELLS = 100_000
SMALL = 0.5  # below this log-integral the excess over 1 is integrated instead
SERIES = [1 / math.factorial(k) for k in range(2, 18)][::-1]


def _legendre(n):
    nodes, weights = np.polynomial.legendre.leggauss(n)
    polynomials = np.polynomial.legendre.legvander(nodes, n - 1).T
    rows = (np.arange(n) + 0.5)[:, None] * polynomials * weights
    return nodes, weights, rows[-2:]


NODES, WEIGHTS, _ = _legendre(16)
NODES_2D, WEIGHTS_2D, TAIL_2D = _legendre(12)


class Mixture(NamedTuple):
    """Atoms in units of the scale, (n,) or (n, 2), and the log of their masses."""

    atoms: np.ndarray
    log_mass: np.ndarray


# ---------------------------------------------------------------- densities


def _exponent(law, distance):
    if law == "laplace":
        return -np.abs(distance) - math.log(2)
    return -0.5 * distance * distance - 0.5 * math.log(2 * math.pi)


def _log_sum(exponents):
    """Return log-sum-exp over the last axis and the normalised weights."""
    top = exponents.max(axis=-1, keepdims=True)
    weights = np.exp(exponents - top)
    total = weights.sum(axis=-1, keepdims=True)
    return (top + np.log(total))[..., 0], weights / total


def _on_line(law, mix, y):
    """Return the log density at y (...,) and the posterior mean of the atom."""
    log_p, weights = _log_sum(mix.log_mass + _exponent(law, y[..., None] - mix.atoms))
    return log_p, weights @ mix.atoms


def _on_plane(law, mix, y):
    """Return the log density at y (..., 2) and the posterior mean (..., 2)."""
    distance = y[..., None, :] - mix.atoms
    log_p, weights = _log_sum(mix.log_mass + _exponent(law, distance).sum(axis=-1))
    return log_p, weights @ mix.atoms


def _second_order(x):
    """e^x - 1 - x for |x| < 1/2, without cancellation."""
    total = np.zeros_like(x)
    for coefficient in SERIES:
        total = total * x + coefficient
    return total * x * x


def _excess(log_p, log_q, alpha):
    """Return p^a q^(1-a) - a p + (a-1) q >= 0 and a bound on its round-off.

    Both densities integrate to one, so the integral is that of p^a q^(1-a)
    less one; it is second order in p - q and keeps its digits.
    """
    ratio = log_p - log_q
    q = np.exp(log_q)
    power = np.exp(alpha * log_p - (alpha - 1) * log_q)
    p = np.exp(log_p)
    near = np.abs(alpha * ratio) < 0.5
    small = np.where(near, ratio, 0.0)
    value = np.where(
        near,
        q * (_second_order(alpha * small) - alpha * _second_order(small)),
        power - alpha * p + (alpha - 1) * q,
    )
    delta = 1e-15 * (1 + np.abs(log_p) + np.abs(log_q))
    noise = alpha * delta * (np.abs(power - p) + (alpha - 1) * delta * q)
    return value, noise + np.where(near, 0.0, 1e-15 * (power + alpha * (p + q)))


def _weigh(log_p, log_q, alpha, excess, reference):
    """Return the integrand (relative to e^reference) and its round-off."""
    if excess:
        return _excess(log_p, log_q, alpha)
    value = np.exp(alpha * log_p - (alpha - 1) * log_q - reference)
    noise = 1e-15 * (1 + alpha * np.abs(log_p) + (alpha - 1) * np.abs(log_q))
    return value, noise * value


# ------------------------------------------------------------- one dimension


def _line_bound(law, alpha, h, left, right, p, q):
    """Upper bounds of log F and log q on pieces, from values at both ends."""
    (p_l, _), (p_r, _) = p
    (q_l, mean_l), (q_r, mean_r) = q
    if law == "laplace":
        # between atoms log p is convex and log p/q monotone
        top = np.maximum(p_l, p_r) + (alpha - 1) * np.maximum(p_l - q_l, p_r - q_r)
        return top, np.maximum(q_l, q_r)
    # log density + y^2/2 is convex: below its chord, above its tangents
    chord = (p_r - p_l) / h + h / 2
    slope = alpha * chord - (alpha - 1) * (mean_l - left)
    u = np.clip(slope, 0, h)
    from_left = alpha * p_l - (alpha - 1) * q_l + slope * u - u * u / 2
    slope = (alpha - 1) * (mean_r - right) - alpha * (chord - h)
    u = np.clip(slope, 0, h)
    from_right = alpha * p_r - (alpha - 1) * q_r + slope * u - u * u / 2
    chord = (q_r - q_l) / h + h / 2
    u = np.clip(chord, 0, h)
    return np.minimum(from_left, from_right), q_l + chord * u - u * u / 2


def _line_pieces(law, p, q, alpha, edges, lipschitz, level):
    """Bisect until F is smooth on each piece; drop what is provably negligible.

    `level` is the log of the integral of the excess, or None for F itself; then
    the largest F seen over its Lipschitz constant bounds the integral below.
    Returns the pieces and the largest log F seen.
    """
    left, right = edges[:-1], edges[1:]
    kept, best = [], -math.inf
    while left.size:
        h = right - left
        at_p = _on_line(law, p, left), _on_line(law, p, right)
        at_q = _on_line(law, q, left), _on_line(law, q, right)
        f_l, f_r = (
            alpha * a[0] - (alpha - 1) * b[0] for a, b in zip(at_p, at_q, strict=True)
        )
        best = max(best, f_l.max(), f_r.max())
        floor = best - math.log(lipschitz) if level is None else level
        top, top_q = _line_bound(law, alpha, h, left, right, at_p, at_q)
        if level is not None:
            top = np.maximum(top, top_q + math.log(alpha))
        alive = top + np.log(h) > floor - DROP
        if law == "laplace":
            smooth = h <= 1
        else:
            # posterior means increase, so these differences bound the bend
            bend = h + alpha * (at_p[1][1] - at_p[0][1])
            bend = bend + (alpha - 1) * (at_q[1][1] - at_q[0][1])
            smooth = (h * bend <= 4) & (np.abs(f_r - f_l) <= 400)
        smooth |= h <= 1e-14 * np.maximum(np.abs(left), np.abs(right))
        take = alive & smooth
        kept.append((left[take], right[take]))
        left, right = left[alive & ~smooth], right[alive & ~smooth]
        middle = (left + right) / 2
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    left, right = (np.concatenate(part) for part in zip(*kept, strict=True))
    return left, right, best


def _line(law, p, q, alpha, edges, lipschitz, level=None):
    """Integrate over the edges: log of the integral of F, or the excess itself."""
    excess = level is not None
    left, right, best = _line_pieces(law, p, q, alpha, edges, lipschitz, level)
    reference = 0.0 if excess else best

    def rule(left, right):
        half = (right - left) / 2
        y = (left + half)[:, None] + half[:, None] * NODES
        value, noise = _weigh(
            _on_line(law, p, y)[0], _on_line(law, q, y)[0], alpha, excess, reference
        )
        return half * (value @ WEIGHTS), half * (noise @ WEIGHTS)

    done = 0.0
    value = rule(left, right)[0]
    for _ in range(40):
        if not left.size:
            break
        middle = (left + right) / 2
        (first, noise), (second, more) = rule(left, middle), rule(middle, right)
        both = first + second
        tolerance = 1e-13 * max(done + both.sum(), math.exp(level) if excess else 0.0)
        fine = np.abs(value - both) <= tolerance + noise + more
        done += math.fsum(both[fine])
        again = ~fine
        left, right, middle = left[again], right[again], middle[again]
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        value = np.concatenate([first[again], second[again]])
    done += math.fsum(value) if left.size else 0.0
    if excess:
        return done
    return reference + math.log(done) if done > 0 else -math.inf


def _window(law, p, q, alpha):
    """Return where to integrate along one axis, and the Lipschitz constant of log F.

    Laplace: the hull (the tails are exact). Gaussian: the slope of log F is
    -y + alpha E_p - (alpha-1) E_q with means inside the hulls, so beyond the
    outermost zero of it F falls faster than the noise density.
    """
    low, high = min(p.min(), q.min()), max(p.max(), q.max())
    if law == "laplace":
        return low, high, 2 * alpha - 1
    low = min(low, alpha * p.min() - (alpha - 1) * q.max()) - RANGE
    high = max(high, alpha * p.max() - (alpha - 1) * q.min()) + RANGE
    return low, high, high - low


def _line_edges(law, p, q, alpha):
    low, high, lipschitz = _window(law, p.atoms, q.atoms, alpha)
    if law == "laplace":
        return np.unique(np.concatenate([p.atoms, q.atoms])), lipschitz
    return np.linspace(low, high, 33), lipschitz


def _whole_line(law, p, q, alpha, level=None, tails=True):
    edges, lipschitz = _line_edges(law, p, q, alpha)
    empty = 0.0 if level is not None else -math.inf
    parts = [
        _line(law, p, q, alpha, edges, lipschitz, level) if edges.size > 1 else empty
    ]
    if law == "laplace" and tails:
        # both densities are proportional to e^-|y| there: weight one at the edge
        ends = edges[[0, -1]]
        log_p, log_q = _on_line(law, p, ends)[0], _on_line(law, q, ends)[0]
        if level is not None:
            parts.extend(_excess(log_p, log_q, alpha)[0])
        else:
            parts.extend(alpha * log_p - (alpha - 1) * log_q)
    return _gather(parts, level)


def _gather(parts, level):
    return math.fsum(parts) if level is not None else float(np.logaddexp.reduce(parts))


def _finish(integrate, alpha):
    """D from the log-integral of F, or from its excess over one when near one."""
    log_integral = integrate(None)
    if log_integral >= SMALL:
        return log_integral / (alpha - 1)
    level = math.log(max(math.expm1(log_integral), 1e-14))
    return math.log1p(max(integrate(level), 0.0)) / (alpha - 1)


def _mixture(atoms, mass, centre, scale):
    mass = np.array([float(m) for m in np.asarray(mass).ravel()])
    if (mass < 0).any() or not mass.sum() > 0:
        raise ValueError("masses must be non-negative and not all zero")
    atoms = (np.asarray(atoms, dtype=float) - centre) / scale
    return Mixture(atoms[mass > 0], np.log(mass[mass > 0]) - math.log(mass.sum()))


def _check(law, scale, alpha):
    if law not in ("laplace", "gaussian"):
        raise ValueError(f"unknown law {law!r}")
    if not np.all(np.asarray(scale) > 0):
        raise ValueError("scale must be positive")
    if not alpha > 1 or (law == "gaussian" and alpha == math.inf):
        raise ValueError(f"alpha = {alpha} is not available for {law}")


def mixture_divergence(atoms_p, mass_p, atoms_q, mass_q, *, law, scale, alpha):
    """D_alpha (nats) of two noisy mixtures of one column.

    atoms (n,) or (n, 1), masses (n,) any positive numbers (normalised here; zero
    masses are dropped), law "laplace" or "gaussian", alpha > 1 (inf: Laplace only).
    """
    _check(law, scale, alpha)
    atoms_p, atoms_q = (np.asarray(a, dtype=float).ravel() for a in (atoms_p, atoms_q))
    both = np.concatenate([atoms_p, atoms_q])
    centre = both.min() / 2 + both.max() / 2
    p = _mixture(atoms_p, mass_p, centre, scale)
    q = _mixture(atoms_q, mass_q, centre, scale)
    if alpha == math.inf:
        # the log-ratio is monotone between atoms and constant beyond them
        y = np.concatenate([p.atoms, q.atoms])
        ratio = _on_line(law, p, y)[0] - _on_line(law, q, y)[0]
        return max(float(ratio.max()), 0.0)
    return _finish(lambda level: _whole_line(law, p, q, alpha, level), alpha)


# ------------------------------------------------------------ two dimensions

CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def _cell_densities(law, mix, centre, size):
    """Log density (c, n, n) at the tensor nodes of the cells.

    Relative to the atom that dominates at the centre, so that per axis only one
    exponential a node and atom is needed and nothing overflows.
    """
    offset = size[:, None, :] / 2 * NODES_2D[:, None]  # (c, n, 2)
    distance = centre[:, None, :] - mix.atoms  # (c, i, 2)
    log_w = mix.log_mass + _exponent(law, distance).sum(axis=-1)
    top = log_w.max(axis=1)
    weights = np.exp(log_w - top[:, None])
    if law == "laplace":
        slope, common = -np.sign(distance), np.zeros_like(offset)
    else:
        lead = mix.atoms[log_w.argmax(axis=1)]  # (c, 2)
        slope = mix.atoms - lead[:, None, :]
        common = -offset * (offset / 2 + (centre - lead)[:, None, :])
    # where the clip bites the weight is zero: the other atom dominates the cell
    one, two = (
        np.exp(np.minimum(offset[:, :, None, k] * slope[:, None, :, k], 300))
        for k in (0, 1)
    )
    total = (one * weights[:, None, :]) @ two.transpose(0, 2, 1)
    common = common[:, :, None, 0] + common[:, None, :, 1]
    return top[:, None, None] + common + np.log(total)


def _plane_bound(law, alpha, size, corners, centre, p, q):
    """Upper bounds of log F and log q on cells from the values at the corners."""
    (log_p, _), (log_q, mean) = p, q
    if law == "laplace":
        # convex and, for the ratio, monotone along each axis
        top = log_p.max(axis=1) + (alpha - 1) * (log_p - log_q).max(axis=1)
        return top, log_q.max(axis=1)
    # log p + |y-c|^2/2 lies below its bilinear interpolation, log q + |y-c|^2/2
    # above its tangent planes
    slack = (size**2).sum(axis=1) / 8
    gradient = mean - centre[:, None, :]
    step = corners[:, None, :, :] - corners[:, :, None, :]  # (c, tangent, corner, 2)
    tangent = log_q[:, :, None] + (gradient[:, :, None, :] * step).sum(axis=-1)
    top = alpha * log_p[:, None, :] - (alpha - 1) * tangent
    return top.max(axis=2).min(axis=1) + slack, log_q.max(axis=1) + slack


def _plane_smooth(law, alpha, size, span, p, q):
    """Say per axis whether the nodes of a cell can see every feature of F."""
    log_f = (alpha * p[0] - (alpha - 1) * q[0]).reshape(-1, 2, 2)
    rise = np.stack(
        [np.abs(np.diff(log_f, axis=k)).max(axis=(1, 2)) for k in (1, 2)], axis=1
    )
    if law == "laplace":
        return (size <= 4) & ((size <= 1) | (rise <= 100))
    bend = alpha * np.ptp(p[1], axis=1) + (alpha - 1) * np.ptp(q[1], axis=1)
    # log-odds of two atoms are linear in y: who dominates all four corners
    # dominates the cell
    calm = (size * bend <= 1).all(axis=1)
    return (size <= 1) & ((size * span <= 4) | calm[:, None]) & (rise <= 400)


def _split(low, high, axes):
    """Halve each cell along the marked axes (c, 2)."""
    for k in (0, 1):
        cut = axes[:, k]
        middle = (low[cut, k] + high[cut, k]) / 2
        upper_low, lower_high = low[cut].copy(), high[cut].copy()
        upper_low[:, k], lower_high[:, k] = middle, middle
        low, high, axes = (
            np.concatenate([low[~cut], low[cut], upper_low]),
            np.concatenate([high[~cut], lower_high, high[cut]]),
            np.concatenate([axes[~cut], axes[cut], axes[cut]]),
        )
    return low, high


def _plane(law, p, q, alpha, edges, lipschitz, level):
    """Integrate over the rectangle of the edges, as `_line` does."""
    excess = level is not None
    first, second = (e for e in edges)
    low = np.stack(np.meshgrid(first[:-1], second[:-1], indexing="ij"), -1)
    high = np.stack(np.meshgrid(first[1:], second[1:], indexing="ij"), -1)
    low, high = low.reshape(-1, 2), high.reshape(-1, 2)
    span = np.ptp(np.concatenate([p.atoms, q.atoms]), axis=0)
    kept, best = [], -math.inf
    while low.size:
        size, centre = high - low, (low + high) / 2
        corners = low[:, None, :] + size[:, None, :] * CORNERS
        at_p, at_q = _on_plane(law, p, corners), _on_plane(law, q, corners)
        best = max(best, (alpha * at_p[0] - (alpha - 1) * at_q[0]).max())
        floor = level if excess else best - math.log(lipschitz)
        top, top_q = _plane_bound(law, alpha, size, corners, centre, at_p, at_q)
        if excess:
            top = np.maximum(top, top_q + math.log(alpha))
        alive = top + np.log(size).sum(axis=1) > floor - DROP
        smooth = _plane_smooth(law, alpha, size, span, at_p, at_q)
        take = alive & smooth.all(axis=1)
        kept.append((low[take], high[take]))
        rest = alive & ~take
        low, high = _split(low[rest], high[rest], ~smooth[rest])
        if len(low) > MAX_CELLS:
            raise RuntimeError("too many cells: scale too small for this oracle")
    low, high = (np.concatenate(part) for part in zip(*kept, strict=True))
    reference = 0.0 if excess else best
    done = 0.0
    for _ in range(60):
        if not low.size:
            break
        size, centre = high - low, (low + high) / 2
        value, noise = _weigh(
            _cell_densities(law, p, centre, size),
            _cell_densities(law, q, centre, size),
            alpha,
            excess,
            reference,
        )
        area = size.prod(axis=1)
        integral = area / 4 * (value @ WEIGHTS_2D @ WEIGHTS_2D)
        peak = np.abs(value).max(axis=(1, 2))
        total = max(done + integral.sum(), math.exp(level) if excess else 0.0)
        # the last Legendre coefficients along each axis, squared, are the size
        # of the error of the rule
        rows = np.stack(
            [
                np.abs(TAIL_2D @ value).max(axis=(1, 2)),
                np.abs(value @ TAIL_2D.T).max(axis=(1, 2)),
            ],
            axis=1,
        )
        noise = 12 * noise.max(axis=(1, 2))
        rows = np.maximum(rows - noise[:, None], 0)
        tail = rows / np.where(peak > 0, peak, 1.0)[:, None]
        coarse = (peak * area)[:, None] * tail**2 > 1e-14 * total
        fine = ~coarse.any(axis=1)
        done += math.fsum(integral[fine])
        low, high = _split(low[~fine], high[~fine], coarse[~fine])
        if len(low) > MAX_CELLS:
            raise RuntimeError("too many cells: scale too small for this oracle")
    else:
        raise RuntimeError("the plane quadrature did not settle")
    if excess:
        return done
    return reference + math.log(done) if done > 0 else -math.inf


def _whole_plane(law, p, q, alpha, level):
    lines = [_window(law, p.atoms[:, k], q.atoms[:, k], alpha) for k in (0, 1)]
    lipschitz = lines[0][2] * lines[1][2]
    if law == "gaussian":
        edges = [np.linspace(low, high, 9) for low, high, _ in lines]
        return _plane(law, p, q, alpha, edges, lipschitz, level)
    both = np.concatenate([p.atoms, q.atoms])
    edges = [np.unique(both[:, k]) for k in (0, 1)]
    parts = []
    if min(e.size for e in edges) > 1:
        parts.append(_plane(law, p, q, alpha, edges, lipschitz, level))
    for k in (0, 1):
        # beyond the hull along axis k: weight one at the edge, which leaves a
        # mixture along the other axis; the four quarter planes count once
        for end in edges[k][[0, -1]]:
            sides = [
                Mixture(
                    m.atoms[:, 1 - k],
                    m.log_mass + _exponent(law, end - m.atoms[:, k]),
                )
                for m in (p, q)
            ]
            parts.append(_whole_line(law, *sides, alpha, level, tails=k == 0))
    return _gather(parts, level)


def mixture_divergence_2d(points_p, mass_p, points_q, mass_q, *, law, scale, alpha):
    """D_alpha (nats) of two noisy mixtures of two columns with independent noise.

    points (n, 2), masses (n,), scale (2,) per column, otherwise as in one dimension.
    """
    _check(law, scale, alpha)
    points_p, points_q = (
        np.asarray(a, dtype=float).reshape(-1, 2) for a in (points_p, points_q)
    )
    scale = np.broadcast_to(np.asarray(scale, dtype=float), (2,))
    both = np.concatenate([points_p, points_q])
    centre = both.min(axis=0) / 2 + both.max(axis=0) / 2
    p = _mixture(points_p, mass_p, centre, scale)
    q = _mixture(points_q, mass_q, centre, scale)
    if alpha == math.inf:
        # along either axis the log-ratio is monotone between coordinates
        both = np.concatenate([p.atoms, q.atoms])
        y = np.stack(np.meshgrid(both[:, 0], both[:, 1]), axis=-1)
        ratio = _on_plane(law, p, y)[0] - _on_plane(law, q, y)[0]
        return max(float(ratio.max()), 0.0)
    return _finish(lambda level: _whole_plane(law, p, q, alpha, level), alpha)


# ----------------------------------------------------------- shift divergence


def shift_divergence(law, z, scale, alpha):
    """D_alpha (nats) of the noise and the noise shifted by z, by quadrature.

    Integrates the densities themselves with 35 digits (mpmath).
    """
    _check(law, scale, alpha)
    with mpmath.workdps(35):
        z = abs(mpmath.mpf(float(z))) / mpmath.mpf(float(scale))
        if z == 0:
            return 0.0
        if law == "laplace":
            if alpha == math.inf:
                grid = [z * mpmath.mpf(k) / 8 for k in range(-8, 17)]
                return float(max(abs(y - z) - abs(y) for y in grid))
            a = mpmath.mpf(float(alpha))
            # log F has slope -(2 alpha - 1) from 0 to z
            step = 8 / (2 * a - 1)
            cuts = [k * step for k in range(10) if k * step < z]
            if z > 20 * step:  # e^-72 of the whole is left
                cuts.append(20 * step)
            cuts.append(z)

            def log_f(y):
                return -a * abs(y) + (a - 1) * abs(y - z) - mpmath.log(2)

            # beyond 0 and z the integrand is e^-|y| up to a constant
            far = [mpmath.mpf(s) for s in (8, 18, 32, 60)]
            cuts = [-s for s in far[::-1]] + cuts + [z + s for s in far]
        else:
            a = mpmath.mpf(float(alpha))

            def log_f(y):
                quadratic = -a * y * y / 2 + (a - 1) * (y - z) ** 2 / 2
                return quadratic - mpmath.log(2 * mpmath.pi) / 2

            # p^a q^(1-a) is largest where its log has slope zero
            peak = (1 - a) * z
            cuts = [peak + s for s in (-14, -8, -4, 0, 4, 8, 14)]
        top = max(log_f(c) for c in cuts)
        integral = mpmath.quad(
            lambda y: mpmath.exp(log_f(y) - top),
            cuts,
            method="gauss-legendre",
            maxdegree=5,
        )
        return float((mpmath.log(integral) + top) / (a - 1))


# -------------------------------------------------------------- transport LP


def _transport_optimum(cost, mass_a, mass_b):
    """Optimal transport cost; forbidden pairs are not finite; None if infeasible."""
    n_a, n_b = cost.shape
    rows = sparse.vstack(
        [
            sparse.kron(sparse.eye(n_a), np.ones((1, n_b))),
            sparse.kron(np.ones((1, n_a)), sparse.eye(n_b)),
        ],
        format="csr",
    )
    allowed = np.isfinite(cost).ravel()
    if not allowed.any():
        return None
    coefficients = cost.ravel()[allowed]
    unit = coefficients.max() or 1.0
    result = linprog(
        coefficients / unit,
        A_eq=rows[:, allowed],
        b_eq=np.concatenate([mass_a, mass_b]),
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": 1e-10,
            "dual_feasibility_tolerance": 1e-10,
        },
    )
    if result.status == 2:
        return None
    if result.status != 0:
        raise RuntimeError(result.message)
    return float(coefficients @ result.x)


def lp_scale(
    points_a,
    points_b,
    mass_a,
    mass_b,
    *,
    log_cost: Callable[[np.ndarray, float], np.ndarray],
    target: float,
    lo: float,
    hi: float,
    rtol: float = 1e-9,
):
    """Smallest tau in [lo, hi] with min over couplings of E e^log_cost <= e^target.

    points (n,) or (n, k), integer masses (n,); log_cost(shifts (p, k), tau) -> (p,)
    is non-increasing in tau. Bisection in log tau; the upper end is returned.
    """
    points_a, points_b = (
        np.asarray(x, dtype=float).reshape(len(x), -1) for x in (points_a, points_b)
    )
    mass_a, mass_b = ([int(m) for m in mass] for mass in (mass_a, mass_b))
    total_a, total_b = sum(mass_a), sum(mass_b)
    total = math.lcm(total_a, total_b)
    whole_a = np.array([m * (total // total_a) for m in mass_a], dtype=float)
    whole_b = np.array([m * (total // total_b) for m in mass_b], dtype=float)
    shifts = np.abs(points_a[:, None, :] - points_b[None, :, :])
    shape = shifts.shape[:2]
    shifts = shifts.reshape(-1, shifts.shape[-1])

    def enough(tau):
        log_c = np.asarray(log_cost(shifts, tau), dtype=float) - target
        # vertices have whole masses, so with an optimum below one no pair that
        # is used costs more than the total
        usable = log_c <= math.log(total) + 1e-6
        cost = np.where(usable, np.exp(np.where(usable, log_c, 0.0)), np.inf)
        optimum = _transport_optimum(cost.reshape(shape), whole_a, whole_b)
        return optimum is not None and optimum <= total

    if not enough(hi):
        raise ValueError("the condition fails at hi")
    if enough(lo):
        return lo
    while hi > lo * (1 + rtol):
        middle = math.sqrt(lo * hi)
        if enough(middle):
            hi = middle
        else:
            lo = middle
    return hi


# ------------------------------------------------------------------ strategy


class Pair(NamedTuple):
    """Two discrete distributions: atoms (n, k) float64, masses (n,) int64."""

    atoms_a: np.ndarray
    mass_a: np.ndarray
    atoms_b: np.ndarray
    mass_b: np.ndarray


def _values(max_magnitude):
    small = st.integers(-4, 4).map(float)
    halves = st.integers(-9, 9).map(lambda n: n / 2)
    magnitudes = st.builds(
        lambda digits, power: digits * 10.0**power,
        st.floats(-9.99, 9.99).map(lambda x: round(x, 3)),
        st.integers(-3, max_magnitude),
    )
    return st.sampled_from([small, small, halves, magnitudes])


@st.composite
def conditionals(draw, max_atoms=6, columns=1, *, ties=True, max_magnitude=3):
    """Draw a `Pair`: overlapping, disjoint, equal supports or equal distributions.

    Parameters: at most `max_atoms` rows a side (single atoms occur often),
    `columns` columns; with ties=False the rows of a side are distinct and sorted,
    with ties=True they may repeat and come in any order. Values are small
    integers, halves, or floats up to 10 * 10**max_magnitude. Masses are 1..50,
    sometimes all one, sometimes 1 against 50.
    """
    row = st.lists(draw(_values(max_magnitude)), min_size=columns, max_size=columns)
    counts = st.one_of(
        st.just(1), st.integers(1, 5), st.integers(1, 50), st.sampled_from([1, 50])
    )

    def side(rows):
        masses = draw(st.lists(counts, min_size=len(rows), max_size=len(rows)))
        return rows, masses

    def rows(least=1):
        size = draw(st.one_of(st.just(least), st.integers(least, max_atoms)))
        drawn = draw(st.lists(row, min_size=size, max_size=size))
        return np.array(drawn, dtype=float).reshape(size, columns)

    kind = draw(st.sampled_from(["free", "free", "disjoint", "support", "equal"]))
    a = side(rows())
    if kind == "equal":
        # the same distribution, maybe with another total
        factor = draw(st.integers(1, 3))
        b = a[0], [factor * m for m in a[1]]
    elif kind == "support":
        b = side(a[0])
    else:
        b = side(rows())
        if kind == "disjoint":
            far = a[0][:, 0].max() - b[0][:, 0].min() + draw(st.sampled_from([0.5, 3]))
            b[0][:, 0] += far

    def finish(rows, masses):
        masses = np.array(masses, dtype=np.int64)
        if ties:
            return rows.copy(), masses
        rows, inverse = np.unique(rows, axis=0, return_inverse=True)
        out = np.zeros(len(rows), dtype=np.int64)
        np.add.at(out, inverse.ravel(), masses)
        return rows, out

    return Pair(*finish(*a), *finish(*b))
