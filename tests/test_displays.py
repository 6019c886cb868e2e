"""Displays: what is drawn against numbers found another way, on any axes and style."""

import builtins
import itertools
import math
from functools import cache

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import integrate, stats
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from skpuffer import (
    JointRelease,
    PrivacyProfile,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
)
from skpuffer.audit import KernelRenyiAuditor, RunningAudit
from skpuffer.displays import (
    AuditDisplay,
    CouplingDisplay,
    NoiseDisplay,
    PrivacyProfileDisplay,
    ReleaseDisplay,
    TradeoffDisplay,
)
from skpuffer.exceptions import ParameterError, ZeroNoiseWarning


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def people(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, rows) + 4 * (sex == "M"),
            "pay": rng.normal(30, 5, rows) + 2.0 * (sex == "F"),
            "sex": sex,
        }
    )


AGES = people()[["age", "sex"]]
LAPLACE = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(AGES)
GAUSSIAN = RenyiPufferfishGaussian(alpha=4, epsilon=1, secret="sex").fit(AGES)
JOBS = pd.DataFrame(
    {
        "job": list("aaabbc") * 20 + list("abbbcc") * 20,
        "hours": np.arange(240) % 17 + 3 * (np.arange(240) < 120),
        "sex": ["F"] * 120 + ["M"] * 120,
    }
)
ROW = JointRelease(
    alpha=4, epsilon=1, secret="sex", categories=[["a", "b", "c"]]
).fit(JOBS)  # fmt: skip


def samples(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    return rng.laplace([[[0]], [[1]]], 0.5, (2, rows, 1))


AUDITOR = KernelRenyiAuditor(epsilon=1.0, delta=0.01).fit(*samples())
RESULTS = {
    "param_noise__epsilon": np.array([1.0, 4.0, 1.0, 4.0]),
    "param_noise__alpha": np.array([2, 2, 8, 8]),
    "param_ridge__alpha": np.array([1, 1, 1, 1]),
    "mean_test_score": np.array([0.2, 0.4, 0.1, 0.3]),
    "std_test_score": np.array([0.01, 0.02, 0.03, 0.04]),
    "split0_test_score": np.zeros(4),
    "split1_test_score": np.zeros(4),
}
MAKE = {
    "profile": lambda: PrivacyProfileDisplay.from_estimator(LAPLACE),
    "profile, Gaussian": lambda: PrivacyProfileDisplay.from_estimator(GAUSSIAN),
    "profile, delta": lambda: PrivacyProfileDisplay.from_estimator(
        LAPLACE, kind="delta"
    ),
    "noise": lambda: NoiseDisplay.from_frame(
        AGES, secret="sex", alphas=[2, 8], epsilons=[1, 2]
    ),
    "release": lambda: ReleaseDisplay.from_estimator(LAPLACE, AGES),
    "release, categories": lambda: ReleaseDisplay.from_estimator(ROW, JOBS),
    "coupling": lambda: CouplingDisplay.from_frame(AGES, secret="sex", column="age"),
    "trade-off": lambda: TradeoffDisplay.from_cv_results(
        RESULTS, privacy="noise__epsilon"
    ),
    "audit": lambda: AuditDisplay.from_estimator(AUDITOR),
    "audit, samples": lambda: AuditDisplay.from_samples(
        AUDITOR, *samples(), sizes=[50, 600]
    ),
}
EACH = pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)


# --- all of them ---


@cache
def drawn(make):
    """Return a display that was drawn once: to draw it again is cheaper."""
    display = make()
    plt.close("all")
    return display


@EACH
def test_axes_that_are_given_are_drawn_on_and_drawing_again_changes_nothing(make):
    plt.close("all")
    display = drawn(make).plot()
    data = [line.get_xydata() for line in display.ax_.lines]
    first = display.figure_
    figure, ax = plt.subplots()
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert len(plt.get_fignums()) == 2
    display.plot()
    assert display.figure_ not in (first, figure)
    again = [line.get_xydata() for line in display.ax_.lines]
    assert len(data) == len(again)
    for one, other in zip(data, again, strict=True):
        np.testing.assert_array_equal(one, other)


