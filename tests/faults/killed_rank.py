"""Runs killed_rank under the launcher's recovery option and checks what the surviving ranks say and leave behind.

killed_rank.py MPIRUN PROGRAM [--rounds 9]

Each round kills another rank, in every way; the slowest survivors are said at the end.
"""

import pathlib
import re
import sys

import survivors

RANKS = 4
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


WAYS = (
    ("shared", "inline", "host", "wait"),
    ("shared", "thread", "host", "wait"),
    ("shared:read", "inline", "host", "wait"),
    ("shared:read", "thread", "host", "wait"),
    ("mpi", "inline", "host", "wait"),
    ("shared:put", "inline", "host", "test"),
    ("shared:read", "inline", "host", "test"),
    ("shared", "thread", "host", "test"),
    ("mpi", "inline", "host", "test"),
    ("shared", "inline", "host", "kernel"),
    ("mpi", "inline", "host", "kernel"),
    ("mpi", "inline", "host", "messages"),
    ("shared", "inline", "host", "exchange"),
    ("mpi", "thread", "host", "exchange"),
    ("shared", "thread", "host", "redistribute"),
    ("mpi", "inline", "host", "redistribute"),
    ("peer", "stream", "device", "wait"),
    ("mpi", "stream", "device", "wait"),
    ("peer", "stream", "device", "exchange"),
    ("peer", "stream", "device", "redistribute"),
)


def kill(launcher: str, program: str, victim: int, way: tuple[str, str, str, str]) -> tuple[bool, float | None]:
    """Whether all was as it should be, and after how many seconds the last survivor had left; None: left out here."""
    path, engine, _, how = way
    before = left_behind()
    run = survivors.run(launcher, 60, RANKS, program, str(victim), *way)
    if "left out: " in run.stdout:
        print(f"path {path}, engine {engine}: {run.stdout.splitlines()[0]}")
        return True, None
    found = re.findall(r"^survivor (\d+) after ([\d.]+) s: (.*)$", run.stdout, re.MULTILINE)
    told = {int(rank): text for rank, _, text in found}
    complaints = [f"rank {rank} said nothing" for rank in range(RANKS) if rank != victim and rank not in told]
    for rank, seconds, text in found:
        complaints += survivors.complaints(f"rank {rank}", victim, float(seconds), text)
        if not text.endswith("[rank died]"):
            complaints.append(f"rank {rank} has another kind of error: {text}")
    complaints += [f"left behind: {name}" for name in sorted(left_behind() - before)]
    print(f"path {path}, engine {engine}, {how}, rank {victim} killed: {'FAILED' if complaints else 'ok'}")
    for rank, text in sorted(told.items()):
        print(f"  rank {rank}: {text}")
    for complaint in complaints:
        print(f"  {complaint}")
    if complaints:
        print(run.stdout, run.stderr, sep="\n")
    return not complaints, max((float(seconds) for _, seconds, _ in found), default=0)


def main() -> int:
    arguments = survivors.arguments(__doc__, "killed_rank")
    failures = 0
    slowest: dict[tuple[str, str, str, str], float] = {}
    kills = 0
    for turn in range(arguments.rounds):
        for way in WAYS:
            good, seconds = kill(arguments.launcher, arguments.program, (turn + 1) % RANKS, way)
            failures += not good
            if seconds is not None:
                kills += 1
                slowest[way] = max(slowest.get(way, 0), seconds)
    print(f"{kills} kills, {failures} not as they should be; the slowest survivor of each way, in s:")
    for (path, engine, _, how), seconds in slowest.items():
        print(f"  {path}, {engine}, {how}: {seconds:.2f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
