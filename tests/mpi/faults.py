#!/usr/bin/env python3
"""What stands against the library for unchanged MPI programs: each case gives the results of the MPI alone.

    faults.py --launcher mpirun.py --mpiexec mpirun --library libtasuki_mpi.so --tool tool.so PROGRAM

The cases: ranks that end without MPI_Finalize, processes that others may not look into, a rank with another version of
the library, another tool that takes calls over (loaded before and after the library), and a block of a collective that
is too long.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = (0x7461737569000005).to_bytes(8, "little")  # of the shared structures (mpi/library/peers.cpp)
OTHER_ON_ODD = """
if [ $((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} % 2)) = 1 ]; then export LD_PRELOAD="$OTHER"; fi
exec "$@"
"""


def run(
    arguments: argparse.Namespace, file: Path, preload: str, mode: str = "", other: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TASUKI_MPI_")}
    environment |= {"TASUKI_MPI_REPORT": f"{file}.report", "TASUKI_MPI_ALWAYS": "1"}
    program = [arguments.program, str(file), *([mode] if mode else [])]
    if other:
        environment["OTHER"] = other
        program = ["/bin/sh", "-c", OTHER_ON_ODD, "sh", *program]
    if preload:
        program = ["/usr/bin/env", f"LD_PRELOAD={preload}", *program]
    command = [sys.executable, arguments.launcher, "--mpiexec", arguments.mpiexec, "--timeout", "60", "-n", "2"]
    return subprocess.run([*command, *program], env=environment, capture_output=True, text=True, check=False)


def by_ring(file: Path) -> int:
    """Calls that went through shared memory."""
    calls = 0
    for rank in range(2):
        report = Path(f"{file}.report.{rank}")
        if report.exists():
            calls += sum(line["calls"] for line in json.loads(report.read_text())["lines"] if line["layer"] == "ring")
    return calls


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    for option in ("launcher", "mpiexec", "library", "tool"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("program")
    arguments = parser.parse_args()
    library, tool = arguments.library, arguments.tool
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = folder / "plain"
        done = run(arguments, plain, "")
        if done.returncode != 0:
            sys.exit(f"faults: without the library: status {done.returncode}\n{done.stdout}{done.stderr}")
        expected = [Path(f"{plain}.{rank}").read_bytes() for rank in range(2)]

        other = folder / "other"
        other.mkdir()
        patched = 0
        for file in Path(library).parent.glob("libtasuki_mpi*.so"):
            code = file.read_bytes()
            patched += code.count(VERSION)
            (other / file.name).write_bytes(code.replace(VERSION, b"\xff" + VERSION[1:]))
            shutil.copymode(file, other / file.name)
        if patched == 0:
            sys.exit("faults: the library has another version than this test knows")

        # (case, what is loaded, mode, what odd ranks load, whether shared memory is used, what is said)
        cases = [
            ("no MPI_Finalize", library, "unfinished", "", None, ""),
            ("closed processes", library, "closed", "", False, ""),
            ("another version", library, "", str(other / Path(library).name), False, ""),
            ("a tool behind it", f"{library}:{tool}", "", "", False, "takes MPI's calls over too"),
            ("a tool before it", f"{tool}:{library}", "", "", False, "takes MPI's calls over too"),
            ("a block too long", library, "truncated", "", True, ""),
        ]
        for number, (case, preload, mode, odd, shared, said) in enumerate(cases):
            file = folder / f"case{number}"
            done = run(arguments, file, preload, mode, odd)
            text = f"{done.stdout}{done.stderr}"
            if done.returncode != 0:
                alone = run(arguments, folder / f"alone{number}", "", mode)
                if alone.returncode == 77:
                    print(f"{case}: passed over, as this system does not allow it")
                    continue
                if alone.returncode != done.returncode:
                    sys.exit(f"faults: {case}: status {done.returncode}\n{text}")
            if [Path(f"{file}.{rank}").read_bytes() for rank in range(2)] != expected:
                sys.exit(f"faults: {case}: other results than without the library\n{text}")
            if said not in text:
                sys.exit(f"faults: {case}: the library does not say that it stands aside\n{text}")
            if shared is not None and (by_ring(file) > 0) != shared:
                sys.exit(f"faults: {case}: {by_ring(file)} calls went through shared memory")
            print(f"{case}: equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
