"""Runs killed_collective under the launcher's recovery option and checks what the survivors say of each collective.

killed_collective.py MPIRUN PROGRAM [--rounds 12]

Each round gives every collective another path, engine and rank to lose.
"""

import pathlib
import re
import sys
import tempfile

import survivors

COLLECTIVES = 12
LINE = re.compile(
    r"^turn (\d+) (\S+) (\S+) (\S+) victim (\d+) survivor ([01]) after ([\d.]+) s: (.*)$",
    re.MULTILINE,
)


def round_of(launcher: str, program: str, number: int) -> list[str]:
    """What was not as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        turns = str(pathlib.Path(folder) / "turns")
        run = survivors.run(launcher, 100, 2 + COLLECTIVES, program, turns, str(number))
    complaints = []
    told = set()
    for turn, kind, path, engine, victim, survivor, seconds, text in LINE.findall(run.stdout):
        told.add((int(turn), survivor))
        what = f"{kind}, path {path}, engine {engine}, rank {victim} killed, survivor {survivor}"
        print(f"{what} after {seconds} s: {text}")
        complaints += survivors.complaints(what, int(victim), float(seconds), text)
    for turn in range(COLLECTIVES):
        complaints += [f"turn {turn}: rank {rank} said nothing" for rank in "01" if (turn, rank) not in told]
    if complaints:
        print(run.stdout, run.stderr, sep="\n")
    return complaints


def main() -> int:
    arguments = survivors.arguments(__doc__, "killed_collective")
    complaints = []
    for number in range(arguments.rounds):
        complaints += round_of(arguments.launcher, arguments.program, number)
    print("\n".join(["FAILED:", *complaints]) if complaints else "ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
