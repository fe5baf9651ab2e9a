! Kernels of a program in Fortran: a file in C++ takes its handles (tests/c/kernel.cpp).
module kernel_tests
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_loc, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki
  use checks
  implicit none
  private
  public :: test_kernels

  interface
    integer(c_int) function pass_on_by_kernel(ranks, operation, layout, from, to, why, room) bind(c)
      import :: c_char, c_double, c_int, c_ptr, c_size_t
      type(c_ptr), value :: ranks, operation, layout
      real(c_double) :: from(*), to(*)
      character(kind=c_char) :: why(*)
      integer(c_size_t), value :: room
    end function
  end interface

contains

  subroutine test_kernels(ranks)
    type(tasuki_context), intent(in) :: ranks
    integer, parameter :: n = 5
    real(c_double), target :: matrix(4, n), row(n), mine(1), total(1)
    character(kind=c_char) :: why(200)
    type(tasuki_operation) :: sums
    type(tasuki_layout) :: layout
    integer :: size, rank, i, j
    size = tasuki_size(ranks)
    rank = tasuki_rank(ranks)
    matrix = reshape([((real(100*rank + 10*i + j, c_double), i=1, 4), j=1, n)], [4, n])
    mine = rank + 1
    call tasuki_allreduce_create(sums, ranks, c_loc(mine), c_loc(total), 1_int64, tasuki_real64, tasuki_sum)
    call tasuki_layout_of(layout, matrix(2, :))
    call check(pass_on_by_kernel(ranks%handle, sums%handle, layout%handle, matrix(2, 1), row, why, 200_c_size_t) == 0, &
        'a kernel that sends a row')
    call check(total(1) == 0.5_c_double*size*(size + 1), 'an operation that C++ has run')
    rank = modulo(rank - 1, size)
    call check(all(row == [(real(100*rank + 20 + j, c_double), j=1, n)]), 'a row that a kernel has received')
    call check(pass_on_by_kernel(ranks%handle, c_null_ptr, layout%handle, matrix(2, 1), row, why, 200_c_size_t) == 1, &
        'a null handle in C++')
    call tasuki_free(sums)
    call tasuki_free(layout)
  end subroutine

end module
