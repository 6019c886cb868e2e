"""Annotations: every public name has them, and a user's script passes mypy --strict."""

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import typing
import warnings
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skpuffer
from skpuffer.audit import KernelRenyiAuditor, RunningAudit
from skpuffer.displays import PrivacyProfileDisplay

ROOT = Path(__file__).resolve().parents[1]
USER = ROOT / "tests" / "typed" / "user.py"
# Public modules, and what is pure under them.
MODULES = [
    "skpuffer",
    *(
        module.name
        for module in pkgutil.walk_packages(skpuffer.__path__, "skpuffer.")
        if not any(part.startswith("_") for part in module.name.split("."))
    ),
]


def public_things():
    """Yield each public function and class of the package once, with its name."""
    seen = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for own, thing in vars(module).items():
            listed = own in getattr(module, "__all__", ())
            home = getattr(thing, "__module__", None) == name
            known = inspect.isclass(thing) or inspect.isfunction(thing)
            if known and (listed or (home and own[0] != "_")) and id(thing) not in seen:
                seen.add(id(thing))
                yield f"{name}.{own}", thing


def functions_of(cls):
    """Yield every function that a class of the package defines in public."""
    for base in cls.__mro__:
        if not base.__module__.startswith("skpuffer"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") and name not in ("__init__", "__call__"):
                continue
            if isinstance(member, (classmethod, staticmethod)):
                member = member.__func__
            elif isinstance(member, property):
                member = member.fget
            elif isinstance(member, cached_property):
                member = member.func
            # Those of an enumeration or a protocol are not our own.
            if inspect.isfunction(member) and member.__module__.startswith("skpuffer"):
                yield name, member


def lacking(function, *, bound):
    """Return the parameters, and "return", that have no annotation."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1 if bound else 0 :]
    found = [one.name for one in parameters if one.annotation is one.empty]
    return found + ["return"] * (signature.return_annotation is signature.empty)


def test_every_public_function_is_annotated():
    found = dict(public_things())
    assert len(found) > 100
    assert {"skpuffer.RenyiPufferfishLaplace", "skpuffer.compare_mechanisms"} <= {
        *found
    }
    bare = {}
    for name, thing in found.items():
        if inspect.isfunction(thing):
            bare[name] = lacking(thing, bound=False)
            continue
        for method, function in functions_of(thing):
            bare[f"{name}.{method}"] = lacking(function, bound=True)
    assert len(bare) > 300
    assert {name: missing for name, missing in bare.items() if missing} == {}


def test_every_public_attribute_of_a_class_is_annotated():
    bare = []
    for name, cls in public_things():
        if not inspect.isclass(cls):
            continue
        for base in cls.__mro__:
            if not base.__module__.startswith("skpuffer"):
                continue
            known = vars(base).get("__annotations__", {})
            for own, value in vars(base).items():
                code = callable(value) or hasattr(value, "__get__")
                if not (own.startswith("_") or code or own in known):
                    bare.append(f"{name}.{own}")
    assert bare == []


@pytest.mark.filterwarnings("ignore::skpuffer.exceptions.SkpufferWarning")
def test_what_a_fit_sets_is_declared_by_the_class():
    frame = pd.DataFrame({"age": [30, 31, 40, 41] * 20, "sex": ["F", "M"] * 40})
    samples = np.random.default_rng(0).laplace([[[0]], [[1]]], 0.5, (2, 300, 1))
    noise = skpuffer.RenyiPufferfishLaplace(secret="sex").fit(frame)
    fitted = [
        noise,
        skpuffer.JointRelease(secret="sex").fit(frame),
        KernelRenyiAuditor(epsilon=1).fit(*samples),
        RunningAudit(epsilon=1).fit(*samples),
    ]
    for one in [*fitted, PrivacyProfileDisplay.from_estimator(noise)]:
        declared = set()
        for base in type(one).__mro__:
            declared |= set(vars(base).get("__annotations__", {}))
        names = {name for name in vars(one) if name.endswith("_") and name[0] != "_"}
        assert names <= declared, type(one).__name__


def test_annotations_can_be_read_at_run_time():
    # But for those of matplotlib, which is there for a check of types alone.
    read = 0
    for name, cls in public_things():
        if inspect.isclass(cls) and not name.startswith("skpuffer.displays"):
            for method, function in functions_of(cls):
                if (name, method) != ("skpuffer.ConditionalCounts", "to_frame"):
                    typing.get_type_hints(function)
                    read += 1
    assert read > 200


def test_the_script_of_a_user_does_what_it_says():
    sys.path.insert(0, str(USER.parent))
    try:
        user = importlib.import_module(USER.stem)
    finally:
        sys.path.remove(str(USER.parent))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", skpuffer.exceptions.SkpufferWarning)
        assert user.release()["columns"] == ("age",)
        assert all(scale > 0 for scale in user.other_releases())
        assert isinstance(user.comparison(), pd.DataFrame)
        assert set(user.audit()) <= {"refuted", "no violation found", "too few samples"}
        assert all(isinstance(value, float) for value in user.divergence())
        assert "α" in user.picture()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_the_script_of_a_user_passes_mypy(tmp_path):
    # As a user runs it: with none of this project's settings, and faults in the
    # package itself, which is no concern of the script, left out.
    options = ["--strict", "--config-file=", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path}", USER]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
