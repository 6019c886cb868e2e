"""What adversaries find out: each attack of `benchmarks/attacks.py`, held to its outcome.

Shares of right guesses have the levels of binomial tests: a chance of one in a million
that a guess by chance is as good as the limit.
"""

import os
import pickle
import re
import traceback
import warnings
from pathlib import Path

import attacks
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import skpuffer
from skpuffer import (
    AdditiveRelease,
    ConditionalCounts,
    JointRelease,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishLaplace,
    held_out_divergence,
)
from skpuffer.audit import (
    KernelRenyiAuditor,
    RunningAudit,
    audit_estimator,
    make_audit_scorer,
)
from skpuffer.displays import AuditDisplay, PrivacyProfileDisplay, ReleaseDisplay
from skpuffer.laws import Laplace, SeededBits, SystemBits, check_law, rounded_laplace
from skpuffer.metrics import KernelMoments, kernel_renyi_divergence

pytestmark = pytest.mark.filterwarnings(
    "ignore::skpuffer.exceptions.ExcessiveNoiseWarning"
)

ROOT = Path(__file__).parents[1]
MECHANISMS = attacks.MECHANISMS.values()
LEVEL = 1e-6


def by_chance(guesses, share=0.5):
    """Return the share of right guesses that chance reaches once in a million."""
    return stats.binom.isf(LEVEL, guesses, share) / guesses


def test_one_section_runs_every_attack():
    functions = {
        value
        for name, value in vars(attacks).items()
        if callable(value)
        and getattr(value, "__doc__", None)
        and "ours, " in value.__doc__
    }
    assert functions <= {attack for _, attack, _ in attacks.ATTACKS}


def test_both_pages_tell_the_same_figures():
    short, whole = (
        set(re.findall(r"(?<![\d.])0\.\d\d+", (ROOT / page).read_text("utf-8")))
        for page in ("SECURITY.md", "docs/guide/attacks.md")
    )
    assert len(short) >= 5
    assert short <= whole


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_both_values_can_have_every_output(mechanism):
    ours, naive = attacks.support(mechanism)
    assert ours == 0
    assert naive > 0.3


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_low_bits_tell_nothing(mechanism):
    rows = 100_000
    ours, naive = attacks.low_bits(mechanism, 2 * rows)
    assert ours < by_chance(rows)
    assert naive == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_pickle_without_a_seed_recovers_nothing(mechanism):
    ours, seeded = attacks.stolen_pickle(mechanism)
    assert ours < 0.02
    assert seeded == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_repeated_releases_average_the_noise_away_as_documented(mechanism):
    once, often = attacks.averaging(mechanism, rows=2000)
    # (2, 1)-Rényi privacy of the two values allows a guess to be right no more often
    # than this: binary divergence of order 2 of its two error rates.
    share = np.linspace(0.5, 1, 100_001)[:-1]
    divergence = np.log(share**2 / (1 - share) + (1 - share) ** 2 / share)
    allowed = share[divergence <= 1].max()
    assert once < by_chance(2000, allowed)
    assert often > 0.99


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_two_releases_share_no_noise(mechanism):
    ours, seeded = attacks.differencing(mechanism, repeats=150)
    # The newcomer's own release tells what it may; those of the others hide more.
    assert ours < by_chance(150, 0.55)
    assert seeded == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_bounded_prior_has_a_scale_that_tells_of_no_row(mechanism):
    bounded, empirical = attacks.extreme_member(mechanism)
    assert bounded < by_chance(60)
    assert empirical == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_order_of_rows_is_released_as_it_is(mechanism):
    shuffled, in_order = attacks.order_of_rows(mechanism)
    assert shuffled < by_chance(400)
    assert in_order == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_forked_workers_share_no_noise(mechanism):
    ours, naive = attacks.forks(mechanism)
    assert ours < 0.02
    assert naive == 1


def test_no_fitted_value_stays_in_memory():
    after, within = attacks.leftovers(RenyiPufferfishLaplace)
    assert after == 0
    assert within > 0


# --- messages ---------------------------------------------------------------------

VALUE, WORD = 77123.5, "Rumpelstilzchen"
SECRET = np.arange(40) % 2
COLUMN = np.full((40, 1), VALUE)
FRAME = pd.DataFrame({"x": np.arange(40) + VALUE, "s": SECRET})
WORDS = pd.DataFrame({"x": [WORD] * 40, "s": SECRET})


