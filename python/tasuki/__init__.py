"""Tasuki: halos, strided transfers and collectives of parallel array codes, planned once and run many times.

Start with `Context`, `Grid`, `Field` and `Halo`; docs/python.md is the guide.
"""

from __future__ import annotations

import atexit as _atexit
import sys as _sys

from . import _core
from ._core import (
    Advice,
    Allgather,
    Allreduce,
    Alltoall,
    Barrier,
    BlockNeighbours,
    Broadcast,
    Context,
    DeviceArray,
    Error,
    Exscan,
    Field,
    FieldShape,
    Fork,
    Gather,
    Graph,
    Grid,
    Halo,
    KernelArgument,
    KernelTeam,
    Layout,
    Machine,
    MessageLayout,
    Messages,
    NeighbourAllgather,
    NeighbourAlltoall,
    NeighbourhoodReport,
    Operation,
    Operator,
    Plan,
    Planned,
    Prediction,
    Reduce,
    ReduceScatter,
    Resident,
    Scan,
    Scatter,
    Stream,
    Transfer,
    VerifyReport,
    __version__,
    advise,
    blocks_of,
    in_place,
    machine_of,
    mpi_library,
    predict,
    shared_array,
    synchronize,
    use_gpu,
    verify,
    verify_neighbourhoods,
    verify_plans,
    why_no_gpu,
)
from .kernels import get_include, launch_resident
from .offline import plan_broadcast, plan_collective, plan_halo, plan_neighbours, plan_transfer

__all__ = [
    "Advice",
    "Allgather",
    "Allreduce",
    "Alltoall",
    "Barrier",
    "BlockNeighbours",
    "Broadcast",
    "Context",
    "DeviceArray",
    "Error",
    "Exscan",
    "Field",
    "FieldShape",
    "Fork",
    "Gather",
    "Graph",
    "Grid",
    "Halo",
    "KernelArgument",
    "KernelTeam",
    "Layout",
    "Machine",
    "MessageLayout",
    "Messages",
    "NeighbourAllgather",
    "NeighbourAlltoall",
    "NeighbourhoodReport",
    "Operation",
    "Operator",
    "Plan",
    "Planned",
    "Prediction",
    "Reduce",
    "ReduceScatter",
    "Resident",
    "Scan",
    "Scatter",
    "Stream",
    "Transfer",
    "VerifyReport",
    "__version__",
    "advise",
    "blocks_of",
    "get_include",
    "in_place",
    "launch_resident",
    "machine_of",
    "mpi_library",
    "plan_broadcast",
    "plan_collective",
    "plan_halo",
    "plan_neighbours",
    "plan_transfer",
    "predict",
    "shared_array",
    "synchronize",
    "use_gpu",
    "verify",
    "verify_neighbourhoods",
    "verify_plans",
    "why_no_gpu",
]

_earlier_hook = _sys.excepthook


def _text_of(value):
    """Of an exception: whatever its `__str__` does, as text that can be sent."""
    try:
        text = str(value)
    except BaseException:
        return "(its text cannot be made)"
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _tell_others(kind, value, trace):
    """An exception that ends this rank must not leave the others waiting: their waits end with its text."""
    try:
        _earlier_hook(kind, value, trace)
    finally:
        if _core._any_with_others():  # never in a forked child: the parent goes on
            _core._fail_all(f"of an uncaught {kind.__name__}: {_text_of(value)}")


_sys.excepthook = _tell_others
_atexit.register(_core._close_all)
