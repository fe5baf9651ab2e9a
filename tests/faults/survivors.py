"""What the tests of killed ranks share: how they start a program, and what they ask of a rank that survives."""

import argparse
import subprocess
import sys

LONGEST = 5  # seconds until a rank that waits for a dead one must have left; the deadline is 10


def parser(about: str, program: str) -> argparse.ArgumentParser:
    """Of the command line: the launcher, the program, and how often everything is done."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("launcher", help="tools/mpirun.py")
    made.add_argument("program", help=f"the program {program}")
    made.add_argument("--rounds", type=int, default=1)
    return made


def arguments(about: str, program: str) -> argparse.Namespace:
    """The command line as it was given."""
    return parser(about, program).parse_args()


def run(launcher: str, seconds: int, ranks: int, program: str, *rest: str) -> subprocess.CompletedProcess[str]:
    """Runs the program. A rank that is killed does not take the others with it."""
    command = [sys.executable, launcher, "--recover", "--timeout", str(seconds), "-n", str(ranks), program, *rest]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def complaints(who: str, victim: int, seconds: float, text: str) -> list[str]:
    """What is wrong with a survivor that left after these seconds with this error."""
    wrong = [] if f"rank {victim} (pid" in text else [f"{who} does not name rank {victim}: {text}"]
    return wrong + ([f"{who} waited for {seconds} s"] if seconds > LONGEST else [])
