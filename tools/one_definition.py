#!/usr/bin/env python3
"""Checks that no two files of the library define classes of one name in one namespace.

The linker takes one of two destructors of the same name for both, without a word, wherever the compiler has not inlined
them: C++'s rule of one definition. What is in an unnamed namespace is its file's own.
`tools/one_definition.py [ROOT]` prints a line for each such name, and then exits with 1."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from unity import code_of

OPENED = re.compile(
    r"\bnamespace\s*(?P<namespace>[\w:]*)\s*\{"
    r"|\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?(?P<type>\w+)(?:\s+final)?"
    r"\s*(?::[^:;{(][^;{(]*)?\{"
    r"|[{}]"
)


def types(code: str):
    """Each class and enumeration that other files can mean by the same name, with its namespaces."""
    around: list[str | None] = []  # None: an unnamed namespace, a function, or what else has braces
    for found in OPENED.finditer(code):
        if found[0] == "}":
            del around[-1:]
            continue
        name = found["type"] or found["namespace"]
        if found["type"] and None not in around:
            yield "::".join([*around, name])
        around.append(name or None)


def defined_twice(root: Path):
    places: dict[str, set[str]] = {}
    for folder in ("include", "src"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".hpp", ".cpp", ".h", ".cuh", ".cu"):
                for name in types(code_of(file.read_text())):
                    places.setdefault(name, set()).add(str(file.relative_to(root)))
    for name, files in sorted(places.items()):
        if len(files) > 1:
            yield f"{name} is defined in {' and in '.join(sorted(files))}; give one of them another name"


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    wrong = list(defined_twice(root))
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
