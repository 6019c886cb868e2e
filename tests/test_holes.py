"""Ways in which a release might say more than promised, each of them closed."""

import math
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from skpuffer import (
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    compare_mechanisms,
)
from skpuffer.exceptions import ParameterError, ReproducibleNoiseWarning

LAWS = [RenyiPufferfishLaplace, RenyiPufferfishGaussian, RenyiPufferfishExponential]
quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


@pytest.mark.parametrize("mechanism", LAWS)
@pytest.mark.parametrize("scope", ["joint", "column"])
@pytest.mark.parametrize("columns", [["v"], ["v", "w"]])
@pytest.mark.parametrize("unit", [1e-170, 1e-160, 1e-9, 1e9, 1e160, 1e200])
def test_tiny_and_huge_values_are_not_constant(mechanism, scope, columns, unit):
    # Their squares vanish, or overflow; their scale is the unit's multiple.
    plain = pd.DataFrame({"v": [0.0, 1.0] * 40, "s": [0, 1] * 40})
    plain = plain.assign(w=plain["v"] * 3)[[*columns, "s"]]
    moved = plain.assign(**{name: plain[name] * unit for name in columns})
    # Heavy tails want more of it.
    epsilon = 6 if mechanism is RenyiPufferfishExponential else 3
    noise = mechanism(epsilon=epsilon, secret="s", scope=scope)
    expected = noise.fit(plain).scale_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = noise.fit(moved)
    np.testing.assert_allclose(found.scale_, expected * unit, rtol=1e-5)
    spread = found.report_.noise_to_spread
    assert all(0.1 < ratio < 10 for ratio in spread)


def test_a_rare_row_is_not_lost():
    frame = pd.DataFrame({"v": [0.0] * 99 + [1000.0], "s": [0] * 50 + [1] * 50})
    weight = np.r_[np.full(99, 1e300), 1e-300]
    noise = RenyiPufferfishLaplace(alpha=math.inf, secret="s")
    noise.fit(frame, sample_weight=weight)
    assert noise.scale_[0] == pytest.approx(1000, rel=1e-5)


def test_values_too_far_apart_are_refused_with_their_column():
    frame = pd.DataFrame({"v": [-1.7e308, 1.7e308, 0, 1] * 10, "s": [0, 1, 1, 1] * 10})
    with pytest.raises(ValueError, match=r"calibrating v: .*too far apart"):
        RenyiPufferfishLaplace(secret="s").fit(frame)


@quiet
def test_scales_for_every_prior_on_the_bounds_do_not_depend_on_the_data():
    rng = np.random.default_rng(0)
    scales = set()
    for spread in (1.0, 20.0):
        frame = pd.DataFrame(
            {
                "a": rng.normal(50, spread, 200),
                "b": rng.normal(50, 5, 200),
                "s": rng.integers(0, 2, 200),
            }
        )
        noise = RenyiPufferfishLaplace(
            secret="s", prior_model="bounded", bounds={"a": (0, 100), "b": (0, 100)}
        )
        scales.add(tuple(noise.fit(frame).scale_))
    assert len(scales) == 1


def test_threads_share_no_noise():
    frame = pd.DataFrame(np.zeros((50, 8))).add_prefix("c")
    train = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 8))).add_prefix("c")
    noise = RenyiPufferfishLaplace(random_state=3)
    noise.fit(train, secret=np.arange(200) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        with ThreadPoolExecutor(4) as pool:
            released = list(pool.map(lambda _: noise.transform(frame), range(12)))
    columns = np.concatenate([part.to_numpy() for part in released], axis=1).T
    assert len(np.unique(columns, axis=0)) == 12 * 8


@quiet
def test_labels_of_persons_are_not_kept():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"v": rng.normal(size=2500), "s": rng.integers(0, 2, 2500)})
    frame["person"] = np.arange(2500)
    with pytest.raises(ValueError, match="prior 'person' has 2500 distinct values"):
        RenyiPufferfishLaplace(secret="s", prior="person").fit(frame)
    frame["a"], frame["b"] = frame["person"] % 10, frame["person"] // 10 % 10
    with pytest.raises(ValueError, match="secret columns together have 100 distinct"):
        RenyiPufferfishLaplace(secret=["a", "b"]).fit(frame.drop(columns="person"))


@quiet
@pytest.mark.parametrize("secret", [0, 1, 2])
def test_columns_of_an_array_are_called_by_their_positions(secret):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(50 * i, 5, 300) for i in range(3)])
    X[:, secret] = rng.integers(0, 2, 300)
    released = [i for i in range(3) if i != secret]
    bounds = {released[1]: (50 * released[1] - 1, 50 * released[1] + 1)}
    noise = RenyiPufferfishLaplace(
        alpha=4, epsilon=50, secret=secret, bounds=bounds, scope="column"
    ).fit(X)
    names = [f"x{i}" for i in released]
    assert noise.guarantee_.columns == tuple(names)
    assert noise.guarantee_.secret == (f"x{secret}",)
    assert noise.get_feature_names_out().tolist() == names
    assert noise.guarantee_.bounds == (None, bounds[released[1]])
    out = noise.transform(X)
    assert abs(out[:, 1].mean() - 50 * released[1]) < 1
    assert out[:, 0].std() > 3
    with pytest.raises(ParameterError, match=rf"names {secret}, which is not a rel"):
        RenyiPufferfishLaplace(secret=secret, bounds={secret: (0, 1)}).fit(X)
    weighted = RenyiPufferfishLaplace(
        secret=secret, column_weights={released[0]: 1.0, released[1]: 4.0}
    ).fit(X)
    assert weighted.scale_[1] / weighted.scale_[0] == pytest.approx(4, rel=1e-5)


