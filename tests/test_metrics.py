"""The public divergence and its streamed form: values, shapes, messages."""

import inspect
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics.pairwise import pairwise_kernels

from skpuffer.core.gram import gram_divergence
from skpuffer.exceptions import ParameterError
from skpuffer.metrics import (
    KernelMoments,
    _roads,
    kernel_renyi_divergence,
    median_gamma,
)

ORDERS = [0.5, 1.0, 1.5, 2.0, 12.0, math.inf]
REGS = [1e-3, 0.1]
DEFAULTS = {
    "alpha": 2.0,
    "reg": 1e-3,
    "metric": "rbf",
    "gamma": None,
    "normalize": False,
    "approx": None,
    "n_components": 512,
    "random_state": None,
}


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), rng.normal(0.5, 1.2, size=(45, 3))


def by_features(first, second, alpha, reg):
    """The definition in the eigenvectors of the joint Gram matrix."""
    s_p, s_q = (rows.T @ rows / len(rows) for rows in (first, second))
    values, vectors = np.linalg.eigh(s_q + reg * np.eye(len(s_q)))
    power = -1.0 if math.isinf(alpha) else (1 - alpha) / alpha
    inner = vectors.T @ s_p @ vectors * np.sqrt(np.outer(values**power, values**power))
    found = np.linalg.eigvalsh(inner)
    if math.isinf(alpha):
        return math.log(found[-1])
    return math.log((found[found > 0] ** alpha).sum()) / (alpha - 1)


def joint_features(kernel, X, Y):
    both = np.concatenate([X, Y])
    values, vectors = np.linalg.eigh(kernel(both, both))
    rows = vectors * np.sqrt(np.maximum(values, 0))
    return rows[: len(X)], rows[len(X) :]


def test_the_signature_is_the_documented_one():
    parameters = inspect.signature(kernel_renyi_divergence).parameters
    found = {name: p.default for name, p in parameters.items() if name in DEFAULTS}
    assert found == DEFAULTS
    assert list(parameters)[:2] == ["X", "Y"]


# --- values ---


@pytest.mark.parametrize(
    ("metric", "extra"),
    [
        ("rbf", {"gamma": 0.4}),
        ("laplacian", {"gamma": 0.2}),
        ("cosine", {}),
        ("chi2", {"gamma": 0.5}),
        ("poly", {"normalize": True, "degree": 2, "coef0": 1.0}),
        ("linear", {"normalize": True}),
    ],
)
def test_kernels_by_name(metric, extra, samples):
    X, Y = (np.abs(rows) for rows in samples)
    kernel = {k: v for k, v in extra.items() if k != "normalize"}

    def normalised(A, B):
        raw = pairwise_kernels(A, B, metric=metric, **kernel)
        sides = (
            np.sqrt(np.diag(pairwise_kernels(C, C, metric=metric, **kernel)))
            for C in (A, B)
        )
        return raw / np.outer(*sides)

    rows = joint_features(normalised, X, Y)
    found = kernel_renyi_divergence(
        X, Y, alpha=[1.5, 2.0, 12.0, math.inf], reg=REGS, metric=metric, **extra
    )
    expected = [
        [by_features(*rows, alpha, reg) for reg in REGS]
        for alpha in (1.5, 2.0, 12.0, math.inf)
    ]
    assert np.abs(found - expected).max() < 1e-9


def test_a_callable_and_precomputed_matrices(samples):
    X, Y = samples[0][:20], samples[1][:15]
    expected = kernel_renyi_divergence(X, Y, alpha=ORDERS, reg=REGS, gamma=0.4)

    def kernel(x, y):
        return math.exp(-0.4 * float(((x - y) ** 2).sum()))

    found = kernel_renyi_divergence(X, Y, alpha=ORDERS, reg=REGS, metric=kernel)
    assert np.abs(found[1:] - expected[1:]).max() < 1e-9
    # Rounding counts at order 1/2.
    assert np.abs(found[0] - expected[0]).max() < 1e-6
    blocks = [np.exp(-0.4 * cdist(a, b) ** 2) for a, b in ((X, X), (Y, Y), (Y, X))]
    for kind in (np.asarray, pd.DataFrame):
        k_xx, k_yy, k_yx = map(kind, blocks)
        found = kernel_renyi_divergence(
            k_xx, k_yy, K_yx=k_yx, metric="precomputed", alpha=2.0, reg=REGS
        )
        assert np.abs(found - expected[3]).max() < 1e-10
    scale_x, scale_y = np.linspace(0.5, 3, 20), np.linspace(2, 9, 15)
    found = kernel_renyi_divergence(
        np.outer(scale_x, scale_x) * blocks[0],
        np.outer(scale_y, scale_y) * blocks[1],
        K_yx=np.outer(scale_y, scale_x) * blocks[2],
        metric="precomputed",
        normalize=True,
        reg=REGS,
    )
    assert np.abs(found - expected[3]).max() < 1e-10


