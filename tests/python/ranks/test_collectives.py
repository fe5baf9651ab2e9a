"""Collectives of NumPy arrays, against NumPy itself. test_mpi4py.py has mpi4py's beside them."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from collective_checks import checked, drawn_counts, drawn_exchange, values
from hypothesis import given, settings

import tasuki

OPS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
ALGORITHMS = {
    "Allreduce": ["auto", "exchange", "doubling", "ring"],
    "Reduce": ["auto", "binomial"],
    "ReduceScatter": ["auto", "direct", "ring"],
    "Allgather": ["auto", "direct", "doubling", "ring"],
    "Gather": ["auto", "direct", "binomial"],
    "Scatter": ["auto", "direct", "binomial"],
    "Alltoall": ["auto", "direct", "pairwise"],
}


def reduced(op, arrays):
    return OPS[op].reduce(np.array(arrays)).astype(arrays[0].dtype)


def turns(operation, source, rank):
    """Verifies the operation, then runs it on new data at each turn."""
    checked(operation)
    for turn in range(3):
        source[...] = values(rank, turn, source.size, source.dtype).reshape(source.shape)
        operation.start()
        operation.wait()
        yield turn


def array(context, data, count, dtype):
    """Of this process alone, or where the ranks of its host can reach it."""
    if data.draw(st.booleans()):
        return tasuki.shared_array(context, (count,), dtype)
    return np.zeros(count, dtype)


@pytest.mark.parametrize("name", ["Allreduce", "Reduce", "Scan", "Exscan"])
@settings(max_examples=8)  # each is verified byte by byte
@given(st.data())
def test_vectors(context, name, data):
    n, me = context.size, context.rank
    count = data.draw(st.sampled_from([0, 1, 3, 17, 1031]))
    dtype = data.draw(st.sampled_from(["float64", "int32", "float32", "uint8", "complex128"]))
    op = data.draw(st.sampled_from(["sum", "product"] if dtype == "complex128" else list(OPS)))
    root = data.draw(st.integers(0, n - 1)) if name == "Reduce" else 0
    here = data.draw(st.booleans()) and (name != "Reduce" or me == root)
    source, target = (array(context, data, count, dtype) for _ in range(2))
    keywords = {"op": op, "algorithm": data.draw(st.sampled_from(ALGORITHMS.get(name, ["auto"])))}
    if name == "Reduce":
        keywords["root"] = root
    gets = name != "Reduce" or me == root
    operation = getattr(tasuki, name)(
        context, tasuki.in_place if here else source, target if gets else None, **keywords
    )
    for turn in turns(operation, target if here else source, me):
        untouched = values(me, turn, count, dtype) if here else np.zeros(count, dtype)
        first = {"Scan": me + 1, "Exscan": me}.get(name, n)
        if gets:
            expected = reduced(op, [values(r, turn, count, dtype) for r in range(first)]) if first else untouched
            np.testing.assert_array_equal(target, expected)
        if not here:
            target[...] = 0


@settings(max_examples=8)  # each is verified byte by byte
@given(st.data())
def test_reduce_scatter(context, data):
    n, me = context.size, context.rank
    counts, told = drawn_counts(data, n, 9)
    here = data.draw(st.booleans())
    begin, total = sum(counts[:me]), sum(counts)
    source = array(context, data, total, "int64")
    target = array(context, data, total if here else counts[me], "int64")
    operation = tasuki.ReduceScatter(
        context,
        tasuki.in_place if here else source,
        target,
        op="max",
        counts=told,
        algorithm=data.draw(st.sampled_from(ALGORITHMS["ReduceScatter"])),
    )
    for turn in turns(operation, target if here else source, me):
        whole = reduced("max", [values(r, turn, total, "int64") for r in range(n)])
        np.testing.assert_array_equal(target[: counts[me]], whole[begin : begin + counts[me]])


@pytest.mark.parametrize("name", ["Allgather", "Gather", "Scatter"])
@settings(max_examples=8)  # each is verified byte by byte
@given(st.data())
def test_blocks(context, name, data):
    n, me = context.size, context.rank
    counts, told = drawn_counts(data, n, 40)
    # What is only moved may be of any type.
    dtype = data.draw(st.sampled_from(["float32", "bool", "M8[s]", [("a", "i2"), ("b", "u1")]]))
    root = data.draw(st.integers(0, n - 1)) if name != "Allgather" else 0
    at_root = name == "Allgather" or me == root
    here = data.draw(st.booleans()) and at_root
    begin, total = sum(counts[:me]), sum(counts)
    part = array(context, data, counts[me], dtype)
    whole = array(context, data, total, dtype)
    mine = whole[begin : begin + counts[me]]
    keywords = {"counts": told, "algorithm": data.draw(st.sampled_from(ALGORITHMS[name]))}
    if name != "Allgather":
        keywords["root"] = root
    sides = [tasuki.in_place if here else part, whole if at_root else None]
    operation = getattr(tasuki, name)(context, *(sides[::-1] if name == "Scatter" else sides), **keywords)

    def bits(rank, turn, count):
        size = np.dtype(dtype).itemsize
        raw = data_bytes(rank, turn, count * size)
        return raw.view(dtype) if size > 1 else (raw % 2).view(dtype)

    assert tasuki.verify(operation)
    for turn in range(3):
        if name == "Scatter":
            if at_root:
                whole[...] = bits(root, turn, total)
        else:
            (mine if here else part)[...] = bits(me, turn, counts[me])
        operation.start()
        operation.wait()
        if name == "Scatter":
            expected = bits(root, turn, total)[begin : begin + counts[me]]
            np.testing.assert_array_equal(mine if here else part, expected)
        elif at_root:
            expected = np.concatenate([bits(r, turn, counts[r]) for r in range(n)])
            np.testing.assert_array_equal(whole, expected)


def data_bytes(rank, turn, count):
    return ((np.arange(count) * 37 + rank * 5 + turn * 3) % 120).astype("u1")


@settings(max_examples=8)  # each is verified byte by byte
@given(st.data())
def test_alltoall(context, data):
    n, me = context.size, context.rank
    counts, equal, here = drawn_exchange(data, n)
    source = array(context, data, counts[me].sum(), "int16")
    target = array(context, data, counts[:, me].sum(), "int16")
    individual = {} if equal else {"send_counts": counts[me].tolist(), "receive_counts": counts[:, me]}
    operation = tasuki.Alltoall(
        context,
        tasuki.in_place if here else source,
        target,
        algorithm=data.draw(st.sampled_from(ALGORITHMS["Alltoall"])),
        **individual,
    )
    for turn in turns(operation, target if here else source, me):
        blocks = []
        for r in range(n):
            begin = counts[r, :me].sum()
            blocks.append(values(r, turn, counts[r].sum(), "int16")[begin : begin + counts[r, me]])
        np.testing.assert_array_equal(target, np.concatenate(blocks))


def test_pairs_and_bools(context):
    pair = np.dtype([("value", "f8"), ("rank", "i4")], align=True)
    mine, best = np.zeros(3, pair), np.zeros(3, pair)
    where = tasuki.Allreduce(context, mine, best, op="maxloc")
    flag, all_flags = np.zeros(2, bool), np.zeros(2, bool)
    every = tasuki.Allreduce(context, flag, all_flags, op="land")
    barrier = tasuki.Barrier(context)
    for turn in range(3):
        mine["value"] = (context.rank + turn) % context.size
        mine["rank"] = context.rank
        flag[...] = [True, context.rank != turn]
        where.start()
        with every.overlap():
            pass
        where.wait()
        barrier.run()
        assert (best["value"] == context.size - 1).all()
        assert (best["rank"] == (context.size - 1 - turn) % context.size).all()
        assert all_flags.tolist() == [True, turn >= context.size]
    with pytest.raises(tasuki.Error, match="align=True"):
        tasuki.Allreduce(context, *np.zeros((2, 3), [("v", "f8"), ("i", "i4")]), op="minloc")
    with pytest.raises(tasuki.Error, match="no meaning for bool"):
        tasuki.Allreduce(context, flag, all_flags)
    assert repr(tasuki.in_place) == "tasuki.in_place"


def test_ordered_sums_go_from_left_to_right(context):
    mine, total = np.zeros(9), np.zeros(9)
    ordered = tasuki.Allreduce(context, mine, total, ordered=True)
    assert tasuki.verify(ordered)
    for turn in range(3):
        mine[...] = 1 / (3 + context.rank + 5 * turn) + context.rank * 1e7
        ordered.run()
        expected = 1 / (3 + 5 * turn)
        for rank in range(1, context.size):
            expected += 1 / (3 + rank + 5 * turn) + rank * 1e7
        assert (total == expected).all()
    with pytest.raises(tasuki.Error, match="does not combine in rank order"):
        tasuki.Allreduce(context, mine, total, ordered=True, algorithm="ring")


def test_neighbours(context):
    n, me = context.size, context.rank
    grid = tasuki.Grid(context, (16, 4), split=(n, 1), periodic=(True, False))
    source, target = np.zeros((4, 3)), np.zeros((4, 3))
    sides = tasuki.NeighbourAlltoall(context, grid, source, target)
    above, below = (me + 1) % n, (me - 1) % n
    ring = tasuki.NeighbourAllgather(context, ([above], [below]), source, got := np.zeros((4, 3)))
    for turn in turns(sides, source, me):
        assert tasuki.verify(ring)
        ring.run()
        theirs = {rank: values(rank, turn, 12, float).reshape(4, 3) for rank in (above, below)}
        np.testing.assert_array_equal(target, [theirs[below][1], theirs[above][0], [0] * 3, [0] * 3])
        np.testing.assert_array_equal(got, theirs[below])
    if n > 1:
        lengths = tasuki.NeighbourAlltoall(
            context,
            ([above, me], [me, below]),
            np.arange(me + 3, dtype="i2"),
            received := np.zeros(2 + below + 1, "i2"),
            send_counts=[me + 1, 2],
            receive_counts=[2, below + 1],
        )
        lengths.run()
        np.testing.assert_array_equal(received, [me + 1, me + 2, *range(below + 1)])
    for whom, pattern in (
        ("all", "'neighbours' is 'all'; it must be a Grid"),
        (([0.5], []), "it must be a Grid"),
        (([99], []), "'to' names rank 99"),
        (([me], []), "in 'from' 0 times"),
    ):
        with pytest.raises(tasuki.Error, match=pattern):
            tasuki.NeighbourAllgather(context, whom, np.zeros(2), np.zeros(0 if whom[1] == [] else 2))  # type: ignore[arg-type]


def test_blocks_are_an_option_of_all(context):
    """Of thread blocks on a GPU; in host memory any number that can be is taken."""
    n = context.size
    one, many = np.zeros(3), np.zeros(3 * n)
    others = np.zeros(3), np.zeros(3 * n)
    around = list(range(n))
    made: list[Callable[[int], object]] = [
        lambda blocks: tasuki.Broadcast(context, 0, one, blocks=blocks),
        lambda blocks: tasuki.Allreduce(context, one, others[0], blocks=blocks),
        lambda blocks: tasuki.ReduceScatter(context, many, one, blocks=blocks),
        lambda blocks: tasuki.Allgather(context, one, many, blocks=blocks),
        lambda blocks: tasuki.Alltoall(context, many, others[1], blocks=blocks),
        lambda blocks: tasuki.Barrier(context, blocks=blocks),
        lambda blocks: tasuki.NeighbourAllgather(context, (around, around), one, many, blocks=blocks),
        lambda blocks: tasuki.NeighbourAlltoall(context, (around, around), many, others[1], blocks=blocks),
    ]
    for make in made:
        make(4)
        with pytest.raises(tasuki.Error, match="argument 'blocks' is -1; it must be 0 or more"):
            make(-1)


def test_complaints(context):
    n, me = context.size, context.rank
    a, b = np.zeros(4 * n), np.zeros(4 * n)
    read_only = np.zeros(4 * n)
    read_only.flags.writeable = False
    ones = [1] * n
    for make, pattern in (
        (lambda: tasuki.Allreduce(context, a, b, op="mean"), "'mean'"),
        (lambda: tasuki.Allreduce(context, a, b, op="bxor"), "'op' is bxor, which has no meaning for elements of f64"),
        (lambda: tasuki.Allreduce(context, a, b, algorithm="magic"), "no algorithm 'magic' for allreduce"),
        (lambda: tasuki.Allreduce(context, a, b[1:]), f"'source' has {4 * n} elements; it must have {4 * n - 1}"),
        (lambda: tasuki.Allreduce(context, a, b.astype("f4")), "elements of float64 and float32"),
        (lambda: tasuki.Allreduce(context, a, a), "'source' and 'target' overlap in memory"),
        (lambda: tasuki.Allreduce(context, a, read_only), "'target' is read-only"),
        (lambda: tasuki.Allreduce(context, a, tasuki.in_place), "'target' is in_place, which only the other"),
        (lambda: tasuki.Allreduce(context, a, None), "'target' is None"),
        (lambda: tasuki.Allreduce(context, a.astype("M8[s]"), b.astype("M8[s]")), "cannot be combined"),
        (lambda: tasuki.Scan(context, a, b, trees=2), "of scan none has"),
        (
            lambda: tasuki.Barrier(context, where="cloud"),  # type: ignore[arg-type]
            "'where' is 'cloud'; it must be 'host' or 'device'",
        ),
        (lambda: tasuki.Barrier(context, where="device"), "GPU" if tasuki.why_no_gpu() else None),
        (
            lambda: tasuki.Allgather(context, a, b, counts=[1]),
            r"'counts' is \[1\]; it must be" if n > 1 else "'source'",
        ),
        (
            lambda: tasuki.Allgather(context, a, b, counts="all"),  # type: ignore[arg-type]
            "'counts' is 'all'; it must be",
        ),
        (lambda: tasuki.Allgather(context, a[:1], b[:n], counts=[-1] * n), "'counts' is -1 for block 0"),
        (lambda: tasuki.Allgather(context, a[:3], b[: 3 * n + 1]), f"'target' has {3 * n + 1} elements; it must have"),
        (lambda: tasuki.Gather(context, a[:1], b[:n], root=99), "'root' is 99"),
        (lambda: tasuki.Gather(context, tasuki.in_place, b), None if n == 1 else "in_place, which is for the root"),
        (lambda: tasuki.Scatter(context, None, b), "'source' is None; give an array on rank 0"),
        (lambda: tasuki.Alltoall(context, a, b, send_counts=ones), "come together; give both or neither"),
        (
            lambda: tasuki.Alltoall(context, a[:1], b[:n], send_counts=ones, receive_counts=ones),
            "'source' has 1" if n > 1 else None,
        ),
        (lambda: tasuki.Allreduce(context, "text", b), "'source' is a str, which shows no memory"),
    ):
        if pattern is not None:
            with pytest.raises(tasuki.Error, match=pattern):
                make()
    if n > 1:
        odd = me == n - 1
        with pytest.raises(tasuki.Error, match="'count' differs between ranks"):
            tasuki.Allreduce(context, a[: 1 + odd], b[: 1 + odd])
        with pytest.raises(tasuki.Error, match="'type' differs between ranks"):
            tasuki.Allreduce(context, a.astype("f4" if odd else "f8"), b.astype("f4" if odd else "f8"))
        with pytest.raises(tasuki.Error, match="elements, which are no equal blocks"):
            tasuki.Allgather(context, tasuki.in_place, b[: n + 1])
    for call in (
        lambda: tasuki.Allreduce(context, a),  # type: ignore[call-arg]
        lambda: tasuki.Allreduce(context, a, b, 3),  # type: ignore[arg-type, misc]
        lambda: tasuki.Reduce(context, a, b, root="first"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            call()


def test_candidates_are_tried_on_memory_of_their_own(context):
    n = context.size
    if n > 2:
        return
    for count in (3, 5000):
        source = np.arange(count, dtype="f8") + 10 * context.rank
        target = np.full(n * count, -1.0)
        operation = tasuki.Allgather(context, source, target, tune=3)
        assert (target == -1).all() and (source == np.arange(count) + 10 * context.rank).all()
        if n > 1:
            assert "tried for option 'tune'" in operation.explain()
        for turn in range(3):
            source[:] = np.arange(count) + 10 * context.rank + turn
            operation.run()
            for rank in range(n):
                assert (target[rank * count : (rank + 1) * count] == np.arange(count) + 10 * rank + turn).all()
            context.barrier()
    with pytest.raises(tasuki.Error, match="argument 'tune' is -2"):
        tasuki.Barrier(context, tune=-2)
    assert "prices: " in tasuki.Barrier(context, correct=False).explain()