def additive(**parameters):
    return RenyiPufferfishLaplace(secret="s", **parameters)


def of_arrays():
    return RenyiPufferfishLaplace(secret_from_y=True)


def by_itself():
    return of_arrays().fit(np.arange(40.0)[:, np.newaxis], SECRET)


def counted(counts):
    table = pd.DataFrame({"x": [VALUE] * 3, "s": [0, 1, 1], "n": counts})
    return ConditionalCounts.from_counts(table, secret="s", count="n")


# What stands where a parameter belongs, which all of them refuse.
DATA = {
    "a frame": FRAME,
    "a series": FRAME["x"],
    "an array": COLUMN,
    "a list": FRAME["x"].tolist(),
    "a dict": FRAME["x"].to_dict(),
    "a set": set(FRAME["x"]),
    "a description": FRAME.describe(),
    "rows": [(VALUE, VALUE)] * 40,
    "words": [WORD] * 40,
    "distinct words": [f"{WORD} {i}" for i in range(40)],
    "a long text": f"{WORD} " * 20,
}
OF_RELEASE = (
    "alpha",
    "epsilon",
    "delta",
    "secret_pairs",
    "prior_model",
    "confidence",
    "bounds",
    "out_of_bounds",
    "calibration",
    "scope",
    "column_weights",
    "n_releases",
    "min_group_size",
    "clip_output",
    "secret_from_y",
    "random_state",
    "n_jobs",
    "verbose",
    "secret",
    "prior",
)
OF_AUDITOR = (
    "alpha",
    "epsilon",
    "delta",
    "confidence",
    "claim",
    "metric",
    "gamma",
    "scorers",
    "n_components",
    "random_state",
    "symmetric",
)


def mistaken(data):
    """Return fits that are given data for each of their parameters."""
    for name in OF_RELEASE:
        yield lambda name=name: additive().set_params(**{name: data}).fit(FRAME)
    for name in ("categories", "metric", "unknown", "alpha"):
        noise = RenyiPufferfishCategorical(secret="s")
        yield lambda name=name, noise=noise: noise.set_params(**{name: data}).fit(WORDS)
    yield lambda: JointRelease(secret="s", categorical=data).fit(FRAME)
    for name in OF_AUDITOR:
        judge = KernelRenyiAuditor(epsilon=1)
        yield lambda name=name, judge=judge: judge.set_params(**{name: data}).fit(
            np.arange(40.0)[:, np.newaxis], COLUMN
        )
    for name in ("laws", "scopes", "calibrations", "alpha", "power"):
        yield lambda name=name: skpuffer.compare_mechanisms(
            FRAME, secret="s", **{name: data}
        )
    yield lambda: ConditionalCounts(secret="s", grid=data).update(FRAME)
    yield lambda: RenyiPufferfishExponential(secret="s", power=data).fit(FRAME)
    yield lambda: check_law(data)
    yield lambda: additive_of(data)(secret="s").fit(FRAME)
    yield lambda: audit_estimator(data, by_itself())
    yield lambda: audit_estimator(by_itself(), FRAME, auditor=data)
    yield lambda: make_audit_scorer(data)
    yield lambda: held_out_divergence(data, by_itself())
    yield lambda: ReleaseDisplay.from_estimator(data, by_itself())
    yield lambda: PrivacyProfileDisplay.from_estimator(data)


def additive_of(law):
    return type("Own", (AdditiveRelease,), {"law": law})