def test_shapes(samples):
    one = kernel_renyi_divergence(*samples)
    assert type(one) is float
    grid = kernel_renyi_divergence(*samples, alpha=ORDERS, reg=REGS)
    assert grid.shape == (6, 2)
    assert grid[3, 0] == one
    column = kernel_renyi_divergence(*samples, alpha=tuple(ORDERS), reg=0.1)
    row = kernel_renyi_divergence(*samples, alpha=2, reg=np.array(REGS))
    assert column.shape == (6,)
    assert row.shape == (2,)
    assert np.array_equal(column, grid[:, 1])
    assert np.array_equal(row, grid[3])
    assert kernel_renyi_divergence(*samples, alpha=[2.0], reg=[0.1]).shape == (1, 1)
    assert type(kernel_renyi_divergence(*samples, alpha=np.float32(2))) is float


@pytest.mark.parametrize("approx", [None, "rff", "nystroem"])
def test_frames_dtypes_offsets_and_row_order(samples, approx):
    X, Y = samples
    plain = kernel_renyi_divergence(X, Y, alpha=[2.0, 12.0], approx=approx)
    names = ["a", "b", "c"]
    for frame in (pd.DataFrame, pl.DataFrame):
        framed = [frame(dict(zip(names, rows.T, strict=True))) for rows in samples]
        found = kernel_renyi_divergence(*framed, alpha=[2.0, 12.0], approx=approx)
        assert np.abs(found - plain).max() < 1e-12
    lists = kernel_renyi_divergence(
        X.tolist(), Y.tolist(), alpha=[2.0, 12.0], approx=approx
    )
    assert np.array_equal(lists, plain)
    moved = kernel_renyi_divergence(X + 1e6, Y + 1e6, alpha=[2.0, 12.0], approx=approx)
    assert np.abs(moved - plain).max() < 1e-5
    narrow = kernel_renyi_divergence(
        X.astype(np.float32), Y.astype(np.float32), alpha=[2.0, 12.0], approx=approx
    )
    assert np.abs(narrow - plain).max() < 1e-4
    if approx != "nystroem":  # The landmarks are chosen by position.
        mixed = kernel_renyi_divergence(
            X[::-1], Y[::-1], alpha=[2.0, 12.0], approx=approx
        )
        assert np.abs(mixed - plain).max() < 1e-10


def test_booleans_are_numbers():
    X, Y = np.eye(4, 3, dtype=bool), np.ones((2, 3), dtype=bool)
    found = kernel_renyi_divergence(X, Y)
    assert found == kernel_renyi_divergence(X.astype(float), Y.astype(float))
    assert found == kernel_renyi_divergence(pd.DataFrame(X), pd.DataFrame(Y))


def test_results_repeat_and_the_seed_is_used(samples):
    for approx in ("rff", "nystroem"):
        options = {"approx": approx, "n_components": 20}
        first = kernel_renyi_divergence(*samples, **options)
        assert first == kernel_renyi_divergence(*samples, **options)
        assert first == kernel_renyi_divergence(*samples, random_state=0, **options)
        assert first != kernel_renyi_divergence(*samples, random_state=1, **options)
    assert kernel_renyi_divergence(*samples) == kernel_renyi_divergence(
        *samples, random_state=5
    )


# --- gamma ---


def test_the_median_rule(samples):
    both = np.concatenate(samples)
    expected = 1 / np.median(pdist(both)) ** 2
    assert median_gamma(*samples) == pytest.approx(expected, rel=1e-12)
    by_default = kernel_renyi_divergence(*samples)
    assert by_default == kernel_renyi_divergence(*samples, gamma=median_gamma(*samples))
    laplacian = median_gamma(*samples, metric="laplacian")
    assert laplacian == pytest.approx(
        1 / np.median(pdist(both, "cityblock")), rel=1e-12
    )
    assert kernel_renyi_divergence(*samples, metric="laplacian") == pytest.approx(
        kernel_renyi_divergence(*samples, metric="laplacian", gamma=laplacian),
        rel=1e-12,
    )
    scaled = median_gamma(*(1000 * rows for rows in samples))
    assert scaled == pytest.approx(expected / 1e6, rel=1e-12)


