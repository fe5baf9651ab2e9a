"""The heat equation on a grid of ranks in two dimensions by a kernel of CuPy that exchanges by itself.

    tasuki run -n 2 examples/heat_kernel.py

One rank a GPU, all steps in one launch of a few blocks. The result is bit for bit that of NumPy's serial run, which
every rank makes itself to compare.
"""

from __future__ import annotations

import sys

import cupy
import numpy as np

import tasuki

KERNEL = r"""
#include <tasuki/kernel.cuh>

namespace device = tasuki::device;

// The pointers are those of the first cell of the shadow, `stride` is the number of cells from a row to the next.
extern "C" __global__ void heat(TASUKI_PARAMETER device::Handle halo, float* now, float* next, int rows, int columns,
                                int stride, int steps) {
  const auto grid = device::this_grid();
  const auto block = device::this_block();
  for (int step = 0; step < steps; ++step) {
    if (!device::run(halo, grid, step)) return;  // the shadow of `now`, when all blocks have come
    for (int i = 1 + block.block(); i <= rows; i += block.blocks()) {
      for (int j = 1 + block.thread(); j <= columns; j += block.threads()) {
        const float* const at = now + i * stride + j;
        const float around = (at[-stride] + at[stride]) + (at[-1] + at[1]);
        next[i * stride + j] = 0.5f * at[0] + 0.125f * around;
      }
    }
    float* const old = now;
    now = next;
    next = old;
  }
}
"""
ROWS, COLUMNS, STEPS = 101, 67, 100
BLOCKS, THREADS = 4, 128


def initial() -> np.ndarray:
    i, j = np.ogrid[:ROWS, :COLUMNS]
    return ((i * 37 + j * 11) % 101).astype("float32")


def serial() -> np.ndarray:
    now = initial()
    for _ in range(STEPS):
        around = (np.roll(now, 1, 0) + np.roll(now, -1, 0)) + (np.roll(now, 1, 1) + np.roll(now, -1, 1))
        now = np.float32(0.5) * now + np.float32(0.125) * around
    return now


def main() -> int:
    context = tasuki.Context()
    cupy.cuda.Device(tasuki.use_gpu(context)).use()
    grid = tasuki.Grid(context, (ROWS, COLUMNS), periodic=True)
    u = tasuki.Field(grid, "float32", name="u", copies=2, memory="device")
    halo = tasuki.Halo(u, corners=False, alternating=True)  # the kernel swaps once a step
    image = np.zeros(u.array.shape, "float32")
    image[1:-1, 1:-1] = initial()[u.box]
    u.upload(image)

    # A product and a sum are rounded one after the other, as NumPy does it.
    options = ("--std=c++20", f"-I{tasuki.get_include()}", "--fmad=false")
    heat = cupy.RawModule(code=KERNEL, options=options).get_function("heat")
    rows, columns = u.owned.shape
    stride = u.array.strides[0] // 4  # cells from a row to the next
    arguments = (
        halo.device(blocks=BLOCKS, threads=THREADS),
        cupy.asarray(u.array),
        cupy.asarray(u.next),
        *(np.int32(number) for number in (rows, columns, stride, STEPS)),
    )
    tasuki.launch_resident(context, heat, arguments, blocks=BLOCKS, threads=THREADS).wait()
    for _ in range(STEPS):
        u.swap()  # as the kernel did

    result = u.download()[1:-1, 1:-1]
    wrong = int(np.sum(result.view("u4") != serial()[u.box].view("u4")))
    total = np.array([wrong])
    sums = tasuki.Allreduce(context, tasuki.in_place, total)
    sums.start()
    sums.wait()
    if context.rank == 0:
        verdict = "every bit as in the serial run" if total[0] == 0 else f"{total[0]} cells DIFFER from the serial run"
        print(f"heat: {ROWS} x {COLUMNS} cells on {context.size} ranks, {STEPS} steps in one launch: {verdict}")
    return int(total[0] != 0)


if __name__ == "__main__":
    sys.exit(main())
