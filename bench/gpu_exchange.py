"""Exchanges on a mesh and redistributions, on GPUs: Tasuki beside PyTorch with NCCL.

    tasuki run -n 2 bench/gpu_exchange.py [--part redistribute|mesh] [--only TEXT] [--json FILE]

Needs PyTorch with NCCL and mpi4py; a rank a GPU, on one host. All ways take turns in each round: put into a stream one
by one, and captured in a graph of ten. The table has medians of the rounds, of which each is the slowest rank's mean
time. Before that every result, in a stream and of a graph, is compared bit for bit with what PyTorch computes from the
cells' numbers, for data that are new each time. A rank that fails ends all of them.

Redistribution: an array of complex64 from slabs in x to slabs in y, as it is and with axes permuted. PyTorch packs,
calls `all_to_all_single`, and unpacks where blocks do not come as they are wanted. Mesh: the ghosts of the mesh of
bench/mesh.cpp.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from mpi4py import MPI

import tasuki

comm = MPI.COMM_WORLD
EACH = 10  # exchanges in a graph
LINK = 381e9  # bytes a second each way over NVLink of H100 and H200, both ways at once
SECTOR = 32  # bytes, the least that GPU memory moves


class Ranks:
    """The context, and PyTorch's group of the same ranks."""

    def __init__(self) -> None:
        self.context = tasuki.Context()
        self.rank, self.size = self.context.rank, self.context.size
        self.device = torch.device("cuda", tasuki.use_gpu(self.context))
        torch.cuda.set_device(self.device)
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        # Rank 0's store has a port that the system chose.
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) if self.rank == 0 else None
        port = comm.bcast(store.port if store else 0)
        store = store or dist.TCPStore("127.0.0.1", port, is_master=False)
        dist.init_process_group("nccl", store=store, rank=self.rank, world_size=self.size)

    def zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.device)


class Way:
    """One way of doing a case: `renew` gives the source new values and spoils the target, `right` compares that."""

    def __init__(
        self,
        ranks: Ranks,
        run: Callable[[], None],
        tasukis: bool,
        renew: Callable[[], None],
        right: Callable[[], bool],
    ) -> None:
        self.ranks, self.run, self.tasukis = ranks, run, tasukis
        self.renew, self.right = renew, right
        self.replay: Callable[[], None] | None = None

    def several(self) -> None:
        for _ in range(EACH):
            self.run()

    def capture(self) -> None:
        self.several()
        torch.cuda.synchronize()
        comm.Barrier()
        time.sleep(0.3)  # until NCCL's watchdog asks for nothing, which a capture would take for its own
        if self.tasukis:
            graph = tasuki.Graph(self.several, self.ranks.stream.cuda_stream)
            self.replay = lambda: graph.launch(self.ranks.stream.cuda_stream)
        else:
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured, stream=self.ranks.stream, capture_error_mode="thread_local"):
                self.several()
            self.replay = captured.replay
        torch.cuda.synchronize()
        comm.Barrier()

    def verify(self, run: Callable[[], None], what: str) -> None:
        for _ in range(2):
            self.renew()
            torch.cuda.synchronize()
            comm.Barrier()  # nobody's target is spoiled later
            run()
            torch.cuda.synchronize()
            agreed(self.right(), what)

    def seconds(self, times: int, graph: bool) -> float:
        """Of an exchange, on the slowest rank."""
        run = self.replay if graph and self.replay else self.several
        torch.cuda.synchronize()
        comm.Barrier()
        begin = time.perf_counter()
        for _ in range(times):
            run()
        torch.cuda.synchronize()
        return comm.allreduce(time.perf_counter() - begin, op=MPI.MAX) / times / EACH