def test_the_median_of_a_subsample():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(4000, 2)), rng.normal(size=(3000, 2))
    found = median_gamma(X, Y)
    assert found == median_gamma(X, Y) == median_gamma(X, Y, random_state=0)
    assert found != median_gamma(X, Y, random_state=1)
    # The median distance of two rows of N(0, I) in the plane is 2 √(log 2).
    assert found == pytest.approx(1 / (4 * math.log(2)), rel=0.1)


def test_no_median_to_go_by():
    same = np.ones((5, 2))
    with pytest.raises(ParameterError, match=r"is 0 \(most rows are identical\): give"):
        kernel_renyi_divergence(same, same)
    assert kernel_renyi_divergence(same, same, gamma=1.0) == pytest.approx(
        -math.log1p(1e-3), rel=1e-9
    )
    huge = 1e200 * np.arange(6.0).reshape(3, 2)
    for rows in (huge, 1e307 * np.array([[-17.0], [17.0]])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ParameterError, match="rescale the columns"):
                kernel_renyi_divergence(rows, rows)
    with pytest.raises(ParameterError, match="'poly' has no width"):
        median_gamma(same, same, metric="poly")


def test_the_value_of_equal_distributions_is_no_verdict():
    # 200 rows in 30 columns: about 1.1 where the truth is below 0, a false alarm
    # against ε = 1.
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(2, 200, 30))
        found.append(kernel_renyi_divergence(X, Y, alpha=12, reg=0.005 / math.e))
    assert np.mean(found) == pytest.approx(1.1, abs=0.05)


# --- approximations ---


def test_fourier_features_approach_the_kernel_and_are_exact_for_their_own(samples):
    exact = kernel_renyi_divergence(*samples, alpha=[1, 2, 6], reg=[0.05], gamma=0.3)
    gaps = [
        np.abs(
            kernel_renyi_divergence(
                *samples,
                alpha=[1, 2, 6],
                reg=[0.05],
                gamma=0.3,
                approx="rff",
                n_components=size,
            )
            - exact
        ).max()
        for size in (20, 4000)
    ]
    assert gaps[1] < 0.02 < gaps[0]
    # Exact for k(x, y) = mean of cos ω(x − y), which is a kernel as any other.
    rng = np.random.default_rng([3, 1])
    frequencies = math.sqrt(0.6) * rng.standard_normal((3, 10))

    def own(A, B):
        return np.cos((A[:, np.newaxis] - B) @ frequencies).mean(axis=2)

    X, Y = samples
    found = kernel_renyi_divergence(
        X,
        Y,
        alpha=ORDERS[1:],
        reg=REGS,
        gamma=0.3,
        approx="rff",
        n_components=20,
        random_state=3,
    )
    expected = kernel_renyi_divergence(
        own(X, X),
        own(Y, Y),
        K_yx=own(Y, X),
        alpha=ORDERS[1:],
        reg=REGS,
        metric="precomputed",
    )
    assert np.abs(found - expected).max() < 1e-9


def test_nystroem_is_below_the_kernel_and_exact_with_all_rows(samples):
    alphas, regs = [1.5, 2.0, 12.0, math.inf], [1e-2, 0.1]
    for extra in ({}, {"metric": "poly", "normalize": True, "degree": 2}):
        exact = kernel_renyi_divergence(*samples, alpha=alphas, reg=regs, **extra)
        options = {"approx": "nystroem", "alpha": alphas, "reg": regs} | extra
        every = kernel_renyi_divergence(*samples, **options, n_components=500)
        assert np.abs(every - exact).max() < 1e-6
        few = kernel_renyi_divergence(*samples, **options, n_components=6)
        assert (few <= exact + 1e-9).all()


def test_nystroem_of_a_kernel_that_is_none(samples):
    with pytest.raises(ValueError, match="not positive semi-definite"):
        kernel_renyi_divergence(
            *samples, metric=lambda x, y: math.cos(x @ x + y @ y), approx="nystroem"
        )


