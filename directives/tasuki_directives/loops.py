"""Whether a loop runs where the elements are that it refers to."""

from __future__ import annotations

from . import forms
from .bind import Bound, Program
from .c_code import ArrayUse
from .diagnostics import Findings
from .forms import Expr
from .symbols import ArrayInfo, NodesInfo, Symbols, TemplateInfo


def check_loop(
    bound: Bound,
    form: forms.Loop,
    on: NodesInfo | TemplateInfo,
    program: Program,
    symbols: Symbols,
    findings: Findings,
) -> None:
    code = program.code
    nest = [name for name, _ in code.loops(bound.statement) if name]
    if form.on.subscripts is None:
        findings.error(form.on.span, "this loop does not say which index runs where", "give the reference subscripts")
        return
    for sub in form.on.subscripts:
        if sub.kind == "range":
            findings.error(sub.span, "a loop runs on indices, not on a range", "write an index or *")
            return
    scheduled = schedule(form, nest)
    for name in form.indices:
        if name not in nest:
            message = f"no for statement that follows has the index '{name}'"
            findings.error(form.span, message, f"the indices are {', '.join(nest) or 'none'}")
            return
        if name not in [index for index, _ in scheduled if index]:
            findings.error(form.span, f"index '{name}' is not used by 'on'", f"write it in {form.on.name}(...)")
            return
    if not [index for index, _ in scheduled if index]:
        message = "'on' names no index of the for statements that follow"
        findings.error(form.on.span, message, f"the indices are {', '.join(nest) or 'none'}")
        return
    for (index, offset), sub in zip(scheduled, form.on.subscripts):
        if index and offset is None:
            message = f"'{sub.lower}' is not an index plus or minus an offset"
            findings.error(sub.span, message, "write the loop so that index + offset is the template's index")
            return
    _widths(form, scheduled, findings)
    if not isinstance(on, TemplateInfo):
        return
    own = code.span(bound.statement)
    others = [(b, s) for b, s in program.statements if isinstance(b.form, forms.Loop) and b is not bound]
    inner = [s for _, s in others if own.holds(s) and s != own]
    expansions = _expansions(form, len(scheduled))
    for outer, span in others:
        if outer.form.on.subscripts is None or not span.holds(own):
            continue
        if symbols.template(outer.form.on.name, outer) is on:
            names = [name for name, _ in code.loops(outer.statement) if name]
            nest = names + nest
            _fill(scheduled, expansions, outer.form, schedule(outer.form, names))
    for use in code.array_uses(bound.statement):
        array = symbols.array(use.name, bound)
        # What is in a loop directive inside of this one is checked there.
        if array is None or len(use.indices) < array.dimensions or any(s.holds(use.span) for s in inner):
            continue
        _check_use(use, array, on, form, scheduled, expansions, nest, findings)


def _fill(scheduled: list, expansions: list, outer: forms.Loop, schedule_of_outer: list) -> None:
    """Where the loop leaves a dimension of the template open, a loop around it may run on that."""
    widths = _expansions(outer, len(schedule_of_outer))
    for at, (index, offset) in enumerate(schedule_of_outer[: len(scheduled)]):
        if index and offset is not None and not scheduled[at][0]:
            scheduled[at], expansions[at] = (index, offset), widths[at]


def schedule(form: forms.Loop, nest: list[str]) -> list[tuple[str, Expr | None]]:
    """For each dimension of the template the index that runs on it ("" for none) and its offset."""
    candidates = form.indices or nest
    found: list[tuple[str, Expr | None]] = []
    for sub in form.on.subscripts:
        used = [name for name in sub.lower.names if name in candidates] if sub.lower else []
        if not used:
            found.append(("", None))
        elif len(used) > 1 or dict(sub.lower.terms)[used[0]] != 1:
            found.append((used[0], None))
        else:
            found.append((used[0], sub.lower.minus(Expr.atom(used[0]))))
    return found


def _widths(form: forms.Loop, scheduled: list, findings: Findings) -> None:
    peel = form.peel_and_wait.widths if form.peel_and_wait else None
    for name, widths in (("expand", form.expand), ("margin", form.margin), ("peel_and_wait", peel)):
        if widths is not None and len(widths) != len(scheduled):
            message = f"{name} has {len(widths)} widths, and '{form.on.name}' {len(scheduled)} subscripts"
            findings.error(widths[0].span, message, "give one width for each subscript")


def _check_use(
    use: ArrayUse,
    array: ArrayInfo,
    on: TemplateInfo,
    form: forms.Loop,
    scheduled: list,
    expansions: list,
    nest: list[str],
    findings: Findings,
) -> None:
    for at in range(array.dimensions):
        index, along = use.indices[at], array.along[at]
        if index is None or along is None or array.distribution(at) == "none":
            continue
        moving = [name for name in index.names if name in nest]
        if not moving:
            continue  # an element that is fixed: only the user knows which iteration meets it
        if not on.same_mapping(array.template):
            message = (
                f"misaligned loop: '{use.name}' is aligned with '{array.template.form.name}', and the loop runs on"
                f" '{form.on.name}', which is distributed otherwise"
            )
            findings.error(use.span, message, f"run the loop on {array.template.form.name}, or move the array by gmove")
            return
        runs, offset = scheduled[along[0]]
        # Only an index plus an offset can be known to be near.
        if moving != [runs]:
            where = f"'{runs}' runs" if runs else "no index of the loop runs"
            message = f"misaligned loop: '{use.name}' has '{index}' in dimension {at}, on which {where}"
            findings.error(use.spans[at], message, f"exchange the subscripts of {form.on.name}, or of the array")
            continue
        if dict(index.terms)[runs] != 1:
            message = f"misaligned loop: '{index}' in dimension {at} of '{use.name}' leaves the node"
            findings.error(use.spans[at], message, "refer to index + offset, or move the array by gmove")
            continue
        distance = index.minus(Expr.atom(runs)).plus(along[1]).minus(offset).number
        if distance is not None:
            _within_shadow(use, array, at, distance, expansions[along[0]], findings)


def _expansions(form: forms.Loop, count: int) -> list[tuple[int, int]]:
    """By how many layers the loop goes beyond what the node owns, where that is known."""
    found = [(0, 0)] * count
    for at, width in enumerate((form.expand or form.margin or [])[:count]):
        numbers = [side.number if side is not None else None for side in (width.lower, width.upper)]
        found[at] = (max(numbers[0] or 0, 0), max(numbers[1] or 0, 0))
    return found


def _within_shadow(
    use: ArrayUse, array: ArrayInfo, at: int, distance: int, expansion: tuple[int, int], findings: Findings
) -> None:
    lower, upper = Expr.of(0), Expr.of(0)
    if array.shadow is not None:
        lower, upper = array.shadow.widths[at].lower, array.shadow.widths[at].upper
    if lower is None:  # full
        return
    below, above = expansion[0] - distance, expansion[1] + distance
    for needed, have, side in ((below, lower.number, "lower"), (above, upper.number, "upper")):
        if have is None or needed <= have:
            continue
        message = (
            f"the reference leaves the shadow: it needs {needed} {side} layers in dimension {at} of '{use.name}',"
            f" which has {have}"
        )
        kind = array.distribution(at)
        remedy = f"write #pragma xmp shadow {use.name} with {needed} there, and reflect it before the loop"
        findings.error(
            use.spans[at], message, remedy if kind != "cyclic" else "distribute it by block: cyclic has no shadow"
        )
        return
