"""The nouns of the schema: arguments, options and operations, and what contradicts itself in an entry.

operations.py makes one `Operation` for each operation of the library. Each noun remembers the line that made it, so
that an entry which contradicts itself stops the build with its file and line.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

from kinds import KINDS

LANGUAGES = ("c", "fortran", "python")


class Contradiction(Exception):
    """An entry that cannot be meant; the text begins with file and line."""


@dataclass(frozen=True)
class Place:
    """The line of the schema that made something."""

    file: str
    line: int

    def refuse(self, text: str) -> None:
        raise Contradiction(f"{self.file}:{self.line}: {text}")


def here() -> Place:
    """The line of the entry: of the first caller that is neither in this file nor a helper of operations.py."""

    def passes_on(frame: FrameType) -> bool:
        file = Path(frame.f_code.co_filename).name
        helper = file == "operations.py" and frame.f_code.co_name != "<module>"
        return helper or file in (Path(__file__).name, "<string>")  # where dataclasses have their constructors

    frame = sys._getframe(1)
    while passes_on(frame):
        frame = frame.f_back
    return Place("bindings/" + Path(frame.f_code.co_filename).name, frame.f_lineno)


@dataclass(frozen=True)
class Argument:
    """One argument, by the name that it has in C++ and C, with those of other languages where they differ."""

    name: str
    kind: str  # in kinds.py
    says: str = ""
    names: dict[str, str] = field(default_factory=dict)
    direction: str = "in"  # of buffers and sides: in, out, inout
    blocks: str = "one"  # of buffers: one block, or one for each rank or neighbour
    at_root: bool = False  # it is looked at on the root only
    in_place: str = ""  # the in-place mark may stand for it: "all" ranks, or the "root"
    beside_count: bool = False  # of counts: they do not replace the count
    of: str = ""  # of layouts and counts: the buffer that they are about
    by_position: bool = False  # in Python
    place: Place = field(default_factory=here)

    def in_language(self, language: str) -> str:
        return self.names.get(language, self.name)


@dataclass(frozen=True)
class Option:
    """A member of a C struct of options, a keyword in Python, an optional argument in Fortran."""

    name: str
    type: str  # text, int, int64, flag, operator, combine, address, where, cuts
    says: str
    default: str = ""  # as C writes it; empty: null or 0
    languages: tuple[str, ...] = LANGUAGES
    place: Place = field(default_factory=here)


@dataclass(frozen=True)
class Options:
    """A struct of options, with its members in C's order."""

    name: str
    cpp: str  # the C++ struct
    members: tuple[Option, ...]
    later: str = ""  # the first member that the struct's first version lacked
    fortran: tuple[str, ...] = ()  # the order of other languages, where it is not C's
    python: tuple[str, ...] = ()
    place: Place = field(default_factory=here)

    def __post_init__(self) -> None:
        names = [member.name for member in self.members]
        for name in names:
            if names.count(name) > 1:
                self.place.refuse(f"options '{self.name}' have '{name}' twice")
        for name in (*self.fortran, *self.python, *((self.later,) if self.later else ())):
            if name not in names:
                self.place.refuse(f"options '{self.name}' have no member '{name}'")

    def of_language(self, language: str) -> list[Option]:
        order = {"fortran": self.fortran, "python": self.python}.get(language) or [one.name for one in self.members]
        known = {one.name: one for one in self.members if language in one.languages}
        missing = set(known) - set(order)
        if missing:
            self.place.refuse(f"options '{self.name}' leave out {', '.join(sorted(missing))} in {language}")
        return [known[name] for name in order if name in known]


@dataclass(frozen=True)
class Form:
    """One way to make an operation: from counts, or from layouts."""

    layouts: bool
    arguments: tuple[Argument, ...]
    suffix: str  # of the function in C

    def find(self, kind: str) -> Argument | None:
        return next((one for one in self.arguments if one.kind == kind), None)


