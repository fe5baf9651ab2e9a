"""What is wrong with directives that can be read: names, dimensions, distributions, widths, places."""

from __future__ import annotations

import re
from typing import Callable

from . import forms, openacc
from .bind import Bound, Program
from .diagnostics import Findings, Span
from .loops import check_loop
from .symbols import ArrayInfo, NodesInfo, Symbols, TemplateInfo


def check_program(program: Program, findings: Findings) -> Symbols:
    """What the directives declare. What is wrong with them is among the findings then."""
    checker = Checker(program, findings)
    for bound in program.directives:
        checker.check(bound)
    return checker.symbols


def dimensions(count: int) -> str:
    return f"{count} dimension{'' if count == 1 else 's'}"


class Checker:
    def __init__(self, program: Program, findings: Findings):
        self.code, self.program, self.findings = program.code, program, findings
        self.symbols = Symbols()
        self.methods: dict[type, Callable[[Bound, forms.Directive], None]] = {
            forms.Nodes: self._nodes,
            forms.Template: self._template,
            forms.Distribute: self._distribute,
            forms.Align: self._align,
            forms.Shadow: self._shadow,
            forms.Coarray: lambda bound, form: self._variable(form.name, form.span, bound),
            forms.LocalAlias: self._local_alias,
            forms.TemplateFix: self._template_fix,
            forms.Task: lambda bound, form: self._reference(form.on, bound),
            forms.Tasks: self._tasks,
            forms.Loop: self._loop,
            forms.Array: self._array,
            forms.Reflect: self._reflect,
            forms.Gmove: self._gmove,
            forms.Barrier: self._on,
            forms.ReductionOf: self._reduction,
            forms.Bcast: self._bcast,
            forms.WaitAsync: self._on,
            forms.Post: lambda bound, form: self._reference(form.node, bound),
            forms.Wait: lambda bound, form: form.node and self._reference(form.node, bound),
            forms.Lock: lambda bound, form: self._variable(form.variable, form.span, bound),
            forms.Acc: self._acc,
        }

    def check(self, bound: Bound) -> None:
        self.methods[type(bound.form)](bound, bound.form)
        reduces = isinstance(bound.form, forms.Loop) and bound.form.reductions
        if isinstance(bound.form, forms.COMMUNICATION) or reduces:
            self._outside_of_compute_regions(bound)

    def _outside_of_compute_regions(self, bound: Bound) -> None:
        place = bound.pragma.span
        for other, region in self.program.statements:
            form = other.form
            if not isinstance(form, forms.Acc) or form.construct not in openacc.COMPUTE_CONSTRUCTS:
                continue
            if region.source is place.source and region.start <= place.start < region.end:
                line = region.source.place(other.pragma.span.start)[0]
                message = f"'{bound.name}' communicates, and may not stand in the compute region of line {line}"
                self.findings.error(bound.form.span, message, f"move it out of '{form.construct}'")

    # ---- names
    def _declare(self, kind: str, name: str, bound: Bound, value) -> None:
        if not self.symbols.add(kind, name, bound, value):
            what = {"array": "aligned"}.get(kind, "declared")
            self.findings.error(
                bound.form.span, f"'{name}' is {what} twice", "delete one of both, or take another name"
            )

    def _variable(self, path: str, span: Span, bound: Bound):
        name = re.match(r"\w+", path)[0]
        found = self.code.variable(name, bound.place)
        if found is None:
            self.findings.error(span, f"no variable '{name}' is declared here", "declare it before the directive")
        return found

    def _find_template(self, name: str, span: Span, bound: Bound) -> TemplateInfo | None:
        found = self.symbols.template(name, bound)
        if found is None:
            self.findings.error(
                span, f"no template '{name}' is declared", f"write #pragma xmp template {name}(...) before"
            )
        return found

    def _reference(self, reference: forms.Reference, bound: Bound, distributed: bool = True):
        """The nodes or the template of `on`, with the right number of subscripts."""
        name = reference.name
        found: NodesInfo | TemplateInfo | None = self.symbols.nodes(name, bound) or self.symbols.template(name, bound)
        if found is None:
            message = f"'{name}' is neither a template nor nodes"
            self.findings.error(reference.span, message, "declare it before, or correct the name")
            return None
        given = reference.subscripts
        if given is not None and len(given) != found.dimensions:
            message = f"'{name}' has {dimensions(found.dimensions)}, not {len(given)}"
            self.findings.error(reference.span, message, f"give {found.dimensions} subscripts")
            return None
        for at, sub in enumerate(given or []):
            if not self._inside(sub, *found.bounds(at)):
                message = f"this subscript lies outside of '{name}'"
                remedy = f"{found.told(at)}; in round brackets nodes count from 1, in square ones from 0"
                self.findings.error(sub.span, message, remedy)
                return None
        if distributed and isinstance(found, TemplateInfo) and found.distribute is None:
            message = f"template '{name}' is not distributed"
            self.findings.error(reference.span, message, f"write #pragma xmp distribute {name}(...) onto NODES before")
            return None
        return found

    @staticmethod
    def _inside(sub: forms.Sub, first: forms.Expr | None, end: forms.Expr | None) -> bool:
        """False only if the subscript is known to lie outside of [first, end)."""
        last = sub.lower.plus(1) if sub.kind == "index" else sub.upper if sub.step is None else None
        below = first.minus(sub.lower).number if first and sub.lower else None
        above = last.minus(end).number if last and end else None
        return (below or 0) <= 0 and (above or 0) <= 0

    def _template_of(self, reference: forms.Reference, bound: Bound):
        return self._reference(reference, bound)

    def _on(self, bound: Bound, form) -> None:
        if form.on is not None:
            self._reference(form.on, bound)

    # ---- declarations
    def _nodes(self, bound: Bound, form: forms.Nodes) -> None:
        if isinstance(form.of, forms.Reference) and not self.symbols.nodes(form.of.name, bound):
            message = f"no nodes '{form.of.name}' are declared"
            self.findings.error(form.of.span, message, "declare them before")
        elif isinstance(form.of, forms.Reference):
            self._reference(form.of, bound)
        self._declare("nodes", form.name, bound, NodesInfo(form))

    def _template(self, bound: Bound, form: forms.Template) -> None:
        self._declare("template", form.name, bound, TemplateInfo(form))

    def _distribute(self, bound: Bound, form: forms.Distribute) -> None:
        template = self._find_template(form.template, form.span, bound)
        nodes = self.symbols.nodes(form.nodes, bound)
        if nodes is None:
            self.findings.error(form.span, f"no nodes '{form.nodes}' are declared", "write #pragma xmp nodes before")
        if template is None or nodes is None:
            return
        if template.distribute is not None:
            self.findings.error(form.span, f"template '{form.template}' is distributed twice", "delete one of both")
            return
        self._fits_template(form.distributions, template, form.span)
        used = sum(d.kind != "none" for d in form.distributions)
        if used != nodes.dimensions:
            have = dimensions(nodes.dimensions)
            message = f"nodes '{form.nodes}' have {have}, and {used} of the template's are distributed"
            self.findings.error(form.span, message, "distribute as many dimensions as the nodes have, the others by *")
        else:
            self._enough_blocks(form, template, nodes)
        template.distribute = form

    def _enough_blocks(self, form: forms.Distribute, template: TemplateInfo, nodes: NodesInfo) -> None:
        extents = iter(nodes.form.extents)
        for distribution, known in zip(form.distributions, template.form.ranges):
            if distribution.kind == "none":
                continue
            extent = next(extents)
            if distribution.kind != "block" or None in (distribution.argument, known, extent):
                continue
            length, count = known.upper.minus(known.lower).number, extent.number
            block = distribution.argument.number
            if None not in (length, count, block) and block * count < length:
                message = f"{count} blocks of {block} do not hold the {length} indices of template '{form.template}'"
                remedy = f"take blocks of {-(-length // count)} or more, or leave the length out"
                self.findings.error(distribution.span, message, remedy)

    def _fits_template(self, distributions: list, template: TemplateInfo, span: Span) -> None:
        if len(distributions) != template.dimensions:
            message = f"template '{template.form.name}' has {dimensions(template.dimensions)}, not {len(distributions)}"
            self.findings.error(span, message, "give one distribution for each dimension, * for none")

    def _template_fix(self, bound: Bound, form: forms.TemplateFix) -> None:
        template = self._find_template(form.template, form.span, bound)
        if template is None:
            return
        if None not in template.form.ranges and not self._late(template):
            message = f"template '{form.template}' is fixed by its declaration"
            self.findings.error(form.span, message, "declare it with : where the range comes later")
        for given in (form.ranges, form.distributions):
            if given is not None and len(given) != template.dimensions:
                message = f"template '{form.template}' has {dimensions(template.dimensions)}, not {len(given)}"
                self.findings.error(form.span, message, f"give {template.dimensions}")

    @staticmethod
    def _late(template: TemplateInfo) -> bool:
        """Whether the lengths of its blocks come later."""
        kinds = template.distribute.distributions if template.distribute else []
        return any(d.kind == "gblock" and str(d.argument) in ("None", "*") for d in kinds)

    def _align(self, bound: Bound, form: forms.Align) -> None:
        declaration = self._variable(form.array, form.span, bound)
        template = self._find_template(form.template, form.span, bound)
        if template is None or declaration is None:
            return
        have, exact = self.code.dimensions(declaration)
        bare_pointer = not exact and have == 1  # to memory whose extents C does not know
        if have != len(form.source) and not bare_pointer:
            message = f"'{form.array}' has {dimensions(have)}, not {len(form.source)}"
            self.findings.error(
                form.span, message, "give one bracket for each dimension, [*] for one that is not aligned"
            )
            return
        if len(form.target) != template.dimensions:
            message = f"template '{form.template}' has {dimensions(template.dimensions)}, not {len(form.target)}"
            self.findings.error(form.span, message, f"give {template.dimensions} subscripts, * for a replicated one")
            return
        if template.distribute is None:
            message = f"template '{form.template}' is not distributed"
            remedy = f"write #pragma xmp distribute {form.template}(...) onto NODES before"
            self.findings.error(form.span, message, remedy)
        along = self._alignment(form)
        if along is not None:
            self._within_template(form, template, along, self.code.extents(declaration))
            self._declare("array", form.array, bound, ArrayInfo(form, template, along))

    def _alignment(self, form: forms.Align) -> list | None:
        along: list = [None] * len(form.source)
        colons = [at for at, text in enumerate(form.source) if text == ":"]
        for at, sub in enumerate(form.target):
            if sub.kind == "range":
                if not colons:
                    self.findings.error(sub.span, "a : of the template needs one of the array", "write [:] there, or *")
                    return None
                along[colons.pop(0)] = (at, forms.Expr.of(0))
                continue
            if sub.kind == "star":
                continue
            used = [name for name in sub.lower.names if name in form.source]
            if not used:
                continue
            coefficient = dict(sub.lower.terms)[used[0]]
            if len(used) > 1 or coefficient != 1:
                message = f"'{sub.lower}' is not an index plus or minus an offset"
                self.findings.error(sub.span, message, "align with index + offset")
                return None
            dimension = form.source.index(used[0])
            if along[dimension] is not None:
                self.findings.error(sub.span, f"index '{used[0]}' is aligned twice", "use each index once")
                return None
            along[dimension] = (at, sub.lower.minus(forms.Expr.atom(used[0])))
        for at, text in enumerate(form.source):
            if text not in ("*", ":") and along[at] is None:
                message = f"index '{text}' does not come with the template"
                self.findings.error(form.span, message, f"use it in {form.template}(...), or write [*]")
                return None
        return along

    def _within_template(self, form: forms.Align, template: TemplateInfo, along: list, extents: list) -> None:
        for at, (place, extent) in enumerate(zip(along, extents)):
            if place is None or extent is None or form.source[at] == ":":
                continue
            known = template.form.ranges[place[0]]
            if known is None:
                continue
            first, end = place[1], place[1].plus(extent)
            below, above = known.lower.minus(first).number, end.minus(known.upper).number
            if (below or 0) > 0 or (above or 0) > 0:
                message = (
                    f"dimension {at} of '{form.array}' is on {first} to {end.minus(1)} of template '{form.template}',"
                    f" which has {known.lower} to {known.upper.minus(1)}"
                )
                remedy = (
                    "declare the template with all of these indices (in round brackets t(n) counts from 1: t(0:n-1))"
                )
                self.findings.error(form.span, message, remedy)
                return

    def _aligned(self, name: str, span: Span, bound: Bound, remedy: str) -> ArrayInfo | None:
        found = self.symbols.array(name, bound)
        if found is None:
            self.findings.error(span, f"'{name}' is not an aligned array", remedy)
        return found

    def _shadow(self, bound: Bound, form: forms.Shadow) -> None:
        array = self._aligned(form.array, form.span, bound, "write its align directive before")
        if array is None:
            return
        if array.shadow is not None:
            self.findings.error(form.span, f"'{form.array}' has two shadows", "delete one of both")
            return
        if len(form.widths) != array.dimensions:
            message = f"'{form.array}' has {dimensions(array.dimensions)}, not {len(form.widths)}"
            self.findings.error(form.span, message, "give one width for each dimension, [0] for none")
            return
        for at, width in enumerate(form.widths):
            none = width.lower is not None and width.lower.number == 0 and width.upper.number == 0
            if array.distribution(at) == "cyclic" and not none:
                message = f"dimension {at} of '{form.array}' is cyclic, and cannot have a shadow"
                self.findings.error(width.span, message, "write [0] there, or distribute it by block or gblock")
        array.shadow = form

    def _local_alias(self, bound: Bound, form: forms.LocalAlias) -> None:
        self._variable(form.name, form.span, bound)
        self._aligned(form.array, form.span, bound, "name an array that is aligned before")

    # ---- work
    def _tasks(self, bound: Bound, form: forms.Tasks) -> None:
        if bound.statement is None:
            return
        tasks = [b.statement for b in self.program.directives if isinstance(b.form, forms.Task)]
        for child in bound.statement.get_children():
            span = self.code.span(child)
            if child not in tasks and span is not None:
                line = span.source.place(span.start)[0]
                message = f"'tasks' holds tasks only, and line {line} is none"
                self.findings.error(form.span, message, "write #pragma xmp task on ... before it, or move it out")
                return

    def _loop(self, bound: Bound, form: forms.Loop) -> None:
        reduced: list[str] = []
        for reduction in form.reductions:
            self._reduced(reduction, bound)
            for name in set(reduction.variables) & set(reduced):
                self.findings.error(reduction.span, f"'{name}' is reduced twice", "name it once")
            reduced += reduction.variables
        on = self._template_of(form.on, bound)
        if on is not None and bound.statement is not None:
            check_loop(bound, form, on, self.program, self.symbols, self.findings)

    def _array(self, bound: Bound, form: forms.Array) -> None:
        on = self._template_of(form.on, bound)
        if on is None or bound.statement is None:
            return
        statement = self.code.statement_span(bound.statement)
        sections = [s.span for s in statement.source.sections if not s.coindex and statement.holds(s.span)]
        if not sections:
            line = statement.source.place(statement.start)[0]
            message = f"'array' needs array sections, and line {line} has none"
            self.findings.error(form.span, message, "write a[:] = ..., or a[0:n] = ... with first and length")
        for use in self.code.array_uses(bound.statement):
            array = self.symbols.array(use.name, bound)
            if array is None or not any(use.span.holds(section) for section in sections):
                continue
            if not isinstance(on, TemplateInfo) or not on.same_mapping(array.template):
                message = f"'{use.name}' is aligned with '{array.template.form.name}', and not with '{form.on.name}'"
                remedy = f"write on {array.template.form.name}(...), or move the array by gmove"
                self.findings.error(use.span, message, remedy)

    # ---- communication
    def _reflect(self, bound: Bound, form: forms.Reflect) -> None:
        for name in form.arrays:
            array = self._aligned(name, form.span, bound, "name arrays that are aligned before")
            if array is None:
                continue
            if array.shadow is None:
                message = f"'{name}' has no shadow"
                self.findings.error(form.span, message, f"write #pragma xmp shadow {name}[...] after its align")
            elif form.widths is not None:
                self._within_shadow(name, form.widths, array, array.shadow, form.span)

    def _within_shadow(self, name: str, widths: list, array: ArrayInfo, shadow: forms.Shadow, span: Span) -> None:
        if len(widths) != array.dimensions:
            message = f"'{name}' has {dimensions(array.dimensions)}, not {len(widths)}"
            self.findings.error(span, message, "give one width for each dimension, 0 for none")
            return
        for at, (width, layers) in enumerate(zip(widths, shadow.widths)):
            for side in ("lower", "upper"):
                asked, have = getattr(width, side), getattr(layers, side)
                if asked is None or have is None:
                    continue
                beyond = asked.minus(have).number
                if beyond is not None and beyond > 0:
                    message = (
                        f"width {asked} goes beyond the shadow: dimension {at} of '{name}' has {have} {side} layers"
                    )
                    self.findings.error(width.span, message, "make the shadow wider, or the width smaller")
                    break

    def _gmove(self, bound: Bound, form: forms.Gmove) -> None:
        if bound.statement is None:
            return
        span = self.code.span(bound.statement)
        text = span.source.as_c[span.start : span.end]
        if not re.search(r"(?<![=!<>+\-*/%&|^])=(?!=)", text):
            line = span.source.place(span.start)[0]
            self.findings.error(
                form.span, f"'gmove' needs an assignment, and line {line} is none", "write a[...] = b[...]"
            )

    def _reduced(self, reduction: forms.Reduction, bound: Bound) -> None:
        for at, name in enumerate(reduction.variables):
            if name in reduction.variables[:at]:
                self.findings.error(reduction.span, f"'{name}' is reduced twice", "name it once")
        for name in [*reduction.variables, *(n for places in reduction.locations for n in places)]:
            self._variable(name, reduction.span, bound)

    def _reduction(self, bound: Bound, form: forms.ReductionOf) -> None:
        self._reduced(form.reduction, bound)
        self._on(bound, form)

    def _bcast(self, bound: Bound, form: forms.Bcast) -> None:
        for name in form.variables:
            self._variable(name, form.span, bound)
        if form.source is not None:
            self._reference(form.source, bound)
        self._on(bound, form)

    # ---- OpenACC
    def _acc(self, bound: Bound, form: forms.Acc) -> None:
        for clause in form.clauses:
            takes_names = clause.name in openacc.VARIABLES and not (
                clause.name == "self" and form.construct in openacc.COMPUTE_CONSTRUCTS
            )
            for item in clause.items or [] if takes_names else []:
                self._data(item, clause, bound)
            if clause.name == "collapse" and bound.statement is not None:
                count, depth = clause.items[0], self.code.nest_depth(bound.statement)
                number = count.number if isinstance(count, forms.Expr) else None
                if number is None or number < 1:
                    self.findings.error(clause.span, "collapse needs a number", "write collapse(2), say")
                elif number > depth:
                    message = f"collapse({number}) on a nest of {depth}"
                    self.findings.error(clause.span, message, f"write collapse({depth}), or nest the loops directly")

    def _data(self, item, clause: forms.Clause, bound: Bound) -> None:
        section = isinstance(item, forms.Section)
        path = item.variable if section else str(item)
        if not re.match(r"[A-Za-z_]", path):
            self.findings.error(clause.span, f"clause '{clause.name}' names variables, not {path}", "name a variable")
            return
        declaration = self._variable(path, item.span if section else clause.span, bound)
        if declaration is None or not section or not re.fullmatch(r"\w+", path):
            return
        have, exact = self.code.dimensions(declaration)
        if len(item.subscripts) > have:
            message = f"'{path}' has {dimensions(have)}, not {len(item.subscripts)}"
            self.findings.error(item.span, message, "give a section for each dimension")
