#!/usr/bin/env python3
"""Runs a program on N ranks under the MPI that it was built with, with the flags and environment that MPI needs.

    tools/mpirun.py -n 4 build/bin/himeno --size S

The launcher is --mpiexec; else what CMake found for the build folder that the program lies in; else that of the MPI
that the program is linked with; else TASUKI_MPIEXEC, what `make setup` chose, or mpirun on PATH.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import signal
import subprocess
import sys
from pathlib import Path

# The package's own launcher, by its path: this script must run before the package can be imported.
_spec = importlib.util.spec_from_file_location(
    "tasuki_launch", Path(__file__).resolve().parents[1] / "python" / "tasuki" / "launch.py"
)
launcher = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(launcher)
launch, launcher_of, LaunchError = launcher.launch, launcher.launcher_of, launcher.LaunchError


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

    try:
        mpiexec = arguments.mpiexec or launcher_of(arguments.program[0], Path(__file__).resolve().parents[1])
        process = launcher.start(mpiexec, arguments.ranks, arguments.program, arguments.recover)
    except LaunchError as error:
        sys.exit(f"mpirun.py: {error}")
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the launcher too, which stops the ranks
    try:
        process.wait(arguments.timeout)
    except subprocess.TimeoutExpired:
        print(f"mpirun.py: stopping the ranks after {arguments.timeout:g} s", file=sys.stderr, flush=True)
        launcher.stop(process)
        return launcher.TIMED_OUT
    return launcher.exit_status(process)


if __name__ == "__main__":
    sys.exit(main())
