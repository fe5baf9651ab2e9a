"""Slabs in x to slabs in y of an array of complex64, as it is and permuted: Tasuki, Alltoallw with sub-array types, and
packing by hand with Alltoallv. Needs mpi4py.

    tasuki run -n 2 bench/redistribute.py [--sizes 128 256] [--rounds 7]

All take turns in each round; the table has medians of the rounds, of which each is the slowest rank's mean time.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from mpi4py import MPI

import tasuki


class Case:
    """An array with values, on all ranks, and what the ranks' parts of it are to be."""

    def __init__(self, context: tasuki.Context, n: int, permuted: bool) -> None:
        self.context, self.n, self.permuted = context, n, permuted
        ranks = context.size
        # (x, y, z) to (x, y, z), or to (y, x, z), so that lines along x lie together on a rank.
        self.axes = (1, 2, 0) if permuted else (0, 1, 2)
        self.source = tasuki.ArrayDistribution((n, n, n), (ranks, 1, 1))
        split = (ranks, 1, 1) if permuted else (1, ranks, 1)
        self.target = tasuki.ArrayDistribution((n, n, n), split)
        self.cuts = [self.source.indices(rank)[0] for rank in range(ranks)]

    def value(self, x, y, z):
        return (x * 7 + y * 5 + z * 3) % 1021 + 1j * (x % 13)

    def fill(self, a: np.ndarray) -> None:
        a[...] = self.value(*np.ix_(*self.source.indices(self.context.rank)))

    def check(self, b: np.ndarray, name: str) -> None:
        index = np.ix_(*self.target.indices(self.context.rank))
        xyz = [index[self.axes.index(axis)] for axis in range(3)]
        assert (b == self.value(*xyz).astype(b.dtype)).all(), name


def with_tasuki(case: Case, shared: bool):
    def array(distribution):
        shape = distribution.local_shape(case.context.rank)
        return tasuki.shared_array(case.context, shape, "complex64") if shared else np.zeros(shape, "complex64")

    a, b = array(case.source), array(case.target)
    return a, b, tasuki.Redistribute(case.context, (a, case.source), (b, case.target), axes=case.axes).run


def with_types(case: Case):
    """Alltoallw; where axes are permuted the receiver's types put the cells into their places."""
    comm, ranks, me, n = MPI.COMM_WORLD, case.context.size, case.context.rank, case.n
    a = np.zeros(case.source.local_shape(me), "complex64")
    b = np.zeros(case.target.local_shape(me), "complex64")
    sent, received = [], []
    mine = len(case.cuts[me])
    for cut in case.cuts:
        sent.append(MPI.COMPLEX.Create_subarray(a.shape, (mine, len(cut), n), (0, int(cut[0]), 0), MPI.ORDER_C))
        if not case.permuted:
            received.append(MPI.COMPLEX.Create_subarray(b.shape, (len(cut), mine, n), (int(cut[0]), 0, 0), MPI.ORDER_C))
            continue
        # b is [y, z, x]; the cells come in the order x, y, z.
        along_z = MPI.COMPLEX.Create_hvector(n, 1, n * 8)
        along_y = along_z.Create_hvector(mine, 1, n * n * 8)
        along_x = along_y.Create_hvector(len(cut), 1, 8)
        received.append(MPI.Datatype.Create_struct([1], [int(cut[0]) * 8], [along_x]))
    for one in (*sent, *received):
        one.Commit()
    ones, zeros = [1] * ranks, [0] * ranks
    request = (a, ones, zeros, sent), (b, ones, zeros, received)
    return a, b, lambda: comm.Alltoallw(*request)


def by_hand(case: Case):
    """Packs with NumPy, one message from each to each, unpacks with NumPy."""
    comm, me, n = MPI.COMM_WORLD, case.context.rank, case.n
    a = np.zeros(case.source.local_shape(me), "complex64")
    b = np.zeros(case.target.local_shape(me), "complex64")
    mine = len(case.cuts[me])
    counts = [mine * len(cut) * n for cut in case.cuts]
    ends = np.cumsum(counts)
    out, into = np.zeros(ends[-1], "complex64"), np.zeros(ends[-1], "complex64")
    parts = [slice(end - count, end) for count, end in zip(counts, ends)]
    sent = [out[part].reshape(mine, len(cut), n) for part, cut in zip(parts, case.cuts)]
    received = [into[part].reshape(len(cut), mine, n) for part, cut in zip(parts, case.cuts)]

    def run():
        for block, cut in zip(sent, case.cuts):
            block[...] = a[:, cut[0] : cut[-1] + 1]
        comm.Alltoallv((out, counts), (into, counts))
        for block, cut in zip(received, case.cuts):
            if case.permuted:
                b[:, :, cut[0] : cut[-1] + 1] = block.transpose(1, 2, 0)
            else:
                b[cut[0] : cut[-1] + 1] = block

    return a, b, run


def seconds(run, least: float) -> float:
    """The slowest rank's mean time, of as many runs as take about so long."""
    comm = MPI.COMM_WORLD
    comm.Barrier()
    begin = time.perf_counter()
    run()
    times = comm.allreduce(max(1, int(least / max(time.perf_counter() - begin, 1e-6))), op=MPI.MIN)
    comm.Barrier()
    begin = time.perf_counter()
    for _ in range(times):
        run()
    return comm.allreduce((time.perf_counter() - begin) / times, op=MPI.MAX)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.2, help="seconds of each in a round")
    asked = parser.parse_args()
    context = tasuki.Context()
    for n in asked.sizes:
        for permuted in (False, True):
            case = Case(context, n, permuted)
            ways = {
                "tasuki, its memory": with_tasuki(case, True),
                "tasuki, user's memory": with_tasuki(case, False),
                "Alltoallw": with_types(case),
                "pack + Alltoallv": by_hand(case),
            }
            for name, (a, b, run) in ways.items():
                case.fill(a)
                b[...] = 0
                run()
                case.check(b, name)
            taken = {name: [] for name in ways}
            for _ in range(asked.rounds):
                for name, (_, _, run) in ways.items():
                    taken[name].append(seconds(run, asked.least))
            if context.rank == 0:
                best = {name: float(np.median(times)) for name, times in taken.items()}
                ours = best["tasuki, its memory"]
                print(f"{n}^3 complex64, {context.size} ranks, {'permuted' if permuted else 'as it is'}")
                for name, median in best.items():
                    gbytes = n**3 * 8 / context.size / median / 1e9
                    print(f"  {name:<22} {median * 1e6:10.1f} us  {gbytes:6.2f} GB/s a rank  {median / ours:5.2f}")


main()
