"""Nests of OpenACC become kernels: the file of CUDA that belongs to a file of C."""

from __future__ import annotations

import re
from pathlib import Path

from clang.cindex import CursorKind

from . import forms
from .lower_device import unknown
from .lower_names import NotTranslated
from .lower_nest import DATA, Nest, Piece
from .repeat import find_repeats

# How iterations are dealt to threads is chosen here; these say what a program expects of it.
MAPPING = ("gang", "worker", "vector", "independent", "auto", "num_gangs", "num_workers", "vector_length", "seq")
KNOWN = (*DATA, *MAPPING, "collapse", "private", "firstprivate", "reduction", "async", "wait", "default", "deviceptr")


class Kernels:
    """All that one file of C gives to its file of CUDA."""

    def __init__(self, low):
        self.low, self.pieces, self.count = low, [], 0
        self.source = low.code.unit.main
        self.stem = re.sub(r"\W", "_", Path(self.source.path).stem)

    def run(self) -> None:
        nests = [Nest(self, *n) for bound in self.low.nests for n in self._nests(bound)]
        for nest in nests:
            nest.translate()
        for bound in self.low.routines:
            self._routine(bound)
        find_repeats(self.low, nests)

    def _nests(self, bound) -> list:
        """The nests of a compute construct, each with all clauses that are about it."""
        form, low = bound.form, self.low
        for clause in form.clauses:
            _understood(clause, form)
        if form.construct.endswith("loop"):
            return [(bound, bound.statement, form.clauses, form.construct.startswith("serial"))]
        if form.construct == "serial":
            return [(bound, bound.statement, form.clauses, True)]
        body = bound.statement
        found = []
        for child in body.get_children() if body.kind is CursorKind.COMPOUND_STMT else [body]:
            loop = low.loop_on(child)
            if loop is None:
                span = low.code.span(child)
                message = f"this statement of '{form.construct}' has no loop directive"
                raise NotTranslated(span or form.span, message, "write #pragma acc loop before a for statement")
            for clause in loop.form.clauses:
                _understood(clause, loop.form)
            found.append((bound, child, [*form.clauses, *loop.form.clauses], False))
        return found

    def _routine(self, bound) -> None:
        low, function = self.low, bound.place.statement
        if function is None or function.kind is not CursorKind.FUNCTION_DECL:
            raise NotTranslated(bound.form.span, "no function follows 'routine'", "write it before the function")
        for clause in bound.form.clauses:
            if clause.name not in ("seq", "gang", "worker", "vector"):
                raise unknown(clause, "routine")
        low.say(bound, "__attribute__((unused))")  # by the host
        if not function.is_definition():
            return
        span = low.code.span(function)
        text = re.sub(r"^(\s*(static|inline|extern)\b)+", "", span.source.text[span.start : span.end])
        line = span.source.place(span.start)[0]
        self.pieces.append(Piece(span.start, span.end, f"{self.line(line)}static TSK_DEVICE {text.lstrip()}\n"))

    def line(self, number: int) -> str:
        path = self.source.path.replace("\\", "\\\\").replace('"', '\\"')
        return f'#line {number} "{path}"\n'

    def text(self) -> str:
        """The file of CUDA: what the preprocessor needs, types, routines and kernels, in the order of the source."""
        pieces, text = list(self.pieces), self.source.text
        at = 0
        for line in text.split("\n"):
            end = at + len(line)
            inside = any(p.at <= at < p.end for p in pieces)
            continued = self._continues(text, at)
            if (re.match(r"\s*#(?!\s*(pragma|line)\b)", line) and not inside) or (
                continued and pieces[-1].end == at - 1
            ):
                pieces.append(Piece(at, end, line + "\n"))
            at = end + 1
        for cursor in self.low.code.own:
            span = self.low.code.span(cursor)
            if not self._is_type(cursor) or any(p.at <= span.start and span.end <= p.end for p in pieces):
                continue
            # A type that a typedef holds comes with it.
            pieces = [p for p in pieces if not (span.start <= p.at and p.end <= span.end)]
            line = self.line(self.source.place(span.start)[0])
            pieces.append(Piece(span.start, span.end, f"{line}{text[span.start : span.end]};\n"))
        body = "".join(piece.text for piece in sorted(pieces, key=lambda p: p.at))
        title = f"/* Kernels of {self.source.path}, for nvcc; with XACC_EMULATED for C++. */"
        return f'{title}\n#include "xacc_kernels.h"\n{body}'

    def _is_type(self, cursor) -> bool:
        kinds = (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.ENUM_DECL)
        defines = cursor.kind in kinds and cursor.is_definition() or cursor.kind is CursorKind.TYPEDEF_DECL
        return defines and self.low.code.span(cursor).source is self.source

    @staticmethod
    def _continues(text: str, at: int) -> bool:
        return at > 1 and text[:at].rstrip("\n").endswith("\\") and text[at - 1] == "\n"


def _understood(clause: forms.Clause, form: forms.Acc) -> None:
    if clause.name not in KNOWN:
        raise unknown(clause, form.construct)