@EACH
@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_it_can_be_read_on_light_and_dark_ground_at_normal_size(make, style):
    def luminance(colour):
        rgb = np.array(matplotlib.colors.to_rgb(colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    with plt.style.context(style), plt.rc_context({"figure.figsize": (6, 4)}):
        figure = drawn(make).plot().figure_
        figure.draw_without_rendering()
        ground = luminance(figure.get_facecolor())
        for ax in figure.axes:
            texts = [
                t for t in ax.findobj(matplotlib.text.Text) if t.get_text().strip()
            ]
            texts = [t for t in texts if t.get_visible()]
            for artists, least in ((texts, 4.5), (ax.lines, 1.8)):
                for artist in artists:
                    pair = sorted([ground, luminance(artist.get_color())])
                    assert (pair[1] + 0.05) / (pair[0] + 0.05) > least, artist
            if style != "default":
                continue
            # Nothing is cut off, and the legend is not on the data.
            inside = figure.bbox.padded(1)
            shown = ax.get_tightbbox()
            assert inside.x0 <= shown.x0 < shown.x1 <= inside.x1
            assert inside.y0 <= shown.y0 < shown.y1 <= inside.y1
            if ax.get_legend() is not None:
                assert ax.get_legend().get_window_extent().y0 >= ax.bbox.y1 - 1
            for one in ax.texts:
                box = one.get_window_extent()
                for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
                    assert not tick.get_text() or not box.overlaps(
                        tick.get_window_extent()
                    ), (one, tick)
            assert ax.get_ylabel()
            assert ax.get_xlabel() or ax.get_shared_x_axes().joined(*figure.axes)


@EACH
def test_without_matplotlib_an_error_says_what_to_install(make, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    display = drawn(make)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"Display .*pip install 'skpuffer\[plot\]'"):
        make()
    with pytest.raises(ImportError, match=r"pip install 'skpuffer\[plot\]'"):
        display.plot()


@EACH
def test_what_is_no_axes_is_refused(make):
    with pytest.raises(ParameterError, match=r"ax=.* must be one matplotlib Axes"):
        drawn(make).plot("here")


def test_colours_may_be_chosen():
    display = MAKE["trade-off"]().plot(colors=["k"])
    assert {line.get_color() for line in display.lines_.values()} == {"k"}
    with pytest.raises(ParameterError, match=r"colors=\[\]"):
        display.plot(colors=[])


def test_on_transparent_ground_colours_follow_the_text():
    colours = []
    for text in ("black", "white"):
        ground = dict.fromkeys(["figure.facecolor", "axes.facecolor"], "none")
        with plt.rc_context(ground | {"text.color": text}):
            colours.append(MAKE["release"]().after_[0].get_color())
    with plt.style.context("dark_background"):
        assert colours[1] == MAKE["release"]().after_[0].get_color()
    assert colours[0] == MAKE["release"]().after_[0].get_color() != colours[1]


# --- profiles ---


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_a_profile_is_that_of_the_estimator(noise):
    display = PrivacyProfileDisplay.from_estimator(noise)
    alphas, bounds = display.line_.get_data()
    np.testing.assert_array_equal(bounds, noise.privacy_profile(alphas))
    assert {4.0, noise.profile_.orders[0]} <= set(alphas)
    assert display.promised_.get_xydata().tolist() == [[4.0, 1.0]]
    assert bounds[np.searchsorted(alphas, 4)] == 1
    shown = display.limit_ is not None
    assert shown == (noise is LAPLACE)
    if shown:
        assert set(display.limit_.get_ydata()) == {noise.profile_.limit}
    # Even on log(α − 1).
    ends = display.ax_.transData.transform([[1.1, 1], [2, 1], [11, 1]])[:, 0]
    assert ends[1] - ends[0] == pytest.approx(ends[2] - ends[1])


def test_the_curve_of_delta_is_the_best_of_all_orders():
    display = PrivacyProfileDisplay.from_estimator(LAPLACE).plot(kind="delta")
    epsilons, deltas = display.line_.get_data()
    profile = LAPLACE.profile_
    for epsilon, delta in zip(epsilons[::9], deltas[::9], strict=True):
        assert delta == profile.to_delta(epsilon)
        if epsilon > 0:
            assert profile.to_epsilon(delta) == pytest.approx(epsilon, abs=1e-6)
    assert epsilons[-1] == profile.to_epsilon(1e-10)
    alone = display.promised_.get_ydata()
    assert alone[7] == LAPLACE.guarantee_.to_delta(epsilons[7])
    assert (alone >= deltas * (1 - 1e-9)).all()


def test_profiles_share_axes():
    display = PrivacyProfileDisplay.from_estimator(LAPLACE, name="one")
    other = PrivacyProfileDisplay.from_estimator(GAUSSIAN, name="two", ax=display.ax_)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["one", "two"]
    assert display.line_.get_color() != other.line_.get_color()
    assert display.ax_.get_ylim()[1] >= np.nanmax(other.epsilons)


def test_profiles_of_nothing_of_infinity_and_of_something_else():
    flat = PrivacyProfile((2.0, 3.0), (0.0, 0.0), 0.0)
    display = PrivacyProfileDisplay.from_profile(flat)
    assert display.promised_ is None
    assert set(display.line_.get_ydata()) == {0.0}
    display.plot(kind="delta").figure_.canvas.draw()
    pure = PrivacyProfile((2.0, 3.0), (0.5, 0.8), 1.5)
    display = PrivacyProfileDisplay.from_profile(pure, promised=(math.inf, 1.5))
    assert display.promised_ is None
    unknown = PrivacyProfile((2.0, 3.0), (0.5, math.inf), math.inf)
    display = PrivacyProfileDisplay.from_profile(unknown)
    assert np.isnan(display.line_.get_ydata()[-1])
    hopeless = PrivacyProfile((2.0,), (math.inf,), math.inf)
    with pytest.raises(ParameterError, match="infinite"):
        PrivacyProfileDisplay.from_profile(hopeless, kind="delta")
    with pytest.raises(ParameterError, match="kind='rho' must be one of"):
        display.plot(kind="rho")
    with pytest.raises(ParameterError, match="PrivacyProfile"):
        PrivacyProfileDisplay.from_profile(LAPLACE)
    with pytest.raises(NotFittedError):
        PrivacyProfileDisplay.from_estimator(RenyiPufferfishLaplace())


# --- noise ---


def test_noise_is_that_of_fits_at_each_order_and_budget():
    display = NoiseDisplay.from_frame(
        AGES, secret="sex", alphas=[8, 2], epsilons=[2, 1],
        calibrations=["transport", "w_inf"],
    )  # fmt: skip
    assert len(display.lines_) == 8
    laws = {"laplace": RenyiPufferfishLaplace, "gaussian": RenyiPufferfishGaussian}
    for (law, rule, epsilon), line in display.lines_.items():
        alphas, noise = line.get_data()
        assert alphas.tolist() == [2, 8]
        for alpha, found in zip(alphas, noise, strict=True):
            one = laws[law](alpha, epsilon, secret="sex", calibration=rule).fit(AGES)
            assert found == one.noise_std_[0]
    relative = display.plot(relative=True).lines_["laplace", "w_inf", 1.0].get_ydata()
    spread = AGES["age"].std(ddof=0)
    absolute = display.plot().lines_["laplace", "w_inf", 1.0].get_ydata()
    np.testing.assert_allclose(relative, absolute / spread)


def test_noise_of_one_of_several_columns_or_of_all():
    frame = people(120)
    given = {"secret": frame["sex"].to_numpy(), "alphas": [2], "epsilons": [1]}
    given |= {"laws": "laplace", "scope": "column"}
    rows = frame[["age", "pay"]]
    fitted = RenyiPufferfishLaplace(2, 1, scope="column").fit(rows, secret=frame["sex"])
    one = NoiseDisplay.from_frame(rows, column="pay", **given)
    assert one.table["noise_std"].tolist() == [fitted.noise_std_[1]]
    assert "of pay" in one.ax_.get_ylabel()
    both = NoiseDisplay.from_frame(rows, **given)
    mean = np.mean(fitted.report_.noise_to_spread)
    assert both.lines_["laplace", "transport", 1.0].get_ydata() == pytest.approx(mean)
    with pytest.raises(ParameterError, match="choose one with column="):
        both.plot(relative=False)
    with pytest.raises(ParameterError, match="column names 'height'"):
        NoiseDisplay.from_frame(rows, column="height", **given)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alpha": 2}, r"alpha=2: .* takes alphas="),
        ({"scopes": ["joint"]}, "takes scope="),
        ({"alphas": [math.inf]}, "alphas=inf must be"),
        ({"alphas": []}, "at least one number"),
        ({"epsilons": [0]}, "epsilons=0.0 must be a number above 0"),
    ],
)
def test_noise_of_wrong_grids(wrong, message):
    with pytest.raises(ParameterError, match=message):
        NoiseDisplay.from_frame(AGES, secret="sex", **wrong)


