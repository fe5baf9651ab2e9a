"""Runs killed_gpu_collective under the launcher's recovery option, and checks what the surviving ranks say.

killed_gpu_collective.py MPIRUN PROGRAM [--rounds 1] [--ranks 2]

Each round loses a rank in every collective: with the GPUs on one island, driven by the host, in a stream or in graphs,
and with each rank on an island of its own, where messages go through the hosts. The next round takes the next rank and
the next way. The memory of a rank goes when it dies, so a kernel that uses it then may fail by that: the host's error
names the rank all the same.
"""

import argparse
import os
import re
import sys

import survivors

KINDS = ("barrier", "broadcast", "reduce", "allreduce", "reduce_scatter", "gather")
KINDS += ("scatter", "allgather", "scan", "exscan", "alltoall", "neighbours")
WAYS = (("stream", None), ("graph", None), ("host", None), ("stream", "1"), ("host", "1"))  # TASUKI_ISLAND
LINE = re.compile(r"^survivor (\d+) after ([\d.]+) s: (.*)$", re.MULTILINE)


def kill(arguments: argparse.Namespace, kind: str, number: int) -> list[str]:
    """What was not as it should be."""
    how, island = WAYS[number % len(WAYS)]
    victim = number // len(WAYS) % arguments.ranks
    os.environ.pop("TASUKI_ISLAND", None)
    if island:
        os.environ["TASUKI_ISLAND"] = island
    run = survivors.run(arguments.launcher, 60, arguments.ranks, arguments.program, str(victim), kind, how)
    skipped = re.search(r"^SKIPPED: .*$", run.stdout, re.MULTILINE)
    if skipped:
        print(skipped.group())
        sys.exit(0)
    what = f"{kind}, {how}{', islands' if island else ''}, rank {victim} killed"
    told = {int(rank): (float(seconds), text) for rank, seconds, text in LINE.findall(run.stdout)}
    complaints = []
    for rank in range(arguments.ranks):
        if rank == victim:
            continue
        if rank not in told:
            complaints.append(f"{what}: rank {rank} said nothing")
            continue
        print(f"{what}: rank {rank} after {told[rank][0]} s: {told[rank][1]}", flush=True)
        complaints += survivors.complaints(f"{what}: rank {rank}", victim, *told[rank])
    if complaints:
        print(run.stdout, run.stderr, sep="\n")
    return complaints


def main() -> int:
    parser = survivors.parser(__doc__, "killed_gpu_collective")
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    complaints = []
    for number in range(arguments.rounds):
        for at, kind in enumerate(KINDS):
            complaints += kill(arguments, kind, number + at)
    print("\n".join(["FAILED:", *complaints]) if complaints else "ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
