"""Ranks that wait for each other in different calls are told at the deadline in which calls all of them are.

disagree.py MPIRUN... PROGRAM: runs the program on 4 ranks and reads what each rank says."""

import re
import subprocess
import sys

REDUCTION = "in xmp_reduction of 1 element among ranks 0, 1"
BARRIER = "in xmp_barrier among ranks 0, 1, 2"
ALL = "in xmp_barrier among ranks 0, 1, 2, 3"
WAIT = "in xmp_wait among ranks 0, 1, 2, 3"
# XMP_DEADLINE of the one who gives up first, XMP_RANK_DIED of those who hear of it.
for mode, wanted in (
    ([], {"0": (REDUCTION, BARRIER), "1": (REDUCTION, BARRIER), "2": (REDUCTION, BARRIER)}),
    (["late"], {"0": (REDUCTION,), "1": (REDUCTION, BARRIER), "2": (f"gave up {REDUCTION}", BARRIER)}),
    (["signals"], {"0": (ALL, WAIT), "1": (ALL, WAIT), "2": (ALL, WAIT), "3": (ALL, WAIT)}),
):
    run = subprocess.run([*sys.argv[1:], "disagree", *mode], capture_output=True, text=True, timeout=100)
    said = dict(re.findall(r"^rank (\d): status ([54], .*)$", run.stdout, re.M))
    missing = [
        f"rank {rank} names no '{call}'"
        for rank, calls in wanted.items()
        for call in calls
        if call not in said.get(rank, "")
    ]
    if missing or set(said) != set(wanted):
        sys.exit("\n".join([*missing, run.stdout, run.stderr]))
    for rank in sorted(said):
        print(f"rank {rank}: {said[rank]}")
