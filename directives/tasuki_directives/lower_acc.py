"""OpenACC on hosts: one memory, and loops that run as they stand, or as OpenMP's. On GPUs: who translates what."""

from __future__ import annotations

from clang.cindex import TypeKind

from . import forms, lower_device
from .c_code import ARRAYS
from .lower_loops import changed_in
from .lower_names import NotTranslated
from .openacc import COMPUTE_CONSTRUCTS

LOOPS = ("parallel loop", "kernels loop")
# What a host does not need: there is one memory, and what is done is done.
NOTHING = {
    "data",
    "enter data",
    "exit data",
    "update",
    "declare",
    "host_data",
    "wait",
    "atomic",
    "routine",
    "cache",
    "init",
    "shutdown",
    "set",
    "parallel",
    "kernels",
    "serial",
    "serial loop",
    "loop",
}


def acc(low, bound, form: forms.Acc) -> None:
    if form.construct not in (*LOOPS, *NOTHING):
        raise NotTranslated(form.span, f"'{form.construct}' is not translated yet", "do without it")
    if low.options.kernels:
        on_gpu(low, bound, form)
        return
    if low.options.openmp and form.construct == "atomic":
        for clause in form.clauses:
            if clause.name == "if":
                raise NotTranslated(clause.span, "'if' of 'atomic' is not translated", "leave it out")
        low.say(bound, " ".join(["#pragma omp atomic", *(clause.name for clause in form.clauses)]))
    if not low.options.openmp or form.construct not in LOOPS:
        return
    clauses = {c.name: c for c in form.clauses}
    if "seq" in clauses:
        return
    line = "#pragma omp parallel for"
    for name in ("collapse", "private", "firstprivate"):
        for clause in form.clauses:
            if clause.name == name:
                line += f" {name}({', '.join(map(lower_device.text_of, clause.items))})"
    for clause in form.clauses:
        if clause.name == "reduction":
            line += f" reduction({clause.modifier} : {', '.join(map(lower_device.text_of, clause.items))})"
    own = _own_scalars(low, bound, form)
    if own:
        line += f" firstprivate({', '.join(own)})"
    span = low.code.span(bound.statement)
    low.late.append((span.source, span.start, f"\n{line}\n"))


def _own_scalars(low, bound, form: forms.Acc) -> list[str]:
    """Scalars from outside that the nest sets: OpenACC gives each iteration its own, OpenMP shares them."""
    changed, _ = changed_in(low, bound.statement)
    named = {lower_device.text_of(item) for c in form.clauses if c.name != "collapse" for item in c.items or []}
    collapse = next((c.items[0].number for c in form.clauses if c.name == "collapse"), 1)
    named |= {name for name, _ in low.code.loops(bound.statement)[:collapse]}
    combined = [b.form for b in low.about(bound.statement) if isinstance(b.form, forms.Loop)]
    summed = {name for loop in combined for reduction in loop.reductions for name in reduction.variables}
    span, found = low.code.span(bound.statement), []
    for use in low.used.held(span):
        kind, declared = use.declaration.type.get_canonical().kind, low.code.span(use.declaration)
        outside = declared is None or not span.holds(declared)
        if use.name not in changed or use.name in named or not outside or kind in (*ARRAYS, TypeKind.POINTER):
            continue
        if use.name in summed:
            message = f"'{use.name}' is in a reduction of 'loop', and in none of '{form.construct}'"
            raise NotTranslated(form.span, message, "write the reduction there too")
        named.add(use.name)
        found.append(use.name)
    return found


def on_gpu(low, bound, form: forms.Acc) -> None:
    if form.construct in COMPUTE_CONSTRUCTS:
        low.nests.append(bound)  # when all other directives about the statement have been translated
    elif form.construct == "routine":
        low.routines.append(bound)
    elif form.construct in lower_device.METHODS:
        lower_device.METHODS[form.construct](low, bound, form)
    elif form.construct not in ("loop", "atomic"):  # which are a kernel's
        message = f"'{form.construct}' is not translated for GPUs"
        raise NotTranslated(form.span, message, "leave it out")
