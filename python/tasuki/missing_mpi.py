"""Says which MPI the compiled core wants where that is not found: the loader names a file, not a package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

KINDS = {"libmpi.so.40": ("Open MPI 4 or 5", "openmpi"), "libmpi.so.12": ("MPICH or an MPI of its ABI", "mpich")}


def words(failure: str) -> str:
    """For what the loader has said; empty if it is about something else than MPI."""
    library = re.search(r"\blib\w*mpi\w*\.so[.\d]*", failure)
    if not library:
        return ""
    kind, package = KINDS.get(library[0], (f"the MPI that has {library[0]}", ""))
    advice = "Load its module, or add its folder of libraries to LD_LIBRARY_PATH"
    if package:
        advice += f"; or `pip install {package}` beside tasuki, if that is where it was when tasuki was built"
    return f"tasuki was built with {kind}, whose {library[0]} is not found here. {advice}. (The loader says: {failure})"


@contextmanager
def explained() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        if said := words(str(error)):
            raise ImportError(said, name=error.name, path=error.path) from None
        raise
