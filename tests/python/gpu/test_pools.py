"""Memory from pools as fields and as sides of transfers: it works, and what other ranks cannot map is said to be so."""

from __future__ import annotations

import contextlib
import functools
import importlib

import numpy as np
import pytest
from cells import after_exchange, numbers, with_shadow

import tasuki

LARGE = 32 << 20  # more than pools keep for small pieces


class Pool:
    """One-dimensional arrays of bytes on this rank's GPU; whether other ranks can map them."""

    mappable = True

    def __init__(self, gpu):
        self.gpu = gpu

    def ready(self):
        """The memory may be used by streams of others."""


class CuPyDefault(Pool):
    library = "cupy"

    def __init__(self, gpu):
        super().__init__(gpu)
        import cupy

        self.xp = cupy
        cupy.cuda.Device(gpu).use()

    def bytes(self, count):
        return self.xp.zeros(count, "uint8")

    def view(self, array, shape, dtype):
        return array.view(dtype).reshape(shape)

    def numpy(self, array):
        return self.xp.asnumpy(array)

    def fill(self, array, values):
        array[...] = self.xp.asarray(values)
        self.ready()

    def ready(self):
        self.xp.cuda.get_current_stream().synchronize()


class CuPyAsync(CuPyDefault):
    """cudaMallocAsync."""

    mappable = False

    def bytes(self, count):
        with self.xp.cuda.using_allocator(self.xp.cuda.MemoryAsyncPool().malloc):
            found = self.xp.zeros(count, "uint8")
        self.ready()
        return found


