#!/usr/bin/env python3
"""Writes the Fortran module tasuki_c: an interface c_NAME for every function tasuki_NAME of the C headers that Fortran
can call. `fortran/interfaces.py OUTPUT.f90`"""

from __future__ import annotations

import re
import sys

import fortran_text
from c_header import Function, Parameter, for_c, read

HEAD = """\
! Written by fortran/interfaces.py: the functions of tasuki/tasuki.h, tasuki_NAME in C and c_NAME here. Users need not
! see it.
module tasuki_c
  use, intrinsic :: iso_c_binding
  use tasuki_structs
  implicit none
  public

  interface
    integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
      import
      type(c_ptr), value :: text
    end function
"""

NUMBERS = {
    "int": "integer(c_int)",
    "int64_t": "integer(c_int64_t)",
    "size_t": "integer(c_size_t)",
    "double": "real(c_double)",
}
LISTED = ("exchange_field", "exchange_entry", "redistribute_array")  # of which functions take lists
STRUCTS = (
    *("box", "width", "side", "neighbours", "distributed"),
    *LISTED,
    *(f"{noun}_info" for noun in ("grid", "field", "layout")),
)
OPTIONS = tuple(f"{noun}_options" for noun in ("grid", "field", *for_c.structs()))
TYPES = {f"tasuki_{name}": f"type(c_{name})" for name in STRUCTS + OPTIONS}

# Pointers that C may be given null: Fortran passes an address.
NULLABLE = {"argc", "argv", "widths", "axes", "send_counts", "receive_counts", "in_layouts", "out_layouts"}
# Lists that C writes.
WRITTEN = {"coords", "boxes", "blocks", "layouts"}


def declaration(function: Function, parameter: Parameter, handles: set[str]) -> str:
    """The parameter's declaration; empty for a type that Fortran has no counterpart of."""
    name, kind = parameter.name, parameter.type
    target = kind.removeprefix("const ").removesuffix("*").removesuffix(" const")
    nullable = name in NULLABLE or (name == "counts" and function.name.endswith("_create"))
    if target in ("void", "char") or nullable or kind in handles:
        return f"type(c_ptr), value :: {name}"
    if kind in NUMBERS:
        return f"{NUMBERS[kind]}, value :: {name}"
    pointee = {**NUMBERS, **TYPES}.get(target, "type(c_ptr)" if target in handles or target[-1] == "*" else "")
    if not kind.endswith("*") and not parameter.array or not pointee:
        return ""
    if kind.startswith("const ") or kind.endswith("const*"):
        one = target in TYPES and target.removeprefix("tasuki_") not in LISTED
        shape = "" if one else "(*)"
        return f"{pointee}, intent(in) :: {name}{shape}"
    return f"{pointee} :: {name}" + ("(*)" if name in WRITTEN else "")


def interface(function: Function, handles: set[str]) -> str:
    """Empty for a function that Fortran cannot call: one that takes a communicator or a function."""
    declared = [declaration(function, parameter, handles) for parameter in function.parameters]
    if not all(declared):
        return ""
    kinds = {"tasuki_status": "integer(c_int) function", "const char*": "type(c_ptr) function", "void": "subroutine"}
    kind = kinds[function.result]
    names = ", ".join(parameter.name for parameter in function.parameters)
    lines = [f"{kind} c_{function.name}({names}) bind(c, name='tasuki_{function.name}')"]
    lines += ["  import", *(f"  {line}" for line in declared), f"end {re.split(' ', kind)[-1]}"]
    return "".join(fortran_text.wrapped(f"    {line}") for line in lines)


def module() -> str:
    functions, handles = read()
    interfaces = "".join(interface(function, handles) for function in functions.values())
    return f"{HEAD}{interfaces}  end interface\nend module\n"


if __name__ == "__main__":
    fortran_text.main(sys.argv, module)
