! Grids and fields: Fortran's order of dimensions, views, the caller's arrays.
module field_tests
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use tasuki
  use checks
  implicit none

contains

  subroutine test_fields(ranks)
    type(tasuki_context), intent(in) :: ranks
    call test_grid(ranks)
    call test_views(ranks)
    call test_wrap(ranks)
  end subroutine

  subroutine test_grid(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_grid) :: grid
    type(tasuki_box) :: box
    integer, allocatable :: split(:), coords(:)
    integer :: n, rank, back, stat
    integer(int64) :: cells
    character(200) :: errmsg
    errmsg = ''
    n = tasuki_size(ranks)
    call tasuki_grid_create(grid, ranks, [7, 13, 5], split=[1, n, 1], periodic=[.true., .false., .false.])
    call tasuki_get_split(grid, split)
    call check(all(split == [1, n, 1]), 'the split in Fortran''s order')
    cells = 0
    do rank = 0, n - 1
      call tasuki_get_coords(grid, rank, coords)
      call tasuki_get_rank_at(grid, coords, back)
      call check(all(coords == [0, rank, 0]) .and. back == rank, 'coordinates in Fortran''s order')
      call tasuki_get_box(grid, box, rank)
      call check(box%ndims == 3 .and. box%lower(1) == 1 .and. box%upper(1) == 7 .and. box%upper(3) == 5, 'a box')
      call check(box%lower(2) == cells + 1, 'boxes that follow each other')
      cells = box%upper(2)
    end do
    call check(cells == 13, 'boxes that cover the grid')
    call tasuki_get_rank_at(grid, [0, 0], back, stat, errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'an entry for each dimension')
    call tasuki_get_rank_at(grid, [0, n, 0], back, stat, errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'coord')
    call tasuki_free(grid)
    call tasuki_free(grid, stat, errmsg)
    call check_failure(stat, errmsg, tasuki_bad_handle, 'null')
    call test_mapping(ranks)
    call tasuki_grid_create(grid, ranks, [7, 13], split=[1], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'split needs an entry')
    call tasuki_grid_create(grid, ranks, [7_int64, -1_int64], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'extent')
    call tasuki_grid_create(grid, ranks, [integer ::], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, '''ndims'' is 0')
  end subroutine

  subroutine test_mapping(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_grid) :: grid
    integer, allocatable :: coords(:)
    integer :: n, i, stat
    character(200) :: errmsg
    errmsg = ''
    n = tasuki_size(ranks)
    call tasuki_grid_create(grid, ranks, [7, 13], split=[1, n], mapping='given', given=[(n - i, i=1, n)])
    call tasuki_get_coords(grid, 0, coords)
    call check(all(coords == [0, n - 1]), 'the mapping that was given')
    call tasuki_free(grid)
    if (mod(n, 2) == 0 .and. n > 2) then
      call tasuki_grid_create(grid, ranks, [8, 13], split=[2, n/2], mapping='row')
      call tasuki_get_coords(grid, 1, coords)
      call check(all(coords == [0, 1]), 'row: the last dimension fastest')
      call tasuki_free(grid)
      call tasuki_grid_create(grid, ranks, [8, 13], split=[2, n/2], mapping='column')
      call tasuki_get_coords(grid, 1, coords)
      call check(all(coords == [1, 0]), 'column: the first dimension fastest')
      call tasuki_free(grid)
    end if
    call tasuki_grid_create(grid, ranks, [7, 13], mapping='given', given=[(n, i=1, n)], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'names rank')
    call tasuki_grid_create(grid, ranks, [7, 13], mapping='given', given=[(i, i=0, n)], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'given needs an entry for each rank')
    call tasuki_grid_create(grid, ranks, [7, 13], mapping='spiral', stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, '''spiral''')
  end subroutine

  ! Every type, ranks 1 to 4, with padding and shadows that differ.
  subroutine test_views(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_grid) :: grid
    type(tasuki_field) :: field
    type(tasuki_box) :: box
    real(real64), pointer :: a1(:), a2(:, :), b2(:, :), a3(:, :, :)
    real(real32), pointer :: s3(:, :, :)
    integer(int32), pointer :: i2(:, :)
    integer(int64), pointer :: l4(:, :, :, :)
    integer :: stat, copy
    character(200) :: errmsg
    errmsg = ''
    call tasuki_grid_create(grid, ranks, [23])
    call tasuki_field_create(field, grid, tasuki_real64, shadow=2)
    call tasuki_view(field, a1)
    call tasuki_get_box(field, box)
    call check(lbound(a1, 1) == -1 .and. ubound(a1, 1) == box%upper(1) - box%lower(1) + 3, 'bounds of a view')
    call tasuki_free(field)
    call tasuki_free(grid)

    call tasuki_grid_create(grid, ranks, [9, 11])
    call tasuki_get_box(grid, box)
    call tasuki_field_create(field, grid, tasuki_real64, name='p', lower=[1, 2], upper=[3, 0], copies=2, pad=5)
    call tasuki_view(field, a2)
    call check(all(lbound(a2) == [0, -1]), 'lower bounds of a view with shadows that differ')
    call check(all(ubound(a2) == box%upper(:2) - box%lower(:2) + 1 + [3, 0]), 'upper bounds of such a view')
    a2 = 1
    call tasuki_view(field, b2, copy=2)
    call check(all(b2 == 0), 'the second copy is another')
    call tasuki_get_current(field, copy)
    call check(copy == 1, 'the first copy is shown')
    call tasuki_swap(field)
    call tasuki_view(field, b2)
    call tasuki_get_current(field, copy)
    call check(copy == 2 .and. all(b2 == 0), 'the second copy is shown')
    call tasuki_view(field, b2, 1)
    call check(associated(b2, a2), 'a view of a copy is always the same')
    call tasuki_view(field, b2, 3, stat, errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'copy')
    call check(.not. associated(b2), 'no view where there is no copy')
    call tasuki_view(field, a3, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'another type or rank')
    call tasuki_view(field, i2, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'another type or rank')
    call tasuki_free(field)
    call tasuki_field_create(field, grid, tasuki_int32)
    call tasuki_view(field, i2)
    i2 = 7
    call tasuki_free(field)
    call tasuki_field_create(field, grid, tasuki_real64, lower=[1], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'an entry for each dimension')
    call tasuki_field_create(field, grid, 99, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, '''type'' is 99')
    call tasuki_free(grid)

    call tasuki_grid_create(grid, ranks, [5, 6, 7])
    call tasuki_field_create(field, grid, tasuki_real32)
    call tasuki_view(field, s3)
    call check(all(lbound(s3) == 0), 'a view of three dimensions')
    call tasuki_free(field)
    call tasuki_free(grid)
    call tasuki_grid_create(grid, ranks, [3, 4, 5, 6])
    call tasuki_field_create(field, grid, tasuki_int64, shadow=0)
    call tasuki_view(field, l4)
    call check(all(lbound(l4) == 1), 'a view of four dimensions')
    call tasuki_free(field)
    call tasuki_free(grid)
  end subroutine

  subroutine test_wrap(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_grid) :: grid
    type(tasuki_field) :: field
    type(tasuki_box) :: box
    type(c_ptr) :: address
    real(real32), allocatable, target :: first(:, :), second(:, :), large(:, :)
    real(real32), pointer :: view(:, :)
    integer :: stat, n(2)
    character(200) :: errmsg
    errmsg = ''
    call tasuki_grid_create(grid, ranks, [10, 9])
    call tasuki_get_box(grid, box)
    n = int(box%upper(:2) - box%lower(:2)) + 1
    allocate (first(0:n(1) + 1, 0:n(2) + 1), second(0:n(1) + 1, 0:n(2) + 1), large(n(1) + 9, n(2) + 9))
    call tasuki_wrap(field, grid, first, second, name='mine')
    call tasuki_view(field, view)
    call check(associated(view, first) .and. lbound(view, 1) == 0, 'a field in the caller''s array')
    call tasuki_swap(field)
    call tasuki_get_address(field, address)
    call check(c_associated(address, c_loc(second)), 'and in the second one')
    call tasuki_free(field)
    call tasuki_wrap(field, grid, large, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'cells; it needs')
    call tasuki_wrap(field, grid, large(::2, :), stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'not contiguous')
    call tasuki_free(grid)
  end subroutine

end module
