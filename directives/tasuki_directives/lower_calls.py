"""Directives that become calls: tasks, reflects, reductions, broadcasts, barriers, signals."""

from __future__ import annotations

import re

from clang.cindex import TypeKind

from . import forms, lower_arrays
from .c_code import ARRAYS
from .lower_names import NotTranslated, c_string, element_of, operator, pointer_text, type_code, widths_of, wrapped
from .symbols import TemplateInfo


def nothing(low, bound, form) -> None:
    """`tasks` only holds tasks."""


# ---- nodes that take part
def on_nodes(low, bound, on: forms.Reference | None) -> tuple[list[str], str, list[str]]:
    """Lines before, the argument, and lines after."""
    if on is None:
        return [], "NULL", []
    name, info = low.handle(on, bound)
    if not isinstance(info, TemplateInfo) and on.subscripts is None:
        return [], name, []
    return [f"xmp_desc_t tsk_on = xmp_set({name}, {low.section(on, bound)});"], "tsk_on", ["xmp_free(&tsk_on);"]


def block(low, bound, before: list[str], call: str, after: list[str]) -> None:
    if before or after:
        low.say(bound, " ".join(["{", *before, call, *after, "}"]))
    else:
        low.say(bound, call)


def pointers_used(low, bound) -> list[str]:
    """Arrays that xmp_malloc has made, under their names, for the statement of a directive."""
    span = low.code.span(bound.statement)
    found = []
    for use in low.used.held(span):
        name = use.name
        if name in [n for n, _ in found]:
            continue
        info = low.symbols.array(name, bound)
        if info is None or not lower_arrays.is_pointer(low, use.declaration):
            continue
        if _inside_another(low, bound, span):
            continue
        handle = lower_arrays.array_name(name)
        element = lower_arrays.element_text(use.declaration, info)
        declared = pointer_text(element, name, info.dimensions, f"{handle}.extents")
        found.append((name, f"{declared} = {handle}.origin; (void){name};"))
    return [line for _, line in found]


def _inside_another(low, bound, span) -> bool:
    return any(
        other is not bound and isinstance(other.form, (forms.Loop, forms.Task)) and own.holds(span) and own != span
        for other, own in low.program.statements
    )


def task(low, bound, form: forms.Task) -> None:
    name, _ = low.handle(form.on, bound)
    enter = f"xmp_enter({name}, {low.section(form.on, bound)})"
    low.say(bound, f"{{ const int tsk_task __attribute__((cleanup(xmp_leave))) = {enter};")
    low.say(bound, *pointers_used(low, bound), "if (tsk_task) {")
    low.after(bound, "}}")


# ---- communication
def reflect(low, bound, form: forms.Reflect) -> None:
    arrays = [low.array(name, bound, form.span)[0] + ".desc" for name in form.arrays]
    listed = wrapped("xmp_desc_t", arrays)
    parts = []
    if form.widths is not None:
        parts.append(f".width = {widths_of(form.widths)}")
        if any(w.periodic for w in form.widths):
            parts.append(f".periodic = {wrapped('int', [str(int(w.periodic)) for w in form.widths])}")
    if form.orthogonal:
        parts.append(".orthogonal = 1")
    options = f"&(xmp_reflect_options){{{', '.join(parts)}}}" if parts else "NULL"
    overlapped = low.overlaps.get(id(form))
    if overlapped is not None and on_gpu(low, form):
        _beside(low, bound, form, [str(len(arrays)), listed, *([options] if form.action == "reflect" else [])])
        return
    wait = overlapped.ids[0] if overlapped is not None else form.asynchronous
    name = form.action + ("_async" if wait is not None else "")
    if form.action in ("reflect_init", "reduce_shadow") and wait is not None:
        raise NotTranslated(form.span, f"'{form.action}' with async is not translated", "leave async out")
    arguments = [str(len(arrays)), listed]
    if form.action != "reflect_do":
        arguments.append(options)
    if wait is not None:
        arguments.append(str(wait))
    elif on_gpu(low, form) and form.action != "reflect_init":
        arguments.append("XACC_DEFAULT")
    low.say(bound, f"{library(low, form)}{name}({', '.join(arguments)});")


