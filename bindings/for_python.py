"""Writes the Python classes of operations from the schema: made.cpp binds them with signatures and docstrings.
_operations.py, a file of the package, has their names, functions that plan them off line, and what the command line
offers."""

from __future__ import annotations

from collections.abc import Callable

import for_c
import texts
from kinds import KINDS
from operations import OPERATIONS
from schema import Argument, Operation, Option

COLUMNS = 120
OPTIONS = {
    "text": ("const std::string&", "str", "'auto'", '"auto"'),
    "name": ("const std::string&", "str", "''", '""'),
    "int": ("int", "SupportsIndex", "0", "0"),
    "int64": ("std::int64_t", "SupportsIndex", "0", "0"),
    "flag": ("Truth", "Truth", "False", "false"),
    "operator": ("const std::string&", "str", "'sum'", '"sum"'),
    "cuts": ("const Cuts&", "Sequence[Sequence[SupportsIndex] | None] | None", "None", "nb::none()"),
}
# What functions that plan off line take of an argument.
PLANNED = {
    "integer": "SupportsIndex",
    "root": "SupportsIndex",
    "count": "SupportsIndex",
    "dtype": 'DTypeLike = "float64"',
}
# Those whose arguments have a reading of their own in C++; all others are collectives of two buffers.
BY_HAND = ("broadcast", "transfer", "halo", "exchange", "redistribute", "barrier")


class Parameter:
    """One of the constructor's."""

    def __init__(self, name: str, kind: tuple, by_position: bool, none: bool = False, default: str = "") -> None:
        self.name, self.by_position = name, by_position
        self.cpp, self.type, signed, bound = kind
        if default:
            signed, bound = (default, default.lower()) if default != "None" else ("None", "nb::none()")
        self.signature = f"{name}: {self.type}" + (f" = {signed}" if signed is not None else "")
        self.binding = f'nb::arg("{name}")' + (f" = {bound}" if bound is not None else ".none()" if none else "")


def options_of(entry: Operation) -> list[Option]:
    """The keywords besides the arguments."""
    orderly = entry.find("operator") and entry.ordered
    return [
        one for one in entry.options.of_language("python") if one.type != "where" and (one.name != "ordered" or orderly)
    ]


def parameters(entry: Operation) -> list[Parameter]:
    """The constructor's, in order: by position, then by name."""
    places, named = [], []
    for one in entry.arguments:
        of_kind = KINDS[one.kind].python
        if of_kind is None:
            continue  # counts and types are those of the arrays
        name, kind = one.in_language("python"), of_kind.parameter
        if of_kind.by_position:
            if one.direction == "inout":
                kind = ("nb::handle", "object", None, None)
            missing = one.at_root and one.direction == "out"  # other ranks may leave it out
            looked_at = one.kind == "buffer" and one.direction != "inout"
            places.append(Parameter(name, kind, True, none=looked_at, default="None" if missing else ""))
        elif one.by_position:
            places.append(Parameter(name, (*kind[:2], None, None), True))
        else:
            named.append((one.kind, Parameter(name, kind, False)))
    order = [*KINDS, "option"]
    order.insert(order.index("operator") + 1, "ordered")
    for option in options_of(entry):
        default = "True" if option.default == "1" else ""
        one = Parameter(option.name, OPTIONS[option.type], False, default=default)
        named.append(("ordered" if option.name == "ordered" else "option", one))
    named.sort(key=lambda pair: order.index(pair[0]))
    context = (
        [] if entry.find("fields") else [Parameter("context", ("const ContextHandle&", "Context", None, None), True)]
    )
    return [*context, *places, *(one for _, one in named)]


def signature(listed: list[Parameter]) -> str:
    places = [one.signature for one in listed if one.by_position]
    named = [one.signature for one in listed if not one.by_position]
    return f"def __init__({', '.join(['self', *places, '*', *named])}) -> None"


def binding(listed: list[Parameter]) -> list[str]:
    places = [one.binding for one in listed if one.by_position]
    return [*places, "nb::kw_only()", *(one.binding for one in listed if not one.by_position)]


def documented(entry: Operation) -> str:
    """The constructor's docstring."""
    lines = texts.filled(
        " ".join(part for part in ["Collective." if entry.collective else "", entry.says] if part), "", ""
    )
    notes = [entry.notes["python"]] if "python" in entry.notes else []
    if entry.name not in BY_HAND:
        each = "neighbour" if entry.among_neighbours else "rank"
        lists = f"; for blocks (array, [Layout, ...]), one a {each}, without counts" if has_blocks(entry) else ""
        kind = "Elements of both arrays are of one type." if entry.find("operator") else "Elements may be of any type."
        notes.append(
            f"{kind} Arrays may have any strides, which may differ between sides and ranks; elements count in C order. "
            f"For an array, (array, Layout) says which of its bytes are meant{lists}. Arrays are on "
            "the host, or all on GPUs."
            if entry.layouts
            else f"{kind} Arrays are contiguous, on the host or all on GPUs."
        )
    for note in notes:
        lines += ["", *texts.filled(note, "", "")]
    lines.append("")
    plain = entry.forms()[0]
    for one in entry.arguments:
        if KINDS[one.kind].python:
            said = texts.sentence_of(entry, plain, one, "python")
            lines += texts.filled(f"{one.in_language('python')}: {said}", "", "")
    for option in options_of(entry):
        lines += texts.filled(f"{option.name}: {option.says}", "", "")
    return "\n".join(lines)


