"""What the pages and docstrings say, where no other file has a test of it."""

import dataclasses
import importlib
import inspect
import os
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from joblib import Parallel, delayed
from paths import shared
from scipy import stats
from scipy.spatial.distance import pdist
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from skpuffer import (
    ConditionalCounts,
    JointRelease,
    PrivacyProfile,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    compare_mechanisms,
    coupling_effort,
    exceptions,
    held_out_divergence,
    reuse_fits,
)
from skpuffer.audit import (
    KernelRenyiAuditor,
    RunningAudit,
    _folds,
    _kernel,
    audit_estimator,
    make_audit_scorer,
)
from skpuffer.core.calibration import RULES
from skpuffer.core.calibration._shift_rule import MomentRule
from skpuffer.core.plans import EXACT_LIMIT
from skpuffer.displays import (
    AuditDisplay,
    CouplingDisplay,
    NoiseDisplay,
    PrivacyProfileDisplay,
    ReleaseDisplay,
)
from skpuffer.effort import USUAL_EFFORT, effort_of_a_fit
from skpuffer.exceptions import ParameterError
from skpuffer.laws import (
    Gaussian,
    Laplace,
    LawError,
    SeededBits,
    check_law,
    discrete_gaussian,
    grid_step,
    release_on_grid,
    rounded_laplace,
    scale_to_grid,
    standardised,
)
from skpuffer.metrics import median_gamma

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
}
MODULES = ["", ".audit", ".displays", ".laws", ".metrics"]
MECHANISMS = [
    RenyiPufferfishLaplace,
    RenyiPufferfishGaussian,
    RenyiPufferfishExponential,
    RenyiPufferfishCategorical,
    JointRelease,
]
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def people(n=200):
    rng = np.random.default_rng(0)
    sex = np.arange(n) % 2
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n) + 4 * sex,
            "job": rng.choice(["cook", "clerk", "pilot"], n),
            "sex": sex,
        }
    )


def rows_for(mechanism):
    if mechanism is JointRelease:
        return people()
    name = "job" if mechanism is RenyiPufferfishCategorical else "age"
    return people()[[name, "sex"]]


# --- Python, packages and extras --------------------------------------------------


def test_all_pages_name_the_same_python():
    floor = PROJECT["requires-python"].removeprefix(">=")
    said = {
        name: re.findall(r"Python (\d+\.\d+) or newer", text)
        for name, text in PAGES.items()
    }
    assert {name for name, found in said.items() if found} == {
        "CONTRIBUTING.md",
        "README.md",
        "docs/install.md",
    }
    assert {version for found in said.values() for version in found} == {floor}
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py{floor.replace('.', '')}"
    assert f"Programming Language :: Python :: {floor}" in PROJECT["classifiers"]
    oldest = (ROOT / "tests" / "oldest.txt").read_text("utf-8")
    assert f"on Python {floor}" in oldest.splitlines()[0]
    assert f"than Python {floor} " in (ROOT / ".ci" / "run").read_text("utf-8")


def test_no_dependency_has_an_upper_bound():
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *extras["dask"], *extras["plot"]]
    assert [
        entry
        for entry in needed
        if not re.fullmatch(r"[^<>=!~,]+>=[\d.]+", re.sub(r"\[.*?\]", "", entry))
    ] == []


def test_every_extra_that_a_page_installs_is_there():
    named = {
        extra
        for text in PAGES.values()
        for extras in re.findall(r"'(?:\.|skpuffer)\[([\w,]+)\]'", text)
        for extra in extras.split(",")
    }
    assert named == set(PROJECT["optional-dependencies"])


