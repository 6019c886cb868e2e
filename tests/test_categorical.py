"""`RenyiPufferfishCategorical`: what it promises, takes, keeps and says."""

import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import check_estimator

from skpuffer import RenyiPufferfishCategorical as Categorical
from skpuffer import _prior_models, held_out_divergence
from skpuffer.core.channels import (
    UNITS,
    Channel,
    discrete,
    ordinal,
    population_rows,
)
from skpuffer.exceptions import (
    CategoriesFromDataWarning,
    ExcessiveNoiseWarning,
    ParameterError,
    ReproducibleNoiseWarning,
    SmallGroupWarning,
    UnavailableRuleError,
    ZeroNoiseWarning,
)

JOBS = ["clerk", "cook", "judge"]
DEGREES = ["school", "college", "master", "doctor"]
SETS = {"job": JOBS, "degree": DEGREES}
# What scikit-learn leaves out, as for the numeric estimators.
SKIPPED = {
    "check_transformer_general",
    "check_transformer_data_not_an_array",
    "check_pipeline_consistency",
    "check_array_api_input",
}
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def people(n=240, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    lean = np.where(sex == "F", 0.6, 0.3)
    job = np.where(rng.random(n) < lean, "cook", rng.choice(JOBS, n))
    degree = rng.choice(DEGREES, n, p=[0.4, 0.3, 0.2, 0.1])
    return pd.DataFrame({"job": job, "degree": degree, "sex": sex})


def fitted(table=None, **parameters):
    table = people() if table is None else table
    chosen = {"alpha": 4.0, "secret": "sex", "categories": SETS} | parameters
    return Categorical(**chosen).fit(table)


def divergence(table, estimator, column):
    """The larger direction of the released column's divergence between the sexes."""
    labels = list(estimator.categories_[column])
    channel = estimator.channels_[column]
    shares = [
        table.loc[table["sex"] == sex, column]
        .value_counts(normalize=True)
        .reindex(labels, fill_value=0)
        .to_numpy()
        @ channel
        for sex in ("F", "M")
    ]
    alpha = estimator.alpha_
    return max(
        math.log((p**alpha * q ** (1 - alpha)).sum()) / (alpha - 1)
        for p, q in (shares, shares[::-1])
    )


# --- the promise ----------------------------------------------------------------


@pytest.mark.parametrize("metric", ["discrete", "ordinal"])
@pytest.mark.parametrize("calibration", ["transport", "exact"])
def test_the_released_column_keeps_the_promise(calibration, metric):
    table = people()[["job", "sex"]]
    draw = fitted(
        table,
        epsilon=0.1,
        categories=[JOBS],
        metric=metric,
        calibration=calibration,
    )
    truth = divergence(table, draw, "job")
    assert truth <= 0.1
    if calibration == "exact":
        assert truth > 0.1 * (1 - 1e-4)
        assert draw.scale_ < fitted(table, epsilon=0.1, categories=[JOBS]).scale_ * 3


def test_columns_that_give_the_secret_away_together_only():
    # The columns alone are distributed alike; together they are the secret.
    table = pd.DataFrame(
        {"a": [0, 1, 0, 1] * 20, "b": [0, 1, 1, 0] * 20, "sex": list("FFMM") * 20}
    )
    sets = {"a": [0, 1], "b": [0, 1]}
    with pytest.warns(ZeroNoiseWarning, match="'a' .the same"):
        alone = fitted(table, categories=sets, scope="column")
    assert alone.scale_.tolist() == [0, 0]
    for calibration in ("transport", "exact"):
        joint = fitted(table, categories=sets, calibration=calibration)
        assert (joint.scale_ > 0).all()
        a, b = (joint.channels_[name] for name in ("a", "b"))
        p = (np.outer(a[0], b[0]) + np.outer(a[1], b[1])) / 2
        q = (np.outer(a[0], b[1]) + np.outer(a[1], b[0])) / 2
        value = math.log((p**4 * q**-3.0).sum()) / 3
        assert value <= 1.0
        if calibration == "exact":
            assert value > 1 - 1e-4


def test_each_prior_keeps_the_promise():
    table = people(600)
    table["town"] = np.resize(["x", "y", "y"], len(table))
    draw = fitted(
        table.drop(columns="degree"), prior="town", categories=[JOBS], epsilon=0.2
    )
    for _, part in table.groupby("town"):
        assert divergence(part, draw, "job") <= 0.2
    assert draw.guarantee_.priors == ("x", "y")
    one = fitted(table[["job", "sex"]], prior=None, categories=[JOBS], epsilon=0.2)
    assert draw.scale_[0] >= one.scale_[0] * 0.5


def test_any_distributions_on_the_set():
    draw = fitted(
        people()[["job", "sex"]],
        alpha=math.inf,
        prior_model="bounded",
        categories=[JOBS],
    )
    channel = draw.channels_["job"]
    assert (channel.max(axis=0) / channel.min(axis=0)).max() <= math.e
    assert draw.scale_[0] == pytest.approx(1, rel=1e-5)
    assert "for every prior on the declared categories (job in 3 categories)" in str(
        draw.guarantee_
    )
    # The data have no say in it.
    other = fitted(
        people(seed=5)[["job", "sex"]],
        alpha=math.inf,
        prior_model="bounded",
        categories=[JOBS],
    )
    assert other.scale_ == draw.scale_


def test_weights_are_repetitions():
    table = people(120)
    weight = np.random.default_rng(0).integers(0, 4, len(table))
    repeated = table.loc[table.index.repeat(weight)]
    draw = Categorical(alpha=4, secret="sex", categories=SETS, min_group_size=1)
    assert np.array_equal(
        draw.fit(table, sample_weight=weight).scale_, clone(draw).fit(repeated).scale_
    )
    assert draw.guarantee_.weighted


def test_an_epsilon_delta_promise_and_the_best_order():
    table = people()[["job", "sex"]]
    auto = fitted(table, alpha="auto", epsilon=1.0, delta=1e-3, categories=[JOBS])
    assert auto.guarantee_.target == (1.0, 1e-3)
    assert auto.guarantee_.to_epsilon(1e-3) <= 1.0 + 1e-9
    for alpha in (1.5, 10.0, 50.0):
        try:
            other = fitted(
                table, alpha=alpha, epsilon=1.0, delta=1e-3, categories=[JOBS]
            )
        except ParameterError:
            continue
        assert auto.scale_[0] <= other.scale_[0] * (1 + 1e-3)
    assert auto.privacy_profile([auto.alpha_]) <= auto.epsilon_
    assert np.isfinite(auto.privacy_profile([math.inf]))
    both = fitted(alpha="auto", epsilon=1.0, delta=1e-3)
    assert (both.scale_ > 0).all()


@pytest.mark.parametrize("calibration", ["transport", "exact"])
@pytest.mark.parametrize("jobs", [["clerk"], ["clerk", "cook"]])
def test_the_best_order_where_no_noise_is_needed(calibration, jobs):
    table = pd.DataFrame(
        {"job": jobs * 40, "sex": np.repeat(["F", "M"], 20 * len(jobs))}
    )
    with pytest.warns(ZeroNoiseWarning):
        auto = fitted(
            table,
            alpha="auto",
            epsilon=2.0,
            delta=1e-5,
            categories=[jobs],
            calibration=calibration,
        )
    assert auto.scale_.tolist() == [0]
    assert auto.guarantee_.to_epsilon(1e-5) <= 2.0 * (1 + 1e-9)


def test_the_profile_bounds_the_truth():
    table = people()[["job", "sex"]]
    for calibration in ("transport", "exact"):
        draw = fitted(table, epsilon=0.3, categories=[JOBS], calibration=calibration)
        for alpha in (1.5, 4.0, 30.0):
            draw.alpha_ = alpha
            assert divergence(table, draw, "job") <= draw.privacy_profile(alpha)


def test_copies_need_more_noise():
    one = fitted(n_releases=1).scale_
    assert (fitted(n_releases=3).scale_ > one).all()
    with pytest.raises(UnavailableRuleError, match="n_releases=2"):
        fitted(n_releases=2, calibration="exact")


def test_weights_split_the_budget():
    even = fitted().scale_
    assert even[0] == pytest.approx(even[1], rel=1e-6)
    uneven = fitted(column_weights={"job": 1, "degree": 4}).scale_
    assert uneven[1] / uneven[0] == pytest.approx(4, rel=1e-5)
    assert uneven[0] < even[0]
    assert uneven[1] > even[1]
    # By default a metric's own size does not matter.
    ranked = fitted(metric={"degree": "ordinal"}).scale_
    assert ranked[1] / ranked[0] == pytest.approx(ordinal(4).sum() / 12, rel=1e-5)


# --- what is drawn --------------------------------------------------------------


@quiet
def test_draws_have_the_stated_probabilities():
    table = people(6000)
    draw = fitted(table, random_state=3)
    released = draw.transform(table)
    for name, labels in SETS.items():
        seen = pd.crosstab(table[name], released[name]).loc[labels, labels].to_numpy()
        expected = seen.sum(axis=1, keepdims=True) * draw.channels_[name]
        statistic = ((seen - expected) ** 2 / expected).sum()
        freedom = len(labels) * (len(labels) - 1)
        assert stats.chi2.sf(statistic, freedom) > 1e-3
    # The columns are drawn independently of each other.
    moved = pd.crosstab(
        released["job"] != table["job"], released["degree"] != table["degree"]
    )
    assert stats.chi2_contingency(moved).pvalue > 1e-3


def test_the_channels_are_those_of_the_scale():
    draw = fitted(metric={"degree": "ordinal"})
    for name, distances, theta in zip(
        SETS, (discrete(3), ordinal(4)), draw.scale_, strict=True
    ):
        counts = Channel.of(distances, theta).counts
        assert np.array_equal(draw.channels_[name], counts / UNITS)


@quiet
def test_seeds_repeat_and_fresh_bits_do_not():
    table = people(400)
    seeded = fitted(table, random_state=7)
    with pytest.warns(ReproducibleNoiseWarning):
        first = seeded.transform(table)
    second = seeded.transform(table)
    assert not first.equals(second)
    assert seeded.fit(table).transform(table).equals(first)
    fresh = fitted(table)
    assert not fresh.transform(table).equals(fresh.transform(table))
    copies = [clone(fresh).fit(table), pickle.loads(pickle.dumps(fresh))]
    assert not copies[0].transform(table).equals(copies[1].transform(table))


# --- columns and types ----------------------------------------------------------


def test_types_are_kept():
    n = 60
    table = pd.DataFrame(
        {
            "text": pd.Series(["a", "b", "b"] * 20, dtype="str"),
            "thing": pd.Series(["a", 1, "b"] * 20, dtype=object),
            "flag": [True, False, False] * 20,
            "small": np.array([1, 2, 1] * 20, dtype=np.int8),
            "maybe": pd.array([1, 2, 1] * 20, dtype="Int64"),
            "half": np.array([0.5, 1.5, 0.5] * 20, dtype=np.float32),
            "kind": pd.Categorical(["u", "v", "u"] * 20, ["v", "u", "w"], ordered=True),
            "sex": list("FFMFMM") * (n // 6),
        },
        index=np.arange(n)[::-1],
    )
    with pytest.warns(
        CategoriesFromDataWarning, match=r"'text' .2., 'thing' .3., 'flag'"
    ):
        draw = Categorical(secret="sex", epsilon=0.5).fit(table)
    assert draw.categories_["kind"] == ("v", "u", "w")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZeroNoiseWarning)
        released = draw.transform(table)
    wanted = table.drop(columns="sex")
    assert released.dtypes.equals(wanted.dtypes)
    assert released.index.equals(table.index)
    assert released.columns.equals(wanted.columns)
    for name in wanted:
        assert set(released[name]) <= set(draw.categories_[name])


def test_declared_categories_that_a_type_does_not_hold():
    table = pd.DataFrame(
        {
            "kind": pd.Categorical(["u", "v"] * 30),
            "small": np.array([1, 2] * 30, dtype=np.int8),
            "sex": ["F", "F", "M"] * 20,
        }
    )
    draw = Categorical(
        secret="sex",
        epsilon=0.01,
        prior_model="bounded",
        categories=[["u", "v", "w"], [1, 2, 300]],
    )
    with pytest.warns(ExcessiveNoiseWarning, match="hardly depends on 'kind'"):
        released = draw.fit(table).transform(table)
    assert released["kind"].cat.categories.tolist() == ["u", "v", "w"]
    assert set(released["small"]) == {1, 2, 300}


def test_polars():
    table = people()
    frame = pl.DataFrame(table.to_dict("list")).with_columns(
        pl.col("degree").cast(pl.Enum(DEGREES)),
        kind=pl.Series(["p", "q"] * 120).cast(pl.Categorical),
        flag=pl.Series([True, False, False] * 80),
    )
    sets = {"job": JOBS, "kind": ["p", "q", "r"], "flag": [False, True]}
    with pytest.warns(CategoriesFromDataWarning, match="'degree'"):
        draw = Categorical(secret="sex", categories=sets).fit(frame)
    assert draw.categories_["degree"] == tuple(DEGREES)
    released = draw.transform(frame)
    assert released.schema == frame.drop("sex").schema
    assert set(released["kind"]) <= set(sets["kind"])
    other = fitted(table[["job", "sex"]], categories=[JOBS], alpha=2.0)
    same = Categorical(secret="sex", categories=[JOBS]).fit(frame[["job", "sex"]])
    assert np.array_equal(same.scale_, other.scale_)


@pytest.mark.parametrize("dtype", [object, "<U7", np.int64, bool, np.float32])
def test_arrays(dtype):
    labels = np.array(["a", "bb"]) if dtype in (object, "<U7") else np.array([0, 1])
    rows = labels[np.random.default_rng(0).integers(0, 2, (80, 2))].astype(dtype)
    secret = np.array([0, 1] * 40)
    sets = [labels.tolist()] * 2
    draw = Categorical(categories=sets).fit(rows, secret=secret)
    released = draw.transform(rows)
    assert released.dtype.kind == rows.dtype.kind
    assert set(released.ravel().tolist()) <= set(labels.tolist())
    listed = Categorical(categories=sets).fit(rows.tolist(), secret=secret)
    assert np.array_equal(listed.scale_, draw.scale_)
    # With the secret as a column: an array's positions are those of its input.
    wide = np.column_stack([rows.astype(object), secret])
    inside = Categorical(categories=sets, secret=2).fit(wide)
    assert np.array_equal(inside.scale_, draw.scale_)
    assert inside.transform(wide).shape == inside.transform(wide[:, :2]).shape


def test_text_that_is_wider_than_the_data():
    rows = np.array([["a"], ["b"]] * 30)
    draw = Categorical(
        categories=[["a", "b", "longer"]], prior_model="bounded", epsilon=0.1
    ).fit(rows, secret=["F", "F", "M"] * 20)
    assert "longer" in draw.transform(rows)


def test_the_secret_comes_from_anywhere():
    table = people()
    draw = fitted(table)
    rest = table.drop(columns="sex")
    for other in (
        Categorical(alpha=4, categories=SETS).fit(rest, secret=table["sex"]),
        Categorical(alpha=4, categories=SETS, secret_from_y=True).fit(
            rest, table["sex"]
        ),
    ):
        assert np.array_equal(other.scale_, draw.scale_)
    assert draw.transform(rest).shape == draw.transform(table).shape
    assert draw.get_feature_names_out().tolist() == ["job", "degree"]
    assert draw.get_feature_names_out(["job", "degree", "sex"]).tolist() == [
        "job",
        "degree",
    ]
    with pytest.raises(ParameterError, match="no secret to protect"):
        Categorical(categories=SETS).fit(rest)


def test_in_pipelines():
    table = people()
    steps = make_pipeline(
        Categorical(secret="sex", categories=SETS), OneHotEncoder(sparse_output=False)
    )
    assert steps.fit_transform(table).shape[0] == len(table)
    columns = ColumnTransformer(
        [("draw", Categorical(secret="sex", categories=[JOBS]), ["job", "sex"])]
    ).set_output(transform="pandas")
    assert columns.fit_transform(table).columns.tolist() == ["draw__job"]


@quiet
def test_parameters_are_those_of_an_estimator():
    # What can differ from JointRelease, whose other checks are no slow ones.
    for check in (
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
    ):
        check("RenyiPufferfishCategorical", Categorical())


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("scope", ["joint", "column"])
def test_check_estimator(scope):
    estimator = Categorical(secret_from_y=True, scope=scope, unknown="uniform")
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = [r for r in results if r["status"] not in ("passed", "skipped")]
    assert failed == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= SKIPPED
    assert sum(r["status"] == "passed" for r in results) >= 40
    assert get_tags(estimator).non_deterministic


# --- refusals -------------------------------------------------------------------


def test_a_failed_fit_changes_nothing():
    draw = fitted()
    state = pickle.dumps(draw)
    for broken in (people().assign(job=None), people().assign(sex="F")):
        with pytest.raises(ValueError):
            draw.fit(broken)
        assert pickle.dumps(draw) == state
    with pytest.raises(NotFittedError):
        Categorical(secret="sex").transform(people())


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"alpha": 1.0}, "alpha=1.0"),
        ({"epsilon": 0}, "epsilon=0"),
        (
            {"calibration": "w_inf"},
            "calibration='w_inf' must be one of transport, exact",
        ),
        ({"column_weights": "std"}, "column_weights='std'"),
        ({"column_weights": [1, -1]}, "2 positive numbers"),
        ({"prior_model": "gaussian"}, "prior_model='gaussian' does not go with"),
        ({"prior_model": "public"}, "prior_model='public' must be one of"),
        ({"scope": "row"}, "scope='row'"),
        ({"categories": "all"}, "categories='all'"),
        ({"categories": [JOBS]}, "each of the 2 columns"),
        ({"categories": {"work": JOBS}}, "categories names 'work'"),
        ({"categories": ["abc", DEGREES]}, "must be a list of labels, got 'abc'"),
        ({"categories": [["a", "a"], DEGREES]}, "distinct"),
        ({"categories": [[None, "a"], DEGREES]}, "missing"),
        ({"categories": [[["a"]], DEGREES]}, "distinct"),
        ({"categories": [[], DEGREES]}, "distinct"),
        ({"categories": [list(range(257)), DEGREES]}, "257 categories"),
        ({"metric": "euclidean"}, "metric='euclidean'"),
        ({"metric": {"job": [[0, 1], [1, 0]]}}, "metric of column 'job'.*shape"),
        ({"metric": {"job": lambda a, b: 1.0}}, "itself must be 0"),
        ({"metric": {"wage": "ordinal"}}, "metric names 'wage'"),
        (
            {"metric": "ordinal", "categories": {"job": JOBS}},
            "categories of 'degree' in",
        ),
        ({"unknown": "other"}, "unknown='other'"),
        ({"random_state": np.random.default_rng()}, "random_state"),
    ],
)
def test_parameters_are_checked(parameters, complaint):
    with pytest.raises(ParameterError, match=complaint):
        fitted(**parameters)


