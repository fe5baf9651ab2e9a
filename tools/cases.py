#!/usr/bin/env python3
"""Compares how many cases each launch of the last run of CTest had with tests/cases.txt, and fails if it had fewer: a
case that is renamed, moved or excluded must not stop to run without anybody's noticing.

    tools/cases.py BUILD NAME            what ran in BUILD, against the record of the tree that is called NAME
    tools/cases.py BUILD NAME --every    and every launch of the record must have run
    tools/cases.py BUILD NAME --write    takes what ran for the record, where it is more or new

To let a launch run fewer, edit its line. Launches on GPUs are not recorded, nor those that were skipped.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "cases.txt"
LAUNCH = re.compile(r'^\d+/\d+ Testing: (?P<name>\S+)\n(?P<text>.*?)^"(?P=name)" end time', re.MULTILINE | re.DOTALL)
COUNTS = (
    re.compile(r"^\[doctest\] test cases:\s*(\d+) \|", re.MULTILINE),  # those that were not filtered out
    re.compile(r"^(?:=+ )?(\d+) passed\b.* in [\d.]+s", re.MULTILINE),  # pytest
    re.compile(r"^Ran (\d+) tests? in", re.MULTILINE),  # unittest
)


def counts_of(log: str) -> dict[str, int]:
    """The cases of each launch that passed; one of a launch that does not count them."""
    counts = {}
    for launch in LAUNCH.finditer(log):
        name, text = launch["name"], launch["text"]
        if "\nTest Passed." not in text or name.startswith(("gpu_", "python_gpu_")):
            continue
        found = [max(map(int, numbers)) for pattern in COUNTS if (numbers := pattern.findall(text))]
        counts[name] = max(found, default=1)
    return counts


def read_record(text: str) -> dict[tuple[str, str], int]:
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {(tree, name): int(count) for tree, name, count in lines}


def complaints(tree: str, counts: dict[str, int], record: dict[tuple[str, str], int], every: bool) -> list[str]:
    found = []
    for (recorded_tree, name), least in sorted(record.items()):
        if recorded_tree != tree:
            continue
        if name not in counts and every:
            found.append(f"{name} did not run, or did not pass; the record has {least} cases of it")
        if counts.get(name, least) < least:
            found.append(f"{name} ran {counts[name]} cases; the record has {least}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("tree", help="what the record calls it")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    counts = counts_of((arguments.build / "Testing" / "Temporary" / "LastTest.log").read_text(errors="replace"))
    text = RECORD.read_text() if RECORD.exists() else "# How many cases each launch runs at least: tools/cases.py\n"
    record = read_record(text)
    if arguments.write:
        for name, count in counts.items():
            record[arguments.tree, name] = max(count, record.get((arguments.tree, name), 0))
        head = "".join(line + "\n" for line in text.splitlines() if line.startswith("#"))
        RECORD.write_text(head + "".join(f"{tree} {name} {n}\n" for (tree, name), n in sorted(record.items())))
        return 0
    found = complaints(arguments.tree, counts, record, arguments.every)
    for line in found:
        print(f"cases: {line}. If that is meant, edit tests/cases.txt", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
