"""Draw the picture of the README, for light and dark ground, into this folder.

python docs/images/make.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from skpuffer import RenyiPufferfishLaplace
from skpuffer.displays import ReleaseDisplay

HERE = Path(__file__).resolve().parent
# Styles of matplotlib, and the ground of the pages that the picture stands on.
GROUNDS = {"light": ("default", "#ffffff"), "dark": ("dark_background", "#0d1117")}


def draw(folder=HERE):
    """Save one column of the README's release, before and after, about sex."""
    df = load_diabetes(as_frame=True, scaled=False).frame
    df = df.rename(columns={"s3": "hdl"})[["bmi", "hdl", "sex"]].astype({"sex": int})
    noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex").fit(df)
    for name, (style, ground) in GROUNDS.items():
        colours = {"axes.facecolor": ground, "figure.facecolor": ground}
        with plt.style.context([style, colours]):
            figure, axes = plt.subplots(
                2, 1, figsize=(7.2, 4.2), sharex=True, sharey=True, layout="constrained"
            )
            ReleaseDisplay.from_estimator(noise, df, column="hdl", ax=axes)
            figure.savefig(folder / f"release_{name}.png", dpi=110)
            plt.close(figure)


if __name__ == "__main__":
    draw()
