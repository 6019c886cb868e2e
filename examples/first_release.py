"""Release clinical measurements so that they say little about the patient's sex.

The diabetes data that come with scikit-learn: 442 patients, a disease score to be
predicted. First one column, then three together; a model on the release against a model
on the raw columns; and the choice of the order α, fairly and naively.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpuffer import (
    RenyiPufferfishGaussian,
    RenyiPufferfishLaplace,
    compare_mechanisms,
)
from skpuffer.exceptions import ExcessiveNoiseWarning

COLUMNS = ["age", "bmi", "bp"]
MECHANISMS = {"Laplace": RenyiPufferfishLaplace, "Gaussian": RenyiPufferfishGaussian}
ALPHAS = [1.5, 2, 4, 8, 16, 32, 64]
EPSILON, DELTA = 3.0, 1e-2
# In a split every patient is released once: in training, or when predicted.
SPLITS = ShuffleSplit(n_splits=20, test_size=0.25, random_state=0)
SEARCH_SPLITS = ShuffleSplit(n_splits=10, test_size=0.25, random_state=1)


def title(text):
    print(f"\n{text}\n{'-' * len(text)}")


def one_column(data):
    title("1. One column: bmi, about sex")
    noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex")
    released = noise.fit_transform(data[["bmi", "sex"]])
    print(noise.report_)
    print("\nThe first rows, as they are and as released:")
    print(data[["bmi"]].join(released.add_suffix(" released")).head(4).round(2))


def several_columns(data):
    title("2. Three columns as one row: age, bmi and bp, about sex")
    noise = RenyiPufferfishLaplace(alpha=4, epsilon=1, secret="sex")
    noise.fit(data[[*COLUMNS, "sex"]])
    print(noise.report_)
    print("\nWhat each mechanism would cost, noise against spread, for bmi:")
    table = compare_mechanisms(
        data[[*COLUMNS, "sex"]], secret="sex", alpha=4, epsilon=1
    )
    table = table[table["column"] == "bmi"]
    print(
        table.pivot_table(
            index=["scope", "calibration"], columns="law", values="noise_to_spread"
        ).round(2)
    )
    print("Scope 'column' promises nothing about the columns together.")


def scores(model, data, target):
    result = cross_val_score(model, data, target, cv=SPLITS)
    return f"{result.mean():6.3f} ± {result.std():.3f}"


def model_on_the_release(data, target):
    title(
        "3. A model on the release against a model on the raw columns (R², 20 splits)"
    )
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
    rows = [("raw age, bmi, bp", "none", scores(ridge, data[COLUMNS], target))]
    for columns in (["bmi"], COLUMNS):
        for law, mechanism in MECHANISMS.items():
            for epsilon in (1.0, 4.0):
                noise = mechanism(alpha=4, epsilon=epsilon, secret="sex")
                pipeline = make_pipeline(noise, ridge)
                rows.append(
                    (
                        f"released {', '.join(columns)}",
                        f"(4, {epsilon:g}) {law}",
                        scores(pipeline, data[[*columns, "sex"]], target),
                    )
                )
    table = pd.DataFrame(rows, columns=["columns", "promise", "R²"])
    print(table.to_string(index=False))


def choose_alpha(data, target):
    title("4. Which α? At a fixed (ε, δ), and naively at a fixed ε")
    pipeline = make_pipeline(
        RenyiPufferfishLaplace(epsilon=EPSILON, secret="sex"),
        StandardScaler(),
        RidgeCV(np.logspace(-2, 4, 13)),
    )
    name = "renyipufferfishlaplace"
    data = data[["bmi", "bp", "sex"]]
    fair = [{f"{name}__alpha": [4, 8, 16, 32, 64], f"{name}__delta": [DELTA]}]
    naive = [{f"{name}__alpha": ALPHAS}]
    for label, grid in (
        (f"The fair way: every line promises ({EPSILON:g}, {DELTA:g})", fair),
        (f"The naive way: every line promises ε = {EPSILON:g} at another order", naive),
    ):
        search = GridSearchCV(pipeline, grid, cv=SEARCH_SPLITS).fit(data, target)
        lines = []
        for parameters, score in zip(
            search.cv_results_["params"],
            search.cv_results_["mean_test_score"],
            strict=True,
        ):
            noise = pipeline.set_params(**parameters)[0].fit(data)
            lines.append(
                {
                    "alpha": noise.alpha_,
                    "Rényi ε": noise.epsilon_,
                    f"ε at δ = {DELTA:g}": noise.guarantee_.to_epsilon(DELTA),
                    "noise / spread": noise.report_.noise_to_spread[0],
                    "R²": score,
                }
            )
        print(f"\n{label}; best alpha {search.best_params_[f'{name}__alpha']:g}")
        print(pd.DataFrame(lines).to_string(index=False, float_format="{:.3g}".format))
        pipeline.set_params(**{f"{name}__delta": None})
    print(
        "\nAt a fixed ε the low orders need the least noise because they promise the\n"
        "least. A search releases the data once a fit: publish one release, of the\n"
        "parameters chosen, and know that the choice itself has seen the data."
    )


def main():
    # A small epsilon on few rows is much noise; the tables show how much.
    warnings.simplefilter("ignore", ExcessiveNoiseWarning)
    data, target = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    one_column(data)
    several_columns(data)
    model_on_the_release(data, target)
    choose_alpha(data, target)


if __name__ == "__main__":
    main()