def test_no_noise_at_all_is_drawn_at_zero():
    alike = pd.DataFrame({"age": [1, 2] * 40, "sex": ["F", "F", "M", "M"] * 20})
    display = NoiseDisplay.from_frame(alike, secret="sex", alphas=[2, 4], epsilons=[1])
    assert display.ax_.get_yscale() == "linear"
    assert set(display.lines_["laplace", "transport", 1.0].get_ydata()) == {0.0}


# --- releases ---


def mixture(values, noise, points):
    law = getattr(stats, {"laplace": "laplace", "gaussian": "norm"}[noise.law.name])
    return np.mean([law.pdf(points, x, noise.scale_[0]) for x in values], axis=0)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_a_release_is_a_mixture_of_noise_around_each_row(noise):
    display = ReleaseDisplay.from_estimator(noise, AGES)
    assert display.pair == ("F", "M")
    for place, label in enumerate("FM"):
        values = AGES.loc[AGES["sex"] == label, "age"]
        points, density = display.after_[place].get_data()
        np.testing.assert_allclose(density, mixture(values, noise, points), rtol=1e-9)
        assert 0.95 < integrate.trapezoid(density, points) < 1.0
        steps = display.before_[place].get_data()
        expected, _ = np.histogram(values, steps.edges, density=True)
        np.testing.assert_allclose(steps.values, expected)
        # Whole years: every bin holds the same number of them.
        assert np.ptp(np.diff(steps.edges)) < 1e-9
        assert np.diff(steps.edges)[0] == round(np.diff(steps.edges)[0])


