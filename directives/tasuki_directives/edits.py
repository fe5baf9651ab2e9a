"""Changes of a source: what is not changed stays as it is, and #line leads back to it."""

from __future__ import annotations

from dataclasses import dataclass

from .source import Source


@dataclass
class Edit:
    """The text that takes the place of [start, end)."""

    start: int
    end: int
    text: str


class Edits:
    def __init__(self, source: Source):
        self.source = source
        self.changes: list[Edit] = []

    def replace(self, start: int, end: int, text: str) -> None:
        self.changes.append(Edit(start, end, text))

    def open(self, at: int, text: str) -> None:
        """Before what stands at `at`, and after what was put there earlier."""
        self.replace(at, at, text)

    def close(self, at: int, text: str) -> None:
        """After what ends at `at`: a block that was opened later ends earlier."""
        first = next((n for n, change in enumerate(self.changes) if change.start == change.end == at), None)
        self.changes.insert(len(self.changes) if first is None else first, Edit(at, at, text))

    def taken(self, start: int, end: int) -> str:
        """The text of [start, end) with its changes, which are used up: it goes elsewhere."""
        inside = [c for c in self.changes if start <= c.start and c.end <= end]
        self.changes = [c for c in self.changes if c not in inside]
        return "".join(text for text, _ in self._pieces(inside, start, end))

    def peeked(self, start: int, end: int) -> str:
        """The same, and the changes stay."""
        inside = [c for c in self.changes if start <= c.start and c.end <= end]
        return "".join(text for text, _ in self._pieces(inside, start, end))

    def _pieces(self, changes: list[Edit], start: int, end: int):
        """Texts, and where they stand in the source; -1 if they are new."""
        at = start
        for change in sorted(changes, key=lambda c: c.start):  # equal places keep their order
            if change.start < at:
                raise AssertionError(f"changes overlap at {self.source.path}:{self.source.place(change.start)}")
            yield self.source.text[at : change.start], at
            yield change.text, -1
            at = change.end
        yield self.source.text[at:end], at

    def printed(self) -> str:
        path = self.source.path.replace("\\", "\\\\").replace('"', '\\"')
        out = [f'#line 1 "{path}"\n']
        line, at_start = 1, True  # where the compiler believes to be
        for text, at in self._pieces(self.changes, 0, len(self.source.text)):
            if not text:
                continue
            if at >= 0:
                wanted, column = self.source.place(at)
                if wanted != line and text.strip("\n"):
                    if text[0] == "\n":
                        text, wanted, column = text[1:], wanted + 1, 1
                    blanks = 0
                    while text[blanks : blanks + 1] == "\n":
                        blanks += 1
                    text, wanted = text[blanks:], wanted + blanks
                    column = 1 if blanks else column
                    end = "" if at_start else "\n"
                    out.append(f'{end}#line {wanted} "{path}"\n' + " " * (column - 1))
                    line = wanted
            out.append(text)
            line += text.count("\n")
            at_start = text.endswith("\n")
        return "".join(out)
