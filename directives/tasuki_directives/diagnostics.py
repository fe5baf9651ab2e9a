"""What is said about a source: the place, a caret under it, and what to do."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field


class BadInput(Exception):
    """A fault that ends the work on a file; the message is complete."""


@dataclass(frozen=True)
class Span:
    """Bytes [start, end) of a source file, as characters of its text."""

    source: object = field(repr=False)
    start: int
    end: int

    def holds(self, other: Span) -> bool:
        return self.source is other.source and self.start <= other.start and other.end <= self.end


class Index:
    """Things by where they stand in the sources."""

    def __init__(self, items: list, span_of):
        self.by_source: dict = {}
        for span, item in ((span_of(item), item) for item in items):
            if span is not None:
                self.by_source.setdefault(id(span.source), []).append((span.start, item, span))
        for found in self.by_source.values():
            found.sort(key=lambda entry: entry[0])  # those of one place keep their order

    def within(self, source, start: int, end: int) -> list:
        """Those that begin in [start, end), in the order of the text."""
        found = self.by_source.get(id(source), [])
        first = bisect.bisect_left(found, start, key=lambda entry: entry[0])
        last = bisect.bisect_left(found, end, key=lambda entry: entry[0])
        return [item for _, item, _ in found[first:last]]

    def held(self, span: Span) -> list:
        """Those that lie within a piece of text."""
        found = self.by_source.get(id(span.source), [])
        first = bisect.bisect_left(found, span.start, key=lambda entry: entry[0])
        last = bisect.bisect_left(found, span.end, key=lambda entry: entry[0])
        return [item for _, item, own in found[first:last] if own.end <= span.end]


@dataclass(frozen=True)
class Finding:
    """An error at a place of the user's text."""

    span: Span
    message: str
    remedy: str

    def __str__(self) -> str:
        source, start = self.span.source, self.span.start
        line, column = source.place(start)
        text = source.line(line)
        width = max(1, min(self.span.end - start, len(text) - column + 1))
        under = "".join("\t" if c == "\t" else " " for c in text[: column - 1]) + "^" + "~" * (width - 1)
        return (
            f"{source.path}:{line}:{column}: error: {self.message}\n    {text}\n    {under}\n    remedy: {self.remedy}"
        )


class Findings(list):
    """All that was found, in the order of checks."""

    def error(self, span: Span, message: str, remedy: str) -> None:
        finding = Finding(span, message, remedy)
        if finding not in self:
            self.append(finding)
