"""Runs apart where shared memory is made difficult: a tiny /dev/shm, process numbers of their own for each rank, a
limit to the size of files, and a rank that never comes. Each must work, or say clearly what is the matter."""

import argparse
import os
import re
import subprocess
import sys

NO_SHARED_MPI = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1", "MPIR_CVAR_NOLOCAL": "1"}


def can_unshare(*options: str) -> str:
    """Empty if this user may make such name spaces, else what was said."""
    try:
        run = subprocess.run(["unshare", *options, "true"], capture_output=True, text=True, check=False, timeout=20)
    except OSError as error:
        return str(error)
    return "" if run.returncode == 0 else run.stderr.strip() or "refused"


class Cases:
    def __init__(self, launcher: str, mpiexec: str, program: str):
        self.launcher = launcher
        self.mpiexec = mpiexec
        self.program = program
        self.failures = 0

    def run(self, before: list[str], ranks: int, command: list[str], recover=False, **variables: str):
        options = ["--mpiexec", self.mpiexec, *(["--recover"] if recover else [])]
        return subprocess.run(
            [*before, sys.executable, self.launcher, *options, "--timeout", "60", "-n", str(ranks), *command],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | variables,
        )

    def report(self, name: str, run, wanted: list[str], fails=False) -> None:
        text = run.stdout + run.stderr
        missing = [pattern for pattern in wanted if not re.search(pattern, text)]
        bad = missing or (run.returncode != 0) != fails
        print(f"{name}: {'FAILED' if bad else 'ok'}")
        if bad:
            self.failures += 1
            print(f"status {run.returncode}; not found: {missing}\n{text}")

    def tiny_shm(self) -> None:
        name = "a /dev/shm of 1 MiB"
        if why := can_unshare("-m"):
            print(f"{name}: SKIPPED, unshare -m: {why}")
            return
        mount = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$@"'
        run = self.run(["unshare", "-m", "sh", "-c", mount, "sh"], 3, [self.program, "16"], **NO_SHARED_MPI)
        self.report(name, run, ["3 ranks, 1 host, 1 island", *(f"rank {r}: 0 wrong" for r in range(3))])

    def own_numbers(self) -> None:
        name = "ranks with process numbers of their own"
        if why := can_unshare("-pf", "--mount-proc"):
            print(f"{name}: SKIPPED, unshare -p: {why}")
            return
        apart = ["unshare", "-pf", "--mount-proc", self.program, "2"]
        run = self.run([], 3, apart, **NO_SHARED_MPI)
        numbers = ["rank 0: .* pid 1\n", "rank 2: .* pid 1\n"]
        self.report(name, run, ["3 ranks, 1 host, 1 island", *numbers, *(f"rank {r}: 0 wrong" for r in range(3))])

    def own_numbers_and_network(self) -> None:
        """Neither /proc nor a socket leads from one rank to the other: messages remain."""
        name = "ranks with process numbers and a network of their own"
        if why := can_unshare("-pfn", "--mount-proc"):
            print(f"{name}: SKIPPED, unshare -pn: {why}")
            return
        apart = ["unshare", "-pf", "--mount-proc", self.program, "2", "alone"]
        run = self.run([], 3, apart, recover=True, **NO_SHARED_MPI)
        told = ["rank 0 cannot map its memory: /proc/.*; the Unix socket of the other rank: Connection refused"]
        wanted = ["3 ranks, 1 host, 3 islands", *told, *(f"rank {r}: 0 wrong" for r in range(3))]
        self.report(name, run, wanted, fails=run.returncode != 0)

    def small_files(self) -> None:
        name = "files limited to 16 MiB"
        limited = ["bash", "-c", 'ulimit -f 16384; exec "$@"', "bash", self.program, "64"]
        run = self.run([], 2, limited, **NO_SHARED_MPI)
        self.report(name, run, ["could not get 64.0 MiB: files of this process are limited to"], fails=True)

    def absent(self) -> None:
        name = "a rank that never comes"
        run = self.run([], 3, [self.program, "absent", "5"], recover=True, TASUKI_DEADLINE="1.5")
        told = r"gave up after (1\.[5-9]|2\.\d) s: Context: rank {}: .*the other ranks have not all come within 1\.5 s"
        self.report(name, run, [f"rank {r} " + told.format(r) for r in range(2)], fails=run.returncode != 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launcher", help="tools/mpirun.py")
    parser.add_argument("mpiexec", help="the MPI's launcher")
    parser.add_argument("program", help="the program apart")
    arguments = parser.parse_args()
    cases = Cases(arguments.launcher, arguments.mpiexec, arguments.program)
    cases.tiny_shm()
    cases.own_numbers()
    cases.own_numbers_and_network()
    cases.small_files()
    cases.absent()
    return 1 if cases.failures else 0


if __name__ == "__main__":
    sys.exit(main())