def test_the_axis_of_one_of_several_columns_says_so():
    assert ReleaseDisplay.from_estimator(LAPLACE, AGES).axes_[1].get_xlabel() == "age"
    for column in ("job", "hours"):
        display = ReleaseDisplay.from_estimator(ROW, JOBS, column=column)
        label = display.axes_[1].get_xlabel()
        assert label == f"{column} (1 of 2 columns released)"


def test_the_density_of_many_values_and_of_exponential_noise():
    frame = people(3000)[["pay", "sex"]]
    noise = RenyiPufferfishExponential(alpha=2, epsilon=5, power=0.6, secret="sex")
    noise.fit(frame)
    display = ReleaseDisplay.from_estimator(noise, frame)
    values = frame.loc[frame["sex"] == "M", "pay"].to_numpy()
    points, density = display.after_[1].get_data()
    s, p = noise.scale_[0], 0.6
    away = np.abs(points[:, None] - values) / s
    expected = np.exp(-(away**p)).mean(axis=1) / (2 * s * math.gamma(1 + 1 / p))
    np.testing.assert_allclose(density, expected, rtol=1e-9)


def test_categories_before_and_after():
    display = ReleaseDisplay.from_estimator(ROW, JOBS)
    assert display.column == "job"
    counts = pd.crosstab(JOBS["sex"], JOBS["job"], normalize="index").to_numpy()
    after = counts @ ROW.channels_["job"]
    for side in (0, 1):
        for drawn, expected in ((display.before_, counts), (display.after_, after)):
            heights = [bar.get_height() for bar in drawn[side]]
            np.testing.assert_allclose(heights, expected[side])
    one = display.plot(plt.subplots()[1])
    np.testing.assert_allclose(one.after_[1].get_ydata(), after[1])
    numbers = ReleaseDisplay.from_estimator(ROW, JOBS, column="hours")
    assert numbers.categories is None
    assert "Laplace noise" in numbers.title


def test_rare_categories_share_a_bar():
    labels = [f"k{i:02d}" for i in range(40)]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"kind": rng.choice(labels, 600), "sex": rng.choice(["F", "M"], 600)}
    )
    draw = RenyiPufferfishCategorical(secret="sex", categories=[labels]).fit(frame)
    display = ReleaseDisplay.from_estimator(draw, frame)
    assert len(display.categories) == 16
    assert display.categories[-1] == "25 others"
    for shares in (*display.before, *display.after):
        assert shares.sum() == pytest.approx(1)


def test_the_worst_pair_is_shown_unless_another_is_named():
    frame = people(400)[["age", "sex"]].assign(region=np.tile(["n", "s"], 200))
    frame.loc[::3, "sex"] = "X"
    far = (frame["sex"] == "X") & (frame["region"] == "s")
    frame.loc[far, "age"] += 30
    noise = RenyiPufferfishLaplace(secret="sex", prior="region").fit(frame)
    worst = noise.report_.worst_pair[0]
    display = ReleaseDisplay.from_estimator(noise, frame)
    assert worst == f"s: {display.pair[0]} – {display.pair[1]}"
    assert display.title.endswith(", s")
    values = frame.loc[far, "age"]
    points, density = display.after_[1].get_data()
    np.testing.assert_allclose(density, mixture(values, noise, points), rtol=1e-9)
    chosen = ReleaseDisplay.from_estimator(
        noise, frame, pair=("M", "F"), prior_value="n"
    )
    assert chosen.pair == ("M", "F")
    here = frame[(frame["sex"] == "M") & (frame["region"] == "n")]
    points, density = chosen.after_[0].get_data()
    np.testing.assert_allclose(density, mixture(here["age"], noise, points), rtol=1e-9)
    with pytest.raises(ParameterError, match=r"prior_value='w' .* \('n', 's'\)"):
        ReleaseDisplay.from_estimator(noise, frame, prior_value="w")


def test_labels_and_weights_beside_the_rows():
    inside = ReleaseDisplay.from_estimator(LAPLACE, AGES)
    outside = ReleaseDisplay.from_estimator(LAPLACE, AGES[["age"]], secret=AGES["sex"])
    np.testing.assert_array_equal(inside.after, outside.after)
    twice = ReleaseDisplay.from_estimator(
        LAPLACE, AGES, sample_weight=np.full(300, 2.0)
    )
    np.testing.assert_allclose(inside.after, twice.after)


