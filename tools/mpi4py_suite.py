#!/usr/bin/env python3
"""Runs mpi4py's own test suite without and with the library for unchanged MPI programs, and prints what differs.

    tools/mpi4py_suite.py --mpiexec .deps/mpich/bin/mpirun --library build-mpich/lib/libtasuki_mpi.so -n 2

Its tests are in mpi4py's source distribution, which is taken from PyPI into .deps/ at the version of requirements.txt;
mpi4py itself is the one of the interpreter (--python). A test may fail for reasons of the MPI's: the suite runs without
the library first, and only what is different with it counts. Differences may come and go by themselves, so tests that
differ run again, in both ways. Ends with status 1 if some differ still, or if a run does not end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

import mpirun

ROOT = Path(__file__).resolve().parents[1]
MODES = {
    "by prices": {},
    "all layers": {"TASUKI_MPI_ALWAYS": "1"},
    "all packed": {"TASUKI_MPI_ALWAYS": "1", "TASUKI_MPI_LAYERS": "packing"},
}


def run_rank(results: str, folder: str, options: list[str]) -> None:
    """One rank: mpi4py's own runner, with a line for each test in a file of the rank's."""
    import unittest

    rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or "0"
    with Path(f"{results}.{rank}").open("w", buffering=1) as out:

        class Result(unittest.TextTestResult):
            def startTest(self, test):
                out.write(f"{test.id()} ")
                out.flush()
                self.outcome = "passed"
                super().startTest(test)

            def stopTest(self, test):
                out.write(self.outcome + "\n")
                super().stopTest(test)

        def noted(name, outcome):
            before = getattr(unittest.TextTestResult, name)

            def after(self, test, *arguments):
                self.outcome = outcome
                return before(self, test, *arguments)

            return after

        def subtest(self, test, part, error):
            if error is not None:
                self.outcome = "failed"
            unittest.TextTestResult.addSubTest(self, test, part, error)

        outcomes = {"Error": "error", "Failure": "failed", "Skip": "skipped"}
        outcomes |= {"ExpectedFailure": "failed, as expected", "UnexpectedSuccess": "passed unexpectedly"}
        for name, outcome in outcomes.items():
            setattr(Result, f"add{name}", noted(f"add{name}", outcome))
        Result.addSubTest = subtest
        unittest.TextTestRunner.resultclass = Result
        sys.path.insert(0, folder)
        sys.argv = [str(Path(folder) / "main.py"), "--no-builddir", *options]
        import main

        main.main(module=None)


def suite(python: str) -> Path:
    """The folder of the tests."""
    pinned = re.search(r"^mpi4py==(\S+)$", (ROOT / "requirements.txt").read_text(), re.M).group(1)
    folder = ROOT / ".deps" / f"mpi4py-{pinned}"
    if not folder.exists():
        with tempfile.TemporaryDirectory() as temporary:
            get = [
                python,
                "-m",
                "pip",
                "download",
                "--no-deps",
                "--no-binary",
                "mpi4py",
                "--quiet",
                "--dest",
                temporary,
            ]
            subprocess.run([*get, f"mpi4py=={pinned}"], check=True)
            with tarfile.open(next(Path(temporary).glob("*.tar.gz"))) as archive:
                archive.extractall(folder.parent, filter="data")
    return folder / "test"


class Suite:
    def __init__(self, arguments: argparse.Namespace, temporary: Path) -> None:
        self.arguments = arguments
        self.temporary = temporary
        self.folder = Path(arguments.tests).resolve() if arguments.tests else suite(arguments.python)
        self.runs = 0

    def run(self, mode: str | None, options: list[str]) -> tuple[list[dict[str, str]], str]:
        """What each rank's tests ended with, and why the run did not end well (empty if it did)."""
        self.runs += 1
        given = self.arguments
        file = self.temporary / f"run{self.runs}"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TASUKI_MPI_")}
        library = Path(given.mpiexec).resolve().parents[1] / "lib"
        found = [library / name for name in ("libmpi.so.40", "libmpi.so.12") if (library / name).exists()]
        if found:
            environment.setdefault("MPI4PY_LIBMPI", str(found[0]))
        program = [given.python, str(Path(__file__).resolve()), "--rank", str(file), str(self.folder), *options]
        if mode:
            program = ["/usr/bin/env", f"LD_PRELOAD={given.library}", *program]
            environment |= MODES[mode] | {"TASUKI_MPI_REPORT": f"{file}.report"}
        launcher = [sys.executable, str(ROOT / "tools" / "mpirun.py"), "--mpiexec", given.mpiexec]
        with Path(f"{file}.log").open("w") as log:
            done = subprocess.run(
                [*launcher, "--timeout", str(given.timeout), "-n", str(given.ranks), *program],
                env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)  # fmt: skip
        seen: list[dict[str, str]] = []
        why = ""
        for rank in range(given.ranks):
            path = Path(f"{file}.{rank}")
            lines = path.read_text().splitlines() if path.exists() else []
            seen.append(dict((line + " ").split(" ", 1) for line in lines))
            open_tests = [test for test, outcome in seen[-1].items() if not outcome.strip()]
            if open_tests:
                why += f"rank {rank} did not come back from {open_tests[0]}; "
        if not all(seen):
            why += "a rank ran no test; "
        if done.returncode == mpirun.launcher.TIMED_OUT:
            why += f"the ranks were stopped after {given.timeout} s; "
        if why or given.verbose:
            tail = Path(f"{file}.log").read_text(errors="replace").splitlines()[-40:]
            why and print("\n".join(tail))
            why += f"status {done.returncode}"
        return [{test: outcome.strip() for test, outcome in rank.items()} for rank in seen], why

    def layers(self) -> str:
        """The shares of typed calls and bytes by layer in the last run."""
        calls, size = Counter(), Counter()
        for rank in range(self.arguments.ranks):
            report = self.temporary / f"run{self.runs}.report.{rank}"
            if not report.exists():
                continue
            for line in json.loads(report.read_text())["lines"]:
                if not line["contiguous"]:
                    calls[line["layer"]] += line["calls"]
                    size[line["layer"]] += line["bytes"]
        if not calls:
            return "no typed call"
        most = max(size.total(), 1)
        parts = [
            f"{layer} {number / calls.total():.1%} of the calls, {size[layer] / most:.1%} of the bytes"
            for layer, number in calls.items()
        ]
        return f"{calls.total()} typed calls: " + "; ".join(sorted(parts))