def race(ways: dict[str, Way], case: str, rounds: int, least: float) -> dict[str, list[float]]:
    """µs of each round; those of graphs have the name of the way and `graph`."""
    runs = {}
    for name, way in ways.items():
        way.verify(way.run, f"{case}, {name}")
        way.capture()
        assert way.replay is not None
        way.verify(way.replay, f"{case}, {name} graph")
        for graph in (False, True):
            way.seconds(2, graph)
            times = max(2, int(least / EACH / max(way.seconds(3, graph), 1e-7)))
            runs[f"{name} graph" if graph else name] = (way, times, graph)
    found: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(rounds):
        for i in range(len(names)):
            name = names[(turn + i) % len(names)]
            way, times, graph = runs[name]
            found[name].append(round(way.seconds(times, graph) * 1e6, 3))
    return found


def agreed(ok: bool, what: str) -> None:
    """All ranks go on, or none."""
    if not comm.allreduce(ok, op=MPI.LAND):
        raise AssertionError(f"{what}: wrong data")


# Redistribution.


def redistribution(ranks: Ranks, n: int, permuted: bool) -> tuple[dict[str, Way], dict[str, Any]]:
    size, me = ranks.size, ranks.rank
    axes = (1, 2, 0) if permuted else (0, 1, 2)
    source = tasuki.ArrayDistribution((n, n, n), (size, 1, 1))
    target = tasuki.ArrayDistribution((n, n, n), (size, 1, 1) if permuted else (1, size, 1))
    mine = n // size

    def values(x: Any, y: Any, z: Any) -> Any:
        return (((x * 7 + y * 5 + z * 3) % 1021) + 1j * (x % 13)).to(torch.complex64)

    index = [torch.as_tensor(np.asarray(i), device=ranks.device) for i in source.indices(me)]
    a = values(index[0][:, None, None], index[1][None, :, None], index[2][None, None, :]).contiguous()
    shape = target.local_shape(me)
    turn = 0  # what has been added to all values

    def renew() -> None:
        nonlocal turn
        turn += 1
        a.add_(1)
        packed.copy_(blocks)
        for spoiled in (b, by_torch, came):
            spoiled.fill_(-1)

    def right(found: torch.Tensor, side: tasuki.ArrayDistribution, order: tuple[int, ...]) -> bool:
        at = [torch.as_tensor(np.asarray(i), device=ranks.device) for i in side.indices(me)]
        views = [at[0][:, None, None], at[1][None, :, None], at[2][None, None, :]]
        xyz = [views[order.index(axis)] for axis in range(3)]
        return bool((found == values(*xyz) + turn).all())

    ways = {}
    b = ranks.zeros(shape, torch.complex64)
    operation = tasuki.Redistribute(ranks.context, (a, source), (b, target), axes=axes)
    ways["tasuki"] = Way(
        ranks, lambda: operation.run(ranks.stream.cuda_stream), True, renew, lambda: right(b, target, axes)
    )
    packed = ranks.zeros((size, mine, mine, n), torch.complex64)
    came = torch.empty_like(packed)
    real = torch.view_as_real(packed), torch.view_as_real(came)
    by_torch = ranks.zeros(shape, torch.complex64)
    blocks = a.view(mine, size, mine, n).transpose(0, 1)

    def torch_run() -> None:
        packed.copy_(blocks)
        dist.all_to_all_single(real[1], real[0])
        if permuted:  # [y, z, x] of blocks [x, y, z], one for each rank
            by_torch.view(mine, n, size, mine).copy_(came.permute(2, 3, 0, 1))

    columns = tasuki.ArrayDistribution((n, n, n), (1, size, 1))  # as blocks come

    def right_blocks() -> bool:
        return right(came.view(n, mine, n), columns, (0, 1, 2))

    def right_by_torch() -> bool:
        return right(by_torch, target, axes) if permuted else right_blocks()

    ways["pack + NCCL + unpack"] = Way(ranks, torch_run, False, renew, right_by_torch)
    ways["all-to-all alone"] = Way(ranks, lambda: dist.all_to_all_single(real[1], real[0]), False, renew, right_blocks)
    moved = a.numel() * 8 * (size - 1) // size
    return ways, {"bytes": moved, "keep": (a, b, operation)}


