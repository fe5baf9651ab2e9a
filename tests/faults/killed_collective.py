"""Runs killed_collective under the launcher's recovery option and checks what the survivors say of each collective.

killed_collective.py MPIRUN PROGRAM [--rounds 12]

Each round gives every collective another path, engine and rank to lose.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

COLLECTIVES = 12
PATIENCE = 5  # seconds until a rank that waits for a dead one must have left; the deadline is 10
LINE = re.compile(
    r"^turn (\d+) (\S+) (\S+) (\S+) victim (\d+) survivor ([01]) after ([\d.]+) s: (.*)$",
    re.MULTILINE,
)


def round_of(launcher: str, program: str, number: int) -> list[str]:
    """What was not as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [sys.executable, launcher, "--recover", "--timeout", "100", "-n", str(2 + COLLECTIVES), program]
            + [str(pathlib.Path(folder) / "turns"), str(number)],
            capture_output=True,
            text=True,
            check=False,
        )
    complaints = []
    told = set()
    for turn, kind, path, engine, victim, survivor, seconds, text in LINE.findall(run.stdout):
        told.add((int(turn), survivor))
        what = f"{kind}, path {path}, engine {engine}, rank {victim} killed, survivor {survivor}"
        print(f"{what} after {seconds} s: {text}")
        if f"rank {victim} (pid" not in text:
            complaints.append(f"{what} does not name it: {text}")
        if float(seconds) > PATIENCE:
            complaints.append(f"{what} waited for {seconds} s")
    for turn in range(COLLECTIVES):
        complaints += [f"turn {turn}: rank {rank} said nothing" for rank in "01" if (turn, rank) not in told]
    if complaints:
        print(run.stdout, run.stderr, sep="\n")
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("launcher", help="tools/mpirun.py")
    parser.add_argument("program", help="the program killed_collective")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    complaints = []
    for number in range(arguments.rounds):
        complaints += round_of(arguments.launcher, arguments.program, number)
    print("\n".join(["FAILED:", *complaints]) if complaints else "ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
