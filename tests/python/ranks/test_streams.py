"""What can be said about GPU arrays and streams without a GPU: how streams are passed, and what is refused."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tasuki


def address(stream):
    return tasuki._core._stream_address(stream)


class Method:
    def __init__(self, version=0, handle=123):
        self.answer = (version, handle)

    def __cuda_stream__(self):
        return self.answer


class Broken:
    def __cuda_stream__(self):
        raise OSError("no stream today")


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (0, 0),
        (2**47 + 16, 2**47 + 16),
        (Method(), 123),
        (SimpleNamespace(__cuda_stream__=(0, 5)), 5),
        (SimpleNamespace(cuda_stream=6), 6),
        (SimpleNamespace(ptr=7), 7),
        (SimpleNamespace(ptr=1, cuda_stream=2, __cuda_stream__=(0, 3)), 3),
    ],
)
def test_streams_of_other_libraries(stream, expected):
    assert address(stream) == expected


@pytest.mark.parametrize("stream", [True, -1, 2**64, 1.5, "0", object(), SimpleNamespace(ptr=None), Method(handle=-1)])
def test_what_is_no_stream(stream):
    with pytest.raises(tasuki.Error, match="argument 'stream' is .*; it must be None, a stream of CuPy or PyTorch"):
        address(stream)


def test_streams_that_do_not_tell():
    with pytest.raises(tasuki.Error, match="__cuda_stream__ has version 1; Tasuki knows version 0"):
        address(Method(version=1))
    with pytest.raises(tasuki.Error, match="does not tell its address: no stream today"):
        address(Broken())


def library(stream, initialised=True):
    """What CuPy and PyTorch have in common here."""
    return SimpleNamespace(
        cuda=SimpleNamespace(
            get_current_stream=lambda: SimpleNamespace(ptr=stream),
            current_stream=lambda: SimpleNamespace(cuda_stream=stream),
            is_initialized=lambda: initialised,
        )
    )


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ({}, 0),
        ({"cupy": library(11)}, 11),
        ({"torch": library(12)}, 12),
        ({"cupy": library(11), "torch": library(12)}, 0),
        ({"torch": library(12, initialised=False)}, 0),
        ({"cupy": library(11), "torch": library(12, initialised=False)}, 11),
        ({"cupy": library(11), "torch": SimpleNamespace()}, 11),
    ],
)
def test_the_current_stream(monkeypatch, modules, expected):
    """Of the one library that is in use; nothing is imported to find out."""
    for name in "cupy", "torch":
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    assert address(None) == expected
    assert {name for name in ("cupy", "torch") if name in sys.modules} == set(modules)


def test_host_operations_take_no_stream(context):
    field = tasuki.Field(tasuki.Grid(context, (8, 9), periodic=True), name="u")
    halo = tasuki.Halo(field)
    for call in halo.start, halo.wait, halo.run, lambda stream: halo.overlap(stream).__enter__():
        with pytest.raises(tasuki.Error, match=r"halo u: \w+: argument 'stream' is 5, but streams are for .* GPU"):
            call(5)
    for call in field.download, lambda stream: field.upload(0, stream):
        with pytest.raises(tasuki.Error, match="'u': .*'stream' was given, but the field is on the host"):
            call(5)
    halo.run()  # nothing has been started
    with halo.overlap():
        pass
    tasuki.synchronize(context)


def test_upload_and_download(context):
    grid = tasuki.Grid(context, (6, 8))
    field = tasuki.Field(grid, "float32", pad=3, copies=2, name="u")
    values = np.arange(np.prod(field.shape), dtype="float32").reshape(field.shape)
    field.upload(values)
    np.testing.assert_array_equal(field.array, values)
    taken = field.download()
    assert not np.shares_memory(taken, field.array)
    np.testing.assert_array_equal(taken, values)
    assert not field.next.any()
    for bad, pattern in (np.zeros((2, 3, 4)), "could not broadcast"), ("text", "Cannot cast|could not convert"):
        with pytest.raises(tasuki.Error, match=rf"'u': upload: argument 'values' does not fit .*{pattern}"):
            field.upload(bad)


class OnGpu:
    """An array that says it is on a GPU."""

    def __init__(self, array, **changes):
        self.array = array
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, **changes}


class OnGpuByDLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (2, 0)


def box_with_shadow(grid):
    return tuple(s.stop - s.start + 2 for s in grid.box)


BAD = {
    "shape": (lambda s: OnGpu(np.zeros((s[0] + 1, s[1]))), "has shape .* with its shadow has shape"),
    "shape by DLPack": (lambda s: OnGpuByDLPack(np.zeros((s[0] + 1, s[1]))), "has shape"),
    "dtype": (lambda s: OnGpu(np.zeros(s, "float32")), "float32.*'dtype' is dtype.'float64'"),
    "read-only": (lambda s: OnGpu(np.broadcast_to(0.0, s)), "read-only"),
    "mask": (lambda s: OnGpu(np.zeros(s), mask=np.zeros(s)), "masked"),
    "no data": (lambda s: OnGpu(np.zeros(s), data=None), "OnGpu whose __cuda_array_interface__ cannot be read"),
    "data": (lambda s: OnGpu(np.zeros(s), data=("here", False)), "entries of a wrong type"),
    "type": (lambda s: OnGpu(np.zeros(s), typestr="zz"), "cannot be read: .*zz"),
    "strides": (lambda s: OnGpu(np.zeros(s), strides=(8,)), "2 extents and 1 strides"),
    "host": (lambda s: [OnGpu(np.zeros(s)), np.zeros(s)], "is on a GPU, but|on the device, but memory.1. on the host"),
    "not there": (lambda s: OnGpu(np.zeros(s)), "is on a GPU, but this rank cannot use one: |points to host memory"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_gpu_arrays_raise_on_all_ranks(context, what):
    make, pattern = BAD[what]
    grid = tasuki.Grid(context, (6, 8))
    shape = box_with_shadow(grid)
    memory = make(shape) if context.rank == context.size - 1 else np.zeros(shape)
    with pytest.raises(tasuki.Error, match=pattern) as raised:
        tasuki.Field(grid, "float64", memory=memory, name="u")
    assert "'u'" in str(raised.value) and f"rank {context.size - 1}" in str(raised.value)


def test_calls_for_the_host_refuse_gpu_arrays(context):
    array = OnGpu(np.zeros(8))
    with pytest.raises(tasuki.Error, match="OnGpu on a GPU; this call takes memory of the CPU only"):
        tasuki.Layout.bytes(8).pack(array)
    assert tasuki.Layout.of_array(array) == tasuki.Layout.bytes(64)  # looks at no element


def test_without_a_gpu(context):
    why = tasuki.why_no_gpu()
    if not why:
        pytest.skip("this machine has a GPU")
    for call in lambda: tasuki.use_gpu(context), lambda: tasuki.Field(tasuki.Grid(context, (8,)), memory="device"):
        with pytest.raises(tasuki.Error, match="cannot use a GPU") as raised:
            call()
        assert why in str(raised.value)
    called = []
    for make in tasuki.Fork, lambda: tasuki.Graph(lambda: called.append(1)), lambda: tasuki.Graph(called.clear, 7):
        with pytest.raises(tasuki.Error, match="(Fork|Graph): this process cannot use a GPU: ") as raised:
            make()
        assert why in str(raised.value)
    assert not called


def test_bad_arguments_of_graphs(context):
    wrong: list[Any] = [None, 5, "text"]
    for bad in wrong:
        with pytest.raises(TypeError):
            tasuki.Graph(bad, 7)
    with pytest.raises(tasuki.Error, match="argument 'stream' is 'text'; it must be"):
        tasuki.Graph(lambda: None, "text")
    field = tasuki.Field(tasuki.Grid(context, (8,)))
    with pytest.raises(tasuki.Error, match="argument 'blocks' is -1; it must be 0 or more"):
        tasuki.Halo(field, blocks=-1)
