"""The Himeno benchmark (a Jacobi solver of Poisson's equation, 19 points) in Python: Numba or NumPy, CuPy on GPUs.

    tasuki run -n 4 examples/himeno.py --size 33x33x65
    tasuki run -n 4 examples/himeno.py --size 257x257x513 --iterations 1000 --device gpu --no-check

Each rank computes the cells that its neighbours need, starts the halo, and computes the rest while it travels; on GPUs,
CUDA graphs replay that. The pressure is checked, bit for bit, against the same arithmetic on the whole array.
"""

import argparse
import sys
import time
from contextlib import nullcontext
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
        self.constants = np.repeat(CONSTANTS, np.prod(shape)).reshape(-1, *shape)

    def prepare(self, boxes):
        return [(tuple(s.start for s in box), tuple(s.stop for s in box)) for box in boxes]

    def __call__(self, old, new, prepared):
        return sum(self.sweep(self.constants, old, new, low, high) for low, high in prepared)

    def step(self, halo, old, new, sides, rest):
        self(old, new, sides)
        with halo.overlap():
            self(old, new, rest)


# A thread computes V neighbouring cells of a row, loaded together where rows are aligned; a block, a tile of one of the
# boxes. Compiled without contraction to fused multiply-adds, so that every bit is the CPU's. The constants, which are
# used once, are marked to leave the caches first. Each warp leaves its part of the sum of squares in `sums`.
KERNEL = r"""
struct Box {
  int first_block, tiles_j, tiles_k;  // its blocks: k runs fastest, then j, then i
  int log_j, log_k;                   // a block has 2^log_k threads along k, 2^log_j along j, the rest along i
  int i, j, k, end_i, end_j, end_k;   // the cells to compute
};
__constant__ const Box boxes[] = {BOXES};
union Group { CELLS cells; float at[V]; };
__device__ Group load(const float* p, bool once = false) {
  return {once ? __ldcs((const CELLS*)p) : __ldg((const CELLS*)p)};
}
struct Row {  // a group with the cells beside it
  float at[V + 2];
  __device__ explicit Row(const float* p) {
    const Group group = load(p);
    at[0] = __ldg(p - 1);
    for (int c = 0; c < V; ++c) at[c + 1] = group.at[c];
    at[V + 1] = __ldg(p + V);
  }
};

extern "C" __global__ void __launch_bounds__(256, 2)
sweep(const float* __restrict__ constants, const float* __restrict__ old, float* __restrict__ next, double* sums) {
  int b = 0;
  while (b + 1 < sizeof boxes / sizeof(Box) && blockIdx.x >= boxes[b + 1].first_block) ++b;
  const Box& box = boxes[b];
  const int tile = blockIdx.x - box.first_block, row = tile / box.tiles_k, log_jk = box.log_j + box.log_k;
  const int in_k = threadIdx.x & ((1 << box.log_k) - 1), in_jk = threadIdx.x & ((1 << log_jk) - 1);
  const int i = box.i + (row / box.tiles_j << (8 - log_jk)) + (threadIdx.x >> log_jk);
  const int j = box.j + (row % box.tiles_j << box.log_j) + (in_jk >> box.log_k);
  const int k = (box.k / V + (tile % box.tiles_k << box.log_k) + in_k) * V;
  double gosa = 0;
  if (i < box.end_i && j < box.end_j && k < box.end_k) {
    const long long n = i * SI + j * SJ + k;
    const float* p = old + n;
    Group m[12], result;
    for (int a = 0; a < 12; ++a) m[a] = load(constants + a * PLANE + n, true);
    const Row here(p), jm(p - SJ), jp(p + SJ), im(p - SI), ip(p + SI);
    const Group mm = load(p - SI - SJ), mp = load(p - SI + SJ), pm = load(p + SI - SJ), pp = load(p + SI + SJ);
    const bool whole = k >= box.k && k + V <= box.end_k;
    for (int c = 0, r = 1; c < V; ++c, ++r) {  // in a group and in a row
      const float sum = m[0].at[c] * ip.at[r] + m[1].at[c] * jp.at[r] + m[2].at[c] * here.at[r + 1] +
                        m[4].at[c] * (pp.at[c] - pm.at[c] - mp.at[c] + mm.at[c]) +
                        m[5].at[c] * (jp.at[r + 1] - jm.at[r + 1] - jp.at[r - 1] + jm.at[r - 1]) +
                        m[6].at[c] * (ip.at[r + 1] - im.at[r + 1] - ip.at[r - 1] + im.at[r - 1]) +
                        m[7].at[c] * im.at[r] + m[8].at[c] * jm.at[r] + m[9].at[c] * here.at[r - 1] + m[11].at[c];
      const float residual = (sum * m[3].at[c] - here.at[r]) * m[10].at[c];
      result.at[c] = here.at[r] + 0.8f * residual;
      if (k + c < box.k || k + c >= box.end_k) continue;
      gosa += (double)(residual * residual);
      if (!whole) next[n + c] = result.at[c];
    }
    if (whole) __stwb((CELLS*)(next + n), result.cells);  // in one store
  }
  for (int step = 16; step > 0; step /= 2) gosa += __shfl_xor_sync(~0u, gosa, step);
  if (threadIdx.x % 32 == 0) sums[blockIdx.x * 8 + threadIdx.x / 32] = gosa;
}
"""
LINE = 32  # cells in a line of the GPU's cache


