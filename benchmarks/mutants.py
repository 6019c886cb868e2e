"""Mutants of the core: small faults, and whether a test of it sees them.

Run from the repository on a system that forks, after `pip install -e '.[test]'`:

    python benchmarks/mutants.py --sample 20 skpuffer/core/grid.py

A mutant is one fault in one place (see `mutations`). It is made in memory, in a process
of its own, and the tests that run its lines are run until one fails, the fastest first.
Which lines a test runs is found first, which takes minutes; `--tests` names fewer. Every
verdict is printed as it comes: those that survive are to be read by hand, as many change
the time alone, or the last bits. What was found of those that were read stands in
`equivalents.tsv`, one line each: module, key, kind and why. Kinds are

    same   no result can change
    speed  time or memory alone
    bits   a result changes within its stated error, to the safe side, or by last bits
    start  where a search starts or in which order it goes, not what it ends with
    text   a message alone

Then one row a module: how many mutants there are, how many were tried, killed, are
equivalent, and survived. The score is the part killed of those that are not equivalent.
"""

import argparse
import ast
import csv
import functools
import gc
import json
import os
import random
import resource
import signal
import sys
import time
import types
from pathlib import Path

import coverage
import pytest
from hypothesis import Phase, settings
from mutations import mutated, mutations

ROOT = Path(__file__).resolve().parents[1]
CORE = "skpuffer/core/"
EQUIVALENTS = Path(__file__).with_name("equivalents.tsv")
# Nothing but the fault may differ between two runs.
OPTIONS = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "-s"]
OPTIONS += ["-o", "addopts=", "-m", "not slow"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


class Recorder:
    """Notes the lines of the core that each test runs, and its time."""

    def __init__(self):
        self.seen = {}
        self.coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[str(ROOT / CORE / "*")]
        )
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        """Watch one test."""
        self.failed = False
        self.coverage.erase()
        self.coverage.start()
        start = time.process_time()
        yield
        spent = time.process_time() - start
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {
            str(Path(name).relative_to(ROOT)): sorted(data.lines(name))
            for name in data.measured_files()
        }
        if not self.failed:
            self.seen[item.nodeid] = {"seconds": spent, "lines": lines}

    def pytest_runtest_logreport(self, report):
        """Note what fails."""
        self.failed |= report.failed


class Executioner:
    """Tries mutants, each in a fork of a session that has collected all tests."""

    def __init__(self, known, wanted, seconds):
        self.known, self.wanted, self.seconds = known, wanted, seconds
        self.failed, self.results = False, []
        self.equivalent = equivalents()

    def pytest_runtest_logreport(self, report):
        """Note what fails."""
        self.failed |= report.failed

    def pytest_runtestloop(self, session):
        """Try all mutants in place of the tests."""
        self.items = {item.nodeid: item for item in session.items}
        self.functions, self.caches = {}, []
        gc.collect()
        for found in gc.get_objects():
            if isinstance(found, types.FunctionType):
                code = found.__code__
                key = code.co_filename, code.co_qualname, code.co_firstlineno
                self.functions.setdefault(key, []).append(found)
            elif isinstance(found, functools._lru_cache_wrapper):
                self.caches.append(found)
        gc.freeze()
        for module, source, place, mutation in self.wanted:
            tests = self.tests_of(module, mutation)
            verdict = self.verdict(module, source, place, mutation, tests)
            known = self.equivalent.get((module, mutation.key))
            if known and verdict.startswith("survived"):
                verdict = f"equivalent: {known}"
            self.results.append((module, mutation, verdict))
            print(f"{module}:{mutation}: {verdict}", flush=True)
        return True

    def tests_of(self, module, mutation):
        """Return the tests that run the mutated lines, the fastest first."""
        first, last = mutation.lines

        def concerns(test):
            lines = self.known[test]["lines"].get(module, ())
            return any(first <= line <= last for line in lines) or (
                lines and not mutation.in_function
            )

        found = [test for test in self.items if test in self.known and concerns(test)]
        found.sort(key=lambda test: self.known[test]["seconds"])
        total, kept = 0.0, []
        for test in found:
            total += self.known[test]["seconds"]
            if kept and total > self.seconds:
                break
            kept.append(test)
        return kept

    def verdict(self, module, source, place, mutation, tests):
        """Run tests on a mutant in another process; return what became of it."""
        if not tests:
            return "not run by any test"
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            told = "killed: it crashed"
            try:
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 1)
                os.dup2(quiet, 2)
                resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
                told = self.inject(module, source, place, mutation)
                told = told or self.run(tests, theirs)
            except BaseException as error:
                told = f"killed: {error!r:.200}"
            os.write(theirs, told.encode())
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
        return told or "killed: it died"

    def run(self, tests, pipe):
        """Run tests until one fails, or takes far too long."""
        for test in tests:

            def stop(*_, test=test):
                os.write(pipe, f"killed: no end of {test}".encode())
                os._exit(0)

            signal.signal(signal.SIGVTALRM, stop)
            limit = 2.0 + 8 * self.known[test]["seconds"]
            signal.setitimer(signal.ITIMER_VIRTUAL, limit)
            item = self.items[test]
            self.failed = False
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if self.failed:
                return f"killed: {test}"
        return f"survived {len(tests)} tests"

    def inject(self, module, source, place, mutation):
        """Put the fault into the modules in memory; say so where that fails."""
        for cache in self.caches:
            cache.cache_clear()
        name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        home, path = sys.modules[name], str(ROOT / module)
        tree = mutated(source, place)
        if mutation.in_function:
            changed = 0
            for code in _codes(compile(tree, path, "exec")):
                key = path, code.co_qualname, code.co_firstlineno
                for function in self.functions.get(key, ()):
                    if len(code.co_freevars) != len(function.__code__.co_freevars):
                        return "not tried: it closes over other names"
                    changed += function.__code__ != code
                    function.__code__ = code
            return "" if changed else "not tried: nothing changed"
        statement = mutation.statement
        place = [item.lineno for item in tree.body].index(
            (mutation.owner or (statement,))[0].lineno
        )
        space = dict(vars(home))
        if mutation.owner:
            owner = getattr(home, mutation.owner[0].name)
            if hasattr(owner, "__dataclass_fields__"):
                return "not tried: its constructor holds a copy"
            body = tree.body[place].body
            made = [item for item in body if item.lineno == statement.lineno]
            exec(compile(ast.Module(made, []), path, "exec"), space, held := {})
            for field, value in held.items():
                setattr(owner, field, value)
            return ""
        made = ast.Module([tree.body[place]], [])
        exec(compile(made, path, "exec"), space)
        for field, value in space.items():
            before = vars(home).get(field)
            if before is value or field.startswith("__"):
                continue
            for other in list(sys.modules.values()):
                # Those that have taken it over by name.
                taken = getattr(other, "__name__", "").startswith("skpuffer.core")
                if taken and vars(other).get(field) is before:
                    setattr(other, field, value)
        return ""


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def recorded(file, tests):
    """Return what each test runs; from a file if one is given and is there."""
    if file and file.exists():
        return json.loads(file.read_text())
    recorder = Recorder()
    pytest.main([*OPTIONS, *tests], plugins=[recorder])
    if file:
        file.write_text(json.dumps(recorder.seen))
    return recorder.seen


