"""What the README, the citation and the contributor's page say of the project."""

import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]


def test_the_badges_are_true():
    badges = [
        unquote(badge) for badge in re.findall(r"shields\.io/badge/([^)]+)", README)
    ]
    (sklearn,) = (
        entry.removeprefix("scikit-learn>=")
        for entry in PROJECT["dependencies"]
        if entry.startswith("scikit-learn")
    )
    (python,) = SpecifierSet(PROJECT["requires-python"])
    assert badges == [
        f"licence-{PROJECT['license'].replace('-', '--')}-blue",
        f"Python-≥ {python.version}-blue",
        f"scikit--learn-≥ {sklearn}-orange",
        "code style-ruff-black",
    ]


def test_the_readme_is_short_and_its_pictures_small():
    assert README.count("\n") <= 150
    pictures = set(re.findall(r'(?:src|srcset)="([^"]+)"', README))
    assert len(pictures) == 2
    assert sum((ROOT / path).stat().st_size for path in pictures) < 80_000


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_citation_is_of_this_version():
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {PROJECT['version']}" in lines
    assert f"license: {PROJECT['license']}" in lines
    (author,) = PROJECT["authors"]
    assert f"  - name: {author['name']}" in lines