def test_what_needs_no_noise_is_drawn_as_it_was():
    alike = pd.DataFrame({"age": [1.0, 2.5] * 40, "sex": ["F", "F", "M", "M"] * 20})
    with pytest.warns(ZeroNoiseWarning):
        noise = RenyiPufferfishLaplace(secret="sex").fit(alike)
    display = ReleaseDisplay.from_estimator(noise, alike)
    assert display.points is None
    np.testing.assert_array_equal(display.before, display.after)
    assert "unchanged" in display.title


def test_a_constant_column_and_clipped_output():
    frame = AGES.assign(age=5.0)
    display = CouplingDisplay.from_frame(frame, secret="sex", column="age")
    assert display.largest_shift == 0
    display.figure_.canvas.draw()
    clipped = RenyiPufferfishLaplace(secret="sex", bounds=(0, 100), clip_output=True)
    display = ReleaseDisplay.from_estimator(clipped.fit(AGES), AGES)
    assert "before clipping" in display.title
    constant = RenyiPufferfishLaplace(
        secret="sex", bounds=(0, 9), prior_model="bounded"
    )
    display = ReleaseDisplay.from_estimator(constant.fit(frame), frame)
    assert display.before[0].sum() > 0


def test_wrong_columns_pairs_and_estimators():
    with pytest.raises(ParameterError, match="column names 'pay'"):
        ReleaseDisplay.from_estimator(LAPLACE, AGES, column="pay")
    for pair in (("F", "X"), ("F", "F"), "FM", ("F",), 3, ([1], [2])):
        with pytest.raises(ParameterError, match=r"pair=.* must be two different"):
            ReleaseDisplay.from_estimator(LAPLACE, AGES, pair=pair)
    with pytest.raises(NotFittedError):
        ReleaseDisplay.from_estimator(RenyiPufferfishLaplace(secret="sex"), AGES)
    frame = AGES.assign(region=np.where(AGES["sex"] == "F", "n", "s"))
    with pytest.raises(ParameterError, match="no two values"):
        CouplingDisplay.from_frame(frame, secret="sex", column="age", prior="region")
    with pytest.raises(ParameterError, match="under any one prior"):
        CouplingDisplay.from_frame(
            frame, secret="sex", column="age", prior="region", pair=("F", "M")
        )
    with pytest.raises(ParameterError, match="there is none"):
        CouplingDisplay.from_frame(AGES, secret="sex", column="age", prior_value="n")


# --- couplings ---


@pytest.mark.parametrize("rows", [50, 20_000])
def test_a_coupling_has_the_quantiles_and_the_shifts_of_both(rows):
    frame = people(rows)
    display = CouplingDisplay.from_frame(frame, secret="sex", column="pay")
    groups = [frame.loc[frame["sex"] == label, "pay"] for label in "FM"]
    levels = display.levels[1:]
    assert len(levels) <= 1100
    assert levels[-1] == 1
    for curve, values in zip((display.first_, display.second_), groups, strict=True):
        # Round-off at the edge of a step is a step further at the most.
        steps = curve.get_data()
        np.testing.assert_array_equal(steps.edges, display.levels)
        low, high = (
            np.quantile(values, np.clip(levels + off, 0, 1), method="inverted_cdf")
            for off in (-1e-9, 1e-9)
        )
        assert ((low <= steps.values) & (steps.values <= high)).all()
    mean = stats.wasserstein_distance(*groups)
    assert display.mean_shift == pytest.approx(mean)
    _, start, end = display.largest_at
    assert abs(end - start) == display.largest_shift
    # The largest shift by a fine look at all levels.
    fine = np.union1d(*(np.arange(1, len(g) + 1) / len(g) for g in groups)) - 1e-9
    ends = [np.quantile(g, fine, method="inverted_cdf") for g in groups]
    shifts = np.abs(ends[1] - ends[0])
    assert display.largest_shift == pytest.approx(shifts.max())
    mass = np.diff(fine, prepend=0)
    for size in (0.3, mean, display.largest_shift):
        place = np.searchsorted(display.sizes, size, side="right")
        share = np.concatenate([[0.0], display.shares])[place]
        assert share == pytest.approx(mass[shifts <= size].sum(), abs=2e-3)
    x, y = display.shares_.get_data()
    assert (x[-1], y[-1]) == (display.largest_shift, 1.0)


