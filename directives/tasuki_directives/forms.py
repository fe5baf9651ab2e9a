"""The typed form of directives: C order, from 0, half-open, whatever brackets the user writes.

Every form compares by what it means; where it stands (`span`) is left out of comparisons and of the JSON.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from .diagnostics import Span


@dataclass
class Form:
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Expr:
    """A sum of integer multiples of atoms and an integer. An atom is a name, or C text that is not affine."""

    terms: tuple = ()
    constant: int = 0

    @staticmethod
    def of(value: int) -> Expr:
        return Expr((), value)

    @staticmethod
    def atom(text: str) -> Expr:
        return Expr(((text, 1),), 0)

    def plus(self, other: Expr | int, factor: int = 1) -> Expr:
        other = Expr.of(other) if isinstance(other, int) else other
        terms = dict(self.terms)
        for name, coefficient in other.terms:
            terms[name] = terms.get(name, 0) + factor * coefficient
        kept = tuple(sorted((n, c) for n, c in terms.items() if c))
        return Expr(kept, self.constant + factor * other.constant)

    def minus(self, other: Expr | int) -> Expr:
        return self.plus(other, -1)

    def times(self, factor: int) -> Expr:
        return Expr(tuple((n, c * factor) for n, c in self.terms if factor), self.constant * factor)

    @property
    def number(self) -> int | None:
        return None if self.terms else self.constant

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.terms]

    def __str__(self) -> str:
        parts = []
        for name, coefficient in self.terms:
            text = name if abs(coefficient) == 1 else f"{abs(coefficient)}*{name}"
            parts.append(("-" if coefficient < 0 else "+", text))
        if self.constant or not parts:
            parts.append(("-" if self.constant < 0 else "+", str(abs(self.constant))))
        first = ("-" if parts[0][0] == "-" else "") + parts[0][1]
        return first + "".join(f" {sign} {text}" for sign, text in parts[1:])


@dataclass
class Sub(Form):
    """A subscript: `kind` is index (at `lower`), range ([lower, upper) by step; None is open) or star."""

    kind: str
    lower: Expr | None = None
    upper: Expr | None = None
    step: Expr | None = None


@dataclass
class Reference(Form):
    """A template, a set of nodes, or a part of one. No subscripts: all of it."""

    name: str
    subscripts: list[Sub] | None = None


@dataclass
class Width(Form):
    """Layers below and above; None for both is the full shadow."""

    lower: Expr | None
    upper: Expr | None
    periodic: bool = False


@dataclass
class Distribution(Form):
    """`kind` is none, block, cyclic or gblock."""

    kind: str
    argument: Expr | None = None


@dataclass
class Reduction(Form):
    operator: str
    variables: list[str]
    locations: list[list[str]]


@dataclass
class Directive(Form):
    pass


@dataclass
class Nodes(Directive):
    """`extents` holds None for `*`; `of` is a reference, "*" (the nodes that execute), or None."""

    name: str
    extents: list[Expr | None]
    of: Reference | str | None = None


@dataclass
class Template(Directive):
    """`ranges` holds None for `:`, which template_fix fills."""

    name: str
    ranges: list[Sub | None]


@dataclass
class Distribute(Directive):
    template: str
    distributions: list[Distribution]
    nodes: str


@dataclass
class Align(Directive):
    """`source` holds a name, "*" or ":" for each dimension of the array."""

    array: str
    source: list[str]
    template: str
    target: list[Sub]


@dataclass
class Shadow(Directive):
    array: str
    widths: list[Width]


@dataclass
class Coarray(Directive):
    name: str
    coextents: list[Expr | None]


@dataclass
class LocalAlias(Directive):
    name: str
    array: str


@dataclass
class TemplateFix(Directive):
    template: str
    distributions: list[Distribution] | None
    ranges: list[Sub | None] | None


@dataclass
class Task(Directive):
    on: Reference
    nocomm: bool = False


@dataclass
class Tasks(Directive):
    nocomm: bool = False


@dataclass
class Peel(Form):
    id: Expr
    widths: list[Width]


@dataclass
class Loop(Directive):
    """`indices` come in the order of `on`; empty: those that `on` names."""

    indices: list[str]
    on: Reference
    expand: list[Width] | None = None
    margin: list[Width] | None = None
    peel_and_wait: Peel | None = None
    reductions: list[Reduction] = field(default_factory=list)


@dataclass
class Array(Directive):
    on: Reference


@dataclass
class Reflect(Directive):
    """`action` is reflect, reflect_init, reflect_do or reduce_shadow."""

    action: str
    arrays: list[str]
    widths: list[Width] | None = None
    orthogonal: bool = False
    asynchronous: Expr | None = None
    acc: bool = False


@dataclass
class Gmove(Directive):
    """`direction` is collective, in or out. `acc` is "" (hosts), "*" (all on the device) or the names that are."""

    direction: str = "collective"
    asynchronous: Expr | None = None
    acc: str | list[str] = ""


@dataclass
class Barrier(Directive):
    on: Reference | None = None
    acc: bool = False


@dataclass
class ReductionOf(Directive):
    reduction: Reduction
    on: Reference | None = None
    asynchronous: Expr | None = None
    acc: bool = False


@dataclass
class Bcast(Directive):
    variables: list[str]
    source: Reference | None = None
    on: Reference | None = None
    asynchronous: Expr | None = None
    acc: bool = False


@dataclass
class WaitAsync(Directive):
    ids: list[Expr]
    on: Reference | None = None


@dataclass
class Post(Directive):
    node: Reference
    tag: Expr


@dataclass
class Wait(Directive):
    node: Reference | None
    tag: Expr | None


@dataclass
class Lock(Directive):
    """`action` is lock or unlock."""

    action: str
    variable: str


# What communicates: it stands outside of compute regions, and errors of its waits name its place.
COMMUNICATION = (Reflect, Gmove, Barrier, ReductionOf, Bcast, WaitAsync, Post, Wait, Lock)


@dataclass
class Clause(Form):
    """A clause of OpenACC. `modifier` is an operator or a word before a colon; `items` are variables with sections
    (text, [lower, upper) with global indices) or expressions."""

    name: str
    modifier: str | None = None
    items: list[Any] | None = None


@dataclass
class Section(Form):
    """A variable, or a part of it: a subscript for each bracket."""

    variable: str
    subscripts: list[Sub]


@dataclass
class Acc(Directive):
    construct: str
    clauses: list[Clause]


def plain(value: Any) -> Any:
    """The form as JSON has it."""
    if isinstance(value, Expr):
        return value.constant if value.number is not None else str(value)
    if isinstance(value, Form):
        names = [f.name for f in dataclasses.fields(value) if f.name != "span"]
        items = {name: plain(getattr(value, name)) for name in names}
        return {"form": type(value).__name__, **items} if isinstance(value, Directive) else items
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
