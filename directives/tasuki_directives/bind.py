"""Each directive with the place where it stands and the statement that it is about."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

from clang.cindex import Cursor, CursorKind

from . import forms, openacc
from .c_code import Code, Place
from .diagnostics import Findings, Index
from .preprocess import Unit, read_unit
from .reader import Reader
from .source import Pragma

DECLARATIONS = (
    forms.Nodes,
    forms.Template,
    forms.Distribute,
    forms.Align,
    forms.Shadow,
    forms.Coarray,
    forms.LocalAlias,
)
# What the directive needs after it.
WANTED = {forms.Loop: "for", forms.Task: "statement", forms.Tasks: "block", forms.Array: "expression"}
WANTED |= {forms.Gmove: "expression"}
BLOCKS = (CursorKind.COMPOUND_STMT, CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT, CursorKind.LABEL_STMT)
NOT_EXPRESSIONS = (CursorKind.DECL_STMT, CursorKind.NULL_STMT)


@dataclass
class Bound:
    """One directive. `statement` is set for those that have one."""

    pragma: Pragma
    form: forms.Directive
    place: Place
    wanted: str  # for, statement, block, expression, or nothing
    statement: Cursor | None = field(default=None)

    @property
    def name(self) -> str:
        form = self.form
        if isinstance(form, forms.Acc):
            return form.construct
        return self.pragma.tokens[0].text.lower()


@dataclass
class Program:
    code: Code
    directives: list

    @functools.cached_property
    def pragmas(self) -> Index:
        """All directives by where their pragmas stand. Asked for when all have been read."""
        return Index(self.directives, lambda bound: bound.pragma.span)

    @functools.cached_property
    def statements(self) -> list:
        """Directives that have a statement, each with its span."""
        return [(bound, self.code.span(bound.statement)) for bound in self.directives if bound.statement is not None]


def wanted_by(form: forms.Directive) -> str:
    if isinstance(form, forms.Acc):
        return openacc.CONSTRUCTS[form.construct][0]
    return WANTED.get(type(form), "")


def read_program(path: str, flags: list[str], findings: Findings) -> Program | None:
    """None if the file has no directives that count."""
    unit = read_unit(path, flags, findings)
    return bound_program(unit, findings) if unit.pragmas else None


def bound_program(unit: Unit, findings: Findings) -> Program:
    reader = Reader(findings)
    read = [(pragma, reader.read(pragma)) for pragma in unit.pragmas]
    code = Code(unit, findings)
    program = Program(code, [])
    places = {id(pragma): code.place(pragma.span) for pragma, _ in read}
    for pragma, found in read:
        for form in found:
            bound = Bound(pragma, form, places[id(pragma)], wanted_by(form))
            _stands_well(bound, code, findings)
            program.directives.append(bound)
    _nothing_between(program, findings)
    return program


def _stands_well(bound: Bound, code: Code, findings: Findings) -> None:
    inside, span, name = bound.place.inside, bound.form.span, bound.name
    executable = not isinstance(bound.form, DECLARATIONS) and name not in ("declare", "routine")
    if inside.kind is CursorKind.TRANSLATION_UNIT:
        if executable:
            findings.error(span, f"'{name}' may not stand outside of a function", "move it to where it is to happen")
        return
    if inside.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL):
        if not isinstance(bound.form, (forms.Align, forms.Shadow)):
            findings.error(span, f"'{name}' may not stand in a struct", "only align and shadow may")
        return
    if not bound.wanted:
        if inside.kind not in BLOCKS:
            message = f"'{name}' may not stand here: it is no statement, and C wants one"
            findings.error(span, message, "put braces around it and the statement after it")
        return
    statement = bound.place.statement
    if statement is None:
        findings.error(span, f"no statement follows '{name}' in its block", "move it before the statement it is about")
        return
    kind = statement.kind
    is_expression = not kind.is_statement() and kind not in NOT_EXPRESSIONS
    fits = {
        "for": kind is CursorKind.FOR_STMT,
        "block": kind is CursorKind.COMPOUND_STMT,
        "expression": is_expression,
        "statement": kind is not CursorKind.DECL_STMT,
    }[bound.wanted]
    if not fits:
        what = {"for": "a for statement", "block": "a block in braces", "statement": "a statement"}
        what["expression"] = "an assignment"
        line = code.span(statement).source.place(code.span(statement).start)[0]
        findings.error(
            span,
            f"'{name}' needs {what[bound.wanted]}, and line {line} has none",
            f"move it before {what[bound.wanted]}",
        )
        return
    bound.statement = statement


def _nothing_between(program: Program, findings: Findings) -> None:
    """Between a directive and its statement there may only be others about the same statement."""
    for bound in program.directives:
        if bound.statement is None:
            continue
        start, own = program.code.span(bound.statement).start, bound.pragma.span
        for other in program.pragmas.within(own.source, own.end, start):
            if not other.wanted:
                message = f"'{other.name}' may not stand between '{bound.name}' and its statement"
                findings.error(other.form.span, message, f"move it before '{bound.name}'")