@quiet
def test_frames_with_numbers_for_names():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({0: rng.integers(0, 2, 200), 1: rng.integers(17, 90, 200)})
    frame[2] = rng.normal(40, 10, 200)
    noise = RenyiPufferfishLaplace(secret=0, bounds={1: (17, 20)}, scope="column")
    assert noise.fit(frame).guarantee_.columns == ("1", "2")
    assert noise.guarantee_.bounds == ((17.0, 20.0), None)
    assert list(noise.transform(frame).columns) == [1, 2]
    with pytest.raises(ValueError, match="the columns are 2, 1, and were 1, 2 in fit"):
        noise.transform(frame[[2, 1]])


def test_what_weakens_a_promise_is_in_its_sentence_and_record():
    frame = pd.DataFrame({"v": [0.0, 1.0, 2.0, 5.0] * 25, "s": [0, 1, 0, 0] * 25})
    seeded = RenyiPufferfishLaplace(secret="s", random_state=0).fit(frame).guarantee_
    assert seeded.seeded
    assert "nothing is promised against anyone who knows or guesses" in str(seeded)
    weighted = RenyiPufferfishLaplace(secret="s").fit(
        frame, sample_weight=np.arange(1, 101)
    )
    assert "for the fitted, weighted prior" in str(weighted.guarantee_)
    near = RenyiPufferfishLaplace(alpha=1.0000001, epsilon=1.0000004, secret="s")
    # The order exactly; the bound never below what holds.
    assert "(1.0000001, 1.00001)-Rényi" in str(near.fit(frame).guarantee_)
    alike = pd.DataFrame({"v": [0.0, 1.0] * 50, "s": [0, 0, 1, 1] * 25})
    with pytest.warns(UserWarning, match="without noise"):
        still = RenyiPufferfishLaplace(secret="s").fit(alike)
    assert "released unchanged (v)" in str(still.guarantee_)
    with pytest.raises(TypeError):
        seeded.group_sizes[0] = ("x", "y", 1)


def test_groups_with_labels_alike_in_print_are_kept_apart():
    labels = [1000000.1] * 5 + [1000000.2] * 95
    frame = pd.DataFrame({"v": np.arange(100.0), "s": labels})
    with pytest.warns(UserWarning, match=r"1000000.1 \(5 rows\)"):
        noise = RenyiPufferfishLaplace(epsilon=20, secret="s").fit(frame)
    assert noise.guarantee_.group_sizes == (
        (None, 1000000.1, 5),
        (None, 1000000.2, 95),
    )


def test_options_set_after_fit_are_checked():
    frame = pd.DataFrame({"v": [0.0, 1.0, 2.0, 5.0] * 25, "s": [0, 1, 0, 0] * 25})
    noise = RenyiPufferfishLaplace(secret="s").fit(frame)
    with pytest.raises(ParameterError, match="clip_output=True was set after a fit"):
        noise.set_params(clip_output=True).transform(frame)
    noise.set_params(clip_output=False, out_of_bounds="Error")
    with pytest.raises(ParameterError, match="out_of_bounds='Error'"):
        noise.transform(frame)


def test_numbers_as_text_are_refused_in_arrays_as_in_frames():
    X = np.array([["1", "a"], ["2", "b"]] * 20, dtype=object)
    with pytest.raises(ValueError, match="holds text"):
        RenyiPufferfishLaplace(secret=1).fit(X)
    noise = RenyiPufferfishLaplace(secret="s").fit(
        pd.DataFrame({"v": [0.0, 1.0] * 25, "s": ["a", "b"] * 25})
    )
    with pytest.raises(ValueError, match="holds text"):
        noise.transform(np.array([["a"]], dtype=object))


@quiet
def test_comparison_by_positions_and_by_labels():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(90, 2)), rng.integers(0, 2, (90, 2))])
    by_position = compare_mechanisms(X, secret=[2, 3], laws="laplace")
    assert set(by_position["column"]) == {"x0", "x1"}
    one = compare_mechanisms(X[:, :3], secret=np.int64(2), scopes="joint")
    labels = compare_mechanisms(
        X[:, :2], secret=X[:, 2].astype(str).tolist(), scopes="joint"
    )
    assert labels["scale"].tolist() == one["scale"].tolist()
    with pytest.raises(ParameterError, match="scopes="):
        compare_mechanisms(X, secret=2, scope="joint")
    with pytest.raises(ParameterError, match="calibrations="):
        compare_mechanisms(X, secret=2, calibration="w_inf")
    with pytest.raises(ParameterError, match="nothing to compare at alpha=inf"):
        compare_mechanisms(X, secret=2, laws=["gaussian"], alpha=math.inf)


def test_duplicate_names_and_nothing_to_release():
    frame = pd.DataFrame(np.ones((40, 3)), columns=["a", "a", "s"])
    with pytest.raises(ValueError, match="several columns named a: rename"):
        RenyiPufferfishLaplace(secret="s").fit(frame)
    with pytest.raises(ParameterError, match="no column to release"):
        RenyiPufferfishLaplace().fit(frame[[]], secret=np.arange(40) % 2)


def test_the_names_of_the_columns_index_survive():
    frame = pd.DataFrame({"v": [0.0, 1.0] * 25, "s": ["a", "b"] * 25})
    frame.columns.name = "measure"
    released = RenyiPufferfishLaplace(secret="s").fit_transform(frame)
    assert released.columns.name == "measure"


@pytest.mark.slow
def test_import_without_docstrings():
    code = "import skpuffer; skpuffer.RenyiPufferfishLaplace()"
    subprocess.run([sys.executable, "-OO", "-c", code], check=True)
