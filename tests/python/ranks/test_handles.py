"""Handles and messages for kernels, made in Python: what they hold is run by the threads of a small library in C++."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tasuki

SOURCE = r"""
#include <cstring>
#include <tasuki/kernel.cuh>

namespace device = tasuki::device;

template <class T>
T from(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

extern "C" {
void sizes(unsigned long long* out) {
  out[0] = sizeof(device::Handle);
  out[1] = sizeof(device::ReducingHandle);
  out[2] = sizeof(device::Team);
  out[3] = sizeof(device::Messages);
  out[4] = sizeof(device::Shape);
  out[5] = sizeof(device::Neighbours);
}
int run(const void* handle, int swaps) {
  return device::run(from<device::Handle>(handle), device::this_grid(), swaps);
}
int start_wait(const void* handle, int swaps) {
  const auto halo = from<device::Handle>(handle);
  return device::start(halo, device::this_block(), swaps) && device::wait(halo, device::this_block(), swaps);
}
int reduce(const void* handle) { return device::run(from<device::ReducingHandle>(handle), device::this_grid()); }
// What lies in a layout goes around the ring, two messages at a time, the second one first.
int ring(const void* messages, const void* shape, void* mine, void* theirs, int tag) {
  const auto m = from<device::Messages>(messages);
  const auto s = from<device::Shape>(shape);
  const auto group = device::this_block();
  const int next = (m.team.rank + 1) % m.team.ranks;
  const int before = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  device::Request sends[2], receives[2];
  int number = 0;
  return device::irecv(m, group, before, theirs, s, tag + 1, receives[0]) &&
         device::irecv(m, group, before, &number, sizeof number, tag, receives[1]) &&
         device::isend(m, group, next, &tag, sizeof tag, tag, sends[0]) &&
         device::isend(m, group, next, mine, s, tag + 1, sends[1]) && device::wait(m, group, receives[0]) &&
         device::wait(m, group, receives[1]) && device::wait(m, group, sends[0]) && device::wait(m, group, sends[1]) &&
         number == tag;
}
int put(const void* team, int value) {
  const auto t = from<device::Team>(team);
  return device::put_with_signal(t, device::this_block(), (t.rank + 1) % t.ranks, 4, &value, sizeof value, 0, value) &&
         device::wait_signal(t, device::this_block(), (t.rank + t.ranks - 1) % t.ranks, 0, value);
}
// One block of a chain, in two copies that take turns: each step adds up what the blocks beside it had.
int chain(const void* handle, const void* neighbours, int block, int blocks, long long* copies, int before, int steps) {
  device::detail::cpu_thread.block = block;
  device::detail::cpu_thread.blocks = blocks;
  const auto halo = from<device::Handle>(handle);
  const device::Steps mine(from<device::Neighbours>(neighbours));
  for (int n = before; n < before + steps; ++n) {
    if (!mine.wait(halo, n)) return 0;
    const long long* const now = copies + n % 2 * blocks;
    long long sum = 2 * now[block] + n;
    if (block > 0) sum += now[block - 1];
    if (block + 1 < blocks) sum += now[block + 1];
    copies[(n + 1) % 2 * blocks + block] = sum % 1000003;
    mine.end(n + 1);
  }
  return 1;
}
}
"""


@pytest.fixture(scope="module")
def kernels(context):
    """The library, which rank 0 compiles; its calls give the interpreter's lock up."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    name = np.zeros(4096, "u1")
    broadcast = tasuki.Broadcast(context, 0, name)
    folder = ""
    if context.rank == 0 and compiler:
        folder = tempfile.mkdtemp(prefix="tasuki-kernels-")
        source = Path(folder, "kernels.cpp")
        source.write_text(SOURCE)
        flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", f"-I{tasuki.get_include()}"]
        made = subprocess.run(
            [compiler, *flags, str(source), "-o", f"{folder}/kernels.so"], capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, made.stderr
        name[: len(folder)] = np.frombuffer(folder.encode(), "u1")
    broadcast.start()
    broadcast.wait()
    if not name.any():
        pytest.skip("there is no C++ compiler")
    library = ctypes.CDLL(name[name != 0].tobytes().decode() + "/kernels.so")
    context.barrier()
    if folder:
        shutil.rmtree(folder)
    return library


def bytes_of(argument: tasuki.KernelArgument):
    """As a kernel gets it: from the array that CuPy takes."""
    value = argument.value
    assert bytes(memoryview(argument)) == value.tobytes()
    assert value.shape == (1,) and value.nbytes == argument.nbytes == value.itemsize and not value.flags.writeable
    return ctypes.c_char_p(value.tobytes())


def test_sizes_are_those_of_kernels(context, kernels):
    sizes = (ctypes.c_ulonglong * 6)()
    kernels.sizes(sizes)
    halo = tasuki.Halo(tasuki.Field(tasuki.Grid(context, (7,)), "i4"))
    total = tasuki.Allreduce(context, tasuki.in_place, np.zeros(3))
    messages = tasuki.Messages(context)
    team = tasuki.KernelTeam(context)
    layout = tasuki.MessageLayout(context, tasuki.Layout.bytes(12))
    neighbours = tasuki.BlockNeighbours(context, [[1], [0], []])
    made = [halo.device(), total.device_reducing(), team.device(), messages.device(), layout.device()]
    made.append(neighbours.device())
    assert [one.nbytes for one in made] == list(sizes)
    assert [one.kind for one in made] == ["Handle", "ReducingHandle", "Team", "Messages", "Shape", "Neighbours"]
    assert repr(made[0]) == "<tasuki.KernelArgument Handle of halo field>"
    assert tasuki.verify(halo) and tasuki.verify(total)


@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 11)),
    dtype=st.sampled_from(["u1", "i2", "f4", "c16"]),
    width=st.integers(1, 3),
    corners=st.booleans(),
)
def test_halos_by_kernels_and_by_the_host_in_turns(context, kernels, shape, dtype, width, corners):
    grid = tasuki.Grid(context, shape, periodic=True)
    field = tasuki.Field(grid, dtype, shadow=width)
    twin = tasuki.Field(grid, dtype, shadow=width)
    halo = tasuki.Halo(field, corners=corners)
    expected = tasuki.Halo(twin, corners=corners)
    assert tasuki.verify(halo) and tasuki.verify(expected)
    handle = halo.device()
    random = np.random.default_rng(context.rank)
    for turn in range(4):
        field.array[...] = twin.array[...] = random.integers(0, 100, field.array.shape)
        if turn == 2:
            halo.run()
        else:
            assert (kernels.run if turn % 2 else kernels.start_wait)(bytes_of(handle), 0) == 1
        expected.run()
        np.testing.assert_array_equal(field.array, twin.array)
    context.barrier()