def differences(one: list[dict[str, str]], other: list[dict[str, str]]) -> dict[str, str]:
    found = {}
    for rank, (a, b) in enumerate(zip(one, other, strict=True)):
        for test in sorted(a.keys() | b.keys()):
            if a.get(test) != b.get(test):
                found.setdefault(test, f"rank {rank}: {a.get(test, 'not run')} without, {b.get(test, 'not run')} with")
    return found


def main() -> int:
    if sys.argv[1:2] == ["--rank"]:
        run_rank(sys.argv[2], sys.argv[3], sys.argv[4:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--mpiexec", required=True, help="the launcher of the MPI")
    parser.add_argument("--library", required=True, help="libtasuki_mpi.so")
    parser.add_argument("--python", default=str(ROOT / ".venv" / "bin" / "python"), help="that has mpi4py and NumPy")
    parser.add_argument("--tests", help="the folder of its tests; default: from PyPI")
    parser.add_argument("-n", dest="ranks", type=int, default=2)
    parser.add_argument("--modes", default=",".join(MODES), help="which of the modes, with commas between them")
    parser.add_argument("--timeout", type=int, default=900, help="seconds that a run may take")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("options", nargs="*", help="for mpi4py's runner, after --; default: -e spawn -e dynproc")
    arguments = parser.parse_args()
    arguments.library = str(Path(arguments.library).resolve())
    options = arguments.options or ["-e", "spawn", "-e", "dynproc"]
    bad = False
    with tempfile.TemporaryDirectory() as temporary:
        tests = Suite(arguments, Path(temporary))
        plain, why = tests.run(None, options)
        print(f"without the library: {dict(Counter(plain[0].values()))} {why}", flush=True)
        if why:
            return 1
        for mode in arguments.modes.split(","):
            seen, why = tests.run(mode, options)
            print(f"{mode}: {dict(Counter(seen[0].values()))} {why}; {tests.layers()}", flush=True)
            different = differences(plain, seen)
            if why:
                bad = True
                continue
            if different:
                print(f"{mode}: {len(different)} tests differ, and run again", flush=True)
                named = [part for test in different for part in ("-k", test)]
                again, first = tests.run(None, [*options, *named])
                seen, why = tests.run(mode, [*options, *named])
                different = differences(again, seen)
                why += first
            for test, what in list(different.items())[:40]:
                print(f"{mode}: {test}: {what}")
            bad = bad or bool(different) or bool(why)
    print("mpi4py_suite: " + ("with the library something is different" if bad else "no difference"))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