# Mesh.


def mesh_part(side: int, ranks: int, me: int) -> tuple[np.ndarray, int, list[tuple[int, np.ndarray, np.ndarray]]]:
    """Global numbers of this rank's cells, owned ones first, how many those are, and (peer, send, receive)."""
    cell = np.arange(side * side)
    row, column = cell // side, cell % side
    wave = side / 8 * np.sin(31.4159265 * row / side)
    owner = np.clip(np.floor((column + wave) * ranks / side).astype(int), 0, ranks - 1)
    random = np.random.default_rng(7)
    owned = [random.permutation(cell[owner == rank]) for rank in range(ranks)]
    pairs = []  # (cell, rank that has it as a ghost)
    for there, here in ((cell[:-side], cell[side:]), (cell[column > 0] - 1, cell[column > 0])):
        cut = owner[there] != owner[here]
        pairs += [np.stack([there[cut], owner[here[cut]]]), np.stack([here[cut], owner[there[cut]]])]
    both = np.unique(np.concatenate(pairs, axis=1), axis=1)
    ghosts = [random.permutation(both[0][both[1] == rank]) for rank in range(ranks)]
    number = np.empty(side * side, int)
    number[owned[me]] = np.arange(len(owned[me]))
    cells, entries = [owned[me]], []
    at = len(owned[me])
    for peer in range(ranks):
        received = ghosts[me][owner[ghosts[me]] == peer]
        sent = ghosts[peer][owner[ghosts[peer]] == me]
        if len(received) or len(sent):
            entries.append((peer, number[sent], np.arange(at, at + len(received))))
            cells.append(received)
            at += len(received)
    return np.concatenate(cells), len(owned[me]), entries


def mesh(ranks: Ranks, side: int, levels: int) -> tuple[dict[str, Way], dict[str, Any]]:
    cells, owned, entries = mesh_part(side, ranks.size, ranks.rank)
    number = torch.as_tensor(cells, device=ranks.device)
    level = torch.arange(levels, device=ranks.device)
    whole = (number[:, None] * 100 + level[None, :]).to(torch.float64)

    fields = {name: torch.empty_like(whole) for name in ("tasuki", "torch", "into place")}

    def renew() -> None:
        whole.add_(1)
        for field in fields.values():
            field.fill_(-1)
            field[:owned] = whole[:owned]

    def right(name: str) -> bool:
        return bool((fields[name] == whole).all())

    operation = tasuki.Exchange(ranks.context, fields["tasuki"], entries)
    sends = [torch.as_tensor(send, device=ranks.device) for _, send, _ in entries]
    receives = [torch.as_tensor(receive, device=ranks.device) for _, _, receive in entries]
    out = [torch.empty((len(send), levels), dtype=torch.float64, device=ranks.device) for send in sends]
    into = [torch.empty((len(receive), levels), dtype=torch.float64, device=ranks.device) for receive in receives]

    def exchanged(field: torch.Tensor, targets: list[torch.Tensor]) -> None:
        for buffer, send in zip(out, sends, strict=True):
            torch.index_select(field, 0, send, out=buffer)
        calls = []
        for (peer, _, _), buffer, target in zip(entries, out, targets, strict=True):
            calls += [dist.P2POp(dist.isend, buffer, peer), dist.P2POp(dist.irecv, target, peer)]
        for call in dist.batch_isend_irecv(calls):
            call.wait()

    def unpacked() -> None:
        exchanged(fields["torch"], into)
        for buffer, receive in zip(into, receives, strict=True):
            fields["torch"].index_copy_(0, receive, buffer)

    # Here a peer's ghosts follow each other, so that NCCL may receive them where they belong.
    places = [fields["into place"][int(receive[0]) : int(receive[-1]) + 1] for receive in receives]
    ways = {
        "tasuki": Way(ranks, lambda: operation.run(ranks.stream.cuda_stream), True, renew, lambda: right("tasuki")),
        "pack + NCCL + unpack": Way(ranks, unpacked, False, renew, lambda: right("torch")),
        "pack + NCCL into place": Way(
            ranks, lambda: exchanged(fields["into place"], places), False, renew, lambda: right("into place")
        ),
    }

    def sectors(lists: list[np.ndarray]) -> int:
        if not lists:
            return 0
        row = levels * 8
        first = np.unique(np.concatenate(lists)) * row
        steps = np.arange(0, row + SECTOR, SECTOR)
        touched = np.minimum(first[:, None] + steps[None, :], first[:, None] + row - 1) // SECTOR
        return len(np.unique(touched))

    gives, gets = sectors([e[1] for e in entries]), sectors([e[2] for e in entries])
    bound = max(gives, gets) * SECTOR / LINK
    ghosts = sum(len(receive) for _, _, receive in entries)
    facts = {"bytes": ghosts * levels * 8, "ghosts": ghosts, "bound_us": round(bound * 1e6, 3)}
    return ways, facts | {"keep": (fields, operation)}


