"""Runs killed_at_end: neither the launcher nor `tasuki run` may end with status 0, and no survivor either."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

RANKS = 3
VICTIM = 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("launcher", help="tools/mpirun.py")
    parser.add_argument("mpiexec", help="the launcher of the MPI that the program was built with")
    parser.add_argument("program", help="the program killed_at_end")
    arguments = parser.parse_args()
    failures = 0
    for when in ("leaving", "finalize"):
        for recover in ([], ["--recover"]):
            with tempfile.TemporaryDirectory() as folder:
                # Each rank's own status, whatever the launcher makes of it.
                script = pathlib.Path(folder) / "rank.sh"
                script.write_text('"$@"\nstatus=$?\necho "status $status"\nexit $status\n')
                run = subprocess.run(
                    [sys.executable, arguments.launcher, "--mpiexec", arguments.mpiexec, *recover]
                    + ["--timeout", "40", "-n", str(RANKS)]
                    + ["/bin/sh", str(script), arguments.program, str(VICTIM), when],
                    capture_output=True,
                    text=True,
                    check=False,
                )
            complaints = []
            # Where a rank dies in MPI_Finalize and the job goes on, Open MPI's survivors wait there in 1 of 16 runs.
            waits = [124] if when == "leaving" or not recover else []
            if run.returncode in (0, *waits):
                complaints.append(f"the launcher ended with status {run.returncode}")
            statuses = re.findall(r"^status (\d+)$", run.stdout, re.MULTILINE)
            if when == "leaving" and recover:
                # The launcher may end the others once the first has said that something is wrong.
                if not statuses or "0" in statuses:
                    complaints.append(f"the ranks ended with status {', '.join(statuses)}")
                if "rank 1 (pid" not in run.stderr:
                    complaints.append("nobody names the rank that died")
            print(f"{when} {' '.join(recover)}: {'FAILED' if complaints else 'ok'} (statuses {', '.join(statuses)})")
            for complaint in complaints:
                print(f"  {complaint}")
            if complaints:
                failures += 1
                print(run.stdout, run.stderr, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
