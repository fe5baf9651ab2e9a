"""Says in a sentence what is wrong with a call whose arguments fit no form of a function.

Keywords that a function does not have are named with the nearest that it has, values of a wrong type with what they
must be. The core asks for the sentence when nanobind refuses a call; its own message lists signatures.
"""

from __future__ import annotations

import ast
import numbers
import operator
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np


def unknown_keyword(function: str, name: str, names: Iterable[str]) -> str:
    """For an argument that the function does not have."""
    names = list(names)
    near = get_close_matches(name, names, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ";"
    return f"{function}() has no argument '{name}'{hint} it has {', '.join(names)}"


@dataclass(frozen=True)
class Parameter:
    name: str
    type: ast.expr | None
    needed: bool
    by_position: bool


@dataclass(frozen=True)
class Complaint:
    progress: int  # how much of the call made sense: of several forms the one with most is meant
    text: str
    of_value: bool = False  # the types are right


def parameters(signature: str) -> list[Parameter]:
    """Of `def f(self, a: int, *, b: str = \\0) -> None`, without self. Raises SyntaxError."""
    text = "".join(c if c != "\\" else "D" for c in signature)  # a default is `\0`, `\1`, ...
    function = ast.parse(text + ": ...").body[0]
    if not isinstance(function, ast.FunctionDef) or function.args.vararg or function.args.kwarg:
        raise SyntaxError("no function with named arguments")
    plain = function.args.posonlyargs + function.args.args
    first_default = len(plain) - len(function.args.defaults)
    found = [Parameter(a.arg, a.annotation, i < first_default, True) for i, a in enumerate(plain)]
    found += [
        Parameter(a.arg, a.annotation, default is None, False)
        for a, default in zip(function.args.kwonlyargs, function.args.kw_defaults)
    ]
    return found[1:] if found and found[0].name == "self" else found


def described_type(description: Any) -> np.dtype[Any]:
    """NumPy's type of a list of fields as `dtype.descr` has it, where entries without a name are padding."""
    return np.dtype(np.lib.format.descr_to_dtype(description))


def is_odd(value: object) -> bool:
    """Whether it is a text that cannot be written in UTF-8: it has halves of surrogate pairs."""
    return isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)