def test_the_pair_with_the_largest_shift_and_frames_of_other_kinds():
    frame = people(90)
    frame.loc[::3, "sex"] = "X"
    frame.loc[frame["sex"] == "X", "age"] += 50
    frame["name"] = "text is not looked at"
    display = CouplingDisplay.from_frame(frame, secret="sex", column="age")
    assert "X" in display.pair
    for other, secret, column in (
        (pl.DataFrame(frame), "sex", "age"),
        (frame, frame["sex"], "age"),
        (frame[["pay", "age"]].to_numpy(), frame["sex"].to_numpy(), 1),
        (frame[["pay", "age"]].to_numpy(), frame["sex"].tolist(), 1),
    ):
        same = CouplingDisplay.from_frame(other, secret=secret, column=column)
        assert same.pair == display.pair
        np.testing.assert_array_equal(same.first, display.first)
    named = CouplingDisplay.from_frame(
        frame, secret="sex", column="age", pair=("M", "F"), sample_weight=np.ones(90)
    )
    assert named.pair == ("M", "F")
    values = frame.loc[frame["sex"] == "M", "age"]
    assert named.first[-1] == values.max()


def test_the_largest_shift_is_that_of_one_row_and_no_mean():
    values = {"a": [0, 1, 2, 3], "b": [2, 3, 4, 5], "c": [0, 1, 2, 9]}
    frame = pd.DataFrame(values).melt(var_name="group", value_name="x")
    display = CouplingDisplay.from_frame(frame, secret="group", column="x")
    assert display.pair == ("a", "c")
    assert (display.mean_shift, display.largest_shift) == (1.5, 6)


def test_parts_of_a_coupling():
    display = MAKE["coupling"]()
    assert len(display.axes_) == 2
    _, axes = plt.subplots(1, 2)
    assert display.plot(axes).axes_ == tuple(axes)
    _, ax = plt.subplots()
    assert display.plot(ax).axes_ == (ax,)
    assert display.plot(ax, kind="shifts").ax_ is ax
    assert len(display.plot(kind="shifts").figure_.axes) == 1
    with pytest.raises(ParameterError, match="kind='both' needs two axes"):
        display.plot(ax, kind="both")
    with pytest.raises(ParameterError, match="a pair of them"):
        display.plot(plt.subplots(3)[1])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("height", "column='height' is not a column"),
        (["age"], "the name of one column"),
        ("sex", "is the secret or the prior itself"),
    ],
)
def test_wrong_columns_of_a_coupling(column, message):
    with pytest.raises(ParameterError, match=message):
        CouplingDisplay.from_frame(AGES, secret="sex", column=column)


# --- trade-offs ---


def test_a_tradeoff_shows_means_and_deviations_of_each_setting():
    display = MAKE["trade-off"]()
    assert list(display.lines_) == ["α = 2", "α = 8"]
    x, mean = display.lines_["α = 8"].get_data()
    assert (x.tolist(), mean.tolist()) == ([1, 4], [0.1, 0.3])
    edge = display.bands_["α = 8"].get_paths()[0].vertices
    for point in ([1, 0.07], [1, 0.13], [4, 0.26], [4, 0.34]):
        assert np.isclose(edge, point).all(axis=1).any()
    assert display.ax_.get_ylabel() == "test score (mean ± std of 2 folds)"
    # Of settings that are not told apart the best counts.
    best = TradeoffDisplay.from_cv_results(
        RESULTS, privacy="param_noise__epsilon", lines=["ridge__alpha"]
    )
    (line,) = best.lines_.values()
    assert line.get_ydata().tolist() == [0.2, 0.4]
    by_order = TradeoffDisplay.from_cv_results(RESULTS, privacy="noise__alpha")
    assert by_order.ax_.get_xlabel() == "Rényi order α"
    assert list(by_order.lines_) == ["ε = 1", "ε = 4"]


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
def test_a_search_over_mechanisms_and_none():
    frame = people(120)
    model = Pipeline([("noise", "passthrough"), ("model", Ridge())])
    mechanisms = [
        cls(secret_from_y=True)
        for cls in (RenyiPufferfishLaplace, RenyiPufferfishGaussian)
    ]
    grid = [{"noise": mechanisms, "noise__epsilon": [1, 8]}, {"noise": ["passthrough"]}]
    scoring = ("r2", "neg_mean_absolute_error")
    search = GridSearchCV(model, grid, cv=2, scoring=scoring, refit="r2")
    search.fit(frame[["age", "pay"]], frame["sex"] == "M")
    results = search.cv_results_
    display = TradeoffDisplay.from_cv_results(
        results, privacy="noise__epsilon", metric="r2"
    )
    names = ["RenyiPufferfishLaplace", "RenyiPufferfishGaussian", "passthrough"]
    assert list(display.lines_) == names
    assert set(display.lines_["passthrough"].get_ydata()) == {
        results["mean_test_r2"][4]
    }
    assert display.lines_[names[1]].get_ydata().tolist() == list(
        results["mean_test_r2"][2:4]
    )
    assert display.n_folds == 2
    with pytest.raises(ParameterError, match=r"metric=None .*\(r2, neg_mean"):
        TradeoffDisplay.from_cv_results(results, privacy="noise__epsilon")
    with pytest.raises(ParameterError, match="privacy='noise' must hold numbers"):
        TradeoffDisplay.from_cv_results(results, privacy="noise", metric="r2")


