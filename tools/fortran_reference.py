"""The Fortran reference of the documentation site, read from the sources of the module tasuki: those in fortran/, and
those that are written from the schema of operations and by scripts. Nothing is compiled."""

from __future__ import annotations

import re
import sys
from pathlib import Path

FORTRAN = Path(__file__).resolve().parent.parent / "fortran"
sys.path.insert(0, str(FORTRAN))

import arrays  # noqa: E402
import c_header  # noqa: E402, F401 - knows where the schema is
import for_fortran  # noqa: E402

PROCEDURE = re.compile(
    r"((?:^ *!.*\n)*)^ *((?:type\(\w+\)|integer(?:\(\w+\))?|logical|real(?:\(\w+\))?) function|subroutine) "
    r"(\w+)\(([^)]*)\).*\n",
    re.M,
)


def sources() -> dict[str, str]:
    """Texts by module, without those that users need not see."""
    texts = [path.read_text() for path in sorted(FORTRAN.glob("tasuki_*.f90"))]
    texts += [for_fortran.making(), arrays.module()]
    found = {re.search(r"^module (\w+)", text, re.M)[1]: re.sub(r" *&\n *", " ", text) for text in texts}
    return {name: text for name, text in sorted(found.items())}


def public_names() -> dict[str, list[str]]:
    """What users get, by the module that has it: the lists of tasuki.f90, or all that a module makes public."""
    text = re.sub(r" *&\n *", " ", (FORTRAN / "tasuki.f90").read_text())
    names: dict[str, list[str]] = {}
    for module, listed in re.findall(r"^  use (tasuki_\w+)(?:, only: (.*))?$", text, re.M):
        found = re.findall(r"\w+", listed)
        if not listed:
            lines = re.findall(r"^ *public :: (.*)$|^ *.*, public :: (.*)$", sources()[module], re.M)
            for one in (" ".join(pair).partition("!")[0] for pair in lines):
                found += re.findall(r"tasuki_\w+", re.sub(r"=\s*[^,]*", "", one))
        names[module] = names.get(module, []) + [name for name in found if name not in names.get(module, [])]
    return names


def plain(comment: str) -> str:
    """The words of comment lines, as markdown; lines that are indented further are a list."""
    lines = [re.sub(r"^ *! ?", "", line) for line in comment.splitlines()]
    text = ""
    for line in lines:
        entry = re.match(r"  (\w+)  +(.*)", line)
        text += f"\n* `{entry[1]}`: {entry[2]}" if entry else f" {line.strip()}" if line.strip() else "\n\n"
    return re.sub(r"^ ", "", text.strip(), flags=re.M)


def specifics(text: str, name: str) -> list[str]:
    """The procedures behind a generic name; else the name itself."""
    found = re.findall(rf"interface {name}\n((?:.*\n)*?) *end interface", text)
    return re.findall(r"\w+", re.sub("module procedure", "", "".join(found))) or [name]


def entry(text: str, name: str) -> str:
    """What a module says of a public procedure; empty for what is none. Of procedures that differ by types of arrays
    only the first is shown."""
    wanted = specifics(text, name)
    told, shown = "", set()
    for comment, kind, specific, arguments in PROCEDURE.findall(text):
        listed = ", ".join(arguments.split())
        listed = ", ".join(re.findall(r"\w+", listed))
        if specific not in wanted or listed in shown:
            continue
        shown.add(listed)
        call = f"{name}({listed})" if "function" in kind else f"call {name}({listed})"
        words = plain(comment).removeprefix(f"{name}: ")
        told += f"```fortran\n{call}\n```\n{words}\n\n"
    return f"### {name}\n{told}" if told else ""


def page() -> str:
    """All modules, with what each says of itself."""
    texts = sources()
    told = ""
    for module, names in public_names().items():
        if module not in texts:
            continue
        text = texts[module]
        head = re.match(r"(?:!.*\n)*", text)[0]
        entries = [entry(text, name) for name in dict.fromkeys(names)]
        values = [f"`{name}`" for name, one in zip(dict.fromkeys(names), entries) if not one]
        also = f"\nTypes and constants: {', '.join(values)}.\n" if values else ""
        told += f"## {module}\n{plain(head)}\n{also}\n{''.join(entries)}"
    return told


if __name__ == "__main__":
    print(page())
