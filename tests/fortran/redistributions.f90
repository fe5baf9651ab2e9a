! Redistributions: rows of a matrix to columns dealt out, permuted and in a section; cuts to replicas; what is wrong.
module redistribution_tests
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use tasuki
  use checks
  implicit none

contains

  subroutine test_redistributions(ranks)
    type(tasuki_context), intent(in) :: ranks
    call test_dealt(ranks)
    call test_cuts(ranks)
    call test_columns(ranks)
    call test_errors(ranks)
  end subroutine

  ! The whole matrix lies on the last rank; then every second row of it, transposed, with the rows' elements dealt out.
  subroutine test_dealt(ranks)
    type(tasuki_context), intent(in) :: ranks
    integer, parameter :: rows = 6
    type(tasuki_operation) :: scatter
    type(tasuki_distributed) :: from, to
    type(tasuki_moved_array) :: array(1)
    real(real64), allocatable, target :: all(:, :), mine(:, :)
    integer :: me, n, columns, epoch, i, j, k

    me = tasuki_rank(ranks)
    n = tasuki_size(ranks)
    columns = 2 * n + 1
    from%extents = [rows, columns]
    from%dims = [tasuki_dimension(), tasuki_dimension()]
    from%ranks = [n - 1]
    from%first = [2, 1]
    from%counts = [rows / 2, columns]
    from%steps = [2, 1]
    to%extents = [columns, rows / 2]
    to%dims = [tasuki_dimension(n, tasuki_cyclic), tasuki_dimension()]
    allocate (all(rows, columns), mine(columns, rows / 2 + 1)) ! with room between the columns of `mine`
    array(1)%target = c_loc(mine)
    array(1)%target_strides = [8, 8 * columns]
    array(1)%name = 'u'
    if (me == n - 1) array(1)%source = c_loc(all)
    call tasuki_redistribute_create(scatter, ranks, from, to, array, axes=[2, 1], engine='inline')
    call check_operation(scatter)
    do epoch = 1, 3
      do j = 1, columns
        all(:, j) = [(1000 * epoch + 10 * j + i, i=1, rows)]
      end do
      mine = -1
      call tasuki_start(scatter)
      call tasuki_wait(scatter)
      k = 0
      do j = me + 1, columns, n
        k = k + 1
        call check(all_equal(mine(k, :rows / 2), [(real(1000 * epoch + 10 * j + i, real64), i=2, rows, 2)]), &
            'rows that are dealt out, transposed')
      end do
      call check(all_equal(mine(k + 1:, 1), spread(-1.0_real64, 1, columns - k)), 'what lies between is left alone')
    end do
    call tasuki_free(scatter)
  end subroutine

  logical function all_equal(a, b)
    real(real64), intent(in) :: a(:), b(:)
    all_equal = all(a == b)
  end function

  subroutine test_cuts(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: gather
    type(tasuki_distributed) :: from, to
    type(tasuki_moved_array) :: array(1)
    real(real32), allocatable, target :: part(:), whole(:)
    integer :: me, n, r, i

    me = tasuki_rank(ranks)
    n = tasuki_size(ranks)
    from%extents = [3 * n]
    allocate (from%dims(1))
    from%dims(1)%ranks = n
    from%dims(1)%kind = tasuki_cuts
    from%dims(1)%firsts = [(2 * r + 1, r=0, n - 1), 3 * n + 1]
    to%extents = from%extents
    to%dims = [tasuki_dimension(n, tasuki_replicated)]
    allocate (part(from%dims(1)%firsts(me + 1):from%dims(1)%firsts(me + 2) - 1), whole(3 * n))
    part = [(real(7 * i, real32), i=lbound(part, 1), ubound(part, 1))]
    array(1) = tasuki_moved_array(4, c_loc(part), c_loc(whole))
    call tasuki_redistribute_create(gather, ranks, from, to, array)
    call check_operation(gather)
    call tasuki_start(gather)
    call tasuki_wait(gather)
    call check(all(whole == [(real(7 * i, real32), i=1, 3 * n)]), 'all of blocks between cuts')
    call tasuki_free(gather)
  end subroutine

  ! As in docs/redistribute.md.
  subroutine test_columns(context)
    type(tasuki_context), intent(in) :: context
    type(tasuki_operation) :: transpose
    type(tasuki_distributed) :: from, to
    type(tasuki_moved_array) :: array(1)
    real(real64), allocatable, target :: a(:, :), b(:, :)
    integer :: me, n, first, i, j

    me = tasuki_rank(context)
    n = tasuki_size(context)
    allocate (a(12, 10 / n + merge(1, 0, me < mod(10, n))), b(10, (11 - me) / n + 1))
    from%extents = [12, 10]
    from%dims = [tasuki_dimension(), tasuki_dimension(n)] ! a(12, :): the second dimension is split
    to%extents = [10, 12]
    to%dims = [tasuki_dimension(), tasuki_dimension(n, tasuki_cyclic)] ! b(10, :): the transpose's columns are dealt out
    array(1) = tasuki_moved_array(8, c_loc(a), c_loc(b))
    call tasuki_redistribute_create(transpose, context, from, to, array, axes=[2, 1])
    call check_operation(transpose)
    first = me * (10 / n) + min(me, mod(10, n))
    do j = 1, size(a, 2)
      a(:, j) = [(100 * i + first + j, i=1, 12)]
    end do
    call tasuki_start(transpose)
    call tasuki_wait(transpose)
    do j = 1, size(b, 2)
      call check(all_equal(b(:, j), [(real(100 * (me + 1 + n * (j - 1)) + i, real64), i=1, 10)]), &
          'columns of a transpose')
    end do
    call tasuki_free(transpose)
  end subroutine

  subroutine test_errors(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: none
    type(tasuki_distributed) :: from, to
    type(tasuki_moved_array) :: array(1)
    real(real64), target :: memory(8)
    character(200) :: errmsg
    integer :: stat

    call tasuki_redistribute_create(none, ranks, from, to, array, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'from: extents needs 1 to 7 entries')
    from%extents = [4, 2]
    to%extents = [4, 2]
    from%dims = [tasuki_dimension()]
    call tasuki_redistribute_create(none, ranks, from, to, array, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'from: dims needs an entry for each dimension')
    from%dims = [tasuki_dimension(), tasuki_dimension()]
    to%dims = from%dims
    array(1) = tasuki_moved_array(8, c_loc(memory), c_loc(memory))
    call tasuki_redistribute_create(none, ranks, from, to, array, axes=[1], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'axes needs an entry for each dimension')
    call tasuki_redistribute_create(none, ranks, from, to, array, scratch=-1_int64, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, "argument 'scratch' is -1; it must be 0")
    array(1)%target_strides = [8]
    call tasuki_redistribute_create(none, ranks, from, to, array, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'target_strides')
    deallocate (array(1)%target_strides)
    call tasuki_redistribute_create(none, ranks, from, to, array, axes=[1, 1], stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'axes')
    to%dims(2) = tasuki_dimension(kind=tasuki_cuts)
    call tasuki_redistribute_create(none, ranks, from, to, array, stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'to: firsts of a dimension with cuts is not allocated')
  end subroutine

end module
