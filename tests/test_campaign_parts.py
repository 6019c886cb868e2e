"""The campaign against what is fed in parts: moments of samples, and running audits."""

import math
import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from campaign_cases import runs
from campaign_support import Books, campaign
from hypothesis import given, note
from hypothesis import strategies as st
from sklearn.base import clone
from test_campaign_frames import cuts

from skpuffer.audit import RunningAudit
from skpuffer.exceptions import ParameterError
from skpuffer.metrics import KernelMoments, kernel_renyi_divergence

pytestmark = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")


def samples(draw, least, most):
    """Draw two samples of the same columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, m = (draw(st.integers(least, most)) for _ in range(2))
    k = draw(st.integers(1, 3))
    gap = draw(st.sampled_from([0.0, 0.5, 3.0]))
    return rng.normal(size=(n, k)), rng.laplace(gap, 1, (m, k))


def by_definition(first, second, alpha, reg):
    """The divergence of second moments, by their eigenvectors."""
    r = (1 - alpha) / alpha
    values, vectors = np.linalg.eigh(second)
    power = (vectors * (np.maximum(values, 0) + reg) ** (r / 2)) @ vectors.T
    inner = np.linalg.eigvalsh(power @ first @ power)
    return math.log((np.maximum(inner, 0) ** alpha).sum()) / (alpha - 1)


def fed(make, rows, draw, books):
    """Feed parts in any order, to several that are merged, with refusals between."""
    parts = [rows[list(part)] for part in cuts(draw, len(rows)) if len(part)]
    heap = [make()]
    for part in draw(st.permutations(parts)):
        how = draw(st.sampled_from(["go on", "begin", "pickle", "refuse", "dask"]))
        books.count(how)
        if how == "begin":
            heap.append(make())
        if how == "pickle":
            heap[-1] = pickle.loads(pickle.dumps(heap[-1]))
        if how == "refuse":
            bad = part.copy()
            bad[-1, -1] = draw(st.sampled_from([np.nan, np.inf]))
            before = heap[-1].count
            with pytest.raises(ValueError, match="rows"):
                heap[-1].partial_fit(bad)
            assert heap[-1].count == before
        if how == "dask":
            sizes = tuple(map(len, cuts(draw, len(part))))
            lazy = da.from_array(part, chunks=(sizes, draw(st.integers(1, 3))))
            heap[-1].partial_fit(lazy)
            continue
        heap[-1].partial_fit(part)
    whole = make()
    for one in draw(st.permutations(heap)):
        before = one.count
        whole.merge(one)
        assert one.count == before
    return whole


@runs(3)
def test_moments_are_those_of_all_rows_however_they_come(examples):
    with Books("moments") as books, dask.config.set(scheduler="sync"):

        @campaign(examples)
        @given(st.data())
        def run(data):
            draw = data.draw
            x, y = samples(draw, 2, 60)
            options = {
                "gamma": draw(st.sampled_from([0.05, 0.5])),
                "metric": draw(st.sampled_from(["rbf", "laplacian"])),
                "n_components": draw(st.sampled_from([8, 32])),
                "random_state": draw(st.integers(0, 3)),
            }
            note(f"{options}")

            def make():
                return KernelMoments(**options)

            first, second = (fed(make, rows, draw, books) for rows in (x, y))
            assert (first.count, second.count) == (len(x), len(y))
            for moments, rows in ((first, x), (second, y)):
                once = make().partial_fit(rows)
                np.testing.assert_allclose(
                    moments.second_moment, once.second_moment, rtol=0, atol=1e-13
                )
                assert np.trace(moments.second_moment) == pytest.approx(1, abs=1e-12)
            alpha = draw(st.sampled_from([1.5, 2.0, 8.0]))
            reg = draw(st.sampled_from([1e-3, 0.1]))
            found = first.divergence(second, alpha=alpha, reg=reg)
            expected = by_definition(
                first.second_moment, second.second_moment, alpha, reg
            )
            assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)
            whole = kernel_renyi_divergence(
                x, y, alpha=alpha, reg=reg, approx="rff", **options
            )
            assert found == pytest.approx(whole, rel=1e-8, abs=1e-8)

        run()


def state(audit):
    return audit.n_pairs_, audit.n_bets_, audit.verdict_, audit.reason_


@runs(2)
def test_an_audit_says_the_same_however_its_stream_is_cut(examples):
    with Books("running audits") as books:

        @campaign(examples)
        @given(st.data())
        def run(data):
            draw = data.draw
            x, y = samples(draw, 150, 400)
            n = min(len(x), len(y))
            x, y = x[:n], y[:n]
            options = {
                "n_components": 8,
                "n_warmup": draw(st.sampled_from([20, 100])),
                "epsilons": [0.1, 0.5, 1.0, 2.0],
                "symmetric": draw(st.booleans()),
                "delta": draw(st.sampled_from([0.0, 0.05])),
                "metric": draw(st.sampled_from(["rbf", "laplacian"])),
                "random_state": draw(st.integers(0, 3)),
                "buffer_size": draw(st.sampled_from([64, 4096])),
            }
            claim = draw(st.sampled_from([0.0, 0.5]))
            note(f"{options} {claim}")
            fresh = RunningAudit(claim, **options)
            whole = clone(fresh).partial_fit(x, y)
            audit = clone(fresh)
            if draw(st.booleans()):
                # A fit forgets what was there.
                audit.partial_fit(y, x).fit(x[:1], y[:1])
                begun = 1
            else:
                begun = 0
            for part in cuts(draw, n - begun):
                rows = [begun + i for i in part]
                how = draw(st.sampled_from(["go on", "pickle", "refuse", "set"]))
                books.count(how)
                if how == "pickle" and hasattr(audit, "_stream"):
                    assert not hasattr(clone(audit), "_stream")
                    audit = pickle.loads(pickle.dumps(audit))
                if how == "refuse":
                    bad = x[:2].copy()
                    bad[0, 0] = np.nan
                    with pytest.raises(ValueError, match="rows"):
                        audit.partial_fit(bad, y[:2])
                if how == "set" and hasattr(audit, "_stream"):
                    audit.set_params(delta=0.2)
                    before = state(audit)
                    with pytest.raises(ParameterError, match="while the audit runs"):
                        audit.partial_fit(x[:2], y[:2])
                    assert state(audit) == before
                    audit.set_params(delta=options["delta"])
                if rows:
                    audit.partial_fit(x[rows], y[rows])
            books.count(whole.verdict_)
            assert state(audit) == state(whole)
            assert audit.e_value_ == pytest.approx(whole.e_value_, rel=1e-6)
            assert (audit.bound_ == whole.bound_) or math.isnan(whole.bound_)

        run()


def test_a_dask_frame_of_one_partition_is_a_batch():
    frame = pd.DataFrame(np.arange(12.0).reshape(6, 2), columns=["a", "b"])
    one = KernelMoments(gamma=0.1, n_components=4).partial_fit(frame)
    two = KernelMoments(gamma=0.1, n_components=4)
    two.partial_fit(dd.from_pandas(frame, npartitions=1))
    assert (one.second_moment == two.second_moment).all()
