"""Doctests are those of the pages; scripts and what a build leaves are no tests."""

collect_ignore_glob = ["*.py", "_build", "gallery", "generated"]
