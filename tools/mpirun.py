#!/usr/bin/env python3
"""Runs a program on N ranks under the MPI that it was built with, with the flags and environment that MPI needs.

    tools/mpirun.py -n 4 build/bin/himeno --size S

The launcher is --mpiexec, or what CMake found for the build folder that the program lies in.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

TIMED_OUT = 124  # as timeout(1)


def is_open_mpi(launcher: str) -> bool:
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=True).stdout
    return "Open MPI" in version or "OpenRTE" in version


def launch(launcher: str, ranks: int, program: list[str], recover: bool = False) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment. With `recover` a killed rank does not take the others with it."""
    environment = dict(os.environ)
    if is_open_mpi(launcher):
        # More ranks than cores is normal in tests, and ranks bound to one core each would then share it.
        flags = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        if recover:
            flags.append("--enable-recovery")
        for name, value in {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_osc": "^ucx",  # prints an error at MPI_Win_allocate_shared where there is no fast network
        }.items():
            environment.setdefault(name, value)
    else:
        flags = ["-disable-auto-cleanup"] if recover else []
    return [launcher, *flags, "-n", str(ranks), *program], environment


def launcher_of(program: str) -> str:
    """The launcher recorded in the CMakeCache.txt of the build folder around the program."""
    for folder in Path(program).resolve().parents:
        cache = folder / "CMakeCache.txt"
        if cache.exists():
            found = re.search(r"^MPIEXEC_EXECUTABLE:\w+=(.+)$", cache.read_text(), re.M)
            if found:
                return found.group(1)
    sys.exit(f"mpirun.py: {program} is in no CMake build folder that has an MPI; name the launcher with --mpiexec")


def processes_below(root: int) -> list[int]:
    """The processes at the leaves of the tree that starts with `root`: the ranks, or `root` if it has no children."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])  # the name before it may hold spaces
        except OSError:
            continue  # ended meanwhile
        children.setdefault(parent, []).append(int(stat.parent.name))
    leaves, open_ends = [], [root]
    while open_ends:
        process = open_ends.pop()
        below = children.get(process, [])
        open_ends += below
        if not below:
            leaves.append(process)
    return leaves


def stop(launcher: subprocess.Popen) -> None:
    """Ends the ranks, and the launcher if that is not enough.

    The ranks are signalled directly: a launcher that is told to stop drops what they still have to say.
    """
    for end in (lambda: [os.kill(p, signal.SIGTERM) for p in processes_below(launcher.pid)], launcher.terminate):
        with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
            end()
            launcher.wait(10)
            return
    launcher.kill()
    launcher.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", dest="ranks", type=int, required=True, help="number of ranks")
    parser.add_argument("--mpiexec", help="the launcher; default: the one of the program's build folder")
    parser.add_argument("--timeout", type=float, help="seconds after which the ranks are stopped (exit status 124)")
    parser.add_argument("--recover", action="store_true", help="when a rank is killed, let the others go on")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")
    arguments = parser.parse_args()
    if not arguments.program:
        parser.error("name a program to run")
    if not shutil.which(arguments.program[0]):
        parser.error(f"{arguments.program[0]} is not there, or cannot be executed")  # some launchers would hang
    if arguments.ranks < 1:
        parser.error(f"-n is {arguments.ranks}; it must be at least 1")

    launcher = arguments.mpiexec or launcher_of(arguments.program[0])
    command, environment = launch(launcher, arguments.ranks, arguments.program, arguments.recover)
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the launcher too, which stops the ranks
    try:
        status = process.wait(arguments.timeout)
    except subprocess.TimeoutExpired:
        print(f"mpirun.py: stopping the ranks after {arguments.timeout:g} s", file=sys.stderr, flush=True)
        stop(process)
        return TIMED_OUT
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
