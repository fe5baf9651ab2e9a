#!/usr/bin/env python3
"""Programs of MPI alone, unchanged, without and with the library for unchanged MPI programs: Debian's hpcc and
ScaLAPACK's tests, and those of tests/mpi that a build folder and its interpreter have.

    apt-get install hpcc scalapack-mpi-test
    tools/mpi_programs.py --library build/lib/libtasuki_mpi.so [-n 4] [--only NAME...]

runs each program twice, with the MPI that it is linked to, says whether its results are the same, and how many of its
typed calls and bytes went by which layer. Times and rates are no results: numbers with a point in them are passed over,
and verdicts, counts and the order of lines are compared. A program whose MPI the library was not built for, or
whose MPI's launcher (mpiexec.openmpi, mpiexec.mpich) is not on PATH, is named and passed over. Debian's MPICH need not
be installed, which would add a choice to the alternatives of mpirun: unpack mpich, hwloc-nox and libslurm38
(apt-get download, dpkg -x) into a folder, and add its usr/bin to PATH and its libraries to LD_LIBRARY_PATH. Status 1
if any result differs, 77 if nothing could be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = 77
TIMED_OUT = "status 124"  # of tools/mpirun.py
LAYERS = ("ring", "packing", "spelling", "MPI")
# At most so often without the library, as verdicts vary: BLACS's xFbtest passes or skips its test of repeatable sums.
RUNS_ALONE = 6
# Each tests other calls: BLACS sends triangles and rectangles by types, PBLAS and the factorisations stand on it.
SCALAPACK = (
    "xCbtest",
    "xFbtest",
    "PBLAS/dpb1tst",
    "PBLAS/dpb2tst",
    "PBLAS/dpb3tst",
    "xdlu",
    "xdllt",
    "xdqr",
    "xzlu",
    "xdtrd",
)
NUMBER = re.compile(r"[-+]?\d*\.\d+(?:[ED][-+]?\d+)?|\*{3,}")
# BLACS skips it where sums of numbers that arrive in any order happened to be equal.
BY_ARRIVAL = re.compile(r"\b(?:PASSED|SKIPPED)(?= REPEATABLE SUM TEST)")
DATED = re.compile(r"\b\d\d?:\d\d(?::\d\d)?\b|^.*(?:Date|Time|Current time|seconds).*$", re.M)
HPCC_INPUT = """HPL's input, small
for a comparison of results
HPL.out
8
1
1500
1
80
0
1
{p}
{q}
16.0
1
2
1
4
1
2
1
1
1
1
1
0
2
64
0
0
1
8
##### separator
0
1200
0
40
"""


@dataclass
class Program:
    name: str
    kind: str  # openmpi or mpich
    path: Path
    data: Path | None = None  # a folder of input files
    output: str | None = None  # a file that it writes; else what it prints
    arguments: tuple[str, ...] = ()
    mpiexec: Path | None = None
    wrote: str | None = None  # the files that its ranks write


def kind_of(program: Path) -> str:
    linked = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return "openmpi" if "libmpi.so.40" in linked else "mpich"


def own_programs(build: Path) -> list[Program]:
    """Each pattern of types and calls in C, and halos in Python."""
    patterns = build / "bin" / "mpi_patterns"
    if not patterns.exists():
        return []
    kind = kind_of(patterns)
    mpiexec = ROOT / ".deps" / kind / "bin" / "mpirun"
    found = [Program(f"mpi_patterns ({kind})", kind, patterns, None, None, ("wrote", "30"), mpiexec, "wrote.*")]
    python = ROOT / ".venv" / "bin" / "python"
    if kind == "openmpi" and python.exists():  # whose mpi4py is loaded with that MPI
        halo = (str(ROOT / "tests" / "mpi" / "halo.py"), "wrote")
        found.append(Program(f"halo.py ({kind})", kind, python, None, None, halo, mpiexec, "wrote.*"))
    return found


def programs(build: Path) -> list[Program]:
    found = own_programs(build)
    hpcc = shutil.which("hpcc")
    if hpcc:
        kind = kind_of(Path(hpcc))
        found.append(Program(f"hpcc ({kind})", kind, Path(hpcc), None, "hpccoutf.txt"))
    for kind in ("openmpi", "mpich"):
        for folder in Path("/usr/lib").glob(f"*/scalapack/{kind}-tests"):
            for name in SCALAPACK:
                path = folder / name
                if path.exists():
                    data = Path("/usr/share/scalapack") / Path(name).parent
                    found.append(Program(f"{path.name} ({kind})", kind, path, data))
    return found


def results_of(text: str, output: str | None) -> list[str]:
    """What a program found out, without what differs from run to run."""
    if output:  # verdicts of hpcc's benchmarks
        wanted = re.compile(r"^(?!WALL|CPU).*(?:PASSED|FAILED|Success=|failed)")  # those two come as times allow
        return [NUMBER.sub("#", line) for line in text.splitlines() if wanted.search(line)]
    lines = [NUMBER.sub("#", line).split() for line in DATED.sub("", BY_ARRIVAL.sub("#", text)).splitlines()]
    return [" ".join(line) for line in lines if line]


def shares(file: Path) -> str:
    calls: dict[str, int] = defaultdict(int)
    size: dict[str, int] = defaultdict(int)
    for report in file.parent.glob(file.name + ".*"):
        for line in json.loads(report.read_text())["lines"]:
            if not line["contiguous"]:
                calls[line["layer"]] += line["calls"]
                size[line["layer"]] += line["bytes"]
    if not calls:
        return "no typed calls"
    all_calls, all_bytes = sum(calls.values()), max(sum(size.values()), 1)
    parts = [
        f"{layer} {calls[layer] / all_calls:.1%} / {size[layer] / all_bytes:.1%}" for layer in LAYERS if calls[layer]
    ]
    return f"{all_calls} typed calls of {all_bytes} bytes: " + ", ".join(parts)


def run(program: Program, ranks: int, library: Path | None, timeout: int) -> tuple[list[str], str]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if program.data:
            for file in [*program.data.glob("*.dat"), *program.data.glob("*/*.dat")]:
                shutil.copy(file, folder)
        if program.output:
            (folder / "hpccinf.txt").write_text(HPCC_INPUT.format(p=1, q=ranks))
        command = [sys.executable, str(ROOT / "tools" / "mpirun.py"), "--timeout", str(timeout), "-n", str(ranks)]
        command += ["--mpiexec", str(program.mpiexec or shutil.which(f"mpiexec.{program.kind}"))]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TASUKI_MPI_")}
        if library:
            command += ["/usr/bin/env", f"LD_PRELOAD={library}"]
            environment["TASUKI_MPI_REPORT"] = str(folder / "report")
        command += [str(program.path), *program.arguments]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        text = (
            (folder / program.output).read_text(errors="replace")
            if program.output and (folder / program.output).exists()
            else done.stdout
        )
        if program.wrote:
            text = "".join(file.read_text("latin-1") for file in sorted(folder.glob(program.wrote)))
        results = [*results_of(text, program.output), f"status {done.returncode}"]
        return results, shares(folder / "report") if library else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--library", type=Path, required=True, help="libtasuki_mpi.so")
    parser.add_argument("-n", dest="ranks", type=int, default=4, help="BLACS's tests are made for 4")
    parser.add_argument("--only", nargs="*", help="names of programs, as this prints them without their MPI")
    parser.add_argument("--timeout", type=int, default=120, help="seconds of each run")
    arguments = parser.parse_args()
    library = arguments.library.resolve()
    status = SKIPPED
    for program in programs(library.parent.parent):
        if arguments.only and program.name.split()[0] not in arguments.only:
            continue
        if not (library.parent / f"libtasuki_mpi_{program.kind}.so").exists():
            print(f"{program.name}: passed over, as libtasuki_mpi_{program.kind}.so was not built")
            continue
        if program.mpiexec is None and shutil.which(f"mpiexec.{program.kind}") is None:
            # Another MPI's launcher starts each rank as a program by itself.
            print(f"{program.name}: passed over, as its launcher mpiexec.{program.kind} is not on PATH")
            continue
        without, _ = run(program, arguments.ranks, None, arguments.timeout)
        with_library, layers = run(program, arguments.ranks, library, arguments.timeout)
        if TIMED_OUT in (without[-1], with_library[-1]):
            print(f"{program.name}: not compared, as it ran for more than {arguments.timeout} s", flush=True)
            continue
        alone = [without]
        while with_library not in alone and len(alone) < RUNS_ALONE:
            alone.append(run(program, arguments.ranks, None, arguments.timeout)[0])
        same = with_library in alone
        verdict = f"{len(without)} lines of results are the same" if same else "DIFFERENT RESULTS"
        if same and len(alone) > 1:
            verdict += f" as in run {len(alone)} without the library"
        print(f"{program.name}: {verdict}; {layers}", flush=True)
        if not same:
            pairs = zip(without, with_library, strict=False)
            print("  " + next((f"{a!r}, then {b!r}" for a, b in pairs if a != b), "one has fewer lines"))
        status = 1 if not same or status == 1 else 0
    if status == SKIPPED:
        print("mpi_programs.py: nothing was compared (apt-get install hpcc scalapack-mpi-test)")
    return status


if __name__ == "__main__":
    sys.exit(main())
