"""Nodes, templates and aligned arrays: descriptors, and the declarations of C that they replace."""

from __future__ import annotations

import re

from clang.cindex import CursorKind, StorageClass, TypeKind

from . import forms
from .c_code import identity
from .diagnostics import Span
from .forms import Expr
from .lower_names import (
    FORMATS,
    NotTranslated,
    array_name,
    element_of,
    nodes_name,
    pointer_text,
    range_of,
    template_name,
    type_code,
    widths_of,
    wrapped,
)
from .source import TOKEN


def declare(low, bound, name: str, lines: list[str]) -> None:
    """A descriptor: of the file, made before main; or of a block, and freed at its end."""
    if low.is_file_scope(bound):
        low.say(bound, f"static xmp_desc_t {name};")
        low.begin += lines
    else:
        low.say(bound, f"xmp_desc_t {name} __attribute__((cleanup(xmp_drop))) = NULL;", *lines)


def nodes(low, bound, form: forms.Nodes) -> None:
    name = nodes_name(form.name)
    extents = wrapped("int64_t", [str(e) if e is not None else "0" for e in form.extents])
    if form.of is None:
        made = f"xmp_nodes(&{name}, {len(form.extents)}, {extents});"
    elif form.of == "*":
        made = f"xmp_nodes_of(&{name}, {len(form.extents)}, {extents}, NULL, NULL);"
    else:
        of, _ = low.handle(form.of, bound)
        made = f"xmp_nodes_of(&{name}, {len(form.extents)}, {extents}, {of}, {low.section(form.of, bound)});"
    declare(low, bound, name, [made])


def ranges_text(ranges) -> str:
    return "NULL" if None in ranges else wrapped("xmp_range", [range_of(r) for r in ranges])


def template(low, bound, form: forms.Template) -> None:
    name = template_name(form.name)
    declare(low, bound, name, [f"xmp_template(&{name}, {len(form.ranges)}, {ranges_text(form.ranges)});"])


def distributions_text(distributions: list, nodes_handle: str) -> str:
    found, node_dim = [], 0
    for one in distributions:
        size, maps = "0", "NULL"
        if one.kind == "gblock":
            if one.argument is not None and str(one.argument) != "*":
                maps = f"xmp_map({nodes_handle}, {node_dim}, {one.argument})"
        elif one.argument is not None:
            size = str(one.argument)
        found.append(f"{{{FORMATS[one.kind]}, {size}, {maps}}}")
        node_dim += one.kind != "none"
    return wrapped("xmp_distribution", found)


def distribute(low, bound, form: forms.Distribute) -> None:
    onto = nodes_name(form.nodes)
    line = f"xmp_distribute({template_name(form.template)}, {distributions_text(form.distributions, onto)}, {onto});"
    if low.is_file_scope(bound):
        low.begin.append(line)
    else:
        low.say(bound, line)


def template_fix(low, bound, form: forms.TemplateFix) -> None:
    info = low.symbols.template(form.template, bound)
    onto = nodes_name(info.distribute.nodes)
    ranges = "NULL" if form.ranges is None else ranges_text(form.ranges)
    if form.ranges is not None and ranges == "NULL":
        raise NotTranslated(form.span, "a range of template_fix is open", "give all ranges")
    kinds = "NULL" if form.distributions is None else distributions_text(form.distributions, onto)
    low.say(bound, f"xmp_template_fix({template_name(form.template)}, {ranges}, {kinds});")


# ---- arrays
def is_pointer(low, declaration) -> bool:
    """A variable that xmp_malloc fills."""
    canonical = declaration.type.get_canonical()
    return canonical.kind is TypeKind.POINTER and declaration.kind is not CursorKind.PARM_DECL


def element_text(declaration, info) -> str:
    return element_type(declaration, info).spelling


def element_type(declaration, info):
    kind = declaration.type
    for _ in range(info.dimensions):
        canonical = kind.get_canonical()
        if canonical.kind is TypeKind.POINTER:
            kind = kind.get_pointee() if kind.kind is TypeKind.POINTER else canonical.get_pointee()
            kind = element_of(kind)
            break
        kind = element_of(kind)
    return kind