def test_too_many_combinations_for_sums():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 2, (60, 17)).astype(str)).rename(columns=str)
    table["sex"] = ["F", "M"] * 30
    draw = Categorical(
        secret="sex", calibration="exact", categories=[["0", "1"]] * 17, epsilon=1
    )
    with pytest.raises(ValueError, match=r"131072, and serves 65536.*scope='column'"):
        draw.fit(table)
    with pytest.warns(ZeroNoiseWarning):
        draw.set_params(scope="column").fit(table)
    assert draw.scale_.shape == (17,)


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        ([None, "cook"], "column 'job' is missing .NaN. in 120 of 240 rows"),
        (["nan", "cook"], "column 'job' is missing, as the text 'nan', in 120"),
        (["chef", "cook"], "'job' has labels outside its categories in 120.*row 0.:"),
        ([math.inf, 1.0], "column 'job' is infinite"),
        ([["a"], ["b"]], "column 'job' must hold one category a row"),
    ],
)
def test_labels_are_checked(column, complaint):
    table = people().assign(job=pd.Series(column * 120, dtype=object))
    with pytest.raises(ValueError, match=complaint):
        fitted(table)
    if column[0] != math.inf:
        with pytest.raises(ValueError, match=complaint):
            fitted().transform(table)


def test_unknown_labels():
    table = people()
    strange = table.assign(job=table["job"].where(table.index > 9, "chef"))
    # A category stands for them, in fit as well.
    stands = fitted(strange, unknown={"job": "cook"})
    renamed = strange.replace({"job": {"chef": "cook"}})
    assert np.array_equal(stands.scale_, fitted(renamed).scale_)
    assert set(stands.transform(strange)["job"]) <= set(JOBS)
    # Uniform ones are drawn in transform alone.
    with pytest.raises(ValueError, match="outside its categories"):
        fitted(strange, unknown="uniform")
    draw = fitted(unknown="uniform", epsilon=6)
    many = pd.DataFrame({"job": ["chef"] * 9000, "degree": ["school"] * 9000})
    seen = draw.transform(many)["job"].value_counts().reindex(JOBS)
    # The discrete metric leaves uniform uniform.
    assert stats.chisquare(seen).pvalue > 1e-3
    with pytest.raises(ValueError, match="outside its categories"):
        draw.set_params(unknown="error").transform(strange)
    # A policy for one column is none for another.
    with pytest.raises(ValueError, match="'degree' has labels outside"):
        stands.transform(table.assign(degree="kindergarten"))


