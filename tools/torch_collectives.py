#!/usr/bin/env python3
"""Times the collectives of PyTorch's symmetric memory on GPUs, on the cases of tasuki-bench's group gpu-collectives.

    mpirun -n 2 python3 tools/torch_collectives.py --json torch.json

A rank a GPU, on one host, started by the mpirun of Open MPI or MPICH. The JSON has the shape of tasuki-bench's, without
Tasuki; `left_out` says what PyTorch does not do, or not here. That is no failure, even if it is all: where PyTorch is
missing, or ranks share a GPU. tools/gpu.py puts the times beside Tasuki's (`merged`).

NVLink multicast stays off, so operations named multimem are not measured.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

KINDS = ("broadcast", "reduce", "allreduce", "allgather", "reduce_scatter", "alltoall")
SIZES = (64, 64 << 10, 1 << 20, 16 << 20, 256 << 20)  # bytes of the whole buffer
GROUP = "gpu-collectives"
OWN = "tasuki"
GRAPH = " graph"
TORCH = "torch"  # begins the names of the peers here
CAPTURED = 10  # exchanges in a graph, as in tasuki-bench
ROUND_SECONDS = 0.02
PATIENCE = timedelta(seconds=60)  # for another rank at the store or in a barrier of hosts
# Why a collective has no peer.
NONE = {"reduce": "without multicast, PyTorch has no reduce on symmetric memory"}


def size_name(size: int) -> str:
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >> shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


@dataclass(frozen=True)
class Case:
    """A collective of floats; the root is rank 0, the operator a sum."""

    kind: str
    size: int  # of the whole buffer: of the vector, or of all blocks of a rank
    ranks: int

    @property
    def name(self) -> str:
        return f"{self.kind} {size_name(self.size)}"

    @property
    def count(self) -> int:
        return self.size // 4 // self.ranks * self.ranks

    @property
    def block(self) -> int:
        return self.count // self.ranks

    @property
    def gives(self) -> int:
        return self.block if self.kind == "allgather" else self.count

    @property
    def arrives(self) -> int:
        """Bytes that a rank receives at least."""
        if self.kind in ("broadcast", "reduce"):
            return self.size
        return (2 if self.kind == "allreduce" else 1) * (self.ranks - 1) * self.size // self.ranks


@dataclass
class Contender:
    """A peer that is ready. `seconds` is what so many exchanges took the slowest rank; collective."""

    name: str
    seconds: Callable[[int], float]
    init: float  # seconds
    exchanges: int = 1  # that an iteration makes
    iterations: int = 1
    samples: list[float] = field(default_factory=list)  # µs an exchange


def percentile(samples: list[float], p: float) -> float:
    """Interpolated, as tasuki-bench does."""
    ordered = sorted(samples)
    at = p * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def calibrate(contender: Contender, seconds: float) -> None:
    """Iterations that fill a round, by trials that become longer; they also warm the peer up."""
    while True:
        taken = max(min(contender.seconds(contender.iterations) for _ in range(3)), 1e-7)
        fitting = contender.iterations * seconds / taken
        if taken >= seconds / 4:
            contender.iterations = max(1, round(fitting))
            return
        contender.iterations = int(min(max(fitting, 2 * contender.iterations), 10 * contender.iterations))


def interleave(contenders: list[Contender], rounds: int) -> None:
    """Every round begins with another peer: none always follows the same one."""
    for turn in range(rounds):
        for place in range(len(contenders)):
            contender = contenders[(place + turn) % len(contenders)]
            seconds = contender.seconds(contender.iterations)
            contender.samples.append(seconds * 1e6 / contender.iterations / contender.exchanges)


def report(case: Case, contenders: list[Contender], failed: list[str]) -> dict[str, Any]:
    """A case as in tasuki-bench's JSON."""
    peers = {
        c.name: {
            "median_us": percentile(c.samples, 0.5),
            "p10_us": percentile(c.samples, 0.1),
            "p90_us": percentile(c.samples, 0.9),
            "init_us": c.init * 1e6,
            "iterations": c.iterations * c.exchanges,
        }
        for c in contenders
    }
    found = {"group": GROUP, "case": case.name, "bytes": case.arrives, "peers": peers}
    return found | {"ratios": {}, "failed": failed}


