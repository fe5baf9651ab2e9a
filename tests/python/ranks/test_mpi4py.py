"""Random collectives against mpi4py's, where it is there: types, operators, roots, counts, paths, engines, in place."""

from __future__ import annotations

import numpy as np
import pytest

import tasuki

INTEGERS = ["i1", "u2", "i4", "i8"]
FLOATS = ["f4", "f8"]
COMPLEX = ["c16"]
OPERATORS = {
    "sum": ("SUM", INTEGERS + FLOATS + COMPLEX),
    "product": ("PROD", INTEGERS + FLOATS + COMPLEX),
    "min": ("MIN", INTEGERS + FLOATS),
    "max": ("MAX", INTEGERS + FLOATS),
    "band": ("BAND", INTEGERS),
    "bor": ("BOR", INTEGERS),
    "bxor": ("BXOR", INTEGERS),
    "land": ("LAND", INTEGERS),
    "lor": ("LOR", INTEGERS),
    "lxor": ("LXOR", INTEGERS),
}
VECTORS = ["Allreduce", "Scan", "Exscan", "Reduce"]
TURNS = 3


@pytest.fixture
def mpi(context):
    return pytest.importorskip("mpi4py.MPI")


@pytest.fixture
def random():
    return np.random.default_rng(5)  # the same on all ranks


def cases(context):
    return range(10 if context.size < 3 else 4)  # verifying takes long where ranks share cores


def values(rank, turn, count, dtype, op="sum"):
    """So small that what is made of them is exact in any order."""
    numbers = (np.arange(count) * 7 + rank * 5 + turn * 3) % 11
    return (numbers % 2 + 1 if op == "product" else numbers).astype(dtype)


def options_of(context, random):
    paths = ["auto", "mpi", "shared:eager"] if context.size > 1 else ["auto"]
    return {"path": str(random.choice(paths)), "engine": str(random.choice(["inline", "thread"]))}


def operator_of(random):
    op = str(random.choice(list(OPERATORS)))
    name, dtypes = OPERATORS[op]
    return op, name, str(random.choice(dtypes))


def run(operation):
    operation.start()
    operation.wait()


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(context, mpi, random, name):
    comm, n, me = mpi.COMM_WORLD, context.size, context.rank
    for _ in cases(context):
        op, theirs_op, dtype = operator_of(random)
        count = int(random.choice([0, 1, 5, 333]))
        root = int(random.integers(n)) if name == "Reduce" else me
        here = bool(random.integers(2)) and me == root
        gets = me == root
        source, target = np.zeros(count, dtype), np.zeros(count, dtype) if gets else None
        keywords = {"op": op, **options_of(context, random)} | ({"root": root} if name == "Reduce" else {})
        ours = getattr(tasuki, name)(context, tasuki.in_place if here else source, target, **keywords)
        assert tasuki.verify(ours)
        for turn in range(TURNS):
            source[...] = values(me, turn, count, dtype, op)
            if target is not None:
                target[...] = source if here else 9
            expected = None if target is None else target.copy()
            more = [root] if name == "Reduce" else []
            getattr(comm, name)(mpi.IN_PLACE if here else source, expected, getattr(mpi, theirs_op), *more)
            run(ours)
            if target is not None:
                np.testing.assert_array_equal(target, expected, f"{name} of {dtype} by {op}")


def test_reduce_scatter(context, mpi, random):
    comm, n, me = mpi.COMM_WORLD, context.size, context.rank
    for _ in cases(context):
        op, theirs_op, dtype = operator_of(random)
        counts = random.integers(0, 9, n).tolist()
        here = bool(random.integers(2))
        source = np.zeros(sum(counts), dtype)
        target = np.zeros(sum(counts) if here else counts[me], dtype)
        ours = tasuki.ReduceScatter(
            context, tasuki.in_place if here else source, target, op=op, counts=counts, **options_of(context, random)
        )
        assert tasuki.verify(ours)
        for turn in range(TURNS):
            source[...] = values(me, turn, source.size, dtype, op)
            target[...] = source if here else 7
            expected = target.copy()
            comm.Reduce_scatter(mpi.IN_PLACE if here else source, expected, counts, getattr(mpi, theirs_op))
            run(ours)
            np.testing.assert_array_equal(target[: counts[me]], expected[: counts[me]], f"{dtype} by {op}")