def test_columns_are_those_of_fit():
    draw = fitted()
    with pytest.raises(ValueError, match="feature names"):
        draw.transform(people()[["degree", "job"]])
    with pytest.raises(ValueError, match="feature"):
        draw.transform(people()[["job"]])
    numbered = people().set_axis([0, 1, "sex"], axis=1)
    with pytest.raises(ValueError, match="the columns are 1, 0"):
        Categorical(secret="sex", categories=[JOBS, DEGREES]).fit(numbered).transform(
            numbered[[1, 0]]
        )


# --- what it says ---------------------------------------------------------------


def test_the_guarantee():
    draw = fitted(metric={"degree": "ordinal"})
    promise = draw.guarantee_
    text = str(promise)
    assert text.startswith(
        "Each released row (job, degree) is (4, 1)-Rényi Pufferfish private about sex "
        "(F, M) for the fitted prior; categories drawn with P(y | x) ∝ "
    )
    assert "(job: 3 categories, discrete distances)" in text
    assert "(degree: 4 categories, ordinal distances)" in text
    assert "joint convexity" in text
    card = json.loads(promise.to_json())
    assert card["law"] == "categorical"
    assert card["categories"] == [JOBS, DEGREES]
    assert card["metrics"] == ["discrete", "ordinal"]
    alone = fitted(scope="column")
    assert "Each released column alone" in str(alone.guarantee_)
    assert (alone.scale_ <= fitted().scale_ * (1 + 1e-6)).all()


