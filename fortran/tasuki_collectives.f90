! Collectives of the module tasuki but broadcast: made collectively, then started and waited for as often as you like.
!
! Buffers are addresses (c_loc) of contiguous host memory that stays where it is as long as the operation. Types are
! tasuki_real64 and the like; tasuki_bytes: what is moved only. Counts are elements of that type. Blocks of several ranks lie
! one after the other in rank order: of `count` elements each, or, where counts is given, of counts(r + 1) for rank r.
! path, engine, algorithm: 'auto', or what is to be taken; trees, arity, chunk: of algorithms over trees, 0: chosen by
! cost; ordered: reductions combine in rank order. What moves where is said in tasuki.h.
module tasuki_collectives
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_c, only: c_options => c_collective_options
  use tasuki_base
  use tasuki_operators
  use tasuki_operations, only: tasuki_operation
  implicit none
  private

  integer, parameter, public :: tasuki_bytes = 0, tasuki_int8 = 1, tasuki_int16 = 2, tasuki_complex32 = 13, &
      tasuki_complex64 = 14, tasuki_real32_int32 = 15, tasuki_real64_int32 = 16, tasuki_int32_int32 = 17, &
      tasuki_int64_int32 = 18, tasuki_real64_int64 = 19, tasuki_int64_int64 = 20

  public :: tasuki_in_place, tasuki_allreduce_create, tasuki_reduce_create, tasuki_reduce_scatter_create
  public :: tasuki_allgather_create, tasuki_gather_create, tasuki_scatter_create, tasuki_alltoall_create
  public :: tasuki_scan_create, tasuki_exscan_create, tasuki_barrier_create

  ! tasuki_layout_collectives adds those of layouts.
  interface tasuki_allreduce_create
    module procedure tasuki_allreduce_create
  end interface
  interface tasuki_reduce_create
    module procedure tasuki_reduce_create
  end interface
  interface tasuki_reduce_scatter_create
    module procedure tasuki_reduce_scatter_create
  end interface
  interface tasuki_allgather_create
    module procedure tasuki_allgather_create
  end interface
  interface tasuki_gather_create
    module procedure tasuki_gather_create
  end interface
  interface tasuki_scatter_create
    module procedure tasuki_scatter_create
  end interface
  interface tasuki_alltoall_create
    module procedure tasuki_alltoall_create
  end interface
  interface tasuki_scan_create
    module procedure tasuki_scan_create
  end interface
  interface tasuki_exscan_create
    module procedure tasuki_exscan_create
  end interface

  interface
    integer(c_int) function c_allreduce(context, in, out, count, type, op, options, made) &
        bind(c, name='tasuki_allreduce_create')
      import
      type(c_ptr), value :: context, in, out
      integer(c_int64_t), value :: count
      integer(c_int), value :: type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_reduce(context, root, in, out, count, type, op, options, made) &
        bind(c, name='tasuki_reduce_create')
      import
      type(c_ptr), value :: context, in, out
      integer(c_int64_t), value :: count
      integer(c_int), value :: root, type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_reduce_scatter(context, in, out, count, counts, type, op, options, made) &
        bind(c, name='tasuki_reduce_scatter_create')
      import
      type(c_ptr), value :: context, in, out, counts
      integer(c_int64_t), value :: count
      integer(c_int), value :: type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_allgather(context, in, out, count, counts, type, options, made) &
        bind(c, name='tasuki_allgather_create')
      import
      type(c_ptr), value :: context, in, out, counts
      integer(c_int64_t), value :: count
      integer(c_int), value :: type
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_gather(context, root, in, out, count, counts, type, options, made) &
        bind(c, name='tasuki_gather_create')
      import
      type(c_ptr), value :: context, in, out, counts
      integer(c_int64_t), value :: count
      integer(c_int), value :: root, type
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_scatter(context, root, in, out, count, counts, type, options, made) &
        bind(c, name='tasuki_scatter_create')
      import
      type(c_ptr), value :: context, in, out, counts
      integer(c_int64_t), value :: count
      integer(c_int), value :: root, type
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_alltoall(context, in, out, count, to, from, type, options, made) &
        bind(c, name='tasuki_alltoall_create')
      import
      type(c_ptr), value :: context, in, out, to, from
      integer(c_int64_t), value :: count
      integer(c_int), value :: type
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_scan(context, in, out, count, type, op, options, made) &
        bind(c, name='tasuki_scan_create')
      import
      type(c_ptr), value :: context, in, out
      integer(c_int64_t), value :: count
      integer(c_int), value :: type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_exscan(context, in, out, count, type, op, options, made) &
        bind(c, name='tasuki_exscan_create')
      import
      type(c_ptr), value :: context, in, out
      integer(c_int64_t), value :: count
      integer(c_int), value :: type, op
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
    integer(c_int) function c_barrier_create(context, options, made) bind(c, name='tasuki_barrier_create')
      import
      type(c_ptr), value :: context
      type(c_options), intent(in) :: options
      type(c_ptr) :: made
    end function
  end interface

