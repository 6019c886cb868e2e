"""Who may import whom, read off the syntax trees; registries; the size of files."""

import ast
import importlib
import inspect
import sys
from pathlib import Path

import pytest

import skpuffer
from skpuffer.core.calibration import RULES, CalibrationRule
from skpuffer.core.laws import LAWS, NoiseLaw

ROOT = Path(skpuffer.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
NAMES = [path.relative_to(ROOT.parent).with_suffix("").as_posix() for path in FILES]

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
    {"exceptions", "accounting", "profile"},
    {"_prior_limits", "_checks"},
    {"_parameters", "_report", "_lazy", "effort", "laws"},
    {"_validation"},
    {"_tally"},
    {"_lazy_counts"},
    {"metrics", "counts"},
    {"audit"},
    {"_prior_models", "_budget", "reuse"},
    {"_fit"},
    {"_statements", "_noise"},
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


def imports(path):
    """Every module that a file imports, and whether at import time."""
    found = []

    class Visitor(ast.NodeVisitor):
        deferred = False

        def visit_FunctionDef(self, node):
            before, self.deferred = self.deferred, True
            self.generic_visit(node)
            self.deferred = before

        visit_AsyncFunctionDef = visit_FunctionDef

        def visit_Import(self, node):
            found.extend((alias.name, self.deferred) for alias in node.names)

        def visit_ImportFrom(self, node):
            assert node.level == 0, f"relative import in {path}"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                inside = name.startswith("skpuffer.") and is_module(name)
                found.append((name if inside else node.module, self.deferred))

    Visitor().visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def is_module(name):
    path = ROOT.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def within(room, allowed):
    return any(room == name or room.startswith(name + ".") for name in allowed)


@pytest.fixture(params=FILES, ids=NAMES)
def file(request):
    path = request.param
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    module = ".".join(parts).removesuffix(".__init__")
    return path, room_of(module)


def test_the_walk_sees_the_package():
    assert len(FILES) > 20
    seen = {name for path in FILES for name, _ in imports(path)}
    assert {"numpy", "ot", "skpuffer.core.laws", "narwhals"} <= {
        name.removesuffix(".emd") for name in seen
    }


def test_imports_point_downwards(file):
    path, room = file
    if room in ("", "core"):
        return
    assert room in LAYER, f"{room} has no layer: add it to LAYERS"
    for name, _ in imports(path):
        if name.split(".")[0] != "skpuffer":
            continue
        target = room_of(name)
        assert target in LAYER, f"{path} imports {name}"
        below = LAYER[target] < LAYER[room]
        assert target == room or below, f"{path} imports {name}"


def test_other_packages_stay_in_their_rooms(file):
    path, room = file
    for name, deferred in imports(path):
        top = name.split(".")[0]
        if top == "skpuffer" or top in sys.stdlib_module_names:
            continue
        assert top in ALLOWED, f"{path} imports {name}"
        rooms = ALLOWED[top]
        assert rooms is None or within(room, rooms), f"{path} imports {name}"
        if top in ("ot", "tqdm", "matplotlib", "dask", "polars"):
            assert deferred, f"{path} imports {top} when it is imported"


def test_the_core_knows_nothing_above_it(file):
    path, room = file
    if not (room == "core" or room.startswith("core.")):
        return
    for name, _ in imports(path):
        top = name.split(".")[0]
        pure = top in sys.stdlib_module_names or top in {"numpy", "scipy"}
        pure |= name == "skpuffer.core" or name.startswith("skpuffer.core.")
        assert pure or (top == "ot" and room == "core.plans"), f"{path} imports {name}"


def test_one_file_knows_the_transport_solver():
    users = {path.name for path in FILES for name, _ in imports(path) if name == "ot"}
    assert users == {"_exact.py"}


def test_nobody_uses_the_private_names_of_another_package(file):
    path, room = file
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or node.module == "__future__":
            continue
        foreign = not node.module.startswith("skpuffer")
        private = [
            part for part in node.module.split(".")[1:] if part.startswith("_")
        ] + [a.name for a in node.names if a.name.startswith("_")]
        if foreign or room_of(node.module) != room:
            inner = [part for part in private if f"skpuffer.{part}" not in node.module]
            assert not inner, f"{path} uses {inner} of {node.module}"


def test_files_are_short_and_say_what_they_are_for(file):
    path, _ = file
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400, f"{path} is a house, not a room"
    assert ast.get_docstring(ast.parse(text)), f"{path} has no module docstring"


def test_no_state_in_the_core(file):
    # Blocks run in threads: a module may hold constants, and nothing that changes.
    path, room = file
    if not room.startswith("core"):
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
