"""--check: programs that compare each index of a distributed dimension with what the node has, when they run."""

from __future__ import annotations

from . import forms
from .lower_arrays import Scope, is_pointer
from .lower_names import array_name, c_string


def check_indices(low) -> None:
    """Of the references that are written out: those that a macro makes are left as they are."""
    # Their statements are no loops yet, and their sections no indices.
    moved = [s for b, s in low.program.statements if isinstance(b.form, (forms.Gmove, forms.Array))]
    loops = [s for b, s in low.program.statements if isinstance(b.form, forms.Loop)]
    for function in low.functions:
        span, scope = low.code.span(function), Scope(function)
        pointers = {u.name for u in low.uses_of[id(function)] if is_pointer(low, u.declaration)}
        for use in low.code.array_uses(function):
            info = low.symbols.array(use.name, scope)
            if info is None or len(use.spans) < info.dimensions or not span.holds(use.span):
                continue
            if any(s.holds(use.span) for s in moved):
                continue
            if use.name in pointers and not any(s.holds(use.span) for s in loops):
                continue  # there it is a pointer of C
            source = use.span.source
            where = c_string(f"{source.path}:{source.place(use.span.start)[0]}")
            for dim in range(info.dimensions):
                if info.distribution(dim) in ("block", "gblock"):
                    at, edits = use.spans[dim], low.of(source)
                    handle = array_name(use.name)
                    edits.open(at.start, f"xmp_within(&{handle}, {c_string(use.name)}, {dim}, ")
                    edits.open(at.end, f", {where})")