# --- what is refused ---


def refused(message, *args, error=ValueError, **kwargs):
    with pytest.raises(error, match=re.escape(message)):
        kernel_renyi_divergence(*args, **kwargs)


@pytest.mark.parametrize(
    "value", [True, "2", None, [[2.0]], [], [2.0, True], 2j, [1, [2]]]
)
@pytest.mark.parametrize("name", ["alpha", "reg"])
def test_orders_and_regularisations_are_numbers(name, value, samples):
    nested = isinstance(value, list) and any(isinstance(item, list) for item in value)
    shown = f"a list of {len(value)}" if nested else repr(value)
    message = f"{name}={shown} must be a number, or a non-empty one-dimensional array"
    refused(message, *samples, error=ParameterError, **{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.3}, "alpha=0.3 must be at least 1/2 (inf allowed)"),
        ({"alpha": [2, math.nan]}, "alpha=nan must be at least 1/2"),
        ({"alpha": -math.inf}, "alpha=-inf must be at least 1/2"),
        ({"reg": 9e-11}, "reg=9e-11 must be finite and at least 1e-10"),
        ({"reg": [0.1, 0.0]}, "reg=0.0 must be finite and at least 1e-10"),
        ({"reg": math.inf}, "reg=inf must be finite"),
        (
            {"metric": "gauss"},
            "metric='gauss' must be a function of two rows, or one of",
        ),
        ({"metric": ["rbf"]}, "metric=['rbf'] must be a function of two rows"),
        ({"gamma": 0.0}, "gamma=0.0 must be a number above 0"),
        ({"gamma": True}, "gamma=True must be a number above 0"),
        ({"gamma": "scale"}, "gamma='scale' must be a number above 0"),
        ({"gamma": 1.0, "metric": "linear"}, "gamma=1.0 has no meaning for"),
        (
            {"gamma": 1.0, "metric": max},
            "gamma=1.0 has no meaning for metric=a callable",
        ),
        ({"normalize": 1}, "normalize=1 must be True or False"),
        ({"approx": "fourier"}, "approx='fourier' must be None, 'rff'"),
        ({"approx": "rff", "metric": "chi2"}, "take approx='nystroem'"),
        ({"approx": "rff", "n_components": 7}, "n_components=7 must be even"),
        ({"approx": "nystroem", "alpha": 1.0}, "take alpha > 1, or approx='rff'"),
        ({"n_components": 0}, "n_components=0 must be an integer from 1"),
        ({"n_components": 2.5}, "n_components=2.5 must be an integer from 1"),
        ({"random_state": -1}, "random_state=-1 must be an integer from 0"),
        ({"random_state": True}, "random_state=True must be an integer from 0"),
        ({"K_yx": np.eye(3)}, "K_yx goes with metric='precomputed'"),
        ({"metric": "precomputed", "K_yx": 0, "degree": 2}, "degree has no meaning"),
        ({"metric": "precomputed", "approx": "rff"}, "needs the rows"),
    ],
)
def test_parameters_before_any_data(options, message):
    # The samples are not even looked at.
    refused(message, None, None, error=ParameterError, **options)


