"""The tables of the examples: the same frames from files and from OpenML."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from paths import shared

PATH = Path(__file__).resolve().parents[1] / "examples" / "tables.py"
FILES = {
    "load_adult": "adult.data",
    "load_heart": "processed.cleveland.data",
    "load_student": "student-mat.csv",
}
ROWS = {
    "load_adult": """\
39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White,\
 Male, 2174, 0, 40, United-States, <=50K
52, ?, 209642, HS-grad, 9, Married-civ-spouse, Exec-managerial, Husband, White,\
 Male, 0, 0, 45, ?, >50K
""",
    "load_heart": """\
63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0
53.0,0.0,3.0,128.0,216.0,0.0,2.0,115.0,0.0,0.0,1.0,?,?,2
""",
    "load_student": """\
school;sex;age;address;famsize;Pstatus;Medu;Fedu;Mjob;Fjob;reason;guardian;traveltime;\
studytime;failures;schoolsup;famsup;paid;activities;nursery;higher;internet;romantic;\
famrel;freetime;goout;Dalc;Walc;health;absences;G1;G2;G3
"GP";"F";18;"U";"GT3";"A";4;4;"at_home";"teacher";"course";"mother";2;2;0;"yes";"no";\
"no";"no";"yes";"yes";"no";"no";4;3;4;1;1;3;6;"5";"6";6
"MS";"M";17;"R";"LE3";"T";1;1;"other";"other";"home";"father";1;2;0;"no";"yes";"no";\
"no";"no";"yes";"yes";"no";5;3;3;1;1;3;4;"5";"5";6
""",
}


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.delenv("SKPUFFER_DATA", raising=False)
    spec = spec_from_file_location("example_tables", PATH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    for loader, file in FILES.items():
        (tmp_path / file).write_text(ROWS[loader], encoding="utf-8")
    return tmp_path


def _as_openml(loader, frame):
    """Return a frame in the names and types that OpenML gives it."""
    if loader == "load_adult":
        plain = {"age", "workclass", "income"}
        names = {n: n if n in plain else f"{n}:" for n in frame}
        frame = frame.rename(columns=names | {"income": "class"})
    if loader == "load_heart":
        frame = frame.drop(columns="disease").assign(
            sex=frame["sex"].map({"female": "0", "male": "1"})
        )
        for code in ("cp", "fbs", "restecg", "exang", "slope"):
            frame[code] = frame[code].astype(str)
        frame["thal"] = frame["thal"].map(lambda value: f"{value:.0f}", "ignore")
    for name in frame:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            if loader == "load_student":
                frame[name] = "'" + frame[name] + "'"
            frame[name] = frame[name].astype("category")
        elif frame[name].dtype.kind == "i":
            frame[name] = frame[name].astype(float)
    return frame


@pytest.mark.parametrize("loader", FILES)
def test_both_sources_give_the_same_frame(tables, folder, monkeypatch, loader):
    load = getattr(tables, loader)
    expected = load(folder)
    asked = {}

    def fetch(**options):
        asked.update(options)
        return SimpleNamespace(frame=_as_openml(loader, expected.copy()))

    monkeypatch.setattr(tables, "fetch_openml", fetch)
    pd.testing.assert_frame_equal(load(data_home="kept"), expected)
    assert asked.pop("data_home") == "kept"
    assert asked.pop("as_frame")
    assert asked in (
        {"data_id": 1119},
        {"data_id": 194},
        {"name": "UCI-student-performance-mat", "version": 1},
    )


def test_a_file_is_read_as_uci_has_it(tables, folder):
    adult, heart, student = (getattr(tables, name)(folder) for name in FILES)
    assert list(adult["income"]) == ["<=50K", ">50K"]
    assert list(adult.isna().sum(axis=1)) == [0, 2]
    assert adult["hours-per-week"].dtype == np.int64
    assert list(heart["sex"]) == ["male", "female"]
    assert list(heart["disease"]) == ["absent", "present"]
    assert heart["thal"].isna().sum() == 1
    assert list(student["sex"]) == ["F", "M"]
    assert student["G3"].dtype == np.int64


def test_a_header_of_adult_is_no_row(tables, folder):
    header = ", ".join(tables.ADULT.split()[:-1] + ["Salary"]) + "\n"
    expected = tables.load_adult(folder)
    (folder / "adult.data").write_text(header + ROWS["load_adult"], encoding="utf-8")
    pd.testing.assert_frame_equal(tables.load_adult(folder), expected)


def test_the_environment_names_a_folder(tables, folder, monkeypatch):
    monkeypatch.setenv("SKPUFFER_DATA", str(folder))
    assert len(tables.load_heart()) == 2


@pytest.mark.parametrize(("loader", "file"), FILES.items())
def test_without_file_and_network_the_remedy_is_named(
    tables, tmp_path, monkeypatch, loader, file
):
    load = getattr(tables, loader)
    with pytest.raises(FileNotFoundError, match=f"{file} is not in {tmp_path}"):
        load(tmp_path)

    def fetch(**options):
        raise URLError("no route")

    monkeypatch.setattr(tables, "fetch_openml", fetch)
    with pytest.raises(
        FileNotFoundError, match=f"get {file} from https.*SKPUFFER_DATA"
    ):
        load()


def test_another_table_is_refused(tables, tmp_path):
    (tmp_path / "student-mat.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the table has no school, sex"):
        tables.load_student(tmp_path)


def test_the_real_tables(tables):
    folder = shared("data")
    adult, heart, student = (getattr(tables, name)(folder) for name in FILES)
    assert adult.shape == (32561, 15)
    assert dict(adult["income"].value_counts()) == {"<=50K": 24720, ">50K": 7841}
    assert adult.isna().sum().sum() == 4262
    assert heart.shape == (303, 15)
    assert dict(heart["disease"].value_counts()) == {"absent": 164, "present": 139}
    assert student.shape == (395, 33)
    assert set(student["sex"]) == {"F", "M"}
