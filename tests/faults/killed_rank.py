"""Runs killed_rank under the launcher's recovery option and checks what the surviving ranks say and leave behind."""

import argparse
import pathlib
import re
import subprocess
import sys

RANKS = 4
VICTIM = 1
PATIENCE = 3  # seconds until a rank that waits for a dead one must have left its allreduce; the deadline is 10
FOLDERS = [pathlib.Path("/dev/shm"), pathlib.Path("/tmp")]


def left_behind() -> set[str]:
    """Files that shared memory of an MPI could have left: they look like it and no process has them mapped."""
    names = {
        str(path)
        for folder in FOLDERS
        for pattern in ("*vader*", "*sm_seg*", "*mpich*", "*osc*", "*shm*", "tasuki-*")
        for path in folder.glob(pattern)
        if path.is_file()
    }
    for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
        try:
            text = maps.read_text()
        except OSError:
            continue  # the process has just ended
        names = {name for name in names if name not in text}
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launcher", help="tools/mpirun.py")
    parser.add_argument("program", help="the program killed_rank")
    arguments = parser.parse_args()
    failures = 0
    for path, engine, memory, how in (
        ("shared", "inline", "host", "wait"),
        ("shared", "thread", "host", "wait"),
        ("shared:read", "inline", "host", "wait"),
        ("shared:read", "thread", "host", "wait"),
        ("mpi", "inline", "host", "wait"),
        ("shared:put", "inline", "host", "test"),
        ("shared:read", "inline", "host", "test"),
        ("shared", "thread", "host", "test"),
        ("mpi", "inline", "host", "test"),
        ("shared", "inline", "host", "allreduce"),
        ("shared", "thread", "host", "allreduce"),
        ("mpi", "inline", "host", "allreduce"),
        ("shared", "inline", "host", "kernel"),
        ("mpi", "inline", "host", "kernel"),
        ("mpi", "inline", "host", "messages"),
        ("peer", "stream", "device", "wait"),
        ("mpi", "stream", "device", "wait"),
    ):
        before = left_behind()
        run = subprocess.run(
            [sys.executable, arguments.launcher, "--recover", "--timeout", "60", "-n", str(RANKS)]
            + [arguments.program, str(VICTIM), path, engine, memory, how],
            capture_output=True,
            text=True,
            check=False,
        )
        if "left out: " in run.stdout:
            print(f"path {path}, engine {engine}: {run.stdout.splitlines()[0]}")
            continue
        told = {
            int(rank): text
            for rank, text in re.findall(r"^survivor (\d+) after [\d.]+ s: (.*)$", run.stdout, re.MULTILINE)
        }
        complaints = [
            f"rank {rank} said nothing"
            if rank not in told
            else f"rank {rank} does not name rank {VICTIM}: {told[rank]}"
            for rank in range(RANKS)
            if rank != VICTIM and f"rank {VICTIM} (pid" not in told.get(rank, "")
        ]
        complaints += [
            f"rank {rank} waited for {seconds} s"
            for rank, seconds in re.findall(r"^survivor (\d+) after ([\d.]+) s: ", run.stdout, re.MULTILINE)
            if how == "allreduce" and float(seconds) > PATIENCE
        ]
        complaints += [f"left behind: {name}" for name in sorted(left_behind() - before)]
        print(f"path {path}, engine {engine}, {how}: {'FAILED' if complaints else 'ok'}")
        for rank, text in sorted(told.items()):
            print(f"  rank {rank}: {text}")
        for complaint in complaints:
            print(f"  {complaint}")
        if complaints:
            failures += 1
            print(run.stdout, run.stderr, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
