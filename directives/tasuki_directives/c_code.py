"""The C of a translation unit, by libclang: statements, variables and references, at offsets of the user's text."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from clang import cindex
from clang.cindex import CursorKind, TypeKind

from . import preprocess
from .diagnostics import Findings, Span
from .forms import Expr
from .reader import expression
from .source import TOKEN, Source

ARRAYS = {TypeKind.CONSTANTARRAY, TypeKind.VARIABLEARRAY, TypeKind.INCOMPLETEARRAY, TypeKind.DEPENDENTSIZEDARRAY}
HOLDERS = {CursorKind.FUNCTION_DECL, CursorKind.STRUCT_DECL, CursorKind.UNION_DECL, CursorKind.TRANSLATION_UNIT}
RUN_TIME_SIZE = re.compile(
    r"variable length array declaration not allowed at file scope|fields must have a constant size"
)


def identity(cursor) -> tuple:
    """What tells it from every other one; libclang's hash does not."""
    return (cursor.kind.value, *cursor.data)


def walk(cursor):
    """The cursor and all below it, in the order of the text."""
    waiting = [cursor]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(list(found.get_children())))


@dataclass
class Place:
    """Where a pragma stands. `inside` is the innermost statement or declaration around it; `statement` follows it in
    there."""

    at: Span
    inside: cindex.Cursor
    function: cindex.Cursor | None
    statement: cindex.Cursor | None


@dataclass
class ArrayUse:
    """`name[...]...` in a statement: affine indices, or None where one is not."""

    name: str
    indices: list
    spans: list
    span: Span


