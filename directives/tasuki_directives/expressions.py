"""Expressions and subscripts of directives: C's arithmetic on integers, brought into a normal form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable

import lark

from . import forms
from .diagnostics import Span
from .forms import Expr, Sub


class NotAllowed(Exception):
    """What is read but means nothing."""

    def __init__(self, span: Span, message: str, remedy: str):
        super().__init__(message)
        self.span, self.message, self.remedy = span, message, remedy


@dataclass
class Raw:
    kind: str
    span: Span
    first: Expr | None = None
    second: Expr | None = None
    step: Expr | None = None


def number_of(text: str) -> int | None:
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*", text)
    if not match:
        return None
    digits = match[1]
    if len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX":
        return int(digits, 8) if re.fullmatch("[0-7]+", digits) else None
    return int(digits, 0)


def quotient(a: int, b: int) -> int:
    """As C divides: towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@lark.v_args(meta=True)
class Expressions(lark.Transformer):
    """`nodes` are the names that stand for nodes; `span` gives the place of a part of the joined text."""

    def __init__(self, nodes: set[str], span: Callable[[int, int], Span], whole: Span):
        super().__init__()
        self.nodes_names, self.span_of, self.whole = nodes, span, whole

    def place(self, meta) -> Span:
        return self.whole if meta.empty else self.span_of(meta.start_pos, meta.end_pos)

    def word(self, token) -> Span:
        return self.span_of(token.start_pos, token.start_pos + len(token))

    def expr(self, value) -> Expr:
        if isinstance(value, forms.Section):
            for sub in value.subscripts:
                if sub.kind != "index":
                    raise NotAllowed(sub.span, "a section may not stand in an expression", "name one element")
            return Expr.atom(value.variable + "".join(f"[{sub.lower}]" for sub in value.subscripts))
        return value

    def text(self, value) -> str:
        value = self.expr(value)
        text = str(value)
        return text if re.fullmatch(r"[\w.\[\]]+|\w+\(.*\)", text) else f"({text})"

    def _binary(self, left, operator: str, right) -> Expr:
        return Expr.atom(f"{self.text(left)} {operator} {self.text(right)}")

    def name(self, meta, items):
        return Expr.atom(str(items[0]))

    def number(self, meta, items):
        value = number_of(str(items[0]))
        return Expr.atom(str(items[0])) if value is None else Expr.of(value)

    def parenthesis(self, meta, items):
        return items[0]

    def add(self, meta, items):
        return self.expr(items[0]).plus(self.expr(items[1]))

    def subtract(self, meta, items):
        return self.expr(items[0]).minus(self.expr(items[1]))

    def negate(self, meta, items):
        return self.expr(items[0]).times(-1)

    def keep(self, meta, items):
        return self.expr(items[0])

    def multiply(self, meta, items):
        left, right = map(self.expr, items)
        if right.number is not None:
            return left.times(right.number)
        if left.number is not None:
            return right.times(left.number)
        return Expr.atom("*".join(sorted((self.text(left), self.text(right)))))

    def divide(self, meta, items):
        left, right = map(self.expr, items)
        if right.number == 0:
            raise NotAllowed(self.place(meta), "division by zero", "correct the expression")
        if left.number is not None and right.number is not None:
            return Expr.of(quotient(left.number, right.number))
        return self._binary(left, "/", right)

    def remainder(self, meta, items):
        left, right = map(self.expr, items)
        if right.number == 0:
            raise NotAllowed(self.place(meta), "division by zero", "correct the expression")
        if left.number is not None and right.number is not None:
            return Expr.of(left.number - quotient(left.number, right.number) * right.number)
        return self._binary(left, "%", right)

    def binary(self, meta, items):
        return self._binary(items[0], str(items[1]), items[2])

    def binary_oror(self, meta, items):
        return self._binary(items[0], "||", items[1])

    def binary_andand(self, meta, items):
        return self._binary(items[0], "&&", items[1])

    def ternary(self, meta, items):
        return Expr.atom(f"{self.text(items[0])} ? {self.text(items[1])} : {self.text(items[2])}")

    def logical_not(self, meta, items):
        return Expr.atom("!" + self.text(items[0]))

    def bit_not(self, meta, items):
        return Expr.atom("~" + self.text(items[0]))

    def dereference(self, meta, items):
        return Expr.atom("*" + self.text(items[0]))

    def address(self, meta, items):
        return Expr.atom("&" + self.text(items[0]))

    def size_of(self, meta, items):
        return Expr.atom(f"sizeof({self.expr(items[0])})")

    def call(self, meta, items):
        return Expr.atom(f"{self.text(items[0])}({', '.join(str(self.expr(i)) for i in items[1:] if i is not None)})")

    def dot(self, meta, items):
        return Expr.atom(f"{self.text(items[0])}.{items[1]}")

    def arrow(self, meta, items):
        return Expr.atom(f"{self.text(items[0])}->{items[1]}")

    def element(self, meta, items):
        sub = self.sub(items[1], square=True)
        if isinstance(items[0], forms.Section):
            return forms.Section(self.place(meta), items[0].variable, [*items[0].subscripts, sub])
        return forms.Section(self.place(meta), self.text(items[0]), [sub])

    def sub(self, raw: Raw, square: bool, nodes: bool = False) -> Sub:
        """From 0 and half-open."""
        if raw.kind == "star":
            return Sub(raw.span, "star")
        shift = 1 if nodes and not square else 0
        lower = raw.first.minus(shift) if raw.first else None
        if raw.kind == "index":
            return Sub(raw.span, "index", lower)
        if raw.step is not None and raw.step.number is not None and raw.step.number < 1:
            raise NotAllowed(raw.span, f"a step of {raw.step} leads nowhere", "take a step of at least 1")
        upper = raw.second
        if upper is not None and square:
            upper = self._upper(raw, lower or Expr.of(0))
        elif upper is not None:
            upper = upper.plus(1 - shift)
        step = None if raw.step == Expr.of(1) else raw.step
        return Sub(raw.span, "range", lower, upper, step)

    @staticmethod
    def _upper(raw: Raw, lower: Expr) -> Expr:
        step = raw.step or Expr.of(1)
        if step.number is not None:
            return lower.plus(raw.second.times(step.number))
        if raw.second.number is not None:
            return lower.plus(step.times(raw.second.number))
        return lower.plus(Expr.atom("*".join(sorted((f"({raw.second})", f"({step})")))))
