"""`loop`: every for statement that a template's dimension runs on gets this node's part of its iterations."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clang.cindex import CursorKind

from . import forms
from .c_code import walk
from .diagnostics import Span
from .forms import Expr
from .loops import schedule
from .lower_calls import combined_variables, gpu_variable, pointers_used, value_type
from .lower_device import has_memory, queue_of
from .lower_names import NotTranslated, element_of, operator, widths_of, words, wrapped
from .openacc import COMPUTE_CONSTRUCTS
from .overlap import JOIN
from .symbols import NodesInfo, TemplateInfo

ONE_RANGE = ("none", "block", "gblock")  # distributions where a node's indices are adjacent


@dataclass
class Header:
    """`for (TYPE name = first; name < end; name += step)`; `declared` is empty where the variable is older. `down`: the
    same indices, of step 1, from the last one to the first."""

    span: Span  # between the parentheses
    name: str
    declared: str
    type: str
    first: str
    end: str
    step: str
    down: bool = False


@dataclass
class Axis:
    """A dimension of the template and the for statement that runs on it."""

    dim: int
    offset: Expr
    header: Header
    loop: object
    before: bool  # its range is known before the nest
    single: bool  # a node has one range of it
    adjacent: bool  # whose step is the loop's


def loop(low, bound, form: forms.Loop) -> None:
    on, info = low.handle(form.on, bound)
    nest = low.code.loops(bound.statement)
    axes, guards = [], []
    scheduled = schedule(form, [name for name, _ in nest if name])
    for dim, ((index, offset), sub) in enumerate(zip(scheduled, form.on.subscripts)):
        if index:
            axes.append(_axis(low, bound, form, info, dim, index, offset, nest))
        elif sub.kind == "index" and not _outer_runs(low, bound, form, dim, sub):
            guards.append(f"xmp_has({on}, {dim}, {sub.lower})")
    opening, closing = [], []
    _reductions(low, bound, form, on, axes, len(scheduled), opening, closing)
    overlapped = low.overlaps.get(id(form)) if form.peel_and_wait is None else None
    widths, wait = _widths(form, overlapped)
    if widths is not None:
        _in_nests(low, form, on, info, axes, len(scheduled), widths, wait, opening, closing)
    else:
        _in_ranges(low, on, axes, opening)
    if guards:
        opening.append(f"if ({' && '.join(guards)})")
    low.say(bound, "{", *pointers_used(low, bound), *opening)
    indent = low.indent(bound.pragma)
    low.after(bound, "".join(f"\n{indent}{line}" for line in [*closing, "}"]))


def _axis(low, bound, form, info, dim: int, index: str, offset: Expr, nest: list) -> Axis:
    statement = next(c for name, c in nest if name == index)
    header = header_of(low, statement, index)
    single, adjacent = isinstance(info, NodesInfo), False
    if isinstance(info, TemplateInfo):
        distribution = info.distribute.distributions[dim]
        size = distribution.argument.number if distribution.argument is not None else 1
        adjacent = distribution.kind in ONE_RANGE
        single = adjacent or size == 1
    before = single and _range_is_known(low, bound, header)
    if header.down and not (before and adjacent):
        message = f"'{index}' counts down, and its range is not one that is known before the nest"
        raise NotTranslated(header.span, message, "count up, or distribute the template by block")
    return Axis(dim, offset, header, statement, before, single, adjacent)


def _outer_runs(low, bound, form, dim: int, sub) -> bool:
    """Whether a loop directive around this one runs on the same index of this dimension."""
    own = low.code.span(bound.statement)
    for other, span in low.program.statements:
        outer = other.form
        if other is bound or not isinstance(outer, forms.Loop) or outer.on.name != form.on.name:
            continue
        if span.holds(own):
            theirs = outer.on.subscripts[dim]
            if theirs.kind == "index" and theirs.lower == sub.lower:
                return True
    return False


# ---- the heads of for statements
def header_of(low, statement, name: str) -> Header:
    span = low.code.span(statement)
    source = span.source
    start = source.as_c.index("(", span.start) + 1
    depth, at = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(source.as_c[at], 0)
        at += 1
    whole = Span(source, start, at - 1)

    def refuse(what: str) -> NotTranslated:
        message = f"{what} of this for statement is none that a directive can divide"
        return NotTranslated(whole, message, f"write for ({name} = first; {name} < end; {name}++)")

    # As it has become: another directive may have given it another range.
    parts = low.of(source).peeked(whole.start, whole.end).split(";")
    if len(parts) != 3:
        raise refuse("the head")
    init, condition, step = (part.strip() for part in parts)
    begins = re.fullmatch(rf"(.*?)\b{name}\s*=(?!=)\s*(.*)", init, re.DOTALL)
    if not begins or "," in re.sub(r"\([^()]*\)", "", begins[2]):
        raise refuse("the first part")
    declared = begins[1].strip()
    if re.fullmatch(rf"{name}\s*--|--\s*{name}|{name}\s*-=\s*1|{name}\s*=\s*{name}\s*-\s*1", step):
        lowest = re.fullmatch(rf"{name}\s*(>=|>)\s*(.*)", condition, re.DOTALL)
        if not lowest or re.search(r"&&|\|\|", lowest[2]):
            raise refuse("the condition")
        first = lowest[2] if lowest[1] == ">=" else f"({lowest[2]}) + 1"
        kind = declared or _type_of(statement, name)
        return Header(whole, name, declared, kind, first, f"({begins[2].strip()}) + 1", "1", down=True)
    runs = re.fullmatch(rf"{name}\s*(<=|<)\s*(.*)", condition, re.DOTALL)
    turned = re.fullmatch(rf"(.*?)(>=|>)\s*{name}", condition, re.DOTALL)
    if runs:
        end, inclusive = runs[2], runs[1] == "<="
    elif turned:
        end, inclusive = turned[1].strip(), turned[2] == ">="
    else:
        raise refuse("the condition")
    if re.search(r"&&|\|\|", end):
        raise refuse("the condition")
    by = re.fullmatch(rf"{name}\s*\+\+|\+\+\s*{name}", step)
    adds = re.fullmatch(rf"{name}\s*\+=\s*(.*)|{name}\s*=\s*{name}\s*\+\s*(.*)", step, re.DOTALL)
    if not by and not adds:
        raise refuse("the step")
    return Header(
        whole,
        name,
        declared,
        declared or _type_of(statement, name),
        begins[2].strip(),
        f"({end}) + 1" if inclusive else end,
        "1" if by else (adds[1] or adds[2]).strip(),
    )


def _type_of(statement, name: str) -> str:
    for cursor in walk(next(iter(statement.get_children()))):
        if cursor.kind is CursorKind.DECL_REF_EXPR and cursor.spelling == name:
            return cursor.type.get_canonical().spelling.replace("const ", "")
    return "int"


def _range_is_known(low, bound, header: Header) -> bool:
    """Whether nothing in the nest changes what the range depends on."""
    used = set()
    waiting = words(" ".join((header.first, header.end, header.step)))
    while waiting:
        word = waiting.pop()
        macro = low.code.unit.macros.get(word)
        if word in used:
            continue
        used.add(word)
        if macro is not None:
            waiting += words(macro)
    text = " ; ".join([header.first, header.end, header.step, *(low.code.unit.macros.get(w, "") for w in used)])
    if re.search(r"\w\s*\(|[\[.]|->|\*\s*\w+\s*\[", re.sub(r"sizeof\s*\(", "", text)):
        return False
    changed, calls = changed_in(low, bound.statement)
    if used & changed:
        return False
    outer = {w for w in used if w in low.code.globals and not low.code.globals[w].type.is_const_qualified()}
    return not (outer and calls)


def known_before(low, bound, index: str) -> bool:
    """Whether the for statement of an index has a range that can be known before the nest."""
    statement = next(c for name, c in low.code.loops(bound.statement) if name == index)
    return _range_is_known(low, bound, header_of(low, statement, index))


def changed_in(low, statement) -> tuple[set, bool]:
    """Variables that a statement declares, sets or takes the address of, and whether it calls functions."""
    known = low.changed.get(id(statement))
    if known is None:
        changed, calls = set(), False
        for cursor in low.code.walk(statement):
            kind = cursor.kind
            if kind is CursorKind.VAR_DECL:
                changed.add(cursor.spelling)
            elif kind is CursorKind.CALL_EXPR:
                calls = True
            elif kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
                first = next(iter(cursor.get_children()), None)
                compound = kind is CursorKind.COMPOUND_ASSIGNMENT_OPERATOR
                if first is not None and (compound or assigns(low, cursor, first)):
                    changed |= _first_name(first)
            elif kind is CursorKind.UNARY_OPERATOR:
                first = next(iter(cursor.get_children()), None)
                text = low.code.span(cursor)
                piece = text.source.as_c[text.start : text.end] if text else "&"
                if first is not None and re.match(r"\+\+|--|&", piece) or piece.endswith(("++", "--")):
                    changed |= _first_name(first)
        known = low.changed[id(statement)] = (changed, calls)
    return known


def assigns(low, cursor, left) -> bool:
    whole, first = low.code.span(cursor), low.code.span(left)
    if whole is None or first is None:
        return True
    return re.match(r"\s*\)*\s*=(?!=)", whole.source.as_c[first.end : whole.end]) is not None


def _first_name(cursor) -> set:
    while cursor is not None:
        if cursor.kind is CursorKind.DECL_REF_EXPR:
            return {cursor.spelling}
        cursor = next(iter(cursor.get_children()), None)
    return set()


# ---- one range a for statement
def _in_ranges(low, on: str, axes: list[Axis], opening: list[str]) -> None:
    for axis in axes:
        head, name = axis.header, axis.header.name
        part = f"xmp_part({on}, {axis.dim}, (xmp_range){{{head.first}, {head.end}, {head.step}}}, {axis.offset})"
        first, end, step = (f"tsk_{name}.{what}" for what in ("first", "end", "step"))
        edits = low.of(head.span.source)
        edits.taken(head.span.start, head.span.end)  # it is part of `head`
        if axis.before:
            opening.append(f"const xmp_range tsk_{name} = {part};")
            kind = head.type
            opening.append(_constants(axis, f"({kind}){first}", f"({kind}){end}", f"({kind}){step}"))
            edits.replace(head.span.start, head.span.end, _head(head, f"tsk_{name}_", _step(axis)))
            continue
        # Its range changes, or there are several: a loop around it goes over them.
        at = low.code.span(axis.loop).start
        pieces = f"xmp_pieces({on}, {axis.dim}, (xmp_range){{{head.first}, {head.end}, {head.step}}}, {axis.offset})"
        if axis.single and not on.startswith("tsk_template_"):
            raise NotTranslated(head.span, "a loop on nodes whose range changes is not translated", "write its range")
        edits.open(at, f"for (xmp_loop tsk_{name} = {pieces}; xmp_loop_next(&tsk_{name});)\n")
        back = "" if axis.offset == Expr.of(0) else f" - ({axis.offset})"
        text = f"{name} = {first}{back}; {name} < {end}{back}; {name} += {step}"
        edits.replace(head.span.start, head.span.end, f"{head.declared} {text}".strip())


def _head(head: Header, prefix: str, step: str) -> str:
    if head.down:
        return f"{head.declared} {head.name} = {prefix}end; {head.name}-- > {prefix}first;".strip()
    text = f"{head.name} = {prefix}first; {head.name} < {prefix}end; {step}"
    return f"{head.declared} {text}".strip()


def _constants(axis: Axis, first: str, end: str, step: str) -> str:
    name = axis.header.name
    last = "" if _by_one(axis) else f", tsk_{name}_step = {step}"
    return f"const {axis.header.type} tsk_{name}_first = {first}, tsk_{name}_end = {end}{last};"


def _by_one(axis: Axis) -> bool:
    return axis.header.step == "1" and axis.adjacent


def _step(axis: Axis) -> str:
    name = axis.header.name
    return f"{name}++" if _by_one(axis) else f"{name} += tsk_{name}_step"


# ---- nests: wider or narrower than what a node owns
def _widths(form: forms.Loop, overlapped):
    """Widths as the run-time library has them, and what is waited for between interior and boundary."""
    if form.expand is not None:
        return ("XMP_EXPAND", form.expand), None
    if form.margin is not None:
        return ("XMP_MARGIN", form.margin), None
    if form.peel_and_wait is not None:
        return ("both", form.peel_and_wait.widths), f"xmp_wait_async(1, (int[]){{{form.peel_and_wait.id}}});"
    if overlapped is not None:
        narrower = [forms.Width(form.span, Expr.of(-below), Expr.of(-above)) for below, above in overlapped.widths]
        return ("both", narrower), overlapped.waits
    return None, None


def _in_nests(low, form, on, info, axes, dims, widths, wait, opening, closing) -> None:
    edge, given = widths
    if not isinstance(info, TemplateInfo):
        raise NotTranslated(form.span, "expand, margin and peel_and_wait belong to loops on templates", "name one")
    for axis in axes:
        if not axis.before:
            message = f"the range of '{axis.header.name}' changes within the nest, so its boundary is no box"
            raise NotTranslated(axis.header.span, message, "loop without expand, margin and peel_and_wait")
    listed = []
    by_dim = {axis.dim: axis for axis in axes}
    for dim in range(dims):
        head = by_dim[dim].header if dim in by_dim else None
        if head is None:
            listed.append("{XMP_OPEN_FIRST, XMP_OPEN_END, 1}")
        else:
            offset = by_dim[dim].offset
            moved = "{}" if offset == Expr.of(0) else f"({{}}) + ({offset})"
            listed.append(f"{{{moved.format(head.first)}, {moved.format(head.end)}, {head.step}}}")
    opening.append("xmp_nests tsk_nests;")
    opening.append(f"xmp_range tsk_all[] = {{{', '.join(listed)}}};")
    opening.append(f"const xmp_width tsk_widths[] = {widths_of(given).split('[]){', 1)[1][:-1].join('{}')};")
    opening.append(f"xmp_section({on}, tsk_all);")

    def nests(edge: str, widths: str) -> str:
        return f"xmp_loop_nests({on}, tsk_all, {edge}, {widths}, &tsk_nests);"

    if wait is None:
        opening.append(nests(edge, "tsk_widths"))
    else:
        widths, last = "tsk_widths", "1"
        if wait == JOIN:  # where nothing travels there is no need for two parts
            opening.append("const int tsk_apart = xacc_under_way();")
            widths, last = "tsk_apart ? tsk_widths : NULL", "tsk_apart"
        parts = f"for (int tsk_part = 0; tsk_part <= {last}; tsk_part++) {{"
        opening.append(parts + " /* the interior, then the boundary */")
        opening.append(f"  if (tsk_part == 1) {wait}")
        opening.append("  " + nests("tsk_part == 0 ? XMP_EXPAND : XMP_MARGIN", widths))
        closing.insert(0, "}")
    opening.append("  for (int tsk_nest = 0; tsk_nest < tsk_nests.count; tsk_nest++) {")
    closing.insert(0, "}")
    for axis in axes:
        head, name, kind = axis.header, axis.header.name, axis.header.type
        back = "" if axis.offset == Expr.of(0) else f" - ({axis.offset})"
        at = f"tsk_nests.ranges[tsk_nest][{axis.dim}]"
        values = (f"({kind})({at}.first{back})", f"({kind})({at}.end{back})", f"({kind}){at}.step")
        opening.append("    " + _constants(axis, *values))
        edits = low.of(head.span.source)
        edits.taken(head.span.start, head.span.end)
        edits.replace(head.span.start, head.span.end, _head(head, f"tsk_{name}_", _step(axis)))


# ---- reductions
def _kernel_of(low, bound):
    """The compute construct about the same nest, where it becomes a kernel."""
    if not low.options.kernels:
        return None
    found = (b for b in low.about(bound.statement) if isinstance(b.form, forms.Acc))
    return next((b for b in found if b.form.construct in COMPUTE_CONSTRUCTS), None)


def _reduced_on_gpu(low, kernel, reduction: forms.Reduction) -> bool:
    """Whether the variables stay on the GPU, so that nothing of the reduction needs the host."""
    there = [name for name in reduction.variables if has_memory(low, kernel, kernel.form.clauses, name)]
    if not there or not any(reduction.locations) and len(there) == len(reduction.variables):
        return bool(there)
    message = f"'{there[0]}' is on the GPU, where a reduction has no locations, and all of its variables are"
    raise NotTranslated(reduction.span, message, "reduce variables of the host and of the GPU by clauses of their own")


def _reductions(low, bound, form, on, axes, dims: int, opening: list, closing: list) -> None:
    if not form.reductions:
        return
    runs = wrapped("int", ["1" if any(a.dim == d for a in axes) else "0" for d in range(dims)])
    opening.append(f"xmp_desc_t tsk_over = xmp_combiners({on}, {runs});")
    kernel = _kernel_of(low, bound)
    for reduction in form.reductions:
        on_gpu = kernel is not None and _reduced_on_gpu(low, kernel, reduction)
        if kernel is not None:
            where = (
                "on the GPU, in the queue" if on_gpu else "by the host, which waits: no 'present' or 'data' names it"
            )
            low.explained += [(bound, f"{name} is reduced {where}") for name in reduction.variables]
        if on_gpu:
            queue = queue_of(kernel.form)
            listed = [gpu_variable(low, bound, name, reduction.span) for name in reduction.variables]
            called = f"{operator(reduction.operator)}, {len(listed)}, {wrapped('xmp_variable', listed)}, tsk_over"
            called += f", {f'xacc_queue({queue})' if queue != 'XACC_SYNC' else 'XACC_DEFAULT'}"
            opening.append(f"xacc_clear({called});")
            closing += [low.at(bound), f"xacc_reduction({called});"]
            continue
        before, after = combined_variables(low, bound, reduction, "tsk_over", operator(reduction.operator))
        opening += before
        closing += [low.at(bound), *after]
        for name, places in zip(reduction.variables, reduction.locations):
            kind = value_type(low, bound, name, reduction.span)
            inner = low.code.variable(re.match(r"\w+", name)[0], bound.place).semantic_parent
            of_function = inner.kind is CursorKind.FUNCTION_DECL
            if of_function and re.fullmatch(r"\w+", name) and not places and element_of(kind) == kind:
                # A copy whose address nobody has, so that it may stay in a register.
                opening.append(f"{kind.spelling}* const tsk_at_{name} = &{name};")
                opening.append(f"{{ {kind.spelling} {name} = *tsk_at_{name};")
                closing.insert(0, f"*tsk_at_{name} = {name}; }}")
    closing.append("xmp_free(&tsk_over);")
