"""`tasuki run`: a Python script or any program on ranks, under the MPI that Tasuki was built with."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from tasuki.cli import Failure
from tasuki.cli.common import common, emit, ranks_option, run_ranks, timeout_option
from tasuki.launch import LaunchError, bin_folders, core_library, interposition_library, launcher_for, own_program


def resolve(program: tuple[str, ...]) -> tuple[list[str], str]:
    """The command line and the launcher for a script, a program of Tasuki's by its name, or any other program."""
    first, rest = program[0], list(program[1:])
    if first.endswith(".py"):
        if not Path(first).is_file():
            raise Failure(f"the script {first} is not there")
        return [sys.executable, first, *rest], launcher_for(core_library())
    found = shutil.which(first)
    if "/" not in first and any((folder / first).exists() for folder in bin_folders()):
        found = str(own_program(first))
    if not found:
        raise Failure(f"{first} is not a script (*.py), not a program of Tasuki's, and not an executable on PATH")
    try:
        return [found, *rest], launcher_for(Path(found))
    except LaunchError:  # a shell script or an interpreter: what it runs decides, so the package's own MPI
        return [found, *rest], launcher_for(core_library())


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@ranks_option(4)
@timeout_option
@click.option("--mpi", "mpi_library", is_flag=True, help="Load the library for unchanged MPI programs into the ranks.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@common
def command(ranks: int, timeout: float | None, mpi_library: bool, program: tuple[str, ...], as_json: bool) -> int:
    """Run PROGRAM, a Python script (*.py) or an executable, with its arguments on ranks. Ends with its exit status.

    With --json, what the program prints on stdout is on stderr.
    """
    full, launcher = resolve(program)
    if mpi_library:  # into the ranks alone, not into their launcher
        already = os.environ.get("LD_PRELOAD", "")
        loaded = " ".join(filter(None, [str(interposition_library()), already]))
        full = ["/usr/bin/env", f"LD_PRELOAD={loaded}", *full]
    what = Path(program[0]).name
    status = run_ranks(ranks, full, launcher, what=what, own=False, quiet=as_json, timeout=timeout)
    if as_json:
        emit({"command": full, "launcher": launcher, "ranks": ranks, "status": status}, True, lambda console: None)
    elif status != 0:
        print(f"tasuki: {program[0]} on {ranks} ranks ended with status {status}", file=sys.stderr)
    return status
