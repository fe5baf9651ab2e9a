#!/usr/bin/env python3
"""Measures Tasuki across two hosts made by tools/hosts.py, into bench/results/hosts.json: what tables.py shows of it.

    tools/hosts_bench.py                                 everything, some ten minutes
    tools/hosts_bench.py --rate 1gbit --part halos       one part at one rate; the rest of the file stays

Two hosts of two ranks each. `hybrid` is Tasuki's own choice: memory inside a host, messages between hosts. `network
only` forces messages everywhere. Both take turns, as do the algorithms of collectives. Bytes over the network are those
that `explain()` names, beside those that the hosts' devices count. Needs root, and himeno and the Python package in the
build folder; run it with the interpreter that the package is built for.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hosts as tool
from collectives_bench import commit

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "hosts.json"
RATES = ("1gbit", "10gbit")
BANDWIDTH = {"1gbit": 1.25e8, "10gbit": 1.25e9}  # bytes per second
HOSTS, RANKS = 2, 4
ROUNDS = 15
SECONDS = 0.15  # of a round of one contender
WAYS = {"hybrid": "auto", "network only": "mpi"}
# A line of `explain()`: piece, from, to, bytes, pattern, path.
PIECE = re.compile(r" (\d+) +(\d+) +(\d+) (?:empty|contiguous|block stride|stride|list) +(\S+)")
ACROSS = re.compile(r"bytes across islands, of all ranks: (\d+)(?:; the least there can be: (\d+))?")
HALOS = {
    "Himeno S: one field of 64x64x128 floats": dict(cells=(64, 64, 128), fields=1, dtype="float32", periodic=False),
    "Himeno M: one field of 128x128x256 floats": dict(cells=(128, 128, 256), fields=1, dtype="float32", periodic=False),
    "four fields of 64³ doubles a rank": dict(cells=(128, 128, 64), fields=4, dtype="float64", periodic=True),
}
ALGORITHMS = {
    "Allreduce": ["hierarchical", "exchange", "direct", "doubling", "ring", "halving"],
    "Broadcast": ["hierarchical", "binomial", "trees"],
    "Allgather": ["hierarchical", "direct", "doubling", "ring"],
}
BYTES = (8, 64 << 10, 1 << 20)


# What runs on the ranks.


def sent() -> int:
    """Bytes that this process's host has sent, by its device's own count. /sys shows another network's devices."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "eth0":
            return int(numbers.split()[8])
    raise SystemExit(f"hosts_bench.py: {os.uname().nodename} has no device eth0: this is no host of tools/hosts.py")


