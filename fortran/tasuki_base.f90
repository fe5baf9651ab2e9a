! Handles, errors and contexts of the module tasuki.
!
! Every subroutine has the optional arguments stat and errmsg, as Fortran's own statements have. With stat, it is 0 or
! one of the numbers below and the program goes on; errmsg is set if something failed. Without stat, a failure prints
! the message and ends the program with an error.
module tasuki_base
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real64
  use tasuki_c
  implicit none
  private

  ! What stat may be, as in tasuki.h.
  integer, parameter, public :: tasuki_ok = 0, tasuki_bad_handle = 1, tasuki_bad_argument = 2, tasuki_failed = 3, &
      tasuki_no_memory = 4, tasuki_internal = 5, tasuki_interrupted = 6, tasuki_disagreement = 7, &
      tasuki_not_possible = 8, tasuki_rank_died = 9, tasuki_deadline = 10, tasuki_system = 11

  ! The ranks that work together. Ranks count from 0, as MPI's do.
  type, public :: tasuki_context
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! What options of collectives point to.
  type :: kept_texts
    character(kind=c_char), allocatable :: path(:), engine(:), algorithm(:), name(:), combine(:)
  end type

  public :: tasuki_init, tasuki_context_create, tasuki_context_subset, tasuki_free, tasuki_rank, tasuki_size, tasuki_barrier
  public :: tasuki_set_deadline, tasuki_get_deadline, tasuki_describe
  public :: tasuki_use_gpu, tasuki_why_no_gpu, tasuki_synchronize
  public :: finish, finish_here, take_text, c_text, flag, kept_texts ! for the other modules of this library

  interface tasuki_context_create
    module procedure context_over_integer
  end interface

  interface tasuki_free
    module procedure context_free
  end interface

