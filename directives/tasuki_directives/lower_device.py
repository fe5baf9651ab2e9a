"""OpenACC on GPUs, without its kernels: data, updates, waits, and the addresses of what is on the GPU."""

from __future__ import annotations

import re

from clang.cindex import CursorKind, TypeKind

from . import forms, lower_arrays
from .c_code import ARRAYS
from .diagnostics import Span
from .lower_names import NotTranslated, array_name, c_string, element_of, pointer_text, wrapped

IN = {
    "copy": "XACC_COPYIN | XACC_COPYOUT",
    "copyin": "XACC_COPYIN",
    "copyout": "XACC_COPYOUT",
    "create": "XACC_CREATE",
    "device_resident": "XACC_CREATE",
    "present": "XACC_PRESENT",
}
OUT = {"copy": "XACC_COPYOUT", "copyout": "XACC_COPYOUT"}


def text_of(item) -> str:
    return item.variable if isinstance(item, forms.Section) else str(item)


def unknown(clause: forms.Clause, where: str) -> NotTranslated:
    return NotTranslated(clause.span, f"'{clause.name}' of '{where}' is not translated for GPUs", "leave it out")


# ---- what a clause names
class Item:
    """A variable of a clause: the calls that bring it to the GPU, take it back, and copy it."""

    def __init__(self, low, bound, clause: forms.Clause, item):
        path = text_of(item)
        span = item.span if isinstance(item, forms.Section) else clause.span
        if not re.fullmatch(r"\w+", path):
            raise NotTranslated(span, f"members and elements, as '{path}', are not moved", "name a variable")
        self.name, self.text = path, c_string(path)
        subs = item.subscripts if isinstance(item, forms.Section) else []
        declaration = low.code.variable(path, bound.place)
        info = low.symbols.array(path, bound)
        self.declaration, self.info = declaration, info
        if info is not None:
            self.distributed = f"&{array_name(path)}, {self.text}"
            listed = [_range(sub) for sub in subs] + ["{0, XMP_OPEN_END, 1}"] * (info.dimensions - len(subs))
            self.section = wrapped("xmp_range", listed) if subs else "NULL"
            return
        self.distributed = ""
        self.memory = _memory(low, declaration, path, subs, span, clause.name in ("present", "delete", "use_device"))

    def enter(self, what: str) -> str:
        if self.distributed:
            return f"xacc_enter({self.distributed}, {what}, {self.section});"
        return f"xacc_enter_memory({self.memory}, {self.text}, {what});"

    def leave(self, what: str) -> str:
        if self.distributed:
            return f"xacc_leave({self.distributed}, {what}, {self.section});"
        return f"xacc_leave_memory({self.memory}, {self.text}, {what});"

    def update(self, to_device: int) -> str:
        if self.distributed:
            return f"xacc_update({self.distributed}, {to_device}, {self.section});"
        return f"xacc_update_memory({self.memory}, {self.text}, {to_device});"


def _range(sub: forms.Sub) -> str:
    if sub.kind == "index":
        return f"{{{sub.lower}, {sub.lower.plus(1)}, 1}}"
    end = "XMP_OPEN_END" if sub.upper is None else str(sub.upper)
    return f"{{{'0' if sub.lower is None else sub.lower}, {end}, 1}}"


def _memory(low, declaration, name: str, subs: list, span: Span, anywhere: bool) -> str:
    """Address and bytes."""
    kind = declaration.type.get_canonical()
    pointer = kind.kind is TypeKind.POINTER or declaration.kind is CursorKind.PARM_DECL and kind.kind in ARRAYS
    if not subs:
        if pointer:
            if anywhere:
                return f"{name}, 1"
            raise NotTranslated(span, f"how much '{name}' points to is not known", f"write {name}[0:n]")
        return f"&{name}, sizeof({name})"
    extents = low.code.extents(declaration)
    for at, sub in enumerate(subs):
        first = sub.lower.number if sub.lower is not None else 0
        end = sub.upper.number if sub.upper is not None else extents[at]
        if at > 0 and (first, end) != (0, extents[at]):
            raise NotTranslated(sub.span, f"a section of '{name}' is no single piece of memory", "write [:] there")
    sub = subs[0]
    if sub.kind == "index":
        return f"&{name}[{sub.lower}], sizeof({name}[0])"
    first = "0" if sub.lower is None else str(sub.lower)
    end = str(extents[0]) if sub.upper is None else str(sub.upper)
    if end == "None":
        raise NotTranslated(span, f"how much '{name}' points to is not known", f"write {name}[0:n]")
    return f"&{name}[{first}], (({end}) - ({first})) * (int64_t)sizeof({name}[0])"


