"""Installs a build to a fresh folder, and configures, builds and runs the consumer against it."""

import shutil
import subprocess
import sys
from pathlib import Path

cmake, build, compiler = sys.argv[1:]
here = Path(__file__).resolve().parent
work = Path(build) / "package-test"
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
run(sys.executable, here.parents[1] / "tools" / "mpirun.py", "--timeout", 60, "-n", 2, work / "build" / "consumer")
