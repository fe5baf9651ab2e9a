"""CuPy, PyTorch and JAX look at Tasuki's memory in place, Tasuki at theirs; exchanges are in the order of streams."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from cells import after_exchange, numbers, with_shadow

import tasuki


@pytest.fixture
def grid(context):
    return tasuki.Grid(context, (24, 10), periodic=True)


def local_shape(grid, shadow=1):
    return tuple(s.stop - s.start + 2 * shadow for s in grid.box)


@pytest.mark.parametrize("by", ["look", "from_dlpack"])
def test_they_look_in_place(context, library, grid, by):
    field = tasuki.Field(grid, "float32", copies=2, pad=5, memory="device", name="u")
    for part in field, field.array, field.owned, field.next, field.array[2:5, ::2]:
        seen = getattr(library, by)(part)
        assert tuple(seen.shape) == (part.shape if isinstance(part, tasuki.DeviceArray) else field.shape)
        assert library.pointer(seen) == part.__cuda_array_interface__["data"][0]
        seen[...] = 3
    taken = field.download()
    assert (taken == 3).all()
    with pytest.raises(tasuki.Error, match="still looked at by an array"):
        field.free()
    del seen, part
    gc.collect()
    field.free()


@pytest.mark.parametrize("dtype", ["float16", "int64", "complex128", "uint8"])
def test_types(library, grid, dtype):
    field = tasuki.Field(grid, dtype, memory="device")
    values = (numbers(field.shape) % 2).astype(dtype)
    for look in library.look, library.from_dlpack:
        field.upload(values)
        seen = library.to_numpy(look(field))
        assert seen.dtype == values.dtype
        np.testing.assert_array_equal(seen, values)
    again = tasuki.Field(grid, memory=library.array(values))
    assert again.dtype == values.dtype
    np.testing.assert_array_equal(again.download(), values)


def test_their_arrays_are_used_in_place(context, library, grid):
    whole = numbers(grid.shape)
    old = library.array(np.zeros(local_shape(grid)))
    new = library.array(np.zeros(local_shape(grid)))
    field = tasuki.Field(grid, memory=[old, new], name="mine")
    assert field.memory == "device" and field.copies == 2
    assert field.array.__cuda_array_interface__["data"][0] == library.pointer(old)
    halo = tasuki.Halo(field, alternating=True)
    for mine in old, new:
        mine[...] = library.array(with_shadow(field, whole, -1))
    for mine in old, new, old:
        halo.run()
        np.testing.assert_array_equal(library.to_numpy(mine), after_exchange(field, whole))
        field.swap()
    context.barrier()


def test_a_part_of_theirs_with_padded_rows(context, library, grid):
    rows, columns = local_shape(grid)
    large = library.array(np.zeros((rows + 4, columns + 9)))
    field = tasuki.Field(grid, memory=large[3:-1, 5:-4], name="part")
    whole = numbers(grid.shape)
    field.upload(with_shadow(field, whole, -1))
    context.barrier()
    tasuki.Halo(field).run()
    expected = np.zeros((rows + 4, columns + 9))
    expected[3:-1, 5:-4] = after_exchange(field, whole)
    np.testing.assert_array_equal(library.to_numpy(large), expected)
    context.barrier()


@pytest.mark.parametrize("passed", ["current", "object", "address"])
@pytest.mark.parametrize("mode", ["run", "start and wait", "overlap"])
def test_the_order_of_streams(context, library, grid, passed, mode):
    """Long work, an exchange, and a look at its outcome, in one stream and without waiting in between."""
    field = tasuki.Field(grid, memory="device")
    halo = tasuki.Halo(field)
    seen = library.look(field)
    whole = numbers(grid.shape)
    values = library.array(with_shadow(field, whole, -1))
    large = library.array(np.ones((2048, 2048)))
    stream = library.new_stream()
    outcomes = []
    argument = {"current": None, "object": stream, "address": library.address(stream)}[passed]
    if passed == "current":  # which of two libraries in use would be meant?
        field = tasuki.Field(grid, memory=library.array(np.zeros(field.shape)))
        halo = tasuki.Halo(field)
        seen = library.look(field)
    tasuki.synchronize(context, 0)
    context.barrier()
    with library.within(stream):
        for turn in range(4):
            for _ in range(5):
                large = large @ large * (1 / 2048)  # milliseconds
            seen[...] = values + turn
            if mode == "run":
                halo.run(argument)
            elif mode == "start and wait":
                halo.start(argument)
                halo.wait(argument)
            else:
                with halo.overlap(argument):
                    large = large * 1.0
            outcomes.append(seen + 0)
    tasuki.synchronize(context, stream)
    for turn, outcome in enumerate(outcomes):
        np.testing.assert_array_equal(library.to_numpy(outcome), after_exchange(field, whole) + turn)
    context.barrier()


def test_dlpack_waits_for_the_producer(context, library, grid):
    """What the library's stream has written is there for whoever takes the field by DLPack in another stream."""
    mine = library.array(np.zeros(local_shape(grid)))
    field = tasuki.Field(grid, memory=mine)
    large = library.array(np.ones((2048, 2048)))
    first, second = library.new_stream(), library.new_stream()
    with library.within(first):
        for _ in range(5):
            large = large @ large * (1 / 2048)
        mine[...] = 5
        capsule = field.__dlpack__(stream=library.address(second))
    with library.within(second):
        outcome = mine + 0
    tasuki.synchronize(context, second)
    tasuki.synchronize(context, first)
    assert (library.to_numpy(outcome) == 5).all() and "dltensor" in repr(capsule)