def has_memory(low, bound, clauses: list, name: str) -> bool:
    """Whether a scalar has memory of its own on the GPU at a compute construct: by its clause `present`, or by a `data`
    construct around it."""
    around = [
        (clause, "data")
        for other, span in low.program.statements
        if isinstance(other.form, forms.Acc) and other.form.construct == "data" and other is not bound
        if span.holds(bound.pragma.span)
        for clause in other.form.clauses
    ]
    for clause, where in [*((clause, "") for clause in clauses), *around]:
        counts = clause.name == "present" or where and clause.name in IN
        if counts and any(text_of(item) == name for item in clause.items):
            return True
    return False


def items(low, bound, form: forms.Acc, names) -> list[tuple[str, Item]]:
    found = [(c, item) for c in form.clauses if c.name in names for item in c.items]
    return [(clause.name, Item(low, bound, clause, item)) for clause, item in found]


# ---- queues
def queue_of(form: forms.Acc) -> str:
    clause = next((c for c in form.clauses if c.name == "async"), None)
    if clause is None:
        return "XACC_SYNC"
    return text_of(clause.items[0]) if clause.items else "0"


def waits(form: forms.Acc) -> list[str]:
    """Of clauses, and of the directive."""
    found = []
    for clause in form.clauses:
        if clause.name == "wait":
            queues = [text_of(item) for item in clause.items or []]
            found.append(f"xacc_wait({len(queues)}, {wrapped('int', queues) if queues else 'NULL'});")
    return found


def only(form: forms.Acc, *names: str) -> None:
    for clause in form.clauses:
        if clause.name not in names:
            raise unknown(clause, form.construct)


# ---- constructs
def data(low, bound, form: forms.Acc) -> None:
    only(form, *IN, "async", "wait")
    listed = items(low, bound, form, IN)
    low.say(bound, "{", *waits(form), *[item.enter(IN[name]) for name, item in listed])
    closing = [item.leave(OUT.get(name, "0")) for name, item in reversed(listed)]
    low.after(bound, "".join(f"\n{low.indent(bound.pragma)}{line}" for line in [*closing, "}"]))


def enter_data(low, bound, form: forms.Acc) -> None:
    only(form, "copyin", "create", "async", "wait")
    low.say(bound, *waits(form), *[item.enter(IN[name]) for name, item in items(low, bound, form, IN)])


def exit_data(low, bound, form: forms.Acc) -> None:
    only(form, "copyout", "delete", "async", "wait")
    listed = items(low, bound, form, ("copyout", "delete"))
    low.say(bound, *waits(form), *[item.leave(OUT.get(name, "0")) for name, item in listed])


def update(low, bound, form: forms.Acc) -> None:
    only(form, "self", "host", "device", "async", "wait")
    listed = items(low, bound, form, ("self", "host", "device"))
    low.say(bound, *waits(form), *[item.update(int(name == "device")) for name, item in listed])


def declare(low, bound, form: forms.Acc) -> None:
    only(form, "create", "copyin", "device_resident")
    if not low.is_file_scope(bound):
        raise NotTranslated(form.span, "'declare' in a function is not translated for GPUs", "use data")
    low.begin += [item.enter(IN[name]) for name, item in items(low, bound, form, IN)]


def host_data(low, bound, form: forms.Acc) -> None:
    only(form, "use_device")
    lines = []
    for _, item in items(low, bound, form, ("use_device",)):
        name, kind = item.name, item.declaration.type.get_canonical()
        if item.info is not None:
            element = lower_arrays.element_text(item.declaration, item.info)
            handle = array_name(name)
            declared = pointer_text(element, name, item.info.dimensions, f"{handle}.extents")
            lines.append(f"{declared} = xacc_view_of({item.distributed}).origin; (void){name};")
        elif kind.kind is TypeKind.POINTER:
            lines.append(f"void *const tsk_device_{name} = xacc_address({name}, {item.text});")
            lines.append(f"{item.declaration.type.spelling.replace('const', '')} {name} = tsk_device_{name};")
        elif kind.kind in ARRAYS:
            rows = "".join(f"[{n}]" for n in low.code.extents(item.declaration)[1:])
            element = element_of(item.declaration.type).spelling
            lines.append(f"void *const tsk_device_{name} = xacc_address({name}, {item.text});")
            lines.append(f"{element} (*const {name}){rows} = tsk_device_{name};" if rows else "")
            lines[-1] = lines[-1] or f"{element} *const {name} = tsk_device_{name};"
        else:
            raise NotTranslated(form.span, f"'{name}' is no array", "name an array or a pointer")
    # The addresses are found before the names mean them.
    first = [line for line in lines if line.startswith("void *const tsk_device_")]
    low.say(bound, "{", *first, "{", *[line for line in lines if line not in first])
    low.after(bound, "}}")


def wait(low, bound, form: forms.Acc) -> None:
    only(form, "wait", "async")
    low.say(bound, *(waits(form) or ["xacc_wait(0, NULL);"]))


METHODS = {
    "data": data,
    "enter data": enter_data,
    "exit data": exit_data,
    "update": update,
    "declare": declare,
    "host_data": host_data,
    "wait": wait,
}
