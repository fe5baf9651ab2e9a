#!/usr/bin/env python3
"""Writes the Fortran module tasuki_arrays: what takes arrays of every type and rank, for which Fortran 2008 needs a
procedure each. `fortran/arrays.py OUTPUT.f90`"""

import sys

import fortran_text

TYPES = {
    "real64": "real(real64)",
    "real32": "real(real32)",
    "int64": "integer(int64)",
    "int32": "integer(int32)",
}
RANKS = range(1, 8)

HEAD = """\
! Written by fortran/arrays.py: what takes arrays, a procedure for each type and rank.
!
! tasuki_view(field, array [, copy]): the pointer becomes the copy that is shown, or copy 1 or 2, shadow included
!   and padding excluded. Owned cells have indices from 1, so the shadow below is at 0 and less. A swap changes which
!   copy is shown, not what the pointer points to. Local.
! tasuki_wrap(field, grid, array [, second]): a field in the caller's array, or two as a pair of copies, contiguous,
!   alive and in place (target) as long as the field. Their shape is that of this rank's cells with the shadow, and
!   the first dimension with padding. Name, shadow, lower, upper, pad as in tasuki_field_create. Collective.
! tasuki_layout_of(layout, array): the elements of an array or a section of one, array(1:9:2, :), in Fortran's order,
!   relative to the first, c_loc(array(1, 1)). Local.
! tasuki_allgather(context, mine, all): every rank's list to all(:, rank + 1) of every rank. Collective.
module tasuki_arrays
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use tasuki_c, only: c_allgather
  use tasuki_base
  use tasuki_fields
  use tasuki_layouts, only: tasuki_layout, layout_of
  implicit none
  private
  public :: tasuki_view, tasuki_wrap, tasuki_layout_of, tasuki_allgather
"""

VIEW = """
  subroutine view_{name}_{rank}(field, array, copy, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    {type}, pointer, intent(out) :: array({colons})
    integer, intent(in), optional :: copy
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    {type}, pointer :: whole({colons})
    type(tasuki_place) :: at
    nullify (array)
    call locate(field, tasuki_{name}, {rank}, at, copy, stat, errmsg)
    if (.not. at%found) return
    call c_f_pointer(at%start, whole, at%stored(:{rank}))
    array({lower}) => &
        whole({upper})
  end subroutine
"""

WRAP = """
  subroutine wrap_{name}_{rank}(field, grid, array, second, name, shadow, lower, upper, pad, stat, errmsg)
    type(tasuki_field), intent(inout) :: field
    type(tasuki_grid), intent(in) :: grid
    {type}, target, intent(inout) :: array({colons})
    {type}, target, optional, intent(inout) :: second({colons})
    character(*), intent(in), optional :: name
    integer, intent(in), optional :: shadow, lower(:), upper(:), pad
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: memory(2)
    logical :: fit
    integer :: count
    count = 1
    memory = c_null_ptr
    fit = is_contiguous(array)
    if (size(array) > 0) memory(1) = c_loc(array({ones}))
    if (present(second)) then
      count = 2
      fit = fit .and. is_contiguous(second) .and. all(shape(second) == shape(array))
      if (size(second) > 0) memory(2) = c_loc(second({ones}))
    end if
    call wrap(field, grid, tasuki_{name}, memory(:count), shape(array), fit, name, shadow, lower, upper, pad, &
        stat, errmsg)
  end subroutine
"""

LAYOUT = """
  subroutine layout_{name}_{rank}(layout, array, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    {type}, target, intent(in) :: array({colons})
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(int64) :: strides({rank})
    strides = 0
    if (size(array) > 0) then
{strides}    end if
    call layout_of(layout, shape(array), strides, storage_size(array) / 8, stat, errmsg)
  end subroutine
"""

# How far the second element of a dimension is from the first.
STRIDE = """\
      if (size(array, {d}) > 1) strides({d}) = address(c_loc(array({second}))) - address(c_loc(array({ones})))
"""

ADDRESS = """
  integer(int64) function address(place)
    type(c_ptr), intent(in) :: place
    address = int(transfer(place, 0_c_intptr_t), int64)
  end function
"""

GATHER = """
  subroutine gather_{name}(context, mine, all, stat, errmsg)
    type(tasuki_context), intent(in) :: context
    {type}, contiguous, target, intent(in) :: mine(:)
    {type}, contiguous, target, intent(inout) :: all(:, :)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: from, to
    integer(c_size_t) :: bytes
    integer :: ranks
    ranks = tasuki_size(context, stat, errmsg)
    if (ranks < 0) return
    from = c_null_ptr
    to = c_null_ptr
    bytes = size(mine, kind=c_size_t) * storage_size(mine) / 8
    if (bytes > 0) from = c_loc(mine)
    if (bytes > 0 .and. size(all) == size(mine) * ranks) to = c_loc(all)
    call finish(c_allgather(context%handle, from, bytes, to), stat, errmsg)
  end subroutine
"""


def procedures() -> str:
    text = []
    for name, kind in TYPES.items():
        text.append(GATHER.format(name=name, type=kind))
        for rank in RANKS:
            values = {
                "name": name,
                "type": kind,
                "rank": rank,
                "colons": ", ".join(":" for _ in range(rank)),
                "lower": ", ".join(f"at%first({d + 1}):" for d in range(rank)),
                "upper": ", ".join(f":at%cells({d + 1})" for d in range(rank)),
                "ones": ", ".join("1" for _ in range(rank)),
            }
            values["strides"] = "".join(
                STRIDE.format(d=d + 1, second=", ".join("2" if e == d else "1" for e in range(rank)), **values)
                for d in range(rank)
            )
            text += [VIEW.format(**values), WRAP.format(**values), LAYOUT.format(**values)]
    return "".join([*text, ADDRESS])


def module() -> str:
    pairs = [f"{name}_{rank}" for name in TYPES for rank in RANKS]
    return (
        HEAD
        + fortran_text.generic("tasuki_view", [f"view_{pair}" for pair in pairs])
        + fortran_text.generic("tasuki_wrap", [f"wrap_{pair}" for pair in pairs])
        + fortran_text.generic("tasuki_layout_of", [f"layout_{pair}" for pair in pairs])
        + fortran_text.generic("tasuki_allgather", [f"gather_{name}" for name in TYPES])
        + "\ncontains\n"
        + procedures()
        + "\nend module\n"
    )


if __name__ == "__main__":
    fortran_text.main(sys.argv, module)
