"""Records a run on GPUs (TASUKI_TRACE) and checks what the kernels say of their commands: by graphs and without."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

RANKS = 2
ITERATIONS = 6
NO_GPU = "CUDA finds no"


def complaints_about(folder: Path) -> list[str]:
    complaints = []
    for rank in range(RANKS):
        trace = json.loads((folder / f"rank-{rank}.json").read_text())
        plans, command = trace["plans"], trace["kinds"].index("command")
        events = [dict(zip(trace["fields"], event)) for event in trace["events"]]
        of_gpu = [e for e in events if e["kind"] == command]
        calls = [e for e in events if e["kind"] != command]
        if not of_gpu:
            complaints.append(f"rank {rank}: no command was recorded")
            continue
        first, last = min(e["begin_ns"] for e in events), max(e["end_ns"] for e in events)
        if (last - first) > 60e9 or min(e["begin_ns"] for e in of_gpu) < min(e["begin_ns"] for e in calls) - 100_000:
            complaints.append(f"rank {rank}: the GPU's clock is not the host's: {first} to {last}")
        if any(e["end_ns"] < e["begin_ns"] for e in of_gpu):
            complaints.append(f"rank {rank}: a command ends before it begins")
        # Every command that moves data is there once for each epoch that its operation has had: the halo as many as
        # there were iterations, or more (of a warm-up), what gathers the result for the comparison one.
        for number, plan in enumerate(plans):
            moves = {i for i, c in enumerate(plan["commands"]) if c["verb"] in ("put", "copy")}
            seen = Counter((e["command"], e["epoch"]) for e in of_gpu if e["operation"] == number)
            epochs = {epoch for _, epoch in seen}
            least = 0 if not plan["commands"] else ITERATIONS if plan["operation"].startswith("halo") else 1
            if epochs != set(range(1, len(epochs) + 1)) or len(epochs) < least:
                complaints.append(f"rank {rank}: {plan['operation']}: epochs {sorted(epochs)}")
            wrong = [key for key in ((m, e) for m in moves for e in epochs) if seen[key] != 1]
            if wrong:
                complaints.append(f"rank {rank}: operation {number}: (command, epoch) not recorded once: {wrong[:5]}")
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launcher", help="tools/mpirun.py")
    parser.add_argument("program", help="the program himeno")
    arguments = parser.parse_args()
    failures = 0
    for engine in ("stream", "graph"):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, arguments.launcher, "-n", str(RANKS), arguments.program, "--device", "gpu"]
            command += ["--size", "33x17x65", "--iterations", str(ITERATIONS), "--engine", engine, "--verify"]
            environment = os.environ | {"TASUKI_TRACE": folder}
            run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if run.returncode != 0 and NO_GPU in run.stderr + run.stdout:
                print(f"SKIPPED: {NO_GPU} usable GPU")
                return 0
            found = complaints_about(Path(folder)) if run.returncode == 0 else [run.stdout + run.stderr]
        print(f"engine {engine}: {'; '.join(found) or 'ok'}")
        failures += bool(found)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
