! Whom ranks exchange blocks with in neighbour collectives, which tasuki_making makes: the ranks that they name, or
! those beside them in a grid.
module tasuki_neighbours
  use, intrinsic :: iso_c_binding
  use tasuki_c
  use tasuki_base
  use tasuki_fields, only: tasuki_grid
  implicit none
  private

  ! Whom this rank sends to and whom it hears from, ranks from 0. For every time that rank a names b in `to`, b names a in
  ! `from`. Or, where the grid is given, the two beside this rank in each dimension of the grid of ranks, where there are
  ! any: 2 * dimensions blocks each way, the last dimension first, as in C, and of each the lower one first.
  type, public :: tasuki_neighbour_ranks
    integer, allocatable :: to(:), from(:)
    type(tasuki_grid) :: grid
  end type

  ! What c_neighbours points to.
  type, public :: kept_neighbours
    integer(c_int), allocatable :: to(:), from(:)
  end type

  public :: set_neighbours, block_count ! for the other modules of this library

contains

  ! Neighbours for C, which live as long as `kept`.
  subroutine set_neighbours(whom, kept, neighbours)
    type(c_neighbours), intent(inout) :: whom
    type(kept_neighbours), target, intent(inout) :: kept
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    whom%grid = neighbours%grid%handle
    allocate (kept%to(0), kept%from(0))
    if (allocated(neighbours%to)) kept%to = int(neighbours%to, c_int)
    if (allocated(neighbours%from)) kept%from = int(neighbours%from, c_int)
    whom%to_count = size(kept%to, kind=c_int)
    whom%from_count = size(kept%from, kind=c_int)
    if (size(kept%to) > 0) whom%to = c_loc(kept%to)
    if (size(kept%from) > 0) whom%from = c_loc(kept%from)
  end subroutine

  ! How many blocks this rank sends, or gets.
  integer function block_count(neighbours, sent)
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    logical, intent(in) :: sent
    type(c_grid_info) :: info
    block_count = 0
    if (c_associated(neighbours%grid%handle)) then
      info%size = c_sizeof(info)
      if (c_grid_get_info(neighbours%grid%handle, info) == tasuki_ok) block_count = 2 * info%ndims
    else if (sent) then
      if (allocated(neighbours%to)) block_count = size(neighbours%to)
    else if (allocated(neighbours%from)) then
      block_count = size(neighbours%from)
    end if
  end function

end module
