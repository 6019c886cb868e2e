"""What each mechanism would cost, before anything is released."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import pandas as pd

from skpuffer._base import AdditiveRelease
from skpuffer._checks import choice
from skpuffer._lazy import is_lazy
from skpuffer._parameters import check_law_given
from skpuffer._progress import progress, stepwise
from skpuffer._text import MOST_ITEMS, law_text, value_text
from skpuffer.core.calibration import RULES
from skpuffer.core.laws import LAWS, NoiseLaw, law_parameters
from skpuffer.counts import ConditionalCounts
from skpuffer.exceptions import (
    ParameterError,
    SkpufferWarning,
    UnavailableRuleError,
)
from skpuffer.exponential import RenyiPufferfishExponential
from skpuffer.mechanisms import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.reuse import reuse_fits

_ESTIMATORS = {
    "laplace": RenyiPufferfishLaplace,
    "gaussian": RenyiPufferfishGaussian,
    "exponential": RenyiPufferfishExponential,
}


def compare_mechanisms(
    X: Any,
    *,
    secret: Any = None,
    laws: Sequence[str | NoiseLaw] = ("laplace", "gaussian"),
    calibrations: Sequence[str] = tuple(RULES),
    scopes: Sequence[str] = ("joint", "column"),
    verbose: int = 0,
    **parameters: Any,
) -> pd.DataFrame:
    """Tabulate laws, rules and scopes for a frame, without releasing anything.

    Parameters
    ----------
    X : frame or array-like of shape (n, d), lazy rows or ConditionalCounts
        The columns to release, and the secret where it is named. Lazy rows are counted
        once, for all mechanisms; of counts, the secret and the prior are theirs.
    secret : str, int, list of them, or array-like of shape (n,)
        The secret's column or columns in X; or its values, one a row. A list as long
        as X holds values.
    laws : sequence of {"laplace", "gaussian", "exponential"} or NoiseLaw
        "exponential" takes a `power` beside the parameters that all share. A law that
        is given as it is goes by its name and parameters.
    calibrations : sequence of str
        Rules; by default all of them.
    scopes : sequence of {"joint", "column"}
        With a single column the two are the same, and one line is given.
    verbose : int, default=0
        1 shows a progress bar.
    **parameters
        Further parameters of the estimators: `alpha`, `epsilon`, `delta`, `bounds`,
        `secret_pairs`, ...; `prior` and `sample_weight` as in `fit`.

    Returns
    -------
    pandas.DataFrame
        One line for each law, scope, rule and released column: `scale`, `noise_std`,
        `column_std`, `noise_to_spread` and the `guarantee` in words. The lines of a
        law that cannot serve the order (Gaussian at α = ∞), of a rule that cannot serve
        the release ("exact" for several columns jointly, or exponential noise), and of
        laws and rules that do not go with the `prior_model` are left out.

    Raises
    ------
    ParameterError, ValueError
        As `fit` does.

    Examples
    --------
    >>> df = pd.DataFrame({"age": [30, 31, 40, 41] * 10, "sex": ["F", "M"] * 20})
    >>> table = compare_mechanisms(df, secret="sex", alpha=2, epsilon=1)
    >>> table.query("law == 'laplace'")[["calibration", "scale"]].round(3)
             calibration  scale
    0              w_inf  0.715
    1  alpha_wasserstein  2.000
    2        closed_form  2.000
    3          transport  0.715
    4              exact  0.714
    """
    for name, instead in (("scope", "scopes"), ("calibration", "calibrations")):
        if name in parameters:
            raise ParameterError(
                f"{name}={value_text(parameters[name])}: a comparison takes {instead}=[...]"
            )
    laws = _several("laws", laws)
    calibrations = _several("calibrations", calibrations)
    scopes = _several("scopes", scopes)
    if "power" in parameters and "exponential" not in laws:
        raise ParameterError(
            f"power={value_text(parameters['power'])} is of exponential noise: add "
            "'exponential' "
            f"to laws={value_text(laws)}"
        )
    X, secret, parameters = count_lazy_rows(X, secret, parameters)
    fit_arguments = {}
    if not isinstance(X, ConditionalCounts):
        if "sample_weight" in parameters:
            fit_arguments["sample_weight"] = parameters.pop("sample_weight")
        if not names_columns(secret, X):
            fit_arguments["secret"], secret = secret, None
        if not names_columns(parameters.get("prior"), X):
            fit_arguments["prior"] = parameters.pop("prior")
    candidates = [
        (name, mechanism, scope, rule)
        for name, mechanism in _mechanisms(laws).items()
        for scope in scopes
        for rule in _rules_for(parameters, LAWS.get(name, mechanism.law), calibrations)
    ]
    lines = []
    one_column = False
    with reuse_fits(1), progress("comparing", "fit", shown=verbose) as report:
        step = stepwise(report, len(candidates))
        for law, mechanism, scope, rule in candidates:
            own = dict(parameters)
            if law != "exponential":
                own.pop("power", None)
            estimator = mechanism(secret=secret, calibration=rule, scope=scope, **own)
            repeats = one_column and scope != scopes[0]
            if not repeats and _fits(estimator, X, fit_arguments):
                one_column = estimator.n_features_in_ == 1
                table = estimator.report_.to_frame().drop(columns="worst_pair")
                lines.append(
                    table.reset_index().assign(
                        law=law,
                        scope=scope,
                        calibration=rule,
                        guarantee=str(estimator.guarantee_),
                    )
                )
            step()
    order = ["law", "scope", "calibration", "column", "scale", "noise_std"]
    order += ["column_std", "noise_to_spread", "guarantee"]
    if not lines:
        raise ParameterError(
            f"nothing to compare at alpha={value_text(parameters.get('alpha'))} with "
            f"laws={value_text(laws)}, "
            f"calibrations={value_text(calibrations)}, scopes={value_text(scopes)}"
        )
    return pd.concat(lines, ignore_index=True)[order]


def _fits(estimator: Any, X: Any, arguments: Mapping[str, Any]) -> bool:
    """Fit an estimator quietly, and say whether its rule serves the release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkpufferWarning)
        try:
            if isinstance(X, ConditionalCounts):
                estimator.fit_counts(X)
            else:
                estimator.fit(X, **arguments)
        except UnavailableRuleError:
            return False
    return True


