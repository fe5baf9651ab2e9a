"""Installs a build to a fresh folder, and configures, builds and runs consumers in C++, C and Fortran against it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

cmake, build, compiler, mpicc = sys.argv[1:]
here = Path(__file__).resolve().parent
work = Path(build) / "package-test"
mpirun = here.parents[1] / "tools" / "mpirun.py"
examples = here.parents[1] / "examples"
shutil.rmtree(work, ignore_errors=True)


def run(*command: object) -> None:
    print("+", *command, flush=True)
    subprocess.run([str(c) for c in command], check=True)


run(cmake, "--install", build, "--prefix", work / "prefix", "--component", "tasuki")
# Moved, so that nothing in the package may rely on where it was installed.
(work / "prefix").rename(work / "moved")
root, moved = here.parents[1], work / "moved"
for file in moved.rglob("*"):
    if file.is_file() and not file.is_symlink():
        content = file.read_bytes()
        for path in (f"{work}/prefix", f"{build}/", f"{root}/src", f"{root}/cmake", "/.deps/", "/.venv/"):
            if path.encode() in content:
                sys.exit(f"{file} names {path}: it would not work on a machine that lacks it")
for name in ("LICENSE", "THIRD-PARTY-NOTICES.md", "CHANGELOG.md"):
    if not (moved / "share" / "doc" / "tasuki" / name).stat().st_size:
        sys.exit(f"{name} is empty")
run(
    cmake, "-S", here, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={work / 'moved'}", f"-DCMAKE_CXX_COMPILER={compiler}"
)
run(cmake, "--build", work / "build")
run(sys.executable, mpirun, "--timeout", 60, "-n", 2, work / "build" / "consumer")
# The MPI that is loaded is that of the package, if it has one.
loaded = subprocess.run(["ldd", work / "build" / "consumer"], capture_output=True, text=True, check=True).stdout
own_mpi = [folder for folder in moved.glob("lib*/tasuki/*mpi*") if folder.is_dir()]
if own_mpi and f"=> {own_mpi[0]}/lib" not in loaded:
    sys.exit(f"the consumer loads another MPI than that of {own_mpi[0]}:\n{loaded}")

# The program of docs/quickstart.md, with the commands that stand there: the prefix alone is in another place.
page = (here.parents[1] / "docs" / "quickstart.md").read_text()
quick = work / "program"
quick.mkdir()
(quick / "program.cpp").write_text(re.search(r"```cpp\n(.*?)```", page, re.S)[1])
(quick / "CMakeLists.txt").write_text(re.search(r"```cmake\n(.*?)```", page, re.S)[1])
commands = re.search(r"```sh\n(make install .*?)```", page, re.S)[1].splitlines()[1:]
for command in commands:
    places = {".deps/bin/cmake": cmake, "~/program": quick, "~/tasuki": moved, "tools/mpirun.py": mpirun}
    for name, place in places.items():
        command = command.replace(name, str(place))
    run(*command.split())

# C and Fortran, with CMake and by hand. The libraries are found where the package was moved to.
prefix = work / "moved"
(prefix / "lib").exists() or (prefix / "lib").symlink_to("lib64")
languages = {"c": "laplace.c"}
if (prefix / "include" / "tasuki" / "fortran" / "tasuki.mod").exists():
    languages["fortran"] = "laplace.f90"
for language, source in languages.items():
    project = work / language
    shutil.copytree(here / language, project)
    shutil.copy(examples / source, project)
    run(cmake, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run(cmake, "--build", project / "build")
    run(sys.executable, mpirun, "--timeout", 60, "-n", 2, project / "build" / "solver")
    shutil.copy(examples / source, work)
os.environ["PATH"] = f"{Path(mpicc).parent}:{os.environ['PATH']}"
os.environ["PREFIX"] = str(prefix)
print("+ by_hand.sh", flush=True)
subprocess.run(["sh", here / "by_hand.sh"], cwd=work, check=True)
launcher = ["--mpiexec", Path(mpicc).parent / "mpirun"]
for language in languages:
    run(sys.executable, mpirun, *launcher, "--timeout", 60, "-n", 2, work / f"laplace_{language}")

# What is in no build folder is started by the launcher of the MPI that it is linked with, or that set-up chose.
elsewhere = Path(tempfile.mkdtemp())
shutil.copy(work / "laplace_c", elsewhere / "solver")
run(sys.executable, mpirun, "--timeout", 60, "-n", 2, elsewhere / "solver")
shutil.rmtree(elsewhere)

# pkg-config, where it is.
if shutil.which("pkg-config"):
    os.environ["PKG_CONFIG_PATH"] = str(next(prefix.glob("lib*/pkgconfig")))
    ask = ["pkg-config", "--print-errors"]
    asked = {
        what: subprocess.run([*ask, *what.split()], capture_output=True, text=True, check=True).stdout.split()
        for what in ("--cflags --libs tasuki", "--variable=mpicc tasuki", "--modversion tasuki")
    }
    version = (prefix / "include" / "tasuki" / "version.h").read_text()
    numbers = [re.search(rf"VERSION_{part} (\d+)", version)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    if asked["--modversion tasuki"] != [".".join(numbers)]:
        sys.exit(f"pkg-config says version {asked['--modversion tasuki']}, the header {numbers}")
    run(
        *asked["--variable=mpicc tasuki"],
        "-std=c99",
        work / "laplace.c",
        *asked["--cflags --libs tasuki"],
        "-o",
        work / "by_pkg_config",
    )
    run(sys.executable, mpirun, *launcher, "--timeout", 60, "-n", 2, work / "by_pkg_config")

# Uninstalling takes what was installed and leaves the rest.
kept = prefix / "include" / "tasuki" / "mine.h"
kept.write_text("")
if (prefix / "lib").is_symlink():
    (prefix / "lib").unlink()
run(cmake, "-P", prefix / "share" / "tasuki" / "uninstall.cmake")
left = [file for file in prefix.rglob("*") if not file.is_dir()]
if left != [kept]:
    sys.exit(f"uninstalling left {left}, where only {kept} is not Tasuki's")