def test_two_copies(context, kernels):
    """A kernel swaps pointers; the handle knows the copy that is shown when it is made."""
    field = tasuki.Field(tasuki.Grid(context, (5, 6), periodic=True), "i8", copies=2)
    halo = tasuki.Halo(field, alternating=True)
    assert tasuki.verify(halo)
    copies = [field.array, field.next]
    for launch in range(3):
        handle = halo.device()
        for step in range(3):
            now = copies[(field.current + step) % 2]
            # Its shadow is not this rank's to write: a neighbour may have put its cells there already.
            now[1:-1, 1:-1] = np.arange(30).reshape(5, 6)[field.box] + 100 * launch + step
            assert kernels.run(bytes_of(handle), step) == 1
            whole = np.pad(np.arange(30).reshape(5, 6) + 100 * launch + step, 1, mode="wrap")
            i, j = field.box
            np.testing.assert_array_equal(now, whole[i.start : i.stop + 2, j.start : j.stop + 2])
        for _ in range(3):
            field.swap()
    context.barrier()


def test_reductions(context, kernels):
    mine, total = np.zeros(5), np.zeros(5)
    operation = tasuki.Allreduce(context, mine, total)
    assert tasuki.verify(operation)
    if context.size > 1:  # one rank alone only copies
        with pytest.raises(tasuki.Error, match="it combines elements; call device_reducing"):
            operation.device()
    handle = operation.device_reducing()
    for step in range(3):
        mine[...] = np.arange(5) + step + context.rank
        assert kernels.reduce(bytes_of(handle)) == 1
        ranks = context.size
        np.testing.assert_array_equal(total, ranks * (np.arange(5) + step) + ranks * (ranks - 1) / 2)
    context.barrier()


def test_messages_with_layouts(context, kernels):
    messages = tasuki.Messages(context, window=64, depth=3)
    layout = tasuki.Layout.vector(5, 3, 7, tasuki.Layout.of("i4"))
    shape = tasuki.MessageLayout(context, layout).device()
    handle = messages.device()
    for step in range(4):
        mine = np.arange(31, dtype="i4") + 1000 * context.rank + 100 * step
        theirs = np.full(31, -1, "i4")
        pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (mine, theirs))
        assert kernels.ring(bytes_of(handle), bytes_of(shape), *pointers, 10 * step + 3) == 1
        before = (context.rank - 1) % context.size
        sent = np.arange(31, dtype="i4") + 1000 * before + 100 * step
        expected = np.full(31, -1, "i4")
        for block in range(5):
            expected[7 * block : 7 * block + 3] = sent[7 * block : 7 * block + 3]
        np.testing.assert_array_equal(theirs, expected)
    messages.check()
    context.barrier()


