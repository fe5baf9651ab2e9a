#!/usr/bin/env python3
"""Runs an MPI program without and with the library for unchanged MPI programs, and compares what its ranks saw.

    compare.py --launcher mpirun.py --mpiexec mpirun --library libtasuki_mpi.so -n 3 -- PROGRAM [ARGUMENT...]

The program writes what each rank saw to FILE.<rank>; `FILE` among its arguments stands for that name. It runs with
every typed message packed, with every one spelt anew, with all that goes through the ring in it, with the layers that
prices choose, and with the library on the odd ranks only. Fails unless all files are the same, and unless the report
says that the library did what it was told to.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Of the ranks, only odd ones load the library.
ODD = """
if [ $((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} % 2)) = 1 ]; then export LD_PRELOAD="$TASUKI_LIBRARY"; fi
exec "$@"
"""

MODES = {
    "all packed": {"TASUKI_MPI_ALWAYS": "1", "TASUKI_MPI_LAYERS": "packing"},
    "all spelt": {"TASUKI_MPI_ALWAYS": "1", "TASUKI_MPI_LAYERS": "spelling"},
    "all layers": {"TASUKI_MPI_ALWAYS": "1"},
    "by prices": {},
    "on odd ranks": {"TASUKI_MPI_ALWAYS": "1"},
    "unreported": {"TASUKI_MPI_ALWAYS": "1", "TASUKI_MPI_REPORT": "0"},  # what gains nothing is not looked after
    "switched off": {"TASUKI_MPI_LAYERS": "none"},
}


def run(arguments: argparse.Namespace, file: Path, mode: str | None) -> None:
    program = [str(file) if word == "FILE" else word for word in arguments.program]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TASUKI_MPI_")}
    loaded = ":".join(filter(None, (arguments.sanitizer, arguments.library)))
    if mode == "on odd ranks":
        program = ["/bin/sh", "-c", ODD, "sh", *program]
        environment["TASUKI_LIBRARY"] = loaded
    elif mode:
        program = ["/usr/bin/env", f"LD_PRELOAD={loaded}", *program]
    if mode:
        environment |= {"TASUKI_MPI_REPORT": f"{file}.report"} | MODES[mode]
    command = [sys.executable, arguments.launcher, "--mpiexec", arguments.mpiexec, "--timeout", "60"]
    done = subprocess.run(
        [*command, "-n", str(arguments.ranks), *program], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"compare: {mode or 'without the library'}: status {done.returncode}\n{done.stdout}{done.stderr}")


def share(file: Path, ranks: int, layers: tuple[str, ...]) -> tuple[int, float, float]:
    """Typed calls of all ranks, and the shares of calls and bytes that went by some layers."""
    lines = []
    for rank in range(ranks):
        report = Path(f"{file}.report.{rank}")
        lines += [line for line in json.loads(report.read_text())["lines"] if not line["contiguous"]]
    calls = sum(line["calls"] for line in lines)
    size = sum(line["bytes"] for line in lines)
    ours = [line for line in lines if line["layer"] in layers]
    return (
        calls,
        sum(line["calls"] for line in ours) / max(calls, 1),
        sum(line["bytes"] for line in ours) / max(size, 1),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--launcher", required=True, help="tools/mpirun.py")
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--library", required=True, help="libtasuki_mpi.so")
    parser.add_argument("--sanitizer", help="the run-time that both are built with, which is to be loaded first")
    parser.add_argument("-n", dest="ranks", type=int, required=True)
    parser.add_argument("--modes", default=",".join(MODES), help="which of the modes, with commas between them")
    parser.add_argument("--ring", type=float, default=0, help="least share of calls and bytes through the ring")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "without"
        run(arguments, plain, None)
        expected = [Path(f"{plain}.{rank}").read_bytes() for rank in range(arguments.ranks)]
        if not all(expected):
            sys.exit("compare: a rank wrote nothing")
        for number, mode in enumerate(arguments.modes.split(",")):
            file = Path(folder) / f"with{number}"
            run(arguments, file, mode)
            for rank in range(arguments.ranks):
                seen = Path(f"{file}.{rank}").read_bytes()
                if seen != expected[rank]:
                    pairs = zip(expected[rank].splitlines(), seen.splitlines(), strict=False)
                    different = next((f"{a!r}, then {b!r}" for a, b in pairs if a != b), "one ends earlier")
                    sys.exit(f"compare: {mode}: rank {rank} saw something else: {different}")
            wanted = [
                ("all packed", ("packing",), 0.9),
                ("all spelt", ("spelling",), 0.9),
                ("all layers", ("ring", "packing"), 0.9),
                ("all layers", ("ring",), arguments.ring),
            ]
            for which, layers, least in wanted:
                if which != mode:
                    continue
                calls, part, size = share(file, arguments.ranks, layers)
                names = " and ".join(layers)
                print(f"{mode}: {calls} typed calls, {part:.1%} of them and {size:.1%} of the bytes by {names}")
                if calls == 0 or part < least or size < least:
                    sys.exit(f"compare: {mode}: too little went by {names}")
            print(f"{mode}: equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
