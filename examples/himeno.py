"""The Himeno benchmark (a Jacobi solver of Poisson's equation, 19 points) in Python, compiled by Numba.

    tasuki run -n 4 examples/himeno.py --size 33x33x65

Each rank computes the planes next to its neighbours, starts the halo, and computes the rest while it travels. The
pressure is checked, bit for bit, against the same loops over the whole array.
"""

import argparse
import time

import numba
import numpy as np

import tasuki

OMEGA = np.float32(0.8)
FLOPS_A_CELL = 34


@numba.njit(fastmath=False, cache=False)
def jacobi(a, b, c, bound, wrk1, old, new, low, high):
    """One sweep over the cells low <= (i, j, k) < high; returns the sum of the squared corrections."""
    gosa = 0.0
    for i in range(low[0], high[0]):
        for j in range(low[1], high[1]):
            for k in range(low[2], high[2]):
                s0 = (
                    a[0, i, j, k] * old[i + 1, j, k]
                    + a[1, i, j, k] * old[i, j + 1, k]
                    + a[2, i, j, k] * old[i, j, k + 1]
                    + b[0, i, j, k]
                    * (old[i + 1, j + 1, k] - old[i + 1, j - 1, k] - old[i - 1, j + 1, k] + old[i - 1, j - 1, k])
                    + b[1, i, j, k]
                    * (old[i, j + 1, k + 1] - old[i, j - 1, k + 1] - old[i, j + 1, k - 1] + old[i, j - 1, k - 1])
                    + b[2, i, j, k]
                    * (old[i + 1, j, k + 1] - old[i - 1, j, k + 1] - old[i + 1, j, k - 1] + old[i - 1, j, k - 1])
                    + c[0, i, j, k] * old[i - 1, j, k]
                    + c[1, i, j, k] * old[i, j - 1, k]
                    + c[2, i, j, k] * old[i, j, k - 1]
                    + wrk1[i, j, k]
                )
                ss = (s0 * a[3, i, j, k] - old[i, j, k]) * bound[i, j, k]
                gosa += ss * ss
                new[i, j, k] = old[i, j, k] + OMEGA * ss
    return gosa


class Coefficients:
    """The benchmark's constant coefficients, for arrays of `shape` with their shadow."""

    def __init__(self, shape):
        ones = np.ones(shape, np.float32)
        self.a = np.stack([ones, ones, ones, np.float32(1 / 6) * ones])
        self.b = np.zeros((3, *shape), np.float32)
        self.c = np.stack([ones, ones, ones])
        self.bound = ones
        self.wrk1 = np.zeros(shape, np.float32)

    def sweep(self, old, new, box):
        low = tuple(s.start for s in box)
        high = tuple(s.stop for s in box)
        return jacobi(self.a, self.b, self.c, self.bound, self.wrk1, old, new, low, high)


def start_values(extents, box):
    i, _, _ = np.ogrid[box]
    return np.broadcast_to((i * i / (extents[0] - 1) ** 2).astype(np.float32), [s.stop - s.start for s in box])


def serial(extents, iterations):
    """The whole array on one rank, without Tasuki. The outermost cells never change."""
    old = start_values(extents, tuple(slice(0, n) for n in extents)).copy()
    new = old.copy()
    coefficients = Coefficients(extents)
    for _ in range(iterations):
        coefficients.sweep(old, new, tuple(slice(1, n - 1) for n in extents))
        old, new = new, old
    return old


def inner(box, global_box, shadow, extents):
    """`box`, in local indices, without the array's outermost cells, which are given and never computed."""
    result = []
    for part, owned, width, extent in zip(box, global_box, shadow, extents):
        to_local = width[0] - owned.start
        result.append(slice(max(part.start, 1 + to_local), max(1, min(part.stop, extent - 1 + to_local))))
    return tuple(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="33x33x65", help="cells, as IxJxK (default %(default)s)")
    parser.add_argument("--iterations", type=int, default=20)
    arguments = parser.parse_args()
    extents = tuple(int(n) for n in arguments.size.split("x"))

    context = tasuki.Context()
    grid = tasuki.Grid(context, extents)
    p = tasuki.Field(grid, "float32", name="p", copies=2)
    for _ in range(2):  # cells that are never computed are the same in both copies
        p.owned[...] = start_values(extents, p.box)
        p.swap()
    halo = tasuki.Halo(p)
    coefficients = Coefficients(p.shape)
    coefficients.sweep(p.array, p.next, (slice(1, 1),) * 3)  # compiles
    for _ in range(2):
        halo.start()
        halo.wait()
        p.swap()
    context.barrier()
    begin = time.perf_counter()
    for _ in range(arguments.iterations):
        old = p.array
        p.swap()
        for box in p.boundary():
            coefficients.sweep(old, p.array, inner(box, p.box, p.shadow, extents))
        with halo.overlap():
            coefficients.sweep(old, p.array, inner(p.interior(), p.box, p.shadow, extents))
    context.barrier()
    seconds = time.perf_counter() - begin

    np.testing.assert_array_equal(p.owned, serial(extents, arguments.iterations)[p.box])
    if context.rank == 0:
        cells = np.prod([n - 2 for n in extents]) * arguments.iterations
        rate = cells * FLOPS_A_CELL / seconds * 1e-6
        print(
            f"Himeno {arguments.size} on {context.size} ranks: {seconds / arguments.iterations * 1e6:.0f} us "
            f"an iteration, {rate:.0f} MFLOPS; equal to the serial run"
        )


if __name__ == "__main__":
    main()