def declarations_of(low, name: str) -> list:
    """In the file: all declarations of the variable."""
    return [c for c in low.code.own if c.kind is CursorKind.VAR_DECL and c.spelling == name]


def is_defined_here(low, name: str) -> bool:
    return any(c.storage_class is not StorageClass.EXTERN for c in declarations_of(low, name))


def complete_at(bound, form, info) -> bool:
    """Whether this is the last directive about the array."""
    return form is (info.shadow if info.shadow is not None else info.form)


def align(low, bound, form: forms.Align) -> None:
    _, info = low.array(form.array, bound, form.span)
    if complete_at(bound, form, info):
        array(low, bound, info, form.array)


def shadow(low, bound, form: forms.Shadow) -> None:
    _, info = low.array(form.array, bound, form.span)
    if complete_at(bound, form, info):
        array(low, bound, info, form.array)


def fixed_index(sub, source: list[str]) -> str:
    """The index of a template's dimension at which all of an array lies; empty where it goes along the dimension."""
    along = sub.kind != "index" or any(name in source for name in sub.lower.names)
    return "" if along else str(sub.lower)


def spec_lines(low, info, name: str, declaration, extents: list[str]) -> list[str]:
    handle, kind = array_name(name), element_type(declaration, info)
    code = type_code(kind)
    axes = ["XMP_COLLAPSED" if a is None else str(a[0]) for a in info.along]
    offsets = [str(Expr.of(0) if a is None else a[1]) for a in info.along]
    parts = [f'.name = "{name}"', f".type = {code}"]
    if code == "XMP_BYTES":
        parts.append(f".element_bytes = sizeof({kind.spelling})")
    parts += [f".ndims = {info.dimensions}", f".extents = {wrapped('int64_t', extents)}"]
    parts.append(f".axis = {wrapped('int', axes)}")
    if any(text != "0" for text in offsets):
        parts.append(f".offset = {wrapped('int64_t', offsets)}")
    fixed = [fixed_index(sub, info.form.source) for sub in info.form.target]
    if any(fixed):
        parts.append(f".fixed = {wrapped('int64_t', [index or 'XMP_ALONG' for index in fixed])}")
    lines = [
        f"xmp_array(&{handle}.desc, &(xmp_array_spec){{{', '.join(parts)}}}, {template_name(info.template.form.name)})"
    ]
    if info.shadow is not None:
        lines.append(f"xmp_shadow({handle}.desc, {widths_of(info.shadow.widths)})")
    return lines


def array(low, bound, info, name: str) -> None:
    declaration = low.code.variable(name, bound.place)
    handle = array_name(name)
    in_file = low.is_file_scope(bound)
    if is_pointer(low, declaration):
        storage = ("static " if declaration.storage_class is StorageClass.STATIC else "extern ") if in_file else ""
        cleanup = "" if in_file else " __attribute__((cleanup(xmp_drop_placed))) = {0}"
        low.say(bound, f"{storage}xmp_placed {handle}{cleanup};")
        return
    extents = extents_of(low, declaration, info, bound)
    lines = [f"{line};" for line in spec_lines(low, info, name, declaration, extents)]
    if in_file:
        shared = declaration.storage_class is not StorageClass.STATIC
        low.say(bound, f"{'extern' if shared else 'static'} xmp_placed {handle};")
        if is_defined_here(low, name):
            low.begin += [*lines, f"xmp_place(&{handle});"]
        return
    element = element_text(declaration, info)
    declared = pointer_text(element, name, info.dimensions, f"{handle}.extents")
    if declaration.storage_class is StorageClass.STATIC:
        low.say(bound, f"static xmp_placed {handle}; /* made when the program first comes here */")
        low.say(bound, f"if ({handle}.desc == NULL) {{", *lines, f"xmp_place(&{handle});", "}")
        low.say(bound, f"{declared} = {handle}.origin; (void){name};")
        return
    low.say(bound, f"xmp_placed {handle} __attribute__((cleanup(xmp_drop_placed))) = {{0}};", *lines)
    if declaration.kind is CursorKind.PARM_DECL:
        # The caller's pointer, which is moved as the one here is: a block within has it under another type.
        low.say(bound, f"xmp_place_at(&{handle}, {name});", f"{{ {declared} = {handle}.origin; (void){name};")
        block = low.code.span(bound.place.inside)
        low.of(block.source).close(block.end - 1, "}")
    else:
        low.say(bound, f"xmp_place(&{handle});", f"{declared} = {handle}.origin; (void){name};")


