"""A program's directives as JSON has them."""

from __future__ import annotations

from . import forms
from .bind import Program


def described(program: Program) -> list[dict]:
    found = []
    for bound in program.directives:
        source = bound.pragma.span.source
        entry = {
            "file": source.path,
            "line": bound.pragma.first_line,
            "language": bound.pragma.language,
            **forms.plain(bound.form),
            "function": bound.place.function.spelling if bound.place.function is not None else None,
        }
        if bound.statement is not None:
            span = program.code.statement_span(bound.statement)
            lines = [span.source.place(at)[0] for at in (span.start, span.end)]
            entry["statement"] = {"lines": lines, "offsets": [span.start, span.end]}
        found.append(entry)
    return found
