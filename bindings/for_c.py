"""Writes C's headers, and what their functions that make operations do: from the schema and the files in c/."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import texts
from kinds import KINDS
from operations import OPERATIONS
from schema import Argument, Form, Operation, Option, Options

TEMPLATES = Path(__file__).resolve().parent / "c"
SCHEMA = "bindings/operations.py"
WRITTEN = f"written from {SCHEMA}"
PAGES_OF_LAYOUTS = {"collectives": "collective_layouts"}  # where forms with layouts have a header of their own

TYPES = {
    "text": "const char*",
    "name": "const char*",
    "int": "int",
    "int64": "int64_t",
    "flag": "int",
    "operator": "int",
    "where": "int",
    "combine": "tasuki_combine",
    "address": "void*",
}


def function(entry: Operation, form: Form) -> str:
    return f"tasuki_{entry.name}_create{form.suffix}"


def parameters(entry: Operation, form: Form) -> list[tuple[str, str]]:
    """Names and declarations, in order."""
    found = [] if entry.find("fields") else [("context", "tasuki_context context")]
    for one in form.arguments:
        kind = KINDS[one.kind]
        if kind.counted:
            found.append((kind.counted.name, f"{kind.counted.type} {kind.counted.name}"))
        if kind.c:
            const = "const " if one.direction == "in" else ""
            found.append((one.name, kind.c.format(name=one.name, const=const)))
    found.append(("options", f"const tasuki_{entry.options.name}_options* options"))
    return [*found, (entry.made, f"tasuki_operation* {entry.made}")]


def signature(entry: Operation, form: Form) -> str:
    """On lines of at most COLUMNS letters, parameters below each other."""
    head = f"tasuki_status {function(entry, form)}("
    lines, line = [], head
    for name, declared in (listed := parameters(entry, form)):
        piece = declared + (")" if name == listed[-1][0] else ",")
        if len(line) + len(piece) + 2 > texts.COLUMNS and line.strip():
            lines.append(line.rstrip())
            line = " " * len(head)
        line += piece + " "
    return "\n".join([*lines, line.rstrip()])


def comment(entry: Operation, form: Form) -> str:
    pairs = []
    for one in form.arguments:
        if counted := KINDS[one.kind].counted:
            pairs.append((counted.name, f"How many {one.name}."))
        name = "options.where" if one.kind == "where" else one.name
        pairs.append((name, texts.sentence_of(entry, form, one, "c")))
    lines = texts.filled(texts.making(entry, form), "/* ", " * ", texts.COLUMNS - 1)
    return "\n".join([*lines, " *", *texts.entries(pairs, " *   ", texts.COLUMNS - 1), " */"])


def struct(options: Options) -> str:
    """The struct, and the initialiser that holds its defaults."""
    name = f"tasuki_{options.name}_options"
    members = [f"  {TYPES[one.type]} {one.name};" for one in options.of_language("c")]
    width = max(len(line) for line in members)
    lines = [f"typedef struct {name} {{", "  size_t size;"]
    for line, one in zip(members, options.of_language("c")):
        lead = f"{line:<{width}} /* "
        text = one.says.replace("'auto'", 'null or "auto"') if one.type == "text" else one.says
        said = texts.filled(text, lead, " " * width + "  * ", texts.COLUMNS - 3)
        lines += [*said[:-1], said[-1] + " */"]
    defaults = ", ".join(one.default or default_of(one) for one in options.of_language("c"))
    values = f"  {{ sizeof({name}), {defaults} }}"
    if len(values) > texts.COLUMNS:
        values = f"  {{ sizeof({name}), \\\n    {defaults} }}"
    macro = f"#define {name.upper()}_INIT \\\n{values}"
    return "\n".join([*lines, f"}} {name};", macro])


def default_of(option: Option) -> str:
    return "NULL" if option.type in ("text", "name", "combine", "address") else "0"


def page_of(entry: Operation, form: Form) -> str:
    """The page that has this form."""
    return PAGES_OF_LAYOUTS.get(entry.page, entry.page) if form.layouts else entry.page


def on_page(page: str) -> list[tuple[Operation, Form]]:
    """What a header declares: the forms with counts first."""
    found = []
    for layouts in (False, True):
        for entry in OPERATIONS:
            for form in entry.forms():
                if form.layouts == layouts and page_of(entry, form) == page:
                    found.append((entry, form))
    return found


def structs() -> dict[str, Options]:
    return {entry.options.name: entry.options for entry in OPERATIONS}


def template_of(entry: Operation, there: dict[str, str]) -> str:
    """Of an operation on a page of its own, of which there is no more to say."""
    options = f"@options {entry.options.name}@"
    other = next((name for name, text in there.items() if options in text), "")
    includes = "".join(f'#include "tasuki/c/{name}.h"\n' for name in ("status", other, "types") if name)
    declared = [] if other else [options]
    body = "\n\n".join([*declared, f"@operations {entry.page}@"])
    return f"/* {entry.cls}. */\n#include <stddef.h>\n#include <stdint.h>\n\n{includes}\n{body}\n"


def all_operations() -> str:
    """The header that includes those of all operations."""
    pages = {page_of(entry, form) for entry in OPERATIONS for form in entry.forms()}
    return "/* Making operations: all of them. */\n" + "".join(
        f'#include "tasuki/c/{name}.h"\n' for name in sorted(pages)
    )


def page(name: str, template: str) -> str:
    def written(found: re.Match[str]) -> str:
        if found[1] == "options":
            return struct(structs()[found[2]])
        return "\n\n".join(f"{comment(*one)}\n{signature(*one)};" for one in on_page(found[2]))

    about, includes, rest = re.fullmatch(r"(/\*.*?\*/\n)((?:#include [^\n]*\n|\n)*)(.*)", template, re.S).groups()
    body = re.sub(r"@(options|operations) (\w+)@", written, rest).strip()
    own = [f"bindings/c/{name}.h.in"] if (TEMPLATES / f"{name}.h.in").exists() else []
    sources = " and ".join([*own, *([SCHEMA] if body != rest.strip() or not own else [])])
    guard = f"TASUKI_C_{name.upper()}_H"
    declared = f"""\