def test_columns(samples):
    X, Y = samples
    refused("X has 3 columns and Y has 2", X, Y[:, :2])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    other = pd.DataFrame(Y, columns=["a", "c", "d"])
    refused("(b only in X): select them alike", frame, other)
    refused("in another order", frame, frame[["b", "a", "c"]])
    found = kernel_renyi_divergence(frame, Y)
    assert found == pytest.approx(kernel_renyi_divergence(X, Y), rel=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_missing_and_other_values_name_their_column(samples, frame):
    X, Y = samples
    for value, word in ((math.nan, "missing (NaN)"), (-math.inf, "infinite")):
        bad = Y.copy()
        bad[[3, 7], 1] = value
        refused(f"column 1 of Y is {word} in 2 of 45 rows", X, bad)
        refused(
            f"column 'b' of X is {word} in 2 of 45 rows",
            frame(dict(zip("abc", bad.T, strict=True))),
            frame(dict(zip("abc", X.T, strict=True))),
        )
    words = frame({"a": [1.0, 2.0], "b": ["x", "y"]})
    refused("column 'b' of X holds String", words, words)


def test_masked_values_are_missing():
    bad = np.ma.masked_array(np.ones((4, 2)), mask=np.eye(4, 2, dtype=bool))
    refused("column 0 of Y is missing (NaN) in 1 of 4 rows", np.ones((3, 2)), bad)


@pytest.mark.parametrize(
    "words",
    [np.array([["1", "2"]]), [["1", 2.0]], np.array([[1.0, "2"]], dtype=object)],
)
def test_text_is_no_number(words):
    refused("does not hold numbers", words, np.ones((2, 2)))


def test_other_containers():
    plain = np.ones((3, 2))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        kernel_renyi_divergence(csr_array(plain), plain)
    with pytest.raises(ValueError, match="1D array"):
        kernel_renyi_divergence(plain[:, 0], plain)
    with pytest.raises(ValueError, match=r"Y.*0 sample|0 sample.*"):
        kernel_renyi_divergence(plain, plain[:0])
    with pytest.raises(TypeError, match=r"Y is a lazy frame: collect"):
        kernel_renyi_divergence(plain, pl.LazyFrame({"a": [1.0]}))
    with pytest.raises(ValueError, match="does not hold numbers"):
        kernel_renyi_divergence(plain, np.array([["2020-01-01"]], "datetime64[D]"))


def test_kernels_that_are_not_of_unit_length(samples):
    X, Y = samples
    above = "above 1 the divergence would be inflated: set normalize=True"
    for approx in (None, "nystroem"):
        refused(above, X, Y, metric="linear", approx=approx, error=ParameterError)
    X, Y = (rows / np.linalg.norm(rows, axis=1).max() for rows in samples)
    assert math.isfinite(kernel_renyi_divergence(X, Y, metric="linear"))
    for alpha in (0.7, 1.0):
        refused(
            "for alpha <= 1 it must be 1: set normalize=True, or take alpha > 1",
            X,
            Y,
            metric="linear",
            alpha=[alpha, 2.0],
            error=ParameterError,
        )
    Y[:2] = 0
    refused(
        "k(x, x), which is not positive in 2 of 45 rows",
        X,
        Y,
        metric="linear",
        normalize=True,
    )
    refused(
        "k(x, x) is not positive in any row of Y",
        X,
        0 * Y,
        metric="cosine",
        error=ParameterError,
    )
    refused(
        "k(x, x) is not positive in any row of X",
        np.abs(X),
        np.abs(X),
        metric="additive_chi2",
        error=ParameterError,
    )


def test_kernels_that_are_no_inner_products(samples):
    X, Y = samples
    refused("not positive semi-definite", X, Y, metric="sigmoid", coef0=-1.0)
    refused("NaN or infinite in 3600 of 3600 pairs", X, Y, metric=lambda x, y: math.nan)
    refused("NaN or infinite", X, Y, metric=lambda x, y: math.inf, approx="nystroem")


def test_precomputed_blocks_are_checked(samples):
    X, Y = samples[0][:8], samples[1][:5]
    k_xx, k_yy, k_yx = (
        np.exp(-(cdist(a, b) ** 2)) for a, b in ((X, X), (Y, Y), (Y, X))
    )

    def wrong(message, k_xx=k_xx, k_yy=k_yy, k_yx=k_yx, **options):
        refused(message, k_xx, k_yy, K_yx=k_yx, metric="precomputed", **options)

    wrong("K_yx=k(Y, X), and K_yx is missing", k_yx=None)
    wrong("X has shape (5, 8)", k_xx=k_yx)
    wrong("Y has shape (5, 8)", k_yy=k_yx)
    wrong("K_yx has shape (8, 5), and (5, 8) is needed", k_yx=k_yx.T)
    wrong("; transpose it", k_yx=k_yx.T)
    wrong("K_yx has shape (4, 8)", k_yx=k_yx[:4])
    tilted = k_xx.copy()
    tilted[0, 1] += 0.01
    wrong("the kernel of X with itself is not symmetric", k_xx=tilted)
    wrong("differ by up to 0.01", k_xx=tilted)
    wrong("the kernel of Y with itself is not symmetric", k_yy=np.tril(k_yy) + 0)
    wrong("not positive semi-definite", k_xx=2 * np.eye(8) - np.ones((8, 8)))
    wrong("not positive semi-definite", k_yx=np.ones((5, 8)))
    wrong(
        "column 2 of K_yx is missing (NaN) in 5 of 5 rows",
        k_yx=np.where(np.arange(8) == 2, np.nan, k_yx),
    )
    wrong("k(x, x) reaches 2 in Y", k_yy=2 * k_yy)
    wrong("for alpha <= 1 it must be 1", k_xx=k_xx / 2, k_yx=k_yx / 2, alpha=1.0)


def test_single_precision_may_leave_slightly_negative_eigenvalues(samples):
    X, Y = samples
    single = [
        np.exp(-0.01 * cdist(a, b) ** 2).astype(np.float32)
        for a, b in ((X, X), (Y, Y), (Y, X))
    ]
    assert np.linalg.eigvalsh(single[0].astype(float))[0] < -1e-8
    found = kernel_renyi_divergence(
        single[0], single[1], K_yx=single[2], metric="precomputed", alpha=[1.0, 2.0]
    )
    expected = kernel_renyi_divergence(X, Y, gamma=0.01, alpha=[1.0, 2.0])
    assert np.abs(found - expected).max() < 1e-4


# --- streaming ---


def moments(**options):
    return KernelMoments(**({"gamma": 0.3, "n_components": 40} | options))


def test_streamed_merged_and_at_once(samples):
    X, Y = samples
    once = moments().partial_fit(X)
    parts = moments().partial_fit(X[:7]).partial_fit(X[7:8]).partial_fit(X[8:40])
    rest = moments().partial_fit(pd.DataFrame(X[40:]))
    before = rest.second_moment.copy()
    assert parts.merge(rest) is parts
    assert (parts.count, rest.count, once.count) == (60, 20, 60)
    assert np.array_equal(rest.second_moment, before)
    assert np.abs(parts.second_moment - once.second_moment).max() < 1e-12
    other = moments().partial_fit(Y)
    options = {"alpha": ORDERS[1:], "reg": REGS}
    found = once.divergence(other, **options)
    assert np.abs(parts.divergence(other, **options) - found).max() < 1e-9
    direct = kernel_renyi_divergence(
        X, Y, **options, gamma=0.3, approx="rff", n_components=40
    )
    assert np.abs(found - direct).max() < 1e-9
    assert type(once.divergence(other)) is float
    # Empty ones are neutral, on either side.
    assert moments().merge(once).divergence(other) == once.divergence(other)
    assert once.merge(moments()).count == 60
    assert moments().merge(moments()).count == 0
    assert np.isnan(moments().second_moment).all()


def test_a_merged_stream_goes_on(samples):
    X, _ = samples
    found = moments().merge(moments().partial_fit(X[:30])).partial_fit(X[30:])
    expected = moments().partial_fit(X)
    assert np.abs(found.second_moment - expected.second_moment).max() < 1e-12
    with pytest.raises(
        ValueError, match="X has 2 columns, and the batches before had 3"
    ):
        found.partial_fit(X[:, :2])
    assert found.count == 60


def test_an_empty_stream_takes_on_the_columns_that_it_merges(samples):
    found = moments().merge(moments().partial_fit(samples[0]))
    with pytest.raises(
        ValueError, match="X has 2 columns, and the batches before had 3"
    ):
        found.partial_fit(samples[1][:, :2])


def test_merging_with_oneself_doubles(samples):
    one = moments().partial_fit(samples[0])
    before = one.second_moment.copy()
    assert one.merge(one).count == 120
    assert np.abs(one.second_moment - before).max() < 1e-15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0.4}, "(gamma: 0.3 and 0.4)"),
        ({"metric": "laplacian"}, "(metric: 'rbf' and 'laplacian')"),
        ({"n_components": 42}, "(n_components: 40 and 42)"),
        ({"random_state": 1}, "(random_state: 0 and 1)"),
    ],
)
def test_other_features_are_refused(options, message, samples):
    X, Y = samples
    one, other = moments().partial_fit(X), moments(**options).partial_fit(Y)
    before = one.second_moment.copy()
    for method in (one.merge, one.divergence):
        with pytest.raises(ParameterError, match=re.escape(message)):
            method(other)
    assert one.count == 60
    assert np.array_equal(one.second_moment, before)