def is_here(peer: str) -> bool:
    return peer.startswith(f"{TORCH} ")


def merged(results: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """`results` of tasuki-bench, with the peers of `others` in the cases that both have, instead of earlier ones."""
    found = {(case["group"], case["case"]): case for case in others["cases"]}
    cases = []
    for case in results["cases"]:
        peers, ratios = ({p: v for p, v in case[key].items() if not is_here(p)} for key in ("peers", "ratios"))
        failed = [line for line in case["failed"] if f": {TORCH} " not in line]
        other = found.get((case["group"], case["case"]), {"peers": {}, "failed": []})
        for peer, times in other["peers"].items():
            peers[peer] = times
            reference = peers.get(OWN + GRAPH if peer.endswith(GRAPH) else OWN)
            if reference:
                ratios[peer] = times["median_us"] / reference["median_us"]
        cases.append(case | {"peers": peers, "ratios": ratios, "failed": failed + other["failed"]})
    version = {key: value for key, value in others["machine"].items() if key == "pytorch"}
    return results | {"machine": results["machine"] | version, "cases": cases, "left_out": others["left_out"]}


def folded(case: dict[str, Any]) -> dict[str, Any]:
    """The case with only the fastest of PyTorch's peers, as `torch`, and of those in graphs, as `torch graph`; `by` is
    the operation."""
    found = {key: {p: v for p, v in case[key].items() if not is_here(p)} for key in ("peers", "ratios")}
    for end in ("", GRAPH):
        names = [peer for peer in case["peers"] if is_here(peer) and peer.endswith(GRAPH) == bool(end)]
        if not names:
            continue
        best = min(names, key=lambda peer: case["peers"][peer]["median_us"])
        by = best.removeprefix(f"{TORCH} ").removesuffix(GRAPH)
        found["peers"][TORCH + end] = case["peers"][best] | {"by": by}
        if best in case["ratios"]:
            found["ratios"][TORCH + end] = case["ratios"][best]
    return case | found


@dataclass(frozen=True)
class Launch:
    """What mpirun says of this process; a process that no mpirun has started is the only rank."""

    rank: int
    ranks: int
    place: int  # among the ranks of this host
    together: int  # ranks of this host

    @staticmethod
    def of(environment: dict[str, str]) -> Launch:
        def number(open_mpi: str, mpich: str, alone: int) -> int:
            return int(environment.get(f"OMPI_COMM_WORLD_{open_mpi}", environment.get(mpich, alone)))

        rank, ranks = number("RANK", "PMI_RANK", 0), number("SIZE", "PMI_SIZE", 1)
        place, together = number("LOCAL_RANK", "MPI_LOCALRANKID", rank), number("LOCAL_SIZE", "MPI_LOCALNRANKS", ranks)
        return Launch(rank, ranks, place, together)


class Absent(Exception):
    """What is missing for all cases."""


class Ranks:
    """The ranks as PyTorch sees them: the GPU of this one, the group, and what hosts tell each other."""

    def __init__(self, launch: Launch, port: int, share: bool) -> None:
        self.rank, self.size = launch.rank, launch.ranks
        if launch.together != launch.ranks:
            raise Absent(f"the {launch.ranks} ranks are on several hosts, and meet at the local one only")
        os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        if share:
            os.environ["TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"] = "1"
        try:
            self.torch = importlib.import_module("torch")
        except ImportError as error:
            raise Absent(f"PyTorch is not in {sys.executable} ({error})") from error
        torch = self.torch
        if not torch.cuda.is_available():
            raise Absent(f"PyTorch {torch.__version__} sees no GPU")
        try:
            self.memory = importlib.import_module("torch.distributed._symmetric_memory")
        except ImportError as error:
            raise Absent(f"PyTorch {torch.__version__} has no symmetric memory ({error})") from error
        gpus = torch.cuda.device_count()
        self.device = torch.device("cuda", launch.place % gpus)
        torch.cuda.set_device(self.device)
        self.distributed = torch.distributed
        store = self.distributed.TCPStore("127.0.0.1", port, self.size, launch.rank == 0, timeout=PATIENCE)
        self.distributed.init_process_group("gloo", store=store, rank=self.rank, world_size=self.size, timeout=PATIENCE)
        self.group = self.distributed.group.WORLD
        own = str(torch.cuda.get_device_properties(self.device).uuid)
        self.gpus = len(set(self.all(own)))
        if self.gpus < self.size and not share:
            raise Absent(
                f"{self.size} ranks have {self.gpus} GPU{'s' * (self.gpus > 1)} between them, and PyTorch wants one a "
                "rank; --share makes it try nevertheless, to see that all works"
            )

    def all(self, value: Any) -> list[Any]:
        """What every rank has, in rank order. Collective."""
        values = [None] * self.size
        self.distributed.all_gather_object(values, value)
        return values

    def agree(self, complaint: str) -> str:
        """That of the lowest rank that has one. Collective."""
        return next((f"rank {r}: {text}" for r, text in enumerate(self.all(complaint)) if text), "")

    def barrier(self) -> None:
        self.distributed.barrier()

    def largest(self, value: float) -> float:
        tensor = self.torch.tensor([value], dtype=self.torch.float64)
        self.distributed.all_reduce(tensor, op=self.distributed.ReduceOp.MAX)
        return float(tensor[0])


class Work:
    """Memory of a case, and the ways to do it: each puts an exchange into the current stream and returns the result."""

    def __init__(self, ranks: Ranks, case: Case) -> None:
        self.ranks, self.case = ranks, case
        torch = ranks.torch
        self.input = ranks.memory.empty(case.gives, dtype=torch.float32, device=ranks.device)
        self.handle = ranks.memory.rendezvous(self.input, ranks.group)
        self.input.zero_()
        self.name = ranks.group.group_name
        self.operations = torch.ops.symm_mem
        # Low-contention operations end in a stream of PyTorch's own, which the current one has to be made to wait for.
        self.wait = torch.ops._c10d_functional.wait_tensor

    def output(self, count: int) -> Any:
        return self.ranks.torch.zeros(count, dtype=self.ranks.torch.float32, device=self.ranks.device)

    def ways(self) -> dict[str, Callable[[], Callable[[], Any]]]:
        """What makes each peer, by its name."""
        return {
            "broadcast": {"torch copies": self.copied_broadcast},
            "allreduce": {"torch one shot": self.one_shot, "torch two shot": self.two_shot},
            "allgather": {"torch low contention": self.gathered},
            "reduce_scatter": {"torch reduce scatter": self.scattered, "torch low contention": self.gently_scattered},
            "alltoall": {"torch copies": self.copied_alltoall},
        }.get(self.case.kind, {})

    def peer(self, rank: int) -> Any:
        """Another rank's input."""
        return self.handle.get_buffer(rank, (self.case.gives,), self.ranks.torch.float32)

    def one_shot(self) -> Callable[[], Any]:
        out, operation = self.output(self.case.count), self.operations.one_shot_all_reduce_out
        return lambda: operation(self.input, "sum", self.name, out)

    def two_shot(self) -> Callable[[], Any]:
        operation = self.operations.two_shot_all_reduce_  # in place
        return lambda: operation(self.input, "sum", self.name)

    def gathered(self) -> Callable[[], Any]:
        operation = self.operations._low_contention_all_gather
        return lambda: self.wait(operation(self.input, self.name))

    def scattered(self) -> Callable[[], Any]:
        out, operation = self.output(self.case.block), self.operations.reduce_scatter_out
        return lambda: operation(self.input, self.name, False, out)

    def gently_scattered(self) -> Callable[[], Any]:
        operation = self.operations._low_contention_reduce_scatter
        return lambda: self.wait(operation(self.input, "sum", self.name))

    def copied_broadcast(self) -> Callable[[], Any]:
        """Everybody copies from the root's memory, between two barriers of streams."""
        root = self.peer(0)

        def run() -> Any:
            self.handle.barrier(channel=0)
            if self.ranks.rank != 0:
                self.input.copy_(root)
            self.handle.barrier(channel=1)
            return self.input

        return run

    def copied_alltoall(self) -> Callable[[], Any]:
        """Everybody copies its blocks from all ranks' memory, likewise."""
        block, me, out = self.case.block, self.ranks.rank, self.output(self.case.count)
        order = [(me + step) % self.ranks.size for step in range(self.ranks.size)]
        pieces = [(out[r * block :][:block], self.peer(r)[me * block :][:block]) for r in order]

        def run() -> Any:
            self.handle.barrier(channel=0)
            for to, source in pieces:
                to.copy_(source)
            self.handle.barrier(channel=1)
            return out

        return run

    def values(self, rank: int, first: int, count: int, turn: int) -> Any:
        """So small that sums are exact."""
        torch = self.ranks.torch
        at = torch.arange(first, first + count, device=self.ranks.device, dtype=torch.int64)
        return at.mul_(7).add_(rank * 3 + turn * 5).remainder_(11).to(torch.float32)

    def expected(self, turn: int) -> Any:
        case, me = self.case, self.ranks.rank
        everybody = range(self.ranks.size)
        if case.kind == "broadcast":
            return self.values(0, 0, case.count, turn)
        if case.kind == "allreduce":
            return sum(self.values(r, 0, case.count, turn) for r in everybody)
        if case.kind == "reduce_scatter":
            return sum(self.values(r, me * case.block, case.block, turn) for r in everybody)
        first = 0 if case.kind == "allgather" else me * case.block
        return self.ranks.torch.cat([self.values(r, first, case.block, turn) for r in everybody])

    def wrong(self, exchange: Callable[[], Any]) -> str:
        """After three exchanges of data that change; empty: nothing. Collective."""
        torch, me = self.ranks.torch, self.ranks.rank
        complaint = ""
        for turn in (1, 2, 3):
            if self.case.kind == "broadcast" and me != 0:
                self.input.fill_(-1)
            else:
                self.input.copy_(self.values(me, 0, self.case.gives, turn))
            torch.cuda.synchronize()
            self.ranks.barrier()
            result = exchange()
            torch.cuda.synchronize()
            self.ranks.barrier()
            bad = int((result.reshape(-1) != self.expected(turn)).sum())
            if bad and not complaint:
                complaint = f"round {turn}: {bad} of {result.numel()} elements are wrong"
        self.input.zero_()  # what adds up in place stays zero
        torch.cuda.synchronize()
        return self.ranks.agree(complaint)


class Exchange:
    """An exchange in a stream, or so many of them in a graph."""

    def __init__(self, work: Work, run: Callable[[], Any], captured: int) -> None:
        torch = work.ranks.torch
        self.ranks, self.torch, self.run = work.ranks, torch, run
        self.stream = torch.cuda.Stream()
        self.graph: Any = None
        self.result: Any = None
        with torch.cuda.stream(self.stream):
            run()  # what is done lazily may not be captured
        self.stream.synchronize()
        self.ranks.barrier()
        if not captured:
            return
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=self.stream):
            for _ in range(captured):
                self.result = run()

    def start(self) -> Any:
        """Into the current stream."""
        if self.graph is None:
            return self.run()
        self.graph.replay()
        return self.result

    def once(self) -> Any:
        with self.torch.cuda.stream(self.stream):
            return self.start()

    def seconds(self, iterations: int) -> float:
        self.ranks.barrier()
        begin = time.perf_counter()
        with self.torch.cuda.stream(self.stream):
            for _ in range(iterations):
                self.start()
        self.stream.synchronize()
        return self.ranks.largest(time.perf_counter() - begin)


