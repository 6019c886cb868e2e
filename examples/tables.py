"""Three tables of the UCI Machine Learning Repository, for the examples.

Each loader returns a pandas frame that is the same from either source: the files as UCI
has them, in a folder that is given or named by the environment variable SKPUFFER_DATA,
or else OpenML, by `sklearn.datasets.fetch_openml`, which keeps what it has fetched.

| loader | file | OpenML | rows |
|---|---|---|---|
| `load_adult` | `adult.data` | 1119, "adult-census" | 32,561 |
| `load_heart` | `processed.cleveland.data` | 194, "cleveland" | 303 |
| `load_student` | `student-mat.csv` | "UCI-student-performance-mat", version 1 | 395 |

The better known "adult", version 2, of OpenML (1590) is UCI's 16,281 test rows and these
32,561 in one: other groups, and so other scales. Its "heart-c" (49) says whether there is
a disease, not its degree.

Adult is by Becker and Kohavi (1996), Heart Disease by Janosi, Steinbrunn, Pfisterer and
Detrano (1989), Student Performance by Cortez (2008); all under CC BY 4.0.
"""

import os
from pathlib import Path

import pandas as pd
from sklearn.datasets import fetch_openml

ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation "
    "relationship race sex capital-gain capital-loss hours-per-week native-country "
    "income"
)
HEART = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal num"
STUDENT = (
    "school sex age address famsize Pstatus Medu Fedu Mjob Fjob reason guardian "
    "traveltime studytime failures schoolsup famsup paid activities nursery higher "
    "internet romantic famrel freetime goout Dalc Walc health absences G1 G2 G3"
)


def load_adult(folder=None, data_home=None):
    """Return the Adult table: people of the US census of 1994, one a row.

    Parameters
    ----------
    folder : path, optional
        A folder with `adult.data`. None: that of SKPUFFER_DATA, if set, or OpenML.
    data_home : path, optional
        Where scikit-learn keeps what it has fetched; its default is in the home folder.

    Returns
    -------
    pandas.DataFrame of shape (32561, 15)
        `income` is "<=50K" or ">50K"; unknown values are missing.
    """
    path = _path_of("adult.data", folder)
    if path is None:
        source = "https://archive.ics.uci.edu/dataset/2/adult"
        frame = _fetched("adult.data", source, data_home, data_id=1119)
        names = {name: name.rstrip(":") for name in frame.columns} | {"class": "income"}
        frame = frame.rename(columns=names)
    else:
        with path.open(encoding="utf-8") as file:
            skipped = int(file.readline().startswith("age"))
        frame = pd.read_csv(
            path,
            names=ADULT.split(),
            skiprows=skipped,
            skipinitialspace=True,
            na_values="?",
        )
    return _plain(frame, ADULT)


def load_heart(folder=None, data_home=None):
    """Return the Heart Disease table of Cleveland, one patient a row.

    Parameters
    ----------
    folder : path, optional
        A folder with `processed.cleveland.data`. None: that of SKPUFFER_DATA, if set,
        or OpenML.
    data_home : path, optional
        Where scikit-learn keeps what it has fetched; its default is in the home folder.

    Returns
    -------
    pandas.DataFrame of shape (303, 15)
        `sex` is "female" or "male"; `num` the degree of the disease, 0 to 4, and
        `disease` "absent" (0) or "present". The other columns are numbers, codes
        included; a few values of `ca` and `thal` may be missing.
    """
    path = _path_of("processed.cleveland.data", folder)
    if path is None:
        source = "https://archive.ics.uci.edu/dataset/45/heart+disease"
        frame = _fetched("processed.cleveland.data", source, data_home, data_id=194)
    else:
        frame = pd.read_csv(path, names=HEART.split(), na_values="?")
    frame = _plain(frame, HEART).apply(pd.to_numeric).astype(float)
    known = frame.columns.difference(["oldpeak", "ca", "thal"])
    frame[known] = frame[known].astype("int64")
    frame["sex"] = frame["sex"].map({0: "female", 1: "male"})
    frame["disease"] = (frame["num"] > 0).map({False: "absent", True: "present"})
    return frame


def load_student(folder=None, data_home=None):
    """Return the Student Performance table, mathematics: one pupil a row.

    Parameters
    ----------
    folder : path, optional
        A folder with `student-mat.csv`, its columns parted by commas or semicolons.
        None: that of SKPUFFER_DATA, if set, or OpenML.
    data_home : path, optional
        Where scikit-learn keeps what it has fetched; its default is in the home folder.

    Returns
    -------
    pandas.DataFrame of shape (395, 33)
        `sex` is "F" or "M", `G3` the final grade, 0 to 20.
    """
    path = _path_of("student-mat.csv", folder)
    if path is None:
        source = "https://archive.ics.uci.edu/dataset/320/student+performance"
        name = "UCI-student-performance-mat"
        frame = _fetched("student-mat.csv", source, data_home, name=name, version=1)
    else:
        with path.open(encoding="utf-8") as file:
            separator = ";" if ";" in file.readline() else ","
        frame = pd.read_csv(path, sep=separator)
    return _plain(frame, STUDENT)


def _path_of(file, folder):
    """Return the path of a file in the folder that is given or set, None without one."""
    folder = folder or os.environ.get("SKPUFFER_DATA")
    if not folder:
        return None
    path = Path(folder) / file
    if not path.is_file():
        raise FileNotFoundError(
            f"{file} is not in {folder}: put it there, or give no folder (and unset "
            "SKPUFFER_DATA) to fetch the table from OpenML"
        )
    return path


def _fetched(file, source, data_home, **pinned):
    """Return a table of OpenML, or say what to do without a network."""
    try:
        return fetch_openml(**pinned, data_home=data_home, as_frame=True).frame
    except OSError as error:
        raise FileNotFoundError(
            f"no folder with {file} was given and OpenML cannot be reached ({error}): "
            f"get {file} from {source}, and name its folder as the argument of the "
            "script or in the environment variable SKPUFFER_DATA"
        ) from error


def _plain(frame, columns):
    """Return the columns as plain numbers and strings, whichever source they are of."""
    absent = [name for name in columns.split() if name not in frame.columns]
    if absent:
        raise ValueError(f"the table has no {', '.join(absent)}: {list(frame.columns)}")
    plain = {}
    for name in columns.split():
        values = frame[name]
        if not pd.api.types.is_numeric_dtype(values):
            # Some sources quote their labels, or set a blank before them.
            words = values.astype(object).map(lambda word: word.strip(" '"), "ignore")
            values = words.infer_objects()
        elif not values.hasnans and (values % 1 == 0).all():
            values = values.astype("int64")
        plain[name] = values
    return pd.DataFrame(plain)