def test_windows(context, kernels):
    team = tasuki.KernelTeam(context, window=24)
    window = team.window
    assert isinstance(window, np.ndarray) and window.shape == (24,) and not window.any()
    context.barrier()  # all have looked
    for value in range(1, 4):
        assert kernels.put(bytes_of(team.device()), value) == 1
        assert window[4:8].view("i4")[0] == value
        context.barrier()


def test_cells_of_barrier_free_blocks(context):
    """What the core makes of the boxes and cuts that Python gives."""
    grid = tasuki.Grid(context, (4 * context.size, 6), split=(context.size, 1), periodic=True)
    field = tasuki.Field(grid, "f4", copies=2)
    halo = tasuki.Halo(field, alternating=True, cuts=[None, [3]])
    assert tasuki.verify(halo)
    assert halo.device_group == ""
    rows = field.box[0]
    left, right = (rows, np.s_[0:3]), (rows, slice(np.int64(3), 6, 1))
    handle = halo.device(blocks=2, cells=[[left], [right]])
    assert handle.kind == "Handle"
    assert halo.device_group.startswith("2 blocks of 1 threads, ")
    assert ("barrier-free" in halo.device_group) == (context.size == 1)  # between hosts there are no LL lines
    halo.device(blocks=2)
    assert halo.device_group == "2 blocks of 1 threads, with group barriers: the group has no cells"
    mistakes: list[tuple[Any, str]] = [
        (3, r"argument 'cells' is 3; it must be a list for each block"),
        ([3], r"argument 'cells'\[0\] is 3"),
        ([[left], [3]], r"argument 'cells'\[1\] is \[3\]"),
        ([[(rows, slice(None))], []], r"argument 'cells'\[0\] is .*slices of global indices"),
        ([[(rows, slice(0, 6, 2))], []], r"argument 'cells'\[0\]"),
        ([], "argument 'cells' is empty; it must have a list for each block"),
        ([[left], [left]], "have cells in common"),
        ([[left]], "argument 'cells' is of 1 blocks; the group has 2"),
        ([[rows], [right]], "a box of block 0 has 1 dimensions; the grid has 2"),
    ]
    for cells, complaint in mistakes:
        with pytest.raises(tasuki.Error, match=complaint):
            halo.device(blocks=2, cells=cells)
    good: list[list[Any]] = [[left], [right]]
    last = context.rank == context.size - 1
    of_one_rank: list[Any] = [[], 3]
    for wrong in of_one_rank:  # is an error of all
        with pytest.raises(
            tasuki.Error, match=rf"device with argument 'cells': rank {context.size - 1}: argument 'cells'"
        ):
            halo.device(blocks=2, cells=wrong if last else good)
    halo.device(blocks=2, cells=good)
    if last:
        halo.device(blocks=2, cells=good)  # the same handle, so that no other rank is needed
    context.barrier()
    with pytest.raises(tasuki.Error, match=r"option 'cuts' is 4,2 in dimension 1; it must be ascending"):
        tasuki.Halo(field, cuts=[None, [4, 2]])


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_blocks_that_wait_for_their_neighbours(context, kernels, blocks):
    """Blocks are threads of Python's."""
    halo = tasuki.Halo(tasuki.Field(tasuki.Grid(context, (6,), periodic=True), "i4"))
    assert tasuki.verify(halo)
    lists = [[np.int64(b) for b in (block + 1, block - 1) if 0 <= b < blocks] for block in range(blocks)]
    neighbours = tasuki.BlockNeighbours(context, tuple(lists)).device()
    gc.collect()
    handle = halo.device()
    copies = np.zeros((2, blocks), "i8")
    copies[0] = np.arange(blocks) + 10 * context.rank
    expected = copies[0].copy()
    before = 0
    for steps in (7, 1, 30):
        arguments = (copies.ctypes.data_as(ctypes.c_void_p), before, steps)
        with ThreadPoolExecutor(blocks) as pool:
            ended = pool.map(
                lambda block, rest=arguments: kernels.chain(
                    bytes_of(handle), bytes_of(neighbours), block, blocks, *rest
                ),
                range(blocks),
            )
            assert list(ended) == [1] * blocks
        for step in range(before, before + steps):
            padded = np.pad(expected, 1)
            expected = (2 * expected + step + padded[2:] + padded[:-2]) % 1000003
        before += steps
        np.testing.assert_array_equal(copies[before % 2], expected)
    context.barrier()


