"""The documentation names every public name, and its links lead somewhere."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = ["", ".audit", ".displays", ".exceptions", ".laws", ".metrics"]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def reference():
    """Names of docs/api.rst, by module."""
    found, module, table = {}, None, False
    for line in (ROOT / "docs" / "api.rst").read_text("utf-8").splitlines():
        directive = re.match(r"\.\. (?:py:)?(\S+):: ?(\S+)?", line)
        if directive:
            kind, what = directive.groups()
            table = kind == "autosummary"
            if kind == "currentmodule":
                module = what
            elif kind in ("autoexception", "data"):
                found.setdefault(module, []).append(what.rpartition(".")[2])
        elif table and re.fullmatch(r"   \w+", line):
            found.setdefault(module, []).append(line.strip())
    return found


@pytest.mark.parametrize("suffix", MODULES)
def test_every_public_name_is_in_the_reference_once(suffix):
    module = importlib.import_module(f"skpuffer{suffix}")
    listed = reference()[module.__name__]
    public = set(module.__all__) - {"exceptions"}
    assert sorted(listed) == sorted(public)


def test_the_reference_has_no_other_module():
    assert set(reference()) == {f"skpuffer{suffix}" for suffix in MODULES}


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_links_between_pages_lead_somewhere(page):
    for link in LINK.findall(page.read_text("utf-8")):
        # The gallery is there once it was built.
        if "://" not in link and not link.startswith("gallery/"):
            assert (page.parent / link).exists(), link
