"""Which pragmas of a translation unit count, and what macros make of them.

The user's compiler preprocesses the file once and says which pragmas stand outside `#if 0`, in headers too, and which
macros are defined where. Each pragma is then handed to it again as an ordinary line, in which it expands macros. The
user's text is kept: a token of the expansion knows the token of the source that it comes from.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .diagnostics import BadInput, Findings
from .source import PRAGMA, TOKEN, Pragma, Source, Token

MARKER = re.compile(r'#(?: |line )(\d+) "((?:\\.|[^"\\])*)"')
OBJECT_MACRO = re.compile(r"#define ([A-Za-z_]\w*) (\S.*)")
NAME = "tasuki_pragma_of_line"  # before each line that is to be expanded
SEARCHED = re.compile(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", re.DOTALL)


@dataclass(frozen=True)
class Unit:
    """A file of C with the headers that hold pragmas: all pragmas that count, in the order of the compiler."""

    main: Source
    sources: dict  # by their real paths: the preprocessor and libclang may name a header differently
    pragmas: list
    flags: list
    macros: dict  # text of those without arguments


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC") or "cc")


def run(arguments: list[str], text: str | None = None) -> subprocess.CompletedProcess:
    command = [*compiler(), *arguments]
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, errors="surrogateescape"
        )
    except OSError as error:
        raise BadInput(f"tasuki-cc: error: {command[0]} does not start: {error.strerror}; set CC") from error


def include_flags() -> list[str]:
    """The folders that the compiler searches by itself."""
    return _include_flags(tuple(compiler()))


@functools.cache
def _include_flags(command: tuple) -> list[str]:
    found = SEARCHED.search(run(["-E", "-v", "-x", "c", "/dev/null", "-o", "/dev/null"]).stderr)
    folders = found[1].split("\n") if found else []
    return [word for folder in folders if folder.strip() for word in ("-isystem", folder.strip())]


def read_unit(path: str, flags: list[str], findings: Findings) -> Unit:
    main = Source(path)
    result = run(["-E", "-dD", *flags, "-x", "c", path])
    if result.returncode:
        raise BadInput(result.stderr.rstrip())
    sources = {os.path.realpath(path): main}
    active, lines = _active(result.stdout, path, sources, findings)
    if not active:
        return Unit(main, sources, [], flags, {})
    expanded = run(["-E", "-P", "-w", *flags, "-x", "c", "-"], "\n".join(lines) + "\n")
    if expanded.returncode:
        raise BadInput(expanded.stderr.rstrip())
    # A long line may come back as several.
    pieces = re.split(rf"\b{NAME} (\d+) ", " ".join(expanded.stdout.split("\n")))
    for number, text in zip(pieces[1::2], pieces[2::2]):
        pragma = active[int(number)]
        tokens = [m[0] for m in TOKEN.finditer(text)]
        active[int(number)] = Pragma(
            pragma.language, pragma.span, _placed(tokens, pragma), pragma.first_line, pragma.last_line
        )
    macros = dict(m.groups() for m in map(OBJECT_MACRO.match, lines) if m)
    return Unit(main, sources, active, flags, macros)


def _active(output: str, main: str, sources: dict, findings: Findings) -> tuple[list[Pragma], list[str]]:
    """The pragmas that are left, and lines by which the preprocessor expands them."""
    active: list[Pragma] = []
    lines: list[str] = []
    path, line = main, 1
    for text in output.split("\n"):
        marker = MARKER.match(text)
        if marker:
            line, path = int(marker[1]), re.sub(r"\\(.)", r"\1", marker[2])
            continue
        if text.startswith(("#define ", "#undef ")):
            if not text.startswith(("#define __STDC", "#define __has", "#undef __STDC")):
                lines.append(text)
        elif PRAGMA.match(text):
            key = os.path.realpath(path)
            if key not in sources and Path(path).is_file():
                sources[key] = Source(path)
            source = sources.get(key)
            found = [p for p in source.pragmas if p.first_line <= line <= p.last_line] if source else []
            if found:
                words = " ".join(token.text for token in found[0].tokens)
                quoted = path.replace("\\", "\\\\").replace('"', '\\"')
                lines += [f'#line {found[0].first_line} "{quoted}"', f"{NAME} {len(active)} {words}"]
                active.append(found[0])
            elif source:
                start = source.starts[min(line, len(source.starts)) - 1]
                findings.error(
                    source.span(start, start + len(source.line(line))),
                    "a directive that _Pragma makes has no place in the text",
                    "write it as a line that begins with #pragma",
                )
        line += 1
    return active, lines


def _placed(texts: list[str], pragma: Pragma) -> list[Token]:
    """Gives each token of the expansion the place of the one it comes from."""
    own = pragma.tokens
    matcher = difflib.SequenceMatcher(None, [token.text for token in own], texts, autojunk=False)
    placed = []
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        for at in range(j, j_end):
            token = own[i + at - j] if kind == "equal" else own[min(i, len(own) - 1)]
            span = token.span
            if kind == "replace" and i_end > i:
                span = type(span)(span.source, span.start, own[i_end - 1].span.end)
            placed.append(Token(texts[at], span))
    return placed