def test_other_things_are_refused(samples):
    X, Y = samples
    one = moments().partial_fit(X)
    with pytest.raises(ParameterError, match=r"\(columns: 3 and 2\)"):
        one.merge(moments().partial_fit(Y[:, :2]))
    with pytest.raises(ParameterError, match="cannot be compared with ndarray"):
        one.divergence(Y)
    with pytest.raises(ParameterError, match="the second sample has no rows yet"):
        one.divergence(moments())
    with pytest.raises(ParameterError, match="the first sample has no rows yet"):
        moments().divergence(one)
    with pytest.raises(ParameterError, match=r"alpha=0\.2"):
        one.divergence(one, alpha=0.2)
    drawn_otherwise = moments().partial_fit(Y)
    drawn_otherwise._features.frequencies[0, 0] += 1
    with pytest.raises(ParameterError, match="frequencies, of another version"):
        one.merge(drawn_otherwise)
    with pytest.raises(ValueError, match=r"column 0 of X is missing \(NaN\) in 1 of 1"):
        one.partial_fit([[math.nan, 0.0, 0.0]])
    assert one.count == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": None}, "gamma=None must be a number above 0"),
        ({"gamma": -1.0}, "gamma=-1.0 must be a number above 0"),
        ({"metric": "chi2"}, "metric='chi2' must be one of rbf, laplacian"),
        ({"n_components": 3}, "n_components=3 must be even"),
        ({"n_components": 0}, "n_components=0 must be an integer from 2"),
        ({"random_state": None}, "random_state=None must be an integer from 0"),
    ],
)
def test_parameters_of_moments(options, message):
    with pytest.raises(ParameterError, match=re.escape(message)):
        moments(**options)


