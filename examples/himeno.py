"""The Himeno benchmark (a Jacobi solver of Poisson's equation, 19 points) in Python: Numba or NumPy, CuPy on GPUs.

    tasuki run -n 4 examples/himeno.py --size 33x33x65
    tasuki run -n 4 examples/himeno.py --size 257x257x513 --iterations 1000 --device gpu --no-check

Each rank computes the cells that its neighbours need, starts the halo, and computes the rest while it travels; on GPUs,
CUDA graphs replay that. The pressure is checked, bit for bit, against the same arithmetic on the whole array.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np

import tasuki

OMEGA = np.float32(0.8)
FLOPS_A_CELL = 34
# The benchmark's constants, a value for every cell: a (4), b (3), c (3), bound, wrk1.
CONSTANTS = np.array([1, 1, 1, 1 / 6, 0, 0, 0, 1, 1, 1, 1, 0], np.float32)


def sweep_by_loops(m, old, new, low, high):
    """One sweep over the cells low <= (i, j, k) < high; returns the sum of the squared corrections."""
    gosa = 0.0
    for i in range(low[0], high[0]):
        for j in range(low[1], high[1]):
            for k in range(low[2], high[2]):
                s0 = (
                    m[0, i, j, k] * old[i + 1, j, k]
                    + m[1, i, j, k] * old[i, j + 1, k]
                    + m[2, i, j, k] * old[i, j, k + 1]
                    + m[4, i, j, k]
                    * (old[i + 1, j + 1, k] - old[i + 1, j - 1, k] - old[i - 1, j + 1, k] + old[i - 1, j - 1, k])
                    + m[5, i, j, k]
                    * (old[i, j + 1, k + 1] - old[i, j - 1, k + 1] - old[i, j + 1, k - 1] + old[i, j - 1, k - 1])
                    + m[6, i, j, k]
                    * (old[i + 1, j, k + 1] - old[i - 1, j, k + 1] - old[i + 1, j, k - 1] + old[i - 1, j, k - 1])
                    + m[7, i, j, k] * old[i - 1, j, k]
                    + m[8, i, j, k] * old[i, j - 1, k]
                    + m[9, i, j, k] * old[i, j, k - 1]
                    + m[11, i, j, k]
                )
                ss = (s0 * m[3, i, j, k] - old[i, j, k]) * m[10, i, j, k]
                gosa += ss * ss
                new[i, j, k] = old[i, j, k] + OMEGA * ss
    return gosa


def sweep_by_arrays(m, old, new, low, high):
    """The same with NumPy: the same operations on each cell, in the same order."""

    def at(i, j, k):
        return old[low[0] + i : high[0] + i, low[1] + j : high[1] + j, low[2] + k : high[2] + k]

    box = tuple(map(slice, low, high))
    m = [part[box] for part in m]
    s0 = (
        m[0] * at(1, 0, 0)
        + m[1] * at(0, 1, 0)
        + m[2] * at(0, 0, 1)
        + m[4] * (at(1, 1, 0) - at(1, -1, 0) - at(-1, 1, 0) + at(-1, -1, 0))
        + m[5] * (at(0, 1, 1) - at(0, -1, 1) - at(0, 1, -1) + at(0, -1, -1))
        + m[6] * (at(1, 0, 1) - at(-1, 0, 1) - at(1, 0, -1) + at(-1, 0, -1))
        + m[7] * at(-1, 0, 0)
        + m[8] * at(0, -1, 0)
        + m[9] * at(0, 0, -1)
        + m[11]
    )
    ss = (s0 * m[3] - at(0, 0, 0)) * m[10]
    new[box] = at(0, 0, 0) + OMEGA * ss
    return float(np.sum(ss * ss, dtype=np.float64))


class OnHost:
    """Sweeps over arrays of `shape`, compiled where Numba is installed; every bit is the same without."""

    look = staticmethod(np.asarray)

    def __init__(self, shape):
        try:
            from numba import njit
        except ImportError:
            self.name, self.sweep = "NumPy", sweep_by_arrays
        else:
            self.name, self.sweep = "Numba", njit(fastmath=False)(sweep_by_loops)
        self.constants = np.empty((len(CONSTANTS), *shape), np.float32)
        self.constants[...] = CONSTANTS[:, None, None, None]

    def prepare(self, boxes):
        return [(tuple(s.start for s in box), tuple(s.stop for s in box)) for box in boxes]

    def __call__(self, old, new, prepared):
        return sum(self.sweep(self.constants, old, new, low, high) for low, high in prepared)


# A thread a cell. Compiled without contraction to fused multiply-adds, so that every bit is the CPU's. The constants,
# which are used once, are marked to leave the caches first. Each block leaves its part of the sum of squares in `sums`.
KERNEL = r"""
extern "C" __global__ void __launch_bounds__(256)
sweep(const float* __restrict__ constants, long long plane, const float* __restrict__ old, float* __restrict__ next,
      double* sums, long long si, long long sj, int i0, int i1, int j0, int j1, int k0, int k1, int first_k) {
  const int k = first_k + blockIdx.x * blockDim.x + threadIdx.x;
  const int j = j0 + blockIdx.y * blockDim.y + threadIdx.y;
  const int i = i0 + blockIdx.z * blockDim.z + threadIdx.z;
  double gosa = 0;
  if (k >= k0 && k < k1 && j < j1 && i < i1) {
    const long long n = i * si + j * sj + k;
    const float* m = constants + n;
    const float* p = old + n;
    const float sum = __ldcs(m) * p[si] + __ldcs(m + plane) * p[sj] + __ldcs(m + 2 * plane) * p[1] +
                      __ldcs(m + 4 * plane) * (p[si + sj] - p[si - sj] - p[sj - si] + p[-si - sj]) +
                      __ldcs(m + 5 * plane) * (p[sj + 1] - p[1 - sj] - p[sj - 1] + p[-sj - 1]) +
                      __ldcs(m + 6 * plane) * (p[si + 1] - p[1 - si] - p[si - 1] + p[-si - 1]) +
                      __ldcs(m + 7 * plane) * p[-si] + __ldcs(m + 8 * plane) * p[-sj] +
                      __ldcs(m + 9 * plane) * p[-1] + __ldcs(m + 11 * plane);
    const float residual = (sum * __ldcs(m + 3 * plane) - p[0]) * __ldcs(m + 10 * plane);
    next[n] = p[0] + 0.8f * residual;
    gosa = (double)(residual * residual);
  }
  __shared__ double of_warp[8];
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  for (int step = 16; step > 0; step /= 2) gosa += __shfl_xor_sync(~0u, gosa, step);
  if (thread % 32 == 0) of_warp[thread / 32] = gosa;
  __syncthreads();
  if (thread != 0) return;
  for (int warp = 1; warp < blockDim.x * blockDim.y * blockDim.z / 32; ++warp) gosa += of_warp[warp];
  sums[(blockIdx.z * (long long)gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = gosa;
}
"""
LINE = 32  # cells in a line of the GPU's cache


class OnGpu:
    """Sweeps over copies of the field `p` with CuPy, in its current stream."""

    name = "CuPy"

    def __init__(self, p):
        import cupy

        self.cupy = cupy
        self.look = cupy.asarray
        self.kernel = cupy.RawKernel(KERNEL, "sweep", options=("--fmad=false",))
        self.plane = p.nbytes // 4
        self.strides = [np.int64(stride // 4) for stride in p.array.strides[:2]]
        self.constants = cupy.repeat(cupy.asarray(CONSTANTS), self.plane)

    @staticmethod
    def layout(grid):
        """Every row's first cell begins a line: the shadow below takes a whole one, the row is padded to whole ones."""
        row = grid.box_of(0)[2]
        return {"shadow": (1, 1, (LINE, 1)), "pad": -(row.stop - row.start + 1) % LINE, "memory": "device"}

    def prepare(self, boxes):
        """The launches for boxes. Blocks are long in k, where memory is contiguous, and two planes thick."""
        launches = []
        for i, j, k in boxes:
            first = k.start // LINE * LINE if k.stop - k.start > 1 else k.start
            cells = [max(1, n) for n in (k.stop - first, j.stop - j.start, i.stop - i.start)]
            powers = [1 << (n - 1).bit_length() for n in cells]
            x = min(64, powers[0])
            y = min(256 // x // min(2, powers[2]), powers[1])
            z = min(64, 256 // (x * y))
            blocks = tuple(-(-n // of) for n, of in zip(cells, (x, y, z)))
            sums = self.cupy.zeros(int(np.prod(blocks)))
            limits = [np.int32(n) for n in (i.start, i.stop, j.start, j.stop, k.start, k.stop, first)]
            launches.append((blocks, (x, y, z), (sums, *self.strides, *limits)))
        return launches

    def __call__(self, old, new, launches):
        for blocks, threads, rest in launches:
            self.kernel(blocks, threads, (self.constants, np.int64(self.plane), old, new, *rest))


def start_values(extents, box):
    i, _, _ = np.ogrid[box]
    return np.broadcast_to((i * i / (extents[0] - 1) ** 2).astype(np.float32), [s.stop - s.start for s in box])


def serial(extents, iterations):
    """The whole array on one rank, without Tasuki. The outermost cells never change."""
    old = start_values(extents, tuple(slice(0, n) for n in extents)).copy()
    new = old.copy()
    sweep = OnHost(extents)
    inside = sweep.prepare([tuple(slice(1, n - 1) for n in extents)])
    for _ in range(iterations):
        sweep(old, new, inside)
        old, new = new, old
    return old


class Solver:
    """One rank's part: the pressure in two copies, its halo, and what an iteration is."""

    def __init__(self, context, extents, on_gpu):
        grid = tasuki.Grid(context, extents)
        self.p = p = tasuki.Field(grid, "float32", name="p", copies=2, **(OnGpu.layout(grid) if on_gpu else {}))
        self.sweep = OnGpu(p) if on_gpu else OnHost(p.shape)
        self.copies = [self.sweep.look(p.array), self.sweep.look(p.next)]
        self.halo = tasuki.Halo(p, width=1, alternating=True)  # p is swapped once between two starts
        width = [int(parts > 1) for parts in grid.split]  # what faces a neighbour must be there before the halo
        self.sides = self.sweep.prepare([self.inside(box, extents) for box in p.boundary(width)])
        self.rest = self.sweep.prepare([self.inside(p.interior(width), extents)])
        nothing = self.sweep.prepare([(slice(1, 1),) * 3])
        self.sweep(self.copies[0], self.copies[1], nothing)  # compiles
        values = np.zeros(p.shape, np.float32)
        values[p.local_box] = start_values(extents, p.box)
        for _ in range(2):  # cells that are never computed are the same in both copies
            p.upload(values)
            p.swap()
        self.halo.run()
        p.swap()
        self.halo.run()

    def inside(self, box, extents):
        """`box`, in local indices, without the array's outermost cells, which are given and never computed."""
        result = []
        for part, owned, width, extent in zip(box, self.p.box, self.p.shadow, extents):
            to_local = width[0] - owned.start
            low = max(part.start, 1 + to_local)
            result.append(slice(low, max(low, min(part.stop, extent - 1 + to_local))))
        return tuple(result)

    def iterate(self):
        old = self.copies[self.p.current]
        self.p.swap()
        new = self.copies[self.p.current]
        self.sweep(old, new, self.sides)
        with self.halo.overlap():
            self.sweep(old, new, self.rest)


def captured(stream, iterate, count):
    """A CUDA graph of `count` iterations."""
    stream.begin_capture()
    for _ in range(count):
        iterate()
    graph = stream.end_capture()
    graph.upload(stream)
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="33x33x65", help="cells, as IxJxK (default %(default)s)")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--no-graphs", action="store_true", help="on GPUs: launch every kernel from Python")
    parser.add_argument("--no-check", action="store_true", help="leave out the serial run, which takes long")
    arguments = parser.parse_args()
    extents = tuple(int(n) for n in arguments.size.split("x"))
    on_gpu = arguments.device == "gpu"
    if on_gpu and tasuki.why_no_gpu():
        sys.exit(f"--device gpu needs a GPU: {tasuki.why_no_gpu()}")

    context = tasuki.Context()
    stream: Any = None
    if on_gpu:
        import cupy

        cupy.cuda.Device(tasuki.use_gpu(context)).use()
        stream = cupy.cuda.Stream(non_blocking=True)
        stream.use()  # from here on it is what Tasuki's halos go into, too
    solver = Solver(context, extents, on_gpu)
    # An even number: a field with two copies is captured as they are shown.
    in_graph = 0 if stream is None or arguments.no_graphs else min(20, arguments.iterations) // 2 * 2
    graph: Any = captured(stream, solver.iterate, in_graph) if in_graph else None

    tasuki.synchronize(context)
    context.barrier()
    begin = time.perf_counter()
    replays = arguments.iterations // in_graph if in_graph else 0
    for _ in range(replays):
        graph.launch(stream)
    for _ in range(arguments.iterations - replays * in_graph):
        solver.iterate()
    tasuki.synchronize(context)
    context.barrier()
    seconds = time.perf_counter() - begin

    if not arguments.no_check:
        result = solver.p.download()[solver.p.local_box]
        np.testing.assert_array_equal(result, serial(extents, arguments.iterations)[solver.p.box])
    if context.rank == 0:
        rate = np.prod([n - 2 for n in extents]) * arguments.iterations * FLOPS_A_CELL / seconds * 1e-6
        how = solver.sweep.name + (" and graphs" if in_graph else "")
        outcome = "not checked" if arguments.no_check else "equal to the serial run"
        print(
            f"Himeno {arguments.size} on {context.size} ranks with {how}: "
            f"{seconds / arguments.iterations * 1e6:.0f} us an iteration, {rate:.0f} MFLOPS; {outcome}"
        )


if __name__ == "__main__":
    main()
