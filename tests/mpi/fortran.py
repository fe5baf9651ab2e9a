#!/usr/bin/env python3
"""A Fortran program without and with the library for unchanged MPI programs, by mpif.h, module mpi and module mpi_f08.

    fortran.py --launcher mpirun.py --library libtasuki_mpi.so

The MPIs of PyPI have no Fortran, so it is compiled with those that Debian's alternatives name: mpifort.openmpi and
mpifort.mpich. An MPI that is not there, or whose library was not built, is named; if none is left the test is skipped
(status 77).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINDINGS = {"mpif.h": "-DTASUKI_MPIF_H", "mpi": "-DTASUKI_MODULE", "mpi_f08": "-DTASUKI_F08"}
SKIPPED = 77
FLAGS = ["-O1", "-cpp", "-ffree-line-length-none", "-fallow-argument-mismatch", "-w"]


def headers_of(compiler: str) -> bool:
    """Whether mpif.h is there. The wrapper may come with what programs need to run."""
    shown = subprocess.run([compiler, "-show"], capture_output=True, text=True, check=False).stdout.split()
    return any((Path(word.removeprefix("-I")) / "mpif.h").exists() for word in shown if word.startswith("-I"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--launcher", required=True, help="tools/mpirun.py")
    parser.add_argument("--library", type=Path, required=True, help="libtasuki_mpi.so")
    arguments = parser.parse_args()
    tested = 0
    for kind in ("openmpi", "mpich"):
        compiler, launcher = shutil.which(f"mpifort.{kind}"), shutil.which(f"mpiexec.{kind}")
        if not compiler or not launcher or not headers_of(compiler):
            print(f"fortran: {kind}: skipped, as there is no mpifort.{kind} (apt-get install lib{kind}-dev gfortran)")
            continue
        if not (arguments.library.parent / f"libtasuki_mpi_{kind}.so").exists():
            print(f"fortran: {kind}: skipped, as libtasuki_mpi_{kind}.so was not built")
            continue
        for binding, define in BINDINGS.items():
            with tempfile.TemporaryDirectory() as folder:
                program = Path(folder) / "fortran"
                command = [compiler, *FLAGS, define, str(HERE / "fortran.F90"), "-o", str(program)]
                made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
                if made.returncode != 0:
                    sys.exit(f"fortran: {kind}, {binding}: cannot be compiled\n{made.stdout}{made.stderr}")
                compare = [sys.executable, str(HERE / "compare.py"), "--launcher", arguments.launcher]
                compare += ["--mpiexec", launcher, "--library", str(arguments.library), "-n", "2"]
                compare += ["--modes", "all layers,by prices", "--ring", "0.5", str(program), "FILE"]
                done = subprocess.run(compare, capture_output=True, text=True, check=False)
                print(f"fortran: {kind}, {binding}:\n{done.stdout}{done.stderr}", end="")
                if done.returncode != 0:
                    return 1
            tested += 1
    return 0 if tested else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