def test_neighbours_that_cannot_be(context):
    start = f"^rank {context.rank}: BlockNeighbours: argument 'of'"
    for of, text in (
        ([], " has 0 lists"),
        ([[1], []], ": the list of block 0 names block 1, whose list does not name block 0"),
        ([[0]], ": the list of block 0 names the block itself"),
        ([[1, 1], [0]], ": the list of block 0 names block 1 twice"),
        ([[2], [0]], ": the list of block 0 names block 2; blocks are numbered from 0 to 1"),
        ([[1], [0.5]], r"\[1\] is \[0.5\]; it must be a list for each block"),
        ([[1], [True]], r"\[1\] is \[True\]; it must be a list"),
        ([[1], 0], r"\[1\] is 0; it must be a list"),
        (7, " is 7; it must be a list"),
    ):
        with pytest.raises(tasuki.Error, match=start + text):
            tasuki.BlockNeighbours(context, of)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="argument"):
        tasuki.BlockNeighbours(context)  # type: ignore[call-arg]
    context.barrier()


def test_they_keep_alive_what_they_came_from(context, kernels):
    field = tasuki.Field(tasuki.Grid(context, (3 * context.size,), periodic=True), "i4")
    array = field.array
    handle = tasuki.Halo(field).device()
    shape = tasuki.MessageLayout(context, tasuki.Layout.hindexed([2, 3], [0, 16], tasuki.Layout.bytes(1))).device()
    messages = tasuki.Messages(context).device()
    value = messages.value
    del field, messages
    gc.collect()
    array[...] = context.rank
    assert kernels.run(bytes_of(handle), 0) == 1
    assert array[0] == (context.rank - 1) % context.size
    there = np.zeros(19, "u1")
    here = np.arange(19, dtype="u1") + context.rank
    pointers = (one.ctypes.data_as(ctypes.c_void_p) for one in (here, there))
    assert kernels.ring(ctypes.c_char_p(value.tobytes()), bytes_of(shape), *pointers, 5) == 1
    assert there[17] == 17 + (context.rank - 1) % context.size
    context.barrier()


def test_handles_that_are_of_no_use(context, kernels):
    field = tasuki.Field(tasuki.Grid(context, (6,), periodic=True), "i4")
    halo = tasuki.Halo(field)
    one = halo.device()
    two = halo.device(blocks=2)
    with pytest.raises(tasuki.Error, match="KernelArgument: an argument is a handle that is not valid"):
        bytes_of(one)
    assert two.value.nbytes == one.nbytes
    halo.start()
    with pytest.raises(tasuki.Error, match="active"):
        halo.device()
    halo.wait()
    slips: list[tuple[dict[str, Any], str]] = [
        ({"blocks": 0}, "'blocks' is 0"),
        ({"cpu_threads": 33}, "'cpu_threads' is 33"),
    ]
    for wrong, text in slips:
        with pytest.raises(tasuki.Error, match=text):
            halo.device(**wrong)
    with pytest.raises(TypeError, match="threds"):
        halo.device(threds=3)  # type: ignore[call-arg]
    halo.free()
    with pytest.raises(tasuki.Error, match="its operation was freed"):
        bytes_of(two)
    with pytest.raises(BufferError, match="its operation was freed"):
        memoryview(two)
    with pytest.raises(tasuki.Error, match="device after free"):
        halo.device()
    context.barrier()


class NoKernel:
    """What looks like a kernel of CuPy's as far as can be seen without it."""

    __module__ = "cupy._core.raw"
    num_regs = 8


def test_launches_that_cannot_be(context):
    halo = tasuki.Halo(tasuki.Field(tasuki.Grid(context, (6,), periodic=True), "i4"))
    with pytest.raises(tasuki.Error, match="'kernel' is a str; it must be a cupy.RawKernel"):
        tasuki.launch_resident(context, "heat", ())
    with pytest.raises(tasuki.Error, match="launch_resident: the context uses no GPU; call use_gpu on all ranks first"):
        tasuki.launch_resident(context, NoKernel(), (halo.device(),))
    context.barrier()


def test_options_that_cannot_be(context):
    with pytest.raises(tasuki.Error, match="option 'depth' is 0"):
        tasuki.Messages(context, depth=0)
    with pytest.raises(tasuki.Error, match="window"):
        tasuki.KernelTeam(context, window=-1)
    if context.size > 1:
        with pytest.raises(tasuki.Error, match="signals"):
            tasuki.KernelTeam(context, signals=3 + context.rank)
