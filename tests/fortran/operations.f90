! Halos, transfers, broadcasts, in Fortran's order, the values of each exchange being others.
module operation_tests
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use tasuki
  use checks
  implicit none
  integer, parameter :: nx = 9, ny = 13, epochs = 4

contains

  subroutine test_operations(ranks)
    type(tasuki_context), intent(in) :: ranks
    call test_halo(ranks)
    call test_transfer(ranks)
    call test_broadcast(ranks)
  end subroutine

  ! The value of a global cell; the grid is periodic in the first dimension only.
  elemental real(real64) function value(i, j, epoch)
    integer, intent(in) :: i, j, epoch
    value = modulo(i - 1, nx) + 1 + 100 * j + 10000 * epoch
  end function

  ! All cells of the current copy, before a halo may write into its shadow.
  subroutine clear(field)
    type(tasuki_field), intent(in) :: field
    real(real64), pointer :: a(:, :)
    call tasuki_view(field, a)
    a = -1
  end subroutine

  ! The cells that this rank owns. With `alternating`, neighbours may have written the shadow already.
  subroutine fill(field, epoch)
    type(tasuki_field), intent(in) :: field
    integer, intent(in) :: epoch
    type(tasuki_box) :: box
    real(real64), pointer :: a(:, :)
    integer :: i, j
    call tasuki_view(field, a)
    call tasuki_get_box(field, box)
    do j = 1, int(box%upper(2) - box%lower(2)) + 1
      do i = 1, int(box%upper(1) - box%lower(1)) + 1
        a(i, j) = value(int(box%lower(1)) + i - 1, int(box%lower(2)) + j - 1, epoch)
      end do
    end do
  end subroutine

  ! Cells that are not what an exchange of `width` layers leaves.
  integer function wrong_cells(field, epoch, width, corners) result(wrong)
    type(tasuki_field), intent(in) :: field
    integer, intent(in) :: epoch, width
    logical, intent(in) :: corners
    type(tasuki_box) :: box
    real(real64), pointer :: a(:, :)
    real(real64) :: expected
    integer :: i, j, n(2), at(2), outside(2)
    call tasuki_view(field, a)
    call tasuki_get_box(field, box)
    n = int(box%upper(:2) - box%lower(:2)) + 1
    wrong = 0
    do j = lbound(a, 2), ubound(a, 2)
      do i = lbound(a, 1), ubound(a, 1)
        outside = max(1 - [i, j], [i, j] - n, 0)
        at = int(box%lower(:2)) + [i, j] - 1
        expected = value(at(1), at(2), epoch)
        if (any(outside > width) .or. at(2) < 1 .or. at(2) > ny) expected = -1
        if (all(outside > 0) .and. .not. corners) expected = -1
        if (a(i, j) /= expected) wrong = wrong + 1
      end do
    end do
  end function

  ! Mirrors at both ends of the second dimension, which is the slowest in memory; the first one is periodic.
  subroutine test_edges(field)
    type(tasuki_field), intent(in) :: field
    type(tasuki_operation) :: halo
    type(tasuki_box) :: box
    real(real64), pointer :: a(:, :)
    integer :: epoch, n, stat
    character(300) :: errmsg
    errmsg = ''
    call tasuki_halo_create(halo, field, edges='j=face', stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'which is periodic')
    call tasuki_halo_create(halo, field, width=1, edges='p: i=-face/cell')
    call check_operation(halo)
    call tasuki_view(field, a)
    call tasuki_get_box(field, box)
    n = int(box%upper(2) - box%lower(2)) + 1
    do epoch = 1, epochs
      call clear(field)
      call fill(field, epoch)
      call run(halo)
      if (n > 0 .and. box%lower(2) == 1) call check(all(a(0:ubound(a, 1) - 1, 0) == -a(0:ubound(a, 1) - 1, 1)), &
          'a wall that changes signs')
      if (n > 0 .and. box%upper(2) == ny) call check(all(a(0:ubound(a, 1) - 1, n + 1) == a(0:ubound(a, 1) - 1, n - 1)), &
          'a mirror in the middle of a cell')
    end do
    call tasuki_free(halo)
  end subroutine

  subroutine test_halo(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_grid) :: grid
    type(tasuki_field) :: fields(2)
    type(tasuki_operation) :: halo, other
    type(tasuki_box), allocatable :: edges(:)
    type(tasuki_box) :: inner, box
    integer :: epoch, e, stat
    integer(int64) :: cells
    logical :: corners, ended
    character(300) :: errmsg
    errmsg = ''
    call tasuki_grid_create(grid, ranks, [nx, ny], periodic=[.true., .false.])
    call tasuki_field_create(fields(1), grid, tasuki_real64, name='p', shadow=2, copies=2)
    call tasuki_field_create(fields(2), grid, tasuki_real64, name='q', shadow=1, copies=2, pad=3)
    do e = 0, 1
      corners = e == 1
      do epoch = 1, 2  ! both copies
        call clear(fields(1))
        call clear(fields(2))
        call tasuki_swap(fields(1))
        call tasuki_swap(fields(2))
      end do
      call tasuki_halo_create(halo, fields, width=1, corners=corners, alternating=.true., engine='inline')
      call check_operation(halo)
      do epoch = 1, epochs
        call tasuki_swap(fields(1))
        call tasuki_swap(fields(2))
        call fill(fields(1), epoch)
        call fill(fields(2), epoch + 10)
        call tasuki_start(halo)
        if (mod(epoch, 2) == 0) then
          do
            call tasuki_test(halo, ended)
            if (ended) exit
          end do
        else
          call tasuki_wait(halo)
        end if
        call check(wrong_cells(fields(1), epoch, 1, corners) == 0, 'the halo of a shadow wider than the exchange')
        call check(wrong_cells(fields(2), epoch + 10, 1, corners) == 0, 'the halo of a padded field')
      end do
      call tasuki_start(halo, stat=stat, errmsg=errmsg)
      call check_failure(stat, errmsg, tasuki_bad_argument, 'swap exactly once')
      call tasuki_free(fields(1), stat, errmsg)
      call check_failure(stat, errmsg, tasuki_bad_argument, 'free that first')
      call tasuki_free(halo)
    end do

    call tasuki_halo_create(halo, fields(1), engine='thread', lower=[2, 2])
    call check_operation(halo)
    do epoch = 1, epochs
      call fill(fields(1), epoch)
      call run(halo)
      call check(wrong_cells(fields(1), epoch, 2, .true.) == 0, 'a halo of all of the shadow')
    end do
    call tasuki_run(halo, c_null_ptr, stat, errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'streams are for')
    call tasuki_free(halo)
    call test_edges(fields(1))

    call tasuki_get_boundary(fields(1), edges, width=1)
    call tasuki_get_interior(fields(1), inner, width=1)
    call tasuki_get_box(fields(1), box)
    cells = product(max(inner%upper(:2) - inner%lower(:2) + 1, 0_int64))
    do e = 1, size(edges)
      call check(all(edges(e)%lower(:2) >= 1), 'a box in indices of the view')
      cells = cells + product(edges(e)%upper(:2) - edges(e)%lower(:2) + 1)
    end do
    call check(cells == product(box%upper(:2) - box%lower(:2) + 1), 'boundary and interior are all owned cells')

    call tasuki_halo_create(other, fields(1), path='pigeon', stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'pigeon')
    call tasuki_halo_create(other, fields(1), lower=[1], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'an entry for each dimension')
    call tasuki_free(halo, stat, errmsg)
    call check_failure(stat, errmsg, tasuki_bad_handle, 'null')
    if (tasuki_size(ranks) > 1) then
      call tasuki_halo_create(other, fields, corners=tasuki_rank(ranks) == 0, stat=stat, errmsg=errmsg)
      call check_failure(stat, errmsg, tasuki_disagreement, '''corners'' differs between ranks')
    end if
    call tasuki_free(fields(1))
    call tasuki_free(fields(2))
    call tasuki_free(grid)
  end subroutine

  ! A row of the first rank's matrix, which Fortran has scattered, becomes contiguous on the last rank.
  subroutine test_transfer(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_layout) :: number, row, list, same
    type(tasuki_memory) :: memory
    type(tasuki_operation) :: transfer
    type(c_ptr) :: address
    real(real64), pointer :: matrix(:, :)
    real(real64), target :: received(ny)
    integer :: epoch, i, j, last
    call tasuki_layout_bytes(number, 8)
    call tasuki_layout_subarray(row, [nx, ny], [3, 1], [3, ny], number)
    call tasuki_layout_contiguous(list, ny, number)
    call tasuki_layout_vector(same, ny, 1, int(nx, int64), number)
    call check(tasuki_layout_size(row) == 8 * ny, 'the bytes of a row')
    call check(tasuki_layout_extent(row) == 8 * nx * ny, 'the extent of a row''s layout')
    call check(tasuki_layout_size(same) == 8 * ny, 'a vector')
    call tasuki_shared_alloc(memory, ranks, int(8 * nx * ny, int64))
    call tasuki_get_memory(memory, address)
    call c_f_pointer(address, matrix, [nx, ny])
    last = tasuki_size(ranks) - 1
    call tasuki_transfer_create(transfer, ranks, 0, c_loc(matrix), row, last, c_loc(received), list)
    call check_operation(transfer)
    do epoch = 1, epochs
      received = -1
      do j = 1, ny
        do i = 1, nx
          matrix(i, j) = value(i, j, epoch)
        end do
      end do
      call run(transfer)
      if (tasuki_rank(ranks) == last) call check(all(received == value(3, [(j, j=1, ny)], epoch)), 'a row that arrives')
    end do
    call tasuki_free(transfer)
    call tasuki_free(memory)
    call tasuki_free(number)
    call tasuki_free(row)
    call tasuki_free(list)
    call tasuki_free(same)
  end subroutine

  subroutine test_broadcast(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: broadcast
    real(real64), target :: numbers(101)
    real(real64), allocatable :: all_numbers(:, :)
    integer :: epoch, i, root, stat
    character(200) :: errmsg
    character(:), allocatable :: text
    errmsg = ''
    root = tasuki_size(ranks) - 1
    call tasuki_broadcast_create(broadcast, ranks, root, c_loc(numbers), int(8 * size(numbers), int64), chunk=64_int64)
    call check_operation(broadcast)
    allocate (all_numbers(2, root + 1))
    do epoch = 1, epochs
      numbers = -1
      if (tasuki_rank(ranks) == root) numbers = [(value(i, i, epoch), i=1, size(numbers))]
      call run(broadcast)
      call check(all(numbers == [(value(i, i, epoch), i=1, size(numbers))]), 'a broadcast')
      call tasuki_allgather(ranks, [numbers(epoch), real(tasuki_rank(ranks), real64)], all_numbers)
      call check(all(all_numbers(1, :) == value(epoch, epoch, epoch)), 'what all ranks have')
      call check(all(nint(all_numbers(2, :)) == [(i, i=0, root)]), 'in the order of ranks')
    end do
    call tasuki_free(broadcast)
    call tasuki_broadcast_create(broadcast, ranks, root, c_loc(numbers), 8_int64, algorithm='binomial')
    call tasuki_explain(broadcast, text)
    call check(index(text, 'algorithm: binomial, which was asked for') > 0, 'the algorithm of a broadcast')
    call tasuki_free(broadcast)
    call tasuki_broadcast_create(broadcast, ranks, root, c_loc(numbers), 8_int64, tune=2, correct=.false.)
    call tasuki_explain(broadcast, text)
    if (tasuki_size(ranks) == 2) call check(index(text, 'tried for option') > 0, 'a tuned broadcast')
    call tasuki_free(broadcast)
    call tasuki_broadcast_create(broadcast, ranks, root, c_loc(numbers), 8_int64, algorithm='smoke', stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'no algorithm ''smoke''')
    call tasuki_broadcast_create(broadcast, ranks, -1, c_loc(numbers), 8_int64, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'root')
    call tasuki_broadcast_create(broadcast, ranks, root, c_null_ptr, 8_int64, stat=stat, errmsg=errmsg)
    call check(stat /= tasuki_ok .and. index(errmsg, '''address'' is null') > 0, 'an argument''s name in Fortran')
  end subroutine

end module