REFUSALS = {
    "epsilon of rows": lambda: additive(epsilon=[[VALUE, 1.0]]).fit(FRAME),
    "bounds of rows": lambda: additive(bounds=[[VALUE, 1.0], [VALUE, 0.0]]).fit(FRAME),
    "reg of text": lambda: KernelRenyiAuditor(reg=[WORD] * 40).fit(COLUMN, COLUMN),
    "reg of rows": lambda: KernelRenyiAuditor(reg=-COLUMN).fit(COLUMN, COLUMN),
    "alphas of text": lambda: check_law(Laplace(), alphas=[WORD] * 40),
    "bounds of series": lambda: additive(bounds=(FRAME["x"], FRAME["x"])).fit(FRAME),
    "bounds of a column": lambda: additive(bounds={"x": FRAME["x"]}).fit(FRAME),
    "a weight of a column": lambda: additive(column_weights={"x": FRAME["x"]}).fit(
        FRAME
    ),
    "categories of a column": lambda: RenyiPufferfishCategorical(
        secret="s", categories={"x": [WORD] * 40}
    ).fit(WORDS),
    "one dimension": lambda: of_arrays().fit(COLUMN[:, 0], SECRET),
    "a scalar": lambda: of_arrays().fit(VALUE, SECRET),
    "three dimensions": lambda: of_arrays().fit(COLUMN[:, :, np.newaxis], SECRET),
    "released in one dimension": lambda: by_itself().transform(COLUMN[:, 0]),
    "complex": lambda: of_arrays().fit(COLUMN * 1j, SECRET),
    "complex released": lambda: by_itself().transform(COLUMN * 1j),
    "too many columns": lambda: by_itself().transform(np.hstack([COLUMN, COLUMN])),
    "text in a list": lambda: of_arrays().fit([[WORD]] * 40, SECRET),
    "text in an array": lambda: of_arrays().fit(np.array([[WORD]] * 40), SECRET),
    "text in a frame": lambda: additive().fit(WORDS),
    "text released": lambda: additive().fit(FRAME).transform(WORDS),
    "ragged": lambda: of_arrays().fit([[VALUE], [VALUE, VALUE]] * 20, SECRET),
    "missing": lambda: additive().fit(FRAME.assign(x=FRAME["x"].where(SECRET > 0))),
    "too far": lambda: by_itself().transform(COLUMN * 1e20),
    "out of bounds": lambda: additive(bounds=(0, 1), out_of_bounds="error").fit(FRAME),
    "dates": lambda: of_arrays().fit(np.full((40, 1), "2077-12-03", "M8[D]"), SECRET),
    "secrets too many": lambda: RenyiPufferfishLaplace().fit(
        np.arange(100.0)[:, np.newaxis], secret=VALUE + np.arange(100)
    ),
    "secrets too few": lambda: RenyiPufferfishLaplace().fit(COLUMN, secret=COLUMN[:39]),
    "negative weights": lambda: additive().fit(FRAME, sample_weight=-COLUMN[:, 0]),
    "weights of text": lambda: additive().fit(FRAME, sample_weight=[WORD] * 40),
    "a new category": lambda: (
        RenyiPufferfishCategorical(secret="s")
        .fit(WORDS.assign(x=["a", "b"] * 20))
        .transform(WORDS)
    ),
    "categories in one dimension": lambda: RenyiPufferfishCategorical().fit(
        np.array([WORD] * 40), secret=SECRET
    ),
    "a joint release of lists": lambda: JointRelease(secret="s").fit(
        WORDS.assign(x=[[WORD]] * 40)
    ),
    "negative counts": lambda: counted([1, -2, 3]),
    "broken counts": lambda: counted([1, 2.5, 3]),
    "held out": lambda: held_out_divergence(by_itself(), COLUMN[:, 0], SECRET),
    "audited": lambda: KernelRenyiAuditor(epsilon=1).fit(COLUMN[:, 0], COLUMN),
    "audited text": lambda: KernelRenyiAuditor(epsilon=1).fit([[WORD]] * 40, COLUMN),
    "audited while it runs": lambda: RunningAudit(epsilon=1).partial_fit(
        COLUMN[:, 0], COLUMN
    ),
    "compared": lambda: kernel_renyi_divergence(COLUMN * 1j, COLUMN),
}


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.CategoriesFromDataWarning")
@pytest.mark.parametrize("refusal", REFUSALS)
def test_refusals_show_no_value(refusal):
    show_no_value(REFUSALS[refusal])


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.CategoriesFromDataWarning")
@pytest.mark.parametrize("data", DATA)
def test_data_given_for_a_parameter_are_not_shown(data):
    for fit in mistaken(DATA[data]):
        show_no_value(fit)


