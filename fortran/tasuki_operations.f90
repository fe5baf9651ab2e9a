! Operations of the module tasuki: making halos, and starting, awaiting and looking at all that is made.
module tasuki_operations
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_c
  use tasuki_base
  use tasuki_fields
  use tasuki_layouts
  implicit none
  private

  ! A prepared communication.
  type, public :: tasuki_operation
    type(c_ptr) :: handle = c_null_ptr
  end type

  public :: tasuki_halo_create, tasuki_free
  public :: tasuki_start, tasuki_test, tasuki_wait, tasuki_run
  public :: tasuki_explain, tasuki_plan_text, tasuki_plan_json, tasuki_verify

  interface tasuki_halo_create
    module procedure halo_of_one, halo_of_many
  end interface
  interface tasuki_free
    module procedure operation_free
  end interface

contains

  ! An exchange of the halos of fields of one context. lower and upper (dimension, field): how much of each shadow takes
  ! part; width: the same for all sides and fields; nothing: all of it. corners (true): also cells outside the owned box
  ! in two or more dimensions. reverse: add every shadow cell into the cell's owner. alternating: fields with two copies
  ! are swapped exactly once between two starts. path, engine: 'auto', or what is to be taken. blocks: what an exchange
  ! on a GPU may take. tune: so many candidates are tried while it is made, and the fastest is kept. correct (true): what
  ! the first epochs take may correct prices for what is made later. name: what plans, errors and traces call it.
  ! edges: what fills shadows outside the grid (docs/staggered.md); i is the slowest dimension in memory, the last one
  ! here. Collective.
  subroutine halo_of_many(halo, fields, width, lower, upper, corners, reverse, alternating, path, engine, blocks, tune, &
      correct, name, edges, stat, errmsg)
    type(tasuki_operation), intent(inout) :: halo
    type(tasuki_field), intent(in) :: fields(:)
    integer, intent(in), optional :: width, lower(:, :), upper(:, :), blocks, tune
    logical, intent(in), optional :: corners, reverse, alternating, correct
    character(*), intent(in), optional :: path, engine, name, edges
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_halo_options) :: options
    type(c_field_info) :: info
    type(c_width), target :: widths(size(fields))
    type(c_ptr) :: given
    character(kind=c_char), allocatable, target :: path_letters(:), engine_letters(:), name_letters(:), edge_letters(:)
    logical :: fit
    integer :: f
    given = c_null_ptr
    if (present(width) .or. present(lower) .or. present(upper)) then
      info%size = c_sizeof(info)
      do f = 1, size(fields)
        if (c_field_get_info(fields(f)%handle, info) /= tasuki_ok) cycle ! is told below
        fit = .true.
        if (present(lower)) fit = size(lower, 1) == info%ndims .and. size(lower, 2) == size(fields)
        if (present(upper)) fit = fit .and. size(upper, 1) == info%ndims .and. size(upper, 2) == size(fields)
        if (.not. fit) then
          call finish_here(tasuki_bad_argument, &
              'tasuki_halo_create: lower and upper need an entry for each dimension and field', stat, errmsg)
          return
        end if
        widths(f) = info%shadow
        if (present(width)) widths(f) = widths_of(width)
        if (present(lower)) widths(f)%lo(:info%ndims) = int(lower(info%ndims:1:-1, f), c_int64_t)
        if (present(upper)) widths(f)%hi(:info%ndims) = int(upper(info%ndims:1:-1, f), c_int64_t)
      end do
      given = c_loc(widths)
    end if
    options%size = c_sizeof(options)
    options%path = c_text(path_letters, path)
    options%engine = c_text(engine_letters, engine)
    if (present(blocks)) options%blocks = int(blocks, c_int)
    options%corners = flag(corners, 1)
    options%reverse = flag(reverse, 0)
    options%alternating = flag(alternating, 0)
    if (present(tune)) options%tune = int(tune, c_int)
    options%correct = flag(correct, 1)
    options%name = c_text(name_letters, name)
    options%edges = c_text(edge_letters, edges)
    call finish(c_halo_create(int(size(fields), c_int), fields%handle, given, options, halo%handle), stat, errmsg)
  end subroutine

  ! The same for one field, whose lower and upper have an entry a dimension.
  subroutine halo_of_one(halo, field, width, lower, upper, corners, reverse, alternating, path, engine, blocks, tune, &
      correct, name, edges, stat, errmsg)
    type(tasuki_operation), intent(inout) :: halo
    type(tasuki_field), intent(in) :: field
    integer, intent(in), optional :: width, lower(:), upper(:), blocks, tune
    logical, intent(in), optional :: corners, reverse, alternating, correct
    character(*), intent(in), optional :: path, engine, name, edges
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer, allocatable :: below(:, :), above(:, :) ! not allocated: not present
    if (present(lower)) below = reshape(lower, [size(lower), 1])
    if (present(upper)) above = reshape(upper, [size(upper), 1])
    call halo_of_many(halo, [field], width, below, above, corners, reverse, alternating, path, engine, blocks, tune, &
        correct, name, edges, stat, errmsg)
  end subroutine

  ! Begins the next epoch: on the host, or as work of a CUDA stream (c_null_ptr: the default one). Local.
  subroutine tasuki_start(operation, stream, stat, errmsg)
    type(tasuki_operation), intent(in) :: operation
    type(c_ptr), intent(in), optional :: stream
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (present(stream)) then
      call finish(c_stream_start(operation%handle, stream), stat, errmsg)
    else
      call finish(c_start(operation%handle), stat, errmsg)
    end if
  end subroutine

  ! Whether the epoch started last has ended on this rank. Drives it, does not block. Local.
  subroutine tasuki_test(operation, ended, stat, errmsg)
    type(tasuki_operation), intent(in) :: operation
    logical, intent(out) :: ended
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: found
    found = 0
    call finish(c_test(operation%handle, found), stat, errmsg)
    ended = found /= 0
  end subroutine

  ! Returns when the epoch started last has ended on this rank; fails if a rank has died, or at the deadline. With a
  ! stream: later work of the stream comes after what has arrived. Local.
  subroutine tasuki_wait(operation, stream, stat, errmsg)
    type(tasuki_operation), intent(in) :: operation
    type(c_ptr), intent(in), optional :: stream
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (present(stream)) then
      call finish(c_stream_wait(operation%handle, stream), stat, errmsg)
    else
      call finish(c_wait(operation%handle), stat, errmsg)
    end if
  end subroutine

  ! start and wait in one, in a CUDA stream. Local.
  subroutine tasuki_run(operation, stream, stat, errmsg)
    type(tasuki_operation), intent(in) :: operation
    type(c_ptr), intent(in) :: stream
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_stream_run(operation%handle, stream), stat, errmsg)
  end subroutine

  ! The pieces of this rank: bytes, pattern, path, predicted time, and why others were not taken. Local.
  subroutine tasuki_explain(operation, text, stat, errmsg)
    type(tasuki_operation), intent(in) :: operation
    character(:), allocatable, intent(out) :: text
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: found
    found = c_null_ptr
    call finish(c_explain(operation%handle, found), stat, errmsg)
    call take_text(found, text)
  end subroutine

  ! This rank's plan, for people; as JSON below. Local.
  subroutine tasuki_plan_text(operation, text, stat, errmsg)
    type(tasuki_operation), intent(in) :: operation
    character(:), allocatable, intent(out) :: text
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: found
    found = c_null_ptr
    call finish(c_plan_text(operation%handle, found), stat, errmsg)
    call take_text(found, text)
  end subroutine

  subroutine tasuki_plan_json(operation, json, stat, errmsg)
    type(tasuki_operation), intent(in) :: operation
    character(:), allocatable, intent(out) :: json
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: found
    found = c_null_ptr
    call finish(c_plan_json(operation%handle, found), stat, errmsg)
    call take_text(found, json)
  end subroutine

  ! Whether the plans of all ranks are sound together, and a text of what is not. Collective.
  subroutine tasuki_verify(operation, ok, report, stat, errmsg)
    type(tasuki_operation), intent(in) :: operation
    logical, intent(out) :: ok
    character(:), allocatable, intent(out), optional :: report
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: found
    character(:), allocatable :: text
    integer(c_int) :: sound
    found = c_null_ptr
    sound = 0
    call finish(c_verify(operation%handle, 0_c_int, sound, found), stat, errmsg)
    call take_text(found, text)
    ok = sound /= 0
    if (present(report)) report = text
  end subroutine

  ! Gives everything back. Local; fails while the operation is active.
  subroutine operation_free(operation, stat, errmsg)
    type(tasuki_operation), intent(inout) :: operation
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_operation_free(operation%handle), stat, errmsg)
  end subroutine

end module