def machine_facts(ranks: Ranks, commit: str) -> dict[str, Any]:
    return {
        "gpu": torch.cuda.get_device_name(),
        "ranks": ranks.size,
        "pytorch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "cuda": torch.version.cuda,
        "commit": commit,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "exchanges_in_a_graph": EACH,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["redistribute", "mesh"], action="append")
    parser.add_argument(
        "--only", action="append", help="cases whose name has this text, such as '256^3' or ', permuted'"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.03, help="seconds of each way in a round")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--commit", default="")
    asked = parser.parse_args()
    ranks = Ranks()
    cases: list[tuple[str, Callable[[], tuple[dict[str, Way], dict[str, Any]]]]] = []
    for part in asked.part or ["redistribute", "mesh"]:
        if part == "redistribute":
            for n in (128, 256, 512, 1024):
                for permuted in (False, True):
                    name = f"{n}^3 complex64, {'permuted' if permuted else 'as it is'}"
                    cases.append((name, lambda n=n, permuted=permuted: redistribution(ranks, n, permuted)))
        else:
            for side, levels in ((300, 1), (300, 60), (1000, 1), (1000, 80)):
                name = f"mesh {side} x {side}, {levels} level{'s' * (levels > 1)}"
                cases.append((name, lambda side=side, levels=levels: mesh(ranks, side, levels)))
    if asked.only:
        cases = [case for case in cases if any(text in case[0] for text in asked.only)]
        if not cases:
            parser.error(f"no case has {' or '.join(map(repr, asked.only))} in its name")
    found = []
    for name, make in cases:
        ways, facts = make()
        plan = facts.pop("keep")[-1].explain()
        times = race(ways, name, asked.rounds, asked.least)
        found.append({"group": "gpu-exchange", "case": name, **facts, "us": times})
        if ranks.rank == 0:
            best = {way: float(np.median(us)) for way, us in times.items()}
            print(f"{name}: {facts}")
            for way, us in best.items():
                rate = facts["bytes"] / us / 1e3
                ours = best["tasuki graph" if way.endswith("graph") else "tasuki"]
                print(f"  {way:<30} {us:10.2f} us {rate:8.1f} GB/s  {us / ours:6.2f}", flush=True)
            print("  " + "\n  ".join(plan.splitlines()[:4])[:700], flush=True)
        if asked.json and ranks.rank == 0:  # now: a later case that fails does not lose it
            asked.json.write_text(
                json.dumps({"machine": machine_facts(ranks, asked.commit), "cases": found}, indent=1) + "\n"
            )
    ways.clear()  # NCCL waits for the end of graphs that have captured it
    gc.collect()
    torch.cuda.synchronize()
    comm.Barrier()
    dist.destroy_process_group()


try:
    main()
except Exception:  # the others may wait for this rank in PyTorch's calls, which do not hear of its end
    traceback.print_exc()
    sys.stderr.flush()
    comm.Abort(1)
