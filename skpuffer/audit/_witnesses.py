"""Witnesses: scores, learned from some rows of two samples, that tell others apart.

An open registry: a witness is a small class with a name, the view of the rows that it
sees, and a `fit` that returns a function from rows to scores, larger where a row looks
like one of X. The score of a row must depend on that row alone: one that looks at the
rows beside it voids the level of an audit. Whatever it is otherwise, an audit stays
valid, since events are counted on other rows than were learned from. A poor witness
costs power alone, and so does a long list of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, solve_triangular
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from skpuffer._text import item_text
from skpuffer.audit._by_row import by_row
from skpuffer.core.prior import FloatArray
from skpuffer.exceptions import ParameterError

Scorer = Callable[[FloatArray], FloatArray]

ROWS, FEATURES = "rows", "features"
# Of the pooled covariance in that of each sample.
_SHRINKAGES = (0.05, 0.5)
_RIDGE = 1e-9


class Witness(Protocol):
    """Learns to tell two samples apart."""

    @property
    def name(self) -> str:
        """What the witness is called in a report."""

    @property
    def view(self) -> str:
        """What it sees of a row: `ROWS` or `FEATURES`."""

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Scorer:
        """Return a function from rows to scores of shape (n, n_scores), row by row.

        Parameters
        ----------
        x, y : ndarray of shape (n_x, d) and (n_y, d)
            Rows of X and of Y, or their features, as `view` says.
        seed : int
        """


class KernelWitness:
    """Quantum Rényi and mean-difference witnesses of a kernel, in both directions.

    With S the second moments of the features and B = S_q + λ, the first is
    h(x) = ⟨φ(x), Wφ(x)⟩, W = B^(−1/2) u uᵀ B^(−1/2), u the leading eigenvector of
    B^(−1/2) S_p B^(−1/2): the witness of the divergence of order ∞ [Domingo-Enrich,
    Mroueh 2022]. The second is ⟨φ(x), B^(−1)(m_p − m_q)⟩.

    Parameters
    ----------
    regs : sequence of float
        λ.
    """

    name: ClassVar[str] = "kernel"
    view: ClassVar[str] = FEATURES

    def __init__(self, regs: Sequence[float] = (1e-3, 1e-2, 1e-1)) -> None:
        self.regs = tuple(regs)

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Scorer:
        """Return the scores of every λ, witness and direction."""
        moments = [rows.T @ rows / len(rows) for rows in (x, y)]
        difference = x.mean(axis=0) - y.mean(axis=0)
        width = len(difference)
        leading, signs, linear = [], [], []
        for reg in self.regs:
            for sign in (1, -1):
                s_p, s_q = moments[::sign]
                base = s_q + reg * np.eye(width)
                leading.append(_leading(s_p, base))
                signs.append(sign)
                linear.append(cho_solve(cho_factor(base), difference))
        directions = np.stack(leading, axis=1), np.stack(linear, axis=1)
        sign_row = np.array(signs, dtype=float)

        def score(rows: FloatArray) -> FloatArray:
            squares = np.square(rows @ directions[0]) * sign_row
            return np.hstack([squares, rows @ directions[1]])

        return score


def _leading(moment: FloatArray, base: FloatArray) -> FloatArray:
    """Return the eigenvector of the largest eigenvalue of `moment` in terms of `base`."""
    last = len(base) - 1
    found = eigh(moment, base, subset_by_index=[last, last])[1]
    if not found.size:
        # LAPACK may find no single one of eigenvalues that lie close together.
        found = eigh(moment, base)[1]
    top: FloatArray = found[:, -1]
    return top


class LinearWitness:
    """Logistic regression on standardised columns.

    Its log-odds are the log-ratio of two Gaussians with equal covariance.
    """

    name: ClassVar[str] = "linear"
    view: ClassVar[str] = ROWS

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Scorer:
        """Return one score, the log-odds."""
        rows, labels = _stacked(x, y)
        centre, scale = _standard(rows)
        model = LogisticRegression(class_weight="balanced", max_iter=200, tol=1e-3)
        with warnings.catch_warnings():
            # What has not converged is a witness all the same.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit((rows - centre) / scale, labels)
        slope = model.coef_[0] / scale

        def score(rows: FloatArray) -> FloatArray:
            odds: FloatArray = (rows - centre) @ slope
            return odds[:, None]

        return score


class QuadraticWitness:
    """Log-ratio of two Gaussians with covariances of their own.

    Each covariance is drawn towards the pooled one, a little and half way.
    """

    name: ClassVar[str] = "quadratic"
    view: ClassVar[str] = ROWS

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Scorer:
        """Return one score a shrinkage."""
        centre, scale = _standard(np.concatenate([x, y]))
        sides = [(rows - centre) / scale for rows in (x, y)]
        means = [rows.mean(axis=0) for rows in sides]
        own = [np.atleast_2d(np.cov(rows, rowvar=False)) for rows in sides]
        pooled = (own[0] + own[1]) / 2
        ridge = _RIDGE * np.eye(len(pooled))
        roots = [
            [
                np.linalg.cholesky((1 - share) * cov + share * pooled + ridge)
                for cov in own
            ]
            for share in _SHRINKAGES
        ]

        def score(rows: FloatArray) -> FloatArray:
            rows = (rows - centre) / scale
            found = np.empty((len(rows), len(roots)))
            for k, pair in enumerate(roots):
                far = [
                    np.square(solve_triangular(root, (rows - mean).T, lower=True)).sum(
                        axis=0
                    )
                    for root, mean in zip(pair, means, strict=True)
                ]
                found[:, k] = (far[1] - far[0]) / 2
            return found

        return score


class ClassifierWitness:
    """A classifier of scikit-learn: its decision function, or log-odds.

    Parameters
    ----------
    classifier : estimator
        Cloned for each fit, which leaves it unfitted.
    """

    view: ClassVar[str] = ROWS

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier
        self.name = type(classifier).__name__

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Scorer:
        """Return its score, checked to be of each row by itself."""
        rows, labels = _stacked(x, y)
        model = clone(self.classifier)
        if model.get_params().get("random_state", 0) is None:
            model.set_params(random_state=seed)
        weights = np.where(labels, len(rows) / len(x), len(rows) / len(y)) / 2
        weighted = has_fit_parameter(model, "sample_weight")
        model.fit(rows, labels, **({"sample_weight": weights} if weighted else {}))

        def score(rows: FloatArray) -> FloatArray:
            if hasattr(model, "decision_function"):
                return np.asarray(model.decision_function(rows))[:, None]
            with np.errstate(divide="ignore"):
                odds = np.log(model.predict_proba(rows))
            odds = np.clip(odds[:, 1] - odds[:, 0], -1e3, 1e3)
            return np.asarray(odds)[:, None]

        return by_row(score, self.name, alone=False)


class FunctionWitness:
    """A function of (X, Y) that returns a function from rows to one score each."""

    view: ClassVar[str] = ROWS

    def __init__(self, function: Callable[[FloatArray, FloatArray], Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def fit(self, x: FloatArray, y: FloatArray, seed: int) -> Scorer:
        """Return its score, checked to be one finite number a row, of it alone."""
        learned = self.function(x, y)
        if not callable(learned):
            raise ParameterError(
                f"the scorer {self.name!r} returned {type(learned).__name__} from "
                "(X, Y), and a function from rows to scores is needed"
            )

        def score(rows: FloatArray) -> FloatArray:
            found = np.asarray(learned(rows), dtype=np.float64)
            if found.shape not in ((len(rows),), (len(rows), 1)):
                raise ParameterError(
                    f"the scorer {self.name!r} returned scores of shape {found.shape} "
                    f"for {len(rows)} rows: one number a row is needed"
                )
            if not np.isfinite(found).all():
                raise ParameterError(
                    f"the scorer {self.name!r} returned scores that are not finite"
                )
            return found.reshape(-1, 1)

        return by_row(score, self.name, alone=True)


WITNESSES: dict[str, type] = {
    witness.name: witness
    for witness in (KernelWitness, LinearWitness, QuadraticWitness)
}


def read_scorers(scorers: Any, regs: Sequence[float]) -> list[Witness]:
    """Return witnesses for the `scorers` parameter.

    Parameters
    ----------
    scorers : None, or a name, function, classifier, or list of them
        None stands for every witness of the registry.
    regs : sequence of float
        For the kernel witness.

    Raises
    ------
    ParameterError
        One is none of these.
    """
    if scorers is None:
        scorers = list(WITNESSES)
    given = list(scorers) if isinstance(scorers, (list, tuple)) else [scorers]
    if not given:
        raise ParameterError("scorers=[] leaves nothing to tell samples apart by")
    found: list[Witness] = []
    for scorer in given:
        if isinstance(scorer, str) and scorer in WITNESSES:
            cls = WITNESSES[scorer]
            found.append(cls(regs) if cls is KernelWitness else cls())
        elif hasattr(scorer, "fit") and not isinstance(scorer, type):
            if not is_classifier(scorer):
                raise ParameterError(
                    f"scorers holds {item_text(scorer, given)}, which is no classifier: "
                    "give "
                    "one, or a "
                    "function of (X, Y) that returns a function from rows to scores"
                )
            found.append(ClassifierWitness(scorer))
        elif callable(scorer) and not isinstance(scorer, type):
            found.append(FunctionWitness(scorer))
        else:
            raise ParameterError(
                f"scorers holds {item_text(scorer, given)}, and must hold names "
                f"({', '.join(WITNESSES)}), unfitted classifiers, or functions of "
                "(X, Y) that return a function from rows to scores"
            )
    return found


def _stacked(x: FloatArray, y: FloatArray) -> tuple[FloatArray, np.ndarray]:
    return np.concatenate([x, y]), np.repeat([1, 0], [len(x), len(y)])


def _standard(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    scale = rows.std(axis=0)
    return rows.mean(axis=0), np.where(scale > 0, scale, 1.0)
