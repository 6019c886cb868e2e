"""Print the tools of the extra `dev`, and typed packages for mypy, but nothing to run."""

import tomllib
from pathlib import Path

# Other versions have other types: raised by hand, like the tools. What is not here
# has no types, or is skipped by mypy (see pyproject.toml).
TYPED = ("matplotlib==3.11.*", "narwhals==2.29.*", "numpy==2.4.*")

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
tools = project["optional-dependencies"]["dev"]
print(*TYPED, *(tool for tool in tools if not tool.startswith("skpuffer")), sep="\n")
