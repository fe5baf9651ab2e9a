#!/usr/bin/env python3
"""Writes a ```cpp block of a Markdown file, the first or the one of a number, to a source file, with line numbers that
lead back to it."""

import sys
from pathlib import Path


def block(text: str, name: str, number: int = 1) -> str:
    lines = text.splitlines()
    start = 0
    try:
        for _ in range(number):
            start = lines.index("```cpp", start) + 1
        end = lines.index("```", start)
    except ValueError:
        raise SystemExit(f"{name}: there is no ```cpp block {number}, closed by ```, at the start of a line") from None
    return "\n".join([f'#line {start + 1} "{name}"', *lines[start:end], ""])


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: readme_example.py README.md OUTPUT.cpp [NUMBER]")
    number = int(sys.argv[3]) if len(sys.argv) == 4 else 1
    Path(sys.argv[2]).write_text(block(Path(sys.argv[1]).read_text(), sys.argv[1], number))
