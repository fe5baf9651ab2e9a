"""The kinds of argument that the schema knows: for each, all that the generators must know of it, language by language.

A new kind is one entry here, and the functions of C++ that it names: what reads it in C (src/api/reading.hpp) and in
Python (python/bindings/).

Texts have names in braces. In all of them `{name}` is the argument, by its name in that language. C: `{const}`, for
memory that is only read; `{operation}`; `{blocks}`, how many entries a list of blocks has; `{used}`, whether this
rank's layout is looked at; `{combines}`, whether the operation reduces; `{widths}`, the widths beside fields. Fortran:
`{side}`, an array over ranks beside it; `{sides}`, all of these.
"""

from __future__ import annotations

from dataclasses import dataclass

OPERATOR = "str | Operator | Callable[[Any, Any], Any]"
COUNTS = "Sequence[SupportsIndex] | None"
HANDLE = "nb::handle"


@dataclass(frozen=True)
class Counted:
    """A list in C: the argument that counts its entries, that one's type, and the type of an entry."""

    name: str
    type: str
    entry: str


@dataclass(frozen=True)
class Fortran:
    """An argument of Fortran, and what becomes of it on its way to C."""

    declared: str
    passed: str = "{name}"  # to C
    locals: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    check: tuple[str, str] | None = None  # a function that must say yes, and its arguments


@dataclass(frozen=True)
class Python:
    """A parameter: in C++, its type in the signature, and the default of the signature and of nanobind."""

    cpp: str
    type: str
    signed: str | None = None
    bound: str | None = None
    by_position: bool = False  # and not by name only

    @property
    def parameter(self) -> tuple:
        return (self.cpp, self.type, self.signed, self.bound)


@dataclass(frozen=True)
class Kind:
    about: str
    c: str = ""  # how C declares it; empty: not as an argument
    counted: Counted | None = None  # of lists
    kept: str = ""  # what C's function keeps of it, with a value that it has until it is read; empty: the argument
    read: str = ""  # the statement that reads it, and throws what is wrong with it
    moves: str = ""  # when it says that there are bytes in the only buffer, which must be given then
    python: Python | None = None  # none: other arguments tell it
    fortran: Fortran | str | None = (
        None  # or the method of for_fortran.Procedure that adds it; none: Fortran has it not
    )


def structs(about: str, counted: Counted, kept: str, read: str, python: Python | None, **fortran) -> Kind:
    """A list of structs. Fortran's elements are targets, for compilers to see that what they point to may change."""
    struct, kind, check = fortran["struct"], fortran["kind"], fortran.get("check")
    return Kind(
        about,
        f"const {counted.entry}* {{name}}",
        counted,
        kept,
        read,
        python=python,
        fortran=Fortran(
            f"type(tasuki_{struct}), intent(in), target :: {{name}}(:)",
            "its_{name}%structs",
            (f"type(kept_{kind}), target :: its_{{name}}",),
            (f"call set_{kind}(its_{{name}}, {{name}})",),
            check,
        ),
    )