def extents_of(low, declaration, info, bound) -> list[str]:
    """As the compiler knows them, else as they are written."""
    known = low.code.extents(declaration)
    if len(known) == info.dimensions and None not in known:
        return [str(n) for n in known]
    text = brackets_after(low, declaration)
    if len(text) != info.dimensions or not all(t.strip() for t in text):
        message = f"the extents of '{declaration.spelling}' are not known"
        raise NotTranslated(bound.form.span, message, "declare it with an extent in each bracket")
    return [re.sub(r"^\s*static\b", "", t).strip() for t in text]


def brackets_after(low, declaration) -> list[str]:
    source = low.code.source_of(declaration.location)
    at = source.offset_of_byte(declaration.location.offset) + len(declaration.spelling)
    found, depth, start = [], 0, 0
    for token in TOKEN.finditer(source.as_c, at):
        if token.lastgroup == "comment":
            continue
        if token[0] == "[":
            start = token.end() if depth == 0 else start
            depth += 1
        elif token[0] == "]":
            depth -= 1
            if depth == 0:
                found.append(source.as_c[start : token.start()])
        elif depth == 0:
            break
    return found


# ---- the declarations of C
def remove_declarations(low) -> None:
    """Arrays that are distributed are no arrays of C any more."""
    gone: dict = {}
    for bound in low.program.directives:
        if not isinstance(bound.form, forms.Align):
            continue
        declaration = low.code.variable(bound.form.array, bound.place)
        if declaration.kind is CursorKind.PARM_DECL or is_pointer(low, declaration):
            continue
        in_file = bound.place.function is None
        for one in declarations_of(low, declaration.spelling) if in_file else [declaration]:
            gone[identity(one)] = one
    statements: dict = {}
    for one in gone.values():
        begin, together = _declared_together(low, one)
        statements.setdefault((id(low.code.span(one).source), begin), (together, []))[1].append(one)
    for (_, begin), (together, group) in statements.items():
        _remove(low, begin, together, group)


def _remove(low, begin: int, together: list, group: list) -> None:
    source = low.code.span(group[0]).source
    names = {c.spelling for c in group}
    first = min(source.offset_of_byte(c.location.offset) for c in together)
    start = first
    for token in reversed([t for t in TOKEN.finditer(source.as_c, begin, first)]):
        if token[0] not in ("*", "(", "const", "restrict", "volatile") or source.as_c[token.end() : start].strip():
            break
        if token[0] in ("const", "volatile") and not source.as_c[: token.start()].rstrip().endswith("*"):
            break
        start = token.start()
    pieces, depth, at, end = [], 0, start, None
    for token in TOKEN.finditer(source.as_c, start):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token[0], 0)
        if depth == 0 and token[0] in (",", ";"):
            pieces.append((at, token.start()))
            at = token.end()
            if token[0] == ";":
                end = token.end()
                break
    kept = []
    for at, stop in pieces:
        text = source.text[at:stop]
        name = next((m[0] for m in TOKEN.finditer(text) if m.lastgroup == "word" and m[0] in names), None)
        declarator = re.match(r"\s*[*(\s]*(\w+)", text)
        if name is None or declarator is None or declarator[1] != name:
            kept.append(text.strip())
        elif re.search(r"(?<![=!<>])=(?!=)", text):
            raise_at = Span(source, at, stop)
            low.findings.error(
                raise_at, f"'{name}' is distributed, and cannot be initialised here", "fill it in a loop"
            )
    specifiers = source.text[begin:start]
    text = f"{specifiers}{', '.join(kept)};" if kept else f"{specifiers.strip()};" if "{" in specifiers else ""
    edits = low.of(source)
    edits.taken(begin, end)
    edits.replace(begin, end, text)