def _beside(low, bound, form: forms.Reflect, arguments: list) -> None:
    """A reflect on the GPU that runs beside the kernel of the interior."""
    for one in form.arrays:  # else a kernel's own data clauses would copy the array while it travels
        low.say(bound, f"(void)xacc_view_of(&{low.array(one, bound, form.span)[0]}, {c_string(one)});")
    low.say(bound, f"xacc_{form.action}_beside({', '.join(arguments)});")


def on_gpu(low, form) -> bool:
    """Whether the operands are on the device, and the device is no host."""
    return low.options.kernels and bool(form.acc)


def library(low, form) -> str:
    return "xacc_" if on_gpu(low, form) else "xmp_"


def barrier(low, bound, form: forms.Barrier) -> None:
    before, on, after = on_nodes(low, bound, form.on)
    block(low, bound, before, f"{library(low, form)}barrier({on});", after)


def value_type(low, bound, path: str, span):
    """The type of a variable, an element or a member."""
    name = re.match(r"\w+", path)[0]
    kind = low.code.variable(name, bound.place).type
    for step in re.findall(r"\[[^\]]*\]|(?:\.|->)\w+", path[len(name) :]):
        canonical = kind.get_canonical()
        if step[0] == "[":
            if canonical.kind not in ARRAYS and canonical.kind is not TypeKind.POINTER:
                raise NotTranslated(span, f"'{path}' is no element of an array", "name a variable")
            kind = canonical.element_type if canonical.kind in ARRAYS else canonical.get_pointee()
            continue
        record = canonical.get_pointee().get_canonical() if step.startswith("->") else canonical
        members = {f.spelling: f.type for f in record.get_fields()}
        member = step.lstrip("->.")
        if member not in members:
            raise NotTranslated(span, f"'{path}' names no member", "correct the name")
        kind = members[member]
    return kind


def variable(low, bound, path: str, span) -> str:
    """An xmp_variable."""
    if low.symbols.array(path, bound) is not None:
        raise NotTranslated(span, f"'{path}' is an aligned array, and not a variable", "name a variable of each node")
    kind = value_type(low, bound, path, span)
    element = element_of(kind)
    code = type_code(element)
    if element.get_canonical().kind is TypeKind.POINTER:
        raise NotTranslated(span, f"'{path}' is a pointer", "name the element, as in p[0]")
    if code == "XMP_BYTES":
        raise NotTranslated(span, f"'{path}' is no number", "name a variable of an arithmetic type")
    count = "1" if element == kind else f"sizeof({path}) / sizeof({element.spelling})"
    return f"{{&({path}), {count}, {code}}}"


def combined_variables(low, bound, reduction: forms.Reduction, on: str, op: str) -> tuple[list[str], list[str]]:
    """Lines before and after a loop whose partial results are combined."""
    before, after = [], []
    for name, places in zip(reduction.variables, reduction.locations):
        listed = variable(low, bound, name, reduction.span)
        if places:
            where = wrapped("xmp_variable", [variable(low, bound, p, reduction.span) for p in places])
            after.append(f"xmp_reduction_loc({op}, (xmp_variable){listed}, {len(places)}, {where}, {on});")
        else:
            before.append(f"xmp_clear({op}, 1, (xmp_variable[]){{{listed}}}, {on});")
            after.append(f"xmp_reduction({op}, 1, (xmp_variable[]){{{listed}}}, {on});")
    return before, after


def reduction(low, bound, form: forms.ReductionOf) -> None:
    before, on, after = on_nodes(low, bound, form.on)
    one = form.reduction
    if any(one.locations) and form.asynchronous is not None:
        raise NotTranslated(form.span, "a reduction with locations cannot be async", "leave async out")
    op = operator(one.operator)
    if on_gpu(low, form):
        block(low, bound, before, " ".join(_reductions_on_gpu(low, bound, form, op, on)), after)
        return
    if any(one.locations):
        calls = combined_variables(low, bound, one, on, op)[1]
    else:
        listed = wrapped("xmp_variable", [variable(low, bound, name, one.span) for name in one.variables])
        wait = "" if form.asynchronous is None else f", {form.asynchronous}"
        name = "xmp_reduction" + ("_async" if wait else "")
        calls = [f"{name}({op}, {len(one.variables)}, {listed}, {on}{wait});"]
    block(low, bound, before, " ".join(calls), after)


