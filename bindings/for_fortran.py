"""Writes two modules of Fortran from the schema: tasuki_making, with a generic procedure for each operation but halos,
and tasuki_option_structs, which has C's structs of options."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

import for_c
import texts
from kinds import KINDS
from operations import OPERATIONS
from schema import Argument, Form, Operation, Option, Options

FORTRAN = Path(__file__).resolve().parent.parent / "fortran"
sys.path.insert(0, str(FORTRAN))

import fortran_text  # noqa: E402

BY_HAND = ("halo",)  # whose arguments are Fortran's own: tasuki_operations.f90

OPTION_TYPES = {
    "text": "character(*)",
    "name": "character(*)",
    "int": "integer",
    "int64": "integer(int64)",
    "flag": "logical",
    "where": "logical",
    "operator": "type(tasuki_operator)",
}
STRUCT_TYPES = {
    "text": ("type(c_ptr)", "c_null_ptr"),
    "name": ("type(c_ptr)", "c_null_ptr"),
    "address": ("type(c_ptr)", "c_null_ptr"),
    "combine": ("type(c_funptr)", "c_null_funptr"),
    "int": ("integer(c_int)", "0"),
    "flag": ("integer(c_int)", "0"),
    "where": ("integer(c_int)", "0"),
    "operator": ("integer(c_int)", "0"),
    "int64": ("integer(c_int64_t)", "0"),
}
ADDRESS = "type(c_ptr), intent(in)"
LAYOUT = "type(tasuki_layout), intent(in)"
COUNTS = "integer(int64), contiguous, target, intent(in), optional"


@dataclass
class Procedure:
    """One that is being written: its arguments in order with their declarations, and what it says."""

    entry: Operation
    form: Form
    arguments: dict[str, str] = field(default_factory=dict)
    locals: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    passed: dict[str, str] = field(default_factory=dict)  # to C, by C's names
    said: list[tuple[str, str]] = field(default_factory=list)  # of its arguments

    def add_list(self, one: Argument, declared: str) -> None:
        """A list with an entry for each rank or neighbour, of counts or layouts."""
        name = one.name
        self.arguments[name] = f"{declared} :: {name}(:)"
        sent = next(other for other in self.entry.arguments if other.name == one.of).direction == "in"
        whom = f", neighbours, {'.true.' if sent else '.false.'}" if self.entry.among_neighbours else ""
        call = f"fits('tasuki_{self.entry.name}_create', '{name}', {name}, stat, errmsg, context{whom})"
        self.checks.append(f"if (.not. {call}) return")
        if declared == COUNTS:
            self.passed[name] = f"c_list({name})"
            return
        handles = name.replace("layouts", "handles")
        self.locals.append(f"type(c_ptr), target :: {handles}(size({name}))")
        self.statements.append(f"{handles} = {name}%handle")
        self.passed[name] = f"c_list({handles})"

    def check(self, function: str, arguments: str) -> None:
        """The call ends if the function says no."""
        call = f"{function}('tasuki_{self.entry.name}_create', {arguments}, stat, errmsg)"
        self.checks.append(f"if (.not. {call}) return")

    def add_side(self, one: Argument) -> None:
        """A rank, an address and a layout, which C has in a struct."""
        name = one.name
        self.arguments[f"{name}_rank"] = f"integer, intent(in) :: {name}_rank"
        self.arguments[name] = f"{ADDRESS} :: {name}"
        self.arguments[f"{name}_layout"] = f"{LAYOUT} :: {name}_layout"
        self.said += [
            (f"{name}_rank", f"The rank. {one.says}"),
            (name, "Its address there; other ranks may give c_null_ptr."),
            (
                f"{name}_layout",
                f"Which bytes, counted from `{name}`. On other ranks it may be one that was never made.",
            ),
        ]
        side = f"{name}_side"
        self.locals.append(f"type(c_side) :: {side}")
        self.statements += [
            f"{side}%rank = int({name}_rank, c_int)",
            f"{side}%base = {name}",
            f"{side}%layout = {name}_layout%handle",
        ]
        self.passed[name] = side

    def add_layouts(self, one: Argument) -> None:
        self.say(one)
        self.add_list(one, LAYOUT)

    def add_counts(self, one: Argument) -> None:
        self.say(one)
        self.add_list(one, COUNTS)

    def add_no_argument(self, one: Argument) -> None:
        """It is an option."""

    def say(self, one: Argument) -> None:
        self.said.append((one.in_language("fortran"), texts.sentence_of(self.entry, self.form, one, "fortran")))

    def add(self, one: Argument) -> None:
        """What becomes of an argument of the schema."""
        kind, name = KINDS[one.kind], one.in_language("fortran")
        its = kind.fortran
        if its is None:
            one.place.refuse(f"Fortran knows no argument of kind '{one.kind}'")
        if isinstance(its, str):
            getattr(self, its)(one)
            return
        self.say(one)
        sides = [side.name for side in self.entry.of_kind("distributed")]
        words = {"name": name, "sides": ", ".join(sides), "side": sides[0] if sides else ""}
        self.arguments[name] = its.declared.format(**words)
        self.passed[one.name] = its.passed.format(**words)
        if kind.counted:
            self.passed[kind.counted.name] = f"size({name}, kind=c_{kind.counted.type})"
        self.locals += [line.format(**words) for line in its.locals]
        self.statements += [line.format(**words) for line in its.statements]
        if its.check:
            self.check(its.check[0], its.check[1].format(**words))

    def add_option(self, option: Option) -> None:
        where = self.entry.find("where")
        name = where.in_language("fortran") if option.type == "where" else option.name
        self.arguments[name] = f"{OPTION_TYPES[option.type]}, intent(in), optional :: {name}"
        if option.name == "ordered":
            return  # set_reduction takes it
        if option.type in ("text", "name"):
            self.statements.append(f"options%{name} = c_text(kept%{name}, {name})")
        elif option.type in ("flag", "where"):
            self.statements.append(
                f"options%{option.name} = flag({name}, {option.default or 0 if option.type == 'flag' else 0})"
            )
        else:
            value = {"int": f"int({name}, c_int)", "operator": f"number_of({name})"}.get(option.type, name)
            self.statements.append(f"if (present({name})) options%{name} = {value}")


def options_of(entry: Operation) -> list[Option]:
    """Those that the operation's procedure takes: of a barrier, none that concern bytes."""
    without = set()
    if not entry.find("operator"):
        without.add("ordered")
    if not entry.find("where"):
        without.add("where")
    else:
        without |= {"trees", "arity", "chunk"}
    return [one for one in entry.options.of_language("fortran") if one.name not in without]


