"""Roads for many rows, against the plain ones."""

import numpy as np
import pandas as pd
import pytest

from skpuffer import RenyiPufferfishLaplace
from skpuffer._validation import _labels, _sample
from skpuffer._validation._labels import _near_integers, factorise
from skpuffer.core.prior import Conditional

INTEGERS = {
    "two": [1, 0, 1, 1, 0],
    "one": [4, 4],
    "from seven": [8, 7, 8],
    "gaps": [5, -3, 90, 5, 5, -3],
    "wide apart": [0, 5000, 0, 3],
    "at the limit": [-7, 992, 3],
    "beyond it": [-7, 993, 3],
    "most negative": [-(2**63), -(2**63) + 2, -(2**63)],
}


@pytest.mark.parametrize("kind", ["int64", "int8", "uint16", "series", "Int64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_near_each_other_are_told_apart_as_others_are(name, kind):
    values = INTEGERS[name]
    if kind in ("int8", "uint16"):
        info = np.iinfo(kind)
        values = [v for v in values if info.min <= v <= info.max] or [1]
        column = np.array(values, dtype=kind)
    elif kind == "int64":
        column = np.array(values)
    else:
        column = pd.Series(values, dtype="int64" if kind == "series" else kind)
    codes, labels, spelt = factorise(column)
    expected = factorise(column.astype(object))
    assert codes.tolist() == expected[0].tolist()
    assert labels == expected[1]
    assert [type(label) for label in labels] == [type(label) for label in expected[1]]
    assert spelt == []
    assert [labels[code] for code in codes] == values


def test_what_has_no_short_cut():
    for column in (
        np.array([], dtype=int),
        np.array([1.0, 2.0]),
        np.array([True, False]),
        np.array(["a"]),
        np.array([2**63, 1], dtype=np.uint64),
        pd.Series([1, None], dtype="Int64"),
        np.array([0, _labels._NEAR]),
    ):
        assert _near_integers(column) is None
    assert _near_integers(np.array([0, _labels._NEAR - 1])) is not None


@pytest.mark.parametrize("n_groups", [1, 2, 3, 7])
def test_rows_are_split_as_by_masks(n_groups, monkeypatch):
    monkeypatch.setattr(_sample, "_BLOCK", 16)
    rng = np.random.default_rng(n_groups)
    for n in (1, 15, 16, 17, 100):
        values, codes = rng.normal(size=n), rng.integers(0, n_groups, n)
        parts = _sample._split(values, codes, n_groups)
        assert len(parts) == n_groups
        for group, part in enumerate(parts):
            assert part[:, 0].tolist() == values[codes == group].tolist()


def test_priors_are_those_of_their_rows():
    rng = np.random.default_rng(0)
    n = 600
    x = np.round(rng.normal(size=(n, 2)), 1)
    secret, prior = rng.integers(0, 3, n), rng.integers(0, 2, n)
    secret[(prior == 1) & (secret == 2)] = 0
    weight = rng.integers(1, 4, n).astype(float)
    for columns in ([0], [0, 1]):
        for given in (None, weight):
            estimator = RenyiPufferfishLaplace()
            sample = _sample.read_sample(
                estimator, x[:, columns], None, secret, prior, given
            )
            found = sample.priors(list(range(len(columns))))
            assert [one.label for one in found] == [0, 1]
            assert [one.secrets for one in found] == [(0, 1, 2), (0, 1)]
            assert found[1].pairs == ((0, 1),)
            for one in found:
                for label, item in zip(one.secrets, one.conditionals, strict=True):
                    rows = (secret == label) & (prior == one.label)
                    expected = Conditional.from_rows(
                        x[rows][:, columns], None if given is None else given[rows]
                    )
                    assert item.same_distribution(expected)
                    assert item.n_rows == rows.sum()


def test_rows_are_sorted_in_place_only_if_they_may_be():
    rows = np.array([[3.0], [1.0], [2.0]])
    kept = rows.copy()
    item = Conditional.from_rows(rows)
    np.testing.assert_array_equal(rows, kept)
    assert not np.may_share_memory(item.support, rows)
    view = np.array([[3.0, 1.0], [1.0, 2.0]])[:, :1]
    assert Conditional.from_rows(view).support.tolist() == [[1.0], [3.0]]
    assert view.tolist() == [[3.0], [1.0]]
    item = Conditional.from_rows(rows, overwrite=True)
    assert item.support is rows or np.may_share_memory(item.support, rows)
    assert item.support.tolist() == [[1.0], [2.0], [3.0]]
    assert item.mass.tolist() == [1, 1, 1]
    assert item.total == 3


def test_nothing_of_the_callers_is_changed_or_kept():
    rng = np.random.default_rng(1)
    x, secret = rng.normal(size=(200, 1)), np.repeat([0, 1], 100)
    before = x.copy(), secret.copy()
    RenyiPufferfishLaplace().fit(x, secret=secret)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(secret, before[1])
    x.flags.writeable = secret.flags.writeable = False
    RenyiPufferfishLaplace().fit(x, secret=secret).transform(x)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_threads_raise_what_a_column_raises(n_jobs, monkeypatch):
    from skpuffer import _noise

    monkeypatch.setattr(_noise, "_CHUNK", 50)
    rng = np.random.default_rng(2)
    x, secret = rng.normal(size=(400, 1)), np.repeat([0, 1], 200)
    noise = RenyiPufferfishLaplace(n_jobs=n_jobs).fit(x, secret=secret)

    def broken(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr(_noise, "SystemBits", broken)
    with pytest.raises(RuntimeError, match="out of order"):
        noise.transform(x)