contains

  ! Stands for a buffer where a rank works in place: for `in`; of scatter, on the root, for `out`.
  type(c_ptr) function tasuki_in_place()
    tasuki_in_place = transfer(-1_c_intptr_t, c_null_ptr)
  end function

  ! All ranks' `in`, combined element by element by `op` (tasuki_sum, ...), to `out` of every rank. Collective.
  subroutine tasuki_allreduce_create(allreduce, context, in, out, count, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: allreduce
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
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
    call finish(c_allreduce(context%handle, in, out, count, int(type, c_int), number, options, &
        allreduce%handle), stat, errmsg)
  end subroutine

  ! The same to `out` of rank root only; others may give c_null_ptr. Collective.
  subroutine tasuki_reduce_create(reduce, context, root, in, out, count, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: reduce
    type(tasuki_context), intent(in) :: context
    integer, intent(in) :: root
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
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
    call finish(c_reduce(context%handle, int(root, c_int), in, out, count, int(type, c_int), number, &
        options, reduce%handle), stat, errmsg)
  end subroutine

  ! `in` holds a block for every rank; rank r gets block r of all ranks, combined. Collective.
  subroutine tasuki_reduce_scatter_create(reduce_scatter, context, in, out, count, type, op, &
      counts, path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: reduce_scatter
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
    integer, intent(in) :: type
    type(tasuki_operator), intent(in) :: op
    integer(int64), contiguous, target, intent(in), optional :: counts(:)
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    logical, intent(in), optional :: ordered
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    integer(c_int) :: number
    if (.not. fits('tasuki_reduce_scatter_create', 'counts', context, counts, stat, errmsg)) return
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    number = set_reduction(options, kept, op, ordered)
    call finish(c_reduce_scatter(context%handle, in, out, count, c_list(counts), int(type, c_int), number, options, &
        reduce_scatter%handle), stat, errmsg)
  end subroutine

  ! The ranks' blocks to `out` of every rank. Collective.
  subroutine tasuki_allgather_create(allgather, context, in, out, count, type, &
      counts, path, engine, algorithm, trees, arity, chunk, stat, errmsg)
    type(tasuki_operation), intent(inout) :: allgather
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
    integer, intent(in) :: type
    integer(int64), contiguous, target, intent(in), optional :: counts(:)
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    if (.not. fits('tasuki_allgather_create', 'counts', context, counts, stat, errmsg)) return
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    call finish(c_allgather(context%handle, in, out, count, c_list(counts), int(type, c_int), options, &
        allgather%handle), stat, errmsg)
  end subroutine

  ! The same to `out` of rank root only; others may give c_null_ptr. Collective.
  subroutine tasuki_gather_create(gather, context, root, in, out, count, type, &
      counts, path, engine, algorithm, trees, arity, chunk, stat, errmsg)
    type(tasuki_operation), intent(inout) :: gather
    type(tasuki_context), intent(in) :: context
    integer, intent(in) :: root
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
    integer, intent(in) :: type
    integer(int64), contiguous, target, intent(in), optional :: counts(:)
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    if (.not. fits('tasuki_gather_create', 'counts', context, counts, stat, errmsg)) return
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    call finish(c_gather(context%handle, int(root, c_int), in, out, count, c_list(counts), int(type, c_int), &
        options, gather%handle), stat, errmsg)
  end subroutine

  ! Block r of `in` of rank root to `out` of rank r; other ranks may give c_null_ptr for `in`. Collective.
  subroutine tasuki_scatter_create(scatter, context, root, in, out, count, type, &
      counts, path, engine, algorithm, trees, arity, chunk, stat, errmsg)
    type(tasuki_operation), intent(inout) :: scatter
    type(tasuki_context), intent(in) :: context
    integer, intent(in) :: root
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
    integer, intent(in) :: type
    integer(int64), contiguous, target, intent(in), optional :: counts(:)
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    if (.not. fits('tasuki_scatter_create', 'counts', context, counts, stat, errmsg)) return
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    call finish(c_scatter(context%handle, int(root, c_int), in, out, count, c_list(counts), int(type, c_int), &
        options, scatter%handle), stat, errmsg)
  end subroutine

  ! `in` holds a block for every rank, `out` gets one of every rank. send_counts(r + 1) elements go to rank r and
  ! receive_counts(r + 1) come from it; both or neither. Collective.
  subroutine tasuki_alltoall_create(alltoall, context, in, out, count, type, &
      send_counts, receive_counts, path, engine, algorithm, trees, arity, chunk, stat, errmsg)
    type(tasuki_operation), intent(inout) :: alltoall
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
    integer, intent(in) :: type
    integer(int64), contiguous, target, intent(in), optional :: send_counts(:)
    integer(int64), contiguous, target, intent(in), optional :: receive_counts(:)
    character(*), intent(in), optional :: path, engine, algorithm
    integer, intent(in), optional :: trees, arity
    integer(int64), intent(in), optional :: chunk
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    if (.not. fits('tasuki_alltoall_create', 'send_counts', context, send_counts, stat, errmsg)) return
    if (.not. fits('tasuki_alltoall_create', 'receive_counts', context, receive_counts, stat, errmsg)) return
    call set_options(options, kept, path, engine, algorithm, trees, arity, chunk)
    call finish(c_alltoall(context%handle, in, out, count, c_list(send_counts), c_list(receive_counts), &
        int(type, c_int), options, alltoall%handle), stat, errmsg)
  end subroutine

  ! `in` of ranks 0 to this one, combined in rank order, to `out`. Collective.
  subroutine tasuki_scan_create(scan, context, in, out, count, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: scan
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
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
    call finish(c_scan(context%handle, in, out, count, int(type, c_int), number, options, scan%handle), &
        stat, errmsg)
  end subroutine

  ! `in` of ranks 0 to the one before this one; `out` of rank 0 stays as it is. Collective.
  subroutine tasuki_exscan_create(exscan, context, in, out, count, type, op, &
      path, engine, algorithm, trees, arity, chunk, ordered, stat, errmsg)
    type(tasuki_operation), intent(inout) :: exscan
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: in, out
    integer(int64), intent(in) :: count
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
    call finish(c_exscan(context%handle, in, out, count, int(type, c_int), number, options, &
        exscan%handle), stat, errmsg)
  end subroutine

  ! An epoch ends on a rank when all ranks have started it. device (false; the same on all ranks): a barrier of streams, what
  ! a rank has put into its stream after it runs when all ranks' streams have come as far. Collective.
  subroutine tasuki_barrier_create(barrier, context, path, engine, algorithm, device, stat, errmsg)
    type(tasuki_operation), intent(inout) :: barrier
    type(tasuki_context), intent(in) :: context
    character(*), intent(in), optional :: path, engine, algorithm
    logical, intent(in), optional :: device
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_options) :: options
    type(kept_texts), target :: kept
    call set_options(options, kept, path, engine, algorithm)
    options%where = flag(device, 0)
    call finish(c_barrier_create(context%handle, options, barrier%handle), stat, errmsg)
  end subroutine

  ! Whether a list that may not be given has an entry for each rank.
  logical function fits(procedure, name, context, list, stat, errmsg)
    character(*), intent(in) :: procedure, name
    type(tasuki_context), intent(in) :: context
    integer(int64), intent(in), optional :: list(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: ranks
    fits = .true.
    if (.not. present(list)) return
    ranks = tasuki_size(context, stat, errmsg)
    fits = ranks == size(list)
    if (ranks >= 0 .and. .not. fits) call finish_here(tasuki_bad_argument, &
        procedure//': '//name//' needs an entry for each rank', stat, errmsg)
  end function

  ! The address of a list; null for one that is not given.
  type(c_ptr) function c_list(list)
    integer(int64), contiguous, target, intent(in), optional :: list(:)
    c_list = c_null_ptr
    if (present(list)) c_list = c_loc(list)
  end function

end module
