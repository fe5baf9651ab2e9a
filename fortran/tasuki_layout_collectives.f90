! Collectives of memory that is not contiguous: what tasuki_collectives has, with layouts for counts.
!
! A layout says which bytes of `in` or `out` a block is, counted from that address (tasuki_layout_of: those of an array's
! section); lists have an entry for each rank. Layouts may differ from rank to rank, and from that of the block that they
! meet, but both name equally many bytes; in reductions whole elements of `type`. A side that is not looked at, or stands
! for tasuki_in_place(), may have a layout that was never made, or an empty list; where a rank works in place, those of
! `out` hold (reduce-scatter: those of `in`). All ranks use layouts, or none does. They may be freed afterwards. The other
! arguments are those of tasuki_collectives. All are collective.
module tasuki_layout_collectives
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_c, only: c_options => c_collective_options
  use tasuki_base
  use tasuki_operators
  use tasuki_layouts, only: tasuki_layout
  use tasuki_operations, only: tasuki_operation
  use tasuki_collectives
  implicit none
  private

  public :: tasuki_allreduce_create, tasuki_reduce_create, tasuki_reduce_scatter_create, &
      tasuki_allgather_create, tasuki_gather_create, tasuki_scatter_create, &
      tasuki_alltoall_create, tasuki_scan_create, tasuki_exscan_create

  interface tasuki_allreduce_create
    module procedure allreduce_layouts
  end interface
  interface tasuki_reduce_create
    module procedure reduce_layouts
  end interface
  interface tasuki_reduce_scatter_create
    module procedure reduce_scatter_layouts
  end interface
  interface tasuki_allgather_create
    module procedure allgather_layouts
  end interface
  interface tasuki_gather_create
    module procedure gather_layouts
  end interface
  interface tasuki_scatter_create
    module procedure scatter_layouts
  end interface
  interface tasuki_alltoall_create
    module procedure alltoall_layouts
  end interface
  interface tasuki_scan_create
    module procedure scan_layouts
  end interface
  interface tasuki_exscan_create
    module procedure exscan_layouts
  end interface

  interface
    integer(c_int) function c_allreduce(context, in, in_layout, out, out_layout, type, op, options, made) &
        bind(c, name='tasuki_allreduce_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layout, out, out_layout
      integer(c_int), value :: type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_reduce(context, root, in, in_layout, out, out_layout, type, op, options, made) &
        bind(c, name='tasuki_reduce_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layout, out, out_layout
      integer(c_int), value :: root, type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_reduce_scatter(context, in, in_layouts, out, out_layout, type, op, options, made) &
        bind(c, name='tasuki_reduce_scatter_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layouts, out, out_layout
      integer(c_int), value :: type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_allgather(context, in, in_layout, out, out_layouts, options, made) &
        bind(c, name='tasuki_allgather_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layout, out, out_layouts
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_gather(context, root, in, in_layout, out, out_layouts, options, made) &
        bind(c, name='tasuki_gather_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layout, out, out_layouts
      integer(c_int), value :: root
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_scatter(context, root, in, in_layouts, out, out_layout, options, made) &
        bind(c, name='tasuki_scatter_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layouts, out, out_layout
      integer(c_int), value :: root
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_alltoall(context, in, in_layouts, out, out_layouts, options, made) &
        bind(c, name='tasuki_alltoall_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layouts, out, out_layouts
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_scan(context, in, in_layout, out, out_layout, type, op, options, made) &
        bind(c, name='tasuki_scan_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layout, out, out_layout
      integer(c_int), value :: type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_exscan(context, in, in_layout, out, out_layout, type, op, options, made) &
        bind(c, name='tasuki_exscan_create_layouts')
      import
      type(c_ptr), value :: context, in, in_layout, out, out_layout
      integer(c_int), value :: type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
  end interface

contains

  ! All ranks' `in`, combined element by element, to `out` of every rank.
  subroutine allreduce_layouts(allreduce, context, in, in_layout, out, out_layout, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: allreduce
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layout, out_layout
    integer, intent(in) :: type
    type(tasuki_operator), intent(in) :: op
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    logical, intent(in), optional :: ordered
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    integer(c_int) :: number
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    number = set_reduction(options, kept, op, ordered)
    call finish(c_allreduce(context%handle, in, in_layout%handle, out, out_layout%handle, &
        int(type, c_int), number, options, allreduce%handle), stat, errmsg)
  end subroutine

  ! The same to `out` of rank root only.
  subroutine reduce_layouts(reduce, context, root, in, in_layout, out, out_layout, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: reduce
    type(tasuki_context), intent(in) :: context
    integer, intent(in) :: root
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layout, out_layout
    integer, intent(in) :: type
    type(tasuki_operator), intent(in) :: op
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    logical, intent(in), optional :: ordered
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    integer(c_int) :: number
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    number = set_reduction(options, kept, op, ordered)
    call finish(c_reduce(context%handle, int(root, c_int), in, in_layout%handle, out, out_layout%handle, &
        int(type, c_int), number, options, reduce%handle), stat, errmsg)
  end subroutine

  ! `in` holds a block for every rank, of the same sizes on all; rank r gets block r of all, combined.
  subroutine reduce_scatter_layouts(reduce_scatter, context, in, in_layouts, out, out_layout, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: reduce_scatter
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layouts(:), out_layout
    integer, intent(in) :: type
    type(tasuki_operator), intent(in) :: op
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    logical, intent(in), optional :: ordered
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    integer(c_int) :: number
    type(c_ptr), target :: from(size(in_layouts))
    if (.not. fits('tasuki_reduce_scatter_create', 'in_layouts', context, size(in_layouts), stat, errmsg)) return
    from = in_layouts%handle
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    number = set_reduction(options, kept, op, ordered)
    call finish(c_reduce_scatter(context%handle, in, c_list(from), out, out_layout%handle, &
        int(type, c_int), number, options, reduce_scatter%handle), stat, errmsg)
  end subroutine

  ! The ranks' blocks to `out` of every rank.
  subroutine allgather_layouts(allgather, context, in, in_layout, out, out_layouts, &
      path, engine, algorithm, trees, arity, chunk, stat, errmsg)
    type(tasuki_operation), intent(inout) :: allgather
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layout, out_layouts(:)
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    type(c_ptr), target :: to(size(out_layouts))
    if (.not. fits('tasuki_allgather_create', 'out_layouts', context, size(out_layouts), stat, errmsg)) return
    to = out_layouts%handle
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    call finish(c_allgather(context%handle, in, in_layout%handle, out, c_list(to), &
        options, allgather%handle), stat, errmsg)
  end subroutine

  ! The same to `out` of rank root only.
  subroutine gather_layouts(gather, context, root, in, in_layout, out, out_layouts, &
      path, engine, algorithm, trees, arity, chunk, stat, errmsg)
    type(tasuki_operation), intent(inout) :: gather
    type(tasuki_context), intent(in) :: context
    integer, intent(in) :: root
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layout, out_layouts(:)
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    type(c_ptr), target :: to(size(out_layouts))
    if (.not. fits('tasuki_gather_create', 'out_layouts', context, size(out_layouts), stat, errmsg)) return
    to = out_layouts%handle
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    call finish(c_gather(context%handle, int(root, c_int), in, in_layout%handle, out, c_list(to), &
        options, gather%handle), stat, errmsg)
  end subroutine

  ! Block r of `in` of rank root to `out` of rank r.
  subroutine scatter_layouts(scatter, context, root, in, in_layouts, out, out_layout, &
      path, engine, algorithm, trees, arity, chunk, stat, errmsg)
    type(tasuki_operation), intent(inout) :: scatter
    type(tasuki_context), intent(in) :: context
    integer, intent(in) :: root
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layouts(:), out_layout
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    type(c_ptr), target :: from(size(in_layouts))
    if (.not. fits('tasuki_scatter_create', 'in_layouts', context, size(in_layouts), stat, errmsg)) return
    from = in_layouts%handle
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    call finish(c_scatter(context%handle, int(root, c_int), in, c_list(from), out, out_layout%handle, &
        options, scatter%handle), stat, errmsg)
  end subroutine

  ! As MPI_Alltoallw: the block for each rank, and that of each rank, has a layout of its own.
  subroutine alltoall_layouts(alltoall, context, in, in_layouts, out, out_layouts, &
      path, engine, algorithm, trees, arity, chunk, stat, errmsg)
    type(tasuki_operation), intent(inout) :: alltoall
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layouts(:), out_layouts(:)
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    type(c_ptr), target :: from(size(in_layouts))
    type(c_ptr), target :: to(size(out_layouts))
    if (.not. fits('tasuki_alltoall_create', 'in_layouts', context, size(in_layouts), stat, errmsg)) return
    from = in_layouts%handle
    if (.not. fits('tasuki_alltoall_create', 'out_layouts', context, size(out_layouts), stat, errmsg)) return
    to = out_layouts%handle
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    call finish(c_alltoall(context%handle, in, c_list(from), out, c_list(to), &
        options, alltoall%handle), stat, errmsg)
  end subroutine

  ! `in` of ranks 0 to this one, combined in rank order, to `out`.
  subroutine scan_layouts(scan, context, in, in_layout, out, out_layout, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: scan
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layout, out_layout
    integer, intent(in) :: type
    type(tasuki_operator), intent(in) :: op
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    logical, intent(in), optional :: ordered
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    integer(c_int) :: number
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    number = set_reduction(options, kept, op, ordered)
    call finish(c_scan(context%handle, in, in_layout%handle, out, out_layout%handle, &
        int(type, c_int), number, options, scan%handle), stat, errmsg)
  end subroutine

  ! `in` of ranks 0 to the one before this one; `out` of rank 0 stays as it is.
  subroutine exscan_layouts(exscan, context, in, in_layout, out, out_layout, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: exscan
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    type(tasuki_layout), intent(in) :: in_layout, out_layout
    integer, intent(in) :: type
    type(tasuki_operator), intent(in) :: op
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    logical, intent(in), optional :: ordered
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    integer(c_int) :: number
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    number = set_reduction(options, kept, op, ordered)
    call finish(c_exscan(context%handle, in, in_layout%handle, out, out_layout%handle, &
        int(type, c_int), number, options, exscan%handle), stat, errmsg)
  end subroutine

  ! Whether a list has an entry for each rank, or none at all.
  logical function fits(procedure, name, context, entries, stat, errmsg)
    character(*), intent(in) :: procedure, name
    type(tasuki_context), intent(in) :: context
    integer, intent(in) :: entries
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: ranks
    fits = .true.
    if (entries == 0) return
    ranks = tasuki_size(context, stat, errmsg)
    fits = ranks == entries
    if (ranks >= 0 .and. .not. fits) call finish_here(tasuki_bad_argument, &
        procedure//': '//name//' needs an entry for each rank', stat, errmsg)
  end function

  ! The address of a list; null for an empty one.
  type(c_ptr) function c_list(list)
    type(c_ptr), contiguous, target, intent(in) :: list(:)
    c_list = c_null_ptr
    if (size(list) > 0) c_list = c_loc(list)
  end function

end module
