"""One nest of OpenACC as a kernel: the body of an iteration in C++, and the call in the place of the nest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clang.cindex import CursorKind, TypeKind

from . import forms, lower_arrays
from .c_code import ARRAYS
from .diagnostics import Span
from .lower_device import IN, OUT, Item, has_memory, items, queue_of, text_of, unknown, waits
from .lower_loops import changed_in, header_of
from .lower_names import NotTranslated, array_name, c_string, element_of, words, wrapped

DATA = ("copy", "copyin", "copyout", "create", "present")
COMBINE = {
    "+": ("0", "a.{0} += b.{0};"),
    "*": ("1", "a.{0} *= b.{0};"),
    "max": ("tsk::Bounds<{1}>::least", "a.{0} = b.{0} > a.{0} ? b.{0} : a.{0};"),
    "min": ("tsk::Bounds<{1}>::most", "a.{0} = b.{0} < a.{0} ? b.{0} : a.{0};"),
    "&": ("~static_cast<{1}>(0)", "a.{0} &= b.{0};"),
    "|": ("0", "a.{0} |= b.{0};"),
    "^": ("0", "a.{0} ^= b.{0};"),
    "&&": ("1", "a.{0} = a.{0} && b.{0};"),
    "||": ("0", "a.{0} = a.{0} || b.{0};"),
}
AFTER = {  # the same, of the result and the variable
    "max": "result.{0} > {0} ? result.{0} : {0}",
    "min": "result.{0} < {0} ? result.{0} : {0}",
}
LOOPS_OF_C = (CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.DO_STMT, CursorKind.SWITCH_STMT)


@dataclass
class Piece:
    """Text of the file of kernels, and where in the source it belongs."""

    at: int
    end: int
    text: str


class Nest:
    """One kernel."""

    def __init__(self, kernels, bound, statement, clauses: list, serial: bool):
        self.kernels, self.low, self.bound, self.statement = kernels, kernels.low, bound, statement
        self.clauses, self.serial = clauses, serial
        self.views: list = []  # members of the body, and what the call gives for them
        self.addresses: list = []
        self.values: list = []
        self.members: list[str] = []
        self.setup: list[str] = []  # initial values of members
        self.locals: list[str] = []
        self.enters: list[str] = []
        self.leaves: list[str] = []
        self.unused: list[str] = []  # by the host, now
        self.in_place = False  # results of reductions are combined on the GPU
        self.reduced: list[str] = []
        self.copied: list[str] = []  # what the call may copy

    def clause(self, name: str):
        return next((c for c in self.clauses if c.name == name), None)

    def named(self, *names: str) -> dict:
        """Variables of clauses, each with its clause."""
        return {text_of(item): c for c in self.clauses if c.name in names for item in c.items or []}

    # ---- loops
    def _loops(self) -> list:
        """The for statements that run in parallel, outermost first."""
        low = self.low
        if self.serial or self.clause("seq"):
            return []
        collapse = self.clause("collapse")
        count = collapse.items[0].number if collapse else 1
        found, loop = [self.statement], self.statement
        while True:
            loop = _tight(loop)
            if loop is None:
                return found
            inner = low.loop_on(loop)
            if len(found) >= count:
                names = [c.name for c in inner.form.clauses] if inner is not None else ["seq"]
                if set(names) & {"seq", "reduction", "private", "collapse"}:
                    return found
                if "xmp" in [b.pragma.language for b in low.about(loop)] or len(found) >= 7:
                    return found
            found.append(loop)

    def _stops(self, cursor, in_loop: bool = False):
        """A statement that leaves the body."""
        for child in cursor.get_children():
            kind = child.kind
            if kind in (CursorKind.RETURN_STMT, CursorKind.GOTO_STMT) or kind is CursorKind.BREAK_STMT and not in_loop:
                return child
            found = self._stops(child, in_loop or kind in LOOPS_OF_C)
            if found is not None:
                return found
        return None

    # ---- all of it
    def translate(self) -> None:
        low, kernels = self.low, self.kernels
        loops = self._loops()
        whole = low.code.statement_span(self.statement)
        source = whole.source
        if source is not kernels.source:
            message = "a compute construct in a header is not translated for GPUs"
            raise NotTranslated(self.bound.form.span, message, "move it to a file of C")
        headers = [header_of(low, loop, low.code.index_of(loop)) for loop in loops]
        for outer, header in enumerate(headers):
            inner = words(f"{header.first} {header.end} {header.step}")
            if any(h.name in inner for h in headers[:outer]):
                message = f"the range of '{header.name}' depends on a loop around it"
                raise NotTranslated(header.span, message, "collapse fewer loops")
        body = list(loops[-1].get_children())[-1] if loops else self.statement
        inside = low.code.statement_span(body)
        stop = self._stops(body, in_loop=body.kind in LOOPS_OF_C)
        if stop is not None:
            message = "this leaves the loop, whose iterations run in parallel"
            raise NotTranslated(low.code.span(stop), message, "write the condition around the rest")
        self._atomics(inside)
        self._calls(body)
        for bound in low.program.pragmas.held(whole):
            if bound.pragma.language == "xmp" and inside.holds(bound.pragma.span):
                message = f"'{bound.name}' stands within a kernel"
                raise NotTranslated(bound.form.span, message, "write it before the compute construct")
            self._consume(bound.pragma)
        text = self._body_text(inside)
        reduced = self._reductions()
        self._variables(inside, {h.name for h in headers}, reduced, text)
        self._implied()
        kernels.count += 1
        name = f"tsk_kernel_{kernels.stem}_{kernels.count}"
        kernels.pieces.append(Piece(whole.start, whole.end, self._cuda(name, headers, text, reduced, inside)))
        self._taken(whole)
        low.of(source).replace(
            whole.start, whole.end, self._call(name, headers, reduced, low.indent(self.bound.pragma))
        )
        how = f"{len(loops)} loop{'' if len(loops) == 1 else 's'} in parallel" if loops else "one thread"
        low.became[id(self.bound)] = f"kernel {name}: {how}"
        for bound in low.about(self.statement):
            if isinstance(bound.form, forms.Acc) and bound is not self.bound:
                low.became[id(bound)] = f"a part of kernel {name}"

    def _consume(self, pragma) -> None:
        if id(pragma) in self.low.consumed:
            return
        self.low.consumed.add(id(pragma))
        source = pragma.span.source
        start = source.starts[pragma.first_line - 1]
        end = source.starts[pragma.last_line - 1] + len(source.line(pragma.last_line))
        self.low.of(source).replace(start, end, "\n" * (pragma.last_line - pragma.first_line))

    def _taken(self, span: Span) -> str:
        """The text with its changes; those at its ends belong to what is around it."""
        edits = self.low.of(span.source)
        at_ends = [c for c in edits.changes if c.start == c.end and c.start in (span.start, span.end)]
        edits.changes = [c for c in edits.changes if c not in at_ends]
        text = edits.taken(span.start, span.end)
        edits.changes += at_ends
        return text

    def _body_text(self, inside: Span) -> str:
        text = self._taken(inside)
        host = re.search(r"\bxmp_(local_index|part|pieces|has|loop_next)\b", text)
        if host:
            message = "this nest needs the host for its indices: a cyclic dimension, or a range that changes in it"
            raise NotTranslated(self.bound.form.span, message, "distribute by block, and give ranges that stay")
        return text

    def _calls(self, body) -> None:
        low = self.low
        routines = {b.place.statement.spelling for b in low.routines if b.place.statement is not None}
        for cursor in low.code.walk(body):
            if cursor.kind is CursorKind.CALL_EXPR and cursor.spelling:
                called = cursor.referenced
                system = called is None or called.location.is_in_system_header or not called.location.file
                if not system and cursor.spelling not in routines:
                    message = f"'{cursor.spelling}' is no routine of the GPU"
                    remedy = "write #pragma acc routine seq before its definition in this file"
                    raise NotTranslated(low.code.span(cursor) or self.bound.form.span, message, remedy)

    # ---- atomic
    def _atomics(self, inside: Span) -> None:
        low = self.low
        for bound in low.program.pragmas.held(inside):
            form = bound.form
            if not isinstance(form, forms.Acc) or form.construct != "atomic":
                continue
            for clause in form.clauses:
                if clause.name != "update":
                    raise unknown(clause, "atomic")
            span = low.code.statement_span(bound.statement)
            text = low.of(span.source).peeked(span.start, span.end).rstrip().rstrip(";")
            adds = re.fullmatch(r"([^=;]+?)\s*\+=\s*([^=;]+)", text, re.DOTALL)
            once = re.fullmatch(r"([^=;+]+?)\s*\+\+|\+\+\s*([^=;+]+)", text, re.DOTALL)
            if not adds and not once:
                raise NotTranslated(span, "this atomic update is not translated for GPUs", "write x += value;")
            place, value = (adds[1], adds[2]) if adds else (once[1] or once[2], "1")
            self._taken(span)
            low.of(span.source).replace(span.start, span.end, f"tsk::atomic_add(&({place.strip()}), {value.strip()});")

    # ---- reductions
    def _reductions(self) -> list:
        """Operator, name and type."""
        low, found = self.low, []
        for clause in self.clauses:
            if clause.name != "reduction":
                continue
            if clause.modifier not in COMBINE:
                raise unknown(clause, f"reduction({clause.modifier})")
            for item in clause.items:
                name = text_of(item)
                declaration = low.code.variable(name, self.bound.place) if re.fullmatch(r"\w+", name) else None
                kind = declaration.type.get_canonical() if declaration is not None else None
                if kind is None or kind.kind in ARRAYS or kind.kind is TypeKind.POINTER:
                    raise NotTranslated(clause.span, f"'{name}' is no scalar", "reduce scalars")
                if not self.serial:
                    found.append((clause.modifier, name, _type(kind)))
        there = [name for _, name, _ in found if has_memory(low, self.bound, self.clauses, name)]
        self.in_place = bool(there)
        self.reduced = [name for _, name, _ in found]
        elsewhere = [name for _, name, _ in found if name not in there]
        if there and elsewhere:
            message = f"'{there[0]}' is on the GPU, and '{elsewhere[0]}' is not"
            raise NotTranslated(self.bound.form.span, message, "name both in data, or none")
        return found

    # ---- variables
    def _variables(self, inside: Span, indices: set, reduced: list, text: str) -> None:
        low, private = self.low, self.named("private")
        pointers = self.named("deviceptr")
        data = self.named(*DATA)
        done = set(indices) | {name for _, name, _ in reduced}
        changed, _ = changed_in(low, self.statement)
        for use in low.used.held(inside):
            own = low.code.span(use.declaration)
            if use.name in done or (own is not None and inside.holds(own)):
                continue
            done.add(use.name)
            info = low.symbols.array(use.name, self.bound)
            kind = use.declaration.type.get_canonical()
            if use.name in private:
                self.locals.append(_declared(use.declaration.type, use.name, low, self.bound) + ";")
                self.unused.append(use.name)
            elif info is not None:
                element = lower_arrays.element_text(use.declaration, info)
                self.members.append(f"tsk::View<{element}, {info.dimensions}> {use.name};")
                self.setup.append(f"tsk::View<{element}, {info.dimensions}>(views[{len(self.views)}])")
                self.views.append((use.name, f"xacc_view_of(&{array_name(use.name)}, {c_string(use.name)})"))
            elif kind.kind is TypeKind.POINTER and use.name in pointers:
                self._value(use.name, _pointer(kind), use.name)
            elif kind.kind is TypeKind.POINTER or kind.kind in ARRAYS:
                self._address(use, kind)
            elif has_memory(low, self.bound, self.clauses, use.name):
                self._there(use.name, kind)
            else:
                if use.name in data and use.name in changed:
                    message = f"'{use.name}' is set by the nest, and in no reduction"
                    raise NotTranslated(data[use.name].span, message, "name it in reduction, private or firstprivate")
                self._value(use.name, _type(kind), use.name)
        for word in dict.fromkeys(re.findall(r"\btsk_\w+_(?:first|end|step)\b", text)):
            self.members.append(f"long long {word};")
            self.setup.append(f"*static_cast<const int64_t*>(values[{len(self.values)}])")
            self.values.append((word, f"&(const int64_t){{{word}}}"))
            # Loops that stay in the body have ranges of the host.

    def _value(self, name: str, kind: str, text: str) -> None:
        self.members.append(f"{_member(kind, f'tsk_{name}')};")
        self.setup.append(f"*static_cast<const Body::tsk_type_{name}*>(values[{len(self.values)}])")
        self.members.insert(0, f"using tsk_type_{name} = {kind};")
        self.locals.append(f"tsk_type_{name} {name} = tsk_{name}; (void){name};")
        self.values.append((name, f"&{text}"))

    def _there(self, name: str, kind) -> None:
        """A scalar that has memory on the GPU."""
        self.members.insert(0, f"using tsk_type_{name} = {_type(kind)};")
        self.members.append(f"tsk_type_{name}* tsk_{name};")
        self.setup.append(f"static_cast<Body::tsk_type_{name}*>(addresses[{len(self.addresses)}])")
        self.locals.append(f"tsk_type_{name}& {name} = *tsk_{name}; (void){name};")
        self.addresses.append((name, f"xacc_address(&{name}, {c_string(name)})"))

    def _address(self, use, kind) -> None:
        name = use.name
        if kind.kind is TypeKind.POINTER:
            pointed = _pointer(kind)
        else:
            extents = self.low.code.extents(use.declaration)
            if None in extents[1:]:
                message = f"the extents of '{name}' change, and kernels need them"
                raise NotTranslated(use.span, message, "write p[i * n + j] on a pointer, or align the array")
            element = _type(element_of(use.declaration.type))
            rows = "".join(f"[{n}]" for n in extents[1:])
            pointed = f"{element} (*){rows}" if rows else f"{element} *"
        self.members.insert(0, f"using tsk_type_{name} = {pointed};")
        self.members.append(f"tsk_type_{name} {name};")
        self.setup.append(f"static_cast<Body::tsk_type_{name}>(addresses[{len(self.addresses)}])")
        self.addresses.append((name, f"xacc_address({name}, {c_string(name)})"))

    # ---- data
    def _implied(self) -> None:
        """Data clauses, and `copy` of arrays that no clause names."""
        low, named = self.low, set()
        form = forms.Acc(self.bound.form.span, self.bound.form.construct, self.clauses)
        used = {name for name, _ in [*self.views, *self.addresses]}
        for clause, item in items(low, self.bound, form, DATA):
            named.add(item.name)
            kind = item.declaration.type.get_canonical()
            if item.info is None and kind.kind not in (*ARRAYS, TypeKind.POINTER):
                continue  # a scalar goes with the call
            self.enters.append(item.enter(IN[clause]))
            self.leaves.insert(0, item.leave(OUT.get(clause, "0")))
            if clause != "present":
                self.copied.append(item.name)
        default = self.clause("default")
        if default is not None:  # all is there, or named
            return
        for name in sorted(used - named):
            declaration = low.code.variable(name, self.bound.place)
            pointer = declaration.type.get_canonical().kind is TypeKind.POINTER
            if low.symbols.array(name, self.bound) is None and (pointer or declaration.kind is CursorKind.PARM_DECL):
                continue  # must be there
            item = Item(low, self.bound, forms.Clause(self.bound.form.span, "copy", None, [name]), name)
            self.copied.append(name)
            self.enters.append(item.enter(IN["copy"]))
            self.leaves.insert(0, item.leave(OUT["copy"]))

    # ---- text
    def _cuda(self, name: str, headers: list, text: str, reduced: list, inside: Span) -> str:
        dims, lines = max(len(headers), 1), ["namespace {", f"struct {name}_body {{"]
        lines += [f"  {member}" for member in self.members]
        lines.append(f"  static constexpr bool kReduces = {'true' if reduced else 'false'};")
        if reduced:
            fields = " ".join(f"{kind} {one};" for _, one, kind in reduced)
            none = ", ".join(f"static_cast<{kind}>({COMBINE[op][0].format(one, kind)})" for op, one, kind in reduced)
            adds = " ".join(COMBINE[op][1].format(one, kind) for op, one, kind in reduced)
            lines.append(f"  struct Result {{ {fields} }};")
            # The host asks for it, too, before a launch. Where a template of the host calls what is the device's alone,
            # nvcc says nothing and compiles a call of exit(1).
            lines.append(f"  static TSK_BOTH Result none() {{ return Result{{{none}}}; }}")
            lines.append(f"  static TSK_DEVICE void add(Result& a, const Result& b) {{ {adds} }}")
            if self.in_place:
                lines.append(f"  static constexpr int kResults = {len(reduced)};")
                lines.append("  static TSK_DEVICE void put(const Result& result, void* const* results) {")
                lines += [f"  {line}" for line in _combined(reduced)] + ["  }"]
        else:
            lines.append("  using Result = tsk::None;")
        lines.append(f"  TSK_DEVICE void operator()(const long long (&tsk_index)[{dims}], Result& tsk_result) const {{")
        lines.append("    (void)tsk_index, (void)tsk_result;")
        lines += [f"    {kind}& {one} = tsk_result.{one};" for _, one, kind in reduced]
        for at, header in enumerate(headers):
            lines.append(f"    {header.type} {header.name} = static_cast<{header.type}>(tsk_index[{at}]);")
            lines.append(f"    (void){header.name};")
        lines += [f"    {line}" for line in self.locals]
        lines.append("    do {")
        start = inside.source.place(inside.start)
        out = "\n".join(lines) + "\n" + self.kernels.line(start[0]) + " " * (start[1] - 1) + text + "\n"
        setup = ", ".join(self.setup)
        ranges = "ranges" if headers else "one"
        one = "" if headers else "  static const xmp_range one[] = {{0, 1, 1}};\n  (void)ranges;\n"
        if self.in_place:
            run = f"  tsk::run_in_place<{dims}>(Body{{{setup}}}, {ranges}, results, queue, threads);\n"
        else:
            after = "".join(f"{line}\n" for line in _combined(reduced))
            run = f"  const auto result = tsk::run<{dims}>(Body{{{setup}}}, {ranges}, queue, threads);\n"
            run += f"  (void)result;\n{after}"
        return (
            f'{out}#line 1 "what calls {name}"\n    }} while (false);\n  }}\n}};\n}}  // namespace\n'
            f'extern "C" void {name}(const xmp_range ranges[], const xacc_view views[], void* const addresses[],\n'
            f"    const void* const values[], void* const results[], int queue, int threads) {{\n"
            f"  (void)views, (void)addresses, (void)values, (void)results;\n  using Body = {name}_body;\n{one}"
            f"{run}}}\n"
        )

    def _call(self, name: str, headers: list, reduced: list, indent: str) -> str:
        form = forms.Acc(self.bound.form.span, "", self.clauses)

        def listed(kind: str, found: list) -> str:
            return wrapped(kind, found) if found else "NULL"

        ranges = listed("xmp_range", [f"{{{h.first}, {h.end}, {h.step}}}" for h in headers])
        views = listed("xacc_view", [text for _, text in self.views])
        addresses = listed("void*", [text for _, text in self.addresses])
        values = listed("const void*", [text for _, text in self.values])
        places = [f"xacc_address(&{one}, {c_string(one)})" if self.in_place else f"&{one}" for _, one, _ in reduced]
        results = listed("void*", places)
        length = self.clause("vector_length")
        threads = text_of(length.items[0]) if length else "0"
        lines = ["{", f"  extern xacc_kernel {name};"]
        lines += [f"  (void){one};" for one in self.unused]
        lines += [*[f"  {line}" for line in [*waits(form), *self.enters]]]
        lines.append(f"  {name}({ranges}, {views}, {addresses}, {values}, {results}, {queue_of(form)}, {threads});")
        return f"\n{indent}".join([*lines, *[f"  {line}" for line in self.leaves], "}"])


def _combined(reduced: list) -> list[str]:
    """The variables with the results of a nest."""
    found = []
    for at, (op, name, kind) in enumerate(reduced):
        value = AFTER.get(op, "{0} " + op + " result.{0}").format(name)
        found.append(f"  {{ auto& {name} = *static_cast<{kind}*>(results[{at}]); {name} = {value}; }}")
    return found


def _tight(loop):
    """The loop that is all of this loop's body."""
    body = list(loop.get_children())[-1]
    while body.kind is CursorKind.COMPOUND_STMT:
        children = list(body.get_children())
        if len(children) != 1:
            return None
        body = children[0]
    return body if body.kind is CursorKind.FOR_STMT else None


def _type(kind) -> str:
    spelled = kind.get_canonical().spelling
    return re.sub(r"\b(const|volatile|restrict)\b\s*", "", spelled).replace("_Bool", "bool").strip()


def _pointer(kind) -> str:
    """A pointer that is no constant itself."""
    return re.sub(r"(\b(const|volatile|restrict|__restrict)\s*)+$", "", kind.get_canonical().spelling).strip()


def _member(kind: str, name: str) -> str:
    return f"tsk_type_{name.removeprefix('tsk_')} {name}"


def _declared(kind, name: str, low, bound) -> str:
    extents, canonical = "", kind.get_canonical()
    if canonical.kind is TypeKind.POINTER:
        return f"{canonical.spelling} {name}"
    if canonical.kind in ARRAYS:
        numbers = low.code.extents(low.code.variable(name, bound.place))
        if None in numbers:
            message = f"the extents of '{name}' change, and kernels need them"
            raise NotTranslated(bound.form.span, message, "declare it with constant extents")
        extents = "".join(f"[{n}]" for n in numbers)
    return f"{_type(element_of(kind))} {name}{extents}"
