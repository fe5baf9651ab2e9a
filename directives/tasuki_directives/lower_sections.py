"""`array`: an assignment of sections becomes loops over this node's part of the left side."""

from __future__ import annotations

from . import forms, lower_arrays
from .lower_gmove import parts_of_section
from .lower_names import NotTranslated
from .symbols import TemplateInfo


def array(low, bound, form: forms.Array) -> None:
    on, info = low.handle(form.on, bound)
    statement = low.code.statement_span(bound.statement)
    source = statement.source
    sections = [s.span for s in source.sections if not s.coindex and statement.holds(s.span)]
    uses = [u for u in low.code.array_uses(bound.statement) if any(u.span.holds(s) for s in sections)]
    if not isinstance(info, TemplateInfo) or not uses:
        raise NotTranslated(form.span, "array needs a template and sections", "write on TEMPLATE(:)")
    left = min(uses, key=lambda use: use.span.start)
    target, declaration = low.symbols.array(left.name, bound), low.code.variable(left.name, bound.place)
    if target is None or source.text[statement.start : left.span.start].strip():
        raise NotTranslated(form.span, "the left side is no section of an aligned array", "name it first: a[:] = ...")
    places = {use.span.start: _places(use, sections, source) for use in uses}
    for use in uses:
        aligned = low.symbols.array(use.name, bound)
        if aligned is not None and any(aligned.distribution(d) == "cyclic" for d in range(aligned.dimensions)):
            raise NotTranslated(use.span, "sections of cyclic arrays are not translated yet", "write a loop")
        if use.name == left.name and places[use.span.start] != places[left.span.start]:
            message = f"'{use.name}' stands on both sides with different sections"
            raise NotTranslated(use.span, message, "write a loop, or move the section by gmove")
    own = places[left.span.start]
    ranged = [d for d, (_, parts) in enumerate(own) if len(parts) > 1]
    extents = lower_arrays.extents_of(low, declaration, target, bound)
    opening, guards, bases = [], [], []
    for k, d in enumerate(ranged):
        first, end, step = _range(own[d][1], extents[d])
        along = target.along[d]
        given = f"(xmp_range){{{first}, {end}, {step}}}"
        part = given if along is None else f"xmp_part({on}, {along[0]}, {given}, {along[1]})"
        opening.append(f"const xmp_range tsk_{k} = {part};")
        bases.append((first, step))
    for d, (text, parts) in enumerate(own):
        if len(parts) == 1 and target.along[d] is not None:
            guards.append(f"xmp_has({on}, {target.along[d][0]}, ({text}) + ({target.along[d][1]}))")
    heads = [
        f"for (int64_t tsk_at{k} = tsk_{k}.first; tsk_at{k} < tsk_{k}.end; tsk_at{k} += tsk_{k}.step)"
        for k in range(len(ranged))
    ]
    edits = low.of(source)
    for use in uses:
        k = 0
        for at, (_, parts) in zip(use.spans, places[use.span.start]):
            if len(parts) == 1:
                continue
            if k == len(bases):
                raise NotTranslated(at, "this section has more dimensions than the left side", "give as many ranges")
            first, step = bases[k]
            _near(low, bound, use, use.spans.index(at), parts, target.along[ranged[k]], first, step)
            mine = parts[2] if len(parts) > 2 else "1"
            moved = f"tsk_at{k} - ({first})"
            if mine != step:
                moved = f"({moved}) / ({step}) * ({mine})"
            edits.replace(at.start, at.end, f"({parts[0] or '0'}) + {moved}")
            k += 1
        if k not in (0, len(bases)):
            raise NotTranslated(use.span, "this section has fewer dimensions than the left side", "give as many ranges")
    if guards:
        heads.insert(0, f"if ({' && '.join(guards)})")
    low.say(bound, "{", *opening, *heads)
    low.after(bound, "\n" + low.indent(bound.pragma) + "}")


def _near(low, bound, use, dim: int, parts: list, along, first: str, step: str) -> None:
    """An element of a distributed dimension must be where the left side's is, or in the shadow."""
    array = low.symbols.array(use.name, bound)
    if array is None or array.distribution(dim) == "none":
        return
    theirs, own = low.code.affine(parts[0] or "0"), low.code.affine(first)
    distance = None
    if theirs is not None and own is not None and along is not None and along[0] == array.along[dim][0]:
        distance = theirs.plus(array.along[dim][1]).minus(own).minus(along[1]).number
    if distance is None or (parts[2] if len(parts) > 2 else "1") != step:
        message = f"dimension {dim} of '{use.name}' is not known to lie where the left side does"
        raise NotTranslated(use.spans[dim], message, "write a loop, or move the section by gmove")
    width = array.shadow.widths[dim] if array.shadow is not None else None
    have = (width.lower if distance < 0 else width.upper) if width is not None else None
    if distance and (have is None or have.number is None or have.number < abs(distance)):
        message = f"the section leaves the shadow of '{use.name}' in dimension {dim}, by {abs(distance)}"
        raise NotTranslated(use.spans[dim], message, "make the shadow wider, or move the section by gmove")


def _places(use, sections: list, source) -> list:
    """For each bracket its text, and the parts of its range; one part is an index."""
    found = []
    for span in use.spans:
        text = source.text[span.start : span.end].strip()
        ranged = any(s.start + 1 == span.start and span.end + 1 == s.end for s in sections)
        found.append((text, parts_of_section(text) if ranged else [text]))
    return found


def _range(parts: list, extent: str) -> tuple[str, str, str]:
    first = parts[0] or "0"
    step = parts[2] if len(parts) > 2 else "1"
    end = f"({first}) + ({parts[1]}) * ({step})" if parts[1] else extent
    return first, end, step
