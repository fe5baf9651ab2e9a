"""A C source as text: its lines, its pragmas, and the same text with what is not C replaced.

Continued lines of a pragma are joined; every character of the joined text knows where it stands in the source.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from pathlib import Path

from .diagnostics import BadInput, Span

# All of C that may hide what looks like something else, then words, numbers, operators.
TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//(?:\\\r?\n|[^\n])*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)"""
    r"""|(?P<operator><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S)""",
    re.DOTALL,
)
PRAGMA = re.compile(r"[ \t]*#[ \t]*pragma[ \t]+(?P<language>xmp|acc)\b", re.IGNORECASE)
NULL = "((void*)0)"
JOIN = re.compile(r"\\[ \t]*\r?\n")


@dataclass(frozen=True)
class Token:
    """A word of a pragma. `span` is where it, or the macro that it comes from, stands."""

    text: str
    span: Span


@dataclass(frozen=True)
class Pragma:
    """`#pragma xmp` or `#pragma acc` as the user wrote it: `span` is all its lines, `tokens` follow the language."""

    language: str
    span: Span
    tokens: list
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Section:
    """`[base:length]` or `:[node]` in the code, which is not C. `coindex` tells the second."""

    span: Span
    coindex: bool


class Source:
    """One file. Lines and columns count from 1, offsets are characters."""

    def __init__(self, path: str | Path, text: str | None = None):
        self.path = str(path)
        if text is None:
            try:
                data = Path(path).read_bytes()
            except OSError as error:
                raise BadInput(f"tasuki-cc: error: {path} cannot be read: {error.strerror}") from error
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                text = data.decode("latin-1")
        self.text = text
        self.starts = [0] + [m.end() for m in re.finditer(r"\n", text)]
        self.hidden = [m.span() for m in TOKEN.finditer(text) if m.lastgroup in ("comment", "text")]
        self.pragmas = self._find_pragmas()
        self._find_sections()

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int) -> str:
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[self.starts[number - 1] : end].rstrip("\r\n")

    def span(self, start: int, end: int) -> Span:
        return Span(self, start, end)

    def offset_of_byte(self, byte: int) -> int:
        """libclang counts the bytes of `as_c`."""
        return byte if self.as_c.isascii() else len(self.as_c.encode()[:byte].decode("utf-8", "ignore"))

    def _is_hidden(self, offset: int) -> bool:
        at = bisect.bisect_right(self.hidden, (offset, len(self.text))) - 1
        return at >= 0 and self.hidden[at][0] <= offset < self.hidden[at][1]

    def _find_pragmas(self) -> list[Pragma]:
        found, line = [], 1
        while line <= len(self.starts):
            first, start = line, self.starts[line - 1]
            line += 1
            match = PRAGMA.match(self.text, start)
            if not match or self._is_hidden(match.end() - 1):
                continue
            while line <= len(self.starts) and self._goes_on(line - 1):
                line += 1
            end = self._end(line - 1)
            hash_at = self.text.index("#", start)
            tokens = self._tokens(match.end(), end)
            stop = tokens[-1].span.end if tokens else match.end()
            found.append(Pragma(match["language"].lower(), self.span(hash_at, stop), tokens, first, line - 1))
        return found

    def _goes_on(self, line: int) -> bool:
        """Whether the line ends in a backslash or inside of a comment."""
        start, end = self.starts[line - 1], self._end(line)
        return JOIN.search(self.text, start, end) is not None or self._is_hidden(end - 1)

    def _end(self, line: int) -> int:
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def _tokens(self, start: int, end: int) -> list[Token]:
        joined, places, at = [], [], start
        while at < end:
            join = JOIN.match(self.text, at, end)
            if join:
                at = join.end()
                continue
            joined.append(self.text[at])
            places.append(at)
            at += 1
        return [
            Token(m[0], self.span(places[m.start()], places[m.end() - 1] + 1))
            for m in TOKEN.finditer("".join(joined))
            if m.lastgroup != "comment"
        ]

    def _find_sections(self) -> None:
        """Fills `sections`, and `as_c`: text of the same length that a C parser takes."""
        self.sections: list[Section] = []
        masked = list(self.text)
        lines = [(self.starts[p.first_line - 1], self._end(p.last_line)) for p in self.pragmas]
        for start, end in lines:
            self._blank(masked, start, end)
        tokens = []
        for match in TOKEN.finditer("".join(masked)):
            if match.lastgroup != "comment":
                tokens.append(match)
        open_brackets: list[tuple[int, list[int]]] = []  # index of the token, [questions, colons]
        for index, token in enumerate(tokens):
            text = token[0]
            if text in ("[", "(", "{"):
                open_brackets.append((index, [0, 0]))
            elif text == "?" and open_brackets:
                open_brackets[-1][1][0] += 1
            elif text == ":" and open_brackets:
                open_brackets[-1][1][1] += 1
            elif text in ("]", ")", "}") and open_brackets:
                first, (questions, colons) = open_brackets.pop()
                before = tokens[first - 1] if first else None
                if text == ")" and before is not None and before[0] == "xmp_desc_of":
                    # Its argument may be a name that only directives know.
                    self._blank(masked, before.start(), token.end())
                    masked[before.start() : before.start() + len(NULL)] = NULL
                elif text != "]" or tokens[first][0] != "[":
                    continue
                elif before is not None and before[0] == ":" and first > 1 and self._ends_operand(tokens[first - 2]):
                    self.sections.append(Section(self.span(before.start(), token.end()), True))
                    self._blank(masked, before.start(), token.end())
                    if open_brackets:
                        open_brackets[-1][1][1] -= 1
                elif colons > questions and not (before is not None and before[0] == "["):
                    self.sections.append(Section(self.span(tokens[first].start(), token.end()), False))
                    self._blank(masked, tokens[first].end(), token.start())
                    masked[tokens[first].end()] = "0"
        self.as_c = "".join(masked)

    @staticmethod
    def _ends_operand(token: re.Match) -> bool:
        return token.lastgroup == "word" or token[0] in ("]", ")")

    @staticmethod
    def _blank(masked: list[str], start: int, end: int) -> None:
        for at in range(start, end):
            if masked[at] not in "\r\n":
                masked[at] = " "
