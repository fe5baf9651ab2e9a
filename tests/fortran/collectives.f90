! Collectives from Fortran, the values of each epoch being others.
module collective_tests
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use tasuki
  use checks
  implicit none
  integer, parameter :: epochs = 3, n = 5

contains

  subroutine test_collectives(ranks)
    type(tasuki_context), intent(in) :: ranks
    call test_reductions(ranks)
    call test_blocks(ranks)
    call test_individual_blocks(ranks)
    call test_failures(ranks)
  end subroutine

  elemental real(real64) function value(rank, i, epoch)
    integer, intent(in) :: rank, i, epoch
    value = i + 10 * rank + 1000 * epoch
  end function

  subroutine run(operation)
    type(tasuki_operation), intent(in) :: operation
    call tasuki_start(operation)
    call tasuki_wait(operation)
  end subroutine

  subroutine test_reductions(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: sums, largest, one, scan, before, barrier
    real(real64), target :: mine(n), total(n), most(n), single(n), so_far(n), below(n)
    integer :: epoch, i, r, me, last
    me = tasuki_rank(ranks)
    last = tasuki_size(ranks) - 1
    call tasuki_allreduce_create(sums, ranks, c_loc(mine), c_loc(total), int(n, int64), tasuki_real64, tasuki_sum, &
        algorithm='ring')
    call tasuki_allreduce_create(largest, ranks, tasuki_in_place(), c_loc(most), int(n, int64), tasuki_real64, tasuki_max)
    call tasuki_reduce_create(one, ranks, last, c_loc(mine), c_loc(single), int(n, int64), tasuki_real64, tasuki_sum, &
        trees=2, arity=1, chunk=16_int64)
    call tasuki_scan_create(scan, ranks, c_loc(mine), c_loc(so_far), int(n, int64), tasuki_real64, tasuki_sum)
    call tasuki_exscan_create(before, ranks, c_loc(mine), c_loc(below), int(n, int64), tasuki_real64, tasuki_sum)
    call tasuki_barrier_create(barrier, ranks)
    call check_operation(sums)
    call check_operation(largest)
    call check_operation(one)
    call check_operation(scan)
    call check_operation(before)
    call check_operation(barrier)
    do epoch = 1, epochs
      mine = value(me, [(i, i=1, n)], epoch)
      most = mine
      below = -1
      call tasuki_start(sums)
      call run(largest)
      call tasuki_wait(sums)
      call run(one)
      call run(scan)
      call run(before)
      call run(barrier)
      do i = 1, n
        call check(total(i) == sum([(value(r, i, epoch), r=0, last)]), 'an allreduce')
        call check(most(i) == value(last, i, epoch), 'an allreduce in place')
        if (me == last) call check(single(i) == total(i), 'a reduce')
        call check(so_far(i) == sum([(value(r, i, epoch), r=0, me)]), 'a scan')
        if (me == 0) call check(below(i) == -1, 'an exscan leaves the first rank alone')
        if (me > 0) call check(below(i) == sum([(value(r, i, epoch), r=0, me - 1)]), 'an exscan')
      end do
    end do
    call tasuki_free(sums)
    call tasuki_free(largest)
    call tasuki_free(one)
    call tasuki_free(scan)
    call tasuki_free(before)
    call tasuki_free(barrier)
  end subroutine

  subroutine test_blocks(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: every, one, parts, turned, reduced
    real(real64), target, allocatable :: table(:, :), root_table(:, :), rows(:, :), columns(:, :)
    real(real64), target :: mine(n), part(n), block(n)
    integer :: epoch, i, r, me, size, root
    me = tasuki_rank(ranks)
    size = tasuki_size(ranks)
    root = size / 2
    allocate (table(n, 0:size - 1), root_table(n, 0:size - 1), rows(n, 0:size - 1), columns(n, 0:size - 1))
    call tasuki_allgather_create(every, ranks, c_loc(mine), c_loc(table), int(n, int64), tasuki_real64)
    call tasuki_gather_create(one, ranks, root, c_loc(mine), c_loc(root_table), int(n, int64), tasuki_real64)
    call tasuki_scatter_create(parts, ranks, root, c_loc(root_table), c_loc(part), int(n, int64), tasuki_real64)
    call tasuki_alltoall_create(turned, ranks, c_loc(rows), c_loc(columns), int(n, int64), tasuki_real64)
    call tasuki_reduce_scatter_create(reduced, ranks, c_loc(rows), c_loc(block), int(n, int64), tasuki_real64, tasuki_sum)
    call check_operation(every)
    call check_operation(one)
    call check_operation(parts)
    call check_operation(turned)
    call check_operation(reduced)
    do epoch = 1, epochs
      mine = value(me, [(i, i=1, n)], epoch)
      do r = 0, size - 1
        rows(:, r) = value(me, [(i + 100 * r, i=1, n)], epoch)
      end do
      call run(every)
      call run(one)
      call run(turned)
      call run(reduced)
      call run(parts)
      call check(all_equal(part, mine), 'what was gathered comes back')
      do r = 0, size - 1
        call check(all_equal(table(:, r), value(r, [(i, i=1, n)], epoch)), 'an allgather')
        if (me == root) call check(all_equal(root_table(:, r), table(:, r)), 'a gather')
        call check(all_equal(columns(:, r), value(r, [(i + 100 * me, i=1, n)], epoch)), 'an alltoall')
      end do
      call check(all_equal(block, sum(columns, 2)), 'a reduce-scatter')
    end do
    call tasuki_free(every)
    call tasuki_free(one)
    call tasuki_free(parts)
    call tasuki_free(turned)
    call tasuki_free(reduced)
  end subroutine

  logical function all_equal(a, b)
    real(real64), intent(in) :: a(:), b(:)
    all_equal = all(a == b)
  end function

  ! Rank r has r + 1 numbers; and rank a has a number for rank b if a + b is even.
  subroutine test_individual_blocks(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: every, some
    integer(int32), target, allocatable :: mine(:), table(:), sent(:), received(:)
    integer(int64), allocatable :: counts(:), pairs(:)
    integer :: epoch, i, r, me, size, at
    me = tasuki_rank(ranks)
    size = tasuki_size(ranks)
    allocate (counts(size), pairs(size))
    counts(:) = [(int(r + 1, int64), r=0, size - 1)]
    pairs(:) = [(int(modulo(me + r + 1, 2), int64), r=0, size - 1)]
    allocate (mine(me + 1), table(size * (size + 1) / 2), sent(size), received(size))
    call tasuki_allgather_create(every, ranks, c_loc(mine), c_loc(table), 0_int64, tasuki_int32, counts=counts)
    call tasuki_alltoall_create(some, ranks, c_loc(sent), c_loc(received), 0_int64, tasuki_int32, send_counts=pairs, &
        receive_counts=pairs)
    call check_operation(every)
    call check_operation(some)
    do epoch = 1, epochs
      mine = [(100 * me + i + epoch, i=0, me)]
      sent = me + epoch
      received = -1
      call run(every)
      call run(some)
      at = 0
      do r = 0, size - 1
        call check(all(table(at + 1:at + r + 1) == [(100 * r + i + epoch, i=0, r)]), 'blocks of different lengths')
        at = at + r + 1
      end do
      at = int(sum(pairs))
      call check(all(received(:at) == pack([(r + epoch, r=0, size - 1)], pairs == 1)), 'numbers for some ranks')
      call check(all(received(at + 1:) == -1), 'what nobody sends')
    end do
    call tasuki_free(every)
    call tasuki_free(some)
  end subroutine

  subroutine test_failures(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: operation
    real(real64), target :: a(n), b(n)
    integer(int64), allocatable :: counts(:)
    integer :: stat
    character(300) :: errmsg
    errmsg = ''
    allocate (counts(tasuki_size(ranks) + 1), source=1_int64) ! one too many
    call tasuki_gather_create(operation, ranks, 0, c_loc(a), c_loc(b), 0_int64, tasuki_real64, counts=counts, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'counts needs an entry for each rank')
    call tasuki_allreduce_create(operation, ranks, c_loc(a), c_loc(b), 1_int64, tasuki_real64, tasuki_bor, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_failed, '''op'' is bor')
    call tasuki_allreduce_create(operation, ranks, c_loc(a), c_loc(b), 1_int64, tasuki_bytes, tasuki_sum, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'TASUKI_BYTES')
    call tasuki_barrier_create(operation, ranks, algorithm='smoke', stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_failed, 'no algorithm ''smoke''')
  end subroutine

end module
