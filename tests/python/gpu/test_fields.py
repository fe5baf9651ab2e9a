"""Fields on GPUs and their halos, without any other library than NumPy."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from cells import after_exchange, numbers, with_shadow

import tasuki


def run(halo):
    halo.run()


def start_and_wait(halo):
    halo.start()
    halo.wait()


def overlap(halo):
    with halo.overlap():
        pass


def by_address(halo):
    halo.run(0)


def test_a_field_on_the_gpu(context):
    grid = tasuki.Grid(context, (12, 8))
    field = tasuki.Field(grid, "float32", memory="device", copies=2, pad=3, name="u")
    gpu = tasuki.use_gpu(context)
    assert field.memory == "device" and field.__dlpack_device__() == (2, gpu)
    array = field.array
    assert isinstance(array, tasuki.DeviceArray) and (array.shape, array.gpu) == (field.shape, gpu)
    assert array.dtype == np.float32 and array.strides == (4 * (field.shape[1] + 3), 4)
    seen = field.__cuda_array_interface__
    assert seen == array.__cuda_array_interface__
    assert seen["version"] == 3 and seen["stream"] is None and not seen["data"][1] and seen["typestr"] == "<f4"
    assert seen["shape"] == field.shape and seen["strides"] == array.strides
    owned = field.owned.__cuda_array_interface__
    assert owned["data"][0] == seen["data"][0] + array.strides[0] + 4
    assert owned["shape"] == tuple(s.stop - s.start for s in field.box)
    assert not field.download().any()
    before = field.array
    field.swap()
    assert field.next is before and field.array.__cuda_array_interface__["data"] != seen["data"]
    for look in np.asarray, memoryview:
        with pytest.raises((TypeError, BufferError), match="download"):
            look(field)
    with pytest.raises(tasuki.Error, match="still looked at by an array"):
        field.free()
    del before, array
    field.free()


def test_upload_and_download(context):
    grid = tasuki.Grid(context, (12, 8))
    field = tasuki.Field(grid, "int16", memory="device", copies=2, pad=1)
    values = numbers(field.shape, "int16")
    field.upload(values)
    np.testing.assert_array_equal(field.download(), values)
    field.swap()
    assert not field.download().any()
    field.upload(7)
    assert (field.download() == 7).all()
    with pytest.raises(tasuki.Error, match="'values' does not fit .*could not broadcast"):
        field.upload(np.zeros((1, 2, 3), "int16"))


@pytest.mark.parametrize("drive", [run, start_and_wait, overlap, by_address])
@pytest.mark.parametrize(
    ("shape", "shadow", "dtype"),
    [
        ((64,), ((3, 1),), "float64"),
        ((21, 34), 2, "float32"),
        ((16, 9, 10), ((1, 1), (2, 0), (3, 1)), "complex64"),
        ((8, 8), 1, "uint8"),
        ((8, 9), 1, [("a", "i4"), ("b", "f8")]),
    ],
)
def test_halos_fill_shadows(context, shape, shadow, dtype, drive):
    grid = tasuki.Grid(context, shape, periodic=True)
    field = tasuki.Field(grid, dtype, shadow=shadow, pad=1, memory="device")
    if isinstance(dtype, list):
        whole = np.zeros(shape, dtype)
        whole["a"], whole["b"] = numbers(shape), -numbers(shape)
    else:
        whole = numbers(shape, dtype)
    halo = tasuki.Halo(field)
    assert tasuki.verify(halo)
    for _ in range(3):
        field.upload(with_shadow(field, whole, np.zeros((), dtype)))
        drive(halo)
        np.testing.assert_array_equal(field.download(), after_exchange(field, whole))
        whole = whole[::-1].copy()


def test_alternating_pair(context):
    grid = tasuki.Grid(context, (24, 13), periodic=True)
    field = tasuki.Field(grid, copies=2, memory="device")
    halo = tasuki.Halo(field, alternating=True)
    whole = numbers((24, 13))
    for _ in range(2):
        field.upload(with_shadow(field, whole, -1))
        field.swap()
    for _ in range(5):
        halo.run()
        np.testing.assert_array_equal(field.download(), after_exchange(field, whole))
        field.swap()
    halo.run()
    with pytest.raises(tasuki.Error, match="swap exactly once"):
        halo.run()
    tasuki.synchronize(context)


def test_reverse_equals_the_host(context):
    grid = tasuki.Grid(context, (18, 19), periodic=(True, False))
    fields = [tasuki.Field(grid, shadow=2, memory=memory) for memory in ("host", "device")]
    values = np.random.default_rng(context.rank).standard_normal(fields[0].shape)
    for field in fields:
        halo = tasuki.Halo(field, reverse=True)
        field.upload(values)
        halo.run()
    np.testing.assert_array_equal(fields[0].array, fields[1].download())


def test_transfers(context):
    last = context.size - 1
    tasuki.use_gpu(context)
    field = tasuki.Field(
        tasuki.Grid(context, (context.size * 8, 6), split=(context.size, 1)), shadow=0, memory="device"
    )
    field.upload(numbers(field.shape) + 1000 * context.rank)
    line = tasuki.Field(tasuki.Grid(context, (context.size * 8,)), shadow=0, memory="device", name="line")
    source = (0, field.array[:, 3] if context.rank == 0 else None)
    target = (last, line.array if context.rank == last else None)
    transfer = tasuki.Transfer(context, source, target)
    transfer.run()
    if context.rank == last:
        np.testing.assert_array_equal(line.download(), numbers((8, 6))[:, 3])
    transfer.start()
    transfer.wait()
    tasuki.synchronize(context)
    context.barrier()


def test_empty_boxes(context):
    grid = tasuki.Grid(context, (1, 5), split=(context.size, 1), periodic=True)
    field = tasuki.Field(grid, shadow=0, memory="device")
    field.upload(3)
    assert field.download().size == (5 if context.rank == 0 else 0)
    halo = tasuki.Halo(field)
    halo.run()
    tasuki.synchronize(context)


def test_wrong_uses(context):
    grid = tasuki.Grid(context, (16, 16), periodic=True)
    field = tasuki.Field(grid, memory="device", name="u")
    halo = tasuki.Halo(field)
    for stream in "text", -1, True, object():
        with pytest.raises(tasuki.Error, match="argument 'stream' is"):
            halo.run(stream)
    with pytest.raises(tasuki.Error, match=r"wait\(stream\) without start"):
        halo.wait()
    halo.start()
    with pytest.raises(tasuki.Error, match="still active"):
        halo.start()
    with pytest.raises(tasuki.Error, match=r"end it with wait\(stream\)"):
        halo.test()
    halo.wait()
    with pytest.raises(tasuki.Error, match="engine 'inline' works on host memory"):
        tasuki.Halo(field, engine="inline")
    for stream in 0, -2, "text", True:
        with pytest.raises((ValueError, TypeError), match="__dlpack__: argument 'stream' is"):
            field.__dlpack__(stream=stream)
    for stream in None, -1, 1, 2:
        assert "dltensor" in repr(field.__dlpack__(stream=stream))
    with pytest.raises(BufferError, match="copy"):
        field.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="DLPack has no type"):
        tasuki.Field(grid, [("a", "i4"), ("b", "f8")], memory="device").__dlpack__()
    if context.size > 1:
        with pytest.raises(tasuki.Error, match="memory.*differs between ranks"):
            tasuki.Field(grid, memory="device" if context.rank == 0 else "host")
    tasuki.synchronize(context)


def test_other_threads_run_while_one_synchronizes(context):
    """Rank 0 waits for ranks that come half a second later."""
    halo = tasuki.Halo(tasuki.Field(tasuki.Grid(context, (64,), periodic=True), memory="device"))
    context.barrier()
    if context.size == 1:
        pytest.skip("one rank waits for nobody")
    if context.rank != 0:
        time.sleep(0.5)
    turns = []
    over = threading.Event()

    def count():
        while not over.wait(0.01):
            turns.append(time.monotonic())

    thread = threading.Thread(target=count)
    thread.start()
    halo.run()
    tasuki.synchronize(context)
    over.set()
    thread.join()
    if context.rank == 0:
        assert len(turns) > 5, turns
    context.barrier()


def test_from_another_thread(context):
    """CUDA keeps the current GPU for each thread, and autograd runs in threads of its own."""
    grid = tasuki.Grid(context, (20, 20), periodic=True)
    field = tasuki.Field(grid, memory="device")
    halo = tasuki.Halo(field)
    whole = numbers((20, 20))
    seen = []

    def work():
        field.upload(with_shadow(field, whole, -1))
        halo.run()
        with halo.overlap():
            pass
        seen.append(field.download())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(seen[0], after_exchange(field, whole))
    context.barrier()