def of_many_numbers(given):
    """Yield calls whose parameter may be many numbers, or one where data are none."""
    rows = np.random.default_rng(0).normal(size=(2, 60, 1))
    judge, noise = KernelRenyiAuditor().fit(*rows), by_itself()
    moments = KernelMoments(gamma=1.0).partial_fit(rows[0])
    yield lambda: kernel_renyi_divergence(*rows, alpha=given)
    yield lambda: kernel_renyi_divergence(*rows, reg=given)
    yield lambda: moments.divergence(moments, alpha=given)
    yield lambda: moments.divergence(moments, reg=given)
    yield lambda: judge.epsilon_lower(delta=given)
    yield lambda: judge.epsilon_lower(alpha=given)
    yield lambda: noise.privacy_profile(given)
    yield lambda: RunningAudit(epsilon=1, epsilons=given).partial_fit(*rows)
    yield lambda: KernelRenyiAuditor(reg=given).fit(*rows)
    yield lambda: AuditDisplay.from_estimator(judge, deltas=given)
    yield lambda: AuditDisplay.from_estimator(judge, alphas=given)
    yield lambda: AuditDisplay.from_samples(judge, *rows, sizes=given)
    yield lambda: PrivacyProfileDisplay.from_profile(noise.profile_, promised=given)
    yield lambda: rounded_laplace(given, 1000, SystemBits())
    yield lambda: SeededBits(given, 0)


def as_rows(values):
    return [list(values)]


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, as_rows])
@pytest.mark.parametrize("values", [[-VALUE] * 40, [WORD] * 40], ids=["far", "words"])
def test_no_single_one_of_many_numbers_is_shown(kind, values):
    for call in of_many_numbers(kind(values)):
        show_no_value(call)


def test_one_of_a_few_numbers_is_shown():
    rows = np.arange(40.0)[:, np.newaxis]
    with pytest.raises(ValueError, match=r"^alpha=-0.25 must be at least 1/2"):
        kernel_renyi_divergence(rows, rows + 1, alpha=[2] * 9 + [-0.25])
    with pytest.raises(ValueError, match=r"^alpha=a float must be at least 1/2"):
        kernel_renyi_divergence(rows, rows + 1, alpha=[2] * 10 + [-0.25])
    with pytest.raises(ValueError, match=r"^alphas must lie in \(1, inf\], got -0.25$"):
        by_itself().privacy_profile([2, -0.25])
    with pytest.raises(ValueError, match=r"^epsilons=-0.25 must be a number from 0"):
        RunningAudit(epsilon=1, epsilons=[2, -0.25]).partial_fit(rows, rows)


def show_no_value(fit):
    with pytest.raises((ValueError, TypeError)) as caught:
        fit()
    shown = "".join(traceback.format_exception_only(caught.value))
    chain = caught.value
    while chain.__cause__ or (chain.__context__ and not chain.__suppress_context__):
        chain = chain.__cause__ or chain.__context__
        shown += str(chain)
    for planted in ("77123", "7.7", WORD, "2077-12"):
        assert planted not in shown


def test_what_describes_a_fit_shows_no_value(capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "s": np.arange(300) % 2})
    frame.loc[0, ["x", "s"]] = VALUE, 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        noise = additive(verbose=1).fit(frame)
        table = skpuffer.compare_mechanisms(frame, secret="s")
    described = [
        capsys.readouterr().out,
        repr(noise),
        noise._repr_html_(),
        str(noise.guarantee_),
        noise.guarantee_.to_json(),
        str(noise.report_),
        noise.report_._repr_html_(),
        repr(noise.profile_),
        table.to_string(),
    ]
    texts = [*described, *(str(warning.message) for warning in caught)]
    assert all(texts)
    counts = f"0 of {len(REFUSALS)} refusals, {len(described)} texts"
    for page in ("SECURITY.md", "docs/guide/attacks.md"):
        assert counts in (ROOT / page).read_text("utf-8")
    for text in texts:
        assert "77123" not in text
        assert f"{frame.loc[1, 'x']:.6}" not in text


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_group_of_one_is_told_of_and_its_value_is_not_kept(mechanism):
    frame = attacks.two_points(60)
    frame.loc[0, ["x", "s"]] = [VALUE, 2]
    with pytest.warns(skpuffer.exceptions.SmallGroupWarning, match="2"):
        noise = mechanism(epsilon=0.7, secret="s").fit(frame)
    assert np.float64(VALUE).tobytes() not in pickle.dumps(noise)


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_that_a_value_is_missing_is_no_message(missing):
    # Who could release rows with missing values would release which they are.
    values = pd.Series([missing, *FRAME["x"].iloc[1:]], dtype=object)
    holed = FRAME.assign(x=values)
    for kind in (object, "Float64"):
        with pytest.raises(ValueError, match=r"'x' is missing .* in 1 of 40 rows"):
            additive().fit(holed.astype({"x": kind}))
        with pytest.raises(ValueError, match=r"'x' is missing .* in 1 of 40 rows"):
            additive().fit(FRAME).transform(holed.astype({"x": kind}))
