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
    call test_own_operator(ranks, 'inline')
    call test_own_operator(ranks, 'thread')
    call test_wrong_operators(ranks)
    call test_barriers(ranks)
    call test_blocks(ranks)
    call test_individual_blocks(ranks)
    call test_failures(ranks)
  end subroutine

  elemental real(real64) function value(rank, i, epoch)
    integer, intent(in) :: rank, i, epoch
    value = i + 10 * rank + 1000 * epoch
  end function

  ! A block of a rank's for each rank, of so many values: column r + 1 is for rank r.
  function blocks_of(rank, epoch, many, ranks) result(blocks)
    integer, intent(in) :: rank, epoch, many, ranks
    real(real64) :: blocks(many, ranks)
    integer :: i, r
    blocks = reshape([((value(rank, i + 100 * r, epoch), i=1, many), r=0, ranks - 1)], [many, ranks])
  end function

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
    call check_operation([sums, largest, one, scan, before, barrier])
    do epoch = 1, epochs
      mine = value(me, [(i, i=1, n)], epoch)
      most = mine
      below = -1
      call tasuki_start(sums)
      call run(largest)
      call tasuki_wait(sums)
      call run([one, scan, before, barrier])
      do i = 1, n
        call check(total(i) == sum([(value(r, i, epoch), r=0, last)]), 'an allreduce')
        call check(most(i) == value(last, i, epoch), 'an allreduce in place')
        if (me == last) call check(single(i) == total(i), 'a reduce')
        call check(so_far(i) == sum([(value(r, i, epoch), r=0, me)]), 'a scan')
        if (me == 0) call check(below(i) == -1, 'an exscan leaves the first rank alone')
        if (me > 0) call check(below(i) == sum([(value(r, i, epoch), r=0, me - 1)]), 'an exscan')
      end do
    end do
    call free([sums, largest, one, scan, before, barrier])
  end subroutine

  ! Functions x -> a x + b modulo a prime, a pair (a, b) each: to do one after the other does not commute. data counts the
  ! elements.
  subroutine compose(right, left, count, data) bind(c)
    type(c_ptr), value :: right, left, data
    integer(c_int64_t), value :: count
    integer(int32), pointer :: second(:, :), first(:, :)
    integer(int64), pointer :: elements
    call c_f_pointer(right, second, [2_c_int64_t, count])
    call c_f_pointer(left, first, [2_c_int64_t, count])
    first(2, :) = modulo(second(1, :) * first(2, :) + second(2, :), 10007)
    first(1, :) = modulo(second(1, :) * first(1, :), 10007)
    if (.not. c_associated(data)) return
    call c_f_pointer(data, elements)
    elements = elements + count
  end subroutine

  ! The functions of a rank.
  function functions_of(rank, epoch, many) result(pairs)
    integer, intent(in) :: rank, epoch, many
    integer(int32) :: pairs(2, many)
    integer :: i
    do i = 1, many
      pairs(:, i) = [2 + rank + i, 100 * epoch + 7 * rank + i]
    end do
  end function

  ! Those of ranks 0 to last, one after the other.
  function composed(last, epoch, many) result(pairs)
    integer, intent(in) :: last, epoch, many
    integer(int32), target :: pairs(2, many), next(2, many)
    integer :: rank
    pairs = functions_of(0, epoch, many)
    do rank = 1, last
      next = functions_of(rank, epoch, many)
      call compose(c_loc(next), c_loc(pairs), int(many, c_int64_t), c_null_ptr)
    end do
  end function

  subroutine test_own_operator(ranks, engine)
    type(tasuki_context), intent(in) :: ranks
    character(*), intent(in) :: engine
    type(tasuki_operator) :: composition, of_numbers
    type(tasuki_operation) :: all_of_them, one, scan, before, parts, rows, records
    type(tasuki_layout) :: whole, odd, pair
    integer(int32), target :: mine(2, n), total(2, n), single(2, n), so_far(2, n), below(2, n), block(2, n)
    integer(int32), target :: spread(2, 2 * n), by_records(2, n)
    integer(int32), target, allocatable :: blocks(:, :), expected(:, :)
    integer(int64), target :: elements
    character(:), allocatable :: text
    integer :: epoch, me, last
    me = tasuki_rank(ranks)
    last = tasuki_size(ranks) - 1
    allocate (blocks(2, n * (last + 1)), expected(2, n * (last + 1)))
    elements = 0
    call tasuki_operator_create(composition, 'composition', compose, commutes=.false., data=c_loc(elements))
    call tasuki_allreduce_create(all_of_them, ranks, c_loc(mine), c_loc(total), int(n, int64), tasuki_int32_int32, &
        composition, engine=engine)
    call tasuki_reduce_create(one, ranks, last, c_loc(mine), c_loc(single), int(n, int64), tasuki_int32_int32, composition, &
        engine=engine)
    call tasuki_scan_create(scan, ranks, c_loc(mine), c_loc(so_far), int(n, int64), tasuki_int32_int32, composition, &
        engine=engine)
    call tasuki_exscan_create(before, ranks, c_loc(mine), c_loc(below), int(n, int64), tasuki_int32_int32, composition, &
        engine=engine)
    call tasuki_reduce_scatter_create(parts, ranks, c_loc(blocks), c_loc(block), int(n, int64), tasuki_int32_int32, &
        composition, engine=engine)
    call tasuki_layout_of(whole, mine)
    call tasuki_layout_bytes(pair, 8)
    call tasuki_layout_vector(odd, n, 1, 2_int64, pair)
    call tasuki_allreduce_create(rows, ranks, c_loc(mine), whole, c_loc(spread), odd, tasuki_int32_int32, composition, &
        engine=engine)
    call tasuki_operator_create(of_numbers, 'composition of numbers', compose, commutes=.false., data=c_loc(elements), &
        record=2_int64)
    call tasuki_allreduce_create(records, ranks, c_loc(mine), c_loc(by_records), int(n, int64), tasuki_int32, of_numbers, &
        engine=engine)
    call check_operation([all_of_them, one, scan, before, parts, rows, records])
    call tasuki_plan_text(all_of_them, text)
    call check(index(text, 'by composition') > 0, 'a plan that names the operator')
    do epoch = 1, epochs
      mine = functions_of(me, epoch, n)
      blocks = functions_of(me, epoch, size(blocks, 2))
      spread = -1
      below = -1
      call tasuki_start(all_of_them)
      call run([one, scan])
      call tasuki_wait(all_of_them)
      call run([before, parts, rows, records])
      expected = composed(last, epoch, size(expected, 2))
      call check(all(total == expected(:, :n)), 'an allreduce by a function, '//engine)
      if (me == last) call check(all(single == total), 'a reduce by a function')
      call check(all(so_far == composed(me, epoch, n)), 'a scan by a function')
      if (me > 0) call check(all(below == composed(me - 1, epoch, n)), 'an exscan by a function')
      call check(all(block == expected(:, me * n + 1:(me + 1) * n)), 'a reduce-scatter by a function')
      call check(all(by_records == total), 'an allreduce of records by a function')
      call check(all(spread(:, 1::2) == total) .and. all(spread(:, 2::2) == -1), 'an allreduce of layouts by a function')
    end do
    call check(elements > 0 .or. last == 0, 'calls with data')
    call tasuki_free(all_of_them)
    call tasuki_free(one)
    call tasuki_free(scan)
    call tasuki_free(before)
    call tasuki_free(parts)
    call tasuki_free(rows)
    call tasuki_free(records)
    call tasuki_free(whole)
    call tasuki_free(odd)
    call tasuki_free(pair)
  end subroutine

  subroutine test_wrong_operators(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operator) :: none
    type(tasuki_operation) :: sums
    integer(int32), target :: mine(2), total(2)
    character(300) :: errmsg
    integer :: stat
    errmsg = ''
    call tasuki_operator_create(none, ' ', compose, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'name must have 1 to 127 letters')
    call tasuki_operator_create(none, repeat('n', 128), compose, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'name must have 1 to 127 letters')
    call tasuki_operator_create(none, 'nothing', compose, record=0_int64, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'record must be at least 1')
    call tasuki_allreduce_create(sums, ranks, c_loc(mine), c_loc(total), 1_int64, tasuki_int32_int32, none, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, '''op'' is -1')
    if (tasuki_size(ranks) == 1) return
    call tasuki_operator_create(none, merge('this', 'that', tasuki_rank(ranks) == 0), compose)
    call tasuki_allreduce_create(sums, ranks, c_loc(mine), c_loc(total), 1_int64, tasuki_int32_int32, none, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_disagreement, 'rank 0 has own ''this''')
  end subroutine

  subroutine test_barriers(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: barrier
    character(:), allocatable :: no_gpu
    character(300) :: errmsg
    integer :: stat
    errmsg = ''
    call tasuki_why_no_gpu(no_gpu)
    call tasuki_barrier_create(barrier, ranks, device=.true., stat=stat, errmsg=errmsg)
    if (len(no_gpu) > 0) call check_failure(stat, errmsg, tasuki_not_possible, 'GPU')
    if (stat == tasuki_ok) call tasuki_free(barrier)
    if (tasuki_size(ranks) == 1) return
    call tasuki_barrier_create(barrier, ranks, device=tasuki_rank(ranks) > 0, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_disagreement, '''device'' differs between ranks')
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
    call check_operation([every, one, parts, turned, reduced])
    do epoch = 1, epochs
      mine = value(me, [(i, i=1, n)], epoch)
      rows(:, :) = blocks_of(me, epoch, n, size)
      call run([every, one, turned, reduced, parts])
      call check(all(part == mine), 'what was gathered comes back')
      do r = 0, size - 1
        call check(all(table(:, r) == value(r, [(i, i=1, n)], epoch)), 'an allgather')
        if (me == root) call check(all(root_table(:, r) == table(:, r)), 'a gather')
        call check(all(columns(:, r) == value(r, [(i + 100 * me, i=1, n)], epoch)), 'an alltoall')
      end do
      call check(all(block == sum(columns, 2)), 'a reduce-scatter')
    end do
    call free([every, one, parts, turned, reduced])
  end subroutine

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
    call check_operation([every, some])
    do epoch = 1, epochs
      mine = [(100 * me + i + epoch, i=0, me)]
      sent = me + epoch
      received = -1
      call run([every, some])
      at = 0
      do r = 0, size - 1
        call check(all(table(at + 1:at + r + 1) == [(100 * r + i + epoch, i=0, r)]), 'blocks of different lengths')
        at = at + r + 1
      end do
      at = int(sum(pairs))
      call check(all(received(:at) == pack([(r + epoch, r=0, size - 1)], pairs == 1)), 'numbers for some ranks')
      call check(all(received(at + 1:) == -1), 'what nobody sends')
    end do
    call free([every, some])
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
    call check_failure(stat, errmsg, tasuki_bad_argument, '''op'' is bor')
    call tasuki_allreduce_create(operation, ranks, c_loc(a), c_loc(b), 1_int64, tasuki_bytes, tasuki_sum, stat=stat, &
        errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'TASUKI_BYTES')
    call tasuki_barrier_create(operation, ranks, algorithm='smoke', stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'no algorithm ''smoke''')
    call tasuki_barrier_create(operation, ranks, blocks=-1, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, '''blocks'' is -1')
    call tasuki_allreduce_create(operation, ranks, c_loc(a), c_loc(b), 1_int64, tasuki_real64, tasuki_sum, blocks=-1, &
        stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, '''blocks'' is -1')
  end subroutine

end module
