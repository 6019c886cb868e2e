"""Pictures of the pages, drawn when the documentation is built."""

import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from skpuffer import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.displays import (
    CouplingDisplay,
    NoiseDisplay,
    PrivacyProfileDisplay,
    ReleaseDisplay,
)

STYLES = {"light": "default", "dark": "dark_background"}


def _bmi():
    return load_diabetes(as_frame=True, scaled=False).frame[["bmi", "sex"]]


def _noise(mechanism=RenyiPufferfishLaplace):
    return mechanism(alpha=4, epsilon=1, secret="sex").fit(_bmi())


def release() -> plt.Figure:
    """Draw a column before and after its release."""
    return ReleaseDisplay.from_estimator(_noise(), _bmi()).figure_


def coupling() -> plt.Figure:
    """Draw quantiles for two secret values, and the shifts between them."""
    return CouplingDisplay.from_frame(_bmi(), secret="sex", column="bmi").figure_


def profile() -> plt.Figure:
    """Draw what the scales of two laws promise at every order."""
    display = PrivacyProfileDisplay.from_estimator(_noise(), name="Laplace")
    other = _noise(RenyiPufferfishGaussian)
    PrivacyProfileDisplay.from_estimator(other, name="Gaussian", ax=display.ax_)
    return display.figure_


def noise() -> plt.Figure:
    """Draw the noise that laws need, over the order."""
    return NoiseDisplay.from_frame(_bmi(), secret="sex").figure_


FIGURES: tuple[Callable[[], plt.Figure], ...] = (release, coupling, profile, noise)


def draw(folder: Path) -> None:
    """Draw each in both styles, unless it is there already."""
    folder.mkdir(parents=True, exist_ok=True)
    for figure in FIGURES:
        for name, style in STYLES.items():
            path = folder / f"{figure.__name__}-{name}.svg"
            if path.exists() and path.stat().st_mtime > Path(__file__).stat().st_mtime:
                continue
            with plt.style.context(style), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                drawn = figure()
                drawn.savefig(path, transparent=True, bbox_inches="tight")
            plt.close("all")
