"""What the writers of Fortran modules share."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

COLUMNS = 120


def wrapped(line: str) -> str:
    """The statement on lines of at most COLUMNS letters, cut behind commas and blanks."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    text = ""
    while len(line) > COLUMNS:
        cut = line.rfind(" ", len(indent), COLUMNS - 1)
        text += f"{line[:cut]} &\n"
        line = indent + line[cut + 1 :]
    return f"{text}{line}\n"


def comment(text: str, indent: str) -> str:
    lead = f"{indent}! "
    return textwrap.fill(text, COLUMNS, initial_indent=lead, subsequent_indent=lead) + "\n"


def generic(name: str, members: list[str]) -> str:
    """The generic interface of these procedures."""
    lines = "".join(f"    module procedure {member}\n" for member in members)
    return f"\n  interface {name}\n{lines}  end interface\n"


def main(arguments: list[str], module: Callable[[], str]) -> None:
    if len(arguments) != 2:
        sys.exit(f"usage: {Path(arguments[0]).name} OUTPUT.f90")
    Path(arguments[1]).write_text(module())
