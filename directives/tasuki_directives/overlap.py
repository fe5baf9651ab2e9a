"""A reflect and the loop after it: where only the loop's rim needs the shadow, its interior runs while data travels."""

from __future__ import annotations

from dataclasses import dataclass

from clang.cindex import CursorKind

from . import forms
from .c_code import identity
from .forms import Expr
from .loops import schedule
from .lower_names import wrapped
from .openacc import COMPUTE_CONSTRUCTS
from .symbols import TemplateInfo

FIRST_ID = 0x7A5C000  # of async; programs have small ones
JOIN = "xacc_join();"  # waits on the GPU for what travels beside


@dataclass
class Overlap:
    """Of a reflect: its id. Of a loop: the ids that it waits for, and by how much its interior is smaller."""

    ids: list
    widths: list | None = None
    on_gpu: bool = False

    @property
    def waits(self) -> str:
        """The call before the loop's boundary."""
        ids = [str(n) for n in self.ids]
        return JOIN if self.on_gpu else f"xmp_wait_async({len(ids)}, {wrapped('int', ids)});"


class Refused(Exception):
    """Why a pair is left as it is."""


def find_overlaps(low) -> None:
    """Fills low.overlaps and low.explained: a sentence for every reflect."""
    for bound in low.program.directives:
        form = bound.form
        if isinstance(form, forms.Reflect) and form.action in ("reflect", "reflect_do"):
            try:
                loop = _loop_after(low, bound)
                _split(low, bound, loop)
            except Refused as reason:
                low.explained.append((bound, f"not overlapped: {reason}"))


def _loop_after(low, bound):
    if not low.options.overlap:
        raise Refused("--no-overlap forbids it")
    if bound.form.asynchronous is not None:
        raise Refused("the program overlaps it itself, by async")
    statement = bound.place.statement
    if statement is None:
        raise Refused("nothing follows it in its block")
    span = low.code.span(statement)
    line = span.source.place(span.start)[0]
    loop = None
    for other in low.program.pragmas.within(span.source, bound.pragma.span.end, span.start):
        about = other.statement is not None and identity(other.statement) == identity(statement)
        if isinstance(other.form, forms.Loop) and about:
            loop = other
        elif not isinstance(other.form, forms.Reflect) and not _may_stand_between(low, other, about):
            raise Refused(f"'{other.name}' of line {other.pragma.first_line} stands between it and line {line}")
    if loop is None:
        raise Refused(f"line {line}, which follows, is no loop of a directive")
    return loop


def _may_stand_between(low, other, about: bool) -> bool:
    """Of OpenACC's: what copies may need the shadow. Where hosts compute, they do nothing."""
    if not isinstance(other.form, forms.Acc):
        return False
    construct = other.form.construct
    return not low.options.kernels or construct == "wait" or about and construct in (*COMPUTE_CONSTRUCTS, "loop")


def _on_one_side(low, bound, loop, where: str) -> None:
    """What a reflect of one memory brings, a loop on the other memory does not take."""
    if not low.options.kernels:
        return
    computes = any(
        isinstance(b.form, forms.Acc) and b.form.construct in COMPUTE_CONSTRUCTS for b in low.about(loop.statement)
    )
    held = low.program.pragmas.held(low.code.span(loop.statement))
    inside = any(isinstance(b.form, forms.Acc) and b.form.construct in COMPUTE_CONSTRUCTS for b in held)
    if bound.form.acc and not computes:
        raise Refused(f"it is on the GPU, and {where} is the host's")
    if not bound.form.acc and (computes or inside):
        raise Refused(f"it is on the host, and {where} is the GPU's")


def _split(low, bound, loop) -> None:
    form, where = loop.form, f"the loop of line {loop.pragma.first_line}"
    info = low.symbols.nodes(form.on.name, loop) or low.symbols.template(form.on.name, loop)
    if form.expand or form.margin or form.peel_and_wait:
        raise Refused(f"{where} has widths of its own")
    if not isinstance(info, TemplateInfo):
        raise Refused(f"{where} runs on nodes, not on a template")
    if any(d.kind == "cyclic" for d in info.distribute.distributions):
        raise Refused(f"template '{form.on.name}' is cyclic, so that what a node owns has no rim")
    scheduled = schedule(form, [name for name, _ in low.code.loops(loop.statement) if name])
    for (index, _), sub in zip(scheduled, form.on.subscripts):
        if not index and sub.kind == "index":
            raise Refused(f"{where} runs at one index of the template")
    _on_one_side(low, bound, loop, where)
    span = low.code.span(loop.statement)
    if any(not isinstance(b.form, forms.Acc) for b in low.program.pragmas.held(span) if b is not loop):
        raise Refused(f"there are directives in {where}")
    _no_calls(low, loop, where)
    from .lower_loops import changed_in, known_before

    for index, _ in scheduled:
        if index and not known_before(low, loop, index):
            raise Refused(f"the range of '{index}' changes within {where}")
    changed, _ = changed_in(low, loop.statement)
    layers = [(0, 0)] * len(scheduled)
    for name in bound.form.arrays:
        if name in changed:
            raise Refused(f"{where} writes '{name}'")
        layers = _layers(low, bound, loop, name, scheduled, layers, where)
    number = FIRST_ID + len(low.overlaps)
    low.overlaps[id(bound.form)] = Overlap([number])
    mine = low.overlaps.setdefault(id(form), Overlap([], [(0, 0)] * len(scheduled)))
    mine.ids.append(number)
    mine.on_gpu = low.options.kernels and bound.form.acc
    mine.widths = [(max(a, c), max(b, d)) for (a, b), (c, d) in zip(mine.widths, layers)]
    rim = ", ".join(f"{below}:{above}" for below, above in mine.widths)
    low.explained.append((bound, f"overlapped: the interior of {where} runs while it travels, then the rim of {rim}"))


def _no_calls(low, loop, where: str) -> None:
    for cursor in low.code.walk(loop.statement):
        if cursor.kind is CursorKind.CALL_EXPR and cursor.spelling:
            called = cursor.referenced
            if called is None or not called.location.is_in_system_header:
                raise Refused(f"{where} calls '{cursor.spelling}', which may use the array")


def _layers(low, bound, loop, name: str, scheduled: list, layers: list, where: str) -> list:
    """How far the loop's references go beyond the index, with those that are known."""
    _, array = low.array(name, bound, bound.form.span)
    span = low.code.span(loop.statement)
    uses = [u for u in low.code.array_uses(loop.statement) if u.name == name]
    references = [u for u in low.used.held(span) if u.name == name]
    if len(uses) != len(references):
        raise Refused(f"{where} has references to '{name}' without an index for each dimension")
    found = list(layers)
    for use in uses:
        for at in range(array.dimensions):
            along, index = array.along[at], use.indices[at]
            width = array.shadow.widths[at]
            if along is None or array.distribution(at) == "none":
                if width.lower is None or width.lower.number != 0 or width.upper.number != 0:
                    raise Refused(f"dimension {at} of '{name}' has a shadow and is not distributed")
                continue
            runs, offset = scheduled[along[0]]
            if not runs or index is None:
                raise Refused(f"the loop's index does not say which element of '{name}' it needs in dimension {at}")
            distance = index.minus(Expr.atom(runs)).plus(along[1]).minus(offset).number
            if distance is None:
                raise Refused(f"'{index}' in dimension {at} of '{name}' is not at a fixed distance from '{runs}'")
            below, above = found[along[0]]
            found[along[0]] = (max(below, -distance), max(above, distance))
    return found
