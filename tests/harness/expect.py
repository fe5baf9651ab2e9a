"""Runs a command and passes only if it both ended as expected (`pass`, `fail`, or `any`) and printed what the pattern
says."""

import re
import subprocess
import sys

expected, pattern, *command = sys.argv[1:]
result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
ended = "pass" if result.returncode == 0 else "fail"
if expected in (ended, "any") and re.search(pattern, result.stdout, re.S):
    sys.exit(0)
print(f"{result.stdout}\nexpected: {expected} and /{pattern}/\ngot: {ended} (exit status {result.returncode})")
sys.exit(1)