def test_wrong_names_in_a_tradeoff():
    with pytest.raises(ParameterError, match="privacy='epsilon' is not a parameter"):
        TradeoffDisplay.from_cv_results(RESULTS, privacy="epsilon")
    with pytest.raises(ParameterError, match="lines='x' is not a parameter"):
        TradeoffDisplay.from_cv_results(RESULTS, privacy="noise__alpha", lines=["x"])


# --- audits ---


def test_the_bounds_of_an_audit_over_delta():
    display = AuditDisplay.from_estimator(AUDITOR)
    deltas, bounds = display.line_.get_data()
    for delta, bound in zip(deltas[::10], bounds[::10], strict=True):
        assert bound == AUDITOR.epsilon_lower(delta=delta)
    at = np.searchsorted(deltas, 0.01)
    assert (deltas[at], bounds[at]) == (0.01, AUDITOR.bound_)
    # The claim is made at its δ and holds from there on.
    assert display.claim_.get_xydata().tolist() == [[0.01, 1.0], [0.5, 1.0]]
    assert display.claim_.get_markevery() == [0]
    edge = display.refuted_.get_paths()[0].vertices
    assert edge[:, 1].max() == bounds.max()
    few = AuditDisplay.from_estimator(AUDITOR, deltas=[0.001])
    assert few.claim_ is None


def test_the_bounds_of_an_audit_of_a_renyi_claim():
    auditor = KernelRenyiAuditor(epsilon=1.0, alpha=4).fit(*samples())
    display = AuditDisplay.from_estimator(auditor, deltas=[0.001, 0.1])
    promise = LAPLACE.guarantee_  # (4, 1)-Rényi as well
    expected = [promise.to_epsilon(delta) for delta in (0.001, 0.1)]
    assert display.claim_.get_ydata().tolist() == expected
    over = AuditDisplay.from_estimator(auditor, alphas=[2, 4, 8])
    np.testing.assert_array_equal(
        over.line_.get_ydata(), auditor.epsilon_lower(alpha=[2, 4, 8])
    )
    assert over.claim_.get_xydata().tolist() == [[2, 1], [4, 1]]
    assert over.claim_.get_markevery() == [1]
    assert AuditDisplay.from_estimator(auditor, alphas=[6, 8]).claim_ is None
    pure = KernelRenyiAuditor(epsilon=1.0).fit(*samples())
    over = AuditDisplay.from_estimator(pure, alphas=[2, 8])
    assert over.claim_.get_xydata().tolist() == [[2, 1], [8, 1]]
    nothing = KernelRenyiAuditor().fit(*samples())
    assert AuditDisplay.from_estimator(nothing).claim_ is None


def test_the_bounds_of_an_audit_over_the_number_of_rows():
    X, Y = samples()
    auditor = KernelRenyiAuditor(epsilon=4.0)
    display = AuditDisplay.from_samples(auditor, X, Y, sizes=[600, 50])
    expected = [auditor(X[:50], Y[:50]), auditor(X, Y)]
    assert display.line_.get_xydata().tolist() == [
        [50, expected[0]],
        [600, expected[1]],
    ]
    assert not hasattr(auditor, "bound_")
    most = KernelRenyiAuditor(epsilon=4.0).fit(X[:50], Y[:50]).pairs_[0].ceiling
    assert display.ceiling_.get_ydata()[0] == most
    labels = pd.Series(np.tile(["F", "M"], 600), index=np.arange(1200)[::-1])
    both = pd.DataFrame(np.stack([X, Y], axis=1).reshape(1200, 1), index=labels.index)
    one = AuditDisplay.from_samples(auditor, both, secret=labels, sizes=[100, 1200])
    assert one.bound.tolist() == expected
    default = AuditDisplay.from_samples(RunningAudit(0.5), X.tolist(), Y.tolist())
    assert (default.x[0], default.x[-1], len(default.x)) == (50, 600, 8)
    running = RunningAudit(0.5).fit(X, Y)
    assert default.line_.get_ydata()[-1] == running.bound_
    assert default.ceiling_ is None
    assert np.isnan(default.bound[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"deltas": [0.0]}, "deltas=0.0 must be a number above 0"),
        ({"deltas": []}, "at least one number"),
        ({"alphas": [1.0]}, "alphas=1.0 must be"),
        ({"alphas": [2.0], "deltas": [0.1]}, "not both"),
    ],
)
def test_wrong_places_of_an_audit(given, message):
    with pytest.raises(ParameterError, match=message):
        AuditDisplay.from_estimator(AUDITOR, **given)


