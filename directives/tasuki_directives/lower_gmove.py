"""`gmove`: an assignment of sections; and the program's own calls that name descriptors."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import forms, lower_arrays
from .diagnostics import Span
from .lower_calls import value_type
from .lower_names import NotTranslated, array_name, c_string, element_of, nodes_name, template_name, type_code, wrapped
from .source import TOKEN


@dataclass
class Side:
    """One side of the assignment. `handle` is empty for what every node has."""

    text: str
    name: str
    subscripts: list  # texts of brackets
    handle: str
    kind: object  # of an element
    extents: list


def gmove(low, bound, form: forms.Gmove) -> None:
    if form.direction != "collective":
        message = f"gmove {form.direction} does not exist in the run-time library"
        raise NotTranslated(form.span, message, "write a gmove that all nodes call")
    span = low.code.statement_span(bound.statement)
    source = span.source
    text = source.text[span.start : span.end].rstrip().rstrip(";")
    depth, cut = 0, None
    for token in TOKEN.finditer(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token[0], 0)
        if token[0] == "=" and depth == 0:
            cut = token.start()
            break
    whole = Span(source, span.start, span.end)
    if cut is None:
        raise NotTranslated(whole, "this is no plain assignment", "write a[...] = b[...]")
    left, right = _side(low, bound, text[:cut], whole), _side(low, bound, text[cut + 1 :], whole)
    if type_code(left.kind) != type_code(right.kind):
        message = f"the sides have different types, {left.kind.spelling} and {right.kind.spelling}"
        raise NotTranslated(whole, message, "gmove moves, and does not convert: give both one type")
    on_gpu = low.options.kernels and _on_gpu(form, left.name, right.name)
    lines, arguments, ends = ["{"], [], ["}"]
    for at, side in enumerate((left, right)):
        handle = side.handle
        if not handle:
            handle, code = f"tsk_local_{at}", type_code(side.kind)
            extents = wrapped("int64_t", side.extents or ["1"])
            data = f"(void*)&({side.name})"
            size = f"sizeof({side.kind.spelling})"
            count = max(len(side.extents), 1)
            lines.append(f"xmp_desc_t {handle} = xmp_local({data}, {code}, {size}, {count}, {extents});")
            if on_gpu:
                lines.append(f"xacc_bind({handle}, xacc_address({data}, {c_string(side.name)}));")
            ends.insert(0, f"xmp_free(&{handle});")
        ranges = [_range(s) for s in side.subscripts] or ["{0, 1, 1}"]
        arguments += [handle, f"xmp_section({handle}, {wrapped('xmp_range', ranges)})"]
    if form.asynchronous is not None and len(ends) > 1:
        raise NotTranslated(form.span, "an async gmove of a variable of each node is not translated", "leave async out")
    name = ("xacc_" if on_gpu else "xmp_") + ("gmove" if form.asynchronous is None else "gmove_async")
    if form.asynchronous is not None:
        arguments.append(str(form.asynchronous))
    elif on_gpu:
        arguments.append("XACC_DEFAULT" if len(ends) == 1 else "XACC_SYNC")  # a local array ends with the statement
    lines.append(f"{name}({', '.join(arguments)});")
    low.say(bound, " ".join(lines + ends))
    edits = low.of(source)
    edits.taken(span.start, span.end)
    edits.replace(span.start, span.end, ";")


def _on_gpu(form: forms.Gmove, left: str, right: str) -> bool:
    if not form.acc:
        return False
    there = [name for name in (left, right) if form.acc == "*" or name in form.acc]
    if len(there) == 1 and left != right:
        message = f"'{there[0]}' is on the GPU, and the other side is not"
        raise NotTranslated(form.span, message, "update the other side, and name both in acc")
    return bool(there)


def _side(low, bound, text: str, whole: Span) -> Side:
    text = text.strip()
    found = re.match(r"(\w+)((?:\s*\[.*\])?)$", text, re.DOTALL)
    if not found or not re.match(r"[A-Za-z_]", found[1]):
        raise NotTranslated(whole, f"'{text}' is no variable and no section of an array", "name a variable")
    name = found[1]
    subscripts = _brackets(found[2])
    declaration = low.code.variable(name, bound.place)
    if declaration is None:
        raise NotTranslated(whole, f"no variable '{name}' is declared here", "declare it")
    info = low.symbols.array(name, bound)
    if info is not None:
        if len(subscripts) != info.dimensions:
            message = f"'{name}' has {info.dimensions} dimensions, not {len(subscripts)}"
            raise NotTranslated(whole, message, "give a bracket for each, [:] for all of it")
        kind = lower_arrays.element_type(declaration, info)
        return Side(text, name, subscripts, f"{array_name(name)}.desc", kind, [])
    kind = value_type(low, bound, name, whole)
    known = low.code.extents(declaration)
    if lower_arrays.is_pointer(low, declaration):
        raise NotTranslated(whole, f"'{name}' is a pointer, whose extents are not known", "use an array")
    extents = [str(n) for n in known] if None not in known else lower_arrays.brackets_after(low, declaration)
    if len(subscripts) != len(extents):
        raise NotTranslated(whole, f"'{name}' needs {len(extents)} brackets", "give one for each dimension")
    return Side(text, name, subscripts, "", element_of(kind), extents)


def _brackets(text: str) -> list[str]:
    found, depth, start = [], 0, 0
    for token in TOKEN.finditer(text):
        if token[0] == "[":
            start = token.end() if depth == 0 else start
            depth += 1
        elif token[0] == "]":
            depth -= 1
            if depth == 0:
                found.append(text[start : token.start()].strip())
    return found


def parts_of_section(text: str) -> list[str]:
    """The texts of `base:length:step`; one text is an index."""
    parts, depth, start = [], 0, 0
    for token in TOKEN.finditer(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token[0], 0)
        if token[0] == ":" and depth == 0:
            parts.append(text[start : token.start()].strip())
            start = token.end()
    return [*parts, text[start:].strip()]


def _range(text: str) -> str:
    """`base:length:step`, parts of which may lack, or an index."""
    parts = parts_of_section(text)
    if len(parts) == 1:
        return f"{{{parts[0]}, ({parts[0]}) + 1, 1}}"
    base, length = parts[0] or "0", parts[1]
    step = parts[2] if len(parts) > 2 else "1"
    end = f"({base}) + ({length}) * ({step})" if length else "XMP_OPEN_END"
    return f"{{{base}, {end}, {step}}}"


# ---- calls of the program
DESCRIPTOR = re.compile(r"\bxmp_desc_of\s*\(\s*(\w+)\s*\)")
MALLOC = re.compile(r"\bxmp_malloc\s*\(")


def rewrite_descriptors(low) -> None:
    for source in low.code.unit.sources.values():
        for match in DESCRIPTOR.finditer(source.text):
            if source._is_hidden(match.start()) or _in_pragma(source, match.start()):
                continue
            span = Span(source, match.start(), match.end())
            scope = lower_arrays.Scope(low.code.place(span).function)
            name = match[1]
            info = low.symbols.array(name, scope)
            if info is not None:
                before = MALLOC.search(source.text, 0, match.start())
                last = None
                while before:
                    last, before = before, MALLOC.search(source.text, before.end(), match.start())
                if last is not None and not source.text[last.end() : match.start()].strip():
                    _malloc(low, source, last.start(), match, name, info, scope)
                else:
                    low.of(source).replace(match.start(), match.end(), f"{array_name(name)}.desc")
            elif low.symbols.nodes(name, scope) is not None:
                low.of(source).replace(match.start(), match.end(), nodes_name(name))
            elif low.symbols.template(name, scope) is not None:
                low.of(source).replace(match.start(), match.end(), template_name(name))
            else:
                low.findings.error(span, f"'{name}' has no descriptor", "name nodes, a template or an aligned array")


def _in_pragma(source, at: int) -> bool:
    return any(p.span.start <= at < p.span.end for p in source.pragmas)


def _malloc(low, source, start: int, match, name: str, info, scope) -> None:
    """xmp_malloc(xmp_desc_of(a), extents...): the array is made with these extents."""
    depth, at = 1, match.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(source.text[at], 0)
        at += 1
    extents = [e.strip() for e in _split(source.text[match.end() : at - 1]) if e.strip()]
    span = Span(source, start, at)
    place = low.code.place(span)
    declaration = low.code.variable(name, place)
    if declaration is None or not lower_arrays.is_pointer(low, declaration):
        low.findings.error(span, f"'{name}' is no pointer", "declare a pointer to its elements for xmp_malloc")
        return
    if len(extents) != info.dimensions:
        message = f"'{name}' has {info.dimensions} dimensions, and xmp_malloc gets {len(extents)} extents"
        low.findings.error(span, message, "give one for each dimension")
        return
    handle = array_name(name)
    steps = [f"xmp_drop_placed(&{handle})", *lower_arrays.spec_lines(low, info, name, declaration, extents)]
    low.of(source).replace(start, at, f"({', '.join([*steps, f'xmp_place_anew(&{handle})'])})")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for token in TOKEN.finditer(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token[0], 0)
        if token[0] == "," and depth == 0:
            parts.append(text[start : token.start()])
            start = token.end()
    return [*parts, text[start:]]
