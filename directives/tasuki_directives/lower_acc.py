"""OpenACC on hosts: memory of the host is the device's, and loops run as they stand, or as OpenMP's."""

from __future__ import annotations

from . import forms
from .lower_names import NotTranslated

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
    if not low.options.openmp or form.construct not in LOOPS:
        return
    clauses = {c.name: c for c in form.clauses}
    if "seq" in clauses:
        return
    line = "#pragma omp parallel for"
    for name in ("collapse", "private", "firstprivate"):
        for clause in form.clauses:
            if clause.name == name:
                line += f" {name}({', '.join(map(text_of, clause.items))})"
    for clause in form.clauses:
        if clause.name == "reduction":
            line += f" reduction({clause.modifier} : {', '.join(map(text_of, clause.items))})"
    span = low.code.span(bound.statement)
    low.late.append((span.source, span.start, f"\n{line}\n"))


def text_of(item) -> str:
    return item.variable if isinstance(item, forms.Section) else str(item)
