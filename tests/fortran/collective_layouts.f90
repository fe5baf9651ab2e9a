! Collectives of memory that is not contiguous, and neighbour collectives, from Fortran, the values of each epoch being
! others. Sections of arrays differ between the sides and between the ranks.
module collective_layout_tests
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use tasuki
  use checks
  use collective_tests, only: value, blocks_of
  implicit none
  integer, parameter :: epochs = 3, n = 4

contains

  subroutine test_collective_layouts(ranks)
    type(tasuki_context), intent(in) :: ranks
    call test_sections()
    call test_vectors(ranks)
    call test_many_blocks(ranks)
    call test_neighbours(ranks)
    call test_wrong_layouts(ranks)
  end subroutine

  ! The bytes that a layout names, from the first element on, are those that Fortran names.
  subroutine test_sections()
    real(real32), target :: cube(3, 5, 2), none(0, 4)
    integer(int32), target :: list(9)
    type(tasuki_layout) :: layout
    call tasuki_layout_of(layout, cube(1:3:2, 5:1:-2, :))
    call check(tasuki_layout_size(layout) == 2 * 3 * 2 * 4, 'a section of three dimensions')
    call tasuki_free(layout)
    call tasuki_layout_of(layout, none)
    call check(tasuki_layout_size(layout) == 0, 'a section of nothing')
    call tasuki_free(layout)
    call tasuki_layout_of(layout, list(2:8:3))
    call check(tasuki_layout_size(layout) == 12, 'a section of one dimension')
    call check(tasuki_layout_extent(layout) == 28, 'the extent of a section')
    call tasuki_free(layout)
  end subroutine

  subroutine test_vectors(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: sums, one, scan, before, cast
    type(tasuki_layout) :: row, column, none
    real(real64), target :: mine(3, n), total(n, 2), single(n), so_far(n, 2), below(n), cells(n, 3)
    integer :: epoch, i, r, me, last, at
    me = tasuki_rank(ranks)
    last = tasuki_size(ranks) - 1
    at = modulo(me, 3) + 1 ! each rank has another row
    call tasuki_layout_of(row, mine(at, :))
    call tasuki_layout_of(column, total(n:1:-1, 2)) ! backwards
    call tasuki_allreduce_create(sums, ranks, c_loc(mine(at, 1)), row, c_loc(total(n, 2)), column, tasuki_real64, &
        tasuki_sum, ordered=.true.)
    call tasuki_free(column)
    call tasuki_layout_of(column, single)
    call tasuki_reduce_create(one, ranks, last, c_loc(mine(at, 1)), row, c_loc(single), column, tasuki_real64, tasuki_sum)
    call tasuki_scan_create(scan, ranks, c_loc(mine(at, 1)), row, c_loc(so_far(1, 2)), column, tasuki_real64, tasuki_sum)
    call tasuki_exscan_create(before, ranks, tasuki_in_place(), none, c_loc(below), column, tasuki_real64, tasuki_sum)
    call tasuki_free(row)
    call tasuki_free(column)
    if (modulo(me, 2) == 0) then ! a column on some ranks, a row on the others
      call tasuki_layout_of(column, cells(1:3, 2))
    else
      call tasuki_layout_of(column, cells(2, :))
    end if
    call tasuki_broadcast_create(cast, ranks, 0, merge(c_loc(cells(1, 2)), c_loc(cells(2, 1)), modulo(me, 2) == 0), column)
    call tasuki_free(column)
    call check_operation([sums, one, scan, before, cast])
    do epoch = 1, epochs
      mine = -1
      total = -1
      so_far = -1
      mine(at, :) = value(me, [(i, i=1, n)], epoch)
      below = mine(at, :)
      cells = value(me, reshape([(i, i=1, 3 * n)], [n, 3]), epoch)
      call run([sums, one, scan, before, cast])
      do i = 1, n
        call check(total(n + 1 - i, 2) == sum([(value(r, i, epoch), r=0, last)]), 'an allreduce of sections')
        if (me == last) call check(single(i) == total(n + 1 - i, 2), 'a reduce of sections')
        call check(so_far(i, 2) == sum([(value(r, i, epoch), r=0, me)]), 'a scan of sections')
        if (me > 0) call check(below(i) == sum([(value(r, i, epoch), r=0, me - 1)]), 'an exscan with layouts, in place')
      end do
      call check(all(total(:, 1) == -1) .and. all(so_far(:, 1) == -1), 'what no section names')
      do i = 1, 3
        call check(merge(cells(i, 2), cells(2, i), modulo(me, 2) == 0) == value(0, n + i, epoch), 'a broadcast of sections')
      end do
    end do
    call free([sums, one, scan, before, cast])
  end subroutine

  ! Blocks are columns of an array on one side and rows on the other.
  subroutine test_many_blocks(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: every, one, parts, turned, reduced
    type(tasuki_layout) :: number, row, column, none
    type(tasuki_layout), allocatable :: rows(:), columns(:), nothing(:)
    real(real64), target, allocatable :: table(:, :), sent(:, :), received(:, :)
    real(real64), target :: mine(2, n), part(n), block(n)
    integer :: epoch, i, r, me, size, root
    logical :: mine_is_root
    me = tasuki_rank(ranks)
    size = tasuki_size(ranks)
    root = size / 2
    mine_is_root = me == root
    allocate (table(0:size - 1, n), sent(n, 0:size - 1), received(0:size - 1, n), rows(size), columns(size), nothing(0))
    call tasuki_layout_bytes(number, 8)
    call tasuki_layout_of(row, table(0, :))
    call tasuki_layout_contiguous(column, n, number)
    call tasuki_blocks_of(columns, column)
    block_rows: block
      type(tasuki_layout) :: resized
      call tasuki_layout_resized(resized, row, 0_int64, 8_int64) ! the next row begins a number further
      call tasuki_blocks_of(rows, resized)
      call tasuki_free(resized)
    end block block_rows
    call tasuki_free(row)
    call tasuki_layout_of(row, mine(1, :))
    call tasuki_allgather_create(every, ranks, c_loc(mine(1, 1)), row, c_loc(table), rows)
    if (mine_is_root) then
      call tasuki_gather_create(one, ranks, root, c_loc(mine(1, 1)), row, c_loc(received), rows)
      call tasuki_scatter_create(parts, ranks, root, c_loc(received), rows, c_loc(part), column)
    else
      call tasuki_gather_create(one, ranks, root, c_loc(mine(1, 1)), row, c_null_ptr, nothing)
      call tasuki_scatter_create(parts, ranks, root, c_null_ptr, nothing, c_loc(part), column)
    end if
    call tasuki_reduce_scatter_create(reduced, ranks, c_loc(sent), columns, c_loc(block), column, tasuki_real64, tasuki_sum)
    call check_operation([every, one, parts, reduced])
    do epoch = 1, epochs
      mine(1, :) = value(me, [(i, i=1, n)], epoch)
      mine(2, :) = -1
      sent(:, :) = blocks_of(me, epoch, n, size)
      call run([every, one, parts, reduced])
      do r = 0, size - 1
        do i = 1, n
          call check(table(r, i) == value(r, i, epoch), 'an allgather to rows')
        end do
      end do
      do i = 1, n
        call check(part(i) == mine(1, i), 'what was gathered comes back')
        call check(block(i) == sum([(value(r, i + 100 * me, epoch), r=0, size - 1)]), 'a reduce-scatter of columns')
      end do
    end do
    call tasuki_alltoall_create(turned, ranks, c_loc(sent), columns, c_loc(received), rows)
    call check_operation(turned)
    do epoch = 1, epochs
      sent(:, :) = blocks_of(me, epoch, n, size)
      call run(turned)
      do r = 0, size - 1
        do i = 1, n
          call check(received(r, i) == value(r, i + 100 * me, epoch), 'an alltoall of columns to rows')
        end do
      end do
    end do
    call free([every, one, parts, reduced, turned])
    call tasuki_free(rows)
    call tasuki_free(columns)
    call tasuki_free(row)
    call tasuki_free(column)
    call tasuki_free(number)
    call check(.not. c_associated(none%handle) .and. .not. c_associated(rows(1)%handle), 'layouts that are freed')
  end subroutine

  ! A ring by lists, with counts and with layouts; and the sides of a grid.
  subroutine test_neighbours(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: once, counted, lists, sides
    type(tasuki_neighbour_ranks) :: ring, around
    type(tasuki_layout) :: row, whole, number, to(2), from(2)
    real(real64), target :: mine(2, n), got(n), same(n), out(2 * n + 1), both(2 * n), some(n + 1)
    integer :: epoch, i, me, size, above, below
    me = tasuki_rank(ranks)
    size = tasuki_size(ranks)
    above = modulo(me + 1, size)
    below = modulo(me - 1, size)
    call tasuki_grid_create(around%grid, ranks, [12], periodic=[.true.])
    call tasuki_layout_of(row, mine(1, :))
    call tasuki_layout_bytes(number, 8)
    call tasuki_layout_contiguous(whole, n, number)
    call tasuki_blocks_of(to, number, [int(n, int64), int(n, int64)], [int(n, int64), 0_int64]) ! the second half first
    call tasuki_blocks_of(from, [number, number], [int(n, int64), int(n, int64)], [0_int64, 8_int64 * (n + 1)])
    ring%to = [above]
    ring%from = [below]
    call tasuki_neighbour_allgather_create(counted, ranks, ring, c_loc(both), c_loc(same), int(n, int64), tasuki_real64)
    call tasuki_neighbour_allgather_create(once, ranks, ring, c_loc(mine), row, c_loc(got), [whole])
    call tasuki_neighbour_alltoall_create(lists, ranks, ring, c_loc(both), c_loc(some), 0_int64, tasuki_real64, &
        send_counts=[int(1 + modulo(me, 3), int64)], receive_counts=[int(1 + modulo(below, 3), int64)])
    call tasuki_neighbour_alltoall_create(sides, ranks, around, c_loc(both), to, c_loc(out), from)
    call check_operation([once, counted, lists, sides])
    do epoch = 1, epochs
      mine = -1
      mine(1, :) = value(me, [(i, i=1, n)], epoch)
      both = value(me, [(i + 50, i=1, 2 * n)], epoch)
      out = -1
      some = -1
      call run([once, counted, lists, sides])
      do i = 1, n
        call check(got(i) == value(below, i, epoch), 'a neighbour allgather of rows')
        call check(same(i) == value(below, i + 50, epoch), 'a neighbour allgather')
        call check(some(i) == merge(value(below, i + 50, epoch), -1.0_real64, i <= 1 + modulo(below, 3)), &
            'a neighbour alltoall')
        call check(out(i) == value(below, i + 50, epoch), 'from the lower neighbour, its block for the upper one')
        call check(out(n + 1 + i) == value(above, n + i + 50, epoch), 'from the upper neighbour')
      end do
    end do
    call free([once, counted, lists, sides])
    call tasuki_free(to)
    call tasuki_free(from)
    call tasuki_free(row)
    call tasuki_free(whole)
    call tasuki_free(number)
    call tasuki_free(around%grid)
  end subroutine

  subroutine test_wrong_layouts(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: operation
    type(tasuki_layout) :: number, half, none
    type(tasuki_layout), allocatable :: blocks(:), few(:)
    type(tasuki_neighbour_ranks) :: me
    real(real64), target :: a(n), b(n)
    integer :: stat
    character(400) :: errmsg
    errmsg = ''
    call tasuki_layout_bytes(number, 8)
    call tasuki_layout_bytes(half, 4)
    allocate (blocks(tasuki_size(ranks) + 1), few(0))
    call tasuki_blocks_of(blocks, number)
    call tasuki_allgather_create(operation, ranks, c_loc(a), number, c_loc(b), blocks, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'out_layouts needs an entry for each rank')
    call tasuki_allgather_create(operation, ranks, c_loc(a), number, c_loc(b), few, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, '''out_layouts'' is null')
    call tasuki_scan_create(operation, ranks, c_loc(a), number, c_loc(b), none, tasuki_real64, tasuki_sum, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_handle, '''out_layout'' is null')
    call tasuki_allreduce_create(operation, ranks, c_loc(a), half, c_loc(b), half, tasuki_real64, tasuki_sum, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'no whole number of elements of f64')
    call tasuki_exscan_create(operation, ranks, c_loc(a), number, c_loc(b), half, tasuki_real32, tasuki_sum, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'they must be equal')
    call tasuki_blocks_of(blocks, number, [1_int64], [0_int64], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'different lengths')
    me%to = [tasuki_rank(ranks)]
    me%from = [tasuki_rank(ranks)]
    call tasuki_neighbour_alltoall_create(operation, ranks, me, c_loc(a), blocks, c_loc(b), [number], stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'in_layouts needs an entry for each neighbour')
    call tasuki_neighbour_allgather_create(operation, ranks, me, c_loc(a), c_loc(b), 1_int64, tasuki_real64, &
        receive_counts=[1_int64, 1_int64], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'receive_counts needs an entry for each neighbour')
    call tasuki_free(blocks)
    call tasuki_free(blocks, stat, errmsg)
    call check_failure(stat, errmsg, tasuki_bad_handle, '''layouts[0]'' is null')
    call tasuki_free(number)
    call tasuki_free(half)
  end subroutine

end module
