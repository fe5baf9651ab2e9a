"""Runs two commands, separated by `--`, and compares the checksums that they print last."""

import subprocess
import sys


def checksum(command):
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    sys.stdout.write(run.stdout)
    sys.stderr.write(run.stderr)
    words = run.stdout.split()
    if run.returncode != 0 or "checksum" not in words:
        sys.exit(f"{command} ended with {run.returncode}, or printed no checksum")
    return words[words.index("checksum") + 1]


at = sys.argv.index("--")
if checksum(sys.argv[1:at]) != checksum(sys.argv[at + 1 :]):
    sys.exit("the checksums differ")
