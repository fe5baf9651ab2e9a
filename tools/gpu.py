#!/usr/bin/env python3
"""Tests and measures on a machine with GPUs: the tests that need them, the benchmark, and Himeno at all sizes.

Writes bench/results/gpu-N.json, himeno-gpu-N.json and gpu-N-tests.txt (or into --out), N being the ranks, one a GPU.
Every step goes on after a failure of another; the exit status says whether there was one. `make gpu` builds first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ITERATIONS = {"S": 5000, "M": 3000, "L": 1000, "XL": 200, "LX": 200}  # of a timed run: a fraction of a second
VERIFIED = ("S", "M", "L")  # a serial run of the larger ones takes minutes
TESTS = "^(gpu_|python_gpu_|faults_killed_rank)"


class Session:
    def __init__(self, arguments: argparse.Namespace):
        self.build = arguments.build.resolve()
        self.out = arguments.out.resolve()
        self.ranks = arguments.ranks
        self.failed: list[str] = []

    def step(self, name: str, command: list, log: Path | None = None, timeout: float = 300) -> bool:
        print(f"gpu.py: {name}", flush=True)
        begin = time.monotonic()
        try:
            run = subprocess.run(
                [str(c) for c in command], capture_output=True, text=True, check=False, timeout=timeout
            )
            text, good = run.stdout + run.stderr, run.returncode == 0
        except subprocess.TimeoutExpired as error:
            text, good = f"stopped after {error.timeout:g} s\n", False
        if log:
            log.write_text(text)
        if not good:
            print("".join(f"    {line}\n" for line in text.splitlines()[-12:]), end="")
            self.failed.append(name)
        print(f"gpu.py: {name}: {'done' if good else 'FAILED'} in {time.monotonic() - begin:.0f} s", flush=True)
        return good

    def on_ranks(self, ranks: int, program: str, *arguments: str) -> list:
        launch = [sys.executable, ROOT / "tools" / "mpirun.py", "-n", ranks]
        return [*launch, self.build / "bin" / program, "--device", "gpu", *arguments]

    def tests(self) -> None:
        command = ["ctest", "--test-dir", self.build, "--tests-regex", TESTS, "--output-on-failure"]
        self.step("tests", command, self.out / f"gpu-{self.ranks}-tests.txt")

    def bench(self, commit: str) -> dict:
        file = self.out / f"gpu-{self.ranks}.json"
        paths = "peer:put,peer:stamped,peer:copy"
        options = ["--json", file, "--commit", commit, "--peer-path", paths]
        self.step("bench", self.on_ranks(self.ranks, "tasuki-bench", *options))
        return json.loads(file.read_text())["machine"] if file.exists() else {"commit": commit}

    def himeno(self, machine: dict) -> None:
        runs = []
        target = self.out / f"himeno-gpu-{self.ranks}.json"

        def one(ranks: int, size: str, *options: str, island: int = 0) -> None:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "run.json"
                command = self.on_ranks(ranks, "himeno", "--size", size, *options, "--json", file)
                where = ["env", f"TASUKI_ISLAND={island}"] if island else []
                name = f"himeno {size} on {ranks}{f' in islands of {island}' if island else ''} {' '.join(options)}"
                if self.step(name, [*where, *command], timeout=120):
                    runs.append(json.loads(file.read_text()) | ({"island": island} if island else {}))
                    target.write_text(json.dumps({"machine": machine, "runs": runs}, indent=1) + "\n")

        for ranks in sorted({1, min(2, self.ranks), self.ranks}):
            for size in VERIFIED:
                one(ranks, size, "--iterations", "20", "--verify")
        for size, iterations in ITERATIONS.items():
            timed = ("--iterations", str(iterations))
            one(1, size, *timed)
            one(self.ranks, size, *timed, "--engine", "graph")
            one(self.ranks, size, *timed, "--engine", "stream")
            one(self.ranks, size, *timed, "--overlap", "off")
            one(self.ranks, size, *timed, "--overlap", "off", "--no-communication")
        if self.ranks == 4:
            for size in ("S", "M"):
                for path in ("auto", "nccl", "mpi", "peer,mpi"):
                    one(4, size, "--split", "2x2x1", "--path", path, island=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--ranks", type=int, required=True, help="one a GPU")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    parser.add_argument("--commit", default="", help="what was built, for the results")
    parser.add_argument("--only", choices=("tests", "bench", "himeno"), help="one of the three parts")
    arguments = parser.parse_args()
    if arguments.ranks < 1:
        parser.error("--ranks: this machine shows no GPU")
    arguments.out.mkdir(parents=True, exist_ok=True)
    session = Session(arguments)
    machine = {"commit": arguments.commit, "gpus": arguments.ranks}
    known = session.out / f"gpu-{arguments.ranks}.json"
    if arguments.only == "himeno" and known.exists():
        machine = json.loads(known.read_text())["machine"] | machine
    if arguments.only in (None, "bench"):
        machine = session.bench(arguments.commit)
    if arguments.only in (None, "himeno"):
        session.himeno(machine)
    if arguments.only in (None, "tests"):
        session.tests()
    if session.failed:
        print(f"gpu.py: failed: {', '.join(session.failed)}")
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
