#!/usr/bin/env python3
"""Sees to it that the code blocks of a Markdown page are code that is tested.

A block in C, C++ or Fortran that is a whole program is written out, to be built and run; every other block in a
language of LANGUAGES must stand, line for line (but for its indentation), in one of the files that are given, which are
tested; or one of them is a test in Python that takes the page's blocks of this language and runs them.
A block in C++ whose first line is a comment with a file's name (`// src/engines/patient.cpp`) is that file, to be built
as a part of a test.

    tools/doc_blocks.py programs PAGE.md FOLDER       writes FOLDER/<page>_<n>.c, .cpp, .f90, n counting in a language
    tools/doc_blocks.py check PAGE.md [FILE...]        names the blocks that are in none of the files, and exits with 1
    tools/doc_blocks.py files PAGE.md FOLDER FILE...  writes the C++ blocks to FOLDER/FILE; fails unless the page has
                                                      these files and no other C++ block
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

LANGUAGES = {"c": ".c", "cpp": ".cpp", "fortran": ".f90", "cmake": "", "sh": ""}
FILE = re.compile(r"// ((?:[\w-]+/)+[\w-]+\.[hc]pp)\n")
MAIN = re.compile(r"^int main\(", re.M)
PROGRAM = {"c": MAIN, "cpp": MAIN, "fortran": re.compile(r"^program \w+", re.M)}


def blocks(page: Path):
    """Language, number of the first line and text of each fenced block."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
    text = page.read_text()
    for found in fence.finditer(text):
        yield found.group(1), text.count("\n", 0, found.start()) + 2, found.group(2)


def is_program(language: str, text: str) -> bool:
    return language in PROGRAM and PROGRAM[language].search(text) is not None


def write_programs(page: Path, folder: Path) -> None:
    numbers: dict[str, int] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for language, line, text in blocks(page):
        if not is_program(language, text):
            continue
        numbers[language] = numbers.get(language, 0) + 1
        lead = f'#line {line} "{page}"\n' if language != "fortran" else f'# {line} "{page}"\n'
        (folder / f"{page.stem}_{numbers[language]}{LANGUAGES[language]}").write_text(lead + text)


def write_files(page: Path, folder: Path, wanted: list[str]) -> None:
    found: dict[str, str] = {}
    for language, line, text in blocks(page):
        if language != "cpp":
            continue
        name = FILE.match(text)
        if name is None:
            sys.exit(f"{page}:{line}: the first line of this block does not say which file it is")
        if name.group(1) in found:
            sys.exit(f"{page}:{line}: there is another block for {name.group(1)}")
        found[name.group(1)] = f'#line {line} "{page}"\n{text}'
    if sorted(found) != sorted(wanted):
        sys.exit(f"{page} has the files {sorted(found)}, but the build expects {sorted(wanted)}")
    for name, text in found.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def bare(text: str) -> str:
    """The lines of a text without indentation and blank lines at either end."""
    return "\n".join(line.strip() for line in textwrap.dedent(text).strip().splitlines()) + "\n"


def taken(page: Path, file: Path) -> set[str]:
    """The languages whose blocks a test in Python takes from the page, to run them."""
    text = file.read_text() if file.suffix == ".py" else ""
    return {one for one in LANGUAGES if page.name in text and f"```{one}\\n" in text}


def untested(page: Path, files: list[Path]):
    known = [bare(file.read_text()) for file in files if file.suffix != ".py"]
    run = {language for file in files for language in taken(page, file)}
    for language, line, text in blocks(page):
        if language not in LANGUAGES or language in run:
            continue
        if not is_program(language, text) and not any(bare(text) in one for one in known):
            yield f"{page}:{line}: this {language} block is in none of the tested files"


def main() -> int:
    if len(sys.argv) < (3 if sys.argv[1:2] == ["check"] else 4) or sys.argv[1] not in ("programs", "check", "files"):
        sys.exit(__doc__)
    page = Path(sys.argv[2])
    if sys.argv[1] == "files":
        write_files(page, Path(sys.argv[3]), sys.argv[4:])
        return 0
    if sys.argv[1] == "programs":
        write_programs(page, Path(sys.argv[3]))
        return 0
    found = list(untested(page, [Path(name) for name in sys.argv[3:]]))
    print("\n".join(found) if found else f"{page}: every block is tested")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