class Operation:
    """One entry of the schema."""

    def __init__(
        self,
        name: str,  # in C and Fortran, and on the command line; of the class in C++ and Python with capitals
        about: str,  # one sentence
        *arguments: Argument,
        options: Options,
        page: str = "",  # the headers of C and C++ that have it; empty: those of its options
        says: str = "",  # more sentences
        layouts: bool = True,  # of operations on buffers: there is a form with layouts
        by_layouts: str = "",  # what to say of it
        ordered: bool = True,  # of reductions: whether the order can be asked for
        collective: bool = True,  # made by all ranks of the context
        notes: dict[str, str] | None = None,  # what one language has to say besides
        renamed: dict[str, str] | None = None,  # further names in errors of Python: the core's, Python's
    ) -> None:
        self.name, self.about, self.arguments, self.options = name, about, arguments, options
        self.cls = name.title().replace("_", "")
        self.page = page or {"collective": "collectives"}.get(options.name, options.name)
        self.says, self.by_layouts, self.ordered, self.collective = says, by_layouts, ordered, collective
        self.layouts = layouts
        self.notes, self.renamed = notes or {}, renamed or {}
        self.place = here()
        check(self)

    def of_kind(self, *kinds: str) -> list[Argument]:
        return [one for one in self.arguments if one.kind in kinds]

    def find(self, kind: str) -> Argument | None:
        return next(iter(self.of_kind(kind)), None)

    @property
    def made(self) -> str:
        """The argument that gets the operation."""
        return self.name.removeprefix("neighbour_")

    @property
    def among_neighbours(self) -> bool:
        return self.find("neighbours") is not None

    @property
    def planned_by_name(self) -> bool:
        """Off line nothing is written for it by hand: two buffers that counts, ranks and integers describe."""
        kinds = {one.kind for one in self.arguments}
        plain = kinds <= {"buffer", "count", "counts", "dtype", "integer", "root"}
        return plain and len(self.of_kind("buffer")) == 2 and self.options.name == "transfer"

    def forms(self) -> list[Form]:
        plain = Form(False, self.arguments, "")
        buffers = self.of_kind("buffer")
        if not buffers or not self.layouts:
            return [plain]
        arguments: list[Argument] = []
        for one in self.arguments:
            if one.kind in ("count", "counts") or (one.kind == "dtype" and not self.find("operator")):
                continue
            arguments.append(one)
            if one.kind == "buffer":
                arguments.append(layout_of(one, alone=len(buffers) == 1))
        return [plain, Form(True, tuple(arguments), "_layout" if len(buffers) == 1 else "_layouts")]

    def option(self, name: str) -> Option | None:
        return next((one for one in self.options.members if one.name == name), None)

    def names(self, language: str) -> dict[str, str]:
        """The names in errors of the core that a language calls otherwise."""
        found = {}
        for one in self.of_kind("side"):  # a struct of C: a tuple in Python, three arguments in Fortran
            own = one.in_language(language)
            parts = {"python": ("[0]", "[1]", "[2]"), "fortran": ("_rank", "", "_layout")}.get(language, ())
            found |= {f"{one.name}.{member}": own + part for member, part in zip(("rank", "base", "layout"), parts)}
        for one in (*self.arguments, *(a for form in self.forms() for a in form.arguments)):
            if one.in_language(language) != one.name:
                found[one.name] = one.in_language(language)
        return found | (self.renamed if language == "python" else {})


def layout_of(buffer: Argument, alone: bool) -> Argument:
    """The layout of a buffer, or the list of those of its blocks."""
    many = buffer.blocks == "each"
    name = ("" if alone else f"{buffer.name}_") + ("layouts" if many else "layout")
    # In Python a layout stands beside the array.
    names = {"python": buffer.in_language("python")}
    return replace(buffer, name=name, kind="layouts" if many else "layout", names=names, of=buffer.name, says="")


def check(entry: Operation) -> None:
    """Refuses an entry that contradicts itself."""
    names: set[str] = set()
    for one in entry.arguments:
        at = one.place.refuse
        if one.kind not in KINDS:
            at(f"argument '{one.name}' is of kind '{one.kind}'; there are {', '.join(KINDS)}")
        if one.name in names:
            at(f"operation '{entry.name}' has two arguments '{one.name}'")
        names.add(one.name)
        if one.direction not in ("in", "out", "inout"):
            at(f"argument '{one.name}' has direction '{one.direction}'; it must be in, out or inout")
        if one.blocks not in ("one", "each"):
            at(f"argument '{one.name}' has blocks '{one.blocks}'; it must be one or each")
        for language in one.names:
            if language not in LANGUAGES:
                at(f"argument '{one.name}' has a name in '{language}'; there are {', '.join(LANGUAGES)}")
        if one.at_root and not entry.find("root"):
            at(f"argument '{one.name}' is for the root, but operation '{entry.name}' has none")
        if one.in_place not in ("", "all", "root"):
            at(f"argument '{one.name}' may be in place on '{one.in_place}'; it must be all or root")
        if one.in_place == "root" and not entry.find("root"):
            at(f"argument '{one.name}' may be in place on the root, but operation '{entry.name}' has none")
        if one.in_place and one.at_root:
            at(f"argument '{one.name}' is for the root and may be in place; the other buffer may be")
        if not one.says and one.kind == "buffer":
            at(f"argument '{one.name}' has no sentence")
    if sum(1 for one in entry.arguments if one.in_place) > 1:
        entry.place.refuse(f"operation '{entry.name}' has two buffers that may be in place; only one may be")
    counts = entry.of_kind("counts")
    if counts and not entry.find("count"):
        counts[0].place.refuse(f"argument '{counts[0].name}' has no count beside it, for blocks of one length")
    if entry.find("operator") and not entry.find("dtype"):
        entry.find("operator").place.refuse(f"operation '{entry.name}' combines elements that have no type")
    if entry.find("where") and entry.option("where") is None:
        entry.find("where").place.refuse(f"options '{entry.options.name}' have no member 'where'")
    for one in entry.of_kind("buffer", "side"):
        if one.direction == "out" and one.kind == "side":
            continue
        if one.kind == "buffer" and not entry.find("count"):
            one.place.refuse(f"operation '{entry.name}' has the buffer '{one.name}', but no count")


def unique(*entries: Operation) -> list[Operation]:
    seen: dict[str, Operation] = {}
    for entry in entries:
        if entry.name in seen:
            entry.place.refuse(f"operation '{entry.name}' is there already, in line {seen[entry.name].place.line}")
        seen[entry.name] = entry
    return list(entries)