# Keywords of Python come in this order.
KINDS = {
    "buffer": Kind(
        "memory of this rank",
        "{const}void* {name}",
        python=Python(HANDLE, "Any", by_position=True),
        fortran=Fortran("type(c_ptr), intent(in) :: {name}"),
    ),
    "count": Kind(
        "elements, or bytes",
        "int64_t {name}",
        moves="{name} > 0",
        fortran=Fortran("integer(int64), intent(in) :: {name}"),
    ),
    "layout": Kind(
        "which bytes of a buffer",
        "tasuki_layout {name}",
        kept="Layout read_{name};",
        read='read_{name} = layout_from({name}, "{name}", {used});',
        moves="read_{name}.size() > 0",
        fortran=Fortran("type(tasuki_layout), intent(in) :: {name}", "{name}%handle"),
    ),
    "layouts": Kind(
        "a list of layouts, an entry a rank or neighbour",
        "const tasuki_layout* {name}",
        kept="std::vector<Layout> read_{name};",
        read='read_{name} = layouts_from({name}, {blocks}, "{name}", {used});',
        fortran="add_layouts",
    ),
    "dtype": Kind(
        "the type of the elements",
        "int {name}",
        kept="DType read_{name} = DType::u8;",
        read="read_{name} = collective_type_from({name}, {combines});",
        fortran=Fortran("integer, intent(in) :: {name}", "int({name}, c_int)"),
    ),
    "neighbours": Kind(
        "the ranks to exchange blocks with",
        "const tasuki_neighbours* {name}",
        kept="Neighbours read_{name}{{{{}}, {{}}}};",
        read='read_{name} = neighbours_from(*given({name}, "{name}"));',
        python=Python(HANDLE, "Grid | tuple[Sequence[SupportsIndex], Sequence[SupportsIndex]]", by_position=True),
        fortran=Fortran(
            "type(tasuki_neighbour_ranks), intent(in) :: {name}",
            "whom",
            ("type(c_neighbours) :: whom", "type(kept_neighbours), target :: kept_ranks"),
            ("call set_neighbours(whom, kept_ranks, {name})",),
        ),
    ),
    "side": Kind(
        "a rank, an address and a layout",
        "const tasuki_side* {name}",
        kept="TransferSide read_{name};",
        read='read_{name} = side_from(*{name}, ranks.rank(), "{name}");',
        python=Python(HANDLE, "tuple[Any, ...]", by_position=True),
        fortran="add_side",
    ),
    "fields": Kind(
        "fields of one context",
        "const tasuki_field* {name}",
        Counted("count", "int", "tasuki_field"),
        "std::vector<HaloField> read_{name};",
        "read_{name} = fields_from(count, {name}, {widths});",
        python=Python(HANDLE, "Field | tuple[Field, Width] | Sequence[Field | tuple[Field, Width]]", by_position=True),
    ),
    "cells": structs(
        "fields of cells that have only numbers, in memory of this rank",
        Counted("field_count", "int", "tasuki_exchange_field"),
        "std::vector<ExchangeField> read_{name};",
        "read_{name} = {operation}_cells_from(field_count, {name});",
        Python(HANDLE, "Any", by_position=True),
        struct="cells",
        kind="cells",
    ),
    "entries": structs(
        "what this rank exchanges with each other one",
        Counted("entry_count", "int64_t", "tasuki_exchange_entry"),
        "std::vector<ExchangeEntry> read_{name};",
        "read_{name} = {operation}_entries_from(entry_count, {name}, field_count);",
        Python(HANDLE, "Sequence[tuple[SupportsIndex, Any, Any]]", by_position=True),
        struct="entry",
        kind="entries",
    ),
    "distributed": Kind(
        "an array over ranks, or a section of one",
        "const tasuki_distributed* {name}",
        kept="ArraySide read_{name};",
        read='read_{name} = array_side_from(*given({name}, "{name}"), "{name}");',
        python=Python(HANDLE, "tuple[Any, ...]", by_position=True),
        fortran=Fortran(
            "type(tasuki_distributed), intent(in) :: {name}",
            "its_{name}%struct",
            ("type(kept_distributed), target :: its_{name}",),
            ("call set_distributed(its_{name}, {name})",),
            ("distributed_fits", "'{name}', {name}"),
        ),
    ),
    "arrays": structs(
        "arrays that move, in memory of this rank",
        Counted("array_count", "int", "tasuki_redistribute_array"),
        "std::vector<RedistributeArray> read_{name};",
        "read_{name} = {operation}_arrays_from(array_count, {name}, static_cast<int>(read_from.array.extents.size()));",
        None,
        struct="moved_array",
        kind="arrays",
        check=("arrays_fit", "{name}, {sides}"),
    ),
    "widths": Kind(
        "how much of each field's shadow takes part",
        "const tasuki_width* {name}",
        python=Python(HANDLE, "Width | None", "None", "nb::none()"),
    ),
    "axes": Kind(
        "the dimensions of the source in the order of those of the target",
        "const int* {name}",
        kept="std::vector<int> read_{name};",
        read='if ({name} != nullptr) read_{name} = list_from({name}, std::ssize(read_from.array.extents), "{name}");',
        python=Python(HANDLE, "Sequence[SupportsIndex] | None", "None", "nb::none()"),
        fortran=Fortran(
            "integer, intent(in), optional :: {name}(:)",
            "set_axes(its_{name}, {name})",
            ("type(kept_axes), target :: its_{name}",),
            (),
            ("axes_fit", "{name}, {side}"),
        ),
    ),
    "integer": Kind(
        "a whole number, the same on all ranks",
        "int {name}",
        python=Python("int", "SupportsIndex", by_position=True),
        fortran=Fortran("integer, intent(in) :: {name}", "int({name}, c_int)"),
    ),
    "root": Kind(
        "a rank that differs from the others",
        "int {name}",
        python=Python("int", "SupportsIndex", "0", "0"),
        fortran=Fortran("integer, intent(in) :: {name}", "int({name}, c_int)"),
    ),
    "operator": Kind(
        "how a reduction combines",
        "int {name}",
        kept="Operator read_{name} = ReduceOp::sum;",
        read="read_{name} = operator_from({name}, asked);",
        python=Python(HANDLE, OPERATOR, "'sum'", '"sum"'),
        fortran=Fortran("type(tasuki_operator), intent(in) :: {name}", "number", ("integer(c_int) :: number",)),
    ),
    "counts": Kind(
        "a list of counts, an entry a rank or neighbour",
        "const int64_t* {name}",
        kept="std::vector<std::int64_t> read_{name};",
        read='if ({name} != nullptr) read_{name} = list_from({name}, {blocks}, "{name}");',
        python=Python(HANDLE, COUNTS, "None", "nb::none()"),
        fortran="add_counts",
    ),
    "where": Kind(  # in C and Fortran one of the options
        "host or device, for what has no memory to tell",
        kept="Memory read_{name} = Memory::host;",
        read="read_{name} = where_from(asked.{name});",
        python=Python("const std::string&", "Literal['host', 'device']", "'host'", '"host"'),
        fortran="add_no_argument",
    ),
}
