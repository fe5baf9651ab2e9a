#!/usr/bin/env python3
"""Writes the Fortran module tasuki_collectives: a procedure for each function of C that makes a broadcast, a collective
or a neighbour collective, whose arguments are those of C. `fortran/collectives.py OUTPUT.f90`"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import fortran_text
from c_header import Function, read

HEAD = """\
! Written by fortran/collectives.py: collectives of the module tasuki, which are made collectively, then started and
! waited for as often as you like.
!
! Buffers are addresses (c_loc) of memory that stays where it is as long as the operation; of scatter, gather and
! reduce, ranks other than the root may give c_null_ptr for what is not looked at. path, engine, algorithm: 'auto', or
! what is to be taken; trees, arity, chunk: 0: chosen by cost (docs/collectives.md says which algorithm has them);
! blocks: thread blocks that it may take of a GPU, 0: as many as it gains by; ordered: reductions combine in rank order.
! op: tasuki_sum, ..., or an operator of the user's own. What moves where is said in C's headers, tasuki/c/.
!
! Contiguous blocks: types are tasuki_real64 and the like; tasuki_bytes: what is moved only. Counts are elements of
! that type. Blocks of several ranks lie one after the other in rank order: of `count` elements each, or, where counts
! is given, of counts(r + 1) for rank r.
!
! Memory that is not contiguous: a layout says which bytes of `in` or `out` a block is, counted from that address
! (tasuki_layout_of: those of an array's section); lists have an entry for each rank. Layouts may differ from rank to
! rank, and from that of the block that they meet, but both name equally many bytes; in reductions whole elements of
! `type`. A side that is not looked at, or stands for tasuki_in_place(), may have a layout that was never made, or an
! empty list; where a rank works in place, those of `out` hold (reduce-scatter: those of `in`). All ranks use layouts,
! or none does. They may be freed afterwards.
!
! Neighbour collectives: blocks lie one after the other in the order of the neighbours, or are what layouts say, an
! entry a neighbour. They are not in place. All are collective.
module tasuki_collectives
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_c
  use tasuki_base
  use tasuki_operators
  use tasuki_layouts, only: tasuki_layout
  use tasuki_neighbours
  use tasuki_lists
  use tasuki_operations, only: tasuki_operation
  implicit none
  private

  integer, parameter, public :: tasuki_bytes = 0, tasuki_int8 = 1, tasuki_int16 = 2, tasuki_complex32 = 13, &
      tasuki_complex64 = 14, tasuki_real32_int32 = 15, tasuki_real64_int32 = 16, tasuki_int32_int32 = 17, &
      tasuki_int64_int32 = 18, tasuki_real64_int64 = 19, tasuki_int64_int64 = 20

  public :: tasuki_in_place
"""

IN_PLACE = """
  ! Stands for a buffer where a rank works in place: for `in`; of scatter, on the root, for `out`.
  type(c_ptr) function tasuki_in_place()
    tasuki_in_place = transfer(-1_c_intptr_t, c_null_ptr)
  end function
"""

# What each procedure does: with blocks that are contiguous, and with layouts.
SAME = "The same with layouts."
DOCUMENTED = {
    "broadcast": (
        "Contiguous bytes at an address of rank root to the address that each rank gives at every start.",
        "The same for memory that is not contiguous: the bytes that the root's layout names, counted from its address, "
        "go to those that the layout of every rank names, which are as many.",
    ),
    "allreduce": ("All ranks' `in`, combined element by element by `op`, to `out` of every rank.", SAME),
    "reduce": ("All ranks' `in`, combined, to `out` of rank root only.", SAME),
    "reduce_scatter": (
        "`in` holds a block for every rank; rank r gets block r of all ranks, combined.",
        "The same with layouts; the blocks have the same sizes on all ranks.",
    ),
    "allgather": ("The ranks' blocks to `out` of every rank.", SAME),
    "gather": ("The ranks' blocks to `out` of rank root only.", SAME),
    "scatter": ("Block r of `in` of rank root to `out` of rank r.", SAME),
    "alltoall": (
        "`in` holds a block for every rank, `out` gets one of every rank. send_counts(r + 1) elements go to rank r and "
        "receive_counts(r + 1) come from it; both or neither.",
        "As MPI_Alltoallw: the block for each rank, and that of each rank, has a layout of its own.",
    ),
    "scan": ("`in` of ranks 0 to this one, combined in rank order, to `out`.", SAME),
    "exscan": ("`in` of ranks 0 to the one before this one; `out` of rank 0 stays as it is.", SAME),
    "barrier": (
        "An epoch ends on a rank when all ranks have started it. device (false; the same on all ranks): a barrier of "
        "streams, what a rank has put into its stream after it runs when all ranks' streams have come as far.",
    ),
    "neighbour_allgather": (
        "`in`, count elements, to each neighbour; `out` gets a block of each, of count elements or receive_counts(i).",
        "The bytes that in_layout names to each neighbour; a layout for the block of each.",
    ),
    "neighbour_alltoall": (
        "`in` holds a block for each neighbour, `out` gets one of each: of count elements, or send_counts(i) and "
        "receive_counts(i); both or neither.",
        "As MPI_Neighbor_alltoallw: a layout for the block to each neighbour, and from each.",
    ),
}

# Options that users give, by the struct of C that holds them.
OPTIONS = {
    "transfer": ("path", "engine", "blocks"),
    "broadcast": ("path", "engine", "blocks", "trees", "arity", "chunk", "algorithm"),
    "collective": ("path", "engine", "algorithm", "trees", "arity", "chunk", "blocks"),
}
OPTIONS_OF_BARRIERS = ("path", "engine", "algorithm", "device", "blocks")

TEXT, NUMBER, NUMBER64 = "character(*)", "integer", "integer(int64)"
OPTION_TYPES = {
    **dict.fromkeys(("path", "engine", "algorithm"), TEXT),
    **dict.fromkeys(("blocks", "trees", "arity"), NUMBER),
    "chunk": NUMBER64,
    **dict.fromkeys(("ordered", "device"), "logical"),
}
ADDRESS = "type(c_ptr), intent(in)"
LAYOUT = "type(tasuki_layout), intent(in)"
COUNTS = "integer(int64), contiguous, target, intent(in), optional"


@dataclass
class Procedure:
    """One that is being written: its arguments in order with their declarations, and what it says."""

    arguments: dict[str, str] = field(default_factory=dict)
    locals: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    passed: dict[str, str] = field(default_factory=dict)  # to C, by C's names


def option_statement(name: str) -> str:
    if OPTION_TYPES[name] == TEXT:
        return f"options%{name} = c_text(kept%{name}, {name})"
    if name == "device":
        return "options%where = flag(device, 0)"
    value = f"int({name}, c_int)" if OPTION_TYPES[name] == NUMBER else name
    return f"if (present({name})) options%{name} = {value}"


def add_list(written: Procedure, function: Function, name: str, declared: str) -> None:
    """A list with an entry for each rank or neighbour, of counts or layouts."""
    written.arguments[name] = f"{declared} :: {name}(:)"
    whom = f", neighbours, {'.true.' if name in ('send_counts', 'in_layouts') else '.false.'}"
    if not function.name.startswith("neighbour_"):
        whom = ""
    call = f"fits('tasuki_{function.name.removesuffix('_layouts')}', '{name}', {name}, stat, errmsg, context{whom})"
    written.checks.append(f"if (.not. {call}) return")
    if declared == COUNTS:
        written.passed[name] = f"c_list({name})"
    else:
        handles = name.replace("layouts", "handles")
        written.locals.append(f"type(c_ptr), target :: {handles}(size({name}))")
        written.statements.append(f"{handles} = {name}%handle")
        written.passed[name] = f"c_list({handles})"


def add_argument(written: Procedure, function: Function, name: str) -> None:
    """What becomes of C's argument."""
    add, passed = written.arguments, written.passed
    if name == "context":
        add[name], passed[name] = "type(tasuki_context), intent(in) :: context", "context%handle"
    elif name == "neighbours":
        add[name], passed[name] = "type(tasuki_neighbour_ranks), intent(in) :: neighbours", "whom"
        written.locals += ["type(c_neighbours) :: whom", "type(kept_neighbours), target :: kept_ranks"]
        written.statements.append("call set_neighbours(whom, kept_ranks, neighbours)")
    elif name in ("in", "out", "data"):
        given = "address" if name == "data" else name
        add[given], passed[name] = f"{ADDRESS} :: {given}", given
    elif name in ("root", "type"):
        add[name], passed[name] = f"integer, intent(in) :: {name}", f"int({name}, c_int)"
    elif name in ("count", "bytes"):
        add[name], passed[name] = f"integer(int64), intent(in) :: {name}", name
    elif name == "op":
        add[name], passed[name] = "type(tasuki_operator), intent(in) :: op", "number"
        written.locals.append("integer(c_int) :: number")
    elif name.endswith("layout"):
        add[name], passed[name] = f"{LAYOUT} :: {name}", f"{name}%handle"
    elif name.endswith("layouts"):
        add_list(written, function, name, LAYOUT)
    else:
        raise ValueError(f"{function.name} has an argument that Fortran does not know: {name}")


def procedure(function: Function, specific: str, said: str) -> str:
    *inputs, options, made = function.parameters
    struct = options.type.removeprefix("const tasuki_").removesuffix("_options*")
    written = Procedure()
    written.arguments[made.name] = f"type(tasuki_operation), intent(inout) :: {made.name}"
    written.locals = [f"type(c_{struct}_options) :: options", "type(kept_texts), target :: kept"]
    written.statements.append("options%size = c_sizeof(options)")
    lists = [parameter.name for parameter in inputs if parameter.name.endswith("counts")]
    for parameter in inputs:
        if parameter.name not in lists:
            add_argument(written, function, parameter.name)
    for name in lists:  # which need not be given: after those that must
        add_list(written, function, name, COUNTS)
    taken = OPTIONS[struct] if len(inputs) > 1 else OPTIONS_OF_BARRIERS
    for name in taken:
        written.statements.append(option_statement(name))
    if "op" in written.arguments:
        taken += ("ordered",)
        written.statements.append("number = set_reduction(options, kept, op, ordered)")
    for name in taken:
        written.arguments[name] = f"{OPTION_TYPES[name]}, intent(in), optional :: {name}"
    written.arguments["stat"] = "integer, intent(out), optional :: stat"
    written.arguments["errmsg"] = "character(*), intent(inout), optional :: errmsg"
    written.passed |= {options.name: "options", made.name: f"{made.name}%handle"}
    passed = ", ".join(written.passed[parameter.name] for parameter in function.parameters)
    call = f"call finish(c_{function.name}({passed}), stat, errmsg)"
    body = [*written.arguments.values(), *written.locals, *written.checks, *written.statements, call]
    head = f"  subroutine {specific}({', '.join(written.arguments)})"
    lines = [head, *(f"    {line}" for line in body), "  end subroutine"]
    return "\n" + fortran_text.comment(said, "  ") + "".join(fortran_text.wrapped(line) for line in lines)


def module() -> str:
    functions, _ = read()
    public, interfaces, procedures = "", "", ""
    for noun, texts in DOCUMENTED.items():
        name = f"{noun}_create"
        made = sorted((known for known in functions if known.startswith(name)), key=len)
        if len(made) != len(texts):
            raise ValueError(f"{', '.join(made)}: as many as there are need a text")
        specific = [f"{noun}_of_blocks", f"{noun}_of_layouts"][: len(made)]
        public += f"  public :: tasuki_{name}\n"
        interfaces += fortran_text.generic(f"tasuki_{name}", specific)
        for known, known_as, text in zip(made, specific, texts):
            procedures += procedure(functions[known], known_as, f"tasuki_{name}: {text} Collective.")
    return HEAD + public + interfaces + "\ncontains\n" + IN_PLACE + procedures + "\nend module\n"


if __name__ == "__main__":
    fortran_text.main(sys.argv, module)
