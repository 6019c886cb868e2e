"""Features of low-rank Gram blocks: the blocks come back, and the rank is right."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from skpuffer.core import gram
from skpuffer.core.gram import gram_divergence, moment_divergence
from skpuffer.core.low_rank import low_rank_features, pivoted_features
from skpuffer.core.second_moments import GramMoments


def rbf_blocks(X, Y, gamma=0.3):
    pairs = (X, X), (Y, Y), (Y, X)
    return tuple(np.exp(-gamma * cdist(a, b, "sqeuclidean")) for a, b in pairs)


def comes_back(features, blocks):
    first, second = features
    products = first.T @ first, second.T @ second, second.T @ first
    return max(
        np.abs(product - block).max()
        for product, block in zip(products, blocks, strict=True)
    )


@pytest.mark.parametrize(("n_p", "n_q"), [(150, 90), (30, 400), (400, 30)])
def test_one_column_has_few_features(n_p, n_q):
    rng = np.random.default_rng(n_p)
    blocks = rbf_blocks(rng.normal(size=(n_p, 1)), rng.normal(1, 1, (n_q, 1)))
    features = low_rank_features(*blocks)
    assert [f.shape[1] for f in features] == [n_p, n_q]
    assert len(features[0]) < 40
    assert comes_back(features, blocks) < 1e-14


def test_points_and_repeated_rows_have_as_many_features_as_points():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(7, 5))
    X, Y = points[rng.integers(0, 7, 60)], points[rng.integers(0, 7, 40)]
    features = low_rank_features(*rbf_blocks(X, Y))
    assert len(features[0]) == 7
    assert comes_back(features, rbf_blocks(X, Y)) < 1e-14


def test_the_second_sample_alone_may_hold_a_direction():
    X, Y = np.tile([[1.0, 0.0]], (8, 1)), np.tile([[0.0, 1.0]], (9, 1))
    features = low_rank_features(X @ X.T, Y @ Y.T, Y @ X.T)
    assert len(features[0]) == 2
    assert comes_back(features, (X @ X.T, Y @ Y.T, Y @ X.T)) == 0


def test_high_rank_is_given_up():
    rng = np.random.default_rng(2)
    # At once, as in many columns, and at the last step.
    many = rbf_blocks(rng.normal(size=(80, 30)), rng.normal(size=(80, 30)), 0.02)
    assert low_rank_features(*many) is None
    # 21 points are more than half of the 40 that would be worth it, 19 are less.
    for points, kept in ((21, False), (19, True)):
        rows = np.eye(points)[np.arange(80) % points]
        blocks = (rows @ rows.T,) * 3
        assert (low_rank_features(*blocks) is not None) == kept
    for rank, kept in ((20, True), (21, False)):
        rows = np.repeat(np.eye(rank) * np.geomspace(1, 1e-3, rank), 3, axis=0)
        rows = np.concatenate([rows, np.zeros((80 - len(rows), rank))])
        half = rows[::2], rows[1::2]
        blocks = half[0] @ half[0].T, half[1] @ half[1].T, half[1] @ half[0].T
        assert (low_rank_features(*blocks) is not None) == kept


def test_tiny_and_empty_blocks():
    one, zero = np.ones((1, 1)), np.zeros((3, 3))
    assert low_rank_features(one, one, one) is None
    assert low_rank_features(zero, zero, zero) is None


def test_units_do_not_matter():
    rng = np.random.default_rng(3)
    blocks = rbf_blocks(rng.normal(size=(70, 1)), rng.normal(size=(70, 1)))
    ranks = {
        len(low_rank_features(*(scale * block for block in blocks))[0])
        for scale in (2.0**-30, 1.0, 2.0**30)
    }
    assert len(ranks) == 1


def test_where_what_may_be_left_is_no_float():
    # A part in 1e15 of the smallest floats is zero.
    features = pivoted_features(
        np.full(9, 1e-312), lambda i: np.full(9, 1e-312), most=3
    )
    assert features.shape == (1, 9)
    assert np.abs(features**2 - 1e-312).max() <= 1e-9 * 1e-312
    assert pivoted_features(np.zeros(9), lambda i: np.zeros(9), most=3) is None


def test_both_roads_agree_and_the_short_one_keeps_more_digits():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(550, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    first, second = rows[:300], rows[300:]
    blocks = first @ first.T, second @ second.T, second @ first.T
    alphas, regs = [1.0, 1.5, 2.0, 6.0, 12.0, 50.0, math.inf], [1e-6, 1e-3, 1.0]
    truth = moment_divergence(
        first.T @ first / 300, second.T @ second / 250, alphas=alphas, regs=regs
    )
    short = gram_divergence(*blocks, alphas=alphas, regs=regs)
    long = gram._divergences(GramMoments.from_blocks(*blocks), alphas, regs)
    assert np.abs(short - truth).max() < 1e-13
    assert np.abs(long - truth).max() < 1e-9
