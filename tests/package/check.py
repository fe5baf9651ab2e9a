"""Installs a build to a fresh folder, and configures, builds and runs consumers in C++, C and Fortran against it."""

import os
import shutil
import subprocess
import sys
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
run(
    cmake, "-S", here, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={work / 'moved'}", f"-DCMAKE_CXX_COMPILER={compiler}"
)
run(cmake, "--build", work / "build")
run(sys.executable, mpirun, "--timeout", 60, "-n", 2, work / "build" / "consumer")

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
