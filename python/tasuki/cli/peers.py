"""What `tasuki bench --part python` runs on the ranks: exchanges in Python by Tasuki, mpi4py and GHEX, in turn.

    python -m tasuki.cli.peers FILE ROUNDS TEXT PEER...

The cases of the C++ driver's group `halo` whose names contain TEXT: every rank has boxes of doubles with a shadow,
periodic in all dimensions, corners included; and those of its group `mesh`: ghosts of a mesh of N x N cells in a
scrambled order, cut by wavy lines, with levels of doubles a cell.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import tasuki
from tasuki.meshes import wavy_mesh

ROUND_SECONDS = 0.02
# Cells a side of a rank's cube, width of its shadow, fields; the dimension that is split over the ranks.
MESHES = [(300, 1), (300, 60), (1000, 1), (1000, 80)]  # cells a side, levels
CASES = list(itertools.product([(16, 1, 1), (64, 1, 1), (64, 1, 4), (128, 2, 1)], range(3)))


class Problem:
    """Which cells a rank has, and what they must hold."""

    def __init__(self, comm, cells: int, width: int, fields: int, split: list[int]) -> None:
        self.comm, self.cells, self.width, self.fields, self.split = comm, cells, width, fields, split
        self.cart = comm.Create_cart(self.split, periods=[True] * 3)
        self.lo = [c * cells for c in self.cart.Get_coords(comm.Get_rank())]
        self.shape = [cells + 2 * width] * 3
        self.owned = (slice(width, width + cells),) * 3
        self.bytes = 8 * fields * ((cells + 2 * width) ** 3 - cells**3)

    def values(self, epoch: int, field: int) -> np.ndarray:
        """What the whole local array of a field must hold after the exchange."""
        total = 0
        for d in range(3):
            extent = self.cells * self.split[d]
            index = (np.arange(self.shape[d]) + self.lo[d] - self.width) % extent
            total = total * 1000 + index.reshape([-1 if k == d else 1 for k in range(3)])
        return total + 0.125 * epoch + 0.015625 * field


class Mesh:
    """The same for the ghosts of a mesh."""

    fields = 1

    def __init__(self, comm, side: int, levels: int, shared: bool) -> None:
        self.comm, self.levels, self.shared = comm, levels, shared
        self.part = wavy_mesh(side, comm.Get_size())[comm.Get_rank()]
        self.numbers = np.concatenate([self.part.owned, self.part.ghosts])
        self.shape = (self.part.cells, levels)
        self.owned = slice(0, len(self.part.owned))
        self.bytes = comm.allreduce(8 * levels * len(self.part.ghosts), max_of())

    def values(self, epoch: int, field: int) -> np.ndarray:
        """What the cells must hold after the exchange."""
        return self.numbers[:, None] * 100.0 + np.arange(self.levels) + 0.125 * epoch + field


class Tasuki:
    def __init__(self, problem: Problem) -> None:
        self.context = tasuki.Context(problem.comm)
        extents = [problem.cells * s for s in problem.split]
        grid = tasuki.Grid(self.context, extents, split=problem.split, periodic=True)
        fields = [tasuki.Field(grid, "float64", shadow=problem.width) for _ in range(problem.fields)]
        self.halo = tasuki.Halo(fields)
        self.arrays = [field.array for field in fields]

    def exchange(self) -> None:
        self.halo.start()
        self.halo.wait()


class Mpi4py:
    """Persistent requests on sub-array datatypes, one a field and direction."""

    def __init__(self, problem: Problem) -> None:
        from mpi4py import MPI

        self.arrays = [np.zeros(problem.shape) for _ in range(problem.fields)]
        self.requests = []
        self.all = MPI.Prequest.Startall, MPI.Prequest.Waitall
        w, n = problem.width, problem.cells
        coords = problem.cart.Get_coords(problem.comm.Get_rank())
        ways = [way for way in itertools.product((-1, 0, 1), repeat=3) if any(way)]
        for number, (array, way) in enumerate(itertools.product(self.arrays, ways)):
            size = [n if s == 0 else w for s in way]
            out = [{-1: w, 0: w, 1: n}[s] for s in way]
            into = [{-1: n + w, 0: w, 1: 0}[s] for s in way]
            for make, start, other, sign in (
                (problem.comm.Send_init, out, way, 1),
                (problem.comm.Recv_init, into, way, -1),
            ):
                kind = MPI.DOUBLE.Create_subarray(problem.shape, size, start).Commit()
                at = [(c + sign * s) % p for c, s, p in zip(coords, other, problem.split)]
                self.requests.append(make([array, 1, kind], problem.cart.Get_cart_rank(at), number))

    def exchange(self) -> None:
        start, wait = self.all
        start(self.requests)
        wait(self.requests)


class Ghex:
    def __init__(self, problem: Problem) -> None:
        from ghex.context import make_context
        from ghex.structured.cartesian_sets import IndexSpace
        from ghex.structured.regular import (
            DomainDescriptor,
            HaloGenerator,
            make_communication_object,
            make_field_descriptor,
            make_pattern,
        )

        context = make_context(problem.cart, False)
        widths = ((problem.width,) * 2,) * 3
        whole = IndexSpace.from_sizes(*[problem.cells * s for s in problem.split])
        coords = tuple(problem.cart.Get_coords(problem.cart.Get_rank()))
        owned = whole.decompose(problem.split)[coords].subset["definition"]
        domain = DomainDescriptor(context.rank(), owned)
        halo = HaloGenerator(whole.subset["definition"], widths, (True,) * 3)
        self.arrays = [np.zeros(problem.shape) for _ in range(problem.fields)]
        self.pattern = make_pattern(context, halo, [domain])
        self.keep = [
            make_field_descriptor(domain, array, (problem.width,) * 3, tuple(problem.shape)) for array in self.arrays
        ]
        self.exchanger, self.infos = make_communication_object(context), [self.pattern(f) for f in self.keep]

    def exchange(self) -> None:
        self.exchanger.exchange(self.infos).wait()


class TasukiMesh:
    def __init__(self, problem: Mesh) -> None:
        self.context = tasuki.Context(problem.comm)
        make = (lambda shape: tasuki.shared_array(self.context, shape)) if problem.shared else np.zeros
        self.arrays = [make(problem.shape)]
        self.operation = tasuki.Exchange(self.context, self.arrays[0], problem.part.entries)

    def exchange(self) -> None:
        self.operation.start()
        self.operation.wait()


class Mpi4pyMesh:
    """Persistent requests on indexed datatypes, one a rank and direction."""

    def __init__(self, problem: Mesh) -> None:
        from mpi4py import MPI

        self.arrays = [np.zeros(problem.shape)]
        self.requests = []
        self.all = MPI.Prequest.Startall, MPI.Prequest.Waitall
        for rank, sent, received in problem.part.entries:
            for make, cells in ((problem.comm.Send_init, sent), (problem.comm.Recv_init, received)):
                if len(cells):
                    at = (np.asarray(cells) * problem.levels).tolist()
                    kind = MPI.DOUBLE.Create_indexed_block(problem.levels, at).Commit()
                    self.requests.append(make([self.arrays[0], 1, kind], rank))

    def exchange(self) -> None:
        start, wait = self.all
        start(self.requests)
        wait(self.requests)


class GhexMesh:
    def __init__(self, problem: Mesh) -> None:
        from ghex.context import make_context
        from ghex.unstructured import (
            DomainDescriptor,
            HaloGenerator,
            make_communication_object,
            make_field_descriptor,
            make_pattern,
        )

        context = make_context(problem.comm, False)
        numbers = problem.numbers.astype(np.int32)
        ghosts = np.arange(len(problem.part.owned), problem.part.cells, dtype=np.int32)
        domain = DomainDescriptor(context.rank(), numbers, ghosts)
        halo = HaloGenerator.from_gids(problem.part.ghosts.astype(np.int32))
        self.pattern = make_pattern(context, halo, [domain])
        self.arrays = [np.zeros(problem.shape if problem.levels > 1 else problem.shape[:1])]
        self.field = make_field_descriptor(domain, self.arrays[0])
        self.arrays[0] = self.arrays[0].reshape(problem.shape)
        self.exchanger, self.infos = make_communication_object(context), [self.pattern(self.field)]

    def exchange(self) -> None:
        self.exchanger.exchange(self.infos).wait()


HALO_PEERS = {"tasuki": Tasuki, "mpi4py": Mpi4py, "ghex": Ghex}
MESH_PEERS = {"tasuki": TasukiMesh, "mpi4py": Mpi4pyMesh, "ghex": GhexMesh}


def wrong(problem: Problem, peer) -> str:
    """Runs three epochs with new data; empty if all cells are right on all ranks."""
    bad = 0
    for epoch in range(1, 4):
        expected = [problem.values(epoch, field) for field in range(problem.fields)]
        for array, values in zip(peer.arrays, expected):
            array[...] = -1
            array[problem.owned] = values[problem.owned]
        problem.comm.Barrier()
        peer.exchange()
        bad += sum(int((array != values).sum()) for array, values in zip(peer.arrays, expected))
    bad = problem.comm.allreduce(bad)
    return f"{bad} cells are wrong" if bad else ""


def seconds(problem: Problem, peer, iterations: int) -> float:
    problem.comm.Barrier()
    begin = time.perf_counter()
    for _ in range(iterations):
        peer.exchange()
    return problem.comm.allreduce(time.perf_counter() - begin, max_of()) / iterations


def max_of():
    from mpi4py import MPI

    return MPI.MAX


def name_of(cells: int, width: int, fields: int, split: list[int]) -> str:
    """As in the C++ driver."""
    several = f" x {fields} fields" if fields > 1 else ""
    return f"{cells}^3 w{width}{several} split {'x'.join(map(str, split))}"


def measure(problem: Problem | Mesh, group: str, case: str, names: list[str], rounds: int) -> dict:
    peers, init, failed = {}, {}, []
    of_names = MESH_PEERS if isinstance(problem, Mesh) else HALO_PEERS
    for name in names:
        begin = time.perf_counter()
        peers[name] = of_names[name](problem)
        init[name] = (time.perf_counter() - begin) * 1e6
        complaint = wrong(problem, peers[name])
        if complaint:
            failed.append(f"{name}: {complaint}")
    counts = {n: max(1, int(ROUND_SECONDS / max(seconds(problem, p, 10), 1e-7))) for n, p in peers.items()}
    samples = {n: [] for n in peers}
    for _ in range(rounds):
        for name, peer in peers.items():
            samples[name].append(seconds(problem, peer, counts[name]) * 1e6)
    times = {
        name: {
            **{key: float(np.percentile(s, q)) for key, q in (("median_us", 50), ("p10_us", 10), ("p90_us", 90))},
            "init_us": init[name],
            "iterations": counts[name] * rounds,
        }
        for name, s in samples.items()
    }
    own = times["tasuki"]["median_us"]
    return {
        "group": group,
        "case": case,
        "bytes": problem.bytes,
        "peers": times,
        "ratios": {name: t["median_us"] / own for name, t in times.items() if name != "tasuki"},
        "failed": failed,
    }


def main() -> None:
    # mpi4py's wheel takes the MPI library that this names.
    os.environ.setdefault("MPI4PY_LIBMPI", tasuki._core.mpi_library())
    from mpi4py import MPI

    file, rounds, text, *names = sys.argv[1:]
    comm = MPI.COMM_WORLD
    wanted: dict[tuple[str, str], Callable[[], Problem | Mesh]] = {}
    for shape, d in CASES:
        split = [comm.size if d == k else 1 for k in range(3)]
        # One rank has one split.
        wanted["halo-python", name_of(*shape, split)] = partial(Problem, comm, *shape, split)
    for shared, (side, levels) in itertools.product((True, False), MESHES if comm.size > 1 else []):
        several = f"{levels} level{'s' * (levels > 1)}, {'shared' if shared else 'own memory'}"
        case = f"{side} x {side} cells, {several} on {comm.size} ranks"
        wanted["mesh-python", case] = partial(Mesh, comm, side, levels, shared)
    wanted = {names: make for names, make in wanted.items() if text in f"{names[0]}: {names[1]}"}
    cases = []
    for (group, case), make in wanted.items():
        if comm.rank == 0:
            print(f"{len(cases)} of {len(wanted)}: {group}: {case}", file=sys.stderr, flush=True)
        cases.append(measure(make(), group, case, names, int(rounds)))
    if comm.rank == 0:
        Path(file).write_text(json.dumps(cases))


if __name__ == "__main__":
    main()