def has_blocks(entry: Operation) -> bool:
    return any(one.blocks == "each" for one in entry.arguments)


def shape(entry: Operation) -> str:
    """What the C++ that reads the arguments must know of the two buffers."""
    source, target = entry.of_kind("buffer")
    marked = next((one for one in (source, target) if one.in_place), None)
    blocks = [f"Blocks::{'many' if one.blocks == 'each' else 'one'}" for one in (source, target)]
    flags = [source.at_root, target.at_root, marked is target, marked is not None and marked.in_place == "root"]
    flags += [marked is not None, entry.find("operator") is not None]
    return f'{{"{entry.cls}", {", ".join([*blocks, *(str(flag).lower() for flag in flags)])}}}'


def asked_name(one: Argument) -> str:
    """What stands for an argument once it has been read."""
    own = one.in_language("python")
    names = {"root": own, "integer": own, "dtype": "a.type", "operator": "a.op"}
    if one.kind == "counts":
        return f"*a.{'receive_counts' if one.name == 'receive_counts' else 'counts'}"
    if one.kind in ("buffer", "layout", "layouts"):
        return f"a.{one.name}()"
    return names.get(one.kind, f"a.{one.name}")


def made(entry: Operation) -> list[str]:
    """The statements that return what was made."""
    names = {one.name: one.in_language("python") for one in entry.arguments}
    if entry.name in BY_HAND:
        passed = [names[one.name] for one in entry.arguments if KINDS[one.kind].python]
        passed += [one.name for one in options_of(entry) if one.type == "operator"]  # which all ranks must hear of
        context = [] if entry.find("fields") else ["context"]
        return [f"return made_{entry.name}({', '.join([*context, *passed, 'options'])});"]
    if len(entry.of_kind("buffer")) != 2:
        entry.place.refuse(
            f"operation '{entry.name}' has not two buffers; give Python a made_{entry.name} "
            "(python/bindings/making.hpp) and name it in for_python.BY_HAND"
        )
    lines = ["Given given;"]
    for one in entry.arguments:
        if KINDS[one.kind].python and one.kind != "integer":
            field = {"in": "source", "out": "target"}.get(one.name, one.name)
            lines.append(f"given.{field} = {names[one.name]};")
    plain, *others = entry.forms()
    results_of_layouts = [for_c.constructed(entry, form, False, asked_name, "options") for form in others]
    results = [for_c.constructed(entry, plain, wanted, asked_name, "options") for wanted in (False, True)]
    lists = [asked_name(one).removeprefix("*") for one in plain.arguments if one.kind == "counts"]
    lines += [
        f"const Shape shape{shape(entry)};",
        "return made_collective(context, shape, given, [&](const Context& ranks, const Asked& a) -> AnyOperation {",
        *(f"  if (a.with_layouts) return {result};" for result in results_of_layouts),
        *(["  refuse_layouts(shape, a);"] if not others else []),
        *([f"  if ({lists[0]}) return {results[1]};"] if lists else []),
        f"  return {results[0]};",
        "});",
    ]
    return lines


def option_line(option: Option) -> str:
    value = f"lists_of({option.name})" if option.type == "cuts" else option.name
    return f"options.{option.name} = {value};"


def option_lines(entry: Operation) -> list[str]:
    return [option_line(one) for one in options_of(entry) if one.type != "operator"]


def bound(number: int, entry: Operation) -> str:
    listed = parameters(entry)
    names = "".join(f'{{"{core}", "{own}"}}, ' for core, own in sorted(entry.names("python").items()))
    taken = ", ".join(f"{one.cpp} {one.name}" for one in listed)
    lines = [f"{entry.options.cpp} options;", *option_lines(entry), *made(entry)]
    body = "\n".join(f"               {line}" for line in lines)
    arguments = ",\n           ".join(binding(listed))
    return f"""\
  nb::class_<Made<{number}>, PyOperation>(m, "{entry.cls}", R"({entry.about})")
      .def("__init__",
           [](Made<{number}>* self, {taken}) {{
             construct(self, {{{names.removesuffix(", ")}}}, [&] {{
{body}
             }});
           }},
           {arguments},
           nb::sig(R"({signature(listed)})"),
           R"({documented(entry)})");
"""