def _several(name: str, given: Any) -> tuple[Any, ...]:
    """Return one name or several; data that are passed by mistake are neither."""
    items = (given,) if isinstance(given, str) else None
    if items is None and isinstance(given, Iterable):
        items = tuple(given)
    named = not hasattr(given, "shape") or all(isinstance(i, str) for i in items or ())
    if items is None or not named or len(items) > MOST_ITEMS:
        raise ParameterError(
            f"{name}={value_text(given)} must be a list of what to compare"
        )
    return items


def _mechanisms(laws: Sequence[Any]) -> dict[str, type[AdditiveRelease]]:
    """Return the mechanism of each law, by what it is called in the table."""
    found: dict[str, type[AdditiveRelease]] = {}
    for place, law in enumerate(laws):
        name, mechanism = _named(law, f"laws[{place}]")
        if name in found:
            raise ParameterError(
                f"laws[{place}]={value_text(law)} is called {name!r}, as another law "
                "before it: leave one out, or give it another name"
            )
        found[name] = mechanism
    return found


def _named(law: Any, called: str) -> tuple[str, type[AdditiveRelease]]:
    """Return what a law is called, and the mechanism that has it."""
    if isinstance(law, str):
        return law, _ESTIMATORS[choice("laws", law, tuple(_ESTIMATORS))]
    check_law_given(law, called)
    mechanism = type("OwnRelease", (AdditiveRelease,), {"law": law})
    return law_text(law.name, law_parameters(law)), mechanism


def _rules_for(
    parameters: Mapping[str, Any], law: Any, rules: Sequence[str]
) -> list[str]:
    """Return the rules that go with a law, the order and the prior model."""
    prior_model, alpha = parameters.get("prior_model"), parameters.get("alpha")
    if isinstance(alpha, Real) and alpha > law.max_order:
        return []
    if prior_model == "gaussian":
        return ["transport"] if law.name == "gaussian" else []
    return [r for r in rules if (prior_model, r) != ("population", "exact")]


def count_lazy_rows(
    X: Any, secret: Any, parameters: Mapping[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """Return lazy rows as counts, which any number of fits take; all else as it is.

    Returns
    -------
    X, secret, parameters
        As `compare_mechanisms` takes them.
    """
    rest = dict(parameters)
    if not is_lazy(X):
        return X, secret, rest
    given = {"secret": secret, "prior": rest.pop("prior", None)}
    named: dict[str, Any] = {
        name: spec
        for name, spec in given.items()
        if isinstance(spec, (str, Integral, list, tuple))
    }
    beside = {name: spec for name, spec in given.items() if name not in named}
    weight = rest.pop("sample_weight", None)
    counts = ConditionalCounts(**named).update(X, **beside, sample_weight=weight)
    return counts, None, rest


def names_columns(spec: Any, X: Any) -> bool:
    """Whether a secret or prior is given by name or position, not by its values.

    A list as long as X has rows holds values; a shorter one names columns.
    """
    if spec is None or isinstance(spec, (str, Integral)):
        return True
    return isinstance(spec, (list, tuple)) and len(spec) != len(X)
