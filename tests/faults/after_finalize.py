"""Runs after_finalize: nothing but `fine`, from every rank, may be said, on stderr neither."""

import argparse
import subprocess
import sys

RANKS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launcher", help="tools/mpirun.py")
    parser.add_argument("program", help="the program after_finalize")
    arguments = parser.parse_args()
    failures = 0
    for engine in ("inline", "thread"):
        for path in ("auto", "shared:put", "mpi"):
            run = subprocess.run(
                [sys.executable, arguments.launcher, "--timeout", "60", "-n", str(RANKS)]
                + [arguments.program, engine, path],
                capture_output=True,
                text=True,
                check=False,
            )
            ok = run.returncode == 0 and run.stdout.split() == ["fine"] * RANKS and not run.stderr.strip()
            print(f"engine {engine}, path {path}: {'ok' if ok else 'FAILED'}")
            if not ok:
                failures += 1
                print(f"status {run.returncode}", run.stdout, run.stderr, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
