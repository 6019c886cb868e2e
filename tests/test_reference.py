"""Scales of real columns against values of an independent implementation."""

import csv
import math

import numpy as np
import pandas as pd
import pytest
from paths import shared

from skpuffer import RenyiPufferfishGaussian, RenyiPufferfishLaplace
from skpuffer.core.calibration import RULES, Budget, Pair, calibrate
from skpuffer.core.laws import LAWS
from skpuffer.core.prior import Conditional

ESTIMATORS = {"laplace": RenyiPufferfishLaplace, "gaussian": RenyiPufferfishGaussian}


def _columns():
    adult = pd.read_csv(
        shared("data", "adult.data"), skipinitialspace=True, na_values="?"
    )
    names = (
        "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal num"
    )
    heart = pd.read_csv(
        shared("data", "processed.cleveland.data"), names=names.split(), na_values="?"
    )
    student = pd.read_csv(shared("data", "student-mat.csv"))
    race = adult[adult["race"].isin(["White", "Black"])]
    return {
        "adult age|sex": (adult["age"], adult["sex"]),
        "adult age|salary": (adult["age"], adult["Salary"]),
        "adult educnum|race": (race["education-num"], race["race"]),
        "heart age|num>0": (heart["age"], heart["num"] > 0),
        "heart thalach|num>0": (heart["thalach"], heart["num"] > 0),
        "student G3|sex": (student["G3"], student["sex"]),
    }


def test_every_value_of_the_reference_table():
    columns = _columns()
    pairs = {
        case: [
            Conditional.from_rows(values[secret == label].to_numpy()[:, None])
            for label in sorted(secret.unique())
        ]
        for case, (values, secret) in columns.items()
    }
    with shared("reference", "calibration.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    compared = 0
    for row in rows:
        budget = Budget(float(row["alpha"]), float(row["epsilon"]))
        pair = Pair(*pairs[row["case"]], np.ones(1))
        for law in ESTIMATORS:
            for rule in RULES:
                column = f"{law}_{rule}"
                if column == "gaussian_transport":
                    column = "gaussian_alpha_wasserstein"
                scale = calibrate([pair], LAWS[law](), RULES[rule](), budget).scale[0]
                expected = float(row[column])
                if rule == "exact":
                    # An upper bound, with a margin that is not in the table.
                    low, high = expected * (1 - 1e-5), expected * (1 + 5e-5)
                    assert low <= scale <= high, (row, column)
                else:
                    assert scale == pytest.approx(expected, rel=1e-5), (row, column)
                compared += 1
    assert compared == 36 * 10


@pytest.mark.parametrize("law", ESTIMATORS)
def test_the_estimator_gives_the_reference_scale(law):
    values, secret = _columns()["adult age|sex"]
    fitted = ESTIMATORS[law](alpha=2, epsilon=0.5).fit(values.to_frame(), secret=secret)
    expected = {"laplace": 3.27825, "gaussian": 4.22693}[law]
    assert fitted.scale_[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("law", ESTIMATORS)
def test_a_million_draws_have_the_stated_spread(law):
    # A relative standard error of the standard deviation: sqrt((kurtosis − 1) / 4n);
    # the level is five of them.
    values, secret = _columns()["adult age|sex"]
    fitted = ESTIMATORS[law](alpha=2, epsilon=0.5).fit(values.to_frame(), secret=secret)
    rows = np.full((1_000_000, 1), 40.0)
    noise = fitted.transform(pd.DataFrame(rows, columns=["age"]))["age"] - 40.0
    kurtosis = {"laplace": 6.0, "gaussian": 3.0}[law]
    error = 5 * math.sqrt((kurtosis - 1) / 4e6)
    assert noise.std() == pytest.approx(fitted.noise_std_[0], rel=error)
    factor = {"laplace": math.sqrt(2), "gaussian": 1.0}[law]
    assert fitted.noise_std_[0] == pytest.approx(factor * fitted.scale_[0], rel=1e-12)
    assert abs(noise.mean()) < 5 * fitted.noise_std_[0] / 1000


@pytest.mark.parametrize(
    ("law", "alpha", "epsilon", "expected"),
    [
        ("gaussian", 2, 1, 1.000000),
        ("laplace", 2, 1, 0.715331),
        ("laplace", 2, 0.1, 2.94600),
        ("laplace", 5, 1, 0.871885),
        ("laplace", 10, 1, 0.933430),
        ("laplace", math.inf, 0.5, 2.0),
    ],
)
def test_unit_shift(law, alpha, epsilon, expected):
    points = Conditional.from_rows([[0.0]]), Conditional.from_rows([[1.0]])
    pair = Pair(*points, np.ones(1))
    budget = Budget(alpha, epsilon)
    for rule in ("w_inf", "transport"):
        scale = calibrate([pair], LAWS[law](), RULES[rule](), budget).scale[0]
        assert scale == pytest.approx(expected, rel=1e-5)