def test_bad_arrays_of_theirs(context, library, grid):
    shape = local_shape(grid)
    good = library.array(np.zeros(shape))
    for bad, pattern in (
        (library.array(np.zeros((shape[0] + 1, shape[1]))), "has shape .* with its shadow has shape"),
        (library.array(np.zeros(shape, "float32")), "float32.*'dtype' is dtype.'float64'"),
        ([good, np.zeros(shape)], "memory.0. is on the device, but memory.1. on the host"),
    ):
        last = context.rank == context.size - 1
        with pytest.raises(tasuki.Error, match=pattern) as raised:
            tasuki.Field(grid, "float64", memory=bad if last else good, name="u", copies=1)
        assert f"rank {context.size - 1}" in str(raised.value)
    with pytest.raises(tasuki.Error, match="takes memory of the CPU only"):
        tasuki.Layout.of("f8").pack(good)
    if context.size > 1:
        with pytest.raises(tasuki.Error, match="memory.*differs between ranks"):
            tasuki.Field(grid, memory=good if context.rank == 0 else np.zeros(shape))


def test_fields_of_any_order(context, library, grid):
    """In place: Fortran's order, and every other column of a larger array, whose other columns stay as they are."""
    shape = local_shape(grid)
    for array, rest in (
        (library.array(np.zeros((shape[1], shape[0]))).T, None),
        ((wide := library.array(np.full((shape[0], 2 * shape[1]), 7.0)))[:, ::2], wide),
    ):
        u = tasuki.Field(grid, memory=array, name="u")
        halo = tasuki.Halo(u)
        for step in range(3):
            whole = np.arange(np.prod(grid.shape), dtype=float).reshape(grid.shape) + 100 * step
            values = np.full(shape, -1.0)
            values[u.local_box] = whole[u.box]
            u.upload(values)
            halo.run()
            tasuki.synchronize(context)
            at = np.ix_(*[np.arange(s.start - 1, s.stop + 1) % n for s, n in zip(u.box, grid.shape)])
            inside = np.ones(shape, bool)
            for d, periodic in enumerate(grid.periodic):
                cells = np.arange(u.box[d].start - 1, u.box[d].stop + 1)
                if not periodic:
                    inside &= ((cells >= 0) & (cells < grid.shape[d])).reshape([-1 if k == d else 1 for k in range(2)])
            np.testing.assert_array_equal(u.download()[inside], whole[at][inside])
            assert rest is None or (library.to_numpy(rest)[:, 1::2] == 7).all()
        halo.free()


def test_collectives_of_views(context, library, grid):
    """Arrays with gaps, and explicit layouts, where the other side has other gaps or none."""
    n, me = context.size, context.rank
    tasuki.use_gpu(context)
    matrix, total = library.array(np.zeros((6, 8))), library.array(np.full((4, 3, 2), -1.0))
    table, column = library.array(np.full((2, 12 * n), -1.0)), library.array(np.zeros((5, 3)))
    flat, pairs = library.array(np.zeros(2 * n)), library.array(np.full(3 * n, -1.0))
    number = tasuki.Layout.of("f8")
    view = matrix[::2, 1::2]
    operations = [
        tasuki.Allreduce(context, view, total[:, :, 1]),
        tasuki.Allgather(context, view, table[1]),
        tasuki.Broadcast(context, n - 1, column[:, 2]),
        tasuki.Alltoall(
            context,
            (flat, tasuki.blocks_of(tasuki.Layout.resized(number, 0, 16), n)),
            (pairs, tasuki.blocks_of(number, [1] * n, [3 * r + 1 for r in range(n)])),
        ),
    ]
    for operation in operations:
        assert tasuki.verify(operation)
    for turn in range(3):
        view[...] = library.array(np.arange(12.0).reshape(3, 4) + 100 * me + turn)
        column[...] = library.array(np.arange(15.0).reshape(5, 3) + 100 * me + turn)
        flat[...] = library.array(np.arange(2.0 * n) + 100 * me + turn)
        for operation in operations:
            operation.run()
        tasuki.synchronize(context)
        sums = np.arange(12.0) * n + 100 * sum(range(n)) + turn * n
        np.testing.assert_array_equal(library.to_numpy(total)[:, :, 1].reshape(-1), sums)
        assert (library.to_numpy(total)[:, :, 0] == -1).all()
        expected = np.concatenate([np.arange(12.0) + 100 * r + turn for r in range(n)])
        np.testing.assert_array_equal(library.to_numpy(table), [np.full(12 * n, -1), expected])
        cells = np.arange(15.0).reshape(5, 3) + 100 * me + turn
        cells[:, 2] += 100 * (n - 1 - me)
        np.testing.assert_array_equal(library.to_numpy(column), cells)
        got = library.to_numpy(pairs).reshape(n, 3)
        np.testing.assert_array_equal(got, [[-1, 2 * me + 100 * r + turn, -1] for r in range(n)])
    context.barrier()


