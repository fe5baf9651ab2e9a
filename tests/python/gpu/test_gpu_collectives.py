"""Collectives on GPU memory: barriers of streams, alone and in graphs; operators of the user's own are refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tasuki


def test_barrier_of_streams(context, library):
    barrier = tasuki.Barrier(context, where="device")
    assert tasuki.verify(barrier)
    stream = library.new_stream()
    for _ in range(3):
        barrier.run(stream)
    tasuki.synchronize(context, stream)
    total = library.array(np.zeros(1000))
    mine = library.array(np.arange(1000.0))
    allreduce = tasuki.Allreduce(context, mine, total)

    def both():
        barrier.run(stream)
        allreduce.run(stream)

    graph = tasuki.Graph(both, stream)
    for turn in range(3):
        mine[:] = library.array(np.arange(1000.0) + turn)
        library.synchronize()
        graph.launch(stream)
        tasuki.synchronize(context, stream)
        np.testing.assert_array_equal(library.to_numpy(total), (np.arange(1000.0) + turn) * context.size)


def test_operators_of_the_users_own_are_for_host_memory(context, library):
    def larger(into, other):
        into[:] = np.maximum(into, other)

    a, b = library.array(np.ones(8)), library.array(np.zeros(8))
    with pytest.raises(tasuki.Error, match=re.escape("larger")):
        tasuki.Allreduce(context, a, b, op=larger)
    # the context is as it was
    operation = tasuki.Allreduce(context, a, b)
    operation.run(0)
    tasuki.synchronize(context, 0)
    np.testing.assert_array_equal(library.to_numpy(b), np.ones(8) * context.size)