def measure(ranks: Ranks, case: Case, rounds: int, seconds: float, left_out: list[str]) -> dict[str, Any]:
    """All ways of a case that there are. Collective."""
    contenders: list[Contender] = []
    failed: list[str] = []
    if case.kind in NONE:
        line = f"{case.kind}: {NONE[case.kind]}"
        left_out += [] if line in left_out else [line]
        return report(case, contenders, failed)
    work = Work(ranks, case)
    for name, make in work.ways().items():
        for graph in (False, True):
            peer = name + (GRAPH if graph else "")
            why, complaint, exchange = "", "", None
            try:
                operation = make()
                # One at a time: what works in place would add up again.
                complaint = work.wrong(Exchange(work, operation, 1 if graph else 0).once)
                begin = time.perf_counter()
                exchange = Exchange(work, operation, CAPTURED if graph else 0)
            except (RuntimeError, AttributeError, TypeError, NotImplementedError) as error:
                why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no text'}"
            why = ranks.agree(why)
            if why or exchange is None:
                left_out.append(f"{case.name}: {peer}: {why}")
                continue
            init = ranks.largest(time.perf_counter() - begin)
            if complaint:
                failed.append(f"{GROUP}/{case.name}: {peer}: {complaint}")
                continue
            contender = Contender(peer, exchange.seconds, init, CAPTURED if graph else 1)
            calibrate(contender, seconds)
            contenders.append(contender)
    interleave(contenders, rounds)
    found = report(case, contenders, failed)
    contenders.clear()
    ranks.barrier()  # nobody gives up memory that another still reads
    return found


