"""Kernels of CuPy that communicate by themselves: operations, messages, puts, and launches that cannot be."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
from cells import after_exchange, numbers, with_shadow

import tasuki

SOURCE = r"""
#include <tasuki/kernel.cuh>

namespace device = tasuki::device;

// Adds one to every cell in every step, and spoils the shadow of what is shown next.
extern "C" __global__ void epochs(TASUKI_PARAMETER device::Handle halo, float* now, float* next, int rows, int columns,
                                  int stride, int width, int steps) {
  const auto grid = device::this_grid();
  const auto block = device::this_block();
  for (int step = 0; step < steps; ++step) {
    if (!(step % 2 ? device::run(halo, grid, step)
                   : device::start(halo, grid, step) && device::wait(halo, grid, step))) return;
    for (int i = block.block(); i < rows; i += block.blocks()) {
      for (int j = block.thread(); j < columns; j += block.threads()) {
        const bool own = i >= width && i < rows - width && j >= width && j < columns - width;
        next[i * stride + j] = own ? now[i * stride + j] + 1 : -7;
      }
    }
    float* const old = now;
    now = next;
    next = old;
  }
}
extern "C" __global__ void reduce(TASUKI_PARAMETER device::ReducingHandle sum, int times) {
  for (int n = 0; n < times; ++n)
    if (!device::run(sum, device::this_grid())) return;
}
extern "C" __global__ void ring(TASUKI_PARAMETER device::Messages m, device::Shape shape, int* mine, int* theirs,
                                int tag, int* good) {
  const auto block = device::this_block();
  const int next = (m.team.rank + 1) % m.team.ranks;
  const int before = (m.team.rank + m.team.ranks - 1) % m.team.ranks;
  device::Request send, receive;
  if (!device::irecv(m, block, before, theirs, shape, tag, receive)) return;
  if (!device::isend(m, block, next, mine, shape, tag, send)) return;
  if (!device::wait(m, block, receive) || !device::wait(m, block, send)) return;
  if (block.thread() == 0) *good = receive.tag;
}
extern "C" __global__ void put(TASUKI_PARAMETER device::Team team, int value) {
  const auto block = device::this_block();
  __shared__ int word;
  if (block.thread() == 0) word = value;
  const int next = (team.rank + 1) % team.ranks;
  const int before = (team.rank + team.ranks - 1) % team.ranks;
  if (!device::put_with_signal(team, block, next, 4, &word, sizeof word, 0, value)) return;
  device::wait_signal(team, block, before, 0, value);
}
// A block's number in a chain, in two copies that take turns: each step adds up what the blocks beside it had.
extern "C" __global__ void chain(TASUKI_PARAMETER device::Handle halo, device::Neighbours neighbours, long long* copies,
                                 int before, int steps) {
  const auto block = device::this_block();
  const int me = block.block();
  const int blocks = block.blocks();
  const device::Steps mine(neighbours);
  for (int n = before; n < before + steps; ++n) {
    if (!mine.wait(halo, n)) return;
    const long long* const now = copies + n % 2 * blocks;
    long long sum = 2 * now[me] + n;
    if (me > 0) sum += now[me - 1];
    if (me + 1 < blocks) sum += now[me + 1];
    if (block.thread() == 0) copies[(n + 1) % 2 * blocks + me] = sum % 1000003;
    mine.end(n + 1);
  }
}
extern "C" __global__ void wide(TASUKI_PARAMETER device::Team team) { device::barrier(team, device::this_grid()); }
"""


@pytest.fixture(scope="module")
def cupy(context):
    cupy = pytest.importorskip("cupy")
    cupy.cuda.Device(tasuki.use_gpu(context)).use()
    return cupy


@pytest.fixture(scope="module")
def kernels(cupy):
    module = cupy.RawModule(code=SOURCE, options=("--std=c++20", f"-I{tasuki.get_include()}"))
    return {name: module.get_function(name) for name in ("epochs", "reduce", "ring", "put", "chain", "wide")}


@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (5, 96), (16, 256)])
def test_halos(context, cupy, kernels, blocks, threads):
    """An epoch of the host after each launch."""
    grid = tasuki.Grid(context, (19, 23), periodic=True)
    field = tasuki.Field(grid, "float32", shadow=2, copies=2, memory="device")
    halo = tasuki.Halo(field, alternating=True)
    assert tasuki.verify(halo)
    copies = [cupy.asarray(field.array), cupy.asarray(field.next)]
    rows, columns = field.array.shape
    whole = numbers(grid.shape, "float32")
    for launch, steps in enumerate((3, 1, 4)):
        whole = whole + 100 * launch
        field.upload(with_shadow(field, whole, -7))
        numbers_of = (np.int32(n) for n in (rows, columns, field.array.strides[0] // 4, 2, steps))
        handle = halo.device(blocks=blocks, threads=threads)
        arguments = (handle, copies[field.current], copies[1 - field.current], *numbers_of)
        with cupy.cuda.Stream(non_blocking=True):
            running = tasuki.launch_resident(context, kernels["epochs"], arguments, blocks=blocks, threads=threads)
        running.wait()
        running.wait()  # at once
        for _ in range(steps):
            field.swap()
        whole = whole + steps
        np.testing.assert_array_equal(field.download(), with_shadow(field, whole, -7))
        np.testing.assert_array_equal(cupy.asnumpy(copies[1 - field.current]), after_exchange(field, whole - 1))
        halo.run(0)
        np.testing.assert_array_equal(field.download(), after_exchange(field, whole))
        field.swap()
    context.barrier()


def test_reductions(context, cupy, kernels):
    mine, total = cupy.zeros(1001), cupy.zeros(1001)
    operation = tasuki.Allreduce(context, mine, total)
    assert tasuki.verify(operation)
    handle = operation.device_reducing(blocks=2, threads=128)
    for step in range(3):
        mine[...] = cupy.arange(1001) * (context.rank + 1) + step
        cupy.cuda.get_current_stream().synchronize()
        arguments = (handle, np.int32(2))
        tasuki.launch_resident(context, kernels["reduce"], arguments, blocks=2, threads=128).wait()
        ranks = context.size
        expected = np.arange(1001) * (ranks * (ranks + 1) / 2) + step * ranks
        np.testing.assert_array_equal(cupy.asnumpy(total), expected)
    context.barrier()


@pytest.mark.parametrize("path", ["auto", "mpi"])
def test_messages(context, cupy, kernels, path):
    messages = tasuki.Messages(context, path=path, eager=64)
    for step, count in enumerate((3, 31, 257)):
        layout = tasuki.Layout.vector(count, 2, 3, tasuki.Layout.of("i4"))
        shape = tasuki.MessageLayout(context, layout)
        mine = cupy.arange(3 * count, dtype="i4") + 1000 * context.rank + step
        theirs = cupy.full(3 * count, -1, "i4")
        good = cupy.zeros(1, "i4")
        arguments = (messages.device(), shape.device(), mine, theirs, np.int32(step + 5), good)
        tasuki.launch_resident(context, kernels["ring"], arguments, threads=96).wait()
        sent = np.arange(3 * count, dtype="i4") + 1000 * ((context.rank - 1) % context.size) + step
        sent[2::3] = -1
        assert int(good[0]) == step + 5
        np.testing.assert_array_equal(cupy.asnumpy(theirs), sent)
    messages.check()
    context.barrier()


def test_windows(context, cupy, kernels):
    team = tasuki.KernelTeam(context, window=24)
    window = cupy.asarray(team.window)
    assert isinstance(team.window, tasuki.DeviceArray) and window.shape == (24,) and window.dtype == "u1"
    for value in range(1, 4):
        tasuki.launch_resident(context, kernels["put"], (team.device(), np.int32(value)), threads=32).wait()
        assert int(window[4:8].view("i4")[0]) == value
        context.barrier()


@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (7, 96), (40, 256)])
def test_blocks_that_wait_for_their_neighbours(context, cupy, kernels, blocks, threads):
    field = tasuki.Field(tasuki.Grid(context, (6, 5), periodic=True), "float32", memory="device")
    halo = tasuki.Halo(field)
    assert tasuki.verify(halo)
    handle = halo.device(threads=threads)
    lists = [[b for b in (block - 1, block + 1) if 0 <= b < blocks] for block in range(blocks)]
    neighbours = tasuki.BlockNeighbours(context, lists).device()
    expected = np.arange(blocks, dtype="i8") + 10 * context.rank
    copies = cupy.zeros((2, blocks), "i8")
    copies[0] = cupy.asarray(expected)
    before = 0
    for steps in (7, 1, 300):
        arguments = (handle, neighbours, copies, np.int32(before), np.int32(steps))
        cupy.cuda.get_current_stream().synchronize()
        tasuki.launch_resident(context, kernels["chain"], arguments, blocks=blocks, threads=threads).wait()
        for step in range(before, before + steps):
            padded = np.pad(expected, 1)
            expected = (2 * expected + step + padded[2:] + padded[:-2]) % 1000003
        before += steps
        np.testing.assert_array_equal(cupy.asnumpy(copies[before % 2]), expected)
    with pytest.raises(tasuki.Error, match=f"has the neighbours of {blocks} blocks, but the launch has {blocks + 1}"):
        tasuki.launch_resident(context, kernels["chain"], arguments, blocks=blocks + 1, threads=threads)
    context.barrier()


def test_arguments_are_kept_alive(context, cupy, kernels):
    team = tasuki.KernelTeam(context, window=8)
    running = tasuki.launch_resident(context, kernels["put"], (team.device(), np.int32(9)), threads=32)
    window = cupy.asarray(team.window)
    del team
    gc.collect()
    running.wait()
    assert int(window[4:8].view("i4")[0]) == 9
    context.barrier()


def test_launches_of_cupys_own(context, cupy, kernels):
    """`value` is a struct by value."""
    team = tasuki.KernelTeam(context, window=8)
    argument = team.device()
    kernels["put"]((1,), (32,), (argument.value, np.int32(3)))
    tasuki.synchronize(context)
    assert int(cupy.asarray(team.window)[4:8].view("i4")[0]) == 3
    context.barrier()


def test_launches_that_cannot_be(context, cupy, kernels):
    team = tasuki.KernelTeam(context)
    field = tasuki.Field(tasuki.Grid(context, (19, 23), periodic=True), "float32", copies=2, memory="device")
    halo = tasuki.Halo(field)
    array = cupy.asarray(field.array)
    rest = (array, array, *(np.int32(1) for _ in range(5)))

    def launch(name, *arguments, **options):
        tasuki.launch_resident(context, kernels[name], arguments, **options).wait()

    call = f"rank {context.rank}: launch_resident: "
    for options, text in [
        ({"blocks": 1_000_000, "threads": 1024}, r"do not fit on GPU .* what runs out is (threads|registers) \("),
        ({"blocks": 1_000_000, "threads": 32}, r"do not fit on GPU .* would, .* on each of .* multiprocessors"),
        ({"blocks": 1_000_000, "shared_bytes": 200 << 10}, r"what runs out is shared memory \("),
        ({"blocks": 0}, "argument 'blocks' is 0"),
        ({"threads": 1025}, "argument 'threads' is 1025"),
        ({"threads": 0}, "argument 'threads' is 0"),
        ({"shared_bytes": 1 << 30}, "argument 'shared_bytes' is 1073741824"),
    ]:
        with pytest.raises(tasuki.Error, match=call + ".*" + text):
            launch("wide", team.device(), **options)
    handle = halo.device(blocks=3, threads=64)
    with pytest.raises(tasuki.Error, match="for a group of 3 blocks of 64 threads, but the launch has 2"):
        launch("epochs", handle, *rest, blocks=2, threads=64)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            with pytest.raises(tasuki.Error, match="the stream is being captured"):
                launch("wide", team.device())
        finally:
            stream.end_capture()
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    try:
        with pytest.raises(tasuki.Error, match="CUDA_LAUNCH_BLOCKING=1"):
            launch("wide", team.device())
    finally:
        del os.environ["CUDA_LAUNCH_BLOCKING"]
    with pytest.raises(tasuki.Error, match="it must be a cupy.RawKernel"):
        tasuki.launch_resident(context, cupy.ElementwiseKernel("T a", "T b", "b = a"), (team.device(),))
    launch("wide", team.device(), blocks=4, threads=64)  # all is well
    halo.free()
    with pytest.raises(tasuki.Error, match="its operation was freed"):
        launch("epochs", handle, *rest, blocks=3, threads=64)
    context.barrier()