@pytest.mark.parametrize("name", ["Allgather", "Gather", "Scatter"])
def test_blocks(context, mpi, random, name):
    comm, n, me = mpi.COMM_WORLD, context.size, context.rank
    for _ in cases(context):
        dtype = str(random.choice(INTEGERS + FLOATS + COMPLEX))
        counts = (random.integers(0, 40, n) * random.integers(0, 2, n)).tolist()
        root = int(random.integers(n)) if name != "Allgather" else me
        here = bool(random.integers(2)) and me == root
        part = np.zeros(counts[me], dtype)
        whole = np.zeros(sum(counts), dtype) if me == root else None
        begin = sum(counts[:me])
        small = tasuki.in_place if here else part
        keywords = {"counts": counts, **options_of(context, random)} | ({} if name == "Allgather" else {"root": root})
        ours = getattr(tasuki, name)(context, *((whole, small) if name == "Scatter" else (small, whole)), **keywords)
        assert tasuki.verify(ours)
        for turn in range(TURNS):
            part[...] = values(me, turn, counts[me], dtype)
            if whole is not None:
                whole[...] = values(root, turn, whole.size, dtype) if name == "Scatter" else 9
                if here and name != "Scatter":
                    whole[begin : begin + counts[me]] = part
            expected = part.copy(), None if whole is None else whole.copy()
            few = mpi.IN_PLACE if here else expected[0]
            many = None if whole is None else [expected[1], counts]
            if name == "Allgather":
                comm.Allgatherv(few, many)
            elif name == "Gather":
                comm.Gatherv(few, many, root)
            else:
                comm.Scatterv(many, few, root)
            run(ours)
            np.testing.assert_array_equal(part, expected[0])
            if whole is not None:
                np.testing.assert_array_equal(whole, expected[1])


def test_broadcast(context, mpi, random):
    for _ in cases(context):
        dtype = str(random.choice(INTEGERS + FLOATS + COMPLEX))
        count = int(random.choice([0, 1, 5, 3333]))
        root = int(random.integers(context.size))
        data = np.zeros(count, dtype)
        ours = tasuki.Broadcast(context, root, data, **options_of(context, random))
        assert tasuki.verify(ours)
        for turn in range(TURNS):
            data[...] = values(context.rank, turn, count, dtype)
            expected = data.copy()
            mpi.COMM_WORLD.Bcast(expected, root)
            run(ours)
            np.testing.assert_array_equal(data, expected)


def test_alltoall(context, mpi, random):
    comm, n, me = mpi.COMM_WORLD, context.size, context.rank
    for _ in cases(context):
        dtype = str(random.choice(INTEGERS + FLOATS + COMPLEX))
        counts = random.integers(0, 9, (n, n))
        here = bool(random.integers(2))
        if here:
            counts = np.maximum(counts, counts.T)
        sent, received = counts[me].tolist(), counts[:, me].tolist()
        source, target = np.zeros(sum(sent), dtype), np.zeros(sum(received), dtype)
        ours = tasuki.Alltoall(
            context,
            tasuki.in_place if here else source,
            target,
            send_counts=sent,
            receive_counts=received,
            **options_of(context, random),
        )
        assert tasuki.verify(ours)
        for turn in range(TURNS):
            source[...] = values(me, turn, source.size, dtype)
            target[...] = source if here else 9
            expected = target.copy()
            comm.Alltoallv(mpi.IN_PLACE if here else [source, sent], [expected, received])
            run(ours)
            np.testing.assert_array_equal(target, expected)


def test_neighbours(context, mpi, random):
    n, me = context.size, context.rank
    for _ in cases(context):
        names = random.integers(0, 2, (n, n))  # who sends to whom
        to, of = np.flatnonzero(names[me]).tolist(), np.flatnonzero(names[:, me]).tolist()
        comm = mpi.COMM_WORLD.Create_dist_graph_adjacent(of, to)
        counts = random.integers(0, 9, (n, n))
        sent, received = counts[me, to].tolist(), counts[of, me].tolist()
        given = counts[:, 0].tolist()
        source, target = np.zeros(sum(sent)), np.zeros(sum(received))
        one, all_of = np.zeros(given[me]), np.zeros(sum(given[r] for r in of))
        exchange = tasuki.NeighbourAlltoall(
            context, (to, of), source, target, send_counts=sent, receive_counts=received, **options_of(context, random)
        )
        gather = tasuki.NeighbourAllgather(
            context, (to, of), one, all_of, receive_counts=[given[r] for r in of], **options_of(context, random)
        )
        assert tasuki.verify(exchange) and tasuki.verify(gather)
        for turn in range(TURNS):
            source[...], one[...] = values(me, turn, source.size, "f8"), values(me, turn + 1, one.size, "f8")
            expected, expected_of_all = np.zeros_like(target), np.zeros_like(all_of)
            comm.Neighbor_alltoallv([source, sent], [expected, received])
            comm.Neighbor_allgatherv(one, [expected_of_all, [given[r] for r in of]])
            for operation in (exchange, gather) if me % 2 == 0 else (gather, exchange):
                operation.start()
            exchange.wait()
            gather.wait()
            np.testing.assert_array_equal(target, expected)
            np.testing.assert_array_equal(all_of, expected_of_all)
        comm.Free()