def equivalents():
    """Return the mutants that were read and change no result, and what they change."""
    with EQUIVALENTS.open(newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(module, key): f"{kind}, {why}" for module, key, kind, why in rows}


def print_scores(sizes, results):
    """Print one row a module, and the score of all."""
    columns = "{:44} {:>8} {:>6} {:>7} {:>11} {:>9}"
    names = "mutants", "tried", "killed", "equivalent", "survived"
    print("\n" + columns.format("module", *names))
    rows = []
    for module, size in sizes.items():
        told = [verdict for name, _, verdict in results if name == module]
        killed = sum(verdict.startswith("killed") for verdict in told)
        tried = sum(not verdict.startswith("not tried") for verdict in told)
        known = sum(verdict.startswith("equivalent") for verdict in told)
        rows.append((size, tried, killed, known, tried - killed - known))
        print(columns.format(module, *rows[-1]))
    total = [sum(column) for column in zip(*rows, strict=True)]
    print(columns.format("all", *total))
    _, tried, killed, known, _ = total
    print(f"score: {killed / max(tried - known, 1):.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="+", help="files of the core")
    parser.add_argument("--sample", type=int, default=10**9, help="mutants a module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests a mutant")
    parser.add_argument("--tests", nargs="*", default=["tests/core"])
    parser.add_argument(
        "--lines", type=Path, help="where to keep what tests run, for the same code"
    )
    given = parser.parse_args()
    lines = given.lines and given.lines.resolve()
    modules = [ROOT / name for name in given.modules]
    os.chdir(ROOT)
    for place in (ROOT, ROOT / "tests", ROOT / "tests/core"):
        sys.path.insert(0, str(place))
    settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
    )
    settings.load_profile("mutants")
    known = recorded(lines, given.tests)
    wanted, sizes = [], {}
    for path in modules:
        module, source = str(path.relative_to(ROOT)), path.read_text()
        found = list(enumerate(mutations(ast.parse(source))))
        sizes[module] = len(found)
        random.Random(f"{given.seed} {module}").shuffle(found)
        chosen = sorted(found[: given.sample], key=lambda pair: pair[0])
        wanted += [(module, source, place, item) for place, item in chosen]
    executioner = Executioner(known, wanted, given.seconds)
    pytest.main([*OPTIONS, *given.tests], plugins=[executioner])
    print_scores(sizes, executioner.results)


if __name__ == "__main__":
    main()
