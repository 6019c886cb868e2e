"""The gallery's page of audits runs, and finds what its words say."""

import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from skpuffer.audit import KernelRenyiAuditor

PATH = Path(__file__).resolve().parents[1] / "examples" / "audit.py"
REFUTED, NONE_FOUND = "refuted", "no violation found"


@pytest.fixture(scope="module")
def page():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "show", lambda: None)
        yield runpy.run_path(str(PATH))
    plt.close("all")


@pytest.mark.slow
def test_the_example_refutes_our_noise_only_where_it_is_too_small(page):
    # The noise is fresh in every run; what is asserted has room to spare.
    ours = page["ours"].set_index("noise")
    truth, bound, verdict = (
        ours[name] for name in ("truth", "at least", "verdict on ε = 1")
    )
    assert (truth.loc[["all", "1/2"]] < 1).all()
    assert (truth.loc[["1/8", "1/32"]] > 1).all()
    assert (bound < truth).all()
    assert (verdict.loc[["all", "1/2"]] == NONE_FOUND).all()
    assert verdict["1/32"] == REFUTED
    # The calibrated noise is put back, and the audits have not touched the rest.
    noise = page["noise"]
    assert noise.scale_[0] == noise.guarantee_.scale[0]


@pytest.mark.slow
def test_the_example_finds_two_faults_at_once_and_one_by_a_look_of_its_own(page):
    found = {name: audit.verdict_ for name, audit in page["audits"].items()}
    assert found == {
        "too little noise": REFUTED,
        "coin instead of lie": REFUTED,
        "forgetful": NONE_FOUND,
    }
    assert page["look"].verdict_ == REFUTED
    assert page["allowed"].verdict_ == NONE_FOUND
    # No bound is above the truth, and the two are close to it.
    honest = np.e / (1 + np.e)
    coin = np.log((1 + honest) / (1 - honest))
    bounds = [page["audits"][name].bound_ for name in list(found)[:2]]
    assert bounds == pytest.approx([np.sqrt(2), coin], abs=0.12)
    assert (np.array(bounds) < [np.sqrt(2), coin]).all()


@pytest.mark.slow
def test_the_example_of_displays_and_running_audits_says_what_it_draws(page):
    over_n, over_delta = page["over_n"], page["over_delta"]
    assert over_n.bound[0] < 1 < over_n.bound[-1]
    refuted = over_delta.bound > 1
    assert refuted[0]
    assert not refuted[over_delta.x >= page["FORGETS"]].any()
    assert page["running"].verdict_ == REFUTED
    assert page["few"].verdict_ == "too few samples"


@pytest.mark.slow
def test_the_example_of_a_kernel_divergence_would_be_a_false_alarm(page):
    same = page["same"]
    assert (same["kernel divergence"] > 0.5).all()
    assert same["kernel divergence"].is_monotonic_decreasing
    assert (same["verdict on ε = 0.5"] == NONE_FOUND).all()


def test_the_examples_coin_is_caught_and_its_repair_is_not():
    # The page's second mechanism, and what it should have been, without the page.
    rng = np.random.default_rng(0)
    truthful = rng.random((2, 5000, 1)) < np.e / (1 + np.e)
    truth = np.array([1.0, 0.0])[:, None, None]
    lie, coin = 1 - truth, 1.0 * (rng.random((2, 5000, 1)) < 0.5)
    for otherwise, verdict in ((lie, NONE_FOUND), (coin, REFUTED)):
        X, Y = np.where(truthful, truth, otherwise)
        assert KernelRenyiAuditor(epsilon=1).fit(X, Y).verdict_ == verdict