def source() -> str:
    return f"""\
// The Python classes of operations. This file is {for_c.WRITTEN}.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "making.hpp"
#include "module.hpp"
{for_c.includes()}
namespace tasuki::python {{

void bind_made(nb::module_& m) {{
{"".join(bound(number, entry) for number, entry in enumerate(OPERATIONS))}}}

}}  // namespace tasuki::python
"""


def side_where(entry: Operation, wanted: Callable[[Argument], bool]) -> str:
    """The side, source or target, for which this holds; empty: neither."""
    return next((one.in_language("python") for one in entry.of_kind("buffer") if wanted(one)), "")


def options_of_command(entry: Operation) -> tuple[str, ...]:
    """Those of `tasuki explain NAME` and `tasuki plan NAME`."""
    given = {
        "count": entry.find("count"),
        "dtype": entry.find("dtype"),
        "op": entry.find("operator"),
        "root": entry.find("root"),
        "ordered": entry.find("operator") and entry.ordered,
        "in_place": side_where(entry, lambda one: bool(one.in_place)),
        "memory": True,
        "shared": entry.find("buffer"),
    }
    members = [one.name for one in entry.options.members]
    algorithm = [name for name in ("algorithm", "trees", "arity", "chunk") if name in members]
    return (*(name for name, there in given.items() if there), *algorithm)


def known(entry: Operation) -> str:
    """An entry of the command line's table."""
    texts_ = (
        ", ".join(one.in_language("python") for one in entry.of_kind("buffer") if one.blocks == "each"),
        side_where(entry, lambda one: one.at_root),
        side_where(entry, lambda one: bool(one.in_place)),
    )
    integers = {one.in_language("python"): texts.said(entry, "python", one.says) for one in entry.of_kind("integer")}
    shown = ", ".join(repr(text) for text in (entry.cls, entry.about, *texts_))
    return f"    {entry.name!r}: Known({shown}, {options_of_command(entry)!r}, {integers!r}),\n"


def planning(entry: Operation) -> str:
    """A function that plans an operation off line by its name."""
    arguments = [one for one in entry.arguments if one.kind in PLANNED]
    names = {one.name: "dtype" if one.kind == "dtype" else one.in_language("python") for one in arguments}
    taken = "".join(f"    {names[one.name]}: {PLANNED[one.kind]},\n" for one in arguments)
    values = {
        types: ", ".join(f'"{one.name}": {names[one.name]}' for one in arguments if (one.kind == "dtype") == types)
        for types in (False, True)
    }
    said = [f"{names[one.name]}: {texts.said(entry, 'python', one.says)}" for one in arguments if one.says]
    lines = [line for one in said for line in texts.filled(one, "    ", "    ")]
    return f"""

@names_checked
def plan_{entry.name}(
    machine: Machine,
{taken}    *,
    memory: Literal["host", "device"] = "host",
    shared: Truth = False,
    path: str = "auto",
) -> Planned:
    \"\"\"The plans of a {entry.cls} on all ranks of `machine`. {entry.about} Local.

{chr(10).join(lines)}
    memory: 'device': of GPUs. shared: the data lie in memory that peers can map. path: as for `{entry.cls}`.
    Raises tasuki.Error for what cannot be.
    \"\"\"
    return _core._plan_named(machine, "{entry.name}", {{{values[False]}}}, {{{values[True]}}}, memory, shared, path)
"""


def package_file() -> str:
    classes = sorted(entry.cls for entry in OPERATIONS)
    by_name = [entry for entry in OPERATIONS if entry.planned_by_name]
    collectives = [entry for entry in OPERATIONS if entry.options.name == "collective"]
    public = sorted([*classes, *(f"plan_{entry.name}" for entry in by_name)])
    imports = """
from typing import TYPE_CHECKING

from . import _core
from .offline import names_checked
"""
    checked = """
if TYPE_CHECKING:
    from typing import Literal, SupportsIndex

    from numpy.typing import DTypeLike

    from ._core import Machine, Planned, Truth
"""
    return f"""\
\"\"\"The classes of operations, and what the command line knows of those that it has no command of its own for. This
file is {for_c.WRITTEN}.\"\"\"

from __future__ import annotations
{imports if by_name else ""}
from typing import NamedTuple

from ._core import (
{"".join(f"    {name},{chr(10)}" for name in classes)})
{checked if by_name else ""}
__all__ = [
{"".join(f'    "{name}",{chr(10)}' for name in public)}]


class Known(NamedTuple):
    cls: str  # its class
    help: str
    blocks: str  # the sides that hold a block for each rank
    at_root: str  # the side that is looked at on the root only
    in_place: str  # the side that tasuki.in_place may stand for
    options: tuple[str, ...]
    integers: dict[str, str]  # what is said of each


COLLECTIVES = {{
{"".join(known(entry) for entry in collectives)}}}
BY_NAME: dict[str, Known] = {{
{"".join(known(entry) for entry in by_name)}}}
{"".join(planning(entry) for entry in by_name)}"""


def files() -> dict[str, str]:
    return {"made.cpp": source(), "_operations.py": package_file()}