class Ranks:
    def __init__(self) -> None:
        import numpy

        import tasuki

        self.tasuki, self.numpy = tasuki, numpy
        self.context = tasuki.Context()
        self.mine, self.all = numpy.zeros(2), numpy.zeros((self.context.size, 2))
        self.gathering = tasuki.Allgather(self.context, self.mine, self.all)
        self.host = int(os.uname().nodename.rpartition("-")[2])

    def gather(self, a: float, b: float = 0) -> list[list[float]]:
        self.mine[:] = a, b
        self.gathering.start()
        self.gathering.wait()
        return self.all.tolist()

    def leads(self) -> bool:
        """The first rank of a host speaks for its device."""
        return self.context.rank % (RANKS // HOSTS) == 0

    def epochs(self, operation, count: int) -> tuple[float, float]:
        """µs an epoch on the slowest rank, and bytes that all hosts sent in an epoch."""
        self.gather(0)
        before = sent()
        self.gather(0)  # nobody begins before this has been read
        begin = time.perf_counter()
        for _ in range(count):
            operation.start()
            operation.wait()
        seconds = time.perf_counter() - begin
        self.gather(0)
        all_ = self.gather(seconds, sent() - before if self.leads() else 0)
        return max(row[0] for row in all_) / count * 1e6, sum(row[1] for row in all_) / count

    def race(self, operations: dict) -> dict[str, dict]:
        """By name: µs and bytes sent, an epoch, of every round. Each round begins with another contender."""
        found = {name: {"us": [], "sent": []} for name in operations}
        counts = {}
        for name, operation in operations.items():
            self.epochs(operation, 3)
            # The best of a few: a count that a disturbance made small would measure the burst that the link lets pass.
            least = min(self.epochs(operation, 3)[0] for _ in range(5))
            counts[name] = max(3, min(20000, int(SECONDS * 1e6 / least)))
        names = list(operations)
        for turn in range(ROUNDS):
            for i in range(len(names)):
                name = names[(turn + i) % len(names)]
                us, bytes_ = self.epochs(operations[name], counts[name])
                found[name]["us"].append(round(us, 2))
                found[name]["sent"].append(round(bytes_))
        return found

    def said(self, halo) -> float:
        """Bytes that all ranks' explain() say go from host to host in an epoch."""
        per_host = RANKS // HOSTS
        across = 0
        for source, target, bytes_, _ in PIECE.findall(halo.explain()):
            mine = int(source) == self.context.rank
            across += int(bytes_) if mine and int(target) // per_host != self.host else 0
        return sum(row[0] for row in self.gather(across))

    def halos(self) -> list[dict]:
        found = []
        for name, case in HALOS.items():
            grid = self.tasuki.Grid(self.context, case["cells"], periodic=case["periodic"], split=(2, 2, 1))
            fields = [
                self.tasuki.Field(grid, case["dtype"], name=f"f{i}", memory="host") for i in range(case["fields"])
            ]
            halos = {way: self.tasuki.Halo(fields, path=path) for way, path in WAYS.items()}
            for halo in halos.values():
                self.check(halo, fields)
            for way, times in self.race(halos).items():
                found.append({"case": name, "way": way, "said": self.said(halos[way]), **times})
        return found

    def check(self, halo, fields) -> None:
        assert self.tasuki.verify(halo)
        for round_ in range(3):
            for i, field in enumerate(fields):
                field.array[...] = -1
                field.owned[...] = self.context.rank + 10 * i + 100 * round_
            halo.start()
            halo.wait()
            for i, field in enumerate(fields):
                values = set(self.numpy.unique(field.array)) - {-1}
                if len(values) < 2 or not values <= {r + 10 * i + 100 * round_ for r in range(RANKS)}:
                    raise SystemExit(f"rank {self.context.rank}: {halo!r} brought {values} in round {round_}")

    def collectives(self) -> list[dict]:
        found = []
        for kind, algorithms in ALGORITHMS.items():
            for bytes_ in BYTES:
                operations = {name: self.collective(kind, bytes_, name) for name in algorithms}
                texts = {name: operation.explain() for name, operation in operations.items()}
                chosen = self.collective(kind, bytes_, "auto").explain()
                picked = re.search(r"^algorithm: (\w+)", chosen, re.M)[1]
                for name, times in self.race(operations).items():
                    across = ACROSS.search(texts[name])
                    if not across:
                        raise SystemExit(f"explain() of {kind} by {name} does not count bytes across:\n{texts[name]}")
                    found.append(
                        {"collective": kind.lower(), "bytes": bytes_, "algorithm": name, "picked": picked == name}
                        | {"said": int(across[1]), "least": int(across[2] or across[1])}
                        | times
                    )
        return found

    def collective(self, kind: str, bytes_: int, algorithm: str):
        n, tasuki = bytes_ // 8, self.tasuki
        memory = tasuki.shared_array(self.context, (n,)), tasuki.shared_array(self.context, (n * RANKS,))
        more = {"algorithm": algorithm}
        if kind == "Broadcast":
            made, result, wanted = tasuki.Broadcast(self.context, 0, memory[0], **more), memory[0], lambda r: [r]
        elif kind == "Allreduce":
            made = tasuki.Allreduce(self.context, memory[0], memory[1][:n], **more)
            result, wanted = memory[1][:n], lambda r: [RANKS * r + RANKS * (RANKS - 1) / 2]
        else:
            made = tasuki.Allgather(self.context, *memory, **more)
            result, wanted = memory[1], lambda r: [r + i for i in range(RANKS)]
        assert tasuki.verify(made)
        for round_ in range(3):
            memory[0][...] = self.context.rank + round_
            made.start()
            made.wait()
            if sorted(set(result.tolist())) != wanted(round_):
                raise SystemExit(f"rank {self.context.rank}: {kind} by {algorithm} gave {set(result.tolist())}")
        return made

    def run(self, part: str, file: str) -> None:
        found = getattr(self, part)()
        if self.context.rank == 0:
            Path(file).write_text(json.dumps(found))


# What starts them.


def ranks_of(hosts: tool.Hosts, program: list[str], mpiexec: str, seconds: float) -> None:
    process = hosts.start(RANKS, program, mpiexec=mpiexec, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        for host in range(hosts.count):
            hosts.signal(host, 9)
        said = process.communicate()[0] + f"\nended after {seconds:g} s"
    if process.returncode != 0:
        raise SystemExit(f"hosts_bench.py: {' '.join(program)} failed:\n{said}")


def himeno(hosts: tool.Hosts, build: Path, mpiexec: str, size: str) -> list[dict]:
    found = {way: {"size": size, "way": way, "us": []} for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/himeno.json"
        for turn in range(5):
            for way in list(WAYS) if turn % 2 == 0 else reversed(WAYS):
                options = ["--device", "cpu", "--size", size, "--split", "2x2x1", "--path", WAYS[way], "--json", file]
                ranks_of(hosts, [str(build / "bin" / "himeno"), *options], mpiexec, 120)
                run = json.loads(Path(file).read_text())
                found[way]["us"].append(round(run["seconds_per_iteration"] * 1e6, 2))
                found[way]["overlap"] = run["overlap"]
    return list(found.values())


def machine(mpiexec: str) -> dict:
    def said(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.splitlines()[0]

    cpu = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "commit": commit(),
        "cores": os.cpu_count(),
        "cpu": cpu[1] if cpu else "unknown",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hosts": HOSTS,
        "kernel": os.uname().release.partition("-")[0],
        "mpi": re.sub(r"^.*?(\d+\.\d+\.\d+).*$", r"Open MPI v\1", said(mpiexec, "--version")),
        "ranks": RANKS,
    }


def profile(build: Path, rate: str) -> Path:
    """Prices of quiet hosts with this link. What ranks measure that share cores tells more of the scheduler."""
    prices = json.loads((ROOT / "tests" / "faults" / "hosts-profile.json").read_text())
    prices["paths"]["mpi"]["bandwidth"] = BANDWIDTH[rate]
    file = build / f"profile-hosts-{rate}.json"
    file.write_text(json.dumps(prices, indent=1) + "\n")
    return file


def keep(part: str, rate: str, rows: list[dict], facts: dict) -> None:
    """Replaces what the file has of this part, this rate and these sizes. Parts may be measured at different times."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    sizes = {row.get("size") for row in rows}
    others = [row for row in results.get(part, []) if row["rate"] != rate or row.get("size") not in sizes]
    rows = others + [{"rate": rate, **row} for row in rows]
    results[part] = sorted(rows, key=lambda row: (RATES.index(row["rate"]), row.get("size", "")))
    machine = {**results.get("machine", {}), part: facts}
    parts = {k: results[k] for k in sorted(results) if k != "machine"}
    RESULTS.write_text(json.dumps({"machine": machine, **parts}, indent=1) + "\n")


def main() -> int:
    if sys.argv[1:2] == ["ranks"]:
        Ranks().run(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build folder")
    parser.add_argument("--rate", choices=RATES, action="append", help="of each host's link; may be repeated")
    parser.add_argument("--part", choices=("himeno-S", "himeno-M", "halos", "collectives"), action="append")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the hosts do not stay
    build = arguments.build.resolve()
    mpiexec = tool.launcher.launcher_of(str(build / "bin" / "himeno"))
    os.environ["PYTHONPATH"] = str(build / "python")
    facts = machine(mpiexec)
    for rate in arguments.rate or RATES:
        os.environ["TASUKI_PROFILE"] = str(profile(build, rate))
        hosts = tool.Hosts.up(HOSTS, rate)
        try:
            for part in arguments.part or ("himeno-S", "himeno-M", "halos", "collectives"):
                name, _, size = part.partition("-")
                if size:
                    rows = himeno(hosts, build, mpiexec, size)
                else:
                    with tempfile.NamedTemporaryFile(suffix=".json") as file:
                        ranks_of(hosts, [sys.executable, __file__, "ranks", name, file.name], mpiexec, 170)
                        rows = json.loads(Path(file.name).read_text())
                keep(name, rate, rows, facts)
                for row in rows:
                    what = [str(row[key]) for key in row if key not in ("us", "sent")]
                    print(rate, *what, f"{statistics.median(row['us']):.1f} us", flush=True)
        finally:
            hosts.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
