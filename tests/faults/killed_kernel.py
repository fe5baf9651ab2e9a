"""Runs killed_kernel under the launcher's recovery option, and checks what the surviving ranks say.

killed_kernel.py MPIRUN PROGRAM [--ranks 2] [--rounds 1]

Each round kills every rank, in every way; the slowest survivors are said at the end. Ranks that share a GPU need CUDA's
Multi-Process Service. The memory of a rank goes when it dies, so a kernel that uses it then may fail by that: the
host's error names the rank all the same.
"""

import argparse
import re
import subprocess
import sys

LONGEST = 8  # seconds until a rank that waits for a dead one must have left; the deadline is 20
WAYS = ("halo", "messages", "host", "barrier", "late")


def kill(launch: list[str], ranks: int, victim: int, how: str) -> tuple[bool, float]:
    """Whether all was as it should be, and after how many seconds the last survivor had left."""
    run = subprocess.run([*launch, str(victim), how], capture_output=True, text=True, check=False)
    skipped = re.search(r"^SKIPPED: .*$", run.stdout, re.MULTILINE)
    if skipped:
        print(skipped.group())
        sys.exit(0)
    found = re.findall(r"^survivor (\d+) after ([\d.]+) s, then (\w+): (.*)$", run.stdout, re.MULTILINE)
    told = {int(rank): (float(seconds), left, text) for rank, seconds, left, text in found}
    complaints = []
    for rank in range(ranks):
        if rank == victim:
            continue
        if rank not in told:
            complaints.append(f"rank {rank} said nothing")
            continue
        seconds, left, text = told[rank]
        print(f"{how}, rank {victim} killed: rank {rank} after {seconds} s: {text}")
        if f"rank {victim} (pid" not in text:
            complaints.append(f"rank {rank} does not name rank {victim}")
        if seconds > LONGEST:
            complaints.append(f"rank {rank} waited for {seconds} s")
        if how == "late" and left != "cudaSuccess":  # it uses no memory of the dead rank
            complaints.append(f"the kernel of rank {rank} ended by {left}")
    for complaint in complaints:
        print(f"  FAILED: {complaint}")
    if complaints:
        print(run.stdout, run.stderr, sep="\n")
    return not complaints, max((seconds for seconds, _, _ in told.values()), default=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launcher", help="tools/mpirun.py")
    parser.add_argument("program", help="the program killed_kernel")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    launch = [sys.executable, arguments.launcher, "--recover", "--timeout", "60", "-n", str(arguments.ranks)]
    failures = 0
    kills = 0
    slowest: dict[str, float] = {}
    for _ in range(arguments.rounds):
        for how in WAYS:
            for victim in range(arguments.ranks):
                good, seconds = kill([*launch, arguments.program], arguments.ranks, victim, how)
                failures += not good
                kills += 1
                slowest[how] = max(slowest.get(how, 0), seconds)
    print(f"{kills} kills, {failures} not as they should be; the slowest survivor of each way, in s:")
    for how, seconds in slowest.items():
        print(f"  {how}: {seconds:.2f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
