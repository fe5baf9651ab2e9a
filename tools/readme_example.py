#!/usr/bin/env python3
"""Writes the first ```cpp block of a Markdown file to a source file, with line numbers that lead back to it."""

import sys
from pathlib import Path


def first_block(text: str, name: str) -> str:
    lines = text.splitlines()
    try:
        start = lines.index("```cpp") + 1
        end = lines.index("```", start)
    except ValueError:
        raise SystemExit(f"{name}: there is no ```cpp block, closed by ```, at the start of a line") from None
    return "\n".join([f'#line {start + 1} "{name}"', *lines[start:end], ""])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: readme_example.py README.md OUTPUT.cpp")
    Path(sys.argv[2]).write_text(first_block(Path(sys.argv[1]).read_text(), sys.argv[1]))
