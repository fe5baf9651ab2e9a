#!/usr/bin/env python3
"""Tests and measures on a machine with GPUs: the tests that need them, the benchmark, Himeno and Laplace at all sizes.

Writes bench/results/gpu-N.json, collectives-gpu-N.json, kernels-gpu-N.txt, himeno-gpu-N.json, laplace-gpu-N.json and
gpu-N-tests.txt (or into --out), N being the ranks, one a GPU. Beside the collectives stand those of PyTorch's symmetric
memory, where it is (torch_collectives.py). On four ranks also islands-SIZE-PATH.txt, what Himeno's plans across islands
are and why. Every step goes on after a failure of another; the exit status says whether there was one. `make gpu`
builds first. `--only sanitize` runs compute-sanitizer, which nothing else does, for it takes minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import kernel_tables  # noqa: E402
import mpirun  # noqa: E402
import torch_collectives  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
# Iterations of a timed run: a fraction of a second. Not calibrated, so that every run computes the same.
ITERATIONS = {"S": 5000, "M": 3000, "L": 1000, "XL": 200, "LX": 200, "LLX": 100}
VERIFIED_ITERATIONS = {"S": 20, "M": 20, "L": 5, "XL": 3}  # the serial run that a result is compared with takes long
ISLAND_ITERATIONS = {"S": 2000, "M": 1000}
STAGED_ITERATIONS = 300  # where messages go through the hosts
LAPLACE_ITERATIONS = {"8192": 1000, "16384": 300}
TESTS = "^(gpu_|python_gpu_|faults_killed_rank)"
SANITIZERS = ("memcheck", "racecheck", "initcheck")
SANITIZED = "9 x 10 x 11*,a reverse halo*,the user's GPU memory*,transfers there and back*"  # quick on one rank
SUMMARY = "SUMMARY:"
KERNEL_LAUNCHES = "--launches 5"


def sanitizer_lines(tool: str, output: str) -> list[str]:
    """What a tool of compute-sanitizer says at its end, and the tests' own last line."""
    said = [line.strip("= ").strip() for line in output.splitlines() if SUMMARY in line or "test cases:" in line]
    return [f"compute-sanitizer {tool}: {line}" for line in said]


def free_port() -> int:
    """On this host; nothing keeps it free until it is used."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def variables(**given: str) -> Iterator[None]:
    """Environment variables for what is started meanwhile."""
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def sharing() -> Iterator[None]:
    """Processes that share a GPU run at the same time, by CUDA's Multi-Process Service, whose daemon runs meanwhile.
    Without it they take turns of milliseconds. The service is for what is started here alone: nobody else has the
    folder through which it is reached."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        print("gpu.py: no nvidia-cuda-mps-control on this machine: ranks that share a GPU take turns", flush=True)
        yield
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        variables(CUDA_MPS_PIPE_DIRECTORY=folder, CUDA_MPS_LOG_DIRECTORY=folder),
    ):
        subprocess.run([control, "-d"], check=True, timeout=30)
        try:
            yield
        finally:
            subprocess.run([control], input="quit\n", text=True, check=False, timeout=60)