class Suballocated(CuPyDefault):
    """As RMM's pools do: a large block, and pieces of it at offsets of one's own."""

    base = CuPyDefault

    def __init__(self, gpu):
        super().__init__(gpu)
        self.block = self.base(gpu).bytes(LARGE)
        self.used = 256

    def bytes(self, count):
        begin, self.used = self.used, self.used + -(-count // 256) * 256 + 256
        return self.block[begin : begin + count]


class SuballocatedAsync(Suballocated):
    mappable = False
    base = CuPyAsync


class TorchDefault(Pool):
    library = "torch"

    def __init__(self, gpu):
        super().__init__(gpu)
        import torch

        self.xp = torch
        torch.cuda.set_device(gpu)
        torch.cuda.init()
        if torch.cuda.get_allocator_backend() != "native":
            self.mappable = False  # PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync

    def segment(self, array):
        at = array.data_ptr()
        for each in self.xp.cuda.memory_snapshot():
            if each["address"] <= at < each["address"] + each["total_size"]:
                return each
        return {}

    def bytes(self, count):
        self.xp.cuda.empty_cache()  # or a piece of a segment that another test left
        large = self.xp.zeros(max(count, LARGE), dtype=self.xp.uint8, device=f"cuda:{self.gpu}")
        if self.segment(large).get("is_expandable", False):
            self.mappable = False  # PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
        return large[:count]

    def view(self, array, shape, dtype):
        return array.view(getattr(self.xp, np.dtype(dtype).name)).view(shape)

    def numpy(self, array):
        return array.cpu().numpy()

    def fill(self, array, values):
        array.copy_(self.xp.from_numpy(np.ascontiguousarray(values)))
        self.ready()

    def ready(self):
        self.xp.cuda.current_stream().synchronize()


class TorchExpandable(TorchDefault):
    """Virtual memory management."""

    def bytes(self, count):
        settings = getattr(self.xp.cuda.memory, "_set_allocator_settings", None)
        if settings is None or self.xp.cuda.get_allocator_backend() != "native":
            pytest.skip("this PyTorch cannot be told to use expandable segments while it runs")
        settings("expandable_segments:True")
        try:
            found = super().bytes(count)
        finally:
            settings("expandable_segments:False")
        if self.mappable:
            pytest.skip("this driver has no expandable segments")
        return found


POOLS = [CuPyDefault, CuPyAsync, Suballocated, SuballocatedAsync, TorchDefault, TorchExpandable]


@pytest.fixture(params=POOLS, ids=lambda kind: kind.__name__)
def pool(request, context):
    try:
        importlib.import_module(request.param.library)
    except ImportError:
        pytest.skip(f"{request.param.library} is not installed")
    return request.param(tasuki.use_gpu(context))


def in_reach(context):
    """Whether a path between GPUs can be forced: the ranks can store into each other's memory."""
    if context.size == 1:
        return False
    field = tasuki.Field(tasuki.Grid(context, (8 * context.size,), periodic=True), memory="device")
    with contextlib.suppress(tasuki.Error):
        tasuki.Halo(field, path="peer:put")
        return True
    return False


def test_fields(context, pool):
    grid = tasuki.Grid(context, (37, 22), periodic=True)
    shape = tuple(s.stop - s.start + 2 for s in grid.box)
    size = int(np.prod(shape))
    held = [pool.bytes(4 * size) for _ in range(2)]
    arrays = [pool.view(one, shape, "float32") for one in held]
    field = tasuki.Field(grid, memory=arrays, name="pooled")
    assert field.memory == "device" and field.copies == 2
    halo = tasuki.Halo(field, alternating=True)
    assert tasuki.verify(halo)
    for epoch in range(5):
        whole = numbers(grid.shape, "float32") * 8 + epoch
        pool.fill(arrays[field.current], with_shadow(field, whole, -1))
        context.barrier()
        halo.run(0)
        tasuki.synchronize(context, 0)
        np.testing.assert_array_equal(pool.numpy(arrays[field.current]), after_exchange(field, whole))
        context.barrier()
        field.swap()
    reach = in_reach(context)
    if reach and not pool.mappable:
        # It took two passes, says why, and a path that cannot be is refused with what to do.
        advice = "cannot be shared: take cudaMalloc's or let the field allocate"
        assert "cannot be shared" in halo.explain()
        with pytest.raises(tasuki.Error, match=advice):
            tasuki.Halo(field, path="peer:put")
    elif reach:
        assert "cannot be shared" not in halo.explain()
        forced = tasuki.Halo(field, path="peer:put")
        assert tasuki.verify(forced)
        whole = numbers(grid.shape, "float32") * 3
        pool.fill(arrays[field.current], with_shadow(field, whole, -1))
        context.barrier()
        forced.run(0)
        tasuki.synchronize(context, 0)
        np.testing.assert_array_equal(pool.numpy(arrays[field.current]), after_exchange(field, whole))
    context.barrier()


@pytest.mark.parametrize("path", ["auto", "peer:eager"])
def test_transfers(context, pool, path):
    """Rows of a matrix of the first rank to a block of the last."""
    first, last = 0, context.size - 1
    rows, columns, stride = 19, 7, 23
    if context.size == 1 or (path != "auto" and not in_reach(context)):
        path = "auto"
    source = pool.view(pool.bytes(8 * rows * stride), (rows, stride), "float64")
    target = pool.view(pool.bytes(8 * rows * columns), (rows, columns), "float64")
    ends = [
        (rank, array if context.rank == rank else None)
        for rank, array in ((first, source[:, 3 : 3 + columns]), (last, target))
    ]
    transfer = tasuki.Transfer(context, *ends, path=path)
    assert tasuki.verify(transfer)
    for epoch in range(4):
        values = numbers((rows, stride), "float64") * 10 + epoch
        if context.rank == first:
            pool.fill(source, values)
        if context.rank == last:
            pool.fill(target, np.full((rows, columns), -1.0))
        context.barrier()
        transfer.run(0)
        tasuki.synchronize(context, 0)
        if context.rank == last:
            np.testing.assert_array_equal(pool.numpy(target), values[:, 3 : 3 + columns])
        context.barrier()


def test_a_field_keeps_what_it_looks_at(context, pool):
    """What a field looks at is kept by the field: the pool cannot give it to somebody else."""
    grid = tasuki.Grid(context, (16, 9), periodic=True)
    shape = tuple(s.stop - s.start + 2 for s in grid.box)
    make = functools.partial(pool.view, shape=shape, dtype="float32")
    field = tasuki.Field(grid, memory=make(pool.bytes(4 * int(np.prod(shape)))), name="kept")
    others = [pool.bytes(4 * int(np.prod(shape))) for _ in range(4)]  # the pool may use what was let go
    halo = tasuki.Halo(field)
    whole = numbers(grid.shape, "float32")
    field.upload(with_shadow(field, whole, -1))
    for other in others:
        other[...] = 85
    pool.ready()
    context.barrier()
    halo.run(0)
    tasuki.synchronize(context, 0)
    np.testing.assert_array_equal(field.download(), after_exchange(field, whole))
    context.barrier()