def cases(ranks: int, text: str, quick: bool) -> Iterator[Case]:
    for kind in KINDS:
        for size in SIZES:
            case = Case(kind, size, ranks)
            if text in case.name and not (quick and size > 64 << 10):
                yield case


def run(arguments: argparse.Namespace, launch: Launch) -> dict[str, Any]:
    """The results, of which rank 0's are written. Collective."""
    machine: dict[str, Any] = {"ranks": launch.ranks, "commit": arguments.commit}
    machine["date"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    seconds = 0.003 if arguments.quick else ROUND_SECONDS
    results: dict[str, Any] = {"machine": machine, "settings": {"rounds": arguments.rounds, "round_seconds": seconds}}
    results |= {"cases": [], "left_out": []}
    try:
        ranks = Ranks(launch, arguments.port, arguments.share)
    except Absent as error:
        results["left_out"].append(f"PyTorch's symmetric memory: {error}")
        return results
    properties = ranks.torch.cuda.get_device_properties(ranks.device)
    machine |= {"gpu": properties.name, "gpus": str(ranks.gpus), "pytorch": ranks.torch.__version__}
    for case in cases(launch.ranks, arguments.filter, arguments.quick):
        if ranks.rank == 0:
            print(f"torch_collectives.py: {case.name}", file=sys.stderr, flush=True)
        results["cases"].append(measure(ranks, case, arguments.rounds, seconds, results["left_out"]))
    ranks.distributed.destroy_process_group()
    return results


def table(results: dict[str, Any]) -> Iterator[str]:
    for case in results["cases"]:
        for peer, times in case["peers"].items():
            spread = f"({times['p10_us']:.2f}-{times['p90_us']:.2f})"
            yield f"{case['case']:<24} {peer:<28} {times['median_us']:>9.2f} us {spread}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True, help="write the results to this file")
    parser.add_argument("--rounds", type=int, default=7, help="samples a peer")
    parser.add_argument("--filter", default="", help="only cases whose names contain this text")
    parser.add_argument("--quick", action="store_true", help="small sizes, short rounds: to see that all works")
    parser.add_argument("--port", type=int, default=29511, help="where ranks meet on this host; one that is free")
    parser.add_argument("--commit", default=os.environ.get("TASUKI_COMMIT", ""), help="for the results")
    parser.add_argument("--share", action="store_true", help="try with ranks that share a GPU; such times say nothing")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    launch = Launch.of(dict(os.environ))
    results = run(arguments, launch)
    if launch.rank != 0:
        return 0
    arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    print("\n".join(table(results)))
    for line in results["left_out"]:
        print(f"left out: {line}", file=sys.stderr)
    complaints = [complaint for case in results["cases"] for complaint in case["failed"]]
    for complaint in complaints:
        print(f"WRONG: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # after a capture that has failed, PyTorch's destructors abort