def test_wrong_audits():
    with pytest.raises(NotFittedError):
        AuditDisplay.from_estimator(KernelRenyiAuditor())
    with pytest.raises(ParameterError, match="RunningAudit has no bounds over δ"):
        AuditDisplay.from_estimator(RunningAudit(1.0))
    kernel = KernelRenyiAuditor(claim="kernel_renyi", alpha=2, epsilon=1.0)
    with pytest.raises(ParameterError, match="counts no events"):
        AuditDisplay.from_estimator(kernel.fit(*samples(60)))
    for sizes in ([601], [], [0], [100.5]):
        with pytest.raises(ParameterError, match="sizes="):
            AuditDisplay.from_samples(AUDITOR, *samples(), sizes=sizes)


def test_the_legend_of_an_audit_that_refutes_nothing_does_not_say_refuted():
    def texts(display):
        return [text.get_text() for text in display.legend_.get_texts()]

    X, Y = (samples(seed=seed)[0] for seed in (0, 1))
    alike = KernelRenyiAuditor(epsilon=1.0, random_state=0).fit(X, Y)
    nothing = AuditDisplay.from_estimator(alike)
    assert nothing.bound.max() == 0
    assert "refuted" not in texts(nothing)
    assert texts(nothing)[0] == "95 % lower bound"
    assert "refuted" in texts(AuditDisplay.from_estimator(AUDITOR))


def test_an_audit_that_knows_nothing_is_drawn_empty():
    kernel = KernelRenyiAuditor(claim="kernel_renyi", alpha=2, epsilon=1.0)
    display = AuditDisplay.from_samples(kernel, *samples(60), sizes=[40, 60])
    assert not np.isfinite(display.bound).any()
    assert np.isnan(display.line_.get_ydata()).all()
    assert "order 2" in display.ax_.get_ylabel()
    display.figure_.canvas.draw()


def test_failed_fits_and_searches_without_the_parameter():
    scores = {"mean_test_score": np.array([np.nan, 0.4, 0.1, np.nan])}
    display = TradeoffDisplay.from_cv_results(
        RESULTS | scores, privacy="noise__epsilon", lines=[]
    )
    (line,) = display.lines_.values()
    assert line.get_ydata().tolist() == [0.1, 0.4]
    none = np.ma.masked_all(4, dtype=object)
    with pytest.raises(ParameterError, match="has no value in any candidate"):
        TradeoffDisplay.from_cv_results(
            RESULTS | {"param_noise__epsilon": none}, privacy="noise__epsilon"
        )


def test_long_names_stand_beside_the_title():
    frame = AGES.assign(sex=AGES["sex"].map(lambda s: f"{s}, a rather long answer"))
    noise = RenyiPufferfishLaplace(secret="sex").fit(frame)
    with plt.rc_context({"figure.figsize": (6, 4)}):
        display = ReleaseDisplay.from_estimator(noise, frame)
        display.figure_.canvas.draw()
    texts = display.ax_.findobj(matplotlib.text.Text)
    (title,) = (text for text in texts if text.get_text() == "Before")
    legend = display.legend_.get_window_extent()
    assert not legend.overlaps(title.get_window_extent())
    assert legend.x0 > display.figure_.bbox.x0


def test_bins_of_whole_numbers_hold_equally_many_of_them():
    frame = pd.DataFrame(
        {"score": np.arange(400) % 11, "sex": np.repeat(["F", "M"], 200)}
    )
    noise = RenyiPufferfishLaplace(secret="sex").fit(frame)
    display = ReleaseDisplay.from_estimator(noise, frame)
    np.testing.assert_allclose(display.edges % 1, 0.5)
    assert display.before[0].sum() * np.diff(display.edges)[0] == pytest.approx(1)


@pytest.mark.parametrize(("sizes", "fewest"), [([200, 20_000], 2), ([60, 600], 3)])
@pytest.mark.parametrize("width", [3.0, 6.4])
def test_numbers_along_an_axis_do_not_overlap(width, sizes, fewest):
    figure, ax = plt.subplots(figsize=(width, 3.6), layout="constrained")
    AuditDisplay(
        over="n",
        x=np.array(sizes, dtype=float),
        bound=np.array([0.2, 0.9]),
        claim_x=np.array([]),
        claim=np.array([]),
        claim_text=None,
        confidence=0.95,
    ).plot(ax)
    figure.canvas.draw()
    low, high = ax.get_xlim()
    shown = [
        label.get_window_extent()
        for label in ax.get_xticklabels()
        if low <= label.get_position()[0] <= high
    ]
    assert len(shown) >= fewest
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(shown))
