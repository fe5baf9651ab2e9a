"""Runs killed_making under the launcher's recovery option and checks what the surviving ranks say.

killed_making.py MPIRUN PROGRAM
"""

import os
import re
import sys

import survivors

RANKS = 3


def kill(launcher: str, program: str, victim: int, when: str) -> list[str]:
    """What was not as it should be."""
    run = survivors.run(launcher, 60, RANKS, program, str(victim), when)
    found = re.findall(r"^survivor (\d+) after ([\d.]+) s: (.*)$", run.stdout, re.MULTILINE)
    told = {int(rank) for rank, _, _ in found}
    complaints = [f"rank {rank} said nothing" for rank in range(RANKS) if rank != victim and rank not in told]
    for rank, seconds, text in found:
        complaints += survivors.complaints(f"rank {rank}", victim, float(seconds), text)
        print(f"{when}, rank {victim} killed, rank {rank} after {seconds} s: {text}")
    if complaints:
        print(run.stdout, run.stderr, sep="\n")
    return [f"{when}: {complaint}" for complaint in complaints]


def main() -> int:
    arguments = survivors.arguments(__doc__, "killed_making")
    os.environ["TASUKI_PMPI"] = "0"
    complaints = []
    for turn in range(arguments.rounds):
        for number, when in enumerate(("context", "subset", "inside", "first", "closed")):
            complaints += kill(arguments.launcher, arguments.program, (turn + number) % RANKS, when)
    print("\n".join(["FAILED:", *complaints]) if complaints else "ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
