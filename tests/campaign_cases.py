"""Random parameters of releases for the campaign, and what is said of them."""

import math

import numpy as np
import pytest
from campaign_support import MANY, as_frame, budgets, chosen_pairs
from hypothesis import strategies as st

from skpuffer import (
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)
from skpuffer.exceptions import CalibrationError, ParameterError

LAWS = {
    "laplace": RenyiPufferfishLaplace,
    "gaussian": RenyiPufferfishGaussian,
    "exponential": RenyiPufferfishExponential,
}
EACH_LAW = pytest.mark.parametrize("law", LAWS)
RULES = ["transport", "alpha_wasserstein", "closed_form", "w_inf"]
# What a valid call may still come to, and by which words it is known.
REFUSALS = {
    "no pair": (ParameterError, "no secret pair occurs"),
    "budget": (ParameterError, "out of reach at alpha"),
    "order": (CalibrationError, "no order up to"),
    "fine grid": (CalibrationError, "nearly as much as epsilon"),
    "far values": (ValueError, "the reach of the noise grid"),
    "scale": (ValueError, "A noise scale must be between"),
}


def runs(examples):
    """Give a test its number of examples, and thousands in a slow run."""
    many = pytest.param(MANY, marks=pytest.mark.slow, id="many")
    return pytest.mark.parametrize("examples", [pytest.param(examples, id="few"), many])


def assert_refused(fit, noise, error):
    """Fit in vain, with an error of that name, and leave the estimator as it was."""
    before = dict(vars(noise))
    with pytest.raises((ValueError, CalibrationError)) as caught:
        fit()
    assert type(caught.value).__name__ == error
    assert vars(noise) == before


def attempt(fit, books):
    """Fit, and count what is refused with good reason."""
    try:
        found = fit()
    except (ValueError, CalibrationError) as error:
        for name, (kind, words) in REFUSALS.items():
            if isinstance(error, kind) and words in str(error):
                books.count(f"refused: {name}")
                return None
        raise
    books.count("fits")
    return found


@st.composite
def bounds(draw, names):
    """Draw bounds, for all columns or by name, or none."""
    kind = draw(st.sampled_from(["none", "none", "all", "some"]))
    if kind == "none":
        return None
    ends = st.sampled_from([(-3, 4), (0, 1), (-2.5, 60), (0.25, 3.75)])
    if kind == "all":
        return draw(ends)
    some = draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
    return {name: draw(ends) for name in some}


def clipping(declared, names):
    """Return what the declared bounds make of rows."""
    limits = [(-np.inf, np.inf)] * len(names)
    if isinstance(declared, dict):
        limits = [declared.get(name, (-np.inf, np.inf)) for name in names]
    elif declared is not None:
        limits = [declared] * len(names)
    low, high = np.array(limits, dtype=float).T
    return lambda values: np.clip(values, low, high)


@st.composite
def releases(draw, law, table, scope):
    """Draw valid parameters of a release of numbers."""
    # A step of the grid costs √(2^-20) of exponential noise.
    chosen = draw(budgets(law != "gaussian", 0.1 if law == "exponential" else 1e-3))
    pairs, stand_for = draw(chosen_pairs(table))
    one = scope == "column" or len(table.names) == 1
    rules = RULES + ["exact", "exact"] * (one and law != "exponential")
    chosen |= {
        "scope": scope,
        "secret_pairs": pairs,
        "calibration": draw(st.sampled_from(rules)),
        "bounds": draw(bounds(table.names)),
        "n_releases": draw(st.sampled_from([1, 1, 1, 2, 3])),
    }
    if law == "exponential":
        chosen["power"] = draw(st.sampled_from([0.5, 0.5, 1.0, 0.3]))
    if chosen["calibration"] == "exact" and law == "laplace":
        chosen["n_releases"] = 1
    if len(table.names) > 1 and draw(st.integers(0, 2)) == 0:
        given = draw(st.lists(st.floats(0.2, 5), min_size=6, max_size=6))
        given = dict(zip(table.names, given, strict=False))
        as_list = draw(st.booleans())
        chosen["column_weights"] = list(given.values()) if as_list else given
    return chosen, stand_for


