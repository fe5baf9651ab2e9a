"""Kernels of CuPy that communicate by themselves: where the headers are, and a launch that is checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, SupportsIndex

from . import _core
from ._core import Context, Error, KernelArgument, Resident

_RESERVED_SHARED = 111  # CUDA's cudaDevAttrReservedSharedMemoryPerBlock, for which CuPy has no name


def get_include() -> str:
    """The folder with `tasuki/kernel.cuh`, for compilers.

    For CuPy: `cupy.RawModule(code=text, options=("--std=c++20", f"-I{tasuki.get_include()}"))`. It takes NVRTC
    12.3 or later.
    """
    folder = Path(__file__).parent / "include"
    if not (folder / "tasuki" / "kernel.cuh").is_file():
        raise Error(f"get_include: {folder} has no tasuki/kernel.cuh; this installation of Tasuki is incomplete")
    return str(folder)


def _facts(cupy: Any, kernel: Any) -> dict[str, Any]:
    """What the current GPU has, and what a kernel of CuPy takes of it."""
    gpu = cupy.cuda.runtime.getDevice()
    has = cupy.cuda.runtime.getDeviceProperties(gpu)
    return {
        "gpu": gpu,
        "gpu_name": has["name"].decode(),
        "multiprocessors": has["multiProcessorCount"],
        "blocks": has["maxBlocksPerMultiProcessor"],
        "threads": has["maxThreadsPerMultiProcessor"],
        "registers": has["regsPerMultiprocessor"],
        "shared": has["sharedMemPerMultiprocessor"],
        "shared_of_block": has["sharedMemPerBlockOptin"],
        "block_threads": kernel.max_threads_per_block,
        "thread_registers": kernel.num_regs,
        "block_shared": kernel.shared_size_bytes + cupy.cuda.runtime.deviceGetAttribute(_RESERVED_SHARED, gpu),
    }


def launch_resident(
    context: Context,
    kernel: Any,
    arguments: Sequence[Any],
    *,
    blocks: SupportsIndex = 1,
    threads: SupportsIndex = 256,
    shared_bytes: SupportsIndex = 0,
    stream: Any = None,
) -> Resident:
    """Launches a kernel of CuPy whose blocks may wait for each other and for other ranks: all are on the GPU at once.

    kernel: a `cupy.RawKernel`, or a function of a `cupy.RawModule`; it need not have `enable_cooperative_groups`.
    arguments: those of the kernel as CuPy takes them (arrays of CuPy, numbers of NumPy), and `KernelArgument` objects.
    blocks, threads: of the launch, and of a block. shared_bytes: of dynamic shared memory a block.
    stream: as for `Operation.start`; None: CuPy's current one. It must exist until the kernel has been waited for.

    Local; the kernels of all ranks must run at the same time. Raises tasuki.Error if not all blocks have room on the
    GPU at once, saying how many would and what runs out; if the context uses no GPU; if the stream is being captured;
    where CUDA_LAUNCH_BLOCKING=1 would make the launch wait; for a handle of an operation that was freed or is active,
    or that was made for other threads or more blocks. A cooperative launch of CuPy's own would take fewer blocks
    instead.
    """
    blocks, threads, shared_bytes = int(blocks), int(threads), int(shared_bytes)
    arguments = tuple(arguments)
    call = f"rank {context.rank}: launch_resident: "
    if not type(kernel).__module__.startswith("cupy") or not hasattr(kernel, "num_regs"):
        raise Error(
            f"{call}argument 'kernel' is a {type(kernel).__name__}; it must be a cupy.RawKernel, or a function of a "
            "cupy.RawModule"
        )
    address = _core._check_launch(context, arguments, blocks, threads, shared_bytes, stream)
    import cupy

    if stream is None:
        stream = cupy.cuda.get_current_stream()  # whose address that is; the Resident keeps it
    function = kernel.kernel  # compiles and loads it

    def blocks_at_once() -> int:
        if shared_bytes > kernel.max_dynamic_shared_size_bytes:
            kernel.max_dynamic_shared_size_bytes = shared_bytes
        return cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, threads, shared_bytes)

    _core._check_fits(context, blocks, threads, shared_bytes, _facts(cupy, kernel), blocks_at_once)
    given = tuple(one.value if isinstance(one, KernelArgument) else one for one in arguments)
    function(
        (blocks,),
        (threads,),
        given,
        shared_mem=shared_bytes,
        stream=SimpleNamespace(ptr=address),
        enable_cooperative_groups=True,
    )
    return _core._watch_launch(context, (kernel, stream, *arguments), address)
