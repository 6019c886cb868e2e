"""How long users let a fit search for couplings, and what they see of it."""

import math
import threading
import warnings

import numpy as np
import pandas as pd
import pytest

from skpuffer import (
    JointRelease,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    coupling_effort,
)
from skpuffer._budget import search_effort
from skpuffer._parameters import check_parameters
from skpuffer._prior_models import empirical_pairs
from skpuffer.core.calibration import _shift_rule
from skpuffer.core.channels import _rows
from skpuffer.core.laws import LAWS
from skpuffer.core.plans import USUAL_EFFORT, Effort, _descend, _search
from skpuffer.core.prior import Conditional, Prior
from skpuffer.effort import effort_of_a_fit
from skpuffer.exceptions import ParameterError

quiet = pytest.mark.filterwarnings("ignore::skpuffer.exceptions.ExcessiveNoiseWarning")


@pytest.fixture
def searched(monkeypatch):
    """Search among few points already, in small parts."""
    for module in (_shift_rule, _search, _rows):
        monkeypatch.setattr(module, "EXACT_LIMIT", 20)
    for name, size in (("_LEAST", 8), ("_FIRST", 24), ("_USUAL", 48), ("_MOST", 96)):
        monkeypatch.setattr(_descend, name, size)


def people(n=300):
    rng = np.random.default_rng(0)
    sex = np.arange(n) % 2
    frame = pd.DataFrame(rng.normal(size=(n, 3)) + 0.3 * sex[:, None], columns=[*"abc"])
    return frame.assign(sex=sex)


def in_force():
    with effort_of_a_fit(0) as effort:
        return effort


def test_what_is_in_force():
    assert in_force() is USUAL_EFFORT
    with coupling_effort(seconds=60):
        assert in_force() == Effort(math.inf, math.inf, 60.0, gain=1e-4)
        with coupling_effort(solves=60_000):
            assert in_force() == Effort(60_000, 2 * USUAL_EFFORT.pairs, gain=1e-4)
            # Threads of the same process know of it.
            seen = []
            thread = threading.Thread(target=lambda: seen.append(in_force()))
            thread.start()
            thread.join()
            assert seen[0].solves == 60_000
        assert in_force().seconds == 60
    assert in_force() is USUAL_EFFORT
    with coupling_effort(seconds=1, solves=5):
        assert (in_force().seconds, in_force().solves) == (1, 5)
    with pytest.raises(KeyError), coupling_effort(solves=5):
        {}["nothing"]
    assert in_force() is USUAL_EFFORT


def test_blocks_of_threads_may_end_in_any_order():
    first, second = coupling_effort(solves=7), coupling_effort(solves=7)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert in_force().solves == 7
    second.__exit__(None, None, None)
    assert in_force() is USUAL_EFFORT


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "needs a limit: give seconds, solves or both"),
        ({"seconds": 0}, r"seconds=0(\.0)? must be a number above 0"),
        ({"seconds": math.inf}, "seconds=inf must be .*finite"),
        ({"seconds": "1"}, "seconds='1' must be a number"),
        ({"solves": 0}, "solves=0 must be an integer from 1"),
        ({"solves": 2.5}, "solves=2.5 must be an integer"),
    ],
)
def test_limits_are_checked_before_the_block(limits, message):
    with pytest.raises(ParameterError, match=message):
        coupling_effort(**limits)


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("mechanism", [RenyiPufferfishGaussian, JointRelease])
def test_more_solves_give_less_noise(mechanism):
    frame = people()
    options = {}
    if mechanism is JointRelease:
        frame["c"] = np.where(frame["c"] > 0, "yes", "no")
        options = {"categories": {"c": ["no", "yes"]}}

    def scale():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mechanism(secret="sex", **options).fit(frame).scale_[0]

    usual = scale()
    assert scale() == usual
    with coupling_effort(solves=1):
        hasty = scale()
    with coupling_effort(solves=100_000):
        patient = scale()
    assert patient <= usual * (1 + 1e-9) < hasty
    with coupling_effort(seconds=30):
        assert scale() <= usual * (1 + 1e-9)


@quiet
@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize(
    ("alpha", "delta"), [(2.0, None), ("auto", 1e-3), (math.inf, None)]
)
def test_a_bar_is_shown_where_something_is_searched(alpha, delta, capsys):
    noise = RenyiPufferfishLaplace(alpha, 1.0, delta=delta, secret="sex")
    noise.set_params(verbose=1).fit(people())
    shown = capsys.readouterr().err
    assert "coupling" in shown
    assert "part/s" in shown
    silent = RenyiPufferfishLaplace(alpha, 1.0, delta=delta, secret="sex").fit(people())
    assert capsys.readouterr().err == ""
    # Looking on changes nothing.
    np.testing.assert_array_equal(silent.scale_, noise.scale_)


def test_no_bar_for_what_is_solved_at_once(capsys):
    RenyiPufferfishLaplace(secret="sex", verbose=1).fit(people(60))
    assert "coupling" not in capsys.readouterr().err


def test_pairs_share_the_time():
    groups = tuple(
        Conditional.from_rows([[float(i), 0.0], [1.0, 2.0]]) for i in (3, 4, 5)
    )
    prior = Prior(None, ("a", "b", "c"), groups, ((0, 1), (0, 2), (1, 2)))
    none = (None, None)
    pairs, _ = empirical_pairs([prior], np.ones(2), none, Effort(seconds=60))
    assert [pair.effort.seconds for pair in pairs] == [20, 20, 20]
    pairs, _ = empirical_pairs([prior], np.ones(2), none, Effort(solves=9))
    assert [pair.effort.solves for pair in pairs] == [9, 9, 9]


def test_choosing_an_order_takes_its_time_from_the_fit():
    law, params = LAWS["gaussian"](), RenyiPufferfishGaussian().get_params()
    fixed = check_parameters(law, params)
    free = check_parameters(law, {**params, "alpha": "auto", "delta": 1e-5})
    timed = Effort(seconds=8.0)
    assert search_effort(timed, fixed) is timed
    assert search_effort(timed, free).seconds == 4
    assert search_effort(USUAL_EFFORT, free) is USUAL_EFFORT


@quiet
@pytest.mark.usefixtures("searched")
def test_the_best_order_is_found_among_many_points():
    frame = people()
    noise = RenyiPufferfishGaussian("auto", 4.0, delta=1e-3, secret="sex").fit(frame)
    for alpha in (noise.alpha_ / 1.1, noise.alpha_ * 1.1):
        fixed = RenyiPufferfishGaussian(alpha, 4.0, delta=1e-3, secret="sex").fit(frame)
        assert noise.scale_[0] <= fixed.scale_[0] * 1.02
