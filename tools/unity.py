#!/usr/bin/env python3
"""Puts C++ sources into groups that can be compiled as one file each, for TasukiUnity.cmake.

Two sources do not come into one group if a name that one keeps to itself (in an unnamed namespace, as a static function
or as a macro) occurs anywhere in the other, but as a member. So no source has to be written with others' names in mind.
Arguments: how many sources a group has at most, then the sources. Prints one group a line, its sources separated by
semicolons.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

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


def grouped(sources: list[str], texts: dict[str, str], most: int) -> list[list[str]]:
    groups: list[dict] = []
    for source in sources:
        code = NOT_CODE.sub(lambda m: '""' if m[0][0] in "\"'R" else " ", texts[source])
        own, words, lines = own_names(code), set(NO_MEMBER.findall(code)), texts[source].count("\n")
        for group in groups:
            fits = len(group["sources"]) < most and group["lines"] + lines <= MOST_LINES
            if fits and not own & group["words"] and not words & group["own"]:
                break
        else:
            group = {"sources": [], "own": set(), "words": set(), "lines": 0}
            groups.append(group)
        group["sources"].append(source)
        group["own"] |= own
        group["words"] |= words
        group["lines"] += lines
    return [group["sources"] for group in groups]


def main() -> int:
    sources = sys.argv[2:]
    texts = {source: Path(source).read_text() for source in sources}
    for group in grouped(sources, texts, int(sys.argv[1])):
        print(";".join(group))
    return 0


if __name__ == "__main__":
    sys.exit(main())
