"""OpenACC on hosts: one memory, and loops that run as they stand, or as OpenMP's. On GPUs: who translates what."""

from __future__ import annotations

from . import forms, lower_device
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
    span = low.code.span(bound.statement)
    low.late.append((span.source, span.start, f"\n{line}\n"))


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
