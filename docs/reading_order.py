"""The order in which the gallery is read; what is not listed comes last, by name."""

from pathlib import Path

PAGES = (
    "first_release",
    "law_and_rule",
    "choosing_alpha",
    "several_columns",
    "mixed_columns",
    "population",
    "audit",
    "repeated_releases",
    "larger_than_memory",
    "own_law",
)


class ReadingOrder:
    """A key to sort the files of a folder by."""

    def __init__(self, src_dir: str):
        self.src_dir = src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of a page."""
        name = Path(filename).stem
        return PAGES.index(name) if name in PAGES else len(PAGES), name
