"""Tasuki: halos, strided transfers and collectives of parallel array codes, planned once and run many times.

Start with `Context`, `Grid`, `Field` and `Halo`; docs/python.md is the guide.
"""

from __future__ import annotations

import atexit as _atexit
import sys as _sys
import threading as _threading
from contextlib import suppress as _suppress

from .missing_mpi import explained as _explained

with _explained():
    from . import _core
from . import _operations
from ._core import (
    Advice,
    ArgumentError,
    ArrayDistribution,
    BlockNeighbours,
    Context,
    DeadlineError,
    DeviceArray,
    DisagreementError,
    Error,
    Field,
    FieldShape,
    Fork,
    Graph,
    Grid,
    KernelArgument,
    KernelTeam,
    Layout,
    Machine,
    MessageLayout,
    Messages,
    NeighbourhoodReport,
    NotPossibleError,
    Operation,
    Operator,
    Plan,
    Planned,
    Prediction,
    RankDiedError,
    Resident,
    Stream,
    SystemFailure,
    VerifyReport,
    __version__,
    advise,
    blocks_of,
    find_entries,
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
from ._operations import *  # noqa: F403 - the classes of operations
from .graphs import of_matrix as _of_matrix
from .graphs import of_numbers as _of_numbers
from .kernels import get_include, launch_resident
from .offline import (
    plan_broadcast,
    plan_collective,
    plan_exchange,
    plan_halo,
    plan_neighbours,
    plan_redistribute,
    plan_transfer,
)
from .splits import choose_split

__all__ = [
    "Advice",
    "ArgumentError",
    "ArrayDistribution",
    "BlockNeighbours",
    "Context",
    "DeadlineError",
    "DeviceArray",
    "DisagreementError",
    "Error",
    "Field",
    "FieldShape",
    "Fork",
    "Graph",
    "Grid",
    "KernelArgument",
    "KernelTeam",
    "Layout",
    "Machine",
    "MessageLayout",
    "Messages",
    "NeighbourhoodReport",
    "NotPossibleError",
    "Operation",
    "Operator",
    "Plan",
    "Planned",
    "Prediction",
    "RankDiedError",
    "Resident",
    "Stream",
    "SystemFailure",
    "VerifyReport",
    "__version__",
    "advise",
    "blocks_of",
    "choose_split",
    "find_entries",
    "get_include",
    "in_place",
    "launch_resident",
    "machine_of",
    "mpi_library",
    "plan_broadcast",
    "plan_collective",
    "plan_exchange",
    "plan_halo",
    "plan_neighbours",
    "plan_redistribute",
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
__all__ += _operations.__all__

_core.Exchange.of_numbers = staticmethod(_of_numbers)  # type: ignore[method-assign]
_core.Exchange.of_matrix = staticmethod(_of_matrix)  # type: ignore[method-assign]

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


def _tell_late():
    """The same at the end of a program that has put a hook of its own in the place of ours."""
    value = getattr(_sys, "last_value", None)
    frames = getattr(value, "__traceback__", None)
    if frames is None or hasattr(_sys, "ps1"):  # an interactive session goes on after an exception
        return
    # Tools keep exceptions there too from which a program has gone on. What ends one has come out of its main module.
    code = frames.tb_frame.f_code
    main = code.co_name == "<module>" and frames.tb_frame.f_globals.get("__name__") == "__main__"
    if (main or "runpy" in code.co_filename) and _core._any_with_others():
        _core._fail_all(f"of an uncaught {type(value).__name__}: {_text_of(value)}")


_sys.excepthook = _tell_others
_atexit.register(_core._close_all)
_atexit.register(_tell_late)
with _suppress(AttributeError, RuntimeError):  # before threads are waited for, where Python lets us
    _threading._register_atexit(_tell_late)  # type: ignore[attr-defined]
