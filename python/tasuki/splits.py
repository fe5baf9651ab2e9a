"""Which process grid redistributions are the quickest on: by prices, or by trying."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from ._core import Allreduce, ArrayDistribution, Context, Error, Machine, Redistribute, machine_of, shared_array
from .offline import names_checked, plan_redistribute

if TYPE_CHECKING:
    from typing import SupportsIndex

    import numpy as np
    from numpy.typing import DTypeLike

Move = tuple[Any, ...]  # source, target, and perhaps axes
ROUNDS = 5


def splits_of(ranks: int, dims: int) -> Iterator[tuple[int, ...]]:
    """Every process grid of so many dimensions that has all ranks."""
    if dims == 1:
        yield (ranks,)
        return
    for first in range(1, ranks + 1):
        if ranks % first == 0:
            for others in splits_of(ranks // first, dims - 1):
                yield (first, *others)


def _axes(move: Move) -> Any:
    return move[2] if len(move) > 2 else None


@names_checked
def choose_split(
    where: Context | Machine,
    moves: Callable[[tuple[int, ...]], Sequence[Move]],
    dims: SupportsIndex = 2,
    dtype: DTypeLike = "complex128",
    *,
    tune: SupportsIndex = 0,
    allocate: Callable[[tuple[int, ...], np.dtype[Any]], Any] | None = None,
    path: str = "auto",
) -> tuple[int, ...]:
    """The process grid on which a chain of redistributions takes the least time: a number of ranks for each dimension.

    where: A context, collective; or a machine, local and off line. Every process grid that has all of its ranks is
    looked at. moves: Called with a process grid, as (p, q); returns the redistributions that follow each other, each a
    source, a target and, where they are permuted, axes, as for `Redistribute`. The same on all ranks. dims: Dimensions
    of the process grid; 2 for pencils. dtype: Of the elements. tune: So many process grids, the best by their prices,
    are tried on memory of their own, and the fastest is taken; 0: prices decide. Only in a context. allocate: Makes the
    memory for that from a shape and a type; None: `shared_array`; for GPUs something like `cupy.zeros`. path: As for
    `Redistribute`.

    Raises tasuki.Error as `Redistribute` does, and for a `tune` without a context.
    """
    import numpy as np  # not with the package: it takes longer than all the rest

    live = isinstance(where, Context)
    tries = index(tune)
    if tries < 0 or (tries > 0 and not live):
        raise Error(f"choose_split: argument 'tune' is {tries}; it must be 0 or more, and 0 off line")
    machine = machine_of(where) if isinstance(where, Context) else where
    ranks = where.size
    # What is not the host's is asked of memory that there is.
    probe = allocate((1,), np.dtype(dtype)) if allocate else None
    memory = "device" if hasattr(probe, "__cuda_array_interface__") else "host"
    shared = allocate is None or memory == "device"
    predicted = {}
    for split in splits_of(ranks, index(dims)):
        plans = [
            plan_redistribute(
                machine, move[0], move[1], dtype=dtype, axes=_axes(move), memory=memory, shared=shared, path=path
            )
            for move in moves(split)
        ]
        predicted[split] = sum(planned.predict().seconds for planned in plans)
    best = sorted(predicted, key=lambda split: (predicted[split], split))
    if not isinstance(where, Context) or tries < 2 or len(best) < 2:
        return best[0]
    tried = [_measured(where, moves(split), np.dtype(dtype), allocate, path) for split in best[:tries]]
    return best[tried.index(min(tried))]


def _measured(context: Context, moves: Sequence[Move], dtype: np.dtype[Any], allocate: Any, path: str) -> float:
    """Seconds that the moves take one after the other on the slowest rank; the same number on all ranks."""
    import numpy as np

    make = allocate or (lambda shape, kind: shared_array(context, shape, kind))

    def array(distribution: ArrayDistribution) -> Any:
        shape = distribution.local_shape(context.rank)
        return make(shape, dtype) if np.prod(shape) > 0 else None

    operations = [
        Redistribute(
            context, (array(move[0]), move[0]), (array(move[1]), move[1]), axes=_axes(move), path=path, correct=False
        )
        for move in moves
    ]
    mine, all_ = np.zeros(1), np.zeros(1)
    slowest = Allreduce(context, mine, all_, op="max")
    least = np.inf
    for turn in range(ROUNDS + 1):
        slowest.run()  # nobody begins before all are there
        begin = time.perf_counter()
        for operation in operations:
            operation.start()
            operation.wait()
        mine[0] = time.perf_counter() - begin
        slowest.run()
        if turn > 0:  # the first one touches new memory
            least = min(least, float(all_[0]))
    return least
