"""Exchanges and redistributions of GPU memory, on random graphs and decompositions, against NumPy.

The library's copies into the source and out of the target are in the stream of the operation, on both sides of it, with
no wait between them; and the same once more as a graph. The data are new each time.
"""

from __future__ import annotations

import numpy as np
import pytest

import tasuki

TURNS = 3
MODES = ["run", "start and wait", "graph"]


def repeat(library, context, mode, operation, pairs, values, expected):
    """Runs the operation between copies. pairs: (array, whether it is filled before, whether it is taken after); values
    and expected: of the arrays, by turn.
    """
    report = tasuki.verify(operation)
    assert report, report.text()
    stream = library.new_stream()
    given = [library.array(values(0)[i]) for i in range(len(pairs))]
    taken = [library.array(values(0)[i]) for i in range(len(pairs))]

    def once():
        for (array, filled, _), source in zip(pairs, given, strict=True):
            if filled:
                array[...] = source
        if mode == "start and wait":
            operation.start(stream)
            operation.wait(stream)
        else:
            operation.run(stream)
        for (array, _, looked_at), target in zip(pairs, taken, strict=True):
            if looked_at:
                target[...] = array

    graph = None
    with library.within(stream):
        for turn in range(TURNS):
            for source, new in zip(given, values(turn), strict=True):
                source[...] = library.array(new)
            library.synchronize()
            if graph is not None:
                graph.launch(stream)
            else:
                once()
            tasuki.synchronize(context, stream)
            for (_, _, looked_at), target, wanted in zip(pairs, taken, expected(turn), strict=True):
                if looked_at:
                    np.testing.assert_array_equal(library.to_numpy(target), wanted)
            if mode == "graph" and graph is None:  # the kernels are loaded now, which cannot be captured
                graph = tasuki.Graph(once, stream)
    context.barrier()


def random_graph(rng, ranks):
    """Cells of each rank, and (owner, its cells, taker, its ghosts) of each message, the same on all ranks."""
    owned = rng.integers(0, 300, ranks) * rng.integers(0, 4, ranks).clip(max=1)
    cells = owned.copy()
    messages = []
    for owner in range(ranks):
        for taker in range(ranks):  # itself, too
            for _ in range(int(rng.integers(0, 3)) if owned[owner] else 0):
                kind = rng.integers(0, 3)
                if kind == 0:  # scattered
                    sent = rng.permutation(owned[owner])[: rng.integers(1, owned[owner] + 1)]
                elif kind == 1:  # a run
                    first = int(rng.integers(0, owned[owner]))
                    sent = np.arange(first, int(rng.integers(first, owned[owner])) + 1)
                else:  # at equal distances
                    sent = np.arange(0, owned[owner], int(rng.integers(2, 5)))
                ghosts = np.arange(cells[taker], cells[taker] + len(sent))
                cells[taker] += len(sent)
                messages.append((owner, sent, taker, rng.permutation(ghosts) if rng.integers(0, 2) else ghosts))
    return cells + 1, messages  # one that nobody names


