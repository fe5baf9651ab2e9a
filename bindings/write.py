#!/usr/bin/env python3
"""Writes what is made from the schema into a folder: `bindings/write.py c|fortran|python OUTPUT [--names]`.

With --names it only prints the files' names.

c: include/tasuki/c/*.h and operations.cpp. fortran: two modules. python: a source of the extension module, and a file
of the package. An entry that contradicts itself is an error that begins with its file and line."""

from __future__ import annotations

import sys
from pathlib import Path

import schema


def files(language: str) -> dict[str, str]:
    """Texts by their names below the output folder."""
    if language == "c":
        import for_c

        pages = {f"include/tasuki/c/{name}": text for name, text in for_c.headers().items()}
        return pages | {"operations.cpp": for_c.implementation()}
    if language == "fortran":
        import for_fortran

        return for_fortran.modules()
    import for_python

    return for_python.files()


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1] not in schema.LANGUAGES or sys.argv[3:] not in ([], ["--names"]):
        sys.exit(__doc__)
    try:
        written = files(sys.argv[1])
    except schema.Contradiction as error:
        print(f"{error}", file=sys.stderr)
        return 1
    for name, text in written.items():
        path = Path(sys.argv[2]) / name
        if sys.argv[3:]:
            print(path)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