def test_the_report():
    table = people()[["job", "sex"]]
    draw = fitted(table, categories=[JOBS])
    report = draw.report_
    share = table["job"].value_counts(normalize=True).reindex(JOBS).to_numpy()
    kept = share @ draw.channels_["job"].diagonal()
    assert report.noise_std[0] == pytest.approx(1 - kept)
    assert report.column_std[0] == pytest.approx(1 - (share**2).sum())
    assert report.worst_pair == ("F – M",)
    assert "job" in report._repr_html_()
    assert not hasattr(draw, "noise_std_")


def test_warnings():
    table = people(60)
    with pytest.warns(SmallGroupWarning, match="min_group_size=500"):
        fitted(table, min_group_size=500)
    with pytest.warns(ZeroNoiseWarning, match="'job' .constant"):
        still = fitted(table.assign(job="cook"))
    assert still.scale_[0] == 0
    with pytest.warns(ZeroNoiseWarning):
        released = still.transform(table.assign(job="cook"))
    assert set(released["job"]) == {"cook"}
    with pytest.warns(CategoriesFromDataWarning) as caught:
        guess = Categorical(secret="sex").fit(table)
    assert caught[0].filename == __file__
    assert "which categories occur (job, degree)" in str(guess.guarantee_)
    assert "which categories" not in str(fitted().guarantee_)