@pytest.mark.parametrize("op", ["", "sum", "max"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_random_graphs(context, library, mode, op, seed):
    n, me = context.size, context.rank
    rng = np.random.default_rng([seed, n])
    cells, messages = random_graph(rng, n)
    levels = [int(rng.integers(1, 5)), int(rng.integers(1, 70))]
    shapes = [(cells, levels[0]), (levels[1], cells)]  # levels last, and first
    types = ["float64", "float32"]
    u, v = (
        library.array(np.zeros([int(s[me]) if s is cells else s for s in shape], dtype))
        for shape, dtype in zip(shapes, types, strict=True)
    )
    entries = []
    for owner, sent, taker, ghosts in messages:
        if owner == me:
            entries.append((taker, sent, None))
        if taker == me:
            entries.append((owner, None, ghosts))
    options = {"reverse": True, "op": op} if op else {}
    operation = tasuki.Exchange(context, {"u": u, "v": (v, 1)}, entries, **options)

    def cells_first(rank, turn):
        # Small whole numbers, of which sums are exact.
        return [
            ((np.arange(int(cells[rank]))[:, None] * 7 + np.arange(count) * 3 + 5 * rank + turn) % 97).astype(dtype)
            for count, dtype in zip(levels, types, strict=True)
        ]

    def values(turn):
        first, second = cells_first(me, turn)
        return [first, np.ascontiguousarray(second.T)]

    def expected(turn):
        before = [cells_first(rank, turn) for rank in range(n)]
        after = [[field.copy() for field in fields] for fields in before]
        for owner, sent, taker, ghosts in messages:
            for f in range(2):
                if op == "sum":
                    np.add.at(after[owner][f], sent, before[taker][f][ghosts])
                elif op == "max":
                    np.maximum.at(after[owner][f], sent, before[taker][f][ghosts])
                else:
                    after[taker][f][ghosts] = before[owner][f][sent]
        return [after[me][0], after[me][1].T]

    repeat(library, context, mode, operation, [(u, True, True), (v, True, True)], values, expected)


def random_distribution(rng, shape, ranks):
    split, left, places = [], ranks, 1
    for extent in shape:
        parts = int(rng.integers(1, left + 1))
        left //= parts
        places *= parts
        cuts = np.sort(rng.integers(0, extent + 1, parts - 1)).tolist()
        split.append([parts, ("cyclic", parts, int(rng.integers(1, 4))), [0, *cuts, extent]][rng.integers(0, 3)])
    return tasuki.ArrayDistribution(shape, split, rng.permutation(ranks)[:places].tolist())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_random_distributions(context, library, mode, seed):
    """Permuted, over other ranks, with rows that are padded."""
    n, me = context.size, context.rank
    rng = np.random.default_rng([100 + seed, n])
    dims = int(rng.integers(1, 4))
    axes = rng.permutation(dims).tolist()
    shape = rng.integers(1, {1: 5000, 2: 90, 3: 40}[dims], dims).tolist()
    dtype = ["float64", "float32", "int16", "complex64"][rng.integers(0, 4)]
    source = random_distribution(rng, shape, n)
    target = random_distribution(rng, [shape[axis] for axis in axes], n)

    def local(distribution):
        part = distribution.local_shape(me)
        whole = library.array(np.zeros([extent + (d == dims - 1) for d, extent in enumerate(part)], dtype))
        return whole[tuple(slice(extent) for extent in part)]

    a, b = local(source), local(target)
    operation = tasuki.Redistribute(context, (a, source), (b, target), axes=axes)

    def everything(turn):
        return ((np.arange(np.prod(shape)).reshape(shape) * 7 + 13 * turn) % 997).astype(dtype)

    def spoiled():
        return np.full(target.local_shape(me), 3, dtype)

    def values(turn):
        return [everything(turn)[np.ix_(*source.indices(me))], spoiled()]

    def expected(turn):
        after = everything(turn).transpose(axes)
        return [None, after[np.ix_(*target.indices(me))]]

    repeat(library, context, mode, operation, [(a, True, False), (b, True, True)], values, expected)


@pytest.mark.parametrize("path", ["auto", "peer:put", "peer:eager"])
@pytest.mark.parametrize("dtype", ["int16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("axes", [(1, 2, 0), (2, 1, 0), (0, 2, 1)])
def test_rows_become_columns(context, library, axes, dtype, path):
    """Arrays of which tiles are cut off at all edges; those of 2 bytes are moved in rows."""
    n, me = context.size, context.rank
    shape = (18 * n + 1, 37, 43)
    source = tasuki.ArrayDistribution(shape, (n, 1, 1))
    target = tasuki.ArrayDistribution(tuple(shape[axis] for axis in axes), (1, n, 1))
    a = library.array(np.zeros(source.local_shape(me), dtype))
    b = library.array(np.zeros(target.local_shape(me), dtype))
    operation = tasuki.Redistribute(context, (a, source), (b, target), axes=axes, path=path)

    def everything(turn):
        return ((np.arange(np.prod(shape)).reshape(shape) * 7 + 13 * turn) % 997).astype(dtype)

    def values(turn):
        return [everything(turn)[np.ix_(*source.indices(me))], np.full(target.local_shape(me), 3, dtype)]

    def expected(turn):
        return [None, everything(turn).transpose(axes)[np.ix_(*target.indices(me))]]

    repeat(library, context, "graph", operation, [(a, True, False), (b, True, True)], values, expected)


def test_slabs_there_and_back_in_one_graph(context, library):
    """Two operations that follow each other in a stream, of which the second takes what the first has brought."""
    n, me = context.size, context.rank
    shape = (6 * n, 35, 33)
    slabs = tasuki.ArrayDistribution(shape, (n, 1, 1))
    lines = tasuki.ArrayDistribution((35, 33, 6 * n), (n, 1, 1))
    a = library.array(np.zeros(slabs.local_shape(me), "complex64"))
    b = library.array(np.zeros(lines.local_shape(me), "complex64"))
    there = tasuki.Redistribute(context, (a, slabs), (b, lines), axes=(1, 2, 0))
    back = tasuki.Redistribute(context, (b, lines), (a, slabs), axes=(2, 0, 1))
    for operation in there, back:
        assert tasuki.verify(operation)
    stream = library.new_stream()

    def round_trip():
        there.run(stream)
        library.xp.add(b, b, out=b)
        a[...] = 0
        back.run(stream)

    with library.within(stream):
        round_trip()
        graph = tasuki.Graph(round_trip, stream)
        for turn in range(TURNS):
            whole = (np.arange(np.prod(shape)).reshape(shape) % 1009 + turn).astype("complex64")
            mine = whole[np.ix_(*slabs.indices(me))]
            a[...] = library.array(mine)
            library.synchronize()
            graph.launch(stream)
            tasuki.synchronize(context, stream)
            np.testing.assert_array_equal(library.to_numpy(a), 2 * mine)
            np.testing.assert_array_equal(library.to_numpy(b), 2 * whole.transpose(1, 2, 0)[np.ix_(*lines.indices(me))])
    context.barrier()


def test_an_array_moves_in_place(context, library):
    n, me = context.size, context.rank
    blocks = tasuki.ArrayDistribution((300 * n,), (n,))
    dealt = tasuki.ArrayDistribution((300 * n,), (("cyclic", n),))
    memory = library.array(np.zeros(300))
    operation = tasuki.Redistribute(context, (memory, blocks), (memory, dealt))
    assert tasuki.verify(operation)
    for turn in range(TURNS):
        whole = 3.0 * np.arange(300 * n) + turn
        memory[...] = library.array(whole[np.ix_(*blocks.indices(me))])
        library.synchronize()
        operation.run(0)
        tasuki.synchronize(context, 0)
        np.testing.assert_array_equal(library.to_numpy(memory), whole[np.ix_(*dealt.indices(me))])
    context.barrier()


def test_memory_that_is_not_of_one_kind_is_refused(context, library):
    n, me = context.size, context.rank
    device, host = library.array(np.zeros(8)), np.zeros(8)
    last = me == n - 1
    with pytest.raises(tasuki.Error, match="Exchange"):
        tasuki.Exchange(context, {"u": device, "v": host}, [(me, [0], [4])])
    blocks = tasuki.ArrayDistribution((8 * n,), (n,))
    dealt = tasuki.ArrayDistribution((8 * n,), (("cyclic", n),))
    with pytest.raises(tasuki.Error, match="Redistribute"):
        tasuki.Redistribute(context, (host if last else device, blocks), (library.array(np.ones(8)), dealt))
    # Nothing is left over: the next one works.
    other = library.array(np.ones(8))
    operation = tasuki.Redistribute(context, (device, blocks), (other, dealt))
    operation.run(0)
    tasuki.synchronize(context, 0)
    assert (library.to_numpy(other) == 0).all()