@pytest.mark.slow
def test_what_is_optional_is_not_needed():
    script = """
import sys
for name in ("polars", "pyarrow", "duckdb", "dask", "distributed", "matplotlib"):
    sys.modules[name] = None  # What stands for a package that is not installed.
import pandas as pd
from skpuffer import JointRelease, RenyiPufferfishLaplace, compare_mechanisms
from skpuffer import audit, displays, held_out_divergence, laws, metrics
frame = pd.DataFrame({"age": range(40), "job": ["a", "b"] * 20, "sex": [*"FMFM"] * 10})
row = JointRelease(secret="sex", categories=[["a", "b"]]).fit(frame)
print(row.transform(frame).columns.tolist())
ages = frame[["age", "sex"]]
noise = RenyiPufferfishLaplace(secret="sex").fit(ages)
print(held_out_divergence(noise, ages)["holds"].all())
"""
    command = [sys.executable, "-W", "error::ImportWarning", "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["['age', 'job']", "True"]


PATH = r"(?:^|[ =])((?:\.ci|benchmarks|docs|examples|skpuffer|tests)/[\w./*]*)"


def test_every_file_that_a_page_names_is_there():
    spans = [
        span for text in PAGES.values() for span in re.findall("`([^`\n]+)`", text)
    ]
    named = {path for span in spans for path in re.findall(PATH, span)}
    assert {
        "benchmarks/attacks.py",
        "docs/images/make.py",
        "skpuffer/core/laws",
    } <= named
    built = "docs/_build"
    assert [
        path
        for path in named
        if not path.startswith(built) and not any(ROOT.glob(path))
    ] == []


# --- docstrings -------------------------------------------------------------------


def section(thing, name):
    """Return the entries of a section of a docstring: {name: type and default}."""
    text = inspect.getdoc(thing) or ""
    found = re.search(
        rf"(?:^|\n){name}\n-+\n(.*?)(?=\n\n[A-Z][A-Za-z ]+\n-+\n|\Z)", text, re.S
    )
    entries = {}
    for line in found[1].splitlines() if found else ():
        entry = re.match(r"(\*{0,2}\w[\w, *]*?)(?: : (.*))?$", line)
        if entry:
            for each in entry[1].split(","):
                entries[each.strip()] = entry[2] or ""
    return entries


def documented():
    for suffix in MODULES:
        module = importlib.import_module(f"skpuffer{suffix}")
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing):
                continue
            yield name, thing
            for member in dir(thing) if inspect.isclass(thing) else ():
                value = getattr(thing, member)
                ours = str(getattr(value, "__module__", "")).startswith("skpuffer")
                if member[0] != "_" and callable(value) and ours:
                    yield f"{name}.{member}", value


DOCUMENTED = {
    name: thing for name, thing in documented() if section(thing, "Parameters")
}


def parameters(thing):
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return {
        stars.get(parameter.kind, "") + name: parameter.default
        for name, parameter in inspect.signature(thing).parameters.items()
        if name not in ("self", "cls")
    }


@pytest.mark.parametrize("name", DOCUMENTED)
def test_parameters_and_defaults_are_those_of_the_docstring(name):
    thing = DOCUMENTED[name]
    said, real = section(thing, "Parameters"), parameters(thing)
    assert set(said) == set(real)
    for parameter, text in said.items():
        stated = re.search(r"default=(.*)$", text)
        if stated:
            assert eval(stated[1]) == real[parameter], parameter
        elif "optional" in text:
            assert real[parameter] is None, parameter


@pytest.mark.parametrize("mechanism", [JointRelease, RenyiPufferfishCategorical])
def test_what_is_as_in_another_estimator_has_its_default(mechanism):
    laplace = parameters(RenyiPufferfishLaplace)
    alike = {
        name for name, text in section(mechanism, "Parameters").items() if not text
    }
    for name, default in parameters(mechanism).items():
        if name in alike & set(laplace):
            assert default == laplace[name], name


