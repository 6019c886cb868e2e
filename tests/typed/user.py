"""What a user writes, for mypy --strict to check: see `files` in pyproject.toml.

Each `assert_type` says what an editor should show. A use that is wrong carries a
`type: ignore`, which mypy refuses as unused where it does not see the fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
import pandas as pd

from skpuffer import (
    ConditionalCounts,
    Guarantee,
    JointRelease,
    PrivacyProfile,
    ReleaseReport,
    RenyiPufferfishCategorical,
    RenyiPufferfishExponential,
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    compare_mechanisms,
    coupling_effort,
    held_out_divergence,
    reuse_fits,
)
from skpuffer.audit import (
    AuditScorer,
    EstimatorAudit,
    KernelRenyiAuditor,
    RunningAudit,
    audit_estimator,
    make_audit_scorer,
)
from skpuffer.metrics import KernelMoments, kernel_renyi_divergence, median_gamma

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAME = pd.DataFrame({"age": [30, 31, 40, 41] * 50, "sex": ["F", "M"] * 100})
JOBS = FRAME.assign(job=["a", "a", "b", "a"] * 50)


def release() -> dict[str, Any]:
    """Fit, release, and read what is known of the release."""
    noise = RenyiPufferfishLaplace(alpha=4, epsilon=1.0, secret="sex")
    fitted = assert_type(noise.fit(FRAME), RenyiPufferfishLaplace)
    released = fitted.fit(FRAME).transform(FRAME)
    guarantee = assert_type(fitted.guarantee_, Guarantee)
    found: dict[str, Any] = {
        "released": released,
        "epsilon": assert_type(guarantee.to_epsilon(1e-5), float),
        "delta": assert_type(guarantee.to_delta(1.0), float),
        "columns": assert_type(guarantee.columns, tuple[str, ...]),
        "confidence": assert_type(guarantee.confidence, float | None),
        "text": assert_type(guarantee.to_json(), str),
        "scale": assert_type(fitted.scale_, np.ndarray),
        "order": assert_type(fitted.alpha_, float),
        "profile": assert_type(fitted.profile_, PrivacyProfile),
        "report": assert_type(fitted.report_, ReleaseReport),
        "names": assert_type(fitted.get_feature_names_out(), np.ndarray),
        "curve": assert_type(fitted.privacy_profile([2, 4, 8]), np.ndarray),
    }
    return found


def other_releases() -> list[float]:
    """Fit the other mechanisms, by rows and by counts."""
    counts = ConditionalCounts(secret="sex").update(FRAME)
    gaussian = assert_type(
        RenyiPufferfishGaussian("auto", 1.0, delta=1e-5, secret="sex").fit(FRAME),
        RenyiPufferfishGaussian,
    )
    exponential = RenyiPufferfishExponential(power=0.5, secret="sex")
    both = JointRelease(secret="sex", categories=[["a", "b"]])
    alone = RenyiPufferfishCategorical(secret="sex", categories=[["a", "b"]])
    fitted = (
        gaussian,
        assert_type(exponential.fit_counts(counts), RenyiPufferfishExponential),
        assert_type(both.fit(JOBS), JointRelease),
        alone.fit(JOBS[["job", "sex"]]),
    )
    assert_type(fitted[2].categories_["job"][0] == "a", bool)
    assert_type(counts.to_frame(), pd.DataFrame)
    return [float(one.scale_[0]) for one in fitted]


def comparison() -> pd.DataFrame:
    """Compare laws and rules on the same rows."""
    with reuse_fits() as reuse, coupling_effort(seconds=5):
        table = assert_type(
            compare_mechanisms(FRAME, secret="sex", alpha=4, epsilon=1), pd.DataFrame
        )
    assert_type(reuse.hits, int)
    noise = RenyiPufferfishLaplace(secret="sex").fit(FRAME)
    assert_type(held_out_divergence(noise, FRAME), pd.DataFrame)
    return table


def audit() -> list[str | None]:
    """Audit a release: of an estimator, of samples, of a stream."""
    rng = np.random.default_rng(0)
    X, Y = rng.laplace(0, 1, (400, 1)), rng.laplace(1, 1, (400, 1))
    auditor = assert_type(KernelRenyiAuditor(epsilon=1.0).fit(X, Y), KernelRenyiAuditor)
    assert_type(auditor.epsilon_lower(delta=0.01), float)
    assert_type(auditor.bound_, float)
    noise = RenyiPufferfishLaplace(secret="sex").fit(FRAME)
    found = assert_type(audit_estimator(noise, FRAME, n_samples=200), EstimatorAudit)
    assert_type(found.guarantee, Guarantee)
    running = assert_type(RunningAudit(epsilon=1.0).partial_fit(X, Y), RunningAudit)
    assert_type(make_audit_scorer(secret="sex"), AuditScorer)
    return [auditor.verdict_, found.verdict, running.verdict_]


def divergence() -> list[float]:
    """Measure a divergence of samples at once and in parts."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(0, 1, (90, 2)), rng.normal(1, 1, (80, 2))
    gamma = assert_type(median_gamma(X, Y), float)
    moments = [KernelMoments(gamma=gamma).partial_fit(rows) for rows in (X, Y)]
    kernel_renyi_divergence(X, Y, alpha=[2, 4]).shape
    return [
        assert_type(kernel_renyi_divergence(X, Y, gamma=gamma), float),
        assert_type(moments[0].divergence(moments[1], alpha=2), float),
    ]


def picture(ax: Axes | None = None) -> str:
    """Draw a release and return what is at its axis."""
    from skpuffer.displays import PrivacyProfileDisplay

    noise = RenyiPufferfishLaplace(secret="sex").fit(FRAME)
    display = assert_type(
        PrivacyProfileDisplay.from_estimator(noise, ax=ax), PrivacyProfileDisplay
    )
    return display.ax_.get_xlabel()


if TYPE_CHECKING:
    # Faults that mypy has to see.
    fitted = RenyiPufferfishLaplace(secret="sex").fit(FRAME)
    RenyiPufferfishLaplace(epsilon="much")  # type: ignore[arg-type]
    RenyiPufferfishLaplace(sekret="sex")  # type: ignore[call-arg]
    fitted.guarantee_.epsilom  # type: ignore[attr-defined]
    fitted.guarantee_.epsilon = 0.1  # type: ignore[misc]
    compare_mechanisms(FRAME, laws=3)  # type: ignore[arg-type]
    KernelRenyiAuditor(confidence="high")  # type: ignore[arg-type]
    held_out_divergence()  # type: ignore[call-arg]
