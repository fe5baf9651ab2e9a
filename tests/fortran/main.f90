! Runs the tests of the Fortran module on the ranks of MPI. With the argument `stop`: a failure without stat, which ends
! the program with its message.
program fortran_tests
  use, intrinsic :: iso_fortran_env, only: real64
#ifdef TASUKI_HAVE_MPI_F08
  use mpi_f08, only: MPI_COMM_WORLD, MPI_COMM_NULL
#endif
  use tasuki
  use checks
  use field_tests
  use operation_tests
  use exchange_tests
  use kernel_tests
  use redistribution_tests
  use collective_tests
  use collective_layout_tests
  implicit none
  type(tasuki_context) :: ranks, again
  type(tasuki_operation) :: none
  character(:), allocatable :: text
  character(200) :: errmsg
  character(8) :: argument
  real(real64) :: seconds
  integer :: stat, number

  call get_command_argument(1, argument)
  if (argument == 'stop') call tasuki_start(none)
  errmsg = 'untouched'
  number = tasuki_rank(ranks, stat, errmsg)
  call check(number == -1, 'no rank without a context')
  call check_failure(stat, errmsg, tasuki_bad_handle, 'null')
  call tasuki_init(ranks, stat, errmsg)
  call check(stat == tasuki_ok .and. errmsg == '', 'success leaves errmsg alone')
  call tasuki_set_deadline(ranks, 12.5_real64)
  call tasuki_get_deadline(ranks, seconds)
  call check(abs(seconds - 12.5_real64) < 1e-9_real64, 'the deadline')
  call tasuki_set_deadline(ranks, -1.0_real64, stat, errmsg)
  call check_failure(stat, errmsg, tasuki_bad_argument, '''seconds'' is -1')
  call tasuki_describe(ranks, text)
  call check(index(text, 'rank 0: host') > 0, 'a description')
  call tasuki_barrier(ranks)
  call tasuki_why_no_gpu(text)
  call tasuki_use_gpu(ranks, number, stat, errmsg)
  call check(len(text) == 0 .or. stat == tasuki_not_possible, 'without a GPU it cannot be used')
  call tasuki_context_create(again, -12345, stat, errmsg)
  call check(stat == tasuki_bad_argument .or. stat == tasuki_system, 'a number that is no communicator')
#ifdef TASUKI_HAVE_MPI_F08
  call tasuki_context_create(again, MPI_COMM_WORLD)
  call check(tasuki_size(again) == tasuki_size(ranks), 'a context over a type(MPI_Comm)')
  call tasuki_free(again)
  call tasuki_context_create(again, MPI_COMM_WORLD%MPI_VAL)
  call tasuki_free(again)
  call tasuki_context_create(again, MPI_COMM_NULL, stat, errmsg)
  call check_failure(stat, errmsg, tasuki_bad_argument, 'MPI_COMM_NULL')
#endif
  call tasuki_context_subset(again, ranks, [(number, number=tasuki_size(ranks) - 1, 0, -1)])
  call check(tasuki_rank(again) == tasuki_size(ranks) - 1 - tasuki_rank(ranks), 'a subset counts as it is listed')
  call test_fields(again)
  call tasuki_free(again)
  call tasuki_context_subset(again, ranks, [tasuki_rank(ranks), tasuki_rank(ranks)], stat, errmsg)
  call check_failure(stat, errmsg, tasuki_bad_argument, 'twice')
  call test_fields(ranks)
  call test_operations(ranks)
  call test_exchanges(ranks)
  call test_kernels(ranks)
  call test_redistributions(ranks)
  call test_collectives(ranks)
  call test_collective_layouts(ranks)
  call tasuki_free(ranks)
  call tasuki_free(ranks, stat, errmsg)
  call check(stat == tasuki_bad_handle, 'a context that is freed')
  if (.not. all_well) error stop 1
end program
