#!/usr/bin/env python3
"""Checks that the rooms of src/ (src/rooms.txt) include only rooms before them and define members of their own classes
only, that the pure ones see nothing of the machine, and that the Python package and the apps are made of public headers
and their own.

`tools/rooms.py [ROOT]` prints a line for each edge that goes the wrong way, and then exits with 1."""

from __future__ import annotations

import re
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "src" / "rooms.txt"


def rooms(half: str) -> list[str]:
    """Those of a half, `pure` or `live`, in the order of the table. CMakeLists.txt reads it as well."""
    lines = [line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return [words[1] for words in lines if words[0] == half]


PURE, LIVE = rooms("pure"), rooms("live")
ORDER = {room: place for place, room in enumerate(PURE + LIVE)}
# Public headers that pure code may include: those of the nouns that are data.
PURE_HEADERS = {
    "box",
    "cells",
    "distribution",
    "dtype",
    "error",
    "held",
    "layout",
    "machine",
    "plan",
    "planning",
    "predict",
    "strided_copy",
    "kernel/impl/reduce_ops",
}
# What says that a file knows MPI, CUDA, threads, a clock or the environment.
IMPURE = re.compile(
    r'#include [<"](mpi|cuda\w*|nccl|thread|mutex|atomic|condition_variable|chrono|ctime|time|unistd|sched'
    r'|fstream|sys/\w+)(\.h|\.cuh)?[>"]|\bgetenv\b'
)
INCLUDE = re.compile(r'#include "(\w+)/([\w/]+)\.\w+"')


OWN = re.compile(r'#include "([^"]+)"')


def private_includes(root: Path):
    for folder in ("python", "apps"):
        for file in sorted((root / folder).rglob("*.[ch]*")):
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = OWN.match(line)
                if not found or found.group(1).startswith("tasuki/"):
                    continue
                if not any((place / found.group(1)).exists() for place in (file.parent, root / folder)):
                    where = f"{file.relative_to(root)}:{number}"
                    yield f"{where}: includes {found.group(1)}, which is neither public nor its own"


# `class Operation::State final : public Progressing {`, and `void Operation::State::start(`, at the start of a line.
CLASS = re.compile(r"^(?:class|struct) (?:\w+ )?((?:\w+::)*\w+)(?: final)?(?: : [^{;]*)?\s*\{", re.MULTILINE)
MEMBER = re.compile(r"^(?! )(?:[\w:<>,&*\[\] ]+[ &*])?((?:\w+::)+)~?\w+\(", re.MULTILINE)


def members_of_other_rooms(root: Path):
    """Members that are defined in another room than their class: who includes the class's header depends on that room,
    though no include says so."""
    files = [file for file in sorted((root / "src").rglob("*.[ch]*")) if len(file.relative_to(root / "src").parts) > 1]
    texts = {file: file.read_text() for file in files}
    homes: dict[str, set[str]] = {}
    for file, text in texts.items():
        if file.suffix not in (".cpp", ".cu"):  # in a source it is that file's own
            for found in CLASS.finditer(text):
                homes.setdefault(found.group(1), set()).add(file.relative_to(root / "src").parts[0])
    for file, text in texts.items():
        room = file.relative_to(root / "src").parts[0]
        own = set(CLASS.findall(text))
        for found in MEMBER.finditer(text):
            name = found.group(1)[:-2]
            if name in homes and name not in own and room not in homes[name]:
                where = f"{file.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}"
                yield f"{where}: room {room} defines a member of {name}, which is a class of room {min(homes[name])}"


def complaints(root: Path):
    yield from private_includes(root)
    yield from members_of_other_rooms(root)
    for file in sorted((root / "src").rglob("*.[ch]*")):
        room = file.relative_to(root / "src").parts[0]
        for number, line in enumerate(file.read_text().splitlines(), 1):
            where = f"{file.relative_to(root)}:{number}"
            found = INCLUDE.match(line)
            other = found.group(1) if found else ""
            if other in ORDER and ORDER[other] > ORDER[room]:
                yield f"{where}: room {room} includes {other}/, which comes after it"
            if room in PURE and other == "tasuki" and found.group(2) not in PURE_HEADERS:
                yield f"{where}: pure room {room} includes tasuki/{found.group(2)}, which is live"
            if room in PURE and IMPURE.search(line):
                yield f"{where}: pure room {room} knows the machine: {line.strip()}"


def main() -> int:
    found = list(complaints(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)))
    print(
        "\n".join(found)
        if found
        else "rooms: every include goes from live to pure, to rooms before, or to what is public"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
