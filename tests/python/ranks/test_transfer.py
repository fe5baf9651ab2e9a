"""Transfers and broadcasts of strided arrays, and layouts, against NumPy."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tasuki


def draw_shape(data, size):
    shape: list[int] = []
    rest = size
    while rest > 1 and len(shape) < 3:
        factor = data.draw(st.sampled_from([f for f in range(1, rest + 1) if rest % f == 0]))
        shape.append(factor)
        rest //= factor
    return [*shape, rest]


def draw_view(data, shape, dtype):
    """A view of this shape: of random order and strides, negative ones too, in a larger array."""
    order = data.draw(st.permutations(range(len(shape))))
    steps = [data.draw(st.sampled_from([1, 2, -1, -2])) for _ in shape]
    whole = np.zeros([shape[d] * abs(s) for d, s in zip(order, steps)], dtype)
    view = whole[tuple(slice(None, None, s) for s in steps)]
    return whole, view.transpose(np.argsort(order))


@given(st.data())
def test_any_view_to_any_view(context, data):
    size = data.draw(st.integers(0, 60))
    dtype = data.draw(st.sampled_from(["float64", "int8", "float32"]))
    here, there = data.draw(st.integers(0, context.size - 1)), data.draw(st.integers(0, context.size - 1))
    shape = draw_shape(data, size)
    _, source = draw_view(data, shape, dtype)
    # Only bytes may change their shape on the way.
    whole, target = draw_view(data, draw_shape(data, size) if dtype == "int8" else shape, dtype)
    source[...] = np.arange(1, size + 1).reshape(source.shape)
    transfer = tasuki.Transfer(
        context,
        (here, source if context.rank == here else None),
        (there, target if context.rank == there else None),
    )
    transfer.start()
    transfer.wait()
    if context.rank == there:
        np.testing.assert_array_equal(target.ravel(), source.ravel())
        assert np.count_nonzero(whole) == np.count_nonzero(source)


def test_column_to_row_in_shared_arrays(context):
    last = context.size - 1
    matrix = tasuki.shared_array(context, (5, 7))
    row = tasuki.shared_array(context, (5,))
    matrix[...] = np.arange(35).reshape(5, 7)
    number = tasuki.Layout.of("float64")
    column = tasuki.Layout.resized(tasuki.Layout.vector(5, 1, 7, number), 0, 8)
    transfer = tasuki.Transfer(context, (0, matrix, column), (last, row))
    assert tasuki.verify(transfer)
    for shift in range(3):
        context.barrier()
        if context.rank == 0:
            matrix[:, 0] = np.arange(5) * 7 + shift
        with transfer.overlap():
            pass
        if context.rank == last:
            np.testing.assert_array_equal(row, np.arange(5) * 7 + shift)


def test_bad_transfers(context):
    last = context.size - 1
    good = np.zeros(4)
    read_only = np.zeros(4)
    read_only.flags.writeable = False
    outside = tasuki.Layout.contiguous(5, tasuki.Layout.of("f8"))
    everyone = range(context.size)
    sides = (0, last)  # what only the two sides know, the other ranks never hear of
    for source, target, pattern, hear in (
        ((0, good), (last, read_only), r"'target\[1\]' is read-only", sides),
        ((0, good), (last, np.zeros(5)), r"shape \(4\) .*shape \(5\)", sides),
        ((0, good), (last, np.zeros(40, "u1")), r"32.*40|40.*32", sides),
        ((0, good, outside), (last, np.zeros(5)), "names bytes 0 to 40, but the array spans bytes 0 to 32", sides),
        ((0, None), (last, good), "no array on rank 0", sides),
        ((0, good), "target", "'target' is 'target'; it must be", everyone),
        ((0, good), (99, good), "99", everyone),
        ((0, good), (last, np.broadcast_to(good, (1, 4))), "read-only", sides),
    ):
        if context.rank in hear:
            with pytest.raises(tasuki.Error, match=pattern):
                tasuki.Transfer(context, source, target)  # type: ignore[arg-type]
        else:
            tasuki.Transfer(context, source, target)  # type: ignore[arg-type]


def test_two_ranks_transfer_while_the_others_do_nothing(context):
    """The others do not even make it: they are at the barrier."""
    here, there = context.size - 2, context.size - 1
    if 0 <= here <= context.rank:
        data = tasuki.shared_array(context, (5, 7), "int32")  # local
        transfer = tasuki.Transfer(context, (here, data[:, 3]), (there, data[:, 1]))
        for turn in range(1, 4):
            data[...] = np.arange(35).reshape(5, 7) * turn if context.rank == here else -turn
            transfer.start()
            transfer.wait()
            if context.rank == there:
                np.testing.assert_array_equal(data[:, 1], np.arange(3, 35, 7) * turn)
                assert (np.delete(data, 1, axis=1) == -turn).all()
        transfer.free()
    context.barrier()


def test_subsets(context):
    members = [rank for rank in range(context.size) if rank % 2 == context.rank % 2][::-1]
    part = context.subset(members)
    assert (part.size, members[part.rank]) == (len(members), context.rank)
    assert part.deadline == context.deadline
    field = tasuki.Field(tasuki.Grid(part, (9, 5), periodic=True), copies=2)
    halo = tasuki.Halo(field)
    assert tasuki.verify(halo)
    whole = np.arange(45.0).reshape(9, 5)
    for turn in range(3):
        field.array[...] = -1
        field.owned[...] = whole[field.box] + turn
        with halo.overlap():
            pass
        around = np.ix_(*(np.arange(s.start - 1, s.stop + 1) % n for s, n in zip(field.box, whole.shape)))
        np.testing.assert_array_equal(field.array, whole[around] + turn)
    data = np.full(11, part.rank)
    broadcast = tasuki.Broadcast(part, 0, data)
    broadcast.start()
    broadcast.wait()
    assert (data == 0).all()
    inner = part.subset([part.rank])
    inner.barrier()
    inner.close()
    part.close()
    assert repr(part) == "<tasuki.Context, closed>"
    me = context.rank
    for ranks, pattern in (([], "is empty"), ([me, me], "twice"), ([me, -1], "names rank -1")):
        with pytest.raises(tasuki.Error, match=pattern):
            context.subset(ranks)
    with pytest.raises(TypeError):
        context.subset("all")
    context.barrier()


@pytest.mark.parametrize("options", [{}, {"trees": 2, "arity": 2, "chunk": 64}])
def test_broadcast(context, options):
    root = context.size - 1
    data = tasuki.shared_array(context, (40, 5), "int32")
    broadcast = tasuki.Broadcast(context, root, data, **options)
    assert tasuki.verify(broadcast)
    for turn in range(1, 4):
        data[...] = np.arange(200).reshape(40, 5) * turn if context.rank == root else -1
        broadcast.start()
        broadcast.wait()
        np.testing.assert_array_equal(data, np.arange(200).reshape(40, 5) * turn)
    with pytest.raises(tasuki.Error, match="root"):
        tasuki.Broadcast(context, 99, data)


def test_a_read_only_array_may_be_the_source(context):
    data = np.arange(6)
    data.flags.writeable = context.rank != 0
    if context.rank != 0:
        data[...] = 0
    broadcast = tasuki.Broadcast(context, 0, data)
    broadcast.start()
    broadcast.wait()
    np.testing.assert_array_equal(data, np.arange(6))


def test_shared_arrays(context):
    mine = tasuki.shared_array(context, (context.rank, 3), "complex64")
    assert mine.shape == (context.rank, 3) and mine.dtype == np.complex64 and not mine.any()
    for shape, dtype, pattern in (((-1,), "f8", "-1"), ((2**40, 2**40), "f8", "2\\^63"), ((1,), "nothing", "nothing")):
        with pytest.raises(tasuki.Error, match=pattern):
            tasuki.shared_array(context, shape, dtype)


@given(st.data())
def test_layouts_of_views(data):
    size = data.draw(st.integers(0, 40))
    _, view = draw_view(data, draw_shape(data, size), "int16")
    view[...] = np.arange(size).reshape(view.shape)
    layout = tasuki.Layout.of_array(view)
    assert layout.size == view.nbytes
    assert layout.pack(view) == view.tobytes()
    layout.unpack(bytes(view.nbytes), view)
    assert not view.any()


def test_layouts(context):
    number = tasuki.Layout.of("f4")
    face = tasuki.Layout.subarray((4, 5), (4, 1), (0, 2), number)
    column = tasuki.Layout.hvector(4, 1, 20, number)
    assert face != column and face == tasuki.Layout.hindexed([1] * 4, [8, 28, 48, 68], number)
    assert (face.size, face.extent, face.runs, face.pattern, face.overlaps) == (16, 80, 4, "stride", False)
    assert face.blocks == [(8, 4, [(4, 20)])] and "Layout" in repr(face)
    with pytest.raises(TypeError, match="unhashable"):
        hash(face)
    both = tasuki.Layout.structure([1, 2], [0, 8], [tasuki.Layout.bytes(4), number])
    assert both.size == 12 and both.true_upper_bound == 16
    assert tasuki.Layout.indexed([2, 1], [0, 4], number).size == 12
    with pytest.raises(tasuki.Error, match="-1"):
        tasuki.Layout.contiguous(-1, number)
    with pytest.raises(tasuki.Error, match="names bytes 8 to 72"):
        face.pack(np.zeros(3, "f4"))
    with pytest.raises(tasuki.Error, match="'packed' has 3 bytes; the layout has 16"):
        face.unpack(b"abc", np.zeros(20, "f4"))
    with pytest.raises(tasuki.Error, match="read-only"):
        column.unpack(bytes(16), bytes(80))


def test_contexts(context):
    other = tasuki.Context(context.handle)
    assert (other.rank, other.size) == (context.rank, context.size)
    assert f"{context.size} rank" in other.describe() and repr(other)
    other.deadline = 12.5
    assert other.deadline == 12.5
    with pytest.raises(tasuki.Error, match="'seconds' is -1"):
        other.deadline = -1
    other.barrier()
    field = tasuki.Field(tasuki.Grid(other, (8, 8)), name="u")
    halo = tasuki.Halo(field)
    seen = field.array if context.rank == 0 else None
    if context.rank == 0:  # on this rank alone: closing is local
        with pytest.raises(tasuki.Error, match="rank 0: the memory of field 'u' is still looked at by an array"):
            other.close()
    del seen
    other.close()
    for use in halo.start, other.describe, lambda: field.array, lambda: tasuki.Grid(other, (3, 3)):
        with pytest.raises(tasuki.Error, match="has been closed"):
            use()
    other.close()  # once more does nothing
    assert repr(other) == "<tasuki.Context, closed>" and re.fullmatch(
        "<tasuki operation 'halo u'( by .*)?, closed>", repr(halo)
    )
    assert repr(field).startswith("<tasuki.Field 'u' float64 (") and repr(field).endswith(", closed>")
    with pytest.raises(tasuki.Error, match="belongs to another context"):
        tasuki.Halo([tasuki.Field(tasuki.Grid(c, (8, 8)), name="v") for c in (context, tasuki.Context(context.handle))])
    for bad in (-77, 12345678, 2**70, 2**40, "world", 1.5, True):
        with pytest.raises(tasuki.Error, match="'comm' is"):
            tasuki.Context(bad)


def test_close_with_an_operation_that_keeps_its_fields(context):
    other = tasuki.Context(context.handle)
    grid = tasuki.Grid(other, (8, 8))
    halos = []
    for name in "uvw":
        field = tasuki.Field(grid, name=name, copies=2)
        field.array[...] = field.next[...] = 1
        halos.append(tasuki.Halo(field))
        del field
    wrapped = tasuki.Field(grid, memory=tasuki.Field(grid))
    freed = tasuki.Halo(tasuki.Field(grid))
    freed.free()
    other.close()
    assert (
        repr(wrapped).endswith(", closed>")
        and repr(grid).endswith(", closed>")
        and repr(halos[0]).endswith(", closed>")
    )


def test_mpi4py_communicators(context):
    mpi = pytest.importorskip("mpi4py.MPI")
    half = mpi.COMM_WORLD.Split(context.rank % 2)
    part = tasuki.Context(half)
    half.Free()
    assert part.size == (context.size + 1 - context.rank % 2) // 2
    field = tasuki.Field(tasuki.Grid(part, (8,), periodic=True))
    field.owned[...] = np.arange(8)[field.box]
    halo = tasuki.Halo(field)
    halo.start()
    halo.wait()
    assert field.array[0] == (field.box[0].start - 1) % 8
    with pytest.raises(tasuki.Error, match="no communicator"):
        tasuki.Context(mpi.COMM_NULL)
