"""Print the tools of the extra `dev`, and numpy for its types, but nothing to run."""

import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
tools = project["optional-dependencies"]["dev"]
print("numpy", *(tool for tool in tools if not tool.startswith("skpuffer")), sep="\n")
