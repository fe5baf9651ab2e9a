"""Planning off line: plans for a machine that need not be there, without MPI.

The arguments are those of `Grid`, `Field`, `Halo`, `Transfer` and `Broadcast`; for other collectives, of C++.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import _core
from ._core import Error, FieldShape, Layout, Machine, Planned

if TYPE_CHECKING:
    from typing import Literal, SupportsIndex

    from numpy.typing import DTypeLike

    from ._core import ArrayDistribution, Truth, Width

Function = TypeVar("Function", bound=Callable[..., Any])


def names_checked(function: Function) -> Function:
    """A keyword that the function does not have raises a TypeError that names the likely one, and all."""
    code = function.__code__  # type: ignore[attr-defined]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in names:
                from .arguments import unknown_keyword

                raise TypeError(unknown_keyword(function.__name__, name, names))
        return function(*arguments, **keywords)

    return cast(Function, checked)


@names_checked
def plan_halo(
    machine: Machine,
    extents: Sequence[SupportsIndex],
    fields: str | FieldShape | Sequence[str | FieldShape] = "field",
    dtype: DTypeLike | None = None,
    *,
    split: Sequence[SupportsIndex] | None = None,
    periodic: Truth | Sequence[Truth] = False,
    cuts: Sequence[Sequence[SupportsIndex] | None] | None = None,
    reorder: Truth = False,
    mapping: str | Sequence[SupportsIndex] | None = None,
    shadow: Width | None = None,
    width: Width | None = None,
    copies: SupportsIndex = 1,
    pad: SupportsIndex = 0,
    memory: Literal["host", "device"] = "host",
    shared: Truth = True,
    corners: Truth = True,
    reverse: Truth = False,
    alternating: Truth = False,
    edges: str = "",
    path: str = "auto",
) -> Planned:
    """The plans of a halo exchange on all ranks of `machine`. Local.

    extents: global cells in each dimension; `split`, `periodic`, `cuts`, `reorder`, `mapping`: as for
    `Grid`.
    fields: a name, a `FieldShape`, or a list of these. Names have the `dtype`, `shadow`, `width`, `copies`, `pad`,
    `memory` and `shared` given here, which are those of `FieldShape`.
    corners, reverse, alternating, edges, path: as for `Halo`.
    Raises tasuki.Error where the live classes would.
    """
    entries = [fields] if isinstance(fields, (str, FieldShape)) else list(fields)
    shapes = [
        FieldShape(entry, dtype, shadow=shadow, width=width, copies=copies, pad=pad, memory=memory, shared=shared)
        if isinstance(entry, str)
        else entry
        for entry in entries
    ]
    return _core._plan_halo(
        *(machine, list(extents), shapes, split, periodic, cuts, reorder, mapping, corners, reverse, alternating),
        *(edges, path),
    )


@names_checked
def plan_transfer(
    machine: Machine,
    source: tuple[SupportsIndex, Layout],
    target: tuple[SupportsIndex, Layout],
    *,
    memory: Literal["host", "device"] = "host",
    shared: Truth = True,
    path: str = "auto",
) -> Planned:
    """The plans of a transfer on all ranks of `machine`. Local.

    source, target: (rank, layout), with equally many bytes. memory: of both. shared: both lie in memory that peers can
    map. path: as for `Transfer`.
    """
    return _core._plan_transfer(machine, source, target, memory, shared, path)


@names_checked
def plan_broadcast(
    machine: Machine,
    root: SupportsIndex,
    bytes: SupportsIndex,
    *,
    algorithm: str = "auto",
    trees: SupportsIndex = 0,
    arity: SupportsIndex = 0,
    chunk: SupportsIndex = 0,
    memory: Literal["host", "device"] = "host",
    shared: Truth = False,
    path: str = "auto",
) -> Planned:
    """The plans of a broadcast of so many bytes on all ranks of `machine`. Local.

    algorithm: by name; trees, arity, chunk (bytes): 0: chosen by cost. memory: 'device': of GPUs. shared: the data lies
    in memory that peers can map. path: as for `Broadcast`.
    """
    if index(bytes) < 0:
        raise Error(f"argument 'bytes' is {bytes}; it must not be negative")
    force = {"algorithm": algorithm, "trees": trees, "arity": arity, "chunk": chunk, "path": path}
    return plan_collective(machine, "broadcast", bytes, "uint8", root=root, memory=memory, shared=shared, **force)


@names_checked
def plan_collective(
    machine: Machine,
    kind: str,
    count: SupportsIndex | Sequence[SupportsIndex] = 0,
    dtype: DTypeLike = "float64",
    op: str = "sum",
    *,
    root: SupportsIndex = 0,
    ordered: Truth = False,
    in_place: Truth = False,
    algorithm: str = "auto",
    trees: SupportsIndex = 0,
    arity: SupportsIndex = 0,
    chunk: SupportsIndex = 0,
    memory: Literal["host", "device"] = "host",
    shared: Truth = False,
    path: str = "auto",
) -> Planned:
    """The plans of a collective on all ranks of `machine`. Local.

    kind: broadcast, allreduce, allgather, reduce, reduce_scatter, alltoall, gather, scatter, barrier, scan, exscan.
    count: elements of the vector, or of every block; a list of them if blocks differ, one a rank, for alltoall one for
    each sender and receiver, row by row. op: sum, product, min, max and so on. ordered: combine in the ranks' order.
    in_place: with a root, the root's. algorithm: by name; trees, arity, chunk (bytes): 0: chosen by cost. memory:
    'device': of GPUs. shared: the data lie in memory that peers can map. Raises tasuki.Error for what cannot be.
    """
    several = isinstance(count, Sequence)
    counts = list(cast("Sequence[SupportsIndex]", count)) if several else []
    one = 0 if several else count
    return _core._plan_collective(
        machine,
        kind,
        root,
        one,
        counts,
        dtype,
        op,
        ordered,
        in_place,
        algorithm,
        trees,
        arity,
        chunk,
        memory,
        shared,
        path,
    )


@names_checked
def plan_exchange(
    machine: Machine,
    entries: Sequence[Sequence[tuple[SupportsIndex, Any, Any]]],
    fields: str | Sequence[str] = "field",
    dtype: DTypeLike = "float64",
    *,
    numbers: SupportsIndex = 1,
    levels_first: Truth = False,
    cells: SupportsIndex = -1,
    reverse: Truth = False,
    op: str = "sum",
    memory: Literal["host", "device"] = "host",
    shared: Truth = False,
    path: str = "auto",
) -> Planned:
    """The plans of an exchange of cells on all ranks of `machine`. Local.

    entries: for each rank its list of (rank, cells that it gets, cells that come from it), as for `Exchange`.
    fields: a name, or several. Each has `numbers` numbers of `dtype` a cell, one after the other; levels_first: they
    lie `cells` numbers apart. cells: of each rank; -1: not known, so that no cell is outside.
    reverse, op: combine ghosts into their owners. memory: 'device': of GPUs. shared: the fields lie in memory that
    peers can map. path: as for `Exchange`. Raises tasuki.Error for what cannot be.
    """
    names = [fields] if isinstance(fields, str) else list(fields)
    shapes = [(name, dtype, index(numbers), bool(levels_first), index(cells)) for name in names]
    return _core._plan_exchange(machine, shapes, list(entries), reverse, op, memory, shared, path)


@names_checked
def plan_redistribute(
    machine: Machine,
    source: ArrayDistribution,
    target: ArrayDistribution,
    arrays: str | Sequence[str] = "array",
    dtype: DTypeLike = "float64",
    *,
    axes: Sequence[SupportsIndex] | None = None,
    memory: Literal["host", "device"] = "host",
    shared: Truth = False,
    path: str = "auto",
    scratch: SupportsIndex = 0,
) -> Planned:
    """The plans of a redistribution on all ranks of `machine`. Local.

    arrays: a name, or several; elements are of `dtype`, local arrays in C order. axes: dimension d of `target` is
    dimension axes[d] of `source`. memory: 'device': of GPUs. shared: the arrays lie in memory that peers can map. path,
    scratch: as for `Redistribute`. Raises tasuki.Error for what cannot be.
    """
    names = [arrays] if isinstance(arrays, str) else list(arrays)
    order = [index(axis) for axis in axes or ()]
    dims = len(source.shape)
    order = [axis + dims if -dims <= axis < 0 else axis for axis in order]
    named = [(name, dtype) for name in names]
    return _core._plan_redistribute(machine, source, target, order, named, memory, shared, path, index(scratch))


@names_checked
def plan_neighbours(
    machine: Machine,
    kind: str,
    count: SupportsIndex = 1,
    dtype: DTypeLike = "float64",
    *,
    split: Sequence[SupportsIndex] | None = None,
    periodic: Truth | Sequence[Truth] = False,
    neighbours: Sequence[tuple[Sequence[SupportsIndex], Sequence[SupportsIndex]]] | None = None,
    memory: Literal["host", "device"] = "host",
    shared: Truth = False,
    path: str = "auto",
) -> Planned:
    """The plans of a neighbour collective on all ranks of `machine`. Local.

    kind: 'alltoall' or 'allgather'. count: elements of every block, which lie one after the other.
    split: ranks in each dimension of their grid, 0: chosen; the neighbours are those beside each rank. periodic: of all
    dimensions, or of each. neighbours, instead of `split`: for each rank a pair, the ranks that it sends to and those
    that it hears from.
    memory: 'device': of GPUs. shared: the data lie in memory that peers can map. path: as for `NeighbourAlltoall`.
    Raises tasuki.Error for what cannot be.
    """
    if (split is None) == (neighbours is None):
        raise TypeError("plan_neighbours: give either 'split' or 'neighbours'")
    ends = None if neighbours is None else [(list(to), list(heard)) for to, heard in neighbours]
    return _core._plan_neighbours(machine, kind, count, dtype, list(split or ()), periodic, ends, memory, shared, path)