def procedure(entry: Operation, form: Form, specific: str) -> str:
    written = Procedure(entry, form)
    written.arguments[entry.made] = f"type(tasuki_operation), intent(inout) :: {entry.made}"
    written.arguments["context"] = "type(tasuki_context), intent(in) :: context"
    written.passed["context"] = "context%handle"
    written.locals = [f"type(c_{entry.options.name}_options) :: options", "type(kept_texts), target :: kept"]
    written.statements.append("options%size = c_sizeof(options)")
    for one in sorted(form.arguments, key=lambda one: one.kind == "counts"):  # which need not be given: at the end
        written.add(one)
    for option in options_of(entry):
        written.add_option(option)
    if entry.find("operator"):
        written.statements.append("number = set_reduction(options, kept, op, ordered)")
    written.arguments["stat"] = "integer, intent(out), optional :: stat"
    written.arguments["errmsg"] = "character(*), intent(inout), optional :: errmsg"
    written.passed |= {"options": "options", entry.made: f"{entry.made}%handle"}
    passed = ", ".join(written.passed[name] for name, _ in for_c.parameters(entry, form))
    names = ",".join(f"{name}={own}" for name, own in sorted(entry.names("fortran").items()))
    also = f", '{names}'" if names else ""
    call = f"call finish(c_{for_c.function(entry, form).removeprefix('tasuki_')}({passed}), stat, errmsg{also})"
    body = [*written.arguments.values(), *written.locals, *written.checks, *written.statements, call]
    head = f"  subroutine {specific}({', '.join(written.arguments)})"
    lines = [head, *(f"    {line}" for line in body), "  end subroutine"]
    about = texts.filled(f"tasuki_{entry.name}_create: {texts.making(entry, form)}", "  ! ", "  ! ")
    if where := entry.find("where"):
        written.said.append(("device", texts.said(entry, "fortran", where.says)))
    about += texts.entries(written.said, "  !   ")
    return "\n" + "\n".join(about) + "\n" + "".join(fortran_text.wrapped(line) for line in lines)


def making() -> str:
    public, interfaces, procedures = "", "", ""
    for entry in OPERATIONS:
        if entry.name in BY_HAND:
            continue
        forms = entry.forms()
        specific = [f"{entry.name}_of_blocks", f"{entry.name}_of_layouts"][: len(forms)]
        public += f"  public :: tasuki_{entry.name}_create\n"
        interfaces += fortran_text.generic(f"tasuki_{entry.name}_create", specific)
        procedures += "".join(procedure(entry, form, name) for form, name in zip(forms, specific))
    template = (FORTRAN / "tasuki_making.f90.in").read_text()
    return template.replace("@public@\n", public + interfaces).replace("@procedures@\n", procedures)


def struct(options: Options) -> str:
    lines = [f"  type, bind(c) :: c_{options.name}_options", "    integer(c_size_t) :: size = 0"]
    for one in options.of_language("c"):
        kind, nothing = STRUCT_TYPES[one.type]
        default = one.default if one.default.isdigit() else nothing
        lines.append(f"    {kind} :: {one.name} = {default}")
    return "\n".join([*lines, "  end type", ""])


def option_structs() -> str:
    return f"""\
! The structs of options of tasuki/tasuki.h, with the defaults of their initialisers. Users need not see it. This
! file is {for_c.WRITTEN}.
module tasuki_option_structs
  use, intrinsic :: iso_c_binding
  implicit none
  public

{chr(10).join(struct(options) for options in for_c.structs().values())}
end module
"""


def modules() -> dict[str, str]:
    return {"tasuki_making.f90": making(), "tasuki_option_structs.f90": option_structs()}