def whole(p, q):
    """Whether a linear programme of whole masses is small enough."""
    masses = np.concatenate([p[1], q[1]])
    lcm = math.lcm(*(max(int(side[1].sum()), 1) for side in (p, q)))
    return (masses == np.rint(masses)).all() and lcm < 1e6


def assert_record(noise, given, table, pairs):
    """Hold the record to the parameters."""
    promise = noise.guarantee_
    assert promise.columns == tuple(table.names)
    assert promise.scale == tuple(noise.scale_.tolist())
    assert (promise.alpha, promise.epsilon) == (noise.alpha_, noise.epsilon_)
    if "delta" in given:
        assert promise.target == (given["epsilon"], given["delta"])
        assert promise.to_epsilon(given["delta"]) <= given["epsilon"] * (1 + 1e-9)
    else:
        assert (promise.alpha, promise.epsilon) == (given["alpha"], given["epsilon"])
        assert promise.target is None
    for name in ("scope", "n_releases"):
        assert getattr(promise, name) == given.get(name, getattr(promise, name))
    assert {frozenset(pair) for pair in promise.pairs} == set(map(frozenset, pairs))
    assert promise.weighted == (table.weight is not None)
    groups = table.groups()
    towns = {town for town, _ in groups if town is not None}
    assert set(promise.priors) == towns
    assert noise.n_features_in_ == len(table.names)
    profile = noise.privacy_profile([promise.alpha])
    assert profile[0] <= promise.epsilon * (1 + 1e-9)


@st.composite
def small_releases(draw, table):
    """Draw parameters of a release that is served, of any law, and its make."""
    law = draw(st.sampled_from(list(LAWS)))
    scope = draw(st.sampled_from(["joint", "column"]))
    given_, _ = draw(releases(law, table, scope))
    given_["epsilon"] = max(given_["epsilon"], 0.1)
    # The exact rule takes ten times as long, and reads nothing in ways of its own.
    if given_["calibration"] == "exact" and draw(st.integers(0, 3)):
        given_["calibration"] = "transport"
    if law == "gaussian" and scope == "column" and draw(st.booleans()):
        given_ |= {"prior_model": "gaussian", "calibration": "transport"}
    return LAWS[law], given_


def scale_of(fit):
    """Return the scale of a fit, or the class of its refusal."""
    try:
        return fit().scale_
    except (ValueError, CalibrationError) as error:
        return np.array([type(error).__name__])


def same(first, second, tolerance=0.0):
    if first.dtype.kind != "f" or second.dtype.kind != "f":
        return first.tolist() == second.tolist()
    return bool((np.abs(first - second) <= tolerance * np.abs(second)).all())


SPOILT = ("nan", "inf", "secret", "text", "one", "name", "rows")


def spoilt(table, draw, ways=SPOILT):
    """Return a frame that must be refused, and words that its refusal says."""
    name = draw(st.sampled_from(table.names))
    frame = as_frame(table)
    row = draw(st.integers(0, table.n_rows - 1))
    kind = draw(st.sampled_from(ways))
    if kind in ("nan", "inf"):
        frame[name] = frame[name].astype(float)
        frame.loc[row, name] = np.nan if kind == "nan" else -np.inf
        return frame, [repr(name), f"1 of {table.n_rows} rows"]
    if kind == "text":
        return frame.assign(**{name: "many"}), [repr(name)]
    if kind == "secret":
        frame["s"] = frame["s"].astype(object)
        frame.loc[row, "s"] = draw(st.sampled_from([None, np.nan, "nan"]))
        return frame, ["secret 's' is missing", f"1 of {table.n_rows} rows"]
    if kind == "one":
        return frame.assign(s="F"), ["single value"]
    if kind == "name":
        frame.columns = [*frame.columns[:-1], frame.columns[0]]
        return frame, [""]
    return frame.iloc[:0], [""]