class Session:
    def __init__(self, arguments: argparse.Namespace):
        self.build = arguments.build.resolve()
        self.out = arguments.out.resolve()
        self.ranks = arguments.ranks
        self.built = f"ctest on {self.ranks} GPUs, commit {arguments.commit or 'unknown'}"
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
            log.write_text(re.sub(r"^Test project .*", self.built, text, flags=re.M))  # a folder of this machine
        if not good:
            print("".join(f"    {line}\n" for line in text.splitlines()[-12:]), end="")
            self.failed.append(name)
        print(f"gpu.py: {name}: {'done' if good else 'FAILED'} in {time.monotonic() - begin:.0f} s", flush=True)
        return good

    def on_ranks(self, ranks: int, program: str, *arguments: str) -> list:
        launch = [sys.executable, ROOT / "tools" / "mpirun.py", "-n", ranks]
        return [*launch, self.build / "bin" / program, "--device", "gpu", *arguments]

    def tests(self) -> None:
        """Tests with more ranks than there are GPUs share them."""
        command = ["ctest", "--test-dir", self.build, "--tests-regex", TESTS, "--output-on-failure"]
        with sharing(), variables(TASUKI_TEST_SHARED_GPUS="1"):
            self.step("tests", command, self.out / f"gpu-{self.ranks}-tests.txt", 420)

    def bench(self, commit: str) -> dict:
        file = self.out / f"gpu-{self.ranks}.json"
        paths = "peer:put,peer:ll,peer:copy"
        groups = ["--group", "gpu-halo", "--group", "gpu-face", "--group", "gpu-copy"]
        options = [*groups, "--json", file, "--commit", commit, "--peer-path", paths]
        self.step("bench", self.on_ranks(self.ranks, "tasuki-bench", *options))
        return json.loads(file.read_text())["machine"] if file.exists() else {"commit": commit}

    def collectives(self, commit: str) -> None:
        if self.ranks < 2:
            print("gpu.py: collectives: left out: there is one rank", flush=True)
            return
        file = self.out / f"collectives-gpu-{self.ranks}.json"
        groups = ["gpu-collectives", "gpu-collectives-alone", "gpu-overlap"]
        chosen = [word for group in groups for word in ("--group", group)]
        options = [*chosen, "--json", file, "--commit", commit]
        self.step("collectives", self.on_ranks(self.ranks, "tasuki-bench", *options))
        if file.exists():
            self.torch(file)

    def torch(self, known: Path) -> None:
        """PyTorch's symmetric memory, beside what tasuki-bench has measured. It is measured after it, not in turn."""
        launcher = mpirun.launcher_of(str(self.build / "bin" / "tasuki-bench"))
        launch = [sys.executable, ROOT / "tools" / "mpirun.py", "--mpiexec", launcher, "-n", self.ranks, sys.executable]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "torch.json"
            program = [ROOT / "tools" / "torch_collectives.py", "--json", file, "--port", free_port()]
            self.step("PyTorch's symmetric memory", [*launch, *program])
            if not file.exists():
                return
            found = json.loads(file.read_text())
        for line in found["left_out"]:
            print(f"gpu.py: left out: {line}", flush=True)
        whole = torch_collectives.merged(json.loads(known.read_text()), found)
        known.write_text(json.dumps(whole, indent=1) + "\n")

    def kernels(self, machine: dict) -> None:
        """What communication costs that kernels start."""
        program = self.build / "bin" / "tasuki-bench-kernel"
        launch = [sys.executable, ROOT / "tools" / "mpirun.py", "-n", self.ranks, program, *KERNEL_LAUNCHES.split()]
        with tempfile.TemporaryDirectory() as folder:
            printed = Path(folder) / "printed"
            self.step("kernels", launch, printed)
            called = f"tasuki-bench-kernel {KERNEL_LAUNCHES}"
            text = kernel_tables.results(called, machine, printed.read_text())
        (self.out / f"kernels-gpu-{self.ranks}.txt").write_text(text)

    def sanitize(self) -> None:
        """On one rank. The lines of an earlier run are replaced."""
        log = self.out / f"gpu-{self.ranks}-tests.txt"
        kept = log.read_text().splitlines() if log.exists() else []
        lines = [line for line in kept if not line.startswith("compute-sanitizer")]
        program = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
        if program is None:
            print("gpu.py: compute-sanitizer is not on this machine: nothing was checked with it", flush=True)
            lines.append("compute-sanitizer: not on this machine")
        else:
            tests = self.build / "bin" / "gpu_tests"
            launch = [
                sys.executable,
                ROOT / "tools" / "mpirun.py",
                "--mpiexec",
                mpirun.launcher_of(str(tests)),
                "-n",
                1,
            ]
            with tempfile.TemporaryDirectory() as folder:
                for tool in SANITIZERS:
                    output = Path(folder) / tool
                    check = [program, "--tool", tool, "--error-exitcode", 3, tests, f"--test-case={SANITIZED}"]
                    good = self.step(f"compute-sanitizer {tool}", [*launch, *check], output)
                    said = sanitizer_lines(tool, output.read_text())
                    if good and not any(SUMMARY in line for line in said):
                        self.failed.append(f"compute-sanitizer {tool} without a summary")
                    lines += said or [f"compute-sanitizer {tool}: no summary"]
        log.write_text("\n".join(lines) + "\n")

    def himeno(self, machine: dict) -> None:
        runs = Runs(self, "himeno", machine)
        n = self.ranks
        for ranks in sorted({1, min(2, n), n}):
            for size, iterations in VERIFIED_ITERATIONS.items():
                for engine in ("graph", "kernel"):
                    runs.one(ranks, size, "--iterations", str(iterations), "--verify", "--engine", engine)
        if n == 4:
            for split in ("4x1x1", "1x4x1", "1x1x4", "1x2x2"):
                runs.one(4, "M", "--split", split, "--iterations", "20", "--verify")
        for size, iterations in ITERATIONS.items():
            timed = ("--iterations", str(iterations), "--engine")
            if size != "LLX":
                runs.one(1, size, *timed, "graph")
            if n > 2 and size not in ("LX", "LLX"):
                runs.one(2, size, *timed, "graph")
            runs.one(n, size, *timed, "graph")
            if size in ("LX", "LLX"):
                continue
            for ranks in sorted({1, n}):
                runs.one(ranks, size, *timed, "kernel")
            if size != "XL":
                runs.one(n, size, *timed, "stream")
            runs.one(n, size, *timed, "graph", "--overlap", "off")
            runs.one(n, size, *timed, "graph", "--overlap", "off", "--no-communication")
        if n == 4:
            for size, iterations in ISLAND_ITERATIONS.items():
                for path in ("auto", "nccl", "mpi", "peer,mpi"):
                    count = STAGED_ITERATIONS if "mpi" in path else iterations
                    how = (
                        "--split",
                        "2x2x1",
                        "--path",
                        path,
                        "--iterations",
                        str(count),
                        "--engine",
                        "graph",
                        "--explain",
                    )
                    runs.one(4, size, *how, island=2, log=self.out / f"islands-{size}-{path.replace(',', '-')}.txt")

    def laplace(self, machine: dict) -> None:
        runs = Runs(self, "laplace", machine)
        for ranks in sorted({1, self.ranks}):
            for engine in ("graph", "kernel"):
                runs.one(ranks, "1000", "--iterations", "20", "--verify", "--engine", engine)
        for size, iterations in LAPLACE_ITERATIONS.items():
            timed = ("--iterations", str(iterations), "--engine")
            for engine in ("graph", "kernel"):
                runs.one(1, size, *timed, engine)
            if self.ranks > 1:
                for engine in ("graph", "kernel"):
                    runs.one(self.ranks, size, *timed, engine)
                runs.one(self.ranks, size, *timed, "graph", "--overlap", "off")


