"""What holds of the package as a whole: imports, version, docstrings, text files."""

import inspect
import pickle
import re
import subprocess
import sys
import tomllib
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import FunctionType

import pytest
from packaging.version import Version
from paths import shared

import skpuffer
from skpuffer import audit, displays, exceptions, laws, metrics

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
# Slow to import, or not installed everywhere: only for those who use them.
ON_DEMAND = {"dask", "matplotlib", "ot", "polars", "scipy.optimize", "scipy.stats"}
CODE = (FunctionType, property, cached_property, classmethod, staticmethod)


def run(code):
    """Return the words that a new interpreter prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split()


def test_import_brings_nothing_heavy_beyond_scikit_learn_and_pandas():
    before = "import sys, sklearn.base, pandas; before = set(sys.modules); "
    after = "print(*set(sys.modules) - before); "
    displays = "import skpuffer.displays; print('matplotlib' in sys.modules)"
    *new, drawn = run(before + "import skpuffer; " + after + displays)
    assert drawn == "False"
    new = set(new)
    assert "skpuffer" in new
    assert not new & ON_DEMAND
    foreign = {name.partition(".")[0] for name in new} - sys.stdlib_module_names
    assert foreign <= {"skpuffer", "joblib", "narwhals", "numpy", "scipy", "sklearn"}


def test_version_is_that_of_the_metadata():
    assert skpuffer.__version__ == version("skpuffer") == PROJECT["version"]


def public_members():
    """Yield each public object with its name, and what its class defines in public."""
    for module in (skpuffer, exceptions, audit, displays, laws, metrics):
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, str):
                continue
            yield name, thing
            for base in inspect.getmro(thing) if inspect.isclass(thing) else ():
                if base.__module__.startswith("skpuffer"):
                    for member, value in vars(base).items():
                        if not member.startswith("_") and isinstance(value, CODE):
                            yield f"{name}.{member}", value


def test_every_public_name_has_a_docstring():
    found = dict(public_members())
    assert {"RenyiPufferfishLaplace.fit", "Guarantee.to_epsilon"} <= set(found)
    # A dataclass without one is given its signature for a docstring.
    bare = [
        name
        for name, thing in found.items()
        if not thing.__doc__ or thing.__doc__.startswith(f"{name}(")
    ]
    assert bare == []


def text_files():
    folders = (".ci", "benchmarks", "docs", "examples", "skpuffer", "tests")
    paths = [path for name in folders for path in (ROOT / name).rglob("*")]
    # What the documentation is built to.
    built = {ROOT / "docs" / name for name in ("_build", "gallery", "generated")}
    for path in [*ROOT.iterdir(), *paths]:
        if not built.isdisjoint(path.parents):
            continue
        made = not {"__pycache__", ".hypothesis"}.isdisjoint(path.parts)
        if path.is_file() and not made and path.name[0] != ".":
            yield path.relative_to(ROOT).as_posix(), path.read_bytes()


def test_no_file_names_a_folder_of_some_machine_or_a_registry_host():
    folder = rb"(?<![\w.:/$}*-])/(?:home|mnt|opt|root|srv|tmp|Users|work)/[\w.-]"
    host = rb"pypi\.org|pythonhosted\.|registry\.npmjs|conda\.anaconda|deb\.debian"
    forbidden = re.compile(folder + b"|" + host)
    files = dict(text_files())
    assert {"README.md", ".ci/run", "skpuffer/__init__.py"} <= set(files)
    assert {name: forbidden.findall(text) for name, text in files.items()} == {
        name: [] for name in files
    }


@pytest.mark.parametrize("word", ["pytest", "examples/"])
def test_the_readme_has_each_command_once(word):
    script = ROOT / ".ci" / "readme_command.py"
    command = [sys.executable, str(script), word]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert word in done.stdout
    assert done.stdout.count("\n") == 1
    for path in re.findall(r"examples/\S+", done.stdout):
        assert (ROOT / path).is_file()


def test_the_oldest_versions_are_the_lower_bounds():
    extras = PROJECT["optional-dependencies"]
    entries = [*PROJECT["dependencies"], *extras["dask"], *extras["plot"]]
    own, *tools = extras["test"]
    assert own == "skpuffer[dask,plot]"
    bounds = dict(entry.split(">=") for entry in entries + tools)
    lines = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and line[0] != "#")
    for name, bound in bounds.items():
        assert Version(pins[name.split("[")[0]]) == Version(bound), name


def test_an_absent_shared_folder_is_named_in_the_reason(monkeypatch, tmp_path):
    # The word that .ci/run looks for.
    monkeypatch.setenv("SKPUFFER_SHARED", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="SKPUFFER_SHARED"):
        shared("data", "adult.data")


@pytest.mark.parametrize("name", exceptions.__all__)
def test_errors_are_shown_and_pickled_under_their_public_names(name):
    error = getattr(exceptions, name)
    assert f"{error.__module__}.{error.__qualname__}" == f"skpuffer.exceptions.{name}"
    again = pickle.loads(pickle.dumps(error("text")))
    assert type(again) is error
    assert again.args == ("text",)