def is_whole(value: object) -> bool:
    if isinstance(value, bool):
        return False
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def is_truth(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


SIMPLE = {
    "int": (is_whole, "a whole number"),
    "SupportsIndex": (is_whole, "a whole number"),
    "float": (lambda v: isinstance(v, numbers.Real) and not isinstance(v, bool), "a number"),
    "bool": (is_truth, "True or False"),
    "Truth": (is_truth, "True or False"),
    "str": (lambda v: isinstance(v, str), "a text"),
    "bytes": (lambda v: isinstance(v, bytes), "bytes"),
    "None": (lambda v: v is None, "None"),
    "PathLike": (lambda v: isinstance(v, os.PathLike), "a path"),
}
LISTS = ("Sequence", "list", "List", "tuple", "Iterable")


def parts(kind: ast.expr) -> list[ast.expr]:
    """The alternatives of `A | B`."""
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        return parts(kind.left) + parts(kind.right)
    return [kind]


def name_of(kind: ast.expr) -> str:
    """The last word of a name, such as Field of `tasuki._core.Field`; None is one too."""
    if isinstance(kind, ast.Constant):
        return str(kind.value)
    return kind.attr if isinstance(kind, ast.Attribute) else kind.id if isinstance(kind, ast.Name) else ""


def fits(value: object, kind: ast.expr | None) -> bool:
    """False only if the value certainly is none of that type."""
    if kind is None:
        return True
    if isinstance(kind, ast.BinOp):
        return any(fits(value, part) for part in parts(kind))
    if isinstance(kind, ast.Subscript):
        if name_of(kind.value) not in LISTS:
            return True
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            return False
        entry = kind.slice
        if not isinstance(value, Sequence) or isinstance(entry, ast.Tuple):
            return True
        return all(fits(one, entry) for one in value)
    name = name_of(kind)
    if name in SIMPLE:
        return SIMPLE[name][0](value)
    own = own_class(name)
    return own is None or isinstance(value, own)


def own_class(name: str) -> type | None:
    import tasuki

    found = getattr(tasuki, name, None)
    return found if isinstance(found, type) else None


def words(kind: ast.expr | None) -> str:
    """What a value of the type is, such as `a whole number or None`."""
    if kind is None:
        return "something else"
    if isinstance(kind, ast.BinOp):
        return " or ".join(dict.fromkeys(map(words, parts(kind))))
    name = name_of(kind)
    if (
        isinstance(kind, ast.Subscript)
        and name_of(kind.value) in ("Sequence", "list", "List")
        and fits_words(kind.slice)
    ):
        return f"a list, each entry {words(kind.slice)}"
    if name in SIMPLE:
        return SIMPLE[name][1]
    return f"a tasuki.{name}" if own_class(name) else ast.unparse(kind)


def fits_words(kind: ast.expr) -> bool:
    return isinstance(kind, (ast.Name, ast.Attribute))


def complaint(
    call: str, form: list[Parameter], given: Sequence[object], named: dict[str, object], shown: Any
) -> Complaint | None:
    """What is wrong with a call, seen as one of this form; None if that cannot be told."""
    names = [p.name for p in form]
    for name in named:
        if name not in names:
            return Complaint(0, unknown_keyword(call, name, names))
    places = [p for p in form if p.by_position]
    if len(given) > len(places):
        rest = [p.name for p in form if not p.by_position]
        more = f"; give by name: {', '.join(rest)}" if rest else ""
        return Complaint(1, f"{call}() takes at most {len(places)} arguments without a name, not {len(given)}{more}")
    values = {p.name: value for p, value in zip(places, given)}
    for name in named:
        if name in values:
            return Complaint(2, f"{call}(): argument '{name}' is given twice, by its place and by its name")
    values |= named
    for p in form:
        if p.needed and p.name not in values:
            # One that was left out, so that what follows stands in its place: that is what is said.
            before = next((q for q in form if q.name in values and not fits(values[q.name], q.type)), None)
            if before is not None and form.index(before) < form.index(p) and fits(values[before.name], p.type):
                what = (
                    f"is {shown(values[before.name])}; it must be {words(before.type)}, and '{p.name}' comes after it"
                )
                return Complaint(3, f"{call}(): argument '{before.name}' {what}")
            return Complaint(3, f"{call}(): argument '{p.name}' is missing; it must be {words(p.type)}")
    for i, p in enumerate(form):
        if p.name in values and not fits(values[p.name], p.type):
            what = f"is {shown(values[p.name])}; it must be {words(p.type)}"
            return Complaint(4 + i, f"{call}(): argument '{p.name}' {what}")
    for i, p in enumerate(form):
        if p.name in values and is_odd(values[p.name]):
            what = f"is {shown(values[p.name])}, which cannot be written in UTF-8: it has halves of surrogate pairs"
            return Complaint(4 + i, f"{call}(): argument '{p.name}' {what}", of_value=True)
    return None


def sentence(
    function: Any, arguments: Sequence[object], keywords: dict[str, object], shown: Any
) -> tuple[str, bool] | None:
    """For a function of the core that refused these arguments, self included; `shown` puts values into words. Also
    whether a value is wrong, not a type. None if nothing better can be said than what nanobind says."""
    call = function.__qualname__.removesuffix(".__init__")
    found = []
    for signature, *_ in function.__nb_signature__:
        try:
            form = parameters(signature)
        except SyntaxError:
            continue
        own = signature.partition("(")[2].lstrip().startswith("self")
        found.append(complaint(call, form, arguments[own:], keywords, shown))
    told = [one for one in found if one is not None]
    if not told:
        return None
    best = max(told, key=lambda one: one.progress)
    return best.text, best.of_value