class OnGpu:
    """Sweeps over copies of the field `p` with CuPy, in its current stream."""

    name = "CuPy"

    def __init__(self, p):
        import cupy

        self.cupy, self.look = cupy, cupy.asarray
        self.plane = p.nbytes // 4
        self.strides = [stride // 4 for stride in p.array.strides[:2]]
        self.constants = cupy.repeat(cupy.asarray(CONSTANTS), self.plane)
        self.fork = tasuki.Fork()
        self.ahead = cupy.cuda.Stream.from_external(self.fork.branch())

    @staticmethod
    def layout(grid):
        """Every row's first cell begins a line: the shadow below takes a whole one, the row is padded to whole ones."""
        row = grid.box_of(0)[2]
        return {"shadow": (1, 1, (LINE, 1)), "pad": -(row.stop - row.start + 1) % LINE, "memory": "device"}

    def prepare(self, boxes):
        """One launch for all boxes: a kernel compiled for them, its blocks, the sums that it leaves."""
        v = 1 if any(stride % 4 for stride in self.strides) else 4  # only ranks with shorter rows than the first's
        described, blocks = [], 0
        for i, j, k in (box for box in boxes if all(s.start < s.stop for s in box)):
            rows = i.stop - i.start, j.stop - j.start
            groups = -(-k.stop // v) - k.start // v
            # Threads along k as far as there are groups, up to 32; then two along i, and the rest along j.
            log_k = min(5, (groups - 1).bit_length())
            log_j = min(8 - log_k - min(1, (rows[0] - 1).bit_length()), (rows[1] - 1).bit_length())
            tiles = [-(-n >> log) for n, log in zip((*rows, groups), (8 - log_j - log_k, log_j, log_k))]
            described.append([blocks, *tiles[1:], log_j, log_k, i.start, j.start, k.start, i.stop, j.stop, k.stop])
            blocks += tiles[0] * tiles[1] * tiles[2]
        options = ["--fmad=false", f"-DV={v}", f"-DCELLS={'float4' if v == 4 else 'float'}", f"-DPLANE={self.plane}ll"]
        options += [f"-DSI={self.strides[0]}ll", f"-DSJ={self.strides[1]}ll"]
        options += ["-DBOXES=" + ",".join(f"{{{','.join(map(str, box))}}}" for box in described)]
        return self.cupy.RawKernel(KERNEL, "sweep", options=tuple(options)), blocks, self.cupy.zeros(8 * blocks)

    def __call__(self, old, new, launch):
        kernel, blocks, sums = launch
        if blocks > 0:
            kernel((blocks,), (256,), (self.constants, old, new, sums))

    def step(self, halo, old, new, sides, rest):
        """The sides, then the exchange that needs them, go ahead in a second stream beside the rest."""
        self.fork.branch()
        with self.ahead:
            self(old, new, sides)
            halo.run()
        self(old, new, rest)
        self.fork.join()


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
        # p is swapped once between two starts; few blocks on a GPU, where the interior hides the exchange.
        self.halo = tasuki.Halo(p, width=1, alternating=True, blocks=32 if on_gpu else 0)
        width = [int(parts > 1) for parts in grid.split]  # what faces a neighbour must be there before the halo
        self.sides = self.sweep.prepare([self.inside(box, extents) for box in p.boundary(width)])
        self.rest = self.sweep.prepare([self.inside(p.interior(width), extents)])
        for boxes in self.sides, self.rest:
            self.sweep(self.copies[0], self.copies[1], boxes)  # compiles
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
        self.sweep.step(self.halo, old, self.copies[self.p.current], self.sides, self.rest)


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
    with stream or nullcontext():  # from here on it is what Tasuki's halos go into, too
        run(context, extents, stream, arguments)


def run(context, extents, stream, arguments):
    solver = Solver(context, extents, stream is not None)
    # An even number: a field with two copies is captured as they are shown.
    in_graph = 0 if stream is None or arguments.no_graphs else min(20, arguments.iterations) // 2 * 2
    graph: Any = tasuki.Graph(lambda: [solver.iterate() for _ in range(in_graph)], stream) if in_graph else None

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
            f"{seconds / arguments.iterations * 1e6:.1f} us an iteration, {rate:.0f} MFLOPS; {outcome}"
        )


if __name__ == "__main__":
    main()