def _reductions_on_gpu(low, bound, form: forms.ReductionOf, op: str, on: str) -> list[str]:
    one = form.reduction
    listed = [gpu_variable(low, bound, v, one.span) for v in one.variables]
    if any(one.locations):
        calls = []
        for value, places in zip(listed, one.locations):
            where = wrapped("xmp_variable", [gpu_variable(low, bound, p, one.span) for p in places])
            calls.append(
                f"xacc_reduction_loc({op}, (xmp_variable){value}, {len(places)}, {where}, {on}, XACC_DEFAULT);"
            )
        return calls
    name, last = ("xacc_reduction", "XACC_DEFAULT")
    if form.asynchronous is not None:
        name, last = "xacc_reduction_async", str(form.asynchronous)
    return [f"{name}({op}, {len(listed)}, {wrapped('xmp_variable', listed)}, {on}, {last});"]


def gpu_variable(low, bound, path: str, span) -> str:
    """An xmp_variable on the GPU."""
    at, count, code = re.fullmatch(r"\{(.*), (.*), (\w+)\}", variable(low, bound, path, span)).groups()
    return f'{{xacc_address({at}, "{path}"), {count}, {code}}}'


def bcast(low, bound, form: forms.Bcast) -> None:
    before, on, after = on_nodes(low, bound, form.on)
    listed = []
    for path in form.variables:
        if low.symbols.array(path, bound) is not None:
            raise NotTranslated(form.span, f"'{path}' is an aligned array, and not a variable", "use gmove")
        kind = value_type(low, bound, path, form.span)
        if kind.get_canonical().kind is TypeKind.POINTER:
            raise NotTranslated(form.span, f"'{path}' is a pointer", "name the element, as in p[0]")
        at = f'xacc_address(&({path}), "{path}")' if on_gpu(low, form) else f"&({path})"
        listed.append(f"{{{at}, sizeof({path}), XMP_U8}}")
    source = "0"
    if form.source is not None:
        name, info = low.handle(form.source, bound)
        source = f"xmp_source({name}, {low.section(form.source, bound)}, {on})"
    wait = "" if form.asynchronous is None else f", {form.asynchronous}"
    wait = ", XACC_DEFAULT" if on_gpu(low, form) and not wait else wait
    name = f"{library(low, form)}bcast" + ("_async" if form.asynchronous is not None else "")
    block(low, bound, before, f"{name}({len(listed)}, {wrapped('xmp_variable', listed)}, {source}, {on}{wait});", after)


def wait_async(low, bound, form: forms.WaitAsync) -> None:
    wait = f"xmp_wait_async({len(form.ids)}, {wrapped('int', [str(i) for i in form.ids])});"
    if form.on is None:
        low.say(bound, wait)
        return
    name, _ = low.handle(form.on, bound)
    low.say(bound, f"if (xmp_contains({name}, {low.section(form.on, bound)})) {wait}")


def _number(low, bound, node: forms.Reference) -> tuple[str, str]:
    """A set of nodes and the number in it of the node that a reference names."""
    name, info = low.handle(node, bound)
    kinds = [s.kind for s in node.subscripts or []]
    if isinstance(info, TemplateInfo) or not kinds or any(kind != "index" for kind in kinds):
        raise NotTranslated(node.span, "this names more than one node", "give an index for each dimension of nodes")
    return name, f"xmp_node_number({name}, {wrapped('int', [str(s.lower) for s in node.subscripts])})"


def post(low, bound, form: forms.Post) -> None:
    name, number = _number(low, bound, form.node)
    low.say(bound, f"xmp_post({name}, {number}, {form.tag});")


def wait(low, bound, form: forms.Wait) -> None:
    name, number = ("NULL", "XMP_ANY") if form.node is None else _number(low, bound, form.node)
    low.say(bound, f"xmp_wait({name}, {number}, {'XMP_ANY' if form.tag is None else form.tag});")