def datatype(mpi, random, count, room):
    """MPI's datatype for `count` doubles scattered over `room`, and the layout for the same."""
    at = np.sort(random.choice(room, count, replace=False))
    if random.integers(2):
        at = at[::-1]  # the order in memory is not that of the elements
    theirs = mpi.DOUBLE.Create_indexed_block(1, at.tolist()).Commit()
    return theirs, tasuki.Layout.indexed([1] * count, at.tolist(), tasuki.Layout.of("f8"))


def test_alltoallw(context, mpi, random):
    """A datatype for each block, at a displacement of its own."""
    comm, n, me, room = mpi.COMM_WORLD, context.size, context.rank, 12
    for _ in cases(context):
        counts = random.integers(0, 7, (n, n))
        own = np.random.default_rng([me, int(random.integers(1000))])  # each rank has its datatypes
        sent = [datatype(mpi, own, int(counts[me, r]), room) for r in range(n)]
        received = [datatype(mpi, own, int(counts[r, me]), room) for r in range(n)]
        ones, begins = [1] * n, [8 * room * r for r in range(n)]
        source, target = np.zeros(room * n), np.zeros(room * n)
        ours = tasuki.Alltoall(
            context,
            (source, tasuki.blocks_of([layout for _, layout in sent], ones, begins)),
            (target, tasuki.blocks_of([layout for _, layout in received], ones, begins)),
            **options_of(context, random),
        )
        assert tasuki.verify(ours)
        for turn in range(TURNS):
            source[...] = values(me, turn, source.size, "f8") + 100 * me
            target[...] = -1
            expected = target.copy()
            comm.Alltoallw(
                [source, (ones, begins), [theirs for theirs, _ in sent]],
                [expected, (ones, begins), [theirs for theirs, _ in received]],
            )
            run(ours)
            np.testing.assert_array_equal(target, expected)
        for theirs, _ in sent + received:
            theirs.Free()


def test_allgatherv_of_vectors(context, mpi, random):
    """Columns of a matrix on one side, a resized vector on the other."""
    comm, n, me = mpi.COMM_WORLD, context.size, context.rank
    for _ in cases(context):
        length, width = int(random.integers(1, 9)), int(random.integers(2, 6))
        counts = random.integers(0, 4, n).tolist()
        begins = [sum(counts[:r]) + r for r in range(n)]  # in columns, with a gap behind each rank's
        matrix = np.zeros((length, max(1, counts[me])))
        all_of = np.zeros((length, sum(counts) + n + width))
        column = mpi.DOUBLE.Create_vector(length, 1, matrix.shape[1]).Create_resized(0, 8).Commit()
        place = mpi.DOUBLE.Create_vector(length, 1, all_of.shape[1]).Create_resized(0, 8).Commit()
        number = tasuki.Layout.of("f8")
        ours_column = tasuki.Layout.resized(tasuki.Layout.vector(length, 1, matrix.shape[1], number), 0, 8)
        ours_place = tasuki.Layout.resized(tasuki.Layout.vector(length, 1, all_of.shape[1], number), 0, 8)
        ours = tasuki.Allgather(
            context,
            (matrix, tasuki.Layout.contiguous(counts[me], ours_column)),
            (all_of, tasuki.blocks_of(ours_place, counts, begins)),
            **options_of(context, random),
        )
        assert tasuki.verify(ours)
        for turn in range(TURNS):
            matrix[...] = values(me, turn, matrix.size, "f8").reshape(matrix.shape)
            all_of[...] = -1
            expected = all_of.copy()
            comm.Allgatherv([matrix, counts[me], column], [expected, (counts, begins), place])
            run(ours)
            np.testing.assert_array_equal(all_of, expected)
        column.Free()
        place.Free()
