"""Builds Tasuki as users do that have its sources: inside a project of theirs, by both ways, and as a wheel.

`from_source.py CMAKE BUILD` takes minutes; BUILD is a build folder of this checkout, whose compilers and MPI are used.
With --configure the projects are configured only. Sources are a copy of the checkout's files without what set-up made,
as FetchContent or a submodule would have them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MPIRUN = ROOT / "tools" / "mpirun.py"


def run(*command: object, **options) -> str:
    print("+", *command, flush=True)
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=False, **options)
    print(done.stdout, flush=True)
    if done.returncode != 0:
        raise SystemExit(f"from_source.py: {command[0]} ended with status {done.returncode}")
    return done.stdout


def check(right: bool, what: str) -> None:
    if not right:
        raise SystemExit(f"from_source.py: {what}")


def copy_of_sources(target: Path) -> Path:
    """The files that the checkout would hand out: tracked, or new and not ignored."""
    command = ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    else:  # sources without a repository
        shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns("build*", ".deps", ".venv", ".git", "__pycache__"))
    return target


def subproject(cmake: str, work: Path, sources: Path, cache: dict[str, str], fetched: bool, build: bool) -> None:
    folder = work / ("fetched" if fetched else "subdirectory")
    settings = {"TASUKI_SOURCES": sources, "FETCHED": "ON" if fetched else "OFF", "TASUKI_CUDA": "OFF"}
    settings |= {"CMAKE_CXX_COMPILER": cache["CMAKE_CXX_COMPILER"], "CMAKE_BUILD_TYPE": "Release"}
    if not build:  # nothing is fetched for tests that run often
        settings["TASUKI_THIRD_PARTY_INCLUDE"] = cache["TASUKI_THIRD_PARTY_INCLUDE"]
    project = sources / "tests" / "package" / "subproject"
    run(cmake, "-S", project, "-B", folder, *(f"-D{name}={value}" for name, value in settings.items()))
    made = cache_of(folder)
    probed = [
        name for name in made if re.match(r"TASUKI_(NCCL|NVSHMEM)|Python_EXECUTABLE|CMAKE_Fortran_COMPILER$", name)
    ]
    check(not probed, f"configuring looked for what is off: {probed}")
    check(
        made["TASUKI_TESTS"] == "OFF" and made["TASUKI_APPS"] == "OFF", "tests or programs are on in a user's project"
    )
    if build:
        run(
            cmake,
            "--build",
            folder,
            "--target",
            "program",
            "--parallel",
            os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2"),
        )
        run(sys.executable, MPIRUN, "--timeout", 60, "-n", 2, folder / "program")


def cache_of(build: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.+-]+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))


IN_WHEEL = (
    "tasuki/__init__.py", "tasuki/_core.pyi", "tasuki/_operations.py", "tasuki/py.typed", "tasuki/lib/libtasuki.so.*",
    "tasuki/lib/libtasuki_mpi.so", "tasuki/bin/himeno", "tasuki/bin/laplace", "tasuki/bin/tasuki-bench",
    "tasuki/machines/h200-4.json", "tasuki/include/tasuki/kernel.cuh", "tasuki/include/tasuki/c/context.h",
    "tasuki/include/tasuki/version.h", "tasuki/report/page.html", "tasuki-*.dist-info/licenses/LICENSE",
    "tasuki-*.dist-info/licenses/THIRD-PARTY-NOTICES.md",
)  # fmt: skip


def wheel(work: Path, sources: Path) -> None:
    options = ["-C", "cmake.define.TASUKI_PROGRAMS=ON", "-C", "cmake.define.TASUKI_CUDA=OFF"]
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", work / "wheels", *options, sources)
    (file,) = (work / "wheels").glob("tasuki-*.whl")
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        for wanted in IN_WHEEL:
            pattern = re.escape(wanted).replace(r"\*", "[^/]*")
            check(any(re.fullmatch(pattern, name) for name in names), f"{file.name} has no {wanted}")
        strange = [name for name in names if not re.match(r"tasuki(/|-[\d.]+\.dist-info/)", name)]
        check(not strange, f"{file.name} has {strange}")
        for name in names:
            for path in (str(sources), str(ROOT), "/.deps/"):
                check(path.encode() not in archive.read(name), f"{name} in {file.name} names {path}")

    # On another machine: a new environment with nothing but the wheel and what it asks for.
    venv.create(work / "venv", with_pip=True)
    python = work / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", file)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TASUKI_", "PYTHON"))}
    version = run(python, "-c", "import tasuki; print(tasuki.__version__)", env=clean, cwd=work)
    check(version.strip() in file.name, f"the module of {file.name} says that it is {version}")
    command = work / "venv" / "bin" / "tasuki"
    run(command, "info", env=clean, cwd=work)
    run(command, "himeno", "-n", 2, "--size", "XS", "--iterations", 2, env=clean, cwd=work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cmake")
    parser.add_argument("build", type=Path)
    parser.add_argument("--configure", action="store_true", help="configure the projects, and build nothing")
    parser.add_argument("--only", choices=["subdirectory", "fetched", "wheel"], help="one part")
    arguments = parser.parse_args()
    work = arguments.build / ("package-configured" if arguments.configure else "package-from-source")
    shutil.rmtree(work, ignore_errors=True)
    sources = copy_of_sources(work / "sources")
    cache = cache_of(arguments.build)
    os.environ["PATH"] = f"{Path(cache['MPI_C_COMPILER']).parent}:{os.environ['PATH']}"
    for part, fetched in (("subdirectory", False), ("fetched", True)):
        if arguments.only in (None, part):
            subproject(arguments.cmake, work, sources, cache, fetched, not arguments.configure)
    if arguments.only in (None, "wheel") and not arguments.configure:
        wheel(work, sources)
    print("from_source.py: all as wanted")


if __name__ == "__main__":
    main()
