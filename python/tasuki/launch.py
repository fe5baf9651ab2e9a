"""Starts programs on ranks under the MPI that they were built with, and finds programs and launcher.

Uses the standard library only: tools/mpirun.py loads this file before anything is installed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

TIMED_OUT = 124  # as timeout(1)
PACKAGE = Path(__file__).resolve().parent


class LaunchError(Exception):
    """A program or a launcher that cannot be found or run; the text says what to do."""


def is_open_mpi(launcher: str) -> bool:
    try:
        done = subprocess.run([launcher, "--version"], capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise LaunchError(f"the launcher {launcher} cannot be run: {error.strerror}; is it MPI's mpiexec?") from None
    if done.returncode != 0:
        said = next(filter(None, map(str.strip, (done.stderr + done.stdout).splitlines())), "it said nothing")
        status = exit_status(done)
        raise LaunchError(f"`{launcher} --version` ended with status {status}: {said}; is it MPI's mpiexec?")
    return "Open MPI" in done.stdout or "OpenRTE" in done.stdout


def launch(launcher: str, ranks: int, program: list[str], recover: bool = False) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment. With `recover` a killed rank does not take the others with it."""
    environment = dict(os.environ)
    command = [launcher]
    if is_open_mpi(launcher):
        # Open MPI 5 does not start where a launcher with its process number was killed once: its files are still there.
        command = ["sh", "-c", 'rm -f "${TMPDIR:-/tmp}/ompi.$$/"pmix.*.tool*; exec "$0" "$@"', launcher]
        # More ranks than cores is normal in tests, and ranks bound to one core each would then share it.
        flags = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        if recover:
            flags.append("--enable-recovery")
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
            environment.setdefault(name, "1")
        # It sleeps for a second in every MPI_Init on hosts without its networks, and serves MPI's windows, of which
        # Tasuki has none.
        environment.setdefault("OMPI_MCA_btl", "^ofi")
    else:
        flags = ["-disable-auto-cleanup"] if recover else []
    return [*command, *flags, "-n", str(ranks), *program], environment


def launcher_of(program: str, checkout: Path | None = None) -> str:
    """The launcher for a program: recorded in the CMakeCache.txt of the build folder around it; else of the MPI library
    that it is linked with; else, for what is no program of MPI's by itself (an interpreter), TASUKI_MPIEXEC, that of
    the set-up `checkout`, or that on PATH."""
    path = Path(shutil.which(program) or program)
    for folder in path.resolve().parents:
        cache = folder / "CMakeCache.txt"
        if cache.exists():
            found = re.search(r"^MPIEXEC_EXECUTABLE:\w+=(.+)$", cache.read_text(), re.M)
            if found:
                return found.group(1)
    if mpi_linked_with(path):
        return launcher_beside(path)
    choice = checkout / ".deps" / "mpi" if checkout else None
    chosen = choice.read_text().splitlines()[1] if choice and choice.exists() else None
    launcher = os.environ.get("TASUKI_MPIEXEC") or chosen or shutil.which("mpirun") or shutil.which("mpiexec")
    if launcher and shutil.which(launcher):
        return launcher
    raise LaunchError(
        f"{program} is in no CMake build folder that has an MPI, is not linked with one, and "
        f"{f'{launcher} cannot be executed' if launcher else 'no mpirun is on PATH'}; name the launcher with --mpiexec"
    )


def mpi_linked_with(binary: Path) -> str:
    """The MPI library that the loader finds for `binary`; empty if it needs none or finds none."""
    try:
        libraries = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False).stdout
    except OSError:  # a machine without ldd
        return ""
    found = re.search(r"libmpi\S*\.so\S* => (/\S+)", libraries)
    return found.group(1) if found else ""


def launcher_beside(binary: Path) -> str:
    """The launcher of the MPI library that `binary` is linked with."""
    library = mpi_linked_with(binary)
    if not library:
        raise LaunchError(f"{binary} finds no MPI library (`ldd {binary}`); install the MPI that it was built with")
    for folder in Path(library).resolve().parents:
        for name in ("mpirun", "mpiexec"):
            if os.access(folder / "bin" / name, os.X_OK):
                return str(folder / "bin" / name)
    raise LaunchError(f"there is no mpirun with the MPI library {library}; name one in TASUKI_MPIEXEC")


def launcher_for(binary: Path) -> str:
    """TASUKI_MPIEXEC, or the launcher of the MPI that `binary` is linked with."""
    named = os.environ.get("TASUKI_MPIEXEC")
    if not named:
        return launcher_beside(binary)
    if not shutil.which(named):
        raise LaunchError(f"TASUKI_MPIEXEC is '{named}', which is not there or cannot be executed")
    return named


def bin_folders() -> list[Path]:
    """Where Tasuki's own programs may be: TASUKI_BIN, or the package, or the build folder of a checkout around it."""
    named = os.environ.get("TASUKI_BIN")
    return [Path(named)] if named else [PACKAGE / "bin", PACKAGE.parents[1] / "build" / "bin"]


def own_program(name: str) -> Path:
    for folder in bin_folders():
        if os.access(folder / name, os.X_OK):
            return folder / name
    looked = ", ".join(map(str, bin_folders()))
    raise LaunchError(
        f"the program {name} is not in {looked}; build it (`make build`, or for an installed package "
        "`pip install . -C cmake.define.TASUKI_PROGRAMS=ON`) or name its folder in TASUKI_BIN"
    )


def interposition_library() -> Path:
    """libtasuki_mpi.so, which ranks load before their MPI: beside the package's programs, or in the build folder."""
    folders = [folder.parent / "lib" for folder in bin_folders()]
    for folder in folders:
        if (folder / "libtasuki_mpi.so").exists():
            return folder / "libtasuki_mpi.so"
    looked = ", ".join(map(str, folders))
    raise LaunchError(f"libtasuki_mpi.so is not in {looked}; build it (`make build`), or name the folder of programs "
                      "beside its own in TASUKI_BIN")  # fmt: skip


def core_library() -> Path:
    """The compiled part of the Python package."""
    from importlib.util import find_spec

    spec = find_spec("tasuki._core")
    if spec is None or not spec.origin:
        raise LaunchError(f"{PACKAGE} has no compiled core; install the package (`pip install .`)")
    return Path(spec.origin)


def start(launcher: str, ranks: int, program: list[str], recover: bool = False, extra: dict[str, str] | None = None,
          **options) -> subprocess.Popen:  # fmt: skip
    """Starts the ranks; `extra` goes into their environment, `options` to Popen."""
    command, environment = launch(launcher, ranks, program, recover)
    return subprocess.Popen(command, env=environment | (extra or {}), stdin=subprocess.DEVNULL, **options)


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
    # Whoever is still there takes no notice of being asked; and ranks may outlive a launcher that is killed.
    for process in {*processes_below(launcher.pid), launcher.pid}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    launcher.wait()


def exit_status(process: subprocess.Popen | subprocess.CompletedProcess) -> int:
    """The shell's convention: 128 + the signal that ended it."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
