! Operators of reductions in the module tasuki: those that Tasuki knows, and functions of the user's.
module tasuki_operators
  use, intrinsic :: iso_c_binding
  use tasuki_structs, only: c_options => c_collective_options
  use tasuki_base
  implicit none
  private

  integer, parameter :: longest_name = 127, own = 12

  ! Argument op of reductions: one of those below, or what tasuki_operator_create makes.
  type, public :: tasuki_operator
    private
    integer(c_int) :: number = -1
    type(c_funptr) :: combine = c_null_funptr
    type(c_ptr) :: data = c_null_ptr
    character(longest_name) :: name = ' '
    logical :: commutes = .true.
    integer(c_int64_t) :: record = 1
  end type

  ! Which types each is for is said in dtype.hpp.
  type(tasuki_operator), parameter, public :: tasuki_sum = tasuki_operator(0), tasuki_product = tasuki_operator(1), &
      tasuki_min = tasuki_operator(2), tasuki_max = tasuki_operator(3), tasuki_band = tasuki_operator(4), &
      tasuki_bor = tasuki_operator(5), tasuki_bxor = tasuki_operator(6), tasuki_land = tasuki_operator(7), &
      tasuki_lor = tasuki_operator(8), tasuki_lxor = tasuki_operator(9), tasuki_minloc = tasuki_operator(10), &
      tasuki_maxloc = tasuki_operator(11)

  ! left(i) = left(i) op right(i) for count elements of the reduction's type, whose addresses these are (c_f_pointer).
  ! Associative. The thread that drives the operation calls it (engine 'thread': Tasuki's own), any number of times for
  ! parts of the vector. It must not use Tasuki. data: what tasuki_operator_create was given.
  abstract interface
    subroutine tasuki_combine(right, left, count, data) bind(c)
      import
      type(c_ptr), value :: right, left, data
      integer(c_int64_t), value :: count
    end subroutine
  end interface
  public :: tasuki_combine, tasuki_operator_create
  public :: set_reduction, number_of ! for the other modules of this library

contains

  ! An operator of the user's own, for host memory. name: what plans and errors call it, the same on all ranks; at most 127
  ! letters. commutes (true): if not, reductions combine in rank order. data: an address that `combine` is handed, which
  ! lives as long as the reductions. record (1): so many numbers of the reduction's type are combined together, as one
  ! element; counts are then counts of these, and each contiguous run of a layout is a whole number of them. Local.
  subroutine tasuki_operator_create(op, name, combine, commutes, data, record, stat, errmsg)
    type(tasuki_operator), intent(inout) :: op
    character(*), intent(in) :: name
    procedure(tasuki_combine) :: combine
    logical, intent(in), optional :: commutes
    type(c_ptr), intent(in), optional :: data
    integer(c_int64_t), intent(in), optional :: record
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (len_trim(name) == 0 .or. len_trim(name) > longest_name) then
      call finish_here(tasuki_bad_argument, 'tasuki_operator_create: name must have 1 to 127 letters', stat, errmsg)
      return
    end if
    if (present(record)) then
      if (record < 1) then
        call finish_here(tasuki_bad_argument, 'tasuki_operator_create: record must be at least 1', stat, errmsg)
        return
      end if
    end if
    op%number = own
    op%name = name
    op%combine = c_funloc(combine)
    op%commutes = .true.
    if (present(commutes)) op%commutes = commutes
    op%data = c_null_ptr
    if (present(data)) op%data = data
    op%record = 1
    if (present(record)) op%record = record
    call finish_here(tasuki_ok, '', stat, errmsg)
  end subroutine

  ! The operator's number for C.
  integer(c_int) function number_of(op)
    type(tasuki_operator), intent(in) :: op
    number_of = op%number
  end function

  ! What options for C say of a reduction; returns the operator's number for C.
  integer(c_int) function set_reduction(options, kept, op, ordered) result(number)
    type(c_options), intent(inout) :: options
    type(kept_texts), target, intent(inout) :: kept
    type(tasuki_operator), intent(in) :: op
    logical, intent(in), optional :: ordered
    options%ordered = flag(ordered, 0)
    number = op%number
    if (number /= own) return
    options%combine = op%combine
    options%combine_name = c_text(kept%combine, op%name)
    options%combine_data = op%data
    options%does_not_commute = merge(0_c_int, 1_c_int, op%commutes)
    options%combine_record = op%record
  end function

end module
