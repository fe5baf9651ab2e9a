! Neighbour collectives of the module tasuki: every rank exchanges blocks with the ranks that it names, or with those
! beside it in a grid.
!
! Buffers are addresses, as in tasuki_collectives; blocks lie one after the other in the order of the neighbours, or are
! what layouts say, an entry a neighbour. Neighbour collectives are not in place. All are collective.
module tasuki_neighbours
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_c, only: c_neighbours, c_grid_info, c_grid_get_info, c_options => c_transfer_options
  use tasuki_base
  use tasuki_fields, only: tasuki_grid
  use tasuki_layouts, only: tasuki_layout
  use tasuki_operations, only: tasuki_operation
  implicit none
  private

  ! Whom this rank sends to and whom it hears from, ranks from 0. For every time that rank a names b in `to`, b names a in
  ! `from`. Or, where the grid is given, the two beside this rank in each dimension of the grid of ranks, where there are
  ! any: 2 * dimensions blocks each way, the last dimension first, as in C, and of each the lower one first.
  type, public :: tasuki_neighbour_ranks
    integer, allocatable :: to(:), from(:)
    type(tasuki_grid) :: grid
  end type

  public :: tasuki_neighbour_allgather_create, tasuki_neighbour_alltoall_create

  interface tasuki_neighbour_allgather_create
    module procedure allgather_counts, allgather_layouts
  end interface
  interface tasuki_neighbour_alltoall_create
    module procedure alltoall_counts, alltoall_layouts
  end interface

  ! What arguments of C point to.
  type :: kept
    integer(c_int), allocatable :: to(:), from(:)
    character(kind=c_char), allocatable :: path(:), engine(:)
  end type

  interface
    integer(c_int) function c_allgather(context, neighbours, in, out, count, counts, type, options, made) &
        bind(c, name='tasuki_neighbour_allgather_create')
      import
      type(c_ptr), value :: context, in, out, counts
      type(c_neighbours), intent(in) :: neighbours
      integer(c_int64_t), value :: count
      integer(c_int), value :: type
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_alltoall(context, neighbours, in, out, count, to, from, type, options, made) &
        bind(c, name='tasuki_neighbour_alltoall_create')
      import
      type(c_ptr), value :: context, in, out, to, from
      type(c_neighbours), intent(in) :: neighbours
      integer(c_int64_t), value :: count
      integer(c_int), value :: type
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_allgather_layouts(context, neighbours, in, in_layout, out, out_layouts, options, made) &
        bind(c, name='tasuki_neighbour_allgather_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layout, out, out_layouts
      type(c_neighbours), intent(in) :: neighbours
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_alltoall_layouts(context, neighbours, in, in_layouts, out, out_layouts, options, made) &
        bind(c, name='tasuki_neighbour_alltoall_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layouts, out, out_layouts
      type(c_neighbours), intent(in) :: neighbours
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
  end interface

contains

  ! `in`, count elements, to each neighbour; `out` gets a block of each, of count elements or receive_counts(i).
  subroutine allgather_counts(allgather, context, neighbours, in, out, count, type, receive_counts, path, engine, stat, &
      errmsg)
    type(tasuki_operation), intent(inout) :: allgather
    type(tasuki_context), intent(in) :: context
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
    integer, intent(in) :: type
    integer(int64), contiguous, target, intent(in), optional :: receive_counts(:)
    character(*), intent(in), optional :: path, engine
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_neighbours) :: whom
    type(c_options) :: options
    type(kept), target :: keep
    if (.not. fits('tasuki_neighbour_allgather_create', neighbours, received=receive_counts, stat=stat, errmsg=errmsg)) &
        return
    call prepare(whom, options, keep, neighbours, path, engine)
    call finish(c_allgather(context%handle, whom, in, out, count, c_counts(receive_counts), int(type, c_int), options, &
        allgather%handle), stat, errmsg)
  end subroutine

  ! `in` holds a block for each neighbour, `out` gets one of each: of count elements, or send_counts(i) and
  ! receive_counts(i); both or neither.
  subroutine alltoall_counts(alltoall, context, neighbours, in, out, count, type, send_counts, receive_counts, path, &
      engine, stat, errmsg)
    type(tasuki_operation), intent(inout) :: alltoall
    type(tasuki_context), intent(in) :: context
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
    integer, intent(in) :: type
    integer(int64), contiguous, target, intent(in), optional :: send_counts(:), receive_counts(:)
    character(*), intent(in), optional :: path, engine
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_neighbours) :: whom
    type(c_options) :: options
    type(kept), target :: keep
    if (.not. fits('tasuki_neighbour_alltoall_create', neighbours, send_counts, receive_counts, stat, errmsg)) return
    call prepare(whom, options, keep, neighbours, path, engine)
    call finish(c_alltoall(context%handle, whom, in, out, count, c_counts(send_counts), c_counts(receive_counts), &
        int(type, c_int), options, alltoall%handle), stat, errmsg)
  end subroutine

  ! The bytes that in_layout names to each neighbour; a layout for the block of each.
  subroutine allgather_layouts(allgather, context, neighbours, in, in_layout, out, out_layouts, path, engine, stat, &
      errmsg)
    type(tasuki_operation), intent(inout) :: allgather
    type(tasuki_context), intent(in) :: context
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layout, out_layouts(:)
    character(*), intent(in), optional :: path, engine
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_neighbours) :: whom
    type(c_options) :: options
    type(kept), target :: keep
    type(c_ptr), target :: from(size(out_layouts))
    if (.not. has('tasuki_neighbour_allgather_create', 'out_layouts', size(out_layouts), neighbours, .false., stat, &
        errmsg)) return
    from = out_layouts%handle
    call prepare(whom, options, keep, neighbours, path, engine)
    call finish(c_allgather_layouts(context%handle, whom, in, in_layout%handle, out, c_handles(from), options, &
        allgather%handle), stat, errmsg)
  end subroutine

  ! As MPI_Neighbor_alltoallw: a layout for the block to each neighbour, and from each.
  subroutine alltoall_layouts(alltoall, context, neighbours, in, in_layouts, out, out_layouts, path, engine, stat, &
      errmsg)
    type(tasuki_operation), intent(inout) :: alltoall
    type(tasuki_context), intent(in) :: context
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layouts(:), out_layouts(:)
    character(*), intent(in), optional :: path, engine
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_neighbours) :: whom
    type(c_options) :: options
    type(kept), target :: keep
    type(c_ptr), target :: to(size(in_layouts)), from(size(out_layouts))
    if (.not. has('tasuki_neighbour_alltoall_create', 'in_layouts', size(in_layouts), neighbours, .true., stat, &
        errmsg)) return
    if (.not. has('tasuki_neighbour_alltoall_create', 'out_layouts', size(out_layouts), neighbours, .false., stat, &
        errmsg)) return
    to = in_layouts%handle
    from = out_layouts%handle
    call prepare(whom, options, keep, neighbours, path, engine)
    call finish(c_alltoall_layouts(context%handle, whom, in, c_handles(to), out, c_handles(from), options, &
        alltoall%handle), stat, errmsg)
  end subroutine

  subroutine prepare(whom, options, keep, neighbours, path, engine)
    type(c_neighbours), intent(inout) :: whom
    type(c_options), intent(inout) :: options
    type(kept), target, intent(inout) :: keep
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    character(*), intent(in), optional :: path, engine
    options%size = c_sizeof(options)
    options%path = c_text(keep%path, path)
    options%engine = c_text(keep%engine, engine)
    whom%grid = neighbours%grid%handle
    allocate (keep%to(0), keep%from(0))
    if (allocated(neighbours%to)) keep%to = int(neighbours%to, c_int)
    if (allocated(neighbours%from)) keep%from = int(neighbours%from, c_int)
    whom%to_count = size(keep%to, kind=c_int)
    whom%from_count = size(keep%from, kind=c_int)
    if (size(keep%to) > 0) whom%to = c_loc(keep%to)
    if (size(keep%from) > 0) whom%from = c_loc(keep%from)
  end subroutine

  ! How many blocks there are each way.
  integer function blocks(neighbours, sent)
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    logical, intent(in) :: sent
    type(c_grid_info) :: info
    blocks = 0
    if (c_associated(neighbours%grid%handle)) then
      info%size = c_sizeof(info)
      if (c_grid_get_info(neighbours%grid%handle, info) == tasuki_ok) blocks = 2 * info%ndims
    else if (sent) then
      if (allocated(neighbours%to)) blocks = size(neighbours%to)
    else if (allocated(neighbours%from)) then
      blocks = size(neighbours%from)
    end if
  end function

  ! Whether a list has an entry for each block.
  logical function has(procedure, name, entries, neighbours, sent, stat, errmsg)
    character(*), intent(in) :: procedure, name
    integer, intent(in) :: entries
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    logical, intent(in) :: sent
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    has = entries == blocks(neighbours, sent)
    if (.not. has) call finish_here(tasuki_bad_argument, procedure//': '//name//' needs an entry for each neighbour', &
        stat, errmsg)
  end function

  logical function fits(procedure, neighbours, sent, received, stat, errmsg)
    character(*), intent(in) :: procedure
    type(tasuki_neighbour_ranks), intent(in) :: neighbours
    integer(int64), intent(in), optional :: sent(:), received(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    fits = .true.
    if (present(sent)) fits = has(procedure, 'send_counts', size(sent), neighbours, .true., stat, errmsg)
    if (.not. fits) return
    if (present(received)) fits = has(procedure, 'receive_counts', size(received), neighbours, .false., stat, errmsg)
  end function

  ! The address of a list; null for one that is not given.
  type(c_ptr) function c_counts(list)
    integer(int64), contiguous, target, intent(in), optional :: list(:)
    c_counts = c_null_ptr
    if (present(list)) c_counts = c_loc(list)
  end function

  type(c_ptr) function c_handles(list)
    type(c_ptr), contiguous, target, intent(in) :: list(:)
    c_handles = c_null_ptr
    if (size(list) > 0) c_handles = c_loc(list)
  end function

end module
