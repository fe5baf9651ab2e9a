"""The names that directives declare: nodes, templates and aligned arrays, each in its function or file."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import forms
from .bind import Bound


@dataclass
class NodesInfo:
    form: forms.Nodes

    @property
    def dimensions(self) -> int:
        return len(self.form.extents)

    def bounds(self, dimension: int) -> tuple:
        """The first index and the one after the last, where they are known."""
        return forms.Expr.of(0), self.form.extents[dimension]

    def told(self, dimension: int) -> str:
        return f"dimension {dimension} has {self.form.extents[dimension]} nodes"


@dataclass
class TemplateInfo:
    form: forms.Template
    distribute: forms.Distribute | None = None

    @property
    def dimensions(self) -> int:
        return len(self.form.ranges)

    def bounds(self, dimension: int) -> tuple:
        """The first index and the one after the last, where they are known."""
        known = self.form.ranges[dimension]
        return (None, None) if known is None else (known.lower, known.upper)

    def told(self, dimension: int) -> str:
        first, end = self.bounds(dimension)
        return f"dimension {dimension} has the indices {first} to {end.minus(1)}"

    def same_mapping(self, other: TemplateInfo) -> bool:
        """Whether equal indices of both are on one node."""
        a, b = self.distribute, other.distribute
        if self is other:
            return True
        if a is None or b is None or None in self.form.ranges:
            return False
        return (a.distributions, a.nodes, self.form.ranges) == (b.distributions, b.nodes, other.form.ranges)


@dataclass
class ArrayInfo:
    """`along` holds, for each dimension, the template's dimension and the offset on it; None is not aligned."""

    form: forms.Align
    template: TemplateInfo
    along: list = field(default_factory=list)
    shadow: forms.Shadow | None = None

    @property
    def dimensions(self) -> int:
        return len(self.along)

    def distribution(self, dimension: int) -> str:
        """Of a dimension: none, block, cyclic or gblock."""
        along = self.along[dimension]
        if along is None or self.template.distribute is None:
            return "none"
        kinds = self.template.distribute.distributions
        return kinds[along[0]].kind if along[0] < len(kinds) else "none"


class Symbols:
    def __init__(self) -> None:
        self.known: dict = {}
        self.scopes: dict = {}

    def scope(self, bound: Bound) -> str:
        """Of a function, or of the file (members of structs are the file's)."""
        function = bound.place.function
        if function is None:
            return ""
        known = self.scopes.get(id(function))
        if known is None:  # the function stays, so that its number is nobody else's
            known = self.scopes[id(function)] = (function.get_usr(), function)
        return known[0]

    def add(self, kind: str, name: str, bound: Bound, value) -> bool:
        key = (self.scope(bound), kind, name)
        if key in self.known:
            return False
        self.known[key] = value
        return True

    def find(self, kind: str, name: str, bound: Bound):
        inner = self.known.get((self.scope(bound), kind, name))
        return inner if inner is not None else self.known.get(("", kind, name))

    def nodes(self, name: str, bound: Bound) -> NodesInfo | None:
        return self.find("nodes", name, bound)

    def template(self, name: str, bound: Bound) -> TemplateInfo | None:
        return self.find("template", name, bound)

    def array(self, name: str, bound: Bound) -> ArrayInfo | None:
        """`name` may be a path to a member."""
        found = self.find("array", name, bound)
        return found if found is not None else self.find("array", name.replace("->", ".").split(".")[-1], bound)
