"""The tree of a directive becomes its typed form. Here is all that the two kinds of brackets mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import lark

from . import forms
from .diagnostics import Span
from .expressions import Expressions, NotAllowed, Raw
from .forms import Expr, Sub


@dataclass
class Subscripts:
    """As written: `square` tells the brackets, `items` are raw (the end of a range is what stands there)."""

    items: list
    square: bool


@dataclass
class Clause:
    name: str
    value: object
    span: Span = field(compare=False)


@lark.v_args(meta=True)
class Meaning(Expressions):
    """Forms of directives."""

    # ---- subscripts
    def index(self, meta, items):
        return Raw("index", self.place(meta), self.expr(items[0]))

    def star(self, meta, items):
        return Raw("star", self.place(meta))

    def triplet(self, meta, items):
        first, second, step = (None if i is None else self.expr(i) for i in items)
        return Raw("range", self.place(meta), first, second, step)

    def round(self, meta, items):
        return Subscripts(items, False)

    def square(self, meta, items):
        return Subscripts(items, True)

    def subscripts(self, meta, items):
        return items[0]

    def in_c_order(self, subscripts: Subscripts, nodes: bool = False) -> list[Sub]:
        items = [self.sub(raw, subscripts.square, nodes) for raw in subscripts.items]
        return items if subscripts.square else items[::-1]

    def reference(self, meta, items):
        name, subscripts = str(items[0]), items[1]
        form = forms.Reference(self.place(meta), name)
        if subscripts is not None:
            form.subscripts = self.in_c_order(subscripts, name in self.nodes_names)
        form.square = subscripts is not None and subscripts.square
        return form

    def names(self, meta, items):
        return [str(i) for i in items]

    def member(self, meta, items):
        return "".join(str(i) for i in items)

    def variable(self, meta, items):
        parts = [f"[{i}]" if isinstance(i, (Expr, forms.Section)) else str(i) for i in items]
        return "".join(parts)

    def variables(self, meta, items):
        return list(items)

    # ---- widths
    def width(self, meta, items):
        raw = items[1]
        if raw.kind == "star":
            return forms.Width(self.place(meta), None, None, items[0] is not None)
        if raw.kind == "index":
            return forms.Width(self.place(meta), raw.first, raw.first, items[0] is not None)
        if raw.first is None or raw.second is None or raw.step is not None:
            raise NotAllowed(raw.span, "this width is incomplete", "write one number, lower:upper, or *")
        return forms.Width(self.place(meta), raw.first, raw.second, items[0] is not None)

    def widths(self, meta, items):
        return list(items), False

    def square_widths(self, meta, items):
        return list(items), True

    def _layers(self, raw: Raw) -> forms.Width:
        width = self.width(lark.tree.Meta(), [None, raw])
        width.span = raw.span
        for layers in (width.lower, width.upper):
            if layers is not None and layers.number is not None and layers.number < 0:
                raise NotAllowed(raw.span, f"a width of {layers} layers", "take 0 or more")
        return width

    # ---- declarations
    def all_nodes(self, meta, items):
        return "*"

    def nodes_of(self, meta, items):
        return items[0]

    def _nodes(self, meta, name, extents, of):
        self.nodes_names.add(str(name))
        found: list[Expr | None] = []
        for raw in extents.items:
            if raw.kind == "range":
                raise NotAllowed(raw.span, "nodes have an extent, not a range", "write a number or *")
            if raw.kind == "index" and raw.first.number is not None and raw.first.number < 1:
                raise NotAllowed(raw.span, f"an extent of {raw.first} nodes", "take 1 or more")
            found.append(None if raw.kind == "star" else raw.first)
        found = found if extents.square else found[::-1]
        if None in found[1:]:
            star = next(raw for raw in extents.items if raw.kind == "star")
            place = "first" if extents.square else "last"
            raise NotAllowed(star.span, f"only the {place} extent may be *", "give the other extents as numbers")
        return forms.Nodes(self.place(meta), str(name), found, of)

    def nodes(self, meta, items):
        return self._nodes(meta, *items)

    def ranges(self, extents: Subscripts) -> list[Sub | None]:
        found: list[Sub | None] = []
        for raw in extents.items:
            if raw.kind == "star":
                raise NotAllowed(raw.span, "a template has no extent *", "write a range, or : and template_fix")
            if raw.kind == "index":
                first = Expr.of(0 if extents.square else 1)
                upper = raw.first if extents.square else raw.first.plus(1)
                found.append(Sub(raw.span, "range", first, upper))
            elif raw.first is None and raw.second is None:
                found.append(None)
            elif raw.first is None or raw.second is None or raw.step is not None:
                raise NotAllowed(raw.span, "this range is incomplete", "write both of its ends, no step")
            else:
                found.append(self.sub(raw, extents.square))
            sub = found[-1]
            if sub is not None:
                count = sub.upper.minus(sub.lower).number
                if count is not None and count < 1:
                    raise NotAllowed(raw.span, "this range is empty", "give a last index that is not below the first")
        return found if extents.square else found[::-1]

    def _template(self, meta, name, extents):
        self.nodes_names.discard(str(name))  # of another function
        return forms.Template(self.place(meta), str(name), self.ranges(extents))

    def template(self, meta, items):
        return self._template(meta, *items)

    def not_distributed(self, meta, items):
        return forms.Distribution(self.place(meta), "none")

    def block(self, meta, items):
        return forms.Distribution(self.place(meta), "block", self._some(items))

    def cyclic(self, meta, items):
        return forms.Distribution(self.place(meta), "cyclic", self._some(items))

    def gblock(self, meta, items):
        return forms.Distribution(self.place(meta), "gblock", self._some(items))

    def _some(self, items):
        return self.expr(items[0]) if items and items[0] is not None else None

    def round_distributions(self, meta, items):
        return list(items[::-1])

    def square_distributions(self, meta, items):
        return list(items)

    def distribute(self, meta, items):
        return forms.Distribute(self.place(meta), str(items[0]), items[1], str(items[2]))

    def _align(self, meta, array, source, template, target):
        names = []
        for raw in source.items:
            text = {"star": "*", "range": ":"}.get(raw.kind) or str(raw.first)
            open_range = raw.kind != "range" or (raw.first is None and raw.second is None)
            if not open_range or not re.fullmatch(r"[A-Za-z_]\w*|\*|:", text):
                raise NotAllowed(raw.span, f"the array has a name, * or : in each bracket, not {text}", "name an index")
            names.append(text)
        return forms.Align(self.place(meta), str(array), names, str(template), self.in_c_order(target))

    def align(self, meta, items):
        return self._align(meta, *items)

    def shadow(self, meta, items):
        return forms.Shadow(self.place(meta), str(items[0]), [self._layers(raw) for raw in items[1].items])

    def coarray(self, meta, items):
        if isinstance(items[0], forms.Reference):
            return [forms.Coarray(self.place(meta), name, [None]) for name in items[1]]
        return list(items)

    def coarray_item(self, meta, items):
        extents = [raw.first for raw in items[1].items]
        return forms.Coarray(self.place(meta), str(items[0]), extents)

    def local_alias(self, meta, items):
        return forms.LocalAlias(self.place(meta), str(items[0]), str(items[1]))

    def template_fix(self, meta, items):
        ranges = None if items[2] is None else self.ranges(items[2])
        return forms.TemplateFix(self.place(meta), str(items[1]), items[0], ranges)

    # ---- the combined form: each attribute for each name
    def a_nodes(self, meta, items):
        return lambda name: self._nodes(meta, name, *items)

    def a_template(self, meta, items):
        return lambda name: self._template(meta, name, *items)

    def a_distribute(self, meta, items):
        return lambda name: self.distribute(meta, [name, *items])

    def a_align(self, meta, items):
        return lambda name: self._align(meta, name, *items)

    def a_shadow(self, meta, items):
        return lambda name: self.shadow(meta, [name, *items])

    def a_dimension(self, meta, items):
        raise NotAllowed(self.place(meta), "dimension is a word of Fortran", "give the extents in the declaration of C")

    def combined(self, meta, items):
        return [make(name) for name in items[-1] for make in items[:-1]]

    # ---- clauses
    def _clause(name):  # noqa: N805 (makes methods)
        def method(self, meta, items):
            return Clause(name, items[0] if items else True, self.place(meta))

        return method

    c_on, c_from, c_expand, c_margin = map(_clause, ("on", "source", "expand", "margin"))
    c_width, c_orthogonal, c_acc = map(_clause, ("width", "orthogonal", "acc"))
    c_in, c_out, c_gmove_acc, c_loop_reduction = map(_clause, ("in", "out", "acc", "reduction"))
    del _clause

    def c_async(self, meta, items):
        return Clause("asynchronous", self.expr(items[0]), self.place(meta))

    def c_peel(self, meta, items):
        widths = [self.width(lark.tree.Meta(), [None, raw]) for raw in items[1:]]
        for width, raw in zip(widths, items[1:]):
            width.span = raw.span
        place = self.place(meta)
        return Clause("peel_and_wait", forms.Peel(place, self.expr(items[0]), widths), place)

    def _named(self, clauses, repeated=()) -> dict:
        """By name; none may stand twice."""
        found: dict = {}
        for clause in clauses:
            written = {"asynchronous": "async", "source": "from"}.get(clause.name, clause.name)
            if clause.name in repeated:
                found.setdefault(clause.name, []).append(clause.value)
            elif clause.name in found:
                raise NotAllowed(clause.span, f"clause '{written}' stands twice", "delete one of them")
            else:
                found[clause.name] = clause.value
        return found

    # ---- work
    def task(self, meta, items):
        return forms.Task(self.place(meta), items[0], len(items) > 1)

    def tasks(self, meta, items):
        return forms.Tasks(self.place(meta), bool(items))

    def loop_names(self, meta, items):
        return [str(i) for i in items]

    def loop(self, meta, items):
        clauses = self._named(items[1:], ["reduction"])
        on = clauses.get("on")
        if on is None:
            raise NotAllowed(self.place(meta), "this loop lacks its clause 'on'", "write on TEMPLATE(index, ...)")
        if "expand" in clauses and "margin" in clauses:
            second = [c for c in items[1:] if c.name in ("expand", "margin")][1]
            raise NotAllowed(second.span, "expand and margin exclude each other", "delete one of them")
        form = forms.Loop(self.place(meta), [], on)
        used = [name for sub in on.subscripts or [] if sub.lower for name in sub.lower.names]
        given = items[0] or []
        for at, name in enumerate(given):
            if name in given[:at]:
                raise NotAllowed(self.place(meta), f"index '{name}' is named twice", "name each loop once")
        form.indices = sorted(given, key=lambda name: used.index(name) if name in used else len(used))
        for name in ("expand", "margin"):
            if name in clauses:
                widths, square = clauses[name]
                setattr(form, name, widths if square or on.square else widths[::-1])
        form.peel_and_wait = clauses.get("peel_and_wait")
        if form.peel_and_wait and not on.square:
            form.peel_and_wait.widths.reverse()
        form.reductions = clauses.get("reduction", [])
        return form

    def array(self, meta, items):
        return forms.Array(self.place(meta), items[0])

    # ---- communication
    def reflect(self, meta, items):
        action = str(items[0]).lower()
        clauses = self._named(items[2:])
        if action == "reflect_do" and ("width" in clauses or "orthogonal" in clauses):
            wrong = next(c for c in items[2:] if c.name in ("width", "orthogonal"))
            raise NotAllowed(wrong.span, f"clause '{wrong.name}' belongs to reflect_init", "move it there")
        widths = clauses.pop("width", (None, True))[0]
        return forms.Reflect(self.place(meta), action, items[1], widths, **clauses)

    def gmove(self, meta, items):
        clauses = self._named(items)
        if "in" in clauses and "out" in clauses:
            raise NotAllowed(items[-1].span, "in and out exclude each other", "delete one of them")
        direction = next((d for d in ("in", "out") if d in clauses), "collective")
        acc = clauses["acc"] or "*" if "acc" in clauses else ""
        return forms.Gmove(self.place(meta), direction, clauses.get("asynchronous"), acc)

    def barrier(self, meta, items):
        return forms.Barrier(self.place(meta), **self._named(items))

    def operator(self, meta, items):
        return str(items[0]).lower()

    def locations(self, meta, items):
        return [str(i) for i in items]

    def reduction_item(self, meta, items):
        return items

    def reduction(self, meta, items):
        operator, variables = items[0], items[1:]
        located = operator not in ("+", "*", "-", "&", "|", "^", "&&", "||", "max", "min")
        for variable, places in variables:
            if places and not located:
                raise NotAllowed(
                    self.place(meta), f"{operator} has no locations", "use firstmax, lastmax, firstmin, lastmin"
                )
            if located and not places:
                raise NotAllowed(
                    self.place(meta), f"{operator} needs locations", f"write {operator}: {variable}/index/"
                )
        return forms.Reduction(
            self.place(meta), operator, [v for v, _ in variables], [places or [] for _, places in variables]
        )

    def reduction_of(self, meta, items):
        return forms.ReductionOf(self.place(meta), items[0], **self._named(items[1:]))

    def bcast(self, meta, items):
        return forms.Bcast(self.place(meta), items[0], **self._named(items[1:]))

    def wait_async(self, meta, items):
        ids = [self.expr(i) for i in items if not isinstance(i, Clause)]
        return forms.WaitAsync(self.place(meta), ids, **self._named([i for i in items if isinstance(i, Clause)]))

    def post(self, meta, items):
        return forms.Post(self.place(meta), items[0], self.expr(items[1]))

    def wait(self, meta, items):
        return forms.Wait(self.place(meta), items[0], None if items[1] is None else self.expr(items[1]))

    def lock(self, meta, items):
        return forms.Lock(self.place(meta), str(items[0]).lower(), items[1])

    def xmp(self, meta, items):
        return items[0] if isinstance(items[0], list) else [items[0]]

    # ---- OpenACC
    def only_star(self, meta, items):
        return Expr.atom("*")

    def modifier(self, meta, items):
        return str(items[0])

    def acc_items(self, meta, items):
        return items[0], list(items[1:])

    def acc_clause(self, meta, items):
        modifier, listed = items[1] or (None, None)
        return forms.Clause(self.place(meta), str(items[0]).lower(), modifier, listed)

    def acc(self, meta, items):
        own = None
        if items[0] is not None:
            own = forms.Clause(self.place(meta), "", *items[0])
        return own, [i for i in items[1:] if i is not None]
