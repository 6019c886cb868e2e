"""Who may import whom, read off the syntax trees; registries; the size of files."""

import ast
import importlib
import inspect
import sys
from functools import cache
from pathlib import Path

import pytest

import skpuffer
from skpuffer.core.calibration import RULES, CalibrationRule
from skpuffer.core.laws import LAWS, NoiseLaw

ROOT = Path(skpuffer.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# From the bottom up: a room imports itself and rooms of lower layers alone. A new
# room needs a line here.
LAYERS = [
    {"core.bits", "core.grid", "core.plans", "core.conversions", "_text", "_progress"},
    {"core.sampling_weights"},
    {"core.sampling_blocks"},
    {"core.sampling", "core.prior"},
    {"core.shifts"},
    {"core.laws", "core.coupling", "core.crossing", "core.monotone"},
    {"core.law_checks"},
    {"core.second_moments", "core.features", "core.low_rank", "core.betting"},
    {"core.mixtures", "core.gram", "core.paired_betting"},
    {"core.concentration", "core.event_divergence"},
    {"core.events"},
    {"core.calibration", "core.stop_loss"},
    {"core.bands", "core.gaussian_model", "core.channels"},
    {"exceptions", "accounting"},
    {"_prior_limits", "_checks"},
    {"_parameters", "_report", "_lazy", "effort", "laws", "profile"},
    {"_validation"},
    {"_tally"},
    {"_lazy_counts"},
    {"metrics", "counts"},
    {"audit"},
    {"_prior_models", "_budget", "reuse"},
    {"_fit"},
    {"_statements", "_noise"},
    {"_at_release"},
    {"_lazy_release"},
    {"_estimator"},
    {"_base", "_row_release"},
    {"mechanisms", "categorical", "joint_release"},
    {"exponential"},
    {"comparison", "held_out"},
    {"displays"},
]
LAYER = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

ALLOWED = {
    # Third-party package: the rooms that may import it.
    "numpy": None,
    "scipy": {"core", "_validation", "audit"},
    "ot": {"core.plans"},
    "sklearn": {
        "_validation",
        "_estimator",
        "_base",
        "_row_release",
        "_lazy_release",
        "held_out",
        "metrics",
        "audit",
        "displays",
    },
    "joblib": {"_noise"},
    "tqdm": {"_progress"},
    "narwhals": {"_validation"},
    "dask": {"_lazy"},
    "polars": {"_lazy"},
    "pandas": {
        "_validation",
        "_report",
        "comparison",
        "held_out",
        "audit",
        "displays",
    },
    "matplotlib": {"displays"},
}


def room_of(module):
    """`skpuffer.core.plans._exact` -> `core.plans`; '' for the package itself."""
    parts = module.split(".")[1:]
    if parts[:1] == ["core"]:
        return ".".join(parts[:2])
    return parts[0] if parts else ""


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path):
    """Every module that a file imports, and whether at import time.

    Other packages that a check of types alone imports are left out.
    """
    found = []

    class Visitor(ast.NodeVisitor):
        deferred = False
        unseen = False

        def visit_FunctionDef(self, node):
            before, self.deferred = self.deferred, True
            self.generic_visit(node)
            self.deferred = before

        visit_AsyncFunctionDef = visit_FunctionDef

        def visit_If(self, node):
            before = self.unseen
            self.unseen |= ast.unparse(node.test) == "TYPE_CHECKING"
            self.generic_visit(node)
            self.unseen = before

        def visit_Import(self, node):
            for alias in node.names:
                self.note(alias.name)

        def visit_ImportFrom(self, node):
            assert node.level == 0, f"relative import in {path}"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                inside = name.startswith("skpuffer.") and is_module(name)
                self.note(name if inside else node.module)

        def note(self, name):
            if not self.unseen or name.startswith("skpuffer."):
                found.append((name, self.deferred))

    Visitor().visit(tree(path))
    return found


def is_module(name):
    path = ROOT.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def within(room, allowed):
    return any(room == name or room.startswith(name + ".") for name in allowed)


