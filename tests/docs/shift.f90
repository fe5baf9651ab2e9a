! The example operation of docs/extending.md from Fortran: blocks go round the ring, and a wrong count is refused. What
! is written for the example stands in for the library's own module of that name.
program shift_fortran
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real32
  use tasuki_base
  use tasuki_fields, only: tasuki_real32
  use tasuki_making, only: tasuki_shift_create
  use tasuki_operations
  implicit none
  integer, parameter :: count = 1237
  type(tasuki_context) :: ranks
  type(tasuki_operation) :: shift, none
  real(real32), target :: from(count), to(count)
  character(200) :: errmsg
  integer :: me, n, epoch, i, stat

  call tasuki_init(ranks)
  me = tasuki_rank(ranks)
  n = tasuki_size(ranks)
  call tasuki_shift_create(shift, ranks, 1, c_loc(from), c_loc(to), int(count, int64), tasuki_real32, engine='inline')
  do epoch = 1, 3
    from = [(1000.0 * me + i + 0.25 * epoch, i=1, count)]
    call tasuki_start(shift)
    call tasuki_wait(shift)
    if (any(abs(to - [(1000.0 * modulo(me - 1, n) + i + 0.25 * epoch, i=1, count)]) > 0)) error stop 'an element that came'
  end do
  call tasuki_shift_create(none, ranks, 1, c_loc(from), c_loc(to), -3_int64, tasuki_real32, stat=stat, errmsg=errmsg)
  if (stat /= tasuki_bad_argument .or. index(errmsg, '''count'' is -3') == 0) error stop 'a count below 0'
  call tasuki_free(shift)
  call tasuki_free(ranks)
end program
