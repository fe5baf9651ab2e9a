"""Builds Tasuki as users do that have its sources: inside a project of theirs, by both ways, and as a wheel.

`from_source.py CMAKE BUILD` takes minutes; BUILD is a build folder of this checkout, whose compilers and MPI are used.
The wheel takes the MPI that pip would take here. With --configure the projects are configured only. Each part has its
own copy of the checkout's files without what set-up made, as FetchContent or a submodule would have them. What a part
installs runs after its sources and its build folder are deleted.
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
JOBS = os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", "2")


def run(*command: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What the command prints, errors too. `env` is added to the environment."""
    print("+", *command, flush=True)
    done = subprocess.run(
        [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=cwd,
        env=os.environ | (env or {}),
    )  # fmt: skip
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


def subproject(cmake: str, work: Path, cache: dict[str, str], fetched: bool, build: bool) -> None:
    sources, folder = copy_of_sources(work / "sources"), work / "build"
    path = {"PATH": f"{Path(cache['MPI_C_COMPILER']).parent}:{os.environ['PATH']}"}
    settings = {"TASUKI_SOURCES": sources, "FETCHED": "ON" if fetched else "OFF", "TASUKI_CUDA": "OFF"}
    settings |= {"CMAKE_CXX_COMPILER": cache["CMAKE_CXX_COMPILER"], "CMAKE_BUILD_TYPE": "Release", "TASUKI_UNITY": "ON"}
    if not build:  # nothing is fetched for tests that run often
        settings["TASUKI_THIRD_PARTY_INCLUDE"] = cache["TASUKI_THIRD_PARTY_INCLUDE"]
    elif not fetched:  # with an MPI that is installed, too
        run(sys.executable, sources / "tools" / "setup.py", "--mpi", "openmpi")
        settings |= {"TASUKI_INSTALL": "ON", "TASUKI_MPI": "openmpi"}
    project = sources / "tests" / "package" / "subproject"
    run(cmake, "-S", project, "-B", folder, *(f"-D{name}={value}" for name, value in settings.items()), env=path)
    made = cache_of(folder)
    probed = [
        name for name in made if re.match(r"TASUKI_(NCCL|NVSHMEM)|Python_EXECUTABLE|CMAKE_Fortran_COMPILER$", name)
    ]
    check(not probed, f"configuring looked for what is off: {probed}")
    check(
        made["TASUKI_TESTS"] == "OFF" and made["TASUKI_APPS"] == "OFF", "tests or programs are on in a user's project"
    )
    if not build:
        return
    run(cmake, "--build", folder, "--target", "program", "--parallel", JOBS, env=path)
    on_ranks(folder / "program", made["MPIEXEC_EXECUTABLE"])
    if not fetched:
        moved_prefix(cmake, work, made["CMAKE_CXX_COMPILER"])


def moved_prefix(cmake: str, work: Path, compiler: str) -> None:
    """What a user's project installs of Tasuki works in another place, when its sources and builds are no more."""
    run(cmake, "--install", work / "build", "--component", "tasuki", "--prefix", work / "prefix")
    moved = (work / "prefix").rename(work / "moved")
    shutil.rmtree(work / "build")
    shutil.rmtree(work / "sources")
    prefix_works(cmake, work, moved, compiler)


def prefix_works(cmake: str, work: Path, moved: Path, compiler: str) -> None:
    """A program is built with the prefix and its MPI, and runs; then the prefix is emptied."""
    consumer, build = work / "consumer", work / "consumer" / "build"
    consumer.mkdir()
    for name in ("CMakeLists.txt", "consumer.cpp"):
        shutil.copy(Path(__file__).parent / name, consumer)
    run(cmake, "-S", consumer, "-B", build, f"-DCMAKE_PREFIX_PATH={moved}", f"-DCMAKE_CXX_COMPILER={compiler}")
    run(cmake, "--build", build)
    (launcher,) = moved.glob("lib*/tasuki/openmpi/bin/mpirun")
    on_ranks(build / "consumer", launcher)
    loaded = run("ldd", build / "consumer")
    check(f"=> {launcher.parents[1]}/lib" in loaded, "the consumer loads another MPI than that of the prefix")
    run(cmake, "-P", moved / "share" / "tasuki" / "uninstall.cmake")
    left = [file for file in moved.rglob("*") if not file.is_dir()]
    check(not left, f"uninstalling left {left}")


def on_ranks(program: Path, launcher: Path | str) -> None:
    said = run(sys.executable, MPIRUN, "--mpiexec", launcher, "--timeout", 60, "-n", 2, program)
    check(said.count("one of 2 ranks") == 2, f"{program} did not run on 2 ranks")


def cache_of(build: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.+-]+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))