RECORDS = {
    name: thing
    for name, thing in documented()
    if dataclasses.is_dataclass(thing) and section(thing, "Attributes")
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_fields_of_a_record_are_those_of_its_docstring(name):
    said = {
        *section(RECORDS[name], "Attributes"),
        *section(RECORDS[name], "Parameters"),
    }
    assert {field.name for field in dataclasses.fields(RECORDS[name])} <= said


@quiet
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_fit_has_the_attributes_of_the_docstring(mechanism):
    said = section(mechanism, "Attributes")
    assert {"scale_", "guarantee_", "report_", "feature_names_in_"} <= set(said)
    fitted = mechanism(secret="sex").fit(rows_for(mechanism))
    assert [name for name in said if not hasattr(fitted, name)] == []
    assert [name for name in said if hasattr(mechanism(), name)] == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nothing_is_said_of_a_release_that_is_not_fitted(mechanism):
    rows, fresh = rows_for(mechanism), mechanism(secret="sex")
    for use in (
        lambda: fresh.transform(rows),
        lambda: fresh.get_feature_names_out(),
        lambda: fresh.privacy_profile(2),
        lambda: held_out_divergence(fresh, rows),
        lambda: audit_estimator(fresh, rows),
        lambda: ReleaseDisplay.from_estimator(fresh, rows),
        lambda: PrivacyProfileDisplay.from_estimator(fresh),
    ):
        with pytest.raises(NotFittedError):
            use()


def test_nothing_is_said_of_an_audit_that_is_not_fitted():
    audit, running = KernelRenyiAuditor(), RunningAudit(1.0)
    for use in (
        lambda: audit.epsilon_lower(delta=0.1),
        lambda: AuditDisplay.from_estimator(audit),
        lambda: running.bound_,
        lambda: running.verdict_,
        lambda: running.e_value_,
    ):
        with pytest.raises(NotFittedError):
            use()


def test_every_warning_can_be_filtered_by_one_name():
    named = [getattr(exceptions, name) for name in exceptions.__all__]
    told = [thing for thing in named if issubclass(thing, Warning)]
    assert len(told) > 5
    assert all(issubclass(thing, exceptions.SkpufferWarning) for thing in told)
    assert issubclass(ParameterError, ValueError)


# --- releases ---------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nothing_random_happens_in_fit(mechanism, monkeypatch):
    rows = rows_for(mechanism)
    state = np.random.get_state()[1].copy()
    with monkeypatch.context() as patched:
        patched.setattr(os, "urandom", None)
        first = mechanism(secret="sex").fit(rows)
        second = mechanism(secret="sex").fit(rows)
    assert first.scale_.tolist() == second.scale_.tolist()
    assert (np.random.get_state()[1] == state).all()


def test_weights_are_matched_by_position():
    rows = people()[["age", "sex"]]
    weight = np.arange(len(rows)) % 3 + 1
    plain = RenyiPufferfishLaplace(secret="sex").fit(rows, sample_weight=weight)
    turned = pd.Series(weight, index=rows.index[::-1])
    again = RenyiPufferfishLaplace(secret="sex").fit(rows, sample_weight=turned)
    assert again.scale_.tolist() == plain.scale_.tolist()


@quiet
def test_every_prediction_of_a_pipeline_is_a_release():
    class Echo(DummyRegressor):
        def predict(self, X):
            return np.asarray(X)[:, 0]

    rows = people()[["age", "sex"]]
    noise = RenyiPufferfishLaplace(secret="sex", random_state=0)
    model = make_pipeline(noise, Echo())
    model.fit(rows, rows["age"])
    first, second = model.predict(rows), model.predict(rows)
    # The difference is one of two independent noises, not zero anywhere.
    assert (first != second).mean() > 0.99
    scale = model[0].scale_[0]
    assert 1.8 * scale < np.std(first - second) < 2.2 * scale


@quiet
def test_shares_of_categories_are_estimated_without_bias():
    levels = ["low", "middle", "high"]
    codes = np.random.default_rng(0).choice(3, 60_000, p=[0.6, 0.3, 0.1])
    frame = pd.DataFrame({"level": np.take(levels, codes), "top": codes == 2})
    draw = RenyiPufferfishCategorical(
        2, 0.5, secret="top", categories=[levels], metric="ordinal", random_state=0
    )
    released = draw.fit_transform(frame)["level"]
    channel, true = draw.channels_["level"], np.bincount(codes) / len(codes)
    seen = released.value_counts(normalize=True)[levels].to_numpy()
    assert abs(seen - true).max() > 0.1
    # Standard errors are below 0.01.
    assert abs(np.linalg.solve(channel.T, seen) - true).max() < 0.03
    assert abs(np.linalg.solve(channel, seen) - true).max() > 0.05


def test_at_most_256_categories():
    frame = people()[["job", "sex"]]
    for more, fits in ((253, True), (254, False)):
        names = ["cook", "clerk", "pilot", *map(str, range(more))]
        draw = RenyiPufferfishCategorical(secret="sex", categories=[names])
        if fits:
            assert draw.fit(frame).channels_["job"].shape == (256, 256)
        else:
            with pytest.raises(ParameterError, match="257 categories, more than 256"):
                draw.fit(frame)


@quiet
def test_an_index_that_pyarrow_makes_a_column_is_released_as_one():
    frame = people()[["age", "sex"]]
    shuffled = frame.sample(frac=1, random_state=0)
    noise = RenyiPufferfishLaplace(secret="sex")
    kept = noise.fit_transform(pa.Table.from_pandas(shuffled))
    assert kept.column_names == ["age", "__index_level_0__"]
    assert not set(kept["__index_level_0__"].to_pylist()) & set(range(len(frame)))
    for table in (
        pa.Table.from_pandas(shuffled, preserve_index=False),
        pa.Table.from_pandas(frame),
        pa.Table.from_pandas(frame.set_axis(range(5, len(frame) + 5), axis=0)),
    ):
        assert noise.fit_transform(table).column_names == ["age"]


def test_names_of_text_and_numbers_raise_what_scikit_learn_raises():
    frame = people().assign(job=1.0).set_axis(["age", 1, "sex"], axis=1)
    for mechanism in (RenyiPufferfishLaplace, JointRelease):
        with pytest.raises(TypeError, match=r"only supported if all .* string names"):
            mechanism(secret="sex").fit(frame)


@quiet
def test_what_has_no_noise_in_units_of_its_own():
    categories = rows_for(RenyiPufferfishCategorical)
    assert not hasattr(JointRelease(secret="sex").fit(categories), "noise_std_")
    with pytest.raises(ParameterError, match="alpha=inf is out of reach of gaussian"):
        JointRelease(np.inf, law="gaussian", secret="sex").fit(categories)
    constant = people()[["age", "sex"]].assign(one=1.0)
    report = RenyiPufferfishLaplace(secret="sex").fit(constant).report_
    assert report.noise_to_spread[0] > 0
    assert np.isnan(report.noise_to_spread[1])


@quiet
def test_what_needs_no_search_does_not_notice_how_long_it_may_take():
    assert EXACT_LIMIT == 2000
    assert USUAL_EFFORT.solves == 30_000
    frame = people().assign(pay=lambda f: 10 * f["age"] % 37).drop(columns="job")
    many = pd.DataFrame(np.random.default_rng(0).normal(size=(4100, 1)), columns=["x"])
    many["sex"] = np.arange(len(many)) % 2
    cases = [
        (RenyiPufferfishGaussian(secret="sex"), frame),
        (RenyiPufferfishGaussian(secret="sex"), many),
        (
            RenyiPufferfishGaussian(
                secret="sex", prior_model="bounded", bounds=(-9, 999)
            ),
            many.assign(y=many["x"] ** 2),
        ),
    ]
    for noise, rows in cases:
        usual = noise.fit(rows).scale_
        with coupling_effort(solves=1):
            assert noise.fit(rows).scale_.tolist() == usual.tolist()


@quiet
@pytest.mark.parametrize("mechanism", [RenyiPufferfishLaplace, RenyiPufferfishGaussian])
def test_a_smaller_order_promises_less_and_needs_less_noise(mechanism):
    for columns in (["age"], ["age", "job"]):
        frame = people(60)
        frame["job"] = frame["job"].map({"cook": 1, "clerk": 4, "pilot": 9})
        scales = [
            mechanism(alpha, 1, secret="sex").fit(frame[[*columns, "sex"]]).scale_[0]
            for alpha in (1.01, 1.5, 2, 4, 16, 64)
        ]
        # Of several columns up to what another coupling may gain.
        assert (np.diff(scales) > -1e-3 * np.array(scales[1:])).all()


@quiet
def test_bounds_limit_what_one_row_can_do_to_the_scale():
    frame = people(400)[["age", "sex"]]
    outlier = frame.copy()
    outlier.loc[0, "age"] = 500
    free, bound = (
        [
            RenyiPufferfishLaplace(secret="sex", bounds=bounds).fit(rows).scale_[0]
            for rows in (frame, outlier)
        ]
        for bounds in (None, (18, 90))
    )
    assert free[1] > 3 * free[0]
    assert bound[0] <= bound[1] < 1.5 * bound[0]


class LogRatio(MomentRule):
    """The rule of the page on rules."""

    name = "log_ratio"
    source = "for a test"

    def moment_exponents(self, shifts, law, budget, scale):
        return (budget.alpha - 1) * standardised(shifts, scale).sum(axis=1)


def test_a_rule_of_the_registry_is_taken_everywhere(monkeypatch):
    rows = people()[["age", "sex"]]
    with pytest.raises(ParameterError, match="calibration='log_ratio' must be one of"):
        RenyiPufferfishLaplace(secret="sex", calibration="log_ratio").fit(rows)
    monkeypatch.setitem(RULES, "log_ratio", LogRatio)
    noise = RenyiPufferfishLaplace(4, secret="sex", calibration="log_ratio").fit(rows)
    published = noise.scale_[0]
    noise.set_params(calibration="alpha_wasserstein").fit(rows)
    assert published == pytest.approx(0.75 * noise.scale_[0], rel=1e-5)
    table = compare_mechanisms(
        rows, secret="sex", alpha=4, laws=["laplace"], calibrations=["log_ratio"]
    )
    assert table["scale"].tolist() == [published]
    display = NoiseDisplay.from_frame(
        rows, secret="sex", alphas=[4], epsilons=[1], laws=["laplace"],
        calibrations=["log_ratio"],
    )  # fmt: skip
    assert display.table["calibration"].tolist() == ["log_ratio"]


def test_counts_have_no_part_in_what_fits_share():
    rows = people()[["age", "sex"]]
    counts = ConditionalCounts.from_frame(rows, secret="sex")
    before = counts.to_frame()
    with reuse_fits() as reuse:
        for _ in range(2):
            RenyiPufferfishLaplace(secret="sex").fit_counts(counts)
    assert (reuse.hits, reuse.misses) == (0, 0)
    # They stay as they are.
    pd.testing.assert_frame_equal(counts.to_frame(), before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_knows_of_an_effort():
    read, write = os.pipe()
    with coupling_effort(solves=7):
        child = os.fork()
        if child == 0:
            try:
                with effort_of_a_fit(0) as effort:
                    os.write(write, str(effort.solves).encode())
            finally:
                os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 9) == b"7"
    os.close(read)
    os.close(write)


@pytest.mark.slow
def test_workers_of_joblib_know_nothing_of_an_effort():
    def solves():
        with effort_of_a_fit(0) as effort:
            return effort.solves

    with coupling_effort(solves=7):
        assert Parallel(n_jobs=2, backend="loky")([delayed(solves)()]) == [30_000]


@quiet
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("clips", [False, True])
def test_released_values_lie_on_the_grid_or_at_a_bound_that_clips_them(kind, clips):
    frame = people(400)[["age", "sex"]].astype({"age": kind})
    bounds = np.array([18.3, 90.7])
    noise = RenyiPufferfishLaplace(
        secret="sex", bounds=tuple(bounds), clip_output=clips
    ).fit(frame)
    released = noise.transform(frame)["age"].to_numpy()
    assert released.dtype == kind
    at_bounds = np.isin(released, bounds.astype(kind))
    assert at_bounds.any() == clips
    steps = released[~at_bounds].astype(float) / grid_step(noise.scale_[0])
    assert (steps % 1 == 0).all()


def test_groups_of_twenty_rows_are_not_small():
    for rows, small in ((40, False), (38, True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            RenyiPufferfishLaplace(secret="sex").fit(people(rows)[["age", "sex"]])
        told = {warning.category for warning in caught}
        assert (exceptions.SmallGroupWarning in told) == small


class NoBits:
    """A source that nobody may ask."""

    def words(self, n):
        raise AssertionError("bits were drawn")


def test_steps_of_the_grid_and_what_is_released_on_it():
    for exponent in (-1000, 0, 899):
        assert grid_step(2.0**exponent) == 2.0 ** (exponent - 20)
    for scale in (2.0**-1000 * (1 - 2**-52), 2.0**901, 0.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="scale"):
            grid_step(scale)
    for scale in np.random.default_rng(0).lognormal(0, 9, 500):
        rounded = scale_to_grid(scale)
        assert scale <= rounded < scale * (1 + 2.0**-20)
        steps = rounded / grid_step(rounded)
        assert 2**20 <= steps < 2**21
        assert steps == int(steps)
    every = np.arange(20.0)
    plain = release_on_grid(every[::2].copy(), 0.5, rounded_laplace, SeededBits(1, 0))
    strided = release_on_grid(every[::2], 0.5, rounded_laplace, SeededBits(1, 0))
    assert strided.tolist() == plain.tolist()
    place = every[::2]
    same = release_on_grid(place, 0.5, rounded_laplace, SeededBits(1, 0), place)
    assert same is place
    assert every[::2].tolist() == plain.tolist()
    assert every[1::2].tolist() == list(range(1, 20, 2))
    # What is refused draws no noise and writes nothing.
    out = np.full(2, 7.0)
    for values, scale in (([0.0, np.nan], 0.5), ([0.0, 1e300], 0.5), ([0.0, 1.0], 0.3)):
        with pytest.raises(ValueError, match=r"grid|NaN|finite|scale"):
            release_on_grid(np.array(values), scale, rounded_laplace, NoBits(), out)
        assert out.tolist() == [7.0, 7.0]


@quiet
@pytest.mark.parametrize("rule", ["transport", "w_inf", "exact"])
@pytest.mark.parametrize("mechanism", [RenyiPufferfishLaplace, RenyiPufferfishGaussian])
def test_a_profile_is_made_of_bounds_of_ten_bits(mechanism, rule):
    noise = mechanism(3, 1, secret="sex", calibration=rule)
    profile = noise.fit(people()[["age", "sex"]]).profile_
    bounds = np.array(profile.divergences)
    assert np.isfinite(bounds).all()
    short = np.ldexp(np.frexp(bounds)[0], 10) % 1 == 0
    assert short.mean() > 0.6
    # Whatever else there is lies on chords between them.
    orders = np.array(profile.orders)
    kept = PrivacyProfile(
        tuple(orders[short].tolist()), tuple(bounds[short].tolist()), profile.limit
    )
    np.testing.assert_allclose(kept.divergence(orders), bounds, rtol=1e-12)
    if np.isfinite(profile.limit):
        assert np.ldexp(np.frexp(profile.limit)[0], 10) % 1 == 0


def test_copies_of_categories_on_other_rows_are_bounded_together():
    frame = people(400)[["job", "sex"]]
    frame.loc[::3, "job"] = frame["sex"].map({0: "cook", 1: "clerk"})
    names = ["cook", "clerk", "pilot"]
    draw = RenyiPufferfishCategorical(
        secret="sex", categories=[names], epsilon=0.5, n_releases=2
    ).fit(frame)
    channel = draw.channels_["job"]
    twice = np.einsum("xa,xb->xab", channel, channel).reshape(3, 9)
    shares = [
        rows["job"].value_counts(normalize=True)[names].to_numpy()
        for _, rows in frame.groupby("sex")
    ]
    one, both = (
        max(np.log(np.sum((p @ c) ** 2 / (q @ c))) for p, q in (shares, shares[::-1]))
        for c in (channel, twice)
    )
    assert one < 0.9 * both
    found = held_out_divergence(draw, frame)["divergence"][0]
    assert both * (1 - 1e-9) <= found <= 0.5


# --- audits and checks ------------------------------------------------------------


def test_the_claims_of_a_running_audit_and_the_pairs_it_does_not_bet_on():
    rng = np.random.default_rng(0)
    far = rng.normal(size=(1500, 1)), rng.normal(size=(1500, 1)) + 9
    audit = RunningAudit(epsilon=1.0)
    audit.partial_fit(*(rows[:100] for rows in far))
    assert (audit.n_pairs_, audit.n_bets_) == (100, 0)
    audit.partial_fit(*(rows[100:101] for rows in far))
    assert (audit.n_pairs_, audit.n_bets_) == (101, 1)
    # The bound is one of the claims.
    bounds = set()
    for start in range(101, 1500, 100):
        audit.partial_fit(*(rows[start : start + 100] for rows in far))
        bounds.add(audit.bound_)
    fine, coarse = np.arange(80) / 20, np.arange(16, 49) / 4
    assert bounds <= {*fine, *coarse}
    assert len(bounds) > 5


def test_a_diagnostic_looks_at_some_rows_and_a_kernel_claim_at_all(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(800, 1)), rng.normal(size=(800, 1)) + 1
    assert _kernel._DIAGNOSTIC_ROWS == 20_000
    found = {}
    for rows in (20_000, 100):
        monkeypatch.setattr(_kernel, "_DIAGNOSTIC_ROWS", rows)
        for claim in ("auto", "kernel_renyi"):
            audit = KernelRenyiAuditor(
                alpha=2, reg=0.1, claim=claim, scorers="linear"
            ).fit(x, y)
            found[claim, rows] = audit.divergence_[0]
    assert found["kernel_renyi", 100] == found["kernel_renyi", 20_000]
    assert found["auto", 100] != found["auto", 20_000] == found["kernel_renyi", 100]


def test_too_few_rows_of_one_pair_speak_for_all_unless_another_is_refuted():
    secret = np.repeat(["a", "b", "c"], [600, 24, 24])
    rows = np.random.default_rng(0).normal(size=(len(secret), 1))
    audit = KernelRenyiAuditor(epsilon=2, scorers="linear")
    for leak, others, whole in (
        (0.0, "no violation found", "too few samples"),
        (9.0, "refuted", "refuted"),
    ):
        audit.fit(rows + leak * (secret == "a")[:, np.newaxis], secret=secret)
        verdicts = [pair.verdict for pair in audit.pairs_]
        assert verdicts == [others, others, "too few samples"]
        assert audit.verdict_ == whole


def test_means_are_bounded_for_low_orders_of_many_rows(monkeypatch):
    assert (_folds._HIGHEST_BET, _folds._FEWEST_BET) == (3.0, 10_000)
    monkeypatch.setattr(_folds, "_FEWEST_BET", 400)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 1)), rng.normal(size=(400, 1)) + 2
    for alpha, fewer, bets in ((3.0, 0, True), (3.01, 0, False), (3.0, 2, False)):
        audit = KernelRenyiAuditor(alpha=alpha, scorers="linear").fit(x, y[fewer:])
        folds = audit.pairs_[0].folds
        assert [fold.betting > 0 for fold in folds] == [bets] * len(folds)


def test_the_median_is_that_of_a_thousand_rows_at_most():
    rng = np.random.default_rng(0)
    for rows, all_of_them in ((1000, True), (1002, False)):
        both = rng.normal(size=(2, rows // 2, 1))
        exact = 1 / np.median(pdist(both.reshape(-1, 1))) ** 2
        assert (abs(median_gamma(*both) / exact - 1) < 1e-12) == all_of_them


def test_the_median_width_is_that_of_columns_of_unit_variance():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) * [1, 3]
    units = np.array([1.0, 2.0**12])
    for gamma, same in (("median", True), (0.5, False)):
        audit = KernelRenyiAuditor(epsilon=1, scorers="kernel", gamma=gamma, reg=0.1)
        plain = audit.fit(x, y).divergence_
        stretched = audit.fit(x * units, y * units).divergence_
        assert np.allclose(stretched, plain, rtol=1e-6) == same


class Recorded(RenyiPufferfishLaplace):
    """Keeps what it was given and what it released."""

    log = ()

    def transform(self, X):
        released = super().transform(X)
        type(self).log += ((np.asarray(X), np.asarray(released)),)
        return released


def test_a_seed_of_an_audit_repeats_the_draws_and_not_the_noise(monkeypatch):
    rows = people()[["age", "sex"]]
    noise = Recorded(secret="sex").fit(rows)
    runs = []
    for seed in (0, 0, None):
        monkeypatch.setattr(Recorded, "log", ())
        audit_estimator(noise, rows, n_samples=200, random_state=seed)
        runs.append(
            [np.concatenate([call[i].ravel() for call in Recorded.log]) for i in (0, 1)]
        )
    (drawn, released), (again, fresh), (other, _) = runs
    assert (drawn == again).all()
    assert (released != fresh).mean() > 0.99
    assert not (drawn == other).all()


def test_each_score_releases_the_rows_once(monkeypatch):
    rows = pd.concat([people()[["age", "sex"]]] * 2, ignore_index=True)
    monkeypatch.setattr(Recorded, "log", ())
    scoring = {"r2": "r2", "secrecy": make_audit_scorer(secret="sex")}
    model = make_pipeline(Recorded(secret="sex"), DummyRegressor())
    cross_validate(model, rows, rows["age"], cv=2, scoring=scoring)
    # In each fold: the training rows, and the others for either score.
    assert [len(given) for given, _ in Recorded.log] == [200] * 6


class Off(Laplace):
    """Laplace noise by another name and of another size than it states."""

    name = "off"
    factor, end = 0.95, np.inf

    def perturb(self, values, *, scale, bits, out=None):
        def sampler(size, t, bits):
            drawn = rounded_laplace(size, int(self.factor * t), bits)
            return np.clip(drawn, *(int(min(self.end, 1e3) * t) * np.array([-1, 1])))

        return release_on_grid(values, scale, sampler, bits, out)


class OffGaussian(Gaussian):
    """Gaussian noise by another name and of another size than it states."""

    name = "off too"
    factor, end = 0.95, np.inf

    def perturb(self, values, *, scale, bits, out=None):
        def sampler(size, t, bits):
            drawn = discrete_gaussian(size, int(self.factor * t), bits)
            return np.clip(drawn, *(int(min(self.end, 1e3) * t) * np.array([-1, 1])))

        return release_on_grid(values, scale, sampler, bits, out)


@pytest.mark.parametrize("law", [Off, OffGaussian])
def test_a_check_of_a_law_tells_what_the_page_says(law):
    few = {"alphas": [2], "shifts": [1]}
    for factor in (0.95, 1.05):
        wrong = type("Wrong", (law,), {"factor": factor})
        with pytest.raises(LawError, match=r"of 262144 draws at scale 1[, ]"):
            check_law(wrong(), **few)
    # Some hundred draws should lie beyond the end.
    right = stats.norm if law is OffGaussian else stats.laplace
    end = right.isf(110 / 2**18)
    short = type("Short", (law,), {"factor": 1.0, "end": end})
    with pytest.raises(LawError, match="262144 draws at scale 1, 0 lie beyond"):
        check_law(short(), **few)


def test_a_check_of_a_law_draws_as_often_as_the_page_says():
    drawn = []

    class Counting(Off):
        factor = 1.0

        def perturb(self, values, *, scale, bits, out=None):
            drawn.append((len(values), scale))
            return super().perturb(values, scale=scale, bits=bits, out=out)

    check_law(Counting(), alphas=[2], shifts=[1])
    assert len({scale for size, scale in drawn if size == 2**18}) == 4


# --- figures in prose -------------------------------------------------------------


def test_what_the_pages_say_of_the_diabetes_table():
    data = load_diabetes(as_frame=True, scaled=False).frame
    assert len(data) == 442
    assert "442 patients" in PAGES["docs/index.md"]
    # "a value from 18 to 20.4 is nearly four times as likely for one sex"
    low = data["bmi"].between(18, 20.4).groupby(data["sex"]).mean()
    assert 3.7 < low.max() / low.min() < 4
    # "the largest [shift] is four times the mean"
    display = CouplingDisplay.from_frame(data, secret="sex", column="bmi")
    assert 3.9 < display.largest_shift / display.mean_shift < 4.2


def test_what_the_page_of_estimates_says_of_ages():
    path = shared("data", "adult.data")
    ages = pd.read_csv(path, usecols=["age"])["age"].to_numpy(float)
    # Of y = x + N, N of scale b and x > 0: P(y < 0) = e^{-x/b} / 2, and what clipping
    # at 0 adds to the mean is E max(-y, 0) = b e^{-x/b} / 2.
    below = np.exp(-ages / 20) / 2
    said = re.sub(r"\s+", " ", PAGES["docs/guide/estimates.md"])
    assert f"puts {100 * below.mean():.1f} % of them below 0" in said
    assert f"the mean by +{20 * below.mean():.1f} years" in said
