"""What a user relies on: the promise, its limits, the reports and the errors."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skpuffer import (
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    compare_mechanisms,
)
from skpuffer.core import plans
from skpuffer.core.calibration import RULES
from skpuffer.core.grid import grid_step
from skpuffer.exceptions import (
    ExcessiveNoiseWarning,
    ParameterError,
    SkippedPairWarning,
    SmallGroupWarning,
    TransportPlanError,
    ZeroNoiseWarning,
)

LAWS = [RenyiPufferfishLaplace, RenyiPufferfishGaussian, RenyiPufferfishExponential]
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    age = rng.integers(20, 60, n) + 3 * (sex == "M")
    return pd.DataFrame(
        {"age": age, "bmi": rng.normal(25, 4, n) - (sex == "F"), "sex": sex}
    )


def xor(copies=100):
    rows = [[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]] * copies
    return pd.DataFrame(rows, columns=["a", "b", "secret"])


# --- several columns ------------------------------------------------------------


def test_joint_release_of_xor_tells_the_groups_apart_no_better_than_promised():
    # A set A has P(A | s) − P(A | s') ≤ tanh(ε/2) under ε-Pufferfish privacy, so that
    # no classifier of balanced groups is right more often than (1 + tanh(ε/2)) / 2.
    # 40,000 held-out rows: the level is five standard errors.
    frame = xor()
    noise = RenyiPufferfishLaplace(alpha=math.inf, epsilon=1, secret="secret").fit(
        frame
    )
    assert (noise.scale_ > 0).all()
    many = pd.concat([frame] * 200, ignore_index=True)
    released = noise.transform(many).to_numpy()
    train = np.random.default_rng(0).random(len(many)) < 0.5
    features = np.column_stack([released, np.prod(released - 0.5, axis=1)])
    model = LogisticRegression().fit(features[train], many["secret"][train])
    accuracy = model.score(features[~train], many["secret"][~train])
    best = (1 + math.tanh(0.5)) / 2
    assert accuracy < best + 5 * math.sqrt(0.25 / (~train).sum())
    # The test has power: the rows themselves are told apart without a mistake.
    raw = many[["a", "b"]].to_numpy()
    features = np.column_stack([raw, np.prod(raw - 0.5, axis=1)])
    model = LogisticRegression().fit(features[train], many["secret"][train])
    assert model.score(features[~train], many["secret"][~train]) == 1.0


@quiet
def test_column_scope_says_that_it_does_not_cover_the_row():
    noise = RenyiPufferfishLaplace(secret="secret", scope="column").fit(xor())
    assert (noise.scale_ == 0).all()
    text = str(noise.guarantee_)
    assert "Each released column alone (a; b)" in text
    assert "Not covered: the columns of a row together" in text
    assert "Each released row (a, b)" in str(
        RenyiPufferfishLaplace(secret="secret").fit(xor()).guarantee_
    )


@quiet
@pytest.mark.parametrize("mechanism", LAWS)
def test_column_scope_calibrates_each_column_as_if_alone(mechanism):
    frame = people()
    both = mechanism(secret="sex", scope="column").fit(frame)
    for column in ("age", "bmi"):
        alone = mechanism(secret="sex").fit(frame[[column, "sex"]])
        position = list(both.feature_names_in_).index(column)
        assert both.scale_[position] == alone.scale_[0]


def test_column_weights_set_the_proportions():
    frame = people()
    for weights in ([3.0, 1.0], {"age": 3.0, "bmi": 1.0}):
        scale = (
            RenyiPufferfishLaplace(secret="sex", column_weights=weights)
            .fit(frame)
            .scale_
        )
        assert scale[0] / scale[1] == pytest.approx(3, rel=1e-5)
    bounds = {"age": (0, 100), "bmi": (0, 50)}
    ranged = RenyiPufferfishLaplace(secret="sex", column_weights="range", bounds=bounds)
    scale = ranged.fit(frame).scale_
    assert scale[0] / scale[1] == pytest.approx(2, rel=1e-5)
    scale = RenyiPufferfishLaplace(secret="sex").fit(frame).scale_
    assert scale[0] / scale[1] == pytest.approx(
        frame["age"].std() / frame["bmi"].std(), rel=1e-5
    )


@pytest.mark.parametrize(
    "broken", ["missing", "negative", "not finite", "iteration limit"]
)
def test_a_broken_transport_plan_raises(monkeypatch, broken):
    import ot

    honest = ot.emd

    def emd(a, b, M, *args, **kwargs):
        plan, log = honest(a, b, M, *args, **{**kwargs, "log": True})
        if broken == "missing":
            plan = plan * (1 - 1e-6)
        elif broken == "negative":
            plan = plan - 1e-3
        elif broken == "not finite":
            plan = plan * np.nan
        else:
            log = {**log, "warning": "numItermax reached", "result_code": 3}
        return (plan, log) if kwargs.get("log") else plan

    monkeypatch.setattr(ot, "emd", emd)
    noise = RenyiPufferfishLaplace(secret="sex")
    with pytest.raises(TransportPlanError):
        noise.fit(people(60))
    assert not [name for name in vars(noise) if name.endswith("_")]
    assert plans.EXACT_LIMIT >= 2000


# --- invariance and limits ------------------------------------------------------


@quiet
@pytest.mark.parametrize("mechanism", LAWS)
@pytest.mark.parametrize("columns", [["age"], ["age", "bmi"]])
def test_scale_is_invariant_and_monotone(mechanism, columns):
    frame = people()[[*columns, "sex"]]
    scale = mechanism(alpha=3, epsilon=0.7, secret="sex").fit(frame).scale_
    moved = frame.assign(**{name: frame[name] + 1e9 for name in columns})
    np.testing.assert_allclose(
        mechanism(alpha=3, epsilon=0.7, secret="sex").fit(moved).scale_,
        scale,
        rtol=1e-5,
    )
    narrow = frame.astype(dict.fromkeys(columns, np.float32))
    np.testing.assert_allclose(
        mechanism(alpha=3, epsilon=0.7, secret="sex").fit(narrow).scale_,
        scale,
        rtol=1e-4,
    )
    shuffled = frame.sample(frac=1, random_state=1)
    assert (
        mechanism(alpha=3, epsilon=0.7, secret="sex").fit(shuffled).scale_ == scale
    ).all()
    before = scale
    for epsilon in (0.6, 0.3, 0.1, 0.03, 0.01):
        now = mechanism(alpha=3, epsilon=epsilon, secret="sex").fit(frame).scale_
        assert (now >= before * (1 - 1e-4)).all()
        before = now


def test_identical_groups_are_released_unchanged_with_warnings():
    frame = pd.DataFrame({"x": [1.0, 2.0, 2.0] * 60, "s": ["a", "b"] * 90})
    noise = RenyiPufferfishLaplace(secret="s")
    with pytest.warns(ZeroNoiseWarning, match=r"'x' \(the same for every secret pair"):
        noise.fit(frame)
    assert noise.scale_.tolist() == [0.0]
    with pytest.warns(ZeroNoiseWarning, match="'x'"):
        released = noise.transform(frame)
    pd.testing.assert_series_equal(released["x"], frame["x"])
    with pytest.warns(ZeroNoiseWarning, match="'x'"):
        noise.transform(frame)


def test_a_constant_column_is_left_out_of_a_joint_release():
    frame = people().assign(site=7.0)
    with pytest.warns(ZeroNoiseWarning, match=r"'site' \(constant"):
        noise = RenyiPufferfishLaplace(secret="sex").fit(frame)
    without = RenyiPufferfishLaplace(secret="sex").fit(people())
    scale = dict(zip(noise.feature_names_in_, noise.scale_, strict=True))
    assert scale["site"] == 0
    assert [scale["age"], scale["bmi"]] == without.scale_.tolist()


def test_one_secret_value_raises():
    with pytest.raises(ParameterError, match=r"single value, 'F'"):
        RenyiPufferfishLaplace(secret="sex").fit(people().assign(sex="F"))


def test_small_groups_are_named_with_their_size():
    frame = people(200)
    frame.loc[:2, "sex"] = "X"
    with pytest.warns(SmallGroupWarning, match=r"X \(3 rows\)"):
        RenyiPufferfishLaplace(secret="sex").fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallGroupWarning)
        RenyiPufferfishLaplace(secret="sex", min_group_size=3).fit(frame)
    frame.loc[1:2, "sex"] = "F"
    with pytest.warns(SmallGroupWarning, match=r"X \(1 row\)"):
        RenyiPufferfishLaplace(secret="sex").fit(frame)


# --- priors and bounds ----------------------------------------------------------


@quiet
@pytest.mark.parametrize("mechanism", LAWS)
def test_several_priors_take_the_largest_scale(mechanism):
    frame = people(600).assign(site=np.repeat(["N", "S", "W"], 200))
    frame = frame[["age", "sex", "site"]]
    noise = mechanism(secret="sex", prior="site").fit(frame)
    alone = [
        mechanism(secret="sex").fit(part[["age", "sex"]]).scale_[0]
        for _, part in frame.groupby("site")
    ]
    assert noise.scale_[0] == max(alone)
    assert "for each of the 3 fitted priors (N, S, W)" in str(noise.guarantee_)
    assert list(noise.feature_names_in_) == ["age"]
    given = mechanism(secret="sex").fit(frame[["age", "sex"]], prior=frame["site"])
    assert given.scale_[0] == noise.scale_[0]


@quiet
def test_a_pair_that_does_not_occur_under_a_prior_is_reported():
    frame = people(300).assign(site=np.repeat(["N", "S", "W"], 100))
    frame = frame[(frame["site"] != "S") | (frame["sex"] == "F")]
    noise = RenyiPufferfishLaplace(secret="sex", prior="site")
    with pytest.warns(SkippedPairWarning, match="S: F – M"):
        noise.fit(frame)
    assert noise.guarantee_.skipped == (("S", "F", "M"),)
    only = frame[frame["site"] == "S"].assign(site=lambda f: f["bmi"] > 25)
    only["sex"] = np.where(only["site"], "F", "M")
    with pytest.raises(ParameterError, match="no secret pair occurs under any prior"):
        RenyiPufferfishLaplace(secret="sex", prior="site").fit(only)


@pytest.mark.parametrize(
    ("mechanism", "alpha", "expected"),
    [
        (RenyiPufferfishLaplace, math.inf, 80 / 0.5),
        (RenyiPufferfishGaussian, 2, 80 * math.sqrt(2 / (2 * 0.5))),
    ],
)
@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
def test_bounded_prior_is_one_shift_of_the_whole_range(mechanism, alpha, expected):
    frame = people()[["age", "sex"]]
    for rule in ("w_inf", "transport"):
        noise = mechanism(
            alpha=alpha,
            epsilon=0.5,
            secret="sex",
            prior_model="bounded",
            bounds=(10, 90),
            calibration=rule,
        ).fit(frame)
        assert noise.scale_[0] == pytest.approx(expected, rel=2e-6)
        assert noise.scale_[0] >= expected * (1 - 1e-15)
    assert "every prior on the declared bounds (age in [10, 90])" in str(
        noise.guarantee_
    )


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
def test_bounded_prior_gives_noise_to_a_column_that_is_constant_in_the_sample():
    frame = people().assign(site=7.0)
    noise = RenyiPufferfishLaplace(
        alpha=math.inf,
        secret="sex",
        prior_model="bounded",
        bounds={"age": (0, 100), "bmi": (0, 60), "site": (0, 10)},
    ).fit(frame)
    assert (noise.scale_ > 0).all()
    # All ranges at once: the divergences add up to epsilon and no more.
    spent = sum(np.array([100, 60, 10]) / noise.scale_)
    assert 1 - 1e-5 < spent <= 1


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
def test_bounds_policy_in_fit_and_transform():
    frame = people()[["age", "sex"]]
    outlier = frame.copy()
    outlier.loc[0, "age"] = 500
    clipped = RenyiPufferfishLaplace(secret="sex", bounds=(20, 62))
    reference = RenyiPufferfishLaplace(secret="sex").fit(
        outlier.assign(age=outlier["age"].clip(20, 62))
    )
    assert clipped.fit(outlier).scale_ == reference.scale_
    far = pd.DataFrame({"age": np.full(1000, 1e6), "sex": "F"})
    assert (
        abs(clipped.transform(far)["age"].mean() - 62) < 6 * clipped.noise_std_[0] / 30
    )
    strict = RenyiPufferfishLaplace(
        secret="sex", bounds=(20, 62), out_of_bounds="error"
    )
    with pytest.raises(ValueError, match=r"'age' has 1 values outside its bounds"):
        strict.fit(outlier)
    strict.fit(frame)
    with pytest.raises(ValueError, match=r"'age' has 1000 values outside"):
        strict.transform(far)


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
def test_noise_is_unbiased_unless_the_output_is_clipped():
    frame = pd.DataFrame({"age": np.full(200_000, 21.0), "sex": ["F", "M"] * 100_000})
    frame.loc[:99, "age"] = 60.0
    noise = RenyiPufferfishLaplace(alpha=math.inf, secret="sex").fit(
        people()[["age", "sex"]]
    )
    mean_error = noise.noise_std_[0] / math.sqrt(len(frame))
    difference = noise.transform(frame)["age"] - frame["age"]
    assert abs(difference.mean()) < 5 * mean_error
    clip = RenyiPufferfishLaplace(
        alpha=math.inf, secret="sex", bounds=(20, 90), clip_output=True
    ).fit(people()[["age", "sex"]])
    released = clip.transform(frame)["age"]
    assert released.between(20, 90).all()
    assert released.mean() - frame["age"].mean() > 5 * mean_error


# --- guarantee, report, comparison ------------------------------------------------


def test_the_guarantee_reads_as_a_sentence_and_converts():
    guarantee = (
        RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex")
        .fit(people())
        .guarantee_
    )
    assert str(guarantee).startswith(
        "Each released row (age, bmi) is (4, 1)-Rényi Pufferfish private about sex "
        "(F, M) for the fitted prior; Laplace noise of scale "
    )
    assert guarantee.to_epsilon(guarantee.to_delta(3.0)) == pytest.approx(3.0)
    with pytest.raises(AttributeError):
        guarantee.epsilon = 0.1
    with pytest.raises(TypeError):
        guarantee + guarantee
    assert hash(guarantee) == hash(guarantee)


@quiet
def test_the_json_card(tmp_path):
    frame = people().assign(site=np.repeat([1, 2], 200))
    noise = RenyiPufferfishLaplace(
        alpha=math.inf,
        secret="sex",
        prior="site",
        bounds={"age": (0, 99), "bmi": (0, 99)},
    ).fit(frame)
    path = tmp_path / "card.json"
    text = noise.guarantee_.to_json(path)
    card = json.loads(path.read_text(encoding="utf-8"))
    assert card == json.loads(text)
    assert card["alpha"] == "inf"
    assert card["epsilon"] == 1.0
    assert card["pairs"] == [["F", "M"]]
    assert card["priors"] == [1, 2]
    assert card["scale"] == noise.scale_.tolist()
    assert {"prior": 1, "secret": "F", "rows": 100} in [
        {**size, "rows": 100} for size in card["group_sizes"]
    ]
    assert sum(size["rows"] for size in card["group_sizes"]) == len(frame)
    assert card["guarantee"] == str(noise.guarantee_)
    assert set(card["versions"]) >= {"skpuffer", "numpy", "scikit-learn"}
    assert card["bounds"] == [[0.0, 99.0], [0.0, 99.0]]


def test_the_report_compares_noise_with_spread():
    frame = people()
    noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(frame)
    table = noise.report_.to_frame()
    assert table.loc["bmi", "column_std"] == pytest.approx(frame["bmi"].std(ddof=0))
    assert table["noise_std"].tolist() == noise.noise_std_.tolist()
    assert table.loc["age", "noise_to_spread"] == pytest.approx(
        noise.noise_std_[0] / frame["age"].std(ddof=0)
    )
    assert table["worst_pair"].tolist() == ["F – M", "F – M"]
    assert str(noise.guarantee_)[:40] in str(noise.report_)
    html = noise.report_._repr_html_()
    assert "<table" in html
    assert "Pufferfish" in html
    assert (
        "&lt;"
        in RenyiPufferfishLaplace(secret="s<ex")
        .fit(frame.rename(columns={"sex": "s<ex"}))
        .report_._repr_html_()
    )


def test_the_worst_pair_is_the_farthest():
    groups = np.repeat(["a", "b", "c"], 50)
    values = np.tile(np.arange(50.0), 3) + np.repeat([0.0, 5.0, 30.0], 50)
    frame = pd.DataFrame({"x": values, "group": groups})
    noise = RenyiPufferfishLaplace(secret="group").fit(frame)
    assert noise.report_.worst_pair == ("a – c",)
    near = RenyiPufferfishLaplace(secret="group", secret_pairs=[("a", "b")]).fit(frame)
    assert near.scale_[0] < noise.scale_[0]
    text = str(near.guarantee_)
    assert "about group (the pairs a – b alone) for" in text
    assert "other pairs of secret values" in text
    assert not near.guarantee_.covers_all_pairs


def test_noise_beyond_three_spreads_warns_with_the_ratio():
    with pytest.warns(ExcessiveNoiseWarning, match=r"'age' is \d+\.?\d* times"):
        RenyiPufferfishLaplace(epsilon=0.01, secret="sex").fit(people()[["age", "sex"]])


def test_comparison_of_mechanisms():
    frame = people()
    table = compare_mechanisms(frame, secret="sex", alpha=3, epsilon=0.8)
    # The exact rule is left out of joint releases of several columns.
    assert len(table) == 2 * 2 * (2 * len(RULES) - 1)
    line = table.query(
        "law == 'gaussian' and scope == 'joint' and calibration == 'w_inf'"
    ).set_index("column")
    fitted = RenyiPufferfishGaussian(
        alpha=3, epsilon=0.8, secret="sex", calibration="w_inf"
    ).fit(frame)
    assert line["scale"].tolist() == fitted.scale_.tolist()
    assert line["guarantee"].iloc[0] == str(fitted.guarantee_)
    assert line.loc["age", "noise_to_spread"] == pytest.approx(
        fitted.noise_std_[0] / frame["age"].std(ddof=0)
    )
    by_values = compare_mechanisms(
        frame[["age", "bmi"]], secret=frame["sex"], alpha=3, epsilon=0.8
    )
    assert by_values["scale"].tolist() == table["scale"].tolist()
    pure = compare_mechanisms(frame, secret="sex", alpha=math.inf)
    assert set(pure["law"]) == {"laplace"}
    one = compare_mechanisms(frame[["age", "sex"]], secret="sex")
    assert set(one["scope"]) == {"joint"}
    with pytest.raises(ParameterError, match="laws='laplac'"):
        compare_mechanisms(frame, secret="sex", laws=["laplac"])


def test_noise_covariance_corrects_a_variance():
    # The variance of n noised values has a relative standard error near sqrt(5/n);
    # five of them.
    n = 100_000
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(0, 2, n), "s": rng.integers(0, 2, n)})
    frame["x"] += frame["s"] * 0.5
    noise = RenyiPufferfishLaplace(epsilon=0.5, secret="s").fit(frame)
    assert noise.noise_covariance_.shape == (1, 1)
    released = noise.transform(frame)["x"]
    corrected = released.var() - noise.noise_covariance_[0, 0]
    assert corrected == pytest.approx(
        frame["x"].var(), abs=5 * math.sqrt(5 / n) * released.var()
    )


# --- delta ----------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", LAWS)
def test_delta_turns_epsilon_into_a_target(mechanism):
    frame = people()[["age", "sex"]]
    noise = mechanism(alpha=8, epsilon=2, delta=1e-3, secret="sex").fit(frame)
    assert noise.guarantee_.target == (2.0, 1e-3)
    assert noise.guarantee_.to_epsilon(1e-3) == pytest.approx(2.0, rel=1e-12)
    plain = 2 - math.log(1e3) / 7
    sharp = 2 - math.log(7 / 8) + (math.log(1e-3) + math.log(8)) / 7
    assert noise.epsilon_ == pytest.approx(max(plain, sharp), rel=1e-12)
    direct = mechanism(alpha=8, epsilon=noise.epsilon_, secret="sex").fit(frame)
    assert direct.scale_ == noise.scale_
    assert "(ε, δ) = (2, 0.001)" in str(noise.guarantee_)
    with pytest.raises(ParameterError, match=r"out of reach at alpha=1\.5"):
        mechanism(alpha=1.5, epsilon=2, delta=1e-3, secret="sex").fit(frame)


# --- attacks --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
@pytest.mark.parametrize("mechanism", LAWS)
def test_no_output_is_impossible_under_the_other_value(mechanism):
    # Everything lies on one lattice, and the two supports are the same lattice: an
    # output minus either value is a whole number of steps.
    frame = pd.DataFrame({"x": [0.0, 1.0] * 100_000, "s": [0, 1] * 100_000})
    noise = mechanism(alpha=2, epsilon=1, secret="s").fit(frame)
    released = noise.transform(frame)["x"].to_numpy()
    step = grid_step(float(noise.scale_[0]))
    for value in (0.0, 1.0):
        steps = (released - value) / step
        assert (steps == np.rint(steps)).all()
    # Floating-point noise has no such lattice.
    unsafe = frame["x"] + np.random.default_rng(0).laplace(size=len(frame))
    steps = (unsafe - 1.0) / step
    assert (steps != np.rint(steps)).mean() > 0.9


def test_values_beyond_the_grid_are_refused_before_noise_is_drawn():
    frame = people()[["age", "sex"]]
    noise = RenyiPufferfishLaplace(secret="sex").fit(frame)
    with pytest.raises(ValueError, match=r"column 'age'.*centre or rescale"):
        noise.transform(pd.DataFrame({"age": [1e30]}))
    with pytest.raises(ValueError, match=r"column 'age'.*centre or rescale"):
        RenyiPufferfishLaplace(secret="sex").fit(frame.assign(age=frame["age"] + 1e15))


# --- parameters -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 1.0),
        ("alpha", 0.5),
        ("alpha", math.nan),
        ("alpha", True),
        ("alpha", "2"),
        ("alpha", "auto"),
        ("alpha", None),
        ("epsilon", 0.0),
        ("epsilon", -1.0),
        ("epsilon", math.nan),
        ("epsilon", math.inf),
        ("epsilon", True),
        ("epsilon", "1"),
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", "x"),
        ("secret_pairs", "some"),
        ("secret_pairs", []),
        ("secret_pairs", [("F", "F")]),
        ("secret_pairs", [("F", "X")]),
        ("secret_pairs", [("F",)]),
        ("secret_pairs", 3),
        ("prior_model", "population"),
        ("prior_model", "gaussian"),
        ("prior_model", None),
        ("calibration", "exactly"),
        ("calibration", 1),
        ("scope", "row"),
        ("confidence", 1.0),
        ("bounds", (1, 0)),
        ("bounds", (0, math.inf)),
        ("bounds", (0, "9")),
        ("bounds", 5),
        ("bounds", {"weight": (0, 1)}),
        ("out_of_bounds", "ignore"),
        ("column_weights", "var"),
        ("column_weights", [1.0]),
        ("column_weights", [1.0, -1.0]),
        ("column_weights", {"age": 1.0}),
        ("column_weights", {"age": 1.0, "bmi": 0.0}),
        ("column_weights", "range"),
        ("n_releases", 0),
        ("n_releases", 1.5),
        ("n_releases", True),
        ("min_group_size", 0),
        ("clip_output", "yes"),
        ("clip_output", True),
        ("secret_from_y", 1),
        ("random_state", -1),
        ("random_state", 1.5),
        ("random_state", np.random.default_rng(0)),
        ("random_state", np.random.RandomState(0)),
        ("n_jobs", 0),
        ("n_jobs", "all"),
        ("verbose", -1),
        ("secret", "sexx"),
        ("secret", ["sex", "sex"]),
        ("secret", []),
        ("prior", "sex"),
        ("prior", "nowhere"),
    ],
)
def test_a_wrong_parameter_is_named_with_its_value(name, value):
    noise = RenyiPufferfishLaplace(secret="sex").set_params(**{name: value})
    with pytest.raises(ParameterError, match=name) as caught:
        noise.fit(people())
    shown = repr(value) if not isinstance(value, (list, dict)) else ""
    names = shown[:12], str(value), type(value).__name__
    assert any(name in str(caught.value) for name in names)
    assert not [attribute for attribute in vars(noise) if attribute.endswith("_")]


def test_a_typo_in_the_secret_gets_a_suggestion():
    with pytest.raises(ParameterError, match=r"'sez' is not a column.*'sex'"):
        RenyiPufferfishLaplace(secret="sez").fit(people())


def test_the_gaussian_refuses_an_infinite_order_and_any_large_epsilon_is_fine():
    with pytest.raises(ParameterError, match="alpha=inf"):
        RenyiPufferfishGaussian(alpha=math.inf, secret="sex").fit(people())
    for mechanism in LAWS:
        scale = mechanism(alpha=3, epsilon=1e4, secret="sex").fit(people()).scale_
        assert (scale > 0).all()


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")
@pytest.mark.parametrize("mechanism", LAWS)
def test_more_copies_need_more_noise(mechanism):
    frame = people()[["age", "sex"]]
    one = mechanism(secret="sex").fit(frame)
    three = mechanism(secret="sex", n_releases=3).fit(frame)
    assert three.scale_[0] > one.scale_[0]
    assert "up to 3 independent releases of one row" in str(three.guarantee_)
    if mechanism is RenyiPufferfishGaussian:
        # Three Gaussian copies are one of a third of the variance.
        expected = math.sqrt(3) * one.scale_[0]
        assert three.scale_[0] == pytest.approx(expected, rel=3e-6)


def test_verbose_prints_the_report(capsys):
    RenyiPufferfishLaplace(secret="sex", verbose=1).fit(people())
    assert "Each released row (age, bmi)" in capsys.readouterr().out