contains

  ! Over MPI_COMM_WORLD. Starts MPI if nobody has, and then ends it with the context's last holder. Collective.
  subroutine tasuki_init(context, stat, errmsg)
    type(tasuki_context), intent(inout) :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_init(c_null_ptr, c_null_ptr, context%handle), stat, errmsg)
  end subroutine

  ! Over a duplicate of a communicator of mpif.h or the module mpi. Collective.
  subroutine context_over_integer(context, comm, stat, errmsg)
    type(tasuki_context), intent(inout) :: context
    integer, intent(in) :: comm
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_context_create_f(int(comm, c_int), context%handle), stat, errmsg)
  end subroutine

  ! A context of these ranks of `context` alone, numbered in this order (ranks count from 0): what is done with it involves
  ! them and nobody else. Collective over the ranks named, who pass the same list; see tasuki.h.
  subroutine tasuki_context_subset(subset, context, ranks, stat, errmsg)
    type(tasuki_context), intent(inout) :: subset
    type(tasuki_context), intent(in) :: context
    integer, intent(in) :: ranks(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_context_subset(context%handle, size(ranks, kind=c_int), int(ranks, c_int), subset%handle), stat, errmsg)
  end subroutine

  ! Lets go. Grids, fields and operations keep the context. Where Tasuki has started MPI, the last of all ends it.
  subroutine context_free(context, stat, errmsg)
    type(tasuki_context), intent(inout) :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_context_free(context%handle), stat, errmsg)
  end subroutine

  ! This rank; -1 if stat says that there is none.
  integer function tasuki_rank(context, stat, errmsg) result(rank)
    type(tasuki_context), intent(in) :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: number
    number = -1
    call finish(c_rank(context%handle, number), stat, errmsg)
    rank = int(number)
  end function

  ! How many ranks there are; -1 if stat says that nobody knows.
  integer function tasuki_size(context, stat, errmsg) result(ranks)
    type(tasuki_context), intent(in) :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: number
    number = -1
    call finish(c_size(context%handle, number), stat, errmsg)
    ranks = int(number)
  end function

  ! Collective. Fails like a wait if a rank has died.
  subroutine tasuki_barrier(context, stat, errmsg)
    type(tasuki_context), intent(in) :: context
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_barrier(context%handle), stat, errmsg)
  end subroutine

  ! Seconds, above 0, that a wait may take before it fails. Local.
  subroutine tasuki_set_deadline(context, seconds, stat, errmsg)
    type(tasuki_context), intent(in) :: context
    real(real64), intent(in) :: seconds
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_set_deadline(context%handle, real(seconds, c_double)), stat, errmsg)
  end subroutine

  subroutine tasuki_get_deadline(context, seconds, stat, errmsg)
    type(tasuki_context), intent(in) :: context
    real(real64), intent(out) :: seconds
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    real(c_double) :: found
    found = 0
    call finish(c_deadline(context%handle, found), stat, errmsg)
    seconds = real(found, real64)
  end subroutine

  ! Ranks, hosts and islands, a line each. Local.
  subroutine tasuki_describe(context, text, stat, errmsg)
    type(tasuki_context), intent(in) :: context
    character(:), allocatable, intent(out) :: text
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: found
    found = c_null_ptr
    call finish(c_describe(context%handle, found), stat, errmsg)
    call take_text(found, text)
  end subroutine

  ! Which GPU this rank uses; makes it the current one. Collective; fails on every rank if one has no GPU.
  subroutine tasuki_use_gpu(context, ordinal, stat, errmsg)
    type(tasuki_context), intent(in) :: context
    integer, intent(out) :: ordinal
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: number
    number = -1
    call finish(c_use_gpu(context%handle, number), stat, errmsg)
    ordinal = int(number)
  end subroutine

  ! Why this process cannot use a GPU; empty if it can. Local.
  subroutine tasuki_why_no_gpu(text, stat, errmsg)
    character(:), allocatable, intent(out) :: text
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: found
    found = c_null_ptr
    call finish(c_why_no_gpu(found), stat, errmsg)
    call take_text(found, text)
  end subroutine

  ! Waits on the host for the work in a CUDA stream (c_null_ptr: the default one); fails if an exchange in it has.
  subroutine tasuki_synchronize(context, stream, stat, errmsg)
    type(tasuki_context), intent(in) :: context
    type(c_ptr), intent(in) :: stream
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_synchronize(context%handle, stream), stat, errmsg)
  end subroutine

  ! ---- for the other modules ------------------------------------------------------------------------------------------

  ! What every subroutine does with the status of a C function. names: arguments that C calls otherwise than Fortran, such
  ! as 'data=address,where=device'.
  subroutine finish(status, stat, errmsg, names)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), intent(in), optional :: names
    character(:), allocatable :: text
    if (status /= tasuki_ok) call copy_text(c_last_error(), text)
    if (.not. allocated(text)) text = ''
    if (present(names)) text = renamed(text, names)
    call finish_here(int(status), text, stat, errmsg)
  end subroutine

  ! An error's text with Fortran's names of arguments, which stand in quotes.
  function renamed(text, names)
    character(*), intent(in) :: text, names
    character(:), allocatable :: renamed, rest, pair
    integer :: middle, at
    renamed = text
    rest = names//','
    do while (len(rest) > 0)
      pair = rest(:index(rest, ',') - 1)
      rest = rest(index(rest, ',') + 1:)
      middle = index(pair, '=')
      at = index(renamed, ''''//pair(:middle - 1)//'''')
      if (at > 0) renamed = renamed(:at)//pair(middle + 1:)//renamed(at + middle:)
    end do
  end function

  ! The same for what is found in Fortran; 0 is no failure.
  subroutine finish_here(status, text, stat, errmsg)
    integer, intent(in) :: status
    character(*), intent(in) :: text
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (present(stat)) stat = status
    if (status == tasuki_ok) return
    if (present(errmsg)) errmsg = text
    if (present(stat)) return
    write (error_unit, '(2a)') 'tasuki: ', text
    error stop 1
  end subroutine

  ! A text that C has handed out, which is given back; empty if there is none.
  subroutine take_text(from, text)
    type(c_ptr), intent(in) :: from
    character(:), allocatable, intent(out) :: text
    call copy_text(from, text)
    call c_text_free(from)
  end subroutine

  subroutine copy_text(from, text)
    type(c_ptr), intent(in) :: from
    character(:), allocatable, intent(out) :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    text = ''
    if (.not. c_associated(from)) return
    call c_f_pointer(from, letters, [c_strlen(from)])
    deallocate (text)
    allocate (character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end subroutine

  ! The address of a text for C, which lives as long as `letters`; null for a text that is not given.
  type(c_ptr) function c_text(letters, text) result(address)
    character(kind=c_char), allocatable, target, intent(out) :: letters(:)
    character(*), intent(in), optional :: text
    integer :: i, length
    address = c_null_ptr
    if (.not. present(text)) return
    length = len_trim(text)
    allocate (letters(length + 1))
    do i = 1, length
      letters(i) = text(i:i)
    end do
    letters(length + 1) = c_null_char
    address = c_loc(letters)
  end function

  ! A logical that may not be given, for C.
  integer(c_int) function flag(value, otherwise)
    logical, intent(in), optional :: value
    integer, intent(in) :: otherwise
    flag = int(otherwise, c_int)
    if (present(value)) flag = merge(1_c_int, 0_c_int, value)
  end function

end module