def test_the_state_is_of_constant_size_and_holds_no_row():
    rng = np.random.default_rng(4)
    marked = rng.normal(size=(3000, 2))
    sizes = []
    for rows in (10, 3000):
        one = moments().partial_fit(marked[:rows])
        state = pickle.dumps(one)
        sizes.append(len(state))
        for value in marked[:10].ravel():
            assert value.tobytes() not in state
        back = pickle.loads(state)
        assert back.divergence(one) == one.divergence(back) == one.divergence(one)
    assert sizes[0] == pytest.approx(sizes[1], abs=50)
    assert repr(one) == (
        "<KernelMoments(gamma=0.3, metric='rbf', n_components=40, random_state=0) "
        "of 3000 rows>"
    )


# --- many rows ---


@pytest.mark.parametrize(
    ("metric", "width", "options"),
    [
        ("rbf", 1, {}),
        ("rbf", 1, {"normalize": True}),
        ("linear", 3, {"normalize": True}),
        ("cosine", 4, {}),
        ("rbf", 30, {}),  # Not of low rank: the usual way.
    ],
)
def test_many_rows_of_few_columns_need_no_gram_matrix(
    metric, width, options, monkeypatch
):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(170, width)), rng.normal(0.3, 1, (150, width))
    options = {"alpha": [1.0, 2.0, 12.0], "reg": REGS, "metric": metric} | options
    expected = kernel_renyi_divergence(X, Y, **options)
    monkeypatch.setattr(_roads, "_MANY_ROWS", 300)
    used = []

    def watched(*blocks, **grid):
        used.append(blocks)
        return gram_divergence(*blocks, **grid)

    monkeypatch.setattr(_roads, "gram_divergence", watched)
    found = kernel_renyi_divergence(X, Y, **options)
    assert np.abs(found - expected).max() < 1e-10
    assert bool(used) == (width == 30)


def test_many_rows_are_checked_alike(monkeypatch):
    monkeypatch.setattr(_roads, "_MANY_ROWS", 5)
    X = np.linspace(-1, 1, 40)[:, np.newaxis] + 3
    refused("k(x, x) reaches 16 in X, and above 1", X, X / 9, metric="linear")
    refused("k(x, x) reaches 16 in Y, and above 1", X / 9, X, metric="linear")
    refused("falls to 0.049", X / 9, X / 9, metric="linear", alpha=1.0)
    huge = np.array([[1e200], [-1e200], [0.0]] * 4)
    refused("NaN or infinite", huge, huge, gamma=1.0)


def test_twenty_thousand_rows_of_one_column():
    rng = np.random.default_rng(6)
    X, Y = rng.normal(size=(20_000, 1)), rng.normal(0.3, 1, (20_000, 1))
    # Of the order of the Rényi divergence, α 0.3²/2, and below it but for the sample.
    assert 0.05 < kernel_renyi_divergence(X, Y, reg=1e-4) < 0.12