#ifdef __cplusplus
extern "C" {{
#endif

// NOLINTBEGIN(readability-identifier-naming): the names are C's

{body}

// NOLINTEND(readability-identifier-naming)

#ifdef __cplusplus
}}
#endif
"""
    parts = [f"#ifndef {guard}\n#define {guard}\n", includes.strip() + "\n", declared if body else "", "#endif\n"]
    head = f"{about}/* This file is written from {sources}. */\n"
    return head + "\n".join(part for part in parts if part.strip())


def headers() -> dict[str, str]:
    """The texts of the headers by their names below tasuki/c/."""
    templates = {path.name.removesuffix(".h.in"): path.read_text() for path in sorted(TEMPLATES.glob("*.h.in"))}
    for entry in OPERATIONS:
        if entry.page not in templates:
            templates[entry.page] = template_of(entry, templates)
    templates["operations"] = all_operations()
    return {f"{name}.h": page(name, text) for name, text in templates.items()}


# ---- what the functions do -------------------------------------------------------------------------------------------


def kept_in_place(form: Form, buffer: Argument) -> bool:
    """Whether the layouts of this buffer hold where a rank works in place: those of all blocks, or of the other one."""
    marked = next((one for one in form.arguments if one.kind == "buffer" and one.in_place), None)
    if marked is None:
        return True
    other = next(one for one in form.arguments if one.kind == "buffer" and one is not marked)
    kept = marked if marked.blocks == "each" and other.blocks == "one" else other
    return buffer is kept


def used(entry: Operation, form: Form, layout: Argument) -> str:
    """Whether a rank's layout is looked at, in C++."""
    buffer = next(one for one in form.arguments if one.name == layout.of)
    marked = next((one for one in form.arguments if one.kind == "buffer" and one.in_place), None)
    if buffer.at_root:
        return "ranks.rank() == root"
    if entry.among_neighbours and layout.kind == "layout":
        return "!read_neighbours.to.empty()"
    return "true" if kept_in_place(form, buffer) else f"{marked.name} != TASUKI_IN_PLACE"


def blocks_of(entry: Operation, one: Argument) -> str:
    """How many entries a list has, in C++."""
    if not entry.among_neighbours:
        return "ranks.size()"
    sent = next(buffer for buffer in entry.arguments if buffer.name == one.of).direction == "in"
    return f"std::ssize(read_neighbours.{'to' if sent else 'from'})"


def both_ways(form: Form) -> Argument | None:
    """The only buffer of an operation that has one."""
    return next((one for one in form.arguments if one.direction == "inout"), None)


def reading(entry: Operation, form: Form, one: Argument) -> list[str]:
    """The statements that read an argument, and throw what is wrong with it."""
    kind, lines = KINDS[one.kind], []
    if kind.read:
        words = {"name": one.name, "operation": entry.name, "combines": str(form.find("operator") is not None).lower()}
        if one.kind in ("counts", "layouts"):
            words["blocks"] = blocks_of(entry, one)
        if one.kind in ("layout", "layouts"):
            words["used"] = used(entry, form, one)
        if form.find("widths"):
            words["widths"] = form.find("widths").name
        lines.append(kind.read.format(**words))
    if kind.moves and (memory := both_ways(form)):
        lines.append(f'if ({kind.moves.format(name=one.name)}) given({memory.name}, "{memory.name}");')
    return lines


