"""Fixtures for tests on GPUs, one rank a GPU, or with TASUKI_TEST_SHARED_GPUS (under CUDA's Multi-Process Service)
several: every rank runs the same tests in the same order."""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import os

import numpy as np
import pytest

import tasuki

faulthandler.enable()
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take most of the memory
made: list[tasuki.Context] = []  # one for all tests


def why_skip(context):
    if tasuki.why_no_gpu():
        return f"no GPU tests: {tasuki.why_no_gpu()}"
    number = ctypes.c_int()
    assert ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(number)) == 0
    if number.value < context.size and not os.environ.get("TASUKI_TEST_SHARED_GPUS"):
        return f"GPU tests on {context.size} ranks need as many GPUs; this machine shows {number.value}"
    return ""


def pytest_sessionstart(session):
    made.append(tasuki.Context())
    made[0].deadline = 60
    if why := why_skip(made[0]):
        pytest.exit(f"SKIPPED: {why}", returncode=0)


def pytest_sessionfinish(session, exitstatus):
    """A rank whose tests failed must not wait for others at the end."""
    if exitstatus not in (0, 5) and tasuki._core._any_with_others():
        tasuki._core._fail_all("its tests failed")


@pytest.fixture(scope="session")
def context():
    return made[0]


class CuPy:
    def __init__(self, gpu):
        import cupy

        self.xp = cupy
        cupy.cuda.Device(gpu).use()

    def array(self, values):
        return self.xp.asarray(values)

    def gpus(self):
        return self.xp.cuda.runtime.getDeviceCount()

    def array_on(self, gpu, values):
        with self.xp.cuda.Device(gpu):
            return self.xp.asarray(values)

    def look(self, array):
        return self.xp.asarray(array)

    def from_dlpack(self, array):
        return self.xp.from_dlpack(array)

    def to_numpy(self, array):
        return self.xp.asnumpy(array)

    def pointer(self, array):
        return array.data.ptr

    def new_stream(self):
        return self.xp.cuda.Stream(non_blocking=True)

    def external(self, stream):
        return self.xp.cuda.Stream.from_external(stream)

    def within(self, stream):
        return stream

    def address(self, stream):
        return stream.ptr

    def synchronize(self):
        """Waits for all that this rank's GPU does."""
        self.xp.cuda.Device().synchronize()


class PyTorch:
    def __init__(self, gpu):
        import torch

        self.xp = torch
        self.gpu = f"cuda:{gpu}"
        torch.cuda.set_device(gpu)
        torch.cuda.init()

    def array(self, values):
        return self.xp.from_numpy(np.array(values)).to(self.gpu)

    def gpus(self):
        return self.xp.cuda.device_count()

    def array_on(self, gpu, values):
        return self.xp.from_numpy(values).to(f"cuda:{gpu}")

    def look(self, array):
        return self.xp.as_tensor(array, device=self.gpu)

    def from_dlpack(self, array):
        return self.xp.from_dlpack(array)

    def to_numpy(self, array):
        return array.cpu().numpy()

    def pointer(self, array):
        return array.data_ptr()

    def new_stream(self):
        return self.xp.cuda.Stream()

    def external(self, stream):
        return self.xp.cuda.ExternalStream(stream.ptr)

    def within(self, stream):
        return self.xp.cuda.stream(stream)

    def address(self, stream):
        return stream.cuda_stream

    def synchronize(self):
        """Waits for all that this rank's GPU does."""
        self.xp.cuda.synchronize()


LIBRARIES = {"cupy": CuPy, "torch": PyTorch}


@pytest.fixture(params=LIBRARIES)
def library(request, context):
    """A library with arrays on this rank's GPU."""
    try:
        importlib.import_module(request.param)
    except ImportError:
        pytest.skip(f"{request.param} is not installed")
    return LIBRARIES[request.param](tasuki.use_gpu(context))
