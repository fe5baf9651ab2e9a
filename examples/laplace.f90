! Laplace's equation on a square with a hot side, in Fortran: Jacobi's iteration, the halo exchanged while the interior
! is computed. Run it on any number of ranks; the result is bit for bit that of the serial run, which every rank makes
! itself to compare.
program laplace
  use, intrinsic :: iso_fortran_env, only: real64
  use tasuki
  implicit none
  integer, parameter :: nx = 37, ny = 45, steps = 60
  type(tasuki_context) :: ranks
  type(tasuki_grid) :: grid
  type(tasuki_field) :: u
  type(tasuki_operation) :: halo
  type(tasuki_box) :: mine, inner
  type(tasuki_box), allocatable :: edges(:)
  real(real64), pointer :: old(:, :), new(:, :), swapped(:, :)
  real(real64) :: serial(0:nx + 1, 0:ny + 1), previous(0:nx + 1, 0:ny + 1)
  integer :: copy, step, e, wrong

  call tasuki_init(ranks) ! starts MPI
  call tasuki_grid_create(grid, ranks, [nx, ny])
  call tasuki_field_create(u, grid, tasuki_real64, copies=2) ! old and new, one cell of shadow
  call tasuki_halo_create(halo, u, corners=.false., alternating=.true.) ! five points; one swap between two starts
  call tasuki_get_box(u, mine) ! global indices of this rank's cells
  call tasuki_get_boundary(u, edges)
  call tasuki_get_interior(u, inner)

  serial = 0
  serial(:, 0) = [(1.0_real64 + e, e=0, nx + 1)] ! the hot side is nobody's to compute: it is in both copies
  do copy = 1, 2
    call tasuki_view(u, new, copy) ! new(1, 1) is this rank's first cell, new(0, :) and new(:, 0) are shadow
    if (mine%lower(2) == 1) new(:, 0) = serial(mine%lower(1) - 1:mine%upper(1) + 1, 0)
  end do
  call tasuki_view(u, old, 1)
  call tasuki_start(halo)
  call tasuki_wait(halo)
  do step = 1, steps
    call tasuki_swap(u)
    do e = 1, size(edges)
      call relax(new, old, edges(e))
    end do
    call tasuki_start(halo)
    call relax(new, old, inner)
    call tasuki_wait(halo)
    swapped => old
    old => new
    new => swapped
    previous = serial
    serial(1:nx, 1:ny) = 0.25_real64*((previous(0:nx - 1, 1:ny) + previous(2:nx + 1, 1:ny)) &
        + (previous(1:nx, 0:ny - 1) + previous(1:nx, 2:ny + 1)))
  end do

  wrong = count(old(1:ubound(old, 1) - 1, 1:ubound(old, 2) - 1) /= &
      serial(mine%lower(1):mine%upper(1), mine%lower(2):mine%upper(2)))
  print '(a, i0, a, i0, a)', 'rank ', tasuki_rank(ranks), ': ', wrong, ' cells differ from the serial run'
  call tasuki_free(halo)
  call tasuki_free(u)
  call tasuki_free(grid)
  call tasuki_free(ranks) ! ends MPI
  if (wrong > 0) error stop 1

contains

  subroutine relax(after, before, box)
    real(real64), pointer, intent(in) :: after(:, :), before(:, :)
    type(tasuki_box), intent(in) :: box
    integer :: i, j
    do j = int(box%lower(2)), int(box%upper(2))
      do i = int(box%lower(1)), int(box%upper(1))
        after(i, j) = 0.25_real64*((before(i - 1, j) + before(i + 1, j)) + (before(i, j - 1) + before(i, j + 1)))
      end do
    end do
  end subroutine
end program
