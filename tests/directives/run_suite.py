"""Runs a suite of programs with directives that lies elsewhere, and prints what passed, what failed, and what is not
understood, by construct.

    XMP_SUITE=/path/to/suite XMP_RUNTIME=build .venv/bin/python tests/directives/run_suite.py [PART-OF-A-PATH...]

Each C file with directives and a `main` is a program. How many ranks it wants, and the word of its output that tells
success, come from the makefile of its folder where that says so (`mpirun -np 4 ./a.out`, `grep PASS`); else 4 ranks,
and status 0 without the word ERROR.
"""

from __future__ import annotations

import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RANKS = re.compile(r"-np?\s+(\d+)\s+(?:\S*/)?(\S+)")
FIRST = re.compile(r"error: (.*)")


def makefile_of(program: Path) -> str:
    found = [program.parent / name for name in ("Makefile", "makefile", "GNUmakefile")]
    return next((path.read_text(errors="replace") for path in found if path.is_file()), "")


def ranks_of(program: Path) -> int:
    """That of its own line, else the greatest of its makefile, else 4."""
    lines = RANKS.findall(makefile_of(program))
    own = [int(count) for count, name in lines if Path(name).stem == program.stem]
    return max(own or [int(count) for count, _ in lines] or [4])


def verdict(program: Path, folder: Path) -> tuple[str, str]:
    """passed, failed or not understood; and the construct or the reason."""
    made = folder / "program"
    command = [
        sys.executable,
        str(ROOT / "directives" / "tasuki-cc"),
        "-O1",
        "-w",
        str(program),
        "-o",
        str(made),
        "-lm",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if result.returncode:
        reason = FIRST.search(result.stderr)
        text = reason[1] if reason else result.stderr.strip().split("\n")[-1]
        return "not understood", re.sub(r"'[^']*'|\d+", "...", text)
    run = [
        sys.executable,
        str(ROOT / "tools" / "mpirun.py"),
        "--timeout",
        "60",
        "-n",
        str(ranks_of(program)),
        str(made),
    ]
    try:
        done = subprocess.run(
            run, capture_output=True, text=True, check=False, timeout=90, cwd=program.parent, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return "failed", "it does not end"
    output = done.stdout + done.stderr
    if done.returncode or "ERROR" in output:
        return "failed", f"status {done.returncode}"
    if "grep PASS" in makefile_of(program) and "PASS" not in output:
        return "failed", "no PASS in its output"
    return "passed", ""


def main(parts: list[str]) -> int:
    suite = os.environ.get("XMP_SUITE")
    if not suite or not Path(suite).is_dir():
        print("XMP_SUITE names no folder; set it to where the suite lies", file=sys.stderr)
        return 2
    programs = []
    for path in sorted(Path(suite).rglob("*.c")):
        text = path.read_text(errors="replace")
        wanted = not parts or any(part in str(path) for part in parts)
        if wanted and re.search(r"^\s*#\s*pragma\s+(xmp|acc)\b", text, re.M | re.I) and re.search(r"\bmain\s*\(", text):
            programs.append(path)
    counts: collections.Counter = collections.Counter()
    reasons: collections.Counter = collections.Counter()
    for path in programs:
        with tempfile.TemporaryDirectory() as folder:
            what, why = verdict(path, Path(folder))
        counts[what] += 1
        reasons[what, why] += bool(why)
        print(f"{what}: {path.relative_to(suite)}{': ' + why if why else ''}", flush=True)
    print(f"\n{counts['passed']} of {len(programs)} passed")
    for (what, why), count in reasons.most_common():
        if count:
            print(f"{count:4d} {what}: {why}")
    return 0 if counts["passed"] == len(programs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
