"""The example of audits, with fewer draws: it runs, and finds what it says."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[1] / "examples" / "audit.py"


@pytest.mark.slow
def test_the_example_finds_what_it_says(capsys):
    spec = spec_from_file_location("audit_example", PATH)
    example = module_from_spec(spec)
    spec.loader.exec_module(example)
    example.N, example.SIZES = 3000, (1000,)
    example.main()
    sections = re.split(r"\n\d\. .*\n-+\n", capsys.readouterr().out)[1:]
    ours, excess, raw, columns, many, running = (
        [line for line in section.splitlines() if " ≥ " in line] for section in sections
    )
    # Full noise is never refuted; a quarter of it is in a tight promise.
    whole = [line for line in ours if "× 1 " in line]
    assert len(whole) == 4
    assert not any("refuted" in line for line in whole)
    assert sum("refuted" in line for line in ours) >= 3
    assert "no violation found" in excess[0]
    assert "refuted" in raw[0]
    assert ["refuted" in line for line in columns] == [False, False, True, False]
    assert ["refuted" in line for line in many] == [False, True] * 3
    assert "refuted" in running[-1]
