! Exchanges on a ring of ranks whose cells are in no order: two fields, both ways, by cells and by layouts.
module exchange_tests
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use tasuki
  use checks
  implicit none

contains

  subroutine test_exchanges(ranks)
    type(tasuki_context), intent(in) :: ranks
    type(tasuki_operation) :: exchange, back
    type(tasuki_cells) :: fields(2)
    type(tasuki_entry) :: entries(2)
    type(tasuki_layout) :: number, ghost
    real(real64), target :: u(2, 6)
    real(real32), target :: v(6, 3)
    character(200) :: errmsg
    integer :: me, after, before, epoch, stat

    me = tasuki_rank(ranks)
    after = modulo(me + 1, tasuki_size(ranks))
    before = modulo(me - 1, tasuki_size(ranks))
    fields(1) = tasuki_cells(c_loc(u), 6_int64, 2_int64, tasuki_real64, .false., 'u')
    fields(2) = tasuki_cells(c_loc(v), 6_int64, 3_int64, tasuki_real32, cells_first=.true.)
    entries(1)%rank = after
    entries(1)%send = [4_int64, 2_int64]
    entries(2)%rank = before
    entries(2)%receive = [6_int64, 5_int64]
    call tasuki_exchange_create(exchange, ranks, fields, entries, engine='inline')
    call check_operation(exchange)
    do epoch = 1, 4
      u = -1
      v = -1
      u(:, :4) = values(me, epoch)
      v(:4, :) = real(epoch + me, real32)
      v(4, 3) = real(100 * me + epoch, real32)
      call tasuki_start(exchange)
      call tasuki_wait(exchange)
      call check(all(u(:, 6) == column(before, 4, epoch)) .and. all(u(:, 5) == column(before, 2, epoch)), &
          'ghosts of a field whose cells are columns')
      call check(all(v(5, :) == real(epoch + before, real32)) .and. v(6, 3) == real(100 * before + epoch, real32), &
          'ghosts of a field whose cells are rows')
    end do
    call tasuki_free(exchange)

    call tasuki_exchange_create(back, ranks, fields(:1), entries, reverse=.true., op=tasuki_max)
    u = real(me, real64)
    u(1, 5:6) = 50
    call tasuki_start(back)
    call tasuki_wait(back)
    call check(all(u(1, [2, 4]) == 50) .and. u(1, 1) == me .and. all(u(2, [2, 4]) == max(me, after)), 'an assembly')
    call tasuki_free(back)

    call tasuki_layout_bytes(number, 16)
    call tasuki_layout_hindexed(ghost, [1_int64], [80_int64], number)
    entries(1) = tasuki_entry(after)
    entries(1)%send_layouts = [number]
    entries(2) = tasuki_entry(before)
    entries(2)%receive_layouts = [ghost]
    call tasuki_exchange_create(exchange, ranks, fields(:1), entries)
    call tasuki_free(number)
    call tasuki_free(ghost)
    u(:, :4) = values(me, 9)
    call tasuki_start(exchange)
    call tasuki_wait(exchange)
    call check(all(u(:, 6) == column(before, 1, 9)), 'layouts in place of cells')
    call tasuki_free(exchange)

    entries(1) = tasuki_entry(after)
    entries(1)%send = [7_int64]
    call tasuki_exchange_create(exchange, ranks, fields(:1), entries(:1), stat=stat, errmsg=errmsg)
    call check_failure(stat, errmsg, tasuki_bad_argument, 'names cell 6')
  end subroutine

  ! The numbers of cell `cell` of a rank.
  function column(rank, cell, epoch) result(numbers)
    integer, intent(in) :: rank, cell, epoch
    real(real64) :: numbers(2)
    numbers = [10 * cell + rank + 1000 * epoch, 10 * cell + rank + 1000 * epoch + 500]
  end function

  ! Those of cells 1 to 4.
  function values(rank, epoch) result(all_numbers)
    integer, intent(in) :: rank, epoch
    real(real64) :: all_numbers(2, 4)
    integer :: cell
    do cell = 1, 4
      all_numbers(:, cell) = column(rank, cell, epoch)
    end do
  end function

end module
