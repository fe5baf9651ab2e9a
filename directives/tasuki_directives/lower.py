"""From checked directives to C that calls the run-time library: what every part of that needs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clang.cindex import CursorKind, StorageClass

from . import (
    forms,
    lower_acc,
    lower_arrays,
    lower_calls,
    lower_check,
    lower_gmove,
    lower_kernels,
    lower_sections,
    lower_vectors,
    overlap,
)
from .bind import Bound, Program
from .c_code import identity
from .diagnostics import Findings, Index, Span
from .edits import Edit, Edits
from .lower_names import NotTranslated, array_name, c_string, nodes_name, pointer_text, range_of, template_name, wrapped
from .options import Options
from .symbols import ArrayInfo, Symbols, TemplateInfo

INCLUDE = '#include "xmp_translated.h"\n'


@dataclass
class Use:
    """A reference to a variable in a function."""

    cursor: object
    declaration: object
    name: str
    span: Span


class Lowering:
    def __init__(self, program: Program, symbols: Symbols, findings: Findings, options: Options):
        self.program, self.code, self.symbols = program, program.code, symbols
        self.findings, self.options = findings, options
        self.edits: dict = {}
        self.lines: dict = {}  # of each pragma
        self.begin: list[str] = []  # what the file declares, before main
        self.overlaps: dict = {}  # by id of the form of a reflect and of its loop
        self.changed: dict = {}  # what statements change
        self.closing: dict = {}  # what comes after the statement, by id of the directive
        self.became: dict = {}  # what is generated, by id of the directive
        self.explained: list = []  # directives, each with a sentence more
        self.nests: list = []  # compute constructs that become kernels
        self.routines: list = []  # functions that kernels call
        self.consumed: set = set()  # pragmas within kernels
        self.cuda = ""  # the file of kernels
        self.late: list = []  # what comes directly before statements: source, place and text
        self.functions = [c for c in self.code.own if c.kind is CursorKind.FUNCTION_DECL and c.is_definition()]
        self.uses_of = {id(function): self._uses(function) for function in self.functions}
        self.uses = [use for found in self.uses_of.values() for use in found]
        self.used = Index(self.uses, lambda use: use.span)
        self.methods = {
            forms.Nodes: lower_arrays.nodes,
            forms.Template: lower_arrays.template,
            forms.Distribute: lower_arrays.distribute,
            forms.Align: lower_arrays.align,
            forms.Shadow: lower_arrays.shadow,
            forms.TemplateFix: lower_arrays.template_fix,
            forms.Task: lower_calls.task,
            forms.Tasks: lower_calls.nothing,
            forms.Loop: lower_vectors.loop,
            forms.Array: lower_sections.array,
            forms.Reflect: lower_calls.reflect,
            forms.Gmove: lower_gmove.gmove,
            forms.Barrier: lower_calls.barrier,
            forms.ReductionOf: lower_calls.reduction,
            forms.Bcast: lower_calls.bcast,
            forms.WaitAsync: lower_calls.wait_async,
            forms.Post: lower_calls.post,
            forms.Wait: lower_calls.wait,
            forms.Acc: lower_acc.acc,
        }

    def run(self) -> None:
        lower_arrays.check_whole_references(self)
        lower_arrays.rewrite_indices(self)
        if self.options.check:
            lower_check.check_indices(self)
        lower_gmove.rewrite_descriptors(self)
        overlap.find_overlaps(self)
        for bound in self.program.directives:
            said = len(self.lines.setdefault(id(bound.pragma), [])), len(self.begin), len(self.late)
            method = self.methods.get(type(bound.form))
            try:
                if method is None:
                    raise NotTranslated(bound.form.span, f"'{bound.name}' is not translated yet", "do without it")
                method(self, bound, bound.form)
                self.became[id(bound)] = self._became(bound, *said)
            except NotTranslated as fault:
                self.findings.error(fault.span, fault.message, fault.remedy)
        self._kernels()
        if self.findings:
            return
        for source, at, text in self.late:
            self.of(source).open(at, text)
        lower_arrays.remove_declarations(self)
        self._replace_pragmas()
        self._open_functions()
        self._include()
        self._end_file()

    def _kernels(self) -> None:
        """When all other directives about their statements have been translated."""
        if not self.options.kernels or not any(self._on_device(bound.form) for bound in self.program.directives):
            return
        kernels = lower_kernels.Kernels(self)
        try:
            kernels.run()
        except NotTranslated as fault:
            self.findings.error(fault.span, fault.message, fault.remedy)
            return
        self.begin.insert(0, "xacc_start();")
        self.cuda = kernels.text()

    @staticmethod
    def _on_device(form) -> bool:
        return isinstance(form, forms.Acc) or bool(getattr(form, "acc", False))

    def about(self, statement) -> list:
        """Directives about this statement."""
        return [b for b, _ in self.program.statements if identity(b.statement) == identity(statement)]

    def loop_on(self, statement) -> Bound | None:
        """OpenACC's `loop` about this statement."""
        found = (b for b in self.about(statement) if isinstance(b.form, forms.Acc) and b.form.construct == "loop")
        return next(found, None)

    def _became(self, bound: Bound, lines: int, begin: int, late: int) -> str:
        """What is generated for a directive, for --explain."""
        early = self.begin[begin:]
        new = [*early, *self.lines[id(bound.pragma)][lines:], self.closing.get(id(bound), "")]
        new += [text for _, _, text in self.late[late:]]
        text = "\n".join(new)
        calls = list(dict.fromkeys(name for name in re.findall(r"\b((?:xmp|xacc)_\w+)\(", text) if name != "xmp_at"))
        if calls:
            return ("before main: " if early else "") + ", ".join(calls)
        if "#pragma omp" in text:
            return text.strip()
        if isinstance(bound.form, forms.Acc) and self.options.kernels:
            return "nothing by itself: a part of a kernel"
        if isinstance(bound.form, forms.Acc):
            return "nothing: memory of the host is the device's, and loops run as they stand"
        if isinstance(bound.form, forms.Tasks):
            return "nothing: it holds tasks"
        return "nothing by itself: made with the array's memory, or by a later directive about it"

    # ---- text
    def of(self, source) -> Edits:
        return self.edits.setdefault(id(source), Edits(source))

    def say(self, bound: Bound, *lines: str) -> None:
        """What takes the place of the pragma."""
        self.lines[id(bound.pragma)] += lines

    def after(self, bound: Bound, text: str) -> None:
        """What comes after the statement of the directive."""
        span = self.code.statement_span(bound.statement)
        self.closing[id(bound)] = text
        self.of(span.source).close(span.end, text)

    @staticmethod
    def at(bound: Bound) -> str:
        """Says where the program is, to errors of waits."""
        pragma = bound.pragma
        return f"xmp_at({c_string(f'{pragma.span.source.path}:{pragma.first_line}')});"

    def _replace_pragmas(self) -> None:
        communicating = {id(b.pragma): b for b in self.program.directives if isinstance(b.form, forms.COMMUNICATION)}
        for pragma in {id(b.pragma): b.pragma for b in self.program.directives}.values():
            if id(pragma) in self.consumed:
                continue
            if id(pragma) in communicating:
                lines = self.lines[id(pragma)]
                lines[:1] = [f"{self.at(communicating[id(pragma)])} {line}" for line in lines[:1]]
            source = pragma.span.source
            start, end = source.starts[pragma.first_line - 1], source.starts[pragma.last_line - 1]
            indent = self.indent(pragma)
            text = "\n".join(indent + line for line in self.lines[id(pragma)])
            self.of(source).replace(start, end + len(source.line(pragma.last_line)), text)

    @staticmethod
    def indent(pragma) -> str:
        """That of the next line that is no pragma."""
        source = pragma.span.source
        lines = range(pragma.first_line, len(source.starts) + 1)
        texts = (source.line(n) for n in lines)
        text = next((t for t in texts if t.strip() and not t.lstrip().startswith("#")), "")
        return re.match(r"[ \t]*", text)[0]

    # ---- names
    def handle(self, reference: forms.Reference, bound: Bound):
        """The variable of the nodes or the template that a reference names, and what is known of them."""
        nodes = self.symbols.nodes(reference.name, bound)
        if nodes is not None:
            return nodes_name(reference.name), nodes
        return template_name(reference.name), self.symbols.template(reference.name, bound)

    def section(self, reference: forms.Reference, bound: Bound) -> str:
        """Its ranges, or NULL for all of it."""
        if reference.subscripts is None:
            return "NULL"
        name, info = self.handle(reference, bound)
        if isinstance(info, TemplateInfo):
            for sub in reference.subscripts:
                if sub.kind == "star":
                    sub.kind = "range"  # all of that dimension
        return f"xmp_section({name}, {wrapped('xmp_range', [range_of(s) for s in reference.subscripts])})"

    def array(self, name: str, bound: Bound, span: Span) -> tuple[str, ArrayInfo]:
        found = self.symbols.array(name, bound)
        if found is None or not re.fullmatch(r"\w+", name):
            raise NotTranslated(span, f"members of structs, as '{name}', are not translated yet", "use a variable")
        return array_name(name), found

    def is_file_scope(self, bound: Bound) -> bool:
        if bound.place.inside.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL):
            raise NotTranslated(bound.form.span, "aligned members of structs are not translated yet", "use a variable")
        return bound.place.function is None

    # ---- functions
    def _uses(self, function) -> list[Use]:
        found = []
        for cursor in self.code.walk(function):
            if cursor.kind is CursorKind.DECL_REF_EXPR:
                declaration = cursor.referenced
                if declaration is not None and declaration.kind in (CursorKind.VAR_DECL, CursorKind.PARM_DECL):
                    found.append(Use(cursor, declaration, declaration.spelling, self.code.span(cursor)))
        return found

    def file_arrays(self) -> dict:
        """Arrays of the file by name: those that are not pointers."""
        return {
            name: info
            for (scope, kind, name), info in self.symbols.known.items()
            if scope == "" and kind == "array" and not lower_arrays.is_pointer(self, self.code.globals[name])
        }

    def _open_functions(self) -> None:
        """main starts the library; every function has pointers to the arrays of the file that it uses."""
        arrays = self.file_arrays()
        for function in self.functions:
            body = list(function.get_children())[-1]
            span = self.code.span(body)
            lines = []
            if function.spelling == "main":
                names = [a.spelling for a in function.get_arguments()]
                lines.append(f"xmp_start({names[0]}, {names[1]});" if len(names) > 1 else "xmp_start(0, NULL);")
            used = {
                u.name
                for u in self.uses_of[id(function)]
                if u.declaration.semantic_parent.kind is CursorKind.TRANSLATION_UNIT
            }
            for name in [n for n in arrays if n in used]:
                lines.append(self.pointer(name, arrays[name], self.code.globals[name]))
            if lines:
                self.of(span.source).open(span.start + 1, "".join(f"\n  {line}" for line in lines) + "\n")

    def pointer(self, name: str, info: ArrayInfo, declaration) -> str:
        handle, element = array_name(name), lower_arrays.element_text(declaration, info)
        return f"{pointer_text(element, name, info.dimensions, f'{handle}.extents')} = {handle}.origin; (void){name};"

    # ---- files
    def _include(self) -> None:
        """Before the first thing that is generated."""
        sources = {id(b.pragma.span.source): b.pragma.span.source for b in self.program.directives}
        for function in self.functions:
            span = self.code.span(function)
            if id(span.source) in self.edits:
                sources.setdefault(id(span.source), span.source)
        for source in sources.values():
            places = [self.code.span(f) for f in self.functions]
            starts = [
                s.start
                for s in places
                if s.source is source and any(c.start >= s.start for c in self.of(source).changes)
            ]
            starts += [b.pragma.span.start for b in self.program.directives if b.pragma.span.source is source]
            inside = [s.start for s in places if s.source is source and s.start <= min(starts) < s.end]
            line = source.place(min(inside + starts))[0]
            edits = self.of(source)
            text = INCLUDE + ('#include "xacc_translated.h"\n' if self.cuda else "")
            text += '#include "xmp_checked.h"\n' if self.options.check else ""
            edits.changes.insert(0, Edit(source.starts[line - 1], source.starts[line - 1], text))

    def _end_file(self) -> None:
        main = self.code.unit.main
        text = "".join(f"{line}\n" for line in self._definitions())
        if self.begin:
            body = "".join(f"  {line}\n" for line in self.begin)
            text += f"static void tsk_declare(void) {{\n{body}}}\n"
            text += "static void __attribute__((constructor)) tsk_register(void) { xmp_at_start(tsk_declare); }\n"
        if text:
            self.of(main).open(len(main.text), "\n" + text)

    def _definitions(self) -> list[str]:
        """Handles of arrays that other files see too, and of pointers to such."""
        found = []
        for scope, kind, name in self.symbols.known:
            if scope or kind != "array" or name not in self.code.globals:
                continue
            shared = self.code.globals[name].storage_class is not StorageClass.STATIC
            if shared and lower_arrays.is_defined_here(self, name):
                found.append(f"xmp_placed {array_name(name)};")
        return found


def lower_program(program: Program, symbols: Symbols, findings: Findings, options: Options) -> Lowering:
    lowering = Lowering(program, symbols, findings, options)
    lowering.run()
    return lowering
