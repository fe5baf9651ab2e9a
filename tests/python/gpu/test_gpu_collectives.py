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


def test_contexts_use_nccl_one_after_another(context, library):
    """A later context of the same ranks takes the communicator that an earlier one has left."""
    for turn in range(4):
        subset = context.subset(range(context.size))
        mine = library.array(np.arange(100.0) + 1000 * context.rank + turn)
        whole = library.array(np.zeros(100 * context.size))
        try:
            allgather = tasuki.Allgather(subset, mine, whole, path="nccl")
        except tasuki.NotPossibleError as error:
            pytest.skip(str(error))  # ranks share a GPU
        for _ in range(3):
            allgather.run(0)
            tasuki.synchronize(subset, 0)
        expected = np.concatenate([np.arange(100.0) + 1000 * rank + turn for rank in range(context.size)])
        np.testing.assert_array_equal(library.to_numpy(whole), expected)
        del allgather
        subset.close()


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


class Described:
    """Elements of a struct in memory of another array, as __cuda_array_interface__ describes them."""

    def __init__(self, array, dtype, count):
        self.array = array
        data = array.__cuda_array_interface__["data"][0] if count else 4096
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": dtype.str,
            "descr": dtype.descr,
            "data": (data, False),
            "strides": None,
            "version": 3,
        }


@pytest.mark.parametrize("value", ["f8", "i8", "f4"])
def test_padded_pairs_of_a_described_struct(context, library, value):
    dtype = np.dtype([("v", value), ("i", "i4")], align=True)
    mine = np.zeros(9, dtype)
    mine["v"] = (np.arange(9) * 7 + context.rank * 3) % 5
    mine["i"] = context.rank
    source, target = (library.array(np.frombuffer(b, np.uint8)) for b in (mine.tobytes(), np.zeros(9, dtype).tobytes()))
    if not hasattr(source, "__cuda_array_interface__"):
        pytest.skip("this library does not describe its arrays so")
    operation = tasuki.Allreduce(context, Described(source, dtype, 9), Described(target, dtype, 9), op="minloc")
    operation.run(0)
    tasuki.synchronize(context, 0)
    got = np.frombuffer(np.asarray(library.to_numpy(target)).tobytes(), dtype)
    ranks = np.array([(np.arange(9) * 7 + rank * 3) % 5 for rank in range(context.size)])
    np.testing.assert_array_equal(got["v"], ranks.min(0))
    np.testing.assert_array_equal(got["i"], ranks.argmin(0))


def test_arrays_without_elements_may_begin_anywhere(context, library):
    """Where an allocation ends, say: the address does not tell that the array is on a GPU."""
    array = library.array(np.zeros(8))
    if not hasattr(array, "__cuda_array_interface__"):
        pytest.skip("made of the address of another array")
    stream = library.new_stream()
    nothing = Described(array, np.dtype("V24"), 0)
    for source in tasuki.in_place, Described(array, np.dtype("V24"), 0):
        operation = tasuki.Allgather(context, source, nothing)
        assert tasuki.verify(operation)
        for _ in range(2):
            operation.run(stream)
            operation.start(stream)
            operation.wait(stream)
        operation.run()
        tasuki.synchronize(context, stream)