def test_a_column_close_enough_is_released_as_it_is():
    table = pd.DataFrame({"job": ["a", "b"] * 100, "sex": ["F", "M", "M", "F"] * 50})
    table.loc[:3, "job"] = "a"
    with pytest.warns(ZeroNoiseWarning, match="within epsilon as it is"):
        draw = fitted(table, categories=[["a", "b"]], calibration="exact")
    assert draw.scale_ == 0
    with pytest.warns(ZeroNoiseWarning):
        assert draw.transform(table)["job"].equals(table["job"])


def test_nothing_of_the_rows_is_kept():
    sizes = []
    for n in (200, 2000):
        draw = fitted(people(n))
        draw.transform(people(50))
        sizes.append(len(pickle.dumps(draw)))
    assert abs(sizes[1] - sizes[0]) < 200


def test_held_out_rows():
    table = people(400)
    for scope, columns in (("column", ["job", "degree"]), ("joint", ["job, degree"])):
        draw = fitted(table, scope=scope, epsilon=0.5)
        same = held_out_divergence(draw, table)
        assert same["column"].tolist() == columns
        assert same["holds"].all()
    draw = fitted(table[["job", "sex"]], categories=[JOBS], epsilon=0.1)
    found = held_out_divergence(draw, table[["job", "sex"]])
    assert found["divergence"][0] == pytest.approx(
        divergence(table, draw, "job"), rel=1e-9
    )
    # Rows that lean more, and lack a category.
    other = table[["job", "sex"]].replace({"job": {"judge": "cook"}})
    other.loc[other["sex"] == "M", "job"] = "clerk"
    assert not held_out_divergence(draw, other)["holds"].any()
    twice = fitted(table, n_releases=2)
    assert held_out_divergence(twice, table)["holds"].all()


