"""Where the reference tables and data sets lie, which are no part of the project."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared"


def shared(*parts):
    """Return a path in the shared folder, or skip the test where it is absent."""
    root = Path(os.environ.get("SKPUFFER_SHARED", _BESIDE))
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"{'/'.join(parts)} is absent: set SKPUFFER_SHARED to the folder that has it"
        )
    return path