class Code:
    def __init__(self, unit: preprocess.Unit, findings: Findings):
        self.unit = unit
        self.files: dict = {}
        flags = [flag for flag in unit.flags if not flag.startswith(("-W", "-fopenacc"))]
        options = ["-x", "c", *flags, "-w", "-ferror-limit=0", *preprocess.include_flags()]
        unsaved = [(source.path, source.as_c) for source in unit.sources.values()]
        self.tu = cindex.Index.create().parse(unit.main.path, args=options, unsaved_files=unsaved)
        self.top = [c for c in self.tu.cursor.get_children() if c.location.file]
        self.globals = {c.spelling: c for c in reversed(self.top) if c.kind is CursorKind.VAR_DECL}
        self.own = [c for c in self.top if self.source_of(c.location)]
        self.spans: dict = {}
        self.locals: dict = {}
        self.walks: dict = {}
        for fault in self.tu.diagnostics:
            if fault.severity < cindex.Diagnostic.Error or RUN_TIME_SIZE.search(fault.spelling):
                continue
            source = self.source_of(fault.location)
            if source is None:
                place = f"{fault.location.file}:{fault.location.line}" if fault.location.file else unit.main.path
                start = Span(unit.main, 0, 1)
                findings.error(start, f"in {place}: {fault.spelling}", "correct the C that is included")
                continue
            start = min(source.offset_of_byte(fault.location.offset), max(len(source.text) - 1, 0))
            word = re.compile(r"\w+").match(source.text, start)
            end = word.end() if word else start + 1
            findings.error(Span(source, start, end), fault.spelling, "correct the C; a compiler takes no more of it")

    def walk(self, cursor) -> list:
        """The cursor and all below it, in the order of the text."""
        key = identity(cursor)
        if key not in self.walks:
            self.walks[key] = list(walk(cursor))
        return self.walks[key]

    def source_of(self, location) -> Source | None:
        file = location.file
        if not file:
            return None
        name = file.name
        if name not in self.files:
            self.files[name] = self.unit.sources.get(os.path.realpath(name))
        return self.files[name]

    def span(self, cursor) -> Span | None:
        key = identity(cursor)
        if key not in self.spans:
            self.spans[key] = self._span(cursor.extent)
        return self.spans[key]

    def _span(self, extent) -> Span | None:
        start = extent.start  # libclang computes it each time
        source = self.source_of(start)
        if source is None:
            return None
        return Span(source, source.offset_of_byte(start.offset), source.offset_of_byte(extent.end.offset))

    def _covers(self, cursor, place: Span) -> bool:
        span = self.span(cursor)
        return span is not None and span.holds(place)

    def statement_span(self, statement) -> Span:
        """With the semicolon, which libclang leaves out."""
        span = self.span(statement)
        rest = re.compile(r"(?:\s|/\*.*?\*/)*;", re.DOTALL).match(span.source.as_c, span.end)
        ends_open = not span.source.as_c[span.start : span.end].endswith((";", "}"))
        return Span(span.source, span.start, rest.end()) if rest and ends_open else span

    def place(self, pragma: Span) -> Place:
        inside, children, function = self.tu.cursor, self.own, None
        while True:
            inner = next(
                (
                    c
                    for c in children
                    if (c.kind.is_statement() or c.kind in HOLDERS or c.kind is CursorKind.TYPEDEF_DECL)
                    and self._covers(c, pragma)
                ),
                None,
            )
            if inner is None:
                break
            inside, children = inner, list(inner.get_children())
            if inside.kind is CursorKind.FUNCTION_DECL:
                function = inside
        after = [(span.start, c) for c in children for span in [self.span(c)] if span]
        after = [(s, c) for s, c in after if s >= pragma.end and self.source_of(c.extent.start) is pragma.source]
        statement = min(after, key=lambda pair: pair[0])[1] if after else None
        return Place(pragma, inside, function, statement)

    # ---- variables
    def variable(self, name: str, place: Place):
        """What a name means at a place: a variable, a parameter, or a member of the struct around it."""
        if place.inside.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL):
            return next((f for f in place.inside.get_children() if f.spelling == name), None)
        if place.function is not None:
            seen = [
                c
                for c, start, scope in self._locals(place.function, name)
                if scope.holds(place.at) and start < place.at.start
            ]
            if seen:
                return seen[-1]
        return self.globals.get(name)

    def _locals(self, function, name: str) -> list:
        """Parameters and variables of a function with this name: each with its start and scope, in their order."""
        known = self.locals.get(identity(function))
        if known is None:
            known = self.locals[identity(function)] = {}
            self._collect(function, self.span(function), known)
        return known.get(name, [])

    def _collect(self, cursor, scope: Span, known: dict) -> None:
        for child in cursor.get_children():
            if child.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
                span = self.span(child)  # None for what a header without directives declares here
                known.setdefault(child.spelling, []).append((child, span.start if span else scope.start, scope))
            elif child.kind.is_statement():
                opens = child.kind in (CursorKind.COMPOUND_STMT, CursorKind.FOR_STMT)
                self._collect(child, (opens and self.span(child)) or scope, known)

    @staticmethod
    def dimensions(declaration) -> tuple[int, bool]:
        """How many brackets the variable takes, and whether none of them is a pointer's."""
        kind, count, exact = declaration.type.get_canonical(), 0, True
        while kind.kind in ARRAYS or kind.kind is TypeKind.POINTER:
            exact = exact and kind.kind in ARRAYS
            kind = kind.get_pointee() if kind.kind is TypeKind.POINTER else kind.element_type
            count += 1
        return count, exact

    @staticmethod
    def extents(declaration) -> list[int | None]:
        """Of its dimensions, where the compiler knows them."""
        kind, found = declaration.type.get_canonical(), []
        while kind.kind in ARRAYS or kind.kind is TypeKind.POINTER:
            found.append(kind.element_count if kind.kind is TypeKind.CONSTANTARRAY else None)
            kind = kind.get_pointee() if kind.kind is TypeKind.POINTER else kind.element_type
        return found

    # ---- statements
    def loops(self, statement) -> list[tuple[str, cindex.Cursor]]:
        """All for statements in a statement, itself first, with the names of their indices."""
        found = [c for c in self.walk(statement) if c.kind is CursorKind.FOR_STMT]
        return [(self.index_of(c), c) for c in found]

    def index_of(self, loop) -> str:
        """Empty if the loop does not set one first."""
        first = next(iter(loop.get_children()), None)
        if first is None or first.kind not in (CursorKind.DECL_STMT, CursorKind.BINARY_OPERATOR):
            return ""
        head = self.span(first)
        outer = self.span(loop)
        if head is None or outer is None or ";" in outer.source.as_c[outer.start : head.start]:
            return ""
        inner = next(iter(first.get_children()), None)
        while inner is not None and inner.kind is CursorKind.UNEXPOSED_EXPR:
            inner = next(iter(inner.get_children()), None)
        known = (CursorKind.VAR_DECL, CursorKind.DECL_REF_EXPR)
        return inner.spelling if inner is not None and inner.kind in known else ""

    def nest_depth(self, loop) -> int:
        """How many loops stand directly in each other, `loop` included."""
        depth = 0
        while loop is not None and loop.kind is CursorKind.FOR_STMT:
            depth += 1
            body = list(loop.get_children())[-1]
            while body.kind is CursorKind.COMPOUND_STMT:
                inner = list(body.get_children())
                if len(inner) != 1:
                    return depth
                body = inner[0]
            loop = body
        return depth

    def array_uses(self, statement) -> list[ArrayUse]:
        found, seen = [], set()
        for cursor in self.walk(statement):
            if cursor.kind is not CursorKind.ARRAY_SUBSCRIPT_EXPR:
                continue
            span = self.span(cursor)
            if span is None or (span.source, span.start) in seen:
                continue
            use = self._use(span)
            if use:  # the outermost comes first
                seen.add((span.source, span.start))
                found.append(use)
        return found

    def _use(self, span: Span) -> ArrayUse | None:
        """None if the text is not that of a reference (where a macro makes it)."""
        text = span.source.as_c[span.start : span.end]
        tokens = [m for m in TOKEN.finditer(text) if m.lastgroup != "comment"]
        at, name = 0, ""
        while at < len(tokens) and (tokens[at].lastgroup == "word" or tokens[at][0] in (".", "->")):
            name = tokens[at][0]  # the last member
            at += 1
        if not name:
            return None
        indices, spans = [], []
        while at < len(tokens):
            if tokens[at][0] != "[":
                return None
            first, depth = at, 0
            while at < len(tokens):
                depth += {"[": 1, "]": -1}.get(tokens[at][0], 0)
                at += 1
                if depth == 0:
                    break
            start, end = tokens[first].end(), tokens[at - 1].start()
            indices.append(self.affine(text[start:end]))
            spans.append(Span(span.source, span.start + start, span.start + end))
        return ArrayUse(name, indices, spans, span)

    def affine(self, text: str) -> Expr | None:
        value = expression(text)
        return None if value is None else self._with_macros(value, 0)

    def _with_macros(self, value: Expr, depth: int) -> Expr | None:
        result = Expr.of(value.constant)
        for name, coefficient in value.terms:
            part: Expr | None = Expr.atom(name)
            if name in self.unit.macros and depth < 20:
                part = expression(self.unit.macros[name])
                part = self._with_macros(part, depth + 1) if part is not None else Expr.atom(name)
            if part is None:
                return None
            result = result.plus(part.times(coefficient))
        return result