def _declared_together(low, one) -> tuple[int, list]:
    """Where the declaration begins, and its variables. Those of a function but the first begin with their names."""
    span = low.code.span(one)
    if one.semantic_parent.kind is CursorKind.FUNCTION_DECL:
        statements = [c for c in low.code.walk(one.semantic_parent) if c.kind is CursorKind.DECL_STMT]
        around = [c for c in statements if (held := low.code.span(c)) is not None and held.holds(span)]
        if around:
            return low.code.span(around[-1]).start, [
                c for c in around[-1].get_children() if c.kind is CursorKind.VAR_DECL
            ]
    same = [c for c in low.code.own if c.kind is CursorKind.VAR_DECL and low.code.span(c).start == span.start]
    return span.start, [c for c in same if low.code.span(c).source is span.source] or [one]


# ---- references without indices
def check_whole_references(low) -> None:
    """sizeof, and functions of the system, would take the pointer for the whole array."""
    for function in low.functions:
        scope = Scope(function)
        calls = None
        for use in low.uses_of[id(function)]:
            name = use.name
            if use.span is None or low.symbols.array(name, scope) is None:
                continue
            source = use.span.source
            if source.as_c[use.span.start : use.span.end] != name or is_pointer(low, use.declaration):
                continue
            if source.as_c[use.span.end :].lstrip().startswith("["):
                continue
            if calls is None:
                calls = [c for c in low.code.walk(function) if c.kind is CursorKind.CALL_EXPR and low.code.span(c)]
            around = [c for c in calls if low.code.span(c).holds(use.span)]
            called = around[-1].referenced if around else None
            by_system = called is not None and (called.location.is_in_system_header or not called.location.file)
            if by_system or re.search(r"\bsizeof[\s(]*$", source.as_c[: use.span.start]):
                what = f"'{called.spelling}'" if by_system else "sizeof"
                message = f"'{name}' is distributed: a node has a part of it, and {what} would take it for the whole"
                low.findings.error(use.span, message, "go over its elements in a loop")


# ---- cyclic dimensions
def rewrite_indices(low) -> None:
    """Where a node's indices of a dimension are not adjacent, they are translated one by one."""
    for function in low.functions:
        span = low.code.span(function)
        scope = Scope(function)
        cyclic = {}
        for name in {use.name for use in low.uses_of[id(function)]}:
            info = low.symbols.array(name, scope)
            if info is not None and any(info.distribution(d) == "cyclic" for d in range(info.dimensions)):
                cyclic[name] = info
        if not cyclic:
            continue
        rewritten = 0
        for use in low.code.array_uses(function):
            info = cyclic.get(use.name)
            if info is None or len(use.spans) < info.dimensions or not span.holds(use.span):
                continue
            rewritten += 1
            for d in range(info.dimensions):
                if info.distribution(d) == "cyclic":
                    at, edits = use.spans[d], low.of(use.span.source)
                    edits.open(at.start, f"xmp_local_index({array_name(use.name)}.desc, {d}, ")
                    edits.open(at.end, ")")
        whole = [u for u in low.uses_of[id(function)] if u.name in cyclic]
        for use in whole[rewritten:] if len(whole) > rewritten else []:
            message = f"'{use.name}' has a cyclic dimension, and not all of its references have indices"
            low.findings.error(use.span, message, "write each reference out, with an index for each dimension")
            break


class Scope:
    """What Symbols wants to know of a place."""

    class _Place:
        def __init__(self, function):
            self.function = function

    def __init__(self, function):
        self.place = self._Place(function)