def room_of_file(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return room_of(".".join(parts).removesuffix(".__init__"))


# One test reads all files: a test a file would be a thousand of them.
ROOMS = [(path, room_of_file(path)) for path in FILES]


def test_the_walk_sees_the_package():
    assert len(FILES) > 20
    seen = {name for path in FILES for name, _ in imports(path)}
    assert {"numpy", "ot", "skpuffer.core.laws", "narwhals"} <= {
        name.removesuffix(".emd") for name in seen
    }


def test_imports_point_downwards():
    for path, room in ROOMS:
        if room in ("", "core"):
            continue
        assert room in LAYER, f"{room} has no layer: add it to LAYERS"
        for name, _ in imports(path):
            if name.split(".")[0] != "skpuffer":
                continue
            target = room_of(name)
            assert target in LAYER, f"{path} imports {name}"
            below = LAYER[target] < LAYER[room]
            assert target == room or below, f"{path} imports {name}"


def test_other_packages_stay_in_their_rooms():
    for path, room in ROOMS:
        for name, deferred in imports(path):
            top = name.split(".")[0]
            if top == "skpuffer" or top in sys.stdlib_module_names:
                continue
            assert top in ALLOWED, f"{path} imports {name}"
            rooms = ALLOWED[top]
            assert rooms is None or within(room, rooms), f"{path} imports {name}"
            if top in ("ot", "tqdm", "matplotlib", "dask", "polars"):
                assert deferred, f"{path} imports {top} when it is imported"


def test_the_core_knows_nothing_above_it():
    for path, room in ROOMS:
        if not (room == "core" or room.startswith("core.")):
            continue
        for name, _ in imports(path):
            top = name.split(".")[0]
            pure = top in sys.stdlib_module_names or top in {"numpy", "scipy"}
            pure |= name == "skpuffer.core" or name.startswith("skpuffer.core.")
            solver = top == "ot" and room == "core.plans"
            assert pure or solver, f"{path} imports {name}"


def test_one_file_knows_the_transport_solver():
    users = {path.name for path in FILES for name, _ in imports(path) if name == "ot"}
    assert users == {"_exact.py"}


def test_nobody_uses_the_private_names_of_another_package():
    for path, room in ROOMS:
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.ImportFrom) or node.module == "__future__":
                continue
            foreign = not node.module.startswith("skpuffer")
            private = [
                part for part in node.module.split(".")[1:] if part.startswith("_")
            ] + [a.name for a in node.names if a.name.startswith("_")]
            if foreign or room_of(node.module) != room:
                module = node.module
                inner = [part for part in private if f"skpuffer.{part}" not in module]
                assert not inner, f"{path} uses {inner} of {module}"


def test_files_are_short_and_say_what_they_are_for():
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 400, f"{path} is a house, not a room"
        assert ast.get_docstring(tree(path)), f"{path} has no module docstring"


def test_no_state_in_the_core():
    # Blocks run in threads: a module may hold constants, and nothing that changes.
    for path, room in ROOMS:
        if not room.startswith("core"):
            continue
        for node in ast.walk(tree(path)):
            assert not isinstance(node, ast.Global), f"{path} changes a global name"


# --- registries ---


def methods(protocol):
    return [
        name
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and not name.startswith("_")
    ]


@pytest.mark.parametrize(
    ("registry", "protocol"), [(LAWS, NoiseLaw), (RULES, CalibrationRule)]
)
def test_every_class_in_a_registry_keeps_the_contract(registry, protocol):
    assert registry
    attributes = [n for n in protocol.__annotations__ if not n.startswith("_")]
    assert {"name"} <= set(attributes)
    assert len(methods(protocol)) >= 3
    for name, cls in registry.items():
        assert cls.name == name
        for attribute in attributes:
            assert getattr(cls, attribute) is not None
        instance = cls()
        for method in methods(protocol):
            wanted = inspect.signature(getattr(protocol, method)).parameters
            found = inspect.signature(getattr(cls, method)).parameters
            assert list(found) == list(wanted), (name, method)
            kinds = [p.kind for p in wanted.values()]
            assert [p.kind for p in found.values()] == kinds, (name, method)
            assert callable(getattr(instance, method))


@pytest.mark.parametrize(
    ("registry", "folder"), [(LAWS, "laws"), (RULES, "calibration")]
)
def test_one_file_each(registry, folder):
    homes = [Path(inspect.getfile(cls)) for cls in registry.values()]
    assert len(set(homes)) == len(registry)
    for name, home in zip(registry, homes, strict=True):
        assert home == ROOT / "core" / folder / f"_{name}.py"


def test_public_names_exist():
    for path in FILES:
        if path.name != "__init__.py":
            continue
        module = ".".join(path.parent.relative_to(ROOT.parent).parts)
        loaded = importlib.import_module(module)
        for name in getattr(loaded, "__all__", []):
            assert hasattr(loaded, name), f"{module} lists {name}"
