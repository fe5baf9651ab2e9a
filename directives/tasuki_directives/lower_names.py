"""Names and pieces of text of the C that is generated."""

from __future__ import annotations

import re

from clang.cindex import TypeKind

from . import forms
from .c_code import ARRAYS
from .forms import Expr

TYPES = {
    TypeKind.CHAR_S: "XMP_I8",
    TypeKind.SCHAR: "XMP_I8",
    TypeKind.CHAR_U: "XMP_U8",
    TypeKind.UCHAR: "XMP_U8",
    TypeKind.BOOL: "XMP_U8",
    TypeKind.SHORT: "XMP_I16",
    TypeKind.USHORT: "XMP_U16",
    TypeKind.INT: "XMP_I32",
    TypeKind.UINT: "XMP_U32",
    TypeKind.LONG: "XMP_I64",
    TypeKind.ULONG: "XMP_U64",
    TypeKind.LONGLONG: "XMP_I64",
    TypeKind.ULONGLONG: "XMP_U64",
    TypeKind.ENUM: "XMP_I32",
    TypeKind.FLOAT: "XMP_F32",
    TypeKind.DOUBLE: "XMP_F64",
}
OPERATORS = {
    "+": "XMP_SUM",
    "*": "XMP_PROD",
    "-": "XMP_MINUS",
    "&": "XMP_BAND",
    "|": "XMP_BOR",
    "^": "XMP_BXOR",
    "&&": "XMP_LAND",
    "||": "XMP_LOR",
}
FORMATS = {"none": "XMP_NOT_DISTRIBUTED", "block": "XMP_BLOCK", "cyclic": "XMP_CYCLIC", "gblock": "XMP_GBLOCK"}


class NotTranslated(Exception):
    """A construct that is understood, but that nothing is generated for."""

    def __init__(self, span, message: str, remedy: str):
        super().__init__(message)
        self.span, self.message, self.remedy = span, message, remedy


def c_string(text: str) -> str:
    """A string literal of C."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def operator(name: str) -> str:
    return OPERATORS.get(name) or f"XMP_{name.upper()}"


def nodes_name(name: str) -> str:
    return f"tsk_nodes_{name}"


def template_name(name: str) -> str:
    return f"tsk_template_{name}"


def array_name(name: str) -> str:
    return f"tsk_array_{name}"


def wrapped(kind: str, items: list[str]) -> str:
    return f"({kind}[]){{{', '.join(items)}}}"


def range_of(sub: forms.Sub | None) -> str:
    """A subscript as an xmp_range; open ends and `*` are filled in at run time."""
    if sub is None:
        return "{XMP_OPEN_FIRST, XMP_OPEN_END, 1}"
    if sub.kind == "star":
        return "{XMP_OWN, 0, 1}"
    if sub.kind == "index":
        return f"{{{sub.lower}, {sub.lower.plus(1)}, 1}}"
    first = "XMP_OPEN_FIRST" if sub.lower is None else str(sub.lower)
    end = "XMP_OPEN_END" if sub.upper is None else str(sub.upper)
    return f"{{{first}, {end}, {sub.step or Expr.of(1)}}}"


def widths_of(widths: list) -> str:
    listed = ["{-1, -1}" if w is None or w.lower is None else f"{{{w.lower}, {w.upper}}}" for w in widths]
    return wrapped("xmp_width", listed)


def element_of(kind):
    """The type of an array's elements."""
    while True:
        canonical = kind.get_canonical()
        if canonical.kind in ARRAYS:
            kind = kind.element_type if kind.kind in ARRAYS else canonical.element_type
        else:
            return kind


def type_code(kind) -> str:
    """XMP_F64 and so on; XMP_BYTES for what is no number."""
    canonical = kind.get_canonical()
    if canonical.kind is TypeKind.COMPLEX:
        return {"_Complex float": "XMP_C64", "_Complex double": "XMP_C128"}.get(canonical.spelling, "XMP_BYTES")
    return TYPES.get(canonical.kind, "XMP_BYTES")


def pointer_text(element: str, name: str, dims: int, extents: str) -> str:
    """The declaration of a pointer to rows of `dims - 1` dimensions."""
    if dims == 1:
        return f"{element} *const {name}"
    rows = "".join(f"[{extents}[{d}]]" for d in range(1, dims))
    return f"{element} (*const {name}){rows}"


def words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", text)
