#!/usr/bin/env python3
"""Puts C++ sources into groups that can be compiled as one file each, for TasukiUnity.cmake.

Two sources do not come into one group if a name that one keeps to itself (in an unnamed namespace, as a static function
or as a macro) occurs anywhere in the other, but as a member, or is the name of something in a header that only the
other includes. Those of the interface in C are each alone. So no source has to be written with others' names in mind.
Arguments: how many sources a group has at most, then the sources. Prints one group a line, its sources separated by
semicolons.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 3000  # in a group: else one takes longer than all others
NOT_CODE = re.compile(
    r"""R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*.*?\*/|^\s*#\s*include[^\n]*""",
    re.DOTALL | re.MULTILINE,
)
WORD = re.compile(r"[A-Za-z_]\w*")
NO_MEMBER = re.compile(r"(?<![\w.])(?<!->)(?<!std::)[A-Za-z_]\w*")
DECLARED = re.compile(
    r"\b(?:struct|class|union|enum(?:\s+class)?|concept|using)\s+(\w+)|\b(\w+)\s*(?:[;=\[({,]|$)", re.MULTILINE
)
KEYWORDS = {"return", "if", "for", "while", "switch", "sizeof", "const", "requires", "operator", "static", "inline"}


def closing(text: str, start: int) -> int:
    """Where the brace closes that is open at `start`."""
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return start + brace.start()
    return len(text)


def outermost(text: str) -> str:
    """Without what is in braces, parentheses and template arguments."""
    for inside in (r"\{[^{}]*\}", r"\([^()]*\)"):
        previous = None
        while previous != text:
            previous, text = text, re.sub(inside, lambda m: "\x01" if m[0][0] == "{" else "\x02", text)
    return text.replace("\x01", "{;").replace("\x02", "(")


def own_names(code: str) -> set[str]:
    names = set(re.findall(r"^\s*#\s*define\s+(\w+)", code, re.MULTILINE))
    names |= set(re.findall(r"^\s*static\s[^;{(=]*?\b(\w+)\s*[({=;]", code, re.MULTILINE))
    for start in re.finditer(r"\bnamespace\s*\{", code):
        body = code[start.end() : closing(code, start.end())]
        for values in re.finditer(r"\benum\s+\w*[^{;]*\{([^}]*)\}", body):
            names |= set(WORD.findall(values[1]))
        names |= {a or b for a, b in DECLARED.findall(outermost(body))}
    return {name for name in names - KEYWORDS if not name.isdigit()}


def code_of(text: str) -> str:
    return NOT_CODE.sub(lambda m: '""' if m[0][0] in "\"'R" else " ", text)


@functools.cache
def header_names(header: Path) -> set[str]:
    """Of all that a header declares, and more: members and parameters are among them."""
    return {a or b for a, b in DECLARED.findall(code_of(header.read_text()))}


@functools.cache
def included(file: Path) -> list[Path]:
    """The project's files that a file includes."""
    found = []
    for name in re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', file.read_text(), re.MULTILINE):
        places = [folder / name for folder in (file.parent, ROOT / "src", ROOT / "include", ROOT / "tests")]
        found += [place.resolve() for place in places if place.is_file()][:1]
    return found


def headers_of(source: Path) -> set[Path]:
    """The project's headers that a source includes, and those that these include."""
    found: set[Path] = set()
    waiting = included(source)
    while waiting:
        header = waiting.pop()
        if header not in found:
            found.add(header)
            waiting += included(header)
    return found


def fits(group: dict, one: dict, most: int) -> bool:
    def clash(a: dict, b: dict) -> bool:
        return bool(a["own"] & b["words"]) or any(a["own"] & header_names(h) for h in b["headers"] - a["headers"])

    if (
        one["alone"]
        or group["members"][0]["alone"]
        or group["count"] == most
        or group["lines"] + one["lines"] > MOST_LINES
    ):
        return False
    return not any(clash(one, other) or clash(other, one) for other in group["members"])


def grouped(sources: list[str], texts: dict[str, str], most: int) -> list[list[str]]:
    groups: list[dict] = []
    for source in sources:
        code = code_of(texts[source])
        headers = headers_of(Path(source)) if Path(source).is_file() else set()
        one = {"source": source, "own": own_names(code), "words": set(NO_MEMBER.findall(code)), "headers": headers}
        # Both are for all that follows in the file: `using namespace`, and the macros of the header of C.
        one["alone"] = "using namespace" in code or Path(source).parent.name == "api"
        one["lines"] = texts[source].count("\n")
        group = next((group for group in groups if fits(group, one, most)), None)
        if group is None:
            group = {"count": 0, "lines": 0, "members": []}
            groups.append(group)
        group["members"].append(one)
        group["count"] += 1
        group["lines"] += one["lines"]
    return [[one["source"] for one in group["members"]] for group in groups]


def main() -> int:
    sources = sys.argv[2:]
    texts = {source: Path(source).read_text() for source in sources}
    for group in grouped(sources, texts, int(sys.argv[1])):
        print(";".join(group))
    return 0


if __name__ == "__main__":
    sys.exit(main())