class Runs:
    """Runs of an app, kept in APP-gpu-N.json as they come."""

    def __init__(self, session: Session, app: str, machine: dict):
        self.session, self.app, self.machine = session, app, machine
        self.file = session.out / f"{app}-gpu-{session.ranks}.json"
        self.runs: list[dict] = []

    def one(self, ranks: int, size: str, *options: str, island: int = 0, log: Path | None = None) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run.json"
            command = self.session.on_ranks(ranks, self.app, "--size", size, *options, "--json", file)
            where = ["env", f"TASUKI_ISLAND={island}"] if island else []
            name = f"{self.app} {size} on {ranks}{f' in islands of {island}' if island else ''} {' '.join(options)}"
            if self.session.step(name, [*where, *command], log, timeout=120):
                self.runs.append(json.loads(file.read_text()) | ({"island": island} if island else {}))
                self.file.write_text(json.dumps({"machine": self.machine, "runs": self.runs}, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--ranks", type=int, required=True, help="one a GPU")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    parser.add_argument("--commit", default="", help="what was built, for the results")
    parts = ("tests", "bench", "collectives", "kernels", "himeno", "laplace", "sanitize")
    parser.add_argument(
        "--only", choices=parts, help="one part, of which bench has collectives, too; without it all but sanitize"
    )
    arguments = parser.parse_args()
    if arguments.ranks < 1:
        parser.error("--ranks: this machine shows no GPU")
    arguments.out.mkdir(parents=True, exist_ok=True)
    session = Session(arguments)
    machine = {"commit": arguments.commit, "gpus": arguments.ranks}
    known = session.out / f"gpu-{arguments.ranks}.json"
    if arguments.only in ("kernels", "himeno", "laplace") and known.exists():
        machine = json.loads(known.read_text())["machine"] | machine
    if arguments.only in (None, "bench"):
        machine = session.bench(arguments.commit)
    if arguments.only in (None, "bench", "collectives"):
        session.collectives(arguments.commit)
    if arguments.only in (None, "kernels"):
        session.kernels(machine)
    if arguments.only in (None, "himeno"):
        session.himeno(machine)
    if arguments.only in (None, "laplace"):
        session.laplace(machine)
    if arguments.only in (None, "tests"):
        session.tests()
    if arguments.only == "sanitize":
        session.sanitize()
    if session.failed:
        print(f"gpu.py: failed: {', '.join(session.failed)}")
    return 1 if session.failed else 0


if __name__ == "__main__":
    sys.exit(main())
