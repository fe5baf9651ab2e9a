"""Loops of the host that only give work to the GPU: from some iteration on, an iteration is one launch of a graph."""

from __future__ import annotations

from clang.cindex import CursorKind

from . import forms
from .c_code import identity
from .lower_loops import assigns, changed_in
from .openacc import COMPUTE_CONSTRUCTS

LOOPS = (CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.DO_STMT)


class Refused(Exception):
    """Why a loop is left as it is."""


def find_repeats(low, nests: list) -> None:
    """Loops with work for the GPU directly in them, when all that becomes kernels (`nests`) is known. Fills
    low.explained: a sentence for every one, about its first directive."""
    of_nests = {identity(nest.statement) for nest in nests}
    inside: dict = {}  # directives by the loop that they are in
    for bound in low.program.directives:
        loop = _loop_around(low, bound, of_nests) if _is_work(low, bound) else None
        if loop is not None:
            inside.setdefault(identity(loop), (loop, bound))
    for loop, first in inside.values():
        line = _line(low, loop)
        try:
            if not low.options.graphs:
                raise Refused("--no-graphs forbids it")
            _check(low, loop, nests)
            _record(low, loop)
            sentence = f"the loop of line {line} is recorded as a graph in its fourth iteration, and launched as one"
        except Refused as reason:
            sentence = f"the loop of line {line} is no graph: {reason}"
        low.explained.append((first, sentence))


def _is_work(low, bound) -> bool:
    form = bound.form
    if isinstance(form, forms.Acc):
        return form.construct in COMPUTE_CONSTRUCTS
    return isinstance(form, forms.COMMUNICATION) and bool(getattr(form, "acc", False))


def _loop_around(low, bound, of_nests: set):
    """The innermost loop of the host."""
    place, found = bound.pragma.span, None
    if bound.place.function is None:
        return None
    for cursor in low.code.walk(bound.place.function):
        if identity(cursor) in of_nests and low.code.span(cursor).holds(place):
            return found
        if cursor.kind in LOOPS and (span := low.code.span(cursor)) is not None and span.holds(place):
            found = cursor
    return found


def _line(low, cursor) -> int:
    span = low.code.span(cursor)
    return span.source.place(span.start)[0]


def _check(low, loop, nests: list) -> None:
    body = list(loop.get_children())[-1]
    if loop.kind is not CursorKind.FOR_STMT or body.kind is not CursorKind.COMPOUND_STMT:
        raise Refused("it is no for statement with a block")
    if low.about(loop):
        raise Refused("it is a directive's")
    span = low.code.span(body)
    about = {}
    for bound in low.program.pragmas.held(span):
        _check_directive(low, bound)
        if isinstance(bound.form, forms.Acc) and bound.form.construct in COMPUTE_CONSTRUCTS:
            about[identity(bound.statement)] = bound
    for child in body.get_children():
        if child.kind is not CursorKind.NULL_STMT and identity(child) not in about:
            raise Refused(f"line {_line(low, child)} is the host's")
    for nest in nests:
        if span.holds(low.code.span(nest.statement)):
            _check_nest(nest)
    _check_head(low, loop, span)


def _check_directive(low, bound) -> None:
    form, line = bound.form, bound.pragma.first_line
    if isinstance(form, forms.Acc):
        if form.construct not in (*COMPUTE_CONSTRUCTS, "loop", "atomic", "cache"):
            raise Refused(f"'{bound.name}' of line {line} is the host's")
        return
    if isinstance(form, forms.Loop):
        if any(any(one.locations) for one in form.reductions):
            raise Refused(f"the host finds the locations of line {line}")
        return
    on_gpu = isinstance(form, (forms.Reflect, forms.ReductionOf, forms.Bcast)) and form.acc
    if not on_gpu or getattr(form, "action", "") == "reflect_init":
        raise Refused(f"'{bound.name}' of line {line} is the host's")
    if form.asynchronous is not None:
        raise Refused(f"the host waits for the 'async' of line {line}")


def _check_nest(nest) -> None:
    line = nest.bound.pragma.first_line
    for name in ("async", "wait"):
        if nest.clause(name):
            raise Refused(f"line {line} has the clause '{name}'")
    if nest.copied:
        raise Refused(f"line {line} copies '{nest.copied[0]}'")
    if nest.reduced and not nest.in_place:
        raise Refused(f"the host waits for '{nest.reduced[0]}' of line {line}")


def _check_head(low, loop, body) -> None:
    """What kernels take from the host must be the same in all iterations."""
    changed = {low.code.index_of(loop)}
    for part in list(loop.get_children())[:-1]:
        names, calls = changed_in(low, part)
        changed |= names
        if calls:
            raise Refused("its head calls a function")
        if not all(map(_is_plain, _set_in(low, part))):
            raise Refused("its head sets what is no plain variable")
    used = next((use for use in low.used.held(body) if use.name in changed), None)
    if used is not None:
        line = used.span.source.place(used.span.start)[0]
        raise Refused(f"line {line} uses '{used.name}', which changes from iteration to iteration")
    for bound in low.program.pragmas.held(body):
        if any(token.text in changed for token in bound.pragma.tokens):
            raise Refused(f"line {bound.pragma.first_line} uses what changes from iteration to iteration")


def _set_in(low, part):
    """The left sides of assignments, and what is counted up or down."""
    for cursor in low.code.walk(part):
        kind, first = cursor.kind, next(iter(cursor.get_children()), None)
        if (
            kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
            or (kind is CursorKind.BINARY_OPERATOR and assigns(low, cursor, first))
            or (kind is CursorKind.UNARY_OPERATOR and not _is_read(low, cursor))
        ):
            yield first


def _is_read(low, cursor) -> bool:
    span = low.code.span(cursor)
    text = span.source.as_c[span.start : span.end] if span is not None else "++"
    return not (text.startswith(("++", "--")) or text.endswith(("++", "--")))


def _is_plain(cursor) -> bool:
    while cursor.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
        cursor = next(iter(cursor.get_children()))
    return cursor.kind is CursorKind.DECL_REF_EXPR


def _record(low, loop) -> None:
    whole, body = low.code.span(loop), low.code.span(list(loop.get_children())[-1])
    edits = low.of(whole.source)
    edits.open(whole.start, "{ xacc_repeat tsk_repeat = {0}; ")
    edits.open(body.start + 1, " if (xacc_launches(&tsk_repeat)) continue;")
    edits.close(body.end - 1, "xacc_recorded(&tsk_repeat); ")
    edits.close(whole.end, " xacc_forget(&tsk_repeat); }")