def together(form: Form) -> list[str]:
    """Lists that come together or not at all."""
    lists = [one.name for one in form.arguments if one.kind == "counts" and not one.beside_count]
    return [f'both_or_neither({lists[0]}, "{lists[0]}", {lists[1]}, "{lists[1]}");'] if len(lists) == 2 else []


def constructed(entry: Operation, form: Form, with_lists: bool, name: Callable[[Argument], str], options: str) -> str:
    """The C++ object. `name` says what stands for an argument."""
    passed = [] if entry.find("fields") else ["ranks"]
    lists = [one for one in form.arguments if one.kind == "counts"]
    for one in form.arguments:
        if one.kind == "count" and with_lists and lists and not lists[0].beside_count:
            continue
        if one.kind == "widths" or (one.kind == "counts" and not with_lists):
            continue
        passed.append(name(one))
    return f"{entry.cls}({', '.join([*passed, options])})"


def read_name(one: Argument) -> str:
    if one.kind == "buffer":
        return f"{'input' if one.direction == 'in' else 'output'}({one.name})"
    return f"read_{one.name}" if KINDS[one.kind].kept else one.name


def body(entry: Operation, form: Form) -> str:
    name, options = function(entry, form), entry.options
    sides = [one.name for one in form.arguments if one.kind == "side"]
    kept = [KINDS[one.kind].kept.format(name=one.name) for one in form.arguments if KINDS[one.kind].kept]
    reads = [line for one in form.arguments for line in reading(entry, form, one)]
    if entry.find("fields"):
        context = ["const Context ranks = some_field(count, fields).grid().context();"]
    else:
        context = ['const Context& ranks = get(context, "context");']
    context += [f'check_side(*given({side}, "{side}"), ranks, "{side}");' for side in sides]
    among = ""
    if sides:
        context.append(f"const int sides[] = {{{', '.join(f'{side}->rank' for side in sides)}}};")
        among = " sides,"
    lists = [one.name for one in form.arguments if one.kind == "counts"]
    made = [f"put({entry.made}, {constructed(entry, form, wanted, read_name, 'chosen')});" for wanted in (False, True)]
    result = [f"if ({lists[0]} == nullptr) return {made[0]}", made[1]] if lists else made[1:]
    agreed = [
        f'given({entry.made}, "{entry.made}");',
        f"const tasuki_{options.name}_options asked = all_of(options);",
        *together(form),
        *reads,
        "chosen = options_from(asked);",
    ]
    lines = [
        f'  return guarded("{name}", [&] {{',
        *(f"    {line}" for line in [*context, *kept, f"{options.cpp} chosen;"]),
        f'    agree("{name}", ranks,{among} [&] {{',
        *(f"      {line}" for line in agreed),
        "    });",
        *(f"    {line}" for line in result),
        "  });",
    ]
    return f"{signature(entry, form)} {{\n" + "\n".join(lines) + "\n}\n"


def reader(options: Options) -> str:
    """Two functions: all members of the caller's struct, and the C++ options that they say."""
    name = f"tasuki_{options.name}_options"
    first = f"offsetof({name}, {options.later})" if options.later else f"sizeof({name})"
    lines = [
        f"{name} all_of(const {name}* options) {{",
        f"  return read_options(options, {name.upper()}_INIT, {first});",
        "}",
        "",
        f"{options.cpp} options_from(const {name}& from) {{",
        f"  {options.cpp} to;",
    ]
    for one in options.of_language("c"):
        if one.languages == ("c",) or one.type == "where":
            continue
        if one.type in ("text", "name"):
            lines.append(f"  if (from.{one.name} != nullptr) to.{one.name} = from.{one.name};")
        elif one.type == "operator":
            lines.append(f'  to.{one.name} = reduce_op_from(from.{one.name}, "{one.name}");')
        else:
            lines.append(f"  to.{one.name} = from.{one.name}{' != 0' if one.type == 'flag' else ''};")
    return "\n".join([*lines, "  return to;", "}", ""])


def includes() -> str:
    """The C++ headers of all operations."""
    return "".join(f'#include "tasuki/{page}.hpp"\n' for page in sorted({entry.page for entry in OPERATIONS}))


def implementation() -> str:
    forms = [(entry, form) for entry in OPERATIONS for form in entry.forms()]
    return f"""\
// The C interface of operations: making them. This file is {WRITTEN}.
#include <cstddef>

#include "api/reading.hpp"
{includes()}
using namespace tasuki;
using namespace tasuki::api;

namespace {{

{chr(10).join(reader(options) for options in structs().values())}
}}  // namespace

{chr(10).join(body(entry, form) for entry, form in forms)}"""
