"""Collectives of arrays that are not contiguous, and of explicit layouts, against NumPy."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from collective_checks import checked, drawn_counts, drawn_exchange, values
from hypothesis import given, settings

import tasuki

TURNS = 3
GAP = 77  # what nobody may touch

# How an array lies in memory: what is allocated for a shape, and the view of it.
PLACES = {
    "plain": (lambda shape: shape, lambda base: base),
    "transposed": (lambda shape: shape[::-1], lambda base: base.T),
    "steps": (lambda shape: [2 * n for n in shape], lambda base: base[tuple(slice(1, None, 2) for _ in base.shape)]),
    "backwards": (lambda shape: shape, lambda base: base[tuple(slice(None, None, -1) for _ in base.shape)]),
    "inside": (lambda shape: [n + 3 for n in shape], lambda base: base[tuple(slice(1, -2) for _ in base.shape)]),
}


class Strided:
    """A view of a larger array, whose other elements must stay as they are."""

    def __init__(self, shape, dtype, place):
        size, self._view = PLACES[place]
        self.base = np.full(size(shape), GAP, dtype)
        self.array = self._view(self.base)

    def check(self, expected):
        np.testing.assert_array_equal(self.array, np.reshape(expected, self.array.shape))
        inside = np.zeros(self.base.shape, bool)
        self._view(inside)[...] = True
        assert (self.base[~inside] == np.array(GAP).astype(self.base.dtype)).all()

    def fill(self, data):
        self.array[...] = np.reshape(data, self.array.shape)


@st.composite
def strided(draw, count, dtype, me):
    """`count` elements; their shape and places depend on the rank."""
    shapes = [(count,), (1, count), (count, 1, 1)] + [(k, count // k) for k in (2, 3, 4) if count % k == 0 and count]
    choice = draw(st.integers(0, 10))
    return Strided(shapes[(choice + me) % len(shapes)], dtype, list(PLACES)[(choice // 2 + 2 * me) % len(PLACES)])


@pytest.mark.parametrize("name", ["Allreduce", "Reduce", "Scan", "Exscan"])
@settings(max_examples=10)
@given(st.data())
def test_vectors(context, name, data):
    n, me = context.size, context.rank
    count = data.draw(st.sampled_from([0, 1, 6, 24, 35]))
    dtype = data.draw(st.sampled_from(["float64", "int16", "complex128", "uint8"]))
    root = data.draw(st.integers(0, n - 1)) if name == "Reduce" else me
    gets = me == root
    here = data.draw(st.booleans()) and gets
    source, target = (data.draw(strided(count, dtype, me)) for _ in range(2))
    keywords = {"root": root} if name == "Reduce" else {}
    operation = checked(
        getattr(tasuki, name)(
            context, tasuki.in_place if here else source.array, target.array if gets else None, **keywords
        )
    )
    for turn in range(TURNS):
        mine = values(me, turn, count, dtype)
        source.fill(mine)
        target.fill(mine if here else values(9, turn, count, dtype))
        before = target.array.copy()
        operation.run()
        last = {"Scan": me + 1, "Exscan": me}.get(name, n)
        expected = sum((values(r, turn, count, dtype) for r in range(last)), start=np.zeros(count, dtype))
        target.check(expected.astype(dtype) if last and gets else before)
        source.check(mine)


@settings(max_examples=10)
@given(st.data())
def test_reduce_scatter(context, data):
    n, me = context.size, context.rank
    counts, told = drawn_counts(data, n, 9)
    begin, total = sum(counts[:me]), sum(counts)
    here = data.draw(st.booleans())
    source = data.draw(strided(total, "float32", me))
    target = data.draw(strided(counts[me], "float32", me))
    sides = [tasuki.in_place, source.array] if here else [source.array, target.array]
    operation = checked(tasuki.ReduceScatter(context, *sides, counts=told))
    for turn in range(TURNS):
        source.fill(values(me, turn, total, "float32"))
        operation.run()
        whole = sum(values(r, turn, total, "float32") for r in range(n))[begin : begin + counts[me]]
        if here:
            np.testing.assert_array_equal(source.array.reshape(-1)[: counts[me]], whole)
        else:
            target.check(whole)


@pytest.mark.parametrize("name", ["Allgather", "Gather", "Scatter"])
@settings(max_examples=10)
@given(st.data())
def test_blocks(context, name, data):
    n, me = context.size, context.rank
    counts, told = drawn_counts(data, n, 20)
    dtype = data.draw(st.sampled_from(["float32", "bool", "M8[s]", "complex128"]))
    root = data.draw(st.integers(0, n - 1)) if name != "Allgather" else me
    here = data.draw(st.booleans()) and me == root
    begin, total = sum(counts[:me]), sum(counts)
    part = data.draw(strided(counts[me], dtype, me))
    whole = data.draw(strided(total, dtype, me))
    sides = [tasuki.in_place if here else part.array, whole.array if me == root else None]
    keywords = {"counts": told} | ({} if name == "Allgather" else {"root": root})
    operation = checked(getattr(tasuki, name)(context, *(sides[::-1] if name == "Scatter" else sides), **keywords))
    for turn in range(TURNS):
        mine = values(me, turn, counts[me], dtype)
        if name == "Scatter":
            whole.fill(values(root, turn, total, dtype))
        else:
            part.fill(mine)
            elements = np.full(total, GAP, dtype)
            elements[begin : begin + counts[me]] = mine
            whole.fill(elements)
        operation.run()
        if name == "Scatter":
            if not here:
                part.check(values(root, turn, total, dtype)[begin : begin + counts[me]])
        elif me == root:
            whole.check(np.concatenate([values(r, turn, counts[r], dtype) for r in range(n)]))


@settings(max_examples=10)
@given(st.data())
def test_alltoall(context, data):
    n, me = context.size, context.rank
    counts, equal, here = drawn_exchange(data, n)
    source = data.draw(strided(int(counts[me].sum()), "int16", me))
    target = data.draw(strided(int(counts[:, me].sum()), "int16", me + 1))
    individual = {} if equal else {"send_counts": counts[me], "receive_counts": counts[:, me]}
    operation = checked(tasuki.Alltoall(context, tasuki.in_place if here else source.array, target.array, **individual))
    for turn in range(TURNS):
        (target if here else source).fill(values(me, turn, counts[me].sum(), "int16"))
        operation.run()
        blocks = []
        for r in range(n):
            begin = counts[r, :me].sum()
            blocks.append(values(r, turn, counts[r].sum(), "int16")[begin : begin + counts[r, me]])
        target.check(np.concatenate(blocks))


@settings(max_examples=10)
@given(st.data())
def test_broadcast(context, data):
    me, root = context.rank, data.draw(st.integers(0, context.size - 1))
    place = data.draw(st.integers(0, len(PLACES) - 1))
    view = Strided((4, 5, 3), "int32", list(PLACES)[(place + me) % len(PLACES)])
    may_write = data.draw(st.booleans())
    view.array.flags.writeable = may_write or me != root
    operation = checked(tasuki.Broadcast(context, root, view.array, chunk=40, algorithm="trees"))
    for turn in range(TURNS):
        view.array.flags.writeable = True
        view.fill(values(me, turn, 60, "int32"))
        operation.run()
        view.check(values(root, turn, 60, "int32"))


def test_neighbours(context):
    n, me = context.size, context.rank
    above, below = (me + 1) % n, (me - 1) % n
    grid = tasuki.Grid(context, (16, 4), split=(n, 1), periodic=(True, False))
    source, target = Strided((4, 3), float, "transposed"), Strided((2, 2, 3), float, "steps")
    got = Strided((3, 4), float, list(PLACES)[me % len(PLACES)])
    sides = checked(tasuki.NeighbourAlltoall(context, grid, source.array, target.array))
    ring = checked(tasuki.NeighbourAllgather(context, ([above], [below]), source.array, got.array))
    sizes = np.arange(me + 3, dtype="i2")[::-1]
    received = Strided((2 + below + 1,), "i2", "steps")
    lengths = checked(
        tasuki.NeighbourAlltoall(
            context,
            ([above, me], [me, below]) if n > 1 else ([me, me], [me, me]),
            sizes,
            received.array,
            send_counts=[me + 1, 2],
            receive_counts=[2, below + 1] if n > 1 else [1, 2],
        )
    )
    for turn in range(TURNS):
        source.fill(values(me, turn, 12, float))
        target.base[...] = GAP
        sizes[...] = np.arange(me + 3) + turn
        for operation in (sides, ring, lengths):
            operation.run()
        theirs = {rank: values(rank, turn, 12, float).reshape(4, 3) for rank in (above, below)}
        target.check(np.array([theirs[below][1], theirs[above][0], [GAP] * 3, [GAP] * 3]))
        got.check(theirs[below])
        if n > 1:
            received.check(np.array([me + 1, me + 2, *range(below + 1)]) + turn)
        else:
            received.check(np.arange(3) + turn)


def test_small_arrays(context):
    """Of no dimensions, and of no elements."""
    n, me = context.size, context.rank
    one, total = np.array(0.0), np.array(0.0)
    both = checked(tasuki.Allreduce(context, one, total))
    row = np.full((n, 2), -1.0)
    gather = checked(tasuki.Allgather(context, one, row[:, 1]))
    part = np.array(0.0)
    scatter = checked(tasuki.Scatter(context, row[:, 1] if me == n - 1 else None, part, root=n - 1))
    cell = np.array(0.0)
    everywhere = checked(tasuki.Broadcast(context, 0, cell))
    for turn in range(TURNS):
        one[...] = me + turn
        cell[...] = 10 * turn + me
        for operation in (both, gather, scatter, everywhere):
            operation.run()
        assert total == sum(range(n)) + turn * n
        assert row.tolist() == [[-1, r + turn] for r in range(n)]
        assert part == me + turn and cell == 10 * turn
    nothing = np.zeros((0, 3))
    holes = np.zeros((4, 6))[::2, :0]
    for operation in (
        tasuki.Allreduce(context, nothing, holes.copy()),
        tasuki.Allreduce(context, holes, nothing.copy()),
        tasuki.Allgather(context, nothing, holes),
        tasuki.Alltoall(context, holes, nothing),
        tasuki.Broadcast(context, 0, holes),
    ):
        checked(operation).run()


def test_many_dimensions_and_repetition(context):
    me = context.rank
    wide = Strided((2, 3, 1, 2, 2, 1, 2, 2, 2), "i4", "steps")
    repeated = np.broadcast_to(np.arange(6, dtype="i4")[:, None], (6, 32))  # read twice, but not written
    operation = checked(tasuki.Allreduce(context, repeated, wide.array, op="max"))
    operation.run()
    wide.check(repeated)
    with pytest.raises(tasuki.Error, match="read-only|twice"):
        tasuki.Allreduce(context, wide.array, repeated)
    twice = np.lib.stride_tricks.as_strided(np.zeros(8), (2, 4), (8, 8))
    with pytest.raises(tasuki.Error, match="twice"):
        tasuki.Allreduce(context, np.zeros((2, 4)), twice)
    assert me == context.rank


def test_what_is_interleaved_does_not_overlap(context):
    both = np.zeros((6, 2))
    operation = checked(tasuki.Allreduce(context, both[:, 0], both[:, 1]))
    both[:, 0] = context.rank + np.arange(6)
    operation.run()
    n = context.size
    assert both[:, 1].tolist() == [k * n + n * (n - 1) / 2 for k in range(6)]
    with pytest.raises(tasuki.Error, match="overlap in memory"):
        tasuki.Allreduce(context, both[:4, 0], both[2:, 0])


def test_transposing_a_matrix(context):
    """As MPI_Alltoallw: every block has a layout of its own, rows of one size and columns of another."""
    n, me = context.size, context.rank
    rows, columns = [r + 2 for r in range(n)], [2 * r + 1 for r in range(n)]
    first = [sum(columns[:r]) for r in range(n)]
    number = tasuki.Layout.of("f4")
    mine = np.zeros((rows[me], sum(columns)), "f4")  # some rows of a matrix
    theirs = np.full((columns[me], sum(rows)), -1, "f4")  # becomes some columns of it, as rows
    sent = [tasuki.Layout.subarray(mine.shape, (rows[me], columns[r]), (0, first[r]), number) for r in range(n)]
    received = []
    for r in range(n):
        block = theirs[:, sum(rows[:r]) : sum(rows[: r + 1])].T  # rows of rank r
        received.append(tasuki.Layout.hindexed([1], [4 * sum(rows[:r])], tasuki.Layout.of_array(block)))
    operation = checked(tasuki.Alltoall(context, (mine, sent), (theirs, received)))
    for turn in range(TURNS):
        matrix = [values(r, turn, rows[r] * sum(columns), "f4").reshape(rows[r], -1) for r in range(n)]
        mine[...] = matrix[me]
        operation.run()
        expected = np.concatenate(matrix)[:, first[me] : first[me] + columns[me]].T
        np.testing.assert_array_equal(theirs, expected)


def test_layouts_of_blocks(context):
    n, me = context.size, context.rank
    number = tasuki.Layout.of("i8")
    pairs = tasuki.Layout.vector(3, 1, 2, number)  # every other number
    source, target = np.zeros(6, "i8"), np.full(4 * n, -1)
    flat = tasuki.blocks_of(number, [3] * n, [4 * r for r in range(n)])
    assert flat == tasuki.blocks_of([number] * n, [3] * n, [32 * r for r in range(n)])
    assert flat == tasuki.blocks_of(tasuki.Layout.resized(tasuki.Layout.contiguous(3, number), 0, 32), n)
    # One side may have layouts, the other's elements be counted; what is moved may have other types on both.
    gather = checked(tasuki.Allgather(context, (source, pairs), (target, flat)))
    plain = checked(tasuki.Gather(context, (source, pairs), np.zeros(24 * n, "u1") if me == 0 else None))
    parts = np.zeros(3, "i8")
    scatter = checked(tasuki.Scatter(context, (target, flat) if me == n - 1 else None, parts, root=n - 1))
    total = np.zeros((3, 2), "i8")
    reduce = checked(tasuki.Allreduce(context, (source, pairs), total[:, 1]))
    spread = checked(tasuki.ReduceScatter(context, (target, flat), (source, pairs), op="max"))
    cells = np.zeros(9, "i8")
    everywhere = checked(
        tasuki.Broadcast(context, 0, (cells, tasuki.Layout.vector(2, 1, 3 + me % 2, number)), engine="inline")
    )
    own = checked(tasuki.NeighbourAlltoall(context, ([me], [me]), (source, [pairs]), (parts, [flat[0]])))
    once = checked(tasuki.NeighbourAllgather(context, ([me], [me]), (source, pairs), np.zeros(3, "i8")))
    for turn in range(TURNS):
        source[...] = [me, 50, me + 1, 51, me * turn, 52]
        gather.run()
        expected = [x for r in range(n) for x in (r, r + 1, r * turn, -1)]
        assert target.tolist() == expected
        for operation in (plain, scatter, reduce, once):
            operation.run()
        assert parts.tolist() == [me, me + 1, me * turn]
        assert total[:, 1].tolist() == [sum(range(n)), sum(range(n)) + n, turn * sum(range(n))]
        spread.run()
        assert source.tolist() == [me, 50, me + 1, 51, me * turn, 52]
        own.run()
        assert parts.tolist() == [me, me + 1, me * turn]
        cells[...] = np.arange(9) + 100 * me + turn
        everywhere.run()
        assert cells[0] == turn and cells[3 + me % 2] == 3 + turn and cells[1] == 1 + 100 * me + turn


def test_complaints(context):
    n, me = context.size, context.rank
    a, b = np.zeros(4 * n), np.zeros(4 * n)
    number, four = tasuki.Layout.of("f8"), tasuki.Layout.contiguous(4, tasuki.Layout.of("f8"))
    blocks = tasuki.blocks_of(four, n)
    for make, pattern in (
        (lambda: tasuki.Allreduce(context, (a, 3), b), "'source' has 3 where a Layout belongs"),
        (lambda: tasuki.Allreduce(context, (a, blocks), b), "where a Layout belongs"),
        (lambda: tasuki.Allgather(context, a[:4], (b, four)), "it must be a list of"),
        (lambda: tasuki.Allgather(context, a[:4], (b, [four] * (n + 1))), "it must be a list of"),
        (lambda: tasuki.Allgather(context, a[:4], (b, [7] * n)), "'target' has 7 where a Layout belongs"),
        (
            lambda: tasuki.Allgather(context, a[:4], (b, blocks), counts=[4] * n),
            "'counts' is given beside the layouts of 'target'",
        ),
        (
            lambda: tasuki.Allreduce(context, (a[: 4 * n - 1], tasuki.Layout.contiguous(4 * n, number)), b),
            "but the array",
        ),
        (
            lambda: tasuki.Allreduce(context, (a, tasuki.Layout.bytes(12)), (b, tasuki.Layout.bytes(12))),
            "no whole number",
        ),
        (lambda: tasuki.Allreduce(context, (a, number), (b, four)), "8 bytes"),
        (lambda: tasuki.Allreduce(context, (a, number), (b.astype("f4"), number)), "elements of float64 and float32"),
        (lambda: tasuki.Allreduce(context, a[::2], b), f"'source' has {2 * n} elements; it must have {4 * n}"),
        (lambda: tasuki.Allgather(context, a[: 2 * n : 2], b[::2]), f"'target' has {2 * n}" if n != 2 else None),
        (lambda: tasuki.Broadcast(context, 0, (a, 1)), "where a Layout belongs"),
        (
            lambda: tasuki.Alltoall(context, (a, blocks), (b, blocks), send_counts=[4] * n, receive_counts=[4] * n),
            "beside",
        ),
        (
            lambda: tasuki.NeighbourAllgather(context, ([me], [me]), (a, four), (b, [four, four])),
            "it must be a list of 1 Layouts",
        ),
    ):
        if pattern is not None and (n > 1 or "'target' has 2" not in pattern):
            with pytest.raises(tasuki.Error, match=pattern):
                make()
    with pytest.raises(tasuki.Error, match="2 counts but 1 displacements"):
        tasuki.blocks_of(number, [1, 2], [0])
    if n > 1:
        odd = me == n - 1
        with pytest.raises(tasuki.Error, match="'type' differs between ranks"):
            tasuki.Allgather(context, a[:4:2].astype("f4" if odd else "f8"), b[: 2 * n].astype("f4" if odd else "f8"))
        with pytest.raises(tasuki.Error, match="they must be equal"):
            tasuki.Allreduce(context, a[: 4 + 2 * odd : 2], b[: 2 + odd])
        with pytest.raises(tasuki.Error, match=f"'target' for rank {n - 1} of rank|of rank {n - 1}"):
            tasuki.Allgather(context, (a, number if odd else four), (b, blocks))