def test_the_population():
    table = people(600)
    draw = fitted(table, prior_model="population", scope="column", confidence=0.9)
    text = str(draw.guarantee_)
    assert "for the population, with confidence 90 % over the sample" in text
    assert "on the declared categories (job in 3 categories" in text
    sample = fitted(table, scope="column").scale_
    anything = fitted(table, prior_model="bounded", scope="column").scale_
    assert (sample < draw.scale_).all()
    assert (draw.scale_ < anything).all()
    surer = fitted(table, prior_model="population", scope="column", confidence=0.999)
    assert (surer.scale_ > draw.scale_).all()
    larger = fitted(people(6000), prior_model="population", scope="column")
    assert (larger.scale_ < draw.scale_).all()
    # Constant in the sample is not constant in the population.
    still = fitted(table.assign(job="cook"), prior_model="population", scope="column")
    assert (still.scale_ > 0).all()
    auto = fitted(
        table, prior_model="population", scope="column", alpha="auto", delta=0.01
    )
    assert auto.guarantee_.to_epsilon(0.01) <= 1 + 1e-9


def test_populations_that_are_refused():
    with pytest.raises(ParameterError, match="covers one column at a time"):
        fitted(prior_model="population")
    with pytest.raises(ParameterError, match="takes no sample_weight"):
        Categorical(
            secret="sex", categories=SETS, prior_model="population", scope="column"
        ).fit(people(), sample_weight=np.ones(240))
    with pytest.raises(ParameterError, match="promises nothing for a population"):
        fitted(prior_model="population", scope="column", calibration="exact")
    for model in ("population", "bounded"):
        for sets in ("auto", {}, {"job": "auto"}):
            with (
                pytest.warns(CategoriesFromDataWarning),
                pytest.raises(ParameterError, match=r"from the data.*declare them"),
            ):
                fitted(prior_model=model, scope="column", categories=sets)