IN_WHEEL = (
    "tasuki/__init__.py", "tasuki/_core.pyi", "tasuki/_operations.py", "tasuki/py.typed", "tasuki/lib/libtasuki.so.*",
    "tasuki/lib/libtasuki_mpi.so", "tasuki/bin/himeno", "tasuki/bin/laplace", "tasuki/bin/tasuki-bench",
    "tasuki/machines/h200-4.json", "tasuki/include/tasuki/kernel.cuh", "tasuki/include/tasuki/c/context.h",
    "tasuki/include/tasuki/version.h", "tasuki/report/page.html", "tasuki-*.dist-info/licenses/LICENSE",
    "tasuki-*.dist-info/licenses/THIRD-PARTY-NOTICES.md",
)  # fmt: skip


ON_RANKS = """
import numpy as np
import tasuki

context = tasuki.Context()
mine, total = np.arange(1000.0) + context.rank, np.zeros(1000)
tasuki.Allreduce(context, mine, total, op="sum").run()
assert (total == sum(np.arange(1000.0) + rank for rank in range(context.size))).all()
print(f"rank {context.rank} of {context.size}: {tasuki.__file__}")
"""


def wheel(work: Path) -> None:
    sources = copy_of_sources(work / "sources")
    options = {"TASUKI_PROGRAMS": "ON", "TASUKI_CUDA": "OFF", "TASUKI_UNITY": "ON"}
    defined = [part for name, value in options.items() for part in ("-C", f"cmake.define.{name}={value}")]
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", work / "wheels", *defined, sources)
    shutil.rmtree(sources)
    (file,) = (work / "wheels").glob("tasuki-*.whl")
    content_of(file, [str(sources), f"{ROOT}/src", f"{ROOT}/build", "/.deps/", "/.venv/"])
    runs_elsewhere(file, work)


def content_of(file: Path, foreign: list[str]) -> None:
    """All that a wheel must have, and nothing that names a folder of the machine that it was built on."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        for wanted in IN_WHEEL:
            pattern = re.escape(wanted).replace(r"\*", "[^/]*")
            check(any(re.fullmatch(pattern, name) for name in names), f"{file.name} has no {wanted}")
        strange = [name for name in names if not re.match(r"tasuki(/|-[\d.]+\.dist-info/)", name)]
        check(not strange, f"{file.name} has {strange}")
        for name in names:
            content = archive.read(name)
            for path in foreign:
                check(path.encode() not in content, f"{name} in {file.name} names {path}")


def runs_elsewhere(file: Path, work: Path) -> None:
    """As on another machine: in a new environment with nothing but the wheel and what it asks for."""
    venv.create(work / "venv", with_pip=True)
    python, command = work / "venv" / "bin" / "python", work / "venv" / "bin" / "tasuki"
    for name in [name for name in os.environ if name.startswith(("TASUKI_", "PYTHON"))]:
        del os.environ[name]
    run(python, "-m", "pip", "install", "--quiet", file)
    version = run(python, "-c", "import tasuki; print(tasuki.__version__)", cwd=work)
    check(f"-{version.strip()}-" in file.name, f"the module of {file.name} says that it is {version}")
    run(command, "info", cwd=work)
    for name, size in (("himeno", "XS"), ("laplace", "64x64")):
        run(command, name, "-n", 2, "--size", size, "--iterations", 2, "--verify", cwd=work)
    run(command, "run", "-n", 2, "tasuki-bench", "--help", cwd=work)
    (work / "program.py").write_text(ON_RANKS)
    for options in ([], ["--mpi"]):
        said = run(command, "run", "-n", 2, *options, work / "program.py", cwd=work)
        check(said.count(f"of 2: {work / 'venv'}/") == 2, "the wheel's module did not run on 2 ranks")
        check("cannot be preloaded" not in said, "the library for unchanged MPI programs cannot be loaded")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cmake")
    parser.add_argument("build", type=Path)
    parser.add_argument("--configure", action="store_true", help="configure the projects, and build nothing")
    parser.add_argument("--only", choices=["subdirectory", "fetched", "wheel"], help="one part")
    arguments = parser.parse_args()
    work = arguments.build / ("package-configured" if arguments.configure else "package-from-source")
    cache = cache_of(arguments.build)
    for part in ("subdirectory", "fetched", "wheel"):
        if arguments.only not in (None, part) or (part == "wheel" and arguments.configure):
            continue
        shutil.rmtree(work / part, ignore_errors=True)
        if part == "wheel":
            wheel(work / part)
        else:
            subproject(arguments.cmake, work / part, cache, part == "fetched", not arguments.configure)
        print(f"from_source.py: {part}: all as wanted", flush=True)


if __name__ == "__main__":
    main()
