#!/usr/bin/env python3
"""Measures every collective on two ranks beside MPI's forms, into bench/results/collectives-MPI.json.

    tools/collectives_bench.py --build build                       all of them, some ten minutes
    tools/collectives_bench.py --build build-mpich --kind scan     one of them; the rest of the file stays

MPI is the one that the build folder's tasuki-bench is built with.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["broadcast", "allreduce", "reduce", "allgather", "reduce_scatter", "alltoall", "gather", "scatter", "scan"]
KINDS += ["exscan", "barrier", "start"]  # the last: of all of them the call of `start` alone
NAMES = {"Open MPI": "openmpi", "MPICH": "mpich"}


def commit() -> str:
    """Of what was measured: changes to results and pages do not count."""

    def git(*command: str) -> subprocess.CompletedProcess:
        return subprocess.run(["git", *command], capture_output=True, text=True, cwd=ROOT, check=False)

    name = git("rev-parse", "--short", "HEAD").stdout.strip() or "unknown"
    changed = git("diff", "--quiet", "HEAD", "--", ".", ":!bench/results", ":!docs").returncode != 0
    return name + ("-dirty" if changed and name != "unknown" else "")


def kind_of(case: dict) -> str:
    return "broadcast" if case["group"] == "broadcast" else case["case"].partition(" ")[0]


def measured(build: Path, kind: str, rounds: int) -> dict:
    """What tasuki-bench says of a kind: back to back and after a barrier."""
    group = "broadcast" if kind == "broadcast" else "collective"
    # A blank, or else `scan` would be the start of another.
    text = "broadcast: " if kind == "broadcast" else f"collective: {kind}" + ("" if kind == "barrier" else " ")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        program = [str(build / "bin" / "tasuki-bench"), "--device", "cpu", "--group", group, "--filter", text]
        command = [sys.executable, str(ROOT / "tools" / "mpirun.py"), "-n", "2", "--timeout", "600", *program]
        done = subprocess.run(
            [*command, "--rounds", str(rounds), "--json", file.name], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"collectives_bench.py: {kind} failed:\n{done.stdout}{done.stderr}")
        return json.loads(Path(file.name).read_text())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these collectives; may be repeated")
    parser.add_argument("--rounds", type=int, default=7, help="samples a peer")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    # Its own prices: those of another MPI, or of a busy machine, are not to be taken.
    os.environ["TASUKI_PROFILE"] = str(build / "profile-collectives.json")
    os.environ["TASUKI_COMMIT"] = commit()
    for kind in arguments.kind or KINDS:
        results = measured(build, kind, arguments.rounds)
        name = next(short for long, short in NAMES.items() if results["machine"]["mpi"].startswith(long))
        path = ROOT / "bench" / "results" / f"collectives-{name}.json"
        results["machine"]["mpi"] = re.sub(r"Version: *", "", results["machine"]["mpi"])
        others = json.loads(path.read_text())["cases"] if path.exists() else []
        cases = results["cases"] + [case for case in others if kind_of(case) != kind]
        results["cases"] = sorted(cases, key=lambda case: KINDS.index(kind_of(case)))
        path.write_text(json.dumps(results, indent=1) + "\n")
        print(f"{path.relative_to(ROOT)}: {kind}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