def test_what_stands_for_unknown_labels_is_what_it_was_in_fit():
    table = pd.DataFrame(
        {"job": ["z"] * 30 + ["a"] * 30, "sex": ["F"] * 30 + ["M"] * 30}
    )
    with pytest.warns(UserWarning, match="released unchanged"):
        draw = Categorical(secret="sex", categories=[["a", "b"]], unknown="a").fit(
            table
        )
    assert "Labels outside the categories count as a (job)." in str(draw.guarantee_)
    assert draw.guarantee_.to_dict()["unknown"] == ["a"]
    for policy in ("b", "uniform", {"job": "b"}):
        with pytest.raises(ParameterError, match=r"unknown=.*fit again"):
            draw.set_params(unknown=policy).transform(table)
    with pytest.raises(ValueError, match="outside its categories"):
        draw.set_params(unknown="error").transform(table)
    # Where fit refused unknown labels, none was there.
    open_set = Categorical(secret="sex", categories=[["a", "b", "z"]]).fit(table)
    assert "outside the categories" not in str(open_set.guarantee_)
    drawn = clone(open_set).set_params(unknown="uniform").fit(table).guarantee_
    assert "Not covered: several rows" in str(drawn)
    assert "labels outside the categories" in str(drawn)
    other = pd.DataFrame({"job": ["q"] * 5})
    assert set(open_set.set_params(unknown="b").transform(other)["job"]) <= {*"abz"}


