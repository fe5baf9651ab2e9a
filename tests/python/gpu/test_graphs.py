"""Graphs: work that is captured once and launched often; a Fork's branch, in which other libraries work too."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from cells import after_exchange, numbers, with_shadow

import tasuki


@pytest.fixture
def grid(context):
    return tasuki.Grid(context, (24, 10), periodic=True)


def test_without_another_library(context, grid):
    field = tasuki.Field(grid, memory="device")
    halo = tasuki.Halo(field, blocks=2)
    fork = tasuki.Fork()
    stream = fork.branch(0)  # one that can be captured
    assert stream.__cuda_stream__() == (0, stream.ptr) and fork.branch(0).ptr == stream.ptr
    assert repr(stream) == f"<tasuki.Stream {stream.ptr:#x}>"
    graph = tasuki.Graph(lambda: halo.run(stream), stream)
    whole = numbers(grid.shape)
    for into in stream, 0, None, stream.ptr:
        field.upload(with_shadow(field, whole, -1), into)
        graph.launch(into)
        np.testing.assert_array_equal(field.download(into), after_exchange(field, whole))
        whole = whole[::-1].copy()
    context.barrier()


@pytest.mark.parametrize("graphs", [False, True])
def test_sides_ahead_in_a_branch(context, library, grid, graphs):
    """The sides and the exchange in a branch, the interior beside them: launched one by one, and replayed."""
    field = tasuki.Field(grid, copies=2, memory="device")
    halo = tasuki.Halo(field, corners=False, alternating=True)
    copies = [library.look(field.array), library.look(field.next)]
    stream = library.new_stream()
    fork = tasuki.Fork()
    whole = numbers(grid.shape)
    field.upload(with_shadow(field, whole, 0), 0)
    halo.run(0)
    tasuki.synchronize(context, 0)
    context.barrier()

    def difference(old, new, box):
        i, j = box
        above, below = old[i.start + 1 : i.stop + 1, j], old[i.start - 1 : i.stop - 1, j]
        library.xp.subtract(above, below, out=new[box])

    def iterate():
        old = copies[field.current]
        field.swap()
        new = copies[field.current]
        ahead = fork.branch(stream)
        with library.within(library.external(ahead)):
            for box in field.boundary(1):
                difference(old, new, box)
        halo.run(ahead)
        difference(old, new, field.interior(1))
        fork.join(stream)

    def twice():
        iterate()
        iterate()

    with library.within(stream):
        twice()  # loads the kernels, which cannot be captured
        if graphs:
            graph = tasuki.Graph(twice, stream)
            for _ in range(3):
                graph.launch(stream)
        else:
            for _ in range(3):
                twice()
    tasuki.synchronize(context, stream)
    for _ in range(8):
        whole = np.roll(whole, -1, 0) - np.roll(whole, 1, 0)
    np.testing.assert_array_equal(field.download(stream)[field.local_box], whole[field.box])
    context.barrier()


def test_exceptions_end_a_capture(context, grid):
    field = tasuki.Field(grid, memory="device")
    halo = tasuki.Halo(field)
    fork = tasuki.Fork()
    stream = fork.branch(0)
    whole = numbers(grid.shape)

    def broken():
        halo.run(stream)
        raise LookupError("no more of this")

    for _ in range(2):
        with pytest.raises(LookupError, match="no more of this"):
            tasuki.Graph(broken, stream)
        field.upload(with_shadow(field, whole, -1), stream)
        halo.run(stream)
        np.testing.assert_array_equal(field.download(stream), after_exchange(field, whole))
    context.barrier()


def test_wrong_uses(context, grid):
    field = tasuki.Field(grid, memory="device")
    fork = tasuki.Fork()
    stream = fork.branch(0)
    for default in 0, 1:
        with pytest.raises(tasuki.Error, match="Graph: argument 'stream' is the default stream"):
            tasuki.Graph(lambda: None, default)
    with pytest.raises(tasuki.Error, match="argument 'stream' is being captured already"):
        tasuki.Graph(lambda: tasuki.Graph(lambda: None, stream), stream)
    with pytest.raises(tasuki.Error, match="synchronize: the stream is being captured into a graph"):
        tasuki.Graph(lambda: field.download(stream), stream)
    graph = tasuki.Graph(lambda: None, stream)
    graph.launch(stream)
    for call in graph.launch, fork.branch, fork.join, lambda bad: tasuki.Graph(lambda: None, bad):
        with pytest.raises(tasuki.Error, match="argument 'stream' is 'text'; it must be"):
            call("text")
    field.upload(1, stream)
    assert (field.download(stream) == 1).all()


def test_an_object_with_its_graph_is_collected(context):
    fork = tasuki.Fork()
    stream = fork.branch(0)

    class Solver:
        def __init__(self):
            self.graph = tasuki.Graph(self.enqueue, stream)

        def enqueue(self):
            pass

    solver = Solver()
    solver.graph.launch(stream)
    gone = weakref.ref(solver)
    del solver
    gc.collect()
    assert gone() is None
    tasuki.synchronize(context, stream)
