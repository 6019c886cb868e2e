"""What each mechanism would cost, before anything is released."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd

from skpuffer._parameters import choice
from skpuffer.core.calibration import RULES
from skpuffer.exceptions import SkpufferWarning, UnavailableRuleError
from skpuffer.mechanisms import RenyiPufferfishGaussian, RenyiPufferfishLaplace

_ESTIMATORS = {"laplace": RenyiPufferfishLaplace, "gaussian": RenyiPufferfishGaussian}


def compare_mechanisms(
    X: Any,
    *,
    secret: Any,
    laws: Sequence[str] = ("laplace", "gaussian"),
    calibrations: Sequence[str] = tuple(RULES),
    scopes: Sequence[str] = ("joint", "column"),
    **parameters: Any,
) -> pd.DataFrame:
    """Tabulate laws, rules and scopes for a frame, without releasing anything.

    Parameters
    ----------
    X : frame or array-like of shape (n, d)
        The columns to release, and the secret where it is named.
    secret : str, int, list of them, or array-like of shape (n,)
        The secret's column or columns in X; or its values, one a row.
    laws : sequence of {"laplace", "gaussian"}
    calibrations : sequence of str
        Rules; by default all of them.
    scopes : sequence of {"joint", "column"}
        With a single column the two are the same, and one line is given.
    **parameters
        Further parameters of the estimators: `alpha`, `epsilon`, `delta`, `bounds`,
        `secret_pairs`, ...; `prior` and `sample_weight` as in `fit`.

    Returns
    -------
    pandas.DataFrame
        One line for each law, scope, rule and released column: `scale`, `noise_std`,
        `column_std`, `noise_to_spread` and the `guarantee` in words. The lines of a
        law that cannot serve the order (Gaussian at α = ∞), and those of a rule that
        cannot serve the release ("exact" for several columns jointly), are left out.

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
    fit_arguments = {
        name: parameters.pop(name) for name in ("sample_weight",) if name in parameters
    }
    if not _names_columns(secret):
        fit_arguments["secret"] = secret
        secret = None
    if "prior" in parameters and not _names_columns(parameters["prior"]):
        fit_arguments["prior"] = parameters.pop("prior")
    lines = []
    for law in laws:
        estimator_class = _ESTIMATORS[choice("laws", law, tuple(_ESTIMATORS))]
        if law == "gaussian" and parameters.get("alpha") == float("inf"):
            continue
        for scope in scopes:
            for rule in calibrations:
                estimator = estimator_class(
                    secret=secret, calibration=rule, scope=scope, **parameters
                )
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", SkpufferWarning)
                    try:
                        estimator.fit(X, **fit_arguments)
                    except UnavailableRuleError:
                        continue
                if scope != scopes[0] and estimator.n_features_in_ == 1:
                    continue
                table = estimator.report_.to_frame().drop(columns="worst_pair")
                lines.append(
                    table.reset_index().assign(
                        law=law,
                        scope=scope,
                        calibration=rule,
                        guarantee=str(estimator.guarantee_),
                    )
                )
    order = ["law", "scope", "calibration", "column", "scale", "noise_std"]
    order += ["column_std", "noise_to_spread", "guarantee"]
    if not lines:
        return pd.DataFrame(columns=order)
    return pd.concat(lines, ignore_index=True)[order]


def _names_columns(spec: Any) -> bool:
    """Whether a secret or prior is given by name or position, not by its values."""
    if spec is None or isinstance(spec, (str, int)):
        return True
    # A short list of names is a name each; a list of labels is as long as the data.
    return isinstance(spec, (list, tuple)) and all(isinstance(s, str) for s in spec)