def test_another_gpu(context, library, grid):
    mine = tasuki.use_gpu(context)
    if library.gpus() < 2:
        pytest.skip("there is only one GPU")
    array = library.array_on((mine + 1) % library.gpus(), np.zeros(local_shape(grid)))
    with pytest.raises(tasuki.Error, match=r"is on GPU \d, but this rank uses GPU \d; call tasuki.use_gpu"):
        tasuki.Field(grid, memory=array)


def test_pytorch_only(grid, context):
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    gpu = tasuki.use_gpu(context)
    torch.cuda.set_device(gpu)
    tensor = torch.zeros(local_shape(grid), dtype=torch.bfloat16, device=f"cuda:{gpu}")
    field = tasuki.Field(grid, memory=tensor)
    assert str(field.dtype) == "bfloat16" and torch.from_dlpack(field).data_ptr() == tensor.data_ptr()
    with pytest.raises(tasuki.Error, match="needs a gradient"):
        tasuki.Field(grid, memory=torch.zeros(local_shape(grid), device=f"cuda:{gpu}", requires_grad=True))
    resized = torch.zeros(local_shape(grid), device=f"cuda:{gpu}")
    halo = tasuki.Halo(tasuki.Field(grid, memory=resized, name="moving"))
    resized.set_(torch.zeros(4096, 4096, device=f"cuda:{gpu}"))
    with pytest.raises(tasuki.Error, match="memory of field 'moving' has moved"):
        halo.run()
    context.barrier()


def test_cupy_graphs(context, grid):
    """Captured once for each copy shown, replayed often."""
    cupy = pytest.importorskip("cupy")
    cupy.cuda.Device(tasuki.use_gpu(context)).use()
    field = tasuki.Field(grid, copies=2, memory="device")
    halo = tasuki.Halo(field, corners=False, alternating=True)
    copies = [cupy.asarray(field.array), cupy.asarray(field.next)]
    whole = numbers(grid.shape)
    field.upload(with_shadow(field, whole, 0))
    halo.run(0)
    tasuki.synchronize(context, 0)
    context.barrier()
    stream = cupy.cuda.Stream(non_blocking=True)
    kernel = cupy.ElementwiseKernel("T a, T b", "T out", "out = a - b", "difference_of_neighbours")
    inside = (slice(1, -1), slice(1, -1))
    kernel(copies[0][2:, 1:-1], copies[0][:-2, 1:-1], copies[1][inside])  # compiles; that could not be captured
    tasuki.synchronize(context, 0)
    with stream:
        stream.begin_capture()
        for _ in range(2):
            old = copies[field.current]
            field.swap()
            new = copies[field.current]
            kernel(old[2:, 1:-1], old[:-2, 1:-1], new[inside])
            with halo.overlap(stream):
                pass
        graph = stream.end_capture()
        for _ in range(3):
            graph.launch(stream)
    tasuki.synchronize(context, stream)
    for _ in range(6):
        whole = np.roll(whole, -1, 0) - np.roll(whole, 1, 0)
    np.testing.assert_array_equal(field.download(stream)[field.local_box], whole[field.box])
    context.barrier()


def test_jax(context, grid):
    jax = pytest.importorskip("jax")
    gpus = [device for device in jax.devices() if device.platform == "gpu"]
    if not gpus:
        pytest.skip("this JAX has no GPU support")
    mine = gpus[tasuki.use_gpu(context)]
    field = tasuki.Field(grid, "float32", memory="device")
    whole = numbers(grid.shape, "float32")
    field.upload(with_shadow(field, whole, -1))
    context.barrier()
    tasuki.Halo(field).run(0)
    tasuki.synchronize(context, 0)
    seen = jax.dlpack.from_dlpack(field)
    np.testing.assert_array_equal(np.asarray(seen), after_exchange(field, whole))
    theirs = jax.device_put(np.asarray(with_shadow(field, whole, -1)), mine)
    theirs.block_until_ready()
    try:
        wrapped = tasuki.Field(grid, memory=theirs)
    except tasuki.Error as error:  # JAX's arrays are immutable, and newer ones say so
        assert "read-only" in str(error)
    else:
        assert wrapped.memory == "device"
        np.testing.assert_array_equal(wrapped.download(), with_shadow(field, whole, -1))
    context.barrier()