@pytest.mark.parametrize(
    ("given", "sets", "released"),
    [
        (["a", "b"] * 40, ["a", "b", "other"], {"a", "b", "other"}),
        ([1, 2] * 40, [1, 2, 300], {1, 2, 300}),
        ([1, 2] * 40, [1, 2, "?"], {"1", "2", "?"}),
        ([True, False] * 40, [True, False, "?"], {"True", "False", "?"}),
    ],
    ids=["enum", "integers", "integers and text", "bools and text"],
)
def test_polars_types_widen_for_declared_categories(given, sets, released):
    pl = pytest.importorskip("polars")
    kind = {str: pl.Enum(["a", "b"]), int: pl.Int8, bool: pl.Boolean}[type(given[0])]
    rows = pl.DataFrame({"x": pl.Series(given, dtype=kind), "sex": ["F", "M"] * 40})
    draw = Categorical(epsilon=0.1, secret="sex", categories=[sets]).fit(rows)
    big = pl.concat([rows] * 10)
    assert set(draw.transform(big)["x"]) == released


def test_a_mapping_of_unknown_names_columns():
    with pytest.raises(ParameterError, match=r"unknown names 'jib'.*job"):
        fitted(unknown={"jib": "cook"})


def test_a_polars_enum_carries_no_label_of_the_rows():
    pl = pytest.importorskip("polars")
    table = people()[["job", "sex"]]
    draw = fitted(table, categories=[JOBS], unknown=JOBS[0])
    kind = pl.Enum(["SECRETLABEL", *JOBS])
    rows = pl.DataFrame({"job": pl.Series(["SECRETLABEL", *JOBS], dtype=kind)})
    released = draw.transform(rows)
    assert released["job"].dtype == pl.Enum(JOBS)


@pytest.mark.slow
def test_the_population_keeps_the_promise_as_often_as_stated():
    rng = np.random.default_rng(0)
    shares = np.array([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2]])
    failed = 0
    for _ in range(300):
        rows = [rng.choice(JOBS, 60, p=share) for share in shares]
        table = pd.DataFrame(
            {"job": np.concatenate(rows), "sex": np.repeat(["F", "M"], 60)}
        )
        draw = fitted(table, prior_model="population", categories=[JOBS], epsilon=0.1)
        p, q = shares @ draw.channels_["job"]
        values = [math.log((a**4 * b**-3.0).sum()) / 3 for a, b in ((p, q), (q, p))]
        failed += max(values) > 0.1
    assert failed <= 15


@quiet
def test_columns_and_groups_share_what_may_fail(monkeypatch):
    asked = []

    def bounds(group, size, beta):
        asked.append(beta)
        return population_rows(group, size, beta)

    monkeypatch.setattr(_prior_models, "population_rows", bounds)
    table = people().assign(sex=np.tile(["F", "M", "X"], 80))
    fitted(table, prior_model="population", scope="column", confidence=0.9)
    assert asked == pytest.approx([0.1 / 2 / 3] * 6)


def test_the_secret_may_be_routed():
    table = people()
    rest, sex = table[["job", "degree"]], table["sex"]
    with config_context(enable_metadata_routing=True):
        draw = Categorical(alpha=4, categories=SETS).set_fit_request(secret=True)
        steps = make_pipeline(draw, OneHotEncoder(sparse_output=False))
        steps.fit(rest, secret=sex)
    assert np.array_equal(steps[0].scale_, fitted(table).scale_)


def test_a_probability_that_underflows_is_not_taken_for_none():
    # F alone has "b", with a share of 1e-600.
    table = pd.DataFrame({"job": ["a", "b", "a", "a"], "sex": ["F", "F", "M", "M"]})
    draw = Categorical(
        alpha=math.inf,
        secret="sex",
        categories=[["a", "b"]],
        calibration="exact",
        min_group_size=1,
    ).fit(table, sample_weight=[1e300, 1e-300, 1.0, 1.0])
    channel = draw.channels_["job"]
    # The worst that so little of "b" may stand for.
    assert draw.scale_[0] > 0
    assert np.log(channel.max(axis=0) / channel.min(axis=0)).max() <= 1 + 1e-9
