"""Promises for the population, from simulated truths to the guarantee."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from core_support import SHIFT_RULES
from paths import shared
from population_support import CASES, ERROR, needed, settings, simulate
from scipy import stats

from skpuffer import (
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    _prior_models,
    compare_mechanisms,
)
from skpuffer.exceptions import (
    ExcessiveNoiseWarning,
    ParameterError,
    SkippedPairWarning,
    SmallGroupWarning,
)

LAWS = [RenyiPufferfishLaplace, RenyiPufferfishGaussian, RenyiPufferfishExponential]
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    age = rng.integers(20, 60, n) + 3 * (sex == "M")
    return pd.DataFrame(
        {"age": age, "bmi": rng.normal(25, 4, n).clip(10, 60), "sex": sex}
    )


def population(law=RenyiPufferfishLaplace, **parameters):
    chosen = {"secret": "sex", "prior_model": "population", "bounds": (0, 100)}
    return law(**{**chosen, **parameters})


# --- the truth, over many samples ---------------------------------------------------


def check(name, n, samples, **options):
    # The promise is 5 %; one in 10,000 sound implementations would fail this.
    most = stats.binom.isf(1e-4, samples, ERROR)
    outcome = simulate(CASES[name], n, samples, seed=n, scales=False, **options)
    assert outcome.bands.sum() <= most
    assert outcome.excess.sum() <= most
    assert outcome.condition.sum() <= most


@pytest.mark.parametrize("n", [50, 300])
@pytest.mark.parametrize("name", CASES)
def test_the_truth_is_covered(name, n):
    check(name, n, 15 if name.startswith("four") else 40)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 300, 3000])
@pytest.mark.parametrize("name", CASES)
def test_the_truth_is_covered_in_two_thousand_samples(name, n):
    check(name, n, 2000)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("rule", SHIFT_RULES)
def test_every_rule_asks_for_what_the_truth_needs(law, rule):
    check("counts", 300, 40, law=law, rule=rule)


def test_the_sample_alone_would_not_do():
    # The tests above have power: for the fitted rows the scale is often too small.
    case = CASES["rare, far"]
    outcome = simulate(case, 300, 40, seed=5)
    truth = needed(case, settings("laplace", "transport"))
    assert (outcome.scale_sample < 0.9 * truth).mean() > 0.3
    assert (outcome.scale > truth).all()
    assert (outcome.scale_bands < outcome.scale_published).all()


def test_adult_age_pays_less_than_the_published_bands():
    adult = pd.read_csv(shared("data", "adult.data"), skipinitialspace=True)
    noise = RenyiPufferfishLaplace(
        alpha=2, epsilon=0.5, prior_model="population", bounds=(17, 90)
    ).fit(adult[["age"]], secret=adult["sex"])
    # 3.28 for the sample alone, 5.84 for 200 order statistics and the union bound.
    assert 3.28 < noise.scale_[0] < 4.25


@pytest.mark.parametrize(
    ("law", "rule", "alpha", "sizes", "with_means"),
    [
        ("laplace", "transport", 2.0, (150, 150, 150), 3),
        ("laplace", "transport", 2.0, (150, 99, 100), 1),
        ("laplace", "transport", 2.0, (150, 99, 99), 0),
        ("laplace", "w_inf", 2.0, (150, 150, 150), 0),
        ("laplace", "transport", math.inf, (150, 150, 150), 0),
        ("gaussian", "closed_form", 2.0, (150, 150, 150), 3),
    ],
)
def test_the_errors_add_up(monkeypatch, law, rule, alpha, sizes, with_means):
    spent = {}

    def record(first, second, *, low, high, beta_first, beta_second, beta_pair):
        spent[id(first)], spent[id(second)] = beta_first, beta_second
        spent[id(first), id(second)] = beta_pair
        assert (low, high) == (0.0, 9.0)
        return honest(
            first,
            second,
            low=low,
            high=high,
            beta_first=beta_first,
            beta_second=beta_second,
            beta_pair=beta_pair,
        )

    honest = _prior_models.population_bound
    monkeypatch.setattr(_prior_models, "population_bound", record)
    frame = pd.DataFrame(
        {"x": np.arange(sum(sizes)) % 10, "s": np.repeat(["a", "b", "c"], sizes)}
    )
    estimator = {"laplace": LAWS[0], "gaussian": LAWS[1]}[law]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        population(
            estimator, alpha=alpha, calibration=rule, bounds=(0, 9), secret="s"
        ).fit(frame)
    assert len(spent) == 6
    assert sum(spent.values()) == pytest.approx(0.05, rel=1e-9)
    assert sum(isinstance(key, tuple) and e > 0 for key, e in spent.items()) == (
        with_means
    )


# --- the estimator ------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("rule", SHIFT_RULES)
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
def test_more_noise_than_the_sample_and_no_more_than_the_bounds(law, rule):
    frame = people()[["age", "sex"]]
    scale = [
        law(secret="sex", bounds=(0, 100), calibration=rule, prior_model=model)
        .fit(frame)
        .scale_[0]
        for model in ("empirical", "population", "bounded")
    ]
    assert scale[0] < scale[1] < scale[2]


def test_the_guarantee_says_what_it_holds_for():
    frame = people()[["age", "sex"]]
    guarantee = population(confidence=0.9).fit(frame).guarantee_
    assert guarantee.confidence == 0.9
    assert guarantee.prior_model == "population"
    assert (
        "for the population, with confidence 90 % over the sample, for rows outside it "
        "on the declared bounds (age in [0, 100]);"
    ) in str(guarantee)
    assert guarantee.to_dict()["confidence"] == 0.9
    for model in ("empirical", "bounded"):
        other = population(prior_model=model, alpha=20, epsilon=5).fit(frame)
        assert other.guarantee_.confidence is None
        assert "confidence" not in str(other.guarantee_)


@quiet
def test_priors_are_populations_of_their_own():
    frame = people(900).assign(site=np.arange(900) % 3)[["age", "sex", "site"]]
    whole = population().fit(frame[["age", "sex"]])
    each = population(prior="site").fit(frame)
    # Six groups of 150 know less than two of 450.
    assert each.scale_[0] > whole.scale_[0]
    assert "for each of the 3 populations (0, 1, 2), with confidence" in str(
        each.guarantee_
    )
    groups = [(prior, sex) for prior, sex, _ in each.guarantee_.group_sizes]
    assert groups == list(itertools.product(range(3), "FM"))


def test_more_confidence_needs_more_noise():
    frame = people()[["age", "sex"]]
    scale = [
        population(confidence=c, epsilon=2).fit(frame).scale_[0]
        for c in (0.5, 0.9, 0.99, 1 - 1e-9)
    ]
    assert scale == sorted(scale)
    assert len(set(scale)) == 4


@quiet
def test_several_columns_share_the_error():
    frame = people()
    both = population(scope="column", confidence=0.9).fit(frame)
    for column in ("age", "bmi"):
        alone = population(confidence=0.95).fit(frame[[column, "sex"]])
        position = list(both.feature_names_in_).index(column)
        assert both.scale_[position] == pytest.approx(alone.scale_[0], rel=1e-12)
    assert "Each released column alone (age; bmi)" in str(both.guarantee_)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
@pytest.mark.parametrize("ages", [[30, 40], [30, 30], [0, 0], [100, 100], [0, 100]])
def test_identical_samples_are_no_reason_for_no_noise(law, ages):
    frame = pd.DataFrame({"age": ages * 60, "sex": ["F", "F", "M", "M"] * 30})
    noise = population(law).fit(frame)
    assert noise.scale_[0] > 0
    assert (noise.transform(frame)["age"] != frame["age"]).any()


def test_small_groups_and_missing_pairs_are_named():
    frame = people(300)[["age", "sex"]].assign(site="a")
    frame.loc[:6, ["sex", "site"]] = ["F", "b"]
    noise = population(prior="site", epsilon=9)
    with (
        pytest.warns(SmallGroupWarning, match=r"b: F \(7 rows\).*noise covers"),
        pytest.warns(SkippedPairWarning, match="b: F – M"),
    ):
        noise.fit(frame)


def test_values_outside_the_bounds_are_clipped_or_refused():
    frame = people()[["age", "sex"]]
    narrow = population(bounds=(25, 55)).fit(frame)
    clipped = population(bounds=(25, 55)).fit(frame.assign(age=frame.age.clip(25, 55)))
    assert narrow.scale_ == clipped.scale_
    with pytest.raises(ValueError, match="outside its bounds"):
        population(bounds=(25, 55), out_of_bounds="error").fit(frame)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"calibration": "exact"}, "calibration='exact' is right for exactly the"),
        ({"bounds": None}, "prior_model='population' needs bounds"),
        ({"bounds": {"age": (0, 9)}}, "declares no range for bmi"),
        ({"scope": "joint"}, "one column at a time and X has 2 .*scope='column'"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"confidence": 0}, "confidence=0"),
    ],
)
def test_what_a_population_does_not_go_with(parameters, message):
    noise = population(**{"scope": "column", **parameters})
    with pytest.raises(ParameterError, match=message):
        noise.fit(people())


def test_weights_are_no_draw_of_rows():
    frame = people()[["age", "sex"]]
    for weight in (np.ones(len(frame)), np.arange(len(frame)) + 1.0):
        with pytest.raises(ParameterError, match="no sample_weight"):
            population().fit(frame, sample_weight=weight)


@quiet
def test_no_pair_under_any_prior():
    frame = people(200)[["age", "sex"]]
    for model in ("population", "empirical"):
        noise = population(prior_model=model, prior="site")
        with pytest.raises(ParameterError, match="no secret pair occurs"):
            noise.fit(frame.assign(site=frame["sex"]))


# --- the comparison -----------------------------------------------------------------


def test_the_comparison_leaves_out_what_does_not_go_together():
    table = compare_mechanisms(
        people()[["age", "sex"]],
        secret="sex",
        bounds=(0, 100),
        epsilon=0.2,
        prior_model="population",
        calibrations=("transport", "exact", "w_inf"),
    )
    assert table["calibration"].tolist() == ["transport", "w_inf"] * 2
    assert (table["scale"] > 0).all()
    assert math.isfinite(table["scale"].max())


def test_noise_beyond_the_spread_is_still_named():
    with pytest.warns(ExcessiveNoiseWarning):
        population(epsilon=0.01).fit(people()[["age", "sex"]])
